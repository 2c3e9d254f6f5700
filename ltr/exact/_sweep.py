"""Compiled kernels: the statistic along a line of weights, exactly.

Along w(t) = w + t v the pair (i, k) has the difference ``f_i - f_k + t (g_i - g_k)`` with f = X w, g = X v, so it
changes between won and lost at one breakpoint ``t = (limit - f_i + f_k) / (g_i - g_k)``. Sorting the breakpoints and
stepping through them visits every value the statistic takes on the line; a step changes a count of `ltr.exact.levels`
by 1, in constant time as shown there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr.compiling import njit

__all__ = ["TIE", "Tables", "line_search", "uniform", "value_of_scores"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.int32]  # of pairs: half the memory to read for every line
State = NDArray[np.uint64]

TIE = 1e-11  # values closer than this, relative to their size, are the same value
_MASK = (1 << 20) - 1  # of pairs between two looks at `stop`: some hundredths of a second
_NARROW = 1e-11  # share of a segment below which an interval is too short to step into reliably


class Tables(NamedTuple):
    """A problem as the kernels read it; pairs, members and levels are those of `ltr.exact.levels.Levels`.

    Attributes:
        columns: features, one row a feature, (d, n).
        above: upper observation of each pair, (pairs,).
        below: lower observation, (pairs,).
        limit: score difference from which a pair is won, (pairs,).
        owner: member that counts the pair when it is lost, (pairs,).
        home: where the level of each member has its worths, and its counters or -1, (members, 2).
        shared: the same and the largest count, for each level of several members, (shared levels, 3).
        worth: all tables of worths.
        slots: number of counters.
        shift: constant part of the value.
        C: as in the problem.
        sides: whether there are side constraints.
        A: those A w <= b that a line may leave, rows of a size of about 1, (rows, d).
        b: (rows,).
        stop: set to 1 from another thread to end a line search early, without a result, (1,).
    """

    columns: FloatArray
    above: IndexArray
    below: IndexArray
    limit: FloatArray
    owner: IndexArray
    home: IntArray
    shared: IntArray
    worth: FloatArray
    slots: int
    shift: float
    C: float
    sides: bool
    A: FloatArray
    b: FloatArray
    stop: NDArray[np.uint8]


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
def _value_of_counts(tables: Tables, counts: IntArray, fewer: IntArray) -> float:
    """The value of the members' counts; fills `fewer`, which is 0 before (its meaning is in `ltr.exact.levels`)."""
    home, shared, worth = tables.home, tables.shared, tables.worth
    value = tables.shift
    for i in range(counts.shape[0]):
        at, slot = home[i, 0] + counts[i], home[i, 1]
        if slot < 0:
            value += worth[at]
        else:
            fewer[slot + counts[i] + 1] += 1
    for row in range(shared.shape[0]):
        at, slot = shared[row, 0], shared[row, 1]
        p = 0
        for m in range(shared[row, 2] + 1):
            for _ in range(fewer[slot + m + 1]):
                value += worth[at + p + m]
                p += 1
            fewer[slot + m + 1] = p
    return value


@njit(cache=True, nogil=True)
def value_of_scores(tables: Tables, f: FloatArray) -> float:
    """The statistic of scores f = X w, compared in float64."""
    above, below, limit, owner = tables.above, tables.below, tables.limit, tables.owner
    counts = np.zeros(tables.home.shape[0], np.int64)
    for q in range(below.shape[0]):
        if f[below[q]] > f[above[q]] - limit[q]:
            counts[owner[q]] += 1
    return _value_of_counts(tables, counts, np.zeros(tables.slots, np.int64))


