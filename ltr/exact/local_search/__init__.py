"""Local search: good weights by exact line searches from many starts, without a proof.

`LocalSearch` is the method of `solve`, and `search_locally` what other methods start from; the search itself is in
`ltr.exact.local_search.search`.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass

import numpy as np

from ltr.exact.problem import FloatArray, IntArray, LinearConstraints, Problem, set_fields
from ltr.exact.solution import Status
from ltr.exact.state import MEGABYTE, Ending, SolveState, Stopped

__all__ = ["RESTARTS", "LocalSearch", "compile_search", "search_locally"]

RESTARTS = 300
"""Ascents of a local search after those from its starting points."""
_STRIDE = 1_000_003
_SUPPORTS = 10  # sets of features searched where their number is limited
_DRAWS = 20  # attempts to find one that was not searched yet
_SHARE = 0.25  # of the time for the weights without that limit, which say what to begin with


@dataclass(frozen=True)
class LocalSearch:
    """Local search alone: good weights, with no bound but the trivial one.

    Attributes:
        restarts: number of ascents from perturbed local optima, after those from the starting points.
    """

    restarts: int = RESTARTS

    def __post_init__(self) -> None:
        if self.restarts < 0:
            raise ValueError(f"restarts must be at least 0, got {self.restarts!r}")

    def check(self, problem: Problem) -> None:
        """Accept every problem."""

    def prepare(self) -> None:
        """Compile the search, or load it from its cache on disk."""
        compile_search()

    def run(self, state: SolveState) -> Ending:
        """Search until the restarts are done or a limit is reached."""
        search_locally(state, state.limits.time_limit, self.restarts)
        return Ending(Status.HEURISTIC)


def compile_search() -> None:
    """Compile the local search, or load it from its cache on disk."""
    from ltr.exact.local_search.search import compile_kernels

    compile_kernels()


def search_locally(state: SolveState, seconds: float, restarts: int = RESTARTS, *, turn: int = 0) -> None:
    """Offer the state the best weights that a local search finds, starting from the best known.

    If the number of non-zero weights is limited, it searches sets of that many features and the free ones, with the
    other weights fixed to 0: first the features that matter most at the best weights without the limit, then sets with
    some exchanged.

    Args:
        state: solve under way; its weights are the start, and it receives the result.
        seconds: time to search, without compilation.
        restarts: number of ascents after the first.
        turn: number of this search within the solve, from 0 up; each makes other random choices.

    Raises:
        Stopped: time is up, or the caller asked the solve to end.
    """
    state.check()  # behind the import, which may outlast a short time limit
    problem, generator = state.problem, np.random.default_rng([state.limits.seed, turn])
    if problem.max_nonzeros is None or problem.max_nonzeros + len(problem.free) >= problem.d:
        _search(state, np.arange(problem.d), seconds, restarts, turn)
        return
    compile_search()
    until = time.monotonic() + seconds
    each, X = max(1, restarts // _SUPPORTS), problem.X
    weights = _search(state, np.arange(problem.d), _SHARE * seconds, each, turn)
    # what each feature contributes to the scores without the limit, from squares that do not overflow
    importance = np.abs(weights) * (X / (np.abs(X).max() or 1.0)).std(axis=0)
    tried: set[tuple[int, ...]] = set()
    for k in range(_SUPPORTS):
        columns = _support(state, importance, generator, tried)
        left = until - time.monotonic()
        if columns is None or (left <= 0 and k > 0):
            return
        tried.add(tuple(columns.tolist()))
        _search(state, columns, left / (_SUPPORTS - k), each, turn)


def _search(state: SolveState, columns: IntArray, seconds: float, restarts: int, turn: int) -> FloatArray:
    """Search with the weights outside `columns` fixed to 0; offer and return what is found."""
    from ltr.exact.local_search.search import local_search

    state.check()
    known = [state.weights] if math.isfinite(state.value) else []
    # each of the caller's starts gets one ascent of its own
    known += [w for w in state.starts if turn == 0 and not np.array_equal(w, state.weights)]
    starts = [w[columns] for w in known if not np.delete(w, columns).any()]
    found = local_search(
        _of_columns(state.problem, columns),
        seed=(state.limits.seed + _STRIDE * turn) % 2**31,
        starts=starts,
        restarts=restarts,
        time_limit=max(min(seconds, state.remaining), 1e-6),
        memory_limit=max(state.memory.left, 1.0) / MEGABYTE,
        should_stop=state.stop_requested,
    )
    weights = np.zeros(state.problem.d)
    weights[columns] = found.weights
    if math.isfinite(found.value):
        state.offer(weights)
    if found.interrupted:  # it keeps what it has on Ctrl-C too
        raise Stopped(Status.INTERRUPTED)
    state.check()
    return weights


def _of_columns(problem: Problem, columns: IntArray) -> Problem:
    """Return the problem restricted to some features, without a limit on the number of weights."""
    if len(columns) == problem.d and problem.max_nonzeros is None:
        return problem
    sides = problem.constraints
    smaller = copy.copy(problem)
    set_fields(
        smaller,
        X=np.ascontiguousarray(problem.X[:, columns]),
        constraints=None if sides is None else LinearConstraints(sides.A[:, columns], sides.b),
        max_nonzeros=None,
        free=tuple(np.flatnonzero(np.isin(columns, problem.free)).tolist()),
    )
    return smaller


def _support(
    state: SolveState, importance: FloatArray, generator: np.random.Generator, tried: set[tuple[int, ...]]
) -> IntArray | None:
    """Return the next features to search: the most important, then those in use with up to two exchanged."""
    problem, most = state.problem, state.problem.max_nonzeros
    assert most is not None
    counted, free = np.flatnonzero(problem.counted), np.array(problem.free, dtype=np.int64)
    importance = importance[counted]
    if not tried:
        return np.sort(np.append(free, counted[np.argsort(-importance, kind="stable")[:most]]))
    for _ in range(_DRAWS):
        # those of the best weights first, filled up with important ones
        order = counted[np.lexsort((-importance, state.weights[counted] == 0))]
        inside, outside = order[:most], order[most:]
        exchanged = min(int(generator.integers(0, 3)), len(inside), len(outside))
        kept = generator.permutation(inside)[exchanged:]
        columns = np.sort(np.concatenate([free, kept, generator.choice(outside, exchanged, replace=False)]))
        if tuple(columns.tolist()) not in tried:
            return columns
    return None
