"""Files of tables of all types, and the files of query sizes beside them."""

from __future__ import annotations

import contextlib
import os
import sys
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import pieces
from ltr.data.columns import Column
from ltr.data.dataset import DataError, checked_names
from ltr.data.table_text import TEXT_SUFFIXES, Reading, TableFile, read_text, title_problem
from ltr.files import PARQUET, SizeError, check_size, missing_file, parquet_files

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.int64]
Columns = Mapping[str, Any]
"""Columns by name: each a pandas Series, or anything that NumPy can turn into a 1-D array."""

TablePath = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A table file, a folder of parquet files, or several parquet files whose rows follow each other."""

BINARY_SUFFIXES = (*PARQUET, ".xlsx")


def read_file(
    path: TablePath,
    reading: Reading | None = None,
    *,
    as_text: bool = False,
    ids: str | None = None,
    texts: Collection[str] = (),
    numbers: Collection[str] | None = None,
    is_feature: Callable[[str], bool] | None = None,
    rows: slice | None = None,
) -> TableFile:
    """Read a table file.

    Args:
        path: the file; a folder of parquet files, or several of them, are one table.
        reading: how to read it.
        as_text: return the fields of a text file unchanged.
        ids: a column of ids, whose fields stay as they are.
        texts: columns whose fields stay texts, even where all are numbers.
        numbers: the columns of a text file whose fields are numbers with a decimal point; all others stay texts. By
            default those of which the file leaves no doubt.
        is_feature: whether a column of a parquet file becomes a feature; any may by default. Where all features are
            floating point numbers, `ltr.data.columns.matrix_of` then has nothing to copy.
        rows: the rows of parquet files to read, perhaps none; all by default.

    Raises:
        DataError: a missing, empty or unreadable file, a column name twice, or rows of the wrong length.
    """
    reading = reading or Reading()
    files, separator = files_of(path), reading.separator
    file = files[0]
    suffix = file.suffix.lower()
    if separator is not None and (suffix not in TEXT_SUFFIXES or len(separator) != 1):
        raise DataError(f"separator must be one character, and is for text files only, got {separator!r} for {path}")
    if suffix in TEXT_SUFFIXES:
        found = read_text(file, reading, as_text=as_text, ids=ids, texts=texts, numbers=numbers)
    elif suffix in PARQUET:
        found = TableFile(_read_parquet(files, is_feature, rows))
        sys.modules["pyarrow"].default_memory_pool().release_unused()  # in which it decoded pages
    elif suffix == ".xlsx":
        found = TableFile(_read_excel(file))
    else:
        raise DataError(
            f"{path}: unknown file type {suffix!r}; known are {' '.join((*TEXT_SUFFIXES, *BINARY_SUFFIXES))}; "
            "save the table as one of these"
        )
    if reading.missing and suffix not in TEXT_SUFFIXES:
        found = replace(
            found, columns={name: _without(column, reading.missing) for name, column in found.columns.items()}
        )
    if (rows is None and any(len(column) == 0 for column in found.columns.values())) or not found.columns:
        raise DataError(f"{path}: the table has no rows")
    return found


def files_of(path: TablePath) -> list[Path]:
    """Return the files of a table: one, or the parquet files of a folder by name, or several as they are given.

    Raises:
        DataError: a missing or empty file, a folder without parquet files, or several files of another type.
    """
    several = not isinstance(path, str | os.PathLike)
    files = [Path(one) for one in path] if several else [Path(path)]  # type: ignore[union-attr,arg-type]
    if not several and files[0].is_dir():
        if not (files := parquet_files(files[0])):
            raise DataError(f"{path}: is not a file, nor a folder of parquet files, whose names end in .parquet or .pq")
    elif several and (not files or any(file.suffix.lower() not in PARQUET for file in files)):
        raise DataError(f"several files of a table must be parquet files, at least one, got {path!r:.200}")
    for file in files:
        if not file.is_file():
            raise DataError(f"{file}: {missing_file(file)}")
        if file.stat().st_size == 0:
            raise DataError(f"{file}: the file is empty")
    return files


def read_columns(path: str | os.PathLike[str], *, ids: str | None = None) -> dict[str, Any]:
    r"""Return the columns of a table by name, with texts and missing values, one cell for each row of the table.

    Args:
        path: the file.
        ids: a column of ids, whose fields stay as they are.

    Returns:
        The columns in the file's order: pandas Series or NumPy arrays. Texts that are numbers in one way only are
        numbers.

    Raises:
        DataError: a missing, empty or unreadable file, a column name twice, or rows of the wrong length.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "machines.csv")
        ...     _ = path.write_text("kind,hours\nsaw,1.5\n,NA\n")
        ...     {name: column.tolist() for name, column in read_columns(path).items()}
        {'kind': ['saw', nan], 'hours': [1.5, nan]}
    """
    file = read_file(path, ids=ids)
    return {name: column if name == ids else _typed(Column(name, column)) for name, column in file.columns.items()}


def _without(values: Any, missing: Collection[str]) -> Any:  # noqa: ANN401 (Series or array)
    """Return a column in which the cells with these texts are missing."""
    column = Column("", values)
    return column.cells.mask(np.isin(column.texts.astype(str), list(missing)))


def _typed(column: Column) -> Any:  # noqa: ANN401 (Series or array)
    """Return the cells of a column as numbers where all are, in one way only."""
    numbers = None if column.codes or column.dashes or column.missing.all() else column.numbers
    return column.cells if numbers is None else numbers


def read_texts(path: str | os.PathLike[str]) -> dict[str, pd.Series[str]]:
    r"""Return the fields of a text table by column, unchanged, one for each row of the table.

    Args:
        path: the file.

    Returns:
        The columns in the file's order, with empty fields as ``""``; no columns if the file is not a text table. Series
        take less memory than lists of so many texts.

    Raises:
        DataError: as for `read_table`.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "machines.csv")
        ...     _ = path.write_text("id,hours\n007,1.50\n \n008,\n")
        ...     {name: texts.tolist() for name, texts in read_texts(path).items()}
        {'id': ['007', '008'], 'hours': ['1.50', '']}
    """
    if Path(path).suffix.lower() not in TEXT_SUFFIXES:
        return {}
    return read_file(path, as_text=True).columns


def is_number(text: str) -> bool:
    """Return whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def side_file(path: TablePath) -> Path | None:
    """Return the file of query sizes beside a data file, or None."""
    if not isinstance(path, str | os.PathLike):
        return None
    beside = Path(path)
    beside = beside.with_name(f"{beside.name}.query")
    return beside if beside.is_file() else None


