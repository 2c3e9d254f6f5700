"""The places that rows take over all good scorers, against all cells of tiny problems."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from ltr.exact import Limits, RerankProblem, solve, tuning
from ltr.exact.ranges import RankRanges, rank_ranges
from tests.exact.demand_reference import instance
from tests.exact.test_fronts import all_weights
from tests.reference import exact_scores, random_demanded, random_features, random_graded, random_instance
from tests.tiers import examples

X = np.array([[3.0, 0.0], [2.0, 1.0], [1.0, 3.0], [0.0, 2.0]])
LABELS, GROUP = [1, 1, 0, 0], [0, 0, 1, 1]


@pytest.fixture(autouse=True)
def few_samples(monkeypatch):
    """Proofs are to find what samples would find, and samples take most of the time of tiny problems."""
    monkeypatch.setattr(tuning, "RANGES_SAMPLES", 150)


def places(problem: RerankProblem, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's place with ties against it, and with ties in its favour, as the definition has it, (n,)."""
    scores, (margin,) = exact_scores(problem.X, w), exact_scores([[problem.margin]], [1.0])
    best, worst = np.zeros((2, problem.n), dtype=np.int64)
    for r in range(problem.n):
        others = [k for k in range(problem.n) if k != r and problem.qid[k] == problem.qid[r]]
        best[r] = 1 + sum(scores[r] - scores[k] < margin for k in others)
        worst[r] = 1 + sum(scores[k] - scores[r] >= margin for k in others)
    return best, worst


def good(problem: RerankProblem, w: np.ndarray, least: float) -> bool:
    return problem.feasible(w) and problem.statistic_value(w) >= least - 1e-9 * abs(least)


def check_ranges(problem: RerankProblem, found: RankRanges, weights: list[np.ndarray]) -> None:
    """Assert that weights attain what is reached, and that the places at other good weights are within the ranges."""
    assert np.all(found.best <= found.reached_best)
    assert np.all(found.reached_worst <= found.worst)
    for r in range(problem.n):
        for w, at, reached in (
            (found.best_weights[r], 0, found.reached_best),
            (found.worst_weights[r], 1, found.reached_worst),
        ):
            if np.count_nonzero(problem.qid == problem.qid[r]) == 1:
                assert reached[r] == 1
                continue
            assert good(problem, w, found.least), (r, at)
            assert places(problem, w)[at][r] == reached[r], (r, at)
    for w in weights:
        if good(problem, w, found.least):
            best, worst = places(problem, w)
            assert np.all(found.best <= best), w
            assert np.all(worst <= found.worst), w


def expected(problem: RerankProblem, least: float) -> tuple[list[int], list[int]]:
    """Return the best and the worst places over the weights of all cells that are good."""
    found = [places(problem, w) for w in all_weights(problem) if good(problem, w, least)]
    best, worst = zip(*found, strict=True)
    return np.min(best, axis=0).tolist(), np.max(worst, axis=0).tolist()


def tiny(seed: int) -> RerankProblem:
    problem = (random_instance, random_graded, random_demanded)[seed % 3](seed)
    problem = dataclasses.replace(problem, C=0.0)
    if seed % 5 == 4:
        problem = dataclasses.replace(problem, integer=2, margin=0.5)
    return problem


@pytest.mark.parametrize("seed", range(examples(12, slow=24)))
def test_ranges_are_those_of_all_cells(seed, monkeypatch):
    problem, within = tiny(seed), (0.0, 0.05, 0.3)[seed % 3]
    if seed % 2:  # all is left to the boxes that are closed side by side
        monkeypatch.setattr(tuning, "RANGES_SAMPLES", 0)
        monkeypatch.setattr(tuning, "RANGES_BRIEF", 0.0)
    weights = all_weights(problem)
    if not weights:
        with pytest.raises(ValueError, match="got none: there are no good scorers"):
            rank_ranges(problem, within)
        return
    value = max(problem.statistic_value(w) for w in weights)
    found = rank_ranges(problem, within, time_limit=20, threads=1 + seed % 2)
    assert found.least == pytest.approx(value * (1 - within), abs=1e-9)
    check_ranges(problem, found, weights)
    assert found.exact.all()
    assert (found.best.tolist(), found.worst.tolist()) == expected(problem, found.least)


