"""The page of ``ltr rank``: its numbers agree, files and frames give the same, and it reads well."""

import json
import re
import tomllib

import numpy as np
import pandas as pd
import pytest

import ltr
from ltr.answer import Answer, Evidence, as_html, as_text, effects, headline
from ltr.answer.proven import FrontPointOnList, ListFront
from ltr.answer.reasons import Typical
from ltr.data import DataError
from tests.trainers.pages import Elements
from trainers.cli import main
from trainers.ranking_files import Ranking

pytestmark = pytest.mark.usefixtures("few_fits")
BANNED = re.compile(r"(?i)\b(n?dcg|gap|bound|base (order|rank)\w*|spread|auc|calibrat\w*|logit)\b")


def table_of(n=700, seed=0, *, queries=None):
    """Patients of whom those who fell often are ill; `note` is free text, `mode` has nothing to say."""
    rng = np.random.default_rng(seed)
    falls = rng.poisson(1.5, n)
    frame = pd.DataFrame(
        {
            "patient": [f"P{at:04}" for at in rng.permutation(n)],
            "falls": falls,
            "age": rng.integers(40, 95, n).astype(float),
            "mode": rng.choice(["bus", "car", "walk"], n),
            "risk_score": (0.3 * falls + rng.normal(size=n)).round(3),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    if queries is not None:
        frame["ward"] = np.repeat([f"w{at}" for at in range(queries)], n // queries)
    frame["ill"] = np.where(rng.random(n) < 1 / (1 + np.exp(3.5 - 1.1 * falls)), "yes", "no")
    return frame


def ranked(**options):
    table = table_of()
    options = {"label": "ill", "visits": 40, "new": table[500:].drop(columns="ill"), "methods": ["logistic"]} | options
    return ltr.rank(table[:500], **options)


@pytest.fixture(scope="module")
def ranking():
    return ranked(today="risk_score")


KINDS = {
    "new": {"today": "risk_score"},
    "own": {"new": None},
    "more visits than rows": {"visits": 5000},
}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_the_numbers_of_a_page_agree(options):
    found = ranked(**options)
    answer, frame = found.answer, found.ranked
    first = frame[frame["position"] <= answer.asked]
    assert answer.visits == len(first) == min(answer.asked, answer.rows) == len(answer.entries)
    assert answer.expected.value == pytest.approx(first["chance"].sum())
    assert answer.expected.low <= answer.expected.value <= answer.expected.high
    assert answer.chance == pytest.approx(answer.visits * frame["chance"].mean())
    at = answer.curve.visits.index(answer.visits)
    assert answer.curve.ranking[at] == pytest.approx(answer.expected.value)
    assert answer.curve.chance[at] == pytest.approx(answer.chance)
    if answer.today is not None:
        assert answer.curve.today[at] == pytest.approx(answer.today.value)
    assert answer.curve.visits[0] == answer.curve.ranking[0] == 0
    for line in filter(None, (answer.curve.ranking, answer.curve.today, answer.curve.chance)):
        assert all(np.diff(line) >= 0)
    assert [entry.id for entry in answer.entries] == first["id"].tolist()
    assert all(np.diff(frame["chance"]) <= 0)
    assert answer.found.hits.value == pytest.approx(answer.found.precision.value * answer.found.visits)
    assert Answer.from_dict(json.loads(json.dumps(answer.to_dict(), allow_nan=False))) == answer


def test_queries_get_as_many_visits_each():
    table = table_of(600, queries=12)
    found = ltr.rank(table[:400], label="ill", query="ward", visits=3, new=table[400:], methods=["ranknet"])
    answer, frame = found.answer, found.ranked
    assert (answer.queries, answer.visits, len(answer.entries)) == (4, 12, 12)
    first = frame[frame["position"] <= 3]
    assert answer.expected.value == pytest.approx(first["chance"].sum())
    assert answer.chance == pytest.approx(sum(3 * part["chance"].mean() for _, part in frame.groupby("query")))
    assert frame.groupby("query", sort=False)["position"].apply(list).tolist() == [list(range(1, 51))] * 4
    assert "first 3 of each of 4 queries" in headline(answer)
    assert "ward w8" in as_text(answer)
    assert "ward w8" in as_html(answer)


def test_the_column_that_decides_is_the_first_reason(ranking):
    reasons = [entry.reasons[0].column for entry in ranking.answer.entries[:20]]
    assert set(reasons) == {"falls"}
    assert all(len(entry.reasons) <= 3 for entry in ranking.answer.entries)
    one = ranking.answer.entries[0]
    why = ranking.why(one.id)
    assert why.index[0] == "falls"
    assert why["value"].iloc[0] == one.reasons[0].value
    assert why["chance"].iloc[0] == pytest.approx(one.chance)
    assert (why["if typical"].iloc[0]) < one.chance
    with pytest.raises(KeyError, match="which 0 rows have"):
        ranking.why("nobody")


def test_effects_are_those_of_scoring_the_changed_rows():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(30, 4))
    typical = [Typical("a", "", 0, (0.5,)), Typical("b", "", 1, (0.0, 1.0)), Typical("c", "", 3, (features[3, 3],))]

    def scores_of(X):
        return X[:, 0] * X[:, 1] + np.sin(X[:, 2]) - X[:, 3] ** 2

    found = effects(features, typical, scores_of)
    for column, cell in enumerate(typical):
        changed = features.copy()
        changed[:, cell.first : cell.first + len(cell.features)] = cell.features
        assert found[:, column] == pytest.approx(scores_of(features) - scores_of(changed))


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("levels", [3, 1000])
def test_what_was_found_is_what_counting_finds_in_any_order_of_tied_rows(queries, levels):
    rng = np.random.default_rng(queries)
    labels = np.sort(rng.integers(0, 2, 60)).astype(float)  # as in a table that has the hits last
    lists = None if queries == 1 else rng.integers(0, queries, 60)
    scores, today = rng.integers(0, levels, (2, 60)).astype(float), rng.integers(0, levels, 60).astype(float)
    visits = int(rng.integers(1, 15))
    groups = [np.arange(60)] if lists is None else [np.flatnonzero(lists == one) for one in range(queries)]

    def caught(order):
        hits = 0.0  # tied rows share the places that they take together
        for rows in groups:
            above = (order[rows] > order[rows][:, None]).sum(axis=1)
            tied = (order[rows] == order[rows][:, None]).sum(axis=1)
            hits += (labels[rows] * np.clip((visits - above) / tied, 0, 1)).sum()
        return hits

    mean, taken = np.mean([caught(order) for order in scores]), sum(min(visits, len(rows)) for rows in groups)
    for order in (np.arange(60), rng.permutation(60)):
        in_order = None if lists is None else lists[order]
        found = Evidence(labels[order], scores[:, order], in_order, today=today[order]).found(visits)
        assert found.hits.value == pytest.approx(mean)
        assert found.today.value == pytest.approx(caught(today))
        assert found.more.value == pytest.approx(mean - caught(today))
        assert found.precision.value == pytest.approx(mean / taken)
        assert found.recall.value == pytest.approx(mean / labels.sum())
        assert found.lift.value == pytest.approx(mean / taken / labels.mean())
        assert found.chance == pytest.approx(caught(np.zeros(60)))
        for interval in (found.hits, found.precision, found.recall, found.lift, found.today, found.more):
            assert interval.low <= interval.value <= interval.high


def test_rows_of_a_group_are_resampled_together():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 40).astype(float), rng.normal(size=(1, 40))
    five = np.repeat(np.arange(40), 25)
    alone, together = Evidence(labels, scores), Evidence(labels[five], scores[:, five], groups=five)
    ignored = Evidence(labels[five], scores[:, five])
    widths = [one.found(k).recall for one, k in ((alone, 10), (together, 250), (ignored, 250))]
    lengths = [one.high - one.low for one in widths]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.3)
    assert lengths[2] < 0.5 * lengths[0]


