r"""Compiled: depth-first search over boxes of weight space, until every box is closed or the allowance is used up.

A box is closed when its bound, from the pairs lost and won on all of it, is not above the target. Else, where many
pairs are open, slices of it that lose enough are cut off (`_slices`); and where few are, or its halves lose a good part
of what is needed, or some members must win all their pairs, the conflicts of `_couples` and the linear program of
`_hinge` may show that nothing is left. What is left is split where both halves lose most; where slices do not tell,
along the coordinate with the largest product of ``width_j * sum over open pairs of |e_j| / (upper - lower)``, which
says how far a split narrows the pairs, and (a + 1)(b + 1) for the a and b pairs that its halves lose at once. Where
zeros count, a coordinate that may be 0 is split in three: its negative part, 0, and its positive part; the parts are
taken closed, which can only raise their bounds, and are known to use the weight.

Source: the bound is that of `ltr.exact.levels`; branch and bound over boxes is Land & Doig (1960) in this space.
"""

from __future__ import annotations

import numpy as np

from ltr.exact.weight_space._couples import find_conflicts, lower_budgets, pack
from ltr.exact.weight_space._ends import (
    assign,
    compiled,
    copy_entry,
    cut,
    norm_interval,
    settle,
    split,
)
from ltr.exact.weight_space._hinge import (
    CLOSED,
    GAVE_UP,
    candidate_value,
    costs,
    decided_by_half,
    descend,
    hinge,
    prices,
    scores,
    slopes,
)
from ltr.exact.weight_space._sheets import enter, tidy
from ltr.exact.weight_space._shrink import (
    refresh,
    shrink_to_constraints,
    shrink_to_cut,
    shrink_to_wins,
    side_term,
    use,
)
from ltr.exact.weight_space._slices import cut_slices
from ltr.exact.weight_space.space import NARROW, Boxes, FloatArray, IntArray, Space, Work

__all__ = ["search"]

_ROUNDS = 4  # of shrinking a box
_WORTH_A_LOOK = 0.3  # share of the best score from which a split is tried out
_MANY = 256  # pairs of a sheet from which slices are worth their time
_PROMISING = 0.3  # share of the need that the halves lose from which conflicts and hinges are tried
_PACKINGS = 2  # of prices into conflicts once more, with the budgets that the last has left
_WORTH_A_PACKING = 0.3  # share of what is needed that conflicts must cost for that
_CLEARLY = 1.1  # growth from which another one follows
_TRIALS, _SMALL_TRIALS = 63, 7  # boxes between two candidates, powers of two less 1
_SMALL = 1e-3  # width of a box that more candidates are taken from
_FIXED = 128  # pairs that take as long as what is done for every box
_NEVER = -(2**62)


@compiled
def _scale_margin(space: Space, work: Work, t: int, begin: int, size: int) -> None:
    """Bring the margin's interval up to date with the box."""
    d = space.T.shape[1]
    low, high = norm_interval(space, work.low[t], work.high[t])
    width = work.high[t, d] - work.low[t, d]
    if high >= low and high - low < 0.95 * width:
        cut(work, t, begin, size, d, low, high)
        refresh(space, work, t, begin, size)


@compiled
def _conflicts_cost(space: Space, work: Work, t: int, begin: int, size: int, need: int, short: float) -> float:
    """What the conflicts of box t cost, up to `short`; leaves what prices there are beyond that in `scale`."""
    found = find_conflicts(work, t)
    costs(work, t, begin, size)
    packed = pack(work, t, begin, found)
    for _ in range(_PACKINGS):
        if packed >= short or packed < _WORTH_A_PACKING * short:
            break
        before = packed
        lower_budgets(work, need, packed)
        prices(space, work, t, begin, size, need)
        costs(work, t, begin, size)
        packed = pack(work, t, begin, found)
        if packed < _CLEARLY * before:
            break
    return packed


