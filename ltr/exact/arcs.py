r"""Bounds for one or two columns: branch and bound over arcs of directions, without pairs.

Scaling weights up loses no comparison (`ltr.exact.reranking`), so two weights are searched on the four sides of the
square ``max |w_j| = 1``: w = (1, t), (-1, t), (t, 1) and (t, -1) with t from -1 to 1. On a side the key
``w·x - margin * grade`` of every row is linear in t. So on an arc low <= t <= high a pair is lost everywhere if it is
lost at both ends, and counting these pairs by sorting bounds the statistic (``ltr/native/arcs.h``).

The arc with the largest bound is halved, until few pairs change on it. Then all changes are visited, which gives the
largest value on the arc; if weights there attain it, no other weights are better. This is for lists with too many pairs
for a search by boxes: a base score and one column that corrects it, for instance.

Subranks of binary labels are bounded by ResolvedRanks, which may leave a gap.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np

from ltr.exact import tuning
from ltr.exact.constraints import SIDE_TOLERANCE
from ltr.exact.levels import FloatArray
from ltr.exact.problem import Problem
from ltr.exact.reranking import RerankProblem
from ltr.exact.solution import Status
from ltr.exact.state import Ending, SolveState, Stopped, scalable
from ltr.native import Arcs

_ITEM_BYTES, _ENTRY_BYTES = 200, 24  # memory of an item, times threads, and of an entry
_EQUAL = 1e-12  # share of the statistic's size up to which values are equal
_NARROWEST = 1e-14  # width of an arc that is not halved any more


class _Side(NamedTuple):
    """A side of the square: weight `fixed` is the sign, and the other one is t."""

    fixed: int
    sign: float

    def weights(self, t: float) -> FloatArray:
        w = np.full(2, t)
        w[self.fixed] = self.sign
        return w

    def part(self, problem: Problem) -> tuple[float, float]:
        """Return the least and the largest t that side constraints can allow, with their tolerance and more."""
        low, high = -1.0, 1.0
        for row, b in zip(problem.sides.A, problem.sides.b, strict=True):
            slope, given = float(row[1 - self.fixed]), self.sign * float(row[self.fixed])
            room = b - given + 2 * SIDE_TOLERANCE * (abs(b) + abs(given) + abs(slope))
            if slope > 0:
                high = min(high, room / slope)
            elif slope < 0:
                low = max(low, room / slope)
            elif room < 0:
                return 1.0, -1.0
        return low, high


class _Arc(NamedTuple):
    """An arc that may have larger values; `at` to `until` is where its largest value would be, NaN if not known."""

    low: float
    high: float
    side: _Side
    bound: float
    at: float
    until: float


def apply_to(problem: Problem, state: SolveState, threads: int) -> bool:
    """Whether a problem has ranks, and one or two columns whose weights' direction matters alone, and fits memory."""
    if not isinstance(problem, RerankProblem) or problem.d > 2 or (problem.ties == "subrank" and not problem.relaxed):
        return False
    most = problem.max_nonzeros
    limited = most is not None and most + len(problem.free) < problem.d
    if problem.C > 0 or problem.integer is not None or problem.required or limited or problem.demanded:
        return False
    if not problem.linear or not scalable(problem):
        return False
    items = problem.ranked_items()
    layers = 1.0 + np.maximum.reduceat(items.steps, items.start[:-1])
    entries = float(layers @ np.diff(items.start))
    needed = entries * _ENTRY_BYTES + problem.n * threads * _ITEM_BYTES
    return entries <= tuning.ARC_ENTRIES and needed <= state.memory.left


def search_arcs(state: SolveState, threads: int) -> Ending:
    """Prove the value of the best weights of one or two columns, within the limits of the state.

    Raises:
        Stopped: a limit is reached; the state has the bound that is proven.
    """
    problem = state.problem
    assert isinstance(problem, RerankProblem)
    if problem.d == 1:
        for w in ([1.0], [-1.0]):
            state.offer(w)
        state.prove(max(state.value, 0.0))
        return Ending(Status.OPTIMAL if state.value > -math.inf else Status.INFEASIBLE)
    ranking = problem.relaxed or problem
    assert isinstance(ranking, RerankProblem)
    items = ranking.ranked_items()
    with np.errstate(over="ignore"):
        offset = ranking.margin * items.steps.astype(np.float64)
    arcs = Arcs(items.row, offset, items.gain, items.start, items.weight, items.weight_at, items.shift, threads)
    most = float(max(tuning.ARC_CHANGES, tuning.ARC_CHANGES_PER_ITEM * len(items.row)))
    columns = np.ascontiguousarray(ranking.X.T)
    number = itertools.count()
    batch = threads * max(1, min(tuning.ARCS_TOGETHER, tuning.ARC_ITEMS_TOGETHER // len(items.row)))
    waiting: list[tuple[float, int, _Arc]] = []

    def add(side: _Side, parts: list[tuple[float, float, float]]) -> None:
        low, high, _ = np.array(parts).T
        f, g = side.sign * columns[side.fixed], columns[1 - side.fixed]
        for part, (bound, _, at, until) in zip(parts, arcs.bound(f, g, low, high, most), strict=True):
            arc = _Arc(part[0], part[1], side, min(bound, part[2]), at, until)
            heapq.heappush(waiting, (-arc.bound, next(number), arc))
        state.nodes += len(parts)

    for fixed, sign in itertools.product((0, 1), (1.0, -1.0)):
        side = _Side(fixed, sign)
        low, high = side.part(problem)
        if low <= high:
            add(side, [(low, high, math.inf)])
    narrow = -math.inf  # largest bound of arcs that are not halved any more
    while True:
        state.prove(max(-waiting[0][0] if waiting else -math.inf, narrow, state.value))
        if state.closed(claimed=False):
            return Ending(Status.OPTIMAL, "the bound is attained")
        if not waiting and narrow == -math.inf and state.value == -math.inf:
            return Ending(Status.INFEASIBLE)
        if not waiting or -waiting[0][0] <= narrow:
            return Ending(Status.INEXACT, "the arcs left cannot be decided")
        if state.gap <= state.limits.gap:
            return Ending(Status.GAP_LIMIT)
        if state.limits.node_limit is not None and state.nodes >= state.limits.node_limit:
            raise Stopped(Status.NODE_LIMIT)
        state.check()
        taken: dict[_Side, list[_Arc]] = {}
        for _ in range(min(batch, len(waiting))):
            arc = heapq.heappop(waiting)[2]
            if arc.bound <= state.value:
                continue
            if not math.isnan(arc.at):
                # the ends as well: the value may be attained at a single point
                points = [arc.side.weights(t) for t in (0.5 * (arc.at + arc.until), arc.at, arc.until)]
                reached = max(map(state.offer, points))
                if reached >= arc.bound - _EQUAL * state.size:
                    heapq.heappush(waiting, (-reached, next(number), arc._replace(bound=reached)))
                    break
                if ranking is not problem and max(map(ranking.evaluate, points)) >= arc.bound - _EQUAL * state.size:
                    narrow = max(narrow, arc.bound)  # no bound by ResolvedRanks is lower
                    continue
            if arc.high - arc.low <= _NARROWEST:
                narrow = max(narrow, arc.bound)
            else:
                taken.setdefault(arc.side, []).append(arc)
        for side, halved in taken.items():
            middles = [0.5 * (arc.low + arc.high) for arc in halved]
            parts = [(arc.low, middle, arc.bound) for arc, middle in zip(halved, middles, strict=True)]
            add(side, parts + [(middle, arc.high, arc.bound) for arc, middle in zip(halved, middles, strict=True)])
