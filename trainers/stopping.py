"""What Ctrl-C and SIGTERM do: they stop the command at once (`stop_once`), or where it is ready (`StopFlag`)."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopFlag:
    """Context in which the first SIGINT or SIGTERM only raises a flag; the second raises KeyboardInterrupt.

    Unless `forced`, all signals wait for `check`. In a thread other than the main one nothing changes.
    """

    def __init__(self, *, forced: bool = True) -> None:
        self.raised = False
        self._forced = forced
        self._before: dict[int, Any] = {}  # handlers to restore

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, previous in self._before.items():
            # a handler that was not installed from Python reads as None
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default if previous is None else previous)

    def check(self) -> None:
        """Raise KeyboardInterrupt when the flag is up."""
        if self.raised:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.raised and self._forced:
            raise KeyboardInterrupt
        self.raised = True


def stop_once() -> None:
    """Let the first SIGINT or SIGTERM of this process raise KeyboardInterrupt, and the others do nothing."""

    def stop(number: int, frame: FrameType | None) -> None:
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as in the background
            signal.signal(number, stop)


def complain(text: str) -> None:
    """Show a line on stderr."""
    sys.stderr.write(f"ltr: {text}\n")
