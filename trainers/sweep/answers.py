"""What a worker does with a cell: compute it, write its file, say how it went."""

from __future__ import annotations

import platform
import threading
from dataclasses import dataclass
from pathlib import Path

from trainers.files import Json, RunError, writing
from trainers.sweep.cells import Cell, nothing_proven, read_cell, write_cell
from trainers.sweep.compute import CellError, compute
from trainers.sweep.records import INDEX

__all__ = ["Answer", "answer"]


@dataclass(frozen=True)
class Answer:
    """What a worker says of a cell once its file is there, or why it cannot be.

    Attributes:
        failure: why there is no result, empty where there is one.
        status: how the method ended.
        seconds: its own time.
        gap: that an exact cell ended with.
        nothing_proven: whether its bound is that of a perfect order, above its value.
    """

    failure: str = ""
    status: str = ""
    seconds: float = 0.0
    gap: float | None = None
    nothing_proven: bool = False

    @classmethod
    def of(cls, record: Json) -> Answer:
        """The answer that a cell has this record."""
        gap = (record.get("list") or {}).get("gap")
        return cls("", record["status"], record["seconds"], gap, nothing_proven(record))


_ONE_AT_A_TIME = threading.Lock()
"""Numbers of threads and random states belong to the process, and a Dask worker may have several threads."""


def answer(folder: Path, cell: Cell, threads: int) -> Answer:
    """Compute a cell and write its file, unless it is there already.

    Args:
        folder: of the sweep.
        cell: what to compute; its ``starts`` are there, or have failed.
        threads: for everything that uses several.

    Raises:
        RunError: what would keep every cell from its result: a folder or data that are not there.
    """
    if not (folder / INDEX).exists():
        raise RunError(f"{folder}: there is no sweep on {platform.node()}; workers need the folder of the sweep")
    with _ONE_AT_A_TIME:
        try:
            record = read_cell(folder, cell.id)  # another process may have been faster
            starts = {} if record is not None else _starts(folder, cell)
        except (CellError, RunError) as error:  # a damaged file concerns its cell only
            return Answer(f"{cell.id}: {error}")
        if record is None:
            try:
                record = compute(cell, starts, threads)
            except CellError as error:
                return Answer(f"{cell.id}: {error}")
            except RunError:
                raise
            except Exception as error:
                return Answer(f"{cell.id}: {type(error).__name__}: {error}")
            with writing(folder, "runs_dir"):
                write_cell(folder, record)
    return Answer.of(record)


def _starts(folder: Path, cell: Cell) -> dict[str, Json]:
    records = {}
    for name in cell.starts:
        if (record := read_cell(folder, name)) is None:
            raise CellError(f"starts from {name}, which has no result")
        records[name] = record
    return records
