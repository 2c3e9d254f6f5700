"""Compiled: ascents by exact line searches, along coordinates and random directions, inside box and side constraints.

Along w(t) = w + t v the pair (i, k) has the difference ``f_i - f_k + t (g_i - g_k)`` with f = X w, g = X v, so it
changes between won and lost at one breakpoint ``t = (limit - f_i + f_k) / (g_i - g_k)``. Sorting the breakpoints and
stepping through them visits every value the statistic takes on the line; a step changes a count of `ltr.exact.levels`
by 1, in constant time as shown there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr.compiling import njit
from ltr.exact.levels import FloatArray, IndexArray, IntArray
from ltr.exact.problem import SIDE_TOLERANCE

State = NDArray[np.uint64]

TIE = 1e-11  # values closer than this, relative to their size, are the same value
_MASK = (1 << 20) - 1  # pairs between two checks of `stop`, as a bit mask: some hundredths of a second
_NARROW = 1e-11  # share of a segment below which an interval is too short to step into reliably
_PARALLEL = 1e-14  # slope of a side constraint, relative to its terms, from which a line is not along it


class Tables(NamedTuple):
    """A problem as the kernels read it; pairs, positives and levels are those of `ltr.exact.levels.Levels`.

    Attributes:
        columns: features, one row a feature, (d, n).
        above: upper observation of each pair, (pairs,).
        below: lower observation, (pairs,).
        limit: score difference from which a pair is won, (pairs,).
        positive: positive that counts the pair when it is lost, (pairs,).
        places: `Levels.table` and `Levels.counts_at` of the level of each positive, (positives, 2).
        shared: the same and the largest count, for each level of several positives, (shared levels, 3).
        contribution: all statistic tables.
        counts_size: as `Levels.counts_size`.
        shift: constant part of the value.
        C: as in the problem.
        priced: 1 for weights that C is the price of, 0 for those of free columns, (d,).
        sides: whether there are side constraints.
        A: those A w <= b that a line may leave, rows of a size of about 1, (rows, d).
        b: (rows,).
        stop: set to 1 from another thread to end a line search early, without a result, (1,).
    """

    columns: FloatArray
    above: IndexArray
    below: IndexArray
    limit: FloatArray
    positive: IndexArray
    places: IntArray
    shared: IntArray
    contribution: FloatArray
    counts_size: int
    shift: float
    C: float
    priced: NDArray[np.uint8]
    sides: bool
    A: FloatArray
    b: FloatArray
    stop: NDArray[np.uint8]


@njit(cache=True, nogil=True)
def uniform(state: State) -> float:
    """Return a number uniform on [0, 1), by splitmix64 from the caller's state."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def _value_of_counts(tables: Tables, counts: IntArray, fewer: IntArray) -> float:
    """Return the value of the positives' counts; fill `fewer`, which is 0 before (`ltr.exact.levels` explains it)."""
    places, shared, contribution = tables.places, tables.shared, tables.contribution
    value = tables.shift
    for i in range(counts.shape[0]):
        at, counts_at = places[i, 0] + counts[i], places[i, 1]
        if counts_at < 0:
            value += contribution[at]
        else:
            fewer[counts_at + counts[i] + 1] += 1
    for row in range(shared.shape[0]):
        at, counts_at = shared[row, 0], shared[row, 1]
        p = 0
        for m in range(shared[row, 2] + 1):
            for _ in range(fewer[counts_at + m + 1]):
                value += contribution[at + p + m]
                p += 1
            fewer[counts_at + m + 1] = p
    return value


@njit(cache=True, nogil=True)
def value_of_scores(tables: Tables, f: FloatArray) -> float:
    """Return the statistic of scores f = X w, compared in float64."""
    above, below, limit, positive = tables.above, tables.below, tables.limit, tables.positive
    counts = np.zeros(tables.places.shape[0], np.int64)
    for q in range(below.shape[0]):
        if f[below[q]] > f[above[q]] - limit[q]:
            counts[positive[q]] += 1
    return _value_of_counts(tables, counts, np.zeros(tables.counts_size, np.int64))


