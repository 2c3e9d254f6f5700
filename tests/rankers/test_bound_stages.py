"""Constraints on columns bind what is deployed: every way in, every constraint, checked from the predictions too."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import ltr
from ltr.data.problems import toml_value
from ltr.exact import Limits
from ltr.rankers import (
    AutoRanker,
    ExactRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    Ranker,
    ScoreColumn,
    SurrogateRanker,
    TwoStageRanker,
)
from ltr.rankers.constraint_checks import check_constraints
from ltr.rankers.estimators import make_ranker
from ltr.weight_constraints import read_constraints
from tests.tiers import slow_but, thinned
from trainers.cli import main
from trainers.config.errors import ConfigError
from trainers.ranking_files import Ranking

NAMES = ["age", "bmi", "income", "sex"]
pytestmark = pytest.mark.usefixtures("few_fits")
DEMANDS = {
    "signs": {"signs": {"bmi": "+", "sex": "-"}},
    "most": {"max_nonzeros": 2},
    "required and forbidden": {"required": ["income"], "forbidden": ["sex"]},
    "rows": {"constraints": ["age >= 2*bmi", "sex <= income"]},
    "all": {"signs": {"age": "+"}, "required": ["bmi"], "forbidden": ["sex"], "max_nonzeros": 2},
}
SHORT = Limits(node_limit=30)
BOOSTED = "sklearn.ensemble:HistGradientBoostingClassifier(max_iter=15)"


def frame(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)) * [10.0, 4.0, 0.5, 1.0], columns=NAMES)
    y = (X["age"] / 10 - X["bmi"] / 4 + X["sex"] + rng.normal(size=n) > 0).astype(int)
    return X, y.to_numpy(), np.arange(n) // 20


def assert_deployed_satisfies(ranker, given, X, qid=None):
    """Check a ranker's demands from its weights, and from its predictions alone."""
    names = list(X.columns)
    demands = read_constraints(len(names), names, **given)
    assert all(check.holds for check in check_constraints(ranker, demands)), list(
        map(str, check_constraints(ranker, demands))
    )
    assert_predictions_satisfy(ranker, demands, X, qid)


