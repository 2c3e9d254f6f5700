r"""Compiled: what closes a box beyond its own bound: unit losses, conflicts, the hinge bound and probing.

**Unit losses.** In a box with bound B and a cutoff T, a point with a value above T loses open pairs whose losses add up
to less than the *required loss* ``required = B - T``. Raising the count of a member of a level from m to m + 1 moves
the place ``p = fewer[m + 1] - 1``, so it loses ``contribution[p + m] - contribution[p + m + 1] >= step[p + m]``, where
`step` does not increase. Raise the members one after the other: those raised before have only made `fewer` smaller, so
every single step loses at least the `step` it would have lost alone, and all together at least the sum over members of

    loss_i(x) = sum over m = c_i .. c_i + x - 1 of  step[fewer[m + 1] - 1 + m],      x = pairs that i loses.

As `step` is nonincreasing, loss_i(x) / x is too. Let X be the largest x, among the open pairs of i, at which
loss_i(x) < required. A point with a value above T has x <= X, hence ``loss_i(x) >= u_i x`` with the *unit loss*
``u_i = loss_i(X) / X``. The pairs of a member with X = 0 are *forced*: all its open pairs have to be won.

**Conflicts.** Of two pairs in conflict (`ltr.exact.weight_space.space`) one is lost at every point of the box. With
z_q = 1 where pair q is lost and u_q its unit loss, a point with a value above the cutoff loses

    sum of u_q z_q >= sum over conflicts of y  +  sum of (u_q - sum of y over the conflicts of q) z_q

for all y >= 0 that take no more from a pair than its unit loss, since z_q + z_q' >= 1: a packing of the unit losses
into the conflicts. (The largest packing is the dual of the linear program of the cheapest cover of the conflicts; a
greedy one will do.) What is left of the unit losses goes into the hinge bound.

*Budgets.* Conflicts without a pair of member i lose at least ``packed - touched_i``, so i itself loses less than
``required - packed + touched_i`` at a point with a value above the cutoff. This *budget* takes the place of the
required loss in the unit loss of i, which it raises, as the first pairs lost lose most; and with it the packing.

**The hinge bound.** An open pair with lower interval bound l < 0 is lost at x only where ``max(0, -x·e) / -l`` is above
0, and that is at most 1. So for every point x of the box with a value above T, and with ``s_q = u_member(q) / -l_q``,

    required > sum of u_member(q) [q lost at x] >= h(x) = sum over q of s_q max(0, -x·e_q).

h is convex. For any x', with g = sum of s_q e_q over the pairs with x'·e_q < 0, ``h(x) >= -g·x`` for all x, so

    min of h over the box >= phi = - max over the box of g·x,

and the same holds for averages of such g. A box with phi >= required has no value above T and is closed.
Otherwise points with a value above T satisfy ``g·x > -required``, which caps the width of the box in coordinate j at
``(max g·x + required) / |g_j|``. The descent on h is a projected subgradient method with Polyak's step towards
`required_loss`; it gives up at a point with h < required, for then no g closes the box.

*Rounding.* g and its terms are floats; with A the sum of the s_q in g, ``A * error`` bounds the error of g·x over the
box and is taken off phi.

**Probing.** A *part* is the upper or lower half or quarter of the box along one coordinate. Let x_i be the
open pairs of member i that are lost on all of a part. As for unit losses, members raised one after the other lose at
least

    sum over i of  loss_i(x_i),      loss_i(x) = sum over m = c_i .. c_i + x - 1 of  step[fewer[m + 1] - 1 + m],

so a part that loses the box's bound minus the cutoff, or more, has no value above the cutoff and is cut off. If
no half of any coordinate can be cut off, the box is best split where both halves lose much.

*Counting.* A pair with upper interval bound u over the box has the upper bound ``u - h |e_j|`` in the half of
coordinate j that is the worse one for it, h half the width, and ``u - 1.5 h |e_j|`` in the worse quarter. The sign of
e_j says which half that is. So each pair and coordinate takes one product and four comparisons, in single
precision. Few pairs of a member in a row are counted by one byte for each coordinate in a word, many by a sum for each
coordinate.

*Rounding.* u is between 0 and ``2 R``, R half the pair's range over the box, and ``h |e_j| <= R``. Rounding u, h,
e_j, their product and u / 1.5 to single precision errs by at most ``12 * 2^-24 R``; `_ROOM` times the range
``2 R`` is added to u. A power of two brings e to a size of about 1 first, and pairs whose range is too small for single
precision are taken as not lost. The error of rounding the middle of a coordinate is in the slack of u.
"""

