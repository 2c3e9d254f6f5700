"""Ctrl-C and SIGTERM as a flag: a run stops between two steps, never in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

__all__ = ["StopFlag"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopFlag:
    """A context in which the first SIGINT or SIGTERM only raises a flag; the second raises KeyboardInterrupt.

    In a thread other than the main one signals cannot be handled, and nothing changes.

    Args:
        forced: whether the second raises it; else all signals wait until the flag is looked at.

    Examples:
        >>> with StopFlag() as stop:
        ...     signal.raise_signal(signal.SIGINT)
        >>> stop.raised
        True
    """

    def __init__(self, *, forced: bool = True) -> None:
        self.raised = False
        self._forced = forced
        self._previous: list[Any] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = [signal.signal(number, self._on_signal) for number in _SIGNALS]
        return self

    def __exit__(self, *_: object) -> None:
        for number, previous in zip(_SIGNALS, self._previous, strict=False):
            # a handler that was not installed from Python reads as None
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default if previous is None else previous)
        self._previous = []

    def check(self) -> None:
        """Raise KeyboardInterrupt when the flag is up."""
        if self.raised:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.raised and self._forced:
            raise KeyboardInterrupt
        self.raised = True
