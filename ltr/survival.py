r"""Times until an event: metrics, curves, and losses ``loss(scores, time, event, *, weight=None, qid=None)``.

A higher score means an earlier event. `ltr.outcomes` defines which rows are comparable. Metrics are computed by NumPy
from the labels of `survival_labels`, losses by torch from tensors of times and events.

*Metrics.* ``G(t)``, the chance of being seen beyond t without being censored, is the Kaplan-Meier estimate of the times
of censoring, in which an event at t comes before a censoring at t. A row with an event at t stands for ``1 / G(t)``
rows.

*Losses list no pairs.* Number the times upwards from 0, events before censored rows of the same time. Two different
numbers agree on their leading binary digits and then differ in one. So for each digit, the rows that agree on all
digits before it are a list of two classes: rows with an event and digit 0 belong above all rows of digit 1. Every
comparable pair is in exactly one of these lists, and `ltr.losses` has their losses in near-linear time. n rows take at
most ceil(log2 n) digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ltr.checks import as_numbers, one_of
from ltr.losses.arithmetic import grouped_logsumexp
from ltr.losses.pairwise import TwoFieldLoss, check_rows, two_class_loss
from ltr.outcomes import FloatArray, KaplanMeier, Times, checked_scores, kaplan_meier, survival_labels

__all__ = [
    "ConcordanceLoss",
    "CoxLoss",
    "DynamicAUC",
    "KaplanMeier",
    "Times",
    "c_index",
    "cumulative_dynamic_auc",
    "kaplan_meier",
    "survival_labels",
    "uno_c_index",
]

TiesName = Literal["efron", "breslow"]
"""How Cox's partial likelihood treats events at the same time."""


# metrics


def c_index(scores: ArrayLike, y: Any) -> float:  # noqa: ANN401 (labels of any kind)
    """Return Harrell's C, the share of comparable pairs in which the row with the earlier event has the larger score.

    Scores are finite, (n,), y are labels of `survival_labels`, (n,). A pair of equal scores counts half.

    Examples:
        >>> c_index([2, 2, 1, 9], survival_labels([5, 3, 3, 1], [1, 1, 0, 0]))
        0.75
    """
    times = Times.of(y)
    return times.c_index(checked_scores(scores, times))


def uno_c_index(scores: ArrayLike, y: Any, *, train: Any = None, tau: float | None = None) -> float:  # noqa: ANN401 (labels of any kind)
    """Return Uno's C, in which a pair has the weight ``1 / G(t_i)^2`` of its earlier row.

    Harrell's C depends on how rows are censored; this one estimates the same number whatever the censoring. Pairs are
    those of `c_index` with ``t_i < tau``, or all. G is estimated from the labels `train`, None for `y`. Raises
    ValueError without a comparable pair, or for an event at a time for which the rows of `train` give no G > 0.

    Source: Uno, Cai, Pencina, D'Agostino & Wei, *On the C-statistics for evaluating overall adequacy of risk prediction
    procedures with censored survival data* (2011).

    Examples:
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


def cumulative_dynamic_auc(scores: ArrayLike, y: Any, times: ArrayLike, *, train: Any = None) -> DynamicAUC:  # noqa: ANN401 (labels of any kind)
    """Return, for each time t, the chance that a row with an event by t has a larger score than a row without one by t.

    ``AUC(t) = sum over i, k of w_i (1[s_i > s_k] + 1[s_i = s_k] / 2) / (sum of w_i * number of k)`` over rows i with an
    event and ``t_i <= t`` of weight ``w_i = 1 / G(t_i)``, and rows k with ``t_k > t``. The `times` ascend, (m,), each
    with an event before or at it and a row seen beyond it; `train` and errors are those of `uno_c_index`.

    Source: Uno, Cai, Tian & Wei, *Evaluating prediction rules for t-year survivors with censored regression models*
    (2007).

    Examples:
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
    found = []
    for t in at:
        case, control = counted & (labels.time <= t), labels.time > t
        controls = np.bincount(level[control], minlength=int(level.max()) + 1)
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


# losses


