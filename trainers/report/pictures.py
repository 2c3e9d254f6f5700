"""The figures of a report: each subject a section, left out where the sweep has no data for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ltr.cards import Card
from ltr.display.figures import BOUND, INCUMBENT, draw_trace
from ltr.display.pictures import GREY, INK
from trainers.files import Json
from trainers.records import nothing_proven
from trainers.report import drawing as draw
from trainers.report.evidence import Evidence, settled
from trainers.report.page import Picture, Section, Text
from trainers.report.paired import Paired
from trainers.report.wording import counted_range
from trainers.tables import NOTHING_PROVEN

_FIRST = 1e-3  # seconds at which logarithmic axes begin: the resolution of traces; anything earlier is drawn there
_LISTS = 4  # panels of a data set, as in the paper

Gains = dict[Any, tuple[dict[str, Paired], bool]]
"""By K: the exact stage against its base ranker on training and test sets, and whether all lists are proven."""


def pictures(evidence: Evidence) -> list[Section]:
    """Draw what a sweep has found so far."""
    subjects = (
        (
            "Gain of the exact stage by K",
            "The gain of reranking the top K over the base ranker, on the training sets and on the test sets.",
            gain_pictures,
        ),
        (
            "Objective and bound over time",
            "The answer rises and the bound falls; where they meet, the answer is proven optimal.",
            trace_pictures,
        ),
        ("Cards of the first split", "Questions and points, and what each total means.", card_pictures),
    )
    drawn = ((title, text, list(make(evidence))) for title, text, make in subjects)
    return [Section(title, [Text(text), *found]) for title, text, found in drawn if found]


def gain_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw the gain of the exact stage by K, a panel for each data set."""
    rows: dict[str, Gains] = {}
    for (data, length), series in evidence.main.items():
        both = {part: found[data, length] for part, found in evidence.gains.items() if (data, length) in found}
        if known := {part: gain for part, gain in both.items() if gain.mean_b > 0}:
            rows.setdefault(data, {})[length] = known, all(map(settled, series.records.values()))
    if not rows:
        return
    figure, grid = draw.panels(list(rows), foot=0.75)
    for axes, gains in zip(grid, rows.values(), strict=True):
        _draw_gains(axes, gains)
    draw.name_axes(figure, y="gain over the base ranker, %", x="K, positions reranked")
    point = {"linestyle": "", "marker": "o", "markersize": 5, "markeredgecolor": INK}
    draw.legend(
        figure,
        [
            *(draw.entry(draw.NAMES[part], color=colour, linewidth=1.6) for part, colour in draw.COLOURS.items()),
            draw.entry("all lists proven optimal", markerfacecolor=INK, **point),
            draw.entry("not all", markerfacecolor="white", **point),
        ],
    )
    splits = counted_range((gain.splits for of in evidence.gains.values() for gain in of.values()), "split")
    caption = (
        f"Mean gain in {evidence.statistic} of the exact stage over its base ranker, in percent of the base ranker's "
        f"mean, by K; {splits} per data set. Bars: 95% intervals that allow for rows shared by splits "
        "(corrected resampled t-test). Filled points: all lists of that K are proven optimal."
    )
    yield Picture("gain_by_k", figure, caption)


def _draw_gains(axes: Axes, gains: Gains) -> None:
    axes.axhline(0, color=GREY, linewidth=0.9)
    for side, (part, colour) in zip((-1, 1), draw.COLOURS.items(), strict=True):
        at = [(x, both[part], proven) for x, (both, proven) in enumerate(gains.values()) if part in both]
        xs = [x + 0.018 * side * len(gains) for x, _, _ in at]
        means = [gain.percent for _, gain, _ in at]
        axes.plot(xs, means, color=colour, linewidth=1.5, label=part)
        widths = [100 * gain.width / gain.mean_b for _, gain, _ in at]
        axes.errorbar(xs, means, yerr=widths, fmt="none", ecolor=colour, elinewidth=1.0, capsize=2)
        faces = [colour if proven else "white" for _, _, proven in at]
        axes.scatter(xs, means, s=22, c=faces, edgecolors=colour, linewidths=1.2, zorder=3)
    axes.set_xticks(range(len(gains)), [str(value) for value in gains])
    axes.set_xlim(-0.4, len(gains) - 0.6)
    draw.ticks(axes.yaxis)


def trace_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw incumbent and bound over time of the first splits of each data set, at its longest time limit.

    Of several K it is the second shortest; lists with nothing to rerank have no trace.
    """
    for data, found in evidence.lengths.items():
        every = [*[found.main, *found.longer.values()][-1].values()]
        series = every[min(1, len(every) - 1)]
        traced = [series.records[split] for split in series.splits if series.records[split]["trace"]]
        if traced:
            yield _trace_picture(evidence, data, traced[:_LISTS])


def _trace_picture(evidence: Evidence, data: str, records: list[Json]) -> Picture:
    figure, grid = draw.panels([_ending(record) for record in records], foot=0.8)
    last = max(0.01, *(record["trace"][-1][0] for record in records))
    for axes, record in zip(grid, records, strict=True):
        # each time once, with incumbent and bound from there on
        points = {max(point[0], _FIRST): point[1:3] for point in record["trace"]}
        seconds, (incumbent, bound) = np.array(list(points)), np.array(list(points.values())).T
        draw_trace(axes, seconds, incumbent, bound)
        if starts := (record["list"] or {}).get("starts"):
            axes.axhline(max(starts.values()), color=GREY, linewidth=1.1, linestyle="--")
        if settled(record):
            axes.plot(seconds[-1:], incumbent[-1:], marker="o", markersize=6, color=INK, linestyle="")
        draw.log_time(axes, _FIRST, last)
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


def card_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw the card of the first split of each data set and variant."""
    for series in evidence.cards:
        split = series.splits[0]
        card = Card.from_dict(series.records[split]["card"])
        asked = ", ".join(f"{question.name} ({p:+d})" for question, p in zip(card.questions, card.points, strict=True))
        caption = (
            f"{series.data}, {series.variant.label}, split {split}: {asked or 'no question'}. The bars show the share "
            "of positives at each total, on the training set and on the test set, with 90 % intervals."
        )
        yield Picture(f"{series.variant.label}_{series.data}", card.plot(), caption)
