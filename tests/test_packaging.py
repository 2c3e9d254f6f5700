"""What pyproject.toml, LICENSE, CITATION.cff and README.md say about the same things agrees."""

import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

import ltr

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
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
