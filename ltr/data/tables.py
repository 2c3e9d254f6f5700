"""A user's own tables: CSV, TSV, parquet, .npy and .npz, one observation a row.

=====================  ============================================================================================
suffix                 columns
=====================  ============================================================================================
.csv .txt .dat         named by the header line; the separator is given, or found in that line (, ; tab or |)
.tsv .tab              named by the header line; separated by tabs
.parquet .pq           as stored (needs pyarrow)
.npy                   a structured array: its fields; a plain 2-D array: ``x0``, ``x1``, ... by position
.npz                   each 1-D array by its key; a 2-D array ``X`` gives ``x0``, ``x1``, ..., or the names in an
                       array ``feature_names``
=====================  ============================================================================================

Columns are numbers or booleans, without missing values: other columns are errors unless dropped. Rows are counted
from 1, below the header; blank lines are not rows. The query of each row is a column of numbers or texts, or stands in
a file of sizes beside the table (`ltr.data.queries`).
"""

from __future__ import annotations

import csv
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ltr.data.dataset import DataError, Dataset, checked_names
from ltr.data.frames import Columns, dataset_of, features_of, ids_of
from ltr.data.queries import queries_beside

__all__ = ["BINARY_SUFFIXES", "read_table", "read_table_rows", "read_texts"]

FloatArray = NDArray[np.float64]

_TEXT = {".csv": None, ".txt": None, ".dat": None, ".tsv": "\t", ".tab": "\t"}
BINARY_SUFFIXES = (".parquet", ".pq", ".npy", ".npz")
_SEPARATORS = (",", ";", "\t", "|")


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str,
    query: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    separator: str | None = None,
) -> Dataset:
    r"""A labelled table from a file; the module says which files and which columns they have.

    Args:
        path: the file.
        label: the column of the labels, 0 and 1, with queries grades.
        query: the column of the query of each row. Without it, a file of query sizes beside the table, if there is
            one, tells the queries; else all rows are one list.
        drop: columns to leave out.
        features: the columns to take, in this order; all but label, query and drop, in the file's order, by default.
        separator: one character between the fields of a text file.

    Returns:
        the `Dataset`, named after the file.

    Raises:
        DataError: a missing, empty or unreadable file; a column name twice, or one that the file does not have; a
            value that is not a finite number, a label or query against the rules of `Dataset` (all with their row).

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "machines.csv")
        ...     _ = path.write_text("id;hours;failed\n7;10.5;0\n8;99;1\n")
        ...     data = read_table(path, label="failed", drop=["id"])
        >>> data.name, data.feature_names, data.X.tolist(), data.y.tolist()
        ('machines', ('hours',), [[10.5], [99.0]], [0, 1])
    """
    columns = _read(path, separator, texts=query)
    beside = queries_beside(path, len(next(iter(columns.values())))) if query is None else None
    return dataset_of(
        columns, str(path), Path(path).stem, label=label, query=query, drop=drop, features=features, queries=beside
    )


def read_table_rows(
    path: str | os.PathLike[str], features: Sequence[str], *, query: str | None, separator: str | None
) -> tuple[FloatArray, NDArray[Any] | None]:
    """Return features (n, len(features)) and query ids of a table, None where no place tells the queries."""
    columns = _read(path, separator, texts=query)
    X = features_of(columns, str(path), features)
    return X, queries_beside(path, len(X)) if query is None else ids_of(columns, str(path), query)


def read_texts(path: str | os.PathLike[str], *, separator: str | None = None) -> dict[str, list[str]]:
    r"""The fields of a text table by column, as they stand there, one for each row of the table.

    Args:
        path: the file.
        separator: one character between the fields.

    Returns:
        the columns in the file's order, empty fields as ``""``; no columns where the file is not a text table.

    Raises:
        DataError: as `read_table`.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "machines.csv")
        ...     _ = path.write_text("id,hours\n007,1.50\n \n008,\n")
        ...     read_texts(path)
        {'id': ['007', '008'], 'hours': ['1.50', '']}
    """
    if Path(path).suffix.lower() not in _TEXT:
        return {}
    columns = _read(path, separator, as_text=True)
    return {name: column.tolist() for name, column in columns.items()}


