r"""The proof: cutoffs that fall step by step, each proved by a pool of threads that closes every box.

Closing every box at a cutoff proves that no weights have a larger value. The work grows as the cutoff comes down to the
best value known, by a factor that is measured on the way, and each cutoff is set where the work is expected to grow
`_GROWTH`-fold (`CutoffSchedule`). So the last one, which proves the value itself, takes most of the time, and each one
before it has left a bound.

*Subranks.* At any weights the statistic with Subranks is at most the one with ResolvedRanks (`ltr.verify` has the
proof). The bound of a box can be larger all the same, because each of two undecided positives counts as the winner.
ResolvedRanks need no pairs of two positives, so their boxes are searched first. Where the optima agree, as they do
unless positives tie, that suffices.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from ltr.exact.largest_margin import middle_of_cell
from ltr.exact.local_search import search_locally
from ltr.exact.problem import FloatArray, IntArray, Problem, RerankProblem
from ltr.exact.solution import Status
from ltr.exact.state import MEGABYTE, Ending, SolveState, Stopped
from ltr.exact.vertices import largest_value, offer_simple
from ltr.exact.weight_space._kernel import search as search_box
from ltr.exact.weight_space.coordinates import adapted, apply_to
from ltr.exact.weight_space.space import (
    BEYOND,
    TOLERANCE,
    Boxes,
    Searchable,
    Space,
    Work,
    memory_needed,
    space_of,
    spaces_of,
    supports_of,
)

Found = Callable[[FloatArray], None]
Settle = Callable[[Boxes], int]

_GROWTH, _LEAST_GROWTH = 3.0, 1.3  # factors by which the work grows from cutoff to cutoff
_FILL = 0.8  # share of the time left that a cutoff may take
_LAST_GROWTH = 16.0  # expected on the way to `_PAIRS` lost pairs, below which the next cutoff is the value
MOMENT = 1e-3  # shortest time that is measured, in seconds
_POWER, _LEAST_POWER, _MOST_POWER = (
    2.0,
    0.4,
    4.5,
)  # exponent of 1 / distance in the work: first guess, limits
_PAIRS = 4
_MOST_TERMS = 50_000_000  # pairs times coordinates: a box takes tenths of a second, and bounds hardly move
_LONG = 2_000_000  # pairs examined at one cutoff from which better coordinates are tried
_CLEARLY = 0.2  # gain of `adapted`, a logarithm of boxes, from which they are used
_AROUND = 0.01  # half-width of the first box around the best weights
_LEAST_AROUND = 1_000_000  # pairs examined around them, at least
_WORTHWHILE = 500_000  # pairs examined at a cutoff from which better weights are searched for
_LEAST_SECONDS = 0.1
_PAUSE = 5.0  # seconds at one cutoff before a search for better weights; doubled where it finds none
_MANY = 1_000_000  # restarts: as many as fit the time
_DOUBT = 1e-6  # share of the margin by which a candidate may miss it
_WIDENED = 1e-13  # added to a narrow box on every side
_PIECE = 4_000_000  # pairs examined between two checks of the clock: about a tenth of a second
_FIRST = 500_000  # pairs examined before threads are started
_TOGETHER = 8  # most boxes of one task
_NARROW_BOXES = 16  # most boxes too narrow to split that a task returns
_POLL = 0.05  # seconds between two checks of the clock
_NEVER = -(2**62)
_NARROW = "the boxes left are too narrow to decide"


def out_of_reach(state: SolveState) -> Ending | None:
    """Return why a problem is too large to be searched for a proof within the memory left, None where it is not."""
    problem, left = state.problem, state.memory.left
    pairs, needed = problem.pair_count, memory_needed(problem, threads=1)
    bound = "the bound is that of a perfect order"
    if needed > left:
        takes, have = math.ceil(needed / MEGABYTE), max(0, int(left / MEGABYTE))
        return Ending(Status.MEMORY_LIMIT, f"a proof needs about {takes} MB, and {have} MB may be used: {bound}")
    if pairs * (problem.d + 1) > _MOST_TERMS:
        return Ending(Status.HEURISTIC, f"{pairs} pairs of {problem.d} features are too many for a proof: {bound}")
    return None


def prove(state: SolveState, threads: int, coordinates: str | None = None, local_search: float = 0.0) -> Ending:
    """Prove the value of a state's weights, or of better ones, within its limits.

    Args:
        state: its best weights, where it has any, are what the search starts from.
        threads: number of threads; fewer where memory does not suffice.
        coordinates: one of `SYSTEMS`; None for the adapted ones where they gain anything.
        local_search: share of the time spent on better weights, between two cutoffs and during long ones.

    Raises:
        Stopped: by the state's limits.
    """
    problem = state.problem
    while threads > 1 and memory_needed(problem, threads) > state.memory.left:
        threads -= 1
    try:
        if (resolved := problem.relaxed) is not None:
            with contextlib.suppress(_Undecided):
                ending = _prove(state, resolved, threads, coordinates, local_search)
                if ending.status is not Status.INEXACT:
                    return ending
        return _prove(state, problem, threads, coordinates, local_search)
    except _Attained:
        return Ending(Status.OPTIMAL, "the bound is attained")


def _prove(state: SolveState, problem: Problem, threads: int, coordinates: str | None, local_search: float) -> Ending:
    """Prove the value of a state's weights on a problem whose value is at least as large at any weights."""
    search = _Search(state, problem, threads, local_search)
    if coordinates == "adapted":
        search.adapt(-math.inf)
    search.attained()
    schedule, best = CutoffSchedule(state.bound - state.value, quantum(search.searchable)), -math.inf
    while True:
        # `cutoff` adds a tolerance, which must not carry the bound beyond the gap asked for
        distance = max(schedule.distance, state.limits.gap * abs(state.value) - 2 * TOLERANCE * state.size)
        cutoff = search.cutoff(state.value + distance) if math.isfinite(state.value) else -BEYOND
        started = state.seconds
        spent, resolved = search.lower(cutoff)
        if state.value == -math.inf:
            # nothing feasible may exceed what was not even reached, nor be told from what was
            return Ending(Status.INFEASIBLE) if resolved else Ending(Status.INEXACT, _NARROW)
        if state.closed(claimed=False) or state.gap <= state.limits.gap:
            return Ending(Status.OPTIMAL, f"searched in {search.coordinates} coordinates")
        stuck = problem is not state.problem and not resolved  # the bound is the optimum, but of that problem
        if stuck or (schedule.distance == 0 and state.value <= best):
            return Ending(Status.INEXACT, _NARROW)
        best = state.value
        schedule.advance(spent, state.remaining / max(state.seconds - started, MOMENT))
        if local_search > 0 and spent >= _WORTHWHILE:
            search.search_locally()
            search.search_around(max(local_search * spent, _LEAST_AROUND))
        if coordinates is None and spent >= _LONG and search.adaptable:
            search.adapt(_CLEARLY)
            schedule.forget()


