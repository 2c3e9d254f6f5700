"""Measure `AutoRanker` and the methods that analysts use, and write the tables of `docs/answer.md`.

    python -m scripts.answer                                       # everything that is missing
    python -m scripts.answer --only "split=20;21" table=travel     # some of it
    python -m scripts.answer --kept --docs                         # the tables in docs/answer.md

Adds to ``docs/answer/results.jsonl``. The files of `LTR_DATA` are needed.
"""

from __future__ import annotations

import sys

from scripts._bench import Bench
from scripts.answer import rankers, report
from scripts.answer.tables import BY_NAME

SPLITS = range(20, 30)

BENCH = Bench(
    "answer",
    __doc__,
    "docs/answer.md",
    [
        {"table": table, "split": split, "ranker": ranker}
        for split in SPLITS
        for table in BY_NAME
        for ranker in rankers.rankers_of(table)
    ],
    rankers.measure,
    report.texts,
    kept="docs/answer/results.jsonl",
)

if __name__ == "__main__":
    sys.exit(BENCH.main())
