"""The harness of the benchmarks: measurements in separate processes, their records, and tables put into pages.

A *request* is a JSON object that says what to measure. A script runs itself with ``--one REQUEST`` for each of them, so
that peak memory is that of this measurement alone. It keeps the records in a file of JSON lines, so that nothing is
measured twice.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.provenance import machine, origin
from trainers.report.pictures import drawing as draw
from trainers.tables import markdown_table

Json = dict[str, Any]
FloatArray = NDArray[np.float64]
Form = Callable[[str, Tensor, Tensor], Callable[[], float] | None]
"""A function of the name of what is measured, scores and labels that returns a call for the value, or None."""

Curve = tuple[str, str, str, str, str]
"""A line of a plot: the form and what it computes; its label, style and colour."""

_SECONDS, _CALLS = 0.5, 200  # seconds for which a call is repeated, and largest number of calls
_ABSENT = "not there"
_KEY = ("form", "what", "shape", "dtype", "threads")


def command_line(doc: str | None, folder: str) -> argparse.ArgumentParser:
    """Return a parser with the options of all benchmarks."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(folder), help=f"folder of the results (default {folder})")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="page to put the table into")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    return parser


def parsed(
    parser: argparse.ArgumentParser, measure: Callable[[Json], Json], arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """Return the options; with ``--one``, make that measurement, print its record and exit."""
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one)))
        raise SystemExit
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def apart(script: str, request: Json, *, threads: int = 1, seconds: float | None = None) -> Json:
    """Return the record of a request from a process of its own; its status is ``failed`` if the process dies.

    Args:
        script: path of the script that measures.
        request: what to measure.
        threads: number of threads for OpenMP.
        seconds: time after which the process is killed.
    """
    try:
        done = subprocess.run(
            [sys.executable, script, "--one", json.dumps(request)],
            env=os.environ | {"OMP_NUM_THREADS": str(threads)},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return request | {"status": "failed", "message": "killed: it did not keep its time limit"}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return request | {"status": "failed", "message": f"exit status {done.returncode}: {last}"}
    found: Json = json.loads(done.stdout.splitlines()[-1])
    return found


def descended(loss: Callable[[Tensor], Tensor], X: FloatArray, ridge: float) -> FloatArray:
    """Return the weights of a linear scorer that minimise ``loss(X w) + ridge / 2 |w|^2``, by L-BFGS."""
    columns, w = torch.tensor(X), torch.zeros(X.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=300, tolerance_change=1e-10, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(columns @ w) + ridge / 2 * (w @ w)
        value.backward()
        return value

    optimizer.step(closure)
    return w.detach().numpy()


class Records:
    """The records in a file of JSON lines. Indexing by a request gives the records with the same fields, in order.

    Args:
        path: the file.
        fields: names of the fields that identify a measurement.
    """

    def __init__(self, path: Path, fields: Sequence[str]) -> None:
        self._path, self._fields = path, fields
        self._found: defaultdict[str, list[Json]] = defaultdict(list)
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            self[record := json.loads(line)].append(record)

    def __getitem__(self, request: Json) -> list[Json]:
        return self._found[json.dumps([request.get(field) for field in self._fields])]

    def all(self) -> list[Json]:
        """Return every record."""
        return [record for several in self._found.values() for record in several]

    def add(self, record: Json) -> None:
        """Add a record here and to the file."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self[record].append(record)


def compute_missing(compute: Callable[..., Json], kept: Records, requests: Iterable[Json], processes: int) -> bool:
    """Compute the requests of which there is no record yet, by a function of their fields, each on one thread.

    Each record is kept as soon as it is known, with the commit of the code. Returns whether all are there.
    """
    missing, made, complete = [request for request in requests if not kept[request]], origin(), True
    commit = {"commit": f"{(made['git_commit'] or '')[:12]}{'+' if made['git_dirty'] else ''}"}
    with joblib.parallel_config("loky", n_jobs=processes, inner_max_num_threads=1):
        work = joblib.Parallel(return_as="generator_unordered")(joblib.delayed(_attempt)(compute, r) for r in missing)
        for done, (request, found, seconds) in enumerate(work, start=1):
            name = f"{done}/{len(missing)}  {', '.join(map(str, request.values()))}"
            if isinstance(found, str):
                complete = False
                print(f"{name}: failed, {found}", file=sys.stderr, flush=True)
            else:
                kept.add(found | commit)
                print(f"{name}: {seconds:.0f} s", flush=True)
    return complete


def _attempt(compute: Callable[..., Json], request: Json) -> tuple[Json, Json | str, float]:
    """Return the request, its record or why there is none, and the seconds that it took."""
    started = time.perf_counter()
    try:
        found: Json | str = compute(**request)
    except Exception as error:  # the others go on
        found = f"{type(error).__name__}: {error}"
    return request, found, time.perf_counter() - started


def measure_missing(script: str, kept: Records, requests: Iterable[Json]) -> None:
    """Measure, in processes of their own, the requests of which there is no record yet, and keep what succeeds."""
    for request in requests:
        if kept[request]:
            continue
        record = apart(script, request)
        print(request, record["status"], record.get("message", ""), flush=True)
        if record["status"] == "ok":
            kept.add(record)


def publish(options: argparse.Namespace, name: str, text: str) -> None:
    """Print a table, write it to a file of its name, and put it into the page given by ``--docs``."""
    print(text)
    (options.out / f"{name}.md").write_text(text, encoding="utf-8")
    if options.docs is not None:
        insert(options.docs, name, text)


def insert(page: Path, name: str, text: str) -> None:
    """Replace the text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` in a page.

    Raises:
        ValueError: a page without these two lines.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    head, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} must hold the lines {begin.strip()} and {end}")
    page.write_text(f"{head}{begin}{text.strip()}\n{end}{tail}", encoding="utf-8")


def peak() -> float:
    """Return the largest memory of this process so far, in megabytes.

    Linux includes in `ru_maxrss`, but not in `VmHWM`, the memory of the parent when it started this process.
    """
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if found:
        return int(found[1]) / 1024
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest / (2**20 if sys.platform == "darwin" else 1024)


@dataclass
class Study:
    """A benchmark that compares our form of several computations with those of other libraries.

    A request says ``form``, ``what``, ``shape``, ``dtype`` and ``threads``; its record adds ``status`` and, where that
    is "ok", ``value``, ``seconds`` and ``megabytes``.
    """

    name: str  # name of the files, and of the table's place in a page
    script: str  # path of the script
    about: str | None  # the script's docstring
    forms: Mapping[str, Form]  # the first is ours
    data: Callable[[str, list[int], str], tuple[Tensor, Tensor]]  # scores and labels for what is measured, shape, dtype
    requests: Callable[[int], list[Json]]  # everything to measure except the number of threads, for the longest list
    plot: Mapping[str, Sequence[Curve]]  # panels by their title
    tolerance: Mapping[str, float]  # relative error up to which the values of forms agree, by dtype
    first: Sequence[int]  # lengths of the lists of the calls that compile, before the clock starts

    def main(self) -> None:
        """Measure what is missing, and write the table and the plot."""
        parser = command_line(self.about, f"runs/{self.name}")
        parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="threads of torch")
        parser.add_argument("--longest", type=int, default=10_000_000, help="longest list that is measured")
        parser.add_argument("--image", type=Path, metavar="PNG", help="a second place for the plot")
        options = parsed(parser, self.measure)
        requests = [request | {"threads": options.threads} for request in self.requests(options.longest)]
        kept = Records(options.out / f"{self.name}.jsonl", _KEY)
        self._collect(kept, requests)
        found = [kept[request][-1] for request in requests if kept[request]]
        self.check_values(found)
        for path in filter(None, (options.out / f"{self.name}.png", options.image)):
            self._draw(found, path)
        head = f"{machine()}; torch {torch.__version__}, threads: {options.threads}."
        publish(options, self.name, f"{head}\n\n{self._table(found)}\n")

    def measure(self, request: Json) -> Json:
        """Return the value, the best time and the additional memory of one form; compilation comes before."""
        torch.set_num_threads(request["threads"])
        form, what, shape = self.forms[request["form"]], request["what"], request["shape"]
        try:
            for items in self.first:
                if small := form(what, *self.data(what, [2, items][-len(shape) :], request["dtype"])):
                    small()
            call = form(what, *self.data(what, shape, request["dtype"]))
        except ImportError as error:
            return request | {"status": f"{_ABSENT}: {error}"}
        if call is None:
            return request | {"status": "left out"}
        before = peak()
        value = call()
        megabytes = peak() - before
        times: list[float] = []
        while len(times) < 3 or (sum(times) < _SECONDS and len(times) < _CALLS):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
            if min(times) > _SECONDS:
                break
        return request | {"status": "ok", "value": value, "seconds": min(times), "megabytes": megabytes}

    def _collect(self, kept: Records, requests: Sequence[Json]) -> None:
        """Measure what has no record, except forms whose library cannot be imported."""
        absent = set()
        for request in requests:
            if kept[request] or request["form"] in absent:
                continue
            record = apart(self.script, request, threads=request["threads"])
            print(f"{request['what']}, {request['form']}, {request['shape']}: {record['status']}", flush=True)
            if record["status"].startswith(_ABSENT):
                absent.add(request["form"])
            else:
                kept.add(record)

    def check_values(self, records: Sequence[Json]) -> None:
        """Exit if a form's value differs from ours: speeds cannot be compared if the answers differ."""
        measured = [(record, tuple(map(str, map(record.get, _KEY[1:])))) for record in records if "value" in record]
        own = {key: record["value"] for record, key in measured if record["form"] == next(iter(self.forms))}
        for record, key in measured:
            expected = own.get(key, record["value"])
            if abs(record["value"] - expected) > self.tolerance[record["dtype"]] * abs(expected):
                raise SystemExit(f"{record}: {record['value']!r}, but {expected!r} is our value")

    def _table(self, records: Sequence[Json]) -> str:
        """Return our seconds and memory, and the others' time as a multiple of ours."""
        measured = {(r["what"], tuple(r["shape"]), r["form"]): r for r in records if r["status"] == "ok"}
        product, *others = self.forms
        rows = []
        for what, shape in dict.fromkeys((r["what"], tuple(r["shape"])) for r in records):
            if own := measured.get((what, shape, product)):
                found = [measured.get((what, shape, form)) for form in others]
                times = ["-" if other is None else f"{other['seconds'] / own['seconds']:.3g}x" for other in found]
                size = " x ".join(f"{n:,}" for n in shape)
                rows.append([what, size, _time(own["seconds"]), f"{own['megabytes']:.0f}", *times])
        return markdown_table(["", "scores", product, "MB", *others], rows, left=2)

    def _draw(self, records: Sequence[Json], path: Path) -> None:
        """Draw time and memory of single lists over their length, on logarithmic axes."""
        figure, looks = draw.canvas(2.6 * len(self.plot) + 0.8, draw.WIDE), {}
        panels = figure.subplots(len(self.plot), 2, squeeze=False, sharex=True)
        single = [record for record in records if "value" in record and len(record["shape"]) == 1]
        for both, (title, curves) in zip(panels, self.plot.items(), strict=True):
            for axes, measured, least in zip(both, ("seconds", "megabytes"), (0.0, 0.1), strict=True):
                draw.dress(axes, f"{title}: {measured}")
                for form, what, label, style, colour in curves:
                    own = [record for record in single if (record["form"], record["what"]) == (form, what)]
                    if found := sorted((record["shape"][0], max(record[measured], least)) for record in own):
                        axes.loglog(*zip(*found, strict=True), style, color=colour, markersize=3)
                        (looks[label],) = axes.plot([], [], style, color=colour, markersize=3, label=label)
        draw.name_axes(figure, x="items of the list")
        draw.legend(figure, looks.values())
        figure.savefig(path)


def _time(seconds: float) -> str:
    unit, size = ("s", 1.0) if seconds >= 1.0 else ("ms", 1e-3) if seconds >= 1e-3 else ("µs", 1e-6)
    return f"{seconds / size:.3g} {unit}"
