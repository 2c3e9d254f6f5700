"""The observations of a fit: features brought to the device, labels and lists, the loss of scores, and mini-batches.

*Mini-batches* are of items that keep every class, or of whole lists. The mean over the positive-negative pairs of a
batch of items estimates the mean over all pairs without bias, because each class is sampled uniformly. Losses that are
not means over pairs (the P-norm push) are estimated with a bias that vanishes as batches grow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ltr.checks import as_array, as_numbers
from ltr.fitting.smoothing import HuberHinge
from ltr.fitting.team import BLOCKS, Team
from ltr.losses.contract import RankingLoss

__all__ = ["Labelled", "Rows", "item_batches", "list_batches", "lists_in_blocks"]

IntArray = NDArray[np.int64]

_CHECKED = 1 << 16  # rows checked at a time


class Rows:
    """Observations X, (n, d), finite.

    Args:
        X: array of any real type; with `resident` False it is not copied, so that a memory-mapped one
            (``numpy.load(..., mmap_mode="r")``) is read from the disk whenever it is needed.
        dtype: precision of the rows that `take` returns.
        device: device of these rows.
        resident: whether to keep all rows on the device.

    Attributes:
        ends: the first and the last row.

    Raises:
        ValueError: anything but a matrix of finite numbers with a row and a column.
    """

    def __init__(self, X: ArrayLike, *, dtype: torch.dtype, device: torch.device, resident: bool) -> None:
        self._dtype, self._device = dtype, device
        source: NDArray[np.generic] = as_array("X", _plain(X))
        if source.dtype.kind not in "fiub":
            source = as_numbers("X", source)
        self._source: NDArray[np.generic] | Tensor = _checked(source)
        self._rows = len(source)
        self.ends = np.concatenate([source[:1], source[-1:]])
        if resident:
            self._source = self._copied(source)

    def __len__(self) -> int:
        return self._rows

    def take(self, rows: slice | NDArray[np.int64]) -> Tensor:
        """Return some rows, on the device."""
        if isinstance(self._source, Tensor):
            return self._source[rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self._device)]
        return self._copied(self._source[rows])

    def _copied(self, rows: NDArray[np.generic]) -> Tensor:
        # sums may depend on the alignment of memory, and torch aligns its own alike in every process
        return torch.tensor(rows, dtype=self._dtype).to(self._device)


class Labelled:
    """The labels y, (n,), of one list of observations, or of the lists that qid names.

    The loss of many lists is a sum or a mean over them, so processes can share it: each takes some of the lists.

    Args:
        rows: number of observations n.
        y: labels, finite, 0 or more; some list must hold two different ones.
        qid: list of each observation, integers, (n,); None means that all are one list.
        dtype, device: precision and device of the scores.
        chunk: approximate number of rows of a block of lists; smaller blocks are not shared.
        team: the processes that share the fit.

    Attributes:
        labels: the labels y.
        ids: the list of each observation, None for a single list.
        groups: the rows of each list, None for a single list.

    Raises:
        ValueError: an argument against its rule.
    """

    def __init__(
        self,
        rows: int,
        y: ArrayLike,
        qid: ArrayLike | None,
        *,
        dtype: torch.dtype,
        device: torch.device,
        chunk: int,
        team: Team,
    ) -> None:
        self.labels = _checked_labels(y, rows)
        self.ids: IntArray | None = None
        self.groups: list[IntArray] | None = None
        if qid is not None:
            self.ids, self.groups = _checked_lists(qid, self.labels)
        if self.groups is None and np.all(self.labels == self.labels[0]):
            raise ValueError(f"y must hold both classes, got only {self.labels[0]:g}")
        self._y = torch.from_numpy(self.labels).to(device, dtype)
        self._qid = None if self.ids is None else torch.from_numpy(self.ids).to(device)
        self._device, self._chunk, self._team = device, chunk, team
        self._blocks = None if self.groups is None else _in_blocks(self.groups, chunk)

    def loss(
        self, loss: Callable[..., Tensor], scores: Tensor, rows: IntArray | None = None, *, derive: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of the scores of some rows, or of all, and its derivative by each score.

        Args:
            loss: called as ``loss(scores, labels)``, with ``qid=`` when there is one.
            scores: scores of the rows.
            rows: indices of the rows, whole lists one after the other; None means all.
            derive: whether to compute the derivative; otherwise it is 0.

        Returns:
            The loss, 0-D, and the derivative, of the shape of the scores; NaN where a score is not finite.

        Raises:
            ValueError: a loss that is not one number.
        """
        if not bool(torch.isfinite(scores).all()):
            # losses refuse such scores; the caller decides how to handle a point out of range
            return scores.new_tensor(torch.nan), torch.full_like(scores, torch.nan)
        y, qid, blocks = self._y, self._qid, self._blocks
        if rows is not None:
            index = torch.from_numpy(rows).to(self._device)
            y, qid = y[index], None if qid is None else qid[index]
            blocks = None if self.ids is None else lists_in_blocks(self.ids[rows], self._chunk)
        reduction = _reduction(loss)
        if qid is None or blocks is None or len(blocks) == 1 or reduction is None:
            return _one(loss, scores, y, qid, derive=derive)
        values, slopes = scores.new_zeros(len(blocks)), torch.zeros_like(scores)
        for block, (members, share) in enumerate(blocks):
            if self._team.owns(block, len(blocks)):
                at = torch.from_numpy(members).to(self._device)
                value, slope = _one(loss, scores[at], y[at], qid[at], derive=derive)
                weight = share if reduction == "mean" else 1.0
                values[block], slopes[at] = weight * value, weight * slope
        together = torch.cat([values, slopes])
        self._team.gather(together)
        return together[: len(blocks)].sum(), together[len(blocks) :]


