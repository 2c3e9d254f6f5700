"""Losses of this package as objectives of LightGBM and XGBoost, and its measures as their evaluation metrics.

=================================  ==================================================================================
where                              how
=================================  ==================================================================================
``lightgbm.train``                 ``params={"objective": objective("ranknet"), "metric": "None"}``,
                                   ``feval=metric("ndcg@10")``
``lightgbm.LGBMRanker``            ``LGBMRanker(objective=objective("ranknet"), metric="None")``,
                                   ``fit(..., eval_metric=metric("ndcg@10"))``
``xgboost.train``                  ``obj=objective("ranknet")``, ``custom_metric=metric("ndcg@10")``, ``maximize=True``
``xgboost.XGBRanker``              ``XGBRanker(callbacks=[objective("ranknet").callback()])``; it takes no function
=================================  ==================================================================================

*Early stopping.* LightGBM stops at the first of all its metrics that no longer improves; ``metric="None"`` leaves out
its own. XGBoost stops by the last one: ``disable_default_eval_metric=True`` leaves out its own.

The lists are those of the booster's own data: ``group`` of a LightGBM Dataset, ``qid`` or ``group`` of an XGBoost
DMatrix. Data without either are one list. Weights of rows are weights of the lists, and of the rows in each list, as in
`ltr.lists`. A weight for each list, XGBoost's form, is the same as that weight for each of its rows.

*Scale.* A booster's options, such as ``min_child_weight`` and ``lambda``, expect gradients of about 1 per row. The
objective is therefore the sum over the lists of the loss times the number of rows, or with weights the sum of their
weights: ``objective("logistic")`` is the booster's own binary objective. With ``reduction="sum"`` it is the loss
itself, a sum over the lists.

*The top.* With ``objective(loss, top=k)`` only those pairs of a pairwise loss count of which a row stands among the
first k of its list at the scores of the round: all pairs less the pairs of the other rows, two near-linear sums.

Neither library is imported here: ``pip install 'rankproof[boosters]'`` installs both.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltr.checks import check_whole
from ltr.lists import buckets, split_weights
from ltr.losses import PairwiseLoss, RankingLoss, parse_loss
from ltr.losses.derivatives import derivatives
from ltr.metrics import Measure, Ties, evaluate, parse_measure
from ltr.metrics.collection import weighted_mean
from ltr.metrics.ranked import check_ties

__all__ = ["Metric", "Objective", "metric", "objective"]

LONGEST_STEP = 16.0
"""Largest Newton step of a row: its second derivative counts as at least the size of its gradient divided by this.

It matters only for rows whose pairs are all lost by far, where the second derivative of a loss is as good as 0.
"""
_FEW_LABELS = 64  # whole labels below this need no numbering
_LEAST, _MOST = 1e-16, 1e30  # float32, in which boosters keep derivatives, has room for sums of numbers up to here


class Objective:
    """A loss as a custom objective of LightGBM or XGBoost, `objective`; it can be pickled, and cloned by scikit-learn.

    Args:
        loss: the loss or its name, such as ``"ranknet"`` or ``"lambda(statistic=dcg@10)"``; see
            `ltr.losses.parse_loss`.
        top: of a pairwise loss, count only pairs of which at least one row is among the first `top` of its list at the
            present scores, >= 1; rows that tie with the last of them are, too. None counts all pairs. Measures of the
            top of the list, such as NDCG@10, often gain by it; 30 is LightGBM's own choice.

    Examples:
        >>> labels, scores, sizes = np.array([1.0, 0.0, 0.0, 1.0]), np.zeros(4), np.array([2, 2])
        >>> gradient, hessian = objective("ranknet")(labels, scores, None, sizes)
        >>> gradient.tolist(), hessian.tolist()  # 2 rows times σ(0) and σ'(0), for one pair each
        ([-1.0, 1.0, 1.0, -1.0], [0.5, 0.5, 0.5, 0.5])
    """

    def __init__(self, loss: str | RankingLoss = "ranknet", *, top: int | None = None) -> None:
        self.loss, self.top = parse_loss(loss), top
        if self.loss.reduction == "none":
            raise ValueError("loss must have reduction mean or sum, to be one number for all lists, got none")
        if top is not None:
            check_whole("top", top, 1, ", or None")
            if not isinstance(self.loss, PairwiseLoss):
                rule = "goes with a sum over pairs, such as 'ranknet' or 'hinge'"
                raise ValueError(f"top {rule}, got {str(self.loss)!r}")

    def __call__(
        self,
        first: Any,  # noqa: ANN401 - arrays and the libraries' own types
        second: Any,  # noqa: ANN401
        weight: Any = None,  # noqa: ANN401
        group: Any = None,  # noqa: ANN401
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return gradient and second derivatives, as the libraries ask for them: both (rows,).

        Args:
            first: scores, (rows,), if `second` is a Dataset or DMatrix; else labels, (rows,).
            second: a LightGBM Dataset, an XGBoost DMatrix, or scores, (rows,).
            weight: weight of each row or of each list; with arrays only.
            group: sizes of the lists, which follow each other; None means one list. With arrays only.
        """
        rows = _Rows.of(first, second, weight, group)
        loss = self.loss
        known = rows.scores, rows.labels, rows.number
        if self.top is None:
            slopes, curvatures = derivatives(loss, *known, weight=rows.item_weight)
        else:
            slopes, curvatures = _derivatives_at_top(loss, *known, rows.item_weight, self.top)
        each = (rows.total_weight if loss.reduction == "mean" else rows.list_weight)[rows.number]
        slopes = slopes.mul_(each).clamp_(-_MOST, _MOST).float()
        curvatures = curvatures.mul_(each).clamp_(_LEAST, _MOST).float()
        torch.maximum(curvatures, slopes.abs().div_(LONGEST_STEP), out=curvatures)
        return slopes.numpy(), curvatures.numpy()

    def callback(self) -> Any:  # noqa: ANN401 - a class of an optional library
        """Return a callback that gives the objective to an XGBRanker, which takes none as a function."""
        from ltr.gbdt.callback import ObjectiveCallback

        return ObjectiveCallback(self)

    def __repr__(self) -> str:
        return f"objective({str(self.loss)!r}{'' if self.top is None else f', top={self.top}'})"


