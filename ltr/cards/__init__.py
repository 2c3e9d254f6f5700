"""Scoring systems that a person can use: few yes/no questions, small whole numbers of points, a proof of the ranking.

`Questions` turns a table with numbers, texts and missing values into yes/no questions. `CardRanker` finds the card,
points for at most k of these questions, whose totals have the largest rank statistic, and proves it. A `Card` is
applied, shown and saved; `Question` is one of its lines.

Examples:
    >>> import pandas as pd
    >>> from ltr.cards import CardRanker
    >>> table = pd.DataFrame({"age": [34, 71, 66, 25, 80, 49], "smoker": ["no", "yes", "no", None, "yes", "no"]})
    >>> ranker = CardRanker(max_questions=1).fit(table, [0, 1, 1, 0, 1, 0])
    >>> ranker.card_
    Card('age >= 66': +1; auc 1, optimal)
"""

from typing import TYPE_CHECKING, Any

from ltr.cards.card import Card, Counts
from ltr.cards.questions import Question, Questions

if TYPE_CHECKING:
    from ltr.cards.ranker import CardRanker, GoodCards

__all__ = ["Card", "CardRanker", "Counts", "GoodCards", "Question", "Questions"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (classes that load torch, which cards do without)
    if name in ("CardRanker", "GoodCards"):
        from ltr.cards import ranker

        return getattr(ranker, name)
    raise AttributeError(f"module 'ltr.cards' has no attribute {name!r}")
