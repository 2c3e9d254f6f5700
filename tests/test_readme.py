"""What the README says is so: its Python runs, its config reference is complete."""

import doctest
from pathlib import Path

from trainers.config import describe_keys
from trainers.tracking import markdown_table

README = Path(__file__).parents[1] / "README.md"


def test_the_python_examples_run():
    failed, attempted = doctest.testfile(str(README), module_relative=False)
    assert attempted > 5
    assert failed == 0


def test_the_config_reference_lists_every_key():
    rows = [(f"`{key}`", f"`{default}`" if default else "", meaning) for key, default, meaning in describe_keys()]
    assert markdown_table(["key", "default", "meaning"], rows) in README.read_text()
