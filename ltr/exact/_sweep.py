r"""Compiled kernels: the rank statistic along a line of weights, exactly.

Along w(t) = w + t v the pair (i, k) has the difference ``f_i - f_k + t (g_i - g_k)`` with f = X w, g = X v, so it
changes between won and lost at one breakpoint ``t = (margin - f_i + f_k) / (g_i - g_k)``. Sorting the breakpoints
and stepping through them visits every value the statistic takes on the line.

**One flip costs O(1).** For ResolvedRank let c_i be the number of negatives that positive i does not beat, and
``below[m] = #{i : c_i < m}``. The value is ``sum_p a[n - p - c_(p)]`` over the sorted counts. When some c_i = m falls
to m - 1, the sorted counts change in one entry, the first one of the run of m, whose index is p = below[m]:

    value += a[n - p - m + 1] - a[n - p - m],      below[m] += 1,

and c_i = m - 1 rising to m undoes this with p = below[m] - 1. For Subrank a won pair moves one positive from rank l
to l + 1, and for preferences it adds the weight of the pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["PAIRS", "RESOLVED", "SUBRANK", "TIE", "Tables", "line_search", "uniform", "value_of_scores"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
State = NDArray[np.uint64]

RESOLVED, SUBRANK, PAIRS = 0, 1, 2
TIE = 1e-11  # values closer than this, relative to their size, are the same value
_NARROW = 1e-11  # share of a segment below which an interval is too short to step into reliably


class Tables(NamedTuple):
    """A problem as the kernels read it; a *head* is an observation that should stand above others.

    Attributes:
        columns: features, one row a feature, (d, n).
        heads: observation of each head, (heads,).
        first: the pairs of head i are ``first[i] : first[i + 1]``, (heads + 1,).
        owner: head of each pair, (pairs,).
        lower: observation that the head of each pair should beat, (pairs,).
        price: what a won pair adds for `PAIRS`, 1 otherwise, (pairs,).
        a: weights of ranks 0..n, a[0] = 0 unused, (n + 1,).
        shift: constant added to the statistic.
        most: largest number of pairs of one head.
        mode: `RESOLVED`, `SUBRANK` or `PAIRS`.
        margin: as in the problem.
        C: as in the problem.
        A: side constraints A w <= b, no rows when there are none, (rows, d).
        b: (rows,).
    """

    columns: FloatArray
    heads: IntArray
    first: IntArray
    owner: IntArray
    lower: IntArray
    price: FloatArray
    a: FloatArray
    shift: float
    most: int
    mode: int
    margin: float
    C: float
    A: FloatArray
    b: FloatArray


@njit(cache=True, nogil=True)
def uniform(state: State) -> float:
    """Uniform on [0, 1) by splitmix64 from a state that the caller owns: no global generator is touched."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def _value_of_counts(tables: Tables, lost: IntArray, below: IntArray) -> float:
    """The rank statistic of the lost pairs of each head; fills ``below`` (its meaning is in the module text)."""
    n = tables.a.shape[0] - 1
    value = tables.shift
    if tables.mode == SUBRANK:
        for c in lost:
            value += tables.a[1 + tables.most - c]
        return value
    for m in range(below.shape[0]):
        below[m] = 0
    for c in lost:
        below[c + 1] += 1
    p = 0
    for m in range(tables.most + 1):
        for _ in range(below[m + 1]):
            value += tables.a[n - p - m]
            p += 1
        below[m + 1] = p
    return value


@njit(cache=True, nogil=True)
def _flip(tables: Tables, q: int, win: bool, lost: IntArray, below: IntArray) -> float:
    """Change pair q to won or lost in the counts; returns what that adds to the value."""
    if tables.mode == PAIRS:
        return tables.price[q] if win else -tables.price[q]
    i = tables.owner[q]
    n = tables.a.shape[0] - 1
    if tables.mode == SUBRANK:
        rank = 1 + tables.most - lost[i]
        step = 1 if win else -1
        lost[i] -= step
        return tables.a[rank + step] - tables.a[rank]
    if win:
        m = lost[i]
        p = below[m]
        below[m] += 1
        lost[i] = m - 1
        return tables.a[n - p - m + 1] - tables.a[n - p - m]
    m = lost[i] + 1
    below[m] -= 1
    p = below[m]
    lost[i] = m
    return tables.a[n - p - m] - tables.a[n - p - m + 1]


