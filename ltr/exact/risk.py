r"""Risk scores: few columns, whole numbers of points, and the smallest logistic loss.

A *risk score* adds up whole points w_j of at most k columns and a whole intercept b, and says that a row with the total
``t = b + w·x`` is positive with the chance ``1 / (1 + exp(-t))``. The points are the ones with the largest

    -loss(w)  -  C * #{j : w_j != 0},      loss(w) = min over b of  sum_i v_i log(1 + exp(-(2 y_i - 1) (b + w·x_i))),

where the weights of the rows v_i add up to 1. The loss is convex in b, so the best whole intercept follows from the
points. Rows with the same numbers are merged. No points predict better than the shares of positives among these, which
is the first bound.

Source: Ustun & Rudin, *Learning Optimized Risk Scores* (JMLR 2019), whose RiskSLIM has this objective;
`ltr.exact.scip.lattice` is the search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr.checks import as_numbers, as_sequence, is_whole
from ltr.exact.card_rules import CardConditions, conditions_of
from ltr.exact.constraints import set_fields
from ltr.exact.problem import FloatArray, IntArray, Problem, check_price_and_margin, finite_features
from ltr.outcomes import chance_of
from ltr.statistics import LOG_LOSS

_LARGEST_TOTAL = 1e6  # of a row: beyond it, SCIP's tolerances would be larger than what is to be proven
_ROUNDING = 1e-12  # room for rounding in the first bound


@dataclass(frozen=True, eq=False, init=False, repr=False)
class RiskProblem(Problem):
    """Find the risk score with the smallest logistic loss; weights are whole points, of which `intercept` follows.

    Args:
        X: numbers, (n, d), finite; columns of zeros and ones are the questions of a card.
        y: label of each row, (n,): 0 and 1, both of them.
        C: price of each column with points, >= 0.
        intercept_limits: least and largest intercept; None for any.
        weight: weight of each row, (n,), > 0, whose shares of all are `shares`; None for equal weights.
        conditions: what points a card may have, see `CardConditions`, whose fields may be given as arguments instead.

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> X = [[1, 1], [1, 0], [0, 1], [0, 0]]
        >>> problem = RiskProblem(X, [1, 1, 0, 0], points=3)
        >>> problem.intercept([2, 0]), round(problem.evaluate([2, 0]), 4)  # totals 1 and -1: log(1 + exp(-1))
        (-1, -0.3133)
    """

    X: FloatArray
    y: IntArray
    C: float
    intercept_limits: tuple[int, int] | None
    weight: FloatArray
    conditions: CardConditions
    max_nonzeros: int = field(init=False)
    free: tuple[int, ...] = field(init=False)
    required: tuple[int, ...] = field(init=False)
    least: IntArray = field(init=False)
    largest: IntArray = field(init=False)
    least_points: IntArray = field(init=False)
    directions: IntArray = field(init=False)
    shares: FloatArray = field(init=False)
    statistic: str = field(init=False)
    margin: float = field(init=False)
    constraints: None = field(init=False)

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        C: float = 0.0,
        *,
        intercept_limits: Sequence[int] | None = None,
        weight: ArrayLike | None = None,
        conditions: CardConditions | None = None,
        **options: Any,  # noqa: ANN401 (fields of `conditions`)
    ) -> None:
        features = finite_features(X)
        conditions = conditions_of(features.shape[1], conditions, options)
        check_price_and_margin(C, 1.0)
        weights = np.ones(len(features)) if weight is None else _by_row("weight", "number", weight, features).copy()
        wrong = ~(np.isfinite(weights) & (weights > 0))
        if wrong.any():
            raise ValueError(f"weight must hold finite numbers > 0, got {float(weights[wrong][0])!r}")
        labels = _by_row("y", "label", y, features)
        if set((found := np.unique(labels)).tolist()) != {0.0, 1.0}:
            raise ValueError(f"y must hold the labels 0 and 1, both of them, got {found.tolist()!r:.80}")
        set_fields(self, X=features, y=labels.astype(np.int64), C=float(C), statistic=LOG_LOSS)
        set_fields(self, weight=weights, shares=weights / math.fsum(weights), margin=1.0, constraints=None)
        set_fields(self, conditions=conditions, intercept_limits=_range(intercept_limits))
        shared = ("max_nonzeros", "free", "required", "least", "largest", "least_points", "directions")
        set_fields(self, **{name: getattr(conditions, name) for name in shared})
        total = float(max(self._reach))
        if total > _LARGEST_TOTAL:
            j = int(np.argmax(np.abs(features).max(axis=0)))
            raise ValueError(
                f"X must hold numbers whose totals stay below {_LARGEST_TOTAL:g}, got totals up to {total:.3g}, "
                f"most of it from column {j}: divide its numbers, or cut them into questions"
            )

    @cached_property
    def merged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The different rows, (m, d), with the weight of their positives and of their negatives, (m,) each."""
        rows, of = np.unique(self.X + 0.0, axis=0, return_inverse=True)
        m, of = len(rows), of.reshape(-1)
        positive, negative = (
            np.bincount(of, self.shares * (self.y == label), m).astype(np.float64) for label in (1, 0)
        )
        return rows, positive, negative

    @property
    def _reach(self) -> tuple[float, float]:
        """How far a card's totals, without the intercept, can lie below 0 and above 0."""
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        ends = np.stack([np.multiply.outer(self.least, [1, 1]), np.multiply.outer(self.largest, [1, 1])])
        products = ends * np.stack([low, high], axis=1)
        sizes = [np.maximum(0.0, (sign * products).max(axis=(0, 2))) for sign in (-1.0, 1.0)]
        counted = [np.sort(size[self.counted])[::-1][: self.max_nonzeros].sum() for size in sizes]
        free = [size[list(self.free)].sum() for size in sizes]
        return float(counted[0] + free[0]), float(counted[1] + free[1])

    @cached_property
    def intercepts(self) -> tuple[int, int]:
        """The range of intercepts that can be best for some points.

        At the best real intercept b the mean chance is the share of positives P, so that the chance at the largest
        total is at least P and that at the smallest total is at most P: ``logit(P) - max w·x <= b <= logit(P) - min
        w·x``. The best whole intercept is next to it, or at a limit.
        """
        share = float(self.shares[self.y == 1].sum())
        middle, (below, above) = math.log(share / (1 - share)), self._reach
        low, high = math.floor(middle - above - 1e-6), math.ceil(middle + below + 1e-6)
        if self.intercept_limits is None:
            return low, high
        least, largest = self.intercept_limits
        return min(max(low, least), largest), max(min(high, largest), least)

    @property
    def reach(self) -> float:
        """Largest size of a weight: that of points."""
        return max(1.0, float(np.max(-self.least)), float(np.max(self.largest)))

    @cached_property
    def trivial_bound(self) -> float:
        """The value of the shares of positives among equal rows as chances: no points exceed it."""
        _, positive, negative = self.merged
        whole = positive + negative
        parts = np.concatenate([positive, negative])
        some, shares = parts > 0, parts / np.tile(whole, 2)
        return min(0.0, math.fsum((parts[some] * np.log(shares[some])).tolist()) + _ROUNDING)

    @property
    def balance(self) -> FloatArray:
        """The weight of each positive, minus that of each negative, each as a share of its class, (n,)."""
        positive = self.y == 1
        signs = np.where(positive, 1.0 / self.shares[positive].sum(), -1.0 / self.shares[~positive].sum())
        return self.shares * signs

    def in_box(self, w: ArrayLike) -> FloatArray:
        """Return points as float64 of shape (d,), as they are: multiples of them have another loss."""
        return self._checked(w)

    def points_of(self, w: ArrayLike) -> IntArray:
        """Return the points of a card from its weights, (d,)."""
        return np.rint(np.asarray(w, dtype=np.float64)).astype(np.int64)

    def allowed(self, w: ArrayLike, tolerance: float = 0.0) -> bool:
        """Whether the weights are points that a card of this problem may have, decided exactly."""
        weights = self.in_box(w)
        points = self.points_of(weights)
        return bool(np.all(weights == points)) and self.conditions.admits(points)

    def statistic_value(self, w: ArrayLike) -> float:
        """Return minus the logistic loss of points with their best intercept, without the price of columns."""
        return -float(self._best(w)[1][0])

    def intercept(self, w: ArrayLike) -> int:
        """Return the whole intercept with which points have the smallest loss."""
        return int(self._best(w)[0][0])

    def _best(self, w: ArrayLike) -> tuple[IntArray, FloatArray]:
        points = self.in_box(w)
        used = np.flatnonzero(points)
        return self.losses((self.merged[0][:, used] @ points[used])[:, None])

    def losses(self, totals: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the best intercept and the loss of several cards, (c,) each, given their totals, (m, c)."""
        _, positive, negative = self.merged
        return best_intercepts(totals, positive, negative, self.intercepts)

    def tangent(self, w: FloatArray, b: float) -> tuple[float, FloatArray]:
        """Return the loss at real weights and an intercept, and its gradient, (d + 1,), the intercept last."""
        rows, positive, negative = self.merged
        totals = rows @ w + b
        slopes = (positive + negative) * chance_of(totals) - positive
        return float(loss_of(totals, positive, negative)), np.append(slopes @ rows, slopes.sum())

    def content(self) -> dict[str, Any]:
        """Return the problem as a certificate file describes it, of kind ``risk``."""
        return {
            "kind": "risk",
            "C": self.C,
            "intercept": None if self.intercept_limits is None else list(self.intercept_limits),
            **self.conditions.content(),
            "row_weights": self.weight.tolist(),
            "y": self.y.tolist(),
            "X": self.X.tolist(),
        }

    def _sizes(self) -> dict[str, object]:
        return {"rows": self.n, "columns": self.d, "different rows": len(self.merged[0])}


def loss_of(totals: FloatArray, positive: FloatArray, negative: FloatArray) -> FloatArray:
    """Return the loss at totals that have their intercepts, (m, c) or (m,), of rows with these weights, (m,) each."""
    rest = np.log1p(np.exp(-np.abs(totals)))
    against = positive @ np.maximum(-totals, 0.0) + negative @ np.maximum(totals, 0.0)
    found: FloatArray = (positive + negative) @ rest + against
    return found


def best_intercepts(
    totals: FloatArray, positive: FloatArray, negative: FloatArray, ends: tuple[int, int]
) -> tuple[IntArray, FloatArray]:
    """Return the whole intercept from a range with the smallest loss, and that loss, (c,) each.

    `totals` are those of the rows without an intercept, (m, c), of these weights of positives and of negatives, (m,).
    """
    whole, share = positive + negative, float(positive.sum())
    low, high = np.full(totals.shape[1], ends[0]), np.full(totals.shape[1], ends[1])
    while np.any(high - low > 1):  # the slope is at most 0 at `low`, unless that is a limit, and above 0 at `high`
        middle = (low + high) // 2
        rises = whole @ chance_of(totals + middle) > share
        low, high = np.where(rises, low, middle), np.where(rises, middle, high)
    below, above = loss_of(totals + low, positive, negative), loss_of(totals + high, positive, negative)
    return np.where(below <= above, low, high), np.minimum(below, above)


def _by_row(name: str, what: str, values: ArrayLike, X: FloatArray) -> FloatArray:
    """Return numbers of the rows, (n,)."""
    numbers = as_numbers(name, values)
    if numbers.shape != (len(X),):
        raise ValueError(f"{name} must have one {what} per row of X ({len(X)}), got shape {numbers.shape}")
    return numbers


def _range(intercept: Sequence[int] | None) -> tuple[int, int] | None:
    if intercept is None:
        return None
    ends = as_sequence("intercept_limits", intercept, "its least and its largest value")
    if len(ends) != 2 or not all(map(is_whole, ends)) or not -_LARGEST_TOTAL <= ends[0] <= ends[1] <= _LARGEST_TOTAL:
        rule = f"two whole numbers from {-_LARGEST_TOTAL:g} to {_LARGEST_TOTAL:g}, the least first"
        raise ValueError(f"intercept_limits must be {rule}, got {intercept!r:.80}")
    return int(ends[0]), int(ends[1])
