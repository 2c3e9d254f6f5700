r"""Record a partition of weight space that proves a bound, as texts.

`ltr.verify` defines partitions and shows why they prove a bound. The recorder reads a problem as the verifier does, in
integers, because the verifier must be able to close the same boxes. Boxes are examined in `ltr/native/recorder.h`,
which shows that exact arithmetic closes whatever is closed there.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ltr import verify
from ltr.exact import tuning
from ltr.exact.constraints import SIDE_TOLERANCE
from ltr.exact.problem import IntArray, Problem
from ltr.native import Partition, PartitionProblem
from ltr.verify.boxes import ONE, root_cuts
from ltr.verify.objectives import Objective

_BITS = 62  # bits of the integers that represent sums of rank weights
_TINY = float(np.finfo(np.float64).smallest_subnormal)
_DONE, _PAUSED = 0, 1  # why `Partition.advance` returns


class Recorder:
    """Records partitions of one problem, given as it is and as the verifier reads it."""

    def __init__(self, problem: Problem, exact: verify.Problem) -> None:
        self._problem, self._exact = problem, exact
        sides, objectives = problem.sides, exact.counted_objectives
        numbers = itertools.chain.from_iterable(pair[:4] for pair in exact.pairs())
        above, below, steps, counter = np.fromiter(numbers, dtype=np.int64).reshape(-1, 4).T
        # of a total of each objective, besides its value_unit
        self._units = [Fraction(2) ** (_BITS - 1 - one.perfect.bit_length()) for one in objectives]
        rows, members = [], list[int]()  # one row per list; members of each layer
        weight, table = np.ones_like(counter), list[int]()  # where the statistic table of each layer starts
        contribution = list[int]()
        for one, unit in zip(objectives, self._units, strict=True):
            for first, _, ranked, own, a in one.lists:
                # first counter, numbers of observations with a gain > 0, of layers and of observations, first layer
                rows.append((first, len(ranked), len(own), len(a), len(members)))
                for count, step in own:
                    members.append(count)
                    table.append(len(contribution))
                    contribution += [math.ceil(step * v * unit) for v in a]
            if one.lines:  # there are no other objectives
                weight = np.array([math.ceil(pair[4] * unit) for pair in one.edges], dtype=np.int64)
                total = np.zeros(one.counters, dtype=np.int64)
                np.add.at(total, counter, weight)
                contribution = total.tolist()
        required = np.array([_down(s * exact.margin) for s in range(1 + steps.max(initial=0))])
        size = np.abs(problem.X).sum(axis=1)
        priced = any(one.C for one in objectives)
        self._above, self._below = above, below
        line, ascends = self._lines()
        self._compiled = PartitionProblem(
            columns=problem.X.T,
            above=above.astype(np.int32),
            below=below.astype(np.int32),
            counter=counter.astype(np.int32),
            weight=weight,
            required=required[steps],  # w·δ from which each pair is won, rounded down
            size=(size[above] + size[below]) * problem.reach,
            line=line,
            ascends=ascends,
            tiny=_TINY * 128 * problem.d,  # room for underflow
            counters=exact.counters,
            objectives=np.array([(len(one.lists), one.counters) for one in objectives], dtype=np.int64).reshape(-1, 2),
            lists=np.array(rows, dtype=np.int64).reshape(-1, 5),
            members=np.array(members, dtype=np.int64),
            table=np.array(table, dtype=np.int64),
            contribution=np.array(contribution, dtype=np.int64),
            A=sides.A,
            b=sides.b,
            loose=2 * SIDE_TOLERANCE,
            zeros=problem.counted & (priced or exact.most < len(exact.counted)),
            required_columns=np.isin(np.arange(problem.d), problem.required).astype(np.uint8),
            least=problem.least_required,
            most=exact.most,
            whole=problem.integer is not None,
        )

    def record(
        self, bound: float | None, max_boxes: int, max_checks: int, over: Callable[[], bool]
    ) -> list[str] | None:
        """Return the texts of a partition that proves a bound, one per root; None if the limits do not suffice.

        Without a bound it proves that no weights are feasible. `over`, called several times a second, ends it too.
        """
        limits, d, exact = self._limits(bound), self._problem.d, self._exact
        if exact.admits_zero() and (bound is None or exact.value([0.0] * d) > bound):
            return None  # w = 0 may be in no root
        names = [*map(str, range(d)), *(f"{j}z" for j in range(d)), "."]  # -1 is the last
        texts: list[str] = []
        for _, intervals in root_cuts(exact):
            low, high = np.full(d, -self._problem.reach), np.full(d, self._problem.reach)
            for j, *ends in intervals:
                low[j], high[j] = (end / ONE for end in ends)
            partition = Partition(self._compiled, low, high, limits, max_boxes, max_checks)
            reason = _PAUSED
            while reason == _PAUSED:
                if over():
                    return None
                reason = partition.advance(tuning.CERTIFICATE_WORK)
            if reason != _DONE:
                return None
            words = partition.words
            max_boxes, max_checks = max_boxes - len(words), partition.checks
            texts.append(" ".join([names[word] if word < 2 * d else self._order(word - 2 * d) for word in words]))
        return texts

    def _order(self, pair: int) -> str:
        """Return the word that cuts a box by the order of two observations."""
        return f"{self._above[pair]}:{self._below[pair]}"

    def _lines(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return a number for the two observations of each pair of which others ask for the opposite order, else -1.

        Observations with equal features are the same here. The second array says which order the pair asks for. Pairs
        with weights are left alone: of those of opposite directions only one is counted.
        """
        same = np.unique(self._problem.X, axis=0, return_inverse=True)[1].reshape(-1)
        one, other = same[self._above], same[self._below]
        ascends = (one < other).astype(np.uint8)
        keys, line = np.unique(np.minimum(one, other) * len(same) + np.maximum(one, other), return_inverse=True)
        both = np.bincount(line, ascends, len(keys)) % np.maximum(np.bincount(line, minlength=len(keys)), 1) != 0
        numbers = np.where(both, np.cumsum(both) - 1, -1)[line.reshape(-1)]
        if any(one.lines for one in self._exact.counted_objectives):
            numbers[:] = -1
        return numbers.astype(np.int32), ascends

    def _limits(self, bound: float | None) -> IntArray:
        """Return the largest total that closes a box where 0, 1, ..., d weights are not 0, (objectives, d + 1)."""
        exact, d = None if bound is None else Fraction(bound), self._problem.d
        limits = [
            [max(-1, min(math.floor(total * unit), 2**_BITS)) for total in one.limits(exact, d)]
            for one, unit in zip(self._exact.counted_objectives, self._units, strict=True)
        ]
        return np.array(limits, dtype=np.int64).reshape(-1, d + 1)


def pair_count(exact: verify.Problem) -> int:
    """Return the number of pairs of a problem without enumerating them."""
    return sum(map(_pairs_of, exact.counted_objectives))


def _pairs_of(objective: Objective) -> int:
    count = len(objective.edges)
    for _, everyone, ranked, layers, _ in objective.lists:
        if objective.resolved:  # each member of a layer that is in no higher one, and those that are not in the layer
            members = [*(first for first, _ in layers), 0]
            count += sum((m - higher) * (len(everyone) - m) for m, higher in itertools.pairwise(members))
        else:
            count += len(ranked) * (len(everyone) - 1)
    return count


def _down(value: Fraction) -> float:
    """Return a float64 not above a number >= 0: the largest one, or the next."""
    rounded = float(min(value, Fraction(sys.float_info.max)))
    return rounded if rounded <= value else math.nextafter(rounded, 0.0)
