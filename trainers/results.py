"""The table of a run: one row a method, as rich table, CSV, markdown and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ltr.exact.solution import Status
from trainers.config import EXACT
from trainers.files import Json, read_json, reading, write_atomic, write_json
from trainers.markdown_table import markdown_table
from trainers.runs import RunFolder

__all__ = [
    "NOTHING_PROVEN",
    "Results",
    "Row",
    "is_trivial",
    "markdown_tables",
    "read_results",
    "rich_tables",
    "write_results",
]

NOTHING_PROVEN = "nothing proven"
"""What stands in the place of a gap, or beside it, where the bound is that of a perfect order."""


Columns = list[tuple[str, list[str]]]
"""Headings and cells."""


@dataclass(frozen=True)
class Row:
    """One method of a run.

    Attributes:
        method: its name: a loss, a baseline or ``exact``.
        status: how it ended.
        seconds: wall time over all starts, without that of compiling.
        train: statistics of the training half by name; None where one is undefined.
        test: likewise for the test half.
        top: statistic of the exact stage on the reranked list of the training half, as the exact problem counts it
            for linear methods (the margin decides) and by the order of scores for others.
        objective: `top` minus the price of the non-zero weights; None for methods that are not linear.
        loss: the method's own convex loss on the training half, without penalty.
        excess: its objective above the certified convex optimum.
        steps: optimizer steps or boosting rounds.
        bound: no weights have a larger objective.
        gap: between objective and bound, relative.
        trivial_bound: the statistic of a perfect order of the list, the bound before anything is proven.
        weights: on the raw features, None for methods that are not linear.
        message: what else the user should know.
    """

    method: str
    status: str
    seconds: float
    train: dict[str, float | None]
    test: dict[str, float | None]
    top: float | None = None
    objective: float | None = None
    loss: float | None = None
    excess: float | None = None
    steps: int | None = None
    bound: float | None = None
    gap: float | None = None
    trivial_bound: float | None = None
    weights: list[float] | None = field(default=None, repr=False)
    message: str = ""

    @property
    def nothing_proven(self) -> bool:
        """Whether the bound is that of a perfect order, and the answer is below it."""
        return self.status != Status.OPTIMAL.value and is_trivial(self.bound, self.trivial_bound)

    @classmethod
    def from_json(cls, value: Json) -> Row:
        """The row that `dataclasses.asdict` took apart."""
        return cls(**{f.name: value[f.name] for f in fields(cls) if f.name in value})


@dataclass(frozen=True)
class Results:
    """All rows of a run that there are so far.

    Attributes:
        name: of the run.
        statistics: names of the reported statistics, that of the exact stage first.
        top: what the reranked list is, such as "top 50 of logistic_regression"; None without an exact stage.
        priced: whether non-zero weights have a price, so that objective and statistic differ.
        complete: whether every method is finished.
        rows: in the order of the run.
        on_list: name of the statistic on the reranked list; the first of the reported ones by default.
        note: how the values are to be read, where there is something to say.
        base: the method whose list the exact stage reranks; empty without an exact stage.
    """

    name: str
    statistics: tuple[str, ...]
    top: str | None
    priced: bool
    complete: bool
    rows: tuple[Row, ...]
    on_list: str = ""
    note: str = ""
    base: str = ""

    def columns(self, statistics: Sequence[str] | None = None) -> Columns:
        """Headings and cells for reading; columns that would be empty are left out.

        Args:
            statistics: names of those to show; all by default.
        """
        rows = self.rows
        columns = [
            ("method", [row.method for row in rows]),
            ("convex loss", [number(row.loss, "{:.5g}") for row in rows]),
            ("above optimum", [number(row.excess, "{:.1e}") for row in rows]),
        ]
        for name in self.statistics if statistics is None else statistics:
            columns.append((f"train {name}", [number(row.train.get(name)) for row in rows]))
            columns.append((f"test {name}", [number(row.test.get(name)) for row in rows]))
        columns.append((f"{self.on_list or self.statistics[0]} on list", [number(row.top) for row in rows]))
        if self.priced:
            columns.append(("objective", [number(row.objective) for row in rows]))
        columns += [
            ("bound", [number(row.bound) for row in rows]),
            ("gap", [NOTHING_PROVEN if row.nothing_proven else number(row.gap, "{:.2%}") for row in rows]),
            ("status", [row.status for row in rows]),
            ("seconds", [number(row.seconds, "{:.1f}") for row in rows]),
        ]
        return [(heading, cells) for heading, cells in columns if any(cells)]

    @property
    def caption(self) -> str:
        """What stands under the table."""
        notes = []
        if self.top is not None:
            notes.append(f"list: {self.top} on the training half")
        notes += [self.note] if self.note else []
        notes += [f"{row.method}: {row.message}" for row in self.rows if row.message]
        if not self.complete:
            notes.append("unfinished: run the same command again to go on")
        return "\n".join(notes)

    @property
    def conclusions(self) -> list[str]:
        """What became of the test statistic, and of the bound where nothing was proven: a line each."""
        rows = {row.method: row for row in self.rows}
        if EXACT not in rows:
            return []
        lines, first = [], self.statistics[0]
        before, after = (rows[name].test.get(first) if name in rows else None for name in (self.base, EXACT))
        if before is not None and after is not None:
            lines.append(f"test {first}: {_change(before, after)} by reranking {self.base} (one split)")
        if rows[EXACT].nothing_proven:
            lines.append("bound: that of a perfect order, nothing is proven")
        return lines


def is_trivial(bound: float | None, trivial_bound: float | None) -> bool:
    """Whether a bound is that of a perfect order.

    Examples:
        >>> is_trivial(13.1, 13.1), is_trivial(12.9, 13.1), is_trivial(None, 13.1)
        (True, False, False)
    """
    return bound is not None and trivial_bound is not None and math.isclose(bound, trivial_bound, rel_tol=1e-9)


def _change(before: float, after: float) -> str:
    """Two values of a statistic and which way it went, with digits enough to tell them apart."""
    if math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-12):
        return f"{number(before)} -> {number(before)}, left unchanged"
    form = "{:.10g}" if number(before) == number(after) else None
    return f"{number(before, form)} -> {number(after, form)}, {'raised' if after > before else 'lowered'}"


def number(value: float | None, form: str | None = None) -> str:
    """A cell: empty for None and NaN, four decimals below 1000 and one above unless a form is given."""
    if value is None or math.isnan(value):
        return ""
    return (form or ("{:.4f}" if abs(value) < 1000 else "{:.1f}")).format(value)


def tables(results: Results) -> dict[str, Columns]:
    """The columns as two tables that fit a page: the methods by the first statistic, and by the others if any."""
    first, *others = results.statistics
    found = {"methods": results.columns([first])}
    if others:
        found["other statistics"] = [pair for pair in results.columns(others) if pair[0].startswith(_OTHERS)]
    return found


def rich_tables(results: Results, width: int) -> list[RenderableType]:
    """The tables and what is to be said of them, for a terminal.

    Args:
        results: of the run.
        width: of the terminal; columns that do not fit go into further tables, below.
    """
    methods, *others = tables(results).items()
    return [
        *_stacked(methods[1], f"run {results.name}", width),
        Text(results.caption, style="italic dim"),
        *(table for title, columns in others for table in _stacked(columns, title, width)),
        *map(Text, results.conclusions),
    ]


_OTHERS = ("method", "train ", "test ")


def _stacked(columns: Columns, title: str, width: int) -> Iterator[Table]:
    """A table, or several of fewer columns where the width asks for it; each has the methods."""
    methods, *rest = columns
    while rest:
        taken = 1
        while taken < len(rest) and _width([methods, *rest[: taken + 1]]) <= width:
            taken += 1
        yield _rich_table([methods, *rest[:taken]], title)
        rest, title = rest[taken:], ""


def _width(columns: Columns) -> int:
    """The width of a table with its borders."""
    return 1 + sum(3 + max(map(cell_len, (heading, *cells))) for heading, cells in columns)


def _rich_table(columns: Columns, title: str) -> Table:
    table = Table(title=title or None)
    for at, (heading, cells) in enumerate(columns):
        # what does not fit is folded, the names and headings before the numbers, and nothing is cut
        table.add_column(
            heading,
            justify="left" if heading in ("method", "status") else "right",
            overflow="fold",
            min_width=None if at == 0 else max(map(cell_len, cells)),
        )
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*map(Text, row), style="bold" if row[0] == EXACT else None)
    return table


def markdown_tables(results: Results) -> dict[str, str]:
    """The tables in markdown by title, the caption and the conclusions below the first."""
    texts = {
        title: markdown_table([heading for heading, _ in columns], zip(*(cells for _, cells in columns), strict=True))
        for title, columns in tables(results).items()
    }
    lines = [*results.caption.splitlines(), *results.conclusions]
    texts["methods"] += "\n\n" + "".join(f"{line}\n\n" for line in lines)
    return texts


def write_results(folder: RunFolder, results: Results) -> None:
    """Write results.json, results.csv (all digits) and results.md into the run folder."""
    write_json(folder.path / "results.json", {**asdict(results), "conclusions": results.conclusions})
    text = io.StringIO()
    flat = [_flat(row) for row in results.rows]
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in flat for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    write_atomic(folder.path / "results.csv", text.getvalue().encode())
    body = "\n".join(
        f"## {title.capitalize()}\n\n{text.rstrip()}\n" for title, text in markdown_tables(results).items()
    )
    write_atomic(folder.path / "results.md", f"# Run {results.name}\n\n{body}".encode())


def read_results(folder: RunFolder) -> Results | None:
    """The results of a run folder, None where there are none yet."""
    path = folder.path / "results.json"
    value = read_json(path)
    if value is None:
        return None
    with reading(path):
        known = {f.name: value[f.name] for f in fields(Results) if f.name in value}
        rows = tuple(Row.from_json(row) for row in value["rows"])
        return Results(**{**known, "statistics": tuple(value["statistics"]), "rows": rows})


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in asdict(row).items():
        if key in ("train", "test"):
            flat |= {f"{key} {name}": v for name, v in value.items()}
        elif key != "weights":
            flat[key] = value
    return flat
