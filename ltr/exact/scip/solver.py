"""Run a MIP formulation in SCIP: limits, tolerances, warm starts, events, interrupt, statuses.

*Tolerances.* With SCIP's feasibility tolerance of 1e-6, weights that win no pair can pass as winning. Here it is 1e-9,
and every value is recomputed by the problem. Weights that violate a side constraint within that tolerance are not
accepted as they are: `offer_solution` then looks for the middle of their cell, the set of weights that win the same
pairs.

*Cuts.* In a cutting plane of a big-M row the margin is in the last digits of a coefficient, and SCIP rounds cuts: on
random lists with margin / M near 3e-8, one solve in fifty ended with a bound below the optimum with SCIP's separators,
none of 900 without. They hardly improve the bound of such models, so they are off.

*Small margins.* A binary 1e-9 short of 1 moves its row by 1e-9 M. With ``M = max ||δ||_1``, a margin below
max(1e-5, 1e-6 M) is therefore reported in the solution's message, and one below 1e-8 max(1, M) is rejected. For
features of extreme size this holds after scaling, see `ltr.exact.scip.base.feature_unit`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pyscipopt import SCIP_EVENTTYPE, SCIP_PARAMSETTING, Eventhdlr

from ltr.exact import tuning
from ltr.exact.largest_margin import deepest
from ltr.exact.local_search import search_instead, search_locally
from ltr.exact.problem import Problem
from ltr.exact.scip.base import (
    Assignment,
    Formulation,
    Guard,
    Model,
    ScipEvent,
    ScipSolution,
    check_real,
    feature_unit,
    interrupt,
    spread,
)
from ltr.exact.solution import Status
from ltr.exact.state import Ending, Limits, SolveState, Stopped
from ltr.exact.vertices import offer_simple

STATUS: dict[str, Status | None] = {
    "optimal": Status.OPTIMAL,
    "gaplimit": Status.GAP_LIMIT,
    "timelimit": Status.TIME_LIMIT,
    "nodelimit": Status.NODE_LIMIT,
    "totalnodelimit": Status.NODE_LIMIT,
    "stallnodelimit": Status.NODE_LIMIT,
    "memlimit": Status.MEMORY_LIMIT,
    "userinterrupt": Status.INTERRUPTED,
    "unknown": Status.INTERRUPTED,  # also SIGTERM
    "infeasible": Status.INFEASIBLE,
    "unbounded": None,
    "inforunbd": None,
    "sollimit": None,
    "bestsollimit": None,
    "restartlimit": None,
    "primallimit": None,
    "duallimit": None,
}
"""Every status of SCIP; None for a limit that is never set here, or a model without bounds."""

FEASTOL = 1e-9
"""SCIP's tolerance of feasibility, of reduced costs and of equal numbers, see the module docstring."""

_SUPPORT = 1e-9
_BLUR = 1e-7  # error that a weight found by SCIP may have where it meets the margin exactly
_INFINITE = 1e19
_LEAST_MARGIN = 1e-8  # smallest margin, relative to the largest difference


def configure(model: Model, limits: Limits) -> None:
    """Set the tolerances, the seed and all limits but time, and turn off the separators."""
    parameters = {
        "numerics/feastol": FEASTOL,
        "numerics/dualfeastol": FEASTOL,
        "numerics/epsilon": FEASTOL,
        "timing/clocktype": 2,  # wall clock
        "randomization/randomseedshift": int(limits.seed),
        "randomization/permutationseed": int(limits.seed),
        "limits/gap": limits.gap,
    }
    if limits.node_limit is not None:
        parameters["limits/totalnodes"] = int(limits.node_limit)
    if limits.memory_limit is not None:
        parameters["limits/memory"] = float(limits.memory_limit)
    model.setSeparating(SCIP_PARAMSETTING.OFF)
    model.setParams(parameters)


def optimize(model: Model, state: SolveState) -> str:
    """Run SCIP for the time that is left, and return the status that it claims."""
    state.check()
    model.setParam("limits/time", min(state.remaining, 1e19))
    model.optimizeNogil()
    state.nodes = int(model.getNTotalNodes())
    return str(model.getStatus())


def ending_of(claim: str) -> Ending:
    """Return how a solve ended in which SCIP gets no solution, and has not shown that none is left."""
    status = STATUS[claim]
    if status is None or status is Status.OPTIMAL:
        return Ending(Status.INEXACT, f"SCIP gave up with status {claim!r}")
    return Ending(status)


def attempt(guard: Guard, search: Callable[[], Ending]) -> Ending:
    """Run a search and return how it ended, also if SCIP fails; raise again what a callback raised."""
    try:
        return search()
    except Exception as error:
        guard.check()
        # pyscipopt has no exception class for SCIP's error codes
        if type(error) is not Exception:
            raise
        return Ending(Status.INEXACT, f"SCIP gave up: {error}")


