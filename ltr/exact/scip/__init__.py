"""The paper's MIP formulations, and the solver that runs them in SCIP; `base` states what the formulations share."""

from ltr.exact.scip.base import Form, Formulation
from ltr.exact.scip.formulations import Auc, Pairwise, ResolvedRank, Subrank
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
