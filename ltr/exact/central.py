r"""Central weights: a mean of the weights near a start, in which weights that order the lists well count more.

The weights with the largest statistic also fit the noise of the training lists, and on new lists that can cost more
than it gains. Central weights are the mean of w under the density proportional to

    exp(SHARPNESS * statistic(w) / deviation)  *  normal density of w with mean `start` and covariance spread^2 I,

a Gibbs posterior whose prior keeps the weights near the start: with a small `spread` the mean stays there, with a
large one it moves to the middle of the best weights. The deviation is the standard deviation of the statistic over
random orders of the lists, so that SHARPNESS means the same for a DCG and an AUC; for the gains g and the rank weights
a of a list of n it is given by

    deviation^2 = sum over lists of  sum_i (g_i - mean g)^2  *  sum_r (a_r - mean a)^2  /  (n - 1).

The mean is taken over walkers that move by elliptical slice sampling, which needs neither gradients nor a step length.

Source: Hájek & Šidák (1967) for the deviation; Murray, Adams & MacKay (2010) for the sampler; Catoni (2007) for Gibbs
posteriors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.exact import tuning
from ltr.exact.problem import FloatArray
from ltr.exact.reranking import RerankProblem
from ltr.native import sample_steps

SHARPNESS = 6.0
"""Logarithm of the factor by which weights count more if their statistic is larger by one deviation."""


def central_weights(
    problem: RerankProblem, start: ArrayLike, spread: float, *, fixed: ArrayLike = (), seed: int = 0
) -> FloatArray:
    """Return a mean of the weights near a start, in which weights that order the lists well count more.

    Args:
        problem: the lists. `C` and `max_nonzeros` are ignored.
        start: weights at the centre of the prior, (d,), which satisfy the side constraints. They are the result where
            the mean does not.
        spread: standard deviation of each weight under the prior, > 0.
        fixed: columns whose weights stay as they are at the start.
        seed: seed of the random draws; the same arguments give the same weights.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(60, 2))
        >>> problem = RerankProblem(X, X[:, 0] + X[:, 1] > 1)
        >>> w = central_weights(problem, [1.0, 0.0], 0.5, fixed=[0])
        >>> bool(problem.evaluate([1.0, 0.0]) < problem.evaluate(w) <= problem.trivial_bound)
        True
    """
    if not 0 < spread < math.inf:
        raise ValueError(f"spread must be a finite number > 0, got {spread!r}")
    origin = problem.in_box(start)
    free = np.setdiff1d(np.arange(problem.d), np.asarray(fixed, dtype=np.int64))
    deviation = null_deviation(problem)
    if len(free) == 0 or deviation == 0:
        return origin
    rows = np.concatenate(problem.lists)
    A, b = _rows_to_check(problem, free)
    mean = np.zeros(len(free))
    sample_steps(
        **lists_of(problem),
        A=A,
        b=b,
        origin=origin,
        free=free,
        base=(problem.X @ origin)[rows],
        Z=problem.X[np.ix_(rows, free)].T,
        walkers=min(tuning.CENTRAL_WALKERS, max(tuning.CENTRAL_FEWEST, tuning.CENTRAL_ROWS // problem.n)),
        steps=tuning.CENTRAL_STEPS,
        burn_in=tuning.CENTRAL_BURN_IN,
        sharpness=SHARPNESS / deviation,
        spread=spread,
        seed=seed,
        mean=mean,
    )
    weights = origin.copy()
    weights[free] += mean
    weights = problem.in_box(weights)
    return weights if problem.sides.satisfied(weights) else origin


def _rows_to_check(problem: RerankProblem, free: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Return the side constraints that a step may violate, for weights scaled into the box."""
    A, b = problem.sides.scaled
    rows = A[:, free].any(axis=1) | (b < 0)  # the other rows hold after every step because they hold at the origin
    return A[rows], b[rows]


def null_deviation(problem: RerankProblem) -> float:
    """Return the standard deviation of the statistic when every order of each list is equally likely."""
    variance = 0.0
    for members in problem.lists:
        if (n := len(members)) > 1:
            g, a = problem.gains[members], problem.rank_weights(n)
            variance += float(((g - g.mean()) ** 2).sum() * ((a - a.mean()) ** 2).sum()) / (n - 1)
    return math.sqrt(variance)


def lists_of(problem: RerankProblem) -> dict[str, NDArray[Any]]:
    """Return the lists of a problem, one behind the other, as the compiled kernels read them."""
    rows = np.concatenate(problem.lists)
    return {
        "start": np.cumsum([0, *(len(members) for members in problem.lists)]),
        "gains": problem.gains[rows],
        "penalty": (problem.margin * problem.grades)[rows],
        "rank_weights": np.concatenate([problem.rank_weights(len(members))[::-1] for members in problem.lists]),
    }
