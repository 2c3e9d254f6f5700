"""Text that is written into a page."""

from __future__ import annotations

from pathlib import Path

__all__ = ["insert"]


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
