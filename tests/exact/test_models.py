"""The paper's formulations: each one's optimum is the enumerated one, each admits every weight at its true value."""

import dataclasses

import numpy as np
import pytest

from ltr.exact import Limits, LinearConstraints, PairwiseProblem, RerankProblem, Status, solve
from ltr.exact.scip import Auc, Pairwise, ResolvedRank, Subrank
from ltr.exact.scip.solver import add_solution
from ltr.exact.solve import METHODS
from tests.exact import vertex_reference as reference
from tests.reference import admits, cell_optimum_pairs, random_instance, random_pairwise
from tests.tiers import slow_but


def alone(method):
    """A method without the local search, so that the model has to find the optimum itself."""
    return dataclasses.replace(METHODS[method], local_search=0.0)


def with_ties(problem, ties, **changes):
    fields = {name: getattr(problem, name) for name in ("X", "y", "statistic", "C", "margin", "constraints")}
    return RerankProblem(**(fields | changes), ties=ties)


# --- exactness -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", slow_but(range(24), quick=range(10)))
def test_the_subrank_model_is_exact_where_the_margin_binds(seed):
    rng = np.random.default_rng([77, seed])
    n, d = int(rng.integers(4, 8)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)).round(int(rng.integers(0, 4)))
    rules = {
        "C": float(rng.choice([0.0, 0.05])),
        "margin": float(rng.choice([1e-5, 0.05, 0.3, 1.0])),
        "statistic": str(rng.choice(["dcg", "mrr", "dcg@3", "wrs", "power(p=0.5)"])),
    }
    if seed % 3 == 0:
        limit = float(rng.choice([0.0, 0.2, -0.1]))
        rules["constraints"] = LinearConstraints(rng.normal(size=(1, d)), [limit])
    problem = RerankProblem(X, np.arange(n) < n // 2, ties="subrank", **rules)
    solution = solve(problem, alone("subrank"))
    best, _ = reference.optimum(problem)
    assert solution.value == pytest.approx(best, abs=1e-8)
    assert solution.bound >= best - 1e-9
    assert solution.status is Status.OPTIMAL


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


@pytest.mark.parametrize("formulation", [ResolvedRank, Subrank, Auc, Pairwise])
def test_a_model_wins_no_comparison_by_less_than_the_margin(formulation):
    for width, won in ((0.07, 0.0), (0.11, 1.0)):
        X = [[0.0], [width]]
        if formulation is Pairwise:
            problem = PairwiseProblem(X, [(1, 0)], margin=0.1)
        else:
            ties = "subrank" if formulation is Subrank else "resolved"
            problem = RerankProblem(X, [0, 1], "auc" if formulation is Auc else "wta", ties=ties, margin=0.1)
        made = formulation(problem)
        made.model.optimize()
        assert made.model.getObjVal() == pytest.approx(won, abs=1e-9)


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
        (Subrank, RESOLVED, "ties='subrank'"),
        (Auc, RESOLVED, "'auc' or 'wrs'"),
        (Pairwise, RESOLVED, "a PairwiseProblem, got a RerankProblem"),
    ],
)
def test_a_formulation_refuses_other_problems(formulation, problem, needs):
    with pytest.raises(ValueError, match=needs):
        formulation(problem)
