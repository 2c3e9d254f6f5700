"""What docs/experiments.md says about sweeps is so."""

import re
import shutil
from pathlib import Path

import pytest

from tests.sweeping import run_here
from trainers.cli import main
from trainers.records import read_sweep

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "experiments.md").read_text()


def test_the_example_is_a_sweep(tmp_path):
    (example,) = re.findall(r"```toml\n(# study.toml\n.*?)```", PAGE, re.DOTALL)
    (tmp_path / "study.toml").write_text(example)
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    outcome = run_here(tmp_path / "study.toml")
    assert outcome.failures == []
    assert f"\n{outcome.cells} results computed; ltr report runs/study makes" in PAGE
    results = read_sweep(outcome.folder)
    first, second = results.grids
    assert [len(grid["cells"]) for grid in results.grids] == [2 * 4, 2 * 2]
    assert first["name"] == second["name"] == "methods"
    statuses = {record["status"] for record in results.records if record["method"] == "exact"}
    assert "optimal" in statuses <= {"optimal", "base order"}
    shared = {cell["id"] for cell in second["cells"]} & {
        name for record in results.records for name in (record.get("list") or {}).get("starts", ())
    }
    assert len(shared) == 4


def test_options_on_the_page_are_those_of_the_command(capsys):
    for command in ("sweep", "report", "board"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
    known = set(re.findall(r"--[a-z]+", capsys.readouterr().out))
    of_slurm = {"--array", "--cpus", "--time"}
    assert set(re.findall(r"--[a-z]+", PAGE)) <= known | of_slurm
