"""Text tables, read as they are: encodings, separators, headers and rows of the wrong length.

Cells stay texts, since only the column can tell what they mean; columns whose cells are numbers in one way only are
read as numbers, which is faster.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from ltr.data.dataset import DataError
from ltr.data.forms import amount_of, have_three_decimals, is_settled
from ltr.data.problems import Problem, Remedy, TableError

if TYPE_CHECKING:
    import pandas as pd

TEXT_SUFFIXES = {".csv": None, ".txt": None, ".dat": None, ".tsv": "\t", ".tab": "\t"}
"""Suffixes of text tables, with the separator where the suffix says it."""
_SEPARATORS = (",", ";", "\t", "|")
_SHOWN = 5  # lines of the wrong length that a message names
_SAMPLE = 1000  # rows that tell which columns are numbers in one way only


@dataclass(frozen=True)
class Reading:
    """How a text table is to be read, where that is not found out.

    Args:
        separator: one character between the fields of a text file.
        decimal: decimal mark, ``"."`` or ``","``, of numbers that could be read with both.
        missing: further texts that stand for missing values, such as ``"?"``.
    """

    separator: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableFile:
    """The content of a table file.

    Args:
        columns: the columns in the file's order.
        notes: what was found out about the file, such as its encoding.
    """

    columns: dict[str, Any]
    notes: tuple[str, ...] = ()


def read_text(
    file: Path,
    reading: Reading,
    *,
    as_text: bool,
    ids: str | None,
    texts: Collection[str],
    numbers: Collection[str] | None,
) -> TableFile:
    """Read a text table; the arguments are those of `ltr.data.table_files.read_file`."""
    import pandas as pd

    encoding = _encoding(file)
    notes: tuple[str, ...] = (
        () if encoding == "utf-8-sig" else (f"read as {_ENCODINGS[encoding]}, for it is not UTF-8",)
    )
    with file.open(encoding=encoding, newline="") as stream:
        above, separator, header = _head(stream, file, reading.separator)
        names, begin = _names(header, file), stream.tell()
        options: dict[str, Any] = {"sep": separator, "header": None, "names": names, "index_col": False}
        options |= {"skipinitialspace": True, "low_memory": False}
        options |= {"na_filter": False} if as_text else {"na_values": list(reading.missing)}
        if not as_text and ids in names:
            options |= {"converters": {ids: str.strip}}  # ids stay unchanged: 007 is not 7, NA is an id
        guessed, numbers = numbers is None and not as_text, () if numbers is None else numbers
        if guessed:
            numbers = set(_settled(stream, options)).difference(texts)
            stream.seek(begin)
        options |= {"dtype": {name: str for name in names if name not in numbers and (as_text or name != ids)}}
        try:
            cells = dict(parse_csv(stream, options))
        except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
            if "EOF inside string" not in str(error):
                _check_lengths(file, encoding, separator, names, above)
            raise DataError(f"{file}: not a table separated by {separator!r}: {str(error).strip()}") from None
    if not as_text and ids in names:
        number, different = pd.factorize(cells[ids].replace("", None))  # an id is stored once for all of its rows
        cells[ids] = pd.Series(np.array([*different, None], dtype=object)[number], dtype=object)
    row_numbers = _row_numbers(cells, names)
    if "" in names and not row_numbers:
        raise TableError(str(file), [_unnamed(1)])
    columns = {name: cells[name] for name in names if name or as_text}
    if separator == "," and guessed:
        columns = {
            name: column if name == ids or name in texts else _printed(column) for name, column in columns.items()
        }
    notes += ("the first column, without a name, holds row numbers: left out",) if row_numbers else ()
    if not as_text and cells[names[-1]].isna().any():
        _check_lengths(file, encoding, separator, names, above)
    return TableFile(columns, notes)


def _head(stream: TextIO, file: Path, separator: str | None) -> tuple[int, str, list[str]]:
    """Return the number of the header's last line, the separator and the fields of the header; stop behind it."""
    above, header = _header(stream)
    if not header:
        raise DataError(f"{file}: the file is empty")
    begin = stream.tell()
    following = [line for line in (stream.readline() for _ in range(8)) if line.strip()][:3]
    stream.seek(begin)
    separator = separator or TEXT_SUFFIXES[file.suffix.lower()]
    few = max(len(_fields(header, mark)) for mark in _SEPARATORS) <= 2  # separators in it
    for mark in [separator] if separator else _SEPARATORS if few else ():
        if problem := title_problem([_fields(line, mark) for line in (header, *following)]):
            raise DataError(f"{file}: {problem}")
    separator = separator or max(_SEPARATORS, key=lambda mark: len(_fields(header, mark)))
    return above, separator, _fields(header, separator)


def _settled(stream: TextIO, options: dict[str, Any]) -> list[str]:
    """Return the columns of which the first rows show numbers that can be read in one way only."""
    import pandas as pd

    try:
        sample = parse_csv(stream, options | {"nrows": _SAMPLE, "dtype": str, "converters": {}})
    except (pd.errors.ParserWarning, pd.errors.ParserError):
        return []
    return [name for name in sample if is_settled(sample[name].dropna().unique().tolist())]


