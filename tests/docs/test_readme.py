"""The README, the pages and what stands beside them: their Python runs, what they name exists, and versions agree."""

import doctest
import re
import shutil
import tomllib

import pytest
import torch
import yaml

import ltr
from scripts import config_reference
from tests.paths import ROOT
from tests.trainers.sweeping import run_here
from trainers.cli import main
from trainers.records import read_sweep

README = ROOT / "README.md"
PAGES = [page for page in (README, *sorted((ROOT / "docs").glob("*.md"))) if ">>> " in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_examples_run(page):
    failed, attempted = doctest.testfile(str(page), module_relative=False)
    assert attempted > 2
    assert failed == 0


def test_the_table_of_config_keys_is_that_of_the_code():
    assert config_reference.PAGE.read_text(encoding="utf-8") == config_reference.page(), (
        "run python scripts/config_reference.py"
    )


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").split()) <= 900


@pytest.mark.parametrize("page", ["architecture.md", "exact.md", "glossary.md", "losses.md", "maths.md"])
def test_the_files_that_a_page_names_exist(page):
    named = re.findall(r"`((?:ltr|trainers|scripts|configs|tests)/[\w./]*)`", (ROOT / "docs" / page).read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


LIGHTNING = ROOT / "docs" / "integrations.md"


def batches():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 12, 4, generator=generator)
    y = (x[..., 0] - x[..., 1] + 0.3 * torch.randn(64, 12, generator=generator) > 1).long()
    mask = torch.arange(12) < torch.randint(6, 13, (64, 1), generator=generator)
    return [{"x": x[at : at + 16], "y": y[at : at + 16], "mask": mask[at : at + 16]} for at in range(0, 64, 16)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the trainer: number of workers, checkpoints
def test_a_lightning_module_learns_and_logs_the_metrics(tmp_path):
    lightning = pytest.importorskip("lightning")
    (code,) = re.findall(r"```python\n(import lightning\n.*?)```", LIGHTNING.read_text(encoding="utf-8"), re.DOTALL)
    names = {"__name__": "example"}
    exec(compile(code, str(LIGHTNING), "exec"), names)
    module = names["Ranker"](4)
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_epochs=15, default_root_dir=tmp_path, enable_model_summary=False, **options)
    data = torch.utils.data.DataLoader(batches(), batch_size=None)
    (before,) = trainer.validate(module, data, verbose=False)
    trainer.fit(module, data, data)
    (after,) = trainer.validate(module, data, verbose=False)
    assert set(after) == {"ndcg@10", "mrr"}
    assert after["ndcg@10"] > max(0.9, before["ndcg@10"])


EXPERIMENTS = (ROOT / "docs" / "experiments.md").read_text()


def test_the_example_is_a_sweep(tmp_path):
    (example,) = re.findall(r"```toml\n(# study.toml\n.*?)```", EXPERIMENTS, re.DOTALL)
    (tmp_path / "study.toml").write_text(example)
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    outcome = run_here(tmp_path / "study.toml")
    assert outcome.failures == []
    assert f"\n{outcome.cells} results computed; ltr report runs/study makes" in EXPERIMENTS
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
    for command in ("sweep", "report"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
    known = set(re.findall(r"--[a-z]+", capsys.readouterr().out))
    of_others = {"--array", "--cpus", "--time", "--logdir"}  # of SLURM and TensorBoard
    assert set(re.findall(r"--[a-z]+", EXPERIMENTS)) <= known | of_others


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WORKFLOWS = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in ROOT.glob(".github/workflows/*.yml")]


def test_the_citation_is_of_this_version_and_of_the_paper():
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["version"] == PROJECT["version"] == ltr.__version__
    assert [author["name"] for author in CITATION["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert CITATION["abstract"].strip() == PROJECT["description"]
    assert [paper["title"] for paper in CITATION["references"]] == ["Direct Learning to Rank and Rerank"]
    assert "[CITATION.cff](CITATION.cff)" in README.read_text(encoding="utf-8")
    assert "CITATION.cff" not in PYPROJECT["tool"]["scikit-build"]["sdist"]["exclude"]


def test_workflows_and_the_container_file_call_what_is_there():
    steps = [step for flow in WORKFLOWS for job in flow["jobs"].values() for step in job["steps"]]
    scripts = re.findall(r"scripts/\w+\.\w+", " ".join(step.get("run", "") for step in steps))
    assert {"scripts/test.sh", "scripts/docs.sh", "scripts/check_wheel.py"} <= set(scripts)
    copied = re.findall(
        r"^COPY (?!--from)(.*) \S+$", (ROOT / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    for path in [*scripts, *" ".join(copied).split()]:
        assert (ROOT / path).exists(), path
