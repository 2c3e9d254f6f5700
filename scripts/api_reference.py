"""Write docs/api from the docstrings of the public packages: one page a package, every name of its ``__all__``.

::

    python scripts/api_reference.py             # write the pages
    python scripts/api_reference.py --check     # exit code 1 when a page is not what the docstrings say
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import ltr

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "api"

_FURTHER = {
    "ltr.rankers": ("baselines", "exact", "linear", "scorers", "two_stage"),
    "ltr.exact": ("solve", "weight_space", "local_search", "scip", "largest_margin"),
    "ltr.metrics": ("torchmetrics",),
}
"""Modules whose names stand on the page of their package, too."""

Link = Callable[[str], str]
"""Markdown for a name in single backticks."""

_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Examples):")
_ITEM = re.compile(r"(?P<name>[\w*][\w*, ]*): ?(?P<text>.*)")
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
    """The packages that have a page: ltr and all modules of its ``__all__``."""
    return ["ltr", *(f"ltr.{name}" for name in ltr.__all__ if isinstance(getattr(ltr, name), types.ModuleType))]


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Every public name once: on the page of the package that is nearest to its definition."""
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
    """Where a name is defined, and its docstring."""
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
    """The text of each page by file name."""
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
    """A row for each public name of a module, those described on other pages among them."""
    loaded = importlib.import_module(module)
    for name in loaded.__all__:
        value = getattr(loaded, name)
        if isinstance(value, types.ModuleType):
            yield f"| [`{value.__name__}`]({value.__name__}.md) | {first_sentence(value.__doc__ or '', link)} |"
        else:
            yield f"| {link(name)} | {first_sentence(_definition(loaded, name, value)[1], link)} |"


def _link(page: str, name: str) -> str:
    """A link to the entry that a name in a docstring means, seen from a page; code where there is none."""
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
    """A public method or property of a class that says what it does."""
    inner = getattr(member, "__func__", member)
    docstring = inspect.getdoc(inner) if not isinstance(inner, str | int | float | tuple) else None
    if name.startswith("_") or not docstring:
        return
    if isinstance(inner, property | functools.cached_property):
        getter = inner.fget if isinstance(inner, property) else inner.func
        code = _code(f"@property\ndef {name}", getter)
    elif inspect.isfunction(inner):
        decorator = {classmethod: "@classmethod\n", staticmethod: "@staticmethod\n"}.get(type(member), "")
        code = _code(f"{decorator}def {name}", inner)
    else:
        return
    yield f"#### {owner}.{name}\n\n{code}\n\n{as_markdown(docstring, link)}"


def _bases(value: type) -> Iterator[type]:
    """The bases of a class, those of a private one in its place."""
    for base in value.__bases__:
        if base.__name__.startswith("_"):
            yield from _bases(base)
        elif base is not object:
            yield base


def _code(head: str, value: Callable[..., object]) -> str:
    """The signature as a block of code, one argument a line where it is long."""
    arguments, returns = _signature(value)
    tail = f" -> {returns}" if returns and not head.startswith("class ") else ""
    text = f"{head}({', '.join(arguments)}){tail}"
    if len(text.splitlines()[-1]) > 100 and arguments:
        text = "\n".join([f"{head}(", *(f"    {argument}," for argument in arguments), f"){tail}"])
    return f"```python\n{text}\n```"


def _signature(value: Callable[..., object]) -> tuple[list[str], str]:
    """Arguments, and what is returned."""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return [], ""
    arguments: list[str] = []
    star = False
    hidden = {"self", "cls"} | ({"args", "kwds", "kwargs"} if inspect.isclass(value) else set())
    for parameter in signature.parameters.values():
        if parameter.name in hidden:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            arguments.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        arguments.append(_argument(parameter))
    return arguments, _annotation(signature.return_annotation)


