"""Whole-number weights and required columns: enumeration agrees, and certificates of them are checked."""

import dataclasses
import itertools
import json

import numpy as np
import pytest

from ltr import verify
from ltr.exact import LinearConstraints, RerankProblem
from ltr.exact.cards import CardProblem
from ltr.exact.certificate import certify
from ltr.exact.preferences import PairwiseProblem
from ltr.exact.scip import ScipSolver, Subrank
from ltr.exact.solution import Status
from ltr.exact.solve import solve
from ltr.exact.state import Limits
from ltr.exact.weight_space import WeightSpaceSearch
from tests.exact.stated_problem import stated_problem
from tests.exact.test_agreement import instance
from tests.reference import cell_optimum, random_instance, slow_margin_value
from tests.tiers import examples, slow_but

KERNEL = WeightSpaceSearch(threads=1, local_search=0)
X, Y = [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0], [1.0, 3.0, 1.0]], [0, 1, 0, 1]


def whole(seed):
    """An instance of all statistics, prices and kinds of side constraints, with whole numbers in place of weights."""
    problem, rng = instance(seed), np.random.default_rng([1, seed])
    most = 4 if problem.d < 3 else int(rng.integers(1, 4))
    required = rng.permutation(problem.d)[: rng.integers(0, 2 if problem.max_nonzeros else problem.d + 1)].tolist()
    margin = float(rng.choice([1e-4, 1.0, 2.5]))  # the latter are differences, and halves of them
    return dataclasses.replace(problem, integer=most, required=required, margin=margin)


def allowed(problem, w):
    """Whether whole numbers are feasible, by integers alone; b is a multiple of 1/4."""
    sides = problem.constraints
    few = problem.max_nonzeros is None or np.count_nonzero(w) <= problem.max_nonzeros
    return few and all(w[j] for j in problem.required) and (sides is None or bool(np.all(sides.A @ w <= sides.b)))


def by_enumeration(problem):
    """The optimum over all whole numbers, in rational arithmetic; None where none are feasible."""
    grid = itertools.product(range(-problem.integer, problem.integer + 1), repeat=problem.d)
    values = [
        slow_margin_value(problem.X, problem.y, w, str(problem.statistic), problem.margin, problem.ties)
        - problem.C * np.count_nonzero(w)
        for w in map(np.array, grid)
        if allowed(problem, w)
    ]
    return max(values, default=None)


@pytest.mark.parametrize("seed", slow_but(range(500), range(0, 500, 19)))
def test_the_search_agrees_with_enumeration(seed):
    problem = whole(seed)
    best = by_enumeration(problem)
    for method in (KERNEL, "weight_space"):
        solution = solve(problem, method, Limits(time_limit=60))
        if best is None:
            assert solution.status is Status.INFEASIBLE
            return
        assert solution.status is Status.OPTIMAL, solution
        assert solution.value == pytest.approx(best, rel=0, abs=1e-9)
        assert problem.feasible(solution.weights)
        assert allowed(problem, solution.weights)
    certificate = certify(problem, solution)
    claim, words = verify.check(verify.parse(json.dumps(certificate.content)))
    assert claim == "optimal"
    assert f"weights whole numbers from -{problem.integer} to {problem.integer}" in words
    again = stated_problem(certificate)
    assert (again.integer, again.required) == (problem.integer, problem.required)


@pytest.mark.parametrize("seed", range(examples(10, slow=150)))
def test_required_columns_of_real_weights_agree_with_enumeration_of_cells(seed):
    """|w_j| >= 0.01 max |w_i| is a set of cones, one for each sign of w_j; the supports are those with column j."""
    drawn, rng = random_instance(seed, d=3), np.random.default_rng(seed)
    j, most = int(rng.integers(3)), int(rng.integers(1, 4))
    problem = RerankProblem(drawn.X, drawn.y, drawn.statistic, ties=drawn.ties, required=[j], max_nonzeros=most)
    best = -np.inf
    for support in map(list, itertools.combinations(range(3), most)):
        if j not in support:
            continue
        at, d = support.index(j), len(support)
        for sign in (-1.0, 1.0):
            others = np.delete(np.eye(d), at, axis=0) * 0.01
            A = np.vstack([others, -others, np.zeros((1, d))])
            A[:, at] = -sign
            found = cell_optimum(problem.X[:, support], problem.y, problem.statistic, 0.0, problem.ties, A=A)[0]
            best = max(best, found)
    for method in (KERNEL, "weight_space"):
        solution = solve(problem, method, Limits(time_limit=60))
        assert solution.status is Status.OPTIMAL
        assert solution.value == pytest.approx(best, abs=1e-9)
        assert abs(solution.weights[j]) >= 0.01
    certificate = certify(problem, solution)
    assert certificate.verify().startswith(("optimal", "bound"))  # a few are hard to certify, as without the demand
    assert certificate.bound >= best - 1e-12


def test_pairs_of_preferences_take_both():
    rng = np.random.default_rng(3)
    features, edges = rng.integers(-3, 4, (6, 2)).astype(float), [(0, 1), (2, 3), (4, 0), (5, 2), (1, 5)]
    problem = PairwiseProblem(features, edges, integer=3, required=[1], C=0.01)
    grid = [np.array(w, float) for w in itertools.product(range(-3, 4), repeat=2) if w[1]]
    solution = solve(problem, KERNEL)
    assert solution.status is Status.OPTIMAL
    assert solution.value == max(map(problem.evaluate, grid))
    assert certify(problem, solution).verify().startswith("optimal")


