r"""The lists that the exact engine is given: tops of the base ranker's lists, with standardised features.

Each list (each query, or all rows as one) is cut at the K-th largest of its scores. Its top is every item with at least
that score: more than K items where scores tie there, the whole list where it has no more than K.

The features of the tops are centred and standardised, and columns that do not vary are left out. With queries only
items of one query are compared, so each query is centred by itself and the deviation is the pooled one *within*
queries: a feature of the query alone, which is the same for all its items, does not vary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def cut(scores: FloatArray, queries: IntArray | None, top_k: int | None) -> FloatArray:
    """Return, for each row, the score from which items of its query belong to the top, (n,); -inf where all of them do.

    Queries are numbered from 0 without gaps; None means that all rows are one list. A `top_k` of None takes whole
    lists.

    Examples:
        >>> cut(np.array([3.0, 1.0, 2.0, 9.0]), np.array([0, 0, 0, 1]), 2).tolist()
        [2.0, 2.0, 2.0, -inf]
    """
    if top_k is None or len(scores) == 0:
        return np.full(len(scores), -np.inf)
    queries = np.zeros(len(scores), dtype=np.int64) if queries is None else queries
    sizes = np.bincount(queries)
    starts = np.cumsum(sizes) - sizes
    descending = scores[np.lexsort((-scores, queries))]
    last = np.minimum(starts + top_k, len(scores)) - 1
    return np.where(sizes > top_k, descending[last], -np.inf)[queries]


@dataclass(frozen=True, eq=False)
class TopLists:
    """Standardised features of the items of some lists.

    Attributes:
        Z: features of the exact problem, (items, varying columns).
        center: mean of each raw column over the items, (d,).
        scale: divisor of each raw column, (d,).
        varying: whether each raw column varies and so is in `Z`, (d,).
    """

    Z: FloatArray
    center: FloatArray
    scale: FloatArray
    varying: NDArray[np.bool_]

    @classmethod
    def of(cls, X: FloatArray, queries: IntArray | None) -> TopLists:
        """Standardise the features X, (items, d), of items of the given queries, or of one list."""
        center = X.mean(axis=0)
        centered = X - center if queries is None else X - _means(X, queries)
        deviation = _deviation(centered)
        varying = deviation > 1e-12 * np.max(np.abs(X), axis=0)  # more than the rounding of a constant column
        scale = np.where(varying, deviation, 1.0)
        return cls((centered / scale)[:, varying], center, scale, varying)

    def standardised(self, weights: FloatArray) -> FloatArray:
        """Return weights for `Z` that order as these weights for raw features, the largest of size 1."""
        own = weights[self.varying] * self.scale[self.varying]
        largest = float(np.max(np.abs(own), initial=0.0))
        return own / largest if largest > 0 else own

    def raw(self, weights: FloatArray) -> FloatArray:
        """Return weights for raw features, (d,), that order as these weights for `Z`."""
        own = np.zeros(len(self.scale))
        own[self.varying] = weights / self.scale[self.varying]
        return own


def _means(X: FloatArray, queries: IntArray) -> FloatArray:
    """Return, for each row, the mean of its query's rows, exact where these are equal."""
    _, group = np.unique(queries, return_inverse=True)
    base = X[np.unique(group, return_index=True)[1]]
    rest = np.zeros_like(base)
    np.add.at(rest, group, X - base[group])
    return (base + rest / np.bincount(group)[:, None])[group]


def _deviation(centered: FloatArray) -> FloatArray:
    """Return the standard deviation of centred columns in any unit: squares of 1e-200 would be 0."""
    reach = np.max(np.abs(centered), axis=0)
    unit = np.where(reach > 0, reach, 1.0)
    return np.asarray(np.sqrt(np.mean((centered / unit) ** 2, axis=0)) * unit)
