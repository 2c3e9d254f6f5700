"""What a run promised of new rows, against what came: the command `ltr outcome` and `Results.outcome`."""

import json

import numpy as np
import pandas as pd
import pytest

import ltr
from ltr.answer import Evidence
from ltr.answer.evidence import place_in_list
from ltr.answer.page import number
from ltr.data import DataError
from ltr.data.columns import columns_of
from tests.tiers import examples
from trainers.cli import main
from trainers.ranking_files import read_evidence
from trainers.run.outcome import labels_that_came
from trainers.task.measures import first_rows

QUICK = {"surrogate.losses": ["ranknet"], "baselines.methods": ["logistic_regression"]}


def _frame(n, weeks=range(1, 13), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    fails = rng.random(n) < 1 / (1 + np.exp(1 - X[:, 0] - X[:, 1]))
    week = rng.choice([f"2024-W{week}" for week in weeks], n)
    columns = {"week": week, **{f"x{j}": X[:, j] for j in range(3)}, "fails": np.where(fails, "yes", "no")}
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "weeks"
    exact = {"top_k": 60, "time_limit": 0.5, "base": "logistic_regression"}
    return ltr.experiment(QUICK, data=_frame(600), label="fails", time="week", exact=exact, folder=folder)


@pytest.fixture(scope="module")
def by_query(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "wards"
    frame = _frame(600).assign(ward=np.arange(600) // 12)
    exact = {"enabled": False, "top_k": 4}
    one = {**QUICK, "baselines.methods": []}
    return ltr.experiment(one, data=frame.drop(columns="week"), label="fails", query="ward", exact=exact, folder=folder)


NEW = _frame(200, range(13, 17), seed=1)


def test_hits_are_counted_as_the_list_has_them(results):
    found = results.outcome(NEW)
    ranked = results.rankers["exact"].rank(NEW)
    top = NEW.loc[ranked.index[:60], "fails"]
    assert (found.rows, found.known, found.visits, found.hits) == (200, 200, 60, (top == "yes").sum())
    assert found.promise.low <= found.promise.value <= found.promise.high
    test, here = found.statistics["auc"]
    assert test == results.table.loc["exact", "test auc"]
    y = (NEW["fails"] == "yes").to_numpy()
    scores = ranked["score"].sort_index().to_numpy()
    assert here == pytest.approx((scores[y][:, None] > scores[~y]).mean())
    assert found.statistics["ndcg"][0] == pytest.approx(
        results.table.loc["exact", "test dcg"] / (1 / np.log2(np.arange(2, 2 + results.positives))).sum()
    )
    assert str(found).splitlines()[1].startswith(f"expected {number(found.promise.value)} hits in 60 visits (90 %: ")
    assert [one["period"] for one in found.periods] == [f"2024-W{week}" for week in range(13, 17)]
    for one in found.periods:
        rows = NEW.loc[ranked.index][(NEW["week"] == one["period"]).loc[ranked.index]]
        assert one["visits"] == round(60 * len(rows) / 200)
        assert one["hits"] == (rows["fails"].head(one["visits"]) == "yes").sum()
    assert results.outcome(NEW, first=10).visits == 10
    assert results.outcome(NEW, method="ranknet").method == "ranknet"
    assert results.outcome(NEW.drop(columns="week")).periods == []


def test_rows_of_which_it_is_not_known_what_came_are_promised_nothing(results):
    some = NEW.copy()
    ranked = results.rankers["exact"].rank(NEW)
    some.loc[ranked.index[20:], "fails"] = None
    found = results.outcome(some)
    assert (found.rows, found.known, found.visits) == (200, 20, 20)
    assert found.hits == (NEW.loc[ranked.index[:20], "fails"] == "yes").sum()
    assert "of 20 of which it is known what came" in str(found)
    nothing = some.copy()
    nothing.loc[ranked.index[:60], "fails"] = None
    nothing.loc[ranked.index[70], "fails"] = "no"
    assert results.outcome(nothing).visits == 0
    assert results.outcome(nothing).promise.value == 0
    assert results.outcome(nothing).statistics["auc"][1] is None


def test_the_promise_is_kept_nine_times_in_ten():
    """New lists of rows whose chance follows from their score as that of the labelled rows does."""
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(examples(150, slow=400)):
        slope, level = rng.uniform(0.3, 2.0), rng.uniform(-2.0, 0.5)

        def rows(n, slope=slope, level=level):
            scores = rng.normal(size=n)
            return scores, (rng.random(n) < 1 / (1 + np.exp(-level - slope * scores))).astype(float)

        scores, labels = rows(400)
        new, came = rows(200)
        first = np.argsort(-new)[: rng.integers(20, 80)]
        promise = Evidence(labels, scores[None]).expected(new[first])
        kept.append(promise.low <= came[first].sum() <= promise.high)
    assert 0.87 < np.mean(kept) < 0.97


def test_the_promise_for_queries_is_kept_nine_times_in_ten():
    """Queries differ in how many of their first rows are hits, which no score tells."""
    rng = np.random.default_rng(0)
    kept, alone = [], []
    for _ in range(examples(100, slow=300)):
        lists, scores = np.repeat(np.arange(60), 12), rng.normal(size=720)
        labels = (rng.random(720) < 1 / (1 + np.exp(1 - scores - rng.normal(size=60)[lists]))).astype(float)
        known, first = lists < 40, (lists >= 40) & (place_in_list(scores, lists) <= 5)
        evidence = Evidence(labels[known], scores[None, known], lists[known])
        promise, narrow = evidence.expected(scores[first], lists[first], 5), evidence.expected(scores[first])
        kept.append(promise.low <= labels[first].sum() <= promise.high)
        alone.append(narrow.low <= labels[first].sum() <= narrow.high)
    assert 0.85 < np.mean(kept) < 0.98
    assert np.mean(alone) < np.mean(kept) - 0.05


def test_queries_promise_hits_of_each(by_query):
    new = NEW.assign(ward=np.arange(200) // 10)
    found = by_query.outcome(new)
    ranked = by_query.rankers["ranknet"].rank(new, new["ward"])
    top = ranked.index[ranked["position"] <= 4]
    assert (found.visits, found.hits) == (80, (new.loc[top, "fails"] == "yes").sum())
    evidence = read_evidence(by_query.folder, "ranknet")
    scores = ranked.loc[top, "score"].to_numpy()
    assert found.promise.value == pytest.approx(evidence.calibration(scores).sum())
    assert set(found.statistics) == {"ndcg@10", "ndcg", "auc"}
    new.loc[ranked.index[ranked["query"] >= 10], "fails"] = None
    half = by_query.outcome(new)
    assert half.visits == 40
    assert half.promise.high - half.promise.low < found.promise.high - found.promise.low
    assert by_query.outcome(new, first=3).visits == 30
    with pytest.raises(DataError, match="the query of each row in a column 'ward'"):
        by_query.outcome(NEW)


def test_the_gain_of_reranking_is_compared(tmp_path):
    """A base that knows one column of two is corrected by the other."""
    rng = np.random.default_rng(0)

    def rows(n):
        X = rng.normal(size=(n, 2))
        chance = 1 / (1 + np.exp(1.5 - X[:, 0] - 1.5 * X[:, 1]))
        return pd.DataFrame({"model": X[:, 0], "hours": X[:, 1], "fails": (rng.random(n) < chance).astype(int)})

    results = ltr.experiment(
        {"surrogate.losses": [], "baselines.methods": []}, data=rows(600), label="fails",
        exact={"base_score": "model", "top_k": "full", "time_limit": 0.5},
    )  # fmt: skip
    assert results.choice.reranks
    found = results.outcome(rows(300))
    assert found.promise is None
    assert found.gain["expected"] == results.choice.expected
    assert found.gain["came"] > 0
    lines = str(found).splitlines()
    assert lines[1].startswith(f"expected {results.choice.expected:+.3g} dcg (90 %: ")
    assert f"found {found.gain['came']:+.3g}" in lines[1]
    assert results.outcome(rows(300), first=30).visits == 30


def test_first_rows_of_lists_by_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, k = int(rng.integers(1, 30)), int(rng.integers(1, 6))
        scores, y = rng.integers(0, 4, n).astype(float), rng.integers(0, 2, n)
        qid = rng.integers(0, 4, n) if rng.random() < 0.5 else None
        found = first_rows(scores, y, qid, k)
        for query in {0} if qid is None else set(qid):
            rows = [row for row in range(n) if qid is None or qid[row] == query]
            wanted = sorted(rows, key=lambda row: (-scores[row], y[row], row))[:k]
            assert set(np.flatnonzero(found)) & set(rows) == set(wanted)


@pytest.mark.parametrize(
    ("cells", "positive", "expected"),
    [
        (["yes", None, "no"], "yes", [1, np.nan, 0]),
        ([1, 0, None], None, [1, 0, np.nan]),
        (["2", "1", ""], "2", [1, 0, np.nan]),
        ([3, 0, 1], None, [3, 0, 1]),
    ],
)
def test_labels_that_came_are_read_as_those_of_the_run(cells, positive, expected):
    np.testing.assert_array_equal(labels_that_came(columns_of({"y": cells}), "y", positive, "t"), expected)


def test_files_and_frames_say_the_same(results, tmp_path, capsys):
    new = tmp_path / "new.csv"
    NEW.to_csv(new, index=False)
    assert main(["outcome", str(results.folder), str(new), "--all"]) == 0
    out = capsys.readouterr().out
    assert all(f"{method}: 200 rows" in out for method in ("exact", "logistic_regression", "ranknet"))
    assert "| 2024-W13 |" in out
    assert "| auc |" in out
    assert main(["outcome", str(results.folder), str(new), "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    expected = results.outcome(NEW).to_dict()
    for one in (found, results.outcome(new).to_dict()):
        assert one["text"] == expected["text"]
        for part in ("visits", "promise", "hits", "periods", "statistics"):
            assert json.dumps(one[part]) == json.dumps(expected[part])
    assert main(["outcome", str(results.folder), "nowhere.csv"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err
