"""Compiled: interval bounds of the pairs over a box, and the counts and the bound that follow from them.

The pair with column e has the interval bounds ``upper = max x·e`` and ``lower = min x·e`` over the points x of the box
[low, high], widened by the pair's slack. It is lost where upper < 0, won where lower >= 0, else open. When one
coordinate changes, both follow by one multiply-add each. The loops run over contiguous slices, so that they are
vectorised.
"""

from __future__ import annotations

import numpy as np

from ltr.compiling import njit
from ltr.exact.weight_space.space import Flags, FloatArray, IndexArray, Space, Work

__all__ = [
    "assign",
    "compiled",
    "copy_entry",
    "copy_open_pairs",
    "count_decided",
    "fast",
    "interval_bounds",
    "level_path",
    "mark_decided",
    "member_path",
    "norm_interval",
    "raise_count",
    "set_interval",
    "split",
]

# no reference counts (_nrt): nothing here allocates, and counting them in every loop costs more than the loops
compiled = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
# sums of floats may be reordered: their error bounds do not depend on the order
fast = njit(cache=True, nogil=True, error_model="numpy", _nrt=False, fastmath={"reassoc", "contract", "nsz"})


@compiled
def assign(into: FloatArray, source: FloatArray) -> None:
    """Copy an array: slice assignment would allocate memory."""
    for q in range(into.shape[0]):
        into[q] = source[q]


@fast
def interval_bounds(work: Work, t: int, begin: int, size: int, columns: int) -> None:
    """Compute the interval bounds of all pairs of a list over box t afresh."""
    at = work.at[t]
    upper, lower = work.upper[at : at + size], work.lower[at : at + size]
    slack = work.slack[begin : begin + size]
    for q in range(size):
        upper[q] = slack[q]
        lower[q] = -slack[q]
    for j in range(columns):
        middle = 0.5 * (work.low[t, j] + work.high[t, j])
        # outwards: the middle is rounded, and both ends of the box must be within
        half = max(work.high[t, j] - middle, middle - work.low[t, j])
        e = work.columns[j, begin : begin + size]
        for q in range(size):
            x, y = middle * e[q], half * abs(e[q])
            upper[q] += x + y
            lower[q] += x - y
    work.updates[t] = 0


@fast
def set_interval(work: Work, t: int, begin: int, size: int, j: int, low: float, high: float) -> None:
    """Set coordinate j of box t to [low, high], inside what it was."""
    at = work.at[t]
    upper, lower = work.upper[at : at + size], work.lower[at : at + size]
    e = work.columns[j, begin : begin + size]
    rise, fall = low - work.low[t, j], work.high[t, j] - high
    for q in range(size):
        above, below = max(e[q], 0.0), min(e[q], 0.0)
        upper[q] += rise * below - fall * above
        lower[q] += rise * above - fall * below
    work.low[t, j] = low
    work.high[t, j] = high
    work.updates[t] += 2


@compiled
def mark_decided(work: Work, t: int, size: int, changed: Flags) -> None:
    """Mark the open pairs that the interval bounds decide now."""
    at = work.at[t]
    upper, lower = work.upper[at : at + size], work.lower[at : at + size]
    is_open, marks = work.open[at : at + size], changed[:size]
    for q in range(size):
        still = (upper[q] >= 0.0) & (lower[q] < 0.0)
        marks[q] = is_open[q] & (np.uint8(1) - np.uint8(still))


@compiled
def raise_count(space: Space, counts: IndexArray, fewer: IndexArray, member: int) -> int:
    """Count one more observation above a member; return the change of the value, which is at most 0."""
    level = space.level[member]
    c, slot, p = counts[member], space.slot[level], 0
    if slot >= 0:
        fewer[slot + c + 1] -= 1
        p = fewer[slot + c + 1]
    counts[member] = c + 1
    at = space.table[level] + p + c
    return space.contribution[at + 1] - space.contribution[at]


@compiled
def level_path(space: Space, work: Work, t: int, level: int) -> None:
    """Fill `path`: raising a member of a level with a slot from c to m loses at least ``path[m] - path[c]``."""
    fewer, slot, table, total = work.fewer[t], space.slot[level], space.table[level], np.int64(0)
    work.path[0] = 0
    for m in range(space.most[level]):
        p = fewer[slot + m + 1] - 1
        if p >= 0:
            total += space.step[table + p + m]
        work.path[m + 1] = total


@compiled
def member_path(space: Space, work: Work, level: int, first: int, last: int) -> None:
    """Fill `path` for the one member of a level without a slot, from the count `first` to `last`."""
    table, total = space.table[level], np.int64(0)
    work.path[first] = 0
    for m in range(first, last):
        total += space.step[table + m]
        work.path[m + 1] = total


@compiled
def count_decided(space: Space, work: Work, t: int, begin: int, size: int, changed: Flags) -> None:
    """Enter the marked pairs of box t as decided into its counts and its bound."""
    at = work.at[t]
    words = changed.view(np.uint64)
    counts, fewer = work.counts[t], work.fewer[t]
    for word in range((size + 7) >> 3):
        if words[word] == 0:
            continue
        for q in range(8 * word, min(8 * word + 8, size)):
            if changed[q] == 0:
                continue
            work.open[at + q] = 0
            if work.upper[at + q] < 0.0:
                work.bound[t] += raise_count(space, counts, fewer, work.owner[begin + q])


