"""Workers of a sweep: processes of this machine that compute cells and write their records."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import platform
import queue
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from pathlib import Path

import torch
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from ltr.data import DataError
from trainers.files import Json, RunError, writing
from trainers.methods import INTERRUPTED, Starts, Watch, fit, import_libraries
from trainers.plan import Cell
from trainers.records import INDEX, read_cell, write_cell
from trainers.stopping import StopFlag
from trainers.task.data import Split, read_source, split_of
from trainers.task.measures import Task

Answers = Callable[[Path, Sequence[Cell]], Iterator[tuple[Cell, Json | str]]]
"""Yields each cell of a sweep in a folder, once it is computed, with its record or the reason why it has none."""


@contextlib.contextmanager
def open_pool(jobs: int, threads: int) -> Iterator[Answers]:
    """Return a context with `jobs` processes that compute cells, and end with it, whatever ends it."""
    limits = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    before = os.environ.get("PYTHONWARNINGS")
    # loky starts the process that removes what killed workers leave: without a warning
    os.environ["PYTHONWARNINGS"] = ",".join([*([before] if before else []), "ignore:resource_tracker"])
    try:
        executor = ProcessPoolExecutor(jobs, initializer=_end_with, initargs=(os.getpid(),), env=limits)
    finally:
        del os.environ["PYTHONWARNINGS"]
        os.environ |= {} if before is None else {"PYTHONWARNINGS": before}

    def answers(folder: Path, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Json | str]]:
        finished: queue.SimpleQueue[concurrent.futures.Future[Json | str]] = queue.SimpleQueue()
        try:
            # processes that are started with signals masked never hear Ctrl-C: the first process alone does
            resource_tracker.ensure_running()  # else started with them, and lets signals through again
            masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
            try:
                futures = {executor.submit(answer, folder, cell, threads): cell for cell in cells}
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            for future in futures:
                future.add_done_callback(finished.put)
            for _ in futures:
                ended = None
                while ended is None:
                    stop.check()
                    with contextlib.suppress(queue.Empty):
                        ended = finished.get(timeout=0.1)
                yield futures[ended], ended.result()
        except BrokenProcessPool:
            advice = "what is finished is kept: repeat the same command; if memory ran out, with fewer --jobs"
            raise RunError(f"a worker process was killed; {advice}") from None

    others, finished = multiprocessing.active_children(), False
    # an interrupt within the executor could leave its locks closed, and its end would wait for ever
    with StopFlag(forced=False) as stop, warnings.catch_warnings():
        # a worker whose memory has grown is replaced
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        try:
            yield answers
            finished = True
        finally:
            # the executor's own way of killing its processes fails while cells wait
            for process in [] if finished else multiprocessing.active_children():
                if process not in others and process.name.startswith("LokyProcess") and process.pid is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGKILL)
            executor.shutdown(wait=True)


def _end_with(parent: int) -> None:
    """End this process soon after its parent: a killed sweep leaves no process behind."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def answer(folder: Path, cell: Cell, threads: int) -> Json | str:
    """Return the record of a cell, computed and written unless its file is there, or the reason why it has none.

    A `RunError` says that a folder or data are missing, which would keep every cell from its result.
    """
    if not (folder / INDEX).exists():
        raise RunError(f"{folder}: there is no sweep on {platform.node()}; workers need the folder of the sweep")
    try:
        record = read_cell(folder, cell.id)  # another process may have been faster
        starts = {name: read_cell(folder, name) for name in cell.starts} if record is None else {}
    except RunError as error:  # a damaged file concerns its cell only
        return f"{cell.id}: {error}"
    found = {name: start for name, start in starts.items() if start is not None}
    if missing := starts.keys() - found.keys():
        return f"{cell.id}: starts from {min(missing)}, which has no result"
    if record is None:
        try:
            record = compute(cell, found, threads)
        except RunError:
            raise
        except (ValueError, FloatingPointError) as error:  # data or options that do not go with the method
            return f"{cell.id}: {error}"
        except Exception as error:
            return f"{cell.id}: {type(error).__name__}: {error}"
        with writing(folder, "runs_dir"):
            write_cell(folder, record)
    return record


def compute(cell: Cell, starts: Mapping[str, Json], threads: int) -> Json:
    """Return the record of a cell, see `trainers.records`.

    Raises:
        ValueError: the data or options do not go with the method.
        RunError: the data cannot be read, or are not those of the plan.
        KeyboardInterrupt: a signal stopped it.
    """
    import_libraries()
    torch.set_num_threads(threads)
    with threadpool_limits(threads):
        task = Task(cell.config, _data(cell))
        weights = {name: record["weights"] for name, record in starts.items() if record["weights"] is not None}
        record = fit(task, cell, Watch(), Starts(by_id=weights), threads=threads).record
    if record["status"] == INTERRUPTED:
        raise KeyboardInterrupt
    return record


_split = functools.lru_cache(maxsize=4)(split_of)
"""The data and split of the last cells: a process computes those of one data set one after the other."""


def _data(cell: Cell) -> Split:
    for _ in range(2):
        try:
            split = _split(cell.config.data, cell.split)
        except DataError:
            try:
                read_source(cell.config.data)
            except DataError as unreadable:
                raise RunError(f"{cell.data}, on {platform.node()}: {unreadable}") from None
            raise  # the data are there, but this split of them cannot be used
        if cell.on_data(split.facts["sha256"]).id == cell.id:
            return split
        _split.cache_clear()  # files may have changed since
    advice = "run the same `ltr sweep` again to plan anew; all workers must read the same files"
    raise RunError(f"{cell.data}: the data on {platform.node()} are not those that the sweep began with; {advice}")
