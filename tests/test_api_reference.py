"""The reference pages are those of the docstrings, and every public name has its entry."""

import inspect
import re
from pathlib import Path

import pytest

import ltr

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def reference():
    """The script."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        import api_reference

        yield api_reference


@pytest.fixture(scope="module")
def pages(reference):
    return reference.pages()


def test_the_pages_are_current(reference, capsys):
    assert reference.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_page_and_one_too_many_are_found(reference, pages, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    monkeypatch.setattr(reference, "ROOT", tmp_path.parent)
    monkeypatch.setattr(reference, "pages", lambda: pages)
    assert reference.main(["--check"]) == 1
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    (tmp_path / "ltr.losses.md").write_text("old")
    (tmp_path / "ltr.gone.md").write_text("old")
    capsys.readouterr()
    assert reference.main(["--check"]) == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "docs/api/ltr.gone.md",
        "docs/api/ltr.losses.md",
    ]
    assert reference.main([]) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(pages)


def test_every_public_name_has_one_entry_with_a_sentence(reference, pages):
    names = [f"{entry.page}: {entry.name}" for entry in reference.entries()]
    assert len(names) == len(set(names)) > 100
    for entry in reference.entries():
        assert len(re.findall(rf"^### {entry.name}$", pages[f"{entry.page}.md"], re.MULTILINE)) == 1, entry.name
        first = reference.first_sentence(entry.docstring, str)
        assert re.fullmatch(r".+[.:]", first), f"{entry.module}.{entry.name} needs a docstring: {first!r}"


def test_every_package_has_a_page(pages):
    modules = [name for name in ltr.__all__ if inspect.ismodule(getattr(ltr, name))]
    assert "losses" in modules
    assert {f"ltr.{name}.md" for name in modules} <= set(pages)
    assert all(f"({name})" in pages["README.md"] for name in pages if name != "README.md")


def test_no_signature_depends_on_the_version_of_python(pages):
    """An enumeration shows how a member is looked up, and attributes of C functions are left to the class."""
    assert "class Status(value)\n" in pages["ltr.exact.md"]
    assert "#### TwoStageRanker.decision_function" in pages["ltr.rankers.md"]
    assert "TwoStageRanker.coef_" not in pages["ltr.rankers.md"]
    assert not any("attrgetter" in page for page in pages.values())


def test_links_lead_somewhere(pages):
    for name, text in pages.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if target.startswith("http"):
                continue
            if path.startswith("../"):
                assert (ROOT / "docs" / "api" / path).exists(), f"{name}: {target}"
                continue
            page = pages[path or name]
            headings = {re.sub(r"[^\w -]", "", h).lower() for h in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
            assert not anchor or anchor in headings, f"{name}: {target}"


def test_docstrings_become_markdown(reference):
    docstring = """One line, ``a | b``.

    A formula::

        x = 1

    =====  ======
    name   what
    =====  ======
    ``a``  one
           more
    =====  ======

    Args:
        x: a number,
            on two lines.
        y, z: others, see `f`.

    Examples:
        >>> 1 + 1
        2
    """
    assert reference.as_markdown(docstring, lambda name: f"<{name}>") == "\n".join(
        [
            "One line, `a | b`.",
            "",
            "A formula:",
            "",
            "```text",
            "x = 1",
            "```",
            "",
            "| name | what |",
            "| --- | --- |",
            "| `a` | one more |",
            "",
            "**Arguments**",
            "",
            "- `x`: a number, on two lines.",
            "- `y`, `z`: others, see <f>.",
            "",
            "**Examples**",
            "",
            "```python",
            ">>> 1 + 1",
            "2",
            "```",
        ]
    )
