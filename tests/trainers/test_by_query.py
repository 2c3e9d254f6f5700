"""Runs on data by query: splits, means over queries, the exact stage, going on, prediction on new data."""

import csv
import io
import json
import tomllib

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from ltr.data import DataError, grouped
from tests.reference import graded_problem
from tests.trainers import test_experiment
from trainers.cli import main
from trainers.config import load_config, parse_config, resolved_toml
from trainers.config.errors import ConfigError
from trainers.config.sections import DataConfig, StatisticsConfig
from trainers.config.toml_text import dump_toml, merged
from trainers.run.experiment import run_experiment
from trainers.run.folder import RunFolder
from trainers.run.methods import load_scores
from trainers.run.predict import predict_csv, read_rows_for
from trainers.task.data import Labels, Part, split_of
from trainers.task.measures import mean_share, sum_over_queries
from trainers.task.options import follow_labels


def config_for(folder, **sections):
    """A small experiment on generated queries: two surrogates, a baseline, the heuristic in place of the solver."""
    tree = {
        "data": {"name": "grouped"},
        "surrogate": {"losses": ["ranknet", "hinge"]},
        "baselines": {"methods": ["logistic_regression"]},
        "exact": {"top_k": 5, "statistic": "dcg@5"},
        "statistics": {"report": ["mrr"]},
    }
    return test_experiment.config_for(folder, **merged(tree, sections))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, its config and its results; tests do not write to it."""
    config = config_for(tmp_path_factory.mktemp("runs"))
    return config, run_experiment(config)


def svmlight(data, rows, *, qid):
    lines = []
    for i in rows:
        features = " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(data.X[i].tolist()) if v)
        lines.append(f"{data.y[i]} " + (f"qid:{data.qid[i]} " if qid else "") + features)
    return "\n".join(lines) + "\n"


def table(data, rows):
    lines = [",".join(["shop", *data.feature_names, "sold"])]
    lines += [",".join([f"s{data.qid[i]:02d}", *map(repr, data.X[i].tolist()), str(data.y[i])]) for i in rows]
    return "\n".join(lines) + "\n"


def test_queries_are_never_split():
    data = grouped()
    split = split_of(DataConfig(name="grouped", train_fraction=0.3), 0)
    assert (split.train.n_queries, split.test.n_queries) == (18, 42)
    seen = []
    for half in (split.train, split.test):
        assert sorted(set(half.qid.tolist())) == list(range(half.n_queries))
        for query in range(half.n_queries):
            X = half.X[half.qid == query]
            own = data.qid[np.flatnonzero((X[0] == data.X).all(axis=1))[0]]
            np.testing.assert_array_equal(X, data.X[data.qid == own])
            seen.append(own)
    assert sorted(seen) == list(range(60))


@pytest.mark.parametrize(("gain", "empty"), [("exp2", "skip"), ("exp2", 0), ("linear", 1)])
def test_means_over_queries_are_those_of_scikit_learn(gain, empty):
    rng = np.random.default_rng(0)
    qid, y, scores = np.repeat([0, 1, 2, 3], 6), rng.integers(0, 4, 24), rng.normal(size=24)
    y[qid == 2] = 0
    worth = 2.0**y - 1 if gain == "exp2" else y.astype(float)
    shares = [ndcg_score(worth[qid == q][None], scores[qid == q][None], k=3) for q in (0, 1, 3)]
    expected = np.mean(shares if empty == "skip" else [*shares, empty])
    options = StatisticsConfig(gain=gain, empty=empty)
    order = rng.permutation(24)
    half = Part(np.zeros((24, 1)), y[order], qid[order])
    assert mean_share(scores[order], half, "dcg@3", options) == pytest.approx(expected)


def test_the_values_are_those_of_the_scores(finished):
    config, results = finished
    split = split_of(config.data, config.seed)
    assert results.complete
    assert results.statistics == ("ndcg@5", "nmrr")
    run = RunFolder(config.folder)
    base = load_scores(run.method("logistic_regression")).train
    chosen = np.zeros(len(base), dtype=bool)
    for query in range(split.train.n_queries):
        rows = np.flatnonzero(split.train.qid == query)
        chosen[rows[np.argsort(-base[rows], kind="stable")[:5]]] = True
    for row in results.rows:
        scores = load_scores(run.method(row["method"]))
        for name, half in (("train", split.train), ("test", split.test)):
            for shown, statistic in (("ndcg@5", "dcg@5"), ("nmrr", "mrr")):
                value = mean_share(getattr(scores, name), half, statistic, config.statistics)
                assert row[name][shown] == value
        top = [values[chosen] for values in (scores.train, split.train.y, split.train.qid)]
        assert row["top"] == pytest.approx(sum_over_queries(*top, "dcg@5", config.statistics))


def test_the_exact_stage_is_at_least_as_good_as_every_linear_method_on_the_tops(finished):
    config, results = finished
    rows = {row["method"]: row for row in results.rows}
    assert rows["exact"]["top"] >= max(row["top"] for row in results.rows) - 1e-9
    assert rows["exact"]["bound"] >= rows["exact"]["objective"]
    solution = json.loads((config.folder / "exact" / "solution.json").read_text())["certificate"]
    with np.load(config.folder / "exact" / "problem.npz") as arrays:
        problem = graded_problem(
            arrays["X"], arrays["gains"], arrays["qid"], solution["statistic"], solution["C"], solution["margin"]
        )
        assert problem.evaluate(arrays["weights"]) == solution["value"] == rows["exact"]["objective"]
    assert (solution["lists"], solution["n"]) == (30, 150)


def by_hand(text):
    queries = {}
    for row in csv.DictReader(io.StringIO(text)):
        queries.setdefault(row["query"], []).append(row)
    return queries


@pytest.mark.parametrize("kind", ["table", "qid", "sizes"])
@pytest.mark.parametrize("method", [None, "ranknet"])
def test_files_and_prediction_by_query(kind, method, tmp_path, monkeypatch):
    data = grouped(queries=24)
    parts = {"a.train": np.flatnonzero(data.qid < 15), "a.test": np.flatnonzero(data.qid >= 15)}
    for name, rows in parts.items():
        path = tmp_path / (f"{name}.csv" if kind == "table" else name)
        path.write_text(table(data, rows) if kind == "table" else svmlight(data, rows, qid=kind == "qid"))
        if kind == "sizes":
            sizes = np.unique(data.qid[rows], return_counts=True)[1]
            path.with_name(f"{name}.query").write_text("\n".join(map(str, sizes)))
    suffix = ".csv" if kind == "table" else ""
    own = {
        "data": {"path": f"a.train{suffix}", "test_path": f"a.test{suffix}"}
        | ({"label": "sold", "query": "shop"} if kind == "table" else {}),
        "surrogate": {"losses": ["ranknet"], "max_steps": 5},
        "baselines": {"methods": []},
        "exact": {"choose": False, "base": "ranknet", "top_k": 4, "method": "local_search", "time_limit": 0.5},
        "statistics": {"report": []},
    }
    (tmp_path / "own.toml").write_text(dump_toml(own))
    monkeypatch.chdir(tmp_path)
    config = load_config("own.toml")
    split = split_of(config.data, config.seed)
    np.testing.assert_array_equal(split.test.X, data.X[parts["a.test"]])
    assert (split.train.n_queries, split.test.n_queries) == (15, 9)
    if method is None or kind == "table":
        assert main(["run", "own.toml", "-q"]) == 0
    else:
        run_experiment(config)

    rows = parts["a.test"]
    text = predict_csv(read_rows_for(RunFolder(config.folder), tmp_path / f"a.test{suffix}", method))
    ranked = by_hand(text)
    scores = load_scores(RunFolder(config.folder).method(method or "exact")).test
    assert len(ranked) == 9
    for number, (query, lines) in enumerate(ranked.items()):
        own = np.flatnonzero(data.qid[rows] == 15 + number)
        assert query == {"table": f"s{15 + number}", "qid": str(15 + number), "sizes": str(number)}[kind]
        assert [int(line["position"]) for line in lines] == list(range(1, len(own) + 1))
        assert [int(line["row"]) - 1 for line in lines] == own[np.argsort(-scores[own], kind="stable")].tolist()
        assert [float(line["score"]) for line in lines] == sorted(scores[own].tolist(), reverse=True)
        stages = [line["stage"] for line in lines]
        assert stages == (["base"] * len(own) if method else ["reranked"] * 4 + ["base"] * (len(own) - 4))
        if kind == "table":
            assert all(line["shop"] == query for line in lines)


def test_new_data_without_queries_are_refused(finished, tmp_path):
    config, _ = finished
    (tmp_path / "new.csv").write_text("x0,x1,x2,x3,x4\n1,2,3,4,5\n")
    with pytest.raises(DataError, match="the run ranks by query, so each row's query is needed: in a query column"):
        read_rows_for(RunFolder(config.folder), tmp_path / "new.csv")


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"surrogate": {"losses": ["ranknet", "logistic"]}}, "surrogate.losses[1]: takes labels 0 and 1 only"),
        (
            {"baselines": {"methods": ["logistic_regression", "rankboost"]}},
            "baselines.methods: must not name rankboost",
        ),
        ({"statistics": {"report": ["dcg", "auc"]}}, "statistics.report[1]: takes labels 0 and 1 only"),
        ({"exact": {"statistic": "auc"}}, "exact.statistic: has no sum over queries; wrs, the sum of ranks, has"),
        ({"card": {}}, "card.enabled: goes with one list only"),
        ({"exact": {"method": "resolved"}}, "exact.method: "),
    ],
)
def test_what_lists_by_query_do_not_have_is_refused_before_anything_is_computed(sections, message, tmp_path):
    config = config_for(tmp_path, **sections)
    with pytest.raises(ConfigError) as error:
        run_experiment(config)
    assert message in str(error.value)
    assert not config.folder.exists()


def test_the_defaults_suit_queries_of_two_classes_and_of_grades():
    config = parse_config({"name": "x", "data": {"name": "gaussians"}})
    grades = Labels(by_query=True, graded=True)
    graded = follow_labels(config, grades)
    assert (graded.methods, graded.statistics.report) == (("auto", "exact"), ("dcg@10", "mrr"))
    assert follow_labels(parse_config(tomllib.loads(resolved_toml(graded))), grades) == graded  # which a run saves
    two = follow_labels(config, Labels(by_query=True, graded=False))
    assert (two.exact.statistic, two.exact.top_k, two.statistics) == ("dcg@10", 10, config.statistics)
    assert follow_labels(config, Labels(by_query=False, graded=False)) == config


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"statistic": "dcg@20"}, ("dcg@20", 20)),
        ({"statistic": "mrr"}, ("mrr", 10)),
        ({"statistic": "hits@10"}, ("hits@10", 20)),  # which is the same for every order of ten rows
        ({"top_k": 5}, ("dcg@10", 5)),
    ],
)
def test_the_length_of_the_lists_follows_the_statistic(given, expected):
    config = parse_config({"name": "x", "data": {"name": "gaussians"}, "exact": given})
    exact = follow_labels(config, Labels(by_query=True, graded=True)).exact
    assert (exact.statistic, exact.top_k) == expected
