"""Compare two rankers on a single list by its items.

There are no lists to resample, so the items are the sample. Relevant and irrelevant items are resampled separately,
which keeps the number of positives and with it the meaning of the statistic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
import torch
from torch import Tensor

from ltr.lists import as_lists
from ltr.metrics.comparison import Interval, batch_of, check_options, resolution, rounded
from ltr.metrics.measures import Measure, parse_measure
from ltr.metrics.ranked import Ties


@dataclass(frozen=True)
class ListComparison:
    """Two rankers on one list.

    Attributes:
        measure: name of the measure.
        value_a: the first ranker's value.
        value_b: the second ranker's value.
        difference: ``value_a - value_b`` with its interval.
        p: two-sided p value of the difference.
        method: origin of interval and p value, ``"bootstrap"`` or ``"DeLong"``.
    """

    measure: str
    value_a: float
    value_b: float
    difference: Interval
    p: float
    method: str

    def __str__(self) -> str:
        return (
            f"{self.measure}: {self.value_a:.4g} against {self.value_b:.4g}, "
            f"difference {self.difference}, p = {self.p:.2g} ({self.method})"
        )


def compare_on_list(
    scores_a: Tensor,
    scores_b: Tensor,
    labels: Tensor,
    measure: str | Measure,
    *,
    ties: Ties = "resolved",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> ListComparison:
    """Compare two rankers on one list by a bootstrap over its items.

    Relevant items (label > 0) and the others are resampled separately, and both rankers are measured on the same
    resamples. The interval is that of the percentiles of their differences, and the p value is the smallest error at
    which such an interval excludes 0. Both are about the two scorers as they are, not about how they were trained.

    Args:
        scores_a: the first ranker's scores of the items, floating point, ``(items,)``.
        scores_b: the second ranker's scores of the same items.
        labels: nonnegative, same shape.
        measure: a measure or its name, such as ``"dcg@10"``.
        ties: how tied scores are treated; not ``"subrank"``, for which an item drawn twice ties with itself.
        confidence: confidence level of the interval.
        resamples: number of resamples.
        seed: seed of the resampling.

    Raises:
        ValueError: inputs that are not a single list, a measure that is undefined on it, or an option out of range.

    Source: Efron & Tibshirani, *An Introduction to the Bootstrap* (1993), chapters 13 and 15.

    Examples:
        >>> labels = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
        >>> good, poor = torch.arange(10.0).flip(0), torch.tensor([3.0, 1, 9, 2, 8, 4, 7, 0, 6, 5])
        >>> print(compare_on_list(good, poor, labels, "auc"))
        auc: 1 against 0.375, difference 0.625 [0.2083, 1], p = 0.01 (bootstrap)
    """
    check_options(confidence, resamples)
    measure = parse_measure(measure)
    if ties == "subrank":
        raise ValueError("ties must not be 'subrank': an item drawn twice would tie with itself")
    for scores in (scores_a, scores_b):
        _check_one_list(scores, labels)
    labels = labels.to(scores_a.device)
    scores = torch.stack([scores_a.detach().double(), scores_b.detach().double().to(scores_a.device)])
    values = measure(scores, labels.expand(2, -1), ties=ties).cpu().numpy()
    if np.isnan(values).any():
        raise ValueError(f"measure {measure} is undefined on this list")

    rng = np.random.default_rng(seed)
    positive = (labels > 0).cpu().numpy()
    if positive.sum() < 2:
        raise ValueError(f"labels must have at least 2 items above 0 to draw from, got {positive.sum()}")
    strata = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    rows = batch_of(len(labels))
    drawn = []
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        items = np.concatenate(
            [stratum[rng.integers(len(stratum), size=(count, len(stratum)))] for stratum in strata if len(stratum)], 1
        )
        chosen = torch.from_numpy(items).to(labels.device)
        drawn.append(measure(scores[:, chosen], labels[chosen].expand(2, -1, -1), ties=ties).cpu().numpy())
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
        method="bootstrap",
    )


def delong(scores_a: Tensor, scores_b: Tensor, labels: Tensor, *, confidence: float = 0.95) -> ListComparison:
    """DeLong's test of two AUCs on the same items.

    With V_i the share of negatives that positive i beats (a tie counts 1/2), V_k the share of positives that beat
    negative k, and D their differences between the rankers, the difference of the AUCs has the variance
    ``var(D_i) / n_pos + var(D_k) / n_neg`` and is taken to be normal.

    Args:
        scores_a: the first ranker's scores of the items, ``(items,)``.
        scores_b: the second ranker's scores of the same items.
        labels: 0 and 1, same shape, at least two of each.
        confidence: confidence level of the interval.

    Raises:
        ValueError: inputs that are not a single list, other labels, or a confidence outside 0 to 1.

    Source: DeLong, DeLong & Clarke-Pearson, *Comparing the Areas under Two or More Correlated Receiver Operating
    Characteristic Curves* (Biometrics 1988).

    Examples:
        >>> labels = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
        >>> good, poor = torch.arange(10.0).flip(0), torch.tensor([3.0, 1, 9, 2, 8, 4, 7, 0, 6, 5])
        >>> print(delong(good, poor, labels))
        auc: 1 against 0.375, difference 0.625 [0.1488, 1.101], p = 0.01 (DeLong)
    """
    check_options(confidence)
    for scores in (scores_a, scores_b):
        _check_one_list(scores, labels)
    target = labels.detach().double().cpu().numpy()
    positive = target == 1
    n_pos, n_neg = int(positive.sum()), int((target == 0).sum())
    if n_pos + n_neg < len(target) or min(n_pos, n_neg) < 2:
        raise ValueError(f"labels must be 0 and 1, at least two of each, got {n_neg} and {n_pos} of {len(target)}")
    halves = [_won(scores.detach().double().cpu().numpy(), positive) for scores in (scores_a, scores_b)]
    of_positives, of_negatives = (a - b for a, b in zip(*halves, strict=True))  # whole numbers: no rounding
    value_a, value_b = (float(won.sum() / (2 * n_pos * n_neg)) for won, _ in halves)
    difference = float(of_positives.sum() / (2 * n_pos * n_neg))
    variance = of_positives.var(ddof=1) / (2 * n_neg) ** 2 / n_pos + of_negatives.var(ddof=1) / (2 * n_pos) ** 2 / n_neg
    error = math.sqrt(variance)
    reach = float(scipy.stats.norm.ppf((1 + confidence) / 2)) * error
    far = abs(difference) / error if error else math.inf if difference else 0.0
    return ListComparison(
        measure="auc",
        value_a=value_a,
        value_b=value_b,
        difference=Interval(difference, difference - reach, difference + reach, confidence),
        p=float(2 * scipy.stats.norm.sf(far)),
        method="DeLong",
    )


def _won(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the half points that each positive wins against all negatives, and that all positives win against each."""
    above, below = np.sort(scores[positive]), np.sort(scores[~positive])

    def beaten(by: np.ndarray, others: np.ndarray) -> np.ndarray:
        return np.searchsorted(others, by, side="left") + np.searchsorted(others, by, side="right")

    return beaten(scores[positive], below), 2 * len(above) - beaten(scores[~positive], above)


def _check_one_list(scores: Tensor, labels: Tensor) -> None:
    if as_lists(scores, labels).scores.ndim != 1:
        raise ValueError(f"scores must be one list, of shape (items,), got {tuple(scores.shape)}")
