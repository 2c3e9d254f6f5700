"""Pictures of the exact stage's time: the gap over time by K, and incumbent and bound of single lists."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes

from trainers.config import EXACT
from trainers.files import Json
from trainers.records import nothing_proven
from trainers.report.evidence import Evidence
from trainers.report.page import Picture
from trainers.report.pictures.drawing import (
    INK,
    entry,
    gap_axis,
    legend,
    log_time,
    name_axes,
    panels,
    shades,
    ticks,
)
from trainers.report.pictures.lengths import by_length
from trainers.report.pictures.traces import FIRST, last_second, median_gap, steps_of, traced
from trainers.report.series import Series, in_order, settled
from trainers.report.sweep_tables import Along, Row, SweepTable
from trainers.report.wording import counted_range
from trainers.tables import NOTHING_PROVEN

__all__ = ["gap_pictures", "trace_pictures"]

_INCUMBENT, _BOUND, _START = "#0072b2", "#d55e00", "#6f7a85"
_LISTS = 4
"""Panels of a data set, as in the paper."""


def gap_pictures(evidence: Evidence) -> Iterator[Picture]:
    """The median gap against time, a line for each length of the list, where tables vary it."""
    for lines in by_length(evidence, evidence.groups):
        rows = {
            data: {value: records for value, series in row.items() if (records := traced(series))}
            for data, row in lines.rows.items()
        }
        if rows := {data: row for data, row in rows.items() if row}:
            yield _gap_picture(lines, rows)


Traced = dict[str, dict[object, list[Json]]]
"""By data set and K: the records with a trace."""


def _gap_picture(lines: Along, rows: Traced) -> Picture:
    last = last_second([record for row in rows.values() for records in row.values() for record in records])
    drawn = {data: {value: median_gap(records) for value, records in row.items()} for data, row in rows.items()}
    known = [100 * gaps[np.isfinite(gaps) & (gaps > 0)] for row in drawn.values() for _, gaps in row.values()]
    gaps = np.concatenate(known) if known else np.empty(0)
    low, high = (gaps.min(), gaps.max()) if len(gaps) else (1.0, 100.0)
    floor = 10.0 ** math.floor(math.log10(low)) / 2.5
    figure, grid = panels(list(rows), foot=1.0)
    labels: dict[str, list[str]] = {}
    count = max(len(row) for row in rows.values())
    for axes, row in zip(grid, drawn.values(), strict=True):
        for (value, (times, values)), colour in zip(row.items(), _shades_of(list(row), count), strict=True):
            finite = np.isfinite(values)
            heights = np.maximum(100 * values[finite], floor)
            xs = [*times[finite], max(last, times[-1])]
            axes.step(xs, [*heights, *heights[-1:]], where="post", color=colour, linewidth=1.6, label=str(value))
            names = labels.setdefault(colour, [])
            if str(value) not in names:
                names.append(str(value))
        axes.axhspan(floor / 1.6, floor * 1.25, color="#e3f1ea", linewidth=0, zorder=0)
        axes.set_yscale("log")
        axes.set_ylim(floor / 1.6, high * 1.4)
        gap_axis(axes.yaxis, floor, high)
        log_time(axes, FIRST, last)
    name_axes(figure, x="seconds", y="median gap")
    entries = [entry(f"K = {' or '.join(names)}", color=colour, linewidth=1.8) for colour, names in labels.items()]
    legend(figure, entries)
    splits = counted_range((len(records) for row in rows.values() for records in row.values()), "split")
    caption = (
        f"Relative gap between bound and incumbent against time by K{lines.holding}: the median over {splits} "
        "a line, both axes logarithmic. A line in the band at the bottom "
        "means that the median list is proven optimal; a list keeps its last gap from its end on."
    )
    return Picture(f"gap_over_time_{lines.name}", figure, caption)


def _shades_of(values: Sequence[object], count: int) -> list[str]:
    """The whole list has the darkest shade."""
    every = shades(count)
    return [every[-1] if isinstance(value, str) else every[at] for at, value in enumerate(values)]


def trace_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Incumbent and bound over time of the first splits of each data set, for one variant of the exact stage."""
    for data, series in _series_to_trace(evidence).items():
        if records := traced(series)[:_LISTS]:
            yield _trace_picture(evidence, data, records)


