"""Columns whose weights have no price and are not counted."""

from __future__ import annotations

import numpy as np
import pytest

from ltr.exact import Limits, LinearConstraints, PairwiseProblem, RerankProblem, Status, solve
from ltr.exact.certificate import certify
from ltr.exact.largest_margin import maximise_margin
from ltr.exact.solve import METHODS
from ltr.exact.weight_space import WeightSpaceSearch
from tests.exact import vertex_reference as reference
from tests.exact.stated_problem import stated_problem
from tests.reference import admits
from tests.tiers import examples, slow_but

X, Y = [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0]], [0, 1, 0]
KERNEL = WeightSpaceSearch(threads=1, local_search=0)
DIRECT = WeightSpaceSearch(threads=1, local_search=0, scip=False)


def instance(seed, d=3):
    """A small problem with free columns, of which the first may have no weight below 0."""
    rng = np.random.default_rng([20261122, seed])
    n = int(rng.integers(4, 7))
    features = rng.integers(-2, 4, (n, d)).astype(float)
    free = tuple(sorted(rng.choice(d, size=int(rng.integers(1, d)), replace=False).tolist()))
    options = {
        "C": float(rng.choice([0.0, 0.05, 0.3])),
        "margin": float(rng.choice([1e-4, 0.5])),
        "max_nonzeros": int(rng.integers(1, d - len(free) + 1)) if rng.random() < 0.6 else None,
        "free": free,
        "constraints": LinearConstraints(-np.eye(d)[[free[0]]], [0.0]) if rng.random() < 0.6 else None,
    }
    kind = seed % 5
    if kind == 0:
        return PairwiseProblem(features, [rng.choice(n, size=2, replace=False) for _ in range(6)], **options)
    if kind == 1:
        return RerankProblem(features, np.append(rng.integers(0, 3, n - 1), 1), "mrr", qid=np.arange(n) % 2, **options)
    y = np.arange(n) % 2
    if kind == 2:
        return RerankProblem(features, y, "auc", **options)
    return RerankProblem(features, y, "dcg", ties="subrank" if kind == 3 else "resolved", **options)


def assert_optimal(problem, method, best):
    solution = solve(problem, method, Limits(time_limit=60))
    assert solution.status is Status.OPTIMAL, (method, solution)
    assert solution.value == pytest.approx(best, abs=1e-9)
    assert problem.evaluate(solution.weights) == solution.value
    counted = [w for j, w in enumerate(solution.weights) if j not in problem.free]
    assert problem.max_nonzeros is None or np.count_nonzero(counted) <= problem.max_nonzeros
    return solution


# --- the problem -----------------------------------------------------------------------------------------------


def test_free_weights_are_neither_priced_nor_counted():
    problem = RerankProblem(X, Y, C=0.25, max_nonzeros=1, free=[2, 0])
    assert problem.free == (0, 2)
    plain = RerankProblem(X, Y)
    for w, number in (([1, 0, 1], 0), ([1, 0.5, -1], 1), ([0, 1, 0], 1), ([0, 0, 0], 0)):
        assert problem.evaluate(w) == plain.evaluate(w) - 0.25 * number
        assert problem.feasible(w)
    assert not RerankProblem(X, Y, max_nonzeros=1, free=[2]).feasible([1, 1, 1])
    assert RerankProblem(X, Y, free=[0, 1, 2]).free == (0, 1, 2)


def test_the_limit_counts_the_other_columns():
    for most, free in ((0, [1]), (3, [1]), (1, [0, 1, 2])):
        with pytest.raises(ValueError, match=r"from 1 to ., the number of features that are not free, or None, got"):
            RerankProblem(X, Y, max_nonzeros=most, free=free)


# --- methods ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", slow_but(range(40), quick=range(10)))
def test_optima_by_enumeration_of_vertices(seed):
    problem = instance(seed)
    best, _ = reference.optimum(problem)
    for method in (KERNEL, DIRECT, *(("weight_space",) if seed < 10 else ())):
        assert_optimal(problem, method, best)
    found = solve(problem, "local_search", Limits(time_limit=2))
    assert found.value <= best + 1e-9
    assert problem.feasible(found.weights)
    assert problem.evaluate(maximise_margin(problem, found.weights)) >= found.value


OTHERS = ("local_search", "weight_space", "cards", "lattice")


@pytest.mark.parametrize("method", [name for name in METHODS if name not in OTHERS])
def test_models_by_enumeration_of_vertices(method):
    problems = [instance(seed) for seed in range(40) if admits(METHODS[method], instance(seed))]
    assert problems
    for problem in problems[: examples(2, slow=4)]:
        best, _ = reference.optimum(problem)
        if method == "resolved":
            # the printed model has no weights with differences between 0 and the margin
            assert solve(problem, method, Limits(time_limit=60)).value <= best + 1e-9
        else:
            assert_optimal(problem, method, best)


def test_a_price_above_all_values_leaves_the_free_columns():
    rng = np.random.default_rng(6)
    features = rng.normal(size=(30, 3))
    y = (features @ [1.0, 1.0, -0.5] > 0).astype(int)
    problem = RerankProblem(features, y, C=1e6, free=[1])
    for method in (KERNEL, DIRECT):
        solution = solve(problem, method, Limits(time_limit=60))
        assert (solution.status, np.flatnonzero(solution.weights).tolist()) == (Status.OPTIMAL, [1])


# --- certificates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_certificates_prove_the_optimum(seed):
    problem = instance(seed)
    best, _ = reference.optimum(problem)
    certificate = certify(problem, solve(problem, KERNEL, Limits(time_limit=60)))
    assert certificate.claim == "optimal"
    assert certificate.bound == pytest.approx(best, abs=1e-9)
    assert stated_problem(certificate).free == problem.free
    assert f", free column{'s' if len(problem.free) > 1 else ''} {problem.free[0]}" in certificate.verify()
