"""Why rows stand where a run's ranker puts them: as tables for a terminal, JSON, CSV and a picture."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from ltr.data import format_of, read_texts
from ltr.data.encoding import DAYS
from ltr.data.forms import date_at
from ltr.rankers import Explanation
from trainers.csv_text import CsvText, csv_text
from trainers.files import Json, RunError, to_json
from trainers.run.folder import RunFolder
from trainers.run.predict import ranker_of
from trainers.run.rows import Rows, rows_of

_FIRST = 3  # rows from the top that are shown where none is named
_LINES = 20  # columns of a table


def explain_rows(
    run: RunFolder,
    data: Path,
    method: str | None = None,
    *,
    rows: Rows | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Explanation:
    """Explain the rows of a file, whose index is their number in the file, from 1.

    Args:
        run: folder of the run.
        data: the file, as for `trainers.run.predict.predict_csv`.
        method: a method of the run; its exact stage by default, or its only method.
        rows: the rows, if they have been read.
        note: as for `predict_csv`.

    Raises:
        RunError: the method has no fitted ranker, or one whose score is no sum over columns.
        DataError: the file lacks the run's features or queries, or has values that are not numbers.
    """
    ranker = ranker_of(run, method)
    rows = rows_of(run, data) if rows is None else rows
    for text in rows.notes:
        note(text)
    table = rows.table.set_axis(range(1, len(rows.table) + 1))
    try:
        return ranker.explain(table, rows.queries)
    except ValueError as error:
        raise RunError(f"--method: {error}") from None


def chosen_rows(explanation: Explanation, rows: Sequence[int]) -> list[int]:
    """Return the rows to show: those that were asked for, or the first ones of the list.

    Raises:
        RunError: a row that the file does not have.
    """
    if missing := [str(row) for row in rows if row not in explanation.list.index]:
        raise RunError(
            f"--row: must be from 1 to {len(explanation.list)}, the rows of the file, got {', '.join(missing)}"
        )
    top = explanation.list[explanation.list["position"] <= _FIRST]
    return list(rows) or [int(row) for row in top.sort_values("position", kind="stable").index[:_FIRST]]


def table_of(explanation: Explanation, row: int, dates: Collection[str] = ()) -> Table:
    """Return the explanation of a row as a table for a terminal; `dates` are the features that count days."""
    frame, place = explanation.row(row), explanation.list.loc[row]
    near = explanation.neighbours(row)
    if len(frame) > _LINES + 1:
        rest = frame.iloc[_LINES:-1].sum().rename(f"{len(frame) - _LINES - 1} more columns")
        rest["value"] = math.nan
        frame = _with_line(frame.iloc[[*range(_LINES), -1]], rest)
    query = f" of query {place['query']}" if "query" in place else ""
    stage = f", {place['stage']}" if "stage" in place else ""
    title = f"row {row}: position {place['position']}{query}{stage}"
    table = Table(title=title, title_justify="left")
    heads = {"value": "value", "adds": "adds"} | {side: f"against row\n{near[side]} {side}" for side in near}
    table.add_column("column", overflow="fold")
    cells = {name: [_cell(value, signed=name != "value") for value in frame[name]] for name in heads}
    for at, name in enumerate(frame.index):
        if name in dates and not math.isnan(frame["value"].iloc[at]):
            cells["value"][at] = str(date_at(frame["value"].iloc[at]))
    for name, head in heads.items():
        table.add_column(head, justify="right", overflow="fold", min_width=max(map(len, cells[name])))
    for at, name in enumerate(frame.index):
        line = (str(name).removesuffix(DAYS) if name in dates else str(name), *(cells[column][at] for column in heads))
        table.add_row(*map(Text, line), style="bold" if at == len(frame) - 1 else None)
    return table


def _with_line(frame: Any, line: Any) -> Any:  # noqa: ANN401 (of pandas)
    """Return a frame with one more line before its last one."""
    import pandas as pd

    return pd.concat([frame.iloc[:-1], line.to_frame().T, frame.iloc[-1:]])


def _cell(value: float, *, signed: bool) -> str:
    if math.isnan(value):
        return ""
    return f"{value:+.4g}" if signed else f"{value:.6g}"


def to_objects(explanation: Explanation, rows: Sequence[int]) -> list[Json]:
    """Return the explanations of rows as JSON objects."""
    found = []
    for row in rows:
        frame = explanation.row(row)
        lines = [{"column": str(name), **line} for name, line in frame.to_dict("index").items()]
        place = {name: explanation.list.at[row, name] for name in explanation.list}
        neighbours = explanation.neighbours(row)
        found.append(
            to_json({"row": row, **place, "neighbours": neighbours, "columns": lines, "note": explanation.note})
        )
    return found


def explanation_csv(explanation: Explanation, data: Path, *, quote_formulas: bool = False) -> CsvText:
    """Return all rows from the top down as CSV: what each column adds, then the file's own columns."""
    places, frame = explanation.list, explanation.frame
    ours: dict[str, Sequence[Any]] = {name: places[name].tolist() for name in places if name != "score"}
    ours |= {"row": places.index.tolist(), "total": frame["total"].tolist()}
    ours |= {f"{name} adds": [_csv_cell(value) for value in frame[name]] for name in frame.columns[:-1]}
    lists = places.groupby("query", sort=False).ngroup() if "query" in places else 0
    order = places.assign(list=lists).sort_values(["list", "position"]).index
    own = read_texts(data) if format_of(data) == "table" else {}
    return csv_text(ours, own, [row - 1 for row in order], quote_formulas=quote_formulas)


def _csv_cell(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))


def picture_of(explanation: Explanation, row: int) -> bytes:
    """Return the picture of a row beside its neighbours, as PNG."""
    picture = io.BytesIO()
    try:
        explanation.plot(row).savefig(picture, format="png")
    except ValueError as error:
        raise RunError(f"--picture: {error}") from None
    return picture.getvalue()