def test_files_frames_and_shuffled_columns_give_the_same_page(tmp_path, monkeypatch, capsys):
    table = table_of(400)
    learned, new = table[:300], table[300:].drop(columns="ill")
    learned.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    new[new.columns[::-1]].to_csv(tmp_path / "n.tsv", index=False, sep="\t")
    options = {"label": "ill", "visits": 20, "today": "risk_score", "methods": ["logistic"]}
    frames = ltr.rank(learned, new=new[new.columns[[3, 1, 2, 0, 4]]], **options).answer
    files = ltr.rank(tmp_path / "t.tsv", new=tmp_path / "n.tsv", **options).answer
    monkeypatch.chdir(tmp_path)
    asked = ["t.tsv", "--label", "ill", "--visits", "20", "--today", "risk_score", "--methods", "logistic"]
    assert main(["rank", *asked, "--new", "n.tsv", "-o", "out", "--json", "-q"]) == 0
    command = Answer.from_dict(json.loads(capsys.readouterr().out))
    assert command == files
    for one, other in zip(frames.entries, files.entries, strict=True):
        assert (one.id, one.row, one.reasons) == (other.id, other.row, other.reasons)
        assert one.chance == pytest.approx(other.chance)
    assert frames.expected.value == pytest.approx(files.expected.value)
    assert headline(frames) == headline(files)


