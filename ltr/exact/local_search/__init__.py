"""Local search: good weights by exact line searches from many starts, without a proof.

`LocalSearch` is the method of `solve`, and `search_locally` what other methods start from; the search itself is in
`ltr.exact.local_search.search`. Where weights are whole numbers, it looks for real ones, whose roundings are ascended
from by changes of one weight, or of two at once, as long as the objective grows.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ltr.exact import tuning
from ltr.exact.constraints import LinearConstraints, set_fields
from ltr.exact.local_search.search import local_search
from ltr.exact.problem import Demanded, FloatArray, IntArray, Problem, check_pairs
from ltr.exact.solution import Status
from ltr.exact.state import MEGABYTE, Ending, Limits, SolveState, Stopped
from ltr.threads import available_threads

AnyProblem = TypeVar("AnyProblem", bound=Problem)

__all__ = [
    "LocalSearch",
    "SearchBeside",
    "search_instead",
    "search_locally",
    "search_without_demands",
]

_STRIDE = 1_000_003
_WHOLE_STEPS = (-1.0, 1.0)
_ROOM = 1 + 1e-6  # times the least weight of required columns, from which rounding does not lead below it


@dataclass(frozen=True)
class LocalSearch:
    """Local search alone: good weights, with no bound but the trivial one."""

    def check(self, problem: Problem) -> None:
        """Accept every problem with pairs but those with constraints in SCIP's terms."""
        check_pairs(problem)
        if not problem.linear:
            raise ValueError("local_search does not know ScipConstraints: use weight_space")

    def run(self, state: SolveState) -> Ending:
        """Search until the restarts are done or a limit is reached."""
        search_locally(state, state.limits.time_limit, threads=available_threads())
        return Ending(Status.HEURISTIC)


