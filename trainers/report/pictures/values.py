"""Pictures of the statistic: gains, promised gains, training against test, values along an option, lists, and cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from ltr.cards import Card
from ltr.display.figures import ranked_list_figure
from ltr.display.pictures import GREY, INK
from trainers.config import EXACT
from trainers.records import unpack_labels
from trainers.report.evidence import (
    BASE,
    PARTS,
    Along,
    Evidence,
    K,
    Row,
    Series,
    SweepTable,
    in_order,
    key_name,
    settled,
)
from trainers.report.page import Picture
from trainers.report.paired import Paired
from trainers.report.pictures import drawing as draw
from trainers.report.tables import Promise, Reached, promises
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
    draw.legend(figure, [*_part_entries(), *proofs])
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


def _part_entries(**look: Any) -> list[Line2D]:  # noqa: ANN401
    return [draw.entry(draw.NAMES[part], color=colour, linewidth=1.6, **look) for part, colour in draw.COLOURS.items()]


def choice_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw the gain that each choice promised, and the gain that came on the test set."""
    for table in evidence.tables:
        found = {
            data: promises(evidence, (record for series in row.values() for record in series.records.values()))
            for data, row in table.exact.items()
        }
        if known := {data: ones for data, ones in found.items() if any(one.choice.reranks for one in ones)}:
            yield _choice_picture(evidence, table, known)


def _choice_picture(evidence: Evidence, table: SweepTable, found: Mapping[str, list[Promise]]) -> Picture:
    figure, grid = draw.panels(list(found), foot=0.75)
    for axes, every in zip(grid, found.values(), strict=True):
        _draw_promises(axes, sorted(every, key=lambda one: (one.choice.reranks, one.choice.expected)))
    draw.name_axes(figure, y=f"gain in {evidence.statistic} over the base ranker", x="results, by promised gain")
    draw.legend(
        figure,
        [
            draw.entry("promised, with its 90% interval", color=GREY, marker="_", markersize=9, linewidth=1.4),
            draw.entry("gain on the test set", color=draw.COLOURS["test"], marker="o", markersize=5, linestyle=""),
            draw.entry("base order kept", color=GREY, marker="x", markersize=5, linestyle=""),
        ],
    )
    caption = (
        f"For each result, the gain in {evidence.statistic} that the choice on the training set promised, and the gain "
        "that came on the test set. Where the base order was kept, both are 0. Data sets in which no result is "
        "reranked are left out."
    )
    return Picture(f"promised_gain_{table.name}", figure, caption)


def _draw_promises(axes: Axes, every: list[Promise]) -> None:
    axes.axhline(0, color=GREY, linewidth=0.9)
    kept = sum(not one.choice.reranks for one in every)
    axes.plot(range(kept), [0.0] * kept, color=GREY, marker="x", markersize=5, linestyle="")
    xs, reranked = range(kept, len(every)), every[kept:]
    expected = np.array([one.choice.expected for one in reranked])
    ends = np.array([(one.choice.low, one.choice.high) for one in reranked]).reshape(-1, 2)
    widths = np.abs(ends.T - expected)
    axes.errorbar(xs, expected, yerr=widths, fmt="_", color=GREY, elinewidth=1.4, markersize=9)
    axes.plot(xs, [one.came for one in reranked], color=draw.COLOURS["test"], marker="o", markersize=5, linestyle="")
    axes.set_xticks([])
    axes.set_xlim(-0.6, len(every) - 0.4)
    draw.ticks(axes.yaxis)


