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

import itertools
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.data.dataset import DataError
from ltr.files import missing_file
from ltr.native import read_columns

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
    known = set(qrels["query"]) if complete else set(run["query"]) & set(qrels["query"])
    if not known:
        raise DataError("run and qrels must have a query in common, got none")
    queries = sorted(known, key=_bytes)
    documents = {name: at for at, name in enumerate(set(qrels["document"]))}
    place = {name: at for at, name in enumerate(queries)}
    of_run, of_qrels = (_looked_up(place, frame["query"]) for frame in (run, qrels))
    kept, asked = np.flatnonzero(of_run >= 0), np.flatnonzero(of_qrels >= 0)
    of_run, of_qrels = of_run[kept], of_qrels[asked]
    # a pair of query and document as one number, that of a document without judgement below all others
    pairs = of_qrels * len(documents) + _looked_up(documents, qrels["document"])[asked]
    document = _looked_up(documents, run["document"])[kept]
    wanted = np.where(document >= 0, of_run * len(documents) + document, -1)
    given = np.argsort(pairs)
    at = given[np.searchsorted(pairs, wanted, sorter=given).clip(max=len(pairs) - 1)]
    found = pairs[at] == wanted
    missed = np.ones(len(pairs), dtype=np.bool_)
    missed[at[found]] = False
    label = qrels["label"].to_numpy(dtype=np.int64)[asked]
    labels = np.concatenate([np.where(found, label[at], -1), label[missed]])
    scores = -np.arange(len(labels), dtype=np.float64)  # of those outside the run, in any order
    names = run["document"].to_numpy(dtype=object)[kept]
    scores[_order(of_run, run["score"].to_numpy()[kept], names)] = -np.arange(len(kept), dtype=np.float64)
    number = np.concatenate([of_run, of_qrels[missed]])
    return JudgedLists(queries, number, scores, np.maximum(labels, 0), np.arange(len(labels)) >= len(kept), labels >= 0)


def _order(
    number: NDArray[np.int64], scores: NDArray[np.float64], documents: Sequence[str] | NDArray[np.object_]
) -> NDArray[np.int64]:
    """Return the order of documents: by the number of their query, then score and name, both descending."""
    order = np.arange(len(number))
    if not ((number[1:] > number[:-1]) | ((number[1:] == number[:-1]) & (scores[1:] <= scores[:-1]))).all():
        order = np.lexsort((-scores, number))
    same = (number[order][1:] == number[order][:-1]) & (scores[order][1:] == scores[order][:-1])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if not len(tied):
        return order
    rows = order[tied]
    place = _places([documents[row] for row in rows])
    order[tied] = rows[np.lexsort((-place, -scores[rows], number[rows]))]
    return order


def _looked_up(place: dict[str, int], names: pd.Series) -> NDArray[np.int64]:
    """Return the place of each name, -1 for one that has none."""
    return np.fromiter(map(place.get, names.tolist(), itertools.repeat(-1)), np.int64, len(names))


def _places(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the place of each name among the different ones, which are sorted by their bytes."""
    place = {name: at for at, name in enumerate(sorted(set(names), key=_bytes))}
    return np.array([place[name] for name in names], dtype=np.int64)


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
    text = np.frombuffer(file.read_bytes().removeprefix(_bytes(_BYTE_ORDER_MARK)), dtype=np.uint8)
    first, third, values = np.empty((3, len(text) + 1), dtype=np.uint8)
    counts = np.empty(int(np.count_nonzero(text == ord("\n"))) + 1, dtype=np.int64)
    *sizes, bad = read_columns(text, len(fields), fields.index(value), first, counts, third, values)
    if bad:
        got = _decoded(text.tobytes().split(b"\n")[bad - 1].strip())
        raise DataError(f"{path}: line {bad} must read `{' '.join(fields)}`, got {got!r:.80}")
    if not sizes[1]:
        raise DataError(f"{path}: the file has no lines")
    groups, documents = (
        _decoded(x[: size - 1].tobytes()).split("\n") for x, size in ((first, sizes[0]), (third, sizes[2]))
    )
    texts = values[: sizes[3] - 1].tobytes()
    found = _numbers(texts, whole=value == "label")
    if not np.isfinite(found).all():
        at = int(np.flatnonzero(~np.isfinite(found))[0])
        rule = "an integer from -2**53 to 2**53" if value == "label" else "a number"
        got = _decoded(texts.split(b"\n")[at])
        raise DataError(f"{path}: {value} must be {rule}, got {got!r:.80} in line {_line(file, at)}")
    # as objects: strings of Arrow refuse surrogates
    queries = np.array(groups, dtype=object).repeat(counts[: sizes[1]])
    frame = pd.DataFrame({"query": queries, "document": documents}, dtype=object)
    frame[value] = found.astype(np.int64 if value == "label" else np.float64)
    seen: dict[str, list[list[str]]] = {}
    begin = 0
    for query, count in zip(groups, counts.tolist(), strict=False):
        seen.setdefault(query, []).append(documents[begin : (begin := begin + count)])
    if any(len(set().union(*parts)) < sum(map(len, parts)) for parts in seen.values()):
        at = int(np.flatnonzero(frame.duplicated(["query", "document"]))[0])
        raise DataError(
            f"{path}: a query must have a document once, got {documents[at]!r} of {queries[at]!r} again in line "
            f"{_line(file, at)}"
        )
    return frame


def _numbers(lines: bytes, *, whole: bool) -> NDArray[np.float64]:
    """Return the numbers that lines stand for, NaN for one that is none, or no label where they must be whole."""
    values = lines.split(b"\n")

    def number(value: bytes) -> float:
        try:
            return math.nan if b"_" in value else float(value)  # Python allows it between digits
        except ValueError:
            return math.nan

    try:
        found = np.fromiter(map(number if b"_" in lines else float, values), np.float64, len(values))
    except ValueError:
        found = np.fromiter(map(number, values), np.float64, len(values))
    if whole:
        found[_no_label(found)] = np.nan
        for at in np.flatnonzero(np.abs(found) == _LARGEST_LABEL).tolist():  # perhaps after rounding
            if abs(Decimal(values[at].decode())) != _LARGEST_LABEL:
                found[at] = np.nan
    return found


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", errors="surrogateescape")


def _line(file: Path, row: int) -> int:
    """Return the number of the line in which the row of this number is."""
    with file.open("rb") as lines:
        filled = (number for number, line in enumerate(lines, start=1) if line.split())
        return next(itertools.islice(filled, row, None))
