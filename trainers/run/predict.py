"""Rank new, unlabelled rows with a finished run."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError, format_of, read_rows, read_texts
from ltr.data.dataset import checked_queries
from ltr.data.tables import is_number
from ltr.rankers import TwoStageRanker
from trainers.config import EXACT
from trainers.files import RunError, reading
from trainers.run.folder import RunFolder
from trainers.run.methods import load_ranker


@dataclass(frozen=True)
class Ranked:
    """Ranked rows."""

    text: str  # text of the CSV file
    formulas: tuple[str, ...]  # names of columns with texts that spreadsheets take for formulas, in file order

    @property
    def warning(self) -> str:
        """Warning about the formulas."""
        columns = "column" if len(self.formulas) == 1 else "columns"
        named = ", ".join(map(repr, self.formulas[:5])) + (", ..." if self.formulas[5:] else "")
        return (
            f"{columns} {named}: texts that begin with = + - @ are formulas to a spreadsheet, which runs them; "
            "--quote-formulas puts an apostrophe before them"
        )


def predict_csv(run: RunFolder, data: Path, *, method: str | None = None, quote_formulas: bool = False) -> Ranked:
    """Rank the rows of a file, as CSV text from the top down.

    Before a table's own columns come ``position`` (0 is the top), ``score``, ``stage`` (``exact`` for reranked
    rows, ``base`` for the others) and ``row`` (in the file, from 1). With queries each query is a ranking of its own,
    in the order in which they first appear, and ``query`` is the first column.

    Args:
        run: folder of the run.
        data: the file; features are found by name, and queries where the training data had theirs: in the query
            column of a table, in the lines of a sparse file, or in the file of sizes beside it.
        method: a method of the run; its exact stage by default, or its only method.
        quote_formulas: put an apostrophe before texts that begin with ``= + - @``, a tab or a line break, and are no
            numbers: spreadsheets run them as formulas.

    Raises:
        RunError: the method has no fitted ranker, or the run folder is damaged.
        DataError: the file lacks the run's features or queries, or has values that are not numbers.
    """
    chosen = _method(run, method)
    with reading(run.origin):
        facts = run.facts["data"]
        features, by_query, column = [str(name) for name in facts["features"]], "queries" in facts, facts.get("query")
    X, ids = read_rows(data, features, query=column)
    queries = None
    if by_query:
        if ids is None:
            places = f"in a query column, as qid: in its lines, or as sizes in {data.name}.query beside it"
            raise DataError(f"{data}: the run ranks by query, so each row's query is needed: {places}")
        queries = checked_queries(ids, len(X), str(data))[0]
    folder = run.method(chosen)
    if chosen == EXACT:
        with reading(folder.model):
            two_stage = TwoStageRanker.load(folder.model)
        scores = two_stage.decision_function(X, queries)
        reranked = two_stage.reranked(X, queries) & (two_stage.coef_ is not None)
    else:
        ranker = load_ranker(folder)
        scores, reranked = ranker.decision_function(X), np.zeros(len(X), dtype=bool)
    own = read_texts(data) if format_of(data) == "table" else {}
    if any(len(texts) != len(X) for texts in own.values()):
        raise DataError(f"{data}: changed while it was read, got {len(next(iter(own.values())))} and {len(X)} rows")
    return _csv(scores, reranked, own, queries, ids, quote_formulas)


def _method(run: RunFolder, method: str | None) -> str:
    fitted = sorted(path.parent.name for path in run.path.glob("*/model.pt"))
    if not fitted:
        raise RunError(f"run: {run.path} holds no fitted ranker yet; finish it with `ltr run {run.config}`")
    if method is None:
        if EXACT in fitted or len(fitted) == 1:
            return EXACT if EXACT in fitted else fitted[0]
        raise RunError(f"--method is required: {run.path} has no exact stage; fitted are {', '.join(fitted)}")
    if method not in fitted:
        raise RunError(f"--method must be one of {', '.join(fitted)}, got {method!r}")
    return method


def _csv(
    scores: NDArray[np.float64],
    reranked: NDArray[np.bool_],
    own: Mapping[str, Sequence[str]],
    queries: NDArray[np.int64] | None,
    ids: NDArray[Any] | None,
    quote_formulas: bool,
) -> Ranked:
    ours = [*([] if queries is None else ["query"]), "position", "score", "stage", "row"]
    if set(ours) & set(own):
        ours = [f"ltr_{name}" for name in ours]
    found = [name for name, texts in own.items() if _is_formula(name) or any(map(_is_formula, texts))]
    if queries is not None and ids is not None and any(_is_formula(str(name)) for name in np.unique(ids)):
        found.insert(0, ours[0])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")

    def shown(text: str) -> str:
        return f"'{text}" if quote_formulas and _is_formula(text) else text

    writer.writerow([*ours, *map(shown, own)])
    lists = np.zeros(len(scores), dtype=np.int64) if queries is None else queries
    top = 0
    order = np.lexsort((-scores, lists)).tolist()
    for place, row in enumerate(order):
        if lists[row] != lists[order[top]]:
            top = place
        query = [] if queries is None or ids is None else [shown(str(ids[row]))]
        stage = "exact" if reranked[row] else "base"
        placed = [place - top, repr(float(scores[row])), stage, row + 1]
        writer.writerow([*query, *placed, *(shown(texts[row]) for texts in own.values())])
    return Ranked(text.getvalue(), tuple(found))


def _is_formula(text: str) -> bool:
    r"""Return whether a spreadsheet would run a text as a formula.

    Examples:
        >>> [_is_formula(text) for text in ("=1+1", "@SUM(A1)", "-cmd", "\t=1", "-1.5", "+3e-2", "a=b", "--", "")]
        [True, True, True, True, False, False, False, False, False]
    """
    return text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) and text.strip("=+-@") != "" and not is_number(text)
