"""Whole-number weights of a few columns, by enumeration: sets of columns are bounded, those that remain are searched.

Three columns with weights from -5 to 5 have about a thousand directions, so no boxes are needed. Every set of columns
gets a bound from its table (`ltr.exact.supports`). A tree over the weights of its columns, bounded at each
node, visits the directions of the sets whose bound exceeds the best value (``ltr/native/points.h``).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr.exact import tuning
from ltr.exact.constraints import SIDE_TOLERANCE
from ltr.exact.problem import Demanded, FloatArray, IntArray
from ltr.exact.reranking import RerankProblem
from ltr.exact.solution import Status
from ltr.exact.state import TOLERANCE, Ending, SolveState, Stopped, scalable
from ltr.exact.supports import bounds_of, sets_with
from ltr.native import PointSearch

ALL, LARGEST, SMALLEST = range(3)  # which multiples of weights are searched, as in the compiled search


class PointSets(NamedTuple):
    """Sets of columns of several sizes, and bounds on the objective of each, descending."""

    columns: IntArray  # (sets, largest size), -1 behind the last column of a set
    bounds: FloatArray  # (sets,)

    @classmethod
    def of(
        cls,
        ranking: RerankProblem,
        sets: Sequence[IntArray],
        price: float,
        tick: Callable[[], None] = lambda: None,
        demanded: Sequence[Demanded] = (),
    ) -> PointSets:
        """Return the sets of each size, (sets, columns), with their bounds, but for those that cannot meet a demand."""
        for asked in demanded:
            sets = [some[bounds_of(asked.problem, some, tick) >= asked.doubtful] for some in sets]
        largest = max((some.shape[1] for some in sets), default=1)
        padded = [np.pad(some, ((0, 0), (0, largest - some.shape[1])), constant_values=-1) for some in sets]
        bounds = [bounds_of(ranking, some, tick) - price * some.shape[1] for some in sets]
        if not sets:
            return cls(np.zeros((0, 1), dtype=np.int64), np.zeros(0))
        order = np.argsort(-np.concatenate(bounds), kind="stable")
        return cls(np.concatenate(padded)[order], np.concatenate(bounds)[order])


def search_points(state: SolveState, threads: int) -> Ending | None:
    """Search the whole-number weights of a problem; None where boxes are better, or the only way."""
    from ltr.exact.weight_space.search import out_of_reach

    problem = state.problem
    if not isinstance(problem, RerankProblem) or problem.integer is None or problem.ties != "resolved":
        return None
    if problem.free or problem.demanded:
        return None
    most = problem.d if problem.max_nonzeros is None else problem.max_nonzeros
    if most > tuning.LARGEST_SUPPORT or (2 * problem.integer) ** most > tuning.MOST_DIRECTIONS:
        return None
    if count_sets(problem.d, most, len(problem.required)) > tuning.MOST_BOUNDED:
        return None
    sets = PointSets.of(problem, list(sets_of(problem.d, most, problem.required)), problem.C, state.check)
    many = np.array([len(np.unique(column)) > tuning.FEW_VALUES for column in problem.X.T] + [False])
    wide = np.count_nonzero(many[sets.columns[sets.bounds > state.value]], axis=1)
    weights = float(np.sum((2.0 * problem.integer) ** wide[wide > 1]))
    if weights > tuning.MOST_OPEN_WEIGHTS and out_of_reach(state) is None:
        return None
    lists, sides = problem.lists, problem.constraints
    rows = np.concatenate(lists)
    A, b = (np.zeros((0, problem.d)), np.zeros(0)) if sides is None else sides.scaled
    search = PointSearch(
        X=np.ascontiguousarray(problem.X[rows].T),
        gains=problem.gains[rows],
        handicaps=np.asarray(problem.margin * problem.grades[rows], dtype=np.float64),
        starts=np.cumsum([0, *map(len, lists)]),
        rank_weights=np.concatenate([problem.rank_weights(len(members))[::-1] for members in lists]),
        A=A,
        b=b,
        loose=2 * SIDE_TOLERANCE,
        reach=problem.integer,
        multiples=LARGEST if scalable(problem) else ALL,
        mean=False,
        exact=False,
        price=problem.C,
        tolerance=0.5 * TOLERANCE * state.size,
    )
    return run(state, search, sets, threads, problem.shift)


def run(state: SolveState, search: Any, sets: PointSets, threads: int, shift: float) -> Ending | None:  # noqa: ANN401
    """Search sets of columns with a compiled search, offer what it finds, and prove its bound; None if it gives up.

    `shift` is the constant part of the statistic, which the search does not know.
    """
    problem = state.problem
    room, seen, began, before = TOLERANCE * state.size, -math.inf, state.nodes, state.value
    undecided: deque[Any] = deque()

    def weights(columns: Sequence[int], points: Sequence[int]) -> FloatArray:
        w = np.zeros(problem.d)
        w[list(columns)] = points
        return w if problem.integer is not None else w / problem.points  # type: ignore[attr-defined]

    def poll() -> None:
        nonlocal seen
        left = search.bound  # read first: all that it leaves out is in what is read from here on
        value, *found = search.best
        if value > seen:
            seen = value
            if value + shift > state.value + room:
                state.offer(weights(*found))
        undecided.extend(search.undecided())
        while undecided:  # there may be many: what a limit leaves stays here, so that nothing is proven without it
            bound, *found = undecided[0]
            if bound + shift > state.value:
                state.check()
                state.offer(weights(*found))
            undecided.popleft()
        if math.isfinite(state.value):
            search.rise(state.value - shift)
        state.nodes = began + search.visited
        if math.isfinite(state.value):
            state.prove(max(left + shift, max(state.value, seen + shift) + room, state.zero_value))

    given = (sets.columns, sets.bounds - shift, state.value - shift, threads)
    done = watch(state, lambda stop: bool(search.search(*given, stop)), poll)
    if search.full:
        return None
    if done and state.value == -math.inf:
        return Ending(Status.INFEASIBLE)
    if done and problem.integer is None and seen + shift > before + room:
        # of equal values the one that the search prefers, whenever it was found
        state.weights = weights(*search.best[1:])
        state.value = problem.evaluate(state.weights)
    # otherwise the gap asked for is reached
    return Ending(Status.OPTIMAL, "searched by sets of columns")


def watch(state: SolveState, work: Callable[[NDArray[np.uint8]], bool], poll: Callable[[], None]) -> bool:
    """Run compiled work in a thread, under the limits of a solve, and return whether the work was completed.

    A 1 in the array that the work is given, (1,), stops it. `poll`, which takes over what was found so far, is called
    several times per second and at the end. Raises `Stopped` where a limit is reached.
    """
    stop = np.zeros(1, np.uint8)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work, stop)
        try:
            while wait([done], tuning.POINTS_PAUSE).not_done:
                poll()
                state.check()
                if state.limits.node_limit is not None and state.nodes >= state.limits.node_limit:
                    raise Stopped(Status.NODE_LIMIT)
                if state.gap <= state.limits.gap:
                    break
        finally:
            stop[0] = 1
            wait([done])
            poll()
    if isinstance(done.exception(), MemoryError):
        raise Stopped(Status.MEMORY_LIMIT)
    return done.result()


def count_sets(d: int, most: int, required: int = 0) -> int:
    """Return the number of sets of up to so many of d columns, those of the required columns alone."""
    return sum(math.comb(d - required, m - required) for m in range(max(1, required), most + 1))


def sets_of(d: int, most: int, required: Sequence[int] = ()) -> Iterator[IntArray]:
    """Yield the sets of each size up to `most` of d columns that have all required ones, (sets, size)."""
    for m in range(max(1, len(required)), min(most, d) + 1):
        yield sets_with(d, m, required)
