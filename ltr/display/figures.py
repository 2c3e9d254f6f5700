"""Pictures of ranked lists and of searches, as matplotlib figures that belong to no window."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
from html import escape

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ltr.display.pictures import FAINT, GREY, INK, NEGATIVE, POSITIVE, RERANKED, SMALL, TITLE, WIDTH, fonts, shortened

FloatArray = NDArray[np.float64]

INCUMBENT, BOUND = RERANKED, INK
"""Colours of the best value known and of the bound."""

_LETTERS = 48  # of a title or an entry of the legend


class Picture(Figure):
    """A figure that notebooks show without pyplot."""

    def _repr_png_(self) -> bytes:
        return image_of(self)


def image_of(figure: Figure, form: str = "png") -> bytes:
    """Return a figure as a file."""
    content = io.BytesIO()
    figure.savefig(content, format=form)
    return content.getvalue()


_IN_PAGES = {INK: "ink", "#000000": "ink", GREY: "faint", FAINT: "line", RERANKED: "rank"}  # names in styles of pages


def svg_of(figure: Figure, label: str) -> str:
    """Return a figure as SVG in HTML, described to screen readers; the style of a page may set its colours."""
    file, metadata = io.StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with fonts(), rc_context({"svg.hashsalt": "ltr", "svg.fonttype": "none"}):
        figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    tag, _, drawn = file.getvalue().partition("<svg")[2].partition(">")
    drawn = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", drawn, count=1, flags=re.DOTALL)  # of the whole page
    for colour, name in _IN_PAGES.items():
        drawn = drawn.replace(colour, f"var(--{name}, {colour})")
    box = re.search('viewBox="[^"]*"', tag)
    assert box is not None
    return f'<svg {box[0]} role="img" aria-label="{escape(label)}">{drawn.rstrip()}'


def captioned(figure: Figure, caption: str, label: str = "") -> str:
    """Return a figure for a page, with a caption; `label` describes it to screen readers, by default the caption."""
    return f"<figure>{svg_of(figure, label or caption)}<figcaption>{escape(caption)}</figcaption></figure>"


def canvas(height: float) -> Figure:
    """Return an empty figure of a height in inches."""
    figure = Picture(figsize=(WIDTH, height), layout="constrained", dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _label(axes: Axes, x: str, y: str) -> None:
    """Write what the axes are, and draw a grid in a frame of two sides."""
    axes.set_xlabel(x, fontsize=SMALL, parse_math=False)
    axes.set_ylabel(y, fontsize=SMALL, parse_math=False)
    axes.tick_params(labelsize=SMALL)
    axes.grid(color=FAINT)
    axes.spines[["top", "right"]].set_visible(False)


def ranked_list_figure(
    title: str,
    before: NDArray[np.int64] | FloatArray,
    after: NDArray[np.int64] | FloatArray | None,
    reranked: int,
    *,
    base: str,
    statistic: str,
    values: tuple[float | None, ...],
    k: int | None = None,
    share: float | None = None,
    shown: int | None = None,
) -> Figure:
    """Draw a list in one or two orders, as strips of labels, and the positives that the first rows of each hold.

    Args:
        title: name of the list, such as "training set".
        before, after: 1 for a positive and 0 for a negative, (n,), from the top of the list by the base ranker, and
            after reranking, None for a picture of one order; of many lists, the share of them with a positive there.
        reranked: number of reranked positions.
        base, statistic: names of the base ranker and of the statistic.
        values: the statistic of each order, None where it is undefined.
        k: number of first rows whose positives are counted in the legend.
        share: share of positives in the whole set, for the line of an order by chance.
        shown: number of first rows to draw; None for twice as many as are reranked, and at least 40.
    """
    orders = {base: before} if after is None else {base: before, "reranked": after}
    with fonts():
        figure = canvas(4.9 if after is None else 5.4)
        strips, curve = figure.subplots(2, 1, height_ratios=[0.5 * len(orders), 2.2], sharex=True)
        shown = min(len(before), max(2 * reranked, 40) if shown is None else shown)
        _draw_strips(strips, {name: labels[:shown] for name, labels in orders.items()})
        for (name, labels), colour, width in zip(orders.items(), (INK, RERANKED), (1.4, 2.0), strict=False):
            hits = "" if k is None else f": {_count(labels[:k])} in the first {k}"
            caught = np.cumsum([0, *labels[:shown]])
            label = shortened(name, _LETTERS - len(hits)) + hits
            curve.step(np.arange(shown + 1), caught, where="post", color=colour, label=label, linewidth=width)
        if share is not None:
            chance = {"color": GREY, "linewidth": 1.2, "linestyle": ":", "label": "by chance"}
            curve.plot([0, shown], [0, share * shown], **chance)
        _label(curve, "if you visit so many rows from the top ...", "... you catch so many positives")
        curve.set_xlim(0.5, shown + 0.5)
        curve.set_ylim(bottom=0)
        for axis in (curve.xaxis, curve.yaxis):
            axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
        if 0 < reranked < shown:
            cut = {"color": INK, "linestyle": "--", "linewidth": 1.0}
            strips.axvline(reranked + 0.5, **cut)
            curve.axvline(reranked + 0.5, **cut, label=f"end of the reranked top {reranked}")
        handles = curve.get_legend_handles_labels()[0]
        figure.legend(handles=handles, loc="outside lower center", fontsize=SMALL, frameon=False)
        known = [f"{value:.4f}" if abs(value) < 1000 else f"{value:.1f}" for value in values if value is not None]
        change = f"\n{statistic} {' → '.join(known)}" if len(known) == len(values) else ""
        figure.suptitle(f"{shortened(title, _LETTERS)}{change}", fontsize=TITLE, parse_math=False)
    return figure


def _draw_strips(axes: Axes, orders: dict[str, NDArray[np.int64] | FloatArray]) -> None:
    """Draw the labels of orders by name, shape (n,) each, as strips above each other."""
    colours = LinearSegmentedColormap.from_list("labels", [NEGATIVE, POSITIVE])
    labels = np.stack(list(orders.values()))
    extent = (0.5, labels.shape[1] + 0.5, len(orders) - 0.5, -0.5)
    axes.imshow(labels, aspect="auto", cmap=colours, vmin=0, vmax=1, interpolation="nearest", extent=extent)
    for at in range(1, len(orders)):
        axes.axhline(at - 0.5, color="white", linewidth=4)
    words = (re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", shortened(name, 30)) for name in orders)
    names = [textwrap.fill(text, 12) for text in words]
    axes.set_yticks(range(len(orders)), names, fontsize=SMALL, parse_math=False)
    entries = [Patch(color=POSITIVE, label="positive"), Patch(color=NEGATIVE, label="negative")]
    axes.legend(handles=entries, ncols=2, frameon=False, fontsize=SMALL, loc="lower center", bbox_to_anchor=(0.5, 1))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _count(labels: NDArray[np.int64] | FloatArray) -> str:
    total = float(labels.sum())
    return f"{total:.0f}" if total.is_integer() else f"{total:.2f}"


def trace_figure(title: str, points: Sequence[tuple[float, float, float]]) -> Figure:
    """Draw the search for the best weights: how the best value known rises and the bound falls.

    `points` are seconds, best value and bound, ascending in time; values that are not finite are left out.
    """
    drawn = [point for point in points if math.isfinite(point[1]) and math.isfinite(point[2])]
    figure = canvas(3.0)
    axes = figure.subplots()
    if drawn:
        seconds, incumbent, bound = np.array([*drawn, (max(drawn[-1][0], 1e-3) * 1.03, *drawn[-1][1:])]).T
        axes.fill_between(seconds, incumbent, bound, step="post", color="#eef1f4", linewidth=0)
        axes.step(seconds, bound, where="post", color=BOUND, linewidth=1.7, label="bound")
        axes.step(seconds, incumbent, where="post", color=INCUMBENT, linewidth=1.7, label="incumbent")
        axes.legend(frameon=False, fontsize=SMALL)
    _label(axes, "seconds", "objective")
    figure.suptitle(textwrap.fill(title, 60), fontsize=TITLE)
    return figure


def hits_figure(
    visits: Sequence[int], lines: Sequence[tuple[str, Sequence[float], str]], asked: int, each: str
) -> Figure:
    """Draw hits by number of visits: lines with a name and ``own``, ``today`` or ``chance``, and the visits planned."""
    looks = {"own": (RERANKED, "-", 2.2), "today": (INK, "--", 1.4), "chance": (GREY, ":", 1.4)}
    with fonts():
        figure = canvas(3.0)
        axes = figure.subplots()
        for name, hits, kind in reversed(lines):
            (colour, style, width), label = looks[kind], shortened(name, _LETTERS).replace("$", r"\$")
            axes.plot(visits, hits, style, color=colour, linewidth=width, label=label)
        axes.axvline(asked, color=INK, linewidth=0.8, linestyle="--")
        _label(axes, each, "hits to expect")
        axes.set(xlim=(0, None), ylim=(0, None))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(frameon=False, fontsize=SMALL, reverse=True)
    return figure


def intervals_figure(
    title: str,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    certain: NDArray[np.bool_],
    first: int | None = None,
    place: NDArray[np.int64] | None = None,
) -> Figure:
    """Draw an interval of places for each row, those with the best places on top.

    Rows go from place `low` to `high`; those that are not `certain` in a fainter colour. After the place `first` a line
    is drawn, and a dot at the `place` of each row, by which they are then ordered.
    """
    with fonts():
        figure = canvas(min(2.0 + 0.12 * len(low), 12.0))
        axes = figure.subplots()
        order = np.lexsort((high, low + high) if place is None else (high, low, place))
        for kind, shown in (("exact range", certain[order]), ("at most this wide", ~certain[order])):
            at = np.flatnonzero(shown)
            if len(at):
                rows, colour = order[at], RERANKED if kind == "exact range" else FAINT
                axes.barh(at, high[rows] - low[rows] + 1, left=low[rows] - 0.5, height=0.7, color=colour, label=kind)
        if place is not None:
            axes.scatter(place[order], np.arange(len(order)), s=6, color=INK, zorder=3, label="place of the ranker")
        if first is not None:
            axes.axvline(first + 0.5, color=INK, linewidth=1, linestyle="--", label=f"first {first}")
        axes.set(xlabel="place in the list", ylabel="rows", yticks=[], ylim=(len(low) - 0.5, -0.5))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title(shortened(title, 80), fontsize=TITLE, loc="left")
        figure.legend(fontsize=SMALL, loc="outside lower center", ncols=3, frameon=False)
    return figure


def front_figure(names: tuple[str, str], points: Sequence[tuple[float, float, float]]) -> Figure:
    """Draw the front of two statistics, whose `names` are that of the one drawn upwards first.

    `points` are second value, first value and bound of the first, which is drawn where it is not proven.
    """
    second, first, bound = np.array(points, dtype=np.float64).reshape(-1, 3).T
    with fonts():
        figure = canvas(3.4)
        axes = figure.subplots()
        axes.step(second, first, where="pre", color=INCUMBENT, linewidth=1.5)
        axes.scatter(second, first, s=18, color=INCUMBENT, zorder=3, label="reached")
        apart = bound > first + 1e-9 * np.abs(first)
        if apart.any():
            axes.vlines(second[apart], first[apart], bound[apart], color=BOUND, linewidth=1, label="at most")
        _label(axes, shortened(names[1], 60), shortened(names[0], 40))
        axes.legend(frameon=False, fontsize=SMALL)
    return figure
