"""The harness of the benchmarks and studies: what to measure, the records of it, and tables put into pages.

A *request* is a JSON object of what to measure; its *record* adds what came. Records are kept in a file of JSON lines,
so that nothing is measured twice and an interrupted program goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ltr.data import Dataset, half_split
from ltr.threads import available_threads
from trainers.provenance import machine, origin
from trainers.tables import markdown_table

Json = dict[str, Any]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ROOT = Path(__file__).parents[1]


class Records:
    """Records in a file of JSON lines, by their values of some fields.

    Args:
        path: the file.
        fields: names of the fields that tell one record from another; of several alike the last one counts.
    """

    def __init__(self, path: Path, fields: Sequence[str]) -> None:
        self.path, self._fields = path, fields
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._found = {self._key(record): record for record in map(json.loads, lines)}

    def of(self, requests: Sequence[Json]) -> list[Json]:
        """Return the records that there are of some requests, in their order."""
        keys = dict.fromkeys(map(self._key, requests))
        return [self._found[key] for key in keys if key in self._found]

    def add(self, record: Json) -> None:
        """Add a record here and to the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self._found[self._key(record)] = record

    def _key(self, record: Json) -> str:
        return json.dumps([record.get(field) for field in self._fields])


@dataclass(frozen=True)
class Bench:
    """A benchmark or a study: its command line, and how its records come about.

    Attributes:
        name: name of the folder under runs/.
        about: the docstring of its module.
        page: the page in docs/ with places for its tables.
        requests: everything to measure.
        measure: takes the fields of a request as keywords and returns what came, in a process of one thread, or of as
            many as the field ``threads`` says.
        tables: makes tables of the records, by name.
        alone: whether each measurement has a process of its own, with no other beside it, for times and memory.
        figures: draws the records into a folder.
        kept: file of the records, in place of that under runs/.
    """

    name: str
    about: str | None
    page: str
    requests: Sequence[Json]
    measure: Callable[..., Json]
    tables: Callable[[list[Json]], Mapping[str, str]]
    alone: bool = False
    figures: Callable[[list[Json], Path], None] | None = None
    kept: str = ""

    def records(self, path: Path | None = None) -> Records:
        """Return the records in a file, in that of the benchmark by default."""
        fields = list(dict.fromkeys(field for request in self.requests for field in request))
        return Records(path or ROOT / (self.kept or f"runs/{self.name}/records.jsonl"), fields)

    def chosen(self, only: Mapping[str, Sequence[str]], fixed: Json | None = None) -> list[Json]:
        """Return the requests whose fields have one of the values in `only`, with the values of `fixed`."""
        return [
            request | (fixed or {})
            for request in self.requests
            if all(str(request.get(field)) in values for field, values in only.items())
        ]

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measure what is missing, print the tables, and put them into the page; return 1 if a measurement failed."""
        parser = argparse.ArgumentParser(description=(self.about or "").splitlines()[0])
        fields = ", ".join(dict.fromkeys(field for request in self.requests for field in request))
        pair = {"nargs": "+", "default": [], "metavar": "FIELD=VALUE"}
        parser.add_argument("--only", **pair, help=f"measure part of it: {fields}; values are separated by semicolons")
        parser.add_argument("--set", **pair, help="measure with another value of a field")
        parser.add_argument("--records", type=Path, help="file of the records")
        parser.add_argument("--docs", type=Path, nargs="?", const=ROOT / self.page, help="put the tables into the page")
        parser.add_argument("--kept", action="store_true", help="measure nothing: tables of the records that there are")
        parser.add_argument("--processes", type=int, default=available_threads(), help="default: number of processors")
        options = parser.parse_args(arguments)
        only = {field: texts.split(";") for field, texts in map(_pair, options.only)}
        requests = self.chosen(only, {field: _value(text) for field, text in map(_pair, options.set)})
        records = self.records(options.records)
        complete = options.kept or self.measure_missing(records, requests, options.processes)
        found = records.of(requests)
        if not found:
            print(f"error: there are no records in {records.path}", file=sys.stderr)
            return 1
        for name, text in self.tables(found).items():
            print(f"\n{text}")
            if options.docs is not None:
                insert(options.docs, name, text)
        if self.figures is not None:
            self.figures(found, records.path.parent if options.docs is None else options.docs.parent / "images")
        return 0 if complete else 1

    def measure_missing(self, records: Records, requests: Sequence[Json], processes: int) -> bool:
        """Measure the requests without a record, and keep each record at once; return whether none failed."""
        missing, made, complete = [request for request in requests if not records.of([request])], origin(), True
        commit = f"{(made['git_commit'] or '')[:12]}{'+' if made['git_dirty'] else ''}"
        facts = {"commit": commit, "machine": f"{machine()}; torch {torch.__version__}"}
        for done, (request, future) in enumerate(self._futures(missing, processes), start=1):
            name = f"{done}/{len(missing)}  {', '.join(map(str, request.values()))}"
            try:
                found, seconds = future.result()
            except ImportError as error:
                print(f"{name}: left out, {error}", flush=True)
            except Exception as error:  # the others go on
                complete = False
                print(f"{name}: failed, {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            else:
                records.add(request | found | facts)
                print(f"{name}: {seconds:.0f} s", flush=True)
        return complete

    def _futures(self, requests: Sequence[Json], processes: int) -> Iterator[tuple[Json, Future[tuple[Json, float]]]]:
        spawn = multiprocessing.get_context("spawn")  # a process does not have the memory of this one
        groups = [[request] for request in requests] if self.alone else [requests] * bool(requests)
        for group in groups:
            os.environ["OMP_NUM_THREADS"] = str(group[0].get("threads", 1))
            with ProcessPoolExecutor(min(processes, len(group)), spawn) as pool:
                futures = {pool.submit(_timed, self.measure, request): request for request in group}
                for future in as_completed(futures):
                    yield futures[future], future


def _timed(measure: Callable[..., Json], request: Json) -> tuple[Json, float]:
    torch.set_num_threads(request.get("threads", 1))
    started = time.perf_counter()
    return measure(**request), time.perf_counter() - started


def _pair(text: str) -> tuple[str, str]:
    field, _, value = text.partition("=")
    return field, value


def _value(text: str) -> Any:  # noqa: ANN401 (a value of JSON)
    try:
        return json.loads(text)
    except ValueError:
        return text


def insert(page: Path, name: str, text: str) -> None:
    """Replace the text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` in a page.

    Raises:
        ValueError: a page without these two lines.
    """
    whole, old = page.read_text(encoding="utf-8"), inserted(page, name)
    begin = f"<!-- begin {name} -->\n"
    page.write_text(whole.replace(f"{begin}{old}", f"{begin}{text.strip()}\n"), encoding="utf-8")


def inserted(page: Path, name: str) -> str:
    """Return the text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` in a page."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if (found := re.search(f"{begin}(.*?){end}", page.read_text(encoding="utf-8"), re.DOTALL)) is None:
        raise ValueError(f"{page} must hold the lines {begin.strip()} and {end}")
    return found[1]


