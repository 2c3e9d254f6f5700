r"""SCIP hosts the weight-space search: its tree, limits, branching and side constraints around the compiled kernel.

The model is compact: no comparison has a variable.

    -1 <= w_j <= 1                                        weights
    γ_j in {0, 1},  γ_j >= w_j,  γ_j >= -w_j              support, where it has a price or a limit
    sum_j γ_j <= m                                        where at most m weights may differ from 0
    A w <= b                                              side constraints
    θ <= statistic(w)                                     by a constraint handler
    max  θ - C sum_j γ_j

The handler (`ltr.exact.scip.host`) hands a node's box to the kernel with an allowance of work, cuts the node off
where the kernel closes it, and else branches into the boxes that the kernel has left. Each child gets the bound that
the kernel knows of its boxes. The tree goes in rounds of falling cutoffs, see `ltr.exact.scip.host`.

*Faces.* Where scaling up is free (`ltr.exact.state.scalable`), the first children are the faces ``w_j = ±1``. They
leave out the inside of the cube, whose weights are worth no more than those they scale up to, and w = 0, whose value
the bound is raised to.

*Tolerances.* SCIP prunes by its bounds within 1e-9. The bounds it is given are raised by more than that, so what it
prunes is no better than its incumbent, and everything else is cut off by the kernel, which rounds outwards. The side
constraints have room for their own tolerance (`ltr.exact.scip.base.side_rows`), and weights that need more than that
tolerance are no incumbents. What SCIP's presolve, propagators, heuristics and cuts could do the kernel does better, so
they are off; linear programs serve side constraints alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ltr.exact.local_search import search_locally
from ltr.exact.problem import Problem
from ltr.exact.scip.solver import LONGEST_SEARCH, STATUS, attempt, optimize
from ltr.exact.solution import Status
from ltr.exact.state import Ending, Interrupts, SolveState
from ltr.exact.weight_space import WeightSpaceSearch

if TYPE_CHECKING:
    from ltr.exact.scip.host import Host

__all__ = ["HostedSearch"]

_RESTARTS = 100


@dataclass(frozen=True)
class HostedSearch:
    """Local search, then branch and bound by SCIP with the weight-space search in its nodes.

    Attributes:
        threads: of the kernel; None is one for each processor that the process may use.
        local_search: share of the time given to the local search, at first and between rounds; 0 skips it.

    Raises:
        ValueError: a field out of range.

    Examples:
        >>> from ltr.exact import Limits, RerankProblem, solve
        >>> problem = RerankProblem([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0, 1, 0], max_nonzeros=1)
        >>> solution = solve(problem, HostedSearch(threads=1, local_search=0), Limits(time_limit=60))
        >>> solution.status, solution.value, solution.weights.tolist()
        (<Status.OPTIMAL: 'optimal'>, 1.0, [0.0, -1.0])
    """

    threads: int | None = None
    local_search: float = 0.1

    def __post_init__(self) -> None:
        WeightSpaceSearch(threads=self.threads, local_search=self.local_search)  # the rules are the same

    def check(self, problem: Problem) -> None:
        """Every problem will do."""

    def prepare(self) -> None:
        """Load SCIP; compile the search, or load what was compiled before."""
        import ltr.exact.scip.host  # noqa: F401 (loading takes a second)

        WeightSpaceSearch().prepare()

    def run(self, state: SolveState) -> Ending:
        """Search locally, then branch and bound."""
        from ltr.exact.scip.host import Host
        from ltr.exact.weight_space import available_threads
        from ltr.exact.weight_space.search import out_of_reach

        state.offer(np.zeros(state.problem.d))
        if (ending := out_of_reach(state)) is not None:
            search_locally(state, state.remaining)
            return ending
        if self.local_search > 0:
            search_locally(state, min(self.local_search * state.limits.time_limit, LONGEST_SEARCH), _RESTARTS)
        with Interrupts() as interrupts, Host(state, self.threads or available_threads(), self.local_search) as host:
            host.interrupted = lambda: interrupts.count > 0
            return attempt(host.guard, lambda: _search(host, state))


def _search(host: Host, state: SolveState) -> Ending:
    claim = optimize(host.model, state)
    complete = claim in ("optimal", "infeasible")  # no open nodes are left
    bound = host.proven if complete else host.bound
    if math.isfinite(bound):
        state.prove(bound)
    host.guard.check()
    message, status = f"{host.workers.boxes} boxes in {state.nodes} nodes", STATUS[claim]
    if status is None:
        return Ending(Status.INEXACT, f"SCIP gave up with status {claim!r}")
    if not complete:
        return Ending(status, message)
    if state.value > -math.inf:
        return Ending(Status.OPTIMAL, message)
    # some box could not be closed, and yet no weights came out of it
    undecided = host.search.closed > -math.inf
    return Ending(Status.INEXACT if undecided else Status.INFEASIBLE, message)
