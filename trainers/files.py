"""Files written whole or not at all, and read with an error that names the damaged one."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Json", "RunError", "read_json", "reading", "to_json", "write_atomic", "write_json"]

Json = dict[str, Any]

# what readers of JSON, NumPy and torch files raise on content that is not theirs, and what lookups in it raise
_DAMAGE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, RuntimeError,
    pickle.UnpicklingError, zipfile.BadZipFile,
)  # fmt: skip

_ADVICE = "`ltr run CONFIG --fresh` starts the run over"


class RunError(ValueError):
    """A run folder that cannot be used as asked, with what to do about it."""


@contextlib.contextmanager
def reading(path: Path, advice: str = _ADVICE) -> Iterator[None]:
    """A context in which a file of a run is read and taken apart.

    Args:
        path: of the file.
        advice: what to do about a damaged one.

    Raises:
        RunError: whatever damage the body met, with the name of the file.
    """
    try:
        yield
    except RunError:
        raise
    except FileNotFoundError:
        raise RunError(f"{path}: is missing; {advice}") from None
    except _DAMAGE as error:
        raise RunError(f"{path}: cannot be read or is damaged ({type(error).__name__}); {advice}") from error


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that at any moment either the old or the new one is there, whole."""
    # a name of its own: processes of several machines may write the same file
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically; numbers that are not finite become null."""
    write_atomic(path, (json.dumps(to_json(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path, advice: str = _ADVICE) -> Json | None:
    """The object in a JSON file, None when there is no such file.

    Args:
        path: of the file.
        advice: what to do about a damaged one.

    Raises:
        RunError: a file that holds no JSON object.
    """
    if not path.exists():
        return None
    with reading(path, advice):
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, dict):
            raise TypeError(f"a JSON object is needed, got {type(value).__name__}")
    return value


def to_json(value: Any) -> Any:  # noqa: ANN401  (any JSON)
    """The value as plain JSON types: arrays as lists, numbers that are not finite as None.

    Examples:
        >>> to_json({"gap": float("inf"), "weights": np.array([0.5])})
        {'gap': None, 'weights': [0.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): to_json(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
