"""Constraints on columns bind what is deployed: every way in, every constraint, checked from the predictions too."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import ltr
from ltr.demands import read_demands
from ltr.rankers import (
    EstimatorRanker,
    ExactRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    Ranker,
    ScoreColumn,
    SurrogateRanker,
    TwoStageRanker,
)
from ltr.rankers.demand_checks import check_demands, promises
from trainers.cli import main

NAMES = ["age", "bmi", "income", "sex"]
pytestmark = pytest.mark.usefixtures("few_fits")
DEMANDS = {
    "signs": {"signs": {"bmi": "+", "sex": "-"}},
    "most": {"max_nonzeros": 2},
    "required and forbidden": {"required": ["income"], "forbidden": ["sex"]},
    "rows": {"constraints": ["age >= 2*bmi", "sex <= income"]},
    "all": {"signs": {"age": "+"}, "required": ["bmi"], "forbidden": ["sex"], "max_nonzeros": 2},
}
BOOSTED = "sklearn.ensemble:HistGradientBoostingClassifier(max_iter=15)"


def frame(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)) * [10.0, 4.0, 0.5, 1.0], columns=NAMES)
    y = (X["age"] / 10 - X["bmi"] / 4 + X["sex"] + rng.normal(size=n) > 0).astype(int)
    return X, y.to_numpy(), np.arange(n) // 20


def places(ranker, X, qid):
    """Return, for each row, how many rows of its list stand above it."""
    scores = ranker.predict(X) if qid is None else ranker.predict(X, qid)
    same = np.ones((len(X), len(X)), dtype=bool) if qid is None else qid[:, None] == qid[None, :]
    return ((scores[None, :] > scores[:, None]) & same).sum(axis=1)


def assert_deployed_satisfies(ranker, given, X, qid=None):
    """Check a ranker's demands from its weights, and from its predictions alone."""
    names = list(X.columns)
    demands = read_demands(len(names), names, **given)
    assert all(check.holds for check in check_demands(ranker, demands)), list(map(str, check_demands(ranker, demands)))
    X, qid = X.iloc[:60], None if qid is None else qid[:60]
    before, scores = places(ranker, X, qid), ranker.predict(X) if qid is None else ranker.predict(X, qid)
    rng, moving = np.random.default_rng(1), set()
    for j, name in enumerate(names):
        for row in rng.choice(len(X), 12, replace=False):
            for step in (0.3, 3.0):
                moved = X.copy()
                moved.iloc[row, j] += step * X[name].std()
                after = places(ranker, moved, qid)
                assert demands.signs[j] * (after[row] - before[row]) <= 0
        shuffled = X.assign(**{name: rng.permutation(X[name].to_numpy())})
        changed = ranker.predict(shuffled) if qid is None else ranker.predict(shuffled, qid)
        if not np.array_equal(changed, scores):
            moving.add(j)
    assert not moving & set(demands.forbidden)
    assert moving >= set(demands.required)
    assert demands.max_nonzeros is None or len(moving) <= demands.max_nonzeros


@pytest.mark.parametrize("by_query", [False, True])
@pytest.mark.parametrize("base_score", [False, True])
@pytest.mark.parametrize("name", DEMANDS)
@pytest.mark.parametrize("base", ["logistic", "ranknet", "squared_hinge", BOOSTED])
def test_both_stages_are_bound(base, name, base_score, by_query, tmp_path):
    (X, y, qid), given = frame(), DEMANDS[name]
    lists, exact = qid if by_query else None, ExactRanker(**given)
    ranker = TwoStageRanker(base, exact, 8 if by_query else 40, choose=False, base_score=base_score)
    if base == BOOSTED and "constraints" in given:
        with pytest.raises(ValueError, match="does not satisfy the constraints: age - 2"):
            ranker.fit(X, y, lists)
        return
    ranker.fit(X, y, lists)
    assert_deployed_satisfies(ranker, given, X, lists)
    ranker.save(tmp_path / "model.json")
    loaded = Ranker.load(tmp_path / "model.json")
    assert list(map(str, check_demands(loaded))) == list(map(str, check_demands(ranker)))


@pytest.mark.parametrize("name", DEMANDS)
def test_the_choice_deploys_only_what_satisfies(name):
    X, y, _ = frame(100)
    ranker = TwoStageRanker("logistic", ExactRanker(**DEMANDS[name]), 30).fit(X, y)
    assert ranker.choice_ is not None
    assert_deployed_satisfies(ranker, DEMANDS[name], X)


@pytest.mark.parametrize("name", DEMANDS)
@pytest.mark.parametrize(
    "make", [LogisticRegressionRanker, ExactRanker, lambda **given: SurrogateRanker("hinge", **given)]
)
def test_single_stages_satisfy_their_own(make, name):
    X, y, _ = frame()
    assert_deployed_satisfies(make(**DEMANDS[name]).fit(X, y), DEMANDS[name], X)