def text_of(html):
    page = Elements(html)
    assert not {name for _, attributes in page.found for name in attributes} & {"src", "href", "onload", "onclick"}
    return page.text


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_pages_are_well_formed_and_in_plain_words(options):
    answer = ranked(**options).answer
    page, part = as_html(answer), as_html(answer, whole=False)
    assert page.startswith("<!DOCTYPE html>")
    assert "width=device-width" in page
    assert "http" not in page
    assert "<script" not in page
    assert not part.startswith("<!DOCTYPE")
    for shown in (text_of(page), text_of(part), as_text(answer)):
        assert BANNED.findall(shown) == []
        assert "nan" not in shown.lower().replace("nancy", "")
        assert headline(answer).split()[-1] in " ".join(shown.split())
    assert BANNED.findall(page) == []  # its names of styles are read aloud by nobody, but by people who look


def test_what_tables_hold_is_no_html():
    table = table_of(300).rename(columns={"falls": "<b>falls</b> & more"})
    table["mode"] = table["mode"].replace("walk", "<script>alert(1)</script>")
    page = as_html(ltr.rank(table, label="ill", visits=30, methods=["logistic"]).answer)
    assert "<b>falls" not in page
    assert "<script" not in page
    assert "<b>falls</b> & more" in text_of(page)


def test_lines_hold_the_width(ranking):
    table = table_of(300).rename(columns={"falls": "falls_at_home_or_anywhere_else_in_the_last_twelve_months"})
    table["patient"] = [f"{name} of the house by the river" for name in table["patient"]]
    table["mode"] = table["mode"] + " or something much longer than one would ever write into a cell"
    long = ltr.rank(table, label="ill", visits=25, today="risk_score", methods=["logistic"])
    for answer, width in ((ranking.answer, 40), (ranking.answer, 80), (long.answer, 40), (long.answer, 80)):
        text = as_text(answer, width)
        assert max(map(len, text.splitlines())) <= width
        assert text.isascii()


def with_leak(table):
    table["cost_of_treatment"] = np.where(table["ill"] == "yes", 100.0, 0.0) + np.arange(len(table)) % 7
    return table


def with_few_hits(table):
    table["ill"] = ["yes", "no"] * 8 + ["no"] * (len(table) - 16)
    return table


def with_perfect_today(table):
    rng = np.random.default_rng(0)
    table["risk_score"] = (table["ill"] == "yes") + rng.normal(size=len(table)) * 0.6
    return table


