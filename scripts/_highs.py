"""HiGHS on the paper's ResolvedRank model, as a method of `ltr.exact.solve`.

The model is the one that ``resolved_faithful`` hands to SCIP, written as MPS and read by HiGHS; the start is complete
(weights, comparisons, ranks). As there, its bound holds for weights without score differences strictly between 0 and
the margin, so it is reported as the `model_bound`.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ltr.exact import Problem, Status
from ltr.exact.local_search import compile_search, search_locally
from ltr.exact.scip import Formulation, ResolvedRank, ScipSolver
from ltr.exact.state import Ending, SolveState

if TYPE_CHECKING:
    from highspy import Highs
    from highspy.highs import HighsCallbackEvent


_LONGEST_SEARCH = 2.0  # seconds, as before SCIP
_TOLERANCE = 1e-9  # of feasibility and integrality, as small as the model needs (see `ltr.exact.scip`)


@dataclass(frozen=True)
class HighsSolver:
    """Solves the faithful ResolvedRank model with HiGHS."""

    threads: int = 1  # HiGHS takes them once per process
    local_search: float = 0.1  # share of the time limit given to the local search, 2 seconds at most; 0 skips it

    def check(self, problem: Problem) -> None:
        """Refuse what SCIP refuses."""
        _MODEL.check(problem)

    def prepare(self) -> None:
        """Compile the local search."""
        compile_search()

    def run(self, state: SolveState) -> Ending:
        """Local search, then branch and bound, into the state."""
        import highspy

        if self.local_search > 0:
            search_locally(state, min(self.local_search * state.limits.time_limit, _LONGEST_SEARCH))
        formulation = _MODEL.build(state.problem, state)
        try:
            solver = self._loaded(formulation, state)
            unit, weights = formulation.unit, _columns(solver, [f"w_{j}" for j in range(state.problem.d)])
        finally:
            formulation.model.free()

        def offer(event: HighsCallbackEvent) -> None:
            state.offer(np.clip(np.asarray(event.data_out.mip_solution)[weights], -1.0, 1.0))

        def watch(event: HighsCallbackEvent) -> None:
            out = event.data_out
            state.observe(math.inf, model_bound=_bound(unit, out.mip_dual_bound), nodes=max(0, out.mip_node_count))
            if state.stop_requested() or state.remaining == 0:
                event.interrupt()

        solver.cbMipImprovingSolution += offer
        solver.cbMipLogging += watch
        solver.cbMipInterrupt += watch
        state.check()
        solver.setOptionValue("time_limit", state.remaining)
        solver.run()
        info, status = solver.getInfo(), solver.getModelStatus()
        state.nodes = max(0, info.mip_node_count)
        state.model_bound = _bound(unit, info.mip_dual_bound)
        if solver.getSolution().value_valid:
            state.offer(np.clip(np.asarray(solver.getSolution().col_value)[weights], -1.0, 1.0))
        note = "the model admits only weights without score differences strictly between 0 and the margin"
        if status == highspy.HighsModelStatus.kOptimal:
            return Ending(Status.HEURISTIC, f"{note}; model_bound holds for those alone")
        return Ending(Status.TIME_LIMIT if state.remaining < 1 else Status.INTERRUPTED, note)

    def _loaded(self, formulation: Formulation, state: SolveState) -> Highs:
        """A HiGHS object with the model and its start."""
        import highspy

        solver = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", self.threads),
            ("random_seed", int(state.limits.seed)),
            ("mip_rel_gap", state.limits.gap),
            ("mip_abs_gap", 0.0),
            ("mip_feasibility_tolerance", _TOLERANCE),
            ("primal_feasibility_tolerance", _TOLERANCE),
        ):
            solver.setOptionValue(option, value)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.mps"
            formulation.model.writeProblem(str(path), verbose=False)
            if solver.readModel(str(path)) == highspy.HighsStatus.kError:
                raise RuntimeError("HiGHS cannot read the model")
        values = formulation.complete(state.weights) if math.isfinite(state.value) else None
        if values is not None:
            start = highspy.HighsSolution()
            column = np.zeros(solver.getNumCol())
            column[_columns(solver, [variable.name for variable, _ in values])] = [value for _, value in values]
            start.col_value = column.tolist()
            solver.setSolution(start)
        return solver


_MODEL = ScipSolver(ResolvedRank, "faithful")


def _columns(solver: Highs, names: list[str]) -> list[int]:
    at = {name: j for j, name in enumerate(solver.getLp().col_names_)}
    return [at[name] for name in names]


def _bound(unit: float, bound: float) -> float | None:
    return unit * float(bound) if abs(bound) < 1e19 else None
