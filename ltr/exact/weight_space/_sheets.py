"""Compiled: sheets of the pairs that are open, and of their couples."""

from __future__ import annotations

import numpy as np

from ltr.exact.weight_space._couples import keep_couples
from ltr.exact.weight_space._ends import assign, compact, compiled, ends, flag, settle
from ltr.exact.weight_space._shrink import refresh
from ltr.exact.weight_space.space import UPDATES, Boxes, Space, Work

__all__ = ["enter", "tidy"]

_DENSE = 0.6  # share of open pairs below which a box gets a sheet of its own


@compiled
def enter(space: Space, work: Work, roots: Boxes, root: int) -> None:
    """Put a root box on the empty stack."""
    columns, pairs = space.columns.shape
    for j in range(columns):
        work.low[0, j], work.high[0, j] = roots.low[root, j], roots.high[root, j]
        work.used[0, j] = roots.used[root, j]
        work.point[0, j] = 0.5 * (work.low[0, j] + work.high[0, j])
        assign(work.columns[j, :pairs], space.columns[j])
    assign(work.owner[:pairs], space.owner)
    assign(work.slack[:pairs], space.slack)
    for j in range(space.single.shape[0]):
        assign(work.single[j, :pairs], space.single[j])
    work.open[:pairs] = 1
    couples = space.couples.one.shape[0]
    for j in range(columns):
        assign(work.couples.columns[j, :couples], space.couples.columns[j])
    assign(work.couples.one[:couples], space.couples.one)
    assign(work.couples.other[:couples], space.couples.other)
    assign(work.couples.apart[:couples], space.couples.apart)
    work.couple_begin[0, :] = 0
    work.couple_end[0, :] = couples
    work.couple_count[0] = couples
    work.sheet[0], work.begin[0], work.size[0], work.at[0] = 0, 0, pairs, 0
    work.counts[0, :] = 0
    work.fewer[0, :] = 0
    bound = np.int64(0)
    for level in range(space.table.shape[0]):
        members, slot = space.start[level + 1] - space.start[level], space.slot[level]
        for p in range(members):
            bound += space.worth[space.table[level] + p]
        if slot >= 0:
            work.fewer[0, slot + 1 : slot + space.most[level] + 2] = members
    for j in range(columns - 1):
        bound -= space.price * work.used[0, j]
    work.bound[0] = bound
    ends(work, 0, 0, pairs, columns)
    work.changed[:] = 0
    work.changed_too[:] = 0
    flag(work, 0, pairs, work.changed)
    settle(space, work, 0, 0, pairs, work.changed)


@compiled
def tidy(space: Space, work: Work, t: int) -> None:
    """A sheet of its own for a box with few of its pairs open, and fresh ends after many updates."""
    sheet, at = work.sheet[t], work.at[t]
    size = work.size[sheet]
    alive = 0
    is_open = work.open[at : at + size]
    for q in range(size):
        alive += is_open[q]
    room = work.begin[sheet] + 2 * size + 8 < work.columns.shape[1]
    for k in range(2):
        room &= work.couple_end[sheet, k] + work.couple_count[sheet] <= work.couples.one.shape[0]
    if alive < _DENSE * size and room:
        compact(work, t, space.columns.shape[0])
        place = work.place
        place[:size] = -1
        for k in range(alive):
            place[work.gather[k]] = k
        keep_couples(work, sheet, place)
    if work.updates[t] > UPDATES:
        sheet = work.sheet[t]
        ends(work, t, work.begin[sheet], work.size[sheet], space.columns.shape[0])
        refresh(space, work, t, work.begin[sheet], work.size[sheet])
