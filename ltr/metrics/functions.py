"""The metrics as functions: ``metric(scores, labels, *, mask=None, qid=None, ties="resolved", empty=nan)``.

Each one returns float64 values, one per list: the batch shape, ``(lists,)`` with qid, 0-D for a 1-D call.

Args:
    scores: floating point, ``(*batch, list)``.
    labels: nonnegative, same shape; an item is relevant when its label is above 0.
    mask, qid, ties, empty: see `ltr.metrics.ListOptions`.
    k: number of positions from the top that count, at least 1; None counts the whole list.
    gain: ``"linear"`` takes the label itself, ``"exp2"`` takes ``2**label - 1``.

Raises:
    TypeError, ValueError: inputs that `ltr.lists.as_lists` refuses, a negative label, an option outside its range.
"""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from ltr.metrics.measures import BinaryMeasure, ListOptions, StatisticMeasure
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

__all__ = [
    "auc",
    "average_precision",
    "dcg",
    "mrr",
    "ndcg",
    "normalized_rank_statistic",
    "pairwise_misranking_error",
    "precision",
    "rank_statistic",
    "recall",
]


def rank_statistic(
    scores: Tensor,
    labels: Tensor,
    statistic: RankStatistic | str,
    *,
    gain: GainName = "linear",
    **options: Unpack[ListOptions],
) -> Tensor:
    """Return the rank statistic of each list: ``sum over i of gain_i * a[rank_i]``.

    Binary labels have gain 0 and 1: the sum runs over the positives. A list without a positive has the value 0,
    except for ``auc``, which takes the labels 0 and 1 only and is undefined without a positive and a negative.

    Args:
        scores: floating point, ``(*batch, list)``.
        labels: nonnegative, same shape.
        statistic: a `RankStatistic` or its name, such as ``"dcg(base=e)@10"``.
        gain: ``"linear"`` takes the label itself, ``"exp2"`` takes ``2**label - 1``.
        options: see `ListOptions`.

    Raises:
        ValueError: labels below 0 (or not 0 and 1 for ``auc``), an unknown statistic, gain or ties.

    Source: Rudin & Wang (2018), section 2.2.

    Examples:
        >>> import torch
        >>> scores, labels = torch.tensor([0.9, 0.5, 0.5, 0.1]), torch.tensor([1, 1, 0, 0])
        >>> rank_statistic(scores, labels, "wrs").item()  # ranks 4 and, below its tie, 2
        6.0
        >>> rank_statistic(scores, labels, "wrs", ties="average").item()  # ranks 4 and 2.5
        6.5
    """
    return StatisticMeasure(RankStatistic.parse(statistic), gain)(scores, labels, **options)


def normalized_rank_statistic(
    scores: Tensor,
    labels: Tensor,
    statistic: RankStatistic | str,
    *,
    gain: GainName = "linear",
    **options: Unpack[ListOptions],
) -> Tensor:
    """Return the rank statistic over its value for the ideal order (gains descending): 1 is a perfect list.

    It is undefined where the ideal value is 0: for a list without a positive.

    Examples:
        >>> import torch
        >>> normalized_rank_statistic(torch.tensor([1.0, 2.0]), torch.tensor([1, 0]), "mrr").item()
        0.5
    """
    return StatisticMeasure(RankStatistic.parse(statistic), gain, normalized=True)(scores, labels, **options)


def dcg(
    scores: Tensor,
    labels: Tensor,
    *,
    k: int | None = None,
    base: float = 2.0,
    gain: GainName = "linear",
    **options: Unpack[ListOptions],
) -> Tensor:
    """Discounted cumulative gain: ``sum over i of gain_i / log_base(position_i + 2)`` over the top k positions.

    Examples:
        >>> import torch
        >>> round(dcg(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1])).item(), 6)  # 1/log2(2) + 1/log2(4)
        1.5
    """
    return StatisticMeasure(RankStatistic("dcg", base=base, cutoff=k), gain)(scores, labels, **options)


