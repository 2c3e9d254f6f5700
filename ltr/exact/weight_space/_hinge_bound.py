r"""Compiled: what each lost pair loses at least, and a Lagrangian bound on that over a box.

**Unit losses.** In a box with bound B and a cutoff T, any point worth more than T loses open pairs whose losses add up
to less than the *required loss* ``required = B - T``. Raising the count of a member of a level from m to m + 1 moves
the place ``p = fewer[m + 1] - 1``, so it loses ``worth[p + m] - worth[p + m + 1] >= step[p + m]``, where `step` does
not increase. Raise the members one after the other: those raised before have only made `fewer` smaller, so every
single step loses at least the `step` it would have lost alone, and all together at least the sum over members of

    loss_i(x) = sum over m = c_i .. c_i + x - 1 of  step[fewer[m + 1] - 1 + m],      x = pairs that i loses.

As `step` is nonincreasing, loss_i(x) / x is too. Let X be the largest x, among the open pairs of i, at which
loss_i(x) < required. A point worth more than T has x <= X, hence ``loss_i(x) >= u_i x`` with the *unit loss*
``u_i = loss_i(X) / X``. The pairs of a member with X = 0 are *forced*: all its open pairs have to be won.

**The hinge bound.** An open pair with lower interval bound l < 0 is lost at x only where ``max(0, -x·e) / -l`` is above
0, and that is at most 1. So for every point x of the box that is worth more than T, with ``s_q = u_member(q) / -l_q``,

    required > sum of u_member(q) [q lost at x] >= h(x) = sum over q of s_q max(0, -x·e_q).

h is convex. For any x', with g = sum of s_q e_q over the pairs with x'·e_q < 0, ``h(x) >= -g·x`` for all x, so

    min of h over the box >= phi = - max over the box of g·x,

and the same holds for averages of such g. A box with phi >= required holds nothing worth more than T and is closed.
Otherwise what is worth more than T satisfies ``g·x > -required``, which caps the width of the box in coordinate j at
``(max g·x + required) / |g_j|``. The descent on h is a projected subgradient method with Polyak's step towards
`required_loss`; it gives up at a point with h < required, for then no g closes the box.

*Rounding.* g and its terms are floats; with A the sum of the s_q in g, ``A * error`` bounds the error of g·x over the
box and is taken off phi.
"""

from __future__ import annotations

import numpy as np

from ltr.exact.weight_space._interval_bounds import assign, compiled, fast, level_path, member_path, raise_count
from ltr.exact.weight_space._tightening import side_term
from ltr.exact.weight_space.space import FloatArray, Space, Work

__all__ = [
    "CLOSED",
    "GAVE_UP",
    "OPEN",
    "branching_scores",
    "candidate_value",
    "decided_by_half",
    "descend",
    "dual",
    "hinge_bound",
    "hinge_slopes",
    "pair_losses",
    "unit_losses",
]

OPEN, CLOSED, GAVE_UP = 0, 1, 2
_STEPS = 5
_DESCENT = 20
_RELAXATION = 0.7


@compiled
def unit_losses(space: Space, work: Work, t: int, begin: int, size: int, required_loss: int) -> int:
    """Set the unit loss of each member of box t, within its budget; return how many members have forced pairs."""
    unit_loss, losable, path, budget = work.unit_loss, work.losable, work.path, work.budget
    losable[:] = 0
    at = work.at[t]
    owner, is_open = work.owner[begin : begin + size], work.open[at : at + size]
    i, run = owner[0] if size > 0 else np.int32(0), np.int64(0)
    for q in range(size):  # pairs of one owner follow each other
        if owner[q] != i:
            losable[i] += run
            i, run = owner[q], np.int64(0)
        run += is_open[q]
    losable[i] += run
    forced = 0
    counts = work.counts[t]
    for level in range(space.table.shape[0]):
        shared = space.slot[level] >= 0
        if shared:
            level_path(space, work, t, level)
        for i in range(space.start[level], space.start[level + 1]):
            unit_loss[i] = 0.0
            work.forced[i] = 0
            most, c = losable[i], counts[i]
            if most == 0:
                continue
            if not shared:
                member_path(space, work, level, c, c + most)
            x, beyond = 0, most + 1
            while beyond - x > 1:  # the largest x that the budget affords
                middle = (x + beyond) >> 1
                if path[c + middle] - path[c] < budget[i]:
                    x = middle
                else:
                    beyond = middle
            if x == 0:
                # no such point loses a pair of i, so its unit loss is free: two forced pairs in conflict close the box
                unit_loss[i] = float(required_loss) * (1.0 + 1e-9)
                work.forced[i] = 1
                forced += 1
            else:
                unit_loss[i] = float(path[c + x] - path[c]) / x * (1.0 - 1e-13)
    return forced