@njit(cache=True, nogil=True)
def _sort(
    keys: FloatArray, items: IntArray, low: float, high: float, stop: NDArray[np.uint8]
) -> tuple[FloatArray, IntArray]:
    """Return keys in (low, high), sorted, and their items: as many buckets as keys, then each bucket by itself."""
    m = keys.shape[0]
    bucket = np.empty(m, np.int64)
    start = np.zeros(m + 2, np.int64)
    scale = m / (high - low)
    for e in range(m):
        bucket[e] = b = min(m - 1, int((keys[e] - low) * scale))
        start[b + 2] += 1
    for b in range(2, m + 2):
        start[b] += start[b - 1]
    sorted_keys = np.empty(m, np.float64)
    sorted_items = np.empty(m, np.int64)
    for e in range(m):
        b = bucket[e] + 1
        at = start[b]
        start[b] = at + 1
        sorted_keys[at] = keys[e]
        sorted_items[at] = items[e]
    for b in range(m):
        if (b & _MASK) == 0 and stop[0] != 0:
            break
        first, end = start[b], start[b + 1]
        gap = 1
        while 3 * gap + 1 < end - first:  # Shell's gaps: a bucket can hold many where breakpoints crowd
            gap = 3 * gap + 1
        while gap >= 1:
            for e in range(first + gap, end):
                key, item = sorted_keys[e], sorted_items[e]
                at = e
                while at >= first + gap and sorted_keys[at - gap] > key:
                    sorted_keys[at] = sorted_keys[at - gap]
                    sorted_items[at] = sorted_items[at - gap]
                    at -= gap
                sorted_keys[at] = key
                sorted_items[at] = item
            gap //= 3
    return sorted_keys, sorted_items


@njit(cache=True, nogil=True)
def line_search(
    tables: Tables, f: FloatArray, g: FloatArray, low: float, high: float, state: State
) -> tuple[float, float]:
    """Return the best value of the statistic at scores f + t g over low < t < high, and a t that attains it.

    t is the middle of an interval between breakpoints; of several best intervals one is drawn with probability
    proportional to its length. Intervals shorter than a tiny share of the segment are skipped. The answer is (-inf,
    low) where the segment is empty or the search was stopped.
    """
    best, at, room = -np.inf, low, 0.0
    if not high > low:
        return best, at
    # plain names, no helper in the loops: compiled code counts references on access to a tuple and on calls
    above, below, limit, positive = tables.above, tables.below, tables.limit, tables.positive
    places, contribution, stop = tables.places, tables.contribution, tables.stop
    counts = np.zeros(places.shape[0], np.int64)
    fewer = np.zeros(tables.counts_size, np.int64)
    breaks = np.empty(below.shape[0], np.float64)
    inside = np.empty(below.shape[0], np.int64)  # q where the pair is won from its breakpoint on, else ~q
    m = 0
    for q in range(below.shape[0]):
        if (q & _MASK) == 0 and stop[0] != 0:
            return best, at
        i, k = above[q], below[q]
        required, slope = limit[q] - f[i] + f[k], g[i] - g[k]
        rising = slope >= 0.0
        t = required / slope if slope != 0.0 else (-np.inf if required <= 0.0 else np.inf)
        won = (t <= low) == rising  # just behind low
        breaks[m] = t
        inside[m] = q if rising else ~q
        m += 1 if low < t < high else 0  # a branch would be mispredicted too often
        if not won:
            counts[positive[q]] += 1
    value = _value_of_counts(tables, counts, fewer)
    breaks, inside = _sort(breaks[:m], inside[:m], low, high, stop)
    if stop[0] != 0:
        return -np.inf, low
    narrow = _NARROW * (high - low)
    last = low
    for e in range(m + 1):
        if (e & _MASK) == 0 and stop[0] != 0:
            return -np.inf, low
        following = breaks[e] if e < m else high
        width = following - last
        if width > narrow:
            tie = TIE * (1.0 + abs(value))
            if value > best + tie:
                best, at, room = value, 0.5 * (last + following), width
            elif value > best - tie:
                room += width
                if uniform(state) * room < width:
                    at = 0.5 * (last + following)
        if e < m:
            q = inside[e]
            up = 1 if q < 0 else 0  # a lost pair raises the count of its positive by 1, a won one lowers it
            q = ~q if q < 0 else q
            i = positive[q]
            c = counts[i] + up
            counts[i] = c + up - 1
            here, counts_at = places[i, 0] + c, places[i, 1]
            if counts_at >= 0:
                here += fewer[counts_at + c] - up
                fewer[counts_at + c] += 1 - 2 * up
            change = contribution[here] - contribution[here - 1]
            value += change if up else -change
            last = following
    return best, at


@njit(cache=True, nogil=True)
def clip(tables: Tables, w: FloatArray, v: FloatArray, low: float, high: float) -> tuple[float, float]:
    """Return the part of low <= t <= high on which w + t v satisfies the box and the side constraints."""
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
def _priced(tables: Tables, w: FloatArray) -> int:
    """Return the number of non-zero weights that have a price."""
    count = 0
    for j in range(w.shape[0]):
        count += 1 if w[j] != 0.0 and tables.priced[j] != 0 else 0
    return count


