"""Compare rankers by the values of a measure, one per list.

The lists are the sample: they are resampled, paired and counted. Values are given as in `ltr.metrics.interval`; a list
counts when both rankers have a value for it. Every function is deterministic: random draws depend on `seed` alone.

For two rankers on one single list, see `ltr.metrics.one_list`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from torch import Tensor

from ltr.metrics.interval import (
    BootstrapMethod,
    Interval,
    batch_of,
    bootstrap,
    check_options,
    constant,
    enough,
    resolution,
    rounded,
    values_of_lists,
)


@dataclass(frozen=True)
class Comparison:
    """Two rankers on the same lists.

    Attributes:
        mean_a: mean of the first ranker's values.
        mean_b: mean of the second ranker's values.
        difference: ``mean_a - mean_b`` with its bootstrap interval.
        p_permutation: p value of the paired randomisation test: the share of cases with a difference at least as far
            from 0 when a coin decides, for each list, which value is whose. It assumes nothing else: quote this one.
        p_t: p value of the paired t-test, which assumes normal differences, or many lists.
        p_wilcoxon: p value of the signed-rank test, which assumes symmetric differences and uses their ranks.
        wins: lists on which the first ranker's value is the larger one.
        ties: lists on which the values are equal.
        losses: lists on which the second ranker's value is the larger one.
        effect_size: mean of the differences over their standard deviation (Cohen's d of pairs); 0 without a difference,
            infinite when all differences are equal.
        pairs: number of pairs of rankers for which Holm's procedure has adjusted the p values; 1 without adjustment.
    """

    mean_a: float
    mean_b: float
    difference: Interval
    p_permutation: float
    p_t: float
    p_wilcoxon: float
    wins: int
    ties: int
    losses: int
    effect_size: float
    pairs: int = 1

    def __str__(self) -> str:
        holm = "" if self.pairs == 1 else f", Holm over {self.pairs} pairs"
        return (
            f"{self.mean_a:.4g} against {self.mean_b:.4g}: difference {self.difference}, "
            f"p = {self.p_permutation:.2g} (permutation{holm}), "
            f"{self.wins} wins, {self.ties} ties, {self.losses} losses, effect size {self.effect_size:.2g}"
        )


def compare(
    a: Tensor | ArrayLike,
    b: Tensor | ArrayLike,
    *,
    confidence: float = 0.95,
    method: BootstrapMethod = "bca",
    resamples: int = 9999,
    seed: int = 0,
) -> Comparison:
    """Compare two rankers by their values on the same lists.

    The randomisation test flips the sign of each difference; with up to 13 differing lists (2^n <= `resamples`) it
    tries all combinations, and its p value is exact. When no list differs, every p value is 1.

    Args:
        a: the first ranker's values, one per list, NaN where undefined.
        b: the second ranker's values for the same lists in the same order.
        confidence: confidence level of the interval of the difference.
        method: method of the bootstrap, as in `mean_interval`.
        resamples: number of resamples of the bootstrap and of the randomisation test.
        seed: seed of both.

    Raises:
        ValueError: values of different shapes, fewer than 2 lists on which both are defined, an infinite value, or an
            option outside its range.

    Source: Smucker, Allan & Carterette, *A Comparison of Statistical Significance Tests for Information Retrieval
    Evaluation* (CIKM 2007).

    Examples:
        >>> first, second = [0.9, 0.8, 0.7, 0.9, 0.6, 0.5], [0.7, 0.7, 0.75, 0.6, 0.5, 0.5]
        >>> print(compare(first, second))
        0.7333 against 0.625: difference 0.1083 [0.025, 0.2167], p = 0.12 (permutation), 4 wins, 1 ties, 1 losses, ...
    """
    check_options(confidence, resamples, method)
    first, second = values_of_lists("a", a), values_of_lists("b", b)
    if first.shape != second.shape:
        raise ValueError(f"a and b must hold values of the same lists, got {first.size} and {second.size}")
    both = ~(np.isnan(first) | np.isnan(second))
    first, second = enough(first[both]), second[both]
    unit = resolution(first, second)
    difference = rounded(first - second, unit)
    moved = difference[difference != 0]
    return Comparison(
        mean_a=float(first.mean()),
        mean_b=float(second.mean()),
        difference=bootstrap(difference, confidence, method, resamples, seed),
        p_permutation=_permutation_p(moved, unit, resamples, seed),
        p_t=_t_test_p(difference),
        p_wilcoxon=float(scipy.stats.wilcoxon(moved).pvalue) if moved.size else 1.0,
        wins=int((moved > 0).sum()),
        ties=difference.size - moved.size,
        losses=int((moved < 0).sum()),
        effect_size=_effect_size(difference),
    )


def compare_all(
    values: Mapping[str, Tensor | ArrayLike],
    *,
    confidence: float = 0.95,
    method: BootstrapMethod = "bca",
    resamples: int = 9999,
    seed: int = 0,
) -> dict[tuple[str, str], Comparison]:
    """Compare all pairs of several rankers; `holm` adjusts the p values of each test for the number of pairs.

    Intervals are not adjusted.

    Args:
        values: the values of each ranker on the same lists.
        confidence: as in `compare`, and so are the other options.
        method: method of the bootstrap.
        resamples: number of resamples of the bootstrap and of the randomisation test.
        seed: seed of both.

    Returns:
        The comparison of each pair of names, in the order of `values`.

    Raises:
        ValueError: fewer than 2 rankers, and as `compare`.

    Examples:
        >>> rankers = {"a": [0.9, 0.8, 0.7, 0.9], "b": [0.7, 0.6, 0.75, 0.6], "c": [0.1, 0.3, 0.2, 0.1]}
        >>> {pair: round(result.p_t, 3) for pair, result in compare_all(rankers).items()}
        {('a', 'b'): 0.118, ('a', 'c'): 0.015, ('b', 'c'): 0.015}
    """
    if len(values) < 2:
        raise ValueError(f"values must hold at least 2 rankers, got {len(values)}")
    options: dict[str, Any] = {"confidence": confidence, "method": method, "resamples": resamples, "seed": seed}
    pairs = list(itertools.combinations(values, 2))
    results = [compare(values[a], values[b], **options) for a, b in pairs]
    tests = ("p_permutation", "p_t", "p_wilcoxon")
    adjusted = zip(*(holm([getattr(result, test) for result in results]) for test in tests), strict=True)
    return {
        pair: dataclasses.replace(result, pairs=len(pairs), **dict(zip(tests, p_values, strict=True)))
        for pair, result, p_values in zip(pairs, results, adjusted, strict=True)
    }


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for their number: rejecting those below alpha makes any error with probability <= alpha.

    The j-th smallest of m (j = 0, 1, ...) becomes the largest ``min(1, (m - i) p_(i))`` over i <= j.

    Raises:
        ValueError: a p value outside 0 to 1.

    Source: Holm, *A Simple Sequentially Rejective Multiple Test Procedure* (1979).

    Examples:
        >>> holm([0.02, 0.5, 0.01])  # 0.01 * 3, 0.02 * 2, 0.5 * 1
        [0.04, 0.5, 0.03]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise ValueError(f"p_values must lie between 0 and 1, got {list(p_values)}")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def _permutation_p(moved: np.ndarray, unit: float, resamples: int, seed: int) -> float:
    """Return the share of sign flips, all or random ones, after which the sum is at least as far from 0.

    Lists that do not differ are left out, as flipping their sign changes nothing. `scipy.stats.permutation_test` does
    the same ten times slower.
    """
    total = moved.sum()
    reached = abs(total) - moved.size * unit  # equal sums may be so far apart once the differences are rounded
    exact = 2**moved.size <= resamples
    rng = np.random.default_rng(seed)
    count, far = 2**moved.size if exact else resamples, 0 if exact else 1
    for start in range(0, count, batch_of(moved.size)):
        rows = min(batch_of(moved.size), count - start)
        if exact:
            kept = np.arange(start, start + rows)[:, None] >> np.arange(moved.size) & 1
        else:
            kept = rng.integers(0, 2, size=(rows, moved.size), dtype=np.int8)
        far += int((np.abs(2.0 * (kept @ moved) - total) >= reached).sum())
    return far / (count if exact else count + 1)


def _t_test_p(difference: np.ndarray) -> float:
    if constant(difference):
        return 0.0 if difference.any() else 1.0
    return float(scipy.stats.ttest_1samp(difference, 0.0).pvalue)


def _effect_size(difference: np.ndarray) -> float:
    mean = float(difference.mean())
    if constant(difference):
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / float(difference.std(ddof=1))
