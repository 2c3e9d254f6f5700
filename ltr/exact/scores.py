r"""Scores w·x of observations, compared exactly: in float64 where its error leaves no doubt, else in integers.

Every float64 is an integer times a power of two, so ``w·x_i - w·x_k >= margin * steps`` is a comparison of integers.
Float64 decides nearly all comparisons: the error of a dot product of d terms is at most ``d u |w|·|x| / (1 - d u)``
with u = 2^-53, and underflow adds d half-units of the smallest subnormal number.

Source: Higham, *Accuracy and Stability of Numerical Algorithms* (2002), section 3.1, for the error bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr.exact.levels import FloatArray, IntArray
from ltr.native import rank_keys, weigh_rows

_TINY = float(np.finfo(np.float64).smallest_subnormal)


class Scores:
    """The scores of observations at some weights.

    Examples:
        >>> scores = Scores(np.array([[0.1], [0.2], [0.3]]), np.array([1.0]), margin=0.1)
        >>> scores.wins(np.array([1, 2]), np.array([0, 1])).tolist()  # 0.3 - 0.2 is less than 0.1 in float64
        [True, False]
    """

    def __init__(self, X: FloatArray, w: FloatArray, margin: float) -> None:
        self._X, self._w, self._margin = X, w, margin
        self._values, sizes = np.empty((2, len(X)))
        weigh_rows(X, w, self._values, sizes)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            # twice the error of the dot product, which leaves room for a subtraction and the margin
            self._errors = (len(w) + 4) * (2.0**-52 * sizes + 4 * _TINY)
            self._margin_error = (len(w) + 4) * 2.0**-52 * margin

    def wins(self, above: IntArray, below: IntArray) -> NDArray[np.bool_]:
        """Return whether each observation of `above` beats that of `below`; the index arrays broadcast."""
        with np.errstate(over="ignore", invalid="ignore"):
            difference = self._values[above] - self._values[below]
            wins = difference >= self._margin
            # written so that an overflow (inf or nan) counts as undecided; at first with the largest error of all
            distance = np.abs(difference - self._margin).ravel()
            unsure = np.flatnonzero(~(distance > 2 * self._errors.max(initial=0.0) + self._margin_error))
            i, k = (np.broadcast_to(side, wins.shape).ravel()[unsure] for side in (above, below))
            close = ~(distance[unsure] > self._errors[i] + self._errors[k] + self._margin_error)
            i, k, unsure = i[close], k[close], unsure[close]
        if len(unsure):  # each pair is a list of two keys
            ranks = self.order(
                np.column_stack([i, k]).ravel(), np.tile([1, 0], len(unsure)), np.repeat(np.arange(len(unsure)), 2)
            )
            wins.ravel()[unsure] = ranks[::2] >= ranks[1::2]
        return wins

    def order(self, rows: IntArray, steps: IntArray, lists: IntArray | None = None, *, apart: bool = False) -> IntArray:
        """Rank the keys ``w·x - margin * steps`` of some observations: 0 is the lowest, equal keys share a rank.

        Args:
            rows: observations, (m,); one may occur several times with different steps.
            steps: number of margins subtracted from each score, (m,).
            lists: number of the list of each one, ascending, (m,): lists are ranked one behind the other.
            apart: give every key its own rank: of equal keys the one with more steps is higher, then the first.
        """
        ranks = np.empty(len(rows), dtype=np.int64)
        lists = np.zeros(len(rows), dtype=np.int64) if lists is None else lists
        values, errors, margin_error = self._values, self._errors, self._margin_error
        rank_keys(self._X, self._w, self._margin, rows, steps, lists, values, errors, margin_error, apart, ranks)
        return ranks
