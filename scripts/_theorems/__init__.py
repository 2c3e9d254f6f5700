"""The paper's theorems and definitions as sections of a page, everything in them computed."""

from __future__ import annotations

from collections.abc import Callable

from trainers.report.page import Section

from .first import first_theorem
from .ranks import rank_definitions
from .second import second_theorem
from .statements import statements

__all__ = ["theorems"]


def theorems(say: Callable[[str], None] = lambda text: None) -> list[Section]:
    """All sections; takes about a minute.

    Args:
        say: told what is computed next.
    """
    say("theorem 1")
    sections = first_theorem()
    say("rank definitions")
    sections.append(rank_definitions())
    say("Subranks and ResolvedRanks")
    sections += second_theorem()
    say("other statements")
    return [*sections, statements()]
