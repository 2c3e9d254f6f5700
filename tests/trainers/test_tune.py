"""Searches: ranges and their mistakes, trials on inner splits, interruption, the best config, the report."""

import numpy as np
import pandas as pd
import pytest

import ltr
import trainers.tuning
from trainers.cli import main
from trainers.config import load_config, parse_config
from trainers.config.errors import ConfigError
from trainers.config.tuning import load_tuning
from trainers.files import RunError
from trainers.run.folder import RunFolder
from trainers.run.results import read_results
from trainers.task.data import inner_splits, split_of

pytest.importorskip("optuna")

BASE = {
    "data.name": "gaussians", "surrogate.losses": ["ranknet"], "surrogate.max_steps": 3, "baselines.methods": [],
    "exact": {"enabled": False, "statistic": "auc"}, "statistics.report": ["auc"],
}  # fmt: skip
RANGES = {
    "surrogate.l2": {"low": 1e-4, "high": 10.0, "log": True},
    "surrogate.losses": ["ranknet", "hinge"],
    "splits": 2,
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return ltr.tune(BASE, RANGES | {"trials": 5}, folder=tmp_path_factory.mktemp("runs") / "search")


def values(tuning):
    return tuning.trials.drop(columns="seconds")


def test_a_trial_is_the_mean_over_inner_splits_of_the_training_set(found):
    split = split_of(parse_config({"name": "x", "data": {"name": "gaussians"}}).data, 0)
    inner = inner_splits(split, 0.25, 2, 0)
    for one in inner:
        rows = [set(map(int, part.rows)) for _, part in one.parts]
        assert rows[0] | rows[1] == set(map(int, split.train.rows))
        assert not rows[0] & rows[1]
        assert len(rows[1]) == pytest.approx(0.25 * len(split.train.rows), abs=2)
    assert inner[0].facts["sha256"] not in (inner[1].facts["sha256"], split.facts["sha256"])
    row = found.trials.loc[3]
    ranker = ltr.SurrogateRanker(row["surrogate.losses"], l2=row["surrogate.l2"], max_steps=3)
    reached = []
    for one in inner:
        with pytest.warns(UserWarning, match="max_steps"):
            ranker.fit(one.train.X, one.train.y)
        scores = np.asarray(ranker.decision_function(one.test.X))
        above = scores[one.test.y == 1][:, None] > scores[one.test.y == 0]
        reached.append(above.mean())
    assert row[["lowest", "highest", "value"]].tolist() == pytest.approx([*sorted(reached), np.mean(reached)])


def test_the_first_trial_is_the_config_as_it_was_written(found):
    first = found.trials.loc[0]
    assert first["surrogate.l2"] == 1e-4  # the default
    assert found.value == found.trials["value"].max() >= first["value"]
    assert found.table(2)[1] == (found.statistic, [f"{value:.4f}" for value in found.trials["value"].nlargest(2)])
    assert found.best == found.trials.loc[found.trials["value"].idxmax(), list(found.best)].to_dict()


def test_the_best_options_are_a_config_and_a_run(found, capsys):
    config = load_config(found.config)
    assert config.surrogate.l2 == found.best["surrogate.l2"]
    assert config.surrogate.losses == (found.best["surrogate.losses"],) == (found.method,)
    assert main(["run", str(found.config), "-q"]) == 0  # finds it finished
    assert "run best" in capsys.readouterr().out
    assert read_results(RunFolder(found.folder / "best")) == found.results
    assert found.complete


def test_an_interrupted_search_goes_on_as_if_nothing_had_happened(found, tmp_path, monkeypatch):
    whole, calls = trainers.tuning.fit, []

    def stopped(task, *given, **options):
        calls.append(task)
        if len(calls) == 4:  # the second split of the second trial
            raise KeyboardInterrupt
        return whole(task, *given, **options)

    options = {"folder": tmp_path / "search"}
    monkeypatch.setattr(trainers.tuning, "fit", stopped)
    tuning = ltr.tune(BASE, RANGES | {"trials": 5}, **options)
    assert (tuning.complete, len(tuning.trials), tuning.results) == (False, 1, None)
    assert "unfinished: 1 trials" in repr(tuning)
    journal = tmp_path / "search" / "trials.journal"
    journal.write_bytes(journal.read_bytes() + b'{"op_code"')  # as a process leaves it that is killed
    monkeypatch.setattr(trainers.tuning, "fit", whole)
    assert values(ltr.tune(BASE, RANGES | {"trials": 5}, **options)).equals(values(found))


def test_more_trials_continue_a_search_and_other_ranges_do_not(tmp_path):
    options = {"folder": tmp_path / "search"}
    first = ltr.tune(BASE, RANGES | {"trials": 1}, **options)
    more = ltr.tune(BASE, RANGES | {"trials": 2}, **options)
    assert values(more).head(1).equals(values(first))
    with pytest.raises(ConfigError, match=r"(?s)2 errors.*surrogate.max_steps: was 3 when.*tune.surrogate.l2: was"):
        ltr.tune(BASE | {"surrogate.max_steps": 4}, RANGES | {"surrogate.l2": [1.0]}, **options)
    limited = ltr.tune(BASE, RANGES | {"trials": 9, "time_limit": 1e-9}, **options)
    assert len(limited.trials) == 2
    fresh = ltr.tune(BASE, RANGES | {"surrogate.l2": [1.0, 2.0], "trials": 1}, fresh=True, **options)
    assert fresh.trials["surrogate.l2"].isin([1.0, 2.0]).all()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    with pytest.raises(RunError, match="holds other files than a search's"):
        ltr.tune(BASE, RANGES, folder=tmp_path / "other")


def test_the_test_set_has_no_say():
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.normal(size=80), "b": draw.choice(["x", "y", None], 80)})
    frame["y"], frame["q"] = draw.integers(0, 3, 80), np.repeat(np.arange(8), 10)
    ranges = {"surrogate.l2": [0.01, 100.0], "trials": 2, "splits": 1}
    found = [
        ltr.tune(BASE | {"data.name": None, "exact.statistic": "dcg@3"}, ranges, data=frame, test=test, label="y",
                 query="q", **{"statistics.report": ["dcg@3"]})
        for test in (frame.head(20), frame.tail(30))
    ]  # fmt: skip
    assert values(found[0]).equals(values(found[1]))
    assert found[0].statistic == "ndcg@3"
    assert found[0].results != found[1].results


