"""Weight-space search: branch and bound over boxes of weights, with a proof that holds in floating point.

=====================  =================================================================================================
module                 contents
=====================  =================================================================================================
`search`               the proof: rounds of targets that fall step by step, at each of which every box is closed
`pool`                 the pool of threads that closes boxes
`space`                the problem as compiled code reads it
`coordinates`          the coordinates that are searched
=====================  =================================================================================================

What takes the time is written in C++: ``ltr/native/weight_space/search.h`` has the loop of one thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ltr.checks import one_of
from ltr.exact import tuning
from ltr.exact.arcs import apply_to as arcs_apply_to
from ltr.exact.arcs import search_arcs
from ltr.exact.local_search import search_instead, search_locally, search_without_demands
from ltr.exact.local_search.search import line_search_seconds
from ltr.exact.points import search_points
from ltr.exact.problem import Problem, check_pairs
from ltr.exact.solution import Status
from ltr.exact.state import Ending, SolveState
from ltr.exact.supports import supports_of
from ltr.exact.weight_space.coordinates import SYSTEMS, apply_to
from ltr.exact.weight_space.search import out_of_reach, prove
from ltr.threads import available_threads

__all__ = ["WeightSpaceSearch"]


@dataclass(frozen=True)
class WeightSpaceSearch:
    """Local search, then branch and bound over boxes of weight space, until the value is proven.

    Attributes:
        threads: number of threads; None is one for each processor that the process may use.
        coordinates: `given` for the weights themselves, `adapted` for those that suit the pairs; None takes the second
            if they promise fewer boxes: at first with 5 to 20 features, else during longer searches.
        local_search: share of the time given to the local search: at first, and then on one of the threads, beside the
            boxes; 0 skips it.
        scip: whether SCIP branches and solves linear programs (`ltr.exact.scip.hosted`) where side constraints link
            several weights, except for whole numbers, required columns and a `max_nonzeros` that is searched set by
            set; without it they can take far longer.

    Raises:
        ValueError: a field out of range.
    """

    threads: int | None = None
    coordinates: str | None = None
    local_search: float = 0.1
    scip: bool = True

    def __post_init__(self) -> None:
        if self.threads is not None and not self.threads >= 1:
            raise ValueError(f"threads must be at least 1, got {self.threads!r}")
        if self.coordinates is not None:
            one_of("coordinates", self.coordinates, SYSTEMS)
        if not 0 <= self.local_search < 1:
            raise ValueError(f"local_search must be a share of the time from 0 to below 1, got {self.local_search!r}")

    def check(self, problem: Problem) -> None:
        """Accept every problem with pairs, but adapted coordinates only where nothing is asked of single weights."""
        check_pairs(problem)
        asked = problem.integer is not None or problem.required or problem.max_nonzeros is not None
        if not problem.linear and (asked or not self.scip):
            raise ValueError(
                "ScipConstraints cannot be combined with scip=False, integer, required and max_nonzeros: state these in"
                " SCIP, too"
            )
        if self.coordinates == "adapted" and not apply_to(problem):
            raise ValueError(
                f"coordinates 'adapted' are for 2 to {tuning.ADAPTED_TO} features without price, side constraints, "
                "max_nonzeros, required columns and whole numbers, use None"
            )
        if self.scip and _linked(problem):
            import ltr.exact.scip.hosted  # noqa: F401 (before the clock starts)

    def run(self, state: SolveState) -> Ending:
        """Search."""
        problem, share = state.problem, self.local_search
        threads = self.threads or available_threads()
        if not problem.linear:  # which the local search does not know
            share, start = 0.0, problem.sides.point(-np.ones(problem.d), np.ones(problem.d))
            if start is None:
                return Ending(Status.INFEASIBLE)
            state.offer(start)

        def search_briefly() -> None:
            if share == 0:
                return
            longest = max(tuning.FIRST_SEARCH, line_search_seconds(problem))
            seconds = min(share * state.limits.time_limit, longest)
            if problem.demanded:
                seconds /= 2
                search_without_demands(state, seconds, tuning.FIRST_RESTARTS)
            search_locally(state, seconds, tuning.FIRST_RESTARTS)

        if problem.integer is not None:
            search_briefly()
            if (ending := search_points(state, threads)) is not None:
                return ending
        ending = out_of_reach(state)
        long = ending is not None or problem.pair_count > tuning.FEW_PAIRS
        if self.coordinates is None and long and arcs_apply_to(problem, state, threads):
            if share > 0:
                seconds = tuning.FIRST_SEARCH + tuning.FIRST_SEARCH_PER_ROW * problem.n
                search_locally(
                    state, min(share * state.limits.time_limit, seconds), tuning.FIRST_RESTARTS, threads=threads
                )
            of_arcs = search_arcs(state, threads)
            if of_arcs.status is not Status.INEXACT:
                return of_arcs
            ending = ending and of_arcs  # boxes may decide what is left, if they can
        if ending is not None:
            if problem.linear:
                search_instead(state, ending, threads)
            return ending
        if problem.integer is None:
            search_briefly()
        if state.closed(claimed=False):
            return Ending(Status.OPTIMAL, "the bound is attained")
        options = state, threads, self.coordinates, share
        if self.scip and _linked(problem):
            from ltr.exact.scip.hosted import close_in_scip

            ending = prove(*options, close=close_in_scip)
            # a search without SCIP's tolerances may decide what is left
            if ending.status is not Status.INEXACT or not problem.linear:
                return ending
        return prove(*options)


def _linked(problem: Problem) -> bool:
    """Whether side constraints link several weights of one space, for which SCIP has a model."""
    several = not problem.linear or bool((np.count_nonzero(problem.sides.A, axis=1) > 1).any())
    return several and problem.integer is None and not problem.required and supports_of(problem) is None
