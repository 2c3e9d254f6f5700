r"""The optimum of tiny problems by enumeration of all vertices, and random problems to compare `solve` with.

Every set ``{w : w·δ >= margin * steps}`` is closed, and winning one more comparison never lowers the objective. So the
objective is upper semicontinuous, constant on the open faces of the arrangement of all planes ``w·δ = margin * steps``,
``w_j = 0``, ``w_j = ±1`` and the rows of the side constraints, and never smaller on the boundary of a face than inside.
The optimum is therefore attained at a vertex of the arrangement. With d <= 3 features and a handful of observations all
vertices can be enumerated in rational arithmetic. No code is shared with the solver but the weights of the statistics.
"""

from __future__ import annotations

import collections
import itertools
import math
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ltr.exact import Limits, LinearConstraints, PairwiseProblem, RerankProblem, Solution, Status, solve
from ltr.exact.problem import Problem
from ltr.exact.weight_space import WeightSpaceSearch

Plane = tuple[Fraction, ...]  # a_1 .. a_d, b of a·w = b
Point = tuple[Fraction, ...]
ZERO = Fraction(0)


# --- the optimum by vertices -----------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """Observation `above` beats `below` where w·(x_above - x_below) >= margin * steps."""

    above: int
    below: int
    steps: int


def comparisons(problem: Problem) -> list[Comparison]:
    """Return every comparison that the objective may depend on."""
    if isinstance(problem, PairwiseProblem):
        return [Comparison(int(i), int(k), 1) for i, k in problem.pairs]
    gains, qid = problem.gains.tolist(), problem.qid.tolist()
    found = []
    for one in sorted(set(qid)):
        members = [i for i, own in enumerate(qid) if own == one]
        grades = sorted({gains[i] for i in members})
        for i, k in itertools.permutations(members, 2):
            if problem.ties == "subrank" and gains[i] > 0:
                found.append(Comparison(i, k, 1))
            elif problem.ties == "resolved" and gains[i] > gains[k]:
                found.append(Comparison(i, k, grades.index(gains[i]) - grades.index(gains[k])))
    return found


def planes(problem: Problem, pairs: Sequence[Comparison], tolerance: Fraction = ZERO) -> list[Plane]:
    """Return the planes of the comparisons, of the box and of the side constraints."""
    d = problem.d
    X = [[Fraction(v) for v in row] for row in problem.X.tolist()]
    rows: list[Plane] = []
    for above, below, steps in pairs:
        delta = [a - b for a, b in zip(X[above], X[below], strict=True)]
        rows.append((*delta, Fraction(problem.margin) * steps))
    for j in range(d):
        unit = [Fraction(int(j == other)) for other in range(d)]
        rows += [(*unit, Fraction(1)), (*unit, Fraction(-1))]
    for row, limit in sides(problem):
        # a row that may be exceeded by a share of the size of its terms is linear while no term changes its sign
        for signs in itertools.product(*((1, -1) if v and tolerance else (0,) for v in row)):
            terms = [v * (1 - sign * tolerance) for v, sign in zip(row, signs, strict=True)]
            rows.append((*terms, limit + tolerance * abs(limit)))
    return rows


def sides(problem: Problem) -> list[tuple[list[Fraction], Fraction]]:
    """Return the rows a and limits b of the side constraints a·w <= b."""
    if problem.constraints is None:
        return []
    A, b = problem.constraints.A.tolist(), problem.constraints.b.tolist()
    return [([Fraction(v) for v in row], Fraction(limit)) for row, limit in zip(A, b, strict=True)]


def determinant(rows: Sequence[Sequence[int]]) -> int:
    """Return the determinant of a matrix of at most 3 x 3."""
    if len(rows) < 2:
        return rows[0][0] if rows else 1
    first, *others = rows
    return sum(
        (-1) ** j * v * determinant([[*row[:j], *row[j + 1 :]] for row in others]) for j, v in enumerate(first) if v
    )


