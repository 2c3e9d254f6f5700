"""Convex functions of a score difference, with derivatives and conjugates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

__all__ = ["EXPONENTIAL", "LOGISTIC", "SQUARED_HINGE", "FloatArray", "PairFunction", "smooth_hinge"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PairFunction:
    """A convex, nonincreasing function φ of the score difference, with all that Newton and the dual bound need.

    Attributes:
        value, first, second: φ, φ' and φ'', elementwise.
        conjugate: ``a -> φ*(-a)``, elementwise.
        upper: φ*(-a) is finite for 0 <= a <= upper.
    """

    value: Callable[[FloatArray], FloatArray]
    first: Callable[[FloatArray], FloatArray]
    second: Callable[[FloatArray], FloatArray]
    conjugate: Callable[[FloatArray], FloatArray]
    upper: float


def smooth_hinge(width: float) -> PairFunction:
    """``width log(1 + exp((1 - z) / width))``: the hinge ``max(0, 1 - z)`` and at most ``width log 2`` more.

    Examples:
        >>> smooth_hinge(0.001).value(np.array([0.5, 2.0])).round(6).tolist()
        [0.5, 0.0]
    """
    return PairFunction(
        value=lambda z: width * np.logaddexp(0.0, (1 - z) / width),
        first=lambda z: -expit((1 - z) / width),
        second=lambda z: expit((1 - z) / width) * expit((z - 1) / width) / width,
        conjugate=lambda a: width * (xlogy(a, a) + xlogy(1 - a, 1 - a)) - a,
        upper=1.0,
    )


LOGISTIC = PairFunction(
    value=lambda z: np.logaddexp(0.0, -z),
    first=lambda z: -expit(-z),
    second=lambda z: expit(z) * expit(-z),
    conjugate=lambda a: xlogy(a, a) + xlogy(1 - a, 1 - a),
    upper=1.0,
)
EXPONENTIAL = PairFunction(
    value=lambda z: np.exp(-z),
    first=lambda z: -np.exp(-z),
    second=lambda z: np.exp(-z),
    conjugate=lambda a: xlogy(a, a) - a,
    upper=np.inf,
)
SQUARED_HINGE = PairFunction(
    value=lambda z: np.maximum(0.0, 1 - z) ** 2,
    first=lambda z: -2 * np.maximum(0.0, 1 - z),
    second=lambda z: np.where(z < 1, 2.0, 0.0),
    conjugate=lambda a: a**2 / 4 - a,
    upper=np.inf,
)
