"""Supports: sets of columns that may have weights other than 0, and bounds that most of them do not pass.

Where at most a few weights may differ from 0, each set of so many columns is searched by itself. Before that, every
set gets a bound from its table alone: the rows with equal values of all columns but one have their order from that
column, and the best order of what these blocks allow is easily found (``ltr/native/supports.cpp`` has the proof). With
yes/no columns and one other, few of a hundred thousand sets are left to search.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ltr.exact import tuning
from ltr.exact.levels import FloatArray, IntArray
from ltr.exact.problem import Problem
from ltr.exact.reranking import RerankProblem
from ltr.native import bound_supports


def supports_of(problem: Problem) -> IntArray | None:
    """Return the largest sets of columns that may be used, (sets, columns), where a search by sets may be better.

    All have the free and the required columns. None where the number of weights is not limited, or there are too many
    sets, or sets of too many columns.
    """
    most, counted = problem.max_nonzeros, np.flatnonzero(problem.counted)
    if most is None or most == len(counted) or most + len(problem.free) > tuning.LARGEST_SUPPORT:
        return None
    number = math.comb(len(counted) - len(problem.required), most - len(problem.required))
    if number > (tuning.MOST_BOUNDED if isinstance(problem, RerankProblem) else tuning.MOST_SUPPORTS):
        return None
    return sets_with(problem.d, most + len(problem.free), [*problem.free, *problem.required])


def sets_with(d: int, size: int, given: Sequence[int]) -> IntArray:
    """Return the sets of so many of d columns that have all given ones, (sets, size)."""
    others, left = np.setdiff1d(np.arange(d), given), size - len(given)
    chosen = list(itertools.combinations(others.tolist(), left))
    same = np.tile(np.array(given, dtype=np.int64), (len(chosen), 1))
    return np.sort(np.column_stack([same, np.array(chosen, dtype=np.int64).reshape(len(chosen), left)]), axis=1)


class Sets(NamedTuple):
    """Sets of columns, and bounds on the objective of each, ascending."""

    columns: IntArray  # (sets, columns)
    bounds: FloatArray  # (sets,)

    @classmethod
    def of(cls, problem: Problem, tick: Callable[[], None] = lambda: None) -> Sets | None:
        """Return the sets of a problem; None where a search by sets is not better.

        Sets in which no weights meet a demand have the bound -inf.
        """
        supports = supports_of(problem)
        if supports is None:
            return None
        bounds = bounds_of(problem, supports, tick)
        for demanded in problem.demanded:
            enough = bounds_of(demanded.problem, supports, tick) >= demanded.doubtful
            bounds = np.where(enough, bounds, -np.inf)
        order = np.argsort(bounds, kind="stable")
        return cls(supports[order], bounds[order])

    def above(self, value: float) -> Sets:
        """Return the sets with a larger bound than a value, or the last set where there are none."""
        first = min(int(np.searchsorted(self.bounds, value, side="right")), len(self.bounds) - 1)
        return Sets(self.columns[first:], self.bounds[first:])

    def split(self, number: int) -> tuple[Sets, Sets]:
        """Return the sets with the largest bounds, so many of them, and the others."""
        at = len(self.bounds) - number
        return Sets(self.columns[at:], self.bounds[at:]), Sets(self.columns[:at], self.bounds[:at])

    def nearest_last(self, w: FloatArray) -> Sets:
        """Return the sets in the order of how many columns they share with weights, the most at the end."""
        order = np.argsort(np.count_nonzero(w[self.columns], axis=1), kind="stable")
        return Sets(self.columns[order], self.bounds[order])


def bounds_of(problem: Problem, supports: IntArray, tick: Callable[[], None] = lambda: None) -> FloatArray:
    """Return upper bounds on the objective of weights of each set of columns, up to rounding, (sets,).

    Examples:
        >>> problem = RerankProblem([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], [1, 1, 0], statistic="auc", max_nonzeros=1)
        >>> bounds_of(problem, np.array([[0], [1]])).tolist()  # one positive is tied with the negative, on average
        [0.75, 0.75]
    """
    if not isinstance(problem, RerankProblem):
        return np.full(len(supports), np.inf)
    bounds = np.full(len(supports), problem.shift)
    for members in problem.lists:
        if not problem.gains[members].any():
            continue
        X, n = problem.X[members].T, len(members)
        place = np.array([np.unique(column, return_inverse=True)[1] for column in X], dtype=np.int32)
        weights = problem.rank_weights(n)[::-1].astype(np.longdouble)
        table = {
            "place": place,
            "ascending": np.argsort(place, axis=1, kind="stable").astype(np.int32),
            "values": place.max(axis=1).astype(np.int64) + 1,
            "gains": problem.gains[members],
            "sums": np.concatenate([[0.0], np.cumsum(weights)]).astype(np.float64),
        }
        for first in range(0, len(supports), tuning.BOUNDED_TOGETHER):
            tick()
            some = slice(first, first + tuning.BOUNDED_TOGETHER)
            found = np.empty(len(supports[some]))
            bound_supports(**table, supports=supports[some], bounds=found)
            bounds[some] += found
    return np.minimum(bounds, problem.trivial_bound)
