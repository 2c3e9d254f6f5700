"""Sweeps from start to end: every cell once, what fails is named, results are shared."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from ltr.data import DataError
from tests.trainers.sweeping import EXPERIMENT, ONE_SPLIT, SWEEP, files_of, found_in, run_here, stamps, table, write
from trainers.cli import main
from trainers.config import load_config
from trainers.config.errors import ConfigError
from trainers.config.grids import load_sweep
from trainers.display import Display
from trainers.files import RunError
from trainers.records import check_record, read_sweep, write_export
from trainers.run.experiment import run_experiment
from trainers.run.folder import RunFolder
from trainers.sweep import runner


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished sweep: its config and its folder; tests do not write to it."""
    path = write(tmp_path_factory.mktemp("finished"))
    outcome = run_here(path)
    assert (outcome.cells, outcome.before, outcome.failures) == (10, 0, [])
    return path, outcome.folder


def test_records_hold_what_tables_are_made_of(finished):
    _, folder = finished
    results = read_sweep(folder)
    assert results.name == "sweep"
    assert list(results.by_id) == [entry["id"] for entry in results.grids[0]["cells"]]
    assert results.origin["versions"]["ltr"]
    for record in results.records:
        assert record["sizes"]["d"] == 2
        assert sum(record["sizes"][half][0] for half in ("train", "test")) == 60
        assert set(record["train"]) == set(record["test"]) == {"dcg", "auc"}
        assert json.loads(files_of(folder)[record["id"]].read_text()) == record
        if record["method"] == "exact":
            assert record["status"] == "optimal"
            assert record["list"]["gap"] == 0
            assert record["list"]["n"] == (30 if record["options"]["top_k"] == "full" else 10)
            # at least as good as every ranker it started from
            assert len(record["list"]["starts"]) == 3
            assert record["list"]["value"] >= max(record["list"]["starts"].values()) - 1e-12
            assert record["recentred"]["norm"] == "l2"
        else:
            assert record["loss"] > 0
            assert len(record["weights"]) == 2


def test_a_finished_sweep_computes_nothing(finished):
    path, folder = finished
    before, index = stamps(folder), (folder / "sweep.json").stat().st_mtime_ns
    with_processes = runner.run_sweep(load_sweep(path, [f"runs_dir={folder.parent}"]), jobs=1)
    assert (with_processes.cells, with_processes.before) == (10, 10)
    assert stamps(folder) == before
    assert (folder / "sweep.json").stat().st_mtime_ns == index


def test_a_missing_file_is_computed_again_to_the_same_record(finished, tmp_path):
    path = write(tmp_path, sweep=SWEEP.replace("splits = 2", "splits = 1"))
    folder = run_here(path).folder
    whole = found_in(folder)
    for name, file in files_of(folder).items():
        if "hinge" in name or "exact" in name:
            # what a process that was killed leaves beside it harms nobody
            file.with_name(f".{file.name}.0123.tmp").write_text('{"id": ')
            file.unlink()
    outcome = run_here(path)
    assert (outcome.cells, outcome.before) == (5, 2)
    assert found_in(folder) == whole
    assert whole.items() <= found_in(finished[1]).items()


def lopsided(folder, rows=40, positive=(3, 17, 25)):
    """A table with few positives: some splits leave a half without any."""
    rng = np.random.default_rng(0)
    lines = [f"{a!r},{b!r},{int(i in positive)}" for i, (a, b) in enumerate(rng.normal(size=(rows, 2)).tolist())]
    (folder / "table.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")


def test_cells_that_fail_are_named_and_do_not_stop_the_others(tmp_path, capsys, monkeypatch):
    path = write(tmp_path, sweep='[[grid]]\nexperiments = ["small.toml"]\nsplits = 9\nmethods = ["hinge", "exact"]\n')
    lopsided(tmp_path)
    outcome = run_here(path)
    folder = outcome.folder
    bad = {failure.split("/")[1] for failure in outcome.failures}
    assert 0 < len(bad) < 9
    assert len(outcome.failures) == 4 * len(bad)
    assert len(files_of(folder)) == 4 * (9 - len(bad))
    for failure in outcome.failures:
        if "/exact-" in failure:
            assert "starts from small/" in failure
            assert failure.endswith("which has no result")
        else:
            assert "set holds only label 0 (20 of 40 rows, 3 positive in all)" in failure
    monkeypatch.setattr("trainers.sweep.runner.run_sweep", lambda *_, **__: outcome)
    assert main(["sweep", str(path)]) == 2
    assert capsys.readouterr().err.count("ltr: error: small/") == len(outcome.failures)


