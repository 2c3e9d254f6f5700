"""Sweeps in processes of their own, killed and stopped at any time: what is finished is kept, nothing goes on."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar, Self

import pytest

from tests.paths import ROOT
from tests.trainers.sweeping import EXPERIMENT, files_of, found_in, run_here, stamps, table, write
from trainers.cli import main
from trainers.config.grids import load_sweep
from trainers.sweep.runner import run_sweep

LONG = 900  # seconds of a cell that nothing but a signal ends

SHORT = '[[grid]]\nexperiments = ["small.toml"]\nsplits = 3\n'
# a list that is not proven in any time
HARD = '[[grid]]\nname = "hard"\nexperiments = ["hard.toml"]\nsplits = 1\nmethods = ["exact"]\n'


def hard(folder):
    """The small experiment on a table of many features."""
    (folder / "wide.csv").write_text(table(rows=400, features=12, noise=6.0))
    text = EXPERIMENT.replace("table.csv", "wide.csv").replace("top_k = 12", 'top_k = "full"')
    return text.replace("time_limit = 60", f"time_limit = {LONG}").replace('["ranknet", "hinge"]', "[]")


class Started:
    """``ltr sweep`` as a terminal starts it, the first of a process group."""

    unfinished: ClassVar[list[Self]] = []

    def __init__(self, path, *options):
        command = [sys.executable, "-m", "trainers", "sweep", str(path), f"runs_dir={path.parent / 'runs'}", *options]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.folder = path.parent / "runs" / "sweep"
        self.unfinished.append(self)

    def worker(self):
        """The process that computes; None while there is none."""
        return next((number for number, command in self.processes() if "LokyProcess" in command), None)

    def processes(self):
        """Numbers and command lines of the processes of the group; those that ended and wait for their parent apart."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes().decode()
                state, _, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            except (OSError, ValueError):  # it ended meanwhile
                continue
            if int(group) == self.process.pid and state != "Z":
                yield int(folder.name), command

    def end(self, seconds=200):
        """Exit code and what was said on stderr, once all processes of the group are gone."""
        _, said = self.process.communicate(timeout=seconds)
        wait_until(lambda: not any(self.processes()))
        self.unfinished.remove(self)
        return self.process.returncode, said


def wait_until(condition, seconds=200):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def no_process_is_left():
    """A test that fails before the end of its sweep leaves no process that computes for a long time."""
    yield
    for sweep in Started.unfinished:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(sweep.process.pid, signal.SIGKILL)
        sweep.process.communicate()
    Started.unfinished.clear()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What the short sweep finds when nothing happens to it."""
    folder = run_here(write(tmp_path_factory.mktemp("reference"), sweep=SHORT)).folder
    return found_in(folder)


@pytest.mark.slow  # the worker of the next test finds the same, too
def test_the_number_of_processes_changes_nothing(tmp_path, reference):
    outcome = run_sweep(load_sweep(write(tmp_path, sweep=SHORT), [f"runs_dir={tmp_path}"]), jobs=2)
    assert (outcome.cells, outcome.before, outcome.failures) == (12, 0, [])
    assert found_in(outcome.folder) == reference


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_kills_and_signals_at_any_time_lose_nothing_that_is_finished(tmp_path, reference):
    path = write(tmp_path, sweep=SHORT + HARD, hard=hard(tmp_path))

    # kill -9 of the first process, as soon as there is something to lose: its worker ends as well
    sweep = Started(path, "--jobs=1")
    wait_until(lambda: files_of(sweep.folder))
    sweep.process.kill()
    assert sweep.end()[0] == -signal.SIGKILL
    kept = stamps(sweep.folder)

    # kill -9 of the worker
    sweep = Started(path, "--jobs=1")
    wait_until(lambda: len(files_of(sweep.folder)) > len(kept))
    os.kill(sweep.worker(), signal.SIGKILL)
    code, said = sweep.end()
    assert code == 2
    assert said.splitlines()[-1].startswith("ltr: error: a worker process was killed; what is finished is kept"), said
    assert "Traceback" not in said
    kept = kept_and_more(sweep.folder, kept)

    # Ctrl-C, which a terminal sends to all processes, while the worker starts; and many times more
    sweep = Started(path, "--jobs=1", "--quiet")
    wait_until(sweep.worker)
    with contextlib.suppress(ProcessLookupError):
        for _ in range(100):
            os.killpg(sweep.process.pid, signal.SIGINT)
            time.sleep(0.01)
    check_stopped(sweep, quiet=True)

    # SIGTERM, which a scheduler of jobs sends to all processes, while the hard list is searched
    sweep = Started(path, "--jobs=1")
    wait_until(lambda: len(files_of(sweep.folder)) == 13)
    os.killpg(sweep.process.pid, signal.SIGTERM)
    check_stopped(sweep)
    kept = kept_and_more(sweep.folder, kept)
    assert len(kept) == 13

    # without the hard list nothing is left to compute, and all is found that an undisturbed sweep finds
    path.write_text(SHORT)
    assert main(["sweep", str(path), f"runs_dir={path.parent / 'runs'}", "-q"]) == 0
    assert stamps(sweep.folder) == kept
    found = found_in(sweep.folder)
    assert {name: record for name, record in found.items() if not name.startswith("hard/")} == reference


def kept_and_more(folder, before):
    after = stamps(folder)
    assert {name: after.get(name) for name in before} == before
    return after


def check_stopped(sweep, quiet=False):
    code, said = sweep.end(LONG / 2)
    assert code == 130
    lines = said.splitlines()
    assert lines[-1].startswith("ltr: interrupted; what is finished is kept in "), said
    assert lines[-1].endswith(": the same command goes on"), said
    assert "Traceback" not in said
    assert not quiet or len(lines) == 1


THREADS = """
import json
import torch
from threadpoolctl import threadpool_info
from ltr.exact import arcs
from trainers.config import parse_config
from trainers.task.data import read_source
from trainers.sweep import workers
from trainers.plan import cell_of

torch.set_num_threads(3)
tree = {"name": "g", "data": {"name": "gaussians"}, "surrogate": {"losses": ["ranknet"]}}
tree |= {"exact": {"choose": False, "top_k": "full"}}
config = parse_config(tree)
sha256 = read_source(config.data).sha256
genuine, libraries, pools = workers.Task.statistics, set(), set()

def statistics(self, scores, *ties):
    libraries.update([torch.get_num_threads(), *(library["num_threads"] for library in threadpool_info())])
    return genuine(self, scores, *ties)

search = arcs.search_arcs

def counted(state, threads):
    pools.add(threads)
    return search(state, threads)

workers.Task.statistics, arcs.search_arcs = statistics, counted
for threads in (1, 2):
    libraries.clear()
    pools.clear()
    starts = {}
    for method in ("logistic_regression", "ranknet"):
        cell = cell_of(config, 0, method, sha256)
        starts[cell.id] = workers.compute(cell, {}, threads)
    workers.compute(cell_of(config, 0, "exact", sha256, starts), starts, threads)
    print(json.dumps([threads, *map(sorted, (libraries, pools))]))
"""


@pytest.mark.slow
def test_a_cell_takes_the_threads_it_is_given():
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == [[1, [1], [1]], [2, [2], [2]]]
