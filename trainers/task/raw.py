"""The rows of an experiment as the data have them: texts, missing values, and columns that are no features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import pandas as pd

from ltr.data import Table, read_raw_table
from ltr.data.columns import Column
from ltr.data.kinds import Kind
from ltr.list_demands import ListDemand
from trainers.config.sections import DataConfig
from trainers.task.data import Part, Split

Raw: TypeAlias = Mapping[str, Column]
"""Columns of some rows by name, which a card may ask about."""


def read_labelled(options: DataConfig) -> Table:
    """Read a table for ``ltr card``: its labels may be graded, which those of a run without queries are not."""
    return read_raw_table(str(options.path), replace(options.roles, graded=True), options.reading).check()


def raw_columns(split: Split) -> tuple[Raw, Raw]:
    """Return the columns that a card may ask about, of the training set and of the test set."""
    names = split.feature_names if split.train.table is None else asked_columns(split.train.table.kinds)
    return _columns(split, names)


def asked_columns(kinds: Mapping[str, Kind]) -> list[str]:
    """Return the names of the columns of these kinds that a card may ask about."""
    names = [name for name, kind in kinds.items() if kind.is_asked]
    if not names:
        found = ", ".join(f"{name!r} ({kind.name})" for name, kind in kinds.items())
        raise ValueError(f"no column that a card may ask about: {found}")
    return names


def demand_columns(split: Split, demands: Sequence[ListDemand]) -> tuple[Raw, Raw]:
    """Return the columns that demands name, of the training set and of the test set; they need not be features."""
    return _columns(split, [one.condition.column for one in demands if one.condition is not None])


def _columns(split: Split, names: Sequence[str]) -> tuple[Raw, Raw]:
    def of(part: Part) -> Raw:
        if part.table is None:
            return {name: Column(name, part.X[:, split.feature_names.index(name)]) for name in names}
        return {name: part.table.columns[name].take(part.rows) for name in names}

    return of(split.train), of(split.test)


def not_asked(kinds: Mapping[str, Kind]) -> list[str]:
    """Return a note for each column of a table that a card does not ask about, with the reason."""
    dates = "dates: turn them into numbers, such as days before today"
    left_out = {name: kind.reason or dates for name, kind in kinds.items() if not kind.is_asked}
    return [f"column {name!r} is left out: {reason}" for name, reason in left_out.items()]


def own_rows(split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return all columns of the training set and of the test set as the file or frame has them."""
    if split.tables is None:
        return _features_and_label(split, split.train), _features_and_label(split, split.test)
    table, other = split.tables
    train = table.given.own()
    test = train if other is table else other.given.own()
    return train.iloc[table.in_file(split.train.rows)], test.iloc[other.in_file(split.test.rows)]


def test_rows(split: Split) -> pd.DataFrame:
    """Return all columns of the test set, numbers as such, with the index of a given frame or of the file's rows."""
    if split.test.table is None:
        return _features_and_label(split, split.test)
    given, rows = split.test.table.given, split.test.table.in_file(split.test.rows)
    if given.frame is not None:
        return given.frame.iloc[rows]
    return pd.DataFrame({name: column.typed for name, column in given.columns.items()}).iloc[rows]


def _features_and_label(split: Split, part: Part) -> pd.DataFrame:
    return pd.DataFrame(part.X, part.rows, list(split.feature_names)).assign(label=part.y)