@njit(cache=True, nogil=True)
def _along(w: FloatArray, t: float, v: FloatArray) -> FloatArray:
    """Return w + t v: a loop, because array expressions are slow to compile."""
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
    """Move w and its scores f to the target, scaled to max |w_j| = 1 if there are no side constraints.

    Scaling up never lowers the value (`ltr.exact.problem`).
    """
    largest = abs(target[_largest(target)])
    if largest == 0.0 or tables.sides:
        largest = 1.0
    for j in range(w.shape[0]):
        w[j] = min(1.0, max(-1.0, target[j] / largest))
    _scores(tables, w, f)


@njit(cache=True, nogil=True)
def _coordinate(tables: Tables, w: FloatArray, f: FloatArray, value: float, j: int, state: State) -> float:
    """Search for the best w_j with the others fixed up to one common factor; change w and f, return the new value.

    There are three segments: w_j in [-1, 1] with the others fixed, then w_j = 1 and w_j = -1 with the others scaled
    down to 0.
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
    alone = rest[_largest(rest)] == 0.0
    partners = _priced(tables, rest)
    price = tables.C * (partners + int(tables.priced[j]))
    best = -np.inf
    target = w
    for sign in (0.0, 1.0, -1.0):
        if sign == 0.0:
            low, high = clip(tables, rest, axis, -1.0, 1.0)
            found, t = line_search(tables, others, column, low, high, state)
        elif alone:
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
    if tables.C > 0.0 and tables.priced[j] != 0 and w[j] != 0.0:
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
    """Move w to the best point on the line through w along v inside the box; change f too, return the new value."""
    low, high = clip(tables, w, v, -np.inf, np.inf)
    if not np.isfinite(high - low):
        return value
    g = np.empty(f.shape[0], np.float64)
    _scores(tables, v, g)
    found, t = line_search(tables, f, g, low, high, state)
    target = _along(w, t, v)
    found -= tables.C * _priced(tables, target)
    if found < value - TIE * (1.0 + abs(value)):
        return value
    _step_to(tables, w, f, target)
    return found


@njit(cache=True, nogil=True)
def _inside(project: FloatArray, v: FloatArray) -> FloatArray:
    """Return the direction nearest to v that keeps the equality constraints, v itself where there are none."""
    if project.shape[0] == 0:
        return v
    inside = np.zeros(v.shape[0], np.float64)
    for j in range(v.shape[0]):
        inside = _along(inside, v[j], project[j])
    return inside


@njit(cache=True, nogil=True)
def _random_direction(tables: Tables, w: FloatArray, project: FloatArray, state: State) -> FloatArray:
    """Return a direction on about 2 to d coordinates, inside the equality constraints.

    With C > 0 it stays on the support of w and free columns: a dense step would pay for every feature at once. Without
    side constraints w and its multiples rank alike, so the largest |w_j| is kept as it is.
    """
    d = w.shape[0]
    top = _largest(w)
    share = max(uniform(state), 2.0 / d)
    v = np.zeros(d, np.float64)
    for j in range(d):
        if (tables.C == 0.0 or tables.priced[j] == 0 or w[j] != 0.0) and uniform(state) < share:
            v[j] = 2.0 * uniform(state) - 1.0
    if not tables.sides and w[top] != 0.0:
        v = _along(v, -v[top] / w[top], w)
        v[top] = 0.0
    return _inside(project, v)


def new_memory(d: int) -> IntArray:
    """Return the memory of `ascend`: place in the round, lines since the last gain, order of coordinates."""
    return np.concatenate([[0, 0], np.arange(d)])


@njit(cache=True, nogil=True)
def ascend(
    tables: Tables,
    w: FloatArray,
    project: FloatArray,
    extra: int,
    lines: int,
    memory: IntArray,
    state: State,
) -> tuple[float, int]:
    """Search along coordinates in random order and `extra` random directions, round after round; change w in place.

    Moves between equal values are made, so that the ascent crosses plateaus. It ends after a round without a gain. It
    returns early after `lines` line searches; call it again with the same w and memory to go on.

    Args:
        tables: the problem.
        w: weights in the box that satisfy the side constraints, (d,).
        project: orthogonal projection on the directions that keep the equality constraints, (d, d); (0, 0) when
            there are none.
        extra: random directions in a round.
        lines: most line searches of this call.
        memory: from `new_memory`.
        state: state of the random numbers, see `uniform`.

    Returns:
        (objective at w, line searches left): none left means that the ascent may go on.
    """
    d = w.shape[0]
    f = np.empty(tables.columns.shape[1], np.float64)
    _scores(tables, w, f)
    value = value_of_scores(tables, f) - tables.C * _priced(tables, w)
    order = memory[2:]
    length = d + extra + (1 if tables.sides else 0)
    while memory[1] < length:
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
