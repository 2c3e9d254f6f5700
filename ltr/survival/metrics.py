"""The concordance of scores with times until an event."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ltr.outcomes import Times, checked_scores


def c_index(scores: ArrayLike, y: Any) -> float:  # noqa: ANN401 (labels of any kind)
    """Return Harrell's C, the share of comparable pairs in which the row with the earlier event has the larger score.

    A pair of equal scores counts half. Row i is comparable with row k if i has an event and ``t_i < t_k``, or
    ``t_i = t_k`` and k is censored. Time is O(n log n).

    Source: Harrell, Califf, Pryor, Lee & Rosati, *Evaluating the yield of medical tests* (1982).

    Args:
        scores: a higher score means an earlier event, finite, (n,).
        y: labels of `survival_labels`, or `Times`, (n,).

    Raises:
        ValueError: anything else, or labels without a comparable pair.

    Examples:
        >>> from ltr.survival import survival_labels
        >>> c_index([2, 2, 1, 9], survival_labels([5, 3, 3, 1], [1, 1, 0, 0]))
        0.75
    """
    times = y if isinstance(y, Times) else Times.of(y)
    return times.c_index(checked_scores(scores, times))
