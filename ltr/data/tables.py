"""Data sets of your own: data frames, tables (CSV, TSV, parquet, Excel) and sparse text.

Tables have one observation per row. Sparse text (`ltr.data.svmlight`) is told from them by suffix and content.

=====================  ============================================================================================
suffix                 columns
=====================  ============================================================================================
.csv .txt .dat         named by the header line; the separator is given or detected in that line (, ; tab or |)
.tsv .tab              named by the header line; separated by tabs
.parquet .pq           as stored (needs pyarrow); a folder of such files is one table
.xlsx                  the first sheet of a workbook, named by its first row (needs openpyxl)
=====================  ============================================================================================

Text may be UTF-8, UTF-16 or Latin-1, and numbers may have decimal commas. A first column without a name that numbers
the rows is left out. Rows are counted from 1, below the header; blank lines are not rows. The query of each row is a
column of numbers or texts, or comes from a file of query sizes beside the data file, as in LightGBM: beside
``rank.train`` it is ``rank.train.query``, and each line has the number of rows of the next query, a whole number. These
queries are numbered 0, 1, ...

Features here are columns of numbers or booleans without missing values: other columns are errors unless dropped. They
are float32 where that is their common type, as in a parquet file of such columns, which is read piece by piece into the
matrix that the data set keeps.
`ltr.data.TablePreparation` turns columns of all kinds into such features.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltr.data.columns import Column, matrix_of
from ltr.data.dataset import DataError, Dataset, Features, checked_features, checked_names, checked_queries
from ltr.data.forms import NumberForm
from ltr.data.kinds import Kind
from ltr.data.problems import TableError, unknown
from ltr.data.raw_table import Roles, feature_names, features_of_roles, read_roles, table_of
from ltr.data.shares import check_part, rows_of_part
from ltr.data.svmlight import DtypeName, looks_like_svmlight, read_svmlight, read_svmlight_rows
from ltr.data.table_files import (
    BINARY_SUFFIXES,
    Columns,
    TablePath,
    files_of,
    parquet_column,
    queries_beside,
    read_file,
)
from ltr.data.table_text import Reading
from ltr.files import has_text

FloatArray = NDArray[np.float64]
FormatName = Literal["auto", "table", "svmlight"]
"""Formats of data files; with auto, suffix and content of the file decide."""


def from_frame(
    frame: Any,  # noqa: ANN401 - of any library
    *,
    label: Hashable,
    positive: object = None,
    query: Hashable | None = None,
    drop: Sequence[Hashable] = (),
    features: Sequence[Hashable] | None = None,
    name: str = "frame",
) -> Dataset:
    """Return the data set in a frame: pandas, polars, or a dict of columns.

    Args:
        frame: a mapping of columns, or an object with ``columns`` whose names can be used as ``frame[name]``.
        label: the column of the labels: 0 and 1, yes and no, or grades if there are queries.
        positive: the label of positives, of any two or more; None for the labels above.
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

    def as_texts(given: Any) -> Any:  # noqa: ANN401 - names, or a single one, which is an error
        return given if given is None or isinstance(given, str) else list(map(str, given))

    roles = Roles(str(label), positive, None if query is None else str(query), as_texts(drop), as_texts(features))
    return dataset_of(columns, name, name, roles)