def assert_predictions_satisfy(ranker, demands, X, qid=None):
    """Check demands from predictions: rows move as their cells do, and only columns that may be used matter."""
    names, X, n, rng = list(X.columns), X.iloc[:60], 60, np.random.default_rng(1)
    moves = [(j, row) for j in range(len(names)) for row in rng.choice(n, 12, replace=False) for _ in range(2)]
    moved = [X.copy() for _ in moves]
    for at, (j, row) in enumerate(moves):
        moved[at].iloc[row, j] += (0.3, 3.0)[at % 2] * X[names[j]].std()
    shuffled = [X.assign(**{name: rng.permutation(X[name].to_numpy())}) for name in names]
    tables = pd.concat([X, *shuffled, *moved], ignore_index=True)
    lists = None if qid is None else np.concatenate([qid[:n] + 100 * at for at in range(len(tables) // n)])
    scores = (ranker.predict(tables) if qid is None else ranker.predict(tables, lists)).reshape(-1, n)
    same = np.ones((n, n), dtype=bool) if qid is None else qid[:n, None] == qid[:n]
    above = ((scores[:, None, :] > scores[:, :, None]) & same).sum(axis=2)  # rows of its list above each row
    for (j, row), after in zip(moves, above[1 + len(names) :], strict=True):
        assert demands.signs[j] * (after[row] - above[0, row]) <= 0
    moving = {j for j in range(len(names)) if not np.array_equal(scores[1 + j], scores[0])}
    assert not moving & set(demands.forbidden)
    assert moving >= set(demands.required)
    assert demands.max_nonzeros is None or len(moving) <= demands.max_nonzeros


@pytest.mark.parametrize(
    ("base", "name", "base_score", "by_query"),
    thinned(7, ["logistic", "ranknet", "squared_hinge", BOOSTED], [*DEMANDS], [False, True], [False, True]),
)
def test_both_stages_are_bound(base, name, base_score, by_query, tmp_path):
    (X, y, qid), given = frame(), DEMANDS[name]
    lists, exact = qid if by_query else None, ExactRanker(**given, limits=SHORT)
    ranker = TwoStageRanker(base, exact, 8 if by_query else 40, choose=False, base_score=base_score)
    if base == BOOSTED and "constraints" in given:
        with pytest.raises(ValueError, match="does not satisfy the constraints: age - 2"):
            ranker.fit(X, y, lists)
        return
    ranker.fit(X, y, lists)
    assert_deployed_satisfies(ranker, given, X, lists)
    ranker.save(tmp_path / "model.json")
    loaded = Ranker.load(tmp_path / "model.json")
    assert list(map(str, check_constraints(loaded))) == list(map(str, check_constraints(ranker)))


@pytest.mark.parametrize("name", slow_but(DEMANDS, quick=["rows"]))
def test_the_choice_deploys_only_what_satisfies(name):
    X, y, _ = frame(100)
    ranker = TwoStageRanker("logistic", ExactRanker(**DEMANDS[name], limits=SHORT), 30).fit(X, y)
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
        (ScoreColumn("income"), {"constraints": ["age >= income"]}, r"age - income >= 0 \(by -1\)"),
        (ScoreColumn("income"), {"required": ["age"]}, r"uses age \(weight 0\)"),
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
        assert getattr(ranker.base_, "estimator_", ranker.base_) is base
        assert_deployed_satisfies(ranker, given, X)
    with pytest.raises(ValueError, match=r"^base: LogisticRegression does not satisfy the constraints: age - "):
        TwoStageRanker(fitted[0], ExactRanker(signs={"age": "-"}), 40).fit(X, y, base_is_fitted=True)
    with pytest.raises(
        ValueError, match=r"^estimator: LogisticRegression does not satisfy .*; LogisticRegressionRanker"
    ):
        TwoStageRanker(LogisticRegression(), ExactRanker(signs={"age": "-"}), 40).fit(X, y)
    ranker = TwoStageRanker(HistGradientBoostingClassifier(max_iter=5), ExactRanker(signs={"bmi": "+"}), 40)
    assert_deployed_satisfies(ranker.fit(X, y), {"signs": {"bmi": "+"}}, X)


def test_points_bind_rows_of_the_base_in_the_same_units():
    X, y, _ = frame()
    given = {"constraints": ["age >= 2*bmi"], "signs": {"sex": "-"}}
    ranker = TwoStageRanker("logistic", ExactRanker(integer=3, **given), top_k=60, choose=False).fit(X, y)
    checks = check_constraints(ranker)
    assert [check.holds for check in checks] == [True, True]
    for weights in (ranker.base_.coef_, ranker.coef_):
        points = weights * ranker.exact_.units_
        assert points[0] >= 2 * points[1] - 1e-9


def keys(given):
    """Constraints as keys of the section `exact`."""
    signs = ", ".join(f'{name} = "{sign}"' for name, sign in given.get("signs", {}).items())
    others = [f"{key}={toml_value(value)}" for key, value in given.items() if key != "signs"]
    return [f"signs={{{signs}}}", *others]


def ranked_by_command(X, y, given, folder):
    X.assign(y=y).to_csv(folder / "table.csv", index=False)
    options = [f"exact.{line}" for line in keys(given)]
    options += ["answer.price=false", "--label=y", "--visits=20", "--methods=logistic,ranknet", "-q"]
    assert main(["rank", str(folder / "table.csv"), *options, f"--output={folder / 'page'}"]) == 0
    return Ranking.load(folder / "page").ranker


def two_stages_of_auto(given):
    return TwoStageRanker(AutoRanker(FEW), ExactRanker(**given, limits=SHORT), 40, choose=False)


FEW = ["logistic", "ranknet"]
WAYS = {
    "auto": lambda X, y, given, _: AutoRanker(**given, simplicity=-np.inf).fit(X, y),
    "auto beside today": lambda X, y, given, _: AutoRanker(FEW, today="bmi", **given, simplicity=-np.inf).fit(X, y),
    "auto of a card": lambda X, y, given, _: AutoRanker(["ranknet", "card"], **given, simplicity=-np.inf).fit(X, y),
    "auto in two stages": lambda X, y, given, _: two_stages_of_auto(given).fit(X, y),
    "ltr.rank": lambda X, y, given, _: (
        ltr.rank(X.assign(y=y), label="y", visits=20, methods=FEW, price=False, **given).ranker
    ),
    "ltr rank": ranked_by_command,
}


@pytest.mark.parametrize(("way", "name"), thinned(5, [*WAYS], [*DEMANDS]))
def test_what_auto_deploys_satisfies_however_it_is_asked_for(way, name, tmp_path, capsys):
    X, y, _ = frame(140)
    if way == "auto of a card" and (refused := {"required", "constraints"} & set(DEMANDS[name])):
        with pytest.raises(ValueError, match=f"methods: card cannot promise {refused.pop()}"):
            WAYS[way](X, y, DEMANDS[name], tmp_path)
        return
    assert_deployed_satisfies(WAYS[way](X, y, DEMANDS[name], tmp_path), DEMANDS[name], X)


def test_a_card_of_features_ranks_as_the_card_does_wherever_it_is_read(tmp_path):
    X, y, _ = frame()
    X["sex"] = (X["sex"] > 0).astype(int)
    for rows in (X, X.to_numpy()):
        card = make_ranker("card").fit(rows, y)
        own, scores = card.estimator_.predict(rows), card.predict(rows)
        assert np.ptp(own - scores) == 0
        card.save(tmp_path / "card.json")
        assert np.array_equal(Ranker.load(tmp_path / "card.json").predict(rows), scores)
        assert set(card.form_.features_.tolist()) <= set(range(4))


@pytest.mark.parametrize(
    ("given", "choose"),
    [({"max_nonzeros": 1}, True), ({"max_nonzeros": 3}, False), ({"signs": {"age": "+"}}, True)],
    ids=str,
)
def test_a_column_of_scores_counts_as_the_column_it_is(given, choose):
    X, y, _ = frame()
    ranker = TwoStageRanker(ScoreColumn("age"), ExactRanker(**given), 60, choose=choose).fit(X, y)
    assert_deployed_satisfies(ranker, given, X)
    if not choose:
        both = len({0, *np.flatnonzero(ranker.coef_)})  # columns of either stage
        assert 1 < both <= 3
        assert [check_constraints(ranker, max_nonzeros=most)[0].holds for most in (both - 1, both)] == [False, True]


class Unfitted:
    """An estimator that must not be fitted."""

    def __init__(self, monotonic_cst=None):
        self.monotonic_cst = monotonic_cst

    def get_params(self, deep=True):
        return {"monotonic_cst": self.monotonic_cst}

    def fit(self, X, y):
        raise AssertionError("was fitted")


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (AutoRanker([Unfitted(), "forest"], signs={0: "+"}), "forest cannot promise signs"),
        (AutoRanker([Unfitted(), ScoreColumn(0)], signs={0: "-"}), r"ScoreColumn does not satisfy.*column 0 -"),
        (AutoRanker([ScoreColumn(0), ScoreColumn(1)], max_nonzeros=1), "at most max_nonzeros = 1.*got 2 of scores"),
        (AutoRanker([], today=1, forbidden=[1]), "today does not satisfy the constraints: not column 1"),
        (AutoRanker([Unfitted(), "logistic"], required=[0], constraints=["x0 = 0*x1"]), "Unfitted cannot promise requ"),
        (TwoStageRanker(Unfitted(), ExactRanker(required=[0], constraints=["x0 = 0*x1"])), "leave no weights"),
        (TwoStageRanker(Unfitted(), ExactRanker(constraints=["x0 >= x1"])), "column 0 - column 1 >= 0 .it has no"),
        (TwoStageRanker(ScoreColumn(0), ExactRanker(forbidden=[0])), "base: ScoreColumn does not satisfy"),
    ],
)
def test_constraints_are_refused_before_anything_is_fitted(ranker, message):
    X, y, _ = frame()
    with pytest.raises(ValueError, match=message):
        ranker.fit(X.to_numpy(), y)


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
top_k = 40
"""


@pytest.mark.parametrize(("name", "by_query"), [("all", False), ("rows", True)])
def test_runs_deploy_only_what_satisfies(name, by_query, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y, qid = frame(240)
    X.assign(y=y, list=qid).to_csv("table.csv", index=False)
    Path("small.toml").write_text(CONFIG + "\n".join(keys(DEMANDS[name])))
    base = "ranknet" if by_query else "logistic_regression"
    lists = ["data.query=list", "baselines.methods=['logistic_regression']", "exact.top_k=8"]
    given = lists if by_query else ["data.drop=['list']"]
    assert main(["run", "small.toml", f"exact.base={base}", *given]) == 0
    folder = tmp_path / "runs" / "small"
    deployed = Ranker.load(folder / "exact" / "model.json")
    assert_deployed_satisfies(deployed, DEMANDS[name], X, qid if by_query else None)
    out = " ".join(capsys.readouterr().out.split()) + " ".join((folder / "results.md").read_text().split())
    assert "constraints: " in out
    assert "not under the constraints, for comparison only: " in out
    assert f"by fitting {base} under the constraints" in out
    assert main(["predict", "small", "table.csv"]) == 0
    assert "violated" not in capsys.readouterr().out


# --- tables ------------------------------------------------------------------------------------------------------


def patients(n=240, seed=0):
    """A table with texts and missing values."""
    X, y, _ = frame(n, seed)
    rng = np.random.default_rng(seed)
    y = (y + (rng.random(n) < 0.4) > 1).astype(int)
    missing = rng.random(n) < 0.2
    return X.assign(
        age=X["age"].where(~missing).round(1),
        mode=np.where(y == 1, rng.choice(["bus", "car"], n), rng.choice(["walk", "car"], n)),
        ill=np.where(y == 1, "yes", "no"),
    )


def test_a_forbidden_column_has_no_influence_by_any_of_its_features():
    table = patients()
    ranking = ltr.rank(table, label="ill", visits=20, methods=FEW, forbidden=["age", "mode"], price=False)
    scores = ranking.ranker.predict(table)
    moved = table.assign(age=table["age"].sample(frac=1, random_state=0).to_numpy(), mode="car")
    assert np.array_equal(ranking.ranker.predict(moved), scores)
    assert not np.array_equal(ranking.ranker.predict(table.assign(bmi=0.0)), scores)


def test_a_sign_binds_the_number_of_a_column_and_a_text_asks_for_its_features():
    table = patients()
    ranking = ltr.rank(table, label="ill", visits=20, methods=FEW, signs={"age": "-", "mode = walk": "+"}, price=False)
    known = table[table["age"].notna()]
    older = ranking.ranker.predict(known.assign(age=known["age"] + 20)) - ranking.ranker.predict(known)
    assert (older <= 0).all()
    reference = next(one.reference for one in ranking.ranker.preparation_.encodings_ if one.column == "mode")
    walking = [ranking.ranker.predict(known.assign(mode=mode)) for mode in ("walk", reference)]
    assert (walking[0] >= walking[1]).all()
    with pytest.raises(ConfigError, match="column 'mode' becomes"):
        ltr.rank(table, label="ill", visits=20, methods=FEW, signs={"mode": "+"})
