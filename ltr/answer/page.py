"""An answer for people: as text for a terminal, and as one HTML page that is read on a phone."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from html import escape

from ltr.answer.answer import Answer, Entry
from ltr.answer.evidence import Interval
from ltr.answer.proven import ListFront, RowRanges
from ltr.display.pictures import letters, shortened

_IN_TEXT, _IN_HTML = 20, 200  # rows of the list that are shown
_NAME = 18  # letters of a row's name in a terminal


def number(value: float) -> str:
    """Return a number of hits or rows: whole from 10 on, with one digit below.

    Examples:
        >>> number(48.3), number(0.44), number(8.0), number(1234.0)
        ('48', '0.4', '8', '1,234')
    """
    return f"{value:,.0f}" if abs(value) >= 9.95 else f"{value:.1f}".removesuffix(".0")


def percent(share: float) -> str:
    """Return a share in percent, with one digit below 2 %.

    Examples:
        >>> percent(0.62), percent(0.004), percent(1.0)
        ('62 %', '0.4 %', '100 %')
    """
    return f"{100 * share:.1f} %" if 0 < share < 0.02 else f"{100 * share:.0f} %"


def headline(answer: Answer) -> str:
    """Return the answer in a sentence or two: how many hits to expect, and how many otherwise."""
    first = (
        f"Visit the first {answer.asked} of each of {answer.queries:,} queries, {answer.visits:,} rows in all"
        if answer.queries is not None
        else f"Visit {'' if answer.known else 'these '}{answer.visits:,}"
        + (f" of {answer.rows:,} rows like these" if answer.known else "")
    )
    expected = answer.expected
    found = f"{first}: expect {_hits(expected.value)} (90 %: {number(expected.low)} to {number(expected.high)})."
    if answer.today is None:
        return f"{found} By chance you find {number(answer.chance)}."
    return (
        f"{found} By {answer.learned.today} you find {number(answer.today.value)}, by chance {number(answer.chance)}."
    )


def _hits(value: float) -> str:
    return f"{number(value)} hit{'' if number(value) == '1' else 's'}"


def _about(answer: Answer) -> str:
    """Return what a hit is, what was learned from, and what is listed."""
    learned = answer.learned
    rows = {
        "new": f"The list has the {answer.rows:,} rows of {answer.source}.",
        "unlabelled": f"The list has the {answer.rows:,} rows of {answer.source} that have no label.",
        "own": f"The list has the {answer.rows:,} labelled rows.",
        "test": f"The list has the {answer.rows:,} rows of the test set.",
    }[answer.listed]
    return (
        f"A hit is a row with {learned.hit}. There are {learned.rows:,} rows with a label in {learned.table}, and "
        f"{learned.hits:,} of them are hits. {rows}"
    )


def _constraints(answer: Answer) -> list[str]:
    """Return that the constraints hold, what they cost, and what came of demands; nothing without any."""
    demands = [
        f"{told[0].upper() if told.split()[0].isalpha() else told[0]}{told[1:]}." for told in answer.learned.demands
    ]
    if demands and (free := answer.unconstrained) is not None and not answer.learned.constraints:
        demands.append(
            f"Under the demands expect {_hits(answer.expected.value)}; without them {number(free.value)}{_range(free)}."
        )
    if not (told := answer.learned.constraints):
        return [" ".join(demands)] if demands else []
    said = f"The fitted ranking was checked and satisfies the constraints: {'; '.join(told)}."
    if (free := answer.unconstrained) is not None:
        all_of_them = told[0].partition(" (")[0] if len(told) == 1 and told[0].startswith("at most ") else "them"
        with_them = f"With {all_of_them} expect {_hits(answer.expected.value)}"
        said += f" {with_them}; without constraints {number(free.value)}{_range(free)}."
    return [" ".join([said, *demands])]


def _record(answer: Answer) -> list[str]:
    """Return in sentences what was found among the labelled rows."""
    found, today = answer.found, answer.learned.today
    whom = (
        f"the first {found.visits} of each query"
        if answer.learned.query is not None
        else f"the first {found.visits:,} of {found.rows:,} rows{'' if answer.known else ' (the same share as here)'}"
    )
    seen = "without it" if answer.learned.time is None else "on earlier rows only"
    tested = f"rows with known labels, each ranked by models trained {seen}"
    if answer.learned.tested:
        later = "" if answer.learned.time is None else "later "
        tested = f"{found.rows:,} {later}rows of the test set, which nothing was learned from"
    said = [
        f"Tested on the {tested}: {whom} held "
        f"{_hits(found.hits.value)}{_range(found.hits)}. That is {_share(found.precision)} of the visits, "
        f"{_share(found.recall)} of all hits, and {found.lift.value:.1f} times as many as by chance "
        f"({found.lift.low:.1f} to {found.lift.high:.1f})."
    ]
    if found.today is not None and found.more is not None:
        more = found.more
        than = "more" if more.value >= 0 else "fewer"
        sides = (more.low, more.high) if more.value >= 0 else (-more.high, -more.low)
        said.append(
            f"{today} found {number(found.today.value)} by as many visits: the ranking found "
            f"{number(abs(more.value))} {than} (90 %: {number(sides[0])} to {number(sides[1])})."
        )
    return said


def _share(value: Interval) -> str:
    return f"{percent(value.value)} ({percent(value.low)} to {percent(value.high)})"


def _range(value: Interval) -> str:
    return f" (90 %: {number(value.low)} to {number(value.high)})"


def _reliability(answer: Answer) -> list[tuple[str, str, str]]:
    """Return rows of a table: the predicted chance, the observed share, the number of rows."""
    return [
        (
            percent(one.predicted),
            f"{percent(one.observed)} ({percent(one.low)} to {percent(one.high)})",
            f"{one.rows:,}",
        )
        for one in answer.learned.reliability[::-1]
    ]


_RELIABILITY = ("predicted", "observed", "rows")


def curve_table(answer: Answer) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and rows of a short table of hits by visits."""
    curve = answer.curve
    each = "visits of each" if answer.queries is not None else "visits"
    wanted = [answer.asked * part for part in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)]
    at = sorted({min(range(len(curve.visits)), key=lambda i: abs(curve.visits[i] - want)) for want in wanted} - {0})
    heads = [
        each,
        "hits",
        *([] if curve.today is None else [f"by {_short(answer.learned.today or '', 20)}"]),
        "by chance",
    ]
    lines = [curve.ranking, *([] if curve.today is None else [curve.today]), curve.chance]
    return tuple(heads), [(f"{curve.visits[i]:,}", *(number(line[i]) for line in lines)) for i in at]


