"""What the columns of a table are - numbers, categories, dates, ids - and the features that they become.

A column is a number, yes/no (texts of two values), a category (texts of few values or many, and codes such as 01234) or
a date; or it is an id, constant or empty and left out. All other columns are problems, which the user decides: texts
among numbers, yes and no in several spellings, numbers and dates that can be read in two ways.

What a column is, and in which form its cells are read, is decided on the table that is learned from (`kind_of`); an
`Encoding` is fitted on its training rows (`encoding_of`) and makes the features of later ones, as docs/tables.md says.
Texts of few values have a feature for each frequent value but the most frequent one, the *reference*: with one for it,
too, those of a column would add up to 1, and weights would not be unique.

To add a kind, recognise it in `kind_of`, write its subclass of `Encoding`, and make that in `encoding_of`. Nothing else
looks at kinds by name.
"""

from __future__ import annotations

import functools
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ltr.data.columns import MOSTLY, Column, spellings, yes_of
from ltr.data.forms import AS_WRITTEN, ISO, NO_HINTS, DateForm, DateHints, Form, NumberForm, date_at
from ltr.data.problems import Problem, Remedy, TableError, listed, unknown

FloatArray = NDArray[np.float64]
MOST_VALUES = 10
"""Largest number of values of a text column that are features of their own."""
RARE = 0.02
"""Least share of the rows, without missing ones, that a value needs to be a feature of its own."""
DAYS = " (days since 1970)"
"""End of the name of a feature that is made of a date."""
FORMAT = 2
"""Version of the JSON that `ltr.data.TablePreparation.to_json` writes."""

_MEAN = " (mean label)"  # end of the name of a feature of mean labels
_DRAWN = 10.0  # rows with the mean of all that are added to those of each value
_FEW = 10  # rows, below which values that are all new say nothing about how they are written
_ID_NAME = re.compile(r"(?i:(^|.*[\W_])(id|uuid|guid))|.*[a-z0-9](Id|ID)")
_DIFFERENT = 0.5  # share of different texts above which a column names rows
_STRAYS = 20  # largest number of different texts among numbers that are taken for words for a missing value
_SHORTEST = 10  # least number of rows in which whole numbers from 1 on are a numbering


class _Formed:
    """What has a form in which cells are read."""

    form: Form | None

    @property
    def is_date(self) -> bool:
        """Whether the cells are dates."""
        return isinstance(self.form, DateForm)

    @property
    def plain(self) -> bool:
        """Whether the cells are numbers with a decimal point."""
        return isinstance(self.form, NumberForm) and self.form.plain

    def read(self, column: Column) -> Column:
        """Return a column, the cells of which are read in the form; None is the one that they tell."""
        return column if self.form is None else column.read_as(self.form)


@dataclass(frozen=True)
class Kind(_Formed):
    """What a column is."""

    name: str  # number, yes/no, category, date, id, constant or empty; or unclear, with a problem
    reason: str = ""  # why it is left out; empty for features
    form: Form | None = None  # in which its cells are read
    note: str = ""  # what a user should know about how its cells are read
    problem: Problem | None = None  # what keeps the column from being used

    @property
    def is_feature(self) -> bool:
        """Whether it becomes features."""
        return not self.reason and self.problem is None

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.name == "number"

    @property
    def is_id(self) -> bool:
        """Whether its cells name rows."""
        return self.name == "id"

    @property
    def is_asked(self) -> bool:
        """Whether a card may ask about it."""
        return self.is_feature and not self.is_date


