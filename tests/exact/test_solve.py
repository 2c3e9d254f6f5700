"""`solve`: limits, interrupts, traces, warm starts, statuses, and files, whatever the method."""

import dataclasses
import itertools
import math
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pyscipopt
import pytest

from ltr.exact import (
    METHODS,
    Limits,
    LinearConstraints,
    PairwiseProblem,
    RerankProblem,
    Status,
    TracePoint,
    multipartite_pairs,
    solve,
)
from ltr.exact.largest_margin import maximise_margin
from ltr.exact.scip import ResolvedRank, ScipSolver
from ltr.exact.scip.solver import STATUS
from ltr.exact.solve import choose_method
from ltr.exact.state import Ending, Interrupts, SolveState, Stopped
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.statistics import RankStatistic
from tests.imports import loaded_by
from tests.paths import ROOT
from tests.reference import cell_optimum, graded_problem, random_instance
from tests.tiers import examples, slow_but

DIRECT = WeightSpaceSearch(scip=False)
SMALL = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 0])
NO_SEARCH = {
    name: dataclasses.replace(solver, local_search=0.0)
    for name, solver in METHODS.items()
    if isinstance(solver, ScipSolver)
}


def hard_list(ties="resolved", statistic="dcg", n=50, d=7):
    """A list of a size that no model here proves within seconds."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=d) + 2 * rng.normal(size=n) > 0).astype(int)
    return RerankProblem(X, y, statistic, ties=ties)


def assert_sound(problem, solution):
    """What holds for every solution, whatever stopped it."""
    assert solution.weights.shape == (problem.d,)
    assert np.max(np.abs(solution.weights)) <= 1
    assert solution.value == problem.evaluate(solution.weights)
    assert problem.feasible(solution.weights)
    assert solution.value <= solution.bound <= problem.trivial_bound
    trace = solution.trace
    assert len(trace) >= 1
    for before, after in itertools.pairwise(trace):
        assert before.seconds <= after.seconds
        assert before.incumbent <= after.incumbent
        assert before.bound >= after.bound
        assert before.nodes <= after.nodes
    assert all(point.incumbent <= point.bound for point in trace)
    assert trace[-1].incumbent == solution.value
    assert trace[-1].bound == solution.bound
    assert trace[-1].seconds <= solution.seconds + 1e-6


# --- methods ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem",
    [
        SMALL,
        RerankProblem([[0.0], [1.0]], [0, 1], "wrs", constraints=LinearConstraints([[1.0]], [0.5])),
        graded_problem([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0]),
        PairwiseProblem([[0.0], [1.0]], [(1, 0)]),
    ],
)
def test_auto_chooses_and_says_why(problem):
    assert choose_method(problem)[0] == "weight_space"
    solution = solve(problem, limits=Limits(time_limit=20))
    assert solution.method == "weight_space"
    assert solution.message.startswith(f"auto chose weight_space: {problem.d} feature")
    assert solution.status is Status.OPTIMAL
    assert_sound(problem, solution)


def test_every_method_with_the_local_search_in_front():
    drawn = random_instance(14)
    problems = {ties: RerankProblem(drawn.X, drawn.y, "wrs", C=0.01, ties=ties) for ties in ("resolved", "subrank")}
    pairs = PairwiseProblem(drawn.X, multipartite_pairs(drawn.y), C=0.01)
    for name in METHODS.keys() - {"cards", "lattice"}:
        problem = problems["subrank"] if "subrank" in name else pairs if "pairwise" in name else problems["resolved"]
        solution = solve(problem, name, Limits(time_limit=30))
        assert_sound(problem, solution)
        assert solution.method == name
        if problem is not pairs:
            optimum, _ = cell_optimum(problem.X, problem.y, "wrs", 0.01, problem.ties)
            assert solution.value == pytest.approx(optimum, abs=1e-9)
        proves = name not in ("local_search", "resolved")
        assert solution.status is Status.OPTIMAL or (not proves and solution.status is Status.HEURISTIC)
        assert (solution.model_bound is None) == (name in ("local_search", "weight_space"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "simplex"}, "method must be one of auto, local_search, .*got 'simplex'"),
        ({"method": WeightSpaceSearch}, "method must be a name or a solver object, got <class"),
        ({"limits": 5.0}, r"limits must be a Limits, such as Limits\(time_limit=60\), got 5.0"),
        ({"method": "subrank"}, "ties='subrank', got a RerankProblem with statistic 'dcg' and ties='resolved'"),
        ({"warm_starts": [[1.0, 2.0]]}, r"w must have shape \(1,\)"),
        ({"problem": "problem"}, "RerankProblem or PairwiseProblem, got str"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        solve(**{"problem": SMALL, **change})


@pytest.mark.parametrize(
    ("name", "rule", "wrong"),
    [
        ("time_limit", "a number of seconds > 0", ["5", 0, math.nan]),
        ("gap", "a finite number >= 0", [None, -0.1]),
        ("node_limit", "at least 1", ["5", 0]),
        ("memory_limit", "a number of megabytes > 0", ["5", 0]),
        ("seed", r"an integer from 0 to 2\*\*31 - 1", [-1, 1.5]),
    ],
)
def test_bad_limits(name, rule, wrong):
    for value in wrong:
        with pytest.raises(ValueError, match=f"{name} must be {rule}, got {value!r}"):
            Limits(**{name: value})


def test_bad_solver_options():
    with pytest.raises(ValueError, match="local_search must be a share"):
        dataclasses.replace(METHODS["resolved"], local_search=1.0)


# --- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["resolved", "subrank"])
def test_a_time_limit_returns_the_incumbent_and_a_valid_bound(method):
    problem = hard_list(ties=method)
    good = solve(problem, "local_search", Limits(time_limit=0.1))
    solution = solve(problem, METHODS[method], Limits(time_limit=0.5))
    assert solution.status is Status.TIME_LIMIT
    assert_sound(problem, solution)
    assert solution.value > problem.evaluate(np.zeros(problem.d))
    assert solution.bound >= good.value
    assert solution.bound == problem.trivial_bound
    assert solution.model_bound is None or solution.model_bound > problem.trivial_bound


def test_node_and_gap_limits():
    problem = hard_list("subrank", n=12, d=3)
    solution = solve(problem, NO_SEARCH["subrank"], Limits(node_limit=2))
    assert solution.status is Status.NODE_LIMIT
    assert solution.nodes <= 3
    assert_sound(problem, solution)
    solution = solve(problem, NO_SEARCH["subrank"], Limits(gap=0.3))
    assert solution.status in (Status.GAP_LIMIT, Status.OPTIMAL)
    assert solution.gap <= 0.3
    assert_sound(problem, solution)


def test_the_seed_makes_a_run_repeatable():
    problem = hard_list(n=8, d=3)
    one, other = (solve(problem, NO_SEARCH["resolved"], Limits(seed=5)) for _ in range(2))
    assert (one.nodes, one.value, one.weights.tolist()) == (other.nodes, other.value, other.weights.tolist())


def test_every_status_of_scip_is_mapped():
    known = {name.lower() for name in dir(pyscipopt.scip.PY_SCIP_STATUS) if not name.startswith("_")}
    assert known - {"terminate"} <= set(STATUS)  # pyscipopt reports it as unknown


# --- stopping by hand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "method"), [(1, "subrank"), (10, "auc"), (11, "subrank")])
def test_a_stop_at_any_callback_leaves_a_valid_bound(seed, method):
    # among the callbacks are some in which SCIP cannot be interrupted, and some in which its bound is void
    problem = dataclasses.replace(random_instance(seed), **({"statistic": "auc"} if method == "auc" else {}))
    optimum, _ = cell_optimum(problem.X, problem.y, problem.statistic, problem.C, problem.ties)
    for callbacks in range(1, 60, examples(2, slow=1)):
        left = [callbacks]

        def stop(left=left):
            left[0] -= 1
            return left[0] < 0

        solution = solve(problem, NO_SEARCH[method], should_stop=stop)
        assert solution.status in (Status.INTERRUPTED, Status.OPTIMAL)
        assert solution.bound >= optimum - 1e-9
        assert_sound(problem, solution)


def test_progress_is_reported_and_its_exceptions_are_not_swallowed():
    problem = hard_list(n=14, d=3)
    seen = []
    solution = solve(problem, NO_SEARCH["resolved"], Limits(node_limit=100), on_progress=seen.append)
    assert all(isinstance(point, TracePoint) for point in seen)
    assert [p.incumbent for p in seen] == [p.incumbent for p in solution.trace]

    def broken(point):
        if point.nodes >= 1:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        solve(problem, NO_SEARCH["resolved"], on_progress=broken)


def test_a_keyboard_interrupt_from_a_callback_is_an_interrupt():
    def press(point):
        if point.nodes >= 1:
            raise KeyboardInterrupt

    problem = hard_list(n=14, d=3)
    solution = solve(problem, NO_SEARCH["resolved"], on_progress=press)
    assert solution.status is Status.INTERRUPTED
    assert_sound(problem, solution)


PROGRAM = """
import os, sys, threading
import numpy as np
from tests.exact.test_solve import hard_list, NO_SEARCH
from ltr.exact import METHODS, Limits, solve