def lists_in_blocks(ids: IntArray, chunk: int) -> list[tuple[IntArray, float]]:
    """Put lists into blocks of about equal size, whatever the number of processes.

    Args:
        ids: the list of each row.
        chunk: least number of rows of a block, if there are enough.

    Returns:
        At most 16 blocks: the rows of each, list after list, and its share of the lists.

    Examples:
        >>> blocks = lists_in_blocks(np.array([5, 7, 5, 7, 9]), 2)
        >>> [(rows.tolist(), round(share, 2)) for rows, share in blocks]
        [([0, 2], 0.33), ([1, 3, 4], 0.67)]
    """
    return _in_blocks(_rows_of_lists(ids), chunk)


def _in_blocks(groups: Sequence[IntArray], chunk: int) -> list[tuple[IntArray, float]]:
    ends = np.cumsum([len(rows) for rows in groups])
    count = max(1, min(int(ends[-1]) // chunk, len(groups), BLOCKS))
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, count) / count, side="right")
    bounds = np.unique([0, *cuts, len(groups)])
    return [
        (np.concatenate(groups[begin:end]), (end - begin) / len(groups))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def _rows_of_lists(ids: IntArray) -> list[IntArray]:
    _, group = np.unique(ids, return_inverse=True)
    return np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])


def _reduction(loss: Callable[..., Tensor]) -> str | None:
    """Return how a loss, or the loss of a method, reduces the values of lists; None where that is not known."""
    owner = getattr(loss, "__self__", loss)
    return owner.reduction if isinstance(owner, RankingLoss | HuberHinge) else None


def _one(
    loss: Callable[..., Tensor], scores: Tensor, y: Tensor, qid: Tensor | None, *, derive: bool
) -> tuple[Tensor, Tensor]:
    leaf = scores.detach().requires_grad_(derive)
    with torch.set_grad_enabled(derive):
        value = loss(leaf, y) if qid is None else loss(leaf, y, qid=qid)
    if value.ndim != 0:
        raise ValueError(f"loss must give one number, got shape {tuple(value.shape)}; set its reduction to 'mean'")
    if not value.requires_grad:
        return value, torch.zeros_like(leaf)
    return value.detach(), torch.autograd.grad(value, leaf)[0]


