"""The exact optimum of small problems with demands, by branch and bound over which pairs are won; random instances.

All statistics of a problem depend on its weights through the pairs that these win, and none of them falls when more
pairs are won: a gain is the sum of its steps between neighbouring grades, each step is a statistic of two classes, and
there a pair that is won moves a positive up. So the largest objective is the largest over sets of pairs that some
weights win together, whatever they do with all others. Pairs are divided into won and lost; a lost one asks for
nothing. Linear programs say whether weights win all that have to be won, and their solutions are weights to try.

A linear program errs by rounding, so it is asked twice: whether weights win by a little more than the margin, which
gives a value that is reached for sure, and whether they win by a little less, which no weights exceed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import highspy
import numpy as np

from ltr.exact import Demand, LinearConstraints, RerankProblem, Solution, Status
from tests.reference import exact_scores, random_features, slow_weights

ROOM = 1e-6  # by which a pair is won for sure, or may be won, relative to its difference
STATISTICS = ("dcg", "auc", "wrs", "mrr", "wta", "dcg@3", "hits@3", "hits@1", "pauc@4", "power(p=2)", "recall@3")
MARGINS = (1e-4, 1e-4, 1e-2, 0.3)


class Best(NamedTuple):
    """The largest objective that is reached for sure, and one that no weights exceed; -inf where none are feasible."""

    sure: float
    possible: float


class Values:
    """The statistics of a problem and of its demands as functions of the pairs that are won.

    Attributes:
        pairs: upper and lower row and the margins between them, one pair a row.
        impossible: pairs of equal rows, which no weights win, (pairs,).
    """

    def __init__(self, problem: RerankProblem) -> None:
        self.problem = problem
        self._number: dict[tuple[int, int, int], int] = {}
        self._parts = [list(self._of(of)) for of in (problem, *(one.problem for one in problem.demanded))]
        self.pairs = np.array(list(self._number), dtype=np.int64).reshape(-1, 3)
        self.impossible = (problem.X[self.pairs[:, 0]] == problem.X[self.pairs[:, 1]]).all(axis=1)

    def _of(self, of: RerankProblem) -> Iterator[tuple[float, np.ndarray, np.ndarray | None]]:
        """Yield gains, the pairs of each row that has them, and the weights of places from the top; pairs per row."""
        for members in of.lists:
            rows, gains = members.tolist(), of.gains
            grades = sorted({float(gains[i]) for i in rows})
            weights = np.array(slow_weights(str(of.statistic), len(rows))) * of._affine[0]
            if of.ties == "subrank":
                for i in rows:
                    if gains[i] > 0:
                        pairs = [self._pair(i, k, 1) for k in rows if k != i]
                        yield float(gains[i]), np.array([pairs], dtype=np.int64), weights[::-1]
                continue
            for low, high in itertools.pairwise([0.0, *(g for g in grades if g > 0)]):
                upper = [i for i in rows if gains[i] >= high]
                lower = [k for k in rows if gains[k] < high]
                steps = {(i, k): grades.index(gains[i]) - grades.index(gains[k]) for i in upper for k in lower}
                pairs = [[self._pair(i, k, steps[i, k]) for k in lower] for i in upper]
                yield high - low, np.array(pairs, dtype=np.int64).reshape(len(upper), -1), weights[::-1]

    def _pair(self, i: int, k: int, steps: int) -> int:
        return self._number.setdefault((i, k, steps), len(self._number))

    def statistic(self, at: int, won: np.ndarray) -> float:
        """Return the statistic of the problem, for 0, or of a demand where these pairs are won, (pairs,)."""
        of = self.problem if at == 0 else self.problem.demanded[at - 1].problem
        terms = []
        for gain, pairs, weights in self._parts[at]:
            lost = np.sort((~won[pairs]).sum(axis=1))
            terms.append(gain * float(weights[lost + np.arange(len(lost))].sum()))
        return math.fsum(terms) + of._affine[1]

    def objective(self, won: np.ndarray) -> float:
        """Return the statistic of the problem, -inf where a demand is missed."""
        for at, one in enumerate(self.problem.demanded, 1):
            if self.statistic(at, won) < float(one.demand.least) - 1e-12 * one.problem.trivial_bound:
                return -math.inf
        return self.statistic(0, won)

    def won(self, w: np.ndarray) -> np.ndarray:
        """Return which pairs weights win, decided exactly."""
        scores = exact_scores(self.problem.X, w)
        margin = exact_scores([[self.problem.margin]], [1.0])[0]
        return np.array([scores[i] - scores[k] >= margin * int(steps) for i, k, steps in self.pairs], dtype=bool)


class _Programs:
    """Linear programs over the weights of a support that win chosen pairs, each by as much more as all can."""

    def __init__(self, values: Values, support: list[int], signs: dict[int, int]) -> None:
        problem, self.d = values.problem, values.problem.d
        first, second, steps = values.pairs.T
        D = problem.X[first] - problem.X[second]
        size = np.where(values.impossible, 1.0, np.abs(D).max(axis=1, initial=0.0))
        self.D, self.least = D / size[:, None], problem.margin * steps / size
        A = np.empty((0, self.d)) if problem.constraints is None else problem.constraints.A
        b = np.empty(0) if problem.constraints is None else problem.constraints.b
        h = self._highs = highspy.Highs()
        h.setOptionValue("output_flag", False)
        h.setOptionValue("presolve", "off")
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            h.setOptionValue(name, 1e-10)
        for j in range(self.d):
            low, high = (-problem.reach, problem.reach) if j in support else (0.0, 0.0)
            if j in signs:
                low, high = (problem.least_required, high) if signs[j] > 0 else (low, -problem.least_required)
            h.addVar(low, high)
        h.addVar(-1.0, 1.0)
        h.changeColCost(self.d, -1.0)
        every = np.arange(self.d, dtype=np.int32)
        for row in self.D:
            h.addRow(-highspy.kHighsInf, highspy.kHighsInf, self.d + 1, np.append(every, self.d), np.append(row, -1.0))
        for row, limit in zip(A, b, strict=True):
            h.addRow(-highspy.kHighsInf, float(limit), self.d, every, row)

    def force(self, pair: int, *, on: bool) -> None:
        self._highs.changeRowBounds(pair, float(self.least[pair]) if on else -highspy.kHighsInf, highspy.kHighsInf)

    def solve(self) -> tuple[float, np.ndarray]:
        """Return by how much more the pairs can be won, -inf where the side constraints do not allow any weights."""
        for _ in range(2):
            self._highs.run()
            status = self._highs.getModelStatus()
            if status == highspy.HighsModelStatus.kInfeasible:
                return -math.inf, np.zeros(self.d)
            if status == highspy.HighsModelStatus.kOptimal:
                break
            self._highs.clearSolver()
        else:
            raise TooLarge
        solution = np.array(self._highs.getSolution().col_value)
        return float(solution[self.d]), solution[: self.d]


class TooLarge(Exception):  # noqa: N818 - an instance to pass over
    """Raised where the search takes too long."""


def largest(problem: RerankProblem, nodes: int = 4000) -> Best:
    """Return the largest objective of a problem with real weights or few whole numbers."""
    values = Values(problem)
    if problem.integer is not None:
        grid = np.array(list(itertools.product(range(-problem.integer, problem.integer + 1), repeat=problem.d)))
        kept = [w.astype(float) for w in grid if problem.allowed(w)]
        found = max(
            (values.objective(values.won(w)) - problem.C * problem.nonzeros(w) for w in kept), default=-math.inf
        )
        return Best(found, found)
    sure, possible = (_largest(values, room, nodes) for room in (ROOM, -ROOM))
    return Best(sure, max(sure, possible))


def _largest(values: Values, room: float, nodes: int) -> float:
    problem, best, left = values.problem, -math.inf, nodes
    counted = np.flatnonzero(problem.counted).tolist()
    most = len(counted) if problem.max_nonzeros is None else problem.max_nonzeros
    sizes = range(most + 1) if problem.C > 0 else [most]
    for support in itertools.chain.from_iterable(itertools.combinations(counted, size) for size in sizes):
        if not set(problem.required) <= set(support):
            continue
        for signs in itertools.product((1, -1), repeat=len(problem.required)):
            of = dict(zip(problem.required, signs, strict=True))
            search = _Search(values, _Programs(values, [*support, *problem.free], of), room, left)
            best = max(best, search.run(best + problem.C * len(support)) - problem.C * len(support))
            left = search.left
    return best


class _Search:
    def __init__(self, values: Values, programs: _Programs, room: float, left: int) -> None:
        self.values, self.programs, self.room, self.left = values, programs, room, left

    def run(self, best: float) -> float:
        self.best = best
        self._divide(~self.values.impossible, np.zeros(len(self.values.pairs), dtype=bool))
        return self.best

    def _divide(self, may: np.ndarray, must: np.ndarray) -> None:
        """Search the sets of pairs that hold `must` and no others than `may`."""
        self.left -= 1
        if self.left < 0:
            raise TooLarge
        if self.values.objective(may) <= self.best + 1e-12:
            return
        most, w = self.programs.solve()
        if most == -math.inf or (must.any() and most < self.room):
            return
        may = may.copy()
        while True:
            won = (self.programs.D @ w >= self.programs.least + self.room) | must
            self.best = max(self.best, self.values.objective(won & may))
            open_pairs = np.flatnonzero(may & ~won)
            if self.values.objective(may) <= self.best + 1e-12 or not len(open_pairs):
                return
            pair = int(open_pairs[0])
            must[pair] = True
            self.programs.force(pair, on=True)
            self._divide(may, must)
            self.programs.force(pair, on=False)
            must[pair] = False
            may[pair] = False


def check(problem: RerankProblem, answer: Solution, best: Best, *, finished: bool = True) -> None:
    """Assert that an answer is right, and that it is a proof if nothing cut the search short."""
    size, values = 1e-9 * max(1.0, problem.trivial_bound), Values(problem)
    if math.isfinite(answer.value):
        assert problem.feasible(answer.weights)
        assert answer.value == problem.evaluate(answer.weights)
        own = values.objective(values.won(answer.weights)) - problem.C * problem.nonzeros(answer.weights)
        assert abs(own - answer.value) <= size, (own, answer.value)
        assert answer.value <= best.possible + size, (answer, best)
    assert answer.bound >= best.sure - size, (answer, best)
    assert answer.bound >= answer.value
    if answer.status is Status.INFEASIBLE:
        assert best.sure == -math.inf, (answer, best)
        assert answer.value == answer.bound == -math.inf
    if answer.status is Status.OPTIMAL:
        assert answer.value >= best.sure - size, (answer, best)
    if finished and best.sure == best.possible:
        assert answer.status is (Status.OPTIMAL if math.isfinite(best.sure) else Status.INFEASIBLE), (answer, best)


# --- instances -------------------------------------------------------------------------------------------------


def instance(seed: int) -> RerankProblem:
    """A small problem with one to three demands, of which some cannot be met, and now and then all else there is."""
    rng = np.random.default_rng([20260711, seed])
    while (found := _instance(rng)) is None:
        pass
    return found


def _instance(rng: np.random.Generator) -> RerankProblem | None:
    d = int(rng.integers(4, 7)) if rng.random() < 0.25 else int(rng.integers(1, 4))
    n = int(rng.integers(4, 7 if d > 3 else 9))
    X = random_features(rng, n, d) if (grid := rng.random() < 0.4) else rng.normal(size=(n, d))
    if not grid and rng.random() < 0.3:
        X = np.round(2 * X) / 2 + rng.normal(size=X.shape) * rng.choice([0.0, 1e-3])
    y = rng.integers(0, 4 if rng.random() < 0.3 else 2, n)
    margin = float(rng.choice(MARGINS))
    common: dict[str, Any] = {"margin": margin, "qid": rng.integers(0, 3, n) if rng.random() < 0.25 else None}
    options: dict[str, Any] = {"ties": "subrank" if rng.random() < 0.15 else "resolved"}
    if rng.random() < 0.15:
        common.update(integer=int(rng.integers(1, 4 if d < 4 else 2)), margin=float(rng.choice([0.5, 1.0, 1e-4])))
    if rng.random() < 0.2:
        options["C"] = float(rng.choice([0.01, 0.2]))
    if rng.random() < 0.2:
        options["max_nonzeros"] = int(rng.integers(1, d + 1))
    special = int(rng.integers(d))
    if rng.random() < 0.1 and (d > 1 or "max_nonzeros" not in options):
        options["free"] = [special]
        options["max_nonzeros"] = min(options["max_nonzeros"], d - 1) if "max_nonzeros" in options else None
    elif rng.random() < 0.1:
        options["required"] = [special]
    if rng.random() < 0.2:
        A = rng.integers(-2, 3, (int(rng.integers(1, 3)), d)).astype(float)
        options["constraints"] = LinearConstraints(A, rng.choice([0.0, 0.0, 0.5, -0.25], len(A)))
    options["normalize"] = bool(rng.random() < 0.2)
    try:
        demands = [_demand(rng, X, y, common) for _ in range(int(rng.choice([1, 1, 1, 2, 2, 3])))]
        return RerankProblem(X, y, str(rng.choice(STATISTICS)), demands=demands, **common, **options)
    except ValueError:
        return None


def _demand(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, common: dict[str, Any]) -> Demand:
    labels, name = rng.integers(0, int(rng.choice([2, 2, 4])), len(X)), str(rng.choice(STATISTICS))
    if (kind := rng.random()) < 0.25:
        labels = None  # a floor in another measure of the same labels
    elif kind < 0.5:
        labels = y.max() - y  # as opposite as can be
    normalize = bool(rng.random() < 0.2)
    zero = RerankProblem(X, y, demands=[Demand(name, 0.0, labels, normalize=normalize)], **common).demanded[0]
    reach = common.get("integer", 1)
    values = [zero.value(np.rint(reach * w) if reach > 1 else w) for w in rng.uniform(-1, 1, size=(30, X.shape[1]))]
    least = float(np.quantile(values, rng.choice([0.5, 0.8, 1.0]), method="higher"))
    if rng.random() < 0.3:
        least += rng.choice([1e-6, rng.random()]) * (zero.problem.trivial_bound - least)
    return Demand(name, min(least, zero.problem.trivial_bound), labels, normalize=normalize)
