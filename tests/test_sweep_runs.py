"""Sweeps from start to end: every cell once, what fails is named, results are shared."""

import json
import os

import numpy as np
import pytest

from ltr.data import DataError
from tests.sweep_results import small
from tests.sweeping import EXPERIMENT, ONE_SPLIT, SWEEP, files_of, found_in, run_here, stamps, table, write
from trainers.cli import main
from trainers.config import load_config
from trainers.config.errors import ConfigError
from trainers.display import Display
from trainers.files import RunError
from trainers.plan import plan
from trainers.records import pack_labels, read_cell, read_sweep, unpack_labels, write_export
from trainers.run.experiment import run_experiment
from trainers.sweep import runner
from trainers.sweep.runner import Shard
from trainers.sweep.workers import Workers


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
        assert record["sizes"] == {
            half: [len(labels), int(labels.sum())]
            for half, labels in ((half, unpack_labels(record["ranked"][half])) for half in ("train", "test"))
        } | {"d": 2}
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


def test_records_are_what_a_run_finds(finished, tmp_path):
    path, folder = finished
    config = load_config(
        path.parent / "small.toml",
        [f"runs_dir={tmp_path}", "seed=1", "exact.top_k=10", "tracking.loggers=[]", "tracking.figures=false"],
    )
    rows = {row.method: row for row in run_experiment(config).rows}
    records = [record for record in read_sweep(folder).records if record["split"] == 1]
    for record in records:
        row = rows[record["method"]]
        if record["options"].get("top_k") == "full":
            continue
        assert record["train"] == pytest.approx(row.train, abs=1e-12)
        assert record["test"] == pytest.approx(row.test, abs=1e-12)
        assert record["loss"] == pytest.approx(row.loss)
        if record["method"] == "exact":
            assert (record["list"]["value"], record["list"]["bound"]) == pytest.approx((row.objective, row.bound))


def test_a_finished_sweep_computes_nothing(finished):
    path, folder = finished
    before, index = stamps(folder), (folder / "sweep.json").stat().st_mtime_ns
    with_processes = runner.run_sweep(path, [f"runs_dir={folder.parent}"], workers=Workers(1))
    assert (with_processes.cells, with_processes.before) == (10, 10)
    assert stamps(folder) == before
    assert (folder / "sweep.json").stat().st_mtime_ns == index


def test_a_changed_option_computes_the_cells_concerned(tmp_path):
    path = write(tmp_path, sweep=SWEEP.replace("splits = 2", "splits = 1"))
    folder = run_here(path).folder
    before = stamps(folder)
    outcome = run_here(path, "exact.C=0.01")
    assert (outcome.cells, outcome.before) == (5, 3)
    after = stamps(folder)
    assert {name: after[name] for name in before} == before
    assert {name.split("/")[2].split("-")[0] for name in after.keys() - before.keys()} == {"exact"}
    assert len(read_sweep(folder).records) == 5  # the tables are those of the last start


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
    assert {name: whole[name] for name in whole} == {name: found_in(finished[1])[name] for name in whole}


def test_shards_together_are_the_whole(finished, tmp_path):
    path = write(tmp_path)
    cells = [run_here(path, shard=Shard(number, 3)).cells for number in (1, 2, 3)]
    assert sum(cells) == 10
    assert sorted(cells) == [0, 5, 5]  # a split of a data set stays together
    assert found_in(tmp_path / "runs" / "sweep") == found_in(finished[1])


# what fails


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
    lines = capsys.readouterr().err.splitlines()
    named = [line for line in lines if line.startswith("ltr: error: small/")]
    assert len(named) == min(20, len(outcome.failures))
    if len(outcome.failures) > 20:
        assert lines[-1] == f"ltr: error: {len(outcome.failures)} results are missing, the first 20 are named above"


