"""The pictures of a report on a sweep: each subject a section, left out where the sweep has no data for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainers.report.evidence import Evidence
from trainers.report.page import Picture, Section, Text
from trainers.report.pictures.limit_pictures import limit_pictures
from trainers.report.pictures.list_pictures import roc_pictures, strip_pictures
from trainers.report.pictures.time_pictures import gap_pictures, trace_pictures
from trainers.report.pictures.value_pictures import gain_pictures, method_pictures, option_pictures

__all__ = ["pictures"]


@dataclass(frozen=True)
class _Subject:
    title: str
    text: str
    draw: Callable[[Evidence], Iterator[Picture]]


_SUBJECTS = (
    _Subject(
        "Gain of the exact stage by K",
        "What reranking the top K adds to the base ranker, on the half it is fitted to and on the other.",
        gain_pictures,
    ),
    _Subject(
        "Train against test",
        "Further right fits the training half better, further up holds on the test half.",
        method_pictures,
    ),
    _Subject(
        "Gap over time",
        "How far the answer could be from the best there is, as the exact stage goes on.",
        gap_pictures,
    ),
    _Subject(
        "Objective and bound over time",
        "The answer rises, the bound falls; where they meet, the answer is proven optimal.",
        trace_pictures,
    ),
    _Subject("Ranked lists", "Where the positives stand before and after reranking.", strip_pictures),
    _Subject(
        "The top end of the ROC curve",
        "What share of the positives stands above all but a few of the negatives.",
        roc_pictures,
    ),
    _Subject("Options of the exact stage", "What an option changes, all others held.", option_pictures),
    _Subject("What time buys", "The same lists, solved with a short and with a long time limit.", limit_pictures),
)


def pictures(evidence: Evidence) -> list[Section]:
    """The pictures of whatever a sweep has found so far."""
    sections = []
    for subject in _SUBJECTS:
        if drawn := list(subject.draw(evidence)):
            sections.append(Section(subject.title, [Text(subject.text), *drawn]))
    return sections
