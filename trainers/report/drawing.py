"""The common look of a report's pictures: sizes, colours, panels in a grid, legends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ltr.display.figures import canvas
from ltr.display.pictures import FAINT, INK, SMALL, TEST, TITLE, TRAINING, WIDTH, fonts, shortened

NAMES = {"train": "training set", "test": "test set"}
COLOURS = {"train": TRAINING, "test": TEST}
"""Colours of the training and test sets."""

_LETTER = 0.0085  # inches of a letter for each point of its size


def panels(titles: Sequence[str], *, height: float = 1.8, foot: float = 0.6) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each title, at most two in a row; sizes are in inches."""
    columns = min(len(titles), 2)
    rows = math.ceil(len(titles) / columns)
    figure = canvas((height if columns == 2 else 1.4 * height) * rows + foot)
    every = list(figure.subplots(rows, columns, squeeze=False).flat)
    room = int(WIDTH / columns / (_LETTER * TITLE)) - 3
    with fonts():
        for axes, title in zip(every, titles, strict=False):
            dress(axes, shortened(title, room))
    for axes in every[len(titles) :]:
        axes.remove()
    return figure, every[: len(titles)]


def dress(axes: Axes, title: str = "") -> None:
    """Give a panel its look."""
    axes.set_title(title, fontsize=TITLE, color=INK, loc="left", pad=4, parse_math=False)
    axes.tick_params(labelsize=SMALL, colors=INK, length=2.5, width=0.6)
    axes.grid(color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#a9b1b8")


def name_axes(figure: Figure, *, x: str = "", y: str = "") -> None:
    """Name the axes that all panels share."""
    for write, text in ((figure.supxlabel, x), (figure.supylabel, y)):
        if text:
            write(text, fontsize=SMALL, color=INK)


def legend(figure: Figure, handles: Iterable[Artist]) -> None:
    """Draw one legend above all panels, two entries side by side."""
    figure.legend(
        handles=list(handles), loc="outside upper center", ncols=2, frameon=False, fontsize=SMALL, handlelength=1.6,
        columnspacing=1.4, labelcolor=INK,
    )  # fmt: skip


def entry(label: str, **look: Any) -> Line2D:  # noqa: ANN401
    """Return an entry of a legend with the given look."""
    return Line2D([], [], label=label, **look)


def ticks(axis: Any) -> None:  # noqa: ANN401
    """Put few ticks, at round numbers."""
    axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))
