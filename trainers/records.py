"""Records: what is kept of a method fitted on a split of a data set, in runs and in sweeps.

A record is a JSON object with the keys of `Record`. A sweep keeps each in a file ``cells/<id>.json`` of its folder,
written whole or not at all; while that file is there, the record is not computed again. A run keeps each in
``<method>/result.json`` (`trainers.run.folder`). `read_sweep` gives `SweepResults`, which the report is made from.

``grids`` say what tables are made of: for each grid of the sweep its ``name``, ``title``, ``best_of``, ``varied``
(keys) and ``cells``, each with ``id``, ``data``, ``split``, ``method`` and ``varied`` (values by key, lists as text),
and one of the exact stage with the id of its ``base``. ``sweep.json`` holds ``{"name", "grids", "origin"}``.
``cells.jsonl`` holds the results of a sweep in one file: first the same object, then a record a line.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import math
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

import ltr
from ltr.exact.solution import Status
from ltr.threads import available_threads
from trainers.config import EXACT
from trainers.files import Json, RunError, read_json, reading, to_json, write_atomic, write_json

_Numbers = dict[str, float | None]
_Sizes = dict[str, list[int] | int]
_Weights = list[float]


class Record(TypedDict):
    """The keys of a record, and their types."""

    id: str  # data/split/method-hash, see `trainers.plan`
    data: str  # name of the experiment
    split: int  # seed of the split
    method: str
    options: dict[str, Any]  # options of the method: the keys of its section of the config
    sizes: _Sizes  # {"train": [rows, positives], "test": [rows, positives], "d": features}
    status: str  # how the method ended
    seconds: float  # its own time
    train: _Numbers  # the reported statistics of the training set, {"dcg": 12.3, ...}; None where undefined
    test: _Numbers  # those of the test set
    weights: _Weights | None  # weights on the raw features; None where the ranker is not linear
    steps: NotRequired[int | None]  # its steps, rounds or search nodes
    loss: NotRequired[float | None]  # its own convex loss on the training set; None for the exact stage
    # of a surrogate the first statistic of the validation set, as the mean over lists of its share of the best value
    validation: NotRequired[float | None]
    excess: NotRequired[float | None]  # distance of its objective to the certified optimum, where that was asked for
    message: NotRequired[str | None]  # what else the user should know
    card: NotRequired[dict[str, Any] | None]  # the card
    # a `DemandOutcome` as JSON, with "new": [{"value", "low", "high"}, ...], what the test set has of each demand, with
    # a 90 % interval; left out without demands
    demands: NotRequired[dict[str, Any] | None]

    ranges: NotRequired[dict[str, Any] | None]  # of runs: the places of rows of its list, `ltr.answer.RowRanges`

    # of the exact stage alone:
    # {"n", "n_pos", "value", "bound", "gap", "trivial_bound", "starts": {id: value}}: the reranked top, the objective
    # there with its bound, the statistic of a perfect order, and the objective of the rankers that the search started
    # from; where a base score is corrected also {"base", "reached", "base_weight"}: the statistic of the base's order
    # and of the ranker's, and the base score's weight
    list: NotRequired[dict[str, float | _Numbers | None] | None]
    # {"checks": [[constraint, how it holds], ...], "base": {"train", "test"}, "first_k"}, where both stages are bound:
    # statistics and first K rows of the base so fitted
    constraints: NotRequired[dict[str, Any] | None]
    front: NotRequired[dict[str, Any] | None]  # of runs: what another measure costs, `ltr.answer.ListFront`
    choice: NotRequired[dict[str, Any] | None]  # the fields of `ltr.rankers.Choice`, where it chose whether to rerank
    # {"norm", "seconds", "train", "test"}: the answer moved to the largest margin, if asked for
    recentred: NotRequired[dict[str, Any] | None]


CELLS = "cells"
"""Folder of the records in a sweep's folder."""
INDEX = "sweep.json"
"""File of a sweep's folder that says which records make which table."""
ADVICE = "remove it: the same `ltr sweep` then writes it again"
"""What to do about a damaged index."""

_GRID_KEYS = {"name", "title", "best_of", "varied", "cells"}
_CELL_KEYS = {"id", "data", "split", "method", "varied"}
_PACKAGES = ("torch", "numpy", "pyscipopt", "scikit-learn", "cvxpy", "pandas", "tensorboard")
_RECORD_ADVICE = "remove it: the same `ltr sweep` then computes this result again"


def is_trivial(bound: float | None, trivial_bound: float | None) -> bool:
    """Return whether a bound is that of a perfect order."""
    return bound is not None and trivial_bound is not None and math.isclose(bound, trivial_bound, rel_tol=1e-9)


def nothing_proven(record: Mapping[str, Any]) -> bool:
    """Return whether an exact record's bound is that of a perfect order of its list, and above its value."""
    found = record.get("list")
    if not found or record["status"] == Status.OPTIMAL.value:
        return False
    return is_trivial(found["bound"], found["trivial_bound"])


