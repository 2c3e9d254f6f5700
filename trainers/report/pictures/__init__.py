"""The figures of a report: each subject a section, left out where the sweep has no data for it."""

from trainers.report.evidence import Evidence
from trainers.report.page import Section, Text
from trainers.report.pictures.search import trace_pictures
from trainers.report.pictures.values import card_pictures, gain_pictures

_SUBJECTS = (
    (
        "Gain of the exact stage by K",
        "The gain of reranking the top K over the base ranker, on the training sets and on the test sets.",
        gain_pictures,
    ),
    (
        "Objective and bound over time",
        "The answer rises and the bound falls; where they meet, the answer is proven optimal.",
        trace_pictures,
    ),
    ("Cards of the first split", "Questions and points, and what each total means.", card_pictures),
)


def pictures(evidence: Evidence) -> list[Section]:
    """Draw what a sweep has found so far."""
    drawn = ((title, text, list(draw(evidence))) for title, text, draw in _SUBJECTS)
    return [Section(title, [Text(text), *found]) for title, text, found in drawn if found]
