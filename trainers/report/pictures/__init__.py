"""The figures of a report: each subject a section, left out where the sweep has no data for it."""

from trainers.report.evidence import Evidence
from trainers.report.page import Section, Text
from trainers.report.pictures.search import gap_pictures, trace_pictures
from trainers.report.pictures.values import (
    card_pictures,
    choice_pictures,
    gain_pictures,
    list_pictures,
    method_pictures,
    option_pictures,
)

_SUBJECTS = (
    (
        "Gain of the exact stage by K",
        "The gain of reranking the top K over the base ranker, on the training sets and on the test sets.",
        gain_pictures,
    ),
    (
        "Promised gain and gain that came",
        "What the choice on the training set promised for new data, and what came.",
        choice_pictures,
    ),
    (
        "Training against test",
        "Methods further to the right fit the training set better; methods further up are better on the test set.",
        method_pictures,
    ),
    (
        "Gap over time",
        "The largest possible distance from the answer to the best one, while the exact stage runs.",
        gap_pictures,
    ),
    (
        "Objective and bound over time",
        "The answer rises and the bound falls; where they meet, the answer is proven optimal.",
        trace_pictures,
    ),
    ("Cards of the first split", "Questions and points, and what each total means.", card_pictures),
    ("Ranked lists", "The places of the positives before and after reranking.", list_pictures),
    ("Values along an option", "The effect of one option of the exact stage, all others held.", option_pictures),
)


def pictures(evidence: Evidence) -> list[Section]:
    """Draw what a sweep has found so far."""
    drawn = ((title, text, list(draw(evidence))) for title, text, draw in _SUBJECTS)
    return [Section(title, [Text(text), *found]) for title, text, found in drawn if found]
