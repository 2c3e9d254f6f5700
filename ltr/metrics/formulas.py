"""Formulas of the metrics on sorted lists: one float64 value per list.

An item is relevant when its label is above 0. `ltr.metrics.measures` gives these functions their names.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from ltr.metrics.ranked import RankedLists, Ties, Weight, positions_within, running_product, segment_sum
from ltr.ranks import GainName, weights_at
from ltr.statistics import RankStatistic


def statistic_of(ranked: RankedLists, statistic: RankStatistic, gain: GainName, ties: Ties, empty: float) -> Tensor:
    """Return the rank statistic of each list."""
    if statistic.kind.share_of_pairs:
        statistic.check_labels(graded=not ranked.binary)
        return _share_of_pairs_of(ranked, ties, empty)
    return ranked.total(ranked.ordered(ties).gains(gain) * ranked.weights(partial(weights_at, statistic), ties))


def misranking_error_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """Return the share of positive-negative pairs in the wrong order, `empty` if there is no pair."""
    value = statistic_of(ranked, RankStatistic("auc"), "linear", ties, math.nan)
    return torch.where(value.isnan(), empty, 1.0 - value)


def _share_of_pairs_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """Return twice the number of pairs won over twice the number of pairs, both counted in integers."""
    if ties == "average":
        places = ranked.total(ranked.start + ranked.end)
    else:
        places = 2 * ranked.total(ranked.end if ties == "subrank" else ranked.ordered(ties).position)
    n, positives = ranked.n, ranked.relevant
    won = 2 * n * positives - places - positives * (positives + 1)
    pairs = 2 * positives * (n - positives)
    return torch.where(pairs > 0, won.double() / pairs, empty)


def precision_of(ranked: RankedLists, k: int | None, ties: Ties, empty: float) -> Tensor:
    """Return relevant items among the top k positions over k, or over the length of the list without a cutoff."""
    hits = _hits(ranked, k, ties)
    size = ranked.n.double() if k is None else torch.full_like(hits, k)
    return torch.where(ranked.n > 0, hits / size, empty)


def recall_of(ranked: RankedLists, k: int | None, ties: Ties, empty: float) -> Tensor:
    """Return the share of the relevant items that are among the top k positions."""
    return torch.where(ranked.relevant > 0, _hits(ranked, k, ties) / ranked.relevant, empty)


def mrr_of(ranked: RankedLists, k: int | None, ties: Ties, empty: float) -> Tensor:
    """Return the reciprocal rank of the first relevant item, 0 if it is below the top k positions."""

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
    """Return the mean over the relevant items of the precision at their positions."""
    found = (positions_within(ranked.relevant) + 1).double()  # relevant items from the top down to this one
    if ties == "average" and ranked.tied:
        total = _expected_precisions(ranked)
    elif ties == "subrank" and ranked.tied:
        last = ranked.groups.relevant.cumsum(0) - 1
        total = ranked.total(found[last[ranked.groups.number]] / (ranked.end + 1))
    else:
        total = ranked.total(found / (ranked.ordered(ties).position + 1))
    return torch.where(ranked.relevant > 0, total / ranked.relevant, empty)


def _hits(ranked: RankedLists, k: int | None, ties: Ties) -> Tensor:
    """Return the number of relevant items among the top k positions, expected where ties are averaged."""
    if k is None:
        return ranked.relevant.double()
    return ranked.total(ranked.weights(lambda position, _: (position < k).double(), ties))


def _expected_precisions(ranked: RankedLists) -> Tensor:
    """Return the mean, over all orders of ties, of the sum of precisions at relevant items.

    Let a group of m items begin at position s, with r relevant items in it and c above. Its position p has a relevant
    item with probability r / m; if so, (p - s)(r - 1) / (m - 1) relevant items of the group are expected above it.
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
    """Return the mean of the first relevant item's reciprocal rank over all orders of the chosen tie groups.

    In a group of m items, r of them relevant, the first relevant one is at offset 0 with probability r / m, and
    at offset j with (m - j - r + 1) / (m - j) times the probability of j - 1.
    """
    size, relevant = ranked.groups.size[chosen], ranked.groups.relevant[chosen]
    offset = positions_within(size)
    m, r = (x.double().repeat_interleave(size) for x in (size, relevant))
    factor = torch.where(offset == 0, r / m, (m - offset - r + 1.0).clamp(min=0.0) / (m - offset))
    start, n = (x[chosen].repeat_interleave(size) for x in (ranked.groups.start, ranked.n[ranked.groups.owner]))
    return segment_sum(running_product(factor, size) * reciprocal(start + offset, n), size)