def _argument(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    annotation = _annotation(parameter.annotation)
    text = f"{stars}{parameter.name}{': ' if annotation else ''}{annotation}"
    if parameter.default is parameter.empty:
        return text
    default = json.dumps(parameter.default) if isinstance(parameter.default, str) else repr(parameter.default)
    return f"{text}{' = ' if annotation else '='}{'...' if ' at 0x' in default else default}"


def _annotation(annotation: object) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _doc(module: str) -> str:
    return importlib.import_module(module).__doc__ or ""


def _source(path: Path) -> str:
    """A link to a source file, from the folder of the pages."""
    place = path.resolve().relative_to(ROOT).as_posix()
    return f"[{place}](../../{place})"


# --- docstrings as Markdown -------------------------------------------------------------------------------------------


def as_markdown(docstring: str, link: Link) -> str:
    """Return a docstring in Google's style as Markdown.

    Sections get bold headings, arguments become lists, examples and formulas code. The prose is plain
    reStructuredText: paragraphs, lists, simple tables, indented blocks.
    """
    parts = []
    for title, body in _sections(inspect.cleandoc(docstring).splitlines()):
        if title == "Examples":
            parts.append(f"**Examples**\n\n```python\n{_dedent(body)}\n```")
        elif title in ("Args", "Attributes", "Raises"):
            heading = "Arguments" if title == "Args" else title
            parts.append(f"**{heading}**\n\n{_items(_dedent(body).splitlines(), link)}")
        elif title:
            parts.append(f"**{title}**\n\n{_prose(_dedent(body).splitlines(), link)}")
        else:
            parts.append(_prose(body, link))
    return "\n\n".join(part for part in parts if part)


def first_sentence(docstring: str, link: Link) -> str:
    r"""The first sentence of a docstring, as Markdown in one line that a table's cell can hold.

    Examples:
        >>> first_sentence('''Counts ``a | b``, e.g. two. Then more.''', lambda name: name)
        'Counts `a \\| b`, e.g. two.'
    """
    paragraph = " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())
    found = re.match(r"(.*?\.)(?= [A-Z`]|$)", paragraph)
    return inline(found[1] if found else paragraph, link).replace("|", "\\|")


def inline(text: str, link: Link) -> str:
    """Running text: literals in double backticks become code, names in single ones links."""
    return _CODE.sub(lambda found: f"`{found['code']}`" if found["code"] else link(found["name"]), text)


def _sections(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Title and lines of each section; the title of what is no section is empty."""
    title, body = "", list[str]()
    for line in lines:
        found = _SECTION.fullmatch(line)
        if found or (title and line and not line.startswith(" ")):  # text after a section ends it
            yield title, body
            title, body = (found[1], []) if found else ("", [line])
        else:
            body.append(line)
    yield title, body


def _items(lines: Sequence[str], link: Link) -> str:
    """A list of names and what they mean; what is indented goes on with the item above."""
    items: list[list[str]] = []
    for line in lines:
        if line.startswith(" ") and items:
            items[-1].append(line.strip())
        elif line:
            items.append([line])
    return "\n".join(f"- {_item(' '.join(item), link)}" for item in items)


def _item(text: str, link: Link) -> str:
    found = _ITEM.fullmatch(text)
    if found is None:
        return inline(text, link)
    names = ", ".join(f"`{name.strip()}`" for name in found["name"].split(","))
    return f"{names}: {inline(found['text'], link)}"


def _prose(lines: Sequence[str], link: Link) -> str:
    """Paragraphs, lists, tables and indented blocks."""
    parts: list[str] = []
    rest = list(lines)
    while rest:
        if not rest[0].strip():
            rest.pop(0)
        elif _RULE.fullmatch(rest[0]):
            rules = [at for at, line in enumerate(rest) if _RULE.fullmatch(line)]
            end = rules[2] if len(rules) > 2 and "" not in rest[: rules[2]] else rules[1]
            parts.append(_table(rest[: end + 1], link))
            del rest[: end + 1]
        elif rest[0].startswith("    "):
            block = list(itertools.takewhile(lambda line: not line or line.startswith("    "), rest))
            parts.append(f"```text\n{_dedent(block)}\n```")
            del rest[: len(block)]
        else:
            paragraph = list(itertools.takewhile(str.strip, rest))
            parts.append(re.sub(r"\s*::$", ":", inline("\n".join(paragraph), link)))
            del rest[: len(paragraph)]
    return "\n\n".join(part for part in parts if part != ":")


def _table(lines: Sequence[str], link: Link) -> str:
    """A simple table: columns lie below the stretches of its rules; a row with an empty first cell goes on above."""
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    rows: list[list[str]] = []
    for line in lines:
        if _RULE.fullmatch(line):
            continue
        cells = [line[start:end].strip() for start, end in spans]
        if rows and not cells[0]:
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    if sum(_RULE.fullmatch(line) is not None for line in lines) == 2:
        rows.insert(0, [""] * len(spans))
    rows = [[inline(cell, link).replace("|", "\\|") for cell in cells] for cells in rows]
    rows.insert(1, ["---"] * len(spans))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _dedent(lines: Sequence[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n")


def main(argv: list[str] | None = None) -> int:
    """Write or check the pages; the exit code is 1 where a check finds a page stale."""
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
