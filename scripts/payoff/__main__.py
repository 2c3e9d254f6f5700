"""Measure whether reranking pays off on new data, and make the tables of `docs/payoff.md`.

    python -m scripts.payoff                                                 # everything that is missing, then the page
    python -m scripts.payoff --data uis pima --splits 0 1 --bases rankboost  # some cells, then the page
    python -m scripts.payoff --page                                          # the page alone
    python -m scripts.payoff --noise                                         # labels that no feature predicts

Adds to ``payoff/cells.jsonl`` and ``payoff/noise.jsonl`` in the folder `--docs`, puts the tables into ``payoff.md``
there, and prints what its sentences say. A cell that is in the file is not computed again, so the same command goes on
after an interruption. Each cell is computed by one process on one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ltr.threads import available_threads
from scripts._bench import Records, compute_missing, insert
from scripts.payoff import noise, tables
from scripts.payoff.cells import BASES, BY_QUERY, INSTALLED, OWN, PAPER, QUERIES, SPLITS, by_rule, compute
from trainers.files import write_atomic

KEY = ("data", "split", "base")
"""The fields that tell one cell from another."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compute the cells that are missing and make the page; return 1 where a cell failed or there is none."""
    every = [*PAPER, *INSTALLED, QUERIES]
    parser = argparse.ArgumentParser(description="Measure whether reranking pays off on new data.")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of the cells (default: docs)")
    parser.add_argument("--data", nargs="+", choices=every, default=every, help="data sets (default: all)", metavar="D")
    parser.add_argument(
        "--splits", nargs="+", choices=SPLITS, type=lambda text: text if text == OWN else int(text), default=SPLITS
    )
    parser.add_argument("--bases", nargs="+", choices=[*BASES], default=[*BASES], help="base rankers (default: all)")
    parser.add_argument("--processes", type=int, default=available_threads(), help="default: number of processors")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--page", action="store_true", help="make the page of the cells that are there")
    group.add_argument("--noise", action="store_true", help="compute choices on noise instead of cells")
    options = parser.parse_args(argv)
    path = options.docs / "payoff" / "cells.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = Records(path, KEY)
    noisy = Records(path.with_name("noise.jsonl"), noise.KEY)
    if options.noise:
        wanted = [{"table": table, "seed": seed} for seed in range(noise.FITS) for table in noise.TABLES]
        return 0 if compute_missing(noise.compute, noisy, wanted, options.processes) else 1
    wanted = [
        {"data": data, "split": split, "base": base}
        for split in options.splits
        for data in options.data
        if split != OWN or data == QUERIES
        for base in options.bases
        if data != QUERIES or base in BY_QUERY
    ]
    missing = [] if options.page else [request for request in wanted if not cells[request]]
    complete = compute_missing(compute, cells, missing, options.processes)
    if not cells.all():
        print(f"error: there are no cells in {path}", file=sys.stderr)
        return 1
    order = {name: at for at, name in enumerate([*every, *BASES])}
    found = sorted(cells.all(), key=lambda c: (order[c["base"]], order[c["data"]], str(c["split"]).zfill(9)))
    if missing:
        write_atomic(path, "".join(json.dumps(cell) + "\n" for cell in found).encode())
    found = [by_rule(cell) for cell in found]
    for name, text in tables.texts(found, noisy.all()).items():
        insert(options.docs / "payoff.md", name, text)
    print(*tables.findings(found), sep="\n")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
