r"""Scoring systems: few yes/no questions, small whole numbers of points, and a proof that none ranks better.

A *card* gives points w_j in {-most, ..., most} to the columns of a matrix of zeros and ones, at most k of them other
than 0. The total of a row is ``sum_j w_j x_j``, and rows are ordered by their totals. The search finds the card with
the largest value of

    E[sum_i gain_i * a[rank_i]]  -  C * #{j : w_j != 0}.

Cards tie by design, so the expectation over all orders of rows with equal totals is what counts
(``ties="average"``; for AUC, ties count half). With ``ties="lost"`` it is the worst of these orders, as for other
weights. The search is compiled (`ltr/native/cards.cpp` explains it): it looks at all sets of columns, bounds each by
the order of its patterns, and searches the points of the few sets that remain.

In `solve`, whose weights lie in [-1, 1], a card is the weights ``points / most``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_numbers, as_sequence, is_whole, one_of
from ltr.exact.problem import FloatArray, Gain, IntArray, Problem, RerankProblem, finite_features, set_fields
from ltr.exact.solution import Status
from ltr.exact.state import Ending, SolveState, Stopped
from ltr.native import CardSearch as _Search
from ltr.statistics import RankStatistic
from ltr.threads import available_threads

Ties = Literal["average", "lost"]

MOST_QUESTIONS = 6
"""Largest number of questions that the search can prove."""

_MOST_ORDERS = 100_000  # largest number of ways to give points to the columns of a card, up to their signs
_EQUAL = 1e-12  # difference of equal values due to rounding, relative to the statistic's size
_PAUSE = 0.02  # seconds between two looks at limits and interrupts


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CardProblem(Problem):
    """Find the card with the largest rank statistic, for one list with binary or graded labels.

    Args:
        X: answers to yes/no questions, zeros and ones, (n, d).
        y: label of each row, (n,): 0 and 1, or graded.
        statistic: a `RankStatistic` or its name.
        C: price of each question of a card, >= 0.
        points: largest number of points of an answer, from 1 to 100.
        max_nonzeros: largest number of questions of a card, from 1 to 6; ``points ** max_nonzeros`` must be at most
            100,000.
        ties: ``"average"`` or ``"lost"``; the latter for labels of two values.
        signs: for each column, 1 for points above 0, -1 for points below, 0 for any, (d,); None for any.
        groups: number of the group of each column, or -1, (d,): a card has at most one column of a group, such as the
            thresholds of one feature; None for no groups.
        required: columns that every card must have.
        gain: how graded labels become gains, as for `RerankProblem`.

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> X = [[1, 1], [1, 0], [0, 1], [0, 0]]
        >>> problem = CardProblem(X, [1, 1, 0, 0], "auc", points=3)
        >>> problem.evaluate(np.array([2, 1]) / 3), problem.evaluate(np.array([1, 1]) / 3)
        (1.0, 0.875)
    """

    X: FloatArray
    y: FloatArray
    statistic: RankStatistic
    C: float
    points: int
    max_nonzeros: int
    ties: Ties
    signs: IntArray
    groups: IntArray
    required: tuple[int, ...]
    gain: Gain
    gains: FloatArray = field(init=False)
    margin: float = field(init=False)
    constraints: None = field(init=False)
    free: tuple[int, ...] = field(init=False)
    _ranking: RerankProblem = field(init=False, repr=False)

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        statistic: RankStatistic | str = "auc",
        C: float = 0.0,
        *,
        points: int = 5,
        max_nonzeros: int = 4,
        ties: Ties = "average",
        signs: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        required: Sequence[int] = (),
        gain: Gain = "exp2",
    ) -> None:
        features = finite_features(X)
        wrong = (features != 0) & (features != 1)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise ValueError(
                f"X must hold zeros and ones, got {features[row, column]:g} at row {row}, column {column}: "
                "ltr.cards.Questions turns other columns into yes/no questions"
            )
        ranking = RerankProblem(features, y, statistic, C=C, gain=gain)  # checks labels, statistic and price
        n, d = features.shape
        weights = ranking.rank_weights(n)
        if np.any(np.diff(weights) < 0):
            raise ValueError(f"statistic must not fall from rank to rank, got {ranking.statistic}")
        if not is_whole(points) or not 1 <= points <= 100:
            raise ValueError(f"points must be an integer from 1 to 100, got {points!r}")
        if not is_whole(max_nonzeros) or not 1 <= max_nonzeros <= MOST_QUESTIONS:
            raise ValueError(f"max_nonzeros must be an integer from 1 to {MOST_QUESTIONS}, got {max_nonzeros!r}")
        if points**max_nonzeros > _MOST_ORDERS:
            most = next(k for k in range(MOST_QUESTIONS, 0, -1) if points**k <= _MOST_ORDERS)
            raise ValueError(f"max_nonzeros must be at most {most} for points = {points}, got {max_nonzeros}")
        one_of("ties", ties, get_args(Ties))
        if ties == "lost" and len(np.unique(ranking.gains)) > 2:
            raise ValueError("ties must be 'average' for labels of more than two values, got 'lost'")
        own_signs = _whole("signs", np.zeros(d) if signs is None else signs, d, -1, 1)
        own_groups = _whole("groups", np.full(d, -1) if groups is None else groups, d, -1, 2**31 - 1)
        columns = as_sequence("required", required, "column numbers")
        if not all(is_whole(j) and 0 <= j < d for j in columns) or len(set(columns)) < len(columns):
            raise ValueError(f"required must hold different column numbers from 0 to {d - 1}, got {columns!r}")
        if len(columns) > max_nonzeros:
            raise ValueError(f"required must hold at most {max_nonzeros} columns, got {len(columns)}")
        of = own_groups[[int(j) for j in columns]]
        if len(set(of[of >= 0].tolist())) < np.count_nonzero(of >= 0):
            raise ValueError(f"required must hold at most one column of a group, got {columns!r}")
        set_fields(self, X=features, y=ranking.y, statistic=ranking.statistic, C=ranking.C, points=int(points))
        set_fields(self, max_nonzeros=int(max_nonzeros), ties=ties, signs=own_signs, groups=own_groups, gain=gain)
        set_fields(self, required=tuple(sorted(map(int, columns))), gains=ranking.gains, _ranking=ranking)
        set_fields(self, margin=ranking.margin, constraints=None, free=())

    @property
    def binary(self) -> bool:
        """Whether the gains are 0 and 1."""
        return self._ranking.binary

    @property
    def trivial_bound(self) -> float:
        """The statistic of a perfect ranking: no card exceeds it."""
        return self._ranking.trivial_bound

    @property
    def rank_weights(self) -> FloatArray:
        """Rank weights from the top of the list; the statistic is their sum over the gains plus `shift`, (n,)."""
        return self._ranking.rank_weights(self.n)[::-1]

    @property
    def shift(self) -> float:
        """Constant part of the statistic: 0 except for ``auc`` with binary labels."""
        return self._ranking.shift

    def points_of(self, w: ArrayLike) -> IntArray:
        """Return the points of a card from its weights in the box, (d,)."""
        return np.rint(np.asarray(w, dtype=np.float64) * self.points).astype(np.int64)

    def in_box(self, w: ArrayLike) -> FloatArray:
        """Return weights as an array (d,), scaled into [-1, 1]."""
        return self._ranking.in_box(w)

    def feasible(self, w: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Whether the weights are those of a card of this problem."""
        weights = self.in_box(w) * self.points
        points = np.rint(weights).astype(np.int64)
        used = np.flatnonzero(points)
        of = self.groups[used][self.groups[used] >= 0]
        return (
            bool(np.all(np.abs(weights - points) <= tolerance))
            and len(used) <= self.max_nonzeros
            and bool(np.all(points[used] * self.signs[used] >= 0))
            and len(np.unique(of)) == len(of)
            and set(self.required) <= set(used.tolist())
        )

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the statistic of the card at w, without the price of its questions."""
        totals = self.X @ self.points_of(self.in_box(w))
        sums = np.concatenate([[0.0], np.cumsum(self.rank_weights)])
        least, terms, place = self.gains.min(), [], 0
        for total in np.unique(totals)[::-1]:
            gains = self.gains[totals == total]
            end = place + len(gains)
            if self.ties == "average":
                terms.append(gains.sum() * (sums[end] - sums[place]) / len(gains))
            else:
                upper = np.count_nonzero(gains > least)
                terms.append(least * (sums[end] - sums[place]))
                terms.append((self.gains.max() - least) * (sums[end] - sums[end - upper]))
            place = end
        return math.fsum(terms) + self.shift

    def content(self) -> dict[str, Any]:
        """Return the problem as a certificate file describes it, of kind ``card``."""
        return {
            "kind": "card",
            "C": self.C,
            "points": self.points,
            "max_nonzeros": self.max_nonzeros,
            "ties": self.ties,
            "signs": self.signs.tolist(),
            "groups": self.groups.tolist(),
            "required": list(self.required),
            "statistic": str(self.statistic),
            "a": self.statistic.weights(self.n).tolist(),
            "gains": self.gains.tolist(),
            "X": ["".join("01"[int(answer)] for answer in row) for row in self.X],
        }

    def describe(self) -> str:
        """Return the problem in a few words, for error messages."""
        return f"a CardProblem with statistic '{self.statistic}'"

    def _sizes(self) -> dict[str, object]:
        return {"rows": self.n, "questions": self.d, "statistic": str(self.statistic)}

    def good_cards(
        self, threshold: float, most: int = 1_000, threads: int = 1, time_limit: float | None = None
    ) -> list[tuple[float, IntArray]]:
        """Return all cards whose value is at least a threshold, with their values, best first.

        Cards of the same columns that order all possible rows alike, such as (1, 1) and (2, 2), count once.

        Args:
            threshold: least value.
            most: largest number of cards.
            threads: number of threads.
            time_limit: seconds for the search; None for no limit.

        Raises:
            ValueError: more cards than `most`.
            TimeoutError: the search takes longer than `time_limit`.
        """
        search, stop = self._search(), np.zeros(1, np.uint8)
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(search.search, self.max_nonzeros, threads, stop, threshold - self.shift, most)
            try:
                late = wait([done], time_limit).not_done
            finally:
                stop[0] = 1  # Ctrl-C ends it as well
        if late and not done.result():
            raise TimeoutError(f"not all cards of at least {threshold:g} are found within {time_limit:g} seconds")
        if search.full:
            raise ValueError(f"most must be larger: more than {most} cards have a value of at least {threshold:g}")
        found = [(value + self.shift, self._points(columns, points)) for value, columns, points in search.cards]
        return sorted(found, key=lambda card: (-round(card[0], 12), np.count_nonzero(card[1]), np.abs(card[1]).sum()))

    def _points(self, columns: Sequence[int], points: Sequence[int]) -> IntArray:
        card = np.zeros(self.d, dtype=np.int64)
        card[list(columns)] = points
        return card

    def _search(self) -> Any:  # noqa: ANN401 (compiled)
        gains, level = np.unique(self.gains, return_inverse=True)
        required = np.zeros(self.d, dtype=np.uint8)
        required[list(self.required)] = 1
        return _Search(
            X=self.X.astype(np.uint8),
            level=level.astype(np.int32),
            gains=gains,
            rank_weights=np.ascontiguousarray(self.rank_weights),
            signs=np.array([2, 3, 1], dtype=np.uint8)[self.signs + 1],
            groups=self.groups.astype(np.int32),
            required=required,
            most=self.points,
            ties_lost=self.ties == "lost",
            price=self.C,
            perfect=self.trivial_bound - self.shift,
        )


@dataclass(frozen=True)
class CardSearch:
    """The search for the best card, as a method of `ltr.exact.solve`.

    Args:
        threads: number of threads; None for as many as there are processors.
    """

    threads: int | None = None

    def check(self, problem: Problem) -> None:
        """Accept a `CardProblem`."""
        if not isinstance(problem, CardProblem):
            raise ValueError(f"method cards solves a CardProblem, got {problem.describe()}")

    def run(self, state: SolveState) -> Ending:
        """Search all cards; offer each better one."""
        problem = state.problem
        assert isinstance(problem, CardProblem)
        search, stop = problem._search(), np.zeros(1, dtype=np.uint8)
        threads = self.threads or available_threads()
        offered = -math.inf
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(search.search, problem.max_nonzeros, threads, stop)
            try:
                while wait([done], _PAUSE).not_done:
                    value, columns, points = search.best
                    if value > offered:
                        offered = value
                        state.offer(problem._points(columns, points) / problem.points)
                    state.nodes = search.supports
                    state.check()
                    if state.limits.node_limit is not None and state.nodes >= state.limits.node_limit:
                        raise Stopped(Status.NODE_LIMIT)
            finally:
                stop[0] = 1
                wait([done])
                _take_best(state, problem, search)
        if isinstance(done.exception(), MemoryError):
            raise Stopped(Status.MEMORY_LIMIT)
        assert done.result()  # nothing else stops it
        return Ending(Status.OPTIMAL)


def _take_best(state: SolveState, problem: CardProblem, search: Any) -> None:  # noqa: ANN401 (compiled)
    """Keep the best card and the bound; of cards of equal value the one that the search prefers."""
    state.nodes = search.supports
    value, columns, points = search.best
    if value == -math.inf:
        return
    weights = problem._points(columns, points) / problem.points
    state.offer(weights)
    value = problem.evaluate(weights)
    if state.value - value <= _EQUAL * state.size:
        state.weights, state.value = weights, value
    state.prove(search.bound + problem.shift)


def _whole(name: str, values: ArrayLike, d: int, least: int, most: int) -> NDArray[np.int64]:
    numbers = as_numbers(name, values)
    if numbers.shape != (d,):
        raise ValueError(f"{name} must hold one number per column ({d}), got shape {numbers.shape}")
    wrong = ~((numbers == np.rint(numbers)) & (numbers >= least) & (numbers <= most))
    if wrong.any():
        raise ValueError(f"{name} must hold whole numbers from {least} to {most}, got {numbers[wrong][0]:g}")
    return numbers.astype(np.int64)