def kind_of(column: Column, asked: str | None = None, dates: DateHints = NO_HINTS, *, wanted: bool = False) -> Kind:
    """Return what a column is.

    The user may have `asked` for ``"number"``, ``"category"``, or the format of a date; the format of `dates` is taken
    if it fits, and a `wanted` feature is not left out as an id.

    Examples:
        >>> kind_of(Column("paid", ["$5", "$7.50", "-", "($1)"])).note
        "column 'paid' is read as numbers in $, '-' as missing"
    """
    missing = column.missing
    if column.nested:
        return _unclear(column.nested, _drop(column))
    if missing.all():
        return Kind("empty", "no value in any row")
    if asked in ("category", "yes/no"):
        return Kind("category", form="text")
    if asked not in (None, "number"):
        return _dated(column, [DateForm((asked,), dates.first_year)])
    if asked is None:
        if column.different == 1 and not missing.any() and not (wanted and column.plain):
            return Kind("constant", f"{next(iter(column.counts))!r} in all rows")
        if (given := _in_format(column, dates)) is not None:
            return given
        if column.codes:
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
    if asked == "number" or column.share() >= MOSTLY:
        form = column.form or NumberForm(".")
        return _with_strays(column, form.describe() if form.unit or form.decimal == "," else "numbers")
    return _dates(column, dates) or _texts(column, wanted=wanted)


def kind_of_times(column: Column, dates: DateHints) -> Kind:
    """Return whether a column without missing cells holds dates or numbers, whatever else they look like."""
    if (kind := _in_format(column, dates) or _dates(column, dates)) is not None:
        return kind
    if column.share() < MOSTLY:
        rule = f"column {column.name!r} must hold dates such as 2024-05-31, weeks such as 2024-W22, or numbers"
        return _unclear(f"{rule}, got {column.texts[0]!r} in row 1")
    return kind_of(column, "number")


def kinds_of(
    columns: Mapping[str, Column],
    asked: Mapping[str, str] | None = None,
    dates: DateHints = NO_HINTS,
    *,
    wanted: Collection[str] = (),
) -> dict[str, Kind]:
    """Return the kinds of all columns; `asked` has those that the user asks for, `wanted` the named features.

    Where all columns are plain numbers without a missing value, they are numbers, also ids and constants.
    """
    asked = {name: kind for name, kind in (asked or {}).items() if name in columns}
    if all(column.plain for column in columns.values()) and set(asked.values()) <= {"number"}:
        return {name: _number(column, wanted=True) for name, column in columns.items()}
    named = set(wanted)
    return {name: kind_of(column, asked.get(name), dates, wanted=name in named) for name, column in columns.items()}


def _unclear(rule: str, *remedies: Remedy) -> Kind:
    return Kind("unclear", problem=Problem(rule, remedies))


def _drop(column: Column) -> Remedy:
    return Remedy("leaves it out", "drop", [column.name])


def _number(column: Column, *, wanted: bool) -> Kind:
    form = column.form
    column = column.read_as(form)
    numbers, missing = column.numbers, column.missing
    assert numbers is not None
    known = numbers[~missing]
    if not np.isfinite(known).all():
        row = int(np.flatnonzero(np.isinf(numbers))[0]) + 1
        rule = f"column {column.name!r} must hold finite numbers, got {numbers[row - 1]:g} in row {row}"
        return _unclear(rule, Remedy("takes it as missing", "missing", ["inf", "-inf"]), _drop(column))
    if not wanted and (known == np.floor(known)).all():
        if _ID_NAME.fullmatch(column.name) and column.different > 2:
            return Kind("id", "whole numbers in a column that is called an id", form)
        first, last, n = known.min(), known.max(), len(column)
        if n == len(known) == column.different >= _SHORTEST:
            if first in (0, 1) and last - first == n - 1:
                return Kind("id", f"the numbers from {first:.0f} to {last:.0f}, each once", form)
            if first < n and last - first < 2 * n and (np.diff(known) > 0).all():
                return Kind("id", "whole numbers that rise from row to row, as row numbers do", form)
    dashes, note = listed(column.dashes), ""
    if form is not None and form.unit:
        note = f"column {column.name!r} is read as numbers in {form.unit}{f', {dashes} as missing' if dashes else ''}"
    elif dashes:
        note = f"column {column.name!r}: {dashes} is read as missing"
    return Kind("number", form=form, note=note)