@fast
def pair_losses(work: Work, t: int, begin: int, size: int) -> None:
    """Write what each open pair loses when it is lost to `scale`."""
    at = work.at[t]
    scale, owner, is_open = work.scale[:size], work.owner[begin : begin + size], work.open[at : at + size]
    unit_loss = work.unit_loss
    for q in range(size):
        scale[q] = unit_loss[np.uint32(owner[q])] * is_open[q]


@fast
def hinge_slopes(work: Work, t: int, size: int) -> None:
    """Divide the pair losses in `scale` by the pairs' lower interval bounds: the slopes s_q."""
    at = work.at[t]
    scale, lower = work.scale[:size], work.lower[at : at + size]
    for q in range(size):
        scale[q] /= max(-lower[q], 1e-11)


@fast
def branching_scores(work: Work, t: int, begin: int, size: int, d: int, out: FloatArray) -> None:
    """Write the sum over open pairs of ``|e_j| / (upper - lower)`` for each coordinate to `out`."""
    at = work.at[t]
    share, is_open = work.value[:size], work.open[at : at + size]
    upper, lower, owner = work.upper[at : at + size], work.lower[at : at + size], work.owner[begin : begin + size]
    unit_loss = work.unit_loss
    for q in range(size):
        counts = 1.0 if unit_loss[np.uint32(owner[q])] > 0.0 else 1e-6
        share[q] = counts * is_open[q] / (upper[q] - lower[q] + 1e-300)
    j = 0
    while j + 4 <= d:
        e0, e1 = work.columns[j, begin : begin + size], work.columns[j + 1, begin : begin + size]
        e2, e3 = work.columns[j + 2, begin : begin + size], work.columns[j + 3, begin : begin + size]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for q in range(size):
            y = share[q]
            s0 += y * abs(e0[q])
            s1 += y * abs(e1[q])
            s2 += y * abs(e2[q])
            s3 += y * abs(e3[q])
        out[j], out[j + 1], out[j + 2], out[j + 3] = s0, s1, s2, s3
        j += 4
    while j < d:
        e0 = work.columns[j, begin : begin + size]
        s0 = 0.0
        for q in range(size):
            s0 += share[q] * abs(e0[q])
        out[j] = s0
        j += 1


@fast
def decided_by_half(work: Work, t: int, begin: int, size: int, j: int) -> float:
    """Return (a + 1)(b + 1) for the numbers a and b of pairs that the halves of coordinate j would lose."""
    at = work.at[t]
    upper, share = work.upper[at : at + size], work.value[:size]
    e = work.columns[j, begin : begin + size]
    half = 0.5 * (work.high[t, j] - work.low[t, j])
    below, above = 1.0, 1.0
    for q in range(size):
        fall = half * e[q]
        counts = 1.0 if share[q] > 0.0 else 0.0
        below += counts if upper[q] < fall else 0.0
        above += counts if upper[q] < -fall else 0.0
    return below * above


@fast
def _values(work: Work, begin: int, size: int, columns: int, x: FloatArray) -> None:
    """Write -x·e of every pair of the list to `value`."""
    value = work.value[:size]
    for q in range(size):
        value[q] = 0.0
    j = 0
    while j + 4 <= columns:
        e0, e1 = work.columns[j, begin : begin + size], work.columns[j + 1, begin : begin + size]
        e2, e3 = work.columns[j + 2, begin : begin + size], work.columns[j + 3, begin : begin + size]
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for q in range(size):
            value[q] -= x0 * e0[q] + x1 * e1[q] + x2 * e2[q] + x3 * e3[q]
        j += 4
    while j < columns:
        e0, x0 = work.columns[j, begin : begin + size], x[j]
        for q in range(size):
            value[q] -= x0 * e0[q]
        j += 1


@fast
def _hinges(work: Work, size: int) -> tuple[float, float]:
    """Return h and the sum of the slopes in it; leave the slope of each pair in it, else 0, in `value`."""
    value, scale = work.value[:size], work.scale[:size]
    h, total = 0.0, 0.0
    for q in range(size):
        x = value[q]
        y = scale[q] if x > 0.0 else 0.0
        h += y * x
        total += y
        value[q] = y
    return h, total


@fast
def _slope(work: Work, begin: int, size: int, columns: int, out: FloatArray) -> None:
    """Write g, the sum of the columns times `value`, to `out`."""
    value = work.value[:size]
    j = 0
    while j + 4 <= columns:
        e0, e1 = work.columns[j, begin : begin + size], work.columns[j + 1, begin : begin + size]
        e2, e3 = work.columns[j + 2, begin : begin + size], work.columns[j + 3, begin : begin + size]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for q in range(size):
            y = value[q]
            s0 += y * e0[q]
            s1 += y * e1[q]
            s2 += y * e2[q]
            s3 += y * e3[q]
        out[j], out[j + 1], out[j + 2], out[j + 3] = s0, s1, s2, s3
        j += 4
    while j < columns:
        e0 = work.columns[j, begin : begin + size]
        s0 = 0.0
        for q in range(size):
            s0 += value[q] * e0[q]
        out[j] = s0
        j += 1


