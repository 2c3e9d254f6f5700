"""Weights from a short local search, offered to a solve under way."""

from __future__ import annotations

import math

from ltr.exact.solution import Status
from ltr.exact.state import SolveState, Stopped

__all__ = ["RESTARTS", "search_locally"]

RESTARTS = 300


def search_locally(state: SolveState, seconds: float, restarts: int = RESTARTS) -> None:
    """Offer the best weights that the local search finds in this time, starting from the best known.

    Raises:
        Stopped: when time is up or the caller asks for an end.
    """
    from ltr.exact.local_search import local_search

    state.check()  # behind the import, which may outlast a short time limit
    found = local_search(
        state.problem,
        seed=state.limits.seed,
        starts=[state.weights] if math.isfinite(state.value) else [],
        restarts=restarts,
        time_limit=min(seconds, state.remaining),
        should_stop=state.stop_requested,
    )
    if math.isfinite(found.value):
        state.offer(found.weights)
    if found.interrupted:  # it keeps what it has on Ctrl-C too
        raise Stopped(Status.INTERRUPTED)
    state.check()
