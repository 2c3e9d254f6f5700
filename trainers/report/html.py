"""Reports as one HTML file that needs nothing else: styles and pictures are in it, there are no scripts."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from trainers.report.markdown import inline_html, plain_text
from trainers.report.page import Block, Page, Picture, Table, Text

__all__ = ["to_html"]

_CSS_PIXELS = 96  # an inch


def to_html(page: Page, images: Mapping[Picture, bytes]) -> str:
    """A page as HTML.

    Args:
        page: the report.
        images: the pictures as PNG.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "inline": lambda text: Markup(inline_html(text)),
        "plain": plain_text,
        "breakable": _breakable,
    }
    environment.tests |= {"text": _is(Text), "table": _is(Table), "picture": _is(Picture)}
    folder = resources.files("trainers.report")
    template = environment.from_string(folder.joinpath("page.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        page=page,
        style=Markup(folder.joinpath("page.css").read_text(encoding="utf-8")),
        sources={picture: f"data:image/png;base64,{base64.b64encode(png).decode()}" for picture, png in images.items()},
        width=lambda picture: round(picture.figure.get_figwidth() * _CSS_PIXELS),
        height=lambda picture: round(picture.figure.get_figheight() * _CSS_PIXELS),
    )


def _breakable(html: Markup) -> Markup:
    """Lines may break after underscores, which long names are made of, but not at the sign in ``K = 50``."""
    return Markup(re.sub(r"_(?=[^<>]*(<|$))", "_<wbr>", html).replace(" = ", "&nbsp;=&nbsp;"))


def _is(kind: type[Block]) -> Callable[[object], bool]:
    return lambda block: isinstance(block, kind)
