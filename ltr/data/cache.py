r"""Parsed files kept on disk, so that a large text file is parsed once.

The arrays of a file are kept under the SHA-256 of its content and a version of the parser: another content, whatever
its name and time, is another entry, so nothing kept is ever stale. Entries stand in the directory `LTR_CACHE` (an
environment variable), or in ``~/.cache/ltr`` (``~/Library/Caches/ltr`` on macOS, ``%LOCALAPPDATA%\ltr`` on Windows),
and may be deleted at any time. A directory that cannot be written costs the speed alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["cache_folder", "cached"]

Arrays = dict[str, NDArray[Any]]

_WORTH = 1_000_000  # bytes of a source below which parsing is faster than it is noticed


def cache_folder() -> Path:
    """The directory of the entries; it need not exist."""
    if given := os.environ.get("LTR_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ltr"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ltr"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ltr"


def cached(source: Path, parser: str, parse: Callable[[], Arrays]) -> Arrays:
    """The arrays that `parse` makes of a file, from an entry where there is one; small files are parsed every time.

    Args:
        source: the file.
        parser: name and version of the parser: with another text there is another entry.
        parse: called where there is no entry; its arrays hold no Python objects.
    """
    if source.stat().st_size < _WORTH:
        return parse()
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    try:
        entry = cache_folder() / f"{digest}-{parser}.npz"
    except RuntimeError:  # a user without a home
        return parse()
    # whatever is wrong with an entry, the source is still there
    with contextlib.suppress(OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile), np.load(entry) as kept:
        return {name: kept[name] for name in kept.files}
    arrays = parse()
    with contextlib.suppress(OSError):
        _write(entry, arrays)
    return arrays


def _write(entry: Path, arrays: Arrays) -> None:
    """Write an entry whole or not at all, whoever else is writing it."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    temporary = entry.with_name(f".{entry.stem}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub takes them for allow_pickle
        temporary.replace(entry)
    finally:
        temporary.unlink(missing_ok=True)
