"""Sorted lists, from which every metric is computed.

Items are in pessimistic order: score descending, and of tied items the one with the lower label first. Given a weight
b[position] of each position, every treatment of ties gives each item a weight:

* ``resolved``: that of the item's own position, so tied negatives rank above tied positives;
* ``optimistic``: the same with the order of each tie group reversed, so tied positives rank above tied negatives;
* ``average``: the mean weight of its tie group, which is the expectation over a random order of ties;
* ``subrank``: that of the last position of its tie group, so it beats only items with a lower score.

Only relevant items are kept, those with a label above 0, each with its position and those of the ends of its tie group.

*Sorting.* List, score and label of each item are packed into one integer, its key, and the keys of all lists are sorted
at once, on the CPU. Scores keep their order exactly: a float32 is its 32 bits, a float64 its 64 bits minus the range
around zero in which there is no score. If that leaves too few bits for list and label, scores are first replaced by
their ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ltr.checks import one_of
from ltr.lists import FlatLists, Values, as_flat_lists, as_tensors, check_nonnegative, unique
from ltr.native import count_relevant, find_relevant, order_grades, pack_keys, score_range
from ltr.ranks import GainName

Ties = Literal["resolved", "subrank", "average", "optimistic"]
"""How tied scores are treated; `ltr.metrics.ranked` describes each treatment."""

_TOO_LARGE = 1024  # 2 to this power exceeds float64
_BLOCK = 128  # numbers that are added up at once
_ROOM = 63  # bits of a nonnegative int64
_PADDED = 4  # items of a padded matrix for each real one, up to which sorting by rows pays
_SMALL_LABELS = 2**16  # integer labels below this serve as their own numbers

Weight = Callable[[Tensor, Tensor], Tensor]
"""Function of positions and of the lengths of their lists that returns a weight for each position."""


def check_ties(ties: Ties) -> Ties:
    """Return a treatment of ties, or raise ValueError for an unknown one."""
    return one_of("ties", ties, get_args(Ties))


@dataclass(frozen=True, eq=False)
class TieGroups:
    """The tie groups with a relevant item, list by list from the top."""

    number: Tensor  # the group of each relevant item, (relevant,)
    relevant: Tensor  # the number of relevant items in each group, (groups,)
    start: Tensor  # the first position of each group, (groups,)
    size: Tensor  # the number of items in each group, (groups,)
    owner: Tensor  # the list of each group, (groups,)

    @cached_property
    def positions(self) -> Tensor:
        """The positions of all groups, one group after the other, (sum of size,)."""
        return positions_within(self.size) + self.start.repeat_interleave(self.size)


@dataclass(frozen=True, eq=False)
class RankedLists:
    """Sorted lists, with one number per list or per relevant item; positions count from 0 at the top of a list."""

    batch: torch.Size  # the shape of one value per list
    n: Tensor  # the length of each list, int64, (lists,)
    relevant: Tensor  # the number of relevant items in each list, int64, (lists,)
    grade: Tensor  # the number of each relevant item's label, list by list in pessimistic order, (sum of relevant,)
    levels: Tensor  # the labels by number, float64; the first is 0
    position: Tensor  # of each relevant item in its list, (sum of relevant,)
    start: Tensor  # the first position of its tie group
    end: Tensor  # the last position of that group
    tied: bool  # whether any two scores of a list are equal
    nonrelevant: Tensor  # the number of judged items of label 0 of each list, also outside it, int64, (lists,)
    missed: Tensor | None = None  # the number of relevant items outside each list; None where there are none
    missed_grade: Tensor | None = None  # the numbers of their labels, list by list
    judged_only: RankedLists | None = None  # without unjudged items; None where all are judged

    @property
    def all_relevant(self) -> Tensor:
        """The number of relevant items of each list, in it or outside, int64, (lists,)."""
        return self.relevant if self.missed is None else self.relevant + self.missed

    @property
    def labels(self) -> Tensor:
        """The label of each relevant item, float64."""
        return self.levels[self.grade]

    def gains(self, gain: GainName) -> Tensor:
        """Return the gain of each relevant item, float64."""
        if gain == "linear":
            return self.labels
        if len(self.levels) and float(self.levels[-1]) >= _TOO_LARGE:
            rule = f"must be below {_TOO_LARGE} for gain 'exp2', got {float(self.levels[-1]):g}"
            raise ValueError(f"labels {rule}: take gain 'linear' for them")
        # by numpy: the last bit of torch's exp2 can depend on the place of a number in its tensor
        return torch.from_numpy(np.exp2(self.levels.numpy()) - 1.0)[self.grade]

    @property
    def binary(self) -> bool:
        """Whether all labels are 0 or 1."""
        return len(self.levels) <= 2 and self.levels.tolist() in ([0.0], [0.0, 1.0])

    @cached_property
    def owner(self) -> Tensor:
        """The list of each relevant item."""
        return torch.arange(len(self.n)).repeat_interleave(self.relevant)

    @cached_property
    def beginning(self) -> Tensor:
        """The place among all relevant items at which those of each list begin."""
        return self.relevant.cumsum(0) - self.relevant

    @cached_property
    def groups(self) -> TieGroups:
        """The tie groups with a relevant item."""
        fresh = torch.ones_like(self.start, dtype=torch.bool)
        fresh[1:] = (self.start[1:] != self.start[:-1]) | (self.owner[1:] != self.owner[:-1])
        first = fresh.nonzero().squeeze(-1)
        relevant = torch.diff(first, append=first.new_tensor([len(fresh)]))
        size = self.end[first] - self.start[first] + 1
        return TieGroups(fresh.cumsum(0) - 1, relevant, self.start[first], size, self.owner[first])

    @cached_property
    def with_ties_reversed(self) -> RankedLists:
        """The lists in optimistic order: labels descend within each tie group."""
        if not self.tied:
            return self
        groups = self.groups
        inside = positions_within(groups.relevant)
        last = (groups.relevant.cumsum(0) - 1)[groups.number]
        return replace(self, grade=self.grade[last - inside], position=self.start + inside)

    @cached_property
    def ideal(self) -> RankedLists:
        """The lists in descending order of their labels, without ties; relevant items from outside are in them."""
        grade, relevant = self.grade, self.all_relevant
        if self.missed is not None and self.missed_grade is not None:
            grade = torch.cat((grade, self.missed_grade))
            owner = torch.cat((self.owner, torch.arange(len(self.n)).repeat_interleave(self.missed)))
            grade = grade[torch.argsort(owner, stable=True)]
        ordered, place = torch.empty((2, len(grade)), dtype=torch.int64)
        order_grades(grade.numpy(), relevant.numpy(), len(self.levels), ordered.numpy(), place.numpy())
        n = torch.maximum(self.n, relevant)
        order = replace(self, position=place, start=place, end=place, tied=False)
        return replace(order, n=n, relevant=relevant, grade=ordered, missed=None)

    def ordered(self, ties: Ties) -> RankedLists:
        """Return the lists in the order that a treatment of ties assumes."""
        return self.with_ties_reversed if ties == "optimistic" else self

    def positions(self, ties: Ties) -> Tensor:
        """Return the position of each relevant item, in the order of ``ordered(ties)``; not for ``average``."""
        return self.end if ties == "subrank" else self.ordered(ties).position

    def weights(self, weight: Weight, ties: Ties, *, per_list: Tensor | None = None) -> Tensor:
        """Return the weight of each relevant item under a treatment of ties, in the order of ``ordered(ties)``.

        It is a function of positions and of a number of each list, by default the length.
        """
        given = self.n if per_list is None else per_list
        if ties == "average" and self.tied:
            groups = self.groups
            n = given[groups.owner].repeat_interleave(groups.size)
            return (segment_sum(weight(groups.positions, n), groups.size) / groups.size)[groups.number]
        position = self.positions(ties)
        # one number for all lists needs no owners
        same = len(given) > 0 and bool((given == given[0]).all())
        return weight(position, given[:1].expand(len(position)) if same else given[self.owner])

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over the relevant items of each list, (lists,)."""
        return segment_sum(values, self.relevant)


