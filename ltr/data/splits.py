"""The protocol of the experiments: a data set is halved at random, once a seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr.checks import is_whole
from ltr.data.dataset import DataError

__all__ = ["half_split"]

IntArray = NDArray[np.int64]


def half_split(n: int, seed: int) -> tuple[IntArray, IntArray]:
    """Rows of the training half and of the test half.

    The first n // 2 entries of ``numpy.random.default_rng(seed).permutation(n)`` train, the others test; an odd
    row goes to the test half. The split depends on n and seed alone, so that equally long data sets share it.
    Run r of an experiment uses seed r, r = 0, 1, ...

    Args:
        n: number of rows, at least 2.
        seed: a nonnegative integer.

    Returns:
        int64 index arrays of lengths n // 2 and n - n // 2, in the order of the permutation.

    Raises:
        DataError: n below 2, a seed that is not a nonnegative integer.

    Examples:
        >>> train, test = half_split(5, seed=0)
        >>> len(train), len(test), sorted([*train.tolist(), *test.tolist()])
        (2, 3, [0, 1, 2, 3, 4])
    """
    if not is_whole(n) or n < 2:
        raise DataError(f"n must be an integer >= 2 to be split, got {n!r}")
    if not is_whole(seed) or seed < 0:
        raise DataError(f"seed must be an integer >= 0, got {seed!r}")
    order = np.random.default_rng(seed).permutation(n)
    return order[: n // 2], order[n // 2 :]
