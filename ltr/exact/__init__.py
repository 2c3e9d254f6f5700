"""Exact reranking: problems, solvers, certificates, and the paper's mixed-integer formulations.

`solve` takes a `RerankProblem` or a `PairwiseProblem` and returns a `Solution` with weights, value and bound; `certify`
turns it into a certificate, a file that ``ltr verify`` checks.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ltr.exact.constraints import LinearConstraints
from ltr.exact.demand import Demand
from ltr.exact.places import RowPlaces, places_of_cards
from ltr.exact.preferences import PairwiseProblem, multipartite_pairs
from ltr.exact.problem import Problem, RerankProblem
from ltr.exact.solution import Progress, Solution, Status, TracePoint, relative_gap
from ltr.exact.solve import METHODS, Solver, solve
from ltr.exact.state import Ending, Limits, SolveState

if TYPE_CHECKING:
    from ltr.exact.certificate import Certificate, certify
    from ltr.exact.scip import build_model, write_model

__all__ = [
    "METHODS",
    "Certificate",
    "Demand",
    "Ending",
    "Limits",
    "LinearConstraints",
    "PairwiseProblem",
    "Problem",
    "Progress",
    "RerankProblem",
    "RowPlaces",
    "Solution",
    "SolveState",
    "Solver",
    "Status",
    "TracePoint",
    "build_model",
    "certify",
    "multipartite_pairs",
    "places_of_cards",
    "relative_gap",
    "solve",
    "write_model",
]


_LATE = {  # SCIP takes a second to load, the checker of certificates a tenth of one
    "Certificate": "ltr.exact.certificate",
    "build_model": "ltr.exact.scip",
    "certify": "ltr.exact.certificate",
    "write_model": "ltr.exact.scip",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a class and functions)
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    raise AttributeError(f"module 'ltr.exact' has no attribute {name!r}")
