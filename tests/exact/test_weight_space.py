"""The weight-space search: its answers against enumeration, its bounds against sampling, its limits and its parts."""

import dataclasses
import math
import threading

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from ltr.exact import Limits, RerankProblem, Status, solve, tuning
from ltr.exact.state import SolveState, Stopped
from ltr.exact.weight_space import WeightSpaceSearch, coordinates, search
from ltr.exact.weight_space.coordinates import SYSTEMS, adapted
from ltr.exact.weight_space.pool import WorkerPool
from ltr.exact.weight_space.space import Boxes, space_of
from ltr.statistics import RankStatistic
from tests.reference import graded_problem

ALONE = WeightSpaceSearch(threads=1, local_search=0.0)


def hard_list(n=60, d=8, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return RerankProblem(X, (X[:, 0] + 3 * rng.normal(size=n) > 0).astype(int))


def assert_proven(problem, solution, optimum):
    assert solution.status is Status.OPTIMAL, solution
    assert solution.value == pytest.approx(optimum, abs=1e-9)
    assert solution.value == problem.evaluate(solution.weights)
    assert solution.bound >= optimum - 1e-12 * max(1.0, abs(optimum))


# --- answers ---------------------------------------------------------------------------------------------------


def test_bounds_of_hits_are_whole_numbers():
    """A bound of 46.7 hits is one of 46, which ends a proof a step above the value."""
    p = RerankProblem(np.eye(8), [1, 1, 1, 0, 0, 0, 0, 0], "hits@4")
    for problem, step in (
        (p, 1.0),
        (dataclasses.replace(p, statistic="precision@4"), 1 / 4),
        (dataclasses.replace(p, statistic="recall@4"), 1 / 3),
        (dataclasses.replace(p, y=[3, 0, 0, 1, 2, 0, 0, 0]), 1.0),
        (dataclasses.replace(p, qid=[0, 0, 0, 0, 0, 1, 1, 1], normalize=True), 1 / 3),
        (dataclasses.replace(p, qid=[0, 0, 1, 0, 0, 1, 1, 1], statistic="recall@4"), 0.0),  # halves and wholes
        (dataclasses.replace(p, C=0.1), 0.0),
        (dataclasses.replace(p, statistic="dcg@4"), 0.0),
    ):
        assert problem.step == pytest.approx(step)
        state = SolveState(problem, Limits())
        state.prove(bound := 0.9 * problem.trivial_bound)
        assert state.bound == pytest.approx(math.floor(bound / step) * step if step else bound)
        state.prove(state.bound - 1e-13)  # rounding
        assert state.bound == pytest.approx(math.floor(bound / step) * step if step else bound)


@pytest.mark.parametrize(
    "problem",
    [
        graded_problem([[0.0], [1.0]], [2.0, 2.0]),  # no pair at all
        RerankProblem([[1.0, 2.0]] * 4, [0, 1, 0, 1]),  # all tied
        RerankProblem([[0.0], [1.0]], [0, 1], "wta"),
        RerankProblem([[0.0], [1.0]], [0, 1], RankStatistic.from_weights([0.0, 0.0])),
    ],
)
def test_trivial_problems(problem):
    solution = solve(problem, ALONE, Limits(time_limit=20))
    assert solution.status is Status.OPTIMAL
    assert solution.value == problem.evaluate(solution.weights)
    assert solution.bound == pytest.approx(solution.value, abs=1e-11)


# --- bounds ----------------------------------------------------------------------------------------------------


def test_a_bound_covers_w_0_which_no_box_holds():
    problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 0], "auc", C=0.75)  # half of the pairs, less than its price
    state = SolveState(problem, Limits(time_limit=20))
    state.offer(np.array([0.5]))
    search.prove(state, 1)
    assert state.bound >= problem.evaluate([0.0]) > problem.evaluate([0.5])


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_target_bounds_every_point_of_the_boxes(name):
    problem = hard_list(n=14, d=3)
    searchable = space_of(
        problem, adapted(problem, np.array([1.0, 0.5, -0.2]), np.eye(3))[0] if name == "adapted" else None
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        box = searchable.roots.rows(slice(0, len(searchable.roots.bound)))
        box = box.rows(rng.integers(len(box.bound), size=1))
        d = problem.d
        ends = np.sort(rng.uniform(box.low[0, :d], box.high[0, :d], size=(2, d)), axis=0)
        box.low[0, :d], box.high[0, :d] = ends
        target = searchable.integer(problem.trivial_bound * rng.uniform(0.6, 1.0))
        with WorkerPool(searchable, 1, lambda x: None) as workers:
            done = workers.close(box, target, lambda: False)
        assert not done.left
        reached = searchable.objective(max(done.target, done.unresolved))
        for v in rng.uniform(box.low[0, :d], box.high[0, :d], size=(200, d)):
            w = searchable.space.T @ v
            assert problem.evaluate(w / np.max(np.abs(w))) <= reached + 1e-12


def test_what_an_allowance_leaves_covers_the_rest():
    problem = hard_list(n=44, d=5)
    searchable = space_of(problem)
    value = solve(problem, "local_search", Limits(time_limit=5)).value
    target = searchable.integer(value) + 10**6
    with WorkerPool(searchable, 1, lambda x: None) as workers:
        whole = workers.close(searchable.roots, target, lambda: False)
        part = workers.close(searchable.roots, target, lambda: False, allowance=1)
        assert part.left
        joined = Boxes(*(np.concatenate(parts) for parts in zip(*part.left, strict=True)))
        rest = workers.close(joined, target, lambda: False)
    assert not whole.left
    assert not rest.left
    assert max(part.target, rest.target) == whole.target


@pytest.mark.parametrize("seed", range(4))
def test_coordinates_are_as_good_as_those_of_another_optimiser(seed):
    problem = hard_list(seed=seed)
    levels = problem.levels()
    differences = problem.X[levels.above] - problem.X[levels.below]
    weights = np.full(len(differences), 1 / len(differences))
    T, least = coordinates._descend(differences, weights, np.eye(problem.d))
    assert least == pytest.approx(coordinates._cost(T.ravel(), differences, weights)[0], abs=1e-3)  # scaled axes
    found = minimize(coordinates._cost, np.eye(problem.d).ravel(), (differences, weights), jac=True, method="BFGS")
    assert least <= found.fun + 0.02
    error = check_grad(
        lambda x: coordinates._cost(x, differences, weights)[0],
        lambda x: coordinates._cost(x, differences, weights)[1],
        T.ravel(),
    )
    assert error < 1e-4


def test_integers_are_above_the_table_and_close_to_it():
    problem = hard_list()
    searchable = space_of(problem)
    worth = np.ldexp(searchable.space.arrays["contribution"].astype(float), -searchable.exponent)
    levels = problem.levels()
    assert np.all(worth >= levels.contribution)
    assert np.allclose(worth, levels.contribution, rtol=0, atol=1e-15 * problem.trivial_bound)
    steps = searchable.space.arrays["step"][: len(worth) - 1]
    assert np.all(np.diff(steps) <= 0)
    assert np.all(steps <= -np.diff(searchable.space.arrays["contribution"]))


# --- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads must be at least 1, got 0"),
        ({"coordinates": "polar"}, "coordinates must be one of 'given', 'adapted', got 'polar'"),
        ({"local_search": 1.0}, "local_search must be a share of the time from 0 to below 1, got 1.0"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        WeightSpaceSearch(**options)


def test_coordinates_that_are_not_for_a_problem():
    with pytest.raises(ValueError, match="coordinates 'adapted' are for 2 to 20 features"):
        solve(RerankProblem([[0.0], [1.0]], [0, 1]), WeightSpaceSearch(coordinates="adapted"))


def test_a_failing_check_leaves_no_thread_running():
    problem = hard_list()
    state = SolveState(problem, Limits(time_limit=0.3))
    before = threading.active_count()
    with pytest.raises(Stopped):
        ALONE.run(state)
    assert threading.active_count() == before


def test_the_schedule_ends_at_the_value():
    schedule = search.TargetSchedule(gap=8.0, quantum=0.01)
    distances = [schedule.distance]
    while schedule.distance > 0 and len(distances) < 100:
        schedule.learn(math.exp(30.0 - 5.0 * schedule.distance), schedule.distance, 0.0)
        schedule.advance(0.0, math.inf)
        distances.append(schedule.distance)
    assert distances == sorted(distances, reverse=True)
    assert distances[0] == 6.0
    assert distances[-1] == 0.0


def test_the_schedule_follows_the_slope_of_the_work_and_the_time_left():
    def work(distance):
        return math.exp(30.0 - 6.0 * distance**tuning.POWER)

    schedule, left = search.TargetSchedule(gap=8.0, quantum=0.01), work(0.0) * math.exp(-4.0)
    spent = []
    while schedule.distance > 0 and len(spent) < 50:
        if work(schedule.distance) > 1.01 * left:
            break
        spent.append(work(schedule.distance))
        left -= spent[-1]
        schedule.learn(spent[-1], schedule.distance, 0.0)
        schedule.advance(0.0, left)
    total = sum(spent) + left
    assert spent[-1] > 0.5 * total  # the last target that ends takes most of the time
    assert left < 0.1 * total
    assert len(spent) < 12


def test_each_target_takes_a_few_times_the_work_of_the_one_before():
    schedule = search.TargetSchedule(gap=8.0, quantum=0.01)
    before = schedule.expected(schedule.distance, 0.0)
    for _ in range(4):
        schedule.learn(math.exp(30.0 - 9.0 * schedule.distance**tuning.POWER), schedule.distance, 0.0)
        before = schedule.expected(schedule.distance, 0.0)
        assert before == pytest.approx(math.exp(30.0 - 9.0 * schedule.distance**tuning.POWER))
        schedule.advance(0.0, math.inf)
    assert schedule.expected(schedule.distance, 0.0) == pytest.approx(tuning.GROWTH * before)
    schedule.change_space(math.log(2.0))
    assert schedule.expected(schedule.distance, 0.0) == pytest.approx(tuning.GROWTH * before / 2.0)


def test_the_value_is_the_next_target_once_it_is_in_reach():
    def work(distance):
        return math.exp(40.0 - 12.0 * distance**tuning.POWER)

    schedule, distances = search.TargetSchedule(gap=8.0, quantum=0.01), []
    while schedule.distance > 0:
        distances.append(schedule.distance)
        schedule.learn(work(schedule.distance), schedule.distance, 0.0)
        schedule.advance(0.0, math.inf)
    left = work(0.0) / np.array([work(distance) for distance in distances])
    assert len(left) > 5
    assert np.all(left[:-1] > max(tuning.REACH, tuning.FAR_REACH))
    assert left[-1] <= max(tuning.REACH, tuning.FAR_REACH)


def test_better_weights_are_looked_for_during_a_long_target(monkeypatch):
    monkeypatch.setattr("ltr.exact.tuning.BESIDE_PAUSE", 0.05)
    looks = []
    monkeypatch.setattr(
        "ltr.exact.local_search.search_locally", lambda state, seconds, restarts, *, turn: looks.append(turn)
    )
    problem = hard_list(d=14, n=120)
    solution = solve(problem, WeightSpaceSearch(threads=2), Limits(time_limit=0.7))
    assert solution.status is Status.TIME_LIMIT
    assert looks[:2] == [1, 2]


def test_a_value_found_elsewhere_raises_the_target():
    problem = hard_list(n=30, d=3)
    searchable = space_of(problem)
    with WorkerPool(searchable, 1, lambda x: None) as workers:
        best = workers.close(searchable.roots, -(2**61), lambda: False).target
    with WorkerPool(searchable, 1, lambda x: None) as workers:
        workers.least_target = best
        assert workers.close(searchable.roots, -(2**61), lambda: False).target == best


def test_two_threads_prove_the_same():
    problem = hard_list(n=30, d=4)
    one, two = (solve(problem, WeightSpaceSearch(threads=k), Limits(time_limit=60)) for k in (1, 2))
    assert one.status is two.status is Status.OPTIMAL
    assert one.value == two.value
