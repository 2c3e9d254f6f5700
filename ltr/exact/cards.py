r"""Scoring systems: few yes/no questions, small whole numbers of points, and a proof that none ranks better.

A *card* gives points w_j in {-most, ..., most} to at most k columns of zeros and ones, or of other numbers. Rows are
ordered by their totals ``sum_j w_j x_j``, and the card with the largest value of

    E[sum_i gain_i * a[rank_i]]  -  C * #{j : w_j != 0}

is searched, or that of a statistic of times until an event or of treatments (`ltr.outcomes`). Cards tie by design: the
expectation over all orders of rows with equal totals counts (``ties="average"``; for AUC, ties count half), or the
worst of these orders (``ties="resolved"``). Totals are exact: numbers are read as the decimals that they are printed
as, so that 0.1 + 0.2 ties with 0.3.

The search is compiled (`ltr/native/cards.h` explains it): it looks at all sets of columns, bounds each by the order
of its patterns, and searches the points of the few sets that remain. Sets with a column of other numbers follow, by the
search of `ltr.exact.points`. In `solve`, whose weights lie in [-1, 1], a card is the weights ``points / most``.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import one_of
from ltr.exact import tuning
from ltr.exact.card_rules import MOST_QUESTIONS, CardConditions, CardRule, conditions_of
from ltr.exact.constraints import Demand, set_fields
from ltr.exact.points import SMALLEST, PointSets, count_sets, run, sets_of, watch
from ltr.exact.problem import Demanded, FloatArray, Gain, IntArray, Problem, check_price_and_margin, finite_features
from ltr.exact.reranking import RerankProblem
from ltr.exact.solution import Status
from ltr.exact.state import Ending, SolveState
from ltr.native import CardSearch as _Search
from ltr.native import PointSearch
from ltr.outcomes import Times, label_kind
from ltr.statistics import LOG_LOSS, RankStatistic
from ltr.threads import available_threads

Ties = Literal["average", "resolved"]

_Found = TypeVar("_Found")

_MOST_POINTS = 100  # of a column
_MOST_ORDERS = 100_000  # largest number of ways to give points to the columns of a card, up to their signs
_EQUAL = 1e-12  # difference of equal values due to rounding, relative to the statistic's size
_TOLERANCE = 2e-13  # that of the compiled search of yes/no columns
NONE_MEETS = "no card meets the rules and demands"
_DECIMALS = 12  # most decimals of a number


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CardProblem(Problem):
    """Find the card with the largest rank statistic, for one list with labels of any kind.

    Args:
        X: answers to yes/no questions, zeros and ones, or numbers of at most 12 decimals, (n, d), which times `unit`
            are whole. Totals of these must be below 2^53.
        y: label of each row, (n,): 0 and 1, or graded; or `ltr.outcomes.survival_labels`, or `uplift_labels`.
        statistic: a `RankStatistic` or its name: ``c_index`` for times until an event, with yes/no columns only,
            ``auuc`` for treatments.
        C: price of each question of a card, >= 0.
        ties: ``"average"`` or ``"resolved"``; the latter for labels of two values.
        gain: how graded labels become gains, as for `RerankProblem`.
        demands: rank statistics of the same rows, of these or other labels, that a card must bring to a least value.
        conditions: what points a card may have; its fields may be given as arguments instead. Points go up to 100,
            questions up to 6, and ``points ** max_nonzeros`` up to 100,000; points of a column are limited to one sign
            or to 0 only. Least points above 1, the same for all columns, and directions go with yes/no columns.

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> X = [[1, 1], [1, 0], [0, 1], [0, 0]]
        >>> problem = CardProblem(X, [1, 1, 0, 0], "auc", points=3)
        >>> problem.evaluate(np.array([2, 1]) / 3), problem.evaluate(np.array([1, 1]) / 3)
        (1.0, 0.875)
    """

    X: FloatArray
    y: NDArray[Any]
    statistic: RankStatistic
    C: float
    ties: Ties
    gain: Gain
    demands: tuple[Demand, ...]
    conditions: CardConditions = field(repr=False)
    points: int = field(init=False)
    max_nonzeros: int = field(init=False)
    required: tuple[int, ...] = field(init=False)
    gains: FloatArray = field(init=False)
    demanded: tuple[Demanded, ...] = field(init=False)
    unit: int = field(init=False)
    margin: float = field(init=False)
    constraints: None = field(init=False)
    _ranking: CardStatistic = field(init=False)

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        statistic: RankStatistic | str = "auc",
        C: float = 0.0,
        *,
        ties: Ties = "average",
        gain: Gain = "exp2",
        demands: Sequence[Demand] = (),
        conditions: CardConditions | None = None,
        **options: Any,  # noqa: ANN401 (fields of `conditions`)
    ) -> None:
        features = finite_features(X)
        conditions = conditions_of(features.shape[1], conditions, options)
        points, most = conditions.points, conditions.max_nonzeros
        _check_conditions(conditions)
        unit = _unit_of(features, points * most)
        one_of("ties", ties, get_args(Ties))
        of_cards: dict[str, Any] = {"ties": ties, "points": points, "unit": unit}
        check_price_and_margin(C, 1.0)
        ranking = card_statistic(features, y, statistic, gain=gain, **of_cards)
        others = np.argwhere((features != 0) & (features != 1))
        for name, asked in (
            (str(ranking.statistic), ranking.times is not None),
            ("directions", bool(np.any(conditions.directions >= 0))),
            ("least_points above 1", int(conditions.least_points.max()) > 1),
        ):
            if asked and len(others):
                row, column = others[0]
                got = f"{float(features[row, column])!r} at row {row}, column {column}"
                raise ValueError(f"X must hold answers 0 and 1 for {name}, got {got}")
        set_fields(self, X=features, y=ranking.y, statistic=ranking.statistic, C=float(C), points=points, unit=unit)
        set_fields(self, ties=ties, gain=gain, gains=ranking.gains, _ranking=ranking, conditions=conditions)
        set_fields(self, max_nonzeros=most, required=conditions.required, margin=1.0, constraints=None)

        def problem_of(ties: Ties | None = None, **options: Any) -> CardStatistic:  # noqa: ANN401
            return card_statistic(features, **options, **of_cards | ({} if ties is None else {"ties": ties}))

        self._set_demands(demands, problem_of)
        if self.numeric.any() and any(ranking.ties != ties for ranking in self._rankings):
            raise ValueError("demands must have the ties of the card where X has other numbers than 0 and 1")

    @property
    def trivial_bound(self) -> float:
        """The statistic of a perfect ranking: no card exceeds it."""
        return self._ranking.trivial_bound

    @property
    def shift(self) -> float:
        """Constant part of the statistic: 0 except for ``auc`` with binary labels."""
        return self._ranking.shift

    @property
    def numeric(self) -> NDArray[np.bool_]:
        """Whether each column has other numbers than 0 and 1, (d,)."""
        return np.any((self.X != 0) & (self.X != 1), axis=0)

    def points_of(self, w: ArrayLike) -> IntArray:
        """Return the points of a card from its weights in the box, (d,)."""
        return np.rint(np.asarray(w, dtype=np.float64) * self.points).astype(np.int64)

    def allowed(self, w: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Whether the weights are those of a card of this problem, but for the demands."""
        weights = self.in_box(w) * self.points
        points = np.rint(weights).astype(np.int64)
        return bool(np.all(np.abs(weights - points) <= tolerance)) and self.conditions.admits(points)

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the statistic of the card at w, without the price of its questions."""
        return self._ranking.statistic_value(w)

    def appearances(self) -> tuple[IntArray, IntArray]:
        """Count the pairs in which each row is the upper one and the lower one, (n,) each."""
        return self._ranking.appearances()

    def content(self) -> dict[str, Any]:
        """Return the problem as a certificate file describes it, of kind ``card``."""
        whole = np.rint(self.X * self.unit).astype(np.int64)
        return {
            "kind": "card",
            "C": self.C,
            "points": self.points,
            "ties": self.ties,
            **self.conditions.content(),
            **self._ranking.stated(),
            "demands": [demanded.content() for demanded in self.demanded],
            "unit": self.unit,
            "X": [" ".join(map(str, row)) for row in whole.tolist()],
        }

    def _sizes(self) -> dict[str, object]:
        return {"rows": self.n, "questions": self.d, "statistic": str(self.statistic)}

    def good_cards(
        self, threshold: float, most: int = 1_000, threads: int = 1, time_limit: float | None = None
    ) -> list[tuple[float, IntArray]]:
        """Return all cards whose value is at least a threshold, with their values, best first.

        Cards of the same columns that order all possible rows alike, such as (1, 1) and (2, 2), count once. Raises
        ValueError for more cards than `most`, TimeoutError for a longer search than `time_limit`, in seconds.
        """
        end, lower = None if time_limit is None else time.monotonic() + time_limit, threshold - self.shift
        yes_no, none, full = np.flatnonzero(~self.numeric), np.zeros(self.d), False
        found: list[tuple[float, IntArray]] = []

        def complete(work: Callable[[NDArray[np.uint8]], bool]) -> None:
            if not within_time(work, end):
                raise TimeoutError(f"not all cards of at least {threshold:g} are found within {time_limit:g} seconds")

        if (search := self._search()) is not None:
            complete(lambda stop: search.search(self.max_nonzeros, threads, stop, lower, most))
            found, full = [self._card(one, yes_no) for one in search.cards], search.full
        elif self.feasible(none) and self.evaluate(none) >= threshold:
            found = [(self.evaluate(none), self.points_of(none))]
        if self.numeric.any() and not full:
            others, sets = self._point_search(), self._point_sets()
            given = (sets.columns, sets.bounds - self.shift, -math.inf, threads)
            complete(lambda stop: others.search(*given, stop, lower, most))
            found += [self._card(one, np.arange(self.d)) for one in others.collected]
            full = others.full
        if full or len(found) > most:
            raise ValueError(f"most must be larger: more than {most} cards have a value of at least {threshold:g}")
        return sorted(found, key=lambda card: (-round(card[0], 12), np.count_nonzero(card[1]), np.abs(card[1]).sum()))

    def _card(self, found: Any, columns: IntArray) -> tuple[float, IntArray]:  # noqa: ANN401 (compiled)
        """Return the value and the points, (d,), of a card that a search of some columns found."""
        value, used, points = found
        card = np.zeros(self.d, dtype=np.int64)
        card[columns[list(used)]] = points
        return value + self.shift, card

    def _search(self) -> Any:  # noqa: ANN401 (compiled)
        """Return the compiled search of the yes/no columns; None where a card needs another one."""
        yes_no = ~self.numeric
        if not yes_no[list(self.required)].all() or not yes_no.any():
            return None
        rankings, numbers = self._rankings, np.flatnonzero(yes_no)
        gains, level = np.unique([ranking.gains for ranking in rankings], axis=1, return_inverse=True)
        # a card of yes/no columns has none of the others, whose rules may then not apply
        rules = [rule for rule in self._rules if not rule.when or np.isin(numbers, rule.when).any()]
        times, none = [ranking.times for ranking in rankings], np.zeros(self.n)
        return _Search(
            X=self.X[:, yes_no].astype(np.uint8),
            level=level.reshape(-1).astype(np.int32),
            gains=gains,
            rank_weights=np.array([ranking.rank_weights(self.n)[::-1] for ranking in rankings]),
            perfect=np.array([ranking.trivial_bound - ranking.shift for ranking in rankings]),
            least=self._least,
            order=np.array([none if each is None else each.order for each in times], dtype=np.int32),
            event=np.array([none if each is None else each.event for each in times], dtype=np.uint8),
            met=partial(self._met, numbers),
            signs=np.array([2, 3, 1], dtype=np.uint8)[self._signs[yes_no] + 1],
            directions=self.conditions.directions[yes_no].astype(np.int32),
            rules=np.array([np.isin(numbers, rule.columns) for rule in rules], np.uint8).reshape(-1, len(numbers)),
            when=np.array([np.isin(numbers, rule.when) for rule in rules], np.uint8).reshape(-1, len(numbers)),
            rule_least=np.array([rule.at_least for rule in rules], dtype=np.int32),
            rule_most=np.array([rule.at_most for rule in rules], dtype=np.int32),
            fewest=int(self.conditions.least_points[0]),
            most=self.points,
            ties_lost=np.array([ranking.ties == "resolved" for ranking in rankings], dtype=np.uint8),
            price=self.C,
        )

    @property
    def _signs(self) -> IntArray:
        """The sign of the points that each column may have, 0 for any, or for none, (d,)."""
        return np.sign(self.conditions.least + self.conditions.largest)

    @property
    def _rules(self) -> tuple[CardRule, ...]:
        """All rules on columns, with the one that columns limited to 0 points are never used."""
        never = np.flatnonzero((self.conditions.least == 0) & (self.conditions.largest == 0)).tolist()
        return (*self.conditions.all_rules, *([CardRule(never, at_most=0)] if never else []))

    @property
    def _decisive(self) -> list[Demanded]:
        """The demands that some order of the rows does not meet."""
        return [demanded for demanded in self.demanded if demanded.demand.least > demanded.problem.least_value]

    @property
    def _rankings(self) -> list[Any]:
        """The statistics that decide about a card: that of the problem, and those of demands."""
        return [self._ranking, *(demanded.problem for demanded in self._decisive)]

    @property
    def _least(self) -> FloatArray:
        """The least values that demands ask for, without the constant part of their statistics."""
        return np.array([float(each.demand.least - Fraction(each.problem.shift)) for each in self._decisive])

    def _met(self, searched: IntArray, used: Sequence[int], points: Sequence[int]) -> bool:
        """Whether a card that a search of some columns found meets the demands, decided exactly."""
        w = self._card((0.0, used, points), searched)[1] / self.points
        return all(demanded.met(w) for demanded in self._decisive)

    def _point_search(self) -> Any:  # noqa: ANN401 (compiled)
        """Return the compiled search of sets with columns of other numbers."""
        signed = np.flatnonzero(self._signs)
        A = np.zeros((len(signed), self.d))
        A[np.arange(len(signed)), signed] = -self._signs[signed]
        lost, rankings = self.ties == "resolved", [demanded.problem for demanded in self._decisive]
        return PointSearch(
            X=np.ascontiguousarray(np.rint(self.X * self.unit).T),
            gains=self.gains,
            # whole totals that are equal get keys half a unit apart
            handicaps=0.5 * (self.gains > self.gains.min()) if lost else np.zeros(self.n),
            starts=np.array([0, self.n]),
            rank_weights=self._ranking.rank_weights(self.n)[::-1],
            demands=[
                (each.gains, each.rank_weights(self.n)[::-1], least, _TOLERANCE * (each.trivial_bound - each.shift))
                for each, least in zip(rankings, self._least.tolist(), strict=True)
            ],
            met=partial(self._met, np.arange(self.d)),
            A=A,
            b=np.zeros(len(signed)),
            loose=0.0,
            reach=self.points,
            multiples=SMALLEST,
            mean=not lost,
            exact=True,
            price=self.C,
            tolerance=_TOLERANCE * abs(self.trivial_bound),
        )

    def _point_sets(self, tick: Callable[[], None] = lambda: None) -> PointSets:
        """Return the sets of columns with one of other numbers, and their bounds."""
        sets = []
        for some in sets_of(self.d, self.max_nonzeros, self.required):
            kept = np.any(self.numeric[some], axis=1)
            for rule in self._rules:
                kept &= rule.admitted(some, self.d)
            sets.append(some[kept])
        assert isinstance(self._ranking, CardRanking)
        return PointSets.of(self._ranking, sets, self.C, tick, self._decisive)


class CardRanking(RerankProblem):
    """A rank statistic of cards: weights are points, totals are exact, and rows with equal totals tie."""

    times: None = None
    ties: Ties
    points: int
    unit: int

    def __init__(self, *arguments: Any, ties: Ties, points: int, unit: int, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        if ties == "resolved" and len(np.unique(self.gains)) > 2:
            raise ValueError("ties must be 'average' for labels of more than two values, got 'resolved'")
        if np.any(np.diff(self.rank_weights(self.n)) < 0):
            raise ValueError(f"statistic must not fall from rank to rank, got {self.statistic}")
        set_fields(self, ties=ties, points=points, unit=unit)

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the statistic of the card at w."""
        sums = self._sums
        terms = []
        for tied, place, end in self._tied(w):
            if self.ties == "average":
                terms.append(tied.sum() / len(tied) * (sums[end] - sums[place]))
            else:
                upper = end - int(np.count_nonzero(tied == tied[-1]))
                terms += [tied[0] * (sums[upper] - sums[place]), tied[-1] * (sums[end] - sums[upper])]
        return math.fsum(terms) + self.shift

    def exact_statistic(self, w: ArrayLike) -> Fraction:
        """Return the statistic of the card at w without rounding."""
        sums, total = self._exact_sums, Fraction(0)
        for tied, place, end in self._tied(w):
            gains = list(map(Fraction, tied.tolist()))
            if self.ties == "average":
                total += sum(gains) * (sums[end] - sums[place]) / len(gains)
            else:
                each = zip(gains, itertools.pairwise(sums[place : end + 1]), strict=True)
                total += sum(gain * (after - before) for gain, (before, after) in each)
        scale, shift = self._exact_affine
        return scale * total + shift

    @cached_property
    def _sums(self) -> FloatArray:
        sums = np.cumsum(self.rank_weights(self.n)[::-1].astype(np.longdouble)).astype(np.float64)
        return np.concatenate([[0.0], sums])

    @cached_property
    def _exact_sums(self) -> list[Fraction]:
        weights = self.statistic.weights(self.n)[::-1].tolist()
        return list(itertools.accumulate(map(Fraction, weights), initial=Fraction(0)))

    def _tied(self, w: ArrayLike) -> Iterator[tuple[FloatArray, int, int]]:
        """Yield the gains, ascending, of the rows with each total, and their places, from one to before another."""
        totals = _totals(self, w)
        order = np.lexsort((self.gains, -totals))
        gains, place = self.gains[order], 0
        for end in [*(1 + np.flatnonzero(np.diff(totals[order]))).tolist(), self.n]:
            yield gains[place:end], place, end
            place = end

    def stated(self) -> dict[str, Any]:
        """Return the statistic of a card as a certificate file describes it."""
        a = self.statistic.weights(self.n).tolist()
        return {"statistic": str(self.statistic), "a": a, **self.label_content(self.gains)}