def test_the_real_weights_beside_whole_numbers_keep_the_side_constraints():
    sides = LinearConstraints([[2.0, -1.0, 0.0]], [3.0])
    problem = RerankProblem(X, Y, integer=6, margin=3.0, constraints=sides)
    for w in itertools.product(range(-6, 7, 3), repeat=3):
        assert problem.feasible(w) == problem.real.feasible(np.array(w) / 6)
        assert problem.evaluate(w) == problem.real.evaluate(np.array(w) / 6)


def test_weights_are_rounded_at_every_size():
    """Warm starts and what a local search finds are real: the state keeps their roundings."""
    problem = RerankProblem([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [0, 1, 0], integer=5, required=[1])
    solution = solve(problem, "local_search", warm_starts=[[0.9, -0.05]])
    assert problem.feasible(solution.weights)
    assert solution.value == 1.0
    assert problem.in_box([10.0, -4.0]).tolist() == [5.0, -2.0]
    assert not problem.feasible([2.5, 1.0])
    assert not problem.feasible([1.0, 0.0])


@pytest.mark.parametrize("tiny", [5e-324, 1e-320, 1e-310])
def test_starts_and_margins_may_be_subnormal(tiny):
    features = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]
    for margin in (1e-4, tiny):
        problem = RerankProblem(features, [0, 1, 1], integer=3, margin=margin)
        solution = solve(problem, limits=Limits(time_limit=20), warm_starts=[[tiny, 0.0], [-tiny, 2 * tiny]])
        assert solution.status is Status.OPTIMAL
        assert solution.value == problem.trivial_bound
        assert 0 < problem.real.margin <= margin


@pytest.mark.parametrize("seed", range(examples(24, slow=150)))
def test_differences_that_no_split_notices_are_not_taken_for_none(seed):
    """A pair meets its margin with one weight, and which side it falls on is up to differences of next to nothing."""
    rng, tiny = np.random.default_rng(seed), (1e-320, 5e-324, 1e-250)[seed % 3]
    rows = int(rng.integers(2, 6))
    features = np.zeros((rows + 1, 3))
    features[1:] = np.column_stack([np.ones(rows), rng.integers(-3, 4, (rows, 2)) * tiny])
    edges, weights = [(row, 0) for row in range(1, rows + 1)], rng.integers(1, 9, rows).astype(float)
    sides = LinearConstraints([[1.0, 0.0, 0.0]], [1.0])
    problem = PairwiseProblem(features, edges, weights=weights, margin=1.0, integer=2, constraints=sides)
    grid = map(np.array, itertools.product(range(-2, 3), repeat=3))
    best = max(problem.evaluate(w) for w in grid if problem.feasible(w))
    assert solve(problem, KERNEL, Limits(time_limit=20)).bound >= best


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integer": 0}, "integer must be a whole number from 1 to 100, the largest size of a weight, or None, got 0"),
        ({"required": [3]}, r"required must hold different column numbers from 0 to 2, got \(3,\)"),
        ({"required": [1], "free": [1]}, "required must hold no free column: these are not counted, got 1"),
        (
            {"integer": 100, "X": np.array(X) * 1e306},
            r"X must hold numbers of at most 1.49808e\+305 in size where integer = 100, .* got 3e\+306: scale",
        ),
        (
            {"integer": 100, "constraints": LinearConstraints([[0.0, 1e307, 0.0]], [1.0])},
            r"constraints must hold numbers of at most 1.12356e\+305 in size where integer = 100",
        ),
        ({"required": [0, 1], "max_nonzeros": 1}, "required must hold at most max_nonzeros = 1 columns, got 2"),
    ],
)
def test_wrong_values_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        RerankProblem(**{"X": X, "y": Y, **options})


def test_models_in_scip_say_what_they_do_not_take():
    for options, what in (({"integer": 3}, "whole numbers"), ({"required": [0]}, "required columns")):
        with pytest.raises(ValueError, match=f"models in SCIP take no {what}: use weight_space"):
            solve(RerankProblem(X, Y, ties="subrank", **options), ScipSolver(Subrank))
    for method in ("weight_space", "local_search", KERNEL):
        with pytest.raises(ValueError, match="got CardProblem: a CardProblem is solved by the method cards"):
            solve(CardProblem(np.eye(3), [0, 1, 1]), method)
    with pytest.raises(ValueError, match="solves a CardProblem"):
        solve(RerankProblem(X, Y, integer=3), "cards")


# --- certificates ----------------------------------------------------------------------------------------------


def example():
    rng = np.random.default_rng(8)  # the weights are 5, 0 and -4
    features = rng.normal(size=(12, 3))
    y = (features @ [1.0, 0.4, -0.7] + rng.normal(size=12) > 0).astype(int)
    sides = LinearConstraints([[0.0, -1.0, 0.0]], [0.0])
    problem = RerankProblem(features, y, integer=5, required=[0], max_nonzeros=2, constraints=sides, C=0.01)
    return certify(problem, solve(problem, KERNEL))


def test_a_weaker_problem_needs_another_proof():
    """Without the required column, or with real weights, more is possible: the boxes do not close."""
    content = json.loads(json.dumps(example().content))
    real = {**content, "problem": {**content["problem"], "integer": None}}
    with pytest.raises(verify.CertificateError, match=r"weights|proof"):
        verify.check(verify.parse(json.dumps(real)))
    for weights in ([2.5, 0.0, -1.0], [6.0, 0.0, -2.0], [0.0, 0.0, 1.0]):
        with pytest.raises(verify.CertificateError, match=r"weights\[0\]: must be "):
            verify.check(verify.parse(json.dumps({**content, "weights": weights})))
