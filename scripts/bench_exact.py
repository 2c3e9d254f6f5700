"""Measure the methods of the exact stage: seconds to a proof, or the gap left after a minute; and what a demand costs.

A list is the top K of the training set of split 0 of a data set by logistic regression (C = 1e4 on standardised
features), or the lists of some queries. Its features are standardised again, without constant ones; DCG (mean NDCG of
queries), margin 1e-4, C = 0. Each method gets a process for itself and the same warm start, the best of a local search,
and begins with a short local search, as in `ltr.exact.solve`. Imports are not timed.
"""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path

import numpy as np

from ltr.data import half_split, load
from ltr.exact import METHODS, Demand, Limits, RerankProblem, Solution, TracePoint, solve
from ltr.exact.local_search.search import local_search
from ltr.rankers import LogisticRegressionRanker
from ltr.threads import available_threads
from scripts._bench import Bench, FloatArray, Json, grid, made_on, peak, pivot, table, value
from trainers.report.pictures import panels

QUERIES, LONGEST = "lightgbm_lambdarank", "full"
TINY = RerankProblem([[0.0, 1.0], [1.0, 0.5], [2.0, 3.0]], [0, 1, 0])  # to load a method with
_LOOK = {"weight_space": ("#0072b2", ()), "resolved": ("#d55e00", (4, 2))}  # colours and dashes
_PAPER = "resolved"  # the paper's model, whose bound holds only for the weights that it admits
_RESTARTS = 200  # of the local search that gives the warm start
_FIRST, _LEAST = 1e-2, 1e-2  # seconds and percent where the axes of the plot begin


def problem_of(data: str, top: str) -> RerankProblem:
    """Return the problem of the first `top` rows, or of so many queries of `QUERIES`; `LONGEST` is the whole set."""
    found = load(data)
    if data == QUERIES:
        rows = found.qid < int(top)
        return RerankProblem(_standardised(found.X[rows]), found.y[rows], qid=found.qid[rows], normalize=True)
    rows = half_split(found.n, 0)[0]
    X, y = found.X[rows], found.y[rows]
    if top != LONGEST:
        scores = LogisticRegressionRanker().fit(X, y).decision_function(X)
        first = np.argsort(-scores, kind="stable")[: int(top)]
        X, y = X[first], y[first]
    return RerankProblem(_standardised(X), y)


def _standardised(X: FloatArray) -> FloatArray:
    varying = X[:, np.ptp(X, axis=0) > 0]
    return (varying - varying.mean(axis=0)) / varying.std(axis=0)


def measure(data: str, top: str, method: str, threads: int, time_limit: float = 60.0) -> Json:
    """Return the result of a solve."""
    problem, solver = problem_of(data, top), METHODS[method]
    if hasattr(solver, "threads"):
        solver = dataclasses.replace(solver, threads=threads)
    solve(TINY, solver, Limits(time_limit=10.0))  # imports what the method needs
    warm = local_search(problem, restarts=_RESTARTS, time_limit=60.0).weights
    before, start = peak(), problem.evaluate(warm)
    found = solve(problem, solver, Limits(time_limit=time_limit), warm_starts=[warm])
    sizes = [len(problem.positives), len(problem.negatives)] if problem.binary else [problem.n, len(problem.lists)]
    known = [point for point in found.trace if point.incumbent >= start]  # others are at w = 0
    return {
        "sizes": "/".join(map(str, sizes)),
        "features": problem.d,
        "status": found.status.value,
        "seconds": found.seconds,
        "value": found.value,
        "start": start,
        "bound": _bound(found, found.value, method),
        "memory": peak() - before,
        "trace": [[point.seconds, point.incumbent, _bound(point, point.incumbent, method)] for point in known],
    }


def _bound(point: Solution | TracePoint, value: float, method: str) -> float:
    """Return the bound on the problem, or on the paper's model where that is lower; at least the value."""
    own = point.model_bound if method == _PAPER and point.model_bound is not None else math.inf
    return max(value, min(point.bound, own))


def _gap(value: float, bound: float) -> float:
    """Return a gap in percent."""
    return 100 * (bound - value) / abs(value)


