r"""Bounds from operating points, for lists of so many features that boxes hardly move the bound.

Let N_j(w) be the number of positives that lose to at most j negatives. The statistic is its value for a perfect order
minus a sum of losses, each of which falls with one N_j (``docs/maths.md``, "Operating points"):

    value(w) = sum over p of contribution[p]  -  sum over j of loss_j(N_j(w)),
    loss_j(N) = contribution[N + j] - contribution[n_pos + j].

The search of ``ltr/native/weight_space/operating_points.h`` shows that no weights lose less than a given sum. It is
asked for two things in turn:

* for every j alone, the largest N_j that any weights reach: ``no weights lose fewer than r positives``, r = 1, 2, ...
* for a few levels j together, because no single w reaches all of these: each proof asks for a little more loss than the
  last.

Each proof about one more positive takes about twice the work of the last, so the level that lowers the bound most for
the work expected is next. Losses are integers of the searched space, rounded as its tables are. With tiny margins no
infeasible subsystem is accepted, and nothing is proven (see ``subsystems.h``).
"""

from __future__ import annotations

import time
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

import numpy as np

from ltr.exact import tuning
from ltr.exact.problem import FloatArray, IntArray, Problem
from ltr.exact.weight_space.space import BEYOND, Searchable
from ltr.native import OperatingPoints

_OPEN, _PROVEN, _FOUND = 0, 1, 2

_T = TypeVar("_T")
_Schedule = Generator[OperatingPoints | None, tuple[int, int], _T]
"""Yields searches to go on with, is sent how each ended and its work, and returns a result."""


def apply_to(problem: Problem) -> bool:
    """Return whether the problem has one list of two classes, neither too long nor of too few features."""
    if problem.d < tuning.POINTS_FEATURES or problem.n > tuning.POINTS_ROWS:
        return False
    levels = problem.levels()
    return len(levels.table) == 1 and len(levels.observation) > 1 and len(levels.below) > 0


class PointsThreads:
    """Has bounds from operating points computed beside a search of boxes.

    As long as they are no better than those of the boxes they get a small share of the time, else a thread. Where the
    boxes have proven nothing better for a while, they get all threads, and the boxes a small share of the time.

    Attributes:
        bound: the lowest bound, an integer of the space.
        taken: the number of threads that the boxes have to do without.
    """

    def __init__(self, problem: Problem, searchable: Searchable, threads: int) -> None:
        self._points = OperatingPointBounds(problem, searchable, threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="operating-points") if threads > 1 else None
        self._running: list[Future[bool] | None] = [None] * threads
        self._idle: list[int | None] = [None] * threads  # sum of the caps at which a worker found nothing to do
        self._started = self._polled = time.monotonic()
        self._boxes = 0.0  # seconds that the boxes have had since the bound became the better one
        self._target, self._wanted = -BEYOND, 0
        self.bound, self.taken = self._points.bound, 0

    def poll(self, target: int, others: int, patience: float = 0.0) -> int:
        """Return the bound, and go on if it is time to.

        Args:
            target: integer of the space below which no bound is of use.
            others: the lowest bound proven by other means.
            patience: seconds in which boxes need not have proven a better bound.
        """
        points, now = self._points, time.monotonic()
        elapsed, threads = now - self._started, len(self._running)
        self.bound, self._target = points.bound, target
        leads = self.bound <= others and self.bound < points.perfect and not points.finished
        self._boxes = self._boxes + (now - self._polled) * (self.taken < threads) if leads else 0.0
        self._polled = now
        if self._pool is None:
            if (
                not points.finished
                and points.seconds <= (tuning.POINTS_LEADING_SHARE if leads else tuning.POINTS_SHARE) * elapsed
            ):
                points.advance(target)
            return self.bound
        alone = leads and self._boxes > max(tuning.POINTS_TRIAL, tuning.POINTS_SHARE * elapsed, patience)
        self._wanted = threads if alone else int(leads)
        if leads or (not points.finished and points.seconds <= tuning.POINTS_SHARE * elapsed):
            for worker in range(max(self._wanted, 1)):
                running = self._running[worker]
                if running is not None and not running.done():
                    continue
                caps = int(points.caps.sum())
                if running is not None and not running.result() and worker > 0:
                    self._idle[worker], self._running[worker] = caps, None
                if self._idle[worker] != caps:
                    self._running[worker] = self._pool.submit(self._go_on, worker)
        busy = sum(running is not None and not running.done() for running in self._running)
        self.taken = busy if leads else 0
        return self.bound

    def _go_on(self, worker: int) -> bool:
        """Advance as long as the worker is wanted, at least once; return whether it has anything left to do."""
        while left := self._points.advance(self._target, worker):
            if worker >= self._wanted:
                break
        return left

    def close(self) -> None:
        """End the threads."""
        self._points.stop()
        if self._pool is not None:
            self._pool.shutdown(wait=True)


