r"""Where each row can stand: its best and its worst place over all good scorers, proven.

Many weights are about as good as the best ones, and they do not order the rows alike. A scorer is *good* if it is
feasible and its statistic is at least a share ``1 - within`` of the best value. For every row r

    best place   =  n + 1 - max over good w of  rank_r(w),        ties against r,
    worst place  =  n + 1 - min over good w of  rank_r(w),        ties in its favour,

within its list of n rows. So some good scorer brings r to its best place however ties fall, and another one leaves it
at its worst; rows that are closer than the margin, or equal in all columns, are ties. Either is a problem of two
statistics (`ltr.exact.demand`): the sum of ranks of r alone, or of all others, is maximised, subject to the demand
that the scorer is good.

**One cover for all rows.** Every row needs the good weights alone. So boxes that cover them are found first: those that
are left of a weight-space search for weights with the least statistic, each refined a little further from round to
round. On a box, r has at least as many rows above it as pairs that it loses on all of the box, so a box whose bound is
no better than a place that some good weights reach has nothing to say about that side of r. What is left of the cover
for it is searched by the weight-space search, longer from round to round; that search closes boxes in which r stands
higher, or the scorer is good, but not both. Values are whole numbers, so a bound less than one place away is a proof.
Where time is up, the bounds of the boxes that are left give an outer interval, which no good scorer leaves.

Good weights are sampled around the best ones before, and whatever is found for one row is offered to all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import as_float
from ltr.exact.constraints import set_fields
from ltr.exact.demand import DEMAND_TOLERANCE, Demand
from ltr.exact.problem import Demanded, FloatArray, IntArray, RerankProblem
from ltr.exact.solution import Solution, Status
from ltr.exact.state import Limits, SolveState, Stopped, scalable
from ltr.exact.weight_space.coordinates import adapted, apply_to
from ltr.exact.weight_space.pool import NarrowBoxes, WorkerPool
from ltr.exact.weight_space.space import Boxes, space_of
from ltr.native import SearchWorkspace, search_weight_space
from ltr.threads import available_threads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SAMPLES, _SHARE = 4_000, 0.1  # weights that are sampled, and share of the time for them
_STEPS = (0.3, 0.1, 0.03, 0.01)  # lengths of their steps, relative to the largest weight
_FIRST, _GROWTH = 2_000_000, 4.0  # pairs examined for a side of a row in the first round, and their growth
_NODES, _NODE = 30, 128  # boxes that each box of the cover is searched by in a round; pairs that take as long as one
_MOST_BOXES = 20_000  # of the cover
_ADAPTED = 5  # features from which coordinates are adapted
_ERROR = 1e-13  # relative rounding error of sums over features, with room to spare
_WHOLE = 1e-6  # by which a rank may differ from a whole number through rounding


@dataclass(frozen=True, repr=False)
class RankRanges:
    """The places that rows take over all good scorers.

    Attributes:
        least: statistic from which a scorer is good.
        best, worst: outer interval of each row's places, 1 at the top of its list, (n,): no good scorer has it higher
            than `best` or lower than `worst`.
        reached_best, reached_worst: the best and the worst place found, (n,).
        best_weights, worst_weights: good weights that bring each row there, (n, d).
        ties: other rows of its list that are equal to each row in all columns, (n,): they share its places.
        seconds: wall time.
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

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether both places of a row are proven, (n,)."""
        return (self.best == self.reached_best) & (self.worst == self.reached_worst)

    def always_within(self, first: int) -> NDArray[np.bool_]:
        """Whether a row is among the first so many whichever good scorer is used, however ties fall, (n,)."""
        return self.worst + self.ties <= first

    def never_within(self, first: int) -> NDArray[np.bool_]:
        """Whether a row is beyond the first so many whichever good scorer is used, however ties fall, (n,)."""
        return self.best - self.ties > first

    def summary(self, first: int) -> str:
        """Return in a sentence how many of the first rows are there whichever good scorer is used.

        Examples:
            >>> problem = RerankProblem([[0.0, 0.0], [1.0, 0.5], [2.0, 3.0], [0.5, 1.0]], [0, 1, 1, 0])
            >>> rank_ranges(problem).summary(2)
            '1 of the first 2 rows is there whichever good scorer is used, 1 is never there, 2 may or may not be'
        """
        inside, outside = int(self.always_within(first).sum()), int(self.never_within(first).sum())
        between = len(self.best) - inside - outside
        are = "is" if inside == 1 else "are"
        return (
            f"{inside} of the first {first} rows {are} there whichever good scorer is used,"
            f" {outside} {'is' if outside == 1 else 'are'} never there, {between} may or may not be"
        )

    def __repr__(self) -> str:
        return f"RankRanges({len(self.best)} rows, {int(self.exact.sum())} of them exact; least={self.least:.6g})"

    def plot(self, first: int | None = None) -> Figure:
        """Return a picture of the interval of each row as a matplotlib figure, best rows on top.

        Args:
            first: length of the top of the list, drawn as a line.
        """
        from ltr.figures import intervals_figure

        title = f"places over all scorers with a statistic of at least {self.least:.4g}"
        return intervals_figure(title, self.best, self.worst, self.exact, first)


class _Side:
    """The best or the worst place of a row: the problem of two statistics, and what is known of it."""

    def __init__(self, problem: RerankProblem, row: int, size: int, *, up: bool) -> None:
        self.problem, self.row, self.up = problem, row, up
        self._size = size  # rows of its list
        self.reached, self.weights = -math.inf, np.zeros(problem.d)  # in terms of the problem's value
        self.bound = problem.trivial_bound
        self.left: list[Boxes] = []  # boxes that may have a better place

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

    def value(self, lost: IntArray) -> FloatArray:
        """Return the largest value where at least some pairs are lost: those of r, or those of the others to r."""
        return (self._size if self.up else self._size * (self._size + 1) / 2 - 1) - lost.astype(np.float64)


def rank_ranges(
    problem: RerankProblem,
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
        problem: the lists. The price C is left out; all that is demanded of weights holds for good scorers too.
        within: share of the best value by which the statistic of a good scorer may be below it, from 0 to below 1.
        solution: a solution of the problem, whose value is taken for the best; None to solve it first.
        time_limit: seconds for everything.
        seed: seed of the samples and searches.
        threads: number of threads; None is one for each processor that the process may use.
        should_stop: called several times per second; True ends the search with the intervals known by then.

    Raises:
        ValueError: an argument breaks its rule, or no weights are feasible.

    Examples:
        >>> problem = RerankProblem([[0.0, 0.0], [1.0, 0.5], [2.0, 3.0], [0.5, 1.0]], [0, 1, 1, 0])
        >>> ranges = rank_ranges(problem, within=0.0)
        >>> ranges.best.tolist(), ranges.worst.tolist(), bool(ranges.exact.all())
        ([4, 2, 1, 3], [4, 2, 1, 3], True)
    """
    if not isinstance(problem, RerankProblem):
        raise ValueError(f"problem must be a RerankProblem, got {type(problem).__name__}")
    if not 0 <= as_float(within) < 1:
        raise ValueError(f"within must be a share from 0 to below 1, got {within!r}")
    began, threads = time.monotonic(), threads or available_threads()
    limits = Limits(time_limit=time_limit, seed=seed)
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
    _sample(problem, least, solution.weights, pool, seed, began + _SHARE * time_limit)
    cover = _Cover(problem, least, solution.weights)
    cover.refine(lambda: min(left(), began + 2 * _SHARE * time_limit - time.monotonic()) > 0)
    cover.share_out(sides)
    allowance, waiting = _FIRST, [side for side in sides if side.open]
    while waiting and left() > 0:
        for side in waiting:
            if left() > 0 and side.open:
                cover.search(side, pool, allowance, threads, left)
        allowance, waiting = _GROWTH * allowance, [side for side in waiting if side.open and side.left]
    return _ranges(problem, least, sides, time.monotonic() - began)