def test_an_unforeseen_error_is_that_of_its_cell(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by chance")

    path = write(tmp_path, sweep=f'{ONE_SPLIT}methods = ["hinge", "ranknet"]\n')
    monkeypatch.setattr("trainers.methods.first_stage_ranker", broken)
    outcome = run_here(path)
    assert [failure.split(": ")[1:] for failure in outcome.failures] == [["ZeroDivisionError", "by chance"]] * 2
    monkeypatch.undo()
    assert run_here(path).failures == []


def test_a_damaged_file_is_named_with_what_to_do(tmp_path, capsys):
    path = write(tmp_path, sweep=ONE_SPLIT)
    folder = run_here(path).folder
    files = files_of(folder)
    (hinge,), (exact,) = ([file for name, file in files.items() if method in name] for method in ("hinge", "exact"))
    name = next(name for name in files if "hinge" in name)
    whole = found_in(folder)
    hinge.write_text("{")
    exact.unlink()
    of_hinge, of_exact = run_here(path).failures  # which starts from it
    assert of_hinge.startswith(f"{name}: {hinge}: ")
    assert of_exact.startswith("small/0/exact-")
    for failure in (of_hinge, of_exact):
        assert f"{hinge}: cannot be read or is damaged" in failure
        assert "remove it: the same `ltr sweep` then computes this result again" in failure
    with pytest.raises(RunError, match="remove it: the same `ltr sweep`"):
        read_sweep(folder)
    hinge.unlink()
    assert run_here(path).failures == []
    assert found_in(folder) == whole
    # the record of another cell is damage, too
    hinge.write_text(files[next(name for name in files if "ranknet" in name)].read_text())
    with pytest.raises(RunError, match="cannot be read or is damaged"):
        read_cell(folder, name)
    hinge.write_text(json.dumps({"id": name}))
    with pytest.raises(RunError, match="cannot be read or is damaged"):
        read_cell(folder, name)
    (folder / "sweep.json").write_text("[]")
    with pytest.raises(RunError, match=r"sweep.json: cannot be read or is damaged .*; remove it: the same `ltr sweep`"):
        run_here(path)
    (folder / "sweep.json").unlink()
    (folder / "report").mkdir()
    hinge.unlink()
    assert run_here(path).failures == []
    assert read_sweep(folder).name == "sweep"


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


def test_data_that_change_between_two_starts_are_read_anew(tmp_path):
    path = write(tmp_path, sweep=f'{ONE_SPLIT}methods = ["hinge"]\n')
    (before,) = files_of(run_here(path).folder)
    (tmp_path / "table.csv").write_text(table(seed=1))
    outcome = run_here(path)  # in a process that has read the first table
    assert (outcome.cells, outcome.before, outcome.failures) == (1, 0, [])
    assert before in files_of(outcome.folder)
    assert len(files_of(outcome.folder)) == 2


def test_data_that_only_the_workers_lack_stop_it(tmp_path, monkeypatch):
    path = write(tmp_path, sweep=ONE_SPLIT)
    (tmp_path / "table.csv").unlink()
    monkeypatch.setattr("trainers.sweep.checks.read_sources", lambda *_, **__: {})
    monkeypatch.setattr(runner, "examine", lambda grids, *_: (plan(grids, {"small": "0" * 64}), []))
    with pytest.raises(RunError, match=r"small, on .*: .*table.csv: no such file"):
        run_here(path)
    assert files_of(tmp_path / "runs" / "sweep") == {}


# folders


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


def test_a_run_does_not_write_into_a_sweep(finished):
    path, folder = finished
    config = load_config(path.parent / "small.toml", ["name=sweep", f"runs_dir={folder.parent}"])
    with pytest.raises(RunError, match="holds other files than a run's"):
        run_experiment(config)


def test_a_folder_that_cannot_be_made_or_written_to(tmp_path, monkeypatch):
    path = write(tmp_path)
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(RunError, match=r"runs_dir: cannot write .*runs/sweep: "):
        run_here(path)
    (tmp_path / "runs").unlink()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trainers.sweep.runner.write_json", full)
    with pytest.raises(RunError, match=r"runs_dir: cannot write .*: No space left on device; what is finished is kept"):
        run_here(path)
    monkeypatch.undo()
    monkeypatch.setattr("trainers.sweep.compute.write_cell", full)
    with pytest.raises(RunError, match=r"runs_dir: cannot write .*sweep: No space left on device"):
        run_here(path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user whose rights are checked")
def test_a_folder_without_the_right_to_write(tmp_path):
    path = write(tmp_path)
    (tmp_path / "runs" / "sweep").mkdir(parents=True)
    (tmp_path / "runs" / "sweep").chmod(0o500)
    with pytest.raises(RunError, match="runs_dir: cannot write"):
        run_here(path)


def test_two_processes_do_not_compute_one_sweep(finished):
    path, folder = finished
    with runner.locked(folder, ".lock-1-of-1"):
        with pytest.raises(RunError, match="another process is writing"):
            run_here(path, f"runs_dir={folder.parent}")
        assert run_here(path, f"runs_dir={folder.parent}", shard=Shard(1, 2)).before > 0


# results from elsewhere


def test_an_export_reads_back_as_what_was_written(finished, tmp_path):
    results = read_sweep(finished[1])
    write_export(tmp_path / "cells.jsonl", results)
    again = read_sweep(tmp_path / "cells.jsonl")
    assert (again.name, again.grids, again.origin) == (results.name, results.grids, results.origin)
    assert again.records == [
        {key: value for key, value in record.items() if key != "curve"} for record in results.records
    ]
    write_export(tmp_path / "again.jsonl", again)
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "cells.jsonl").read_bytes()


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
    whole, taken = found_in(finished[1]), found_in(outcome.folder)
    for record in (*whole.values(), *taken.values()):
        record.pop("curve", None)
    assert taken == whole
    # from a folder, and of another sweep that shares some of the cells
    path = write(tmp_path, sweep=SWEEP.replace("splits = 2", "splits = [1, 2]"))
    outcome = run_here(path, "name=other", "runs_dir=" + str(tmp_path / "more"), known=finished[1], display=notes)
    assert (outcome.cells, outcome.before) == (10, 5)
    assert len(notes.done) == 4 + 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is missing; a folder of a sweep is needed"),
        ("", "cannot be read or is damaged"),
        ("no JSON\n", "cannot be read or is damaged"),
        ('{"name": "x"}\n', "cannot be read or is damaged"),
        ('{"name": "x", "grids": [], "origin": {}}\n{"step": 1}\n', "cannot be read or is damaged"),
        ('{"name": "x", "grids": [], "origin": {}}\n3\n', "cannot be read or is damaged"),
        ('["name", "grids", "origin"]\n', "cannot be read or is damaged"),
        (
            '{"name": "x", "grids": [], "origin": {}}\n'
            '{"id": "a", "data": "d", "split": 0, "method": "m", '
            '"options": {}, "sizes": {}, "status": "s", "seconds": 1,'
            '"train": {}, "test": {}, "weights": null}\n',
            "cannot be read or is damaged",
        ),
        ('{"name": "x", "grids": 3, "origin": {}}\n', "cannot be read or is damaged"),
        ('{"name": "x", "grids": [{"name": "t"}], "origin": {}}\n', "cannot be read or is damaged"),
    ],
)
def test_a_file_that_is_no_export(tmp_path, capsys, text, message):
    if text is not None:
        (tmp_path / "cells.jsonl").write_text(text)
    arguments = ["sweep", str(write(tmp_path)), f"runs_dir={tmp_path / 'runs'}", "--from"]
    assert main([*arguments, str(tmp_path / "cells.jsonl")]) == 2
    err = capsys.readouterr().err
    assert err.startswith("ltr: error: --from: ")
    assert message in err
    assert main([*arguments, str(tmp_path)]) == 2
    assert "holds no sweep" in capsys.readouterr().err


