r"""Tangents of the concave statistic ``sum_l a_l - cost(P)``, see `ltr.exact.scip.resolved_pairs`.

The constraint handler has one constraint, θ <= sum_l a_l - cost(P). Every tangent is valid everywhere, so the cuts
are global; one that is tight at an integral P makes the constraint exact there, and there are finitely many of those.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.exact.scip.callbacks import Constraints, Guard, Model, ScipSolution, Variable

__all__ = ["PositionCost", "add_tangents"]

FloatArray = NDArray[np.float64]

_NEAR = 1e-6  # a position this close to an integer has a tangent on either side
_WORTHWHILE = 1e-6  # smallest excess, relative to the statistic, that is cut off before it has to be


class PositionCost:
    """The rank weight taken by negatives with P_k positives above them, ``cost(P) = sum_m b(m + P_(m))``.

    Between integers b is interpolated linearly.

    Args:
        a: convex rank weights a_1..a_n.

    Examples:
        >>> cost = PositionCost(np.array([0.0, 1.0, 3.0]))
        >>> cost.value([0]), cost.value([1]), cost.value([0.5]), cost.value([0, 1])
        (3.0, 1.0, 2.0, 3.0)
    """

    def __init__(self, a: FloatArray) -> None:
        self.b = np.ascontiguousarray(a[::-1])
        self.total = float(np.sum(a))

    def _positions(self, P: ArrayLike) -> tuple[FloatArray, FloatArray]:
        above = np.asarray(P, dtype=np.float64)
        place = np.empty(len(above))
        place[np.argsort(above, kind="stable")] = np.arange(len(above))
        return place, np.clip(place + above, 0.0, len(self.b) - 1.0)

    def value(self, P: ArrayLike) -> float:
        """Return the cost at P, (n_neg,)."""
        _, position = self._positions(P)
        return float(np.sum(np.interp(position, np.arange(len(self.b)), self.b)))

    def tangents(self, P: ArrayLike) -> list[tuple[FloatArray, float]]:
        """Return slopes g and constants h with ``cost(P') >= h + g·P'`` everywhere and equality at P.

        There are two where a position is an integer: from the segments of b to its right and to its left.

        Examples:
            >>> PositionCost(np.array([0.0, 1.0, 3.0])).tangents([1.0])
            [(array([-1.]), 2.0), (array([-2.]), 3.0)]
        """
        place, position = self._positions(P)
        last = len(self.b) - 2
        right = np.clip(np.floor(position + _NEAR), 0, last).astype(np.int64)
        left = np.clip(np.ceil(position - _NEAR) - 1, 0, last).astype(np.int64)
        found = []
        for start in [right] if np.array_equal(left, right) else [right, left]:
            slope = self.b[start + 1] - self.b[start]
            found.append((slope, float(np.sum(self.b[start] + slope * (place - start)))))
        return found


def add_tangents(model: Model, guard: Guard, theta: Variable, P: list[Variable], cost: PositionCost) -> None:
    """Add ``theta <= cost.total - cost(P)`` to a `pyscipopt.Model` as a constraint handler with one constraint."""
    from pyscipopt import SCIP_RESULT, Conshdlr

    class Tangents(Conshdlr):
        """Separates and enforces the one constraint above."""

        def _excess(self, solution: ScipSolution) -> tuple[FloatArray, float]:
            above = np.array([self.model.getSolVal(solution, v) for v in P])
            limit = cost.total - cost.value(above)
            value = self.model.getSolVal(solution, theta)
            return above, 0.0 if self.model.isFeasLE(value, limit) else value - limit

        def _cut(self, least: float = 0.0) -> bool:
            above, excess = self._excess(None)
            if excess <= least:
                return False
            for slope, constant in cost.tangents(above):
                row = self.model.createEmptyRowUnspec("tangent", lhs=None, rhs=cost.total - constant, local=False)
                self.model.cacheRowExtensions(row)
                self.model.addVarToRow(row, theta, 1.0)
                for variable, g in zip(P, slope.tolist(), strict=True):
                    if g != 0:
                        self.model.addVarToRow(row, variable, g)
                self.model.flushRowExtensions(row)
                self.model.addCut(row, forcecut=True)
                self.model.releaseRow(row)
            return True

        def _holds(self, solution: ScipSolution = None) -> bool:
            return self._excess(solution)[1] <= 0

        def conssepalp(self, constraints: Constraints, nusefulconss: int) -> dict[str, Any]:
            cut = guard.run(self.model, lambda: self._cut(_WORTHWHILE * cost.total), default=False)
            return {"result": SCIP_RESULT.SEPARATED if cut else SCIP_RESULT.DIDNOTFIND}

        def consenfolp(self, constraints: Constraints, nusefulconss: int, solinfeasible: bool) -> dict[str, Any]:
            if guard.run(self.model, self._holds, default=False):
                return {"result": SCIP_RESULT.FEASIBLE}
            cut = guard.run(self.model, self._cut, default=False)
            return {"result": SCIP_RESULT.SEPARATED if cut else SCIP_RESULT.INFEASIBLE}

        def consenfops(
            self,
            constraints: Constraints,
            nusefulconss: int,
            solinfeasible: bool,
            objinfeasible: bool,
        ) -> dict[str, Any]:
            holds = guard.run(self.model, self._holds, default=False)
            return {"result": SCIP_RESULT.FEASIBLE if holds else SCIP_RESULT.SOLVELP}

        def conscheck(
            self,
            constraints: Constraints,
            solution: ScipSolution,
            checkintegrality: bool,
            checklprows: bool,
            printreason: bool,
            completely: bool,
        ) -> dict[str, Any]:
            holds = guard.run(self.model, lambda: self._holds(solution), default=False)
            return {"result": SCIP_RESULT.FEASIBLE if holds else SCIP_RESULT.INFEASIBLE}

        def conslock(self, constraint: Constraints, locktype: int, nlockspos: int, nlocksneg: int) -> None:
            # raising θ or lowering a P_k may break the constraint
            self.model.addVarLocksType(theta, locktype, nlocksneg, nlockspos)
            for variable in P:
                self.model.addVarLocksType(variable, locktype, nlockspos, nlocksneg)

    handler = Tangents()
    model.includeConshdlr(
        handler,
        "tangents",
        "theta <= statistic",
        sepapriority=0,
        enfopriority=-100,
        chckpriority=-100,
        sepafreq=1,
        propfreq=-1,
        eagerfreq=1,
        needscons=True,
    )
    model.addPyCons(model.createCons(handler, "statistic"))
