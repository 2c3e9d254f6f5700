"""Write docs/api from the docstrings of the public packages: one page per package, every name of its ``__all__``.

::

    python scripts/api_reference.py             # write the pages
    python scripts/api_reference.py --check     # exit code 1 if a page does not agree with the docstrings
"""

from __future__ import annotations

import argparse
import ast
import enum
import functools
import importlib
import inspect
import itertools
import json
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import ltr

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "api"

_FURTHER = {
    "ltr.rankers": ("baselines", "exact", "scorers", "surrogate", "two_stage"),
    "ltr.exact": ("solve", "weight_space", "local_search", "scip", "largest_margin"),
}
"""Modules whose names are also listed on the page of their package."""

Link = Callable[[str], str]
"""Markdown for a name in single backticks."""

_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Examples):\n((?:(?: .*)?\n)*)", re.MULTILINE)
_ITEM = re.compile(r"(?P<names>[\w*][\w*, ]*): ?(?P<text>.*)")
_RULE = re.compile(r"=+( +=+)+")
_CODE = re.compile(r"``(?P<code>.+?)``|`(?P<name>[^`]+)`", re.DOTALL)


class Entry(typing.NamedTuple):
    """A public name."""

    page: str  # package of its page
    module: str  # module that has it in ``__all__``
    name: str
    value: object
    source: Path  # file in which it is defined
    docstring: str  # its own, or the text below its assignment; empty without one


