"""Good risk scores to start from, without any proof.

Columns with real points are added one by one and rounded in every way. Exchanges of one column, or of one column's
points, improve the best card.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.exact import tuning
from ltr.exact.problem import FloatArray, IntArray
from ltr.exact.risk import RiskProblem, loss_of
from ltr.exact.state import SolveState
from ltr.outcomes import chance_of


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
    chosen = list(problem.required)
    w, b, _ = _fit(problem, chosen, np.zeros(problem.d), 0.0)
    for _ in range(problem.d):
        yield from _roundings(problem, w)
        if state.seconds > end:
            return
        state.check()
        slope = problem.tangent(w, b)[1][:-1]
        spread = np.maximum(problem.merged[0].std(axis=0), 1e-12)
        helps = np.where(slope > 0, problem.least < 0, problem.largest > 0)
        gain = np.abs(slope) / spread * helps
        fits = []
        for j in np.argsort(-gain, kind="stable").tolist():
            if gain[j] > 0 and j not in chosen and _may_have(problem, [*chosen, j]):
                fits.append((_fit(problem, [*chosen, j], w, b), j))
                state.check()
            if len(fits) >= tuning.CANDIDATES or state.seconds > end:
                break
        if not fits:
            return
        (w, b, _), j = min(fits, key=lambda one: one[0][2])
        chosen.append(j)
    yield from _roundings(problem, w)


def _may_have(problem: RiskProblem, columns: list[int]) -> bool:
    """Whether the columns are not too many, for all and for each rule; lower limits may be met later."""
    own = set(columns)
    if len(own - set(problem.free)) > problem.max_nonzeros:
        return False
    rules = problem.conditions.all_rules
    return all(rule.when or len(own & set(rule.columns)) <= rule.at_most for rule in rules)


def _fit(
    problem: RiskProblem, columns: list[int], start: FloatArray, intercept: float
) -> tuple[FloatArray, float, float]:
    """Return real points of some columns within their limits that have about the least loss, intercept and loss."""
    rows, positive, negative = problem.merged
    own = np.column_stack([rows[:, columns], np.ones(len(rows))])
    low = np.append(problem.least[columns].astype(np.float64), problem.intercepts[0])
    high = np.append(problem.largest[columns].astype(np.float64), problem.intercepts[1])
    x, loss = fit_in_box(own, positive, negative, low, high, np.append(start[columns], intercept))
    w = np.zeros(problem.d)
    w[columns] = x[:-1]
    return w, float(x[-1]), loss


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


def _roundings(problem: RiskProblem, w: FloatArray) -> Iterator[FloatArray]:
    """Yield what real points are rounded to: up and down in all combinations, or the nearest ones."""
    used = np.flatnonzero(w)
    if len(used) > tuning.ROUNDED:
        yield np.rint(w)
        return
    ways = [sorted({math.floor(value), math.ceil(value)}) for value in w[used].tolist()]
    cards = np.zeros((math.prod(map(len, ways)), problem.d))
    cards[:, used] = list(itertools.product(*ways)) if len(used) else np.zeros((1, 0))
    best = np.argsort(-_values(problem, cards), kind="stable").tolist()
    yield from itertools.islice((cards[at] for at in best if problem.allowed(cards[at])), 2)