def rank_lists(
    scores: Values,
    labels: Values,
    *,
    mask: Values | None = None,
    qid: Values | None = None,
    outside: Values | None = None,
    judged: Values | None = None,
) -> RankedLists:
    """Check the inputs of a metric, those of `ltr.metrics.ListOptions`, and sort its lists.

    Raises TypeError or ValueError for inputs that `ltr.lists.as_lists` rejects, and a negative label.

    Examples:
        >>> ranked = rank_lists(torch.tensor([3.0, 1.0, 2.0, 2.0]), torch.tensor([0, 2, 1, 0]))
        >>> ranked.labels.tolist(), ranked.position.tolist(), ranked.start.tolist(), ranked.end.tolist()
        ([1.0, 2.0], [2, 3], [1, 3], [2, 3])
    """
    given = {"labels": labels, "mask": mask, "qid": qid, "outside": outside, "judged": judged}
    s, y, real, ids, *flags = (None if x is None else x.cpu() for x in as_tensors(scores, **given))
    assert s is not None
    assert y is not None
    lists = as_flat_lists(s, y, mask=real, qid=ids)
    inside, known = (_flags(name, x, s, real) for name, x in zip(("outside", "judged"), flags, strict=True))
    judged_only = None
    if known is not None:
        if bool(((lists.labels > 0) & ~known).any()):
            raise ValueError("judged must be True for every item with a label above 0")
        some = None if inside is None else ~inside[known]
        judged_only = _ranked(_only(lists, known), some, None)
    return _ranked(lists, None if inside is None else ~inside, judged_only)


