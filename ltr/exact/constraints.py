"""What weights must satisfy besides a good order: linear side constraints, and demands on other rank statistics.

A problem with demands is ``maximise S(w; y)  subject to  S_j(w; labels_j) >= at_least_j,  j = 1, ..., J``. Every S_j is
a rank statistic of the same rows: their pairs are compared with the margin of the problem, and ties count against the
labels that ask. "At least m rows of a group among the first K" is ``hits@K`` of labels that are 1 in the group, m; "at
most m" is that of the rows outside of it, K - m. `ltr.list_demands` makes such demands of words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_float, as_numbers
from ltr.outcomes import label_kind
from ltr.statistics import RankStatistic

FloatArray = NDArray[np.float64]

SIDE_TOLERANCE = 1e-9
"""Relative amount by which weights may exceed a side constraint, see `LinearConstraints`."""

DEMAND_TOLERANCE = 1e-9
"""Share of `Demand.at_least` by which a statistic may be below it."""

LARGEST = float(np.finfo(np.float64).max) / 4
"""Largest sum of |x_j| of an observation, or of a row of side constraints."""

_TINY = float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True, eq=False)
class LinearConstraints:
    """Side constraints ``A w <= b`` on the weights, A of shape (rows, d) and b of shape (rows,).

    Weights satisfy row r where ``sum_j A_rj w_j <= b_r + SIDE_TOLERANCE * (|b_r| + sum_j |A_rj w_j|)``, so that
    equalities, written as two rows, can hold in floating point. A row with b_r = 0 constrains only the direction of w;
    with a single term it constrains the sign of a weight, and there the tolerance allows nothing.

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

        Solvers with an absolute tolerance need them at this size.
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


@dataclass(frozen=True, eq=False, init=False)
class Demand:
    """A rank statistic that weights must bring to a least value: ``S(w; labels) >= at_least``.

    Args:
        statistic: a `RankStatistic` or its name.
        at_least: the least value, which weights meet from ``at_least - DEMAND_TOLERANCE |at_least|`` on, exactly.
        labels: labels of the problem's rows, numbers >= 0 that are gains as they are, (n,); None for the labels and
            gains of the problem. Demands on cards take labels of two fields, too (`ltr.outcomes`).
        normalize: divide by the value of a perfect order, as `RerankProblem` does.
        ties: how rows with equal totals of a card count: ``"resolved"`` for the worst of their orders; None as the
            problem of the card has it. Other weights lose all ties.
        name: what reports call it; None for its formula.

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> from ltr.exact import RerankProblem, solve
        >>> X, y, women = [[3.0, 0.0], [2.0, 1.0], [1.0, 3.0]], [1, 1, 0], [0, 0, 1]
        >>> demands = [Demand("hits@1", at_least=1, labels=women)]
        >>> free, asked = RerankProblem(X, y), RerankProblem(X, y, demands=demands)
        >>> round(solve(free).value, 4), round(solve(asked).value, 4), str(demands[0])
        (1.6309, 1.1309, 'hits@1 of labels >= 1')
    """

    statistic: RankStatistic
    at_least: float
    labels: NDArray[Any] | None
    normalize: bool
    ties: Literal["resolved"] | None
    name: str

    def __init__(
        self,
        statistic: RankStatistic | str,
        at_least: float,
        labels: ArrayLike | None = None,
        *,
        normalize: bool = False,
        ties: Literal["resolved"] | None = None,
        name: str | None = None,
    ) -> None:
        parsed = RankStatistic.parse(statistic)
        if parsed.kind.labels == "labels":
            parsed.check_linear()
        if not math.isfinite(as_float(at_least)):
            raise ValueError(f"at_least must be a finite number, got {at_least!r}")
        if ties not in (None, "resolved"):
            raise ValueError(f"ties must be 'resolved' or None, got {ties!r:.80}")
        plain = labels is None or label_kind(labels) == "labels"
        own = None if labels is None else as_numbers("labels", labels).copy() if plain else np.array(labels)
        of = "" if own is None else " of labels"
        text = f"{'normalised ' if normalize else ''}{parsed}{of} >= {float(at_least):.12g}"
        set_fields(self, statistic=parsed, at_least=float(at_least), labels=own, normalize=bool(normalize))
        set_fields(self, ties=ties, name=text if name is None else str(name))

    def __str__(self) -> str:
        return self.name

    def take(self, rows: NDArray[Any]) -> Demand:
        """Return the demand on some of the rows, by number or by a mask."""
        if self.labels is None:
            return self
        options: dict[str, Any] = {"normalize": self.normalize, "ties": self.ties, "name": self.name}
        return Demand(self.statistic, self.at_least, self.labels[rows], **options)

    @property
    def least(self) -> Fraction:
        """The value from which it is met."""
        exact = Fraction(self.at_least)
        return exact - Fraction(DEMAND_TOLERANCE) * abs(exact)


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
