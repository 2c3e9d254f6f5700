"""Demands on ranked lists: their words, what they ask of the top of a list, how rankers meet them, and the price."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import ltr
from ltr.answer import ListFront
from ltr.data.columns import Column
from ltr.exact import Demand, Limits, RerankProblem
from ltr.list_demands import Asked, GivenDemands, read_list_demands
from ltr.rankers import ExactRanker, LogisticRegressionRanker, ScoreColumn, TwoStageRanker
from ltr.rankers.two_stage import least_top
from tests.tiers import thinned
from trainers.cli import main
from trainers.config import load_config, parse_config
from trainers.config.errors import ConfigError
from trainers.task.data import Labels
from trainers.task.options import follow_labels

COLUMNS = {
    "sex": Column("sex", ["F", "M", "F", None, "M", "M"]),
    "age": Column("age", [70, 30, 41, 65, None, 20.5]),
    "marital status": Column("marital status", ["single", "a (b)", "wed", "wed", "wed", ""]),
    "vip": Column("vip", ["Yes", "No", "No", "Yes", "No", None]),
    "own": Column("own", [True, False, True, False, False, False]),
    "a>b": Column("a>b", [1, 0, 1, 0, 0, 0]),
}

# --- words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meant", "rows"),
    [
        ("share(sex = F) @50 >= 0.4", "share(sex = F) @50 >= 0.4", "101000"),
        ("share(sex=F)@50>=40%", "share(sex = F) @50 >= 0.4", "101000"),
        (" share ( sex == F ) @ 50 <= .6 ", "share(sex = F) @50 <= 0.6", "101000"),
        ("share(sex != F) @5 >= 0.4", "share(sex != F) @5 >= 0.4", "010011"),
        ("count(age >= 65) @50 >= 10", "count(age >= 65) @50 >= 10", "100100"),
        ("count(age < 41) @50 <= 10", "count(age < 41) @50 <= 10", "010001"),
        ("count(age in (70, 30.0)) @2 >= 1", "count(age in (70, 30.0)) @2 >= 1", "110000"),
        ("count(sex in (F, 'M')) @2 >= 1", "count(sex in (F, M)) @2 >= 1", "111011"),
        ("exposure(vip = yes) >= 0.45", "exposure(vip = yes) >= 0.45", "100100"),
        ("exposure(vip = 0) @9 <= 0.5", "exposure(vip = 0) @9 <= 0.5", "011010"),
        ("share(own = true) @3 >= 0.5", "share(own = true) @3 >= 0.5", "101000"),
        ("share(marital status = a (b)) @3 >= 0.1", "share(marital status = a (b)) @3 >= 0.1", "010000"),
        ("share('a>b' = 1) @3 >= 0.1", "share('a>b' = 1) @3 >= 0.1", "101000"),
    ],
)
def test_words_of_a_group(text, meant, rows):
    (demand,) = read_list_demands([text], COLUMNS)
    assert str(demand) == meant
    assert read_list_demands([meant], COLUMNS) == [demand]
    held = demand.condition.holds(COLUMNS[demand.condition.column])
    assert held.tolist() == [letter == "1" for letter in rows]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("share(sxe = F) @50 >= 0.4", "there is no column 'sxe' (did you mean 'sex'?)"),
        ("share(sex = f) @50 >= 0.4", "column 'sex' has no value 'f' (did you mean 'F'?)"),
        ("count(age > old) @50 >= 1", "column 'age' holds numbers, got 'old'"),
        ("count(age > 99) @3 >= 2", "age > 99 must hold for some rows and not for all, got 0 of 6"),
        ("share(sex = F) @50 > 0.4", "'>' is none of >= and <="),
        ("share(sex = F) @50 >= 40", "a share must be a number from 0 to 1, got 40"),
        ("count(sex = F) @50 >= 2.5", "a count must be a whole number from 0 to 50, got 2.5"),
        ("share(sex = F) >= 0.4", "the number of first rows is missing, as in share(...) @50"),
        ("share(sex = F @50 >= 0.4", "a bracket is not closed"),
        ("shar(sex = F) @50 >= 0.4", "there is no 'shar' (did you mean 'share'?)"),
        ("recall >= 0.4", "recall: a cutoff is needed, as in 'recall@100'"),
        ("auc@10 >= 0.4", "auc: takes no cutoff, got @10; the partial AUC is 'pauc@N'"),
        ("auc <= 0.4", "'<=' goes with share, count, exposure of a group: a lower auc is no aim"),
        ("ap >= 0.4", "average precision is no sum of weights of ranks"),
    ],
)
def test_mistakes_are_told_with_what_is_nearest(text, message):
    with pytest.raises(ValueError, match=re.escape(f"demands: {text!r}: ")) as error:
        read_list_demands([text], COLUMNS)
    assert message in str(error.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(ValueError, match="is none of >= and <=") as error:
        read_list_demands(["share(sxe = F) @50 > 40 %", "count(sex = f) @2 >= 1", "auc >= 0.5", 7], COLUMNS)
    assert str(error.value).split("\n") == [
        "demands: 'share(sxe = F) @50 > 40 %': '>' is none of >= and <=",
        "demands: 'count(sex = f) @2 >= 1': column 'sex' has no value 'f' (did you mean 'F'?)",
        "demands: 7: must be a text such as 'share(sex = F) @50 >= 0.4'",
    ]
    with pytest.raises(ValueError, match="demands: must be a list of texts"):
        read_list_demands("auc >= 0.5")


# --- values and tops -----------------------------------------------------------------------------------------------


def rows_of(seed, n=40, queries=False):
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.4
    y = rng.integers(0, 2, n).astype(float)
    lists = np.sort(rng.integers(0, 4, n)) if queries else None
    return rng, group, y, None if lists is None else np.unique(lists, return_inverse=True)[1]


def asked_of(text, group, y, lists):
    (demand,) = read_list_demands([text])
    columns = {"g": Column("g", group)}
    return GivenDemands.of_columns([demand], columns, "exp2").of(y, lists)[0]


def members(lists, n):
    return [np.arange(n)] if lists is None else [np.flatnonzero(lists == one) for one in np.unique(lists)]


def by_definition(text, scores, group, y, lists):
    """Return the value of a demand, from its definition in words."""
    ordered = [rows[np.argsort(-scores[rows])] for rows in members(lists, len(y))]
    what = text.split()[0]
    if what.startswith("share"):
        first = np.concatenate([rows[:5] for rows in ordered])
        return group[first].mean()
    if what.startswith("count"):
        return group[np.concatenate([rows[:5] for rows in ordered])].sum()
    if what.startswith("exposure"):
        discounts = [1 / np.log2(np.arange(len(rows)) + 2) for rows in ordered]
        return sum(group[rows] @ a for rows, a in zip(ordered, discounts, strict=True)) / sum(map(np.sum, discounts))
    qid = np.zeros(len(y), dtype=int) if lists is None else lists
    name = text.split()[0]
    values = ltr.metrics.evaluate(scores, y, [name], qid=qid)[name].numpy()
    return values.sum() if name.startswith(("dcg", "hits")) else np.nanmean(values)


TEXTS = [
    "share(g = true) @5 >= 0.4",
    "share(g = true) @5 <= 0.4",
    "count(g = true) @5 >= 3",
    "count(g = true) @5 <= 3",
    "exposure(g = true) >= 0.4",
    "exposure(g = true) <= 0.4",
    "hits@7 >= 3",
    "recall@7 >= 0.3",
    "precision@7 >= 0.5",
    "auc >= 0.6",
    "dcg@6 >= 2",
    "ndcg@6 >= 0.7",
    "mrr >= 1",
    "wrs >= 300",
    "power(p=2) >= 300",
    "pauc@8 >= 100",
]


@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_a_demand_on_the_top_of_a_list_is_that_on_the_whole_list(text, queries):
    """Against the definition, and for random orders of the top beside the value that the exact problem has."""
    for seed in range(4):
        rng, group, y, lists = rows_of(seed, queries=queries)
        asked = asked_of(text, group, y, lists)
        base = rng.normal(size=len(y))
        top = np.zeros(len(y), dtype=bool)
        for rows in members(lists, len(y)):
            top[rows[np.argsort(-base[rows])[:12]]] = True
        if queries and text.startswith(("power", "pauc", "recall")):
            with pytest.raises(ValueError, match="of lists by query has no form on their tops: rerank full lists"):
                asked.of_top(base, top)
            continue
        on_top = asked.of_top(base, top)
        for _ in range(20):
            scores = np.where(top, 100 + rng.normal(size=len(y)), base)
            value = asked.value(scores)
            if not text.startswith(("wrs", "power", "pauc", "mrr")):
                assert value == pytest.approx(by_definition(text, scores, group, y, lists), abs=1e-12)
            sign, least = (-1, -float(text.split()[-1])) if "<=" in text else (1, float(text.split()[-1]))
            assert asked.met(scores) == (sign * value >= least - 1e-9)
            if on_top.demand is None:
                assert asked.met(scores) == on_top.met
                continue
            own = None if lists is None else lists[top]
            options = {"qid": own, "gain": "linear", "margin": 1e-12, "demands": [on_top.demand]}
            problem = RerankProblem(scores[top][:, None] - 100, np.arange(top.sum()) % 2, "dcg", **options)
            found = problem.demanded[0]
            assert on_top.whole(found.value([1.0])) == pytest.approx(value, abs=1e-9)
            assert found.met([1.0]) == asked.met(scores)
            assert (value - on_top.most) * sign <= 1e-9


def test_ties_count_against_the_demand():
    group, y = np.array([True, False, True, False]), np.array([1.0, 0, 1, 0])
    for text, value in (("share(g = true) @2 >= 0.5", 0.0), ("share(g = true) @2 <= 0.5", 1.0), ("hits@2 >= 1", 0.0)):
        assert asked_of(text, group, y, None).value(np.zeros(4)) == value


def test_labels_that_do_not_go_with_a_demand():
    y = np.array([0.0, 2, 1, 0])
    with pytest.raises(ValueError, match=r"demands: auc >= 0\.5: labels must be 0 and 1 for auc"):
        Asked.of(read_list_demands(["auc >= 0.5"])[0], y, None, None, "exp2")
    with pytest.raises(ValueError, match=r"demands: .*: labels must be one number per row"):
        Asked.of(Demand("dcg", 0.5, labels=[0, 1]), y, None, None, "exp2")
    asked = Asked.of(Demand("dcg", 0.5, labels=[0, 3, 0, 0]), y, None, None, "exp2")
    assert asked.value(np.array([0.0, 3, 2, 1])) == 3.0
    assert asked.text == "dcg of labels >= 0.5"


# --- the price -----------------------------------------------------------------------------------------------------


def people(n=240, seed=0, queries=False):
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n) < 0.4, "F", "M")
    a, b = rng.normal(size=n) + (sex == "M"), rng.normal(size=n) + 0.3 * (sex == "F")
    y = (a + 0.5 * b + rng.normal(size=n) > 1).astype(int)
    return pd.DataFrame({"a": a, "b": b}), y, pd.DataFrame({"sex": sex}), np.arange(n) // 30 if queries else None


def test_the_price_of_a_list_is_that_of_all_directions():
    X, y, sex, _ = people(60)
    ranker = ExactRanker("dcg", demands=["share(sex = F) @10 >= 0.5"], limits=Limits(time_limit=30)).fit(
        X, y, beside=sex
    )
    Z = (X - X.mean()) / X.std(ddof=0)
    best = {True: 0.0, False: 0.0}
    for angle in np.linspace(0, 2 * np.pi, 4001):
        order = np.argsort(-(Z @ [np.cos(angle), np.sin(angle)]).to_numpy())
        value = (y[order] / np.log2(np.arange(60) + 2)).sum()
        met = (sex["sex"].to_numpy()[order[:10]] == "F").mean() >= 0.5
        best[True] = max(best[True], value if met else 0.0)
        best[False] = max(best[False], value)
    price = ranker.demands_.price
    assert price.value == pytest.approx(best[True], abs=1e-6)
    assert price.free == pytest.approx(best[False], abs=1e-6)
    assert price.least <= price.cost <= price.most
    assert price.most == pytest.approx(price.cost)  # proven


# --- rankers -------------------------------------------------------------------------------------------------------


def first_women(ranker, X, sex, k, qid=None):
    scores = ranker.predict(X, **({} if qid is None else {"qid": qid}))
    return np.concatenate(
        [(sex["sex"].to_numpy()[rows][np.argsort(-scores[rows])[:k]] == "F") for rows in members(qid, len(X))]
    )


@pytest.mark.parametrize("queries", [False, True])
def test_the_merged_list_meets_a_demand_that_the_base_does_not(queries):
    X, y, sex, qid = people(queries=queries)
    k, top_k, text = (5, 20, "share(sex = F) @5 >= 0.5") if queries else (20, 80, "share(sex = F) @20 >= 0.3")
    base = LogisticRegressionRanker().fit(X, y)
    least = float(text.split()[-1])
    assert first_women(base, X, sex, k, qid).mean() < least
    exact = ExactRanker("dcg@20", demands=[text], limits=Limits(time_limit=5))
    ranker = TwoStageRanker("logistic", exact, top_k, choose=False).fit(X, y, qid, beside=sex)
    share = first_women(ranker, X, sex, k, qid).mean()
    assert share >= least
    assert ranker.demands_.met
    assert ranker.demands_.reached[0].value == pytest.approx(share)
    assert ranker.demands_.price.cost > 0
    # where the base does not meet the demand there is nothing to choose
    choosing = TwoStageRanker("logistic", exact, top_k).fit(X, y, qid, beside=sex)
    assert choosing.choice_ is None
    assert choosing.demands_.met
    # chances come from rankers of other rows, to which the demands say nothing
    for fitted in (ranker, choosing):
        chances = fitted.calibrate(X, y, qid).predict_proba(X, qid)
        assert ((chances > 0) & (chances < 1)).all()


def test_a_base_that_meets_the_demands_is_a_candidate():
    X, y, sex, _ = people()
    demands = ["share(sex = F) @20 >= 0.01", "recall@40 >= 0.2"]
    free = TwoStageRanker("logistic", "dcg", 80).fit(X, y)
    ranker = TwoStageRanker("logistic", ExactRanker("dcg", demands=demands), 80).fit(X, y, beside=sex)
    assert ranker.choice_.chosen == free.choice_.chosen
    assert np.array_equal(ranker.predict(X), free.predict(X))
    assert ranker.demands_.met
    assert ranker.demands_.price is None
    assert str(ranker.demands_).endswith("cost nothing: the ranker that is chosen without them is this one")


def test_a_correction_that_misses_the_demands_gives_way_to_the_base():
    """The base puts women first, who have few hits: each correction that is compared puts men first."""
    rng = np.random.default_rng(0)
    women = rng.random(240) < 0.5
    X = pd.DataFrame({"a": rng.normal(size=240) + 1.5 * women, "b": rng.normal(size=240) + 1.5 * ~women})
    y, sex = (X["b"] + 0.5 * rng.normal(size=240) > 1).astype(int), pd.DataFrame({"sex": np.where(women, "F", "M")})
    free = TwoStageRanker(ScoreColumn("a"), "dcg@20", 220).fit(X, y)
    assert free.choice_.chosen != "base"
    assert first_women(free, X, sex, 20).mean() < 0.5
    exact = ExactRanker("dcg@20", demands=["share(sex = F) @20 >= 0.5"])
    ranker = TwoStageRanker(ScoreColumn("a"), exact, 220).fit(X, y, beside=sex)
    assert ranker.choice_.chosen == "base"
    assert first_women(ranker, X, sex, 20).mean() >= 0.5
    assert np.argsort(-ranker.predict(X)).tolist() == np.argsort(-X["a"]).tolist()


def test_demands_as_objects_and_of_columns_of_a_frame():
    X, y, sex, _ = people(120)
    women = (sex["sex"] == "F").to_numpy()
    by_object = ExactRanker("dcg", demands=[Demand("hits@10", 5, labels=women)]).fit(X, y)
    by_text = ExactRanker("dcg", demands=["count(sex = F) @10 >= 5"]).fit(X, y, beside={"sex": sex["sex"]})
    by_column = ExactRanker("dcg", demands=["count(sex > 0) @10 >= 5"], forbidden=["sex"])
    by_column.fit(X.assign(sex=women.astype(float)), y)
    values = [ranker.demands_.price.value for ranker in (by_object, by_text, by_column)]
    assert values == pytest.approx([values[0]] * 3)
    assert women[np.argsort(-by_object.predict(X))[:10]].sum() >= 5
    # rows of weight 0 are no rows
    weights = np.where(np.arange(120) < 100, 1.0, 0.0)
    kept = ExactRanker("dcg", demands=["count(sex = F) @10 >= 5"]).fit(X, y, sample_weight=weights, beside=sex)
    assert women[:100][np.argsort(-kept.predict(X[:100]))[:10]].sum() >= 5


def test_demands_that_nothing_meets():
    X, y, sex, _ = people(120)
    exact = ExactRanker("dcg", demands=["count(sex = F) @10 >= 10"], limits=Limits(time_limit=10))
    with pytest.raises(ValueError, match="demands: no weights meet the demands") as error:
        exact.fit(X, y, beside=sex)
    most = int(re.search(r"the most that can be reached is (\d+)", str(error.value))[1])
    reached = ExactRanker("dcg", demands=[f"count(sex = F) @10 >= {most}"]).fit(X, y, beside=sex)
    assert reached.demands_.reached[0].value == most
    with pytest.raises(ValueError, match=r"no order of the rows that are reranked .* can be reached is 0\.\d"):
        TwoStageRanker("logistic", ExactRanker(demands=["share(sex = F) @10 >= 0.9"]), 12).fit(X, y, beside=sex)
    both = ["share(sex = F) @10 >= 0.6", "share(sex = M) @10 >= 0.6"]
    with pytest.raises(ValueError, match=r"demands: no weights .*meet the demands"):
        ExactRanker(demands=both, limits=Limits(time_limit=5)).fit(X, y, beside=sex)


# --- configs and runs ----------------------------------------------------------------------------------------------


def written(folder, *keys, queries=False):
    X, y, sex, qid = people(400, queries=queries)
    frame = X.assign(sex=sex["sex"], ill=np.where(y > 0, "yes", "no"))
    frame.assign(**({"q": qid} if queries else {})).to_csv(folder / "people.csv", index=False)
    path = folder / "people.toml"
    path.write_text(
        'data = {path = "people.csv", label = "ill", drop = ["sex"]' + (', query = "q"' if queries else "") + "}\n"
        'baselines = {methods = ["logistic_regression"]}\n'
        f"runs_dir = {json.dumps(str(folder / 'runs'))}\n"
        "[exact]\nnode_limit = 300\n" + "\n".join(keys)
    )
    return path


DEMAND = "share(sex = F) @20 >= 0.4"


@pytest.mark.parametrize(
    ("demands", "top_k", "by_query"),
    [
        ([DEMAND], 50, False),
        (["share(sex = F) @50 >= 0.4", "recall@80 >= 0.1"], 160, False),
        (["exposure(sex = F) >= 0.4", "ndcg@60 >= 0.4"], 50, False),
        (["share(sex = F) @10 >= 0.4"], 20, True),
        ([], 10, True),
    ],
)
def test_the_list_to_rerank_is_longer_than_what_demands_count(demands, top_k, by_query):
    config = parse_config({"name": "x", "data": {"name": "pima"}, "exact": {"demands": demands}})
    assert follow_labels(config, Labels(by_query, False)).exact.top_k == top_k


@pytest.mark.parametrize("queries", [False, True])
def test_a_run_under_a_demand_on_a_dropped_column(tmp_path, capsys, queries):
    text = "share(sex = F) @5 >= 0.5" if queries else DEMAND
    top_k = f"top_k = {20 if queries else 100}"
    path = written(tmp_path, top_k, "certificate = true", f"demands = [{json.dumps(text)}]", queries=queries)
    assert main(["run", str(path), "-q"]) == 0
    out = capsys.readouterr().out
    results = json.loads((tmp_path / "runs/people/results.json").read_text())
    found = results["rows"][-1]["demands"]
    assert found["reached"][0]["met"]
    assert found["reached"][0]["value"] >= float(text.split()[-1])
    assert 0 <= found["new"][0]["low"] <= found["new"][0]["value"] <= found["new"][0]["high"] <= 1
    assert found["price"]["value"] < found["price"]["free"]
    assert "not meeting the demands, for comparison only: logistic_regression" in out
    met, cost = (line for line in results["conclusions"] if "share(sex" in line)
    assert re.search(r"^demand .*: met, by .* on the training list; on new lists 0\.\d+ \[[\d.]+, [\d.]+\]", met)
    assert cost.startswith(f"{text} costs ")
    assert "Demand share(sex = F)" in (tmp_path / "runs/people/page.html").read_text()
    assert main(["verify", str(tmp_path / "runs/people/exact/certificate.json")]) == 0
    assert f"hits@{5 if queries else 20} at least" in capsys.readouterr().out
    # predictions need no column of the demand
    pd.read_csv(tmp_path / "people.csv").drop(columns="sex").to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(tmp_path / "runs/people"), str(tmp_path / "new.csv"), "-q"]) == 0


def test_what_a_front_measures_is_a_demand_without_its_least_value():
    assert parse_config({"name": "x", "exact": {"front": "exposure(sex=F)"}, "data": {"name": "pima"}}).exact.front == (
        "exposure(sex = F)"
    )
    for text, message in {
        "share(sex = F) @20 >= 0.4": "without its least value",
        "share(sex = F) @20": "does not depend on the order of the top 20",
    }.items():
        with pytest.raises(ConfigError, match=r"exact\.front") as error:
            parse_config({"name": "x", "data": {"name": "pima"}, "exact": {"front": text, "top_k": 20}})
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("measure", "queries"), thinned(4, ["exposure(sex = F)", "share(sex = F) @20", "recall@30"], [True, False])
)
def test_the_front_of_a_run_agrees_with_demands(tmp_path, capsys, measure, queries):
    measure = measure.replace("20", "5").replace("30", "5") if queries else measure
    top_k = f"choose = false\ntop_k = {20 if queries else 60}"
    path = written(tmp_path, top_k, f"front = {json.dumps(measure)}", "ranges = 0.5", queries=queries)
    assert main(["run", str(path)]) == 0
    folder = tmp_path / "runs/people/exact"
    if queries and measure == "recall@5":  # which the tops of lists cannot tell
        assert "no front: recall@5 of lists by query has no form on their tops" in " ".join(
            capsys.readouterr().err.split()
        )
        assert json.loads((folder / "result.json").read_text())["front"] is None
        return
    kept = json.loads((folder / "result.json").read_text())["front"]
    found = ListFront.from_dict(kept)
    assert found.names[1] == measure
    firsts = np.array([point.first for point in found.points])
    np.testing.assert_allclose([point.price for point in found.points], 1 - firsts / firsts[0], atol=1e-12)
    record = json.loads((folder / "result.json").read_text())
    assert found.points[0].first == pytest.approx(record["list"]["value"])
    row = json.loads((tmp_path / "runs/people/results.json").read_text())["rows"][-1]
    assert row["front"] == kept
    assert row["ranges"] == json.loads((folder / "result.json").read_text())["ranges"]
    page = (tmp_path / "runs/people/page.html").read_text()
    assert "How firm the order is" in page
    assert f"The price of {measure}" in page
    assert main(["report", str(tmp_path / "runs/people"), "-o", str(tmp_path / "report")]) == 0
    assert f"The price of {measure}, exact" in (tmp_path / "report/report.md").read_text()
    # a demand for the last value is met, at the price of its point, and not for more
    last = found.points[-1]
    demand = f'exact.demands=["{measure} >= {last.second - 1e-9:.12g}"]'
    assert main(["run", str(path), "-q", "name=again", demand]) == 0
    again = json.loads((tmp_path / "runs/again/exact/result.json").read_text())
    assert again["demands"]["reached"][0]["value"] >= last.second - 1e-6
    if last.proven:
        assert again["list"]["value"] == pytest.approx(last.first)


# --- ltr rank ------------------------------------------------------------------------------------------------------


def test_the_least_top_that_can_meet_a_demand():
    for seed, queries in ((0, False), (1, True), (2, False), (3, True)):
        rng, group, y, lists = rows_of(seed, queries=queries)
        asked, base, every = asked_of("share(g = true) @5 >= 0.6", group, y, lists), rng.normal(size=len(y)), []
        for k in range(2, 25):  # of fewer than 5 rows, all stay among the first 5
            tops = [rows[np.argsort(-base[rows])[: max(k, 5)]] for rows in members(lists, len(y))]
            places = sum(min(5, len(rows)) for rows in members(lists, len(y)))
            every.append(sum(min(group[top].sum(), 5) for top in tops) / places >= 0.6)
        assert least_top([asked], base, lists) == (2 + every.index(True) if any(every) else None)
    few = asked_of("count(g = true) @9 >= 9", np.arange(30) < 5, np.arange(30) % 2.0, None)
    assert least_top([few], np.arange(30.0), None) is None


def test_ltr_rank_under_a_demand(tmp_path):
    X, y, sex, _ = people(500, seed=3)
    table = X.assign(sex=sex["sex"], ill=np.where(y > 0, "yes", "no"))
    old, new = table[:300], table[300:].reset_index(drop=True)
    given = {"label": "ill", "visits": 20, "drop": ["sex"], "methods": ["logistic"]}
    text = "share(sex = F) @20 >= 0.4"
    ranking = ltr.rank(old, new=new, demands=[text], folder=tmp_path / "page", **given)
    assert ranking.ranker.demands_.met
    told, cost, _ = ranking.answer.learned.demands
    assert told.startswith(f"demand {text}: met, by 0.4")
    assert cost.startswith(f"{text} costs ")
    share = (new["sex"].to_numpy()[ranking.ranked.index[:20]] == "F").mean()
    assert any("share(sex" in one for one in ranking.answer.warnings) == (share < 0.4)
    assert load_config(tmp_path / "page/config.toml").exact.demands == (text,)


def test_rates_are_read_in_both_forms_and_met_at_some_threshold():
    first, second = read_list_demands(["tpr(fpr <= 10 %) >= 80 %", "fpr(tpr=0.8) <= 0.1"])
    assert str(first) == str(second) == "tpr(fpr=0.1) >= 0.8"
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(5, 40))
        y = rng.integers(0, 2, n).astype(float)
        if y.min() == y.max():
            continue
        scores = rng.integers(0, 8, n) + 2.0 * y * (rng.random(n) < 0.7)
        above = [scores >= threshold for threshold in np.unique(scores)]
        meets = any(at[y == 1].mean() >= 0.8 - 1e-9 and at[y == 0].mean() <= 0.1 + 1e-9 for at in above)
        assert Asked.of(first, y, None, None, "exp2").met(scores) == meets
    with pytest.raises(ValueError, match="rates are those of one list"):
        Asked.of(first, y, np.arange(n) % 2, None, "exp2")
    with pytest.raises(ValueError, match="no row has a label above 0"):
        Asked.of(first, 0 * y, None, None, "exp2")
