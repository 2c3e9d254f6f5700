r"""The paper's AUC formulation (appendix A.1).

Where a_l = a_1 + β (l - 1) is linear in the rank, the positions of the positives above each other cancel: with
c_i = n_neg - sum_k z_ik negatives not beaten, ResolvedRank gives

    sum_p a[n - p - c_(p)] = sum_p (a[n - p] - β c_(p)) = sum_p a[n_pos - p]  +  β sum_{i in S+, k in S-} z_ik,

so counting won positive-negative pairs is enough:

    max   sum_{l <= n_pos} a_l + β sum_{i in S+} sum_{k in S-} z_ik  -  C sum_j γ_j,    z_ik as in `base`.
"""

from __future__ import annotations

import math

import numpy as np

from ltr.exact.problem import Problem, RerankProblem
from ltr.exact.scip.agreement import Agreement
from ltr.exact.scip.base import FloatArray, IntArray, kind

__all__ = ["Auc", "is_linear"]


def is_linear(problem: Problem) -> bool:
    """Whether the AUC model fits: ResolvedRank and rank weights in equal steps, as ``auc`` and ``wrs`` have."""
    if not isinstance(problem, RerankProblem) or problem.rank != "resolved":
        return False
    steps = np.diff(problem.a)
    return steps[0] > 0 and bool(np.ptp(steps) <= 8 * np.finfo(np.float64).eps * problem.a[-1])


class Auc(Agreement):
    """The AUC model of a `RerankProblem` whose statistic is ``auc`` or ``wrs``, with ``rank="resolved"``.

    Raises:
        ValueError: a problem of another kind.

    Examples:
        >>> model = Auc(RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 0], "auc")).model
        >>> model.optimize()
        >>> round(model.getObjVal(), 4)
        0.5
    """

    name = "auc"
    problem: RerankProblem

    @classmethod
    def check(cls, problem: Problem) -> None:
        """Refuse a problem of another kind."""
        if not is_linear(problem):
            rule = "a RerankProblem with statistic 'auc' or 'wrs' and rank='resolved'"
            raise ValueError(f"an auc model needs {rule}, got {kind(problem)}")

    def _preferences(self) -> tuple[IntArray, FloatArray, float]:
        problem = self.problem
        pairs = self._pairs_between(problem.positives, problem.negatives)
        beta = float(self.a[-1] - self.a[0]) / (problem.n - 1)
        constant = math.fsum(self.a[: len(problem.positives)]) + self.shift
        return pairs, np.full(len(pairs), beta), constant
