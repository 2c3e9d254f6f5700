"""How docstrings become Markdown on the site: a griffe extension, which `mkdocs.yml` names.

Names in single backticks become links, ``::`` before a block becomes a colon, simple tables become Markdown's, and
the names of several arguments come onto one line.
"""

from __future__ import annotations

import itertools
import re

import griffe

_NAME = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
_LONG_NAMES = re.compile(r"^( {4}(?:\w+, )*\w+,)\n +(?=(?:\w+, )*\w+: )", re.MULTILINE)
_TABLE = re.compile(r"^(=+(?: +=+)+)\n(?:(.*)\n\1\n)?((?:[^=\n].*\n)+)\1$", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Rewrites the docstring of each object before it is read."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rewrite one docstring."""
        if obj.docstring:
            text = re.sub(r"[ ]?::$", ":", obj.docstring.value, flags=re.MULTILINE)
            text = _TABLE.sub(_table, _LONG_NAMES.sub(r"\1 ", text))
            obj.docstring.value = _NAME.sub(lambda found: _linked(obj, found), text)


def _linked(obj: griffe.Object, found: re.Match[str]) -> str:
    """Return a name as a link to its entry; one without an entry stays code."""
    first, _, rest = found[1].partition(".")
    try:
        path = found[1] if first == "ltr" else obj.resolve(first) + (f".{rest}" if rest else "")
    except griffe.NameResolutionError:
        return found[0]
    return f'<autoref identifier="{path}" optional>{found[0]}</autoref>'


def _table(found: re.Match[str]) -> str:
    """Return a simple table as Markdown: its rules mark the columns, a row without a first cell continues the last."""
    starts = [rule.start() for rule in re.finditer("=+", found[1])]
    headings = found[2] or "name".ljust(starts[1]) + "what it is"
    cells: list[list[str]] = []
    for line in [headings, *found[3].splitlines()]:
        row = [line[start:end].strip().replace("|", "\\|") for start, end in itertools.pairwise([*starts, None])]
        if cells and not row[0]:
            cells[-1] = [f"{above} {cell}".strip() for above, cell in zip(cells[-1], row, strict=True)]
        else:
            cells.append(row)
    cells.insert(1, ["---"] * len(starts))
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
