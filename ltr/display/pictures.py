"""What all pictures share, from those of rankers to those of boards: colours, sizes, fonts, shortened names.

A colour means one thing wherever it appears: a method, a set, or the label of a row. The methods have the seven colours
of TensorBoard's charts, in its order, so that a method looks the same there.
"""

from __future__ import annotations

import contextlib
import functools
import unicodedata
from collections.abc import Iterator

INK, GREY, FAINT = "#22272c", "#6f7a85", "#e4e7ea"
"""Text and outlines, what is beside the point, and the lines of a grid."""
POSITIVE, NEGATIVE = "#b5341c", "#dfe3e8"
"""Rows by their label."""
RERANKED, TRAINING, TEST = "#0077bb", "#7fb9dd", "#00558a"
"""The exact stage; training and test sets, in pictures of one method."""
METHODS = ("#ff7043", RERANKED, "#cc3311", "#33bbee", "#ee3377", "#009988", "#8a949e")
"""Methods by place; the last is darker than in TensorBoard, where it is hard to see."""

WIDTH, TITLE, SMALL = 4.6, 10.0, 9.0
"""Inches of a picture, and points of its letters: a phone shows it with letters of ten pixels."""

_FALLBACKS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "WenQuanYi Zen Hei", "Source Han Sans", "Hiragino Sans",
    "PingFang SC", "Yu Gothic", "Microsoft YaHei", "SimHei", "Malgun Gothic", "Noto Sans", "Arial Unicode MS",
)  # fmt: skip


@functools.cache
def _families() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return ("DejaVu Sans", *(name for name in _FALLBACKS if name in installed))


@contextlib.contextmanager
def fonts() -> Iterator[None]:
    """Draw letters that matplotlib's own font lacks, such as Chinese ones, in a font of the system that has them."""
    import matplotlib

    with matplotlib.rc_context({"font.family": list(_families())}):
        yield


def letters(text: str) -> int:
    """Return how many letters wide a text is; Chinese, Japanese and Korean letters are two wide."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def shortened(text: str, most: int) -> str:
    """Return a text of at most this many letters, with the middle left out where it is longer.

    Examples:
        >>> shortened("systolic_blood_pressure_at_admission", 20)
        'systolic_b…admission'
    """
    if letters(text) <= most:
        return text
    head, tail = text, ""
    while letters(head) > (most - 1) - (most - 1) // 2:
        head = head[:-1]
    for letter in reversed(text):
        if letters(letter + tail) > (most - 1) // 2:
            break
        tail = letter + tail
    return f"{head}…{tail}"


def wrapped(text: str, most: int, lines: int = 2) -> str:
    """Return a text in a few lines of at most this many letters, broken between words, or shortened if it is longer."""
    found: list[str] = []
    while len(found) < lines - 1 and letters(text) > most:
        end = len(text)
        while letters(text[:end]) > most:
            end -= 1
        at = 1 + max(text.rfind(mark, 0, end) for mark in " _/=,")
        end = at if at > end // 2 else end
        found.append(text[:end].rstrip())
        text = text[end:].lstrip()
    return "\n".join([*found, shortened(text, most)])
