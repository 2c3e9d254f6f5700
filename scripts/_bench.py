"""The frame of benchmarks and studies: what to measure, the records of it, and the tables that pages state.

A *request* is a JSON object of what to measure; its *record* adds what came. Records are kept in a file of JSON lines,
so that nothing is measured twice and an interrupted program goes on where it stopped. `scripts.results` is the command.
"""

from __future__ import annotations

import functools
import itertools
import json
import multiprocessing
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from trainers.records import machine, origin
from trainers.tables import markdown_table

Json = dict[str, Any]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Cell = Callable[[list[Json]], str]
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Bench:
    """A benchmark or a study."""

    name: str  # its name on the command line
    page: str  # the page in docs/ with places for its tables
    requests: Sequence[Json]  # everything to measure
    quick: Mapping[str, Sequence[str]]  # values of some fields, for a few requests that take little time
    # takes the fields of a request, and returns what came, in a process of one thread, or of its field `threads`
    measure: Callable[..., Json]
    tables: Callable[[list[Json]], Mapping[str, str]]  # makes tables of the records, by name
    alone: bool = False  # whether each measurement has a process of its own, with no other beside it
    figures: Callable[[list[Json], Path], None] | None = None  # draws the records into a folder
    kept: str = ""  # file of the records that the page is made of

    def chosen(self, only: Mapping[str, Sequence[str]]) -> list[Json]:
        """Return the requests whose fields have one of the values in `only`."""
        return [r for r in self.requests if all(str(r.get(field)) in values for field, values in only.items())]

    def found(self, path: Path, requests: Sequence[Json]) -> list[Json]:
        """Return the records that a file has of some requests, in their order; of several alike the last one counts."""
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        records = {self._key(record): record for record in map(json.loads, lines)}
        return [records[key] for key in dict.fromkeys(map(self._key, requests)) if key in records]

    def measure_missing(self, path: Path, requests: Sequence[Json]) -> bool:
        """Measure the requests without a record, and add each record to the file; return whether none failed."""
        known = set(map(self._key, self.found(path, requests)))
        missing, made = [request for request in requests if self._key(request) not in known], origin()
        commit = f"{(made['git_commit'] or '')[:12]}{'+' if made['git_dirty'] else ''}"
        facts, complete = {"commit": commit, "machine": f"{machine()}; torch {torch.__version__}"}, True
        path.parent.mkdir(parents=True, exist_ok=True)
        for done, (request, future) in enumerate(self._futures(missing), start=1):
            name = f"{done}/{len(missing)}  {', '.join(map(str, request.values()))}"
            try:
                found, seconds = future.result()
            except ImportError as error:
                print(f"{name}: left out, {error}", file=sys.stderr, flush=True)
            except Exception as error:  # the others go on
                complete = False
                print(f"{name}: failed, {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            else:
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(request | found | facts) + "\n")
                print(f"{name}: {seconds:.0f} s", file=sys.stderr, flush=True)
        return complete

    @functools.cached_property
    def _fields(self) -> list[str]:
        return list(dict.fromkeys(itertools.chain(*self.requests)))

    def _key(self, record: Json) -> str:
        return json.dumps([record.get(field) for field in self._fields])

    def _futures(self, requests: list[Json]) -> Iterator[tuple[Json, Future[tuple[Json, float]]]]:
        spawn = multiprocessing.get_context("spawn")  # a process does not have the memory of this one
        groups = [[request] for request in requests] if self.alone else [requests] * bool(requests)
        for group in groups:
            os.environ["OMP_NUM_THREADS"] = str(group[0].get("threads", 1))
            with ProcessPoolExecutor(min(available_threads(), len(group)), spawn) as pool:
                futures = {pool.submit(_timed, self.measure, request): request for request in group}
                for future in as_completed(futures):
                    yield futures[future], future


def _timed(measure: Callable[..., Json], request: Json) -> tuple[Json, float]:
    torch.set_num_threads(request.get("threads", 1))
    started = time.perf_counter()
    return measure(**request), time.perf_counter() - started