@pytest.mark.parametrize("damage", ["", '{"id": "small/0/hi', "3", "{}", '{"id": "small/0/hinge", "train": {}}'])
def test_a_cell_with_a_damaged_file_is_not_finished(tmp_path, damage):
    path = write(tmp_path, sweep=f'{ONE_SPLIT}methods = ["hinge", "ranknet"]\n')
    folder = run_here(path).folder
    whole, before = found_in(folder), stamps(folder)
    (name,) = (name for name in before if "hinge" in name)
    file = files_of(folder)[name]
    file.write_text(damage)
    outcome = run_here(path)
    assert (outcome.cells, outcome.before) == (2, 1)
    (failure,) = outcome.failures
    assert failure.startswith(f"{name}: {file}: cannot be read or is damaged")
    assert file.read_text() == damage  # it is the user's to remove
    file.unlink()
    assert run_here(path).failures == []
    assert found_in(folder) == whole
    del before[name]
    assert before.items() <= stamps(folder).items()


def test_missing_data_are_named_all_at_once_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.delenv("LTR_DATA", raising=False)
    path = write(
        tmp_path,
        sweep='[[grid]]\nexperiments = ["small.toml", "pima.toml", "own.toml", "uis.toml"]\n',
        pima='[data]\nname = "pima"\n',
        uis='[data]\nname = "uis"\n',
        own='[data]\npath = "nowhere.csv"\nlabel = "y"\n',
    )
    with pytest.raises(DataError) as error:
        run_here(path)
    lines = str(error.value).splitlines()
    assert lines[0] == "3 data sets cannot be used"
    assert [line.split(":")[0] for line in lines[1:]] == ["  pima", "  own", "  uis"]
    assert "LTR_DATA" in lines[1]
    assert not (tmp_path / "runs").exists()


def test_data_that_change_under_a_sweep_stop_it(tmp_path, monkeypatch):
    path = write(tmp_path, sweep=ONE_SPLIT)
    genuine = runner.examine

    def then_changed(*given):
        found = genuine(*given)
        (tmp_path / "table.csv").write_text(table(seed=1))
        return found

    monkeypatch.setattr(runner, "examine", then_changed)
    with pytest.raises(RunError, match=r"small: the data on .* are not those that the sweep began with"):
        run_here(path)
    assert files_of(tmp_path / "runs" / "sweep") == {}


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    path = write(tmp_path)
    other = tmp_path / "runs" / "sweep"
    other.mkdir(parents=True)
    (other / ".lock").touch()
    (other / "config.toml").write_text("")
    with pytest.raises(
        RunError, match=r"name: .* holds other files than a sweep's; remove it yourself, or choose another"
    ):
        run_here(path)
    assert sorted(p.name for p in other.iterdir() if not p.name.startswith(".")) == ["config.toml"]


def test_two_processes_do_not_compute_one_sweep(finished):
    path, folder = finished
    with runner.locked(folder, ".lock-1-of-1"):
        with pytest.raises(RunError, match="another process is writing"):
            run_here(path, f"runs_dir={folder.parent}")
        assert run_here(path, f"runs_dir={folder.parent}", shard=(1, 2)).before > 0


class Notes(Display):
    def __init__(self):
        super().__init__()
        self.notes, self.done = [], []

    def note(self, text):
        self.notes.append(text)

    def finished(self, cell, answer):
        self.done.append(cell.id)


