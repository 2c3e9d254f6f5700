"""The paper's formulations: each one's optimum is the enumerated one, each admits every weight at its true value."""

import dataclasses
import math

import cvxpy as cp
import numpy as np
import pytest

from ltr.exact import Limits, LinearConstraints, PairwiseProblem, RerankProblem, Status, solve
from ltr.exact.scip import Auc, Pairwise, ResolvedRank, Subrank
from ltr.exact.scip.solver import add_solution
from ltr.exact.solve import METHODS
from tests.reference import admits, cell_optimum_pairs, random_instance, random_pairwise
from tests.tiers import slow_but


def alone(method):
    """A method without the local search, so that the model has to find the optimum itself."""
    return dataclasses.replace(METHODS[method], local_search=0.0)


def with_ties(problem, ties, **changes):
    fields = {name: getattr(problem, name) for name in ("X", "y", "statistic", "C", "margin", "constraints")}
    return RerankProblem(**(fields | changes), ties=ties)


def highs_subrank(problem, tolerance=1e-9):
    """Objective and weights of the paper's Subrank model written once more, in cvxpy for HiGHS.

    max   n_pos a_1 + sum ã_l t_il - C sum γ_j
    s.t.  (l - 1) t_il <= sum_k z_ik,    L z_ik <= w·(x_i - x_k) + L - ε,    -γ <= w <= γ,    A w <= b
    """
    n, d = problem.X.shape
    a = problem.a
    positives = [i for i in range(n) if problem.y[i] == 1]
    levels = [rank for rank in range(2, n + 1) if a[rank - 1] > a[rank - 2]]
    w = cp.Variable(d)
    gamma = cp.Variable(d, boolean=True)
    z = cp.Variable((len(positives), n), boolean=True)
    rules = [w <= gamma, -gamma <= w]
    norms = np.abs(problem.X[:, None, :] - problem.X[None, :, :]).sum(axis=2)
    scale = norms.max() + problem.margin
    for row, i in enumerate(positives):
        rules += [scale * z[row] <= (problem.X[i] - problem.X) @ w + scale - problem.margin]
    objective = len(positives) * a[0] + problem.shift - problem.C * cp.sum(gamma)
    if levels:
        t = cp.Variable((len(positives), len(levels)), boolean=True)
        rules += [(rank - 1) * t[:, at] <= cp.sum(z, axis=1) for at, rank in enumerate(levels)]
        steps = np.array([a[rank - 1] - a[rank - 2] for rank in levels])
        objective = objective + cp.sum(t @ steps)
    if problem.constraints is not None:
        rules += [problem.constraints.A @ w <= problem.constraints.b]
    program = cp.Problem(cp.Maximize(objective), rules)
    options = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_feasibility_tolerance": tolerance}
    program.solve(solver=cp.HIGHS, highs_options=options | {"primal_feasibility_tolerance": tolerance})
    assert program.status == cp.OPTIMAL, program.status
    return float(program.value), np.asarray(w.value, dtype=np.float64)


# --- exactness -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(0, 72, 6))
def test_highs_agrees_on_the_subrank_model(seed):
    problem = with_ties(random_instance(seed), "subrank")
    claimed, weights = highs_subrank(problem)
    ours = solve(problem, alone("subrank"))
    assert ours.value == pytest.approx(claimed, abs=1e-8)
    assert problem.evaluate(np.where(np.abs(weights) < 1e-7, 0, weights)) <= ours.value + 1e-9


