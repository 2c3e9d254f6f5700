"""The exact optimum of tiny problems under a margin and any side constraints, by enumerating vertices.

*Half-spaces.* At weights w with support J, all that the objective depends on is which of the closed half-spaces
``w·(x_i - x_k) >= margin`` hold w, and how many weights are not 0. Let P be the polytope of all weights that are 0
outside J, lie in the box, satisfy ``A w <= b`` and win all that w wins. It is closed, bounded and holds w, so it has a
vertex v: a point where |J| planes of the half-spaces, of the box or of the side constraints meet in one point of the
subspace of J. v wins what w wins and perhaps more, and is not 0 in J at most. Neither rank definition falls when more
comparisons are won, so v is worth at least as much as w. Hence the largest objective over all real weights is the
largest over all such vertices that are feasible.

*Tolerance.* Where a row may be exceeded by a share of the size of its terms, it is linear as long as no weight changes
its sign. The same holds then, with the planes of a row for all signs, and P within the signs of w; the vertices where
planes w_j = 0 of these meet belong to a smaller support.

Every number is an integer or a fraction, so this holds for margins, features and differences of any size. The one
thing it cannot say is whether float64 weights attain the optimum: a polytope may be a single point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from ltr.exact.problem import RerankProblem
from tests.reference import margin_ranks, slow_statistic

Plane = tuple[tuple[int, ...], int]  # (normal, offset) of normal·w >= offset
Point = tuple[tuple[int, ...], int]  # (numerators, common denominator > 0)


def vertex_optimum(problem: RerankProblem, tolerance: float = 0.0) -> tuple[float, tuple[Fraction, ...] | None]:
    """The largest objective over all real weights, and weights that have it; (-inf, None) where none are feasible.

    Args:
        problem: d <= 3.
        tolerance: of the side constraints, see `ltr.exact.problem.LinearConstraints`.
    """
    best, where = -math.inf, None
    for point, value in vertex_values(problem, tolerance):
        if value > best:
            best, where = value, point
    return best, where


def vertex_values(problem: RerankProblem, tolerance: float = 0.0) -> Iterator[tuple[tuple[Fraction, ...], float]]:
    """Every feasible vertex of every support with the objective there."""
    labels, statistic, n = problem.y.tolist(), str(problem.statistic), problem.n
    exact = [[Fraction(v) for v in row] for row in problem.X.tolist()]
    others = [k for k in range(n) if labels[k] == 0] if problem.rank == "resolved" else list(range(n))
    pairs = [(i, k) for i in range(n) if labels[i] == 1 for k in others if k != i]
    limit = Fraction(problem.margin)
    wins = [_plane([a - b for a, b in zip(exact[i], exact[k], strict=True)], limit) for i, k in pairs]
    sides = _sides(problem, Fraction(tolerance))
    values: dict[tuple[int, ...], float] = {}
    for support in _supports(problem):
        for point in _vertices([*wins, *sides, *_box(problem.d)], support, problem.d):
            numerators, denominator = point
            if not _satisfied(problem, point, Fraction(tolerance)):
                continue
            won = tuple(at for at, plane in enumerate(wins) if _holds(plane, point))
            if won not in values:
                winners = {pairs[at] for at in won}
                ranks = margin_ranks(lambda i, k, w=winners: (i, k) in w, labels, problem.rank)
                values[won] = slow_statistic(ranks, statistic, n)
            price = problem.C * sum(1 for v in numerators if v)
            yield tuple(Fraction(v, denominator) for v in numerators), values[won] - price


def nearby(weights: Sequence[Fraction], rng: np.random.Generator, steps: int = 2) -> np.ndarray:
    """Float64 weights in the box close to rational ones: each rounded, then moved by up to `steps` units in the last
    place."""
    w = np.array([float(v) for v in weights])
    return np.clip(w + rng.integers(-steps, steps + 1, size=len(w)) * np.spacing(w), -1.0, 1.0)


def satisfies(problem: RerankProblem, w: Sequence[float], tolerance: float = 0.0) -> bool:
    """Whether w is feasible with this tolerance of the side constraints."""
    ratios = [Fraction(float(v)).as_integer_ratio() for v in w]
    denominator = math.lcm(*(bottom for _, bottom in ratios))
    point = tuple(top * (denominator // bottom) for top, bottom in ratios), denominator
    few = problem.max_nonzeros is None or sum(1 for v in w if v) <= problem.max_nonzeros
    inside = all(_holds(side, point) for side in _box(problem.d))
    return few and inside and _satisfied(problem, point, Fraction(tolerance))


def _supports(problem: RerankProblem) -> Iterator[tuple[int, ...]]:
    most = problem.d if problem.max_nonzeros is None else problem.max_nonzeros
    for size in range(most + 1):
        yield from itertools.combinations(range(problem.d), size)


def _plane(normal: Sequence[Fraction], offset: Fraction) -> Plane:
    """normal·w >= offset in integers without a common divisor."""
    entries = [*normal, offset]
    factor = math.lcm(*(v.denominator for v in entries))
    integers = [int(v * factor) for v in entries]
    divisor = math.gcd(*integers) or 1
    *whole, last = (v // divisor for v in integers)
    return tuple(whole), last


def _box(d: int) -> list[Plane]:
    return [(tuple(sign * (at == j) for at in range(d)), -1) for j in range(d) for sign in (1, -1)]


def _rows(problem: RerankProblem) -> list[tuple[list[Fraction], Fraction]]:
    if problem.constraints is None:
        return []
    A, b = problem.constraints.A.tolist(), problem.constraints.b.tolist()
    return [([Fraction(v) for v in row], Fraction(limit)) for row, limit in zip(A, b, strict=True)]


def _sides(problem: RerankProblem, tolerance: Fraction) -> list[Plane]:
    """The planes of each row, for all signs of its terms."""
    return [
        _plane(
            [-v * (1 - sign * tolerance) for v, sign in zip(row, signs, strict=True)], -limit - tolerance * abs(limit)
        )
        for row, limit in _rows(problem)
        for signs in itertools.product(*((1, -1) if v and tolerance else (0,) for v in row))
    ]


def _satisfied(problem: RerankProblem, point: Point, tolerance: Fraction) -> bool:
    for row, limit in _rows(problem):
        terms = [a * Fraction(v, point[1]) for a, v in zip(row, point[0], strict=True)]
        if sum(terms) > limit + tolerance * (abs(limit) + sum(map(abs, terms))):
            return False
    return True


def _holds(plane: Plane, point: Point) -> bool:
    (normal, offset), (numerators, denominator) = plane, point
    return sum(a * v for a, v in zip(normal, numerators, strict=True)) >= offset * denominator


def _vertices(planes: Sequence[Plane], support: Sequence[int], d: int) -> set[Point]:
    """Points of the box where as many planes as the support has weights meet, the other weights being 0."""
    restricted = {_meeting_form([normal[j] for j in support], offset) for normal, offset in planes}
    points = set()
    for chosen in itertools.combinations([p for p in restricted if any(p[0])], len(support)):
        denominator = _determinant([normal for normal, _ in chosen])
        if denominator == 0:
            continue
        solution = [
            _determinant([(*normal[:at], offset, *normal[at + 1 :]) for normal, offset in chosen])
            for at in range(len(support))
        ]
        if any(abs(v) > abs(denominator) for v in solution):
            continue
        divisor = math.gcd(denominator, *solution) * (1 if denominator > 0 else -1)
        numerators = [0] * d
        for j, v in zip(support, solution, strict=True):
            numerators[j] = v // divisor
        points.add((tuple(numerators), denominator // divisor))
    return points


def _meeting_form(normal: Sequence[int], offset: int) -> Plane:
    """The plane normal·w = offset: one form for all its multiples."""
    divisor = math.gcd(*normal, offset) or 1
    if (*normal, offset) < (0,) * (len(normal) + 1):
        divisor = -divisor
    return tuple(v // divisor for v in normal), offset // divisor


def _determinant(rows: Sequence[Sequence[int]]) -> int:
    if not rows:
        return 1
    if len(rows) == 1:
        return rows[0][0]
    if len(rows) == 2:
        (a, b), (c, d) = rows
        return a * d - b * c
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
