"""The files of trec_eval: runs, which are ranked lists of documents, and qrels, the judgements of documents.

A line of a run is ``query Q0 document rank score tag``, one of qrels ``query 0 document label``. As in trec_eval, white
space separates the fields and there are no comments; text is UTF-8. The rank of a run's lines plays no part: documents
are ordered by score, descending, and those of one score by their names, descending. Scores are compared in double
precision; trec_eval rounds them to single precision first.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.data.dataset import DataError
from ltr.data.table_files import parse_csv
from ltr.files import missing_file

if TYPE_CHECKING:
    import pandas as pd

_RUN = ("query", "Q0", "document", "rank", "score", "tag")
_QRELS = ("query", "0", "document", "label")
_NO_NAME = re.compile(r"\ufeff.*|.*[ \t\r\n\v\f].*|", re.DOTALL)
_LARGEST_LABEL = 2**53  # up to which all integers are doubles


def read_run(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the lines of a run: columns query and document (texts) and score (float64), in the order of the file.

    Raises DataError for a line without its six fields, a score that is not finite, or a document twice.
    """
    return _read(path, _RUN)


def read_qrels(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the lines of qrels, columns query, document and label (int64), with the errors of `read_run`."""
    return _read(path, _QRELS)


def write_run(
    path: str | os.PathLike[str],
    query: Iterable[object],
    document: Iterable[object],
    score: ArrayLike,
    *,
    tag: str = "ltr",
) -> None:
    """Write a run, query by query in the order of their first lines, each from its top; scores have all their digits.

    Raises DataError for names with white space or a byte order mark, or a score that is not finite.

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
    frame = _to_write(path, query, document, "score", score)
    _check_names(path, "tag", [tag])
    frame["place"] = frame["query"].factorize()[0]
    frame = frame.sort_values(["place", "score", "document"], ascending=[True, False, False])
    frame = frame.assign(Q0="Q0", rank=frame.groupby("place").cumcount() + 1, tag=tag)
    _write(path, frame[list(_RUN)])


def write_qrels(
    path: str | os.PathLike[str], query: Iterable[object], document: Iterable[object], label: ArrayLike
) -> None:
    """Write judgements in their order; labels are integers from -2**53 to 2**53, the rest is as for `write_run`."""
    frame = _to_write(path, query, document, "label", label).assign(**{"0": 0})
    _write(path, frame[list(_QRELS)])


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """The documents of a run and of its judgements, query by query, as arrays of one length."""

    queries: Sequence[str]  # sorted by name
    number: NDArray[np.int64]  # the place in `queries` of each document's query
    scores: NDArray[np.float64]  # larger the higher a document stands; no two of a query are equal
    labels: NDArray[np.int64]  # 0 for a document that has not been judged
    outside: NDArray[np.bool_]  # whether it is judged but not in the run
    judged: NDArray[np.bool_]  # whether it has a judgement, which is a label of 0 or more


def judged_lists(
    run: str | os.PathLike[str] | pd.DataFrame, qrels: str | os.PathLike[str] | pd.DataFrame, *, complete: bool = False
) -> JudgedLists:
    """Bring a run and its judgements together; queries without judgements are left out, as in trec_eval.

    They are files, or the frames of `read_run` and `read_qrels`. If `complete`, queries with judgements but without a
    line in the run are kept, as by trec_eval's ``-c``.
    """
    listed = read_run(run) if isinstance(run, str | os.PathLike) else run
    given = read_qrels(qrels) if isinstance(qrels, str | os.PathLike) else qrels
    for frame in (listed, given):
        _check_once("frame", frame)
    known = set(given["query"]) if complete else set(listed["query"]) & set(given["query"])
    if not known:
        raise DataError("run and qrels must have a query in common, got none")
    both = listed.merge(given, on=["query", "document"], how="outer")
    both = both[both["query"].isin(known)]
    # documents outside the run have no score, and come last
    both = both.sort_values(["query", "score", "document"], ascending=[True, False, False])
    number, queries = both["query"].factorize()
    labels = both["label"].fillna(-1).to_numpy(dtype=np.int64)
    scores, outside = -np.arange(len(both), dtype=np.float64), np.array(both["score"].isna())
    return JudgedLists(list(queries), number.astype(np.int64), scores, np.maximum(labels, 0), outside, labels >= 0)


def _read(path: str | os.PathLike[str], fields: tuple[str, ...]) -> pd.DataFrame:
    """Return the query, the document, and the score or the label of each line of a file."""
    import pandas as pd

    file = Path(path)
    if not file.is_file():
        raise DataError(f"{path}: {missing_file(file)}")
    options: dict[str, Any] = {"sep": r"\s+", "header": None, "names": fields, "index_col": False, "dtype": str}
    options |= {"quoting": csv.QUOTE_NONE, "keep_default_na": False, "na_values": [""], "low_memory": False}
    rule = f"{path}: each line must read `{' '.join(fields)}`"
    try:
        frame = parse_csv(file, options)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: must be UTF-8, got {error.object[error.start]:#x}") from None
    except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
        raise DataError(f"{rule}, got {str(error).strip().removeprefix('Error tokenizing data. C error: ')}") from None
    if frame.empty:
        raise DataError(f"{path}: the file has no lines")
    if (short := frame[fields[-1]].isna()).any():
        got = " ".join(frame[short].iloc[0].dropna())
        raise DataError(f"{rule}, got {got!r:.80} in row {short.argmax() + 1}")
    value = "label" if "label" in fields else "score"
    frame[value] = _checked(path, value, frame[value].to_numpy())
    _check_once(str(path), frame)
    return frame[["query", "document", value]]


def _check_once(where: str, frame: pd.DataFrame) -> None:
    if (again := frame.duplicated(["query", "document"])).any():
        at = int(again.argmax())
        got = f"{frame['document'].iloc[at]!r} of {frame['query'].iloc[at]!r} again in row {at + 1}"
        raise DataError(f"{where}: a query must have a document once, got {got}")


def _checked(path: str | os.PathLike[str], name: str, given: NDArray[Any]) -> NDArray[Any]:
    """Return scores as float64, or labels as int64; raise DataError for other values of that name."""
    import pandas as pd

    numbers = pd.to_numeric(given, errors="coerce").astype(np.float64)
    rule, good = "a finite number", np.isfinite(numbers)
    if name == "label":
        rule = "an integer from -2**53 to 2**53"
        good = (numbers == np.floor(numbers)) & (np.abs(numbers) <= _LARGEST_LABEL)
    if not good.all():
        at = int(np.argmin(good))
        raise DataError(f"{path}: {name} must be {rule}, got {str(given[at])!r:.80} in row {at + 1}")
    # pandas may round a number that it makes of a text twice
    return numbers.astype(np.int64) if name == "label" else given.astype(np.float64)


def _to_write(
    path: str | os.PathLike[str], query: Iterable[object], document: Iterable[object], name: str, values: ArrayLike
) -> pd.DataFrame:
    import pandas as pd

    queries, documents = list(map(str, query)), list(map(str, document))
    _check_names(path, "query", queries)
    _check_names(path, "document", documents)
    numbers = _checked(path, name, np.asarray(values, dtype=np.float64))
    return pd.DataFrame({"query": queries, "document": documents, name: numbers})


def _check_names(path: str | os.PathLike[str], what: str, names: Sequence[str]) -> None:
    if (bad := next(filter(_NO_NAME.fullmatch, names), None)) is not None:
        rule = "must be a text without white space or a byte order mark in front"
        raise DataError(f"{path}: each {what} {rule}, got {bad!r}")


def _write(path: str | os.PathLike[str], frame: pd.DataFrame) -> None:
    frame.to_csv(path, sep=" ", header=False, index=False, quoting=csv.QUOTE_NONE, lineterminator="\n")
