"""Ranking new, unlabelled rows with a finished run."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError, format_of, read_rows, read_texts
from ltr.data.dataset import checked_queries
from ltr.rerank import TwoStageRanker
from trainers.config import EXACT
from trainers.context import load_ranker
from trainers.files import reading
from trainers.runs import RunError, RunFolder

__all__ = ["find_run", "predict_csv"]


def find_run(text: str, runs_dir: str | Path = "runs") -> RunFolder:
    """The run folder at a path, or of that name in the runs folder.

    Raises:
        RunError: neither is one; the nearest name there is suggested.
    """
    for path in (Path(text), Path(runs_dir) / text):
        if (run := RunFolder(path)).begun:
            return run
    known = [path.name for path in Path(runs_dir).glob("*") if RunFolder(path).begun]
    near = difflib.get_close_matches(text, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(known))}" if known else ""
    raise RunError(f"run: no run folder at {text} or {Path(runs_dir) / text}{hint}")


def predict_csv(run: RunFolder, data: Path, *, method: str | None = None) -> str:
    """A file's rows from the top of the ranking down, as CSV text.

    Before a table's own columns stand ``position`` (0 is the top), ``score``, ``stage`` (``exact`` for reranked
    rows, ``base`` for the others) and ``row`` (of the file, from 1). Of a run on data by query each query is a ranking
    of its own, in the order in which they first appear, and ``query`` stands before all.

    Args:
        run: of which the ranker is taken.
        data: the file; features are found by name, and queries where the training data had theirs: in the query
            column of a table, in the lines of a sparse file, or in the file of sizes beside it.
        method: a method of the run; its exact stage by default, or its only method.

    Raises:
        RunError: a method without a fitted ranker, a damaged run folder.
        DataError: a file without the run's features or queries, or with values that are not numbers.
    """
    chosen = _method(run, method)
    with reading(run.origin):
        facts = run.facts["data"]
        features, by_query, column = [str(name) for name in facts["features"]], "queries" in facts, facts.get("query")
    X, ids = read_rows(data, features, query=column)
    queries = _queries(data, ids, len(X)) if by_query else None
    folder = run.method(chosen)
    if chosen == EXACT:
        with reading(folder.model):
            two_stage = TwoStageRanker.load(folder.model)
        scores = two_stage.decision_function(X, queries)
        reranked = two_stage.reranked(X, queries) & (two_stage.weights_ is not None)
    else:
        ranker = load_ranker(folder)
        scores, reranked = ranker.decision_function(X), np.zeros(len(X), dtype=bool)
    own = read_texts(data) if format_of(data) == "table" else {}
    if any(len(texts) != len(X) for texts in own.values()):
        raise DataError(f"{data}: changed while it was read, got {len(next(iter(own.values())))} and {len(X)} rows")
    return _csv(scores, reranked, own, queries, ids)


def _queries(data: Path, ids: NDArray[Any] | None, rows: int) -> NDArray[np.int64]:
    """The number of each row's query."""
    if ids is None:
        places = f"in a query column, as qid: in its lines, or as sizes in {data.name}.query beside it"
        raise DataError(f"{data}: the run ranks by query, so each row's query is needed: {places}")
    return checked_queries(ids, rows, str(data))[0]


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
) -> str:
    ours = [*([] if queries is None else ["query"]), "position", "score", "stage", "row"]
    if set(ours) & set(own):
        ours = [f"ltr_{name}" for name in ours]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*ours, *own])
    lists = np.zeros(len(scores), dtype=np.int64) if queries is None else queries
    top = 0
    order = np.lexsort((-scores, lists)).tolist()
    for place, row in enumerate(order):
        if lists[row] != lists[order[top]]:
            top = place
        query = [] if queries is None or ids is None else [ids[row]]
        stage = "exact" if reranked[row] else "base"
        placed = [place - top, repr(float(scores[row])), stage, row + 1]
        writer.writerow([*query, *placed, *(texts[row] for texts in own.values())])
    return text.getvalue()
