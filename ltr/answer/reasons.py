"""Reasons for the place of a row, in the table's own words: which of its cells put it where it is.

A cell's effect is by how much the score falls where the cell is replaced by the *typical* one of its column: the median
of the labelled rows, their most frequent text, or an empty cell where most are empty. Everything that is made of the
column moves with it. Effects are those of one cell at a time; where two columns say the same, each alone may do little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.columns import Column
from ltr.data.kinds import Encoding
from ltr.display.pictures import shortened

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MOST = 3  # reasons of a row
_LETTERS = 32  # of a cell
_BATCH = 20_000  # rows that are scored at a time


@dataclass(frozen=True)
class Typical:
    """The typical cell of a column, and the features that are made of it, of which the first has the number `first`."""

    column: str
    text: str
    first: int
    features: tuple[float, ...]


@dataclass(frozen=True)
class Reason:
    """A cell that puts a row where it is, such as ``visits_last_month = 9 (typically 2)``."""

    column: str
    value: str
    typical: str

    def __str__(self) -> str:
        empty = "is empty" if self.value == _EMPTY else f"= {self.value}"
        return f"{self.column} {empty} (typically {self.typical})"


_EMPTY = "empty"


def typical_cells(columns: Mapping[str, Column], encodings: Sequence[Encoding]) -> tuple[Typical, ...]:
    """Return the typical cell of each column of the labelled rows, given how these become features."""
    found, at = [], 0
    for one in encodings:
        column = one.read(columns[one.column])
        cell = column.take(np.array([column.typical_row()]))
        found.append(Typical(one.column, cell_text(cell, 0), at, tuple(one.features(cell)[0].tolist())))
        at += len(one.names)
    return tuple(found)


def cell_text(column: Column, row: int) -> str:
    """Return a cell as it stands in the table, in one short line: ``"0.3"``; ``"empty"`` where it is missing."""
    text: str = column.texts[row]
    if column.missing[row] or not text:
        return _EMPTY
    if len(text) > 12:
        try:
            text = f"{float(text):.6g}"
        except ValueError:
            text = text.removesuffix(" 00:00:00")
    return shortened(" ".join(text.split()), _LETTERS).replace("…", "...")


def effects(features: FloatArray, typical: Sequence[Typical], scores_of: Callable[[FloatArray], Any]) -> FloatArray:
    """Return by how much the score of each row falls where the cell of each column is the typical one, (n, columns)."""
    found = np.zeros((len(features), len(typical)))
    own = np.asarray(scores_of(features)) if found.size else found
    waiting: list[tuple[int, IntArray, FloatArray]] = []
    for at, cell in enumerate(typical):
        held = slice(cell.first, cell.first + len(cell.features))
        rows = np.flatnonzero((features[:, held] != np.array(cell.features)).any(axis=1))
        changed = features[rows].copy()
        changed[:, held] = cell.features
        waiting.append((at, rows, changed))
        many = sum(len(some) for *_, some in waiting)
        if many > _BATCH or (many and at == len(typical) - 1):
            scores = np.asarray(scores_of(np.concatenate([some for *_, some in waiting])))
            for column, own_rows, some in waiting:
                found[own_rows, column] = own[own_rows] - scores[: len(some)]
                scores = scores[len(some) :]
            waiting.clear()
    return found


def reasons_of(
    effect: FloatArray, typical: Sequence[Typical], columns: Mapping[str, Column], row: int
) -> tuple[Reason, ...]:
    """Return the reasons of a row, the one with the largest effect first; none for cells that lower its score."""
    least = 1e-9 * max(1.0, float(np.abs(effect).max(initial=0.0)))
    order = np.argsort(-effect, kind="stable")[:_MOST]
    return tuple(
        Reason(typical[at].column, cell_text(columns[typical[at].column], row), typical[at].text)
        for at in order
        if effect[at] > least
    )
