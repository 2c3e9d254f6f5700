"""Cells of tables as text, and tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

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
