"""The README and the pages: their Python runs, the config reference is complete, and the files they name exist."""

import doctest
import re
from pathlib import Path

import pytest

from trainers.config import describe_keys
from trainers.tables import markdown_table

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [page for page in (README, *sorted((ROOT / "docs").glob("*.md"))) if ">>> " in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_examples_run(page):
    failed, attempted = doctest.testfile(str(page), module_relative=False)
    assert attempted > 2
    assert failed == 0


def test_the_config_reference_lists_every_key():
    rows = [(f"`{key}`", f"`{default}`" if default else "", meaning) for key, default, meaning in describe_keys()]
    assert markdown_table(["key", "default", "meaning"], rows) in README.read_text()


@pytest.mark.parametrize("page", ["architecture.md", "exact.md", "glossary.md", "losses.md", "maths.md"])
def test_the_files_that_a_page_names_exist(page):
    named = re.findall(r"`((?:ltr|trainers|scripts|configs|tests)/[\w./]*)`", (ROOT / "docs" / page).read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
