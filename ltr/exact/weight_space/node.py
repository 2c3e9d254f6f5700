r"""Boxes of weight space as the nodes of another solver's tree.

A node of the host holds *regions*: boxes that share a node. One call searches them up to an allowance and gives back
what it could not close, cut into few regions for the host to branch on: the largest boxes one by one, the rest as one.

**Rounds.** Closing everything at once at the value known gives no bound before the very end. So the host's tree is one
round after another: a round has a target, above the value; its tree is searched for what is worth more; and a last
child of the round's node is the next round, which covers everything once more, with the target as its bound. What is
closed within a round is *covered* by that child, so it is no loss that it was closed above the value. A host that takes
the node of the largest bound first finishes a round before it begins the next, and its bound is then the target. The
last round has the value itself for a target, nothing is covered by another node, and what is closed is closed for good.

**Account.** A proof is only as good as the largest target at which something was closed for good, or the bound of a
box too narrow to split: `NodeSearch.closed`. A host that has no open nodes left has proven that or its best value,
whichever is larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltr.exact.largest_margin import middle_of_cell
from ltr.exact.problem import Problem
from ltr.exact.state import SolveState
from ltr.exact.vertices import largest_value, offer_simple
from ltr.exact.weight_space.crew import Crew
from ltr.exact.weight_space.space import BEYOND, Boxes, Searchable, Space

__all__ = ["UNCOVERED", "NodeSearch", "Region", "Rounds", "offer_candidate", "settle_narrow"]

FloatArray = NDArray[np.float64]
Flags = NDArray[np.bool_]

UNCOVERED = -BEYOND
"""A target below every value: nothing that is closed is covered by another node."""

_OUTWARD = 1e-9  # a host's bounds are known so far, its tolerance of feasibility
_OUTWARD_MANY = 1e-7  # of the statistic's size: many times a host's tolerance of bounds
_DOUBT = 1e-6  # of the margin
_AROUND = 1e-13  # that a narrow box is widened by, on every side
_ALONE = 7  # boxes that become a region of their own, at most
_FIRST = 1_000_000  # pairs looked at in one node at first
_SHARE = 1 / 32  # and later on, of all pairs looked at so far
_GROWTH, _LAST_GROWTH = 4.0, 16.0  # of the work from round to round, and to the last
_NEAREST, _FARTHEST = 0.85, 0.2  # a round's gap, as a share of the last
_PAIRS = 4  # lost pairs below which the next target is the value


@dataclass(frozen=True)
class Region:
    """Some boxes of one node.

    Attributes:
        boxes: their union contains the node.
        covered: target, as an integer of the space, up to which another node covers them.
        bound: of the problem's objective on them.
    """

    boxes: Boxes
    covered: int
    bound: float

    def hull(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Least and largest weights."""
        return self.boxes.low[:, :d].min(axis=0), self.boxes.high[:, :d].max(axis=0)

    def used(self, d: int) -> Flags:
        """Weights that are not 0 in any of the boxes."""
        return np.asarray((self.boxes.used[:, :d] != 0).all(axis=0))

    def unused(self, d: int) -> Flags:
        """Weights that are 0 in all of the boxes."""
        return np.asarray(((self.boxes.low[:, :d] == 0) & (self.boxes.high[:, :d] == 0)).all(axis=0))


