r"""Vertices of small boxes: weights at which score differences equal the margin exactly.

Where some pairs have ``w·δ = margin`` at a point, branch and bound makes boxes around it ever smaller without deciding
these pairs: at the point all may be won, and next to it one of them is lost. Such weights have simple ratios, or are
the rational solution of d of these equations.

**The largest value on a box.** Every pair is won on a closed half-space, and winning one more never lowers the value,
nor the statistic of a demand. The objective is constant on the open faces of the arrangement of the planes
``w·δ = margin * steps`` of the undecided pairs, the sides of the box, ``w_j = 0`` and the side constraints; on the
boundary of a face it is never smaller. So the largest value is attained at a vertex of the arrangement. Where there are
few vertices, all are evaluated in rational arithmetic. A vertex need not be a float64 vector, so the weights offered
are the middle of the best vertices, which lies inside the region that they span, and float64 neighbours of one of them.
The 2d sides of a box make many vertices, and the d + 1 sides of a simplex around it far fewer, so the simplex takes its
place: its largest value is at least as large. Side constraints are loosened by all that their tolerance allows, so the
value bounds all weights that satisfy them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from ltr.exact import tuning
from ltr.exact.constraints import SIDE_TOLERANCE
from ltr.exact.levels import Levels, value
from ltr.exact.problem import FloatArray, IntArray, Problem
from ltr.exact.state import SolveState

Point = tuple[Fraction, ...]
Plane = tuple[int, ...]
"""Whole multiples of the numbers a and b of a plane ``a·w = b``."""

_ERROR = 1e-14  # relative error of sums over features, with room to spare


def offer_simple(state: SolveState, low: FloatArray, high: FloatArray) -> None:
    """Offer two points of ``low <= w <= high``: the one with the simplest fractions, and with binary fractions."""
    ends = [(Fraction(a), Fraction(b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    for w in dict.fromkeys(tuple(float(simplest(*end)) for end in ends) for simplest in (_simplest, _simplest_binary)):
        state.offer(w)


def largest_value(state: SolveState, problem: Problem, low: FloatArray, high: FloatArray) -> float | None:
    """Return the largest objective over a simplex around ``low <= w <= high``; None where that takes too much work.

    The weights that attain it are offered to `state`.
    """
    simplex = _Simplex(problem, *problem.all_levels(state.check), low, high)
    if simplex.work > tuning.VERTICES_WORK:
        return None
    best = -math.inf
    attained: dict[tuple[bool, ...], list[Point]] = {}  # vertices with the largest value, by the pairs that they win
    for w in simplex.vertices():
        state.check()
        wins = simplex.wins(w)
        if (found := simplex.objective(w, wins)) > best:
            best, attained = found, {}
        if found == best:
            attained.setdefault(wins, []).append(w)
    for vertices in itertools.islice(attained.values(), tuning.VERTICES_OFFERED):
        # all points between these win the same pairs
        middle = [float(sum(column) / len(vertices)) for column in zip(*vertices, strict=True)]
        for candidate in (middle, *itertools.islice(_neighbours(vertices[0]), tuning.VERTICES_NEIGHBOURS)):
            state.offer(candidate)
    return best


class _Simplex:
    """A simplex around a box, its undecided pairs, and the planes that intersect it.

    It has a corner c of the box and the points with ``sum_j |w_j - c_j| <= size``, size the sum of all widths.
    """

    def __init__(self, problem: Problem, levels: Levels, sizes: IntArray, low: FloatArray, high: FloatArray) -> None:
        self._problem, self._levels, self._first_level = problem, levels, np.cumsum([0, *sizes]).tolist()
        size = math.nextafter(float((high - low).sum() * (1 + problem.d * _ERROR)), math.inf)
        self._downwards = high > 1 - size  # the simplex stays within [-1, 1]
        wide = low < high
        low, high = (
            np.where(wide & self._downwards, np.nextafter(high - size, -2.0), low),
            np.where(wide & ~self._downwards, np.nextafter(low + size, 2.0), high),
        )
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
            differences = problem.X[levels.above] - problem.X[levels.below]
            centre, reach = differences @ middle, np.abs(differences) @ half
            limits = problem.margin * levels.steps.astype(np.float64)
            error = (problem.d + 4) * _ERROR * (np.abs(differences) @ np.abs(middle) + reach + limits) + 1e-300
            # written so that an overflow counts as undecided
            lost, won = centre + reach - limits < -error, centre - reach - limits > error
        self._won = won.tolist()
        self._open = np.flatnonzero(~(lost | won))
        margin = Fraction(problem.margin)
        self._rows = [
            (*_difference(problem.X[levels.above[q]], problem.X[levels.below[q]]), margin * int(levels.steps[q]))
            for q in self._open
        ]
        self._low, self._high = [Fraction(v) for v in low.tolist()], [Fraction(v) for v in high.tolist()]
        self._constraints = list(_loose_rows(problem))
        self._priced = problem.C > 0 or problem.max_nonzeros is not None
        self._fixed = self._fix_what_decides_nothing()
        self._free = [j for j in range(problem.d) if j not in self._fixed]
        self._slanted = self._opposite(Fraction(size))
        planes = (self._plane(row) for row in (*self._rows, *self._constraints))
        self._planes = sorted({plane for plane in planes if plane is not None} | set(self._sides()))
        self._known: dict[tuple[bool, ...], float] = {}

    def _fix_what_decides_nothing(self) -> dict[int, Fraction]:
        """Return the weights of zero width, and those that decide no undecided pair: 0 where that is allowed."""
        fixed = {}
        for j, (low, high) in enumerate(zip(self._low, self._high, strict=True)):
            if low == high or not any(row[j] for row in (*self._rows, *self._constraints)):
                fixed[j] = Fraction(0) if low <= 0 <= high else low
        return fixed

    def _plane(self, row: Point) -> Plane | None:
        """Return the plane of a pair in the free weights; None if the pair does not depend on them."""
        d = self._problem.d
        constant = row[d] - sum((row[j] * v for j, v in self._fixed.items()), Fraction(0))
        factors = [row[j] for j in self._free]
        return _whole([*factors, constant]) if any(factors) else None

    def _sides(self) -> Iterator[Plane]:
        for at, j in enumerate(self._free):
            unit = [Fraction(int(at == other)) for other in range(len(self._free))]
            yield _whole([*unit, self._corner(j)])
            if self._priced and self._low[j] < 0 < self._high[j]:
                yield _whole([*unit, Fraction(0)])
        if self._free:
            yield _whole(self._slanted)

    def _corner(self, j: int) -> Fraction:
        """Return weight j at the corner of the simplex."""
        return self._high[j] if self._downwards[j] else self._low[j]

    def _opposite(self, size: Fraction) -> Point:
        """Return the side of the simplex opposite to its corner, in the free weights."""
        signs = [Fraction(-1 if self._downwards[j] else 1) for j in self._free]
        return (*signs, size + sum((s * self._corner(j) for s, j in zip(signs, self._free, strict=True)), Fraction(0)))

    @property
    def work(self) -> int:
        """Approximate number of operations on fractions needed for all vertices."""
        free = len(self._free)
        return math.comb(len(self._planes), free) * (free**3 + len(self._open) * free + 1)

    def vertices(self) -> Iterator[Point]:
        """Yield the points of the simplex where as many planes intersect as weights are free, some repeatedly."""
        most, slanted = self._problem.max_nonzeros, self._slanted
        ends = [(*self._low[j].as_integer_ratio(), *self._high[j].as_integer_ratio()) for j in self._free]
        for chosen in itertools.combinations(self._planes, len(self._free)):
            solution = _solve(chosen)
            if solution is None:
                continue
            tops, bottom = solution
            if any(a * bottom > v * b or v * d > c * bottom for v, (a, b, c, d) in zip(tops, ends, strict=True)):
                continue  # outside
            if _dot(slanted, [Fraction(v) for v in tops]) > slanted[-1] * bottom:
                continue  # beyond the side opposite to the corner
            known = self._fixed | {j: Fraction(v, bottom) for j, v in zip(self._free, tops, strict=True)}
            w = tuple(known[j] for j in range(self._problem.d))
            few = most is None or self._problem.nonzeros(w) <= most
            if few and all(_dot(row, w) <= row[-1] for row in self._constraints):
                yield w

    def wins(self, w: Point) -> tuple[bool, ...]:
        """Return which undecided pairs a point wins."""
        return tuple(_dot(row, w) >= row[-1] for row in self._rows)

    def objective(self, w: Point, wins: tuple[bool, ...]) -> float:
        """Return the objective at a point that wins these undecided pairs, -inf if it misses a demand."""
        if wins not in self._known:
            won = list(self._won)
            for q, wins_it in zip(self._open.tolist(), wins, strict=True):
                won[q] = wins_it
            own, *asked = (value(self._levels, won, range(*ends)) for ends in itertools.pairwise(self._first_level))
            for demanded, found in zip(self._problem.demanded, asked, strict=True):
                if found + demanded.problem.shift < demanded.doubtful:
                    own = -math.inf
            self._known[wins] = own + self._levels.shift
        return self._known[wins] - self._problem.C * self._problem.nonzeros(w)


def _difference(above: FloatArray, below: FloatArray) -> Point:
    """Return the difference of two observations, which as a float64 would be rounded."""
    return tuple(Fraction(a) - Fraction(b) for a, b in zip(above.tolist(), below.tolist(), strict=True))


def _dot(row: Point, w: Sequence[Fraction]) -> Fraction:
    """Return the product of weights and a row, whose last number is its limit."""
    return sum((a * v for a, v in zip(row, w, strict=False) if a and v), Fraction(0))


def _loose_rows(problem: Problem) -> Iterator[Point]:
    """Yield the side constraints (A, b), loosened as much as `LinearConstraints` allows in the unit box."""
    for row, limit in zip(problem.sides.A.tolist(), problem.sides.b.tolist(), strict=True):
        terms, b = [Fraction(a) for a in row], Fraction(limit)
        alone = b == 0 and sum(1 for a in terms if a) == 1  # the sign of a weight, where the tolerance allows nothing
        room = 0 if alone else Fraction(SIDE_TOLERANCE) * (abs(b) + sum(map(abs, terms)))
        yield (*terms, b + room)


def _whole(row: Sequence[Fraction]) -> Plane:
    """Return the smallest whole multiples of the numbers of a plane, the first of them above 0."""
    scale = math.lcm(*(v.denominator for v in row))
    whole = [v.numerator * (scale // v.denominator) for v in row]
    unit = math.gcd(*whole) * (1 if next(v for v in whole if v) > 0 else -1)
    return tuple(v // unit for v in whole)


def _solve(planes: Sequence[Plane]) -> tuple[list[int], int] | None:
    """Return the only point where planes intersect, as numerators and a denominator above 0; None if there is no such.

    The elimination stays in whole numbers (Bareiss 1968): its divisions leave no rest.
    """
    rows, before = [list(plane) for plane in planes], 1
    for k in range(len(rows)):
        pivot = next((r for r in range(k, len(rows)) if rows[r][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        lead = rows[k][k]
        for r, row in enumerate(rows):
            if r != k:
                factor = row[k]
                rows[r] = [(lead * v - factor * p) // before for v, p in zip(row, rows[k], strict=True)]
        before = lead
    sign = 1 if before > 0 else -1
    return [sign * row[-1] for row in rows], abs(before)


def _neighbours(w: Point) -> Iterator[list[float]]:
    """Yield all combinations of float64 numbers next to a point; only the point if it is a float64 vector."""
    choices = []
    for v in w:
        nearest = float(v)
        others = [x for x in (math.nextafter(nearest, -2.0), math.nextafter(nearest, 2.0)) if abs(x) <= 1]
        choices.append([nearest] if Fraction(nearest) == v else [nearest, *others])
    return map(list, itertools.product(*choices))


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction with the smallest denominator between two, by continued fractions."""
    if low <= 0 <= high:
        return Fraction(0)
    if high < 0:
        return -_simplest(-high, -low)
    whole = math.ceil(low)
    if whole <= high:
        return Fraction(whole)
    whole -= 1
    return whole + 1 / _simplest(1 / (high - whole), 1 / (low - whole))


def _simplest_binary(low: Fraction, high: Fraction) -> Fraction:
    """Return the multiple of the largest possible power of two between two fractions."""
    unit = Fraction(1)
    while math.ceil(low / unit) > high / unit:
        unit /= 2
    return math.ceil(low / unit) * unit
