"""Columns of tables: which cells are missing, and the others as numbers, texts or dates.

A cell is missing if it is empty, ``None``, ``NaN``, text of white space alone or one that stands for nothing, such as
``NA`` and ``null``, or a dash in a column of numbers.
`ltr.data.forms` says which texts are numbers or dates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import pieces
from ltr.data.dataset import DataError, Features, checked_names
from ltr.data.forms import (
    NUMBERS,
    DateForm,
    Form,
    NumberForm,
    amount_of,
    date_forms,
    form_of,
    is_code,
    is_dash,
    is_nothing,
    is_plain_number,
)

MOSTLY = 0.8
"""Least share of numbers or dates in a column whose other texts are taken for mistakes."""
_NESTED = (list, tuple, dict, set, np.ndarray)  # types of cells
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


class Column:
    """A column of a table: which cells are missing, and the others as numbers (durations in days), texts or dates.

    Args:
        name: name of the column.
        values: its cells, (n,): a pandas Series, or what NumPy makes an array of; kept as the Series `cells`.
        decimal: decimal mark of numbers that are texts, ``"."`` or ``","``, where the cells leave it open.
        form: how its cells are read, as learned from earlier rows; by default as numbers, in the form that they tell.

    Examples:
        >>> column = Column("paid", ["1.234,50 $", None, "7 $"])
        >>> column.missing.tolist(), column.numbers.tolist(), column.form.unit
        ([False, True, False], [1234.5, nan, 7.0], '$')
    """

    def __init__(self, name: str, values: Any, *, decimal: str | None = None, form: Form | None = None) -> None:  # noqa: ANN401
        import pandas as pd

        if not isinstance(values, pd.Series):
            # NumPy would turn missing values in a list of texts into the text nan
            cells = list(values) if isinstance(values, list | tuple) else np.asarray(values)
            values = pd.Series(cells, copy=False)
        series = values
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype if len(series.cat.categories) else object)
        if series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) == "timedelta":
            series = pd.to_timedelta(series)
        if pd.api.types.is_timedelta64_dtype(series.dtype):
            series = series / pd.Timedelta(days=1)
        if not isinstance(series.index, pd.RangeIndex) or series.index.start != 0 or series.index.step != 1:
            series = series.reset_index(drop=True)
        self.name, self.cells, self._decimal, self._given = name, series, decimal, form
        self._numeric = bool(pd.api.types.is_numeric_dtype(series.dtype))
        if pd.api.types.is_complex_dtype(series.dtype):
            raise DataError(f"column {name!r} must hold numbers, got {series.dtype}")

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, rows: NDArray[np.intp] | slice) -> Column:
        """Return some rows of the column."""
        return Column(self.name, self.cells.iloc[rows], decimal=self._decimal, form=self._given)

    def read_as(self, form: Form | None) -> Column:
        """Return the same cells, read in a form."""
        stored = self._numeric and self._given is None and (form is None or isinstance(form, NumberForm))
        if stored or form == self._given:  # what is stored as numbers is read by no other form of numbers
            return self
        found = Column(self.name, self.cells, decimal=self._decimal, form=form)
        if "_factorized" in self.__dict__:
            found.__dict__["_factorized"] = self._factorized
        return found

    @property
    def typed(self) -> Any:  # noqa: ANN401 (a Series or an array)
        """The cells, as numbers where all are numbers in one way only."""
        numbers = None if self.codes or self.dashes or self.missing.all() else self.numbers
        return self.cells if numbers is None else numbers

    def without(self, texts: Sequence[str]) -> Column:
        """Return the column with the cells of some texts missing."""
        return Column(self.name, self.cells.mask(np.isin(self.texts.astype(str), texts)), decimal=self._decimal)

    @property
    def missing(self) -> BoolArray:
        """Which cells are missing, (n,)."""
        return self.cells.isna().to_numpy(dtype=bool) if self._numeric else self._missing_texts

    @cached_property
    def _missing_texts(self) -> BoolArray:
        dashes = self.form is not None and not self._not_numbers.any()
        dash = [dashes and is_dash(cell) for cell in self._cells]
        return np.array([*dash, True])[self._codes]

    @cached_property
    def plain(self) -> bool:
        """Whether all cells are numbers as programs write them, or booleans, and none is missing."""
        if self._given == "text" or self.missing.any():
            return False
        plain = self._numeric or all(map(is_plain_number, self._cells))
        return plain and not self.ambiguous

    @property
    def different(self) -> int:
        """Number of different cells, without missing values."""
        return int(self.cells.nunique()) if self._numeric else len(self._cells)

    # numbers

    @cached_property
    def form(self) -> NumberForm | None:
        """How its texts are numbers: as learned from earlier rows, else as its own cells tell; None for none."""
        if self._given is not None:
            return self._given if isinstance(self._given, NumberForm) else None
        if self._numeric:
            return NumberForm(".")
        texts = [cell for cell in self._cells if isinstance(cell, str)]
        if any(isinstance(cell, NUMBERS) for cell in self._cells):
            texts.append("0.5")  # numbers vote for the point
        return form_of(texts, self._decimal)

    @property
    def ambiguous(self) -> str:
        """A text that is another number with a decimal point than with a comma, as 1,234 is; empty if none is."""
        return "" if self.form is None else self.form.ambiguous

    @property
    def numbers(self) -> FloatArray | None:
        """The cells as float64, dates in days since 1970-01-01, NaN where missing; None where one is neither."""
        if self._given == "text":
            return None
        if self._numeric and not isinstance(self._given, DateForm):
            # a copy of each of many columns would take as much memory as the table
            return self.cells.to_numpy(dtype=np.float64, na_value=np.nan)
        return self._numbers_of_cells

    @cached_property
    def _numbers_of_cells(self) -> FloatArray | None:
        return None if self._not_numbers.any() else np.append(self._numbers, np.nan)[self._codes]

    @property
    def stored(self) -> NDArray[Any] | None:
        """The cells as NumPy stores them, (n,), where that is as real numbers or booleans; None otherwise."""
        kind = self.cells.dtype
        read = self._given is None or isinstance(self._given, NumberForm)
        stored = isinstance(kind, np.dtype) and kind.kind in "biuf" and read
        return self.cells.to_numpy() if stored else None

    @property
    def codes(self) -> bool:
        """Whether some texts of digits have zeros in front, as the code 01234 has, and no number has a mark or sign."""
        texts = [] if self._numeric else [cell for cell in self._cells if isinstance(cell, str)]
        return any(map(is_code, texts)) and all(text.strip().isdigit() or amount_of(text) is None for text in texts)

    @property
    def dashes(self) -> list[str]:
        """The different cells that are dashes."""
        return [] if self._numeric else [cell.strip() for cell in self._cells if is_dash(cell)]

    @cached_property
    def _numbers(self) -> FloatArray:
        """The different cells as numbers, NaN for what is none."""
        form = self._given if isinstance(self._given, DateForm) else self.form
        return np.array([math.nan if form is None else form.read(cell) for cell in self._cells], dtype=np.float64)

    @cached_property
    def _not_numbers(self) -> BoolArray:
        """Which of the different cells are no numbers, or no dates, in the form in which the column is read."""
        dashes = [not isinstance(self._given, DateForm) and is_dash(cell) for cell in self._cells]
        return np.isnan(self._numbers) & ~np.array(dashes, dtype=bool)

    def share(self) -> float:
        """Return the share of the rows, without missing ones, that are numbers or dates; NaN without any."""
        known = self._codes[~self.missing]
        return float(np.mean(~self._not_numbers[known])) if len(known) else np.nan

    def first_other(self) -> tuple[int, Any]:
        """Return the first row, counted from 1, whose cell is no number or date, and the cell."""
        row = int(np.argmax(np.append(self._not_numbers, False)[self._codes]))
        return row + 1, self._cells[self._codes[row]]

    def others(self) -> list[str]:
        """Return the different cells that are no numbers or dates, as they stand in the table."""
        return [str(cell).strip() for cell, no in zip(self._cells, self._not_numbers, strict=True) if no]

    # texts

    @cached_property
    def texts(self) -> NDArray[np.object_]:
        """The cells as texts, empty where missing."""
        return np.array([*map(text_of, self._cells), ""], dtype=object)[self._codes]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of rows with each text, without missing cells, in the order in which texts first appear."""
        found: dict[str, int] = {}
        rows_of = np.bincount(self._codes[self._codes >= 0], minlength=len(self._cells)).tolist()
        for cell, rows in zip(self._cells, rows_of, strict=True):
            if text := text_of(cell):
                found[text] = found.get(text, 0) + rows
        return found

    def frequent(self, rare: float, most: int) -> list[str]:
        """Return the `most` frequent texts of at least two rows and a share of `rare`, those of most rows first."""
        least = max(2.0, rare * sum(self.counts.values()))
        found = [text for text, rows in self.counts.items() if rows >= least]
        return sorted(found, key=lambda text: (-self.counts[text], text))[:most]

    def typical_row(self) -> int:
        """Return a row whose cell is typical: missing, the lower median, or the most frequent text."""
        empty = np.flatnonzero(self.missing)
        if 2 * len(empty) > len(self):
            return int(empty[0])
        if (numbers := self.numbers) is not None:
            known = np.flatnonzero(~np.isnan(numbers))
            return int(known[np.argsort(numbers[known], kind="stable")[(len(known) - 1) // 2]])
        text = max(self.counts, key=lambda text: (self.counts[text], text))
        return int(np.flatnonzero(self.texts == text)[0])

    def date_forms(self, first_year: int | None = None) -> list[DateForm]:
        """Return the forms in which most cells are dates; several where day and month could be swapped."""
        forms = [] if self._numeric else date_forms(self._cells, first_year)
        return forms if forms and self.read_as(forms[0]).share() >= MOSTLY else []

    # cells

    @cached_property
    def _factorized(self) -> tuple[NDArray[np.intp], list[Any]]:
        import pandas as pd

        try:
            codes, cells = pd.factorize(self.cells)
        except TypeError:  # lists and the like, which `nested` reports
            codes, cells = pd.factorize(self.cells.map(str))
        kept = [not is_nothing(cell) for cell in cells]
        if not all(kept):
            codes = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)[codes]
        return codes, [cell for cell, keep in zip(cells, kept, strict=True) if keep]

    @cached_property
    def nested(self) -> str:
        """What is wrong with a column that holds lists or other tables; empty for all others."""
        if self._numeric or self.cells.dtype != object:
            return ""
        for row, cell in enumerate(self.cells, start=1):
            if isinstance(cell, _NESTED):
                rule = "must hold one number, text or date in each cell"
                return f"column {self.name!r} {rule}, got {cell!r:.60} in row {row}"
        return ""

    @property
    def _codes(self) -> NDArray[np.intp]:
        """Number of each row's cell among the different ones, -1 where missing."""
        return self._factorized[0]

    @property
    def _cells(self) -> list[Any]:
        """The different cells, without those that are blank or stand for nothing."""
        return self._factorized[1]


def columns_of(table: Any, names: Sequence[str] | None = None, *, decimal: str | None = None) -> dict[str, Column]:  # noqa: ANN401 (of any library)
    """Return columns of a table by name: all, or those with some `names`; `decimal` is that of `Column`.

    The table is a pandas or polars frame, a mapping of columns, or a numeric array, (n, d), whose columns are called
    ``x0``, ``x1``, ...
    """
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        keys = list(table) if isinstance(table, Mapping) else list(table.columns)
        keyed = dict(zip(checked_names([str(key) for key in keys], "X"), keys, strict=True))
    else:
        from sklearn.utils import check_array

        table = check_array(table, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X").T
        keyed = {f"x{j}": j for j in range(len(table))}
    missing = [name for name in names or () if name not in keyed]
    if missing:
        shown = ", ".join(list(keyed)[:20]) + (", ..." if len(keyed) > 20 else "")
        raise ValueError(
            f"X must have the column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}; it has {shown}"
        )
    found = {name: table[keyed[name]] for name in (keyed if names is None else names)}
    for name, values in found.items():
        found[name] = values if isinstance(values, Column) else Column(name, values, decimal=decimal)
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"X must have columns of one length, got {lengths}")
    return found


def matrix_of(columns: Sequence[Sequence[Any] | NDArray[Any]]) -> Features:
    """Return columns of numbers as a matrix in C order, (n, d): float32 where that is their common type, else float64.

    Where the columns are those of such a matrix already, in its order, the matrix is returned, and nothing is copied.
    """
    arrays = [np.asarray(column) for column in columns]
    kind = np.float32 if np.result_type(*arrays) == np.float32 else np.float64
    first, size, width = arrays[0], np.dtype(kind).itemsize, len(arrays)
    places = [array.__array_interface__["data"][0] for array in arrays]
    apart = {(array.dtype, array.strides) for array in arrays} != {(np.dtype(kind), (size * width,))}
    if not apart and places == [places[0] + size * j for j in range(width)]:
        return np.lib.stride_tricks.as_strided(first, (len(first), width), (size * width, size))
    matrix = np.empty((len(first), width), dtype=kind)
    for rows in pieces(len(first)):
        for j, array in enumerate(arrays):
            matrix[rows, j] = array[rows]
    return matrix


def text_of(value: object) -> str:
    """Return the text of a cell; 7.0 is 7, as pandas writes whole numbers where a cell of their column is missing."""
    text = str(value).strip()
    if text in ("True", "False", "TRUE", "FALSE"):
        return text.lower()
    return whole[1] if (whole := _WHOLE.fullmatch(text)) else text


_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0")


_NO = {"true": "false", "yes": "no", "y": "n", "t": "f", "1": "0", "positive": "negative"}


def yes_of(values: Iterable[str]) -> str | None:
    """Return the one of two texts that says yes, where the other one says no; None for other texts."""
    texts = list(values)
    for one, other in zip(texts, reversed(texts), strict=True):
        if len(texts) == 2 and _NO.get(one.lower()) == other.lower():
            return one
    return None


def spellings(values: Iterable[str]) -> str:
    """Return the texts that differ only in capital letters, as a message lists them; empty where there are none."""
    alike: dict[str, list[str]] = {}
    for text in values:
        alike.setdefault(text.casefold(), []).append(text)
    return ", ".join(" and ".join(map(repr, sorted(texts))) for texts in alike.values() if len(texts) > 1)