class ConcordanceLoss(TwoFieldLoss):
    r"""A convex surrogate of ``1 - C``: the weighted mean of φ(s_i - s_k) over the comparable pairs.

    The value is ``sum of w_i w_k φ(s_i - s_k)``, divided by the sum of ``w_i w_k`` with ``pairs="mean"``. Without a
    comparable pair the value and the gradient are 0. Time is O(n log^2 n). Half precision is raised to float32.

    Source: Steck, Krishnapuram, Dehing-oberije, Lambin & Raykar, *On Ranking in Survival Analysis: Bounds on the
    Concordance Index* (2007).

    Args:
        pair: φ: ``"ranknet"`` log(1 + exp(-z)), ``"hinge"`` max(0, 1 - z), ``"squared_hinge"`` max(0, 1 - z)^2 or
            ``"exponential"`` exp(-z).
        pairs: ``"mean"`` or ``"sum"`` over the comparable pairs.

    Examples:
        >>> loss = ConcordanceLoss("hinge")
        >>> scores = torch.tensor([0.0, 0.5, 2.0])
        >>> loss(scores, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0, 0]))  # (1.5 + 3) / 2
        tensor(2.2500)
    """

    def forward(
        self, scores: Tensor, time: Tensor, event: Tensor, *, weight: Tensor | None = None, qid: Tensor | None = None
    ) -> Tensor:
        """Return the loss, 0-D, of one value per row in each argument, ``(rows,)``.

        The event, booleans or 0 and 1, happened at the time, or else the row was last seen then. Weights are >= 0; only
        rows of one list (a stratum) are compared, of which `qid` has the integer.
        """
        event = _checked_events(scores, time, event, weight, qid)
        with torch.no_grad():
            rows, order, group = _ordered(time, event, qid)
            total = _pair_weight(rows, order, group, event, weight)
        value = (scores * 0.0).sum()
        if not bool(total > 0):
            return value
        digits = int(order.max()).bit_length()
        for digit in range(digits):
            late = (order >> digit & 1).bool()
            kept = (late | event[rows]).nonzero().squeeze(-1)
            at, block = rows[kept], (group[kept] << digits) + (order[kept] >> digit + 1)
            own = None if weight is None else weight[at]
            value = value + two_class_loss(
                self.pair, scores[at], ~late[kept], block, own, total if self.pairs == "mean" else None
            )
        return value