def _series_to_trace(evidence: Evidence) -> dict[str, Series]:
    """The table with one exact variant and the longest time limit, else the second shortest list of a table."""
    groups = [group for group in evidence.groups if group.exact]
    planned = _single_tables(evidence)
    single = [g for g in groups if g.name in planned and all(len(row) == 1 for row in g.exact.values())]
    if single:
        chosen = max(single, key=_time_limit)
        return {data: next(iter(row.values())) for data, row in chosen.exact.items()}
    return {data: _second(row) for data, row in groups[0].exact.items()} if groups else {}


def _single_tables(evidence: Evidence) -> set[str]:
    """Tables whose grids have one exact variant a data set, finished or not."""
    variants: dict[str, dict[str, set[str]]] = {}
    for grid in evidence.results.grids:
        for cell in grid["cells"]:
            if cell["method"] == EXACT:
                variants.setdefault(grid["name"], {}).setdefault(cell["data"], set()).add(str(cell["varied"]))
    return {name for name, rows in variants.items() if all(len(found) == 1 for found in rows.values())}


def _time_limit(group: SweepTable) -> float:
    every = (series for row in group.exact.values() for series in row.values())
    return max(record["options"]["time_limit"] for series in every for record in series.records.values())


def _second(row: Row) -> Series:
    every = sorted(row.values(), key=lambda series: in_order(series.option("top_k")))
    return every[min(1, len(every) - 1)]


def _trace_picture(evidence: Evidence, data: str, records: list[Json]) -> Picture:
    figure, grid = panels([_ending(record) for record in records], foot=0.8)
    last = last_second(records)
    for axes, record in zip(grid, records, strict=True):
        _draw_trace(axes, record)
        log_time(axes, FIRST, last)
        ticks(axes.yaxis, 5)
    name_axes(figure, x="seconds", y="objective")
    entries = [
        entry("bound", color=_BOUND, linewidth=1.8),
        entry("incumbent", color=_INCUMBENT, linewidth=1.8),
        entry("best linear first-stage ranker", color=_START, linewidth=1.2, linestyle="--"),
    ]
    legend(figure, entries)
    options = records[0]["options"]
    caption = (
        f"{data}: incumbent and bound of the exact stage against time (logarithmic), K = {options['top_k']}, "
        f"C = {options['C']:g}, at most {options['time_limit']:g} seconds a list; objective {evidence.statistic} on "
        "the reranked list, less C for each non-zero weight. A dot ends a run that proved its answer optimal."
    )
    return Picture(f"over_time_{data}", figure, caption)


def _draw_trace(axes: Axes, record: Json) -> None:
    seconds, incumbent, bound = steps_of(record)
    axes.fill_between(seconds, incumbent, bound, step="post", color="#eef1f4", linewidth=0)
    axes.step(seconds, bound, where="post", color=_BOUND, linewidth=1.7, label="bound")
    axes.step(seconds, incumbent, where="post", color=_INCUMBENT, linewidth=1.7, label="incumbent")
    if starts := (record["list"] or {}).get("starts"):
        axes.axhline(max(starts.values()), color=_START, linewidth=1.1, linestyle="--")
    if settled(record):
        axes.plot(seconds[-1:], incumbent[-1:], marker="o", markersize=6, color=INK, linestyle="")


def _ending(record: Json) -> str:
    """How a list ended."""
    gap = record["list"]["gap"]
    shown = NOTHING_PROVEN if nothing_proven(record) else f"gap {'infinite' if gap is None else f'{100 * gap:.2g}%'}"
    state = "proven" if settled(record) else shown
    return f"split {record['split']}: {state} after {_short(record['seconds'])}"


def _short(seconds: float) -> str:
    """Seconds with two digits, or more where they stand before the point.

    Examples:
        >>> _short(0.0671), _short(99.7), _short(600.04)
        ('0.067 s', '100 s', '600 s')
    """
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