class _Attained(Exception):  # noqa: N818 - good news, not an error
    """Raised once the best weights attain the bound."""


class _Undecided(Exception):  # noqa: N818 - a way on, not an error
    """Raised for a narrow box whose ResolvedRanks exceed the cutoff, which its Subranks may not."""


class CutoffSchedule:
    """Distances of falling cutoffs from the value, so that each takes a few times the work of the one before.

    The work is taken to grow as a power of 1 / distance, and the power is measured on the way.

    Args:
        gap: bound less value at the start; the value itself is the only cutoff where there is no finite gap.
        quantum: a distance of a few pairs, at which the next cutoff is the value itself.

    Attributes:
        distance: distance of the next cutoff; 0 for the value itself, which ends the proof.
    """

    def __init__(self, gap: float, quantum: float) -> None:
        self.distance = 0.75 * gap if math.isfinite(gap) else 0.0
        self._quantum, self._power = quantum, _POWER
        self._last, self._work = 0.0, 0.0

    def forget(self) -> None:
        """Forget the work of earlier cutoffs, which says nothing about the next in other coordinates."""
        self._work = 0.0

    def advance(self, spent: int, room: float) -> None:
        """Set the next distance.

        Args:
            spent: pairs examined at the last cutoff.
            room: time left, as a multiple of what the last cutoff took.
        """
        if self._work > 0 and 0 < self.distance < self._last:
            power = math.log(max(spent / self._work, 1.0)) / math.log(self._last / self.distance)
            self._power = min(max(power, _LEAST_POWER), _MOST_POWER)
        self._last, self._work = self.distance, float(spent)
        growth = min(max(_FILL * room, _LEAST_GROWTH), _GROWTH)
        few = self._quantum * _LAST_GROWTH ** (1 / self._power)
        self.distance *= growth ** (-1 / self._power) if self.distance > few else 0.0


