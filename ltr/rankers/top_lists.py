r"""The tops of training lists, as the exact stage sees them.

Each list (each query, or all rows as one) is cut at the K-th largest of its scores: what scores at least that much is
its top, more than K items where scores tie there, the whole list where it has no more than K.

The features of the tops are centred and standardised, columns that do not vary are left out. With queries only items
of one query are compared, so each query is centred by itself and the deviation is the pooled one *within* queries: a
feature of the query alone, which is the same for all its items, does not vary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["TopLists", "cut"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def cut(scores: FloatArray, queries: IntArray | None, top_k: int | None) -> FloatArray:
    """The score from which the items of each row's query are at its top, (n,); -inf where all of them are.

    Args:
        scores: larger is higher in the list, (n,).
        queries: number of each row's query, from 0, every number in use; None is one list.
        top_k: length of a top, None for the whole list.

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
    """Standardised features of the items at the tops.

    Attributes:
        Z: features of the exact problem, (items, varying columns).
        center: mean of each raw column over the items, (d,).
        scale: what each raw column was divided by, (d,).
        varying: which raw columns `Z` has, (d,).
    """

    Z: FloatArray
    center: FloatArray
    scale: FloatArray
    varying: NDArray[np.bool_]

    @classmethod
    def of(cls, X: FloatArray, queries: IntArray | None) -> TopLists:
        """The lists of these items: features (items, d), numbers of their queries (items,) or None for one list."""
        center = X.mean(axis=0)
        centered = X - center if queries is None else X - _means(X, queries)
        deviation = _deviation(centered)
        varying = deviation > 1e-12 * np.max(np.abs(X), axis=0)  # more than the rounding of a constant column
        scale = np.where(varying, deviation, 1.0)
        return cls((centered / scale)[:, varying], center, scale, varying)

    def standardised(self, weights: FloatArray) -> FloatArray:
        """Weights of `Z` that order as these weights on raw features, the largest of size 1."""
        own = weights[self.varying] * self.scale[self.varying]
        largest = float(np.max(np.abs(own), initial=0.0))
        return own / largest if largest > 0 else own

    def raw(self, weights: FloatArray) -> FloatArray:
        """Weights on raw features, (d,), that order as these weights of `Z`."""
        own = np.zeros(len(self.scale))
        own[self.varying] = weights / self.scale[self.varying]
        return own


def _means(X: FloatArray, queries: IntArray) -> FloatArray:
    """For each row the mean of its query's rows, exact where these are equal."""
    _, group = np.unique(queries, return_inverse=True)
    base = X[np.unique(group, return_index=True)[1]]
    rest = np.zeros_like(base)
    np.add.at(rest, group, X - base[group])
    return (base + rest / np.bincount(group)[:, None])[group]


def _deviation(centered: FloatArray) -> FloatArray:
    """The standard deviation of centred columns, whatever their units: squares of 1e-200 would be 0."""
    reach = np.max(np.abs(centered), axis=0)
    unit = np.where(reach > 0, reach, 1.0)
    return np.asarray(np.sqrt(np.mean((centered / unit) ** 2, axis=0)) * unit)
