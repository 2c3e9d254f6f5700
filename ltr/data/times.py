"""When rows were: a column of dates, periods or numbers as moments in order, and blocks of rows that follow each other.

A moment is a value of the column: all rows that have it are of the same time, and no division in time comes between
them. Periods are texts such as 2024-W05, 2024-05, 2024-Q1 and Q1 2024.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_array
from ltr.data.columns import Column
from ltr.data.dataset import DataError, change_in_list
from ltr.data.forms import NO_HINTS, DateHints
from ltr.data.kinds import kind_of_times
from ltr.data.problems import Problem, Remedy, in_row

IntArray = NDArray[np.int64]

MOST_PERIODS = 12
"""Largest number of periods by which results are told."""

_YEAR_FIRST = re.compile(r"(?P<year>[0-9]{4})[-/. ]?(?P<letter>[WwQq]?)(?P<number>[0-9]{1,2})")
_YEAR_LAST = re.compile(r"(?P<letter>[WwQq]?)(?P<number>[0-9]{1,2})[-/. ](?P<year>[0-9]{4})")
_MOST = {"": 12, "Q": 4, "W": 53}  # months, quarters and weeks of a year


@dataclass(frozen=True, eq=False)
class Times:
    """The moment of each row."""

    moments: NDArray[Any]  # the different times, ascending: numbers, dates (datetime64), or periods as texts
    numbers: IntArray  # of each row's moment, (n,)

    @classmethod
    def of(cls, values: NDArray[Any]) -> Times:
        """Return the times of rows with these values, (n,)."""
        return cls(*np.unique(values, return_inverse=True))

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: NDArray[Any] | slice) -> Times:
        """Return those of some rows, by number or by a mask."""
        return Times(self.moments, self.numbers[rows])

    def name(self, moment: int) -> str:
        """Return a moment, by its number, as text."""
        value = self.moments[moment]
        return f"{value:.15g}" if isinstance(value, np.floating) else str(value).replace("T", " ")

    def check_lists(self, lists: IntArray | None, where: str) -> None:
        """Raise DataError where the rows of a list, given by its number in each row, have different times."""
        if (found := change_in_list(self.numbers, lists)) is not None:
            row, first = found
            raise DataError(
                f"{where}: all rows of a query must have the same time, because a list is ranked at one moment, got "
                f"{self.name(self.numbers[row])} in row {row + 1} and {self.name(first)} in an earlier row of its "
                "query: take a column with one value per query, or make a query of each query and time"
            )

    @property
    def span(self) -> str:
        """The first and the last moment of the rows, or the only one."""
        first, last = self.name(self.numbers.min()), self.name(self.numbers.max())
        return first if first == last else f"{first} to {last}"

    def periods(self) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """Yield at most `MOST_PERIODS` periods in ascending order, with their rows: moments, or blocks of several."""
        period = np.unique(self.numbers, return_inverse=True)[1]
        if len(period) and period.max() >= MOST_PERIODS:
            period = blocks_of(self.numbers, [block / MOST_PERIODS for block in range(1, MOST_PERIODS)])
        for number in range(period.max() + 1 if len(period) else 0):
            rows = np.flatnonzero(period == number)
            yield self.take(rows).span, rows

    @cached_property
    def texts(self) -> list[str]:
        """The moment of each row as text."""
        names = [self.name(moment) for moment in range(len(self.moments))]
        return [names[number] for number in self.numbers]


def times_of(column: Column, lists: IntArray | None, dates: DateHints = NO_HINTS) -> Times:
    """Return the times in a column, the same in all rows of a query; raise the `Problem` of another column.

    `lists` are the numbers of the queries; dates are read as in `ltr.data.kinds.kind_of`.
    """
    missing = np.flatnonzero(column.missing)
    if len(missing):
        rule = f"column {column.name!r}: times must not be missing, got {in_row(missing)}"
        raise Problem(rule, (Remedy("fill them in, or take these rows out of the table"),))
    values = _periods(column)
    if values is None:
        kind = kind_of_times(column, dates)
        if kind.problem is not None:
            ways = [way for way in kind.problem.remedies if way.key in ("decimal", "date_format", "first_year")]
            change = Remedy("change it, or take such rows out of the table")
            raise Problem(kind.problem.text, ways or [change])
        read = kind.read(column)
        assert read.numbers is not None
        values = read.numbers
        if kind.is_date and (values == np.floor(values)).all():
            values = values.astype(np.int64).astype("datetime64[D]")
        elif kind.is_date:
            values = np.round(values * 86_400).astype(np.int64).astype("datetime64[s]")
    times = Times.of(values)
    times.check_lists(lists, f"column {column.name!r}")
    return times


def _periods(column: Column) -> NDArray[Any] | None:
    """Return the weeks, months or quarters in a column as texts that sort in time; None where it holds others."""
    found, kinds = {}, set()
    for cell in column.counts:
        if (match := _YEAR_FIRST.fullmatch(cell) or _YEAR_LAST.fullmatch(cell)) is None:
            return None
        year, letter, number = match["year"], match["letter"].upper(), match["number"]
        if (not letter and cell.isdigit()) or not 1 <= int(number) <= _MOST[letter]:
            return None
        kinds.add(letter)
        found[cell] = f"{year}-{letter}{number}" if letter == "Q" else f"{year}-{letter}{int(number):02d}"
    return np.array([found[text] for text in column.texts]) if len(kinds) == 1 else None


def checked_times(time: ArrayLike | None, n: int, lists: IntArray | None) -> IntArray | None:
    """Return the number of each row's moment, from 0 for the earliest, (n,); None without times.

    Times are numbers, or dates as NumPy, pandas or Python have them; the rows of a list, by its number in `lists`, must
    be of one time.
    """
    if time is None:
        return None
    given = as_array("time", time)
    if given.shape != (n,):
        raise DataError(f"time: times must be one per row ({n}), got shape {given.shape}")
    if given.dtype.kind == "O":
        import pandas as pd

        if len(missing := np.flatnonzero(pd.isna(given))) > 0:
            raise DataError(f"time: times must not be missing, got none in row {missing[0] + 1}")
        given = pd.Series(given.tolist()).to_numpy()
        if given.dtype.kind == "O" and all(isinstance(value, datetime.date) for value in given):
            given = given.astype("datetime64[us]")
    if given.dtype.kind not in "iufM":
        rule = "must be numbers or dates (an array of datetime64; pandas.to_datetime makes one of texts)"
        raise DataError(f"time: times {rule}, got an array of {given.dtype}")
    if (wrong := np.isnat(given) if given.dtype.kind == "M" else ~np.isfinite(given)).any():
        row = int(np.argmax(wrong))
        raise DataError(f"time: times must not be missing or infinite, got {given[row]} in row {row + 1}")
    times = Times.of(given)
    times.check_lists(lists, "time")
    return times.numbers


def blocks_of(times: NDArray[Any], shares: Sequence[float]) -> IntArray:
    """Return the number of each row's block of time, from 0 for the earliest, (n,); blocks are of whole moments.

    For each of some ascending `shares` of the rows, in (0, 1), a cut is made between the two moments where the share
    before it is nearest.

    Examples:
        >>> blocks_of(np.array([3, 1, 1, 2, 2, 2]), [0.3, 0.4, 0.8]).tolist()
        [2, 0, 0, 1, 1, 1]
    """
    _, moments, counts = np.unique(times, return_inverse=True, return_counts=True)
    before = np.cumsum(counts)[:-1]  # rows before each possible cut
    if not len(before):
        return np.zeros(len(moments), dtype=np.int64)
    cuts = np.unique([np.argmin(np.abs(before - share * len(moments))) for share in shares])
    return np.searchsorted(cuts, moments)  # moment m is after cut c where m > c
