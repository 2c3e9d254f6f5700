"""Small sweeps for the tests: their files, what they found, and a pool that computes in this process."""

import contextlib
import json
from pathlib import Path
from unittest import mock

import numpy as np

from trainers.config.grids import load_sweep
from trainers.records import CELLS
from trainers.sweep import runner, workers

EXPERIMENT = """
[data]
path = "table.csv"
label = "y"
[surrogate]
losses = ["ranknet", "hinge"]
[baselines]
methods = ["logistic_regression"]
[exact]
top_k = 12
choose = false
time_limit = 60
[statistics]
report = ["auc"]
"""

SWEEP = """
[[grid]]
experiments = ["small.toml"]
splits = 2
recentre = "l2"
[grid.vary]
exact.top_k = [10, "full"]
"""

ONE_SPLIT = '[[grid]]\nexperiments = ["small.toml"]\nsplits = 1\n'


def table(rows=60, features=2, seed=0, noise=1.0):
    """A table of features and a label that follows them; with two features lists of it are proven at once."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    y = (X.sum(axis=1) + noise * rng.normal(size=rows) > 0.3).astype(int)
    lines = [",".join([*map(repr, row), str(label)]) for row, label in zip(X.tolist(), y, strict=True)]
    return "\n".join([",".join([*(f"x{j}" for j in range(features)), "y"]), *lines]) + "\n"


def write(folder, **files):
    """Write files, ``small="..."`` for small.toml; the small sweep where none are given. The path of sweep.toml."""
    (folder / "table.csv").write_text(table())
    for name, text in ({"small": EXPERIMENT, "sweep": SWEEP} | files).items():
        (folder / f"{name}.toml").write_text(text)
    return folder / "sweep.toml"


def _answers(folder, cells):
    for cell in cells:
        yield cell, workers.answer(folder, cell, 1)


def no_processes():
    """A context in which sweeps start no processes of their own."""
    return mock.patch.object(workers, "open_pool", return_value=contextlib.nullcontext(_answers))


def run_here(path, *overrides, **options):
    """`run_sweep` without processes of its own, one result at a time."""
    with no_processes():
        sweep = load_sweep(path, [f"runs_dir={path.parent / 'runs'}", *overrides])
        return runner.run_sweep(sweep, jobs=1, **options)


def files_of(folder):
    """The files of a sweep's cells, by id."""
    cells = Path(folder) / CELLS
    return {str(path.relative_to(cells).with_suffix("")): path for path in sorted(cells.rglob("[!.]*.json"))}


def found_in(folder):
    """The records in a sweep's folder, by id, without what clocks say."""
    found = {name: json.loads(path.read_text()) for name, path in files_of(folder).items()}
    for record in found.values():
        record["seconds"] = None
        if "recentred" in record:
            record["recentred"]["seconds"] = None
    return found


def stamps(folder):
    """When each cell's file was written."""
    return {name: path.stat().st_mtime_ns for name, path in files_of(folder).items()}
