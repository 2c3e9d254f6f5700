r"""Scores w·x of observations, compared exactly: in float64 where its error leaves no doubt, else in integers.

Every float64 is an integer times a power of two, so ``w·x_i - w·x_k >= margin * steps`` is a comparison of integers.
Float64 decides nearly all comparisons: the error of a dot product of d terms is at most ``d u |w|·|x| / (1 - d u)``
with u = 2^-53, and underflow adds d half-units of the smallest subnormal number.

Source: Higham, *Accuracy and Stability of Numerical Algorithms* (2002), section 3.1, for the error bound.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.exact.levels import FloatArray, IntArray

_TINY = float(np.finfo(np.float64).smallest_subnormal)
_DIGITS = 53


class Scores:
    """The scores of observations at some weights.

    Args:
        X: observations, (n, d), finite, so that no score overflows for weights in the box.
        w: weights in [-1, 1]^d.
        margin: score difference from which an observation beats another, >= 0.

    Examples:
        >>> scores = Scores(np.array([[0.1], [0.2], [0.3]]), np.array([1.0]), margin=0.1)
        >>> scores.wins(np.array([1, 2]), np.array([0, 1])).tolist()  # 0.3 - 0.2 is less than 0.1 in float64
        [True, False]
    """

    def __init__(self, X: FloatArray, w: FloatArray, margin: float) -> None:
        used = np.flatnonzero(w)
        self._X, self._w, self._margin = X if len(used) == len(w) else X[:, used], w[used], margin
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            self._values = self._X @ self._w
            sizes = np.abs(self._X) @ np.abs(self._w)
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
        if len(unsure):
            involved = np.union1d(i, k)
            scores, margin = self._integers(involved)
            at_i, at_k = np.searchsorted(involved, i).tolist(), np.searchsorted(involved, k).tolist()
            wins.ravel()[unsure] = [scores[a] - scores[b] >= margin for a, b in zip(at_i, at_k, strict=True)]
        return wins

    def order(self, rows: IntArray, steps: IntArray, lists: IntArray | None = None) -> IntArray:
        """Rank the keys ``w·x - margin * steps`` of some observations: 0 is the lowest, equal keys share a rank.

        Args:
            rows: observations, (m,); one may occur several times with different steps.
            steps: number of margins subtracted from each score, (m,).
            lists: number of the list of each one, (m,): the keys of a list are ranked behind those of lists with
                smaller numbers. None means that all are in one list.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            handicap = self._margin * steps
            keys = self._values[rows] - handicap
            errors = self._errors[rows] + steps * self._margin_error
            low = np.nan_to_num(keys - errors, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            high = np.nan_to_num(keys + errors, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        least: NDArray[Any] = low
        reached: NDArray[Any] = high
        if lists is not None and lists.min(initial=0) < lists.max(initial=0):
            # complex numbers are compared by their real part first, here the list
            least, reached = np.empty((2, len(low)), dtype=np.complex128)
            least.real = reached.real = lists
            least.imag, reached.imag = low, high
        order = np.argsort(least, kind="stable" if least is not low else None)  # the faster one of each
        least, reached = least[order], np.maximum.accumulate(reached[order])
        apart = np.empty(len(order), dtype=bool)  # whether each key differs from all keys before it
        apart[:1] = True
        apart[1:] = least[1:] > reached[:-1]
        single = apart & np.append(apart[1:], True)
        if not single.all():
            order, apart = self._exactly(rows, steps, order, apart, ~single)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.cumsum(apart) - 1
        return ranks

    def _exactly(
        self, rows: IntArray, steps: IntArray, order: IntArray, apart: NDArray[np.bool_], doubtful: NDArray[np.bool_]
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """Sort the doubtful places of an order, group by group, and mark the keys that differ from the one before."""
        groups = np.cumsum(apart)
        # groups of equal rows are equal, however many they are
        row, step = rows[order], steps[order]
        repeats = np.append(False, (step[1:] == step[:-1]) & np.all(self._X[row[1:]] == self._X[row[:-1]], axis=1))
        differ = np.bincount(groups[~(repeats | apart)], minlength=len(order) + 1) > 0
        places = np.flatnonzero(doubtful & differ[groups])
        if len(places) == 0:
            return order, apart
        members = order[places]
        scores, margin = self._integers(rows[members])
        group = groups[places].tolist()
        keys = [s - margin * m for s, m in zip(scores, steps[members].tolist(), strict=True)]
        sequence = sorted(range(len(keys)), key=lambda at: (group[at], keys[at]))
        order, apart = order.copy(), apart.copy()
        order[places] = members[sequence]
        differs = [keys[b] != keys[a] or group[b] != group[a] for a, b in itertools.pairwise(sequence)]
        apart[places] = [True, *differs]
        return order, apart

    def _integers(self, rows: IntArray) -> tuple[list[int], int]:
        """Return the scores of some observations and the margin as integers in one unit."""
        (X, low_x), (w, low_w) = _whole(self._X[rows]), _whole(self._w)
        margin = Fraction(self._margin)
        finest = min(low_x + low_w, 1 - margin.denominator.bit_length())
        scores = (X @ w).tolist() if len(w) else [0] * len(rows)
        return [score << (low_x + low_w - finest) for score in scores], int(margin * Fraction(2) ** -finest)


def _whole(values: FloatArray) -> tuple[NDArray[np.object_], int]:
    """Return integers m of Python and the largest exponent e for which all values are m 2^e."""
    fractions, exponents = np.frexp(values)
    mantissas = np.ldexp(fractions, _DIGITS).astype(np.int64)
    zeros = np.frexp((mantissas & -mantissas).astype(np.float64))[1] - 1  # behind the last digit of each mantissa
    exponents, used = exponents.astype(np.int64) - _DIGITS, mantissas != 0
    lowest = int((exponents + zeros)[used].min()) if used.any() else 0
    shifts = np.where(used, exponents - lowest, 0)
    return (mantissas >> np.maximum(-shifts, 0)).astype(object) << np.maximum(shifts, 0).astype(object), lowest