class _Search:
    """A search under way: the state it reports to, the problem and the coordinates in which boxes are searched."""

    def __init__(self, state: SolveState, problem: Problem, threads: int, share: float) -> None:
        self.state, self.coordinates, supports = state, "given", supports_of(problem)
        if supports is None:
            self.searchable = space_of(problem, tick=state.check)
        else:  # the last is searched first: the one that shares most with the best weights
            supports.sort(key=lambda columns: np.count_nonzero(state.weights[columns]))
            self.searchable = spaces_of(problem, supports, state.check)
        self._problem, self._threads, self._share, self._boxes = problem, threads, share, state.nodes
        self._looked, self._turn, self._pause = state.seconds, 0, _PAUSE
        self._adapted = -math.inf

    @property
    def adaptable(self) -> bool:
        """Whether other coordinates are allowed and better weights are known than at the last adaptation."""
        return apply_to(self._problem) and self.state.value > self._adapted

    def adapt(self, least: float) -> None:
        """Change to coordinates adapted to the best weights, where they gain enough."""
        self._adapted = self.state.value
        found = adapted(self._problem, self.state.weights)
        if found is not None and found[1] > least:
            self.searchable, self.coordinates = space_of(self._problem, found[0], self.state.check), "adapted"

    def cutoff(self, value: float) -> int:
        """Return the cutoff, as an integer of the space, for weights above a value."""
        return self.searchable.cutoff(value, self.state.size)

    def lower(self, cutoff: int) -> tuple[int, bool]:
        """Close every box at a cutoff or a better value; return the work and whether every box was decided."""
        with self._workers(self.searchable) as workers:
            done = workers.close(self.searchable.roots, cutoff, functools.partial(self._check, workers))
        resolved = max(done.unresolved, done.cutoff) <= cutoff
        if math.isfinite(self.state.value):
            bound = self.searchable.objective(max(done.cutoff, done.unresolved))
            self.state.prove(max(bound, self.state.zero_value))
            self.state.observe(self.state.bound, nodes=self._boxes)
        return done.spent, resolved

    def search_locally(self) -> None:
        """Search for better weights, for a share of the time since the last such search."""
        self._turn += 1
        since, value = self.state.seconds - self._looked, self.state.value
        seconds = max(self._share * since, min(_LEAST_SECONDS, since))
        search_locally(self.state, seconds, _MANY, turn=self._turn)
        self._looked = self.state.seconds
        self._pause = _PAUSE if self.state.value > value else 2 * self._pause

    def search_around(self, allowance: float) -> None:
        """Search boxes around the best weights, each twice as wide as the last, within an allowance of work.

        A search by supports needs none: its spaces are small, and that of the best weights comes first.
        """
        if self.searchable.supports is not None:
            return
        width = _AROUND
        while allowance > 0 and width < 1 and self.state.value > -math.inf and self.state.weights.any():
            value = self.state.value
            with self._workers(self.searchable) as workers:
                box = self._box_around(width)
                cutoff = self.cutoff(value)
                done = workers.close(box, cutoff, functools.partial(self._check, workers), allowance)
            allowance -= done.spent
            if self.state.value == value:
                width *= 2

    def _box_around(self, width: float) -> Boxes:
        space, roots = self.searchable.space, self.searchable.roots
        d = space.T.shape[1]
        x = np.linalg.solve(space.T, self.state.weights)
        box = roots.rows(slice(0, 1))
        box.used[0] = space.free
        face = len(roots.bound) > 1
        if face:
            x /= np.max(np.abs(x))
        box.low[0, :d], box.high[0, :d] = np.maximum(x - width, -1), np.minimum(x + width, 1)
        if face:
            j = int(np.argmax(np.abs(x)))
            box.low[0, j] = box.high[0, j] = np.sign(x[j])
            box.used[0, j] = 1
        return box

    @contextlib.contextmanager
    def _workers(self, searchable: Searchable) -> Iterator[WorkerPool]:
        sparse = self._problem.C > 0 or self._problem.max_nonzeros is not None

        def offer(w: FloatArray) -> None:
            largest = float(np.max(np.abs(w), initial=0.0))
            w = w if searchable.space.fixed or largest == 0 else w / largest
            offer_candidate(self.state, w, sparse=sparse)

        def settle(box: Boxes) -> int:
            if self._problem is not self.state.problem:
                raise _Undecided
            bound = settle_narrow(self.state, self._problem, searchable, box)
            workers.least_cutoff = max(workers.least_cutoff, self.cutoff(self.state.value))
            return bound

        with WorkerPool(searchable, self._threads, offer, settle) as workers:
            try:
                yield workers
            finally:
                self._boxes += workers.boxes

    def attained(self) -> None:
        """Raise `_Attained` where the best weights attain the bound."""
        if self.state.closed(claimed=False):
            raise _Attained

    def _check(self, workers: WorkerPool) -> None:
        self.state.nodes = self._boxes + workers.boxes
        self.state.check()
        if self._share > 0 and self.state.seconds - self._looked >= self._pause:
            self.search_locally()
            if math.isfinite(self.state.value):
                workers.least_cutoff = max(workers.least_cutoff, self.cutoff(self.state.value))
        self.attained()
        limit = self.state.limits.node_limit
        if limit is not None and self.state.nodes >= limit:
            raise Stopped(Status.NODE_LIMIT)


