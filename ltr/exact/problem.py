r"""Ranking problems, independent of any solver: data, statistic, price of non-zero weights, margin, side constraints.

A linear scorer f(x) = w·x with w in [-1, 1]^d ranks the observations of each list (one query, or the only list).
Observation i has a gain >= 0, and the problem is to maximise

    sum over lists, sum over their observations i of  gain_i * a[rank_i]   -   C * #{j : w_j != 0}

over the w that satisfy the side constraints ``A w <= b``, have at most ``max_nonzeros`` non-zero weights, give every
``required`` column a weight of at least `LEAST_REQUIRED` in size, and meet all `demands` on other statistics of the
same rows (`ltr.exact.demand`). Weights of ``free`` columns have no price and are not counted. With ``integer = B`` the
weights are whole numbers from -B to B instead, those of required columns not 0, and the margin is one of their scores.
The numbers a_1 <= ... <= a_n are the weights of a rank statistic for a list of that length; rank 1 is the bottom of the
list. Binary labels are the gains 0 and 1. There are two definitions of rank:

* ``resolved``: the ranks of a permutation, the pessimistic one. The distinct gains of a list are numbered upwards, h_i
  is the *grade* of observation i, and for h_i > h_k

      i beats k  when  w·(x_i - x_k) >= margin * (h_i - h_k),      otherwise k stands above i.

  The list is ordered by the key ``w·x - margin * h``, and the higher grade stands above where keys are equal.
* ``subrank``: observation i has rank 1 + #{k in its list : w·(x_i - x_k) >= margin}.

**Counting losses is enough.** Let c_i be the number of observations of *other grades* that stand above i. Going down
the list, c never falls within one grade, so the p-th observation of the grade (p = 0, 1, ...) is the one with the p-th
smallest count c_(p). Above it stand p observations of its own grade and c_(p) others: its rank is n - p - c_(p).
Observations of one grade with equal keys may be swapped without changing the sum.

**Ties.** As the margin goes to 0 the order becomes that of the scores, with a tied lower gain above a tied higher gain,
as the paper's ResolvedRank has it for two classes.

**Why the margin grows with the grades.** With the same margin for all pairs "stands above" can be circular: scores
of 1.5, 0.75 and 0 margins for gains 3, 2, 1 put the second above the first, the third above the second, and the first
above the third. Their sum can exceed the value of the perfect ranking, and shrinking w can raise it. With the steps
above:

* No weights exceed the perfect ranking, gains descending: that holds for every permutation (rearrangement).
* Scaling w up never lowers the value. Where the keys ``s w·x - margin h`` of some observations meet at a scale s, their
  scores ascend with their grades: just below s the lower grades stand above, from s on the higher ones do. They fill
  the same places before and after; gains ascending from the top are their worst order, gains descending their best.
  So the optimum is found at ``max |w_j| = 1`` or w = 0.
* Hence the value under a margin is at most the value as the margin goes to 0.

Source: Rudin & Wang (2018), sections 2.2, 2.6 and 3; Järvelin & Kekäläinen (2002) for gains and NDCG.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_array, as_float, as_numbers, as_sequence, check_matrix, is_whole, one_of
from ltr.display.html import fact_table
from ltr.exact.card_rules import checked_columns
from ltr.exact.constraints import LARGEST, SIDE_TOLERANCE, LinearConstraints, check_constraints, set_fields
from ltr.exact.demand import Demand
from ltr.exact.levels import (
    FloatArray,
    IntArray,
    Levels,
    RankedItems,
    Tick,
    joined_levels,
    ranked_appearances,
    ranked_levels,
)
from ltr.exact.scores import Scores
from ltr.outcomes import Treatments, label_kind
from ltr.statistics import RankStatistic

RankName = Literal["resolved", "subrank"]
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

    Attributes:
        X: observations, float64 of shape (n, d).
        C: price of each non-zero weight.
        margin: score difference from which an observation beats another.
        constraints: side constraints on the weights, or None.
        max_nonzeros: largest number of non-zero weights besides the free ones, or None for no limit.
        free: columns whose weights have no price and are not counted, in ascending order.
        required: columns whose weights must not be 0 and are of at least `least_required` in size, ascending.
        integer: the B of weights that are whole numbers from -B to B, None for real weights in [-1, 1].
        demanded: demands on other statistics of the same rows, each with a problem that evaluates it.
        binary: whether the problem is one list with labels 0 and 1, the case that the paper's models cover.
        rank: definition of rank, None for a problem without ranks.
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
    rank: RankName | None = None

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
        """Whether the problem is one list with labels 0 and 1."""
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

        Args:
            tick: called every half million pairs; an exception that it raises ends the work.
        """
        self._undefined()

    def all_levels(self, tick: Tick = lambda: None) -> tuple[Levels, IntArray]:
        """Return the levels of the problem and, behind them, those of its demands, and the number of levels of each.

        The shift is that of the problem alone.
        """
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
        if sides is not None and not sides.linear:
            raise ValueError(
                f"a certificate cannot state constraints that only SCIP knows, got {type(sides).__name__}: use"
                " LinearConstraints"
            )
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
        """A problem that is easier to solve and whose value at any weights is at least as large, or None.

        Where the problem has demands, it has none.
        """
        return None

    @property
    def step(self) -> float:
        """A number of which all values of the objective are whole multiples, so that bounds are rounded; 0 for none."""
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
        """C, or a smaller price at which w = 0, if feasible, is still the best choice.

        At a price above all that a statistic can gain no other weights pay off.
        """
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
        """Return the objective at w: the statistic minus C times the number of non-zero weights that count.

        Weights beyond the box are first scaled to ``max |w_j| = reach``, which changes no order of scores. Comparisons
        with the margin are exact for the float64 numbers in `X` and `w`.

        Raises:
            ValueError: the weights have another length or are not finite.
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
        """Whether w, scaled into the box, is one of the weights that the problem is about.

        The tolerance applies to the side constraints, see `LinearConstraints`; everything else is decided exactly.
        """
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
                features = "features that are not free" if columns else "features"
                rule = (
                    f"an integer from 1 to {most}, the number of {features}, or None" if most else "None: all are free"
                )
                raise ValueError(f"max_nonzeros must be {rule}, got {max_nonzeros!r}")
            max_nonzeros = int(max_nonzeros)
            if len(needed) > max_nonzeros:
                raise ValueError(f"required must hold at most max_nonzeros = {max_nonzeros} columns, got {len(needed)}")
        set_fields(self, required=needed, integer=None if integer is None else int(integer))
        set_fields(self, C=float(C), margin=float(margin), constraints=constraints, max_nonzeros=max_nonzeros)
        set_fields(self, free=columns)

    def _set_demands(self, demands: Sequence[Demand | Demanded], problem_of: Callable[..., Any]) -> None:
        """Check and set the demands, each with the problem of its labels, gain, statistic and `normalize`."""
        asked = as_sequence("demands", demands, "Demand(statistic, at_least)")
        made = tuple(self._demanded(at, demand, problem_of) for at, demand in enumerate(asked))
        set_fields(self, demands=asked, demanded=made)

    def _demanded(self, at: int, demand: Demand | Demanded, problem_of: Callable[..., RerankProblem]) -> Demanded:
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

    def _again(self, demanded: Demanded, problem_of: Callable[..., RerankProblem]) -> Demanded:
        """Return a demand of another problem of the same rows, as it is if rows, lists and margins are the same."""
        of, own = demanded.problem, (self.margin, self.integer)
        arrays: list[tuple[Any, Any]] = [(of.X, self.X), (of.qid, getattr(self, "qid", None))]
        if (of.margin, of.integer) == own and all(np.array_equal(one, other) for one, other in arrays):
            return demanded
        names = ("y", "gain", "statistic", "normalize", "rank")
        problem = problem_of(**{name: getattr(of, name) for name in names})
        set_fields(problem, X=self.X)
        return Demanded(demanded.demand, problem)

    def _labelled(self, statistic: RankStatistic, labels: ArrayLike | None) -> dict[str, Any]:
        """Return labels and gain for another statistic: labels that are gains as they are, or those of the problem."""
        of = {"y": labels, "gain": "linear" if statistic.kind.share_of else np.copy}
        return {name: getattr(self, name) for name in of} if labels is None else of


class Demanded(NamedTuple):
    """A demand of a problem, and the problem of the statistic that it is about."""

    demand: Demand
    problem: RerankProblem

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


class _Rows(NamedTuple):
    """The observations list after list, (n,) each; where a list has m of them, its weights are those of ranks 1 to m.

    Ranks of all lists are found by one sort in this order, however many lists there are.
    """

    row: IntArray  # numbers of the observations
    list: IntArray  # number of the list, ascending
    start: IntArray  # where the list begins
    weight: FloatArray  # weights of the statistic


@dataclass(frozen=True, eq=False, init=False, repr=False)
class RerankProblem(Problem):
    """Find the weights with the largest rank statistic: binary or graded labels, one list or several.

    ``max over w in [-1, 1]^d of  sum over lists, sum_i gain_i a[rank_i]  -  C ||w||_0``. Features are used as given, so
    the margin is in units of their scores; the module docstring defines ranks and margin.

    Args:
        X: observations, (n, d), finite.
        y: label of each observation, (n,): 0 and 1, or graded relevance such as 0 to 4; or `ltr.outcomes.uplift_labels`
            of one list, for the statistic ``auuc``.
        statistic: a `RankStatistic` or its name. For binary labels in one list ``auc`` is the share of ordered pairs;
            for several lists or graded labels it is the sum of ranks, as ``wrs``.
        C: price of each non-zero weight, >= 0.
        margin: score difference from which an observation beats another, > 0; it is multiplied by the difference of
            their grades, which is 1 in lists of two grades.
        qid: list of each observation, integers (n,), in any order; None puts all into one list.
        gain: how labels become gains: ``"exp2"`` for 2^label - 1, ``"linear"`` for the label itself, or a function of
            the array of labels. Labels 0 and 1 are their own gains either way. Statistics that count hits (``hits@50``,
            ``precision@50``, ``recall@50``) take gain 1 for every label above 0, unless `gain` is a function: then its
            numbers are the values of the hits, for ``hits`` only.
        normalize: divide the gains of each list by the value of its perfect ranking and by the number of lists where
            that is above 0. The statistic is then the mean over these lists of the normalised one: NDCG for ``dcg``.
            ``precision`` and ``recall`` are shares already: theirs is the mean over the same lists.
        rank: ``"resolved"`` or ``"subrank"``.
        constraints: side constraints ``A w <= b``.
        max_nonzeros: largest number of non-zero weights, from 1 to the number of columns that are not free; None for
            no limit.
        free: numbers of columns whose weights have no price and are not counted by `max_nonzeros`, such as the score
            of a model that the other columns correct.
        required: numbers of columns that must be used: their weights are at least `LEAST_REQUIRED` in size.
        integer: B, from 1 to 100, for weights that are whole numbers from -B to B, in place of real ones in [-1, 1];
            those of required columns are then at least 1 in size, and `margin` and ``constraints`` refer to whole
            numbers. None for real weights.
        demands: rank statistics of the same rows, of these or other labels, that the weights must bring to a least
            value. They compare rows by their lists, with the same margin and ResolvedRanks. Those of another problem of
            the same rows are its `demanded`.

    Attributes:
        gains: gain of each observation, float64 of shape (n,).

    Raises:
        ValueError: an argument breaks its rule; the message has its name and the value received.

    Examples:
        >>> problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], statistic="dcg")
        >>> round(problem.evaluate([1.0]), 4), round(problem.evaluate([-1.0]), 4)
        (1.6309, 1.1309)
        >>> graded = RerankProblem([[0.0], [1.0], [2.0]], [1, 0, 2], normalize=True)
        >>> round(graded.evaluate([1.0]), 4)  # (3 * 1 + 1 * 0.5) / (3 * 1 + 1 * 0.6309)
        0.9639
        >>> points = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], integer=5)
        >>> points.feasible([3.0]), points.feasible([0.5])
        (True, False)
    """

    X: FloatArray
    y: NDArray[Any]
    statistic: RankStatistic
    C: float
    margin: float
    qid: IntArray
    gain: Gain
    normalize: bool
    rank: RankName
    constraints: LinearConstraints | None
    max_nonzeros: int | None
    free: tuple[int, ...]
    required: tuple[int, ...]
    integer: int | None
    demands: tuple[Demand | Demanded, ...]
    gains: FloatArray = field(init=False)
    treatments: Treatments | None = field(init=False, repr=False)
    demanded: tuple[Demanded, ...] = field(init=False, repr=False)

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        statistic: RankStatistic | str = "dcg",
        C: float = 0.0,
        margin: float = 1e-4,
        *,
        qid: ArrayLike | None = None,
        gain: Gain = "exp2",
        normalize: bool = False,
        rank: RankName = "resolved",
        constraints: LinearConstraints | None = None,
        max_nonzeros: int | None = None,
        free: Sequence[int] = (),
        required: Sequence[int] = (),
        integer: int | None = None,
        demands: Sequence[Demand | Demanded] = (),
    ) -> None:
        features = finite_features(X)
        named = RankStatistic.parse(statistic)
        kind = label_kind(y)
        named.check_kind(kind)
        if kind == "times":
            raise ValueError("statistic c_index has no ranks: take CardProblem, or a PairwiseProblem of its pairs")
        treatments = Treatments.of(y) if kind == "treatments" else None
        labels = as_numbers("y", y).copy() if treatments is None else np.array(y)
        if labels.shape != features.shape[:1]:
            raise ValueError(f"y must have one label per row of X ({features.shape[0]}), got shape {labels.shape}")
        one_of("rank", rank, get_args(RankName))
        set_fields(self, X=features, y=labels, qid=_list_ids(qid, len(labels)), rank=rank, gain=gain)
        gains = _gains(labels, gain) if treatments is None else treatments.gains
        set_fields(self, normalize=normalize, gains=gains, statistic=named, treatments=treatments)
        if treatments is None:
            self.statistic.check_linear()
        elif normalize or len(self.lists) > 1:
            raise ValueError("statistic auuc is one of a single list: qid must be None, and normalize False")
        if callable(gain) and self.statistic.kind.share_of in ("top", "positives"):
            rule = f"'exp2' or 'linear' for {self.statistic}, which is a share of rows: hits takes a function"
            raise ValueError(f"gain must be {rule}, got {gain!r:.80}")
        if self.statistic.kind.counts_hits and not callable(gain):
            set_fields(self, gains=(labels > 0).astype(np.float64))
        if self.statistic.kind.share_of == "positives" and not self.binary:
            set_fields(self, gains=self._shares_of_positives())
        if not self.gains.any() or (qid is None and np.all(self.gains == 1)):
            raise ValueError(f"y must hold both classes, got only {self.gains[0]:g}")
        if normalize:
            check_best_value(self._perfect)
            set_fields(self, gains=self._normalized())
        self._set_common(C, margin, constraints, max_nonzeros, free, required, integer)
        same: dict[str, Any] = {"margin": self.margin, "qid": self.qid, "integer": self.integer}
        self._set_demands(demands, lambda ties=None, **options: RerankProblem(self.X, **options, **same))

    def other(
        self,
        statistic: RankStatistic | str,
        labels: ArrayLike | None = None,
        *,
        normalize: bool = False,
        least: float | None = None,
    ) -> RerankProblem:
        """Return the problem of another statistic of the same rows, under all that is asked of weights here, without C.

        Args:
            statistic: a `RankStatistic` or its name.
            labels: labels of the rows, numbers >= 0 that are gains as they are, (n,); None for those of the problem.
            normalize: as for `RerankProblem`.
            least: value of this problem's statistic that the weights must reach; None for no such demand.
        """
        names = ("margin", "qid", "integer", "constraints", "max_nonzeros", "free", "required")
        options = {name: getattr(self, name) for name in names} | self._labelled(RankStatistic.parse(statistic), labels)
        asked = () if least is None else (Demanded(Demand(self.statistic, least, normalize=self.normalize), self),)
        demands = (*self.demanded, *asked)
        problem = RerankProblem(self.X, statistic=statistic, normalize=normalize, demands=demands, **options)
        set_fields(problem, X=self.X)
        return problem

    def _shares_of_positives(self) -> FloatArray:
        """Return the gains of hits divided by the number of positives of their list."""
        gains, rows = self.gains.copy(), self._rows
        gains[rows.row] /= np.maximum(np.bincount(rows.list, gains[rows.row]), 1.0)[rows.list]
        return gains

    def _normalized(self) -> FloatArray:
        """Return the gains divided so that the value is the mean of the normalised statistic over lists with a gain."""
        gains, best = self.gains.copy(), np.array(self._best_of_lists())
        if self.statistic.kind.share_of in ("top", "positives"):
            best = (best > 0).astype(np.float64)
        divisor = np.where(best > 0, best * np.count_nonzero(best), 1.0)
        gains[self._rows.row] /= divisor[self._rows.list]
        return gains

    # --- lists, gains and rank weights -------------------------------------------------------------------------

    @cached_property
    def lists(self) -> list[IntArray]:
        """Indices of the observations of each list, lists in the order of their `qid`."""
        order = np.argsort(self.qid, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.qid[order])) + 1)

    @cached_property
    def grades(self) -> IntArray:
        """Place of each observation's gain among the distinct gains of its list, 0 for the smallest, (n,)."""
        rows = self._rows
        order = np.lexsort((self.gains[rows.row], rows.list))  # stays within each list
        ascending = rows.row[order]
        gains = self.gains[ascending]
        steps = np.cumsum(np.diff(gains, prepend=gains[0]) != 0)
        grades = np.empty(self.n, dtype=np.int64)
        grades[ascending] = steps - steps[rows.start]
        return grades

    @cached_property
    def _rows(self) -> _Rows:
        """The observations, list after list."""
        sizes = np.array([len(members) for members in self.lists])
        weights = {size: self.statistic.weights(size) for size in np.unique(sizes).tolist()}
        return _Rows(
            np.concatenate(self.lists),
            np.repeat(np.arange(len(sizes)), sizes),
            np.repeat(np.cumsum(sizes) - sizes, sizes),
            np.concatenate([weights[size] for size in sizes.tolist()]),
        )

    @cached_property
    def _steps(self) -> IntArray:
        """The grades of `_rows`."""
        return self.grades[self._rows.row]

    @cached_property
    def _paid(self) -> tuple[IntArray, FloatArray]:
        """The places in `_rows` of observations with a gain above 0, and these gains."""
        gains = self.gains[self._rows.row]
        at = np.flatnonzero(gains)
        return at, gains[at]

    @property
    def binary(self) -> bool:
        """Whether the problem is one list with the gains 0 and 1, both of them."""
        if self.treatments is not None or len(self.lists) > 1:
            return False
        return not self.gains.all() and bool(((self.gains == 0) | (self.gains == 1)).all())

    @property
    def positives(self) -> IntArray:
        """Indices of the observations with a gain above 0."""
        return np.flatnonzero(self.gains > 0)

    @property
    def negatives(self) -> IntArray:
        """Indices of the observations with gain 0."""
        return np.flatnonzero(self.gains == 0)

    @property
    def a(self) -> FloatArray:
        """Rank weights a_1..a_n of one list; their sum over the positives plus `shift` is the statistic."""
        return self.rank_weights(self.n)

    @property
    def shift(self) -> float:
        """Constant part of the statistic: 0 except for ``auc`` with binary labels, and for ``auuc``."""
        return self._affine[1]

    @property
    def _affine(self) -> tuple[float, float]:
        """Scale and shift that turn the sum of gains times weights into the statistic."""
        if self.treatments is not None:
            return float(self.treatments.affine[0]), float(self.treatments.affine[1])
        if self.binary or self.statistic.kind.share_of == "top":
            return self.statistic.affine(len(self.positives), len(self.negatives))
        return 1.0, 0.0

    @property
    def _exact_affine(self) -> tuple[Fraction, Fraction]:
        """The same without rounding; the scale is one over a number of rows or pairs."""
        if self.treatments is not None:
            return self.treatments.affine
        scale, shift = self._affine
        exact = Fraction(-len(self.positives) - 1, 2 * len(self.negatives)) if shift else Fraction(0)
        return Fraction(1, round(1 / scale)), exact

    def rank_weights(self, length: int) -> FloatArray:
        """Return the rank weights of a list of this length, bottom of the list first."""
        return self.statistic.weights(length) * self._affine[0]

    # --- values ------------------------------------------------------------------------------------------------

    @cached_property
    def trivial_bound(self) -> float:
        """The statistic of a perfect ranking, gains descending in every list: no weights exceed it."""
        return self._perfect()

    @property
    def least_value(self) -> float:
        """A number that no value of the statistic is below: 0, or the shift of ``auuc``."""
        return 0.0 if self.treatments is None else self.shift

    def _perfect(self) -> float:
        scale, shift = self._affine
        return scale * math.fsum(self._best_of_lists()) + shift

    def _best_of_lists(self) -> list[float]:
        """Return the sum of gains times weights of a perfect ranking of each list."""
        rows = self._rows
        gains = self.gains[rows.row]
        terms = gains[np.lexsort((gains, rows.list))] * rows.weight
        return [math.fsum(own.tolist()) for own in np.split(terms, np.unique(rows.start)[1:])]

    def ranks(self, w: ArrayLike) -> IntArray:
        """Return the rank of every observation within its list at w, 1 at the bottom, in the order of `X`.

        With ``rank="resolved"`` observations of one grade and equal scores are ordered by index.
        """
        rows = self._rows
        ranks = np.empty(self.n, dtype=np.int64)
        ranks[rows.row] = 1 + self._places(self.in_box(w)) - rows.start
        return ranks

    def _places(self, w: FloatArray) -> IntArray:
        """Return where each observation of `_rows` stands among them, list behind list, 0 at the bottom of the first.

        With Subranks several may stand at one place.
        """
        scores, rows, n = self.scores(w), self._rows, self.n
        if self.rank == "resolved":
            return scores.order(rows.row, self._steps, rows.list, apart=True)
        # each observation with a handicap of one margin, and without
        ranks = scores.order(np.repeat(rows.row, 2), np.tile([1, 0], n), np.repeat(rows.list, 2))
        return np.cumsum(np.bincount(ranks[1::2], minlength=2 * n))[ranks[::2]]

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the statistic at w, without the price of the weights."""
        at, gains = self._paid
        terms = gains * self._rows.weight[self._places(self.in_box(w))[at]]
        scale, shift = self._affine
        return scale * math.fsum(terms[terms > 0].tolist()) + shift

    def exact_statistic(self, w: ArrayLike) -> Fraction:
        """Return the statistic at w without rounding its terms and their sum."""
        at, gains = self._paid
        weights = self._rows.weight[self._places(self.in_box(w))[at]]
        terms = (
            Fraction(gain) * Fraction(a) for gain, a in zip(gains.tolist(), weights.tolist(), strict=True) if a > 0
        )
        scale, shift = self._exact_affine
        return scale * sum(terms, Fraction(0)) + shift

    # --- for solvers and certificates --------------------------------------------------------------------------

    def appearances(self) -> tuple[IntArray, IntArray]:
        """Count the pairs in which each observation is the upper one and the lower one, (n,) each."""
        return ranked_appearances(self.lists, self.gains, self.rank == "subrank")

    def levels(self, tick: Tick = lambda: None) -> Levels:
        """Return the pairs and statistic tables.

        Examples:
            >>> problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], statistic="wrs")
            >>> found = problem.levels()
            >>> found.above.tolist(), found.below.tolist(), found.contribution.tolist()
            ([1, 2], [0, 0], [3.0, 2.0, 1.0])
        """
        grades = None if self.rank == "subrank" else self.grades
        return ranked_levels(self.lists, self.gains, grades, self.rank_weights, self.shift, tick)

    def ranked_items(self) -> RankedItems:
        """Return the items of the lists, which stand for the same objective as `levels`.

        Examples:
            >>> found = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], statistic="wrs").ranked_items()
            >>> found.row.tolist(), found.gain.tolist(), found.weight.tolist()
            ([1, 2, 0], [1.0, 1.0, 0.0], [1.0, 2.0, 3.0])
        """
        rows, (scale, shift), at = self._rows, self._affine, np.arange(self.n)
        starts = np.flatnonzero(rows.start == at)
        gains, steps, of = self.gains[rows.row] * scale, self._steps, rows.list
        if self.rank == "subrank":
            paying = self._paid[0]
            order = np.lexsort((np.repeat([0, 1], [len(paying), self.n]), np.append(of[paying], of)))
            at = np.append(paying, at)[order]
            steps, counts = (order < len(paying)).astype(np.int64), (order >= len(paying)).astype(np.uint8)
            gains = np.where(counts, 0.0, gains[at])
        else:
            at = np.lexsort((-steps, of))
            steps, gains, counts = steps[at], gains[at], np.ones(self.n, dtype=np.uint8)
        return RankedItems(
            row=rows.row[at].astype(np.int32),
            steps=steps,
            gain=gains,
            counts=counts,
            start=np.append(np.searchsorted(of[at], np.arange(len(starts))), len(at)),
            weight=rows.weight,
            weight_at=starts,
            shift=shift,
        )

    @cached_property
    def step(self) -> float:
        """The unit in which values are counted: where weights have no price, gains are equal, and rank weights whole.

        So it is for hits, sums of ranks and the AUC, whose unit is one pair; otherwise the step is 0.
        """
        found, weights = self.gains[self.gains > 0], self._rows.weight
        whole = self.C == 0 and bool((found == found[0]).all() and (weights == np.rint(weights)).all())
        return self._affine[0] * float(found[0]) if whole else 0.0

    @property
    def relaxed(self) -> RerankProblem | None:
        """The same problem without demands and with ResolvedRanks, or None if that is the problem itself.

        ResolvedRanks take the place of Subranks of binary labels: `ltr.verify` proves the inequality.
        """
        rank: RankName = "resolved" if self.binary else self.rank
        return dataclasses.replace(self, rank=rank, demands=()) if self.demands or rank != self.rank else None

    def content(self) -> dict[str, Any]:
        """Return the problem as a certificate file describes it, of kind ``rerank``."""
        demands = [demanded.content() for demanded in self.demanded]
        own = {"rank": self.rank, "qid": self.qid.tolist(), "demands": demands}
        return {"kind": "rerank", **self.ranking_content(), **self._common_content(), **own}

    def ranking_content(self) -> dict[str, Any]:
        """Return what a certificate file says of the statistic and its labels."""
        statistic, scale = self.statistic, 1.0
        if not self.binary and statistic.kind.counts_hits:  # what it is a share of is in the gains
            statistic, scale = RankStatistic("hits", cutoff=statistic.cutoff), self._affine[0]
        weights = [v for members in self.lists for v in statistic.weights(len(members)).tolist()]
        return {"statistic": str(statistic), **self.label_content(self.gains * scale), "a": weights}

    def label_content(self, gains: FloatArray) -> dict[str, Any]:
        """Return the gains as a certificate file has them, or the outcomes that they were made of."""
        if self.treatments is None:
            return {"gains": gains.tolist()}
        treated = self.treatments.treatment.astype(np.int64)
        return {"outcome": self.treatments.outcome.tolist(), "treatment": treated.tolist()}

    def describe(self) -> str:
        """Return the problem in a few words, for error messages."""
        data = "" if self.binary else " of several lists or graded labels"
        return f"a RerankProblem{data} with statistic '{self.statistic}' and rank={self.rank!r}"

    def _sizes(self) -> dict[str, object]:
        lists = {} if len(self.lists) == 1 else {"lists": len(self.lists)}
        positives = {"positives" if self.binary else "rows with a gain": len(self.positives)}
        return {**super()._sizes(), **lists, **positives, "statistic": str(self.statistic)}


def _gains(labels: FloatArray, gain: Gain) -> FloatArray:
    if callable(gain):
        gains = np.array(gain(labels), dtype=np.float64)
        if gains.shape != labels.shape:
            raise ValueError(f"gain must return one number per label ({len(labels)}), got shape {gains.shape}")
    elif gain in get_args(GainName):
        wrong = ~(np.isfinite(labels) & (labels >= 0))
        if wrong.any():
            raise ValueError(f"y must hold finite labels >= 0, got {labels[wrong][0]:g}")
        with np.errstate(over="ignore"):
            gains = np.exp2(labels) - 1.0 if gain == "exp2" else labels.copy()
    else:
        raise ValueError(f"gain must be 'exp2', 'linear' or a function of the labels, got {gain!r}")
    wrong = ~(np.isfinite(gains) & (gains >= 0))
    if wrong.any():
        raise ValueError(f"gains must be finite numbers >= 0, got {float(gains[wrong][0])!r}")
    return gains


def _list_ids(qid: ArrayLike | None, n: int) -> IntArray:
    if qid is None:
        return np.zeros(n, dtype=np.int64)
    ids = as_array("qid", qid)
    if ids.shape != (n,) or not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"qid must hold one integer per row of X ({n}), got {ids.dtype} of shape {ids.shape}")
    return ids.astype(np.int64)


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
