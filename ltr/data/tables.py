"""Tables of your own, one observation per row: data frames, CSV, TSV, parquet, .npy and .npz files.

=====================  ============================================================================================
suffix                 columns
=====================  ============================================================================================
.csv .txt .dat         named by the header line; the separator is given or detected in that line (, ; tab or |)
.tsv .tab              named by the header line; separated by tabs
.parquet .pq           as stored (needs pyarrow)
.npy                   a structured array: its fields; a plain 2-D array: ``x0``, ``x1``, ... by position
.npz                   each 1-D array by its key; a 2-D array ``X`` gives ``x0``, ``x1``, ..., or the names in an
                       array ``feature_names``
=====================  ============================================================================================

Columns are numbers or booleans, without missing values: other columns are errors unless dropped. Rows are counted
from 1, below the header; blank lines are not rows. The query of each row is a column of numbers or texts, or comes from
a file of query sizes beside the data file, as in LightGBM: beside ``rank.train`` it is ``rank.train.query``, and each
line has the number of rows of the next query, a whole number. These queries are numbered 0, 1, ...
"""

from __future__ import annotations

import csv
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ltr.data.dataset import DataError, Dataset, checked_features, checked_labels, checked_names, checked_queries

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Columns = Mapping[str, Any]
"""Columns by name: each a pandas Series, or anything that NumPy can turn into a 1-D array."""

_TEXT = {".csv": None, ".txt": None, ".dat": None, ".tsv": "\t", ".tab": "\t"}
BINARY_SUFFIXES = (".parquet", ".pq", ".npy", ".npz")
_SEPARATORS = (",", ";", "\t", "|")


def from_frame(
    frame: Any,  # noqa: ANN401 - of any library
    *,
    label: str,
    query: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    name: str = "frame",
) -> Dataset:
    """Return the data set in a frame: pandas, polars, or a dict of columns.

    Args:
        frame: a mapping of columns, or an object with ``columns`` whose names can be used as ``frame[name]``.
        label: the column of the labels: 0 and 1, or grades if there are queries.
        query: the column of the query of each row; None is one list.
        drop: columns to leave out.
        features: the columns to take, in this order; all but label, query and drop by default.
        name: name of the data set, for messages and reports.

    Raises:
        TypeError: an object without columns.
        DataError: as for `ltr.data.read_table`.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"shop": ["a", "a", "b"], "price": [3.0, 2.5, 9.0], "bought": [0, 2, 1]})
        >>> data = from_frame(frame, label="bought", query="shop")
        >>> data.feature_names, data.y.tolist(), data.qid.tolist()
        (('price',), [0, 2, 1], [0, 0, 1])
    """
    if not isinstance(frame, Mapping) and not hasattr(frame, "columns"):
        raise TypeError(f"frame must be a data frame or a mapping of columns, got {type(frame).__name__}")
    names = list(frame) if isinstance(frame, Mapping) else list(frame.columns)
    texts = checked_names([str(column) for column in names], name)
    columns = {text: frame[column] for text, column in zip(texts, names, strict=True)}
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1 or 0 in lengths.values() or not lengths:
        raise DataError(f"{name}: columns must be equally long, with at least one row, got lengths {lengths}")
    return dataset_of(columns, name, name, label=label, query=query, drop=drop, features=features)


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str,
    query: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    separator: str | None = None,
) -> Dataset:
    r"""Return the data set in a table file; the module docstring describes the files and their columns.

    Args:
        path: the file.
        label: the column of the labels: 0 and 1, or grades if there are queries.
        query: the column of the query of each row. Without it, queries come from a file of query sizes beside the
            table; without such a file, all rows are one list.
        drop: columns to leave out.
        features: the columns to take, in this order; all but label, query and drop, in the file's order, by default.
        separator: one character between the fields of a text file.

    Returns:
        The `Dataset`, named after the file.

    Raises:
        DataError: a missing, empty or unreadable file; a column name twice, or one that the file does not have; a
            value that is not a finite number, or a label or query that breaks the rules of `Dataset` (all with their
            row).

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
    """Return features (n, len(features)) and query ids of a table, None without queries."""
    columns = _read(path, separator, texts=query)
    X = features_of(columns, str(path), features)
    return X, queries_beside(path, len(X)) if query is None else ids_of(columns, str(path), query)


def read_texts(path: str | os.PathLike[str], *, separator: str | None = None) -> dict[str, list[str]]:
    r"""Return the fields of a text table by column, unchanged, one for each row of the table.

    Args:
        path: the file.
        separator: one character between the fields.

    Returns:
        The columns in the file's order, with empty fields as ``""``; no columns if the file is not a text table.

    Raises:
        DataError: as for `read_table`.

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