def quantum(searchable: Searchable) -> float:
    """Return about what a few pairs contribute: a gap below which the work hardly grows any more."""
    steps = searchable.space.step
    positive = steps[steps > 0]
    return math.ldexp(_PAIRS * float(np.median(positive)), -searchable.exponent) if len(positive) else 1e-12


# --- the worker pool


@dataclass(frozen=True)
class Outcome:
    """The result of `WorkerPool.close`.

    Attributes:
        cutoff: what their values do not exceed, save in `left` and `unresolved`: the one asked for, or the value of a
            better candidate.
        left: boxes that the allowance did not suffice for.
        unresolved: the largest bound of boxes too narrow to split that could not be settled either, far below all
            values where there were none.
        spent: pairs examined.
    """

    cutoff: int
    left: list[Boxes]
    unresolved: int
    spent: int


@dataclass(frozen=True)
class _Piece:
    space: Space
    cutoff: int
    found: int
    best: FloatArray
    left: Boxes
    narrow: Boxes
    tally: IntArray
    work: Work


class WorkerPool:
    """Searches boxes of one space on several threads; a context manager that ends its threads.

    Attributes:
        boxes: boxes searched so far.
        least_cutoff: integer to which lower cutoffs are raised, because of values found elsewhere meanwhile.
    """

    def __init__(
        self, searchable: Searchable, threads: int, found: Found, settle: Settle = lambda box: int(box.bound[0])
    ) -> None:
        """`found` and `settle` are called in the thread that called `close`.

        Args:
            searchable: the space.
            threads: number of threads.
            found: receives the weights of every better candidate.
            settle: receives every box too narrow to split, and returns what its values do not exceed, as an integer.
        """
        self.searchable, self.boxes, self.least_cutoff = searchable, 0, _NEVER
        self._threads, self._found, self._settle = threads, found, settle
        self._best = _NEVER
        self._idle: list[Work] = []
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def close(self, boxes: Boxes, cutoff: int, check: Callable[[], None], allowance: float = np.inf) -> Outcome:
        """Search boxes until everything in them is at most the cutoff, or the allowance is used up.

        Args:
            boxes: boxes to search.
            cutoff: bound at which a box is closed, an integer of the space.
            check: called several times a second; what it raises ends the search.
            allowance: work, in pairs examined, after which the boxes that are left are returned.
        """
        least = 2 * self.searchable.space.columns.size
        pending = [boxes.rows(slice(row, row + 1)) for row in range(len(boxes.bound))]
        done = Outcome(cutoff, pending, _NEVER, 0)
        self.searchable.space.stop[0] = 0
        if least <= _FIRST and self.searchable.supports is None:
            pending.clear()
            done = self._take(self._search(boxes, cutoff, _FIRST), done)
            check()
            if not pending or done.spent >= allowance:
                return done
        self._pool = self._pool or ThreadPoolExecutor(self._threads, thread_name_prefix="weight-space")
        running: set[Future[_Piece]] = set()
        try:
            while (pending and done.spent < allowance) or running:
                while pending and done.spent < allowance and len(running) < self._threads:
                    current = max(done.cutoff, self.least_cutoff)
                    running.add(self._pool.submit(self._search, _pop(pending), current, max(_PIECE, least)))
                finished, running = wait(running, timeout=_POLL, return_when=FIRST_COMPLETED)
                for future in finished:
                    done = self._take(future.result(), done)
                check()
        finally:
            self.searchable.space.stop[0] = 1
            wait(running)
        return done

    def _search(self, boxes: Boxes, cutoff: int, allowance: int) -> _Piece:
        space = self.searchable.at(boxes)
        work = self._idle.pop() if self._idle else _workspace(space)
        columns = space.columns.shape[0]
        left, narrow = Boxes.empty(len(boxes.bound) + work.low.shape[0], columns), Boxes.empty(_NARROW_BOXES, columns)
        best, tally = np.zeros(columns), np.zeros(4, np.int64)
        handed, reached, value, narrowed = search_box(space, work, boxes, cutoff, allowance, left, narrow, best, tally)
        left.part[:] = narrow.part[:] = boxes.part.max(initial=0)
        narrow = narrow.rows(slice(0, narrowed))
        return _Piece(space, reached, value, best, left.rows(slice(0, handed)), narrow, tally, work)

    def _take(self, piece: _Piece, done: Outcome) -> Outcome:
        self._idle.append(piece.work)
        self.boxes += int(piece.tally[0])
        if piece.found > self._best:
            self._best = piece.found
            self._found(piece.space.T @ piece.best[:-1])
        # the deepest boxes last: they are the next to be searched
        done.left.extend(piece.left.rows(slice(row, row + 1)) for row in range(len(piece.left.bound)))
        cutoff, unresolved = max(done.cutoff, piece.cutoff), done.unresolved
        for row in range(len(piece.narrow.bound)):
            if piece.narrow.bound[row] > max(cutoff, self.least_cutoff):
                unresolved = max(unresolved, self._settle(piece.narrow.rows(slice(row, row + 1))))
            else:  # closed by a value that was found meanwhile
                cutoff = max(cutoff, int(piece.narrow.bound[row]))
        return Outcome(cutoff, done.left, unresolved, done.spent + int(piece.tally[3]))


