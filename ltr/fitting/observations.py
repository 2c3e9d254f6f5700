"""The observations of a fit, and the processes that share them: features, labels and lists, losses, mini-batches.

*Mini-batches* consist of items, with every class in each, or of whole lists. The mean over the positive-negative pairs
of a batch of items estimates the mean over all pairs without bias, because each class is sampled uniformly. Losses that
are not means over pairs (the P-norm push) are estimated with a bias that vanishes as batches grow.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
import torch.distributed as dist
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
"""Largest number of pieces that work is cut into; more processes than that would be idle."""


class Team:
    """The processes of torch's default group, with the same data and the same steps; or one process alone.

    Results do not depend on the number of processes, to the last bit. The group only adds up numbers that are 0 in all
    processes but one. Methods raise ConnectionError when another process has ended.

    Args:
        alone: whether to ignore the group.

    Attributes:
        size: number of processes.
        rank: index of this process, from 0.
    """

    def __init__(self, *, alone: bool = False) -> None:
        together = not alone and dist.is_available() and dist.is_initialized()
        self.size = dist.get_world_size() if together else 1
        self.rank = dist.get_rank() if together else 0

    def owns(self, block: int, blocks: int) -> bool:
        """Return whether a block belongs to this process's share; neighbouring blocks go to the same process."""
        return block * self.size // max(blocks, self.size) == self.rank

    def gather(self, tensor: Tensor) -> None:
        """Assemble in place a tensor of which each process has one part, and 0 in the parts of the others."""
        if self.size > 1:
            with others():
                dist.all_reduce(tensor)

    def follow(self, tensor: Tensor) -> None:
        """Overwrite a tensor with that of the first process."""
        if self.size > 1:
            with others():
                dist.broadcast(tensor, 0)

    def agreed(self, value: float, device: torch.device) -> float:
        """Return the value of the first process, because rounding may differ between devices."""
        if self.size == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=device)
        self.follow(shared)
        return float(shared)

    def check_same(self, arrays: Sequence[NDArray[np.generic] | None], device: torch.device) -> None:
        """Raise ValueError unless all processes have the same arrays."""
        if self.size == 1:
            return
        given = [np.ascontiguousarray(array) for array in arrays if array is not None]
        own = zlib.crc32(b"".join(repr(array.shape).encode() + array.tobytes() for array in given))
        sums = torch.zeros(self.size, dtype=torch.int64, device=device)
        sums[self.rank] = own
        self.gather(sums)
        if bool((sums != own).any()):
            raise ValueError(
                "X, y and qid must be the same in every process of torch's default group, because each takes all rows "
                "and works on a share of them; got different ones"
            )


