"""Markdown tables, and their places in a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

__all__ = ["insert", "markdown", "percent"]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A table whose first `left` columns are text and the others numbers, aligned to the right."""
    rule = ["---" if at < left else "---:" for at in range(len(columns))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows)) + "\n"


def percent(gap: float) -> str:
    """A gap as a percentage with two or three digits that count.

    Examples:
        >>> percent(0.0), percent(0.01234), percent(1.5), percent(0.00004), percent(math.inf)
        ('0', '1.2%', '150%', '0.0040%', '-')
    """
    if not math.isfinite(gap):
        return "-"
    if gap <= 1e-9:  # within the tolerance of a proof
        return "0"
    digits = max(0, 1 - math.floor(math.log10(100 * gap)))
    return f"{100 * gap:.{0 if gap >= 0.1 else min(digits, 6)}f}%"


def insert(page: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` in a page.

    Raises:
        ValueError: a page without these two lines.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    content = page.read_text(encoding="utf-8")
    head, found, rest = content.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} must hold the lines {begin.strip()} and {end}")
    page.write_text(f"{head}{begin}{text.strip()}\n{end}{tail}", encoding="utf-8")