def compile_kernels() -> None:
    """Have the search compiled, or loaded from its cache on disk."""
    with WorkerPool(space_of(RerankProblem([[0.0], [1.0]], [0, 1])), 1, lambda x: None) as workers:
        workers.close(workers.searchable.roots, 0, lambda: None)


def _workspace(space: Space) -> Work:
    """Return memory for a thread, its largest part touched row by row: that can take longer than many boxes do."""
    work = Work.of(space)
    for row in (*work.columns, *work.single):
        if space.stop[0] != 0:  # the search will hand its boxes back at once
            break
        row[: space.columns.shape[1]] = 0.0
    return work


def _pop(pending: list[Boxes]) -> Boxes:
    """Take some boxes of one space off the stack: more where there are many, few enough that all threads have work."""
    most, taken = min(_TOGETHER, 1 + len(pending) // 16), [pending.pop()]
    while pending and len(taken) < most and pending[-1].part[0] == taken[0].part[0]:
        taken.append(pending.pop())
    return Boxes.joined(taken[::-1])


# --- candidates and boxes too narrow to split


def offer_candidate(state: SolveState, w: FloatArray, *, sparse: bool) -> None:
    """Offer a candidate; where it misses the side constraints by a rounding, the middle of its cell.

    Args:
        state: receives the weights.
        w: weights that satisfy the side constraints within the search's wider tolerance, (d,).
        sparse: whether zeros have to stay, but for free columns.
    """
    if state.offer(w) > -math.inf:
        return
    problem = state.problem
    middle = middle_of_cell(
        problem, w, (w != 0) | ~problem.counted if sparse else np.ones(problem.d, dtype=bool), _DOUBT
    )
    if middle is not None:
        state.offer(middle)


def settle_narrow(state: SolveState, problem: Problem, searchable: Searchable, box: Boxes) -> int:
    """Offer the vertices of a box too narrow to split, and return what its values do not exceed.

    Args:
        state: receives the weights.
        problem: the problem that is searched.
        searchable: the space of that problem.
        box: the box, one row.

    Returns:
        an integer that the values in the box do not exceed.
    """
    bound = int(box.bound[0])
    low, high = _weights_of(searchable.at(box), box)
    offer_simple(state, low, high)
    if bound <= searchable.cutoff(state.value, state.size):
        return bound
    value = largest_value(state, problem, low, high)
    return bound if value is None else min(bound, searchable.integer(math.nextafter(value, math.inf)) + 1)


def _weights_of(space: Space, box: Boxes) -> tuple[FloatArray, FloatArray]:
    """Return the least and largest weights of a box, rounded outwards; scaled to max |w_j| = 1 where length is free."""
    d = space.T.shape[1]
    if space.fixed:
        narrow = (box.low[0, :d] != box.high[0, :d]) * _WIDENED
        return space.T @ np.maximum(box.low[0, :d] - narrow, -1.0), space.T @ np.minimum(box.high[0, :d] + narrow, 1.0)
    middle = space.T @ (0.5 * (box.low[0, :d] + box.high[0, :d]))
    largest = float(np.abs(middle).max())
    if largest == 0:
        return -np.ones(d), np.ones(d)
    # dividing by max |w_j|, which is known no better than the weights, at most triples what they may be off
    half = 4 * (np.abs(space.T) @ (0.5 * (box.high[0, :d] - box.low[0, :d]))).max() / largest + _WIDENED
    low, high = np.maximum(middle / largest - half, -1.0), np.minimum(middle / largest + half, 1.0)
    on_face = np.abs(middle) / largest >= 1 - 2 * half
    if on_face.sum() == 1:
        low[on_face] = high[on_face] = np.sign(middle[on_face])
    return low, high
