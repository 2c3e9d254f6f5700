"""The paper's first theorem: two opposite rankings of one data set, what training on it gives, and the exact optima."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ltr.data import Dataset, theorem1
from ltr.exact import Limits, RerankProblem, Solution, Status, solve
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.fitting import Fit, FitOptions
from ltr.losses import parse_loss
from ltr.metrics import rank_statistic
from ltr.rankers.scorers import LinearScorer

CLAIMS = {"auc": 1, "pauc@100": 1, "dcg": 1, "mrr": 1, "hinge": 1, "dcg@100": 2, "pauc@10": 2, "exponential": 2}
"""The statistics and losses of the theorem, each with the solution that it is said to prefer."""
CONVEX = (
    "hinge", "exponential", "squared_hinge", "ranknet", "p_norm_push(p=2)", "p_norm_push(p=4)", "logistic", "list_net",
    "list_mle",
)  # fmt: skip
EXACT = tuple(name for name in CLAIMS if name not in CONVEX)
"""The theorem's statistics."""

_LOWEST, _FAR = -5.0, -40.0  # the lowest clump is below the one; our own example moves it to the other
_L2 = 1e-6  # a penalty, so that the distance to the optimum is bounded
_TIME = 600.0


def first_theorem(seeds: Sequence[int] = (0, 1, 2), make: Callable[[int], Dataset] = theorem1) -> dict[str, Any]:
    """Compute everything that the page says about the theorem; fits and solves use the first seed's data."""
    data = make(seeds[0])
    far, solved = moved(data), {name: solve_exactly(name, data) for name in EXACT}
    x, y = scores_and_labels(data)
    return {
        "data": data,
        "draws": len(seeds),
        "claims": CLAIMS,
        "wrong": [name for name, own in CLAIMS.items() if preferred(name, [make(seed) for seed in seeds]) != own],
        "trained": [(train(name, data), train(name, far)) for name in CONVEX],
        "solved": solved,
        "right": [
            name
            for name, found in solved.items()
            if found.status is Status.OPTIMAL and (found.weights[0] > 0) == (CLAIMS[name] == 1)
        ],
        "areas": [float(rank_statistic(sign * x, y, "auc")) for sign in (1, -1)],
    }


def preferred(name: str, draws: Sequence[Dataset]) -> int | None:
    """Return the solution that a statistic or loss prefers: 1 scores x, 2 scores -x; None if the draws disagree."""
    found = set()
    for x, y in map(scores_and_labels, draws):
        if name in CONVEX:
            first, second = (-float(parse_loss(name)(sign * x, y)) for sign in (1, -1))
        else:
            first, second = (float(rank_statistic(sign * x, y, name)) for sign in (1, -1))
        found.add(None if first == second else 1 if first > second else 2)
    return found.pop() if len(found) == 1 else None


def moved(data: Dataset) -> Dataset:
    """Return the data with its lowest clump, the positives near -10, at -40: no two observations change their order."""
    X, low = data.X.copy(), data.X[:, 0] < _LOWEST
    X[low] += _FAR - np.round(X[low].mean())
    return Dataset(data.name, X, data.y)


def scores_and_labels(data: Dataset) -> tuple[Tensor, Tensor]:
    """Return the one feature as scores, and the labels."""
    return torch.from_numpy(data.X[:, 0].copy()), torch.from_numpy(data.y.copy())


@dataclass(frozen=True)
class Trained:
    """A convex loss, minimised over the linear scorers w x of one feature."""

    loss: str
    slope: float  # derivative of the loss by w at w = 0, with the best bias there (for losses that depend on one)
    weight: float  # the w with the smallest objective
    gap: float  # largest possible distance of the objective to its minimum, relative to it

    @property
    def solution(self) -> int:
        """The ranking that training ends with: 1 for a positive weight, 2 for a negative one.

        A convex function that falls at 0 has its minimisers above 0, so the slope decides; the weight must agree.

        Raises:
            ArithmeticError: the weight does not agree.
        """
        if self.slope * self.weight >= 0:
            raise ArithmeticError(f"{self.loss}: a weight of {self.weight} does not follow a slope of {self.slope}")
        return 1 if self.slope < 0 else 2


def train(name: str, data: Dataset) -> Trained:
    """Fit a linear scorer of one feature to a convex loss."""
    loss, (x, y) = parse_loss(name), scores_and_labels(data)
    bias = math.log(data.n_pos / (data.n - data.n_pos)) if name == "logistic" else 0.0
    w = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(w * x + bias, y), w)
    scorer = LinearScorer(1)
    *_, last = Fit(scorer, loss, data.X, data.y, FitOptions(l2=_L2))
    return Trained(name, float(slope), scorer.weight.item(), last.gap / last.objective)


def solve_exactly(name: str, data: Dataset) -> Solution:
    """Return the linear scorer of the full list with the largest statistic, proven."""
    return solve(RerankProblem(data.X, data.y, name), WeightSpaceSearch(threads=1), limits=Limits(time_limit=_TIME))
