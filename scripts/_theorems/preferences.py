"""Theorem 1: which of two opposite rankings of one data set each statistic and each loss prefers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from torch import Tensor

from ltr.data import Dataset, theorem1
from ltr.losses import parse_loss
from ltr.metrics import evaluate, rank_statistic

__all__ = [
    "CLAIMS",
    "CONVEX",
    "FAR",
    "FIRST_HIT",
    "LARGEST",
    "Comparison",
    "compare",
    "lowest",
    "moved",
    "preference",
    "turning_scale",
]

FloatArray = NDArray[np.float64]
Kind = Literal["statistic", "measure", "loss"]

CLAIMS = {
    "auc": 1,
    "pauc@100": 1,
    "dcg": 1,
    "mrr": 1,
    "hinge": 1,
    "dcg@100": 2,
    "pauc@10": 2,
    "exponential": 2,
}
"""What the theorem says: statistics and losses, and which solution they prefer."""

FIRST_HIT = "mrr of the first positive"
"""The reciprocal rank as it is usually defined: that of the first positive alone."""

CONVEX = (
    "hinge",
    "exponential",
    "squared_hinge",
    "ranknet",
    "p_norm_push(p=2)",
    "p_norm_push(p=4)",
    "logistic",
    "list_net",
    "list_mle",
)
"""The convex losses of `ltr.losses`."""

_STATISTICS = ("auc", "pauc@100", "dcg", "mrr", "dcg@100", "pauc@10", "dcg@10", "power(p=4)", "wta")
_SMOOTH = ("smooth(statistic=dcg)", "smooth(statistic=dcg@100)")
FAR = -40.0
"""Where the lowest clump goes in an example of our own."""

_SMALLEST = 1e-2
LARGEST = 8.0
"""The largest factor of x at which preferences are looked at."""


@dataclass(frozen=True)
class Comparison:
    """A statistic, measure or loss of both solutions.

    Attributes:
        name: as the library names it.
        kind: of losses the smaller value is preferred, else the larger.
        first: its value for Solution 1, a value a draw of the data.
        second: for Solution 2.
    """

    name: str
    kind: Kind
    first: tuple[float, ...]
    second: tuple[float, ...]

    @property
    def preferred(self) -> int | None:
        """1 or 2, None where the draws disagree or the values are equal."""
        sign = -1 if self.kind == "loss" else 1
        first = {sign * a > sign * b for a, b in zip(self.first, self.second, strict=True) if a != b}
        ties = any(a == b for a, b in zip(self.first, self.second, strict=True))
        return None if ties or len(first) != 1 else 1 if first.pop() else 2

    @property
    def advantage(self) -> float:
        """How far apart the values of the first draw are, as a share of the larger one."""
        return abs(self.first[0] - self.second[0]) / max(abs(self.first[0]), abs(self.second[0]))

    @property
    def spread(self) -> float:
        """The largest relative deviation of a draw from the first."""
        pairs = [(values[0], value) for values in (self.first, self.second) for value in values[1:]]
        return max((abs(value - own) / abs(own) for own, value in pairs if own), default=0.0)


def compare(seeds: Sequence[int] = (0, 1, 2), draw: Callable[[int], Dataset] = theorem1) -> list[Comparison]:
    """All comparisons: Solution 1 has the scores x, Solution 2 the scores -x.

    Args:
        seeds: of the draws of the data.
        draw: makes the data of a seed.
    """
    data = [scores_and_labels(draw(seed)) for seed in seeds]
    found = []
    for name in _STATISTICS:
        values = [[float(rank_statistic(sign * x, y, name)) for x, y in data] for sign in (1, -1)]
        found.append(Comparison(name, "statistic", *map(tuple, values)))
    values = [[float(evaluate(sign * x, y, ["mrr"])["mrr"]) for x, y in data] for sign in (1, -1)]
    found.append(Comparison(FIRST_HIT, "measure", *map(tuple, values)))
    for name in (*CONVEX, *_SMOOTH):
        loss = parse_loss(name)
        values = [[float(loss(sign * x, y)) for x, y in data] for sign in (1, -1)]
        found.append(Comparison(name, "loss", *map(tuple, values)))
    return found


def preference(comparisons: Sequence[Comparison], name: str) -> str:
    """The solution that one of the comparisons prefers."""
    preferred = next(c.preferred for c in comparisons if c.name == name)
    return "neither" if preferred is None else str(preferred)


def turning_scale(name: str, data: Dataset) -> float | None:
    """The factor of x from which a loss prefers the other solution than it does near 0; None when it does not.

    Args:
        name: of the loss; factors up to `LARGEST` are looked at.
        data: with one feature.
    """
    loss, (x, y) = parse_loss(name), scores_and_labels(data)

    def difference(scale: float) -> float:
        return float(loss(scale * x, y) - loss(-scale * x, y))

    if difference(_SMALLEST) * difference(LARGEST) > 0:
        return None
    return float(brentq(difference, _SMALLEST, LARGEST, rtol=1e-4))


def moved(data: Dataset) -> Dataset:
    """The data with its lowest clump, the positives near -10, at `FAR`: no two observations change their order."""
    X = data.X.copy()
    low = lowest(data)
    X[low] += FAR - np.round(X[low].mean())
    return Dataset(data.name, X, data.y)


def lowest(data: Dataset) -> NDArray[np.bool_]:
    """Which observations are of the lowest clump."""
    return data.X[:, 0] < -5


def scores_and_labels(data: Dataset) -> tuple[Tensor, Tensor]:
    """The one feature as scores, and the labels."""
    return torch.from_numpy(data.X[:, 0].copy()), torch.from_numpy(data.y.copy())
