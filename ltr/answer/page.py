"""An answer for people: as text for a terminal, and as one HTML page that is read on a phone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ltr.answer.answer import Answer
from ltr.answer.evidence import Interval
from ltr.answer.proven import ListFront, RowRanges
from ltr.display.pictures import letters, shortened

_IN_TEXT, _IN_HTML = 20, 200  # rows of the list that are shown
_NAME = 18  # letters of a row's name in a terminal


def number(value: float) -> str:
    """Return a number of hits or rows: ``1,234``, whole from 10 on, with one digit below: ``0.4``."""
    return f"{value:,.0f}" if abs(value) >= 9.95 else f"{value:.1f}".removesuffix(".0")


def percent(share: float) -> str:
    """Return a share in percent: ``62 %``, with one digit below 2 %."""
    return f"{100 * share:.1f} %" if 0 < share < 0.02 else f"{100 * share:.0f} %"


def headline(answer: Answer) -> str:
    """Return the answer in a sentence or two: how many hits to expect, and how many otherwise."""
    first = f"these {answer.visits:,}"
    if answer.queries is not None:
        first = f"the first {answer.asked} of each of {answer.queries:,} queries, {answer.visits:,} rows in all"
    elif answer.known:
        first = f"{answer.visits:,} of {answer.rows:,} rows like these"
    by_chance = f"By chance you find {number(answer.chance)}."
    if answer.today is not None:
        today = f"By {answer.learned.today} you find {number(answer.today.value)}"
        by_chance = f"{today}, by chance {number(answer.chance)}."
    return f"Visit {first}: expect {_hits(answer.expected.value)}{_range(answer.expected)}. {by_chance}"


def _hits(value: float) -> str:
    return f"{number(value)} hit{'' if number(value) == '1' else 's'}"


def _range(value: Interval) -> str:
    return f" (90 %: {number(value.low)} to {number(value.high)})"


def _share(value: Interval) -> str:
    return f"{percent(value.value)} ({percent(value.low)} to {percent(value.high)})"


def _about(answer: Answer) -> str:
    """Return what a hit is, what was learned from, and what is listed."""
    learned = answer.learned
    listed = {
        "new": f"rows of {answer.source}",
        "unlabelled": f"rows of {answer.source} that have no label",
        "own": "labelled rows",
        "test": "rows of the test set",
    }[answer.listed]
    return (
        f"A hit is a row with {learned.hit}. There are {learned.rows:,} rows with a label in {learned.table}, and "
        f"{learned.hits:,} of them are hits. The list has the {answer.rows:,} {listed}."
    )


def _constraints(answer: Answer) -> list[str]:
    """Return that the constraints hold, what they cost, and what came of demands; nothing without any."""
    learned, free = answer.learned, answer.unconstrained
    demands = [f"{told[0].upper() if told.split()[0].isalpha() else told[0]}{told[1:]}." for told in learned.demands]
    said = []
    if learned.constraints:
        said = [f"The fitted ranking was checked and satisfies the constraints: {'; '.join(learned.constraints)}."]
    if free is not None:
        expected, otherwise = f"expect {_hits(answer.expected.value)}", f"{number(free.value)}{_range(free)}"
        if learned.constraints:
            first = learned.constraints[0].partition(" (")[0]
            them = first if len(learned.constraints) == 1 and first.startswith("at most ") else "them"
            said.append(f"With {them} {expected}; without constraints {otherwise}.")
        elif demands:
            demands.append(f"Under the demands {expected}; without them {otherwise}.")
    return [" ".join([*said, *demands])] if said or demands else []


def _record(answer: Answer) -> list[str]:
    """Return in sentences what was found among the labelled rows."""
    found, learned = answer.found, answer.learned
    whom = f"the first {found.visits:,} of {found.rows:,} rows{'' if answer.known else ' (the same share as here)'}"
    if learned.query is not None:
        whom = f"the first {found.visits} of each query"
    seen, later = ("without it", "") if learned.time is None else ("on earlier rows only", "later ")
    tested = f"rows with known labels, each ranked by models trained {seen}"
    if learned.tested:
        tested = f"{found.rows:,} {later}rows of the test set, which nothing was learned from"
    said = [
        f"Tested on the {tested}: {whom} held "
        f"{_hits(found.hits.value)}{_range(found.hits)}. That is {_share(found.precision)} of the visits, "
        f"{_share(found.recall)} of all hits, and {found.lift.value:.1f} times as many as by chance "
        f"({found.lift.low:.1f} to {found.lift.high:.1f})."
    ]
    if found.today is not None and (more := found.more) is not None:
        than, sides = ("more", (more.low, more.high)) if more.value >= 0 else ("fewer", (-more.high, -more.low))
        said.append(
            f"{learned.today} found {number(found.today.value)} by as many visits: the ranking found "
            f"{number(abs(more.value))} {than} (90 %: {number(sides[0])} to {number(sides[1])})."
        )
    return said


def curve_table(answer: Answer) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and rows of a short table of hits by visits."""
    curve = answer.curve
    wanted = [answer.asked * part for part in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)]
    at = sorted({min(range(len(curve.visits)), key=lambda i: abs(curve.visits[i] - want)) for want in wanted} - {0})
    today = [] if curve.today is None else [(f"by {_short(answer.learned.today or '', 20)}", curve.today)]
    lines = [("hits", curve.ranking), *today, ("by chance", curve.chance)]
    heads = ("visits of each" if answer.queries is not None else "visits", *(name for name, _ in lines))
    return heads, [(f"{curve.visits[i]:,}", *(number(line[i]) for _, line in lines)) for i in at]