@pytest.mark.parametrize(
    ("base", "given", "message"),
    [
        (RankBoostRanker(), {"signs": {"sex": "-"}}, r"sex - \(a split lets it rise\)"),
        ("rankboost", {"max_nonzeros": 2}, r"at most 2 columns \(4 used: age, bmi, income, sex\)"),
        ("rankboost", {"constraints": ["age >= bmi"]}, r"age - bmi >= 0 \(it has no weights\)"),
        (HistGradientBoostingClassifier(max_iter=5), {"signs": {"bmi": "+"}}, r"bmi \+ \(a split lets it fall\)"),
        (LogisticRegression(), {"signs": {"sex": "-"}}, r"sex - \(weight "),
        (ScoreColumn("income"), {"max_nonzeros": 2}, "the columns behind the column of scores are not known"),
        (ScoreColumn("income"), {"required": ["age"]}, r"uses age \(weight 0\)"),
        (ScoreColumn("income"), {"signs": {"income": "-"}}, r"income - \(weight 1\)"),
        (SurrogateRanker(scorer="mlp"), {"forbidden": ["sex"]}, "the mlp network of ranknet cannot be fitted"),
        ("lambda(statistic=dcg)", {"signs": {"sex": "-"}}, "lambda.* cannot be fitted under constraints on columns"),
    ],
)
def test_a_base_that_violates_is_refused_with_the_remedy(base, given, message):
    X, y, _ = frame()
    for choose in (False, True):
        with pytest.raises(ValueError, match=f"^base: .*{message}.*Take as base logistic regression") as error:
            TwoStageRanker(base, ExactRanker(**given), 40, choose=choose).fit(X, y)
        assert "\n" not in str(error.value)


def test_a_base_is_taken_where_it_verifiably_satisfies():
    X, y, _ = frame()
    given = {"signs": {"age": "+", "bmi": "-"}}
    fitted = [
        LogisticRegression().fit(X, y),
        SurrogateRanker("ranknet").fit(X, y),
        HistGradientBoostingClassifier(max_iter=10, monotonic_cst=[1, -1, 0, 0]).fit(X, y),
    ]
    for base in fitted:
        ranker = TwoStageRanker(base, ExactRanker(**given), 40, choose=False).fit(X, y, base_is_fitted=True)
        assert ranker.base_ is base
        assert_deployed_satisfies(ranker, given, X)
    with pytest.raises(ValueError, match=r"^base: LogisticRegression does not satisfy the constraints: age - "):
        TwoStageRanker(fitted[0], ExactRanker(signs={"age": "-"}), 40).fit(X, y, base_is_fitted=True)


def test_full_lists_need_no_base_that_satisfies():
    X, y, _ = frame()
    ranker = TwoStageRanker("rankboost", ExactRanker(max_nonzeros=1), None, choose=False).fit(X, y)
    assert_deployed_satisfies(ranker, {"max_nonzeros": 1}, X)


def test_a_base_with_constraints_of_its_own_keeps_them():
    X, y, _ = frame()
    base = LogisticRegressionRanker(forbidden=["age", "sex"])
    ranker = TwoStageRanker(base, ExactRanker(max_nonzeros=2), 40, choose=False).fit(X, y)
    assert np.flatnonzero(ranker.base_.coef_).tolist() == [1, 2]
    assert_deployed_satisfies(ranker, {"max_nonzeros": 2, "forbidden": ["age", "sex"]}, X)


def test_points_bind_rows_of_the_base_in_the_same_units():
    X, y, _ = frame()
    given = {"constraints": ["age >= 2*bmi"], "signs": {"sex": "-"}}
    ranker = TwoStageRanker("logistic", ExactRanker(integer=3, **given), top_k=60, choose=False).fit(X, y)
    checks = check_demands(ranker)
    assert [check.holds for check in checks] == [True, True]
    for weights in (ranker.base_.coef_, ranker.coef_):
        points = weights * ranker.exact_.units_
        assert points[0] >= 2 * points[1] - 1e-9


@pytest.mark.parametrize(
    "given",
    [
        {"required": ["age"], "constraints": ["age = 0*bmi"]},
        {"required": ["age", "bmi", "sex"], "max_nonzeros": 2},
        {"required": ["age"], "forbidden": ["age"]},
        {"signs": {"ages": "+"}},
    ],
    ids=str,
)
@pytest.mark.parametrize("base", ["logistic", "ranknet"])
def test_contradictions_are_one_error(base, given):
    X, y, qid = frame()
    for lists in (None, qid):
        with pytest.raises(ValueError, match=r"^(required|forbidden|signs): ") as error:
            TwoStageRanker(base, ExactRanker(**given), 10, choose=False).fit(X, y, lists)
        assert "\n" not in str(error.value)


# --- checks ------------------------------------------------------------------------------------------------------


def test_trees_are_checked_node_by_node():
    X, y, _ = frame(400)
    free = EstimatorRanker(BOOSTED).fit(X, y)
    bound = EstimatorRanker(BOOSTED, signs={"age": "+", "bmi": "-"}, forbidden=["income"]).fit(X, y)
    assert [check.holds for check in check_demands(bound)] == [True, True, True]
    assert not any(check.holds for check in check_demands(free, signs={"age": "+", "bmi": "-"}, forbidden=["income"]))
    assert_deployed_satisfies(bound, {"signs": {"age": "+", "bmi": "-"}, "forbidden": ["income"]}, X)


