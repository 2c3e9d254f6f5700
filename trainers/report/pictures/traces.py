"""Gap, incumbent and bound over time: the step functions that the traces of the exact stage hold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ltr.exact.solution import relative_gap
from trainers.files import Json
from trainers.report.series import FloatArray, Series, proven

__all__ = ["FIRST", "last_second", "median_gap", "step_values", "steps_of", "traced"]


FIRST = 1e-3
"""Seconds at which logarithmic axes begin: the resolution of traces. What happened before is drawn there."""


def traced(series: Series) -> list[Json]:
    """The records that have a trace; there is none where there was nothing to rerank."""
    return [series.records[split] for split in series.splits if series.records[split]["trace"]]


def last_second(records: Sequence[Json]) -> float:
    """When the last of the records' traces ends, at least a hundredth of a second."""
    return max(0.01, *(record["trace"][-1][0] for record in records))


def median_gap(records: Sequence[Json]) -> tuple[FloatArray, FloatArray]:
    """The median over records of the relative gap, a step function: seconds at which it may change, and its values.

    Each trace holds its last gap from its end on, and an infinite one before it begins. A proof is a gap of 0.

    Args:
        records: of exact cells, each with a trace.
    """
    gaps = [_gaps(record) for record in records]
    times = np.unique(np.concatenate([seconds for seconds, _ in gaps]))
    values = np.stack([step_values(seconds, gap, times) for seconds, gap in gaps])
    return times, _median(values)


def steps_of(record: Json) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Seconds, each once, with the incumbent and the bound from there on."""
    points = {max(point[0], FIRST): (point[1], point[2]) for point in record["trace"]}
    incumbent, bound = np.array(list(points.values())).T
    return np.array(list(points)), incumbent, bound


def _gaps(record: Json) -> tuple[FloatArray, FloatArray]:
    seconds, incumbent, bound = steps_of(record)
    gap = np.array([relative_gap(*pair) for pair in zip(incumbent, bound, strict=True)])
    if proven(record):
        gap[-1] = 0.0
    return seconds, gap


def step_values(at: FloatArray, values: FloatArray, times: FloatArray, before: float = math.inf) -> FloatArray:
    """A step function that takes each value from its time on.

    Args:
        at: times of the steps, ascending; the last of equal ones counts.
        values: from there on.
        times: at which to evaluate.
        before: the value before the first step.

    Examples:
        >>> step_values(np.array([1.0, 1.0, 3.0]), np.array([9.0, 8.0, 7.0]), np.array([0.5, 1.0, 2.0, 4.0])).tolist()
        [inf, 8.0, 8.0, 7.0]
    """
    return np.concatenate([[before], values])[np.searchsorted(at, times, side="right")]


def _median(values: FloatArray) -> FloatArray:
    """Of each column; infinite where half of it is."""
    rows = np.sort(values, axis=0)
    middle = len(rows) // 2
    return rows[middle] if len(rows) % 2 else (rows[middle - 1] + rows[middle]) / 2
