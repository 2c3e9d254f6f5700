"""Explanations: what columns add up to, how rows compare with their neighbours, and `ltr explain`."""

import csv
import functools
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import ltr
from ltr.rankers import (
    LogisticRegressionRanker,
    RankBoostRanker,
    Ranker,
    ScoreColumn,
    SurrogateRanker,
    TwoStageRanker,
)
from tests.rankers.travelling import STAGE, reloaded
from trainers.cli import main
from trainers.ranking_files import Ranking
from trainers.run.folder import find_run
from trainers.run.predict import explain_rows, predict_csv, read_rows_for

FOREST = RandomForestClassifier(5, max_depth=3, random_state=0)
ONE_STAGE = [SurrogateRanker(), LogisticRegressionRanker(), RankBoostRanker(20), STAGE]
TWO_STAGES = [
    TwoStageRanker(base, STAGE, 20, choose=False, base_score=base_score)
    for base_score in (False, True)
    for base in ("hinge", "rankboost", LogisticRegression(), FOREST, ScoreColumn("bmi"))
]
NAMES = ["age", "total", "bmi"]
WORDS = ["age", "total (column)", "bmi"]  # total is a word of explanations


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1) * [10.0, 1.0, 3.0] + [50, 0, 25]
    y = (X[:, 0] / 10 + X[:, 1] - X[:, 2] / 6 + 1.5 * rng.normal(size=n) > 1).astype(int)
    return pd.DataFrame(X, columns=NAMES, index=[f"p{i}" for i in range(n)]), y


@functools.cache
def fitted(ranker):
    """The ranker fitted to the rows, and the rows, neither of which a test changes."""
    return clone(ranker, safe=False).fit(*rows()), rows()[0]


each = pytest.mark.parametrize(
    "ranker", [*ONE_STAGE, *TWO_STAGES], ids=lambda r: f"{type(r).__name__}-{getattr(r, 'base', '')}"
)


@each
def test_columns_add_up_to_a_total_that_orders_the_rows_of_a_stage(ranker, tmp_path):
    ranker, X = fitted(ranker)
    explanation = ranker.explain(X)
    frame, ranked = explanation.frame, ranker.rank(X)
    np.testing.assert_allclose(frame.drop(columns="total").sum(axis=1), frame["total"], atol=1e-9)
    assert frame.index.equals(X.index)
    assert set(WORDS) <= set(frame)
    for _, stage in ranked.groupby(ranked["stage"] if isinstance(ranker, TwoStageRanker) else np.zeros(len(X))):
        totals = frame.loc[stage.index, "total"]
        assert (totals.diff().dropna() <= 1e-9).all()
    if not isinstance(ranker, TwoStageRanker):
        np.testing.assert_array_equal(frame["total"], ranker.decision_function(X))
    if isinstance(getattr(ranker, "base_", ranker), Ranker):
        pd.testing.assert_frame_equal(reloaded(ranker, tmp_path).explain(X).frame, frame)


@each
def test_differences_are_weight_times_difference_of_values(ranker):
    ranker, X = fitted(ranker)
    explanation, order = ranker.explain(X), ranker.rank(X).index
    weights = ranker.coef_ if isinstance(ranker, TwoStageRanker) else ranker.linear_weights
    for high, low in (order[:2], order[2:4]):  # both reranked
        against = explanation.against(high, low)
        assert against.at["total", "difference"] >= 0
        assert against["difference"][:-1].sum() == pytest.approx(against.at["total", "difference"])
        assert against["difference"][:-1].is_monotonic_decreasing
        if weights is not None:
            expected = pd.Series(weights * (X.loc[high] - X.loc[low]).to_numpy(), WORDS)
            found = against["difference"].reindex(WORDS).fillna(0.0)
            np.testing.assert_allclose(found, expected, atol=1e-9)
        back = explanation.against(low, high)
        np.testing.assert_allclose(back["difference"].reindex(against.index), -against["difference"])


@pytest.mark.parametrize("ranker", TWO_STAGES, ids=lambda r: f"{r.base}-{r.base_score}")
def test_across_stages_the_base_decides_and_says_whether_it_is_decomposed(ranker):
    ranker, X = fitted(ranker)
    explanation, ranked = ranker.explain(X), ranker.rank(X)
    assert set(ranked["stage"]) == {"reranked", "base"}
    first, last = ranked.index[[0, -1]]
    against = explanation.against(first, last)
    scores = explanation.values["base score"]
    assert against.at["total", "difference"] == pytest.approx(scores[first] - scores[last])
    forest = isinstance(getattr(ranker.base_, "estimator_", None), RandomForestClassifier)
    assert ("base score" in against.index) == (explanation.base is None) == forest
    assert ("not decomposed: that of a RandomForestClassifier" in explanation.note) == (explanation.base is None)
    of_top = explanation.frame.loc[first]
    assert ("base score" in of_top.dropna()) == (ranker.base_weight_ > 0)
    if ranker.base_weight_ > 0:
        moved = ranker.base_weight_ * (scores[first] - ranker.exact_.base_center_)
        assert of_top["base score"] == pytest.approx(moved)


def test_weights_of_an_exponential_score_are_not_taken_for_a_sum():
    ranker, X = fitted(TwoStageRanker(PoissonRegressor(), STAGE, 20, choose=False))
    assert "PoissonRegressor" in ranker.explain(X.iloc[[0]]).note
    ranker, X = fitted(SurrogateRanker(scorer="mlp", hidden=(2,), max_steps=2, optimizer="adam"))
    with pytest.raises(ValueError, match="explain needs a score that is a sum over columns"):
        ranker.explain(X)


