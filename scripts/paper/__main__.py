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

from scripts.paper import experiments, theorem1, theorem2
from scripts.paper.published import Published, beside, read_published
from trainers.files import RunError, write_atomic
from trainers.records import SweepResults, read_sweep, write_export
from trainers.report.evidence import Evidence
from trainers.report.page import Block, Picture, block_markdown, png
from trainers.report.pictures import gain_picture
from trainers.report.report import state
from trainers.report.wording import counted, decided, listed, resolution_text, share, verdict_text

_PUBLISHED = Path(__file__).parents[2] / "configs" / "paper" / "published.csv"
_MINUS = "−"


def theorems() -> dict[str, Any]:
    """Compute everything that the page says about the theorems; this takes about a minute."""
    print("computing the theorems", file=sys.stderr)
    return {
        "theorem1": theorem1.first_theorem(),
        "ranks": theorem2.rank_definitions(),
        "theorem2": theorem2.second_theorem(),
        "lemma": theorem2.lemma_one(),
        "areas": theorem2.areas_agree(),
    }


def context_of(results: SweepResults, published: Sequence[Published]) -> dict[str, Any]:
    """Compute everything that the page says about the experiments."""
    evidence = Evidence(results)
    return {
        "evidence": evidence,
        "origin": results.origin,
        "state": state(evidence),
        "splits": len({record["split"] for record in results.records}),
        "protocol": experiments.protocol(evidence),
        "logarithm": experiments.logarithm(evidence, published),
        "gain": experiments.gain(evidence) if evidence.main else None,
        "levels": experiments.level_gains(evidence),
        "bases": experiments.ranked_bases(evidence),
        "larger": experiments.larger(evidence),
        "recentred": evidence.recentred["test"],
        "published": beside(evidence, published),
        "picture": gain_picture(evidence),
    }


def render(context: dict[str, Any]) -> tuple[str, list[Picture]]:
    """Fill in the template; return the text, and its pictures."""
    drawn: list[Picture] = []

    def show(block: Block) -> str:
        if isinstance(block, Picture):
            drawn.append(block)
        return block_markdown(block, "paper/figures")

    def verdict(found: Any, what: str, against: str) -> str:  # noqa: ANN401
        return verdict_text(found, what, against, context["evidence"].decimals)

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "show": show, "number": number, "share": share, "listed": listed, "point": point,
        "codes": lambda names: listed([f"`{name}`" for name in names]), "resolution": resolution_text,
    }  # fmt: skip
    environment.globals |= {
        "verdict": verdict, "counted": counted, "decided": decided, "mean_text": experiments.mean_text,
    }  # fmt: skip
    text = environment.get_template("page.md.jinja").render(context)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n", drawn


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
    """Make the page; return 1 if the results cannot be read."""
    parser = argparse.ArgumentParser(description="Make the page on the paper: its experiments and its theorems.")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of the page (default: docs)")
    parser.add_argument("--sweep", type=Path, help="folder of a sweep, whose results replace DOCS/paper/cells.jsonl")
    arguments = parser.parse_args(argv)
    cells, figures = arguments.docs / "paper" / "cells.jsonl", arguments.docs / "paper" / "figures"
    torch.set_num_threads(1)  # lists are short: more threads are slower
    try:
        results = read_sweep(arguments.sweep or cells)
        text, pictures = render(context_of(results, read_published(_PUBLISHED)) | theorems())
        figures.mkdir(parents=True, exist_ok=True)
        for old in {path.name for path in figures.glob("*.png")} - {picture.file for picture in pictures}:
            (figures / old).unlink()
        for picture in pictures:
            write_atomic(figures / picture.file, png(picture))
        write_atomic(arguments.docs / "paper.md", text.encode())
        write_export(cells, results)
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(arguments.docs / "paper.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
