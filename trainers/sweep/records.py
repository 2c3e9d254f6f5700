"""The results of a sweep, from its folder or from one file that holds them all.

The file is JSON lines: first ``{"name", "grids", "origin"}``, what ``sweep.json`` holds, then a record a line (see
`trainers.sweep.cells`), without the curves of the trainings.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trainers.files import Json, RunError, read_json, reading, to_json, write_atomic
from trainers.sweep.cells import check_record, read_cell

__all__ = ["ADVICE", "INDEX", "SweepResults", "read_export", "read_sweep", "write_export"]

INDEX = "sweep.json"
"""The file of a sweep's folder that says which cells make which table."""
ADVICE = "remove it: the same `ltr sweep` then writes it again"
"""What to do about a damaged one."""


@dataclass(frozen=True)
class SweepResults:
    """What a sweep has found so far.

    Attributes:
        name: of the sweep.
        grids: what tables are made of: dictionaries with ``name``, ``title``, ``best_of``, ``varied`` (keys) and
            ``cells``, each of which has ``id``, ``data``, ``split``, ``method`` and ``varied`` (values by key), and an
            exact one the id of its ``base``.
        origin: versions, commit and machine.
        records: of the finished cells that a grid names or that others start from, in the order of the grids.
    """

    name: str
    grids: list[Json]
    origin: Json
    records: list[Json]

    @cached_property
    def by_id(self) -> dict[str, Json]:
        """The records by the id of their cell."""
        return {record["id"]: record for record in self.records}

    def base_of(self, record: Json) -> Json | None:
        """The record of the ranker whose list an exact cell reranked; None where it is not there.

        Where the grids do not say which it is, it is the only one of its method on that data and split.
        """
        if (known := self._bases.get(record["id"])) is not None:
            return self.by_id.get(known)
        found = self._first_stages.get((record["data"], record["split"], record["options"]["base"]), [])
        return found[0] if len(found) == 1 else None

    @cached_property
    def _bases(self) -> dict[str, str]:
        return {cell["id"]: cell["base"] for grid in self.grids for cell in grid["cells"] if "base" in cell}

    @cached_property
    def _first_stages(self) -> dict[tuple[str, int, str], list[Json]]:
        found: dict[tuple[str, int, str], list[Json]] = {}
        for record in self.records:
            found.setdefault((record["data"], record["split"], record["method"]), []).append(record)
        return found


def read_sweep(path: Path) -> SweepResults:
    """The results in a sweep's folder, or in a file that `write_export` wrote.

    Raises:
        RunError: a path that holds no sweep, a damaged file.
    """
    if not path.is_dir():
        return read_export(path)
    index = read_json(path / INDEX, ADVICE)
    if index is None:
        raise RunError(f"{path}: holds no sweep (no {INDEX}); `ltr sweep CONFIG` makes one")
    with reading(path / INDEX, ADVICE):
        _check_index(index)
        wanted = dict.fromkeys(cell["id"] for grid in index["grids"] for cell in grid["cells"])
        found = {}
        for name in wanted:
            if (record := read_cell(path, name)) is not None:
                found[name] = record
        for record in list(found.values()):
            for name in (record.get("list") or {}).get("starts", ()):
                if name not in found and (start := read_cell(path, name)) is not None:
                    found[name] = start
        return SweepResults(index["name"], index["grids"], index["origin"], list(found.values()))


def read_export(path: Path) -> SweepResults:
    """The results in a file that `write_export` wrote.

    Raises:
        RunError: no such file, or one that holds something else.
    """
    with reading(path, advice="a folder of a sweep is needed, or the cells.jsonl that `ltr report` makes of one"):
        first, *rest = path.read_text(encoding="utf-8").splitlines()
        head = json.loads(first)
        records = [json.loads(line) for line in rest]
        for record in records:
            check_record(record)
        _check_index(head)
        return SweepResults(head["name"], head["grids"], head["origin"], records)


def _check_index(index: Json) -> None:
    """Refuse what does not say which cells make which table.

    Raises:
        ValueError: keys that are missing; AttributeError and TypeError where tables are something else.
    """
    for grid in index["grids"]:
        for entry, keys in ((grid, _OF_GRID), *((cell, _OF_CELL) for cell in grid.get("cells", ()))):
            if missing := keys - entry.keys():
                raise ValueError(f"no {min(missing)} in {entry}")


_OF_GRID = {"name", "title", "best_of", "varied", "cells"}
_OF_CELL = {"id", "data", "split", "method", "varied"}


def write_export(path: Path, results: SweepResults) -> None:
    """Write all results into one file."""
    head = {"name": results.name, "grids": results.grids, "origin": results.origin}
    kept = ({key: value for key, value in record.items() if key != "curve"} for record in results.records)
    lines = [json.dumps(to_json(line), separators=(",", ":"), allow_nan=False) for line in (head, *kept)]
    write_atomic(path, ("\n".join(lines) + "\n").encode())
