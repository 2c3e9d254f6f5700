"""Measure what a demand on the list costs the exact search: one that binds, and one that the best weights meet anyway.

The lists are the top 50 of three data sets (`_lists.Case`). A group is the rows above the median of a feature, and its
demand is on how many of them are among the first 20: three more than at the optimum without a demand, which binds, and
as many as there, which does not. The feature is the first one whose group has 10 to 40 rows and can have three more.
Every solve runs in a process of its own. Time is processor time, of all threads together, so that other work on the
machine counts as little as possible.

    LTR_DATA=path/to/data python scripts/bench_demands.py --docs docs/exact_bench.md
"""

from __future__ import annotations

import time

import numpy as np
from _bench import Json, Records, apart, command_line, parsed, publish
from _lists import TINY, Case
from numpy.typing import NDArray

from ltr.exact import Demand, Limits, RerankProblem, Solution, solve
from trainers.provenance import machine
from trainers.tables import markdown_table

DATA = ("travel", "uis", "pima")
KINDS = ("no demand", "does not bind", "binds")
_THREADS = 2
_FIRST, _MORE = 20, 3  # rows that the demand is on, and how many more of them than at the optimum
_LEAST_GROUP, _MOST_GROUP = 10, 40


def group_of(problem: RerankProblem, free: Solution) -> tuple[int, NDArray[np.float64], int]:
    """Return the feature, the labels of its group, and how many of the group are among the first at the optimum.

    Raises:
        ValueError: no feature has a group that can have so many more.
    """
    for feature, x in enumerate(problem.X.T):
        group = (x > np.median(x)).astype(np.float64)
        first = RerankProblem(problem.X, group, f"hits@{_FIRST}")
        here = round(first.statistic_value(free.weights))
        if _LEAST_GROUP <= group.sum() <= _MOST_GROUP and here + _MORE <= min(_FIRST, group.sum()):
            most = solve(first, limits=Limits(time_limit=5.0))
            if most.value >= here + _MORE:
                return feature, group, here
    raise ValueError(f"no feature has a group with {_MORE} more rows among the first {_FIRST} than at the optimum")


def measure(request: Json) -> Json:
    """Return the time and the outcome of one solve; finding the optimum for the demand comes before."""
    case, kind = Case(request["data"], str(request["top"])), request["kind"]
    limits, problem = Limits(time_limit=request["limit"]), case.problem()
    demands: tuple[Demand, ...] = ()
    about: Json = {}
    solve(TINY)
    if kind != "no demand":
        feature, group, here = group_of(problem, solve(problem, limits=limits))
        least = here + (_MORE if kind == "binds" else 0)
        demands, about = (Demand(f"hits@{_FIRST}", least, group),), {"feature": feature, "here": here, "least": least}
    asked = RerankProblem(problem.X, problem.y, demands=demands)
    start = time.process_time()
    found = solve(asked, limits=limits)
    seconds = time.process_time() - start
    outcome = {"status": found.status.value, "value": found.value, "gap": found.gap, "boxes": found.nodes}
    return request | about | {"rows": problem.n, "features": problem.d, "seconds": seconds} | outcome


def main(arguments: list[str] | None = None) -> int:
    """Measure what is missing, and write the table."""
    parser = command_line(__doc__, "runs/demands")
    parser.add_argument("--data", nargs="+", default=list(DATA), help="data sets (default %(default)s)")
    parser.add_argument("--top", default="50", help="length of the lists (default %(default)s)")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each solve (default %(default)s)")
    options = parsed(parser, measure, arguments)
    kept = Records(options.out / "demands.jsonl", ("data", "top", "kind", "limit", "threads"))
    rows = []
    for data in options.data:
        usual = 0.0
        for kind in KINDS:
            request = {"data": data, "top": options.top, "kind": kind}
            request |= {"limit": options.limit, "threads": _THREADS}
            if not kept[request]:
                record = apart(__file__, request, threads=_THREADS)
                if record["status"] == "failed":
                    raise SystemExit(f"{request}: {record['message']}")
                kept.add(record)
                print(record, flush=True)
            found = kept[request][-1]
            usual = usual or found["seconds"]
            least = f"{found['least']} of the first {_FIRST}, {found['here']} without" if "least" in found else ""
            proven = found["status"] == "optimal"
            rows.append(
                [
                    f"{data}, top {options.top}, {found['features']} features",
                    kind,
                    least,
                    f"{found['value']:.4f}",
                    "proven" if proven else f"{found['gap']:.2%}",
                    f"{found['seconds']:.2f}",
                    f"{found['seconds'] / usual:.2f}" if proven else "",
                ]
            )
    head = ["list", "demand", "rows of the group", "dcg", "gap", "processor s", "ratio"]
    note = (
        f"{machine()}; {_THREADS} threads, at most {options.limit:.0f} s a solve. "
        "Time is the processor time of all threads together; other work ran on the machine."
    )
    publish(options, "demands", f"{markdown_table(head, rows, left=3)}\n\n{note}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
