"""The site of the documentation: every page is in its navigation, links lead somewhere, the notebooks run.

It needs the extra ``docs``, which scripts/test.sh installs with --slow.
"""

import inspect
import re

import pytest
import yaml

pytest.importorskip("mkdocs")

import nbformat

import ltr
from scripts import docs_hooks
from tests.paths import ROOT

DOCS = ROOT / "docs"
NOTEBOOKS = sorted(docs_hooks.NOTEBOOKS.glob("*.py"))


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml without the objects that its tags name."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)
SITE = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)


def in_navigation(entry):
    if isinstance(entry, str):
        return {entry}
    return set().union(*map(in_navigation, entry if isinstance(entry, list) else entry.values()))


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    notebooks = {f"notebooks/{path.stem}.md" for path in NOTEBOOKS}
    reference = {f"api/{module}.md" for module in docs_hooks.MODULES}
    assert in_navigation(SITE["nav"]) == pages | notebooks | reference | set(docs_hooks.OUTSIDE.values())


def test_every_public_module_has_a_page_of_the_reference():
    modules = {f"ltr.{name}" for name in ltr.__all__ if inspect.ismodule(getattr(ltr, name))}
    assert {"ltr", "ltr.losses"} < {"ltr", *modules} <= set(docs_hooks.MODULES)


def test_links_are_those_of_the_site():
    def link(target, page):
        return docs_hooks._link(target, ROOT / page, docs_hooks.OUTSIDE.get(page, page.removeprefix("docs/")))

    assert link("docs/exact.md", "README.md") == "exact.md"
    assert link("../README.md", "docs/index.md") == "readme.md"
    assert link("../../ltr/lists.py", "docs/notebooks/README.md") == "../source/ltr/lists.py.md"
    assert link("../ltr/losses/__init__.py", "docs/index.md") == "api/ltr.losses.md"
    assert link("images/losses.png", "docs/losses.md") == "images/losses.png"
    assert link("first_ranking.py", "docs/notebooks/README.md") == "first_ranking.md"
    assert link("https://www.scipopt.org", "README.md") == "https://www.scipopt.org"


def test_formulas_are_drawn_without_a_script():
    html = r'<p>If <span class="arithmatex">\(a_i &lt; b\)</span></p><div class="arithmatex">\[\sum_i a_i\]</div>'
    drawn = docs_hooks.on_page_content(html, None, None, None)
    assert drawn.count("<math") == 2
    assert "arithmatex" not in drawn
    assert re.search(r"<mo>(&lt;|&#x0003C;)</mo>", drawn)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path):
    notebook = docs_hooks.executed(path)
    nbformat.validate(notebook)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
