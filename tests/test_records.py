"""One record for runs and sweeps: a run is a sweep of one split."""

import json

import pytest

from tests.sweeping import EXPERIMENT, found_in, run_here, write
from trainers.config import load_config
from trainers.records import check_record
from trainers.run.experiment import run_experiment
from trainers.run.folder import RunFolder
from trainers.run.results import read_run

METHODS = ("ranknet", "hinge", "logistic_regression", "rankboost", "exact")


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
