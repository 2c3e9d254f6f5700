"""Risk scores: the best points and their loss are those of brute force over all cards and intercepts."""

import itertools
import math

import numpy as np
import pytest

from ltr.exact import Limits, solve
from ltr.exact.risk import RiskProblem
from ltr.exact.solution import Status
from tests.test_card_rules import rules_for
from tests.tiers import examples


def instance(seed):
    """A small problem with random options."""
    rng = np.random.default_rng([17, seed])
    n, d = int(rng.integers(4, 40)), int(rng.integers(1, 5))
    X = (rng.random((n, d)) < rng.uniform(0.2, 0.8)).astype(float)
    if rng.random() < 0.4:
        X[:, rng.integers(d)] = rng.integers(-3, 11, n)
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = rng.normal(size=n).round(2)
    signal = X @ rng.normal(size=d) * rng.choice([0.0, 1.0, 3.0])
    y = (rng.random(n) < 1 / (1 + np.exp(-(signal - signal.mean())))).astype(int)
    y[:2] = 0, 1
    options = {"C": float(rng.choice([0, 0.001, 0.05, 0.5])), "points": int(rng.integers(1, 4))}
    options["max_nonzeros"] = int(rng.integers(1, d + 2))
    if rng.random() < 0.3:
        options["point_limits"] = np.column_stack([-rng.integers(0, 4, d), rng.integers(0, 4, d)])
        if rng.random() < 0.3:
            options["point_limits"][0] = [(1, 3), (-3, -2)][rng.integers(2)]
    if rng.random() < 0.2:
        options["free"] = rng.permutation(d)[: rng.integers(1, d + 1)].tolist()
    if rng.random() < 0.2:
        options["least_points"] = 2
    if rng.random() < 0.3:
        low = int(rng.integers(-4, 3))
        options["intercept_limits"] = (low, low + int(rng.integers(0, 4)))
    if rng.random() < 0.3:
        options["signs"] = rng.integers(-1, 2, d)
    if rng.random() < 0.3:
        options["groups"] = rng.integers(-1, 2, d)
    forced = "point_limits" in options and bool(np.prod(options["point_limits"][0]) > 0)
    if rng.random() < 0.2 and not forced:
        options["required"] = [int(rng.integers(d))]
    if rng.random() < 0.4:
        options["rules"], options["directions"] = rules_for(rng, d)
    if rng.random() < 0.3:
        options["weight"] = rng.uniform(0.1, 3, n)
    return X, y, options


def follows(card, options):
    """Whether a card meets all conditions, from their definitions."""
    used = {j for j, points in enumerate(card) if points}
    limits, free = options.get("point_limits"), set(options.get("free", ()))
    for j in range(len(card)):
        low, high = (-options["points"], options["points"]) if limits is None else limits[j]
        if not low <= card[j] <= high or 0 < abs(card[j]) < options.get("least_points", 1):
            return False
        if "signs" in options and card[j] * options["signs"][j] < 0:
            return False
    groups = [options["groups"][j] for j in used if options["groups"][j] >= 0] if "groups" in options else []
    if len(used - free) > options["max_nonzeros"] or len(set(groups)) < len(groups):
        return False
    if not set(options.get("required", ())) <= used:
        return False
    for rule in options.get("rules", ()):
        inside = rule.at_least <= len(used & set(rule.columns)) <= rule.at_most
        if not inside and (not rule.when or used & set(rule.when)):
            return False
    directions = options.get("directions")
    for group in () if directions is None else set(directions) - {-1}:
        if len({card[j] > 0 for j in used if directions[j] == group}) > 1:
            return False
    return True


def best_of_all(X, y, options):
    """The largest value over all cards and intercepts, -inf where no card meets the conditions."""
    n, d = X.shape
    weight = options.get("weight", np.ones(n)) / np.sum(options.get("weight", np.ones(n)))
    most = 3 if "point_limits" in options else options["points"]
    low, high = options.get("intercept_limits", (-60, 60))
    b, best, cards = np.arange(low, high + 1), -math.inf, []
    for card in itertools.product(range(-most, most + 1), repeat=d):
        if follows(card, options):
            cards.append(card)
            totals = (X @ card)[:, None] + b
            losses = weight @ np.logaddexp(0, -(2 * y[:, None] - 1) * totals)
            counted = len({*np.flatnonzero(card).tolist()} - {*options.get("free", ())})
            best = max(best, -losses.min() - options["C"] * counted)
    return best, cards


@pytest.mark.parametrize("part", range(5))
def test_the_best_risk_score_is_that_of_brute_force(part):
    found = dict.fromkeys(Status, 0)
    for seed in range(part * examples(12, 100), (part + 1) * examples(12, 100)):
        X, y, options = instance(seed)
        best, cards = best_of_all(X, y, options)
        problem = RiskProblem(X, y, **options)
        solution = solve(problem, limits=Limits(time_limit=60))
        found[solution.status] += 1
        if not cards:
            assert solution.status is Status.INFEASIBLE, seed
            continue
        assert solution.status is Status.OPTIMAL, (seed, solution)
        assert solution.value == pytest.approx(best, abs=1e-10), seed
        assert solution.bound >= best - 1e-12, seed
        assert tuple(problem.points_of(solution.weights)) in cards
        assert problem.trivial_bound >= best
    assert found[Status.OPTIMAL] > 0