def queries_beside(path: TablePath, rows: int) -> IntArray | None:
    """Return the number of each row's query, (rows,), from the file of sizes beside a data file, None without one.

    Raises:
        DataError: a line that is not a whole number above 0, or sizes that do not add up to the number of rows.
    """
    beside = side_file(path)
    if beside is None:
        return None
    sizes = []
    for number, line in enumerate(beside.read_bytes().splitlines(), start=1):
        text = line.strip()
        if not text:
            continue
        if not text.isdigit() or len(text) > 16 or not 0 < int(text) <= 2**53:
            shown = text[:40].decode("utf-8", errors="replace")
            raise DataError(f"{beside}: query sizes must be whole numbers above 0, got {shown!r} in line {number}")
        sizes.append(int(text))
    if sum(sizes) != rows:
        hint = "; give sizes, not one id per row" if len(sizes) == rows else ""
        raise DataError(f"{beside}: query sizes must add up to the {rows} rows of the data, got {sum(sizes)}{hint}")
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


@contextlib.contextmanager
def _parquet(files: Sequence[Path]) -> Iterator[list[Any]]:
    """Return a context with the opened parquet files of a table, all of the same columns; its errors name the file."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{files[0]}: reading parquet needs pyarrow; install rankproof[parquet]") from None
    file = files[0]
    try:
        with contextlib.ExitStack() as opened:
            sources: list[Any] = []
            for file in files:
                sources.append(opened.enter_context(pyarrow.parquet.ParquetFile(file)))
                if not sources[-1].schema_arrow.equals(sources[0].schema_arrow):
                    raise ValueError(f"its columns, or their types, are not those of {files[0]}")
            yield sources
    except DataError:
        raise
    except SizeError as error:
        raise DataError(f"{file}: {error}") from None
    except Exception as error:  # of any type: Arrow has its own, and pandas' conversion has others
        raise DataError(f"{file}: not a parquet file: {str(error).strip() or type(error).__name__}") from None


def parquet_column(path: TablePath, column: str | None) -> tuple[int, NDArray[Any] | None]:
    """Return the number of rows of parquet files, and the cells of a column if they have it.

    Raises:
        DataError: files that are no parquet files or cannot be read.
    """
    files = files_of(path)
    if files[0].suffix.lower() not in PARQUET:
        raise DataError(f"{path}: a part of a table is read from parquet files alone; write the table as parquet")
    with _parquet(files) as sources:
        import pyarrow as pa

        found = None
        if column is not None and column in sources[0].schema_arrow.names:
            found = pa.concat_tables([source.read(columns=[column]) for source in sources])[column].to_numpy()
        return sum(source.metadata.num_rows for source in sources), found


def _read_parquet(
    files: Sequence[Path], is_feature: Callable[[str], bool] | None, wanted: slice | None = None
) -> dict[str, Any]:
    """Return the columns of parquet files with the same columns, whose rows follow each other, or some of the rows.

    Features that are floating point numbers are the columns of one matrix, of float32 where all of them are, into which
    the files are read piece by piece.
    """
    with _parquet(files) as sources:
        import pyarrow as pa

        schema = sources[0].schema_arrow
        indices = {str(name) for name in (schema.pandas_metadata or {}).get("index_columns", [])}
        order = checked_names([name for name in schema.names if name not in indices], str(files[0]))
        types = {name: schema.field(name).type for name in order if is_feature is None or is_feature(name)}
        floats = [name for name, kind in types.items() if kind in (pa.float32(), pa.float64())]
        others = [name for name in schema.names if name not in set(floats)]
        kind = np.float32 if all(types[name] == pa.float32() for name in floats) else np.float64
        total = sum(source.metadata.num_rows for source in sources)
        first, after = (0, total) if wanted is None else (wanted.start, wanted.stop)
        check_size(float(after - first) * (np.dtype(kind).itemsize * len(floats) + 8 * len(others)))
        stored = sum(_stored(source.metadata, set(floats)) for source in sources)
        check_size(stored * (after - first) / max(total, 1))
        matrix, begin = np.empty((after - first, len(floats)), dtype=kind), 0
        rest, size = [], 0
        for source in sources:
            for group in range(source.num_row_groups):  # pyarrow's batches of many columns keep what they read
                rows = source.metadata.row_group(group).num_rows
                own = slice(max(first - begin, 0), min(after - begin, rows))
                here, begin = begin + own.start - first, begin + rows
                if own.start >= own.stop:
                    continue
                for at in range(0, len(floats), _COLUMNS):
                    some = floats[at : at + _COLUMNS]
                    found = source.read_row_group(group, columns=some)
                    values = [found.column(name).to_numpy()[own] for name in some]
                    for piece in pieces(own.stop - own.start):
                        to = slice(here + piece.start, here + piece.stop)
                        matrix[to, at : at + len(some)] = np.array([column[piece] for column in values]).T
                before = 0
                for batch in source.iter_batches(_BATCH, row_groups=[group], columns=others) if others else ():
                    begins, ends = max(own.start - before, 0), min(own.stop - before, len(batch))
                    before += len(batch)
                    if begins < ends:
                        rest.append(batch.select(others).slice(begins, ends - begins))
                        size += rest[-1].nbytes  # a text is stored once for many rows
                        check_size(size)
        frame = pa.Table.from_batches(rest, pa.schema(map(schema.field, others), schema.metadata)).to_pandas()
    apart = {str(name): frame.iloc[:, j] for j, name in enumerate(frame.columns)}
    columns: dict[str, Any] = apart | dict(zip(floats, matrix.T, strict=True))
    return {name: columns[name] for name in order}


_BATCH = 8192  # rows of a parquet file that are read at a time
_COLUMNS = 16  # that are put into a matrix at a time, a line of a processor's cache


def _stored(known: Any, columns: Collection[str]) -> float:  # noqa: ANN401 (pyarrow's)
    """Return the bytes of a parquet file before its compression, without some columns."""
    groups = [known.row_group(at) for at in range(known.num_row_groups)]
    parts = [group.column(j) for group in groups for j in range(group.num_columns)]
    return float(sum(part.total_uncompressed_size for part in parts if part.path_in_schema not in columns))


def _read_excel(file: Path) -> dict[str, Any]:
    """Return the columns of the first sheet of a workbook."""
    import pandas as pd

    try:
        with zipfile.ZipFile(file) as archive:
            check_size(float(sum(part.file_size for part in archive.infolist())))
        sheet = pd.read_excel(file, header=None, dtype=object)
    except ImportError:
        raise DataError(f"{file}: reading workbooks needs openpyxl; install rankproof[excel]") from None
    except SizeError as error:
        raise DataError(f"{file}: {error}") from None
    except Exception as error:  # openpyxl raises whatever the damaged archive makes it raise
        raise DataError(f"{file}: not a workbook: {str(error).strip()}") from None
    sheet = sheet.dropna(how="all").dropna(how="all", axis=1)
    if len(sheet) == 0:
        raise DataError(f"{file}: the first sheet is empty")
    first = [["" if pd.isna(cell) else str(cell).strip() for cell in row] for row in sheet.head(3).to_numpy()]
    if problem := title_problem([list(filter(None, first[0])), *first[1:]]):
        raise DataError(f"{file}: {problem}")
    numbered = first[0][0] == "" and sheet.iloc[1:, 0].tolist() in (
        list(range(len(sheet) - 1)),
        list(range(1, len(sheet))),
    )
    sheet = sheet.iloc[:, 1:] if numbered else sheet  # the index that pandas writes
    names = checked_names(first[0][1:] if numbered else first[0], str(file))
    return {name: sheet.iloc[1:, j].infer_objects() for j, name in enumerate(names)}
