"""A small table and config with which many tests of runs and commands begin."""

import numpy as np
import pytest

from trainers.cli import main

QUICK = """
[data]
path = "table.csv"
label = "failed"
drop = ["id"]
[surrogate]
losses = ["ranknet"]
max_steps = 5
[baselines]
methods = ["logistic_regression"]
[exact]
choose = false
top_k = 20
method = "local_search"
time_limit = 0.1
[tracking]
figures = false
"""


def table(rows=80, seed=0):
    """A table of machines: id, two features, label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2)) * [1.0, 30.0]
    y = (X @ [1.0, 0.03] + rng.normal(size=rows) > 0.5).astype(int)
    lines = [f"{i:03d},{a!r},{b!r},{label}" for i, ((a, b), label) in enumerate(zip(X.tolist(), y, strict=True))]
    return "\n".join(["id,age,hours,failed", *lines]) + "\n"


def write_quick(folder):
    """Write the table and the config into a folder, and return it."""
    (folder / "table.csv").write_text(table())
    (folder / "quick.toml").write_text(QUICK)
    return folder


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with the table and the config, and the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LTR_DATA", raising=False)
    return write_quick(tmp_path)


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    """The folder of a finished run of the config, two below that of the table; tests do not write to it."""
    folder = write_quick(tmp_path_factory.mktemp("finished"))
    assert main(["run", str(folder / "quick.toml"), f"runs_dir={folder / 'runs'}", "--quiet"]) == 0
    return folder / "runs" / "quick"
