r"""Bounds from operating points, for lists of so many features that boxes hardly move the bound.

Let N_j(w) be the number of positives that lose to at most j negatives. The statistic is its value for a perfect order
minus a sum of losses, each of which falls with one N_j:

    value(w) = sum over p of contribution[p]  -  sum over j of loss_j(N_j(w)),
    loss_j(N) = contribution[N + j] - contribution[n_pos + j].

``ltr/native/weight_space/operating_points.h`` has the proof, and a search that shows that no weights lose less than a
given sum. It is asked for two things in turn:

* for every j alone, the largest N_j that any weights reach: ``no weights lose fewer than r positives``, r = 1, 2, ...
* for a few levels j together, because no single w reaches all of these: each proof asks for a little more loss than the
  last.

Each proof about one more positive takes about twice the work of the last, so the level that lowers the bound most for
the work expected is next. Levels together get as much work as single ones while that lowers the bound, else less.

All losses are integers of the searched space, rounded as its tables are, so a proof is one of an integer bound.

*Margin.* Multipliers of infeasible subsystems hold up to rounding, which has to stay below the margin (see
``subsystems.h``). With tiny margins no subsystem is accepted, and nothing is proven.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from ltr.exact.problem import FloatArray, IntArray, Problem
from ltr.exact.weight_space.space import BEYOND, Searchable
from ltr.native import OperatingPoints

_MOST_ROWS, _LEAST_FEATURES = 200, 5
# numbers of negatives that may stand above the positives of a level, in the order in which levels are added: two
# levels prove most in the first seconds, others follow where these do not suffice
_ABOVE, _FIRST_LEVELS = (0, 8, 3, 15, 5, 24, 1, 11), 2
_GROWTH = 1.03  # of the loss to be proven
_SHARE, _LEADING_SHARE = 1 / 16, 1 / 2  # of the time, while boxes prove more and while they prove less
_SECONDS = 0.1  # of a call, about
_FIRST = 10_000_000  # work of the first call: some hundredths of a second
_EFFORT, _MORE = 20_000_000, 2.0  # work of a round at first, and its growth from round to round
_FEWER, _LEAST_SHARE = 3.0, 0.05  # fall of the share of work on several levels that proves nothing, and its least
_PROOF = 200_000.0  # least work expected of a proof
_HARDER, _PATIENCE = 2.0, 3.0  # growth of the work from one proof of a level to the next; excess at which one is left
_OPEN, _PROVEN, _FOUND = 0, 1, 2


def apply_to(problem: Problem) -> bool:
    """Return whether the problem has one list of two classes, neither too long nor of too few features."""
    if problem.d < _LEAST_FEATURES or problem.n > _MOST_ROWS:
        return False
    levels = problem.levels()
    return len(levels.table) == 1 and len(levels.observation) > 1


class PointsThread:
    """Has bounds from operating points computed beside a search of boxes.

    As long as they are no better than those of the boxes they get a small share of the time, else a thread.

    Attributes:
        bound: the lowest bound, an integer of the space.
        leads: whether the bound is below that of the boxes.
    """

    def __init__(self, problem: Problem, searchable: Searchable, threads: int) -> None:
        self._points = OperatingPointBounds(problem, searchable)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="operating-points") if threads > 1 else None
        self._running: Future[None] | None = None
        self._started = time.monotonic()
        self.bound, self.leads = self._points.bound, False

    def poll(self, cutoff: int, others: int) -> int:
        """Return the bound, and go on if it is time to.

        Args:
            cutoff: integer of the space below which no bound is of use.
            others: the lowest bound proven by other means.
        """
        if self._running is not None and not self._running.done():
            return self.bound
        if self._running is not None:
            self._running.result()
        points, share = self._points, _SHARE
        self.bound, self._running = points.bound, None
        self.leads = self.bound <= others and self.bound < points.perfect and not points.finished
        if self.leads:
            share = _LEADING_SHARE if self._pool is None else 1.0
        if not points.finished and points.seconds <= share * (time.monotonic() - self._started):
            if self._pool is None:
                points.advance(cutoff)
            else:
                self._running = self._pool.submit(points.advance, cutoff)
        return self.bound

    def close(self) -> None:
        """End the thread."""
        self._points.stop()
        if self._pool is not None:
            self._pool.shutdown(wait=True)


class OperatingPointBounds:
    """Bounds that fall as long as `advance` is called.

    Attributes:
        perfect: value of a perfect order, an integer of the space.
        bound: integer that no value exceeds.
        caps: upper bounds of max over w of N_j(w), (n_neg,).
        seconds: time spent.
        finished: whether nothing more can be proven.
    """

    def __init__(self, problem: Problem, searchable: Searchable) -> None:
        levels = problem.levels()
        self._contribution = searchable.space.contribution
        upper, lower = levels.observation, np.unique(levels.below)
        self._n_pos, self._n_neg = len(upper), len(lower)
        points = np.ascontiguousarray(problem.X[np.concatenate([upper, lower])])
        positive = np.repeat(np.array([1, 0], np.uint8), [self._n_pos, self._n_neg])
        self._points, self._positive, self._margin = points, positive, problem.margin
        self._choices = [j for j in _ABOVE if j < self._n_neg]
        self._alone = OperatingPoints(points, positive, 1, problem.margin)
        self._take_levels(_FIRST_LEVELS)
        self._stop = np.zeros(1, np.uint8)
        self.perfect = int(self._contribution[: self._n_pos].sum())
        self.caps = np.full(self._n_neg, self._n_pos)  # upper bounds of the N_j
        self._reached = np.zeros(self._n_neg, dtype=bool)  # whether some weights reach them
        self._work = np.zeros(self._n_neg)  # expected of the next proof of each level
        self.bound, self.seconds, self.finished = self.perfect, 0.0, False
        self._allowance, self._left, self._cutoff = _FIRST, _FIRST, -BEYOND
        self._turns = self._schedule()

    def _take_levels(self, number: int) -> None:
        self._above = np.sort(self._choices[:number])
        self._together = OperatingPoints(self._points, self._positive, len(self._above), self._margin)

    def stop(self) -> None:
        """Have a call of `advance` in another thread return at once."""
        self._stop[0] = 1

    def advance(self, cutoff: int) -> None:
        """Go on for about a tenth of a second.

        Args:
            cutoff: integer of the space below which no bound is of use.
        """
        started = time.monotonic()
        self._cutoff, self._left = cutoff, self._allowance
        self.finished = next(self._turns, True) is True or self.bound <= cutoff
        took = time.monotonic() - started
        self._allowance = int(self._allowance * min(max(_SECONDS / max(took, 1e-6), 0.5), 2.0))
        self.seconds += took

    def _schedule(self) -> Generator[None, None, None]:
        """Yield whenever the allowance of a call is used up."""
        effort, share = _EFFORT, 1.0
        while self.bound > self._cutoff and not self._stop[0]:
            yield from self._alone_within(effort)
            last, before = bool(self._reached.all()), self.bound  # nothing else is left to do
            progress = yield from self._together_within(BEYOND if last else int(share * effort))
            if progress == _FOUND and last:
                return
            share = 1.0 if self.bound < before else max(share / _FEWER, _LEAST_SHARE)
            effort = int(effort * _MORE)

    def _alone_within(self, effort: int) -> Generator[None, None, None]:
        """Lower the caps within some effort, first the one that lowers the bound most for the work expected."""
        removed = np.arange(self._n_pos + 1)[None, :].copy()  # the loss is the number of positives removed
        while effort > 0 and not self._reached.all() and self.bound > self._cutoff:
            j = int(np.argmax(np.where(self._reached, -1.0, self._gains() / np.maximum(self._work, _PROOF))))
            allowed = int(_PATIENCE * max(self._work[j], _PROOF))
            progress, work = yield from self._proof(self._alone, np.array([j]), removed, self._lost(j) + 1, allowed)
            effort -= work
            if progress == _PROVEN:
                self._work[j] = _HARDER * work
                self.caps[: j + 1] = np.minimum(self.caps[: j + 1], self.caps[j] - 1)
                self._prove(int(self._losses(np.arange(self._n_neg), self.caps).sum()))
            elif progress == _FOUND:
                self._reached[j] = True
            else:
                self._work[j] = _HARDER * work
            # N_j does not fall with j
            self._reached |= np.maximum.accumulate(np.where(self._reached, self.caps, -1)) >= self.caps

    def _gains(self) -> FloatArray:
        """Return how much lower the bound is for each cap that is lowered by one."""
        j = np.arange(self._n_neg)
        return np.asarray((self._losses(j, np.maximum(self.caps - 1, 0)) - self._losses(j, self.caps)).astype(float))

    def _together_within(self, effort: int) -> Generator[None, None, int]:
        """Raise the loss that all weights have, with some effort for each step; return how the last one ended."""
        progress = _PROVEN
        loss, rest = self._table()
        while progress == _PROVEN and self.bound > self._cutoff:
            lost = self.perfect - self.bound
            required = min(int(lost * _GROWTH) + 1, self.perfect - self._cutoff)
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
        self._together.learn_from(self._alone)
        return loss, rest

    def _proof(
        self, search: OperatingPoints, above: IntArray, loss: IntArray, required: int, effort: int
    ) -> Generator[None, None, tuple[int, int]]:
        """Return how a proof ended, `_OPEN` without an end within some effort, and its work."""
        search.start(above, loss, required)
        progress, spent = _OPEN, 0
        while progress == _OPEN and spent < effort:
            if self._left <= 0 or self._stop[0]:
                yield
            progress, work = search.advance(self._left, self._stop)[:2]
            spent += work
            self._left -= work
        return progress, spent

    def _prove(self, lost: int) -> None:
        self.bound = min(self.bound, self.perfect - lost)

    def _lost(self, j: int) -> int:
        return int(self._n_pos - self.caps[j])

    def _losses(self, j: IntArray, most: IntArray) -> IntArray:
        """Return loss_j(most) of some levels."""
        return self._contribution[most + j] - self._contribution[self._n_pos + j]

    def _block(self, begin: int, end: int) -> IntArray:
        """Return what the levels from `begin` to `end` lose if r = 0, 1, ... positives are removed from the last."""
        j, removed = np.arange(begin, end + 1), np.arange(self._n_pos + 1)[:, None]
        return self._losses(j, np.minimum(self.caps[j], self._n_pos - removed)).sum(axis=1)
