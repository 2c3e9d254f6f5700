r"""Scores w·x of observations, compared exactly: by float64 where its error leaves no doubt, else by integers.

Every float64 is an integer times a power of two, so a score is an integer times the product of two such powers, and
``w·x_i - w·x_k >= margin * steps`` is a comparison of integers. Float64 decides nearly all comparisons: the error of a
dot product of d terms is at most ``d u |w|·|x| / (1 - d u)`` with u = 2^-53, and underflow adds d half-units of the
smallest subnormal number. The integers are split into limbs, whose products float64 sums without rounding.

Source: Higham, *Accuracy and Stability of Numerical Algorithms* (2002), section 3.1, for the error bound.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scores"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_TINY = float(np.finfo(np.float64).smallest_subnormal)
_DIGITS = 53


class Scores:
    """The scores of observations at some weights.

    Args:
        X: observations, (n, d), finite, so that no score overflows for weights in the box.
        w: weights in [-1, 1]^d.
        margin: score difference that counts as standing above, >= 0.

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
            # twice what the dot product can err by, which leaves room for a subtraction and the margin
            self._errors = (len(w) + 4) * (2.0**-52 * sizes + 4 * _TINY)
            self._margin_error = (len(w) + 4) * 2.0**-52 * margin

    def wins(self, above: IntArray, below: IntArray) -> NDArray[np.bool_]:
        """Return whether each observation of `above` beats the one of `below`; index arrays that broadcast."""
        with np.errstate(over="ignore", invalid="ignore"):
            difference = self._values[above] - self._values[below]
            error = self._errors[above] + self._errors[below] + self._margin_error
            wins = difference >= self._margin
            # written so that an overflow (inf or nan) is undecided too
            unsure = np.flatnonzero(~(np.abs(difference - self._margin) > error))
        if len(unsure):
            shape = wins.shape
            i, k = (np.broadcast_to(side, shape).ravel()[unsure] for side in (above, below))
            involved = np.union1d(i, k)
            scores, margin = self._integers(involved)
            at_i, at_k = np.searchsorted(involved, i).tolist(), np.searchsorted(involved, k).tolist()
            wins.ravel()[unsure] = [scores[a] - scores[b] >= margin for a, b in zip(at_i, at_k, strict=True)]
        return wins

    def order(self, rows: IntArray, steps: IntArray) -> IntArray:
        """Rank the keys ``w·x - margin * steps`` of some observations: 0 for the lowest, equal keys share a rank.

        Args:
            rows: observations, (m,); one may occur more than once, with other steps.
            steps: margins taken off each score, (m,).
        """
        with np.errstate(over="ignore", invalid="ignore"):
            handicap = self._margin * steps
            keys = self._values[rows] - handicap
            errors = self._errors[rows] + steps * self._margin_error
            low = np.nan_to_num(keys - errors, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            high = np.nan_to_num(keys + errors, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        order = np.argsort(low, kind="stable")
        apart = np.empty(len(order), dtype=bool)  # from all before it
        apart[:1] = True
        apart[1:] = low[order][1:] > np.maximum.accumulate(high[order])[:-1]
        single = apart & np.append(apart[1:], True)
        if not single.all():
            order, apart = self._exactly(rows, steps, order, apart, ~single)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.cumsum(apart) - 1
        return ranks

    def _exactly(
        self, rows: IntArray, steps: IntArray, order: IntArray, apart: NDArray[np.bool_], doubtful: NDArray[np.bool_]
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """Sort the doubtful places of an order, group by group, and tell which keys differ from the one before."""
        places = np.flatnonzero(doubtful)
        members = order[places]
        scores, margin = self._integers(rows[members])
        groups = np.cumsum(apart)[places].tolist()
        keys = [s - margin * m for s, m in zip(scores, steps[members].tolist(), strict=True)]
        sequence = sorted(range(len(keys)), key=lambda at: (groups[at], keys[at]))
        order, apart = order.copy(), apart.copy()
        order[places] = members[sequence]
        differs = [keys[b] != keys[a] or groups[b] != groups[a] for a, b in itertools.pairwise(sequence)]
        apart[places] = [True, *differs]
        return order, apart

    def _integers(self, rows: IntArray) -> tuple[list[int], int]:
        """Return the scores of some observations and the margin as integers in one unit."""
        X = self._X[rows]
        low_x, low_w = _lowest_bit(X), _lowest_bit(self._w)
        spans = [_highest_bit(values) - low for values, low in ((X, low_x), (self._w, low_w))]
        # products of limbs, summed over the features and over equal places, stay below 2^53: float64 sums are exact
        bits = _limb_bits(len(self._w), max(spans))
        weights = _limbs(self._w, low_w, bits)
        places: dict[int, FloatArray] = {}
        for at, limb in _limbs(X, low_x, bits):
            for also, weight in weights:
                places[at + also] = places.get(at + also, 0.0) + limb @ weight
        margin = Fraction(self._margin)
        finest = min(low_x + low_w, 1 - margin.denominator.bit_length())
        scores = [0] * len(rows)
        for at, sums in places.items():
            shift = low_x + low_w + at * bits - finest
            scores = [score + (int(part) << shift) for score, part in zip(scores, sums.tolist(), strict=True)]
        return scores, int(margin * Fraction(2) ** -finest)


def _exponents(values: FloatArray) -> tuple[IntArray, IntArray]:
    """Integers m and exponents e of the values m 2^e other than 0."""
    fractions, exponents = np.frexp(values[values != 0])
    return np.ldexp(fractions, _DIGITS).astype(np.int64), exponents.astype(np.int64) - _DIGITS


def _lowest_bit(values: FloatArray) -> int:
    """Return the largest e for which all values are multiples of 2^e, 0 where all are 0."""
    mantissas, exponents = _exponents(values)
    bits = np.frexp((mantissas & -mantissas).astype(np.float64))[1] - 1 + exponents
    return int(bits.min(initial=2**20)) if len(bits) else 0


def _highest_bit(values: FloatArray) -> int:
    """Return the least e for which all values are below 2^e in size, 0 where all are 0."""
    _, exponents = _exponents(values)
    return int(exponents.max()) + _DIGITS if len(exponents) else 0


def _limb_bits(terms: int, span: int) -> int:
    """Return the bits of a limb: the most for which sums of products of limbs are exact in float64."""
    return next(b for b in range(25, 0, -1) if 2 * b + (max(terms, 1) * (span // b + 2)).bit_length() <= _DIGITS)


def _limbs(values: FloatArray, lowest: int, bits: int) -> list[tuple[int, FloatArray]]:
    """Split values into limbs: ``values = 2^lowest * sum of limb * 2^(bits * place)``, each a (place, limb)."""
    found = []
    rest = values.copy()
    for place in range((_highest_bit(values) - lowest) // bits, -1, -1):
        with np.errstate(under="ignore"):
            limb = np.trunc(np.ldexp(rest, -(lowest + bits * place)))
        if limb.any():
            rest -= np.ldexp(limb, lowest + bits * place)
            found.append((place, limb))
    return found
