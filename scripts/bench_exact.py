"""Measure the methods of the exact stage: seconds to a proof, the gap over time, memory.

Each list (see `_lists`) is solved by each method in a process of its own, from a warm start that all methods share, the
best of a local search. Compilation is not timed. The methods are as `ltr.exact.solve` runs them, so each begins with a
short local search of its own. A plot of the gaps is written beside the records.

    LTR_DATA=path/to/data python -m scripts.bench_exact --only data=travel "top=50;100"
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ltr.exact import METHODS, Limits, Solution, TracePoint, solve
from ltr.exact.local_search.search import local_search
from ltr.exact.solve import Solver
from ltr.threads import available_threads
from scripts._bench import Bench, Json, made_on, peak
from scripts._lists import LONGEST, QUERIES, TINY, name_of, problem_of
from trainers.report import drawing as draw
from trainers.tables import markdown_table


class Method(NamedTuple):
    """A method: its solver, and its style in the plot."""

    solver: Solver
    label: str
    colour: str
    dashes: tuple[float, ...] = ()  # for a line that covers others
    own_model: bool = False  # its bound holds only for the weights that its model admits


_METHODS = {
    "weight_space": Method(METHODS["weight_space"], "weight-space search", "#0072b2"),
    "resolved": Method(METHODS["resolved"], "SCIP, the paper's model", "#d55e00", (4, 2), True),
}
_STANDARD = ("travel", "uis", "pima", "haberman")
_WIDE = ("glow500", "nhanes", "polypharm")  # 10 features and more
_TIMES = (10.0, 60.0, 600.0)  # seconds after which gaps are shown
_RESTARTS = 200  # of the local search that gives the warm start
_STEP = 0.99  # the trace keeps a point when the gap falls to this share of the last one
_FIRST, _LEAST = 1e-2, 1e-2  # seconds and percent where the axes of the plot begin


def measure(data: str, top: str, method: str, time_limit: float, threads: int) -> Json:
    """Return the result of a solve."""
    problem, own = problem_of(data, str(top)), _METHODS[method]
    solver = own.solver
    if hasattr(solver, "threads"):
        solver = dataclasses.replace(solver, threads=threads)  # type: ignore[type-var]
    sizes = [len(problem.positives), len(problem.negatives)] if problem.binary else [problem.n, len(problem.lists)]
    solver.check(problem)
    solve(TINY, solver, Limits(time_limit=10.0))  # imports what the method needs
    warm = local_search(problem, restarts=_RESTARTS, time_limit=60.0)
    before, start = peak(), problem.evaluate(warm.weights)
    solution = solve(problem, solver, Limits(time_limit=time_limit), warm_starts=[warm.weights])
    return {
        "shape": [*sizes, problem.d],
        "status": solution.status.value,
        "message": solution.message,
        "seconds": solution.seconds,
        "value": solution.value,
        "start_value": start,
        "bound": _bound(solution, solution.value, own),
        "nodes": solution.nodes,
        "memory": peak() - before,
        "trace": _thinned(solution, own, start),
    }


def _bound(point: Solution | TracePoint, value: float, method: Method) -> float:
    """Return the bound on the problem, or on the method's own model where that is lower; at least the value."""
    proven = point.model_bound if method.own_model and point.model_bound is not None else math.inf
    return max(value, min(point.bound, proven))


def _thinned(solution: Solution, method: Method, start: float) -> list[list[float]]:
    """Return seconds, incumbent and bound wherever the gap has fallen by a hundredth, and at the end.

    The trace begins with the warm start; earlier points, at w = 0, are dropped.
    """
    kept: list[list[float]] = []
    last = math.inf
    for point in solution.trace:
        bound = _bound(point, point.incumbent, method)
        difference = bound - point.incumbent
        if point.incumbent >= start and (difference <= _STEP * last or point is solution.trace[-1]):
            kept.append([point.seconds, point.incumbent, bound])
            last = difference
    return kept


def gap_at(record: Json, seconds: float) -> float:
    """Return the gap known after this many seconds, infinite before there is any."""
    known = [point for point in record["trace"] if point[0] <= seconds]
    if not known or known[-1][1] == 0:
        return math.inf
    _, value, bound = known[-1]
    return max(0.0, (bound - value) / abs(value))


def percent(gap: float) -> str:
    """Return a gap as a percentage with two significant digits; ``0`` within the tolerance of a proof."""
    return "-" if math.isinf(gap) else "0" if gap <= 1e-9 else f"{float(f'{100 * gap:.2g}'):g}%"


