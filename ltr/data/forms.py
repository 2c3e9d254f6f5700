r"""How the texts of a column are numbers or dates: decimal marks, units, formats of dates.

A form is decided once, on the table that a ranker or a card learns from, and kept with what is learned. Cells of later
rows are read by it one by one, so that a row gets the same features in any company.

Numbers have a decimal point or comma, and groups of three digits divided by commas, points, apostrophes or spaces. A
minus may stand before or behind, or be a pair of parentheses, and a unit such as ``%``, ``$`` or ``kg`` may stand
beside. Dates are ISO 8601 (``2024-05-31``, with a time or without), day, month and year divided by points, slashes or
hyphens, or with the month as an English word.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

NUMBERS = (int, float, decimal.Decimal, np.number, np.bool_)
"""Types of cells that are numbers."""
MARKS = (".", ",")
"""Decimal marks."""
ISO = "ISO 8601"
"""Name of the format of dates such as 2024-05-31 and 2024-05-31T12:30."""

AS_WRITTEN = {"strict": True, "extra": "forbid", "allow_inf_nan": False}
"""How pydantic reads what was written as JSON."""

_DASHES = frozenset(("-", "--", "---", "\u2013", "\u2014", "\u2212"))
_MINUS = str.maketrans("\u2212\u2013\ufe63\uff0d", "----")  # what is typeset as a minus
_SPACE = "'\u2019 \u00a0\u202f"
_PLAIN = re.compile(r"[+-]?(?:[0-9]+|[0-9]*\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NUMBER = {
    mark: re.compile(
        rf"[1-9][0-9]{{0,2}}(?:[{group}{_SPACE}][0-9]{{3}})+(?:{re.escape(mark)}[0-9]*)?"
        rf"|[0-9]*(?:{re.escape(mark)}[0-9]*)?(?:[eE][+-]?[0-9]+)?"
    )
    for mark, group in ((".", ","), (",", "."))
}
_CODES = "AUD BRL CAD CHF CNY CZK DKK EUR GBP HUF INR JPY MXN NOK NZD PLN RON RUB SEK TRY USD ZAR"
_MONEY = rf"[A-Z]{{0,2}}[\u20ac$\u00a3\u00a5\u20b9\u20bd\u20a9]|{_CODES.replace(' ', '|')}"
_AMOUNT = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[+-]?)\s*(?P<before>{_MONEY})?\s*(?P<inner>[+-]?)"
    rf"(?P<number>[.,]?[0-9](?:[0-9.,{_SPACE}]*[0-9])?[.,]?(?:[eE][+-]?[0-9]+)?)"
    rf"\s*(?P<after>[%\u2030\u00b0]|{_MONEY}|\u00b0?[^\W\d_][^\s\d()+-]{{0,9}})?\s*(?P<close>\))?(?P<behind>-?)"
)
_FIRST = frozenset("+-(.,0123456789\u20ac$\u00a3\u00a5\u20b9\u20bd\u20a9ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_WORDS = {"true": 1.0, "false": 0.0, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
_CODE = re.compile(r"0[0-9]+")
_THREE = re.compile(r"[+-]?[0-9]+\.[0-9]{3}")


class Amount(NamedTuple):
    """A number as a text has it."""

    number: str  # digits and marks, without sign and unit
    sign: float  # 1 or -1
    unit: str  # what stands beside it; empty for a number alone


def amount_of(text: str) -> Amount | None:
    """Return the number in a text such as ``-1.234,50 kg``, in the way of any country; None for other texts."""
    text = text.strip().translate(_MINUS)
    if _digits_alone(text):
        return Amount(text, 1.0, "")
    if text[:1] not in _FIRST or (found := _AMOUNT.fullmatch(text)) is None:
        return None
    number, unit = found["number"], found["before"] or found["after"] or ""
    signs = [found["sign"], found["inner"], found["behind"], "-" if found["open"] else ""]
    twice = sum(map(bool, signs)) > 1 or (found["before"] and found["after"])
    if twice or bool(found["open"]) != bool(found["close"]) or (unit and is_code(number)) or not marks_of(number):
        return None
    return Amount(number, -1.0 if "-" in signs else 1.0, unit)


def marks_of(number: str) -> tuple[str, ...]:
    """Return the decimal marks with which digits and marks are a number."""
    return tuple(mark for mark in MARKS if _NUMBER[mark].fullmatch(number))


NOTHING: tuple[str, ...] = (
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Texts that stand for missing values in all tables, as in pandas."""