class NodeSearch:
    """Searches the boxes of nodes, and keeps the account of what was closed.

    Attributes:
        closed: the largest objective at which something was closed for good; -inf before there is any.
        spent: pairs looked at.
    """

    def __init__(self, searchable: Searchable, crew: Crew, size: float) -> None:
        """`size` is that of the statistic, for the tolerance."""
        self.searchable, self.closed, self.spent = searchable, -math.inf, 0
        self._crew, self._size = crew, size

    @property
    def d(self) -> int:
        """Number of weights."""
        return self.searchable.space.T.shape[1]

    def target(self, value: float) -> int:
        """A value as an integer of the space that no weights worth as little exceed; `UNCOVERED` for -inf."""
        if value == -math.inf:
            return UNCOVERED
        return self.searchable.target(value, self._size)

    def everything(self, covered: int, bound: float) -> list[Region]:
        """The roots of the search, each a region; w = 0 is in none of them where scaling is free."""
        roots = self.searchable.roots
        return [Region(roots.rows(slice(row, row + 1)), covered, bound) for row in range(len(roots.bound))]

    def anything(self, bound: float) -> Region:
        """The whole cube, for a node of which nothing is known but its bounds."""
        box = Boxes.empty(1, self.d + 1)
        box.low[:, : self.d], box.high[:] = -1.0, 1.0
        box.low[:, self.d] = 1.0
        box.bound[:] = np.iinfo(np.int64).max
        return Region(box, UNCOVERED, bound)

    def clip(self, region: Region, low: FloatArray, high: FloatArray, used: Flags, unused: Flags) -> Boxes:
        """The boxes of a region within a node's own bounds, which are taken outwards.

        Args:
            region: of the node.
            low: lower bounds of the weights in the host, (d,).
            high: upper bounds.
            used: weights whose support is fixed to 1 there, (d,).
            unused: weights whose support is fixed to 0.
        """
        d, boxes = self.d, region.boxes.rows(slice(None))
        np.maximum(boxes.low[:, :d], low - _OUTWARD, out=boxes.low[:, :d])
        np.minimum(boxes.high[:, :d], high + _OUTWARD, out=boxes.high[:, :d])
        kept = ~((boxes.used[:, :d] != 0) & unused).any(axis=1)
        kept &= ((boxes.low[:, :d] <= 0) & (boxes.high[:, :d] >= 0) | ~unused).all(axis=1)
        boxes.low[:, :d][:, unused] = boxes.high[:, :d][:, unused] = 0.0
        boxes.used[:, :d][:, used] = 1
        kept &= (boxes.low <= boxes.high).all(axis=1)
        return boxes.rows(np.flatnonzero(kept))

    def search(self, region: Region, boxes: Boxes, value: float, check: Callable[[], None]) -> list[Region]:
        """Search boxes of a region for what is worth more than a value, and than what is covered elsewhere.

        Args:
            region: gives the bound and what is covered.
            boxes: to search.
            value: the best known, with what it may be short of.
            check: called several times a second; what it raises ends the search, and nothing is closed.

        Returns:
            what is left, cut for branching; nothing where all is closed.
        """
        if len(boxes.bound) == 0:
            return []
        target = max(region.covered, self.target(value))
        allowance = max(_FIRST, _SHARE * self.spent)
        done = self._crew.close(boxes, target, check, allowance)
        self.spent += done.spent
        if done.target > region.covered:
            self._account(done.target)
        if done.unresolved > done.target:
            self._account(done.unresolved)
        return [self._region(part, region) for part in _cut(done.left)]

    def _account(self, bound: int) -> None:
        # targets of a search without a value lie below every value
        if bound > UNCOVERED:
            self.closed = max(self.closed, self.searchable.objective(bound))

    def _region(self, boxes: Boxes, parent: Region) -> Region:
        return Region(boxes, parent.covered, min(parent.bound, self.searchable.objective(int(boxes.bound.max()))))


def _cut(left: list[Boxes]) -> list[Boxes]:
    """The largest boxes one by one, the others together."""
    # the search hands the deepest boxes back last
    alone = left[: _ALONE if len(left) > _ALONE + 1 else len(left)]
    rest = left[len(alone) :]
    return [*alone, Boxes(*(np.concatenate(parts) for parts in zip(*rest, strict=True)))] if rest else alone


def offer_candidate(state: SolveState, w: FloatArray, *, sparse: bool) -> None:
    """Offer a candidate of the kernel; where it misses the side constraints by a rounding, the middle of its cell.

    Args:
        state: receives the weights.
        w: satisfies the side constraints as the kernel has them, with room for rounding, (d,).
        sparse: whether zeros have to stay.
    """
    if state.offer(w) > -math.inf:
        return
    problem = state.problem
    middle = middle_of_cell(problem, w, w != 0 if sparse else np.ones(problem.d, dtype=bool), _DOUBT)
    if middle is not None:
        state.offer(middle)


