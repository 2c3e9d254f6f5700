r"""Conflicting pairs: candidates for two pairs of which at most one can be won, often before either is decided.

The pairs with columns e and e' are both won at x only where ``x·f >= 0`` with ``f = e / |e| + e' / |e'|``, |·| the sum
of magnitudes without the margin. So where ``max x·f < 0`` over a box, one of them is lost on all of it: they are in
*conflict* there. If e' points about the opposite way to e, f is short, and that happens on large boxes, on which each
of the two may be won or lost. So the candidates are each pair and its nearest neighbours of the opposite direction,
whatever positives they belong to.

Two observations that are compared both ways cannot both stand above the other, however small the margin is: their pairs
are in conflict everywhere.

**Rounding.** f is held in single precision, and so is ``max x·f``. Each of the two products of a coordinate and their
sum err by at most ``2^-24`` of ``|x_j f_j|`` a few times over; `apart` is below 0 by twice what that can come to, and
by the rounding error of e.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ConflictingPairs", "conflicting_pairs"]

FloatArray = NDArray[np.float64]

_NEAREST = 4  # partners of a pair
_APART = 1.5  # from this length of f on, of at most 2, a conflict would be luck
_WIDE, _FEW, _MANY = 12, 2_000, 6_000  # features from which only few pairs get partners; pairs from which none do
_ALWAYS = 1e-30  # above max x·f, which is -2 margin and may have underflowed to 0
_ROUGHLY = 0.5  # relative error of distances: the nearest neighbours but a few


class ConflictingPairs(NamedTuple):
    """Candidates for conflicts, each of two pairs.

    Attributes:
        columns: f of each candidate in single precision, (d + 1, candidates).
        one, other: positions of its two pairs, (candidates,).
        apart: single-precision number below which the computed ``max x·f`` proves a conflict, (candidates,).
    """

    columns: NDArray[np.float32]
    one: NDArray[np.int32]
    other: NDArray[np.int32]
    apart: NDArray[np.float32]

    @classmethod
    def empty(cls, columns: int, conflicts: int) -> ConflictingPairs:
        """Return room for so many candidates."""
        return cls(
            np.zeros((columns, conflicts), np.float32),
            np.zeros(conflicts, np.int32),
            np.zeros(conflicts, np.int32),
            np.zeros(conflicts, np.float32),
        )


def conflicting_pairs(
    columns: FloatArray, slack: FloatArray, reach: float, above: NDArray[np.int32], below: NDArray[np.int32]
) -> ConflictingPairs:
    """Return the candidates among pairs with the given columns.

    Args:
        columns: of the pairs, the margin's coordinate last, (d + 1, pairs).
        slack: error of each pair's products, (pairs,).
        reach: no coordinate of a box is larger.
        above: upper observation of each pair, (pairs,).
        below: lower observation, (pairs,).

    Examples:
        >>> columns, ends = np.array([[1.0, -2.0, 0.5], [0.0, 0.1, 1.0], [0.0, 0.0, 0.0]]), np.arange(3, dtype=np.int32)
        >>> conflicting pairs = couples_of(columns, np.zeros(3), 1.0, ends, ends + 3)
        >>> conflicting pairs.one, conflicting pairs.other
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32))
    """
    d, pairs = columns.shape[0] - 1, columns.shape[1]
    if pairs < 2 or pairs > _MANY or (d > _WIDE and pairs > _FEW):
        return ConflictingPairs.empty(d + 1, 0)
    # a pair with a larger margin than that is lost anyway
    norm = np.maximum(np.abs(columns[:d]).sum(axis=0), np.abs(columns[d]))
    units = columns / norm
    one, other = _opposites(units[:d].T)
    f = units[:, one] + units[:, other]
    size = reach * np.abs(f).sum(axis=0)
    error = (2 * d + 10) * 2.0**-23 * size + (slack / norm)[one] + (slack / norm)[other] + 2.0**-60
    both_ways = (above[one] == below[other]) & (below[one] == above[other])
    return ConflictingPairs(
        np.ascontiguousarray(f, dtype=np.float32),
        one,
        other,
        # away from 0 by more than the rounding to single precision
        np.where(both_ways, _ALWAYS, -1.001 * error).astype(np.float32),
    )


def _opposites(directions: FloatArray) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return each direction with those nearest to its negative, every two once, the nearest first."""
    from scipy.spatial import cKDTree

    pairs = len(directions)
    nearest = min(_NEAREST, pairs)
    distance, index = cKDTree(directions).query(-directions, k=nearest, p=1, eps=_ROUGHLY)
    distance, partner = distance.reshape(-1), index.reshape(-1)
    pair = np.repeat(np.arange(pairs), nearest)
    one, other = np.minimum(pair, partner), np.maximum(pair, partner)
    _, first = np.unique(one * pairs + other, return_index=True)
    first = first[(one[first] < other[first]) & (distance[first] < _APART)]
    first = first[np.argsort(distance[first], kind="stable")]
    return one[first].astype(np.int32), other[first].astype(np.int32)
