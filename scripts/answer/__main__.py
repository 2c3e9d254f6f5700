"""Measure `AutoRanker` and the methods that analysts use, and write the tables of `docs/answer.md`.

    python -m scripts.answer                                    # everything that is missing
    python -m scripts.answer --splits 20 21 --tables travel     # some of it
    python -m scripts.answer report                             # the tables in docs/answer.md

Appends to ``docs/answer/results.jsonl`` as results come. A table, split and ranker that is there is not measured again,
so that the same command goes on after an interruption. The files of `LTR_DATA` are needed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ltr.threads import available_threads
from scripts._bench import Records, compute_missing
from scripts.answer import rankers, report
from scripts.answer.tables import BY_NAME

KEY = ("table", "split", "ranker")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing, or write the tables of the page; return 1 where a measurement failed."""
    parser = argparse.ArgumentParser(description="Measure AutoRanker and the methods that analysts use.")
    parser.add_argument("what", nargs="?", choices=["measure", "report"], default="measure")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of answer.md (default: docs)")
    parser.add_argument("--splits", nargs="+", type=int, default=range(20, 30), help="default: 20 to 29", metavar="N")
    parser.add_argument("--tables", nargs="+", choices=BY_NAME, default=[*BY_NAME], help="default: all", metavar="T")
    parser.add_argument("--processes", type=int, default=available_threads(), help="default: number of processors")
    options = parser.parse_args(argv)
    path = options.docs / "answer" / "results.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    records = Records(path, KEY)
    if options.what == "report":
        report.write(records.all(), options.docs / "answer.md")
        print(f"{options.docs / 'answer.md'}: made of {len(records.all())} results")
        return 0
    if absent := rankers.left_out():
        print(f"left out, because their packages are not installed: {', '.join(absent)}", flush=True)
    pairs = [(split, table) for split in options.splits for table in options.tables]
    wanted = [{"table": t, "split": s, "ranker": ranker} for s, t in pairs for ranker in rankers.rankers_of(t)]
    return 0 if compute_missing(rankers.compute, records, wanted, options.processes) else 1


if __name__ == "__main__":
    sys.exit(main())
