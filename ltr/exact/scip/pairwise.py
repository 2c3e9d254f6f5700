r"""The paper's formulation for general pairwise preferences (appendix A.2).

    max   sum_{i,k} π_ik z_ik  -  C sum_j γ_j,    z_ik as in `base`, for the pairs with π_ik > 0.

The paper also has a z_ik where π_ik = 0; it is in no objective and binds nothing, so it is left out. Edges given
more than once are one pair with the sum of their weights.
"""

from __future__ import annotations

import numpy as np

from ltr.exact.preferences import PairwiseProblem
from ltr.exact.problem import Problem
from ltr.exact.scip.agreement import Agreement
from ltr.exact.scip.base import FloatArray, IntArray, kind

__all__ = ["Pairwise"]


class Pairwise(Agreement):
    """The model of a `PairwiseProblem`.

    Raises:
        ValueError: a problem of another kind.

    Examples:
        >>> model = Pairwise(PairwiseProblem([[0.0], [1.0], [2.0]], [(2, 0), (1, 2)])).model
        >>> model.optimize()
        >>> round(model.getObjVal(), 4)
        1.0
    """

    name = "pairwise"
    problem: PairwiseProblem

    @classmethod
    def check(cls, problem: Problem) -> None:
        """Refuse a problem of another kind."""
        if not isinstance(problem, PairwiseProblem):
            raise ValueError(f"a pairwise model needs a PairwiseProblem, got {kind(problem)}")

    def _preferences(self) -> tuple[IntArray, FloatArray, float]:
        self._require(len(self.problem.pairs))
        pairs, at = np.unique(self.problem.pairs, axis=0, return_inverse=True)
        weights = np.bincount(at.ravel(), weights=self.problem.weights / self.unit).astype(np.float64)
        return pairs, weights, 0.0
