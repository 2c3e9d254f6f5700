"""Solve a problem: choose a method, keep to the limits, and never lose the incumbent.

A method is an object with `check` and `run` (see `Solver`) whose fields are its options; `METHODS` names the ones that
come with the package, and `solve` takes a name or any such object.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ltr.checks import as_sequence, check_callable
from ltr.exact import tuning
from ltr.exact.cards import CardProblem, CardSearch
from ltr.exact.local_search import LocalSearch
from ltr.exact.problem import FloatArray, Problem, sizes_of
from ltr.exact.risk import RiskProblem
from ltr.exact.solution import Progress, Solution, Status
from ltr.exact.state import Ending, Interrupts, Limits, SolveState, Stopped
from ltr.exact.weight_space import WeightSpaceSearch

__all__ = ["METHODS", "Solver", "choose_method", "solve"]


@runtime_checkable
class Solver(Protocol):
    """The interface of a method, as `solve` calls it."""

    def check(self, problem: Problem) -> None:
        """Raise ValueError if the method cannot solve the problem."""

    def run(self, state: SolveState) -> Ending:
        """Offer weights to the state and prove bounds until done or `SolveState.check` raises `Stopped`."""


_ROWS: dict[str, Solver | None] = {
    "local_search": LocalSearch(),
    "weight_space": WeightSpaceSearch(),
    "cards": CardSearch(),
    # those of `ltr.exact.scip.METHODS`: SCIP is loaded when one of them is used
    **dict.fromkeys(("lattice", "resolved", "subrank", "auc", "pairwise")),
}


class _Methods(Mapping[str, Solver]):
    def __getitem__(self, name: str) -> Solver:
        if (solver := _ROWS[name]) is None:
            from ltr.exact import scip

            return scip.METHODS[name]
        return solver

    def __iter__(self) -> Iterator[str]:
        return iter(_ROWS)

    def __len__(self) -> int:
        return len(_ROWS)


METHODS: Mapping[str, Solver] = _Methods()
"""The methods by name."""


def choose_method(problem: Problem) -> tuple[str, str]:
    """Return the method that ``"auto"`` stands for, and why."""
    if isinstance(problem, CardProblem):
        return "cards", "the problem is one of points"
    if isinstance(problem, RiskProblem):
        return "lattice", "the problem is one of a logistic loss"
    features = f"{problem.d} feature{'s are' if problem.d > 1 else ' is'}"
    if problem.d <= tuning.PROVABLE:
        return "weight_space", f"{features} few enough for a proof"
    return "weight_space", f"{features} many for a proof, the bound may stay high"


def check_method(method: str | Solver) -> None:
    """Raise ValueError unless `method` is the name of a method or a `Solver`."""
    if isinstance(method, str) and method not in ("auto", *METHODS):
        raise ValueError(f"method must be one of auto, {', '.join(METHODS)}, got {method!r}")
    if not isinstance(method, str) and (isinstance(method, type) or not isinstance(method, Solver)):
        raise ValueError(f"method must be a name or a solver object, got {method!r}")


def solve(
    problem: Problem,
    method: str | Solver = "auto",
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
    *,
    warm_starts: Sequence[ArrayLike] = (),
    on_progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Solution:
    """Return the best weights found for a problem, with a bound that says how far from the optimum they can be.

    Whatever stops the solver (a limit, Ctrl-C, `should_stop`), the answer has the best weights so far and a valid
    bound; only `on_progress` and `should_stop` can raise once the arguments are accepted.

    Args:
        problem: a problem of any kind.
        method: a name of `METHODS`, ``"auto"`` (see `choose_method`), or a `Solver` with options of your own.
        limits: when to stop, and the seed.
        warm_starts: weights to start from, each of shape (d,).
        on_progress: called with every new `TracePoint`.
        should_stop: called several times per second; True ends the solve with status ``interrupted``.

    Raises:
        ValueError: an unknown method, a method that cannot solve this problem, or warm starts of another shape.

    Examples:
        >>> from ltr.exact import RerankProblem
        >>> solution = solve(RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 0]), limits=Limits(time_limit=10))
        >>> solution.status, round(solution.value, 4), solution.gap
        (<Status.OPTIMAL: 'optimal'>, 0.6309, 0.0)
    """
    if not isinstance(limits, Limits):
        raise ValueError(f"limits must be a Limits, such as Limits(time_limit=60), got {limits!r:.80}")
    check_method(method)
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a RerankProblem or PairwiseProblem, got {type(problem).__name__}")
    name, note = method if isinstance(method, str) else type(method).__name__, ""
    if method == "auto":
        name, reason = choose_method(problem)
        note = f"auto chose {name}: {reason}"
    solver = METHODS[name] if isinstance(method, str) else method
    check_callable("on_progress", on_progress)
    check_callable("should_stop", should_stop)
    with Interrupts() as interrupts:
        solver.check(problem)  # which may load SCIP: a signal meanwhile ends the solve as any other does
        started = time.monotonic()
        starts = [problem.in_box(w) for w in as_sequence("warm_starts", warm_starts, "weights")]
        state = SolveState(problem, limits, on_progress=on_progress, should_stop=should_stop, started=started)
        features = single_features(problem)
        try:
            ending = _run(solver, state, starts, features, interrupts)
            interrupts.disarm()
        except KeyboardInterrupt:
            ending = Ending(Status.INTERRUPTED)
        state.limits = limits
        _offer_single_features(state, features, interrupts)
        _divide_points(state)
        message = "; ".join(part for part in (note, ending.message) if part)
        solution = state.solution(dataclasses.replace(ending, message=message), name)
        if on_progress is not None:
            with contextlib.suppress(KeyboardInterrupt):  # nothing is left to interrupt
                on_progress(solution.trace[-1])
        return solution


def _divide_points(state: SolveState) -> None:
    """Divide whole numbers by their greatest common divisor if that leaves their value as it is."""
    if state.problem.integer is not None and state.weights.any():
        w = state.weights / np.gcd.reduce(state.weights.astype(np.int64))
        if state.problem.feasible(w) and state.problem.evaluate(w) == state.value:
            state.weights = w


def _run(
    solver: Solver, state: SolveState, starts: list[FloatArray], features: Iterator[FloatArray], interrupts: Interrupts
) -> Ending:
    try:
        state.starts = starts
        for w in (np.zeros(state.problem.d), *starts):
            state.offer(w)
        # where single features take long, most of them are compared after the search, in the time that is left for them
        began, limit = state.seconds, state.limits.time_limit
        offered = _offer_single_features(state, features, interrupts, tuning.FEATURES_SHARE * limit)
        left = (2 * state.problem.d - offered) * (state.seconds - began) / max(1, offered)
        if left > 0:
            shorter = max(limit / 2, limit - tuning.FEATURES_ROOM * left)
            state.limits = dataclasses.replace(state.limits, time_limit=shorter)
        interrupts.arm()
        return solver.run(state)
    except Stopped as stop:
        return Ending(stop.status, stop.message)


def _offer_single_features(
    state: SolveState, features: Iterator[FloatArray], interrupts: Interrupts, seconds: float = math.inf
) -> int:
    """Offer weights of single features for some seconds, a moment where a limit is reached; return how many."""
    until, end = math.inf, state.seconds + seconds
    for offered in itertools.count():
        if until == math.inf and (interrupts.count or state.remaining == 0 or state.stop_requested()):
            until = state.seconds + tuning.FEATURES_GRACE
        if state.seconds > min(until, end) or state.closed(claimed=False) or (w := next(features, None)) is None:
            return offered
        state.offer(w)
    raise AssertionError


def single_features(problem: Problem) -> Iterator[FloatArray]:
    """Yield weights of one feature alone, with either sign and as large as side constraints allow.

    The features whose means differ most between the upper and the lower observations of the pairs come first, with the
    sign of that difference.
    """
    scaled = problem.X / sizes_of(problem.X)
    spread = scaled.std(axis=0)
    promise = problem.balance @ scaled / np.where(spread > 0, spread, 1.0)
    sides = problem.sides
    for sign in (1.0, -1.0):
        for j in np.argsort(-np.abs(promise), kind="stable").tolist():
            w = np.zeros(problem.d)
            w[j] = sign if promise[j] >= 0 else -sign
            slopes = sides.A[:, j] * w[j]
            length = np.min(sides.b[slopes > 0] / slopes[slopes > 0], initial=problem.reach)
            if problem.integer is not None:
                length = math.floor(length)
            if length > 0:
                yield length * w