def name_of(record: Json) -> str:
    """Return the name of a list in tables and plots."""
    unit = "full list" if record["top"] == LONGEST else f"top {record['top']}"
    return f"{record['data']}, {unit}"


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of times and gaps, and a sentence on memory."""

    def outcome(own: list[Json]) -> str:
        (found,) = own
        gap = _gap(found["value"], found["bound"])
        return f"{found['seconds']:.2g} s" if found["status"] == "optimal" or gap <= 1e-7 else f"{gap:.2g}%"

    named = [record | {"list": name_of(record)} for record in records]
    rows = {"list": "list", "sizes": "positives/negatives", "features": "features"}
    methods = {"weight_space": {"method": "weight_space"}, "paper": {"method": _PAPER}}
    memory = {method: [record["memory"] for record in records if record["method"] == method] for method in _LOOK}
    text = ", ".join(f"{method} {min(some):.0f} to {max(some):.0f} MB" for method, some in memory.items() if some)
    return {"exact": table(named, rows, pivot(outcome, methods)), "memory": f"Memory: {text}."}


def figures(records: list[Json], folder: Path) -> None:
    """Draw the gap over time, one panel for each list, one line for each method; a dot marks a proof."""
    lists = dict.fromkeys(map(name_of, records))
    looks = {method: {"color": colour} for method, (colour, _) in _LOOK.items()}
    figure, every = panels(list(lists), looks, x="seconds", y="gap")
    last = max(record["trace"][-1][0] for record in records)
    for record in records:
        axes, (colour, dashes) = every[[*lists].index(name_of(record))], _LOOK[record["method"]]
        points = [(max(at, _FIRST), max(_gap(value, bound), _LEAST)) for at, value, bound in record["trace"] if value]
        if record["status"] == "optimal":
            points.append((points[-1][0], _LEAST))
            axes.plot(*points[-1], "o", color=colour, markersize=4, clip_on=False)
        (line,) = axes.step(*zip(*points, strict=True), where="post", color=colour, linewidth=1.6)
        line.set_dashes(dashes)
    for axes in every:
        axes.set(xscale="log", yscale="log", xlim=(_FIRST, 1.15 * last), ylim=(_LEAST, None))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}%")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter("")
    figure.savefig(folder / "exact_gap.png", dpi=130)


# --- what a demand on the list costs ------------------------------------------------------------------------------

KINDS = ("no demand", "does not bind", "binds")
_ASKED, _MORE = 20, 3  # rows that the demand is on, and how many more of them than at the optimum
_LEAST_GROUP, _MOST_GROUP = 10, 40
_LIMITS, _THREADS = Limits(time_limit=60.0), 2


def group_of(problem: RerankProblem, free: Solution) -> tuple[FloatArray, int]:
    """Return the labels of the first group that can have more, and how many of it are first at the optimum."""
    for x in problem.X.T:
        group = (x > np.median(x)).astype(np.float64)
        first = RerankProblem(problem.X, group, f"hits@{_ASKED}")
        here = round(first.statistic_value(free.weights))
        if _LEAST_GROUP <= group.sum() <= _MOST_GROUP and here + _MORE <= min(_ASKED, group.sum()):
            most = solve(first, limits=Limits(time_limit=5.0))
            if most.value >= here + _MORE:
                return group, here
    raise ValueError(f"no feature has a group with {_MORE} more rows among the first {_ASKED} than at the optimum")


def measure_demand(data: str, top: str, kind: str, threads: int) -> Json:
    """Return the time and the outcome of a solve under a demand; finding the optimum for it comes before.

    A group is the rows above the median of a feature, and its demand is on how many of them are among the first 20:
    three more than at the optimum without a demand, which binds, and as many as there, which does not. Processor time,
    of all threads together, counts other work on the machine as little as possible.
    """
    problem, demands, asked = problem_of(data, top), (), ""
    solve(TINY)
    if kind != "no demand":
        group, here = group_of(problem, solve(problem, limits=_LIMITS))
        least = here + (_MORE if kind == "binds" else 0)
        demands, asked = (Demand(f"hits@{_ASKED}", least, group),), f"{least} of the first {_ASKED}, {here} without"
    problem = RerankProblem(problem.X, problem.y, demands=demands)
    start = time.process_time()
    found = solve(problem, limits=_LIMITS)
    seconds, proven = time.process_time() - start, found.status.value == "optimal"
    list_name, gap = f"{data}, top {top}, {problem.d} features", "proven" if proven else f"{found.gap:.2%}"
    return {"list": list_name, "asked": asked, "value": found.value, "gap": gap, "seconds": seconds}


def tables_of_demands(records: list[Json]) -> dict[str, str]:
    """Return the table of the solves, with the time as a multiple of that without a demand."""
    usual = {r["list"]: r["seconds"] for r in reversed(records)}  # the first of each list
    columns = {
        "dcg": value("value", "{:.4f}"),
        "gap": value("gap"),
        "processor s": value("seconds", "{:.2f}"),
        "ratio": lambda own: f"{own[0]['seconds'] / usual[own[0]['list']]:.2f}" if own[0]["gap"] == "proven" else "",
    }
    shown = table(records, {"list": "list", "kind": "demand", "asked": "rows of the group"}, columns)
    note = f"{_THREADS} threads, at most {_LIMITS.time_limit:.0f} s a solve. Time is the processor time of all threads"
    return {"demands": f"{shown}\n\n{made_on(records)} {note} together; other work ran on the machine.\n"}


# --- requests -----------------------------------------------------------------------------------------------------

_LISTS = [
    *((data, top) for data in ("travel", "uis", "pima") for top in ("50", "100", "150", LONGEST)),
    *((data, LONGEST) for data in ("haberman", "gaussians")),
    *((data, top) for data in ("polypharm", "glow500", "nhanes") for top in ("50", "100")),
    *((QUERIES, top) for top in ("5", "20")),
]
_REQUESTS = [
    {"data": data, "top": top, "method": method, "threads": threads}
    for data, top in _LISTS
    for method, threads in (("weight_space", available_threads()), (_PAPER, 1))
]
_QUICK = {"data": ["travel"], "top": ["50"], "method": ["weight_space"]}
BENCH = Bench("exact", "docs/exact_bench.md", _REQUESTS, _QUICK, measure, tables, alone=True, figures=figures)

_OF_DEMANDS = grid(data=["travel", "uis", "pima"], top=["50"], kind=KINDS, threads=[_THREADS])
DEMANDS = Bench("demands", BENCH.page, _OF_DEMANDS, {"data": ["travel"]}, measure_demand, tables_of_demands, alone=True)
