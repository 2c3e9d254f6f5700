"""Sort the items of all lists at once: list, score and label of an item are packed into one integer, its key.

The keys are sorted by value and unpacked by `ltr.metrics.ranked`, so no permutation is computed. Scores keep their
order exactly: a float32 is its 32 bits, a float64 its 64 bits less the range around zero that no score lies in. Where
that leaves too few bits for list and label, scores are replaced by their ranks first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from ltr.lists import FlatLists, check_nonnegative, unique

_ROOM = 63  # bits of a nonnegative int64
_BLOCK = 2**14  # items per block, so that temporaries stay in the cache of a CPU
_SMALL_LABELS = 2**16  # integer labels below this are their own numbers


def sort_items(lists: FlatLists) -> tuple[Tensor, Tensor, int]:
    """Return the sorted keys, the labels by their number, and how many low bits of a key hold the number of its label.

    The order is list by list, each from its top, items of equal score by ascending label. The bits above the label are
    equal where list and score are.

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
    return sorted_values(keys), levels, label_bits


def sorted_values(values: Tensor) -> Tensor:
    """Return the values in ascending order; on a CPU they are sorted in place, by numpy's much faster sort."""
    if values.device.type != "cpu":
        return values.sort().values
    values.numpy().sort()
    return values


def where_true(values: Tensor) -> Tensor:
    """Return the places of the values that are not 0."""
    if values.device.type != "cpu":
        return values.nonzero().squeeze(-1)
    return torch.from_numpy(np.flatnonzero(values.numpy()))


def _label_numbers(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of each label, 0 for label 0, and the labels by number as float64."""
    if labels.dtype == torch.bool:
        labels = labels.to(torch.uint8)
    low, high = (float(end) for end in labels.aminmax()) if labels.numel() else (0.0, 0.0)
    check_nonnegative(low)
    if high < _SMALL_LABELS and (not labels.is_floating_point() or bool((labels == labels.floor()).all())):
        return labels, torch.arange(int(high) + 1, dtype=torch.float64, device=labels.device)
    levels, number = unique(torch.cat((labels.new_zeros(1), labels)))
    return number[1:], levels.double()


def _score_numbers(scores: Tensor, room: int) -> tuple[Tensor, Callable[[Tensor], Tensor], int]:
    """Return values, a function that turns a part of them into integers, 0 for the highest score, and their bits.

    The values are the scores themselves where `room` bits suffice, and their ranks elsewhere.
    """
    if not scores.numel():
        return scores, _increasing, 0
    ends = torch.stack(scores.aminmax())
    low, high = _increasing(ends).tolist()
    if (high - low).bit_length() <= room:
        return scores, lambda part: high - _increasing(part), (high - low).bit_length()
    if room > 53:  # with less room, scores of one sign and one power of two are too many already
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
    """Return integers in the order of the floats, read from their bits; 0.0 and -0.0 are 0."""
    bits = scores.view(torch.int64 if scores.dtype == torch.float64 else torch.int32).long()
    lowest = -(2**63) if scores.dtype == torch.float64 else -(2**31)
    return torch.where(bits < 0, lowest - bits, bits)


def _blocks(values: Tensor) -> Iterator[slice]:
    size = _BLOCK if values.device.type == "cpu" else max(len(values), 1)
    return (slice(at, at + size) for at in range(0, len(values), size))
