"""The optimum of the pairwise hinge loss: a quadratic program (linear without a penalty) of few of its pairs.

Newton's method on smoothed hinges of falling width finds the pairs near the kink at 1. Of all others the side is known,
so that they enter as a linear term, and Clarabel solves the program of the few that are left.
"""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from ltr.convex.cones import solve_program
from ltr.convex.functions import FloatArray, smooth_hinge
from ltr.convex.newton import Objective, Pairs, floor, minimise, radius_of, without_idle_part

__all__ = ["KINK_LIMIT", "hinge_optimum"]

KINK_LIMIT = 40_000
"""Most pairs near the kink of the hinge in the program."""


def hinge_optimum(pairs: Pairs, penalty: FloatArray) -> tuple[FloatArray, float, str]:
    """The weights with the smallest mean hinge loss plus penalty, a lower bound, and what found them.

    Raises:
        ValueError: more than `KINK_LIMIT` pairs near the kink.
    """
    w = np.zeros(penalty.size)
    for width in (1.0, 0.1, 0.01, 0.001):
        w = minimise(Objective(pairs, smooth_hinge(width), penalty), w, steps=50)
        if _hinge_value(pairs, penalty, w) == 0:
            return w, 0.0, "newton"
    best, lower, guess = w, -math.inf, _hinge_value(pairs, penalty, w)
    slack = 1 - pairs.differences(w)
    # the kinks of the optimum lie near those of the smoothed one; the certificate tells when that is not so
    for reach in (0.03, 0.1, 0.3, 1.0, math.inf):
        near = np.abs(slack) <= reach
        if near.sum() > KINK_LIMIT and lower > -math.inf:
            break
        if near.sum() > KINK_LIMIT:
            raise ValueError(
                f"hinge: {int(near.sum())} pairs within {reach:g} of the kink, the limit is {KINK_LIMIT}; use a larger "
                "l2 or fewer observations"
            )
        found = _kink_optimum(pairs, penalty, near, slack > 0, guess) if near.any() else None
        if found is None:
            continue
        candidates, bound = found
        lower = max(lower, bound)
        best = min([best, *candidates], key=lambda v: _hinge_value(pairs, penalty, v))
        if _hinge_value(pairs, penalty, best) - lower <= 1e-9 * _hinge_value(pairs, penalty, best):
            break
    return best, lower, "newton+clarabel"


def _kink_optimum(
    pairs: Pairs, penalty: FloatArray, near: NDArray[np.bool_], positive_side: NDArray[np.bool_], guess: float
) -> tuple[list[FloatArray], float] | None:
    r"""The hinge's optimum if all pairs but the near ones stay on their side of the kink.

    With N pairs, of which those of L lie on the linear side for good, and distinct differences δ_m, c_m times each,

        minimise    sum_m c_m ξ_m + sum over L of (1 - δ·w) + N/2 sum_j r_j w_j^2      over w, ξ >= 0
        subject to  ξ_m >= 1 - δ_m·w,      with multipliers  0 <= a_m <= c_m.

    Any such a proves ``N F(w) >= |L| + sum a - (sum over L of δ + sum a δ)·w + N/2 sum_j r_j w_j^2`` for all w.

    Args:
        pairs: all pairs.
        penalty: r, of shape (d,).
        near: which pairs enter the program, (n_pos, n_neg).
        positive_side: which of the others lie on the linear side.
        guess: roughly F at the optimum.

    Returns:
        Candidates for the optimum and the bound that the multipliers prove; None without a solution.
    """
    total = near.size
    linear = positive_side & ~near
    pull = pairs.columns(linear.astype(np.float64)).sum(axis=0)
    pull_size = pairs.sizes(linear.astype(np.float64)).sum(axis=0)
    i, k = np.nonzero(near)
    rows, count = np.unique(pairs.positive[i] - pairs.negative[k], axis=0, return_counts=True)
    w, slack = cp.Variable(penalty.size), cp.Variable(len(rows), nonneg=True)
    above = slack >= 1 - rows @ w
    objective = count @ slack - pull @ w + 0.5 * total * penalty @ cp.square(w)
    # near 1, the solver's absolute tolerances mean digits
    unit = 1 / (total * guess)
    weights = solve_program(cp.Problem(cp.Minimize(unit * objective), [above]), w)
    if weights is None or above.dual_value is None:
        return None
    if not penalty.any():
        weights = without_idle_part(pairs, weights)
    a = np.clip(above.dual_value / unit, 0.0, count)
    # pairs with a multiplier strictly inside stand exactly on the kink: d or fewer equations that w should satisfy
    inside = np.minimum(a, count - a)
    kink = inside > 1e-7 * np.minimum(count, a.max())
    polished = weights + np.linalg.lstsq(rows[kink], 1 - rows[kink] @ weights, rcond=None)[0]
    # and multipliers that balance the forces on w exactly
    missing = total * penalty * polished - pull - rows.T @ a
    lever = np.where(kink, inside, 0.0)[:, None] * rows
    balanced = np.clip(a + lever @ np.linalg.lstsq(rows.T @ lever, missing, rcond=None)[0], 0.0, count)

    def bound(multipliers: FloatArray) -> float:
        constant = float(linear.sum() + multipliers.sum()) / total
        q, size = -(pull + rows.T @ multipliers) / total, (pull_size + np.abs(rows).T @ multipliers) / total
        return floor(constant, constant, q, size, penalty, radius_of(polished))

    return [weights, polished], max(bound(a), bound(balanced))


def _hinge_value(pairs: Pairs, penalty: FloatArray, w: FloatArray) -> float:
    return float(np.maximum(0.0, 1 - pairs.differences(w)).mean() + 0.5 * penalty @ w**2)
