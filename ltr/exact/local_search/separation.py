r"""Weights that rank perfectly or nearly so, from one linear program.

Every level of `ltr.exact.levels` gets a threshold τ. Its members should score above τ, and the observations that its
pairs put below them should score below τ:

    minimise  sum of s / (number on that side of the level)
    subject to  w·x - τ >= 1 - s  above,   w·x - τ <= s - 1  below,   s >= 0,   |w_j| <= 1 / unit,   A w <= b / unit.

If all s = 0, ``unit * w`` wins every pair with a margin of 2 unit. A search along lines may miss such weights. In d
dimensions about 2d observations can be separated whatever their labels (Cover), so this is for lists that are short
for their number of features.

Source: Cover, Geometrical and statistical properties of systems of linear inequalities (1965); Bennett & Mangasarian,
Robust linear programming discrimination of two linearly inseparable sets (1992), for the program.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from ltr.exact.levels import Levels
from ltr.exact.problem import Problem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_ROWS = 10  # rows of the program, for each feature, up to which it is worth its time
_SHORTEST, _LONGEST = 1e-3, 1.0  # seconds for the program
_LEAST_UNIT, _MOST_UNIT = 1e-6, 1.0


def separating_weights(problem: Problem, levels: Levels, seconds: float) -> FloatArray | None:
    """Return the weights of the program, at most 1 / unit; None if the list is too long or time is up.

    Args:
        problem: problem whose features, margin and side constraints are used.
        levels: the levels of this problem.
        seconds: time for the program, which cannot be interrupted and never gets more than a second.

    Examples:
        >>> from ltr.exact.problem import RerankProblem
        >>> problem = RerankProblem([[0, 1], [1, 0], [2, 2], [0, 0]], [1, 0, 1, 0])
        >>> w = separating_weights(problem, problem.levels(), 1.0)
        >>> problem.evaluate(w / abs(w).max()) == problem.trivial_bound
        True
    """
    d = problem.d
    if problem.n > _ROWS * d or seconds < _SHORTEST:
        return None
    level = levels.level[levels.positive]
    upper, lower = _sides(level, levels.above), _sides(level, levels.below)
    rows = len(upper) + len(lower)
    if not 0 < rows <= _ROWS * d:
        return None
    unit = min(max(problem.margin, _LEAST_UNIT), _MOST_UNIT)
    thresholds = len(levels.table)
    sign = np.repeat([1.0, -1.0], [len(upper), len(lower)])
    side, observation = np.concatenate([upper, lower]).T
    margin = sparse.hstack(
        [
            sparse.csr_array(-sign[:, None] * problem.X[observation]),
            sparse.csr_array((sign, (np.arange(rows), side)), shape=(rows, thresholds)),
            -sparse.eye_array(rows),
        ]
    )
    A, b = np.zeros((0, d)), np.zeros(0)
    if problem.constraints is not None:
        A, b = np.array(problem.constraints.A), problem.constraints.b / unit
    size = np.array([np.bincount(one[:, 0], minlength=thresholds) for one in (upper, lower)])
    found = linprog(
        np.concatenate([np.zeros(d + thresholds), 1 / size[(sign < 0).astype(int), side]]),
        A_ub=sparse.vstack(
            [margin, sparse.hstack([sparse.csr_array(A), sparse.csr_array((len(b), thresholds + rows))])]
        ),
        b_ub=np.concatenate([np.full(rows, -1.0), b]),
        bounds=[(-1 / unit, 1 / unit)] * d + [(None, None)] * thresholds + [(0, None)] * rows,
        method="highs",
        options={"time_limit": min(seconds, _LONGEST)},
    )
    return None if found.x is None else found.x[:d]


def _sides(level: IntArray, observation: NDArray[np.int32]) -> IntArray:
    """Return the distinct pairs (level, observation), one per row."""
    width = int(observation.max(initial=0)) + 1
    return np.column_stack(np.divmod(np.unique(level * width + observation), width))
