"""What runs in SCIP: the paper's MIP formulations, the weight-space search, and the search for risk scores.

`base` states what the formulations share, `solver` runs them, `hosted` runs the weight-space search, and `lattice` cuts
and branches for risk scores.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from ltr.exact.problem import Problem
from ltr.exact.scip.base import Form, Formulation
from ltr.exact.scip.constraints import ScipConstraints
from ltr.exact.scip.formulations import Auc, Pairwise, ResolvedRank, Subrank
from ltr.exact.scip.lattice import LatticeCuts
from ltr.exact.scip.resolved_pairs import ResolvedLattice, ResolvedPairs, ResolvedTangents
from ltr.exact.scip.solver import ScipSolver

__all__ = [
    "Auc",
    "Form",
    "Formulation",
    "LatticeCuts",
    "Pairwise",
    "ResolvedLattice",
    "ResolvedPairs",
    "ResolvedRank",
    "ResolvedTangents",
    "ScipConstraints",
    "ScipSolver",
    "Subrank",
    "build_model",
    "write_model",
]

METHODS: dict[str, ScipSolver | LatticeCuts] = {
    "lattice": LatticeCuts(),
    "resolved": ScipSolver(ResolvedPairs),
    "resolved_faithful": ScipSolver(ResolvedRank, "faithful"),
    "subrank": ScipSolver(Subrank),
    "subrank_faithful": ScipSolver(Subrank, "faithful"),
    "auc": ScipSolver(Auc),
    "auc_faithful": ScipSolver(Auc, "faithful"),
    "pairwise": ScipSolver(Pairwise),
    "pairwise_faithful": ScipSolver(Pairwise, "faithful"),
}
"""The paper's models, and the cutting planes of risk scores, as methods; `ltr.exact.solve.METHODS` has their names."""

_SUFFIXES = (".cip", ".lp", ".mps")


def build_model(problem: Problem, method: str = "auto") -> Formulation:
    """Return the SCIP formulation that a method solves, for inspection or for settings of your own.

    Raises:
        ValueError: a method without a model, or one that cannot solve this problem.

    Examples:
        >>> from ltr.exact.problem import RerankProblem
        >>> formulation = build_model(RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1]), "resolved")
        >>> formulation.model.getNVars() > 0
        True
    """
    if method == "auto":
        method = _model(problem).name
    if not isinstance(solver := METHODS.get(method), ScipSolver):
        known = (name for name, solver in METHODS.items() if isinstance(solver, ScipSolver))
        raise ValueError(f"method must be one of auto, {', '.join(known)} to have a model, got {method!r}")
    solver.check(problem)
    return solver.build(problem)


def write_model(problem: Problem, path: str | Path, method: str = "auto") -> Path:
    """Write the model that a method solves as LP, MPS or CIP, by the suffix of the path, and return the path.

    ``resolved`` is written as the lattice model even where rank weights are convex: the tangent model needs a
    constraint handler, which no file can express. The objective of a statistic of extreme size is divided by the
    formulation's `unit`. Side constraints are scaled and have room for their tolerance.

    Raises:
        ValueError: another suffix, a method without a model, or one that cannot solve this problem.
        OSError: a path that cannot be written.
    """
    target = Path(path)
    if target.suffix not in _SUFFIXES:
        raise ValueError(f"path must end in one of {', '.join(_SUFFIXES)}, got {target.name!r}")
    with target.open("w"):  # SCIP raises no exception if it cannot write to a path
        pass
    formulation = build_model(problem, method)
    model = ResolvedLattice(problem).model if formulation.lazy else formulation.model
    model.writeProblem(str(target.absolute()), verbose=False)
    model.free()
    return target


def _model(problem: Problem) -> type[Formulation]:
    """Return the model that ``"auto"`` stands for: that of the problem's kind."""
    for model in (Pairwise, Auc, ResolvedPairs, Subrank):
        with contextlib.suppress(ValueError):
            model.check(problem)
            return model
    rule = "a RerankProblem with one list of labels 0 and 1, or a PairwiseProblem"
    raise ValueError(f"problem must be {rule} to have a model, got {problem.describe()}")