def _short(text: str, most: int) -> str:
    return shortened(text, most - 2).replace("…", "...") if letters(text) > most else text


def as_text(answer: Answer, width: int = 80, *, shown: int = _IN_TEXT, more: str = "") -> str:
    """Return the page for a terminal, at least 40 letters wide; `more` says where the rows beyond `shown` are."""
    width = max(40, width)

    def folded(text: str, begin: str = "", indent: str = "") -> str:
        return "\n".join(
            textwrap.wrap(text, width, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)
        )

    parts = [
        folded(text) for text in (f"{headline(answer)} {answer.learned.method}", *_constraints(answer), _about(answer))
    ]
    if warnings := [*answer.warnings, *answer.learned.warnings]:
        parts.append("\n".join(["Before you act:", *(folded(one, "- ", "  ") for one in warnings)]))
    parts.append("\n".join(_list_lines(answer, width, shown)))
    if (left := answer.visits - shown) > 0:
        parts.append(folded(f"and {left:,} more rows{f' in {more}' if more else ''}"))
    parts.append(_table("Hits to expect, by number of visits:", *curve_table(answer), width))
    parts += [folded(text) for text in _record(answer)]
    parts += [folded(" ".join(found.sentences)) for _, found in _proven(answer)]
    parts.append(
        _table("Predicted and observed share of hits among those rows:", _RELIABILITY, _reliability(answer), width)
    )
    if answer.learned.notes:
        parts.append("\n".join(["About the table:", *(folded(one, "- ", "  ") for one in answer.learned.notes)]))
    return "\n\n".join(parts) + "\n"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(letters, column)) for column in columns]
    if sum(widths) + 2 * len(widths) > width:
        heads = [_short(head, 12) for head in heads]
        widths = [max(map(letters, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(" " * (wide - letters(cell)) + cell for cell, wide in zip(line, widths, strict=True))
        for line in (heads, *rows)
    ]
    return "\n".join([*textwrap.wrap(title, width), *(f"  {line}" for line in lines)])


def _list_lines(answer: Answer, width: int, shown: int) -> Iterator[str]:
    """Yield the lines of the list: position, name and chance of each row, and its reasons one below the other."""
    entries = answer.entries[:shown]
    heading = _short(answer.learned.id or "row", _NAME)
    names = [_short(entry.id, _NAME) for entry in entries]
    wide = max(map(letters, [heading, *names]), default=3)
    before = len(str(max((entry.position for entry in entries), default=1)))
    left = before + 2 + wide + 2 + len("chance") + 2
    yield f"{'':{before}}  {heading}{' ' * (wide - letters(heading))}  chance  because"
    query = None
    for entry, name in zip(entries, names, strict=True):
        if entry.query != query:
            query = entry.query
            yield _short(f"{answer.learned.query} {query}", width)
        begin = f"{entry.position:>{before}}  {name}{' ' * (wide - letters(name))}  {percent(entry.chance):>6}  "
        reasons = [str(reason) for reason in entry.reasons] or ["no column stands out"]
        for reason in reasons:
            for line in textwrap.wrap(reason, width - left, subsequent_indent="  ", break_on_hyphens=False):
                yield (begin + line).rstrip()
                begin = " " * left


def as_html(answer: Answer, *, whole: bool = True, more: str = "list.csv") -> str:
    """Return the page as HTML, without scripts and anything from elsewhere: a file, or a part of another page."""
    article = _article("\n".join(_html_parts(answer, more)))
    if not whole:
        return article
    title = escape(f"{answer.learned.table}: whom to visit")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>body {{ margin: 0; }} :root {{ color-scheme: light dark; }}</style>\n</head>\n"
        f"<body>\n<main>\n{article}\n</main>\n</body>\n</html>\n"
    )


def curve_html(answer: Answer) -> str:
    """Return the curve of hits by visits as a part of another HTML page."""
    return _article(_svg(answer))


def drawn(found: RowRanges | ListFront) -> str:
    """Return the picture of ranges or of a front as a part of another HTML page."""
    return _article(found.svg)


def _proven(answer: Answer) -> list[tuple[str, RowRanges | ListFront]]:
    """Return what was proven about the training list, each with a heading."""
    ranges, front = answer.learned.ranges, answer.learned.front
    found: list[tuple[str, RowRanges | ListFront]] = [] if ranges is None else [("How firm the order is", ranges)]
    return found if front is None else [*found, (f"The price of {_broken(front.names[1])}", front)]


def _article(body: str) -> str:
    return f'<article class="ltr-page">\n<style>{_STYLE}</style>\n{body}\n</article>'


def _html_parts(answer: Answer, more: str) -> Iterator[str]:
    learned = answer.learned
    yield f"<h1>{_broken(headline(answer))}</h1>"
    yield f"<p>{_broken(learned.method)}</p>"
    yield from (f"<p>{_broken(text)}</p>" for text in (*_constraints(answer), _about(answer)))
    if warnings := [*answer.warnings, *learned.warnings]:
        items = "".join(f"<li>{_broken(one)}</li>" for one in warnings)
        yield f'<section class="care"><h2>Before you act</h2><ul>{items}</ul></section>'
    yield "<h2>Hits by visits</h2>"
    yield _svg(answer)
    yield f"<h2>The list</h2>\n{_html_list(answer)}"
    if (left := answer.visits - _IN_HTML) > 0:
        yield f"<p>{left:,} more rows are in {escape(more)}.</p>"
    for title, found in _proven(answer):
        yield f"<h2>{title}</h2>"
        yield f"<p>{_broken(' '.join(found.sentences))}</p>\n{found.svg}"
        yield f"<details><summary>As a table</summary>{_html_table(*found.table)}</details>"
    yield "<details><summary>Tested</summary>"
    yield from (f"<p>{_broken(text)}</p>" for text in _record(answer))
    yield "<p>Predicted and observed share of hits among those rows:</p>"
    yield _html_table(_RELIABILITY, _reliability(answer))
    yield "<p>Hits to expect, by number of visits:</p>"
    yield _html_table(*curve_table(answer))
    yield "</details>"
    if learned.notes:
        items = "".join(f"<li>{_broken(one)}</li>" for one in learned.notes)
        yield f"<details><summary>About the table</summary><ul>{items}</ul></details>"


def _broken(text: str) -> str:
    """Return a text as HTML that may break after the underscores of long names."""
    return escape(text, quote=False).replace("_", "_<wbr>").replace(" %", "&nbsp;%")


def _html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{_broken(one)}</th>' for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{_broken(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _html_list(answer: Answer) -> str:
    heading = _broken(answer.learned.id or "row")
    lines, query = [], None
    for entry in answer.entries[:_IN_HTML]:
        if entry.query != query:
            query = entry.query
            text = _broken(f"{answer.learned.query} {query}")
            lines.append(f'<tr class="query"><th scope="rowgroup" colspan="4">{text}</th></tr>')
        lines.append(_html_entry(entry))
    head = f'<th scope="col"></th><th scope="col">{heading}</th><th scope="col">chance</th><th scope="col">because</th>'
    return f'<table class="list"><thead><tr>{head}</tr></thead><tbody>\n{"".join(lines)}</tbody></table>'


def _html_entry(entry: Entry) -> str:
    reasons = "<br>".join(_broken(str(reason)) for reason in entry.reasons) or "no column stands out"
    cells = f'<td class="place">{entry.position}</td><th scope="row">{_broken(entry.id)}</th>'
    return f"<tr>{cells}<td>{_broken(percent(entry.chance))}</td><td>{reasons}</td></tr>\n"


_WIDTH, _HEIGHT, _LEFT, _BELOW, _ABOVE, _RIGHT = 360, 230, 40, 40, 10, 18


def _svg(answer: Answer) -> str:
    """Return the curve as a figure: hits to expect by number of visits."""
    curve, learned = answer.curve, answer.learned
    most_x = max(1, curve.visits[-1])
    lines = {"the ranking": curve.ranking} | ({} if curve.today is None else {learned.today or "today": curve.today})
    lines["chance"] = curve.chance
    most_y = max(1e-9, *(max(line) for line in lines.values()))
    step_x, step_y = _step(most_x, whole=True), _step(most_y)
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _ABOVE - _BELOW

    def x(value: float) -> str:
        return f"{_LEFT + wide * value / most_x:.1f}"

    def y(value: float) -> str:
        return f"{_ABOVE + high * (1 - value / most_y):.1f}"

    parts = []
    for tick in _ticks(most_y, step_y):
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(tick)}" y2="{y(tick)}"/>')
        parts.append(f'<text class="right" x="{_LEFT - 5}" y="{float(y(tick)) + 4:.1f}">{number(tick)}</text>')
    for tick in _ticks(most_x, step_x):
        parts.append(f'<text class="middle" x="{x(tick)}" y="{_HEIGHT - _BELOW + 15}">{tick:,.0f}</text>')
    planned = min(answer.asked, most_x)
    parts.append(f'<line class="plan" x1="{x(planned)}" x2="{x(planned)}" y1="{_ABOVE}" y2="{_HEIGHT - _BELOW}"/>')
    for at, line in reversed(list(enumerate(lines.values()))):
        points = " ".join(f"{x(v)},{y(h)}" for v, h in zip(curve.visits, line, strict=True))
        kind = ("ranking", "today", "chance")[2 if at == len(lines) - 1 else at]
        parts.append(f'<polyline class="{kind}" points="{points}"/>')
    each = "visits of each query" if answer.queries is not None else "visits"
    parts.append(f'<text class="middle" x="{_LEFT + wide / 2:.0f}" y="{_HEIGHT - 6}">{each}</text>')
    kinds = ["ranking", *(["today"] if curve.today is not None else []), "chance"]
    legend = "".join(
        f'<li><svg class="key" viewBox="0 0 24 8" aria-hidden="true">'
        f'<line class="{kind}" x1="0" x2="24" y1="4" y2="4"/>'
        f"</svg>{_broken(name)}</li>"
        for kind, name in zip(kinds, lines, strict=True)
    )
    label = escape(f"Hits to expect by number of visits. {headline(answer)}")
    return (
        f'<figure><svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}'
        f'</svg><figcaption><ul class="keys">{legend}</ul>Hits to expect; the upright line marks '
        f"{answer.asked:,} {each}.</figcaption></figure>"
    )


