"""Losses by name: the table of built-in losses, the parser of their strings, and the operator of `torch.compile`."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch
from torch import Tensor

from ltr.checks import named_object, nearest, read_call
from ltr.lists import check_inputs, check_qid, numbered
from ltr.losses.contract import RankingLoss
from ltr.losses.likelihoods import KLLoss, ListMLELoss, ListNetLoss, LogisticLoss, SoftmaxLoss
from ltr.losses.operators import HALF, Given, by_formula, chained
from ltr.losses.pairwise import (
    MarginMSELoss,
    PairwiseExponentialLoss,
    PairwiseHingeLoss,
    PairwiseSquaredHingeLoss,
    PNormPushLoss,
    RankNetLoss,
)
from ltr.losses.statistic import LambdaLoss, SmoothStatisticLoss

LOSSES: dict[str, type[RankingLoss]] = {
    loss.key: loss
    for loss in (
        RankNetLoss,
        PairwiseHingeLoss,
        PairwiseSquaredHingeLoss,
        PairwiseExponentialLoss,
        LogisticLoss,
        MarginMSELoss,
        PNormPushLoss,
        ListNetLoss,
        KLLoss,
        SoftmaxLoss,
        ListMLELoss,
        LambdaLoss,
        SmoothStatisticLoss,
    )
}
"""The built-in losses by name."""
_ELSEWHERE = {
    **dict.fromkeys(("lambdarank", "lambdaloss", "lambdamart"), "lambda"),
    **dict.fromkeys(("approxndcg", "neuralndcg", "softndcg"), "smooth(statistic=dcg@10)"),
    **dict.fromkeys(("bce", "binarycrossentropy", "logloss", "pointwise"), "logistic"),
    **dict.fromkeys(("crossentropy", "softmaxcrossentropy", "infonce", "listwise"), "softmax"),
    **dict.fromkeys(("pairwise", "pairwiselogistic", "bpr"), "ranknet"),
    **dict.fromkeys(("ranksvm", "pairwisehinge", "marginranking"), "hinge"),
    "rankboost": "exponential",
    "plackettluce": "list_mle",
}
"""What losses of other libraries, or the same under other names, are called here."""


def parse_loss(text: str | RankingLoss) -> RankingLoss:
    """Return the loss that a string names; a loss passes through.

    The string is a key of `LOSSES` with options, such as ``"smooth(statistic=dcg(base=e)@10,temperature=0.1)"``, or the
    import path of a loss of your own, as in ``"mymodule:MyLoss(width=2)"``. Raises TypeError or ValueError for what
    names no loss, and for options that it does not have or outside their ranges.

    Examples:
        >>> str(parse_loss("p_norm_push(inner = logistic, p = 4.0)"))
        'p_norm_push(p=4,inner=logistic)'
    """
    if isinstance(text, RankingLoss):
        return text
    if not isinstance(text, str):
        raise TypeError(f"loss must be a string or a loss module, got {type(text).__name__}")
    key, parts = read_call("loss", text)
    if ":" in key:
        loss = _imported(key)
    elif key in LOSSES:
        loss = LOSSES[key]
    else:
        hint = nearest(key, LOSSES, _ELSEWHERE)
        raise ValueError(
            f"loss: unknown name {key!r}{hint}; known are {', '.join(LOSSES)}, and module:Class for a loss of your own"
        )
    defaults = loss.option_defaults()
    options: dict[str, object] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or name not in defaults or name in options:
            allowed = ", ".join(f"{name}=..." for name in defaults)
            raise ValueError(f"loss {key}: takes {allowed}, each once, got {part!r} in {text!r}")
        try:
            options[name] = _value(value, defaults[name])
        except ValueError as error:
            raise ValueError(f"loss {key}: {name} must be {error}, got {value!r} in {text!r}") from None
    try:
        return loss(**options)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ValueError(f"loss {key}: {error}, in {text!r}") from None


def _value(text: str, default: object) -> object:
    """Return the value of an option, of the type of its default; without a default, a number if the text is one."""
    if isinstance(default, bool):
        if text not in ("True", "False"):
            raise ValueError("True or False")
        return text == "True"
    if isinstance(default, str):
        return text
    try:
        number = float(text)
    except ValueError:
        if isinstance(default, int | float):
            raise ValueError("a number") from None
        return text
    return number if isinstance(default, float) or not number.is_integer() else int(number)


def _imported(path: str) -> type[RankingLoss]:
    """Return the loss class that an import path names."""
    found = named_object(f"loss {path}", path)
    if not (inspect.isclass(found) and issubclass(found, RankingLoss)):
        raise ValueError(f"loss {path}: must be a subclass of ltr.losses.RankingLoss, got {found!r}")
    if inspect.isabstract(found):
        raise ValueError(f"loss {path}: is abstract: define {', '.join(sorted(found.__abstractmethods__))}")
    return found


_Found = tuple[Tensor, Tensor, Tensor]
_named = functools.lru_cache(maxsize=256)(parse_loss)


@torch.library.custom_op("ltr::list_loss", mutates_args=())
def list_loss_operator(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    qid: Tensor | None,
    name: str,
    reduction: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return value, gradient, and for values by `qid` the number of each item's list, after checking the inputs.

    This is ``torch.ops.ltr.list_loss``, the loss for `torch.compile`, whose graph breaks at checks of numbers.
    """
    check_inputs(scores, labels, mask, weight)
    check_qid(scores, qid)
    given, loss = Given(labels, mask, weight, qid), _named(name)
    found = loss.core_pass(scores, given, reduction)
    by_core = None if found is None else found.value_and_slopes(scores)
    value, slopes = by_core or by_formula(loss.in_torch, scores, given, reduction)
    number = numbered(qid) if qid is not None and reduction == "none" else torch.empty(0, dtype=torch.int64)
    return value, slopes, number


@list_loss_operator.register_fake
def _(scores: Tensor, labels: Tensor, mask: object, weight: object, qid: object, name: str, reduction: str) -> _Found:
    dtype = torch.float32 if scores.dtype in HALF else scores.dtype
    shape: Any = ()
    if reduction == "none":
        shape = scores.shape[:-1] if qid is None else (torch.library.get_ctx().new_dynamic_size(),)
    number = scores.new_empty(scores.shape if qid is not None and reduction == "none" else 0, dtype=torch.int64)
    slopes = torch.empty_like(scores, dtype=dtype, memory_format=torch.contiguous_format)
    return scores.new_empty(shape, dtype=dtype), slopes, number


def _remember(ctx: Any, inputs: tuple[Any, ...], output: _Found) -> None:  # noqa: ANN401
    _, slopes, number = output
    ctx.save_for_backward(slopes, number)
    ctx.dtype, ctx.by_list = inputs[0].dtype, inputs[4] is not None and inputs[6] == "none"
    ctx.mark_non_differentiable(slopes, number)


def _backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
    slopes, number = ctx.saved_tensors
    return chained(grad, slopes, number if ctx.by_list else None).to(ctx.dtype), *[None] * 6


list_loss_operator.register_autograd(_backward, setup_context=_remember)
