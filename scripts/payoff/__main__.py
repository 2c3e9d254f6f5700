"""Measure whether reranking pays off on new data, and make the tables of `docs/payoff.md`.

    python -m scripts.payoff                                                     # everything that is missing
    python -m scripts.payoff --only "data=uis;pima" "split=0;1" base=rankboost   # some cells
    python -m scripts.payoff --kept --docs                                       # the tables in docs/payoff.md

Adds to ``docs/payoff/cells.jsonl``, and prints what the sentences of the page say. `scripts.payoff.noise` makes the
table on labels that no feature predicts.
"""

from __future__ import annotations

import sys

from scripts._bench import Bench, Json
from scripts.payoff import tables
from scripts.payoff.cells import BASES, BY_QUERY, INSTALLED, OWN, PAPER, QUERIES, SPLITS, by_rule, measure


def texts(records: list[Json]) -> dict[str, str]:
    """Return the tables of the page, by the rule of this code, and print what its sentences say."""
    cells = [by_rule(record) for record in records]
    print("", *tables.findings(cells), sep="\n")
    return tables.texts(cells)


BENCH = Bench(
    "payoff",
    __doc__,
    "docs/payoff.md",
    [
        {"data": data, "split": split, "base": base}
        for base in BASES
        for data in (*PAPER, *INSTALLED, QUERIES)
        for split in SPLITS
        if (split != OWN or data == QUERIES) and (base in BY_QUERY or data != QUERIES)
    ],
    measure,
    texts,
    kept="docs/payoff/cells.jsonl",
)

if __name__ == "__main__":
    sys.exit(BENCH.main())