@njit(cache=True, nogil=True)
def value_of_scores(tables: Tables, f: FloatArray) -> float:
    """The statistic of scores f = X w, compared in float64."""
    heads = tables.heads.shape[0]
    lost = np.zeros(heads, np.int64)
    value = tables.shift
    for i in range(heads):
        need = f[tables.heads[i]] - tables.margin
        for q in range(tables.first[i], tables.first[i + 1]):
            if f[tables.lower[q]] > need:
                lost[i] += 1
            elif tables.mode == PAIRS:
                value += tables.price[q]
    if tables.mode == PAIRS:
        return value
    return _value_of_counts(tables, lost, np.zeros(tables.most + 2, np.int64))


@njit(cache=True, nogil=True)
def _sort_by(keys: FloatArray, items: IntArray, low: float, high: float) -> IntArray:
    """The items sorted by keys[item] in (low, high): as many buckets as items, then each bucket by itself."""
    m = items.shape[0]
    bucket = np.empty(m, np.int64)
    start = np.zeros(m + 2, np.int64)
    scale = m / (high - low)
    for e in range(m):
        bucket[e] = b = min(m - 1, int((keys[items[e]] - low) * scale))
        start[b + 2] += 1
    for b in range(2, m + 2):
        start[b] += start[b - 1]
    order = np.empty(m, np.int64)
    for e in range(m):
        order[start[bucket[e] + 1]] = items[e]
        start[bucket[e] + 1] += 1
    for b in range(m):
        first, end = start[b], start[b + 1]
        gap = 1
        while 3 * gap + 1 < end - first:  # Shell's gaps: a bucket can hold many where breakpoints crowd
            gap = 3 * gap + 1
        while gap >= 1:
            for e in range(first + gap, end):
                item = order[e]
                key = keys[item]
                at = e
                while at >= first + gap and keys[order[at - gap]] > key:
                    order[at] = order[at - gap]
                    at -= gap
                order[at] = item
            gap //= 3
    return order


@njit(cache=True, nogil=True)
def line_search(
    tables: Tables, f: FloatArray, g: FloatArray, low: float, high: float, state: State
) -> tuple[float, float]:
    """The best value of the statistic at scores f + t g over low < t < high, and a t that has it.

    The t is the middle of an interval between breakpoints; of several best intervals one is drawn with probability
    proportional to its length. Intervals shorter than a tiny share of the segment are stepped over. Returns
    (-inf, low) where the segment is empty.
    """
    heads, pairs = tables.heads.shape[0], tables.lower.shape[0]
    best, at, room = -np.inf, low, 0.0
    if not high > low:
        return best, at
    lost = np.zeros(heads, np.int64)
    below = np.zeros(tables.most + 2, np.int64)
    breaks = np.empty(pairs, np.float64)
    inside = np.empty(pairs, np.int64)
    m = 0
    value = tables.shift
    for i in range(heads):
        need_i, slope_i = tables.margin - f[tables.heads[i]], g[tables.heads[i]]
        for q in range(tables.first[i], tables.first[i + 1]):
            need, slope = need_i + f[tables.lower[q]], slope_i - g[tables.lower[q]]
            if slope == 0.0:
                won = need <= 0.0
            else:
                t = need / slope
                won = (t <= low) == (slope > 0.0)  # just behind low
                if low < t < high:
                    breaks[q] = t
                    inside[m] = q
                    m += 1
            if not won:
                lost[i] += 1
            elif tables.mode == PAIRS:
                value += tables.price[q]
    if tables.mode != PAIRS:
        value = _value_of_counts(tables, lost, below)
    order = _sort_by(breaks, inside[:m], low, high)
    narrow = _NARROW * (high - low)
    last = low
    for e in range(m + 1):
        following = breaks[order[e]] if e < m else high
        width = following - last
        if width > narrow:
            tie = TIE * (1.0 + abs(value))
            if value > best + tie:
                best, at, room = value, 0.5 * (last + following), width
            elif value > best - tie:
                room += width
                if uniform(state) * room < width:
                    at = 0.5 * (last + following)
        if e < m:
            q = order[e]
            value += _flip(tables, q, g[tables.heads[tables.owner[q]]] > g[tables.lower[q]], lost, below)
            last = following
    return best, at
