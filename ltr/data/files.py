"""Data files of both kinds, tables and sparse text, told apart by suffix and content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from ltr.data.dataset import DataError, Dataset, Features
from ltr.data.svmlight import DtypeName, looks_like_svmlight, read_svmlight, read_svmlight_rows
from ltr.data.table_files import BINARY_SUFFIXES
from ltr.data.tables import read_table, read_table_rows
from ltr.files import has_text

FormatName = Literal["auto", "table", "svmlight"]
"""Formats of data files; with auto, suffix and content of the file decide."""


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
    cache: bool = True,
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
        cache: whether to cache the parsed content of a large sparse file.
        dtype: type of the features of a sparse file, as for `read_svmlight`; those of a table are as it has them.
        part: rank of a process and number of processes, to keep the rows of that process alone: whole queries.

    Raises:
        DataError: a file or an option that breaks the rules of its reader.
    """
    if is_table(path, format):
        if label is None:
            raise DataError(f"{path}: a table needs the name of its label column, got none")
        return read_table(path, label=label, query=query, drop=drop, features=features, part=part)
    for name, given in (("label", label), ("query", query), ("drop", list(drop))):
        if given:
            raise DataError(f"{path}: {name} is for tables only, a sparse file has no columns by name; got {given!r}")
    return read_svmlight(path, features=features, cache=cache, dtype=dtype, part=part)


def read_rows(
    path: str | os.PathLike[str],
    features: Sequence[str],
    *,
    format: FormatName = "auto",  # noqa: A002
    query: str | None = None,
    separator: str | None = None,
    cache: bool = True,
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
        cache: as for `read_data`.
        dtype: as for `read_data`.

    Raises:
        DataError: as `read_data`.
    """
    if is_table(path, format):
        return read_table_rows(path, features, query=query, separator=separator)
    if separator is not None:
        raise DataError(f"{path}: separator is for tables only, got {separator!r}")
    return read_svmlight_rows(path, features, cache=cache, dtype=dtype)


def is_table(path: str | os.PathLike[str], name: FormatName) -> bool:
    """Return whether a file is a table."""
    if name not in get_args(FormatName):
        raise DataError(f"format must be one of {', '.join(get_args(FormatName))}, got {name!r}")
    return (format_of(path) if name == "auto" else name) == "table"
