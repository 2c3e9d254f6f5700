"""Differentiable losses of ranked lists: ``loss(scores, labels, *, mask=None, weight=None, qid=None)``.

All of them keep the contract in `ltr.losses.contract`. Each is an nn.Module with its options as keyword arguments,
also comes as a function, and prints as the string that `parse_loss` reads. `ltr.losses.functions` has the formulas of
pairwise losses; subclass `PairwiseLoss` for a loss of your own.
"""

from ltr.losses.contract import PairsName, RankingLoss, Reduction
from ltr.losses.functions import PairFunction
from ltr.losses.likelihoods import (
    KLLoss,
    ListMLELoss,
    ListNetLoss,
    LogisticLoss,
    SoftmaxLoss,
    kl_loss,
    list_mle_loss,
    list_net_loss,
    logistic_loss,
    softmax_loss,
)
from ltr.losses.pairwise import (
    InnerName,
    MarginMSELoss,
    PairwiseExponentialLoss,
    PairwiseHingeLoss,
    PairwiseLoss,
    PairwiseSquaredHingeLoss,
    PNormPushLoss,
    RankNetLoss,
    margin_mse_loss,
    p_norm_push_loss,
    pairwise_exponential_loss,
    pairwise_hinge_loss,
    pairwise_squared_hinge_loss,
    ranknet_loss,
)
from ltr.losses.parsing import parse_loss
from ltr.losses.statistic import LambdaLoss, SmoothStatisticLoss, lambda_loss, smooth_statistic_loss

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
    "kl_loss",
    "lambda_loss",
    "list_mle_loss",
    "list_net_loss",
    "logistic_loss",
    "margin_mse_loss",
    "p_norm_push_loss",
    "pairwise_exponential_loss",
    "pairwise_hinge_loss",
    "pairwise_squared_hinge_loss",
    "parse_loss",
    "ranknet_loss",
    "smooth_statistic_loss",
    "softmax_loss",
]
