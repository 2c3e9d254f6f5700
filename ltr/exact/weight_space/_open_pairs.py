"""Compiled: lists of the pairs that are open in a box, and of the conflicts among them."""

from __future__ import annotations

import numpy as np

from ltr.exact.weight_space._conflicts import keep_conflicts
from ltr.exact.weight_space._interval_bounds import (
    assign,
    compiled,
    copy_open_pairs,
    count_decided,
    interval_bounds,
    mark_decided,
)
from ltr.exact.weight_space._tightening import update_decided
from ltr.exact.weight_space.space import UPDATES, Boxes, Space, Work

__all__ = ["compact_open_pairs", "push_root"]

_DENSE = 0.6  # share of open pairs below which a box gets a list of its own


@compiled
def push_root(space: Space, work: Work, roots: Boxes, root: int) -> None:
    """Put a box to begin with on the empty stack."""
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
        members, slot = space.start[level + 1] - space.start[level], space.slot[level]
        for p in range(members):
            bound += space.contribution[space.table[level] + p]
        if slot >= 0:
            work.fewer[0, slot + 1 : slot + space.most[level] + 2] = members
    for j in range(columns - 1):
        bound -= space.price * work.used[0, j]
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
