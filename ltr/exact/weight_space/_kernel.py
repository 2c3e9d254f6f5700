r"""Compiled: the search of one thread, depth first over boxes, until every box is closed or the allowance is used up.

`search` takes a box and
  1. *prunes* it where its bound, from the pairs won and lost on all of it, is at most the cutoff;
  2. *tightens* it: to the side constraints, to where its forced pairs can be won (`_boxes`), and by halves and
     quarters that lose too much (`_bounds`);
  3. *bounds* it: conflicts between open pairs and the hinge bound may close it (`_bounds`);
  4. now and then evaluates a *candidate* in it;
  5. *branches*: along the coordinate both halves of which lose most. Where probing does not decide, it is the one with
     the largest product of ``width_j * sum over open pairs of |e_j| / (upper - lower)``, which measures how much a
     split narrows the pairs, and (a + 1)(b + 1) for the a and b pairs that its halves lose at once. Where zeros count,
     a coordinate that may be 0 is split into its negative part, 0 and its positive part; the parts are closed
     intervals, which can only raise their bounds, and are known to use the weight.

Source: the bound is that of `ltr.exact.levels`; branch and bound over boxes is Land & Doig (1960) in this space.
"""

from __future__ import annotations

import numpy as np

from ltr.compiling import njit
from ltr.exact.weight_space import _bounds, _boxes
from ltr.exact.weight_space._boxes import compiled
from ltr.exact.weight_space.space import NARROW, Boxes, Flags, FloatArray, IntArray, Space, Work

_ROUNDS = 4  # of tightening a box
_TRY_SPLIT = 0.3  # share of the best score from which a split is tried out
_MANY = 256  # pairs in a list from which probing pays
_PROMISING = 0.3  # share of the required loss that halves lose from which conflicts and hinge bounds are tried
_PACKINGS = 2  # times that unit losses are packed into conflicts again, with the budgets that the last packing left
_PACK_AGAIN = 0.3  # share of the required loss that conflicts must take for another packing
_LEAST_GROWTH = 1.1  # growth of the packed losses from which another packing follows
_TRIALS, _SMALL_TRIALS = 63, 7  # boxes between two candidates, powers of two less 1
_SMALL = 1e-3  # width of a box that more candidates are taken from
_FIXED = 128  # pairs that take as long as the fixed work on a box
_NEVER = -(2**62)

# for functions called for every box, from one place: a call copies all fields of the space and the work
inlined = njit(cache=True, nogil=True, error_model="numpy", _nrt=False, inline="always")


@inlined
def _scale_margin(space: Space, work: Work, t: int, begin: int, size: int) -> None:
    """Update the interval of the margin's coordinate to the box."""
    d = space.T.shape[1]
    low, high = _boxes.norm_interval(space, work.low[t], work.high[t])
    width = work.high[t, d] - work.low[t, d]
    if high >= low and high - low < 0.95 * width:
        _boxes.set_interval(work, t, begin, size, d, low, high)
        _boxes.update_decided(space, work, t, begin, size)


@compiled
def _conflicts_loss(space: Space, work: Work, t: int, begin: int, size: int, required_loss: int, short: float) -> float:
    """Return what the conflicts of box t lose, up to `short`; what is left of the pair losses stays in `scale`."""
    found = _bounds.find_conflicts(work, t)
    _bounds.pair_losses(work, t, begin, size)
    packed = _bounds.pack(work, t, begin, found)
    for _ in range(_PACKINGS):
        if packed >= short or packed < _PACK_AGAIN * short:
            break
        before = packed
        _bounds.lower_budgets(work, required_loss, packed)
        _bounds.unit_losses(space, work, t, begin, size, required_loss)
        _bounds.pair_losses(work, t, begin, size)
        packed = _bounds.pack(work, t, begin, found)
        if packed < _LEAST_GROWTH * before:
            break
    return packed


