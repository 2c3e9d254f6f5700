"""Compiled: the boxes on a thread's stack, the interval bounds of their pairs, and bound tightening.

The pair with column e has the interval bounds ``upper = max x·e`` and ``lower = min x·e`` over the points x of the box
[low, high], widened by the pair's slack. It is lost where upper < 0, won where lower >= 0, else open. When one
coordinate changes, both follow by one multiply-add each, and so do the counts of lost pairs and the bound. The loops
run over contiguous slices, so that they are vectorised: a box with few open pairs gets a list of its own.

*Bound tightening* reduces a box to where values above the cutoff are possible: to the side constraints, to where
its forced pairs can be won, and to what a hinge bound leaves.
"""

from __future__ import annotations

import numpy as np

from ltr.compiling import njit
from ltr.exact.weight_space.space import LOOSE, UPDATES, Boxes, Flags, FloatArray, IndexArray, Space, Work

_DENSE = 0.6  # share of open pairs below which a box gets its own list
_DENSE_CANDIDATES = 0.7  # share of candidates left below which their columns are copied
_DEAD = np.float32(-3e38)  # below every reach: no conflict
_WORTHWHILE = 0.9  # share of a width below which a box is updated
_ROOM = 1e-14  # added to caps, for coordinates up to 1

# no reference counts (_nrt): nothing here allocates, and counting them in every loop costs more than the loops
compiled = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
# sums of floats may be reordered: their error bounds do not depend on the order
fast = njit(cache=True, nogil=True, error_model="numpy", _nrt=False, fastmath={"reassoc", "contract", "nsz"})


# --- interval bounds, counts and bound of a box


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
    c, counts_at, p = counts[member], space.counts_at[level], 0
    if counts_at >= 0:
        fewer[counts_at + c + 1] -= 1
        p = fewer[counts_at + c + 1]
    counts[member] = c + 1
    at = space.table[level] + p + c
    return space.contribution[at + 1] - space.contribution[at]


@compiled
def level_path(space: Space, work: Work, t: int, level: int) -> None:
    """Fill `path`: raising a member of a level with a counts_at from c to m loses at least ``path[m] - path[c]``."""
    fewer, counts_at, table, total = work.fewer[t], space.counts_at[level], space.table[level], np.int64(0)
    work.path[0] = 0
    for m in range(space.most[level]):
        p = fewer[counts_at + m + 1] - 1
        if p >= 0:
            total += space.step[table + p + m]
        work.path[m + 1] = total


@compiled
def member_path(space: Space, work: Work, level: int, first: int, last: int) -> None:
    """Fill `path` for the one member of a level without a counts_at, from the count `first` to `last`."""
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
                work.bound[t] += raise_count(space, counts, fewer, work.positive[begin + q])


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
    """Copy the entries ``begin + index`` of an array to its places from `to` on."""
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
        work.positive[to + k] = work.positive[begin + q]
        work.upper[at + k] = work.upper[at + q]
        work.lower[at + k] = work.lower[at + q]
    padded = (kept + 7) & ~7
    for k in range(kept, padded):
        for j in range(columns):
            work.columns[j, to + k] = 0.0
        for j in range(columns - 1):
            work.single[j, to + k] = np.float32(0.0)
        work.positive[to + k], work.slack[to + k] = 0, 0.0
        work.upper[at + k], work.lower[at + k] = 1.0, -1.0
    for k in range(padded):
        work.open[at + k] = np.uint8(k < kept)
    work.pair_list[t] = pair_list + 1
    work.begin[pair_list + 1], work.size[pair_list + 1] = to, padded


# --- bound tightening


@compiled
def mark_used(space: Space, work: Work, t: int, j: int) -> None:
    """Note that weight j is not 0 in box t."""
    if work.used[t, j] == 0:
        work.used[t, j] = 1
        work.bound[t] -= space.price[j]


@compiled
def tighten(space: Space, work: Work, t: int, begin: int, size: int, j: int, low: float, high: float) -> None:
    """Tighten coordinate j of box t to [low, high]; where 0 is left outside, the weight's price falls due."""
    if work.updates[t] >= UPDATES:
        interval_bounds(work, t, begin, size, space.columns.shape[0])
    set_interval(work, t, begin, size, j, low, high)
    if low > 0.0 or high < 0.0:
        mark_used(space, work, t, j)


