"""Demands on weights by name: signs, required and forbidden columns, linear rows, whole numbers, in every ranker."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest

from ltr.exact import Limits, LinearConstraints, RerankProblem, certify, solve
from ltr.exact.solution import Status
from ltr.rankers import ExactRanker, ScoreColumn, TwoStageRanker, check_constraints
from ltr.weight_constraints import read_constraints
from tests.reference import slow_margin_value
from trainers.cli import main
from trainers.config import parse_config
from trainers.run.experiment import run_experiment

NAMES = ["age", "bmi", "sex", "serum crp", "a-b"]


def frame(rows=60, seed=0):
    """Columns of very different units, one of them yes/no, one constant; bmi is worth little, sex a lot."""
    rng = np.random.default_rng(seed)
    age, bmi = rng.normal(55, 12, rows).round(), rng.normal(27, 4, rows).round(1)
    sex, income = rng.integers(0, 2, rows), rng.normal(40_000, 9_000, rows).round(-2)
    logit = 0.05 * (age - 55) + 0.02 * (bmi - 27) + 1.5 * (sex - 0.5) - (income - 40_000) / 12_000
    y = (logit + rng.normal(0, 0.7, rows) > 0.7).astype(int)
    return pd.DataFrame({"age": age, "bmi": bmi, "sex": sex, "income": income, "site": 3.0}), y


def row(text):
    return read_constraints(5, NAMES, constraints=[text]).rows.tolist()


# --- reading ---------------------------------------------------------------------------------------------------


def test_rows_are_sums_that_are_at_least_0():
    assert row("age >= 2*bmi") == [[1, -2, 0, 0, 0]]
    assert row("2 * bmi <= age") == [[1, -2, 0, 0, 0]]
    assert row("age + 0.5*bmi - 1e1 * sex >= 0") == [[1, 0.5, -10, 0, 0]]
    assert row("serum crp >= - a-b") == [[0, 0, 0, 1, 1]]  # names may hold spaces and signs
    assert row("bmi = sex") == [[0, 1, -1, 0, 0], [0, -1, 1, 0, 0]]
    assert read_constraints(2, constraints=["x0 >= x1", {0: 1, 1: -3.5}]).rows.tolist() == [[1, -1], [1, -3.5]]
    assert read_constraints(5, NAMES, constraints=[{"age": 1, 2: 2}]).rows.tolist() == [[1, 0, 2, 0, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agee >= bmi", "there is no column 'agee' (did you mean 'age'?)"),
        ("age > bmi", "'>' is none of >=, <= and ="),
        ("age >= 1", "the number 1 stands alone: only ratios of weights matter, so it must be 0"),
        ("age bmi >= sex", "there is no operator before 'bmi'"),
        ("age >= bmi >= sex", "there is more than one of >=, <= and ="),
    ],
)
def test_a_row_that_says_nothing_is_told(text, message):
    with pytest.raises(ValueError, match=re.escape(f"constraints: {text!r}: ")) as error:
        row(text)
    assert message in str(error.value)


def test_everything_wrong_is_told_at_once():
    X, y = frame()
    wrong = {
        "signs": {"agee": "+", "bmi": "up", 7: "-"},
        "required": ["bmj", "bmi"],
        "forbidden": ["bmi"],
        "constraints": ["age >= incom", 3],
        "max_nonzeros": 1,
    }
    expected = [
        "signs: there is no column 'agee' (did you mean 'age'?)",
        "signs: the sign of 'bmi' must be '+' or '-', got 'up'",
        "signs: must be a column name or a number from 0 to 4, got 7",
        "required: there is no column 'bmj' (did you mean 'bmi'?)",
        "constraints: 'age >= incom': there is no column 'incom' (did you mean 'income'?)",
        "constraints: must be texts such as 'age >= 2*bmi', got 3",
        "forbidden: bmi is required",
    ]
    with pytest.raises(ValueError, match="there is no column") as error:
        TwoStageRanker("logistic", ExactRanker(**wrong)).fit(X, y)
    assert set(str(error.value).split("\n")) == set(expected)
    with pytest.raises(ValueError, match="signs: X has no column names: use a number from 0 to 4, got 'age'"):
        ExactRanker(signs={"age": "+"}).fit(X.to_numpy(), y)
    with pytest.raises(ValueError, match="required: at most max_nonzeros = 1 columns may be used, got 2"):
        ExactRanker(required=["age", "bmi"], max_nonzeros=1).fit(X, y)
    with pytest.raises(ValueError, match="required: must be a list, got 'bmi'"):
        ExactRanker(required="bmi").fit(X, y)


# --- rankers ---------------------------------------------------------------------------------------------------


def demanded(**options):
    """At most 4 features, age up, sex not used, must contain bmi."""
    return {"max_nonzeros": 4, "signs": {"age": "+"}, "forbidden": ["sex"], "required": ["bmi"], **options}


def test_one_call_says_it_and_the_answer_is_the_best_of_that_class():
    X, y = frame()
    ranker = ExactRanker("dcg", **demanded()).fit(X, y)
    assert ranker.solution_.status is Status.OPTIMAL
    weights = dict(zip(X.columns, ranker.coef_, strict=True))
    assert weights["sex"] == 0
    assert weights["age"] >= 0
    assert weights["bmi"] != 0
    by_number = ExactRanker("dcg", max_nonzeros=4, signs={0: "+"}, forbidden=[2], required=[1]).fit(X.to_numpy(), y)
    assert np.array_equal(ranker.coef_, by_number.coef_)
    # the same class by hand, on the standardised columns
    Z = X[["age", "bmi", "income"]].to_numpy()
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    best = -np.inf
    for sign in (1.0, -1.0):
        sides = LinearConstraints([[-1.0, 0, 0], [0, -sign, 0]], [0.0, -0.01])
        free = solve(RerankProblem(Z, y, constraints=sides), "weight_space", Limits(time_limit=60))
        assert free.status is Status.OPTIMAL
        best = max(best, free.value)
    assert ranker.solution_.value == pytest.approx(best, abs=1e-9)
    words = certify(ranker.problem_, ranker.solution_).verify()
    assert words.startswith("optimal")
    assert "required column 1, 1 side constraint" in words
    assert ranker.solution_.value < ExactRanker("dcg").fit(X, y).solution_.value


def test_linear_rows_are_about_the_weights_of_raw_columns():
    X, y = frame()
    free = ExactRanker(signs={"income": "-"}).fit(X, y)
    assert free.coef_[0] < 2.5 * free.coef_[1] or free.coef_[0] > 3 * free.coef_[1]
    held = ExactRanker(signs={"income": "-"}, constraints=["age >= 2.5*bmi", "age <= 3*bmi"]).fit(X, y)
    assert held.solution_.status is Status.OPTIMAL
    assert 2.5 * held.coef_[1] <= held.coef_[0] * (1 + 1e-9) <= 3 * held.coef_[1] * (1 + 2e-9)
    assert held.coef_[1] > 0
    assert held.coef_[3] <= 0


def test_points_are_those_that_enumeration_finds():
    """Points for each unit of the raw columns; the reference knows neither the problem nor the standardisation."""
    X, y = frame(30, seed=3)
    options = demanded(integer=3, max_nonzeros=2, constraints=["age >= bmi"])
    ranker = ExactRanker("dcg", **options).fit(X, y)
    assert ranker.units_.tolist() == [10.0, 5.0, 1.0, 10_000.0, 1.0]
    columns = X.to_numpy() / ranker.units_
    best = max(
        slow_margin_value(columns[:, [0, 1, 3]], y, w, "dcg", 3e-4)
        for w in map(np.array, itertools.product(range(-3, 4), repeat=3))
        if np.count_nonzero(w) <= 2 and w[0] >= max(0, w[1]) and w[1] != 0
    )
    assert ranker.solution_.status is Status.OPTIMAL
    assert ranker.solution_.value == pytest.approx(best, abs=1e-12)
    assert slow_margin_value(columns, y, ranker.points_, "dcg", 3e-4) == pytest.approx(best, abs=1e-12)
    assert np.allclose(ranker.coef_ * ranker.units_, ranker.points_, atol=1e-12)
    assert np.abs(ranker.points_).max() <= 3
    assert certify(ranker.problem_, ranker.solution_).verify().startswith("optimal")


def test_points_replace_the_base_score_and_stay_whole():
    X, y = frame()
    with pytest.raises(ValueError, match="integer goes with choose=False and base_score=False only"):
        TwoStageRanker(exact=ExactRanker(integer=3)).fit(X, y)
    with pytest.raises(ValueError, match="recentre must be None with integer"):
        ExactRanker(integer=3, recentre="l2").fit(X, y)
    with pytest.raises(ValueError, match="recentred needs real weights"):
        ExactRanker(integer=3).fit(X, y).recentred()
    with pytest.raises(ValueError, match="integer must be a whole number from 1 to 100"):
        ExactRanker(integer=0).fit(X, y)


def test_a_corrected_score_uses_the_columns_of_both_parts():
    X, y = frame()
    exact = ExactRanker(limits=Limits(node_limit=20))
    ranker = TwoStageRanker(ScoreColumn("age"), exact, None, base_score=True, choose=False).fit(X, y)
    assert ranker.base_weight_ > 0
    assert [check.holds for check in check_constraints(ranker, required=["age"])] == [True]
    assert [check.holds for check in check_constraints(ranker, forbidden=["age"])] == [False]


def test_nothing_feasible_is_told():
    X, y = frame()
    with pytest.raises(ValueError, match="no weights are known to satisfy them"):
        ExactRanker(required=["bmi"], constraints=["bmi = 0"]).fit(X, y)


# --- configs ---------------------------------------------------------------------------------------------------


def test_a_run_of_points_says_them(tmp_path, capsys):
    X, y = frame(160)
    X.assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    exact = {"choose": False, "top_k": 60, "integer": 3, "certificate": True, "constraints": ["age >= bmi"]}
    tree = {
        "name": "points",
        "runs_dir": str(tmp_path),
        "data": {"path": str(tmp_path / "table.csv"), "label": "y"},
        "surrogate": {"losses": []},
        "baselines": {"methods": ["logistic_regression"]},
        "exact": exact | demanded(),
    }
    run_experiment(parse_config(tree))
    folder = tmp_path / "points" / "exact"
    found = json.loads((folder / "solution.json").read_text())
    assert found["points"]["age"] >= found["points"]["bmi"] != 0
    assert found["units"] == {name: {"age": 10, "bmi": 5, "income": 5_000}[name] for name in found["points"]}
    assert found["certificate"]["integer"] == 3
    assert "per 10 age" in json.loads((folder / "result.json").read_text())["message"]
    assert main(["verify", str(folder / "certificate.json"), "--require-proof"]) == 0
    assert "weights whole numbers from -3 to 3" in capsys.readouterr().out
