"""Several forms of the same computation beside each other: the product's, and those of its peers.

Every measurement runs in a process of its own, so that its peak of memory is its own, and is kept in a file of JSON
lines, so that it is not made again. A request says what is measured: ``form``, ``what``, ``shape``, ``dtype`` and
``threads``; its record adds ``status`` and, where that is "ok", ``value``, ``seconds`` and ``megabytes``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any

import torch
from _insert import insert
from _memory import peak

from trainers.provenance import machine
from trainers.tables import markdown_table

__all__ = ["ABSENT", "Json", "Study", "curve", "timed"]

Json = dict[str, Any]
ABSENT = "not there"
"""How the status begins of a form whose library cannot be imported."""

_KEY = ("form", "what", "shape", "dtype", "threads")


def timed(call: Callable[[], float], *, seconds: float, calls: int) -> Json:
    """Value, best time and additional memory of a call.

    Args:
        call: what is measured; compiled before.
        seconds: for which it is called over and over, three times at least unless it is that slow.
        calls: at most.
    """
    before = peak()
    value = call()
    megabytes = peak() - before
    best, began, done = float("inf"), time.perf_counter(), 0
    while done < 3 or (time.perf_counter() - began < seconds and done < calls):
        start = time.perf_counter()
        call()
        best, done = min(best, time.perf_counter() - start), done + 1
        if best > seconds:
            break
    return {"status": "ok", "value": value, "seconds": best, "megabytes": megabytes}


def curve(records: Sequence[Json], form: str, what: str) -> list[tuple[float, float, float]]:
    """Items, seconds and megabytes (0.1 at least) of the single lists, by their length."""
    return sorted(
        (r["shape"][0], r["seconds"], max(r["megabytes"], 0.1))
        for r in records
        if r["status"] == "ok" and r["form"] == form and r["what"] == what and len(r["shape"]) == 1
    )


class Study:
    """A script that measures forms and writes a table and a plot.

    Args:
        name: of its files, and of the place of its table in a page.
        script: its path, which is run with ``--one`` for each measurement.
        about: one line.
        forms: of which the first is the product's.
        measure: makes the record of a request.
        requests: all of them, for a number of threads and the longest list.
        plot: draws records into a file.
        tolerance: relative error up to which the values of forms agree, by dtype.
    """

    def __init__(
        self,
        name: str,
        script: str,
        about: str,
        forms: Sequence[str],
        *,
        measure: Callable[[Json], Json],
        requests: Callable[[int, int], list[Json]],
        plot: Callable[[list[Json], Path], None],
        tolerance: dict[str, float],
    ) -> None:
        self.name, self.script, self.about, self.forms = name, script, about, forms
        self.measure, self.requests, self.plot, self.tolerance = measure, requests, plot, tolerance

    def main(self) -> None:
        """Measure what is missing, and write the table and the plot."""
        parser = argparse.ArgumentParser(description=self.about)
        parser.add_argument("--out", type=Path, default=Path("runs", self.name), help="folder of the results")
        parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="that torch may use")
        parser.add_argument("--rounds", type=int, default=1, help="how often all is measured; the best time counts")
        parser.add_argument("--longest", type=int, default=10_000_000, help="longest list that is measured")
        parser.add_argument("--docs", type=Path, metavar="PAGE", help="page to put the table into")
        parser.add_argument("--image", type=Path, metavar="PNG", help="a second place for the plot")
        parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
        options = parser.parse_args()
        if options.one:
            print(json.dumps(self.measure(json.load(sys.stdin))))
            return
        requests = self.requests(options.threads, options.longest)
        for number in range(options.rounds):
            records = self.collect(options.out, requests, number + 1)
        self.check_values(records)
        text = f"{machine()}; torch {torch.__version__}, threads: {options.threads}.\n\n{self.table(records)}\n"
        (options.out / f"{self.name}.md").write_text(text, encoding="utf-8")
        for path in filter(None, (options.out / f"{self.name}.png", options.image)):
            self.plot(records, path)
        if options.docs:
            insert(options.docs, self.name, text)
        print(text)

    def collect(self, folder: Path, requests: list[Json], times: int = 1) -> list[Json]:
        """Measure what was not measured so often; the fastest record of each, but of forms that are not there."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        records: dict[tuple[Any, ...], list[Json]] = defaultdict(list)
        for record in map(json.loads, lines):
            records[_key(record)].append(record)
        absent = set()
        for request in requests:
            if len(records[_key(request)]) >= times or request["form"] in absent:
                continue
            done = subprocess.run(
                [sys.executable, self.script, "--one"],
                input=json.dumps(request),
                capture_output=True,
                text=True,
                check=False,
            )
            out = done.stdout.strip().splitlines()
            record = json.loads(out[-1]) if done.returncode == 0 else request | {"status": done.stderr.strip()[-200:]}
            if record["status"].startswith(ABSENT):
                absent.add(request["form"])
                print(f"{request['form']}: {record['status']}")
                continue
            print(f"{request['what']}, {request['form']}, {request['shape']}: {record['status']}", flush=True)
            records[_key(record)].append(record)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        found = (records[_key(request)] for request in requests)
        return [min(several, key=lambda record: record.get("seconds", inf)) for several in found if several]

    def check_values(self, records: list[Json]) -> None:
        """Speed says nothing where the answers differ."""
        own = {_key(r)[1:]: r["value"] for r in records if r["form"] == self.forms[0] and r["status"] == "ok"}
        for record in records:
            expected = own.get(_key(record)[1:])
            if record["status"] != "ok" or expected is None:
                continue
            if abs(record["value"] - expected) > self.tolerance[record["dtype"]] * abs(expected):
                raise SystemExit(f"{_key(record)}: {record['value']!r}, but {expected!r} is the product's value")

    def table(self, records: list[Json]) -> str:
        """Seconds and memory of the product; the others' time as a multiple of its own."""
        measured = {(r["what"], tuple(r["shape"]), r["form"]): r for r in records if r["status"] == "ok"}
        product, *others = self.forms
        rows = []
        for what, shape in dict.fromkeys((r["what"], tuple(r["shape"])) for r in records):
            own = measured.get((what, shape, product))
            if own is None:
                continue
            cells = [what, " x ".join(f"{n:,}" for n in shape), _time(own["seconds"]), f"{own['megabytes']:.0f}"]
            for form in others:
                other = measured.get((what, shape, form))
                cells.append("-" if other is None else f"{other['seconds'] / own['seconds']:.3g}x")
            rows.append(cells)
        return markdown_table(["", "scores", product, "MB", *others], rows, left=2)


def _key(record: Json) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value := record[name], list) else value for name in _KEY)


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
