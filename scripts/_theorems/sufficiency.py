"""When an optimum by Subranks is one by ResolvedRanks (section 4 of the paper).

With H the objective by ResolvedRanks and G the one by Subranks, G(w) <= H(w) for all w, with equality where no two
positives have the same score. Let w maximise H.

*The condition.* If no two positives agree on the support of w (the features j with w_j != 0), every maximiser of G
maximises H. Proof: change w on its support by a little, at random. Scores that differ keep their order, ties between
observations that differ on the support break, and as ResolvedRank puts tied negatives above tied positives, no
positive sinks: H does not fall, and the price is the same. What still ties agrees on the support: no two positives, so
a positive ties with negatives only, all of which stand above it, and its ResolvedRank is its Subrank. So G = H = max H
at the new weights, and for any maximiser v of G, H(v) >= G(v) >= max H.

Without a price, w may be changed everywhere, and it is enough that no two positives are duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.exact import Limits, RerankProblem, Solution, Status, solve
from ltr.exact.problem import RankName
from ltr.exact.weight_space import WeightSpaceSearch

__all__ = ["COUNTEREXAMPLES", "FAMILIES", "PRICES", "Case", "Tally", "instances", "settle", "tally"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FAMILIES = {
    "whole numbers 0 to 2, no two rows alike": "whole",
    "one binary feature, the others continuous": "mixed",
    "continuous": "continuous",
}
"""Kinds of random instances, by what they are called."""

PRICES = (0.0, 0.05, 0.2, 0.8)

_RANKS: tuple[RankName, RankName] = ("resolved", "subrank")
_N, _D = 8, 3
_MARGIN = 1e-4
_SAME = 1e-9  # values that differ by less are one
_TIME = 600.0


@dataclass(frozen=True)
class Case:
    """One list, solved by both rank definitions.

    Attributes:
        resolved: the problem by ResolvedRanks.
        subrank: the same by Subranks.
        best: the answer of the first.
        substitute: the answer of the second.
    """

    resolved: RerankProblem
    subrank: RerankProblem
    best: Solution
    substitute: Solution

    @property
    def proven(self) -> bool:
        """Whether both are optimal."""
        return self.best.status is Status.OPTIMAL and self.substitute.status is Status.OPTIMAL

    @property
    def shortfall(self) -> float:
        """What the Subrank optimum found is worth less by ResolvedRanks than their optimum."""
        return self.best.value - self.resolved.evaluate(self.substitute.weights)

    @property
    def fails(self) -> bool:
        """Whether the Subrank optimum found is no ResolvedRank optimum: the theorem's conclusion is wrong."""
        return self.shortfall > _SAME

    @property
    def apart(self) -> bool:
        """Whether the two optima have different values."""
        return self.best.value - self.substitute.value > _SAME

    @property
    def duplicates(self) -> bool:
        """Whether two observations are the same, which the paper's condition excludes."""
        return _repeats(self.resolved.X)

    @property
    def condition(self) -> bool:
        """Whether the corrected condition holds at the ResolvedRank optimum found."""
        support = self.best.weights != 0 if self.resolved.C > 0 else np.ones(self.resolved.d, dtype=bool)
        return not _repeats(self.resolved.X[self.resolved.positives][:, support])


def settle(X: ArrayLike, y: ArrayLike, C: float, statistic: str = "dcg", margin: float = _MARGIN) -> Case:
    """Solve a list by both rank definitions.

    Args:
        X: observations.
        y: labels 0 and 1.
        C: price of a non-zero weight.
        statistic: its name.
        margin: score difference that counts.
    """
    resolved, subrank = (RerankProblem(X, y, statistic, C, margin, rank=rank) for rank in _RANKS)
    best, substitute = (solve(p, WeightSpaceSearch(threads=1), Limits(time_limit=_TIME)) for p in (resolved, subrank))
    return Case(resolved, subrank, best, substitute)


COUNTEREXAMPLES = {
    "two features": ([[1.0, 0.0], [1.0, 1.0], [0.0, 0.5], [0.0, -0.5]], [1, 1, 0, 0], 0.2),
    "one feature": ([[2.0], [1.0], [0.0]], [1, 1, 0], 0.55),
}
"""Lists without duplicates on which the theorem fails, as X, y and C: by a shared value, and by weights of 0."""


@dataclass
class Tally:
    """Counts over many lists.

    Attributes:
        lists: how many.
        proven: with a proof of both optima.
        condition: where the corrected condition holds.
        apart: where the values of the optima differ.
        fails: where the Subrank optimum found is no ResolvedRank optimum.
        against: of these, where the corrected condition holds.
        zero: where the ResolvedRank optimum found is w = 0.
        worst: the largest shortfall.
    """

    lists: int = 0
    proven: int = 0
    condition: int = 0
    apart: int = 0
    fails: int = 0
    against: int = 0
    zero: int = 0
    worst: float = 0.0

    def add(self, case: Case) -> None:
        """Count a list."""
        self.lists += 1
        self.proven += case.proven
        self.condition += case.condition
        self.apart += case.apart
        self.fails += case.fails
        self.against += case.condition and (case.fails or case.apart)
        self.zero += not case.best.weights.any()
        self.worst = max(self.worst, case.shortfall)


def tally(family: str, C: float, count: int, seed: int = 0) -> Tally:
    """Solve random lists of a family at a price, and count.

    Args:
        family: a value of `FAMILIES`.
        C: price of a non-zero weight.
        count: how many lists.
        seed: of the lists, which are the same at every price.
    """
    counts = Tally()
    for X, y in instances(family, count, seed):
        counts.add(settle(X, y, C))
    return counts


def instances(family: str, count: int, seed: int) -> Iterator[tuple[FloatArray, IntArray]]:
    """Random lists without duplicates, at least two positives and a negative in each.

    Args:
        family: a value of `FAMILIES`.
        count: how many.
        seed: of all of them.
    """
    rng = np.random.default_rng(seed)
    while count:
        X, y = _features(family, rng), rng.integers(0, 2, _N)
        if 2 <= y.sum() < _N and not _repeats(X):
            count -= 1
            yield X, y


def _features(family: str, rng: np.random.Generator) -> FloatArray:
    if family == "whole":
        return rng.integers(0, 3, (_N, _D)).astype(np.float64)
    X = rng.normal(size=(_N, _D))
    if family == "mixed":
        X[:, 0] = rng.integers(0, 2, _N)
    return X


def _repeats(X: FloatArray) -> bool:
    return len(np.unique(X, axis=0)) < len(X) if X.shape[1] else len(X) > 1
