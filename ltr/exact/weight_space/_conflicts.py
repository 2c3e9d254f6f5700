r"""Compiled: what conflicts between open pairs lose at least.

Of two pairs in conflict (`ltr.exact.weight_space.conflicts`) one is lost at every point of the box. With z_q = 1 where
pair q is lost and u_q its unit loss, a point worth more than the cutoff loses

    sum of u_q z_q >= sum over conflicts of y  +  sum of (u_q - sum of y over the conflicts of q) z_q

for all y >= 0 that take no more from a pair than its unit loss, since z_q + z_q' >= 1: a packing of the unit losses
into the conflicts. (The largest packing is the dual of the linear program of the cheapest cover of the conflicts; a
greedy one will do.) What is left of the unit losses goes into the hinge bound.

**Budgets.** Conflicts without a pair of member i lose at least ``packed - touched_i``, so i itself loses less than
``required - packed + touched_i`` at a point worth more than the cutoff. This *budget* takes the place of the required
loss in the unit loss of i, which it raises, as the first pairs lost lose most; and with it the packing.
"""

from __future__ import annotations

import numpy as np

from ltr.exact.weight_space._interval_bounds import compiled, fast
from ltr.exact.weight_space.space import IndexArray, Work

__all__ = ["find_conflicts", "keep_conflicts", "lower_budgets", "pack"]

_BLOCK = 1024  # candidates looked at together, for the cache
_DEAD = np.float32(-3e38)
_DENSE = 0.7  # share of candidates left below which their columns are copied


@fast
def _mark(work: Work, t: int, pair_list: int, begin: int, end: int) -> None:
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
        _mark(work, t, pair_list, begin, min(begin + _BLOCK, number))
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
    """Pack the pair losses in `scale` into the listed conflicts; return what these lose and leave the rest."""
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
        i, m = work.owner[begin + q], work.owner[begin + p]
        touched[i] += y
        touched[m] += y if i != m else 0.0
    return total * (1.0 - 1e-12)


@compiled
def lower_budgets(work: Work, required_loss: int, packed: float) -> None:
    """Lower each member's budget by what the conflicts without its pairs lose, of `packed` in all."""
    for i in range(work.budget.shape[0]):
        others = max(0.0, packed - work.touched[i] * (1.0 + 1e-12))
        work.budget[i] = min(work.budget[i], np.int64((required_loss - others) * (1.0 + 1e-12)) + 1)


@fast
def _gather(work: Work, j: int, first: int, number: int, kept: int, to: int) -> None:
    old, new = work.conflicts.columns[j, first : first + number], work.conflicts.columns[j, to : to + kept]
    take = work.listed[:kept]
    for c in range(kept):
        new[c] = old[np.uint32(take[c])]


@compiled
def keep_conflicts(work: Work, pair_list: int, place: IndexArray) -> None:
    """Conflicting pairs of the pair list after `pair list`, whose pairs have moved to `place` (-1: decided)."""
    conflicts, number = work.conflicts, work.conflict_count[pair_list]
    first, links = work.conflict_begin[pair_list, 0], work.conflict_begin[pair_list, 1]
    one, other = conflicts.one[links : links + number], conflicts.other[links : links + number]
    kept = 0
    for c in range(number):
        work.listed[kept] = c
        kept += (place[np.uint32(one[c])] >= 0) & (place[np.uint32(other[c])] >= 0)
    to, links_to = work.conflict_end[pair_list, 0], work.conflict_end[pair_list, 1]
    if kept < _DENSE * number:
        for j in range(work.low.shape[1]):
            _gather(work, j, first, number, kept, to)
        for k in range(kept):
            c = work.listed[k]
            conflicts.one[links_to + k], conflicts.other[links_to + k] = place[one[c]], place[other[c]]
            conflicts.apart[links_to + k] = conflicts.apart[links + c]
        first, number, to = to, kept, to + kept
    else:  # the same columns, some of them of conflicting pairs that are no more
        for c in range(number):
            q, p = place[one[c]], place[other[c]]
            conflicts.one[links_to + c], conflicts.other[links_to + c] = max(q, 0), max(p, 0)
            conflicts.apart[links_to + c] = conflicts.apart[links + c] if q >= 0 and p >= 0 else _DEAD
    work.conflict_count[pair_list + 1] = number
    work.conflict_begin[pair_list + 1, 0], work.conflict_begin[pair_list + 1, 1] = first, links_to
    work.conflict_end[pair_list + 1, 0], work.conflict_end[pair_list + 1, 1] = to, links_to + number
