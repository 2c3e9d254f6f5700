"""Runs from config to table: stages, logs, interruption and going on, what is never computed twice."""

import contextlib
import csv
import errno
import json
import math
import re
import shutil
import signal

import pytest
import torch

from ltr.data import DataError, half_split, load
from ltr.metrics import rank_statistic
from tests.paths import ROOT
from tests.tiers import slow_but
from tests.trainers.conftest import table as machines
from tests.trainers.sweeping import table
from trainers.cli import main
from trainers.config import load_config, parse_config, resolved_toml
from trainers.config.errors import ConfigError
from trainers.config.toml_text import merged
from trainers.display import Display
from trainers.files import RunError, replacing
from trainers.loggers import read_log
from trainers.run.experiment import run_experiment
from trainers.run.folder import RunFolder
from trainers.run.methods import load_scores
from trainers.run.results import read_results


def config_for(folder, **sections):
    """A small experiment: two surrogates, both baselines, the heuristic in place of the exact solver."""
    tree = {
        "name": "small",
        "runs_dir": str(folder),
        "data": {"name": "gaussians"},
        "surrogate": {"losses": ["ranknet", "p_norm_push(p=2)"], "max_steps": 6, "tolerance": 1e-15},
        "baselines": {"methods": ["logistic_regression", "rankboost"], "rankboost": {"rounds": 5}},
        "exact": {"choose": False, "top_k": 40, "method": "local_search", "time_limit": 0.2},
        "statistics": {"report": ["auc", "dcg@10"]},
        "tracking": {"figures": False},
    }
    return parse_config(merged(tree, sections))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, its config and its results; tests do not write to it."""
    config = config_for(tmp_path_factory.mktemp("runs"))
    return config, run_experiment(config)


def copied(config, folder):
    copy = config.model_copy(update={"runs_dir": str(folder)})
    shutil.copytree(config.folder, copy.folder)
    return copy


def test_the_run_leaves_everything_behind(finished):
    config, results = finished
    folder = config.folder
    assert results.complete
    assert [row["method"] for row in results.rows] == list(config.methods)
    assert load_config(folder / "config.toml") == config
    facts = json.loads((folder / "run.json").read_text())
    assert facts["seed"] == 0
    assert torch.__version__.startswith(facts["versions"]["torch"])  # builds for CUDA add to it
    assert len(facts["data"]["sha256"]) == 64
    assert "git_commit" in facts
    for method in config.methods:
        names = {path.name.split(".tfevents")[0] for path in (folder / method).iterdir()}
        assert {"scalars.jsonl", "events.out", "model.json", "scores.npz", "result.json"} <= names
        assert "checkpoint.pt" not in names
    assert read_results(RunFolder(folder)) == results
    with (folder / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["train dcg"]) for row in rows] == [row["train"]["dcg"] for row in results.rows]
    assert "| ranknet |" in (folder / "results.md").read_text()


def test_the_statistics_are_those_of_the_halves(finished):
    config, results = finished
    data = load("gaussians")
    halves = dict(zip(("train", "test"), half_split(data.n, 0), strict=True))
    for row in results.rows:
        scores = load_scores(RunFolder(config.folder).method(row["method"]))
        for half, rows in halves.items():
            for name, value in row[half].items():
                expected = rank_statistic(torch.from_numpy(getattr(scores, half)), torch.from_numpy(data.y[rows]), name)
                assert value == float(expected)


def test_the_convex_loss_and_the_statistics_are_logged_at_every_step(finished):
    config, results = finished
    for row in results.rows:
        if row["method"] in ("logistic_regression", "exact"):
            continue
        records = list(read_log(config.folder / row["method"] / "scalars.jsonl"))
        *steps, final = records
        assert [record["step"] for record in steps] == list(range(1, row["steps"] + 1))
        for record in steps:
            expected = {f"{half}/{name}" for half in ("train", "test") for name in config.reported}
            assert {"loss/convex", *expected} <= set(record["values"])
        assert final["values"]["final/train/dcg"] == row["train"]["dcg"]
        assert final["values"]["final/loss/convex"] == row["loss"]


def test_the_exact_stages_trace_is_logged_against_milliseconds(finished):
    config, _ = finished
    solution = json.loads((config.folder / "exact" / "solution.json").read_text())
    trace = solution["certificate"]["trace"]
    records = [r for r in read_log(config.folder / "exact" / "scalars.jsonl") if "exact/bound" in r["values"]]
    steps = [record["step"] for record in records]
    assert steps == sorted(set(steps))
    assert [record["values"]["exact/incumbent"] for record in records] == [point["incumbent"] for point in trace]
    assert all(abs(step - 1000 * point["seconds"]) < len(trace) + 1 for step, point in zip(steps, trace, strict=True))


class Calls(Display):
    """Keeps what starts, and what is noted."""

    def __init__(self):
        super().__init__()
        self.begun, self.notes = [], []

    def note(self, text):
        self.notes.append(text)

    def begin(self, method, total, limit=None):
        self.begun.append(method)


def test_a_finished_run_is_not_computed_again(finished):
    config, results = finished
    before = {path: path.stat().st_mtime_ns for path in config.folder.glob("*/*") if path.parent.name != "results"}
    display = Calls()
    again = run_experiment(config, display=display)
    assert display.begun == []
    assert again == results
    assert before == {path: path.stat().st_mtime_ns for path in before}


class StopAt(Calls):
    """Interrupts a method at a step, or the exact stage at its first trace point."""

    def __init__(self, method, step=3):
        super().__init__()
        self.method, self.at = method, step

    def step(self, index, values):
        if self.begun[-1] == self.method and index == self.at:
            raise KeyboardInterrupt

    def progress(self, point, trivial):
        if self.method == "exact":
            signal.raise_signal(signal.SIGINT)


def numbers(results):
    """Everything but wall times."""
    names = ("method", "status", "train", "test", "top", "loss", "steps", "weights")
    return [[row[name] for name in names] for row in results.rows]


def curve(folder, method):
    return [(record["step"], record["values"]) for record in read_log(folder / method / "scalars.jsonl")]


ADAM = {"losses": ["ranknet", "hinge"], "scorer": "mlp", "hidden": [4], "optimizer": "adam", "batch_size": 128}


@pytest.mark.parametrize("sections", [{}, {"surrogate": ADAM | {"max_steps": 5}}], ids=["lbfgs", "adam"])
def test_an_interrupted_training_goes_on_to_the_same_numbers(tmp_path, sections):
    exact = {"exact": {"enabled": False}, "baselines": {"methods": ["logistic_regression"]}}
    straight = run_experiment(config_for(tmp_path / "straight", **exact, **sections))
    config = config_for(tmp_path / "stopped", **exact, **sections)
    first, second = config.methods[:2]
    display = StopAt(second)
    stopped = run_experiment(config, display=display)
    assert display.begun == [first, second]
    assert not stopped.complete
    assert [(row["method"], row["status"], row["steps"]) for row in stopped.rows][1:] == [(second, "interrupted", 3)]
    assert math.isfinite(stopped.rows[1]["train"]["dcg"])
    assert "unfinished" in stopped.caption
    assert (config.folder / second / "checkpoint.pt").exists()
    display = Calls()
    resumed = run_experiment(config, display=display)
    assert display.begun == [second, "logistic_regression"]
    assert numbers(resumed) == numbers(straight)
    for method in config.methods:
        assert curve(config.folder, method) == curve(tmp_path / "straight" / "small", method)


def test_a_killed_training_goes_on_from_its_last_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.run.methods._SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    exact = {"exact": {"enabled": False}, "baselines": {"methods": []}}
    straight = run_experiment(config_for(tmp_path / "straight", **exact))
    config = config_for(tmp_path / "killed", **exact)

    class Crash(Display):
        def step(self, index, values):
            if index == 4:
                raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        run_experiment(config, display=Crash())
    # the fourth step is logged but not in the checkpoint: its line must not stand twice
    assert len(curve(config.folder, "ranknet")) == 4
    resumed = run_experiment(config)
    assert numbers(resumed) == numbers(straight)
    assert curve(config.folder, "ranknet") == curve(tmp_path / "straight" / "small", "ranknet")


def test_an_interrupted_exact_stage_keeps_its_incumbent_and_starts_again_from_it(tmp_path):
    config = config_for(tmp_path, surrogate={"losses": ["ranknet"]}, baselines={"methods": ["logistic_regression"]})
    stopped = run_experiment(config, display=StopAt("exact"))
    assert not stopped.complete
    assert stopped.rows[-1]["status"] == "interrupted"
    assert stopped.rows[-1]["bound"] >= stopped.rows[-1]["objective"]
    display = Calls()
    resumed = run_experiment(config, display=display)
    assert display.begun == ["exact"]
    assert resumed.complete
    assert resumed.rows[-1]["objective"] >= stopped.rows[-1]["objective"]


def test_a_stopped_boosting_starts_again(tmp_path):
    config = config_for(tmp_path, surrogate={"losses": []}, exact={"enabled": False})
    stopped = run_experiment(config, display=StopAt("rankboost"))
    assert [row["method"] for row in stopped.rows] == ["logistic_regression"]
    assert run_experiment(config).complete


def test_ctrl_c_ends_the_command_between_two_steps(tmp_path, monkeypatch, capsys):
    config = config_for(tmp_path, baselines={"methods": []}, exact={"enabled": False})
    (tmp_path / "small.toml").write_text(resolved_toml(config))
    monkeypatch.setattr(Display, "step", lambda self, index, values: signal.raise_signal(signal.SIGINT))
    assert main(["run", str(tmp_path / "small.toml")]) == 130
    out, err = capsys.readouterr()
    assert "interrupted" in out
    assert "run the same command again" in out
    assert err.endswith(f"ltr: interrupted; what is finished is kept in {config.folder}: the same command goes on\n")
    assert [step for step, _ in curve(config.folder, "ranknet")][:1] == [1]
    assert read_results(RunFolder(config.folder)).rows[0]["steps"] == 1


def test_a_full_disk_ends_in_one_message_and_what_is_finished_is_kept(tmp_path, monkeypatch, capsys):
    (tmp_path / "small.toml").write_text(resolved_toml(config_for(tmp_path)))
    finished = []

    def full(descriptor):
        finished[:] = sorted(path.parent.name for path in tmp_path.glob("*/*/result.json"))
        if finished:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ltr.files.os.fsync", full)
    assert main(["run", str(tmp_path / "small.toml"), "--quiet"]) == 2
    advice = "what is finished is kept: make room and give the same command again"
    err = f"ltr: error: runs_dir: cannot write {tmp_path}/small: No space left on device; {advice}\n"
    assert capsys.readouterr() == ("", err)
    assert finished == ["ranknet"]
    assert not list(tmp_path.rglob("*.tmp"))
    monkeypatch.undo()
    display = Calls()
    assert run_experiment(load_config(tmp_path / "small.toml"), display=display).complete
    assert display.notes == ["ranknet: finished earlier"]


def temporary_of(path):
    """The name under which a file is written before it is whole."""
    with contextlib.suppress(FileNotFoundError), replacing(path) as temporary:
        pass
    return temporary


def test_the_next_start_removes_what_a_killed_one_left_unfinished(finished, tmp_path):
    folder = copied(finished[0], tmp_path).folder
    left = [temporary_of(folder / "ranknet" / "result.json"), folder / f".results.json.{'0' * 32}.tmp"]
    own = [folder / "notes.tmp", folder / ".mine.tmp", folder / "exact" / ".1.tmp"]
    for path in (*left, *own):
        path.write_text("half a file")
    run_experiment(config_for(tmp_path))
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in own)


def table_in(folder):
    """The section of data of a small table, and its path."""
    path = folder / "table.csv"
    path.write_text(table())
    return {"name": None, "path": str(path), "label": "y"}, path


def test_a_changed_config_or_changed_data_is_refused_by_name(tmp_path):
    data, path = table_in(tmp_path)
    options = {"exact": {"enabled": False}, "baselines": {"methods": []}}
    config = config_for(tmp_path / "runs", data=data, **options)
    run_experiment(config)
    with pytest.raises(ConfigError) as error:
        run_experiment(config_for(tmp_path / "runs", data=data, seed=1, **options | {"tracking": {"every": 2}}))
    assert {finding.path for finding in error.value.findings} == {"seed", "tracking.every"}
    assert "--fresh" in str(error.value)
    assert "seed: was 0 in the run begun in" in str(error.value)
    path.write_text(table(rows=59))
    with pytest.raises(RunError, match="data: changed since the run"):
        run_experiment(config)
    assert run_experiment(config, fresh=True).complete


def test_a_folder_that_is_no_run_is_left_alone(tmp_path):
    config = config_for(tmp_path)
    config.folder.mkdir()
    (config.folder / "thesis.txt").write_text("precious")
    with pytest.raises(RunError, match="holds other files than a run's"):
        run_experiment(config, fresh=True)
    assert (config.folder / "thesis.txt").read_text() == "precious"


def test_two_processes_do_not_write_one_run(tmp_path):
    config = config_for(tmp_path, exact={"enabled": False})

    class Second(Display):
        def begin(self, method, total, limit=None):
            with pytest.raises(RunError, match="another process is writing"):
                run_experiment(config)

    assert run_experiment(config, display=Second()).complete


@pytest.mark.parametrize(
    ("lost", "again"),
    [
        (["logistic_regression/model.json", "exact/result.json"], ["logistic_regression", "exact"]),
        (["logistic_regression/scores.npz"], ["logistic_regression"]),
    ],
)
def test_a_method_whose_files_are_gone_is_computed_again(finished, tmp_path, lost, again):
    config, results = finished
    copy = copied(config, tmp_path)
    for name in lost:
        (copy.folder / name).unlink()
    display = Calls()
    resumed = run_experiment(copy, display=display)
    assert display.begun == again
    assert resumed.complete
    assert numbers(resumed)[:-1] == numbers(results)[:-1]


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """A finished run with a proof, and its config; tests do not write to it."""
    config = config_for(
        tmp_path_factory.mktemp("certified"),
        surrogate={"losses": []}, baselines={"methods": ["logistic_regression"]},
        exact={"method": "weight_space", "time_limit": 20.0, "certificate": True}, tracking={"figures": False},
    )  # fmt: skip
    assert run_experiment(config).complete
    return config


def test_a_certificate_that_is_gone_is_made_again(certified, tmp_path):
    copy = copied(certified, tmp_path)
    path = copy.folder / "exact" / "certificate.json"
    text = path.read_text()
    path.unlink()
    display = Calls()
    run_experiment(copy, display=display)
    assert display.begun == ["exact"]
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["exact/solution.json", "ranknet/scores.npz"])
def test_other_files_that_are_not_as_they_were_written_are_named(finished, tmp_path, name):
    copy = copied(finished[0], tmp_path)
    with (copy.folder / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(RunError, match=rf"{re.escape(name)}: .*damaged.*--fresh"):
        run_experiment(copy)


@pytest.mark.parametrize(
    ("name", "text", "also"),
    [
        ("run.json", "", None),
        ("config.toml", "\x00", None),
        ("config.toml", None, None),
        ("ranknet/result.json", "", None),
        ("exact/solution.json", "{}", "exact/result.json"),
        ("ranknet/checkpoint.pt", "garbled", "ranknet/result.json"),
    ],
)
def test_a_damaged_run_is_one_message_and_fresh_starts_over(finished, tmp_path, name, text, also):
    config, results = finished
    copy = copied(config, tmp_path)
    if text is None:
        (copy.folder / name).unlink()
    else:
        (copy.folder / name).write_text(text)
    if also is not None:
        (copy.folder / also).unlink()
    with pytest.raises(RunError, match=rf"{re.escape(name)}: .*--fresh"):
        run_experiment(copy)
    if "/" not in name and text in (None, "\x00"):
        assert numbers(run_experiment(copy, fresh=True))[:-1] == numbers(results)[:-1]


def test_a_diverging_training_names_the_cure(tmp_path):
    surrogate = {"losses": ["exponential"], "scorer": "mlp", "optimizer": "adam", "learning_rate": 1e30}
    with pytest.raises(RunError, match=r"surrogate: training on exponential failed: .*learning_rate"):
        run_experiment(config_for(tmp_path, surrogate=surrogate))


def test_another_split_and_every_other_option_reach_their_place(tmp_path):
    config = config_for(
        tmp_path,
        data={"train_fraction": 0.3, "split_seed": 5},
        surrogate={"losses": ["ranknet"]},
        baselines={"methods": []},
        exact={"base": "ranknet", "top_k": "full", "statistic": "mrr", "C": 0.5},
        tracking={"every": 4, "loggers": [], "figures": False},
    )
    results = run_experiment(config)
    assert json.loads((config.folder / "run.json").read_text())["data"]["training_rows"] == 375
    assert results.statistics == ("mrr", "auc", "dcg@10")
    assert results.top == "full list of ranknet"
    exact = results.rows[-1]
    nonzero = sum(weight != 0 for weight in exact["weights"])
    assert exact["objective"] == pytest.approx(exact["top"] - 0.5 * nonzero, abs=1e-3)
    steps = [record["step"] for record in read_log(config.folder / "ranknet" / "scalars.jsonl")]
    assert steps[:-1] == [4, 6]
    assert not list(config.folder.glob("*/events*"))
    assert not (config.folder / "ranked_list_test.png").exists()


def test_a_certified_training_logs_its_distance_to_the_convex_optimum(tmp_path):
    surrogate = {"losses": ["ranknet", "logistic"], "certify": True, "max_steps": 200, "tolerance": 1e-10}
    options = {"baselines": {"methods": []}, "exact": {"enabled": False}}
    config = config_for(tmp_path, data=table_in(tmp_path)[0], surrogate=surrogate, **options)
    for row in run_experiment(config).rows:
        assert abs(row["excess"]) < 1e-8
        excess = [values["loss/excess"] for _, values in curve(config.folder, row["method"]) if "loss/excess" in values]
        assert excess[0] > 1e-4
        assert excess[-1] == pytest.approx(row["excess"], abs=1e-12)


CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
SMALL = [path for path in CONFIGS if path.stem in ("gaussians", "grouped", "haberman", "own_data")]


def pumps(folder):
    """The table that configs/own_data.toml speaks of: pumps with an id, two measures, and whether each failed."""
    path = folder / "pumps.csv"
    path.write_text(machines(rows=120).replace("id,age,hours,failed", "pump,vibration,hours,failed"))
    return path


@pytest.mark.usefixtures("few_fits")
@pytest.mark.parametrize("path", slow_but(CONFIGS, SMALL), ids=lambda path: path.stem)
def test_every_shipped_config_runs(path, tmp_path):
    quick = [
        f"runs_dir={tmp_path}", "surrogate.max_steps=2", "exact.time_limit=0.3", "baselines.rankboost.rounds=2",
        "surrogate.certify=false", "tracking.figures=false", "exact.choose=false",
    ]  # fmt: skip
    if path.stem == "own_data":
        quick.append(f"data.path={pumps(tmp_path)}")
    if path.stem == "abalone19":
        quick.append("surrogate.losses=ranknet")  # 2087 rows: every loss on them takes seconds
    if path.stem == "lightgbm_lambdarank":
        quick.append("surrogate.losses=p_norm_push(p=2)")  # 300 features
    config = load_config(path, quick)
    try:
        results = run_experiment(config)
    except DataError as error:
        if "LTR_DATA" in str(error) or "no such file" in str(error):
            pytest.skip(str(error))
        raise
    assert results.complete
    rows = {row["method"]: row for row in results.rows}
    linear = max(row["top"] for row in results.rows if row["weights"])
    assert rows["exact"]["top"] >= linear - 1e-9 or config.exact.C > 0