@compiled
def split(work: Work, t: int, child: int, begin: int, size: int, j: int) -> None:
    """Halve box t along j: the lower half stays, the upper half becomes `child`; mark the pairs that each decides."""
    at, to = work.at[t], work.at[child]
    middle = 0.5 * (work.low[t, j] + work.high[t, j])
    rise, fall = middle - work.low[t, j], work.high[t, j] - middle
    e = work.columns[j, begin : begin + size]
    upper, lower, is_open = work.upper[at : at + size], work.lower[at : at + size], work.open[at : at + size]
    upper2, lower2, open2 = work.upper[to : to + size], work.lower[to : to + size], work.open[to : to + size]
    marks, marks2 = work.changed[:size], work.changed_too[:size]
    for q in range(size):
        above, below = max(e[q], 0.0), min(e[q], 0.0)
        x, y = upper[q], lower[q]
        upper2[q] = x + rise * below
        lower2[q] = y + rise * above
        upper[q] = x - fall * above
        lower[q] = y - fall * below
    for q in range(size):
        still = (upper[q] >= 0.0) & (lower[q] < 0.0)
        marks[q] = is_open[q] & (np.uint8(1) - np.uint8(still))
    for q in range(size):
        still = (upper2[q] >= 0.0) & (lower2[q] < 0.0)
        open2[q] = is_open[q]
        marks2[q] = is_open[q] & (np.uint8(1) - np.uint8(still))
    work.high[t, j] = middle
    work.low[child, j] = middle
    work.updates[t] += 1
    work.updates[child] = work.updates[t]


@compiled
def copy_entry(work: Work, t: int, child: int, size: int, with_ends: bool) -> None:
    """Make `child`, on top of the stack, a copy of box t."""
    work.at[child] = work.at[child - 1] + size
    work.pair_list[child] = work.pair_list[t]
    work.bound[child] = work.bound[t]
    work.updates[child] = work.updates[t]
    for j in range(work.low.shape[1]):
        work.low[child, j] = work.low[t, j]
        work.high[child, j] = work.high[t, j]
        work.used[child, j] = work.used[t, j]
        work.point[child, j] = work.point[t, j]
    assign(work.counts[child], work.counts[t, :])
    assign(work.fewer[child], work.fewer[t, :])
    if with_ends:
        at, to = work.at[t], work.at[child]
        assign(work.upper[to : to + size], work.upper[at : at + size])
        assign(work.lower[to : to + size], work.lower[at : at + size])
        assign(work.open[to : to + size], work.open[at : at + size])


@compiled
def norm_interval(space: Space, low: FloatArray, high: FloatArray) -> tuple[float, float]:
    """Return bounds of max|(Tv)_j| over a box, no wider than those it has."""
    d = space.T.shape[1]
    least, most = 0.0, 0.0
    for i in range(space.T.shape[0]):
        middle, half = 0.0, 0.0
        for j in range(d):
            middle += 0.5 * (low[j] + high[j]) * space.T[i, j]
            half += 0.5 * (high[j] - low[j]) * abs(space.T[i, j])
        error = 1e-14 * (abs(middle) + half + 1e-3)
        least = max(least, abs(middle) - half - error)
        most = max(most, abs(middle) + half + error)
    return max(least, float(low[d])), min(float(high[d]), most)


@fast
def _gather(source: FloatArray, begin: int, index: IndexArray, kept: int, to: int) -> None:
    old, new, take = source[begin:to], source[to : to + kept], index[:kept]
    for q in range(kept):
        new[q] = old[np.uint32(take[q])]


@compiled
def copy_open_pairs(work: Work, t: int, columns: int) -> None:
    """Copy the open pairs of box t to a list of its own, padded to a multiple of 8 with pairs that stay open."""
    pair_list, at = work.pair_list[t], work.at[t]
    begin, size = work.begin[pair_list], work.size[pair_list]
    to, kept, index = begin + size, 0, work.gather
    is_open = work.open[at : at + size]
    for q in range(size):
        index[kept] = q
        kept += is_open[q]
    for j in range(columns):
        _gather(work.columns[j], begin, index, kept, to)
    for j in range(columns - 1):
        _gather(work.single[j], begin, index, kept, to)
    _gather(work.slack, begin, index, kept, to)
    for k in range(kept):
        q = index[k]
        work.owner[to + k] = work.owner[begin + q]
        work.upper[at + k] = work.upper[at + q]
        work.lower[at + k] = work.lower[at + q]
    padded = (kept + 7) & ~7
    for k in range(kept, padded):
        for j in range(columns):
            work.columns[j, to + k] = 0.0
        for j in range(columns - 1):
            work.single[j, to + k] = np.float32(0.0)
        work.owner[to + k], work.slack[to + k] = 0, 0.0
        work.upper[at + k], work.lower[at + k] = 1.0, -1.0
    for k in range(padded):
        work.open[at + k] = np.uint8(k < kept)
    work.pair_list[t] = pair_list + 1
    work.begin[pair_list + 1], work.size[pair_list + 1] = to, padded