def method_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw means on test sets against means on training sets, for tables with several methods or base rankers."""
    for group in evidence.main_groups:
        methods = {variant.method for row in group.rows.values() for variant in row}
        if max(map(len, group.rows.values())) > 1 and (len(methods) > 1 or BASE in group.keys):
            yield _method_picture(evidence, group)


def _method_picture(evidence: Evidence, group: SweepTable) -> Picture:
    figure, grid = draw.panels(list(group.rows), height=2.0, foot=1.2)
    methods = draw.looks(evidence.methods)
    shades = draw.shades(max(1, *(len(_lengths(row)) for row in group.rows.values())))
    labels: dict[tuple[str, str], dict[str, None]] = {}  # by look; what looks alike has one entry of the legend
    for axes, row in zip(grid, group.rows.values(), strict=True):
        for variant, series in row.items():
            options = dict(variant.varied)
            if variant.method != EXACT or BASE in options:
                colour, marker = methods[options.get(BASE, variant.method)]
            else:  # shaded by its length's place in the row; the whole list is darkest
                value, marker = options.get(K), "o"
                colour = shades[-1 if value is None or isinstance(value, str) else _lengths(row).index(value)]
            labels.setdefault((colour, marker), {})[variant.label] = None
            train, test = (Reached.of(series.values(part, evidence.statistic)) for part in PARTS)
            if train.splits and test.splits:
                x, y = [train.mean], [test.mean]
                look: dict[str, Any] = {"linestyle": "", "marker": marker, "color": colour}
                faint: dict[str, Any] = look | {"marker": "", "alpha": 0.4, "linewidth": 0.8}
                axes.errorbar(x, y, xerr=train.std, yerr=test.std, **faint)
                axes.plot(x, y, markersize=6, markeredgecolor="white", markeredgewidth=0.6, zorder=3, **look)
        axes.margins(0.08)
        for axis in (axes.xaxis, axes.yaxis):
            draw.ticks(axis)
    draw.name_axes(figure, x=f"{evidence.statistic}, training sets", y=f"{evidence.statistic}, test sets")
    dot = {"linestyle": "", "markersize": 5.5}
    draw.legend(figure, [draw.entry(_joined(list(of)), color=c, marker=m, **dot) for (c, m), of in labels.items()])
    splits = counted_range((len(series.splits) for row in group.rows.values() for series in row.values()), "split")
    caption = (
        f"Mean {evidence.statistic} on the test sets against that on the training sets, a point for each method; "
        f"{splits} per point. Bars: one standard deviation over the splits to either side."
    )
    return Picture(f"train_and_test_{group.name}", figure, caption)


def _lengths(row: Row) -> list[Any]:
    return sorted({dict(variant.varied)[K] for variant in row if K in dict(variant.varied)}, key=in_order)


def _joined(labels: list[str]) -> str:
    """Return one label for several.

    Examples:
        >>> _joined(["exact, K = 50", "exact, K = 250"])
        'exact, K = 50 or 250'
    """
    return " or ".join([labels[0], *(label.rpartition(" = ")[2] for label in labels[1:])])


def option_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw the statistic along each numeric option of the exact stage that a table varies, except K."""
    for group in evidence.main_groups:
        for key in sorted(group.keys - {K}):
            for lines in group.along(key):
                if all(isinstance(value, int | float) for row in lines.rows.values() for value in row):
                    yield _option_picture(evidence, lines)


def _option_picture(evidence: Evidence, lines: Along) -> Picture:
    name = key_name(lines.key)
    figure, grid = draw.panels(list(lines.rows), foot=0.75)
    for axes, row in zip(grid, lines.rows.values(), strict=True):
        _draw_option(axes, row, evidence.statistic)
    draw.name_axes(figure, x=name, y=evidence.statistic)
    draw.legend(figure, _part_entries(marker="o", markersize=4))
    splits = counted_range((len(series.splits) for series in lines.series), "split")
    lengths = {series.option("top_k") for series in lines.series}
    length = f", K = {lengths.pop()}" if len(lengths) == 1 and K not in dict(lines.held) else ""
    caption = (
        f"Mean {evidence.statistic} of the exact stage on the training and test sets against {name}{length}"
        f"{lines.holding}; {splits} per point. Bands: one standard deviation over the splits to either side."
    )
    return Picture(f"{name}_{lines.name}", figure, caption)


def _draw_option(axes: Axes, row: Mapping[Any, Series], statistic: str) -> None:
    logarithmic = all(value > 0 for value in row)
    places = list(row) if logarithmic else list(range(len(row)))
    for part, colour in draw.COLOURS.items():
        found = [Reached.of(series.values(part, statistic)) for series in row.values()]
        means, spreads = np.array([one.mean for one in found]), np.array([one.std or 0.0 for one in found])
        axes.fill_between(places, means - spreads, means + spreads, color=colour, alpha=0.13, linewidth=0)
        axes.plot(places, means, color=colour, linewidth=1.6, marker="o", markersize=4, label=part)
    if logarithmic:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{value:g}" for value in row]))
    axes.xaxis.set_minor_locator(NullLocator())
    draw.ticks(axes.yaxis, 5)


def list_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw the first split's lists of each data set before and after reranking, with the shortest K."""
    for lines in evidence.by_length(evidence.main_groups):
        for data, row in lines.rows.items():
            value, series = next(iter(row.items()))
            after = series.records[series.splits[0]]
            before = evidence.results.base_of(after)
            if before is None or after["list"] is None or not (before.get("ranked") and after.get("ranked")):
                continue
            for part in PARTS:
                labels = [unpack_labels(record["ranked"][part]) for record in (before, after)]
                count = after["list"]["n"]
                if part == "test":  # how many of its items are reranked is not recorded
                    labels = [own[: 2 * count] for own in labels]
                    count = len(labels[0])
                values = (before[part].get(evidence.statistic), after[part].get(evidence.statistic))
                named = {"base": before["method"], "statistic": evidence.statistic}
                title = f"{data}, {draw.NAMES[part]}"
                size, positives = after["sizes"][part]
                acted = {"k": None if value == "full" else min(int(value), size), "share": positives / size}
                figure = ranked_list_figure(title, labels[0], labels[1], count, **named, **acted, values=values)
                caption = (
                    f"{data}, split {after['split']}, {draw.NAMES[part]}: the top of the list "
                    f"ordered by {before['method']} and after reranking with K = {value}, and the number of positives "
                    "that the first rows hold."
                )
                yield Picture(f"ranked_{part}_{lines.name}_{data}", figure, caption)


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