def tables(records: list[Json]) -> Mapping[str, str]:
    """Return the table of the solves, with notes on its columns."""
    times = [seconds for seconds in _TIMES if any(record["time_limit"] >= seconds for record in records)]
    columns = [
        *("list", "method", "pos/neg", "d", "proof, s"),
        *(f"gap at {seconds:g} s" for seconds in times),
        *("value", "bound", "boxes or nodes", "per second", "memory, MB"),
    ]
    rows = [_row(record, times) for record in records]
    notes = (
        f"{made_on(records)}\nFor `lightgbm_lambdarank`, pos/neg is rows/queries. Memory is the growth of the process's"
        " peak memory during the solve.\n\\* The bound is that of the paper's model, and holds only for weights without"
        " score differences strictly between 0 and the margin."
    )
    return {"exact": f"{markdown_table(columns, rows, left=2)}\n\n{notes}\n"}


def _row(record: Json, times: list[float]) -> list[str]:
    threads = f" ({record['threads']} threads)" if record["threads"] > 1 else ""
    positives, negatives, d = record["shape"]
    proven = record["status"] == "optimal" or gap_at(record, math.inf) <= 1e-9
    rate = record["nodes"] / record["seconds"]
    return [
        name_of(record["data"], record["top"]),
        f"{record['method']}{'*' if _METHODS[record['method']].own_model else ''}{threads}",
        f"{positives}/{negatives}",
        str(d),
        f"{record['seconds']:.3g}" if proven else "-",
        *("0" if proven and record["seconds"] <= limit else percent(gap_at(record, limit)) for limit in times),
        f"{record['value']:.5f}",
        f"{record['bound']:.5f}",
        f"{record['nodes']:.3g}" if record["nodes"] >= 1e4 else str(record["nodes"]),
        f"{rate:.3g}" if rate < 1e4 else f"{rate:.2g}",
        f"{record['memory']:.0f}",
    ]


def plot(records: list[Json], folder: Path) -> None:
    """Draw the gap over time, one panel for each list, one line for each method."""
    panels: dict[str, list[Json]] = {}
    for record in records:
        panels.setdefault(name_of(record["data"], record["top"]), []).append(record)
    figure, every = draw.panels(list(panels))
    last = max(record["trace"][-1][0] for record in records)
    top = max(gap for record in records for _, gap in _steps(record))
    for axes, own in zip(every, panels.values(), strict=True):
        for record in own:
            method, points = _METHODS[record["method"]], _steps(record)
            look = {"color": method.colour, "linewidth": 1.6, "zorder": 3 - len(method.dashes) / 2}
            (line,) = axes.step(*zip(*points, strict=True), where="post", **look)
            line.set_dashes(method.dashes)
            if record["status"] == "optimal":
                axes.plot(*points[-1], "o", color=method.colour, markersize=4, clip_on=False)
        axes.set(yscale="log", ylim=(_LEAST, 1.5 * top))
        draw.log_time(axes, _FIRST, last)
        axes.yaxis.set_major_formatter("{x:g}%")
        axes.yaxis.set_minor_formatter("")
    draw.name_axes(figure, x="seconds", y="gap")
    shown = {record["method"] for record in records}
    draw.legend(figure, [draw.entry(m.label, color=m.colour) for name, m in _METHODS.items() if name in shown])
    figure.savefig(folder / "exact_gap.png", dpi=130)


def _steps(record: Json) -> list[tuple[float, float]]:
    """Return seconds and gap in percent of each point of a trace; a gap that was closed ends at the axis."""
    points = [
        (max(seconds, _FIRST), max(100 * (bound - value) / abs(value), _LEAST))
        for seconds, value, bound in record["trace"]
        if value
    ]
    return [*points, (points[-1][0], _LEAST)] if record["status"] == "optimal" else points


_LISTS = [
    *((data, top, 600.0) for data in _STANDARD for top in ("50", "100", "150", LONGEST)),
    ("gaussians", LONGEST, 600.0),
    *((data, top, 60.0) for data in _WIDE for top in ("50", "100")),
    *((QUERIES, top, 60.0) for top in ("5", "20")),
]
BENCH = Bench(
    "exact",
    __doc__,
    "docs/exact_bench.md",
    [
        {"data": data, "top": top, "method": method, "time_limit": limit, "threads": threads}
        for data, top, limit in _LISTS
        for method, threads in (("weight_space", available_threads()), ("resolved", 1))
    ],
    measure,
    tables,
    alone=True,
    figures=plot,
)

if __name__ == "__main__":
    sys.exit(BENCH.main())
