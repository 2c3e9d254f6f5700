"""Measure again what the docs state, and print stated and new values side by side; or write the tables into the pages.

    LTR_DATA=path/to/data python -m scripts.results --quick              # a few cells of each study and benchmark
    LTR_DATA=path/to/data python -m scripts.results clicks uplift        # two of them whole; without names all: days
    LTR_DATA=path/to/data python -m scripts.results exact --only data=pima "top=50;100"
    LTR_DATA=path/to/data python -m scripts.results payoff --docs        # write its tables (--kept: of known records)

Records are kept in ``results/COMMIT/``, so that the same command goes on after an interruption. The records of studies
are in ``docs/``: their tables are made of these, and what is measured again is compared on the same cells. Of the page
on the paper, lines that come out otherwise are shown.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scripts._bench import ROOT, Bench, Json, insert, inserted
from trainers.records import origin

MODULES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py")))

Cells = dict[tuple[str, ...], str]
"""The cells of tables by the texts that begin their row and the heading of their column."""
Claim = tuple[str, str, str]
"""What a page states, the stated value, and the value now."""


def benches() -> dict[str, Bench]:
    """Return all benchmarks and studies by name."""
    modules = [importlib.import_module(f"scripts.{module}") for module in MODULES]
    return {one.name: one for module in modules for one in vars(module).values() if isinstance(one, Bench)}


def cells(text: str, leading: Mapping[tuple[str, ...], int] | None = None) -> tuple[Cells, dict[tuple[str, ...], int]]:
    """Return the cells of all Markdown tables, and how many columns lead the rows of each, by its sorted headings.

    `leading` is that number for tables with the same headings; by default it is read from the line below them.
    """
    found: Cells = {}
    counts = dict(leading or {})
    head: list[str] = []
    for line in text.splitlines():
        row = [part.strip() for part in line.strip()[1:-1].split("|")] if line.startswith("|") else []
        if not row or not head:
            head = row
        elif set(line) <= set("|-: "):
            counts.setdefault(tuple(sorted(head)), sum(not part.endswith(":") for part in row))
        else:
            count = counts[tuple(sorted(head))]
            found |= {(*row[:count], name): value for name, value in zip(head[count:], row[count:], strict=False)}
    return found, counts


def has_place(bench: Bench, name: str) -> bool:
    """Return whether the page of a benchmark shows a table; others are printed when they are made."""
    return f"<!-- begin {name} -->" in (ROOT / bench.page).read_text(encoding="utf-8")


def compared(bench: Bench, now: list[Json]) -> Iterator[Claim]:
    """Yield each cell of the page's tables that records make again."""
    before = bench.tables(bench.found(ROOT / bench.kept, now)) if bench.kept else {}
    for name, text in bench.tables(now).items():
        if has_place(bench, name):
            values, leading = cells(text)
            stated = cells(before.get(name) or inserted(ROOT / bench.page, name), leading)[0]
            for claim, value in values.items():
                yield ", ".join(filter(None, claim)), stated.get(claim, "-"), value


def written(bench: Bench, records: list[Json]) -> None:
    """Write the tables of records into the page, and draw its figures; print what has no place there."""
    for name, text in bench.tables(records).items():
        if has_place(bench, name):
            insert(ROOT / bench.page, name, text)
        else:
            print(text)
    if bench.figures is not None:
        bench.figures(records, ROOT / "docs" / "images")


def paper_lines(folder: Path, *, quick: bool) -> Iterator[Claim]:
    """Make the page on the paper again, of its sweep or of the kept results, and yield the lines that differ."""
    from scripts.paper import __main__ as paper
    from trainers.cli import main as ltr_command

    docs, arguments = folder / "docs", ["--docs", str(folder / "docs")]
    (docs / "paper").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docs" / "paper" / "cells.jsonl", docs / "paper")
    if not quick:
        ltr_command(["sweep", str(ROOT / "configs" / "paper" / "all.toml"), f"runs_dir={folder}", "name=paper"])
        arguments += ["--sweep", str(folder / "paper")]
    paper.main(arguments)
    pages = [(root / "paper.md").read_text(encoding="utf-8").splitlines() for root in (ROOT / "docs", docs)]
    for at, (stated, now) in enumerate(zip(*pages, strict=False), start=1):
        if stated != now:
            yield f"line {at}", stated, now


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; return 1 if a measurement failed."""
    known = benches()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join([*known, 'paper'])} (default: all)", metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="a few cells of each")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="FIELD=VALUE", help="a part; semicolons between values"
    )
    parser.add_argument("--docs", action="store_true", help="write tables and figures into pages (not paper.md)")
    parser.add_argument("--kept", action="store_true", help="measure nothing: take the records that there are")
    options = parser.parse_args(arguments)
    if wrong := [name for name in options.names if name not in (*known, "paper")]:
        parser.error(f"unknown: {', '.join(wrong)}")
    only = {field: values.split(";") for field, _, values in (text.partition("=") for text in options.only)}
    made, complete = origin(), True
    folder = ROOT / "results" / f"{(made['git_commit'] or 'none')[:12]}{'+' if made['git_dirty'] else ''}"
    for name in options.names or [*known, "paper"]:
        if name == "paper":
            page, claims = "docs/paper.md", paper_lines(folder, quick=options.quick or options.kept)
        else:
            bench = known[name]
            requests = bench.chosen(bench.quick if options.quick else only)
            path = ROOT / bench.kept if options.docs and bench.kept else folder / f"{name}.jsonl"
            complete &= options.kept or bench.measure_missing(path, requests)
            page, records = bench.page, bench.found(path, requests)
            if not records:
                print(f"error: there are no records in {path}", file=sys.stderr)
                complete = False
                continue
            if options.docs:
                written(bench, records)
            claims = iter(()) if options.docs else compared(bench, records)
        for claim, stated, now in claims:
            if now != "-":
                print(f"{page} | {claim} | {stated} | {now}", flush=True)
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