def _derivatives_at_top(
    loss: RankingLoss, scores: Tensor, labels: Tensor, number: Tensor, weight: Tensor | None, top: int
) -> tuple[Tensor, Tensor]:
    """Return slopes and curvatures of the pairs with a row among the first `top` of its list: all less the others'."""
    summed = copy.copy(loss)
    summed.pairs = "sum"
    rest = (~_at_top(scores, number, top)).nonzero().squeeze(-1)
    if not len(rest):
        return derivatives(loss, scores, labels, number, weight=weight)
    slopes, curvatures = derivatives(summed, scores, labels, number, weight=weight)
    others = scores[rest], labels[rest], number[rest]
    of_others = None if weight is None else weight[rest]
    for whole, part in zip((slopes, curvatures), derivatives(summed, *others, weight=of_others), strict=True):
        whole[rest] -= part
    if loss.pairs == "mean":
        lists = int(number[-1]) + 1
        pairs = _pairs(labels, number, weight, lists) - _pairs(*others[1:], of_others, lists)
        each = torch.where(pairs > 0, pairs, 1.0)[number]
        slopes, curvatures = slopes / each, curvatures / each
    return slopes, curvatures.clamp(min=0.0)


def _at_top(scores: Tensor, number: Tensor, top: int) -> Tensor:
    """Return whether fewer than `top` rows of the list have a larger score."""
    found = torch.ones_like(number, dtype=torch.bool)
    for members, mask in buckets(number):
        if members.shape[1] > top:
            own = scores[members].masked_fill(~mask, -math.inf)
            found[members[mask]] = (own >= own.topk(top).values[:, -1:])[mask]
    return found


def _pairs(labels: Tensor, number: Tensor, weight: Tensor | None, lists: int) -> Tensor:
    """Return the weight of the comparable pairs of each list: half of its squared weight less those of its labels."""
    whole = labels.long()
    if not bool((labels == whole).all()) or (len(whole) and int(whole.max()) >= _FEW_LABELS):
        whole = labels.unique(return_inverse=True)[1]
    grades = int(whole.max()) + 1 if len(whole) else 1
    of_label = torch.bincount(number * grades + whole, weight, minlength=lists * grades).double().view(lists, grades)
    return 0.5 * (of_label.sum(1) ** 2 - (of_label**2).sum(1))


