r"""Compiled: the search of one thread, depth first over boxes, until every box is closed or the allowance is used up.

`search` takes a box and
  1. *prunes* it where its bound, from the pairs won and lost on all of it, is at most the cutoff;
  2. *tightens* it: to the side constraints, to where its forced pairs can be won (`_boxes`), and by halves and
     quarters that lose too much (`_bounds`);
  3. *bounds* it: conflicts between open pairs and the hinge bound may close it (`_bounds`);
  4. now and then evaluates a *candidate* in it;
  5. *branches*: along the coordinate both halves of which lose most. Where probing does not tell, it is the one with
     the largest product of ``width_j * sum over open pairs of |e_j| / (upper - lower)``, which says how much a split
     narrows the pairs, and (a + 1)(b + 1) for the a and b pairs that its halves lose at once. Where zeros count, a
     coordinate that may be 0 is split into its negative part, 0 and its positive part; the parts are closed intervals,
     which can only raise their bounds, and are known to use the weight.

Source: the bound is that of `ltr.exact.levels`; branch and bound over boxes is Land & Doig (1960) in this space.
"""

from __future__ import annotations

import numpy as np

from ltr.exact.weight_space._bounds import (
    CLOSED,
    GAVE_UP,
    branching_scores,
    candidate_value,
    decided_by_half,
    descend,
    find_conflicts,
    hinge_bound,
    hinge_slopes,
    lower_budgets,
    pack,
    pair_losses,
    probe,
    unit_losses,
)
from ltr.exact.weight_space._boxes import (
    assign,
    compact_open_pairs,
    compiled,
    copy_entry,
    count_decided,
    mark_used,
    norm_interval,
    push_root,
    set_interval,
    side_term,
    split,
    tighten_to_constraints,
    tighten_to_forced_pairs,
    tighten_to_hinge_bound,
    update_decided,
)
from ltr.exact.weight_space.space import NARROW, Boxes, FloatArray, IntArray, Space, Work

_ROUNDS = 4  # of tightening a box
_WORTH_A_LOOK = 0.3  # share of the best score from which a split is tried out
_MANY = 256  # pairs in a list from which probing is worth its time
_PROMISING = 0.3  # share of the required loss that halves lose from which conflicts and hinge bounds are tried
_PACKINGS = 2  # of prices into conflicts once more, with the budgets that the last has left
_WORTH_A_PACKING = 0.3  # share of the required loss that conflicts must take for another packing
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
        set_interval(work, t, begin, size, d, low, high)
        update_decided(space, work, t, begin, size)


@compiled
def _conflicts_loss(space: Space, work: Work, t: int, begin: int, size: int, required_loss: int, short: float) -> float:
    """Return what the conflicts of box t lose, up to `short`; what is left of the pair losses stays in `scale`."""
    found = find_conflicts(work, t)
    pair_losses(work, t, begin, size)
    packed = pack(work, t, begin, found)
    for _ in range(_PACKINGS):
        if packed >= short or packed < _WORTH_A_PACKING * short:
            break
        before = packed
        lower_budgets(work, required_loss, packed)
        unit_losses(space, work, t, begin, size, required_loss)
        pair_losses(work, t, begin, size)
        packed = pack(work, t, begin, found)
        if packed < _CLEARLY * before:
            break
    return packed


@compiled
def _reduce(space: Space, work: Work, t: int, begin: int, size: int, cutoff: int, tally: IntArray) -> tuple[int, int]:
    """Close or tighten box t; return `CLOSED`, `OPEN` or `GAVE_UP` (no hinge bound closes it), and where to split."""
    outcome, coordinate, promise = GAVE_UP, -1, 1.0
    for left in range(_ROUNDS - 1, -1, -1):
        if space.stop[0] != 0:
            break
        if work.bound[t] <= cutoff:
            return CLOSED, -1
        required_loss = work.bound[t] - cutoff
        if size >= _MANY:
            went, coordinate, promise = probe(space, work, t, begin, size, required_loss)
            if went < 0:
                return CLOSED, -1
            if went > 0:
                update_decided(space, work, t, begin, size)
                continue
        work.budget[:] = required_loss
        forced = unit_losses(space, work, t, begin, size, required_loss)
        if forced == 0 and promise < _PROMISING:
            break
        if forced > 0 and left > 0:  # at last conflicts are looked at, however much that still narrows the box
            tightened = tighten_to_forced_pairs(space, work, t, begin, size)
            if tightened < 0:
                return CLOSED, -1
            if tightened > 0:
                update_decided(space, work, t, begin, size)
                continue
        short = float(required_loss) * (1.0 + 1e-15)
        short -= _conflicts_loss(space, work, t, begin, size, required_loss, short)
        if short <= 0.0:
            return CLOSED, -1
        hinge_slopes(work, t, size)
        tally[1] += 1
        best = work.small[5]
        outcome, phi = hinge_bound(space, work, t, begin, size, short, best)
        if outcome == CLOSED:
            tally[2] += 1
            return CLOSED, -1
        if phi == -np.inf:
            break
        # what is worth more satisfies g·x > -short, and max g·x is at most -phi
        room = (short - phi) * (1.0 + 1e-12)
        if not tighten_to_hinge_bound(space, work, t, begin, size, best, room):
            break
        update_decided(space, work, t, begin, size)
    return CLOSED if work.bound[t] <= cutoff else outcome, coordinate