def primitive(row: Sequence[int]) -> tuple[int, ...]:
    """Return the one form that all multiples of a plane have."""
    divisor = math.gcd(*row) or 1
    return tuple(v // (divisor if tuple(row) > (0,) * len(row) else -divisor) for v in row)


def vertices(problem: Problem, rows: Sequence[Plane], tolerance: Fraction = ZERO) -> Iterator[Point]:
    """Yield the points of the box where the side constraints hold and as many planes meet as weights are not 0."""
    d, seen = problem.d, set()
    factors = [math.lcm(*(v.denominator for v in row)) for row in rows]
    whole = [[int(v * factor) for v in row] for row, factor in zip(rows, factors, strict=True)]
    for support in itertools.chain.from_iterable(itertools.combinations(range(d), size) for size in range(d + 1)):
        restricted = {primitive([*(row[j] for j in support), row[d]]) for row in whole}
        for chosen in itertools.combinations([row for row in restricted if any(row[:-1])], len(support)):
            if not (volume := determinant([row[:-1] for row in chosen])):
                continue
            point = [ZERO] * d
            for at, j in enumerate(support):
                point[j] = Fraction(determinant([(*row[:at], row[-1], *row[at + 1 : -1]) for row in chosen]), volume)
            key = tuple(point)
            if max(map(abs, key)) <= 1 and key not in seen:
                seen.add(key)
                if allowed(problem, key, tolerance):
                    yield key


def allowed(problem: Problem, w: Point, tolerance: Fraction = ZERO) -> bool:
    """Return whether weights satisfy the side constraints and the limit on their number."""
    if problem.max_nonzeros is not None and used(problem, w) > problem.max_nonzeros:
        return False
    for row, limit in sides(problem):
        terms = [a * v for a, v in zip(row, w, strict=True)]
        if sum(terms) > limit + tolerance * (abs(limit) + sum(map(abs, terms))):
            return False
    return True


def used(problem: Problem, w: Point) -> int:
    """Return the number of non-zero weights of columns that are not free."""
    return sum(1 for j, v in enumerate(w) if v and j not in problem.free)


class Objective:
    """The objective at rational weights, by definition; equal sets of comparisons won are evaluated once."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.pairs = problem, comparisons(problem)
        *X, (margin,) = [[Fraction(v) for v in row] for row in [*problem.X.tolist(), [problem.margin]]]
        unit = math.lcm(margin.denominator, *(v.denominator for row in X for v in row))
        self.X, self.margin = [[int(v * unit) for v in row] for row in X], int(margin * unit)
        self._known: dict[tuple[bool, ...], float] = {}

    def __call__(self, w: Point) -> float:
        """Return the objective at weights inside the box."""
        bottom = math.lcm(*(v.denominator for v in w))
        tops = [int(v * bottom) for v in w]
        scores, margin = [sum(map(operator.mul, tops, row)) for row in self.X], self.margin * bottom
        won = tuple(scores[p.above] - scores[p.below] >= margin * p.steps for p in self.pairs)
        if won not in self._known:
            self._known[won] = self._statistic(scores, margin, won)
        number = used(self.problem, w)
        return self._known[won] - (self.problem.C * number if number else 0.0)

    def _statistic(self, scores: list[int], margin: int, won: tuple[bool, ...]) -> float:
        problem = self.problem
        if isinstance(problem, PairwiseProblem):
            return math.fsum(v for v, wins in zip(problem.weights.tolist(), won, strict=True) if wins)
        gains, qid = problem.gains.tolist(), problem.qid.tolist()
        beaten = collections.Counter(p.above for p, wins in zip(self.pairs, won, strict=True) if wins)
        terms, positives = [], 0
        for one in sorted(set(qid)):
            members = [i for i, own in enumerate(qid) if own == one]
            weights = problem.statistic.weights(len(members)).tolist()
            grades = sorted({gains[i] for i in members})
            # a permutation by score less margin times grade, of equal ones the higher grade above
            keys = {i: (scores[i] - margin * grades.index(gains[i]), gains[i]) for i in members}
            order = sorted(members, key=keys.__getitem__)
            for i in members:
                place = beaten[i] if problem.ties == "subrank" else order.index(i)
                terms.append(gains[i] * weights[place])
                positives += gains[i] > 0
        if problem.binary:
            scale, shift = problem.statistic.affine(positives, problem.n - positives)
            return scale * math.fsum(terms) + shift
        return math.fsum(terms) / (problem.statistic.cutoff if problem.statistic.kind.share_of == "top" else 1)


def optimum(problem: Problem, tolerance: float = 0.0) -> tuple[float, list[Point]]:
    """Return the largest objective over all real weights, and the vertices that attain it.

    Args:
        problem: d <= 3.
        tolerance: by which the side constraints may be missed, see `ltr.exact.constraints.LinearConstraints`.
    """
    value, room = Objective(problem), Fraction(tolerance)
    best, attained = -math.inf, []
    for w in vertices(problem, planes(problem, value.pairs, room), room):
        found = value(w)
        near = 1e-12 * max(abs(found), abs(best)) if math.isfinite(best) else 0.0
        if found > best + near:
            best, attained = found, [w]
        elif found >= best - near:
            best = max(best, found)
            attained.append(w)
    return best, attained


def rounded(w: Point) -> Iterable[list[float]]:
    """Yield the float64 neighbours of a vertex in every combination; the vertex alone where it is one of them."""
    choices = []
    for v in w:
        nearest = float(v)
        around = {nearest, math.nextafter(nearest, -2.0), math.nextafter(nearest, 2.0)}
        choices.append([nearest] if Fraction(nearest) == v else sorted(x for x in around if abs(x) <= 1))
    return map(list, itertools.product(*choices))


def mistakes(problem: Problem, solution: Solution) -> list[str]:
    """Return what is wrong with a solution, judged by the vertices; nothing if all of it is right.

    The weights are worth what the solution says, no weights exceed its bound, and a solve that ends ``optimal`` or
    ``infeasible`` is right about that. One that ends ``inexact`` below the optimum is right where no float64 weights
    next to an optimal vertex attain it.
    """
    best, attained = optimum(problem)
    if solution.status is Status.INFEASIBLE:
        return [] if best == -math.inf else [f"infeasible, but {best!r} is attained"]
    # a proof in floating point is right up to 1e-9 of the statistic's size
    room = 1e-9 * max(abs(best) if math.isfinite(best) else 0.0, abs(problem.trivial_bound))
    found = []
    if math.isfinite(solution.value) and solution.value != problem.evaluate(solution.weights):
        found.append(f"value {solution.value!r}, but the weights have {problem.evaluate(solution.weights)!r}")
    if math.isfinite(solution.value) and not problem.feasible(solution.weights):
        found.append("the weights are not feasible")
    if solution.value > best + room:
        found.append(f"value {solution.value!r} above the optimum {best!r}")
    if solution.bound < best - room:
        found.append(f"bound {solution.bound!r} below the optimum {best!r}")
    if solution.value < best - room:
        if solution.status is Status.OPTIMAL:
            found.append(f"optimal with {solution.value!r}, but {best!r} is attained")
        if solution.status is Status.INEXACT:
            for w in itertools.chain.from_iterable(map(rounded, attained)):
                if problem.feasible(w) and problem.evaluate(w) >= best - room:
                    found.append(f"inexact, but {w} attain the optimum {best!r}")
    return found


# --- instances -------------------------------------------------------------------------------------------------

STATISTICS = (
    *("dcg", "auc", "wrs", "mrr", "wta", "pauc@3", "dcg@2", "dcg(base=e)", "power(p=3)", "power(p=0.5)@4"),
    *("hits@3", "precision@2", "recall@3"),
)
MARGINS = (0.5, 1.0, 2.0, 0.25, 1e-4, 3.0, 50.0)
PRICES = (0.0, 0.0, 0.0, 0.01, 0.2, 1.0)
FAMILIES = ("binary", "integer", "dyadic", "real", "scaled", "extreme")


def features(rng: np.random.Generator, family: str, n: int, d: int) -> tuple[np.ndarray, float]:
    """Return features of a family and a margin that matters for them."""
    margin = float(rng.choice(MARGINS))
    if family == "binary":
        X = rng.integers(0, 2, (n, d)).astype(float)
    elif family == "integer":
        X = rng.integers(-2, 4, (n, d)).astype(float)
    elif family == "dyadic":
        X = rng.integers(-8, 9, (n, d)) / 4.0
    else:
        X = rng.normal(size=(n, d))
        margin = float(rng.choice([1e-4, 1e-9, 0.3, 1.0]))
    if family == "scaled":
        scale = float(rng.choice([1e20, 1e-20, 2.0**40, 1e5]))
        X, margin = rng.integers(0, 3, (n, d)) * scale, scale * float(rng.choice([0.5, 1.0, 1e-3]))
    if family == "extreme":
        scale = float(rng.choice([1e-320, 1e-310, 1e150, 1e300]))
        X = rng.integers(-1, 3, (n, d)) * scale
        margin = float(rng.choice([1e-300, 5e-324, 1e-320, 1.7e308, 1e300, 1.0, scale]))
    if rng.random() < 0.3:
        X[rng.integers(n)] = X[rng.integers(n)]
    if rng.random() < 0.15:
        X[:, rng.integers(d)] = X[0, 0]
    return X, margin


def instance(seed: int) -> tuple[Problem, str | WeightSpaceSearch]:
    """Return a random problem, and a method that can solve it."""
    rng = np.random.default_rng([20180715, seed])
    family = FAMILIES[seed % len(FAMILIES)]
    d = int(rng.choice([1, 2, 2, 2, 3]))
    n = int(rng.integers(2, 8 if d < 3 else 7))
    X, margin = features(rng, family, n, d)
    C = float(rng.choice(PRICES))
    if rng.random() < 0.05:
        C = float(rng.choice([1e6, 1e100, 1e300]))
    constraints = side_constraints(rng, d)
    limit = int(rng.integers(1, d + 1)) if rng.random() < 0.15 else None
    options = {"constraints": constraints, "max_nonzeros": limit}
    kind = rng.choice(["rerank", "graded", "pairwise"], p=[0.6, 0.2, 0.2])
    ties = str(rng.choice(["resolved", "resolved", "subrank"]))
    problem: Problem
    if kind == "pairwise":
        pairs = [rng.choice(n, size=2, replace=False) for _ in range(int(rng.integers(1, 9)))]
        weights = rng.choice([1.0, 0.25, 2.0, 3.0], size=len(pairs))
        if rng.random() < 0.15:
            weights = np.append(weights[1:], 1.0) * float(rng.choice([1e-299, 1e298, 1e-8]))
            weights[0] = rng.choice([weights[0], 5e-324])
        problem = PairwiseProblem(X, pairs, weights=weights, C=C, margin=margin, **options)
    elif kind == "graded":
        gains = rng.choice([0.0, 0.0, 0.25, 1.0, 3.0], size=n)
        gains[rng.integers(n)] = 1.0
        if rng.random() < 0.1:
            gains[:] = 1.0
        if rng.random() < 0.1:
            gains = gains * float(rng.choice([1e-300, 1e300, 1e-8]))
        qid = rng.integers(0, int(rng.integers(1, 4)), size=n)
        statistic = str(rng.choice([s for s in STATISTICS if s != "auc"]))
        problem = RerankProblem(X, gains, statistic, C, margin, qid=qid, gain="linear", ties=ties, **options)
    else:
        y = np.zeros(n, dtype=int)
        y[rng.choice(n, size=int(rng.integers(1, n)), replace=False)] = 1
        statistic = str(rng.choice(STATISTICS))
        if rng.random() < 0.1:
            a = np.sort(rng.choice([0.0, 1e-300, 5e-324, 1.0, 1e300], size=n))
            a[-1] = max(a[-1], 5e-324)
            statistic = f"weights({','.join(map(repr, a.tolist()))})"
        problem = RerankProblem(X, y, statistic, C, margin, ties=ties, **options)
    return problem, method_for(rng, problem)


def solved(seed: int, limits: Limits) -> tuple[Problem, Solution] | None:
    """Return the instance of a seed with its solution, None where its numbers are refused as too small or large."""
    try:
        problem, method = instance(seed)
        return problem, solve(problem, method, limits)
    except ValueError as error:
        if not re.search("the value of a perfect order must be|for SCIP with these features", str(error)):
            raise
        return None


def side_constraints(rng: np.random.Generator, d: int) -> LinearConstraints | None:
    """Return now and then a row about signs or the order of two weights, which tolerances do not blur."""
    if rng.random() > 0.1:
        return None
    row = np.zeros(d)
    row[rng.integers(d)] = float(rng.choice([-1.0, 1.0]))
    return LinearConstraints([row.tolist()], [0.0])


def method_for(rng: np.random.Generator, problem: Problem) -> str | WeightSpaceSearch:
    """Return mostly the default method."""
    draw = rng.random()
    if draw < 0.8:
        return "auto"
    if draw < 0.86:
        return WeightSpaceSearch(scip=False)
    if draw < 0.9 and problem.d > 1 and problem.C == 0 and problem.constraints is None and problem.max_nonzeros is None:
        return WeightSpaceSearch(coordinates="adapted")
    if isinstance(problem, PairwiseProblem):
        return "pairwise"
    if problem.binary:
        return "resolved" if problem.ties == "resolved" else "subrank"
    return "auto"