# data by query, and other methods


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
        assert "ranked" not in record
    with pytest.raises(ConfigError) as error:
        run_here(path, 'baselines.methods=["logistic_regression", "rankboost"]', 'statistics.report="auc"')
    assert str(error.value).startswith(f"{path}: ")
    assert "lists: baselines.methods: must not name rankboost" in str(error.value)
    assert "lists: statistics.report[0]: takes labels 0 and 1 only" in str(error.value)


def test_methods_that_are_not_linear(tmp_path):
    path = write(
        tmp_path,
        small=EXPERIMENT.replace('losses = ["ranknet", "hinge"]', 'losses = ["ranknet"]\nscorer = "mlp"\nmax_steps = 3')
        .replace('["logistic_regression"]', '["rankboost"]\nrankboost.rounds = 60')
        .replace("top_k = 12", 'base = "rankboost"\ntop_k = "full"'),
        sweep=f'{ONE_SPLIT}recentre = "max"\n',
    )
    outcome = run_here(path)
    assert outcome.failures == []
    mlp, boosted, exact = read_sweep(outcome.folder).records
    assert (mlp["weights"], boosted["weights"]) == (None, None)
    assert mlp["status"] == "max_steps"
    assert exact["list"]["starts"] == {}
    assert exact["status"] == "optimal"
    # of 60 rounds about 40 are kept, the last with the training loss
    steps = [point[0] for point in boosted["curve"]]
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1], boosted["curve"][-1][1]) == (1, 60, boosted["loss"])
    assert 20 < len(steps) <= 40


