"""The observations of a fit: features, labels and lists, losses, and mini-batches.

*Mini-batches* consist of items, with every class in each, or of whole lists. The mean over the positive-negative pairs
of a batch of items estimates the mean over all pairs without bias. Losses that are not means over pairs (the P-norm
push) are estimated with a bias that vanishes as batches grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ltr.checks import PIECE, as_array, as_matrix, as_numbers, pieces
from ltr.data.dataset import checked_weights, labels_agree
from ltr.fitting.scoring import scores_lists
from ltr.fitting.smoothing import HuberHinge
from ltr.lists import numbered, weights_by_row
from ltr.losses.contract import RankingLoss

IntArray = NDArray[np.int64]
BLOCKS = 16
"""Largest number of parts in which the loss of many lists is computed, so that it needs little memory at a time."""


class Rows:
    """Observations, (n, d), checked to be finite, in the type and on the device that a scorer takes them.

    If `resident`, all rows are kept on the device in that form. Otherwise X is not copied: a memory-mapped array is
    read from disk whenever it is needed. `scale` is applied to rows of float64 first, piece by piece; `chosen` are the
    rows of X that are meant, ascending, all by default.
    """

    def __init__(
        self,
        X: ArrayLike,
        *,
        dtype: torch.dtype,
        device: torch.device,
        resident: bool,
        scale: nn.Module | None = None,
        chosen: IntArray | None = None,
    ) -> None:
        self._dtype, self._device, self._scale = dtype, device, scale
        source = as_matrix("X", _plain(X), rows=1)
        self._source: NDArray[np.generic] | Tensor = source
        self._chosen, self._rows = chosen, len(source if chosen is None else chosen)
        self.d = source.shape[1]
        if resident:
            kept = torch.empty(self._rows, self.d, dtype=dtype, device=device)
            for piece in pieces(len(kept)):
                kept[piece] = self._copied(piece)
            self._source = kept

    def __len__(self) -> int:
        return self._rows

    def take(self, rows: slice | NDArray[np.int64]) -> Tensor:
        """Return some rows, on the device."""
        if isinstance(self._source, Tensor):
            return self._source[rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self._device)]
        if self._scale is None:
            return self._copied(rows)
        numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        return torch.cat([self._copied(numbers[piece]) for piece in pieces(len(numbers))])

    def _copied(self, rows: slice | NDArray[np.int64]) -> Tensor:
        assert not isinstance(self._source, Tensor)
        given = self._source[rows if self._chosen is None else self._chosen[rows]]
        if self._scale is not None:
            return self._scale(torch.tensor(given, dtype=torch.float64)).to(self._device, self._dtype)
        # sums may depend on memory alignment, and torch aligns its own memory always alike
        return torch.tensor(given, dtype=self._dtype).to(self._device)


class Labelled:
    """The labels y, (n,), of one list of observations, or of the lists that qid names, and their weights if any.

    The loss of many lists is a sum or a mean over them, computed in blocks of about `chunk` rows. Weights of rows weigh
    the lists and the rows in each, as `ltr.lists` says. The mean over some lists is then
    ``sum of V_q L_q / (number of these lists * mean of V_q over all lists)``, which for all lists is the weighted mean,
    and for those of a mini-batch estimates it without bias. A loss of an unknown kind gets the weights of rows as they
    are.
    """

    def __init__(
        self,
        X: Rows,
        y: ArrayLike,
        qid: ArrayLike | None,
        weight: ArrayLike | None,
        *,
        dtype: torch.dtype,
        device: torch.device,
        chunk: int,
    ) -> None:
        rows = len(X)
        self.labels = as_numbers("y", _plain(y)).copy()
        if self.labels.shape != (rows,):
            raise ValueError(f"y must have one label per row of X ({rows}), got shape {self.labels.shape}")
        if not np.isfinite(self.labels).all():
            raise ValueError(f"y must be finite, got {self.labels[~np.isfinite(self.labels)][0]}")
        self.ids = None if qid is None else _checked_ids(qid, rows)
        self.groups = None if self.ids is None else rows_of_lists(self.ids)
        if labels_agree(self.labels, self.ids):
            if self.ids is None:
                raise ValueError(f"y must hold both classes, got only {self.labels[0]:g}")
            raise ValueError("y must hold two different labels in at least one list of qid, got none")
        self.weight = None if weight is None else checked_weights(weight, rows, "weight")
        self._y = torch.from_numpy(self.labels).to(device, dtype)
        self._rows_weight = None if self.weight is None else torch.from_numpy(self.weight).to(device, dtype)
        self._weight, self._list_weight, self._mean_weight = self._rows_weight, None, 1.0
        self.list_weight: NDArray[np.float64] | None = None
        if self.weight is not None and self.ids is not None:
            self.list_weight, relative = weights_by_row(self.weight, self.ids, self.labels)
            self._weight = None if relative is None else torch.from_numpy(relative).to(device, dtype)
            self._mean_weight = float(self.list_weight[np.unique(self.ids, return_index=True)[1]].mean())
            self._list_weight = torch.from_numpy(self.list_weight).to(device, dtype)
        self._qid = None if self.ids is None else torch.from_numpy(self.ids).to(device)
        self._device = device
        if self.groups is not None:
            self._blocks = lists_in_blocks(self.groups, chunk)

    def loss(
        self, loss: Callable[..., Tensor], scores: Tensor, rows: IntArray | None = None, *, derive: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of the scores of some rows, or of all, and its derivative by each score, 0 unless `derive`.

        The loss is called as ``loss(scores, labels)``, with ``qid=``, ``weight=`` and ``list_weight=`` if there are
        any, and must return one number. `rows` has whole lists.
        """
        if not bool(torch.isfinite(scores).all()):
            # losses reject such scores; the caller decides how to handle a point out of range
            return scores.new_tensor(torch.nan), torch.full_like(scores, torch.nan)
        owner = getattr(loss, "__self__", loss)  # a method of a loss is reduced as the loss is
        reduction = owner.reduction if isinstance(owner, RankingLoss | HuberHinge) else None
        given = {"qid": self._qid, "weight": self._weight, "list_weight": self._list_weight}
        if reduction is None:
            given = {"qid": self._qid, "weight": self._rows_weight}
        of_rows = {name: values for name, values in given.items() if values is not None}
        y = self._y
        if rows is not None:
            index = torch.from_numpy(rows).to(self._device)
            y, of_rows = y[index], {name: values[index] for name, values in of_rows.items()}
        if self.groups is None or self.ids is None or reduction is None:
            return _one(loss, scores, y, of_rows, derive=derive)
        if rows is None:
            lists, blocks = len(self.groups), self._blocks
        else:
            lists = len(np.unique(self.ids[rows]))
            blocks = [(np.arange(len(rows)), lists)]
        if len(blocks) == 1 and self._list_weight is None:
            return _one(loss, scores, y, of_rows, derive=derive)
        total, slopes = scores.new_zeros(()), torch.zeros_like(scores)
        for members, count in blocks:
            at = torch.from_numpy(members).to(self._device)
            part = {name: one[at] for name, one in of_rows.items()}
            value, slope = _one(loss, scores[at], y[at], part, derive=derive)
            factor = count * self._weight_of(part) / lists if reduction == "mean" else 1.0
            total, slopes[at] = total + factor * value, factor * slope
        return total, slopes

    def _weight_of(self, of_rows: Mapping[str, Tensor]) -> float:
        """Return the mean weight of some lists, over that of all lists."""
        if "list_weight" not in of_rows or not self._mean_weight:
            return 1.0
        number = numbered(of_rows["qid"])
        lists = of_rows["list_weight"].new_zeros(int(number.max()) + 1).index_copy(0, number, of_rows["list_weight"])
        return float(lists.double().mean()) / self._mean_weight


