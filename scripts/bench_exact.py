"""Measure the methods of the exact stage: seconds to a proof, the gap over time, memory.

Each list (see `_lists`) is solved by each method in a process of its own, from a warm start that all methods share (the
best of a local search of two seconds), within the largest of the limits. Compilation is not timed. The methods are as
`ltr.exact.solve` runs them, so each begins with a short local search of its own. Results go to ``results.jsonl`` in the
folder `--out`, one line per solve, and are not computed again. A Markdown table and a plot are written beside it.

    LTR_DATA=path/to/data python scripts/bench_exact.py --out runs/bench --data travel --top 50 100
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _bench import Json, Records, apart, command_line, parsed, peak, publish
from _lists import HIGH_DIMENSION, TINY, Case, cases, standard_cases

from ltr.data import DataError
from ltr.exact import METHODS, Limits, Solution, TracePoint, solve
from ltr.exact.local_search.search import local_search
from ltr.exact.solve import Solver
from ltr.threads import available_threads
from trainers.provenance import machine
from trainers.report.pictures import drawing as draw
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
_START = 2.0  # seconds of the local search that gives the warm start
_GRACE = 300.0  # seconds beyond the limit after which a process is killed
_STEP = 0.99  # the trace keeps a point when the gap falls to this share of the last one
_FIRST, _LEAST = 1e-2, 1e-2  # seconds and percent where the axes of the plot begin
_KEY = ("data", "top", "method", "threads", "time_limit")


# --- one solve ----------------------------------------------------------------------------------------------------


def measure(request: Json) -> Json:
    """Return the record of a solve: the request and its result."""
    problem, method = Case(request["data"], request["top"]).problem(), _METHODS[request["method"]]
    solver = method.solver
    if hasattr(solver, "threads"):
        solver = dataclasses.replace(solver, threads=request["threads"])  # type: ignore[type-var]
    sizes = [len(problem.positives), len(problem.negatives)] if problem.binary else [problem.n, len(problem.lists)]
    record = {key: request[key] for key in _KEY} | {"shape": [*sizes, problem.d]}
    try:
        solver.check(problem)
    except ValueError as error:
        return record | {"status": "not for this problem", "message": str(error)}
    solve(TINY, solver, Limits(time_limit=10.0))  # imports what the method needs
    before, start = peak(), problem.evaluate(request["start"])
    solution = solve(problem, solver, Limits(time_limit=request["time_limit"]), warm_starts=[request["start"]])
    return record | {
        "status": solution.status.value,
        "message": solution.message,
        "seconds": solution.seconds,
        "value": solution.value,
        "start_value": start,
        "bound": _bound(solution, solution.value, method),
        "nodes": solution.nodes,
        "memory": peak(),
        "memory_before": before,
        "trace": _thinned(solution, method, start),
    }


def _bound(point: Solution | TracePoint, value: float, method: Method) -> float:
    """Return the bound on the problem, or on the method's own model where that is lower; at least the value."""
    proven = point.model_bound if method.own_model and point.model_bound is not None else math.inf
    return max(value, min(point.bound, proven))


def _thinned(solution: Solution, method: Method, start: float) -> list[list[float]]:
    """Return seconds, incumbent, bound and nodes wherever the gap has fallen by a hundredth, and at the end.

    The trace begins with the warm start; earlier points, at w = 0, are dropped.
    """
    kept: list[list[float]] = []
    last = math.inf
    for point in solution.trace:
        bound = _bound(point, point.incumbent, method)
        difference = bound - point.incumbent
        if point.incumbent >= start and (difference <= _STEP * last or point is solution.trace[-1]):
            kept.append([point.seconds, point.incumbent, bound, point.nodes])
            last = difference
    return kept


# --- all solves ---------------------------------------------------------------------------------------------------


