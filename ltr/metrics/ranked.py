"""Lists sorted once: what every metric is computed from.

Items are in pessimistic order: score descending, of tied items the one of lower label first. Every treatment of ties
is a weight for each item, given a weight b[position] of each position:

* ``resolved``: the weight of the item's own position: tied negatives stand above tied positives;
* ``optimistic``: the same with each tie group turned over: tied positives stand above tied negatives;
* ``average``: the mean weight of its tie group: the expectation over a random order of ties;
* ``subrank``: the weight of the last position of its tie group: it beats only what scores less.

Items of label 0 add nothing to any metric but the places they take. So of n items only the relevant ones are kept,
those with a label above 0, each with its position and the ends of its tie group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ltr.lists import as_flat_lists
from ltr.metrics.sorting import sort_items, sorted_values
from ltr.ranks import GainName, check_gain

__all__ = [
    "RankedLists",
    "TieGroups",
    "Ties",
    "Weight",
    "check_ties",
    "offsets",
    "positions_within",
    "rank_lists",
    "running_product",
    "segment_sum",
]

Ties = Literal["resolved", "subrank", "average", "optimistic"]
"""Treatments of ties, described in the module's text."""
TIES: tuple[Ties, ...] = ("resolved", "subrank", "average", "optimistic")

_TOO_LARGE = 1024  # 2 to this power is beyond float64
_BLOCK = 128  # numbers that are added up at once

Weight = Callable[[Tensor, Tensor], Tensor]
"""A weight for each position, given positions and the number of items of the list that each is in."""


