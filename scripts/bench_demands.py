"""Measure what a demand on the list costs the exact search: one that binds, and one that the best weights meet anyway.

The lists are the top 50 of three data sets (`_lists`). A group is the rows above the median of a feature, and its
demand is on how many of them are among the first 20: three more than at the optimum without a demand, which binds, and
as many as there, which does not. The feature is the first one whose group has 10 to 40 rows and can have three more.
Time is processor time, of all threads together, so that other work on the machine counts as little as possible.

    LTR_DATA=path/to/data python -m scripts.bench_demands --docs
"""

from __future__ import annotations

import sys
import time

import numpy as np

from ltr.exact import Demand, Limits, RerankProblem, Solution, solve
from scripts._bench import Bench, FloatArray, Json, made_on
from scripts._lists import TINY, problem_of
from trainers.tables import markdown_table

_KINDS = ("no demand", "does not bind", "binds")
_FIRST, _MORE = 20, 3  # rows that the demand is on, and how many more of them than at the optimum
_LEAST_GROUP, _MOST_GROUP = 10, 40


def group_of(problem: RerankProblem, free: Solution) -> tuple[FloatArray, int]:
    """Return the labels of the group, and how many of it are among the first at the optimum.

    Raises:
        ValueError: no feature has a group that can have so many more.
    """
    for x in problem.X.T:
        group = (x > np.median(x)).astype(np.float64)
        first = RerankProblem(problem.X, group, f"hits@{_FIRST}")
        here = round(first.statistic_value(free.weights))
        if _LEAST_GROUP <= group.sum() <= _MOST_GROUP and here + _MORE <= min(_FIRST, group.sum()):
            most = solve(first, limits=Limits(time_limit=5.0))
            if most.value >= here + _MORE:
                return group, here
    raise ValueError(f"no feature has a group with {_MORE} more rows among the first {_FIRST} than at the optimum")


def measure(data: str, top: str, kind: str, limit: float, threads: int) -> Json:
    """Return the time and the outcome of one solve; finding the optimum for the demand comes before."""
    limits, problem = Limits(time_limit=limit), problem_of(data, str(top))
    demands: tuple[Demand, ...] = ()
    about: Json = {}
    solve(TINY)
    if kind != "no demand":
        group, here = group_of(problem, solve(problem, limits=limits))
        least = here + (_MORE if kind == "binds" else 0)
        demands, about = (Demand(f"hits@{_FIRST}", least, group),), {"here": here, "least": least}
    asked = RerankProblem(problem.X, problem.y, demands=demands)
    start = time.process_time()
    found = solve(asked, limits=limits)
    seconds = time.process_time() - start
    outcome = {"status": found.status.value, "value": found.value, "gap": found.gap, "boxes": found.nodes}
    return about | {"rows": problem.n, "features": problem.d, "seconds": seconds} | outcome


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of the solves."""
    rows = []
    for r in records:
        usual = next(o["seconds"] for o in records if (o["data"], o["top"]) == (r["data"], r["top"]))
        least = f"{r['least']} of the first {_FIRST}, {r['here']} without" if "least" in r else ""
        proven = r["status"] == "optimal"
        outcome = [f"{r['value']:.4f}", "proven" if proven else f"{r['gap']:.2%}", f"{r['seconds']:.2f}"]
        name = f"{r['data']}, top {r['top']}, {r['features']} features"
        rows.append([name, r["kind"], least, *outcome, f"{r['seconds'] / usual:.2f}" if proven else ""])
    head = ["list", "demand", "rows of the group", "dcg", "gap", "processor s", "ratio"]
    note = f"{records[0]['threads']} threads, at most {records[0]['limit']:.0f} s a solve. Time is the processor time"
    note = f"{made_on(records)} {note} of all threads together; other work ran on the machine."
    return {"demands": f"{markdown_table(head, rows, left=3)}\n\n{note}\n"}


_REQUESTS = [
    {"data": data, "top": "50", "kind": kind, "limit": 60.0, "threads": 2}
    for data in ("travel", "uis", "pima")
    for kind in _KINDS
]
BENCH = Bench("demands", __doc__, "docs/exact_bench.md", _REQUESTS, measure, tables, alone=True)

if __name__ == "__main__":
    sys.exit(BENCH.main())
