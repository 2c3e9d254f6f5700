"""Weight-space search: branch and bound over boxes of weights, with a proof that holds in floating point.

=================  ==================================================================================================
module             contents
=================  ==================================================================================================
`search`           the proof: cutoffs that fall step by step, each proved by a pool of threads that closes every box
`_kernel`          the search loop of one thread: take a box, prune, bound, branch
`_bounds`          what closes a box: conflicts between pairs, the hinge bound, probing
`_boxes`           boxes on the stack, the interval bounds of their open pairs, bound tightening
`space`            the problem as compiled code reads it, and the memory of a thread
`coordinates`      the coordinates that are searched
=================  ==================================================================================================
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ltr.checks import one_of
from ltr.exact.local_search import compile_search, search_locally
from ltr.exact.problem import Problem
from ltr.exact.state import Ending, SolveState
from ltr.exact.weight_space.coordinates import SYSTEMS, apply_to

__all__ = ["WeightSpaceSearch", "available_threads"]


_LONGEST_SEARCH = 0.15  # seconds, before the first boxes; more follow between cutoffs
_RESTARTS = 100


@dataclass(frozen=True)
class WeightSpaceSearch:
    """Local search, then branch and bound over boxes of weight space until the value is proven.

    Attributes:
        threads: number of threads; None is one for each processor that the process may use.
        coordinates: `given` for the weights themselves, `adapted` for those that suit the pairs; None begins with the
            first and changes to the others if they promise fewer boxes.
        local_search: share of the time given to the local search, at first, between cutoffs and during long ones; 0
            skips it.

    Raises:
        ValueError: a field out of range.
    """

    threads: int | None = None
    coordinates: str | None = None
    local_search: float = 0.1

    def __post_init__(self) -> None:
        if self.threads is not None and not self.threads >= 1:
            raise ValueError(f"threads must be at least 1, got {self.threads!r}")
        if self.coordinates is not None:
            one_of("coordinates", self.coordinates, SYSTEMS)
        if not 0 <= self.local_search < 1:
            raise ValueError(f"local_search must be a share of the time from 0 to below 1, got {self.local_search!r}")

    def check(self, problem: Problem) -> None:
        """Accept every problem, but adapted coordinates only without side constraints and price."""
        if self.coordinates == "adapted" and not apply_to(problem):
            raise ValueError(
                "coordinates 'adapted' are for two or more features without price, side constraints and max_nonzeros, "
                "use None"
            )

    def prepare(self) -> None:
        """Compile the search and the local search, or load what was compiled before."""
        from ltr.exact.weight_space.search import compile_kernels

        compile_kernels()
        compile_search()

    def run(self, state: SolveState) -> Ending:
        """Search."""
        from ltr.exact.weight_space.search import out_of_reach, prove

        if (ending := out_of_reach(state)) is not None:
            search_locally(state, state.remaining)
            return ending
        if self.local_search > 0:
            search_locally(state, min(self.local_search * state.limits.time_limit, _LONGEST_SEARCH), _RESTARTS)
        return prove(state, self.threads or available_threads(), self.coordinates, self.local_search)


def available_threads() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
