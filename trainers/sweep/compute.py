"""The work of a sweep's worker: data in, a fitted method, its record in a file, and an answer on how it went."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from ltr.data import DataError
from trainers.config import EXACT
from trainers.files import Json, RunError, writing
from trainers.methods import INTERRUPTED, Watch, fit, import_libraries
from trainers.plan import Cell
from trainers.records import INDEX, POINTS, Answer, read_cell, thinned, write_cell
from trainers.task.data import Split, read_source, split_of
from trainers.task.measures import Task


class CellError(ValueError):
    """The reason why one cell has no result; others are not concerned."""


def answer(folder: Path, cell: Cell, threads: int) -> Answer:
    """Compute a cell and write its file, unless it is there already.

    Raises:
        RunError: a folder or data are missing, which would keep every cell from its result.
    """
    if not (folder / INDEX).exists():
        raise RunError(f"{folder}: there is no sweep on {platform.node()}; workers need the folder of the sweep")
    try:
        record = read_cell(folder, cell.id)  # another process may have been faster
        starts = {}
        for name in cell.starts if record is None else ():
            if (start := read_cell(folder, name)) is None:
                raise CellError(f"starts from {name}, which has no result")
            starts[name] = start
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


class _CurveWatch(Watch):
    def __init__(self, first: str) -> None:
        self.curve: list[list[float | None]] = []
        self._tags = ("loss/convex", f"train/{first}", f"test/{first}")

    def wants(self, index: int, last: int | None) -> bool:
        return last is None or index in _kept(last)

    def log(self, step: int, values: Mapping[str, float], when: float | None = None) -> None:
        self.curve.append([step, *map(values.get, self._tags)])


@functools.lru_cache(maxsize=1)
def _kept(last: int) -> frozenset[int]:
    return frozenset(thinned(range(1, last + 1), POINTS))


def compute(cell: Cell, starts: Mapping[str, Json], threads: int) -> Json:
    """Return the record of a cell, see `trainers.records`.

    Raises:
        CellError: the data or options do not go with the method.
        RunError: the data cannot be read, or are not those of the plan.
        KeyboardInterrupt: a signal stopped it.
    """
    import_libraries()
    torch.set_num_threads(threads)
    with threadpool_limits(threads):
        task = Task(cell.config, _data(cell))
        watch = _CurveWatch(task.reported[0])
        weights = {name: record["weights"] for name, record in starts.items() if record["weights"] is not None}
        try:
            record = fit(task, cell, watch, starts=weights, threads=threads).record
        except (ValueError, FloatingPointError) as error:
            raise CellError(str(error)) from error
    if record["status"] == INTERRUPTED:
        raise KeyboardInterrupt
    return record if cell.method == EXACT else {**record, "curve": thinned(watch.curve, POINTS)}


_split = functools.lru_cache(maxsize=4)(split_of)
"""The data and split of the last cells: a process computes those of one data set one after the other."""


def _data(cell: Cell) -> Split:
    for _ in range(2):
        try:
            split = _split(cell.config.data, cell.split)
        except DataError as error:
            try:
                read_source(cell.config.data)
            except DataError as unreadable:
                raise RunError(f"{cell.data}, on {platform.node()}: {unreadable}") from None
            raise CellError(str(error)) from None  # the data are there, but this split of them cannot be used
        if cell.on_data(split.facts["sha256"]).id == cell.id:
            return split
        _split.cache_clear()  # files may have changed since
    advice = "the same `ltr sweep` plans anew; all workers must read the same files"
    raise RunError(f"{cell.data}: the data on {platform.node()} are not those that the sweep began with; {advice}")
