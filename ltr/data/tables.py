"""Tables of your own: columns of all kinds, labels, queries, and everything that keeps them from being used.

Tables have one observation per row (`ltr.data.table_files`), sparse text is `ltr.data.svmlight`. Rows are counted from
1, below the header; blank lines are not rows. The query of each row is a column of numbers or texts, or comes from a
file of query sizes beside the data file, as in LightGBM: beside ``rank.train`` it is ``rank.train.query``, and each
line has the number of rows of the next query.

`read_raw_table` reads columns of all kinds, which `Table.preparation` turns into features. Features of `read_data` and
`read_rows` are columns of numbers or booleans without missing values; they are float32 where that is their common type.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from ltr.data.columns import Column, matrix_of
from ltr.data.dataset import (
    DataError,
    Dataset,
    Features,
    checked_feature_names,
    checked_features,
    checked_groups,
    checked_queries,
)
from ltr.data.forms import DateHints, NumberForm
from ltr.data.kinds import Kind, kind_of, kinds_of
from ltr.data.labels import Labels, labels_of, outcomes_of, sizes_of, treatments_of
from ltr.data.problems import Problem, Remedy, TableError, unknown
from ltr.data.svmlight import DtypeName, looks_like_svmlight, read_svmlight, read_svmlight_rows
from ltr.data.table_files import BINARY_SUFFIXES, GivenTable, Reading, TablePath, is_number, open_table
from ltr.data.times import Times, times_of
from ltr.files import has_text
from ltr.outcomes import Times as OutcomeTimes
from ltr.outcomes import survival_labels, uplift_labels

if TYPE_CHECKING:
    import pandas as pd

    from ltr.data.preparation import TablePreparation

Rows = NDArray[np.intp] | slice
FormatName = Literal["auto", "table", "svmlight"]
"""Formats of data files; with auto, suffix and content of the file decide."""
COLUMN_ROLES = ("query", "weight", "group", "time", "time_to_event", "treatment")
"""What a column may be for beside the label; none of these is a feature."""


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for, as the user says it; docs/tables.md has more about each."""

    label: str | None = None
    positive: object = None  # value of the positives, see `ltr.data.labels.labels_of`
    query: str | None = None  # column of the query of each row; None is one list
    drop: Sequence[str] = ()
    features: Sequence[str] | None = None  # columns to take, in this order; all others by default
    numbers: Sequence[str] = ()  # columns to take as numbers, even where they look like ids
    categories: Sequence[str] = ()  # columns to take as categories, even where they hold numbers
    date_format: str | None = None  # as for strftime, where it is not found out
    first_year: int | None = None  # of the hundred years that years of two digits stand for
    graded: bool = False  # whether labels may be grades although there are no queries
    unlabelled: bool = False  # whether rows without a label are left out; otherwise they are a problem
    weight: str | None = None  # column of the weight of each row in training, >= 0
    group: str | None = None  # column that tells which rows belong together and are not divided by splits
    time: str | None = None  # column of the time of each row: dates, periods such as 2024-W22, or numbers
    time_to_event: str | None = None  # column of the times until an event; the label says whether it happened
    treatment: str | None = None  # column that says whether a row was treated; the label is its outcome

    def may_be_feature(self, name: str) -> bool:
        """Return whether a column of this name may become a feature."""
        if self.features is not None:
            return name in self.features
        return name not in {*self.drop, self.label, *(getattr(self, role) for role in COLUMN_ROLES)}