@compiled
def tighten_to_forced_pairs(space: Space, work: Work, t: int, begin: int, size: int) -> int:
    """Tighten box t to where its forced pairs can be won; return 1 where that helped, -1 where they cannot, else 0."""
    d, at = space.T.shape[1], work.at[t]
    low, high = work.small[3], work.small[4]
    for j in range(d):
        low[j], high[j] = work.low[t, j], work.high[t, j]
    for q in range(size):
        if work.open[at + q] == 0 or work.forced[work.positive[begin + q]] == 0:
            continue
        room = work.upper[at + q]
        for j in range(d):
            e = work.columns[j, begin + q]
            if abs(e) * (work.high[t, j] - work.low[t, j]) > room:
                cap = room / abs(e) + _ROOM
                if e > 0.0:
                    low[j] = max(low[j], work.high[t, j] - cap)
                else:
                    high[j] = min(high[j], work.low[t, j] + cap)
    tightened = 0
    for j in range(d):
        if high[j] < low[j]:
            return -1
        if high[j] - low[j] < _WORTHWHILE * (work.high[t, j] - work.low[t, j]):
            tighten(space, work, t, begin, size, j, low[j], high[j])
            tightened = 1
    return tightened


@compiled
def tighten_to_hinge_bound(space: Space, work: Work, t: int, begin: int, size: int, g: FloatArray, room: float) -> bool:
    """Tighten box t to where ``g·x > max g·x - room``; return whether that helped."""
    tightened = False
    for j in range(space.T.shape[1]):
        low, high = work.low[t, j], work.high[t, j]
        if abs(g[j]) * (high - low) * _WORTHWHILE <= room:
            continue
        cap = room / abs(g[j]) + _ROOM
        if g[j] > 0.0:
            low = max(low, high - cap)
        else:
            high = min(high, low + cap)
        if high - low < work.high[t, j] - work.low[t, j]:
            tighten(space, work, t, begin, size, j, low, high)
            tightened = True
    return tightened


@compiled
def side_term(y: float) -> float:
    """Return what y = A_rj w_j counts in its side constraint (`ltr.exact.weight_space.space`), nondecreasing in y."""
    return y - LOOSE * abs(y)


@compiled
def _least_term(space: Space, work: Work, t: int, row: int, j: int) -> float:
    a = space.A[row, j]
    return side_term(a * (work.low[t, j] if a > 0.0 else work.high[t, j]))


@compiled
def tighten_to_constraints(space: Space, work: Work, t: int, begin: int, size: int) -> bool:
    """Tighten box t to the side constraints; return whether some of it satisfies them."""
    d = space.T.shape[1]
    if space.support < d:
        used = 0
        for j in range(d):
            used += work.used[t, j]
        if used > space.support:
            return False
        if used == space.support:
            for j in range(d):
                if work.used[t, j] == 0 and work.high[t, j] > work.low[t, j]:
                    tighten(space, work, t, begin, size, j, 0.0, 0.0)
    for row in range(space.A.shape[0]):
        room = space.b[row]
        for j in range(d):
            room -= _least_term(space, work, t, row, j)
        if room < 0.0:
            return False
        for j in range(d):
            a, low, high = space.A[row, j], work.low[t, j], work.high[t, j]
            if abs(a) * (high - low) * _WORTHWHILE <= room:
                continue
            rest = space.b[row]  # what the others leave, summed without this term: it may be far smaller
            for other in range(d):
                if other != j:
                    rest -= _least_term(space, work, t, row, other)
            end = rest / (1.0 - LOOSE if rest > 0.0 else 1.0 + LOOSE) / a
            if a > 0.0:
                tighten(space, work, t, begin, size, j, low, max(low, min(high, end)))
            else:
                tighten(space, work, t, begin, size, j, min(high, max(low, end)), high)
    return True


@compiled
def update_decided(space: Space, work: Work, t: int, begin: int, size: int) -> None:
    """Find the open pairs that box t decides now, and count them."""
    mark_decided(work, t, size, work.changed)
    count_decided(space, work, t, begin, size, work.changed)


# --- lists of open pairs


