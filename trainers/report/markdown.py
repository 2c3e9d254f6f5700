"""Reports as Markdown, and the texts that they consist of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markdown_it import MarkdownIt

from trainers.report.page import Block, Page, Picture, Table, Text
from trainers.tables import markdown_table

__all__ = ["inline_html", "literal", "plain_text", "to_markdown"]

# the language of texts: emphasis, code, links; nothing else means anything, HTML least of all
_INLINE = MarkdownIt("zero", {"html": False}).enable(["emphasis", "backticks", "link", "escape"])

_CODE = re.compile(r"(`[^`]*`)")


def literal(text: str) -> str:
    r"""A name as a text that shows it as it is.

    Examples:
        >>> literal("p_norm_push(p=2)"), literal("_a*[b]")
        ('p_norm_push(p=2)', '\\_a\\*\\[b\\]')
    """
    text = re.sub(r"([\\`*\[\]])", r"\\\1", text)
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)


def inline_html(text: str) -> str:
    """A text as HTML.

    Examples:
        >>> inline_html("**a < b** and `<c>`")
        '<strong>a &lt; b</strong> and <code>&lt;c&gt;</code>'
    """
    return str(_INLINE.renderInline(text))


def plain_text(text: str) -> str:
    """A text without its markup.

    Examples:
        >>> plain_text("**K** = [50](https://example.org), `dcg`")
        'K = 50, dcg'
    """
    tokens = _INLINE.parseInline(text)[0].children or []
    return "".join(token.content for token in tokens)


def to_markdown(page: Page, paths: Mapping[Picture, str]) -> str:
    """A page as Markdown with tables as GitHub reads them.

    Args:
        page: the report.
        paths: of the pictures' files, as links.
    """
    parts = [f"# {_line(page.title)}", *_blocks(page.summary, paths)]
    for section in page.sections:
        parts += [f"## {_line(section.title)}", *_blocks(section.blocks, paths)]
    return "\n\n".join(parts) + "\n"


def _blocks(blocks: Sequence[Block], paths: Mapping[Picture, str]) -> list[str]:
    parts = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append(_line(block.text))
            continue
        if isinstance(block, Table):
            parts.append(markdown_table(_cells(block.header), map(_cells, block.rows), left=block.left))
        else:
            parts.append(f"![{_line(literal(plain_text(block.caption)))}]({paths[block]})")
        if block.caption:
            parts.append(_line(block.caption))
    return parts


def _cells(texts: Sequence[str]) -> list[str]:
    return [_line(text).replace("|", r"\|") for text in texts]


def _line(text: str) -> str:
    """A text in one line, without what GitHub would take for HTML."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)
