"""Cells of tables as text, and tables in Markdown and for terminals."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

NOTHING_PROVEN = "nothing proven"
"""Written in place of a gap, or beside it, where the bound is that of a perfect order."""


def number(value: float | None, form: str | None = None) -> str:
    """Return the text of a number, by default with four decimals below 1000 and one above; empty for None and NaN."""
    if value is None or math.isnan(value):
        return ""
    return (form or ("{:.4f}" if abs(value) < 1000 else "{:.1f}")).format(value)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int | None = None) -> str:
    """Return a table as GitHub reads it.

    Args:
        header: headings of the columns.
        rows: cells of each row.
        left: how many columns, from the left, hold text; the others hold numbers and are aligned to the right. All
            columns are text when None.

    Examples:
        >>> print(markdown_table(["method", "dcg"], [["ranknet", "3.1"]], left=1))
        | method | dcg |
        | --- | ---: |
        | ranknet | 3.1 |
    """
    texts = len(header) if left is None else left
    rule = ["---"] * texts + ["---:"] * (len(header) - texts)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def folded_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    whole: Collection[str] = (),
    right: Collection[str] = (),
) -> Table:
    """Return a table for a terminal; texts that are too long are folded, between words if they can be.

    Args:
        headings: headings of the columns.
        rows: the cells of each row.
        width: columns of the terminal.
        whole: headings of columns that are never folded.
        right: headings of columns that are aligned to the right.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    columns = list(zip(headings, *rows, strict=True))
    longest = [max(map(cell_len, cells)) for cells in columns]
    # rich's own division of the width can cut off what a column does not fold
    widths = [own if cells[0] in whole else min(own, 8) for own, cells in zip(longest, columns, strict=True)]
    words = [max(cell_len(word) for text in cells for word in text.split(" ")) for cells in columns]
    for wanted in ([min(of_words, max(8, width // 4)) for of_words in words], longest):
        while sum(widths) + 2 * len(widths) < width and (
            short := [at for at, own in enumerate(widths) if own < wanted[at]]
        ):
            widths[min(short, key=lambda at: widths[at] / wanted[at])] += 1
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading, own in zip(headings, widths, strict=True):
        table.add_column(heading, justify="right" if heading in right else "left", overflow="fold", width=own)
    for row in rows:
        table.add_row(*map(Text, row))
    return table
