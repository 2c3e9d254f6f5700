r"""From boxes to a proof: targets lowered step by step, so that good bounds come early.

Closing every box at a target T proves that nothing exceeds T. The work grows as T comes down to the best value known,
by a factor that shows itself on the way; each target is set where the work is expected to grow `_GROWTH`-fold. So the
last, which proves the value itself, takes most of the time, and each one before it has left a bound.

*Subranks.* At any weights they are worth no more than ResolvedRanks (`ltr.verify` has the proof). In a box they may
promise more all the same: of two positives that are not decided, each counts as the winner. ResolvedRanks do without
such pairs, so their boxes are searched first; where the optima agree, as they do unless positives tie, that is all.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ltr.exact.memory import MEGABYTE
from ltr.exact.problem import Problem
from ltr.exact.solution import Status
from ltr.exact.state import Ending, SolveState, Stopped
from ltr.exact.warm import search_locally
from ltr.exact.weight_space.coordinates import adapted, apply_to
from ltr.exact.weight_space.crew import Crew
from ltr.exact.weight_space.node import offer_candidate, settle_narrow
from ltr.exact.weight_space.space import BEYOND, TOLERANCE, Boxes, Searchable, memory_needed, space_of

__all__ = ["out_of_reach", "prove"]

FloatArray = NDArray[np.float64]

_GROWTH, _LEAST_GROWTH = 3.0, 1.3  # of the work from target to target
_FILL = 0.8  # share of the time left that a target may take
_LAST_GROWTH = 16.0  # expected on the way to `_PAIRS` lost pairs, below which the next target is the value
_MOMENT = 1e-3  # seconds, the shortest that are told apart
_POWER, _LEAST_POWER, _MOST_POWER = 2.0, 0.4, 4.5  # of 1 / aim in the work, before it is known and at the ends
_PAIRS = 4
_MOST_TERMS = 50_000_000  # pairs times coordinates: one box takes about half a second, and bounds hardly move
_LONG = 2_000_000  # pairs looked at on one target, from which better coordinates are looked for
_CLEARLY = 0.2  # of `adapted`'s gain, a logarithm of boxes, from which they are taken
_AROUND = 0.01  # half-width of the first box around the best weights
_LEAST_AROUND = 1_000_000  # pairs looked at
_WORTHWHILE = 500_000  # pairs looked at on a target, from which better weights are looked for
_LEAST_SECONDS = 0.1
_PAUSE = 5.0  # seconds on one target after which better weights are looked for, twice as many where there were none
_MANY = 1_000_000  # restarts: as many as fit the time
_NARROW = "the boxes left are too narrow to decide"


def out_of_reach(state: SolveState) -> Ending | None:
    """Return why a problem is too large to be searched for a proof within the memory left, None where it is not."""
    problem, left = state.problem, state.memory.left
    pairs, needed = problem.pair_count, memory_needed(problem, threads=1)
    bound = "the bound is that of a perfect order"
    if needed > left:
        need, have = math.ceil(needed / MEGABYTE), max(0, int(left / MEGABYTE))
        return Ending(Status.MEMORY_LIMIT, f"a proof needs about {need} MB, and {have} MB may be used: {bound}")
    if pairs * (problem.d + 1) > _MOST_TERMS:
        return Ending(Status.HEURISTIC, f"{pairs} pairs of {problem.d} features are too many for a proof: {bound}")
    return None


def prove(state: SolveState, threads: int, coordinates: str | None = None, local_search: float = 0.0) -> Ending:
    """Prove the value of a state's weights, or of better ones, within its limits.

    Args:
        state: its best weights, where it has any, are what the search starts from.
        threads: to use; fewer where memory does not suffice.
        coordinates: one of `SYSTEMS`; None for the adapted ones where they gain anything.
        local_search: share of the time for looking for better weights, between two targets and during long ones.

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
    """Prove the value of a state's weights by a problem that is worth no less at any weights."""
    search = _Search(state, problem, threads, local_search)
    if coordinates == "adapted":
        search.adapt(-math.inf)
    search.attained()
    schedule = _Schedule(state.bound - state.value, _quantum(search.searchable))
    while True:
        # `target` adds a tolerance, which must not carry the bound beyond the gap asked for
        aim = max(schedule.aim, state.limits.gap * abs(state.value) - 2 * TOLERANCE * state.size)
        target = search.target(state.value + aim) if math.isfinite(state.value) else -BEYOND
        started = state.seconds
        spent, resolved = search.lower(target)
        if state.value == -math.inf:
            # nothing feasible may exceed what was not even reached, nor be told from what was
            return Ending(Status.INFEASIBLE) if resolved else Ending(Status.INEXACT, _NARROW)
        if state.closed(claimed=False) or state.gap <= state.limits.gap:
            return Ending(Status.OPTIMAL, f"searched in {search.coordinates} coordinates")
        stuck = problem is not state.problem and not resolved  # the bound is the optimum, but of that problem
        if stuck or (schedule.aim == 0 and state.value <= schedule.value):
            return Ending(Status.INEXACT, _NARROW)
        schedule.advance(spent, state.value, state.remaining / max(state.seconds - started, _MOMENT))
        if local_search > 0 and spent >= _WORTHWHILE:
            search.search_locally()
            search.search_around(max(local_search * spent, _LEAST_AROUND))
        if coordinates is None and spent >= _LONG and search.adaptable:
            search.adapt(_CLEARLY)
            schedule.forget()


