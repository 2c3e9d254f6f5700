"""Files: written whole or not at all, and JSON as people read it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["WRITER", "json_text", "replacing", "write_atomic"]

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
