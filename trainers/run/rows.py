"""The rows that a run is to rank: read and checked before anything is imported that takes seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ltr.data import DataError, Reading, format_of, read_rows
from ltr.data.dataset import Features
from ltr.data.kinds import encode, encodings_in, notes_on
from ltr.data.table_files import open_table
from trainers.config import AUTO, CARD, EXACT
from trainers.files import RunError, reading
from trainers.run.folder import RunFolder

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Rows:
    """Rows of a file."""

    table: pd.DataFrame  # their features, or for a card their columns as they are
    queries: NDArray[Any] | None = None  # the query of each row; None where the run has no queries
    notes: tuple[str, ...] = ()  # what the training rows did not have, and what it is taken for


def read_rows_for(
    run: RunFolder, data: Path, method: str | None = None, *, card: bool = True, new_values: bool = False
) -> Rows:
    """Read the rows of a file for a method of a run: as features, or for a `card` that ranks them as they are.

    Features are prepared as those of the training rows were. Queries are found where the training data had theirs: in
    the query column of a table, in the lines of a sparse file, or in the file of sizes beside it. With `new_values`
    most rows may have texts that no training row had.
    """
    import pandas as pd

    with reading(run.origin):
        facts = run.facts["data"]
        features, by_query, query = [str(name) for name in facts["features"]], "queries" in facts, facts.get("query")
        how = Reading(missing=tuple(facts.get("reading", {}).get("missing", ())))
    if card and method_of(run, method) == CARD and format_of(data) == "table":
        columns = open_table(data, how, numbers=()).columns
        return Rows(pd.DataFrame({name: column.cells for name, column in columns.items()}))
    X: Features
    notes: list[str] = []
    if run.preparation.exists():
        with reading(run.preparation):
            encodings = encodings_in(run.preparation.read_text(encoding="utf-8"))
        given = open_table(data, how, ids=query, numbers={one.column for one in encodings if one.plain})
        X = encode(given.columns, encodings, str(data), new_values=new_values)
        ids = given.queries(query)
        notes = [f"{data}: {text}" for text in notes_on(given.columns, encodings)]
    else:
        X, ids = read_rows(data, features, query=query, dtype=facts.get("dtype", "auto"))
    if by_query and ids is None:
        places = f"in a query column, as qid: in its lines, or as sizes in {data.name}.query beside it"
        raise DataError(f"{data}: the run ranks by query, so each row's query is needed: {places}")
    table = pd.DataFrame(X, columns=features, copy=False)
    return Rows(table, ids if by_query else None, tuple(notes))


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
        if len(fitted) == 1 or {EXACT, AUTO} & set(fitted):
            return next((name for name in (EXACT, AUTO) if name in fitted), fitted[0])
        raise RunError(f"--method is required: {run.path} has no finished exact stage; fitted are {', '.join(fitted)}")
    if method not in fitted:
        raise RunError(f"--method must be one of {', '.join(fitted)}, got {method!r}")
    return method
