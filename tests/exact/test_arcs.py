"""Bounds over arcs of directions against enumerations of all crossings in rational arithmetic."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ltr.exact import Limits, LinearConstraints, RerankProblem, Status, solve
from ltr.exact.arcs import apply_to, search_arcs
from ltr.exact.state import SolveState, Stopped
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.native import Arcs
from tests.tiers import examples

STATISTICS = ("dcg", "dcg@3", "auc", "mrr", "hits@4")
NUMBERS = {
    "real": lambda rng, n: rng.normal(size=(n, 2)),
    "tenths": lambda rng, n: rng.integers(-3, 4, (n, 2)) * 0.1,
    "yes and no": lambda rng, n: rng.integers(0, 2, (n, 2)) * 1.0,
    "equal columns": lambda rng, n: np.repeat(rng.normal(size=(n, 1)), 2, axis=1),
    "an ulp apart": lambda rng, n: np.nextafter(rng.integers(1, 3, (n, 2)) * 0.1, rng.integers(0, 2, (n, 2))),
    "all sizes": lambda rng, n: rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-150, 150, 2),
    "huge": lambda rng, n: rng.integers(0, 3, (n, 2)) * 1e307 / 4,
}
SIDES = [(0, 1), (0, -1), (1, 1), (1, -1)]


def draw(numbers, seed, **options):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11))
    y = rng.integers(0, int(rng.integers(2, 5)), n)
    y[:2] = 0, 1
    return RerankProblem(
        NUMBERS[numbers](rng, n),
        y,
        STATISTICS[seed % len(STATISTICS)],
        margin=[1e-4, 0.23][seed // 2 % 2],
        qid=rng.integers(0, 3, n) if seed % 2 else None,
        normalize=seed % 3 == 0,
        **options,
    )


def value_at(p, keys):
    """The statistic of keys, w·x - margin * grade, by sorting them: of equal ones the higher grade is above."""
    terms = []
    for members in p.lists:
        ascending = sorted(members.tolist(), key=lambda i: (keys[i], p.grades[i]))
        terms += [p.gains[i] * a for i, a in zip(ascending, p.rank_weights(len(members)), strict=True)]
    return math.fsum(terms) + p.shift


def values_on(p, side, low, high):
    """The values at all crossings of a part of a side of the square, and between them."""
    fixed, sign = side
    X, margin = [[Fraction(x) for x in row] for row in p.X.tolist()], Fraction(p.margin)
    f, g = [sign * row[fixed] - margin * int(h) for row, h in zip(X, p.grades, strict=True)], [r[1 - fixed] for r in X]
    low, high = Fraction(low), Fraction(high)
    pairs = [(i, k) for own in p.lists for i, k in itertools.combinations(own.tolist(), 2) if g[i] != g[k]]
    crossings = {t for i, k in pairs if low < (t := (f[k] - f[i]) / (g[i] - g[k])) < high}
    points = sorted({low, high, *crossings})
    between = [(a + b) / 2 for a, b in itertools.pairwise(points)]
    return [value_at(p, [a + t * b for a, b in zip(f, g, strict=True)]) for t in (*points, *between)]


def arcs_of(p, threads=1):
    items = p.ranked_items()
    offset = p.margin * items.steps.astype(float)
    return Arcs(items.row, offset, items.gain, items.start, items.weight, items.weight_at, items.shift, threads)


@pytest.mark.parametrize("numbers", NUMBERS)
def test_no_value_on_an_arc_exceeds_its_bound(numbers):
    exact, count = 0, examples(20, slow=60)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        p, arcs = draw(numbers, seed), arcs_of(draw(numbers, seed), threads=1 + seed % 2)
        fixed, sign = side = SIDES[seed % 4]
        ends = np.sort(np.append(rng.uniform(-1, 1, (3, 2)), [[-1.0, 1.0]], axis=0), axis=1)
        f, g = sign * p.X[:, fixed], np.ascontiguousarray(p.X[:, 1 - fixed])
        for most in (-1.0, 0.0, 3.0, 1e9):
            for (low, high), (bound, pairs, at, until) in zip(
                ends, arcs.bound(f, g, *ends.T.copy(), most), strict=True
            ):
                best = max(values_on(p, side, low, high))
                assert bound >= best - 1e-12 * p.trivial_bound
                assert bound <= p.trivial_bound * (1 + 1e-12)
                assert math.isnan(at) == math.isnan(until) == (pairs > most)
                if pairs <= most:
                    assert low <= at <= until <= high
                    exact += bound <= best + 1e-9 * p.trivial_bound
    assert exact >= count * (5 if numbers == "real" else 1)


@pytest.mark.parametrize("numbers", NUMBERS)
def test_the_value_proven_is_the_largest_of_all_directions(numbers, monkeypatch):
    proven, count = 0, examples(20, slow=50)
    for seed in range(count):
        monkeypatch.setattr("ltr.exact.tuning.ARC_CHANGES", seed % 3)
        monkeypatch.setattr("ltr.exact.tuning.ARC_CHANGES_PER_ITEM", seed % 2)
        p = draw(numbers, seed)
        state = SolveState(p, Limits(time_limit=60.0, node_limit=1000))
        assert apply_to(p, state, 1)
        state.offer(np.zeros(2))
        try:
            status = search_arcs(state, threads=1 + seed % 2).status
        except Stopped as stopped:  # pairs whose margin is lost in rounding, on the whole circle
            status = stopped.status
        best = max(max(values_on(p, side, -1, 1)) for side in SIDES)
        best = max(best, p.evaluate(np.zeros(2)))
        assert state.value <= best + 1e-12 * p.trivial_bound
        assert state.bound >= best - 1e-12 * p.trivial_bound
        if status is Status.OPTIMAL:
            assert state.value == pytest.approx(best, rel=1e-12)
            proven += 1
    assert proven >= count * (1 if numbers == "real" else 0.3)


def test_a_base_with_a_positive_weight_and_other_side_constraints():
    for seed in range(40):
        rows = [[-1.0, 0.0], [0.5, 1.0]][: 1 + seed % 2]
        p = draw("real", seed, constraints=LinearConstraints(rows, np.zeros(len(rows))))
        arcs = SolveState(p, Limits(time_limit=60.0))
        assert search_arcs(arcs, 1).status is Status.OPTIMAL
        boxes = solve(p, WeightSpaceSearch(scip=False, threads=1), Limits(time_limit=60.0))
        assert boxes.status is Status.OPTIMAL
        assert arcs.value == pytest.approx(boxes.value, rel=1e-12)
        assert p.feasible(arcs.weights)


@pytest.mark.parametrize("statistic", ["auc", "dcg"])
def test_long_lists_of_two_columns_are_proven(statistic):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    p = RerankProblem(X, X @ [1.0, 0.4] + rng.normal(size=4000) > 1, statistic)
    solution = solve(p, limits=Limits(time_limit=60.0))
    assert solution.status is Status.OPTIMAL
    assert solution.bound == solution.value == p.evaluate(solution.weights)
    assert solution.nodes < 1000
    subranks = dataclasses.replace(p, ties="subrank")
    state = SolveState(subranks, Limits(time_limit=60.0))
    state.offer(solution.weights)
    assert search_arcs(state, 2).status in (Status.OPTIMAL, Status.INEXACT)
    assert state.value == subranks.evaluate(state.weights) <= state.bound <= solution.bound + 1e-12 * solution.bound
    assert state.gap < 1e-3


def test_one_column_has_two_directions():
    X = np.random.default_rng(0).normal(size=(500, 1))
    p = RerankProblem(X, X[:, 0] < 0.5)
    solution = solve(p, limits=Limits(time_limit=60.0))
    assert (solution.status, solution.weights.tolist()) == (Status.OPTIMAL, [-1.0])


def test_limits_of_a_search_over_arcs():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    p = RerankProblem(X, np.random.default_rng(1).random(3000) < 0.3)
    assert solve(p, limits=Limits(time_limit=60.0, gap=0.05)).status is Status.GAP_LIMIT
    stopped = solve(p, limits=Limits(time_limit=60.0, node_limit=8))
    assert stopped.status is Status.NODE_LIMIT
    assert stopped.value < stopped.bound < p.trivial_bound
    with pytest.raises(Stopped):
        search_arcs(SolveState(p, Limits(time_limit=1e-9)), 1)


@pytest.mark.parametrize(
    "options",
    [
        {"C": 0.1},
        {"max_nonzeros": 1},
        {"required": [0]},
        {"integer": 3},
        {"constraints": LinearConstraints([[1.0, 1.0]], [0.5])},
        {"y": [0, 1, 2, 1], "ties": "subrank"},
    ],
)
def test_problems_in_which_more_than_the_direction_matters_are_left_to_boxes(options):
    p = RerankProblem(**{"X": np.eye(4)[:, :2], "y": [0, 1, 1, 0], **options})
    assert not apply_to(p, SolveState(p, Limits()), 1)
    assert not apply_to(RerankProblem(np.eye(3), [0, 1, 1]), SolveState(p, Limits()), 1)
    free = RerankProblem(np.eye(4)[:, :2], [0, 1, 1, 0], max_nonzeros=1, free=[0])
    assert apply_to(free, SolveState(free, Limits()), 1)
    assert not apply_to(free, SolveState(free, Limits(memory_limit=1e-6)), 1)
