r"""Outcomes of treatments: metrics of scores, and losses ``loss(scores, outcome, treatment, *, weight=None)``.

A higher score means that the treatment does more for the row. Metrics are computed by NumPy from the labels of
`uplift_labels`, losses by torch from tensors of outcomes and treatments.

*Metrics* follow the definitions of three sources, which `docs/uplift.md` compares. Among the k rows with the largest
scores, let n_1 be the treated ones and n_0 the others, and Y_1 and Y_0 the sums of their outcomes; N_1, N_0 and N stand
for all rows. By ``"fixed"`` the uplift curve is ``Y_1 / N_1 - Y_0 / N_0``, and the Qini curve N_1 times this. By the
others they are ``k (Y_1 / n_1 - Y_0 / n_0)`` and ``Y_1 - Y_0 n_1 / n_0``. Curves have a point at each k where the score
changes, and straight lines between, which is the mean over the orders of equal scores for fixed group sizes. With
``"causalml"`` every row has a point, equal scores keep the order of the rows, and values are interpolated where n_1 or
n_0 is 0. A share ``0 / 0`` of an empty group is 0 with ``"scikit-uplift"``.

*The loss.* The area under the uplift curve with fixed group sizes is, up to a constant and a factor, the sum of
``z_i - z_k`` over the pairs with ``z_i > z_k`` and ``s_i > s_k``, where ``z = y t / N_1 - y (1 - t) / N_0``. The loss
has φ(s_i - s_k) in place of the step. No pairs are listed: number the distinct values of z upwards. As in
`ltr.survival`, the rows whose numbers agree on their leading binary digits are a list of two classes for the next
digit. With c, the largest z of the lower class, ``z_i - z_k = (z_i - c) 1 + 1 (c - z_k)``: two losses whose pairs have
the product of two weights.

Sources: Radcliffe, *Using control groups to target on predicted lift* (2007); Devriendt, Van Belle, Guns & Verbeke,
*Learning to rank for uplift modeling* (2020), for the area and LambdaMART; Athey & Imbens, *Recursive partitioning for
heterogeneous causal effects* (2016), for z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ltr.checks import one_of
from ltr.losses.pairwise import TwoFieldLoss, check_rows, two_class_loss
from ltr.outcomes import FloatArray, IntArray, Treatments, checked_scores, effect_interval, uplift_labels

__all__ = [
    "Definition",
    "TopEffect",
    "Treatments",
    "UpliftCurve",
    "UpliftLoss",
    "auuc",
    "effect_by_top_share",
    "qini",
    "qini_curve",
    "uplift_curve",
    "uplift_labels",
]

Definition = Literal["fixed", "scikit-uplift", "causalml"]
"""Whose definition of a curve and its area is taken."""


@dataclass(frozen=True, eq=False)
class UpliftCurve:
    """What is gained by treating the rows with the largest scores: their numbers, from 0 on, and the values, (m,)."""

    rows: IntArray
    value: FloatArray

    @property
    def area(self) -> float:
        """The area under the straight lines between the points, over k."""
        return float(np.diff(self.rows) @ (self.value[1:] + self.value[:-1]) / 2)


def uplift_curve(scores: ArrayLike, y: Any, *, definition: Definition = "fixed") -> UpliftCurve:  # noqa: ANN401
    """Return the uplift curve of finite scores, (n,), and the labels y of `uplift_labels`, (n,).

    Examples:
        >>> curve = uplift_curve([3, 2, 2], uplift_labels([1, 0, 1], [1, 1, 0]))
        >>> curve.rows.tolist(), curve.value.tolist()
        ([0, 1, 3], [0.0, 0.5, -0.5])
    """
    return _curve(scores, y, definition, per_treated=False)


def qini_curve(scores: ArrayLike, y: Any, *, definition: Definition = "fixed") -> UpliftCurve:  # noqa: ANN401
    """Return the Qini curve, the uplift curve in outcomes of treated rows; arguments are those of `uplift_curve`."""
    return _curve(scores, y, definition, per_treated=True)


def auuc(scores: ArrayLike, y: Any, *, definition: Definition = "fixed") -> float:  # noqa: ANN401
    """Return the area under the uplift curve; arguments are those of `uplift_curve`.

    By ``"fixed"`` that is ``1/n sum_i z_i (rank_i - 1/2)``, half the effect for a random order. The others are
    scikit-uplift's ``uplift_auc_score`` and causalml's ``auuc_score``.

    Examples:
        >>> round(auuc([3, 2, 1], uplift_labels([1, 0, 1], [1, 1, 0])), 6)
        0.25
    """
    data = Treatments.of(y)
    if definition == "fixed":
        return data.auuc(checked_scores(scores, data))
    curve = uplift_curve(scores, data, definition=definition)
    if definition == "causalml":
        return _share(float(curve.value.mean()), abs(float(curve.value[-1])))
    responders, treated = data.outcome == 1, data.treatment
    many = (responders & ~treated).sum() > (~responders & treated).sum()
    best = 2 * (responders == treated) + (responders if many else treated)
    return _share_of_best(curve, uplift_curve(best, data, definition=definition))


def qini(scores: ArrayLike, y: Any, *, definition: Definition = "fixed") -> float:  # noqa: ANN401
    """Return the Qini coefficient; arguments are those of `uplift_curve`.

    By ``"fixed"`` that is `auuc` less half the effect, so that a random order has 0. The others are scikit-uplift's
    ``qini_auc_score`` with ``negative_effect=True``, and causalml's ``qini_score``.
    """
    data = Treatments.of(y)
    if definition == "fixed":
        return auuc(scores, data) - data.effect / 2
    curve = qini_curve(scores, data, definition=definition)
    if definition == "causalml":
        return _share(float(curve.value.mean() - curve.value[-1] / 2), abs(float(curve.value[-1])))
    best = np.where(data.treatment, data.outcome, -data.outcome)
    return _share_of_best(curve, qini_curve(best, data, definition=definition))


@dataclass(frozen=True)
class TopEffect:
    """The effect of the treatment among the rows with the largest scores."""

    share: float  # of the rows, as it was asked for
    rows: int  # their number, with all rows of the last score
    effect: float  # difference of the mean outcomes of treated rows and others; NaN where one of them has no rows
    lower: float  # ends of its interval, NaN where unknown
    upper: float


def effect_by_top_share(
    scores: ArrayLike,
    y: Any,  # noqa: ANN401 (labels of any kind)
    shares: Sequence[float] = (0.1, 0.2, 0.3, 0.5, 1.0),
    *,
    level: float = 0.95,
) -> list[TopEffect]:
    """Return the effect of the treatment among the top shares of rows, each with its interval.

    The pointwise interval of the probability `level` is Newcombe's for outcomes 0 and 1, the normal one for others.
    Shares are above 0 and up to 1; other arguments are those of `uplift_curve`.

    Examples:
        >>> [top] = effect_by_top_share([4, 3, 2, 1], uplift_labels([1, 0, 1, 0], [1, 0, 0, 1]), [0.5])
        >>> top.rows, top.effect
        (2, 1.0)
    """
    data = Treatments.of(y)
    found = checked_scores(scores, data)
    if not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95, got {level}")
    ordered, effects = np.sort(found)[::-1], []
    for share in shares:
        if not 0 < share <= 1:
            raise ValueError(f"shares must be numbers above 0 and up to 1, got {share}")
        top = found >= ordered[max(int(np.ceil(share * len(found) - 1e-9)), 1) - 1]
        outcome, treatment = data.outcome[top], data.treatment[top]
        both = treatment.any() and not treatment.all()
        effect = float(outcome[treatment].mean() - outcome[~treatment].mean()) if both else math.nan
        interval = effect_interval(outcome, treatment, level) or (effect, math.nan, math.nan)
        effects.append(TopEffect(share, int(top.sum()), *interval))
    return effects


def _curve(scores: ArrayLike, y: Any, definition: Definition, *, per_treated: bool) -> UpliftCurve:  # noqa: ANN401
    one_of("definition", definition, get_args(Definition))
    data = Treatments.of(y)
    found = checked_scores(scores, data)
    if definition == "scikit-uplift" and not np.isin(data.outcome, (0, 1)).all():
        raise ValueError('y must have the outcomes 0 and 1 with definition="scikit-uplift", take "fixed" for others')
    order = np.argsort(-found, kind="stable")
    treated, outcome = data.treatment[order], data.outcome[order]
    ends = np.arange(1, len(order) + 1)
    n1, y1 = np.cumsum(treated).astype(np.float64), np.cumsum(np.where(treated, outcome, 0.0))
    n0, y0 = ends - n1, np.cumsum(np.where(treated, 0.0, outcome))
    if definition != "causalml":
        last = np.append(np.diff(found[order]) != 0, True)
        ends, n1, y1, n0, y0 = (x[last] for x in (ends, n1, y1, n0, y0))
    with np.errstate(divide="ignore", invalid="ignore"):
        if definition == "fixed":
            value = y1 / data.sizes[0] - y0 / data.sizes[1]
            value = value * data.sizes[0] if per_treated else value
        elif definition == "scikit-uplift":
            ratio = np.where(n0 > 0, n1 / n0, 0.0)
            mean1, mean0 = np.where(n1 > 0, y1 / n1, 0.0), np.where(n0 > 0, y0 / n0, 0.0)
            value = y1 - y0 * ratio if per_treated else ends * (mean1 - mean0)
        else:
            value = y1 - y0 * n1 / n0 if per_treated else y1 / n1 - y0 / n0
    rows, value = np.append(0, ends), np.append(0.0, value)
    if definition == "causalml":
        known = np.isfinite(value)
        value = np.interp(rows, rows[known], value[known])
        value = value if per_treated else value * rows
    return UpliftCurve(rows, value)


def _share_of_best(curve: UpliftCurve, best: UpliftCurve) -> float:
    random = best.rows[-1] * best.value[-1] / 2
    return _share(curve.area - random, best.area - random)


def _share(value: float, whole: float) -> float:
    return value / whole if whole else float("nan")


class UpliftLoss(TwoFieldLoss):
    r"""A convex surrogate of the area under the uplift curve: the weighted mean of φ(s_i - s_k) over pairs z_i > z_k.

    With the transformed outcome ``z = y t / N_1 - y (1 - t) / N_0`` the value is ``sum of w_i w_k (z_i - z_k)
    φ(s_i - s_k)`` over the pairs with ``z_i > z_k``, divided by the sum of ``w_i w_k (z_i - z_k)`` with
    ``pairs="mean"``; N_1 and N_0 are the sums of the weights of treated rows and others. Without a treated row, without
    another one, or without different z the value and the gradient are 0. Outcomes 0 and 1 take O(n log n) time, others
    O(n log^2 n).

    `pair`, φ, and `pairs` are those of `ltr.survival.ConcordanceLoss`.

    Examples:
        >>> loss = UpliftLoss("hinge")
        >>> loss(torch.tensor([0.0, 0.5]), torch.tensor([1, 1]), torch.tensor([1, 0]))  # 1 - (0 - 0.5)
        tensor(1.5000)
    """

    def forward(self, scores: Tensor, outcome: Tensor, treatment: Tensor, *, weight: Tensor | None = None) -> Tensor:
        """Return the loss, 0-D, of one value per row in each argument, ``(rows,)``.

        Outcomes are 0 and 1, or other finite numbers, treatments booleans, or 0 and 1, and weights >= 0.
        """
        treated = check_rows(scores, {"outcome": outcome}, {"treatment": treatment}, weight, None)
        value = (scores * 0.0).sum()
        with torch.no_grad():
            w = torch.ones_like(outcome, dtype=torch.float64) if weight is None else weight.double()
            sizes = w[treated].sum(), w[~treated].sum()
            if not (bool(sizes[0] > 0) and bool(sizes[1] > 0)):
                return value
            z = torch.where(treated, outcome.double() / sizes[0], -outcome.double() / sizes[1])
            z, rows = z.sort()
            different, number = torch.unique_consecutive(z, return_inverse=True)
            w, digits = w[rows], (len(different) - 1).bit_length()
            # each pair by its upper row, less by its lower row
            before, behind = w.cumsum(0) - w, w.sum() - w.cumsum(0)
            total = (w * z * (before - behind)).sum()
        if not bool(total > 0):
            return value
        s = scores[rows]
        for digit in range(digits):
            upper, block = (number >> digit & 1).bool(), number >> digit + 1
            c = different[((block << digit + 1 | 1 << digit) - 1).clamp(max=len(different) - 1)]
            for by in (torch.where(upper, z - c, 1.0), torch.where(upper, 1.0, c - z)):
                kept = (by > 0).nonzero().squeeze(-1)
                whole = total if self.pairs == "mean" else None
                value = value + two_class_loss(self.pair, s[kept], upper[kept], block[kept], (w * by)[kept], whole)
        return value
