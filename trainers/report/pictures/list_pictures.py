"""Pictures of ranked lists: strips of labels, and the top end of ROC curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from trainers.config import EXACT
from trainers.files import Json
from trainers.report.evidence import Evidence
from trainers.report.page import Picture
from trainers.report.pictures.drawing import (
    HALVES,
    INK,
    NAMES,
    NEGATIVE,
    POSITIVE,
    SMALL,
    TITLE,
    canvas,
    entry,
    legend,
    method_looks,
    name_axes,
    panels,
    percent,
    shades,
    ticks,
)
from trainers.report.pictures.lengths import by_length
from trainers.report.pictures.lists import labels_of, mean_true_positive_rate
from trainers.report.series import Series
from trainers.report.sweep_tables import Along
from trainers.report.wording import counted_range
from trainers.tables import number

__all__ = ["FALSE_POSITIVE_RATES", "roc_pictures", "strip_pictures"]

FALSE_POSITIVE_RATES = np.linspace(0.0, 0.2, 201)
"""Where ROC curves are drawn: their top end."""

_LONGEST = 600  # positions of a strip: more cannot be told apart
_HALVES = {"train": "training halves", "test": "test halves"}
_PLAIN = 50  # half the positions shown where no list has a number as its length


def strip_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Labels from the top of the list down, before and after reranking, on the first split of each data set."""
    for lines in by_length(evidence, evidence.main_groups):
        for data, row in lines.rows.items():
            if (picture := _strip_picture(evidence, lines, data, row)) is not None:
                yield picture


def _strip_picture(evidence: Evidence, lines: Along, data: str, row: Mapping[Any, Series]) -> Picture | None:
    split = min(split for series in row.values() for split in series.splits)
    exact = {value: series.records[split] for value, series in row.items() if split in series.records}
    base = evidence.results.base_of(next(iter(exact.values())))
    other = _best_other(evidence, lines, data, split, base)
    first = [(record["method"], record) for record in (base, other) if record is not None]
    strips = [*first, *((f"exact, K = {value}", record) for value, record in exact.items())]
    strips = [(label, record) for label, record in strips if record.get("ranked")]
    if not any(record["method"] == EXACT for _, record in strips):
        return None
    shown = min(2 * min((value for value in row if isinstance(value, int)), default=_PLAIN), _LONGEST)
    figure = canvas(0.95 + 0.4 * len(strips))
    for axes, half in zip(figure.subplots(1, 2), HALVES, strict=True):
        axes.set_title(NAMES[half], fontsize=TITLE, color=INK, loc="left", pad=4)
        _draw_strips(axes, strips, half, shown, evidence.statistic)
    name_axes(figure, x="position (0 is the top of the list)")
    classes = [Patch(color=POSITIVE, label="positive"), Patch(color=NEGATIVE, label="negative")]
    legend(figure, [*classes, entry("end of the reranked top", color=INK, linewidth=1.6)])
    caption = (
        f"{data}, split {split}: labels of the first {shown} positions{lines.holding}, and the {evidence.statistic} of "
        f"the whole half at the right. {_which(base, other)}"
    )
    return Picture(f"ranked_{lines.name}_{data}", figure, caption)


def _which(base: Json | None, other: Json | None) -> str:
    names = [] if base is None else [f"{base['method']} is the base ranker"]
    if other is not None:
        rest = "the best of the first-stage methods" if base is None else "the best of the other first-stage methods"
        names.append(f"{other['method']} {rest} on the training half")
    return f"{', '.join(names)}." if names else ""


def _best_other(evidence: Evidence, lines: Along, data: str, split: int, base: Json | None) -> Json | None:
    """The first-stage record of the tables, but the base's, with the largest value on the training half."""
    found = [
        series.records[split]
        for variant, series in lines.table.rows[data].items()
        if variant.method != EXACT and split in series.records
    ]
    known = [r for r in found if r is not base and r["train"].get(evidence.statistic) is not None]
    return max(known, key=lambda record: record["train"][evidence.statistic], default=None)


def _draw_strips(axes: Axes, strips: Sequence[tuple[str, Json]], half: str, shown: int, statistic: str) -> None:
    for row, (label, record) in enumerate(strips):
        labels = labels_of(record, half)
        assert labels is not None
        top = labels[:shown]
        axes.broken_barh([(-0.5, len(top))], (row + 0.4, 0.56), color=NEGATIVE, linewidth=0)
        # a positive among hundreds of positions is narrower than a pixel: an edge keeps it visible
        axes.broken_barh(_runs(top), (row + 0.4, 0.56), color=POSITIVE, linewidth=0.0 if shown <= 200 else 0.6)
        if half == "train":
            axes.text(-0.5, row + 0.36, label, fontsize=SMALL, color=INK, va="bottom")
        value = number(record[half].get(statistic))
        axes.text(shown - 0.5, row + 0.36, value, fontsize=SMALL, color=INK, va="bottom", ha="right")
        reranked = (record.get("list") or {}).get("n", math.inf)
        if half == "train" and reranked < shown:
            axes.plot([reranked - 0.5] * 2, [row + 0.34, row + 1.02], color=INK, linewidth=1.6, solid_capstyle="butt")
    axes.set_xlim(-0.5, shown - 0.5)
    axes.set_ylim(len(strips) + 0.05, 0)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    axes.tick_params(labelsize=SMALL, colors=INK, length=2.5, width=0.6)
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.spines["bottom"].set_color("#a9b1b8")


