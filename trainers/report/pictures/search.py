"""Pictures of the search: incumbent and bound of single lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ltr.display.figures import BOUND, INCUMBENT, draw_trace
from ltr.display.pictures import GREY, INK
from trainers.files import Json
from trainers.records import nothing_proven
from trainers.report.evidence import Evidence, FloatArray, Series, SweepTable, in_order, settled
from trainers.report.page import Picture
from trainers.report.pictures import drawing as draw
from trainers.tables import NOTHING_PROVEN

FIRST = 1e-3
"""Seconds at which logarithmic axes begin: the resolution of traces. Anything earlier is drawn there."""

_LISTS = 4  # panels of a data set, as in the paper


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
        draw.ticks(axes.yaxis)
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
