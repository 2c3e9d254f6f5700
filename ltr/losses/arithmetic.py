"""Arithmetic that keeps sums of losses, and their gradients, inside the floating point range."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ltr.lists import Lists


def item_weights(lists: Lists) -> tuple[Tensor, Tensor | None]:
    """Return the weight of each item divided by the largest of its list, and that largest weight, without gradients.

    Products and sums of divided weights stay within the range. Without weights, all are 1 and the largest is None.
    Padding has the weight 0.
    """
    if lists.weight is None:
        return lists.mask.to(lists.scores.dtype), None
    weight = lists.weight.detach()
    largest = weight.amax(-1)
    unit = torch.where(largest > 0, largest, 1.0)
    # an item of positive weight still counts, however small the weight
    least = torch.finfo(weight.dtype).tiny
    return torch.where(weight > 0, (weight / unit.unsqueeze(-1)).clamp(min=least), 0.0), unit


def times_unit(values: Tensor, unit: Tensor | None, power: int) -> Tensor:
    """Return ``values * unit**power`` of values >= 0: infinite beyond the range, where the gradient stays finite."""
    if unit is None:
        return values
    whole = values.detach()
    for _ in range(power):
        whole = whole * unit
    largest = torch.finfo(values.dtype).max
    limit = torch.full_like(whole, largest**0.5 / 2).masked_fill(whole == math.inf, largest**0.125)
    return with_gradient_of(whole, values * torch.minimum(unit, limit) ** power)


def may_overflow(scores: object) -> bool:
    """Return whether scores are of float16, or were computed by autocast to it, whose range is left easily."""
    if not isinstance(scores, Tensor) or scores.dtype == torch.float16:
        return isinstance(scores, Tensor)
    if torch.compiler.is_compiling():
        return False
    kind = scores.device.type
    return torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.float16


def without_overflow(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return scores in float32, 0 where not finite, and a 0 that is NaN, with its gradient, where a real one was."""
    scores = scores.float() if scores.dtype == torch.float16 else scores
    finite = scores.detach().isfinite()
    bad = ~finite if mask is None or mask.shape != scores.shape else ~finite & mask
    factor = torch.zeros_like(scores).masked_fill(bad, math.nan)
    return scores.masked_fill(~finite, 0.0), (scores.masked_fill(~finite & ~bad, 0.0) * factor).sum()


def weighted_lists(values: Tensor, weights: Tensor, reduction: str) -> Tensor:
    """Return values of lists, all >= 0, times the weights of the lists, their sum, or their weighted mean."""
    weights = weights.to(values.dtype)
    if reduction == "mean":
        largest = torch.cat([weights.reshape(-1), weights.new_zeros(1)]).amax()  # there may be no lists
        weights = weights / largest.where(largest > 0, 1.0)  # sums of large weights leave the floating point range
        total = weights.sum()
        share = weights / total.where(total > 0, 1.0)
        return (values * share).masked_fill(share == 0, 0.0).sum()
    weighted = times_unit(values, weights, 1).masked_fill(weights == 0, 0.0)
    return weighted if reduction == "none" else weighted.sum()


