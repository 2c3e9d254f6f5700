"""Exact methods and problems of a user's own, written with what `ltr.exact` exports and nothing else."""

from dataclasses import dataclass

import numpy as np
import pytest

from ltr import exact

X, Y = np.random.default_rng(3).normal(size=(25, 2)), np.arange(25) % 3 == 0
PROBLEM = exact.RerankProblem(X, Y, "dcg", C=0.01)


@dataclass(frozen=True)
class Circle(exact.Solver):
    """Tries directions on a circle; what it proves is nothing."""

    directions: int = 90

    def check(self, problem):
        if problem.d != 2:
            raise ValueError(f"Circle needs 2 features, got {problem.d}")

    def run(self, state):
        for angle in np.linspace(0, 2 * np.pi, self.directions, endpoint=False):
            state.check()
            state.offer([np.cos(angle), np.sin(angle)])
        return exact.Ending(exact.Status.HEURISTIC, f"{self.directions} directions")


def test_an_own_method_solves_a_problem_or_refuses_it():
    found, proven = exact.solve(PROBLEM, Circle()), exact.solve(PROBLEM)
    assert (found.status, found.method, found.message) == (exact.Status.HEURISTIC, "Circle", "90 directions")
    assert found.value == PROBLEM.evaluate(found.weights)
    assert proven.value >= found.value > 0.95 * proven.value
    assert found.bound == PROBLEM.trivial_bound
    assert exact.solve(PROBLEM, Circle(10**6), should_stop=lambda: True).status is exact.Status.INTERRUPTED
    with pytest.raises(ValueError, match="Circle needs 2 features, got 1"):
        exact.solve(exact.RerankProblem(X[:, :1], Y), Circle())


@pytest.mark.parametrize("method", ["auto", "local_search"])
def test_an_own_problem_is_searched_and_proven(method):
    class Doubled(exact.Problem):
        """A problem with all that it is worth twice over."""

        def __init__(self, given):
            self.given, self.X, self.C, self.margin = given, given.X, 2 * given.C, given.margin
            self.constraints = None

        def statistic_value(self, w):
            return 2 * self.given.statistic_value(w)

        @property
        def trivial_bound(self):
            return 2 * self.given.trivial_bound

        def appearances(self):
            return self.given.appearances()

        def levels(self, tick=lambda: None):
            levels = self.given.levels(tick)
            return levels._replace(contribution=2 * levels.contribution, shift=2 * levels.shift)

    found, once = exact.solve(Doubled(PROBLEM), method), exact.solve(PROBLEM, method)
    assert found.status is once.status
    assert found.value == pytest.approx(2 * once.value)
