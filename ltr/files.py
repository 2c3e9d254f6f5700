"""Files: written whole or not at all, missing ones, and JSON as people read it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ltr.checks import nearest

__all__ = ["WRITER", "json_text", "missing_file", "nearest_file", "replacing", "write_atomic"]

_INNERMOST, _BREAK = re.compile(r"[\[{][^\[\]{}]*[\]}]"), re.compile(r"\n\s*")
_EDGE = re.compile(r"(?<=[\[{])\n\s*|\n\s*(?=[\]}])")
_ONE_LIST = re.compile(r"\{\n\s*(\"[^\"\n]*\": \[[^\n]*\])\n\s*\}")

WRITER = "".join(c for c in platform.node() if c.isalnum())[:40] or "host"
"""Name of this machine in the names of unfinished files."""


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that at any moment either the old or the new one is there, whole.

    Links are followed. Devices and pipes are written to directly.

    Raises:
        OSError: the path cannot be written to, or the disk is full.
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
    temporary = path.with_name(f".{path.name}.{WRITER}-{os.getpid()}-{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def missing_file(path: str | os.PathLike[str]) -> str:
    """Return what an error says of a path that is no file, after the path."""
    return "is not a file" if os.path.exists(path) else f"no such file{nearest_file(path)}"  # noqa: PTH110


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


def json_text(value: Any) -> str:  # noqa: ANN401 (any JSON)
    """Return JSON with an entry on each line, and each innermost list or object, or object of one list, on one line.

    Raises:
        ValueError: a number that is not finite, which JSON does not have.

    Examples:
        >>> print(json_text({"name": "age", "cuts": [40, 60]}), end="")
        {
         "name": "age",
         "cuts": [40, 60]
        }
    """
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    # texts are safe: JSON escapes their line breaks
    text = _INNERMOST.sub(lambda found: _BREAK.sub(" ", _EDGE.sub("", found[0])), text)
    return _ONE_LIST.sub(r"{\1}", text) + "\n"
