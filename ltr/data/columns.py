r"""Columns of tables: which cells are missing, and the others as numbers, texts or dates.

A cell is missing if it is empty, ``None``, ``NaN``, or text of white space alone. Texts that are numbers count as
numbers: with a decimal point or comma, and with groups of three digits divided by commas, points, apostrophes or
spaces. Dates are ISO 8601 (``2024-05-31``, with a time or without), or day, month and year divided by points, slashes
or hyphens.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.dataset import DataError, checked_names

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

ISO = "ISO 8601"
"""Name of the format of dates such as 2024-05-31 and 2024-05-31T12:30."""

_WHOLE = re.compile(r"(-?[0-9]+)\.0+")
_SPACE = "'\u2019 \u00a0\u202f"
_NUMBERS = {
    mark: re.compile(
        rf"(?=[+-]?[.,]?[0-9])[+-]?([0-9]{{1,3}}([{group}{_SPACE}][0-9]{{3}})+|[0-9]*)({re.escape(mark)}[0-9]*)?(e[+-]?[0-9]+)?",
        re.IGNORECASE,
    )
    for mark, group in ((".", ","), (",", "."))
}
_FIRST = frozenset("+-.,0123456789")  # how a number can begin
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?")
_DATE = re.compile(r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}( [0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)?")
_FORMATS = {
    ".": ("%d.%m.%Y", "%d.%m.%y"),
    "/": ("%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d"),
    "-": ("%d-%m-%Y", "%m-%d-%Y"),
}


class Column:
    """A column of a table: which cells are missing, and the others as numbers, texts or dates.

    Args:
        name: name of the column.
        values: its cells: a pandas Series, or anything that NumPy can turn into a 1-D array.
        decimal: decimal mark of numbers that are texts, ``"."`` or ``","``, where the cells leave it open.

    Raises:
        DataError: complex numbers.

    Examples:
        >>> column = Column("age", ["31", None, " 7.0"])
        >>> column.missing.tolist(), column.numbers.tolist(), column.texts.tolist()
        ([False, True, False], [31.0, nan, 7.0], ['31', '', '7'])
        >>> Column("since", ["31.05.2024", ""]).date_formats, Column("paid", ["1.234,50"]).numbers.tolist()
        (('%d.%m.%Y',), [1234.5])
    """

    def __init__(self, name: str, values: Any, *, decimal: str | None = None) -> None:  # noqa: ANN401
        import pandas as pd

        series = values if isinstance(values, pd.Series) else pd.Series(_cells(values))
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype if len(series.cat.categories) else object)
        self.name, self._series, self._decimal = name, series.reset_index(drop=True), decimal
        self._numeric = bool(pd.api.types.is_numeric_dtype(series.dtype))
        if pd.api.types.is_complex_dtype(series.dtype):
            raise DataError(f"column {name!r} must hold numbers, got {series.dtype}")

    def __len__(self) -> int:
        return len(self._series)

    def take(self, rows: NDArray[np.intp] | slice) -> Column:
        """Return some rows of the column."""
        return Column(self.name, self._series.iloc[rows], decimal=self._decimal)

    def content(self) -> bytes:
        """Return the cells as bytes, the same for the same numbers or texts."""
        if self.numbers is not None:
            return self.numbers.tobytes() + self.missing.tobytes()
        return "\0".join(self.texts.tolist()).encode()

    @cached_property
    def missing(self) -> BoolArray:
        """Which cells are missing, (n,)."""
        if self._numeric:
            return self._series.isna().to_numpy(dtype=bool)
        blank = np.array([isinstance(cell, str) and not cell.strip() for cell in self._cells] + [True])
        return np.asarray(blank[self._codes])

    @property
    def plain(self) -> bool:
        """Whether the column is stored as numbers or booleans, none of them missing."""
        return self._numeric and not self.missing.any()

    @property
    def different(self) -> int:
        """Number of different cells, without missing values."""
        return len(self._cells)

    @cached_property
    def numbers(self) -> FloatArray | None:
        """The cells as float64, NaN where missing; None where a cell is not a number."""
        if self._numeric:
            return self._series.to_numpy(dtype=np.float64, na_value=np.nan)
        if self._not_numbers.any():
            return None
        return np.append(self._numbers, np.nan)[self._codes]

    @property
    def not_a_number(self) -> tuple[int, Any]:
        """The first row, counted from 1, whose cell is not a number, and the cell."""
        row = int(np.argmax(np.append(self._not_numbers, False)[self._codes]))
        return row + 1, self._cells[self._codes[row]]

    @property
    def only_texts(self) -> bool:
        """Whether all cells are texts, but missing ones."""
        return not self._numeric and all(isinstance(cell, str) for cell in self._cells)

    @property
    def share_of_numbers(self) -> float:
        """Share of the rows, without those that are missing, whose cell is a number; NaN where all are missing."""
        known = self._codes[~self.missing]
        return float(np.mean(~self._not_numbers[known])) if len(known) else np.nan

    def texts_beside_numbers(self) -> list[str]:
        """Return the different cells that are no numbers, as they stand in the table."""
        return [str(cell).strip() for cell, no in zip(self._cells, self._not_numbers, strict=True) if no]

    @cached_property
    def texts(self) -> NDArray[np.object_]:
        """The cells as texts, empty where missing."""
        return np.array([*map(text_of, self._cells), ""], dtype=object)[self._codes]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of rows with each text, without missing cells, in the order in which texts first appear."""
        found: dict[str, int] = {}
        for cell, rows in zip(
            self._cells, np.bincount(self._codes[self._codes >= 0], minlength=len(self._cells)), strict=True
        ):
            if text := text_of(cell):
                found[text] = found.get(text, 0) + int(rows)
        return found

    def frequent(self, rare: float, most: int) -> list[str]:
        """Return the most frequent texts, those of most rows first.

        Args:
            rare: least share of the rows, without missing ones, of a text; it has at least two rows.
            most: largest number of texts.
        """
        least = max(2.0, rare * sum(self.counts.values()))
        found = [text for text, rows in self.counts.items() if rows >= least]
        return sorted(found, key=lambda text: (-self.counts[text], text))[:most]

    @cached_property
    def date_formats(self) -> tuple[str, ...]:
        """Formats in which all cells, but missing ones, are dates: none, one, or two where day and month could swap."""
        import pandas as pd

        if pd.api.types.is_datetime64_any_dtype(self._series.dtype):
            return (ISO,)
        cells = [cell for cell in self._cells if not isinstance(cell, str) or cell.strip()]
        if not cells or not all(isinstance(cell, datetime.date | np.datetime64 | str) for cell in cells):
            return ()
        texts = [cell.strip() for cell in cells if isinstance(cell, str)]
        if len(texts) < len(cells) or all(map(_ISO.fullmatch, texts)):
            return (ISO,) if self.dates(ISO) is not None else ()
        marks = {found[1] if (found := _DATE.fullmatch(text)) else "" for text in texts}
        formats = _FORMATS.get(marks.pop(), ()) if len(marks) == 1 else ()
        return tuple(form for form in formats if self.dates(form) is not None)

    def share_of_dates(self, form: str) -> float:
        """Return the share of the rows, without those that are missing, whose cell is a date of a format."""
        days = self._days(form)[0][self._codes[~self.missing]]
        return float(np.mean(~np.isnan(days))) if len(days) else np.nan

    def likely_format(self) -> str:
        """Return the format in which most of some cells are dates, from the look of the cells."""
        marks = [
            ISO if _ISO.fullmatch(text) else found[1] if (found := _DATE.fullmatch(text)) else ""
            for text in self.counts
        ]
        mark = max(set(marks), key=marks.count, default="")
        formats = (ISO,) if mark == ISO else _FORMATS.get(mark, ())
        return max(formats, key=self.share_of_dates, default="")

    @property
    def durations(self) -> bool:
        """Whether the cells are durations."""
        import pandas as pd

        return bool(
            pd.api.types.is_timedelta64_dtype(self._series.dtype)
            or any(isinstance(cell, datetime.timedelta) for cell in self._cells)
        )

    def dates(self, form: str) -> FloatArray | None:
        """Return the days since 1970-01-01, NaN where missing; None where a cell is no date of this format."""
        days, unread = self._days(form)
        return None if unread.any() else np.append(days, np.nan)[self._codes]

    def not_a_date(self, form: str) -> tuple[int, str]:
        """Return the first row, counted from 1, whose cell is no date of a format, and the cell."""
        row = int(np.argmax(np.append(self._days(form)[1], False)[self._codes]))
        return row + 1, str(self._cells[self._codes[row]])

    def texts_beside_dates(self, form: str) -> list[str]:
        """Return the different cells that are no dates of a format, as they stand in the table."""
        return [str(cell).strip() for cell, no in zip(self._cells, self._days(form)[1], strict=True) if no]

    def _days(self, form: str) -> tuple[FloatArray, BoolArray]:
        """Return the different cells in days since 1970-01-01, and which of them are no dates."""
        import pandas as pd

        cells = pd.Series(
            [cell.strip() or None if isinstance(cell, str) else cell for cell in self._cells], dtype=object
        )
        times = pd.Series(pd.NaT, index=cells.index, dtype="datetime64[us, UTC]")
        clocks = ("",) if form == ISO else ("", " %H:%M", " %H:%M:%S")
        for clock in clocks:
            wanted = cells.notna() & times.isna()
            if wanted.any():
                style = "ISO8601" if form == ISO else form + clock
                found = pd.to_datetime(cells[wanted].astype(str), format=style, utc=True, errors="coerce")
                times[wanted] = found.astype(times.dtype)
        days = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        return days.to_numpy(dtype=np.float64), (cells.notna() & times.isna()).to_numpy(dtype=bool)

    @property
    def decimal_marks(self) -> tuple[str, ...]:
        """Decimal marks, points and commas, with which all numbers can be read; none where there is no such mark."""
        texts = self._number_texts
        found = tuple(mark for mark, form in _NUMBERS.items() if all(map(form.fullmatch, texts)))
        return found if any("," in text or "." in text for text in texts) else ()

    @property
    def ambiguous(self) -> bool:
        """Whether the texts are other numbers with a decimal point than with a decimal comma, as 1,234 is."""
        return (
            self._decimal is None and len(self.decimal_marks) == 2 and any("," in text for text in self._number_texts)
        )

    @cached_property
    def _factorized(self) -> tuple[NDArray[np.intp], list[Any]]:
        import pandas as pd

        codes, cells = pd.factorize(self._series)
        return codes, list(cells)

    @property
    def _codes(self) -> NDArray[np.intp]:
        """Number of each row's cell among the different ones, -1 where missing."""
        return self._factorized[0]

    @property
    def _cells(self) -> list[Any]:
        """The different cells."""
        return self._factorized[1]

    @cached_property
    def _numbered(self) -> list[int]:
        """Places of the different cells that are texts and numbers."""
        texts = (cell.strip() if isinstance(cell, str) else "" for cell in self._cells)
        candidates = ((at, text) for at, text in enumerate(texts) if text[:1] in _FIRST)
        return [at for at, text in candidates if is_amount(text)]

    @property
    def _number_texts(self) -> list[str]:
        return [str(self._cells[at]).strip() for at in self._numbered]

    @cached_property
    def _numbers(self) -> FloatArray:
        import pandas as pd

        found = np.array(pd.to_numeric(pd.Series(self._cells, dtype=object), errors="coerce"), dtype=np.float64)
        marks = self.decimal_marks
        if self._decimal in marks:
            marks = (self._decimal,)
        # the text 1.234 is read above, but not as the number that it is among numbers with decimal commas
        if marks == (",",) or any(np.isnan(found[at]) for at in self._numbered):
            mark = marks[0] if marks else "."
            for at in self._numbered:
                found[at] = np.nan if len(marks) == 2 else read_number(str(self._cells[at]), mark)
        return found

    @cached_property
    def _not_numbers(self) -> BoolArray:
        unread = np.isnan(self._numbers)
        return np.array([no and text_of(cell) != "" for no, cell in zip(unread, self._cells, strict=True)], dtype=bool)


