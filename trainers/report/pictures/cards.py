"""Pictures of the cards that a sweep has found."""

from __future__ import annotations

from collections.abc import Iterator

from ltr.cards import Card
from trainers.report.evidence import Evidence
from trainers.report.page import Picture


def card_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw the card of the first split of each data set and variant."""
    for series in evidence.cards:
        split = series.splits[0]
        card = Card.from_dict(series.records[split]["card"])
        asked = ", ".join(f"{question.name} ({p:+d})" for question, p in zip(card.questions, card.points, strict=True))
        caption = (
            f"{series.data}, {series.variant.label}, split {split}: {asked or 'no question'}. The bars show the share "
            "of positives at each total, on the training set and on the test set, with 90 % intervals."
        )
        yield Picture(f"{series.variant.label}_{series.data}", card.plot(), caption)
