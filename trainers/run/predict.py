"""Rank new, unlabelled rows with a finished run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ltr.data import (
    DataError,
    Reading,
    TableError,
    TablePreparation,
    format_of,
    read_rows,
    read_texts,
)
from ltr.data.columns import Column
from ltr.data.table_files import queries_beside, read_file
from ltr.data.tables import ids_of
from ltr.rankers import Ranker
from trainers.config import CARD, EXACT
from trainers.csv_text import CsvText, csv_text
from trainers.files import Json, RunError, reading
from trainers.run.folder import MODELS, RunFolder
from trainers.run.methods import load_ranker


def predict_csv(
    run: RunFolder,
    data: Path,
    *,
    method: str | None = None,
    quote_formulas: bool = False,
    note: Callable[[str], None] = lambda text: None,
) -> CsvText:
    """Rank the rows of a file, as CSV text from the top down.

    Before a table's own columns come ``position`` (1 is the top), ``score``, ``stage`` (``reranked`` for rows that the
    exact stage placed, ``base`` for the others) and ``row`` (in the file, from 1). With queries each query is a ranking
    of its own, in the order in which they first appear, and ``query`` is the first column.

    Args:
        run: folder of the run.
        data: the file; features are found by name, and queries where the training data had theirs: in the query
            column of a table, in the lines of a sparse file, or in the file of sizes beside it.
        method: a method of the run; its exact stage by default, or its only method.
        quote_formulas: put an apostrophe before texts that begin with ``= + - @``, a tab or a line break, and are no
            numbers: spreadsheets run them as formulas.
        note: called with what the training rows did not have, such as other texts, and what it is taken for.

    Raises:
        RunError: the method has no fitted ranker, or the run folder is damaged.
        DataError: the file lacks columns or queries of the run's table, or has other values than numbers in a column of
            numbers.
    """
    chosen = method_of(run, method)
    if chosen == CARD and format_of(data) == "table":
        rows, queries = _rows_for_card(run, data), None
        try:
            ranked = load_ranker(run.method(CARD)).rank(rows)
        except ValueError as error:
            raise DataError(f"{data}: {error}") from None
    else:
        rows, queries = rows_of(run, data, note)
        ranked = ranker_of(run, chosen).rank(rows, queries)
    if "stage" not in ranked:
        ranked["stage"] = "base"
    own = read_texts(data) if format_of(data) == "table" else {}
    if any(len(texts) != len(rows) for texts in own.values()):
        raise DataError(f"{data}: changed while it was read, got {len(next(iter(own.values())))} and {len(rows)} rows")
    order, ranked = ranked.index.tolist(), ranked.sort_index()
    ours: dict[str, Sequence[Any]] = {name: ranked[name].tolist() for name in ranked}
    ours["score"] = list(map(repr, ours["score"]))
    ours["row"] = range(1, len(rows) + 1)
    return csv_text(ours, own, order, quote_formulas=quote_formulas)


def ranker_of(run: RunFolder, method: str | None = None) -> Ranker:
    """Read a fitted ranker of a run, which knows its columns by name: its exact stage by default, or its only method.

    Raises:
        RunError: the method has no fitted ranker, or the run folder is damaged.
    """
    ranker = load_ranker(run.method(method_of(run, method)))
    with reading(run.origin):  # models of earlier versions do not hold the names
        return ranker.name_features([str(name) for name in run.facts["data"]["features"]])


def rows_of(
    run: RunFolder, data: Path, note: Callable[[str], None] = lambda text: None
) -> tuple[pd.DataFrame, NDArray[Any] | None]:
    """Read the features of a file's rows, by name, and the query of each row; None where the run has no queries.

    The arguments and errors are those of `predict_csv`.
    """
    with reading(run.origin):
        facts = run.facts["data"]
        features, by_query, column = [str(name) for name in facts["features"]], "queries" in facts, facts.get("query")
    if run.preparation.exists():
        X, ids = _prepared_rows(run, data, facts, note)
    else:
        X, ids = read_rows(data, features, query=column)
    if by_query and ids is None:
        places = f"in a query column, as qid: in its lines, or as sizes in {data.name}.query beside it"
        raise DataError(f"{data}: the run ranks by query, so each row's query is needed: {places}")
    return pd.DataFrame(X, columns=features, copy=False), ids if by_query else None


def _rows_for_card(run: RunFolder, data: Path) -> pd.DataFrame:
    """Return the columns of a table as they are, read as the run's own table was."""
    with reading(run.origin):
        how = _reading_of(run.facts["data"])
    file = read_file(data, how)
    return pd.DataFrame(file.columns)


def _reading_of(facts: Json) -> Reading:
    given = facts.get("reading", {})
    return Reading(decimal=given.get("decimal"), missing=tuple(given.get("missing", ())))


def _prepared_rows(
    run: RunFolder, data: Path, facts: Json, note: Callable[[str], None]
) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """Return the features and query ids of a table's rows, prepared as the training rows were."""
    with reading(run.preparation):
        preparation = TablePreparation.from_json(run.preparation.read_text(encoding="utf-8"))
        how = _reading_of(facts)
    query = facts.get("query")
    file = read_file(data, how, texts=query)
    used = [one.column for one in preparation.encodings_]
    if problems := file.problems_of((*used, query)):
        raise TableError(str(data), problems)
    columns = {name: Column(name, values) for name, values in file.columns.items()}
    X = preparation.transform_columns(columns, str(data))
    for text in preparation.notes(columns):
        note(f"{data}: {text}")
    return X, queries_beside(data, len(X)) if query is None else ids_of(file.columns, str(data), query)


def method_of(run: RunFolder, method: str | None) -> str:
    """Return a method of the run that has a fitted ranker: its exact stage by default, or its only method.

    Raises:
        RunError: there is no such method, or no single one to choose.
    """
    fitted = sorted({path.parent.name for name in MODELS for path in run.path.glob(f"*/{name}")})
    if not fitted:
        raise RunError(f"run: {run.path} holds no fitted ranker yet; finish it with `ltr run {run.config}`")
    if method is None:
        if EXACT in fitted or len(fitted) == 1:
            return EXACT if EXACT in fitted else fitted[0]
        raise RunError(f"--method is required: {run.path} has no exact stage; fitted are {', '.join(fitted)}")
    if method not in fitted:
        raise RunError(f"--method must be one of {', '.join(fitted)}, got {method!r}")
    return method
