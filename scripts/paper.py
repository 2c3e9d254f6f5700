"""Make the page on the paper: its experiments from the results of a sweep, its theorems computed anew.

    python scripts/paper.py                        # from docs/paper/cells.jsonl
    python scripts/paper.py --sweep runs/paper     # from a sweep, whose results replace docs/paper/cells.jsonl

Writes ``paper.md``, ``paper/figures/`` and ``paper/cells.jsonl`` in the folder `--docs`. The theorems take about a
minute.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from _paper_intro import introduction, logarithm, numbering, protocol
from _theorems import theorems
from PIL import Image

from trainers.files import RunError, write_atomic
from trainers.records import SweepResults, read_sweep, write_export
from trainers.report.markdown import to_markdown
from trainers.report.page import Page, Picture, Section
from trainers.report.reference import Reference, read_reference
from trainers.report.report import build_page, file_names, png

_PUBLISHED = Path(__file__).parents[1] / "configs" / "paper" / "published.csv"
_TITLE = "The paper, repeated"
_COLOURS = 128


def page_of(results: SweepResults, reference: Reference, proven: Sequence[Section]) -> Page:
    """The page.

    Args:
        results: of the sweep.
        reference: the published values.
        proven: sections on the theorems.
    """
    report = build_page(results, title=_TITLE, reference=reference)
    sections = [protocol(results), *logarithm(results, reference), *report.sections, *proven]
    return Page(report.title, [*introduction(results), *report.summary], [numbering(results, sections), *sections])


def write_page(page: Page, docs: Path) -> list[Path]:
    """Write a page as ``paper.md`` with its pictures in ``paper/figures``; pictures of an earlier one are removed.

    Args:
        page: to write.
        docs: the folder.

    Returns:
        The files, the Markdown first.
    """
    figures = docs / "paper" / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    files = {picture: figures / name for picture, name in file_names(page).items()}
    for old in set(figures.glob("*.png")) - set(files.values()):
        old.unlink()
    for picture, path in files.items():
        write_atomic(path, _small(picture))
    markdown = docs / "paper.md"
    write_atomic(
        markdown, to_markdown(page, {p: path.relative_to(docs).as_posix() for p, path in files.items()}).encode()
    )
    return [markdown, *files.values()]


def _small(picture: Picture) -> bytes:
    """A picture as PNG with a palette, a third of the size of one without."""
    small = io.BytesIO()
    image = Image.open(io.BytesIO(png(picture))).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    image.save(small, format="PNG", optimize=True)
    return small.getvalue()


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page; 1 where the results cannot be read."""
    parser = argparse.ArgumentParser(description="Make the page on the paper: its experiments and its theorems.")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder to write to (default: docs)")
    parser.add_argument("--cells", type=Path, help="results in one file (default: DOCS/paper/cells.jsonl)")
    parser.add_argument(
        "--sweep", type=Path, help="folder of a sweep to take instead, and to write to DOCS/paper/cells.jsonl"
    )
    arguments = parser.parse_args(argv)
    cells = arguments.docs / "paper" / "cells.jsonl"
    torch.set_num_threads(1)  # lists are short: more threads are slower
    try:
        results = read_sweep(arguments.sweep or arguments.cells or cells)
        reference = read_reference(_PUBLISHED)
        page = page_of(results, reference, theorems(lambda text: print(f"computing: {text}", file=sys.stderr)))
        files = write_page(page, arguments.docs)
        write_export(cells, results)
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in (*files, cells):
        print(f"{path}  {path.stat().st_size // 1024} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