class CardConcordance(Problem):
    """The share of comparable pairs of times in order; with equal totals a pair counts half, or nothing."""

    y: Any
    times: Times
    gains: FloatArray
    shift: float = 0.0
    gain: Gain = "linear"
    normalize: bool = False
    statistic: RankStatistic
    ties: Ties
    points: int
    unit: int

    def __init__(
        self,
        X: FloatArray,
        y: Any,  # noqa: ANN401
        statistic: RankStatistic,
        *,
        ties: Ties,
        points: int,
        unit: int,
        **_: Any,  # noqa: ANN401 (gain and others, which it does not have)
    ) -> None:
        set_fields(self, X=X, y=y, statistic=statistic, times=Times.of(y), ties=ties, points=points, unit=unit)
        set_fields(self, margin=1.0, C=0.0, constraints=None, gains=np.zeros(len(X)))
        if len(self.times) != len(X):
            raise ValueError(f"y must have one label per row of X ({len(X)}), got {len(self.times)}")

    @property
    def trivial_bound(self) -> float:
        """The value of an order with all comparable pairs in order."""
        return 1.0

    def rank_weights(self, length: int) -> FloatArray:
        """Return zeros: ranks have no weights."""
        return np.zeros(length)

    def appearances(self) -> tuple[IntArray, IntArray]:
        """Count the comparable pairs in which each row is the first one and the later one, (n,) each."""
        first = np.sort(self.times.order[self.times.event])
        return self.times.later, np.searchsorted(first, self.times.order, "left").astype(np.int64)

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the statistic of the card at w."""
        return float(self.exact_statistic(w))

    def exact_statistic(self, w: ArrayLike) -> Fraction:
        """Return the statistic of the card at w without rounding."""
        tied = 1 if self.ties == "average" else 0
        won, equal = self.times.ordered(_totals(self, w))
        return Fraction(2 * won + tied * equal, 2 * self.times.pairs)

    def stated(self) -> dict[str, Any]:
        """Return the statistic of a card as a certificate file describes it."""
        fields = {"time": self.times.time, "event": self.times.event.astype(np.int64)}
        return {"statistic": str(self.statistic), **{name: values.tolist() for name, values in fields.items()}}

    def ranking_content(self) -> dict[str, Any]:
        """Return the statistic of a demand as a certificate file describes it."""
        return self.stated()


CardStatistic = CardRanking | CardConcordance
"""A statistic of cards."""


def card_statistic(X: FloatArray, y: Any, statistic: RankStatistic | str, **options: Any) -> CardStatistic:  # noqa: ANN401
    """Return the statistic of cards for the rows of X and labels of the kind that it is about."""
    parsed = RankStatistic.parse(statistic)
    parsed.check_kind(label_kind(y))
    if parsed.kind.labels == "times":
        return CardConcordance(X, y, parsed, **options)
    return CardRanking(X, y, parsed, **options)


def _totals(problem: CardStatistic, w: ArrayLike) -> IntArray:
    """Return the total of each row, in units of the numbers of X, at weights w."""
    points = np.rint(problem.in_box(w) * problem.points).astype(np.int64)
    used = np.flatnonzero(points)
    totals: IntArray = np.rint(problem.X[:, used] * problem.unit).astype(np.int64) @ points[used]
    return totals


@dataclass(frozen=True)
class CardSearch:
    """The search for the best card, as a method of `ltr.exact.solve`; without `threads` it takes all processors."""

    threads: int | None = None

    def check(self, problem: Problem) -> None:
        """Accept a `CardProblem`."""
        if not isinstance(problem, CardProblem):
            raise ValueError(f"method cards solves a CardProblem, got {problem.describe()}")

    def run(self, state: SolveState) -> Ending:
        """Search all cards; offer each better one."""
        problem = state.problem
        assert isinstance(problem, CardProblem)
        threads, simple = self.threads or available_threads(), not problem.numeric.any()
        if (search := problem._search()) is not None:
            self._search_questions(state, problem, search, threads)
        if simple and state.value == -math.inf:
            return Ending(Status.INFEASIBLE, NONE_MEETS)
        if simple or state.gap <= state.limits.gap:
            return Ending(Status.OPTIMAL)
        number = count_sets(problem.d, problem.max_nonzeros, len(problem.required))
        if number > tuning.MOST_BOUNDED:
            return Ending(Status.HEURISTIC, f"{number} sets of columns are too many: only yes/no columns were searched")
        ending = run(state, problem._point_search(), problem._point_sets(state.check), threads, problem.shift)
        assert ending is not None  # exact totals leave nothing undecided
        infeasible = ending.status is Status.INFEASIBLE and problem.demanded
        return Ending(ending.status, NONE_MEETS) if infeasible else ending

    def _search_questions(self, state: SolveState, problem: CardProblem, search: Any, threads: int) -> None:  # noqa: ANN401
        """Search the cards of yes/no columns, with the bound of all cards where there are no others."""
        yes_no, offered = np.flatnonzero(~problem.numeric), -math.inf

        def poll() -> None:
            nonlocal offered
            value, points = problem._card(search.best, yes_no)
            if value > offered:
                offered = value
                state.offer(points / problem.points)
            state.nodes = search.supports

        try:
            watch(state, lambda stop: bool(search.search(problem.max_nonzeros, threads, stop)), poll)
        finally:
            value, points = problem._card(search.best, yes_no)
            if value > -math.inf:
                value = problem.evaluate(points / problem.points)
                if state.value - value <= _EQUAL * state.size:  # of cards of equal value the one that it prefers
                    state.weights, state.value = points / problem.points, value
                if len(yes_no) == problem.d:
                    state.prove(search.bound + problem.shift)


def within_time(work: Callable[[NDArray[np.uint8]], _Found], end: float | None) -> _Found:
    """Return what compiled work returns; it is stopped at a time, or by Ctrl-C."""
    stop = np.zeros(1, np.uint8)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work, stop)
        try:
            wait([done], None if end is None else max(0.0, end - time.monotonic()))
        finally:
            stop[0] = 1
    return done.result()


def _check_conditions(conditions: CardConditions) -> None:
    """Raise ValueError unless the search of cards knows the conditions."""
    points, most, sizes = conditions.points, conditions.max_nonzeros, np.unique(conditions.least_points).tolist()
    fitting = next((k for k in range(MOST_QUESTIONS, 0, -1) if points**k <= _MOST_ORDERS), 0)
    for name, right, rule, got in (
        ("points", points <= _MOST_POINTS, f"an integer from 1 to {_MOST_POINTS}", points),
        ("max_nonzeros", most <= MOST_QUESTIONS, f"an integer from 1 to {MOST_QUESTIONS}", most),
        ("max_nonzeros", most <= fitting, f"at most {fitting} for points = {points}", most),
        ("free", not conditions.free, "empty for a rank statistic", conditions.free),
        ("least_points", len(sizes) == 1 and sizes[0] <= points, f"an integer from 1 to points ({points})", sizes),
    ):
        if not right:
            raise ValueError(f"{name} must be {rule}, got {got}")
    for j, (low, high) in enumerate(conditions.point_limits.tolist()):
        if not (low in (-points, 0) and high in (0, points)):
            rule = f"-{points} to {points}, 0 to {points}, -{points} to 0, or 0 to 0"
            hint = f"the search for a rank statistic knows no others, statistic {LOG_LOSS!r} does"
            raise ValueError(f"point_limits must be {rule}, got {low} to {high} for column {j}: {hint}")


def _unit_of(X: FloatArray, most: int) -> int:
    """Return the power of ten that makes all numbers whole; raise ValueError if totals of them would not be exact."""
    for decimals in range(_DECIMALS + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # of numbers that are too large anyway
            wrong = np.round(X, decimals) != X
        if not wrong.any():
            break
    unit, worst, rule = 10**decimals, int(np.argmax(wrong)), f"at most {_DECIMALS} decimals, round them"
    if not wrong.any():
        if np.abs(X).max() * unit * most < 2.0**53:
            return unit
        worst, rule = int(np.argmax(np.abs(X))), f"fewer digits, so that totals of {unit} times these stay below 2^53"
    row, column = divmod(worst, X.shape[1])
    raise ValueError(f"X must hold numbers of {rule}: got {float(X[row, column])!r} at row {row}, column {column}")
