"""Compiled: bound tightening, boxes reduced to where something worth more than the cutoff can be."""

from __future__ import annotations

from ltr.exact.weight_space._interval_bounds import compiled, count_decided, interval_bounds, mark_decided, set_interval
from ltr.exact.weight_space.space import LOOSE, UPDATES, FloatArray, Space, Work

__all__ = [
    "mark_used",
    "side_term",
    "tighten",
    "tighten_to_constraints",
    "tighten_to_forced_pairs",
    "tighten_to_hinge_bound",
    "update_decided",
]

_WORTHWHILE = 0.9  # share of a width from which a cap is worth an update
_ROOM = 1e-14  # added to caps, for coordinates up to 1


@compiled
def mark_used(space: Space, work: Work, t: int, j: int) -> None:
    """Note that weight j is not 0 in box t."""
    if work.used[t, j] == 0:
        work.used[t, j] = 1
        work.bound[t] -= space.price


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
        if work.open[at + q] == 0 or work.forced[work.owner[begin + q]] == 0:
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