def search_locally(
    state: SolveState, seconds: float, restarts: int = tuning.RESTARTS, *, turn: int = 0, threads: int = 1
) -> None:
    """Offer the state the best weights that a local search finds, starting from the best known.

    If the number of non-zero weights is limited, it searches sets of that many features and the free ones: first the
    features that matter most at the best weights without the limit, then sets with some exchanged. Required columns
    have the sign that they have at the best weights, then the other one by turns.

    Args:
        state: solve under way.
        seconds: time to search.
        restarts: number of ascents after the first.
        turn: index of this search within the solve; each makes other random choices.
        threads: largest number of threads, which does not change what is found.

    Raises:
        Stopped: time is up, or the caller asked the solve to end.
    """
    state.check()
    problem, generator = state.problem, np.random.default_rng([state.limits.seed, turn])
    if problem.integer is not None:  # as much time again is for whole numbers
        seconds = min(seconds, state.remaining / 2)
    if problem.max_nonzeros is None or problem.max_nonzeros + len(problem.free) >= problem.d:
        _search(state, np.arange(problem.d), seconds, restarts, turn, threads)
    else:
        _search_supports(state, seconds, restarts, turn, threads, generator)
    if problem.integer is not None:  # the state has the roundings of real weights
        _ascend_whole(state, time.monotonic() + seconds, generator, max(1, restarts // tuning.RESTARTS_PER_WHOLE))


def search_instead(state: SolveState, ending: Ending, threads: int = 1) -> Ending:
    """Search in the time that is left, and return the ending, which says why there will be no proof."""
    restarts = tuning.UNLIMITED_RESTARTS if ending.status is Status.TIME_LIMIT else tuning.RESTARTS
    try:
        search_locally(state, state.remaining, restarts, threads=threads)
    except Stopped as stop:  # the ending says more than that time is up
        if stop.status is not Status.TIME_LIMIT:
            raise
    return ending


def search_without_demands(state: SolveState, seconds: float, restarts: int) -> None:
    """Offer the state the best weights found that need not meet its demands, and record their value.

    Raises:
        Stopped: time is up, or the caller asked the solve to end.
    """
    free = state.problem.relaxed
    if free is None:
        return
    own = SolveState(free, _limits_within(state, seconds), should_stop=state.stop_requested)
    for w in (*state.starts, *([state.weights] if math.isfinite(state.value) else [])):
        own.offer(w)
    with contextlib.suppress(Stopped):
        search_locally(own, seconds, restarts)
    state.check()
    state.offer(own.weights)
    state.free_value = own.value


def _limits_within(state: SolveState, seconds: float) -> Limits:
    return dataclasses.replace(state.limits, time_limit=max(min(seconds, state.remaining), 1e-6))


class SearchBeside:
    """Local searches in a thread of their own, one at a time, beside the other work of a solve.

    A search works on a copy of what is known when it begins, for a `share` of the time since the last one, and the
    thread that solves takes its weights over. The next one is due after a pause, which doubles where nothing was found;
    with a share of 0 none ever is.
    """

    def __init__(self, state: SolveState, share: float) -> None:
        self._state, self._own, self._stopping, self._share = state, state, False, share
        self._ended_at, self._turn, self._pause, self._began_from = state.seconds, 0, tuning.BESIDE_PAUSE, state.value
        self._pool: ThreadPoolExecutor | None = None
        self._running: Future[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a search is running or has ended without being taken over."""
        return self._running is not None

    @property
    def due(self) -> bool:
        """Whether it is time for the next search."""
        return self._share > 0 and not self.busy and self._state.seconds - self._ended_at >= self._pause

    def begin(self) -> None:
        """Begin a search, unless one is running."""
        if self.busy:
            return
        state, since = self._state, self._state.seconds - self._ended_at
        self._turn += 1
        self._began_from = state.value
        seconds = max(self._share * since, min(tuning.BESIDE_SECONDS, since))
        self._own = SolveState(state.problem, _limits_within(state, seconds), should_stop=lambda: self._stopping)
        self._own.memory = state.memory
        self._own.value, self._own.weights = state.value, state.weights
        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="search-beside")
        self._running = self._pool.submit(self._search, self._own, seconds)

    def _search(self, own: SolveState, seconds: float) -> None:
        with contextlib.suppress(Stopped):
            search_locally(own, seconds, tuning.UNLIMITED_RESTARTS, turn=self._turn)

    def take(self) -> bool:
        """Take over the weights of a search that has ended; return whether one has."""
        if self._running is None or not self._running.done():
            return False
        self._running.result()
        self._running = None
        if self._own.value > self._state.value:
            self._state.offer(self._own.weights)
        self._ended_at = self._state.seconds
        self._pause = tuning.BESIDE_PAUSE if self._state.value > self._began_from else 2 * self._pause
        return True

    def close(self) -> None:
        """End the search that is running."""
        self._stopping = True
        if self._pool is not None:
            self._pool.shutdown(wait=True)


def _search_supports(
    state: SolveState, seconds: float, restarts: int, turn: int, threads: int, generator: np.random.Generator
) -> None:
    """Search sets of as many features as may be used."""
    until, X = time.monotonic() + seconds, state.problem.X
    each = max(1, restarts // tuning.SEARCHED_SUPPORTS)
    weights = _search(state, np.arange(X.shape[1]), tuning.UNLIMITED_SHARE * seconds, each, turn, threads)
    # what each feature contributes to the scores without the limit, from squares that do not overflow
    importance = np.abs(weights) * (X / (np.abs(X).max() or 1.0)).std(axis=0)
    tried: set[tuple[int, ...]] = set()
    for k in range(tuning.SEARCHED_SUPPORTS):
        columns = _support(state, importance, generator, tried)
        left = until - time.monotonic()
        if columns is None or (left <= 0 and k > 0):
            return
        tried.add(tuple(columns.tolist()))
        _search(state, columns, left / (tuning.SEARCHED_SUPPORTS - k), each, turn, threads)


def _search(state: SolveState, columns: IntArray, seconds: float, restarts: int, turn: int, threads: int) -> FloatArray:
    """Search with the weights outside `columns` fixed to 0; offer and return what is found."""
    state.check()
    known = [state.weights] if math.isfinite(state.value) else []
    # each of the caller's starts gets one ascent of its own
    known += [w for w in state.starts if turn == 0 and not np.array_equal(w, state.weights)]
    starts = [w[columns] / state.problem.reach for w in known if not np.delete(w, columns).any()]
    problem, best, value = _of_columns(state.problem.real, columns), np.zeros(state.problem.d), -math.inf

    def complete(own: FloatArray) -> FloatArray:
        weights = np.zeros(state.problem.d)
        weights[columns] = own
        return weights

    patterns = _sign_patterns(state, turn)
    for signs in patterns:
        found = local_search(
            _with_signs(problem, signs),
            seed=(state.limits.seed + _STRIDE * turn) % 2**31,
            starts=starts,
            restarts=restarts,
            time_limit=max(min(seconds / len(patterns), state.remaining), 1e-6),
            memory_limit=max(state.memory.left, 1.0) / MEGABYTE,
            threads=threads,
            should_stop=state.stop_requested,
            on_better=lambda own: state.offer(complete(own)),
        )
        weights = complete(found.weights)
        if math.isfinite(found.value):
            state.offer(weights)
        if found.value >= value:
            best, value = weights, found.value
        if found.interrupted:  # it keeps what it has on Ctrl-C too
            raise Stopped(Status.INTERRUPTED)
        state.check()
    return best


def _of_columns(problem: AnyProblem, columns: IntArray) -> AnyProblem:
    """Return the problem restricted to some features, without a limit on the number of weights."""
    if len(columns) == problem.d and problem.max_nonzeros is None:
        return problem
    sides = problem.constraints
    smaller = copy.copy(problem)
    set_fields(
        smaller,
        X=np.ascontiguousarray(problem.X[:, columns]),
        demanded=tuple(Demanded(asked, _of_columns(own, columns)) for asked, own in problem.demanded),
        constraints=None if sides is None else LinearConstraints(sides.A[:, columns], sides.b),
        max_nonzeros=None,
        free=tuple(np.flatnonzero(np.isin(columns, problem.free)).tolist()),
        required=tuple(np.flatnonzero(np.isin(columns, problem.required)).tolist()),
    )
    return smaller


def _sign_patterns(state: SolveState, turn: int) -> list[FloatArray]:
    """Return the signs of required columns to search with: those of the best weights, every other turn others.

    Where no weights are known these are all combinations; a sign that a side constraint demands stays as it is.
    """
    problem, columns = state.problem, list(state.problem.required)
    signs = np.where(state.weights[columns] < 0, -1.0, 1.0)
    open_signs = np.ones(len(columns), dtype=bool)
    sides = problem.sides
    for row in sides.A[(np.count_nonzero(sides.A, axis=1) == 1) & (sides.b <= 0)]:
        if (j := int(np.flatnonzero(row)[0])) in columns:
            at = columns.index(j)
            signs[at], open_signs[at] = -np.sign(row[j]), False
    changeable = np.flatnonzero(open_signs)[: tuning.SIGN_PATTERNS]
    numbers = range(2 ** len(changeable)) if state.value == -math.inf else [(turn + 1) // 2 * (turn % 2)]
    patterns = []
    for number in numbers:
        pattern = signs.copy()
        pattern[changeable] *= 1 - 2 * ((number >> np.arange(len(changeable))) & 1)
        patterns.append(pattern)
    return patterns


def _with_signs(problem: Problem, signs: FloatArray) -> Problem:
    """Return the problem with side constraints in place of required columns, whose weights get these signs."""
    if not problem.required:
        return problem
    columns = np.array(problem.required)
    rows, limits = np.zeros((len(columns), problem.d)), np.full(len(columns), -_ROOM * problem.least_required)
    rows[np.arange(len(columns)), columns] = -signs
    asked = LinearConstraints(np.vstack([problem.sides.A, rows]), np.append(problem.sides.b, limits))
    smaller = copy.copy(problem)
    set_fields(smaller, constraints=asked, required=())
    return smaller


def _support(
    state: SolveState, importance: FloatArray, generator: np.random.Generator, tried: set[tuple[int, ...]]
) -> IntArray | None:
    """Return the next features to search: the most important, then those in use with up to two exchanged."""
    problem, most = state.problem, state.problem.max_nonzeros
    assert most is not None
    given = np.array([*problem.free, *problem.required], dtype=np.int64)
    counted, most = np.setdiff1d(np.arange(problem.d), given), most - len(problem.required)
    importance = importance[counted]
    if not tried:
        return np.sort(np.append(given, counted[np.argsort(-importance, kind="stable")[:most]]))
    for _ in range(tuning.SUPPORT_DRAWS):
        # those of the best weights first, filled up with important ones
        order = counted[np.lexsort((-importance, state.weights[counted] == 0))]
        inside, outside = order[:most], order[most:]
        exchanged = min(int(generator.integers(0, 3)), len(inside), len(outside))
        kept = generator.permutation(inside)[exchanged:]
        columns = np.sort(np.concatenate([given, kept, generator.choice(outside, exchanged, replace=False)]))
        if tuple(columns.tolist()) not in tried:
            return columns
    return None


# --- whole numbers -------------------------------------------------------------------------------------------------


def _ascend_whole(state: SolveState, until: float, generator: np.random.Generator, restarts: int) -> None:
    """Ascend from the best weights of a state, then from others nearby, and offer what is better.

    There are `restarts` ascents, which end at the time `until` of `time.monotonic` at the latest.
    """
    problem = state.problem
    assert problem.integer is not None
    for restart in range(restarts):
        w = state.weights.copy()
        if restart > 0:
            changed = generator.choice(problem.d, min(problem.d, int(generator.integers(1, 4))), replace=False)
            w[changed] = generator.integers(-problem.integer, problem.integer + 1, len(changed))
        value, better = _value(problem, w), True
        while better and time.monotonic() < until:
            better = False
            for moved in _whole_moves(problem, w, generator):
                state.check()
                if (found := _value(problem, moved)) > value:
                    w, value, better = moved, found, True
                    break
                if time.monotonic() > until:
                    break
        if value > state.value:
            state.offer(w)
        if time.monotonic() > until:
            return


def _value(problem: Problem, w: FloatArray) -> float:
    return problem.evaluate(w) if problem.feasible(w) else -math.inf


def _whole_moves(problem: Problem, w: FloatArray, generator: np.random.Generator) -> Iterator[FloatArray]:
    """Yield weights near w: one changed to any whole number, then two by one each or one of them to 0."""
    assert problem.integer is not None
    columns, reach = generator.permutation(problem.d), problem.integer
    for j in columns:
        for to in range(-reach, reach + 1):
            if to != w[j]:
                moved = w.copy()
                moved[j] = to
                yield moved
    used = np.flatnonzero(w)
    for j in columns:
        for k in used:
            if j == k:
                continue
            for step in _WHOLE_STEPS:
                for other in (*_WHOLE_STEPS, -w[k]):
                    moved = w.copy()
                    moved[j] += step
                    moved[k] += other
                    if np.abs(moved).max() <= reach:
                        yield moved
