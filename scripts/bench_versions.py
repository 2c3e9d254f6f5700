"""Compare the exact search of this checkout with that of another one, such as an earlier version, in one run.

Each list (see `_lists`) is solved by both, in turn, each in a process of its own and from the same weights: the best of
a local search of two seconds. The other checkout needs an environment in which its requirements are installed. What it
compiles or imports at first is not timed. The table has seconds to a proof or the gap at the limit, boxes per second,
and their ratios: how many times sooner this checkout has a proof, and how many times as many boxes it searches in a
second. Results are kept in ``versions.jsonl``, by the path of a checkout, and not computed again.

    LTR_DATA=path/to/data python scripts/bench_versions.py path/to/other/checkout --python path/to/its/python
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from _bench import Json, Records, command_line, publish
from _lists import Case

from ltr.exact.local_search.search import local_search
from ltr.threads import available_threads
from trainers.provenance import machine
from trainers.tables import markdown_table

_LISTS = (
    *(("travel", top) for top in ("50", "100", "150")),
    *(("uis", top) for top in ("50", "100")),
    *(("uis_numeric_ivhx", top) for top in ("50", "100")),
    *(("pima", top) for top in ("50", "100")),
    *(("haberman", top) for top in ("100", "full")),
    ("gaussians", "full"),
)
_START = 2.0  # seconds of the local search that gives the warm start
_WARM = 0.3  # seconds of a solve before the one that is timed
_GRACE = 400.0  # seconds beyond the limit, in which an earlier version may compile
_KEY = ("data", "top", "threads", "time_limit", "root")

# what runs in either checkout; it only uses what both have
_SOLVE = """
import json, sys
request = json.loads(sys.argv[1])
sys.path[:0] = [request["root"], request["root"] + "/scripts"]
from _lists import Case
from ltr.exact import Limits, solve
from ltr.exact.weight_space import WeightSpaceSearch
problem = Case(request["data"], request["top"]).problem()
solver = WeightSpaceSearch(threads=request["threads"])
for limit in (request["warm"], request["time_limit"]):
    found = solve(problem, solver, Limits(time_limit=limit), warm_starts=[request["start"]])
result = {name: getattr(found, name) for name in ("seconds", "value", "gap", "nodes")}
print(json.dumps(result | {"status": found.status.value}))
"""


def measure(python: str, request: Json) -> Json:
    """Return the result of a solve in a checkout."""
    done = subprocess.run(
        [python, "-c", _SOLVE, json.dumps(request)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        cwd=request["root"],
        capture_output=True,
        text=True,
        timeout=request["time_limit"] + _GRACE,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{request['root']}: {done.stderr.strip().splitlines()[-1]}")
    found: Json = json.loads(done.stdout.splitlines()[-1])
    return found


def report(rows: list[tuple[Case, Json, Json]], limit: float) -> str:
    """Return the table and the medians."""
    table, times, rates = [], [], []
    for case, before, now in rows:
        proven = before["status"] == now["status"] == "optimal"
        speed = [record["nodes"] / record["seconds"] for record in (before, now)]
        if proven:
            times.append(before["seconds"] / now["seconds"])
        rates.append(speed[1] / speed[0])
        ends = [
            f"{r['seconds']:.2f} s" if r["status"] == "optimal" else f"{100 * r['gap']:.2g}% at {limit:g} s"
            for r in (before, now)
        ]
        ratio = f"{times[-1]:.2f}" if proven else "-"
        table.append([case.name, *ends, ratio, *(f"{s:,.0f}" for s in speed), f"{rates[-1]:.2f}"])
    columns = ["list", "other", "this", "ratio", "other, boxes a second", "this", "ratio"]
    medians = f"Medians: boxes per second {statistics.median(rates):.2f} times"
    if times:
        medians += f", time to a proof {statistics.median(times):.2f} times shorter ({len(times)} lists)"
    return f"{markdown_table(columns, table, left=1)}\n\n{medians}. {machine()}.\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the table."""
    parser = command_line(__doc__, "runs/versions")
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--python", default=sys.executable, help="the interpreter for the other checkout")
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS")
    options: argparse.Namespace = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    results = Records(options.out / "versions.jsonl", _KEY)
    versions = {"other": (options.python, options.other), "this": (sys.executable, Path(__file__).parents[1])}
    rows = []
    for case in (Case(*given) for given in _LISTS):
        start = None
        found: dict[str, Json] = {}
        for version, (python, root) in versions.items():
            request = {"data": case.data, "top": case.top, "threads": options.threads, "time_limit": options.limit}
            request |= {"root": str(root.resolve())}
            if not results[request]:
                start = start or local_search(case.problem(), restarts=10**6, time_limit=_START).weights.tolist()
                results.add(request | measure(python, request | {"start": start, "warm": _WARM}))
                print(case.name, version, results[request][-1]["status"], flush=True)
            found[version] = results[request][-1]
        rows.append((case, found["other"], found["this"]))
    publish(options, f"versions_{options.threads}", report(rows, options.limit))


if __name__ == "__main__":
    main()
