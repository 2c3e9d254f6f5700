"""Cards as text, Markdown, HTML and pictures. Names from the data are escaped in each of them."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ltr.cards.card import Card, Counts, statistic_name
from ltr.display.pictures import FAINT, GREY, INK, METHODS, SMALL, TEST, TITLE, TRAINING, fonts, shortened, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_WIDTH = 80
_TICKS = 17  # most totals with a label in a picture
_SIDE_BY_SIDE = 2  # data sets beside each other in a text
_RAMP = ("#440154", "#3b528b", "#21918c", "#35a853", "#b5a000")  # of curves, the largest totals first
_MARKDOWN = re.compile(r"([\\`*_\[\]<&|$~#])")


def text(card: Card) -> str:
    """Return a card as plain text of at most 80 columns."""
    lines = [*textwrap.wrap(f"Card for {_plain(card.label)}", _WIDTH), ""]
    for name, points in _lines(card, _plain):
        *above, last = textwrap.wrap(name, _WIDTH - 10) or [""]
        lines += [*(f"  {line}" for line in above), f"  {last:<{_WIDTH - 10}}{points:>4}"]
    for begin in range(0, len(card.counts), _SIDE_BY_SIDE):
        part = card.counts[begin : begin + _SIDE_BY_SIDE]
        head = f"     rows{card.measure.partition(' ')[0]:>8}  90 % interval"
        names = [" " * (16 if card.chances else 9), *(f"{f'{_plain(counts.name):.30}':<32}" for counts in part)]
        lines += ["", "".join(names).rstrip()]
        lines += [f" total{' chance' if card.chances else ''}" + "".join(f"{head:<32}" for _ in part).rstrip()]
        for total, chance, cells in _rows(card, part):
            parts = "".join(f"  {_cell(*cell, wide=card.measure == 'effect'):<30}" for cell in cells).rstrip()
            lines.append(f"{total:>6}{f'{chance:>7}' if chance else ''}{parts}")
    facts = [line for fact in _facts(card, _plain) for line in textwrap.wrap(fact, _WIDTH)]
    return "\n".join([*lines, *([""] if facts else []), *facts])


def _cell(rows: str, found: str, interval: str, *, wide: bool) -> str:
    """Return the text of one data set in a row; intervals of effects have signs, and are wide."""
    low, _, high = interval.partition(" to ")
    if wide and interval:
        return f"{rows:>5}{found:>8}{low:>7} to {high:>6}"
    return f"{rows:>7}{found:>8}{low:>6} to {high:>5}" if interval else f"{rows:>7}"


def markdown(card: Card) -> str:
    """Return a card as Markdown."""
    lines = [f"**Card for {_in_markdown(card.label)}**", "", "| question | points |", "| --- | ---: |"]
    lines += [f"| {name} | {points} |" for name, points in _lines(card, _in_markdown)]
    if card.counts:
        heads = ["total", *(["chance"] if card.chances else [])]
        for counts in card.counts:
            heads += [f"{_in_markdown(counts.name)}: rows", card.measure, "90 % interval"]
        lines += ["", f"| {' | '.join(heads)} |", f"|{' ---: |' * len(heads)}"]
        for total, chance, cells in _rows(card, card.counts):
            every = [str(total), *([chance] if chance else []), *(text for cell in cells for text in cell)]
            lines.append(f"| {' | '.join(every)} |")
    facts = _facts(card, _in_markdown)
    return "\n".join([*lines, *(line for fact in facts for line in ("", fact))]) + "\n"


_STYLE = """\
<style>
.ltr-card { font: 15px/1.45 system-ui, sans-serif; color: #222; background: #fff; max-width: 54em }
.ltr-card table { border-collapse: collapse; margin: .8em 0 }
.ltr-card th, .ltr-card td { padding: .25em .5em; border-bottom: 1px solid #ddd; overflow-wrap: anywhere }
.ltr-card svg { width: 100%; height: auto }
@page { size: A4; margin: 15mm }
@media print { .ltr-card { font-size: 12px; max-width: none } .ltr-card tr, .ltr-card table { break-inside: avoid } }
</style>
"""
_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title></head>
<body style="margin:1.5em">
{card}</body></html>
"""


def html(card: Card, *, page: bool) -> str:
    """Return a card as HTML: a whole page, or a part of one."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown(card))
    part = f'<div class="ltr-card">\n{_STYLE}{body}{_svg_of_curves(card)}</div>\n'
    return _PAGE.format(title=escape(f"Card for {_plain(card.label)}"), card=part) if page else part


def _svg_of_curves(card: Card) -> str:
    """Return the picture of the curves of the last rows that have some; empty without any."""
    from ltr.display.figures import canvas, svg_of

    counts = [counts for counts in card.counts if counts.curves]
    if not counts:
        return ""
    with fonts():
        drawn = canvas(2.6)
        _draw_curves(drawn.subplots(), counts[-1])
    return svg_of(drawn, "Share of rows without an event over time, by total")


def figure(card: Card) -> Figure:
    """Return a card and the share of positives by total as a figure."""
    from ltr.display.figures import canvas

    names = [(wrapped(name, 44, lines=4), points) for name, points in _lines(card, _plain)]
    facts = [line for fact in _facts(card, _plain) for line in textwrap.wrap(fact, 68)]
    high = 0.5 + sum(0.08 + 0.17 * (1 + name.count("\n")) for name, _ in names) + 0.15 * len(facts)
    curves = [counts for counts in card.counts if counts.curves]
    heights = [high, *[2.6] * bool(card.counts), *[2.6] * bool(curves)]
    with fonts():
        drawn = canvas(sum(heights) + 0.3)
        above, *below = drawn.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        above.set_axis_off()
        above.set(xlim=(0, 1), ylim=(high, 0))
        title = shortened(f"Card for {_plain(card.label)}", 42)
        above.set_title(title, loc="left", fontsize=TITLE, fontweight="bold", parse_math=False)
        place = 0.1
        for name, points in names:
            above.text(0.0, place, name, va="top", fontsize=SMALL, parse_math=False)
            above.text(1.0, place, points, va="top", ha="right", fontsize=SMALL, fontweight="bold")
            place += 0.08 + 0.17 * (1 + name.count("\n"))
            above.axhline(place - 0.05, color=FAINT, linewidth=0.8)
        above.text(0.0, place + 0.08, "\n".join(facts), va="top", fontsize=SMALL - 2, color=GREY, parse_math=False)
        if card.counts:
            _draw_shares(below[0], card)
        if curves:
            _draw_curves(below[1], curves[-1])
    return drawn


def _draw_shares(axes: Axes, card: Card) -> None:
    """Draw what the card tells of the rows with each total, with its interval."""
    totals = _totals(card.counts)[::-1]
    step = 0.8 / len(card.counts)
    for number, counts in enumerate(card.counts):
        found = [(at, *one) for at, total in enumerate(totals) if (one := counts.estimate(total)) is not None]
        places, shares, low, high = np.array(found, dtype=np.float64).reshape(-1, 4).T
        x, ends = places + (number - (len(card.counts) - 1) / 2) * step, np.maximum(0.0, [shares - low, high - shares])
        label = shortened(_plain(counts.name), 24).replace("$", r"\$")
        axes.bar(x, shares, 0.92 * step, color=(TRAINING, TEST, *METHODS)[number % 9], label=label)
        axes.errorbar(x, shares, ends, fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5)
    shown = range(0, len(totals), 1 + len(totals) // _TICKS)
    axes.set_xticks(shown, [str(totals[at]) for at in shown])
    what = {"share": "share of positives", "effect": "effect of the treatment"}.get(card.measure, card.measure)
    if card.measure == "effect":
        axes.axhline(0.0, color=INK, linewidth=0.8)
    else:
        axes.set(ylim=(0, 1))
    _dress(axes, "total", f"{what},\n90 % interval", SMALL)


def _draw_curves(axes: Axes, counts: Counts) -> None:
    """Draw the share without an event over time, by groups of totals."""
    for number, curve in enumerate(counts.curves):
        colour = _RAMP[number * (len(_RAMP) - 1) // max(1, len(counts.curves) - 1)]
        low, high = curve.totals
        label = f"total {low if low == high else f'{low} to {high}'} ({curve.rows:,} rows)"
        axes.step(curve.times, curve.shares, where="post", color=colour, label=label)
    axes.set(ylim=(0, 1.02), xlim=(0, None))
    _dress(axes, "time", f"without event,\n{shortened(_plain(counts.name), 24)} rows", SMALL - 2)


def _dress(axes: Axes, x: str, y: str, letters: float) -> None:
    """Name the axes, and draw a legend above them with letters of a size."""
    axes.tick_params(labelsize=SMALL)
    axes.set_xlabel(x, fontsize=SMALL)
    axes.set_ylabel(y, fontsize=SMALL, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=letters)


def _lines(card: Card, escaped: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return the questions of a card and their points as texts."""
    return [(escaped(q.name), f"{p:+d}") for q, p in zip(card.questions, card.points, strict=True)]


def _totals(counts: Sequence[Counts]) -> list[int]:
    return sorted({total for part in counts for total in part.totals}, reverse=True)


def _shares(counts: Counts, total: int, measure: str) -> tuple[str, str, str]:
    """Return the number of rows with a total, what happened to them and its interval as texts."""
    rows, found = str(counts.rows_of(total)), counts.estimate(total)
    if found is None:
        return rows, "", ""
    if measure != "effect":
        numbers, unit = [f"{100 * number:.0f}" for number in found], " %"
    elif all(abs(number) <= 1 for number in found):
        numbers, unit = [f"{100 * number:+.0f}".replace("-0", "0") for number in found], " %"
    else:
        numbers, unit = [f"{number:+.3g}" for number in found], ""
    return rows, numbers[0] + unit, f"{numbers[1]} to {numbers[2]}{unit}"


def _rows(card: Card, counts: Sequence[Counts]) -> Iterator[tuple[int, str, list[tuple[str, str, str]]]]:
    """Yield each total with its chance as text, empty for a card without, and what `_shares` says of each data set."""
    totals = _totals(counts)
    chances = [f"{100 * chance:.0f} %" for chance in card.chance(totals)] if card.chances else [""] * len(totals)
    for total, chance in zip(totals, chances, strict=True):
        yield total, chance, [_shares(part, total, card.measure) for part in counts]


def _facts(card: Card, escaped: Callable[[str], str]) -> list[str]:
    """Return sentences about the card."""
    name, sign = statistic_name(card.statistic), 1 if card.intercept is None else -1
    own, other = (
        ", ".join(f"{sign * value:.4g} on {of} rows" for of, value in found if value is not None)
        for found in ([(one.name, one.value) for one in card.counts], [(one.name, one.beside) for one in card.counts])
    )
    told = {
        "event": f"{card.measure}: the share of rows with their event until then, by Kaplan and Meier",
        "effect": "effect: the mean outcome of treated rows minus that of the others",
    }.get(card.measure.partition(" ")[0], "")
    if card.intercept is not None:
        told = f"chance: 1 / (1 + exp(-(intercept + total))), with the intercept {card.intercept}"
    elif card.chances:
        rows = card.counts[0].name
        told = f"chance: the share of positives among {rows} rows, where it does not fall as totals rise"
    facts = [told, f"{name} {own}" if own else "", f"{card.beside}: {name} {other}" if other else "", card.proof]
    return [escaped(fact) for fact in facts if fact]


def _plain(name: str) -> str:
    """Return a name on one line, without control characters."""
    return " ".join("".join(c if unicodedata.category(c)[0] != "C" else " " for c in name).split())


def _in_markdown(name: str) -> str:
    return _MARKDOWN.sub(r"\\\1", _plain(name))
