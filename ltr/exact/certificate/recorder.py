"""Record partitions of weight space as texts: prepares a problem for the compiled kernels of `partition`.

The problem is read as `ltr.verify` reads it, in integers, for the verifier must be able to close the same boxes.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ltr import verify
from ltr.exact.certificate.partition import (
    CHECKS,
    DONE,
    FULL,
    PAUSED,
    WORDS,
    Path,
    Store,
    Tables,
    advance,
    largest_total,
)
from ltr.exact.problem import FloatArray, IntArray, Problem

MOST_PAIRS = 4_000_000
"""Largest number of pairs that a recorder holds, at about 100 bytes each."""

_BITS = 62  # bits of the integers that represent sums of rank weights
_WORK = 5_000_000  # pairs examined between two calls of `over`
_TINY = float(np.finfo(np.float64).smallest_subnormal)


class Recorder:
    """Records partitions of one problem, given as it is and as the verifier reads it."""

    def __init__(self, problem: Problem, exact: verify.Problem) -> None:
        self._problem, self._exact = problem, exact
        sides = problem.constraints
        numbers = itertools.chain.from_iterable(pair[:4] for pair in exact.pairs())
        above, below, steps, counter = np.fromiter(numbers, dtype=np.int64).reshape(-1, 4).T.copy()
        most = exact.perfect
        self._unit = Fraction(2) ** (_BITS - 1 - most.bit_length())  # of a total, besides exact.value_unit
        lists, layers = _layers(exact)
        if exact.lines:
            weight = self._whole([pair[4] for pair in exact.edges])
            contribution = np.zeros(exact.counters, dtype=np.int64)
            np.add.at(contribution, counter, weight)
        else:
            weight, contribution = np.ones_like(counter), self._whole([v for _, table in layers for v in table])
        required = np.array([_down(s * exact.margin) for s in range(1 + steps.max(initial=0))])
        A = np.zeros((0, problem.d)) if sides is None else np.array(sides.A)
        size = np.abs(problem.X).sum(axis=1)
        self._tables = Tables(
            columns=np.array(problem.X.T, order="C"),
            above=above,
            below=below,
            counter=counter,
            weight=weight,
            required=required[steps],
            size=size[above] + size[below],
            tiny=_TINY * 128 * problem.d,
            lists=lists,
            members=np.array([members for members, _ in layers], dtype=np.int64),
            table=np.cumsum([0, *(len(table) for _, table in layers)])[:-1],
            contribution=contribution,
            limits=np.zeros(problem.d + 1, dtype=np.int64),
            A=A,
            b=np.zeros(0) if sides is None else np.array(sides.b),
            sparse=problem.C > 0 or exact.most < exact.d,
        )
        self._counts = np.zeros(exact.counters, dtype=np.int64)
        self._scratch = np.zeros(4 * max(lists[:, 3], default=0), dtype=np.int64)
        self._store = _store(2 * len(above))

    def record(self, bound: float, max_boxes: int, max_checks: int, over: Callable[[], bool]) -> list[str] | None:
        """Return the texts of a partition that proves a bound, one per root; None where the limits do not suffice.

        The limits are numbers of boxes and of checks of pairs that the verifier has to make. `over`, called several
        times per second, ends the recording too.
        """
        tables = self._tables._replace(limits=self._limits(bound))
        roots = self._roots()
        if len(roots) > 1 and not self._holds_at_zero(tables):
            return None
        d = self._problem.d
        names = [*map(str, range(d)), *(f"{j}z" for j in range(d)), "."]  # -1 is the last
        texts: list[str] = []
        for low, high in roots:
            path, words = _path(low, high, len(tables.above), max_checks), np.zeros(max_boxes, dtype=np.int64)
            if not self._finish(tables, path, words, over):
                return None
            used = int(path.at[WORDS])
            max_boxes, max_checks = max_boxes - used, int(path.at[CHECKS])
            texts.append(" ".join([names[word] for word in words[:used].tolist()]))
        return texts

    def _whole(self, values: list[int]) -> IntArray:
        return np.array([math.ceil(value * self._unit) for value in values], dtype=np.int64)

    def _limits(self, bound: float) -> IntArray:
        exact = self._exact
        sums = [(Fraction(bound) + exact.C * k - exact.shift) / exact.scale for k in range(exact.d + 1)]
        limits = [math.floor(total * exact.value_unit * self._unit) for total in sums]
        limits[exact.most + 1 :] = [2**_BITS] * (exact.d - exact.most)  # more weights than may differ from 0
        return np.array([max(-1, min(limit, 2**_BITS)) for limit in limits], dtype=np.int64)

    def _roots(self) -> list[tuple[FloatArray, FloatArray]]:
        """Return the interval bounds of each root."""
        ones, unit = np.ones(self._problem.d), np.eye(self._problem.d)
        if not self._exact.scalable:
            return [(-ones, ones)]
        return [face for e in unit for face in ((-ones, ones - 2 * e), (2 * e - ones, ones))]

    def _holds_at_zero(self, tables: Tables) -> bool:
        if not np.all(tables.b == 0):
            return True
        lost = np.zeros_like(self._counts)
        np.add.at(lost, tables.counter, tables.weight)
        return bool(largest_total(tables, lost, self._scratch) <= tables.limits[0])

    def _finish(self, tables: Tables, path: Path, words: IntArray, over: Callable[[], bool]) -> bool:
        """Record the partition of one root; return whether it was finished."""
        pairs = len(tables.above)
        self._store.pair[:pairs] = np.arange(pairs)
        self._counts[:] = 0
        while not over():
            reason = advance(tables, path, self._store, self._counts, self._scratch, words, _WORK)
            if reason == FULL:
                self._store = Store(*(np.concatenate([column, column]) for column in self._store))
            elif reason != PAUSED:
                return bool(reason == DONE)
        return False


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


def _layers(exact: verify.Problem) -> tuple[IntArray, list[tuple[int, list[int]]]]:
    """Return `Tables.lists`, and the layers of all lists."""
    rows, found = [], list[tuple[int, list[int]]]()
    for first, _, ranked, layers, a in exact.lists:
        rows.append((first, len(ranked), len(layers), len(a), len(found)))
        found += [(members, [step * v for v in a]) for members, step in layers]
    return np.array(rows, dtype=np.int64).reshape(-1, 5), found


def _down(value: Fraction) -> float:
    """Return a float64 not above a number >= 0: the largest one, or the next."""
    rounded = float(min(value, Fraction(sys.float_info.max)))
    return rounded if rounded <= value else math.nextafter(rounded, 0.0)


def _path(low: FloatArray, high: FloatArray, pairs: int, max_checks: int) -> Path:
    """Return the path before its root is examined."""
    rows = 51 * len(low) + 4
    lows, highs = np.tile(low, (rows, 1)), np.tile(high, (rows, 1))
    cut, part, begin, middle, end = np.zeros((5, rows), dtype=np.int64)
    apart, at = np.zeros(lows.shape, dtype=np.bool_), np.array([0, 0, max_checks], dtype=np.int64)
    path = Path(lows, highs, apart, cut, part, begin, middle, end, at)
    path.middle[0] = path.end[0] = pairs
    return path


def _store(length: int) -> Store:
    return Store(np.zeros(length, dtype=np.int64), np.zeros(length), np.zeros(length))
