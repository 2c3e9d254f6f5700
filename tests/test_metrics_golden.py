"""Agreement with values that other libraries computed once, stored with their versions in ``golden_metrics.json``."""

import json
from pathlib import Path

import pytest
import torch

from ltr.metrics import parse_measure

GOLDEN = json.loads((Path(__file__).parent / "golden_metrics.json").read_text(encoding="utf-8"))
ERROR = dict.fromkeys(("scikit-learn", "pytrec_eval", "ir_measures"), 1e-12)
ERROR |= {"torchmetrics": 1e-6, "allRank": 1e-6, "gdeval": 5.1e-6}  # single precision; five decimals
CASES = [(name, case) for name, system in GOLDEN["systems"].items() for case in system["values"]]


def test_every_system_is_there():
    assert set(GOLDEN["systems"]) == set(ERROR)


@pytest.mark.parametrize(("system", "case"), CASES)
def test_agrees_with(system, case):
    ties, _, name = case.partition(" ")
    lists = [x for x in GOLDEN["lists"] if ties != "untied" or not x["tied"]]
    expected = GOLDEN["systems"][system]["values"][case]
    assert len(lists) == len(expected) >= 12
    measure = parse_measure(name)
    for one, value in zip(lists, expected, strict=True):
        scores, labels = torch.tensor(one["scores"]), torch.tensor(one["labels"])
        if name == "auc" or (system, name.split("@")[0]) == ("allRank", "mrr"):
            labels = labels > 0
        for treatment in ("resolved", "average", "optimistic") if ties == "untied" else (ties,):
            assert measure(scores, labels, ties=treatment).item() == pytest.approx(value, abs=ERROR[system])


def test_torchmetrics_counts_no_item_that_scores_at_most_0():
    """What docs/metrics.md says of its scores: not so of its NDCG, nor of positive scores."""
    retrieval = pytest.importorskip("torchmetrics.functional.retrieval")
    scores, labels = torch.tensor([-0.5, -1.0, -2.0, -3.0]), torch.tensor([0, 1, 0, 1])
    names = {"mrr": "reciprocal_rank", "map": "average_precision", "ndcg(gain=linear)": "normalized_dcg"}
    for name, theirs in names.items():
        other, own = getattr(retrieval, f"retrieval_{theirs}"), parse_measure(name)(scores, labels).item()
        assert other(scores, labels).item() == pytest.approx(own if name.startswith("ndcg") else 0.0, abs=1e-6)
        assert other(scores.sigmoid(), labels).item() == pytest.approx(own, abs=1e-6)
