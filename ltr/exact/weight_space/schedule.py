"""The targets of a proof, and how much work they take in which part of weight space.

A target has proven nothing before every box is closed. `Subtrees` knows the work of earlier targets, part by part, and
tells from it how long the next will take, and on the way how much of it is left. `TargetSchedule` sets the targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ltr.exact import tuning
from ltr.exact.problem import FloatArray, IntArray
from ltr.exact.weight_space.space import BEYOND, Boxes, Searchable


class TargetSchedule:
    """Distances of falling targets from the value, so that each takes a few times the work of the one before.

    The last one before the time limit is to take most of the time left: what was closed at a target is no bound before
    everything is.

    Args:
        gap: bound minus value at the start; if it is not finite, the value itself is the only target.
        quantum: a distance of a few pairs, at which the next target is the value itself.

    Attributes:
        distance: distance of the next target; 0 for the value itself, which ends the proof.
    """

    def __init__(self, gap: float, quantum: float) -> None:
        self.distance, self._quantum = tuning.FIRST_TARGET * gap if math.isfinite(gap) else 0.0, quantum

    @property
    def least_slope(self) -> float:
        """The least slope of `Subtrees` that is plausible."""
        return tuning.STEEPNESS / float(_depth(self.distance)) if self.distance > 0 else 1.0

    def advance(self, subtrees: Subtrees, value: float, room: float) -> None:
        """Set the next distance, given the best value known and the pairs that can be examined in the time left."""
        if self.distance == 0:
            return

        def needed(distance: float) -> float:
            return subtrees.needed(distance, value)

        last = max(float(subtrees.expected(self.distance, value).sum()), 1.0)
        reach, most = needed(0.0) / last, room / last
        far = min(tuning.FAR_REACH, tuning.FAR_REACH_SHARE * most) if subtrees.measured else 0.0
        if reach <= max(far, min(tuning.REACH, tuning.REACH_SHARE * most)):
            self.distance = 0.0
            return
        growth = _growth(most) if subtrees.measured else min(_growth(most), tuning.UNMEASURED_GROWTH)
        nearest, farthest = tuning.NEAREST * self.distance, tuning.FARTHEST * self.distance
        self.distance = least_distance(needed, growth * last, nearest, farthest)
        if self.distance < self._quantum:
            self.distance = 0.0


def _growth(room: float) -> float:
    """Return how many times the work of the last target the next shall take, so that several like it fill the room."""
    if math.isinf(room):
        return tuning.GROWTH
    targets = max(int(math.log(max(tuning.LAST_SHARE * room, 1.0), tuning.GROWTH)), 1)
    return max(((tuning.LAST_SHARE if targets > 1 else 1.0) * room) ** (1 / targets), tuning.LEAST_GROWTH)


def _depth(distance: float | FloatArray) -> FloatArray:
    """Return the power of distances in which the logarithm of the work is about linear."""
    return np.maximum(distance, 0.0) ** tuning.POWER


def least_distance(needed: Callable[[float], float], room: float, low: float, high: float) -> float:
    """Return the least distance of an interval at which the work, which falls with the distance, fits, or its end."""
    if needed(low) <= room:
        return low
    for _ in range(tuning.HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if needed(middle) <= room else (middle, high)
    return high


class Subtrees:
    """Boxes that together cover all weights, what is proven in each, and how much work it takes.

    The logarithm of the work of each box is about linear in a power of the target's distance from the value,
    `tuning.POWER`. The slope is measured for all together and for each alone. So the boxes that are closed first tell
    how long the others will take.

    Attributes:
        boxes: the boxes, at first the roots of the space; those searched first are the last.
        reached: bound of the values in each, as an integer of the space; above all values until it is closed, (boxes,).
        slope: growth of the work's logarithm for each unit of that power of the distance.
        least_slope: what is taken for the slope until it is measured, and where less is measured.
        measured: whether the slope was measured.
    """

    def __init__(self, searchable: Searchable) -> None:
        self.boxes, self.slope, self.least_slope, self.measured = searchable.roots, 1.0, 1.0, False
        self._searchable, space, count = searchable, searchable.space, len(searchable.roots.bound)
        # halves of a box in a sparse space may have no zeros, and those of whole numbers no whole ones
        self._divisible = searchable.supports is None and not (space.sparse or space.integer)
        self._sizes = np.abs(space.columns).mean(axis=1) if space.columns.size else np.zeros(len(space.columns))
        self.reached = np.full(count, BEYOND)
        self._work, self._at = np.zeros(count), np.zeros(count)  # pairs examined, and the objective of the target
        self._known = np.zeros(count, dtype=bool)  # whether that was measured for the box itself, in this space
        self._relative = np.ones(count)  # slope of each, as a multiple of that of all
        self._comparable = True  # whether the work was measured in this space

    def open_at(self, target: int) -> IntArray:
        """Return the numbers of the boxes that are not closed at a target."""
        return np.flatnonzero(self.reached > target)

    def expected(self, distance: float | FloatArray, value: float) -> FloatArray:
        """Return the pairs expected to be examined in each box at a target this far from the value, (boxes,)."""
        exponent = self.slope * self._relative * (_depth(self._at - value) - _depth(distance))
        return self._work * np.exp(np.clip(exponent, -tuning.LARGEST_EXPONENT, tuning.LARGEST_EXPONENT))

    def needed(self, distance: float, value: float) -> float:
        """Return the pairs expected to be examined to close all boxes at a target."""
        return float(self.expected(distance, value)[self.open_at(self._searchable.integer(value + distance))].sum())

    def learn(self, rows: IntArray, work: IntArray | int, reached: IntArray, value: float) -> None:
        """Take over the work of a round, in each box or in all together, and the bounds of the values in each."""
        at, known = self._objectives(reached), not isinstance(work, int)
        spent = np.asarray(work, dtype=np.float64) if known else np.full(len(rows), work / max(len(rows), 1))
        before = self._work[rows]
        steps = _depth(self._at[rows] - value) - _depth(at - value)
        worked = self._comparable and before.sum() > 0 and spent.sum() > 0
        if worked and (mean := np.average(steps, weights=before)) > 0:
            self.slope = max(math.log(spent.sum() / before.sum()) / mean, self.least_slope)
            self.measured = True
            own = known & self._known[rows] & (before > 0) & (spent > 0) & (steps > 0.5 * mean)
            relative = np.log(spent[own] / before[own]) / steps[own] / self.slope
            share, factor = tuning.OWN_SLOPE, tuning.OWN_SLOPE_FACTOR
            self._relative[rows[own]] = share * np.clip(relative, 1 / factor, factor) + 1 - share
        self._work[rows], self._at[rows], self._known[rows], self._comparable = spent, at, known, True
        if known:
            self.reached[rows] = reached

    def estimate(self, others: Subtrees, gain: float) -> None:
        """Expect the work of the same targets in other coordinates, a factor of ``exp(gain)`` less of it."""
        if others._work.any():
            share = math.exp(-gain) / len(self._work)
            self._work[:], self._at[:] = share * others._work.sum(), np.average(others._at, weights=others._work)
            self._comparable = False
        self.slope, self.least_slope = others.slope, others.least_slope

    def divide(self, distance: float, value: float) -> None:
        """Halve the boxes that will take the most work, and mix those that take much and little."""
        if not self._divisible or not self._work.any():
            return
        most = max(float(self.expected(distance, value).sum()) / tuning.SUBTREES, tuning.DIVIDED)
        while (expected := self.expected(distance, value)).max() > most:
            large, kept = np.flatnonzero(expected > most), np.flatnonzero(expected <= most)
            halves = [self._halved(self.boxes.rows(large), upper) for upper in (False, True)]
            self._work[large] *= 0.5
            self._known[large] = False
            self._select(np.concatenate([kept, large, large]))
            self.boxes = Boxes.joined([self.boxes.rows(slice(len(kept))), *halves])
        by_work = np.argsort(expected, kind="stable")
        self._select(by_work[np.argsort(_spread(len(by_work)), kind="stable")])

    def left(
        self, distance: float, value: float, rows: IntArray, work: IntArray, reached: IntArray
    ) -> Callable[[float], float] | None:
        """Return a function: the pairs expected to be examined in the rest of a round, by the distance of its target.

        It is None while there is too little to tell. `rows` are the boxes of the round, `work` the pairs examined in
        each so far, `reached` the bound of the values in those that are closed, above all values for the others.
        """
        closed, begun = reached < BEYOND, work > 0
        at = np.full(len(self._at), distance)
        at[rows[closed]] = np.maximum(self._objectives(reached[closed]) - value, 0.0)
        expected = self.expected(at, value)[rows]
        known = expected * self._known[rows]
        if (done := known[closed].sum()) > tuning.KNOWN_SHARE * expected.sum():
            factor = work[closed & self._known[rows]].sum() / done
        elif expected[begun].sum() > 0 and work.sum() > tuning.KNOWN_SHARE * expected.sum():  # it is at least this
            factor = work.sum() / expected[begun].sum()
        else:
            return None

        def left(distance: float) -> float:
            # a box that has taken longer than expected goes on for a while
            expected = np.maximum(factor * self.expected(distance, value)[rows] - work, tuning.LONGER * work)
            return float(expected[~closed].sum())

        return left

    def _objectives(self, bounds: IntArray) -> FloatArray:
        different, at = np.unique(bounds, return_inverse=True)
        return np.array([self._searchable.objective(int(bound)) for bound in different])[at]

    def _select(self, rows: IntArray) -> None:
        """Keep these boxes, in this order."""
        self.boxes = self.boxes.rows(rows)
        self._work, self._at, self._relative, self.reached, self._known = (
            values[rows] for values in (self._work, self._at, self._relative, self.reached, self._known)
        )

    def _halved(self, boxes: Boxes, upper: bool) -> Boxes:
        """Return one half of each box, divided where it relaxes pairs the most; the boxes are changed in place."""
        d = len(self._sizes) - 1
        j = np.argmax((boxes.high - boxes.low)[:, :d] * self._sizes[:d], axis=1)
        rows = np.arange(len(j))
        (boxes.low if upper else boxes.high)[rows, j] = 0.5 * (boxes.low[rows, j] + boxes.high[rows, j])
        return boxes


def _spread(count: int) -> FloatArray:
    """Return the van der Corput sequence, of which every beginning is spread over all of [0, 1]."""
    values, at, digit = np.zeros(count), np.arange(count), 0.5
    while at.any():
        values += digit * (at & 1)
        at, digit = at >> 1, 0.5 * digit
    return values
