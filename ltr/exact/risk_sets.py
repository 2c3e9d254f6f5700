r"""Risk scores of yes/no columns: all sets of columns, bounded by what any function of them can predict.

A set S of m yes/no columns parts the rows into at most 2^m patterns. No function of these columns has a smaller loss
than the shares of positives of the patterns. So with p_q and n_q the positives and negatives of pattern q, of N rows,

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
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ltr.exact import tuning
from ltr.exact.problem import FloatArray, IntArray
from ltr.exact.risk import RiskProblem, best_intercepts
from ltr.exact.risk_starts import fit_in_box
from ltr.exact.state import SolveState
from ltr.outcomes import chance_of

Counts = NDArray[np.int32]

_ROOM = 1e-11  # rounding of the bound of a set
_CLOSED = 1e-13  # difference of losses up to which a box holds nothing better


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
    classes = [_Bits.of(problem.X[problem.y == label][:, columns]) for label in (1, 0)]
    if size < 2:
        ones = np.array([bits.pairs(bits.all).diagonal() for bits in classes])
        whole = np.array([[bits.rows] for bits in classes])
        parts = [whole] if size == 0 else [ones, whole - ones]
        found = sum((entropy[part.sum(axis=0)] - entropy[part].sum(axis=0) for part in parts), np.zeros(1)) / n
        yield columns[:, None] if size else np.zeros((1, 0), dtype=np.int64), found
        return
    known: dict[tuple[int, ...], tuple[Counts, Counts]] = {}  # counts of the rows with all of some columns
    for prefix in itertools.combinations(range(len(columns) - 2), size - 2):
        state.check()
        begin = prefix[-1] + 1 if prefix else 0
        subsets = [tuple(itertools.compress(prefix, ones)) for ones in itertools.product((0, 1), repeat=size - 2)]
        for some in subsets:
            if some not in known and (len(some) < size - 2 or not some):
                known[some] = _counts(classes, some, 0)
        tables = [known[some] for some in subsets[:-1]]
        tables.append(known[prefix] if prefix in known else _counts(classes, prefix, begin))
        width = len(columns) - begin
        pairs = np.stack([table[0][:, -width:, -width:] for table in tables]).reshape(
            (2,) * (size - 2) + (2, width, width)
        )
        totals = np.stack([table[1] for table in tables]).reshape((2,) * (size - 2) + (2,))
        for axis in range(size - 2):  # from the rows with all of some columns to those with exactly these
            zero = (slice(None),) * axis + (0,)
            one = (slice(None),) * axis + (1,)
            pairs[zero] -= pairs[one]
            totals[zero] -= totals[one]
        pairs, totals = pairs.reshape(-1, 2, width, width), totals.reshape(-1, 2, 1)
        first, second = np.triu_indices(width, 1)
        both, singles = pairs[:, :, first, second], pairs.diagonal(axis1=2, axis2=3)
        a, b = singles[:, :, first], singles[:, :, second]
        found = np.zeros(len(first))
        for part in (both, a - both, b - both, totals - a - b + both):
            found += (entropy[part.sum(axis=1)] - entropy[part].sum(axis=1)).sum(axis=0)
        chosen = np.tile(columns[list(prefix)], (len(first), 1)).reshape(len(first), size - 2)
        yield np.column_stack([chosen, columns[begin + first], columns[begin + second]]), found / n


class _Bits:
    """Rows as bits: word w of column j has the answers of 64 rows."""

    def __init__(self, words: NDArray[np.uint64], rows: int) -> None:
        self.words, self.rows = words, rows
        self.all = np.full(words.shape[1], ~np.uint64(0))

    @classmethod
    def of(cls, X: FloatArray) -> _Bits:
        """Return the bits of answers, (rows, columns)."""
        packed = np.packbits(X.T > 0, axis=1)
        padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
        return cls(np.ascontiguousarray(padded).view(np.uint64), len(X))

    def having(self, columns: tuple[int, ...]) -> NDArray[np.uint64]:
        """Return the rows that answer yes to all of some columns."""
        found: NDArray[np.uint64] = np.bitwise_and.reduce(self.words[list(columns)], axis=0) if columns else self.all
        return found

    def count(self, columns: tuple[int, ...]) -> int:
        """Return the number of rows that answer yes to all of some columns."""
        return int(np.bitwise_count(self.having(columns)).sum()) if columns else self.rows

    def pairs(self, rows: NDArray[np.uint64], begin: int = 0) -> Counts:
        """Count the yes answers of some rows to both of two columns, those from `begin` on, (columns, columns).

        The second column is the first one or behind it; what is below the diagonal is of no use.
        """
        words = self.words[begin:]
        own, found = words & rows, np.zeros((len(words), len(words)), dtype=np.int32)
        block = max(1, min(tuning.RISK_COLUMNS, tuning.RISK_WORDS // max(1, words.size)))
        for at in range(0, len(words), block):
            both = own[at : at + block, None] & words[None, at:]
            found[at : at + block, at:] = np.bitwise_count(both).sum(axis=2, dtype=np.int32)
        return found


def _counts(classes: list[_Bits], columns: tuple[int, ...], begin: int) -> tuple[Counts, Counts]:
    """Count positives and negatives that have all of some columns, with pairs of others, and alone."""
    pairs = np.stack([bits.pairs(bits.having(columns), begin) for bits in classes])
    return pairs, np.array([bits.count(columns) for bits in classes], dtype=np.int32)


def _search(state: SolveState, problem: RiskProblem, columns: IntArray) -> None:
    """Offer the best points, none of them 0, of a set of columns, if they are better than the best card."""
    rows, positive, negative = problem.merged
    size = len(columns)
    code = (rows[:, columns] @ (2.0 ** np.arange(size))).astype(np.int64)
    weights = [np.bincount(code, weight, 2**size).astype(np.float64) for weight in (positive, negative)]
    patterns = (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(np.float64)
    kept = weights[0] + weights[1] > 0
    own = np.column_stack([patterns, np.ones(2**size)])[kept]
    positive, negative = weights[0][kept], weights[1][kept]
    price, whole = problem.C * size, positive + negative
    smallest = problem.least_points[columns]

    def evaluate(points: FloatArray) -> None:
        loss = float(best_intercepts((own[:, :-1] @ points)[:, None], positive, negative, problem.intercepts)[1][0])
        if -loss - price > state.value - _CLOSED:
            card = np.zeros(problem.d)
            card[columns] = points
            state.offer(card)

    ends = problem.intercepts
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
        off = np.where(low < high, np.abs(points - rounded), -1.0)
        j = int(np.argmax(off))
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
