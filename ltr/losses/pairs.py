"""Comparable pairs of items: losses of them, and the ways to add up over them.

*Graded lists as lists of two classes* (`two_classes`) allow sums over long lists without visiting pairs. Number the
labels of a list upwards from 0. Two items with different numbers agree on the leading binary digits and then differ in
one, where the higher label has 1 and the lower 0. So for each digit, the items that agree on all digits before it make
a list of their own, with those of digit 1 above those of digit 0. Every comparable pair is in exactly one of these
lists, and G labels take ceil(log2 G) digits.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ltr.lists import Lists, buckets
from ltr.losses.arithmetic import bounded, widened
from ltr.losses.contract import RankingLoss
from ltr.losses.transforms import TwoClasses


class PairLoss(RankingLoss):
    """A loss of the comparable pairs of lists: over all pairs of short lists, by other sums for long ones."""

    signed = True

    def list_values(self, lists: Lists) -> Tensor:
        """Return the value of each list, in the form that is fastest at their length."""
        return self.from_pairs(lists) if self.uses_all_pairs(lists) else on_rows(self.without_pairs, lists)

    @abc.abstractmethod
    def from_pairs(self, lists: Lists) -> Tensor:
        """Return the value of each list from all its pairs, ``(*batch,)``."""

    @abc.abstractmethod
    def without_pairs(self, lists: Lists) -> Tensor:
        """Return the same values from sums over items, for lists of shape (lists, items)."""


def comparable_pairs(lists: Lists, *, finite: bool = False) -> tuple[Tensor, Tensor]:
    """Return ``s_i - s_k`` of all pairs, 0 where not comparable, and whether they are: both ``(*batch, i, k)``.

    A pair is comparable when both items are real, neither has weight 0 and ``labels_i > labels_k``. Differences may be
    infinite, unless `finite` is set: they are then clamped by `bounded`.
    """
    real = lists.mask if lists.weight is None else lists.mask & (lists.weight > 0)
    comparable = real.unsqueeze(-1) & real.unsqueeze(-2) & (lists.labels.unsqueeze(-1) > lists.labels.unsqueeze(-2))
    difference = lists.scores.unsqueeze(-1) - lists.scores.unsqueeze(-2)
    if finite:
        difference = bounded(difference)
    # a pair that does not count must not overflow the loss: its gradient would be 0 * inf
    return difference.masked_fill(~comparable, 0.0), comparable


@dataclass(frozen=True, eq=False)
class Part:
    """Lists of two classes, taken from the items of other lists."""

    two: TwoClasses  # scores (differentiable) and weights, (parts, items)
    items: Tensor  # index of each item in the flattened lists, 0 in padding, (parts, items)
    source: Tensor  # index of the list that each part is taken from, (parts,)


def two_classes(lists: Lists, weight: Tensor) -> Iterator[Part]:
    """Yield lists of two classes that together contain every comparable pair once; arguments are (lists, items)."""
    real = lists.mask & (weight > 0)
    number = _label_numbers(lists.labels, real)
    most = int(number.max()) if number.numel() else 0
    scores, weight = widened(lists.scores), weight.double()
    if most <= 1:
        upper = weight * (real & (number == 1))
        lower = weight * (real & (number == 0))
        everyone = torch.arange(scores.numel(), device=scores.device).reshape(scores.shape)
        yield Part(TwoClasses(scores, upper, lower), everyone, torch.arange(len(scores), device=scores.device))
        return
    items = real.reshape(-1).nonzero().squeeze(-1)
    row, number = items // scores.shape[-1], number.reshape(-1)[items]
    scores, weight = scores.reshape(-1), weight.reshape(-1)
    for digit in range(most.bit_length()):
        # number the groups of a list by the digits before this one
        group = row * ((most >> (digit + 1)) + 1) + (number >> (digit + 1))
        above = ((number >> digit) & 1).bool()
        for members, mask in buckets(group):
            at = items[members]
            w = weight[at].masked_fill(~mask, 0.0)
            up = above[members]
            yield Part(
                TwoClasses(scores[at].masked_fill(~mask, 0.0), w.masked_fill(~up, 0.0), w.masked_fill(up, 0.0)),
                at,
                row[members[:, 0]],
            )


def on_rows(values: Callable[[Lists], Tensor], lists: Lists) -> Tensor:
    """Apply a function of lists of shape (lists, items) to lists with any batch axes."""
    # shapes vary from call to call, so torch.compile is off; loading it just for that takes a second
    apply = torch.compiler.disable(_on_rows) if torch.compiler.is_compiling() else _on_rows
    return apply(values, lists)


def _on_rows(values: Callable[[Lists], Tensor], lists: Lists) -> Tensor:
    batch = lists.scores.shape[:-1]
    rows = (math.prod(batch), lists.scores.shape[-1])
    weight = None if lists.weight is None else lists.weight.reshape(rows)
    flat = Lists(lists.scores.reshape(rows), lists.labels.reshape(rows), lists.mask.reshape(rows), weight)
    return values(flat).reshape(batch)


def _label_numbers(labels: Tensor, real: Tensor) -> Tensor:
    """Return the rank of each item's label among the distinct labels of its list, from 0; 0 where not real."""
    # items that are not real take a label of the list
    lowest = labels.masked_fill(~real, torch.inf).amin(-1, keepdim=True)
    above = real & (labels > lowest)
    highest = labels.masked_fill(~real, -torch.inf).amax(-1, keepdim=True)
    if not bool((above & (labels < highest)).any()):
        return above.long()  # two labels need no sorting
    values, order = torch.where(real, labels, lowest).sort(dim=-1)
    new = torch.zeros_like(values, dtype=torch.int64)
    new[..., 1:] = values[..., 1:] > values[..., :-1]
    return torch.zeros_like(new).scatter(-1, order, new.cumsum(-1))