from __future__ import annotations

import numpy as np

from ltr.exact.weight_space import _boxes
from ltr.exact.weight_space._boxes import compiled, fast
from ltr.exact.weight_space.space import NARROW, FloatArray, IntArray, Space, Work

OPEN, CLOSED, GAVE_UP = 0, 1, 2
_STEPS = 5
_DESCENT = 20
_RELAXATION = 0.7
_BLOCK = 1024  # candidates examined together, so that they fit into the cache
_PROBES = 4  # upper half, lower half, upper quarter, lower quarter
_ROOM = 2.0**-20
_TINY, _NOT_LOST = 1e-30, np.float32(1e30)
_QUARTER = np.float32(1 / 1.5)  # there are 1.5 half widths from the better end of a coordinate to the worse quarter
_LONG = 64  # average number of pairs of one member in a row from which sums are faster
_LOSS_OFFSET = 0.02  # share of the required loss added to the loss of each half, so that a half may lose nothing
_CUT_SHARE = 1.0 - 1e-6  # share of a quarter that is cut off, with room for single precision
# byte j of the word is bit j of the index
_BYTES = np.array([sum(((bits >> j) & 1) << (8 * j) for j in range(8)) for bits in range(256)], np.uint64)
_BYTE, _FULL = np.uint32(255), 255


# --- unit losses


@compiled
def unit_losses(space: Space, work: Work, t: int, begin: int, size: int, required_loss: int) -> int:
    """Set the unit loss of each member of box t, within its budget; return how many members have forced pairs."""
    unit_loss, losable, path, budget = work.unit_loss, work.losable, work.path, work.budget
    losable[:] = 0
    at = work.at[t]
    positive, is_open = work.positive[begin : begin + size], work.open[at : at + size]
    i, run = positive[0] if size > 0 else np.int32(0), np.int64(0)
    for q in range(size):  # the pairs of a positive follow each other
        if positive[q] != i:
            losable[i] += run
            i, run = positive[q], np.int64(0)
        run += is_open[q]
    losable[i] += run
    forced = 0
    counts = work.counts[t]
    for level in range(space.table.shape[0]):
        shared = space.counts_at[level] >= 0
        if shared:
            _boxes.level_path(space, work, t, level)
        for i in range(space.start[level], space.start[level + 1]):
            unit_loss[i] = 0.0
            work.forced[i] = 0
            most, c = losable[i], counts[i]
            if most == 0:
                continue
            if not shared:
                _boxes.member_path(space, work, level, c, c + most)
            x, beyond = 0, most + 1
            while beyond - x > 1:  # the largest x that the budget affords
                middle = (x + beyond) >> 1
                if path[c + middle] - path[c] < budget[i]:
                    x = middle
                else:
                    beyond = middle
            if x == 0:
                # no such point loses a pair of i, so its unit loss is free: two forced pairs in conflict close the box
                unit_loss[i] = float(required_loss) * (1.0 + 1e-9)
                work.forced[i] = 1
                forced += 1
            else:
                unit_loss[i] = float(path[c + x] - path[c]) / x * (1.0 - 1e-13)
    return forced


