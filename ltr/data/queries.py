"""The file of query sizes that may stand beside a data file (LightGBM's convention).

Beside ``rank.train`` it is ``rank.train.query``: one whole number a line, how many of the next rows belong to the next
query. Queries found there are numbered 0, 1, ...
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltr.data.dataset import DataError

__all__ = ["queries_beside", "side_file"]

IntArray = NDArray[np.int64]


def side_file(path: str | os.PathLike[str]) -> Path | None:
    """The file of query sizes beside a data file, None where there is none."""
    beside = Path(path)
    beside = beside.with_name(f"{beside.name}.query")
    return beside if beside.is_file() else None


def queries_beside(path: str | os.PathLike[str], rows: int) -> IntArray | None:
    """Return the number of each row's query, (rows,), from the file of sizes beside a data file, None without one.

    Raises:
        DataError: a line that is no whole number above 0, sizes that do not add up to the number of rows.
    """
    beside = side_file(path)
    if beside is None:
        return None
    sizes = []
    for number, line in enumerate(beside.read_bytes().splitlines(), start=1):
        text = line.strip()
        if not text:
            continue
        if not text.isdigit() or not 0 < int(text) <= 2**53:
            shown = text[:40].decode("utf-8", errors="replace")
            raise DataError(f"{beside}: query sizes must be whole numbers above 0, got {shown!r} in line {number}")
        sizes.append(int(text))
    if sum(sizes) != rows:
        hint = "; one id a row will not do" if len(sizes) == rows else ""
        raise DataError(f"{beside}: query sizes must add up to the {rows} rows of the data, got {sum(sizes)}{hint}")
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
