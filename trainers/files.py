"""Files written whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Json", "read_json", "to_json", "write_atomic", "write_json"]

Json = dict[str, Any]


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that at any moment either the old or the new one is there, whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
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


def read_json(path: Path) -> Json | None:
    """The object in a JSON file, None when there is no such file."""
    try:
        value: Json = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
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