def _texts(column: Column, *, wanted: bool) -> Kind:
    counts, known = column.counts, int((~column.missing).sum())
    folded = {text.casefold() for text in counts}
    if (spelt := spellings(counts)) and (len(folded) == 1 or yes_of(folded) is not None):
        rule = f"column {column.name!r}: {spelt} differ only in capital letters: write each value one way"
        every = Remedy("takes every spelling as a value of its own", "categories", [column.name])
        return _unclear(rule, every, _drop(column))
    if len(counts) == 2:
        return Kind("yes/no", form="text")
    frequent = sum(counts[text] for text in column.frequent(RARE, MOST_VALUES))
    if 2 * frequent >= known or len(counts) <= _DIFFERENT * known:
        return Kind("category", form="text")
    if not wanted:
        return Kind("id", f"{'all' if len(counts) == known else f'{len(counts)} of'} {known} texts differ", "text")
    row = int(np.argmin(column.missing))
    rule = f"column {column.name!r} has {len(counts)} different texts in {known} rows, such as"
    why = f"{column.texts[row]!r} in row {row + 1}: most rows have a text of their own"
    return _unclear(f"{rule} {why}", _drop(column))


def _in_format(column: Column, dates: DateHints) -> Kind | None:
    """Return the kind of a column of which all cells are dates in the given format; None for any other column."""
    if dates.format is None or column.plain:
        return None
    form = DateForm((dates.format,), dates.first_year)
    return None if column.read_as(form).numbers is None else _dated(column, [form])


def _dates(column: Column, dates: DateHints) -> Kind | None:
    """Return the kind of a column of dates, or the problem of one of mostly dates; None for any other column."""
    forms = column.date_forms(dates.first_year)
    forms = [form for form in forms if dates.format in form.formats] or forms
    return _dated(column, forms) if forms else None


def _dated(column: Column, forms: Sequence[DateForm]) -> Kind:
    """Return the kind of a column of dates, or the problem that some are none or can be read in several ways."""
    read = column.read_as(forms[0])
    if read.numbers is None:
        shape = "such as 2024-05-31" if forms[0].formats == (ISO,) else f"of the form {' or '.join(forms[0].formats)}"
        return _with_strays(read, f"dates {shape}")
    if len(forms) == 1:
        if forms[0].first_year is not None or not any("%y" in form for form in forms[0].formats):
            return Kind("date", form=forms[0])
        row = int(np.argmax(~column.missing))
        rule = f"column {column.name!r}: {column.texts[row]!r} in row {row + 1} has a year of two digits"
        way = Remedy("takes such years for 1930 to 2029; give the first of the hundred years", "first_year", 1930)
        return _unclear(rule, way)
    known = np.array([column.read_as(form).numbers for form in forms[:2]], dtype=np.float64)
    row = int(np.argmax(~column.missing & (known[0] != known[1])))
    rule = f"column {column.name!r}: day and month of {column.texts[row]!r} in row {row + 1} could be swapped"
    remedies = []
    for days, form, other in zip(known[:, row], forms, reversed(forms[:2]), strict=False):
        own = next((one for one in form.formats if one not in other.formats), form.formats[0])
        remedies.append(Remedy(f"takes it for {date_at(days):%d %B %Y}", "date_format", own))
    return _unclear(rule, *remedies)


def _with_strays(column: Column, what: str) -> Kind:
    """Return the problem of a column that should hold numbers or dates and has a few other cells."""
    (row, cell), texts = column.first_other(), list(dict.fromkeys(column.others()))
    rule = f"column {column.name!r} must hold {what}, got {cell!r} in row {row}"
    rule += f" (and {listed(texts[1:])} in other rows)" if texts[1:] else ""
    whole = Remedy("takes all as texts", "categories", [column.name])
    if len(texts) > _STRAYS:
        return _unclear(rule, whole, _drop(column))
    return _unclear(rule, Remedy(f"takes {'them' if texts[1:] else 'it'} as missing", "missing", texts), whole)


