"""What a report is made of, before it is Markdown or HTML: sections of paragraphs, tables and pictures.

Texts are Markdown of one line: ``**bold**``, ``*italics*``, `` `code` `` and ``[links](url)``, nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

__all__ = ["Block", "Page", "Picture", "Section", "Table", "Text"]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        header: of the columns.
        rows: cells, as many in each row as there are columns.
        caption: what stands below it; empty for nothing.
        left: how many columns, from the left, hold text; the others hold numbers and stand to the right.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    left: int = 1


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure.

    Attributes:
        name: of its file, without an ending.
        figure: the drawing.
        caption: what it shows, in a sentence or two; also read to those who cannot see it.
    """

    name: str
    figure: Figure
    caption: str


Block = Text | Table | Picture


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it.

    Attributes:
        title: the heading.
        blocks: in the order of reading.
    """

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A whole report.

    Attributes:
        title: its heading.
        summary: the first paragraphs.
        sections: the rest.
    """

    title: str
    summary: Sequence[Block]
    sections: Sequence[Section]

    @property
    def pictures(self) -> list[Picture]:
        """All of them, in the order of reading."""
        blocks = [*self.summary, *(block for section in self.sections for block in section.blocks)]
        return [block for block in blocks if isinstance(block, Picture)]