def _read(
    path: str | os.PathLike[str], separator: str | None, *, as_text: bool = False, texts: str | None = None
) -> Columns:
    file = Path(path)
    if not file.is_file():
        raise DataError(f"{path}: {'is not a file' if file.exists() else 'no such file'}")
    if file.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty")
    suffix = file.suffix.lower()
    if separator is not None and (suffix not in _TEXT or len(separator) != 1):
        raise DataError(f"separator must be one character and goes with text files, got {separator!r} for {path}")
    if suffix in _TEXT:
        columns = _read_text(file, separator or _TEXT[suffix], as_text=as_text, texts=texts)
    elif suffix in (".parquet", ".pq"):
        columns = _read_parquet(file)
    elif suffix in BINARY_SUFFIXES:
        columns = _read_numpy(file)
    else:
        raise DataError(f"{path}: unknown file type {suffix!r}; known are {' '.join((*_TEXT, *BINARY_SUFFIXES))}")
    if any(len(column) == 0 for column in columns.values()) or not columns:
        raise DataError(f"{path}: the table has no rows")
    return columns


def _read_text(file: Path, separator: str | None, *, as_text: bool, texts: str | None) -> Columns:
    import pandas as pd

    try:
        with file.open(encoding="utf-8-sig", newline="") as stream, warnings.catch_warnings():
            above, header = _header(stream)
            if not header:
                raise DataError(f"{file}: the file is empty")
            if separator is None:
                separator = max(_SEPARATORS, key=lambda mark: len(_fields(header, mark)))
            names = checked_names(_fields(header, separator), str(file))
            # else fields beyond the header would be dropped, or taken as row labels, without a word
            warnings.simplefilter("error", pd.errors.ParserWarning)
            options: dict[str, Any] = {"index_col": False, "skipinitialspace": True, "low_memory": False}
            if as_text:
                options |= {"dtype": str, "na_filter": False}
            elif texts in names:
                options |= {"converters": {texts: str.strip}}  # ids stay as they stand there: 007 is not 7, NA an id
            frame = pd.read_csv(stream, sep=separator, header=None, names=list(names), **options)
            if not as_text and texts in names:
                frame[texts] = frame[texts].replace("", None)
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: must be UTF-8 text, got byte {error.object[error.start]:#x}") from None
    except pd.errors.ParserWarning:
        raise DataError(f"{file}: rows have more fields than the {len(names)} of the header") from None
    except pd.errors.ParserError as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found is None:
            raise DataError(f"{file}: not a table separated by {separator!r}: {str(error).strip()}") from None
        line = int(found[2]) + above
        raise DataError(f"{file}: line {line} has {found[3]} fields, the header {found[1]}") from None
    return {name: frame[name] for name in names}


def _header(stream: TextIO) -> tuple[int, str]:
    """The first line that is not blank, and the lines up to it; an empty string at the end of the file."""
    for number, line in enumerate(iter(stream.readline, ""), start=1):
        if line.strip():
            return number, line
    return 0, ""


def _fields(line: str, separator: str) -> list[str]:
    return [field.strip() for field in next(csv.reader([line], delimiter=separator, skipinitialspace=True))]


def _read_parquet(file: Path) -> Columns:
    import pandas as pd

    try:
        frame = pd.read_parquet(file)
    except ImportError:
        raise DataError(f"{file}: reading parquet needs pyarrow; install ltr[parquet]") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: not a parquet file: {str(error).strip()}") from None
    names = checked_names([str(name) for name in frame.columns], str(file))
    return {name: frame.iloc[:, j] for j, name in enumerate(names)}


def _read_numpy(file: Path) -> Columns:
    try:
        content = np.load(file, allow_pickle=False)
        arrays = {"X": content} if isinstance(content, np.ndarray) else {key: content[key] for key in content.files}
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{file}: not an array file: {str(error).strip()}") from None
    if file.suffix.lower() == ".npy" and arrays["X"].dtype.names:
        table = arrays["X"]
        return {name: table[name] for name in checked_names(table.dtype.names, str(file))}
    given = arrays.pop("feature_names", None)
    columns: dict[str, Any] = {}
    for key, array in arrays.items():
        if array.ndim == 1 and file.suffix.lower() == ".npz":
            columns[key] = array
        elif array.ndim == 2 and key == "X":
            names = [f"x{j}" for j in range(array.shape[1])] if given is None else [str(v) for v in np.ravel(given)]
            if len(names) != array.shape[1]:
                raise DataError(f"{file}: {len(names)} feature_names for the {array.shape[1]} columns of X")
            clash = [name for name in names if name in arrays and name != "X"]
            if clash:
                raise DataError(f"{file}: column names must differ, got {clash[0]!r} in feature_names and as an array")
            columns.update(zip(checked_names(names, str(file)), array.T, strict=True))
        else:
            rule = "1-D columns and a 2-D X" if file.suffix.lower() == ".npz" else "a structured or 2-D array"
            raise DataError(f"{file}: must hold {rule}, got {key!r} of shape {array.shape}")
    for name, column in columns.items():
        if len(column) != len(next(iter(columns.values()))):
            raise DataError(f"{file}: columns must be equally long, got {len(column)} rows in column {name!r}")
    return columns
