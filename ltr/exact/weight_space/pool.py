"""The worker pool: threads that close the boxes of one space, and what becomes of candidates and narrow boxes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ltr.exact import tuning
from ltr.exact.largest_margin import middle_of_cell
from ltr.exact.problem import FloatArray, Problem
from ltr.exact.state import SolveState
from ltr.exact.vertices import largest_value, offer_simple
from ltr.exact.weight_space.space import BEYOND, Boxes, Searchable, Space
from ltr.native import SearchWorkspace, search_weight_space

Found = Callable[[FloatArray], None]
Settle = Callable[[Boxes], int]

NEVER = -(2**62)
"""As an integer of a space, below all values."""
_DOUBT = 1e-6  # share of the margin by which a candidate may miss it
_WIDENED = 1e-13  # added to a narrow box on every side
_SURROUNDINGS = 1e-9  # likewise, for the surroundings that it is settled with


@dataclass
class Outcome:
    """The result of `WorkerPool.close`.

    Attributes:
        target: bound on the values in the boxes except in `left` and `unresolved`: the given target, or the value of
            a better candidate.
        left: boxes that the allowance did not suffice for, the deepest last.
        unresolved: the largest bound of boxes too narrow to split that could not be settled either, far below all
            values if there were none.
        spent: pairs examined.
    """

    target: int
    left: list[Boxes] = field(default_factory=list)
    unresolved: int = NEVER
    spent: int = 0


class _Piece(NamedTuple):
    """Some boxes of one space that a thread has searched."""

    space: Space
    part: int  # its number
    work: SearchWorkspace
    found: Any  # what `search_weight_space` returned


class WorkerPool:
    """Searches boxes of one space on several threads; a context manager that ends its threads.

    `found` receives the weights of every better candidate, and `settle` every box too narrow to split, for which it
    returns what its values do not exceed, as an integer. They are called in the thread that calls `close`.

    Attributes:
        boxes: boxes searched so far.
        threads: number of threads that may be busy, at most that at the start; 0 for a pause.
        trusted: whether every candidate of the compiled search is feasible, so that its value raises the target.
        least_target: integer to which lower targets are raised, because of values found elsewhere meanwhile.
    """

    def __init__(
        self, searchable: Searchable, threads: int, found: Found, settle: Settle = lambda box: int(box.bound[0])
    ) -> None:
        self.searchable, self.boxes, self.least_target, self.trusted = searchable, 0, NEVER, True
        self.threads, self._found, self._settle = threads, found, settle
        self._pool_size, self._best = threads, NEVER
        self._idle: list[SearchWorkspace] = []
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._idle.clear()

    def close(self, boxes: Boxes, target: int, ends: Callable[[], bool], allowance: float = np.inf) -> Outcome:
        """Search boxes until everything in them is at most the target, or the allowance is used up.

        Args:
            boxes: boxes to search.
            target: bound at which a box is closed, an integer of the space.
            ends: called several times a second; ends the search where it returns True. The outcome is of no use then.
            allowance: work, in pairs examined, after which the boxes that are left are returned.
        """
        space, done = self.searchable.space, Outcome(target)
        least = 2 * space.arrays["columns"].size
        space.stop[0] = 0
        if self._pool is None and least <= tuning.ALONE and self.searchable.supports is None:
            boxes = self._take(self._search(boxes, target, tuning.ALONE), done)
            if ends() or len(boxes.bound) == 0 or done.spent >= allowance:
                done.left = list(boxes.each())
                return done
        self._pool = self._pool or ThreadPoolExecutor(self._pool_size, thread_name_prefix="weight-space")
        pending = list(boxes.each())
        running: set[Future[_Piece]] = set()
        try:
            while (pending and done.spent < allowance) or running:
                while pending and done.spent < allowance and len(running) < self.threads:
                    current = max(done.target, self.least_target)
                    if (bound := int(pending[-1].bound[0])) <= current:  # closed before its space is made
                        pending.pop()
                        done.target = max(done.target, bound)
                        continue
                    piece_size = max(int(min(tuning.PIECE, allowance - done.spent)), least)
                    running.add(self._pool.submit(self._search, _pop(pending), current, piece_size))
                if pending and not running:  # a pause
                    time.sleep(tuning.POOL_POLL)
                finished, running = wait(running, timeout=tuning.POOL_POLL, return_when=FIRST_COMPLETED)
                for future in finished:  # the deepest boxes come last: they are the next to be searched
                    pending.extend(self._take(future.result(), done).each())
                if ends():
                    break
        finally:
            space.stop[0] = 1
            wait(running)
        done.left = pending
        return done

    def _search(self, boxes: Boxes, target: int, allowance: int) -> _Piece:
        space = self.searchable.at(boxes)
        work = self._idle.pop() if self._idle else SearchWorkspace(space.compiled)
        low, high, used, bound, part = boxes
        found = search_weight_space(
            space.compiled, work, low, high, used, bound, target, allowance, tuning.NARROW_BOXES, self.trusted
        )
        return _Piece(space, int(part.max(initial=0)), work, found)

    def _take(self, piece: _Piece, done: Outcome) -> Boxes:
        """Add what a thread found to an outcome, and return the boxes that are left."""
        given_back, too_narrow, reached, value, best, boxes, spent = piece.found
        left, narrow = (
            Boxes(low, high, used, bound, np.full(len(bound), piece.part))
            for low, high, used, bound in (given_back, too_narrow)
        )
        self._idle.append(piece.work)
        self.boxes += boxes
        if value > self._best:
            self._best = value
            self._found(piece.space.T @ best[:-1])
        done.target, done.spent = max(done.target, reached), done.spent + spent
        for box in narrow.each():
            if box.bound[0] > max(done.target, self.least_target):
                done.unresolved = max(done.unresolved, self._settle(box))
            else:  # closed by a value found in the meantime
                done.target = max(done.target, int(box.bound[0]))
        return left


def _pop(pending: list[Boxes]) -> Boxes:
    """Take some boxes of one space off the stack: more where there are many, few enough that all threads have work."""
    most, taken = min(tuning.BOXES_TOGETHER, 1 + len(pending) // 16), [pending.pop()]
    while pending and len(taken) < most and pending[-1].part[0] == taken[0].part[0]:
        taken.append(pending.pop())
    return Boxes.joined(taken[::-1])


# --- candidates and boxes too narrow to split ---------------------------------------------------------------------


def offer_candidate(state: SolveState, w: FloatArray, *, sparse: bool) -> None:
    """Offer a candidate or, if it misses the side constraints by a rounding error, the middle of its cell.

    `sparse` says whether weights of 0 have to stay 0, except those of free columns.
    """
    problem = state.problem
    if state.offer(w) > -math.inf or problem.integer is not None:
        return
    support = (w != 0) | ~problem.counted if sparse else np.ones(problem.d, dtype=bool)
    middle = middle_of_cell(problem, w, support, _DOUBT)
    if middle is not None:
        state.offer(middle)


class NarrowBoxes:
    """Settles boxes too narrow to split, each together with its surroundings: hundreds may lie around one vertex.

    The largest value in the surroundings may be above those of the boxes. Then it raises the target, or, where no
    float64 weights attain it, the box is settled alone. The state receives the weights that are found.
    """

    def __init__(self, state: SolveState, problem: Problem) -> None:
        self._state, self._problem = state, problem
        # regions and the largest value in each, infinite where it takes too much work
        self._known: list[tuple[FloatArray, FloatArray, float]] = []

    def settle(self, searchable: Searchable, box: Boxes) -> int:
        """Offer the vertices of a box and its surroundings, and return what the values in the box do not exceed."""
        state, problem, bound = self._state, self._problem, int(box.bound[0])

        def within(value: float) -> int:
            return min(bound, searchable.integer(math.nextafter(value, math.inf)) + 1)

        if problem.integer is not None:
            T = searchable.at(box).T
            w, wide = T @ box.low[0, :-1], T @ (box.high - box.low)[0, :-1] != 0
            state.offer(w)
            if np.any(np.ptp(problem.X[:, wide], axis=0)):  # differences so small that no split seemed to matter
                return bound
            if problem.feasible(w):  # all weights in the box win the same pairs
                return within(problem.evaluate(w))
            missed = not all(demanded.met(w) for demanded in problem.demanded)
            return bound if wide.any() and not missed else -BEYOND
        low, high = _weights_of(searchable.at(box), box)
        known = [value for least, most, value in self._known if np.all(least <= low) and np.all(high <= most)]
        if math.isfinite(least_known := min(known, default=math.inf)):
            bound = within(least_known)
        if bound <= searchable.target(state.value, state.size):
            return bound
        if not problem.linear:
            found = problem.sides.point(low, high)
            if found is None:
                return -BEYOND
            state.offer(found)
        else:
            offer_simple(state, low, high)
        if math.inf in known:  # it took too much work beside this box
            return bound
        wide, undecided = low < high, True
        least = np.where(wide, np.maximum(low - _SURROUNDINGS, -1.0), low)
        most = np.where(wide, np.minimum(high + _SURROUNDINGS, 1.0), high)
        for region in ((least, most), (low, high)):
            if bound <= searchable.target(state.value, state.size):
                return bound
            if (value := largest_value(state, problem, *region)) is not None:
                self._known.append((*region, value))
                bound, undecided = within(value), False
        if undecided:
            self._known.append((least, most, math.inf))
        return bound


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
    # dividing by max |w_j|, which is no more accurate than the weights, at most triples their error
    half = 4 * (np.abs(space.T) @ (0.5 * (box.high[0, :d] - box.low[0, :d]))).max() / largest + _WIDENED
    low, high = np.maximum(middle / largest - half, -1.0), np.minimum(middle / largest + half, 1.0)
    on_face = np.abs(middle) / largest >= 1 - 2 * half
    if on_face.sum() == 1:
        low[on_face] = high[on_face] = np.sign(middle[on_face])
    return low, high
