"""Pictures of the statistic reached: gains by K, train against test, along the margin and the price of a weight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from trainers.config import EXACT
from trainers.report.evidence import Evidence
from trainers.report.page import Picture
from trainers.report.paired import Paired
from trainers.report.pictures.drawing import (
    GREY,
    HALVES,
    INK,
    NAMES,
    entry,
    legend,
    method_looks,
    name_axes,
    panels,
    shades,
    ticks,
)
from trainers.report.pictures.lengths import by_length
from trainers.report.series import TIME_LIMIT, K, Series, Variant, in_order, key_name, settled
from trainers.report.sweep_tables import Along, SweepTable
from trainers.report.tables import Reached
from trainers.report.wording import counted_range

__all__ = ["gain_pictures", "method_pictures", "option_pictures"]

_BASE = "exact.base"


def gain_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Gain of the exact stage by the length of the reranked list, where tables vary it."""
    for lines in by_length(evidence, evidence.main_groups):
        rows = {data: _gains(evidence, row) for data, row in lines.rows.items()}
        if rows := {data: row for data, row in rows.items() if row}:
            yield _gain_picture(evidence, lines, rows)


Gains = dict[Any, tuple[dict[str, Paired], bool]]
"""By K: the exact stage against its base ranker on each half, and whether all lists are proven."""


def _gains(evidence: Evidence, row: Any) -> Gains:  # noqa: ANN401
    found: Gains = {}
    for value, series in row.items():
        halves = {half: evidence.compare(*evidence.with_base(series), half, fewest=2) for half in HALVES}
        known = {half: gain for half, gain in halves.items() if gain.mean_b > 0}
        if known:
            found[value] = known, all(settled(record) for record in series.records.values())
    return found


def _gain_picture(evidence: Evidence, lines: Along, rows: dict[str, Gains]) -> Picture:
    figure, grid = panels(list(rows), foot=0.75)
    for axes, gains in zip(grid, rows.values(), strict=True):
        _draw_gains(axes, gains)
    name_axes(figure, y="gain over the base ranker, %", x="K, positions reranked")
    legend(figure, [*_half_entries(), *_proof_entries()])
    splits = counted_range(
        (gain.splits for gains in rows.values() for halves, _ in gains.values() for gain in halves.values()), "split"
    )
    caption = (
        f"Mean gain in {evidence.statistic} of the exact stage over its base ranker, in percent of the base ranker's "
        f"mean, by K{lines.holding}; {splits} a data set. Bars: 95% intervals of the mean paired difference by the t "
        "distribution; filled points: all lists of that K proven optimal."
    )
    return Picture(f"gain_by_k_{lines.name}", figure, caption)


def _draw_gains(axes: Axes, gains: Gains) -> None:
    axes.axhline(0, color=GREY, linewidth=0.9)
    for side, (half, colour) in zip((-1, 1), HALVES.items(), strict=True):
        at = [(x, halves[half], proven) for x, (halves, proven) in enumerate(gains.values()) if half in halves]
        if not at:
            continue
        xs = [x + 0.018 * side * len(gains) for x, _, _ in at]
        means = [gain.percent for _, gain, _ in at]
        axes.plot(xs, means, color=colour, linewidth=1.5, label=half)
        widths = [100 * gain.plain / gain.mean_b for _, gain, _ in at]
        axes.errorbar(xs, means, yerr=widths, fmt="none", ecolor=colour, elinewidth=1.0, capsize=2)
        faces = [colour if proven else "white" for _, _, proven in at]
        axes.scatter(xs, means, s=22, c=faces, edgecolors=colour, linewidths=1.2, zorder=3)
    axes.set_xticks(range(len(gains)), [str(value) for value in gains])
    axes.set_xlim(-0.4, len(gains) - 0.6)
    ticks(axes.yaxis)


def _half_entries(**look: Any) -> list[Line2D]:  # noqa: ANN401
    return [entry(NAMES[half], color=colour, linewidth=1.6, **look) for half, colour in HALVES.items()]


def _proof_entries() -> list[Line2D]:
    common = {"linestyle": "", "marker": "o", "markersize": 5, "markeredgecolor": INK}
    return [
        entry("all lists proven optimal", markerfacecolor=INK, **common),
        entry("not all", markerfacecolor="white", **common),
    ]


