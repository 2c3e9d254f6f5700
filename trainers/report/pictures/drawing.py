"""One look for all pictures of a report: sizes, colours, panels in a grid, legends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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

__all__ = [
    "GREY",
    "HALVES",
    "INK",
    "NAMES",
    "NEGATIVE",
    "POSITIVE",
    "SMALL",
    "canvas",
    "dress",
    "entry",
    "gap_axis",
    "legend",
    "log_time",
    "method_looks",
    "name_axes",
    "panels",
    "percent",
    "shades",
    "ticks",
]

INK, GREY = "#22272c", "#6f7a85"
POSITIVE, NEGATIVE = "#b5341c", "#dfe3e8"
NAMES = {"train": "training half", "test": "test half"}
HALVES = {"train": "#0072b2", "test": "#d55e00"}
"""Colours of the halves (of Okabe and Ito's palette, safe for the colour-blind)."""
TITLE, SMALL = 10.0, 8.5
"""Sizes of letters."""

_WIDTH = 6.4  # inches: what is shown 900 pixels wide has letters of 17 pixels
_ENTRY, _LETTER = 0.5, 0.078  # inches: of a legend, the line or marker of an entry, and a letter of its label
_COLOURS = ("#e69f00", "#009e73", "#cc79a7", "#d55e00", "#8c6d31", "#56b4e9")
_MARKERS = ("^", "D", "v", "P", "X", "<")


def canvas(height: float) -> Figure:
    """An empty figure of the usual width.

    Args:
        height: in inches.
    """
    figure = Figure(figsize=(_WIDTH, height), layout="constrained", dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def panels(
    titles: Sequence[str],
    *,
    height: float = 1.85,
    foot: float = 0.6,
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel a title, at most three in a row.

    Args:
        titles: of the panels.
        height: of a row, in inches.
        foot: what is kept for a legend and the name of the axis.
    """
    columns = 2 if len(titles) in (2, 4) else min(len(titles), 3)
    rows = math.ceil(len(titles) / columns)
    height = height if columns == 3 else 1.25 * height
    figure = canvas(height * rows + foot)
    grid = figure.subplots(rows, columns, squeeze=False)
    every = list(grid.flat)
    for axes, title in zip(every, titles, strict=False):
        dress(axes, title)
    for axes in every[len(titles) :]:
        axes.remove()
    return figure, every[: len(titles)]


def dress(axes: Axes, title: str = "") -> None:
    """The look of a panel."""
    axes.set_title(title, fontsize=TITLE, color=INK, loc="left", pad=4)
    axes.tick_params(labelsize=SMALL, colors=INK, length=2.5, width=0.6)
    axes.grid(color="#e4e7ea", linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#a9b1b8")


def name_axes(figure: Figure, *, x: str = "", y: str = "") -> None:
    """Names of the axes that all panels have in common."""
    for write, text in ((figure.supxlabel, x), (figure.supylabel, y)):
        if text:
            write(text, fontsize=SMALL + 0.5, color=INK)


def legend(figure: Figure, handles: Iterable[Artist]) -> None:
    """One legend for all panels, above them, as many entries side by side as there is room for.

    Args:
        figure: that has the panels.
        handles: with labels.
    """
    shown = list(handles)
    columns = _columns([str(handle.get_label()) for handle in shown])
    figure.legend(
        handles=shown, loc="outside upper center", ncols=columns, frameon=False, fontsize=SMALL + 0.5,
        handlelength=1.6, columnspacing=1.4, labelcolor=INK,
    )  # fmt: skip


def _columns(labels: Sequence[str]) -> int:
    """How many columns of a legend fit, which is filled column by column.

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
    """An entry of a legend, looking as given."""
    return Line2D([], [], label=label, **look)


def shades(count: int) -> list[str]:
    """Shades of blue, from light to dark, for the lengths of the list that the exact stage reranks."""
    return [to_hex(colour) for colour in matplotlib.colormaps["Blues"](np.linspace(0.48, 1.0, count))]


def method_looks(methods: Sequence[str], base: str | None) -> Mapping[str, tuple[str, str]]:
    """Colour and marker of each first-stage method; the base ranker is a dark square.

    Args:
        methods: names.
        base: that of the base ranker.
    """
    others = [method for method in methods if method != base]
    looks = {method: (_COLOURS[at % len(_COLOURS)], _MARKERS[at % len(_MARKERS)]) for at, method in enumerate(others)}
    return looks if base is None else {base: ("#3b4148", "s"), **looks}


def log_time(axes: Axes, first: float, last: float) -> None:
    """A logarithmic axis of seconds, a tick every power of ten, or of a hundred where there are many."""
    axes.set_xscale("log")
    axes.set_xlim(first, last * 1.15)
    decades = math.log10(last / first)
    axes.xaxis.set_major_locator(LogLocator(base=10.0 if decades <= 3 else 100.0))
    axes.xaxis.set_minor_locator(LogLocator(base=10.0))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def ticks(axis: Any, most: int = 4) -> None:  # noqa: ANN401
    """Ticks at round numbers.

    Args:
        axis: of a panel.
        most: how many intervals between them, at most.
    """
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))


def gap_axis(axis: Any, floor: float, top: float, *, most: int = 9) -> None:  # noqa: ANN401
    """A logarithmic axis of gaps in percent, whose floor stands for 0: proven.

    Args:
        axis: of a panel, whose scale is logarithmic.
        floor: where the gap of 0 is drawn, in percent.
        top: the largest gap.
        most: how many powers of ten have a tick; of more, every second one has.
    """
    powers = [10.0**power for power in range(math.ceil(math.log10(floor * 2)), math.floor(math.log10(top)) + 1)]
    if len(powers) > most:
        powers = [power for power in powers[::-2] if power > 10 * floor]
    axis.set_major_locator(FixedLocator([floor, *powers]))
    axis.set_major_formatter(FixedFormatter(["proven", *(percent(power) for power in powers)]))
    axis.set_minor_locator(FixedLocator([]))


def percent(value: float) -> str:
    """A percentage for a tick.

    Examples:
        >>> percent(0.1), percent(10.0)
        ('0.1%', '10%')
    """
    return f"{value:g}%"