def measure_all(results: Records, chosen: Iterable[Case], options: argparse.Namespace) -> None:
    """Compute the solves that are missing or failed."""
    versions = f"pyscipopt {version('pyscipopt')}"
    for case in chosen:
        given = dataclasses.asdict(case)
        try:
            if not results[given]:
                found = local_search(case.problem(), restarts=10**6, time_limit=_START)
                results.add({**given, "start": found.weights.tolist(), "value": found.value})
        except DataError as error:
            print(f"{case.name}: skipped: {error}", file=sys.stderr)
            continue
        for method in options.methods:
            threads = options.threads if hasattr(_METHODS[method].solver, "threads") else 1
            request = given | {"method": method, "threads": threads, "time_limit": float(max(options.limits))}
            if results[request] and results[request][-1]["status"] != "failed":
                continue
            print(f"{case.name}, {method} ... ", end="", flush=True)
            asked = request | {"start": results[given][-1]["start"]}
            record = apart(__file__, asked, seconds=request["time_limit"] + _GRACE)
            record.pop("start", None)
            results.add(record | {"machine": f"{machine()}, {versions}"})
            print(record["status"], record.get("message", ""))


def chosen_records(results: Records, case: Case, methods: Sequence[str]) -> list[Json]:
    """Return the last records of a case with the longest time limit of each method, in the order of methods."""
    ordered: list[Json] = []
    for method in methods:
        found = {
            (record["threads"], record["time_limit"]): record
            for record in results.all()
            if (record["data"], record["top"], record.get("method")) == (case.data, case.top, method)
        }
        longest = max((limit for _, limit in found), default=0.0)
        ordered += [record for (_, limit), record in sorted(found.items()) if limit == longest]
    return ordered


# --- the table ----------------------------------------------------------------------------------------------------


def gap_at(record: Json, seconds: float) -> float:
    """Return the gap known after this many seconds, infinite before there is any."""
    known = [point for point in record["trace"] if point[0] <= seconds]
    if not known or known[-1][1] == 0:
        return math.inf
    _, value, bound, _ = known[-1]
    return max(0.0, (bound - value) / abs(value))


def row(case: Case, record: Json, limits: Sequence[float]) -> list[str]:
    """Return one line of the table."""
    threads = f" ({record['threads']} threads)" if record["threads"] > 1 else ""
    head = [case.name, f"{record['method']}{'*' if _METHODS[record['method']].own_model else ''}{threads}"]
    if "trace" not in record:
        return [*head, *("-" for _ in range(8 + len(limits)))]
    positives, negatives, d = record["shape"]
    proven = record["status"] == "optimal" or gap_at(record, math.inf) <= 1e-9
    rate = record["nodes"] / record["seconds"]
    return [
        *head,
        f"{positives}/{negatives}",
        str(d),
        f"{record['seconds']:.3g}" if proven else "-",
        *("0" if proven and record["seconds"] <= limit else percent(gap_at(record, limit)) for limit in limits),
        f"{record['value']:.5f}",
        f"{record['bound']:.5f}",
        f"{record['nodes']:.3g}" if record["nodes"] >= 1e4 else str(record["nodes"]),
        f"{rate:.3g}" if rate < 1e4 else f"{rate:.2g}",
        f"{record['memory'] - record['memory_before']:.0f}",
    ]


def percent(gap: float) -> str:
    """Return a gap as a percentage with two significant digits; ``0`` within the tolerance of a proof."""
    return "-" if math.isinf(gap) else "0" if gap <= 1e-9 else f"{float(f'{100 * gap:.2g}'):g}%"


def report(found: dict[Case, list[Json]], limits: Sequence[float]) -> str:
    """Return the table, with notes on its columns."""
    columns = [
        *("list", "method", "pos/neg", "d", "proof, s"),
        *(f"gap at {limit:g} s" for limit in limits),
        *("value", "bound", "boxes or nodes", "per second", "memory, MB"),
    ]
    rows = [row(case, record, limits) for case, records in found.items() for record in records]
    machines = sorted({r["machine"] for records in found.values() for r in records if "machine" in r})
    notes = [f"Measured on {'; '.join(machines)}."] if machines else []
    notes += [
        "For `lightgbm_lambdarank`, pos/neg is rows/queries. Memory is the growth of the process's peak memory during"
        " the solve.",
        r"\* The bound is that of the paper's model, and holds only for weights without score differences strictly"
        " between 0 and the margin.",
    ]
    text = "\n".join(notes)
    return f"{markdown_table(columns, rows, left=2)}\n\n{text}\n"


