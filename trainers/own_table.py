"""The commands ``ltr check`` and ``ltr init``: what a table of the user's holds, and a config to start from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ltr.data import DataError, Reading, Roles, Table, TableError, format_of, read_raw_table
from ltr.data.columns import Column
from ltr.data.forms import date_at
from ltr.data.kinds import Encoding, Kind, MeanEncoding, encode, encodings_of, kind_of
from ltr.data.labels import labels_of, note_on_leaks
from ltr.data.problems import toml_value
from trainers.files import RunError, write_atomic, writing
from trainers.tables import folded_table

if TYPE_CHECKING:
    from rich.console import RenderableType

_LABEL_NAMES = ("label", "target", "outcome", "class", "y", "response", "relevance")
_MOST_LABELS = 10  # different values of a column that could be the label
_SHOWN = 3  # values of a column that are shown


@dataclass(frozen=True)
class Understood:
    """A column as it was understood."""

    column: str  # its name
    kind: str  # what it is, see `ltr.data.kinds`
    missing: int  # number of rows without a value
    values: str  # its values, or some of them
    becomes: str  # what becomes of it
    features: tuple[str, ...]  # names of its features, when all rows are training rows

    @classmethod
    def of(cls, table: Table, column: Column, encoding: Encoding | None) -> Understood:
        """Return what a column of a table is taken for; `encoding` makes its features."""
        kind = table.kinds[column.name]
        becomes = "left out: nothing differs" if encoding is None else encoding.describe()
        if kind.reason or kind.problem is not None:
            becomes = f"left out: {kind.reason}" if kind.reason else "to be decided, see below"
        if table.plain and (alone := kind_of(column)).reason:
            becomes += f" (but {alone.reason}: data.drop = {toml_value([column.name])} leaves it out)"
        features = () if encoding is None else encoding.names
        return cls(column.name, kind.name, int(column.missing.sum()), _values_text(column, kind), becomes, features)


@dataclass(frozen=True)
class Checked:
    """A table with all that was understood."""

    table: Table
    columns: tuple[Understood, ...]
    about: dict[str, str]  # its label, weight and time in words, where columns of these were named
    notes: tuple[str, ...]  # what was found out about the file and its columns

    @property
    def error(self) -> TableError | None:
        """Everything that keeps the table from being used."""
        return self.table.error

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON."""
        error = self.table.error
        return {
            "table": self.table.where,
            "rows": self.rows,
            "columns": [vars(column) for column in self.columns],
            **{role: self.about.get(role) for role in ("label", "weight", "time")},
            "notes": list(self.notes),
            "problems": [] if error is None else [problem.line(error.given) for problem in error.problems],
            "config": [] if error is None else error.lines(),
        }

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.table.columns.values())))


def check_table(path: Path, roles: Roles, reading: Reading | None = None) -> Checked:
    """Return what a table holds, with everything that keeps it from being used; the label may be left open."""
    if format_of(path) == "svmlight":
        raise DataError(f"{path}: is sparse text, which needs no label column and has no columns to understand")
    table = read_raw_table(path, roles, reading)
    y = None if table.labels is None or table.labels.values is None else table.y.astype(np.float64)
    encodings, _ = encodings_of(table.columns, table.kinds, y)
    notes = table.notes
    # the mean labels of a row would have its own
    own = [one for one in encodings if not isinstance(one, MeanEncoding)]
    if table.error is None and own and y is not None:
        names = [name for one in own for name in one.names]
        notes += tuple(filter(None, [note_on_leaks(encode(table.columns, own, table.where), y, names)]))
    by_column = {one.column: one for one in encodings}
    columns = tuple(Understood.of(table, column, by_column.get(name)) for name, column in table.candidates.items())
    return Checked(table, columns, dict(_about(table)), notes)


def _values_text(column: Column, kind: Kind) -> str:
    """Return the values of a column in short: the range of numbers and dates, the most frequent texts."""
    if column.missing.all():
        return ""
    if (numbers := kind.read(column).numbers) is not None:
        low, high = np.nanmin(numbers), np.nanmax(numbers)
        return f"{date_at(low)} to {date_at(high)}" if kind.is_date else f"{low:.10g} to {high:.10g}"
    short = {text: text if len(text) <= 20 else f"{text[:17]}..." for text in column.counts}
    if kind.is_id:
        return ", ".join([*list(short.values())[:_SHOWN], "..."])
    total = sum(column.counts.values())
    first_ones = sorted(column.counts, key=lambda text: (-column.counts[text], text))
    shown = [f"{short[text]} {column.counts[text] / total:.0%}" for text in first_ones[:_SHOWN]]
    more = [f"{len(first_ones) - _SHOWN} more"] if len(first_ones) > _SHOWN else []
    return ", ".join(shown + more)


def _about(table: Table) -> Iterator[tuple[str, str]]:
    """Yield what is known of the labels, weights and times of a table: role and text."""
    roles, labels, weights, times = table.roles, table.labels, table.weights, table.times
    if labels is not None and labels.values is not None:
        name = roles.label if labels.positive is None else f"{roles.label} = {labels.positive}"
        positives = int((labels.values > 0).sum())
        yield "label", f"{name}: {positives} of {len(labels.values)} rows ({positives / len(labels.values):.1%})"
    if weights is not None:
        zeros = int((weights == 0).sum())
        left_out = f"; {zeros} rows of weight 0 are left out of training" if zeros else ""
        yield "weight", f"{roles.weight}: {weights.min():.10g} to {weights.max():.10g}{left_out}"
    if times is not None:
        yield "time", f"{roles.time}: {times.span}, {len(times.moments)} different times"


