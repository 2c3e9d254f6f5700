"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["markdown_table"]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int | None = None) -> str:
    """A table as GitHub reads it.

    Args:
        header: of the columns.
        rows: cells, one line each.
        left: how many columns, from the left, hold text; the others hold numbers and stand to the right. All are text
            when None.

    Examples:
        >>> print(markdown_table(["method", "dcg"], [["ranknet", "3.1"]], left=1))
        | method | dcg |
        | --- | ---: |
        | ranknet | 3.1 |
    """
    texts = len(header) if left is None else left
    rule = ["---"] * texts + ["---:"] * (len(header) - texts)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))