def test_a_row_is_shown_beside_its_neighbours():
    ranker, X = fitted(SurrogateRanker())
    explanation, order = ranker.explain(X), ranker.rank(X).index
    assert explanation.neighbours(order[0]) == {"below": order[1]}
    assert explanation.neighbours(order[5]) == {"above": order[4], "below": order[6]}
    table = explanation.row(order[5])
    assert table["adds"][:-1].abs().is_monotonic_decreasing
    for side, neighbour in explanation.neighbours(order[5]).items():
        against = explanation.against(order[5], neighbour)["difference"]
        np.testing.assert_allclose(table[side], against.reindex(table.index).fillna(0.0))
    for row, error in (("nobody", "there are 0 such rows"), (order[0], "2 such rows")):
        with pytest.raises(ValueError, match=error):
            ranker.explain(pd.concat([X, X])).row(row)


def test_neighbours_are_of_the_same_query():
    X, y = rows()
    qid = np.array(["b", "a"])[np.arange(len(X)) % 2]
    explanation = SurrogateRanker().fit(X, y, qid=qid).explain(X, qid)
    queries = dict(zip(X.index, qid, strict=True))
    for row in X.index:
        assert {queries[near] for near in explanation.neighbours(row).values()} == {queries[row]}


# the command


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    X, y = rows(200)
    X.assign(ill=y, name=X.index).to_csv(folder / "table.csv", index=False)
    config = folder / "config.toml"
    config.write_text(
        f'name = "explained"\nruns_dir = "{folder}"\n[data]\npath = "{folder}/table.csv"\nlabel = "ill"\n'
        'drop = ["name"]\n[surrogate]\nlosses = ["hinge"]\n'
        '[baselines]\nmethods = ["logistic_regression", "rankboost"]\n'
        "[exact]\ntop_k = 30\ntime_limit = 0.5\nchoose = false\nranges = 4\n"
        "[tracking]\nloggers = []\nfigures = false\n"
    )
    assert main(["run", str(config), "-q"]) == 0
    new, _ = rows(25, seed=1)
    new.assign(name=new.index).to_csv(folder / "new.csv", index=False)
    return folder


def test_the_command_explains_rows_of_a_run(run, capsys):
    folder, new = run / "explained", run / "new.csv"
    capsys.readouterr()
    assert main(["explain", str(folder), str(new), "--json", "--row", "4", "--row", "9"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["row"] for one in found] == [4, 9]
    text = predict_csv(read_rows_for(find_run(str(folder)), new))
    ranked = {line["row"]: line for line in csv.DictReader(text.splitlines())}
    values, explanation = pd.read_csv(new), explain_rows(read_rows_for(find_run(str(folder)), new))
    for one in found:
        line = ranked[str(one["row"])]
        told = [str(one["position"]), one["stage"], repr(one["score"])]
        assert told == [line[name] for name in ("position", "stage", "score")]
        for column in one["columns"][:-1]:
            name = column["column"].removesuffix(" (column)")
            assert column["value"] == values.at[one["row"] - 1, name]
            assert column["adds"] == explanation.frame.at[one["row"], column["column"]]


def test_rows_of_a_blend_are_explained_by_chances_with_typical_cells(tmp_path, capsys):
    X, y = rows(200)
    X.assign(ill=y).to_csv(tmp_path / "table.csv", index=False)
    new, _ = rows(12, seed=1)
    new.to_csv(tmp_path / "new.csv", index=False)
    config = {"surrogate.losses": [], "baselines.methods": ["auto"], "tracking.loggers": []}
    config |= {"baselines.auto.methods": ["logistic", "boosting"], "exact.time_limit": 0.3, "exact.top_k": 30}
    results = ltr.experiment(config, data=tmp_path / "table.csv", label="ill", folder=tmp_path / "run")
    capsys.readouterr()
    command = ["explain", str(results.folder), str(tmp_path / "new.csv")]
    assert main([*command, "--row", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[0]
    ranking = Ranking.load(results.folder).rank(new)
    why, place = ranking.why_row(2), ranking.ranked.set_index("row").loc[3]
    assert (found["position"], found["chance"]) == (place["position"], pytest.approx(place["chance"]))
    assert [one["chance_if_typical"] for one in found["columns"]] == pytest.approx(why["if typical"].tolist())
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.out.count("chance if") == 3
    assert "base score" not in printed.out
    assert "no sum over columns" in printed.err


def test_rows_of_the_training_list_get_the_range_of_their_places(run, capsys):
    table = run / "table.csv"
    with np.load(run / "explained/exact/problem.npz") as arrays:
        X, listed = arrays["X"], arrays["rows"]
    solution = json.loads((run / "explained/exact/solution.json").read_text())["certificate"]
    last, first = int(listed[-1]), int(listed[0])
    outside = next(row for row in range(1, 201) if row not in listed)
    rows_given = [word for row in (first, last, outside) for word in ("--row", str(row))]
    assert main(["explain", str(run / "explained"), str(table), *rows_given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert ["range" in one for one in found] == [True, True, False]
    scores = X @ np.array(solution["weights"])
    for one, at in zip(found[:2], (0, len(listed) - 1), strict=True):
        assert one["range"]["place"] == 1 + int((scores > scores[at] + 1e-12).sum())
        assert one["range"]["best"] <= one["range"]["place"] <= one["range"]["worst"]
    assert main(["explain", str(run / "explained"), str(table), "--row", str(last)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"Row {last} stands at place" in told
    assert "of the first 15 rows" in told
    # a file with other rows under these numbers
    pd.read_csv(table).iloc[::-1].to_csv(run / "turned.csv", index=False)
    assert main(["explain", str(run / "explained"), str(run / "turned.csv"), "--row", str(last)]) == 0
    assert "stands at place" not in capsys.readouterr().out
