"""The paper's MIP formulations, and the solver that runs them in SCIP; `base` states what the formulations share."""

from ltr.exact.scip.base import Form, Formulation
from ltr.exact.scip.formulations import Auc, Pairwise, ResolvedRank, Subrank
from ltr.exact.scip.hosted import HostedSearch
from ltr.exact.scip.resolved_pairs import ResolvedLattice, ResolvedPairs, ResolvedTangents
from ltr.exact.scip.solver import ScipSolver

__all__ = [
    "Auc",
    "Form",
    "Formulation",
    "Pairwise",
    "ResolvedLattice",
    "ResolvedPairs",
    "ResolvedRank",
    "ResolvedTangents",
    "ScipSolver",
    "Subrank",
]

METHODS: dict[str, HostedSearch | ScipSolver] = {
    "hosted": HostedSearch(),
    "resolved": ScipSolver(ResolvedPairs),
    "resolved_faithful": ScipSolver(ResolvedRank, "faithful"),
    "subrank": ScipSolver(Subrank),
    "subrank_faithful": ScipSolver(Subrank, "faithful"),
    "auc": ScipSolver(Auc),
    "auc_faithful": ScipSolver(Auc, "faithful"),
    "pairwise": ScipSolver(Pairwise),
    "pairwise_faithful": ScipSolver(Pairwise, "faithful"),
}
"""The methods that run in SCIP; `ltr.exact.solve.METHODS` has their names."""
