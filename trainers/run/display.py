"""The display of a run: live bars on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from ltr.exact.solution import TracePoint

_SECONDS_BETWEEN_LINES = 2.0


class Display:
    """Shows nothing; its methods receive what a run reports.

    An exception raised in one of them reaches the run: ``KeyboardInterrupt`` stops it as Ctrl-C does.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def note(self, text: str) -> None:
        """Receive a note."""

    def begin(self, method: str, total: int | None) -> None:
        """Receive the start of a method; `total` is its largest number of steps, None without steps."""

    def step(self, method: str, index: int, values: Mapping[str, float]) -> None:
        """Receive a step of a method, which is done and logged."""

    def progress(self, point: TracePoint, trivial: bool) -> None:
        """Receive a new incumbent or bound; `trivial` where the bound is still that of a perfect order."""

    def end(self, method: str, text: str) -> None:
        """Receive the end of a method."""


class _PlainDisplay(Display):
    """Prints lines of text, for logs and pipes: at most one every two seconds for steps."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = -math.inf

    def note(self, text: str) -> None:
        self._line(text)

    def begin(self, method: str, total: int | None) -> None:
        self._last = time.monotonic()

    def step(self, method: str, index: int, values: Mapping[str, float]) -> None:
        self._now_and_then(f"{method}: step {index}, {', '.join(_values(values))}")

    def progress(self, point: TracePoint, trivial: bool) -> None:
        self._now_and_then(f"exact: {point.seconds:.1f} s, {', '.join(_point(point, trivial))}, {point.nodes} nodes")

    def end(self, method: str, text: str) -> None:
        self._line(f"{method}: {text}")

    def _now_and_then(self, text: str) -> None:
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            self._line(text)

    def _line(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


class PartsColumn(ProgressColumn):
    """A column with the texts of a task's field ``parts``: as many as fit, none of them cut."""

    def __init__(self) -> None:
        super().__init__(Column(ratio=1, no_wrap=True))

    def render(self, task: Task) -> RenderableType:
        """Return the texts of a task."""
        return _Parts(task.fields["parts"])


class _Parts:
    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self._parts
        while shown and cell_len(", ".join(shown)) > options.max_width:
            shown = shown[:-1]
        yield Text(", ".join(shown), no_wrap=True)


class _LiveDisplay(Display):
    """Shows a bar for the running method, and above it a line for each finished one."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("[bold]{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=12, table_column=Column(min_width=12)),
            MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=9)),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
            PartsColumn(),
            console=console,
            transient=True,
            expand=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def note(self, text: str) -> None:
        self._progress.console.print(Text(text))

    def begin(self, method: str, total: int | None) -> None:
        self._forget()
        self._task = self._progress.add_task(method, total=total, parts=())

    def step(self, method: str, index: int, values: Mapping[str, float]) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=index, parts=_values(values))

    def progress(self, point: TracePoint, trivial: bool) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=point.nodes, parts=_point(point, trivial))

    def end(self, method: str, text: str) -> None:
        self._forget()
        self._progress.console.print(Text.assemble((f"{method}: ", "bold"), text))

    def _forget(self) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None


def display_for(console: Console, *, quiet: bool) -> Display:
    """Return the display that suits the console."""
    if quiet:
        return Display()
    return _LiveDisplay(console) if console.is_terminal else _PlainDisplay(console)


def _values(values: Mapping[str, float]) -> list[str]:
    """Return texts of the loss and of the first statistic of both sets."""
    first = [next((tag for tag in values if tag.startswith(kind)), None) for kind in ("loss/", "train/", "test/")]
    return [f"{tag} {values[tag]:.5g}" for tag in first if tag is not None]


def _point(point: TracePoint, trivial: bool) -> list[str]:
    gap = "nothing proven" if trivial else f"gap {point.gap:.2%}" if math.isfinite(point.gap) else "gap -"
    return [f"best {point.incumbent:.5g}", f"bound {point.bound:.5g}", gap]
