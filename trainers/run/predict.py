"""Apply a finished run to other rows: rank them, explain where they stand, or write an ONNX model that ranks.

A score that is a sum over columns is explained by what each column adds. Any other, such as that of a blend or of
trees, is explained as on the page: by the chance that a row would have if a cell were the typical one of its column.

`read_rows_for` reads and checks rows before anything is imported that takes seconds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ltr.data import DataError, Reading, format_of, read_rows, read_texts
from ltr.data.dataset import Features
from ltr.data.forms import date_at
from ltr.data.kinds import DAYS, encode, encodings_in, notes_on
from ltr.data.table_files import open_table
from trainers.config import AUTO, CARD, EXACT
from trainers.files import Json, RunError, csv_text, reading, to_json, writing
from trainers.run.folder import PAGE, RunFolder

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from ltr.answer import RowRanges
    from ltr.rankers import Explanation, Ranker
    from trainers.ranking_files import Ranking

_FIRST = 3  # rows from the top that are shown where none is named
_LINES = 20  # columns of a table
_MOST = 1000  # rows with reasons


@dataclass(frozen=True)
class Rows:
    """Rows of a file for a method of a run."""

    run: RunFolder
    data: Path  # the file
    method: str
    table: pd.DataFrame  # their features, or for a card their columns as they are
    queries: NDArray[Any] | None = None  # the query of each row; None where the run has no queries
    notes: tuple[str, ...] = ()  # what the training rows did not have, and what it is taken for
    new_values: bool = False  # whether most of them may have texts that no training row had


def read_rows_for(
    run: RunFolder, data: Path, method: str | None = None, *, card: bool = True, new_values: bool = False
) -> Rows:
    """Read the rows of a file for a method of a run (`method_of`): as features, or for a `card` as they are.

    Features and queries are found as those of the training rows were. With `new_values` most rows may have texts that
    no training row had.
    """
    import pandas as pd

    with reading(run.origin):
        facts = run.facts["data"]
        features, by_query, query = [str(name) for name in facts["features"]], "queries" in facts, facts.get("query")
        how = Reading(missing=tuple(facts.get("reading", {}).get("missing", ())))
    method = method_of(run, method)
    if card and method == CARD and format_of(data) == "table":
        columns = open_table(data, how, numbers=()).columns
        return Rows(run, data, method, pd.DataFrame({name: column.cells for name, column in columns.items()}))
    X: Features
    notes: tuple[str, ...] = ()
    if run.preparation.exists():
        with reading(run.preparation):
            encodings = encodings_in(run.preparation.read_text(encoding="utf-8"))
        given = open_table(data, how, ids=query, numbers={one.column for one in encodings if one.plain})
        X = encode(given.columns, encodings, str(data), new_values=new_values)
        ids = given.queries(query)
        notes = tuple(f"{data}: {text}" for text in notes_on(given.columns, encodings))
    else:
        X, ids = read_rows(data, features, query=query, dtype=facts.get("dtype", "auto"))
    if by_query and ids is None:
        places = f"in a query column, as qid: in its lines, or as sizes in {data.name}.query beside it"
        raise DataError(f"{data}: the run ranks by query, so each row's query is needed: {places}")
    table = pd.DataFrame(X, columns=features, copy=False)
    return Rows(run, data, method, table, ids if by_query else None, notes, new_values)


def method_of(run: RunFolder, method: str | None) -> str:
    """Return a method of the run that has a fitted ranker: by default its exact stage, else auto, or its only one."""
    fitted = run.fitted
    wanted = EXACT if method is None else method
    if wanted not in fitted and (record := run.method(wanted, make=False).result()) is not None:
        reason = record.get("message") or "its file is missing"
        raise RunError(f"--method: {wanted} is finished, but {run.path} has no model of it: {reason}")
    if not fitted:
        raise RunError(f"run: {run.path} holds no fitted ranker yet; finish it with `ltr run {run.config}`")
    if method is None:
        if found := [name for name in (EXACT, AUTO) if name in fitted] or (fitted if len(fitted) == 1 else []):
            return found[0]
        raise RunError(f"--method is required: {run.path} has no finished exact stage; fitted are {', '.join(fitted)}")
    if method not in fitted:
        raise RunError(f"--method must be one of {', '.join(fitted)}, got {method!r}")
    return method


def ranker_of(run: RunFolder, method: str | None = None, *, prepared: bool = False) -> Ranker:
    """Read the fitted ranker of a method of a run (`method_of`), which knows its columns by name.

    With `prepared` it takes the columns of the table, not the features that they become; a card always does.
    """
    from ltr.data import TablePreparation
    from trainers.run.methods import load_ranker

    chosen = method_of(run, method)
    ranker = load_ranker(run.method(chosen))
    if prepared and chosen != CARD and run.preparation.exists():
        with reading(run.preparation):
            ranker.prepare_with(TablePreparation.from_json(run.preparation.read_text(encoding="utf-8")))
    return ranker


def predict_csv(rows: Rows) -> str:
    """Rank the rows of a file by the method of a run, as CSV text from the top down.

    Before a table's own columns come ``query`` where there are queries, ``position`` (1 is the top), ``score``,
    ``stage`` (``reranked`` for rows that the exact stage placed, else ``base``) and ``row`` (in the file, from 1).
    """
    data, is_table = rows.data, format_of(rows.data) == "table"
    try:
        ranked = ranker_of(rows.run, rows.method).rank(rows.table, rows.queries)
    except ValueError as error:
        if rows.method != CARD or not is_table:
            raise
        raise DataError(f"{data}: {error}") from None
    if "stage" not in ranked:
        ranked["stage"] = "base"
    own = read_texts(data) if is_table else {}
    if any(len(texts) != len(rows.table) for texts in own.values()):
        counts = f"{len(next(iter(own.values())))} and {len(rows.table)}"
        raise DataError(f"{data}: changed while it was read, got {counts} rows")
    order, ranked = ranked.index.tolist(), ranked.sort_index()
    ours: dict[str, Sequence[Any]] = {name: ranked[name].tolist() for name in ranked}
    ours |= {"score": list(map(repr, ours["score"])), "row": range(1, len(rows.table) + 1)}
    return csv_text(ours, own, order)


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
    except RunError:
        raise
    except (ImportError, TypeError, ValueError) as error:
        which = "" if isinstance(error, ImportError) else f"{chosen}: "
        raise RunError(f"export: {which}{error}") from None
    lines = [f"  {name}: {kind}, {what}" for name, (kind, what) in inputs.items()]
    head = f"wrote {path}: {chosen}, with the inputs, each with an entry for every row"
    return "\n".join([head, *lines, f"and the outputs {', '.join(outputs)}"])


def explain_rows(rows: Rows) -> Explanation | Ranking:
    """Explain the rows of a file, whose index is their number in the file, from 1.

    That is what each column adds; where the score is no sum over columns, a ranking, whose `why_row` explains a row.
    """
    from trainers.ranking_files import Ranking

    ranker = ranker_of(rows.run, rows.method)
    page = (rows.run.path / PAGE).exists() and format_of(rows.data) == "table"
    try:
        found = ranker.explain(rows.table.set_axis(range(1, len(rows.table) + 1)), rows.queries)
        if not (found.note and page):
            return found
    except ValueError as error:
        if not page:
            raise RunError(f"--method: {error}") from None
    ranking = Ranking.load(rows.run.path, rows.method)
    learned = dataclasses.replace(ranking.answer.learned, id=None)  # rows go by their number
    ranking.answer = dataclasses.replace(ranking.answer, learned=learned)
    return ranking.rank(rows.data, visits=_MOST, new_values=rows.new_values)


def list_of(found: Explanation | Ranking) -> pd.DataFrame:
    """Return place and score of each row, by its number in the file, from 1."""
    from ltr.rankers import Explanation

    if isinstance(found, Explanation):
        return found.list
    names = [name for name in ("query", "position", "score", "chance") if name in found.ranked]
    return found.ranked.set_index("row").sort_index()[names]


def note_of(found: Explanation | Ranking) -> str:
    """Return what is not explained, or how, in a sentence; empty if nothing."""
    told = "the score is no sum over columns: a chance is that of the row with this one cell as it typically is"
    return getattr(found, "note", told)


def chosen_rows(found: Explanation | Ranking, rows: Sequence[int]) -> list[int]:
    """Return the rows to show: those that were asked for, or the first ones of the list."""
    places = list_of(found)
    if missing := [str(row) for row in rows if row not in places.index]:
        raise RunError(f"--row: must be from 1 to {len(places)}, the rows of the file, got {', '.join(missing)}")
    top = places[places["position"] <= _FIRST]
    return list(rows) or [int(row) for row in top.sort_values("position", kind="stable").index[:_FIRST]]


def table_of(found: Explanation | Ranking, row: int) -> Table:
    """Return the explanation of a row as a table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    from ltr.answer.page import percent
    from ltr.rankers import Explanation

    place = list_of(found).loc[row]
    title = f"row {row}: position {place['position']:.0f}" + (f" of query {place['query']}" if "query" in place else "")
    title += f", {place['stage']}" if "stage" in place else ""
    if sums := isinstance(found, Explanation):
        heads, lines = _lines_of_sum(found, row)
    else:
        title += f", chance {percent(place['chance'])}"
        heads, frame = ["column", "value", "typically", "chance if\ntypical"], found.why_row(row - 1).iloc[:_LINES]
        values = zip(frame.index.map(str), frame["value"], frame["typical"], strict=True)
        lines = [(*told, percent(chance)) for told, chance in zip(values, frame["if typical"], strict=True)]
    table = Table(title=title, title_justify="left")
    for at, head in enumerate(heads):
        number = at > 0 if sums else at == len(heads) - 1
        wide = max(len(line[at]) for line in lines) if number and sums else None
        table.add_column(head, justify="right" if number else "left", overflow="fold", min_width=wide)
    for at, line in enumerate(lines):
        table.add_row(*map(Text, line), style="bold" if sums and at == len(lines) - 1 else None)
    return table


