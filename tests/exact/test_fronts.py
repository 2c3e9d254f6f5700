"""The front of two statistics against the values of all weights of tiny problems."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest

from ltr.exact import Demand, Limits, LinearConstraints, RerankProblem
from ltr.exact.fronts import Front, front
from tests.reference import _integer_rows, random_demanded, random_graded, random_instance, representatives

X = np.array([[3.0, 0.0], [2.0, 1.0], [1.0, 3.0], [0.0, 2.0]])
LABELS, GROUP = [1, 1, 0, 0], [0, 0, 1, 1]
SECOND = ("hits@2", "dcg", "auc", "mrr", "recall@3")


def all_weights(problem: RerankProblem) -> list[np.ndarray]:
    """Weights of every cell of a problem with whole features, or all of its whole numbers; the feasible ones."""
    if problem.integer is not None:
        grid = itertools.product(range(-problem.integer, problem.integer + 1), repeat=problem.d)
        weights = [np.array(w, dtype=float) for w in grid]
    else:
        rows = _integer_rows(problem.X)
        pairs = itertools.combinations(range(problem.n), 2)
        differences = [tuple(a - b for a, b in zip(rows[i], rows[k], strict=True)) for i, k in pairs]
        weights = [np.array(w, dtype=float) / max(1, *map(abs, w)) for w in representatives(differences, problem.d)]
    return [w for w in weights if problem.feasible(w)]


def non_dominated(values: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the pairs of values of which no other is larger in one and no smaller in the other, first falling."""
    kept: list[tuple[float, float]] = []
    for value in sorted({(round(a, 9), round(b, 9)) for a, b in values}, reverse=True):
        if not kept or value[1] > kept[-1][1]:
            kept.append(value)
    return kept


def tiny(seed: int) -> tuple[RerankProblem, dict[str, Any]]:
    """A tiny problem and what a front of it takes."""
    rng = np.random.default_rng([7, seed])
    problem = (random_instance, random_graded, random_demanded)[seed % 3](seed)
    if seed % 5 == 4:
        problem = dataclasses.replace(problem, integer=2, margin=0.5)
    labels = rng.integers(0, 2 if seed % 2 else 3, problem.n)
    labels[rng.choice(problem.n, 2, replace=False)] = 0, 1
    return problem, {"statistic": SECOND[seed % len(SECOND)], "labels": labels, "normalize": seed % 4 == 0}


def check_front(problem: RerankProblem, found: Front, other: RerankProblem) -> None:
    """Assert what holds for the points of any front, complete or not."""
    values = [(problem.statistic_value(w), other.statistic_value(w)) for w in all_weights(problem)]
    for point in found.points:
        assert problem.feasible(point.weights)
        assert point.first == problem.statistic_value(point.weights)
        assert point.second == other.statistic_value(point.weights)
        assert point.first_bound >= max(a for a, b in values if b >= point.second - 1e-9) - 1e-9
        assert point.second_bound >= max(b for a, b in values if a >= point.first - 1e-9) - 1e-9
        if point.proven:
            assert not any(a > point.first + 1e-6 and b >= point.second - 1e-9 for a, b in values)
            assert not any(b > point.second + 1e-6 and a >= point.first - 1e-9 for a, b in values)
    for here, after in itertools.pairwise(found.points):
        assert after.second >= here.second + found.step * (1 - 1e-9)
        if here.proven and after.proven:
            assert after.first < here.first + 1e-9
    if found.complete:
        assert max(b for _, b in values) < found.points[-1].second + found.step * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(15))
def test_points_are_those_of_all_weights(seed):
    problem, options = tiny(seed)
    other = problem.other(options["statistic"], options["labels"], normalize=options["normalize"])
    weights = all_weights(problem)
    if not weights:
        with pytest.raises(ValueError, match="problem must have feasible weights, got none"):
            front(problem, **options)
        return
    expected = non_dominated([(problem.statistic_value(w), other.statistic_value(w)) for w in weights])
    found = front(problem, **options, step=1e-4, time_limit=60)
    check_front(problem, found, other)
    assert found.complete
    assert all(point.proven for point in found.points)
    assert [(round(p.first, 9), round(p.second, 9)) for p in found.points] == expected
    coarse = front(problem, **options, step=0.3 * other.trivial_bound, time_limit=60)
    check_front(problem, coarse, other)
    assert coarse.complete
    for here, after in itertools.pairwise(coarse.points):  # nothing between them is beyond a step
        assert max((a for a, b in expected if here.second + coarse.step <= b), default=-math.inf) <= after.first + 1e-9


def test_steps_are_units_of_counts_or_a_twentieth_of_the_range():
    problem = RerankProblem(X, LABELS)
    assert front(problem, "hits@2", GROUP).step == 1.0
    assert front(problem, "dcg", GROUP).step == pytest.approx((1.6309297536 - 0.9306765581) / 20)
    assert front(problem, "dcg", GROUP, step=0.5).step == 0.5


def test_other_labels_and_the_own_ones_are_compared():
    problem = RerankProblem(X, LABELS, "hits@1")
    own = front(problem, "dcg")
    assert [(point.first, round(point.second, 4)) for point in own.points] == [(1.0, 1.6309)]
    assert own.names == ("hits@1", "dcg")
    other = front(problem, "hits@2", GROUP, name="someone")
    assert other.names == ("hits@1", "someone")
    assert front(problem, "hits@2", GROUP, normalize=True).names[1] == "normalised hits@2 of labels"
    assert other.prices[0] == 0.0
    assert np.all(np.diff(other.prices) >= 0)
    assert "Front(" in repr(other)


def test_demands_and_side_constraints_of_the_problem_hold_for_all_points():
    sides = LinearConstraints([[-1.0, 0.0]], [0.0])
    problem = RerankProblem(X, LABELS, C=0.1, constraints=sides, demands=[Demand("hits@3", 1, [0, 1, 0, 0])])
    found = front(problem, "hits@2", GROUP)
    assert found.complete
    assert all(problem.feasible(point.weights) for point in found.points)
    check_front(dataclasses.replace(problem, constraints=None, C=0.0), found, problem.other("hits@2", GROUP))


@pytest.mark.parametrize("cut", ["time", "nodes", "stop", "tiny"])
def test_what_ends_the_search_early_leaves_valid_points(cut):
    problem, options = tiny(1)
    other = problem.other(options["statistic"], options["labels"], normalize=options["normalize"])
    calls = itertools.count()
    given: dict[str, Any] = {
        "time": {"time_limit": 0.05},
        "nodes": {"limits": Limits(node_limit=1)},
        "stop": {"should_stop": lambda: next(calls) > 20},
        "tiny": {"limits": Limits(time_limit=1e-3)},
    }[cut]
    try:
        found = front(problem, **options, step=1e-4, **given)
    except ValueError as error:
        assert "feasible weights, got none in the time given" in str(error)  # noqa: PT017 (weights may not be found in time)
        return
    check_front(problem, found, other)


def test_warm_starts_may_be_infeasible_or_beyond_the_box():
    problem = RerankProblem(X, LABELS, demands=[Demand("hits@1", 1, GROUP)])
    found = front(problem, "hits@2", GROUP, warm_starts=[[5.0, -1.0], [0.0, 1.0]])
    assert found.complete
    check_front(problem, found, problem.other("hits@2", GROUP))
