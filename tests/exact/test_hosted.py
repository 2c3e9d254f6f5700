import functools
import itertools
import math
import signal

import numpy as np
import pytest

from ltr.exact import LinearConstraints, RerankProblem, tuning
from ltr.exact.solution import Status
from ltr.exact.solve import solve
from ltr.exact.state import Limits
from ltr.exact.weight_space import WeightSpaceSearch
from tests.reference import optimum_of, random_graded, random_pairwise

HOSTED = WeightSpaceSearch(threads=1, local_search=0)
KERNEL = WeightSpaceSearch(threads=1, local_search=0, scip=False)


def medium(**options):
    """30 observations on 4 features: hundreds of boxes, several rounds."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 4))
    y = (X @ rng.normal(size=4) + 2 * rng.normal(size=30) > 0).astype(int)
    return RerankProblem(X, y, **options)


ORDER = LinearConstraints([[-1.0, 1.0, 0.0, 0.0], [0.0, -1.0, 1.0, 0.0]], [0.0, 0.0])
"""w_0 >= w_1 >= w_2: SCIP branches."""
TREES = pytest.mark.parametrize("sides", [None, ORDER], ids=["chain", "tree"])


def solve_medium(limits, sides=None, method=None, **options):
    """Solve `medium` from its best weights: without good weights it takes seconds to settle narrow boxes."""
    best = [0.852, -1.0, 0.067, -0.897] if sides is None else [0.35, -0.63, -0.65, -1.0]
    return solve(medium(constraints=sides), method or HOSTED, limits, warm_starts=[best], **options)


@functools.cache
def medium_proven(sides=None):
    return solve_medium(Limits(time_limit=60), sides)


def hard(sides=None):
    """Nobody proves 120 noisy observations on 12 features in a second."""
    rng = np.random.default_rng(6)
    if sides is not None:
        sides = LinearConstraints(np.eye(12)[1:] - np.eye(12)[:-1], np.zeros(11))
    return RerankProblem(rng.normal(size=(120, 12)), rng.integers(0, 2, size=120), constraints=sides)


def assert_valid(problem, solution, optimum):
    """Value and bound on either side of the optimum, and a trace that agrees."""
    assert solution.value <= optimum + 1e-9 <= solution.bound + 2e-9
    assert solution.bound <= problem.trivial_bound + 1e-9
    assert solution.value == -math.inf or problem.evaluate(solution.weights) == solution.value
    for before, after in itertools.pairwise(solution.trace):
        assert before.bound >= after.bound >= solution.bound
        assert before.incumbent <= after.incumbent


# --- proofs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [random_pairwise, random_graded])
def test_preferences_and_graded_lists_by_enumeration(draw):
    for seed in range(24):
        problem = draw(seed)
        for method in (HOSTED, KERNEL):
            solution = solve(problem, method, Limits(time_limit=60))
            assert solution.status is Status.OPTIMAL, (method, solution)
            optimum = optimum_of(problem)[0]
            assert solution.value == pytest.approx(optimum, abs=1e-9)
            assert solution.bound == pytest.approx(optimum, abs=1e-9 * max(1.0, abs(optimum)))
            assert problem.evaluate(solution.weights) == solution.value


@pytest.mark.parametrize(
    ("A", "b"),
    [
        ([[-1.0, -1.0]], [-2.5]),  # outside the box
        # w_0 >= w_1 + 1/10 >= w_0 + 1/5: each coordinate alone has room
        ([[-1.0, 1.0], [1.0, -1.0]], [-0.1, -0.1]),
    ],
)
def test_side_constraints_that_nothing_satisfies(A, b):
    p = RerankProblem([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 0], constraints=LinearConstraints(A, b))
    assert solve(p, HOSTED, Limits(time_limit=60)).status is Status.INFEASIBLE


@pytest.mark.parametrize("options", [{"C": 0.05}, {"max_nonzeros": 2}, pytest.param({}, marks=pytest.mark.slow)])
def test_several_rounds_end_at_the_kernels_optimum(options):
    p = medium(**options)
    kernel, hosted = solve(p, KERNEL, Limits(time_limit=60)), solve(p, HOSTED, Limits(time_limit=60))
    assert hosted.status is kernel.status is Status.OPTIMAL
    assert hosted.value == pytest.approx(kernel.value, abs=1e-9)
    assert hosted.nodes == kernel.nodes  # the same boxes


@pytest.mark.parametrize("options", [{}, {"C": 0.05, "ties": "subrank"}])
def test_linear_programs_decide_what_boxes_cannot(options):
    # a box may satisfy w_0 >= w_1 and w_1 >= w_2 somewhere without satisfying both at one point
    p = medium(constraints=ORDER, **options)
    kernel, hosted = solve(p, KERNEL, Limits(time_limit=0.3)), solve(p, HOSTED, Limits(time_limit=60))
    assert hosted.status is Status.OPTIMAL
    assert kernel.value - 1e-9 <= hosted.value <= kernel.bound + 1e-9
    assert kernel.status is Status.TIME_LIMIT


@pytest.mark.parametrize("regions", [1, 3])
def test_boxes_that_share_a_node_are_searched_as_well(monkeypatch, regions):
    for name, number in (("REGION_WORK", 1), ("REGION_SHARE", 0.0), ("REGIONS", regions)):
        monkeypatch.setattr(tuning, name, number)
    p = medium(constraints=ORDER)
    solution = solve(p, HOSTED, Limits(time_limit=60))
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(medium_proven(ORDER).value, abs=1e-9)


# --- limits ----------------------------------------------------------------------------------------------------


@TREES
def test_a_node_limit_leaves_a_valid_bound(sides):
    p = medium(constraints=sides)
    whole, statuses = medium_proven(sides), set()
    for limit in (1, 50, whole.nodes - 1):
        solution = solve_medium(Limits(time_limit=60, node_limit=limit), sides)
        statuses.add(solution.status)
        assert_valid(p, solution, whole.value)
        assert limit > 50 or solution.status is Status.NODE_LIMIT
        assert solution.nodes <= 1.2 * whole.nodes  # the targets depend on the time that each takes
    assert Status.NODE_LIMIT in statuses <= {Status.NODE_LIMIT, Status.OPTIMAL}


@TREES
@pytest.mark.parametrize("gap", [0.5, 0.05, 0.01])
def test_a_gap_ends_the_search(gap, sides):
    p = medium(constraints=sides)
    best = medium_proven(sides)
    solution = solve_medium(Limits(time_limit=60, gap=gap), sides)
    assert solution.status in (Status.GAP_LIMIT, Status.OPTIMAL)
    assert solution.gap <= gap
    assert solution.nodes <= best.nodes
    assert_valid(p, solution, best.value)


@TREES
def test_stopped_at_any_question_it_leaves_a_valid_bound(sides):
    p = medium(constraints=sides)
    optimum = medium_proven(sides).value
    statuses = set()
    for allowed in (0, 1, 2, 4, 8, 16, 24, 32, 10**9):
        questions = itertools.count()
        stop = lambda q=questions, a=allowed: next(q) >= a  # noqa: E731
        solution = solve_medium(Limits(time_limit=60), sides, should_stop=stop)
        statuses.add(solution.status)
        assert_valid(p, solution, optimum)
    assert statuses == {Status.INTERRUPTED, Status.OPTIMAL}


@TREES
def test_ctrl_c_ends_it_at_once_with_a_valid_bound(sides):
    asked = itertools.count()

    def press():
        if next(asked) == 10:
            signal.raise_signal(signal.SIGINT)
        return False

    solution = solve(hard(sides), HOSTED, Limits(time_limit=60), should_stop=press)
    assert solution.status is Status.INTERRUPTED
    assert next(asked) <= 12
    assert solution.value <= solution.bound


@TREES
@pytest.mark.parametrize("point", [0, 1, 3])
def test_exceptions_of_the_caller_pass_through(point, sides):
    class OwnError(Exception):
        pass

    seen = itertools.count()

    def on_progress(_):
        if next(seen) == point:
            raise OwnError

    with pytest.raises(OwnError):
        solve(medium(constraints=sides), HOSTED, Limits(time_limit=60), on_progress=on_progress)


def test_the_same_seed_searches_the_same_tree():
    one, two = (solve(medium(C=0.02, constraints=ORDER), HOSTED, Limits(time_limit=60, seed=3)) for _ in range(2))
    assert (one.nodes, one.value, one.message) == (two.nodes, two.value, two.message)


@pytest.mark.parametrize("seed", range(0, 20, 2))
def test_children_whose_bound_is_below_0_are_searched(seed):
    """SCIP's model has no objective, and would cut off nodes with a bound beyond its value of 0."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 4)).round(1), (rng.random(12) < 0.5).astype(int)
    y[:2] = 0, 1
    problem = RerankProblem(X, y, "auc", C=1.0, constraints=LinearConstraints([[-1.0] * 4], [-1.2]))
    hosted, alone = (solve(problem, method, Limits(time_limit=60)) for method in (HOSTED, KERNEL))
    assert hosted.status is alone.status is Status.OPTIMAL
    assert hosted.value == pytest.approx(alone.value, abs=1e-9)
