"""What Ctrl-C and SIGTERM do to a run, a sweep and the command.

A run stops between two steps, never in the middle of one (`StopFlag`). A sweep stops at once, but nothing disturbs its
end (`stopped_once`). The command ends with its exit code, whatever comes once that is known (`exit_code`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Self, TextIO

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopFlag:
    """Context in which the first SIGINT or SIGTERM only raises a flag; the second raises KeyboardInterrupt.

    Unless `forced`, all signals wait for `check`. In a thread other than the main one nothing changes.
    """

    def __init__(self, *, forced: bool = True) -> None:
        self.raised = False
        self._forced = forced
        self._handling = _handling(self._on_signal)

    def __enter__(self) -> Self:
        self._handling.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._handling.__exit__(None, None, None)

    def check(self) -> None:
        """Raise KeyboardInterrupt when the flag is up."""
        if self.raised:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.raised and self._forced:
            raise KeyboardInterrupt
        self.raised = True


@contextlib.contextmanager
def stopped_once() -> Iterator[None]:
    """Return a context in which the first SIGINT or SIGTERM raises KeyboardInterrupt and the others do nothing."""

    def stop(number: int, frame: FrameType | None) -> None:
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    with _handling(stop):
        yield


def exit_code(work: Callable[[Callable[[], None]], int], interrupted: Callable[[], int]) -> int:
    """Return the exit code of a process, and ignore Ctrl-C from then on.

    `work` returns the code. It receives a function to call once its modules are imported: until then Ctrl-C ends the
    process at once, because a KeyboardInterrupt within an import may become any other error. `interrupted` returns the
    code where a KeyboardInterrupt, or an error that libraries made of one, ended `work`.
    """
    over, interrupts = False, 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupts
        if not over:
            interrupts += 1
            raise KeyboardInterrupt

    # else it is ignored, as in the background
    handled = signal.getsignal(signal.SIGINT) in (signal.default_int_handler, leave_at_once)

    def loaded() -> None:
        if handled:
            signal.signal(signal.SIGINT, interrupt)

    if handled:
        signal.signal(signal.SIGINT, leave_at_once)
    try:
        code = work(loaded)
        over = True
    except (KeyboardInterrupt, Exception) as error:
        over = True
        if not interrupts and not isinstance(error, KeyboardInterrupt):
            raise
        code = interrupted()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python's own end puts back what kills
    return code


def leave_at_once(number: int, frame: FrameType | None) -> None:
    """End the process on SIGINT, while nothing is open yet."""
    os.write(2, b"ltr: interrupted\n")
    os._exit(130)


def complain(text: str) -> None:
    """Show a line on stderr, folded between words on a terminal."""
    sys.stderr.write(f"{folded(f'ltr: {text}', sys.stderr)}\n")


def folded(text: str, stream: TextIO) -> str:
    """Return a text whose lines are folded between words to the width of a terminal, and left alone elsewhere."""
    if not stream.isatty():
        return text
    import shutil
    import textwrap

    fold = textwrap.TextWrapper(
        max(20, shutil.get_terminal_size().columns),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(part for line in text.split("\n") for part in fold.wrap(line) or [""])


@contextlib.contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Return a context with a handler of the signals; in threads other than the main one nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, previous in before.items():
            # a handler that was not installed from Python reads as None
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default if previous is None else previous)
