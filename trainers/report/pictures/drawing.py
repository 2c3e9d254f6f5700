"""The common look of a report's pictures: sizes, colours, panels in a grid, legends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

INK, GREY = "#22272c", "#6f7a85"
POSITIVE, NEGATIVE = "#b5341c", "#dfe3e8"
NAMES = {"train": "training set", "test": "test set"}
COLOURS = {"train": "#0072b2", "test": "#d55e00"}
"""Colours of the training and test sets (from Okabe and Ito's palette, safe for the colour-blind)."""
TITLE, SMALL = 10.0, 8.5
"""Font sizes."""
LOOKS = (("#e69f00", "^"), ("#009e73", "D"), ("#cc79a7", "v"), ("#d55e00", "P"), ("#8c6d31", "X"), ("#56b4e9", "<"))
"""Colours and markers of first-stage methods."""

_WIDTH = 6.4  # inches; shown 900 pixels wide, letters have 17 pixels
_ENTRY, _LETTER = 0.5, 0.078  # inches of a legend's marker and of a letter of its label
_POWERS = 9  # powers of ten with a tick on an axis of gaps; where there are more, every second one has one


def canvas(height: float) -> Figure:
    """Return an empty figure of the usual width and this height in inches."""
    figure = Figure(figsize=(_WIDTH, height), layout="constrained", dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def panels(titles: Sequence[str], *, height: float = 1.85, foot: float = 0.6) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each title, at most three in a row; sizes are in inches."""
    columns = 2 if len(titles) in (2, 4) else min(len(titles), 3)
    rows = math.ceil(len(titles) / columns)
    figure = canvas((height if columns == 3 else 1.25 * height) * rows + foot)
    every = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, title in zip(every, titles, strict=False):
        dress(axes, title)
    for axes in every[len(titles) :]:
        axes.remove()
    return figure, every[: len(titles)]


def dress(axes: Axes, title: str = "") -> None:
    """Give a panel its look."""
    axes.set_title(title, fontsize=TITLE, color=INK, loc="left", pad=4)
    axes.tick_params(labelsize=SMALL, colors=INK, length=2.5, width=0.6)
    axes.grid(color="#e4e7ea", linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#a9b1b8")


def name_axes(figure: Figure, *, x: str = "", y: str = "") -> None:
    """Name the axes that all panels share."""
    for write, text in ((figure.supxlabel, x), (figure.supylabel, y)):
        if text:
            write(text, fontsize=SMALL + 0.5, color=INK)


def legend(figure: Figure, handles: Iterable[Artist]) -> None:
    """Draw one legend above all panels, with as many entries side by side as there is room for."""
    shown = list(handles)
    figure.legend(
        handles=shown, loc="outside upper center", ncols=_columns([str(handle.get_label()) for handle in shown]),
        frameon=False, fontsize=SMALL + 0.5, handlelength=1.6, columnspacing=1.4, labelcolor=INK,
    )  # fmt: skip


def _columns(labels: Sequence[str]) -> int:
    """Return how many columns of a legend fit; a legend is filled column by column.

    Examples:
        >>> _columns(["bound", "incumbent", "best"]), _columns(["a long label that takes a line"] * 3)
        (3, 2)
    """
    for columns in range(len(labels), 1, -1):
        parts = np.array_split(np.array([len(label) for label in labels]), columns)
        if sum(_ENTRY + _LETTER * part.max() for part in parts) <= _WIDTH:
            return columns
    return 1


def entry(label: str, **look: Any) -> Line2D:  # noqa: ANN401
    """Return an entry of a legend with the given look."""
    return Line2D([], [], label=label, **look)


def shades(count: int) -> list[str]:
    """Return shades of blue from light to dark, for the lengths of the reranked list."""
    return [to_hex(colour) for colour in matplotlib.colormaps["Blues"](np.linspace(0.48, 1.0, count))]


def log_time(axes: Axes, first: float, last: float) -> None:
    """Make a logarithmic axis of seconds, with ticks at powers of ten, or of a hundred where there are many."""
    axes.set_xscale("log")
    axes.set_xlim(first, last * 1.15)
    axes.xaxis.set_major_locator(LogLocator(base=10.0 if math.log10(last / first) <= 3 else 100.0))
    axes.xaxis.set_minor_locator(LogLocator(base=10.0))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def ticks(axis: Any, most: int = 4) -> None:  # noqa: ANN401
    """Put ticks at round numbers, with at most so many intervals between them."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))


def gap_axis(axis: Any, floor: float, top: float) -> None:  # noqa: ANN401
    """Put ticks on a logarithmic axis of gaps in percent, whose floor, the gap 0, is labelled ``proven``."""
    powers = [10.0**power for power in range(math.ceil(math.log10(floor * 2)), math.floor(math.log10(top)) + 1)]
    if len(powers) > _POWERS:
        powers = [power for power in powers[::-2] if power > 10 * floor]
    axis.set_major_locator(FixedLocator([floor, *powers]))
    axis.set_major_formatter(FixedFormatter(["proven", *(f"{power:g}%" for power in powers)]))
    axis.set_minor_locator(FixedLocator([]))