@fast
def pair_losses(work: Work, t: int, begin: int, size: int) -> None:
    """Write the unit loss of each open pair to `scale`."""
    at = work.at[t]
    scale, positive, is_open = work.scale[:size], work.positive[begin : begin + size], work.open[at : at + size]
    unit_loss = work.unit_loss
    for q in range(size):
        scale[q] = unit_loss[np.uint32(positive[q])] * is_open[q]


@fast
def hinge_slopes(work: Work, t: int, size: int) -> None:
    """Divide the pair losses in `scale` by the pairs' lower interval bounds: the slopes s_q."""
    at = work.at[t]
    scale, lower = work.scale[:size], work.lower[at : at + size]
    for q in range(size):
        scale[q] /= max(-lower[q], 1e-11)


# --- conflicts


@fast
def _mark_conflicts(work: Work, t: int, pair_list: int, begin: int, end: int) -> None:
    """Mark which of some candidates are in conflict on box t."""
    first, links, number = work.conflict_begin[pair_list, 0], work.conflict_begin[pair_list, 1], end - begin
    reach, in_conflict = work.reach[:number], work.in_conflict[begin:end]
    apart = work.conflicts.apart[links + begin : links + end]
    for c in range(number):
        reach[c] = np.float32(0.0)
    for j in range(work.low.shape[1]):
        middle = np.float32(0.5 * (work.low[t, j] + work.high[t, j]))
        half = np.float32(0.5 * (work.high[t, j] - work.low[t, j]))
        f = work.conflicts.columns[j, first + begin : first + end]
        for c in range(number):
            reach[c] += middle * f[c] + half * abs(f[c])
    for c in range(number):
        in_conflict[c] = np.uint8(reach[c] < apart[c])


@compiled
def find_conflicts(work: Work, t: int) -> int:
    """List the candidates that are in conflict on box t; return how many."""
    pair_list = work.pair_list[t]
    number = work.conflict_count[pair_list]
    begin = 0
    while begin < number:
        _mark_conflicts(work, t, pair_list, begin, min(begin + _BLOCK, number))
        begin += _BLOCK
    work.in_conflict[number : number + 8] = 0
    words, found = work.in_conflict.view(np.uint64), 0
    for word in range((number + 7) >> 3):
        if words[word] != 0:
            for c in range(8 * word, 8 * word + 8):
                work.listed[found] = c
                found += work.in_conflict[c]
    return found


@compiled
def pack(work: Work, t: int, begin: int, found: int) -> float:
    """Pack the pair losses in `scale` into the listed conflicts; return their loss and leave the rest in `scale`."""
    links = work.conflict_begin[work.pair_list[t], 1]
    left, touched, total = work.scale, work.touched, 0.0
    touched[:] = 0.0
    for k in range(found):
        c = links + work.listed[k]
        q, p = work.conflicts.one[c], work.conflicts.other[c]
        y = max(min(left[q], left[p]), 0.0)
        total += y
        left[q] -= y
        left[p] -= y
        i, m = work.positive[begin + q], work.positive[begin + p]
        touched[i] += y
        touched[m] += y if i != m else 0.0
    return total * (1.0 - 1e-12)


@compiled
def lower_budgets(work: Work, required_loss: int, packed: float) -> None:
    """Lower each member's budget by what the conflicts without its pairs lose, of `packed` in all."""
    for i in range(work.budget.shape[0]):
        others = max(0.0, packed - work.touched[i] * (1.0 + 1e-12))
        work.budget[i] = min(work.budget[i], np.int64((required_loss - others) * (1.0 + 1e-12)) + 1)


# --- the hinge bound, branching and candidates


