"""The rows of an experiment as the data have them: texts, missing values, and columns that are no features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ltr.data import Table, read_raw_table
from ltr.data.columns import Column
from ltr.data.kinds import Kind
from ltr.list_demands import ListDemand
from trainers.config.sections import DataConfig
from trainers.task.data import Part, Split

Raw: TypeAlias = Mapping[str, Column] | pd.DataFrame
"""Columns of some rows by name, which a card may ask about."""


def read_labelled(options: DataConfig) -> Table:
    """Read a table for ``ltr card``: its labels may be graded, which those of a run without queries are not."""
    return read_raw_table(str(options.path), replace(options.roles, graded=True), options.reading).check()


def raw_columns(split: Split) -> tuple[Raw, Raw]:
    """Return the columns that a card may ask about, of the training set and of the test set."""
    if split.tables is None:
        train, test = (pd.DataFrame(part.X, columns=list(split.feature_names)) for _, part in split.parts)
        return train, test
    kinds = split.tables[0].kinds
    train, test = (
        asked_columns(table, part.rows, kinds) for table, (_, part) in zip(split.tables, split.parts, strict=True)
    )
    return train, test


def asked_columns(table: Table, rows: NDArray[np.int64] | slice, kinds: Mapping[str, Kind]) -> dict[str, Column]:
    """Return the columns of some rows of a table that a card may ask about, as their kinds say."""
    names = [name for name, kind in kinds.items() if kind.is_asked]
    if not names:
        found = ", ".join(f"{name!r} ({kind.name})" for name, kind in kinds.items())
        raise ValueError(f"no column that a card may ask about: {found}")
    return {name: table.columns[name].take(rows) for name in names}


def demand_columns(split: Split, demands: Sequence[ListDemand]) -> tuple[Mapping[str, Column], Mapping[str, Column]]:
    """Return the columns that demands name, of the training set and of the test set; they need not be features."""
    names = dict.fromkeys(one.condition.column for one in demands if one.condition is not None)
    if split.tables is None:
        places = {name: split.feature_names.index(name) for name in names}
        train, test = ({name: Column(name, part.X[:, at]) for name, at in places.items()} for _, part in split.parts)
        return train, test
    train, test = (
        {name: table.columns[name].take(part.rows) for name in names}
        for table, (_, part) in zip(split.tables, split.parts, strict=True)
    )
    return train, test


def not_asked(kinds: Mapping[str, Kind]) -> list[str]:
    """Return a note for each column of a table that a card does not ask about, with the reason."""
    reasons = {
        name: kind.reason or f"{kind.name}s: turn them into numbers, such as days before today"
        for name, kind in kinds.items()
        if not kind.is_asked
    }
    return [f"column {name!r} is left out: {reason}" for name, reason in reasons.items()]


def own_rows(split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return all columns of the training set and of the test set as the file or frame has them."""
    if split.tables is None:
        train, test = (_features_and_label(split, part) for _, part in split.parts)
        return train, test
    train, test = (table.own(part.rows) for table, (_, part) in zip(split.tables, split.parts, strict=True))
    return train, test


def test_rows(split: Split) -> pd.DataFrame:
    """Return all columns of the test set, numbers as such.

    The index is that of the frame that was given, or counts the rows of the file from 0.
    """
    if split.tables is None:
        return _features_and_label(split, split.test)
    given, rows = split.tables[1].given, split.tables[1].in_file(split.test.rows)
    if given.frame is not None:
        return given.frame.iloc[rows]
    return pd.DataFrame({name: column.typed for name, column in given.columns.items()}).iloc[rows]


def _features_and_label(split: Split, part: Part) -> pd.DataFrame:
    return pd.DataFrame(part.X, part.rows, list(split.feature_names)).assign(label=part.y)
