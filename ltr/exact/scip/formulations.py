r"""The paper's formulations: ResolvedRank (section 3.1), Subrank (3.2), AUC (appendix A.1) and preferences (A.2).

The first two have a variable per rank: t_il = 1 says that the rank of positive i reaches l. With the steps
ã_l = a_l - a_{l-1} and S_r = {l >= 2 : ã_l > 0} the statistic telescopes:

    max   n_pos a_1 + sum_{i in S+} sum_{l in S_r} ã_l t_il  -  C sum_j γ_j,    z_ik as in `base`.

**Subrank.** The rank of i is ``1 + sum_k z_ik``:

    s.t.  t_il <= 1/(l-1) sum_k z_ik                        i in S+, l in S_r        (rank_reached)

**ResolvedRank**, constraint by constraint as printed: r_i in {0, ..., n-1} is the ResolvedRank, the rank of i is
r_i + 1, and L is `base`'s scale:

    s.t.  z_ik >= w·(x_i - x_k) / L                i != k                  (in_order)
          r_i - r_k >= 1 + n (z_ik - 1)            i != k                  (above)
          r_k - r_i >= 1 - n z_ik                  i in S+, k in S-        (tie)
          r_k - r_i >= 1 - n z_ik                  i < k of equal label    (tie)
          t_il <= r_i / (l-1)                      i in S+, l in S_r       (rank_reached)

*What it leaves out.* in_order and `base`'s row make weights with any score difference strictly between 0 and ε
infeasible. The model's optimum is therefore that of the regular weights only, and its bound says nothing about the
others (`exact` is False).

The other two maximise a weighted sum of won comparisons:

    max   constant + sum over pairs of  π_ik z_ik  -  C sum_j γ_j
    s.t.  z_ik <= w·(x_i - x_k) + 1 - ε                     for each pair            (see `base`)

**AUC** (the paper's appendix A.1). Where a_l = a_1 + β (l - 1) is linear in the rank, the positions of the positives
among each other cancel: with c_i = n_neg - sum_k z_ik negatives not beaten, ResolvedRank gives

    sum_p a[n - p - c_(p)] = sum_p (a[n - p] - β c_(p)) = sum_p a[n_pos - p]  +  β sum_{i in S+, k in S-} z_ik,

so counting the won positive-negative pairs is enough: π_ik = β, and the constant is sum_{l <= n_pos} a_l.

**Preferences** (appendix A.2). The pairs are those with π_ik > 0; the paper's other z_ik do not enter the objective
and constrain nothing. Edges given more than once are one pair with the sum of their weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ltr.exact.largest_margin import deepest
from ltr.exact.preferences import PairwiseProblem
from ltr.exact.problem import FloatArray, IntArray, Problem
from ltr.exact.reranking import RerankProblem
from ltr.exact.scip.base import Assignment, Expression, Formulation, RankFormulation, assign, linear


class _Ranks(RankFormulation):
    """The variables t_il of both formulations and the objective."""

    def _add_ranks(self, beaten: Callable[[int], Expression]) -> tuple[Expression, float]:
        """Add t_il and its row for each positive and each rank of S_r; return the statistic.

        `beaten` is the rank of an observation less 1.
        """
        steps = np.diff(self.a, prepend=0.0)
        self.reached = np.flatnonzero(steps > 0)[np.flatnonzero(steps > 0) > 0] + 1  # S_r, ranks from 1
        self.t = {
            i: [self.model.addVar(f"t_{i}_{rank}", vtype="B") for rank in self.reached.tolist()]
            for i in self.problem.positives.tolist()
        }
        for i, row in self.t.items():
            self.tick()
            below = beaten(i)
            for rank, t in zip(self.reached.tolist(), row, strict=True):
                self.model.addCons((rank - 1) * t - below <= 0, name=f"rank_reached_{i}_{rank}")
        gains = np.tile(steps[self.reached - 1], len(self.t))
        return linear(gains, [t for row in self.t.values() for t in row]), len(self.t) * float(self.a[0]) + self.shift

    def _assigned(self, rank: IntArray) -> Assignment:
        """Return the values of all t_il for the given ranks of the observations, 1 to n."""
        return [pair for i, row in self.t.items() for pair in assign(row, rank[i] >= self.reached)]


class Subrank(_Ranks):
    """The Subrank model of one list with labels 0 and 1 and ``ties="subrank"``."""

    name = "subrank"
    rows = 2
    ties = "subrank"

    def _build(self) -> tuple[Expression, float]:
        comparison = self._add_comparisons(self._problem_pairs())

        def beaten(i: int) -> Expression:
            return linear([1.0] * (self.problem.n - 1), (comparison[i, k] for k in range(self.problem.n) if k != i))

        return self._add_ranks(beaten)

    def _complete(self, wins: NDArray[np.bool_], w: FloatArray) -> Assignment:
        rank = np.ones(self.problem.n, dtype=np.int64)
        np.add.at(rank, self.pairs[:, 0], wins)
        return assign(self.z, wins) + self._assigned(rank)


class ResolvedRank(_Ranks):
    """The paper's ResolvedRank model of one list with labels 0 and 1 and ``ties="resolved"``."""

    name = "resolved"
    exact = False
    rows = 4

    def _build(self) -> tuple[Expression, float]:
        n, y = self.problem.n, self.problem.gains
        self._require(n**2)
        comparison = self._add_comparisons(np.argwhere(~np.eye(n, dtype=bool)))
        for block, rows in self._differences(self.pairs):
            for (i, k), row, z in zip(self.pairs[block].tolist(), rows, self.z[block], strict=True):
                self.model.addCons(self.scale * z - linear(row, self.w) >= 0, name=f"in_order_{i}_{k}")
        self.r = [self.model.addVar(f"r_{i}", vtype="I", lb=0, ub=n - 1) for i in range(n)]
        for (i, k), z in comparison.items():
            self.tick()
            self.model.addCons(self.r[i] - self.r[k] - n * z >= 1 - n, name=f"above_{i}_{k}")
        for (i, k), z in comparison.items():
            if y[i] > y[k] or (y[i] == y[k] and i < k):
                self.model.addCons(self.r[k] - self.r[i] + n * z >= 1, name=f"tie_{i}_{k}")
        return self._add_ranks(self.r.__getitem__)

    def complete(self, w: FloatArray) -> Assignment | None:
        """Extend weights to a full solution; weights that are not regular are first moved, where their order allows."""
        regular = w if self._groups(w) is not None else self._regular(w)
        return None if regular is None or self._groups(regular) is None else super().complete(regular)

    def _groups(self, w: FloatArray) -> IntArray | None:
        """Return the number of distinct scores below that of each observation; None if w is not regular."""
        scores = self.problem.X @ w
        order = np.argsort(scores, kind="stable")
        gap = np.diff(scores[order])
        tied = gap <= 1e-12 * max(1.0, float(np.max(np.abs(scores))))
        if np.any(~tied & (gap < self.problem.margin)):
            return None
        group = np.empty(len(scores), dtype=np.int64)
        group[order] = np.concatenate([[0], np.cumsum(~tied)])
        return group

    def _regular(self, w: FloatArray) -> FloatArray | None:
        """Return weights with the support and the order of scores of w whose neighbours are at least ε apart."""
        X = self.problem.X
        order = np.lexsort((self.problem.gains, X @ w))
        steps = (X[order[1:]] - X[order[:-1]]) * (w != 0)
        return deepest(self.problem, steps[np.any(steps != 0, axis=1)], w != 0)

    def _complete(self, wins: NDArray[np.bool_], w: FloatArray) -> Assignment | None:
        group = self._groups(w)
        if group is None:
            return None
        above = group[self.pairs[:, 0]] > group[self.pairs[:, 1]]
        rank = np.empty(self.problem.n, dtype=np.int64)
        rank[np.lexsort((np.arange(self.problem.n), -self.problem.gains, group))] = np.arange(self.problem.n)
        return assign(self.z, above) + assign(self.r, rank) + self._assigned(rank + 1)