@dataclass(frozen=True)
class ScipSolver:
    """Solves a problem through one formulation.

    Attributes:
        formulation: the model.
        local_search: share of the time limit given to the local search, 2 seconds at most; 0 skips it.

    Raises:
        ValueError: a field out of range.
    """

    formulation: type[Formulation]
    local_search: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.local_search < 1:
            raise ValueError(f"local_search must be a share of the time from 0 to below 1, got {self.local_search!r}")

    def check(self, problem: Problem) -> None:
        """Raise ValueError if the formulation cannot express the problem, or SCIP's tolerances exceed the margin."""
        check_real(problem)
        self.formulation.check(problem)
        unit = feature_unit(problem)
        least = _LEAST_MARGIN * unit * max(1.0, spread(problem) / unit)
        if problem.margin < least:
            rule = f"at least {least:.6g} for SCIP with these features"
            raise ValueError(f"margin must be {rule}: scale the features up or raise it, got {problem.margin!r}")

    def run(self, state: SolveState) -> Ending:
        """Search locally, then branch and bound."""
        if self.local_search > 0:
            search_locally(state, min(self.local_search * state.limits.time_limit, tuning.MODEL_SEARCH))
        try:
            formulation = self.formulation(state.problem, state)
        except Stopped as stop:
            if self.local_search > 0 and stop.message:  # the model would not fit; without a message a limit is reached
                return search_instead(state, Ending(stop.status, stop.message))
            raise
        try:
            return attempt(formulation.guard, lambda: self._search(formulation, state))
        finally:
            # models with Python plugins are reference cycles
            formulation.model.free()

    def _search(self, formulation: Formulation, state: SolveState) -> Ending:
        model = formulation.model
        configure(model, state.limits)
        model.setHeuristics(SCIP_PARAMSETTING.FAST)  # the local search leaves the slow ones little to find
        # signals belong to the main thread
        model.setParam("misc/catchctrlc", threading.current_thread() is threading.main_thread())
        watched = (SCIP_EVENTTYPE.BESTSOLFOUND, *Watcher.BOUNDS)
        watcher = Watcher(formulation.guard, lambda kind: _watch(formulation, state, kind), watched)
        model.includeEventhdlr(watcher, "watcher", "incumbents and bounds")
        if np.isfinite(state.value):
            values = formulation.complete(state.weights)
            if values is not None:
                add_solution(model, values)
        formulation.guard.check()
        claim = optimize(formulation.model, state)
        if claim != "infeasible":
            prove_bound(formulation, state)
        formulation.guard.check()
        status = STATUS[claim]
        if status is None:
            return Ending(Status.INEXACT, f"SCIP gave up with status {claim!r}, although the problem is bounded")
        for solution in formulation.model.getSols():
            offer_solution(formulation, state, solution)
        notes = [_margin_note(state.problem)]
        if not formulation.exact:
            kind = f"weights without score differences strictly between 0 and {state.problem.margin:g}"
            found = "none exist" if status is Status.INFEASIBLE else "model_bound holds for those alone"
            notes.append(f"the model admits only {kind}; {found}")
            if status in (Status.OPTIMAL, Status.GAP_LIMIT, Status.INFEASIBLE):
                status = Status.HEURISTIC
        return Ending(status, "; ".join(note for note in notes if note))


def _margin_note(problem: Problem) -> str:
    unit = feature_unit(problem)
    least = unit * max(1e-5, 1e-6 * spread(problem) / unit)
    if problem.margin >= least:
        return ""
    return (
        f"margin {problem.margin:g} is close to the solver's tolerance: prefer at least {least:.1g} with these features"
    )


# --- what runs inside SCIP ---------------------------------------------------------------------------------------


def prove_bound(formulation: Formulation, state: SolveState) -> None:
    """Record the dual bound of a model, if SCIP has one; it bounds the problem if the model admits all weights."""
    bound = float(formulation.model.getDualbound())
    if math.isfinite(bound) and abs(bound) <= _INFINITE:
        bound *= formulation.unit
        state.prove(bound if formulation.exact else math.inf, model_bound=bound)


def offer_solution(formulation: Formulation, state: SolveState, solution: ScipSolution) -> None:
    """Offer the weights of a SCIP solution.

    If they fall short of its objective, weights with simple ratios next to them are tried, of which SCIP's may be an
    approximation, and the middle of their cell.
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


def add_solution(model: Model, values: Assignment) -> bool:
    """Hand a full assignment to SCIP before it solves; return whether SCIP found it feasible and kept it."""
    solution = model.createOrigSol()
    for variable, value in values:
        model.setSolVal(solution, variable, value)
    if not model.checkSol(solution, printreason=False, original=True):
        model.freeSol(solution)
        return False
    return bool(model.addSol(solution))


class Watcher(Eventhdlr):
    """Calls a function with the kind of each event of SCIP, behind a guard."""

    BOUNDS = (SCIP_EVENTTYPE.DUALBOUNDIMPROVED, SCIP_EVENTTYPE.NODESOLVED, SCIP_EVENTTYPE.LPSOLVED)

    def __init__(self, guard: Guard, react: Callable[[int], None], events: Sequence[int] = BOUNDS) -> None:
        self._guard, self._react, self._events = guard, react, events

    def eventinit(self) -> None:
        """Subscribe."""
        for event in self._events:
            self.model.catchEvent(event, self)

    def eventexec(self, event: ScipEvent) -> None:
        """React to one event."""
        kind = event.getType()
        self._guard.run(self.model, lambda: self._react(kind), default=None)


def _watch(formulation: Formulation, state: SolveState, kind: int) -> None:
    """Report a new incumbent or bound to the state, and stop SCIP when the caller asks for it."""
    model = formulation.model
    if kind == SCIP_EVENTTYPE.BESTSOLFOUND:
        # getPrimalbound() is still the previous incumbent's here
        offer_solution(formulation, state, model.getBestSol())
    # once SCIP has decided to stop, it drops the current node: the bound of the rest does not hold for the problem
    if model.getStageName() == "SOLVING" and model.getStatus() == "unknown":
        state.nodes = int(model.getNTotalNodes())
        prove_bound(formulation, state)
    if state.stop_requested():
        interrupt(model)
