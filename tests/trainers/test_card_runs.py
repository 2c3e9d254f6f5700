"""Cards in runs and sweeps: the section [card], the files of a run, its table, its events, and the report."""

import io

import numpy as np
import pandas as pd
import pytest

from ltr import verify
from ltr.answer import RowRanges
from ltr.cards import Card, CardRanker
from ltr.cards.conditions import named_conditions
from ltr.exact import rank_ranges
from ltr.exact.cards import CardProblem
from trainers.cli import main
from trainers.config import parse_config
from trainers.plan import plan_of_run
from trainers.report.report import write_report
from trainers.run.experiment import run_experiment
from trainers.run.folder import RunFolder
from trainers.run.methods import load_ranker

CARD_ALONE = {"surrogate": {"losses": []}, "baselines": {"methods": []}, "exact": {"enabled": False}}


def table(rows=160, seed=0):
    """Pumps whose age and hours decide about failures."""
    rng = np.random.default_rng(seed)
    age, hours, load = rng.integers(1, 30, rows), rng.normal(50, 20, rows).round(1), rng.integers(0, 2, rows)
    failed = (0.1 * age + 0.03 * hours + rng.logistic(size=rows) > 3).astype(int)
    pumps = [f"pump {row}" for row in range(rows)]
    return pd.DataFrame({"pump": pumps, "age": age, "hours": hours, "load": load, "failed": failed})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cards")
    table().to_csv(path / "pumps.csv", index=False)
    return path


def config_of(folder, name, **sections):
    data = {"path": str(folder / "pumps.csv"), "label": "failed", "drop": ["pump"]}
    return parse_config({"name": name, "runs_dir": str(folder / "runs"), "data": data} | sections)


@pytest.fixture(scope="module")
def finished(folder):
    sections = CARD_ALONE | {"baselines": {"methods": ["logistic_regression"]}}
    card = {"max_questions": 3, "cuts": {"age": [10, 20], "hours": 4}, "signs": {"age": "+"}}
    config = config_of(folder, "pumps", card=card, **sections)
    return config, run_experiment(config)


def test_the_run_finds_the_card_that_the_ranker_finds(finished):
    config, results = finished
    rows, train = table(), np.random.default_rng(0).permutation(160)[:80]
    test = np.setdiff1d(np.arange(160), train)
    ranker = CardRanker(max_questions=3, cuts={"age": [10, 20], "hours": 4}, signs={"age": "+"})
    X, y = rows.drop(columns=["pump", "failed"]), rows.failed
    expected = ranker.fit(X.iloc[train], y[train]).card_
    found = Card.load(config.folder / "card" / "card.json")
    points = ({q.name: p for q, p in zip(card.questions, card.points, strict=True)} for card in (found, expected))
    assert next(points) == next(points)
    assert found == results.card
    row = next(row for row in results.rows if row["method"] == "card")
    assert row["status"] == "optimal"
    assert results.table.loc["card", "status"] == (f"within {found.below:.2%}" if found.below else "optimal")
    assert row["train"]["auc"] == pytest.approx(found.counts[0].value)
    assert row["test"]["auc"] == pytest.approx(ranker.score(X.iloc[test], y[test]))
    assert results.statistics == ("auc", "dcg")
    assert "rows with equal totals count as in random order" in results.caption


def test_the_run_leaves_the_card_in_all_forms_with_its_proof(finished, capsys):
    config, _ = finished
    place = config.folder / "card"
    forms = {f"card.{end}" for end in ("json", "csv", "md", "html", "png")}
    assert forms | {"certificate.json", "ranked.csv", "model.json", "result.json"} <= {p.name for p in place.iterdir()}
    assert verify.main(["--require-proof", str(place / "certificate.json")]) == 0
    card, ranked, rows = Card.load(place / "card.json"), pd.read_csv(place / "ranked.csv"), table()
    assert ranked.total.is_monotonic_decreasing
    assert ranked.pump.tolist() == [f"pump {row - 1}" for row in ranked.row]
    assert sorted(ranked.row) == list(range(1, 161))
    assert set(ranked.row[ranked["used for"] == "training"] - 1) == set(np.random.default_rng(0).permutation(160)[:80])
    np.testing.assert_array_equal(card.totals(rows)[ranked.row - 1], ranked.total)
    capsys.readouterr()
    assert main(["show", str(config.folder)]) == 0
    shown = capsys.readouterr().out
    assert str(card) in shown
    assert "## Card" in (config.folder / "results.md").read_text()
    rows.drop(columns="failed")[::-1].to_csv(config.folder.parent / "new.csv", index=False)
    assert main(["predict", str(config.folder), str(config.folder.parent / "new.csv"), "--method", "card"]) == 0
    predicted = pd.read_csv(io.StringIO(capsys.readouterr().out))
    np.testing.assert_array_equal(card.totals(rows[::-1])[predicted.row - 1], predicted.score)


