"""Kernels compiled by numba: kept on disk where that is possible, announced, and left out of timings.

Compiling takes up to two minutes, once on a machine: numba keeps the result beside the modules, in the user's cache
folder, or in the folder that the environment variable ``NUMBA_CACHE_DIR`` names. Where none of them can be written,
kernels are compiled in memory, anew in each process. The logger ``ltr`` says both, each in one line.

Ctrl-C and SIGTERM wait until a kernel is compiled: in between, numba would lose a KeyboardInterrupt and keep a broken
kernel.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

_LOGGER = logging.getLogger("ltr")


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - numba's options and its dispatcher
    """Return numba's decorator of that name; a cache that cannot be read or written does not prevent compiling.

    Args:
        cache: whether to keep the compiled function on disk.
        options: options of numba's decorator.
    """
    import numba
    from numba.core import event
    from numba.core.caching import FunctionCache

    class Cache(FunctionCache):
        """Numba's cache; an entry that cannot be read is compiled again, one that cannot be written is left out."""

        def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401
            try:
                with _PATIENCE:
                    return super().load_overload(sig, target_context)
            except (OSError, EOFError, ValueError, LookupError, AttributeError, pickle.UnpicklingError):
                with contextlib.suppress(OSError):
                    self.flush()  # drops what is damaged
                return None

        def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401
            try:
                with _PATIENCE:
                    super().save_overload(sig, data)
            except OSError as error:
                _WATCH.in_memory(error.strerror or str(error))

    class Listener(event.Listener):
        """Tells the watch when a kernel of this package is compiled."""

        def on_start(self, event: Any) -> None:  # noqa: ANN401
            if event.data["dispatcher"].py_func.__module__.startswith("ltr."):
                _PATIENCE.__enter__()
                _WATCH.begin()

        def on_end(self, event: Any) -> None:  # noqa: ANN401
            if event.data["dispatcher"].py_func.__module__.startswith("ltr."):
                _WATCH.end()
                _PATIENCE.__exit__()

    if not _WATCH.listening:
        _WATCH.listening = True
        event.register("numba:compile", Listener())

    def decorate(function: Any) -> Any:  # noqa: ANN401
        dispatcher = numba.njit(**options)(function)
        if cache:
            try:
                dispatcher._cache = Cache(function)
            except RuntimeError:  # numba found no folder to write to
                _WATCH.in_memory("no folder for them can be written")
        return dispatcher

    return decorate


def clock() -> float:
    """Return the seconds of a clock that stops while any thread compiles kernels."""
    return _WATCH.clock()


class _Watch:
    """Announces the first compilation and measures the time of all."""

    def __init__(self) -> None:
        self.listening = False
        self._lock = threading.Lock()
        self._under_way = 0  # kernels call each other, so that compilations are nested
        self._began = self._total = 0.0
        self._announced = self._said_in_memory = False

    def clock(self) -> float:
        with self._lock:
            return (self._began if self._under_way else time.perf_counter()) - self._total

    def in_memory(self, reason: str) -> None:
        if not self._said_in_memory:
            self._said_in_memory = True
            advice = "NUMBA_CACHE_DIR=FOLDER names another place"
            _LOGGER.warning(
                "ltr: compiled kernels cannot be kept (%s), so that every process compiles its own; %s", reason, advice
            )

    def begin(self) -> None:
        with self._lock:
            if not self._under_way:
                self._began = time.perf_counter()
            self._under_way += 1
        if not self._announced:
            self._announced = True
            how = "in memory" if self._said_in_memory else "once"
            _LOGGER.warning("ltr: compiling, %s, about two minutes", how)

    def end(self) -> None:
        with self._lock:
            self._under_way -= 1
            if not self._under_way:
                self._total += time.perf_counter() - self._began


class _Patience:
    """A context in which the main thread's SIGINT and SIGTERM wait; in nested ones they wait for the inner one."""

    def __init__(self) -> None:
        self._depth = 0
        self._previous: dict[int, Any] = {}
        self._waiting: list[int] = []

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._depth += 1
            if self._depth == 1:
                self._hold()

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            self._depth -= 1
            if self._waiting or not self._depth:
                self._release()

    def _hold(self) -> None:
        # what Python does not handle, or ignores, needs no patience
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self._previous = {number: handler for number, handler in handlers.items() if callable(handler)}
        for number in self._previous:
            signal.signal(number, lambda number, frame: self._waiting.append(number))

    def _release(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        waiting, self._waiting = self._waiting, []
        for number in waiting:
            signal.raise_signal(number)  # may raise: what is outside is then left, too
        if self._depth:
            self._hold()


_WATCH = _Watch()
_PATIENCE = _Patience()
