"""The figure of a report: the gain of the exact stage by K."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from ltr.display.pictures import GREY, INK
from trainers.report import drawing as draw
from trainers.report.evidence import Evidence, settled
from trainers.report.page import Picture
from trainers.report.paired import Paired
from trainers.report.wording import counted_range

Gains = dict[Any, tuple[dict[str, Paired], bool]]
"""By K: the exact stage against its base ranker on training and test sets, and whether all lists are proven."""


def gain_picture(evidence: Evidence) -> Picture | None:
    """Draw the gain of the exact stage by K, a panel for each data set; None without results of both stages."""
    rows: dict[str, Gains] = {}
    for (data, length), series in evidence.main.items():
        both = {part: found[data, length] for part, found in evidence.gains.items() if (data, length) in found}
        if known := {part: gain for part, gain in both.items() if gain.mean_b > 0}:
            rows.setdefault(data, {})[length] = known, all(map(settled, series.records.values()))
    if not rows:
        return None
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
    return Picture("gain_by_k.png", figure, caption)


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
