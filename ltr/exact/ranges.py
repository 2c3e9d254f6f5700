r"""Where each row can stand: its best and its worst place over all good scorers, proven.

Many weights are about as good as the best ones, and they do not order the rows alike. A scorer is *good* if it is
feasible and its statistic is at least a share ``1 - within`` of the best value. For every row r

    best place   =  n + 1 - max over good w of  rank_r(w),        ties against r,
    worst place  =  n + 1 - min over good w of  rank_r(w),        ties in its favour,

within its list of n rows. So some good scorer brings r to its best place however ties fall, and another one leaves it
at its worst; rows that are closer than the margin, or equal in all columns, are ties. Either is a problem of two
statistics (`ltr.exact.constraints`): the sum of ranks of r alone, or of all others, is maximised, subject to the demand
that the scorer is good.

Good weights are sampled around the best ones first, and whatever is found for one row is offered to all. Each side of
a row, its best or its worst place, gets a bound in a moment. Then the boxes in which it may be better than what is
reached are closed, more of them from round to round. Values are whole numbers, so a bound less than one place away is a
proof. Where time is up, the bounds give an outer interval, which no good scorer leaves.

**Cards.** The compiled search of cards (`ltr/native/cards.h`) visits every order of the rows by a good card. Cards
tie by design, so all ties count: in the row's favour for its best place, against it for its worst.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltr.checks import as_float
from ltr.exact import tuning
from ltr.exact.cards import NONE_MEETS, CardProblem, within_time
from ltr.exact.problem import FloatArray, IntArray
from ltr.exact.reranking import RerankProblem
from ltr.exact.solution import Solution
from ltr.exact.state import Limits, SolveState, Stopped, scalable
from ltr.exact.weight_space.coordinates import adapted, apply_to
from ltr.exact.weight_space.pool import NarrowBoxes, WorkerPool, offer_candidate
from ltr.exact.weight_space.search import out_of_reach, prove
from ltr.exact.weight_space.space import Boxes, space_of
from ltr.threads import available_threads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WHOLE = 1e-6  # by which a rank may differ from a whole number through rounding


@dataclass(frozen=True, repr=False)
class RankRanges:
    """The places that rows take over all good scorers.

    Attributes:
        least: statistic from which a scorer is good.
        best, worst: outer interval of each row's places, 1 at the top of its list, (n,): no good scorer has it higher
            than `best` or lower than `worst`.
        reached_best, reached_worst: the best and the worst place found, (n,), by weights of (n, d).
        ties: other rows of its list that are equal to each row in all columns, (n,): they share its places. 0 for
            cards, where `best` and `worst` count all ties.
        seconds: wall time.
        cards: number of good cards, None for other scorers; those that order all possible rows alike count once.
    """

    least: float
    best: IntArray
    worst: IntArray
    reached_best: IntArray
    reached_worst: IntArray
    best_weights: FloatArray = field(repr=False)
    worst_weights: FloatArray = field(repr=False)
    ties: IntArray
    seconds: float
    cards: int | None = None

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether both places of a row are proven, (n,)."""
        return (self.best == self.reached_best) & (self.worst == self.reached_worst)

    def always_within(self, first: int) -> NDArray[np.bool_]:
        """Whether a row is among the first so many whichever good scorer is used, (n,).

        Equal rows may stand above it, but those that beat it by less than the margin do not count.
        """
        return self.worst + self.ties <= first

    def never_within(self, first: int) -> NDArray[np.bool_]:
        """Whether a row is beyond the first so many whichever good scorer is used, (n,), see `always_within`."""
        return self.best - self.ties > first

    def summary(self, first: int) -> str:
        """Return in a sentence how many of the first rows are there whichever good scorer is used."""
        inside, outside = int(self.always_within(first).sum()), int(self.never_within(first).sum())
        between = len(self.best) - inside - outside
        there, never = (f"{count} {'is' if count == 1 else 'are'}" for count in (inside, outside))
        there = there.replace(" ", f" of the first {first} rows ", 1)
        return f"{there} there whichever good scorer is used, {never} never there, {between} may or may not be"

    def __repr__(self) -> str:
        return f"RankRanges({len(self.best)} rows, {int(self.exact.sum())} of them exact; least={self.least:.6g})"

    def plot(self, first: int | None = None) -> Figure:
        """Return a picture of the interval of each row as a matplotlib figure, with a line below the `first` rows."""
        from ltr.display.figures import intervals_figure

        title = f"places over all scorers with a statistic of at least {self.least:.4g}"
        return intervals_figure(title, self.best, self.worst, self.exact, first)