@njit(cache=True, nogil=True)
def _sort(
    keys: FloatArray, items: IntArray, low: float, high: float, stop: NDArray[np.uint8]
) -> tuple[FloatArray, IntArray]:
    """Keys in (low, high) sorted, and their items: as many buckets as keys, then each bucket by itself."""
    m = keys.shape[0]
    bucket = np.empty(m, np.int64)
    start = np.zeros(m + 2, np.int64)
    scale = m / (high - low)
    for e in range(m):
        bucket[e] = b = min(m - 1, int((keys[e] - low) * scale))
        start[b + 2] += 1
    for b in range(2, m + 2):
        start[b] += start[b - 1]
    sorted_keys = np.empty(m, np.float64)
    sorted_items = np.empty(m, np.int64)
    for e in range(m):
        b = bucket[e] + 1
        at = start[b]
        start[b] = at + 1
        sorted_keys[at] = keys[e]
        sorted_items[at] = items[e]
    for b in range(m):
        if (b & _MASK) == 0 and stop[0] != 0:
            break
        first, end = start[b], start[b + 1]
        gap = 1
        while 3 * gap + 1 < end - first:  # Shell's gaps: a bucket can hold many where breakpoints crowd
            gap = 3 * gap + 1
        while gap >= 1:
            for e in range(first + gap, end):
                key, item = sorted_keys[e], sorted_items[e]
                at = e
                while at >= first + gap and sorted_keys[at - gap] > key:
                    sorted_keys[at] = sorted_keys[at - gap]
                    sorted_items[at] = sorted_items[at - gap]
                    at -= gap
                sorted_keys[at] = key
                sorted_items[at] = item
            gap //= 3
    return sorted_keys, sorted_items


@njit(cache=True, nogil=True)
def line_search(
    tables: Tables, f: FloatArray, g: FloatArray, low: float, high: float, state: State
) -> tuple[float, float]:
    """The best value of the statistic at scores f + t g over low < t < high, and a t that has it.

    The t is the middle of an interval between breakpoints; of several best intervals one is drawn with probability
    proportional to its length. Intervals shorter than a tiny share of the segment are stepped over. Returns
    (-inf, low) where the segment is empty or the search was stopped.
    """
    best, at, room = -np.inf, low, 0.0
    if not high > low:
        return best, at
    # plain names, no helper in the loops: compiled code counts references on access to a tuple and on calls
    above, below, limit, owner = tables.above, tables.below, tables.limit, tables.owner
    home, worth, stop = tables.home, tables.worth, tables.stop
    counts = np.zeros(home.shape[0], np.int64)
    fewer = np.zeros(tables.slots, np.int64)
    breaks = np.empty(below.shape[0], np.float64)
    inside = np.empty(below.shape[0], np.int64)  # q where the pair is won from its breakpoint on, else ~q
    m = 0
    for q in range(below.shape[0]):
        if (q & _MASK) == 0 and stop[0] != 0:
            return best, at
        i, k = above[q], below[q]
        need, slope = limit[q] - f[i] + f[k], g[i] - g[k]
        rising = slope >= 0.0
        t = need / slope if slope != 0.0 else (-np.inf if need <= 0.0 else np.inf)
        won = (t <= low) == rising  # just behind low
        breaks[m] = t
        inside[m] = q if rising else ~q
        m += 1 if low < t < high else 0  # a branch would be mispredicted too often
        if not won:
            counts[owner[q]] += 1
    value = _value_of_counts(tables, counts, fewer)
    breaks, inside = _sort(breaks[:m], inside[:m], low, high, stop)
    if stop[0] != 0:
        return -np.inf, low
    narrow = _NARROW * (high - low)
    last = low
    for e in range(m + 1):
        if (e & _MASK) == 0 and stop[0] != 0:
            return -np.inf, low
        following = breaks[e] if e < m else high
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
            q = inside[e]
            up = 1 if q < 0 else 0  # a lost pair raises its owner's count by 1, a won one lowers it
            q = ~q if q < 0 else q
            i = owner[q]
            c = counts[i] + up
            counts[i] = c + up - 1
            here, slot = home[i, 0] + c, home[i, 1]
            if slot >= 0:
                here += fewer[slot + c] - up
                fewer[slot + c] += 1 - 2 * up
            change = worth[here] - worth[here - 1]
            value += change if up else -change
            last = following
    return best, at
