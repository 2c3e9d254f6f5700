"""The README and the pages: their Python runs, the table of config keys is complete, the files they name exist."""

import doctest
import re
from pathlib import Path

import pytest

from scripts import config_reference

ROOT = Path(__file__).parents[1]
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