def table(
    records: Sequence[Json],
    rows: Mapping[str, str],
    columns: Mapping[str, Json],
    cell: Callable[[list[Json]], str],
    more: Mapping[str, Callable[[list[Json]], str]] | None = None,
) -> str:
    """Return a table with a row for each combination of the values of some fields, in order of appearance.

    Args:
        records: the records.
        rows: headings by the names of the fields.
        columns: the fields of the records in each column, by its heading.
        cell: makes the text of the records of a cell; a cell without any is ``-``.
        more: further columns, before the others, made of all records of the row.
    """
    made, leading = [], more or {}
    for key in dict.fromkeys(tuple(record[field] for field in rows) for record in records):
        own = [record for record in records if tuple(record[field] for field in rows) == key]
        parts = [[r for r in own if all(r[field] == value for field, value in of.items())] for of in columns.values()]
        cells = [cell(part) if part else "-" for part in parts]
        made.append([*map(str, key), *(text(own) for text in leading.values()), *cells])
    return markdown_table([*rows.values(), *leading, *columns], made, left=len(rows))


def with_error(values: ArrayLike, form: str = "{:.4f}") -> str:
    """Return the mean of some values, and its standard error where there are several."""
    given = np.asarray(values, dtype=np.float64)
    if len(given) == 1:
        return form.format(given[0])
    error = given.std(ddof=1) / len(given) ** 0.5
    return f"{form.format(given.mean())} ± {form.replace('+', '').removesuffix(' %').format(error)}"


def made_on(records: Sequence[Json]) -> str:
    """Return on which machines, and by which commits, records were made."""
    machines, commits = ([*dict.fromkeys(r[key] for r in records if key in r)] for key in ("machine", "commit"))
    return f"{', '.join(machines)}; commit {', '.join(f'`{name}`' for name in commits)}."


def halves(data: Dataset, split: int) -> tuple[Dataset, Dataset]:
    """Return a training set and a test set: half of the rows each, or of the queries where there are any."""
    if data.qid is None:
        parts = half_split(data.n, split)
        return tuple(Dataset(data.name, data.X[at], data.y[at], data.feature_names) for at in parts)  # type: ignore[return-value]
    chosen = [np.isin(data.qid, queries) for queries in half_split(data.n_queries, split)]
    return tuple(Dataset(data.name, data.X[at], data.y[at], data.feature_names, data.qid[at]) for at in chosen)  # type: ignore[return-value]


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
