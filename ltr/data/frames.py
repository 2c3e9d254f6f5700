"""Columns that are in memory already: pandas and polars frames, dicts of arrays; and what is read from files.

Columns are numbers or booleans, without missing values: other columns are errors unless dropped. A query is a column
of integers or texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.dataset import DataError, Dataset, checked_features, checked_labels, checked_names, checked_queries

__all__ = ["Columns", "dataset_of", "feature_names", "features_of", "from_frame", "ids_of", "is_number"]

FloatArray = NDArray[np.float64]
Columns = Mapping[str, Any]
"""A column by name: a pandas Series, or anything that NumPy makes a 1-D array of."""


def from_frame(
    frame: Any,  # noqa: ANN401 - of any library
    *,
    label: str,
    query: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    name: str = "frame",
) -> Dataset:
    """A labelled table from a frame: pandas, polars, or a dict of columns.

    Args:
        frame: anything with ``columns`` whose names ``frame[name]`` takes, or a mapping.
        label: the column of the labels, 0 and 1, with queries grades.
        query: the column of the query of each row; None is one list.
        drop: columns to leave out.
        features: the columns to take, in this order; all but label, query and drop by default.
        name: of the data set, for messages and reports.

    Raises:
        TypeError: something without columns.
        DataError: as `ltr.data.read_table`.

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
    """Return the data set in some columns, with `queries` for each row where no column tells them."""
    _require(columns, where, (label,), "label column")
    _require(columns, where, drop, "column to drop")
    roles = {**dict.fromkeys(drop, "dropped"), label: "the label"}
    if query is not None:
        _require(columns, where, (query,), "query column")
        if query in roles:
            raise DataError(f"{where}: query column {query!r} is also {roles[query]}")
        roles[query] = "the query"
    if features is None:
        features = [column for column in columns if column not in roles]
        if not features:
            raise DataError(f"{where}: no feature column is left beside the label {label!r}")
    for column in features:
        if column in roles:
            raise DataError(f"{where}: feature column {column!r} is also {roles[column]}")
    X = features_of(columns, where, features)
    if query is not None:
        queries = ids_of(columns, where, query)
    labels = _column(where, label, columns[label])
    missing = np.isnan(labels)
    if missing.any():
        row = int(np.argmax(missing)) + 1
        rule = "0 or 1" if queries is None else "whole numbers"
        raise DataError(f"{where}: labels must be {rule}, got a missing value in column {label!r}, row {row}")
    y = checked_labels(labels, len(X), f"{where}: column {label!r}", graded=queries is not None)
    return Dataset(name, X, y, features, queries, copy=False)


def ids_of(columns: Columns, where: str, query: str) -> NDArray[Any]:
    """The query ids in a column."""
    _require(columns, where, (query,), "query column")
    ids = np.asarray(columns[query])
    checked_queries(ids, len(ids), f"{where}: column {query!r}")
    return ids


def features_of(columns: Columns, where: str, features: Sequence[str]) -> FloatArray:
    """The features in some columns, in this order; all missing columns are named at once."""
    names = feature_names(features)
    _require(columns, where, names, "feature column")
    return checked_features(np.column_stack([_column(where, name, columns[name]) for name in names]), names, where)


def feature_names(features: Sequence[str]) -> tuple[str, ...]:
    """The names of features asked for: at least one, each once."""
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
    """A column as float64, missing values as NaN."""
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
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
