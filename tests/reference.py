"""Slow definitions from the paper, and the exact optimum of tiny problems by enumerating weight-space cells.

Nothing here uses `ltr` to compute a value: ranks are loops over definitions, arithmetic is exact (integers and
fractions), and only the finished sum of rank weights is a float.

**Cells.** With difference δ = x_i - x_k, observation i scores above k where w·δ > 0. Fix the support J of w: on the
subspace {w : w_j = 0 for j not in J} the planes w·δ = 0, together with w_j = 0 for j in J, cut space into cones.
Inside one cone the order of the scores and the number of non-zero weights are constant, so the objective is too.

*Full-dimensional cells suffice.* Let w have support J and lie on some planes. Close to w, in the same subspace and
with the same support, lies a w' off every plane whose normal is non-zero on J. All strict inequalities at w still
hold at w', so every observation that i beats at w it beats at w'; Subranks and the ResolvedRank statistic never fall
when more comparisons are won (a is nondecreasing), and the price is the same. Pairs with δ = 0 on J tie everywhere.
`cell_optimum(..., faces=True)` visits the lower-dimensional cells all the same.

*Graded gains.* A comparison won by i costs a lower gain k a place, so winning more is no reason by itself. But strict
inequalities at w still hold at w', which only reorders each group of equal scores among the places that it holds, and
at w it stands there in the worst order, gains ascending from the top. So w' has no smaller value.

*Completeness.* An orthant of the subspace is the cone of its axes. Cutting every cone found so far by one more
plane yields all cones of the arrangement with that plane, by induction on the planes. For |J| <= 3 a cone is kept as
its extreme rays in cyclic order (a polygon seen from the origin), so that a cut is polygon clipping on integers.

*Margin.* Winning by the margin implies winning strictly, so no weights beat the cells' optimum under a margin. A cell
attains its value under the margin when some w of it with max |w_j| <= 1 has all strict differences at or above it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np

from ltr.exact import RerankProblem
from ltr.exact.constraints import Demand
from ltr.exact.preferences import PairwiseProblem
from ltr.statistics import RankStatistic

Vector = tuple[int, ...]

# 17 statistics, 3 prices and 2 ranks are coprime: any 102 seeds in a row meet every combination
STATISTICS = (
    *("auc", "dcg", "wta", "mrr", "pauc@3", "dcg(base=e)", "wrs", "dcg@3", "power(p=3)", "pauc@1", "power(p=0.5)@4"),
    *("mrr@2", "hits@3", "precision@2", "recall@3", "hits@2", "weights"),
)
PRICES = (0.0, 0.01, 0.2)
TIES = ("resolved", "subrank")


# --- the paper's definitions -----------------------------------------------------------------------------------


def subranks(scores: Sequence) -> list[int]:
    """Subrank(i) = #{k : f_k < f_i}, 0 to n - 1."""
    return [sum(1 for other in scores if other < own) for own in scores]


def resolved_ranks(scores: Sequence, labels: Sequence) -> list[int]:
    """ResolvedRank: a permutation of 0..n-1 by score; a tied negative stands above a tied positive, then by index."""
    n = len(scores)
    ranks = []
    for i in range(n):
        below = 0
        for k in range(n):
            if scores[k] < scores[i]:
                below += 1
            elif scores[k] == scores[i] and k != i:
                same = labels[k] == labels[i]
                below += (k > i) if same else (labels[k] > labels[i])
        ranks.append(below)
    return ranks


def slow_weights(statistic: str, n: int) -> list[float]:
    """a_1..a_n of a statistic by name, from the list in section 2.2 of the paper."""
    text = str(statistic)
    if text.startswith("weights("):
        return [float(v) for v in text[len("weights(") : -1].split(",")]
    text, _, cutoff = text.partition("@")
    name, _, option = text.partition("(")
    number = option.rstrip(")").partition("=")[2]
    value = math.e if number == "e" else float(number or 2)
    a = []
    for rank in range(1, n + 1):
        weight = {
            "auc": lambda r: r,
            "wrs": lambda r: r,
            "pauc": lambda r: r,
            "wta": lambda r: 1 if r == n else 0,
            "mrr": lambda r: 1 / (n - r + 1),
            "dcg": lambda r: 1 / math.log(n - r + 2, value),
            "power": lambda r: r**value,
            **dict.fromkeys(("hits", "precision", "recall"), lambda r: 1),
        }[name](rank)
        a.append(float(weight) if not cutoff or rank > n - int(cutoff) else 0.0)
    return a


