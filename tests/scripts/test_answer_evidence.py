"""The measurement of `docs/answer.md`: measures under ties, what is measured, and its tables."""

import numpy as np
import pytest

from ltr.data import Dataset
from ltr.rankers import AutoRanker
from scripts import bench_answer


def record(table, split, ranker, dcg, hits=3.0, **more):
    measures = {"dcg": dcg, "hits 5%": hits, "hits 10%": hits}
    facts = {"table": table, "split": split, "ranker": ranker, "measures": measures}
    return facts | {"seconds": 1.0, "commit": "0123456789ab", **more}


def made_up():
    """AutoRanker: +2 % on average on pima, -5 % on wine; of its methods `b` is best out of fold, and worst by test."""
    found = []
    for split, way in enumerate((-1, 1, -1, 1)):
        for table, gain in (("pima", 2.0 + 0.1 * way), ("wine", -5.0)):
            values = {"a": 1.0, "b": 2.0, "blend": 3.0}
            members = {"a": {"dcg": 10.1}, "b": {"dcg": 9.9}}
            promised = {share: [3.5, 3, 4 + way] for share in bench_answer.SHARES}
            own = {"members": members, "values": values, "promised": promised}
            found.append(record(table, split, bench_answer.LOGISTIC, 10.0))
            found.append(record(table, split, bench_answer.AUTO, 10.0 + gain / 10, hits=4.0, **own))
            found.append(record(table, split, "CatBoost", 10.3))
    return found


def row_of(text, name):
    (found,) = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
    return [part.strip() for part in found.strip("|").split("|")]


def test_tied_rows_share_their_places():
    test = Dataset("t", np.zeros((20, 1)), np.arange(20) < 2)
    scores = np.r_[3.0, 1.0, 1.0, np.zeros(17)]  # the second hit is second or third
    found = bench_answer.measures(scores, test)
    assert found["dcg"] == pytest.approx(1 + (1 / np.log2(3) + 1 / np.log2(4)) / 2, abs=1e-6)
    assert (found["hits 5%"], found["hits 10%"]) == (1.0, 1.5)
    # all tied: hits are spread evenly
    assert bench_answer.measures(np.zeros(20), test)["hits 10%"] == pytest.approx(2 * 2 / 20)


def test_the_summary_says_what_the_records_show():
    text = bench_answer.texts(made_up())["answer-summary"]
    own = row_of(text, bench_answer.AUTO)
    assert own[1].startswith("-1.50 [-5.00, +2.00]")  # (2 - 5) / 2
    assert own[2] == "-1.50"
    assert own[4:7] == ["-5.00 wine", "1", "1"]  # t = 2 / (0.1155 sqrt(1/4 + 1)) = 15 with three degrees
    assert own[7].startswith("+1.00")
    assert row_of(text, bench_answer.BEST)[1].startswith("-1.00")  # b: 9.9
    assert row_of(text, "CatBoost")[1].startswith("+3.00")


def test_the_test_allows_for_rows_that_splits_share():
    values = np.array([1.0, 2.0, 3.0, 1.5, 2.5, 0.5])  # mean 1.75, deviation 0.935: t = 4.6 plain, 1.73 corrected
    assert bench_answer.shown(values) == ""
    assert bench_answer.shown(values + 10) == "above"
    assert bench_answer.shown(-values - 10) == "below"
    assert bench_answer.shown(values[:1]) == ""


@pytest.mark.parametrize(("table", "ranker"), [("wine", bench_answer.LOGISTIC), ("grouped", bench_answer.LISTWISE)])
def test_a_peer_chooses_its_options_and_is_measured(table, ranker, monkeypatch):
    few = bench_answer.Peer("sklearn.linear_model:LogisticRegression", {}, {"C": [0.1, 1.0]})
    lists = bench_answer.Peer("lightgbm:LGBMRanker", {"n_estimators": 2, "verbose": -1}, {"num_leaves": [4]}, "group")
    monkeypatch.setattr(bench_answer, "PEERS", {bench_answer.LOGISTIC: few})
    monkeypatch.setattr(bench_answer, "PEERS_OF_LISTS", {bench_answer.LISTWISE: lists})
    found = bench_answer.measure(table, 3, ranker)
    assert found["options"] in ({"C": 0.1}, {"C": 1.0}, {"num_leaves": 4})
    assert 0 < found["measures"]["hits 10%" if table == "wine" else "ndcg@10"] <= 9


def test_auto_is_measured_with_its_methods_and_promises(monkeypatch):
    monkeypatch.setattr(bench_answer, "AutoRanker", lambda seed: AutoRanker(["ranknet", "logistic"], seed=seed))
    own = bench_answer.measure("wine", 3, bench_answer.AUTO)
    assert set(own["members"]) == {"ranknet", "logistic"}
    assert set(own["values"]) == {"ranknet", "logistic", "blend"}
    assert all(0 <= low <= high <= 9 for _, low, high in own["promised"].values())
    assert own["measures"]["hits 5%"] <= 4  # of 89 rows
