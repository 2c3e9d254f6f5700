"""What runs inside SCIP: constraint handlers, an event handler that watches, and a heuristic that offers weights."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from pyscipopt import SCIP_EVENTTYPE, SCIP_HEURTIMING, SCIP_RESULT, Conshdlr, Eventhdlr, Heur

from ltr.exact.largest_margin import deepest
from ltr.exact.problem import FloatArray
from ltr.exact.scip.base import (
    Assignment,
    Constraints,
    Formulation,
    Guard,
    Model,
    ScipEvent,
    ScipSolution,
    Variable,
    interrupt,
)
from ltr.exact.scip.resolved_pairs import PositionCost
from ltr.exact.state import SolveState
from ltr.exact.vertices import offer_simple

__all__ = ["Constraint", "Rounding", "Tangents", "Watcher", "add_solution", "dual_bound", "offer_solution"]

_SUPPORT = 1e-9
_BLUR = 1e-7  # that a weight of SCIP's may be off where it meets the margin exactly
_SHARE = 0.1  # of the solving time for the heuristic
_INFINITE = 1e19
_WORTHWHILE = 1e-6  # smallest excess, relative to the statistic, that is cut off before it has to be


def dual_bound(formulation: Formulation, state: SolveState) -> float:
    """The dual bound of a model under way, infinite while SCIP has none.

    Where the model leaves out w = 0 its bound is raised to the value there.
    """
    bound = float(formulation.model.getDualbound())
    if not math.isfinite(bound) or abs(bound) > _INFINITE:
        return math.inf
    bound *= formulation.unit
    return bound if formulation.covers_zero else max(bound, state.zero_value)


def offer_solution(formulation: Formulation, state: SolveState, solution: ScipSolution) -> None:
    """Offer the weights of a SCIP solution.

    Where they fall short of its objective, simple ratios next to them are tried, which may be what SCIP's tolerance
    blurs, and the middle of their cell.
    """
    model = formulation.model
    w = np.array([model.getSolVal(solution, v) for v in formulation.w])
    objective = formulation.unit * float(model.getSolObjVal(solution))
    least = objective - 1e-9 * max(formulation.unit, abs(objective))
    if state.offer(w) >= least:
        return
    offer_simple(state, np.clip(w - _BLUR, -1.0, 1.0), np.clip(w + _BLUR, -1.0, 1.0))
    if state.value >= least:
        return
    claimed = np.array([model.getSolVal(solution, z) > 0.5 for z in formulation.z], dtype=bool)
    if claimed.any():
        X, pairs = formulation.problem.X, formulation.pairs[claimed]
        middle = deepest(formulation.problem, X[pairs[:, 0]] - X[pairs[:, 1]], np.abs(w) > _SUPPORT)
        if middle is not None:
            state.offer(middle)


def add_solution(model: Model, values: Assignment, heuristic: Heur | None = None) -> bool:
    """Hand a full assignment to SCIP, before or while it solves; whether SCIP found it feasible and kept it."""
    solution = model.createOrigSol(heuristic)  # presolve may have replaced variables of the model
    for variable, value in values:
        model.setSolVal(solution, variable, value)
    if heuristic is not None:
        return bool(model.trySol(solution, printreason=False))
    if not model.checkSol(solution, printreason=False, original=True):
        model.freeSol(solution)
        return False
    return bool(model.addSol(solution))


class Constraint(Conshdlr):
    """A handler of the one constraint ``theta <= statistic``, whose callbacks a guard runs.

    A subclass has `holds`, and callbacks for propagation, separation and enforcement.
    """

    def __init__(self, guard: Guard, theta: Variable) -> None:
        self.guard, self.theta = guard, theta

    def include(self, model: Model, name: str, **parameters: Any) -> None:  # noqa: ANN401 (SCIP's, of any type)
        """Add the handler and its constraint to a model."""
        model.includeConshdlr(self, name, "theta <= statistic", eagerfreq=1, needscons=True, **parameters)
        model.addPyCons(model.createCons(self, "statistic"))

    def holds(self, solution: ScipSolution) -> bool:
        """Return whether a solution satisfies the constraint; None stands for the relaxation at hand."""
        raise NotImplementedError

    def conscheck(self, constraints: Constraints, solution: ScipSolution, *_: object) -> dict[str, Any]:
        """Check a solution."""
        holds = self.guard.run(self.model, lambda: self.holds(solution), default=False)
        return {"result": SCIP_RESULT.FEASIBLE if holds else SCIP_RESULT.INFEASIBLE}


class Tangents(Constraint):
    """The constraint ``theta <= cost.total - cost(P)``, described by its tangents."""

    def __init__(self, guard: Guard, theta: Variable, P: list[Variable], cost: PositionCost) -> None:
        super().__init__(guard, theta)
        self._P, self._cost = P, cost

    def include(self, model: Model, name: str = "tangents", **parameters: Any) -> None:  # noqa: ANN401 (as above)
        """Add the handler and its constraint to a model."""
        super().include(model, name, sepafreq=1, enfopriority=-100, chckpriority=-100, propfreq=-1, **parameters)

    def _excess(self, solution: ScipSolution) -> tuple[FloatArray, float]:
        above = np.array([self.model.getSolVal(solution, v) for v in self._P])
        limit = self._cost.total - self._cost.value(above)
        value = self.model.getSolVal(solution, self.theta)
        return above, 0.0 if self.model.isFeasLE(value, limit) else value - limit

    def holds(self, solution: ScipSolution) -> bool:
        """Return whether a solution satisfies the constraint."""
        return self._excess(solution)[1] <= 0

    def _cut(self, least: float = 0.0) -> bool:
        above, excess = self._excess(None)
        if excess <= least:
            return False
        for slope, constant in self._cost.tangents(above):
            row = self.model.createEmptyRowUnspec("tangent", lhs=None, rhs=self._cost.total - constant, local=False)
            self.model.cacheRowExtensions(row)
            self.model.addVarToRow(row, self.theta, 1.0)
            for variable, g in zip(self._P, slope.tolist(), strict=True):
                if g != 0:
                    self.model.addVarToRow(row, variable, g)
            self.model.flushRowExtensions(row)
            self.model.addCut(row, forcecut=True)
            self.model.releaseRow(row)
        return True

    def conssepalp(self, *_: object) -> dict[str, Any]:
        """Cut off the relaxation where it is far from the constraint."""
        cut = self.guard.run(self.model, lambda: self._cut(_WORTHWHILE * self._cost.total), default=False)
        return {"result": SCIP_RESULT.SEPARATED if cut else SCIP_RESULT.DIDNOTFIND}

    def consenfolp(self, *_: object) -> dict[str, Any]:
        """Cut off the relaxation where it violates the constraint."""
        if self.guard.run(self.model, lambda: self.holds(None), default=False):
            return {"result": SCIP_RESULT.FEASIBLE}
        cut = self.guard.run(self.model, self._cut, default=False)
        return {"result": SCIP_RESULT.SEPARATED if cut else SCIP_RESULT.INFEASIBLE}

    def consenfops(self, *_: object) -> dict[str, Any]:
        """Ask for the relaxation where the pseudo solution violates the constraint."""
        holds = self.guard.run(self.model, lambda: self.holds(None), default=False)
        return {"result": SCIP_RESULT.FEASIBLE if holds else SCIP_RESULT.SOLVELP}

    def conslock(self, constraint: Constraints, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        """Say that raising theta or lowering a P_k may break the constraint."""
        self.model.addVarLocksType(self.theta, locktype, nlocksneg, nlockspos)
        for variable in self._P:
            self.model.addVarLocksType(variable, locktype, nlockspos, nlocksneg)


class Watcher(Eventhdlr):
    """Tells the state of every new incumbent and bound, and stops SCIP when the caller asks."""

    _events = (
        SCIP_EVENTTYPE.BESTSOLFOUND,
        SCIP_EVENTTYPE.DUALBOUNDIMPROVED,
        SCIP_EVENTTYPE.NODESOLVED,
        SCIP_EVENTTYPE.LPSOLVED,
    )

    def __init__(self, formulation: Formulation, state: SolveState) -> None:
        self.formulation, self.state = formulation, state

    def eventinit(self) -> None:
        """Subscribe."""
        for event in self._events:
            self.model.catchEvent(event, self)

    def eventexec(self, event: ScipEvent) -> None:
        """React to one event."""
        kind = event.getType()
        self.formulation.guard.run(self.model, lambda: self._react(kind), default=None)

    def _react(self, kind: int) -> None:
        if kind == SCIP_EVENTTYPE.BESTSOLFOUND:
            # getPrimalbound() is still the previous incumbent's here
            offer_solution(self.formulation, self.state, self.model.getBestSol())
        # once SCIP has decided to stop it drops the node at hand: the bound of what is left is not one of the problem
        if self.model.getStageName() == "SOLVING" and self.model.getStatus() == "unknown":
            bound, nodes = dual_bound(self.formulation, self.state), int(self.model.getNTotalNodes())
            self.state.observe(bound if self.formulation.exact else math.inf, model_bound=bound, nodes=nodes)
        if self.state.stop_requested():
            interrupt(self.model)


class Rounding(Heur):
    """Evaluates the weights of the LP relaxation, and hands the best weights known to SCIP in full."""

    def __init__(self, formulation: Formulation, state: SolveState) -> None:
        self.formulation, self.state = formulation, state
        self._spent, self._since = 0.0, time.monotonic()
        self._refused = -math.inf

    def heurexec(self, heurtiming: int, nodeinfeasible: bool) -> dict[str, Any]:
        """Run once, unless the share of time is used up."""
        now = time.monotonic()
        if nodeinfeasible or self._spent > _SHARE * (now - self._since) + 0.01:
            return {"result": SCIP_RESULT.DIDNOTRUN}
        found = self.formulation.guard.run(self.model, self._try, default=False)
        self._spent += time.monotonic() - now
        return {"result": SCIP_RESULT.FOUNDSOL if found else SCIP_RESULT.DIDNOTFIND}

    def _try(self) -> bool:
        self.state.offer(np.clip([self.model.getSolVal(None, v) for v in self.formulation.w], -1.0, 1.0))
        best = self.state.value
        primal = self.formulation.unit * float(self.model.getPrimalbound())
        if best <= max(primal, self._refused) + 1e-9 * max(self.formulation.unit, abs(best)):
            return False
        values = self.formulation.complete(self.state.weights)
        if values is not None and add_solution(self.model, values, self):
            return True
        self._refused = best
        return False

    def include(self) -> None:
        """Add the heuristic to its model."""
        description = "evaluates the weights of the relaxation"
        timing = SCIP_HEURTIMING.AFTERLPNODE
        self.formulation.model.includeHeur(self, "rounding_weights", description, "w", timingmask=timing)
