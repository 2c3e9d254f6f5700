r"""Coordinate systems to search in: v with w = T v.

They are chosen such that, with t_j the columns of T and δ the differences of pairs,

    J(T) = sum_j log(mean over pairs of |t_j·δ|) - log |det T|

is small: exp(J) is about the number of boxes needed (``docs/maths.md``, "Other coordinates"), and J is the negative
log-likelihood of an independent component analysis with Laplace densities.

Bounds are weak because of pairs that are lost at the best weights known but not on a whole box around them. So the mean
is weighted: pairs with score differences near 0 count most, and lost pairs more than won ones.

Source: Bell & Sejnowski, An information-maximization approach to blind separation (1995), for the likelihood.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from ltr.exact import tuning
from ltr.exact.problem import FloatArray, Problem

SYSTEMS = ("given", "adapted")


def apply_to(problem: Problem) -> bool:
    """Return whether other coordinates may be searched: for few features, if nothing is asked of single weights."""
    plain = problem.constraints is None and not problem.required and problem.integer is None
    return 1 < problem.d <= tuning.ADAPTED_TO and problem.C == 0 and problem.max_nonzeros is None and plain


def adapted(
    problem: Problem, w: FloatArray, present: FloatArray, tick: Callable[[], None] = lambda: None
) -> tuple[FloatArray, float] | None:
    """Return the T with the smallest J found, and how much smaller J is than at present; None if none was found.

    `apply_to` is true of the problem, w are the best weights known, `present` is the present T, (d, d), and what `tick`
    raises ends the work.
    """
    levels, _ = problem.all_levels(tick)
    if len(levels.above) == 0:
        return None
    take = slice(None, None, -(-len(levels.above) // tuning.ADAPTED_PAIRS))
    differences = problem.X[levels.above[take]] - problem.X[levels.below[take]]
    with np.errstate(over="ignore"):
        products = differences.T @ differences / max(1, len(differences))
    if not np.isfinite(products).all():
        return None
    variances, axes = np.linalg.eigh(products)
    if not variances[0] > tuning.ADAPTED_CONDITION * variances[-1]:
        return None
    branching_scores = differences @ w
    spread = float(np.sqrt(np.mean(branching_scores**2))) or 1.0
    weights = np.exp(-0.5 * (branching_scores / spread) ** 2) * np.where(branching_scores > 0, tuning.ADAPTED_WON, 1.0)
    weights /= weights.sum()
    given = np.eye(problem.d)
    starts = (given, axes * variances**-0.5 @ axes.T, axes * variances**-0.5)
    with threadpool_limits(1):  # threads of a BLAS wait for each other at every small product, long on a busy machine
        found = [_descend(differences, weights, start, tick) for start in starts]
    T, least = min(found, key=lambda pair: pair[1])
    gain = _cost(present.ravel(), differences, weights)[0] - least
    return np.ascontiguousarray(T / np.abs(T).sum(axis=1).max()), gain


def _cost(entries: FloatArray, differences: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Return a smoothed J and its gradient."""
    d = differences.shape[1]
    T = entries.reshape(d, d)
    sign, log_volume = np.linalg.slogdet(T)
    if sign == 0:
        return np.inf, np.zeros(d * d)
    y = differences @ T
    with np.errstate(over="ignore", invalid="ignore"):  # J is infinite then
        size = np.sqrt(y * y + tuning.ADAPTED_SMOOTH**2)
        mean = weights @ size
        gradient = differences.T @ (weights[:, None] * y / size / mean) - np.linalg.inv(T).T
    return float(np.log(mean).sum() - log_volume), gradient.ravel()


def _descend(
    differences: FloatArray, weights: FloatArray, start: FloatArray, tick: Callable[[], None] = lambda: None
) -> tuple[FloatArray, float]:
    """Return the T at the end of a descent from a start, and its J, by the quasi-Newton method BFGS.

    SciPy has it too, but takes a quarter of a second to import, longer than many a proof.

    Source: Nocedal & Wright, Numerical Optimization (2006), algorithms 3.1 and 6.1.
    """
    x = start.ravel()
    value, gradient = _cost(x, differences, weights)
    inverse = np.eye(len(x)) / max(float(np.linalg.norm(gradient)), 1.0)  # a guess, until a step has been made
    before = np.inf
    for step in range(tuning.DESCENT_STEPS):
        if step % tuning.DESCENT_LOOK == 0:
            if before - value < tuning.DESCENT_FLAT:
                break
            before = value
        tick()
        direction = -inverse @ gradient
        slope, length = float(gradient @ direction), 1.0
        while (
            not (found := _cost(x + length * direction, differences, weights))[0]
            <= value + tuning.DESCENT_ENOUGH * length * slope
        ):
            length /= 2
            if length < tuning.DESCENT_SHORTEST:
                break
        if not found[0] < value:
            break
        moved, change = length * direction, found[1] - gradient
        x, (value, gradient) = x + moved, found
        curvature = float(moved @ change)
        if curvature > 0:
            if step == 0:
                inverse *= curvature / float(change @ change) / inverse[0, 0]
            away = inverse @ change
            inverse += np.outer(moved, moved) * ((1 + change @ away / curvature) / curvature)
            inverse -= (np.outer(away, moved) + np.outer(moved, away)) / curvature
    T = x.reshape(start.shape)
    # an axis of any length will do; with these all have pairs of the same mean size
    return T / (weights @ np.abs(differences @ T)), value