def is_nothing(cell: object) -> bool:
    """Return whether a cell is a text that is blank, or stands for a missing value."""
    return isinstance(cell, str) and (not (bare := cell.strip()) or bare in NOTHING)


def is_dash(cell: object) -> bool:
    """Return whether a cell is a dash, which among numbers stands for a missing one."""
    return isinstance(cell, str) and cell.strip() in _DASHES


def is_code(text: str) -> bool:
    """Return whether a text is made of digits with a zero in front, as codes are."""
    return _CODE.fullmatch(text.strip()) is not None


def is_plain_number(cell: object) -> bool:
    """Return whether a cell is a text that is a number as programs write it, true or false."""
    text = cell.strip() if isinstance(cell, str) else ""
    return (_PLAIN.fullmatch(text) is not None and not _CODE.fullmatch(text)) or text.lower() in ("true", "false")


@dataclass(frozen=True)
class NumberForm:
    """How the texts of a column are numbers.

    Examples:
        >>> [NumberForm(",", "kg").read(text) for text in ("1.234,5 kg", "12", "1.5 kg")]
        [1234.5, nan, nan]
        >>> [NumberForm().read(text) for text in ("12", "1,5", "1.5", "1.500")]
        [12.0, 1.5, 1.5, nan]
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = AS_WRITTEN

    decimal: str = ""  # mark; empty where no text has one: a later text is a number if it can be read in one way only
    unit: str = ""  # what stands beside each number, such as "%"; empty for numbers alone
    bare: bool = False  # whether a number may lack the unit
    ambiguous: str = field(default="", compare=False)  # a text that is another number by either mark, as 1,234 is

    @property
    def plain(self) -> bool:
        """Whether the texts are numbers as programs write them."""
        return self.decimal == "." and not self.unit

    def read(self, cell: Any) -> float:  # noqa: ANN401 (a cell of any type)
        """Return the number in a cell; NaN for any other cell."""
        if not isinstance(cell, str):
            return float(cell) if isinstance(cell, NUMBERS) else math.nan
        text = cell.strip()
        if not self.unit and (_digits_alone(text) or (self.decimal == "." and _PLAIN.fullmatch(text))):
            return float(text)
        if (amount := amount_of(text)) is None:
            return math.nan if self.unit else _WORDS.get(text.lower(), math.nan)
        if amount.unit != self.unit and (amount.unit or not self.bare):
            return math.nan
        marks = marks_of(amount.number)
        decimal = self.decimal or (marks[0] if len(marks) == 1 or not _has_mark(amount.number) else "")
        if decimal not in marks:
            return math.nan
        kept = (c for c in amount.number if c.isalnum() or c in "+-" or c == decimal)
        return amount.sign * float("".join("." if c == decimal else c for c in kept))

    def describe(self) -> str:
        """Return what a text must be, as a message says it."""
        mark = {".": " with a decimal point", ",": " with a decimal comma"}.get(self.decimal, "")
        unit = f" in {self.unit}" if self.unit else ""
        return f"numbers{unit}{mark}"


def _digits_alone(text: str) -> bool:
    """Return whether a text is a whole number without any mark, which is read faster than others."""
    return text.isascii() and text.isdigit()


def _has_mark(number: str) -> bool:
    return "." in number or "," in number


def form_of(texts: Iterable[str], decimal: str | None = None) -> NumberForm | None:
    """Return the form in which most of some different texts are numbers, by default with a mark; None without any."""
    amounts = [(text, amount) for text in texts if (amount := amount_of(text)) is not None]
    if not amounts:
        return NumberForm(".") if any(text.strip().lower() in _WORDS for text in texts) else None
    unit = Counter(amount.unit for _, amount in amounts).most_common(1)[0][0]
    marked = [(text, marks_of(a.number)) for text, a in amounts if a.unit == unit and _has_mark(a.number)]
    if not marked:
        return NumberForm("", unit)
    fitting = {mark: sum(mark in marks for _, marks in marked) for mark in MARKS}
    if fitting["."] != fitting[","]:
        return NumberForm(max(MARKS, key=lambda mark: fitting[mark]), unit)
    if all(len(marks) == 1 for _, marks in marked):  # as many of either: those with a comma are reported
        return NumberForm(".", unit)
    if decimal is not None:
        return NumberForm(decimal, unit)
    return NumberForm("", unit, ambiguous=next(text for text, marks in marked if len(marks) == 2))


def is_settled(texts: Sequence[str]) -> bool:
    """Return whether some texts are plain numbers, of which one can be read with a decimal point only."""
    stripped = [text.strip() for text in texts]
    if not all(map(_PLAIN.fullmatch, stripped)) or any(map(_CODE.fullmatch, stripped)):
        return False
    return any(_has_mark(text) and marks_of(text.lstrip("+-")) == (".",) for text in stripped)


def have_three_decimals(texts: Iterable[str]) -> bool:
    """Return whether all texts are numbers with three decimals, as programs print them."""
    return all(_THREE.fullmatch(text.strip()) for text in texts)


# dates

WORDS = "%d %B %Y"
"""Format of dates with the month as an English word, such as 31 May 2024, May 31, 2024 and 31-May-2024."""
_ORDERS = {
    ".": ("%d.%m.%Y", "%d.%m.%y", "%Y.%m.%d"),
    "/": ("%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%Y/%m/%d"),
    "-": ("%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y"),
}
_FIELDS = {"%d": "(?P<d>[0-9]{1,2})", "%m": "(?P<m>[0-9]{1,2})", "%y": "(?P<y>[0-9]{2})", "%Y": "(?P<Y>[0-9]{4})"}
_CLOCK = r"(?:[T ]+(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2}(?:\.[0-9]+)?))?(?: ?(?P<p>[AaPp][Mm]))?)?"
_WORD = r"(?P<first>[0-9]{1,2}|[A-Za-z]{3,9})(?P<gap>[ -])(?P<second>[A-Za-z]{3,9}|[0-9]{1,2}),?(?P=gap)(?P<Y>[0-9]{4})"
_PATTERNS = {
    name: re.compile(re.sub("%[dmyY]", lambda field: _FIELDS[field[0]], form.replace(".", r"\.")) + _CLOCK)
    for name, form in [(ISO, "%Y-%m-%d"), *((form, form) for forms in _ORDERS.values() for form in forms)]
}
_PATTERNS[WORDS] = re.compile(_WORD + _CLOCK)
_ISO = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[T ].*)?")
_MARK = re.compile("[0-9]{1,4}([./-])")
_NAMES = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october"]
_NAMES += ["november", "december"]
_MONTHS = {name[:size]: at for at, name in enumerate(_NAMES, start=1) for size in (3, len(name))} | {"sept": 9}
_EPOCH = datetime.date(1970, 1, 1).toordinal()


def date_at(days: float) -> datetime.date:
    """Return the date that is so many days after 1 January 1970."""
    return datetime.date.fromordinal(_EPOCH + math.floor(days))


@dataclass(frozen=True)
class DateForm:
    """How the cells of a column are dates.

    Examples:
        >>> form = DateForm((ISO, "%d.%m.%y"), first_year=1930)
        >>> [form.read(cell) for cell in ("1970-01-02T12:00", "01.01.68", "31.02.68")]
        [1.5, -731.0, nan]
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = AS_WRITTEN

    formats: tuple[str, ...]  # as for strftime, or `ISO`; each cell has one of them
    first_year: int | None = None  # of the hundred years that two digits stand for; None where those are not allowed

    def read(self, cell: Any) -> float:  # noqa: ANN401 (a cell of any type)
        """Return the days from 1970-01-01 to a date, with a fraction for the time; NaN for any other cell."""
        if isinstance(cell, str):
            found = (_days(cell.strip(), form, self.first_year) for form in self.formats)
            return next((days for days in found if not math.isnan(days)), math.nan)
        if isinstance(cell, np.datetime64):
            return float(cell.astype("datetime64[us]").astype(np.int64)) / 86_400e6
        if isinstance(cell, datetime.datetime):
            return _since(cell)
        return float(cell.toordinal() - _EPOCH) if isinstance(cell, datetime.date) else math.nan

    def describe(self) -> str:
        """Return what a cell must be, as a message says it."""
        return f"dates ({' or '.join(self.formats)})"


