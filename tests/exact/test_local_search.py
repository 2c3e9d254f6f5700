import math
import threading
import time

import numpy as np
import pytest
from scipy.optimize import linprog

from ltr.exact import LinearConstraints, RerankProblem
from ltr.exact.largest_margin import minimize_linear
from ltr.exact.local_search import SearchBeside
from ltr.exact.local_search.search import local_search, new_ascents, separating_weights
from ltr.exact.preferences import PairwiseProblem, multipartite_pairs
from ltr.exact.state import Limits, SolveState
from ltr.native import clip_segment
from tests.exact import vertex_reference
from tests.reference import cell_optimum, graded_problem, optimum_of, random_graded, random_instance, random_pairwise
from tests.tiers import examples


def larger_problem(seed, **options):
    """40 observations on 5 features, some of them binary, some rows repeated."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 5))
    X[:, 3] = rng.integers(0, 2, size=40)
    X[5:8] = X[0]
    y = (X @ rng.normal(size=5) + rng.normal(size=40) > 0).astype(int)
    return RerankProblem(X, y, **options)


# --- steps -----------------------------------------------------------------------------------------------------


def test_clip_keeps_what_box_and_side_constraints_allow():
    A, b = np.array([[1.0, 1.0], [-1.0, 0.0]]), np.array([0.5, 0.25])

    def clip(w, v, low, high):
        return clip_segment(A, b, 1e-9, np.array(w), np.array(v), low, high)

    assert clip([0.0, 0.0], [1.0, 0.0], -9.0, 9.0) == pytest.approx((-0.25, 0.5))
    assert clip([0.0, 0.0], [0.0, 1.0], -9.0, 9.0) == pytest.approx((-1.0, 0.5))
    assert clip([0.0, 0.0], [0.0, 1.0], -0.5, 0.25) == (-0.5, 0.25)
    low, high = clip([0.0, 0.75], [1.0, -1.0], -9.0, 9.0)  # along a broken constraint
    assert high < low
    for sizes in ((2, 3), (3, 2), (3, 3)):
        with pytest.raises(ValueError, match="one entry per feature"):
            clip(*map(np.zeros, sizes), -1.0, 1.0)


# --- ascent ----------------------------------------------------------------------------------------------------


def test_an_ascent_never_falls_and_can_be_cut_into_pieces():
    for seed in range(6):
        problem = larger_problem(seed, C=[0.0, 0.05][seed % 2])
        start = np.random.default_rng(seed).uniform(-1, 1, size=problem.d)
        whole = start.copy()
        value, left = new_ascents(problem, problem.levels(), seed=seed).ascend(whole, 10**6, resume=False)
        assert left > 0
        assert value >= problem.evaluate(start) - 1e-9
        assert problem.evaluate(whole) == pytest.approx(value)
        ascents, piece, values, left = new_ascents(problem, problem.levels(), seed=seed), start.copy(), [], 0
        while left == 0:
            v, left = ascents.ascend(piece, 2, resume=len(values) > 0)
            values.append(v)
        assert np.all(np.diff(values) >= -1e-9)
        assert piece == pytest.approx(whole, abs=1e-9)


# --- the search ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "quick", "slow"), [(random_instance, 78, 234), (random_pairwise, 60, 120), (random_graded, 78, 156)]
)
def test_reaches_the_optimum_of_nearly_all_tiny_problems_and_never_more(draw, quick, slow):
    reached, count = 0, examples(quick, slow)
    for seed in range(count):
        p = draw(seed)
        best, _ = optimum_of(p)
        result = local_search(p, seed=seed, restarts=20, time_limit=60.0)
        assert result.value <= best + 1e-9
        assert result.value == p.evaluate(result.weights)
        assert np.abs(result.weights).max() <= 1.0
        reached += result.value >= best - 1e-9
    assert reached >= 0.99 * count


def test_with_a_price_features_that_do_not_earn_it_get_weight_0():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    p = RerankProblem(X, (X[:, 2] > 0).astype(int), C=0.05)
    result = local_search(p, restarts=30)
    assert np.flatnonzero(result.weights).tolist() == [2]
    assert result.value == pytest.approx(p.trivial_bound - 0.05)
    assert not local_search(RerankProblem(X, p.y, C=100.0), restarts=5).weights.any()


def test_a_large_margin_is_honoured():
    # two features: the first orders all with differences of 1, the second all but one pair with differences of 3
    X = [[3.0, 6.0], [2.0, 0.0], [1.0, 3.0], [0.0, 0.0]]
    p = RerankProblem(X, [1, 1, 0, 0], "auc", margin=2.5)
    assert local_search(p, restarts=20).value == pytest.approx(vertex_reference.optimum(p)[0])
    assert local_search(RerankProblem(X, [1, 1, 0, 0], "auc", margin=100.0), restarts=5).value == 0.0


def test_same_seed_same_result():
    p = larger_problem(1)
    one, two = (local_search(p, seed=3, restarts=15, time_limit=60.0) for _ in range(2))
    assert one.weights.tolist() == two.weights.tolist()
    assert one.value == two.value


@pytest.mark.parametrize(
    "options", [{}, {"C": 0.02}, {"constraints": LinearConstraints(-np.eye(5), np.zeros(5))}, {"ties": "subrank"}]
)
def test_steps_without_pairs_come_close_to_exact_line_searches(monkeypatch, options):
    p = larger_problem(0, **options)
    exact = local_search(p, restarts=20, time_limit=60.0)
    monkeypatch.setattr("ltr.exact.tuning.MOST_PAIRS", 0)
    monkeypatch.setattr(RerankProblem, "levels", None)  # no pairs are made
    without = local_search(p, restarts=20, time_limit=60.0)
    assert without.value >= 0.99 * exact.value
    monkeypatch.setattr(RerankProblem, "ranked_items", lambda self: None)
    steps = local_search(p, restarts=5, time_limit=60.0)
    assert steps.value >= 0.98 * exact.value
    for result in (without, steps):
        assert p.feasible(result.weights)
        assert result.value == p.evaluate(result.weights)
        assert result.value >= max(p.evaluate(w) for w in (*np.eye(5), *-np.eye(5)) if p.feasible(w))


# --- side constraints ------------------------------------------------------------------------------------------


def test_reaches_the_optimum_under_homogeneous_side_constraints():
    reached, count = 0, examples(40, slow=80)
    for seed in range(count):
        base = random_instance(seed)
        A = np.random.default_rng(seed).integers(-1, 2, size=(2, base.d)).astype(float)
        p = RerankProblem(
            base.X, base.y, base.statistic, base.C, ties=base.ties, constraints=LinearConstraints(A, [0.0, 0.0])
        )
        best, _ = cell_optimum(p.X, p.y, p.statistic, p.C, p.ties, A=A)
        result = local_search(p, seed=seed, restarts=20, time_limit=60.0)
        assert p.feasible(result.weights)
        assert result.value == p.evaluate(result.weights)
        assert result.value <= best + 1e-9
        reached += result.value >= best - 1e-9
    assert reached >= 0.97 * count


@pytest.mark.parametrize(
    ("A", "b"),
    [
        (-np.eye(5), np.zeros(5)),  # nonnegative weights
        (np.vstack([np.eye(5), -np.eye(5)]), np.full(10, 0.3)),  # a smaller box
        ([[-1.0, 0, 0, 0, 0]], [-1.0]),  # w_0 = 1, by the box
        ([[1.0, -1, 0, 0, 0], [-1.0, 1, 0, 0, 0], [0.0, 0, 1, 0, 0]], [0.0, 0.0, -0.5]),
        (np.vstack([np.eye(5), -np.eye(5)]), [0.5, -0.25, 0.1, 0.0, 0.7, -0.5, 0.25, -0.1, 0.0, -0.7]),  # a point
    ],
)
@pytest.mark.parametrize("C", [0.0, 0.05])
def test_stays_inside_side_constraints(A, b, C):
    p = larger_problem(3, C=C, constraints=LinearConstraints(A, b))
    free = RerankProblem(p.X, p.y, C=C)
    rng = np.random.default_rng(0)
    starts = [rng.uniform(-1, 1, size=5) for _ in range(3)]
    result = local_search(p, starts=starts, restarts=20, time_limit=60.0)
    assert p.feasible(result.weights)
    assert result.value == p.evaluate(result.weights)
    assert result.value <= local_search(free, restarts=60, time_limit=60.0).value + 1e-9
    assert result.value >= max((p.evaluate(w) for w in starts if p.feasible(w)), default=-math.inf)


def test_equalities_that_leave_zeros_alone():
    # w_0 + w_1 = 0 = w_0 - 3 w_1, of which the projection is 0 but for rounding
    A = np.array([[1.0, 1, 0, 0, 0], [-1.0, -1, 0, 0, 0], [1.0, -3, 0, 0, 0], [-1.0, 3, 0, 0, 0]])
    p = larger_problem(3, constraints=LinearConstraints(A, np.zeros(4)))
    part = RerankProblem(p.X[:, 2:], p.y)
    result = local_search(p, restarts=20, time_limit=60.0)
    assert result.weights[:2].tolist() == [0.0, 0.0]
    assert result.value >= 0.99 * local_search(part, restarts=20, time_limit=60.0).value


def test_no_weights_satisfy_the_side_constraints():
    p = larger_problem(3, constraints=LinearConstraints([[1.0, 0, 0, 0, 0]], [-2.0]))
    result = local_search(p, starts=[np.ones(5)])
    assert result.value == -math.inf
    assert result.weights.tolist() == [0.0] * 5


# --- stopping --------------------------------------------------------------------------------------------------


def test_stops_ctrl_c_and_the_time_limit_leave_the_best_so_far():
    p, start, asked = larger_problem(4), np.full(5, 2.0), iter(range(10**9))

    def press():
        raise KeyboardInterrupt

    for stop in (lambda: True, lambda: next(asked) > 5, press, None):
        limit = 0.05 if stop is None else 1e6
        result = local_search(p, starts=[start], restarts=10**9, time_limit=limit, should_stop=stop)
        assert result.interrupted == (stop is not None)
        assert result.value == p.evaluate(result.weights) >= p.evaluate(np.ones(5))
        assert result.value > p.evaluate(np.zeros(5))
        assert np.array_equal(start, np.full(5, 2.0))


# --- linear programs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_linear_programs_agree_with_scipy(seed):
    rng = np.random.default_rng(seed)
    A, b, cost = np.round(rng.normal(size=(12, 4)), 1), rng.normal(size=12) + 0.5, rng.normal(size=4)
    A[rng.random(A.shape) < 0.3] = 0.0
    low, high = np.full(4, -1.0), np.append(np.ones(3), np.inf if seed % 2 else 1.0)
    price = np.where(rng.random(12) < 0.7, rng.random(12) + 0.1, np.inf)
    for prices in (None, price):
        soft = np.zeros(12, dtype=bool) if prices is None else np.isfinite(prices)
        expected = linprog(
            np.append(cost, [] if prices is None else prices[soft]),
            A_ub=np.column_stack([A, -np.eye(12)[:, soft]]),
            b_ub=b,
            bounds=[*zip(low, high, strict=True), *[(0, None)] * soft.sum()],
        )
        found = minimize_linear(cost, A, b, low, high, price=prices)
        assert (found is None) == (not expected.success)
        if found is not None:
            x, value = found
            assert value == pytest.approx(expected.fun, abs=1e-7)
            excess = np.maximum(A @ x - b, 0.0)
            assert excess[~soft].max(initial=0.0) <= 1e-6
            assert cost @ x + (0.0 if prices is None else prices[soft] @ excess[soft]) == pytest.approx(value, abs=1e-6)


def test_linear_programs_without_a_solution():
    one, nothing = np.ones(1), (np.zeros((0, 1)), np.zeros(0))
    assert minimize_linear(one, np.ones((1, 1)), -2 * one, -one, one) is None
    assert minimize_linear(one, *nothing, -np.inf * one, one) is None
    assert minimize_linear(one, *nothing, -3 * one, one)[1] == -3.0


# --- separating weights ----------------------------------------------------------------------------------------


def separable(seed, d=12):
    """Features and grades 0 to 2 of 30 observations that some weights sort by grade."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, d))
    scores = X @ rng.normal(size=d)
    grades = np.searchsorted(np.quantile(scores, [0.6, 0.8]), scores)
    X += 0.05 * np.outer(grades, np.ones(d)) * np.sign(scores @ X)
    return X, grades


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "kind",
    [
        lambda X, g, **options: graded_problem(X, g > 0, **options),
        lambda X, g, **options: graded_problem(X, g, **options),
        lambda X, g, **options: graded_problem(X, g, np.arange(30) % 3, **options),
        lambda X, g, **options: PairwiseProblem(X, multipartite_pairs(g)[::20], **options),
    ],
)
def test_a_separable_list_is_separated(kind, seed):
    problem = kind(*separable(seed), margin=1e-4)
    weights = separating_weights(problem, problem.levels(), 10.0)
    assert problem.evaluate(weights) == pytest.approx(problem.trivial_bound, rel=1e-12)
    result = local_search(problem, time_limit=30.0, restarts=10**6)  # ends where nothing better is possible
    assert result.value == pytest.approx(problem.trivial_bound, rel=1e-12)