class CoxLoss(nn.Module):
    r"""Negative logarithm of Cox's partial likelihood, the weighted mean over events.

    Breslow: ``sum over events of w_i (log sum over k with t_k >= t_i of w_k exp(s_k) - s_i) / sum of w_i``. Efron: the
    d events of one time have the denominators ``R - (l / d) D`` for l = 0..d-1, where D is their own part of the sum R,
    and the mean of their weights. Without an event the value and the gradient are 0. Time is O(n log n).

    Source: Cox, *Partial likelihood* (1975); Efron, *The efficiency of Cox's likelihood function for censored data*
    (1977).

    Args:
        ties: ``"efron"`` or ``"breslow"``, for events at the same time.

    Examples:
        >>> loss = CoxLoss()
        >>> scores = torch.tensor([0.0, 0.0, 0.0])
        >>> round(loss(scores, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 1, 0])).item(), 4)  # (log 3 + log 2) / 2
        0.8959
    """

    def __init__(self, ties: TiesName = "efron") -> None:
        super().__init__()
        self.ties = one_of("ties", ties, get_args(TiesName))

    def extra_repr(self) -> str:
        """Return the options."""
        return f"ties={self.ties!r}"

    def forward(
        self, scores: Tensor, time: Tensor, event: Tensor, *, weight: Tensor | None = None, qid: Tensor | None = None
    ) -> Tensor:
        """Return the loss, 0-D; arguments are those of `ConcordanceLoss`, and each list has its own baseline hazard."""
        event = _checked_events(scores, time, event, weight, qid)
        weight = torch.ones_like(scores) if weight is None else weight
        real = weight > 0
        if not bool((event & real).any()):
            return (scores * 0.0).sum()
        given = scores[real].float() if scores.dtype in (torch.float16, torch.bfloat16) else scores[real]
        time, event, weight = time[real], event[real], weight[real].to(torch.float64)
        with torch.no_grad():
            rows, _, group = _ordered(time, torch.zeros_like(event), None if qid is None else qid[real])
        rows, group = rows.flip(0), group.flip(0)  # the latest first, so that sums go over those still to come
        s, w, t, e = given[rows].double(), weight[rows], time[rows], event[rows]
        new = torch.ones_like(e)
        new[1:] = (t[1:] != t[:-1]) | (group[1:] != group[:-1])
        tie = new.long().cumsum(0) - 1  # number of the time of each row
        last = torch.bincount(tie).cumsum(0) - 1
        sizes = torch.unique_consecutive(group, return_counts=True)[1].tolist()
        at_risk = torch.cat([part.logcumsumexp(0) for part in (s + w.log()).split(sizes)])[last]  # log R of each time
        count = torch.zeros_like(at_risk).index_add_(0, tie, e.double())
        share = torch.zeros_like(at_risk).index_add_(0, tie, w * e)  # the weight of the events
        at = tie[e]
        below = at_risk[at]
        if self.ties == "efron":
            mean = share[at] / count[at]
            before = torch.cumsum(torch.ones_like(mean), 0) - 1  # events before this one, in any time
            first = torch.zeros_like(count)
            first[1:] = count.cumsum(0)[:-1]
            part = (before - first[at]) / count[at]
            own = grouped_logsumexp(s[e] + w[e].log(), at, len(count))[0][at]
            gap = own - below
            gap = gap - gap.detach().clamp(min=0.0)  # not above 0 by rounding
            below = below + torch.log1p(-part * torch.exp(gap))
            value = (mean * below).sum() - (w[e] * s[e]).sum()
        else:
            value = (w[e] * (below - s[e])).sum()
        return (value / w[e].sum()).to(given.dtype)


def _checked_events(scores: Tensor, time: Tensor, event: Tensor, weight: Tensor | None, qid: Tensor | None) -> Tensor:
    event = check_rows(scores, {"time": time}, {"event": event}, weight, qid)
    if not bool((time >= 0).all()):
        raise ValueError("time must hold finite numbers >= 0, got a negative one")
    return event


def _ordered(time: Tensor, event: Tensor, qid: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows by list and time, for each the number of its time in its list, and that of its list."""
    rows = torch.argsort(~event, stable=True)
    rows = rows[torch.argsort(time[rows], stable=True)]
    group = torch.zeros_like(rows)
    if qid is not None:
        rows = rows[torch.argsort(qid[rows], stable=True)]
        group = torch.unique_consecutive(qid[rows], return_inverse=True)[1]
    new = torch.zeros_like(rows)
    t, e = time[rows], event[rows]
    new[1:] = ((t[1:] != t[:-1]) | (e[1:] != e[:-1]) | (group[1:] != group[:-1])).long()
    order = new.cumsum(0)
    if len(order):
        starts = torch.bincount(group).cumsum(0).roll(1)
        starts[0] = 0
        order = order - order[starts][group]
    return rows, order, group


def _pair_weight(rows: Tensor, order: Tensor, group: Tensor, event: Tensor, weight: Tensor | None) -> Tensor:
    """Return the sum of ``w_i w_k`` over the comparable pairs; arguments are those of `_ordered`."""
    w = torch.ones(len(rows), dtype=torch.float64, device=rows.device) if weight is None else weight[rows].double()
    if not len(rows):
        return w.sum()
    after = w.sum() - w.cumsum(0)  # of the rows behind each
    _, tie, counts = torch.unique_consecutive(
        torch.stack([group, order]), dim=1, return_inverse=True, return_counts=True
    )
    last_of_tie, last_of_list = counts.cumsum(0) - 1, torch.bincount(group).cumsum(0) - 1
    later = after[last_of_tie[tie]] - after[last_of_list[group]]
    return (w * later.clamp(min=0.0))[event[rows]].sum()