# features


@dataclass(frozen=True)
class Encoding(_Formed, ABC):
    """How a column becomes features; a subclass for each kind of feature defines the abstract methods.

    Examples:
        >>> column = Column("mode", ["bus", "bus", "bus", "car", "car", None, None])
        >>> encoding = encoding_of(column, Kind("category"))
        >>> encoding.names, encoding.features(Column("mode", ["car", "bus", "boat", ""])).tolist()
        (('mode = car', 'mode is missing'), [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = AS_WRITTEN

    column: str
    form: Form | None = field(default="text", kw_only=True)  # in which the training rows' cells were read
    missing: bool = field(default=False, kw_only=True)  # whether there is a feature for missing values

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (*self._names(), *([f"{self.column} is missing"] if self.missing else []))

    def features(self, column: Column) -> FloatArray:
        """Return the features of a column's rows, (n, k); raise ValueError for cells that `problem` describes."""
        column = self.read(column)
        parts = [*self._features(column), *([column.missing] if self.missing else [])]
        stacked = np.column_stack(parts) if parts else np.empty((len(column), 0))
        return np.ascontiguousarray(stacked, dtype=np.float64)

    def nodes(self, graph: Any) -> list[str]:  # noqa: ANN401 (an OnnxGraph, whose module imports this one)
        """Return the features as values of an `ltr.onnx_graph.OnnxGraph`, to which their nodes are added."""
        found, missing = self._nodes(graph)
        return [*found, *([graph.cast(missing)] if self.missing else [])]

    def problem(self, column: Column, *, new_values: bool = False) -> Problem | None:
        """Return what keeps a column of new rows from being used; `new_values` are as for `encode`."""
        column = self.read(column)
        return Problem(column.nested) if column.nested else self._problem(column, new_values=new_values)

    def notes(self, column: Column) -> Iterator[str]:
        """Yield what in a column of new rows the training rows did not have, and what it is taken for."""
        missing = int(self.read(column).missing.sum())
        if missing and not self.missing:
            yield f"column {self.column!r}: missing in {missing} rows, taken as {self._instead()}"

    def describe(self) -> str:
        """Return in words what becomes of the column."""
        return " and ".join(filter(None, [self._described(), "whether it is missing" if self.missing else ""]))

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON, without what is left at its default."""
        default = {one.name: one.default for one in fields(self)}
        given = {key: value for key, value in asdict(self).items() if value != default[key]}
        return {"kind": next(name for name, kind in _ENCODINGS.items() if kind is type(self)), **given}

    # the parts of a kind, without the feature for missing values; columns are read already

    @abstractmethod
    def _names(self) -> Sequence[str]: ...

    @abstractmethod
    def _features(self, column: Column) -> Sequence[NDArray[Any]]: ...

    @abstractmethod
    def _nodes(self, graph: Any) -> tuple[list[str], str]:  # noqa: ANN401
        """Return the features as values of a graph, and where the column is missing."""

    @abstractmethod
    def _problem(self, column: Column, *, new_values: bool) -> Problem | None: ...

    @abstractmethod
    def _instead(self) -> str:
        """Return what missing values without a feature are taken for."""

    @abstractmethod
    def _described(self) -> str: ...


@dataclass(frozen=True)
class NumberEncoding(Encoding):
    """A number, or the days of a date; missing ones are replaced by the median."""

    form: NumberForm | DateForm | None = None
    median: float = 0.0

    def _names(self) -> Sequence[str]:
        return [self.column + DAYS * self.is_date]

    def _features(self, column: Column) -> Sequence[NDArray[Any]]:
        numbers = column.numbers
        if numbers is None or np.isinf(numbers).any():
            raise ValueError(f"column {self.column!r} holds other cells than {'dates' if self.is_date else 'numbers'}")
        return [np.where(np.isnan(numbers), np.float64(self.median), numbers)]

    def _nodes(self, graph: Any) -> tuple[list[str], str]:  # noqa: ANN401
        numbers, missing = graph.numbers(self.column, date=self.is_date)
        return [graph.op("Where", missing, graph.constant(float(self.median)), numbers)], missing

    def _problem(self, column: Column, *, new_values: bool) -> Problem | None:
        numbers = column.numbers
        if numbers is None:
            row, cell = column.first_other()
            learned = self.form is not None and not self.plain
            what = f"{self.form.describe()}, as in the training rows" if self.form and learned else "numbers"
            return Problem(f"column {self.column!r} must hold {what}, got {cell!r} in row {row}")
        if np.isinf(numbers).any():
            row = int(np.argmax(np.isinf(numbers)))
            return Problem(f"column {self.column!r} must hold finite numbers, got {numbers[row]:g} in row {row + 1}")
        return None

    def _instead(self) -> str:
        return f"the training median {date_at(self.median) if self.is_date else f'{self.median:g}'}"

    def _described(self) -> str:
        if isinstance(self.form, DateForm):
            return "days since 1970"
        return f"the number in {self.form.unit}" if self.form is not None and self.form.unit else "the number"


@dataclass(frozen=True)
class CategoryEncoding(Encoding):
    """Texts, of which the frequent ones are features of their own."""

    values: tuple[str, ...] = ()  # with features of their own, the most frequent first
    reference: str = ""  # the text without one
    rare: tuple[str, ...] = ()  # further texts of training rows
    other: bool = False  # whether there is a feature for all other texts
    single: float = 0.0  # share of training rows whose text no other has, about that of new texts in later rows

    def notes(self, column: Column) -> Iterator[str]:
        """Yield also the texts that no training row had."""
        yield from super().notes(column)
        unseen, rows = self._unseen(self.read(column))
        if unseen and not self.other:
            new = f"{listed(unseen, 3)} in {rows} rows, new since training"
            yield f"column {self.column!r}: {new}, taken as {self._instead()}"

    def _unseen(self, column: Column) -> tuple[list[str], int]:
        """Return the texts of a column that no training row had, and the number of their rows."""
        known = {self.reference, *self.values, *self.rare}
        new = [text for text in column.counts if text not in known]
        return new, sum(column.counts[text] for text in new)

    def _names(self) -> Sequence[str]:
        whether = self.values == ("true",) and self.reference == "false"
        found = [self.column] if whether else [f"{self.column} = {value}" for value in self.values]
        if self.other:
            found.append(f"{self.column} = {'another value' if 'other' in (*self.values, self.reference) else 'other'}")
        return found

    def _features(self, column: Column) -> Sequence[NDArray[Any]]:
        found = [column.texts == value for value in self.values]
        if self.other:
            known = np.isin(column.texts.astype(str), (self.reference, *self.values))
            found.append(~column.missing & ~known)
        return found

    def _nodes(self, graph: Any) -> tuple[list[str], str]:  # noqa: ANN401
        found = [graph.texts_are(self.column, [value]) for value in self.values]
        missing = graph.texts_missing(self.column)
        if self.other:
            known = graph.texts_are(self.column, [self.reference, *self.values])
            found.append(graph.op("Not", graph.op("Or", missing, known)))
        return [graph.cast(value) for value in found], missing

    def _problem(self, column: Column, *, new_values: bool) -> Problem | None:
        new, rows = self._unseen(column)
        of = int((~column.missing).sum())
        by_chance = of * self.single + 4 * math.sqrt(of * self.single * (1 - self.single) + 1)
        if new_values or of < _FEW or 2 * rows <= of or rows <= by_chance:
            return None
        had = listed([text for text in (self.reference, *self.values) if text], 3)
        found = f"{listed(new, 3)} in {rows} of {of} rows are new since training, which had {had}"
        rule = f"column {self.column!r}: {found}"
        return Problem(rule, (Remedy("write them as in the training rows, or say that they are new by --new-values"),))

    def _instead(self) -> str:
        return repr(self.reference)

    def _described(self) -> str:
        if not self.values and not self.other:
            return ""
        names = [name.removeprefix(f"{self.column} = ") for name in self._names()]
        return "1 for true" if names == [self.column] else f"1 for {', '.join(names)} (0 for {self.reference})"


@dataclass(frozen=True)
class MeanEncoding(CategoryEncoding):
    """Texts of many values, each of which becomes the mean label of its training rows.

    A training row gets the mean of rows in other parts of the training set, or it would tell its own label.
    """

    means: tuple[float, ...] = ()  # of `values`, which are all texts of the training rows
    mean: float = 0.0  # of all rows, for missing values and new texts

    def _names(self) -> Sequence[str]:
        return [self.column + _MEAN]

    def _features(self, column: Column) -> Sequence[NDArray[Any]]:
        means = dict(zip(self.values, self.means, strict=True))
        return [np.array([means.get(text, self.mean) for text in column.texts])]

    def _nodes(self, graph: Any) -> tuple[list[str], str]:  # noqa: ANN401
        found = graph.constant(self.mean)
        for value, mean in zip(self.values, self.means, strict=True):
            found = graph.op("Where", graph.texts_are(self.column, [value]), graph.constant(mean), found)
        return [found], graph.texts_missing(self.column)

    def _instead(self) -> str:
        return f"the mean label {self.mean:g}"

    def _described(self) -> str:
        return f"the mean label of each of {len(self.values)} values"


_ENCODINGS: dict[str, type[Encoding]] = {"number": NumberEncoding, "category": CategoryEncoding, "mean": MeanEncoding}


def encoding_of(column: Column, kind: Kind, y: FloatArray | None = None, *, rare: float = RARE) -> Encoding | None:
    """Return the encoding of a column of training rows, None if it has nothing to say in them.

    Without labels `y`, (n,), of texts of many values the most frequent ones are features, and the others are joined.
    """
    column = kind.read(column)
    missing = int(column.missing.sum())
    if missing == len(column):
        return None
    flag = max(2.0, rare * len(column)) <= missing
    if kind.is_number or isinstance(kind.form, DateForm):
        assert column.numbers is not None
        assert kind.form != "text"
        return NumberEncoding(column.name, kind.form, float(np.nanmedian(column.numbers)), missing=flag)
    column = column.read_as("text")
    frequent, known = column.frequent(rare, MOST_VALUES), sum(column.counts.values())
    single = sum(rows == 1 for rows in column.counts.values()) / known
    if len(column.counts) == 2:
        yes = yes_of(column.counts)  # without it, the rarer text has the feature
        reference, value = sorted(column.counts, key=lambda text: (text == yes, -column.counts[text], text))
        return CategoryEncoding(column.name, (value,), reference, missing=flag)
    if y is not None and 2 * sum(column.counts[text] for text in frequent) < known:
        values = tuple(column.counts)
        means, mean = mean_labels(column, values, y)
        return MeanEncoding(column.name, values, single=single, means=means, mean=mean, missing=flag)
    values, reference = tuple(frequent[1:]), frequent[0] if frequent else ""
    others = tuple(text for text in column.counts if text not in frequent)
    if not (values or others or flag):
        return None
    return CategoryEncoding(column.name, values, reference, others, other=bool(others), single=single, missing=flag)


def mean_labels(column: Column, values: Sequence[str], y: FloatArray) -> tuple[tuple[float, ...], float]:
    """Return the mean label of the rows with each text, drawn towards that of all rows, and the latter."""
    place = {text: at for at, text in enumerate(values)}
    codes = np.array([place.get(text, -1) for text in column.texts])
    kept, labels, mean = codes[codes >= 0], y[codes >= 0], float(y.mean())
    counts = np.bincount(kept, minlength=len(values))
    sums = np.bincount(kept, weights=labels, minlength=len(values))
    return tuple(((sums + _DRAWN * mean) / (counts + _DRAWN)).tolist()), mean


def encodings_of(
    columns: Mapping[str, Column], kinds: Mapping[str, Kind], y: FloatArray | None = None, *, rare: float = RARE
) -> tuple[tuple[Encoding, ...], dict[str, str]]:
    """Return the encodings of columns of training rows, and the reasons of columns and features that are left out.

    Of several features for missing values in the same rows, only the first is kept.
    """
    found: list[Encoding] = []
    left_out: dict[str, str] = {}
    seen: dict[bytes, str] = {}
    for name, kind in kinds.items():
        if not kind.is_feature:
            continue
        encoding = encoding_of(columns[name], kind, y, rare=rare)
        if encoding is not None and encoding.missing:
            first = seen.setdefault(kind.read(columns[name]).missing.tobytes(), name)
            if first != name:
                left_out[f"{name} is missing"] = f"in the same rows as '{first} is missing'"
                encoding = replace(encoding, missing=False)
        if encoding is None or not encoding.names:
            left_out[name] = "nothing differs in the training rows"
        else:
            found.append(encoding)
    return tuple(found), left_out


def encode(
    columns: Mapping[str, Column], encodings: Sequence[Encoding], where: str, *, new_values: bool = False
) -> FloatArray:
    """Return the features, (n, d), of a table's columns, in any order and among others.

    With `new_values` most rows may have texts that no training row had. Raises TableError, for the file `where`, with
    all columns that are missing or hold other cells than in the training rows.
    """
    missing = [one.column for one in encodings if one.column not in columns]
    hint = "; if new rows cannot have a column, it was known only afterwards: leave it out by data.drop and run again"
    found: list[Problem | None] = [unknown("feature column", missing, columns, hint=hint)] if missing else []
    found += [one.problem(columns[one.column], new_values=new_values) for one in encodings if one.column in columns]
    if problems := list(filter(None, found)):
        raise TableError(where, problems)
    return np.column_stack([encoding.features(columns[encoding.column]) for encoding in encodings])


def notes_on(columns: Mapping[str, Column], encodings: Sequence[Encoding]) -> list[str]:
    """Return what in new rows the training rows did not have, such as other texts, and what it is taken for."""
    return [note for one in encodings for note in one.notes(columns[one.column])]


@functools.cache
def _reader(kind: str) -> Any:  # noqa: ANN401
    """Return what reads the JSON of a kind of encoding."""
    from pydantic import TypeAdapter

    return TypeAdapter(_ENCODINGS[kind])


def encodings_in(text: str) -> tuple[Encoding, ...]:
    """Return the encodings in the JSON of a preparation; ValueError, KeyError or TypeError for any other text."""
    given = json.loads(text)
    if given["format"] != FORMAT:
        raise ValueError(f"format must be {FORMAT}, got {given['format']!r:.80}")
    found = []
    for column in given["columns"]:
        fields = dict(column)
        found.append(_reader(fields.pop("kind")).validate_json(json.dumps(fields)))
        if isinstance(found[-1], MeanEncoding) and len(found[-1].means) != len(found[-1].values):
            raise ValueError(f"not a column of a preparation: {column!r:.80}")
    return tuple(found)


def features_of(column: str, features: Sequence[str]) -> list[str]:
    """Return those of the names of features that say that they are made of a column, its number first.

    Examples:
        >>> features_of("age", ["age", "sex = f", "age is missing"]), features_of("sex", ["age", "sex = f"])
        (['age', 'age is missing'], ['sex = f'])
    """
    whole = {column, column + DAYS, column + _MEAN}
    rest = [name for name in features if name == f"{column} is missing" or name.startswith(f"{column} = ")]
    return [*(name for name in features if name in whole), *rest]
