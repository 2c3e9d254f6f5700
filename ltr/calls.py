"""Texts that name something with options, such as ``p_norm_push(p=2)`` and ``mymodule:MyLoss(width=2)``."""

from __future__ import annotations

import re
from typing import Any

from ltr.checks import imported, nearest, without_spaces

_GRAMMAR = re.compile(r"(?P<name>[\w.]+(?::[\w.]+)?)(?:\((?P<options>.*)\))?")
_OPEN, _CLOSE = "([{", ")]}"


def read_call(what: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the name in a text such as ``name(option=value,...)``, and its options as texts.

    White space around words and numbers is ignored.

    Raises:
        ValueError: another text; the message begins with `what`.

    Examples:
        >>> read_call("loss", "smooth(statistic = dcg(base=e)@10, temperature=0.1)")
        ('smooth', ('statistic=dcg(base=e)@10', 'temperature=0.1'))
        >>> read_call("loss", "mymodule:MyLoss")
        ('mymodule:MyLoss', ())
    """
    match = _GRAMMAR.fullmatch(without_spaces(text))
    if match is None:
        raise ValueError(f"{what} must read name or name(option=value,...), got {text!r}")
    return match["name"], () if match["options"] is None else tuple(split_at_commas(match["options"]))


def split_at_commas(text: str) -> list[str]:
    """Return the parts of a text between its commas; those in brackets separate nothing.

    Examples:
        >>> split_at_commas("ranknet,my:Net(hidden=(64,32),rate=0.1)")
        ['ranknet', 'my:Net(hidden=(64,32),rate=0.1)']
    """
    parts, depth = [""], 0
    for letter in text:
        if letter == "," and depth == 0:
            parts.append("")
            continue
        depth = max(0, depth + (letter in _OPEN) - (letter in _CLOSE))
        parts[-1] += letter
    return parts


def named_object(what: str, path: str) -> Any:  # noqa: ANN401 (a class or any other object)
    """Return what an import path such as ``mymodule:MyLoss`` names.

    Raises:
        ValueError: a module that cannot be imported, or that has no such name; the message begins with `what`.
    """
    module, _, name = path.partition(":")
    found: Any = imported(what, module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{what}: module {module!r} has no {name!r}{nearest(part, dir(found))}")
        found = getattr(found, part)
    return found