class DateHints(NamedTuple):
    """What a user says of the dates of a table."""

    format: str | None = None  # as for strftime, where it is not found out
    first_year: int | None = None  # of the hundred years that years of two digits stand for


NO_HINTS = DateHints()
Form = NumberForm | DateForm | Literal["text"]
"""How the cells of a column are read: as numbers, as dates, or as texts."""


def _since(time: datetime.datetime) -> float:
    clock = datetime.timedelta(hours=time.hour, minutes=time.minute, seconds=time.second, microseconds=time.microsecond)
    seconds = (clock - (time.utcoffset() or datetime.timedelta())).total_seconds()
    return time.toordinal() - _EPOCH + seconds / 86_400


def _days(text: str, form: str, first_year: int | None) -> float:
    """Return the days since 1970 of a text in a format; NaN for other texts."""
    try:
        if form not in _PATTERNS:
            found = datetime.datetime.strptime(text, form)
            if "%y" in form and first_year is not None:
                found = found.replace(year=first_year + (found.year - first_year) % 100)
            return _since(found)
        if (match := _PATTERNS[form].fullmatch(text)) is not None:
            return _at(match.groupdict(), first_year)
        return _since(datetime.datetime.fromisoformat(text)) if form == ISO and _ISO.fullmatch(text) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def _at(part: Mapping[str, str], first_year: int | None) -> float:
    """Return the days since 1970 of the fields of a pattern; ValueError or NaN where there is no such day or time."""
    if "first" in part:
        day, word = sorted((part["first"], part["second"]), key=str.isalpha)
        month = _MONTHS.get(word.lower(), 0)
    else:
        day, month = part["d"], int(part["m"])
    base = 1969 if first_year is None else first_year
    year = base + (int(part["y"]) - base) % 100 if "y" in part else int(part["Y"])
    hours, minutes, seconds = int(part["H"] or 0), int(part["M"] or 0), float(part["S"] or 0)
    if half := part["p"]:
        hours = hours % 12 + 12 * (half.lower() == "pm") if 1 <= hours <= 12 else 24
    if hours > 23 or minutes > 59 or seconds >= 60:
        return math.nan
    return datetime.date(year, month, int(day)).toordinal() - _EPOCH + (3600 * hours + 60 * minutes + seconds) / 86_400