def _sides(problem: RerankProblem, row: int, least: float) -> Iterator[_Side]:
    """Yield the two sides of a row, none where it is alone in its list."""
    others = problem.qid == problem.qid[row]
    others[row] = False
    if not others.any():
        return
    names = ("margin", "qid", "constraints", "max_nonzeros", "free", "required", "integer")
    options: dict[str, Any] = {name: getattr(problem, name) for name in names}
    good = Demanded(Demand(problem.statistic, least, name="a good scorer"), problem)
    for up in (True, False):
        labels = (np.arange(problem.n) == row if up else others).astype(np.float64)
        side = RerankProblem(problem.X, labels, "wrs", **options)
        set_fields(side, X=problem.X, demanded=(*problem.demanded, good))
        yield _Side(side, row, int(others.sum()) + 1, up=up)


class _Pool:
    """What good weights are known to bring the rows to: each improves whichever rows it can."""

    def __init__(self, problem: RerankProblem, sides: list[_Side]) -> None:
        self._problem, self._sides = problem, sides
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
    for _ in range(_SAMPLES):
        if time.monotonic() > until:
            return
        w = good[int(rng.integers(len(good)))]
        size = float(np.abs(w / np.where(unit > 0, unit, 1.0)).max())  # in units of equal spread
        step = rng.choice(_STEPS) * size * unit * rng.normal(size=problem.d) * (rng.random(problem.d) < rng.random())
        w = np.where(w != 0, w + step, 0.0) if problem.max_nonzeros is not None else w + step
        largest = float(np.abs(w).max())
        w = problem.in_box(w if scalable(problem) is False or largest == 0 else w / largest * problem.reach)
        w = w if problem.integer is None else np.rint(w)
        if problem.feasible(w) and problem.statistic_value(w) >= least:
            good.append(w)
            pool.take(w)


