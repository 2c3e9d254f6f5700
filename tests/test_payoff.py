"""The study of reranking on new data: its page from made-up cells, and a cell of a small table."""

import json

import numpy as np
import pytest

import ltr.rankers.choice
from ltr.data import Dataset
from scripts.payoff import __main__ as payoff
from scripts.payoff import cells as study
from scripts.payoff import page as pages
from trainers.report.page import to_markdown

NAMES = ("base", "full", "chosen", "+ 1", "+ 2", "spread 0.2", "spread 0.45", "spread 0.7")


def cell(data, split, chosen, full=0.0, *, base="logistic_regression", promised=None, one=0.0, value=10.0):
    """A cell whose rankers gain so many percent on the test set; the base is kept where the chosen one gains 0."""
    gains = dict.fromkeys(NAMES, 0.0) | {"chosen": chosen, "full": full, "+ 1": one}
    expected, low, high = promised or (0.0, 0.0, 0.0)
    return {
        "data": data,
        "split": split,
        "base": base,
        "statistic": "dcg(base=e)",
        "top_k": 100,
        "rows": {"train": [250, 60], "test": [250, 60]},
        "train": dict.fromkeys(NAMES, value),
        "test": {name: value * (1 + gain / 100) for name, gain in gains.items()},
        "seconds": {"full": 4.0, "chosen": 8.0, "+ 1": 1.0, "+ 2": 1.0, "spread 0.45": 2.0},
        "status": {"full": "optimal"},
        "choice": {
            "chosen": "spread 0.45" if promised else "base", "expected": expected, "low": low, "high": high,
            "gains": {"base": 0.0, "spread 0.2": 0.2, "spread 0.45": 0.3}, "statistic": "dcg(base=e)",
            "deviations": {"base": 0.0, "spread 0.2": 0.1, "spread 0.45": 0.4}, "list_gain": 1.0, "what": "",
        },
        "commit": "0123456789ab",
    }  # fmt: skip


def made_up():
    """Four splits: a gain on uis that is kept by three quarters, a loss on haberman, the base kept on pima and wine."""
    found = []
    for split, way in enumerate((-1, 1, -1, 1)):
        # values of 10: a gain of 3 % is 0.3, within the first interval and not within the second one
        promised = (0.2, 0.0, 0.4) if split else (0.5, 0.4, 0.6)
        found.append(cell("uis", split, 3 + way / 2, 4 + way, promised=promised, one=5.0))
        found.append(cell("haberman", split, -2 + way / 2, -6 + way, promised=(0.1, -0.3, 0.5)))
        found += [cell("pima", split, 0.0, way), cell("wine", split, 0.0, way)]
    return found


def folders(tmp_path):
    return ["--docs", str(tmp_path), "--tables", str(tmp_path / "tables" / "payoff.md")]


@pytest.fixture(scope="module")
def text():
    return to_markdown(pages.page_of(made_up()), {})


def row_of(text, table, name):
    """The cells of a row of the first table with this heading."""
    rows = text[text.index(f"| {table} |") :].split("\n\n")[0].splitlines()
    (found,) = [row for row in rows if row.startswith(f"| {name} |")]
    return [part.strip() for part in found.strip("|").split("|")]


def test_the_page_says_what_the_numbers_show(text):
    # uis: 3 % +- sqrt(4/3 * 1/4) / 2 = 0.29; haberman -2 %: over four data sets (3 - 2 + 0 + 0) / 4 = 0.25 %
    assert row_of(text, "data set | splits", "uis")[1:5] == ["4", "+3.0% ± 0.29", "0.002", "100%"]
    assert row_of(text, "data set | splits", "haberman")[2] == "-2.0% ± 0.29"
    assert row_of(text, "data set | splits", "pima")[2:5] == ["0.00% ± 0.00", "1", "0%"]
    assert "is not shown to differ from its base on all data: +0.25% on average over 16 pairs" in text
    assert "It reranks in 50% of them." in text
    assert "On tables of installed packages alone the mean is 0.00% (p = 1)." in text
    assert "It is shown to lose on haberman (-2.0% ± 0.29)." in text
    assert "the chosen ranker has this share of its gain: uis (75%)" in text  # 3 of 4
    assert "The full optimum is shown to lose on haberman." in text
    assert "The best ranker fixed beforehand, `+ 1`, gains +1.2% on average, the choice +0.25%." in text  # 5 / 4
    # the oracle: 5 on uis, 0 on haberman, on the others 1 where the full optimum gains: (5 + 0.5 + 0.5) / 4
    assert "The oracle gains +1.5%, of which the choice has 17%." in text


@pytest.fixture
def small(monkeypatch):
    """Each data set by name is a small table, with queries for the one by query."""

    def load(name):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 2))
        y = X[:, 0] ** 3 + X[:, 1] + rng.normal(size=80)
        if name == study.QUERIES:
            return Dataset(name, X, np.digitize(y, [0, 1]), qid=np.arange(80) // 8)
        return Dataset(name, X, y > 0.5)

    monkeypatch.setattr(study, "load", load)
    monkeypatch.setattr(study, "load_test", lambda name: load(name) if name == study.QUERIES else None)
    monkeypatch.setattr(study, "SECONDS", 0.3)
    monkeypatch.setattr(ltr.rankers.choice, "REPEATS", 1)


def test_cells_are_computed_once_and_make_a_page(small, tmp_path, monkeypatch, capsys):
    arguments = [*folders(tmp_path), "--data", "uis", study.QUERIES, "--splits", "0", "--processes", "1"]
    assert payoff.main([*arguments, "--bases", "logistic_regression"]) == 0
    path = tmp_path / "payoff" / "cells.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(c["data"], c["statistic"]) for c in found] == [("uis", "dcg(base=e)"), (study.QUERIES, "ndcg@10")]
    for computed in found:
        for part in ("train", "test"):
            assert set(computed[part]) == {"base", "chosen", "full", "+ 1", "+ 2", *study.CENTRAL}
        assert computed["train"]["full"] >= computed["train"]["base"] > 0  # the search starts from the base's weights
        kept = computed["choice"]["chosen"]
        assert computed["test"]["chosen"] == pytest.approx(computed["test"][kept])
        assert computed["choice"]["low"] <= computed["choice"]["expected"] <= computed["choice"]["high"]
    page = (tmp_path / "tables" / "payoff.md").read_text()
    before = path.read_bytes()
    monkeypatch.setattr(payoff, "compute", lambda **request: pytest.fail("a cell was computed again"))
    assert payoff.main([*arguments, "--bases", "logistic_regression"]) == 0
    assert payoff.main([*folders(tmp_path), "--page"]) == 0
    assert ((tmp_path / "tables" / "payoff.md").read_text(), path.read_bytes()) == (page, before)
    capsys.readouterr()
