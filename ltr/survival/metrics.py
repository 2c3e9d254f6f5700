r"""Metrics of scores for times until an event.

``G(t)``, the chance of being seen beyond t without being censored, is the Kaplan-Meier estimate of the times of
censoring, in which an event at t comes before a censoring at t. A row with an event at t stands for ``1 / G(t)`` rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_numbers
from ltr.outcomes import FloatArray, Times, checked_scores, kaplan_meier


def c_index(scores: ArrayLike, y: Any) -> float:  # noqa: ANN401 (labels of any kind)
    """Return Harrell's C, the share of comparable pairs in which the row with the earlier event has the larger score.

    A pair of equal scores counts half; `ltr.outcomes` says which are comparable. Time is O(n log n).

    Args:
        scores: a higher score means an earlier event, finite, (n,).
        y: labels of `survival_labels`, or `Times`, (n,).

    Examples:
        >>> from ltr.survival import survival_labels
        >>> c_index([2, 2, 1, 9], survival_labels([5, 3, 3, 1], [1, 1, 0, 0]))
        0.75
    """
    times = Times.of(y)
    return times.c_index(checked_scores(scores, times))


def uno_c_index(
    scores: ArrayLike,
    y: Any,  # noqa: ANN401 (labels of any kind)
    *,
    train: Any = None,  # noqa: ANN401
    tau: float | None = None,
) -> float:
    """Return Uno's C, in which a pair has the weight ``1 / G(t_i)^2`` of its earlier row.

    Harrell's C depends on how rows are censored; this one estimates the same number whatever the censoring. Pairs are
    those of `c_index` with ``t_i < tau``, or all. G is estimated from the labels `train`, None for `y`.

    Source: Uno, Cai, Pencina, D'Agostino & Wei, *On the C-statistics for evaluating overall adequacy of risk prediction
    procedures with censored survival data* (2011).

    Raises:
        ValueError: no comparable pair before `tau`, or an event at a time for which the rows of `train` give no G > 0.

    Examples:
        >>> from ltr.survival import survival_labels
        >>> y = survival_labels([1, 2, 3, 4], [1, 0, 1, 1])
        >>> round(uno_c_index([4, 3, 1, 2], y), 4)  # G = 1, 2/3, 2/3: 3 of 3 pairs, and 0 of 1 of weight 9/4
        0.5714
    """
    times = Times.of(y)
    below, equal = times.later_below(checked_scores(scores, times))
    counted = times.event if tau is None else times.event & (times.time < as_numbers("tau", [tau])[0])
    weight = _inverse_chances(times if train is None else Times.of(train), times, counted) ** 2
    total = weight @ times.later
    if total == 0:
        raise ValueError(f"tau must be above the time of an event before that of another row, got {tau}")
    return float(weight @ (below + 0.5 * equal) / total)


@dataclass(frozen=True, eq=False)
class DynamicAUC:
    """The area under the ROC curve of events by each of some times, (m,).

    The `mean` weights each area by the fall of the Kaplan-Meier curve since the time before.
    """

    times: FloatArray
    auc: FloatArray
    mean: float


def cumulative_dynamic_auc(
    scores: ArrayLike,
    y: Any,  # noqa: ANN401 (labels of any kind)
    times: ArrayLike,
    *,
    train: Any = None,  # noqa: ANN401
) -> DynamicAUC:
    """Return, for each time t, the chance that a row with an event by t has a larger score than a row without one by t.

    ``AUC(t) = sum over i, k of w_i (1[s_i > s_k] + 1[s_i = s_k] / 2) / (sum of w_i * number of k)`` over rows i with an
    event and ``t_i <= t`` of weight ``w_i = 1 / G(t_i)``, and rows k with ``t_k > t``.

    Source: Uno, Cai, Tian & Wei, *Evaluating prediction rules for t-year survivors with censored regression models*
    (2007).

    The `times` ascend, (m,), each with an event before or at it and a row seen beyond it. G is estimated from the
    labels `train`, None for `y`.

    Raises:
        ValueError: an event at a time for which the rows of `train` give no G > 0.

    Examples:
        >>> from ltr.survival import survival_labels
        >>> y = survival_labels([1, 2, 3, 4], [1, 1, 1, 0])
        >>> cumulative_dynamic_auc([4, 1, 3, 2], y, [1, 2]).auc.tolist()
        [1.0, 0.5]
    """
    labels = Times.of(y)
    _, level = np.unique(checked_scores(scores, labels), return_inverse=True)
    at = as_numbers("times", times)
    if at.ndim != 1 or not at.size or not np.all(np.isfinite(at)) or np.any(np.diff(at) <= 0):
        raise ValueError(f"times must be an ascending sequence of at least one finite number, got {at.tolist()}")
    first = labels.time[labels.event].min()
    for wrong in at[(at < first) | (at >= labels.time.max())]:
        rule = f"lie between the first event ({first:g}) and before the last time ({labels.time.max():g}) of y"
        raise ValueError(f"times must {rule}, so that there are rows on both sides, got {wrong:g}")
    counted = labels.event & (labels.time <= at[-1])
    weight = _inverse_chances(labels if train is None else Times.of(train), labels, counted)
    level, size, found = level.reshape(-1), int(level.max()) + 1, []
    for t in at:
        case, control = counted & (labels.time <= t), labels.time > t
        controls = np.bincount(level[control], minlength=size)
        wins = np.cumsum(controls) - 0.5 * controls
        found.append(weight[case] @ wins[level[case]] / (weight[case].sum() * control.sum()))
    falls = -np.diff(kaplan_meier(labels.time, labels.event).at(at), prepend=1.0)
    return DynamicAUC(at, np.array(found), float(falls @ found / falls.sum()))


def _inverse_chances(train: Times, times: Times, counted: NDArray[np.bool_]) -> FloatArray:
    """Return ``1 / G(t_i)`` of the counted rows, 0 for others."""
    # the order has events before rows that are censored at the same time
    chances = kaplan_meier(train.order, ~train.event)
    last = np.zeros(int(train.order.max()) + 1)
    last[train.order] = train.time
    of_time = np.concatenate([[1.0], chances.share])
    found = of_time[np.searchsorted(last[chances.time.astype(np.int64)], times.time, "right")]
    unknown = counted & ((found == 0) | ((times.time > train.time.max()) & (found > 0)))
    if unknown.any():
        row = int(np.argmax(unknown))
        raise ValueError(
            f"train must have rows that are seen beyond every event of y, got an event at {times.time[row]:g} (row "
            f"{row}); pass tau, or leave out such rows"
        )
    return np.where(counted, 1 / np.where(counted, found, 1.0), 0.0)
