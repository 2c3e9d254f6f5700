r"""Compiled: what conflicts between open pairs cost at least.

Of a couple in conflict (`ltr.exact.weight_space.couples`) one pair is lost at every point of the box. With z_q = 1
where pair q is lost, a point worth more than the target loses

    sum of price_q z_q >= sum over couples of y  +  sum of (price_q - sum of y over the couples of q) z_q

for all y >= 0 that take no more from a pair than its price, since z_q + z_q' >= 1: a packing of the prices into the
couples. (The largest packing is the dual of the linear program of the cheapest cover of the conflicts; a greedy one
will do.) What is left of the prices goes into the hinges.

**Budgets.** Couples without a pair of member i cost at least ``packed - touched_i``, so i itself loses less than
``need - packed + touched_i`` at a point worth more than the target. This *budget* takes the place of `need` in the
price of i, which rises by it, as the first pairs lost cost most; and with it the packing.
"""

from __future__ import annotations

import numpy as np

from ltr.exact.weight_space._ends import compiled, fast
from ltr.exact.weight_space.space import IndexArray, Work

__all__ = ["find_conflicts", "keep_couples", "lower_budgets", "pack"]

_BLOCK = 1024  # couples that are looked at together, for the cache
_DEAD = np.float32(-3e38)
_DENSE = 0.7  # share of couples below which their columns are copied


@fast
def _mark(work: Work, t: int, sheet: int, begin: int, end: int) -> None:
    """Mark the conflicts among some couples of box t."""
    first, links, number = work.couple_begin[sheet, 0], work.couple_begin[sheet, 1], end - begin
    reach, conflict = work.reach[:number], work.conflict[begin:end]
    apart = work.couples.apart[links + begin : links + end]
    for c in range(number):
        reach[c] = np.float32(0.0)
    for j in range(work.low.shape[1]):
        middle = np.float32(0.5 * (work.low[t, j] + work.high[t, j]))
        half = np.float32(0.5 * (work.high[t, j] - work.low[t, j]))
        f = work.couples.columns[j, first + begin : first + end]
        for c in range(number):
            reach[c] += middle * f[c] + half * abs(f[c])
    for c in range(number):
        conflict[c] = np.uint8(reach[c] < apart[c])


@compiled
def find_conflicts(work: Work, t: int) -> int:
    """List the couples of box t that are in conflict; returns how many."""
    sheet = work.sheet[t]
    number = work.couple_count[sheet]
    begin = 0
    while begin < number:
        _mark(work, t, sheet, begin, min(begin + _BLOCK, number))
        begin += _BLOCK
    work.conflict[number : number + 8] = 0
    words, found = work.conflict.view(np.uint64), 0
    for word in range((number + 7) >> 3):
        if words[word] != 0:
            for c in range(8 * word, 8 * word + 8):
                work.listed[found] = c
                found += work.conflict[c]
    return found


@compiled
def pack(work: Work, t: int, begin: int, found: int) -> float:
    """Pack the prices in `scale` into the conflicts listed: what they cost; leaves the rest in `scale`."""
    links = work.couple_begin[work.sheet[t], 1]
    left, touched, total = work.scale, work.touched, 0.0
    touched[:] = 0.0
    for k in range(found):
        c = links + work.listed[k]
        q, p = work.couples.one[c], work.couples.other[c]
        y = max(min(left[q], left[p]), 0.0)
        total += y
        left[q] -= y
        left[p] -= y
        i, m = work.owner[begin + q], work.owner[begin + p]
        touched[i] += y
        touched[m] += y if i != m else 0.0
    return total * (1.0 - 1e-12)


@compiled
def lower_budgets(work: Work, need: int, packed: float) -> None:
    """What each member may lose at most, the couples that are not its own having cost `packed`."""
    for i in range(work.budget.shape[0]):
        others = max(0.0, packed - work.touched[i] * (1.0 + 1e-12))
        work.budget[i] = min(work.budget[i], np.int64((need - others) * (1.0 + 1e-12)) + 1)


@fast
def _gather(work: Work, j: int, first: int, number: int, kept: int, to: int) -> None:
    old, new = work.couples.columns[j, first : first + number], work.couples.columns[j, to : to + kept]
    take = work.listed[:kept]
    for c in range(kept):
        new[c] = old[np.uint32(take[c])]


@compiled
def keep_couples(work: Work, sheet: int, place: IndexArray) -> None:
    """Couples of the sheet after `sheet`, whose pairs have moved to `place` (-1: decided)."""
    couples, number = work.couples, work.couple_count[sheet]
    first, links = work.couple_begin[sheet, 0], work.couple_begin[sheet, 1]
    one, other = couples.one[links : links + number], couples.other[links : links + number]
    kept = 0
    for c in range(number):
        work.listed[kept] = c
        kept += (place[np.uint32(one[c])] >= 0) & (place[np.uint32(other[c])] >= 0)
    to, links_to = work.couple_end[sheet, 0], work.couple_end[sheet, 1]
    if kept < _DENSE * number:
        for j in range(work.low.shape[1]):
            _gather(work, j, first, number, kept, to)
        for k in range(kept):
            c = work.listed[k]
            couples.one[links_to + k], couples.other[links_to + k] = place[one[c]], place[other[c]]
            couples.apart[links_to + k] = couples.apart[links + c]
        first, number, to = to, kept, to + kept
    else:  # the same columns, some of them of couples that are no more
        for c in range(number):
            q, p = place[one[c]], place[other[c]]
            couples.one[links_to + c], couples.other[links_to + c] = max(q, 0), max(p, 0)
            couples.apart[links_to + c] = couples.apart[links + c] if q >= 0 and p >= 0 else _DEAD
    work.couple_count[sheet + 1] = number
    work.couple_begin[sheet + 1, 0], work.couple_begin[sheet + 1, 1] = first, links_to
    work.couple_end[sheet + 1, 0], work.couple_end[sheet + 1, 1] = to, links_to + number
