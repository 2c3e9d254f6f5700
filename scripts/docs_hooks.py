"""What the site of the documentation needs besides its plugins; `mkdocs.yml` names this file.

* Pages from outside ``docs``: the README, the changelog, CONTRIBUTING, and every source file that a page links to.
* The reference: a page for each public module, which mkdocstrings fills from the docstrings.
* The notebooks of ``docs/notebooks``, executed: a page, its pictures and the .ipynb of each.
* Formulas as MathML, which browsers draw by themselves.
"""

from __future__ import annotations

import functools
import html
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import jupytext
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from nbformat import NotebookNode, writes
from traitlets.config import Config

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = DOCS / "notebooks"

OUTSIDE = {"README.md": "readme.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files of the repository that are pages of the site."""

MODULES = re.findall(r"api/([\w.]+)\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
"""Modules with a page in the reference: those of the navigation."""

_LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "bash", ".cpp": "cpp", ".h": "cpp", ".yml": "yaml"}
_FENCE = re.compile(r"^(```.*?^```[ ]*$)", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_DISPLAY = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)


@functools.cache
def executed(path: Path) -> NotebookNode:
    """Return a notebook with its outputs; an error in a cell is raised."""
    notebook = jupytext.read(path)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    options = Config({"ConnectionFileMixin": {"transport": "ipc"}})  # no ports, which a machine may refuse
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT)}}, config=options)
    client.execute(env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"})
    return notebook


def exported(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return an executed notebook as Markdown, with its pictures by name."""
    given = {"unique_key": path.stem, "output_files_dir": path.stem}
    text, resources = MarkdownExporter().from_notebook_node(executed(path), resources=given)
    return text, resources["outputs"]


def links(text: str) -> Iterator[str]:
    """Yield the files that a Markdown text links to, code left out."""
    for part in _FENCE.split(text)[::2]:
        yield from (found[2] for found in _TARGET.finditer(part) if "://" not in found[2])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures that do not lie in ``docs``."""
    texts = {DOCS / file.src_uri: file.content_string for file in files if file.is_documentation_page()}
    for name, page in OUTSIDE.items():
        texts[ROOT / name] = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=texts[ROOT / name]))
    targets = {(path.parent / link).resolve() for path, text in texts.items() for link in links(text)}
    for target in sorted(target for target in targets if target.is_file()):
        if (page := _page(target)).startswith("source/"):
            source = target.read_text(encoding="utf-8")
            shown = f"---\nsearch:\n  exclude: true\n---\n# {target.name}\n\n"
            shown += f"````{_LANGUAGES.get(target.suffix, 'text')}\n{source}\n````\n"
            files.append(File.generated(config, page, content=shown, inclusion=InclusionLevel.NOT_IN_NAV))
    for module in MODULES:
        files.append(File.generated(config, f"api/{module}.md", content=f"# {module}\n\n::: {module}\n"))
    for path in sorted(NOTEBOOKS.glob("*.py")):
        text, pictures = exported(path)
        download = f"\n[Download this notebook]({path.stem}.ipynb){{ .md-button download }}\n"
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text + download))
        files.append(File.generated(config, f"notebooks/{path.stem}.ipynb", content=writes(executed(path))))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links to pages of the site, and fill the gallery."""
    here = page.file.src_uri
    origin = {value: ROOT / key for key, value in OUTSIDE.items()}.get(here, DOCS / here)
    parts = _FENCE.split(markdown)
    for at in range(0, len(parts), 2):
        parts[at] = _TARGET.sub(
            lambda found: found[1] + _link(found[2], origin, here) + (found[3] or "") + ")", parts[at]
        )
    text = "".join(parts)
    return text + "\n" + _gallery() if here == "notebooks/README.md" else text


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw the formulas."""
    drawn = _INLINE.sub(lambda found: _mathml(found[1], "inline"), html)
    return _DISPLAY.sub(lambda found: f'<div class="math">{_mathml(found[1], "block")}</div>', drawn)


def _mathml(formula: str, display: str) -> str:
    return convert(html.unescape(formula).strip(), display=display)


def _page(target: Path) -> str:
    """Return the page of the site that shows a file of the repository."""
    place = target.relative_to(ROOT).as_posix()
    module = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if place in OUTSIDE:
        return OUTSIDE[place]
    if module in MODULES:
        return f"api/{module}.md"
    if target.is_relative_to(DOCS):
        return place.removeprefix("docs/").replace(".py", ".md")
    return f"source/{place}.md"


def _link(link: str, origin: Path, here: str) -> str:
    """Return a link of a file of the repository as a link from a page of the site."""
    target = (origin.parent / link).resolve()
    if "://" in link or not target.exists() or not target.is_relative_to(ROOT):
        return link
    return posixpath.relpath(_page(target), posixpath.dirname(here))


def _gallery() -> str:
    """Return the notebooks with their first pictures."""
    cards = []
    listed = (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    for path in sorted(NOTEBOOKS.glob("*.py"), key=lambda path: listed.index(path.name)):
        cells = executed(path).cells
        title = cells[0].source.splitlines()[0].lstrip("# ")
        text, pictures = exported(path)
        picture = next(iter(sorted(pictures, key=text.index)), None)
        shown = "" if picture is None else f"[![{title}]({picture})]({path.stem}.md)\n\n"
        about = cells[0].source.split("\n\n")[1]
        cards.append(f"<div markdown>\n{shown}**[{title}]({path.stem}.md)**\n\n{about}\n</div>")
    return '<div class="gallery" markdown>\n' + "\n".join(cards) + "\n</div>\n"
