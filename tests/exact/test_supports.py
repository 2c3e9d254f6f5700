"""Proofs for a few weights among many: a search by supports."""

from __future__ import annotations

import dataclasses
import itertools
import math
import threading

import numpy as np
import pytest

from ltr.exact import Limits, LinearConstraints, PairwiseProblem, RerankProblem, Status, solve, tuning
from ltr.exact.supports import Sets, bounds_of, supports_of
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.rankers.exact import ReproducibleSearch
from tests.exact import vertex_reference as reference
from tests.tiers import slow_but

KERNEL = WeightSpaceSearch(threads=1, local_search=0)


def instance(seed):
    """A small problem of 4 or 5 features, of which 1 or 2 may be used beside the free ones."""
    rng = np.random.default_rng([20261123, seed])
    n, d, free = int(rng.integers(5, 7)), int(rng.integers(4, 6)), tuple(range(seed % 2))
    X = rng.integers(-2, 4, (n, d)).astype(float)
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = 1.0
    options = {
        "C": float(rng.choice([0.0, 0.0, 0.05])),
        "margin": float(rng.choice([1e-4, 0.5])),
        "max_nonzeros": int(rng.integers(1, 3)),
        "free": free,
        "constraints": LinearConstraints(-np.eye(d)[[0]], [0.0]) if rng.random() < 0.5 else None,
    }
    if seed % 4 == 0:
        return PairwiseProblem(X, [rng.choice(n, size=2, replace=False) for _ in range(8)], **options)
    if seed % 4 == 1:
        return RerankProblem(X, np.append(rng.integers(0, 3, n - 1), 1), "mrr", qid=np.arange(n) % 2, **options)
    return RerankProblem(X, np.arange(n) % 2, "dcg", ties="subrank" if seed % 4 == 2 else "resolved", **options)


def restricted(problem, columns):
    """The problem of some of the columns, with its price."""
    sides = problem.constraints
    options = {
        "C": problem.C,
        "margin": problem.margin,
        "free": [at for at, j in enumerate(columns) if j in problem.free],
        "constraints": None if sides is None else LinearConstraints(sides.A[:, columns], sides.b),
    }
    if isinstance(problem, PairwiseProblem):
        return PairwiseProblem(problem.X[:, columns], problem.pairs, **options)
    X, labels, ties = problem.X[:, columns], problem.gains, problem.ties
    return RerankProblem(X, labels, problem.statistic, qid=problem.qid, gain="linear", ties=ties, **options)