def packages() -> list[str]:
    """Return the packages that have a page: ltr and all modules of its ``__all__``."""
    return ["ltr", *(f"ltr.{name}" for name in ltr.__all__ if isinstance(getattr(ltr, name), types.ModuleType))]


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return every public name once: on the page of the package that is nearest to its definition."""
    found: dict[tuple[str, Path], Entry] = {}
    for package in sorted(packages(), key=lambda name: -name.count(".")):
        for module in (package, *(f"{package}.{name}" for name in _FURTHER.get(package, ()))):
            loaded = importlib.import_module(module)
            for name in loaded.__all__:
                value = getattr(loaded, name)
                if not isinstance(value, types.ModuleType):
                    source, docstring = _definition(loaded, name, value)
                    found.setdefault((name, source), Entry(package, module, name, value, source, docstring))
    return tuple(found.values())


def _definition(module: types.ModuleType, name: str, value: object) -> tuple[Path, str]:
    """Return where a name is defined, and its docstring."""
    if inspect.isclass(value) or inspect.isfunction(value):
        return Path(inspect.getfile(value)), inspect.getdoc(value) or ""
    path = Path(str(module.__file__))
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            return _definition(importlib.import_module(str(node.module)), name, value)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            text = after.value if isinstance(after, ast.Expr) else None
            return path, str(text.value) if isinstance(text, ast.Constant) else ""
    raise LookupError(f"{module.__name__}.{name} is neither defined nor imported there")


def pages() -> dict[str, str]:
    """Return the text of each page by file name."""
    return {f"{package}.md": _page(package) for package in packages()} | {"README.md": _contents()}


def _contents() -> str:
    rows = [
        f"| [`{package}`]({package}.md) | {first_sentence(_doc(package), lambda name: f'`{name}`')} |"
        for package in packages()
    ]
    prose = "Written by `scripts/api_reference.py` from the docstrings; pages to read are in [docs](../index.md)."
    return "\n".join(["# Reference", "", prose, "", "| package | what is in it |", "| --- | --- |", *rows]) + "\n"


def _page(package: str) -> str:
    link = functools.partial(_link, package)
    parts = [f"# `{package}`", _source(Path(str(importlib.import_module(package).__file__)))]
    parts.append(as_markdown(_doc(package), link))
    for module in (package, *(f"{package}.{name}" for name in _FURTHER.get(package, ()))):
        if module != package:
            parts += [f"## `{module}`", as_markdown(_doc(module), link)]
        listed = _listed(module, link)
        if listed:
            parts.append("\n".join(["| name | what it is |", "| --- | --- |", *listed]))
        parts += [_entry(entry, link) for entry in entries() if entry.module == module]
    return "\n\n".join(part for part in parts if part) + "\n"


def _listed(module: str, link: Link) -> Iterator[str]:
    """Yield a row for each public name of a module, including those described on other pages."""
    loaded = importlib.import_module(module)
    for name in loaded.__all__:
        value = getattr(loaded, name)
        if isinstance(value, types.ModuleType):
            yield f"| [`{value.__name__}`]({value.__name__}.md) | {first_sentence(value.__doc__ or '', link)} |"
        else:
            yield f"| {link(name)} | {first_sentence(_definition(loaded, name, value)[1], link)} |"


def _link(page: str, name: str) -> str:
    """Return a link from a page to the entry that a name in a docstring refers to, or code if there is none."""
    last = name.removesuffix("()").split(".")
    wanted = [part for part in last if part[:1].isupper()][:1] or last[-1:]
    if name in packages() and name != page:
        return f"[`{name}`]({name}.md)"
    for entry in sorted(entries(), key=lambda entry: entry.page != page):
        if entry.name == wanted[0] and (len(last) == 1 or name.startswith((entry.name, entry.page))):
            return f"[`{name}`]({'' if entry.page == page else f'{entry.page}.md'}#{entry.name.lower()})"
    return f"`{name}`"


def _entry(entry: Entry, link: Link) -> str:
    value = entry.value
    parts = [f"### {entry.name}", _source(entry.source)]
    if inspect.isclass(value):
        bases = [base.__name__ for base in _bases(value)]
        parts.append(_code(f"class {entry.name}", value))
        parts += [f"A kind of {', '.join(map(link, bases))}."] if bases else []
        parts.append(as_markdown(entry.docstring, link))
        if issubclass(value, enum.Enum):
            parts.append("\n".join(f"- `{member.name}` = `{json.dumps(member.value)}`" for member in value))
        parts += [part for name, member in vars(value).items() for part in _member(entry.name, name, member, link)]
    elif inspect.isfunction(value):
        parts += [_code(f"def {entry.name}", value), as_markdown(entry.docstring, link)]
    else:
        allowed = ", ".join(f"`{json.dumps(option)}`" for option in typing.get_args(value) if isinstance(option, str))
        parts += [as_markdown(entry.docstring, link), f"One of {allowed}." if allowed else ""]
        if isinstance(value, Mapping):
            shown = {key: re.sub(r"<class '[\w.]*\.(\w+)'>", r"\1", repr(option)) for key, option in value.items()}
            parts.append("\n".join(f"- `{json.dumps(key)}`: `{option}`" for key, option in shown.items()))
    return "\n\n".join(part for part in parts if part)


def _member(owner: str, name: str, member: object, link: Link) -> Iterator[str]:
    """Yield the text on a public method or property of a class, if it has a docstring."""
    inner = getattr(member, "__func__", member)
    docstring = inspect.getdoc(inner) if not isinstance(inner, str | int | float | tuple) else None
    if name.startswith("_") or not docstring:
        return
    if isinstance(inner, property | functools.cached_property):
        getter = inner.fget if isinstance(inner, property) else inner.func
        if not inspect.isfunction(getter):  # such as an attrgetter: what it gets is among the attributes of the class
            return
        code = _code(f"@property\ndef {name}", getter)
    elif inspect.isfunction(inner):
        decorator = {classmethod: "@classmethod\n", staticmethod: "@staticmethod\n"}.get(type(member), "")
        code = _code(f"{decorator}def {name}", inner)
    else:
        return
    yield f"#### {owner}.{name}\n\n{code}\n\n{as_markdown(docstring, link)}"


def _bases(value: type) -> Iterator[type]:
    """Yield the bases of a class; a private base is replaced by its own bases."""
    for base in value.__bases__:
        if base.__name__.startswith("_"):
            yield from _bases(base)
        elif base is not object:
            yield base


class _Verbatim(str):
    """A text that `inspect` writes into a signature as it is, without quotes."""

    __repr__ = str.__str__


def _code(head: str, value: Callable[..., object]) -> str:
    """Return the signature as a block of code, one argument per line if it is long."""
    if isinstance(value, enum.EnumType):  # its own signature is that of a new enumeration, and differs between versions
        return f"```python\n{head}(value)\n```"
    try:
        signature = inspect.signature(value)
    except ValueError:
        return f"```python\n{head}()\n```"
    hidden = {"self", "cls"} | ({"args", "kwds", "kwargs"} if inspect.isclass(value) else set())
    arguments: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name in hidden:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in arguments):
            arguments.append("*")
        if isinstance(parameter.annotation, str):
            parameter = parameter.replace(annotation=_Verbatim(parameter.annotation))
        if parameter.default is not parameter.empty:
            text = json.dumps(parameter.default) if isinstance(parameter.default, str) else repr(parameter.default)
            parameter = parameter.replace(default=_Verbatim("..." if " at 0x" in text else text))
        arguments.append(str(parameter))
    returned = signature.return_annotation
    without = inspect.isclass(value) or returned is signature.empty
    tail = "" if without else f" -> {returned if isinstance(returned, str) else inspect.formatannotation(returned)}"
    text = f"{head}({', '.join(arguments)}){tail}"
    if len(text.splitlines()[-1]) > 100 and arguments:
        text = "\n".join([f"{head}(", *(f"    {argument}," for argument in arguments), f"){tail}"])
    return f"```python\n{text}\n```"


def _doc(module: str) -> str:
    return importlib.import_module(module).__doc__ or ""


def _source(path: Path) -> str:
    """Return a link to a source file, from the folder of the pages."""
    place = path.resolve().relative_to(ROOT).as_posix()
    return f"[`{place}`](../../{place})"


# --- docstrings as Markdown -------------------------------------------------------------------------------------------


def as_markdown(docstring: str, link: Link) -> str:
    """Return a docstring in Google's style as Markdown.

    Sections get bold headings, arguments become lists, examples and formulas code. The prose is plain
    reStructuredText: paragraphs, lists, simple tables, indented blocks.
    """
    prose, *sections = _SECTION.split(inspect.cleandoc(docstring) + "\n")
    parts = [_prose(prose, link)]
    for title, indented, after in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        body = textwrap.dedent(indented).strip("\n")
        if title == "Examples":
            shown = f"```python\n{body}\n```"
        else:
            shown = _prose(body, link) if title == "Returns" else _items(body, link)
        parts += [f"**{'Arguments' if title == 'Args' else title}**\n\n{shown}", _prose(after, link)]
    return "\n\n".join(filter(None, parts))


def first_sentence(docstring: str, link: Link) -> str:
    r"""Return the first sentence of a docstring, as one line of Markdown that fits into a table cell.

    Examples:
        >>> first_sentence('''Counts ``a | b``, e.g. two. Then more.''', lambda name: name)
        'Counts `a \\| b`, e.g. two.'
    """
    paragraph = " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())
    found = re.match(r"(.*?\.)(?= [A-Z`]|$)", paragraph)
    return inline(found[1] if found else paragraph, link).replace("|", "\\|")


def inline(text: str, link: Link) -> str:
    """Return running text in which literals in double backticks become code, names in single ones links."""
    return _CODE.sub(lambda found: f"`{found['code']}`" if found["code"] else link(found["name"]), text)


def _items(body: str, link: Link) -> str:
    """Return a list of names and their descriptions, which may continue on indented lines."""
    items = []
    for text in (" ".join(item.split()) for item in re.split(r"\n+(?! )", body)):
        found = _ITEM.fullmatch(text)
        names = ", ".join(f"`{name.strip()}`" for name in found["names"].split(",")) if found else ""
        items.append(f"- {names}: {inline(found['text'], link)}" if found else f"- {inline(text, link)}")
    return "\n".join(items)


def _prose(text: str, link: Link) -> str:
    """Return paragraphs, lists, tables and indented blocks."""
    parts: list[str] = []
    blocks = re.split(r"\n{2,}", text.strip("\n"))
    for indented, several in itertools.groupby(blocks, lambda block: block.startswith("    ")):
        if indented:
            parts.append("```text\n" + textwrap.dedent("\n\n".join(several)) + "\n```")
            continue
        for block in several:
            is_table = _RULE.fullmatch(block.partition("\n")[0])
            parts.append(_table(block, link) if is_table else re.sub(r"\s*::$", ":", inline(block, link)))
    return "\n\n".join(part for part in parts if part != ":")


def _table(block: str, link: Link) -> str:
    """Return a simple table: its rules mark the columns, and a row with an empty first cell continues the one above.

    Markdown has no table without headings: two columns without any are names and what they are.
    """
    rule, *lines = block.splitlines()
    starts = [found.start() for found in re.finditer("=+", rule)]
    unnamed = ["name", "what it is"] if len(starts) == 2 else [""] * len(starts)
    rows = [] if lines.count(rule) == 2 else [unnamed]
    for line in lines:
        cells = [line[start:end].strip() for start, end in itertools.pairwise([*starts, None])]
        if rows and not cells[0]:
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
        elif line != rule:
            rows.append(cells)
    rows = [[inline(cell, link).replace("|", "\\|") for cell in cells] for cells in rows]
    rows.insert(1, ["---"] * len(starts))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def main(argv: list[str] | None = None) -> int:
    """Write or check the pages; the exit code is 1 if a check finds a page stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 when a page is stale")
    check = parser.parse_args(argv).check
    wanted = {FOLDER / name: text for name, text in pages().items()}
    before = {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    stale = sorted(path.name for path in {*wanted, *before} if wanted.get(path) != before.get(path))
    if check:
        for name in stale:
            print(f"docs/api/{name} is stale: run python scripts/api_reference.py")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in before.keys() - wanted.keys():
        path.unlink()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    print(f"{len(stale)} of {len(wanted)} pages changed in {FOLDER.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
