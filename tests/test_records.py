"""One record for runs and sweeps: a run is a sweep of one split; what version 0.1 wrote is read."""

import json
import shutil

import pytest

from tests.sweeping import EXPERIMENT, found_in, run_here, table, write
from trainers.board.build import build_board
from trainers.cli import main
from trainers.config import load_config
from trainers.records import check_record
from trainers.run.experiment import run_experiment
from trainers.run.folder import RunFolder
from trainers.run.results import read_results, read_run

METHODS = ("ranknet", "hinge", "logistic_regression", "rankboost", "exact")
ROW = ("method", "status", "seconds", "train", "test", "loss", "excess", "steps", "weights", "message")
"""Keys of a row in version 0.1 that records have too."""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A run and a sweep of the same experiment and split."""
    folder = tmp_path_factory.mktemp("records")
    experiment = EXPERIMENT.replace('["logistic_regression"]', '["logistic_regression", "rankboost"]')
    path = write(folder, small=experiment, sweep='[[grid]]\nexperiments = ["small.toml"]\nsplits = [0]\n')
    run_here(path)
    assert run_experiment(load_config(folder / "small.toml", [f"runs_dir={folder / 'runs'}"])).complete
    return folder


def compared(record):
    """A record without clocks, files, and the choice of a method, which a sweep makes when it plans."""
    ignored = ("seconds", "trace", "files", "message")
    return json.loads(json.dumps({key: value for key, value in record.items() if key not in ignored}))


def test_a_run_and_a_sweep_of_one_split_have_the_same_records(workplace):
    of_run = {record["id"]: record for record in read_run(RunFolder(workplace / "runs" / "small")).records}
    of_sweep = found_in(workplace / "runs" / "sweep")
    assert [record["method"] for record in of_run.values()] == list(METHODS)
    for record in of_run.values():
        check_record(record)
    assert {name: compared(record) for name, record in of_run.items()} == {
        name: compared(record) for name, record in of_sweep.items()
    }


def test_a_sweep_takes_the_index_of_a_run_as_its_own(workplace):
    index = json.loads((workplace / "runs" / "sweep" / "sweep.json").read_text())
    assert read_run(RunFolder(workplace / "runs" / "small")).grids == index["grids"]


@pytest.fixture
def of_version_0_1(workplace, tmp_path):
    """The run as version 0.1 left it: rows of the table where records are now."""
    folder = tmp_path / "runs" / "small"
    shutil.copytree(workplace / "runs" / "small", folder)
    rows = {row["method"]: row for row in json.loads((folder / "results.json").read_text())["rows"]}
    for method in METHODS:
        path = folder / method / "result.json"
        files = json.loads(path.read_text())["files"]
        path.write_text(json.dumps({**rows[method], "top": None, "files": files}))
        assert set(ROW) < rows[method].keys()
    return folder


def test_runs_of_version_0_1_go_on(workplace, of_version_0_1):
    before = read_results(RunFolder(workplace / "runs" / "small"))
    shutil.rmtree(of_version_0_1 / "exact")
    config = load_config(of_version_0_1 / "config.toml", [f"runs_dir={of_version_0_1.parent}"])
    after = run_experiment(config)
    assert after.rows[:-1] == before.rows[:-1]
    assert (after.rows[-1].objective, after.rows[-1].bound) == (before.rows[-1].objective, before.rows[-1].bound)


def test_records_of_version_0_1_are_whole(workplace, of_version_0_1):
    before, after = (read_run(RunFolder(path)).records for path in (workplace / "runs" / "small", of_version_0_1))
    for old, new in zip(after, before, strict=True):
        check_record(old)
        assert new.keys() - old.keys() <= {"message", "files", "first_k"}
        if "list" in new:
            assert old["list"] == {**new["list"], "starts": {}}
            assert len(old["trace"]) == len(new["trace"])
        else:
            assert compared(old) == compared(new)


def test_runs_of_version_0_1_are_shown_ranked_with_and_compared(workplace, of_version_0_1, capsys):
    assert main(["show", str(of_version_0_1)]) == 0
    assert main(["predict", str(of_version_0_1), str(workplace / "table.csv")]) == 0
    assert "exact" in capsys.readouterr().out
    boards = []
    for path in (workplace / "runs" / "small", of_version_0_1):
        (comparison,) = build_board([str(path)], folder=of_version_0_1.parent / "board").comparisons
        boards.append([(line.name, line.means, line.unproven, line.ranked) for line in comparison.lines])
    assert str(boards[0]) == str(boards[1])


@pytest.mark.parametrize("change", [lambda path: path.unlink(), lambda path: path.write_text(table(seed=1))])
def test_boards_of_version_0_1_need_the_data_for_curves_of_labels(workplace, of_version_0_1, change):
    path, said = workplace / "table.csv", []
    kept = path.read_text()
    try:
        change(path)
        (comparison,) = build_board(
            [str(of_version_0_1)], folder=of_version_0_1.parent / "b", note=said.append
        ).comparisons
    finally:
        path.write_text(kept)
    assert len(said) == 1
    assert "no precision, recall and ROC curves, for its data" in said[0]
    assert not any(line.ranked for line in comparison.lines)
    assert all(line.final for line in comparison.lines)
