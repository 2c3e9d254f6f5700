"""The mean of a measure over lists with its confidence interval, and rankers compared by one value per list.

The lists are the sample. Values are tensors, arrays or sequences of any shape, one value per list; a list on which the
measure is undefined (NaN) for one ranker is left out for both. They are rounded to 12 digits of the largest one, so
that 0.6 - 0.4 ties with 0.4 - 0.2. Random draws depend on `seed` alone.

With a single list its items are the sample (`compare_on_list`). Relevant and irrelevant items are resampled separately,
which keeps the number of positives and with it the meaning of the statistic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ltr.checks import check_whole
from ltr.lists import as_lists
from ltr.metrics.measures import Measure, parse_measure

FloatArray = NDArray[np.float64]

DIGITS = 40
"""Number of binary digits of the largest value that count; smaller ones are rounding errors."""
_FEWEST = 10  # resamples; fewer do not determine the ends of an interval
_BATCH = 2**20  # values that are resampled at once, which bounds the memory


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval."""

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def mean_interval(
    values: Tensor | ArrayLike, *, confidence: float = 0.95, resamples: int = 9999, seed: int = 0
) -> Interval:
    """Bootstrap confidence interval of the mean over lists (bias-corrected and accelerated).

    Given are one value per list, NaN where undefined, at least 2 defined ones; the confidence level, between 0 and 1;
    and how many times the lists are resampled.

    Source: Efron & Tibshirani, *An Introduction to the Bootstrap* (1993), chapters 13 and 14.

    Examples:
        >>> print(mean_interval([0.5, 0.75, 1.0, 0.25, 0.5, 0.75, float("nan")]))
        0.625 [0.4167, 0.8333]
    """
    _check_options(confidence, resamples)
    [defined] = _defined(values=values)
    return _bootstrap(rounded(defined, resolution(defined)), confidence, resamples, seed)


@dataclass(frozen=True)
class Comparison:
    """Two rankers on the same lists.

    Attributes:
        mean_a, mean_b: means of the rankers' values.
        difference: ``mean_a - mean_b`` with its bootstrap interval.
        p: p value of the paired randomisation test: how often the difference is at least as far from 0 when a coin
            decides, for each list, which value belongs to which ranker. It assumes nothing else.
        wins, ties, losses: numbers of lists on which the first ranker's value is larger, equal, and smaller.
    """

    mean_a: float
    mean_b: float
    difference: Interval
    p: float
    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return (
            f"{self.mean_a:.4g} against {self.mean_b:.4g}: difference {self.difference}, "
            f"p = {self.p:.2g}, {self.wins} wins, {self.ties} ties, {self.losses} losses"
        )


