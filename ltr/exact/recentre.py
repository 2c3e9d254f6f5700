"""Move weights to the middle of the cell in which they win their comparisons.

A solver's weights often sit on ``w·δ = margin``, right only up to its tolerance. The same comparisons are won with
room to spare by the weights that a small linear program puts as deep as the box and the side constraints allow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr.exact.problem import Problem

__all__ = ["deepest"]

FloatArray = NDArray[np.float64]

# how far below the margin the program may end: the caller evaluates its weights and so decides
_SHORTFALL = 1e-6


def deepest(problem: Problem, differences: FloatArray, support: NDArray[np.bool_]) -> FloatArray | None:
    """Weights that clear the margin on all differences by as much as possible.

    ``max s  s.t.  w·δ >= margin + s for each row δ,  -1 <= w <= 1,  w_j = 0 off the support,  A w <= b``.

    Args:
        problem: gives the margin and the side constraints.
        differences: the rows δ, (rows, d).
        support: which weights may differ from 0, (d,).

    Returns:
        float64 of shape (d,), or None where no weights clear the margin to about 1e-6.

    Examples:
        >>> from ltr.exact.problem import RerankProblem
        >>> problem = RerankProblem([[0.0, 0.0], [1.0, 1.0]], [0, 1])
        >>> deepest(problem, problem.X[[1]] - problem.X[[0]], np.array([True, False])).tolist()
        [1.0, 0.0]
    """
    from scipy.optimize import linprog

    d = problem.d
    rows = [np.column_stack([-differences, np.ones(len(differences))])]
    limits = [np.full(len(differences), -problem.margin)]
    if problem.constraints is not None:
        rows.append(np.column_stack([problem.constraints.A, np.zeros(len(problem.constraints.b))]))
        limits.append(problem.constraints.b)
    bounds = [(-1.0, 1.0) if used else (0.0, 0.0) for used in support.tolist()]
    reach = float(np.max(np.abs(differences).sum(axis=1), initial=0.0))
    answer = linprog(
        c=np.concatenate([np.zeros(d), [-1.0]]),
        A_ub=np.concatenate(rows),
        b_ub=np.concatenate(limits),
        bounds=[*bounds, (-_SHORTFALL, reach)],
        method="highs",
    )
    if answer.x is None:
        return None
    w = np.clip(np.asarray(answer.x[:d], dtype=np.float64), -1.0, 1.0)
    return np.where(support, w, 0.0)
