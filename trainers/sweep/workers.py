"""Workers of a sweep: processes of this machine."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from ltr.threads import available_threads
from trainers.files import RunError
from trainers.plan import Cell
from trainers.records import Answer
from trainers.stopping import StopFlag
from trainers.sweep.compute import answer

_Future = concurrent.futures.Future[Answer]


@dataclass(frozen=True)
class Workers:
    """The workers that a sweep asks for."""

    jobs: int | None = None  # cells at the same time; None for one each `threads` processors
    threads: int = 1  # threads of each cell


class Pool:
    """Processes that compute cells: `at_once` is the number of cells at the same time."""

    def __init__(self, executor: ProcessPoolExecutor, at_once: int, threads: int, stop: StopFlag) -> None:
        self.at_once = at_once
        self._executor, self._threads, self._stop = executor, threads, stop

    def answers(self, folder: Path, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Answer]]:
        """Yield each cell with its answer, once that is known."""
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
def open_pool(workers: Workers, cells: int) -> Iterator[Pool]:
    """Return a context with processes for a number of cells, which end with it, whatever ends it."""
    threads = workers.threads
    jobs = min(cells, workers.jobs or max(1, available_threads() // threads))
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
            yield Pool(executor, jobs, threads, stop)
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