class _Side:
    """The best or the worst place of a row: the problem of two statistics, and what is known of it."""

    def __init__(self, problem: RerankProblem, row: int, size: int, *, up: bool) -> None:
        self.problem, self.row, self.up = problem, row, up
        self._size = size  # rows of its list
        self.reached, self.weights = -math.inf, np.zeros(problem.d)  # in terms of the problem's value
        self.bound = problem.trivial_bound
        self.left: list[Boxes] = []  # boxes that may have a better place, none before the first search
        self.stuck = False  # whether boxes that are too narrow, or too many pairs, prevent a proof

    def state(self, seconds: float, should_stop: Callable[[], bool] | None) -> SolveState:
        """Return a solve of the problem that begins with what is known."""
        state = SolveState(self.problem, Limits(time_limit=seconds), should_stop=should_stop)
        state.offer(self.weights)
        return state

    def take(self, state: SolveState, pool: _Pool) -> None:
        """Take over the weights and the bound of a solve."""
        if state.value > self.reached:
            pool.take(state.weights)
            self.offer(state.weights)
        self.bound = max(min(self.bound, state.bound), self.reached)

    @property
    def open(self) -> bool:
        """Whether a better place than the one reached may exist."""
        return self.bound - self.reached > 0.5

    def offer(self, w: FloatArray) -> None:
        """Take good weights that bring the row to a better place."""
        value = self.problem.evaluate(w)
        if value > self.reached and self.problem.feasible(w):
            self.reached, self.weights = value, w

    def place(self, value: float) -> int:
        """Return the place of the row at a value of the problem: its rank, or the sum of all others' ranks."""
        rank = value if self.up else self._size * (self._size + 1) / 2 - value
        return self._size + 1 - (math.floor(rank + _WHOLE) if self.up else math.ceil(rank - _WHOLE))