def check_ties(ties: str) -> None:
    """Check the name of a treatment of ties.

    Raises:
        ValueError: an unknown one.
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}, got {ties!r}")


@dataclass(frozen=True, eq=False)
class TieGroups:
    """Tie groups that hold a relevant item, list by list from the top.

    Attributes:
        number: the group of each relevant item, (relevant,).
        relevant: relevant items of each group, (groups,).
        start: first position of each group, (groups,).
        size: items of each group, (groups,).
        owner: the list of each group, (groups,).
    """

    number: Tensor
    relevant: Tensor
    start: Tensor
    size: Tensor
    owner: Tensor

    @cached_property
    def positions(self) -> Tensor:
        """All positions of all groups one after the other, (sum of size,)."""
        return positions_within(self.size) + self.start.repeat_interleave(self.size)


@dataclass(frozen=True, eq=False)
class RankedLists:
    """Sorted lists; positions count from 0 at the top of each list.

    Attributes:
        batch: the shape that one value a list takes.
        n: items of each list, int64, (lists,).
        relevant: items with a label > 0 of each list, int64, (lists,).
        grade: the number of the label of these items, list by list in pessimistic order, (sum of relevant,).
        levels: float64, the labels by number; the first is 0.
        position: the positions of these items in their lists, (sum of relevant,).
        start: first position of the tie group of each, same shape.
        end: last position of the tie group of each, same shape.
        tied: whether any two scores of a list are equal.
    """

    batch: torch.Size
    n: Tensor
    relevant: Tensor
    grade: Tensor
    levels: Tensor
    position: Tensor
    start: Tensor
    end: Tensor
    tied: bool

    @property
    def labels(self) -> Tensor:
        """The label of each relevant item, float64."""
        return self.levels[self.grade]

    def gains(self, gain: GainName) -> Tensor:
        """The gain of each relevant item, float64."""
        if check_gain(gain) == "linear":
            return self.labels
        if len(self.levels) and float(self.levels[-1]) >= _TOO_LARGE:
            raise ValueError(f"labels must be below {_TOO_LARGE} for gain 'exp2', got {float(self.levels[-1]):g}")
        # by numpy: where in a tensor a number stands can change the last bit of torch's exp2
        return (torch.from_numpy(np.exp2(self.levels.numpy(force=True)) - 1.0)).to(self.levels.device)[self.grade]

    @property
    def binary(self) -> bool:
        """Whether all labels are 0 or 1."""
        return len(self.levels) <= 2 and self.levels.tolist() in ([0.0], [0.0, 1.0])

    @cached_property
    def owner(self) -> Tensor:
        """The list of each relevant item."""
        return torch.arange(len(self.n), device=self.n.device).repeat_interleave(self.relevant)

    @cached_property
    def beginning(self) -> Tensor:
        """Where the relevant items of each list begin."""
        return offsets(self.relevant)

    @cached_property
    def groups(self) -> TieGroups:
        """The tie groups that hold a relevant item."""
        fresh = torch.ones_like(self.start, dtype=torch.bool)
        fresh[1:] = (self.start[1:] != self.start[:-1]) | (self.owner[1:] != self.owner[:-1])
        first = fresh.nonzero().squeeze(-1)
        relevant = torch.diff(first, append=first.new_tensor([len(fresh)]))
        size = self.end[first] - self.start[first] + 1
        return TieGroups(fresh.cumsum(0) - 1, relevant, self.start[first], size, self.owner[first])

    @cached_property
    def turned_over(self) -> RankedLists:
        """The lists in optimistic order: within each tie group labels descend from its first position."""
        if not self.tied:
            return self
        groups = self.groups
        inside = positions_within(groups.relevant)
        last = (groups.relevant.cumsum(0) - 1)[groups.number]
        return replace(self, grade=self.grade[last - inside], position=self.start + inside)

    @cached_property
    def ideal(self) -> RankedLists:
        """The lists in descending order of their labels, without ties."""
        grade, place = self.grade, positions_within(self.relevant)
        if len(self.levels) > 2:
            bits = (len(self.levels) - 1).bit_length()
            keys = (self.owner << bits) | (len(self.levels) - 1 - grade)
            grade = len(self.levels) - 1 - (sorted_values(keys) & ((1 << bits) - 1))
        return replace(self, grade=grade, position=place, start=place, end=place, tied=False)

    def ordered(self, ties: Ties) -> RankedLists:
        """The lists in the order that `ties` supposes."""
        return self.turned_over if ties == "optimistic" else self

    def weights(self, weight: Weight, ties: Ties) -> Tensor:
        """What each relevant item receives under `ties`, in the order of ``ordered(ties)``: (sum of relevant,)."""
        if ties == "average" and self.tied:
            groups = self.groups
            n = self.n[groups.owner].repeat_interleave(groups.size)
            return (segment_sum(weight(groups.positions, n), groups.size) / groups.size)[groups.number]
        position = self.end if ties == "subrank" else self.ordered(ties).position
        return weight(position, self.n[self.owner])

    def total(self, values: Tensor) -> Tensor:
        """The sum over the relevant items of each list, (lists,)."""
        return segment_sum(values, self.relevant)

    def reshape(self, values: Tensor) -> Tensor:
        """Per-list values in the batch shape: 0-D for a single list."""
        return values.reshape(self.batch)


def rank_lists(scores: Tensor, labels: Tensor, *, mask: Tensor | None = None, qid: Tensor | None = None) -> RankedLists:
    """Check the inputs of a metric and sort its lists.

    Time and memory are those of sorting the items, whatever the lengths of the lists. Half-precision scores are
    compared as they are; labels must be nonnegative.

    Raises:
        TypeError, ValueError: what `ltr.lists.as_lists` refuses, and a negative label.

    Examples:
        >>> ranked = rank_lists(torch.tensor([3.0, 1.0, 2.0, 2.0]), torch.tensor([0, 2, 1, 0]))
        >>> ranked.labels.tolist(), ranked.position.tolist(), ranked.start.tolist(), ranked.end.tolist()
        ([1.0, 2.0], [2, 3], [1, 3], [2, 3])
    """
    lists = as_flat_lists(scores, labels, mask=mask, qid=qid)
    items = sort_items(lists)
    first = offsets(lists.n)
    relevant = torch.diff(torch.searchsorted(items.place, torch.cat((first, lists.n.sum().reshape(1)))))
    own = first.repeat_interleave(relevant)
    position = items.place - own
    start, end = (items.start - own, items.end - own) if items.tied else (position, position)
    return RankedLists(lists.batch, lists.n, relevant, items.grade, items.levels, position, start, end, items.tied)


# Sums and products over the parts of a flat tensor: what stands beside a part never changes its value.


def offsets(lengths: Tensor) -> Tensor:
    """Return where each segment begins.

    Examples:
        >>> offsets(torch.tensor([2, 0, 3])).tolist()
        [0, 2, 2]
    """
    return lengths.cumsum(0) - lengths


def positions_within(lengths: Tensor) -> Tensor:
    """Return 0, 1, ... within each segment.

    Examples:
        >>> positions_within(torch.tensor([2, 0, 3])).tolist()
        [0, 1, 0, 1, 2]
    """
    everywhere = torch.arange(int(lengths.sum()), device=lengths.device)
    return everywhere - offsets(lengths).repeat_interleave(lengths)


def segment_sum(values: Tensor, lengths: Tensor) -> Tensor:
    """Return the sum of each segment, 0 for an empty one.

    Integers are exact. Floats are summed in blocks and blocks of blocks, counted from the segment's beginning: the
    error stays near one rounding for any length, and the result is the same bits whatever other segments there are.

    Args:
        values: all segments one after the other, (items,).
        lengths: int64, (segments,).

    Examples:
        >>> segment_sum(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([2, 0, 1])).tolist()
        [3.0, 0.0, 4.0]
    """
    if not values.is_floating_point():
        total = torch.cat((values.new_zeros(1), values.cumsum(0)))
        ends = lengths.cumsum(0)
        return total[ends] - total[ends - lengths]
    while lengths.numel() and int(lengths.max()) > _BLOCK:
        blocks = (lengths + _BLOCK - 1) // _BLOCK
        sizes = torch.full((int(blocks.sum()),), _BLOCK, device=values.device)
        some = blocks > 0
        sizes[blocks.cumsum(0)[some] - 1] = (lengths - (blocks - 1) * _BLOCK)[some]
        values, lengths = torch.segment_reduce(values, "sum", lengths=sizes, unsafe=True), blocks
    return torch.segment_reduce(values, "sum", lengths=lengths, unsafe=True)


def running_product(factors: Tensor, lengths: Tensor) -> Tensor:
    """Return the product of each segment's factors up to and including each place.

    Examples:
        >>> running_product(torch.tensor([2.0, 3.0, 5.0, 7.0]), torch.tensor([3, 1])).tolist()
        [2.0, 6.0, 30.0, 7.0]
    """
    place = positions_within(lengths)
    step, longest = 1, int(lengths.max()) if lengths.numel() else 0
    while step < longest:
        before = torch.where(place >= step, factors.roll(step), 1.0)
        factors, step = factors * before, 2 * step
    return factors
