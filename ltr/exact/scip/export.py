"""Models as SCIP objects and as files, for other solvers and for the eye."""

from __future__ import annotations

from pathlib import Path

from ltr.exact.preferences import PairwiseProblem
from ltr.exact.problem import Problem, RerankProblem
from ltr.exact.scip import Formulation, ResolvedLattice, ScipSolver, is_linear
from ltr.exact.solve import METHODS

__all__ = ["build_model", "choose_model", "write_model"]

_SUFFIXES = (".cip", ".lp", ".mps")


def build_model(problem: Problem, method: str = "auto") -> Formulation:
    """The SCIP formulation that a method solves, for inspection or for settings of your own.

    Raises:
        ValueError: a method without a model, or one that is not for this problem.

    Examples:
        >>> from ltr.exact.problem import RerankProblem
        >>> formulation = build_model(RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1]), "resolved")
        >>> formulation.model.getNVars() > 0
        True
    """
    return _solver(problem, method).build(problem)


def write_model(problem: Problem, path: str | Path, method: str = "auto") -> Path:
    """Write the model that a method solves as LP, MPS or CIP, chosen by the suffix ``.lp``, ``.mps`` or ``.cip``.

    ``resolved`` is written as the lattice model even where rank weights are convex: the tangent model lives in a
    constraint handler that no file holds. The objective of a statistic of extreme size is divided by the formulation's
    `unit`. Side constraints are scaled and have room for their tolerance.

    Returns:
        The path written.

    Raises:
        ValueError: another suffix, a method without a model, or one that is not for this problem.
        OSError: a path that cannot be written.
    """
    target = Path(path)
    if target.suffix not in _SUFFIXES:
        raise ValueError(f"path must end in one of {', '.join(_SUFFIXES)}, got {target.name!r}")
    with target.open("w"):  # SCIP's own complaint about a path it cannot write is no exception
        pass
    formulation = _solver(problem, method).build(problem)
    if formulation.lazy:
        formulation = ResolvedLattice(problem)
    model = formulation.model
    model.writeProblem(str(target.absolute()), verbose=False)
    model.free()
    return target


def choose_model(problem: Problem) -> str:
    """The method whose model ``"auto"`` stands for here: the strengthened one of the problem's kind.

    Raises:
        ValueError: a problem that no model is for.

    Examples:
        >>> choose_model(RerankProblem([[0.0], [1.0]], [0, 1], "wrs"))
        'auc'
    """
    if isinstance(problem, PairwiseProblem):
        return "pairwise"
    if not isinstance(problem, RerankProblem):
        raise ValueError(f"problem must be a RerankProblem or PairwiseProblem, got {type(problem).__name__}")
    if problem.rank == "subrank":
        return "subrank"
    return "auc" if is_linear(problem) else "resolved"


def _solver(problem: Problem, method: str) -> ScipSolver:
    name = choose_model(problem) if method == "auto" else method
    solver = METHODS.get(name)
    if not isinstance(solver, ScipSolver):
        known = [key for key, value in METHODS.items() if isinstance(value, ScipSolver)]
        raise ValueError(f"method must be one of auto, {', '.join(known)} to have a model, got {method!r}")
    solver.check(problem)
    return solver
