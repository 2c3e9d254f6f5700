"""Comparable pairs: losses of them, and the arithmetic that keeps sums over them inside the floating point range."""

from __future__ import annotations

import abc
import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from ltr.lists import Lists
from ltr.losses import transforms
from ltr.losses.contract import RankingLoss
from ltr.losses.two_classes import on_rows

if TYPE_CHECKING:
    from ltr.losses._short import Kernel

__all__ = [
    "PairLoss",
    "bounded",
    "bounded_exp",
    "closed_up",
    "comparable_pairs",
    "grouped_logsumexp",
    "item_weights",
    "kept_logsumexp",
    "log_softplus",
    "log_sum_exp",
    "logsumexp",
    "times_unit",
    "with_gradient_of",
]


class PairLoss(RankingLoss):
    """A loss of the comparable pairs of lists, which looks at all of them where lists are short and else at none."""

    @property
    def linear_kernel(self) -> bool:
        """Whether the kernel looks at no pairs, and so is for lists of any length."""
        return False

    def kernel(self) -> Kernel | None:
        """What computes value and gradient in one pass on the CPU, None where nothing does."""
        return None

    def list_values(self, lists: Lists) -> Tensor:
        """The value of each list, in the form that is faster at their length."""
        if self._is_compiled(lists):
            values: Tensor = _OnePass.apply(lists.scores, lists.labels, lists.mask, lists.weight, self)
            return values
        return self.differentiable_values(lists)

    def differentiable_values(self, lists: Lists) -> Tensor:
        """The value of each list, differentiable as often as the loss is."""
        if lists.scores.shape[-1] == 0:
            return lists.scores.sum(-1)
        return self.from_pairs(lists) if self.looks_at_pairs(lists) else on_rows(self.without_pairs, lists)

    def _is_compiled(self, lists: Lists) -> bool:
        if lists.scores.device.type not in transforms.COMPILED_FOR or torch.compiler.is_compiling():
            return False
        if torch._C._functorch.is_functorch_wrapped_tensor(lists.scores):
            return False  # of a transform of torch.func
        return self.kernel() is not None and (self.linear_kernel or self.looks_at_pairs(lists))

    @abc.abstractmethod
    def from_pairs(self, lists: Lists) -> Tensor:
        """The value of each list from all its pairs, ``(*batch,)``."""

    @abc.abstractmethod
    def without_pairs(self, lists: Lists) -> Tensor:
        """The same from sums over items, for lists of shape (lists, items)."""


