r"""Central weights: the mean of the weights near a start, each counted by how well it orders the lists.

The weights with the largest statistic also fit the noise of the training lists, and on new lists that can cost more
than it gains. Central weights are the mean of w under the density proportional to

    exp(SHARPNESS * statistic(w) / deviation)  *  normal density of w with mean `start` and covariance spread^2 I,

a Gibbs posterior whose prior holds the weights near the start: a small `spread` stays there, a large one goes to the
middle of the best weights. The deviation is that of the statistic over random orders of the lists, so that a density
means the same for a DCG and an AUC; for the gains g and the rank weights a of a list of n it is given by

    deviation^2 = sum over lists of  sum_i (g_i - mean g)^2  *  sum_r (a_r - mean a)^2  /  (n - 1).

The mean is taken over walkers that move by elliptical slice sampling, which needs neither gradients nor a step length:
a draw of the prior and the present weights span an ellipse, and the walker goes to a random point of it where the
density is large enough.

*What is proven.* A bound of the exact engine holds for all weights, so central weights with the value v are within
``bound - v`` of the best ones on these lists.

Source: Hájek & Šidák (1967) for the deviation; Murray, Adams & MacKay (2010) for the sampler; Catoni (2007) for Gibbs
posteriors.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.exact.problem import FloatArray, RerankProblem

SHARPNESS = 6.0
"""Logarithm of how much more weights count whose statistic is larger by one deviation."""

_WALKERS, _STEPS, _FORGOTTEN = 32, 48, 16  # steps of each walker, and those before its place counts
_FEWEST = 8  # walkers, where lists are long: the statistic is smoother there
_ROWS = 200_000  # rows of all walkers together, from which there are fewer
_SHRINKS = 40  # of the ellipse's arc, after which a walker stays where it is
_NUMBERS = 4_000_000  # scores held at once
_TINY = float(np.finfo(np.float64).tiny)

Values = Callable[[FloatArray], FloatArray]


def central_weights(
    problem: RerankProblem, start: ArrayLike, spread: float, *, fixed: ArrayLike = (), seed: int = 0
) -> FloatArray:
    """Return the mean of the weights near a start, each counted by how well it orders the lists.

    Args:
        problem: the lists. Price and number of non-zero weights play no part: the columns to use are those not fixed.
        start: weights in the middle of the prior, (d,), which satisfy the side constraints.
        spread: standard deviation of each weight under the prior, > 0.
        fixed: columns whose weights stay as they are at the start.
        seed: of the draws; the same arguments give the same weights.

    Returns:
        Weights scaled into the box, (d,); the start where the mean does not satisfy the side constraints, as can happen
        only where a limit of theirs is not 0.

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
    rng, base, Z = np.random.default_rng(seed), problem.X @ origin, problem.X[:, free].T
    statistic, allowed = statistics_of(problem), _allowed(problem, origin, free)

    def density(steps: FloatArray) -> FloatArray:
        values = statistic(base + steps @ Z) * (SHARPNESS / deviation)
        return np.where(allowed(steps), values, -np.inf)

    steps = np.zeros((min(_WALKERS, max(_FEWEST, _ROWS // problem.n)), len(free)))
    level, total = density(steps), np.zeros(len(free))
    for index in range(_STEPS):
        steps, level = _slice(density, steps, level, spread * rng.normal(size=steps.shape), rng)
        if index >= _FORGOTTEN:
            total += steps.mean(axis=0)
    weights = origin.copy()
    weights[free] += total / (_STEPS - _FORGOTTEN)
    weights = problem.in_box(weights)
    return weights if problem.constraints is None or problem.constraints.satisfied(weights) else origin


def _slice(
    density: Values, steps: FloatArray, level: FloatArray, draw: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the walkers' next places and their log densities: one step of elliptical slice sampling each."""
    steps, level = steps.copy(), level.copy()
    least = level + np.log(rng.random(len(steps)))
    angle = rng.uniform(0, 2 * np.pi, len(steps))
    low, high = angle - 2 * np.pi, angle.copy()
    walking = np.arange(len(steps))
    before = steps.copy()
    for _ in range(_SHRINKS):
        turn = angle[walking, None]
        tried = before[walking] * np.cos(turn) + draw[walking] * np.sin(turn)
        found = density(tried)
        done = found > least[walking]
        steps[walking[done]], level[walking[done]] = tried[done], found[done]
        walking = walking[~done]
        if len(walking) == 0:
            break
        left = walking[angle[walking] < 0]
        right = walking[angle[walking] >= 0]
        low[left], high[right] = angle[left], angle[right]
        angle[walking] = rng.uniform(low[walking], high[walking])
    return steps, level


def _allowed(
    problem: RerankProblem, origin: FloatArray, free: NDArray[np.int64]
) -> Callable[[FloatArray], NDArray[np.bool_]]:
    """Return a function that tells which steps from the origin satisfy the side constraints, scaled into the box."""
    sides = problem.constraints
    if sides is None:
        return lambda steps: np.ones(len(steps), dtype=bool)
    A, b = sides.scaled
    rows = A[:, free].any(axis=1) | (b < 0)  # others hold for every step, as they hold at the origin
    A, b = A[rows], b[rows]
    if len(b) == 0:
        return lambda steps: np.ones(len(steps), dtype=bool)

    def allowed(steps: FloatArray) -> NDArray[np.bool_]:
        weights = np.tile(origin, (len(steps), 1))
        weights[:, free] += steps
        weights /= np.maximum(np.abs(weights).max(axis=1, keepdims=True), 1.0)
        return np.asarray((weights @ A.T <= b).all(axis=1))

    return allowed


def null_deviation(problem: RerankProblem) -> float:
    """Return the standard deviation of the statistic when every order of each list is equally likely."""
    variance = 0.0
    for members in problem.lists:
        if (n := len(members)) > 1:
            g, a = problem.gains[members], problem.rank_weights(n)
            variance += float(((g - g.mean()) ** 2).sum() * ((a - a.mean()) ** 2).sum()) / (n - 1)
    return math.sqrt(variance)


def statistics_of(problem: RerankProblem) -> Values:
    """Return a function from scores, (m, n), to the statistic of each row less a constant, (m,).

    Ties and score differences within the margin count as lost, as in `RerankProblem.evaluate`, but for rounding.

    Examples:
        >>> problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], statistic="dcg")
        >>> statistics_of(problem)(np.array([[0.0, 1.0, 2.0], [0.0, -1.0, -2.0]])).round(4).tolist()
        [1.6309, 1.1309]
    """
    lists, penalty = problem.lists, problem.margin * problem.grades
    weights = np.concatenate([problem.rank_weights(len(members))[::-1] for members in lists])
    number = np.empty(problem.n)  # of the list of each row
    for index, members in enumerate(lists):
        number[members] = index
    block = max(1, _NUMBERS // problem.n)

    def values(scores: FloatArray) -> FloatArray:
        if len(scores) > block:
            return np.concatenate([values(scores[i : i + block]) for i in range(0, len(scores), block)])
        depths = penalty - scores
        if len(lists) > 1:  # one list behind the other
            depths /= 2 * np.abs(depths).max(axis=1, keepdims=True) + _TINY
            depths += number
        return np.asarray(problem.gains[np.argsort(depths, axis=1)] @ weights)

    return values
