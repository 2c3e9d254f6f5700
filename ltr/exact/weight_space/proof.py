r"""From boxes to a proof: targets lowered step by step, so that good bounds come early.

Closing every box at a target T proves that nothing exceeds T. The work grows as T comes down to the best value known,
by a factor that shows itself on the way; each target is set where the work is expected to grow `_GROWTH`-fold. So the
last, which proves the value itself, takes most of the time, and each one before it has left a bound.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ltr.exact.solution import Status
from ltr.exact.state import Ending, SolveState, Stopped
from ltr.exact.warm import search_locally
from ltr.exact.weight_space.coordinates import systems
from ltr.exact.weight_space.crew import Crew
from ltr.exact.weight_space.node import offer_candidate
from ltr.exact.weight_space.space import Boxes, Searchable, space_of

__all__ = ["prove"]

FloatArray = NDArray[np.float64]

_GROWTH = 3.0
_LAST_GROWTH = 16.0  # expected on the way to `_PAIRS` lost pairs, below which the next target is the value
_NEAREST, _FARTHEST = 0.85, 0.3  # the next target's gap, as a share of the last
_FIRST_SHARE = 0.6  # before the growth is known
_PAIRS = 4
_PROBE = 2_000_000  # pairs looked at on one target, from which other coordinates are tried
_CLEARLY = 0.7  # share of the work: a small difference on one target need not last
_TOLERANCE = 0.5e-12  # of the statistic's size: values closer than this are one value
_AROUND = 0.01  # half-width of the first box around the best weights
_LEAST_AROUND = 1_000_000  # pairs looked at
_WORTHWHILE = 500_000  # pairs looked at on a target, from which better weights are looked for
_LEAST_SECONDS = 0.2
_MANY = 1_000_000  # restarts: as many as fit the time
_NARROW = "the boxes left are too narrow to decide"
_NOTHING = -(2**61)  # a target below every value


def prove(state: SolveState, threads: int, coordinates: str | None = None, local_search: float = 0.0) -> Ending:
    """Prove the value of a state's weights, or of better ones, within its limits.

    Args:
        state: its best weights, where it has any, are what the search starts from.
        threads: to use.
        coordinates: a name of `systems`, None to try them all.
        local_search: share of the time for looking for better weights between two targets.

    Raises:
        Stopped: by the state's limits.
    """
    known = systems(state.problem)
    name = "given" if coordinates is None else coordinates
    search = _Search(state, threads, space_of(state.problem, known[name]))
    untried = [] if coordinates is not None else [other for other in known if other != name]
    schedule = _Schedule(state.bound - state.value, _quantum(search.searchable))
    if state.closed(claimed=False):
        return Ending(Status.OPTIMAL, "the trivial bound is attained")
    while True:
        aim = max(schedule.aim, state.limits.gap * abs(state.value))
        target = search.target(state.value + aim) if math.isfinite(state.value) else _NOTHING
        spent, resolved = search.lower(target)
        if state.value == -math.inf:
            # nothing feasible may exceed what was not even reached, nor be told from what was
            return Ending(Status.INFEASIBLE) if resolved else Ending(Status.INEXACT, _NARROW)
        if state.closed(claimed=False) or state.gap <= state.limits.gap:
            return Ending(Status.OPTIMAL, f"searched in {name} coordinates")
        if schedule.aim == 0 and state.value <= schedule.value:
            return Ending(Status.INEXACT, _NARROW)
        schedule.advance(spent, state.value)
        if local_search > 0 and spent >= _WORTHWHILE:
            search.search_locally(local_search)
            search.search_around(max(local_search * spent, _LEAST_AROUND))
        if untried and spent >= _PROBE:
            found = search.best_of({other: space_of(state.problem, known[other]) for other in untried}, target, spent)
            name, untried = found or name, []


class _Schedule:
    """How far above the value each target lies."""

    def __init__(self, gap: float, quantum: float) -> None:
        self.value = -math.inf
        self.aim = 0.75 * gap if math.isfinite(gap) else 0.0
        self._quantum, self._last, self._work = quantum, gap, 0.0

    def advance(self, spent: int, value: float) -> None:
        """Set the next aim from the work that the last took."""
        share = _FIRST_SHARE
        if self._work > 0 and spent > self._work and 0 < self.aim < self._last:
            power = math.log(spent / self._work) / math.log(self._last / self.aim)
            share = min(max(_GROWTH ** (-1 / power), _FARTHEST), _NEAREST)
            if (self.aim / self._quantum) ** power <= _LAST_GROWTH:
                share = 0.0
        self.value, self._last, self._work = value, self.aim, float(spent)
        self.aim = share * self.aim if share * self.aim > self._quantum else 0.0


class _Search:
    """A state, and the coordinates in which its boxes are searched."""

    def __init__(self, state: SolveState, threads: int, searchable: Searchable) -> None:
        self.state, self.searchable = state, searchable
        self._threads, self._boxes = threads, 0
        self._looked, self._turn = state.seconds, 0

    def target(self, value: float) -> int:
        """A value as an integer of the space that no weights worth as little exceed."""
        unit, shift = self.searchable.unit, self.searchable.shift
        return math.floor((value - shift) / unit) + math.ceil(_TOLERANCE * self.state.size / unit)

    def lower(self, target: int) -> tuple[int, bool]:
        """Prove a target, or what comes out above it; returns the work and whether every box was decided."""
        with self._crew(self.searchable) as crew:
            done = crew.close(self.searchable.roots, target, functools.partial(self._check, crew))
        resolved = max(done.unresolved, done.target) <= target
        if math.isfinite(self.state.value):
            reached = max(done.target, done.unresolved) * self.searchable.unit
            bound = math.nextafter(math.fsum([reached, self.searchable.shift]), math.inf)
            self.state.prove(max(bound, self.state.zero_value))
            self.state.observe(self.state.bound, nodes=self._boxes)
        return done.spent, resolved

    def search_locally(self, share: float) -> None:
        """Look for better weights, for a share of the time since the last look, or a moment where that is no more."""
        self._turn += 1
        since = self.state.seconds - self._looked
        seconds = max(share * since, min(_LEAST_SECONDS, since))
        search_locally(self.state, seconds, _MANY, turn=self._turn)
        self._looked = self.state.seconds

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

    def best_of(self, others: dict[str, Searchable], target: int, work: int) -> str | None:
        """Move to the coordinates where a target takes the least work, if clearly less than here; their name."""
        best, work = None, int(_CLEARLY * work)
        for name, other in others.items():
            with self._crew(other) as crew:
                done = crew.close(other.roots, target, functools.partial(self._check, crew), allowance=work)
            if not done.left and done.spent < work:
                best, work, self.searchable = name, done.spent, other
        return best

    @contextlib.contextmanager
    def _crew(self, searchable: Searchable) -> Iterator[Crew]:
        space = searchable.space
        d = space.T.shape[1]

        def offer(x: FloatArray) -> None:
            w = space.T @ x[:d]
            largest = float(np.max(np.abs(w), initial=0.0))
            w = w if space.fixed or largest == 0 else w / largest
            offer_candidate(self.state, w, sparse=space.sparse)

        with Crew(searchable, self._threads, offer) as crew:
            try:
                yield crew
            finally:
                self._boxes += crew.boxes

    def _check(self, crew: Crew) -> None:
        self.state.nodes = self._boxes + crew.boxes
        self.state.check()
        limit = self.state.limits.node_limit
        if limit is not None and self.state.nodes >= limit:
            raise Stopped(Status.NODE_LIMIT)


def _quantum(searchable: Searchable) -> float:
    """What a few pairs are worth, about: a gap below which the work hardly grows any more."""
    steps = searchable.space.step
    positive = steps[steps > 0]
    return _PAIRS * searchable.unit * float(np.median(positive)) if len(positive) else 1e-12
