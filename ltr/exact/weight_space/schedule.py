"""The targets of a proof: how far each is from the best value known."""

from __future__ import annotations

import math
from collections.abc import Callable

from ltr.exact import tuning


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
