r"""Record a partition of weight space that proves a bound, as texts.

`ltr.verify` defines partitions and shows why they prove a bound. A problem is read as it reads it, in integers, for it
must be able to close the same boxes. The compiled `advance` visits boxes of weights depth first, closes
those whose objective stays below the bound, cuts the others, and records what it does.

**Exact arithmetic closes whatever is closed here.** Interval bounds are multiples of 2^-49 in [-1, 1], so they and
their midpoints are exact. Everything that is rounded errs on the safe side:

* *Lost pairs.* Let u = 2^-53, δ = x_i - x_k, and S = sum_j |x_ij| + |x_kj| >= sum_j |δ_j|. In the root the largest w·δ
  is a sum of d products: computed δ_j, products and sums are within u of what they should be, relatively, so that it
  errs by at most (d + 1) u S in the first order. A cut moves it by a product and rounds once, by u S; the products on a
  path sum up to 2 S at most and err by 4 u S. After t cuts that is (d + t + 5) u S, and half a smallest number for each
  product. The slack is 2 (d + t + 16) u S and room for underflow. Its own rounding, that of S, that of the sum with it
  and terms of higher order take a few u S, for which there is room.
* *Side constraints.* A row is summed anew for each box. The error is at most (d + 4) u times |b| and the sizes of the
  terms in the first order, and half a smallest number per product. Twice the tolerance of `ltr.verify` is far more.
* *Sums of rank weights* are integers: each weight times a power of 2, rounded up; their total stays below 2^62. The
  largest sums that the bound allows are computed in fractions and rounded down.

Pairs won in a box are not examined again in its parts. A pair that rounding takes for won weakens a bound but cannot
make it wrong.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr import verify
from ltr.compiling import njit
from ltr.exact.problem import SIDE_TOLERANCE, FloatArray, IntArray, Problem

MOST_PAIRS = 4_000_000
"""Largest number of pairs that a recorder holds, at about 100 bytes each."""

_BITS = 62  # bits of the integers that represent sums of rank weights
_WORK = 5_000_000  # pairs examined between two calls of `over`
_TINY = float(np.finfo(np.float64).smallest_subnormal)
DONE, PAUSED, LIMIT, FULL, STUCK = range(5)  # why `advance` returns; LIMIT: words or checks used up, FULL: the store
DEPTH, WORDS, CHECKS = 0, 1, 2  # entries of `Path.at`

_SAMPLE = 500  # number of open pairs, about, from which a cut is chosen
_NARROWEST = 2.0**-49  # intervals of this width are not cut further
_LOOSE = 2 * SIDE_TOLERANCE


class Tables(NamedTuple):
    """A problem as the recorder reads it.

    Attributes:
        columns: features, one row per feature, (d, n).
        above, below, counter, weight: the pairs as in `ltr.verify.Problem`, weights as integers, (pairs,) each.
        required: w·δ from which each pair is won, rounded down, (pairs,).
        size: sum of |x_ij| + |x_kj| of each pair, (pairs,).
        tiny: room for underflow.
        lists: one row per list: its first counter, its numbers of observations with a gain > 0, of layers and of
            observations, and its first layer, (lists, 5); no rows where pairs have weights of their own.
        members: number of members of each layer, (layers,).
        table: where the statistic table of each layer starts, (layers,).
        contribution: statistic tables of the layers in sequence, or the total weight of each counter; integers.
        limits: largest total that the bound allows where 0, 1, ..., d weights are not 0, (d + 1,).
        A, b: side constraints.
        zeros: whether it matters that a weight is 0: not where C = 0 and there is no limit, nor for free columns, (d,).
    """

    columns: FloatArray
    above: IntArray
    below: IntArray
    counter: IntArray
    weight: IntArray
    required: FloatArray
    size: FloatArray
    tiny: float
    lists: IntArray
    members: IntArray
    table: IntArray
    contribution: IntArray
    limits: IntArray
    A: FloatArray
    b: FloatArray
    zeros: NDArray[np.bool_]


class Path(NamedTuple):
    """The boxes from the root to the one under examination, one row per box; row 0 is a parent of the root.

    Attributes:
        low, high: interval bounds, (depth, d).
        apart: coordinates known not to be 0 although 0 is a bound of their interval, (depth, d).
        cut: coordinate at which the box is cut, or d + coordinate for a cut at zero, (depth,).
        part: the next part of the box, (depth,).
        begin, middle, end: in the store, ``begin : middle`` has the pairs that are open in the box, ``middle : end``
            those that are lost in it and were open in its parent, (depth,).
        at: row of the box whose parts are being examined, words written, and checks left: the verifier makes one for
            each pair that is open in a box and each interval bound that moves in a part of it.
    """

    low: FloatArray
    high: FloatArray
    apart: NDArray[np.bool_]
    cut: IntArray
    part: IntArray
    begin: IntArray
    middle: IntArray
    end: IntArray
    at: IntArray


class Store(NamedTuple):
    """Pairs on the path, with the largest and smallest w·δ in the box where they are open."""

    pair: IntArray
    largest: FloatArray
    smallest: FloatArray


@njit(cache=True, nogil=True)
def largest_total(tables: Tables, counts: IntArray, scratch: IntArray) -> int:
    """Return the largest total where at least `counts` pairs are lost, as `ltr.verify` defines and proves it.

    `scratch` has room for four numbers per observation of the longest list.
    """
    total = 0
    if tables.lists.shape[0] == 0:
        for c in range(0, counts.shape[0], 2):
            total += max(tables.contribution[c] - counts[c], tables.contribution[c + 1] - counts[c + 1])
        return total
    for row in range(tables.lists.shape[0]):
        first, m, layers, n, layer = tables.lists[row]
        histogram, every, lower = scratch[: 2 * n], scratch[2 * n : 3 * n], scratch[3 * n : 4 * n]
        for q in range(m):
            lower[q], every[q] = 0, 0
            for at in range(first + q, first + m * (layers + 1), m):
                every[q] += counts[at]
        for t in range(layers):
            for q in range(m):
                lower[q] += counts[first + m * t + q]
            members, table = tables.members[layer + t], tables.table[layer + t]
            total += _layer_total(tables.contribution[table : table + n], members, every, lower, histogram)
    return total


@njit(cache=True, nogil=True)
def _layer_total(contribution: IntArray, members: int, every: IntArray, lower: IntArray, histogram: IntArray) -> int:
    """Return the largest total of a layer whose members lost so many pairs in all, and so many to lower grades."""
    n = contribution.shape[0]
    for c in range(2 * n):
        histogram[c] = 0
    for q in range(members):
        histogram[lower[q]] += 1
        histogram[n + every[q]] += 1
    total, g, c = 0, 0, n
    for p in range(members):
        while histogram[g] == 0:
            g += 1
        while histogram[c] == 0:
            c += 1
        histogram[g] -= 1
        histogram[c] -= 1
        total += contribution[max(c - n, p + g)]
    return total


@njit(cache=True, nogil=True)
def _narrow(path: Path, t: int) -> None:
    """Fill row t + 1 with the next part of the box in row t."""
    d = path.low.shape[1]
    for j in range(d):
        path.low[t + 1, j] = path.low[t, j]
        path.high[t + 1, j] = path.high[t, j]
        path.apart[t + 1, j] = path.apart[t, j]
    cut, part = path.cut[t], path.part[t]
    path.part[t] += 1
    if t == 0:
        return
    if cut < d:
        middle = 0.5 * (path.low[t, cut] + path.high[t, cut])
        if part == 0:
            path.high[t + 1, cut] = middle
        else:
            path.low[t + 1, cut] = middle
        return
    j = cut - d
    if part <= 1:
        path.high[t + 1, j] = 0.0
    if part >= 1:
        path.low[t + 1, j] = 0.0
    path.apart[t + 1, j] = part != 1


@njit(cache=True, nogil=True)
def _bounds_in_root(tables: Tables, path: Path, q: int) -> tuple[float, float]:
    """Return the largest and smallest w·δ of a pair in the root."""
    largest, smallest = 0.0, 0.0
    for j in range(path.low.shape[1]):
        delta = tables.columns[j, tables.above[q]] - tables.columns[j, tables.below[q]]
        one, other = path.low[1, j] * delta, path.high[1, j] * delta
        largest += max(one, other)
        smallest += min(one, other)
    return largest, smallest


@njit(cache=True, nogil=True)
def _examine(tables: Tables, path: Path, t: int, store: Store, counts: IntArray) -> None:
    """Split the open pairs of row t into those open in row t + 1 and those lost there, and count the latter."""
    d = path.low.shape[1]
    j = path.cut[t] % d
    rise, fall = path.low[t + 1, j] - path.low[t, j], path.high[t + 1, j] - path.high[t, j]
    column = tables.columns[j]
    factor = (t + d + 16) * 2.0**-52
    first, end = path.end[t], path.end[t] + path.middle[t] - path.begin[t]
    # open pairs from the front, lost pairs from the back
    at, back = first, end
    for source in range(path.begin[t], path.middle[t]):
        q = store.pair[source]
        if t == 0:
            largest, smallest = _bounds_in_root(tables, path, q)
        else:
            delta = column[tables.above[q]] - column[tables.below[q]]
            one, other = rise * delta, fall * delta
            largest = store.largest[source] + min(0.0, one) + min(0.0, other)
            smallest = store.smallest[source] + max(0.0, one) + max(0.0, other)
        if largest + (factor * tables.size[q] + tables.tiny) < tables.required[q]:
            back -= 1
            store.pair[back] = q
            counts[tables.counter[q]] += tables.weight[q]
        elif not smallest >= tables.required[q]:
            store.pair[at], store.largest[at], store.smallest[at] = q, largest, smallest
            at += 1
    # close the gap left by the pairs won
    path.begin[t + 1] = first
    path.middle[t + 1] = at
    for source in range(back, end):
        store.pair[at] = store.pair[source]
        at += 1
    path.end[t + 1] = at


@njit(cache=True, nogil=True)
def _restore(tables: Tables, path: Path, t: int, store: Store, counts: IntArray) -> None:
    """Take the pairs lost in row t out of the counts."""
    for at in range(path.middle[t], path.end[t]):
        q = store.pair[at]
        counts[tables.counter[q]] -= tables.weight[q]


@njit(cache=True, nogil=True)
def _closed(tables: Tables, path: Path, t: int, counts: IntArray, scratch: IntArray) -> bool:
    """Return whether no feasible weights of row t have an objective above the bound."""
    d = path.low.shape[1]
    nonzero = 0
    for j in range(d):
        if tables.zeros[j] and (path.low[t, j] > 0.0 or path.high[t, j] < 0.0 or path.apart[t, j]):
            nonzero += 1
    if largest_total(tables, counts, scratch) <= tables.limits[nonzero]:
        return True
    for row in range(tables.b.shape[0]):
        least, size = 0.0, abs(tables.b[row])
        for j in range(d):
            v = tables.A[row, j]
            term = v * (path.low[t, j] if v > 0.0 else path.high[t, j])
            least += term
            size += abs(term)
        if least - tables.b[row] > _LOOSE * size + tables.tiny:
            return True
    return False


@njit(cache=True, nogil=True)
def _choose(tables: Tables, path: Path, t: int, store: Store) -> int:
    """Return the cut of row t: the coordinate that moves open pairs and side constraints most; -1 where none does.

    Where zeros matter the first cut of a coordinate is at zero.
    """
    d = path.low.shape[1]
    score = np.zeros(d, np.float64)
    weight = np.zeros(d, np.float64)
    stride = 1 + (path.middle[t] - path.begin[t]) // _SAMPLE
    for at in range(path.begin[t], path.middle[t], stride):
        i, k = tables.above[store.pair[at]], tables.below[store.pair[at]]
        for j in range(d):
            weight[j] += abs(tables.columns[j, i] - tables.columns[j, k])
    whole = 0.0
    for j in range(d):
        whole += weight[j]
    if whole > 0.0:
        for j in range(d):
            score[j] = weight[j] / whole
    for row in range(tables.b.shape[0]):
        largest, whole = 0.0, 0.0
        for j in range(d):
            v = tables.A[row, j]
            largest += v * (path.high[t, j] if v > 0.0 else path.low[t, j])
            whole += abs(v)
        if largest > tables.b[row] and whole > 0.0:
            for j in range(d):
                score[j] += abs(tables.A[row, j]) / whole
    best, cut = 0.0, -1
    for j in range(d):
        width = path.high[t, j] - path.low[t, j]
        if width > _NARROWEST and width * score[j] > best:
            best, cut = width * score[j], j
    if cut >= 0 and tables.zeros[cut] and path.low[t, cut] < 0.0 < path.high[t, cut]:
        cut += d
    return cut


@njit(cache=True, nogil=True)
def advance(
    tables: Tables, path: Path, store: Store, counts: IntArray, scratch: IntArray, words: IntArray, work: int
) -> int:
    """Continue a partition and return why it stopped. The word -1 closes a box, others are values of `Path.cut`."""
    d = path.low.shape[1]
    while True:
        t = path.at[DEPTH]
        parts = 1 if t == 0 else (2 if path.cut[t] < d else 3)
        if path.part[t] == parts:
            if t == 0:
                return DONE
            _restore(tables, path, t, store, counts)
            path.at[DEPTH] = t - 1
            continue
        pairs = path.middle[t] - path.begin[t]
        if path.at[WORDS] == words.shape[0] or path.at[CHECKS] < 0:
            return LIMIT
        if path.end[t] + pairs > store.pair.shape[0]:
            return FULL
        if t + 2 == path.low.shape[0]:
            return STUCK
        if work <= 0:
            return PAUSED
        path.at[CHECKS] -= 2 * pairs if parts == 3 and path.part[t] == 1 else pairs
        work -= pairs + scratch.shape[0] + counts.shape[0]
        _narrow(path, t)
        _examine(tables, path, t, store, counts)
        cut = -1
        if _closed(tables, path, t + 1, counts, scratch):
            _restore(tables, path, t + 1, store, counts)
        else:
            cut = _choose(tables, path, t + 1, store)
            if cut < 0:
                return STUCK
            path.cut[t + 1], path.part[t + 1] = cut, 0
            path.at[DEPTH] = t + 1
        words[path.at[WORDS]] = cut
        path.at[WORDS] += 1


class Recorder:
    """Records partitions of one problem, given as it is and as the verifier reads it."""

    def __init__(self, problem: Problem, exact: verify.Problem) -> None:
        self._problem, self._exact = problem, exact
        sides = problem.constraints
        numbers = itertools.chain.from_iterable(pair[:4] for pair in exact.pairs())
        above, below, steps, counter = np.fromiter(numbers, dtype=np.int64).reshape(-1, 4).T.copy()
        most = exact.perfect
        self._unit = Fraction(2) ** (_BITS - 1 - most.bit_length())  # of a total, besides exact.value_unit
        rows, layers = [], list[tuple[int, list[int]]]()  # `Tables.lists`, and members and table of each layer
        for first, _, ranked, own, a in exact.lists:
            rows.append((first, len(ranked), len(own), len(a), len(layers)))
            layers += [(members, [step * v for v in a]) for members, step in own]
        lists = np.array(rows, dtype=np.int64).reshape(-1, 5)
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
            zeros=problem.counted & (problem.C > 0 or exact.most < len(exact.counted)),
        )
        self._counts = np.zeros(exact.counters, dtype=np.int64)
        self._scratch = np.zeros(4 * max(lists[:, 3], default=0), dtype=np.int64)
        self._store = Store(np.zeros(2 * len(above), dtype=np.int64), *np.zeros((2, 2 * len(above))))

    def record(self, bound: float, max_boxes: int, max_checks: int, over: Callable[[], bool]) -> list[str] | None:
        """Return the texts of a partition that proves a bound, one per root; None where the limits do not suffice.

        The limits are numbers of boxes and of checks of pairs that the verifier has to make. `over`, called several
        times per second, ends the recording too.
        """
        tables, pairs, d = self._tables._replace(limits=self._limits(bound)), len(self._tables.above), self._problem.d
        ones, unit = np.ones(d), np.eye(d)
        roots = [(-ones, ones)]
        if self._exact.scalable:
            roots = [face for e in unit for face in ((-ones, ones - 2 * e), (2 * e - ones, ones))]
            lost = np.zeros_like(self._counts)
            np.add.at(lost, tables.counter, tables.weight)
            if np.all(tables.b == 0) and largest_total(tables, lost, self._scratch) > tables.limits[0]:
                return None  # w = 0 is in no root
        names = [*map(str, range(d)), *(f"{j}z" for j in range(d)), "."]  # -1 is the last
        texts: list[str] = []
        for low, high in roots:
            path, words = _path(low, high, pairs, max_checks), np.zeros(max_boxes, dtype=np.int64)
            self._store.pair[:pairs] = np.arange(pairs)
            self._counts[:] = 0
            reason = PAUSED
            while reason in (PAUSED, FULL):
                if over():
                    return None
                if reason == FULL:
                    self._store = Store(*(np.concatenate([column, column]) for column in self._store))
                reason = advance(tables, path, self._store, self._counts, self._scratch, words, _WORK)
            if reason != DONE:
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


def _path(low: FloatArray, high: FloatArray, pairs: int, max_checks: int) -> Path:
    """Return the path before its root is examined."""
    rows = 51 * len(low) + 4
    lows, highs = np.tile(low, (rows, 1)), np.tile(high, (rows, 1))
    cut, part, begin, middle, end = np.zeros((5, rows), dtype=np.int64)
    apart, at = np.zeros(lows.shape, dtype=np.bool_), np.array([0, 0, max_checks], dtype=np.int64)
    path = Path(lows, highs, apart, cut, part, begin, middle, end, at)
    path.middle[0] = path.end[0] = pairs
    return path