class _Attained(Exception):  # noqa: N818 - good news, not an error
    """The best weights are worth the bound."""


class _Undecided(Exception):  # noqa: N818 - a way on, not an error
    """A box too narrow to split is worth more than the target by ResolvedRanks, which Subranks need not attain."""


class _Schedule:
    """How far above the value each target lies: the work is taken to grow as a power of 1 / that."""

    def __init__(self, gap: float, quantum: float) -> None:
        self.value = -math.inf
        self.aim = 0.75 * gap if math.isfinite(gap) else 0.0
        self._quantum, self._power = quantum, _POWER
        self._last, self._work = 0.0, 0.0

    def forget(self) -> None:
        """What targets took before tells nothing of the next."""
        self._work = 0.0

    def advance(self, spent: int, value: float, room: float) -> None:
        """Set the next aim from the work that the last took; there is room for `room` times as much."""
        if self._work > 0 and 0 < self.aim < self._last:
            power = math.log(max(spent / self._work, 1.0)) / math.log(self._last / self.aim)
            self._power = min(max(power, _LEAST_POWER), _MOST_POWER)
        self.value, self._last, self._work = value, self.aim, float(spent)
        growth = min(max(_FILL * room, _LEAST_GROWTH), _GROWTH)
        few = self._quantum * _LAST_GROWTH ** (1 / self._power)
        self.aim *= growth ** (-1 / self._power) if self.aim > few else 0.0


