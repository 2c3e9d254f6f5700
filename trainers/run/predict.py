"""Rank new, unlabelled rows with a finished run, or write it as an ONNX model that does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ltr.data import DataError, TablePreparation, format_of, read_texts
from ltr.rankers import Ranker
from trainers.config import CARD
from trainers.files import RunError, csv_text, reading, writing
from trainers.run.folder import RunFolder
from trainers.run.methods import load_ranker
from trainers.run.rows import Rows, method_of, read_rows_for


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
