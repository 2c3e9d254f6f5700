"""Formulas of the metrics on sorted lists: one float64 value per list.

An item is relevant when its label is above 0. Relevant items outside a list count where all relevant ones are counted,
and have no position. `ltr.metrics.measures` gives these functions their names.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ltr.metrics.ranked import RankedLists, Ties, Weight, positions_within, running_product, segment_sum
from ltr.ranks import GAIN, GainName, check_finite, weights_at
from ltr.statistics import RankStatistic


def statistic_of(ranked: RankedLists, statistic: RankStatistic, gain: GainName, ties: Ties, empty: float) -> Tensor:
    """Return the rank statistic of each list."""
    kind = statistic.kind
    statistic.check_kind("labels")
    if kind.share_of_pairs:
        statistic.check_labels(graded=not ranked.binary)
        return _share_of_pairs_of(ranked, ties, empty)
    if not kind.linear:
        return average_precision_of(ranked, statistic.cutoff or math.inf, ties, empty)
    weights = ranked.weights(partial(weights_at, statistic), ties)
    value = ranked.total(weights if kind.counts_hits else ranked.ordered(ties).gains(gain) * weights)
    check_finite(value, statistic, ranked.levels)
    if kind.share_of == "top" and statistic.cutoff is not None:
        return value / statistic.cutoff
    return torch.where(ranked.all_relevant > 0, value / ranked.all_relevant, empty) if kind.share_of else value


def misranking_error_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """Return the share of positive-negative pairs in the wrong order, `empty` if there is no pair."""
    value = statistic_of(ranked, RankStatistic("auc"), GAIN, ties, math.nan)
    return torch.where(value.isnan(), empty, 1.0 - value)


def _share_of_pairs_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """Return twice the number of pairs won over twice the number of pairs, both counted in integers."""
    places = ranked.total(ranked.start + ranked.end if ties == "average" else 2 * ranked.positions(ties))
    n, positives = ranked.n, ranked.relevant
    won = 2 * n * positives - places - positives * (positives + 1)
    pairs = 2 * positives * (n - positives)
    return torch.where(pairs > 0, won.double() / pairs, empty)


def lift_of(ranked: RankedLists, k: float, ties: Ties, empty: float) -> Tensor:
    """Return the share of relevant items among the top k positions over their share of the list."""
    hits = ranked.total(ranked.weights(lambda position, _: (position < k).double(), ties))
    size = ranked.n if k == math.inf else ranked.n.clamp(max=k)
    expected = ranked.relevant.double() * size / ranked.n  # hits by chance
    return torch.where(ranked.relevant > 0, hits / expected, empty)


def mrr_of(ranked: RankedLists, k: float, ties: Ties, empty: float) -> Tensor:
    """Return the reciprocal rank of the first relevant item, 0 if it is below the top k positions."""
    return _of_first(ranked, lambda at, _: torch.where(at < k, 1.0 / (at + 1).double(), 0.0), ties, empty)


def success_of(ranked: RankedLists, k: float, ties: Ties, empty: float) -> Tensor:
    """Return 1 if a relevant item is among the top k positions, else 0."""
    return _of_first(ranked, lambda position, _: (position < k).double(), ties, empty)


def _of_first(ranked: RankedLists, weight: Weight, ties: Ties, empty: float) -> Tensor:
    """Return the weight of the first relevant item of each list, 0 where all of them are outside."""
    some = ranked.relevant > 0
    first = ranked.beginning[some]
    if ties == "average" and ranked.tied:
        found = _expected_first(ranked, ranked.groups.number[first], weight)
    else:
        found = weight(ranked.positions(ties)[first], ranked.n[some])
    return torch.where(ranked.all_relevant > 0, 0.0, empty).double().masked_scatter(some, found)


def average_precision_of(ranked: RankedLists, k: float, ties: Ties, empty: float) -> Tensor:
    """Return the mean over the relevant items of the precision at their positions, 0 below the top k positions."""
    if ties == "average" and ranked.tied:
        total = _expected_precisions(ranked, k)
    else:
        position = ranked.positions(ties)
        total = ranked.total(torch.where(position < k, _found(ranked, ties) / (position + 1), 0.0))
    return torch.where(ranked.all_relevant > 0, total / ranked.all_relevant, empty)


def r_precision_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """Return the precision at the position R, where R is the number of relevant items."""
    many = ranked.all_relevant
    hits = ranked.total(ranked.weights(lambda position, r: (position < r).double(), ties, per_list=many))
    return torch.where(many > 0, hits / many, empty)


def rank_biased_precision_of(ranked: RankedLists, k: float, ties: Ties, empty: float, option: float) -> Tensor:
    """Return ``(1 - p) sum over relevant items of p^position``."""
    p = option
    return ranked.total(ranked.weights(lambda at, _: torch.where(at < k, (1 - p) * p ** at.double(), 0.0), ties))


def expected_reciprocal_rank_of(ranked: RankedLists, k: float, ties: Ties, empty: float, option: float) -> Tensor:
    """Return the expected reciprocal rank at which a reader stops, who stops at a label y with (2^y - 1) / 2^max."""
    if len(ranked.levels) and float(ranked.levels[-1]) > option:
        raise ValueError(
            f"labels must be at most {option:g} for err, got {float(ranked.levels[-1]):g}: name the largest "
            "grade of your labels, as in err(max=5)"
        )
    stop = ranked.ordered(ties).gains("exp2") / 2.0**option
    position = ranked.positions(ties)
    before = running_product(1.0 - stop, ranked.relevant) / (1.0 - stop)
    value = ranked.total(torch.where(position < k, stop * before / (position + 1), 0.0))
    if ties == "average" and ranked.tied:
        tied = torch.bincount(ranked.groups.owner[ranked.groups.size > 1], minlength=len(ranked.n)) > 0
        value = torch.where(tied, _expected_stops(ranked, stop, k), value)
    return value


def bpref_of(ranked: RankedLists, ties: Ties, empty: float) -> Tensor:
    """Return the mean over the R relevant items of ``1 - min(above, R) / min(N, R)``, 0 for those outside the list.

    Of N judged items that are not relevant, `above` stand above the relevant one; unjudged items do not count.
    """
    ranked = ranked.judged_only or ranked
    many = ranked.all_relevant
    least = torch.minimum(many, ranked.nonrelevant).clamp(min=1)

    def kept(above: Tensor, owner: Tensor) -> Tensor:
        return 1.0 - torch.minimum(above, many[owner]).double() / least[owner]

    if ties == "average" and ranked.tied:
        # the number of a group's nonrelevant items above a relevant one is any from none to all, with equal chances
        groups = ranked.groups
        first = groups.start - (groups.relevant.cumsum(0) - groups.relevant - ranked.beginning[groups.owner])
        choices = groups.size - groups.relevant + 1
        above = positions_within(choices) + first.repeat_interleave(choices)
        total = ranked.total(
            (segment_sum(kept(above, groups.owner.repeat_interleave(choices)), choices) / choices)[groups.number]
        )
    else:
        total = ranked.total(kept(ranked.positions(ties) + 1 - _found(ranked, ties).long(), ranked.owner))
    return torch.where(many > 0, total / many, empty)


def _found(ranked: RankedLists, ties: Ties) -> Tensor:
    """Return the number of relevant items from the top down to each relevant one, float64."""
    found = (positions_within(ranked.relevant) + 1).double()
    if ties == "subrank" and ranked.tied:
        found = found[(ranked.groups.relevant.cumsum(0) - 1)[ranked.groups.number]]
    return found


def _expected_precisions(ranked: RankedLists, k: float) -> Tensor:
    """Return the mean, over all orders of ties, of the sum of precisions at relevant items of the top k.

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
    precision = torch.where(groups.positions < k, found / (groups.positions + 1), 0.0)
    expected = segment_sum(precision, groups.size) * r / m
    return segment_sum(expected, torch.bincount(groups.owner, minlength=len(ranked.n)))


