"""What runs in SCIP: the paper's MIP formulations, box searches where side constraints link weights, risk scores.

`base` states what the formulations share, `solver` runs them, `hosted` runs the rounds of such a search of boxes, and
`lattice` cuts and branches for risk scores.
"""

from __future__ import annotations

from ltr.exact.scip.base import Formulation
from ltr.exact.scip.constraints import ScipConstraints
from ltr.exact.scip.formulations import Auc, Pairwise, ResolvedRank, Subrank
from ltr.exact.scip.lattice import LatticeCuts
from ltr.exact.scip.solver import ScipSolver

__all__ = [
    "Auc",
    "Formulation",
    "LatticeCuts",
    "Pairwise",
    "ResolvedRank",
    "ScipConstraints",
    "ScipSolver",
    "Subrank",
]

METHODS: dict[str, ScipSolver | LatticeCuts] = {
    "lattice": LatticeCuts(),
    **{model.name: ScipSolver(model) for model in (ResolvedRank, Subrank, Auc, Pairwise)},
}
"""The paper's models, and the cutting planes of risk scores, as methods; `ltr.exact.solve.METHODS` has their names."""
