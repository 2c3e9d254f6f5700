"""The pointwise logistic loss: classification of single items, a strong baseline for ranking."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ltr.lists import Lists
from ltr.losses.contract import PairsName, RankingLoss, Reduction
from ltr.losses.pairs import item_weights, times_unit

__all__ = ["LogisticLoss", "logistic_loss"]


class LogisticLoss(RankingLoss):
    """Logistic loss of single items, ``log(1 + exp(-s))`` for label 1 and ``log(1 + exp(s))`` for label 0.

    The value of a list is the (weighted) mean over its real items, or their sum with ``pairs="sum"``: items take
    the place of pairs in the contract. A list without a real item has the value 0.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"`` over the items of a list.

    Raises:
        ValueError: when called, a label other than 0 and 1.

    Examples:
        >>> loss = LogisticLoss()
        >>> round(loss(torch.tensor([1.0, -1.0]), torch.tensor([1, 0])).item(), 4)  # log(1 + exp(-1)), twice
        0.3133
    """

    key = "logistic"
    convex = True

    def list_values(self, lists: Lists) -> Tensor:
        """The weighted mean or sum of the items' losses."""
        positive = lists.labels == 1
        other = lists.labels[~positive & (lists.labels != 0)]
        if other.numel():
            raise ValueError(f"labels must be 0 or 1 for the logistic loss, got {float(other[0]):g}")
        weight, unit = item_weights(lists)
        if self.pairs == "mean":
            total = weight.sum(-1, keepdim=True)
            weight = weight / torch.where(total > 0, total, 1.0)
        value = (weight * -F.logsigmoid(torch.where(positive, lists.scores, -lists.scores))).sum(-1)
        return value if self.pairs == "mean" else times_unit(value, unit, 1)


def logistic_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    qid: Tensor | None = None,
    reduction: Reduction = "mean",
    pairs: PairsName = "mean",
) -> Tensor:
    """`LogisticLoss` as a function."""
    loss = LogisticLoss(reduction=reduction, pairs=pairs)
    return loss(scores, labels, mask=mask, weight=weight, qid=qid)
