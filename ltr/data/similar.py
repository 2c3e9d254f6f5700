"""Rows that are much closer to each other than rows otherwise are, such as several visits of one patient.

Rows are joined in the order of the distances of their standardised features to a tree that holds them all (single
linkage). Where they come in groups of similar rows, the lengths of its edges have a gap: those within groups are short,
those between groups long. In tables of few different values rows are equal by chance. So groups count only if some
column of fine values tells most of them apart, and varies little within them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree

from ltr.checks import doubles, pieces
from ltr.data.dataset import Features

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_GAP = 2.0  # of the shortest edge between groups to the longest within them
_STRAY = 0.02  # edges whose length is between the two, of all rows
_SHARE = 0.1  # edges within groups, of all rows
_FEWEST = 10  # groups
_LARGEST = 0.2  # group, of all rows
_DISTINCT = 0.5  # values of the column that tells groups apart, of their number
_WITHIN = 0.25  # its standard deviation within groups, of that of all rows
_GRID = 2.0  # points of the finest grid that its values lie on, of their number
_AXES = 8  # of the space in which neighbours are looked for; more features are projected at random
_NEIGHBOURS = 8  # of each row, among which edges are looked for
_ROWS = 20_000  # in which similar rows are looked for; of longer tables only equal ones


def similar_rows(features: Features) -> IntArray | None:
    """Return the number of each row's group of similar rows, (n,); None where rows do not come in such groups.

    Features are finite, (n, d). Tables of more than 20,000 different rows are searched for equal rows only.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> patients, noise = rng.normal(size=(40, 3)), 0.02 * rng.normal(size=(200, 3))
        >>> len(set(similar_rows(np.repeat(patients, 5, axis=0) + noise)))
        40
    """
    n = len(features)
    first, equal = np.unique(first_equals(features), return_inverse=True)
    if len(first) > _ROWS and n - len(first) < _SHARE * n:  # too few are equal for groups
        return None
    features = doubles(features)
    spread = features.std(axis=0)
    varies = spread > 0
    if n < 2 * _FEWEST or not varies.any():
        return None
    if len(first) > _ROWS:
        return equal if _are_groups(features, equal) else None
    scaled = (features[:, varies] - features.mean(axis=0)[varies]) / spread[varies]
    if scaled.shape[1] > _AXES:
        scaled = scaled @ np.random.default_rng(0).normal(size=(scaled.shape[1], _AXES))
    ends, lengths = _short_edges(scaled[first])
    within = n - len(first)  # edges of length 0
    # neighbours alone do not join groups of many rows to each other: those edges are longer than all that are known
    lengths = np.concatenate([np.zeros(within), lengths, np.full(n - 1 - within - len(lengths), np.inf)])
    known, stray = np.isfinite(lengths).sum() - 1, round(_STRAY * n)
    best, found, last = _GAP, None, n
    for at in range(max(within, int(_SHARE * n), 1) - 1, n - 1):
        if at > last + stray:
            break  # a wider gap further on is one between groups of groups
        beyond = at + 1 if at == known else at + stray
        if beyond > n - 2 or not lengths[beyond] > best * (short := lengths[at]):
            continue
        cut = short if short == 0 or at == known else (short * lengths[beyond]) ** 0.5
        rows, columns = ends[: np.searchsorted(lengths[within:], cut, "right")].T
        graph = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(first),) * 2)
        groups = connected_components(graph, directed=False)[1].astype(np.int64)[equal]
        if _are_groups(features, groups):
            best, found, last = (lengths[beyond] / short if short > 0 else np.inf), groups, at
    return found


def first_equals(features: Features, lists: IntArray | None = None) -> IntArray:
    """Return for each row the first one with the same features, and of the same list where there are lists, (n,)."""
    # equal rows have equal sums; different ones seldom do
    factors = np.random.default_rng(0).normal(size=features.shape[1] + (lists is not None))
    sums = np.zeros(len(features))
    for piece in pieces(len(features)):
        for column, factor in zip(features[piece].T, factors, strict=False):
            sums[piece] += column * factor
    if lists is not None:
        sums += lists * factors[-1]
    _, first, place = np.unique(sums, return_index=True, return_inverse=True)
    found = np.asarray(first[place])
    others = np.flatnonzero(found != np.arange(len(found)))
    for piece in pieces(len(others)):
        rows = others[piece]
        same = np.array_equal(features[found[rows]], features[rows])
        if not same or (lists is not None and not np.array_equal(lists[found[rows]], lists[rows])):
            keyed = doubles(features) if lists is None else np.column_stack([features, lists])
            _, first, place = np.unique(keyed, axis=0, return_index=True, return_inverse=True)
            return np.asarray(first[place.reshape(-1)])
    return found


def note_on_similar_rows(n: int, groups: int, remedy: str) -> str:
    """Return the sentence for n rows that are similar; `remedy` is where to name the column that tells groups apart."""
    return (
        f"{n} rows come in about {groups} groups of similar rows: if those of a group belong together, as visits of "
        f"one patient do, name the column that tells them apart as {remedy}, so that no group is divided"
    )


def _short_edges(points: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the edges of the shortest tree among nearest neighbours, (m, 2), and their lengths, in ascending order."""
    near = min(_NEIGHBOURS, len(points) - 1)
    if near < 1:
        return np.empty((0, 2), dtype=np.int64), np.empty(0)
    distances, others = cKDTree(points).query(points, near + 1)
    starts = np.repeat(np.arange(len(points)), near)
    graph = coo_matrix((distances[:, 1:].ravel(), (starts, others[:, 1:].ravel())), shape=(len(points),) * 2)
    tree = minimum_spanning_tree(graph.tocsr()).tocoo()
    order = np.argsort(tree.data, kind="stable")
    return np.column_stack([tree.row, tree.col])[order].astype(np.int64), tree.data[order]


def _are_groups(features: FloatArray, groups: IntArray) -> bool:
    """Return whether groups are many, none large, and some column has fine values that tell most of them apart."""
    _, firsts, sizes = np.unique(groups, return_index=True, return_counts=True)
    n = len(features)
    if len(sizes) < _FEWEST or sizes.max() > _LARGEST * n or n - len(sizes) < _SHARE * n:
        return False
    for column in features.T:
        means = np.bincount(groups, column) / sizes
        values = np.unique(column[firsts])
        if len(values) < max(2, _DISTINCT * len(sizes)) or np.std(column - means[groups]) > _WITHIN * np.std(column):
            continue
        if (values[-1] - values[0]) / np.diff(values).min() > _GRID * len(values):
            return True
    return False
