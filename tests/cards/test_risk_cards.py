"""Cards of the smallest log loss: from tables, with limits of points, and from the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from ltr.cards import Card, CardRanker, Question
from ltr.exact import Limits
from ltr.rankers import Ranker
from trainers.cli import main


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(20, 90, n), "smoker": rng.choice(["yes", "no"], n)})
    table["town"] = rng.choice(["north", "south", "east"], n)
    logit = 0.06 * (table["age"] - 55) + 1.2 * (table["smoker"] == "yes") - 0.5
    return table, pd.Series((rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int), name="ill")


def test_a_card_of_the_smallest_log_loss():
    table, y = people()
    ranker = CardRanker("log_loss", max_questions=3, points=3).fit(table, y)
    card = ranker.card_
    totals = card.totals(table)
    chances = 1 / (1 + np.exp(-(card.intercept + totals)))
    loss = -np.mean(np.where(y == 1, np.log(chances), np.log(1 - chances)))
    assert card.status == "optimal"
    assert card.value == pytest.approx(-loss, abs=1e-12) == card.bound
    assert card.chance(totals).tolist() == chances.tolist()
    assert card.chance([100]).tolist() == [1.0]
    assert card.chances[totals[0]][0] == chances[0]
    assert ranker.score(table, y) == pytest.approx(-loss)
    assert ranker.predict(table).tolist() == totals.tolist()
    assert card.counts[0].beside >= card.value - 0.01  # logistic regression on all questions, with a penalty
    other, labels = people(seed=1)
    text = str(ranker.with_rows("test", other, labels))
    assert f"log loss {loss:.4g} on training rows, {-ranker.score(other, labels):.4g} on test rows" in text
    assert f"chance: 1 / (1 + exp(-(intercept + total))), with the intercept {card.intercept}" in text
    assert "proven: no card of at most 3 of" in text
    assert text.replace("\n", " ").endswith("has a smaller log loss")
    assert repr(card).endswith(f"; log_loss {loss:.4g}, optimal)")
    assert all("chance" in form for form in (card.to_html(), card.to_markdown()))
    verdict = ranker.certificate().verify()
    assert verdict.startswith("value: the weights have the value -")
    assert "is claimed, not proven; problem: risk score" in verdict


def test_a_risk_score_is_saved_with_its_intercept(tmp_path):
    table, y = people()
    ranker = CardRanker("log_loss", max_questions=2, point_limits={"age": (0, 3)}).fit(table, y)
    ranker.card_.save(tmp_path / "card.json")
    assert Card.load(tmp_path / "card.json") == ranker.card_
    ranker.save(tmp_path / "ranker.pt")
    again = Ranker.load(tmp_path / "ranker.pt")
    assert again.card_ == ranker.card_
    assert again.score(table, y) == ranker.score(table, y)
    content = json.loads((tmp_path / "card.json").read_text())
    del content["intercept"]
    with pytest.raises(ValueError, match="intercept must be a whole number for a card of the statistic log_loss"):
        Card.from_dict(content)
    with pytest.raises(ValueError, match=r"intercept must be .* None for others, got 3 for auc"):
        Card((Question("age", ">=", 60),), (1,), intercept=3)


def test_limits_of_points_are_kept():
    table, y = people()
    for limits, allowed in (
        ({"age": (0, 1)}, lambda name, points: not name.startswith("age") or points == 1),
        ({"age": (-5, 0)}, lambda name, points: not name.startswith("age") or points < 0),
        ({"smoker": (0, 0)}, lambda name, points: "smoker" not in name),
    ):
        card = CardRanker("log_loss", max_questions=3, point_limits=limits).fit(table, y).card_
        assert all(allowed(q.name, p) for q, p in zip(card.questions, card.points, strict=True))
        [(name, (low, high))] = limits.items()
        assert f"points of {name} from {low} to {high}" in card.proof
    card = CardRanker("log_loss", point_limits={"smoker = yes": (2, 4), "(Intercept)": (-1, 0)}).fit(table, y).card_
    points = dict(zip((q.name for q in card.questions), card.points, strict=True))
    assert points["smoker = yes"] >= 2
    assert card.intercept in (-1, 0)


WHOLE = r"point_limits\['age'\] must be two whole numbers"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"point_limits": {"age": 3}}, f"{WHOLE}, the least and the largest points, got 3"),
        *(({"point_limits": {"age": given}}, WHOLE) for given in ((0, 1.5), (0, float("inf")), (2, 1))),
        ({"demands": ["share(smoker = yes) @50 >= 0.4"]}, "demands must be empty for statistic log_loss"),
        ({"rules": [{"at_least": 1, "of": ["age"]}], "point_limits": {"age": (0, 0)}}, "no card of at most 4"),
        ({"statistic": "auc", "point_limits": {"age": (0, 3)}}, "point_limits must be -5 to 5, .* got 0 to 3 for"),
        ({"statistic": "auc", "point_limits": {"(Intercept)": (0, 3)}}, r"must not name '\(Intercept\)' for .* auc"),
    ],
)
def test_wrong_options_get_one_clear_error(options, message):
    table, y = people(60)
    with pytest.raises(ValueError, match=message):
        CardRanker(**{"statistic": "log_loss", "limits": Limits(time_limit=30), **options}).fit(table, y)


def test_limits_of_rank_statistics_are_signs():
    table, y = people()
    limits = {"age": (-5, 0), "smoker": (0, 0), "town = north": (0, 5)}
    card = CardRanker("auc", point_limits=limits, within=0).fit(table, y).card_
    signs = {"age": "-", "town = north": "+"}
    same = CardRanker("auc", signs=signs, forbidden=["smoker"], within=0).fit(table, y).card_
    assert card.value == same.value
    assert all("smoker" not in q.name for q in card.questions)


def test_the_command_line_makes_a_risk_score(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table, y = people(200)
    table.assign(ill=y).to_csv("people.csv", index=False)
    command = ["card", "people.csv", "--label", "ill", "--questions", "3", "--statistic", "log_loss", "-o", "card"]
    assert main([*command, 'card.point_limits={age=[0,2],"(Intercept)"=[-4,4]}']) == 0
    printed = capsys.readouterr().out
    assert "points of age from 0 to 2; intercept from -4 to 4" in printed.replace("\n", " ")
    assert main(["verify", "card/certificate.json"]) == 0
    assert "risk score" in capsys.readouterr().out
    assert main(["verify", "card/certificate.json", "--require-proof"]) == 1
    assert main(["score", "card/card.json", "people.csv", "-o", "scored.csv"]) == 0
    card, scored = Card.load("card/card.json"), pd.read_csv("scored.csv")
    assert np.allclose(scored["chance"], card.chance(scored["total"]), atol=1e-4)
    capsys.readouterr()
    for wrong, message in (
        ("card.point_limits={age=3}", "card.point_limits: point_limits['age'] must be two whole numbers"),
        ("--demands hits@10>=5", "card.demands: must be left out with statistic log_loss"),
        ("card.ties=resolved", "card.ties: must be average with statistic log_loss"),
    ):
        assert main(f"card people.csv --label ill --statistic log_loss {wrong}".split()) == 2
        assert message in capsys.readouterr().err


def test_a_run_makes_a_risk_score(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, y = people(200)
    table.assign(ill=y).to_csv("people.csv", index=False)
    (tmp_path / "risk.toml").write_text(
        '[data]\npath = "people.csv"\nlabel = "ill"\n[surrogate]\nlosses = []\n[baselines]\n'
        'methods = ["logistic_regression"]\n[exact]\nenabled = false\n'
        '[card]\nstatistic = "log_loss"\nmax_questions = 2\npoint_limits = { age = [0, 2] }\n'
    )
    assert main(["run", "risk.toml"]) == 0
    card = Card.load("runs/risk/card/card.json")
    assert card.intercept is not None
    assert all(0 < p <= 2 for q, p in zip(card.questions, card.points, strict=True) if q.column == "age")
    assert main(["predict", "runs/risk", "people.csv", "--method", "card", "-o", "ranked.csv"]) == 0