WARNINGS = {
    "leak": (with_leak, {}, "cost_of_treatment alone tells hits"),
    "few hits": (with_few_hits, {}, "Only 8 of the 400 labelled rows are hits"),
    "today may be better": (with_perfect_today, {"today": "risk_score"}, "risk_score"),
    "own rows": (lambda table: table, {}, "No new rows were given"),
    "too many visits": (lambda table: table, {"visits": 999}, "999 visits are more than the 400 rows"),
}


@pytest.mark.parametrize(("change", "options", "warning"), WARNINGS.values(), ids=WARNINGS)
def test_warnings(change, options, warning):
    options = {"visits": 30, "methods": ["logistic"], **options}
    answer = ltr.rank(change(table_of(400)), label="ill", **options).answer
    assert any(warning in one for one in (*answer.learned.warnings, *answer.warnings, headline(answer)))


def test_new_values_in_most_rows_are_refused_unless_allowed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = table_of(400)
    table[:300].to_csv("t.csv", index=False)
    table[300:].assign(mode="ship").to_csv("n.csv", index=False)
    asked = ["rank", "t.csv", "--label", "ill", "--visits", "10", "--methods", "logistic", "-o", "out", "-q"]
    assert main([*asked, "--new", "n.csv"]) != 0
    assert "--new-values" in capsys.readouterr().err
    assert main([*asked, "--new", "n.csv", "--new-values"]) == 0
    assert main(["rank", "out", "--new", "n.csv", "--new-values", "-q"]) == 0
    ranking = ltr.rank(table[:300], label="ill", visits=10, methods=["logistic"])
    with pytest.raises(DataError, match="new since training"):
        ranking.rank(table[300:].assign(mode="ship"))
    assert ranking.rank(table[300:].assign(mode="ship"), new_values=True).answer.rows == 100


