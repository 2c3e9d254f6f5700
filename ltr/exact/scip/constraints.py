r"""Constraints on the weights in SCIP's own terms: anything that a function can add to a SCIP model.

The search knows nothing of what they say. It asks SCIP two things, in a small model of the weights alone: whether given
weights satisfy them, before it accepts any, and which weights of a box do, where a box cannot be closed otherwise.
Bounds stay valid because constraints only take weights away; a box is closed without a bound only if SCIP proves that
none of its weights satisfies them. `ltr.exact.scip.hosted` also adds them to the model that hosts the search, in whose
nodes SCIP propagates them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from pyscipopt import Model

from ltr.exact.constraints import SIDE_TOLERANCE, LinearConstraints, set_fields
from ltr.exact.problem import FloatArray
from ltr.exact.scip.base import linear as sum_of
from ltr.exact.solution import Status
from ltr.exact.state import Stopped

_FEASTOL, _FOUND_WITHIN = 1e-6, 1e-7  # SCIP's tolerance for given weights, and for those that it finds
_SECONDS = 2.0  # for one question to SCIP


class ScipConstraints(LinearConstraints):
    """Side constraints that a function adds to a SCIP model: quadratic rows, disjunctions, extra variables.

    Weights are feasible if SCIP accepts them within 1e-6, its tolerance, for any values of added variables.
    Certificates cannot state such constraints.

    Args:
        add: called as ``add(model, w)`` with a `pyscipopt.Model` and the list of its d weight variables, each in
            [-1, 1]; adds constraints and variables. It is called for several models, and has to add the same to each.
        d: number of weights.
        linear: linear side constraints that hold as well.

    Examples:
        >>> def unit_disc(model, w):
        ...     model.addCons(w[0] * w[0] + w[1] * w[1] <= 1)
        >>> sides = ScipConstraints(unit_disc, 2)
        >>> sides.satisfied(np.array([0.6, 0.8])), sides.satisfied(np.array([0.8, 0.8]))
        (True, False)
    """

    linear: ClassVar[bool] = False

    add: Callable[[Model, list[Any]], object]
    _accepts: Callable[[bytes], bool]

    def __init__(
        self, add: Callable[[Model, list[Any]], object], d: int, linear: LinearConstraints | None = None
    ) -> None:
        # w_0 <= 1 holds for all weights, but not at every scale: no weights may be scaled up
        A, b = np.eye(1, d), np.ones(1)
        if linear is not None:
            A, b = np.vstack([A, linear.A]), np.concatenate([b, linear.b])
        super().__init__(A, b)
        set_fields(self, add=add, _accepts=functools.lru_cache(maxsize=10_000)(self._accepted))

    def satisfied(self, w: FloatArray, tolerance: float = SIDE_TOLERANCE) -> bool:
        """Whether w satisfies the linear rows, decided exactly, and all others, decided by SCIP."""
        return super().satisfied(w, tolerance) and self._accepts((w + 0.0).tobytes())

    def _accepted(self, weights: bytes) -> bool:
        w = np.frombuffer(weights)
        return self._solve(w, w, _FEASTOL) is not None

    def point(self, low: FloatArray, high: FloatArray) -> FloatArray | None:
        """Return weights between two limits that satisfy the constraints; None where SCIP proves that there are none.

        Raises:
            Stopped: SCIP gives no answer.
        """
        return self._solve(low, high, _FOUND_WITHIN, (self.A, self.b))

    def _solve(
        self, low: FloatArray, high: FloatArray, feastol: float, rows: tuple[FloatArray, FloatArray] | None = None
    ) -> FloatArray | None:
        low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
        model = Model("weights")
        model.hideOutput()
        ends = zip(low.tolist(), high.tolist(), strict=True)
        w = [model.addVar(f"w_{j}", lb=least, ub=most) for j, (least, most) in enumerate(ends)]
        self.add(model, w)
        tolerances = {"numerics/feastol": feastol, "numerics/epsilon": 0.1 * feastol}
        model.setParams({**tolerances, "misc/catchctrlc": False, "limits/time": _SECONDS})
        for row, limit in zip(*(rows or ((), ())), strict=True):
            if row.any():
                model.addCons(sum_of(row, w) <= float(limit))
        model.setObjective(0.0)
        model.optimize()
        if model.getNSols() > 0:
            solution = model.getBestSol()
            return np.clip([model.getSolVal(solution, v) for v in w], low, high)
        if model.getStatus() != "infeasible":
            raise Stopped(Status.INEXACT, f"SCIP ended with status {model.getStatus()!r} on the user's constraints")
        return None
