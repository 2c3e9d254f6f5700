r"""Baselines of the local search, compiled: random directions, and two kinds of coordinate ascent.

All maximise ``sum over p of a[n - p - c_(p)]`` (see `ltr.exact.problem`) over weights scaled to
``max |w_j| = 1``.

* *Random search*: directions uniform on the sphere.
* *Coordinate ascent* of Metzler & Croft, "Linear feature-based models for information retrieval" (Information
  Retrieval, 2007), with the steps of RankLib: each coordinate in random order, steps of 0.05 |w_j| (0.05 at 0) doubled
  up to 25 times in both directions, the best of which is taken; a random start once no coordinate helps.
* *DirectRank*: Tan, Xia, Guo & Wang, "Direct optimization of ranking measures for learning to rank models" (KDD 2013).
  Each coordinate in random order is moved into the best of the intervals of its whole line, found by sorting the
  points where a pair changes and sweeping over them; a random start once no coordinate helps. Their likelihood of
  top-τ permutations, a measure against overfitting, is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr.compiling import njit
from ltr.exact import RerankProblem

FloatArray = NDArray[np.float64]

_STEP, _SCALE, _DOUBLINGS = 0.05, 2.0, 25  # RankLib's defaults
_GAIN = 1e-9  # smallest gain that counts
_DIRECTIONS = 500


class List(NamedTuple):
    """Features of the positives and negatives, rank weights a_1..a_n with a leading 0, and the margin."""

    positives: FloatArray
    negatives: FloatArray
    a: FloatArray
    margin: float

    @classmethod
    def of(cls, problem: RerankProblem) -> List:
        """Return the list of a problem."""
        X = np.ascontiguousarray(problem.X)
        return cls(X[problem.positives], X[problem.negatives], np.concatenate([[0.0], problem.a]), problem.margin)


@njit(cache=True, nogil=True)
def evaluate(given: List, w: FloatArray) -> float:
    """Return the statistic of a list at w."""
    negatives = np.sort(given.negatives @ w)
    scores = given.positives @ w
    n = len(scores) + len(negatives)
    lost = np.empty(len(scores), np.int64)
    for i in range(len(scores)):
        lost[i] = len(negatives) - np.searchsorted(negatives, scores[i] - given.margin, side="right")
    lost.sort()
    value = 0.0
    for p in range(len(lost)):
        value += given.a[n - p - lost[p]]
    return value


@njit(cache=True, nogil=True)
def random_start(d: int, rng: np.random.Generator) -> FloatArray:
    """Return a direction uniform on the sphere, scaled to ``max |w_j| = 1``."""
    w = rng.normal(0.0, 1.0, d)
    return w / np.max(np.abs(w))


@njit(cache=True, nogil=True)
def random_pass(given: List, w: FloatArray, value: float, rng: np.random.Generator) -> float:
    """Try 500 random directions; leave the best in w and return its value."""
    for _ in range(_DIRECTIONS):
        trial = random_start(len(w), rng)
        reached = evaluate(given, trial)
        if reached > value:
            value = reached
            w[:] = trial
    return value


@njit(cache=True, nogil=True)
def _moved(w: FloatArray, j: int, step: float) -> FloatArray:
    trial = w.copy()
    trial[j] += step
    largest = np.max(np.abs(trial))
    return trial / largest if largest > 0.0 else trial


@njit(cache=True, nogil=True)
def coordinate_pass(given: List, w: FloatArray, value: float, rng: np.random.Generator) -> float:
    """Pass over the coordinates with doubled steps; move w and return its value."""
    for j in rng.permutation(len(w)):
        best, best_step = value, 0.0
        for sign in (-1.0, 1.0):
            step = sign * (_STEP * abs(w[j]) if w[j] != 0.0 else _STEP)
            for _ in range(_DOUBLINGS):
                reached = evaluate(given, _moved(w, j, step))
                if reached > best:
                    best, best_step = reached, step
                step *= _SCALE
        if best > value + _GAIN:
            w[:] = _moved(w, j, best_step)
            value = best
    return value


@njit(cache=True, nogil=True)
def direct_rank_pass(given: List, w: FloatArray, value: float, rng: np.random.Generator) -> float:
    """Pass over the coordinates with exact line searches; move w and return its value."""
    for j in rng.permutation(len(w)):
        trial = _moved(w, j, _best_step(given, w, j))
        reached = evaluate(given, trial)
        if reached > value + _GAIN:
            w[:] = trial
            value = reached
    return value


@njit(cache=True, nogil=True)
def _best_step(given: List, w: FloatArray, j: int) -> float:
    """Return the middle of the best interval of the line ``w + t e_j``."""
    rows, columns = len(given.positives), len(given.negatives)
    high, low = given.positives @ w, given.negatives @ w
    at = np.empty(rows * columns)
    who = np.empty(rows * columns, np.int64)
    lost = np.zeros(rows, np.int64)  # pairs lost at t = -infinity
    events = 0
    for i in range(rows):
        for k in range(columns):
            slope, base = given.positives[i, j] - given.negatives[k, j], high[i] - low[k] - given.margin
            if slope == 0.0:
                lost[i] += base < 0.0
                continue
            lost[i] += slope > 0.0
            at[events] = -base / slope
            who[events] = i + 1 if slope > 0.0 else -i - 1
            events += 1
    if events == 0:
        return 0.0
    n = rows + columns
    fewer = np.zeros(columns + 1, np.int64)  # positives that lose at most this many pairs
    for i in range(rows):
        fewer[lost[i]] += 1
    value = 0.0
    p = 0
    for c in range(columns + 1):
        for _ in range(fewer[c]):
            value += given.a[n - p - c]
            p += 1
        fewer[c] = p
    order = np.argsort(at[:events])
    best, step = value, at[order[0]] - 1.0
    for e in range(events):
        event = order[e]
        i = abs(who[event]) - 1
        c = lost[i]
        if who[event] > 0:  # a pair is won
            p = fewer[c - 1]
            value += given.a[n - p - c + 1] - given.a[n - p - c]
            fewer[c - 1] += 1
            lost[i] = c - 1
        else:
            p = fewer[c] - 1
            value += given.a[n - p - c - 1] - given.a[n - p - c]
            fewer[c] -= 1
            lost[i] = c + 1
        last = e + 1 == events
        beyond = at[event] + 2.0 if last else at[order[e + 1]]
        if value > best + _GAIN and beyond > at[event]:
            best, step = value, 0.5 * (at[event] + beyond)
    return step
