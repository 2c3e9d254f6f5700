"""Runs that choose whether to rerank: what they keep, show and say; columns of scores; runs older than the choice."""

import csv
import io
import json
import shutil

import numpy as np
import pandas as pd
import pytest

import ltr.rankers.choice
from ltr.rankers import Choice
from tests.trainers.sweeping import EXPERIMENT
from tests.trainers.test_tracking import curves
from trainers.cli import main
from trainers.config import load_config
from trainers.display import Display
from trainers.run.experiment import run_experiment
from trainers.run.folder import RunFolder
from trainers.run.results import read_results

CONFIG = EXPERIMENT.replace('"ranknet", "hinge"', '"ranknet"').replace("top_k = 12\nchoose = false", "top_k = 30")


def table(rows=160, label=True):
    """A column of scores that misses one feature of two."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, 2))
    y = (X.sum(axis=1) + rng.normal(size=rows) > 0.8).astype(int)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(model_score=X[:, 0] + 0.3 * rng.normal(size=rows))
    return (frame.assign(y=y) if label else frame).to_csv(index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run of two repeats of inner splits, beside its files."""
    folder = tmp_path_factory.mktemp("choosing")
    (folder / "table.csv").write_text(table())
    (folder / "small.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ltr.rankers.choice, "REPEATS", 2)
        assert run_experiment(config_in(folder)).complete
    return folder


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(ltr.rankers.choice, "REPEATS", 2)


def config_in(folder, *overrides):
    return load_config(folder / "small.toml", [f"runs_dir={folder / 'runs'}", *overrides])


class Stopping(Display):
    """Stops when so many inner splits are done."""

    def __init__(self, after):
        super().__init__()
        self.after, self.seen = after, []

    def counted(self, method, done, total, what):
        if what.startswith("inner splits"):
            self.seen.append((done, total))
            if done == self.after:
                raise KeyboardInterrupt


def test_an_interrupted_choice_goes_on_where_it_was(folder, tmp_path):
    whole, config = read_results(RunFolder(folder / "runs" / "small")), config_in(folder, f"runs_dir={tmp_path}")
    shutil.copytree(folder / "runs" / "small", config.folder)
    shutil.rmtree(config.folder / "exact")
    display = Stopping(3)
    assert not run_experiment(config, display=display).complete
    inner = config.folder / "exact" / "inner.jsonl"
    kept = inner.read_text().splitlines()
    assert (display.seen, len(kept)) == ([(1, 10), (2, 10), (3, 10)], 3)
    inner.write_text(inner.read_text() + '{"0/1')  # as a crash leaves it
    display = Stopping(0)
    results = run_experiment(config, display=display)
    assert [done for done, _ in display.seen] == list(range(4, 11))
    assert inner.read_text().splitlines()[:3] == kept
    assert results.choice == whole.choice
    assert results.rows[-1]["test"] == whole.rows[-1]["test"]


def test_what_was_chosen_is_said_first_everywhere(folder, capsys):
    run = folder / "runs" / "small"
    record = json.loads((run / "exact" / "result.json").read_text())
    said = str(Choice.from_dict(record["choice"]))
    recommended = "recommended: exact, which ranks as logistic_regression does "
    assert main(["show", str(run)]) == 0
    answer = json.loads((run / "results.json").read_text())["answer"]
    assert " ".join(capsys.readouterr().out.split()).startswith(f"{recommended}{answer} {said}")
    first = (run / "results.md").read_text().splitlines()[4:9]
    assert first == [f"**{recommended.strip()}**", "", f"**{answer}**", "", said]
    assert json.loads((run / "results.json").read_text())["choice"] == said
    expected = curves(run / "exact")["exact/expected_gain"]
    assert {value for _, value in expected} == {np.float32(record["choice"]["expected"])}
    # the problem's own list: what was chosen is between the base and the best
    found = record["list"]
    assert found["reached"] <= found["value"] + 1e-9 <= found["bound"] + 2e-9
    assert record["choice"]["list_gain"] == pytest.approx(found["value"] - found["base"])


def test_a_column_of_scores_is_corrected(folder, tmp_path, capsys):
    overrides = ["exact.base_score=model_score", "surrogate.losses=", "baselines.methods=", "name=scored"]
    config = config_in(folder, *overrides, "exact.certificate=true")
    results = run_experiment(config)
    assert [row["method"] for row in results.rows] == ["model_score (column)", "exact"]
    assert results.rows[0]["weights"] is not None or results.rows[0]["loss"] is None
    assert results.choice.reranks
    assert results.rows[1]["test"]["dcg"] > results.rows[0]["test"]["dcg"]
    weights = json.loads((config.folder / "exact" / "solution.json").read_text())["weights"]
    assert weights["model_score"] == 0
    assert weights["b"] > 0
    (tmp_path / "new.csv").write_text(table(40, label=False))
    assert main(["predict", str(config.folder), str(tmp_path / "new.csv")]) == 0
    assert "reranked" in {row["stage"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert main(["verify", str(config.folder / "exact" / "certificate.json"), "--require-proof"]) == 0
