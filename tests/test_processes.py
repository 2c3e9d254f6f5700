"""Fits and runs by several processes: what they compute does not depend on how many they are, to the last bit."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import processes
from trainers.cli import main
from trainers.run.tracking import read_log

ROOT = Path(__file__).parents[1]


def torchrun(count, *arguments, **environment):
    """Start runs by tests/processes.py."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [*command, str(ROOT / "tests" / "processes.py"), *map(str, arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(process, seconds=100):
    output, _ = process.communicate(timeout=seconds)
    return process.returncode, output


def fit_in_processes(count, folder):
    context = multiprocessing.get_context("forkserver")  # torch is imported once, not by each process
    context.set_forkserver_preload(["tests.processes", "torch._dynamo"])  # which optimizers import
    running = [context.Process(target=processes.fits, args=(rank, count, folder)) for rank in range(count)]
    for process in running:
        process.start()
    for process in running:
        process.join(timeout=100)
    assert [process.exitcode for process in running] == [0] * count


def same(one, other):
    return (
        torch.equal(one["weights"], other["weights"])
        and torch.equal(one["best"], other["best"])
        and one["steps"] == other["steps"]
        and one["stopped"] == other["stopped"]
    )


@pytest.fixture(scope="module")
def alone():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield processes.whole()
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of two processes, and the states that they left half way."""
    path = tmp_path_factory.mktemp("processes")
    fit_in_processes(2, path)
    return path


@pytest.fixture(scope="module")
def folder_of_four(folder):
    """The same folder with the results of four processes, from the start and from the states."""
    fit_in_processes(4, folder)
    return folder


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_make_the_same_fit_as_one_bit_for_bit(alone, request, count):
    folder = request.getfixturevalue("folder" if count == 2 else "folder_of_four")
    for rank in range(count):
        results = torch.load(folder / f"whole-{count}-{rank}.pt")
        assert {name: same(results[name], alone[name]) for name in processes.CASES} == dict.fromkeys(
            processes.CASES, True
        )


def assert_ends_alike(results, alone):
    for name in processes.CASES:
        assert torch.equal(results[name]["weights"], alone[name]["weights"]), name
        assert results[name]["steps"] == alone[name]["steps"][processes.HALF :], name


def test_a_fit_of_two_processes_goes_on_in_one(alone, folder):
    assert_ends_alike(processes.rest(torch.load(folder / "half.pt")), alone)


@pytest.mark.slow
def test_a_fit_of_two_processes_goes_on_in_four(alone, folder_of_four):
    for rank in range(4):
        assert_ends_alike(torch.load(folder_of_four / f"rest-4-{rank}.pt"), alone)


def test_a_shard_a_process_is_refused(folder):
    for rank in range(2):
        message = (folder / f"refused-{rank}.txt").read_text()
        assert message.startswith("X, y and qid must be the same in every process")


@pytest.mark.parametrize(
    ("bounded", "plain"), [("ranknet", "ranknet, on the device"), ("batches of items", "batches, on the device")]
)
def test_rows_that_stay_off_the_device_change_nothing(alone, bounded, plain):
    assert same(alone[bounded], alone[plain])


@pytest.mark.parametrize("name", [name for name, case in processes.CASES.items() if case[1] != "dropout"])
def test_the_size_of_chunks_changes_the_last_bits_at_most(alone, name):
    steps = list(processes.new_fit(name, chunk_rows=11))
    tolerance = 1e-4 if "float32" in name else 1e-10
    assert [s.objective for s in steps] == pytest.approx([s[1] for s in alone[name]["steps"]], rel=tolerance)


# runs


def arguments(folder, name, **changes):
    options = {
        "name": name,
        "runs_dir": folder,
        "surrogate.losses": "ranknet,hinge",
        "surrogate.chunk_rows": 64,
        "surrogate.tolerance": 1e-13,
        "baselines.methods": "[]",
        "exact.base": "ranknet",
        "exact.time_limit": 5,
        "tracking.loggers": "[]",
        "tracking.figures": "false",
    } | changes
    return [str(ROOT / "configs" / "gaussians.toml"), "--quiet", *(f"{key}={value}" for key, value in options.items())]


def row(folder, method):
    return json.loads((folder / method / "result.json").read_text())


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """The folder of a run whose helper broke, and what that run printed."""
    path = tmp_path_factory.mktemp("broken")
    code, output = finished(torchrun(2, *arguments(path, "broken"), CRASH="1"))
    assert code != 0
    return path, output


@pytest.mark.slow
def test_a_run_whose_helper_breaks_keeps_its_steps(broken):
    path, output = broken
    assert "RuntimeError: no memory left" in output
    assert "ltr: error: surrogate: training on ranknet ended after step" in output
    assert (path / "broken" / "ranknet" / "checkpoint.pt").exists()


@pytest.mark.slow
def test_a_run_whose_helper_broke_goes_on(broken, capsys):
    path, _ = broken
    code, output = finished(torchrun(2, *arguments(path, "broken")))
    assert code == 0, output
    assert output.count("run broken") == 1  # the table, once

    assert main(["run", *arguments(path, "whole")]) == 0
    assert "run whole" in capsys.readouterr().out
    for method in ("ranknet", "hinge", "exact"):
        one, other = (row(path / name, method) for name in ("broken", "whole"))
        assert one["weights"] == other["weights"]
        assert one["status"] == other["status"]
        steps = [
            [(r["step"], r["values"]) for r in read_log(path / name / method / "scalars.jsonl")]
            for name in ("broken", "whole")
        ]
        assert method == "exact" or steps[0] == steps[1]


@pytest.mark.slow  # tests/test_experiment.py stops a run of one process
def test_a_stopped_run_of_several_processes_ends_at_once_and_writes_its_results(tmp_path):
    long = {"surrogate.optimizer": "adam", "surrogate.max_steps": 10**6}
    process = torchrun(2, *arguments(tmp_path, "long", **long))
    records = tmp_path / "long" / "ranknet" / "scalars.jsonl"
    until = time.monotonic() + 60
    while time.monotonic() < until and (not records.exists() or len(list(read_log(records))) < 5):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    code, output = finished(process, 20)
    assert code != 0
    assert "ltr: error" not in output
    results = json.loads((tmp_path / "long" / "results.json").read_text())
    assert [r["status"] for r in results["rows"]] == ["interrupted"]
    assert (tmp_path / "long" / "ranknet" / "checkpoint.pt").exists()
    assert np.isfinite(torch.load(tmp_path / "long" / "ranknet" / "checkpoint.pt")["best_objective"])
