"""Limits of solves that are too large for them."""

from __future__ import annotations

import dataclasses
import gc
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from ltr.exact import Limits, PairwiseProblem, RerankProblem, Status, solve, tuning
from ltr.exact.local_search import LocalSearch
from ltr.exact.local_search import search as local_search
from ltr.exact.scip import METHODS
from ltr.exact.state import MEGABYTE, SolveState, Stopped
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.exact.weight_space import search as weight_space_search
from tests.paths import ROOT
from tests.reference import graded_problem, random_graded, random_instance, random_pairwise
from tests.tiers import thinned

DIRECT = WeightSpaceSearch(scip=False)
PATIENCE = 5.0  # seconds that a solve may be late on a busy machine; it was 10 and more before


def long_list(n=3000, d=40, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return RerankProblem(X, (X[:, 0] + rng.normal(size=n) > 0).astype(int), **options)


def many_gains(n=1500, d=4, ties="resolved"):
    rng = np.random.default_rng(0)
    return graded_problem(rng.normal(size=(n, d)), rng.random(n), ties=ties)


def many_preferences(n=3000, pairs=1_000_000):
    rng = np.random.default_rng(0)
    above = rng.integers(0, n, size=pairs)
    return PairwiseProblem(rng.normal(size=(n, 4)), np.column_stack([above, (above + 1 + above % 7) % n]))


@pytest.fixture
def no_pairs(monkeypatch):
    """Pairs of more than a tiny problem must not be made."""

    def refuse(make):
        def levels(problem, *arguments):
            assert problem.n < 10, "pairs were made"
            return make(problem, *arguments)

        return levels

    for kind in (RerankProblem, PairwiseProblem):
        monkeypatch.setattr(kind, "levels", refuse(kind.levels))


# --- pairs are counted, not made -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [random_instance, random_graded, random_pairwise])
def test_pairs_are_counted_without_being_made(make):
    for seed in range(102):
        problem = make(seed)
        made = problem.levels()
        assert problem.pair_count == len(made.above)
        often = np.bincount(made.above, minlength=problem.n) - np.bincount(made.below, minlength=problem.n)
        assert problem.balance == pytest.approx(often / max(1, len(made.above)))


@pytest.mark.parametrize(
    ("make", "method"), thinned(3, [long_list, many_gains, many_preferences], ["auto", DIRECT, "local_search"])
)
def test_pairs_beyond_the_memory_limit_are_not_made(no_pairs, make, method):
    problem = make()
    solution = solve(problem, method, Limits(time_limit=0.5, memory_limit=40))
    assert solution.status is (Status.TIME_LIMIT if method == "local_search" else Status.MEMORY_LIMIT)
    assert solution.bound == problem.trivial_bound
    assert solution.value > problem.evaluate(np.zeros(problem.d))  # single features were compared all the same
    assert method == "local_search" or "MB may be used" in solution.message


@pytest.mark.parametrize(
    ("options", "begun"),
    [
        ({}, False),
        ({"C": 8.0}, True),  # a price that no third feature earns
        ({"max_nonzeros": 1}, True),
    ],
)
def test_a_proof_that_would_not_fit_the_time_is_not_begun(monkeypatch, options, begun):
    starts = []

    def start(proof, problem):
        starts.append(problem)
        raise Stopped(Status.TIME_LIMIT)

    monkeypatch.setattr(weight_space_search.Proof, "_start", start)
    problem = long_list(n=600, d=12, **options)
    solution = solve(problem, limits=Limits(time_limit=0.5))
    assert solution.status is Status.TIME_LIMIT
    assert solution.bound == problem.trivial_bound
    assert solution.value > problem.evaluate(np.zeros(problem.d))
    assert bool(starts) == begun
    assert ("are too many for a proof in 0.5 s: the bound is that of a perfect order" in solution.message) != begun


def test_whether_a_proof_is_begun_does_not_depend_on_the_speed_of_the_machine():
    state = SolveState(long_list(n=600, d=12), Limits(time_limit=100))
    assert weight_space_search.out_of_reach(state) is None
    state._started -= 99.9
    assert weight_space_search.out_of_reach(state) is None


def test_what_one_box_takes_too_long_for_is_left_to_the_local_search(monkeypatch):
    monkeypatch.setattr(tuning, "MOST_TERMS", 1000)
    problem = long_list(n=60, d=3)
    solution = solve(problem, limits=Limits(time_limit=1.0))
    assert solution.status is Status.HEURISTIC
    assert "pairs of 3 features are too many for a proof" in solution.message
    assert solution.value == solve(problem, "local_search", Limits(time_limit=1.0)).value


def test_fewer_threads_where_memory_is_short():
    problem = long_list(n=300, d=4)
    limit = 1.1 * weight_space_search.memory_needed(problem, threads=1) / MEGABYTE
    assert weight_space_search.memory_needed(problem, threads=2) > limit * MEGABYTE
    solution = solve(problem, limits=Limits(time_limit=60, node_limit=20_000, memory_limit=limit + 50))
    assert solution.bound < problem.trivial_bound


THREADS = """
import psutil
from ltr.exact.weight_space.search import memory_needed
from ltr.exact.weight_space.space import BEYOND, space_of
from ltr.native import SearchWorkspace, search_weight_space
from tests.exact.test_limits import long_list

problem, work = long_list(n=700, d=4), []
searchable = space_of(problem)
boxes, before = searchable.roots, psutil.Process().memory_info().rss
for _ in range(4):
    work.append(SearchWorkspace(searchable.space.compiled))
    search_weight_space(searchable.space.compiled, work[-1], *boxes[:4], -BEYOND, 3 * 10**8, 16)
added = psutil.Process().memory_info().rss - before
print(added / (memory_needed(problem, 5) - memory_needed(problem, 1)))
"""


def test_threads_take_the_memory_that_is_foreseen():
    # in a process of its own: here, memory that other tests gave back would be used again
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True, cwd=ROOT)
    assert 0.4 < float(done.stdout) < 1.1


