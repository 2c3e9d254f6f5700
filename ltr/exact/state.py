"""A solve under way: its limits and clock, the best weights seen, the bound proven, the trace.

Solvers offer weights and prove bounds; this module alone decides the status of the answer. Values come from
`Problem.evaluate`, never from a solver.
"""

from __future__ import annotations

import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import psutil
from numpy.typing import ArrayLike

from ltr.checks import as_float, is_whole
from ltr.exact import tuning
from ltr.exact.problem import FloatArray, Problem
from ltr.exact.solution import Progress, Solution, Status, TracePoint, relative_gap

MEGABYTE = 2**20
TOLERANCE = 0.5e-12  # of the statistic's size: values closer than this are one value
_SNAP = 1e-9  # weights this small are solver noise
_CONTRADICTION = 1e-6  # a bound this far below a value is wrong, not rounded; relative to the statistic's size
_PROOF = 1e-9  # difference of value and bound up to which a solver's claim of optimality is accepted, likewise
_ROUNDING = 1e-12  # the same if no solver claims a proof
_WHOLE = 1e-6  # share of a step by which a bound may be below a whole number of them through rounding
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 3  # presses of Ctrl-C after which KeyboardInterrupt is raised whatever runs


@dataclass(frozen=True)
class Limits:
    """The limits of a solve: time, gap, nodes and memory; and its seed.

    Args:
        time_limit: seconds for everything but imports. Single features are compared for a fifth of a second longer.
        gap: relative gap, (bound - value) / |value|, at which to stop; 0 asks for a full proof.
        node_limit: largest number of branch-and-bound nodes; None for no limit.
        memory_limit: megabytes (of 2^20 bytes) that the solve may add to the process; None is half of what the machine
            has free. Where the pairs do not fit, a local search without them runs, and nothing is proven.
        seed: seed of all random choices, from 0 to 2^31 - 1.

    Raises:
        ValueError: a field outside its range.
    """

    time_limit: float = 60.0
    gap: float = 0.0
    node_limit: int | None = None
    memory_limit: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not as_float(self.time_limit) > 0:
            raise ValueError(f"time_limit must be a number of seconds > 0, got {self.time_limit!r}")
        if not 0 <= as_float(self.gap) < math.inf:
            raise ValueError(f"gap must be a finite number >= 0, got {self.gap!r}")
        if self.node_limit is not None and not as_float(self.node_limit) >= 1:
            raise ValueError(f"node_limit must be at least 1, got {self.node_limit!r}")
        if self.memory_limit is not None and not as_float(self.memory_limit) > 0:
            raise ValueError(f"memory_limit must be a number of megabytes > 0, got {self.memory_limit!r}")
        if not is_whole(self.seed) or not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be an integer from 0 to 2**31 - 1, got {self.seed!r}")


class Memory:
    """A limit on the megabytes added to the process after this object is made; None is half of what is free."""

    def __init__(self, limit: float | None = None) -> None:
        self._process = psutil.Process()
        self._began, self._measured_at, self._used = self._process.memory_info().rss, -math.inf, 0.0
        self.limit = tuning.MEMORY_SHARE * psutil.virtual_memory().available if limit is None else limit * MEGABYTE

    @property
    def left(self) -> float:
        """Bytes that may still be added, as seen a moment ago."""
        now = time.monotonic()
        if now - self._measured_at >= tuning.MEMORY_PAUSE:
            self._measured_at, self._used = now, float(self._process.memory_info().rss - self._began)
        return self.limit - max(0.0, self._used)


@dataclass(frozen=True)
class Ending:
    """How a solver stopped; the status is its own claim, which `SolveState.solution` checks."""

    status: Status
    message: str = ""


class Stopped(Exception):  # noqa: N818 - a request, not an error
    """Raised by `SolveState.check` once the solve has to end."""

    def __init__(self, status: Status, message: str = "") -> None:
        super().__init__(status.value)
        self.status, self.message = status, message


def scalable(problem: Problem) -> bool:
    """Whether scaling feasible weights up to max |w_j| = 1 keeps them feasible; it never lowers the objective.

    ``A w <= b`` gives ``A (s w) <= s b <= b`` for s >= 1 where b <= 0; so it is with the tolerance of the terms.
    """
    return problem.constraints is None or bool(np.all(problem.constraints.b <= 0))


