"""The paper's first theorem: two opposite rankings of one data set, what training on it gives, and the exact optima."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    *("hinge", "exponential", "squared_hinge", "ranknet", "p_norm_push(p=2)", "p_norm_push(p=4)"),
    *("logistic", "list_net", "list_mle"),
)

_SEEDS = (0, 1, 2)  # of the draws of the data; fits and solves use the first
_LOWEST, _FAR = -5.0, -40.0  # the lowest clump is below the one; our own example moves it to the other
_L2 = 1e-6  # a penalty, so that the distance to the optimum is bounded
_TIME = 600.0


def first_theorem() -> dict[str, Any]:
    """Compute everything that the page says about the theorem."""
    draws = [theorem1(seed) for seed in _SEEDS]
    data, far = draws[0], moved(draws[0])
    x, y = scores_and_labels(data)
    solved = {name: solve_exactly(name, data) for name in CLAIMS if name not in CONVEX}
    return {
        "data": data,
        "draws": len(draws),
        "claims": CLAIMS,
        "right": sum(preferred(name, draws) == own for name, own in CLAIMS.items()),
        "ends": [sum(trained(name, rows) == own for name in CONVEX) for rows, own in ((data, 1), (far, 2))],
        "convex": len(CONVEX),
        "solved": len(solved),
        "proven": sum(
            found.status is Status.OPTIMAL and (found.weights[0] > 0) == (CLAIMS[name] == 1)
            for name, found in solved.items()
        ),
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


def trained(name: str, data: Dataset) -> int:
    """Return the ranking that training on a convex loss ends with: 1 for a positive weight, 2 for a negative one.

    A convex function that falls at w = 0 has its minimisers above 0, so its slope there (with the best bias, for a loss
    that depends on one) decides; the weight must agree.
    """
    loss, (x, y) = parse_loss(name), scores_and_labels(data)
    bias = math.log(data.n_pos / (data.n - data.n_pos)) if name == "logistic" else 0.0
    w = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(w * x + bias, y), w)
    scorer = LinearScorer(1)
    Fit(scorer, loss, data.X, data.y, FitOptions(l2=_L2)).run()
    weight = scorer.weight.item()
    if float(slope) * weight >= 0:
        raise ArithmeticError(f"{name}: a weight of {weight} does not follow a slope of {slope}")
    return 1 if weight > 0 else 2


def solve_exactly(name: str, data: Dataset) -> Solution:
    """Return the linear scorer of the full list with the largest statistic, proven."""
    return solve(RerankProblem(data.X, data.y, name), WeightSpaceSearch(threads=1), limits=Limits(time_limit=_TIME))
