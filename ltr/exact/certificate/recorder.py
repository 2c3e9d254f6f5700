r"""Record a partition of weight space that proves a bound, as texts.

`ltr.verify` defines partitions and shows why they prove a bound. The recorder reads a problem as the verifier does, in
integers, because the verifier must be able to close the same boxes. Boxes are examined in `ltr/native/recorder.cpp`,
which shows that exact arithmetic closes whatever is closed there.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ltr import verify
from ltr.exact.constraints import SIDE_TOLERANCE
from ltr.exact.problem import IntArray, Problem
from ltr.native import Partition

MOST_PAIRS = 4_000_000
"""Largest number of pairs that a recorder can store, at about 100 bytes each."""

_BITS = 62  # bits of the integers that represent sums of rank weights
_WORK = 5_000_000  # pairs examined between two calls of `over`
_TINY = float(np.finfo(np.float64).smallest_subnormal)
_DONE, _PAUSED = 0, 1  # why `Partition.advance` returns


class Recorder:
    """Records partitions of one problem, given as it is and as the verifier reads it."""

    def __init__(self, problem: Problem, exact: verify.Problem) -> None:
        self._problem, self._exact = problem, exact
        sides = problem.constraints
        numbers = itertools.chain.from_iterable(pair[:4] for pair in exact.pairs())
        above, below, steps, counter = np.fromiter(numbers, dtype=np.int64).reshape(-1, 4).T
        most = exact.perfect
        self._unit = Fraction(2) ** (_BITS - 1 - most.bit_length())  # of a total, besides exact.value_unit
        rows, layers = [], list[tuple[int, list[int]]]()  # one row per list; members and table of each layer
        for first, _, ranked, own, a in exact.lists:
            # first counter, numbers of observations with a gain > 0, of layers and of observations, first layer
            rows.append((first, len(ranked), len(own), len(a), len(layers)))
            layers += [(members, [step * v for v in a]) for members, step in own]
        if exact.lines:
            weight = self._whole([pair[4] for pair in exact.edges])
            contribution = np.zeros(exact.counters, dtype=np.int64)
            np.add.at(contribution, counter, weight)
        else:
            weight, contribution = np.ones_like(counter), self._whole([v for _, table in layers for v in table])
        required = np.array([_down(s * exact.margin) for s in range(1 + steps.max(initial=0))])
        size = np.abs(problem.X).sum(axis=1)
        self._homogeneous = sides is None or bool(np.all(sides.b == 0))
        self._partition = Partition(
            columns=problem.X.T,
            pairs=np.column_stack([above, below, counter]),
            weight=weight,
            required=required[steps],  # w·δ from which each pair is won, rounded down
            size=(size[above] + size[below]) * problem.reach,
            tiny=_TINY * 128 * problem.d,  # room for underflow
            counters=exact.counters,
            lists=np.array(rows, dtype=np.int64).reshape(-1, 5),
            members=np.array([members for members, _ in layers], dtype=np.int64),
            table=np.cumsum([0, *(len(table) for _, table in layers)])[:-1],
            contribution=contribution,
            A=np.zeros((0, problem.d)) if sides is None else sides.A,
            b=np.zeros(0) if sides is None else sides.b,
            loose=2 * SIDE_TOLERANCE,
            zeros=problem.counted & (problem.C > 0 or exact.most < len(exact.counted)),
            required_columns=np.isin(np.arange(problem.d), problem.required).astype(np.uint8),
            least=problem.least_required,
            whole=problem.integer is not None,
        )

    def record(self, bound: float, max_boxes: int, max_checks: int, over: Callable[[], bool]) -> list[str] | None:
        """Return the texts of a partition that proves a bound, one per root; None if the limits do not suffice.

        The limits are numbers of boxes and of checks of pairs that the verifier has to make. `over`, called several
        times per second, ends the recording too.
        """
        limits, d = self._limits(bound), self._problem.d
        zero_allowed = self._exact.scalable and self._homogeneous and not self._problem.required
        if zero_allowed and self._partition.total_of_all_lost() > limits[0]:
            return None  # w = 0 is in no root
        names = [*map(str, range(d)), *(f"{j}z" for j in range(d)), "."]  # -1 is the last
        texts: list[str] = []
        for _, intervals in verify.root_cuts(self._exact):
            low, high = np.full(d, -self._problem.reach), np.full(d, self._problem.reach)
            for j, *ends in intervals:
                low[j], high[j] = (end / verify.ONE for end in ends)
            self._partition.begin(low, high, limits, max_boxes, max_checks)
            reason = _PAUSED
            while reason == _PAUSED:
                if over():
                    return None
                reason = self._partition.advance(_WORK)
            if reason != _DONE:
                return None
            words = self._partition.words()
            max_boxes, max_checks = max_boxes - len(words), self._partition.checks()
            texts.append(" ".join([names[word] for word in words]))
        return texts

    def _whole(self, values: list[int]) -> IntArray:
        """Return parts of a total as integers, rounded up."""
        return np.array([math.ceil(value * self._unit) for value in values], dtype=np.int64)

    def _limits(self, bound: float) -> IntArray:
        """Return the largest total that the bound allows where 0, 1, ..., d weights are not 0, (d + 1,)."""
        exact = self._exact
        sums = [(Fraction(bound) + exact.C * k - exact.shift) / exact.scale for k in range(exact.d + 1)]
        limits = [math.floor(total * exact.value_unit * self._unit) for total in sums]
        limits[exact.most + 1 :] = [2**_BITS] * (exact.d - exact.most)  # more weights than may differ from 0
        return np.array([max(-1, min(limit, 2**_BITS)) for limit in limits], dtype=np.int64)


def pair_count(exact: verify.Problem) -> int:
    """Return the number of pairs of a problem without enumerating them."""
    count = len(exact.edges)
    for _, everyone, ranked, layers, _ in exact.lists:
        if exact.resolved:  # each member of a layer that is in no higher one, and those that are not in the layer
            members = [*(first for first, _ in layers), 0]
            count += sum((m - higher) * (len(everyone) - m) for m, higher in itertools.pairwise(members))
        else:
            count += len(ranked) * (len(everyone) - 1)
    return count


def _down(value: Fraction) -> float:
    """Return a float64 not above a number >= 0: the largest one, or the next."""
    rounded = float(min(value, Fraction(sys.float_info.max)))
    return rounded if rounded <= value else math.nextafter(rounded, 0.0)