def kept_logsumexp(terms: Tensor, keep: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    """Return the ``log sum exp`` over the kept terms, which are finite; 0 with gradient 0 if none is kept."""
    largest = terms.detach().masked_fill(~keep, -math.inf).amax(dim, keepdim=True)
    none = largest == -math.inf
    largest = largest.masked_fill(none, 0.0)
    # terms are measured from the largest, so that each share of the sum, and so the gradient, is exact
    rest = torch.where(keep, terms - largest, torch.zeros_like(largest).masked_fill(~none, -math.inf))
    total = torch.logsumexp(rest, dim, keepdim=True) + largest
    return total.masked_fill(none, 0.0).squeeze(dim)


def grouped_logsumexp(terms: Tensor, group: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Return the ``log sum exp`` of the terms of each group, and whether it has a term, both (groups,).

    Terms of -inf do not count; the sum of a group without others is 0, with gradient 0.
    """
    keep = terms.detach() > -math.inf
    terms, group = terms[keep], group[keep]
    largest = terms.new_zeros(groups).scatter_reduce(0, group, terms.detach(), "amax", include_self=False)
    total = terms.new_zeros(groups).index_add(0, group, torch.exp(terms - largest[group]))
    has_term = total > 0
    return (total.masked_fill(~has_term, 1.0).log() + largest).masked_fill(~has_term, 0.0), has_term


def logsumexp(terms: Tensor) -> Tensor:
    """Return the ``log sum exp`` along the last axis; -inf with gradient 0 if all terms are -inf."""
    keep = terms > -math.inf
    return kept_logsumexp(terms, keep, -1).masked_fill(~keep.any(-1), -math.inf)


def log_sum_exp(terms: Tensor, log_weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ``log sum exp`` of weighted terms along the last axis in two parts: the excess, and the largest term.

    Added to a large term, the excess would lose its digits. Without a term of positive weight they are -inf and 0.
    """
    keep = log_weight > -math.inf
    largest = terms.detach().masked_fill(~keep, -math.inf).amax(-1, keepdim=True)
    largest = largest.masked_fill(largest == -math.inf, 0.0)
    rest = (terms - largest).masked_fill(~keep, 0.0)
    return logsumexp(log_weight + rest), largest.squeeze(-1)


def with_small_gaps(scores: Tensor, *, unit: float = 1.0) -> Tensor:
    """Return scores in units, in the same order, with gaps of at most 1,000 units; float64 without a gradient.

    An exponential of differences cannot tell wider gaps apart, and the scores become small numbers.
    """
    values, place = torch.unique(scores.detach().double(), return_inverse=True)
    return (values.diff(prepend=values[:1]) / unit).clamp(max=1000.0).cumsum(0)[place]


def with_gradient_of(values: Tensor, other: Tensor) -> Tensor:
    """Return the values, with the gradient of another tensor of their shape."""
    result: Tensor = _WithGradientOf.apply(values.detach(), other)
    return result


class _WithGradientOf(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(values: Tensor, other: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:  # noqa: ANN401
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:  # noqa: ANN401
        return None, grad

    @staticmethod
    def jvp(ctx: Any, _: Tensor | None, tangent: Tensor) -> Tensor:  # noqa: ANN401
        return tangent.view_as(tangent)


def bounded(terms: Tensor) -> Tensor:
    """Return terms clamped to an eighth of the range, with their gradient: a difference of infinite ones is NaN."""
    largest = torch.finfo(terms.dtype).max / 8
    return with_gradient_of(terms.detach().clamp(-largest, largest), terms)


def bounded_exp(x: Tensor, *, slope: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """Return ``exp(x)``, whose derivative stops growing where `slope` times it would leave the floating point range.

    `slope` bounds the change of `x` when a score changes by 1; the result has the given type, or that of `x`.
    """
    dtype = x.dtype if dtype is None else dtype
    limit = math.log(torch.finfo(dtype).max) - math.log(slope) - 1.0
    near = torch.exp(x.clamp(max=limit))  # a straight line continues it
    return with_gradient_of(torch.exp(x), near + near.detach() * torch.relu(x - limit)).to(dtype)


def widened(scores: Tensor) -> Tensor:
    """Return scores in float64; a gradient beyond the range of their own precision is clamped to that range."""
    result: Tensor = _Widened.apply(scores)
    return result


class _Widened(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor) -> Tensor:
        return scores.double().view_as(scores)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:  # noqa: ANN401
        ctx.dtype = inputs[0].dtype

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # noqa: ANN401
        largest = torch.finfo(ctx.dtype).max
        return grad.clamp(-largest, largest).to(ctx.dtype)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:  # noqa: ANN401
        return tangent.double().view_as(tangent)
