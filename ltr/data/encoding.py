"""Numbers from one column of a table: how its values become features, fitted on training rows.

A number stays a number, and a date becomes a number of days. Their missing values become the training median. Texts
become 0 and 1: one feature for each frequent value, but none for the most frequent one, the *reference*, and one for
all others, ``mode = other``. A feature for the reference would say nothing new to a linear score: the features of a
column would add up to 1 in every row, and a constant changes no ranking. It would cost the exact search a dimension,
and weights would not be unique. So a weight says how far its value stands above the reference. Where training rows miss
the value, ``age is missing`` is a feature, too.

A value that no training row has counts as ``other``. If training rows have no rare values, there is no such feature,
and the row counts as one with the reference. In the same way, a missing value counts as the median or the reference
alone, if (nearly) no training row misses it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.columns import Column, yes_of
from ltr.data.kinds import MOST_VALUES, RARE
from ltr.data.problems import Problem, TableError, listed, unknown

FloatArray = NDArray[np.float64]
DAYS = " (days since 1970)"
"""End of the name of a feature that is made of a date."""


def date_text(days: float) -> str:
    """Return the date that is so many days after 1 January 1970.

    Examples:
        >>> date_text(1650.4)
        '1974-07-09'
    """
    return str(np.datetime64(0, "D") + np.timedelta64(math.floor(days), "D"))


@dataclass(frozen=True)
class Encoding:
    """How a column becomes features.

    Args:
        column: name of the column.
        kind: ``"number"``, ``"date"`` or ``"category"``.
        median: value that replaces missing ones; None for categories.
        date_format: format of dates; empty for other kinds.
        values: texts that are features of their own, the most frequent first.
        reference: text without a feature of its own.
        other: whether there is a feature for all other texts.
        missing: whether there is a feature for missing values.

    Examples:
        >>> encoding = encoding_of(Column("mode", ["bus", "bus", "bus", "car", "car", None, None]), "category")
        >>> encoding.names, encoding.features(Column("mode", ["car", "bus", "boat", ""])).tolist()
        (('mode = car', 'mode is missing'), [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    """

    column: str
    kind: str
    median: float | None = None
    date_format: str = ""
    values: tuple[str, ...] = ()
    reference: str = ""
    other: bool = False
    missing: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        found = []
        if self.kind == "category" and self.values == ("true",) and self.reference == "false":
            found.append(self.column)
        elif self.kind == "category":
            found += [f"{self.column} = {value}" for value in self.values]
        else:
            found.append(f"{self.column}{DAYS}" if self.kind == "date" else self.column)
        if self.other:
            found.append(f"{self.column} = {'another value' if 'other' in (*self.values, self.reference) else 'other'}")
        return (*found, f"{self.column} is missing") if self.missing else tuple(found)

    def features(self, column: Column) -> FloatArray:
        """Return the features of a column's rows, (n, k).

        Raises:
            ValueError: a cell that is no number or date; `problem` describes it.
        """
        parts = [column.missing] if self.missing else []
        if self.kind == "category":
            known = (self.reference, *self.values)
            found = [column.texts == value for value in self.values]
            other = [~column.missing & ~np.isin(column.texts.astype(str), known)] if self.other else []
            parts = [*found, *other, *parts]
        else:
            numbers = column.dates(self.date_format) if self.kind == "date" else column.numbers
            if numbers is None or np.isinf(numbers).any():
                raise ValueError(f"column {self.column!r} holds other cells than {self.kind}s")
            parts = [np.where(np.isnan(numbers), np.float64(self.median or 0.0), numbers), *parts]
        stacked = np.column_stack(parts) if parts else np.empty((len(column), 0))
        return np.ascontiguousarray(stacked, dtype=np.float64)

    def problem(self, column: Column) -> Problem | None:
        """Return what keeps a column of new rows from being used, None if nothing does."""
        if self.kind == "number" and column.numbers is None:
            row, cell = column.not_a_number
            return Problem(f"column {self.column!r} must hold numbers, got {cell!r} in row {row}")
        if self.kind == "number" and column.numbers is not None and np.isinf(column.numbers).any():
            row = int(np.argmax(np.isinf(column.numbers))) + 1
            return Problem(
                f"column {self.column!r} must hold finite numbers, got {column.numbers[row - 1]:g} in row {row}"
            )
        if self.kind == "date" and column.dates(self.date_format) is None:
            row, text = column.not_a_date(self.date_format)
            return Problem(f"column {self.column!r} must hold dates ({self.date_format}), got {text!r} in row {row}")
        return None

    def notes(self, column: Column) -> Iterator[str]:
        """Yield what in a column of new rows the training rows did not have, and what it is taken for."""
        missing = int(column.missing.sum())
        if missing and not self.missing:
            instead = repr(self.reference) if self.kind == "category" else f"the training median {self._median_text()}"
            yield f"column {self.column!r}: missing in {missing} rows, taken as {instead}"
        if self.kind == "category":
            unseen = [text for text in column.counts if text not in (self.reference, *self.values)]
            if unseen and not self.other:
                rows = sum(column.counts[text] for text in unseen)
                where = f"column {self.column!r}: {listed(unseen, 3)} in {rows} rows"
                yield f"{where}, new since training, taken as {self.reference!r}"

    def describe(self) -> str:
        """Return in words what becomes of the column."""
        missing = " and whether it is missing" if self.missing else ""
        if self.kind == "category":
            if not self.values and not self.other:
                return "whether it is missing"
            names = [
                name.removeprefix(f"{self.column} = ") for name in self.names if name != f"{self.column} is missing"
            ]
            if names == [self.column]:
                return f"1 for true{missing}"
            return f"1 for {', '.join(names)} (0 for {self.reference}){missing}"
        return f"{'days since 1970' if self.kind == 'date' else 'the number'}{missing}"

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON, without what is left at its default."""
        given = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {key: value for key, value in given.items() if value not in (None, "", [], False)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Encoding:
        """Return the encoding of a JSON object."""
        return cls(**{**given, "values": tuple(given.get("values", ()))})

    def _median_text(self) -> str:
        assert self.median is not None
        if self.kind == "date":
            return date_text(self.median)
        return f"{self.median:g}"


def encoding_of(column: Column, asked: str, *, most_values: int = MOST_VALUES, rare: float = RARE) -> Encoding | None:
    """Return the encoding of a column of training rows, None if it has nothing to say in them.

    Args:
        column: the column.
        asked: ``"number"``, ``"category"``, ``"yes/no"``, or the format of a date.
        most_values: largest number of values that are features of their own.
        rare: least share of the rows that have, or miss, a value for a feature of its own.
    """
    missing = int(column.missing.sum())
    flag = max(2.0, rare * len(column)) <= missing < len(column)
    if missing == len(column):
        return None
    if asked not in ("category", "yes/no"):
        numbers = column.numbers if asked == "number" else column.dates(asked)
        assert numbers is not None
        form = {} if asked == "number" else {"date_format": asked}
        kind = "number" if asked == "number" else "date"
        return Encoding(column.name, kind, median=float(np.nanmedian(numbers)), missing=flag, **form)  # type: ignore[arg-type]
    frequent = column.frequent(rare, most_values)
    if len(column.counts) == 2:
        yes = yes_of(column.counts)
        by_rows = sorted(column.counts, key=lambda text: (-column.counts[text], text))
        reference, value = by_rows if yes is None else (next(text for text in column.counts if text != yes), yes)
        return Encoding(column.name, "category", values=(value,), reference=reference, missing=flag)
    reference = frequent[0] if frequent else ""
    values, other = tuple(frequent[1:]), len(column.counts) > len(frequent)
    if not values and not other and not flag:
        return None
    return Encoding(column.name, "category", values=values, reference=reference, other=other, missing=flag)


def encodings_of(
    columns: Mapping[str, Column], asked: Mapping[str, str], *, most_values: int = MOST_VALUES, rare: float = RARE
) -> tuple[tuple[Encoding, ...], dict[str, str]]:
    """Return the encodings of columns of training rows, and the reasons of columns and features that are left out.

    Of several features for missing values in the same rows, only the first is kept.
    """
    found: list[Encoding] = []
    left_out: dict[str, str] = {}
    seen: dict[bytes, str] = {}
    for name, kind in asked.items():
        encoding = encoding_of(columns[name], kind, most_values=most_values, rare=rare)
        if encoding is not None and encoding.missing:
            first = seen.setdefault(columns[name].missing.tobytes(), name)
            if first != name:
                left_out[f"{name} is missing"] = f"in the same rows as '{first} is missing'"
                encoding = Encoding(**{**asdict(encoding), "missing": False})
        if encoding is None or not encoding.names:
            left_out[name] = "nothing differs in the training rows"
        else:
            found.append(encoding)
    return tuple(found), left_out


def encode(columns: Mapping[str, Column], encodings: Sequence[Encoding], where: str) -> FloatArray:
    """Return the features of a table's rows, (n, d).

    Args:
        columns: the columns by name, in any order and with further ones.
        encodings: how columns become features.
        where: path of the file of the table, for errors.

    Raises:
        TableError: all columns that are missing or hold other cells than in the training rows.
    """
    missing = [one.column for one in encodings if one.column not in columns]
    problems = [unknown("feature column", missing, columns)] if missing else []
    found = (one.problem(columns[one.column]) for one in encodings if one.column in columns)
    problems += [problem for problem in found if problem is not None]
    if problems:
        raise TableError(where, problems)
    return np.column_stack([encoding.features(columns[encoding.column]) for encoding in encodings])


def notes_on(columns: Mapping[str, Column], encodings: Sequence[Encoding]) -> list[str]:
    """Return what in new rows the training rows did not have, such as other texts, and what it is taken for."""
    return [note for one in encodings for note in one.notes(columns[one.column])]


FORMAT = 1
"""Version of the JSON that `ltr.data.TablePreparation.to_json` writes."""


def encodings_in(text: str) -> tuple[Encoding, ...]:
    """Return the encodings in that JSON; ValueError, KeyError or TypeError for any other text."""
    given = json.loads(text)
    if given["format"] != FORMAT:
        raise ValueError(f"format must be {FORMAT}, got {given['format']!r:.80}")
    return tuple(Encoding.from_dict(one) for one in given["columns"])