def test_the_run_states_where_rows_stand_over_all_good_cards(finished, folder, capsys):
    config, results = finished
    found = RowRanges.from_dict(results.rows[-1]["ranges"])
    ranker = load_ranker(RunFolder(config.folder).method("card"))
    own = table().iloc[np.array(found.rows) - 1]
    conditions, _ = named_conditions(ranker, ranker.questions_)
    problem = CardProblem(ranker._features(own), own.failed.to_numpy(float), conditions=conditions)
    expected = rank_ranges(problem, 0.02)
    assert found.best == tuple(expected.best.tolist())
    assert found.worst == tuple(expected.worst.tolist())
    assert found.cards == expected.cards
    assert all(found.exact)
    assert (found.among, len(found.sentences)) == (True, 1)  # nothing to add
    totals = ranker.card_.totals(own)
    assert found.place == tuple(1 + int((totals > total).sum()) for total in totals)
    assert found.tied == tuple(int((totals == total).sum()) - 1 for total in totals)
    assert f"{found.summary}." in " ".join(results.conclusions)
    row = str(found.rows[5])
    assert main(["explain", str(config.folder), str(folder / "pumps.csv"), "--row", row, "--method", "card"]) == 0
    assert " ".join(found.of_row(found.rows[5]).split()) in " ".join(capsys.readouterr().out.split())
    _, markdown = write_report(results, folder / "report")
    assert "How firm the order is, card" in markdown.read_text()
    (config.folder / "card/result.json").unlink()  # found again
    assert RowRanges.from_dict(run_experiment(config).rows[-1]["ranges"]).best == found.best


def test_a_card_under_a_demand(folder, capsys):
    demand, options = "share(load = 1) @30 >= 0.6", ["--label", "failed", "--drop", "pump", "--test", "0"]
    own = table()
    ranker = CardRanker(max_questions=2, within=0, demands=[demand])
    ranker.fit(own[["age", "hours"]], own.failed, beside=own)
    (reached,) = ranker.demands_.reached
    totals = ranker.card_.totals(own)
    # the mean over the orders of rows with equal totals
    places = [((totals > t).sum(), (totals == t).sum()) for t in totals]
    chances = np.array([np.clip((30 - above) / tied, 0, 1) for above, tied in places])
    assert reached.value == pytest.approx((chances * own.load).sum() / 30)
    assert reached.value >= 0.6
    assert demand in ranker.card_.proof
    with pytest.raises(ValueError, match=r"no cards meet the demands \(proven\).*the most that can be reached is 0\."):
        CardRanker(max_questions=1, demands=["share(load = 1) @30 >= 0.99"]).fit(own[["age"]], own.failed, beside=own)
    assert main(["card", str(folder / "pumps.csv"), *options, "--questions", "2", "--demands", demand]) == 0
    told = capsys.readouterr()
    assert f"{demand}: met" in told.err
    assert f"({demand})" in " ".join(told.out.split())
    config = config_of(folder, "demanding", card={"demands": [demand], "max_questions": 2}, **CARD_ALONE)
    results = run_experiment(config)
    assert results.rows[-1]["demands"]["reached"][0]["met"]
    assert results.rows[-1]["ranges"] is not None
    assert any(line.startswith(f"demand {demand}: met") for line in results.conclusions)
    assert verify.main(["--require-proof", str(config.folder / "card/certificate.json")]) == 0


def test_the_section_turns_the_card_on_and_changes_no_other_result(folder):
    without, beside = config_of(folder, "x"), config_of(folder, "x", card={})
    assert (without.card.enabled, beside.card.enabled, beside.methods[-1]) == (False, True, "card")
    assert parse_config({"name": "x", "data": {"name": "pima"}, "card": {"enabled": False}}).methods == without.methods
    ids = [set(plan_of_run(config, "0" * 64).cells) for config in (without, beside)]
    assert ids[0] < ids[1]
    assert len(ids[1] - ids[0]) == 1
