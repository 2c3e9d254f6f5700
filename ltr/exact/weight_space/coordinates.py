r"""Coordinate systems to search in: v with w = T v.

A box with half-widths r relaxes a pair with difference δ by ``sum_j r_j |t_j·δ|``, t_j the columns of T, and its share
of weight space is |det T| times its volume. Boxes that relax the pairs by one unit on average are thus as large as can
be where

    J(T) = sum_j log(mean over pairs of |t_j·δ|) - log |det T|

is smallest, and exp(J) is about the number of boxes needed. J is the negative log-likelihood of independent components
with Laplace densities, so the best coordinates are those of an independent component analysis: the ones in which
differences are sparse. Binary features often have sparse differences as given; correlated features do not.

Not all pairs count the same. Bounds are weak because of pairs that are lost at the best weights known but not on a
whole box around them. So the mean is weighted: pairs with score differences near 0 count most, and lost pairs more than
won ones.

Source: Bell & Sejnowski, An information-maximization approach to blind separation (1995), for the likelihood.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from ltr.exact.problem import FloatArray, Problem

SYSTEMS = ("given", "adapted")

_CONDITION = 1e-6  # smallest share of the largest variance that an axis may have
_PAIRS = 2000  # pairs examined, evenly spaced
_WON = 0.3  # weight of a pair that the best weights win
_SMOOTH = 1e-3  # |t| is the root of t² + this²
_STEPS = 120


def apply_to(problem: Problem) -> bool:
    """Return whether coordinates other than the weights may be searched: if nothing is asked of single weights."""
    plain = problem.constraints is None and not problem.required and problem.integer is None
    return problem.d > 1 and problem.C == 0 and problem.max_nonzeros is None and plain


def adapted(problem: Problem, w: FloatArray, present: FloatArray) -> tuple[FloatArray, float] | None:
    """Return the T with the smallest J found, and how much smaller J is than at present; None if none was found.

    Args:
        problem: a problem for which `apply_to` is true.
        w: the best weights known, (d,).
        present: the present T, (d, d).
    """
    levels = problem.levels()
    if len(levels.above) == 0:
        return None
    take = slice(None, None, -(-len(levels.above) // _PAIRS))
    differences = problem.X[levels.above[take]] - problem.X[levels.below[take]]
    with np.errstate(over="ignore"):
        products = differences.T @ differences / max(1, len(differences))
    if not np.isfinite(products).all():
        return None
    variances, axes = np.linalg.eigh(products)
    if not variances[0] > _CONDITION * variances[-1]:
        return None
    branching_scores = differences @ w
    spread = float(np.sqrt(np.mean(branching_scores**2))) or 1.0
    weights = np.exp(-0.5 * (branching_scores / spread) ** 2) * np.where(branching_scores > 0, _WON, 1.0)
    weights /= weights.sum()
    given = np.eye(problem.d)
    starts = (given, axes * variances**-0.5 @ axes.T, axes * variances**-0.5)
    with threadpool_limits(1):  # threads of a BLAS wait for each other at every small product, long on a busy machine
        found = [_descend(differences, weights, start) for start in starts]
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
    size = np.sqrt(y * y + _SMOOTH**2)
    mean = weights @ size
    gradient = differences.T @ (weights[:, None] * y / size / mean) - np.linalg.inv(T).T
    return float(np.log(mean).sum() - log_volume), gradient.ravel()


def _descend(differences: FloatArray, weights: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
    from scipy.optimize import minimize

    options = {"maxiter": _STEPS}
    found = minimize(_cost, start.ravel(), (differences, weights), jac=True, method="L-BFGS-B", options=options)
    T = found.x.reshape(start.shape)
    # an axis of any length will do; with these all have pairs of the same mean size
    return T / (weights @ np.abs(differences @ T)), float(found.fun)
