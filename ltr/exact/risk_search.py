r"""Good risk scores to start from, and the search of all sets of yes/no columns.

*Starts* prove nothing: columns with real points are added one by one and rounded in every way, and exchanges of one
column, or of one column's points, improve the best card.

*Sets.* A set S of m yes/no columns parts the rows into at most 2^m patterns. No function of these columns has a smaller
loss than the shares of positives of the patterns. So with p_q and n_q the positives and negatives of pattern q, of N
rows,

    loss of any card of the columns S  >=  1/N sum_q (p_q + n_q) log(p_q + n_q) - p_q log p_q - n_q log n_q.

These counts need a few operations on bits for each set, and the bound leaves few sets whose points have to be searched:
of the 376,992 sets of five of the 36 columns of RiskSLIM's adult table, some 30. They are searched in the order of
their bounds, so that the bound of the first one left is that of all cards. In a set the rows are its patterns, and
points are searched by branching: the loss is convex, so that with real points x in a box of points,

    loss(y)  >=  loss(x) + sum_j min over the box of slope_j (y_j - x_j)        for all y in the box,

whatever x is; it is the best one that a few Newton steps find.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.exact import tuning
from ltr.exact.problem import FloatArray, IntArray
from ltr.exact.risk import RiskProblem, best_intercepts, loss_of
from ltr.exact.state import SolveState
from ltr.outcomes import chance_of

Counts = NDArray[np.int32]

_ROOM = 1e-11  # rounding of the bound of a set
_CLOSED = 1e-13  # difference of losses up to which a box holds nothing better


def fit_in_box(
    rows: FloatArray, positive: FloatArray, negative: FloatArray, low: FloatArray, high: FloatArray, start: FloatArray
) -> tuple[FloatArray, float]:
    """Return weights between limits that have about the least loss, by projected Newton steps, and their loss."""
    whole, x = positive + negative, np.clip(start, low, high)
    totals = rows @ x
    loss = float(loss_of(totals, positive, negative))
    for _ in range(tuning.NEWTON_STEPS):
        chance = chance_of(totals)
        slope = (whole * chance - positive) @ rows
        free = ~(((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0)))
        if not free.any():
            break
        some = rows[:, free]
        curve = (some.T * (whole * chance * (1 - chance))) @ some
        step = np.zeros(len(x))
        damped = curve + tuning.RIDGE * (1e-6 + np.trace(curve)) * np.eye(len(curve))
        step[free] = np.linalg.solve(damped, slope[free])
        for halving in range(tuning.STEP_HALVINGS):
            new = np.clip(x - step * 0.5**halving, low, high)
            found = rows @ new
            better = float(loss_of(found, positive, negative))
            if better < loss:
                break
        else:
            break
        decrease, x, totals, loss = loss - better, new, found, better
        if decrease < tuning.LEAST_DECREASE:
            break
    return x, loss


# --- starts ----------------------------------------------------------------------------------------------------------


def offer_starts(state: SolveState, problem: RiskProblem, seconds: float) -> None:
    """Offer good cards, for at most some seconds."""
    end = state.seconds + seconds
    for points in _forward(state, problem, end):
        state.offer(points)
    polish(state, problem, end)


def polish(state: SolveState, problem: RiskProblem, end: float = math.inf) -> None:
    """Improve the best card by exchanges of one column, or of the points of one, until none helps."""
    if not math.isfinite(state.value):
        return
    while state.seconds < end:
        state.check()
        points = problem.points_of(state.weights)
        cards = np.array(list(_neighbours(problem, points)), dtype=np.int64).reshape(-1, problem.d)
        value, best = state.value, None
        block = max(1, tuning.RISK_TOTALS // len(problem.merged[0]))
        for begin in range(0, len(cards), block):
            state.check()
            some = cards[begin : begin + block]
            values = _values(problem, some)
            for at in np.argsort(-values, kind="stable").tolist():
                if values[at] <= value:
                    break
                if problem.allowed(some[at]):
                    value, best = float(values[at]), some[at]
                    break
        before = state.value
        if best is None or state.offer(best.astype(np.float64)) <= before:
            return


def _values(problem: RiskProblem, cards: NDArray[Any]) -> FloatArray:
    """Return the values of several cards, (c,), given their points, (c, d)."""
    losses = problem.losses(problem.merged[0] @ cards.T)[1]
    return -losses - problem.C * np.count_nonzero(cards[:, problem.counted], axis=1)


def _neighbours(problem: RiskProblem, points: IntArray) -> Iterator[IntArray]:
    """Yield the cards that differ in the points of one column, or have another column in place of one."""

    def changed(card: IntArray, j: int, to: int) -> IntArray:
        new = card.copy()
        new[j] = to
        return new

    used, b = np.flatnonzero(points).tolist(), problem.intercept(points)
    for j in used:
        for other in range(int(points[j]) - 2, int(points[j]) + 3):
            inside = problem.least[j] <= other <= problem.largest[j] and abs(other) >= problem.least_points[j]
            if inside and other != points[j]:
                yield changed(points, j, other)
    room = problem.nonzeros(points) < problem.max_nonzeros or len(problem.free) > 0
    bases = [(points, -1)] if room else []
    for j in used:
        bases.append((changed(points, j, 0), j))
        yield bases[-1][0]
    for card, out in bases:
        slope = problem.tangent(card.astype(np.float64), b)[1][:-1]
        most = np.where(slope > 0, -problem.least, problem.largest)
        gain = np.where(card == 0, np.abs(slope) * most, 0.0)
        for j in np.argsort(-gain, kind="stable")[: tuning.CANDIDATES].tolist():
            if gain[j] == 0 or j == out:
                continue
            for size in range(int(problem.least_points[j]), min(20, int(most[j])) + 1):
                yield changed(card, j, -size if slope[j] > 0 else size)


def _forward(state: SolveState, problem: RiskProblem, end: float) -> Iterator[FloatArray]:
    """Yield rounded cards of columns that are chosen one by one, each with the largest decrease of the loss."""
    rows, positive, negative = problem.merged
    rules, free = problem.conditions.all_rules, set(problem.free)

    def may_have(columns: set[int]) -> bool:  # not too many columns; lower limits may be met later
        few = len(columns - free) <= problem.max_nonzeros
        return few and all(rule.when or len(columns & set(rule.columns)) <= rule.at_most for rule in rules)

    def fitted(columns: list[int], start: FloatArray, intercept: float) -> tuple[FloatArray, float, float]:
        own = np.column_stack([rows[:, columns], np.ones(len(rows))])
        low = np.append(problem.least[columns].astype(np.float64), problem.intercepts[0])
        high = np.append(problem.largest[columns].astype(np.float64), problem.intercepts[1])
        x, loss = fit_in_box(own, positive, negative, low, high, np.append(start[columns], intercept))
        w = np.zeros(problem.d)
        w[columns] = x[:-1]
        return w, float(x[-1]), loss

    chosen = list(problem.required)
    w, b, _ = fitted(chosen, np.zeros(problem.d), 0.0)
    spread = np.maximum(rows.std(axis=0), 1e-12)
    for _ in range(problem.d):
        yield from _roundings(problem, w)
        if state.seconds > end:
            return
        state.check()
        slope = problem.tangent(w, b)[1][:-1]
        helps = np.where(slope > 0, problem.least < 0, problem.largest > 0)
        gain = np.abs(slope) / spread * helps
        fits = []
        for j in np.argsort(-gain, kind="stable").tolist():
            if gain[j] > 0 and j not in chosen and may_have({*chosen, j}):
                fits.append((fitted([*chosen, j], w, b), j))
                state.check()
            if len(fits) >= tuning.CANDIDATES or state.seconds > end:
                break
        if not fits:
            return
        (w, b, _), j = min(fits, key=lambda one: one[0][2])
        chosen.append(j)
    yield from _roundings(problem, w)


def _roundings(problem: RiskProblem, w: FloatArray) -> Iterator[FloatArray]:
    """Yield what real points are rounded to: the best of up and down in all combinations, or the nearest ones."""
    used = np.flatnonzero(w)
    if len(used) > tuning.ROUNDED:
        yield np.rint(w)
        return
    ways = [sorted({math.floor(value), math.ceil(value)}) for value in w[used].tolist()]
    cards = np.zeros((math.prod(map(len, ways)), problem.d))
    cards[:, used] = list(itertools.product(*ways)) if len(used) else np.zeros((1, 0))
    best = np.argsort(-_values(problem, cards), kind="stable").tolist()
    yield from itertools.islice((cards[at] for at in best if problem.allowed(cards[at])), 2)


# --- all sets of yes/no columns ----------------------------------------------------------------------------------


def work_of(problem: RiskProblem) -> float:
    """Return about how many seconds it takes to bound all sets of columns; infinite where the bounds do not apply."""
    X, weight = problem.X, problem.weight
    if problem.free or np.any((X != 0) & (X != 1)) or np.any(weight != weight[0]):
        return math.inf
    d, m = len(_usable(problem)), problem.max_nonzeros
    words = [math.comb(d, size) * (problem.n / 64 + 40.0 * 2**size) for size in range(min(d, m) + 1)]
    return sum(words) / tuning.RISK_WORDS_PER_SECOND


def search_sets(state: SolveState, problem: RiskProblem, end: float) -> bool:
    """Bound all sets of columns and search those that may have a better card; return whether that was completed.

    It is given up where bounding the sets takes longer than until `end`, or where too many are left to search.
    """
    bounds, sets = [], []
    for size in range(min(len(_usable(problem)), problem.max_nonzeros) + 1):
        for some, losses in _bounded(problem, size, state):
            costs = losses - _ROOM + problem.C * size
            kept = np.flatnonzero(costs < -state.value)
            for rule in problem.conditions.all_rules:
                kept = kept[rule.admitted(some[kept], problem.d)]
            bounds.append(costs[kept])
            sets += [some[at] for at in kept]
            if state.seconds > end or len(sets) > tuning.MOST_RISK_SETS:
                return False
    order = np.argsort(every := np.concatenate(bounds), kind="stable")
    for at in order.tolist():
        state.prove(max(-float(every[at]), state.value))
        if every[at] >= -state.value:
            break
        if state.limits.gap > 0 and state.gap <= state.limits.gap:
            return True
        state.nodes += 1
        _search(state, problem, sets[at])
    if math.isfinite(state.value):
        state.prove(state.value + _CLOSED)
    return True


def _usable(problem: RiskProblem) -> IntArray:
    """Return the columns that may have points."""
    return np.flatnonzero((problem.least < 0) | (problem.largest > 0))


def _bounded(problem: RiskProblem, size: int, state: SolveState) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield sets of so many columns, (sets, size), with the least loss of any function of the columns, (sets,)."""
    columns, n = _usable(problem), problem.n
    entropy = np.zeros(n + 1)
    entropy[1:] = np.arange(1, n + 1) * np.log(np.arange(1, n + 1))
    classes = [_bits_of(problem.X[problem.y == label][:, columns]) for label in (1, 0)]
    counts_of = cache(lambda some: _counts(classes, some))
    if size < 2:
        pairs, totals = counts_of(())
        ones, whole = pairs.diagonal(axis1=1, axis2=2), totals[:, None]
        parts = [whole] if size == 0 else [ones, whole - ones]
        found = sum((entropy[part.sum(axis=0)] - entropy[part].sum(axis=0) for part in parts), np.zeros(1)) / n
        yield columns[:, None] if size else np.zeros((1, 0), dtype=np.int64), found
        return
    for prefix in itertools.combinations(range(len(columns) - 2), size - 2):
        state.check()
        begin = prefix[-1] + 1 if prefix else 0
        width = len(columns) - begin
        subsets = [tuple(itertools.compress(prefix, ones)) for ones in itertools.product((0, 1), repeat=size - 2)]
        tables = [*map(counts_of, subsets[:-1]), _counts(classes, prefix, begin)]
        shape = (2,) * (size - 1)
        pairs = np.stack([table[0][:, -width:, -width:] for table in tables]).reshape(*shape, width, width)
        totals = np.stack([table[1] for table in tables]).reshape(shape)
        for axis in range(size - 2):  # from the rows with all of some columns to those with exactly these
            for counted in (pairs, totals):
                without, having = np.moveaxis(counted, axis, 0)
                without -= having
        pairs, totals = pairs.reshape(-1, 2, width, width), totals.reshape(-1, 2, 1)
        first, second = np.triu_indices(width, 1)
        both, singles = pairs[:, :, first, second], pairs.diagonal(axis1=2, axis2=3)
        a, b = singles[:, :, first], singles[:, :, second]
        found = np.zeros(len(first))
        for part in (both, a - both, b - both, totals - a - b + both):
            found += (entropy[part.sum(axis=1)] - entropy[part].sum(axis=1)).sum(axis=0)
        chosen = np.tile(columns[list(prefix)], (len(first), 1)).reshape(len(first), size - 2)
        yield np.column_stack([chosen, columns[begin + first], columns[begin + second]]), found / n


