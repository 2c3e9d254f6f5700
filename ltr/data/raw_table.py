"""Tables as they are: columns of all kinds, labels, queries, and everything that keeps them from being used.

`Table.preparation` turns the columns into features, `ltr.data.kinds` says which ones.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ltr.data.columns import Column, matrix_of
from ltr.data.dataset import DataError, Dataset, Features, checked_groups, checked_names, checked_queries
from ltr.data.kinds import Kind, encodings_of, is_plain, kinds_of
from ltr.data.labels import Labels, labels_of, outcomes_of, sizes_of, treatments_of
from ltr.data.problems import Problem, Remedy, TableError, unknown
from ltr.data.table_files import Columns, Reading, TableFile, TablePath, is_number, queries_beside, read_file
from ltr.data.times import Times, times_of
from ltr.outcomes import Times as OutcomeTimes
from ltr.outcomes import survival_labels, uplift_labels

if TYPE_CHECKING:
    from ltr.data.preparation import TablePreparation


COLUMN_ROLES = ("query", "weight", "group", "time", "time_to_event", "treatment")
"""What a column may be for beside the label; none of these is a feature."""


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for, as the user says it.

    Args:
        label: column of the labels.
        positive: value of the positives; see `ltr.data.labels.labels_of`.
        query: column of the query of each row; None is one list.
        drop: columns to leave out.
        features: columns to take, in this order; all others by default.
        numbers: columns to take as numbers, even where they look like ids.
        categories: columns to take as categories, even where they hold numbers.
        date_format: format of dates, as for ``strftime``, where it is not found out.
        first_year: first of the hundred years that years of two digits stand for.
        graded: whether labels may be grades although there are no queries.
        unlabelled: whether rows without a label are left out; otherwise they are a problem.
        weight: column of the weight of each row in training, >= 0; None gives all rows the weight 1.
        group: column that tells which rows belong together, such as the patient, and are not divided by splits.
        time: column of the time of each row: dates, periods such as 2024-W22, or numbers (`ltr.data.times`).
        time_to_event: column of the times until an event, or until a row was last seen without it; the label says
            whether the event happened.
        treatment: column that says whether a row was treated; the label is its outcome, which may be any number.
    """

    label: str | None = None
    positive: object = None
    query: str | None = None
    drop: Sequence[str] = ()
    features: Sequence[str] | None = None
    numbers: Sequence[str] = ()
    categories: Sequence[str] = ()
    date_format: str | None = None
    first_year: int | None = None
    graded: bool = False
    unlabelled: bool = False
    weight: str | None = None
    group: str | None = None
    time: str | None = None
    time_to_event: str | None = None
    treatment: str | None = None

    def may_be_feature(self, name: str) -> bool:
        """Return whether a column of this name may become a feature."""
        if self.features is not None:
            return name in self.features
        return name not in {*self.drop, self.label, *(getattr(self, role) for role in COLUMN_ROLES)}