class _Search:
    """A state, the problem whose boxes are searched for it, and the coordinates of these."""

    def __init__(self, state: SolveState, problem: Problem, threads: int, share: float) -> None:
        self.state, self.searchable, self.coordinates = state, space_of(problem, tick=state.check), "given"
        self._problem, self._threads, self._share, self._boxes = problem, threads, share, state.nodes
        self._looked, self._turn, self._pause = state.seconds, 0, _PAUSE
        self._adapted = -math.inf

    @property
    def adaptable(self) -> bool:
        """Whether other coordinates would do, and better weights than the last to adapt them to are known."""
        return apply_to(self._problem) and self.state.value > self._adapted

    def adapt(self, least: float) -> None:
        """Search in coordinates adapted to the best weights from here on, where they gain enough."""
        self._adapted = self.state.value
        found = adapted(self._problem, self.state.weights)
        if found is not None and found[1] > least:
            self.searchable, self.coordinates = space_of(self._problem, found[0], self.state.check), "adapted"

    def target(self, value: float) -> int:
        """A value as an integer of the space that no weights worth as little exceed."""
        return self.searchable.target(value, self.state.size)

    def lower(self, target: int) -> tuple[int, bool]:
        """Prove a target, or what comes out above it; returns the work and whether every box was decided."""
        with self._crew(self.searchable) as crew:
            done = crew.close(self.searchable.roots, target, functools.partial(self._check, crew))
        resolved = max(done.unresolved, done.target) <= target
        if math.isfinite(self.state.value):
            bound = self.searchable.objective(max(done.target, done.unresolved))
            self.state.prove(max(bound, self.state.zero_value))
            self.state.observe(self.state.bound, nodes=self._boxes)
        return done.spent, resolved

    def search_locally(self) -> None:
        """Look for better weights, for a share of the time since the last look, or a moment where that is no more."""
        self._turn += 1
        since, value = self.state.seconds - self._looked, self.state.value
        seconds = max(self._share * since, min(_LEAST_SECONDS, since))
        search_locally(self.state, seconds, _MANY, turn=self._turn)
        self._looked = self.state.seconds
        self._pause = _PAUSE if self.state.value > value else 2 * self._pause

    def search_around(self, allowance: float) -> None:
        """Search boxes around the best weights, twice as wide each time, as far as the allowance goes."""
        width = _AROUND
        while allowance > 0 and width < 1 and self.state.value > -math.inf and self.state.weights.any():
            value = self.state.value
            with self._crew(self.searchable) as crew:
                box = self._box_around(width)
                target = self.target(value)
                done = crew.close(box, target, functools.partial(self._check, crew), allowance)
            allowance -= done.spent
            if self.state.value == value:
                width *= 2

    def _box_around(self, width: float) -> Boxes:
        space, roots = self.searchable.space, self.searchable.roots
        d = space.T.shape[1]
        x = np.linalg.solve(space.T, self.state.weights)
        box = roots.rows(slice(0, 1))
        box.used[:] = 0
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
    def _crew(self, searchable: Searchable) -> Iterator[Crew]:
        space = searchable.space
        d = space.T.shape[1]

        def offer(x: FloatArray) -> None:
            w = space.T @ x[:d]
            largest = float(np.max(np.abs(w), initial=0.0))
            w = w if space.fixed or largest == 0 else w / largest
            offer_candidate(self.state, w, sparse=space.sparse)

        def settle(box: Boxes) -> int:
            if self._problem is not self.state.problem:
                raise _Undecided
            bound = settle_narrow(self.state, self._problem, searchable, box)
            crew.least_target = max(crew.least_target, self.target(self.state.value))
            return bound

        with Crew(searchable, self._threads, offer, settle) as crew:
            try:
                yield crew
            finally:
                self._boxes += crew.boxes

    def attained(self) -> None:
        """Raise where the bound so far is attained: nothing is left to be searched."""
        if self.state.closed(claimed=False):
            raise _Attained

    def _check(self, crew: Crew) -> None:
        self.state.nodes = self._boxes + crew.boxes
        self.state.check()
        if self._share > 0 and self.state.seconds - self._looked >= self._pause:
            self.search_locally()
            if math.isfinite(self.state.value):
                crew.least_target = max(crew.least_target, self.target(self.state.value))
        self.attained()
        limit = self.state.limits.node_limit
        if limit is not None and self.state.nodes >= limit:
            raise Stopped(Status.NODE_LIMIT)


def _quantum(searchable: Searchable) -> float:
    """What a few pairs are worth, about: a gap below which the work hardly grows any more."""
    steps = searchable.space.step
    positive = steps[steps > 0]
    return math.ldexp(_PAIRS * float(np.median(positive)), -searchable.exponent) if len(positive) else 1e-12
