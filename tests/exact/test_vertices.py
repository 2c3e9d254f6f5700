"""Weights at which score differences equal the margin exactly, and numbers of extreme size."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

from ltr.exact import Limits, PairwiseProblem, RerankProblem, Status, solve, tuning
from ltr.exact.state import SolveState
from ltr.exact.vertices import _simplest, _simplest_binary, _solve, largest_value, offer_simple
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.exact.weight_space.pool import NarrowBoxes
from tests.exact import vertex_reference as reference
from tests.reference import graded_problem
from tests.tiers import examples

DIRECT = WeightSpaceSearch(scip=False)
SIX = [[0, 1], [0, 1], [0, 1], [1, 1], [1, 1], [0, 0]]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# --- vertices --------------------------------------------------------------------------------------------------


def test_the_simplest_ratios():
    assert _simplest(Fraction(1, 3), Fraction(1, 2)) == Fraction(1, 2)
    assert _simplest(Fraction(-34, 100), Fraction(-33, 100)) == Fraction(-1, 3)
    assert _simplest_binary(Fraction(1, 3), Fraction(2, 5)) == Fraction(3, 8)
    assert _simplest_binary(Fraction(-1, 3), Fraction(-1, 5)) == Fraction(-1, 4)


def test_elimination_solves_without_a_rest_and_knows_what_has_no_solution():
    rng = np.random.default_rng(0)
    for planes in rng.integers(-9, 10, (300, 3, 4)).tolist():
        found = _solve(planes)
        singular = round(np.linalg.det(np.array(planes, dtype=float)[:, :-1])) == 0
        assert (found is None) == singular
        if found is not None:
            tops, bottom = found
            assert bottom > 0
            assert all(sum(a * v for a, v in zip(plane, tops, strict=False)) == plane[-1] * bottom for plane in planes)


def test_the_largest_value_is_that_of_the_vertices_of_a_simplex():
    grid = np.linspace(-1, 1, 17)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 3, (5, 2)) * 1.0, np.array([0, 1, 0, 1, int(rng.integers(2))])
        problem = RerankProblem(X, y, margin=float(rng.choice([0.25, 0.5, 1.0])), C=float(rng.choice([0.0, 0.1])))
        low = rng.choice(grid[:-4], size=2)
        high = low + rng.choice([0.125, 0.25, 0.5])
        found = largest_value(SolveState(problem, Limits()), problem, low, high)
        exact = max(reference.Objective(problem)(w) for w in _vertices_of_simplex(problem, low, high))
        assert found == pytest.approx(exact, abs=1e-12)


def _vertices_of_simplex(problem, low, high):
    size = (high - low).sum()
    signs = np.where(high >= 1 - size, -1, 1).tolist()
    corner = [Fraction(v) for v in np.where(high >= 1 - size, high, low).tolist()]
    most = Fraction(size) + sum(s * v for s, v in zip(signs, corner, strict=True))
    rows = reference.planes(problem, reference.comparisons(problem))
    units = [[Fraction(int(j == other)) for other in range(problem.d)] for j in range(problem.d)]
    rows = [*rows, *((*unit, v) for unit, v in zip(units, corner, strict=True)), (*map(Fraction, signs), most)]
    for w in reference.vertices(problem, rows):
        apart = [s * (v - c) for s, v, c in zip(signs, w, corner, strict=True)]
        if min(apart) >= 0 and sum(apart) <= Fraction(size):
            yield w


def test_the_difference_of_two_observations_is_not_rounded():
    """As a float64 it is 1.5, half a unit too small, and the weight misses the margin with it."""
    unit = 2.0**-53
    problem = RerankProblem([[-unit], [1.5]], [0, 1], margin=1.5 - 4 * unit)
    w = np.array([1 - 3 * unit])
    assert problem.evaluate(w) == 1.0
    assert largest_value(SolveState(problem, Limits()), problem, w, w) == 1.0


def test_a_simplex_around_a_box_has_its_values_and_none_from_far_away(monkeypatch):
    monkeypatch.setattr(tuning, "VERTICES_WORK", 10**9)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 3, (6, 3)) * 1.0, np.array([0, 1, 0, 1, 0, 1])
        problem = RerankProblem(X, y, margin=float(rng.choice([0.25, 0.5])), C=float(rng.choice([0.0, 0.1])))
        low = rng.choice([-1.0, -0.5, -0.125, 0.0, 0.25, 0.875], size=3)
        high = low + rng.choice([0.0, 0.0625, 0.125], size=3)
        size = 1.001 * (high - low).sum()
        beyond = np.where(high > low, low - size, low), np.where(high > low, high + size, high)
        around, outside = (largest_value(SolveState(problem, Limits()), problem, *b) for b in ((low, high), beyond))
        inside = max(problem.evaluate(w) for w in (low, high, *rng.uniform(low, high, (50, 3))))
        assert inside - 1e-12 <= around <= outside + 1e-12


def test_simple_ratios_are_offered():
    problem = RerankProblem(SIX, [1, 0, 1, 0, 1, 0], margin=0.5)
    state = SolveState(problem, Limits())
    offer_simple(state, np.array([-0.5000001, 1.0]), np.array([-0.4999999, 1.0]))
    assert state.weights.tolist() == [-0.5, 1.0]


def test_boxes_whose_vertices_are_not_looked_at_keep_their_bound(monkeypatch):
    """At the best weights pairs are won by the margin exactly: boxes around them get narrow, and no proof may end."""
    monkeypatch.setattr(NarrowBoxes, "settle", lambda self, searchable, box: int(box.bound[0]))
    problem = RerankProblem(SIX, [1, 0, 1, 0, 1, 0], margin=0.5)
    method = WeightSpaceSearch(threads=1, scip=False, local_search=0.0, coordinates="given")
    solution = solve(problem, method, Limits(time_limit=30), warm_starts=[[1.0, 0.2]])
    assert solution.status is Status.INEXACT
    assert solution.value < 1.5177 < solution.bound  # the value of the best weights


_SETTLED = (285, 538, 1229, 7506)  # took too long or ended inexact once


# 8261 met sides of 1e-300 where a step is no number
@pytest.mark.parametrize("seed", [*range(0, examples(240, slow=2000), examples(7, slow=1)), *_SETTLED, 8261])
def test_random_problems_against_all_vertices(seed):
    if (found := reference.solved(seed, Limits(time_limit=20.0 if seed in _SETTLED else 1.0))) is None:
        return
    problem, solution = found
    assert not reference.mistakes(problem, solution)
    assert seed not in _SETTLED or solution.status is Status.OPTIMAL


# --- comparisons both ways -------------------------------------------------------------------------------------


def test_observations_compared_both_ways_close_boxes_at_once():
    X = np.random.default_rng(3).normal(size=(4, 3))
    problem = PairwiseProblem(X, [(2, 0), (2, 0), (1, 2), (0, 2), (2, 3)], C=0.2, margin=1e-9)
    solution = solve(problem, WeightSpaceSearch(local_search=0.0), Limits(time_limit=30))
    assert solution.status is Status.OPTIMAL
    assert solution.nodes < 5000
    assert solution.value == pytest.approx(reference.optimum(problem)[0], abs=1e-9)


# --- extreme sizes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem",
    [
        lambda: RerankProblem([[0.0], [1.0]], [0, 1], "weights(0,1e-300)"),
        lambda: PairwiseProblem([[0.0], [1.0]], [(1, 0), (0, 1)], weights=[5e-324, 1.0]),
        lambda: PairwiseProblem([[0.0], [1.0]], [(1, 0), (0, 1)], weights=[1e299, 1.0]),
        lambda: graded_problem([[0, 1], [1, 0]], [2, 2]),
        lambda: RerankProblem([[0.0], [1e-320]], [0, 1], margin=1.7e308),
        lambda: RerankProblem([[0.0, 1.0], [1e-320, 1.0], [0.0, 1e300]], [0, 1, 0], margin=5e-324),
    ],
)
@pytest.mark.parametrize("method", ["auto", DIRECT, "local_search", WeightSpaceSearch(coordinates="adapted")])
def test_numbers_of_any_size_are_solved(problem, method):
    made = problem()
    if method == WeightSpaceSearch(coordinates="adapted") and made.d < 2:
        pytest.skip("adapted coordinates need two features")
    solution = solve(made, method, Limits(time_limit=10))
    assert solution.value <= solution.bound
    assert method == "local_search" or solution.status in (Status.OPTIMAL, Status.INEXACT)