def test_a_solve_ends_where_memory_is_used_up():
    gc.collect()  # what other tests left behind would be freed meanwhile
    state = SolveState(random_instance(0), Limits(memory_limit=60))
    held = np.ones(400 * MEGABYTE // 8)
    time.sleep(0.06)
    with pytest.raises(Stopped) as stop:
        state.check()
    assert stop.value.status is Status.MEMORY_LIMIT
    assert held.sum() > 0


# --- models in SCIP --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["resolved", "auc"])
def test_a_model_that_takes_too_much_memory_is_not_built(method):
    statistic = "auc" if method == "auc" else "dcg"
    solver = dataclasses.replace(METHODS[method], local_search=0.0)
    solution = solve(long_list(n=400, d=5, statistic=statistic), solver, Limits(time_limit=60, memory_limit=20))
    assert solution.status is Status.MEMORY_LIMIT
    assert "comparisons needs about" in solution.message


def test_a_model_that_takes_too_long_to_build_is_given_up(monkeypatch):
    monkeypatch.setattr(tuning, "BUILDING_LEAST", 1e-3)
    solution = solve(long_list(n=400, d=5), "resolved", Limits(time_limit=0.5))
    assert solution.status is Status.TIME_LIMIT
    assert "to build, more than" in solution.message


# --- the clock -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "method"),
    thinned(
        3,
        [long_list, many_gains, lambda: many_gains(ties="subrank"), many_preferences],
        ["auto", DIRECT, "local_search"],
    ),
)
def test_time_is_kept_on_large_problems(make, method):
    problem = make()
    solve(RerankProblem([[0.0], [1.0]], [0, 1]), method, Limits(time_limit=10))  # compiled before the clock
    for limit in (0.001, 0.1):
        began = time.monotonic()
        solution = solve(problem, method, Limits(time_limit=limit))
        assert time.monotonic() - began < limit + PATIENCE
        assert solution.value <= solution.bound


@pytest.mark.parametrize("method", ["auto", DIRECT, "local_search", "resolved"])
def test_an_interrupt_ends_a_large_solve_at_once(method):
    problem = long_list()
    solve(RerankProblem([[0.0], [1.0]], [0, 1]), method, Limits(time_limit=10))
    sent: list[float] = []

    timer = threading.Timer(0.3, lambda: (sent.append(time.monotonic()), signal.pthread_kill(main, signal.SIGINT)))
    main = threading.main_thread().ident
    timer.start()
    solution = solve(problem, method, Limits(time_limit=60))
    timer.cancel()
    if not sent:  # it had ended before
        assert solution.status in (Status.TIME_LIMIT, Status.MEMORY_LIMIT)
        return
    assert time.monotonic() - sent[0] < PATIENCE
    assert solution.status in (Status.INTERRUPTED, Status.MEMORY_LIMIT, Status.TIME_LIMIT)


def test_the_first_steps_of_a_local_search_look_at_the_clock(monkeypatch):
    looks: list[float] = []
    problem = long_list(n=200, d=300)

    class Clock(local_search._Search):
        def _over(self) -> bool:
            looks.append(time.monotonic())
            return len(looks) > 20

    monkeypatch.setattr(local_search, "_Search", Clock)
    result = local_search.local_search(problem, time_limit=60)
    assert len(looks) == 21  # of 601 simple starts only a few were looked at
    assert result.value == problem.evaluate(result.weights)


def test_starts_are_known_to_a_solve_that_is_interrupted_at_once():
    class Interrupted(LocalSearch):
        def run(self, state):
            raise KeyboardInterrupt

    problem = long_list(n=50, d=3)
    start = np.eye(3)[0]
    solution = solve(problem, Interrupted(), Limits(time_limit=10), warm_starts=[start])
    assert solution.status is Status.INTERRUPTED
    assert solution.value >= problem.evaluate(start)
