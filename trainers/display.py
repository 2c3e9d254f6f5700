"""What a run and a sweep show while they work."""

from __future__ import annotations

import datetime
import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from ltr.exact.solution import TracePoint
from trainers.config import EXACT
from trainers.plan import Cell
from trainers.records import Answer
from trainers.tables import NOTHING_PROVEN

_STEPS, _CELLS = 2.0, 10.0  # seconds between lines on steps of a method and on finished cells of a sweep


class Display:
    """Shows what is running: a bar on a terminal, lines elsewhere. Lines on what has ended stay.

    An exception raised in one of its methods reaches the run: ``KeyboardInterrupt`` stops it as Ctrl-C does.

    Args:
        console: where it shows; nowhere when None.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = Console(quiet=True) if console is None else console
        self._bar = Progress(
            TextColumn("[bold]{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=12, table_column=Column(min_width=12)),
            _DoneColumn(table_column=Column(no_wrap=True, min_width=9)),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
            _PartsColumn(Column(ratio=1, no_wrap=True)),
            console=self._console,
            transient=True,
            expand=True,
            disable=console is None or not console.is_terminal,
        )
        self._last = self._began = -math.inf
        self._before: int | None = None  # steps that were done before this display saw one
        self._waiting: threading.Timer | None = None
        self._choosing = False
        self._limit: float | None = None
        self._done = self._total = 0

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
        if self._console.quiet:
            return
        self._waiting = threading.Timer(_STEPS, self._say, [what])
        self._waiting.daemon = True
        self._waiting.start()

    def begin(self, method: str, total: int | None, limit: float | None = None) -> None:
        """Show that a method starts.

        Args:
            method: its name.
            total: its largest number of steps, None without steps.
            limit: the time limit of its search in seconds, None without one.
        """
        self._limit = limit
        self._start(method, total, limit=limit)

    def doing(self, what: str) -> None:
        """Show what a method does after its steps."""
        for task in self._bar.task_ids:
            self._bar.update(task, parts=[what])

    def step(self, method: str, index: int, values: Mapping[str, float]) -> None:
        """Show a step of a method, which is done and logged."""
        first = [next((tag for tag in values if tag.startswith(kind)), None) for kind in ("loss/", "train/", "test/")]
        parts = [f"{tag} {values[tag]:.5g}" for tag in first if tag is not None]
        for task in self._bar.tasks:
            if task.total is not None and index < task.total and (elapsed := time.monotonic() - self._began) >= _STEPS:
                # a resumed training has done its first steps earlier
                self._before = index - 1 if self._before is None else self._before
                seconds = elapsed / (index - self._before) * (task.total - index)
                parts.append(f"at most {datetime.timedelta(seconds=round(seconds))} left")
        self._show(index, parts, f"{method}: step {index}, {', '.join(parts)}", _STEPS)

    def fitting(self, method: str, done: int, total: int, what: str) -> None:
        """Show how many fits of a method are done, and what was fitted last."""
        if done == 1:
            self._start(method, total)
        text = f"{done} of {total} fits ({what})"
        self._show(done, [text], f"{method}: {text}", _STEPS)

    def choosing(self, done: int, total: int) -> None:
        """Show how many inner splits of the choice are done."""
        if not self._choosing:
            self._start(EXACT, total)
        self._choosing = done < total
        text = f"choosing: {done} of {total} inner splits"
        self._show(done, [text], f"{EXACT}: {text}", _STEPS)
        if not self._choosing:
            self._start(EXACT, None, limit=self._limit)

    def progress(self, point: TracePoint, trivial: bool) -> None:
        """Show a new incumbent or bound; `trivial` where the bound is still that of a perfect order."""
        gap = NOTHING_PROVEN if trivial else f"gap {point.gap:.2%}" if math.isfinite(point.gap) else "gap -"
        parts = [f"best {point.incumbent:.5g}", f"bound {point.bound:.5g}", gap]
        line = f"exact: {point.seconds:.1f} s, {', '.join(parts)}, {point.nodes} nodes"
        self._show(point.nodes, parts, line, _STEPS)

    def end(self, method: str, text: str) -> None:
        """Show how a method ended."""
        self._clear()
        self._say(Text.assemble((f"{method}: ", "bold"), text))

    def begin_sweep(self, total: int, missing: Sequence[Cell], who: str, at_once: int, threads: int) -> None:
        """Show that a sweep starts: `missing` of `total` cells are computed, `at_once` at a time."""
        self._remaining = Remaining(missing, at_once)
        self._done, self._total = total - len(missing), total
        earlier = f", {self._done} of them finished earlier" if self._done else ""
        each = "1 thread" if threads == 1 else f"{threads} threads"
        cells = "1 result" if total == 1 else f"{total} results"
        self._say(f"{cells}{earlier}; {len(missing)} to compute {who}, {each} each")
        self._start(self._remaining.text, total, self._done)

    def finished(self, cell: Cell, answer: Answer) -> None:
        """Show the answer on a cell of a sweep."""
        self._remaining.finished(cell, None if answer.failure else answer.seconds)
        parts = [cell.data, f"split {cell.split}", f"{cell.method}: {answer.status or 'failed'}"]
        if not answer.failure:
            self._done += 1
            parts.append(f"{answer.seconds:.1f} s")
            if answer.nothing_proven:
                parts.append(NOTHING_PROVEN)
            elif answer.gap is not None:
                parts.append(f"gap {answer.gap:.2%}")
        left = self._remaining.text
        line = f"{self._done}/{self._total}, {left}; {', '.join(parts)}"
        self._show(self._done, parts, line, 0.0 if self._done == self._total else _CELLS, description=left)

    def _start(self, description: str, total: int | None, done: int = 0, limit: float | None = None) -> None:
        self._clear()
        self._bar.add_task(description, total=total, completed=done, parts=(), limit=limit)
        self._bar.start()
        self._last = self._began = time.monotonic()
        self._before = None
        if not self._console.is_terminal:  # the first step of a large table may take minutes
            self.wait(f"{description}: started")

    def _show(
        self, done: int, parts: Sequence[str], line: str, pause: float, *, description: str | None = None
    ) -> None:
        """Move the bar, or print a line where the last one is `pause` seconds old."""
        for task in self._bar.task_ids:
            self._bar.update(task, completed=done, parts=parts, description=description)
        if not self._console.is_terminal and time.monotonic() - self._last >= pause:
            self._last = time.monotonic()
            self._say(line)

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


class _PartsColumn(ProgressColumn):
    """A column with the texts of a task's field ``parts``: as many as fit, none of them cut."""

    def render(self, task: Task) -> RenderableType:
        return _Parts(task.fields["parts"])


