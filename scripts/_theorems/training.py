"""Theorem 1: where the convex losses are smallest, and what the exact stage finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.data import Dataset
from ltr.exact import Limits, RerankProblem, Solution, solve
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.fitting import Fit, FitOptions
from ltr.losses import parse_loss
from ltr.metrics import rank_statistic
from ltr.rankers import ExactRanker, TwoStageRanker, make_ranker
from ltr.rankers.scorers import LinearScorer

from .preferences import CLAIMS, CONVEX, scores_and_labels

__all__ = ["EXACT", "TOP_K", "Rankings", "Trained", "rankings", "solve_exactly", "train"]

FloatArray = NDArray[np.float64]
Rankings = Mapping[str, Mapping[str, float]]

EXACT = tuple(name for name in CLAIMS if name not in CONVEX)
"""The theorem's statistics."""

TOP_K = 100
"""How many the exact stage reranks in two stages."""

_L2 = 1e-6  # so that the distance to the optimum is bounded
_TIME = 600.0


@dataclass(frozen=True)
class Trained:
    """A convex loss, minimised over the linear scorers w x of one feature.

    Attributes:
        loss: its name.
        slope: of the loss in w at w = 0, the bias (of losses that see one) at its best there.
        weight: where the objective is smallest.
        gap: how far at most the objective is above its minimum, relative to it.
    """

    loss: str
    slope: float
    weight: float
    gap: float

    @property
    def solution(self) -> int:
        """The ranking that training ends with: 1 for a positive weight, 2 for a negative one.

        A convex function that falls at 0 has its minimisers above 0, so the slope decides; the weight must agree.

        Raises:
            ArithmeticError: it does not.
        """
        if self.slope * self.weight >= 0:
            raise ArithmeticError(f"{self.loss}: a weight of {self.weight} does not follow a slope of {self.slope}")
        return 1 if self.slope < 0 else 2


def train(name: str, data: Dataset) -> Trained:
    """Fit a linear scorer of one feature.

    Args:
        name: of a convex loss.
        data: with one feature.
    """
    loss, (x, y) = parse_loss(name), scores_and_labels(data)
    bias = math.log(data.n_pos / (data.n - data.n_pos)) if name == "logistic" else 0.0
    w = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(w * x + bias, y), w)
    scorer = LinearScorer(1)
    fit = Fit(scorer, loss, data.X, data.y, FitOptions(l2=_L2))
    *_, last = fit
    return Trained(name, float(slope), scorer.weight.item(), last.gap / last.objective)


def solve_exactly(name: str, data: Dataset) -> Solution:
    """The linear scorer of the full list with the largest statistic, proven.

    Args:
        name: of the statistic.
        data: with one feature.
    """
    problem = RerankProblem(data.X, data.y, name)
    return solve(problem, WeightSpaceSearch(threads=1), Limits(time_limit=_TIME))


def rankings(data: Dataset) -> Rankings:
    """The theorem's statistics of both solutions and of rankers that are not bound to one direction.

    These are RankNet, whose top is reranked exactly, and RankBoost on thresholds.

    Args:
        data: with one feature.

    Returns:
        by the name of the ranking, the statistics by name.
    """
    x = data.X[:, 0]
    two_stage = TwoStageRanker("ranknet", ExactRanker(f"dcg@{TOP_K}", method=WeightSpaceSearch(threads=1)), TOP_K)
    boosted = make_ranker("rankboost").fit(data.X, data.y)
    scores: dict[str, FloatArray] = {
        "Solution 1": x,
        "Solution 2": -x,
        f"RankNet, its top {TOP_K} reranked exactly": two_stage.fit(data.X, data.y).decision_function(data.X),
        "RankBoost on thresholds": boosted.decision_function(data.X),
    }
    y = torch.from_numpy(data.y.copy())
    return {
        ranking: {name: float(rank_statistic(torch.from_numpy(own.copy()), y, name)) for name in EXACT}
        for ranking, own in scores.items()
    }