class _Cover:
    """Boxes that cover the good weights, and the search of those that matter for a row."""

    def __init__(self, problem: RerankProblem, least: float, best: FloatArray) -> None:
        self._problem = problem
        found = adapted(problem, best, np.eye(problem.d)) if apply_to(problem) and problem.d >= _ADAPTED else None
        self._T = None if found is None else found[0]
        self._good = space_of(dataclasses.replace(problem, C=0.0), self._T)
        self._cutoff = self._good.integer(least * (1 - math.copysign(2 * DEMAND_TOLERANCE, least))) - 1
        self._boxes = self._good.roots

    def refine(self, go_on: Callable[[], bool]) -> None:
        """Split the boxes of the cover and close those without good weights."""
        space, spent = self._good.space, 0
        work = SearchWorkspace(space.compiled)
        allowance = _NODES * (len(space.positive) + _NODE) * space.columns.shape[0] // 8
        while go_on() and 0 < len(self._boxes.bound) < _MOST_BOXES:
            parts = []
            for box in self._boxes.each():
                low, high, used, bound, _ = box
                if not go_on():
                    parts.append(box)
                    continue
                left, narrow, *_, tally = search_weight_space(
                    space.compiled, work, low, high, used, bound, self._cutoff, allowance, 1, False
                )
                spent += tally[3]
                parts += [Boxes(*some, np.zeros(len(some[-1]), np.int64)) for some in (left, narrow)]
            self._boxes = Boxes.joined(parts)

    def share_out(self, sides: list[_Side]) -> None:
        """Give each side the boxes of the cover that may have a better place than the one reached, and its bound."""
        problem, boxes = self._problem, self._boxes
        by_row: dict[int, list[_Side]] = {}
        for side in sides:
            by_row.setdefault(side.row, []).append(side)
        for row, own in by_row.items():
            if not any(side.open for side in own):
                continue
            others = np.flatnonzero(problem.qid == problem.qid[row])
            others = others[others != row]
            for side in own:
                above, below = (np.full(len(others), row), others) if side.up else (others, np.full(len(others), row))
                values = side.value(self._lost(above, below))
                kept = np.flatnonzero(values > side.reached + 0.5)
                side.left = [boxes.rows(kept)] if len(kept) else []
                side.bound = min(side.bound, max(float(values.max(initial=-math.inf)), side.reached))

    def _lost(self, above: IntArray, below: IntArray) -> IntArray:
        """Return how many of some pairs are lost on all of each box, (boxes,)."""
        T = np.eye(self._problem.d) if self._T is None else self._T
        deltas = (self._problem.X[above] - self._problem.X[below]) @ T
        size = (np.abs(self._problem.X[above]) + np.abs(self._problem.X[below])) @ np.abs(T)
        low, high = self._boxes.low, self._boxes.high
        middle, half = 0.5 * (low + high)[:, :-1], 0.5 * (high - low)[:, :-1]
        largest = middle @ deltas.T + half @ np.abs(deltas).T
        error = _ERROR * (np.abs(middle) + half + 1e-300) @ size.T
        return np.count_nonzero(largest + error < self._problem.margin * low[:, -1:], axis=1)

    def search(self, side: _Side, pool: _Pool, allowance: float, threads: int, left: Callable[[], float]) -> None:
        """Search what is left for a side, up to an allowance of work, and take over what is found."""
        state = SolveState(side.problem, Limits(time_limit=max(left(), 1e-3)))
        state.offer(side.weights)
        searchable = space_of(side.problem, self._T)
        narrow = NarrowBoxes(state, side.problem)

        def found(w: FloatArray) -> None:
            largest = float(np.abs(w).max(initial=0.0))
            state.offer(w if searchable.space.fixed or largest == 0 else w / largest)

        def settle(box: Boxes) -> int:
            return narrow.settle(searchable, box)

        cutoff = lambda: searchable.integer(max(state.value, side.reached) + 0.5)  # noqa: E731
        with WorkerPool(searchable, threads, found, settle) as workers, contextlib.suppress(Stopped):
            workers.trusted = False

            def check() -> None:
                state.check()
                workers.least_cutoff = cutoff()
                if left() <= 0:
                    raise Stopped(Status.TIME_LIMIT)

            done = workers.close(Boxes.joined(side.left), cutoff(), check, allowance)
            unresolved = searchable.objective(done.unresolved) if done.unresolved > cutoff() else -math.inf
            bounds = [searchable.objective(int(box.bound.max())) for box in done.left]
            side.left = done.left
            side.bound = min(side.bound, max([max(state.value, side.reached), unresolved, *bounds]))
        if state.value > side.reached:
            pool.take(state.weights)
            side.offer(state.weights)
        side.bound = max(side.bound, side.reached)


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
