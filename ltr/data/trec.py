"""The files of trec_eval: runs, which are ranked lists of documents, and qrels, the judgements of documents.

A line of a run is ``query Q0 document rank score tag``, one of qrels ``query 0 document label``. As in trec_eval, ASCII
white space separates the fields, there are no comments, and names are bytes: bytes that are not UTF-8 become
surrogates, as `os.fsdecode` makes them, and are written as they were. A byte order mark at the start of a file is
skipped. The rank of a run's lines plays no part: documents are ordered by score, descending, and those of one score by
the bytes of their names, descending. Scores are compared in double precision; trec_eval rounds them to single precision
first.

`judged_lists` brings a run and its judgements together, in the form that the metrics of `ltr.metrics` take.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.data.dataset import DataError
from ltr.files import missing_file

if TYPE_CHECKING:
    import pandas as pd

_RUN = ("query", "Q0", "document", "rank", "score", "tag")
_QRELS = ("query", "0", "document", "label")
_BYTE_ORDER_MARK = "\ufeff"
_LARGEST_LABEL = 2**53  # up to which all integers are doubles


def read_run(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the lines of a run: columns query and document (texts) and score (float64), in the order of the file.

    Raises:
        DataError: a missing or empty file, a line that has not its six fields, a score that is no number, or a
            document that a query has twice.
    """
    return _read(path, _RUN, "score")


def read_qrels(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the lines of qrels: columns query and document (texts) and label (int64), in the order of the file.

    Raises:
        DataError: a missing or empty file, a line that has not its four fields, a label that is no integer from
            -2**53 to 2**53, or a document that a query has twice.
    """
    return _read(path, _QRELS, "label")


def write_run(
    path: str | os.PathLike[str],
    query: Iterable[object],
    document: Iterable[object],
    score: ArrayLike,
    *,
    tag: str = "ltr",
) -> None:
    """Write a run, query by query in the order of their first lines, each from its top.

    Args:
        path: the file.
        query: query of each line; its text must be without ASCII white space and not begin with a byte order mark.
        document: document of each line, likewise.
        score: score of each line; it is written with all its digits.
        tag: name of the run.

    Raises:
        DataError: columns of different lengths, names with ASCII white space, a score that is not finite.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "run.txt")
        ...     write_run(path, ["q1", "q1"], ["a", "b"], [0.5, 1.5])
        ...     print(path.read_text(), end="")
        ...     read_run(path)["score"].tolist()
        q1 Q0 b 1 1.5 ltr
        q1 Q0 a 2 0.5 ltr
        [1.5, 0.5]
    """
    queries, documents = _names(path, "query", query), _names(path, "document", document)
    (tag,) = _names(path, "tag", [tag])
    scores = np.asarray(score, dtype=np.float64)
    if not len(queries) == len(documents) == scores.size:
        sizes = f"{len(queries)}, {len(documents)} and {scores.size}"
        raise DataError(f"{path}: query, document and score must be of one length, got {sizes}")
    if not np.isfinite(scores).all():
        raise DataError(f"{path}: scores must be finite, got {scores[~np.isfinite(scores)][0]}")
    number = _places(queries)
    first = np.full(len(queries) + 1, len(queries))
    np.minimum.at(first, number, np.arange(len(queries)))
    lines, rank, last = [], 0, -1
    for at in _order(first[number], scores, documents):
        rank = rank + 1 if number[at] == last else 1
        last = number[at]
        lines.append(f"{queries[at]} Q0 {documents[at]} {rank} {float(scores[at])!r} {tag}\n")
    Path(path).write_bytes(_bytes("".join(lines)))


def write_qrels(
    path: str | os.PathLike[str], query: Iterable[object], document: Iterable[object], label: ArrayLike
) -> None:
    """Write judgements in their order; labels must be integers, other arguments are those of `write_run`.

    Raises:
        DataError: columns of different lengths, names with ASCII white space, a label that is no integer from -2**53 to
            2**53.
    """
    queries, documents = _names(path, "query", query), _names(path, "document", document)
    labels = np.asarray(label, dtype=np.float64)
    if not len(queries) == len(documents) == labels.size:
        sizes = f"{len(queries)}, {len(documents)} and {labels.size}"
        raise DataError(f"{path}: query, document and label must be of one length, got {sizes}")
    if (bad := labels[_no_label(labels)]).size:
        raise DataError(f"{path}: labels must be integers from -2**53 to 2**53, got {bad[0]:.17g}")
    rows = zip(queries, documents, labels, strict=True)
    Path(path).write_bytes(_bytes("".join(f"{q} 0 {d} {int(y)}\n" for q, d, y in rows)))


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """The documents of a run and of its judgements, query by query, as arrays of one length.

    Attributes:
        queries: the queries, sorted by name.
        number: the place in `queries` of each document's query.
        scores: a number for each document, larger the higher it stands; no two of a query are equal.
        labels: its label, 0 if it has not been judged.
        outside: whether it is judged but not in the run.
        judged: whether it has a judgement, which is a label of 0 or more.
    """

    queries: Sequence[str]
    number: NDArray[np.int64]
    scores: NDArray[np.float64]
    labels: NDArray[np.int64]
    outside: NDArray[np.bool_]
    judged: NDArray[np.bool_]


def judged_lists(run: pd.DataFrame, qrels: pd.DataFrame, *, complete: bool = False) -> JudgedLists:
    """Bring a run and its judgements together.

    Queries without judgements are left out, as in trec_eval.

    Args:
        run: the frame of `read_run`.
        qrels: the frame of `read_qrels`.
        complete: whether to keep the queries that have judgements but no line in the run, as trec_eval's ``-c`` does.

    Raises:
        DataError: no query is left.
    """
    both = run.merge(qrels, on=["query", "document"], how="outer", indicator=True)
    known = set(qrels["query"]) if complete else set(run["query"]) & set(qrels["query"])
    if not known:
        raise DataError("run and qrels must have a query in common, got none")
    both = both[both["query"].isin(known)]
    queries = sorted(known, key=_bytes)
    number = _places(both["query"])
    outside = (both["_merge"] == "right_only").to_numpy(copy=True)
    labels = both["label"].fillna(-1).to_numpy(dtype=np.int64)
    order = _order(number, both["score"].fillna(-np.inf).to_numpy(), both["document"])
    scores = np.empty(len(both))
    scores[order] = -np.arange(len(both), dtype=np.float64)
    return JudgedLists(queries, number, scores, np.maximum(labels, 0), outside, labels >= 0)


def _order(number: NDArray[np.int64], scores: NDArray[np.float64], documents: Iterable[str]) -> NDArray[np.int64]:
    """Return the order of documents: by the number of their query, then score and name, both descending."""
    return np.lexsort((-_places(documents), -scores, number))


def _places(names: Iterable[str]) -> NDArray[np.int64]:
    """Return the place of each name among the different ones, which are sorted by their bytes."""
    listed = list(names)
    place = {name: at for at, name in enumerate(sorted(set(listed), key=_bytes))}
    return np.array([place[name] for name in listed], dtype=np.int64)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogateescape")


def _no_label(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers are no labels of qrels."""
    return (values != np.floor(values)) | (values > _LARGEST_LABEL) | (values < -_LARGEST_LABEL)


