"""Apply a finished run to other rows: rank them, explain where they stand, or write an ONNX model that ranks.

A score that is a sum over columns is explained by what each column adds. Any other, such as that of a blend or of
trees, is explained as on the page: by the chance that a row would have if a cell were the typical one of its column.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ltr.answer import RowRanges
from ltr.answer.page import percent
from ltr.data import DataError, TablePreparation, format_of, read_texts
from ltr.data.forms import date_at
from ltr.data.kinds import DAYS
from ltr.rankers import Explanation, Ranker
from trainers.config import CARD
from trainers.files import Json, RunError, csv_text, reading, to_json, writing
from trainers.run.folder import PAGE, RunFolder
from trainers.run.methods import load_ranker
from trainers.run.rows import Rows, method_of, read_rows_for

if TYPE_CHECKING:
    import pandas as pd

    from trainers.ranking import Ranking

_FIRST = 3  # rows from the top that are shown where none is named
_LINES = 20  # columns of a table
_MOST = 1000  # rows with reasons


def predict_csv(
    run: RunFolder,
    data: Path,
    *,
    method: str | None = None,
    rows: Rows | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> str:
    """Rank the rows of a file by a method of a run (`method_of`), as CSV text from the top down.

    Before a table's own columns come ``position`` (1 is the top), ``score``, ``stage`` (``reranked`` for rows that the
    exact stage placed, ``base`` for the others) and ``row`` (in the file, from 1). Each query is a separate list, in
    the order in which they first appear, and ``query`` is the first column. `rows` are the rows, if they have been
    read; `note` is called with what the training rows did not have, and what it is taken for.
    """
    chosen = method_of(run, method)
    rows = read_rows_for(run, data, chosen) if rows is None else rows
    for text in rows.notes:
        note(text)
    if chosen == CARD and format_of(data) == "table":
        try:
            ranked = load_ranker(run.method(CARD)).rank(rows.table)
        except ValueError as error:
            raise DataError(f"{data}: {error}") from None
    else:
        ranked = ranker_of(run, chosen).rank(rows.table, rows.queries)
    if "stage" not in ranked:
        ranked["stage"] = "base"
    own = read_texts(data) if format_of(data) == "table" else {}
    if any(len(texts) != len(rows.table) for texts in own.values()):
        counts = f"{len(next(iter(own.values())))} and {len(rows.table)}"
        raise DataError(f"{data}: changed while it was read, got {counts} rows")
    order, ranked = ranked.index.tolist(), ranked.sort_index()
    ours: dict[str, Sequence[Any]] = {name: ranked[name].tolist() for name in ranked}
    ours["score"] = list(map(repr, ours["score"]))
    ours["row"] = range(1, len(rows.table) + 1)
    return csv_text(ours, own, order)


def ranker_of(run: RunFolder, method: str | None = None, *, prepared: bool = False) -> Ranker:
    """Read the fitted ranker of a method of a run (`method_of`), which knows its columns by name.

    With `prepared` it takes the columns of the table, not the features that they become; a card always does.
    """
    chosen = method_of(run, method)
    ranker = load_ranker(run.method(chosen))
    if prepared and chosen != CARD and run.preparation.exists():
        with reading(run.preparation):
            ranker.prepare_with(TablePreparation.from_json(run.preparation.read_text(encoding="utf-8")))
    return ranker


def export_run(run: RunFolder, path: Path, *, method: str | None = None) -> str:
    """Write a fitted ranker of a run as an ONNX model, and return what its inputs hold, in words.

    For a run on a table the inputs are the columns of the table. A `RunError` says why there is no model.
    """
    chosen = method_of(run, method)
    ranker = ranker_of(run, chosen, prepared=True)
    with reading(run.origin):
        query = run.facts["data"].get("query") or "query"
    try:
        with writing(path, "--output"):
            ranker.to_onnx(path, preparation=ranker.preparation_, query=query)
        from ltr.onnx_graph import describe_model

        inputs, outputs = describe_model(path)
    except ImportError as error:
        raise RunError(f"export: {error}") from None
    except RunError:
        raise
    except (TypeError, ValueError) as error:
        raise RunError(f"export: {chosen}: {error}") from None
    lines = [f"  {name}: {kind}, {what}" for name, (kind, what) in inputs.items()]
    head = f"wrote {path}: {chosen}, with the inputs, each with an entry for every row"
    return "\n".join([head, *lines, f"and the outputs {', '.join(outputs)}"])


def explain_rows(
    run: RunFolder,
    data: Path,
    method: str | None = None,
    *,
    rows: Rows | None = None,
    new_values: bool = False,
    note: Callable[[str], None] = lambda text: None,
) -> Explanation | Ranking:
    """Explain the rows of a file, whose index is their number in the file, from 1; for arguments see `predict_csv`.

    That is what each column adds; where the score is no sum over columns, a ranking, whose `why_row` explains a row. A
    `RunError` says that the run lacks the page that it takes.
    """
    ranker = ranker_of(run, method)
    rows = read_rows_for(run, data, card=False, new_values=new_values) if rows is None else rows
    for text in rows.notes:
        note(text)
    table = rows.table.set_axis(range(1, len(rows.table) + 1))
    page = (run.path / PAGE).exists() and format_of(data) == "table"
    try:
        found = ranker.explain(table, rows.queries)
    except ValueError as error:
        if not page:
            raise RunError(f"--method: {error}") from None
        return _reasons(run, data, method, new_values)
    return _reasons(run, data, method, new_values) if found.note and page else found


def _reasons(run: RunFolder, data: Path, method: str | None, new_values: bool) -> Ranking:
    from trainers.ranking_files import read_ranking

    ranking = read_ranking(run.path, method_of(run, method))
    learned = dataclasses.replace(ranking.answer.learned, id=None)  # rows go by their number
    ranking.answer = dataclasses.replace(ranking.answer, learned=learned)
    if ranking.ranker.preparation_ is not None:
        ranking.ranker.preparation_.new_values = new_values
    return ranking.rank(data, visits=_MOST)


def list_of(found: Explanation | Ranking) -> pd.DataFrame:
    """Return place and score of each row, by its number in the file, from 1."""
    if isinstance(found, Explanation):
        return found.list
    return found.ranked.set_index("row").sort_index()[
        [name for name in ("query", "position", "score", "chance") if name in found.ranked]
    ]


def note_of(found: Explanation | Ranking) -> str:
    """Return what is not explained, or how, in a sentence; empty if nothing."""
    if isinstance(found, Explanation):
        return found.note
    return "the score is no sum over columns: a chance is that of the row with this one cell as it typically is"


def chosen_rows(found: Explanation | Ranking, rows: Sequence[int]) -> list[int]:
    """Return the rows to show: those that were asked for, or the first ones of the list."""
    places = list_of(found)
    if missing := [str(row) for row in rows if row not in places.index]:
        raise RunError(f"--row: must be from 1 to {len(places)}, the rows of the file, got {', '.join(missing)}")
    top = places[places["position"] <= _FIRST]
    return list(rows) or [int(row) for row in top.sort_values("position", kind="stable").index[:_FIRST]]


def table_of(explanation: Explanation | Ranking, row: int) -> Table:
    """Return the explanation of a row as a table for a terminal."""
    if not isinstance(explanation, Explanation):
        return _table_of_reasons(explanation, row)
    import pandas as pd

    frame, place = explanation.row(row), explanation.list.loc[row]
    near = explanation.neighbours(row)
    if len(frame) > _LINES + 1:
        rest = frame.iloc[_LINES:-1].sum().rename(f"{len(frame) - _LINES - 1} more columns")
        rest["value"] = math.nan
        frame = pd.concat([frame.iloc[:_LINES], rest.to_frame().T, frame.iloc[-1:]])
    query = f" of query {place['query']}" if "query" in place else ""
    stage = f", {place['stage']}" if "stage" in place else ""
    title = f"row {row}: position {place['position']}{query}{stage}"
    table = Table(title=title, title_justify="left")
    heads = {"value": "value", "adds": "adds"} | {side: f"against row\n{near[side]} {side}" for side in near}
    table.add_column("column", overflow="fold")
    cells = {name: [_cell(value, signed=name != "value") for value in frame[name]] for name in heads}
    for at, (name, value) in enumerate(frame["value"].items()):
        if str(name).endswith(DAYS) and not math.isnan(value):
            cells["value"][at] = str(date_at(value))
    for name, head in heads.items():
        table.add_column(head, justify="right", overflow="fold", min_width=max(map(len, cells[name])))
    for at, name in enumerate(frame.index):
        line = (str(name).removesuffix(DAYS), *(cells[column][at] for column in heads))
        table.add_row(*map(Text, line), style="bold" if at == len(frame) - 1 else None)
    return table


def _table_of_reasons(ranking: Ranking, row: int) -> Table:
    place, frame = list_of(ranking).loc[row], ranking.why_row(row - 1)
    query = f" of query {place['query']}" if "query" in place else ""
    title = f"row {row}: position {place['position']:.0f}{query}, chance {percent(place['chance'])}"
    table = Table(title=title, title_justify="left")
    for head in ("column", "value", "typically"):
        table.add_column(head, overflow="fold")
    table.add_column("chance if\ntypical", justify="right")
    for name, line in frame.iloc[:_LINES].iterrows():
        table.add_row(*map(Text, (str(name), line["value"], line["typical"], percent(line["if typical"]))))
    return table


def _cell(value: float, *, signed: bool) -> str:
    if math.isnan(value):
        return ""
    return f"{value:+.4g}" if signed else f"{value:.6g}"


def to_objects(
    explanation: Explanation | Ranking, rows: Sequence[int], ranges: RowRanges | None = None, listed: Sequence[int] = ()
) -> list[Json]:
    """Return the explanations of rows as JSON objects, those of rows `listed` with the range of their places."""
    places, found = list_of(explanation), list[Json]()
    for row in rows:
        about: Json = {name: places.at[row, name] for name in places}
        about |= {} if ranges is None or row not in listed else {"range": ranges.row(row)}
        if isinstance(explanation, Explanation):
            frame = explanation.row(row)
            about |= {"neighbours": explanation.neighbours(row), "note": explanation.note}
        else:
            frame = explanation.why_row(row - 1).drop(columns="chance")
            frame = frame.rename(columns={"if typical": "chance_if_typical"})
        about["columns"] = [{"column": str(name), **line} for name, line in frame.to_dict("index").items()]
        found.append(to_json({"row": row, **about}))
    return found
