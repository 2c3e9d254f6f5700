"""Docstrings in Google's style as Markdown."""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence

__all__ = ["as_markdown", "first_sentence", "inline"]

Link = Callable[[str], str]
"""Markdown for a name in single backticks."""

_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Examples):")
_ITEM = re.compile(r"(?P<name>[\w*][\w*, ]*): ?(?P<text>.*)")
_RULE = re.compile(r"=+( +=+)+")
_CODE = re.compile(r"``(?P<code>.+?)``|`(?P<name>[^`]+)`", re.DOTALL)


def as_markdown(docstring: str, link: Link) -> str:
    """The docstring as Markdown: sections with bold headings, arguments as lists, examples and formulas as code.

    Args:
        docstring: in Google's style, its prose in reStructuredText of the plain kind: paragraphs, lists, simple tables,
            indented blocks.
        link: what to make of a name in single backticks.
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
