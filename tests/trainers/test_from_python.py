"""Experiments from Python: what `ltr run` computes, as frames and fitted rankers; data in frames; folders; mistakes."""

import copy
import gc
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ltr
from ltr.rankers import LogisticRegressionRanker, Ranker
from trainers.config import parse_config
from trainers.config.errors import ConfigError
from trainers.config.toml_text import unflat
from trainers.files import RunError

SMALL = {
    "surrogate": {"losses": ["ranknet"], "max_steps": 4},
    "baselines": {"methods": ["logistic_regression"]},
    "exact": {"choose": False, "top_k": 60, "method": "local_search", "time_limit": 0.1},
}
ONE = {"surrogate.losses": ["ranknet"], "surrogate.max_steps": 3, "baselines.methods": [], "exact.enabled": False}


@pytest.fixture(scope="module")
def finished():
    return ltr.experiment(SMALL, data={"name": "gaussians"}, name="small")


@pytest.fixture(scope="module")
def frame():
    """A table with a text, missing cells, and an index of its own; its columns have names that results have, too."""
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"age": draw.normal(size=60), "score": draw.integers(0, 5, 60), "city": ["a", "b", None] * 20})
    rows["ill"] = np.where(rows["age"] + draw.normal(size=60) > 0, "yes", "no")
    return rows.set_index(pd.Index([f"row {at}" for at in range(60)]))


def test_the_table_has_every_method_with_its_statistics(finished):
    table = finished.table
    assert list(table.index) == ["ranknet", "logistic_regression", "exact"]
    assert list(table.columns[:4]) == ["train dcg", "test dcg", "train auc", "test auc"]
    assert table.loc["exact", "test dcg"] == finished.rows[-1]["test"]["dcg"]
    assert table["test hits@60"].notna().all()
    assert pickle.loads(pickle.dumps(finished)).table.equals(table)
    assert finished.complete
    assert finished.choice is None


def test_curves_have_a_row_for_each_step_of_methods_with_steps(finished):
    curves = finished.curves
    assert curves["method"].unique().tolist() == ["ranknet"]
    assert curves["step"].tolist() == [1, 2, 3, 4]
    assert curves["test/dcg"].iloc[-1] == finished.table.loc["ranknet", "test dcg"]
    assert curves["loss/convex"].is_monotonic_decreasing


def test_ranked_rows_are_those_of_the_test_set_by_the_scores_of_the_ranker(finished):
    data = ltr.data.gaussians()
    ranked = finished.ranked
    assert ranked["position"].tolist() == list(range(1, len(ranked) + 1))
    assert set(ranked["stage"]) == {"reranked", "base"}
    assert ranked["label"].tolist() == data.y[ranked.index].tolist()
    ranked = finished.ranked_by("ranknet")
    scores = finished.rankers["ranknet"].decision_function(ranked[["x0", "x1"]])
    assert ranked["score"].to_numpy() == pytest.approx(scores)
    assert (np.diff(scores) <= 0).all()
    with pytest.raises(KeyError, match="hinge"):
        finished.ranked_by("hinge")


def test_a_folder_goes_on_and_a_temporary_one_ends_with_its_results(tmp_path):
    first = ltr.experiment(ONE, data={"name": "gaussians"}, folder=tmp_path / "runs" / "one")
    record = (tmp_path / "runs" / "one" / "ranknet" / "result.json").stat().st_mtime_ns
    nested = unflat({"name": "other", "data.name": "gaussians", **ONE})
    again = ltr.experiment(parse_config(nested), folder=str(tmp_path / "runs" / "one"))
    assert again == first
    assert (tmp_path / "runs" / "one" / "ranknet" / "result.json").stat().st_mtime_ns == record
    results = ltr.experiment(ONE, data={"name": "gaussians"})
    folder, ranker = results.folder, results.rankers["ranknet"]
    assert folder.is_dir()
    del results
    gc.collect()
    assert not folder.exists()
    assert ranker.coef_.shape == (2,)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_any_library(frame, library):
    given = frame
    if library == "polars":
        given = pl.DataFrame(frame.astype(object).where(frame.notna(), None).to_dict("list"))
    results = ltr.experiment(ONE, data=given, label="ill")
    ranked = results.ranked
    own = frame if library == "pandas" else frame.reset_index(drop=True)
    assert set(ranked.index) < set(own.index)
    assert ranked["age"].tolist() == own.loc[ranked.index, "age"].tolist()
    with pytest.raises(ConfigError, match=r"data\.test_path: must be a data frame, as the other sets are"):
        ltr.experiment(ONE, data=given, label="ill", test="new.csv")
    assert ranked["score (data)"].tolist() == own.loc[ranked.index, "score"].tolist()
    assert list(results.rankers["ranknet"].feature_names_in_) == ["age", "score", "city = b", "city is missing"]


def test_frames_of_two_sets_by_query(frame):
    train = frame.assign(visit=np.repeat([f"visit {at}" for at in range(6)], 10))
    results = ltr.experiment(ONE, data=train, test=train.iloc[:20], label="ill", query="visit")
    assert results.statistics[0] == "ndcg@10"
    assert results.ranked["query"].value_counts().to_dict() == {"visit 0": 10, "visit 1": 10}
    assert results.ranked["position"].max() == 10


def test_a_run_of_a_frame_goes_on_and_sees_other_data(tmp_path, frame):
    options = {"label": "ill", "folder": tmp_path / "run"}
    first = ltr.experiment(ONE, data=frame, **options)
    assert ltr.experiment(ONE, data=frame, **options) == first
    with pytest.raises(RunError, match="data: changed since"):
        ltr.experiment(ONE, data=frame.assign(age=0.5 + frame["age"]), **options)


def test_rankers_take_frames_of_the_users_table(frame, tmp_path):
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60), "D")
    data = frame.assign(seen=dates).drop(columns="score")
    data.iloc[::9, 0] = np.nan
    results = ltr.experiment(SMALL, data=data, label="ill")
    rows = data.drop(columns="ill").iloc[:20]
    features = results.source.task.split.preparation.transform(rows)
    for name, ranker in results.rankers.items():
        scores = ranker._scores(features)
        np.testing.assert_array_equal(ranker.predict(rows), scores)
        np.testing.assert_array_equal(ranker.predict(pl.from_pandas(rows[["seen", "city", "age"]])), scores)
        by_name = pd.DataFrame(features, columns=ranker.feature_names_in_)
        np.testing.assert_array_equal(ranker.predict(by_name), scores)
        assert ranker.rank(rows).index.tolist() == rows.index[ranker.order(rows)].tolist()
        ranker.save(tmp_path / f"{name}.json")
        np.testing.assert_array_equal(Ranker.load(tmp_path / f"{name}.json").predict(rows), scores)
        np.testing.assert_array_equal(copy.deepcopy(ranker).predict(rows), scores)
    with pytest.raises(ValueError, match="'city'"):
        ranker.predict(rows[["age", "seen"]])
    with pytest.raises(ValueError, match="preparation must make the features of the fit, 'x', got"):
        LogisticRegressionRanker().fit(pd.DataFrame({"x": [0.0, 1.0]}), [0, 1]).prepare_with(ranker.preparation_)