def test_a_list_longer_than_the_data_is_said_to_be(tmp_path):
    grid = '[[grid]]\nexperiments = ["small.toml"]\nsplits = 2\nmethods = ["hinge"]\n'
    path = write(tmp_path, sweep=f'{grid}[grid.vary]\nexact.top_k = [10, 30, 31, 500, "full"]\n')
    notes = Notes()
    assert run_here(path, display=notes).failures == []
    assert notes.notes == []  # nothing is reranked
    path.write_text(path.read_text().replace('"hinge"', '"exact"').replace("splits = 2", "splits = 1"))
    run_here(path, "exact.method=local_search", "exact.time_limit=0.1", display=notes)
    rule = 'small: exact.top_k: should be at most the 30 rows of the training set, or "full", got'
    assert notes.notes == [f"{rule} {top_k}: all of them are reranked" for top_k in (31, 500)]


def test_a_top_of_one_class_has_nothing_to_order(tmp_path):
    path = write(tmp_path, sweep=f'{ONE_SPLIT}recentre = "l2"\n')
    (tmp_path / "table.csv").write_text(table(noise=0.0))
    outcome = run_here(path, "exact.top_k=3")
    assert outcome.failures == []
    exact = read_sweep(outcome.folder).records[-1]
    assert exact["status"] == "base order"
    assert (exact["list"], exact["trace"]) == (None, [])
    assert exact["recentred"]["train"] == exact["train"]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_packed_labels_come_back(count):
    labels = np.random.default_rng(count).integers(0, 2, count)
    assert unpack_labels(pack_labels(labels)).tolist() == labels.tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"ranked": {"train": "0IA=:4000000000000", "test": "0IA=:9"}},
        {"ranked": {"train": "0IA=:-1", "test": "0IA=:9"}},
        {"list": {"n": 4_000_000_000_000, "n_pos": 3, "value": 1.0, "bound": 2.0, "gap": 1.0, "starts": {}}},
        {"list": {"n": 10, "n_pos": 11, "value": 1.0, "bound": 2.0, "gap": 1.0, "starts": {}}},
    ],
)
def test_records_with_impossible_lengths_are_damaged(tmp_path, change):
    write_export(tmp_path / "cells.jsonl", small(splits=1))
    lines = (tmp_path / "cells.jsonl").read_text().splitlines()
    lines[-1] = json.dumps(json.loads(lines[-1]) | change)
    (tmp_path / "cells.jsonl").write_text("\n".join(lines))
    with pytest.raises(RunError, match=r"cells.jsonl: cannot be read or is damaged \(ValueError\)"):
        read_sweep(tmp_path / "cells.jsonl")