# --- the plot -----------------------------------------------------------------------------------------------------


def plot(panels: dict[str, list[Json]], path: Path) -> None:
    """Draw the gap over time, one panel for each list, one line for each method."""
    figure, every = draw.panels(list(panels))
    shown = {record["method"]: _METHODS[record["method"]] for records in panels.values() for record in records}
    steps = {name: [_steps(record) for record in records] for name, records in panels.items()}
    last, top = np.max([point for several in steps.values() for points in several for point in points], axis=0)
    for axes, (name, records) in zip(every, panels.items(), strict=True):
        for record, points in zip(records, steps[name], strict=True):
            method, above = _METHODS[record["method"]], 3 if record["method"] == "weight_space" else 2
            look = {"color": method.colour, "linewidth": 1.6, "zorder": above}
            (line,) = axes.step(*zip(*points, strict=True), where="post", **look)
            line.set_dashes(method.dashes)
            if record["status"] == "optimal":
                axes.plot(*points[-1], "o", color=method.colour, markersize=4, clip_on=False)
        axes.set(yscale="log", ylim=(_LEAST, 1.5 * top))
        draw.log_time(axes, _FIRST, last)
        draw.gap_axis(axes.yaxis, _LEAST, top)
    draw.name_axes(figure, x="seconds", y="gap")
    draw.legend(figure, [draw.entry(m.label, color=m.colour) for m in _METHODS.values() if m in shown.values()])
    figure.savefig(path, dpi=130)


def _steps(record: Json) -> list[tuple[float, float]]:
    """Return seconds and gap in percent of each point of a trace; a gap that was closed ends at the axis."""
    points = [
        (max(seconds, _FIRST), max(100 * (bound - value) / abs(value), _LEAST))
        for seconds, value, bound, _ in record["trace"]
        if value
    ]
    return [*points, (points[-1][0], _LEAST)] if record["status"] == "optimal" else points


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, then write table and plot; return 1 if there is nothing to show."""
    parser = command_line(__doc__, "runs/bench")
    parser.add_argument("--data", nargs="+", metavar="NAME", help="data sets (default: the standard lists)")
    parser.add_argument("--top", nargs="+", metavar="K", default=["50", "100", "150", "full"], help="lengths of lists")
    parser.add_argument("--high-dimension", action="store_true", help="the lists with 10 features and more instead")
    parser.add_argument("--limits", nargs="+", type=float, metavar="SECONDS", help="default 10 60 600, or 10 60")
    parser.add_argument("--methods", nargs="+", choices=_METHODS, help=f"of {', '.join(_METHODS)} (default: all)")
    parser.add_argument("--threads", type=int, default=available_threads(), help="for those that use several")
    parser.add_argument("--image", type=Path, metavar="PNG", help="a second place for the plot")
    options = parsed(parser, measure, arguments)
    wide = options.high_dimension
    options.limits = sorted(options.limits or ([10.0, 60.0] if wide else [10.0, 60.0, 600.0]))
    options.methods = options.methods or (["weight_space", "resolved"] if wide else list(_METHODS))
    results = Records(options.out / "results.jsonl", _KEY)
    try:
        if wide:
            chosen = [case for case in HIGH_DIMENSION if not options.data or case.data in options.data]
        else:
            chosen = cases(options.data, options.top) if options.data else standard_cases()
        measure_all(results, chosen, options)
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    found = {case: chosen_records(results, case, options.methods) for case in chosen}
    if not any(found.values()):
        return 1
    name = "exact_high_dimension" if wide else "exact"
    publish(options, name, report(found, options.limits))
    panels = {case.name: [r for r in records if r.get("trace")] for case, records in found.items()}
    if panels := {title: records for title, records in panels.items() if records}:
        for path in filter(None, (options.out / f"{name}_gap.png", options.image)):
            plot(panels, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