class _Parts(tuple[str, ...]):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = list(self)
        while shown and cell_len(", ".join(shown)) > options.max_width:
            shown.pop()
        yield Text(", ".join(shown), no_wrap=True)


class Remaining:
    """An estimate of the time that the remaining cells of a sweep take.

    For each it is the time that it may take at most, times the share of theirs that finished cells needed. Exact cells
    and others are counted apart, and one more cell of each kind counts as if it had needed all of its time.
    """

    def __init__(self, cells: Sequence[Cell], at_once: int) -> None:
        self._left = {cell.id: cell for cell in cells}
        self._at_once = at_once
        self._shares = {True: [1.0], False: [1.0]}  # by whether cells are exact ones

    def finished(self, cell: Cell, seconds: float | None) -> None:
        """Take the seconds that a cell needed; None where it has no result."""
        self._left.pop(cell.id, None)
        if seconds is not None:
            self._shares[cell.method == EXACT].append(seconds / cell.cost)

    @property
    def seconds(self) -> float:
        """Estimated seconds until all is done."""
        means = {exact: sum(shares) / len(shares) for exact, shares in self._shares.items()}
        each = [cell.cost * means[cell.method == EXACT] for cell in self._left.values()]
        return max(sum(each) / self._at_once, max(each, default=0.0))

    @property
    def text(self) -> str:
        """The estimate as text, such as ``0:01:30 left``."""
        return f"{datetime.timedelta(seconds=round(self.seconds))} left"