def _bits_of(X: FloatArray) -> NDArray[np.uint64]:
    """Return rows as bits, (columns + 1, words): word w of column j has the answers of 64 rows, yes in the last one."""
    packed = np.packbits(np.vstack([X.T > 0, np.ones(len(X), dtype=np.bool_)]), axis=1)
    return np.ascontiguousarray(np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))).view(np.uint64)


def _counts(classes: Sequence[NDArray[np.uint64]], columns: tuple[int, ...], begin: int = 0) -> tuple[Counts, Counts]:
    """Count the rows of each class that have all of some columns, and those of them that have each two others.

    The two are columns from `begin` on, (classes, columns, columns), the second not before the first.
    """
    pairs, totals = [], []
    for words in classes:
        having, others = np.bitwise_and.reduce(words[[-1, *columns]], axis=0), words[begin:-1]
        own, found = others & having, np.zeros((len(others), len(others)), dtype=np.int32)
        block = max(1, min(tuning.RISK_COLUMNS, tuning.RISK_WORDS // max(1, others.size)))
        for at in range(0, len(others), block):
            both = own[at : at + block, None] & others[None, at:]
            found[at : at + block, at:] = np.bitwise_count(both).sum(axis=2, dtype=np.int32)
        pairs.append(found)
        totals.append(np.bitwise_count(having).sum(dtype=np.int32))
    return np.stack(pairs), np.array(totals)


def _search(state: SolveState, problem: RiskProblem, columns: IntArray) -> None:
    """Offer the best points, none of them 0, of a set of columns, if they are better than the best card."""
    rows, *classes = problem.merged
    size = len(columns)
    code = (rows[:, columns] @ (2.0 ** np.arange(size))).astype(np.int64)
    weights = [np.bincount(code, weight, 2**size).astype(np.float64) for weight in classes]
    patterns = (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(np.float64)
    kept = weights[0] + weights[1] > 0
    own = np.column_stack([patterns, np.ones(2**size)])[kept]
    positive, negative = weights[0][kept], weights[1][kept]
    price, whole = problem.C * size, positive + negative
    smallest, ends = problem.least_points[columns], problem.intercepts

    def evaluate(points: FloatArray) -> None:
        loss = float(best_intercepts((own[:, :-1] @ points)[:, None], positive, negative, ends)[1][0])
        if -loss - price > state.value - _CLOSED:
            card = np.zeros(problem.d)
            card[columns] = points
            state.offer(card)

    boxes = [(problem.least[columns].astype(float), problem.largest[columns].astype(float), np.zeros(size + 1))]
    while boxes:
        state.check()
        low, high, start = boxes.pop()
        if np.any((high < smallest) & (low > -smallest)):  # a column without points
            continue
        if np.all(low == high):
            evaluate(low)
            continue
        floor, ceiling = np.append(low, ends[0]), np.append(high, ends[1])
        x, loss = fit_in_box(own, positive, negative, floor, ceiling, start)
        slope = (whole * chance_of(own @ x) - positive) @ own
        bound = loss + float(np.minimum(slope * (floor - x), slope * (ceiling - x)).sum())
        if bound + price >= -state.value - _CLOSED:
            continue
        points = x[:-1]
        rounded = _rounded(points, low, high, smallest)
        evaluate(rounded)
        j = int(np.argmax(np.where(low < high, np.abs(points - rounded), -1.0)))
        for below, above in _parts(points[j], rounded[j], low[j], high[j], smallest[j]):
            left, right = low.copy(), high.copy()
            left[j], right[j] = below, above
            boxes.append((left, right, x))


def _rounded(points: FloatArray, low: FloatArray, high: FloatArray, smallest: IntArray) -> FloatArray:
    """Return the points next to real ones that a card may have, in a box."""
    up = np.where(high >= smallest, np.clip(np.rint(points), np.maximum(low, smallest), high), math.inf)
    down = np.where(low <= -smallest, np.clip(np.rint(points), low, np.minimum(high, -smallest)), -math.inf)
    return np.where(np.abs(up - points) <= np.abs(down - points), up, down)


def _parts(value: float, rounded: float, low: float, high: float, smallest: int) -> list[tuple[float, float]]:
    """Return parts of an interval of points that hold all that a card may have, the one to search first last."""
    if abs(value) < smallest and low < smallest and high > -smallest:
        parts = [(low, min(high, -smallest)), (max(low, smallest), high)]
    elif value == rounded:
        parts = [(low, rounded - 1), (rounded + 1, high), (rounded, rounded)]
    else:
        parts = [(low, math.floor(value)), (math.floor(value) + 1, high)]
    kept = [part for part in parts if part[0] <= part[1]]
    return sorted(kept, key=lambda part: -min(abs(value - part[0]), abs(value - part[1])))