def _names(path: str | os.PathLike[str], what: str, values: Iterable[object]) -> list[str]:
    names = [str(value) for value in values]
    for name in names:
        try:
            whole = _bytes(name).split() == [_bytes(name)] and not name.startswith(_BYTE_ORDER_MARK)
        except UnicodeEncodeError:
            raise DataError(f"{path}: each {what} must be a text that UTF-8 can spell, got {name!r}") from None
        if not whole:
            rule = "must be a text without white space or a byte order mark in front"
            raise DataError(f"{path}: each {what} {rule}, got {name!r}")
    return names


def _read(path: str | os.PathLike[str], fields: tuple[str, ...], value: str) -> pd.DataFrame:
    """Return the columns query, document and value of a file."""
    import pandas as pd

    file = Path(path)
    if not file.is_file():
        raise DataError(f"{path}: {missing_file(file)}")
    at, rows, numbers = (0, 2, fields.index(value)), [], []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            row = (line.removeprefix(_bytes(_BYTE_ORDER_MARK)) if number == 1 else line).split()
            if not row:
                continue
            if len(row) != len(fields):
                got = line.strip().decode("utf-8", errors="surrogateescape")
                raise DataError(f"{path}: line {number} must read `{' '.join(fields)}`, got {got!r:.80}")
            rows.append([row[place].decode("utf-8", errors="surrogateescape") for place in at])
            numbers.append(number)
    if not rows:
        raise DataError(f"{path}: the file has no lines")
    # as objects: strings of Arrow refuse surrogates
    frame = pd.DataFrame(rows, columns=["query", "document", value], dtype=object)
    found = pd.to_numeric(frame[value], errors="coerce").to_numpy()
    bad = ~np.isfinite(found) | (_no_label(found) if value == "label" else False)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        rule = "an integer from -2**53 to 2**53" if value == "label" else "a number"
        raise DataError(f"{path}: {value} must be {rule}, got {rows[first][2]!r:.80} in line {numbers[first]}")
    frame[value] = found.astype(np.int64 if value == "label" else np.float64)
    twice = frame.duplicated(["query", "document"])
    if twice.any():
        first = int(np.flatnonzero(twice)[0])
        raise DataError(
            f"{path}: a query must have a document once, got {rows[first][1]!r} of {rows[first][0]!r} again in line "
            f"{numbers[first]}"
        )
    return frame
