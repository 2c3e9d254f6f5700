"""Text tables, read as they are: encodings, separators, headers and rows of the wrong length.

Cells stay texts, since only the column can tell what they mean; columns whose cells are numbers in one way only are
read as numbers, which is faster.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from ltr.data.dataset import DataError
from ltr.data.forms import amount_of, have_three_decimals, is_settled
from ltr.data.problems import Problem, Remedy

if TYPE_CHECKING:
    import pandas as pd

TEXT_SUFFIXES = {".csv": None, ".txt": None, ".dat": None, ".tsv": "\t", ".tab": "\t"}
"""Suffixes of text tables, with the separator where the suffix says it."""
_SEPARATORS = (",", ";", "\t", "|")
_SHOWN = 5  # lines of the wrong length that a message names
_PIECE = 1 << 22  # characters that are parsed at a time
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
        problems: what is wrong with header and rows; the columns were mended so that others can be looked for.
        short: columns whose last cells are missing in short rows, with the problem.
    """

    columns: dict[str, Any]
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    short: dict[str, Problem] = field(default_factory=dict)

    def problems_of(self, used: Iterable[str | None]) -> list[Problem]:
        """Return the problems of the file, those of single columns only where these are used."""
        of_used = set(used)
        cut = [one for name, one in self.short.items() if name in of_used]
        return [*self.problems, *(one for at, one in enumerate(cut) if one not in cut[:at])]


def read_text(
    file: Path,
    reading: Reading,
    *,
    as_text: bool,
    ids: str | None,
    texts: Collection[str],
    numbers: Collection[str] | None,
    is_feature: Callable[[str], bool] | None = None,
) -> TableFile:
    """Read a text table; the arguments are those of `ltr.data.table_files.read_file`."""
    import pandas as pd

    encoding = _encoding(file)
    notes: tuple[str, ...] = (
        () if encoding == "utf-8-sig" else (f"read as {_ENCODINGS[encoding]}, for it is not UTF-8",)
    )
    problems: list[Problem] = []
    with file.open(encoding=encoding, newline="") as stream:
        above, separator, header = _head(stream, file, reading.separator)
        names, begin = _names(header, problems), stream.tell()
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
            cells = _cells(stream, options, is_feature)
        except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
            wrong: list[Problem] = []
            if "EOF inside string" not in str(error):
                mended, wrong = _mended(file, encoding, separator, len(names), above)
            if not wrong:
                raise DataError(f"{file}: not a table separated by {separator!r}: {str(error).strip()}") from None
            problems += wrong
            cells = _cells(mended, options, is_feature)
    if not as_text and ids in names:
        number, different = pd.factorize(cells[ids].replace("", None))  # an id is stored once for all of its rows
        cells[ids] = pd.Series(np.array([*different, None], dtype=object)[number], dtype=object)
    row_numbers = _row_numbers(cells, names)
    if "" in names and not row_numbers:
        problems.append(_unnamed(1))
    columns = {name: cells[name] for name in names if name or as_text}
    if separator == "," and guessed:
        columns = {
            name: column if name == ids or name in texts else _printed(column) for name, column in columns.items()
        }
    notes += ("the first column, without a name, holds row numbers: left out",) if row_numbers else ()
    short = _short(file, encoding, separator, names, above) if not as_text and cells[names[-1]].isna().any() else {}
    return TableFile(columns, notes, tuple(problems), short)


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


def _cells(stream: TextIO, options: Mapping[str, Any], is_feature: Callable[[str], bool] | None) -> dict[str, Any]:
    """Return the columns of the rows that follow.

    Many rows are parsed piece by piece, because pandas takes several times the memory of their cells; features that are
    numbers are then the columns of one matrix of float64.
    """
    import pandas as pd

    begin, texts = stream.tell(), {*options["dtype"], *options.get("converters", ())}
    matrix = np.empty((0, 0))
    features: list[str] = []
    kept: list[pd.DataFrame] = []
    for piece in _pieces(stream):
        try:
            frame = parse_csv(io.BytesIO(piece.encode()), options)
        except (pd.errors.ParserWarning, pd.errors.ParserError):
            break  # for the message that the whole file gives
        numbers = [name for name in frame if name not in texts]
        if not kept:
            features = [name for name in numbers if name and (is_feature is None or is_feature(name))]
            features = [name for name in features if _exact(frame[name])]
            if len(piece) < _PIECE:
                break
            matrix = np.empty((0, len(features)))
        if any(frame[name].dtype.kind not in "if" for name in numbers) or not all(_exact(frame[f]) for f in features):
            break  # what is no number further down makes texts of the cells above
        matrix.resize((len(matrix) + len(frame), len(features)), refcheck=False)
        matrix[-len(frame) :] = frame[features].to_numpy(dtype=np.float64)
        kept.append(frame.drop(columns=features))
    else:
        if kept:
            apart = pd.concat(kept, ignore_index=True)
            place = {name: at for at, name in enumerate(features)}
            return {
                name: pd.Series(matrix[:, place[name]], copy=False) if name in place else apart[name]
                for name in options["names"]
            }
    stream.seek(begin)
    return dict(parse_csv(stream, options))


