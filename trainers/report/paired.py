"""Tests of paired differences over the splits of one data set, which share rows.

Random splits of one data set overlap, so their differences vary together, and the paired t-test is too sure of their
mean. The corrected resampled t-test has the variance ``s^2 (1/J + e/o)`` in place of ``s^2 / J``, for J splits, e rows
in the set that is evaluated and o rows in the other one.

Source: Nadeau & Bengio, *Inference for the Generalization Error*, Machine Learning 52 (2003).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ltr.metrics.comparison import constant, holm, resolution, rounded

Key = TypeVar("Key")

ALPHA = 0.05
"""Level of all tests, and 1 less the confidence of all intervals."""
FEWEST_SPLITS = 3
"""Number of splits below which nothing is tested."""


class Verdict:
    """The possible outcomes of a test."""

    BETTER = "better"
    WORSE = "worse"
    UNDECIDED = "not shown to differ"
    TOO_FEW = "too few splits"


@dataclass(frozen=True)
class Paired:
    """Two rankers on the same splits of one data set."""

    splits: int  # number of splits on which both have a value
    mean_a: float
    mean_b: float
    difference: float  # mean_a - mean_b
    width: float = math.nan  # half the length of the difference's 95% interval; NaN without a test
    p: float = math.nan  # two-sided p value of the difference; NaN without a test
    p_holm: float = math.nan  # `p` adjusted over its family, see `family`
    of: int = 0  # number of tests in the family

    @property
    def percent(self) -> float:
        """The difference in percent of the second ranker's mean; NaN where that is 0."""
        return 100 * self.difference / abs(self.mean_b) if self.mean_b else math.nan

    @property
    def tested(self) -> bool:
        """Whether there were enough splits."""
        return not math.isnan(self.p)

    @property
    def verdict(self) -> str:
        """The outcome of the test after adjusting over the family, one of `Verdict`."""
        if math.isnan(self.p_holm):
            return Verdict.TOO_FEW
        if self.p_holm > ALPHA:
            return Verdict.UNDECIDED
        return Verdict.BETTER if self.difference > 0 else Verdict.WORSE


def paired(a: ArrayLike, b: ArrayLike, overlap: float, fewest: int = FEWEST_SPLITS) -> Paired:
    """Compare two rankers by their values on the same splits.

    Args:
        a: the first ranker's value on each split; splits with NaN are left out.
        b: the second ranker's values on the same splits.
        overlap: rows of the evaluated set over rows of the other set; 0 gives the ordinary paired t-test.
        fewest: number of splits below which nothing is tested, at least 2.

    Examples:
        >>> found = paired([3.0, 4.0, 5.0, 6.0], [2.0, 3.0, 4.0, 4.0], overlap=1.0)
        >>> found.difference, round(found.p, 3)
        (1.25, 0.111)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    both = ~(np.isnan(first) | np.isnan(second))
    first, second = first[both], second[both]
    count = len(first)
    if count == 0:
        return Paired(0, math.nan, math.nan, math.nan)
    difference = rounded(first - second, resolution(first, second))
    found = Paired(count, float(first.mean()), float(second.mean()), float(difference.mean()))
    if count < fewest:
        return found
    if constant(difference):
        return dataclasses.replace(found, width=0.0, p=0.0 if difference.any() else 1.0)
    error = float(difference.std(ddof=1)) * math.sqrt(1 / count + overlap)
    return dataclasses.replace(
        found,
        width=float(scipy.stats.t.ppf(1 - ALPHA / 2, count - 1)) * error,
        p=float(2 * scipy.stats.t.sf(abs(found.difference) / error, count - 1)),
    )


def family(comparisons: Mapping[Key, Paired]) -> dict[Key, Paired]:
    """Adjust p values by Holm's procedure over the comparisons that were tested, and drop those without a split."""
    tested = {key: found for key, found in comparisons.items() if found.tested}
    adjusted = dict(zip(tested, holm([found.p for found in tested.values()]), strict=True))
    return {
        key: dataclasses.replace(found, p_holm=adjusted.get(key, math.nan), of=len(tested))
        for key, found in comparisons.items()
        if found.splits
    }