@fast
def branching_scores(work: Work, t: int, begin: int, size: int, d: int, out: FloatArray) -> None:
    """Write the sum over open pairs of ``|e_j| / (upper - lower)`` for each coordinate to `out`."""
    at = work.at[t]
    share, is_open = work.value[:size], work.open[at : at + size]
    upper, lower, positive = work.upper[at : at + size], work.lower[at : at + size], work.positive[begin : begin + size]
    unit_loss = work.unit_loss
    for q in range(size):
        counts = 1.0 if unit_loss[np.uint32(positive[q])] > 0.0 else 1e-6
        share[q] = counts * is_open[q] / (upper[q] - lower[q] + 1e-300)
    j = 0
    while j + 4 <= d:
        e0, e1 = work.columns[j, begin : begin + size], work.columns[j + 1, begin : begin + size]
        e2, e3 = work.columns[j + 2, begin : begin + size], work.columns[j + 3, begin : begin + size]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for q in range(size):
            y = share[q]
            s0 += y * abs(e0[q])
            s1 += y * abs(e1[q])
            s2 += y * abs(e2[q])
            s3 += y * abs(e3[q])
        out[j], out[j + 1], out[j + 2], out[j + 3] = s0, s1, s2, s3
        j += 4
    while j < d:
        e0 = work.columns[j, begin : begin + size]
        s0 = 0.0
        for q in range(size):
            s0 += share[q] * abs(e0[q])
        out[j] = s0
        j += 1


@fast
def decided_by_half(work: Work, t: int, begin: int, size: int, j: int) -> float:
    """Return (a + 1)(b + 1) for the numbers a and b of pairs that the halves of coordinate j would lose."""
    at = work.at[t]
    upper, share = work.upper[at : at + size], work.value[:size]
    e = work.columns[j, begin : begin + size]
    half = 0.5 * (work.high[t, j] - work.low[t, j])
    below, above = 1.0, 1.0
    for q in range(size):
        fall = half * e[q]
        counts = 1.0 if share[q] > 0.0 else 0.0
        below += counts if upper[q] < fall else 0.0
        above += counts if upper[q] < -fall else 0.0
    return below * above


@fast
def _values(work: Work, begin: int, size: int, columns: int, x: FloatArray) -> None:
    """Write -x·e of every pair of the list to `value`."""
    value = work.value[:size]
    for q in range(size):
        value[q] = 0.0
    j = 0
    while j + 4 <= columns:
        e0, e1 = work.columns[j, begin : begin + size], work.columns[j + 1, begin : begin + size]
        e2, e3 = work.columns[j + 2, begin : begin + size], work.columns[j + 3, begin : begin + size]
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for q in range(size):
            value[q] -= x0 * e0[q] + x1 * e1[q] + x2 * e2[q] + x3 * e3[q]
        j += 4
    while j < columns:
        e0, x0 = work.columns[j, begin : begin + size], x[j]
        for q in range(size):
            value[q] -= x0 * e0[q]
        j += 1


@fast
def _hinges(work: Work, size: int) -> tuple[float, float]:
    """Return h and the sum of the slopes in it; leave the slope of each pair in it, else 0, in `value`."""
    value, scale = work.value[:size], work.scale[:size]
    h, total = 0.0, 0.0
    for q in range(size):
        x = value[q]
        y = scale[q] if x > 0.0 else 0.0
        h += y * x
        total += y
        value[q] = y
    return h, total


@fast
def _slope(work: Work, begin: int, size: int, columns: int, out: FloatArray) -> None:
    """Write g, the sum of the columns times `value`, to `out`."""
    value = work.value[:size]
    j = 0
    while j + 4 <= columns:
        e0, e1 = work.columns[j, begin : begin + size], work.columns[j + 1, begin : begin + size]
        e2, e3 = work.columns[j + 2, begin : begin + size], work.columns[j + 3, begin : begin + size]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for q in range(size):
            y = value[q]
            s0 += y * e0[q]
            s1 += y * e1[q]
            s2 += y * e2[q]
            s3 += y * e3[q]
        out[j], out[j + 1], out[j + 2], out[j + 3] = s0, s1, s2, s3
        j += 4
    while j < columns:
        e0 = work.columns[j, begin : begin + size]
        s0 = 0.0
        for q in range(size):
            s0 += value[q] * e0[q]
        out[j] = s0
        j += 1


