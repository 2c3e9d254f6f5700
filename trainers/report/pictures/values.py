"""Pictures of results: the gain of the exact stage, and cards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes

from ltr.cards import Card
from ltr.display.pictures import GREY, INK
from trainers.report.evidence import (
    PARTS,
    Along,
    Evidence,
    settled,
)
from trainers.report.page import Picture
from trainers.report.paired import Paired
from trainers.report.pictures import drawing as draw
from trainers.report.wording import counted_range

# by K: the exact stage against its base ranker on training and test sets, and whether all lists are proven
Gains = dict[Any, tuple[dict[str, Paired], bool]]


def gain_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw the gain of the exact stage by K."""
    for lines in evidence.by_length(evidence.main_groups):
        rows: dict[str, Gains] = {}
        for data, value, series in ((data, *one) for data, row in lines.rows.items() for one in row.items()):
            both = {part: evidence.compare(*evidence.with_base(series), part, fewest=2) for part in PARTS}
            if known := {part: gain for part, gain in both.items() if gain.mean_b > 0}:
                proven = all(settled(record) for record in series.records.values())
                rows.setdefault(data, {})[value] = known, proven
        if rows:
            yield _gain_picture(evidence, lines, rows)


def _gain_picture(evidence: Evidence, lines: Along, rows: dict[str, Gains]) -> Picture:
    figure, grid = draw.panels(list(rows), foot=0.75)
    for axes, gains in zip(grid, rows.values(), strict=True):
        _draw_gains(axes, gains)
    draw.name_axes(figure, y="gain over the base ranker, %", x="K, positions reranked")
    common = {"linestyle": "", "marker": "o", "markersize": 5, "markeredgecolor": INK}
    proofs = [
        draw.entry("all lists proven optimal", markerfacecolor=INK, **common),
        draw.entry("not all", markerfacecolor="white", **common),
    ]
    parts = [draw.entry(draw.NAMES[part], color=colour, linewidth=1.6) for part, colour in draw.COLOURS.items()]
    draw.legend(figure, [*parts, *proofs])
    every = (gain for gains in rows.values() for both, _ in gains.values() for gain in both.values())
    splits = counted_range((gain.splits for gain in every), "split")
    caption = (
        f"Mean gain in {evidence.statistic} of the exact stage over its base ranker, in percent of the base ranker's "
        f"mean, by K{lines.holding}; {splits} per data set. Bars: 95% intervals that allow for rows shared by splits "
        "(corrected resampled t-test). Filled points: all lists of that K are proven optimal."
    )
    return Picture(f"gain_by_k_{lines.name}", figure, caption)


def _draw_gains(axes: Axes, gains: Gains) -> None:
    axes.axhline(0, color=GREY, linewidth=0.9)
    for side, (part, colour) in zip((-1, 1), draw.COLOURS.items(), strict=True):
        at = [(x, both[part], proven) for x, (both, proven) in enumerate(gains.values()) if part in both]
        if not at:
            continue
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
