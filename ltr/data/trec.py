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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.data.dataset import DataError
from ltr.files import missing_file
from ltr.native import first_lines, read_columns

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
    return _frame(_read(path, _RUN, "score"), "score")


def read_qrels(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the lines of qrels: columns query and document (texts) and label (int64), in the order of the file.

    Raises:
        DataError: a missing or empty file, a line that has not its four fields, a label that is no integer from
            -2**53 to 2**53, or a document that a query has twice.
    """
    return _frame(_read(path, _QRELS, "label"), "label")


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
    place = {query: at for at, query in enumerate(dict.fromkeys(queries))}
    number = np.array([place[query] for query in queries], dtype=np.int64)
    lines, rank, last = [], 0, -1
    for at in _order(number, scores, _bytes("\n".join(documents))):
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


def judged_lists(
    run: str | os.PathLike[str] | pd.DataFrame, qrels: str | os.PathLike[str] | pd.DataFrame, *, complete: bool = False
) -> JudgedLists:
    """Bring a run and its judgements together.

    Queries without judgements are left out, as in trec_eval.

    Args:
        run: its file, or the frame of `read_run`.
        qrels: their file, or the frame of `read_qrels`.
        complete: whether to keep the queries that have judgements but no line in the run, as trec_eval's ``-c`` does.

    Raises:
        DataError: a file that cannot be used, as for `read_run` and `read_qrels`; no query is left; in a frame, a
            document that a query has twice, or whose name has a line feed.
    """
    listed, given = _lines(run, _RUN, "score"), _lines(qrels, _QRELS, "label")
    known = set(given.queries) if complete else set(listed.queries) & set(given.queries)
    if not known:
        raise DataError("run and qrels must have a query in common, got none")
    every = {name: at for at, name in enumerate(dict.fromkeys([*listed.queries, *given.queries]))}
    of_run, of_qrels = listed.numbers(every), given.numbers(every)
    count, rows = len(of_qrels), len(of_run)
    first = _first_lines(np.concatenate([of_qrels, of_run]), given.documents + b"\n" + listed.documents)
    given.check_once(first[:count])
    listed.check_once(first[count:])
    rank = np.empty(rows)
    rank[_order(of_run, listed.values, listed.documents)] = np.arange(rows)
    queries = sorted(known, key=_bytes)
    place = {name: at for at, name in enumerate(queries)}
    places = np.fromiter(map(place.get, every, itertools.repeat(-1)), np.int64)
    of_run, of_qrels = places[of_run], places[of_qrels]
    kept, missed = of_run >= 0, of_qrels >= 0
    at = first[count:][kept]
    found = at < count
    missed[at[found]] = False
    labels = np.concatenate([np.where(found, given.values[at * found], -1), given.values[missed]])
    # those outside the run in any order
    scores = -np.concatenate([rank[kept], rows + np.arange(len(labels) - len(at))])
    number = np.concatenate([of_run[kept], of_qrels[missed]])
    return JudgedLists(queries, number, scores, np.maximum(labels, 0), np.arange(len(labels)) >= len(at), labels >= 0)


@dataclass(frozen=True, eq=False)
class _Lines:
    """The lines of a run or of qrels: the query of each block of lines, and the document and the value of each line."""

    file: Path | None
    queries: Sequence[str]
    counts: NDArray[np.int64]  # lines of each block
    documents: bytes  # with line feeds in between
    values: NDArray[Any]

    def numbers(self, place: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the place of each line's query."""
        return np.fromiter(map(place.__getitem__, self.queries), np.int64).repeat(self.counts)

    def check_once(self, first: NDArray[np.int64]) -> None:
        """Raise DataError where a query has a document twice, given the number that equal lines have in common."""
        if np.bincount(first).max() == 1:
            return
        again = np.delete(np.arange(len(first)), np.unique(first, return_index=True)[1])
        at = int(again[0])
        query = self.queries[int(np.searchsorted(self.counts.cumsum(), at, side="right"))]
        document = _decoded(self.documents.split(b"\n")[at])
        where = f"in row {at}" if self.file is None else f"in line {_line(self.file, at)}"
        source = "frame" if self.file is None else self.file
        raise DataError(f"{source}: a query must have a document once, got {document!r} of {query!r} again {where}")


def _lines(given: str | os.PathLike[str] | pd.DataFrame, fields: tuple[str, ...], value: str) -> _Lines:
    """Return the lines of a file or of its frame."""
    if isinstance(given, str | os.PathLike):
        return _read(given, fields, value)
    documents = _bytes("\n".join(given["document"]))
    if documents.count(b"\n") != len(given) - 1:
        raise DataError("frame: names of documents must have no line feed")
    ones = np.ones(len(given), dtype=np.int64)
    return _Lines(None, given["query"].tolist(), ones, documents, given[value].to_numpy())


def _first_lines(groups: NDArray[np.int64], text: bytes) -> NDArray[np.int64]:
    """Return the number of the first line of the same group that is the same as a line, for each line of a text."""
    first = np.empty(len(groups), dtype=np.int64)
    count = first_lines(groups, np.frombuffer(text + b"\n", dtype=np.uint8), first)
    assert count == len(groups)
    return first


def _order(number: NDArray[np.int64], scores: NDArray[np.float64], documents: bytes) -> NDArray[np.int64]:
    """Return the order of documents: by the number of their query, then score and name, both descending."""
    order = np.arange(len(number))
    if not ((number[1:] > number[:-1]) | ((number[1:] == number[:-1]) & (scores[1:] <= scores[:-1]))).all():
        order = np.lexsort((-scores, number))
    same = (number[order][1:] == number[order][:-1]) & (scores[order][1:] == scores[order][:-1])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if not len(tied):
        return order
    rows, names = order[tied], documents.split(b"\n")
    place = _places([names[row] for row in rows.tolist()])
    order[tied] = rows[np.lexsort((-place, -scores[rows], number[rows]))]
    return order


def _places(names: Sequence[bytes]) -> NDArray[np.int64]:
    """Return the place of each name among the different ones, sorted."""
    place = {name: at for at, name in enumerate(sorted(set(names)))}
    return np.array([place[name] for name in names], dtype=np.int64)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogateescape")


def _no_label(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers are no labels of qrels."""
    return ~((values == np.floor(values)) & (np.abs(values) <= _LARGEST_LABEL))


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


def _read(path: str | os.PathLike[str], fields: tuple[str, ...], value: str) -> _Lines:
    """Return the query, the document and the value of each line of a file."""
    file = Path(path)
    if not file.is_file():
        raise DataError(f"{path}: {missing_file(file)}")
    text = np.frombuffer(file.read_bytes().removeprefix(_bytes(_BYTE_ORDER_MARK)), dtype=np.uint8)
    first, third, values = np.empty((3, len(text) + 1), dtype=np.uint8)
    counts = np.empty(int(np.count_nonzero(text == ord("\n"))) + 1, dtype=np.int64)
    found = np.empty(len(counts))
    *sizes, bad = read_columns(text, len(fields), fields.index(value), first, counts, third, values, found)
    if bad:
        got = _decoded(text.tobytes().split(b"\n")[bad - 1].strip())
        raise DataError(f"{path}: line {bad} must read `{' '.join(fields)}`, got {got!r:.80}")
    if not sizes[1]:
        raise DataError(f"{path}: the file has no lines")
    counts = counts[: sizes[1]]
    texts, found, whole = values[: sizes[3] - 1].tobytes(), found[: counts.sum()], value == "label"
    at = np.flatnonzero(_no_label(found) | (np.abs(found) == _LARGEST_LABEL) if whole else ~np.isfinite(found))
    if len(at):
        words = texts.split(b"\n")
        found[at] = [_number(words[row], whole=whole) for row in at.tolist()]
        if len(at := at[np.isnan(found[at])]):
            rule = "an integer from -2**53 to 2**53" if whole else "a number"
            got = _decoded(words[at[0]])
            raise DataError(f"{path}: {value} must be {rule}, got {got!r:.80} in line {_line(file, int(at[0]))}")
    queries = _decoded(first[: sizes[0] - 1].tobytes()).split("\n")
    numbers = found.astype(np.int64) if whole else found
    return _Lines(file, queries, counts, third[: sizes[2] - 1].tobytes(), numbers)


def _frame(lines: _Lines, value: str) -> pd.DataFrame:
    """Return the columns query, document and value of some lines."""
    import pandas as pd

    every = {name: at for at, name in enumerate(dict.fromkeys(lines.queries))}
    lines.check_once(_first_lines(lines.numbers(every), lines.documents))
    # as objects: strings of Arrow refuse surrogates
    queries = np.array(lines.queries, dtype=object).repeat(lines.counts)
    frame = pd.DataFrame({"query": queries, "document": _decoded(lines.documents).split("\n")}, dtype=object)
    frame[value] = lines.values
    return frame


def _number(text: bytes, *, whole: bool) -> float:
    """Return the number that a text stands for, NaN for none, or no label where it must be whole."""
    try:
        found = math.nan if b"_" in text else float(text)  # Python allows it between digits
    except ValueError:
        return math.nan
    if not math.isfinite(found) or (
        whole and (_no_label(np.array(found)) or abs(Decimal(text.decode())) > _LARGEST_LABEL)
    ):
        return math.nan
    return found


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", errors="surrogateescape")


def _line(file: Path, row: int) -> int:
    """Return the number of the line in which the row of this number is."""
    with file.open("rb") as lines:
        filled = (number for number, line in enumerate(lines, start=1) if line.split())
        return next(itertools.islice(filled, row, None))