def test_trials_that_fail_say_why_and_the_others_count(tmp_path):
    ranges = {"exact.max_nonzeros": [1, 9], "trials": 3, "splits": 1, "method": "exact", "seed": 0}
    exact = {"base": "ranknet", "method": "local_search", "time_limit": 0.1, "choose": False, "enabled": True}
    tuning = ltr.tune(BASE | {"exact": exact}, ranges, folder=tmp_path / "search")
    failed = tuning.trials["value"].isna()
    assert failed.any()
    assert tuning.best == {"exact.max_nonzeros": 1}
    assert tuning.trials.loc[failed, "message"].str.contains("max_nonzeros: must be at most 2").all()
    with pytest.raises(RunError, match=r"(?s)no trial has a value:.*max_nonzeros: must be at most 2"):
        ltr.tune(BASE | {"exact": exact}, ranges | {"exact.max_nonzeros": [8, 9], "trials": 1})


def test_a_table_of_a_key_is_searched_as_a_whole():
    exact = {"base": "ranknet", "method": "local_search", "time_limit": 0.1, "choose": False, "enabled": True}
    signs = [{"x0": "-"}, {"x1": "+"}]
    tuning = ltr.tune(BASE | {"exact": exact | {"signs": signs[1]}}, {"exact.signs": signs, "trials": 4, "splits": 1})
    assert tuning.trials["exact.signs"].loc[0] == signs[1]
    assert signs[0] in tuning.trials["exact.signs"].tolist()
    assert tuning.trials["message"].eq("").all()


STUDY = """
[data]
name = "gaussians"
[surrogate]
losses = ["ranknet"]
max_steps = 2
[baselines]
methods = []
[exact]
enabled = false
[tracking]
loggers = []
figures = false
[tune]
trials = 1
splits = 1
surrogate.l2 = {low = 0.1, high = 1.0}
"""


def test_the_command_searches_and_a_run_passes_over_the_section(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    assert main(["tune", "study.toml", "tune.trials=2"]) == 0
    shown = capsys.readouterr()
    assert "search study-tune" in shown.out
    assert "Best of 2 trials" in shown.out
    assert "trial 1: " in shown.err
    assert "runs/study-tune/best.toml, which ltr run takes" in shown.err
    assert main(["run", "study.toml", "-q"]) == 0
    assert load_config("study.toml").surrogate.l2 == 1e-4


def test_all_mistakes_of_a_config_and_its_ranges_come_at_once(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        STUDY.replace("max_steps = 2", "max_step = 2").replace("trials = 1", "trails = 1\nvalidation = 2.0")
        + "surrogate.max_steps = {low = 1.5, high = 10}\nsurrogate.dropout = {low = 0.5, high = 0.5}\n"
        "surrogate.learning_rate = {low = 0, high = 1, log = true}\n"
        'surrogate.losses = ["ranknet", "hinje"]\nexact.C = 3\nexact.topk = [1]\ndata.seed = [1, 2]\n'
        "surrogate.patience = {low = 2}\nexact.certificate = [true]\n"
    )
    with pytest.raises(ConfigError) as error:
        load_tuning(path, [])
    shown = {str(finding).partition(", got")[0].partition("; known")[0] for finding in error.value.findings}
    assert shown == {
        "surrogate.max_step: unknown key (did you mean 'max_steps'?)",
        "tune.validation: must be < 1",
        "tune.trails: unknown key (did you mean 'trials'?)",
        "tune.surrogate.max_steps.low: must be an integer",
        "tune.surrogate.dropout: is empty: low must be below high",
        "tune.surrogate.learning_rate.low: must be > 0 with log = true",
        "tune.surrogate.losses[1]: loss: unknown name 'hinje' (did you mean 'hinge'?)",
        "tune.exact.C: must be a list of values, or a table: {low = 1, high = 10}, with or without step and log",
        "tune.exact.topk: unknown key (did you mean 'exact.top_k'?)",
        "tune.data.seed: must not be tuned: trials share their data, their seed, and what is measured",
        "tune.exact.certificate: must not be tuned: trials share their data, their seed, and what is measured",
        "tune.surrogate.patience.high: is required",
    }
    path.write_text(STUDY[: STUDY.index("surrogate.l2")])
    with pytest.raises(ConfigError, match="tune: must have a range for at least one key"):
        load_tuning(path, [])


def test_the_journal_is_a_study_of_optuna(found):
    import optuna
    from optuna.storages.journal import JournalFileBackend

    storage = optuna.storages.JournalStorage(JournalFileBackend(str(found.folder / "trials.journal")))
    study = optuna.load_study(study_name="tune", storage=storage)
    assert [trial.value for trial in study.trials] == found.trials["value"].tolist()
