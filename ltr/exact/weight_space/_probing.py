r"""Compiled: probing, which cuts off halves and quarters of a box that lose too much, and tells where to split it.

A *part* is an end of one coordinate: its upper or lower half, its upper or lower quarter. Let x_i be the open pairs of
member i that are lost on all of a part. As in `_hinge_bound`, members raised one after the other lose at least

    sum over i of  loss_i(x_i),      loss_i(x) = sum over m = c_i .. c_i + x - 1 of  step[fewer[m + 1] - 1 + m],

so a part that loses the box's bound minus the cutoff, or more, holds nothing worth more than the cutoff and is cut
off. Where neither half of any coordinate goes, the box is best split where both halves lose much.

**Counting.** A pair with upper interval bound u over the box has the upper bound ``u - h |e_j|`` in the half of
coordinate j that is the worse one for it, h half the width, and ``u - 1.5 h |e_j|`` in the worse quarter. The sign of
e_j tells which half that is. So there are one product for each pair and coordinate, and four comparisons, in single
precision. Few pairs of a member in a row are counted by one byte for each coordinate in a word, many by a sum for each
coordinate.

**Rounding.** u is between 0 and ``2 R``, R half the pair's range over the box, and ``h |e_j| <= R``. Rounding u, h,
e_j, their product and u / 1.5 to single precision errs by at most ``12 * 2^-24 R``; `_ROOM` times the range
``2 R`` is added to u. A power of two brings e to a size of about 1 first, and pairs whose range is too small for single
precision are taken as not lost. The error of rounding the middle of a coordinate is in the slack of u.
"""

from __future__ import annotations

import numpy as np

from ltr.exact.weight_space._interval_bounds import compiled, fast, level_path, member_path
from ltr.exact.weight_space._tightening import tighten
from ltr.exact.weight_space.space import NARROW, IntArray, Space, Work

__all__ = ["probe"]

_PROBES = 4  # upper half, lower half, upper quarter, lower quarter
_ROOM = 2.0**-20
_TINY, _NOT_LOST = 1e-30, np.float32(1e30)
_QUARTER = np.float32(1 / 1.5)  # there are 1.5 half widths from the better end of a coordinate to the worse quarter
_LONG = 64  # pairs a member has in a row, on average, from which sums are faster
_EVEN = 0.02  # share of the required loss added to what each half loses: one that loses nothing may do
_JUST = 1.0 - 1e-6  # of a quarter, which single precision knows no better
# byte j of the word is bit j of the index
_BYTES = np.array([sum(((bits >> j) & 1) << (8 * j) for j in range(8)) for bits in range(256)], np.uint64)
_BYTE, _FULL = np.uint32(255), 255


@fast
def _roofs(work: Work, t: int, begin: int, size: int) -> int:
    """Write upper bounds of the open pairs in single precision; return the number of runs of one member."""
    at = work.at[t]
    upper, lower, is_open = work.upper[at : at + size], work.lower[at : at + size], work.open[at : at + size]
    owner = work.owner[begin : begin + size]
    roof, quarter = work.roof[:size], work.roof_quarter[:size]
    for q in range(size):
        span = upper[q] - lower[q]
        x = np.float32(upper[q] + span * _ROOM)
        x = x if (is_open[q] != 0) & (span > _TINY) else _NOT_LOST
        roof[q], quarter[q] = x, x * _QUARTER
    runs = 1
    for q in range(1, size):
        runs += owner[q] != owner[q - 1]
    return runs


@fast
def _mark(work: Work, begin: int, size: int, first: int) -> None:
    """Set bit ``8 s + j`` of `lost` where a pair is lost on part s of coordinate first + j."""
    lost, roof, quarter = work.lost[:size], work.roof[:size], work.roof_quarter[:size]
    for q in range(size):
        lost[q] = np.uint32(0)
    for j in range(8):
        h = work.half[first + j]
        if h == np.float32(0.0):
            continue
        e, bit = work.single[first + j, begin : begin + size], np.uint32(j)
        for q in range(size):
            x, z, y = roof[q], quarter[q], h * e[q]
            marks = np.uint32(y < -x) | (np.uint32(y > x) << np.uint32(8))
            marks |= (np.uint32(y < -z) << np.uint32(16)) | (np.uint32(y > z) << np.uint32(24))
            lost[q] |= marks << bit


@compiled
def _add(work: Work, member: int, side: int, first: int, sums: int) -> None:
    for j in range(8):
        work.more[side, first + j, member] += np.int32((sums >> np.uint64(8 * j)) & np.uint64(255))


@compiled
def _count_marks(work: Work, begin: int, size: int, first: int) -> None:
    lost, owner = work.lost[:size], work.owner[begin : begin + size]
    none = np.uint64(0)
    a, b, c, d = none, none, none, none
    i, run = owner[0], 0
    for q in range(size):
        if owner[q] != i or run == _FULL:
            _add(work, i, 0, first, a)
            _add(work, i, 1, first, b)
            _add(work, i, 2, first, c)
            _add(work, i, 3, first, d)
            a, b, c, d = none, none, none, none
            i, run = owner[q], 0
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
    roof, quarter = work.roof[begin:end], work.roof_quarter[begin:end]
    zero, one = np.float32(0.0), np.float32(1.0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    for q in range(end - begin):
        x, z, y = roof[q], quarter[q], h * e[q]
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
    owner, start = work.owner[begin : begin + size], 0
    for q in range(1, size + 1):
        if q < size and owner[q] == owner[start]:
            continue
        for j in range(d):
            if work.half[j] > np.float32(0.0):
                _sum(work, start, q, begin, owner[start], j)
        start = q


@compiled
def _losses(space: Space, work: Work, t: int, d: int, loss: IntArray) -> None:
    """Write what each part loses at least, from the pairs counted, to `loss`."""
    loss[:] = 0
    path, counts = work.path, work.counts[t]
    for level in range(space.table.shape[0]):
        shared = space.slot[level] >= 0
        if shared:
            level_path(space, work, t, level)
        for i in range(space.start[level], space.start[level + 1]):
            c = counts[i]
            if not shared:
                member_path(space, work, level, c, space.most[level])
            for side in range(_PROBES):
                for j in range(d):
                    loss[side, j] += path[c + work.more[side, j, i]] - path[c]


@compiled
def probe(space: Space, work: Work, t: int, begin: int, size: int, required_loss: int) -> tuple[int, int, float]:
    """Cut off the parts of box t that lose the required loss.

    Returns:
        1 where a part went, -1 where nothing is left, else 0; the coordinate to split, -1 where no half loses
        anything; the share of the required loss that its halves lose on average.
    """
    d, loss = space.T.shape[1], work.loss
    work.more[:] = 0
    for j in range(d):
        work.half[j] = np.float32(0.5 * (work.high[t, j] - work.low[t, j]))
    if size >= _LONG * _roofs(work, t, begin, size):
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
        middle, quarter = 0.5 * (low + high), 0.25 * (high - low) * _JUST
        to_low = middle if below >= required_loss else low + (quarter if loss[3, j] >= required_loss else 0.0)
        to_high = middle if above >= required_loss else high - (quarter if loss[2, j] >= required_loss else 0.0)
        if to_low > low or to_high < high:
            tighten(space, work, t, begin, size, j, to_low, to_high)
            went = 1
        x, y = float(above) / float(required_loss), float(below) / float(required_loss)
        score = (x + _EVEN) * (y + _EVEN)
        if above + below > 0 and score > largest:
            best, largest, promise = j, score, 0.5 * (x + y)
    return went, best, promise
