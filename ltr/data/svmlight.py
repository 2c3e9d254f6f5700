r"""Sparse text files: svmlight, libsvm and LETOR.

Each line is an observation, ``label [qid:ID] index:value index:value ... # comment``; indices ascend, and features that
are not given are 0. Blank lines and comments are skipped.

* A feature is named after its index, ``f1``, ``f2``, ..., from 0 or 1 (as the smallest index of the file has it) to the
  largest index. If features are requested by name, those that the file does not have are 0.
* Queries are given by the ``qid:`` of the lines (any texts), or by sizes in a file beside it (`ltr.data.tables`).
* Without queries labels are 0 and 1, or libsvm's -1 and +1.

The file is read piece by piece into a dense matrix of at most 4 GB.
"""

from __future__ import annotations

import io
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltr.checks import one_of
from ltr.data.dataset import DataError, Dataset, Features, checked_feature_names, checked_features
from ltr.data.table_files import is_number, queries_beside
from ltr.files import LARGEST, missing_file

FloatArray = NDArray[np.float64]
DtypeName = Literal["auto", "float32", "float64"]

_BLOCK = 1 << 23  # bytes of a file that are parsed at a time
_LARGEST_INDEX = 2**31 - 1
_NAME = re.compile(r"f(0|[1-9]\d{0,9})")
_LINE = re.compile(rb"[-+.\d][-+.\deE]*(\s+qid:\S+)?(\s+\d+:\S+)+")


def looks_like_svmlight(path: str | os.PathLike[str]) -> bool:
    """Return whether the first line that is neither blank nor a comment has the form of an observation."""
    return any(_LINE.fullmatch(text.strip()) for _, text in itertools.islice(_observations(Path(path)), 1))


def read_svmlight(
    path: str | os.PathLike[str], *, features: Sequence[str] | None = None, dtype: DtypeName = "auto"
) -> Dataset:
    r"""Return the labelled observations of a file, after which the data set is named.

    `features` are those to take, such as the training file's for a test file; all by default. Their type `dtype` is
    float32 where no value is rounded, else float64, by default. Raises DataError for a missing, empty or malformed file
    (with the line), or labels or query sizes that break their rules.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "letor.txt")
        ...     _ = path.write_text("2 qid:7 1:0.5 3:1 # best\n0 qid:7 2:0.25\n1 qid:9 1:2\n")
        ...     data = read_svmlight(path)
        >>> data.feature_names, data.X.tolist(), data.qid.tolist()
        (('f1', 'f2', 'f3'), [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0], [2.0, 0.0, 0.0]], [0, 0, 1])
    """
    X, labels, names, queries = _read(path, features, dtype)
    if queries is None and set(np.unique(labels)) <= {-1.0, 1.0}:
        labels = (labels > 0).astype(np.float64)
    return Dataset(Path(path).stem, X, labels, names, queries, copy=False)


def read_svmlight_rows(
    path: str | os.PathLike[str], features: Sequence[str], *, dtype: DtypeName = "auto"
) -> tuple[Features, NDArray[Any] | None]:
    """Return the features, (n, len(features)), and query ids (or None) of a file, whatever its labels are."""
    X, _, names, queries = _read(path, features, dtype)
    return checked_features(X, names, str(path)), queries


def _read(
    path: str | os.PathLike[str], features: Sequence[str] | None, dtype: DtypeName
) -> tuple[Features, FloatArray, list[str], NDArray[Any] | None]:
    """Return features, labels, names of the features, and query ids or None."""
    one_of("dtype", dtype, get_args(DtypeName))
    file = Path(path)
    if not file.is_file():
        raise DataError(f"{path}: {missing_file(file)}")
    asked = None if features is None else list(checked_feature_names(features))
    if foreign := [name for name in asked or () if not _NAME.fullmatch(name)]:
        raise DataError(f"{path}: features of sparse text are named f0, f1, ..., it has no {foreign[0]!r}")
    rows, queries, all_indices = _scan(file)
    indices = all_indices if asked is None else [int(name[1:]) for name in asked]
    X, labels = _parse(file, indices, rows, dtype)
    beside = queries_beside(file, rows)
    if queries and beside is not None:
        sizes = f"{file.name}.query"
        raise DataError(f"{file}: queries must come from one place, got qid: in its lines and {sizes} beside it")
    return X, labels, [f"f{index}" for index in indices], np.array(queries, dtype=str) if queries else beside


