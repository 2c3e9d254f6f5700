"""Linear and quadratic programs, solved by Clarabel: the optimum of the pairwise hinge loss, and whether one exists.

The hinge's optimum is a quadratic program (a linear one without a penalty). Newton's method on smoothed hinges of
falling width finds the pairs near the kink at 1. All others stay on their side of it and enter as a linear term, so the
program is left with few pairs.
"""

from __future__ import annotations

import math
import warnings

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from ltr.convex.newton import FloatArray, Objective, Pairs, floor, minimise, radius_of, without_idle_part
from ltr.losses.functions import HINGE, SmoothedHinge

_TOLERANCES = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}

KINK_LIMIT = 40_000
"""Most pairs near the kink of the hinge in the program."""


def hinge_optimum(pairs: Pairs, penalty: FloatArray) -> tuple[FloatArray, float, str]:
    """Return the weights with the smallest mean hinge loss plus penalty, a lower bound, and what found them.

    Raises:
        ValueError: more than `KINK_LIMIT` pairs near the kink.
    """
    hinge = Objective(pairs, HINGE, penalty)
    w = np.zeros(penalty.size)
    for width in (1.0, 0.1, 0.01, 0.001):
        w = minimise(Objective(pairs, SmoothedHinge(width), penalty), w, steps=50)
        if hinge.value(w) == 0:
            return w, 0.0, "newton"
    best, lower, guess = w, -math.inf, hinge.value(w)
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
        best = min([best, *candidates], key=lambda v: hinge.value(v))
        if hinge.value(best) - lower <= 1e-9 * hinge.value(best):
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
    weights = _solve_program(cp.Problem(cp.Minimize(unit * objective), [above]), w)
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


def recedes(pairs: Pairs, d: int) -> bool:
    """Return whether a direction u has ``δ·u >= 0`` for all rows and > 0 for one: along it the loss falls for ever."""
    # all pairs are ordered where one threshold stands between the classes
    u, threshold = cp.Variable(d), cp.Variable()
    within = [u <= 1, u >= -1, pairs.positive @ u >= threshold, pairs.negative @ u <= threshold]
    gain = cp.sum((pairs.positive.mean(axis=0) - pairs.negative.mean(axis=0)) @ u)
    return _solve_program(cp.Problem(cp.Maximize(gain), within), u) is not None and float(gain.value) > 1e-6


def _solve_program(problem: cp.Problem, variable: cp.Variable) -> FloatArray | None:
    """Return Clarabel's value of the variable, however accurate; None where it finds none."""
    with warnings.catch_warnings():
        # an inaccurate solution is welcome as a start, for the certificate does not rest on it
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL, **_TOLERANCES)
        except cp.SolverError:
            return None
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return None
    value = np.asarray(variable.value, dtype=np.float64)
    return value if np.isfinite(value).all() else None