def _runs(labels: NDArray[np.int64]) -> list[tuple[float, int]]:
    """Where runs of positives begin, and how long they are.

    Examples:
        >>> _runs(np.array([1, 1, 0, 1]))
        [(-0.5, 2), (2.5, 1)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], labels, [0]])))
    return [(int(begin) - 0.5, int(end - begin)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]


Curves = dict[str, tuple[Series, dict[str, Any]]]
"""By label: a method and how its line looks."""


def roc_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Mean true positive rates at small false positive rates: base ranker, two others, shortest and longest list."""
    for lines in by_length(evidence, evidence.main_groups):
        rows = {data: _curves(evidence, lines, data, row) for data, row in lines.rows.items()}
        for half in ("test", "train"):
            if (picture := _roc_picture(lines, rows, half)) is not None:
                yield picture


def _curves(evidence: Evidence, lines: Along, data: str, row: Mapping[Any, Series]) -> Curves:
    looks = method_looks(evidence.methods, evidence.base)
    found: Curves = {}
    _, base = evidence.with_base(next(iter(row.values())))
    if base.records:
        found[base.variant.method] = base, {"color": looks[base.variant.method][0], "linestyle": "--"}
    others = {
        variant: series
        for variant, series in lines.table.rows[data].items()
        if variant.method not in (EXACT, base.variant.method)
    }
    # RankSVM and RankBoost are the best known: they come first where the tables have them
    chosen = sorted(others, key=lambda variant: variant.method not in ("hinge", "rankboost"))[:2]
    for variant in others:
        if variant in chosen:
            found[variant.label] = others[variant], {"color": looks[variant.method][0], "linestyle": "-"}
    light, dark = shades(3)[0], shades(3)[-1]
    values = list(row)
    if len(values) > 1 or not isinstance(values[0], str):
        found["exact, shortest list"] = row[values[0]], {"color": light, "linestyle": "-"}
    if len(values) > 1 or isinstance(values[0], str):
        found["exact, longest list"] = row[values[-1]], {"color": dark, "linestyle": "-"}
    return found


def _roc_picture(lines: Along, rows: Mapping[str, Curves], half: str) -> Picture | None:
    drawn: dict[str, dict[str, tuple[Any, dict[str, Any]]]] = {}
    for data, curves in rows.items():
        for label, (series, look) in curves.items():
            rates = mean_true_positive_rate(list(series.records.values()), half, FALSE_POSITIVE_RATES)
            if rates is not None:
                drawn.setdefault(data, {})[label] = rates, look
    if not drawn:
        return None
    figure, grid = panels(list(drawn), foot=1.0)
    entries: dict[str, Line2D] = {}
    for axes, lines_of_data in zip(grid, drawn.values(), strict=True):
        for label, (heights, look) in lines_of_data.items():
            axes.step(FALSE_POSITIVE_RATES, heights, where="post", linewidth=1.5, label=label, **look)
            entries.setdefault(label, entry(label, linewidth=1.8, **look))
        axes.set_xlim(0, FALSE_POSITIVE_RATES[-1])
        axes.set_ylim(bottom=0)
        ticks(axes.xaxis)
        ticks(axes.yaxis)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: percent(round(100 * value, 6))))
    name_axes(figure, x="false positive rate", y="true positive rate")
    legend(figure, entries.values())
    splits = counted_range((len(series.splits) for curves in rows.values() for series, _ in curves.values()), "split")
    end = percent(100 * FALSE_POSITIVE_RATES[-1])
    caption = (
        f"ROC curves of the {_HALVES[half]} up to a false positive rate of {end}, the "
        f"mean of the true positive rate over {splits} a line{lines.holding}. {_lengths(lines)}"
    )
    return Picture(f"roc_{half}_{lines.name}", figure, caption)


def _lengths(lines: Along) -> str:
    """What the shortest and the longest list are."""
    ends: dict[str, list[str]] = {}
    for data, row in lines.rows.items():
        values = list(dict.fromkeys([*list(row)[:1], *list(row)[-1:]]))
        ends.setdefault(" and ".join(str(value) for value in values), []).append(data)
    told = [f"K = {ks}{'' if len(ends) == 1 else ' of ' + ', '.join(data)}" for ks, data in ends.items()]
    return f"Shortest and longest list: {'; '.join(told)}."
