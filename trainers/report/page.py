"""A report as sections of paragraphs, tables and pictures, and its two forms: Markdown, and one HTML file.

Texts are Markdown of one line: ``**bold**``, ``*italics*``, `` `code` `` and ``[links](url)``, nothing else.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from matplotlib.figure import Figure
from PIL import Image

from trainers.tables import markdown_table

_DPI = 144  # of the image files
_COLOURS = 128  # of their palettes
_CSS_PIXELS = 96  # in an inch
# emphasis, code and links are the whole language of texts; HTML in particular means nothing
_INLINE = MarkdownIt("zero", {"html": False}).enable(["emphasis", "backticks", "link", "escape"])
_CODE = re.compile(r"(`[^`]*`)")


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""  # text below the table; empty for none
    left: int = 1  # number of leading columns with text, aligned to the left; the others hold numbers
    html: str = ""  # what the page in HTML shows in place of the table; trusted, so that nothing in it is escaped


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure."""

    file: str  # name of its file
    figure: Figure
    caption: str  # what it shows, in a sentence or two; screen readers read it too


Block = Text | Table | Picture


@dataclass(frozen=True)
class Section:
    """A heading and the blocks under it, folded away in HTML."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A whole report: the blocks of the summary, the first of which is the answer, and sections of details."""

    title: str
    summary: Sequence[Block]
    sections: Sequence[Section]

    @property
    def pictures(self) -> list[Picture]:
        """All pictures in the order of reading."""
        blocks = [*self.summary, *(block for section in self.sections for block in section.blocks)]
        return [block for block in blocks if isinstance(block, Picture)]


def literal(text: str) -> str:
    r"""Return a text that shows a name as it is.

    Examples:
        >>> literal("p_norm_push(p=2)"), literal("_a*[b]")
        ('p_norm_push(p=2)', '\\_a\\*\\[b\\]')
    """
    text = re.sub(r"([\\`*\[\]])", r"\\\1", text)
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)


def plain_text(text: str) -> str:
    """Return a text without its markup."""
    return "".join(token.content for token in _INLINE.parseInline(text)[0].children or [])


def png(picture: Picture) -> bytes:
    """Return a picture as PNG with a palette, which is small; the same figure gives the same bytes."""
    drawn, small = io.BytesIO(), io.BytesIO()
    picture.figure.savefig(drawn, format="png", dpi=_DPI, facecolor="white")
    palette = Image.open(drawn).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    palette.save(small, format="PNG", optimize=True)
    return small.getvalue()


def to_markdown(page: Page, figures: str) -> str:
    """Return a page as GitHub's Markdown, with links to the pictures' files in the folder `figures`."""
    parts = [f"# {_line(page.title)}", *(block_markdown(block, figures) for block in page.summary)]
    for section in page.sections:
        parts += [f"## {_line(section.title)}", *(block_markdown(block, figures) for block in section.blocks)]
    return "\n\n".join(parts) + "\n"


def block_markdown(block: Block, figures: str) -> str:
    """Return a paragraph, a table or a picture as GitHub's Markdown, its caption below."""
    if isinstance(block, Text):
        return _line(block.text)
    if isinstance(block, Table):
        text = markdown_table(_row(block.header), map(_row, block.rows), left=block.left)
    else:
        text = f"![{_line(literal(plain_text(block.caption)))}]({figures}/{block.file})"
    return f"{text}\n\n{_line(block.caption)}" if block.caption else text


def _row(texts: Sequence[str]) -> list[str]:
    return [_line(text).replace("|", r"\|") for text in texts]


def _line(text: str) -> str:
    """Return a text in one line, without anything that GitHub would take for HTML."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


def to_html(page: Page, images: Mapping[Picture, bytes]) -> str:
    """Return a page as one HTML file with its style and pictures (PNG) inside, without scripts."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"inline": lambda text: Markup(_INLINE.renderInline(text)), "plain": plain_text}
    folder = resources.files("trainers.report")
    template = environment.from_string(folder.joinpath("page.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        page=page,
        style=Markup(folder.joinpath("page.css").read_text(encoding="utf-8")),
        sources={one: f"data:image/png;base64,{base64.b64encode(data).decode()}" for one, data in images.items()},
        sizes={one: [round(_CSS_PIXELS * inches) for inches in one.figure.get_size_inches()] for one in images},
    )