def _lines_of_sum(explanation: Explanation, row: int) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return headings and cells of what each column adds to the score of a row, and their sum."""
    import pandas as pd

    frame, near = explanation.row(row), explanation.neighbours(row)
    if len(frame) > _LINES + 1:
        rest = frame.iloc[_LINES:-1].sum().rename(f"{len(frame) - _LINES - 1} more columns")
        rest["value"] = math.nan
        frame = pd.concat([frame.iloc[:_LINES], rest.to_frame().T, frame.iloc[-1:]])
    forms = {"value": "{:.6g}", "adds": "{:+.4g}"} | dict.fromkeys(near, "{:+.4g}")
    lines = []
    for name, *values in frame[list(forms)].itertuples():
        formed = zip(forms.values(), values, strict=True)
        cells = ["" if math.isnan(value) else form.format(value) for form, value in formed]
        if str(name).endswith(DAYS) and cells[0]:
            cells[0] = str(date_at(values[0]))
        lines.append((str(name).removesuffix(DAYS), *cells))
    return ["column", "value", "adds", *(f"against row\n{near[side]} {side}" for side in near)], lines


def to_objects(
    explanation: Explanation | Ranking, rows: Sequence[int], ranges: RowRanges | None = None, listed: Sequence[int] = ()
) -> list[Json]:
    """Return the explanations of rows as JSON objects, those of rows `listed` with the range of their places."""
    from ltr.rankers import Explanation

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