def test_rows_without_a_label_are_the_list(tmp_path):
    table = table_of(400)
    table.loc[table.index[::4], "ill"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    for data in (table, tmp_path / "t.csv"):
        found = ltr.rank(data, label="ill", visits=10, methods=["logistic"])
        assert (found.answer.listed, found.answer.rows, found.answer.learned.rows) == ("unlabelled", 100, 300)
        assert set(found.ranked["row"]) == set(range(1, 401, 4))
        names = dict(zip(range(1, 401), table["patient"], strict=True))
        assert [names[row] for row in found.ranked["row"]] == found.ranked["id"].tolist()
        assert not any("left out" in note and "label" in note for note in found.answer.learned.notes)


def test_names_of_rows():
    table = table_of(300).drop(columns="patient")
    plain = ltr.rank(table, label="ill", visits=5, methods=["logistic"])
    assert plain.answer.learned.id is None
    assert [entry.id for entry in plain.answer.entries] == [str(entry.row) for entry in plain.answer.entries]
    named = table.set_axis([f"row {at}" for at in range(300)])
    by_index = ltr.rank(named, label="ill", visits=5, methods=["logistic"])
    assert all(entry.id == f"row {entry.row - 1}" for entry in by_index.answer.entries)
    assert by_index.ranked.index.tolist() == by_index.ranked["id"].tolist()
    numbers = table[["falls", "age", "risk_score"]].fillna(60).assign(case=range(1000, 1300), ill=table["ill"] == "yes")
    by_number = ltr.rank(numbers, label="ill", visits=5, methods=["logistic"], id="case")
    assert [entry.id for entry in by_number.answer.entries] == [f"{999 + e.row}" for e in by_number.answer.entries]
    assert "case" not in {cell.column for cell in by_number.answer.learned.typical}
    asked = ltr.rank(numbers, label="ill", visits=5, methods=["logistic"], numbers=["case"])
    assert "case" in {cell.column for cell in asked.answer.learned.typical}


def test_a_folder_ranks_other_rows_as_the_ranking_did(ranking, tmp_path):
    folder = ranking.save(tmp_path / "out")
    assert {path.name for path in folder.iterdir()} == {
        "page.html", "page.json", "list.csv", "ranker.json", "evidence.npz", "config.toml",
    }  # fmt: skip
    loaded = Ranking.load(folder)
    assert loaded.answer == ranking.answer
    others = table_of(120, seed=5).drop(columns="ill")
    again = ranking.rank(others, visits=9)
    assert loaded.rank(others, visits=9).answer == again.answer
    chances = loaded.ranker.predict_proba(others)[:, 1]
    assert again.ranked.set_index("row")["chance"].sort_index().to_numpy() == pytest.approx(chances)
    rows = pd.read_csv(folder / "list.csv")
    assert rows.columns[:2].tolist() == ["position", "chance"]
    assert rows["patient"].tolist() == ranking.ranked["id"].tolist()
    assert rows["position"].tolist() == list(range(1, 201))
    for spoilt in ("page.json", "ranker.json", "evidence.npz"):
        (folder / spoilt).write_bytes(b"{}")
        with pytest.raises(ValueError, match=spoilt):
            Ranking.load(folder)
        ranking.save(folder)


def test_the_config_repeats_the_page(tmp_path, monkeypatch, capsys):
    table = table_of(400)
    table.loc[300:, "ill"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    asked = ["--visits", "20", "--today", "risk_score", "--methods", "logistic", "--drop", "mode", "--seed", "3"]
    assert main(["rank", "t.csv", "--label", "ill", *asked]) == 0
    first = capsys.readouterr()
    assert "page in runs/t-rank/page.html" in first.err
    folder = tmp_path / "runs" / "t-rank"
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["answer"] == {"visits": 20, "id": "patient"}
    assert config["baselines"]["auto"] == {"today": "risk_score", "methods": ["logistic"]}
    assert (config["data"]["drop"], config["seed"]) == (["mode"], 3)
    before = (folder / "page.json").read_bytes()
    monkeypatch.chdir(tmp_path.parent)  # paths are those of the file's folder
    assert main(["rank", str(folder / "config.toml"), "-o", str(folder), "-q"]) == 0
    assert (folder / "page.json").read_bytes() == before
    assert main(["rank", str(folder)]) == 0
    again = capsys.readouterr().out
    assert headline(Answer.from_dict(json.loads(before)))[:40] in again


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of runs on the first 500 rows of a table, whose other rows are new."""
    folder = tmp_path_factory.mktemp("runs")
    made = {}
    for kind, table in (("one list", table_of()), ("queries", table_of(700, queries=35))):
        table[:500].to_csv(folder / f"{kind}.csv", index=False)
        table[500:].drop(columns="ill").to_csv(folder / f"{kind} new.csv", index=False)
        config = {"surrogate.losses": ["ranknet"], "baselines.methods": ["auto"], "tracking.loggers": []}
        config |= {"baselines.auto.methods": ["ranknet"], "baselines.auto.today": "risk_score"}
        exact = {"top_k": 4, "time_limit": 0.3} if kind == "queries" else {"top_k": 40, "time_limit": 0.3}
        query = {"query": "ward"} if kind == "queries" else {}
        path = folder / kind.replace(" ", "-")
        made[kind] = ltr.experiment(config, data=folder / f"{kind}.csv", label="ill", exact=exact, folder=path, **query)
    return made


@pytest.mark.parametrize("kind", ["one list", "queries"])
def test_a_run_has_the_page_too(runs, kind, capsys):
    """The list is the test set, and what was found there is what the run's own table says."""
    results = runs[kind]
    folder, row = results.folder, next(row for row in results.rows if row["method"] == "exact")
    answer = Answer.from_dict(json.loads((folder / "page.json").read_text()))
    test = row["first_k"]["test"]
    lists = answer.queries or 1
    assert (answer.listed, answer.asked, answer.learned.rows) == ("test", 40 if lists == 1 else 4, 500)
    assert answer.found.hits.value == pytest.approx(test["hits"] * lists)
    assert answer.found.precision.value == pytest.approx(test["precision"])
    assert answer.expected.value == pytest.approx(answer.found.hits.value, rel=0.25)
    assert answer.today is not None
    assert headline(answer) == results.answer
    listed = pd.read_csv(folder / "list.csv")
    first = listed[listed["position"] <= answer.asked]
    assert len(listed) == answer.rows == answer.found.rows
    assert (first["ill"] == "yes").sum() == answer.found.hits.value
    assert [entry.id for entry in answer.entries] == first["patient"].tolist()
    assert [entry.reasons[0].column for entry in answer.entries][:3] == ["falls"] * 3
    for shown in (text_of((folder / "page.html").read_text()), as_text(answer)):
        assert BANNED.findall(shown) == []
        assert "rows of the test set" in shown
    assert main(["show", str(folder)]) == 0
    assert headline(answer) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("kind", ["one list", "queries"])
def test_a_run_ranks_new_rows_as_its_ranker_does(runs, kind, tmp_path, capsys):
    results = runs[kind]
    new = results.folder.parent / f"{kind} new.csv"
    assert main(["rank", str(results.folder), "--new", str(new), "-o", str(tmp_path / "page"), "-q"]) == 0
    page, own = Ranking.load(tmp_path / "page"), results.rankers["exact"].rank(*_rows_of(new, kind))
    ranked = pd.read_csv(tmp_path / "page" / "list.csv")
    assert (ranked["row"] - 1).tolist() == own.index.tolist()
    assert ranked["score"].tolist() == pytest.approx(own["score"].tolist())
    again = page.rank(new)
    for at in (0, 7, 90):
        why = again.why_row(at)
        assert why["chance"].iloc[0] == pytest.approx(again.ranked.set_index("row").at[at + 1, "chance"])
        same = why[why["value"] == why["typical"]]
        assert same["if typical"].to_numpy() == pytest.approx(same["chance"].to_numpy())
    assert again.answer.expected == page.answer.expected
    assert again.ranked["chance"].to_numpy() == pytest.approx(ranked["chance"].to_numpy(), abs=1e-4)
    assert page.ranker.predict_proba(*_rows_of(new, kind))[own.index, 1] == pytest.approx(again.ranked["chance"])


def _rows_of(path, kind):
    frame = pd.read_csv(path)
    return (frame, frame["ward"]) if kind == "queries" else (frame,)


def test_other_visits_and_rows_of_a_run_change_its_page_alone(runs, capsys):
    folder = runs["one list"].folder
    new = folder.parent / "one list new.csv"
    before = (folder / "exact" / "result.json").read_bytes()
    asked = ["run", str(folder / "config.toml"), "answer.visits=15", f'answer.new="{new}"', "-q"]
    assert main(asked) == 0
    assert "Visit these 15: expect " in " ".join(capsys.readouterr().out.split())
    assert (folder / "exact" / "result.json").read_bytes() == before
    answer = Answer.from_dict(json.loads((folder / "page.json").read_text()))
    assert (answer.listed, answer.rows, len(answer.entries)) == ("new", 200, 15)
    for key, message in (("answer.id=nobody", "no column of ids 'nobody'"), ("answer.new=none.csv", "none.csv")):
        assert main([*asked, key]) == 2
        assert message in capsys.readouterr().err


MISTAKES = {
    "columns": (["--label", "il", "--visits", "5", "--today", "risk"], ["no label column 'il'", "scores 'risk'"]),
    "visits": (["--label", "ill"], ["--visits K"]),
    "today is the label": (["--label", "ill", "--visits", "5", "--today", "ill"], ["neither dropped nor the label"]),
    "files": (["--label", "ill", "--visits", "5", "--new", "nwe.csv"], ["nwe.csv: no such file (did you mean 'new.c"]),
    "new rows": (["--label", "ill", "--visits", "5", "--new", "bare.csv"], ["no feature column", "no column of ids"]),
}


@pytest.mark.parametrize(("arguments", "messages"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_one_message_before_anything_slow(tmp_path, monkeypatch, capsys, arguments, messages):
    table = table_of(60)
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "new.csv", index=False)
    table[["mode"]].to_csv(tmp_path / "bare.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.import_module", lambda name: pytest.fail(f"imported {name}"))
    assert main(["rank", "t.csv", *arguments]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.count("error:") == 1
    for message in messages:
        assert message in found.err


@pytest.mark.parametrize("labelled", ["all", "some"])
def test_rows_that_were_learned_from_are_not_ranked_as_new_ones(tmp_path, monkeypatch, capsys, labelled):
    table = table_of(120)
    if labelled == "some":
        table.loc[80:, "ill"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    asked = ["--label", "ill", "--visits", "20", "--methods", "logistic", "-q", "-o", "out"]
    assert main(["rank", "t.csv", *asked]) == 0
    capsys.readouterr()
    assert main(["rank", "out", "--visits", "10"]) == 2
    assert "ltr rank out/config.toml --visits 10" in capsys.readouterr().err
    assert main(["rank", "out/config.toml", "--visits", "10", "-q", "-o", "again", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["visits"], page["rows"]) == (10, 120 if labelled == "all" else 40)
    assert main(["rank", "out", "--new", "t.csv", "--visits", "10", "-q"]) == 0


def test_wrong_arguments_from_python():
    table = table_of(60)
    with pytest.raises(ValueError, match="unknown key"):
        ltr.rank(table, label="ill", visits=5, lable="ill")
    with pytest.raises(ValueError, match=r"answer\.visits"):
        ltr.rank(table, label="ill", visits=0)


def test_times_are_ranked_by_earlier_rows():
    table = table_of(500)
    table["month"] = [f"2024-{1 + at * 12 // 500:02}" for at in range(500)]
    new = table[400:].drop(columns="ill")
    found = ltr.rank(table[:400], label="ill", visits=10, time="month", new=new, methods=["logistic"])
    assert len(found.evidence.labels) < 400
    assert np.isfinite(found.evidence.scores).all()
    assert (found.answer.learned.time, found.answer.learned.rows) == ("month", 400)
    assert "trained on earlier rows only" in " ".join(as_text(found.answer).split())
    own = ltr.rank(table[:400], label="ill", visits=10, time="month", methods=["logistic"])
    assert own.answer.rows == len(own.evidence.labels) == len(own.ranked)
    assert own.ranked["row"].min() == 401 - len(own.evidence.labels)


def test_weights_of_positives_leave_chances_alone():
    plain, weighted = ranked().answer, ranked(positive_weight="balanced").answer
    assert weighted.expected.value == pytest.approx(plain.expected.value, rel=0.2)
    with_column = table_of()
    with_column["weight"] = np.where(np.arange(700) % 10 == 0, 0.0, 1.0)
    options = {"label": "ill", "visits": 40, "methods": ["logistic"], "weight": "weight"}
    answer = ltr.rank(with_column, **options).answer
    assert (answer.rows, answer.learned.rows) == (630, 630)
    assert all((entry.row - 1) % 10 for entry in answer.entries)


def test_grades_above_0_are_hits():
    table = table_of(600, queries=30).drop(columns="patient")
    table["grade"] = (table.pop("ill") == "yes") * np.minimum(2, table["falls"])
    answer = ltr.rank(table[:400], label="grade", query="ward", visits=2, new=table[400:], methods=["ranknet"]).answer
    assert answer.learned.hit == "grade above 0"
    assert answer.learned.hits == int((table["grade"][:400] > 0).sum())
    assert 0 < answer.expected.value <= answer.visits == 20


def test_names_in_figures_are_no_formulas():
    points = (FrontPointOnList(9.0, 0.2, 9.0, 0.0, True), FrontPointOnList(8.0, 0.5, 8.5, 0.1, False))
    front = ListFront("the list", ("DCG", "share(in_$_$ = a) @50"), points, True, 1.0)
    assert "share(in_$_$ = a) @50</text>" in front.svg
