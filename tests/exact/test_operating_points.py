"""Bounds from operating points: never below a value, and exact where the search says so."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ltr.exact import Limits, RerankProblem, Status, solve
from ltr.exact.weight_space import WeightSpaceSearch, search
from ltr.exact.weight_space.operating_points import OperatingPointBounds
from ltr.exact.weight_space.space import BEYOND, space_of
from ltr.native import OperatingPoints
from tests.reference import cell_optimum, representatives
from tests.tiers import examples, slow_but

STATISTICS = (
    *("dcg", "auc", "dcg@3", "mrr", "wta", "pauc@3", "power(p=3)", "dcg(base=e)"),
    *("hits@3", "precision@3", "recall@3"),
)
MARGINS = (1e-4, 1e-9, 0.05, 0.5)


def random_list(seed):
    """Features with ties and duplicates, or without; few or many of them; positives that stand out or not."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 13)), int(rng.integers(1, 5))
    whole = rng.integers(-2, 3, size=(n, d)).astype(float)
    X = whole if seed % 3 == 0 else np.round(rng.normal(size=(n, d)), 2) * (1e3 if seed % 7 == 0 else 1.0)
    y = (X[:, 0] / (np.abs(X[:, 0]).max() + 1e-9) + rng.normal(size=n) > 0).astype(int)
    y[:3] = 0, 1, 1
    statistic, margin = STATISTICS[seed % len(STATISTICS)], MARGINS[seed // 2 % len(MARGINS)]
    return RerankProblem(X, y, statistic=statistic, margin=margin, C=0.1 * (seed % 5 == 0))


def proven(problem, calls=200):
    """Return the bounds of a problem, proven as far as they go, and the lowest as a float."""
    searchable = space_of(problem)
    bounds = OperatingPointBounds(problem, searchable)
    for _ in range(calls):
        if not bounds.finished:
            bounds.advance(-BEYOND)
    return bounds, searchable.objective(bounds.bound)


def losses_of_cells(problem):
    """Yield how many negatives each positive loses to, for weights of every cell: for any small margin."""
    positives, negatives = problem.positives, problem.negatives
    rows = [tuple(int(v) for v in row) for row in problem.X]
    differences = [tuple(np.subtract(rows[i], rows[k]).tolist()) for i, k in itertools.product(positives, negatives)]
    for w in representatives(differences, problem.d):
        scores = problem.X @ np.array(w, dtype=float)
        yield np.array([np.count_nonzero(scores[negatives] >= scores[i]) for i in positives])


def largest_counts(problem):
    """Return max over w of N_j(w) for each j."""
    levels = np.arange(len(problem.negatives))[:, None]
    return np.max([np.count_nonzero(lost <= levels, axis=1) for lost in losses_of_cells(problem)], axis=0)


def test_the_bound_is_never_below_a_value():
    tighter = 0
    count = examples(100, slow=4000)
    for seed in range(count):
        problem = random_list(seed)
        _, bound = proven(problem)
        tighter += bound < problem.trivial_bound - 1e-9
        rng = np.random.default_rng(seed)
        tried = [*np.eye(problem.d), *-np.eye(problem.d), *rng.uniform(-1, 1, size=(100, problem.d))]
        if problem.d <= 3 and seed % 3 == 0:
            tried.append(cell_optimum(problem.X, problem.y, problem.statistic, 0.0, problem.ties)[1])
        best = max(problem.evaluate(w / np.abs(w).max()) for w in tried if w.any())
        assert bound >= best - 1e-12 * abs(best), seed
    assert tighter > count / 4  # else there is nothing to test


@pytest.mark.parametrize("seed", range(examples(10, slow=200)))
def test_the_largest_counts_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 11)), 2 + seed % 2
    X, y = rng.integers(-30, 31, size=(n, d)).astype(float), np.arange(n) % 2
    problem = RerankProblem(X, y, margin=1e-6)
    bounds, bound = proven(problem)
    most = largest_counts(problem)
    np.testing.assert_array_equal(bounds.caps, most)
    assert bounds.finished
    assert bound >= cell_optimum(problem.X, problem.y, problem.statistic, 0.0, problem.ties)[0] - 1e-12


