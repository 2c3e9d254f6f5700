"""Differentiable losses of ranked lists: ``loss(scores, labels, *, mask=None, weight=None, qid=None)``.

All of them keep the contract in `ltr.losses.contract`. Each is an nn.Module with its options as keyword arguments
and prints as the string that `parse_loss` reads. `ltr.losses.functions` has the formulas of
pairwise losses; subclass `PairwiseLoss` for a loss of your own.
"""

from ltr.losses.contract import PairsName, RankingLoss, Reduction
from ltr.losses.functions import PairFunction
from ltr.losses.likelihoods import KLLoss, ListMLELoss, ListNetLoss, LogisticLoss, SoftmaxLoss
from ltr.losses.pairwise import (
    InnerName,
    MarginMSELoss,
    PairwiseExponentialLoss,
    PairwiseHingeLoss,
    PairwiseLoss,
    PairwiseSquaredHingeLoss,
    PNormPushLoss,
    RankNetLoss,
)
from ltr.losses.parsing import parse_loss
from ltr.losses.statistic import LambdaLoss, SmoothStatisticLoss

__all__ = [
    "InnerName",
    "KLLoss",
    "LambdaLoss",
    "ListMLELoss",
    "ListNetLoss",
    "LogisticLoss",
    "MarginMSELoss",
    "PNormPushLoss",
    "PairFunction",
    "PairsName",
    "PairwiseExponentialLoss",
    "PairwiseHingeLoss",
    "PairwiseLoss",
    "PairwiseSquaredHingeLoss",
    "RankNetLoss",
    "RankingLoss",
    "Reduction",
    "SmoothStatisticLoss",
    "SoftmaxLoss",
    "parse_loss",
]
