"""A ranked list as an answer: whom to visit, how many hits to expect, and why; `ltr.rank` makes it.

`make_answer` puts together what a fitted ranker and labelled rows say about a list, as an `Answer` of plain
data; `as_text` and `as_html` show it.
"""

from __future__ import annotations

from ltr.answer.answer import Answer, Curve, Entry, Learned, Rows, make_answer, ranked_by, scorer_of, warnings_of
from ltr.answer.evidence import Evidence, Found, Interval
from ltr.answer.page import as_html, as_text, curve_table, drawn, headline
from ltr.answer.proven import FrontPointOnList, ListFront, RowRanges
from ltr.answer.reasons import Reason, Typical, cell_text, effects, typical_cells

__all__ = [
    "Answer",
    "Curve",
    "Entry",
    "Evidence",
    "Found",
    "FrontPointOnList",
    "Interval",
    "Learned",
    "ListFront",
    "Reason",
    "RowRanges",
    "Rows",
    "Typical",
    "as_html",
    "as_text",
    "cell_text",
    "curve_table",
    "drawn",
    "effects",
    "headline",
    "make_answer",
    "ranked_by",
    "scorer_of",
    "typical_cells",
    "warnings_of",
]
