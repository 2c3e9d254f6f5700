"""Exact reranking: problems, solvers, certificates, and the paper's mixed-integer formulations.

`solve` takes a `RerankProblem` or a `PairwiseProblem` and returns a `Solution` with weights, value and bound; `certify`
turns it into a certificate, a file that ``ltr verify`` checks. A problem may have demands on other statistics of the
same rows; `front` finds what they cost, and `rank_ranges` where each row stands whichever good scorer is used.
"""

from ltr.exact.certificate import Certificate, certify
from ltr.exact.constraints import Demand, LinearConstraints
from ltr.exact.fronts import Front, front
from ltr.exact.preferences import PairwiseProblem, multipartite_pairs
from ltr.exact.problem import Problem
from ltr.exact.ranges import RankRanges, rank_ranges
from ltr.exact.reranking import RerankProblem
from ltr.exact.solution import Progress, Solution, Status, TracePoint, relative_gap
from ltr.exact.solve import METHODS, Solver, solve
from ltr.exact.state import Ending, Limits, SolveState

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