def test_separating_weights_keep_side_constraints():
    X, grades = separable(1)
    sides = LinearConstraints([[1.0] + [0.0] * 11, [0.0, 1.0] + [0.0] * 10], [-0.25, 0.0])
    problem = RerankProblem(X, grades > 0, margin=0.5, constraints=sides)
    weights = separating_weights(problem, problem.levels(), 10.0)
    assert weights[0] < 0
    assert weights[1] <= 1e-9


def test_a_search_beside_a_solve_hands_over_its_weights(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    problem = RerankProblem(X, (X[:, 0] + rng.normal(size=60) > 0).astype(int))
    state, before = SolveState(problem, Limits(time_limit=30.0)), threading.active_count()
    state.offer([0.0, 1.0, 0.0, 0.0, 0.0])
    start = state.value
    monkeypatch.setattr("ltr.exact.tuning.UNLIMITED_RESTARTS", 5)
    beside = SearchBeside(state, 0.9)
    time.sleep(0.2)
    beside.begin()
    assert beside.busy
    while not beside.take():
        time.sleep(0.01)
    assert not beside.busy
    assert state.value == problem.evaluate(state.weights) > start
    monkeypatch.setattr("ltr.exact.tuning.UNLIMITED_RESTARTS", 10**6)
    beside.begin()
    beside.close()
    assert state.seconds < 15.0
    assert threading.active_count() == before