@compiled
def _split_side(space: Space, work: Work, t: int) -> int:
    """Return the coordinate with the largest part in a side constraint that some of box t violates, or -1."""
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
    """Return the coordinate to split where probing does not tell, -1 where no width is left."""
    d = space.T.shape[1]
    score = work.small[6]
    branching_scores(work, t, begin, size, d, score)
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
    """Replace box t by its halves along j; return how many boxes are on the stack."""
    child = t + 1
    copy_entry(work, t, child, size, False)
    split(work, t, child, begin, size, j)
    count_decided(space, work, child, begin, size, work.changed_too)
    count_decided(space, work, t, begin, size, work.changed)
    return child + 1


@compiled
def _part(space: Space, work: Work, t: int, begin: int, size: int, j: int) -> int:
    """Replace box t by its parts with weight j above, below and equal to 0; return how many boxes are on the stack."""
    top = t + 1
    if work.high[t, j] > 0.0:
        copy_entry(work, t, top, size, True)
        mark_used(space, work, top, j)
        set_interval(work, top, begin, size, j, max(work.low[t, j], 0.0), work.high[t, j])
        update_decided(space, work, top, begin, size)
        top += 1
    if work.low[t, j] < 0.0:
        copy_entry(work, t, top, size, True)
        mark_used(space, work, top, j)
        set_interval(work, top, begin, size, j, work.low[t, j], min(work.high[t, j], 0.0))
        update_decided(space, work, top, begin, size)
        top += 1
    set_interval(work, t, begin, size, j, 0.0, 0.0)
    update_decided(space, work, t, begin, size)
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
    cutoff: int,
    allowance: int,
    left: Boxes,
    narrow: Boxes,
    best: FloatArray,
    tally: IntArray,
) -> tuple[int, int, int, int]:
    """Search boxes for weights that are worth more than the cutoff.

    Args:
        space: the problem.
        work: memory of this thread.
        roots: boxes to search.
        cutoff: bound at which a box is closed, an integer in the space's unit.
        allowance: work, in pairs of 8 coordinates looked at, before the boxes that are left are handed back.
        left: receives them, with room for the stack's depth and the roots.
        narrow: receives boxes too narrow to split; once it is full, the boxes that are left are handed back too.
        best: receives the coordinates of the best candidate.
        tally: counts of boxes, hinge bounds, boxes closed by these, and work; added to.

    Returns:
        number of boxes handed back; the largest cutoff used (a candidate raises it to its value); the value of the
        best candidate; number of boxes too narrow to split.
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
        push_root(space, work, roots, root)
        spent += space.owner.shape[0] * columns // 2
        boxes += 1
        entries = 1
        while entries > 0:
            t = entries - 1
            if work.bound[t] <= cutoff:
                entries -= 1
                continue
            compact_open_pairs(space, work, t)
            pair_list = work.pair_list[t]
            begin, size = work.begin[pair_list], work.size[pair_list]
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
                if not tighten_to_constraints(space, work, t, begin, size):
                    entries -= 1
                    continue
                update_decided(space, work, t, begin, size)
            outcome, j = _reduce(space, work, t, begin, size, cutoff, tally)
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
                pair_losses(work, t, begin, size)
                hinge_slopes(work, t, size)
                descend(space, work, t, begin, size)
                value = candidate_value(space, work, t, begin, size)
                if value > found:
                    found = value
                    assign(best, work.small[0])
                    cutoff = max(cutoff, value)
                if bound <= cutoff:
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
    return handed, cutoff, found, narrowed
