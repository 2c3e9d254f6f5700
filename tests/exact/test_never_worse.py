"""No answer of `solve` is worse than a single feature or a warm start, whatever stops it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from ltr.exact import METHODS, Limits, LinearConstraints, PairwiseProblem, RerankProblem, Status, solve
from ltr.exact.cards import CardProblem
from ltr.exact.scip import ScipSolver
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.rankers.exact import ReproducibleSearch
from tests.reference import admits
from tests.tiers import slow_but

RNG = np.random.default_rng(7)
X = np.column_stack([RNG.normal(size=(24, 3)), RNG.integers(0, 2, 24)])
SCORES = 3 * X[:, 1] - X[:, 0] + 2 * X[:, 3] + RNG.normal(size=24)
Y, GRADES, LISTS = (SCORES > 0).astype(int), np.digitize(SCORES, [-2, 0, 2]), np.repeat(np.arange(6), 4)
EYE = np.eye(4)


def sides(A, b):
    return LinearConstraints(np.array(A, dtype=float), np.array(b, dtype=float))


CUT = sides([[1, 1, 1, 1], [0, -1, 0, 0]], [0.5, 0])  # the weights add up to at most 0.5, and w_1 >= 0
PROBLEMS = {
    "one list": RerankProblem(X, Y),
    "one list, AUC": RerankProblem(X, Y, "auc"),
    "one list, subranks": RerankProblem(X, Y, ties="subrank"),
    "lists": RerankProblem(X, GRADES, qid=LISTS, normalize=True),
    "lists, subranks": RerankProblem(X, GRADES, qid=LISTS, ties="subrank"),
    "preferences": PairwiseProblem(X, [(i, k) for i in range(24) for k in range(24) if GRADES[i] > GRADES[k] + 1]),
    "a price": RerankProblem(X, Y, C=0.1),
    "lists, a price": RerankProblem(X, GRADES, qid=LISTS, C=0.05, free=[1]),
    "signs": RerankProblem(X, Y, constraints=sides(np.diag([1, -1, -1, 1]), np.zeros(4))),
    "a forbidden column": RerankProblem(X, Y, constraints=sides([EYE[1], -EYE[1]], [0, 0])),
    "short weights": RerankProblem(X, Y, constraints=CUT),
    "a sum of 1": RerankProblem(X, Y, constraints=sides([np.ones(4), -np.ones(4)], [1, -1])),
    "a required column": RerankProblem(X, Y, required=[1]),
    "one weight": RerankProblem(X, Y, max_nonzeros=1),
    "two weights of lists": RerankProblem(X, GRADES, qid=LISTS, max_nonzeros=2),
    "whole numbers": RerankProblem(X, Y, integer=3),
    "short whole numbers": RerankProblem(X, Y, integer=5, constraints=sides([np.ones(4)], [3.5])),
    "a card": CardProblem((X > 0) * 1.0, Y, points=3, max_nonzeros=2),
    "nothing": RerankProblem(X, Y, constraints=sides([EYE[0]], [-2])),
    "nothing whole": RerankProblem(X, Y, integer=1, constraints=sides([EYE[0], -EYE[0]], [0.6, -0.4])),
}
METHODS_TRIED = {
    "auto": "auto",
    "without SCIP": WeightSpaceSearch(scip=False, threads=1),
    "boxes alone": WeightSpaceSearch(scip=False, threads=1, local_search=0.0),
    "reproducible": ReproducibleSearch(),
    **{name: name for name in METHODS},
    **{
        f"{name}, no search": dataclasses.replace(solver, local_search=0.0)
        for name, solver in METHODS.items()
        if isinstance(solver, ScipSolver)
    },
}
STOPS = {
    "no time": {"limits": Limits(time_limit=1e-9)},
    "little time": {"limits": Limits(time_limit=0.02)},
    "a node": {"limits": Limits(time_limit=0.2, node_limit=1)},
    "no memory": {"limits": Limits(time_limit=0.2, memory_limit=1e-6)},
    "a request": {"should_stop": lambda: True},
}


def solvable(problem, method):
    return admits(METHODS[method] if isinstance(method, str) and method != "auto" else method, problem)


def alone(problem):
    """Each feature by itself, as much of it as may be used."""
    if isinstance(problem, CardProblem) or problem.integer is None:
        lengths = np.linspace(0.05, 1.0, 20) if problem.constraints is not None else [1.0]
    else:
        lengths = range(1, problem.integer + 1)
    return [sign * length * axis for axis in EYE for sign in (1, -1) for length in lengths]


@pytest.mark.parametrize("stop", slow_but(STOPS, quick=["no time", "a request"]))
@pytest.mark.parametrize("kind", PROBLEMS)
def test_no_answer_is_worse_than_a_single_feature_or_a_warm_start(kind, stop):
    problem = PROBLEMS[kind]
    rng = np.random.default_rng(len(kind))
    starts = [*rng.uniform(-1, 1, size=(2, 4)), np.array([0.25, 0.0, 0.25, 0.5]), np.array([0.0, 2.0, 0.0, 1.0])]
    for given in ([], starts):
        candidates = [w for w in (*alone(problem), *given) if problem.feasible(w)]
        least = max(map(problem.evaluate, candidates), default=-math.inf)
        for method in METHODS_TRIED.values():
            if method != "auto" and not solvable(problem, method):
                continue
            solution = solve(problem, method, **STOPS[stop], warm_starts=given)
            assert solution.value >= least - 1e-12, method
            assert solution.value <= solution.bound
            if "nothing" in kind:
                assert solution.value == -math.inf
            elif solution.value == -math.inf:
                assert solution.status is not Status.INFEASIBLE
            else:
                assert problem.feasible(solution.weights)
                assert solution.value == problem.evaluate(solution.weights)
