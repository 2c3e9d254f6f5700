"""Files: written whole or not at all, missing ones, arrays of a limited size, and JSON as people read it."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
import stat
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import nearest

LARGEST = 4e9
"""Largest number of bytes that the content of a file of data may take."""

_INNERMOST, _BREAK = re.compile(r"[\[{][^\[\]{}]*[\]}]"), re.compile(r"\n\s*")
_EDGE = re.compile(r"(?<=[\[{])\n\s*|\n\s*(?=[\]}])")
_ONE_LIST = re.compile(r"\{\n\s*(\"[^\"\n]*\": \[[^\n]*\])\n\s*\}")


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that at any moment either the old or the new one is there, whole, or raise OSError.

    Links are followed. Devices and pipes are written to directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.write(data)
        return
    with replacing(path.resolve()) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a file to write, which then replaces another, and is removed where writing fails."""
    # a name of its own: processes of several machines may write the same file
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def missing_file(path: str | os.PathLike[str]) -> str:
    """Return what an error says of a path that is no file, after the path."""
    return "is not a file" if os.path.exists(path) else f"no such file{nearest_file(path)}"  # noqa: PTH110


def has_text(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is an ordinary file that is not empty: no folder, pipe, device, or file of /proc."""
    try:
        found = os.stat(path)  # noqa: PTH116 (names may be too long)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def parquet_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the parquet files of a folder by name, but for hidden ones and those that begin with ``_``; else none."""
    try:
        files = sorted(Path(path).iterdir())
    except (OSError, ValueError):
        return []
    return [file for file in files if file.suffix.lower() in PARQUET and file.name[0] not in "._"]


PARQUET = (".parquet", ".pq")


def nearest_file(path: str | os.PathLike[str]) -> str:
    """Return `` (did you mean 'patients.csv'?)`` where a file in the same folder is called nearly so, else no text."""
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            files = [entry.name for entry in itertools.islice(entries, _FILES) if entry.is_file()]
    except OSError:
        return ""
    return nearest(name, files)


_FILES = 1000  # files of a folder among which the nearest name is looked for


class SizeError(ValueError):
    """A file whose content would take more memory than `LARGEST`."""


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file by name, without running code from it.

    Raises ValueError, without the path, for another or a damaged file, or SizeError for one larger than `LARGEST`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            total = 0.0
            for member in archive.namelist():
                with archive.open(member) as file:
                    total += _bytes_of(file)
            check_size(total)
        with np.load(path, allow_pickle=False) as content:
            return {key: content[key] for key in content.files}
    except (SizeError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # of any type: zip, zlib, tokenize and NumPy each have their own
        raise ValueError(str(error).strip() or type(error).__name__) from error


def _bytes_of(file: IO[bytes]) -> float:
    """Return the size of an array in a file, with at least the eight bytes of a float64 for each number."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read(file)
    return float(math.prod(map(int, shape))) * max(8, kind.itemsize)


def check_size(size: float) -> None:
    """Raise SizeError for more bytes than `LARGEST`."""
    if size > LARGEST:
        limit = f"the limit is {LARGEST / 1e9:g} GB; split it, or take fewer of its columns"
        raise SizeError(f"its content would take {size / 1e9:.1f} GB, {limit}")


def json_text(value: Any) -> str:  # noqa: ANN401 (any JSON)
    """Return finite JSON with an entry on each line, and each innermost list or object, or one of one list, on one."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    # texts are safe: JSON escapes their line breaks
    text = _INNERMOST.sub(lambda found: _BREAK.sub(" ", _EDGE.sub("", found[0])), text)
    return _ONE_LIST.sub(r"{\1}", text) + "\n"
