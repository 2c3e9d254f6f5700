"""Weights of rows in runs and sweeps: the rankers are those of `fit` with these weights, and mistakes are named."""

import json

import numpy as np
import pandas as pd
import pytest

from ltr.rankers import LogisticRegressionRanker, RankBoostRanker, SurrogateRanker, TwoStageRanker
from trainers.cli import main
from trainers.config.sections import DataConfig
from trainers.task.data import inner_splits, read_source, split_of

CONFIG = """
[data]
path = "clicks.csv"
label = "clicked"
weight = "w"
{data}
[surrogate]
losses = ["ranknet(pairs=sum)", "p_norm_push(p=2)"]
max_steps = 60
[baselines]
methods = ["logistic_regression", "rankboost"]
rankboost.rounds = 5
[exact]
choose = false
top_k = 20
method = "local_search"
time_limit = 60
node_limit = 3
"""


def clicks(n=120, seed=0, **columns):
    """A table with two features, clicks and their weights; rows without a click have weight 1."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    table["clicked"] = (table["a"] + 0.5 * rng.normal(size=n) > 0.8).astype(int)
    table["w"] = np.where(table["clicked"] == 1, rng.choice([0.0, 1.0, 2.5, 10.0], n), 1.0)
    return table.assign(**columns)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run with weights."""
    folder = tmp_path_factory.mktemp("weights")
    clicks().to_csv(folder / "clicks.csv", index=False)
    (folder / "clicks.toml").write_text(CONFIG.format(data=""))
    assert main(["run", str(folder / "clicks.toml"), f"runs_dir={folder / 'runs'}", "-q"]) == 0
    return folder


