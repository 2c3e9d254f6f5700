"""Small HTML tables by which notebooks show objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_SHOWN = 10  # bars of a table
# no colours of text or background: notebooks are light or dark
_TABLE = "border-collapse:collapse;margin:.4em 0;font-size:90%"
_CELL = "text-align:left;padding:.15em .8em .15em 0;border:0"


def number(value: float) -> str:
    """Return the text of a number, with six digits at most."""
    return f"{value:.6g}"


def fact_table(
    title: str, facts: Mapping[str, object], weights: Sequence[tuple[str, float, float]] = (), heading: str = ""
) -> str:
    """Return a table of facts by name, without those that are None or empty, and below it the largest weights as bars.

    Weights are name, number to show, and size of the bar, under a `heading`.
    """
    rows = [
        f'<tr><td style="{_CELL};opacity:.7">{escape(name)}</td><td style="{_CELL}">{escape(_text(value))}</td></tr>'
        for name, value in facts.items()
        if value is not None and _text(value)
    ]
    parts = [f"<b>{escape(title)}</b>", f'<table style="{_TABLE}">{"".join(rows)}</table>']
    kept = sorted((weight for weight in weights if weight[1]), key=lambda weight: -abs(weight[2]))
    largest = abs(kept[0][2]) if kept else 1.0
    bars = [
        f'<tr><td style="{_CELL}">{escape(name)}</td><td style="{_CELL};text-align:right">{value:+.4g}</td>'
        f'<td style="{_CELL};width:8em"><div style="height:.7em;width:{100 * abs(size) / largest:.0f}%;'
        f'background:{"#1f6fb2" if value > 0 else "#b5341c"}"></div></td></tr>'
        for name, value, size in kept[:_SHOWN]
    ]
    if bars:
        more = f", {len(kept) - _SHOWN} more not shown" if len(kept) > _SHOWN else ""
        parts.append(f'<div style="opacity:.7;font-size:90%">{escape(heading)}{more}</div>')
        parts.append(f'<table style="{_TABLE}">{"".join(bars)}</table>')
    return f"<div>{''.join(parts)}</div>"


def _text(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)
