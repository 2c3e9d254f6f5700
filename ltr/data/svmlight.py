r"""Sparse text files: svmlight, libsvm and LETOR.

Each line is an observation, ``label [qid:ID] index:value index:value ... # comment``; indices ascend, and features that
are not given are 0. Blank lines and comments are skipped.

* A feature is named after its index, ``f1``, ``f2``, ..., from 0 or 1 (as the smallest index of the file has it) to the
  largest index. If features are requested by name, those that the file does not have are 0.
* Queries are given by the ``qid:`` of the lines (any texts, in any order), or by sizes in a file beside it
  (`ltr.data.tables`).
* Without queries labels are 0 and 1, or libsvm's -1 and +1.

Features are stored as dense float64, as all other code expects them; a file that would take more than 4 GB is rejected.
The parsed content of a large file is cached (`ltr.data.cache`).
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ltr.data.cache import Arrays, cached
from ltr.data.dataset import DataError, Dataset, Features, checked_features
from ltr.data.raw_table import feature_names
from ltr.data.table_files import is_number, queries_beside
from ltr.files import LARGEST, missing_file

FloatArray = NDArray[np.float64]

_PARSER = "svmlight-1"
_LARGEST_INDEX = 2**31 - 1
_NAME = re.compile(r"f(0|[1-9]\d{0,9})")
_LINE = re.compile(rb"[-+.\d][-+.\deE]*(\s+qid:\S+)?(\s+\d+:\S+)+")


def looks_like_svmlight(path: str | os.PathLike[str]) -> bool:
    """Return whether the first line that is neither blank nor a comment has the form of an observation."""
    return any(_LINE.fullmatch(text.strip()) for _, text in itertools.islice(_observations(Path(path)), 1))


def glimpse_svmlight(path: str | os.PathLike[str], lines: int = 10_000) -> tuple[bool, float]:
    """Return whether the first lines of a file have a ``qid:``, and their largest label (minus infinity without one).

    This takes a moment where reading the whole file takes minutes. Malformed lines are skipped: reading the file
    reports them.
    """
    queries, largest = False, -math.inf
    for _, text in itertools.islice(_observations(Path(path)), lines):
        label, *rest = text.decode("utf-8", errors="replace").split(None, 2)
        if is_number(label):
            largest = max(largest, float(label))
            queries = queries or "".join(rest[:1]).startswith("qid:")
    return queries, largest


def read_svmlight(
    path: str | os.PathLike[str], *, features: Sequence[str] | None = None, cache: bool = True
) -> Dataset:
    r"""Return the labelled observations of a file.

    Args:
        path: the file.
        features: the features to take, such as those of the training file for a test file; all by default.
        cache: whether to cache the parsed content of a large file, and to read it from the cache.

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
    X, labels, names, queries = _read(path, features, cache)
    if queries is None and set(np.unique(labels)) <= {-1.0, 1.0}:
        labels = (labels > 0).astype(np.float64)
    return Dataset(Path(path).stem, X, labels, names, queries, copy=False)


def read_svmlight_rows(
    path: str | os.PathLike[str], features: Sequence[str], *, cache: bool = True
) -> tuple[Features, NDArray[Any] | None]:
    """Return the features, (n, len(features)), and query ids (or None) of a file, whatever its labels are."""
    X, _, names, queries = _read(path, features, cache)
    return checked_features(X, names, str(path)), queries


def _read(
    path: str | os.PathLike[str], features: Sequence[str] | None, cache: bool
) -> tuple[FloatArray, FloatArray, list[str], NDArray[Any] | None]:
    """Return features, labels, names of the features, and query ids (or None)."""
    file = Path(path)
    if not file.is_file():
        raise DataError(f"{path}: {missing_file(file)}")
    asked = None if features is None else list(feature_names(features))
    if foreign := [name for name in asked or () if not _NAME.fullmatch(name)]:
        raise DataError(f"{path}: features of sparse text are named f0, f1, ..., it has no {foreign[0]!r}")
    parsed = cached(file, _PARSER, lambda: _parse(file)) if cache else _parse(file)
    labels, indices, indptr = parsed["labels"], parsed["indices"], parsed["indptr"]
    used = np.unique(indices)
    first, last = (0, 0) if len(used) == 0 else (min(1, int(used[0])), int(used[-1]))
    width = last + 1 - first if asked is None else len(asked)
    size = 8.0 * len(labels) * width
    if size > LARGEST:
        shape = f"{len(labels)} rows of {width} features"
        limit = f"the limit is {LARGEST / 1e9:g} GB"
        raise DataError(f"{path}: {shape} would take {size / 1e9:.1f} GB as dense float64, {limit}; take fewer of them")
    names = [f"f{j}" for j in range(first, last + 1)] if asked is None else asked
    column_of = {int(name[1:]): column for column, name in enumerate(names)}
    columns = np.array([column_of.get(int(index), -1) for index in used], dtype=np.int64)
    place = columns[np.searchsorted(used, indices)]
    rows = np.repeat(np.arange(len(labels)), np.diff(indptr))
    X = np.zeros((len(labels), width))
    X[rows[place >= 0], place[place >= 0]] = parsed["values"][place >= 0]
    ids, beside = parsed["queries"], queries_beside(file, len(labels))
    if len(ids) > 0 and beside is not None:
        sizes = f"{file.name}.query"
        raise DataError(f"{file}: queries must come from one place, got qid: in its lines and {sizes} beside it")
    return X, labels, names, ids if len(ids) > 0 else beside


def _parse(file: Path) -> Arrays:
    """Return the labels, the query ids (none where lines have none), and the features in compressed rows."""
    from sklearn.datasets import load_svmlight_file

    queries = _query_texts(file)
    try:
        with _opened(file) as lines:
            X, labels = load_svmlight_file(lines, dtype=np.float64, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{file}: {_first_mistake(file) or error}") from None
    if len(labels) == 0:
        raise DataError(f"{file}: the file contains no observations")
    return {
        "labels": labels,
        "queries": np.array(queries, dtype=str),
        "values": X.data,
        "indices": X.indices,
        "indptr": X.indptr.astype(np.int64),
    }


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


def _query_texts(file: Path) -> list[str]:
    """Return the query id of each observation; either all have one or none has."""
    found: list[str] = []
    for count, (number, text) in enumerate(_observations(file), start=1):
        tokens = text.split(None, 2)
        if len(tokens) > 1 and tokens[1].startswith(b"qid:"):
            found.append(tokens[1][4:].decode("utf-8", errors="replace"))
            if not found[-1]:
                raise DataError(f"{file}: qid: must be followed by an id, got none in line {number}")
        if len(found) not in (0, count):
            raise DataError(f"{file}: all lines must have a qid: or none, got line {number} unlike those before")
    return found


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