def rich_check(checked: Checked) -> list[RenderableType]:
    """Return what a table holds for a terminal; long cells are folded between words, and no number is cut."""
    from rich.text import Text

    rows = [[one.column, one.kind, f"{one.missing or ''}", one.values, one.becomes] for one in checked.columns]
    headings = ("column", "kind", "missing", "values", "becomes")
    shown = folded_table(headings, rows, whole=("kind", "missing"), right=("missing",))
    n_features = sum(len(one.features) for one in checked.columns)
    kept = f"{checked.rows} rows, {len(checked.columns)} columns beside the label, {n_features} features"
    about = [f"{role} {text}" for role, text in checked.about.items()]
    if checked.table.roles.label is None:
        guessed = label_candidates(checked.table)
        could = f"; it could be {', '.join(guessed[:5])}" if guessed else ""
        about = [f"label: none given{could}", *about]
    lines = [f"{checked.table.where}: {kept}", *checked.notes]
    return [*map(Text, lines), Text(), shown, *([Text(), *map(Text, about)] if about else [])]


def label_candidates(table: Table) -> list[str]:
    """Return the columns that could be the label: those of two values, the likeliest alone where one is likely."""
    graded = table.queries is not None
    few = {name: one for name, one in table.candidates.items() if one.different <= _MOST_LABELS}
    found = [name for name, one in few.items() if labels_of(one, graded=graded).values is not None]
    named = [name for name in found if name.lower() in _LABEL_NAMES]
    return named if len(named) == 1 else found


def write_config(path: Path, roles: Roles, output: Path | None, *, force: bool = False) -> tuple[Path, Checked]:
    """Write a config to start from, and return its path and what the table holds.

    The label is guessed only where one column alone can be it, and the query only where labels are grades. Columns that
    cannot be used are named in ``drop``, and so are ids in a table of numbers, which a run would take as they are.
    """
    output = Path(f"{path.stem}.toml") if output is None else output
    if output.exists() and not force:
        raise RunError(f"--output: {output} is there already; give another name, or --force to write over it")
    checked = check_table(path, roles)
    if roles.label is None and len(guessed := label_candidates(checked.table)) == 1:
        roles = replace(roles, label=guessed[0])
        checked = check_table(path, roles)
    firsts = (remedy for problem in checked.table.problems for remedy in problem.remedies[:1])
    if (query := next((str(remedy.value) for remedy in firsts if remedy.key == "query"), None)) is not None:
        checked = check_table(path, replace(roles, query=query))
    with writing(output, "--output"):
        output.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(output, "\n".join(_config_lines(checked, path, output)).encode())
    return output, checked


_SOLVED = ("label", "drop", "missing", "unlabelled")  # keys whose remedy is in the config, that of others a comment


def open_keys(error: TableError) -> list[str]:
    """Return the keys that the user has to decide about in the config that `write_config` wrote."""
    return [key for key in (line.partition(" = ")[0] for line in error.lines()) if key not in _SOLVED]


def _config_lines(checked: Checked, path: Path, output: Path) -> Iterator[str]:
    table, roles = checked.table, checked.table.roles
    yield f"# How ltr ranks the rows of {path.name}. `ltr options` lists every key."
    yield from ("", "[data]", f"path = {toml_value(os.path.relpath(path.absolute(), output.parent.absolute()))}")
    solved = {} if checked.error is None else dict(line.split(" = ", 1) for line in checked.error.lines())
    if roles.label is None:
        could = label_candidates(table)
        hint = f": it could be {', '.join(could[:5])}" if could else ""
        yield f'label = ""  # fill in the column to rank by{hint}'
    else:
        known = f"  # {checked.about['label']}" if "label" in checked.about else ""
        yield f"label = {solved.pop('label', toml_value(roles.label))}{known}"
    for key in ("positive", "query", "group", "time", "weight"):
        if (value := getattr(roles, key)) is not None:
            yield f"{key} = {toml_value(value)}"
    if left_out := [f"{name} ({kind.reason})" for name, kind in table.kinds.items() if kind.reason]:
        yield f"# left out by itself: {', '.join(left_out)}"
    ids = [name for name, one in table.candidates.items() if table.plain and kind_of(one).is_id]
    drop = solved.pop("drop", toml_value([*roles.drop, *ids]))
    yield f"drop = {drop}  # add what must not be used, such as what is known only afterwards"
    for key, what in (("missing", "texts that stand for missing values"), ("unlabelled", "rows without a label")):
        if key in solved:
            yield f"{key} = {solved.pop(key)}  # {what}"
    yield from (f"# {key} = {value}  # if so, take away the first #" for key, value in solved.items())
    rows = checked.rows if table.queries is None else int(np.median(np.unique(table.queries, return_counts=True)[1]))
    top_k = f"top_k = {min(50, max(2, rows // 4))}  # how many rows at the top matter: those that you can act on"
    statistic, limit = 'statistic = "dcg"  # what makes a good list', "time_limit = 60  # seconds for the exact search"
    yield from ("", "[exact]", top_k, statistic, limit, "")