class Auc(RankFormulation):
    """The AUC model of one list with labels 0 and 1, statistic ``auc`` or ``wrs``, and ``ties="resolved"``."""

    name = "auc"

    @classmethod
    def check(cls, problem: Problem) -> RerankProblem:
        """Return the problem; raise ValueError for another kind, or rank weights that do not rise in equal steps."""
        given = super().check(problem)
        steps = np.diff(given.a)
        if not (steps[0] > 0 and np.ptp(steps) <= 8 * np.finfo(np.float64).eps * given.a[-1]):
            raise ValueError(f"the auc model needs statistic 'auc' or 'wrs', got {problem.describe()}")
        return given

    def _build(self) -> tuple[Expression, float]:
        self._add_comparisons(self._problem_pairs())
        beta = float(self.a[-1] - self.a[0]) / (self.problem.n - 1)
        return linear([beta] * len(self.z), self.z), math.fsum(self.a[: len(self.problem.positives)]) + self.shift


class Pairwise(Formulation):
    """The model of a `PairwiseProblem`."""

    name = "pairwise"
    problem: PairwiseProblem

    @classmethod
    def check(cls, problem: Problem) -> Problem:
        """Return the problem; raise ValueError for another kind."""
        if not isinstance(problem, PairwiseProblem):
            raise ValueError(f"the pairwise model needs a PairwiseProblem, got {problem.describe()}")
        return problem

    def _build(self) -> tuple[Expression, float]:
        pairs, at = np.unique(self._problem_pairs(), axis=0, return_inverse=True)
        self._add_comparisons(pairs)
        return linear(np.bincount(at.ravel(), weights=self.problem.weights / self.unit), self.z), 0.0
