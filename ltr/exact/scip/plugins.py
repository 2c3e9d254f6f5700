"""What runs inside SCIP: a base of constraint handlers, an event handler that watches, and a heuristic."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from pyscipopt import SCIP_EVENTTYPE, SCIP_HEURTIMING, SCIP_RESULT, Conshdlr, Eventhdlr, Heur

from ltr.exact.largest_margin import deepest
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
from ltr.exact.state import SolveState
from ltr.exact.vertices import offer_simple

_SUPPORT = 1e-9
_BLUR = 1e-7  # that a weight of SCIP's may be off where it meets the margin exactly
_SHARE = 0.1  # of the solving time for the heuristic
_INFINITE = 1e19


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
