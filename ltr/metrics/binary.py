"""Metrics of relevant and irrelevant items that are no rank statistic: an item is relevant when its label > 0."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ltr.checks import check_cutoff
from ltr.metrics.ranked import RankedLists, Ties, Weight, check_ties, rank_lists
from ltr.metrics.segments import positions_within, running_product, segment_sum

__all__ = ["average_precision", "mrr", "precision", "recall"]


def precision(
    scores: Tensor,
    labels: Tensor,
    *,
    k: int | None = None,
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    empty: float = math.nan,
) -> Tensor:
    """Share of relevant items among the top k positions: hits / k, also where the list is shorter than k.

    Args:
        scores: floating point, ``(*batch, list)``.
        labels: nonnegative, same shape; relevant when > 0.
        k: positions counted, at least 1; None takes the whole list.
        ties: as in `ltr.metrics.rank_statistic`.
        mask: boolean, True where an item is real.
        qid: list ids of flat input.
        empty: the value of a list without items.

    Returns:
        float64, one value a list.

    Examples:
        >>> precision(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1]), k=2).item()
        0.5
    """
    check_k(k)
    check_ties(ties)
    ranked = rank_lists(scores, labels, mask=mask, qid=qid)
    return ranked.reshape(precision_of(ranked, k, ties, empty))


def recall(
    scores: Tensor,
    labels: Tensor,
    *,
    k: int | None = None,
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    empty: float = math.nan,
) -> Tensor:
    """Share of the relevant items that stand among the top k positions; `empty` without a relevant item.

    Examples:
        >>> recall(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1]), k=2).item()
        0.5
    """
    check_k(k)
    check_ties(ties)
    ranked = rank_lists(scores, labels, mask=mask, qid=qid)
    return ranked.reshape(recall_of(ranked, k, ties, empty))


def mrr(
    scores: Tensor,
    labels: Tensor,
    *,
    k: int | None = None,
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    empty: float = math.nan,
) -> Tensor:
    """Reciprocal rank: 1 / (position + 1) of the first relevant item, 0 where it stands below the top k.

    The mean over lists is the field's mean reciprocal rank. The paper's statistic of that name sums the reciprocals
    over all positives: it is ``rank_statistic(scores, labels, "mrr")``, and equal to this one on lists with one
    relevant item.

    Examples:
        >>> mrr(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 1])).item()
        0.5
    """
    check_k(k)
    check_ties(ties)
    ranked = rank_lists(scores, labels, mask=mask, qid=qid)
    return ranked.reshape(mrr_of(ranked, k, ties, empty))


def average_precision(
    scores: Tensor,
    labels: Tensor,
    *,
    ties: Ties = "resolved",
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    empty: float = math.nan,
) -> Tensor:
    """Mean over the relevant items of the precision at their position.

    With ``ties="subrank"`` tied items are taken in together, as scikit-learn's ``average_precision_score`` does;
    ``average`` is the expectation over a random order of ties (McSherry & Najork, ECIR 2008).

    Examples:
        >>> round(average_precision(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1])).item(), 6)  # (1 + 2/3) / 2
        0.833333
    """
    check_ties(ties)
    ranked = rank_lists(scores, labels, mask=mask, qid=qid)
    return ranked.reshape(average_precision_of(ranked, ties, empty))


def precision_of(ranked: RankedLists, k: int | None, ties: Ties, empty: float) -> Tensor:
    """`precision` of lists sorted already, (lists,)."""
    hits = _hits(ranked, k, ties)
    size = ranked.n.double() if k is None else torch.full_like(hits, k)
    return torch.where(ranked.n > 0, hits / size, empty)


def recall_of(ranked: RankedLists, k: int | None, ties: Ties, empty: float) -> Tensor:
    """`recall` of lists sorted already, (lists,)."""
    return torch.where(ranked.relevant > 0, _hits(ranked, k, ties) / ranked.relevant, empty)


def mrr_of(ranked: RankedLists, k: int | None, ties: Ties, empty: float) -> Tensor:
    """`mrr` of lists sorted already, (lists,)."""

    def reciprocal(position: Tensor, n: Tensor) -> Tensor:
        return torch.where(position < (n if k is None else k), 1.0 / (position + 1).double(), 0.0)

    some = ranked.relevant > 0
    first = ranked.beginning[some]
    if ties == "average" and ranked.tied:
        found = _expected_reciprocal(ranked, ranked.groups.number[first], reciprocal)
    else:
        position = (ranked.end if ties == "subrank" else ranked.ordered(ties).position)[first]
        found = reciprocal(position, ranked.n[some])
    return torch.full_like(some, empty, dtype=torch.float64).masked_scatter(some, found)


def average_precision_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """`average_precision` of lists sorted already, (lists,)."""
    found = (positions_within(ranked.relevant) + 1).double()  # relevant items down to this one
    if ties == "average" and ranked.tied:
        total = _expected_precisions(ranked)
    elif ties == "subrank" and ranked.tied:
        last = ranked.groups.relevant.cumsum(0) - 1
        total = ranked.total(found[last[ranked.groups.number]] / (ranked.end + 1))
    else:
        total = ranked.total(found / (ranked.ordered(ties).position + 1))
    return torch.where(ranked.relevant > 0, total / ranked.relevant, empty)


def _hits(ranked: RankedLists, k: int | None, ties: Ties) -> Tensor:
    """(Expected) number of relevant items among the top k positions."""
    if k is None:
        return ranked.relevant.double()
    return ranked.total(ranked.weights(lambda position, _: (position < k).double(), ties))


def _expected_precisions(ranked: RankedLists) -> Tensor:
    """The sum of precisions at relevant items, its mean over all orders of ties.

    Position p of a group of m items from position s, r of them relevant with c above, holds a relevant item with
    probability r / m; if so, (p - s)(r - 1) / (m - 1) relevant items of the group are expected above it.
    """
    groups = ranked.groups
    r, m = groups.relevant.double(), groups.size.double()
    above = groups.relevant.cumsum(0) - groups.relevant - ranked.beginning[groups.owner]
    inside = (r - 1.0) / (m - 1.0).clamp(min=1.0)
    found = (above + 1).double().repeat_interleave(groups.size) + positions_within(
        groups.size
    ) * inside.repeat_interleave(groups.size)
    expected = segment_sum(found / (groups.positions + 1), groups.size) * r / m
    return segment_sum(expected, torch.bincount(groups.owner, minlength=len(ranked.n)))


def _expected_reciprocal(ranked: RankedLists, chosen: Tensor, reciprocal: Weight) -> Tensor:
    """The mean of the first relevant item's reciprocal over all orders of the chosen tie groups.

    In a group of m items, r of them relevant, the first relevant one stands at offset 0 with probability r / m, and
    at offset j with (m - j - r + 1) / (m - j) times the probability of j - 1.
    """
    size, relevant = ranked.groups.size[chosen], ranked.groups.relevant[chosen]
    offset = positions_within(size)
    m, r = (x.double().repeat_interleave(size) for x in (size, relevant))
    factor = torch.where(offset == 0, r / m, (m - offset - r + 1.0).clamp(min=0.0) / (m - offset))
    start, n = (x[chosen].repeat_interleave(size) for x in (ranked.groups.start, ranked.n[ranked.groups.owner]))
    return segment_sum(running_product(factor, size) * reciprocal(start + offset, n), size)


def check_k(k: int | None) -> None:
    """Check a cutoff.

    Raises:
        ValueError: no integer of at least 1.
    """
    if k is not None:
        check_cutoff("k", k)
