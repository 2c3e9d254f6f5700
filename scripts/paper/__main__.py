"""Make the page on the paper: its experiments from the results of a sweep, its theorems computed anew.

    python -m scripts.paper                        # from docs/paper/cells.jsonl
    python -m scripts.paper --sweep runs/paper     # from a sweep, whose results replace docs/paper/cells.jsonl

Writes ``paper.md``, ``paper/figures/`` and ``paper/cells.jsonl`` in the folder `--docs`. The theorems take about a
minute. The text is in ``page.md.jinja``; all its numbers are computed here and in the modules beside this one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scripts._bench import ROOT
from scripts.paper import experiments
from scripts.paper.theorems import theorems
from trainers.files import write_atomic
from trainers.records import SweepResults, read_sweep, write_export
from trainers.report.evidence import Evidence
from trainers.report.page import Picture, block_markdown, png
from trainers.report.pictures import gain_picture
from trainers.report.report import state
from trainers.report.wording import counted, decided, listed, resolution_text, share, verdict_text

_MINUS = "−"


def render(results: SweepResults, computed: dict[str, Any]) -> tuple[str, Picture]:
    """Fill in the template; return the text and its picture."""
    evidence, published = Evidence(results), experiments.read_published()
    picture = gain_picture(evidence)
    assert picture is not None, "a sweep of the paper has results of both stages"

    def verdict(found: Any, what: str, against: str) -> str:  # noqa: ANN401
        return verdict_text(found, what, against, evidence.decimals)

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "share": share, "listed": listed, "resolution": resolution_text}
    environment.filters |= {"point": point, "codes": lambda names: listed([f"`{name}`" for name in names])}
    context = {
        "verdict": verdict,
        "counted": counted,
        "decided": decided,
        "evidence": evidence,
        "origin": results.origin,
        "state": state(evidence),
        "splits": len({record["split"] for record in results.records}),
        "logarithm": experiments.logarithm(evidence, published),
        "gain": experiments.gain(evidence),
        "picture": block_markdown(picture, "paper/figures").split("\n\n")[0],
        "levels": experiments.over_data_sets(evidence),
        "bases": experiments.ranked_bases(evidence),
        "larger": experiments.larger(evidence),
        "more": experiments.more_time(evidence),
        "published": experiments.beside(evidence, published),
    }
    text = environment.get_template("page.md.jinja").render(context | computed)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n", picture


def number(value: float) -> str:
    """Return a number with four significant digits.

    Examples:
        >>> number(309.548), number(-0.70083), number(16.4), number(1.0)
        ('309.5', '−0.7008', '16.40', '1')
    """
    size = abs(value)
    text = f"{size:,.0f}" if size == int(size) else f"{size:#.4g}".removesuffix(".")
    return (_MINUS if value < 0 else "") + text


def point(values: Sequence[float]) -> str:
    """Return a vector, or a number if it has one dimension."""
    text = ", ".join(f"{v:g}".replace("-", _MINUS) for v in values)
    return f"({text})" if len(values) > 1 else text


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page."""
    parser = argparse.ArgumentParser(description="Make the page on the paper: its experiments and its theorems.")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page (default: docs)")
    parser.add_argument("--sweep", type=Path, help="folder of a sweep, whose results replace DOCS/paper/cells.jsonl")
    arguments = parser.parse_args(argv)
    cells, figures = arguments.docs / "paper" / "cells.jsonl", arguments.docs / "paper" / "figures"
    torch.set_num_threads(1)  # lists are short: more threads are slower
    results = read_sweep(arguments.sweep or cells)
    text, picture = render(results, theorems())
    figures.mkdir(parents=True, exist_ok=True)
    write_atomic(figures / picture.file, png(picture))
    write_atomic(arguments.docs / "paper.md", text.encode())
    write_export(cells, results)
    print(arguments.docs / "paper.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
