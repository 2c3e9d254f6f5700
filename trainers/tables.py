"""Cells of tables as text, and tables in Markdown and for terminals."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

NOTHING_PROVEN = "nothing proven"
"""Written in place of a gap, or beside it, where the bound is that of a perfect order."""


def number(value: float | None, form: str | None = None) -> str:
    """Return the text of a number, by default with four decimals below 1000 and one above; empty for None and NaN."""
    if value is None or math.isnan(value):
        return ""
    return (form or ("{:.4f}" if abs(value) < 1000 else "{:.1f}")).format(value)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int | None = None) -> str:
    """Return a table as GitHub reads it; columns after the first `left` hold numbers, aligned to the right."""
    texts = len(header) if left is None else left
    rule = ["---"] * texts + ["---:"] * (len(header) - texts)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def folded_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, whole: Collection[str] = (), right: Collection[str] = ()
) -> Table:
    """Return a table for a terminal; texts that are too long are folded, between words if they can be.

    The columns with headings `whole` are never folded, those of `right` are aligned to the right.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading, *cells in zip(headings, *rows, strict=True):
        longest = max(map(cell_len, (heading, *cells)))
        least = longest if heading in whole else min(longest, 8)
        table.add_column(heading, justify="right" if heading in right else "left", overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def stacked_tables(
    columns: Sequence[tuple[str, Sequence[str]]],
    title: str,
    width: int,
    *,
    left: Collection[str] = (),
    bold: str | None = None,
) -> Iterator[Table]:
    """Yield a table for a terminal, or several of fewer columns that fit the width, each with the first column.

    Only the names of the rows, in the first column, are folded where they do not fit. Columns with headings `left` are
    aligned to the left, and the row named `bold` is bold.
    """
    names, *rest = columns
    while rest:
        taken = 1
        widths = [3 + max(map(cell_len, (heading, *cells))) for heading, cells in (names, *rest)]  # with borders
        while taken < len(rest) and 1 + sum(widths[: taken + 2]) <= width:
            taken += 1
        table, shown = Table(title=title or None), [names, *rest[:taken]]
        for at, (heading, cells) in enumerate(shown):
            # names and headings are folded where they do not fit, before numbers; nothing is cut
            least = max(map(cell_len, cells)) if at else None
            table.add_column(heading, justify="left" if heading in left else "right", overflow="fold", min_width=least)
        for row in zip(*(cells for _, cells in shown), strict=True):
            table.add_row(*map(Text, row), style="bold" if row[0] == bold else None)
        yield table
        rest, title = rest[taken:], ""
