"""The page on the paper: that of the kept results."""

import re

import pytest

from scripts.paper import __main__ as paper
from scripts.paper.theorems import CLAIMS, lemma_one, rank_definitions, second_theorem, theorem1
from tests.paths import ROOT
from trainers.records import read_sweep

DOCS = ROOT / "docs"


@pytest.mark.slow  # theorems and pictures
def test_the_page_is_that_of_the_results_beside_it(monkeypatch, tmp_path):
    first = {
        "data": theorem1(0),
        "draws": 3,
        "claims": CLAIMS,
        "right": 8,
        "ends": [9, 9],
        "convex": 9,
        "solved": 6,
        "proven": 6,
        "areas": [0.9708, 0.02921],
    }
    computed = {
        "theorem1": first,  # tested in test_paper.py
        "theorem2": second_theorem(lists=1),
        "ranks": rank_definitions(),
        "lemma": lemma_one(count=2),
        "areas": {"lists": 6, "agree": 6},
    }
    monkeypatch.setattr(paper, "theorems", lambda: computed)
    monkeypatch.setattr(paper, "write_export", lambda cells, results: None)
    assert paper.main(["--docs", str(tmp_path), "--sweep", str(DOCS / "paper" / "cells.jsonl")]) == 0
    made, kept = ((folder / "paper.md").read_text(encoding="utf-8").splitlines() for folder in (tmp_path, DOCS))
    differ = [at for at, pair in enumerate(zip(made, kept, strict=True)) if pair[0] != pair[1]]
    assert all(re.match("The theorem holds if|Other statements", kept[at]) for at in differ)  # fewer random lists
    assert (tmp_path / "paper" / "figures" / "gain_by_k.png").exists()
    assert len(read_sweep(DOCS / "paper" / "cells.jsonl").records) == 2218