def _expected_stops(ranked: RankedLists, stop: Tensor, k: float) -> Tensor:
    """Return the mean of the reciprocal rank of a reader's stop over all orders of ties.

    Let q_j be the mean, over all sets of j items of a group, of the product of their chances to read on: the reader
    stops at offset j with probability ``q_j - q_{j+1}``. One more item, with a chance of u, makes
    ``((t + 1 - j) q_j + j u q_{j-1}) / (t + 1)`` of the q_j of t items.
    """
    groups = ranked.groups
    values, going = np.zeros(len(ranked.n)), np.ones(len(ranked.n))
    chances, begin = 1.0 - stop.numpy(), groups.relevant.cumsum(0) - groups.relevant
    for owner, start, size, first, r in zip(
        *(x.tolist() for x in (groups.owner, groups.start, groups.size, begin, groups.relevant)), strict=True
    ):
        relevant = chances[first : first + r]
        j = np.arange(size + 1.0)
        q = (j <= size - r).astype(np.float64)
        for t, u in enumerate(relevant, start=size - r):
            q = ((t + 1 - j).clip(min=0) * q + j * u * np.r_[0.0, q[:-1]]) / (t + 1)
        positions = start + j[:-1]
        stops = (q[:-1] - q[1:]) / (positions + 1)
        values[owner] += going[owner] * stops[positions < k].sum()
        going[owner] *= q[-1]
    return torch.from_numpy(values)


def _expected_first(ranked: RankedLists, chosen: Tensor, weight: Weight) -> Tensor:
    """Return the mean of the first relevant item's weight over all orders of the chosen tie groups.

    In a group of m items, r of them relevant, the first relevant one is at offset 0 with probability r / m, and
    at offset j with (m - j - r + 1) / (m - j) times the probability of j - 1.
    """
    size, relevant = ranked.groups.size[chosen], ranked.groups.relevant[chosen]
    offset = positions_within(size)
    m, r = (x.double().repeat_interleave(size) for x in (size, relevant))
    factor = torch.where(offset == 0, r / m, (m - offset - r + 1.0).clamp(min=0.0) / (m - offset))
    start, n = (x[chosen].repeat_interleave(size) for x in (ranked.groups.start, ranked.n[ranked.groups.owner]))
    return segment_sum(running_product(factor, size) * weight(start + offset, n), size)