@inlined
def _reduce(space: Space, work: Work, t: int, begin: int, size: int, cutoff: int, tally: IntArray) -> tuple[int, int]:
    """Close or tighten box t; return `CLOSED`, `OPEN` or `GAVE_UP` (no hinge bound closes it), and where to split."""
    outcome, coordinate, promise = _bounds.GAVE_UP, -1, 1.0
    for left in range(_ROUNDS - 1, -1, -1):
        if space.stop[0] != 0:
            break
        if work.bound[t] <= cutoff:
            return _bounds.CLOSED, -1
        required_loss = work.bound[t] - cutoff
        if size >= _MANY:
            went, coordinate, promise = _bounds.probe(space, work, t, begin, size, required_loss)
            if went < 0:
                return _bounds.CLOSED, -1
            if went > 0:
                _boxes.update_decided(space, work, t, begin, size)
                continue
        work.budget[:] = required_loss
        forced = _bounds.unit_losses(space, work, t, begin, size, required_loss)
        if forced == 0 and promise < _PROMISING:
            break
        if forced > 0 and left > 0:  # the last round goes on to conflicts, even if this could tighten the box again
            tightened = _boxes.tighten_to_forced_pairs(space, work, t, begin, size)
            if tightened < 0:
                return _bounds.CLOSED, -1
            if tightened > 0:
                _boxes.update_decided(space, work, t, begin, size)
                continue
        short = float(required_loss) * (1.0 + 1e-15)
        short -= _conflicts_loss(space, work, t, begin, size, required_loss, short)
        if short <= 0.0:
            return _bounds.CLOSED, -1
        _bounds.hinge_slopes(work, t, size)
        tally[1] += 1
        best = work.small[5]
        outcome, phi = _bounds.hinge_bound(space, work, t, begin, size, short, best)
        if outcome == _bounds.CLOSED:
            tally[2] += 1
            return _bounds.CLOSED, -1
        if phi == -np.inf:
            break
        # points with a value above the cutoff satisfy g·x > -short, and max g·x is at most -phi
        room = (short - phi) * (1.0 + 1e-12)
        if not _boxes.tighten_to_hinge_bound(space, work, t, begin, size, best, room):
            break
        _boxes.update_decided(space, work, t, begin, size)
    return _bounds.CLOSED if work.bound[t] <= cutoff else outcome, coordinate


@compiled
def _split_side(space: Space, work: Work, t: int) -> int:
    """Return the coordinate with the largest part in a side constraint that some of box t violates, or -1."""
    best, largest = -1, 0.0
    for row in range(space.A.shape[0]):
        most = 0.0
        for j in range(space.A.shape[1]):
            a = space.A[row, j]
            most += _boxes.side_term(a * (work.high[t, j] if a > 0.0 else work.low[t, j]))
        if most <= space.b[row]:
            continue
        for j in range(space.A.shape[1]):
            width = work.high[t, j] - work.low[t, j]
            if width > NARROW and abs(space.A[row, j]) * width > largest:
                best, largest = j, abs(space.A[row, j]) * width
    return best


@inlined
def _branch_on(space: Space, work: Work, t: int, begin: int, size: int) -> int:
    """Return the coordinate to split where probing does not decide, -1 if no width is left."""
    d = space.T.shape[1]
    score = work.small[6]
    _bounds.branching_scores(work, t, begin, size, d, score)
    widest = 0.0
    for j in range(d):
        width = work.high[t, j] - work.low[t, j]
        score[j] *= width if width > NARROW else 0.0
        widest = max(widest, score[j])
    best, largest = -1, 0.0
    for j in range(d):
        if score[j] > _TRY_SPLIT * widest:
            score[j] *= _bounds.decided_by_half(work, t, begin, size, j)
            if score[j] > largest:
                best, largest = j, score[j]
    if best < 0 and space.sparse:
        for j in range(d):
            if work.used[t, j] == 0 and work.high[t, j] > work.low[t, j]:
                return j
    return best if best >= 0 else _split_side(space, work, t)


