"""Numbers from one column of a table: how its values become features, fitted on training rows.

A number stays a number, and a date becomes a number of days. Their missing values become the training median. Texts
of few values become 0 and 1: one feature for each frequent value but the most frequent one, the *reference*, and one
for all others, ``mode = other``. (With a feature for the reference, those of a column would add up to 1, and weights
would not be unique.) Texts of many values become the mean label of the training rows with the same value, drawn towards
the mean of all rows where there are few; a training row gets the mean of rows in other parts of the training set, or it
would tell its own label. Where training rows miss the value, ``age is missing`` is a feature, too.

A value that no training row has counts as ``other``, or as the reference if there is no such feature; a missing value
as the median or the reference, if (nearly) no training row misses it. Where most rows of a file have new values, they
are probably written in another way, and the file is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.columns import Column, yes_of
from ltr.data.forms import DateForm, NumberForm, date_at
from ltr.data.kinds import MOST_VALUES, RARE, Kind
from ltr.data.problems import Problem, Remedy, TableError, listed, unknown
from ltr.data.times import blocks_of

FloatArray = NDArray[np.float64]
DAYS = " (days since 1970)"
"""End of the name of a feature that is made of a date."""
_MEAN = " (mean label)"  # end of the name of a feature of mean labels
_DRAWN = 10.0  # rows with the mean of all that are added to those of each value
_FOLDS = 5  # parts of the training set that get their mean labels from the others
_FEW = 10  # rows, below which values that are all new say nothing about how they are written


def features_of(column: str, features: Sequence[str]) -> list[str]:
    """Return those of the names of features that say that they are made of a column, its number first.

    Examples:
        >>> features_of("age", ["age", "sex = f", "age is missing"]), features_of("sex", ["age", "sex = f"])
        (['age', 'age is missing'], ['sex = f'])
    """
    whole = {column, column + DAYS, column + _MEAN}
    rest = [name for name in features if name == f"{column} is missing" or name.startswith(f"{column} = ")]
    return [*(name for name in features if name in whole), *rest]


@dataclass(frozen=True)
class Encoding:
    """How a column becomes features.

    Args:
        column: name of the column.
        kind: ``"number"``, ``"date"``, ``"category"``, or ``"mean"`` for texts of many values.
        median: value that replaces missing ones, and for mean labels those of new values; None for categories.
        number: how texts are numbers; None for other kinds.
        date: how cells are dates; None for other kinds.
        values: texts that are features of their own, the most frequent first; for mean labels all texts.
        means: mean label of each text; empty for other kinds.
        reference: text without a feature of its own.
        rare: texts of training rows that are no features of their own.
        single: share of the training rows whose text no other row has, which is about that of new texts in later rows.
        other: whether there is a feature for all other texts.
        missing: whether there is a feature for missing values.

    Examples:
        >>> column = Column("mode", ["bus", "bus", "bus", "car", "car", None, None])
        >>> encoding = encoding_of(column, Kind("category"))
        >>> encoding.names, encoding.features(Column("mode", ["car", "bus", "boat", ""])).tolist()
        (('mode = car', 'mode is missing'), [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    """

    column: str
    kind: str
    median: float | None = None
    number: NumberForm | None = None
    date: DateForm | None = None
    values: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    reference: str = ""
    rare: tuple[str, ...] = ()
    single: float = 0.0
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
            found.append(self.column + {"date": DAYS, "mean": _MEAN}.get(self.kind, ""))
        if self.other:
            found.append(f"{self.column} = {'another value' if 'other' in (*self.values, self.reference) else 'other'}")
        return (*found, f"{self.column} is missing") if self.missing else tuple(found)

    def read(self, column: Column) -> Column:
        """Return a column of new rows, the cells of which are read as those of the training rows were."""
        return column.read_as("text" if self.kind in ("category", "mean") else self.number)

    def features(self, column: Column) -> FloatArray:
        """Return the features of a column's rows, (n, k).

        Raises:
            ValueError: a cell that is no number or date; `problem` describes it.
        """
        column = self.read(column)
        parts = [column.missing] if self.missing else []
        if self.kind == "category":
            known = (self.reference, *self.values)
            found = [column.texts == value for value in self.values]
            other = [~column.missing & ~np.isin(column.texts.astype(str), known)] if self.other else []
            parts = [*found, *other, *parts]
        elif self.kind == "mean":
            means = dict(zip(self.values, self.means, strict=True))
            assert self.median is not None
            parts = [np.array([means.get(text, self.median) for text in column.texts]), *parts]
        else:
            numbers = column.dates(self.date) if self.date is not None else column.numbers
            if numbers is None or np.isinf(numbers).any():
                raise ValueError(f"column {self.column!r} holds other cells than {self.kind}s")
            parts = [np.where(np.isnan(numbers), np.float64(self.median or 0.0), numbers), *parts]
        stacked = np.column_stack(parts) if parts else np.empty((len(column), 0))
        return np.ascontiguousarray(stacked, dtype=np.float64)

    def problem(self, column: Column, *, new_values: bool = False) -> Problem | None:
        """Return what keeps a column of new rows from being used, None if nothing does.

        Args:
            column: the column.
            new_values: whether most rows may have texts that no training row had.
        """
        column = self.read(column)
        where = f"column {self.column!r}"
        if column.nested:
            return Problem(column.nested)
        if self.number is not None and column.numbers is None:
            row, cell = column.first_other()
            what = f"{self.number.describe()}, as in the training rows" if not self.number.plain else "numbers"
            return Problem(f"{where} must hold {what}, got {cell!r} in row {row}")
        if self.number is not None and column.numbers is not None and np.isinf(column.numbers).any():
            row = int(np.argmax(np.isinf(column.numbers))) + 1
            return Problem(f"{where} must hold finite numbers, got {column.numbers[row - 1]:g} in row {row}")
        if self.date is not None and column.dates(self.date) is None:
            row, cell = column.first_other(self.date)
            return Problem(f"{where} must hold dates ({' or '.join(self.date.formats)}), got {cell!r} in row {row}")
        new, rows = self._unseen(column)
        of = int((~column.missing).sum())
        by_chance = of * self.single + 4 * math.sqrt(of * self.single * (1 - self.single) + 1)
        if new_values or of < _FEW or 2 * rows <= of or rows <= by_chance:
            return None
        had = listed([text for text in (self.reference, *self.values) if text], 3)
        rule = f"{where}: {listed(new, 3)} in {rows} of {of} rows are new since training, which had {had}"
        return Problem(rule, (Remedy("write them as in the training rows, or say that they are new by --new-values"),))

    def notes(self, column: Column) -> Iterator[str]:
        """Yield what in a column of new rows the training rows did not have, and what it is taken for."""
        column = self.read(column)
        missing, (unseen, rows) = int(column.missing.sum()), self._unseen(column)
        where, instead = f"column {self.column!r}:", self._instead()
        if missing and not self.missing:
            yield f"{where} missing in {missing} rows, taken as {instead}"
        if unseen and not self.other:
            yield f"{where} {listed(unseen, 3)} in {rows} rows, new since training, taken as {instead}"

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
        if self.kind == "mean":
            return f"the mean label of each of {len(self.values)} values{missing}"
        unit = f" in {self.number.unit}" if self.number is not None and self.number.unit else ""
        return f"{'days since 1970' if self.kind == 'date' else f'the number{unit}'}{missing}"

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON, without what is left at its default."""
        given = asdict(self)
        default = (None, "", (), False, 0.0)
        return {key: value for key, value in given.items() if key == "median" or value not in default}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Encoding:
        """Return the encoding of a JSON object; KeyError, TypeError or ValueError for any other value."""
        found: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in given.items()}
        if "number" in found:
            found["number"] = NumberForm(**found["number"])
        if "date" in found:
            found["date"] = DateForm(tuple(found["date"]["formats"]), found["date"].get("first_year"))
        one = cls(**found)
        texts = [one.column, one.reference, *one.values, *one.rare, *(one.date.formats if one.date else ())]
        numbers = [one.single, *one.means, *([] if one.median is None else [one.median])]
        wanted = {"number": one.number, "date": one.date, "mean": one.median, "category": ""}[one.kind]
        fits = wanted is not None and len(one.means) in (0, len(one.values))
        if not fits or not all(isinstance(text, str) for text in texts) or not np.isfinite(numbers).all():
            raise ValueError(f"not a column of a preparation: {given!r:.80}")
        return one

    def _unseen(self, column: Column) -> tuple[list[str], int]:
        """Return the texts of a column that no training row had, and the number of their rows."""
        if self.kind not in ("category", "mean"):
            return [], 0
        known = {self.reference, *self.values, *self.rare}
        new = [text for text in column.counts if text not in known]
        return new, sum(column.counts[text] for text in new)

    def _instead(self) -> str:
        """Return what missing values, and new ones without a feature for others, are taken for."""
        if self.kind == "category":
            return repr(self.reference)
        assert self.median is not None
        if self.kind == "mean":
            return f"the mean label {self.median:g}"
        return f"the training median {date_at(self.median) if self.kind == 'date' else f'{self.median:g}'}"


def encoding_of(
    column: Column, kind: Kind, y: FloatArray | None = None, *, most_values: int = MOST_VALUES, rare: float = RARE
) -> Encoding | None:
    """Return the encoding of a column of training rows, None if it has nothing to say in them.

    Args:
        column: the column.
        kind: what it is: a number, a date, yes and no, or a category.
        y: labels of the rows, (n,), for the mean labels of texts of many values; without them the most frequent ones
            are features of their own, and the others are joined.
        most_values: largest number of values that are features of their own.
        rare: least share of the rows that have, or miss, a value for a feature of its own.
    """
    column = kind.read(column)
    missing = int(column.missing.sum())
    flag = max(2.0, rare * len(column)) <= missing < len(column)
    if missing == len(column):
        return None
    if kind.name in ("number", "date"):
        numbers = column.numbers if kind.date is None else column.dates(kind.date)
        assert numbers is not None
        median = float(np.nanmedian(numbers))
        return Encoding(column.name, kind.name, median, kind.number, kind.date, missing=flag)
    frequent, known = column.frequent(rare, most_values), sum(column.counts.values())
    single = sum(rows == 1 for rows in column.counts.values()) / known
    if len(column.counts) == 2:
        yes = yes_of(column.counts)
        by_rows = sorted(column.counts, key=lambda text: (-column.counts[text], text))
        reference, value = by_rows if yes is None else (next(text for text in column.counts if text != yes), yes)
        return Encoding(column.name, "category", values=(value,), reference=reference, missing=flag)
    if y is not None and 2 * sum(column.counts[text] for text in frequent) < known:
        values = tuple(column.counts)
        means, mean = _means(column, values, y, np.ones(len(y), dtype=bool))
        return Encoding(column.name, "mean", mean, values=values, means=means, single=single, missing=flag)
    reference = frequent[0] if frequent else ""
    values, others = tuple(frequent[1:]), tuple(text for text in column.counts if text not in frequent)
    if not values and not others and not flag:
        return None
    forms = {"values": values, "reference": reference, "rare": others, "single": single}
    return Encoding(column.name, "category", **forms, other=bool(others), missing=flag)  # type: ignore[arg-type]


def _means(
    column: Column, values: Sequence[str], y: FloatArray, rows: NDArray[np.bool_]
) -> tuple[tuple[float, ...], float]:
    """Return the mean label of some rows with each text, drawn towards the mean of all of them, and that mean."""
    place = {text: at for at, text in enumerate(values)}
    codes = np.array([place.get(text, -1) for text in column.texts])[rows]
    kept, labels = codes[codes >= 0], y[rows][codes >= 0]
    mean = float(y[rows].mean())
    counts = np.bincount(kept, minlength=len(values))
    sums = np.bincount(kept, weights=labels, minlength=len(values))
    return tuple(((sums + _DRAWN * mean) / (counts + _DRAWN)).tolist()), mean


def cross_fitted(
    column: Column,
    encoding: Encoding,
    y: FloatArray,
    groups: NDArray[Any] | None = None,
    times: NDArray[Any] | None = None,
) -> FloatArray:
    """Return the mean labels of training rows, each from the rows in other parts of the training set, (n,).

    Args:
        column: the column of the training rows.
        encoding: its encoding by mean labels.
        y: labels of the rows, (n,).
        groups: the group of each row, such as its query, (n,); the rows of a group are in one part.
        times: the time of each row, (n,); mean labels then come from earlier blocks of rows, but in the first block.
    """
    column = encoding.read(column)
    _, codes = np.unique(np.arange(len(y)) if groups is None else groups, return_inverse=True)
    parts = np.random.default_rng(0).permutation(codes.max() + 1)[codes] % _FOLDS
    blocks = np.zeros(len(y), dtype=np.int64)
    if times is not None:
        blocks = blocks_of(times, [block / (_FOLDS + 1) for block in range(1, _FOLDS + 1)])
    first = blocks == 0
    folds = [(first & (parts != part), first & (parts == part)) for part in range(_FOLDS)]
    folds += [(blocks < block, blocks == block) for block in range(1, blocks.max() + 1)]
    found = np.empty(len(y))
    for others, own in folds:
        if own.any():
            means, mean = _means(column, encoding.values, y, others if others.any() else first)
            fold = replace(encoding, means=means, median=mean)
            found[own] = fold.features(column.take(np.flatnonzero(own)))[:, 0]
    return found


def encodings_of(
    columns: Mapping[str, Column],
    kinds: Mapping[str, Kind],
    y: FloatArray | None = None,
    *,
    most_values: int = MOST_VALUES,
    rare: float = RARE,
) -> tuple[tuple[Encoding, ...], dict[str, str]]:
    """Return the encodings of columns of training rows, and the reasons of columns and features that are left out.

    Of several features for missing values in the same rows, only the first is kept.
    """
    found: list[Encoding] = []
    left_out: dict[str, str] = {}
    seen: dict[bytes, str] = {}
    for name, kind in kinds.items():
        encoding = encoding_of(columns[name], kind, y, most_values=most_values, rare=rare)
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
    """Return the features of a table's rows, (n, d).

    Args:
        columns: the columns by name, in any order and with further ones.
        encodings: how columns become features.
        where: path of the file of the table, for errors.
        new_values: whether most rows may have texts that no training row had.

    Raises:
        TableError: all columns that are missing or hold other cells than in the training rows.
    """
    missing = [one.column for one in encodings if one.column not in columns]
    hint = "; if new rows cannot have a column, it was known only afterwards: leave it out by data.drop and run again"
    problems = [unknown("feature column", missing, columns, hint=hint)] if missing else []
    given = (one.problem(columns[one.column], new_values=new_values) for one in encodings if one.column in columns)
    problems += [problem for problem in given if problem is not None]
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