def _step(most: float, *, whole: bool = False) -> float:
    """Return a round distance of ticks, of which there are three to five up to `most`."""
    power = 10.0 ** math.floor(math.log10(most / 4))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= most / 4.5)
    return max(1.0, math.ceil(step)) if whole else step


def _ticks(most: float, step: float) -> list[float]:
    return [step * at for at in range(int(most / step + 1e-9) + 1)]


_STYLE = """
.ltr-page { --paper: #ffffff; --ink: #1d2329; --faint: #5b6770; --line: #d9dee4; --rank: #0077bb; --care: #fdf3e3;
  color: var(--ink); background: var(--paper); max-width: 46rem; margin: 0 auto; padding: 1rem; box-sizing: border-box;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; text-align: left; }
@media (prefers-color-scheme: dark) { .ltr-page { --paper: #15181c; --ink: #e3e7eb; --faint: #9aa6b0; --line: #353c44;
  --rank: #5db4ea; --care: #33291a; } body:has(> main > .ltr-page) { background: #15181c; } }
.ltr-page h1 { font-size: 1.35rem; line-height: 1.35; margin: 0.5rem 0 0.75rem; font-weight: 650; }
.ltr-page h2 { font-size: 1.1rem; margin: 1.5rem 0 0.5rem; }
.ltr-page p { margin: 0.5rem 0; }
.ltr-page .care { background: var(--care); border-radius: 6px; padding: 0.1rem 1rem 0.4rem; margin: 1rem 0; }
.ltr-page .care h2 { margin: 0.6rem 0 0.2rem; font-size: 1rem; }
.ltr-page ul { margin: 0.3rem 0; padding-left: 1.1rem; }
.ltr-page figure { margin: 0; }
.ltr-page .curve { width: 100%; max-width: 34rem; height: auto; display: block; }
.ltr-page svg text { font-size: 12px; fill: var(--faint); stroke: none; }
.ltr-page svg .right { text-anchor: end; }
.ltr-page svg .middle { text-anchor: middle; }
.ltr-page svg polyline, .ltr-page svg line { fill: none; stroke: var(--faint); stroke-width: 1.6; }
.ltr-page svg .grid { stroke: var(--line); stroke-width: 1; }
.ltr-page svg .plan { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 2 3; }
.ltr-page svg .ranking { stroke: var(--rank); stroke-width: 2.6; }
.ltr-page svg .today { stroke: var(--ink); stroke-dasharray: 7 4; }
.ltr-page svg .range { fill: var(--rank); opacity: 0.55; }
.ltr-page svg .wider { fill: var(--faint); opacity: 0.35; }
.ltr-page svg .own { fill: var(--ink); }
.ltr-page svg .chance { stroke-dasharray: 1.5 3.5; }
.ltr-page figcaption { color: var(--faint); font-size: 0.875rem; }
.ltr-page .keys { list-style: none; padding: 0; color: var(--ink); }
.ltr-page .keys li { display: inline-block; margin-right: 1.2rem; }
.ltr-page .key { width: 24px; height: 8px; margin-right: 0.4rem; vertical-align: middle; }
.ltr-page table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.ltr-page table.numbers { width: auto; font-size: 0.9rem; }
.ltr-page .numbers th, .ltr-page .numbers td { text-align: right; padding: 0.15rem 0.8rem 0.15rem 0; }
.ltr-page th, .ltr-page td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem 0.35rem 0; font-weight: 400;
  border: 0; border-bottom: 1px solid var(--line); background: none; color: inherit; }
.ltr-page thead th { font-size: 0.875rem; color: var(--faint); }
.ltr-page tbody th { font-weight: 600; font-size: 0.9rem; min-width: 3.9rem; }
.ltr-page .query th { padding-top: 1rem; }
.ltr-page .list td:nth-child(1), .ltr-page .list td:nth-child(3), .ltr-page .list thead th { white-space: nowrap;
  overflow-wrap: normal; }
.ltr-page .list td:nth-child(4) { font-size: 0.9rem; width: 60%; }
.ltr-page .place { color: var(--faint); text-align: right; width: 1%; padding-right: 0.5rem; }
.ltr-page details { border-top: 1px solid var(--line); margin-top: 1rem; padding-top: 0.5rem; }
.ltr-page summary { cursor: pointer; font-weight: 600; }
@media print { .ltr-page { max-width: none; } }
"""