def lists_in_blocks(groups: Sequence[IntArray], chunk: int, most: int = BLOCKS) -> list[tuple[IntArray, int]]:
    """Group lists, given by their rows, into at most `most` blocks of about equal size, of `chunk` rows or more.

    Return the rows of each block, list after list, and its number of lists.
    """
    ends = np.cumsum([len(rows) for rows in groups])
    count = max(1, min(int(ends[-1]) // chunk, len(groups), most))
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, count) / count, side="right")
    bounds = np.unique([0, *cuts, len(groups)])
    return [
        (np.concatenate(groups[begin:end]), end - begin)
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def pieces_to_score(scorer: nn.Module, rows: int, ids: IntArray | None) -> Iterator[slice | IntArray]:
    """Yield pieces of so many rows that a scorer scores one after the other: whole lists for a scorer of lists.

    `ids` is the list of each row; None means that all are one list.
    """
    if not scores_lists(scorer):
        yield from pieces(rows)
    elif ids is None:
        yield slice(0, rows)
    elif rows:
        groups = rows_of_lists(ids)
        yield from (members for members, _ in lists_in_blocks(groups, PIECE, len(groups)))


def rows_of_lists(ids: IntArray) -> list[IntArray]:
    """Return the rows of each list, given the list of each row."""
    order = np.argsort(ids, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(ids[order])) + 1)