class _OnePass(torch.autograd.Function):
    """The value of each list by a kernel; the gradient of its gradient is that of `differentiable_values`."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor,
        weight: Tensor | None,
        loss: PairLoss,
    ) -> Tensor:
        kernel = loss.kernel()
        assert kernel is not None
        batch = scores.shape[:-1]
        rows = (math.prod(batch), scores.shape[-1])
        counted = mask if weight is None else weight
        s, y, w = (x.detach().reshape(rows).contiguous().numpy() for x in (scores, labels, counted))
        values, slopes = scores.new_empty(rows[0]), scores.new_empty(rows)
        kernel(s, y, w, loss.pairs == "mean", values.numpy(), slopes.numpy())
        ctx.save_for_backward(slopes.reshape(scores.shape), scores, labels, mask, weight)  # type: ignore[arg-type]
        ctx.loss = loss  # type: ignore[attr-defined]
        return values.reshape(batch)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        slopes, scores, *given = ctx.saved_tensors  # type: ignore[attr-defined]
        if not torch.is_grad_enabled():
            return grad.unsqueeze(-1) * slopes, None, None, None, None
        loss: PairLoss = ctx.loss  # type: ignore[attr-defined]
        pull_back = torch.func.vjp(lambda s: loss.differentiable_values(Lists(s, *given)), scores)[1]
        return pull_back(grad)[0], None, None, None, None


def comparable_pairs(lists: Lists, *, finite: bool = False) -> tuple[Tensor, Tensor]:
    """The score differences of all pairs (i, k), and which pairs count.

    A pair is comparable when both items are real, neither has weight 0 and ``labels_i > labels_k``.

    Args:
        lists: the lists.
        finite: keep differences finite, as `bounded` does; otherwise they may be infinite.

    Returns:
        ``s_i - s_k``, 0 where not comparable, and the boolean that says where; both ``(*batch, i, k)``.
    """
    real = lists.mask if lists.weight is None else lists.mask & (lists.weight > 0)
    comparable = real.unsqueeze(-1) & real.unsqueeze(-2) & (lists.labels.unsqueeze(-1) > lists.labels.unsqueeze(-2))
    difference = lists.scores.unsqueeze(-1) - lists.scores.unsqueeze(-2)
    if finite:
        difference = bounded(difference)
    # a difference that does not count must not overflow the loss: its gradient would be 0 * inf
    return difference.masked_fill(~comparable, 0.0), comparable


def item_weights(lists: Lists) -> tuple[Tensor, Tensor | None]:
    """The weight of each item in units of its list's largest one, and that unit; no gradient flows into either.

    Products and sums of weights may leave the floating point range, those of weights in units of the largest do not.

    Returns:
        Weights ``(*batch, list)``, 1 where none is given and 0 in padding; the unit ``(*batch,)``, None where no
        weights are given.
    """
    if lists.weight is None:
        return lists.mask.to(lists.scores.dtype), None
    weight = lists.weight.detach()
    if weight.shape[-1] == 0:
        return weight, None
    largest = weight.amax(-1)
    unit = torch.where(largest > 0, largest, 1.0)
    # an item that weighs anything keeps counting, however light it is
    least = torch.finfo(weight.dtype).tiny
    return torch.where(weight > 0, (weight / unit.unsqueeze(-1)).clamp(min=least), 0.0), unit


def times_unit(values: Tensor, unit: Tensor | None, power: int) -> Tensor:
    """``values * unit**power`` of values >= 0: infinite beyond the range, where the gradient stays finite."""
    if unit is None:
        return values
    whole = values.detach()
    for _ in range(power):
        whole = whole * unit
    largest = torch.finfo(values.dtype).max
    limit = torch.full_like(whole, largest**0.5 / 2).masked_fill(whole == math.inf, largest**0.125)
    return with_gradient_of(whole, values * torch.minimum(unit, limit) ** power)


def kept_logsumexp(terms: Tensor, keep: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    """``log sum exp`` over the kept terms, which are finite; 0 with gradient 0 where none is kept.

    The gradient is that of terms measured from the largest: what each has of the sum is then exact.
    """
    largest = terms.detach().masked_fill(~keep, -math.inf).amax(dim, keepdim=True)
    none = largest == -math.inf
    largest = largest.masked_fill(none, 0.0)
    rest = torch.where(keep, terms - largest, torch.zeros_like(largest).masked_fill(~none, -math.inf))
    total = torch.logsumexp(rest, dim, keepdim=True) + largest
    return total.masked_fill(none, 0.0).squeeze(dim)


def grouped_logsumexp(terms: Tensor, group: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """``log sum exp`` of the terms of each group, terms of -inf left out; 0 with gradient 0 where none is left.

    Args:
        terms: (terms,).
        group: of each term, (terms,).
        groups: how many.

    Returns:
        (groups,), and the boolean that says which groups have a term.
    """
    keep = terms.detach() > -math.inf
    terms, group = terms[keep], group[keep]
    largest = terms.new_zeros(groups).scatter_reduce(0, group, terms.detach(), "amax", include_self=False)
    total = terms.new_zeros(groups).index_add(0, group, torch.exp(terms - largest[group]))
    has_term = total > 0
    return (total.masked_fill(~has_term, 1.0).log() + largest).masked_fill(~has_term, 0.0), has_term


def logsumexp(terms: Tensor) -> Tensor:
    """``log sum exp`` along the last axis; -inf with gradient 0 where all terms are."""
    keep = terms > -math.inf
    return kept_logsumexp(terms, keep, -1).masked_fill(~keep.any(-1), -math.inf)


def log_sum_exp(terms: Tensor, log_weight: Tensor) -> tuple[Tensor, Tensor]:
    """``log sum exp`` of weighted terms along the last axis in two parts: what is added to the largest, and that term.

    Beside a large term the first part would be lost. Weights of 0 do not count; without others it is -inf, and 0.
    """
    keep = log_weight > -math.inf
    largest = terms.detach().masked_fill(~keep, -math.inf).amax(-1, keepdim=True)
    largest = largest.masked_fill(largest == -math.inf, 0.0)
    rest = (terms - largest).masked_fill(~keep, 0.0)
    return logsumexp(log_weight + rest), largest.squeeze(-1)


def log_softplus(x: Tensor) -> Tensor:
    """``log(log(1 + exp(x)))``, accurate where ``exp(x)`` underflows."""
    # below -40, log(1 + exp(x)) and exp(x) agree to every digit of float64
    far = x < -40.0
    return torch.where(far, x, torch.log(-F.logsigmoid(-x.masked_fill(far, 0.0))))


def closed_up(scores: Tensor, *, unit: float = 1.0) -> Tensor:
    """Scores in units, in the same order, with gaps of at most 1,000 units; float64 without a gradient.

    To an exponential of differences a gap of 1,000 is as wide as any, and the scores are small numbers.
    """
    values, place = torch.unique(scores.detach().double(), return_inverse=True)
    return (values.diff(prepend=values[:1]) / unit).clamp(max=1000.0).cumsum(0)[place]


def with_gradient_of(values: Tensor, other: Tensor) -> Tensor:
    """The values, with the gradient of another tensor of their shape."""
    result: Tensor = _WithGradientOf.apply(values.detach(), other)
    return result


class _WithGradientOf(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(values: Tensor, other: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def setup_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[None, Tensor]:
        return None, grad

    @staticmethod
    def jvp(ctx: torch.autograd.function.FunctionCtx, _: Tensor | None, tangent: Tensor) -> Tensor:
        return tangent.view_as(tangent)


def bounded(terms: Tensor) -> Tensor:
    """Terms brought back to an eighth of the floating point range, with the gradient that they had.

    The terms of a sum in logarithms must be finite, for the difference of two infinite ones is not a number.
    """
    largest = torch.finfo(terms.dtype).max / 8
    return with_gradient_of(terms.detach().clamp(-largest, largest), terms)


def bounded_exp(x: Tensor, *, slope: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """``exp(x)``, whose derivative stops growing where `slope` times it would leave the floating point range.

    Args:
        x: any shape.
        slope: bound on how much `x` moves when a score moves by 1, at least 1.
        dtype: precision of the result, whose range counts; None takes that of `x`.
    """
    dtype = x.dtype if dtype is None else dtype
    limit = math.log(torch.finfo(dtype).max) - math.log(slope) - 1.0
    result: Tensor = _BoundedExp.apply(x, limit)
    return result.to(dtype)


class _BoundedExp(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, limit: float) -> Tensor:
        return torch.exp(x)

    @staticmethod
    def setup_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor, float], output: Tensor) -> None:
        x, limit = inputs
        ctx.save_for_backward(x)
        ctx.limit = limit  # type: ignore[attr-defined]

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return grad * torch.exp(x.clamp(max=ctx.limit)), None  # type: ignore[attr-defined]
