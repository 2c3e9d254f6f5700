"""Workers of a sweep: processes of this machine, or the workers of a Dask scheduler."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import multiprocessing
import os
import queue
import signal
import threading
import time
import uuid
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from ltr.threads import available_threads
from trainers.files import RunError
from trainers.plan import Cell
from trainers.records import Answer, read_cell
from trainers.stopping import StopFlag
from trainers.sweep.compute import answer

_Future = concurrent.futures.Future[Answer]

_ANSWER = 10.0  # seconds in which a Dask scheduler has to answer


@dataclass(frozen=True)
class Workers:
    """The workers that a sweep asks for; a RunError where both `jobs` and `dask` are given."""

    jobs: int | None = None  # cells at the same time on this machine; None for one each `threads` processors
    threads: int = 1  # threads of each cell
    dask: str | None = None  # address of a Dask scheduler; None for processes of this machine

    def __post_init__(self) -> None:
        if self.dask is not None and self.jobs is not None:
            rule = "is for processes of this machine and cannot be combined with --dask"
            raise RunError(f"--jobs: {rule}, got {self.jobs}")


def open_pool(workers: Workers, cells: int) -> contextlib.AbstractContextManager[_Processes | _DaskWorkers]:
    """Return a context with workers for a number of cells; those of this machine end with it, whatever ends it.

    Its ``answers`` yields each cell with its answer, once that is known. ``at_once`` is the number of cells at the same
    time, ``name`` the name of the workers for the user.
    """
    if workers.dask is None:
        jobs = max(1, available_threads() // workers.threads) if workers.jobs is None else workers.jobs
        return _processes(min(jobs, cells), workers.threads)
    return _dask_workers(workers.dask, workers.threads)


class _Processes:
    def __init__(self, executor: ProcessPoolExecutor, at_once: int, threads: int, stop: StopFlag) -> None:
        self.at_once, self.name = at_once, f"{at_once} at a time"
        self._executor, self._threads, self._stop = executor, threads, stop

    def answers(self, folder: Path, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Answer]]:
        finished: queue.SimpleQueue[_Future] = queue.SimpleQueue()
        try:
            with _signals_masked():  # processes started here inherit it: the first process alone hears Ctrl-C
                futures = {self._executor.submit(answer, folder, cell, self._threads): cell for cell in cells}
            for future in futures:
                future.add_done_callback(finished.put)
            for _ in futures:
                future = None
                while future is None:
                    self._stop.check()
                    with contextlib.suppress(queue.Empty):
                        future = finished.get(timeout=0.1)
                yield futures[future], future.result()
        except BrokenProcessPool:
            advice = "what is finished is kept: repeat the same command; if memory ran out, with fewer --jobs"
            raise RunError(f"a worker process was killed; {advice}") from None


@contextlib.contextmanager
def _processes(jobs: int, threads: int) -> Iterator[_Processes]:
    limits = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    before = os.environ.get("PYTHONWARNINGS")
    # loky starts the process that removes what killed workers leave: without a warning
    os.environ["PYTHONWARNINGS"] = ",".join([*([before] if before else []), "ignore:resource_tracker"])
    try:
        executor = ProcessPoolExecutor(jobs, initializer=_end_with, initargs=(os.getpid(),), env=limits)
    finally:
        del os.environ["PYTHONWARNINGS"]
        os.environ |= {} if before is None else {"PYTHONWARNINGS": before}
    others, finished = multiprocessing.active_children(), False
    # an interrupt within the executor could leave its locks closed, and its end would wait for ever
    with StopFlag(forced=False) as stop, warnings.catch_warnings():
        # a worker whose memory has grown is replaced
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        try:
            yield _Processes(executor, jobs, threads, stop)
            finished = True
        finally:
            # the executor's own way of killing its processes fails while cells wait
            for process in [] if finished else multiprocessing.active_children():
                if process not in others and process.name.startswith("LokyProcess") and process.pid is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGKILL)
            executor.shutdown(wait=True)


@contextlib.contextmanager
def _signals_masked() -> Iterator[None]:
    """Return a context in which Ctrl-C and SIGTERM wait; in processes started there they wait for ever."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else started with the first process, and lets signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """End this process soon after its parent: a killed sweep leaves no process behind."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _DaskWorkers:
    def __init__(self, client: Any, address: str, threads: int) -> None:  # noqa: ANN401  (distributed has no types)
        self._client, self._address, self._threads = client, address, threads
        connected = client.nthreads()
        for name, count in connected.items():
            if count != 1:
                advice = "start workers with --nthreads 1, and more of them (--nworkers)"
                raise RunError(f"--dask: the worker {name} has {count} threads; {advice}")
        self.at_once = max(1, len(connected))
        self.name = f"by {len(connected) or 'no'} workers of {address}{'' if connected else ' so far'}"

    def answers(self, folder: Path, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Answer]]:
        from distributed import as_completed

        futures = {}
        for cell in cells:
            key = f"{cell.id}-{uuid.uuid4().hex}"  # what an earlier start of the sweep has asked for is another task
            futures[self._client.submit(answer, folder, cell, self._threads, key=key, pure=False)] = cell
        done = as_completed(list(futures), loop=self._client.loop, with_results=True, raise_errors=False)
        for future, result in done:
            cell = futures.pop(future)
            yield cell, result if future.status == "finished" else self._ending(folder, cell, future.status, result)

    def _ending(self, folder: Path, cell: Cell, status: str, result: Any) -> Answer:  # noqa: ANN401
        """Return the answer of a task that ended without one, or raise what keeps all cells from results."""
        from distributed import KilledWorker

        error = result[1] if status == "error" else None
        if isinstance(error, KilledWorker):
            if (record := read_cell(folder, cell.id)) is not None:  # they were killed just after
                return Answer.of(record)
            return Answer(f"{cell.id}: the workers that tried it were killed; memory may have run out")
        if isinstance(error, RunError):
            raise error
        if error is not None:
            raise RunError(f"--dask: a worker could not begin {cell.id} ({type(error).__name__}: {error})")
        raise RunError(f"--dask: the scheduler at {self._address} is gone; what is finished is kept")


@contextlib.contextmanager
def _dask_workers(address: str, threads: int) -> Iterator[_DaskWorkers]:
    try:
        from distributed import Client
    except ImportError:
        raise RunError("--dask: needs the package distributed (pip install 'rankproof[dask]')") from None
    for name in list(logging.root.manager.loggerDict):  # what matters comes as an error
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=_ANSWER, set_as_default=False)
    except (OSError, ValueError) as error:
        raise RunError(f"--dask: no scheduler answers at {address} ({type(error).__name__})") from None
    try:
        yield _DaskWorkers(client, address, threads)
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            client.close(timeout=2)
