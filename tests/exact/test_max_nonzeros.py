import dataclasses
import itertools
import math

import numpy as np
import pytest

from ltr.exact import RerankProblem
from ltr.exact.local_search import search_locally
from ltr.exact.preferences import PairwiseProblem, multipartite_pairs
from ltr.exact.scip import Pairwise, ScipSolver, Subrank
from ltr.exact.solution import Status
from ltr.exact.solve import solve
from ltr.exact.state import Limits, SolveState
from tests.reference import optimum_of, random_instance

X, Y = [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0]], [0, 1, 0]


def limited(problem, most):
    """The problem with at most so many weights, and its optimum: the best over the supports of that size."""
    parts = [dataclasses.replace(problem, X=problem.X[:, c]) for c in itertools.combinations(range(problem.d), most)]
    return dataclasses.replace(problem, max_nonzeros=most), max(optimum_of(part)[0] for part in parts)


def assert_proves(problem, optimum, method):
    solution = solve(problem, method, Limits(time_limit=60))
    assert solution.status is Status.OPTIMAL, (method, solution)
    assert solution.value == pytest.approx(optimum, abs=1e-9)
    assert np.count_nonzero(solution.weights) <= problem.max_nonzeros
    assert problem.evaluate(solution.weights) == solution.value


# --- the problem -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 4, -1, 1.0, True, "1", math.nan])
def test_a_limit_is_an_integer_from_1_to_d(most):
    for build in (
        lambda: RerankProblem(X, Y, max_nonzeros=most),
        lambda: PairwiseProblem(X, [(1, 0)], max_nonzeros=most),
    ):
        with pytest.raises(ValueError, match=r"max_nonzeros must be an integer from 1 to 3.* got "):
            build()


@pytest.mark.parametrize(
    ("w", "most", "feasible"),
    [
        ([0, 0, 0], 1, True),
        ([0.5, 0, 0], 1, True),
        ([0.5, 0, 1e-300], 1, False),  # counted exactly
        ([0.5, 0, -0.0], 1, True),
        ([1.0, 1.0, 1.0], 2, False),
        ([1.0, 1.0, 1.0], None, True),
    ],
)
def test_feasible_counts_non_zero_weights(w, most, feasible):
    assert RerankProblem(X, Y, max_nonzeros=most).feasible(w) is feasible


# --- exact methods ---------------------------------------------------------------------------------------------


def test_mip_model_of_preferences_by_enumeration_of_supports():
    for seed in (1, 3, 6, 8):
        drawn = random_instance(seed, d=3)
        pairs = PairwiseProblem(drawn.X, multipartite_pairs(drawn.y))
        assert_proves(*limited(pairs, 1), ScipSolver(Pairwise, local_search=0))


def test_a_model_completes_only_what_the_limit_admits():
    model = Subrank(RerankProblem(X, Y, ties="subrank", max_nonzeros=2))
    assert len(model.gamma) == 3
    assert model.complete(np.array([1.0, 0.5, 0.0])) is not None
    assert model.complete(np.array([1.0, 0.5, 0.25])) is None
    model.model.free()


# --- warm start ------------------------------------------------------------------------------------------------


def wide(most, **options):
    """80 observations on 10 features, of which 2 decide the label."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(80, 10)) * np.geomspace(0.1, 10, 10)
    y = (X[:, 2] / X[:, 2].std() - X[:, 7] / X[:, 7].std() > 0.5).astype(int)
    return RerankProblem(X, y, max_nonzeros=most, **options)


def searched(problem, seconds=5.0, restarts=40):
    state = SolveState(problem, Limits(time_limit=60))
    search_locally(state, seconds, restarts)
    return state


def test_the_local_search_finds_the_two_features_that_decide():
    state = searched(wide(2))
    assert np.flatnonzero(state.weights).tolist() == [2, 7]
    assert state.value == pytest.approx(state.problem.trivial_bound, rel=1e-3)
