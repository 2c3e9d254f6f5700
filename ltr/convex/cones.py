"""The cone programs of the smooth losses, in cvxpy's words, and Clarabel to solve them.

They are written independently of `ltr.losses` and of `ltr.convex.newton`, which takes their solution further.
"""

from __future__ import annotations

import math
import warnings

import cvxpy as cp
import numpy as np

from ltr.convex.functions import EXPONENTIAL, SQUARED_HINGE, FloatArray
from ltr.convex.newton import Design, Items, Objective, Pairs

__all__ = ["CONE_LIMIT", "cone_optimum", "recedes", "solve_program"]

CONE_LIMIT = 1_000
"""Most pairs, and a tenth of the most items, that a program takes: a second's work, a minute's at ten times more."""

_TOLERANCES = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


def cone_optimum(objective: Objective) -> FloatArray | None:
    """Clarabel's minimiser of the same objective written in cvxpy; None where its program is too large or it fails."""
    design, function, penalty, p = objective.design, objective.function, objective.penalty, objective.p
    w = cp.Variable(penalty.size)
    if isinstance(design, Items):
        if len(design.rows) > 10 * CONE_LIMIT:
            return None
        value = cp.sum(cp.logistic(-design.rows @ w)) / len(design.rows)
    else:
        assert isinstance(design, Pairs)
        positive, negative = design.positive, design.negative
        shape = len(positive), len(negative)
        if function is EXPONENTIAL:
            # mean_k (mean_i exp(s_k - s_i))^p = (mean_i exp(-s_i))^p mean_k exp(p s_k)
            lift = cp.log_sum_exp(-positive @ w) - math.log(shape[0])
            value = cp.exp(p * lift + cp.log_sum_exp(p * negative @ w) - math.log(shape[1]))
        else:
            if shape[0] * shape[1] > CONE_LIMIT:
                return None
            z = (positive[:, None] - negative[None]).reshape(-1, penalty.size) @ w
            losses = cp.square(cp.pos(1 - z)) if function is SQUARED_HINGE else cp.logistic(-z)
            inner = cp.sum(cp.reshape(losses, shape, order="C"), axis=0) / shape[0]
            value = cp.sum(inner if p == 1 else cp.power(inner, p)) / shape[1]
    return solve_program(cp.Problem(cp.Minimize(value + 0.5 * penalty @ cp.square(w))), w)


def recedes(design: Design, d: int) -> bool:
    """Whether some direction u has ``δ·u >= 0`` for all rows and > 0 for one: along it the loss falls for ever."""
    u = cp.Variable(d)
    within = [u <= 1, u >= -1]
    if isinstance(design, Pairs):
        # all pairs are ordered where one threshold stands between the classes
        threshold = cp.Variable()
        within += [design.positive @ u >= threshold, design.negative @ u <= threshold]
        gain = cp.sum((design.positive.mean(axis=0) - design.negative.mean(axis=0)) @ u)
    else:
        assert isinstance(design, Items)
        within += [design.rows @ u >= 0]
        gain = design.rows.mean(axis=0) @ u
    return solve_program(cp.Problem(cp.Maximize(gain), within), u) is not None and float(gain.value) > 1e-6


def solve_program(problem: cp.Problem, variable: cp.Variable) -> FloatArray | None:
    """Clarabel's value of the variable, however accurate; None where it finds none."""
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
