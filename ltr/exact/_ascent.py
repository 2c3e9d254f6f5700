"""Compiled ascent: exact line searches along coordinates and random directions, inside box and side constraints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr.compiling import njit
from ltr.exact._sweep import TIE, State, Tables, line_search, uniform, value_of_scores
from ltr.exact.problem import SIDE_TOLERANCE

__all__ = ["ascend", "clip", "new_memory"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_PARALLEL = 1e-14  # slope of a side constraint, relative to its terms, from which a line is not along it


@njit(cache=True, nogil=True)
def clip(tables: Tables, w: FloatArray, v: FloatArray, low: float, high: float) -> tuple[float, float]:
    """The part of low <= t <= high on which w + t v satisfies the box and the side constraints."""
    d = w.shape[0]
    for j in range(d):
        if v[j] != 0.0:
            one, other = (-1.0 - w[j]) / v[j], (1.0 - w[j]) / v[j]
            low, high = max(low, min(one, other)), min(high, max(one, other))
        elif abs(w[j]) > 1.0 + 1e-12:
            return 0.0, -1.0
    for row in range(tables.b.shape[0]):
        slack, size, slope, steepest = tables.b[row], abs(tables.b[row]), 0.0, 0.0
        for j in range(d):
            term, change = tables.A[row, j] * w[j], tables.A[row, j] * v[j]
            slack -= term
            size += abs(term)
            slope += change
            steepest += abs(change)
        if abs(slope) <= _PARALLEL * steepest:
            if slack < -SIDE_TOLERANCE * size:
                return 0.0, -1.0
        elif slope > 0.0:
            high = min(high, slack / slope)
        else:
            low = max(low, slack / slope)
    return low, high


@njit(cache=True, nogil=True)
def _scores(tables: Tables, w: FloatArray, f: FloatArray) -> None:
    """Fill f with X w."""
    for i in range(f.shape[0]):
        f[i] = 0.0
    for j in range(w.shape[0]):
        if w[j] != 0.0:
            for i in range(f.shape[0]):
                f[i] += w[j] * tables.columns[j, i]


@njit(cache=True, nogil=True)
def _non_zero(w: FloatArray) -> int:
    count = 0
    for j in range(w.shape[0]):
        count += 1 if w[j] != 0.0 else 0
    return count


@njit(cache=True, nogil=True)
def _along(w: FloatArray, t: float, v: FloatArray) -> FloatArray:
    """W + t v: a loop, for array expressions are slow to compile."""
    target = np.empty(w.shape[0], np.float64)
    for j in range(w.shape[0]):
        target[j] = w[j] + t * v[j]
    return target


@njit(cache=True, nogil=True)
def _largest(w: FloatArray) -> int:
    top = 0
    for j in range(1, w.shape[0]):
        if abs(w[j]) > abs(w[top]):
            top = j
    return top


@njit(cache=True, nogil=True)
def _step_to(tables: Tables, w: FloatArray, f: FloatArray, target: FloatArray) -> None:
    """Move w, and its scores f, to the target, scaled to max |w_j| = 1 where no side constraint could mind.

    Larger differences lose no pair, and where a won pair costs another gain a place the value does not fall either
    (`ltr.exact.problem`), so the scaling never costs.
    """
    largest = abs(target[_largest(target)])
    if largest == 0.0 or tables.sides:
        largest = 1.0
    for j in range(w.shape[0]):
        w[j] = min(1.0, max(-1.0, target[j] / largest))
    _scores(tables, w, f)


@njit(cache=True, nogil=True)
def _coordinate(tables: Tables, w: FloatArray, f: FloatArray, value: float, j: int, state: State) -> float:
    """Best w_j, the others fixed up to one common factor; changes w and f, returns the new value.

    Three segments: w_j in [-1, 1] with the others fixed, then w_j = 1 and w_j = -1 with the others shrunk to 0.
    """
    d = w.shape[0]
    axis = np.zeros(d, np.float64)
    axis[j] = 1.0
    corner = axis.copy()
    rest = w.copy()
    rest[j] = 0.0
    flat = np.zeros(f.shape[0], np.float64)
    column = tables.columns[j]
    others = _along(f, -w[j], column)
    partners = _non_zero(rest)
    price = tables.C * (1 + partners)
    best = -np.inf
    target = w
    for sign in (0.0, 1.0, -1.0):
        if sign == 0.0:
            low, high = clip(tables, rest, axis, -1.0, 1.0)
            found, t = line_search(tables, others, column, low, high, state)
        elif partners == 0:
            continue
        else:
            corner[j] = sign
            low, high = clip(tables, corner, rest, 0.0, 1.0)
            found, t = line_search(tables, _along(flat, sign, column), others, low, high, state)
        found -= price
        tie = TIE * (1.0 + abs(found))
        if found > best + tie or (found > best - tie and 3.0 * uniform(state) < 1.0):
            best = found
            target = _along(rest, t, axis)
            if sign != 0.0:
                target = _along(corner, t, rest)
    if tables.C > 0.0 and w[j] != 0.0:
        low, high = clip(tables, rest, axis, -1.0, 1.0)
        if low <= 0.0 <= high:
            found = value_of_scores(tables, others) - tables.C * partners
            if found > best:
                best, target = found, rest
    if best < value - TIE * (1.0 + abs(value)):
        return value
    _step_to(tables, w, f, target)
    return best


@njit(cache=True, nogil=True)
def _direction(tables: Tables, w: FloatArray, f: FloatArray, value: float, v: FloatArray, state: State) -> float:
    """Best point on the line through w along v inside the box; changes w and f, returns the new value."""
    low, high = clip(tables, w, v, -np.inf, np.inf)
    if not np.isfinite(high - low):
        return value
    g = np.empty(f.shape[0], np.float64)
    _scores(tables, v, g)
    found, t = line_search(tables, f, g, low, high, state)
    target = _along(w, t, v)
    found -= tables.C * _non_zero(target)
    if found < value - TIE * (1.0 + abs(value)):
        return value
    _step_to(tables, w, f, target)
    return found


@njit(cache=True, nogil=True)
def _inside(project: FloatArray, v: FloatArray) -> FloatArray:
    """The direction nearest to v that keeps the equality constraints, v itself where there are none."""
    if project.shape[0] == 0:
        return v
    inside = np.zeros(v.shape[0], np.float64)
    for j in range(v.shape[0]):
        inside = _along(inside, v[j], project[j])
    return inside


@njit(cache=True, nogil=True)
def _random_direction(tables: Tables, w: FloatArray, project: FloatArray, state: State) -> FloatArray:
    """A direction on about 2 to d coordinates, inside the equality constraints.

    With C > 0 it stays on the support of w: a dense step would pay for every feature at once. Without side
    constraints w and its multiples are one ranking, so the largest |w_j| can be left as it is.
    """
    d = w.shape[0]
    top = _largest(w)
    share = max(uniform(state), 2.0 / d)
    v = np.zeros(d, np.float64)
    for j in range(d):
        if (tables.C == 0.0 or w[j] != 0.0) and uniform(state) < share:
            v[j] = 2.0 * uniform(state) - 1.0
    if not tables.sides and w[top] != 0.0:
        v = _along(v, -v[top] / w[top], w)
        v[top] = 0.0
    return _inside(project, v)


def new_memory(d: int) -> IntArray:
    """What `ascend` remembers between calls: place in the round, lines since the last gain, order of coordinates."""
    return np.concatenate([[0, 0], np.arange(d)])


@njit(cache=True, nogil=True)
def ascend(
    tables: Tables,
    w: FloatArray,
    project: FloatArray,
    extra: int,
    patience: int,
    lines: int,
    memory: IntArray,
    state: State,
) -> tuple[float, int]:
    """Line searches along every coordinate in random order and `extra` random directions, round after round.

    Changes w in place. Moves between equal values are made, so that plateaus are walked; the ascent ends after
    `patience` rounds without a gain. It returns early after `lines` line searches; call it again with the same w and
    memory to go on.

    Args:
        tables: the problem.
        w: weights in the box that satisfy the side constraints, (d,).
        project: orthogonal projection on the directions that keep the equality constraints, (d, d); (0, 0) when
            there are none.
        extra: random directions in a round.
        patience: rounds without a gain that end the ascent.
        lines: most line searches of this call.
        memory: from `new_memory`.
        state: of the random numbers.

    Returns:
        (objective at w, line searches left): none left means that the ascent may go on.
    """
    d = w.shape[0]
    f = np.empty(tables.columns.shape[1], np.float64)
    _scores(tables, w, f)
    value = value_of_scores(tables, f) - tables.C * _non_zero(w)
    order = memory[2:]
    length = d + extra + (1 if tables.sides else 0)
    while memory[1] < patience * length:
        if lines <= 0:
            return value, 0
        lines -= 1
        before = value
        at = memory[0]
        if at < d:  # Fisher-Yates, one step at a time
            other = at + int(uniform(state) * (d - at))
            order[at], order[other] = order[other], order[at]
            if project.shape[0] == 0:
                value = _coordinate(tables, w, f, value, order[at], state)
            else:
                value = _direction(tables, w, f, value, project[order[at]].copy(), state)
        elif at < d + extra:
            value = _direction(tables, w, f, value, _random_direction(tables, w, project, state), state)
        else:  # the length of w matters to side constraints, and to the margin
            value = _direction(tables, w, f, value, _inside(project, w.copy()), state)
        memory[0] = (at + 1) % length
        memory[1] = 0 if value > before + TIE * (1.0 + abs(before)) else memory[1] + 1
    return value, lines
