"""Measure `AutoRanker` and the methods that analysts use, and write the tables of `docs/answer.md`.

    python -m scripts.answer --splits 20-29                              # everything that is missing
    python -m scripts.answer --splits 20-24 --tables travel,pima         # some tables
    python -m scripts.answer --splits 20-29 --part 0/2                   # half of the pairs, on one processor
    python -m scripts.answer report                                      # the tables in docs/answer.md

Appends to ``docs/answer/results.jsonl`` as results come. A table, split and ranker that is there is not measured again,
so that the same command goes on after an interruption. The parts of `--part` share no pair of table and split and may
run at the same time; each uses one processor. The files of `LTR_DATA` are needed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from scripts._bench import Json, Records
from scripts.answer import rankers, report
from scripts.answer.tables import BY_NAME
from trainers.provenance import origin

KEY = ("table", "split", "ranker")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing, or write the tables of the page; return 1 where a measurement failed."""
    parser = argparse.ArgumentParser(description="Measure AutoRanker and the methods that analysts use.")
    parser.add_argument("what", nargs="?", choices=["measure", "report"], default="measure")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of answer.md (default: docs)")
    parser.add_argument("--splits", type=_splits, default=range(20, 30), help="N, or FIRST-LAST (default: 20-29)")
    parser.add_argument("--tables", type=_names, default=[*BY_NAME], help="names, divided by commas (default: all)")
    parser.add_argument(
        "--part", type=_part, default=(0, 1), metavar="I/N", help="part I of N, from 0; on one processor"
    )
    options = parser.parse_args(argv)
    path = options.docs / "answer" / "results.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    records = Records(path, KEY)
    if options.what == "report":
        report.write(records.all(), options.docs / "answer.md")
        print(f"{options.docs / 'answer.md'}: made of {len(records.all())} results")
        return 0
    part, parts = options.part
    if parts > 1 and hasattr(os, "sched_setaffinity"):
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {processors[part % len(processors)]})
    if absent := rankers.left_out():
        print(f"left out, because their packages are not installed: {', '.join(absent)}", flush=True)
    pairs = [(split, table) for split in options.splits for table in options.tables][part::parts]
    wanted = [{"table": t, "split": s, "ranker": ranker} for s, t in pairs for ranker in rankers.rankers_of(t)]
    return _measure([request for request in wanted if not records[request]], records)


def _measure(requests: Sequence[Json], records: Records) -> int:
    """Add the record of each request as soon as it is known; return 1 where one failed."""
    made, failed = origin(), 0
    commit = f"{(made['git_commit'] or '')[:12]}{'+' if made['git_dirty'] else ''}"
    for done, request in enumerate(requests, start=1):
        name, started = ", ".join(map(str, request.values())), time.perf_counter()
        try:
            records.add(rankers.compute(**request) | {"commit": commit})
        except Exception as error:  # the others go on
            failed = 1
            print(
                f"{done}/{len(requests)}  {name}: failed, {type(error).__name__}: {error}", file=sys.stderr, flush=True
            )
        else:
            print(f"{done}/{len(requests)}  {name}: {time.perf_counter() - started:.1f} s", flush=True)
    return failed


def _splits(text: str) -> range:
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < int(first):
        raise argparse.ArgumentTypeError(f"splits are N or FIRST-LAST, numbers >= 0, got {text!r}")
    return range(int(first), int(last or first) + 1)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in BY_NAME]:
        raise argparse.ArgumentTypeError(f"unknown table {unknown[0]!r}; known are {', '.join(BY_NAME)}")
    return names


def _part(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
        raise argparse.ArgumentTypeError(f"a part is I/N with 0 <= I < N, got {text!r}")
    return int(part), int(parts)


if __name__ == "__main__":
    sys.exit(main())