@functools.cache
def _types() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def check_record(record: Mapping[str, Any]) -> None:
    """Raise ValueError for an object that is not a record: keys are missing, or values of other types or sizes."""
    _types().validate_python(record, strict=True)
    if not record["train"]:
        raise ValueError(f"no statistics: {record}")
    sizes = record["sizes"]
    if (found := record.get("list")) and not 0 <= found["n_pos"] <= found["n"] <= sizes["train"][0]:
        raise ValueError(f"a list of {found['n']} with {found['n_pos']} positives, of {sizes['train'][0]} rows")


def cell_file(folder: Path, cell_id: str) -> Path:
    """Return the path of a record in a sweep's folder."""
    return folder / CELLS / f"{cell_id}.json"


def read_cell(folder: Path, cell_id: str) -> Json | None:
    """Read a record of a sweep; None while it is not computed."""
    path = cell_file(folder, cell_id)
    record = read_json(path, _RECORD_ADVICE)
    with reading(path, _RECORD_ADVICE):
        if record is not None:
            check_record(record)
            if record["id"] != cell_id:
                raise ValueError(f"the record of {record['id']}")
    return record


def write_cell(folder: Path, record: Mapping[str, Any]) -> None:
    """Write a record of a sweep; from then on it is not computed again."""
    path = cell_file(folder, record["id"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, record)


@dataclass(frozen=True)
class SweepResults:
    """The records of a sweep or run so far."""

    name: str  # name of the sweep or run
    grids: list[Json]  # what tables are made of
    origin: Json  # versions, commit and machine
    records: list[Json]  # finished ones that a grid names or that others start from, in the order of the grids

    @cached_property
    def by_id(self) -> dict[str, Json]:
        """Records by id."""
        return {record["id"]: record for record in self.records}

    def base_of(self, record: Json) -> Json | None:
        """Return the record of the ranker whose list an exact record reranked, None where it is missing."""
        return self.by_id.get(self._bases.get(record["id"], ""))

    @cached_property
    def _bases(self) -> dict[str, str]:
        return {cell["id"]: cell["base"] for grid in self.grids for cell in grid["cells"] if "base" in cell}


def is_sweep(path: Path) -> bool:
    """Return whether a path is a sweep's folder, or a file, which then should hold a sweep's results."""
    return path.is_file() or (path / INDEX).exists()


def read_sweep(path: Path) -> SweepResults:
    """Read the results in a sweep's folder, or in a file that `write_export` wrote."""
    if not path.is_dir():
        advice = "a folder of a sweep is needed, or the cells.jsonl that `ltr report` makes of one"
        with reading(path, advice):
            index, *records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            for record in records:
                check_record(record)
            return _results(index, records)
    index = read_json(path / INDEX, ADVICE)
    if index is None:
        raise RunError(f"{path}: holds no sweep (no {INDEX}); `ltr sweep CONFIG` makes one")
    with reading(path / INDEX, ADVICE):
        named = dict.fromkeys(cell["id"] for grid in index["grids"] for cell in grid["cells"])
        found = {cell_id: read_cell(path, cell_id) for cell_id in named}
        lists = [record.get("list") or {} for record in found.values() if record is not None]
        starts = dict.fromkeys(cell_id for one in lists for cell_id in one.get("starts", ()))
        found |= {cell_id: read_cell(path, cell_id) for cell_id in starts if cell_id not in found}
        return _results(index, [record for record in found.values() if record is not None])


def _results(index: Json, records: Iterable[Json]) -> SweepResults:
    """Return the results of an index and its records; refuse one that does not say which records make which table."""
    for grid in index["grids"]:
        for entry, keys in ((grid, _GRID_KEYS), *((cell, _CELL_KEYS) for cell in grid.get("cells", ()))):
            base = {"base"} if entry.get("method") == EXACT else set()
            if missing := (keys | base) - entry.keys():
                raise ValueError(f"no {min(missing)} in {entry}")
    return SweepResults(index["name"], index["grids"], index["origin"], list(records))


def write_export(path: Path, results: SweepResults) -> None:
    """Write all results into one file."""
    head = {"name": results.name, "grids": results.grids, "origin": results.origin}
    lines = [json.dumps(to_json(line), separators=(",", ":"), allow_nan=False) for line in (head, *results.records)]
    write_atomic(path, ("\n".join(lines) + "\n").encode())


def origin() -> Json:
    """Return the machine, versions of packages, and the git commit of this code, else of the current folder."""
    commit = _git_facts(Path(__file__).parent) or _git_facts(Path.cwd()) or {"git_commit": None, "git_dirty": None}
    versions = {"ltr": ltr.__version__} | {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"machine": machine(), "python": platform.python_version(), "versions": versions, **commit}


def machine() -> str:
    """Return the processor and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        name = models[0] if models else name
    return f"{name}, {available_threads()} cores"


def _git_facts(folder: Path) -> Json | None:
    """Return the commit of the repository of a folder; None without one."""
    options: dict[str, Any] = {"cwd": folder, "capture_output": True, "text": True, "timeout": 10, "check": True}
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], **options).stdout.strip()
        changes = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], **options).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return {"git_commit": commit, "git_dirty": bool(changes)}
