"""Boxes closed in batches on a device of torch: the same answers as enumeration, and no weights cut off."""

import dataclasses

import numpy as np
import pytest
import torch

from ltr.exact import Limits, LinearConstraints, PairwiseProblem, RerankProblem, Status, solve
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.exact.weight_space.batches import BatchPool
from ltr.exact.weight_space.coordinates import SYSTEMS, adapted, apply_to
from ltr.exact.weight_space.pool import NEVER
from ltr.exact.weight_space.space import Boxes, space_of
from tests.reference import (
    cell_optimum,
    cell_optimum_graded,
    cell_optimum_pairs,
    random_graded,
    random_instance,
    random_pairwise,
)
from tests.tiers import slow_but

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
PROBLEM = RerankProblem([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 1])


def pool_of(searchable, device="cpu", found=lambda x: None):
    return BatchPool(searchable, device, found, lambda box: int(box.bound[0]))


def free(problem):
    """The problem without what only the compiled search knows."""
    changes = {"rank": "resolved"} if isinstance(problem, RerankProblem) else {}
    return dataclasses.replace(problem, C=0.0, **changes)


def optimum_of(problem):
    if isinstance(problem, PairwiseProblem):
        return cell_optimum_pairs(problem.X, problem.pairs, problem.weights, 0.0)[0]
    if set(np.unique(problem.y)) <= {0, 1}:
        return cell_optimum(problem.X, problem.y, problem.statistic, 0.0, problem.rank)[0]
    return cell_optimum_graded(problem)[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", slow_but(range(24), range(3)))
@pytest.mark.parametrize("kind", [random_instance, random_graded, random_pairwise])
def test_the_enumerated_optimum_is_found_and_proven(kind, seed, device):
    problem = free(kind(seed))
    optimum = optimum_of(problem)
    for name in SYSTEMS if apply_to(problem) else SYSTEMS[:1]:
        method = WeightSpaceSearch(1, name, local_search=0.1 * (seed % 2), device=device, scip=seed % 4 == 0)
        solution = solve(problem, method, Limits(time_limit=60))
        assert solution.status is Status.OPTIMAL, solution
        assert solution.value == problem.evaluate(solution.weights) == pytest.approx(optimum, abs=1e-9)
        assert solution.bound >= optimum - 1e-12 * max(1.0, abs(optimum))


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("seed", slow_but(range(6), (0, 3)))
def test_what_is_left_of_a_batch_has_all_weights_above_the_cutoff(name, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(16, 3)) + rng.choice([0.0, 1e-12, 0.3], size=(16, 3))
    y = rng.permutation([0, 1, 2, 0] * 4) if seed % 2 else rng.permutation([0, 1] * 8)
    problem = RerankProblem(X, y, ["dcg", "auc", "mrr"][seed % 3], margin=[1e-9, 0.05][seed % 2])
    T = adapted(problem, np.array([1.0, 0.5, -0.2]), np.eye(3))[0] if name == "adapted" else None
    searchable = space_of(problem, T)
    boxes, d = searchable.roots, problem.d
    for _ in range(3):
        cutoff = searchable.integer(problem.trivial_bound * rng.uniform(0.7, 0.95))
        with pool_of(searchable) as pool:
            done = pool.close(boxes, cutoff, lambda: None, allowance=1 + 40 * rng.random())
        reached = searchable.objective(max(done.cutoff, done.unresolved))
        for v in rng.uniform(-1, 1, size=(300, d)):
            v = v / np.abs(v).max() * np.abs(searchable.roots.low[:, :d]).max()
            w = searchable.space.T @ v
            w /= np.abs(w).max()
            # in no box that is left, weights have at most the value that is proven
            inside = [np.all((box.low[0, :d] <= v) & (v <= box.high[0, :d])) for box in done.left]
            assert any(inside) or problem.evaluate(w) <= reached + 1e-12


def test_what_an_allowance_leaves_covers_the_rest():
    rng = np.random.default_rng(3)
    problem = RerankProblem(rng.normal(size=(30, 4)), rng.permutation([0, 1] * 15))
    searchable = space_of(problem)
    cutoff = searchable.integer(solve(problem, "local_search", Limits(time_limit=2)).value) + 10**6
    with pool_of(searchable) as pool:
        whole = pool.close(searchable.roots, cutoff, lambda: None)
        part = pool.close(searchable.roots, cutoff, lambda: None, allowance=1)
        rest = pool.close(Boxes.joined(part.left), cutoff, lambda: None)
    assert part.left
    assert not whole.left
    assert not rest.left
    assert whole.cutoff == rest.cutoff == cutoff
    assert whole.unresolved == NEVER


def test_members_that_lose_pairs_have_the_bounds_of_the_compiled_search():
    """A box of a single point: its bound is the value there, as the compiled search computes it."""
    for problem in (free(random_graded(3)), free(random_instance(5)), free(random_pairwise(7))):
        searchable = space_of(problem)
        pairs, rng = pool_of(searchable)._pairs, np.random.default_rng(0)
        for w in rng.uniform(-1, 1, size=(50, problem.d)):
            w /= np.abs(w).max()
            point = torch.from_numpy(np.append(w, 1.0))[None]
            value = searchable.objective(int(pairs.value(pairs.count(point @ pairs.columns < 0))))
            assert value == pytest.approx(problem.evaluate(w), abs=1e-9)


def test_limits_leave_a_valid_bound():
    rng = np.random.default_rng(0)
    problem = RerankProblem(rng.normal(size=(40, 5)), rng.permutation([0, 1] * 20))
    solution = solve(problem, WeightSpaceSearch(device="cpu", scip=False), Limits(node_limit=600))
    assert solution.status is Status.NODE_LIMIT
    assert solution.value < solution.bound < problem.trivial_bound


def test_what_a_device_does_not_know_is_said_at_once():
    sides = LinearConstraints([[1.0, 0.0]], [0.5])
    problem = dataclasses.replace(PROBLEM, C=0.1, constraints=sides, max_nonzeros=1)
    message = "a search on a device does not know a price C, max_nonzeros, side constraints: leave device=None"
    with pytest.raises(ValueError, match=message):
        solve(problem, WeightSpaceSearch(device="cpu"))


@pytest.mark.parametrize("device", ["gpu7", "cuda:99", "", 3.5])
def test_a_device_that_is_not_there(device):
    with pytest.raises(ValueError, match="device must be one of torch with float64, such as 'cuda', got "):
        WeightSpaceSearch(device=device)
