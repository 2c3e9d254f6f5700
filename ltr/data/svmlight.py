r"""Sparse text files: svmlight, libsvm and LETOR.

Each line is an observation, ``label [qid:ID] index:value index:value ... # comment``; indices ascend, and features that
are not given are 0. Blank lines and comments are skipped.

* A feature is named after its index, ``f1``, ``f2``, ..., from 0 or 1 (as the smallest index of the file has it) to the
  largest index. If features are requested by name, those that the file does not have are 0.
* Queries are given by the ``qid:`` of the lines (any texts, in any order), or by sizes in a file beside it
  (`ltr.data.tables`).
* Without queries labels are 0 and 1, or libsvm's -1 and +1.

Features become a dense matrix, into which the file is read piece by piece; one of more than 4 GB is rejected. They are
float64, or float32 in half the memory where all values are exactly so (whole numbers, halves, ...) or where the caller
asks for it, which keeps seven digits. The parsed content of a large file is cached (`ltr.data.cache`).
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltr.checks import one_of
from ltr.data.cache import Arrays, cached
from ltr.data.dataset import DataError, Dataset, Features, checked_features
from ltr.data.raw_table import feature_names
from ltr.data.shares import check_part, rows_of_part
from ltr.data.table_files import is_number, queries_beside
from ltr.files import LARGEST, SizeError, missing_file

FloatArray = NDArray[np.float64]
DtypeName = Literal["auto", "float32", "float64"]
"""Types of the features of sparse text; auto is float32 where no value is rounded, else float64."""

_PARSER = "svmlight-3"
_BLOCK = 1 << 23  # bytes of a file that are parsed at a time
_LINES = 1 << 12  # likewise of a part of a file
_LARGEST_INDEX = 2**31 - 1
_NAME = re.compile(r"f(0|[1-9]\d{0,9})")
_LINE = re.compile(rb"[-+.\d][-+.\deE]*(\s+qid:\S+)?(\s+\d+:\S+)+")


def looks_like_svmlight(path: str | os.PathLike[str]) -> bool:
    """Return whether the first line that is neither blank nor a comment has the form of an observation."""
    return any(_LINE.fullmatch(text.strip()) for _, text in itertools.islice(_observations(Path(path)), 1))


def glimpse_svmlight(path: str | os.PathLike[str]) -> tuple[bool, float]:
    """Return whether the first 10,000 lines of a file have a ``qid:``, and their largest label, or minus infinity.

    This takes a moment where reading the whole file takes minutes. Malformed lines are skipped: reading the file
    reports them.
    """
    queries, largest = False, -math.inf
    for _, text in itertools.islice(_observations(Path(path)), 10_000):
        label, *rest = text.decode("utf-8", errors="replace").split(None, 2)
        if is_number(label):
            largest = max(largest, float(label))
            queries = queries or "".join(rest[:1]).startswith("qid:")
    return queries, largest


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    features: Sequence[str] | None = None,
    cache: bool = True,
    dtype: DtypeName = "auto",
    part: tuple[int, int] | None = None,
) -> Dataset:
    r"""Return the labelled observations of a file.

    Args:
        path: the file.
        features: the features to take, such as those of the training file for a test file; all by default.
        cache: whether to cache the parsed content of a large file, and to read it from the cache.
        dtype: type of the features: ``"float64"``, ``"float32"``, or ``"auto"`` for float32 where no value is rounded.
        part: rank of a process and number of processes, to read that share of the rows: whole queries, about as many
            rows for each. Rows of a query must follow each other. None reads all rows.

    Returns:
        The `Dataset`, named after the file, with queries if the file has them.

    Raises:
        DataError: a missing, empty or malformed file (with the line), or labels or query sizes that break their rules.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "letor.txt")
        ...     _ = path.write_text("2 qid:7 1:0.5 3:1 # best\n0 qid:7 2:0.25\n1 qid:9 1:2\n")
        ...     data = read_svmlight(path)
        >>> data.feature_names, data.X.tolist()
        (('f1', 'f2', 'f3'), [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0], [2.0, 0.0, 0.0]])
        >>> data.y.tolist(), data.qid.tolist(), data.query_ids.tolist()
        ([2, 0, 1], [0, 0, 1], ['7', '9'])
    """
    X, labels, names, queries, rows = _read(path, features, cache, dtype, part)
    if queries is None and set(np.unique(labels)) <= {-1.0, 1.0}:
        labels = (labels > 0).astype(np.float64)
    return Dataset(Path(path).stem, X, labels, names, queries, copy=False, rows=rows)


def read_svmlight_rows(
    path: str | os.PathLike[str], features: Sequence[str], *, cache: bool = True, dtype: DtypeName = "auto"
) -> tuple[Features, NDArray[Any] | None]:
    """Return the features, (n, len(features)), and query ids (or None) of a file, whatever its labels are."""
    X, _, names, queries, _ = _read(path, features, cache, dtype)
    return checked_features(X, names, str(path)), queries


def _read(
    path: str | os.PathLike[str],
    features: Sequence[str] | None,
    cache: bool,
    dtype: DtypeName,
    part: tuple[int, int] | None = None,
) -> tuple[Features, FloatArray, list[str], NDArray[Any] | None, slice | None]:
    """Return features, labels, names of the features, query ids (or None) of all rows, and which rows these are."""
    one_of("dtype", dtype, get_args(DtypeName))
    file = Path(path)
    part = None if part is None else check_part(part)
    if not file.is_file():
        raise DataError(f"{path}: {missing_file(file)}")
    asked = None if features is None else list(feature_names(features))
    if foreign := [name for name in asked or () if not _NAME.fullmatch(name)]:
        raise DataError(f"{path}: features of sparse text are named f0, f1, ..., it has no {foreign[0]!r}")
    wanted = None if asked is None else [int(name[1:]) for name in asked]
    try:
        try:
            parser = f"{_PARSER}-{dtype}" + ("" if part is None else f"-{part[0]}-of-{part[1]}")
            parsed = (
                cached(file, parser, lambda: _parse(file, None, dtype, part))
                if cache
                else _parse(file, wanted, dtype, part)
            )
        except SizeError:  # some of the features may still be few enough
            if wanted is None:
                raise
            parsed = _parse(file, wanted, dtype, part)
    except SizeError as error:
        raise DataError(f"{file}: {error}") from None
    X: Any = parsed["X"]
    own = parsed["indices"].tolist()
    if wanted is not None and own != wanted:
        X = _chosen(X, own, wanted)
    begin, end, count = parsed["rows"].tolist()
    ids, beside = parsed["queries"], queries_beside(file, count)
    if len(ids) > 0 and beside is not None:
        sizes = f"{file.name}.query"
        raise DataError(f"{file}: queries must come from one place, got qid: in its lines and {sizes} beside it")
    rows = None if part is None else slice(begin, end)
    return X, parsed["labels"], [f"f{index}" for index in wanted or own], ids if len(ids) > 0 else beside, rows


def _chosen(X: Features, own: Sequence[int], wanted: Sequence[int]) -> Features:
    """Return the columns of a matrix by the indices of features, 0 for those that it lacks."""
    place = {index: j for j, index in enumerate(own)}
    chosen = np.zeros((len(X), len(wanted)), dtype=X.dtype)
    for j, index in enumerate(wanted):
        if index in place:
            chosen[:, j] = X[:, place[index]]
    return chosen


def _parse(file: Path, wanted: Sequence[int] | None, dtype: DtypeName, part: tuple[int, int] | None) -> Arrays:
    """Return the content of a file, which is read piece by piece.

    Args:
        file: the file.
        wanted: indices of the features to take; None for all.
        dtype: as for `read_svmlight`.
        part: likewise.

    Returns:
        Labels, query ids of all rows (none where lines have none), the features X and their indices; the number of the
        first of these rows, of the first one behind them, and of all rows.

    Raises:
        SizeError: features that would take too much memory.
    """
    from sklearn.datasets import load_svmlight_file

    lines = _scan(file)
    width = lines.last + 1 - lines.first if wanted is None else len(wanted)
    kind = "float32" if dtype == "float32" else "float64"
    first, after = 0, lines.rows
    if part is not None:
        queries = np.array(lines.queries) if lines.queries else queries_beside(file, lines.rows)
        first, after = rows_of_part(queries, lines.rows, part, str(file))
    count = after - first
    if (size := float(np.dtype(kind).itemsize) * count * width) > LARGEST:
        remedy = "take fewer of them" + (", or read them as float32" if kind == "float64" else "")
        shape, limit = f"{count} rows of {width} features", f"the limit is {LARGEST / 1e9:g} GB"
        raise SizeError(f"{shape} would take {size / 1e9:.1f} GB as dense {kind}, {limit}; {remedy}")
    indices = np.arange(lines.first, lines.last + 1) if wanted is None else np.array(wanted, dtype=np.int64)
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    X: Any = np.zeros((count, width), dtype=np.float64 if dtype == "float64" else np.float32)
    labels, begin = np.empty(count), 0
    with contextlib.closing(_blocks(file, None if part is None else slice(first, after))) as blocks:
        for block in blocks:
            try:
                sparse, own = load_svmlight_file(io.BytesIO(b"".join(block)), dtype=np.float64, zero_based=True)
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
    queries = np.array(lines.queries, dtype=str)
    return {
        "labels": labels,
        "queries": queries,
        "X": X,
        "indices": indices,
        "rows": np.array([first, after, lines.rows]),
    }


def _blocks(file: Path, rows: slice | None) -> Generator[list[bytes]]:
    """Yield the lines of a file, or those of some rows, in blocks."""
    if rows is None:
        with _opened(file) as text:
            while block := text.readlines(_BLOCK):
                yield block
        return
    own = (text.rstrip() + b"\n" for _, text in itertools.islice(_observations(file), rows.start, rows.stop))
    while block := list(itertools.islice(own, _LINES)):
        yield block


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


@dataclass(frozen=True)
class _Lines:
    """What the lines of a file are: their number, the query id of each (none where lines have none), the features."""

    rows: int
    queries: list[str]
    first: int  # index of the first feature, 0 or 1
    last: int  # largest index


def _scan(file: Path) -> _Lines:
    """Return what the lines of a file are; either all have a query or none has. Other mistakes are found later."""
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
    return _Lines(count, queries, min(first, last), last)


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