def _checked_labels(y: ArrayLike, rows: int) -> NDArray[np.float64]:
    labels = as_numbers("y", _plain(y)).copy()
    if labels.shape != (rows,):
        raise ValueError(f"y must have one label per row of X ({rows}), got shape {labels.shape}")
    if not np.isfinite(labels).all():
        raise ValueError(f"y must be finite, got {labels[~np.isfinite(labels)][0]}")
    return labels


def _checked_lists(qid: ArrayLike, labels: NDArray[np.float64]) -> tuple[IntArray, list[IntArray]]:
    ids = as_array("qid", _plain(qid))
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"qid must be integers, got {ids.dtype}")
    if ids.shape != labels.shape:
        raise ValueError(f"qid must have one id per row of X ({labels.shape[0]}), got shape {ids.shape}")
    groups = _rows_of_lists(ids)
    if all(np.all(labels[rows] == labels[rows[0]]) for rows in groups):
        raise ValueError("y must hold two different labels in at least one list of qid, got none")
    return ids.astype(np.int64), groups


def item_batches(labels: NDArray[np.float64], size: int, generator: np.random.Generator) -> list[IntArray]:
    """Deal the items of one list into batches that hold about the same share of every class.

    Items in random order within their class are dealt out in turn. A batch that would hold a single class
    (one class has fewer items than there are batches) gets one random item of another class on top.

    Args:
        labels: (n,), at least two different ones.
        size: items in a batch, at least 2; all batches hold about n / ceil(n / size).
        generator: source of randomness.

    Returns:
        Row indices of each batch, in random order; every row occurs.

    Examples:
        >>> batches = item_batches(np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), 3, np.random.default_rng(0))
        >>> [sorted(b.tolist()) for b in batches]
        [[0, 1, 2], [3, 4, 5]]
    """
    count = -(-len(labels) // size)
    order = generator.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    batches = [order[start::count] for start in generator.permutation(count)]
    return [_with_a_pair(batch, labels, generator) for batch in batches]


def _with_a_pair(batch: IntArray, labels: NDArray[np.float64], generator: np.random.Generator) -> IntArray:
    if np.any(labels[batch] != labels[batch[0]]):
        return batch
    others = np.flatnonzero(labels != labels[batch[0]])
    return np.append(batch, generator.choice(others))


def list_batches(groups: list[IntArray], size: int, generator: np.random.Generator) -> list[IntArray]:
    """Shuffle whole lists into batches.

    Args:
        groups: row indices of each list.
        size: lists in a batch, at least 1; all batches hold about lists / ceil(lists / size).
        generator: source of randomness.

    Returns:
        Row indices of each batch, list after list; every row occurs once.

    Examples:
        >>> groups = [np.array([0, 2]), np.array([1]), np.array([3])]
        >>> [b.tolist() for b in list_batches(groups, 2, np.random.default_rng(0))]
        [[3, 1], [0, 2]]
    """
    count = -(-len(groups) // size)
    order = generator.permutation(len(groups))
    return [np.concatenate([groups[at] for at in order[start::count]]) for start in range(count)]


def _plain(values: ArrayLike) -> ArrayLike:
    """Return a tensor as an array, anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


def _checked(source: NDArray[np.generic]) -> NDArray[np.generic]:
    if source.ndim != 2 or source.shape[0] < 1 or source.shape[1] < 1:
        raise ValueError(f"X must be 2-D with at least one row and one column, got shape {source.shape}")
    for begin in range(0, len(source), _CHECKED):
        part = np.asarray(source[begin : begin + _CHECKED], dtype=np.float64)
        if not np.isfinite(part).all():
            row, column = np.argwhere(~np.isfinite(part))[0]
            raise ValueError(f"X must be finite, got {part[row, column]} at row {begin + row}, column {column}")
    return source
