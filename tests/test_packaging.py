"""What pyproject.toml, LICENSE, CITATION.cff and README.md say about the same things agrees."""

import re
import tomllib
from pathlib import Path

import yaml

import ltr

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (ROOT / ".github" / "workflows").glob("*.yml")
}
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_citation_is_of_this_version_and_of_the_paper():
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["version"] == PROJECT["version"] == ltr.__version__
    assert [author["name"] for author in CITATION["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert CITATION["abstract"].strip() == PROJECT["description"]
    [paper] = CITATION["references"]
    assert paper["title"] == "Direct Learning to Rank and Rerank"
    assert [author["family-names"] for author in paper["authors"]] == ["Rudin", "Wang"]
    assert (paper["year"], paper["volume"]) == (2018, 84)
    assert "[CITATION.cff](CITATION.cff)" in README
    assert "CITATION.cff" not in PYPROJECT["tool"]["scikit-build"]["sdist"]["exclude"]


def test_workflows_and_the_container_file_call_what_is_there():
    steps = [step for flow in WORKFLOWS.values() for job in flow["jobs"].values() for step in job["steps"]]
    scripts = re.findall(r"scripts/\w+\.\w+", " ".join(step.get("run", "") for step in steps))
    assert {"scripts/test.sh", "scripts/docs.sh", "scripts/check_wheel.py"} <= set(scripts)
    copied = re.findall(
        r"^COPY (?!--from)(.*) \S+$", (ROOT / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    for path in [*scripts, *" ".join(copied).split()]:
        assert (ROOT / path).exists(), path
