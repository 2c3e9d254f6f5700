r"""A problem as the compiled search reads it: pair differences in the coordinates searched, and integer tables.

**Coordinates.** The search runs over v, with w = T v (``docs/maths.md``, "Other coordinates"). A pair with difference δ
that is won when ``w·δ >= margin * steps * max|w_j|`` has the column

    e = (T'δ, -margin * steps),      won  <=>  (v, s)·e >= 0,   s = max|(Tv)_j|,

so the margin is one more coordinate, of which a box knows an interval. On the faces ``max|w_j| = 1`` with T = I that
interval is [1, 1]; the same holds for a search of the whole box [-1, 1]^d, where the margin is not scaled. Columns are
divided by powers of two that bring their largest term to about 1: that changes no sign, and nothing overflows.

**Integers.** Statistic tables are stored as integers, ``ceil(contribution * 2^k)``, so that sums are exact whatever
their order. Rounding up keeps an upper bound one; the price C is rounded down, and so is the least value that meets a
demand, whose levels follow those of the objective and have integers of their own.

**Rounding.** The interval bounds of ``(v, s)·e`` over a box are floats, updated once for every change of the box. Each
update errs by at most three half-units of ``2 ||e||_1``; `SLACK` ``* ||e||_1`` is added outwards at first and leaves
room for 100 of them, at which they are computed afresh, and the few that come between two checks of their number
(``ltr/native/weight_space/boxes.h``).

**Conflicts.** The pairs with columns e and e' are both won at x only where ``x·f >= 0``, with ``f = e / |e| + e' /
|e'|`` and |·| the sum of magnitudes without the margin. So where ``max x·f < 0`` over a box, one of them is lost on all
of it. That happens on large boxes if f is short. So the candidates are each pair and its nearest neighbours of the
opposite direction, whatever positives they belong to; two observations that are compared both ways are in conflict
everywhere. f is stored in single precision, and so is ``max x·f``: each of the two products of a coordinate and their
sum err by at most ``2^-24`` of ``|x_j f_j|`` a few times over; `apart` is below 0 by twice what that can come to, and
by the rounding error of e.

**Supports.** Where at most a few weights may differ from 0, each set of so many columns gets a space of its own, with
those columns alone. All spaces share one target, at which most of them close at their roots.

**Whole numbers.** Boxes have whole sides, and every tightened side is rounded inwards. Weights other than 0 can be
multiplied by whole numbers as long as they stay within B, which wins what they won; so those with ``max |w_j| > B / 2``
are all that matter besides w = 0. The roots divide them by the first weight that is so large, and by its sign. Every
root is divided at each required column into the part where its weight is at least as large as it must be, and that
where its negative is.

**Side constraints.** With y_j = A_rj w_j, the rule of `ltr.exact.LinearConstraints` compares the sum of
``y_j - tolerance |y_j|`` with ``b + tolerance |b|``. These terms grow with y_j, so their least value in a box is at
an end of its interval of w_j. The search takes twice the tolerance, `LOOSE`: a superset, with room for rounding. To see
this, let y_j be the terms of feasible weights in a box and z_j <= y_j the least ones there. What the sum of least terms
leaves of the limit errs by some half-units of |b| and all |z_j|, and ``|z_j| <= |y_j| + (y_j - z_j)``. The looser
tolerance leaves 1e-9 of |b| and of all |y_j|, and terms that exceed their least leave about y_j - z_j: both far more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr.exact import tuning
from ltr.exact.constraints import SIDE_TOLERANCE
from ltr.exact.levels import PAIR_BYTES, FloatArray, IndexArray, IntArray, Levels
from ltr.exact.problem import Problem
from ltr.exact.state import TOLERANCE, scalable
from ltr.native import SearchSpace, find_opposites

Flags = NDArray[np.uint8]

SLACK = 2.0**-43  # 1024 half-units: (100 updates + 8 + columns) * 3 * 2 of them, and room
BEYOND = 2**61  # as an integer of a space, above all values; below all values with its sign changed
LOOSE = 2 * SIDE_TOLERANCE
_BITS = 58  # bits of the largest bound, out of 63
_CONFLICT_EVERYWHERE = 1e-30  # above max x·f, which is -2 margin and may have underflowed to 0
# of a thread, in all pairs: copied lists, each of at most 0.6 of the pairs of the one before; interval bounds; scratch
_PAIR_LISTS, _STACK, _SCRATCH_BYTES = 1.5, 6, 34


class Space(NamedTuple):
    """A problem in the coordinates of a search; read-only, but for the byte that stops it."""

    compiled: SearchSpace
    arrays: dict[str, Any]  # what it reads, as `Space` of ``ltr/native/weight_space/space.h`` explains
    T: FloatArray  # weights of the coordinates, w = T v, (d, d); columns of I for a search by supports
    fixed: bool  # whether the margin coordinate is known; else it is the norm of T v

    @property
    def stop(self) -> Flags:
        """Set to 1 by another thread to have a search hand back its boxes at once, (1,)."""
        return self.arrays["stop"]


class Boxes(NamedTuple):
    """Boxes of weight space, one per row."""

    low: FloatArray  # least value of the d coordinates and of the margin's, (boxes, d + 1)
    high: FloatArray  # their largest value
    used: Flags  # 1 where a weight is known not to be 0 or its column is free, (boxes, d + 1)
    bound: IntArray  # upper bound of each box as an integer, (boxes,)
    part: IntArray  # number of the space that each box is in, 0 where there is only one, (boxes,)

    @classmethod
    def empty(cls, boxes: int, columns: int) -> Boxes:
        """Return arrays with room for this many boxes."""
        low, high = np.zeros((2, boxes, columns))
        bound, part = np.zeros((2, boxes), np.int64)
        return cls(low, high, np.zeros((boxes, columns), np.uint8), bound, part)

    def rows(self, at: slice | IntArray) -> Boxes:
        """Return copies of some of the boxes."""
        return Boxes(*(field[at].copy() for field in self))  # type: ignore[arg-type]

    def each(self) -> Iterator[Boxes]:
        """Return copies of the boxes, one by one."""
        return (self.rows(slice(row, row + 1)) for row in range(len(self.bound)))

    @classmethod
    def joined(cls, boxes: Iterable[Boxes]) -> Boxes:
        """Return all boxes of a sequence in one."""
        return cls(*(np.concatenate(parts) for parts in zip(*boxes, strict=True)))


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
        """Return the largest integer of the space that is no more than a value; ±2^61 beyond all values."""
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
        """Return an integer that no weights of at most this value exceed; values within 1e-12 of `size` are one."""
        return self.integer(value) + math.ceil(math.ldexp(TOLERANCE * size, self.exponent))


def memory_needed(problem: Problem, threads: int) -> float:
    """Return about how many bytes a search of this problem takes on this many threads."""
    column = 8 * (problem.d + 1) + 4 * 8 * -(-problem.d // 8) + 12
    moved = 2 * 8 * -(-problem.d // 8)  # counts of probing
    thread = _PAIR_LISTS * column + _STACK * 17 + _SCRATCH_BYTES + moved
    return problem.pair_count * (PAIR_BYTES + 2 * column + threads * thread)


def space_of(problem: Problem, T: FloatArray | None = None, tick: Callable[[], None] = lambda: None) -> Searchable:
    """Return the problem in the coordinates ``w = T v``, and the boxes that cover all its weights but w = 0.

    T is a regular matrix, (d, d), or None for the weights themselves, the only choice with side constraints or a price.
    `tick` is called now and then; what it raises ends the work.
    """
    levels, sizes = problem.all_levels(tick)
    tables, exponent = _tables(problem, levels, sizes)
    space, roots = _space(problem, levels, tables, np.arange(problem.d), T, tick, objectives=len(sizes))
    return Searchable(space, roots, exponent, levels.shift)


def spaces_of(
    problem: Problem, supports: IntArray, bounds: FloatArray, tick: Callable[[], None] = lambda: None
) -> Searchable:
    """Return the problem with a space for each set of columns, of one size: the other weights are 0 there.

    Each is made when it is needed, and only the latest are kept; a search that is stopped meanwhile gets a
    `CancelledError`. `supports` are the sets of columns in the order of their numbers, (sets, columns), and `bounds`
    upper bounds on the objective of each, (sets,).
    """
    levels, sizes = problem.all_levels(tick)
    tables, exponent = _tables(problem, levels, sizes)
    roots = []
    for part, columns in enumerate(supports):
        boxes = _roots(problem, None, columns, np.ones(len(columns), dtype=bool))
        boxes.part[:] = part
        roots.append(boxes)

    def go_on() -> None:
        if tables["stop"][0] != 0:
            raise CancelledError

    @functools.lru_cache(maxsize=tuning.SPACES_KEPT)
    def made(part: int) -> Space:
        return _space(problem, levels, tables, supports[part], None, go_on)[0]

    searchable = Searchable(made(0), Boxes.joined(roots), exponent, levels.shift, made)
    size = abs(problem.trivial_bound)
    searchable.roots.bound[:] = np.array([searchable.target(bound, size) for bound in bounds])[searchable.roots.part]
    return searchable


def _tables(problem: Problem, levels: Levels, sizes: IntArray) -> tuple[dict[str, Any], int]:
    """Return the arrays of a space that do not depend on columns and coordinates, and the exponent of its unit."""
    first_level = np.cumsum([0, *sizes])
    begins = [*levels.table[first_level[:-1]].tolist(), len(levels.contribution)]
    contribution, price, exponent = _integers(levels.contribution[: begins[1]], levels.shift, problem)
    parts, least = [contribution], []
    for at, (demand, own) in enumerate(problem.demanded, 1):
        integers, _, unit = _integers(levels.contribution[begins[at] : begins[at + 1]], own.shift, own)
        parts.append(integers)
        least.append(math.floor((demand.least - Fraction(own.shift)) * Fraction(2) ** unit))
    contribution = np.concatenate(parts)
    tables = {
        "positive": levels.positive,
        "level": levels.level,
        "start": levels.start,
        "most": levels.most_lost,
        "table": levels.table,
        "counts_at": levels.counts_at,
        "contribution": contribution,
        "step": _steps(contribution, levels),
        "first_level": first_level.astype(np.int64),
        "least": np.array(least, dtype=np.int64),
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
    T: FloatArray | None,
    tick: Callable[[], None],
    objectives: int = 0,
) -> tuple[Space, Boxes]:
    """Return the space of some columns and its roots, with conflicts between the pairs of so many objectives.

    The weights of other columns are 0. T is that of `space_of`.
    """
    pairs, d = len(levels.above), len(used)
    system = np.eye(problem.d)[:, used] if T is None else np.ascontiguousarray(T)
    columns, size = np.empty((d + 1, pairs)), np.empty(pairs)
    single, varies = np.zeros((pairs, -(-d // 8) * 8), np.float32), np.zeros(d, dtype=bool)
    X, length = problem.X[:, used], max(1, tuning.BLOCK // (d + 1))
    for first in range(0, pairs, length):
        tick()
        block = slice(first, first + length)
        differences = X[levels.above[block]] - X[levels.below[block]]
        varies |= np.any(differences != 0, axis=0)
        columns[:, block], size[block] = _columns(differences, problem.margin, levels.steps[block], system[used])
        single[block, :d] = columns[:d, block].T
    sides, counted = problem.sides, problem.counted[used]
    most = d if problem.max_nonzeros is None else min(d, problem.max_nonzeros + int(np.sum(~counted)))
    slack, roots = SLACK * problem.reach * size, _roots(problem, T, used, varies)
    reach = max(1.0, float(np.abs(np.append(roots.low, roots.high)).max(initial=0.0)))
    arrays = {
        **tables,
        **conflicting_pairs(columns, slack, reach, levels.above, levels.below, objectives),
        "price": tables["price"][used],
        "columns": columns,
        "slack": slack,
        "single": single,
        "T": np.ascontiguousarray(system),
        "A": np.ascontiguousarray(sides.A[:, used]),
        # room for products that underflow
        "b": sides.b + LOOSE * np.abs(sides.b) + problem.d * 2.0**-1070,
        "loose": LOOSE,
        "support": most,
        "error": (pairs + d + 16) * 2.0**-51 * problem.reach * float(size.max(initial=0.0)),
        "fixed": T is None,
        "sparse": problem.C > 0 or most < d,
        "integer": problem.integer is not None,
    }
    space = Space(SearchSpace(**arrays), arrays, arrays["T"], T is None)
    return space, roots


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


def _integers(tables: FloatArray, shift: float, problem: Problem) -> tuple[IntArray, int, int]:
    """Return the tables times a power of two, rounded up, the price likewise, rounded down, and the exponent."""
    perfect, price = abs(problem.trivial_bound), problem.price
    largest = max(perfect + abs(shift) + price * problem.d, float(np.max(tables, initial=0.0)))
    exponent = _BITS - math.frexp(largest)[1] if largest > 0 else 0
    # a float times a power of two is exact, and so is the ceiling: a contribution has 53 bits
    contribution = np.ceil(np.ldexp(tables, exponent)).astype(np.int64)
    return contribution, math.floor(math.ldexp(price, exponent)), exponent


def _steps(contribution: IntArray, levels: Levels) -> IntArray:
    """Return nonincreasing functions below the steps of the tables."""
    steps = np.zeros(len(contribution) + 2, np.int64)
    begins = np.unique(levels.table)
    for begin, end in zip(begins, np.append(begins[1:], len(contribution)), strict=True):
        steps[begin : end - 1] = np.minimum.accumulate(contribution[begin : end - 1] - contribution[begin + 1 : end])
    return steps


def _roots(problem: Problem, T: FloatArray | None, columns: IntArray, varies: NDArray[np.bool_]) -> Boxes:
    """Return boxes that cover all weights of some columns but w = 0; those of other columns are 0.

    Where the length of w does not matter these are the faces of the cube or, for whole numbers, its outer half. A
    weight whose feature varies in no pair decides nothing: without side constraints it is 0, unless it is required.
    """
    needed = np.isin(columns, problem.required)
    if problem.constraints is not None:
        varies = np.ones(len(columns), dtype=bool)
    whole = np.where(varies | needed, problem.reach, 0.0)
    parts = [(-whole, whole)]
    if scalable(problem):
        parts = []
        for j in np.flatnonzero(whole):
            least, limits = 1.0, whole.copy()
            if problem.integer is not None:
                least = problem.integer // 2 + 1.0
                limits[:j] = np.minimum(limits[:j], least - 1.0)  # these are in the roots before
            for sign in (-1.0, 1.0):
                low, high = -limits, limits.copy()
                low[j], high[j] = sorted((sign * least, sign * problem.reach))
                parts.append((low, high))
    for j in np.flatnonzero(needed):
        end = np.arange(len(columns)) == j
        divided = [
            (np.where(end, np.maximum(low, least), low), np.where(end, np.minimum(high, most), high))
            for low, high in parts
            for least, most in ((-math.inf, -problem.least_required), (problem.least_required, math.inf))
        ]
        parts = [(low, high) for low, high in divided if np.all(low <= high)]
    d = len(columns)
    roots = Boxes.empty(len(parts), d + 1)
    for row, (low, high) in enumerate(parts):
        roots.low[row, :d], roots.high[row, :d] = low, high
    roots.used[:, :d] = (roots.low[:, :d] > 0) | (roots.high[:, :d] < 0) | ~problem.counted[columns]
    roots.low[:, d] = roots.high[:, d] = 1.0
    if T is not None:
        roots.low[:, d] = (1 - 1e-9) / np.abs(np.linalg.inv(T)).sum(axis=1).max()
        roots.high[:, d] = (1 + 1e-9) * np.abs(T).sum(axis=1).max()
    roots.bound[:] = np.iinfo(np.int64).max
    return roots


def conflicting_pairs(
    columns: FloatArray, slack: FloatArray, reach: float, above: IndexArray, below: IndexArray, objectives: int = 1
) -> dict[str, NDArray[Any]]:
    """Return the candidates among the pairs of some objectives as a space has them; none where pairs are too many.

    These are f, (d + 1, candidates), the positions of the two pairs of each, `one` and `other`, and `apart`, the number
    below which the computed ``max x·f`` proves a conflict. `columns` and `slack` are those of the space, `reach` is the
    largest size of a coordinate of a box, and `above` and `below` have the observations of each pair, (pairs,).

    Examples:
        >>> columns, ends = np.array([[1.0, -2.0, 0.5], [0.0, 0.1, 1.0], [0.0, 0.0, 0.0]]), np.arange(3, dtype=np.int32)
        >>> found = conflicting_pairs(columns, np.zeros(3), 1.0, ends, ends + 3)
        >>> found["one"], found["other"]
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32))
    """
    d, pairs = columns.shape[0] - 1, columns.shape[1]
    most = objectives * (tuning.CONFLICT_PAIRS_WIDE if d > tuning.CONFLICT_WIDE else tuning.CONFLICT_PAIRS)
    if pairs < 2 or pairs > most:
        one, other = np.zeros((2, 0), np.int32)
        f, apart = np.zeros((d + 1, 0)), np.zeros(0)
    else:
        # a pair with a larger margin than that is lost anyway
        norm = np.maximum(np.abs(columns[:d]).sum(axis=0), np.abs(columns[d]))
        units = columns / norm
        one, other = _opposites(units[:d])
        f = units[:, one] + units[:, other]
        size = reach * np.abs(f).sum(axis=0)
        error = (2 * d + 10) * 2.0**-23 * size + (slack / norm)[one] + (slack / norm)[other] + 2.0**-60
        both_ways = (above[one] == below[other]) & (below[one] == above[other])
        # away from 0 by more than the rounding to single precision
        apart = np.where(both_ways, _CONFLICT_EVERYWHERE, -1.001 * error)
    single = np.ascontiguousarray(f, dtype=np.float32)
    return {"conflict_columns": single, "one": one, "other": other, "apart": apart.astype(np.float32)}


def _opposites(directions: FloatArray) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return each direction, a column, with those nearest to its negative, every two once, the nearest first."""
    pairs = directions.shape[1]
    nearest = min(tuning.CONFLICTS_PER_PAIR, pairs)
    partners, distances = np.empty((pairs, nearest), dtype=np.int32), np.empty((pairs, nearest), dtype=np.float32)
    find_opposites(directions.astype(np.float32), partners, distances)
    distance, partner = distances.reshape(-1), partners.reshape(-1).astype(np.int64)
    pair = np.repeat(np.arange(pairs), nearest)
    one, other = np.minimum(pair, partner), np.maximum(pair, partner)
    _, first = np.unique(one * pairs + other, return_index=True)
    first = first[(one[first] < other[first]) & (distance[first] < tuning.CONFLICT_LENGTH)]
    first = first[np.argsort(distance[first], kind="stable")]
    return one[first].astype(np.int32), other[first].astype(np.int32)