def dataset_of(
    columns: Columns,
    where: str,
    name: str,
    *,
    label: str,
    query: str | None,
    drop: Sequence[str],
    features: Sequence[str] | None,
    queries: NDArray[Any] | None = None,
) -> Dataset:
    """Return the data set in some columns; `queries` has the query of each row if no column does."""
    _require(columns, where, (label,), "label column")
    _require(columns, where, drop, "column to drop")
    roles = {**dict.fromkeys(drop, "dropped"), label: "the label"}
    if query is not None:
        if query in roles:
            raise DataError(f"{where}: query column {query!r} is also {roles[query]}")
        queries = ids_of(columns, where, query)
        roles[query] = "the query"
    if features is None:
        features = [column for column in columns if column not in roles]
        if not features:
            raise DataError(f"{where}: no feature column is left beside the label {label!r}")
    for column in features:
        if column in roles:
            raise DataError(f"{where}: feature column {column!r} is also {roles[column]}")
    X = features_of(columns, where, features)
    labels = _column(where, label, columns[label])
    missing = np.isnan(labels)
    if missing.any():
        row = int(np.argmax(missing)) + 1
        rule = "0 or 1" if queries is None else "whole numbers"
        raise DataError(f"{where}: labels must be {rule}, got a missing value in column {label!r}, row {row}")
    y = checked_labels(labels, len(X), f"{where}: column {label!r}", graded=queries is not None)
    return Dataset(name, X, y, features, queries, copy=False)


def ids_of(columns: Columns, where: str, query: str) -> NDArray[Any]:
    """Return the query ids in a column."""
    _require(columns, where, (query,), "query column")
    ids = np.asarray(columns[query])
    checked_queries(ids, len(ids), f"{where}: column {query!r}")
    return ids


def features_of(columns: Columns, where: str, features: Sequence[str]) -> FloatArray:
    """Return the features in some columns, in this order; one error names all missing columns."""
    names = feature_names(features)
    _require(columns, where, names, "feature column")
    return checked_features(np.column_stack([_column(where, name, columns[name]) for name in names]), names, where)


def feature_names(features: Sequence[str]) -> tuple[str, ...]:
    """Return the requested feature names; raise DataError unless there is at least one and all differ."""
    if isinstance(features, str) or len(features) == 0:
        raise DataError(f"features must be a sequence of at least one column name, got {features!r}")
    return checked_names(features, "features")


def _require(columns: Columns, where: str, names: Sequence[str], role: str) -> None:
    if isinstance(names, str):
        raise DataError(f"{role} must be given as a sequence of names, got the string {names!r}")
    missing = [name for name in names if name not in columns]
    if not missing:
        return
    shown = ", ".join(list(columns)[:20]) + (", ..." if len(columns) > 20 else "")
    hint = "; the first line must hold the column names" if all(is_number(name) for name in columns) else ""
    raise DataError(f"{where}: no {role} {', '.join(map(repr, missing))}; the file has {shown}{hint}")


def _column(where: str, name: str, column: Any) -> FloatArray:  # noqa: ANN401 - Series or array
    """Return a column as float64, missing values as NaN."""
    import pandas as pd

    series = column if isinstance(column, pd.Series) else pd.Series(np.asarray(column))
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    kinds = pd.api.types
    if kinds.is_numeric_dtype(series.dtype) and not kinds.is_complex_dtype(series.dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if not (kinds.is_string_dtype(series.dtype) or kinds.is_object_dtype(series.dtype)):
        raise DataError(f"{where}: column {name!r} must hold numbers, got {series.dtype}")
    values = pd.to_numeric(series, errors="coerce").astype(np.float64)
    bad = (values.isna() & series.notna()).to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{where}: column {name!r} must hold numbers, got {series.iloc[row]!r} in row {row + 1}")
    return values.to_numpy(dtype=np.float64)


def is_number(text: str) -> bool:
    """Return whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def side_file(path: str | os.PathLike[str]) -> Path | None:
    """Return the file of query sizes beside a data file, or None."""
    beside = Path(path)
    beside = beside.with_name(f"{beside.name}.query")
    return beside if beside.is_file() else None


def queries_beside(path: str | os.PathLike[str], rows: int) -> IntArray | None:
    """Return the number of each row's query, (rows,), from the file of sizes beside a data file, None without one.

    Raises:
        DataError: a line that is not a whole number above 0, or sizes that do not add up to the number of rows.
    """
    beside = side_file(path)
    if beside is None:
        return None
    sizes = []
    for number, line in enumerate(beside.read_bytes().splitlines(), start=1):
        text = line.strip()
        if not text:
            continue
        if not text.isdigit() or not 0 < int(text) <= 2**53:
            shown = text[:40].decode("utf-8", errors="replace")
            raise DataError(f"{beside}: query sizes must be whole numbers above 0, got {shown!r} in line {number}")
        sizes.append(int(text))
    if sum(sizes) != rows:
        hint = "; give sizes, not one id per row" if len(sizes) == rows else ""
        raise DataError(f"{beside}: query sizes must add up to the {rows} rows of the data, got {sum(sizes)}{hint}")
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


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
        raise DataError(f"separator must be one character, and is for text files only, got {separator!r} for {path}")
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
            # otherwise fields beyond the header would silently be dropped or taken as row labels
            warnings.simplefilter("error", pd.errors.ParserWarning)
            options: dict[str, Any] = {"index_col": False, "skipinitialspace": True, "low_memory": False}
            if as_text:
                options |= {"dtype": str, "na_filter": False}
            elif texts in names:
                options |= {"converters": {texts: str.strip}}  # ids stay unchanged: 007 is not 7, NA is an id
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
    """Return the number of the first line that is not blank, and the line; an empty one at the end of the file."""
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
