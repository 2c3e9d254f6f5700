"""Constraints that only SCIP understands: the search keeps to them, and its optimum is that of a grid of weights."""

import numpy as np
import pytest

from ltr.exact import Limits, LinearConstraints, RerankProblem, Status, certify, solve
from ltr.exact.scip import ScipConstraints
from ltr.exact.weight_space import WeightSpaceSearch

GRID = np.linspace(-1, 1, 161)
W = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), -1).reshape(-1, 2)


def disc(model, w):
    model.addCons((w[0] - 0.5) * (w[0] - 0.5) + (w[1] + 0.2) * (w[1] + 0.2) <= 0.09)


def ring(model, w):
    model.addCons(w[0] * w[0] + w[1] * w[1] >= 1.2)
    model.addCons(w[0] * w[1] <= -0.1)


def either(model, w):
    """w_0 <= -0.3 or w_0 >= 0.6, and w_1 is a multiple of 1/4."""
    right, steps = model.addVar("right", vtype="B"), model.addVar("steps", vtype="I", lb=-4, ub=4)
    model.addCons(w[0] <= -0.3 + 1.3 * right)
    model.addCons(w[0] >= 0.6 - 1.6 * (1 - right))
    model.addCons(4 * w[1] == steps)


def in_either(w):
    right = (w[..., 0] <= -0.3 + 2e-6) | (w[..., 0] >= 0.6 - 2e-6)
    return right & (np.abs(4 * w[..., 1] - np.rint(4 * w[..., 1])) <= 1e-5)


KINDS = {
    "disc": (disc, lambda w: (w[..., 0] - 0.5) ** 2 + (w[..., 1] + 0.2) ** 2 <= 0.09 + 2e-6),
    "ring": (ring, lambda w: ((w**2).sum(-1) >= 1.2 - 2e-6) & (w[..., 0] * w[..., 1] <= -0.1 + 2e-6)),
    "either": (either, in_either),
}


def random_problem(seed, add):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, size=(9, 2)).astype(float)
    y = np.arange(9) % 2
    return RerankProblem(X, y, constraints=ScipConstraints(add, 2))


def values(problem, weights):
    """Return the DCG at each of several weights, by definition: a positive loses to what is within the margin."""
    scores = weights @ problem.X.T
    upper, lower = scores[:, problem.y == 1], scores[:, problem.y == 0]
    lost = (upper[:, :, None] < lower[:, None, :] + problem.margin).sum(-1)
    lost += (upper[:, :, None] < upper[:, None, :]).sum(-1)
    ties = upper[:, :, None] == upper[:, None, :]
    lost += np.tril(ties, -1).sum(-1)
    return (1 / np.log2(2 + lost)).sum(-1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_is_that_of_a_grid(kind, seed):
    add, holds = KINDS[kind]
    problem = random_problem(seed, add)
    best = values(problem, W[holds(W)]).max()
    found = solve(problem, WeightSpaceSearch(threads=1), Limits(time_limit=60))
    assert holds(found.weights)
    assert values(problem, found.weights[None])[0] == pytest.approx(found.value)
    assert found.status is Status.OPTIMAL
    assert found.value >= best - 1e-9


def test_linear_rows_beside_them():
    sides = ScipConstraints(disc, 2, LinearConstraints([[1.0, 0.0]], [0.4]))
    plain = random_problem(0, disc)
    problem = RerankProblem(plain.X, plain.y, constraints=sides)
    found = solve(problem, "auto", Limits(time_limit=60))
    inside = W[KINDS["disc"][1](W) & (W[:, 0] <= 0.4)]
    assert values(problem, inside).max() < values(problem, W).max()  # they cost something
    assert found.status is Status.OPTIMAL
    assert found.weights[0] <= 0.4 + 2e-6
    assert found.value >= values(problem, inside).max() - 1e-9


def test_no_weights_satisfy_them():
    def nothing(model, w):
        model.addCons(w[0] * w[0] + w[1] * w[1] <= 0.1)
        model.addCons(w[0] * w[1] >= 0.2)

    problem = random_problem(0, nothing)
    found = solve(problem, "auto", Limits(time_limit=60), warm_starts=[[1.0, 1.0]])
    assert found.status is Status.INFEASIBLE
    assert found.value == -np.inf


def test_warm_starts_that_violate_them_do_not_count():
    problem = random_problem(0, disc)
    found = solve(problem, "auto", Limits(time_limit=60, node_limit=1), warm_starts=[[-1.0, 1.0]])
    assert KINDS["disc"][1](found.weights)
    assert found.bound >= found.value


def test_what_cannot_keep_them_refuses():
    problem = random_problem(0, disc)
    found = solve(problem, "auto", Limits(time_limit=60))
    with pytest.raises(ValueError, match="certificate cannot state"):
        certify(problem, found)
    for method in ("local_search", "resolved", WeightSpaceSearch(scip=False)):
        with pytest.raises(ValueError, match="ScipConstraints"):
            solve(problem, method)
    limited = RerankProblem(problem.X, problem.y, constraints=problem.constraints, max_nonzeros=1)
    with pytest.raises(ValueError, match="max_nonzeros"):
        solve(limited, "auto")


def test_an_error_of_the_function_reaches_the_caller():
    def broken(model, w):
        raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        solve(random_problem(0, broken), "auto", Limits(time_limit=60))