def _parse(file: Path, wanted: Sequence[int], count: int, dtype: DtypeName) -> tuple[Features, FloatArray]:
    """Return the features of some indices, (count, len(wanted)), and the labels, read piece by piece."""
    from sklearn.datasets import load_svmlight_file

    kind = "float32" if dtype == "float32" else "float64"
    if (size := float(np.dtype(kind).itemsize) * count * len(wanted)) > LARGEST:
        remedy = "take fewer of them" + (", or read them as float32" if kind == "float64" else "")
        shape, limit = f"{count} rows of {len(wanted)} features", f"the limit is {LARGEST / 1e9:g} GB"
        raise DataError(f"{file}: {shape} would take {size / 1e9:.1f} GB as dense {kind}, {limit}; {remedy}")
    order = np.argsort(wanted, kind="stable")
    ordered = np.array(wanted, dtype=np.int64)[order]
    X: Any = np.zeros((count, len(wanted)), dtype=np.float64 if dtype == "float64" else np.float32)
    labels, begin = np.empty(count), 0
    with _opened(file) as text:
        while block := b"".join(text.readlines(_BLOCK)):
            try:
                sparse, own = load_svmlight_file(io.BytesIO(block), dtype=np.float64, zero_based=True)
            except (ValueError, OverflowError) as error:
                raise DataError(f"{file}: {_first_mistake(file) or error}") from None
            place = np.minimum(np.searchsorted(ordered, sparse.indices), len(ordered) - 1)
            known = ordered[place] == sparse.indices
            rows = begin + np.repeat(np.arange(len(own)), np.diff(sparse.indptr))[known]
            values = sparse.data[known]
            with np.errstate(over="ignore"):  # too large for float32, which the check of the features reports
                if dtype == "auto" and X.dtype == np.float32 and (values.astype(np.float32) != values).any():
                    X = X.astype(np.float64) if begin else np.zeros(X.shape)
                X[rows, order[place[known]]] = values
            labels[begin : begin + len(own)] = own
            begin += len(own)
    return X, labels


def _opened(file: Path) -> BinaryIO:
    """Open a file behind its byte order mark, if it has one."""
    lines = file.open("rb")
    if lines.read(3) != b"\xef\xbb\xbf":
        lines.seek(0)
    return lines


def _observations(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each line that is neither blank nor a comment, without its comment."""
    with _opened(file) as lines:
        for number, line in enumerate(lines, start=1):
            text = line.partition(b"#")[0]
            if text.strip():
                yield number, text


def _scan(file: Path) -> tuple[int, list[str], range]:
    """Return the number of rows of a file, their queries, if any, and the indices of its features, from 0 or 1.

    Either all lines have a query or none has; other mistakes are found later.
    """
    queries: list[str] = []
    first, last, count = 1, 0, 0
    for count, (number, text) in enumerate(_observations(file), start=1):
        tokens = text.split(None, 2)
        has_query = len(tokens) > 1 and tokens[1].startswith(b"qid:")
        if has_query:
            query = tokens[1][4:].decode("utf-8", errors="replace")
            queries.append(queries[-1] if queries and queries[-1] == query else query)  # one text for all its rows
            if not queries[-1]:
                raise DataError(f"{file}: qid: must be followed by an id, got none in line {number}")
        if len(queries) not in (0, count):
            raise DataError(f"{file}: all lines must have a qid: or none, got line {number} unlike those before")
        if len(tokens) > 1 + has_query:
            begin, end = tokens[1 + has_query], text.rsplit(None, 1)[-1]
            low, high = begin.partition(b":")[0], end.partition(b":")[0]
            if low.isdigit() and high.isdigit():
                first, last = min(first, int(low)), max(last, int(high))
    if count == 0:
        raise DataError(f"{file}: the file contains no observations")
    if last > _LARGEST_INDEX:
        raise DataError(f"{file}: {_first_mistake(file)}")
    return count, queries, range(min(first, last), last + 1)


def _first_mistake(file: Path) -> str | None:
    """Describe the first malformed token of a file."""
    for number, text in _observations(file):
        tokens = text.decode("utf-8", errors="replace").split()
        if not is_number(tokens[0]):
            return f"a line must begin with a number, its label, got {tokens[0]!r} in line {number}"
        before = -1
        for token in tokens[2 if len(tokens) > 1 and tokens[1].startswith("qid:") else 1 :]:
            index, colon, value = token.partition(":")
            if not (colon and index.isdecimal() and is_number(value)):
                return f"features must read index:value, got {token!r} in line {number}"
            if not before < int(index) <= _LARGEST_INDEX:
                rule = f"ascend within a line, to at most {_LARGEST_INDEX}"
                return f"indices of features must {rule}, got {index} in line {number}"
            before = int(index)
    return None
