"""Generated data sets, which need no files: two of the paper, a stand-in for a third, and lists by query.

Source: Rudin & Wang, *Direct Learning to Rank and Rerank* (2018), sections 2.4 (theorem 1) and 5 (Gaussians).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ltr.data.dataset import Dataset

FloatArray = NDArray[np.float64]


def gaussians(seed: int = 0, *, n: int = 1250) -> Dataset:
    """Return two large clumps that a linear ranker follows, and two small ones that decide the top of the list.

    Of a population of 6210 points `n` are drawn without replacement.
    """
    clumps = (  # points, label, mean, standard deviation in each entry
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
    """Return one feature whose two possible rankings win under different statistics and losses.

    There are 10 negatives near 3, 3000 positives near 1, 3000 negatives near 0 and 80 positives near -10, each with
    standard deviation 0.05. Ranking by x wins AUC, partial AUC@100, DCG and MRR; ranking by -x wins DCG@100
    and partial AUC@10.
    """
    clumps = ((10, 0, (3.0,), 0.05), (3000, 1, (1.0,), 0.05), (3000, 0, (0.0,), 0.05), (80, 1, (-10.0,), 0.05))
    return Dataset("theorem1", *_draw(np.random.default_rng(seed), clumps))


def roc_standin(seed: int = 0) -> Dataset:
    """Return a stand-in for the paper's ROC Flexibility data, which is no longer public; values are not comparable.

    It has ties, and directions that are good by one rank statistic and bad by another; features are whole numbers.
    """
    clumps = (
        (190, 1, (1.0, 0.0, 0.0, 0.0, 0.0), 0.8),  # the bulk: AUC follows the first feature
        (205, 0, (0.0, 0.0, 0.0, 0.0, 0.0), 0.8),  # its negatives
        (25, 0, (3.0, 0.5, 0.0, 0.0, 0.0), 0.4),  # spoil the top of that direction
        (40, 1, (-0.5, 2.5, 0.0, 1.0, 0.0), 0.4),  # a clean top along the second feature
        (20, 0, (-1.0, 1.5, 1.0, -1.0, 0.0), 0.4),  # nearly the same, except in the fourth feature
        (20, 1, (0.5, -1.0, 2.5, 0.0, 1.0), 0.4),  # another clean top
    )
    X, y = _draw(np.random.default_rng(seed), clumps)
    return Dataset("roc_standin", np.round(X), y)


def grouped(seed: int = 0, *, queries: int = 60) -> Dataset:
    """Return queries of 5 to 25 items with 5 features, whose labels 0 to 4 follow a linear score, best at the top.

    Item i of query q has the features x_i + m_q, where m_q, the level of the query, says nothing about labels. Labels
    are the grades of ``w·x_i + noise`` (shares of 50, 25, 15, 7 and 3 percent); the noise is three times as large where
    ``w·x_i`` is below 0. Raises ValueError for fewer than 2 queries.
    """
    if queries < 2:
        raise ValueError(f"queries must be at least 2, got {queries!r}")
    d = 5
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), rng.integers(5, 26, queries))
    own, level = rng.normal(size=(len(qid), d)), 2 * rng.normal(size=(queries, d))
    score = own @ np.linspace(1, 0.2, d)
    noisy = score + rng.normal(size=len(qid)) * np.where(score > 0, 0.5, 1.5)
    y = np.searchsorted(np.quantile(noisy, [0.5, 0.75, 0.9, 0.97]), noisy)
    return Dataset("grouped", own + level[qid], y, qid=qid)


def _draw(
    rng: np.random.Generator, clumps: tuple[tuple[int, int, tuple[float, ...], float], ...]
) -> tuple[FloatArray, NDArray[np.int64]]:
    X = np.concatenate([rng.normal(mean, deviation, (size, len(mean))) for size, _, mean, deviation in clumps])
    y = np.concatenate([np.full(size, label, dtype=np.int64) for size, label, *_ in clumps])
    return X, y
