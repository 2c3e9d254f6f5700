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
    "bounded_exp",
    "comparable_pairs",
    "grouped_logsumexp",
    "item_weights",
    "kept_logsumexp",
    "log_softplus",
    "logsumexp",
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


def comparable_pairs(lists: Lists) -> tuple[Tensor, Tensor]:
    """The score differences of all pairs (i, k), and which pairs count.

    A pair is comparable when both items are real, neither has weight 0 and ``labels_i > labels_k``.

    Returns:
        ``s_i - s_k``, 0 where not comparable, and the boolean that says where; both ``(*batch, i, k)``.
    """
    real = lists.mask if lists.weight is None else lists.mask & (lists.weight > 0)
    comparable = real.unsqueeze(-1) & real.unsqueeze(-2) & (lists.labels.unsqueeze(-1) > lists.labels.unsqueeze(-2))
    difference = lists.scores.unsqueeze(-1) - lists.scores.unsqueeze(-2)
    # a difference that does not count must not overflow the loss: its gradient would be 0 * inf
    return difference.masked_fill(~comparable, 0.0), comparable


def item_weights(lists: Lists, *, rescaled: bool = False) -> Tensor:
    """The weight of each item, 1 where none is given and 0 in padding; no gradient flows into it.

    Args:
        lists: the lists.
        rescaled: divide given weights by their sum over the list. A mean does not depend on the scale of its weights,
            but products of tiny ones would underflow.
    """
    if lists.weight is None:
        return lists.mask.to(lists.scores.dtype)
    weight = lists.weight.detach()
    if not rescaled:
        return weight
    if weight.shape[-1] == 0:
        return weight
    largest = weight.amax(-1, keepdim=True)
    weight = weight / torch.where(largest > 0, largest, 1.0)
    total = weight.sum(-1, keepdim=True)
    return weight / torch.where(total > 0, total, 1.0)


def kept_logsumexp(terms: Tensor, keep: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    """``log sum exp`` over the kept terms; 0 with gradient 0 where none is kept."""
    fill = torch.where(keep.any(dim, keepdim=True), -math.inf, 0.0)
    total = torch.logsumexp(torch.where(keep, terms, fill.to(terms.dtype)), dim)
    return total.masked_fill(~keep.any(dim), 0.0)


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


def log_softplus(x: Tensor) -> Tensor:
    """``log(log(1 + exp(x)))``, accurate where ``exp(x)`` underflows."""
    # below -40, log(1 + exp(x)) and exp(x) agree to every digit of float64
    far = x < -40.0
    return torch.where(far, x, torch.log(-F.logsigmoid(-x.masked_fill(far, 0.0))))


def bounded_exp(x: Tensor, slope: float = 1.0) -> Tensor:
    """``exp(x)``, whose derivative stops growing where `slope` times it would leave the floating point range.

    Args:
        x: any shape.
        slope: bound on how much `x` moves when a score moves by 1, at least 1.
    """
    limit = math.log(torch.finfo(x.dtype).max) - math.log(slope) - 1.0
    result: Tensor = _BoundedExp.apply(x, limit)
    return result


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