def date_forms(cells: Sequence[Any], first_year: int | None = None) -> list[DateForm]:
    """Return the forms in which all, or else nearly all, of those of some different cells are dates that look like it.

    There are several where day and month of all cells of a look could be swapped.

    Examples:
        >>> date_forms(["2024-05-31", "31.05.2024", "no"])
        [DateForm(formats=('ISO 8601', '%d.%m.%Y'), first_year=None)]
    """
    groups: dict[tuple[str, ...], list[Any]] = {}
    for cell in cells:
        groups.setdefault(_formats(cell), []).append(cell)
    groups.pop((), None)
    if not groups:
        return []

    def missed(form: str, members: list[Any]) -> float:
        read = DateForm((form,), first_year).read
        return sum(math.isnan(read(cell)) for cell in members) / len(members)

    for most in (0.0, 0.2):
        fitting = ([form for form in group if missed(form, own) <= most] for group, own in groups.items())
        if found := list(itertools.product(*fitting)):
            return [DateForm(formats, first_year) for formats in found]
    return []


def _formats(cell: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return the formats that a cell could have from its look; none for what is no date."""
    if not isinstance(cell, str):
        return (ISO,) if isinstance(cell, datetime.date | np.datetime64) else ()
    text = cell.strip()
    if _ISO.fullmatch(text):
        return (ISO,)
    start = _MARK.match(text)
    if start is not None and (found := [form for form in _ORDERS[start[1]] if _PATTERNS[form].fullmatch(text)]):
        return tuple(found)
    words = _PATTERNS[WORDS].fullmatch(text)
    return (WORDS,) if words and any(words[part].lower() in _MONTHS for part in ("first", "second")) else ()
