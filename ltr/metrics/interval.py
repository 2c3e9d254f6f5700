"""The mean of a measure over lists, with its confidence interval.

Values are tensors, arrays or sequences of any shape, one value per list; a list on which the measure is undefined (NaN)
is left out. Values are rounded to 12 digits of the largest one, so that 0.6 - 0.4 ties with 0.4 - 0.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike
from torch import Tensor

from ltr.checks import is_whole, one_of

BootstrapMethod = Literal["bca", "percentile"]
DIGITS = 40
"""Number of binary digits of the largest value that count; smaller ones are rounding."""
_FEWEST = 10  # draws; fewer do not determine the ends of an interval
BATCH = 2**20
"""Most numbers that are resampled at once, which bounds the memory."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval.

    Examples:
        >>> print(Interval(0.25, low=0.125, high=0.5, confidence=0.95))
        0.25 [0.125, 0.5]
    """

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def mean_interval(
    values: Tensor | ArrayLike,
    *,
    confidence: float = 0.95,
    method: BootstrapMethod = "bca",
    resamples: int = 9999,
    seed: int = 0,
) -> Interval:
    """Bootstrap confidence interval of the mean over lists.

    Args:
        values: one value per list, NaN where undefined.
        confidence: confidence level of the interval, between 0 and 1.
        method: ``"bca"`` (bias-corrected and accelerated) or ``"percentile"``; they agree for many lists, and for
            many thousands of lists the latter is quicker.
        resamples: number of times that the lists are resampled.
        seed: seed of the resampling.

    Raises:
        ValueError: fewer than 2 defined values, an infinite one, or an option outside its range.

    Source: Efron & Tibshirani, *An Introduction to the Bootstrap* (1993), chapters 13 and 14.

    Examples:
        >>> print(mean_interval([0.5, 0.75, 1.0, 0.25, 0.5, 0.75, float("nan")]))
        0.625 [0.4167, 0.8333]
    """
    check_options(confidence, resamples, method)
    flat = values_of_lists("values", values)
    defined = enough(flat[~np.isnan(flat)])
    return bootstrap(rounded(defined, resolution(defined)), confidence, method, resamples, seed)


def bootstrap(values: np.ndarray, confidence: float, method: str, resamples: int, seed: int) -> Interval:
    """Return the mean of rounded values and its interval, which is a point when all are equal."""
    mean = float(values.mean())
    if constant(values):
        return Interval(mean, mean, mean, confidence)
    found = scipy.stats.bootstrap(
        (values,),
        np.mean,
        vectorized=True,
        batch=batch_of(values.size),
        n_resamples=resamples,
        confidence_level=confidence,
        method=method,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high), confidence)


def values_of_lists(name: str, values: Tensor | ArrayLike) -> np.ndarray:
    """Return the values as a flat float64 array, NaN where undefined; ValueError for an infinite one."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
    flat = np.asarray(array, dtype=np.float64).reshape(-1)
    if bool(np.isinf(flat).any()):
        raise ValueError(f"{name} must be finite or NaN, got {flat[np.isinf(flat)][0]}")
    return flat


def enough(values: np.ndarray) -> np.ndarray:
    """Return the values; ValueError if there are fewer than two."""
    if values.size < 2:
        raise ValueError(f"a comparison takes at least 2 lists with defined values, got {values.size}")
    return values


def constant(values: np.ndarray) -> bool:
    """Return whether rounded values are all equal."""
    return bool((values == values[0]).all())


def resolution(*values: np.ndarray) -> float:
    """Return the unit to which differences of these values are rounded."""
    largest = max(float(np.abs(array).max()) for array in values)
    return math.ldexp(1.0, math.frexp(largest)[1] - DIGITS)


def rounded(values: np.ndarray, unit: float) -> np.ndarray:
    """Return the nearest multiples of `unit`."""
    return np.rint(values / unit) * unit


def check_options(confidence: float, resamples: int = _FEWEST, method: str = "percentile") -> None:
    """Raise ValueError for an option of a comparison that is outside its range."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    if not is_whole(resamples) or resamples < _FEWEST:
        raise ValueError(f"resamples must be an integer >= {_FEWEST}, got {resamples!r}")
    one_of("method", method, get_args(BootstrapMethod))


def batch_of(size: int) -> int:
    """Return how many resamples of so many numbers to draw at once."""
    return max(1, BATCH // max(size, 1))
