"""Data sets of your own: tables (CSV, TSV, parquet, Excel) and sparse text.

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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltr.data.columns import Column, matrix_of
from ltr.data.dataset import DataError, Dataset, Features, checked_features, checked_queries
from ltr.data.forms import NumberForm
from ltr.data.kinds import Kind, kind_of
from ltr.data.problems import TableError, unknown
from ltr.data.raw_table import Roles, feature_names, read_roles, table_of
from ltr.data.svmlight import DtypeName, looks_like_svmlight, read_svmlight, read_svmlight_rows
from ltr.data.table_files import (
    BINARY_SUFFIXES,
    Columns,
    Reading,
    TablePath,
    files_of,
    queries_beside,
    read_file,
)
from ltr.files import has_text

FloatArray = NDArray[np.float64]
FormatName = Literal["auto", "table", "svmlight"]
"""Formats of data files; with auto, suffix and content of the file decide."""


def read_table(
    path: TablePath,
    *,
    label: str,
    positive: object = None,
    query: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    separator: str | None = None,
) -> Dataset:
    r"""Return the data set in a table file, named after it; the module docstring describes files and columns.

    Args:
        path: the file; a folder of parquet files, or a sequence of them, whose rows follow each other.
        label: the column of the labels: 0 and 1, yes and no, or grades if there are queries.
        positive: the label of positives, of any two or more; None for the labels above.
        query: the column of the query of each row. Without it, queries come from a file of query sizes beside the
            table; without such a file, all rows are one list.
        drop: columns to leave out.
        features: the columns to take, in this order; all others, in the file's order, by default.
        separator: one character between the fields of a text file.

    Raises:
        DataError: a file that cannot be read, columns that it lacks, values that are not finite numbers, or labels or
            queries that break the rules of `Dataset`, with their row.

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
    file, beside = read_roles(path, roles, Reading(separator))
    numbers = dict.fromkeys(file.columns, Kind("number"))
    table = table_of(file.columns, str(path), roles, queries=beside, kinds=numbers)
    table.check()
    X = features_of(table.columns, str(path), list(table.columns))
    return Dataset(name, X, table.y, list(table.columns), table.queries, copy=False)


def ids_of(columns: Columns, where: str, query: str) -> NDArray[Any]:
    """Return the query ids in a column."""
    if query not in columns:
        raise TableError(where, [unknown("query column", query, columns)])
    ids = np.asarray(columns[query])
    checked_queries(ids, len(ids), f"{where}: column {query!r}")
    return ids


def features_of(columns: Columns, where: str, features: Sequence[str], form: NumberForm | None = None) -> Features:
    """Return the features in some columns, in this order; one error names all missing columns.

    `where` is the file or frame, for errors; `form` says how texts are numbers, which is found out by default.
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
    kind = kind_of(column, "number")
    if kind.problem is not None:
        raise DataError(f"{where}: {kind.problem.text}")
    numbers = kind.read(column).numbers
    assert numbers is not None
    return numbers


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
) -> Dataset:
    """Return the labelled observations of a file, in one list or by query.

    Args:
        path: the file.
        format: ``"table"`` (`read_table`), ``"svmlight"`` (`read_svmlight`), or ``"auto"`` to find out.
        label, query, drop: as for `read_table`, for tables only, which need a label.
        features: the features to take; all by default.
        dtype: type of the features of a sparse file, as for `read_svmlight`.

    Raises:
        DataError: a file or an option that breaks the rules of its reader.
    """
    if is_table(path, format):
        if label is None:
            raise DataError(f"{path}: a table needs the name of its label column, got none")
        return read_table(path, label=label, query=query, drop=drop, features=features)
    for name, given in (("label", label), ("query", query), ("drop", list(drop))):
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

    A table must have all features, in a sparse file missing ones are 0. Arguments and errors are those of `read_data`;
    a sparse file has its own query ids.
    """
    if is_table(path, format):
        columns = read_file(path, Reading(separator), ids=query, is_feature=set(features).__contains__).columns
        X = features_of(columns, str(path), features)
        return X, queries_beside(path, len(X)) if query is None else ids_of(columns, str(path), query)
    if separator is not None:
        raise DataError(f"{path}: separator is for tables only, got {separator!r}")
    return read_svmlight_rows(path, features, dtype=dtype)


def is_table(path: str | os.PathLike[str], name: FormatName) -> bool:
    """Return whether a file is a table."""
    if name not in get_args(FormatName):
        raise DataError(f"format must be one of {', '.join(get_args(FormatName))}, got {name!r}")
    return (format_of(path) if name == "auto" else name) == "table"