@compiled
def _reduce(space: Space, work: Work, t: int, begin: int, size: int, target: int, tally: IntArray) -> tuple[int, int]:
    """Close box t or shrink it: `CLOSED`, `GAVE_UP` where the hinges cannot close it, or `OPEN`; where to split it."""
    outcome, coordinate, promise = GAVE_UP, -1, 1.0
    for left in range(_ROUNDS - 1, -1, -1):
        if space.stop[0] != 0:
            break
        if work.bound[t] <= target:
            return CLOSED, -1
        need = work.bound[t] - target
        if size >= _MANY:
            went, coordinate, promise = cut_slices(space, work, t, begin, size, need)
            if went < 0:
                return CLOSED, -1
            if went > 0:
                refresh(space, work, t, begin, size)
                continue
        work.budget[:] = need
        musts = prices(space, work, t, begin, size, need)
        if musts == 0 and promise < _PROMISING:
            break
        if musts > 0 and left > 0:  # at last conflicts are looked at, however much that still narrows the box
            shrunk = shrink_to_wins(space, work, t, begin, size)
            if shrunk < 0:
                return CLOSED, -1
            if shrunk > 0:
                refresh(space, work, t, begin, size)
                continue
        short = float(need) * (1.0 + 1e-15)
        short -= _conflicts_cost(space, work, t, begin, size, need, short)
        if short <= 0.0:
            return CLOSED, -1
        slopes(work, t, size)
        tally[1] += 1
        best = work.small[5]
        outcome, phi = hinge(space, work, t, begin, size, short, best)
        if outcome == CLOSED:
            tally[2] += 1
            return CLOSED, -1
        if phi == -np.inf:
            break
        # what is worth more satisfies g·x > -short, and max g·x is at most -phi
        room = (short - phi) * (1.0 + 1e-12)
        if not shrink_to_cut(space, work, t, begin, size, best, room):
            break
        refresh(space, work, t, begin, size)
    return CLOSED if work.bound[t] <= target else outcome, coordinate


@compiled
def _split_side(space: Space, work: Work, t: int) -> int:
    """The coordinate with the largest part in a side constraint that some of box t violates, -1 where none does."""
    best, largest = -1, 0.0
    for row in range(space.A.shape[0]):
        most = 0.0
        for j in range(space.A.shape[1]):
            a = space.A[row, j]
            most += side_term(a * (work.high[t, j] if a > 0.0 else work.low[t, j]))
        if most <= space.b[row]:
            continue
        for j in range(space.A.shape[1]):
            width = work.high[t, j] - work.low[t, j]
            if width > NARROW and abs(space.A[row, j]) * width > largest:
                best, largest = j, abs(space.A[row, j]) * width
    return best


@compiled
def _branch_on(space: Space, work: Work, t: int, begin: int, size: int) -> int:
    """The coordinate to split where slices do not tell, -1 where no width is left."""
    d = space.T.shape[1]
    score = work.small[6]
    scores(work, t, begin, size, d, score)
    widest = 0.0
    for j in range(d):
        width = work.high[t, j] - work.low[t, j]
        score[j] *= width if width > NARROW else 0.0
        widest = max(widest, score[j])
    best, largest = -1, 0.0
    for j in range(d):
        if score[j] > _WORTH_A_LOOK * widest:
            score[j] *= decided_by_half(work, t, begin, size, j)
            if score[j] > largest:
                best, largest = j, score[j]
    if best < 0 and space.sparse:
        for j in range(d):
            if work.used[t, j] == 0 and work.high[t, j] > work.low[t, j]:
                return j
    return best if best >= 0 else _split_side(space, work, t)


@compiled
def _halve(space: Space, work: Work, t: int, begin: int, size: int, j: int) -> int:
    """Replace box t by its halves along j; returns how many boxes are on the stack."""
    child = t + 1
    copy_entry(work, t, child, size, False)
    split(work, t, child, begin, size, j)
    settle(space, work, child, begin, size, work.changed_too)
    settle(space, work, t, begin, size, work.changed)
    return child + 1


@compiled
def _part(space: Space, work: Work, t: int, begin: int, size: int, j: int) -> int:
    """Replace box t by its parts with weight j above, below and equal to 0; returns how many boxes are on the stack."""
    top = t + 1
    if work.high[t, j] > 0.0:
        copy_entry(work, t, top, size, True)
        use(space, work, top, j)
        cut(work, top, begin, size, j, max(work.low[t, j], 0.0), work.high[t, j])
        refresh(space, work, top, begin, size)
        top += 1
    if work.low[t, j] < 0.0:
        copy_entry(work, t, top, size, True)
        use(space, work, top, j)
        cut(work, top, begin, size, j, work.low[t, j], min(work.high[t, j], 0.0))
        refresh(space, work, top, begin, size)
        top += 1
    cut(work, t, begin, size, j, 0.0, 0.0)
    refresh(space, work, t, begin, size)
    return top


