"""Ctrl-C and SIGTERM while a solve runs: they end the solve, not the program."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interrupts"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 3  # presses after which Ctrl-C raises whatever runs


class Interrupts:
    """A context in which SIGINT and SIGTERM are noted, and raised as KeyboardInterrupt only while `armed`.

    The first signal within ``arm()`` .. ``disarm()`` raises, so that Python code between solver calls stops at once;
    later ones are only noted, so that the answer can be put together in peace. In a thread other than the main one
    signals cannot be handled and nothing changes.

    Examples:
        >>> with Interrupts() as interrupts:
        ...     try:
        ...         interrupts.arm()
        ...         signal.raise_signal(signal.SIGINT)
        ...     except KeyboardInterrupt:
        ...         caught = True
        ...     signal.raise_signal(signal.SIGINT)
        >>> caught, interrupts.count
        (True, 2)
    """

    def __init__(self) -> None:
        self.count = 0
        self._armed = False
        self._previous: list[Any] = []
        self.main_thread = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interrupts:
        if self.main_thread:
            self._previous = [signal.signal(number, self._note) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.main_thread:
            for number, previous in zip(_SIGNALS, self._previous, strict=True):
                # a handler that was not installed from Python reads as None and cannot be put back from here
                default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
                signal.signal(number, default if previous is None else previous)

    def arm(self) -> None:
        """From here on the first signal raises; one that came already raises now."""
        self._armed = True
        if self.count:
            self.disarm()
            raise KeyboardInterrupt

    def disarm(self) -> None:
        """From here on signals are only noted."""
        self._armed = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self._armed or self.count > _PATIENCE:
            self.disarm()
            raise KeyboardInterrupt
