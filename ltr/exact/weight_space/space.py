r"""A problem as the compiled search reads it: pair differences in the coordinates searched, integer tables, workspaces.

**Coordinates.** The search runs over v, with w = T v. A pair with difference δ that is won when
``w·δ >= margin * steps * max|w_j|`` has the column

    e = (T'δ, -margin * steps),      won  <=>  (v, s)·e >= 0,   s = max|(Tv)_j|,

so the margin is one more coordinate, of which a box knows an interval. On the faces ``max|w_j| = 1`` with T = I that
interval is [1, 1]; the same holds for a search of the whole box [-1, 1]^d, where the margin is not scaled. Columns are
divided by powers of two that bring their largest term to about 1: that changes no sign, and nothing overflows.

**Integers.** Tables of worth are held as integers, ``ceil(worth * 2^k)``, so that sums are exact whatever their order
and the bound of a box can be kept up to date pair by pair. Rounding up keeps an upper bound one; the price C is
rounded down.

**Rounding.** The ends of ``(v, s)·e`` over a box are floats, updated once for every change of the box. Each update
errs by at most three half-units of ``2 ||e||_1``; `SLACK` ``* ||e||_1`` is added outwards at the start and leaves room
for `UPDATES` of them, at which the ends are computed afresh, and the few that come between two looks at their number.

**Side constraints.** With y_j = A_rj w_j, the rule of `ltr.exact.problem.LinearConstraints` compares the sum of
``y_j - tolerance |y_j|`` with ``b + tolerance |b|``. These terms grow with y_j, so the least of a box is at an end of
its interval of w_j. The search takes twice the tolerance, `LOOSE`: a superset, with room for rounding. For let y_j be
of feasible weights in a box, z_j <= y_j the least there. What the sum of least terms leaves of the limit errs by some
half-units of |b| and all |z_j|, and ``|z_j| <= |y_j| + (y_j - z_j)``. The looser tolerance leaves 1e-9 of |b| and of
all |y_j|, and terms that exceed their least leave about y_j - z_j: both far more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr.exact.levels import PAIR_BYTES, Levels
from ltr.exact.problem import SIDE_TOLERANCE, Problem
from ltr.exact.state import scalable
from ltr.exact.weight_space.couples import Couples, couples_of

__all__ = [
    "BEYOND",
    "LOOSE",
    "NARROW",
    "SLACK",
    "TOLERANCE",
    "UPDATES",
    "Boxes",
    "Searchable",
    "Space",
    "Work",
    "memory_needed",
    "space_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.int32]
Flags = NDArray[np.uint8]

UPDATES = 100
SLACK = 2.0**-43  # 1024 half-units: (UPDATES + 8 + columns) * 3 * 2 of them, and room
TOLERANCE = 0.5e-12  # of the statistic's size: values closer than this are one value
BEYOND = 2**61  # as an integer of a space, above all values; below all values with its sign changed
NARROW = 1e-13  # width from which a coordinate is not split
LOOSE = 2 * SIDE_TOLERANCE
_BITS = 58  # of the largest bound, of 63
_BLOCK = 1_000_000  # numbers computed between two looks at the clock
_SHEETS, _STACK = 2, 6  # of the memory of a thread, in pairs: what deep boxes take, which have few open pairs


class Space(NamedTuple):
    """A problem in the coordinates of a search; read-only.

    Attributes:
        columns: pair differences and the margin, one row a coordinate, of a size of about 1, (d + 1, pairs).
        slack: rounding allowance of each pair, (pairs,).
        single: columns in single precision, without the margin's, rows of 0 up to a multiple of 8.
        owner, level, start, most, table, slot: as in `Levels`.
        worth: its tables as integers, rounded up.
        step: for each entry of a table, the least that raising a count costs there or before: a nonincreasing
            function below ``worth[t] - worth[t + 1]``.
        T: weights of coordinates, w = T v, (d, d).
        A, b: side constraints A w <= b, with `LOOSE` of |b| in b; T = I where there are any.
        price: C as an integer, rounded down.
        support: most non-zero weights, d for no limit.
        error: rounding error of a sum over pairs, relative to the sum of its multipliers.
        fixed: whether the margin coordinate is known; else it is the norm of T v.
        sparse: whether zeros count, so that a split sets them apart.
        slots: as in `Levels`.
        couples: pairs that may be in conflict.
        stop: set to 1 from another thread to have a search hand back its boxes at once, (1,).
    """

    columns: FloatArray
    slack: FloatArray
    single: NDArray[np.float32]
    owner: IndexArray
    level: IntArray
    start: IntArray
    most: IntArray
    table: IntArray
    slot: IntArray
    worth: IntArray
    step: IntArray
    T: FloatArray
    A: FloatArray
    b: FloatArray
    price: int
    support: int
    error: float
    fixed: bool
    sparse: bool
    slots: int
    couples: Couples
    stop: Flags


class Boxes(NamedTuple):
    """Boxes of weight space, one a row.

    Attributes:
        low, high: ends of the d coordinates and the margin's, (boxes, d + 1).
        used: 1 where a weight is known not to be 0, (boxes, d + 1).
        bound: upper bound of each box as an integer, (boxes,).
    """

    low: FloatArray
    high: FloatArray
    used: Flags
    bound: IntArray

    @classmethod
    def empty(cls, boxes: int, columns: int) -> Boxes:
        """Room for boxes."""
        return cls(
            np.zeros((boxes, columns)),
            np.zeros((boxes, columns)),
            np.zeros((boxes, columns), np.uint8),
            np.zeros(boxes, np.int64),
        )

    def rows(self, at: slice | IntArray) -> Boxes:
        """Copies of some of the boxes."""
        return Boxes(self.low[at].copy(), self.high[at].copy(), self.used[at].copy(), self.bound[at].copy())


class Work(NamedTuple):
    """Memory of one thread: a stack of boxes, and a stack of *sheets*.

    A sheet holds the columns of the pairs that were open when it was made, contiguous for the inner loops, and their
    couples; the boxes below share it. Entry t of the box stack has its ends of the sheet's pairs from ``upper[at[t]]``
    on.
    """

    low: FloatArray
    high: FloatArray
    used: Flags
    point: FloatArray  # where the last hinge descent ended
    counts: IndexArray
    fewer: IndexArray
    bound: IntArray
    sheet: IntArray
    at: IntArray
    updates: IntArray
    upper: FloatArray
    lower: FloatArray
    open: Flags
    columns: FloatArray  # of the sheets, from here on
    owner: IndexArray
    slack: FloatArray
    single: NDArray[np.float32]
    begin: IntArray
    size: IntArray
    couples: Couples
    couple_begin: IntArray  # of a sheet's columns of couples, and of their other fields
    couple_end: IntArray  # up to where these are taken
    couple_count: IntArray
    scale: FloatArray  # scratch, from here on
    value: FloatArray
    changed: Flags
    changed_too: Flags
    gather: IndexArray
    place: IndexArray
    listed: IndexArray
    reach: NDArray[np.float32]
    conflict: Flags
    price: FloatArray
    must: Flags
    losable: IntArray
    budget: IntArray
    touched: FloatArray
    path: IntArray
    trial_counts: IndexArray
    trial_fewer: IndexArray
    small: FloatArray
    roof: NDArray[np.float32]
    roof_quarter: NDArray[np.float32]
    lost: NDArray[np.uint32]
    half: NDArray[np.float32]
    more: IndexArray
    loss: IntArray

    @classmethod
    def of(cls, space: Space, depth: int = 400) -> Work:
        """Room for a search of the space."""
        columns, pairs = space.columns.shape
        members, slots = len(space.level), max(1, space.slots)
        sheets, stack = 5 * pairs + 1024, 12 * pairs + 100_000
        scratch, couples, eights = 8 * (pairs // 8 + 3), len(space.couples.one), len(space.single)
        return cls(
            low=np.zeros((depth, columns)),
            high=np.zeros((depth, columns)),
            used=np.zeros((depth, columns), np.uint8),
            point=np.zeros((depth, columns)),
            counts=np.zeros((depth, members), np.int32),
            fewer=np.zeros((depth, slots), np.int32),
            bound=np.zeros(depth, np.int64),
            sheet=np.zeros(depth, np.int64),
            at=np.zeros(depth, np.int64),
            updates=np.zeros(depth, np.int64),
            upper=np.zeros(stack),
            lower=np.zeros(stack),
            open=np.zeros(stack, np.uint8),
            columns=np.zeros((columns, sheets)),
            owner=np.zeros(sheets, np.int32),
            slack=np.zeros(sheets),
            single=np.zeros((eights, sheets), np.float32),
            begin=np.zeros(depth, np.int64),
            size=np.zeros(depth, np.int64),
            couples=Couples.empty(columns, 5 * couples + 1024),
            couple_begin=np.zeros((depth, 2), np.int64),
            couple_end=np.zeros((depth, 2), np.int64),
            couple_count=np.zeros(depth, np.int64),
            scale=np.zeros(scratch),
            value=np.zeros(scratch),
            changed=np.zeros(scratch, np.uint8),
            changed_too=np.zeros(scratch, np.uint8),
            gather=np.zeros(scratch, np.int32),
            place=np.zeros(scratch, np.int32),
            listed=np.zeros(couples + 16, np.int32),
            reach=np.zeros(couples + 16, np.float32),
            conflict=np.zeros(8 * (couples // 8 + 3), np.uint8),
            price=np.zeros(members),
            must=np.zeros(members, np.uint8),
            losable=np.zeros(members, np.int64),
            budget=np.zeros(members, np.int64),
            touched=np.zeros(members),
            path=np.zeros(int(space.most.max()) + 2, np.int64),
            trial_counts=np.zeros(members, np.int32),
            trial_fewer=np.zeros(slots, np.int32),
            small=np.zeros((7, columns)),
            roof=np.zeros(scratch, np.float32),
            roof_quarter=np.zeros(scratch, np.float32),
            lost=np.zeros(scratch, np.uint32),
            half=np.zeros(eights, np.float32),
            more=np.zeros((4, eights, members), np.int32),
            loss=np.zeros((4, eights), np.int64),
        )


class Searchable(NamedTuple):
    """A space with what leads back to the problem: a bound is an integer times ``2^-exponent``, plus `shift`."""

    space: Space
    roots: Boxes
    exponent: int
    shift: float

    def integer(self, value: float) -> int:
        """Return the largest integer of the space that is no more than a value; ±2^61 for what is beyond all values."""
        difference = value - self.shift
        try:
            return min(max(math.floor(math.ldexp(difference, self.exponent)), -BEYOND), BEYOND)
        except OverflowError:
            return BEYOND if difference > 0 else -BEYOND

    def objective(self, bound: int) -> float:
        """Return an integer of the space as an upper bound of the objective."""
        exact = bound * Fraction(2) ** -self.exponent + Fraction(self.shift)
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)

    def target(self, value: float, size: float) -> int:
        """Return an integer that no weights worth as little exceed.

        Args:
            value: a value of the objective.
            size: size of the statistic; values closer than 1e-12 of it are one value.
        """
        return self.integer(value) + math.ceil(math.ldexp(TOLERANCE * size, self.exponent))


def memory_needed(problem: Problem, threads: int) -> float:
    """Return about how many bytes a search of this problem takes on some threads, its sheets and couples included."""
    column = 8 * (problem.d + 1) + 4 * 8 * -(-problem.d // 8) + 12
    return problem.pair_count * (PAIR_BYTES + 2 * column + threads * (_SHEETS * column + _STACK * 17))


def space_of(problem: Problem, T: FloatArray | None = None, tick: Callable[[], None] = lambda: None) -> Searchable:
    """Return the problem in the coordinates ``w = T v``, and the boxes that cover all its weights but w = 0.

    Args:
        problem: any problem that has levels.
        T: regular, (d, d); None for the weights themselves, the only choice with side constraints or a price.
        tick: called now and then; what it raises ends the work.
    """
    levels, d = problem.levels(tick), problem.d
    system = np.eye(d) if T is None else np.ascontiguousarray(T)
    pairs = len(levels.above)
    columns, size, varies = np.empty((d + 1, pairs)), np.empty(pairs), np.zeros(d, dtype=bool)
    single = np.zeros((-(-d // 8) * 8, pairs), np.float32)
    length = max(1, _BLOCK // (d + 1))
    for first in range(0, pairs, length):
        tick()
        block = slice(first, first + length)
        differences = problem.X[levels.above[block]] - problem.X[levels.below[block]]
        varies |= np.any(differences != 0, axis=0)
        columns[:, block], size[block] = _columns(differences, problem.margin, levels.steps[block], system)
        single[:d, block] = columns[:d, block]
    worth, price, exponent = _integers(levels, problem)
    most = d if problem.max_nonzeros is None else min(d, problem.max_nonzeros)
    constraints = problem.constraints
    roots = _roots(problem, T, varies)
    reach = max(1.0, float(np.abs(np.append(roots.low, roots.high)).max(initial=0.0)))
    tick()
    space = Space(
        columns=columns,
        slack=SLACK * size,
        single=single,
        owner=levels.owner,
        level=levels.level,
        start=levels.start,
        most=levels.most,
        table=levels.table,
        slot=levels.slot,
        worth=worth,
        step=_steps(worth, levels),
        T=system,
        A=np.zeros((0, d)) if constraints is None else np.array(constraints.A),
        # room for products that underflow
        b=np.zeros(0) if constraints is None else constraints.b + LOOSE * np.abs(constraints.b) + d * 2.0**-1070,
        price=price,
        support=most,
        error=(pairs + d + 16) * 2.0**-51 * float(size.max(initial=0.0)),
        fixed=T is None,
        sparse=problem.C > 0 or most < d,
        slots=levels.slots,
        couples=couples_of(columns, SLACK * size, reach, levels.above, levels.below),
        stop=np.zeros(1, np.uint8),
    )
    return Searchable(space, roots, exponent, levels.shift)


def _columns(
    differences: FloatArray, margin: float, steps: IndexArray, system: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return columns of pairs, (d + 1, pairs), and the sums of the sizes of their terms."""
    _, places = np.frexp(np.abs(differences).max(axis=1))
    # frexp(0) is (0, 0): a difference of 0 has no size
    places = np.where(differences.any(axis=1), places, np.iinfo(places.dtype).min)
    exponents = np.maximum(places, np.frexp(margin)[1] + np.frexp(steps)[1])
    with np.errstate(under="ignore"):
        scaled, margins = np.ldexp(differences, -exponents[:, None]), np.ldexp(margin, -exponents) * steps
        columns = np.column_stack([scaled @ system, -margins]).T
        return columns, (np.abs(scaled) @ np.abs(system)).sum(axis=1) + margins


