"""What pyproject.toml, LICENSE, CITATION.cff and README.md say about the same things agrees."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

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


def test_the_licence_is_named_and_there():
    assert (PROJECT["license"], CITATION["license"]) == ("MIT", "MIT")
    assert PROJECT["license-files"] == ["LICENSE"]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith("MIT License\n")
    assert "The ltr authors" in text
    assert not [name for name in PROJECT["classifiers"] if name.startswith("License")]  # beside PEP 639 an error
    assert "[LICENSE](LICENSE)" in README


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


def test_build_tools_are_pinned_within_their_ranges():
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:])
    for requirement in map(Requirement, PYPROJECT["build-system"]["requires"]):
        assert requirement.specifier.contains(pinned[requirement.name])
    assert {"cmake", "ninja", "ziglang"} <= pinned.keys()  # what scripts/setup.sh installs besides


def test_badges_and_workflows_name_the_versions_that_the_classifiers_do():
    found = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert f">={found[0]}" == PROJECT["requires-python"]
    assert f"<title>python: {found[0]} to {found[-1]}</title>" in badge("python")
    assert f"![Python {found[0]} to {found[-1]}](docs/images/badge_python.svg)" in README
    assert f"<title>license: {PROJECT['license']}</title>" in badge("license")
    assert WORKFLOWS["ci"]["jobs"]["versions"]["strategy"]["matrix"]["python"] == found


def test_workflows_and_the_container_file_call_what_is_there():
    steps = [step for flow in WORKFLOWS.values() for job in flow["jobs"].values() for step in job["steps"]]
    scripts = re.findall(r"scripts/\w+\.\w+", " ".join(step.get("run", "") for step in steps))
    assert {"scripts/test.sh", "scripts/docs.sh", "scripts/check_wheel.py"} <= set(scripts)
    copied = re.findall(
        r"^COPY (?!--from)(.*) \S+$", (ROOT / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    for path in [*scripts, *" ".join(copied).split()]:
        assert (ROOT / path).exists(), path


def badge(name):
    return (ROOT / "docs" / "images" / f"badge_{name}.svg").read_text(encoding="utf-8")