def _flags(name: str, values: Tensor | None, scores: Tensor, mask: Tensor | None) -> Tensor | None:
    """Return a boolean for each real item."""
    if values is None:
        return None
    if values.dtype != torch.bool or values.shape != scores.shape:
        what = f"{values.dtype} {tuple(values.shape)}"
        raise ValueError(f"{name} must be boolean, of the shape of scores {tuple(scores.shape)}, got {what}")
    return values.reshape(-1) if mask is None else values[mask]


def _only(lists: FlatLists, keep: Tensor) -> FlatLists:
    number = lists.number[keep]
    n = torch.bincount(number, minlength=len(lists.n))
    return FlatLists(lists.scores[keep], lists.labels[keep], number, n, lists.batch)


def _ranked(every: FlatLists, inside: Tensor | None, judged_only: RankedLists | None) -> RankedLists:
    """Sort the items that are in the lists, and count the others."""
    labels, levels = _label_numbers(every.labels)
    lists, missed, missed_grade = every, None, None
    if inside is not None:
        lists = _only(every, inside)
        out = ~inside & (labels > 0)
        owner, missed_grade = every.number[out], labels[out].long()
        missed_grade = missed_grade[torch.argsort(owner, stable=True)]
        missed = torch.bincount(owner, minlength=len(every.n))
        labels = labels[inside]
    label_bits = (len(levels) - 1).bit_length()
    by = _sorted_keys(lists, labels.long(), label_bits).numpy(), label_bits, lists.n.numpy()
    relevant = torch.empty_like(lists.n)
    total, tied = count_relevant(*by, relevant.numpy())
    grade, position, *ends = torch.empty((4 if tied else 2, total), dtype=torch.int64)
    start, end = ends or (position, position)
    find_relevant(*by, *(x.numpy() for x in (grade, position, start, end)))
    return RankedLists(
        batch=lists.batch,
        n=lists.n,
        relevant=relevant,
        grade=grade,
        levels=levels,
        position=position,
        start=start,
        end=end,
        tied=tied,
        nonrelevant=every.n - (relevant if missed is None else relevant + missed),
        missed=missed,
        missed_grade=missed_grade,
        judged_only=judged_only,
    )


def _sorted_keys(lists: FlatLists, labels: Tensor, label_bits: int) -> Tensor:
    """Return the sorted keys: list by list, each from its top, items of equal score by ascending label.

    The lowest bits of a key are the number of its label.
    """
    list_bits = max(len(lists.n) - 1, 0).bit_length()
    numbered = _score_numbers(lists.scores.contiguous(), _ROOM - list_bits - label_bits)
    if list_bits + numbered[-1] + label_bits <= _ROOM:
        keys = _packed(numbered, lists.number, labels, label_bits)
    else:
        keys = (unique(_packed(numbered, lists.number, torch.zeros_like(labels), 0))[1] << label_bits) | labels
    return _sorted_by_list(keys, lists.number, lists.n)