def is_amount(text: str) -> bool:
    """Return whether a text is a number in the way of some country.

    Examples:
        >>> [is_amount(text) for text in ("-1.234,5", "12 000", "+1,5", "3 kg")]
        [True, True, True, False]
    """
    return any(form.fullmatch(text.strip()) for form in _NUMBERS.values())


def read_number(text: str, mark: str) -> float:
    """Return the number in a text with a decimal mark; NaN for any other text.

    Examples:
        >>> [read_number(text, ",") for text in ("1.234,5", "12 000", "1,5", "1,234.5")]
        [1234.5, 12000.0, 1.5, nan]
    """
    text = text.strip()
    if _NUMBERS[mark].fullmatch(text) is None:
        return np.nan
    return float("".join("." if c == mark else c for c in text if c.isalnum() or c in "+-" or c == mark))


def columns_of(table: Any, names: Sequence[str] | None = None) -> dict[str, Column]:  # noqa: ANN401 (of any library)
    """Return columns of a table by name.

    Args:
        table: a pandas or polars frame, a mapping of columns, or a numeric array, (n, d), whose columns are called
            ``x0``, ``x1``, ...
        names: the columns to take; all by default.

    Raises:
        ValueError: columns of the same name or of different lengths; columns that the table lacks, all in one error.
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
    found = {}
    for name in keyed if names is None else names:
        values = table[keyed[name]]
        found[name] = values if isinstance(values, Column) else Column(name, values)
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"X must have columns of one length, got {lengths}")
    return found


def _cells(values: Any) -> Any:  # noqa: ANN401 (a column of any library)
    """Return a column as pandas takes it; NumPy would turn missing values in a list of texts into the text nan."""
    return list(values) if isinstance(values, list | tuple) else np.asarray(values)


def text_of(value: object) -> str:
    """Return the text of a cell.

    Examples:
        >>> [text_of(value) for value in (60.0, True, " fast ", "007", 2.5)]
        ['60', 'true', 'fast', '007', '2.5']
    """
    text = str(value).strip()
    if text in ("True", "False", "TRUE", "FALSE"):
        return text.lower()
    return whole[1] if (whole := _WHOLE.fullmatch(text)) else text


_NO = {"true": "false", "yes": "no", "y": "n", "t": "f", "1": "0", "positive": "negative"}


def yes_of(values: Iterable[str]) -> str | None:
    """Return the one of two texts that says yes, where the other one says no; None for other texts.

    Examples:
        >>> yes_of(["No", "Yes"]), yes_of(["f", "t"]), yes_of(["bus", "car"]), yes_of(["yes", "no", "perhaps"])
        ('Yes', 't', None, None)
    """
    texts = list(values)
    pairs = ((one, other.lower()) for one, other in zip(texts, reversed(texts), strict=True))
    return next((one for one, other in pairs if len(texts) == 2 and _NO.get(one.lower()) == other), None)


def spellings(values: Iterable[str]) -> str:
    """Return the texts that differ only in capital letters, as a message lists them; empty where there are none.

    Examples:
        >>> spellings(["yes", "NO", "Yes", "no"]), spellings(["yes", "no"])
        ("'Yes' and 'yes', 'NO' and 'no'", '')
    """
    alike: dict[str, list[str]] = {}
    for text in values:
        alike.setdefault(text.casefold(), []).append(text)
    return ", ".join(" and ".join(map(repr, sorted(texts))) for texts in alike.values() if len(texts) > 1)
