r"""The paper's ResolvedRank formulation (section 3.1), constraint by constraint.

r_i in {0, ..., n-1} is the ResolvedRank, t_il = 1 says that rank r_i + 1 reaches l, L is `base`'s scale:

    max   n_pos a_1 + sum_{i in S+} sum_{l in S_r} ã_l t_il  -  C sum_j γ_j
    s.t.  z_ik <= (w·(x_i - x_k) - ε) / L + 1      i != k                  (see `base`)
          z_ik >= w·(x_i - x_k) / L                i != k                  (in_order)
          r_i - r_k >= 1 + n (z_ik - 1)            i != k                  (above)
          r_k - r_i >= 1 - n z_ik                  i in S+, k in S-        (tie)
          r_k - r_i >= 1 - n z_ik                  i < k of equal label    (tie)
          t_il <= r_i / (l-1)                      i in S+, l in S_r       (rank_reached)

*What it leaves out.* in_order and `base`'s row make weights with any score difference strictly between 0 and ε
infeasible. The largest value of the model is therefore that of the regular weights only, and its bound says nothing of
the others (`exact` is False). `ltr.exact.scip.resolved_pairs` has a model of the whole problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr.exact.largest_margin import deepest
from ltr.exact.scip.base import Assignment, FloatArray, RankFormulation, assign, linear
from ltr.exact.scip.callbacks import Expression, Variable

__all__ = ["ResolvedRank"]


class ResolvedRank(RankFormulation):
    """The paper's ResolvedRank model of a `RerankProblem` with ``rank="resolved"``.

    Raises:
        ValueError: a problem of another kind.

    Examples:
        >>> from ltr.exact.problem import RerankProblem
        >>> model = ResolvedRank(RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1]), "faithful").model
        >>> model.optimize()
        >>> round(model.getObjVal(), 4)
        1.6309
    """

    name = "resolved"
    exact = False
    rows = 4

    def _build(self) -> tuple[Expression, float]:
        problem = self.problem
        steps = np.diff(self.a, prepend=0.0)
        self.levels = np.flatnonzero(steps > 0)[np.flatnonzero(steps > 0) > 0] + 1  # S_r, ranks from 1
        self._require(problem.n**2)
        pairs = np.argwhere(~np.eye(problem.n, dtype=bool))
        self.comparison = self._add_comparisons(pairs)
        self._add_in_order()
        self.r = [self.model.addVar(f"r_{i}", vtype="I", lb=0, ub=problem.n - 1) for i in range(problem.n)]
        self._add_above()
        self._add_ties()
        self.t = self._add_ranks()
        flat = [t for row in self.t for t in row]
        gains = np.tile(steps[self.levels - 1], len(self.t))
        return linear(gains, flat), len(problem.positives) * float(self.a[0]) + self.shift

    def _add_in_order(self) -> None:
        for block, rows in self._differences(self.pairs):
            for (i, k), row, z in zip(self.pairs[block].tolist(), rows, self.z[block], strict=True):
                self.model.addCons(self.scale * z - linear(row, self.w) >= 0, name=f"in_order_{i}_{k}")

    def _add_above(self) -> None:
        n = self.problem.n
        for (i, k), z in self.comparison.items():
            self.tick()
            self.model.addCons(self.r[i] - self.r[k] - n * z >= 1 - n, name=f"above_{i}_{k}")

    def _add_ties(self) -> None:
        n, y = self.problem.n, self.problem.y
        for (i, k), z in self.comparison.items():
            if y[i] > y[k] or (y[i] == y[k] and i < k):
                self.model.addCons(self.r[k] - self.r[i] + n * z >= 1, name=f"tie_{i}_{k}")

    def _add_ranks(self) -> list[list[Variable]]:
        rows = []
        for i in self.problem.positives.tolist():
            self.tick()
            row = [self.model.addVar(f"t_{i}_{level}", vtype="B") for level in self.levels.tolist()]
            for level, t in zip(self.levels.tolist(), row, strict=True):
                self.model.addCons((level - 1) * t - self.r[i] <= 0, name=f"rank_reached_{i}_{level}")
            rows.append(row)
        return rows

    def complete(self, w: FloatArray) -> Assignment | None:
        """As for every model; weights that are not regular are first moved apart, where their order allows it."""
        regular = w if self._groups(w) is not None else self._regular(w)
        return None if regular is None or self._groups(regular) is None else super().complete(regular)

    def _groups(self, w: FloatArray) -> NDArray[np.int64] | None:
        """For each observation the number of distinct scores below its own; None where w is not regular."""
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
        """Weights with the support and the order of scores of w in which neighbours are at least ε apart."""
        X, y = self.problem.X, self.problem.y
        order = np.lexsort((y, X @ w))
        steps = (X[order[1:]] - X[order[:-1]]) * (w != 0)
        return deepest(self.problem, steps[np.any(steps != 0, axis=1)], w != 0)

    def _complete(self, wins: NDArray[np.bool_], w: FloatArray) -> Assignment | None:
        group = self._groups(w)
        if group is None:
            return None
        above = group[self.pairs[:, 0]] > group[self.pairs[:, 1]]
        order = np.lexsort((np.arange(self.problem.n), -self.problem.y, group))
        rank = np.empty(self.problem.n, dtype=np.int64)
        rank[order] = np.arange(self.problem.n)
        values = assign(self.z, above) + assign(self.r, rank)
        for i, row in zip(self.problem.positives.tolist(), self.t, strict=True):
            values += assign(row, rank[i] + 1 >= self.levels)
        return values
