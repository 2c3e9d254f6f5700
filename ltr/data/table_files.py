"""Files of tables of all types, and the files of query sizes beside them.

Cells of text tables stay texts, since only the column can tell what they mean; where they are numbers in one way only,
they are read as numbers, which is faster.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ltr.checks import pieces
from ltr.data.columns import Column
from ltr.data.dataset import DataError, checked_names, checked_queries
from ltr.data.forms import have_three_decimals, is_settled
from ltr.data.problems import TableError, unknown
from ltr.files import PARQUET, SizeError, check_size, missing_file, parquet_files

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.int64]
TablePath = str | os.PathLike[str]
"""A table file, or a folder of parquet files whose rows follow each other."""

FRAME = "(data frame)"
"""Stands for the path of a table that is in memory."""
BINARY_SUFFIXES = (*PARQUET, ".xlsx")
TEXT_SUFFIXES = {".csv": None, ".txt": None, ".dat": None, ".tsv": "\t", ".tab": "\t"}
"""Suffixes of text tables, with the separator where the suffix says it."""
_SEPARATORS = (",", ";", "\t", "|")
_SHOWN = 5  # lines of the wrong length that a message names
_SAMPLE = 1000  # rows that tell which columns are numbers in one way only


@dataclass(frozen=True)
class Reading:
    """How a table file is to be read, where that is not found out."""

    decimal: str | None = None  # mark, "." or ",", of numbers that could be read with both
    missing: tuple[str, ...] = ()  # further texts that stand for missing values, such as "?"


@dataclass(frozen=True, eq=False)
class GivenTable:
    """A table as it was given, in a file or in memory."""

    where: str  # path of the file, or `FRAME`
    columns: dict[str, Column]  # by name, in the order of the table
    notes: tuple[str, ...] = ()  # what was found out about the file, such as its encoding
    frame: pd.DataFrame | None = None  # the table in memory

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def own(self) -> pd.DataFrame:
        """Return all columns unchanged; those of a text file are its fields, which are read again."""
        import pandas as pd

        if self.frame is not None:
            return self.frame
        return pd.DataFrame(read_texts(self.where) or {name: one.cells for name, one in self.columns.items()})

    def queries(self, query: str | None) -> NDArray[Any] | None:
        """Return the ids in the query column, or without one those of a file of sizes beside the table, if any."""
        if query is None:
            return None if self.frame is not None else queries_beside(self.where, len(self))
        if query not in self.columns:
            raise TableError(self.where, [unknown("query column", query, self.columns)])
        ids = np.asarray(self.columns[query].cells)
        checked_queries(ids, len(ids), f"{self.where}: column {query!r}")
        return ids


def open_table(
    source: TablePath | pd.DataFrame,
    reading: Reading | None = None,
    *,
    ids: str | None = None,
    texts: Collection[str] = (),
    numbers: Collection[str] | None = None,
    is_feature: Callable[[str], bool] | None = None,
) -> GivenTable:
    """Read a table from a file or a folder of parquet files, or take a pandas frame as it is.

    Args:
        source: the file, the folder, or the frame, to which no other argument applies.
        reading: how to read a file.
        ids: a column of ids, whose fields stay as they are.
        texts: columns whose fields stay texts, even where all are numbers.
        numbers: the columns of a text file whose fields are numbers with a decimal point; all others stay texts. By
            default those of which the file leaves no doubt.
        is_feature: whether a column of a parquet file becomes a feature; any may by default. Where all features are
            floating point numbers, `ltr.data.columns.matrix_of` then has nothing to copy.

    Raises:
        DataError: a missing, empty or unreadable file, a column name twice, or rows of the wrong length.
    """
    if not isinstance(source, str | os.PathLike):
        return GivenTable(FRAME, {str(name): Column(str(name), source[name]) for name in source}, frame=source)
    reading = reading or Reading()
    files, notes = files_of(source), list[str]()
    suffix = files[0].suffix.lower()
    if suffix in TEXT_SUFFIXES:
        cells, notes = _read_text(files[0], reading, ids, texts, numbers)
    elif suffix in PARQUET:
        cells = _read_parquet(files, is_feature)
        sys.modules["pyarrow"].default_memory_pool().release_unused()  # in which it decoded pages
    elif suffix == ".xlsx":
        cells = _read_excel(files[0])
    else:
        raise DataError(
            f"{source}: unknown file type {suffix!r}; known are {' '.join((*TEXT_SUFFIXES, *BINARY_SUFFIXES))}; "
            "save the table as one of these"
        )
    columns = {name: Column(name, values, decimal=reading.decimal) for name, values in cells.items()}
    if reading.missing and suffix not in TEXT_SUFFIXES:
        columns = {name: column.without(reading.missing) for name, column in columns.items()}
    if not columns or any(len(column) == 0 for column in columns.values()):
        raise DataError(f"{source}: the table has no rows")
    return GivenTable(str(source), columns, tuple(notes))


def files_of(path: TablePath) -> list[Path]:
    """Return the files of a table: one, or the parquet files of a folder by name; DataError for a missing one."""
    files = parquet_files(path) if Path(path).is_dir() else [Path(path)]
    if not files:
        raise DataError(f"{path}: is not a file, nor a folder of parquet files, whose names end in .parquet or .pq")
    for file in files:
        if not file.is_file():
            raise DataError(f"{file}: {missing_file(file)}")
        if file.stat().st_size == 0:
            raise DataError(f"{file}: the file is empty")
    return files


def read_columns(path: str | os.PathLike[str]) -> dict[str, Any]:
    r"""Return the columns of a table by name, pandas Series or NumPy arrays, with texts and missing values.

    Texts that are numbers in one way only are numbers.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "machines.csv")
        ...     _ = path.write_text("kind,hours\nsaw,1.5\n,NA\n")
        ...     {name: column.tolist() for name, column in read_columns(path).items()}
        {'kind': ['saw', nan], 'hours': [1.5, nan]}
    """
    return {name: column.typed for name, column in open_table(path).columns.items()}


def read_texts(path: str | os.PathLike[str]) -> dict[str, pd.Series[str]]:
    """Return the fields of a text table by column, unchanged, empty ones as ``""``; no columns for another file."""
    if Path(path).suffix.lower() not in TEXT_SUFFIXES:
        return {}
    text = _TextFile.of(files_of(path)[0])
    return text.named(text.parse({"na_filter": False, "dtype": str}))


def is_number(text: str) -> bool:
    """Return whether a text reads as a number."""
    with contextlib.suppress(ValueError):
        float(text)
        return True
    return False


def queries_beside(path: str | os.PathLike[str], rows: int) -> IntArray | None:
    """Return the number of each row's query, (rows,), from the file of sizes beside a data file, None without one."""
    beside = Path(path).with_name(f"{Path(path).name}.query")
    if not beside.is_file():
        return None
    sizes = []
    for number, text in enumerate(map(bytes.strip, beside.read_bytes().splitlines()), start=1):
        if text and (not text.isdigit() or len(text) > 16 or not 0 < int(text) <= 2**53):
            shown = text[:40].decode("utf-8", errors="replace")
            raise DataError(f"{beside}: query sizes must be whole numbers above 0, got {shown!r} in line {number}")
        sizes += [int(text)] if text else []
    if sum(sizes) != rows:
        hint = "; give sizes, not one id per row" if len(sizes) == rows else ""
        raise DataError(f"{beside}: query sizes must add up to the {rows} rows of the data, got {sum(sizes)}{hint}")
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


