r"""The paper's Subrank formulation (section 3.2).

Observation i has ``Subrank_i + 1 = 1 + sum_k z_ik`` and t_il = 1 says that this rank reaches l. With steps
ã_l = a_l - a_{l-1} and S_r = {l >= 2 : ã_l > 0} the statistic telescopes:

    max   n_pos a_1 + sum_{i in S+} sum_{l in S_r} ã_l t_il  -  C sum_j γ_j
    s.t.  t_il <= 1/(l-1) sum_k z_ik                        i in S+, l in S_r        (rank_reached)
          z_ik <= w·(x_i - x_k) + 1 - ε                     i in S+, k != i          (see `base`)

The strengthened form replaces the first row and adds what a ranking implies; l' precedes l in S_r, from l' = 1:

          sum_{l in S_r} (l - l') t_il <= sum_k z_ik        i in S+                  (rank_reached)
          t_il <= t_il'                                     i in S+                  (ranks_below)
          sum_{i in S+} t_il <= n - l + 1                   l in S_r                 (hall)
          z_ik + z_ki <= 1                                  i, k in S+               (one_way)

rank_reached implies the paper's: by ranks_below, (l - 1) t_il <= sum over l'' <= l of the steps times t_il''.
hall: let S be the positives with t_il = 1. The lowest scored of S beats l - 1 observations, none of them in S, for
those score no less; so #S + l - 1 <= n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr.exact.scip.base import Assignment, FloatArray, RankFormulation, assign, linear
from ltr.exact.scip.callbacks import Expression, Variable

__all__ = ["Subrank"]


class Subrank(RankFormulation):
    """The Subrank model of a `RerankProblem` with ``rank="subrank"``.

    Raises:
        ValueError: a problem of another kind.

    Examples:
        >>> from ltr.exact.problem import RerankProblem
        >>> problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], rank="subrank")
        >>> model = Subrank(problem).model
        >>> model.optimize()
        >>> round(model.getObjVal(), 4)
        1.6309
    """

    name = "subrank"
    rows = 2
    rank = "subrank"

    def _build(self) -> tuple[Expression, float]:
        problem = self.problem
        steps = np.diff(self.a, prepend=0.0)
        self.levels = np.flatnonzero(steps > 0)[np.flatnonzero(steps > 0) > 0] + 1  # S_r, ranks from 1
        self.comparison = self._add_comparisons(self._problem_pairs())
        self.t = self._add_ranks()
        self._add_rank_reached()
        if self.tight:
            self._add_ranks_below()
            self._add_hall()
            self._add_one_way()
        flat = [t for row in self.t for t in row]
        gains = np.tile(steps[self.levels - 1], len(self.t))
        return linear(gains, flat), len(problem.positives) * float(self.a[0]) + self.shift

    def _add_ranks(self) -> list[list[Variable]]:
        """t_il, one row for each positive, one column for each level of S_r."""
        return [
            [self.model.addVar(f"t_{i}_{level}", vtype="B") for level in self.levels.tolist()]
            for i in self.problem.positives.tolist()
        ]

    def _beaten(self, i: int) -> Expression:
        won = [self.comparison[i, k] for k in range(self.problem.n) if (i, k) in self.comparison]
        return linear([1.0] * len(won), won)

    def _add_rank_reached(self) -> None:
        for i, row in zip(self.problem.positives.tolist(), self.t, strict=True):
            self.tick()
            beaten = self._beaten(i)
            if self.tight:
                if row:
                    widths = np.diff(self.levels, prepend=1)
                    self.model.addCons(linear(widths, row) - beaten <= 0, name=f"rank_reached_{i}")
                continue
            for level, t in zip(self.levels.tolist(), row, strict=True):
                self.model.addCons((level - 1) * t - beaten <= 0, name=f"rank_reached_{i}_{level}")

    def _add_ranks_below(self) -> None:
        for i, row in zip(self.problem.positives.tolist(), self.t, strict=True):
            for level, t, below in zip(self.levels[1:].tolist(), row[1:], row[:-1], strict=True):
                self.model.addCons(t - below <= 0, name=f"ranks_below_{i}_{level}")

    def _add_hall(self) -> None:
        for at, level in enumerate(self.levels.tolist()):
            room = self.problem.n - level + 1
            if room < len(self.t):
                column = [row[at] for row in self.t]
                self.model.addCons(linear([1.0] * len(column), column) <= room, name=f"hall_{level}")

    def _add_one_way(self) -> None:
        for (i, k), z in self.comparison.items():
            if i < k and (k, i) in self.comparison:
                self.model.addCons(z + self.comparison[k, i] <= 1, name=f"one_way_{i}_{k}")

    def _complete(self, wins: NDArray[np.bool_], w: FloatArray) -> Assignment:
        rank = np.ones(self.problem.n, dtype=np.int64)
        np.add.at(rank, self.pairs[:, 0], wins)
        values = assign(self.z, wins)
        for i, row in zip(self.problem.positives.tolist(), self.t, strict=True):
            values += assign(row, rank[i] >= self.levels)
        return values