class Metric:
    """A measure as an evaluation metric of LightGBM or XGBoost, `metric`: its mean over the lists.

    Args:
        measure: the measure or its name; see `ltr.metrics.parse_measure`.
        ties: how tied scores are treated; see `ltr.metrics.ListOptions`.
        empty: the value of a list for which the measure is undefined, such as one without a relevant row. NaN leaves
            the list out of the mean; the libraries' own ``ndcg`` counts it as 1.

    Examples:
        >>> labels, scores, sizes = np.array([1.0, 0.0, 0.0, 1.0]), np.array([2.0, 1.0, 2.0, 1.0]), np.array([2, 2])
        >>> metric("mrr")(labels, scores, None, sizes)
        ('mrr', 0.75, True)
    """

    def __init__(self, measure: str | Measure = "ndcg@10", *, ties: Ties = "resolved", empty: float = math.nan) -> None:
        self.measure, self.ties, self.empty = parse_measure(measure), check_ties(ties), float(empty)

    def __call__(
        self,
        first: Any,  # noqa: ANN401 - arrays and the libraries' own types
        second: Any,  # noqa: ANN401
        weight: Any = None,  # noqa: ANN401
        group: Any = None,  # noqa: ANN401
    ) -> tuple[str, float] | tuple[str, float, bool]:
        """Return name, mean over the lists by their weights and, except to XGBoost, whether higher is better.

        The arguments are those of `Objective`.
        """
        rows = _Rows.of(first, second, weight, group)
        name = str(self.measure)
        found = evaluate(rows.scores, rows.labels, [self.measure], qid=rows.number, ties=self.ties, empty=self.empty)
        mean = weighted_mean(found[name], rows.list_weight)
        if _is_dmatrix(second):
            return name.replace(":", "."), mean  # XGBoost splits its messages at colons
        return name, mean, self.measure.higher_is_better

    def __repr__(self) -> str:
        return f"metric({str(self.measure)!r}, ties={self.ties!r}, empty={self.empty})"


objective, metric = Objective, Metric


def _is_dmatrix(data: object) -> bool:
    return hasattr(data, "get_uint_info")


@dataclass(frozen=True, eq=False)
class _Rows:
    scores: Tensor  # float64, (rows,)
    labels: Tensor  # float64, (rows,)
    number: Tensor  # the list of each row, int64, (rows,)
    list_weight: Tensor  # float64, (lists,), see `ltr.lists.split_weights`
    item_weight: Tensor | None  # of each row relative to its list, (rows,); None where all are alike
    total_weight: Tensor  # the sum of the weights of the rows of each list, (lists,)

    @classmethod
    def of(cls, first: Any, second: Any, weight: Any, group: Any) -> _Rows:  # noqa: ANN401
        """Read the arguments of an objective or metric, which differ between libraries and their interfaces."""
        if hasattr(second, "get_label"):
            scores, labels, weight = first, second.get_label(), second.get_weight()
            if _is_dmatrix(second):
                group = np.diff(second.get_uint_info("group_ptr").astype(np.int64))
            else:
                group = second.get_group()
        else:
            labels, scores = first, second
        if labels is None:
            raise ValueError("the data must have labels, got none")
        scores, labels = (np.asarray(x, dtype=np.float64).reshape(-1) for x in (scores, labels))
        sizes = np.asarray([] if group is None else group, dtype=np.int64)
        sizes = np.array([len(scores)]) if len(sizes) == 0 else sizes[sizes > 0]
        weights = None if weight is None or len(weight) == 0 else np.asarray(weight, dtype=np.float64)
        mistakes = []
        if len(labels) != len(scores):
            mistakes.append(f"there must be one score per label, got {len(scores)} scores of {len(labels)} rows")
        if sizes.sum() != len(labels):
            mistakes.append(f"group must be sizes that add up to the {len(labels)} rows, got {sizes.sum()}")
        if weights is not None and len(weights) not in (len(labels), len(sizes)):
            rule = f"one for each of {len(labels)} rows or {len(sizes)} lists"
            mistakes.append(f"weights must be {rule}, got {len(weights)}")
        if weights is not None and not (np.isfinite(weights).all() and (weights >= 0).all()):
            mistakes.append("weights must be finite and >= 0")
        if mistakes:
            raise ValueError("; ".join(mistakes))
        number, given = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)), torch.from_numpy(labels)
        rows_of_lists = torch.from_numpy(sizes)
        list_weight, item_weight = torch.ones(len(sizes), dtype=torch.float64), None
        if weights is not None and len(weights) == len(sizes):
            list_weight = torch.from_numpy(weights)
        total = list_weight * rows_of_lists
        if weights is not None and len(weights) != len(sizes):
            of_rows = torch.from_numpy(weights)
            list_weight, item_weight = split_weights(of_rows, number, given)
            total = torch.zeros(len(sizes), dtype=torch.float64).index_add(0, number, of_rows)
        return cls(torch.from_numpy(scores), given, number, list_weight, item_weight, total)
