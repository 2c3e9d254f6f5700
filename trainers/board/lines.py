"""The contents of a board: for each data set the methods to compare, with their curves and final values.

A method is shown on one split, or as the mean over several. Curves are then means of step functions: each split keeps a
value until its next one, and its last value after it has ended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trainers.config import EXACT
from trainers.files import Json
from trainers.records import nothing_proven, unpack_labels

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Points = Sequence[tuple[int, float]]
"""Steps, ascending, and values."""

PARTS = ("train", "test")
_MOST = 100  # positions of a precision curve


@dataclass(frozen=True, eq=False)
class Line:
    """One method on one data set: a TensorBoard run."""

    name: str  # name of the TensorBoard run
    parameters: Mapping[str, str | float]  # options that distinguish it from others
    records: Sequence[Json]  # one a split; none of a method that is not finished
    curves: Mapping[str, Points]  # ``loss``, ``train/dcg``, ... against the steps of the training
    trace: Mapping[str, Points]  # ``incumbent``, ``bound`` and ``gap`` of the exact stage against milliseconds

    @cached_property
    def final(self) -> dict[str, FloatArray]:
        """Values of the finished method, one a split, NaN where undefined, by tag.

        The tags are ``train/dcg``, ``test/dcg``, ..., ``loss``, ``seconds``; the exact stage also has ``value``,
        ``bound`` and ``gap``.
        """
        statistics = dict.fromkeys(known for record in self.records for known in record["test"])
        found = {f"{part}/{name}": [r[part].get(name) for r in self.records] for part in PARTS for name in statistics}
        if self.records:
            found |= {what: [record.get(what) for record in self.records] for what in ("loss", "seconds")}
        if self.records and self.records[0]["method"] == EXACT:
            lists = [record.get("list") or {} for record in self.records]
            found |= {what: [one.get(what) for one in lists] for what in ("value", "bound", "gap")}
        return {tag: np.array(values, dtype=np.float64) for tag, values in found.items()}

    @property
    def unproven(self) -> int:
        """Number of splits where the bound is that of a perfect order, above the value."""
        return sum(map(nothing_proven, self.records))

    @cached_property
    def ranked(self) -> dict[str, list[IntArray]]:
        """Labels 0 and 1 from the top of the list down, for each split, by ``train`` and ``test``."""
        packed = [record["ranked"] for record in self.records if record.get("ranked")]
        return {part: [unpack_labels(ranked[part]) for ranked in packed] for part in PARTS} if packed else {}

    def mean(self, tag: str) -> float | None:
        """Return the mean of a final value over the splits where it is defined, None where there is none."""
        known = self.known(tag)
        return float(known.mean()) if len(known) else None

    def known(self, tag: str) -> FloatArray:
        """Return a final value on the splits where it is defined."""
        values = self.final.get(tag, np.zeros(0))
        return values[np.isfinite(values)]

    @property
    def means(self) -> dict[str, float]:
        """Defined final values as means over splits."""
        return {tag: value for tag in self.final if (value := self.mean(tag)) is not None}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods on one data set."""

    name: str  # begins with that of the data set; TensorBoard's names of runs and tags begin with it
    data: str  # name of the data set
    title: str  # heading of the charts
    statistic: str  # statistic that the exact stage maximises, whose curves are drawn
    lines: Sequence[Line]  # the methods
    images: Mapping[str, FloatArray] = field(default_factory=dict)  # (height, width, channels) between 0 and 1

    @property
    def statistics(self) -> list[str]:
        """Names of the statistics, that of the charts first."""
        tags = dict.fromkeys(tag for line in self.lines for tag in (*line.final, *line.curves))
        found = dict.fromkeys(tag.partition("/")[2] for tag in tags if tag.startswith("test/"))
        return sorted(found, key=lambda name: name != self.statistic)

    @property
    def longest(self) -> int:
        """The last step of all trainings, 1 without any."""
        return max((points[-1][0] for line in self.lines for points in line.curves.values() if points), default=1)


def mean_curve(curves: Iterable[Points]) -> Points:
    """Return the mean of step functions, from where all have begun, at every step of one of them.

    Examples:
        >>> mean_curve([[(1, 0.0), (3, 2.0)], [(2, 4.0)]])
        [(2, 2.0), (3, 3.0)]
    """
    series = [pd.Series(dict(points)) for points in curves if points]
    if not series:
        return []
    frame = pd.concat(series, axis=1).sort_index().ffill().dropna()
    return list(zip(frame.index.tolist(), np.mean([frame[at] for at in frame], axis=0).tolist(), strict=True))


def stairs(points: Points) -> Points:
    """Return a step function for drawing with straight lines: each value is repeated one step before the next.

    Examples:
        >>> stairs([(1, 5.0), (4, 6.0), (5, 7.0)])
        [(1, 5.0), (3, 5.0), (4, 6.0), (5, 7.0)]
    """
    ends = [(b - 1, value) for (a, value), (b, after) in itertools.pairwise(points) if b - a > 1 and value != after]
    return sorted([*points, *ends])


def precision_curve(lists: Sequence[IntArray]) -> Points:
    """Return the share of positives among the first 1, 2, 3, ... of the list, as the mean over lists.

    Examples:
        >>> precision_curve([np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1])])
        [(1, 0.5), (2, 0.25), (3, 0.5), (4, 0.5)]
    """
    first = np.arange(1, min([_MOST, *(len(labels) for labels in lists)]) + 1)
    precision = np.mean([np.cumsum(labels[: len(first)]) / first for labels in lists], axis=0)
    return list(zip(first.tolist(), precision.tolist(), strict=True))


def rank_scores(lists: Sequence[IntArray]) -> tuple[IntArray, FloatArray]:
    """Join lists into labels and scores, where an item's score is 1 at the top of its list and 0 at the bottom.

    Examples:
        >>> rank_scores([np.array([1, 0, 1])])
        (array([1, 0, 1]), array([1. , 0.5, 0. ]))
    """
    none = np.zeros(0, dtype=np.int64)
    scores = [np.linspace(1.0, 0.0, len(labels)) for labels in (*lists, none)]
    return np.concatenate([*lists, none]), np.concatenate(scores)
