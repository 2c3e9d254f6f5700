"""Side constraints on the weights of a problem, and which weights satisfy them, decided exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_numbers

FloatArray = NDArray[np.float64]

SIDE_TOLERANCE = 1e-9
"""Relative amount by which weights may exceed a side constraint, see `LinearConstraints`."""

LARGEST = float(np.finfo(np.float64).max) / 4
"""Largest sum of |x_j| of an observation, or of a row of side constraints."""

_TINY = float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True, eq=False)
class LinearConstraints:
    """Side constraints ``A w <= b`` on the weights.

    Weights satisfy row r where

        sum_j A_rj w_j  <=  b_r + SIDE_TOLERANCE * (|b_r| + sum_j |A_rj w_j|),

    so that equalities, written as two rows, can hold in floating point. A row with b_r = 0 constrains only the
    direction of w; with a single term it constrains the sign of a weight, and there the tolerance allows nothing.

    Attributes:
        A: float64 of shape (rows, d).
        b: float64 of shape (rows,).

    Raises:
        ValueError: the shapes do not fit, or a number is not finite or so large that sums overflow.

    Examples:
        >>> bool(LinearConstraints([[1.0, -1.0]], [0.0]).satisfied(np.array([0.2, 0.5])))  # w_0 <= w_1
        True
    """

    A: FloatArray
    b: FloatArray

    linear: ClassVar[bool] = True
    """Whether the rows say it all; a subclass may have more, see `ltr.exact.scip.ScipConstraints`."""

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        rows = np.atleast_2d(as_numbers("constraints: A", A).copy())
        limits = np.atleast_1d(as_numbers("constraints: b", b).copy())
        if rows.ndim != 2 or limits.shape != rows.shape[:1]:
            raise ValueError(f"constraints: A must be (rows, d) and b (rows,), got {rows.shape} and {limits.shape}")
        for name, values in (("A", rows), ("b", limits)):
            if not np.isfinite(values).all():
                raise ValueError(f"constraints: {name} must be finite, got {float(values[~np.isfinite(values)][0])!r}")
        given, largest = np.abs(np.column_stack([rows, limits])).max(initial=0.0), LARGEST / (rows.shape[1] + 1)
        if given > largest:
            rule = f"at most {largest:.6g} where d = {rows.shape[1]}, so that no sum overflows"
            raise ValueError(f"constraints: numbers must be {rule} in size, got {float(given)!r}")
        set_fields(self, A=rows, b=limits)

    @property
    def scaled(self) -> tuple[FloatArray, FloatArray]:
        """A and b, each row divided by a power of two so that its largest number lies between 1/2 and 1.

        The rows say the same; solvers with an absolute tolerance need them at this size.
        """
        _, exponent = np.frexp(np.maximum(np.abs(self.A).max(axis=1, initial=0.0), np.abs(self.b)))
        return np.ldexp(self.A, -exponent[:, None]), np.ldexp(self.b, -exponent)

    def satisfied(self, w: FloatArray, tolerance: float = SIDE_TOLERANCE) -> bool:
        """Whether w satisfies all rows up to `tolerance`, decided exactly."""
        with np.errstate(over="ignore", invalid="ignore"):
            terms = self.A * w
            size = np.abs(self.b) + np.abs(terms).sum(axis=1)
            excess = terms.sum(axis=1) - self.b - tolerance * size
            error = (terms.shape[1] + 8) * (2.0**-52 * size + _TINY)
            unsure = ~(np.abs(excess) > error)  # an overflow (inf or nan) too
        if np.any((excess > 0) & ~unsure):
            return False
        return all(_satisfied_exactly(self.A[r], self.b[r], w, tolerance) for r in np.flatnonzero(unsure))

    def point(self, low: FloatArray, high: FloatArray) -> FloatArray | None:
        """Return weights between two limits that satisfy constraints beyond the rows; None where there are none."""
        raise NotImplementedError(f"{type(self).__name__} has nothing beyond its rows")


def _satisfied_exactly(row: FloatArray, limit: float, w: FloatArray, tolerance: float) -> bool:
    terms = [Fraction(a) * Fraction(v) for a, v in zip(row.tolist(), w.tolist(), strict=True) if a and v]
    size = sum(map(abs, terms), abs(Fraction(limit)))
    return sum(terms, Fraction(0)) <= Fraction(limit) + Fraction(tolerance) * size


def check_constraints(constraints: LinearConstraints, d: int) -> None:
    """Raise ValueError unless these are side constraints on d weights."""
    if not isinstance(constraints, LinearConstraints):
        raise ValueError(f"constraints must be LinearConstraints(A, b) or None, got {constraints!r}")
    if constraints.A.shape[1] != d:
        raise ValueError(f"constraints: A must have {d} columns, got {constraints.A.shape[1]}")


def set_fields(frozen: object, **fields: object) -> None:
    """Set fields of a frozen dataclass in its constructor, and make its arrays read-only."""
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(frozen, name, value)