def slow_statistic(ranks: Iterable[int], statistic: str, n: int) -> float:
    """The statistic of positives that hold `ranks` (1 to n), AUC by its affine relation to WRS, shares of hits."""
    ranks = list(ranks)
    a = slow_weights(statistic, n)
    total = math.fsum(a[rank - 1] for rank in ranks)
    if str(statistic) == "auc":
        n_pos, n_neg = len(ranks), n - len(ranks)
        return (total - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)
    return total / (len(ranks) if str(statistic).startswith("recall") else top_of(statistic))


def top_of(statistic: str) -> int:
    """What precision divides the number of hits by; 1 for other statistics."""
    name, _, cutoff = str(statistic).partition("@")
    return int(cutoff) if name == "precision" else 1


def slow_value(scores: Sequence, labels: Sequence, statistic: str, ties: str = "resolved") -> float:
    """The rank statistic of scores, compared exactly, ties pessimistically."""
    all_ranks = resolved_ranks(scores, labels) if ties == "resolved" else subranks(scores)
    return slow_statistic((r + 1 for r, y in zip(all_ranks, labels, strict=True) if y == 1), statistic, len(labels))


def exact_scores(X, w) -> list[Fraction]:
    """w·x of each row in rational arithmetic: the float64 numbers mean exactly what they say."""
    weights = [Fraction(float(v)) for v in w]
    return [sum((a * Fraction(float(b)) for a, b in zip(weights, row, strict=True)), Fraction(0)) for row in X]


def margin_ranks(beats: Callable[[int, int], bool], labels: Sequence, ties: str = "resolved") -> list[int]:
    """Ranks (1 to n) of the positives where `beats(i, k)` tells who wins; a list built from the top has ResolvedRanks.

    A positive is placed once as many negatives stand above it as it does not beat.
    """
    n, positives = len(labels), [i for i, label in enumerate(labels) if label == 1]
    if ties == "subrank":
        return [1 + sum(beats(i, k) for k in range(n)) for i in positives]
    lost = [sum(1 for k in range(n) if labels[k] != 1 and not beats(i, k)) for i in positives]
    built = ""
    for negatives_above in range(n - len(positives) + 1):
        built += "+" * lost.count(negatives_above) + "-" * (negatives_above < n - len(positives))
    return [n - position for position, sign in enumerate(built) if sign == "+"]


def slow_margin_value(X, labels, w, statistic: str, margin: float, ties: str = "resolved") -> float:
    """The rank statistic at w where i beats k only when w·(x_i - x_k) >= margin > 0, decided in rational arithmetic."""
    scores, limit = exact_scores(X, w), Fraction(float(margin))
    return slow_statistic(margin_ranks(lambda i, k: scores[i] - scores[k] >= limit, labels, ties), statistic, len(X))


def slow_graded_value(scores: Sequence, gains: Sequence, qid: Sequence, statistic: str, ties: str, margin=0) -> float:
    """The statistic of graded lists, sorted by score minus margin times grade.

    Of equal keys the lower gain stands above without a margin (a tie), the higher one with it (it wins by just that).
    """
    name, terms = str(statistic).partition("@")[0], []
    if name in ("hits", "precision", "recall"):  # whatever the gains
        gains = [float(gain > 0) for gain in gains]
    for one in set(qid):
        members = [i for i, own in enumerate(qid) if own == one]
        found = sum(gains[i] for i in members) if name == "recall" else 1.0
        a = slow_weights(statistic, len(members))
        if ties == "subrank":
            ranks = [sum(scores[i] - scores[k] >= margin and scores[i] > scores[k] for k in members) for i in members]
        else:
            grades = sorted({gains[i] for i in members})
            keys = [(scores[i] - margin * grades.index(gains[i]), gains[i] if margin else -gains[i]) for i in members]
            order = sorted(range(len(members)), key=keys.__getitem__)
            ranks = [order.index(at) for at in range(len(members))]
        terms += [gains[i] * a[below] / (found or 1.0) for i, below in zip(members, ranks, strict=True)]
    return math.fsum(terms) / top_of(statistic)


