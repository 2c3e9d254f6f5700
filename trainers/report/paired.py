"""Tests of paired differences over the splits of one data set, which share rows.

Random splits of one data set overlap, so that their differences vary together and the paired t-test takes a mean for
better known than it is. The corrected resampled t-test puts the variance ``s^2 (1/J + e/o)`` in place of ``s^2 / J``:
J splits, e rows of the half that is evaluated and o of the other one, the overlap that two splits can be expected to
have over what they do not share.

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

from ltr.metrics.comparison import holm
from ltr.metrics.interval import constant, resolution, rounded

__all__ = ["ALPHA", "FEWEST_SPLITS", "Paired", "Verdict", "family", "paired"]

Key = TypeVar("Key")

ALPHA = 0.05
"""Level of all tests, and 1 less the confidence of all intervals."""
FEWEST_SPLITS = 3
"""Splits below which nothing is tested."""


class Verdict:
    """What a test comes to, as a word."""

    BETTER = "better"
    WORSE = "worse"
    UNDECIDED = "undecided"
    TOO_FEW = "too few splits"


@dataclass(frozen=True)
class Paired:
    """Two rankers on the same splits of one data set.

    Attributes:
        splits: that both have a value on.
        mean_a: mean of the first one's values.
        mean_b: mean of the second one's.
        difference: mean of the differences, the first one's values less the second one's.
        plain: half-width of the 95% interval of the difference by the paired t-test, as if splits were independent.
        corrected: the same by the corrected resampled t-test.
        p_plain: of the paired t-test, two-sided.
        p: of the corrected resampled t-test.
        p_plain_holm: `p_plain` adjusted over the family, see `family`.
        p_holm: `p` adjusted over the family.
        of: tests in the family.
    """

    splits: int
    mean_a: float
    mean_b: float
    difference: float
    plain: float = math.nan
    corrected: float = math.nan
    p_plain: float = math.nan
    p: float = math.nan
    p_plain_holm: float = math.nan
    p_holm: float = math.nan
    of: int = 0

    @property
    def percent(self) -> float:
        """The difference in percent of the second one's mean; NaN where that is 0."""
        return 100 * self.difference / abs(self.mean_b) if self.mean_b else math.nan

    @property
    def tested(self) -> bool:
        """Whether there were enough splits."""
        return not math.isnan(self.p)

    @property
    def verdict(self) -> str:
        """Of the corrected test, adjusted over the family: one of `Verdict`."""
        return self._verdict(self.p_holm)

    @property
    def plain_verdict(self) -> str:
        """Of the paired t-test, adjusted over the family."""
        return self._verdict(self.p_plain_holm)

    def _verdict(self, p: float) -> str:
        if math.isnan(p):
            return Verdict.TOO_FEW
        if p > ALPHA:
            return Verdict.UNDECIDED
        return Verdict.BETTER if self.difference > 0 else Verdict.WORSE


def paired(a: ArrayLike, b: ArrayLike, overlap: float, fewest: int = FEWEST_SPLITS) -> Paired:
    """Compare two rankers by their values on the same splits.

    Args:
        a: the first one's values, a split each, NaN where undefined; such splits are left out.
        b: the second one's, of the same splits in the same order.
        overlap: rows of the half that is evaluated over those of the other half.
        fewest: splits below which nothing is tested, at least 2.

    Examples:
        >>> found = paired([3.0, 4.0, 5.0, 6.0], [2.0, 3.0, 4.0, 4.0], overlap=1.0)
        >>> found.difference, round(found.p_plain, 3), round(found.p, 3)
        (1.25, 0.015, 0.111)
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
        p = 0.0 if difference.any() else 1.0
        return dataclasses.replace(found, plain=0.0, corrected=0.0, p_plain=p, p=p)
    freedom, deviation, mean = count - 1, float(difference.std(ddof=1)), found.difference
    quantile = float(scipy.stats.t.ppf(1 - ALPHA / 2, freedom))
    plain, corrected = deviation * math.sqrt(1 / count), deviation * math.sqrt(1 / count + overlap)
    return dataclasses.replace(
        found,
        plain=quantile * plain,
        corrected=quantile * corrected,
        p_plain=float(2 * scipy.stats.t.sf(abs(mean) / plain, freedom)),
        p=float(2 * scipy.stats.t.sf(abs(mean) / corrected, freedom)),
    )


def family(comparisons: Mapping[Key, Paired]) -> dict[Key, Paired]:
    """The comparisons with p values adjusted by Holm's procedure over those that were tested.

    Comparisons of no split are left out.
    """
    tested = {key: found for key, found in comparisons.items() if found.tested}
    plain = dict(zip(tested, holm([found.p_plain for found in tested.values()]), strict=True))
    adjusted = dict(zip(tested, holm([found.p for found in tested.values()]), strict=True))
    return {
        key: dataclasses.replace(
            found,
            p_plain_holm=plain.get(key, math.nan),
            p_holm=adjusted.get(key, math.nan),
            of=len(tested),
        )
        for key, found in comparisons.items()
        if found.splits
    }
