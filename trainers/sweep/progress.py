"""What a sweep shows while it works: results so far, and the time that the others may take."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from trainers.config import EXACT
from trainers.plan import Cell
from trainers.run.display import PartsColumn
from trainers.tables import NOTHING_PROVEN

if TYPE_CHECKING:
    from trainers.sweep.compute import Answer

_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Shows nothing; its methods receive what a sweep reports."""

    def note(self, text: str) -> None:
        """Receive a note."""

    def begin(self, total: int, missing: Sequence[Cell], who: str, at_once: int, threads: int) -> None:
        """Receive the start: `missing` of `total` cells are computed, `at_once` at a time."""

    def finished(self, cell: Cell, answer: Answer) -> None:
        """Receive the answer on a cell."""

    def end(self) -> None:
        """Receive the end of the sweep, also where it was stopped."""


class Remaining:
    """An estimate of the time that the remaining cells take.

    For an exact cell it is its time limit times the share that finished cells of its kind needed of theirs: the same
    data and length of list, else the same data, else all. For others it is the mean of finished cells: the same data
    and method, else the same data, else all.
    """

    def __init__(self, cells: Sequence[Cell], at_once: int) -> None:
        self._left = {cell.id: cell for cell in cells}
        self._at_once = at_once
        self._seen: dict[tuple[object, ...], tuple[int, float]] = {}

    def finished(self, cell: Cell, seconds: float | None) -> None:
        """Take the seconds that a cell needed; None where it has no result."""
        self._left.pop(cell.id, None)
        if seconds is not None:
            for kind in _kinds(cell):
                count, shares = self._seen.get(kind, (0, 0.0))
                self._seen[kind] = count + 1, shares + seconds / cell.cost

    @property
    def seconds(self) -> float:
        """Estimated seconds until all is done."""
        each = [cell.cost * self._share(cell) for cell in self._left.values()]
        return max(sum(each) / self._at_once, max(each, default=0.0))

    def _share(self, cell: Cell) -> float:
        own, *others = _kinds(cell)
        if own in self._seen:
            count, shares = self._seen[own]
            return shares / count
        for kind in others:  # a few quick cells say little about others: one more counts as if it took its limit
            if kind in self._seen:
                count, shares = self._seen[kind]
                return (shares + 1.0) / (count + 1)
        return 1.0


def _kinds(cell: Cell) -> list[tuple[object, ...]]:
    """Return the kinds of cells that need about as long, the nearest first."""
    exact = cell.method == EXACT
    detail = (cell.config.exact.time_limit, cell.config.exact.top_k) if exact else (cell.method,)
    return [(exact, cell.data, *detail), (exact, cell.data), (exact,)]


class ShownProgress(Progress):
    """A bar on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._done = self._total = 0
        self._last = time.monotonic()

    def note(self, text: str) -> None:
        """Print the text."""
        self._console.print(Text(text), soft_wrap=True)

    def begin(self, total: int, missing: Sequence[Cell], who: str, at_once: int, threads: int) -> None:
        """Show what there is to do."""
        self._remaining = Remaining(missing, at_once)
        self._done, self._total = total - len(missing), total
        earlier = f", {self._done} of them finished earlier" if self._done else ""
        each = "1 thread" if threads == 1 else f"{threads} threads"
        cells = "1 result" if total == 1 else f"{total} results"
        self.note(f"{cells}{earlier}; {len(missing)} to compute {who}, {each} each")
        self._last = time.monotonic()
        if self._console.is_terminal:
            self._bar = Bar(
                PartsColumn(),
                BarColumn(bar_width=12),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]} left", markup=False),
                console=self._console,
                transient=True,
                expand=True,
            )
            self._task = self._bar.add_task("", total=total, completed=self._done, parts=(), left=self._left)
            self._bar.start()

    def finished(self, cell: Cell, answer: Answer) -> None:
        """Move the bar, or print a line now and then."""
        self._remaining.finished(cell, None if answer.failure else answer.seconds)
        if answer.failure:
            endings = ["failed"]
        else:
            self._done += 1
            endings = [answer.status, f"{answer.seconds:.1f} s"]
            if answer.nothing_proven:
                endings.append(NOTHING_PROVEN)
            elif answer.gap is not None:
                endings.append(f"gap {answer.gap:.2%}")
        parts = [cell.data, f"split {cell.split}", f"{cell.method}: {endings[0]}", *endings[1:]]
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, parts=parts, left=self._left)
        elif time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES or self._done == self._total:
            self._last = time.monotonic()
            self.note(f"{self._done}/{self._total}, {self._left} left; {', '.join(parts)}")

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    @property
    def _left(self) -> str:
        return str(datetime.timedelta(seconds=round(self._remaining.seconds)))
