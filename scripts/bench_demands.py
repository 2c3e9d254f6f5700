"""Measure what a demand on the list costs the exact search: one that binds, and one that the best weights meet anyway.

The lists are the top 50 of three data sets (see `bench_exact`). A group is the rows above the median of a feature, and
its demand is on how many of them are among the first 20: three more than at the optimum without a demand, which binds,
and as many as there, which does not. The feature is the first one whose group has 10 to 40 rows and can have three
more. Time is processor time, of all threads together, so that other work on the machine counts as little as possible.
"""

from __future__ import annotations

import time

import numpy as np

from ltr.exact import Demand, Limits, RerankProblem, Solution, solve
from scripts._bench import Bench, FloatArray, Json, grid, made_on, table, value
from scripts.bench_exact import TINY, problem_of

_FIRST, _MORE = 20, 3  # rows that the demand is on, and how many more of them than at the optimum
_LEAST_GROUP, _MOST_GROUP = 10, 40
_LIMITS, _THREADS = Limits(time_limit=60.0), 2


def group_of(problem: RerankProblem, free: Solution) -> tuple[FloatArray, int]:
    """Return the labels of the group, and how many of it are among the first at the optimum."""
    for x in problem.X.T:
        group = (x > np.median(x)).astype(np.float64)
        first = RerankProblem(problem.X, group, f"hits@{_FIRST}")
        here = round(first.statistic_value(free.weights))
        if _LEAST_GROUP <= group.sum() <= _MOST_GROUP and here + _MORE <= min(_FIRST, group.sum()):
            most = solve(first, limits=Limits(time_limit=5.0))
            if most.value >= here + _MORE:
                return group, here
    raise ValueError(f"no feature has a group with {_MORE} more rows among the first {_FIRST} than at the optimum")


def measure(data: str, top: str, kind: str, threads: int) -> Json:
    """Return the time and the outcome of one solve; finding the optimum for the demand comes before."""
    problem, demands, asked = problem_of(data, top), (), ""
    solve(TINY)
    if kind != "no demand":
        group, here = group_of(problem, solve(problem, limits=_LIMITS))
        least = here + (_MORE if kind == "binds" else 0)
        demands, asked = (Demand(f"hits@{_FIRST}", least, group),), f"{least} of the first {_FIRST}, {here} without"
    problem = RerankProblem(problem.X, problem.y, demands=demands)
    start = time.process_time()
    found = solve(problem, limits=_LIMITS)
    seconds, proven = time.process_time() - start, found.status.value == "optimal"
    list_name, gap = f"{data}, top {top}, {problem.d} features", "proven" if proven else f"{found.gap:.2%}"
    return {"list": list_name, "asked": asked, "value": found.value, "gap": gap, "seconds": seconds}


def tables(records: list[Json]) -> dict[str, str]:
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


KINDS = ("no demand", "does not bind", "binds")
_REQUESTS = grid(data=["travel", "uis", "pima"], top=["50"], kind=KINDS, threads=[_THREADS])
BENCH = Bench("demands", "docs/exact_bench.md", _REQUESTS, {"data": ["travel"]}, measure, tables, alone=True)
