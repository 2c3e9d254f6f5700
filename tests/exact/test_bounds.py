"""Bounds of the search against optima, or planted weights, that share nothing with it.

Every instance has weights of a known value, evaluated in rational arithmetic: all of them where there are few whole
numbers, the best of all cells where there are up to three features, else weights that its features are built around.
No valid bound is below that value, whatever limit ended the search.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest

from ltr.exact import LinearConstraints, RerankProblem, Status, tuning
from ltr.exact.state import Ending, Limits, SolveState, Stopped
from ltr.exact.weight_space import WeightSpaceSearch
from tests.reference import cell_optimum_gap
from tests.tiers import examples

STATISTICS = ("dcg", "auc", "mrr", "dcg@3", "wta", "pauc@3", "power(p=3)", "hits@3", "recall@4")
MARGINS = (1e-4, 1e-4, 1e-5, 1e-6, 1e-9, 1e-2)
KINDS = (*["planted whole"] * 3, "few whole", *["planted whole"] * 3, "planted real", "planted whole", "cells")
MOST = 90  # whole numbers that are enumerated
METHOD = WeightSpaceSearch(threads=1, local_search=0, scip=False)


class Instance(NamedTuple):
    """A problem, the value that some feasible weights have, and whether no weights exceed it."""

    problem: RerankProblem
    value: float
    optimum: bool


def orthogonal(rng, w, rows):
    """Return small whole rows that the whole numbers w cancel exactly: multiples of one column against another."""
    found = np.zeros((rows, len(w)))
    for row in found:
        for _ in range(int(rng.integers(1, 4))):
            i, k = rng.choice(len(w), 2, replace=False)
            divisor = math.gcd(int(w[i]), int(w[k])) or 1
            sign = rng.choice([-1, 1])
            row[i] += sign * w[k] / divisor
            row[k] -= sign * w[i] / divisor
    return found


def planted(seed: int, whole: bool) -> Instance:
    """Features of about 1e9 that some weights cancel, but for differences of about 1e-6 that order most of the rows."""
    rng = np.random.default_rng([7, seed])
    n, d = int(rng.integers(6, 17)), int(rng.integers(4, 7))
    reach = int(rng.choice([2, 5, 10, 30, 100, 100])) if whole else 64
    w = rng.integers(-min(reach, 12), min(reach, 12) + 1, d).astype(float)
    own = int(rng.integers(d))
    w[own] = reach * rng.choice([-1, 1])
    y = (np.arange(n) < rng.integers(1, n)).astype(int)
    X, others = np.zeros((n, d)), np.delete(np.arange(d), own)
    X[:, others] = orthogonal(rng, w[others], n)
    X *= 1e9 / max(1.0, np.abs(X).max())
    if seed % 4 == 0:
        X = np.ldexp(np.rint(X), -20)  # so that nothing is rounded
    margin = float(rng.choice(MARGINS))
    if seed % 3 == 0:  # some rows that nothing cancels
        X = np.where(rng.random(n)[:, None] < 0.9, X, np.rint(rng.normal(size=(n, d)) * 10 ** rng.integers(0, 9)))
    placed = y + (seed % 2) * (rng.random(n) < 0.2) * rng.normal(size=n)
    X[:, own] = np.sign(w[own]) * margin / (reach if whole else 1) * rng.choice([1.01, 1.2, 3.0]) * placed
    if seed % 5 < 4:  # the last rows make the tiny differences rounding errors of their column
        far = int(rng.integers(1, 3))
        X[-far:], X[-far:, own] = 0.0, -np.sign(w[own]) * 10.0 ** rng.integers(6, 10) * np.arange(1, far + 1)
    w = w if whole else w / reach
    options: dict[str, Any] = {"margin": margin, "C": float(rng.choice([0.0, 0.0, 0.01]))}
    if seed % 4 == 1:
        A = rng.integers(-2, 3, (int(rng.integers(1, 3)), d)).astype(float)
        options["constraints"] = LinearConstraints(A, np.maximum(A @ w, 0.0) if seed % 2 else A @ w)
    if seed % 5 == 0 and np.count_nonzero(w) < d:
        options["max_nonzeros"] = int(np.count_nonzero(w))
    if seed % 7 == 0:
        options["required"] = [own]
    ties = "subrank" if seed % 11 == 0 else "resolved"
    statistic = STATISTICS[seed % len(STATISTICS)]
    problem = RerankProblem(X, y, statistic, ties=ties, integer=reach if whole else None, **options)
    assert problem.feasible(w)
    tried = [w, *(rng.integers(-reach, reach + 1, (5, d)) / (1 if whole else reach))]
    best = max(problem.evaluate(v) for v in tried if problem.feasible(v))
    return Instance(problem, best, best >= problem.trivial_bound)


def few_whole(seed: int) -> Instance:
    """Whole numbers that can all be tried, on features of any size."""
    rng = np.random.default_rng([8, seed])
    n, d = int(rng.integers(4, 11)), int(rng.integers(2, 5))
    reach = max(b for b in range(1, 26) if (2 * b + 1) ** d <= MOST)
    X = rng.integers(-3, 4, (n, d)).astype(float)
    if seed % 2:
        X = X * 10.0 ** rng.integers(0, 10, d) + rng.choice([0.0, 1e-6, 1e-5]) * rng.normal(size=(n, d))
    y = rng.integers(0, 3 if seed % 4 == 0 else 2, n)
    y[:2] = 0, 1
    sides = LinearConstraints(rng.integers(-1, 2, (1, d)), [float(rng.integers(0, 3))]) if seed % 3 == 0 else None
    options: dict[str, Any] = {"margin": float(rng.choice([*MARGINS, 1.0])), "C": float(rng.choice([0.0, 0.01]))}
    statistic = STATISTICS[seed % len(STATISTICS)]
    problem = RerankProblem(X, y, statistic, integer=reach, constraints=sides, **options)
    grid = np.array(list(itertools.product(range(-reach, reach + 1), repeat=d)), dtype=float)
    return Instance(problem, max(problem.evaluate(w) for w in grid if problem.feasible(w)), True)


def of_cells(seed: int) -> Instance:
    """Up to three features of a billion with differences of single digits; margins that cost the optimum nothing."""
    rng = np.random.default_rng([9, seed])
    n, d = int(rng.integers(4, 9)), int(rng.integers(1, 4))
    X = rng.integers(-9, 10, (n, d)) + rng.choice([0.0, 1e9, -(2.0**30)], d)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    statistic = STATISTICS[seed % len(STATISTICS)]
    value, gap, _ = cell_optimum_gap(X, y, statistic)
    return Instance(RerankProblem(X, y, statistic, margin=min(1e-6, gap or 1.0)), value, True)


def instance(seed: int) -> Instance:
    kind = KINDS[seed % len(KINDS)]
    if kind == "few whole":
        return few_whole(seed)
    return of_cells(seed) if kind == "cells" else planted(seed, kind == "planted whole")


def searched(problem: RerankProblem, nodes: int) -> tuple[SolveState, Status]:
    """Search some boxes; return the state and how it ended."""
    state = SolveState(problem, Limits(time_limit=60, node_limit=nodes))
    state.offer(np.zeros(problem.d))
    try:
        ending = METHOD.run(state)
    except Stopped as stop:
        ending = Ending(stop.status)
    bound = -math.inf if ending.status is Status.INFEASIBLE else state.bound
    status = state.solution(ending, "test").status
    state.bound = bound  # as it was proven, not as an answer states it
    return state, status


def check(seed: int) -> str:
    """Raise AssertionError if a bound of this instance is wrong; return how the search ended."""
    problem, value, optimum = instance(seed)
    least = value - 1e-12 * max(abs(value), abs(problem.trivial_bound))
    state, status = searched(problem, nodes=12)
    assert state.bound >= least, (seed, status)
    assert not (status is Status.OPTIMAL and state.value < least), seed
    assert not (optimum and state.value > value + 1e-9), seed
    return status.value


@pytest.fixture(autouse=True)
def forced(monkeypatch):
    monkeypatch.setattr(tuning, "VERTICES_WORK", 5_000)  # vertices take most of the time, and have tests of their own


def test_no_bound_is_below_what_weights_reach():
    ended = Counter(check(seed) for seed in range(examples(40, slow=2000)))
    assert ended["optimal"] > 5
