"""Compiled: boxes shrunk to where something worth more than the target could be."""

from __future__ import annotations

from ltr.exact.weight_space._ends import compiled, cut, ends, flag, settle
from ltr.exact.weight_space.space import LOOSE, UPDATES, FloatArray, Space, Work

__all__ = [
    "refresh",
    "shrink",
    "shrink_to_constraints",
    "shrink_to_cut",
    "shrink_to_wins",
    "side_term",
    "use",
]

_WORTHWHILE = 0.9  # share of a width from which a cap is worth an update
_ROOM = 1e-14  # added to caps, for coordinates up to 1


@compiled
def use(space: Space, work: Work, t: int, j: int) -> None:
    """Note that weight j is not 0 in box t."""
    if work.used[t, j] == 0:
        work.used[t, j] = 1
        work.bound[t] -= space.price


@compiled
def shrink(space: Space, work: Work, t: int, begin: int, size: int, j: int, low: float, high: float) -> None:
    """Shrink coordinate j of box t, after many updates with fresh ends; its price falls due where 0 is left outside."""
    if work.updates[t] >= UPDATES:
        ends(work, t, begin, size, space.columns.shape[0])
    cut(work, t, begin, size, j, low, high)
    if low > 0.0 or high < 0.0:
        use(space, work, t, j)


@compiled
def shrink_to_wins(space: Space, work: Work, t: int, begin: int, size: int) -> int:
    """Shrink box t to where the members that must win can: 1 where it shrank, -1 where they cannot, else 0."""
    d, at = space.T.shape[1], work.at[t]
    low, high = work.small[3], work.small[4]
    for j in range(d):
        low[j], high[j] = work.low[t, j], work.high[t, j]
    for q in range(size):
        if work.open[at + q] == 0 or work.must[work.owner[begin + q]] == 0:
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
    shrunk = 0
    for j in range(d):
        if high[j] < low[j]:
            return -1
        if high[j] - low[j] < _WORTHWHILE * (work.high[t, j] - work.low[t, j]):
            shrink(space, work, t, begin, size, j, low[j], high[j])
            shrunk = 1
    return shrunk


@compiled
def shrink_to_cut(space: Space, work: Work, t: int, begin: int, size: int, g: FloatArray, room: float) -> bool:
    """Shrink box t to where ``g·x > max g·x - room``; whether it shrank."""
    shrunk = False
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
            shrink(space, work, t, begin, size, j, low, high)
            shrunk = True
    return shrunk


@compiled
def side_term(y: float) -> float:
    """What y = A_rj w_j counts in its side constraint, see `ltr.exact.weight_space.space`; it never falls in y."""
    return y - LOOSE * abs(y)


@compiled
def _least_term(space: Space, work: Work, t: int, row: int, j: int) -> float:
    a = space.A[row, j]
    return side_term(a * (work.low[t, j] if a > 0.0 else work.high[t, j]))


@compiled
def shrink_to_constraints(space: Space, work: Work, t: int, begin: int, size: int) -> bool:
    """Shrink box t to its side constraints; whether some of it satisfies them."""
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
                    shrink(space, work, t, begin, size, j, 0.0, 0.0)
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
                shrink(space, work, t, begin, size, j, low, max(low, min(high, end)))
            else:
                shrink(space, work, t, begin, size, j, min(high, max(low, end)), high)
    return True


@compiled
def refresh(space: Space, work: Work, t: int, begin: int, size: int) -> None:
    flag(work, t, size, work.changed)
    settle(space, work, t, begin, size, work.changed)
