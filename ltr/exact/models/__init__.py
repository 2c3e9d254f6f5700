"""The paper's MIP formulations, one file each; `base` states what they share."""

from ltr.exact.models.auc import Auc, is_linear
from ltr.exact.models.base import Form, Formulation
from ltr.exact.models.pairwise import Pairwise
from ltr.exact.models.resolved import ResolvedRank
from ltr.exact.models.resolved_pairs import ResolvedLattice, ResolvedPairs, ResolvedTangents
from ltr.exact.models.subrank import Subrank

__all__ = [
    "Auc",
    "Form",
    "Formulation",
    "Pairwise",
    "ResolvedLattice",
    "ResolvedPairs",
    "ResolvedRank",
    "ResolvedTangents",
    "Subrank",
    "is_linear",
]