def read_table(
    path: TablePath,
    *,
    label: str,
    positive: object = None,
    query: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    separator: str | None = None,
    part: tuple[int, int] | None = None,
) -> Dataset:
    r"""Return the data set in a table file; the module docstring describes the files and their columns.

    Args:
        path: the file; a folder of parquet files, or a sequence of them, whose rows follow each other.
        label: the column of the labels: 0 and 1, yes and no, or grades if there are queries.
        positive: the label of positives, of any two or more; None for the labels above.
        query: the column of the query of each row. Without it, queries come from a file of query sizes beside the
            table; without such a file, all rows are one list.
        drop: columns to leave out.
        features: the columns to take, in this order; all but label, query and drop, in the file's order, by default.
        separator: one character between the fields of a text file.
        part: rank of a process and number of processes, to read that share of the rows of parquet files alone: whole
            queries, about as many rows for each. Rows of a query must follow each other, and labels be whole numbers.
            None reads all rows.

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
    roles = Roles(label, positive, query, drop, features)
    name = Path(path).stem if isinstance(path, str | os.PathLike) else files_of(path)[0].stem
    if part is not None:
        return _share(path, name, roles, check_part(part))
    file, beside = read_roles(path, roles, Reading(separator))
    return dataset_of(file.columns, str(path), name, roles, queries=beside)


def _share(path: TablePath, name: str, roles: Roles, part: tuple[int, int]) -> Dataset:
    """Return the rows of one of several processes; `part` is its rank and the number of processes."""
    if roles.positive is not None:
        raise DataError(f"{path}: positive is for whole tables, the labels of a part must be numbers")
    count, ids = parquet_column(path, roles.query)
    ids = queries_beside(path, count) if roles.query is None else ids
    rows = slice(*rows_of_part(ids, count, part, str(path)))
    columns = read_file(path, is_feature=roles.may_be_feature, rows=rows).columns
    features, problems = features_of_roles(columns, roles)
    if problems:
        raise TableError(str(path), problems, given={"drop": roles.drop})
    y, *found = (_column(str(path), one, columns[one], None) for one in (str(roles.label), *features))
    return Dataset(name, matrix_of(found), y, features, ids, copy=False, rows=rows)


def read_table_rows(
    path: str | os.PathLike[str], features: Sequence[str], *, query: str | None, separator: str | None
) -> tuple[Features, NDArray[Any] | None]:
    """Return features (n, len(features)) and query ids of a table, None without queries."""
    columns = read_file(path, Reading(separator), ids=query, is_feature=set(features).__contains__).columns
    X = features_of(columns, str(path), features)
    return X, queries_beside(path, len(X)) if query is None else ids_of(columns, str(path), query)


def dataset_of(
    columns: Columns,
    where: str,
    name: str,
    roles: Roles,
    *,
    queries: NDArray[Any] | None = None,
) -> Dataset:
    """Return the data set in some columns; `queries` has the query of each row if no column does."""
    numbers = dict.fromkeys(columns, Kind("number"))
    table = table_of(columns, where, roles, queries=queries, kinds=numbers)
    table.check()
    features = list(table.columns)
    X = features_of(table.columns, where, features)
    return Dataset(name, X, table.y, features, table.queries, copy=False)


def ids_of(columns: Columns, where: str, query: str) -> NDArray[Any]:
    """Return the query ids in a column."""
    if query not in columns:
        raise TableError(where, [unknown("query column", query, columns)])
    ids = np.asarray(columns[query])
    checked_queries(ids, len(ids), f"{where}: column {query!r}")
    return ids


def features_of(columns: Columns, where: str, features: Sequence[str], form: NumberForm | None = None) -> Features:
    """Return the features in some columns, in this order; one error names all missing columns.

    Args:
        columns: the columns by name.
        where: path of the file, or name of the frame, for errors.
        features: names of the features.
        form: how texts are numbers; found out by default.
    """
    names = feature_names(features)
    absent = [name for name in names if name not in columns]
    if absent:
        raise TableError(where, [unknown("feature column", absent, columns)])
    return checked_features(matrix_of([_column(where, name, columns[name], form) for name in names]), names, where)


def _column(where: str, name: str, values: Any, form: NumberForm | None) -> NDArray[Any]:  # noqa: ANN401 - Series or array
    """Return a column as it is stored, or as float64, missing values as NaN."""
    column = values if isinstance(values, Column) else Column(name, values, form=form)
    if (stored := column.stored) is not None:
        return stored
    if column.form is not None and column.form.unit:
        column = column.read_as(NumberForm("."))
    if column.nested:
        raise DataError(f"{where}: {column.nested}")
    if column.durations or column.date_forms():
        raise DataError(f"{where}: column {name!r} must hold numbers, got dates or durations")
    if column.ambiguous:
        rule = f"must hold numbers that can be read in one way, got {column.ambiguous!r}"
        raise DataError(f"{where}: column {name!r} {rule}: write it without a mark for thousands")
    if column.numbers is None:
        row, cell = column.not_a_number
        raise DataError(f"{where}: column {name!r} must hold numbers, got {cell!r} in row {row}")
    return column.numbers


def format_of(path: str | os.PathLike[str]) -> FormatName:
    """Return ``"svmlight"`` for a file whose first row reads ``label [qid:ID] index:value``, else ``"table"``."""
    file = Path(path)
    if file.suffix.lower() in BINARY_SUFFIXES or not has_text(file):
        return "table"
    return "svmlight" if looks_like_svmlight(file) else "table"


def read_data(
    path: str | os.PathLike[str],
    *,
    format: FormatName = "auto",  # noqa: A002 - its name in configs
    label: str | None = None,
    query: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    dtype: DtypeName = "auto",
    part: tuple[int, int] | None = None,
) -> Dataset:
    """Return the labelled observations of a file, in one list or by query.

    Args:
        path: the file.
        format: ``"table"`` (`read_table`), ``"svmlight"`` (`read_svmlight`), or ``"auto"`` to find out.
        label: the label column; required for tables, and for them only.
        query: the query column, for tables only.
        drop: columns to leave out, for tables only.
        features: the features to take; all by default.
        dtype: type of the features of a sparse file, as for `read_svmlight`; those of a table are as it has them.
        part: rank of a process and number of processes, to read its share of parquet files alone, see `read_table`.

    Raises:
        DataError: a file or an option that breaks the rules of its reader.
    """
    if is_table(path, format):
        if label is None:
            raise DataError(f"{path}: a table needs the name of its label column, got none")
        return read_table(path, label=label, query=query, drop=drop, features=features, part=part)
    for name, given in (("label", label), ("query", query), ("drop", list(drop)), ("part", part)):
        if given:
            raise DataError(f"{path}: {name} is for tables only, a sparse file has no columns by name; got {given!r}")
    return read_svmlight(path, features=features, dtype=dtype)


def read_rows(
    path: str | os.PathLike[str],
    features: Sequence[str],
    *,
    format: FormatName = "auto",  # noqa: A002
    query: str | None = None,
    separator: str | None = None,
    dtype: DtypeName = "auto",
) -> tuple[Features, NDArray[Any] | None]:
    """Return the features, (n, len(features)), and query ids (or None) of a file to predict on.

    Args:
        path: the file.
        features: the features to take, in this order; a table must have them all, in a sparse file missing ones are
            0. Others are ignored.
        format: as for `read_data`.
        query: the query column of a table; a sparse file has its own query ids.
        separator: one character between the fields of a text table.
        dtype: as for `read_data`.

    Raises:
        DataError: as `read_data`.
    """
    if is_table(path, format):
        return read_table_rows(path, features, query=query, separator=separator)
    if separator is not None:
        raise DataError(f"{path}: separator is for tables only, got {separator!r}")
    return read_svmlight_rows(path, features, dtype=dtype)


def is_table(path: str | os.PathLike[str], name: FormatName) -> bool:
    """Return whether a file is a table."""
    if name not in get_args(FormatName):
        raise DataError(f"format must be one of {', '.join(get_args(FormatName))}, got {name!r}")
    return (format_of(path) if name == "auto" else name) == "table"
