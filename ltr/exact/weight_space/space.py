r"""A problem as the compiled search reads it: pair differences in the coordinates searched, integer tables, workspaces.

**Coordinates.** The search runs over v, with w = T v. A pair with difference δ that is won when
``w·δ >= margin * steps * max|w_j|`` has the column

    e = (T'δ, -margin * steps),      won  <=>  (v, s)·e >= 0,   s = max|(Tv)_j|,

so the margin is one more coordinate, of which a box knows an interval. On the faces ``max|w_j| = 1`` with T = I that
interval is [1, 1]; the same holds for a search of the whole box [-1, 1]^d, where the margin is not scaled. Columns are
divided by powers of two that bring their largest term to about 1: that changes no sign, and nothing overflows.

**Integers.** Statistic tables are held as integers, ``ceil(contribution * 2^k)``, so that sums are exact whatever their
order and the bound of a box can be kept up to date pair by pair. Rounding up keeps an upper bound one; the price C is
rounded down.

**Rounding.** The interval bounds of ``(v, s)·e`` over a box are floats, updated once for every change of the box. Each
update errs by at most three half-units of ``2 ||e||_1``; `SLACK` ``* ||e||_1`` is added outwards at first and leaves
room for `UPDATES` of them, at which they are computed afresh, and the few that come between two looks at their number.

**Conflicts.** The pairs with columns e and e' are both won at x only where ``x·f >= 0``, with ``f = e / |e| + e' /
|e'|`` and |·| the sum of magnitudes without the margin. So where ``max x·f < 0`` over a box, one of them is lost on all
of it: they are in *conflict* there. If e' points about the opposite way to e, f is short, and that happens on large
boxes, on which each of the two may be won or lost. So the candidates are each pair and its nearest neighbours of the
opposite direction, whatever positives they belong to.

Two observations that are compared both ways cannot both stand above the other, however small the margin is: their pairs
are in conflict everywhere.

*Rounding.* f is held in single precision, and so is ``max x·f``. Each of the two products of a coordinate and their
sum err by at most ``2^-24`` of ``|x_j f_j|`` a few times over; `apart` is below 0 by twice what that can come to, and
by the rounding error of e.

**Supports.** Where at most a few weights may differ from 0, each set of so many columns gets a space of its own, with
those columns alone: a search in three dimensions is far shorter than one in sixteen that splits zeros apart. A set
covers its subsets. All spaces share one cutoff, at which most of them close at their roots.

**Side constraints.** With y_j = A_rj w_j, the rule of `ltr.exact.problem.LinearConstraints` compares the sum of
``y_j - tolerance |y_j|`` with ``b + tolerance |b|``. These terms grow with y_j, so the least of a box is at an end of
its interval of w_j. The search takes twice the tolerance, `LOOSE`: a superset, with room for rounding. For let y_j be
of feasible weights in a box, z_j <= y_j the least there. What the sum of least terms leaves of the limit errs by some
half-units of |b| and all |z_j|, and ``|z_j| <= |y_j| + (y_j - z_j)``. The looser tolerance leaves 1e-9 of |b| and of
all |y_j|, and terms that exceed their least leave about y_j - z_j: both far more.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ltr.exact.levels import PAIR_BYTES, FloatArray, IndexArray, IntArray, Levels
from ltr.exact.problem import SIDE_TOLERANCE, Problem
from ltr.exact.state import scalable

Flags = NDArray[np.uint8]
_Arrays = TypeVar("_Arrays")

UPDATES = 100
SLACK = 2.0**-43  # 1024 half-units: (UPDATES + 8 + columns) * 3 * 2 of them, and room
TOLERANCE = 0.5e-12  # of the statistic's size: values closer than this are one value
BEYOND = 2**61  # as an integer of a space, above all values; below all values with its sign changed
NARROW = 1e-13  # width from which a coordinate is not split
LOOSE = 2 * SIDE_TOLERANCE
_BITS = 58  # of the largest bound, of 63
_BLOCK = 1_000_000  # numbers computed between two looks at the clock
_NEAREST = 4  # partners of a pair
_APART = 1.5  # from this length of f on, of at most 2, a conflict would be luck
_WIDE, _FEW, _MANY = 12, 2_000, 6_000  # features from which only few pairs get partners; pairs from which none do
_ALWAYS = 1e-30  # above max x·f, which is -2 margin and may have underflowed to 0
_ROUGHLY = 0.5  # relative error of distances: the nearest neighbours but a few
_MOST_SUPPORTS, _LARGEST_SUPPORT = 5_000, 6  # sets of columns, and columns of a set, up to which each gets a space
_KEPT = 8  # of these spaces in memory
_PAIR_LISTS, _STACK = 2, 6  # lists and interval bounds of a thread, in all pairs: deep boxes have few open ones


def _zeros(kind: Callable[..., _Arrays], *shapes: tuple[Any, str], **fields: Any) -> _Arrays:  # noqa: ANN401
    """Return a named tuple of zeros, of the types annotated; each shape comes with the names that have it."""
    hints = get_type_hints(kind)
    for shape, names in shapes:
        fields |= {name: np.zeros(shape, get_args(get_args(hints[name])[1])[0]) for name in names.split()}
    return kind(**fields)


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
        return _zeros(cls, ((columns, conflicts), "columns"), (conflicts, "one other apart"))


class Space(NamedTuple):
    """A problem in the coordinates of a search; read-only."""

    columns: FloatArray  # pair differences and the margin, one row a coordinate, of a size of about 1, (d + 1, pairs)
    slack: FloatArray  # rounding allowance of each pair, (pairs,)
    single: NDArray[np.float32]  # columns in single precision without the margin's, rows of 0 up to a multiple of 8
    positive: IndexArray  # as `Levels.positive`
    level: IntArray  # this and the next three as in `Levels`
    start: IntArray
    most: IntArray
    table: IntArray
    counts_at: IntArray  # as `Levels.counts_at`
    contribution: IntArray  # the tables as integers, rounded up
    step: IntArray  # at each entry, the least that raising a count loses there or before, a nonincreasing function
    T: FloatArray  # weights of the coordinates, w = T v, (d, d); columns of I for a search by supports
    A: FloatArray  # side constraints A v <= b, for v are weights where there are any
    b: FloatArray  # their limits, with `LOOSE` of |b| added
    price: IntArray  # of each weight: C as an integer, rounded down; 0 for free columns, (d,)
    support: int  # most non-zero weights, those of free columns included, d for no limit
    free: Flags  # 1 for free columns: all boxes count their weights as used, (d + 1,)
    error: float  # rounding error of a sum over pairs, relative to the sum of its multipliers
    fixed: bool  # whether the margin coordinate is known; else it is the norm of T v
    sparse: bool  # whether zeros count, so that a split sets them apart
    counts_size: int  # as `Levels.counts_size`
    conflicts: ConflictingPairs  # candidates for pairs that cannot both be won
    stop: Flags  # set to 1 by another thread to have a search hand back its boxes at once, (1,)


class Boxes(NamedTuple):
    """Boxes of weight space, one a row.

    Attributes:
        low, high: least and largest value of the d coordinates and of the margin's, (boxes, d + 1).
        used: 1 where a weight is known not to be 0 or its column is free, (boxes, d + 1).
        bound: upper bound of each box as an integer, (boxes,).
        part: number of the space that each box is in, 0 where there is only one, (boxes,).
    """

    low: FloatArray
    high: FloatArray
    used: Flags
    bound: IntArray
    part: IntArray

    @classmethod
    def empty(cls, boxes: int, columns: int) -> Boxes:
        """Return room for so many boxes."""
        return _zeros(cls, ((boxes, columns), "low high used"), (boxes, "bound part"))

    def rows(self, at: slice | IntArray) -> Boxes:
        """Return copies of some of the boxes."""
        return Boxes(*(field[at].copy() for field in self))  # type: ignore[arg-type]

    @classmethod
    def joined(cls, boxes: Iterable[Boxes]) -> Boxes:
        """Return all boxes of a sequence in one."""
        return cls(*(np.concatenate(parts) for parts in zip(*boxes, strict=True)))


class Work(NamedTuple):
    """Memory of one thread: a stack of boxes, a stack of lists of open pairs, and scratch space.

    A list of open pairs holds the columns of the pairs that were open when it was made, contiguous for the inner loops,
    and the candidates for conflicts among them; all boxes above it on the stack share it. Box t has its interval bounds
    of the list's pairs from ``upper[at[t]]`` on.
    """

    # the stack of boxes, one row or entry each
    low: FloatArray  # least value of each coordinate, (depth, d + 1)
    high: FloatArray  # largest value of each coordinate, (depth, d + 1)
    used: Flags  # 1 where a weight is known not to be 0, (depth, d + 1)
    point: FloatArray  # where the last descent of the hinge bound ended, (depth, d + 1)
    counts: IndexArray  # lost pairs of each member, (depth, members)
    fewer: IndexArray  # members with fewer lost pairs, as in `Levels`, (depth, counts_size)
    bound: IntArray  # upper bound of the box, (depth,)
    pair_list: IntArray  # its list of open pairs, (depth,)
    at: IntArray  # where its interval bounds begin, (depth,)
    updates: IntArray  # changes since the interval bounds were computed afresh, (depth,)
    # interval bounds of the boxes' pairs, one behind the other
    upper: FloatArray
    lower: FloatArray
    open: Flags  # 1 where the pair is not decided
    # the pairs of all lists, one behind the other
    columns: FloatArray  # as in `Space`, (d + 1, pairs)
    positive: IndexArray
    slack: FloatArray
    single: NDArray[np.float32]
    begin: IntArray  # where each list begins
    size: IntArray  # pairs in each list, a multiple of 8
    # candidates for conflicts of all lists
    conflicts: ConflictingPairs
    conflict_begin: IntArray  # where a list's columns and its other fields begin, (lists, 2)
    conflict_end: IntArray  # where they end, (lists, 2)
    conflict_count: IntArray  # candidates of each list
    # scratch, one entry a pair of the list at hand
    scale: FloatArray  # pair losses, then slopes of the hinge bound
    value: FloatArray  # -x·e, then the slopes that count
    changed: Flags  # pairs that a change decides
    changed_too: Flags  # pairs that it decides in the other half
    gather: IndexArray  # places of the open pairs
    place: IndexArray  # place of each pair in the next list, -1 for none
    # scratch, one entry a candidate
    listed: IndexArray  # candidates that are in conflict
    reach: NDArray[np.float32]  # max x·f
    in_conflict: Flags
    # scratch, one entry a member
    unit_loss: FloatArray  # least loss of each lost pair
    forced: Flags  # 1 where all open pairs have to be won
    losable: IntArray  # open pairs
    budget: IntArray  # what the member loses at most
    touched: FloatArray  # what conflicts took from its pairs
    path: IntArray  # loss from no lost pair to m of them, (most + 2,)
    trial_counts: IndexArray  # counts at a candidate
    trial_fewer: IndexArray  # the same as `fewer`, (counts_size,)
    small: FloatArray  # seven vectors of coordinates, (7, d + 1)
    # scratch of probing
    roof: NDArray[np.float32]  # upper interval bounds, rounded up, one a pair
    roof_quarter: NDArray[np.float32]  # the same by 1.5
    lost: NDArray[np.uint32]  # bits of the parts on which a pair is lost
    half: NDArray[np.float32]  # half width of each coordinate
    more: IndexArray  # pairs lost on each part, (4, coordinates, members)
    loss: IntArray  # what each part loses, (4, coordinates)

    @classmethod
    def of(cls, space: Space, depth: int = 400) -> Work:
        """Return room for a search of the space, with so many boxes on the stack."""
        columns, pairs = space.columns.shape
        members, counts_size = len(space.level), max(1, space.counts_size)
        pair_lists, stack = 5 * pairs + 1024, 12 * pairs + 100_000
        scratch, conflicts, eights = 8 * (pairs // 8 + 3), len(space.conflicts.one), len(space.single)
        return _zeros(
            cls,
            ((depth, columns), "low high used point"),
            ((depth, members), "counts"),
            ((depth, counts_size), "fewer"),
            (depth, "bound pair_list at updates begin size conflict_count"),
            ((depth, 2), "conflict_begin conflict_end"),
            (stack, "upper lower open"),
            ((columns, pair_lists), "columns"),
            (pair_lists, "positive slack"),
            ((eights, pair_lists), "single"),
            (scratch, "scale value changed changed_too gather place roof roof_quarter lost"),
            (conflicts + 16, "listed reach"),
            (8 * (conflicts // 8 + 3), "in_conflict"),
            (members, "unit_loss forced losable budget touched trial_counts"),
            (int(space.most.max()) + 2, "path"),
            (counts_size, "trial_fewer"),
            ((7, columns), "small"),
            (eights, "half"),
            ((4, eights, members), "more"),
            ((4, eights), "loss"),
            conflicts=ConflictingPairs.empty(columns, 5 * conflicts + 1024),
        )


class Searchable(NamedTuple):
    """A space, the boxes that cover it, and its unit: a bound is an integer times ``2^-exponent``, plus `shift`.

    In a search by supports there is one space for each support, and boxes say in which they are (`Boxes.part`); all
    spaces have the same shape, tables and unit, and `space` is one of them.
    """

    space: Space
    roots: Boxes
    exponent: int
    shift: float
    supports: Callable[[int], Space] | None = None

    def at(self, boxes: Boxes) -> Space:
        """Return the space that these boxes, all of one, are in."""
        return self.space if self.supports is None else self.supports(int(boxes.part.max(initial=0)))

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

    def cutoff(self, value: float, size: float) -> int:
        """Return an integer that no weights of at most this value exceed.

        Args:
            value: a value of the objective.
            size: size of the statistic; values closer than 1e-12 of it are one value.
        """
        return self.integer(value) + math.ceil(math.ldexp(TOLERANCE * size, self.exponent))


def memory_needed(problem: Problem, threads: int) -> float:
    """Return about how many bytes a search of this problem takes on some threads."""
    column = 8 * (problem.d + 1) + 4 * 8 * -(-problem.d // 8) + 12
    return problem.pair_count * (PAIR_BYTES + 2 * column + threads * (_PAIR_LISTS * column + _STACK * 17))


def space_of(problem: Problem, T: FloatArray | None = None, tick: Callable[[], None] = lambda: None) -> Searchable:
    """Return the problem in the coordinates ``w = T v``, and the boxes that cover all its weights but w = 0.

    Args:
        problem: any problem that has levels.
        T: regular, (d, d); None for the weights themselves, the only choice with side constraints or a price.
        tick: called now and then; what it raises ends the work.
    """
    levels, system = problem.levels(tick), np.eye(problem.d) if T is None else np.ascontiguousarray(T)
    tables, exponent = _tables(problem, levels)
    space, varies = _space(problem, levels, tables, np.arange(problem.d), system, tick)
    roots = _roots(problem, T, varies)
    roots.used[:, space.free != 0] = 1
    reach = max(1.0, float(np.abs(np.append(roots.low, roots.high)).max(initial=0.0)))
    tick()
    conflicts = conflicting_pairs(space.columns, space.slack, reach, levels.above, levels.below)
    return Searchable(space._replace(fixed=T is None, conflicts=conflicts), roots, exponent, levels.shift)


def supports_of(problem: Problem) -> list[IntArray] | None:
    """Return the largest sets of columns that may be used, the free ones included, where a search by sets is better.

    None where the number of weights is not limited, or there are too many sets, or sets of too many columns.
    """
    most, counted = problem.max_nonzeros, np.flatnonzero(problem.counted)
    if most is None or most == len(counted) or most + len(problem.free) > _LARGEST_SUPPORT:
        return None
    if math.comb(len(counted), most) > _MOST_SUPPORTS:
        return None
    return [np.sort([*problem.free, *chosen]).astype(np.int64) for chosen in itertools.combinations(counted, most)]


def spaces_of(problem: Problem, supports: list[IntArray], tick: Callable[[], None] = lambda: None) -> Searchable:
    """Return the problem with a space for each set of columns, of one size: the other weights are 0 there.

    All of them have the same tables and unit. Each is made when it is needed, and only the latest are kept; a search
    that is stopped meanwhile gets a `CancelledError`.

    Args:
        problem: any problem that has levels.
        supports: the sets of columns, in the order of their numbers.
        tick: called now and then; what it raises ends the work.
    """
    levels = problem.levels(tick)
    tables, exponent = _tables(problem, levels)
    system, free, roots = np.eye(problem.d), ~problem.counted, []
    for part, columns in enumerate(supports):
        boxes = _roots(problem, None, np.ones(len(columns), dtype=bool))
        boxes.used[:, np.append(free[columns], False)] = 1
        boxes.part[:] = part
        roots.append(boxes)

    def go_on() -> None:
        if tables["stop"][0] != 0:
            raise CancelledError

    @functools.lru_cache(maxsize=_KEPT)
    def made(part: int) -> Space:
        return _space(problem, levels, tables, supports[part], system[:, supports[part]], go_on)[0]

    return Searchable(made(0), Boxes.joined(roots), exponent, levels.shift, made)


def _tables(problem: Problem, levels: Levels) -> tuple[dict[str, Any], int]:
    """Return the fields of a space that do not depend on columns and coordinates, and the exponent of its unit."""
    contribution, price, exponent = _integers(levels, problem)
    tables = {
        "positive": levels.positive,
        "level": levels.level,
        "start": levels.start,
        "most": levels.most_lost,
        "table": levels.table,
        "counts_at": levels.counts_at,
        "contribution": contribution,
        "step": _steps(contribution, levels),
        "price": np.where(problem.counted, price, 0),
        "counts_size": levels.counts_size,
        "stop": np.zeros(1, np.uint8),
    }
    return tables, exponent


def _space(
    problem: Problem,
    levels: Levels,
    tables: dict[str, Any],
    used: IntArray,
    T: FloatArray,
    tick: Callable[[], None],
) -> tuple[Space, NDArray[np.bool_]]:
    """Return the space of some columns, without conflicts, and which of the columns differ in some pair.

    Args:
        problem: the problem.
        levels: its levels.
        tables: from `_tables`.
        used: the columns; the weights of others are 0.
        T: weights of the coordinates, (d, coordinates).
        tick: called now and then; what it raises ends the work.
    """
    pairs, d = len(levels.above), len(used)
    columns, size = np.empty((d + 1, pairs)), np.empty(pairs)
    single, varies = np.zeros((-(-d // 8) * 8, pairs), np.float32), np.zeros(d, dtype=bool)
    X, length = problem.X[:, used], max(1, _BLOCK // (d + 1))
    for first in range(0, pairs, length):
        tick()
        block = slice(first, first + length)
        differences = X[levels.above[block]] - X[levels.below[block]]
        varies |= np.any(differences != 0, axis=0)
        columns[:, block], size[block] = _columns(differences, problem.margin, levels.steps[block], T[used])
        single[:d, block] = columns[:d, block]
    sides, counted = problem.constraints, problem.counted[used]
    most = d if problem.max_nonzeros is None else min(d, problem.max_nonzeros + int(np.sum(~counted)))
    space = Space(
        **{**tables, "price": tables["price"][used]},
        columns=columns,
        slack=SLACK * size,
        single=single,
        T=np.ascontiguousarray(T),
        A=np.zeros((0, d)) if sides is None else np.ascontiguousarray(sides.A[:, used]),
        # room for products that underflow
        b=np.zeros(0) if sides is None else sides.b + LOOSE * np.abs(sides.b) + problem.d * 2.0**-1070,
        support=most,
        free=np.append(~counted, False).astype(np.uint8),
        error=(pairs + d + 16) * 2.0**-51 * float(size.max(initial=0.0)),
        fixed=True,
        sparse=problem.C > 0 or most < d,
        conflicts=ConflictingPairs.empty(d + 1, 0),
    )
    return space, varies


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
    """Return the tables times a power of two, rounded up, the price likewise, rounded down, and the exponent."""
    perfect, price = abs(problem.trivial_bound), problem.price
    largest = max(perfect + abs(levels.shift) + price * problem.d, float(np.max(levels.contribution, initial=0.0)))
    exponent = _BITS - math.frexp(largest)[1] if largest > 0 else 0
    # a float times a power of two is exact, and so is the ceiling: a contribution has 53 bits
    contribution = np.ceil(np.ldexp(levels.contribution, exponent)).astype(np.int64)
    return contribution, math.floor(math.ldexp(price, exponent)), exponent


def _steps(contribution: IntArray, levels: Levels) -> IntArray:
    """Return nonincreasing functions below the steps of the tables."""
    steps = np.zeros(len(contribution) + 2, np.int64)
    begins = np.unique(levels.table)
    for begin, end in zip(begins, np.append(begins[1:], len(contribution)), strict=True):
        steps[begin : end - 1] = np.minimum.accumulate(contribution[begin : end - 1] - contribution[begin + 1 : end])
    return steps


def _roots(problem: Problem, T: FloatArray | None, varies: NDArray[np.bool_]) -> Boxes:
    """Return the faces of the cube where the length of w does not matter, the whole cube where it does.

    A weight whose feature is the same in both observations of every pair decides nothing. Without side constraints it
    may as well be 0, and the others scaled up to the cube's surface.
    """
    d = len(varies)
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
        >>> found = conflicting_pairs(columns, np.zeros(3), 1.0, ends, ends + 3)
        >>> found.one, found.other
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