@compiled
def keep_conflicts(work: Work, pair_list: int, place: IndexArray) -> None:
    """Copy the conflicts of a pair list to the next list, whose pairs have moved to `place` (-1: decided)."""
    conflicts, number = work.conflicts, work.conflict_count[pair_list]
    first, links = work.conflict_begin[pair_list, 0], work.conflict_begin[pair_list, 1]
    one, other = conflicts.one[links : links + number], conflicts.other[links : links + number]
    kept = 0
    for c in range(number):
        work.listed[kept] = c
        kept += (place[np.uint32(one[c])] >= 0) & (place[np.uint32(other[c])] >= 0)
    to, links_to = work.conflict_end[pair_list, 0], work.conflict_end[pair_list, 1]
    if kept < _DENSE_CANDIDATES * number:
        for j in range(work.low.shape[1]):
            _gather(conflicts.columns[j], first, work.listed, kept, to)
        for k in range(kept):
            c = work.listed[k]
            conflicts.one[links_to + k], conflicts.other[links_to + k] = place[one[c]], place[other[c]]
            conflicts.apart[links_to + k] = conflicts.apart[links + c]
        first, number, to = to, kept, to + kept
    else:  # the same columns, some of them of pairs that are decided by now
        for c in range(number):
            q, p = place[one[c]], place[other[c]]
            conflicts.one[links_to + c], conflicts.other[links_to + c] = max(q, 0), max(p, 0)
            conflicts.apart[links_to + c] = conflicts.apart[links + c] if q >= 0 and p >= 0 else _DEAD
    work.conflict_count[pair_list + 1] = number
    work.conflict_begin[pair_list + 1, 0], work.conflict_begin[pair_list + 1, 1] = first, links_to
    work.conflict_end[pair_list + 1, 0], work.conflict_end[pair_list + 1, 1] = to, links_to + number


@compiled
def push_root(space: Space, work: Work, roots: Boxes, root: int) -> None:
    """Put a root on the empty stack."""
    columns, pairs = space.columns.shape
    for j in range(columns):
        work.low[0, j], work.high[0, j] = roots.low[root, j], roots.high[root, j]
        work.used[0, j] = roots.used[root, j]
        work.point[0, j] = 0.5 * (work.low[0, j] + work.high[0, j])
        assign(work.columns[j, :pairs], space.columns[j])
    assign(work.positive[:pairs], space.positive)
    assign(work.slack[:pairs], space.slack)
    for j in range(space.single.shape[0]):
        assign(work.single[j, :pairs], space.single[j])
    work.open[:pairs] = 1
    conflicts = space.conflicts.one.shape[0]
    for j in range(columns):
        assign(work.conflicts.columns[j, :conflicts], space.conflicts.columns[j])
    assign(work.conflicts.one[:conflicts], space.conflicts.one)
    assign(work.conflicts.other[:conflicts], space.conflicts.other)
    assign(work.conflicts.apart[:conflicts], space.conflicts.apart)
    work.conflict_begin[0, :] = 0
    work.conflict_end[0, :] = conflicts
    work.conflict_count[0] = conflicts
    work.pair_list[0], work.begin[0], work.size[0], work.at[0] = 0, 0, pairs, 0
    work.counts[0, :] = 0
    work.fewer[0, :] = 0
    bound = np.int64(0)
    for level in range(space.table.shape[0]):
        members, counts_at = space.start[level + 1] - space.start[level], space.counts_at[level]
        for p in range(members):
            bound += space.contribution[space.table[level] + p]
        if counts_at >= 0:
            work.fewer[0, counts_at + 1 : counts_at + space.most[level] + 2] = members
    for j in range(columns - 1):
        bound -= space.price[j] * work.used[0, j]
    work.bound[0] = bound
    interval_bounds(work, 0, 0, pairs, columns)
    work.changed[:] = 0
    work.changed_too[:] = 0
    mark_decided(work, 0, pairs, work.changed)
    count_decided(space, work, 0, 0, pairs, work.changed)


@compiled
def compact_open_pairs(space: Space, work: Work, t: int) -> None:
    """Give a box with few open pairs a list of its own, and one with many updates fresh interval bounds."""
    pair_list, at = work.pair_list[t], work.at[t]
    size = work.size[pair_list]
    alive = 0
    is_open = work.open[at : at + size]
    for q in range(size):
        alive += is_open[q]
    room = work.begin[pair_list] + 2 * size + 8 < work.columns.shape[1]
    for k in range(2):
        room &= work.conflict_end[pair_list, k] + work.conflict_count[pair_list] <= work.conflicts.one.shape[0]
    if alive < _DENSE * size and room:
        copy_open_pairs(work, t, space.columns.shape[0])
        place = work.place
        place[:size] = -1
        for k in range(alive):
            place[work.gather[k]] = k
        keep_conflicts(work, pair_list, place)
    if work.updates[t] > UPDATES:
        pair_list = work.pair_list[t]
        interval_bounds(work, t, work.begin[pair_list], work.size[pair_list], space.columns.shape[0])
        update_decided(space, work, t, work.begin[pair_list], work.size[pair_list])
