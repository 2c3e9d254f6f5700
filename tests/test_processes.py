"""Fits and runs by several processes: what they compute depends on how many they are by rounding alone."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
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


def assert_alike(one, other, name, begin=0):
    """Assert that two fits differ by rounding alone, one of them perhaps continued from a step."""
    close = {"rtol": 1e-3, "atol": 1e-4} if "float32" in name else {"rtol": 1e-7, "atol": 1e-8}
    assert one["stopped"] == other["stopped"], name
    torch.testing.assert_close(one["weights"], other["weights"], msg=name, **close)
    torch.testing.assert_close(one["best"], other["best"], msg=name, **close)
    np.testing.assert_allclose(one["steps"], other["steps"][begin:], err_msg=name, **close)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def alone():
    return processes.whole()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of two processes, and the states that they left half way."""
    path = tmp_path_factory.mktemp("processes")
    fit_in_processes(2, path)
    return path


@pytest.fixture(scope="module")
def folder_of_three(folder):
    """The same folder with the results of three processes, from the start and from the states."""
    fit_in_processes(3, folder)
    return folder


COUNTS = [2, pytest.param(3, marks=pytest.mark.slow)]


def results_of(request, what, count):
    folder = request.getfixturevalue("folder" if count == 2 else "folder_of_three")
    return [torch.load(folder / f"{what}-{count}-{rank}.pt", weights_only=False) for rank in range(count)]


@pytest.mark.parametrize("count", COUNTS)
def test_processes_make_the_same_fit_as_one(alone, request, count):
    for results in results_of(request, "whole", count):
        for name in processes.CASES:
            assert_alike(results[name], alone[name], name)


@pytest.mark.parametrize("count", COUNTS)
def test_all_processes_end_with_the_same_weights_bit_for_bit(request, count):
    first, *others = results_of(request, "whole", count)
    for other in others:
        assert {name: torch.equal(first[name]["weights"], other[name]["weights"]) for name in first} == dict.fromkeys(
            first, True
        )


@pytest.mark.parametrize("count", COUNTS)
def test_processes_make_the_same_ranker_as_one(request, count):
    alone = processes.rankers()
    for results in results_of(request, "rankers", count):
        for name, (scores, *said) in alone.items():
            found, *told = results[name]
            np.testing.assert_allclose(found, scores, rtol=1e-7, atol=1e-8, err_msg=name)
            assert told[:2] == said[:2], name
            assert told[2:] == pytest.approx(said[2:], rel=1e-9), name


def assert_ends_alike(results, alone):
    for name in processes.CASES:
        assert_alike(results[name], alone[name], name, processes.HALF)


def test_a_fit_of_two_processes_goes_on_in_one(alone, folder):
    assert_ends_alike(processes.rest(torch.load(folder / "half.pt")), alone)


@pytest.mark.slow
def test_a_fit_of_two_processes_goes_on_in_three(alone, request):
    for results in results_of(request, "rest", 3):
        assert_ends_alike(results, alone)


REFUSED = {
    "a list in two processes": "the rows of a list must all be in one process",
    "a query in two processes": "the rows of a list must all be in one process",
    "another column": "X must have the same columns in every process, got [3, 2]",
    "a missing value": "got nan in column 1, row",
    "no labels": "y must hold two different labels in at least one list",
    "no queries in one": "qid must be given in every process or in none, got None in process 1",
    "a negative label": "labels must be >= 0, got -1",
    "attention to one list": "qid is required in several processes",
    "two stages": "TwoStageRanker.fit must run in one process, got a group of 2",
    "a blend": "AutoRanker.fit must run in one process, got a group of 2",
    "constraints": "the number of processes must be 1 with constraints on the weights, got 2",
}


def test_an_error_in_one_process_is_raised_in_all(folder):
    for rank in range(2):
        found = json.loads((folder / f"refused-2-{rank}.json").read_text())
        assert {name: message in found.get(name, "") or found.get(name) for name, message in REFUSED.items()} == (
            dict.fromkeys(REFUSED, True)
        )


@pytest.mark.parametrize(
    ("bounded", "plain"), [("ranknet", "ranknet, on the device"), ("batches of items", "batches, on the device")]
)
def test_rows_that_stay_off_the_device_change_nothing(alone, bounded, plain):
    assert torch.equal(alone[bounded]["weights"], alone[plain]["weights"])
    assert alone[bounded]["steps"] == alone[plain]["steps"]


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
        assert one["weights"] == pytest.approx(other["weights"], rel=1e-6)
        assert one["status"] == other["status"]
        steps = [
            [(r["step"], r["values"]) for r in read_log(path / name / method / "scalars.jsonl")]
            for name in ("broken", "whole")
        ]
        if method != "exact":
            assert [step for step, _ in steps[0]] == [step for step, _ in steps[1]]
            assert [values for _, values in steps[0]] == [pytest.approx(values, rel=1e-6) for _, values in steps[1]]


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


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_a_run_of_a_table_is_that_of_one_process(tmp_path, count):
    """Queries in any order, weights, groups, missing values and texts; the first process alone reads and writes."""
    generator = np.random.default_rng(0)
    qid, kind = generator.integers(0, 30, size=400), generator.integers(0, 3, size=400)
    X = generator.normal(size=(400, 3))
    y = np.clip(np.round(X[:, 0] + kind + generator.normal(size=400)), 0, 3).astype(int)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.array(["x", "y", "z"])[kind], query=qid, label=y)
    frame.loc[generator.random(400) < 0.1, "b"] = np.nan
    frame.assign(weight=1.0 + qid % 2, group=qid // 2).to_csv(tmp_path / "t.csv", index=False)
    config = tmp_path / "t.toml"
    columns = "".join(f'{one} = "{one}"\n' for one in ("label", "query", "weight", "group"))
    config.write_text(
        f'runs_dir = "."\n[data]\npath = "t.csv"\n{columns}[surrogate]\nlosses = ["ranknet", "exponential"]\n'
        "max_steps = 20\n[baselines]\nmethods = []\n[exact]\nenabled = false\n[tracking]\nloggers = []\n"
    )
    code, output = finished(torchrun(count, config, "--quiet", "name=several", f"runs_dir={tmp_path}"))
    assert code == 0, output
    assert output.count("run several") == 1
    assert main(["run", str(config), "--quiet", "name=alone", f"runs_dir={tmp_path}"]) == 0
    for method in ("ranknet", "exponential"):
        one, other = (row(tmp_path / name, method) for name in ("several", "alone"))
        assert one["weights"] == pytest.approx(other["weights"], rel=1e-6)
        assert [one["status"], one["steps"], one["test"]] == [other["status"], other["steps"], other["test"]]