def report(point):
    print("point", flush=True)

problem = hard_list(ties=sys.argv[1])
methods = METHODS if sys.argv[2] == "search" else NO_SEARCH
solution = solve(problem, methods[sys.argv[1]], Limits(time_limit=100), on_progress=report)
assert solution.value <= solution.bound <= problem.trivial_bound
assert solution.value == problem.evaluate(solution.weights)
print(solution.status.value, solution.seconds < 60)
"""


@pytest.mark.parametrize(
    ("method", "search", "wait"),
    slow_but(
        [("resolved", "search", 0.0), ("resolved", "alone", 0.2), ("subrank", "alone", 0.2)],
        [("resolved", "alone", 0.2)],
    ),
)
def test_kill_int_returns_the_incumbent(method, search, wait):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, method, search],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as child:
        assert child.stdout.readline() == "point\n"  # the solve is under way
        time.sleep(wait)
        os.kill(child.pid, signal.SIGINT)
        output, errors = child.communicate(timeout=90)
    assert child.returncode == 0, errors
    assert "interrupted True" in output.splitlines()  # SCIP's own line may come after it


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupts_raise_once_and_give_the_handler_back(number):
    before = signal.getsignal(number)
    with Interrupts() as interrupts:
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            interrupts.arm()
        signal.raise_signal(number)
        assert interrupts.count == 2
    assert signal.getsignal(number) is before


def test_an_error_does_not_hide_that_the_user_wants_to_stop():
    def fail():
        with Interrupts():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("bad")

    with pytest.raises(KeyboardInterrupt):
        fail()


# --- warm starts, tolerance, constraints -----------------------------------------------------------------------


def test_margins_within_the_tolerance_are_reported_or_refused():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 0]
    assert "margin 1e-06 is close" in solve(RerankProblem(X, y, margin=1e-6), "resolved").message
    with pytest.raises(ValueError, match="margin must be at least 2e-08 for SCIP with these features"):
        solve(RerankProblem(X, y, margin=1e-9), "resolved")
    with pytest.raises(ValueError, match="margin must be at least"):
        solve(RerankProblem(np.array(X) * 1e6, y), "resolved")
    assert solve(RerankProblem(X, y, margin=1e-9), "local_search").value > 0


def test_a_win_within_the_tolerance_does_not_count():
    # the margin is a hair more than the only difference can be: SCIP accepts it, the problem does not
    problem = RerankProblem([[0.0], [0.5]], [0, 1], margin=0.5 * (1 + 1e-10))
    for ties in ("resolved", "subrank"):
        solution = solve(RerankProblem(problem.X, problem.y, margin=problem.margin, ties=ties), NO_SEARCH[ties])
        assert solution.value == pytest.approx(1 / math.log2(3))
        assert solution.status is (Status.HEURISTIC if ties == "resolved" else Status.INEXACT)
        assert solution.bound == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["weight_space", DIRECT, "local_search"])
@pytest.mark.parametrize("size", [1e160, 2e307])  # squares overflow; nearly the largest that a problem takes
def test_features_of_extreme_size(method, size):
    X = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 0.5], [-0.5, -1.0], [-1.0, -1.0]])
    y = [1, 0, 1, 0, 1]
    optimum, _ = cell_optimum(X, y, "dcg")
    for options in ({}, {"max_nonzeros": 1}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            problem = RerankProblem(size * X, y, **options)
            solution = solve(problem, method, Limits(time_limit=10))
        assert_sound(problem, solution)
        assert solution.value == pytest.approx(optimum) or options
        assert problem.evaluate(maximise_margin(problem, solution.weights)) >= solution.value


@pytest.mark.parametrize("method", ["weight_space", DIRECT, "local_search"])
@pytest.mark.parametrize("start", [[], [[9e-10]]])
def test_a_constraint_through_the_origin_holds_for_tiny_weights(method, start):
    problem = RerankProblem([[0.0], [1e6]], [0, 1], constraints=LinearConstraints([[1.0]], [0.0]))
    solution = solve(problem, method, warm_starts=start)
    assert_sound(problem, solution)
    assert solution.value == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("method", ["weight_space", DIRECT, "resolved"])
def test_bounds_and_values_keep_to_the_tolerance_of_side_constraints(method):
    X, y = [[0.0, 0.0], [1.0, 1.0]], [0, 1]
    for excess, value in ((2e-9, 1.0), (3e-9, 1 / math.log2(3))):
        # w_1 <= w_0 / (1 + excess) and w_0 <= w_1 leave w_0 <= 0, but the tolerance admits w = (1, 1) the first time
        rules = LinearConstraints([[1.0, -1.0], [-1.0, 1.0 + excess]], [0.0, 0.0])
        problem = RerankProblem(X, y, constraints=rules)
        solution = solve(problem, NO_SEARCH.get(method, method))
        assert_sound(problem, solution)
        assert solution.value == pytest.approx(value)
        assert solution.bound == pytest.approx(1.0)  # twice the tolerance, for rounding


@pytest.mark.parametrize("method", ["resolved", "local_search", "weight_space"])
def test_only_zero_is_feasible(method):
    problem = RerankProblem([[0.0], [1.0]], [0, 1], constraints=LinearConstraints([[1.0], [-1.0]], [0.0, 0.0]))
    solution = solve(problem, method)
    assert solution.weights.tolist() == [0.0]
    assert solution.value == problem.evaluate([0.0])
    assert solution.status is (Status.OPTIMAL if method == "weight_space" else Status.HEURISTIC)


@pytest.mark.parametrize("method", ["weight_space", "subrank"])
def test_infeasible_side_constraints(method):
    rules = LinearConstraints([[1.0], [-1.0]], [-0.5, -0.5])  # w <= -0.5 and w >= 0.5
    problem = RerankProblem([[0.0], [1.0]], [0, 1], ties="subrank", constraints=rules)
    solution = solve(problem, method)
    assert solution.status is Status.INFEASIBLE
    assert solution.value == -math.inf
    zero_rule = LinearConstraints([[0.0]], [-1.0])
    problem = RerankProblem([[0.0], [1.0]], [0, 1], ties=problem.ties, constraints=zero_rule)
    assert solve(problem, method).status is Status.INFEASIBLE


def test_an_error_inside_scip_keeps_the_incumbent(monkeypatch):
    class Broken:
        def __init__(self, model):
            self.model = model

        def __getattr__(self, name):
            return getattr(self.model, name)

        def optimizeNogil(self):  # noqa: N802 - the name that pyscipopt gave it
            raise Exception("SCIP: error in LP solver!")

    build = ResolvedRank.__init__

    def broken(self, problem, state=None):
        build(self, problem, state)
        self.model = Broken(self.model)

    monkeypatch.setattr(ResolvedRank, "__init__", broken)
    problem = hard_list(n=14)
    solution = solve(problem, "resolved", Limits(time_limit=20))
    assert solution.status is Status.INEXACT
    assert "SCIP gave up: SCIP: error in LP solver!" in solution.message
    assert_sound(problem, solution)


# --- the state's own rules -------------------------------------------------------------------------------------


def test_a_bound_below_an_attained_value_is_discarded():
    state = SolveState(SMALL, Limits())
    state.offer([1.0])
    state.prove(state.value - 0.01)
    solution = state.solution(Ending(Status.OPTIMAL), "test")
    assert solution.bound == SMALL.trivial_bound
    assert solution.status is Status.INEXACT
    assert "was discarded" in solution.message
    state = SolveState(SMALL, Limits())
    state.offer([1.0])
    state.prove(state.value - 1e-9)  # rounding
    solution = state.solution(Ending(Status.OPTIMAL), "test")
    assert (solution.status, solution.bound) == (Status.OPTIMAL, solution.value)


def test_a_claim_of_optimality_is_checked():
    state = SolveState(SMALL, Limits(gap=1e-7))
    state.offer([1.0])
    state.prove(state.value * (1 + 1e-6))
    assert state.solution(Ending(Status.OPTIMAL), "test").status is Status.INEXACT
    state.prove(state.value * (1 + 5e-8))
    assert state.solution(Ending(Status.TIME_LIMIT), "test").status is Status.GAP_LIMIT
    state.prove(state.value)
    assert state.solution(Ending(Status.TIME_LIMIT), "test").status is Status.OPTIMAL


def test_noise_is_snapped_and_weights_are_scaled_up():
    problem = RerankProblem([[0.0, 0.0], [1.0, 0.0]], [0, 1], C=0.1)
    state = SolveState(problem, Limits())
    state.offer([0.5, 1e-12])
    assert state.weights.tolist() == [1.0, 0.0]
    assert state.value == pytest.approx(0.9)
    with pytest.raises(Stopped):
        SolveState(problem, Limits(), should_stop=lambda: True).check()


# --- loading and sizes ------------------------------------------------------------------------------------------


def test_the_package_and_a_first_solve_load_no_large_libraries():
    problem = "RerankProblem(np.random.default_rng(0).normal(size=(30, 6)), np.arange(30) % 2)"
    first = f"import numpy as np; from ltr.exact import RerankProblem, solve; solve({problem})"
    names = ["pyscipopt", "cvxpy", "scipy", "sklearn", "torch"]
    imported, solved = loaded_by("import ltr.exact, ltr.exact.certificate, ltr.exact.levels", first, names=names)
    assert imported == solved == []


@pytest.mark.parametrize("ties", ["resolved", "subrank"])
@pytest.mark.parametrize("statistic", ["power(p=4)", "power(p=17)", "power(p=30)", "weights(0,1e-12,4e-12,9e-12)"])
def test_statistics_of_any_size_are_proven(statistic, ties):
    rng = np.random.default_rng(0)
    n = 4 if statistic.startswith("weights") else 20
    X, y = rng.normal(size=(n, 2)), np.arange(n) % 2
    problem = RerankProblem(X, y, statistic, ties=ties)
    solution = solve(problem, limits=Limits(time_limit=20.0))
    assert solution.status is Status.OPTIMAL
    directions = np.linspace(0, 2 * np.pi, 1000)
    found = max(problem.evaluate(w) for w in np.column_stack([np.cos(directions), np.sin(directions)]))
    assert found <= solution.value * (1 + 1e-9)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_a_heuristic_value_near_the_trivial_bound_is_no_proof(size):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    problem = RerankProblem(X, y, RankStatistic.from_weights(np.arange(12.0) ** 2 * size))
    solution = solve(problem, "local_search", Limits(time_limit=0.5))
    assert solution.bound > solution.value
    assert solution.status is Status.HEURISTIC
    assert solution.gap > 0
