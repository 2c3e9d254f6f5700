"""HiGHS on the paper's ResolvedRank model, as a method of `ltr.exact.solve`.

The model is the one that ``resolved`` hands to SCIP, written as MPS and read by HiGHS; the start is complete
(weights, comparisons, ranks). As there, its bound holds for weights without score differences strictly between 0 and
the margin, so it is reported as the `model_bound`.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import highspy
import numpy as np

from ltr.exact import Problem, Status
from ltr.exact.local_search import load_search, search_locally
from ltr.exact.scip import ResolvedRank, ScipSolver
from ltr.exact.state import Ending, SolveState

_LONGEST_SEARCH = 2.0  # seconds, as before SCIP
_TOLERANCE = 1e-9  # tolerance of feasibility and integrality, as small as the model needs (see `ltr.exact.scip`)
_MODEL = ScipSolver(ResolvedRank)


@dataclass(frozen=True)
class HighsSolver:
    """Solves the paper's ResolvedRank model with HiGHS."""

    threads: int = 1  # number of threads, which HiGHS can set only once per process
    local_search: float = 0.1  # share of the time limit given to the local search, 2 seconds at most; 0 skips it

    def check(self, problem: Problem) -> None:
        """Raise ValueError for a problem that SCIP rejects too."""
        _MODEL.check(problem)

    def prepare(self) -> None:
        """Load the local search."""
        load_search()

    def run(self, state: SolveState) -> Ending:
        """Run the local search, then branch and bound."""
        if self.local_search > 0:
            search_locally(state, min(self.local_search * state.limits.time_limit, _LONGEST_SEARCH))
        solver = highspy.Highs()
        for option, value in {
            "output_flag": False,
            "threads": self.threads,
            "random_seed": int(state.limits.seed),
            "mip_rel_gap": state.limits.gap,
            "mip_abs_gap": 0.0,
            "mip_feasibility_tolerance": _TOLERANCE,
            "primal_feasibility_tolerance": _TOLERANCE,
        }.items():
            solver.setOptionValue(option, value)
        formulation = ResolvedRank(state.problem, state)
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder) / "model.mps")
                formulation.model.writeProblem(path, verbose=False)
                if solver.readModel(path) == highspy.HighsStatus.kError:
                    raise RuntimeError("HiGHS cannot read the model")
            column = {name: j for j, name in enumerate(solver.getLp().col_names_)}
            values = formulation.complete(state.weights) if math.isfinite(state.value) else None
            if values is not None:
                start, complete = highspy.HighsSolution(), np.zeros(solver.getNumCol())
                complete[[column[variable.name] for variable, _ in values]] = [value for _, value in values]
                start.col_value = complete.tolist()
                solver.setSolution(start)
        finally:
            formulation.model.free()
        weights = [column[f"w_{j}"] for j in range(state.problem.d)]

        def offer(values: list[float]) -> None:
            state.offer(np.clip(np.asarray(values)[weights], -1.0, 1.0))

        def bound(dual: float) -> float | None:
            return formulation.unit * float(dual) if abs(dual) < 1e19 else None

        def watch(event: highspy.highs.HighsCallbackEvent) -> None:
            out = event.data_out
            state.observe(math.inf, model_bound=bound(out.mip_dual_bound), nodes=max(0, out.mip_node_count))
            if state.stop_requested() or state.remaining == 0:
                event.interrupt()

        solver.cbMipImprovingSolution += lambda event: offer(event.data_out.mip_solution)
        solver.cbMipLogging += watch
        solver.cbMipInterrupt += watch
        state.check()
        solver.setOptionValue("time_limit", state.remaining)
        solver.run()
        state.nodes = max(0, solver.getInfo().mip_node_count)
        state.model_bound = bound(solver.getInfo().mip_dual_bound)
        if solver.getSolution().value_valid:
            offer(solver.getSolution().col_value)
        note = "the model admits only weights without score differences strictly between 0 and the margin"
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            return Ending(Status.HEURISTIC, f"{note}; model_bound holds for those alone")
        return Ending(Status.TIME_LIMIT if state.remaining < 1 else Status.INTERRUPTED, note)