def test_subsystems_of_subnormal_numbers_hold_for_the_numbers_themselves():
    """A product of a multiplier and a subnormal number loses up to half a unit; ordinary numbers lose nothing."""
    for seed in range(examples(8, slow=400)):
        rng = np.random.default_rng(seed)
        X = rng.integers(-9, 10, (int(rng.integers(6, 12)), 3)).astype(float)
        y = (np.arange(len(X)) < len(X) // 2).astype(int)
        margin = float(rng.integers(1, 12))
        tiny = RerankProblem(X * 5e-324, y, margin=margin * 5e-324)
        _, bound = proven(tiny, calls=3)
        tried = rng.integers(-8, 9, (200, 3)) / 8
        assert bound >= max(map(tiny.evaluate, tried)) - 1e-12


def test_several_workers_find_the_same_counts():
    rng = np.random.default_rng(3)
    X, y = rng.integers(-30, 31, size=(11, 3)).astype(float), np.arange(11) % 2
    problem = RerankProblem(X, y, margin=1e-6)
    bounds = OperatingPointBounds(problem, space_of(problem), workers=3)
    with ThreadPoolExecutor(3) as pool:
        for _ in range(200):
            list(pool.map(lambda worker: bounds.advance(-BEYOND, worker), range(3)))
    assert bounds.finished
    np.testing.assert_array_equal(bounds.caps, largest_counts(problem))
    for _ in range(1500):  # workers that wait for the first one
        assert not bounds.advance(-BEYOND, 1)


def least_loss(problem, above, loss):
    """Return the least loss of some levels over all cells of weights."""
    return min(
        sum(int(table[np.count_nonzero(lost > j)]) for j, table in zip(above, loss, strict=True))
        for lost in losses_of_cells(problem)
    )


@pytest.mark.parametrize("seed", range(examples(15, slow=400)))
def test_levels_together_lose_what_enumeration_says(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 15 if seed % 2 else 12)), 3 - seed % 2
    X = rng.integers(-3, 4, size=(n, d)).astype(float) if seed % 3 == 0 else rng.integers(-30, 31, size=(n, d)) * 1.0
    y = (rng.random(n) < 0.5).astype(int)
    y[:4] = 0, 0, 1, 1
    problem = RerankProblem(X, y, margin=1e-6)
    upper, lower = problem.positives, problem.negatives
    levels = int(rng.integers(1, min(4, len(lower)) + 1))
    above = np.sort(rng.choice(len(lower), levels, replace=False))
    loss = np.cumsum(rng.integers(0, 4, size=(levels, len(upper) + 1)), axis=1)
    loss -= loss[:, :1]
    search = OperatingPoints(
        X[np.r_[upper, lower]], np.repeat([1, 0], [len(upper), len(lower)]).astype(np.uint8), levels, 1e-6, 1.0
    )
    least = least_loss(problem, above, loss)
    for required, expected in ((least, 1), (least + 1, 2), (max(least - 1, 1), 1)):
        if required > 0 and (required <= least or expected == 2):
            search.start(above, loss, required)
            assert search.advance(2**62, np.zeros(1, np.uint8))[0] == expected, (seed, required)


@pytest.mark.parametrize("threads", slow_but([1, 2], quick=[2]))
def test_a_solve_takes_the_better_bound(threads, monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 13))
    problem = RerankProblem(X, (X[:, 0] + 2 * rng.normal(size=50) > 0).astype(int))
    found = solve(problem, WeightSpaceSearch(threads=threads), Limits(time_limit=1.0))
    monkeypatch.setattr(search, "points_apply_to", lambda problem: False)
    boxes = solve(problem, WeightSpaceSearch(threads=threads), Limits(time_limit=1.0))
    assert found.status is Status.TIME_LIMIT
    assert found.value <= found.bound < boxes.bound
