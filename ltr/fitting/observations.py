"""The observations of a fit: features, lists and mini-batches.

*Mini-batches* consist of items, with every class in each, or of whole lists. The mean over the positive-negative pairs
of a batch of items estimates the mean over all pairs without bias. Losses that are not means over pairs (the P-norm
push) are estimated with a bias that vanishes as batches grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ltr.checks import PIECE, as_matrix, pieces
from ltr.data.dataset import labels_agree
from ltr.fitting.scoring import scores_lists

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
        source = as_matrix("X", plain(X), rows=1)
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


def plain(values: ArrayLike) -> ArrayLike:
    """Return a tensor as an array, and anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
