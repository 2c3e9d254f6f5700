"""The figure of a report, the gain of the exact stage by K, and the look of figures with panels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ltr.display.figures import canvas
from ltr.display.pictures import FAINT, GREY, INK, SMALL, TEST, TITLE, TRAINING, WIDTH, fonts, shortened
from trainers.report.evidence import Evidence, proven
from trainers.report.page import Picture
from trainers.report.paired import Paired
from trainers.report.wording import counted_range

COLOURS = {"train": TRAINING, "test": TEST}
"""Colours of the training and test sets."""

_HEIGHT, _LETTER = 1.8, 0.0085  # inches: of a panel, and of a letter for each point of its size


def panels(
    titles: Sequence[str], entries: Mapping[str, Mapping[str, Any]], *, x: str, y: str, foot: float = 0.6
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each title, at most two in a row, above a foot of so many inches.

    All panels share the names of the axes, `x` and `y`, and a legend: `entries` has the look of its lines by label.
    """
    columns = min(len(titles), 2)
    rows = math.ceil(len(titles) / columns)
    figure = canvas((_HEIGHT if columns == 2 else 1.4 * _HEIGHT) * rows + foot)
    every = list(figure.subplots(rows, columns, squeeze=False).flat)
    room = int(WIDTH / columns / (_LETTER * TITLE)) - 3
    with fonts():
        for axes, title in zip(every, titles, strict=False):
            axes.set_title(shortened(title, room), fontsize=TITLE, color=INK, loc="left", pad=4, parse_math=False)
            axes.tick_params(labelsize=SMALL, colors=INK, length=2.5, width=0.6)
            axes.grid(color=FAINT, linewidth=0.7)
            axes.set_axisbelow(True)
            axes.spines[:].set_color("#a9b1b8")
            axes.spines[["top", "right"]].set_visible(False)
    for axes in every[len(titles) :]:
        axes.remove()
    figure.supxlabel(x, fontsize=SMALL, color=INK)
    figure.supylabel(y, fontsize=SMALL, color=INK)
    figure.legend(
        handles=[Line2D([], [], label=label, **look) for label, look in entries.items()], loc="outside upper center",
        ncols=2, frameon=False, fontsize=SMALL, handlelength=1.6, columnspacing=1.4, labelcolor=INK,
    )  # fmt: skip
    return figure, every[: len(titles)]


def gain_picture(evidence: Evidence) -> Picture | None:
    """Draw the gain of the exact stage by K, a panel for each data set; None without results of both stages."""
    rows: dict[str, dict[Any, tuple[dict[str, Paired], bool]]] = {}  # by data set and K: the gains, if all is proven
    for (data, length), series in evidence.main.items():
        both = {part: found[data, length] for part, found in evidence.gains.items() if (data, length) in found}
        if known := {part: gain for part, gain in both.items() if gain.mean_b > 0}:
            settled = all(one["list"] is None or proven(one) for one in series.records.values())
            rows.setdefault(data, {})[length] = known, settled
    if not rows:
        return None
    point = {"linestyle": "", "marker": "o", "markersize": 5, "markeredgecolor": INK}
    entries: dict[str, dict[str, Any]] = {
        "training set": {"color": TRAINING, "linewidth": 1.6},
        "test set": {"color": TEST, "linewidth": 1.6},
        "all lists proven optimal": {"markerfacecolor": INK, **point},
        "not all": {"markerfacecolor": "white", **point},
    }
    x, y = "K, positions reranked", "gain over the base ranker, %"
    figure, grid = panels(list(rows), entries, x=x, y=y, foot=0.75)
    for axes, gains in zip(grid, rows.values(), strict=True):
        axes.axhline(0, color=GREY, linewidth=0.9)
        for side, (part, colour) in zip((-1, 1), COLOURS.items(), strict=True):
            at = [(place, of[part], settled) for place, (of, settled) in enumerate(gains.values()) if part in of]
            xs = [place + 0.018 * side * len(gains) for place, _, _ in at]
            means = [gain.percent for _, gain, _ in at]
            axes.plot(xs, means, color=colour, linewidth=1.5, label=part)
            widths = [100 * gain.width / gain.mean_b for _, gain, _ in at]
            axes.errorbar(xs, means, yerr=widths, fmt="none", ecolor=colour, elinewidth=1.0, capsize=2)
            faces = [colour if settled else "white" for _, _, settled in at]
            axes.scatter(xs, means, s=22, c=faces, edgecolors=colour, linewidths=1.2, zorder=3)
        axes.set_xticks(range(len(gains)), [str(value) for value in gains])
        axes.set_xlim(-0.4, len(gains) - 0.6)
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))
    splits = counted_range((gain.splits for of in evidence.gains.values() for gain in of.values()), "split")
    caption = (
        f"Mean gain in {evidence.statistic} of the exact stage over its base ranker, in percent of the base ranker's "
        f"mean, by K; {splits} per data set. Bars: 95% intervals that allow for rows shared by splits "
        "(corrected resampled t-test). Filled points: all lists of that K are proven optimal."
    )
    return Picture("gain_by_k.png", figure, caption)