def _integers(levels: Levels, problem: Problem) -> tuple[IntArray, int, int]:
    """Return tables of worth times a power of two, rounded up, the price likewise, rounded down, and the exponent."""
    perfect, price = abs(problem.trivial_bound), problem.price
    largest = max(perfect + abs(levels.shift) + price * problem.d, float(np.max(levels.contribution, initial=0.0)))
    exponent = _BITS - math.frexp(largest)[1] if largest > 0 else 0
    # a float times a power of two is exact, and so is the ceiling: a worth has 53 bits
    worth = np.ceil(np.ldexp(levels.contribution, exponent)).astype(np.int64)
    return worth, math.floor(math.ldexp(price, exponent)), exponent


def _steps(worth: IntArray, levels: Levels) -> IntArray:
    """Nonincreasing functions below the steps of the tables."""
    steps = np.zeros(len(worth) + 2, np.int64)
    begins = np.unique(levels.table)
    for begin, end in zip(begins, np.append(begins[1:], len(worth)), strict=True):
        steps[begin : end - 1] = np.minimum.accumulate(worth[begin : end - 1] - worth[begin + 1 : end])
    return steps


def _roots(problem: Problem, T: FloatArray | None, varies: NDArray[np.bool_]) -> Boxes:
    """The faces of the cube where the length of w does not matter, the whole cube where it does.

    A weight whose feature is the same in both observations of every pair decides nothing. Without side constraints it
    may as well be 0, and the others scaled up to the cube's surface.
    """
    d = problem.d
    if problem.constraints is not None:
        varies = np.ones(d, dtype=bool)
    faces = np.flatnonzero(varies) if scalable(problem) else np.zeros(0, np.int64)
    roots = Boxes.empty(2 * len(faces) if scalable(problem) else 1, d + 1)
    roots.low[:, :d][:, varies], roots.high[:, :d][:, varies] = -1.0, 1.0
    for row, (j, end) in enumerate((j, end) for j in faces for end in (-1.0, 1.0)):
        roots.low[row, j] = roots.high[row, j] = end
        roots.used[row, j] = 1
    roots.low[:, d] = roots.high[:, d] = 1.0
    if T is not None:
        roots.low[:, d] = (1 - 1e-9) / np.abs(np.linalg.inv(T)).sum(axis=1).max()
        roots.high[:, d] = (1 + 1e-9) * np.abs(T).sum(axis=1).max()
    roots.bound[:] = np.iinfo(np.int64).max
    return roots