@compiled
def dual(work: Work, t: int, g: FloatArray) -> float:
    """Return ``- max over box t of g·x``."""
    total = 0.0
    for j in range(g.shape[0]):
        total -= g[j] * work.high[t, j] if g[j] > 0.0 else g[j] * work.low[t, j]
    return total


@compiled
def _step(work: Work, t: int, x: FloatArray, g: FloatArray, fall: float) -> bool:
    """Move x along g so that h falls by `fall` to first order; return whether it could move."""
    norm = 0.0
    for j in range(g.shape[0]):
        low, high = work.low[t, j], work.high[t, j]
        blocked = (g[j] > 0.0 and x[j] >= high) or (g[j] < 0.0 and x[j] <= low)
        if not blocked:
            norm += (g[j] * (high - low)) ** 2
    if norm <= 0.0 or not fall / norm < np.inf:  # sides of less than 1e-150
        return False
    for j in range(g.shape[0]):
        low, high = work.low[t, j], work.high[t, j]
        # in this order no product overflows: 0 times infinity would be no number
        x[j] = min(max(x[j] + fall / norm * (g[j] * (high - low)) * (high - low), low), high)
    return True


@compiled
def hinge_bound(
    space: Space, work: Work, t: int, begin: int, size: int, required_loss: float, best: FloatArray
) -> tuple[int, float]:
    """Try to close box t; return the outcome and the largest phi (-inf for none), its g being left in `best`."""
    columns = space.columns.shape[0]
    x, g, mean = work.small[0], work.small[1], work.small[2]
    for j in range(columns):
        x[j] = min(max(work.point[t, j], work.low[t, j]), work.high[t, j])
        mean[j] = 0.0
    total, largest, outcome = 0.0, -np.inf, OPEN
    for step in range(_STEPS):
        if space.stop[0] != 0:  # one step takes long where there are many pairs of many features
            outcome = GAVE_UP
            break
        _values(work, begin, size, columns, x)
        h, hinge_slopes = _hinges(work, size)
        if h < required_loss:
            outcome = GAVE_UP
            break
        _slope(work, begin, size, columns, g)
        phi = dual(work, t, g) - hinge_slopes * space.error
        if phi > largest:
            largest = phi
            assign(best, g)
        total += hinge_slopes
        for j in range(columns):
            mean[j] += g[j]
        if step > 0:
            phi = (dual(work, t, mean) - total * space.error) / (step + 1)
            if phi > largest:
                largest = phi
                for j in range(columns):
                    best[j] = mean[j] / (step + 1)
        if largest >= required_loss:
            outcome = CLOSED
            break
        if not _step(work, t, x, g, _RELAXATION * (h - 0.9 * required_loss)):
            break
    assign(work.point[t], x)
    return outcome, largest


@compiled
def descend(space: Space, work: Work, t: int, begin: int, size: int) -> None:
    """Move the point of box t towards one that wins every open pair, and zeros where these count."""
    columns = space.columns.shape[0]
    x, g = work.small[0], work.small[1]
    for j in range(columns):
        x[j] = min(max(work.point[t, j], work.low[t, j]), work.high[t, j])
    for _ in range(_DESCENT):
        if space.stop[0] != 0:
            break
        for j in range(columns - 1):
            if space.sparse and work.used[t, j] == 0:
                x[j] = 0.0
        _values(work, begin, size, columns, x)
        h, _ = _hinges(work, size)
        if h <= 0.0:
            break
        _slope(work, begin, size, columns, g)
        for j in range(columns - 1):
            if space.sparse and work.used[t, j] == 0:
                g[j] = 0.0
        if not _step(work, t, x, g, 1.2 * h):
            break
    for j in range(columns - 1):
        if space.sparse and work.used[t, j] == 0:
            x[j] = 0.0


@compiled
def candidate_value(space: Space, work: Work, t: int, begin: int, size: int) -> int:
    """Return the value at the point that `descend` left, doubtful pairs counted as lost; very small if infeasible."""
    x, d = work.small[0], space.T.shape[1]
    if not space.fixed:
        x[d] = 0.0
        for i in range(space.T.shape[0]):
            weight = 0.0
            for j in range(d):
                weight += space.T[i, j] * x[j]
            x[d] = max(x[d], abs(weight) * (1.0 + 1e-12))
    for row in range(space.A.shape[0]):
        activity = 0.0
        for j in range(space.A.shape[1]):
            activity += side_term(space.A[row, j] * x[j])
        if activity > space.b[row]:
            return -(2**62)
    counts, fewer, at = work.trial_counts, work.trial_fewer, work.at[t]
    assign(counts, work.counts[t])
    assign(fewer, work.fewer[t])
    value = work.bound[t]
    _values(work, begin, size, space.columns.shape[0], x)
    for q in range(size):
        if work.open[at + q] == 0:
            continue
        if work.value[q] > -work.slack[begin + q]:
            value += raise_count(space, counts, fewer, work.owner[begin + q])
    return value