@dataclass(frozen=True)
class Table:
    """A labelled table as it is, and what its columns are."""

    where: str  # path of the file, or name of the frame, for messages
    columns: dict[str, Column]  # those that may become features, by name
    kinds: dict[str, Kind]  # what they are
    labels: Labels | None  # None where no column of labels was named, as for the arrays below, (n,) each
    queries: NDArray[Any] | None = None  # ids of the rows' queries
    weights: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None  # ids of the groups of rows that belong together
    times: Times | None = None
    notes: tuple[str, ...] = ()  # what was found out about the file and its columns
    problems: tuple[Problem, ...] = ()  # everything that keeps the table from being used
    roles: Roles = field(default_factory=Roles)
    given: Mapping[str, Sequence[str]] = field(default_factory=dict)  # lists of `roles`, without unknown columns
    rows: NDArray[np.intp] | None = None  # numbers of its rows in the file, from 0; None where all are there
    others: Mapping[str, Column] = field(default_factory=dict)  # columns that may not become features, by name
    time_to_event: NDArray[np.float64] | None = None
    treatment: NDArray[np.int64] | None = None  # 1 for treated rows

    def in_file(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the numbers in the file, from 0, of some rows of the table."""
        return rows if self.rows is None else self.rows[rows]

    def check(self) -> None:
        """Raise TableError, with all problems, if there is one."""
        if self.problems:
            raise TableError(self.where, self.problems, given=self.given)

    @cached_property
    def plain(self) -> bool:
        """Whether all features are numbers and booleans as they are, so that there is nothing to prepare."""
        return is_plain(self.columns) and all(kind.is_number for kind in self.kinds.values())

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

    def dataset(self, X: Features | None = None, names: Sequence[str] | None = None) -> Dataset:
        """Return the data set of the table; its features, (n, d), are the columns as numbers by default."""
        if X is None:
            stored = [np.asarray(one.numbers if one.stored is None else one.stored) for one in self.columns.values()]
            names, X = list(self.columns), matrix_of(stored)
        return Dataset(Path(self.where).stem, X, self.y, names, self.queries, copy=False)

    @property
    def left_out(self) -> dict[str, str]:
        """Reasons of columns that are left out, by name."""
        return {name: kind.reason for name, kind in self.kinds.items() if kind.reason}

    def feature_names(self, rows: NDArray[np.intp] | slice) -> list[str]:
        """Return the names of the features that `preparation` makes, without what takes it long to import."""
        if not self.problems and self.plain:
            return list(self.columns)
        y = None if self.labels is None or self.labels.values is None else self.y[rows].astype(np.float64)
        found = encodings_of({name: column.take(rows) for name, column in self.columns.items()}, self.kinds, y)[0]
        return [name for one in found for name in one.names]

    def preparation(self, rows: NDArray[np.intp] | slice) -> TablePreparation:
        """Return a preparation that has learned from some rows; what the columns are, the whole table decides."""
        from ltr.data.preparation import TablePreparation

        wanted = {name: kind for name, kind in self.kinds.items() if kind.is_feature}
        columns = {name: self.columns[name].take(rows) for name in wanted}
        found = TablePreparation().fit_kinds(columns, wanted, self.y[rows].astype(np.float64))
        found.left_out_ = self.left_out | found.left_out_
        return found

    def sha256(self) -> str:
        """Return a hash of the features as they are, with their names, labels and queries."""
        digest = hashlib.sha256()
        for name, column in self.columns.items():
            if not self.kinds[name].reason:
                digest.update(f"{name}\0{len(column)}\0".encode())
                digest.update(column.content())
        y = None if self.labels is None else self.labels.values
        for array in (y, self.queries, self.weights, self.groups, self.time_to_event, self.treatment):
            if array is not None:
                digest.update("\0".join(map(str, array.tolist())).encode())
        if self.times is not None:
            digest.update("\0".join(self.times.texts).encode())
        return digest.hexdigest()


def read_raw_table(
    path: str | os.PathLike[str],
    roles: Roles,
    reading: Reading | None = None,
    *,
    kinds: Mapping[str, Kind] | None = None,
) -> Table:
    r"""Return the table in a file as it is, with everything that keeps it from being used.

    Args:
        path: the file.
        roles: what the columns are for. Without a query column, queries come from a file of query sizes beside the
            table; without such a file, all rows are one list.
        reading: how to read the file.
        kinds: what the columns are; found out by default.

    Raises:
        DataError: a missing, empty or unreadable file.

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
    file, beside = read_roles(path, roles, reading, texts=texts, numbers=plain)
    decimal = None if reading is None else reading.decimal
    table = table_of(file.columns, str(path), roles, queries=beside, kinds=kinds, decimal=decimal)
    return replace(table, notes=(*file.notes, *table.notes))


def read_roles(
    path: TablePath,
    roles: Roles,
    reading: Reading | None = None,
    *,
    texts: Collection[str] = (),
    numbers: Collection[str] | None = None,
) -> tuple[TableFile, NDArray[np.int64] | None]:
    """Return a table file, and the queries of a file of sizes beside it where no column has them.

    The arguments are those of `read_raw_table` and `read_file`.
    """
    file = read_file(path, reading, ids=roles.query, texts=texts, numbers=numbers, is_feature=roles.may_be_feature)
    if roles.query is not None:
        return file, None
    return file, queries_beside(path, len(next(iter(file.columns.values()))))


def table_of(
    columns: Columns,
    where: str,
    roles: Roles,
    *,
    queries: NDArray[Any] | None = None,
    kinds: Mapping[str, Kind] | None = None,
    decimal: str | None = None,
) -> Table:
    """Return the table of some columns; `queries` has the query of each row, if no column has it.

    `kinds` are found out by default, with `decimal` for numbers that could be read with both marks.
    """
    names, wrong = features_of_roles(columns, roles)
    found, notes = list(wrong), []
    of_rows = _of_rows(columns, roles, names, found, queries, decimal)
    if (kept := of_rows["rows"]) is not None:
        notes.append(f"{len(columns[str(roles.label)]) - len(kept)} rows without a label are left out")
    every = {name: Column(name, values, decimal=decimal) for name, values in columns.items()}
    candidates = {name: every[name] for name in names}
    if kinds is None:
        kinds, wrong = _kinds(candidates, columns, roles)
        found += wrong
        notes += [kind.note for kind in kinds.values() if kind.note]
    # dates stay as they are written, for pages and conditions
    every |= {name: kinds[name].read(column) for name, column in candidates.items() if not kinds[name].is_date}
    if kept is not None:
        every = {name: column.take(kept) for name, column in every.items()}
    given = {key: getattr(roles, key) or () for key in ("drop", "features", "numbers", "categories")}
    return Table(
        where,
        {name: every[name] for name in names},
        dict(kinds),
        notes=tuple(notes),
        problems=tuple(found),
        roles=roles,
        given={key: [name for name in names if name in columns] for key, names in given.items()},
        others={name: column for name, column in every.items() if name not in candidates},
        **of_rows,
    )


def _of_rows(
    columns: Columns,
    roles: Roles,
    names: Sequence[str],
    found: list[Problem],
    queries: NDArray[Any] | None,
    decimal: str | None,
) -> dict[str, Any]:
    """Return the fields of a table that describe each row beside its features, and append what is wrong with them."""
    kept: NDArray[np.intp] | None = None

    def read(role: str, how: Callable[[Column], _Read]) -> _Read | None:
        """Return what a function makes of the column of a role, None where there is no such column or a problem."""
        if (name := getattr(roles, role)) is None or name not in columns:
            return None
        try:
            return how(Column(name, columns[name], decimal=decimal))
        except DataError as error:
            found.append(error if isinstance(error, Problem) else Problem(str(error)))
            return None

    def ids(column: Column, check: Callable[..., object] = checked_queries, *given: Any) -> NDArray[Any]:  # noqa: ANN401
        cells = np.asarray(column.cells)
        check(cells, len(cells), *given, where=f"column {column.name!r}")
        return cells

    def rest(column: Column) -> Column:
        return column if kept is None else column.take(kept)

    own = read("query", ids)
    queries = queries if own is None else own
    graded = roles.graded or queries is not None or roles.query is not None
    labels: Labels | None = None
    if roles.label is not None and roles.label in columns:
        column = Column(roles.label, columns[roles.label], decimal=decimal)
        if roles.unlabelled and 0 < int(column.missing.sum()) < len(column):
            kept = np.flatnonzero(~column.missing)
        labels = _labels_in(rest(column), roles, graded=graded)
        found += labels.problems
        if labels.values is None and not graded and labels.are_grades and roles.time_to_event is None:
            found[-1] = _ask_for_query(found[-1], columns, names)
    weights = read("weight", lambda column: sizes_of(column, "weights"))
    until = read("time_to_event", lambda column: sizes_of(rest(column), "times until an event"))
    treated = read("treatment", lambda column: treatments_of(rest(column)))
    if until is not None and labels is not None and labels.values is not None and not found:
        try:
            OutcomeTimes.of(survival_labels(until, labels.values))
        except ValueError as error:
            found.append(Problem(f"columns {roles.time_to_event!r} and {roles.label!r}: {error}"))
    dates: dict[str, Any] = {"date_format": roles.date_format, "first_year": roles.first_year}
    lists = None
    if queries is not None and (roles.group is not None or roles.time is not None):
        lists = checked_queries(queries, len(queries))[0]
    groups = read("group", lambda column: ids(column, checked_groups, lists))
    times = read("time", lambda column: times_of(column, lists, **dates))
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


def _ask_for_query(problem: Problem, columns: Columns, names: Sequence[str]) -> Problem:
    """Return the problem of grades without queries, with the column that could hold the query of each row."""
    found = []
    for name in names:
        ids = Column(name, columns[name]).texts
        changes = 1 + int(np.count_nonzero(ids[1:] != ids[:-1]))
        different = len({*ids.tolist()})
        if 1 < different <= len(ids) / 2 and (changes == different or _QUERY_NAME.fullmatch(name)):
            found.append((not _QUERY_NAME.fullmatch(name), name))
    if not found:
        return problem
    way = Remedy("ranks the rows of each of its values, and keeps the grades", "query", min(found)[1])
    return Problem(problem.text, (way, *problem.remedies))


def _kinds(candidates: Mapping[str, Column], columns: Columns, roles: Roles) -> tuple[dict[str, Kind], list[Problem]]:
    """Return what the columns are, and what is wrong with them."""
    asked = dict.fromkeys(roles.numbers, "number") | dict.fromkeys(roles.categories, "category")
    found = []
    for key, names in (("numbers", roles.numbers), ("categories", roles.categories)):
        if absent := [name for name in names if name not in columns]:
            found.append(unknown(f"column of {key}", absent, columns, key=key))
    wanted: Collection[str] = roles.features or ()
    dates = {"date_format": roles.date_format, "first_year": roles.first_year}
    kinds = kinds_of(candidates, asked, wanted=wanted, **dates)  # type: ignore[arg-type]
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


def _of_numbers(names: Collection[str]) -> bool:
    """Return whether a third of the names, at least, are numbers: those of a table without a line of names."""
    return 3 * sum(map(is_number, names)) >= len(names) > 0


def features_of_roles(columns: Columns, roles: Roles) -> tuple[list[str], list[Problem]]:
    """Return the columns that may become features, and the problems with names that the user gave.

    Raises:
        DataError: names to drop, or features, that are not given as a sequence of names.
    """
    if isinstance(roles.drop, str):
        raise DataError(f"drop must be a sequence of column names, got the string {roles.drop!r}")
    if roles.features is not None:
        feature_names(roles.features)
    found = []
    hint = "; the first line must hold the column names" if _of_numbers(columns) else ""
    for role in ("label", *COLUMN_ROLES):
        if (name := getattr(roles, role)) is not None and name not in columns:
            found.append(unknown(f"{role.replace('_', ' ')} column", name, columns, key=role, hint=hint))
    for role, key in (("column to drop", "drop"), ("feature column", "features")):
        if absent := [name for name in getattr(roles, key) or () if name not in columns]:
            found.append(unknown(role, absent, columns, key=key, hint=hint))
    used: dict[str | None, str] = {**dict.fromkeys(roles.drop, "dropped"), roles.label: "the label"}
    for role in COLUMN_ROLES:
        if (name := getattr(roles, role)) is not None:
            what = role.replace("_", " ")
            if name in used:
                found.append(Problem(f"{what} column {name!r} is also {used[name]}"))
            used[name] = f"the {what}"
    if roles.features is None:
        names = [name for name in columns if name not in used]
        if not names:
            found.append(Problem(f"no feature column is left beside the label {roles.label!r}"))
        return names, found
    for name in roles.features:
        if name in used:
            found.append(Problem(f"feature column {name!r} is also {used[name]}"))
    return [name for name in roles.features if name in columns and name not in used], found


def feature_names(features: Sequence[str]) -> tuple[str, ...]:
    """Return the requested feature names; raise DataError unless there is at least one and all differ."""
    if isinstance(features, str) or len(features) == 0:
        raise DataError(f"features must be a sequence of at least one column name, got {features!r}")
    return checked_names(features, "features")
