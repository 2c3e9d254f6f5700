r"""The proof: targets that fall step by step, each proved by a pool of threads that closes every box.

Closing every box at a target proves that no weights have a larger value. The work grows as the target comes down to the
best value known, and `TargetSchedule` sets each target where it is expected to grow a few times. So the last one, which
proves the value itself or ends shortly before the time limit, takes most of the time, and each one before it has left a
bound.

*Demands.* The bound of the problem without them holds for both, and its boxes have fewer pairs. So it is searched at
all targets that no weights are known to exceed which miss a demand; where demands do not bind, these are all of them.

*Subranks.* At any weights the statistic with Subranks is at most the one with ResolvedRanks (``docs/maths.md``), which
need no pairs of two positives. So their boxes are searched first. Where the optima agree, as they do unless positives
tie, that suffices.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ltr.exact import tuning
from ltr.exact.local_search import SearchBeside
from ltr.exact.problem import FloatArray, Problem
from ltr.exact.solution import Status
from ltr.exact.state import MEGABYTE, TOLERANCE, Ending, SolveState, Stopped
from ltr.exact.supports import Sets
from ltr.exact.weight_space.coordinates import adapted, apply_to
from ltr.exact.weight_space.pool import NEVER, NarrowBoxes, Outcome, WorkerPool, offer_candidate
from ltr.exact.weight_space.space import BEYOND, Boxes, Searchable, memory_needed, space_of, spaces_of

_BELOW_STEP = 0.999  # share of the step between values above the best one at which a proof may end
_NARROW = "the boxes left are too narrow to decide"
_ATTAINED = "the bound is attained"


def out_of_reach(state: SolveState) -> Ending | None:
    """Return why a problem is too large for a proof within the memory left and the whole time limit, or None."""
    problem, left = state.problem, state.memory.left
    pairs, needed = problem.pair_count, memory_needed(problem, threads=1)
    bound = "the bound is that of a perfect order"
    if needed > left:
        takes, have = math.ceil(needed / MEGABYTE), max(0, int(left / MEGABYTE))
        return Ending(Status.MEMORY_LIMIT, f"a proof needs about {takes} MB, and {have} MB may be used: {bound}")
    if pairs * (problem.d + 1) > tuning.MOST_TERMS:
        return Ending(Status.HEURISTIC, f"{pairs} pairs of {problem.d} features are too many for a proof: {bound}")
    boxes = tuning.TERMS_PER_SECOND * state.limits.time_limit / (max(1, pairs) * (problem.d + 1))
    least = tuning.LEAST_BOXES * 2.0 ** min(_most_used(state) / 2, tuning.MOST_DOUBLINGS)
    if pairs > tuning.FEW_PAIRS and boxes < least:
        what = f"{pairs} pairs of {problem.d} features are too many for a proof in {state.limits.time_limit:g} s"
        return Ending(Status.TIME_LIMIT, f"{what}: {bound}")
    return None


def _most_used(state: SolveState) -> float:
    """Return the largest number of weights other than 0 that may have a better value than the best known."""
    problem = state.problem
    most = float(problem.d if problem.max_nonzeros is None else problem.max_nonzeros + len(problem.free))
    if problem.C > 0 and math.isfinite(state.value):
        most = min(most, (state.bound - state.value) / problem.C + len(problem.free))
    return most


def prove(
    state: SolveState,
    threads: int,
    coordinates: str | FloatArray | None = None,
    local_search: float = 0.0,
    *,
    relaxed: bool = True,
    close: Callable[[Proof], None] | None = None,
) -> Ending:
    """Prove the value of a state's weights, or of better ones, within its limits.

    Args:
        state: a solve in progress; the search starts from its best weights, if it has any.
        threads: number of threads; fewer where memory does not suffice.
        coordinates: one of `SYSTEMS`, or the T of ``w = T v``, (d, d); None for the adapted ones if they gain anything.
        local_search: share of the time in which one of the threads looks for better weights.
        relaxed: search the problem's relaxation (`Problem.relaxed`) first, if it has one.
        close: closes all boxes of a round by calls of `Proof.close`; None for one call.

    Raises:
        Stopped: a limit of the state is reached.
    """
    with Proof(state, threads, coordinates, local_search, relaxed) as proof:
        while proof.ending is None:
            proof.begin()
            if proof.ending is None and close is not None:
                close(proof)
            elif proof.ending is None:
                proof.close(proof.searchable.roots)
            proof.end()
        return proof.ending


class Proof:
    """A proof under way: rounds, each with a target at which every box has to be closed; a context manager.

    A round is ``begin()``, then calls of `close` until no boxes are left of the space's roots, then ``end()``. It may
    be cut short: the best weights attain the bound (`ending` is set), or the problem that is searched does not suffice.
    All methods that search raise `Stopped` where a limit is reached.

    Attributes:
        problem: the problem that is searched, whose value is at least that of the state's problem at any weights.
        zero_value: its value at w = 0, which no box covers; -inf where w = 0 is not allowed.
        searchable: that problem in the coordinates that are searched.
        spent: pairs examined so far.
        target: target of the round, an integer of the space.
        ending: how the proof ended; None while it goes on.
    """

    _workers: WorkerPool
    _schedule: TargetSchedule

    def __init__(
        self,
        state: SolveState,
        threads: int,
        coordinates: str | FloatArray | None,
        local_search: float,
        relaxed: bool,
    ) -> None:
        while threads > 1 and memory_needed(state.problem, threads) > state.memory.left:
            threads -= 1
        self.state, self.spent = state, 0
        self.ending: Ending | None = None
        self._threads, self._given, self._share = threads, coordinates, local_search
        self._beside = SearchBeside(state, local_search)
        self._boxes_before = state.nodes  # without those of the present worker pool
        self._relaxation = state.problem.relaxed if relaxed else None
        try:
            self._start(state.problem if self._relaxation is None else self._relaxation)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Proof:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_workers()
        self._beside.close()

    # --- rounds ------------------------------------------------------------------------------------------------

    @property
    def boxes(self) -> int:
        """Boxes searched so far."""
        return self._boxes_before + self._workers.boxes

    @property
    def bound(self) -> float:
        """The bound that the round proves once every box is closed."""
        return self.searchable.objective(max(self._reached, self._unresolved))

    def begin(self) -> None:
        """Begin a round: choose its target, and whether the problem or its relaxation is searched at it."""
        state = self.state
        # `_target_at` adds a tolerance, which must not push the bound beyond the requested gap
        allowed = state.limits.gap * abs(state.value) - 2 * TOLERANCE * state.size
        # a bound less than a step above the value is rounded down to it
        allowed = max(allowed, _BELOW_STEP * state.problem.step)
        found, value = math.isfinite(state.value), state.value
        if self._relaxation is not None and state.problem.demanded:
            distance = max(self._schedule.distance, allowed)
            bind = state.demands_bind(value + distance if found else -math.inf)
            # where the relaxation cannot go down to the target, but below the bound, it goes as low as it can
            lowers = found and state.bound > state.free_value + 2 * TOLERANCE * state.size
            relaxed = not bind or lowers
            if relaxed != (self.problem is not state.problem):
                self._start(self._relaxation if relaxed else state.problem)
            if relaxed and bind:
                allowed = max(allowed, state.free_value - value)
        self.target = self._target_at(value + max(self._schedule.distance, allowed)) if found else -BEYOND
        self._reached, self._unresolved, self._insufficient = self.target, NEVER, False
        self._began, self._spent_before = state.seconds, self.spent
        if state.closed(claimed=False):
            self.ending = Ending(Status.OPTIMAL, _ATTAINED)

    def close(self, boxes: Boxes, allowance: float = np.inf) -> list[Boxes]:
        """Search boxes until everything in them is at most the target, or the best value if that is larger.

        Returns the boxes that are left once the allowance, in pairs examined, is used up, the deepest last; none once
        the round is cut short.
        """
        if self._cut_short:
            return []
        done = self._search(boxes, max(self.target, self._target_at(self.state.value)), allowance)
        if self._cut_short:
            return []
        self._reached, self._unresolved = max(self._reached, done.target), max(self._unresolved, done.unresolved)
        return done.left

    def _search(self, boxes: Boxes, target: int, allowance: float = np.inf) -> Outcome:
        done = self._workers.close(boxes, target, self._ends, allowance)
        self.spent += done.spent
        return done

    def end(self) -> None:
        """End a round: record what it proved, then set the next target or `ending`."""
        if self.ending is not None:
            return
        if self._insufficient:
            self._start_other()
            return
        state, resolved = self.state, max(self._reached, self._unresolved) <= self.target
        if math.isfinite(state.value):
            self._prove(self.bound)
        found, relaxed = math.isfinite(state.value), self.problem is not state.problem
        # boxes leave out weights that win the same pairs as w = 0, and those of demands are not the relaxation's
        stuck = (relaxed and not state.demands_bind() and not (resolved and found)) or not (resolved or found)
        stuck = stuck or (self._schedule.distance == 0 and state.value <= self._best)
        if found and (state.closed(claimed=False) or state.gap <= state.limits.gap):
            self.ending = Ending(Status.OPTIMAL, f"searched in {self.coordinates} coordinates")
        elif not found and resolved and not relaxed:
            # every box was closed although no feasible weights were found
            self.ending = Ending(Status.INFEASIBLE)
        elif not stuck:
            self._prepare_next()
        elif relaxed:
            self._start_other()  # the bound is as low as the relaxation allows
        else:
            self.ending = Ending(Status.INEXACT, _NARROW)

    def _prove(self, bound: float) -> None:
        """Record that no weights that boxes cover exceed a bound."""
        self.state.nodes = self.boxes
        self.state.prove(max(bound, self.state.value, self.zero_value))

    def _prepare_next(self) -> None:
        """Look for better weights and for better coordinates, and set the distance of the next target."""
        state, spent = self.state, self.spent - self._spent_before
        self._best = state.value
        took = max(state.seconds - self._began, tuning.MOMENT)
        self._schedule.learn(spent, self.bound, state.value)
        if self._share > 0 and spent >= tuning.WORTH_SEARCHING:
            self._beside.begin()
            self._share_threads()
        found = self._better_coordinates(self.searchable.space.T) if spent >= tuning.WORTH_ADAPTING else None
        if found is not None:
            self._search_in(space_of(self.problem, found[0], state.check))
            self._schedule.change_space(found[1])
            self.coordinates = "adapted"
        left = (1 - self._share) * state.remaining
        self._schedule.advance(state.value, left / took * spent)

    # --- what is searched --------------------------------------------------------------------------------------

    def _start(self, problem: Problem) -> None:
        """Begin to search a problem."""
        state = self.state
        self._end_workers()
        self.problem, self.coordinates, self._adapted_to = problem, "given", -math.inf
        zero = np.zeros(problem.d)
        self.zero_value = float(problem.evaluate(zero)) if problem.feasible(zero) else -math.inf
        self.target, self._reached, self._unresolved = -BEYOND, NEVER, NEVER
        self._insufficient = False
        self._narrow = NarrowBoxes(state, problem)
        sets = Sets.of(problem, state.check)
        if sets is None:
            T = self._given if isinstance(self._given, np.ndarray) else None
            if T is None and (self._given == "adapted" or problem.d >= tuning.ADAPTED_FROM):
                found = self._better_coordinates(np.eye(problem.d))
                T = None if found is None else found[0]
            self._search_in(space_of(problem, T, state.check))
            self.coordinates = "given" if T is None else "adapted"
        else:
            self._search_by_sets(sets)
            if self._insufficient:
                self._start_other()
                return
        self._schedule = TargetSchedule(
            state.bound - state.value, max(quantum(self.searchable), tuning.FINEST_GAP * state.size)
        )
        self._best = -math.inf
        self._began, self._spent_before = state.seconds, self.spent

    def _start_other(self) -> None:
        """Search the problem in place of its relaxation, which does not suffice; or that, once demands do not bind."""
        if self.problem is not self.state.problem:
            self._relaxation = None
        self._start(self._relaxation or self.state.problem)

    def _search_by_sets(self, sets: Sets) -> None:
        """Search in the spaces of the sets of columns that may have a larger value than the best known.

        Where there are many, those with the largest bounds are closed first, at the best value known: that lowers the
        bound and finds weights, so that fewer are left.
        """
        state = self.state
        room = 0.5 * TOLERANCE * state.size  # for rounding in bounds
        while len((sets := sets.above(state.value + room)).bounds) > tuning.SETS_TOGETHER and not self._cut_short:
            batch, sets = sets.split(tuning.SETS_TOGETHER)
            self._search_in(spaces_of(self.problem, *batch, state.check))
            done = self._search(self.searchable.roots, self._target_at(state.value))
            if self._cut_short:
                break
            if done.unresolved > done.target:
                raise Stopped(Status.INEXACT, _NARROW)
            if math.isfinite(state.value):
                left = float(sets.bounds[-1]) + room
                self._prove(max(left, self.searchable.objective(done.target)))
                if state.gap <= state.limits.gap:
                    self.ending = Ending(Status.OPTIMAL, "searched by sets of columns")
        sets = sets.nearest_last(state.weights)
        self._search_in(spaces_of(self.problem, *sets, state.check))

    def _search_in(self, searchable: Searchable) -> None:
        """Search in this space from now on."""
        self._end_workers()
        self.searchable = searchable
        self._workers = WorkerPool(searchable, self._threads, self._offer, self._settle)
        self._workers.trusted = self.problem.linear
        self._share_threads()

    def _end_workers(self) -> None:
        if hasattr(self, "_workers"):  # else the first space is not made
            self._boxes_before, self._workers.boxes = self.boxes, 0
            self._workers.__exit__()

    def _share_threads(self) -> None:
        """Give the boxes the threads but for that of a local search."""
        self._workers.threads = self._threads - self._beside.busy

    def _better_coordinates(self, present: FloatArray) -> tuple[FloatArray, float] | None:
        """Return coordinates adapted to the best weights and what they gain; None where they are of no use.

        So it is, too, where that would take too long, or no better weights are known since the last time.
        """
        state, problem = self.state, self.problem
        forced = isinstance(self._given, str) and self._given == "adapted"
        soon = tuning.ADAPTING_SECONDS * problem.d**4 <= tuning.ADAPTING_SHARE * state.limits.time_limit
        possible = self._given is None and soon and apply_to(problem) and state.value > self._adapted_to
        if not possible and not (forced and self._adapted_to == -math.inf):
            return None
        self._adapted_to = state.value
        found = adapted(problem, state.weights, present, state.check)
        return found if found is not None and (forced or found[1] > tuning.ADAPTING_GAIN) else None

    # --- what the worker pool asks for -------------------------------------------------------------------------

    def _target_at(self, value: float) -> int:
        """Return the target, as an integer of the space, for weights above a value."""
        return self.searchable.target(value, self.state.size) if value > -math.inf else -BEYOND

    def _offer(self, w: FloatArray) -> None:
        """Take over a candidate."""
        largest = float(np.max(np.abs(w), initial=0.0))
        w = w if self.searchable.space.fixed or largest == 0 else w / largest
        offer_candidate(self.state, w, sparse=self.problem.C > 0 or self.problem.max_nonzeros is not None)
        if self.problem is not self.state.problem and self.problem.feasible(w):
            self.state.free_value = max(self.state.free_value, self.problem.evaluate(w))

    def _settle(self, box: Boxes) -> int:
        """Return what the values in a box too narrow to split do not exceed."""
        self._insufficient |= self.problem is not self.state.problem
        if self._insufficient:
            return int(box.bound[0])
        bound = self._narrow.settle(self.searchable, box)
        self._raise_target(self._target_at(self.state.value))
        return bound

    def _raise_target(self, target: int) -> None:
        """Raise lower targets of the boxes under way to this one."""
        self._workers.least_target = max(self._workers.least_target, target)

    @property
    def _cut_short(self) -> bool:
        return self.ending is not None or self._insufficient

    def _ends(self) -> bool:
        """Do what is due several times a second, and return whether the search of boxes is cut short."""
        if self._cut_short:
            return True
        state = self.state
        state.nodes = self.boxes
        state.check()
        if self._beside.take():
            self._raise_target(self._target_at(state.value))
        if self._beside.due:
            self._beside.begin()
        self._share_threads()
        if state.closed(claimed=False):
            self.ending = Ending(Status.OPTIMAL, _ATTAINED)
        elif self.problem is state.problem and self._relaxation is not None and not state.demands_bind():
            self._insufficient = True  # the relaxation has fewer pairs, and suffices now
        elif state.limits.node_limit is not None and state.nodes >= state.limits.node_limit:
            raise Stopped(Status.NODE_LIMIT)
        return self._cut_short


def quantum(searchable: Searchable) -> float:
    """Return about what a few pairs contribute: a gap below which the work hardly grows any more."""
    arrays = searchable.space.arrays
    steps = arrays["step"][: arrays["table"][arrays["first_level"][1] :].min(initial=len(arrays["contribution"]))]
    if not (positive := steps[steps > 0]).any():
        return 1e-12
    return math.ldexp(tuning.QUANTUM_PAIRS * float(np.median(positive)), -searchable.exponent)


# --- the targets of a proof ----------------------------------------------------------------------------------------


class TargetSchedule:
    """Distances of falling targets from the value, so that each takes a few times the work of the one before.

    The last one before the time limit is to take most of the time left: what was closed at a target is no bound before
    everything is. The logarithm of the work is about linear in a power of the distance, `tuning.POWER`; its slope is
    measured from target to target.

    Args:
        gap: bound minus value at the start; if it is not finite, the value itself is the only target.
        quantum: a distance of a few pairs, at which the next target is the value itself.

    Attributes:
        distance: distance of the next target; 0 for the value itself, which ends the proof.
    """

    def __init__(self, gap: float, quantum: float) -> None:
        self.distance, self._quantum = tuning.FIRST_TARGET * gap if math.isfinite(gap) else 0.0, quantum
        self._slope = self._least_slope = tuning.STEEPNESS / _depth(self.distance) if self.distance > 0 else 1.0
        self._work, self._bound = 0.0, 0.0  # pairs examined at the last target, and what it proved
        self._comparable, self._measured = True, False  # whether these are of this space, and whether the slope is

    def learn(self, work: float, bound: float, value: float) -> None:
        """Take over the work of a target, in pairs examined, the bound that it proved, and the best value known."""
        steps = _depth(self._bound - value) - _depth(bound - value)
        if self._comparable and self._work > 0 and work > 0 and steps > 0:
            self._slope, self._measured = max(math.log(work / self._work) / steps, self._least_slope), True
        self._work, self._bound, self._comparable = work, bound, True

    def change_space(self, gain: float) -> None:
        """Expect the work of the same targets in other coordinates, a factor of ``exp(gain)`` less of it."""
        self._work *= math.exp(-gain)
        self._comparable = self._measured = False

    def expected(self, distance: float, value: float) -> float:
        """Return the pairs expected to be examined at a target this far from the value."""
        exponent = self._slope * (_depth(self._bound - value) - _depth(distance))
        return self._work * math.exp(max(min(exponent, tuning.LARGEST_EXPONENT), -tuning.LARGEST_EXPONENT))

    def advance(self, value: float, room: float) -> None:
        """Set the next distance, given the best value known and the pairs that can be examined in the time left."""
        if self.distance == 0:
            return

        def needed(distance: float) -> float:
            return self.expected(distance, value)

        last = max(needed(self.distance), 1.0)
        reach, most = needed(0.0) / last, room / last
        far = min(tuning.FAR_REACH, tuning.FAR_REACH_SHARE * most) if self._measured else 0.0
        if reach <= max(far, min(tuning.REACH, tuning.REACH_SHARE * most)):
            self.distance = 0.0
            return
        growth = _growth(most) if self._measured else min(_growth(most), tuning.UNMEASURED_GROWTH)
        nearest, farthest = tuning.NEAREST * self.distance, tuning.FARTHEST * self.distance
        self.distance = _least_distance(needed, growth * last, nearest, farthest)
        if self.distance < self._quantum:
            self.distance = 0.0


def _growth(room: float) -> float:
    """Return how many times the work of the last target the next shall take, so that several like it fill the room."""
    if math.isinf(room):
        return tuning.GROWTH
    targets = max(int(math.log(max(tuning.LAST_SHARE * room, 1.0), tuning.GROWTH)), 1)
    return max(((tuning.LAST_SHARE if targets > 1 else 1.0) * room) ** (1 / targets), tuning.LEAST_GROWTH)


def _depth(distance: float) -> float:
    """Return the power of a distance in which the logarithm of the work is about linear."""
    return float(max(distance, 0.0) ** tuning.POWER)


def _least_distance(needed: Callable[[float], float], room: float, low: float, high: float) -> float:
    """Return the least distance of an interval at which the work, which falls with the distance, fits, or its end."""
    if needed(low) <= room:
        return low
    for _ in range(tuning.HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if needed(middle) <= room else (middle, high)
    return high