class OperatingPointBounds:
    """Bounds that fall as long as `advance` is called.

    Several threads may advance, each as a worker of its own. The first one proves counts of single levels and of
    several levels in turn, the others only those of single levels that nobody else is at.

    Attributes:
        perfect: value of a perfect order, an integer of the space.
        bound: integer that no value exceeds.
        caps: upper bounds of max over w of N_j(w), (n_neg,).
        seconds: time spent by the first worker.
        finished: whether nothing more can be proven.
    """

    def __init__(self, problem: Problem, searchable: Searchable, workers: int = 1) -> None:
        levels = problem.levels()
        self._contribution = searchable.space.contribution
        upper, lower = levels.observation, np.unique(levels.below)
        self._n_pos, self._n_neg = len(upper), len(lower)
        points = np.ascontiguousarray(problem.X[np.concatenate([upper, lower])])
        positive = np.repeat(np.array([1, 0], np.uint8), [self._n_pos, self._n_neg])
        self._points, self._positive, self._problem = points, positive, problem
        self._choices = [j for j in tuning.POINTS_LEVELS if j < self._n_neg]
        self._alone = [self._search(1) for _ in range(workers)]
        self._take_levels(tuning.POINTS_FIRST_LEVELS)
        self._stop = np.zeros(1, np.uint8)
        self.perfect = int(self._contribution[: self._n_pos].sum())
        self.caps = np.full(self._n_neg, self._n_pos)  # upper bounds of the N_j
        self._reached = np.zeros(self._n_neg, dtype=bool)  # whether some weights reach them
        self._work = np.zeros(self._n_neg)  # expected of the next proof of each level
        self._busy: set[int] = set()  # levels that some worker is at
        self.bound, self.seconds, self.finished = self.perfect, 0.0, False
        self._allowance, self._target = [tuning.POINTS_FIRST] * workers, -BEYOND
        self._lock = Lock()  # held but for the searches
        self._schedules = [self._schedule() if worker == 0 else self._further(worker) for worker in range(workers)]
        self._begun = [False] * workers
        self._searches: list[OperatingPoints | None] = [None] * workers  # that each is at

    def _take_levels(self, number: int) -> None:
        self._above = np.sort(self._choices[:number])
        self._together = self._search(len(self._above))

    def _search(self, levels: int) -> OperatingPoints:
        return OperatingPoints(self._points, self._positive, levels, self._problem.margin, self._problem.reach)

    def stop(self) -> None:
        """Have calls of `advance` in other threads return at once."""
        self._stop[0] = 1

    def advance(self, target: int, worker: int = 0) -> bool:
        """Go on for about a tenth of a second; return whether there is anything left to do.

        No bound below the target is of use. Only one thread at a time goes on for a worker.
        """
        started, allowance = time.monotonic(), self._allowance[worker]
        left, self._target = allowance, target
        with self._lock:
            search = self._searches[worker] or self._resume(worker, (_OPEN, 0))
        while search is not None and left > 0 and not self._stop[0]:
            progress, work = search.advance(left, self._stop)[:2]
            left -= work
            with self._lock:
                search = self._resume(worker, (progress, work))
        self._searches[worker] = search
        took = time.monotonic() - started
        if left <= 0:
            self._allowance[worker] = int(allowance * min(max(tuning.POINTS_SECONDS / max(took, 1e-6), 0.5), 2.0))
        if worker == 0:
            self.seconds += took
            self.finished = search is None or self.bound <= target
        return search is not None and not self.finished and not self._stop[0]

    def _resume(self, worker: int, result: tuple[int, int]) -> OperatingPoints | None:
        """Tell a worker's schedule how a search went on; return the one to go on with, None if there is none now."""
        schedule = self._schedules[worker]
        try:
            if self._begun[worker]:
                return schedule.send(result)
            self._begun[worker] = True
            return next(schedule)
        except StopIteration:
            return None

    def _schedule(self) -> _Schedule[None]:
        """Yield the searches to go on with, single levels and several of them in turn."""
        effort, share = tuning.POINTS_EFFORT, 1.0
        while self.bound > self._target and not self._stop[0]:
            yield from self._alone_within(0, effort)
            last, before = bool(self._reached.all()), self.bound  # nothing else is left to do
            progress = yield from self._together_within(BEYOND if last else int(share * effort))
            if progress == _FOUND and last:
                return
            share = 1.0 if self.bound < before else max(share / tuning.POINTS_FEWER, tuning.POINTS_LEAST_SHARE)
            effort = int(effort * tuning.POINTS_MORE)

    def _further(self, worker: int) -> _Schedule[None]:
        """Yield searches of single levels, None while other workers are at all that are left."""
        while True:
            yield from self._alone_within(worker, BEYOND)
            yield None

    def _alone_within(self, worker: int, effort: int) -> _Schedule[None]:
        """Lower the caps within some effort, first the one that lowers the bound most for the work expected."""
        search = self._alone[worker]
        removed = np.arange(self._n_pos + 1)[None, :].copy()  # the loss is the number of positives removed
        while effort > 0 and self.bound > self._target:
            left = ~self._reached
            left[list(self._busy)] = False
            if not left.any():
                return
            j = int(np.argmax(np.where(left, self._gains() / np.maximum(self._work, tuning.POINTS_PROOF), -1.0)))
            allowed = int(tuning.POINTS_PATIENCE * max(self._work[j], tuning.POINTS_PROOF))
            required = int(self._n_pos - self.caps[j]) + 1
            for other in self._alone:
                if other is not search:
                    search.learn_from(other)
            self._busy.add(j)
            progress, work = yield from self._proof(search, np.array([j]), removed, required, allowed)
            self._busy.remove(j)
            effort -= work
            if progress == _PROVEN:
                self._work[j] = tuning.POINTS_HARDER * work
                self.caps[: j + 1] = np.minimum(self.caps[: j + 1], self._n_pos - required)
                self._prove(int(self._losses(np.arange(self._n_neg), self.caps).sum()))
            elif progress == _FOUND:
                self._reached[j] = True
            else:
                self._work[j] = tuning.POINTS_HARDER * work
            # N_j does not fall with j
            self._reached |= np.maximum.accumulate(np.where(self._reached, self.caps, -1)) >= self.caps

    def _gains(self) -> FloatArray:
        """Return how much lower the bound is for each cap that is lowered by one."""
        j = np.arange(self._n_neg)
        return np.asarray((self._losses(j, np.maximum(self.caps - 1, 0)) - self._losses(j, self.caps)).astype(float))

    def _together_within(self, effort: int) -> _Schedule[int]:
        """Raise the loss that all weights have, with some effort for each step; return how the last one ended."""
        progress = _PROVEN
        loss, rest = self._table()
        while progress == _PROVEN and self.bound > self._target:
            lost = self.perfect - self.bound
            required = min(int(lost * tuning.POINTS_GROWTH) + 1, self.perfect - self._target)
            progress = _PROVEN
            if required > rest:
                progress, _ = yield from self._proof(self._together, self._above, loss, required - rest, effort)
            if progress == _PROVEN:
                self._prove(required)
            elif progress == _FOUND and len(self._above) < len(self._choices):
                self._take_levels(len(self._above) + 1)
                loss, rest = self._table()
                progress = _PROVEN
        return progress

    def _table(self) -> tuple[IntArray, int]:
        """Return the losses of the levels searched together, and what the levels above them lose at least."""
        begins = np.concatenate([[0], self._above[:-1] + 1])
        loss = np.array(
            [self._block(begin, end) for begin, end in zip(begins.tolist(), self._above.tolist(), strict=True)]
        )
        beyond = np.arange(self._above[-1] + 1, self._n_neg)
        rest = int(self._losses(beyond, self.caps[beyond]).sum())  # of levels above the highest
        for search in self._alone:
            self._together.learn_from(search)
        return loss, rest

    def _proof(
        self, search: OperatingPoints, above: IntArray, loss: IntArray, required: int, effort: int
    ) -> _Schedule[tuple[int, int]]:
        """Return how a proof ended, `_OPEN` without an end within some effort, and its work."""
        search.start(above, loss, required)
        progress, spent = _OPEN, 0
        while progress == _OPEN and spent < effort:
            progress, work = yield search
            spent += work
        return progress, spent

    def _prove(self, lost: int) -> None:
        self.bound = min(self.bound, self.perfect - lost)

    def _losses(self, j: IntArray, most: IntArray) -> IntArray:
        """Return loss_j(most) of some levels."""
        return self._contribution[most + j] - self._contribution[self._n_pos + j]

    def _block(self, begin: int, end: int) -> IntArray:
        """Return what the levels from `begin` to `end` lose if r = 0, 1, ... positives are removed from the last."""
        j, removed = np.arange(begin, end + 1), np.arange(self._n_pos + 1)[:, None]
        return self._losses(j, np.minimum(self.caps[j], self._n_pos - removed)).sum(axis=1)
