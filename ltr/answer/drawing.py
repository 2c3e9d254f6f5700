"""Figures of pages as SVG in HTML: axes, and the figure with its legend; colours are those of the page's style."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

__all__ = ["ABOVE", "BELOW", "HEIGHT", "LEFT", "RIGHT", "WIDTH", "figure", "round_ticks", "scale", "ticks_below",
           "ticks_left", "upright"]  # fmt: skip

WIDTH, HEIGHT, LEFT, RIGHT, ABOVE, BELOW = 360, 230, 40, 18, 10, 40
"""Size of a figure, and of the space around what is drawn."""


def scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    """Return the linear map of values from low to high to places from begin to end."""
    return lambda value: begin + (end - begin) * (value - low) / (high - low)


def round_ticks(most: float, *, whole: bool = False) -> list[float]:
    """Return round numbers, three to five steps from 0 up to `most`; whole numbers if so asked.

    Examples:
        >>> round_ticks(9.0), round_ticks(60, whole=True)
        ([0.0, 2.0, 4.0, 6.0, 8.0], [0, 20, 40, 60])
    """
    power = 10.0 ** math.floor(math.log10(most / 4))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= most / 4.5)
    step = max(1, math.ceil(step)) if whole else step
    return [step * at for at in range(int(most / step + 1e-9) + 1)]


def ticks_left(y: Callable[[float], float], ticks: Sequence[float], text: Callable[[float], str]) -> list[str]:
    """Return lines of a grid at some values of the vertical axis, and these values in words."""
    return [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        f'<text class="right" x="{LEFT - 4}" y="{y(tick) + 4:.1f}">{text(tick)}</text>'
        for tick in ticks
    ]


def ticks_below(
    x: Callable[[float], float], ticks: Sequence[float], high: float, height: float, name: str
) -> list[str]:
    """Return lines of a grid at some values of the horizontal axis, these values, and the name of the axis."""
    parts = []
    for tick in dict.fromkeys(ticks):
        text = f"{tick:,}" if isinstance(tick, int) else f"{tick:.3g}"
        parts.append(
            f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{ABOVE}" y2="{ABOVE + high:.1f}"/>'
            f'<text class="middle" x="{x(tick):.1f}" y="{ABOVE + high + 15:.1f}">{text}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, f'<text class="middle" x="{middle:.0f}" y="{height - 6:.0f}">{escape(name)}</text>']


def upright(x: float, high: float) -> str:
    """Return the upright line at what was planned."""
    return f'<line class="plan" x1="{x:.1f}" x2="{x:.1f}" y1="{ABOVE}" y2="{ABOVE + high:.1f}"/>'


def figure(
    parts: Sequence[str], height: float, legend: Sequence[tuple[str, str]], caption: str, label: str = ""
) -> str:
    """Return a figure of these parts, with shapes and texts of its legend; `label` describes it to screen readers."""
    keys = "".join(
        f'<li><svg class="key" viewBox="0 0 24 8" aria-hidden="true">{shape}</svg>{escape(text)}</li>'
        for shape, text in legend
    )
    said = escape(label or caption)
    return (
        f'<figure><svg class="curve" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{said}">{"".join(parts)}'
        f'</svg><figcaption><ul class="keys">{keys}</ul>{escape(caption)}</figcaption></figure>'
    )
