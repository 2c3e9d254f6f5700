"""Ctrl-C as a flag: a run stops between two steps, never in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

__all__ = ["StopFlag"]


class StopFlag:
    """A context in which the first SIGINT only raises a flag; the second raises KeyboardInterrupt as usual.

    In a thread other than the main one signals cannot be handled, and nothing changes.

    Examples:
        >>> with StopFlag() as stop:
        ...     signal.raise_signal(signal.SIGINT)
        >>> stop.raised
        True
    """

    def __init__(self) -> None:
        self.raised = False
        self._previous: Any = None
        self._handled = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
            self._handled = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._handled:
            signal.signal(signal.SIGINT, signal.default_int_handler if self._previous is None else self._previous)
            self._handled = False

    def check(self) -> None:
        """Raise KeyboardInterrupt when the flag is up."""
        if self.raised:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.raised:
            raise KeyboardInterrupt
        self.raised = True