def _roundings(problem: Problem, w: FloatArray) -> Iterator[FloatArray]:
    """Yield weights that are whole numbers already, or what they are rounded to at each size from the largest down."""
    largest = float(np.max(np.abs(w), initial=0.0))
    if largest == 0 or np.array_equal(w, np.rint(w)):
        yield w
        return
    assert problem.integer is not None
    needed = list(problem.required)
    for size in range(problem.integer, 0, -1):
        rounded = np.rint(w / largest * size)
        rounded[needed] = np.where(rounded[needed] == 0, np.where(w[needed] < 0, -1.0, 1.0), rounded[needed])
        yield rounded


class SolveState:
    """The state of a solve: what is known so far.

    Attributes:
        weights, value: the best feasible weights offered and their value; value is -inf before there are any.
        bound: the lowest bound proven; the trivial one at first.
        starts: weights that the caller gave to start from.
        free_value: value of the best weights known that need not meet the demands, -inf where there are none.
        zero_value: the value of w = 0, -inf where that is not allowed.
        model_bound: a solver's bound on its own model.
        nodes: number of nodes processed.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        *,
        on_progress: Progress | None = None,
        should_stop: Callable[[], bool] | None = None,
        started: float | None = None,
    ) -> None:
        self.problem, self.limits = problem, limits
        self._on_progress, self._should_stop = on_progress, should_stop
        self._started = time.monotonic() if started is None else started
        self.memory = Memory(limits.memory_limit)
        self.weights: FloatArray = np.zeros(problem.d)
        self.value = self.free_value = -math.inf
        self.bound = problem.trivial_bound
        self.model_bound: float | None = None
        self.nodes = 0
        self.starts: Sequence[FloatArray] = ()
        self.trace: list[TracePoint] = []
        self.zero_value = problem.evaluate(self.weights) if problem.feasible(self.weights) else -math.inf

    @property
    def seconds(self) -> float:
        """Seconds since the solve started."""
        return time.monotonic() - self._started

    @property
    def remaining(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self.limits.time_limit - self.seconds)

    @property
    def gap(self) -> float:
        """The relative gap between the best value and the bound proven."""
        return relative_gap(self.value, self.bound)

    @property
    def size(self) -> float:
        """The size of the numbers that tolerances are relative to: the statistic of a perfect ranking, or the value."""
        value = abs(self.value) if math.isfinite(self.value) else 0.0
        return max(abs(self.problem.trivial_bound), value)

    def closed(self, *, claimed: bool = True) -> bool:
        """Whether the bound has come down to the value, up to a tolerance that is wider for a solver's own claim."""
        return self.bound - self.value <= (_PROOF if claimed else _ROUNDING) * self.size

    def demands_bind(self, above: float = -math.inf) -> bool:
        """Whether weights are known that miss a demand and are better than the best ones, and than a value."""
        return bool(self.problem.demanded) and self.free_value > max(above, self.value) + TOLERANCE * self.size

    def stop_requested(self) -> bool:
        """Whether the caller asks the solve to stop."""
        return self._should_stop is not None and bool(self._should_stop())

    def check(self) -> None:
        """Raise `Stopped` once time or memory is used up or the caller asks the solve to stop."""
        if self.remaining == 0:
            raise Stopped(Status.TIME_LIMIT)
        if self.stop_requested():
            raise Stopped(Status.INTERRUPTED)
        if self.memory.left < 0:
            raise Stopped(Status.MEMORY_LIMIT)

    def require(self, size: float, purpose: str) -> None:
        """Raise `Stopped` if `size` more bytes would exceed the memory limit; the message names their purpose."""
        left = self.memory.left
        if size > left:
            need = f"{purpose} needs about {math.ceil(size / MEGABYTE)} MB"
            raise Stopped(Status.MEMORY_LIMIT, f"{need}, and {max(0, int(left / MEGABYTE))} MB may be used")

    def offer(self, w: ArrayLike) -> float:
        """Evaluate weights, keep them if they are feasible and the best so far, and return their value.

        They are tried as given, with solver noise snapped to 0, and scaled up to max |w_j| = 1 where that cannot hurt;
        whole numbers are rounded, at every size. The value is that of the best version, -inf if none is feasible.
        """
        best = -math.inf
        for candidate in self._versions(self.problem.in_box(w)):
            if self.problem.feasible(candidate):
                value = self.problem.evaluate(candidate)
                best = max(best, value)
                if value > self.value:
                    self.value, self.weights = value, candidate.copy()
                    self._record()
        return best

    def _versions(self, w: FloatArray) -> Iterator[FloatArray]:
        if self.problem.integer is not None:
            yield from _roundings(self.problem, w)
            return
        snapped = np.where(np.abs(w) < _SNAP, 0.0, w)
        largest = float(np.max(np.abs(snapped)))
        if scalable(self.problem) and 0 < largest < 1:
            yield snapped / largest
        yield snapped
        if np.any(snapped != w):
            yield w

    def prove(self, bound: float, *, model_bound: float = math.inf) -> None:
        """Record a bound that no feasible weights exceed, rounded down to a multiple of the problem's step.

        `model_bound` is one of a solver's own model.
        """
        if math.isfinite(bound) and self.problem.step > 0:
            bound = math.floor(bound / self.problem.step + _WHOLE) * self.problem.step
        improved = bound < self.bound
        self.bound = min(self.bound, bound)
        if model_bound < (math.inf if self.model_bound is None else self.model_bound):
            self.model_bound, improved = model_bound, True
        if improved and self.trace and self.seconds - self.trace[-1].seconds >= tuning.TRACE_PACE:
            self._record()

    def _record(self) -> None:
        point = TracePoint(self.seconds, self.value, max(self.bound, self.value), self.nodes, self.model_bound)
        self.trace.append(point)
        if self._on_progress is not None:
            self._on_progress(point)

    def solution(self, ending: Ending, method: str) -> Solution:
        """Return the answer, its status derived from value and bound.

        A solver rounds, so its bound may end slightly below a value that it reached; then the value is the bound. A
        bound clearly below an attained value is false, and is replaced by the trivial one.
        """
        status, notes, bound = ending.status, [ending.message], self.bound
        if status is Status.INFEASIBLE and self.value == -math.inf:
            bound = -math.inf
        else:
            if bound < self.value - _CONTRADICTION * self.size:
                notes.append(f"the solver's bound {bound:.9g} is below a value attained and was discarded")
                bound = self.bound = self.problem.trivial_bound
            bound = max(bound, self.value)
            claimed = status in (Status.OPTIMAL, Status.GAP_LIMIT, Status.INFEASIBLE)
            reached = self.limits.gap > 0 and relative_gap(self.value, bound) <= self.limits.gap
            if self.closed(claimed=claimed):
                status = Status.OPTIMAL
            elif reached and status is not Status.INTERRUPTED:
                status = Status.GAP_LIMIT
            elif claimed:
                status = Status.INEXACT
                notes.append(f"the solver claims {bound:.9g}, which no weights found attain exactly")
        end = TracePoint(self.seconds, self.value, bound, self.nodes, self.model_bound)
        return Solution(
            weights=self.weights + 0.0,  # no negative zeros
            value=self.value,
            bound=bound,
            status=status,
            seconds=end.seconds,
            method=method,
            nodes=self.nodes,
            # a bound that was discarded counts on the way neither
            trace=(*(dataclasses.replace(p, bound=max(p.bound, bound)) for p in self.trace), end),
            message="; ".join(filter(None, notes)),
            model_bound=self.model_bound,
        )


class Interrupts:
    """A context in which SIGINT and SIGTERM are noted, and raised as KeyboardInterrupt only while armed.

    The first signal within ``arm()`` .. ``disarm()`` raises; later ones are only noted, so that the answer can be
    completed undisturbed. In a thread other than the main one nothing changes.
    """

    def __init__(self) -> None:
        self.count = 0
        self._armed = False
        self._previous: list[Any] = []

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._previous = [signal.signal(number, self._note) for number in _SIGNALS]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        for number, previous in zip(_SIGNALS, self._previous, strict=False):
            # a handler that was not installed from Python reads as None and cannot be put back from here
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default if previous is None else previous)
        if self.count and isinstance(error, ValueError):  # no answer follows that could say that it was interrupted
            raise KeyboardInterrupt from error

    def arm(self) -> None:
        """Raise KeyboardInterrupt at the first signal from here on, or now if one has already come."""
        self._armed = True
        if self.count:
            self.disarm()
            raise KeyboardInterrupt

    def disarm(self) -> None:
        """Only note signals from here on."""
        self._armed = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self._armed or self.count > _PATIENCE:
            self.disarm()
            raise KeyboardInterrupt
