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
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for at, heading in enumerate(headings):
        words = [word for text in (heading, *(row[at] for row in rows)) for word in text.split(" ")]
        table.add_column(
            heading,
            justify="right" if heading in right else "left",
            overflow="fold",
            no_wrap=heading in whole,
            min_width=min(max(map(len, words)), max(8, width // 4)),
        )
    for row in rows:
        table.add_row(*map(Text, row))
    return table