def test_results_are_taken_over_and_the_rest_is_computed(finished, tmp_path):
    results = read_sweep(finished[1])
    without = [record for record in results.records if record["method"] != "exact"]
    begun_with = {**results.origin, "machine": "another"}
    write_export(tmp_path / "cells.jsonl", type(results)(results.name, results.grids, begun_with, without))
    path, notes = write(tmp_path), Notes()
    outcome = run_here(path, known=tmp_path / "cells.jsonl", display=notes)
    assert (outcome.cells, outcome.before) == (10, 6)
    assert read_sweep(outcome.folder).origin == begun_with
    assert notes.notes == [f"6 results taken over from {tmp_path / 'cells.jsonl'}"]
    assert all("/exact-" in name for name in notes.done)
    assert found_in(outcome.folder) == found_in(finished[1])
    # from a folder, and of another sweep that shares some of the cells
    path = write(tmp_path, sweep=SWEEP.replace("splits = 2", "splits = [1, 2]"))
    outcome = run_here(path, "name=other", "runs_dir=" + str(tmp_path / "more"), known=finished[1], display=notes)
    assert (outcome.cells, outcome.before) == (10, 5)
    assert len(notes.done) == 4 + 5


def test_a_sweep_on_data_by_query(tmp_path):
    path = write(
        tmp_path,
        lists="""
        [data]
        name = "grouped"
        [surrogate]
        losses = ["ranknet"]
        max_steps = 5
        [baselines]
        methods = ["logistic_regression"]
        [exact]
        top_k = 3
        statistic = "dcg@3"
        method = "local_search"
        time_limit = 0.3
        [statistics]
        report = ["mrr"]
        """,
        sweep='[[grid]]\nexperiments = ["lists.toml"]\nsplits = 1\n[grid.vary]\nstatistics.gain = ["exp2", "linear"]\n',
    )
    outcome = run_here(path)
    assert outcome.failures == []
    records = read_sweep(outcome.folder).records
    names = [tuple(record["test"]) for record in records]
    assert sorted(names) == [("ndcg(gain=linear)@3", "nmrr(gain=linear)")] * 3 + [("ndcg@3", "nmrr")] * 3
    for record in records:
        assert all(0 < value <= 1 for value in record["test"].values())
    with pytest.raises(ConfigError, match=r"sweep\.toml: lists: baselines\.methods: must not name rankboost"):
        run_here(path, 'baselines.methods=["logistic_regression", "rankboost"]')


def test_a_top_of_one_class_has_nothing_to_order(tmp_path):
    path = write(tmp_path, sweep=f'{ONE_SPLIT}recentre = "l2"\n')
    (tmp_path / "table.csv").write_text(table(noise=0.0))
    outcome = run_here(path, "exact.top_k=3")
    assert outcome.failures == []
    exact = read_sweep(outcome.folder).records[-1]
    assert exact["status"] == "base order"
    assert exact["list"] is None
    assert exact["recentred"]["train"] == exact["train"]


METHODS = ("ranknet", "hinge", "logistic_regression", "rankboost", "exact")


def test_a_run_and_a_sweep_of_one_split_have_the_same_records(tmp_path):
    experiment = EXPERIMENT.replace('["logistic_regression"]', '["logistic_regression", "rankboost"]')
    path = write(tmp_path, small=experiment, sweep='[[grid]]\nexperiments = ["small.toml"]\nsplits = [0]\n')
    of_sweep = {record["method"]: record for record in found_in(run_here(path).folder).values()}
    assert run_experiment(load_config(tmp_path / "small.toml", [f"runs_dir={tmp_path / 'runs'}"])).complete
    run = RunFolder(tmp_path / "runs" / "small")
    for method in METHODS:
        of_run = run.method(method).result()
        check_record(of_run)
        for key in of_run.keys() - {"seconds", "files", "message"}:  # clocks and files
            assert of_run[key] == of_sweep[method][key], (method, key)


def test_a_sweep_tells_its_progress(tmp_path):
    text = io.StringIO()
    sweep = f'{ONE_SPLIT}methods = ["hinge"]\n'
    run_here(write(tmp_path, sweep=sweep), display=Display(Console(file=text, width=120)))
    lines = text.getvalue().splitlines()
    assert lines[0] == "1 result; 1 to compute, 1 at a time, 1 thread each"
    assert lines[-1].startswith("sweep: 1/1: small, split 0, hinge: converged, ")
