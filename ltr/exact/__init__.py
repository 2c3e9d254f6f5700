"""Exact reranking: problems, solvers, certificates, and the paper's mixed-integer formulations.

`solve` takes a `RerankProblem` or a `PairwiseProblem` and returns a `Solution` with weights, value and bound; `certify`
turns it into a certificate, a file that ``ltr verify`` checks. A problem may have demands on other statistics of the
same rows; `front` finds what they cost, and `rank_ranges` where each row stands whichever good scorer is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ltr.exact.constraints import Demand, LinearConstraints
from ltr.exact.preferences import PairwiseProblem, multipartite_pairs
from ltr.exact.problem import Problem
from ltr.exact.reranking import RerankProblem
from ltr.exact.solution import Progress, Solution, Status, TracePoint, relative_gap
from ltr.exact.solve import METHODS, Solver, solve
from ltr.exact.state import Ending, Limits, SolveState

if TYPE_CHECKING:
    from ltr.exact.certificate import Certificate, certify
    from ltr.exact.fronts import Front, front
    from ltr.exact.ranges import RankRanges, rank_ranges

__all__ = [
    "METHODS",
    "Certificate",
    "Demand",
    "Ending",
    "Front",
    "Limits",
    "LinearConstraints",
    "PairwiseProblem",
    "Problem",
    "Progress",
    "RankRanges",
    "RerankProblem",
    "Solution",
    "SolveState",
    "Solver",
    "Status",
    "TracePoint",
    "certify",
    "front",
    "multipartite_pairs",
    "rank_ranges",
    "relative_gap",
    "solve",
]


_LATE = {  # the checker of certificates takes a tenth of a second to load
    "Certificate": "ltr.exact.certificate",
    "Front": "ltr.exact.fronts",
    "RankRanges": "ltr.exact.ranges",
    "certify": "ltr.exact.certificate",
    "front": "ltr.exact.fronts",
    "rank_ranges": "ltr.exact.ranges",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a class and functions)
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    raise AttributeError(f"module 'ltr.exact' has no attribute {name!r}")