# text


@dataclass(frozen=True)
class _TextFile:
    """A text table: how its bytes are text, what divides its fields, and what its first line says."""

    file: Path
    encoding: str
    above: int  # number of the header's last line
    separator: str
    header: list[str]  # names of the columns, of which the first may be empty

    @classmethod
    def of(cls, file: Path) -> _TextFile:
        encoding = _encoding(file)
        with file.open(encoding=encoding, newline="") as stream:
            above, line = _header(stream)
        if not line:
            raise DataError(f"{file}: the file is empty")
        separator = TEXT_SUFFIXES[file.suffix.lower()]
        separator = separator or max(_SEPARATORS, key=lambda mark: len(_fields(line, mark)))
        header = _fields(line, separator)
        checked_names([header[0] or "\0", *header[1:]], str(file))
        return cls(file, encoding, above, separator, header)

    def parse(self, options: Mapping[str, Any]) -> pd.DataFrame:
        """Return what pandas reads below the header with some options."""
        import pandas as pd

        common = {"sep": self.separator, "header": None, "names": self.header, "index_col": False}
        common |= {"skipinitialspace": True, "low_memory": False}
        with self.file.open(encoding=self.encoding, newline="") as stream:
            _header(stream)
            try:
                return parse_csv(stream, common | dict(options))
            except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
                if "EOF inside string" not in str(error):
                    self.check_lengths()
                rule = f"{self.file}: not a table separated by {self.separator!r}"
                raise DataError(f"{rule}: {str(error).strip()}") from None

    def named(self, cells: pd.DataFrame) -> dict[str, Any]:
        """Return columns by name; the first may lack one if it numbers the rows."""
        if "" in self.header and (len(self.header) == 1 or not _number_rows(cells[""])):
            raise DataError(f"{self.file}: every column needs a name, got '' for column 1")
        return dict(cells)

    def check_lengths(self) -> None:
        """Raise DataError, which names the first lines, if rows have too many or too few fields."""
        wrong, count = [], len(self.header)
        with self.file.open(encoding=self.encoding, newline="") as stream:
            _header(stream)
            reader, end = _reader(stream, self.separator), self.above
            for fields in reader:
                line, end = end + 1, self.above + reader.line_num
                blank = len(fields) < 2 and not any(field.strip() for field in fields)
                if not blank and (len(fields) < count or any(field.strip() for field in fields[count:])):
                    wrong.append(f"line {line} has {len(fields)} fields")
        if wrong:
            more = f" (and {len(wrong) - _SHOWN} more lines)" if len(wrong) > _SHOWN else ""
            advice = "correct these lines: a field with a separator in it needs quotes around it"
            raise DataError(f"{self.file}: {', '.join(wrong[:_SHOWN])}{more}, the header {count}; {advice}")


