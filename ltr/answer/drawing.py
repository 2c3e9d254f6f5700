"""Figures of pages as SVG in HTML; colours are those of the page's style."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

__all__ = ["HIGH", "Chart", "round_ticks"]

_WIDTH, _LEFT, _RIGHT, _ABOVE, _BELOW = 360, 40, 18, 10, 40  # of a figure, and the space around what is drawn
HIGH = 180
"""Usual height of what is drawn."""
_LINE, _RECT = '<line class="{}" x1="0" x2="24" y1="4" y2="4"/>', '<rect class="{}" x="0" y="1" width="24" height="6"/>'
_DOT, _UPRIGHT = '<circle class="{}" cx="12" cy="4" r="3"/>', '<line class="{}" x1="12" x2="12" y1="0" y2="8"/>'
_KEYS = {"own": _DOT, "plan": _UPRIGHT, "range": _RECT, "wider": _RECT}  # shapes in a legend; all others are lines


class Chart:
    """A figure with linear axes, whose ends are given as pairs: left and right, bottom and top.

    Classes of lines and shapes are names of the page's style.
    """

    def __init__(self, x: tuple[float, float], y: tuple[float, float], high: float = HIGH) -> None:
        self._ends, self._high, self._parts = (x, y), high, list[str]()

    def x(self, value: float) -> float:
        """Return the place of a value on the horizontal axis."""
        low, high = self._ends[0]
        return _LEFT + (_WIDTH - _RIGHT - _LEFT) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Return the place of a value on the vertical axis, from the top."""
        low, high = self._ends[1]
        return _ABOVE + self._high - self._high * (value - low) / (high - low)

    def ticks_left(self, ticks: Iterable[float], text: Callable[[float], str]) -> None:
        """Draw lines of a grid at some values of the vertical axis, and write these values."""
        for at, tick in ((self.y(tick), tick) for tick in ticks):
            ends = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"'
            self._parts.append(f'<line class="grid" {ends}/>')
            self._text("right", f"{_LEFT - 4}", f"{at + 4:.1f}", text(tick))

    def ticks_below(self, ticks: Iterable[float], name: str) -> None:
        """Draw lines of a grid at some values of the horizontal axis, write these values, and name the axis."""
        for tick in dict.fromkeys(ticks):
            self.upright(tick, "grid")
            text = f"{tick:,}" if isinstance(tick, int) else f"{tick:.3g}"
            self._text("middle", f"{self.x(tick):.1f}", f"{_ABOVE + self._high + 15:.1f}", text)
        self._text("middle", f"{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}", f"{self._height - 6:.0f}", escape(name))

    def upright(self, value: float, kind: str = "plan") -> None:
        """Draw an upright line, by default as that at what was planned."""
        at = self.x(value)
        ends = f'y1="{_ABOVE}" y2="{_ABOVE + self._high:.1f}"'
        self._parts.append(f'<line class="{kind}" x1="{at:.1f}" x2="{at:.1f}" {ends}/>')

    def line(self, kind: str, points: Iterable[tuple[float, float]]) -> None:
        """Draw a line through points."""
        places = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self._parts.append(f'<polyline class="{kind}" points="{places}"/>')

    def bar(self, kind: str, x: tuple[float, float], y: tuple[float, float], title: str) -> None:
        """Draw a bar between its left and right end, and between its bottom and top."""
        left, top = self.x(x[0]), self.y(y[1])
        place = f'x="{left:.1f}" y="{top:.1f}" width="{self.x(x[1]) - left:.1f}" height="{self.y(y[0]) - top:.1f}"'
        self._parts.append(f'<rect class="{kind}" {place}><title>{escape(title)}</title></rect>')

    def dot(self, x: float, y: float, radius: float, title: str = "") -> None:
        """Draw a dot."""
        said = f"<title>{escape(title)}</title>" if title else ""
        place = f'cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius:.1f}"'
        self._parts.append(f'<circle class="own" {place}>{said}</circle>')

    def _text(self, kind: str, x: str, y: str, text: str) -> None:
        self._parts.append(f'<text class="{kind}" x="{x}" y="{y}">{text}</text>')

    @property
    def _height(self) -> float:
        return _ABOVE + self._high + _BELOW

    def html(self, legend: Sequence[tuple[str, str]], caption: str, label: str = "") -> str:
        """Return the figure with its legend, by class and text; `label` describes it to screen readers."""
        shape = '<svg class="key" viewBox="0 0 24 8" aria-hidden="true">{}</svg>'
        keys = (f"{shape.format(_KEYS.get(kind, _LINE).format(kind))}{escape(text)}" for kind, text in legend)
        return (
            f'<figure><svg class="curve" viewBox="0 0 {_WIDTH} {self._height:.0f}" role="img" '
            f'aria-label="{escape(label or caption)}">{"".join(self._parts)}</svg><figcaption><ul class="keys">'
            f"{''.join(f'<li>{key}</li>' for key in keys)}</ul>{escape(caption)}</figcaption></figure>"
        )


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