def settle_narrow(state: SolveState, problem: Problem, searchable: Searchable, box: Boxes) -> int:
    """Offer the vertices of a box too narrow to split.

    Args:
        state: receives the weights.
        problem: the problem that is searched.
        searchable: the space of that problem.
        box: the box, one row.

    Returns:
        an integer that the values in the box do not exceed.
    """
    bound = int(box.bound[0])
    low, high = _weights_of(searchable.space, box)
    offer_simple(state, low, high)
    if bound <= searchable.target(state.value, state.size):
        return bound
    value = largest_value(state, problem, low, high)
    return bound if value is None else min(bound, searchable.integer(math.nextafter(value, math.inf)) + 1)


def _weights_of(space: Space, box: Boxes) -> tuple[FloatArray, FloatArray]:
    """Least and largest weights of a box, with max |w_j| = 1 where its length does not matter; a little outwards."""
    d = space.T.shape[1]
    if space.fixed:
        narrow = (box.low[0, :d] != box.high[0, :d]) * _AROUND
        return np.maximum(box.low[0, :d] - narrow, -1.0), np.minimum(box.high[0, :d] + narrow, 1.0)
    middle = space.T @ (0.5 * (box.low[0, :d] + box.high[0, :d]))
    largest = float(np.abs(middle).max())
    if largest == 0:
        return -np.ones(d), np.ones(d)
    # dividing by max |w_j|, which is known no better than the weights, at most triples what they may be off
    half = 4 * (np.abs(space.T) @ (0.5 * (box.high[0, :d] - box.low[0, :d]))).max() / largest + _AROUND
    low, high = np.maximum(middle / largest - half, -1.0), np.minimum(middle / largest + half, 1.0)
    on_face = np.abs(middle) / largest >= 1 - 2 * half
    if on_face.sum() == 1:
        low[on_face] = high[on_face] = np.sign(middle[on_face])
    return low, high


class Rounds:
    """How far above the value the target of each round lies: where the work is expected to grow fourfold.

    Examples:
        >>> rounds = Rounds(quantum=0.01)
        >>> rounds.next_gap(1.0, spent=0), rounds.next_gap(0.5, spent=1000)
        (0.5, 0.1)
        >>> rounds.next_gap(0.001, spent=9000)  # a gap of less than a few pairs
        0.0
    """

    def __init__(self, quantum: float) -> None:
        self._quantum, self._spent = quantum, 0
        self._last: tuple[float, int] | None = None

    @classmethod
    def of(cls, searchable: Searchable, size: float) -> Rounds:
        """For a problem with a statistic of this size: a few pairs, worth the median positive step of its tables each.

        A host's tolerances keep its bounds apart from the values, so there is no telling smaller gaps from none.
        """
        steps = searchable.space.step[searchable.space.step > 0]
        few = math.ldexp(_PAIRS * float(np.median(steps)), -searchable.exponent) if len(steps) else 0.0
        return cls(max(few, _OUTWARD_MANY * size))

    def next_gap(self, gap: float, spent: int) -> float:
        """The next round's gap between target and value; 0 for the last round.

        Args:
            gap: between bound and value now.
            spent: pairs looked at so far.
        """
        work, self._spent = spent - self._spent, spent
        share = 0.5 if self._last is None and work == 0 else _FARTHEST
        if self._last is not None and work > self._last[1] > 0 and 0 < gap < self._last[0]:
            power = math.log(work / self._last[1]) / math.log(self._last[0] / gap)
            share = min(max(_GROWTH ** (-1 / power), _FARTHEST), _NEAREST)
            if power * math.log(gap / self._quantum) <= math.log(_LAST_GROWTH):
                share = 0.0
        self._last = (gap, work)
        return share * gap if math.isfinite(gap) and share * gap > self._quantum else 0.0