@dataclass(frozen=True, eq=False)
class Table:
    """A labelled table as it is, and what its columns are."""

    given: GivenTable  # all rows of the file or frame
    roles: Roles
    columns: dict[str, Column]  # all columns of the labelled rows, by name
    kinds: dict[str, Kind]  # what those are that may become features
    labels: Labels | None  # None where no column of labels was named, as for the arrays below, (n,) each
    queries: NDArray[Any] | None = None  # ids of the rows' queries
    weights: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None  # ids of the groups of rows that belong together
    times: Times | None = None
    time_to_event: NDArray[np.float64] | None = None
    treatment: NDArray[np.int64] | None = None  # 1 for treated rows
    rows: NDArray[np.intp] | None = None  # numbers of its rows in the file, from 0; None where all are there
    notes: tuple[str, ...] = ()  # what was found out about the file and its columns
    problems: tuple[Problem, ...] = ()  # everything that keeps the table from being used

    @property
    def where(self) -> str:
        """Path of the file, or `FRAME`, for messages."""
        return self.given.where

    @cached_property
    def candidates(self) -> dict[str, Column]:
        """The columns that may become features, by name."""
        return {name: self.columns[name] for name in self.kinds}

    def in_file(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the numbers in the file, from 0, of some rows of the table."""
        return rows if self.rows is None else self.rows[rows]

    @property
    def error(self) -> TableError | None:
        """All problems as one error; None without any."""
        known = {}
        for key in ("drop", "features", "numbers", "categories"):
            known[key] = [name for name in getattr(self.roles, key) or () if name in self.columns]
        return TableError(self.where, self.problems, given=known) if self.problems else None

    def check(self) -> Table:
        """Return the table; raise TableError, with all problems, if there is one."""
        if (error := self.error) is not None:
            raise error
        return self

    @cached_property
    def plain(self) -> bool:
        """Whether all features are numbers and booleans as they are, so that there is nothing to prepare."""
        return all(self.columns[name].plain and kind.is_number for name, kind in self.kinds.items())

    @property
    def y(self) -> NDArray[Any]:
        """The labels of a table without problems, (n,)."""
        assert self.labels is not None
        assert self.labels.values is not None
        return self.labels.values

    @property
    def target(self) -> NDArray[Any]:
        """The labels that a card learns from, (n,): `y`, or together with times or treatments (`ltr.outcomes`)."""
        if self.time_to_event is not None:
            return survival_labels(self.time_to_event, self.y)
        return self.y if self.treatment is None else uplift_labels(self.y, self.treatment)

    @cached_property
    def qid(self) -> NDArray[np.int64] | None:
        """Number of each row's query, (n,), in the order in which queries first appear; None for one list."""
        return None if self.queries is None else checked_queries(self.queries, len(self.queries), self.where)[0]

    @cached_property
    def group_numbers(self) -> NDArray[np.int64] | None:
        """Number of each row's group, (n,); None without groups."""
        return checked_groups(self.groups, len(self.y), self.qid)

    def dataset(self, X: Features | None = None, names: Sequence[str] | None = None) -> Dataset:
        """Return the data set of the table; its features, (n, d), are the columns as numbers by default."""
        if X is None:
            stored = [np.asarray(one.numbers if one.stored is None else one.stored) for one in self.candidates.values()]
            names, X = list(self.candidates), matrix_of(stored)
        return Dataset(Path(self.where).stem, X, self.y, names, self.queries, copy=False)

    def preparation(self, rows: Rows) -> TablePreparation:
        """Return a preparation that has learned from some rows; what the columns are, the whole table decides."""
        from ltr.data.preparation import TablePreparation

        columns = {name: self.columns[name].take(rows) for name, kind in self.kinds.items() if kind.is_feature}
        return TablePreparation().fit_kinds(columns, self.kinds, self.y[rows].astype(np.float64))

    def sha256(self) -> str:
        """Return a hash of the features as they are, with their names, labels and queries."""
        digest = hashlib.sha256()
        for name, column in self.candidates.items():
            if not self.kinds[name].reason:
                digest.update(f"{name}\0{len(column)}\0".encode())
                if (numbers := column.numbers) is not None:
                    digest.update(numbers.tobytes() + column.missing.tobytes())
                else:
                    digest.update("\0".join(column.texts.tolist()).encode())
        y = None if self.labels is None else self.labels.values
        for array in (y, self.queries, self.weights, self.groups, self.time_to_event, self.treatment):
            if array is not None:
                digest.update("\0".join(map(str, array.tolist())).encode())
        if self.times is not None:
            digest.update("\0".join(self.times.texts).encode())
        return digest.hexdigest()


def read_raw_table(
    source: TablePath | pd.DataFrame,
    roles: Roles,
    reading: Reading | None = None,
    *,
    kinds: Mapping[str, Kind] | None = None,
) -> Table:
    r"""Return a table as it is, with everything that keeps it from being used.

    The source is a file or a pandas frame; `kinds`, what its columns are, are found out by default. Raises DataError
    for a missing, empty or unreadable file.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "machines.csv")
        ...     _ = path.write_text("id;hours;mode;failed\n1;10,5;fast;no\n2;;slow;yes\n3;8,25;fast;no\n4;9;slow;yes\n")
        ...     table = read_raw_table(path, Roles(label="failed"))
        >>> {name: kind.name for name, kind in table.kinds.items()}, table.labels.values.tolist(), table.problems
        ({'id': 'id', 'hours': 'number', 'mode': 'yes/no'}, [0, 1, 0, 1], ())
    """
    plain = None if kinds is None else {name for name, kind in kinds.items() if kind.plain}
    texts = [*roles.categories, *filter(None, [roles.group])]
    how: dict[str, Any] = {"ids": roles.query, "texts": texts, "numbers": plain, "is_feature": roles.may_be_feature}
    return table_of(open_table(source, reading, **how), roles, kinds)


def table_of(given: GivenTable, roles: Roles, kinds: Mapping[str, Kind] | None = None) -> Table:
    """Return the labelled rows of a table, with what its columns are; `kinds` are found out by default."""
    columns, notes = given.columns, list(given.notes)
    names, found = features_of_roles(columns, roles)
    by_row = _of_rows(given, roles, names, found)
    if (kept := by_row["rows"]) is not None:
        notes.append(f"{len(given) - len(kept)} rows without a label are left out")
    if kinds is None:
        kinds, wrong = _kinds({name: columns[name] for name in names}, roles)
        found += wrong
        notes += [kind.note for kind in kinds.values() if kind.note]
    kinds = {name: kinds[name] for name in names}
    # dates stay as they are written, for pages and conditions
    columns = columns | {name: kind.read(columns[name]) for name, kind in kinds.items() if not kind.is_date}
    given = replace(given, columns=columns)  # so that nothing is kept twice
    if kept is not None:
        columns = {name: column.take(kept) for name, column in columns.items()}
    return Table(given, roles, columns, kinds, notes=tuple(notes), problems=tuple(found), **by_row)


def _of_rows(given: GivenTable, roles: Roles, names: Sequence[str], found: list[Problem]) -> dict[str, Any]:
    """Return the fields of a table that describe each row beside its features, and append what is wrong with them."""
    columns = given.columns
    kept: NDArray[np.intp] | None = None

    def read(role: str, how: Callable[[Column], _Read]) -> _Read | None:
        """Return what a function makes of the column of a role, None where there is no such column or a problem."""
        if (column := columns.get(getattr(roles, role))) is None:
            return None
        try:
            return how(column)
        except DataError as error:
            found.append(error if isinstance(error, Problem) else Problem(str(error)))
            return None

    def ids(column: Column, check: Callable[..., object] = checked_queries, *more: Any) -> NDArray[Any]:  # noqa: ANN401
        cells = np.asarray(column.cells)
        check(cells, len(cells), *more, where=f"column {column.name!r}")
        return cells

    def rest(column: Column) -> Column:
        return column if kept is None else column.take(kept)

    queries = read("query", ids) if roles.query is not None else given.queries(None)
    graded = roles.graded or queries is not None or roles.query is not None
    labels: Labels | None = None
    if roles.label is not None and (column := columns.get(roles.label)) is not None:
        if roles.unlabelled and 0 < int(column.missing.sum()) < len(column):
            kept = np.flatnonzero(~column.missing)
        labels = _labels_in(rest(column), roles, graded=graded)
        found += labels.problems
        if labels.values is None and not graded and labels.are_grades and roles.time_to_event is None:
            found[-1] = _ask_for_query(found[-1], [columns[name] for name in names])
    weights = read("weight", lambda column: sizes_of(column, "weights"))
    until = read("time_to_event", lambda column: sizes_of(rest(column), "times until an event"))
    treated = read("treatment", lambda column: treatments_of(rest(column)))
    if until is not None and labels is not None and labels.values is not None and not found:
        try:
            OutcomeTimes.of(survival_labels(until, labels.values))
        except ValueError as error:
            found.append(Problem(f"columns {roles.time_to_event!r} and {roles.label!r}: {error}"))
    lists = None
    if queries is not None and (roles.group is not None or roles.time is not None):
        lists = checked_queries(queries, len(queries))[0]
    groups = read("group", lambda column: ids(column, checked_groups, lists))
    dates = DateHints(roles.date_format, roles.first_year)
    times = read("time", lambda column: times_of(column, lists, dates))
    if kept is not None:
        queries, weights, groups = (None if one is None else one[kept] for one in (queries, weights, groups))
        times = None if times is None else times.take(kept)
    by_row = {"queries": queries, "weights": weights, "groups": groups, "times": times, "time_to_event": until}
    return by_row | {"labels": labels, "treatment": treated, "rows": kept}


_Read = TypeVar("_Read")


def _labels_in(column: Column, roles: Roles, *, graded: bool) -> Labels:
    """Return the labels in a column, which may be the outcomes of a treatment or the events of times."""
    if roles.treatment is not None and column.numbers is not None:
        return outcomes_of(column)
    if roles.time_to_event is not None and not column.missing.any() and set(column.counts) == {"1"}:
        return Labels(np.ones(len(column), dtype=np.int64))  # no row is censored
    return labels_of(column, roles.positive, graded=graded and roles.time_to_event is None)


_QUERY_NAME = re.compile(r"(?i)(.*[\W_])?(q|qid|query|session|search|srch|group)([\W_]?id)?")


def _ask_for_query(problem: Problem, columns: Sequence[Column]) -> Problem:
    """Return the problem of grades without queries, with the column that could hold the query of each row."""
    found = []
    for column in columns:
        ids, named = column.texts, _QUERY_NAME.fullmatch(column.name) is not None
        together = 1 + np.count_nonzero(ids[1:] != ids[:-1]) == (different := len({*ids.tolist()}))
        if 1 < different <= len(ids) / 2 and (together or named):
            found.append((not named, column.name))
    if not found:
        return problem
    way = Remedy("ranks the rows of each of its values, and keeps the grades", "query", min(found)[1])
    return Problem(problem.text, (way, *problem.remedies))


def _kinds(candidates: Mapping[str, Column], roles: Roles) -> tuple[dict[str, Kind], list[Problem]]:
    """Return what the columns are, and what is wrong with them."""
    asked = dict.fromkeys(roles.numbers, "number") | dict.fromkeys(roles.categories, "category")
    wanted: Collection[str] = roles.features or ()
    kinds = kinds_of(candidates, asked, DateHints(roles.date_format, roles.first_year), wanted=wanted)
    found = []
    for kind in kinds.values():
        if kind.problem is not None:
            instead = Remedy("leave it out of data.features")
            ways = [instead if wanted and one.key == "drop" else one for one in kind.problem.remedies]
            found.append(Problem(kind.problem.text, tuple(ways)))
    if kinds and all(kind.reason for kind in kinds.values()):
        reasons = "; ".join(f"{name}: {kind.reason}" for name, kind in kinds.items())
        numbers = [name for name, kind in kinds.items() if kind.is_id and candidates[name].numbers is not None]
        remedies = (Remedy("takes them all the same", "numbers", numbers),) if numbers else ()
        found.append(Problem(f"no feature column is left beside the label {roles.label!r} ({reasons})", remedies))
    return kinds, found


def features_of_roles(columns: Mapping[str, Column], roles: Roles) -> tuple[list[str], list[Problem]]:
    """Return the columns that may become features, and the problems with names that the user gave."""
    if isinstance(roles.drop, str):
        raise DataError(f"drop must be a sequence of column names, got the string {roles.drop!r}")
    if roles.features is not None:
        checked_feature_names(roles.features)
    found = []
    no_names = 3 * sum(map(is_number, columns)) >= len(columns) > 0  # a third or more of them are numbers
    hint = "; the first line must hold the column names" if no_names else ""
    whats = {role: f"{role.replace('_', ' ')} column" for role in ("label", *COLUMN_ROLES)}
    whats |= {"drop": "column to drop", "features": "feature column"}
    whats |= {"numbers": "column of numbers", "categories": "column of categories"}
    for key, what in whats.items():
        asked = getattr(roles, key)
        names = [asked] if isinstance(asked, str) else asked or ()
        if absent := [name for name in names if name not in columns]:
            found.append(unknown(what, asked if isinstance(asked, str) else absent, columns, key=key, hint=hint))
    used: dict[str | None, str] = {**dict.fromkeys(roles.drop, "dropped"), roles.label: "the label"}
    for role in COLUMN_ROLES:
        if (name := getattr(roles, role)) is not None:
            if name in used:
                found.append(Problem(f"{whats[role]} {name!r} is also {used[name]}"))
            used[name] = f"the {role.replace('_', ' ')}"
    if roles.features is None:
        rest = [name for name in columns if name not in used]
        if not rest:
            found.append(Problem(f"no feature column is left beside the label {roles.label!r}"))
        return rest, found
    found += [Problem(f"feature column {name!r} is also {used[name]}") for name in roles.features if name in used]
    return [name for name in roles.features if name in columns and name not in used], found


def format_of(path: TablePath, given: FormatName = "auto") -> FormatName:
    """Return ``"svmlight"`` for a file whose first row reads ``label [qid:ID] index:value``, else ``"table"``."""
    if given not in get_args(FormatName):
        raise DataError(f"format must be one of {', '.join(get_args(FormatName))}, got {given!r}")
    if given != "auto":
        return given
    if Path(path).suffix.lower() in BINARY_SUFFIXES or not has_text(path):
        return "table"
    return "svmlight" if looks_like_svmlight(path) else "table"


def read_data(
    path: TablePath,
    *,
    format: FormatName = "auto",  # noqa: A002 - its name in configs
    label: str | None = None,
    positive: object = None,
    query: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    dtype: DtypeName = "auto",
) -> Dataset:
    r"""Return the labelled observations of a file, in one list or by query; the data set is named after the file.

    Args:
        path: the file, or a folder of parquet files.
        format: ``"table"``, ``"svmlight"`` (`read_svmlight`), or ``"auto"`` to find out.
        label: the column of a table with the labels: 0 and 1, yes and no, or grades if there are queries.
        positive: the label of positives, of any two or more; None for the labels above.
        query: the column with the query of each row; by default queries come from a file of sizes beside the table, and
            without one all rows are one list.
        drop: columns to leave out.
        features: the features to take, in this order; all by default.
        dtype: type of the features of a sparse file, as for `read_svmlight`.

    Raises:
        DataError: a file that cannot be read, columns that it lacks, or values that break the rules of `Dataset`.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "machines.csv")
        ...     _ = path.write_text("id;hours;failed\n7;10.5;0\n8;99;1\n")
        ...     data = read_data(path, label="failed", drop=["id"])
        >>> data.name, data.feature_names, data.X.tolist(), data.y.tolist()
        ('machines', ('hours',), [[10.5], [99.0]], [0, 1])
    """
    roles = Roles(label, positive, query, drop, features)
    if format_of(path, format) == "table":
        if label is None:
            raise DataError(f"{path}: a table needs the name of its label column, got none")
        given = open_table(path, ids=query, is_feature=roles.may_be_feature)
        table = table_of(given, roles, dict.fromkeys(given.columns, Kind("number"))).check()
        return table.dataset(features_of(table.candidates, table.where, list(table.candidates)), list(table.candidates))
    for name, value in (("label", label), ("positive", positive), ("query", query), ("drop", list(drop) or None)):
        if value is not None:
            raise DataError(f"{path}: {name} is for tables only, a sparse file has no columns by name; got {value!r}")
    return read_svmlight(path, features=features, dtype=dtype)


def read_rows(
    path: TablePath, features: Sequence[str], *, query: str | None = None, dtype: DtypeName = "auto"
) -> tuple[Features, NDArray[Any] | None]:
    """Return the features, (n, len(features)), and query ids (or None) of a file to predict on, as for `read_data`.

    A table must have all features, in a sparse file missing ones are 0.
    """
    if format_of(path) == "table":
        given = open_table(path, ids=query, is_feature=set(features).__contains__)
        return features_of(given.columns, given.where, features), given.queries(query)
    return read_svmlight_rows(path, features, dtype=dtype)


def features_of(
    columns: Mapping[str, Any], where: str, features: Sequence[str], form: NumberForm | None = None
) -> Features:
    """Return the features in some columns of the file or frame `where`, in this order.

    `form` says how texts are numbers, which is found out by default.
    """
    names = checked_feature_names(features)
    absent = [name for name in names if name not in columns]
    if absent:
        raise TableError(where, [unknown("feature column", absent, columns)])
    return checked_features(matrix_of([_feature(where, name, columns[name], form) for name in names]), names, where)


def _feature(where: str, name: str, values: Any, form: NumberForm | None) -> NDArray[Any]:  # noqa: ANN401 (a column)
    """Return a column as it is stored, or as float64, missing values as NaN."""
    column = values if isinstance(values, Column) else Column(name, values, form=form)
    if column.stored is not None:
        return column.stored
    if column.form is not None and column.form.unit:
        column = column.read_as(NumberForm("."))
    kind = kind_of(column, "number")
    if kind.problem is not None:
        raise DataError(f"{where}: {kind.problem.text}")
    numbers = kind.read(column).numbers
    assert numbers is not None
    return numbers
