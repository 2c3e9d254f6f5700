"""Listwise losses: the likelihood of the order of a list, or of its top.

Inputs, weights and reductions are those of `ltr.losses.contract`; an item of weight 2 counts like the item twice.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from ltr.lists import Lists
from ltr.losses.contract import PairsName, RankingLoss, Reduction
from ltr.losses.pairs import item_weights, logsumexp

__all__ = ["ListMLELoss", "ListNetLoss", "list_mle_loss", "list_net_loss"]


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
        """Log probabilities by logsumexp; weights multiply what an item counts in it."""
        log_weight = item_weights(lists).log()
        real = log_weight > -math.inf
        top = torch.exp((log_weight + _log_softmax(lists.labels, log_weight)).masked_fill(~real, -math.inf))
        return -(top * _log_softmax(lists.scores, log_weight).masked_fill(~real, 0.0)).sum(-1)


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
        weight = item_weights(lists)
        real = weight > 0
        labels, order = torch.where(real, lists.labels, math.inf).sort(dim=-1)
        log_weight = weight.log().gather(-1, order)
        scores, real, weight = (x.gather(-1, order) for x in (lists.scores, real, weight))
        last = torch.searchsorted(labels, labels, right=True) - 1
        below = _running_logsumexp(scores + log_weight, real).gather(-1, last)
        counted = real & (labels > labels[..., :1])
        if self.pairs == "mean":
            weight = weight / weight.amax(-1, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny)
        terms = (weight * (below - scores)).masked_fill(~counted, 0.0).sum(-1)
        if self.pairs == "sum":
            return terms
        total = weight.masked_fill(~counted, 0.0).sum(-1)
        return terms / torch.where(total > 0, total, 1.0)


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


def _log_softmax(values: Tensor, log_weight: Tensor) -> Tensor:
    """The logarithm of ``exp(value_i) / sum of weight_k exp(value_k)``, 0 where there is no item at all."""
    total = logsumexp(values + log_weight).unsqueeze(-1)
    return values - total.masked_fill(total == -math.inf, 0.0)


def _running_logsumexp(terms: Tensor, real: Tensor) -> Tensor:
    """``log sum exp`` of the terms up to each place, of lists whose real items come first."""
    # what is not real stands behind all others: a finite number keeps its gradient, 0, from being NaN
    lowest = torch.finfo(terms.dtype).min / 4
    return torch.where(real, terms, lowest).logcumsumexp(-1)