def _number_rows(cells: Iterable[Any]) -> bool:
    """Return whether cells number the rows from 0 or 1, as the index that pandas writes does."""
    texts = list(map(str, cells))
    return any(texts == list(map(str, range(first, first + len(texts)))) for first in (0, 1))


def _read_text(
    file: Path, reading: Reading, ids: str | None, texts: Collection[str], numbers: Collection[str] | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the columns of a text table, and notes on it; the arguments are those of `open_table`."""
    import pandas as pd

    text = _TextFile.of(file)
    notes = [] if text.encoding == "utf-8-sig" else [f"read as {_ENCODINGS[text.encoding]}, for it is not UTF-8"]
    options: dict[str, Any] = {"na_values": list(reading.missing)}
    sure = numbers
    if sure is None:  # columns whose first rows show numbers that can be read in one way only
        sample = text.parse({**options, "nrows": _SAMPLE, "dtype": str})
        sure = {name for name in sample if name not in texts and is_settled(sample[name].dropna().unique().tolist())}
    if ids in text.header:
        options["converters"] = {ids: str.strip}  # ids stay unchanged: 007 is not 7, NA is an id
    options["dtype"] = {name: str for name in text.header if name not in sure and name != ids}
    cells = text.named(text.parse(options))
    if cells[text.header[-1]].isna().any():
        text.check_lengths()
    if cells.pop("", None) is not None:
        notes.append("the first column, without a name, holds row numbers: left out")
    if ids in cells:
        number, different = pd.factorize(cells[ids].replace("", None))  # an id is stored once for all of its rows
        cells[ids] = pd.Series(np.array([*different, None], dtype=object)[number], dtype=object)
    if text.separator == "," and numbers is None:
        cells |= {name: _printed(cells[name]) for name in cells if name != ids and name not in texts}
    return cells, notes


def _printed(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of texts as numbers where all have three decimals, which are no thousands between commas."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype) or not have_three_decimals(column.head(9).dropna()):
        return column
    texts = column.dropna().unique()
    return pd.to_numeric(column) if len(texts) and have_three_decimals(texts) else column


def parse_csv(source: TextIO | io.BytesIO | Path, options: Mapping[str, Any]) -> pd.DataFrame:
    """Return what `pandas.read_csv` reads with some options, every number rounded once."""
    import pandas as pd

    with warnings.catch_warnings():
        # otherwise fields beyond the header would silently be dropped or taken as row labels
        warnings.simplefilter("error", pd.errors.ParserWarning)
        later = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)  # versions that round once by default
        return pd.read_csv(source, **({} if later else {"float_precision": "round_trip"}), **options)


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
        with contextlib.suppress(UnicodeDecodeError), file.open(encoding=encoding, newline="") as text:
            while text.read(1 << 20):
                pass
            return encoding
    return "latin-1"


def _header(stream: TextIO) -> tuple[int, str]:
    """Return the first line that is not blank, with the lines that its quotes take in, and the number of the last."""
    number = 0
    for line in iter(stream.readline, ""):
        number += 1
        if line.strip():
            while line.count('"') % 2 and (more := stream.readline()):
                line, number = line + more, number + 1
            return number, line
    return 0, ""


def _reader(lines: Iterable[str], separator: str) -> Any:  # noqa: ANN401 (csv's own)
    """Return a reader of fields of any length: csv alone takes no more than 128 kB, less than some headers have."""
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _fields(line: str, separator: str) -> list[str]:
    found = next(_reader(io.StringIO(line, newline=""), separator))
    return [" ".join(field.split()) if "\n" in field else field.strip() for field in found]


# parquet and workbooks


@contextlib.contextmanager
def _library(file: Path, tables: str, one: str, package: str, extra: str) -> Iterator[None]:
    """Return a context in which what a library raises becomes a DataError that names the file."""
    try:
        yield
    except DataError:
        raise
    except ImportError:
        raise DataError(f"{file}: reading {tables} needs {package}; install rankproof[{extra}]") from None
    except SizeError as error:
        raise DataError(f"{file}: {error}") from None
    except Exception as error:  # of any type: Arrow has its own, and openpyxl those that the damaged archive causes
        raise DataError(f"{file}: not a {one}: {str(error).strip() or type(error).__name__}") from None


_PARQUET = ("parquet", "parquet file", "pyarrow", "parquet")
_EXCEL = ("workbooks", "workbook", "openpyxl", "excel")


def _read_parquet(files: Sequence[Path], is_feature: Callable[[str], bool] | None) -> dict[str, Any]:
    """Return the columns of parquet files; floating point features are those of one matrix, read piece by piece."""
    with contextlib.ExitStack() as opened:
        opened.enter_context(_library(files[0], *_PARQUET))
        import pyarrow as pa
        import pyarrow.parquet

        sources: list[Any] = []
        for file in files:
            with _library(file, *_PARQUET):
                sources.append(opened.enter_context(pyarrow.parquet.ParquetFile(file)))
                if not sources[-1].schema_arrow.equals(sources[0].schema_arrow):
                    raise ValueError(f"its columns, or their types, are not those of {files[0]}")
        schema = sources[0].schema_arrow
        indices = {str(name) for name in (schema.pandas_metadata or {}).get("index_columns", [])}
        order = checked_names([name for name in schema.names if name not in indices], str(files[0]))
        types = {name: schema.field(name).type for name in order if is_feature is None or is_feature(name)}
        floats = [name for name, kind in types.items() if kind in (pa.float32(), pa.float64())]
        in_matrix = set(floats)
        others = [name for name in schema.names if name not in in_matrix]
        kind = np.float32 if all(types[name] == pa.float32() for name in floats) else np.float64
        groups = [(*one, group) for one in zip(files, sources, strict=True) for group in range(one[1].num_row_groups)]
        known = [source.metadata.row_group(group) for _, source, group in groups]
        total = sum(group.num_rows for group in known)
        check_size(float(total) * (np.dtype(kind).itemsize * len(floats) + 8 * len(others)))
        parts = (group.column(j) for group in known for j in range(group.num_columns))
        check_size(float(sum(part.total_uncompressed_size for part in parts if part.path_in_schema not in in_matrix)))
        matrix, begin = np.empty((total, len(floats)), dtype=kind), 0
        rest, size = [], 0
        for (file, source, group), rows in zip(groups, (one.num_rows for one in known), strict=True):
            with _library(file, *_PARQUET):
                for at in range(0, len(floats), _COLUMNS):  # pyarrow's batches of many columns keep what they read
                    some = floats[at : at + _COLUMNS]
                    found = source.read_row_group(group, columns=some)
                    values = [found.column(name).to_numpy() for name in some]
                    for piece in pieces(rows):
                        to = slice(begin + piece.start, begin + piece.stop)
                        matrix[to, at : at + len(some)] = np.array([column[piece] for column in values]).T
                begin += rows
                for batch in source.iter_batches(_BATCH, row_groups=[group], columns=others) if others else ():
                    rest.append(batch.select(others))
                    size += batch.nbytes  # a text is stored once for many rows
                    check_size(size)
        frame = pa.Table.from_batches(rest, pa.schema(map(schema.field, others), schema.metadata)).to_pandas()
    apart = {str(name): frame.iloc[:, j] for j, name in enumerate(frame.columns)}
    columns: dict[str, Any] = apart | dict(zip(floats, matrix.T, strict=True))
    return {name: columns[name] for name in order}


_BATCH = 8192  # rows of a parquet file that are read at a time
_COLUMNS = 16  # that are put into a matrix at a time, a line of a processor's cache


def _read_excel(file: Path) -> dict[str, Any]:
    import pandas as pd

    with _library(file, *_EXCEL):
        with zipfile.ZipFile(file) as archive:
            check_size(float(sum(part.file_size for part in archive.infolist())))
        sheet = pd.read_excel(file, header=None, dtype=object)
    sheet = sheet.dropna(how="all").dropna(how="all", axis=1)
    if len(sheet) == 0:
        raise DataError(f"{file}: the first sheet is empty")
    first = ["" if pd.isna(cell) else str(cell).strip() for cell in sheet.iloc[0]]
    begin = 1 if first[0] == "" and _number_rows(sheet.iloc[1:, 0]) else 0
    names = checked_names(first[begin:], str(file))
    return {name: sheet.iloc[1:, j].infer_objects() for j, name in enumerate(names, start=begin)}
