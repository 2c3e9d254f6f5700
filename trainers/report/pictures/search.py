"""Pictures of the search: the gap over time by K, and incumbent and bound of single lists."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ltr.display.figures import BOUND, INCUMBENT, draw_trace
from ltr.display.pictures import GREY, INK
from ltr.exact.solution import relative_gap
from trainers.files import Json
from trainers.records import nothing_proven
from trainers.report.evidence import Along, Evidence, FloatArray, Series, SweepTable, in_order, proven, settled
from trainers.report.page import Picture
from trainers.report.pictures import drawing as draw
from trainers.report.wording import counted_range
from trainers.tables import NOTHING_PROVEN

FIRST = 1e-3
"""Seconds at which logarithmic axes begin: the resolution of traces. Anything earlier is drawn there."""

_LISTS = 4  # panels of a data set, as in the paper

Traced = dict[str, dict[object, list[Json]]]  # by data set and K: the records with a trace


def _traced(series: Series) -> list[Json]:
    """Return the records with a trace; lists with nothing to rerank have none."""
    return [series.records[split] for split in series.splits if series.records[split]["trace"]]


def _last_second(records: Sequence[Json]) -> float:
    return max(0.01, *(record["trace"][-1][0] for record in records))


def _steps_of(record: Json) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the seconds of a trace, each once, with incumbent and bound from there on."""
    points = {max(point[0], FIRST): (point[1], point[2]) for point in record["trace"]}
    incumbent, bound = np.array(list(points.values())).T
    return np.array(list(points)), incumbent, bound


def median_gap(records: Sequence[Json]) -> tuple[FloatArray, FloatArray]:
    """Return the median relative gap as a step function: the seconds at which it may change, and its values.

    Each trace has an infinite gap before it begins and keeps its last gap after it ends. A proof is a gap of 0.
    """
    gaps = []
    for record in records:
        seconds, incumbent, bound = _steps_of(record)
        gap = np.array([relative_gap(*pair) for pair in zip(incumbent, bound, strict=True)])
        if proven(record):
            gap[-1] = 0.0
        gaps.append((seconds, np.concatenate([[math.inf], gap])))
    times = np.unique(np.concatenate([seconds for seconds, _ in gaps]))
    rows = [gap[np.searchsorted(seconds, times, side="right")] for seconds, gap in gaps]
    return times, np.median(rows, axis=0)


def gap_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw the median gap against time, a line for each length of the list."""
    for lines in evidence.by_length(evidence.groups):
        rows: Traced = {}
        for data, row in lines.rows.items():
            if traced := {value: records for value, series in row.items() if (records := _traced(series))}:
                rows[data] = traced
        if rows:
            yield _gap_picture(lines, rows)


def _gap_picture(lines: Along, rows: Traced) -> Picture:
    last = _last_second([record for row in rows.values() for records in row.values() for record in records])
    drawn = {data: {value: median_gap(records) for value, records in row.items()} for data, row in rows.items()}
    known = [100 * gaps[np.isfinite(gaps) & (gaps > 0)] for row in drawn.values() for _, gaps in row.values()]
    gaps = np.concatenate(known)
    low, high = (gaps.min(), gaps.max()) if len(gaps) else (1.0, 100.0)
    floor = 10.0 ** math.floor(math.log10(low)) / 2.5
    figure, grid = draw.panels(list(rows), foot=1.0)
    labels: dict[str, dict[str, None]] = {}
    every = draw.shades(max(len(row) for row in rows.values()))
    for axes, row in zip(grid, drawn.values(), strict=True):
        for at, (value, (times, values)) in enumerate(row.items()):
            colour = every[-1 if isinstance(value, str) else at]  # the whole list is darkest
            finite = np.isfinite(values)
            heights = np.maximum(100 * values[finite], floor)
            xs = [*times[finite], max(last, times[-1])]
            axes.step(xs, [*heights, *heights[-1:]], where="post", color=colour, linewidth=1.6, label=str(value))
            labels.setdefault(colour, {})[str(value)] = None
        axes.axhspan(floor / 1.6, floor * 1.25, color="#e3f1ea", linewidth=0, zorder=0)
        axes.set_yscale("log")
        axes.set_ylim(floor / 1.6, high * 1.4)
        draw.gap_axis(axes.yaxis, floor, high)
        draw.log_time(axes, FIRST, last)
    draw.name_axes(figure, x="seconds", y="median gap")
    draw.legend(figure, [draw.entry(f"K = {' or '.join(of)}", color=c, linewidth=1.8) for c, of in labels.items()])
    splits = counted_range((len(records) for row in rows.values() for records in row.values()), "split")
    caption = (
        f"Relative gap between bound and incumbent against time by K{lines.holding}: the median over {splits} per "
        "line, both axes logarithmic. A line in the band at the bottom means that the median list is proven optimal. A "
        "list keeps its last gap after its search ends."
    )
    return Picture(f"gap_over_time_{lines.name}", figure, caption)


def trace_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw incumbent and bound over time of the first splits of each data set, for one variant of the exact stage."""

    def effort(group: SweepTable) -> tuple[float, int]:
        limits = [r["options"]["time_limit"] for s in group.exact_series for r in s.records.values()]
        return max(limits), max(len(series.splits) for series in group.exact_series)

    # the second shortest K of the table with the longest time limit and then the most splits
    for data, row in max((g for g in evidence.groups if g.exact), key=effort).exact.items() if evidence.exact else ():
        every = sorted(row.values(), key=lambda series: in_order(series.option("top_k")))
        if records := _traced(every[min(1, len(every) - 1)])[:_LISTS]:
            yield _trace_picture(evidence, data, records)


def _trace_picture(evidence: Evidence, data: str, records: list[Json]) -> Picture:
    figure, grid = draw.panels([_ending(record) for record in records], foot=0.8)
    last = _last_second(records)
    for axes, record in zip(grid, records, strict=True):
        seconds, incumbent, bound = _steps_of(record)
        draw_trace(axes, seconds, incumbent, bound)
        if starts := (record["list"] or {}).get("starts"):
            axes.axhline(max(starts.values()), color=GREY, linewidth=1.1, linestyle="--")
        if settled(record):
            axes.plot(seconds[-1:], incumbent[-1:], marker="o", markersize=6, color=INK, linestyle="")
        draw.log_time(axes, FIRST, last)
        draw.ticks(axes.yaxis, 5)
    draw.name_axes(figure, x="seconds", y="objective")
    entries = [
        draw.entry("bound", color=BOUND, linewidth=1.8),
        draw.entry("incumbent", color=INCUMBENT, linewidth=1.8),
        draw.entry("best linear first-stage ranker", color=GREY, linewidth=1.2, linestyle="--"),
    ]
    draw.legend(figure, entries)
    options = records[0]["options"]
    caption = (
        f"{data}: incumbent and bound of the exact stage against time (logarithmic), K = {options['top_k']}, "
        f"C = {options['C']:g}, at most {options['time_limit']:g} seconds per list. The objective is "
        f"{evidence.statistic} on the reranked list, less C for each non-zero weight. A dot ends a search that proved "
        "its answer optimal."
    )
    return Picture(f"over_time_{data}", figure, caption)


def _ending(record: Json) -> str:
    gap, seconds = record["list"]["gap"], record["seconds"]
    shown = NOTHING_PROVEN if nothing_proven(record) else f"gap {'infinite' if gap is None else f'{100 * gap:.2g}%'}"
    time = f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"split {record['split']}: {'proven' if settled(record) else shown}, {time}"
