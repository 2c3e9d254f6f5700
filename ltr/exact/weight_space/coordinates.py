r"""Coordinate systems to search in: v with w = T v.

A box relaxes every pair by ``sum_j r_j |e_j|``, so the number of boxes depends on how the pair differences lie to the
axes. With S the mean of δ δ' over the pairs, ``T = S^(-1/2)`` makes them uncorrelated; whether that helps depends on
the list: it does where features are correlated, and does harm where one of them hardly varies. So a search tries a few
systems on a small budget and keeps the best.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr.exact.levels import levels_of
from ltr.exact.problem import Problem

__all__ = ["systems"]

FloatArray = NDArray[np.float64]

_CONDITION = 1e-6  # smallest share of the largest variance that an axis may have


def systems(problem: Problem) -> dict[str, FloatArray | None]:
    """Systems by name; None is the weights themselves.

    Side constraints and prices are about the weights, so they leave only those.

    Examples:
        >>> from ltr.exact.problem import RerankProblem
        >>> list(systems(RerankProblem([[0.0, 1.0], [1.0, 0.5], [2.0, 3.0]], [0, 1, 0])))
        ['given', 'half', 'decorrelated', 'principal']
        >>> list(systems(RerankProblem([[0.0, 1.0], [1.0, 0.5], [2.0, 3.0]], [0, 1, 0], C=0.1)))
        ['given']
    """
    known: dict[str, FloatArray | None] = {"given": None}
    if problem.d == 1 or problem.C > 0 or problem.constraints is not None or problem.max_nonzeros is not None:
        return known
    levels = levels_of(problem)
    differences = problem.X[levels.above] - problem.X[levels.below]
    variances, axes = np.linalg.eigh(differences.T @ differences / max(1, len(differences)))
    if not variances[0] > _CONDITION * variances[-1]:
        return known
    for name, T in (
        ("half", axes * variances**-0.25 @ axes.T),
        ("decorrelated", axes * variances**-0.5 @ axes.T),
        ("principal", axes * variances**-0.5),
    ):
        known[name] = np.ascontiguousarray(T / np.abs(T).sum(axis=1).max())
    return known