def test_thresholds_are_checked_by_column():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    up = RankBoostRanker(rounds=1).fit(X, [0, 0, 1, 1])
    both = RankBoostRanker(rounds=20, step="exact").fit(X, y)
    assert [check_demands(ranker, signs={0: "+"})[0].holds for ranker in (up, both)] == [
        True,
        bool((both.alphas_ >= 0).all()),
    ]
    assert not check_demands(up, signs={0: "-"})[0].holds


def test_a_network_shows_nothing():
    X, y, _ = frame(60)
    ranker = SurrogateRanker(scorer="mlp", max_steps=1, validation=0.0).fit(X, y)
    checks = check_demands(ranker, signs={"age": "+"}, max_nonzeros=4)
    assert [check.holds for check in checks] == [False, False]
    assert "nothing is known" in checks[0].how


def test_what_kinds_promise():
    demands = read_demands(4, NAMES, **{**DEMANDS["all"], **DEMANDS["rows"]})
    assert promises("linear", demands) == ()
    assert promises("trees", demands) == ("required", "constraints")
    assert promises("other", demands) == ("signs", "required", "forbidden", "constraints", "max_nonzeros")
    assert promises("other", read_demands(4)) == ()


def test_monotone_boosting_uses_its_columns_only():
    X, y, _ = frame()
    demands = {"signs": {"age": "+"}, "max_nonzeros": 2}
    ranker = EstimatorRanker(HistGradientBoostingClassifier(max_iter=10), **demands).fit(X, y)
    assert all(check.holds for check in check_demands(ranker))


# --- runs --------------------------------------------------------------------------------------------------------

CONFIG = """
[data]
path = "table.csv"
label = "y"
[surrogate]
losses = ["ranknet"]
[baselines]
methods = ["logistic_regression", "rankboost"]
[exact]
choose = false
top_k = {top_k}
"""
KEYS = {
    "signs": 'signs = {bmi = "+", sex = "-"}',
    "most": "max_nonzeros = 2",
    "required and forbidden": 'required = ["income"]\nforbidden = ["sex"]',
    "rows": 'constraints = ["age >= 2*bmi", "sex <= income"]',
    "all": 'signs = {age = "+"}\nrequired = ["bmi"]\nforbidden = ["sex"]\nmax_nonzeros = 2',
}


def table(folder, by_query):
    X, y, qid = frame(240)
    X.assign(y=y, **({"list": qid} if by_query else {})).to_csv(folder / "table.csv", index=False)
    text = CONFIG.format(top_k=8 if by_query else 40)
    if by_query:
        text = text.replace('label = "y"', 'label = "y"\nquery = "list"').replace(', "rankboost"', "")
    return text, X, (qid if by_query else None)


@pytest.mark.parametrize("by_query", [False, True])
@pytest.mark.parametrize("way", ["file", "command line"])
@pytest.mark.parametrize("name", DEMANDS)
def test_runs_deploy_only_what_satisfies(name, way, by_query, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, X, qid = table(tmp_path, by_query)
    overrides = []
    if way == "file":
        text += KEYS[name] + "\n"
    else:
        overrides = [f"exact.{line.replace(' = ', '=', 1)}" for line in KEYS[name].splitlines()]
    (tmp_path / "small.toml").write_text(text)
    base = "ranknet" if by_query else "logistic_regression"
    assert main(["run", "small.toml", f"exact.base={base}", *overrides]) == 0
    folder = tmp_path / "runs" / "small"
    assert_deployed_satisfies(Ranker.load(folder / "exact" / "model.json"), DEMANDS[name], X, qid)
    told = json.loads((folder / "results.json").read_text())
    out = " ".join(capsys.readouterr().out.split()) + " ".join((folder / "results.md").read_text().split())
    assert "constraints: " in out
    assert "not under the constraints, for comparison only: " in out
    assert f"by fitting {base} under the constraints" in out
    assert told
    assert main(["predict", "small", "table.csv"]) == 0
    assert "violated" not in capsys.readouterr().out


@pytest.mark.parametrize("name", DEMANDS)
def test_experiments_in_python_deploy_only_what_satisfies(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, _ = frame(240)
    exact = {"choose": False, "top_k": 40, **DEMANDS[name]}
    methods = {"methods": ["auto" if name == "signs" else "logistic_regression"]}
    results = ltr.experiment(data=X.assign(y=y), label="y", exact=exact, baselines=methods)
    assert_deployed_satisfies(results.rankers["exact"], DEMANDS[name], X)


def test_a_run_refuses_a_base_that_violates(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, _, _ = table(tmp_path, by_query=False)
    (tmp_path / "small.toml").write_text(text + 'base = "rankboost"\nmax_nonzeros = 2\n')
    assert main(["run", "small.toml"]) != 0
    error = " ".join(capsys.readouterr().err.split())
    assert "exact: base: RankBoostRanker does not satisfy the constraints: at most 2 columns" in error
    assert not (tmp_path / "runs" / "small" / "exact" / "model.json").exists()