@inlined
def _halve(space: Space, work: Work, t: int, begin: int, size: int, j: int) -> int:
    """Replace box t by its halves along j; return how many boxes are on the stack."""
    child = t + 1
    _boxes.copy_entry(work, t, child, size, False)
    _boxes.split(work, t, child, begin, size, j)
    _boxes.count_decided(space, work, child, begin, size, work.changed_too)
    _boxes.count_decided(space, work, t, begin, size, work.changed)
    return child + 1


@compiled
def _part(space: Space, work: Work, t: int, begin: int, size: int, j: int) -> int:
    """Replace box t by its parts with weight j above, below and equal to 0; return how many boxes are on the stack."""
    top, low, high = t + 1, work.low[t, j], work.high[t, j]
    for above in (True, False):
        if high > 0.0 if above else low < 0.0:
            _boxes.copy_entry(work, t, top, size, True)
            _boxes.mark_used(space, work, top, j)
            _boxes.set_interval(
                work, top, begin, size, j, max(low, 0.0) if above else low, high if above else min(high, 0.0)
            )
            _boxes.update_decided(space, work, top, begin, size)
            top += 1
    _boxes.set_interval(work, t, begin, size, j, 0.0, 0.0)
    _boxes.update_decided(space, work, t, begin, size)
    return top


@compiled
def _put(boxes: Boxes, row: int, low: FloatArray, high: FloatArray, used: Flags, bound: int) -> int:
    """Write a box to a row; return the next row."""
    _boxes.assign(boxes.low[row], low)
    _boxes.assign(boxes.high[row], high)
    _boxes.assign(boxes.used[row], used)
    boxes.bound[row] = bound
    return row + 1


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
    """Search boxes for weights with a value above the cutoff.

    Args:
        space: the problem.
        work: memory of this thread.
        roots: boxes to search.
        cutoff: bound at which a box is closed, an integer in the space's unit.
        allowance: work before the boxes that are left are handed back, in pairs examined, each of 8 coordinates.
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
            handed = _put(left, handed, roots.low[root], roots.high[root], roots.used[root], roots.bound[root])
            continue
        _boxes.push_root(space, work, roots, root)
        spent += space.positive.shape[0] * columns // 2
        boxes += 1
        entries = 1
        while entries > 0:
            t = entries - 1
            if work.bound[t] <= cutoff:
                entries -= 1
                continue
            _boxes.compact_open_pairs(space, work, t)
            pair_list = work.pair_list[t]
            begin, size = work.begin[pair_list], work.size[pair_list]
            room = work.at[t] + 4 * size + 8 < work.upper.shape[0]
            if space.stop[0] != 0:
                spent = max(spent, allowance)
            if spent >= allowance or t >= deepest or not room:
                for entry in range(entries):
                    handed = _put(left, handed, work.low[entry], work.high[entry], work.used[entry], work.bound[entry])
                spent = max(spent, allowance)  # `left` has room for one stack
                break
            spent += (size + _FIXED) * columns // 8
            if not space.fixed:
                _scale_margin(space, work, t, begin, size)
            if space.A.shape[0] > 0 or space.support < space.T.shape[1]:
                if not _boxes.tighten_to_constraints(space, work, t, begin, size):
                    entries -= 1
                    continue
                _boxes.update_decided(space, work, t, begin, size)
            outcome, j = _reduce(space, work, t, begin, size, cutoff, tally)
            if outcome == _bounds.CLOSED:
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
                _bounds.pair_losses(work, t, begin, size)
                _bounds.hinge_slopes(work, t, size)
                _bounds.descend(space, work, t, begin, size)
                value = _bounds.candidate_value(space, work, t, begin, size)
                if value > found:
                    found = value
                    _boxes.assign(best, work.small[0])
                    cutoff = max(cutoff, value)
                if bound <= cutoff:
                    entries -= 1
                    continue
            if j < 0:
                narrowed = _put(narrow, narrowed, work.low[t], work.high[t], work.used[t], bound)
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
