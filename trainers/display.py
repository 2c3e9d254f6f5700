"""What a run and a sweep show while they work."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from ltr.exact.solution import TracePoint
from trainers.files import Json
from trainers.plan import Cell
from trainers.records import nothing_proven
from trainers.tables import NOTHING_PROVEN

_STEPS, _CELLS = 2.0, 10.0  # seconds between lines on steps of a method and on finished cells of a sweep


class Display:
    """Shows on a console, if any, what is running: a bar on a terminal, lines elsewhere. Lines on what has ended stay.

    An exception raised in one of its methods reaches the run: ``KeyboardInterrupt`` stops it as Ctrl-C does.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = Console(quiet=True) if console is None else console
        self._bar = Progress(
            TextColumn("[bold]{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=12, table_column=Column(min_width=12)),
            _DoneColumn(table_column=Column(no_wrap=True, min_width=9)),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
            TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
            TextColumn("{task.fields[text]}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
            console=self._console,
            transient=True,
            expand=True,
            disable=console is None or not console.is_terminal,
        )
        self._last = -math.inf
        self._waiting: threading.Timer | None = None
        self._counting = False
        self._name = ""  # what is running
        self._limit: float | None = None  # seconds of its search
        self._done = self._total = 0  # cells of a sweep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wait_no_more()
        self._bar.stop()

    def note(self, text: str) -> None:
        """Show a note."""
        self._say(text)

    def wait(self, what: str) -> None:
        """Show what the user waits for, unless something else is shown within two seconds."""
        self._wait_no_more()
        if not self._console.quiet:
            self._waiting = threading.Timer(_STEPS, self._say, [what])
            self._waiting.daemon = True
            self._waiting.start()

    def begin(self, method: str, total: int | None, limit: float | None = None) -> None:
        """Show that a method starts, with its largest number of steps and the seconds of its search, if any."""
        self._limit = limit
        self._start(method, total, limit=limit)

    def step(self, index: int, values: Mapping[str, float]) -> None:
        """Show a step of the method, which is done and logged."""
        first = [next((tag for tag in values if tag.startswith(kind)), None) for kind in ("loss/", "train/", "test/")]
        self._show(index, ", ".join([f"step {index}", *(f"{tag} {values[tag]:.5g}" for tag in first if tag)]))

    def counted(self, method: str, done: int, total: int, what: str) -> None:
        """Show how many fits or inner splits of a method are done; a search may follow the last one."""
        if not self._counting:
            self._start(method, total)
        self._counting = done < total
        self._show(done, f"{done} of {total} {what}")
        if not self._counting and self._limit is not None:
            self._start(method, None, limit=self._limit)

    def progress(self, point: TracePoint, trivial: bool) -> None:
        """Show a new incumbent or bound; `trivial` where the bound is still that of a perfect order."""
        gap = NOTHING_PROVEN if trivial else f"gap {point.gap:.2%}" if math.isfinite(point.gap) else "gap -"
        best = f"best {point.incumbent:.5g}, bound {point.bound:.5g}"
        self._show(point.nodes, f"{point.seconds:.1f} s, {best}, {gap}, {point.nodes} nodes")

    def end(self, method: str, text: str) -> None:
        """Show how a method ended."""
        self._clear()
        self._say(Text.assemble((f"{method}: ", "bold"), text))

    def begin_sweep(self, total: int, missing: int, at_once: int, threads: int) -> None:
        """Show that a sweep starts: `missing` of `total` cells are computed, `at_once` at a time."""
        self._done, self._total = total - missing, total
        earlier = f", {self._done} of them finished earlier" if self._done else ""
        each = "1 thread" if threads == 1 else f"{threads} threads"
        cells = "1 result" if total == 1 else f"{total} results"
        self._say(f"{cells}{earlier}; {missing} to compute, {at_once} at a time, {each} each")
        self._start("sweep", total, self._done)

    def finished(self, cell: Cell, answer: Json | str) -> None:
        """Show that a cell of a sweep has its record, or failed for a reason."""
        ended = "failed"
        if not isinstance(answer, str):
            self._done += 1
            gap = (answer.get("list") or {}).get("gap")
            proof = f", {NOTHING_PROVEN}" if nothing_proven(answer) else "" if gap is None else f", gap {gap:.2%}"
            ended = f"{answer['status']}, {answer['seconds']:.1f} s{proof}"
        text = f"{self._done}/{self._total}: {cell.data}, split {cell.split}, {cell.method}: {ended}"
        self._show(self._done, text, 0.0 if self._done == self._total else _CELLS)

    def _start(self, name: str, total: int | None, done: int = 0, limit: float | None = None) -> None:
        self._clear()
        self._name = name
        self._bar.add_task(name, total=total, completed=done, text="", limit=limit)
        self._bar.start()
        self._last = time.monotonic()
        if not self._console.is_terminal:  # the first step of a large table may take minutes
            self.wait(f"{name}: started")

    def _show(self, done: int, text: str, pause: float = _STEPS) -> None:
        """Move the bar, or print a line where the last one is `pause` seconds old."""
        for task in self._bar.task_ids:
            self._bar.update(task, completed=done, text=text)
        if not self._console.is_terminal and time.monotonic() - self._last >= pause:
            self._last = time.monotonic()
            self._say(f"{self._name}: {text}")

    def _say(self, text: str | Text) -> None:
        self._wait_no_more()
        self._console.print(Text.assemble(text), soft_wrap=not self._console.is_terminal)  # there between words
        self._console.file.flush()

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _clear(self) -> None:
        self._wait_no_more()
        for task in self._bar.task_ids:
            self._bar.remove_task(task)


class _DoneColumn(MofNCompleteColumn):
    """A column with the steps that are done, or the time limit of a search."""

    def render(self, task: Task) -> Text:
        if (limit := task.fields["limit"]) is not None:
            return Text(f"max {limit:g} s")
        return Text("") if task.total is None else super().render(task)
