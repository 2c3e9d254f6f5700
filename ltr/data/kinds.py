"""What the columns of a table are - numbers, categories, dates, ids - and which of them cannot be features.

===========  ==========================================================================================================
kind         columns
===========  ==========================================================================================================
``number``   numbers and booleans
``yes/no``   texts of two values
``category`` texts of few values: the `MOST_VALUES` most frequent ones are those of at least half the rows
``date``     dates, with times or without
``id``       texts that (nearly) all differ, whole numbers that run from 0 or 1 or rise from row to row, and whole
             numbers or mostly different texts in columns whose name ends in ``id``: left out, for they name a row
``constant`` one value in all rows: left out
``empty``    no value in any row: left out
===========  ==========================================================================================================

All other columns are problems, which the user decides: texts of many values, texts among numbers, yes and no in several
spellings, dates whose day and month could be swapped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ltr.data.columns import ISO, Column, is_amount, spellings, yes_of
from ltr.data.problems import Problem, Remedy, listed

MOST_VALUES = 10
"""Largest number of values of a text column that are features of their own."""
RARE = 0.02
"""Least share of the rows, without missing ones, that a value needs to be a feature of its own."""

LEFT_OUT = ("id", "constant", "empty")
"""Kinds that are no features."""

_ID_NAME = re.compile(r"(?i:(^|.*[\W_])(id|uuid|guid))|.*[a-z0-9](Id|ID)")
_MOSTLY = 0.8  # least share of numbers or dates in a column whose other texts are taken for mistakes
_DIFFERENT = 0.95  # least share of different texts in a column that names rows
_STRAYS = 20  # largest number of different texts among numbers that are taken for words for a missing value
_SHORTEST = 10  # least number of rows in which whole numbers from 1 on are a numbering


@dataclass(frozen=True)
class Kind:
    """What a column is.

    Args:
        name: a kind of the table above, or ``"unclear"`` with a problem.
        reason: why it is left out; empty for features.
        date_format: format of dates.
        problem: what keeps the column from being used.
    """

    name: str
    reason: str = ""
    date_format: str = ""
    problem: Problem | None = None

    @property
    def asked(self) -> str:
        """The kind as it is asked for: the format for a date."""
        return self.date_format or self.name


def kind_of(column: Column, asked: str | None = None, *, wanted: bool = False) -> Kind:
    """Return what a column is.

    Args:
        column: the column.
        asked: kind that the user asks for: ``"number"``, ``"category"``, or the format of a date.
        wanted: whether the user named it as a feature, so that it is not left out as an id.

    Examples:
        >>> kind_of(Column("mode", ["bus", "car", "bus", "car", "walk", "walk"])).name
        'category'
        >>> kind_of(Column("plate", ["K-1", "K-2", "B-7"])).reason
        'all 3 texts differ'
    """
    if column.missing.all():
        return Kind("empty", "no value in any row")
    if column.durations:
        rule = f"column {column.name!r} holds durations: turn them into numbers in the table"
        return Kind("unclear", problem=Problem(rule, (_drop(column),)))
    if asked is not None and asked not in ("number", "category", "yes/no"):
        return _as_date(column, asked)
    if asked in ("category", "yes/no"):
        return Kind("category")
    if asked is None and column.different == 1 and not column.missing.any() and not (wanted and column.plain):
        return Kind("constant", f"{next(iter(column.counts))!r} in all rows")
    if formats := column.date_formats:
        return Kind("date", date_format=formats[0]) if len(formats) == 1 else _two_formats(column, formats)
    if column.ambiguous:
        text = next(text for text in column.counts if "," in text)
        rule = f"column {column.name!r}: the comma of {text!r} could be a decimal mark, or divide thousands"
        remedies = (Remedy("for a decimal comma", "decimal", ","), Remedy("for thousands", "decimal", "."))
        return Kind("unclear", problem=Problem(rule, remedies))
    if column.numbers is not None:
        return _number(column, wanted=wanted or asked is not None)
    if asked == "number" or column.share_of_numbers >= _MOSTLY:
        return _texts_among_numbers(column)
    if (form := column.likely_format()) and column.share_of_dates(form) >= _MOSTLY:
        return _as_date(column, form)
    return _texts(column, wanted=wanted)


def kinds_of(
    columns: Mapping[str, Column],
    asked: Mapping[str, str] | None = None,
    *,
    date_format: str | None = None,
    wanted: Collection[str] = (),
) -> dict[str, Kind]:
    """Return the kinds of all columns.

    Where all columns are stored as numbers and booleans, without a missing value, they are numbers, also ids and
    constants: such a table has nothing to prepare.

    Args:
        columns: the columns by name.
        asked: kinds that the user asks for, by column, as for `kind_of`.
        date_format: format of dates, as Python's ``strftime`` writes it, for all columns that it fits.
        wanted: columns that the user named as features.
    """
    asked = {name: kind for name, kind in (asked or {}).items() if name in columns}
    if is_plain(columns) and set(asked.values()) <= {"number"}:
        return {name: _number(column, wanted=True) for name, column in columns.items()}
    found = {}
    for name, column in columns.items():
        own = asked.get(name)
        if own is None and date_format is not None and not column.plain and column.dates(date_format) is not None:
            own = date_format
        found[name] = kind_of(column, own, wanted=name in wanted)
    return found


def is_plain(columns: Mapping[str, Column]) -> bool:
    """Return whether all columns are stored as numbers or booleans, none of them missing."""
    return all(column.plain for column in columns.values())


def _drop(column: Column) -> Remedy:
    return Remedy("leaves it out", "drop", [column.name])


def _number(column: Column, *, wanted: bool) -> Kind:
    assert column.numbers is not None
    known = column.numbers[~column.missing]
    if not np.isfinite(known).all():
        row = int(np.flatnonzero(np.isinf(column.numbers))[0]) + 1
        rule = f"column {column.name!r} must hold finite numbers, got {column.numbers[row - 1]:g} in row {row}"
        return Kind(
            "unclear", problem=Problem(rule, (Remedy("takes it as missing", "missing", ["inf", "-inf"]), _drop(column)))
        )
    if not wanted and (known == np.floor(known)).all():
        if _ID_NAME.fullmatch(column.name) and column.different > 2:
            return Kind("id", "whole numbers in a column that is called an id")
        first, last, n = known.min(), known.max(), len(column)
        if n == len(known) == column.different >= _SHORTEST:
            if first in (0, 1) and last - first == n - 1:
                return Kind("id", f"the numbers from {first:.0f} to {last:.0f}, each once")
            if first < n and last - first < 2 * n and (np.diff(known) > 0).all():
                return Kind("id", "whole numbers that rise from row to row, as row numbers do")
    return Kind("number")


def _texts(column: Column, *, wanted: bool) -> Kind:
    counts, known = column.counts, int((~column.missing).sum())
    folded = {text.casefold() for text in counts}
    if (spelt := spellings(counts)) and (len(folded) == 1 or yes_of(folded) is not None):
        rule = f"column {column.name!r}: {spelt} differ only in capital letters: write each value one way"
        remedies = (Remedy("takes every spelling as a value of its own", "categories", [column.name]), _drop(column))
        return Kind("unclear", problem=Problem(rule, remedies))
    if len(counts) == 2:
        return Kind("yes/no")
    if not wanted and len(counts) > 2 and len(counts) >= _DIFFERENT * known:
        signed = [text for text in counts if _is_signed_amount(text)]
        if len(signed) >= _MOSTLY * len(counts):  # left out as an id, a column that matters would be lost
            rule = f"column {column.name!r} holds numbers with signs such as € and %, got {signed[0]!r}"
            rule += ": write the numbers alone"
            return Kind("unclear", problem=Problem(rule, (_drop(column),)))
        return Kind("id", f"{'all' if len(counts) == known else f'{len(counts)} of'} {known} texts differ")
    if not wanted and _ID_NAME.fullmatch(column.name) and len(counts) > known / 2:
        return Kind("id", "different texts in a column that is called an id")
    frequent = column.frequent(RARE, MOST_VALUES)
    if 2 * sum(counts[text] for text in frequent) >= known:
        return Kind("category")
    row = int(np.argmin(column.missing)) + 1
    example = f"such as {listed([column.texts[row - 1]])} in row {row}"
    rule = f"column {column.name!r} has {len(counts)} different texts in {known} rows, {example}"
    if not frequent:
        return Kind("unclear", problem=Problem(f"{rule}: none of them is frequent", (_drop(column),)))
    takes = f"takes its {len(frequent)} most frequent ones and joins the others"
    remedies = (_drop(column), Remedy(takes, "categories", [column.name]))
    return Kind("unclear", problem=Problem(f"{rule}: too many for features of their own", remedies))


def _is_signed_amount(text: str) -> bool:
    """Return whether a text is a number with a sign of a currency or per cent before or after it.

    Examples:
        >>> [_is_signed_amount(text) for text in ("1.234,50 €", "-$12", "3 %", "12", "A 7")]
        [True, True, True, False, False]
    """
    bare = re.sub("[€$£¥%]", "", text)
    return bare != text and is_amount(bare)


def _texts_among_numbers(column: Column) -> Kind:
    row, cell = column.not_a_number
    rule = f"column {column.name!r} must hold numbers, got {cell!r} in row {row}"
    return _with_strays(column, rule, list(dict.fromkeys(column.texts_beside_numbers())))


def _two_formats(column: Column, formats: Sequence[str]) -> Kind:
    import pandas as pd

    days = [column.dates(form) for form in formats]
    known = np.array([one for one in days if one is not None])
    row = int(np.argmax(~column.missing & (known[0] != known[1])))
    rule = f"column {column.name!r}: day and month of {column.texts[row]!r} in row {row + 1} could be swapped"
    shown = [f"{pd.Timestamp(one[row], unit='D'):%d %B %Y}" for one in known]
    remedies = [Remedy(f"takes it for {day}", "date_format", form) for day, form in zip(shown, formats, strict=True)]
    return Kind("unclear", problem=Problem(rule, tuple(remedies)))


def _as_date(column: Column, form: str) -> Kind:
    if column.dates(form) is not None:
        return Kind("date", date_format=form)
    row, cell = column.not_a_date(form)
    shape = "such as 2024-05-31" if form == ISO else f"of the form {form}"
    rule = f"column {column.name!r} must hold dates {shape}, got {cell!r} in row {row}"
    return _with_strays(column, rule, column.texts_beside_dates(form))


def _with_strays(column: Column, rule: str, texts: Sequence[str]) -> Kind:
    """Return the problem of a column with a few cells of another kind."""
    more = f" (and {listed(texts[1:])} in other rows)" if texts[1:] else ""
    whole = Remedy("takes all as texts", "categories", [column.name])
    if len(texts) > _STRAYS:
        return Kind("unclear", problem=Problem(f"{rule}{more}", (_drop(column), whole)))
    missing = Remedy(f"takes {'them' if texts[1:] else 'it'} as missing", "missing", list(texts))
    return Kind("unclear", problem=Problem(f"{rule}{more}", (missing, whole)))
