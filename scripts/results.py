"""Run again what the docs state, on the commit that is checked out, and print stated values beside those of now.

    LTR_DATA=path/to/data python -m scripts.results --quick           # a few cells of each study and benchmark
    LTR_DATA=path/to/data python -m scripts.results clicks uplift     # two of them whole; without names all: days

Records are kept in ``results/COMMIT/``, so that the same command goes on after an interruption. Studies whose records
are in ``docs/`` are compared on the same cells, others with the table of the page; of the page on the paper, lines that
came out otherwise are shown.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ltr.threads import available_threads
from scripts._bench import ROOT, Bench, inserted
from scripts.paper import __main__ as paper
from trainers.cli import main as ltr_command
from trainers.provenance import origin

QUICK: Mapping[str, Mapping[str, Sequence[str]]] = {
    "answer.__main__": {"table": ["pima", "wine", "travellers"], "split": ["25"], "ranker": ["AutoRanker",
                        "logistic regression", "LightGBM lambdarank"]},
    "payoff.__main__": {"data": ["uis", "wine"], "split": ["0", "1"], "base": ["logistic_regression"]},
    "payoff.noise": {"seed": ["0", "1", "2"]},
    "bench_cards": {"data": ["mammo"], "k": ["3"], "method": ["auc", "near", "rounded", "proof", "risk"]},
    "bench_clicks": {"form": ["linear, no weights", "linear, joint"], "queries": ["300"]},
    "bench_demands": {"data": ["travel"]},
    "bench_exact": {"data": ["travel"], "top": ["50"], "method": ["weight_space"]},
    "bench_gbdt": {"name": ["ranknet"], "data": ["None"], "length": ["1000"]},
    "bench_losses": {"what": ["ranknet"], "shape": ["[200]", "[64, 20]"]},
    "bench_metrics": {"what": ["ndcg"], "shape": ["[1000]", "[8000, 40]"]},
    "bench_neural": {"data": ["lightgbm_lambdarank"], "form": ["LightGBM", "XGBoost"]},
    "bench_promises": {"what": ["linear", "card"]},
    "bench_scaling": {"rows": ["100000"], "loss": ["ranknet"]},
    "bench_size": {"what": ["read parquet"]},
    "bench_survival": {"data": ["veteran"]},
    "bench_times": {"table": ["veteran"]},
    "bench_uplift": {"form": ["least squares of z"]},
}  # fmt: skip
"""The modules of the studies and benchmarks, each with the cells of a quick look."""

Cells = dict[tuple[str, ...], str]
"""The cells of tables by the texts that begin their row and the heading of their column."""


def cells(text: str, leading: Mapping[tuple[str, ...], int] | None = None) -> tuple[Cells, dict[tuple[str, ...], int]]:
    """Return the cells of all Markdown tables, and how many columns lead the rows of each, by its sorted headings.

    Args:
        text: the tables, with other lines between them.
        leading: that number for tables with the same headings; by default it is read from the line below them.
    """
    found: Cells = {}
    counts = dict(leading or {})
    head: list[str] = []
    for line in text.splitlines():
        row = [part.strip() for part in line.strip("| ").replace("| |", "|  |").split(" | ")] if "|" in line else []
        if not row or not head:
            head = row
        elif set(line) <= set("|-: "):
            counts.setdefault(tuple(sorted(head)), sum(not part.endswith(":") for part in row))
        else:
            count = counts[tuple(sorted(head))]
            found |= {(*row[:count], name): value for name, value in zip(head[count:], row[count:], strict=False)}
    return found, counts


def compared(bench: Bench, folder: Path, only: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """Measure what is missing, and yield each claim of the page with its stated value and its value now."""
    records, requests = bench.records(folder / f"{bench.name}.jsonl"), bench.chosen(only)
    bench.measure_missing(records, requests, available_threads())
    with contextlib.redirect_stdout(None):
        now = records.of(requests)
        made = bench.tables(now) if now else {}
        before = bench.tables(bench.records().of(now)) if bench.kept and now else {}
    for name, text in made.items():
        with contextlib.suppress(ValueError):  # a table without a place in the page
            values, leading = cells(text)
            stated, _ = cells(before[name] if bench.kept else inserted(ROOT / bench.page, name), leading)
            for claim, value in values.items():
                yield ", ".join(filter(None, claim)), stated.get(claim, "-"), value


def paper_lines(folder: Path, *, quick: bool) -> Iterator[tuple[str, str, str]]:
    """Make the page on the paper again, of its sweep or of the kept results, and yield the lines that differ."""
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
    """Run what is asked for and print all claims."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    benches = {
        (one := importlib.import_module(f"scripts.{module}").BENCH).name: (one, QUICK[module]) for module in QUICK
    }
    parser.add_argument("names", nargs="*", help=f"of {', '.join([*benches, 'paper'])} (default: all)", metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="a few cells of each")
    options = parser.parse_args(arguments)
    made = origin()
    folder = ROOT / "results" / f"{(made['git_commit'] or 'none')[:12]}{'+' if made['git_dirty'] else ''}"
    for name in options.names or [*benches, "paper"]:
        if name == "paper":
            page, found = "docs/paper.md", list(paper_lines(folder, quick=options.quick))
        else:
            bench, quick = benches[name]
            page, found = bench.page, list(compared(bench, folder, quick if options.quick else {}))
        for claim, stated, now in (line for line in found if line[2] != "-"):
            print(f"{page} | {claim} | {stated} | {now}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
