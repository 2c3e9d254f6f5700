"""Metrics that are a rank statistic: a sum over the items of gain times the weight of the rank."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from ltr.metrics.ranked import RankedLists, Ties, check_ties, rank_lists
from ltr.ranks import GainName, weights_at
from ltr.statistics import RankStatistic

__all__ = ["auc", "dcg", "ndcg", "normalized_rank_statistic", "pairwise_misranking_error", "rank_statistic"]


def rank_statistic(
    scores: Tensor,
    labels: Tensor,
    statistic: RankStatistic | str,
    *,
    gain: GainName = "linear",
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    empty: float = math.nan,
) -> Tensor:
    """The rank statistic of each list: ``sum over i of gain_i * a[rank_i]``.

    Binary labels have gain 0 and 1: the sum runs over the positives. A list without a positive has the value 0,
    except for ``auc``, which is undefined without a positive and a negative.

    Args:
        scores: floating point, ``(*batch, list)``.
        labels: nonnegative, same shape; ``auc`` takes 0 and 1 only.
        statistic: a `RankStatistic` or its name, such as ``"dcg(base=e)@10"``.
        gain: ``"linear"`` takes the label itself, ``"exp2"`` takes ``2**label - 1``.
        ties: ``"resolved"`` (pessimistic), ``"subrank"``, ``"average"`` or ``"optimistic"``; see
            `ltr.metrics.ranked`.
        mask: boolean, True where an item is real.
        qid: list ids of flat input.
        empty: the value of an undefined list.

    Returns:
        float64, one value a list: the batch shape, ``(lists,)`` with qid, 0-D for a 1-D call.

    Raises:
        ValueError: labels below 0 (or not 0 and 1 for ``auc``), an unknown statistic, gain or ties.

    Source: Rudin & Wang (2018), section 2.2.

    Examples:
        >>> scores, labels = torch.tensor([0.9, 0.5, 0.5, 0.1]), torch.tensor([1, 1, 0, 0])
        >>> rank_statistic(scores, labels, "wrs").item()  # ranks 4 and, below its tie, 2
        6.0
        >>> rank_statistic(scores, labels, "wrs", ties="average").item()  # ranks 4 and 2.5
        6.5
    """
    parsed = RankStatistic.parse(statistic)
    check_ties(ties)
    ranked = rank_lists(scores, labels, mask=mask, qid=qid)
    return ranked.reshape(statistic_of(ranked, parsed, gain, ties, empty))


def normalized_rank_statistic(
    scores: Tensor,
    labels: Tensor,
    statistic: RankStatistic | str,
    *,
    gain: GainName = "linear",
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    empty: float = math.nan,
) -> Tensor:
    """The rank statistic divided by its value for the ideal order (gains descending): 1 is a perfect list.

    Undefined, hence `empty`, where the ideal value is 0: a list without a positive.

    Examples:
        >>> normalized_rank_statistic(torch.tensor([1.0, 2.0]), torch.tensor([1, 0]), "mrr").item()
        0.5
    """
    parsed = RankStatistic.parse(statistic)
    check_ties(ties)
    ranked = rank_lists(scores, labels, mask=mask, qid=qid)
    return ranked.reshape(normalized_of(ranked, parsed, gain, ties, empty))


def dcg(
    scores: Tensor,
    labels: Tensor,
    *,
    k: int | None = None,
    base: float = 2.0,
    gain: GainName = "linear",
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
) -> Tensor:
    """Discounted cumulative gain: ``sum over i of gain_i / log_base(position_i + 2)`` over the top k positions.

    Examples:
        >>> round(dcg(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1])).item(), 6)  # 1/log2(2) + 1/log2(4)
        1.5
    """
    statistic = RankStatistic("dcg", base=base, cutoff=k)
    return rank_statistic(scores, labels, statistic, gain=gain, ties=ties, mask=mask, qid=qid)


def ndcg(
    scores: Tensor,
    labels: Tensor,
    *,
    k: int | None = None,
    gain: GainName = "linear",
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    empty: float = math.nan,
) -> Tensor:
    """Normalised discounted cumulative gain: DCG divided by the DCG of the ideal order.

    The base of the logarithm cancels. With ``ties="average"`` it equals scikit-learn's ``ndcg_score``.

    Examples:
        >>> ndcg(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 1, 0])).item()
        1.0
    """
    statistic = RankStatistic("dcg", cutoff=k)
    return normalized_rank_statistic(scores, labels, statistic, gain=gain, ties=ties, mask=mask, qid=qid, empty=empty)


def auc(
    scores: Tensor,
    labels: Tensor,
    *,
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    empty: float = math.nan,
) -> Tensor:
    """Area under the ROC curve: the share of positive-negative pairs with the positive scored higher.

    A tied pair counts 0 (``resolved``), 1/2 (``average``, as in scikit-learn) or 1 (``optimistic``). With
    ``subrank`` two tied positives cost a pair as well, for neither counts as scoring below the other: then the value
    may be below 0.

    Examples:
        >>> auc(torch.tensor([2.0, 1.0, 1.0]), torch.tensor([1, 1, 0])).item()
        0.5
    """
    return rank_statistic(scores, labels, "auc", ties=ties, mask=mask, qid=qid, empty=empty)


def pairwise_misranking_error(
    scores: Tensor,
    labels: Tensor,
    *,
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    empty: float = math.nan,
) -> Tensor:
    """Share of positive-negative pairs in which the positive is scored at or below the negative: 1 - AUC.

    Examples:
        >>> pairwise_misranking_error(torch.tensor([2.0, 1.0, 1.0]), torch.tensor([1, 1, 0])).item()
        0.5
    """
    check_ties(ties)
    ranked = rank_lists(scores, labels, mask=mask, qid=qid)
    return ranked.reshape(misranking_error_of(ranked, ties, empty))


def statistic_of(ranked: RankedLists, statistic: RankStatistic, gain: GainName, ties: Ties, empty: float) -> Tensor:
    """`rank_statistic` of lists sorted already, (lists,)."""
    if statistic.share_of_pairs:
        statistic.check_labels(graded=not ranked.binary)
        return _share_of_pairs_of(ranked, ties, empty)
    return ranked.total(ranked.ordered(ties).gains(gain) * ranked.weights(partial(weights_at, statistic), ties))


def normalized_of(ranked: RankedLists, statistic: RankStatistic, gain: GainName, ties: Ties, empty: float) -> Tensor:
    """`normalized_rank_statistic` of lists sorted already, (lists,)."""
    value = statistic_of(ranked, statistic, gain, ties, empty)
    if statistic.share_of_pairs:
        return value
    best = statistic_of(ranked.ideal, statistic, gain, "resolved", empty)
    return torch.where(best > 0, value / best, empty)


def misranking_error_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """`pairwise_misranking_error` of lists sorted already, (lists,)."""
    value = statistic_of(ranked, RankStatistic("auc"), "linear", ties, math.nan)
    return torch.where(value.isnan(), empty, 1.0 - value)


def _share_of_pairs_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """Return twice the pairs won over twice the pairs there are, both counted in integers."""
    if ties == "average":
        places = ranked.total(ranked.start + ranked.end)
    else:
        places = 2 * ranked.total(ranked.end if ties == "subrank" else ranked.ordered(ties).position)
    n, positives = ranked.n, ranked.relevant
    won = 2 * n * positives - places - positives * (positives + 1)
    pairs = 2 * positives * (n - positives)
    return torch.where(pairs > 0, won.double() / pairs, empty)
