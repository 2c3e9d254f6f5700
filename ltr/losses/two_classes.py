"""Graded lists as lists of two classes: every comparable pair is in exactly one of them.

Number the labels of a list upwards from 0. Two items with different numbers agree on the leading binary digits and then
differ in one, where the higher label has 1 and the lower 0. So for each digit, the items that agree on all digits
before it make a list of their own, with those of digit 1 above those of digit 0. G labels take ceil(log2 G) digits, and
no pair is ever looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ltr.lists import Lists, buckets
from ltr.losses.transforms import TwoClasses

__all__ = ["Part", "on_rows", "two_classes", "widened"]


@dataclass(frozen=True, eq=False)
class Part:
    """Lists of two classes, taken from the items of other lists.

    Attributes:
        two: scores (differentiable) and weights, (parts, items).
        items: where each item stands in the flattened lists, 0 in padding, (parts, items).
        source: number of the list that each part is taken from, (parts,).
    """

    two: TwoClasses
    items: Tensor
    source: Tensor


def two_classes(lists: Lists, weight: Tensor) -> Iterator[Part]:
    """The comparable pairs of lists, as those of upper and lower items of parts of them.

    Args:
        lists: of shape (lists, items).
        weight: of each item, 0 where it does not count, same shape.
    """
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
        # a list's groups are numbered one after the other, by the digits before this one
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


@torch.compiler.disable  # lists of all shapes, and kernels of other compilers
def on_rows(values: Callable[[Lists], Tensor], lists: Lists) -> Tensor:
    """What a function of (lists, items) gives for lists with any batch axes."""
    batch = lists.scores.shape[:-1]
    rows = (math.prod(batch), lists.scores.shape[-1])
    weight = None if lists.weight is None else lists.weight.reshape(rows)
    flat = Lists(lists.scores.reshape(rows), lists.labels.reshape(rows), lists.mask.reshape(rows), weight)
    return values(flat).reshape(batch)


def widened(scores: Tensor) -> Tensor:
    """Scores in float64; where their gradient leaves the range of their own precision, it is as large as can be."""
    result: Tensor = _Widened.apply(scores)
    return result


class _Widened(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor) -> Tensor:
        return scores.double().view_as(scores)

    @staticmethod
    def setup_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.dtype = inputs[0].dtype  # type: ignore[attr-defined]

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
        largest = torch.finfo(ctx.dtype).max  # type: ignore[attr-defined]
        return grad.clamp(-largest, largest).to(ctx.dtype)  # type: ignore[attr-defined]

    @staticmethod
    def jvp(ctx: torch.autograd.function.FunctionCtx, tangent: Tensor) -> Tensor:
        return tangent.double().view_as(tangent)


def _label_numbers(labels: Tensor, real: Tensor) -> Tensor:
    """The number of each item's label among the different labels of its list, from 0 upwards; 0 where not real."""
    if labels.shape[-1] == 0:
        return labels.long()
    # what is not real takes a label that the list has
    lowest = labels.masked_fill(~real, torch.inf).amin(-1, keepdim=True)
    above = real & (labels > lowest)
    highest = labels.masked_fill(~real, -torch.inf).amax(-1, keepdim=True)
    if not bool((above & (labels < highest)).any()):
        return above.long()  # two labels need no sorting
    values, order = torch.where(real, labels, lowest).sort(dim=-1)
    new = torch.zeros_like(values, dtype=torch.int64)
    new[..., 1:] = values[..., 1:] > values[..., :-1]
    return torch.zeros_like(new).scatter(-1, order, new.cumsum(-1))