def hard(most=2, n=150, d=12):
    """A list of noise with a base score: every support must be searched."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + 3 * rng.normal(size=n) > 1.5).astype(int)
    sides = LinearConstraints(-np.eye(d)[[0]], [0.0])
    return RerankProblem(X, y, "dcg(base=e)", constraints=sides, max_nonzeros=most, free=[0])


# --- what is proven --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", slow_but(range(32), quick=range(16)))
def test_optima_by_enumeration_of_supports(seed):
    problem = instance(seed)
    supports = supports_of(problem)
    assert len(supports) == math.comb(problem.d - len(problem.free), problem.max_nonzeros)
    best = max(reference.optimum(restricted(problem, columns.tolist()))[0] for columns in supports)
    for threads in (1, 2):
        solution = solve(problem, WeightSpaceSearch(threads=threads, local_search=0), Limits(time_limit=60))
        assert solution.status is Status.OPTIMAL, solution
        assert solution.value == pytest.approx(best, abs=1e-9)
        assert problem.feasible(solution.weights)
        assert solution.bound >= best - 1e-9


def test_it_agrees_with_the_search_that_splits_zeros_apart(monkeypatch):
    problem = hard(most=1, n=60, d=5)
    direct = dataclasses.replace(KERNEL, scip=False)  # SCIP would branch on one of them alone
    found = solve(problem, direct, Limits(time_limit=60))
    monkeypatch.setattr(tuning, "MOST_BOUNDED", 0)
    assert supports_of(problem) is None
    other = solve(problem, direct, Limits(time_limit=60))
    assert (found.status, found.value) == (other.status, other.value) == (Status.OPTIMAL, found.value)
    assert found.nodes < other.nodes


def test_sets_of_columns():
    X, y = np.eye(8), np.arange(8) % 2
    assert [s.tolist() for s in supports_of(RerankProblem(X[:, :4], y, max_nonzeros=2, free=[1]))] == [
        [0, 1, 2],
        [0, 1, 3],
        [1, 2, 3],
    ]
    assert supports_of(RerankProblem(X, y)) is None
    assert supports_of(RerankProblem(X, y, max_nonzeros=8)) is None
    assert supports_of(RerankProblem(X, y, max_nonzeros=6, free=[0])) is None  # seven columns
    many = np.eye(8).repeat(40, axis=1)
    assert supports_of(RerankProblem(many, y, max_nonzeros=3)) is None  # 5,410,240 sets
    assert supports_of(PairwiseProblem(many, [(0, 1)], max_nonzeros=2)) is None  # 51,040 sets, of which no bounds
    assert supports_of(RerankProblem(X[:, :4], y, max_nonzeros=2, required=[1])).tolist() == [[0, 1], [1, 2], [1, 3]]


def mixed(seed):
    """Yes/no columns and one or two of more values, with ties; one list, or two of graded labels."""
    rng = np.random.default_rng([4, seed])
    n, numeric = int(rng.integers(6, 10)), 1 + seed % 2
    X = np.column_stack([rng.integers(0, 2, (n, 3)), rng.integers(0, 6, (n, numeric))]).astype(float)
    options = {"max_nonzeros": int(rng.integers(1, 4)), "integer": 3}
    if seed % 3:
        return RerankProblem(X, np.arange(n) % 2, str(rng.choice(["auc", "dcg", "dcg@3"])), **options)
    return RerankProblem(X, np.append(rng.integers(0, 3, n - 1), 1), "dcg", qid=np.arange(n) % 2, **options)


@pytest.mark.parametrize("seed", slow_but(range(30), quick=range(8)))
def test_no_weights_of_a_set_exceed_its_bound(seed):
    """With one yes/no column some weights attain the bound, except that it counts ties as half."""
    problem = mixed(seed)
    supports, tight = supports_of(problem), 0
    for columns, bound in zip(supports, bounds_of(problem, supports), strict=True):
        best = -np.inf
        for points in itertools.product(range(-3, 4), repeat=len(columns)):
            w = np.zeros(problem.d)
            w[columns] = points
            best = max(best, problem.evaluate(w))
        assert best <= bound + 1e-12
        tight += bound < problem.trivial_bound
    assert tight > 0 or problem.max_nonzeros == 3


def test_bounds_by_hand():
    """Values 0, 1, 2 with 1 of 2, 1 of 1 and 0 of 2 rows positive: from 0 down the first two are pooled."""
    X = np.array([[0.0], [0.0], [1.0], [2.0], [2.0]])
    problem = RerankProblem(X, [1, 0, 1, 0, 0], "auc")
    assert bounds_of(problem, np.array([[0]]))[0] == pytest.approx(pooled_auc([(2, 3), (0, 2)]))


def test_sets_that_cannot_be_better_are_not_searched():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 2, (80, 30)), rng.normal(size=(80, 2))]).astype(float)
    y = (X[:, 0] + X[:, 30] + 0.7 * rng.normal(size=80) > 1).astype(int)
    problem = RerankProblem(X, y, "auc", integer=3, max_nonzeros=3)
    found = solve(problem, KERNEL, Limits(time_limit=120))
    assert found.status is Status.OPTIMAL
    kept, bounds = Sets.of(problem).above(found.value)
    assert len(kept) < len(supports_of(problem)) / 10
    assert bounds.min() > found.value
    assert np.isin([30, 31], kept).all()


def pooled_auc(pools):
    """AUC of pools (positives, rows) from the top, ties at half."""
    won, below_n, positives, negatives = 0.0, 0, sum(p for p, _ in pools), sum(n - p for p, n in pools)
    for p, n in reversed(pools):
        won += p * (below_n + 0.5 * (n - p))
        below_n += n - p
    return won / (positives * negatives)


# --- limits ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def optimum():
    solution = solve(hard(), limits=Limits(time_limit=60))
    assert solution.status is Status.OPTIMAL
    return solution.value


def test_the_bound_is_valid_wherever_the_search_stops(optimum):
    asked, before, bounds = itertools.count(), threading.active_count(), []
    for status, limits in (
        (Status.NODE_LIMIT, Limits(60, node_limit=1)),
        (Status.NODE_LIMIT, Limits(60, node_limit=1000)),
        (Status.TIME_LIMIT, Limits(time_limit=0.05)),
        (Status.INTERRUPTED, Limits(60)),
    ):
        stop = (lambda: next(asked) > 12) if status is Status.INTERRUPTED else None
        solution = solve(hard(), WeightSpaceSearch(threads=2, local_search=0), limits, should_stop=stop)
        assert solution.status is status
        assert solution.seconds < limits.time_limit + 0.5
        assert solution.value <= optimum <= solution.bound
        bounds.append(solution.bound)
    assert bounds[0] != bounds[1]
    assert threading.active_count() == before


def test_the_reproducible_search_is_reproducible():
    found = [solve(hard(), ReproducibleSearch(), Limits(math.inf, node_limit=nodes)) for nodes in (1000, 1000)]
    assert found[0].weights.tolist() == found[1].weights.tolist()
    assert (found[0].bound, found[0].nodes) == (found[1].bound, found[1].nodes)
