"""What all problems have in common: data, price of non-zero weights, margin, side constraints, and what follows.

A linear scorer f(x) = w·x has weights w in [-1, 1]^d that satisfy the side constraints ``A w <= b``, of which at most
``max_nonzeros`` are not 0, those of ``required`` columns at least `LEAST_REQUIRED` in size, and that meet all `demands`
on other statistics of the same rows (`ltr.exact.constraints`). Each non-zero weight has the price C; those of ``free``
columns have no price and are not counted. With ``integer = B`` the weights are whole numbers from -B to B instead,
those of required columns not 0, and the margin is one of their scores.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_float, as_numbers, as_sequence, check_matrix, is_whole
from ltr.display.notebooks import fact_table
from ltr.exact.card_rules import checked_columns
from ltr.exact.constraints import LARGEST, SIDE_TOLERANCE, Demand, LinearConstraints, check_constraints, set_fields
from ltr.exact.levels import FloatArray, IntArray, Levels, RankedItems, Tick, joined_levels
from ltr.exact.scores import Scores
from ltr.statistics import RankStatistic

Ties = Literal["resolved", "subrank"]
GainName = Literal["exp2", "linear"]
Gain = GainName | Callable[[FloatArray], ArrayLike]

LEAST_REQUIRED = 0.01
"""Least size of the weight of a required column where weights are real numbers in [-1, 1]."""

MOST_POINTS = 100
"""Largest B of ``integer = B``."""

_TINY = float(np.finfo(np.float64).smallest_subnormal)
_DOUBT = 1e-11  # share of its largest value by which a statistic, or a bound on it, may err through rounding
_LEAST_VALUE, _LARGEST_VALUE = 1e-300, 1e300  # value of a perfect ranking; the latter also bounds C


class Problem:
    """What solvers need: data, price, margin, the value of any weights, and the pairs that the value depends on.

    The fields are those of `RerankProblem`; `free` and `required` are ascending, `demanded` has each demand with a
    problem that evaluates it, and `ties` is None for a problem without ranks.
    """

    X: FloatArray
    C: float
    margin: float
    constraints: LinearConstraints | None
    max_nonzeros: int | None = None
    free: tuple[int, ...] = ()
    required: tuple[int, ...] = ()
    integer: int | None = None
    demanded: tuple[Demanded, ...] = ()
    ties: str | None = None

    @property
    def n(self) -> int:
        """Number of observations."""
        return self.X.shape[0]

    @property
    def d(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    @property
    def binary(self) -> bool:
        """Whether the problem is one list with labels 0 and 1, the case that the paper's models cover."""
        return False

    # --- what a kind of problem defines ------------------------------------------------------------------------

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the statistic at w, without the price of the weights."""
        self._undefined()

    @property
    def trivial_bound(self) -> float:
        """The statistic of a perfect ranking: no weights exceed it."""
        self._undefined()

    def appearances(self) -> tuple[IntArray, IntArray]:
        """Count the pairs in which each observation is the upper one and the lower one, (n,) each."""
        self._undefined()

    def levels(self, tick: Tick = lambda: None) -> Levels:
        """Return the pairs and statistic tables of the problem, which searches and bounds work on.

        `tick` is called every half million pairs; an exception that it raises ends the work.
        """
        self._undefined()

    def all_levels(self, tick: Tick = lambda: None) -> tuple[Levels, IntArray]:
        """Return the levels of the problem, those of its demands behind them, and the number of levels of each."""
        parts = [self.levels(tick), *(demanded.problem.levels(tick) for demanded in self.demanded)]
        return joined_levels(parts), np.array([len(part.table) for part in parts])

    def ranked_items(self) -> RankedItems | None:
        """Return the items of ranked lists, on which searches work where pairs are too many; None without ranks."""
        return None

    def content(self) -> dict[str, Any]:
        """Return the problem as a certificate file describes it, see `ltr.verify`."""
        self._undefined()

    def _common_content(self) -> dict[str, Any]:
        sides = self.constraints
        if not self.linear:
            raise ValueError("a certificate cannot state ScipConstraints: use LinearConstraints")
        return {
            "C": self.C,
            "margin": self.margin,
            "constraints": None if sides is None else {"A": sides.A.tolist(), "b": sides.b.tolist()},
            "max_nonzeros": self.max_nonzeros,
            "free": list(self.free),
            "required": list(self.required),
            "integer": self.integer,
            "X": self.X.tolist(),
        }

    def describe(self) -> str:
        """Return the problem in a few words, for error messages."""
        return f"a {type(self).__name__}"

    def __repr__(self) -> str:
        sizes = (f"{value} {name.removesuffix('s') if value == 1 else name}" for name, value in self._sizes().items())
        return f"{type(self).__name__}({', '.join(sizes)})"

    def _repr_html_(self) -> str:
        options = {
            "price C of a weight": self.C or None,
            "margin": self.margin,
            "largest number of weights": self.max_nonzeros,
            "whole numbers": None if self.integer is None else f"from -{self.integer} to {self.integer}",
            "side constraints": None if self.constraints is None else len(self.constraints.b),
            "demands": "; ".join(str(demanded.demand) for demanded in self.demanded) or None,
            "value of a perfect order": self.trivial_bound,
        }
        return fact_table(type(self).__name__, {**self._sizes(), **options})

    def _sizes(self) -> dict[str, object]:
        """Return what `repr` and notebooks show first, by name."""
        return {"rows": self.n, "features": self.d}

    def _undefined(self) -> NoReturn:
        raise TypeError(f"problem must be a RerankProblem or PairwiseProblem, got {type(self).__name__}")

    @property
    def relaxed(self) -> Problem | None:
        """A problem without demands that is easier to solve and nowhere has a smaller value, or None."""
        return None

    @property
    def step(self) -> float:
        """A number of which all values of the objective are whole multiples; 0 for none."""
        return 0.0

    @property
    def real(self) -> Problem:
        """The same problem with real weights in [-1, 1] in place of whole numbers, which are divided by `integer`."""
        if self.integer is None:
            return self
        sides, size = self.constraints, self.integer
        scaled = None if sides is None else LinearConstraints(sides.A, sides.b / size)
        margin = max(self.margin / size, _TINY)
        options: dict[str, Any] = {"integer": None, "margin": margin, "constraints": scaled}
        return dataclasses.replace(self, **options)  # type: ignore[type-var]

    # --- what follows from it ----------------------------------------------------------------------------------

    @property
    def sides(self) -> LinearConstraints:
        """The side constraints, without rows where there are none."""
        return self.constraints or _no_sides(self.d)

    @property
    def linear(self) -> bool:
        """Whether all side constraints are rows ``A w <= b``, and none are in SCIP's own terms."""
        return self.sides.linear

    @property
    def reach(self) -> float:
        """Largest size of a weight: 1, or the B of whole numbers."""
        return 1.0 if self.integer is None else float(self.integer)

    @property
    def least_required(self) -> float:
        """Least size of the weight of a required column."""
        return LEAST_REQUIRED if self.integer is None else 1.0

    @cached_property
    def pair_count(self) -> int:
        """Number of pairs, those of demands included, counted without listing them."""
        own = int(self.appearances()[0].sum())
        return own + sum(demanded.problem.pair_count for demanded in self.demanded)

    @property
    def balance(self) -> FloatArray:
        """Share of pairs in which each observation is the upper one, minus that in which it is the lower one, (n,)."""
        above, below = self.appearances()
        return (above - below) / max(1, int(above.sum()))

    @property
    def price(self) -> float:
        """C, or a smaller price that is above all that a statistic can gain, where w = 0 is feasible."""
        return min(self.C, 2 * (self.trivial_bound - self.least_value)) if self.feasible(np.zeros(self.d)) else self.C

    @property
    def least_value(self) -> float:
        """A number that no value of the statistic is below."""
        return 0.0

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether a non-zero weight of each column is counted: all but the free ones, (d,)."""
        counted = np.ones(self.d, dtype=bool)
        counted[list(self.free)] = False
        return counted

    def nonzeros(self, w: ArrayLike | Sequence[Fraction]) -> int:
        """Return the number of non-zero weights that count: those of columns that are not free."""
        return int(np.count_nonzero(np.asarray(w)[self.counted]))

    def evaluate(self, w: ArrayLike) -> float:
        """Return the objective at w, scaled into the box: the statistic minus C for each non-zero weight that counts.

        Comparisons with the margin are exact. Raises ValueError for weights of another length or not finite.
        """
        weights = self.in_box(w)
        return self.statistic_value(weights) - self.C * self.nonzeros(weights)

    def in_box(self, w: ArrayLike) -> FloatArray:
        """Return the weights as float64 of shape (d,), scaled down to ``max |w_j| = reach`` if they exceed it."""
        weights = self._checked(w)
        largest = float(np.max(np.abs(weights), initial=0.0))
        return weights / (largest / self.reach) if largest > self.reach else weights

    def _checked(self, w: ArrayLike) -> FloatArray:
        """Return weights as float64 of shape (d,); raise ValueError if they are not finite numbers of that shape."""
        weights = as_numbers("w", w)
        if weights.shape != (self.d,):
            raise ValueError(f"w must have shape ({self.d},), got {weights.shape}")
        if not np.isfinite(weights).all():
            raise ValueError(f"w must be finite, got {weights.tolist()}")
        return weights

    def feasible(self, w: ArrayLike, tolerance: float = SIDE_TOLERANCE) -> bool:
        """Whether w, scaled into the box, satisfies all that is asked; `tolerance` is that of `LinearConstraints`."""
        return self.allowed(w, tolerance) and all(demanded.met(w) for demanded in self.demanded)

    def allowed(self, w: ArrayLike, tolerance: float = SIDE_TOLERANCE) -> bool:
        """Whether w is feasible but for the demands."""
        weights = self.in_box(w)
        if self.integer is not None and np.any(weights != np.rint(weights)):
            return False
        if np.any(np.abs(weights[list(self.required)]) < self.least_required):
            return False
        if self.max_nonzeros is not None and self.nonzeros(weights) > self.max_nonzeros:
            return False
        return self.constraints is None or self.constraints.satisfied(weights, tolerance)

    def scores(self, w: FloatArray) -> Scores:
        """Return the scores at weights in the box, ready for exact comparison."""
        return Scores(self.X, w, self.margin)

    def _set_common(
        self,
        C: float,
        margin: float,
        constraints: LinearConstraints | None,
        max_nonzeros: int | None,
        free: Sequence[int],
        required: Sequence[int],
        integer: int | None,
    ) -> None:
        """Check and set the fields that all problems share; the data must be set already."""
        check_price_and_margin(C, margin)
        check_integer(integer)
        check_best_value(lambda: self.trivial_bound)
        if constraints is not None:
            check_constraints(constraints, self.d)
        if integer is not None:
            check_sums(self.X, constraints, int(integer))
        columns = checked_columns("free", free, self.d)
        needed = checked_columns("required", required, self.d)
        if both := sorted(set(columns) & set(needed)):
            raise ValueError(f"required must hold no free column: these are not counted, got {both[0]}")
        if max_nonzeros is not None:
            most = self.d - len(columns)
            if not is_whole(max_nonzeros) or not 1 <= max_nonzeros <= most:
                rule = f"an integer from 1 to {most}, the number of features that are not free, or None"
                raise ValueError(f"max_nonzeros must be {rule}, got {max_nonzeros!r}")
            if len(needed) > max_nonzeros:
                raise ValueError(f"required must hold at most max_nonzeros = {max_nonzeros} columns, got {len(needed)}")
        whole = {"max_nonzeros": max_nonzeros, "integer": integer}
        set_fields(self, **{name: None if number is None else int(number) for name, number in whole.items()})
        set_fields(self, C=float(C), margin=float(margin), constraints=constraints, free=columns, required=needed)

    def _set_demands(self, demands: Sequence[Demand | Demanded], problem_of: Callable[..., Any]) -> None:
        """Check and set the demands, each with the problem of its labels, gain, statistic and `normalize`."""
        asked = as_sequence("demands", demands, "Demand(statistic, at_least)")
        made = tuple(self._demanded(at, demand, problem_of) for at, demand in enumerate(asked))
        set_fields(self, demands=asked, demanded=made)

    def _demanded(self, at: int, demand: Demand | Demanded, problem_of: Callable[..., Any]) -> Demanded:
        if isinstance(demand, Demanded):
            return self._again(demand, problem_of)
        if not isinstance(demand, Demand):
            raise ValueError(f"demands must hold Demand(statistic, at_least), got {demand!r:.80}")
        of = self._labelled(demand.statistic, demand.labels)
        try:
            problem = problem_of(ties=demand.ties, **of, statistic=demand.statistic, normalize=demand.normalize)
        except ValueError as error:
            raise ValueError(f"demands[{at}], {demand}: {error}") from None
        set_fields(problem, X=self.X)
        if problem.trivial_bound < demand.least:
            most = f"{problem.trivial_bound:.12g}, the value of a perfect order"
            raise ValueError(f"demands[{at}], {demand}: at_least must be at most {most}, got {demand.at_least!r}")
        return Demanded(demand, problem)

    def _again(self, demanded: Demanded, problem_of: Callable[..., Any]) -> Demanded:
        """Return a demand of another problem of the same rows, as it is if rows, lists and margins are the same."""
        of, own = demanded.problem, (self.margin, self.integer)
        arrays: list[tuple[Any, Any]] = [(of.X, self.X), (of.qid, getattr(self, "qid", None))]
        if (of.margin, of.integer) == own and all(np.array_equal(one, other) for one, other in arrays):
            return demanded
        names = ("y", "gain", "statistic", "normalize", "ties")
        problem = problem_of(**{name: getattr(of, name) for name in names})
        set_fields(problem, X=self.X)
        return Demanded(demanded.demand, problem)

    def _labelled(self, statistic: RankStatistic, labels: ArrayLike | None) -> dict[str, Any]:
        """Return labels and gain for another statistic: labels that are gains as they are, or those of the problem."""
        of = {"y": labels, "gain": "linear" if statistic.kind.share_of else np.copy}
        return {name: getattr(self, name) for name in of} if labels is None else of


@lru_cache(maxsize=16)
def _no_sides(d: int) -> LinearConstraints:
    """Return side constraints of d weights without rows."""
    return LinearConstraints(np.zeros((0, d)), np.zeros(0))


class Demanded(NamedTuple):
    """A demand of a problem, and the problem of the statistic that it is about."""

    demand: Demand
    problem: Any  # a `RerankProblem`; for cards a `ltr.exact.cards.CardStatistic`

    def value(self, w: ArrayLike) -> float:
        """Return the statistic at w."""
        return self.problem.statistic_value(w)

    def met(self, w: ArrayLike) -> bool:
        """Whether w meets the demand, decided exactly."""
        value, least = self.value(w), self.demand.least
        if abs(value - float(least)) > _DOUBT * self.problem.trivial_bound:
            return value > least
        return self.problem.exact_statistic(w) >= least

    @property
    def doubtful(self) -> float:
        """The value, or bound, in floating point below which the demand is missed for sure."""
        return float(self.demand.least) - _DOUBT * self.problem.trivial_bound

    def content(self) -> dict[str, Any]:
        """Return the demand as a certificate file describes it."""
        lost = self.demand.ties == "resolved"
        return {**self.problem.ranking_content(), "at_least": self.demand.at_least, "ties_lost": lost}


def finite_features(X: ArrayLike) -> FloatArray:
    """Return a copy of the features as float64 of shape (n, d); raise ValueError if one is too large or not finite."""
    features = as_numbers("X", X).copy()
    check_matrix("X", features)
    largest = LARGEST / features.shape[1]
    if np.abs(features).max() > largest:
        row, column = np.argwhere(np.abs(features) > largest)[0]
        rule = f"at most {largest:.6g} in size where d = {features.shape[1]}, so that no score difference overflows"
        raise ValueError(f"X must be {rule}, got {float(features[row, column])!r} at row {row}, column {column}")
    return features


def sizes_of(X: FloatArray) -> FloatArray:
    """Return the largest size of each feature, 1 where all are 0, (d,)."""
    size = np.abs(X).max(axis=0)
    return np.where(size > 0, size, 1.0)


def check_pairs(problem: Problem) -> None:
    """Raise ValueError unless the problem has pairs, which all searches but that for cards work on."""
    if type(problem).levels is Problem.levels:
        raise ValueError(
            f"problem must be a RerankProblem or PairwiseProblem for this method, got {type(problem).__name__}: "
            "a CardProblem is solved by the method cards, a RiskProblem by the method lattice"
        )


def check_price_and_margin(C: float, margin: float) -> None:
    """Raise ValueError if the price or the margin is out of range."""
    if not 0 <= as_float(C) <= _LARGEST_VALUE:
        raise ValueError(f"C must be a number from 0 to 1e300, got {C!r}")
    if not 0 < as_float(margin) < math.inf:
        raise ValueError(f"margin must be a finite number > 0, got {margin!r}")


def check_integer(integer: int | None) -> None:
    """Raise ValueError unless this is the B of whole numbers from -B to B, or None."""
    if integer is not None and not (is_whole(integer) and 1 <= integer <= MOST_POINTS):
        raise ValueError(
            f"integer must be a whole number from 1 to {MOST_POINTS}, the largest size of a weight, or None, "
            f"got {integer!r}"
        )


def check_sums(X: FloatArray, constraints: LinearConstraints | None, integer: int) -> None:
    """Raise ValueError if scores or terms of side constraints overflow for whole numbers from -integer to integer."""
    numbers = (
        {"X": X} if constraints is None else {"X": X, "constraints": np.column_stack([constraints.A, constraints.b])}
    )
    for name, values in numbers.items():
        size, largest = float(np.abs(values).max(initial=0.0)), LARGEST / (integer * values.shape[1])
        if size > largest:
            rule = f"at most {largest:.6g} in size where integer = {integer}, so that no sum overflows"
            raise ValueError(f"{name} must hold numbers of {rule}, got {size!r}: scale them down")


def check_best_value(perfect: Callable[[], float]) -> None:
    """Raise ValueError if values of the statistic, of which `perfect` returns the largest, over- or underflow."""
    try:
        best = perfect()
    except OverflowError:
        best = math.inf
    if best != 0 and not _LEAST_VALUE <= abs(best) <= _LARGEST_VALUE:
        rule = "0 or from 1e-300 to 1e300, so that no sum overflows or loses its digits"
        raise ValueError(f"the value of a perfect order must be {rule}, got {best:g}: scale weights or gains")