@compiled
def _hand_back(work: Work, entries: int, left: Boxes, row: int) -> int:
    for t in range(entries):
        assign(left.low[row], work.low[t])
        assign(left.high[row], work.high[t])
        assign(left.used[row], work.used[t])
        left.bound[row] = work.bound[t]
        row += 1
    return row


@compiled
def search(
    space: Space,
    work: Work,
    roots: Boxes,
    target: int,
    allowance: int,
    left: Boxes,
    narrow: Boxes,
    best: FloatArray,
    tally: IntArray,
) -> tuple[int, int, int, int]:
    """Search root boxes for what is worth more than the target.

    Args:
        space: the problem.
        work: memory of this thread.
        roots: boxes to search.
        target: bound at which a box is closed, an integer in the space's unit.
        allowance: work, in pairs of 8 coordinates looked at, before the boxes that are left are handed back.
        left: receives them, with room for the stack's depth and the roots.
        narrow: receives boxes too narrow to split; once it is full, the boxes that are left are handed back too.
        best: receives the coordinates of the best candidate.
        tally: boxes, hinge programs, boxes closed by them, work; added to.

    Returns:
        boxes handed back; the largest target used (a candidate raises it to its value); the value of the best
        candidate; boxes too narrow to split.
    """
    found = _NEVER
    handed, narrowed, spent, boxes, looks = 0, 0, 0, 0, 0
    deepest, columns = work.low.shape[0] - 4, space.columns.shape[0]
    for root in range(roots.bound.shape[0]):
        if spent >= allowance or space.stop[0] != 0:
            assign(left.low[handed], roots.low[root])
            assign(left.high[handed], roots.high[root])
            assign(left.used[handed], roots.used[root])
            left.bound[handed] = roots.bound[root]
            handed += 1
            continue
        enter(space, work, roots, root)
        spent += space.owner.shape[0] * columns // 2
        boxes += 1
        entries = 1
        while entries > 0:
            t = entries - 1
            if work.bound[t] <= target:
                entries -= 1
                continue
            tidy(space, work, t)
            sheet = work.sheet[t]
            begin, size = work.begin[sheet], work.size[sheet]
            room = work.at[t] + 4 * size + 8 < work.upper.shape[0]
            if space.stop[0] != 0:
                spent = max(spent, allowance)
            if spent >= allowance or t >= deepest or not room:
                handed = _hand_back(work, entries, left, handed)
                spent = max(spent, allowance)  # `left` has room for one stack
                break
            spent += (size + _FIXED) * columns // 8
            if not space.fixed:
                _scale_margin(space, work, t, begin, size)
            if space.A.shape[0] > 0 or space.support < space.T.shape[1]:
                if not shrink_to_constraints(space, work, t, begin, size):
                    entries -= 1
                    continue
                refresh(space, work, t, begin, size)
            outcome, j = _reduce(space, work, t, begin, size, target, tally)
            if outcome == CLOSED:
                entries -= 1
                continue
            if space.stop[0] != 0:
                continue
            bound = work.bound[t]
            if j < 0:
                j = _branch_on(space, work, t, begin, size)
            looks += 1
            small = j >= 0 and work.high[t, j] - work.low[t, j] < _SMALL
            if j < 0 or (looks & _TRIALS) == 0 or (small and (looks & _SMALL_TRIALS) == 0):
                costs(work, t, begin, size)
                slopes(work, t, size)
                descend(space, work, t, begin, size)
                value = candidate_value(space, work, t, begin, size)
                if value > found:
                    found = value
                    assign(best, work.small[0])
                    target = max(target, value)
                if bound <= target:
                    entries -= 1
                    continue
            if j < 0:
                assign(narrow.low[narrowed], work.low[t])
                assign(narrow.high[narrowed], work.high[t])
                assign(narrow.used[narrowed], work.used[t])
                narrow.bound[narrowed] = bound
                narrowed += 1
                entries -= 1
                if narrowed == narrow.bound.shape[0]:
                    spent = max(spent, allowance)
                continue
            if space.sparse and work.used[t, j] == 0:
                entries = _part(space, work, t, begin, size, j)
            else:
                entries = _halve(space, work, t, begin, size, j)
            boxes += entries - t
    tally[0] += boxes
    tally[3] += spent
    return handed, target, found, narrowed
