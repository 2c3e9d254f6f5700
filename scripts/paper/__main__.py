"""Make the page on the paper: its experiments from the results of a sweep, its theorems computed anew.

    python -m scripts.paper                        # from docs/paper/cells.jsonl
    python -m scripts.paper --sweep runs/paper     # from a sweep, whose results replace docs/paper/cells.jsonl

Writes ``paper.md``, ``paper/figures/`` and ``paper/cells.jsonl`` in the folder `--docs`: the findings. All tables and
figures are written to ``paper.md`` and ``figures/`` in the folder `--tables`. The theorems take about a minute. The
texts are in ``summary.md.jinja`` and ``page.md.jinja``; all their numbers are computed here and in the modules beside
this one.
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

from scripts.paper import experiments, lengths, theorem1, theorem2
from scripts.paper.published import Reference, read_reference, reference_section
from trainers.files import RunError, write_atomic
from trainers.records import SweepResults, read_sweep, write_export
from trainers.report.evidence import Evidence
from trainers.report.options import recentring
from trainers.report.page import Block, Picture, Table, block_markdown, file_names, literal, png
from trainers.report.report import details, state
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


def context_of(results: SweepResults, reference: Reference) -> dict[str, Any]:
    """Compute everything that the page says about the experiments."""
    evidence = Evidence(results)
    return {
        "evidence": evidence,
        "origin": results.origin,
        "state": state(evidence),
        "splits": len({record["split"] for record in results.records}),
        "headings": {table.name: literal(table.heading) for table in evidence.tables},
        "protocol": experiments.protocol(evidence),
        "logarithm": experiments.logarithm(evidence, reference),
        "gain": experiments.gain(evidence) if evidence.main else None,
        "levels": experiments.level_gains(evidence),
        "bases": experiments.ranked_bases(evidence),
        "larger": lengths.larger(evidence),
        "recentred": recentring(evidence, "test"),
        "sections": [*details(evidence), reference_section(evidence, reference)],
    }


def render(template: str, context: dict[str, Any], figures: str = "paper/figures") -> tuple[str, dict[Picture, str]]:
    """Fill in a template.

    Args:
        template: name of a file beside this one.
        context: values for the template.
        figures: folder of the pictures, as written in links.

    Returns:
        The text, and the pictures with their file names.
    """
    drawn: list[Picture] = []

    def show(block: Block) -> str:
        if isinstance(block, Picture):
            drawn.append(block)
        names = file_names(drawn)
        return block_markdown(block, {picture: f"{figures}/{name}" for picture, name in names.items()})

    def verdict(found: Any, what: str, against: str) -> str:  # noqa: ANN401
        return verdict_text(found, what, against, context["evidence"].decimals)

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "show": show, "number": number, "percent": percent, "share": share, "listed": listed, "anchor": anchor,
        "change": lambda value: (_MINUS if value < 0 else "") + percent(abs(value)), "point": point,
        "codes": lambda names: listed([f"`{name}`" for name in names]), "resolution": resolution_text,
    }  # fmt: skip
    environment.globals |= {
        "picture": lambda name, figure, caption: show(Picture(name, figure, caption)),
        "table": lambda header, rows, left=1: show(Table(header, rows, left=left)),
        "verdict": verdict, "counted": counted, "decided": decided, "ranking_text": experiments.ranking_text,
        "mean_text": experiments.mean_text, "base_table": experiments.base_table, "orders": lengths.orders_text,
        "level_header": experiments.LEVEL_HEADER, "exact_names": theorem1.EXACT, "zip": zip, "str": str,
    }  # fmt: skip
    text = environment.get_template(template).render(context)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n", file_names(drawn)


def number(value: float, digits: int = 4) -> str:
    """Return a number with a few significant digits.

    Examples:
        >>> number(309.548), number(-0.70083), number(16.4), number(13744740.0), number(1.0), number(6.2e13)
        ('309.5', '−0.7008', '16.40', '13,744,740', '1', '6.200e+13')
    """
    size = abs(value)
    whole = size < 1e9 and (size >= 1e4 or size == int(size))
    text = f"{size:,.0f}" if whole else f"{size:#.{digits}g}".removesuffix(".")
    return (_MINUS if value < 0 else "") + text


def percent(value: float) -> str:
    """Return a share as a percentage with two significant digits.

    Examples:
        >>> percent(0.0046), percent(0.97), percent(0.9999), percent(1.0), percent(9.5e-09)
        ('0.46%', '97%', 'over 99%', '100%', '9.5e-07%')
    """
    return "over 99%" if 0.99 < value < 1 else f"{float(f'{100 * value:.2g}'):g}%"


def point(values: Sequence[float]) -> str:
    """Return a vector, or a number if it has one dimension."""
    text = ", ".join(f"{v:g}".replace("-", _MINUS) for v in values)
    return f"({text})" if len(values) > 1 else text


def anchor(title: str) -> str:
    """Return the link that GitHub makes of a heading.

    Examples:
        >>> anchor("The margin, at K = 100")
        'the-margin-at-k--100'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _write(folder: Path, figures: str, text: str, names: dict[Picture, str]) -> list[Path]:
    """Write a page and its pictures, remove the pictures of an earlier one, and return the files."""
    (folder / figures).mkdir(parents=True, exist_ok=True)
    for old in set((folder / figures).glob("*.png")) - {folder / figures / name for name in names.values()}:
        old.unlink()
    for picture, name in names.items():
        write_atomic(folder / figures / name, png(picture))
    write_atomic(folder / "paper.md", text.encode())
    return [folder / "paper.md", *(folder / figures / name for name in names.values())]


def main(argv: Sequence[str] | None = None) -> int:
    """Make the pages; return 1 if the results cannot be read."""
    parser = argparse.ArgumentParser(description="Make the page on the paper: its experiments and its theorems.")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of the findings (default: docs)")
    tables = Path("runs") / "paper-tables"
    parser.add_argument("--tables", type=Path, default=tables, help=f"folder of all tables (default: {tables})")
    parser.add_argument("--cells", type=Path, help="results in one file (default: DOCS/paper/cells.jsonl)")
    parser.add_argument("--sweep", type=Path, help="folder of a sweep, whose results replace DOCS/paper/cells.jsonl")
    arguments = parser.parse_args(argv)
    cells = arguments.docs / "paper" / "cells.jsonl"
    torch.set_num_threads(1)  # lists are short: more threads are slower
    try:
        results = read_sweep(arguments.sweep or arguments.cells or cells)
        context = context_of(results, read_reference(_PUBLISHED)) | theorems()
        written = _write(arguments.docs, "paper/figures", *render("summary.md.jinja", context))
        written += _write(arguments.tables, "figures", *render("page.md.jinja", context, "figures"))
        write_export(cells, results)
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in (*written, cells):
        print(f"{path}  {path.stat().st_size // 1024} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
