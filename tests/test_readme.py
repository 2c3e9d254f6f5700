"""What the README says is so: its Python runs, its config reference is complete."""

import doctest
from pathlib import Path

import pytest

from trainers.config import describe_keys
from trainers.tables import markdown_table

README = Path(__file__).parents[1] / "README.md"
PAGES = [page for page in (README, *sorted((README.parent / "docs").glob("*.md"))) if ">>> " in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_examples_run(page):
    failed, attempted = doctest.testfile(str(page), module_relative=False)
    assert attempted > 2
    assert failed == 0


def test_the_config_reference_lists_every_key():
    rows = [(f"`{key}`", f"`{default}`" if default else "", meaning) for key, default, meaning in describe_keys()]
    assert markdown_table(["key", "default", "meaning"], rows) in README.read_text()
