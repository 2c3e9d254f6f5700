r"""Baselines of the local search: random directions, and two kinds of coordinate ascent.

They evaluate weights and search lines with the compiled kernels of the local search itself. All maximise
``sum over p of a[n - p - c_(p)]`` (see `ltr.exact.problem`) over weights scaled to ``max |w_j| = 1``.

* *Random search*: directions uniform on the sphere.
* *Coordinate ascent* of Metzler & Croft, "Linear feature-based models for information retrieval" (Information
  Retrieval, 2007), with the steps of RankLib: each coordinate in random order, steps of 0.05 |w_j| (0.05 at 0) doubled
  up to 25 times in both directions, the best of which is taken; a random start once no coordinate helps.
* *DirectRank*: Tan, Xia, Guo & Wang, "Direct optimization of ranking measures for learning to rank models" (KDD 2013).
  Each coordinate in random order is moved into the best of the intervals of its whole line; a random start once no
  coordinate helps. Their likelihood of top-τ permutations, a measure against overfitting, is left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr.exact import RerankProblem
from ltr.exact.local_search.search import new_ascents
from ltr.native import Ascents

FloatArray = NDArray[np.float64]

_STEP, _SCALE, _DOUBLINGS = 0.05, 2.0, 25  # RankLib's defaults
_GAIN = 1e-9  # smallest gain that counts
_DIRECTIONS = 500
_NEAR = 4.0  # size of steps up to which breakpoints are dense


class List(NamedTuple):
    """A list: its features, (d, n), their differences for all pairs, (d, pairs), its margin, and the kernels."""

    columns: FloatArray
    deltas: FloatArray
    margin: float
    ascents: Ascents

    @classmethod
    def of(cls, problem: RerankProblem) -> List:
        """Return the list of a problem."""
        X, levels = problem.X, problem.levels()
        deltas = np.ascontiguousarray((X[levels.above] - X[levels.below]).T)
        return cls(np.ascontiguousarray(X.T), deltas, problem.margin, new_ascents(problem, levels, seed=0))


def evaluate(given: List, w: FloatArray) -> float:
    """Return the statistic of a list at w."""
    return given.ascents.objective(w, 1.0)


def random_start(d: int, rng: np.random.Generator) -> FloatArray:
    """Return a direction uniform on the sphere, scaled to ``max |w_j| = 1``."""
    return _scaled(rng.normal(size=(1, d)))[0]


def random_pass(given: List, w: FloatArray, value: float, rng: np.random.Generator) -> float:
    """Try 500 random directions; leave the best in w and return its value."""
    return _best_of(given, w, value, _scaled(rng.normal(size=(_DIRECTIONS, len(w)))))


def coordinate_pass(given: List, w: FloatArray, value: float, rng: np.random.Generator) -> float:
    """Pass over the coordinates with doubled steps; move w and return its value."""
    doubled = _SCALE ** np.arange(_DOUBLINGS)
    for j in rng.permutation(len(w)):
        steps = (_STEP * abs(w[j]) if w[j] != 0 else _STEP) * np.concatenate([-doubled, doubled])
        value = _best_of(given, w, value, _moved(w, j, steps))
    return value


def direct_rank_pass(given: List, w: FloatArray, value: float, rng: np.random.Generator) -> float:
    """Pass over the coordinates with exact line searches; move w and return its value."""
    for j in rng.permutation(len(w)):
        value = _best_of(given, w, value, _moved(w, j, np.array([_best_step(given, w, j)])))
    return value


def _best_of(given: List, w: FloatArray, value: float, trials: FloatArray) -> float:
    """Move w to the best of the trials if that is a gain; return the value at w."""
    values = [evaluate(given, trial) for trial in trials]
    best = int(np.argmax(values))
    if values[best] <= value + _GAIN:
        return value
    w[:] = trials[best]
    return values[best]


def _moved(w: FloatArray, j: int, steps: FloatArray) -> FloatArray:
    """Return w with each of the steps added to w_j, scaled, one per row."""
    trials = np.tile(w, (len(steps), 1))
    trials[:, j] += steps
    return _scaled(trials)


def _scaled(trials: FloatArray) -> FloatArray:
    """Return trials, one per row, scaled to ``max |w_j| = 1``; zero stays zero."""
    largest = np.abs(trials).max(axis=1, keepdims=True)
    return trials / np.where(largest > 0, largest, 1.0)


def _best_step(given: List, w: FloatArray, j: int) -> float:
    """Return the middle of the best interval of the line ``w + t e_j``, which ends 1 beyond the outer breakpoints."""
    f, g, slope = w @ given.columns, given.columns[j], given.deltas[j]
    with np.errstate(divide="ignore", invalid="ignore"):
        breaks = (given.margin - w @ given.deltas) / slope
    breaks = breaks[slope != 0]
    if not len(breaks):
        return 0.0
    best, step = -math.inf, 0.0
    low, high = breaks.min() - 1, breaks.max() + 1
    for start, end in ((-_NEAR, _NEAR), (low, -_NEAR), (_NEAR, high)):
        found, at = given.ascents.line_search(f, g, start, end, best)
        if found > best + _GAIN:
            best, step = found, at
    return step
