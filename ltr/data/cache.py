r"""Parsed files kept on disk, so that a large text file is parsed once.

The arrays of a file are kept under the SHA-256 of its content and a version of the parser, so an entry is never stale.
Entries are in the directory `LTR_CACHE` (an environment variable), or in ``~/.cache/ltr`` (``~/Library/Caches/ltr`` on
macOS, ``%LOCALAPPDATA%\ltr`` on Windows), and may be deleted at any time. Where the directory cannot be written, files
are parsed each time.

Several users may share a directory. Each user has separate entries. An entry is used only if it belongs to the user who
reads it, nobody else may write it, and its content has the SHA-256 that was stored with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_CACHED_FROM = 1_000_000  # bytes of a source from which parsing takes a noticeable time


def cache_folder() -> Path:
    """Return the directory of the entries, which need not exist."""
    if given := os.environ.get("LTR_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ltr"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ltr"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ltr"


def cached(source: Path, parser: str, parse: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that `parse` makes of a file, from the cache if they are there; small files are always parsed.

    Args:
        source: the file.
        parser: name and version of the parser, part of the entry's name.
        parse: parser of the file, called if there is no entry; its arrays contain no Python objects.
    """
    if source.stat().st_size < _CACHED_FROM:
        return parse()
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    try:
        entry = cache_folder() / f"{digest}-{parser}{f'-{os.getuid()}' if _OWNERS else ''}.npz"
    except RuntimeError:  # a user without a home
        return parse()
    # where anything is wrong with an entry, the source is parsed
    with contextlib.suppress(Exception):
        return _read(entry, digest)
    arrays = parse()
    with contextlib.suppress(OSError):
        _write(entry, arrays, digest)
    return arrays


_OWNERS = hasattr(os, "getuid")
_NOTED = "sha256"
_ABANDONED = 24 * 3600.0  # seconds after which an unfinished entry is taken to be abandoned


def _read(entry: Path, source: str) -> Arrays:
    """Return the arrays of an entry; raise an exception for one that is damaged or that others may write."""
    with entry.open("rb") as file:
        status = os.fstat(file.fileno())
        if _OWNERS and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
            raise PermissionError(f"{entry}: belongs to another user, or others may write it")
        with np.load(file) as kept:
            arrays = {name: kept[name] for name in kept.files}
    if str(arrays.pop(_NOTED)) != _digest(arrays, source):
        raise ValueError(f"{entry}: not what was written")
    return arrays


def _write(entry: Path, arrays: Arrays, source: str) -> None:
    """Write an entry whole or not at all, even if others write it too; remove what killed processes left behind."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    for left in entry.parent.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                left.unlink()
    temporary = entry.with_name(f".{entry.stem}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            noted = {**arrays, _NOTED: np.array(_digest(arrays, source))}
            np.savez(file, **noted)  # type: ignore[arg-type]  # numpy's stub takes them for allow_pickle
        temporary.chmod(0o644)
        temporary.replace(entry)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(arrays: Arrays, source: str) -> str:
    """Return one hash of the arrays and of what they were parsed from."""
    digest = hashlib.sha256(source.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
