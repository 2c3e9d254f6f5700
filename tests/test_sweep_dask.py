"""Sweeps by the workers of a Dask scheduler: the same records, and what ends badly is named."""

import os
import signal

import pytest

from tests.sweeping import ONE_SPLIT, SWEEP, files_of, found_in, run_here, write
from trainers.files import RunError
from trainers.sweep import workers as module
from trainers.sweep.runner import run_sweep
from trainers.sweep.workers import Workers

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    """Two workers, processes of one thread each; a task that kills its worker is not tried again."""
    import dask

    quiet = {"distributed.scheduler.allowed-failures": 0, "distributed.logging.distributed": "critical"}
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with dask.config.set(quiet), distributed.LocalCluster(**options, silence_logs=50) as cluster:
        yield cluster


def dask_sweep(path, cluster, *overrides):
    options = [f"runs_dir={path.parent / 'dask'}", *overrides]
    return run_sweep(path, options, workers=Workers(dask=cluster.scheduler_address))


@pytest.mark.slow
def test_dask_workers_find_what_processes_find(tmp_path, cluster):
    path = write(tmp_path)
    here, there = run_here(path), dask_sweep(path, cluster)
    assert (there.cells, there.before, there.failures) == (10, 0, [])
    assert found_in(there.folder) == found_in(here.folder)
    again = dask_sweep(path, cluster)
    assert (again.cells, again.before) == (10, 10)


ONE = f'{ONE_SPLIT}methods = ["hinge", "ranknet"]\n'


@pytest.mark.slow
def test_a_cell_that_kills_its_worker_is_named_and_the_others_go_on(tmp_path, cluster, monkeypatch):
    genuine = module.answer

    def deadly(folder, cell, threads):
        if cell.method == "hinge":
            os.kill(os.getpid(), signal.SIGKILL)
        return genuine(folder, cell, threads)

    monkeypatch.setattr(module, "answer", deadly)
    outcome = dask_sweep(write(tmp_path, sweep=ONE), cluster)
    killed = [failure for failure in outcome.failures if "/hinge-" in failure]
    assert len(killed) == 1
    assert killed[0].endswith("the workers that tried it were killed; memory may have run out")
    monkeypatch.undo()
    outcome = dask_sweep(tmp_path / "sweep.toml", cluster)
    assert outcome.failures == []
    assert len(files_of(outcome.folder)) == 2


def test_what_concerns_all_cells_stops_the_sweep(tmp_path, cluster, monkeypatch):
    genuine = module.answer

    def elsewhere(folder, cell, threads):
        return genuine(folder / "elsewhere", cell, threads)

    def strange(folder, cell, threads):
        raise ModuleNotFoundError("No module named 'trainers'")

    path = write(tmp_path, sweep=ONE)
    monkeypatch.setattr(module, "answer", elsewhere)
    with pytest.raises(RunError, match=r"elsewhere: there is no sweep on .*; workers need the folder of the sweep"):
        dask_sweep(path, cluster)
    monkeypatch.setattr(module, "answer", strange)
    with pytest.raises(RunError, match=r"--dask: a worker could not begin small/0/.* .ModuleNotFoundError: No module"):
        dask_sweep(path, cluster)
    assert files_of(tmp_path / "dask" / "sweep") == {}


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere", "http://127.0.0.1:9"])
def test_a_scheduler_that_does_not_answer(tmp_path, monkeypatch, address):
    monkeypatch.setattr(module, "_ANSWER", 0.5)
    with pytest.raises(RunError, match=f"--dask: no scheduler answers at {address}"):
        run_sweep(write(tmp_path, sweep=SWEEP), [f"runs_dir={tmp_path}"], workers=Workers(dask=address))
