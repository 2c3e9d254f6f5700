"""Listwise losses: the likelihood of the order of a list, or of its top.

Inputs, weights and reductions are those of `ltr.losses.contract`; an item of weight 2 counts like the item twice.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from ltr.lists import Lists
from ltr.losses.contract import PairsName, RankingLoss, Reduction
from ltr.losses.pairs import closed_up, item_weights, times_unit, with_gradient_of

__all__ = ["ListMLELoss", "ListNetLoss", "list_mle_loss", "list_net_loss"]

_LARGE = 1000.0  # scores from here on lose digits that sums of exponentials need


class ListNetLoss(RankingLoss):
    r"""Cross entropy of the top-one probabilities of labels and scores.

    ``- sum over i of  P_i log Q_i,   P = softmax(labels),  Q = softmax(scores)``

    over the items of a list: Q_i is the probability that i stands on top if items are drawn in proportion to
    exp(score). A list without an item has the value 0.

    Source: Cao, Qin, Liu, Tsai & Li, *Learning to Rank: From Pairwise Approach to Listwise Approach* (2007).

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.

    Examples:
        >>> loss = ListNetLoss()
        >>> round(loss(torch.tensor([1.0, 0.0]), torch.tensor([1, 0])).item(), 4)  # the entropy of (0.7311, 0.2689)
        0.5822
    """

    key = "list_net"
    convex = True
    option_types: ClassVar = {"reduction": str}

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)

    def list_values(self, lists: Lists) -> Tensor:
        """Cross entropy; weights multiply what an item counts in both distributions."""
        if lists.scores.shape[-1] == 0:
            return lists.scores.sum(-1)
        weight, unit = item_weights(lists)
        real = weight > 0
        log_weight = None if unit is None else _log_weights(weight, unit).masked_fill(~real, 0.0)
        top = F.softmax(_log_odds(lists.labels, log_weight, real), -1).masked_fill(~real, 0.0)
        log_q = F.log_softmax(_log_odds(lists.scores, log_weight, real), -1)
        if log_weight is not None:
            log_q = log_q - log_weight
        # where P is 0 the logarithm of Q may be infinite
        return -(top * log_q).masked_fill(top == 0, 0.0).sum(-1)


class ListMLELoss(RankingLoss):
    r"""Negative log-likelihood of the order of the labels, if items are drawn from the top in proportion to exp(score).

    ``sum or mean over i of  log( sum over k with labels_k <= labels_i of exp(s_k) ) - s_i``

    over the items i that have one of a lower label. With different labels this is the likelihood of Plackett and Luce.
    Items of one label may stand in any order: each is drawn from all that are not above it (Breslow's treatment of
    ties), and the last label, below which nothing is left to be drawn, does not count.

    Source: Xia, Liu, Wang, Zhang & Li, *Listwise Approach to Learning to Rank: Theory and Algorithm* (2008); Breslow,
    *Covariance Analysis of Censored Survival Data* (1974), for ties.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"`` over the items of a list that count.

    Examples:
        >>> loss = ListMLELoss(pairs="sum")
        >>> round(loss(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([2, 1, 0])).item(), 4)  # log(e + 2) - 1 + log 2
        1.2446
    """

    key = "list_mle"
    convex = True

    def list_values(self, lists: Lists) -> Tensor:
        """Sums of exponentials up to each label, by sorting."""
        if lists.scores.shape[-1] == 0:
            return lists.scores.sum(-1)
        weight, unit = item_weights(lists)
        real = weight > 0
        labels, order = torch.where(real, lists.labels, math.inf).sort(dim=-1)
        log_weight = _log_weights(weight, unit)
        log_weight, scores, real, weight = (x.gather(-1, order) for x in (log_weight, lists.scores, real, weight))
        last = torch.searchsorted(labels, labels, right=True) - 1
        missing = _less_running_logsumexp(scores, log_weight, real, last)
        weight = weight.masked_fill(~(real & (labels > labels[..., :1])), 0.0)
        if self.pairs == "mean":
            total = weight.sum(-1, keepdim=True)
            weight = weight / torch.where(total > 0, total, 1.0)
        value = (weight * missing).masked_fill(weight == 0, 0.0).sum(-1)
        return value if self.pairs == "mean" else times_unit(value, unit, 1)


def list_net_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    qid: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """`ListNetLoss` as a function."""
    return ListNetLoss(reduction=reduction)(scores, labels, mask=mask, weight=weight, qid=qid)


def list_mle_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    qid: Tensor | None = None,
    reduction: Reduction = "mean",
    pairs: PairsName = "mean",
) -> Tensor:
    """`ListMLELoss` as a function."""
    return ListMLELoss(reduction=reduction, pairs=pairs)(scores, labels, mask=mask, weight=weight, qid=qid)


def _log_weights(weight: Tensor, unit: Tensor | None) -> Tensor:
    return weight.log() if unit is None else weight.log() + unit.log().unsqueeze(-1)


def _log_odds(values: Tensor, log_weight: Tensor | None, real: Tensor) -> Tensor:
    """Logarithms of what items are drawn in proportion to, -inf for those that are not real beside others."""
    if log_weight is not None:
        # beside a large value a weight would be lost
        largest = values.detach().masked_fill(~real, -math.inf).amax(-1, keepdim=True)
        values = values - largest.masked_fill(largest == -math.inf, 0.0) + log_weight
    return values.masked_fill(~real & real.any(-1, keepdim=True), -math.inf)


def _less_running_logsumexp(scores: Tensor, log_weight: Tensor, real: Tensor, last: Tensor) -> Tensor:
    """``log sum exp`` of the weighted scores up to the place `last`, less each score; real items come first.

    Sums of large scores are those of scores closed up, of which the sums and their gradient keep the digits.
    """
    # what is not real stands behind all others: a finite number keeps its gradient, 0, from being NaN
    lowest = torch.finfo(scores.dtype).min / 4
    if not bool((scores.detach().abs() > _LARGE).any()):
        return torch.where(real, scores + log_weight, lowest).logcumsumexp(-1).gather(-1, last) - scores
    near = with_gradient_of(closed_up(scores), scores.double())
    sums = torch.where(real, near + log_weight, lowest).logcumsumexp(-1).gather(-1, last)
    # what closing up took from the distance to the highest score
    far, close = (torch.where(real, x, -math.inf).cummax(-1).values.gather(-1, last) - x for x in (scores, near))
    return (sums - near + (far.double() - close).detach()).to(scores.dtype)
