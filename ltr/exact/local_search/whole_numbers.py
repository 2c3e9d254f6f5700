"""Ascents on whole numbers: change one weight, or two at once, as long as the objective grows."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from ltr.exact.problem import FloatArray, Problem
from ltr.exact.state import SolveState

_STEPS = (-1.0, 1.0)


def ascend(state: SolveState, until: float, generator: np.random.Generator, restarts: int) -> None:
    """Ascend from the best weights of a state, then from others nearby, and offer what is better.

    There are `restarts` ascents, which end at the time `until` of `time.monotonic` at the latest.
    """
    problem = state.problem
    assert problem.integer is not None
    for restart in range(restarts):
        w = state.weights.copy()
        if restart > 0:
            changed = generator.choice(problem.d, min(problem.d, int(generator.integers(1, 4))), replace=False)
            w[changed] = generator.integers(-problem.integer, problem.integer + 1, len(changed))
        value, better = _value(problem, w), True
        while better and time.monotonic() < until:
            better = False
            for moved in _moves(problem, w, generator):
                state.check()
                if (found := _value(problem, moved)) > value:
                    w, value, better = moved, found, True
                    break
                if time.monotonic() > until:
                    break
        if value > state.value:
            state.offer(w)
        if time.monotonic() > until:
            return


def _value(problem: Problem, w: FloatArray) -> float:
    return problem.evaluate(w) if problem.feasible(w) else -math.inf


def _moves(problem: Problem, w: FloatArray, generator: np.random.Generator) -> Iterator[FloatArray]:
    """Yield weights near w: one changed to any whole number, then two by one each or one of them to 0."""
    assert problem.integer is not None
    columns, reach = generator.permutation(problem.d), problem.integer
    for j in columns:
        for to in range(-reach, reach + 1):
            if to != w[j]:
                moved = w.copy()
                moved[j] = to
                yield moved
    used = np.flatnonzero(w)
    for j in columns:
        for k in used:
            if j == k:
                continue
            for step in _STEPS:
                for other in (*_STEPS, -w[k]):
                    moved = w.copy()
                    moved[j] += step
                    moved[k] += other
                    if np.abs(moved).max() <= reach:
                        yield moved
