"""The counterexample to the sufficiency of Subranks, drawn."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from trainers.report.pictures.drawing import INK, POSITIVE, SMALL, canvas, dress, entry, legend

from .sufficiency import Case

__all__ = ["counterexample"]

_NEGATIVE = "#3b4148"
_LOOKS = {"ResolvedRank": "#0072b2", "Subrank": "#e69f00"}
_DIRECTIONS = 1440  # no multiple of them is exactly an axis


def counterexample(case: Case) -> Figure:
    """The observations of a list of two features, and both objectives against the direction of w."""
    figure = canvas(2.9)
    plane, around = figure.subplots(1, 2, width_ratios=[1.0, 1.9])
    _draw_plane(plane, case)
    _draw_objectives(around, case)
    points = [
        entry("positive", color=POSITIVE, marker="o", linestyle="", markersize=5),
        entry("negative", color=_NEGATIVE, marker="o", linestyle="", markersize=5),
    ]
    lines = [entry(f"by {name}s", color=colour, linewidth=1.6) for name, colour in _LOOKS.items()]
    legend(figure, [*points, *lines, entry("optimum", color=INK, marker="*", linestyle="", markersize=8)])
    return figure


def _draw_plane(axes: Axes, case: Case) -> None:
    dress(axes, "the list")
    for (first, second), label in zip(case.resolved.X, case.resolved.y, strict=True):
        axes.plot(first, second, "o", color=POSITIVE if label else _NEGATIVE, markersize=6)
        axes.annotate(
            f"({first:g}, {second:g})".replace("-", "−"), (first, second), (0, 6), textcoords="offset points",
            ha="center", fontsize=SMALL - 1,
        )  # fmt: skip
    axes.set_xlim(-0.45, 1.45)
    axes.set_ylim(-0.85, 1.4)
    axes.xaxis.set_major_locator(MultipleLocator(0.5))
    axes.yaxis.set_major_locator(MultipleLocator(0.5))
    axes.set_xlabel("first feature", fontsize=SMALL, color=INK)
    axes.set_ylabel("second feature", fontsize=SMALL, color=INK)


def _draw_objectives(axes: Axes, case: Case) -> None:
    dress(axes, "the objective against the direction of w")
    angles = (np.arange(_DIRECTIONS) + 0.5) * 360 / _DIRECTIONS - 90
    axial = np.array([-90, 0, 90, 180])
    for (name, colour), problem, answer, shift in zip(
        _LOOKS.items(), (case.resolved, case.subrank), (case.best, case.substitute), (0.004, -0.004), strict=True
    ):
        values = np.array([problem.evaluate(_direction(angle)) for angle in angles])
        jumps = np.flatnonzero(np.abs(np.diff(values)) > 1e-9)
        axes.plot(np.insert(angles, jumps + 1, angles[jumps]), np.insert(values, jumps + 1, np.nan) + shift,
                  color=colour, linewidth=1.8)  # fmt: skip
        at_axes = [problem.evaluate(_axis(angle)) for angle in axial]
        axes.plot(axial, at_axes, "o", color=colour, markersize=8 if name == "ResolvedRank" else 4.5)
        best = float(np.degrees(np.arctan2(answer.weights[1], answer.weights[0])))
        axes.plot(best, answer.value, "*", color=colour, markersize=13, markeredgecolor=INK, zorder=5)
    axes.set_xlim(-98, 188)
    axes.margins(y=0.12)
    axes.set_xticks(axial, ["(0, −1)", "(1, 0)", "(0, 1)", "(−1, 0)"])
    axes.set_xlabel("w; dots where one weight is 0 and free of its price", fontsize=SMALL, color=INK)


def _direction(angle: float) -> list[float]:
    return [float(np.cos(np.radians(angle))), float(np.sin(np.radians(angle)))]


def _axis(angle: int) -> list[float]:
    """A direction along an axis, with an exact 0."""
    return [float(round(v)) for v in _direction(angle)]