def _pieces(stream: TextIO) -> Iterator[str]:
    """Yield the rest of a stream in pieces of whole rows."""
    while text := stream.read(_PIECE):
        lines = [text, stream.readline()]
        odd = sum(line.count('"') for line in lines) % 2  # a quoted field goes on in the next line
        while odd and (more := stream.readline()):
            lines.append(more)
            odd = (odd + more.count('"')) % 2
        if not (piece := "".join(lines)).isspace():
            yield piece


def _exact(column: pd.Series[Any]) -> bool:
    """Return whether a column of numbers stays the same as float64."""
    return column.dtype.kind == "f" or (column.dtype.kind == "i" and bool(column.abs().max() <= 2**53))


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


def _names(fields: Sequence[str], problems: list[Problem]) -> list[str]:
    """Return different names for the columns; a header that gives one twice, or none, is added to the problems."""
    names: list[str] = []
    seen: dict[str, int] = {}
    for at, name in enumerate(fields, start=1):
        if name and (first := seen.get(name)) is not None:
            rule = f"column names must differ, got {name!r} for columns {first} and {at}"
            problems.append(Problem(rule, (Remedy("rename one of them in the first line"),)))
            name = f"{name} (column {at})"
        elif not name and at > 1:
            problems.append(_unnamed(at))
            name = f"column {at}"
        names.append(name)
        seen.setdefault(name, at)
    return names


def _unnamed(at: int) -> Problem:
    return Problem(f"every column needs a name, got '' for column {at}", (Remedy("name it in the first line"),))


def _row_numbers(columns: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Return whether the first column has no name and numbers the rows from 0 or 1, as pandas writes its index."""
    if names[0] != "" or len(names) == 1:
        return False
    cells = list(map(str, columns[""].tolist()))
    return any(cells == list(map(str, range(first, first + len(cells)))) for first in (0, 1))


def _rows(stream: TextIO, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line below the header, and its fields; lines without text are left out."""
    reader = _reader(stream, separator)
    while True:
        line = reader.line_num + 1
        fields = next(reader, None)
        if fields is None:
            return
        if any(text.strip() for text in fields) or len(fields) > 1:
            yield line, fields


def _mended(file: Path, encoding: str, separator: str, wide: int, above: int) -> tuple[TextIO, list[Problem]]:
    """Return the rows of a file as CSV, and a problem that names those that are too long.

    The row before stands in for such a row, so that nothing else is found wrong with it.
    """
    mended = io.StringIO()
    writer = csv.writer(mended, delimiter=separator, lineterminator="\n")
    wrong: list[tuple[int, int]] = []
    before: list[str] = []
    with file.open(encoding=encoding, newline="") as stream:
        _header(stream)
        for line, fields in _rows(stream, separator):
            if any(text.strip() for text in fields[wide:]):
                wrong.append((line + above, len(fields)))
                fields = before or fields  # its cells stand in wrong columns
            before = fields
            writer.writerow(fields[:wide])
    mended.seek(0)
    return mended, [_lengths(wrong, wide)] if wrong else []


def _lengths(wrong: Sequence[tuple[int, int]], wide: int) -> Problem:
    shown = ", ".join(f"line {line} has {fields} fields" for line, fields in wrong[:_SHOWN])
    more = f" (and {len(wrong) - _SHOWN} more lines)" if len(wrong) > _SHOWN else ""
    advice = Remedy("mend these lines: a field with a separator in it needs quotes around it")
    return Problem(f"{shown}{more}, the header {wide}", (advice,))


def _short(file: Path, encoding: str, separator: str, names: Sequence[str], above: int) -> dict[str, Problem]:
    """Return the columns that rows with too few fields lack, with the problem that names these rows."""
    wrong = []
    with file.open(encoding=encoding, newline="") as stream:
        _header(stream)
        wrong = [(line + above, len(fields)) for line, fields in _rows(stream, separator) if len(fields) < len(names)]
    if not wrong:
        return {}
    problem = _lengths(wrong, len(names))
    return dict.fromkeys(names[min(fields for _, fields in wrong) :], problem)
