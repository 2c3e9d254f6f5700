"""Pictures of ranked lists and of searches, as matplotlib figures that belong to no window."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_NEGATIVE, _POSITIVE = "#dfe3e8", "#b5341c"
_BEFORE, _AFTER, _CHANCE = "#5b6770", "#1f6fb2", "#9aa3ab"
INCUMBENT, BOUND = "#0072b2", "#d55e00"
"""Colours of the best value known and of the bound."""


class Picture(Figure):
    """A figure that notebooks show without pyplot."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure of that size in inches."""
    figure = Picture(figsize=(width, height), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    return figure


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

    The figure is small, its letters large: TensorBoard shows it a third of a page wide. Of many lists, a place has the
    share of them with a positive there.

    Args:
        title: name of the list, such as "training set".
        before: 1 for a positive and 0 for a negative, from the top of the list, ordered by the base ranker, shape (n,).
        after: the same after reranking, shape (n,); None for a picture of one order.
        reranked: number of reranked positions.
        base: name of the base ranker.
        statistic: name of the statistic.
        values: the statistic of each order, None where it is undefined.
        k: number of first rows whose positives are counted in the legend; None for none.
        share: share of positives in the whole set, for the line of an order by chance; None for no line.
        shown: number of first rows to draw; None for twice as many as are reranked, and at least 40.
    """
    orders = {base: before} if after is None else {base: before, "reranked": after}
    figure = canvas(6.4, 5.4 if after is not None else 4.4)
    strips, curve = figure.subplots(2, 1, height_ratios=[0.5 * len(orders), 1.9], sharex=True)
    shown = min(len(before), max(2 * reranked, 40) if shown is None else shown)
    picture = np.stack([labels[:shown] for labels in orders.values()])
    colours = LinearSegmentedColormap.from_list("labels", [_NEGATIVE, _POSITIVE])
    extent = (0.5, shown + 0.5, len(orders) - 0.5, -0.5)
    strips.imshow(picture, aspect="auto", cmap=colours, vmin=0, vmax=1, interpolation="nearest", extent=extent)
    for at in range(1, len(orders)):
        strips.axhline(at - 0.5, color="white", linewidth=4)
    strips.set_yticks(range(len(orders)), [name.replace("_", "\n") for name in orders], fontsize=11)
    strips.legend(
        handles=[Patch(color=_POSITIVE, label="positive"), Patch(color=_NEGATIVE, label="negative")],
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=11,
    )  # fmt: skip
    strips.tick_params(length=0)
    for side in strips.spines.values():
        side.set_visible(False)
    visited = np.arange(shown + 1)
    for (name, labels), colour in zip(orders.items(), (_BEFORE, _AFTER), strict=False):
        label = name if k is None else f"{name}: {_count(labels[:k])} in the first {k}"
        caught = np.cumsum([0, *labels[:shown]])
        curve.step(visited, caught, where="post", color=colour, label=label, linewidth=1.8)
    if share is not None:
        curve.plot([0, shown], [0, share * shown], color=_CHANCE, linewidth=1.2, linestyle=":", label="by chance")
    curve.set_xlabel("if you visit so many rows from the top ...", fontsize=11)
    curve.set_ylabel("... you catch so many positives", fontsize=11)
    curve.set_xlim(0.5, shown + 0.5)
    curve.set_ylim(bottom=0)
    curve.yaxis.set_major_locator(MaxNLocator(integer=True))
    curve.grid(alpha=0.25)
    curve.spines[["top", "right"]].set_visible(False)
    if 0 < reranked < shown:
        cut = {"color": "black", "linestyle": "--", "linewidth": 1.2}
        strips.axvline(reranked + 0.5, **cut)
        curve.axvline(reranked + 0.5, **cut, label=f"end of the reranked top {reranked}")
    curve.legend(loc="lower right", fontsize=10, edgecolor="none", framealpha=0.9)
    known = [f"{value:.4f}" if abs(value) < 1000 else f"{value:.1f}" for value in values if value is not None]
    change = f": {statistic} {' → '.join(known)}" if len(known) == len(values) else ""
    figure.suptitle(f"{title}{change}", fontsize=14)
    return figure


def _count(labels: NDArray[np.int64] | FloatArray) -> str:
    total = float(labels.sum())
    return f"{total:.0f}" if total.is_integer() else f"{total:.2f}"


def draw_trace(axes: Axes, seconds: Sequence[float] | FloatArray, incumbent: FloatArray, bound: FloatArray) -> None:
    """Draw the best value known and the bound over time, as steps."""
    axes.fill_between(seconds, incumbent, bound, step="post", color="#eef1f4", linewidth=0)
    axes.step(seconds, bound, where="post", color=BOUND, linewidth=1.7, label="bound")
    axes.step(seconds, incumbent, where="post", color=INCUMBENT, linewidth=1.7, label="incumbent")


def trace_figure(title: str, points: Sequence[tuple[float, float, float]]) -> Figure:
    """Draw the search for the best weights: how the best value known rises and the bound falls.

    Args:
        title: what to write above.
        points: seconds, best value and bound, ascending in time; values that are not finite are left out.
    """
    drawn = [point for point in points if math.isfinite(point[1]) and math.isfinite(point[2])]
    figure = canvas(6.4, 3.6)
    axes = figure.subplots()
    if drawn:
        seconds, incumbent, bound = np.array([*drawn, (max(drawn[-1][0], 1e-3) * 1.03, *drawn[-1][1:])]).T
        draw_trace(axes, seconds, incumbent, bound)
        axes.legend(frameon=False, fontsize=10)
    axes.set_xlabel("seconds")
    axes.set_ylabel("objective")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=12)
    return figure