@pytest.mark.parametrize("seed", slow_but(range(24), quick=range(7)))
def test_highs_agrees_where_the_margin_binds(seed):
    rng = np.random.default_rng([77, seed])
    n, d = int(rng.integers(4, 8)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)).round(int(rng.integers(0, 4)))
    y = (np.arange(n) < n // 2).astype(int)
    rules = {
        "C": float(rng.choice([0.0, 0.05])),
        "margin": float(rng.choice([1e-5, 0.05, 0.3, 1.0])),
        "statistic": str(rng.choice(["dcg", "mrr", "dcg@3", "wrs", "power(p=0.5)"])),
    }
    if seed % 3 == 0:
        limit = float(rng.choice([0.0, 0.2, -0.1]))
        rules["constraints"] = LinearConstraints(rng.normal(size=(1, d)), [limit])
    tries = rng.uniform(-1, 1, size=(300, d))
    problem = RerankProblem(X, y, ties="subrank", **rules)
    answer = solve(problem, alone("subrank"))
    assert answer.value == pytest.approx(highs_subrank(problem)[0], abs=1e-8)
    assert answer.status is Status.OPTIMAL
    sampled = max((problem.evaluate(w) for w in tries if problem.feasible(w)), default=-math.inf)
    assert sampled <= answer.bound


@pytest.mark.parametrize("seed", slow_but(range(200), quick=range(51)))
def test_the_model_of_preferences_finds_the_enumerated_optimum(seed):
    """`tests.exact.test_agreement` has the others."""
    pairs = random_pairwise(seed)
    A = np.random.default_rng([3, seed]).integers(-2, 3, size=(2, pairs.d)).astype(float) * (seed % 2)
    problem = dataclasses.replace(pairs, constraints=LinearConstraints(A, [0.0, 0.0]))
    optimum, _ = cell_optimum_pairs(pairs.X, pairs.pairs, pairs.weights, pairs.C, A=A)
    solution = solve(problem, alone("pairwise"), Limits(seed=seed))
    assert solution.value == pytest.approx(optimum, abs=1e-9)
    assert solution.value <= solution.bound <= optimum + 1e-8
    assert solution.status is Status.OPTIMAL


# --- every weight is admitted at its value ---------------------------------------------------------------------


def formulations(seed):
    """Each formulation with a problem it is about."""
    drawn = random_instance(seed)
    resolved, subrank = with_ties(drawn, "resolved"), with_ties(drawn, "subrank")
    yield ResolvedRank(resolved)
    yield Subrank(subrank)
    yield Pairwise(random_pairwise(seed))
    if admits(Auc, resolved):
        yield Auc(resolved)


@pytest.mark.parametrize("seed", range(0, 52, 4))
def test_complete_turns_any_weights_into_a_solution_of_the_same_value(seed):
    rng = np.random.default_rng(seed)
    for formulation in formulations(seed):
        d, model = formulation.problem.d, formulation.model
        for w in [rng.uniform(-1, 1, d), rng.integers(-1, 2, d).astype(float), np.eye(d)[0]]:
            values = formulation.complete(w)
            assert values is not None
            assert len(values) == model.getNVars()
            solution = model.createOrigSol()
            for variable, value in values:
                model.setSolVal(solution, variable, value)
            assert model.checkSol(solution, original=True)
            assert model.getSolObjVal(solution) == pytest.approx(formulation.problem.evaluate(w), abs=1e-12)
            model.freeSol(solution)
        assert add_solution(model, values)
        formulation.guard.check()
        model.free()


def test_the_resolved_model_moves_weights_apart_or_refuses_them():
    problem = RerankProblem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 0], margin=0.1)
    formulation = ResolvedRank(problem)
    assert formulation.complete(np.array([1.0, 0.05])) is not None  # (1, 0.05) has a gap of 0.05, (1, 0.1) has none
    assert formulation.complete(np.array([0.04, 0.0])) is not None  # scaled up
    narrow = RerankProblem([[0.0], [1.0], [1.01]], [0, 1, 0], margin=0.1)
    assert ResolvedRank(narrow).complete(np.array([1.0])) is None  # 0.01 apart at best


# --- arguments -------------------------------------------------------------------------------------------------

RESOLVED = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], ties="resolved")
SUBRANK = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], ties="subrank")
PAIRS = PairwiseProblem([[0.0], [1.0]], [(1, 0)])


@pytest.mark.parametrize(
    ("formulation", "problem", "needs"),
    [
        (ResolvedRank, SUBRANK, "ties='resolved'"),
        (ResolvedRank, PAIRS, "ties='resolved', got a PairwiseProblem"),
        (Subrank, RESOLVED, "ties='subrank'"),
        (Auc, RESOLVED, "'auc' or 'wrs'"),
        (Auc, PAIRS, "got a PairwiseProblem"),
        (Pairwise, RESOLVED, "a PairwiseProblem, got a RerankProblem"),
    ],
)
def test_a_formulation_refuses_other_problems(formulation, problem, needs):
    with pytest.raises(ValueError, match=needs):
        formulation(problem)
