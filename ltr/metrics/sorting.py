"""All items of all lists in one sort: list, score and label of an item are put into one integer.

The integers are sorted by value and taken apart again, so that no permutation is kept or followed. Scores keep their
order exactly: a float32 is its 32 bits, a float64 its 64 bits less the range around zero that no score lies in. Where
that leaves too little room for list and label, scores are numbered first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ltr.lists import FlatLists, check_nonnegative, unique

__all__ = ["SortedItems", "sort_items", "sorted_values"]

_ROOM = 63  # bits of an int64 that is not negative
_BLOCK = 2**14  # items whose temporaries stay in the cache of a CPU
_SMALL_LABELS = 2**16  # integers below are their own numbers


@dataclass(frozen=True)
class SortedItems:
    """Items of all lists one after the other, each list by score from its top, equal scores by ascending label.

    Described are those with a label > 0, in this order; tensors but `levels` are (relevant,).

    Attributes:
        place: their places among all items, ascending.
        grade: the number of each one's label.
        levels: float64, the labels by number.
        start: the place where the group of equal scores begins that each stands in.
        end: the last place of that group.
        tied: whether any two scores of a list are equal.
    """

    place: Tensor
    grade: Tensor
    levels: Tensor
    start: Tensor
    end: Tensor
    tied: bool


def sort_items(lists: FlatLists) -> SortedItems:
    """Sort the items of each list.

    Raises:
        ValueError: a negative label.
    """
    labels, levels = _label_numbers(lists.labels)
    label_bits = (len(levels) - 1).bit_length()
    list_bits = max(len(lists.n) - 1, 0).bit_length()
    scores, number_of, score_bits = _score_numbers(lists.scores, _ROOM - list_bits - label_bits)
    fits = list_bits + score_bits + label_bits <= _ROOM
    keys = torch.empty_like(lists.number)
    for part in _blocks(keys):
        key = number_of(scores[part])
        if list_bits:
            key |= lists.number[part] << score_bits
        keys[part] = (key << label_bits).bitwise_or_(labels[part].long()) if fits else key
    if not fits:
        keys = (unique(keys)[1] << label_bits) | labels.long()
    return _taken_apart(sorted_values(keys), levels, label_bits)


def sorted_values(values: Tensor) -> Tensor:
    """The values in ascending order; on a CPU in their own memory, by numpy's much faster sort."""
    if values.device.type != "cpu":
        return values.sort().values
    values.numpy().sort()
    return values


def _taken_apart(keys: Tensor, levels: Tensor, label_bits: int) -> SortedItems:
    number = keys & ((1 << label_bits) - 1)
    place = _where_true(number)
    grade = number[place]
    group = keys.bitwise_right_shift_(label_bits)
    fresh = torch.ones_like(group, dtype=torch.bool)
    torch.ne(group[1:], group[:-1], out=fresh[1:])
    if bool(fresh.all()):
        return SortedItems(place, grade, levels, place, place, False)
    bounds = torch.cat((_where_true(fresh), place.new_tensor([len(keys)])))
    behind = fresh.cumsum(0)[place]
    return SortedItems(place, grade, levels, bounds[behind - 1], bounds[behind] - 1, True)


def _where_true(values: Tensor) -> Tensor:
    if values.device.type != "cpu":
        return values.nonzero().squeeze(-1)
    return torch.from_numpy(np.flatnonzero(values.numpy()))


def _label_numbers(labels: Tensor) -> tuple[Tensor, Tensor]:
    """The number of each label, 0 for label 0, and the labels by number."""
    if labels.dtype == torch.bool:
        labels = labels.to(torch.uint8)
    low, high = (float(end) for end in labels.aminmax()) if labels.numel() else (0.0, 0.0)
    check_nonnegative(low)
    if high < _SMALL_LABELS and (not labels.is_floating_point() or bool((labels == labels.floor()).all())):
        return labels, torch.arange(int(high) + 1, dtype=torch.float64, device=labels.device)
    levels, number = unique(torch.cat((labels.new_zeros(1), labels)))
    return number[1:], levels.double()


def _score_numbers(scores: Tensor, room: int) -> tuple[Tensor, Callable[[Tensor], Tensor], int]:
    """What to take a part of, and the function that numbers it, 0 for the highest score; bits of the numbers.

    Numbered are the scores themselves where `room` bits suffice.
    """
    if not scores.numel():
        return scores, _increasing, 0
    ends = torch.stack(scores.aminmax())
    low, high = _increasing(ends).tolist()
    if (high - low).bit_length() <= room:
        return scores, lambda part: high - _increasing(part), (high - low).bit_length()
    if room > 53:  # else one sign and one power of two are too many
        parts = (scores[part].abs() for part in _blocks(scores))
        smallest = min(float(torch.where(part > 0, part, math.inf).min()) for part in parts)
        gap = int(_increasing(scores.new_tensor(smallest))) - 1

        def squeezed(part: Tensor) -> Tensor:
            wide = _increasing(part)
            return wide - wide.clamp(-gap, gap)

        low, high = squeezed(ends).tolist()
        if (high - low).bit_length() <= room:
            return scores, lambda part: high - squeezed(part), (high - low).bit_length()
    levels, number = unique(scores)
    return number, lambda part: len(levels) - 1 - part, (len(levels) - 1).bit_length()


def _increasing(scores: Tensor) -> Tensor:
    """Integers in the order of floats, from their bits: sign and magnitude; 0.0 and -0.0 are 0."""
    bits = scores.view(torch.int64 if scores.dtype == torch.float64 else torch.int32).long()
    lowest = -(2**63) if scores.dtype == torch.float64 else -(2**31)
    return torch.where(bits < 0, lowest - bits, bits)


def _blocks(values: Tensor) -> Iterator[slice]:
    size = _BLOCK if values.device.type == "cpu" else max(len(values), 1)
    return (slice(at, at + size) for at in range(0, len(values), size))
