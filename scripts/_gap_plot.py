"""The gap over time, one panel a case, one line a method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["plot"]

Json = dict[str, Any]

_LABELS = {
    "weight_space": "weight-space search",
    "hosted": "weight-space search in SCIP",
    "resolved": "SCIP, strengthened model",
    "resolved_faithful": "SCIP, the paper's model",
    "highs": "HiGHS, the paper's model",
}
_OURS = ("weight_space", "hosted")  # drawn above the others
_DASHES = {"resolved_faithful": (4, 2), "highs": (1, 1.5)}  # lines that lie on others
_COLOURS = {
    "weight_space": "#0072b2",
    "hosted": "#56b4e9",
    "resolved": "#e69f00",
    "resolved_faithful": "#d55e00",
    "highs": "#777777",
}
_FIRST, _LEAST = 1e-2, 1e-4  # seconds and gap where the axes begin


def plot(panels: Sequence[tuple[str, Sequence[Json]]], path: Path) -> None:
    """Draw the records of each case, by the case's name."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    across = min(4, len(panels))
    down = math.ceil(len(panels) / across)
    figure, axes = plt.subplots(
        down,
        across,
        figsize=(3.0 * across + 0.8, 2.5 * down + 0.7),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    handles: dict[str, Line2D] = {}
    largest = max((gap for _, records in panels for r in records for _, gap in _gaps(r)), default=1.0) or 1.0
    for axis, (name, records) in zip(axes.flat, panels, strict=False):
        for record in records:
            handles[record["method"]] = _line(axis, record)
        # shared axes: a limit left open would be that of the first panel
        axis.set(xscale="log", yscale="log", ylim=(_LEAST, 1.5 * largest))
        axis.set_title(name, fontsize=9)
        axis.grid(visible=True, color="#e5e5e5", linewidth=0.6)
        axis.tick_params(labelsize=8)
        axis.yaxis.set_major_formatter(lambda gap, _: f"{100 * gap:g}%")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.xaxis.set_major_formatter(lambda seconds, _: f"{seconds:g}")
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis in axes.flat[max(0, len(panels) - across) : len(panels)]:  # with no panel below
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("seconds", fontsize=9)
    figure.supylabel("gap (a dot: proven optimal)", fontsize=9)
    order = [method for method in _LABELS if method in handles]
    figure.legend(
        [handles[m] for m in order],
        [_LABELS[m] for m in order],
        loc="outside lower center",
        ncols=min(len(order), across),
        frameon=False,
        fontsize=9,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _line(axis: Axes, record: Json) -> Line2D:
    """The steps of one trace; where the gap closes, down to the axis and a dot."""
    points = _gaps(record)
    colour = _COLOURS[record["method"]]
    times, gaps = [t for t, _ in points], [max(gap, _LEAST) for _, gap in points]
    (line,) = axis.step(
        times, gaps, where="post", color=colour, linewidth=1.6, zorder=3 if record["method"] in _OURS else 2
    )
    line.set_dashes(_DASHES.get(record["method"], ()))
    if record["status"] == "optimal":
        axis.vlines(times[-1], _LEAST, gaps[-2] if len(gaps) > 1 else gaps[-1], color=colour, linewidth=1.6)
        axis.plot(times[-1], _LEAST, "o", color=colour, markersize=5, clip_on=False)
    return line


def _gaps(record: Json) -> list[tuple[float, float]]:
    """Seconds and gap of each point of a trace."""
    return [
        (max(seconds, _FIRST), (bound - value) / abs(value)) for seconds, value, bound, _ in record["trace"] if value
    ]