def blocks_of(rows: int, chunk: int) -> list[list[slice]]:
    """Cut rows into chunks and group neighbouring chunks into at most 16 blocks, whatever the number of processes.

    Examples:
        >>> blocks_of(5, 2)
        [[slice(0, 2, None)], [slice(2, 4, None)], [slice(4, 5, None)]]
    """
    chunks = [slice(begin, min(begin + chunk, rows)) for begin in range(0, rows, chunk)]
    count = min(len(chunks), BLOCKS)
    return [chunks[len(chunks) * at // count : len(chunks) * (at + 1) // count] for at in range(count)]


@contextlib.contextmanager
def others() -> Iterator[None]:
    """Return a context for communication that raises ConnectionError when another process does not answer."""
    try:
        yield
    except RuntimeError as error:
        raise ConnectionError(f"a process that shares the fit has ended, or cannot be reached ({error})") from error


class Rows:
    """Observations, (n, d), checked to be finite, in the form in which a scorer takes them.

    Args:
        X: observations, of any type of numbers.
        dtype: type of the scorer's parameters.
        device: device of the scorer.
        resident: whether all rows are kept on the device in that form. Otherwise X is not copied: a memory-mapped array
            (``numpy.load(..., mmap_mode="r")``) is read from disk whenever it is needed.
        scale: what is applied to rows of float64 first, piece by piece; None for nothing.
        chosen: numbers of the rows of X that are meant, (n,); None for all.

    Attributes:
        ends: the first and the last row of X.
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
        self._dtype, self._device, self._scale, self._chosen = dtype, device, scale, chosen
        source = as_matrix("X", _plain(X))
        self._source: NDArray[np.generic] | Tensor = source
        self._rows = len(source) if chosen is None else len(chosen)
        self.ends = np.concatenate([source[:1], source[-1:]])
        if resident:
            kept = torch.empty(self._rows, source.shape[1], dtype=dtype, device=device)
            for piece in pieces(self._rows):
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
        numbers = np.arange(self._rows)[rows] if isinstance(rows, slice) else rows
        return torch.cat([self._copied(numbers[piece]) for piece in pieces(len(numbers))])

    def _copied(self, rows: slice | NDArray[np.int64]) -> Tensor:
        assert not isinstance(self._source, Tensor)
        given = self._source[rows if self._chosen is None else self._chosen[rows]]
        if self._scale is not None:
            return self._scale(torch.tensor(given, dtype=torch.float64)).to(self._device, self._dtype)
        # sums may depend on memory alignment, and torch aligns its own memory alike in every process
        return torch.tensor(given, dtype=self._dtype).to(self._device)


class Labelled:
    """The labels y, (n,), of one list of observations, or of the lists that qid names, and their weights if any.

    The loss of many lists is a sum or a mean over them, so processes can share it: each takes some blocks of lists,
    which have about `chunk` rows.

    Weights of rows of several lists weigh the lists and the rows in each, as `ltr.lists` says. The mean over some lists
    is then ``sum of V_q L_q / (number of these lists * mean of V_q over all lists)``, which for all lists is the
    weighted mean, and for those of a mini-batch estimates it without bias. A loss of an unknown kind gets the weights
    of rows as they are.

    Attributes:
        labels: the labels y.
        ids: the list of each observation, None for a single list.
        weight: the weight of each observation, None where all count alike.
        list_weight: the weight of each observation's list, None where all lists count alike.
        groups: the rows of each list, None for a single list.
    """

    def __init__(
        self,
        rows: int,
        y: ArrayLike,
        qid: ArrayLike | None,
        weight: ArrayLike | None,
        *,
        dtype: torch.dtype,
        device: torch.device,
        chunk: int,
        team: Team,
    ) -> None:
        self.labels = _checked_labels(y, rows)
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
        self._device, self._chunk, self._team = device, chunk, team
        self._blocks = None if self.groups is None else lists_in_blocks(self.groups, chunk)

    def loss(
        self, loss: Callable[..., Tensor], scores: Tensor, rows: IntArray | None = None, *, derive: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of the scores of some rows, or of all, and its derivative by each score, 0 unless `derive`.

        The loss is called as ``loss(scores, labels)``, with ``qid=``, ``weight=`` and ``list_weight=`` if there are
        any, and must return one number. `rows` has whole lists one after the other.
        """
        if not bool(torch.isfinite(scores).all()):
            # losses reject such scores; the caller decides how to handle a point out of range
            return scores.new_tensor(torch.nan), torch.full_like(scores, torch.nan)
        reduction, blocks = _reduction(loss), self._blocks
        given = {"qid": self._qid, "weight": self._weight, "list_weight": self._list_weight}
        if reduction is None:
            given = {"qid": self._qid, "weight": self._rows_weight}
        of_rows = {name: values for name, values in given.items() if values is not None}
        y = self._y
        if rows is not None:
            index = torch.from_numpy(rows).to(self._device)
            y, of_rows = y[index], {name: values[index] for name, values in of_rows.items()}
            blocks = None if self.ids is None else lists_in_blocks(rows_of_lists(self.ids[rows]), self._chunk)
        if blocks is None or reduction is None or (len(blocks) == 1 and self._list_weight is None):
            return _one(loss, scores, y, of_rows, derive=derive)
        lists = sum(count for _, count in blocks)
        values, slopes = scores.new_zeros(len(blocks)), torch.zeros_like(scores)
        for block, (members, count) in enumerate(blocks):
            if self._team.owns(block, len(blocks)):
                at = torch.from_numpy(members).to(self._device)
                own = {name: one[at] for name, one in of_rows.items()}
                value, slope = _one(loss, scores[at], y[at], own, derive=derive)
                factor = count * self._weight_of(own) / lists if reduction == "mean" else 1.0
                values[block], slopes[at] = factor * value, factor * slope
        together = torch.cat([values, slopes])
        self._team.gather(together)
        return together[: len(blocks)].sum(), together[len(blocks) :]

    def _weight_of(self, of_rows: Mapping[str, Tensor]) -> float:
        """Return the mean weight of some lists, over that of all lists."""
        if "list_weight" not in of_rows or not self._mean_weight:
            return 1.0
        number = numbered(of_rows["qid"])
        lists = of_rows["list_weight"].new_zeros(int(number.max()) + 1).index_copy(0, number, of_rows["list_weight"])
        return float(lists.double().mean()) / self._mean_weight


def lists_in_blocks(groups: Sequence[IntArray], chunk: int, most: int = BLOCKS) -> list[tuple[IntArray, int]]:
    """Group lists, given by their rows, into blocks of about equal size, whatever the number of processes.

    Return at most so many blocks, of `chunk` rows or more if there are enough: the rows of each, list after list, and
    its number of lists.

    Examples:
        >>> blocks = lists_in_blocks(rows_of_lists(np.array([5, 7, 5, 7, 9])), 2)
        >>> [(rows.tolist(), count) for rows, count in blocks]
        [([0, 2], 1), ([1, 3, 4], 2)]
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
    """Yield pieces of the rows that a scorer scores one after the other: whole lists for a scorer of lists.

    Args:
        scorer: the scorer.
        rows: number of rows.
        ids: the list of each row, (n,); None means that all are one list.
    """
    if not scores_lists(scorer):
        yield from pieces(rows)
    elif ids is None:
        yield slice(0, rows)
    else:
        groups = rows_of_lists(ids)
        yield from (members for members, _ in lists_in_blocks(groups, PIECE, len(groups)))


def rows_of_lists(ids: IntArray) -> list[IntArray]:
    """Return the rows of each list, given the list of each row."""
    _, group = np.unique(ids, return_inverse=True)
    return np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])


def _reduction(loss: Callable[..., Tensor]) -> str | None:
    """Return how a loss, or the loss whose method this is, reduces the values of lists; None if that is unknown."""
    owner = getattr(loss, "__self__", loss)
    return owner.reduction if isinstance(owner, RankingLoss | HuberHinge) else None


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


def _checked_labels(y: ArrayLike, rows: int) -> NDArray[np.float64]:
    labels = as_numbers("y", _plain(y)).copy()
    if labels.shape != (rows,):
        raise ValueError(f"y must have one label per row of X ({rows}), got shape {labels.shape}")
    if not np.isfinite(labels).all():
        raise ValueError(f"y must be finite, got {labels[~np.isfinite(labels)][0]}")
    return labels


def _checked_ids(qid: ArrayLike, rows: int) -> IntArray:
    ids = as_array("qid", _plain(qid))
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"qid must be integers, got {ids.dtype}")
    if ids.shape != (rows,):
        raise ValueError(f"qid must have one id per row of X ({rows}), got shape {ids.shape}")
    return ids.astype(np.int64)


def item_batches(labels: NDArray[np.float64], size: int, generator: np.random.Generator) -> list[IntArray]:
    """Deal the items of one list into batches of about `size` with about the same share of every class.

    Items in random order within their class are dealt out in turn. A batch that would have a single class
    (if a class has fewer items than there are batches) gets one random item of another class as well.

    Examples:
        >>> batches = item_batches(np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), 3, np.random.default_rng(0))
        >>> [sorted(b.tolist()) for b in batches]
        [[0, 1, 2], [3, 4, 5]]
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
    """Shuffle whole lists, given by their rows, into batches of about `size` lists; return the rows of each batch.

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