@pytest.mark.parametrize("seed", range(12))
def test_no_weights_of_problems_with_all_else_leave_the_ranges(seed):
    """Margins that matter, side constraints, few and required columns, whole numbers, and up to six features."""
    problem, rng = dataclasses.replace(instance(seed + 500), C=0.0), np.random.default_rng(seed)
    solution = solve(problem, limits=Limits(2))
    if not math.isfinite(solution.value):
        return
    found = rank_ranges(problem, 0.2, solution=solution, time_limit=0.6)
    weights = rng.uniform(-1, 1, size=(60, problem.d))
    check_ranges(problem, found, [w if problem.integer is None else np.rint(w * problem.reach) for w in weights])


def test_equal_rows_share_their_places():
    features = [[1.0], [1.0], [0.0], [1.0], [0.0]]
    found = rank_ranges(RerankProblem(features, [1, 1, 0, 1, 0]), 0.0)
    assert found.ties.tolist() == [2, 2, 1, 2, 1]
    assert found.best.tolist() == [3, 3, 5, 3, 5]  # ties count against a row here
    assert found.worst.tolist() == [1, 1, 4, 1, 4]  # and in its favour there
    assert found.always_within(3).tolist() == [True, True, False, True, False]
    assert found.never_within(3).tolist() == [False, False, True, False, True]
    assert found.always_within(2).tolist() == [False] * 5
    assert found.never_within(2).tolist() == [False, False, True, False, True]
    assert found.summary(3) == (
        "3 of the first 3 rows are there whichever good scorer is used, 2 are never there, 0 may or may not be"
    )


@pytest.mark.parametrize("seed", range(12))
def test_rows_that_are_always_or_never_there_are_so_however_ties_fall(seed):
    rng = np.random.default_rng(seed)
    problem = RerankProblem(random_features(rng, 7, 2), np.append([0, 1], rng.integers(0, 2, 5)))
    found = rank_ranges(problem, 0.1, time_limit=10)
    rows = problem.X.tolist()
    assert found.ties.tolist() == [rows.count(row) - 1 for row in rows]
    for w in all_weights(problem):
        if good(problem, w, found.least):
            lowest, highest = places(problem, w)
            if not _others_tie(problem, w):
                for first in range(1, 8):
                    assert np.all(lowest[found.always_within(first)] <= first)
                    assert np.all(highest[found.never_within(first)] > first)


def _others_tie(problem, w):
    """Whether rows tie that are not equal."""
    scores, rows = exact_scores(problem.X, w), problem.X.tolist()
    pairs = itertools.combinations(range(problem.n), 2)
    return any(abs(scores[i] - scores[k]) < problem.margin and rows[i] != rows[k] for i, k in pairs)


@pytest.mark.parametrize("seconds", [1e-3, 0.02])
def test_the_interval_is_an_outer_one_where_time_is_up(seconds):
    rng = np.random.default_rng(5)
    features = rng.normal(size=(40, 4))
    y = (features @ [1.0, 1.0, 0.5, 0.0] + rng.normal(size=40) > 0.5).astype(int)
    problem = RerankProblem(features, y)
    solution = solve(problem, "local_search", Limits(0.2))
    found = rank_ranges(problem, 0.1, solution=solution, time_limit=seconds)
    tried = solution.weights + 0.3 * rng.normal(size=(40, 4))
    check_ranges(problem, found, list(tried))
    assert found.exact.mean() < 1
    assert found.seconds < seconds + 3.0


def test_a_caller_may_stop_it():
    calls = itertools.count()
    problem = RerankProblem(X, LABELS)
    solution = solve(problem)
    found = rank_ranges(problem, 0.3, solution=solution, should_stop=lambda: next(calls) > 2)
    check_ranges(problem, found, [np.array([1.0, 0.5]), np.array([1.0, -1.0])])