def method_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Mean on the test halves against mean on the training halves, for tables with several methods or base rankers."""
    for group in evidence.main_groups:
        methods = {variant.method for row in group.rows.values() for variant in row}
        bases = any(_BASE in dict(variant.varied) for row in group.exact.values() for variant in row)
        if max(map(len, group.rows.values())) > 1 and (len(methods) > 1 or bases):
            yield _method_picture(evidence, group)


def _method_picture(evidence: Evidence, group: SweepTable) -> Picture:
    looks = _Looks(evidence, group)
    figure, grid = panels(list(group.rows), height=2.0, foot=1.2)
    for axes, row in zip(grid, group.rows.values(), strict=True):
        for variant, series in row.items():
            _draw_point(axes, series, evidence.statistic, looks.of(variant, row))
        axes.margins(0.08)
        for axis in (axes.xaxis, axes.yaxis):
            ticks(axis)
    name_axes(figure, x=f"{evidence.statistic}, training halves", y=f"{evidence.statistic}, test halves")
    legend(figure, looks.entries())
    splits = counted_range((len(series.splits) for row in group.rows.values() for series in row.values()), "split")
    caption = (
        f"Mean {evidence.statistic} on the test halves against that on the training halves, a point a method; "
        f"{splits} a point. Bars: one standard deviation over the splits to either side."
    )
    return Picture(f"train_and_test_{group.name}", figure, caption)


class _Looks:
    """Colour, marker and label of each variant of a group; lengths of the list in shades of one colour."""

    def __init__(self, evidence: Evidence, group: SweepTable) -> None:
        self._methods = method_looks(evidence.methods, evidence.base)
        self._lengths = max(len(_lengths(row)) for row in group.rows.values())
        self._shades = shades(max(self._lengths, 1))
        self._seen: dict[tuple[str, str], list[str]] = {}

    def of(self, variant: Variant, row: Any) -> dict[str, Any]:  # noqa: ANN401
        """How to draw a variant of a data set's row."""
        if variant.method != EXACT:
            colour, marker = self._methods[variant.method]
            look = {"color": colour, "marker": marker}
        elif (base := dict(variant.varied).get(_BASE)) is not None:
            colour, marker = self._methods[base]
            look = {"color": colour, "marker": marker}
        else:
            look = {"color": self._shade(variant, row), "marker": "o"}
        labels = self._seen.setdefault((look["color"], look["marker"]), [])
        if variant.label not in labels:
            labels.append(variant.label)
        return look

    def _shade(self, variant: Variant, row: Any) -> str:  # noqa: ANN401
        """By the place of its length among those of the data set; the whole list has the darkest."""
        value = dict(variant.varied).get(K)
        if value is None or isinstance(value, str):
            return self._shades[-1]
        return self._shades[_lengths(row).index(value)]

    def entries(self) -> list[Line2D]:
        """Of the legend."""
        return [
            entry(_joined(labels), color=colour, marker=marker, linestyle="", markersize=5.5)
            for (colour, marker), labels in self._seen.items()
        ]


def _lengths(row: Any) -> list[Any]:  # noqa: ANN401
    return sorted({dict(variant.varied)[K] for variant in row if K in dict(variant.varied)}, key=in_order)


def _joined(labels: list[str]) -> str:
    """One label for what looks alike on different data sets.

    Examples:
        >>> _joined(["exact, K = 50", "exact, K = 250"])
        'exact, K = 50 or 250'
    """
    first, *others = labels
    return " or ".join([first, *(label.rpartition(" = ")[2] for label in others)])


def _draw_point(axes: Axes, series: Series, statistic: str, look: dict[str, Any]) -> None:
    train, test = (values[~np.isnan(values)] for values in (series.values(half, statistic) for half in HALVES))
    if not len(train) or not len(test):
        return
    spread = {"xerr": train.std(ddof=1), "yerr": test.std(ddof=1)} if min(len(train), len(test)) > 1 else {}
    axes.errorbar(
        [train.mean()], [test.mean()], **spread, linestyle="", marker="", color=look["color"], alpha=0.4, linewidth=0.8,
    )  # fmt: skip
    axes.plot(
        [train.mean()], [test.mean()], linestyle="", markersize=6, markeredgecolor="white", markeredgewidth=0.6,
        zorder=3, **look,
    )  # fmt: skip


def option_pictures(evidence: Evidence) -> Iterator[Picture]:
    """The statistic along each number of the exact stage that tables vary, but for K and the time limit."""
    for group in evidence.main_groups:
        for key in sorted(group.keys - {K, TIME_LIMIT}):
            for lines in group.along(key):
                values = [value for row in lines.rows.values() for value in row]
                if all(isinstance(value, int | float) for value in values):
                    yield _option_picture(evidence, lines)


def _option_picture(evidence: Evidence, lines: Along) -> Picture:
    name = key_name(lines.key)
    figure, grid = panels(list(lines.rows), foot=0.75)
    for axes, row in zip(grid, lines.rows.values(), strict=True):
        _draw_option(axes, row, evidence.statistic)
    name_axes(figure, x=name, y=evidence.statistic)
    legend(figure, _half_entries(marker="o", markersize=4))
    splits = counted_range((len(series.splits) for series in lines.series), "split")
    lengths = {series.option("top_k") for series in lines.series}
    length = f", K = {lengths.pop()}" if len(lengths) == 1 and K not in dict(lines.held) else ""
    caption = (
        f"Mean {evidence.statistic} of the exact stage on the training and test halves against {name}{length}"
        f"{lines.holding}; {splits} a point. Bands: one standard deviation over the splits to either side."
    )
    return Picture(f"{name}_{lines.name}", figure, caption)


def _draw_option(axes: Axes, row: Any, statistic: str) -> None:  # noqa: ANN401
    logarithmic = all(value > 0 for value in row)
    places = list(row) if logarithmic else list(range(len(row)))
    for half, colour in HALVES.items():
        found = [Reached.of(series.values(half, statistic)) for series in row.values()]
        means = np.array([one.mean for one in found])
        spreads = np.array([one.std or 0.0 for one in found])
        axes.fill_between(places, means - spreads, means + spreads, color=colour, alpha=0.13, linewidth=0)
        axes.plot(places, means, color=colour, linewidth=1.6, marker="o", markersize=4, label=half)
    if logarithmic:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{value:g}" for value in row]))
    axes.xaxis.set_minor_locator(NullLocator())
    ticks(axes.yaxis, 5)