def _one(
    loss: Callable[..., Tensor], scores: Tensor, y: Tensor, of_rows: Mapping[str, Tensor], *, derive: bool
) -> tuple[Tensor, Tensor]:
    leaf = scores.detach().requires_grad_(derive)
    with torch.set_grad_enabled(derive):
        value = loss(leaf, y, **of_rows)
    if value.ndim != 0:
        raise ValueError(f"loss must give one number, got shape {tuple(value.shape)}; set its reduction to 'mean'")
    if not value.requires_grad:
        return value, torch.zeros_like(leaf)
    return value.detach(), torch.autograd.grad(value, leaf)[0]


def _checked_ids(qid: ArrayLike, rows: int) -> IntArray:
    ids = as_array("qid", _plain(qid))
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"qid must be integers, got {ids.dtype}")
    if ids.shape != (rows,):
        raise ValueError(f"qid must have one id per row of X ({rows}), got shape {ids.shape}")
    return ids.astype(np.int64)


def item_batches(labels: NDArray[np.float64], size: int, generator: np.random.Generator) -> list[IntArray]:
    """Deal the items of one list into batches of about `size` with about the same share of every class.

    A batch that would have a single class (if a class has fewer items than there are batches) gets one random item of
    another class as well.
    """
    count = -(-len(labels) // size)
    order = generator.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    batches = [order[start::count] for start in generator.permutation(count)]
    for at, batch in enumerate(batches):
        if labels_agree(labels[batch], None):
            others = np.flatnonzero(labels != labels[batch[0]])
            batches[at] = np.append(batch, generator.choice(others))
    return batches


def list_batches(groups: list[IntArray], size: int, generator: np.random.Generator) -> list[IntArray]:
    """Deal whole lists, given by their rows, into batches of about `size` lists; return the rows of each batch.

    The lists in their order, from a random one on, are cut into runs of as many lists as there are batches, and each
    batch gets one of every run, at random. Lists in a batch keep their order.
    """
    count = -(-len(groups) // size)
    dealt = np.concatenate([generator.permutation(count) for _ in range(0, len(groups), count)])[: len(groups)]
    batch = np.roll(dealt, generator.integers(len(groups)))
    order, ends = np.argsort(batch, kind="stable"), np.cumsum(np.bincount(batch, minlength=count))[:-1]
    return [np.concatenate([groups[at] for at in members]) for members in np.split(order, ends)]


def _plain(values: ArrayLike) -> ArrayLike:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
