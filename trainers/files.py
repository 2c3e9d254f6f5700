"""Files: written whole or not at all, locked, and read with an error that names a damaged one; JSON and CSV."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import pickle
import re
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ltr.files import replacing as replacing
from ltr.files import write_atomic as write_atomic

if TYPE_CHECKING:
    import pandas as pd

Json = dict[str, Any]

# what readers of JSON, NumPy and torch files raise on content that is not theirs, and what lookups in it raise
_DAMAGE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, RuntimeError, OverflowError, MemoryError,
    pickle.UnpicklingError, zipfile.BadZipFile,
)  # fmt: skip

_ADVICE = "`ltr run CONFIG --fresh` starts the run over"


class RunError(ValueError):
    """A folder or option that cannot be used as asked, with advice on what to do."""


@contextlib.contextmanager
def reading(path: Path, advice: str = _ADVICE) -> Iterator[None]:
    """Return a context in which a file of a run is read and taken apart; a `RunError` says what is wrong with it."""
    try:
        yield
    except RunError:
        raise
    except FileNotFoundError:
        raise RunError(f"{path}: is missing; {advice}") from None
    except _DAMAGE as error:
        raise RunError(f"{path}: cannot be read or is damaged ({type(error).__name__}); {advice}") from error


@contextlib.contextmanager
def writing(path: Path, what: str = "") -> Iterator[None]:
    """Return a context in which files are written; a `RunError` has the path and, where the disk is full, advice."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "; what is finished is kept: make room and give the same command again" if full else ""
        text = f"{what}: cannot write {path}" if what else f"cannot write {path}"
        raise RunError(f"{text}: {error.strerror or error}{advice}") from None


_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")


def remove_leftovers(folder: Path, pattern: str = "**/.*.tmp", *, locked: bool = False) -> None:
    """Remove the unfinished files that writers left in a folder when they were killed.

    Unless the folder is `locked`, where no other process can be writing, only those that are a day old.
    """
    with contextlib.suppress(OSError):
        for path in folder.glob(pattern):
            if _LEFTOVER.fullmatch(path.name) and (locked or time.time() - path.stat().st_mtime > 24 * 3600):
                path.unlink(missing_ok=True)


LOCK = ".lock"
"""Name of the file that locks a folder."""


@contextlib.contextmanager
def locked(path: Path, name: str = LOCK) -> Iterator[None]:
    """Return a context in which no other process has this lock of a folder, where its file system has locks.

    The folder is made where there is none.
    """
    with writing(path, "runs_dir"):
        path.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    with writing(path, "runs_dir"):
        file = (path / name).open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"name: another process is writing {path}; wait for it or choose another name") from None
        except OSError:
            pass
        yield


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically; numbers that are not finite become null."""
    write_atomic(path, (json.dumps(to_json(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path, advice: str = _ADVICE) -> Json | None:
    """Read the object in a JSON file, None when there is no such file."""
    if not path.exists():
        return None
    with reading(path, advice):
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, dict):
            raise TypeError(f"a JSON object is needed, got {type(value).__name__}")
    return value


def to_json(value: Any) -> Any:  # noqa: ANN401  (any JSON)
    """Return a value as plain JSON types: arrays as lists, numbers that are not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): to_json(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def csv_text(
    ours: Mapping[str, Sequence[Any]], own: Mapping[str, Sequence[str] | pd.Series], order: Sequence[int]
) -> str:
    """Return rows as CSV, in an order of their numbers.

    First come columns of `ours`, all with ``ltr_`` before their name if the table's own ones have one of the names.
    """
    import pandas as pd

    prefix = "ltr_" if set(ours) & set(own) else ""
    columns = {f"{prefix}{name}": column for name, column in ours.items()} | dict(own)
    frame = pd.DataFrame({name: pd.Series(column).to_numpy() for name, column in columns.items()})
    return frame.iloc[list(order)].to_csv(index=False, lineterminator="\n")