@compiled
def dual(work: Work, t: int, g: FloatArray) -> float:
    """Return ``- max over box t of g·x``."""
    total = 0.0
    for j in range(g.shape[0]):
        total -= g[j] * work.high[t, j] if g[j] > 0.0 else g[j] * work.low[t, j]
    return total


@compiled
def _step(work: Work, t: int, x: FloatArray, g: FloatArray, fall: float) -> bool:
    """Move x along g so that h falls by `fall` to first order; return whether it could move."""
    norm = 0.0
    for j in range(g.shape[0]):
        low, high = work.low[t, j], work.high[t, j]
        blocked = (g[j] > 0.0 and x[j] >= high) or (g[j] < 0.0 and x[j] <= low)
        if not blocked:
            norm += (g[j] * (high - low)) ** 2
    if norm <= 0.0 or not fall / norm < np.inf:  # sides of less than 1e-150
        return False
    for j in range(g.shape[0]):
        low, high = work.low[t, j], work.high[t, j]
        # in this order no product overflows: 0 times infinity would be no number
        x[j] = min(max(x[j] + fall / norm * (g[j] * (high - low)) * (high - low), low), high)
    return True


@compiled
def hinge_bound(
    space: Space, work: Work, t: int, begin: int, size: int, required_loss: float, best: FloatArray
) -> tuple[int, float]:
    """Try to close box t; return the outcome and the largest phi (-inf for none), its g being left in `best`."""
    columns = space.columns.shape[0]
    x, g, mean = work.small[0], work.small[1], work.small[2]
    for j in range(columns):
        x[j] = min(max(work.point[t, j], work.low[t, j]), work.high[t, j])
        mean[j] = 0.0
    total, largest, outcome = 0.0, -np.inf, OPEN
    for step in range(_STEPS):
        if space.stop[0] != 0:  # one step takes long with many pairs of many features
            outcome = GAVE_UP
            break
        _values(work, begin, size, columns, x)
        h, slopes = _hinges(work, size)
        if h < required_loss:
            outcome = GAVE_UP
            break
        _slope(work, begin, size, columns, g)
        phi = dual(work, t, g) - slopes * space.error
        if phi > largest:
            largest = phi
            _boxes.assign(best, g)
        total += slopes
        for j in range(columns):
            mean[j] += g[j]
        if step > 0:
            phi = (dual(work, t, mean) - total * space.error) / (step + 1)
            if phi > largest:
                largest = phi
                for j in range(columns):
                    best[j] = mean[j] / (step + 1)
        if largest >= required_loss:
            outcome = CLOSED
            break
        if not _step(work, t, x, g, _RELAXATION * (h - 0.9 * required_loss)):
            break
    _boxes.assign(work.point[t], x)
    return outcome, largest


@compiled
def descend(space: Space, work: Work, t: int, begin: int, size: int) -> None:
    """Move the point of box t towards one that wins every open pair, or to 0 in coordinates where zeros count."""
    columns = space.columns.shape[0]
    x, g = work.small[0], work.small[1]
    for j in range(columns):
        x[j] = min(max(work.point[t, j], work.low[t, j]), work.high[t, j])
    for _ in range(_DESCENT):
        if space.stop[0] != 0:
            break
        for j in range(columns - 1):
            if space.sparse and work.used[t, j] == 0:
                x[j] = 0.0
        _values(work, begin, size, columns, x)
        h, _ = _hinges(work, size)
        if h <= 0.0:
            break
        _slope(work, begin, size, columns, g)
        for j in range(columns - 1):
            if space.sparse and work.used[t, j] == 0:
                g[j] = 0.0
        if not _step(work, t, x, g, 1.2 * h):
            break
    for j in range(columns - 1):
        if space.sparse and work.used[t, j] == 0:
            x[j] = 0.0