def _sorted_by_list(keys: Tensor, number: Tensor, n: Tensor) -> Tensor:
    """Return keys in ascending order, which is list by list; they may be sorted in place.

    Where the items of each list stand together, a padded matrix of the lists is sorted by rows: short rows are sorted
    many times as fast as one long one.
    """
    longest = int(n.max()) if len(n) else 0
    padded = len(n) > 1 and len(n) * longest <= _PADDED * len(keys)
    if not padded or not bool((number[1:] >= number[:-1]).all()):
        keys.numpy().sort()  # much faster than torch's sort
        return keys
    if len(n) * longest == len(keys):
        keys.numpy().reshape(len(n), longest).sort(axis=-1)
        return keys
    there = torch.arange(longest) < n[:, None]
    rows = keys.new_full(there.shape, torch.iinfo(keys.dtype).max)
    rows[there] = keys
    rows.numpy().sort(axis=-1)
    return rows[there]


def _label_numbers(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of each label, 0 for label 0, and the labels by number as float64."""
    if labels.dtype == torch.bool:
        labels = labels.to(torch.uint8)
    low, high = (float(end) for end in labels.aminmax()) if labels.numel() else (0.0, 0.0)
    check_nonnegative(low)
    if high < _SMALL_LABELS and (not labels.is_floating_point() or bool((labels == labels.floor()).all())):
        return labels, torch.arange(int(high) + 1, dtype=torch.float64)
    levels, number = unique(torch.cat((labels.new_zeros(1), labels)))
    return number[1:], levels.double()


def _score_numbers(scores: Tensor, room: int) -> tuple[Tensor, int, int, int]:
    """Return what numbers scores, 0 for the highest, where `room` bits are left for a number.

    These are integers x, or floats whose bits are x in the order of the floats; the highest x; and the `gap`: the
    number of a score is ``highest - x`` without the part of x that is at most `gap` in size, where there is no score.
    Last come the bits of a number. It is of the bits of the scores where these suffice, of their ranks elsewhere.
    """
    if not scores.numel():
        return scores, 0, 0, 0
    low, high, least = score_range(scores.numpy())
    for gap in (0, least - 1):
        low, high = (x - min(max(x, -gap), gap) for x in (low, high))
        if (bits := (high - low).bit_length()) <= room:
            return scores, high, gap, bits
    levels, number = unique(scores)
    return number, len(levels) - 1, 0, (len(levels) - 1).bit_length()


def _packed(scores: tuple[Tensor, int, int, int], number: Tensor, labels: Tensor, label_bits: int) -> Tensor:
    """Return keys of items: the number of the list, that of the score, and in the low bits that of the label."""
    keys = torch.empty_like(number)
    values, highest, gap, bits = scores
    pack_keys(values.numpy(), labels.numpy(), number.numpy(), highest, gap, bits, label_bits, keys.numpy())
    return keys


# Sums and products over the segments of a flat tensor: the other segments never change the value of one.


def positions_within(lengths: Tensor) -> Tensor:
    """Return 0, 1, ... within each segment."""
    return torch.arange(int(lengths.sum())) - (lengths.cumsum(0) - lengths).repeat_interleave(lengths)


def segment_sum(values: Tensor, lengths: Tensor) -> Tensor:
    """Return the sum of each segment, 0 for an empty one, the same to the last bit whatever other segments there are.

    Floats are summed in blocks and blocks of blocks, so that the error stays near one rounding for any length.
    """
    if not values.is_floating_point():
        total = torch.cat((values.new_zeros(1), values.cumsum(0)))
        ends = lengths.cumsum(0)
        return total[ends] - total[ends - lengths]
    while lengths.numel() and int(lengths.max()) > _BLOCK:
        blocks = (lengths + _BLOCK - 1) // _BLOCK
        sizes = torch.full((int(blocks.sum()),), _BLOCK)
        some = blocks > 0
        sizes[blocks.cumsum(0)[some] - 1] = (lengths - (blocks - 1) * _BLOCK)[some]
        values, lengths = torch.segment_reduce(values, "sum", lengths=sizes, unsafe=True), blocks
    return torch.segment_reduce(values, "sum", lengths=lengths, unsafe=True)


def running_product(factors: Tensor, lengths: Tensor) -> Tensor:
    """Return the product of each segment's factors up to and including each place."""
    place = positions_within(lengths)
    step, longest = 1, int(lengths.max()) if lengths.numel() else 0
    while step < longest:
        before = torch.where(place >= step, factors.roll(step), 1.0)
        factors, step = factors * before, 2 * step
    return factors