def compare(
    a: Tensor | ArrayLike, b: Tensor | ArrayLike, *, confidence: float = 0.95, resamples: int = 9999, seed: int = 0
) -> Comparison:
    """Compare two rankers by their values on the same lists; the options are those of `mean_interval`.

    The randomisation test flips the sign of each difference; with up to 13 differing lists (2^n <= `resamples`) it
    tries all combinations, and its p value is exact. When no list differs, every p value is 1.

    Args:
        a, b: the values of the two rankers, one per list, in the same order, NaN where undefined; both must be defined
            on at least 2 lists.
        confidence, resamples, seed: as for `mean_interval`, of bootstrap and randomisation test.

    Source: Smucker, Allan & Carterette, *A Comparison of Statistical Significance Tests for Information Retrieval
    Evaluation* (CIKM 2007).

    Examples:
        >>> print(compare([0.9, 0.8, 0.7, 0.9, 0.6, 0.5], [0.7, 0.7, 0.75, 0.6, 0.5, 0.5]))
        0.7333 against 0.625: difference 0.1083 [0.025, 0.2167], p = 0.12, 4 wins, 1 ties, 1 losses
    """
    _check_options(confidence, resamples)
    first, second = _defined(a=a, b=b)
    unit = resolution(first, second)
    difference = rounded(first - second, unit)
    moved = difference[difference != 0]
    return Comparison(
        mean_a=float(first.mean()),
        mean_b=float(second.mean()),
        difference=_bootstrap(difference, confidence, resamples, seed),
        p=_permutation_p(moved, unit, resamples, seed),
        wins=int((moved > 0).sum()),
        ties=difference.size - moved.size,
        losses=int((moved < 0).sum()),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for their number: rejecting those below alpha makes any error with probability <= alpha.

    The j-th smallest of m (j = 0, 1, ...) becomes the largest ``min(1, (m - i) p_(i))`` over i <= j.

    Source: Holm, *A Simple Sequentially Rejective Multiple Test Procedure* (1979).

    Examples:
        >>> holm([0.02, 0.5, 0.01])  # 0.01 * 3, 0.02 * 2, 0.5 * 1
        [0.04, 0.5, 0.03]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise ValueError(f"p_values must lie between 0 and 1, got {list(p_values)}")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted.tolist()


@dataclass(frozen=True)
class ListComparison:
    """The values of two rankers on one list, their difference with its interval, and its two-sided p value."""

    measure: str
    value_a: float
    value_b: float
    difference: Interval
    p: float

    def __str__(self) -> str:
        values = f"{self.value_a:.4g} against {self.value_b:.4g}"
        return f"{self.measure}: {values}, difference {self.difference}, p = {self.p:.2g}"


def compare_on_list(
    scores_a: Tensor,
    scores_b: Tensor,
    labels: Tensor,
    measure: str | Measure,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> ListComparison:
    """Compare two rankers on one list by a bootstrap over its items; the options are those of `mean_interval`.

    Relevant items (label > 0) and the others are resampled separately. The interval is that of the percentiles of the
    differences, and the p value is the smallest error at which such an interval excludes 0. Both describe the two
    scorers as they are, not how they were trained.

    Args:
        scores_a, scores_b: the scores of the items by the two rankers, floating point, ``(items,)``.
        labels: nonnegative, same shape.
        measure: a measure or its name, such as ``"dcg@10"``.

    Source: Efron & Tibshirani, *An Introduction to the Bootstrap* (1993), chapters 13 and 15.

    Examples:
        >>> labels = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
        >>> good, poor = torch.arange(10.0).flip(0), torch.tensor([3.0, 1, 9, 2, 8, 4, 7, 0, 6, 5])
        >>> print(compare_on_list(good, poor, labels, "auc"))
        auc: 1 against 0.375, difference 0.625 [0.2083, 1], p = 0.01
    """
    _check_options(confidence, resamples)
    measure = parse_measure(measure)
    for scores in (scores_a, scores_b):
        if as_lists(scores, labels).scores.ndim != 1:
            raise ValueError(f"scores must be one list, of shape (items,), got {tuple(scores.shape)}")
    labels, scores = labels.cpu(), torch.stack([one.detach().cpu().double() for one in (scores_a, scores_b)])
    values = measure(scores, labels.expand(2, -1)).numpy()
    if np.isnan(values).any():
        raise ValueError(f"measure {measure} is undefined on this list")

    rng = np.random.default_rng(seed)
    positive = (labels > 0).numpy()
    if positive.sum() < 2:
        raise ValueError(f"labels must have at least 2 items above 0 to draw from, got {positive.sum()}")
    strata = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    drawn = []
    for count in _batches(resamples, len(labels)):
        items = np.concatenate(
            [stratum[rng.integers(len(stratum), size=(count, len(stratum)))] for stratum in strata if len(stratum)], 1
        )
        chosen = torch.from_numpy(items)
        drawn.append(measure(scores[:, chosen], labels[chosen].expand(2, -1, -1)).numpy())
    a, b = np.concatenate(drawn, axis=1)
    differences = rounded(a - b, resolution(a, b))
    low, high = np.quantile(differences, [(1 - confidence) / 2, (1 + confidence) / 2])
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    return ListComparison(
        measure=str(measure),
        value_a=float(values[0]),
        value_b=float(values[1]),
        difference=Interval(float(values[0] - values[1]), float(low), float(high), confidence),
        p=min(1.0, 2 * (1 + int(beyond)) / (1 + resamples)),
    )


def _bootstrap(values: FloatArray, confidence: float, resamples: int, seed: int) -> Interval:
    """Return the mean of rounded values and its interval, which is a point when all are equal."""
    from scipy import stats

    mean = float(values.mean())
    if constant(values):
        return Interval(mean, mean, mean, confidence)
    found = stats.bootstrap(
        (values,),
        np.mean,
        vectorized=True,
        batch=next(_batches(resamples, values.size)),
        n_resamples=resamples,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high), confidence)


def _defined(**values: Tensor | ArrayLike) -> list[FloatArray]:
    """Return the values of rankers on the lists on which all are defined, of which there must be two."""
    found = []
    for name, own in values.items():
        flat = np.asarray(own.detach().cpu() if isinstance(own, Tensor) else own, dtype=np.float64).reshape(-1)
        if bool(np.isinf(flat).any()):
            raise ValueError(f"{name} must be finite or NaN, got {flat[np.isinf(flat)][0]}")
        found.append(flat)
    if len({flat.size for flat in found}) > 1:
        sizes = " and ".join(str(flat.size) for flat in found)
        raise ValueError(f"{' and '.join(values)} must hold values of the same lists, got {sizes}")
    known = ~np.isnan(found).any(axis=0)
    if known.sum() < 2:
        raise ValueError(f"a comparison takes at least 2 lists with defined values, got {known.sum()}")
    return [flat[known] for flat in found]


def constant(values: FloatArray) -> bool:
    """Return whether rounded values are all equal."""
    return bool((values == values[0]).all())


def resolution(*values: FloatArray) -> float:
    """Return the unit to which differences of these values are rounded."""
    largest = max(float(np.abs(array).max()) for array in values)
    return math.ldexp(1.0, math.frexp(largest)[1] - DIGITS)


def rounded(values: FloatArray, unit: float) -> FloatArray:
    """Return the nearest multiples of `unit`."""
    return np.asarray(np.rint(values / unit) * unit)


def _check_options(confidence: float, resamples: int) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    check_whole("resamples", resamples, _FEWEST)


def _batches(resamples: int, size: int) -> Iterator[int]:
    """Yield how many resamples of `size` numbers to draw at once, until all are drawn."""
    most = max(1, _BATCH // max(size, 1))
    while resamples > 0:
        yield min(most, resamples)
        resamples -= most


def _permutation_p(moved: FloatArray, unit: float, resamples: int, seed: int) -> float:
    """Return the share of sign flips, all or random ones, after which the sum is at least as far from 0.

    Lists that do not differ are left out, as flipping their sign changes nothing. `scipy.stats.permutation_test` does
    the same ten times slower.
    """
    total = moved.sum()
    reached = abs(total) - moved.size * unit  # once the differences are rounded, equal sums may differ by this much
    exact = 2**moved.size <= resamples
    rng, count = np.random.default_rng(seed), 2**moved.size if exact else resamples
    far, start = 0, 0
    for rows in _batches(count, moved.size):
        if exact:
            kept = np.arange(start, start + rows)[:, None] >> np.arange(moved.size) & 1
        else:
            kept = rng.integers(0, 2, size=(rows, moved.size), dtype=np.int8)
        far += int((np.abs(2.0 * (kept @ moved) - total) >= reached).sum())
        start += rows
    return far / count if exact else (far + 1) / (count + 1)
