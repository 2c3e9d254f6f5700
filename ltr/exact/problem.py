r"""The reranking problem, free of any solver: data, statistic, price of weights, margin, constraints on w.

For a linear scorer f(x) = w·x with w in [-1, 1]^d, positive i beats k when w·(x_i - x_k) >= margin. The
problem is to maximise

    sum over positives of a[rank_i]  -  C * #{j : w_j != 0}

with the weights `a` of a rank statistic, over the w that satisfy the side constraints ``A w <= b`` and have at most
``max_nonzeros`` weights other than 0, and one of two rank definitions:

* ``resolved``: let c_i be the number of negatives that positive i does not beat, sorted ascending
  c_(0) <= c_(1) <= ...; the positives hold the ranks n - p - c_(p), p = 0, 1, ... (ranks 1 to n). This is the
  paper's ResolvedRank, for ties between positives do not change the sum.
* ``subrank``: positive i has rank 1 + #{k : i beats k}, over all observations k.

Source: Rudin & Wang (2018), sections 2.6 and 3; the identity for ResolvedRank is proven in `resolved_value`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_float, as_numbers, is_whole
from ltr.exact.scores import Scores
from ltr.statistics import RankStatistic

__all__ = ["SIDE_TOLERANCE", "LinearConstraints", "Problem", "RerankProblem", "resolved_value"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RankName = Literal["resolved", "subrank"]

SIDE_TOLERANCE = 1e-9
"""Share of the size of its terms by which weights may exceed a side constraint, see `LinearConstraints`."""

_LARGEST = float(np.finfo(np.float64).max) / 4  # of the sum of an observation's |x_j|, or of a row of side constraints
_TINY = float(np.finfo(np.float64).smallest_subnormal)
_LEAST_VALUE, _LARGEST_VALUE = 1e-300, 1e300  # of a perfect order; the largest price


@dataclass(frozen=True, eq=False)
class LinearConstraints:
    """Side constraints ``A w <= b`` on the weights.

    Weights satisfy row r where

        sum_j A_rj w_j  <=  b_r + SIDE_TOLERANCE * (|b_r| + sum_j |A_rj w_j|),

    so equalities, written as two rows, can hold in floating point, and a row with b_r = 0 is about the direction of w
    alone. A row with b_r = 0 and one term is about its sign: there the tolerance allows nothing.

    Attributes:
        A: float64 of shape (rows, d).
        b: float64 of shape (rows,).

    Raises:
        ValueError: shapes that do not fit, or numbers that are not finite or so large that sums of them are not.

    Examples:
        >>> bool(LinearConstraints([[1.0, -1.0]], [0.0]).satisfied(np.array([0.2, 0.5])))  # w_0 <= w_1
        True
    """

    A: FloatArray
    b: FloatArray

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        rows = np.atleast_2d(as_numbers("constraints: A", A).copy())
        limits = np.atleast_1d(as_numbers("constraints: b", b).copy())
        if rows.ndim != 2 or limits.shape != rows.shape[:1]:
            raise ValueError(f"constraints: A must be (rows, d) and b (rows,), got {rows.shape} and {limits.shape}")
        for name, values in (("A", rows), ("b", limits)):
            if not np.isfinite(values).all():
                raise ValueError(f"constraints: {name} must be finite, got {float(values[~np.isfinite(values)][0])!r}")
        given, largest = np.abs(np.column_stack([rows, limits])).max(initial=0.0), _LARGEST / (rows.shape[1] + 1)
        if given > largest:
            rule = f"at most {largest:.6g} where d = {rows.shape[1]}, so that no sum overflows"
            raise ValueError(f"constraints: numbers must be {rule} in size, got {float(given)!r}")
        set_fields(self, A=rows, b=limits)

    @property
    def scaled(self) -> tuple[FloatArray, FloatArray]:
        """A and b, each row divided by a power of two that leaves its largest number between 1/2 and 1.

        The rule is the same; solvers whose own tolerance is absolute need rows of that size.
        """
        _, exponent = np.frexp(np.maximum(np.abs(self.A).max(axis=1, initial=0.0), np.abs(self.b)))
        return np.ldexp(self.A, -exponent[:, None]), np.ldexp(self.b, -exponent)

    def satisfied(self, w: FloatArray, tolerance: float = SIDE_TOLERANCE) -> bool:
        """Whether w satisfies all rows up to `tolerance`, decided exactly."""
        with np.errstate(over="ignore", invalid="ignore"):
            terms = self.A * w
            size = np.abs(self.b) + np.abs(terms).sum(axis=1)
            excess = terms.sum(axis=1) - self.b - tolerance * size
            error = (terms.shape[1] + 8) * (2.0**-52 * size + _TINY)
            unsure = ~(np.abs(excess) > error)  # an overflow (inf or nan) too
        if np.any((excess > 0) & ~unsure):
            return False
        return all(_satisfied_exactly(self.A[r], self.b[r], w, tolerance) for r in np.flatnonzero(unsure))


class Problem:
    """What solvers need of a problem: data, price, margin, and the value of any weights.

    Attributes:
        X: observations, float64 of shape (n, d).
        C: price of each non-zero weight.
        margin: what a score difference must reach to count.
        constraints: side constraints on the weights, or None.
        max_nonzeros: most weights that may differ from 0, or None.
    """

    X: FloatArray
    C: float
    margin: float
    constraints: LinearConstraints | None
    max_nonzeros: int | None = None

    @property
    def n(self) -> int:
        """Number of observations."""
        return self.X.shape[0]

    @property
    def d(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    def statistic_value(self, w: ArrayLike) -> float:
        """The statistic at w, without the price of the weights."""
        raise NotImplementedError

    @property
    def trivial_bound(self) -> float:
        """The statistic of a perfect ranking: no weights exceed it."""
        raise NotImplementedError

    @property
    def price(self) -> float:
        """C, or a smaller price with which no weights but w = 0 are worth their price either, where w = 0 is allowed.

        Every statistic is at least 0, so a price above its best value rules all other weights out.
        """
        return min(self.C, 2 * self.trivial_bound) if self.feasible(np.zeros(self.d)) else self.C

    def evaluate(self, w: ArrayLike) -> float:
        """The objective at w: statistic minus C times the number of non-zero weights.

        Weights beyond the box are first scaled to ``max |w_j| = 1``: that changes no order of scores. Comparisons
        with the margin are decided exactly for the float64 numbers in `X` and `w`.

        Raises:
            ValueError: weights of another length or not finite.
        """
        weights = self.in_box(w)
        return self.statistic_value(weights) - self.C * int(np.count_nonzero(weights))

    def in_box(self, w: ArrayLike) -> FloatArray:
        """The weights as float64 of shape (d,), scaled down to ``max |w_j| = 1`` where they exceed it."""
        weights = as_numbers("w", w)
        if weights.shape != (self.d,):
            raise ValueError(f"w must have shape ({self.d},), got {weights.shape}")
        if not np.isfinite(weights).all():
            raise ValueError(f"w must be finite, got {weights.tolist()}")
        largest = float(np.max(np.abs(weights), initial=0.0))
        return weights / largest if largest > 1 else weights

    def feasible(self, w: ArrayLike, tolerance: float = SIDE_TOLERANCE) -> bool:
        """Whether w (taken into the box first) satisfies the side constraints and has few enough non-zero weights.

        The tolerance is for the side constraints, see `LinearConstraints`; non-zero weights are counted exactly.
        """
        weights = self.in_box(w)
        if self.max_nonzeros is not None and np.count_nonzero(weights) > self.max_nonzeros:
            return False
        return self.constraints is None or self.constraints.satisfied(weights, tolerance)

    def scores(self, w: FloatArray) -> Scores:
        """The scores at weights in the box, to be compared exactly."""
        return Scores(self.X, w, self.margin)


@dataclass(frozen=True, eq=False)
class RerankProblem(Problem):
    """Find the weights with the largest true rank statistic on a list of labelled observations.

    ``max over w in [-1, 1]^d of  CLRS(w) - C ||w||_0``, features used as given (the margin refers to them).

    Args:
        X: observations, (n, d), finite.
        y: labels, (n,), 0 or 1, both present.
        statistic: a `RankStatistic` or its name.
        C: price of each non-zero weight, >= 0.
        margin: score difference from which an observation beats another, > 0.
        rank: ``"resolved"`` (default) or ``"subrank"``.
        constraints: side constraints ``A w <= b``.
        max_nonzeros: most weights that may differ from 0, 1 to d; None for no limit.

    Raises:
        ValueError: an argument against its rule, named with the value received.

    Examples:
        >>> problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], statistic="dcg")
        >>> round(problem.evaluate([1.0]), 4), round(problem.evaluate([-1.0]), 4)
        (1.6309, 1.1309)
    """

    X: FloatArray
    y: IntArray
    statistic: RankStatistic = field(default_factory=lambda: RankStatistic("dcg"))
    C: float = 0.0
    margin: float = 1e-4
    rank: RankName = "resolved"
    constraints: LinearConstraints | None = None
    max_nonzeros: int | None = None

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        statistic: RankStatistic | str = "dcg",
        C: float = 0.0,
        margin: float = 1e-4,
        *,
        rank: RankName = "resolved",
        constraints: LinearConstraints | None = None,
        max_nonzeros: int | None = None,
    ) -> None:
        features = finite_features(X)
        labels = np.asarray(y)
        if labels.shape != features.shape[:1]:
            raise ValueError(f"y must have one label a row of X ({features.shape[0]}), got shape {labels.shape}")
        known = (labels == 0) | (labels == 1)
        if not np.all(known):
            raise ValueError(f"y must hold the labels 0 and 1, got {labels[~known].tolist()[0]!r}")
        if np.all(labels == 0) or np.all(labels == 1):
            raise ValueError(f"y must hold both classes, got only {int(labels[0]) if labels.size else 'no label'}")
        check_rank(rank)
        set_fields(self, X=features, y=labels.astype(np.int64), statistic=RankStatistic.parse(statistic), rank=rank)
        set_prices(self, C, margin, constraints, max_nonzeros)
        self.statistic.weights(self.n)  # a user's own weights must fit the list

    @property
    def positives(self) -> IntArray:
        """Indices of the positive observations."""
        return np.flatnonzero(self.y == 1)

    @property
    def negatives(self) -> IntArray:
        """Indices of the negative observations."""
        return np.flatnonzero(self.y == 0)

    @property
    def a(self) -> FloatArray:
        """Weights a_1..a_n, scaled so that their sum over the positives plus `shift` is the statistic."""
        return self.statistic.weights(self.n) * self._affine[0]

    @property
    def shift(self) -> float:
        """The constant that the statistic adds to the sum (0 except for ``auc``)."""
        return self._affine[1]

    @property
    def _affine(self) -> tuple[float, float]:
        n_pos = int(self.y.sum())
        return self.statistic.affine(n_pos, self.n - n_pos)

    @property
    def trivial_bound(self) -> float:
        """The statistic of a perfect ranking: every positive above every negative."""
        return self.statistic.best(self.n, int(self.y.sum()))

    def ranks(self, w: ArrayLike) -> IntArray:
        """Ranks (1 at the bottom, n at the top) of the positives at w, in the order of `positives`.

        With ``rank="resolved"`` positives that lose to equally many negatives are ordered by index.
        """
        weights = self.in_box(w)
        positives = self.positives
        others = np.arange(self.n) if self.rank == "subrank" else self.negatives
        beaten = count_beaten(self.scores(weights), positives, others)
        if self.rank == "subrank":
            return 1 + beaten
        lost = len(others) - beaten
        place = np.argsort(np.argsort(lost, kind="stable"), kind="stable")
        return self.n - place - lost

    def statistic_value(self, w: ArrayLike) -> float:
        """The rank statistic at w, without the price of the weights."""
        return self.statistic.value(self.ranks(w), self.n)


def resolved_value(a: FloatArray, lost: IntArray) -> float:
    r"""``sum over p of a[n - p - c_(p)]`` for the counts c_i of negatives that each positive does not beat.

    Proof that this is the ResolvedRank statistic. Order the list by score, ties pessimistically, so that a
    positive with c_i negatives at or above it stands below exactly those negatives. Positives that follow each
    other in the list have c nondecreasing, so the p-th positive from the top (p = 0, 1, ...) is one with c = c_(p);
    above it stand p positives and c_(p) negatives: its rank is n - p - c_(p). Swapping positives of equal score
    changes neither p nor c_(p), so the order among tied positives does not matter.

    Args:
        a: weights a_1..a_n.
        lost: c_i of each positive, any order.
    """
    ranks = len(a) - np.arange(len(lost)) - np.sort(lost)
    return math.fsum(a[ranks - 1])


def count_beaten(scores: Scores, above: IntArray, below: IntArray) -> IntArray:
    """Return how many of `below` each observation of `above` beats."""
    rows, steps = np.append(above, below), np.repeat([1, 0], [len(above), len(below)])
    ranks = scores.order(rows, steps)
    standing = np.bincount(ranks[len(above) :], minlength=len(rows))
    return np.cumsum(standing)[ranks[: len(above)]]


def _satisfied_exactly(row: FloatArray, limit: float, w: FloatArray, tolerance: float) -> bool:
    terms = [Fraction(a) * Fraction(v) for a, v in zip(row.tolist(), w.tolist(), strict=True) if a and v]
    size = sum(map(abs, terms), abs(Fraction(limit)))
    return sum(terms, Fraction(0)) <= Fraction(limit) + Fraction(tolerance) * size


def finite_features(X: ArrayLike) -> FloatArray:
    """A copy of the features as float64 of shape (n, d); ValueError names what is not finite or too large."""
    features = as_numbers("X", X).copy()
    if features.ndim != 2 or features.shape[0] < 1 or features.shape[1] < 1:
        raise ValueError(f"X must be 2-D with at least one row and one column, got shape {features.shape}")
    if not np.isfinite(features).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        raise ValueError(f"X must be finite, got {float(features[row, column])!r} at row {row}, column {column}")
    largest = _LARGEST / features.shape[1]
    if np.abs(features).max() > largest:
        row, column = np.argwhere(np.abs(features) > largest)[0]
        rule = f"at most {largest:.6g} in size where d = {features.shape[1]}, so that no score difference overflows"
        raise ValueError(f"X must be {rule}, got {float(features[row, column])!r} at row {row}, column {column}")
    return features


def set_fields(frozen: object, **fields: object) -> None:
    """Set fields of a frozen dataclass from within its constructor, arrays read-only from then on."""
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(frozen, name, value)


def check_price_and_margin(C: float, margin: float) -> None:
    """ValueError for a price or a margin that no problem takes."""
    if not 0 <= as_float(C) <= _LARGEST_VALUE:
        raise ValueError(f"C must be a number from 0 to 1e300, got {C!r}")
    if not 0 < as_float(margin) < math.inf:
        raise ValueError(f"margin must be a finite number > 0, got {margin!r}")


def check_best_value(problem: Problem) -> None:
    """ValueError for a statistic whose values overflow or underflow float64."""
    try:
        best = problem.trivial_bound
    except OverflowError:
        best = math.inf
    if best != 0 and not _LEAST_VALUE <= best <= _LARGEST_VALUE:
        rule = "0 or from 1e-300 to 1e300, so that no sum overflows or loses its digits"
        raise ValueError(f"the value of a perfect order must be {rule}, got {best:g}: scale weights or gains")


def check_rank(rank: str) -> None:
    """ValueError for what is no rank definition."""
    if rank not in get_args(RankName):
        raise ValueError(f"rank must be 'resolved' or 'subrank', got {rank!r}")


def check_constraints(constraints: LinearConstraints, d: int) -> None:
    """ValueError for what are no side constraints on d weights."""
    if not isinstance(constraints, LinearConstraints):
        raise ValueError(f"constraints must be LinearConstraints(A, b) or None, got {constraints!r}")
    if constraints.A.shape[1] != d:
        raise ValueError(f"constraints: A must have {d} columns, got {constraints.A.shape[1]}")


def set_prices(
    problem: Problem,
    C: float,
    margin: float,
    constraints: LinearConstraints | None,
    max_nonzeros: int | None = None,
) -> None:
    """Check and set what every problem has beside its data."""
    check_price_and_margin(C, margin)
    check_best_value(problem)
    if constraints is not None:
        check_constraints(constraints, problem.d)
    if max_nonzeros is not None:
        if not is_whole(max_nonzeros) or not 1 <= max_nonzeros <= problem.d:
            rule = f"an integer from 1 to {problem.d}, the number of features, or None"
            raise ValueError(f"max_nonzeros must be {rule}, got {max_nonzeros!r}")
        max_nonzeros = int(max_nonzeros)
    set_fields(problem, C=float(C), margin=float(margin), constraints=constraints, max_nonzeros=max_nonzeros)
