"""Metrics of scores for treatments.

With N_1 treated rows and N_0 others, ``z = y t / N_1 - y (1 - t) / N_0`` adds up to the mean effect. Among the k rows
with the largest scores, let Y_1 and Y_0 be the sums of the outcomes of treated rows and others. The uplift curve at k
is ``Y_1 / N_1 - Y_0 / N_0``, a sum of z, and the Qini curve N_1 times that. Equal scores share a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.outcomes import Treatments, checked_scores, effect_interval

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class UpliftCurve:
    """What is gained by treating the rows with the largest scores.

    Attributes:
        rows: numbers of rows k, ascending from 0, (m,).
        value: value of the curve at each, (m,).
    """

    rows: IntArray
    value: FloatArray

    @property
    def area(self) -> float:
        """The area under the straight lines between the points, over k."""
        return float(np.diff(self.rows) @ (self.value[1:] + self.value[:-1]) / 2)


def uplift_curve(scores: ArrayLike, y: Any) -> UpliftCurve:  # noqa: ANN401 (labels of any kind)
    """Return the uplift curve.

    Args:
        scores: a higher score means a larger effect of the treatment, finite, (n,).
        y: labels of `uplift_labels`, or `Treatments`, (n,).

    Raises:
        ValueError: anything else, or labels without treated rows, or without others.

    Examples:
        >>> from ltr.uplift import uplift_labels
        >>> curve = uplift_curve([3, 2, 2], uplift_labels([1, 0, 1], [1, 1, 0]))
        >>> curve.rows.tolist(), curve.value.tolist()
        ([0, 1, 3], [0.0, 0.5, -0.5])
    """
    data = _treatments(y)
    found = checked_scores(scores, data)
    order = np.argsort(-found, kind="stable")
    treated, outcome = data.treatment[order], data.outcome[order]
    value = np.cumsum(np.where(treated, outcome, 0.0)) / data.sizes[0]
    value -= np.cumsum(np.where(treated, 0.0, outcome)) / data.sizes[1]
    ends = np.flatnonzero(np.append(np.diff(found[order]) != 0, True))
    return UpliftCurve(np.append(0, ends + 1), np.append(0.0, value[ends]))


def qini_curve(scores: ArrayLike, y: Any) -> UpliftCurve:  # noqa: ANN401
    """Return the Qini curve, the uplift curve in outcomes of treated rows; arguments are those of `uplift_curve`.

    Examples:
        >>> from ltr.uplift import uplift_labels
        >>> qini_curve([3, 2, 2], uplift_labels([1, 0, 1], [1, 1, 0])).value.tolist()
        [0.0, 1.0, -1.0]
    """
    data = _treatments(y)
    curve = uplift_curve(scores, data)
    return UpliftCurve(curve.rows, curve.value * data.sizes[0])


def auuc(scores: ArrayLike, y: Any) -> float:  # noqa: ANN401
    """Return the area under the uplift curve, ``1/n sum_i z_i (rank_i - 1/2)``, half the effect for a random order.

    Arguments are those of `uplift_curve`.

    Examples:
        >>> from ltr.uplift import uplift_labels
        >>> round(auuc([3, 2, 1], uplift_labels([1, 0, 1], [1, 1, 0])), 6)
        0.25
    """
    data = _treatments(y)
    return data.auuc(checked_scores(scores, data))


def qini(scores: ArrayLike, y: Any) -> float:  # noqa: ANN401
    """Return the Qini coefficient, `auuc` less half the effect, so that a random order has 0.

    Examples:
        >>> from ltr.uplift import uplift_labels
        >>> round(qini([3, 2, 1], uplift_labels([1, 0, 1], [1, 1, 0])), 6)
        0.5
    """
    data = _treatments(y)
    return auuc(scores, data) - data.effect / 2


@dataclass(frozen=True)
class TopEffect:
    """The effect of the treatment among the rows with the largest scores.

    Attributes:
        share: the share of rows that was asked for.
        rows: the number of rows, with all those of the last score.
        effect: the difference of the mean outcomes of treated rows and others; NaN where one of them has no rows.
        lower: lower end of its interval; NaN where unknown.
        upper: upper end of its interval; NaN where unknown.
    """

    share: float
    rows: int
    effect: float
    lower: float
    upper: float


def effect_by_top_share(
    scores: ArrayLike,
    y: Any,  # noqa: ANN401 (labels of any kind)
    shares: Sequence[float] = (0.1, 0.2, 0.3, 0.5, 1.0),
    *,
    level: float = 0.95,
) -> list[TopEffect]:
    """Return the effect of the treatment among the top shares of rows, each with its interval.

    The interval of outcomes 0 and 1 is Newcombe's, that of others the normal one; they are pointwise.

    Args:
        scores: a higher score means a larger effect of the treatment, finite, (n,).
        y: labels of `uplift_labels`, or `Treatments`, (n,).
        shares: shares of rows, above 0 and up to 1.
        level: probability of the intervals, between 0 and 1.

    Raises:
        ValueError: anything else.

    Examples:
        >>> from ltr.uplift import uplift_labels
        >>> [top] = effect_by_top_share([4, 3, 2, 1], uplift_labels([1, 0, 1, 0], [1, 0, 0, 1]), [0.5])
        >>> top.rows, top.effect
        (2, 1.0)
    """
    data = _treatments(y)
    found = checked_scores(scores, data)
    if not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95, got {level}")
    ordered, effects = np.sort(found)[::-1], []
    for share in shares:
        if not 0 < share <= 1:
            raise ValueError(f"shares must be numbers above 0 and up to 1, got {share}")
        top = found >= ordered[max(int(np.ceil(share * len(found) - 1e-9)), 1) - 1]
        outcome, treatment = data.outcome[top], data.treatment[top]
        effect = lower = upper = float("nan")
        interval = effect_interval(outcome, treatment, level)
        if interval is not None:
            effect, lower, upper = interval
        elif treatment.any() and not treatment.all():
            effect = float(outcome[treatment].mean() - outcome[~treatment].mean())
        effects.append(TopEffect(share, int(top.sum()), effect, lower, upper))
    return effects


def _treatments(y: Any) -> Treatments:  # noqa: ANN401
    return y if isinstance(y, Treatments) else Treatments.of(y)
