r"""Models whose objective is a weighted sum of won comparisons: the base of `auc` and `pairwise`.

    max   constant + sum over pairs of  π_ik z_ik  -  C sum_j γ_j
    s.t.  z_ik <= w·(x_i - x_k) + 1 - ε                     for each pair            (see `base`)

Strengthened, with pairs in both directions: ``z_ik + z_ki <= 1`` (one_way).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr.exact.scip.base import Assignment, FloatArray, Formulation, IntArray, assign, linear
from ltr.exact.scip.callbacks import Expression

__all__ = ["Agreement"]


class Agreement(Formulation):
    """A model that counts won comparisons; a subclass says which, at what weight."""

    def _preferences(self) -> tuple[IntArray, FloatArray, float]:
        """Distinct pairs (i, k), their weights π_ik > 0, and the constant."""
        raise NotImplementedError

    def _build(self) -> tuple[Expression, float]:
        pairs, weights, constant = self._preferences()
        comparison = self._add_comparisons(pairs)
        if self.tight:
            for (i, k), z in comparison.items():
                if i < k and (k, i) in comparison:
                    self.model.addCons(z + comparison[k, i] <= 1, name=f"one_way_{i}_{k}")
        price = {(i, k): value for (i, k), value in zip(pairs.tolist(), weights.tolist(), strict=True)}
        return linear([price[i, k] for i, k in self.pairs.tolist()], self.z), constant

    def _complete(self, wins: NDArray[np.bool_], w: FloatArray) -> Assignment:
        return assign(self.z, wins)
