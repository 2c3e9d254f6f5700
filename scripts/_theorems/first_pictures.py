"""Theorem 1 in pictures: the data, who prefers what, and the losses along the one weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from ltr.data import Dataset
from ltr.losses import parse_loss
from trainers.report.pictures.drawing import GREY, INK, POSITIVE, SMALL, canvas, dress, entry, legend

from .preferences import CLAIMS, Comparison, scores_and_labels

__all__ = ["loss_curves", "who_prefers_what"]

_NEGATIVE = "#3b4148"
_SOLUTIONS = {1: "#0072b2", 2: "#d55e00"}
_CURVES = {
    "exponential": "#d55e00",
    "p_norm_push(p=2)": "#cc79a7",
    "squared_hinge": "#e69f00",
    "hinge": "#0072b2",
    "ranknet": "#009e73",
}
_LARGEST, _POINTS = 1.3, 105  # weight that is drawn, and how many


def who_prefers_what(data: Dataset, comparisons: Sequence[Comparison]) -> Figure:
    """The data on its line, and beside it by how much each statistic and loss prefers which solution."""
    figure = canvas(4.9)
    line, chart = figure.subplots(1, 2, width_ratios=[1.0, 1.75])
    _draw_data(line, data)
    _draw_preferences(chart, comparisons)
    legend(
        figure,
        [
            entry("positive", color=POSITIVE, marker="o", linestyle="", markersize=4),
            entry("negative", color=_NEGATIVE, marker="o", linestyle="", markersize=4),
            entry("named by the theorem", color=GREY, marker="o", linestyle=""),
            entry("not named", color=GREY, marker="o", markerfacecolor="white", linestyle=""),
        ],
    )
    return figure


def _draw_data(axes: Axes, data: Dataset) -> None:
    dress(axes, "the data")
    x, positive = data.X[:, 0], data.y == 1
    across = np.random.default_rng(0).uniform(0.0, 1.0, data.n)
    for chosen, colour in ((~positive, _NEGATIVE), (positive, POSITIVE)):
        axes.plot(across[chosen], x[chosen], "o", color=colour, markersize=1.4, markeredgewidth=0)
    for label in (0, 1):
        own = np.sort(x[data.y == label])
        for clump in np.split(own, np.flatnonzero(np.diff(own) > 0.5) + 1):
            what = "positives" if label else "negatives"
            at = float(np.mean(clump))
            axes.annotate(
                f"{len(clump):,} {what}", (1.06, at), fontsize=SMALL, va="center", color=(_NEGATIVE, POSITIVE)[label]
            )
    top, bottom = x.max() + 1.2, x.min() - 1.2
    for place, solution, (start, end) in ((0.3, 1, (top, bottom)), (0.7, 2, (bottom, top))):
        arrow = {"arrowstyle": "-|>", "color": _SOLUTIONS[solution], "linewidth": 1.6}
        axes.annotate("", (place, end * 0.55 + start * 0.45), (place, start * 0.55 + end * 0.45), arrowprops=arrow)
        axes.text(
            place, (top + bottom) / 2 - 1.3, f"Solution {solution}", rotation=90, fontsize=SMALL, ha="center", va="top",
            color=_SOLUTIONS[solution],
        )  # fmt: skip
    axes.set_xlim(-0.05, 2.25)
    axes.set_ylim(bottom, top)
    axes.set_ylabel("x", fontsize=SMALL, color=INK)
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)


def _draw_preferences(axes: Axes, comparisons: Sequence[Comparison]) -> None:
    dress(axes, "who prefers which solution")
    order = sorted(comparisons, key=lambda c: (c.kind == "loss", -_signed(c)))
    losses = sum(c.kind == "loss" for c in order)
    places = [len(order) - at - (0.0 if c.kind != "loss" else 0.9) for at, c in enumerate(order)]
    for place, comparison in zip(places, order, strict=True):
        share, colour = _signed(comparison), _SOLUTIONS[comparison.preferred or 1]
        axes.plot([0, share], [place, place], color=colour, linewidth=1.4)
        axes.plot(
            share, place, "o", color=colour, markersize=5.5,
            markerfacecolor=colour if comparison.name in CLAIMS else "white",
        )  # fmt: skip
        if abs(share) < 0.75:
            axes.annotate(
                f"{100 * abs(share):.2g}%", (share, place), (6 if share > 0 else -6, 0), textcoords="offset points",
                fontsize=SMALL - 1.5, color=GREY, va="center", ha="left" if share > 0 else "right",
            )  # fmt: skip
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(places, [c.name for c in order], fontsize=SMALL - 0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(-1.12, 1.12)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * abs(share):g}%"))
    axes.set_xlabel("← Solution 2        Solution 1 →", fontsize=SMALL, color=INK)
    for text, place in (("statistics", places[0]), ("losses", places[len(order) - losses])):
        axes.text(-1.08, place, text, fontsize=SMALL, color=GREY, va="center", style="italic")


def _signed(comparison: Comparison) -> float:
    return comparison.advantage if comparison.preferred == 1 else -comparison.advantage


def loss_curves(cases: Mapping[str, Dataset]) -> Figure:
    """Losses of the scores w x against w, as shares of their value at 0, with their smallest values.

    Args:
        cases: data sets with one feature, by what their panels are called.
    """
    figure = canvas(3.3)
    for axes, (title, data) in zip(figure.subplots(1, len(cases), sharey=True), cases.items(), strict=True):
        dress(axes, title)
        x, y = scores_and_labels(data)
        weights = np.linspace(-_LARGEST, _LARGEST, _POINTS)
        for name, colour in _CURVES.items():
            loss = parse_loss(name)
            values = torch.stack([loss(w * x, y) for w in torch.from_numpy(weights)]).numpy()
            values = values / float(loss(0 * x, y))
            axes.plot(weights, values, color=colour, linewidth=1.5)
            least = int(np.argmin(values))
            axes.plot(weights[least], values[least], "o", color=colour, markersize=5, markeredgecolor="white", zorder=4)
        for end in (-1, 1):
            axes.axvline(end, color=GREY, linewidth=0.9, linestyle=(0, (2, 2)))
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yscale("log")
        axes.set_ylim(0.25, 40)
        axes.set_yticks([0.3, 1, 3, 10, 30])
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("w   (← Solution 2 | Solution 1 →)", fontsize=SMALL, color=INK)
    figure.axes[0].set_ylabel("loss / loss at w = 0", fontsize=SMALL, color=INK)
    legend(figure, [entry(name, color=colour) for name, colour in _CURVES.items()])
    return figure