def rank_ranges(
    problem: RerankProblem | CardProblem,
    within: float = 0.01,
    *,
    solution: Solution | None = None,
    time_limit: float = 60.0,
    seed: int = 0,
    threads: int | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> RankRanges:
    """Return the best and the worst place of every row over all scorers that are about as good as the best.

    Args:
        problem: the lists, or a problem of cards whose columns are zeros and ones. All that is demanded of weights
            holds for good scorers too; the price C counts for cards only.
        within: share of the best value by which the statistic of a good scorer may be below it, from 0 to below 1.
        solution: a solution of the problem, whose value is taken for the best; None to solve it first.
        time_limit, seed: seconds for everything, and seed of the samples and searches.
        threads: number of threads; None is one for each processor that the process may use.
        should_stop: called several times per second; True ends the search with the intervals known by then.

    Raises:
        ValueError: an argument breaks its rule, or no weights are feasible.

    Examples:
        >>> problem = RerankProblem([[0.0, 0.0], [1.0, 0.5], [2.0, 3.0], [0.5, 1.0]], [0, 1, 1, 0])
        >>> ranges = rank_ranges(problem, within=0.0)
        >>> ranges.best.tolist(), ranges.worst.tolist(), bool(ranges.exact.all())
        ([3, 1, 1, 3], [4, 2, 2, 4], True)
    """
    if not isinstance(problem, RerankProblem | CardProblem):
        raise ValueError(f"problem must be a RerankProblem or a CardProblem, got {type(problem).__name__}")
    if not 0 <= as_float(within) < 1:
        raise ValueError(f"within must be a share from 0 to below 1, got {within!r}")
    began, threads = time.monotonic(), threads or available_threads()
    limits = Limits(time_limit=time_limit, seed=seed)
    if isinstance(problem, CardProblem):
        return _of_cards(problem, within, began + time_limit, threads)
    if solution is None:
        from ltr.exact.solve import solve

        solution = solve(problem, limits=limits, should_stop=should_stop)
    if not (math.isfinite(solution.value) and problem.feasible(solution.weights)):
        raise ValueError("problem must have feasible weights, got none: there are no good scorers")
    value = problem.statistic_value(solution.weights)
    least = value - within * abs(value)
    sides = [side for row in range(problem.n) for side in _sides(problem, row, least)]

    def left() -> float:
        return 0.0 if should_stop is not None and should_stop() else began + time_limit - time.monotonic()

    pool = _Pool(problem, sides)
    pool.take(solution.weights)
    _sample(problem, least, solution.weights, pool, seed, began + tuning.RANGES_SHARE * time_limit)
    found = (
        adapted(problem, solution.weights, np.eye(problem.d))
        if problem.d >= tuning.ADAPTED_FROM and apply_to(problem)
        else None
    )
    T = None if found is None else found[0]
    allowance, waiting = tuning.RANGES_FIRST, [side for side in sides if side.open]
    for side in waiting:
        if side.open and (room := min(tuning.RANGES_BRIEF, left())) > 0:
            _bound(side, side.state(room, should_stop), pool, threads, T)
    while (waiting := [side for side in waiting if side.open and not side.stuck]) and left() > 0:
        for side in waiting:
            if side.open and (room := left()) > 0:
                _close(side, side.state(room, should_stop), pool, threads, T, allowance)
        allowance *= tuning.RANGES_GROWTH
    return _ranges(problem, least, sides, time.monotonic() - began)


def _sides(problem: RerankProblem, row: int, least: float) -> Iterator[_Side]:
    """Yield the two sides of a row, none where it is alone in its list."""
    others = problem.qid == problem.qid[row]
    others[row] = False
    if not others.any():
        return
    for up in (True, False):
        labels = (np.arange(problem.n) == row if up else others).astype(np.float64)
        side = problem.other("wrs", labels, least=least)
        yield _Side(side, row, int(others.sum()) + 1, up=up)


class _Pool:
    """What good weights are known to bring the rows to: each improves whichever rows it can."""

    def __init__(self, problem: RerankProblem, sides: list[_Side]) -> None:
        self._problem = problem
        self._best, self._worst = np.full(problem.n, problem.n + 1), np.zeros(problem.n, dtype=np.int64)
        self._of = {(side.row, side.up): side for side in sides}

    def take(self, w: FloatArray) -> None:
        """Offer good weights to the rows that they may improve, of which float64 scores tell nearly all."""
        best, worst = self._places(w)
        for up, improved in ((True, best < self._best), (False, worst > self._worst)):
            for row in np.flatnonzero(improved):
                if (side := self._of.get((int(row), up))) is not None:
                    side.offer(w)
        np.minimum(self._best, best, out=self._best)
        np.maximum(self._worst, worst, out=self._worst)

    def _places(self, w: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the place of each row with ties against it, and with ties in its favour, (n,)."""
        scores, margin = self._problem.X @ w, self._problem.margin
        best, worst = np.empty((2, self._problem.n), dtype=np.int64)
        for members in self._problem.lists:
            own = np.sort(scores[members])
            best[members] = len(own) - np.searchsorted(own, scores[members] - margin, side="right")
            worst[members] = 1 + len(own) - np.searchsorted(own, scores[members] + margin, side="left")
        return best, worst


def _sample(problem: RerankProblem, least: float, start: FloatArray, pool: _Pool, seed: int, until: float) -> None:
    """Offer good weights around the best ones: walkers that take a step wherever it leads to good weights."""
    rng, good = np.random.default_rng(seed), [start]
    spread = problem.X.std(axis=0)
    unit = np.where(spread > 0, spread.max(initial=0.0) / np.where(spread > 0, spread, 1.0), 0.0)
    for _ in range(tuning.RANGES_SAMPLES):
        if time.monotonic() > until:
            return
        w = good[int(rng.integers(len(good)))]
        size = float(np.abs(w / np.where(unit > 0, unit, 1.0)).max())  # in units of equal spread
        length = rng.choice(tuning.RANGES_STEPS) * size
        step = length * unit * rng.normal(size=problem.d) * (rng.random(problem.d) < rng.random())
        w = np.where(w != 0, w + step, 0.0) if problem.max_nonzeros is not None else w + step
        largest = float(np.abs(w).max())
        w = problem.in_box(w / largest * problem.reach if scalable(problem) and largest > 0 else w)
        w = w if problem.integer is None else np.rint(w)
        if problem.feasible(w) and problem.statistic_value(w) >= least:
            good.append(w)
            pool.take(w)


def _bound(side: _Side, state: SolveState, pool: _Pool, threads: int, T: FloatArray | None) -> None:
    """Take over a bound on a side, and what is found for it, in the time of a state."""
    with contextlib.suppress(Stopped):
        if out_of_reach(state) is None:
            prove(state, threads, T, tuning.RANGES_PART, relaxed=False)
        else:
            side.stuck = True
    side.take(state, pool)


def _close(side: _Side, state: SolveState, pool: _Pool, threads: int, T: FloatArray | None, allowance: float) -> None:
    """Close the boxes that may have a better place of a side than the one reached, within an allowance of work."""
    searchable = space_of(side.problem, T)
    narrow, left = NarrowBoxes(state, side.problem), side.left or [searchable.roots]

    def target() -> int:
        return searchable.integer(max(state.value, side.reached) + 1.0) - 1  # values are whole, and so are tables

    def found(w: FloatArray) -> None:
        offer_candidate(state, w if searchable.space.fixed else w / np.abs(w).max(), sparse=False)

    def ends() -> bool:
        workers.least_target = target()
        state.check()
        return False

    with WorkerPool(searchable, threads, found, lambda box: narrow.settle(searchable, box)) as workers:
        workers.trusted = False
        with contextlib.suppress(Stopped):
            done = workers.close(Boxes.joined(left), target(), ends, allowance)
            side.left = done.left
            if not done.left:
                side.stuck = done.unresolved > target()
                best = max(state.value, side.reached)
                state.prove(searchable.objective(done.unresolved) if side.stuck else best + 0.5)
    side.take(state, pool)


def _ranges(problem: RerankProblem, least: float, sides: list[_Side], seconds: float) -> RankRanges:
    ones = np.ones(problem.n, dtype=np.int64)
    places = {(kind, up): ones.copy() for kind in ("outer", "reached") for up in (True, False)}
    weights = {up: np.zeros((problem.n, problem.d)) for up in (True, False)}
    for side in sides:
        places["reached", side.up][side.row] = side.place(side.reached)
        places["outer", side.up][side.row] = side.place(side.bound if side.open else side.reached)
        weights[side.up][side.row] = side.weights
    _, same, count = np.unique(
        np.column_stack([problem.qid, problem.X]), axis=0, return_inverse=True, return_counts=True
    )
    return RankRanges(
        least=least,
        best=places["outer", True],
        worst=places["outer", False],
        reached_best=places["reached", True],
        reached_worst=places["reached", False],
        best_weights=weights[True],
        worst_weights=weights[False],
        ties=count[same.ravel()] - 1,
        seconds=seconds,
    )


def _of_cards(problem: CardProblem, within: float, end: float, threads: int) -> RankRanges:
    """Return the ranges of cards; where time is up, of the best card alone, with the whole list as outer intervals."""
    if problem.numeric.any():
        column = int(np.flatnonzero(problem.numeric)[0])
        raise ValueError(f"problem must have columns of zeros and ones only, got other numbers in column {column}")
    began, search = time.monotonic(), problem._search()
    within_time(lambda stop: search.search(problem.max_nonzeros, threads, stop), end)
    value, *card = search.best
    if value == -math.inf:
        raise ValueError(f"problem must have a card: {NONE_MEETS}")
    value += problem.shift
    least = value - within * abs(value)
    _, first, of = np.unique(problem.X, axis=0, return_index=True, return_inverse=True)
    tracked = np.zeros(problem.n, dtype=np.uint8)
    tracked[first] = 1  # one of the rows with the same answers
    places = np.zeros((2, problem.n), dtype=np.int64)
    points = np.zeros((2, problem.n, problem.d), dtype=np.int64)

    def work(stop: NDArray[np.uint8]) -> int:
        given = (problem.max_nonzeros, threads, stop, least - problem.shift, tracked)
        return int(problem._search().places(*given, *places, *points))

    outer = places
    if (cards := within_time(work, end)) < 0:
        points[:, :, card[0]] = card[1]
        totals = problem.X @ points[0, 0]
        ordered = np.sort(totals)
        places[0] = 1 + problem.n - np.searchsorted(ordered, totals, side="right")
        places[1] = problem.n - np.searchsorted(ordered, totals, side="left")
        outer, cards = np.repeat([[1], [problem.n]], problem.n, axis=1), 0
    rows = first[of.reshape(-1)]
    weights = points[:, rows] / problem.points
    return RankRanges(
        least=least,
        best=outer[0, rows],
        worst=outer[1, rows],
        reached_best=places[0, rows],
        reached_worst=places[1, rows],
        best_weights=weights[0],
        worst_weights=weights[1],
        ties=np.zeros(problem.n, dtype=np.int64),
        seconds=time.monotonic() - began,
        cards=cards or None,
    )
