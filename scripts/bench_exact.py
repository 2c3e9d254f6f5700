"""Measure the methods of the exact stage: seconds to a proof, the gap over time, memory.

For every list (see `_lists`) and method one solve in a process of its own, from one warm start that all methods share
(the best of a local search of two seconds), within the largest of the limits; compilation comes before the clock. The
methods are as `ltr.exact.solve` runs them, so each begins with a short local search of its own. Results go to
``results.jsonl`` in the folder `--out`, one line a solve; what stands there is not computed again. A Markdown table and
a plot are written beside it.

    LTR_DATA=path/to/data python scripts/bench_exact.py --out runs/bench --data travel --top 50 100
    python scripts/bench_exact.py --out runs/bench --table-only --docs docs/exact.md --image docs/images/exact_gap.png
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _cell import OWN_MODEL, method_names, threads_used
from _gap_plot import plot
from _insert import insert
from _lists import HIGH_DIMENSION, Case, cases, standard_cases

from ltr.data import DataError
from ltr.exact.local_search.search import local_search
from ltr.exact.weight_space.workers import available_threads
from trainers.provenance import machine
from trainers.tables import markdown_table

Json = dict[str, Any]

_START = 2.0  # seconds of local search for the warm start
_GRACE = 300.0  # seconds beyond the limit after which a process is killed
_HERE = Path(__file__).parent


class Results:
    """The lines of a results file: warm starts, and cells by what was asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.starts: dict[Case, Json] = {}
        self.cells: dict[tuple[Any, ...], Json] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._keep(json.loads(line))

    def add(self, record: Json) -> None:
        """Keep a record, on disk too."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self._keep(record)

    def _keep(self, record: Json) -> None:
        if "start" in record:
            self.starts[_case(record)] = record
        else:
            self.cells[key(record)] = record


def _case(record: Json) -> Case:
    return Case(record["data"], record["top"])


def _versions() -> str:
    return ", ".join(f"{name} {version(name)}" for name in ("pyscipopt", "highspy", "numba"))


def key(request: Json) -> tuple[Any, ...]:
    """What tells one cell from another."""
    return tuple(request[name] for name in ("data", "top", "method", "threads", "time_limit"))


def warm_start(results: Results, case: Case) -> list[float]:
    """The weights that every method of a case starts from."""
    if case not in results.starts:
        found = local_search(case.problem(), restarts=10**6, time_limit=_START)
        results.add({"data": case.data, "top": case.top, "start": found.weights.tolist(), "value": found.value})
    start: list[float] = results.starts[case]["start"]
    return start


def run_cell(request: Json) -> Json:
    """The record of a cell, from a process of its own; one with status ``failed`` where that dies."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(_HERE / "_cell.py")]
    failed = {name: value for name, value in request.items() if name != "start"} | {"status": "failed"}
    try:
        done = subprocess.run(
            command,
            input=json.dumps(request),
            env=environment,
            capture_output=True,
            text=True,
            timeout=request["time_limit"] + _GRACE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return failed | {"message": "killed: it did not keep its time limit"}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return failed | {"message": f"exit status {done.returncode}: {last}"}
    return json.loads(done.stdout.splitlines()[-1]) | {"machine": f"{machine()}, {_versions()}"}


def measure(results: Results, chosen: Iterable[Case], options: argparse.Namespace) -> None:
    """Compute the cells that are missing."""
    for case in chosen:
        try:
            start = warm_start(results, case)
        except DataError as error:
            print(f"{case.name}: skipped: {error}", file=sys.stderr)
            continue
        for method in options.methods:
            request = {
                "data": case.data,
                "top": case.top,
                "method": method,
                "threads": threads_used(method, options.threads),
                "time_limit": float(max(options.limits)),
                "start": start,
            }
            known = results.cells.get(key(request))
            if known is not None and known["status"] != "failed":
                continue
            print(f"{case.name}, {method} ... ", end="", flush=True)
            record = run_cell(request)
            results.add(record)
            print(record["status"], record.get("message", ""))


def gap_at(record: Json, seconds: float) -> float:
    """The gap known after so many seconds, infinite before there is any."""
    known = [point for point in record["trace"] if point[0] <= seconds]
    if not known or known[-1][1] == 0:
        return math.inf
    _, value, bound, _ = known[-1]
    return max(0.0, (bound - value) / abs(value))


def row(record: Json, limits: Sequence[float]) -> list[str]:
    """One line of the table."""
    case, own = _case(record), record["method"] in OWN_MODEL
    threads = f" ({record['threads']} threads)" if record["threads"] > 1 else ""
    head = [case.name, f"{record['method']}{'*' if own else ''}{threads}"]
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


def report(records: Sequence[Json], limits: Sequence[float]) -> str:
    """The table, with a word on what its columns hold."""
    columns = [
        *("list", "method", "pos/neg", "d", "proof, s"),
        *(f"gap at {limit:g} s" for limit in limits),
        *("value", "bound", "boxes or nodes", "a second", "memory, MB"),
    ]
    machines = sorted({record["machine"] for record in records if "machine" in record})
    notes = [
        f"Measured on {'; '.join(machines)}." if machines else "",
        "For `lightgbm_lambdarank`, pos/neg is rows/queries. Memory is the growth of the process's peak memory during"
        " the solve.",
        "\\* The bound is that of the paper's model, and holds only for weights without score differences strictly"
        " between 0 and the margin.",
    ]
    text = "\n".join(note for note in notes if note)
    return f"{markdown_table(columns, [row(record, limits) for record in records], left=2)}\n\n{text}\n"


def chosen_records(results: Results, chosen: Sequence[Case], methods: Sequence[str]) -> list[Json]:
    """The records to show, in the order of the cases and methods."""
    ordered = []
    for case in chosen:
        for method in methods:
            found = [
                r for r in results.cells.values() if (r["data"], r["top"], r["method"]) == (case.data, case.top, method)
            ]
            longest = max((r["time_limit"] for r in found), default=0.0)
            ordered += sorted((r for r in found if r["time_limit"] == longest), key=lambda r: r["threads"])
    return ordered


def write(results: Results, chosen: Sequence[Case], options: argparse.Namespace) -> bool:
    """Table and plot, and their places in the documentation where asked for; False where there is nothing to show."""
    records = chosen_records(results, chosen, options.methods)
    if not records:
        return False
    table = report(records, options.limits)
    name = "exact_high_dimension" if options.high_dimension else "exact"
    (options.out / f"{name}.md").write_text(table, encoding="utf-8")
    print(f"\n{table}")
    drawn = [
        (case.name, [r for r in records if (r["data"], r["top"]) == (case.data, case.top) and r.get("trace")])
        for case in chosen
    ]
    panels = [(title, lines) for title, lines in drawn if lines]
    for path in [options.out / f"{name}_gap.png", *([options.image] if options.image else [])]:
        if panels:
            plot(panels, path)
    if options.docs:
        insert(options.docs, name, table)
    return True


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = method_names()
    parser.add_argument("--data", nargs="+", metavar="NAME", help="data sets (default: the standard lists)")
    parser.add_argument("--top", nargs="+", metavar="K", default=["50", "100", "150", "full"], help="lengths of lists")
    parser.add_argument("--high-dimension", action="store_true", help="the lists with 10 features and more instead")
    parser.add_argument("--limits", nargs="+", type=float, metavar="SECONDS", help="default 10 60 600, or 10 60")
    parser.add_argument("--methods", nargs="+", choices=known, help=f"of {', '.join(known)}")
    parser.add_argument("--threads", type=int, default=available_threads(), help="for those that use several")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/bench"), help="folder of the results (default runs/bench)"
    )
    parser.add_argument("--table-only", action="store_true", help="compute nothing")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="page to put the table into")
    parser.add_argument("--image", type=Path, metavar="PNG", help="a second place for the plot")
    options = parser.parse_args(arguments)
    wide = options.high_dimension
    options.limits = sorted(options.limits or ([10.0, 60.0] if wide else [10.0, 60.0, 600.0]))
    options.methods = options.methods or (["weight_space", "resolved_faithful"] if wide else known)
    return options


def percent(gap: float) -> str:
    """A gap as a percentage with two or three digits that count.

    Examples:
        >>> percent(0.0), percent(0.01234), percent(1.5), percent(0.00004), percent(math.inf)
        ('0', '1.2%', '150%', '0.0040%', '-')
    """
    if not math.isfinite(gap):
        return "-"
    if gap <= 1e-9:  # within the tolerance of a proof
        return "0"
    digits = max(0, 1 - math.floor(math.log10(100 * gap)))
    return f"{100 * gap:.{0 if gap >= 0.1 else min(digits, 6)}f}%"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, then write table and plot; 1 when there is nothing to show."""
    options = parsed(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    results = Results(options.out / "results.jsonl")
    try:
        if options.high_dimension:
            chosen = [case for case in HIGH_DIMENSION if not options.data or case.data in options.data]
        else:
            chosen = cases(options.data, options.top) if options.data else standard_cases()
        if not options.table_only:
            measure(results, chosen, options)
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    return int(not write(results, chosen, options))


if __name__ == "__main__":
    sys.exit(main())
