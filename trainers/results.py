"""The table of a run: one row a method, as rich table, CSV, markdown and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rich.table import Table

from trainers.files import Json, read_json, reading, write_atomic, write_json
from trainers.markdown_table import markdown_table
from trainers.runs import RunFolder

__all__ = ["Results", "Row", "markdown_tables", "read_results", "rich_tables", "write_results"]


Columns = list[tuple[str, list[str]]]
"""Headings and cells."""


@dataclass(frozen=True)
class Row:
    """One method of a run.

    Attributes:
        method: its name: a loss, a baseline or ``exact``.
        status: how it ended.
        seconds: wall time over all starts.
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
    weights: list[float] | None = field(default=None, repr=False)
    message: str = ""

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
    """

    name: str
    statistics: tuple[str, ...]
    top: str | None
    priced: bool
    complete: bool
    rows: tuple[Row, ...]
    on_list: str = ""
    note: str = ""

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
            ("gap", [number(row.gap, "{:.2%}") for row in rows]),
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


def rich_tables(results: Results) -> list[Table]:
    """The tables for a terminal."""
    methods, *others = tables(results).items()
    first = _rich_table(methods[1], f"run {results.name}", results.caption)
    return [first, *(_rich_table(columns, title, "") for title, columns in others)]


_OTHERS = ("method", "train ", "test ")


def _rich_table(columns: Columns, title: str, caption: str) -> Table:
    table = Table(title=title, caption=caption or None, caption_justify="left")
    for heading, _ in columns:
        text = heading in ("method", "status")
        table.add_column(heading, justify="left" if text else "right", no_wrap=heading == "method")
    for cells in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*cells, style="bold" if cells[0] == "exact" else None)
    return table


def markdown_tables(results: Results) -> dict[str, str]:
    """The tables in markdown by title, the caption below the first."""
    texts = {
        title: markdown_table([heading for heading, _ in columns], zip(*(cells for _, cells in columns), strict=True))
        for title, columns in tables(results).items()
    }
    texts["methods"] += "\n\n" + "".join(f"{line}\n\n" for line in results.caption.splitlines())
    return texts


def write_results(folder: RunFolder, results: Results) -> None:
    """Write results.json, results.csv (all digits) and results.md into the run folder."""
    write_json(folder.path / "results.json", asdict(results))
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
        rows = tuple(Row.from_json(row) for row in value.pop("rows"))
        return Results(**{**value, "statistics": tuple(value["statistics"]), "rows": rows})


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in asdict(row).items():
        if key in ("train", "test"):
            flat |= {f"{key} {name}": v for name, v in value.items()}
        elif key != "weights":
            flat[key] = value
    return flat
