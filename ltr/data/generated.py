"""Data sets of the paper that are generated: they need no files.

Source: Rudin & Wang, *Direct Learning to Rank and Rerank* (2018), sections 2.4 (theorem 1) and 5 (Gaussians).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ltr.data.dataset import Dataset

__all__ = ["gaussians", "theorem1"]

FloatArray = NDArray[np.float64]


def gaussians(seed: int = 0, *, n: int = 1250) -> Dataset:
    """Two large clumps that a linear ranker follows, and two small ones that decide the top of the list.

    A population of 6210 points is drawn, and `n` of them without replacement:

    ======  =====  ========  =======================
    points  label  mean      standard deviation
    ======  =====  ========  =======================
    3000    1      (0, 1)    sqrt(0.5) in each entry
    3000    0      (0, 0)    sqrt(0.5) in each entry
    10      0      (10, 1)   0.05
    200     1      (0, -3)   0.05
    ======  =====  ========  =======================

    The number of positives therefore varies with the seed, about 644 of 1250.

    Args:
        seed: of the population and of the sample.
        n: points to keep, 2 to 6210.

    Raises:
        ValueError: n outside its range.

    Examples:
        >>> data = gaussians(seed=0)
        >>> data.name, data.n, data.d
        ('gaussians', 1250, 2)
    """
    clumps = (
        (3000, 1, (0.0, 1.0), math.sqrt(0.5)),
        (3000, 0, (0.0, 0.0), math.sqrt(0.5)),
        (10, 0, (10.0, 1.0), 0.05),
        (200, 1, (0.0, -3.0), 0.05),
    )
    population = sum(size for size, *_ in clumps)
    if not 2 <= n <= population:
        raise ValueError(f"n must be between 2 and {population}, got {n!r}")
    rng = np.random.default_rng(seed)
    X, y = _draw(rng, clumps)
    kept = rng.choice(population, size=n, replace=False)
    return Dataset("gaussians", X[kept], y[kept])


def theorem1(seed: int = 0) -> Dataset:
    """One feature for which the two possible rankings win under different statistics and losses.

    10 negatives near 3, 3000 positives near 1, 3000 negatives near 0 and 80 positives near -10, each with
    standard deviation 0.05. Ranking by x wins AUC, partial AUC@100, DCG and MRR; ranking by -x wins DCG@100
    and partial AUC@10.

    Examples:
        >>> data = theorem1()
        >>> data.n, data.d, data.n_pos
        (6090, 1, 3080)
    """
    clumps = ((10, 0, (3.0,), 0.05), (3000, 1, (1.0,), 0.05), (3000, 0, (0.0,), 0.05), (80, 1, (-10.0,), 0.05))
    return Dataset("theorem1", *_draw(np.random.default_rng(seed), clumps))


def _draw(
    rng: np.random.Generator, clumps: tuple[tuple[int, int, tuple[float, ...], float], ...]
) -> tuple[FloatArray, NDArray[np.int64]]:
    X = np.concatenate([rng.normal(mean, deviation, (size, len(mean))) for size, _, mean, deviation in clumps])
    y = np.concatenate([np.full(size, label, dtype=np.int64) for size, label, *_ in clumps])
    return X, y
