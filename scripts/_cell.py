"""One cell of the benchmark of exact methods, in a process of its own: a case, a method, a warm start, a time limit.

Reads a request as JSON from standard input and writes a record as JSON to standard output. A process a cell makes its
peak of memory the method's own; compilation and imports come before the clock.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from typing import Any

from _highs import HighsSolver
from _lists import Case
from _memory import peak

from ltr.exact import METHODS, Limits, Problem, RerankProblem, Solution, TracePoint, solve
from ltr.exact.solve import Solver

__all__ = ["OWN_MODEL", "measure", "method_names", "threads_used"]

Json = dict[str, Any]

OWN_MODEL = ("resolved_faithful", "highs")
"""Methods whose bound holds for the weights that their model admits, fewer than the problem's."""

_STEP = 0.99  # of the gap, at which the trace keeps a point
_TINY = RerankProblem([[0.0, 1.0], [1.0, 0.5], [2.0, 3.0]], [0, 1, 0])


def method_names() -> list[str]:
    """The methods that can be measured here."""
    return ["weight_space", *(["hosted"] if "hosted" in METHODS else []), "resolved", "resolved_faithful", "highs"]


def measure(request: Json) -> Json:
    """Solve, and tell what came of it.

    Args:
        request: `data` and `top` of the case, `method`, `threads`, `time_limit`, and `start`, the warm start.
    """
    case = Case(request["data"], request["top"])
    problem, solver = case.problem(), _solver(request["method"], request["threads"])
    record = {key: request[key] for key in ("data", "top", "method", "threads", "time_limit")} | {
        "shape": shape(problem)
    }
    try:
        solver.check(problem)
    except ValueError as error:
        return record | {"status": "not for this problem", "message": str(error)}
    _warm_up(solver)
    own = request["method"] in OWN_MODEL
    before = peak()
    solution = solve(problem, solver, Limits(time_limit=request["time_limit"]), warm_starts=[request["start"]])
    return record | {
        "status": solution.status.value,
        "message": solution.message,
        "seconds": solution.seconds,
        "value": solution.value,
        "start_value": problem.evaluate(request["start"]),
        "bound": _bound(solution, own),
        "nodes": solution.nodes,
        "memory": peak(),
        "memory_before": before,
        "trace": _thinned(solution, own, problem.evaluate(request["start"])),
    }


def shape(problem: Problem) -> list[int]:
    """Positives, negatives and features; observations, lists and features where gains are graded."""
    if problem.binary:
        return [len(problem.positives), len(problem.negatives), problem.d]
    return [problem.n, len(getattr(problem, "lists", [0])), problem.d]


def threads_used(method: str, threads: int) -> int:
    """How many threads a method uses where it may use so many."""
    return threads if hasattr(_method(method), "threads") else 1


def _method(name: str) -> Solver:
    return HighsSolver() if name == "highs" else METHODS[name]


def _solver(name: str, threads: int) -> Solver:
    method = _method(name)
    return dataclasses.replace(method, threads=threads) if hasattr(method, "threads") else method  # type: ignore[type-var]


def _warm_up(solver: Solver) -> None:
    """Compile and import what the method needs; both are done once in a process."""
    solve(_TINY, solver, Limits(time_limit=10.0))


def _bound(point: Solution | TracePoint, own: bool) -> float:
    """The bound on the problem, or with `own` on the method's model where that is lower; at least the value."""
    value = point.value if isinstance(point, Solution) else point.incumbent
    proven = point.model_bound if own and point.model_bound is not None else math.inf
    return max(value, min(point.bound, proven))


def _thinned(solution: Solution, own: bool, start: float) -> list[list[float]]:
    """Seconds, incumbent, bound and nodes wherever the gap has fallen by a hundredth, and at the end.

    It begins with the warm start: the weights 0 are offered before it.
    """
    kept: list[list[float]] = []
    last, end = math.inf, solution.trace[-1]
    for point in solution.trace:
        difference = _bound(point, own) - point.incumbent
        if point.incumbent >= start and (difference <= _STEP * last or point is end):
            kept.append([point.seconds, point.incumbent, _bound(point, own), point.nodes])
            last = difference
    return kept


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