def test_a_validation_file_needs_no_weights_groups_and_times(tmp_path):
    table, files = clicks(week=np.arange(120) // 10, who=np.arange(120)), [str(tmp_path / f"{at}.csv") for at in (0, 1)]
    for file, rows in zip(files, (table, table[["a", "b", "clicked"]]), strict=True):
        rows.to_csv(file, index=False)
    of = {"label": "clicked", "weight": "w", "group": "who", "time": "week"}
    split = split_of(DataConfig(path=files[0], validation_path=files[1], **of), 0)
    np.testing.assert_array_equal(split.validation.X, table[["a", "b"]])
    assert (split.validation.weight, split.validation.group, split.validation.times) == (None, None, None)


def test_every_method_learns_from_the_weights(finished):
    split = split_of(DataConfig(path=str(finished / "clicks.csv"), label="clicked", weight="w"), 0)
    train = split.train
    assert split.feature_names == ("a", "b")
    assert {0.0, 1.0, 2.5, 10.0} == set(train.weight)
    given = {"sample_weight": train.weight}
    rankers = {name: SurrogateRanker(name, max_steps=60) for name in ("ranknet(pairs=sum)", "p_norm_push(p=2)")}
    rankers["logistic_regression"] = LogisticRegressionRanker()
    expected = {name: ranker.fit(train.X, train.y, **given).coef_ for name, ranker in rankers.items()}
    run = finished / "runs" / "clicks"
    for method, weights in expected.items():
        record = json.loads((run / method / "result.json").read_text())
        np.testing.assert_allclose(record["weights"], np.ravel(weights), rtol=1e-6)
    plain = SurrogateRanker("ranknet(pairs=sum)", max_steps=60).fit(train.X, train.y).coef_
    assert np.abs(plain / expected["ranknet(pairs=sum)"] - 1).max() > 0.01
    boosted = RankBoostRanker(5).fit(train.X, train.y, **given)
    scores = np.load(run / "rankboost" / "scores.npz")["train"]
    np.testing.assert_allclose(scores, boosted.decision_function(train.X))


def test_the_list_has_the_weighted_statistic_and_other_values_count_rows_alike(finished):
    run = finished / "runs" / "clicks"
    results = json.loads((run / "results.json").read_text())
    rows = {row["method"]: row for row in results["rows"]}
    split = split_of(DataConfig(path=str(finished / "clicks.csv"), label="clicked", weight="w"), 0)
    train, kept = split.train, split.train.weight > 0
    ranker = TwoStageRanker.load(run / "exact" / "model.json")
    X = pd.DataFrame(train.X[kept], columns=["a", "b"])
    on_list = ranker.reranked(X)
    scores, gains = ranker.decision_function(X)[on_list], (train.y * train.weight)[kept][on_list]
    assert on_list.sum() == 20
    place = len(scores) - np.argsort(np.argsort(scores))  # 1 is the top
    value = float((gains / np.log2(1 + place)).sum())
    assert rows["exact"]["top"] == pytest.approx(value)
    assert rows["exact"]["objective"] == pytest.approx(value)
    assert rows["exact"]["top"] >= rows["logistic_regression"]["top"] - 1e-9
    all_scores = np.load(run / "exact" / "scores.npz")["train"]
    place = len(all_scores) - np.argsort(np.argsort(all_scores))
    assert rows["exact"]["train"]["dcg"] == pytest.approx(float((train.y / np.log2(1 + place)).sum()))
    assert "training counts rows by 'w'" in results["note"]


def test_positives_have_a_weight_of_their_own_times_that_of_the_column(tmp_path):
    clicks().to_csv(tmp_path / "clicks.csv", index=False)
    given = {"path": str(tmp_path / "clicks.csv"), "label": "clicked"}
    y, w = (split_of(DataConfig(**given, weight="w"), 0).train.__getattribute__(name) for name in ("y", "weight"))
    for options, expected in (
        ({"positive_weight": 5}, np.where(y == 1, 5.0, 1.0)),
        ({"positive_weight": 5, "weight": "w"}, np.where(y == 1, 5.0, 1.0) * w),
        ({"positive_weight": "balanced"}, np.where(y == 1, (y == 0).sum() / (y == 1).sum(), 1.0)),
        ({"positive_weight": "balanced", "weight": "w"}, np.where(y == 1, w[y == 0].sum() / w[y == 1].sum(), 1.0) * w),
    ):
        split = split_of(DataConfig(**given, **options), 0)
        np.testing.assert_allclose(split.train.weight, expected)
        for inner in inner_splits(split, 0.25, 2, 0):
            np.testing.assert_allclose(inner.train.weight, expected[np.isin(split.train.rows, inner.train.rows)])
            assert inner.test.weight is None


def test_a_test_file_needs_no_weights_and_other_weights_are_other_data(tmp_path):
    clicks().to_csv(tmp_path / "clicks.csv", index=False)
    clicks(40, seed=1).drop(columns="w").to_csv(tmp_path / "test.csv", index=False)
    paths = {"path": str(tmp_path / "clicks.csv"), "test_path": str(tmp_path / "test.csv")}
    options = DataConfig(**paths, label="clicked", weight="w")
    split = split_of(options, 0)
    np.testing.assert_array_equal(split.train.weight, clicks()["w"])
    assert split.test.weight is None
    before = read_source(options).sha256
    clicks(w=1.0).to_csv(tmp_path / "clicks.csv", index=False)
    assert read_source(options).sha256 != before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["data.weight=clicked"], "data.weight: must be another column than that of data.label"),
        (["exact.statistic=auc"], "exact.statistic: has no weights of rows"),
        (["surrogate.certify=true"], "surrogate.certify: must be false with data.weight"),
        (["card.enabled=true"], "card.enabled: must be false with data.weight"),
        (["surrogate.losses=lambda"], "surrogate.losses[0]: takes weights of queries, but none of rows"),
        (["data.weight=several"], "exact.enabled: must be false: ranks count rows"),
    ],
)
def test_what_rows_cannot_have_weights_in_is_refused(tmp_path, capsys, given, message):
    clicks(half=0.5, several=np.arange(120) % 7 + 1).to_csv(tmp_path / "clicks.csv", index=False)
    (tmp_path / "clicks.toml").write_text(CONFIG.format(data=""))
    assert main(["run", str(tmp_path / "clicks.toml"), f"runs_dir={tmp_path / 'runs'}", *given]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_weights_of_queries_reach_every_method(tmp_path):
    query = np.arange(240) // 12
    clicks(240, q=query, w=np.where(query % 3 == 0, 20.0, 1.0)).to_csv(tmp_path / "clicks.csv", index=False)
    (tmp_path / "clicks.toml").write_text(CONFIG.format(data='query = "q"'))
    given = ["surrogate.losses=[ranknet,lambda]", "baselines.methods=", "exact.base=ranknet", "exact.top_k=10"]
    assert main(["run", str(tmp_path / "clicks.toml"), f"runs_dir={tmp_path / 'runs'}", "-q", *given]) == 0
    train = split_of(DataConfig(path=str(tmp_path / "clicks.csv"), label="clicked", query="q", weight="w"), 0).train
    run = tmp_path / "runs" / "clicks"
    for loss in ("ranknet", "lambda(statistic=dcg)"):
        record = json.loads((run / loss / "result.json").read_text())
        own, plain = (
            SurrogateRanker(loss, max_steps=60, statistic="dcg").fit(train.X, train.y, train.qid, sample_weight=w).coef_
            for w in (train.weight, None)
        )
        np.testing.assert_allclose(record["weights"], np.ravel(own), rtol=1e-6)
        if loss == "ranknet":
            assert np.abs(own / plain - 1).max() > 0.01
