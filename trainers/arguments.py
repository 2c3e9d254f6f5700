"""Types of the arguments of commands: each checks a text before anything heavy is imported."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

from ltr.files import missing_file, parquet_files


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            rule = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"
            raise argparse.ArgumentTypeError(f"must be {rule}, got {text!r}")
        return int(text)

    return read


def file(text: str) -> Path:
    """Return the path of a file, or of a folder of parquet files, that is there."""
    if not Path(text).is_file() and not parquet_files(text):
        raise argparse.ArgumentTypeError(f"{text}: {missing_file(text)}")
    return Path(text)


def share(text: str) -> float:
    """Return a number of at least 0 and below 1."""
    value = _number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a number >= 0 and < 1, got {text!r}")
    return value


def seconds(text: str) -> float:
    """Return a number above 0."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number > 0, got {text!r}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def signed(text: str) -> str:
    """Return a column with its sign, written ``COLUMN=+``, as configs have it: ``+COLUMN``."""
    column, _, sign = text.rpartition("=")
    if not column or sign not in ("+", "-"):
        raise argparse.ArgumentTypeError(f"must be COLUMN=+ or COLUMN=-, got {text!r}")
    return sign + column


def shard(text: str) -> tuple[int, int]:
    """Return part i of N parts, written ``i/N``."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"must be i/N with 1 <= i <= N, got {text!r}")
    return int(number), int(count)