@compiled
def candidate_value(space: Space, work: Work, t: int, begin: int, size: int) -> int:
    """Return the value at the point where `descend` ended, with doubtful pairs lost; very small if infeasible."""
    x, d = work.small[0], space.T.shape[1]
    if not space.fixed:
        x[d] = 0.0
        for i in range(space.T.shape[0]):
            weight = 0.0
            for j in range(d):
                weight += space.T[i, j] * x[j]
            x[d] = max(x[d], abs(weight) * (1.0 + 1e-12))
    for row in range(space.A.shape[0]):
        activity = 0.0
        for j in range(space.A.shape[1]):
            activity += _boxes.side_term(space.A[row, j] * x[j])
        if activity > space.b[row]:
            return -(2**62)
    counts, fewer, at = work.trial_counts, work.trial_fewer, work.at[t]
    _boxes.assign(counts, work.counts[t])
    _boxes.assign(fewer, work.fewer[t])
    value = work.bound[t]
    _values(work, begin, size, space.columns.shape[0], x)
    for q in range(size):
        if work.open[at + q] == 0:
            continue
        if work.value[q] > -work.slack[begin + q]:
            value += _boxes.raise_count(space, counts, fewer, work.positive[begin + q])
    return value


# --- probing


@fast
def _round_bounds_up(work: Work, t: int, begin: int, size: int) -> int:
    """Write upper bounds of the open pairs in single precision; return the number of runs of one member."""
    at = work.at[t]
    upper, lower, is_open = work.upper[at : at + size], work.lower[at : at + size], work.open[at : at + size]
    positive = work.positive[begin : begin + size]
    ceiling, quarter = work.ceiling[:size], work.ceiling_quarter[:size]
    for q in range(size):
        span = upper[q] - lower[q]
        x = np.float32(upper[q] + span * _ROOM)
        x = x if (is_open[q] != 0) & (span > _TINY) else _NOT_LOST
        ceiling[q], quarter[q] = x, x * _QUARTER
    runs = 1
    for q in range(1, size):
        runs += positive[q] != positive[q - 1]
    return runs


@fast
def _mark(work: Work, begin: int, size: int, first: int) -> None:
    """Set bit ``8 s + j`` of `lost` where a pair is lost on part s of coordinate first + j."""
    lost, ceiling, quarter = work.lost[:size], work.ceiling[:size], work.ceiling_quarter[:size]
    for q in range(size):
        lost[q] = np.uint32(0)
    for j in range(8):
        h = work.half[first + j]
        if h == np.float32(0.0):
            continue
        e, bit = work.single[first + j, begin : begin + size], np.uint32(j)
        for q in range(size):
            x, z, y = ceiling[q], quarter[q], h * e[q]
            marks = np.uint32(y < -x) | (np.uint32(y > x) << np.uint32(8))
            marks |= (np.uint32(y < -z) << np.uint32(16)) | (np.uint32(y > z) << np.uint32(24))
            lost[q] |= marks << bit


@compiled
def _add(work: Work, member: int, side: int, first: int, sums: int) -> None:
    for j in range(8):
        work.more[side, first + j, member] += np.int32((sums >> np.uint64(8 * j)) & np.uint64(255))


@compiled
def _count_marks(work: Work, begin: int, size: int, first: int) -> None:
    lost, positive = work.lost[:size], work.positive[begin : begin + size]
    none = np.uint64(0)
    a, b, c, d = none, none, none, none
    i, run = positive[0], 0
    for q in range(size):
        if positive[q] != i or run == _FULL:
            _add(work, i, 0, first, a)
            _add(work, i, 1, first, b)
            _add(work, i, 2, first, c)
            _add(work, i, 3, first, d)
            a, b, c, d = none, none, none, none
            i, run = positive[q], 0
        marks = lost[q]
        a += _BYTES[marks & _BYTE]
        b += _BYTES[(marks >> np.uint32(8)) & _BYTE]
        c += _BYTES[(marks >> np.uint32(16)) & _BYTE]
        d += _BYTES[marks >> np.uint32(24)]
        run += 1
    _add(work, i, 0, first, a)
    _add(work, i, 1, first, b)
    _add(work, i, 2, first, c)
    _add(work, i, 3, first, d)