# --- cells of a central arrangement ----------------------------------------------------------------------------


def _dot(u: Sequence, v: Sequence):
    return sum(a * b for a, b in zip(u, v, strict=True))


def _primitive(v: Sequence[int]) -> Vector:
    divisor = math.gcd(*v)
    return tuple(a // divisor for a in v)


def _integer_rows(rows) -> list[Vector]:
    """The rows of a float matrix times one common factor that makes all entries integers."""
    exact = [[Fraction(float(v)) for v in row] for row in rows]
    factor = math.lcm(*(v.denominator for row in exact for v in row))
    return [tuple(int(v * factor) for v in row) for row in exact]


def _cut(cone: list[Vector], normal: Vector) -> list[list[Vector]]:
    """The one or two full-dimensional pieces into which the plane normal·w = 0 divides a cone of 1 to 3 dimensions."""
    side = [_dot(normal, ray) for ray in cone]
    if min(side) >= 0 or max(side) <= 0:
        return [cone]
    pieces: dict[int, list[Vector]] = {1: [], -1: []}
    m = len(cone)
    for at, (ray, s) in enumerate(zip(cone, side, strict=True)):
        for sign, piece in pieces.items():
            if s * sign >= 0:
                piece.append(ray)
        following, t = cone[(at + 1) % m], side[(at + 1) % m]
        if s * t < 0 and not (m == 2 and at == 1):  # two rays have one edge, not a cycle
            crossing = _primitive([abs(t) * a + abs(s) * b for a, b in zip(ray, following, strict=True)])
            for piece in pieces.values():
                piece.append(crossing)
    if m == 2:  # keep (outer ray, crossing) for both pieces; either order is a cone
        return [sorted(piece) for piece in pieces.values()]
    return list(pieces.values())


def cells(normals: Iterable[Sequence[int]], dimension: int) -> list[list[Vector]]:
    """Extreme rays of every full-dimensional cone that the planes and the coordinate planes cut space into."""
    planes = set()
    for normal in normals:
        if any(normal):
            v = _primitive(normal)
            planes.add(max(v, tuple(-a for a in v)))
    found = []
    for signs in itertools.product((1, -1), repeat=dimension):
        axes = [tuple(s if j == at else 0 for j in range(dimension)) for at, s in enumerate(signs)]
        pieces = [axes]
        for plane in sorted(planes):
            pieces = [piece for cone in pieces for piece in _cut(cone, plane)]
        found += pieces
    return found


def _faces(cone: list[Vector]) -> list[Vector]:
    """A point inside every face of a cone but the origin: the cone itself first, then its edges and rays."""
    points = [tuple(map(sum, zip(*cone, strict=True)))]
    if len(cone) > 2:
        points += [tuple(map(sum, zip(ray, cone[at - 1], strict=True))) for at, ray in enumerate(cone)]
    return points + (cone if len(cone) > 1 else [])


def representatives(differences: Sequence[Vector], d: int, *, faces: bool = False) -> Iterable[Vector]:
    """Integer weights inside every cell of every support, the empty support (w = 0) included.

    With `faces`, also inside every lower-dimensional cell (some of them more than once).
    """
    yield (0,) * d
    for size in range(1, d + 1):
        for support in itertools.combinations(range(d), size):
            restricted = [tuple(v[j] for j in support) for v in differences]
            for cone in cells(restricted, size):
                for point in _faces(cone) if faces else _faces(cone)[:1]:
                    weights = [0] * d
                    for j, v in zip(support, point, strict=True):
                        weights[j] = v
                    yield tuple(weights)


def strict_gap(differences: Sequence[Vector], w: Vector, unit: int = 1) -> Fraction:
    """The smallest non-zero |w·δ| once w is scaled to max |w_j| = 1; `unit` is the factor that made X integer."""
    products = [abs(p) for p in (_dot(v, w) for v in differences) if p]
    return Fraction(min(products), max(map(abs, w)) * unit) if products else Fraction(0)


def _scaled(w: Vector) -> np.ndarray:
    largest = max(map(abs, w)) or 1
    return np.array([v / largest for v in w], dtype=np.float64)


def _best(differences, d, unit, value, C, faces, A):
    """The best (value, widest strict gap, w) over representatives, side constraints A w <= 0 respected."""
    rows = [] if A is None else _integer_rows(A)
    best = None
    for w in representatives([*differences, *rows], d, faces=faces or bool(rows)):
        if any(_dot(row, w) > 0 for row in rows):
            continue
        objective = value(w) - C * sum(1 for v in w if v)
        # equal cells may differ in the last bit of their sums, so the wider gap decides there
        gap = strict_gap(differences, w, unit)
        if best is None or objective > best[0] + 1e-12 or (objective > best[0] - 1e-12 and gap > best[1]):
            best = (objective, gap, w)
    return best


def _unit(X) -> int:
    return math.lcm(*(Fraction(float(v)).denominator for row in X for v in row))


def remembered(optimum):
    """Decorate an enumeration so that it runs once for the same arguments: many tests ask for the same optima."""
    found = {}

    def content(value):
        return (value.shape, value.tolist()) if isinstance(value, np.ndarray) else value

    @functools.wraps(optimum)
    def look_up(*given, **options):
        key = repr(([*map(content, given)], {name: content(value) for name, value in options.items()}))
        if key not in found:
            found[key] = optimum(*given, **options)
        *numbers, w = found[key]
        return (*numbers, w.copy())

    return look_up


def cell_optimum(
    X, y, statistic, C: float = 0.0, ties: str = "resolved", *, faces: bool = False, A=None
) -> tuple[float, np.ndarray]:
    """The largest objective over all weights (margin 0+), and weights in [-1, 1]^d that have it.

    Among optimal cells the one whose representative has the widest strict gap is returned.

    Args:
        X: observations (n, d), d <= 3.
        y: labels 0/1, (n,).
        statistic: a `RankStatistic` or its name.
        C: price of each non-zero weight.
        ties: "resolved" or "subrank".
        faces: also visit lower-dimensional cells.
        A: side constraints A w <= 0 (homogeneous ones keep the objective a function of the direction of w).
    """
    value, _, w = cell_optimum_gap(X, y, statistic, C, ties, faces=faces, A=A)
    return value, w


@remembered
def cell_optimum_gap(
    X, y, statistic, C: float = 0.0, ties: str = "resolved", *, faces: bool = False, A=None
) -> tuple[float, float, np.ndarray]:
    """As `cell_optimum`, with the smallest strict difference at w in between: margins up to it change nothing."""
    rows, labels = _integer_rows(X), [int(v) for v in y]
    n, d = len(rows), len(rows[0])
    positives = [i for i in range(n) if labels[i] == 1]
    others = [i for i in range(n) if labels[i] != 1] if ties == "resolved" else range(n)
    differences = [
        tuple(a - b for a, b in zip(rows[i], rows[k], strict=True)) for i in positives for k in others if k != i
    ]

    def value(w: Vector) -> float:
        return slow_value([_dot(row, w) for row in rows], labels, str(statistic), ties)

    best, gap, w = _best(differences, d, _unit(X), value, C, faces, A)
    return best, float(gap), _scaled(w)


@remembered
def cell_optimum_pairs(
    X, pairs, weights=None, C: float = 0.0, *, faces: bool = False, A=None
) -> tuple[float, np.ndarray]:
    """As `cell_optimum` for preferences: the largest weight of agreed pairs minus the price, and weights for it."""
    rows = _integer_rows(X)
    edges = [(int(i), int(k)) for i, k in pairs]
    prices = [1.0] * len(edges) if weights is None else [float(v) for v in weights]
    differences = [tuple(a - b for a, b in zip(rows[i], rows[k], strict=True)) for i, k in edges]

    def value(w: Vector) -> float:
        return math.fsum(price for v, price in zip(differences, prices, strict=True) if _dot(v, w) > 0)

    best, _, w = _best(differences, len(rows[0]), _unit(X), value, C, faces, A)
    return best, _scaled(w)


def cell_optimum_graded(problem: RerankProblem, *, faces: bool = False, A=None) -> tuple[float, np.ndarray]:
    """As `cell_optimum` for graded lists (margin 0+), side constraints of the problem left out."""
    gains, qid = problem.gains.tolist(), problem.qid.tolist()
    return _graded_optimum(problem.X, gains, qid, str(problem.statistic), problem.ties, problem.C, faces, A)


@remembered
def _graded_optimum(X, gains, qid, statistic, ties, C, faces, A):
    rows = _integer_rows(X)
    differences = [
        tuple(a - b for a, b in zip(rows[i], rows[k], strict=True))
        for i, k in itertools.permutations(range(len(rows)), 2)
        if qid[i] == qid[k] and (gains[i] > gains[k] or (ties == "subrank" and gains[i] > 0))
    ]

    def value(w: Vector) -> float:
        return slow_graded_value([_dot(row, w) for row in rows], gains, qid, statistic, ties)

    best, _, w = _best(differences, len(rows[0]), _unit(X), value, C, faces, A)
    return best, _scaled(w)


def cell_optimum_demanded(problem: RerankProblem, *, A=None) -> tuple[float, np.ndarray]:
    """As `cell_optimum` for lists with demands and max_nonzeros; the value is -inf where no weights are feasible.

    The statistics of demands, too, do not fall from a cell's face to its inside.
    """
    rows, objectives = _integer_rows(problem.X), [problem, *(one.problem for one in problem.demanded)]
    qid = problem.qid.tolist()
    differences = [
        tuple(a - b for a, b in zip(rows[i], rows[k], strict=True))
        for i, k in itertools.permutations(range(len(rows)), 2)
        if qid[i] == qid[k]
        and any(of.gains[i] > of.gains[k] or (of.ties == "subrank" and of.gains[i] > 0) for of in objectives)
    ]

    def statistic(of: RerankProblem, scores: Sequence) -> float:
        if of.binary:
            return slow_value(scores, of.gains.tolist(), str(of.statistic), of.ties)
        return slow_graded_value(scores, of.gains.tolist(), qid, str(of.statistic), of.ties)

    def value(w: Vector) -> float:
        scores = [_dot(row, w) for row in rows]
        met = all(statistic(of, scores) >= one.least - 1e-12 for one, of in problem.demanded)
        few = problem.max_nonzeros is None or sum(1 for v in w if v) <= problem.max_nonzeros
        return statistic(problem, scores) if met and few else -math.inf

    best, _, w = _best(differences, problem.d, _unit(problem.X), value, problem.C, False, A)
    return best, _scaled(w)


def optimum_of(problem) -> tuple[float, np.ndarray]:
    """The enumeration for the kind of a problem, side constraints left out."""
    if problem.demanded:
        return cell_optimum_demanded(problem)
    if isinstance(problem, PairwiseProblem):
        return cell_optimum_pairs(problem.X, problem.pairs, problem.weights, problem.C)
    if problem.binary:
        return cell_optimum(problem.X, problem.gains, problem.statistic, problem.C, problem.ties)
    return cell_optimum_graded(problem)


# --- instances -------------------------------------------------------------------------------------------------


def random_features(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Integer-grid features, now and then with duplicate rows, a constant column, or negative numbers."""
    X = rng.integers(0, int(rng.integers(2, 5)), size=(n, d)).astype(np.float64)
    if rng.random() < 0.4 and n > 2:
        for _ in range(int(rng.integers(1, n // 2 + 1))):
            here, there = rng.choice(n, size=2, replace=False)
            X[here] = X[there]
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = float(rng.integers(0, 3))
    return X - (rng.random() < 0.25)


def random_instance(seed: int, *, statistic: str | None = None, d: int | None = None) -> RerankProblem:
    """A tiny problem (n <= 8, d <= 3, both classes); the seed cycles through statistics, prices and ranks."""
    rng = np.random.default_rng([20180801, seed])
    n = int(rng.integers(3, 9)) if seed % 17 else 2
    X = random_features(rng, n, d or int(rng.integers(1, 4)))
    y = np.zeros(n, dtype=np.int64)
    y[rng.choice(n, size=int(rng.integers(1, n)), replace=False)] = 1
    name = statistic or STATISTICS[seed % len(STATISTICS)]
    measure = (
        RankStatistic.from_weights(np.cumsum(rng.integers(0, 4, size=n)) / 4.0)
        if name == "weights"
        else RankStatistic.parse(name)
    )
    return RerankProblem(X, y, measure, C=PRICES[seed % len(PRICES)], ties=TIES[seed % len(TIES)])


def random_pairwise(seed: int) -> PairwiseProblem:
    """A tiny preference problem: random edges, cycles and repeated edges among them, dyadic or unit weights."""
    rng = np.random.default_rng([20180802, seed])
    n = int(rng.integers(2, 9))
    X = random_features(rng, n, int(rng.integers(1, 4)))
    pairs = np.array([rng.choice(n, size=2, replace=False) for _ in range(int(rng.integers(1, 13)))])
    weights = rng.integers(1, 9, size=len(pairs)) / 4.0 if seed % 2 else None
    return PairwiseProblem(X, pairs, weights=weights, C=PRICES[seed % len(PRICES)])


def admits(model, problem) -> bool:
    """Return whether a model is about this problem."""
    try:
        model.check(problem)
    except ValueError:
        return False
    return True


def graded_problem(X, gains, qid=None, statistic="dcg", C=0.0, margin=1e-4, **options) -> RerankProblem:
    """Return the problem of these gains."""
    return RerankProblem(X, gains, statistic, C, margin, qid=qid, gain="linear", **options)


def random_graded(seed: int, *, ties: str | None = None) -> RerankProblem:
    """A tiny graded problem: 1 to 3 lists mixed up, up to 4 gains; cycles as `random_instance` does."""
    rng = np.random.default_rng([20180803, seed])
    n = int(rng.integers(2, 9))
    X = random_features(rng, n, int(rng.integers(1, 4)))
    gains = rng.choice([0.0, 0.0, 0.25, 1.0, 3.0], size=n)
    gains[rng.integers(n)] = rng.choice([0.25, 3.0])
    qid, measure = rng.integers(-1, int(rng.integers(0, 3)), size=n), STATISTICS[seed % len(STATISTICS)]
    if measure == "weights":  # they fit lists of one length
        qid, measure = None, RankStatistic.from_weights(np.cumsum(rng.integers(0, 4, size=n)) / 4.0)
    return graded_problem(X, gains, qid, measure, PRICES[seed % len(PRICES)], ties=ties or TIES[seed % len(TIES)])


def random_demanded(seed: int, **options) -> RerankProblem:
    """A random instance of labels or graded lists with one or two demands, of which some cannot be met."""
    rng = np.random.default_rng(seed)
    p = random_graded(seed, **options) if seed % 2 else random_instance(seed)
    demands = []
    for _ in range(int(rng.integers(1, 3))):
        name = ("hits@2", "dcg", "auc", "recall@3", "mrr", "precision@2", "wrs")[int(rng.integers(7))]
        labels = rng.integers(0, 2 if name == "hits@2" or rng.random() < 0.5 else 4, size=p.n)
        labels[rng.choice(p.n, size=2, replace=False)] = 0, 1
        normalize = bool(rng.integers(2)) and name in ("dcg", "recall@3")
        problem = dataclasses.replace(p, demands=[Demand(name, 0.0, labels, normalize=normalize)])
        one = problem.demanded[0]
        reached = [one.value(w) for w in rng.integers(-3, 4, size=(12, p.d)) / 3.0]
        least, most = max(reached), one.problem.trivial_bound
        at_least = [least, min(most, least + 1e-3 * most), float(np.median(reached))][int(rng.integers(3))]
        demands.append(Demand(name, at_least, labels, normalize=normalize))
    return dataclasses.replace(p, demands=demands)
