r"""Losses for times until an event: ``loss(scores, time, event, *, weight=None, qid=None)``.

Row i is comparable with row k if i has an event and ``t_i < t_k``, or ``t_i = t_k`` and k is censored (`ltr.outcomes`).

*No pairs are listed.* Number the times upwards from 0, events before censored rows of the same time. Two different
numbers agree on their leading binary digits and then differ in one. So for each digit, the rows that agree on all
digits before it are a list of two classes: rows with an event and digit 0 belong above all rows of digit 1. Every
comparable pair is in exactly one of these lists, and `ltr.losses` has their losses in near-linear time. n rows take at
most ceil(log2 n) digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ltr.checks import one_of
from ltr.losses.arithmetic import grouped_logsumexp
from ltr.losses.pairwise import TwoFieldLoss, check_rows, two_class_loss

TiesName = Literal["efron", "breslow"]
"""How Cox's partial likelihood treats events at the same time."""


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
        """Return the loss, 0-D.

        Args:
            scores: a higher score means an earlier event, floating point, ``(rows,)``.
            time: when the event happened, or when the row was last seen, ``(rows,)``.
            event: whether the event happened: booleans, or 0 and 1, ``(rows,)``.
            weight: nonnegative weight of each row, ``(rows,)``.
            qid: integers, the list of each row (a stratum); only rows of one list are compared, ``(rows,)``.
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
        at_risk = _running_logsumexp(s + w.log(), group)[last]  # log R of each time
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
    tie = torch.unique_consecutive(torch.stack([group, order]), dim=1, return_counts=True)[1].cumsum(0) - 1
    ends = torch.bincount(group).cumsum(0) - 1
    tie_number = torch.zeros_like(rows)
    tie_number[tie[:-1] + 1] = 1
    later = after[tie[tie_number.cumsum(0)]] - after[ends[group]]
    return (w * later.clamp(min=0.0))[event[rows]].sum()


def _by_list(group: Tensor) -> Iterator[slice]:
    ends = torch.bincount(group).cumsum(0).tolist()
    return (slice(first, end) for first, end in zip([0, *ends], ends, strict=False))


def _running_logsumexp(x: Tensor, group: Tensor) -> Tensor:
    """Return ``log sum exp`` of each row and those before it in its list; `group` is descending."""
    return torch.cat([x[one].logcumsumexp(0) for one in _by_list(int(group[0]) - group)])
