"""Losses as single operations: the C++ core's pass over the lists of a batch, which gives value and gradient together.

`Pass` is such a pass for eager torch. Its second derivatives come from the formulas (`RankingLoss.in_torch`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ltr.lists import weights_of_lists
from ltr.losses import transforms
from ltr.native import Groups, ListLoss
from ltr.statistics import RankStatistic
from ltr.torch_hooks import is_batch_of_gradients, is_transformed

TIMES = 16
"""How many times as long lists may be for the core to visit all pairs as for torch, which takes that much longer."""

HALF = (torch.float16, torch.bfloat16)
"""Types of scores that are raised to float32."""


@functools.lru_cache(maxsize=256)
def list_loss(name: str, *, mean: bool = True, power: float = 1.0, temperature: float = 1.0) -> ListLoss:
    """Return the compiled loss of a name with its options."""
    return ListLoss(name, mean=mean, power=power, temperature=temperature)


def statistic_loss(
    name: str, mean: bool, statistic: RankStatistic, gain: str, lists: Lengths, temperature: float = 1.0
) -> ListLoss | None:
    """Return the compiled loss of a rank statistic; None if it must be computed for each list apart.

    That is so if its weights depend on lengths that are not equal, or for the sum (not `mean`) of shares of hits.
    """
    kind, longest = statistic.kind, lists.longest
    if (kind.by not in ("rank", "position") and not lists.equal) or (kind.counts_hits and kind.share_of and not mean):
        return None
    return ListLoss(
        name,
        mean=mean,
        temperature=temperature,
        rank_weights=statistic.weights(longest, cut=False).tolist(),
        by_rank=kind.by != "position",
        cutoff=longest if statistic.cutoff is None else min(statistic.cutoff, longest),
        exp2=gain == "exp2",
        hits=kind.counts_hits,
        share_of_pairs=kind.share_of_pairs,
    )


def groups_of(qid: Tensor) -> Groups:
    """Return the lists of flat items with these ids."""
    return Groups(qid.detach().long().contiguous().numpy())


def is_native(*tensors: Tensor | None) -> bool:
    """Return whether these are tensors that the core can read, without a transform of torch that it would hide from."""
    for x in tensors:
        if x is not None and (type(x) not in _PLAIN or not x.is_cpu):
            return False
    return (
        "cpu" in transforms.COMPILED_FOR
        and not is_transformed()
        and all(x is None or torch.autograd.forward_ad.unpack_dual(x).tangent is None for x in tensors)
    )


_PLAIN = (Tensor, torch.nn.Parameter)


class Given(NamedTuple):
    """What a loss is given beside the scores."""

    labels: Tensor
    mask: Tensor | None
    weight: Tensor | None
    qid: Tensor | None


class Lengths(NamedTuple):
    """What decides about the form in which a loss is computed."""

    longest: int  # list
    pairs: float  # the sum of the squared lengths
    equal: bool  # whether all lists are of one length
    weighted: bool  # whether items have weights


@dataclass(slots=True)
class Pass:
    """What the core computes in one pass, but for the scores."""

    formula: Callable[..., Tensor]  # `in_torch` of the loss
    kernel: ListLoss
    reduction: str
    given: Given
    groups: Groups | None

    def __call__(self, scores: Tensor) -> Tensor:
        """Return the reduced value of the lists."""
        value: Tensor = _apply(scores, self)
        return value

    def value_and_slopes(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the reduced value of the lists and its gradient."""
        found = by_core(self.kernel, scores, self.given, self.groups, self.reduction)
        return found or by_formula(self.formula, scores, self.given, self.reduction)

    def changes(self, scores: Tensor) -> int:
        """Return how many times the tensors were changed in place."""
        changes = 0
        for x in (scores, *self.given):
            if x is not None and not x.is_inference():
                changes += x._version
        return changes