def _printed(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of texts as numbers where all have three decimals, which are no thousands between commas."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype) or not have_three_decimals(column.head(9).dropna().tolist()):
        return column
    texts = column.dropna()
    return pd.to_numeric(column) if len(texts) and have_three_decimals(texts.unique().tolist()) else column


def parse_csv(source: TextIO | io.BytesIO | Path, options: Mapping[str, Any]) -> pd.DataFrame:
    """Return what `pandas.read_csv` reads with some options, every number rounded once."""
    import pandas as pd

    with warnings.catch_warnings():
        # otherwise fields beyond the header would silently be dropped or taken as row labels
        warnings.simplefilter("error", pd.errors.ParserWarning)
        major, minor = map(int, pd.__version__.split(".")[:2])
        exact = {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}  # later versions do it anyway
        return pd.read_csv(source, **exact, **options)


_ENCODINGS = {"utf-16": "UTF-16", "cp1252": "Windows-1252 (Latin-1)", "latin-1": "Latin-1"}


def _encoding(file: Path) -> str:
    """Return the encoding of a text file: UTF-8, UTF-16 with its mark, or a Latin one of 8 bits."""
    with file.open("rb") as stream:
        first = stream.read(1 << 16)
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" in first:
        raise DataError(f"{file}: not a text table: it has bytes of zero")
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            with file.open(encoding=encoding, newline="") as text:
                while text.read(1 << 20):
                    pass
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def _header(stream: TextIO) -> tuple[int, str]:
    """Return the first line that is not blank, with the lines that its quotes take in, and the number of the last.

    The line is empty at the end of the file.
    """
    number = 0
    for line in iter(stream.readline, ""):
        number += 1
        if line.strip():
            while line.count('"') % 2 and (more := stream.readline()):
                line, number = line + more, number + 1
            return number, line
    return 0, ""


def title_problem(rows: Sequence[Sequence[str]]) -> str:
    """Return what is wrong with the first rows of a table where a title stands above the names of the columns.

    Examples:
        >>> title_problem([["Churn in May"], ["id", "age"], ["7", "31"]])
        "the first line must name the columns, got the title 'Churn in May': delete what is above the line 'id, age'"
        >>> title_problem([["id", "age"], ["7", "31"]])
        ''
    """
    title, *rest = [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)] or [[]]
    given = sum(map(bool, title))
    if len(rest) < 2 or given > 2 or len(rest[0]) <= given or not all(rest[0]) or len(rest[1]) != len(rest[0]):
        return ""
    if len({*rest[0]}) < len(rest[0]) or any(map(amount_of, rest[0])):
        return ""
    rule = f"the first line must name the columns, got the title {' '.join(filter(None, title))!r:.60}"
    return f"{rule}: delete what is above the line {', '.join(rest[0])!r:.60}"


def _reader(lines: Iterable[str], separator: str) -> Any:  # noqa: ANN401 (csv's own)
    """Return a reader of fields of any length: csv alone takes no more than 128 kB, less than some headers have."""
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _fields(line: str, separator: str) -> list[str]:
    found = next(_reader(io.StringIO(line, newline=""), separator))
    return [" ".join(field.split()) if "\n" in field else field.strip() for field in found]


def _names(fields: Sequence[str], file: Path) -> list[str]:
    """Return the names of the columns; raise TableError for a header that gives one twice, or none but to the first."""
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for at, name in enumerate(fields, start=1):
        if name and name in seen:
            rule = f"column names must differ, got {name!r} for columns {seen[name]} and {at}"
            problems.append(Problem(rule, (Remedy("rename one of them in the first line"),)))
        elif not name and at > 1:
            problems.append(_unnamed(at))
        seen.setdefault(name, at)
    if problems:
        raise TableError(str(file), problems)
    return list(fields)


def _unnamed(at: int) -> Problem:
    return Problem(f"every column needs a name, got '' for column {at}", (Remedy("name it in the first line"),))


def _row_numbers(columns: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Return whether the first column has no name and numbers the rows from 0 or 1, as pandas writes its index."""
    if names[0] != "" or len(names) == 1:
        return False
    cells = list(map(str, columns[""].tolist()))
    return any(cells == list(map(str, range(first, first + len(cells)))) for first in (0, 1))


def _check_lengths(file: Path, encoding: str, separator: str, names: Sequence[str], above: int) -> None:
    """Raise TableError, which names the first lines, if rows have too many or too few fields."""
    wrong = []
    with file.open(encoding=encoding, newline="") as stream:
        _header(stream)
        reader, end = _reader(stream, separator), above
        for fields in reader:
            line, end = end + 1, above + reader.line_num
            blank = len(fields) < 2 and not any(field.strip() for field in fields)
            if not blank and (len(fields) < len(names) or any(field.strip() for field in fields[len(names) :])):
                wrong.append(f"line {line} has {len(fields)} fields")
    if not wrong:
        return
    more = f" (and {len(wrong) - _SHOWN} more lines)" if len(wrong) > _SHOWN else ""
    advice = Remedy("mend these lines: a field with a separator in it needs quotes around it")
    raise TableError(str(file), [Problem(f"{', '.join(wrong[:_SHOWN])}{more}, the header {len(names)}", (advice,))])
