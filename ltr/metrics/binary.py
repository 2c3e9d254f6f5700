"""Metrics of relevant and irrelevant items that are no rank statistic: an item is relevant when its label > 0."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ltr.metrics.ranked import RankedLists, Ties, check_ties, rank_lists

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
    relevant = (ranked.labels > 0).sum(-1)
    return torch.where(relevant > 0, _hits(ranked, k, ties) / relevant, empty)


def mrr_of(ranked: RankedLists, k: int | None, ties: Ties, empty: float) -> Tensor:
    """`mrr` of lists sorted already, (lists,)."""
    limit = ranked.labels.shape[-1] if k is None else k
    reciprocal = torch.where(ranked.position < limit, 1.0 / (ranked.position + 1.0).double(), 0.0)
    reciprocal = reciprocal.expand_as(ranked.labels)
    relevant = ranked.labels_under(ties) > 0
    if ties == "average":
        value = _expected_reciprocal(ranked, relevant, reciprocal)
    else:
        weights = ranked.weights_under(ties, reciprocal)
        value = (weights * relevant).amax(-1) if weights.shape[-1] else weights.sum(-1)
    return torch.where(relevant.any(-1), value, empty)


def average_precision_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """`average_precision` of lists sorted already, (lists,)."""
    relevant = (ranked.labels_under(ties) > 0).double()
    found = relevant.cumsum(-1)
    place = (ranked.position + 1.0).double()
    if ties == "subrank":
        terms = relevant * found.gather(-1, ranked.end) / (ranked.end + 1.0)
    elif ties == "average":
        size = (ranked.end - ranked.start + 1).double()
        inside = ranked.group_sum(relevant)
        above = (found - relevant).gather(-1, ranked.start)
        offset = (ranked.position - ranked.start).double()
        others = offset * (inside - 1.0) / (size - 1.0).clamp(min=1.0)
        terms = inside / size * (above + 1.0 + others) / place
    else:
        terms = relevant * found / place
    count = relevant.sum(-1)
    return torch.where(count > 0, terms.sum(-1) / count, empty)


def _hits(ranked: RankedLists, k: int | None, ties: Ties) -> Tensor:
    """(Expected) number of relevant items among the top k positions."""
    limit = ranked.labels.shape[-1] if k is None else k
    counted = (ranked.position < limit).double().expand_as(ranked.labels)
    return ranked.total((ranked.labels_under(ties) > 0).double(), counted, ties)


def _expected_reciprocal(ranked: RankedLists, relevant: Tensor, reciprocal: Tensor) -> Tensor:
    """The mean of the first relevant item's reciprocal over all orders of its tie group.

    In a group of m items, r of them relevant, the first relevant one stands at offset j with probability
    C(m - j - 1, r - 1) / C(m, r).
    """
    inside = ranked.group_sum(relevant.double())
    found_above = (relevant.double().cumsum(-1) - relevant.double()).gather(-1, ranked.start)
    decisive = (inside > 0) & (found_above == 0)
    m = (ranked.end - ranked.start + 1).double()
    j = (ranked.position - ranked.start).double()
    possible = decisive & (m - j - 1 >= inside - 1)
    r = torch.where(possible, inside, 1.0)
    rest = torch.where(possible, m - j - 1, 0.0)
    log_probability = _log_choose(rest, r - 1.0) - _log_choose(torch.where(possible, m, 1.0), r)
    return torch.where(possible, log_probability.exp() * reciprocal, 0.0).sum(-1)


def _log_choose(n: Tensor, k: Tensor) -> Tensor:
    return torch.lgamma(n + 1.0) - torch.lgamma(k + 1.0) - torch.lgamma(n - k + 1.0)


def check_k(k: int | None) -> None:
    """Check a cutoff.

    Raises:
        ValueError: no integer of at least 1.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise ValueError(f"k must be an integer >= 1, got {k!r}")
