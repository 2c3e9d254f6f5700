"""What the columns of a table are - numbers, categories, dates, ids - and which of them cannot be features.

===========  ==========================================================================================================
kind         columns
===========  ==========================================================================================================
``number``   numbers and booleans, also with a unit such as % beside each of them
``yes/no``   texts of two values
``category`` texts of few values or many, and codes such as 01234
``date``     dates, with times or without
``id``       texts that mostly differ, whole numbers that run from 0 or 1 or rise from row to row, and whole
             numbers or mostly different texts in columns whose name ends in ``id``: left out, for they name a row
``constant`` one value in all rows: left out
``empty``    no value in any row: left out
===========  ==========================================================================================================

All other columns are problems, which the user decides: texts among numbers, yes and no in several spellings, numbers
and dates that can be read in two ways.

What a column is, and in which form its texts are numbers or dates, is decided here, on the table that is learned
from. Later rows are read by the same `Kind`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ltr.data.columns import Column, spellings, yes_of
from ltr.data.forms import ISO, DateForm, NumberForm, date_at
from ltr.data.problems import Problem, Remedy, listed

MOST_VALUES = 10
"""Largest number of values of a text column that are features of their own."""
RARE = 0.02
"""Least share of the rows, without missing ones, that a value needs to be a feature of its own."""

LEFT_OUT = ("id", "constant", "empty")
"""Kinds that are no features."""

_ID_NAME = re.compile(r"(?i:(^|.*[\W_])(id|uuid|guid))|.*[a-z0-9](Id|ID)")
_MOSTLY = 0.8  # least share of numbers or dates in a column whose other texts are taken for mistakes
_DIFFERENT = 0.5  # share of different texts above which a column names rows
_STRAYS = 20  # largest number of different texts among numbers that are taken for words for a missing value
_SHORTEST = 10  # least number of rows in which whole numbers from 1 on are a numbering


@dataclass(frozen=True)
class Kind:
    """What a column is.

    Args:
        name: a kind of the table above, or ``"unclear"`` with a problem.
        reason: why it is left out; empty for features.
        number: form in which its texts are numbers; None for other kinds.
        date: form in which its cells are dates; None for other kinds.
        note: what a user should know about how its cells are read; empty for nothing.
        problem: what keeps the column from being used.
    """

    name: str
    reason: str = ""
    number: NumberForm | None = None
    date: DateForm | None = None
    note: str = ""
    problem: Problem | None = None

    @property
    def is_feature(self) -> bool:
        """Whether columns of this kind become features."""
        return self.name not in (*LEFT_OUT, "unclear")

    def read(self, column: Column) -> Column:
        """Return a column of this kind, the cells of which are read as this kind says."""
        if self.number is not None:
            return column.read_as(self.number)
        return column.read_as("text") if self.name in ("category", "yes/no", "id") else column


def kind_of(
    column: Column,
    asked: str | None = None,
    *,
    date_format: str | None = None,
    first_year: int | None = None,
    wanted: bool = False,
) -> Kind:
    """Return what a column is.

    Args:
        column: the column.
        asked: kind that the user asks for: ``"number"``, ``"category"``, or the format of a date.
        date_format: format of dates, as Python's ``strftime`` writes it, if it fits.
        first_year: first of the hundred years that years of two digits stand for.
        wanted: whether the user named it as a feature, so that it is not left out as an id.

    Examples:
        >>> kind_of(Column("mode", ["bus", "car", "bus", "car", "walk", "walk"])).name
        'category'
        >>> kind_of(Column("paid", ["$5", "$7.50", "-", "($1)"])).note
        "column 'paid' is read as numbers in $, '-' as missing"
    """
    missing = column.missing
    if column.nested:
        return _unclear(column.nested, _drop(column))
    if missing.all():
        return Kind("empty", "no value in any row")
    if column.durations:
        return _unclear(f"column {column.name!r} holds durations: turn them into numbers in the table", _drop(column))
    if asked is not None and asked not in ("number", "category", "yes/no"):
        return _as_date(column, DateForm((asked,), first_year))
    if asked in ("category", "yes/no"):
        return Kind("category")
    if asked is None and column.different == 1 and not missing.any() and not (wanted and column.plain):
        return Kind("constant", f"{next(iter(column.counts))!r} in all rows")
    if asked is None and (forms := _date_forms(column, date_format, first_year)):
        return _dated(column, forms)
    if column.codes and asked is None:
        note = f"column {column.name!r} holds codes with zeros in front, which are texts"
        note += "; data.numbers takes them as numbers"
        return replace(_texts(column.read_as("text"), wanted=wanted), note=note)
    if text := column.ambiguous:
        (name, mark), other = (("comma", ","), ".") if "," in text else (("point", "."), ",")
        rule = f"column {column.name!r}: the {name} of {text!r} could be a decimal mark, or divide thousands"
        return _unclear(
            rule, Remedy(f"for a decimal {name}", "decimal", mark), Remedy("for thousands", "decimal", other)
        )
    if asked == "number" and column.form is not None and column.form.unit:
        column = column.read_as(replace(column.form, bare=True))
    if column.numbers is not None:
        return _number(column, wanted=wanted or asked is not None)
    if asked == "number" or column.share() >= _MOSTLY:
        return _texts_among_numbers(column)
    if (form := column.likely_form(first_year)) and column.share(form) >= _MOSTLY:
        return _as_date(column, form)
    return _texts(column, wanted=wanted)


def kind_of_times(column: Column, *, date_format: str | None = None, first_year: int | None = None) -> Kind:
    """Return whether a column without missing cells holds dates or numbers, whatever else they look like.

    Args:
        column: the column.
        date_format, first_year: as for `kind_of`.
    """
    if forms := _date_forms(column, date_format, first_year):
        return _dated(column, forms)
    likely = None if column.numbers is not None else column.likely_form(first_year)
    if likely is not None and column.share(likely) >= _MOSTLY:
        return _as_date(column, likely)
    if column.durations or column.share() < _MOSTLY:
        rule = f"column {column.name!r} must hold dates such as 2024-05-31, weeks such as 2024-W22, or numbers"
        return _unclear(f"{rule}, got {column.texts[0]!r} in row 1")
    return kind_of(column, "number")


def kinds_of(
    columns: Mapping[str, Column],
    asked: Mapping[str, str] | None = None,
    *,
    date_format: str | None = None,
    first_year: int | None = None,
    wanted: Collection[str] = (),
) -> dict[str, Kind]:
    """Return the kinds of all columns.

    Where all columns are stored as numbers and booleans, without a missing value, they are numbers, also ids and
    constants: such a table has nothing to prepare.

    Args:
        columns: the columns by name.
        asked: kinds that the user asks for, by column, as for `kind_of`.
        date_format, first_year: as for `kind_of`, for all columns.
        wanted: columns that the user named as features.
    """
    asked = {name: kind for name, kind in (asked or {}).items() if name in columns}
    if is_plain(columns) and set(asked.values()) <= {"number"}:
        return {name: _number(column, wanted=True) for name, column in columns.items()}
    dates: dict[str, Any] = {"date_format": date_format, "first_year": first_year}
    named = set(wanted)
    return {name: kind_of(column, asked.get(name), wanted=name in named, **dates) for name, column in columns.items()}


def is_plain(columns: Mapping[str, Column]) -> bool:
    """Return whether all columns are stored as numbers or booleans, none of them missing."""
    return all(column.plain for column in columns.values())


def _unclear(rule: str, *remedies: Remedy) -> Kind:
    return Kind("unclear", problem=Problem(rule, remedies))


def _drop(column: Column) -> Remedy:
    return Remedy("leaves it out", "drop", [column.name])


def _number(column: Column, *, wanted: bool) -> Kind:
    assert column.numbers is not None
    column = column.read_as(column.form)
    numbers, missing = column.numbers, column.missing
    assert numbers is not None
    known = numbers[~missing]
    if not np.isfinite(known).all():
        row = int(np.flatnonzero(np.isinf(numbers))[0]) + 1
        rule = f"column {column.name!r} must hold finite numbers, got {numbers[row - 1]:g} in row {row}"
        return _unclear(rule, Remedy("takes it as missing", "missing", ["inf", "-inf"]), _drop(column))
    if not wanted and (known == np.floor(known)).all():
        if _ID_NAME.fullmatch(column.name) and column.different > 2:
            return Kind("id", "whole numbers in a column that is called an id", column.form)
        first, last, n = known.min(), known.max(), len(column)
        if n == len(known) == column.different >= _SHORTEST:
            if first in (0, 1) and last - first == n - 1:
                return Kind("id", f"the numbers from {first:.0f} to {last:.0f}, each once", column.form)
            if first < n and last - first < 2 * n and (np.diff(known) > 0).all():
                return Kind("id", "whole numbers that rise from row to row, as row numbers do", column.form)
    return Kind("number", number=column.form, note=_note_on_amounts(column))


def _note_on_amounts(column: Column) -> str:
    """Return what is left out of the texts of a column of numbers; empty for plain ones."""
    assert column.form is not None
    unit, dashes = column.form.unit, column.dashes
    missing = f"{listed(dashes)} as missing" if dashes else ""
    if unit:
        return f"column {column.name!r} is read as numbers in {unit}{f', {missing}' if missing else ''}"
    return f"column {column.name!r}: {listed(dashes)} is read as missing" if missing else ""


def _texts(column: Column, *, wanted: bool) -> Kind:
    counts, known = column.counts, int((~column.missing).sum())
    folded = {text.casefold() for text in counts}
    if (spelt := spellings(counts)) and (len(folded) == 1 or yes_of(folded) is not None):
        rule = f"column {column.name!r}: {spelt} differ only in capital letters: write each value one way"
        every = Remedy("takes every spelling as a value of its own", "categories", [column.name])
        return _unclear(rule, every, _drop(column))
    if len(counts) == 2:
        return Kind("yes/no")
    if 2 * sum(counts[text] for text in column.frequent(RARE, MOST_VALUES)) >= known:
        return Kind("category")
    if len(counts) > _DIFFERENT * known and wanted:
        row = int(np.argmin(column.missing))
        rule = f"column {column.name!r} has {len(counts)} different texts in {known} rows, such as"
        why = f"{column.texts[row]!r} in row {row + 1}: most rows have a text of their own"
        return _unclear(f"{rule} {why}", _drop(column))
    if len(counts) > _DIFFERENT * known:
        return Kind("id", f"{'all' if len(counts) == known else f'{len(counts)} of'} {known} texts differ")
    return Kind("category")


def _texts_among_numbers(column: Column) -> Kind:
    row, cell = column.first_other()
    form = column.form or NumberForm(".")
    wanted = form.describe() if form.unit or form.decimal == "," else "numbers"
    rule = f"column {column.name!r} must hold {wanted}, got {cell!r} in row {row}"
    return _with_strays(column, rule, list(dict.fromkeys(column.others())))


def _date_forms(column: Column, date_format: str | None, first_year: int | None) -> list[DateForm]:
    """Return the forms in which all cells are dates, of those that could be swapped the one with the given format."""
    if date_format is not None and not column.plain:
        given = DateForm((date_format,), first_year)
        if column.dates(given) is not None:
            return [given]
    forms = column.date_forms(first_year)
    return [form for form in forms if date_format in form.formats] or forms


def _dated(column: Column, forms: Sequence[DateForm]) -> Kind:
    """Return the kind of a column of dates, or the problem that they can be read in several ways."""
    if len(forms) == 1 and forms[0].two_digits and forms[0].first_year is None:
        row = int(np.argmax(~column.missing))
        rule = f"column {column.name!r}: {column.texts[row]!r} in row {row + 1} has a year of two digits"
        way = Remedy("takes such years for 1930 to 2029; give the first of the hundred years", "first_year", 1930)
        return _unclear(rule, way)
    if len(forms) == 1:
        return Kind("date", date=forms[0])
    known = np.array([column.dates(form) for form in forms[:2]], dtype=np.float64)
    row = int(np.argmax(~column.missing & (known[0] != known[1])))
    rule = f"column {column.name!r}: day and month of {column.texts[row]!r} in row {row + 1} could be swapped"
    remedies = []
    for days, form, other in zip(known[:, row], forms, reversed(forms[:2]), strict=False):
        own = next((one for one in form.formats if one not in other.formats), form.formats[0])
        remedies.append(Remedy(f"takes it for {date_at(days):%d %B %Y}", "date_format", own))
    return _unclear(rule, *remedies)


def _as_date(column: Column, form: DateForm) -> Kind:
    if form.two_digits and form.first_year is None and column.dates(form) is not None:
        return _dated(column, [form])
    if column.dates(form) is not None:
        return Kind("date", date=form)
    row, cell = column.first_other(form)
    shape = "such as 2024-05-31" if form.formats == (ISO,) else f"of the form {' or '.join(form.formats)}"
    rule = f"column {column.name!r} must hold dates {shape}, got {cell!r} in row {row}"
    return _with_strays(column, rule, column.others(form))


def _with_strays(column: Column, rule: str, texts: Sequence[str]) -> Kind:
    """Return the problem of a column with a few cells of another kind."""
    more = f" (and {listed(texts[1:])} in other rows)" if texts[1:] else ""
    whole = Remedy("takes all as texts", "categories", [column.name])
    if len(texts) > _STRAYS:
        return _unclear(f"{rule}{more}", whole, _drop(column))
    missing = Remedy(f"takes {'them' if texts[1:] else 'it'} as missing", "missing", list(texts))
    return _unclear(f"{rule}{more}", missing, whole)