@fast
def _sum(work: Work, begin: int, end: int, pair_list: int, member: int, j: int) -> None:
    """Count the pairs ``begin .. end - 1`` of a member that are lost on each part of coordinate j."""
    e, h = work.single[j, pair_list + begin : pair_list + end], work.half[j]
    ceiling, quarter = work.ceiling[begin:end], work.ceiling_quarter[begin:end]
    zero, one = np.float32(0.0), np.float32(1.0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    for q in range(end - begin):
        x, z, y = ceiling[q], quarter[q], h * e[q]
        s0 += one if y < -x else zero
        s1 += one if y > x else zero
        s2 += one if y < -z else zero
        s3 += one if y > z else zero
    work.more[0, j, member] += np.int32(s0)
    work.more[1, j, member] += np.int32(s1)
    work.more[2, j, member] += np.int32(s2)
    work.more[3, j, member] += np.int32(s3)


@compiled
def _count_runs(work: Work, begin: int, size: int, d: int) -> None:
    positive, start = work.positive[begin : begin + size], 0
    for q in range(1, size + 1):
        if q < size and positive[q] == positive[start]:
            continue
        for j in range(d):
            if work.half[j] > np.float32(0.0):
                _sum(work, start, q, begin, positive[start], j)
        start = q


@compiled
def _losses(space: Space, work: Work, t: int, d: int, loss: IntArray) -> None:
    """Write what each part loses at least, from the pairs counted, to `loss`."""
    loss[:] = 0
    path, counts = work.path, work.counts[t]
    for level in range(space.table.shape[0]):
        shared = space.counts_at[level] >= 0
        if shared:
            _boxes.level_path(space, work, t, level)
        for i in range(space.start[level], space.start[level + 1]):
            c = counts[i]
            if not shared:
                _boxes.member_path(space, work, level, c, space.most[level])
            for side in range(_PROBES):
                for j in range(d):
                    loss[side, j] += path[c + work.more[side, j, i]] - path[c]


@compiled
def probe(space: Space, work: Work, t: int, begin: int, size: int, required_loss: int) -> tuple[int, int, float]:
    """Cut off the parts of box t that lose the required loss.

    Returns:
        1 if a part was cut off, -1 if nothing is left, else 0; the coordinate to split, -1 if no half loses anything;
        the share of the required loss that its halves lose on average.
    """
    d, loss = space.T.shape[1], work.loss
    work.more[:] = 0
    for j in range(d):
        work.half[j] = np.float32(0.5 * (work.high[t, j] - work.low[t, j]))
    if size >= _LONG * _round_bounds_up(work, t, begin, size):
        _count_runs(work, begin, size, d)
    else:
        for first in range(0, work.half.shape[0], 8):
            _mark(work, begin, size, first)
            _count_marks(work, begin, size, first)
    _losses(space, work, t, d, loss)
    went, best, largest, promise = 0, -1, 0.0, 0.0
    for j in range(d):
        low, high = work.low[t, j], work.high[t, j]
        if high - low <= NARROW:
            continue
        above, below = loss[0, j], loss[1, j]
        if above >= required_loss and below >= required_loss:
            return -1, -1, 1.0
        middle, quarter = 0.5 * (low + high), 0.25 * (high - low) * _CUT_SHARE
        to_low = middle if below >= required_loss else low + (quarter if loss[3, j] >= required_loss else 0.0)
        to_high = middle if above >= required_loss else high - (quarter if loss[2, j] >= required_loss else 0.0)
        if to_low > low or to_high < high:
            _boxes.tighten(space, work, t, begin, size, j, to_low, to_high)
            went = 1
        x, y = float(above) / float(required_loss), float(below) / float(required_loss)
        score = (x + _LOSS_OFFSET) * (y + _LOSS_OFFSET)
        if above + below > 0 and score > largest:
            best, largest, promise = j, score, 0.5 * (x + y)
    return went, best, promise
