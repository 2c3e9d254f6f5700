"""Losses by name: ``parse_loss(str(loss))`` is the loss again."""

from __future__ import annotations

import re

from ltr.checks import without_spaces
from ltr.losses.contract import RankingLoss
from ltr.losses.listwise import ListMLELoss, ListNetLoss
from ltr.losses.p_norm_push import PNormPushLoss
from ltr.losses.pairwise import PairwiseExponentialLoss, PairwiseHingeLoss, PairwiseSquaredHingeLoss, RankNetLoss
from ltr.losses.pointwise import LogisticLoss
from ltr.losses.statistic import LambdaLoss, SmoothStatisticLoss

__all__ = ["parse_loss"]

_LOSSES: dict[str, type[RankingLoss]] = {
    loss.key: loss
    for loss in (
        RankNetLoss,
        PairwiseHingeLoss,
        PairwiseSquaredHingeLoss,
        PairwiseExponentialLoss,
        LogisticLoss,
        PNormPushLoss,
        ListNetLoss,
        ListMLELoss,
        LambdaLoss,
        SmoothStatisticLoss,
    )
}
_GRAMMAR = re.compile(r"(?P<key>\w+)(?:\((?P<options>.*)\))?")
_COMMA = re.compile(r",(?![^()]*\))")  # outside the parentheses of a statistic


def parse_loss(text: str | RankingLoss) -> RankingLoss:
    """The loss that a string names; a loss passes through.

    Args:
        text: ``"ranknet"``, ``"hinge"``, ``"squared_hinge"``, ``"exponential"``, ``"logistic"``, ``"p_norm_push"``,
            ``"list_net"``, ``"list_mle"``, ``"lambda"`` or ``"smooth"``, with options as in ``"ranknet(pairs=sum)"`` or
            ``"smooth(statistic=dcg(base=e)@10,temperature=0.1)"``; white space around words and numbers is ignored.

    Raises:
        TypeError: neither a string nor a loss.
        ValueError: a string that names no loss, an option that the loss does not have, or a value outside its range.

    Examples:
        >>> str(parse_loss("p_norm_push(inner = logistic, p = 4.0)"))
        'p_norm_push(p=4,inner=logistic)'
    """
    if isinstance(text, RankingLoss):
        return text
    if not isinstance(text, str):
        raise TypeError(f"loss must be a string or a loss module, got {type(text).__name__}")
    match = _GRAMMAR.fullmatch(without_spaces(text))
    if match is None:
        raise ValueError(f"loss must read name or name(option=value,...), got {text!r}")
    if match["key"] not in _LOSSES:
        raise ValueError(f"loss: unknown name {match['key']!r}; known are {', '.join(_LOSSES)}")
    loss = _LOSSES[match["key"]]
    options: dict[str, float | str] = {}
    for part in _COMMA.split(match["options"]) if match["options"] is not None else ():
        key, equals, value = part.partition("=")
        if not equals or key not in loss.option_types or key in options:
            allowed = ", ".join(f"{name}=..." for name in loss.option_types)
            raise ValueError(f"loss {loss.key}: takes {allowed}, each once, got {part!r} in {text!r}")
        try:
            options[key] = loss.option_types[key](value)
        except ValueError:
            raise ValueError(f"loss {loss.key}: {key} must be a number, got {value!r} in {text!r}") from None
    try:
        return loss(**options)  # type: ignore[arg-type]
    except ValueError as error:
        raise ValueError(f"loss {loss.key}: {error}, in {text!r}") from None