def ndcg(
    scores: Tensor,
    labels: Tensor,
    *,
    k: int | None = None,
    gain: GainName = "linear",
    **options: Unpack[ListOptions],
) -> Tensor:
    """Normalised discounted cumulative gain: DCG divided by the DCG of the ideal order.

    The base of the logarithm cancels. With ``ties="average"`` it equals scikit-learn's ``ndcg_score``.

    Examples:
        >>> import torch
        >>> ndcg(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 1, 0])).item()
        1.0
    """
    return StatisticMeasure(RankStatistic("dcg", cutoff=k), gain, normalized=True)(scores, labels, **options)


def auc(scores: Tensor, labels: Tensor, **options: Unpack[ListOptions]) -> Tensor:
    """Area under the ROC curve: the share of positive-negative pairs with the positive scored higher.

    A tied pair counts 0 (``resolved``), 1/2 (``average``, as in scikit-learn) or 1 (``optimistic``). With
    ``subrank`` two tied positives cost a pair as well, for neither counts as scoring below the other: then the value
    may be below 0.

    Examples:
        >>> import torch
        >>> auc(torch.tensor([2.0, 1.0, 1.0]), torch.tensor([1, 1, 0])).item()
        0.5
    """
    return StatisticMeasure(RankStatistic("auc"))(scores, labels, **options)


def pairwise_misranking_error(scores: Tensor, labels: Tensor, **options: Unpack[ListOptions]) -> Tensor:
    """Share of positive-negative pairs in which the positive is scored at or below the negative: 1 - AUC.

    Examples:
        >>> import torch
        >>> pairwise_misranking_error(torch.tensor([2.0, 1.0, 1.0]), torch.tensor([1, 1, 0])).item()
        0.5
    """
    return BinaryMeasure("pairwise_misranking_error")(scores, labels, **options)


def precision(scores: Tensor, labels: Tensor, *, k: int | None = None, **options: Unpack[ListOptions]) -> Tensor:
    """Share of relevant items among the top k positions: hits / k, also where the list is shorter than k.

    Examples:
        >>> import torch
        >>> precision(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1]), k=2).item()
        0.5
    """
    return BinaryMeasure("precision", k)(scores, labels, **options)


def recall(scores: Tensor, labels: Tensor, *, k: int | None = None, **options: Unpack[ListOptions]) -> Tensor:
    """Share of the relevant items that are among the top k positions; undefined without a relevant item.

    Examples:
        >>> import torch
        >>> recall(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1]), k=2).item()
        0.5
    """
    return BinaryMeasure("recall", k)(scores, labels, **options)


def mrr(scores: Tensor, labels: Tensor, *, k: int | None = None, **options: Unpack[ListOptions]) -> Tensor:
    """Reciprocal rank: 1 / (position + 1) of the first relevant item, 0 where it is below the top k.

    The mean over lists is the field's mean reciprocal rank. The paper's statistic of that name sums the reciprocals
    over all positives: it is ``rank_statistic(scores, labels, "mrr")``, and equal to this one on lists with one
    relevant item.

    Examples:
        >>> import torch
        >>> mrr(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 1])).item()
        0.5
    """
    return BinaryMeasure("mrr", k)(scores, labels, **options)


def average_precision(scores: Tensor, labels: Tensor, **options: Unpack[ListOptions]) -> Tensor:
    """Mean over the relevant items of the precision at their position.

    With ``ties="subrank"`` tied items are taken in together, as scikit-learn's ``average_precision_score`` does;
    ``average`` is the expectation over a random order of ties (McSherry & Najork, ECIR 2008).

    Examples:
        >>> import torch
        >>> round(average_precision(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1])).item(), 6)  # (1 + 2/3) / 2
        0.833333
    """
    return BinaryMeasure("map")(scores, labels, **options)
