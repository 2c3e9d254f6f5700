r"""Models whose objective is a weighted sum of won comparisons: AUC, and general pairwise preferences.

    max   constant + sum over pairs of  π_ik z_ik  -  C sum_j γ_j
    s.t.  z_ik <= w·(x_i - x_k) + 1 - ε                     for each pair            (see `base`)

The strengthened form adds ``z_ik + z_ki <= 1`` where both directions are pairs (one_way).

**AUC** (the paper's appendix A.1). Where a_l = a_1 + β (l - 1) is linear in the rank, the positions of the positives
among each other cancel: with c_i = n_neg - sum_k z_ik negatives not beaten, ResolvedRank gives

    sum_p a[n - p - c_(p)] = sum_p (a[n - p] - β c_(p)) = sum_p a[n_pos - p]  +  β sum_{i in S+, k in S-} z_ik,

so counting the won positive-negative pairs is enough: π_ik = β, and the constant is sum_{l <= n_pos} a_l.

**Preferences** (appendix A.2). The pairs are those with π_ik > 0; the paper's further z_ik are in no objective and
constrain nothing. Edges given more than once are one pair with the sum of their weights.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ltr.exact.preferences import PairwiseProblem
from ltr.exact.problem import Problem
from ltr.exact.scip.base import Assignment, FloatArray, Formulation, IntArray, RankFormulation, assign, linear
from ltr.exact.scip.callbacks import Expression

__all__ = ["Auc", "Pairwise"]


class _Agreement(Formulation):
    """A model that counts won comparisons; a subclass says which ones, and their weights."""

    def _preferences(self) -> tuple[IntArray, FloatArray, float]:
        """Return distinct pairs (i, k), their weights π_ik > 0, and the constant."""
        raise NotImplementedError

    def _build(self) -> tuple[Expression, float]:
        pairs, weights, constant = self._preferences()
        comparison = self._add_comparisons(pairs)
        if self.tight:
            self._add_one_way(comparison)
        weight = {(i, k): value for (i, k), value in zip(pairs.tolist(), weights.tolist(), strict=True)}
        return linear([weight[i, k] for i, k in self.pairs.tolist()], self.z), constant

    def _complete(self, wins: NDArray[np.bool_], w: FloatArray) -> Assignment:
        return assign(self.z, wins)


class Auc(_Agreement, RankFormulation):
    """The AUC model of one list with labels 0 and 1, statistic ``auc`` or ``wrs``, and ``rank="resolved"``."""

    name = "auc"

    @classmethod
    def check(cls, problem: Problem) -> None:
        """Refuse a problem of another kind, or with rank weights that are not in equal steps."""
        a = cls.checked(problem).a
        steps = np.diff(a)
        if not (steps[0] > 0 and np.ptp(steps) <= 8 * np.finfo(np.float64).eps * a[-1]):
            raise ValueError(f"the auc model needs statistic 'auc' or 'wrs', got {problem.describe()}")

    def _preferences(self) -> tuple[IntArray, FloatArray, float]:
        pairs = self._problem_pairs()
        beta = float(self.a[-1] - self.a[0]) / (self.problem.n - 1)
        constant = math.fsum(self.a[: len(self.problem.positives)]) + self.shift
        return pairs, np.full(len(pairs), beta), constant


class Pairwise(_Agreement):
    """The model of a `PairwiseProblem`."""

    name = "pairwise"
    problem: PairwiseProblem

    @classmethod
    def check(cls, problem: Problem) -> None:
        """Refuse a problem of another kind."""
        if not isinstance(problem, PairwiseProblem):
            raise ValueError(f"the pairwise model needs a PairwiseProblem, got {problem.describe()}")

    def _preferences(self) -> tuple[IntArray, FloatArray, float]:
        pairs, at = np.unique(self._problem_pairs(), axis=0, return_inverse=True)
        weights = np.bincount(at.ravel(), weights=self.problem.weights / self.unit).astype(np.float64)
        return pairs, weights, 0.0