def _short(text: str, most: int) -> str:
    return shortened(text, most - 2).replace("…", "...") if letters(text) > most else text


def as_text(answer: Answer, width: int = 80, *, more: str = "") -> str:
    """Return the page for a terminal, at least 40 letters wide; `more` says where the rows beyond the first are."""
    width = max(40, width)

    def folded(text: str, begin: str = "", indent: str = "") -> str:
        return textwrap.fill(text, width, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)

    def notes(title: str, texts: Sequence[str]) -> list[str]:
        return ["\n".join([title, *(folded(one, "- ", "  ") for one in texts)])] if texts else []

    first = (f"{headline(answer)} {answer.learned.method}", *_constraints(answer), _about(answer))
    parts = [*map(folded, first), *notes("Before you act:", [*answer.warnings, *answer.learned.warnings])]
    parts.append("\n".join(_list_lines(answer, width)))
    if (left := answer.visits - _IN_TEXT) > 0:
        parts.append(folded(f"and {left:,} more rows{f' in {more}' if more else ''}"))
    parts.append(_table("Hits to expect, by number of visits:", *curve_table(answer), width))
    parts += [*map(folded, _record(answer)), *(folded(" ".join(found.sentences)) for found in answer.learned.proven)]
    parts += notes("About the table:", answer.learned.notes)
    return "\n\n".join(parts) + "\n"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    for shown in (heads, [_short(head, 12) for head in heads]):
        lines = [shown, *rows]
        widths = [max(map(letters, column)) for column in zip(*lines, strict=True)]
        if sum(widths) + 2 * len(widths) <= width:
            break
    told = (zip(line, widths, strict=True) for line in lines)
    cells = ("  ".join(" " * (wide - letters(cell)) + cell for cell, wide in line) for line in told)
    return "\n".join([*textwrap.wrap(title, width), *(f"  {line}" for line in cells)])


def _list_lines(answer: Answer, width: int) -> Iterator[str]:
    """Yield the lines of the list: position, name and chance of each row, and its reasons one below the other."""
    entries = answer.entries[:_IN_TEXT]
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
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"broken": _broken, "percent": percent}
    return environment.from_string(_file("page.html.jinja")).render(
        whole=whole,
        style=Markup(_file("page.css")),
        learned=answer.learned,
        headline=headline(answer),
        introduction=[answer.learned.method, *_constraints(answer), _about(answer)],
        warnings=[*answer.warnings, *answer.learned.warnings],
        curve=Markup(_curve(answer)),
        entries=answer.entries[:_IN_HTML],
        left=answer.visits - _IN_HTML,
        more=more,
        record=_record(answer),
        visits=curve_table(answer),
    )


def drawn(found: Answer | RowRanges | ListFront) -> str:
    """Return the picture of hits by visits, of ranges or of a front as a part of another HTML page."""
    picture = _curve(found) if isinstance(found, Answer) else found.svg
    return f'<article class="ltr-page">\n<style>\n{_file("page.css")}</style>\n{picture}\n</article>'


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _broken(text: str) -> Markup:
    """Return a text as HTML that may break after the underscores of long names."""
    return Markup(escape(text, quote=False).replace("_", "_<wbr>").replace(" %", "&nbsp;%"))


def _curve(answer: Answer) -> str:
    """Return the curve as a figure: hits to expect by number of visits."""
    from ltr.display.figures import captioned, hits_figure

    curve = answer.curve
    today = [] if curve.today is None else [(f"by {answer.learned.today}", curve.today, "today")]
    lines = [("by the ranking", curve.ranking, "own"), *today, ("by chance", curve.chance, "chance")]
    each = "visits of each query" if answer.queries is not None else "visits"
    caption = f"Hits to expect; the upright line marks {answer.asked:,} {each}."
    drawn = hits_figure(curve.visits, lines, min(answer.asked, curve.visits[-1]), each)
    return captioned(drawn, caption, f"Hits to expect by number of visits. {headline(answer)}")