# requests, and tables of records


def grid(**fields: Iterable[object]) -> list[Json]:
    """Return a request for each combination of values, the last field varying fastest."""
    return [dict(zip(fields, values, strict=True)) for values in itertools.product(*fields.values())]


def table(records: Sequence[Json], rows: Mapping[str, str], columns: Mapping[str, Cell]) -> str:
    """Return a table with a row for each combination of the values of some fields, in order of appearance.

    `rows` has the headings of the fields, and `columns` what makes the text of a column of all records of a row.
    """
    grouped: dict[tuple[object, ...], list[Json]] = {}
    for record in records:
        grouped.setdefault(tuple(str(record[field]) for field in rows), []).append(record)
    made = [[*key, *(cell(own) for cell in columns.values())] for key, own in grouped.items()]
    return markdown_table([*rows.values(), *columns], made, left=len(rows))


def pivot(cell: Cell, columns: Mapping[str, Json]) -> dict[str, Cell]:
    """Return columns, each made of the records of a row that have certain fields; ``-`` where none has them."""

    def of(fields: Json) -> Cell:
        def text(records: list[Json]) -> str:
            own = [record for record in records if fields.items() <= record.items()]
            return cell(own) if own else "-"

        return text

    return {heading: of(fields) for heading, fields in columns.items()}


def value(field: str, form: str = "{}", missing: str = "-") -> Cell:
    """Return a column with the text of a field of the first record of each row."""
    return lambda own: missing if own[0][field] is None else form.format(own[0][field])


def with_error(values: ArrayLike, form: str = "{:.4f}") -> str:
    """Return the mean of some values, and its standard error where there are several."""
    given = np.asarray(values, dtype=np.float64)
    if len(given) == 1:
        return form.format(given[0])
    error = given.std(ddof=1) / len(given) ** 0.5
    return f"{form.format(given.mean())} ± {form.replace('+', '').removesuffix(' %').format(error)}"


def mean(field: str, form: str = "{:.4f}") -> Cell:
    """Return a column with the mean of a field over the records of each row, and its standard error."""
    return lambda own: with_error([record[field] for record in own], form)


def made_on(records: Sequence[Json]) -> str:
    """Return on which machines, and by which commits, records were made."""
    machines, commits = ([*dict.fromkeys(r[key] for r in records if key in r)] for key in ("machine", "commit"))
    return f"{', '.join(machines)}; commit {', '.join(f'`{name}`' for name in commits)}."


def inserted(page: Path, name: str) -> str:
    """Return the text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` in a page."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if (found := re.search(f"{begin}(.*?){end}", page.read_text(encoding="utf-8"), re.DOTALL)) is None:
        raise ValueError(f"{page} must hold the lines {begin.strip()} and {end}")
    return found[1]


def insert(page: Path, name: str, text: str) -> None:
    """Replace that text."""
    whole, begin = page.read_text(encoding="utf-8"), f"<!-- begin {name} -->\n"
    page.write_text(whole.replace(begin + inserted(page, name), f"{begin}{text.strip()}\n"), encoding="utf-8")


# what several measurements do


def take(data: Dataset, rows: NDArray[Any]) -> Dataset:
    """Return some rows of a data set."""
    qid = None if data.qid is None else data.qid[rows]
    return Dataset(data.name, data.X[rows], data.y[rows], data.feature_names, qid)


def halves(data: Dataset, split: int) -> tuple[Dataset, Dataset]:
    """Return a training set and a test set: half of the rows each, or of the queries where there are any."""
    if data.qid is None:
        train, test = half_split(data.n, split)
    else:
        train, test = (np.isin(data.qid, queries) for queries in half_split(data.n_queries, split))
    return take(data, train), take(data, test)


def whole(train: Dataset, test: Dataset) -> Dataset:
    """Return the rows of both parts of a data set with queries."""
    X, y = np.concatenate([train.X, test.X]), np.concatenate([train.y, test.y])
    return Dataset(train.name, X, y, train.feature_names, np.concatenate([train.qid, test.qid + train.n_queries]))


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
