"""Compiled for the CPU: sums over the items of bins, and polynomials of bins at their items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr.compiling import njit

__all__ = ["interpolate", "moments"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@njit(cache=True, nogil=True)
def moments(q: FloatArray, bins: IntArray, place: FloatArray, total: FloatArray) -> None:
    """Add q times each Chebyshev polynomial of the place to the row of the item's bin."""
    for i in range(q.shape[0]):
        row, t = total[bins[i]], place[i]
        before, this = 1.0, t
        row[0] += q[i]
        row[1] += q[i] * t
        for r in range(2, row.shape[0]):
            before, this = this, 2.0 * t * this - before
            row[r] += q[i] * this


@njit(cache=True, nogil=True)
def interpolate(coefficients: FloatArray, bins: IntArray, place: FloatArray, out: FloatArray) -> None:
    """The Chebyshev series of each item's bin at its place (Clenshaw's recurrence)."""
    for i in range(out.shape[0]):
        row, t = coefficients[bins[i]], place[i]
        after, this = 0.0, 0.0
        for r in range(row.shape[0] - 1, 0, -1):
            after, this = this, 2.0 * t * this - after + row[r]
        out[i] = t * this - after + row[0]