class _OnePass(torch.autograd.Function):
    # Inputs and gradient are kept as attributes: `save_for_backward` takes as long as the loss of a small batch, and
    # the gradient of a single value can be handed on as it is.
    @staticmethod
    def forward(ctx: Any, scores: Tensor, what: Pass) -> Tensor:  # noqa: ANN401 - has whatever it is given
        value, ctx.slopes = what.value_and_slopes(scores)
        ctx.what, ctx.scores, ctx.changes = what, scores, what.changes(scores)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        what: Pass = ctx.what
        scores: Tensor = ctx.scores
        if ctx.changes != what.changes(scores):
            raise RuntimeError(
                "scores, labels, mask, weight or qid were modified by an inplace operation between the loss and "
                "backward(): give the loss a copy of them, x.clone()"
            )
        if torch.is_grad_enabled():
            pull_back = torch.func.vjp(lambda s: what.formula(s, what.given, what.reduction), scores)[1]
            return pull_back(grad)[0], None
        single = not grad.ndim and not is_batch_of_gradients(grad)
        slopes: Tensor | None = vars(ctx).pop("slopes", None) if single else vars(ctx).get("slopes")
        if slopes is None:  # it was handed on before
            slopes = what.value_and_slopes(scores)[1]
        if not single:
            to_scores = chained(grad, slopes, None if what.groups is None else numbers_of(what.groups))
        else:
            to_scores = slopes if grad.item() == 1.0 else slopes.mul_(grad)
        return to_scores if to_scores.dtype == scores.dtype else to_scores.to(scores.dtype), None


# `_OnePass.apply` without a look for transforms of torch, of which `is_native` has found none
_apply: Callable[[Tensor, Pass], Tensor] = super(torch.autograd.Function, _OnePass).apply


def by_core(
    kernel: ListLoss,
    scores: Tensor,
    given: Given,
    groups: Groups | None,
    reduction: str,
    curvatures: Tensor | None = None,
) -> tuple[Tensor, Tensor] | None:
    """Return value and gradient, and write second derivatives; None for inputs that the core does not accept."""
    (labels, mask, weight, _), dtype = given, scores.dtype
    if dtype in HALF:
        scores, dtype = scores.float(), torch.float32
    if labels.dtype not in (dtype, torch.int64):
        labels = labels.to(dtype if labels.is_floating_point() else torch.int64)  # the core tells grades from scores
    scores = scores.contiguous()
    slopes = torch.empty_like(scores)
    of_lists = scores.shape[:-1] if groups is None else (groups.lists,)
    values = scores.new_empty(of_lists if reduction == "none" else ())
    accepted = kernel(
        scores,
        labels.contiguous(),
        None if mask is None else mask.contiguous(),
        None if weight is None else weight.to(dtype).contiguous(),
        groups,
        reduction,
        torch.get_num_threads(),
        values,
        slopes,
        curvatures,
    )
    return (values, slopes) if accepted else None


def by_formula(formula: Callable[..., Tensor], scores: Tensor, given: Given, reduction: str) -> tuple[Tensor, Tensor]:
    """Return value and gradient of the formulas in torch, which also raise the errors of inputs that are refused."""

    def work() -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            variable = scores.detach().clone().requires_grad_()
            value = formula(variable, given, reduction)
            (slopes,) = torch.autograd.grad(value.sum(), variable)
        return value.detach().clone(), slopes.to(value.dtype).contiguous()

    # in a new thread autograd is on: inside of an operator it is off
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def numbers_of(groups: Groups) -> Tensor:
    """Return the number of each item's list."""
    number = torch.empty(groups.items, dtype=torch.int64)
    groups.write_number(number.numpy())
    return number


def chained(grad: Tensor, slopes: Tensor, number: Tensor | None) -> Tensor:
    """Return the gradient with respect to the scores, from that with respect to the value or values."""
    if number is not None:
        grad = grad[number]
    elif grad.ndim:
        grad = grad.unsqueeze(-1)
    return grad * slopes


# --- torch.compile -----------------------------------------------------------------------------------------------


@torch.library.custom_op("ltr::list_weight", mutates_args=())
def list_weight_operator(list_weight: Tensor, scores: Tensor, qid: Tensor | None) -> Tensor:
    """Return one weight for each list, checked."""
    return weights_of_lists(list_weight, scores, qid).clone()


@list_weight_operator.register_fake
def _(list_weight: Tensor, scores: Tensor, qid: Tensor | None) -> Tensor:
    dtype = list_weight.dtype if list_weight.is_floating_point() else scores.dtype
    shape: Any = scores.shape[:-1] if qid is None else (torch.library.get_ctx().new_dynamic_size(),)
    return list_weight.new_empty(shape, dtype=dtype)
