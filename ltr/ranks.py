"""Rank definitions for batched tensors.

For scores ``f`` of shape ``(*batch, list)``, counting over the real items k of each list:

* RankCV(i)       = #{k : f_k <= f_i}, 1 to n: ties count as correct, so a constant score is best. Never optimise it.
* Subrank(i)      = #{k : f_k < f_i}, 0 to n - 1.
* ResolvedRank(i) = a permutation of 0 to n - 1 ordered by score. Of two tied items the one with the lower label ranks
  higher; items of equal score and label are ordered by index, the first on top.

Ranks grow towards the top of the list. Masked-out items get rank -1.

Source: Rudin & Wang, *Direct Learning to Rank and Rerank* (2018), section 2.6.
"""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltr.checks import one_of
from ltr.lists import Lists, as_lists
from ltr.statistics import GAIN, GainName, RankStatistic

__all__ = [
    "GAIN",
    "GainName",
    "check_finite",
    "gains_of",
    "order_items",
    "position_weights",
    "rank_cv",
    "resolved_rank",
    "subrank",
    "weighted_labels",
    "weights_at",
]


def rank_cv(scores: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Return RankCV(i) = #{k : f_k <= f_i}, the conventional rank, ties counted as correct: int64.

    Examples:
        >>> rank_cv(torch.tensor([2.0, 1.0, 2.0])).tolist()
        [3, 1, 3]
    """
    lists = as_lists(scores, torch.zeros_like(scores), mask=mask)
    return _count_below(lists, inclusive=True)


def subrank(scores: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Return Subrank(i) = #{k : f_k < f_i}: int64.

    Examples:
        >>> subrank(torch.tensor([2.0, 1.0, 2.0])).tolist()
        [1, 0, 1]
    """
    lists = as_lists(scores, torch.zeros_like(scores), mask=mask)
    return _count_below(lists, inclusive=False)


def resolved_rank(scores: Tensor, labels: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Return ResolvedRank, 0 to n - 1, each used once; a tied negative ranks above a tied positive: int64.

    Examples:
        >>> resolved_rank(torch.tensor([2.0, 1.0, 2.0]), torch.tensor([1, 0, 0])).tolist()
        [1, 0, 2]
    """
    lists = as_lists(scores, labels, mask=mask)
    position = order_items(lists, -lists.labels).argsort(-1)
    return (lists.mask.sum(-1, keepdim=True) - 1 - position).masked_fill(~lists.mask, -1)


def order_items(lists: Lists, tie_break: Tensor) -> Tensor:
    """Return the indices that sort each list: by score, then `tie_break`, both descending, then index; padding last."""
    # least significant key first: each stable sort keeps the order of the ones before it
    order = torch.argsort(tie_break, dim=-1, descending=True, stable=True)
    by_score = torch.argsort(lists.scores.detach().gather(-1, order), dim=-1, descending=True, stable=True)
    order = order.gather(-1, by_score)
    real_first = torch.argsort((~lists.mask).to(torch.int8).gather(-1, order), dim=-1, stable=True)
    return order.gather(-1, real_first)


def gains_of(labels: Tensor, gain: GainName) -> Tensor:
    """Return the gain of each label: the label itself (``linear``) or ``2**label - 1`` (``exp2``), which is finite."""
    if one_of("gain", gain, get_args(GainName)) == "linear":
        return labels
    gains = torch.exp2(labels if labels.is_floating_point() else labels.double()) - 1.0
    if not bool(torch.isfinite(gains).all()):
        raise ValueError(f"labels must be small enough for gain 'exp2' to be finite, got {float(labels.max()):g}")
    return gains


def weighted_labels(
    labels: NDArray[np.float64], weights: NDArray[np.float64] | None, gain: GainName
) -> NDArray[np.float64]:
    """Return labels whose gains are those of the given ones times the weights of the rows, if there are any."""
    if weights is None:
        return labels
    gains = gains_of(torch.from_numpy(labels), gain).numpy() * weights
    return np.log2(1.0 + gains) if gain == "exp2" else gains


def check_finite(values: Tensor, statistic: RankStatistic, labels: Tensor) -> None:
    """Raise ValueError unless values of a statistic are finite, which sums of large gains are not."""
    # the sum tells, quickly, unless finite values overflow in it
    if not math.isfinite(float(values.sum())) and not bool(values.isfinite().all()):
        raise ValueError(f"labels must be small enough for {statistic} to be finite, got {float(labels.max()):g}")


def weights_at(statistic: RankStatistic, position: Tensor, n: Tensor) -> Tensor:
    """Return ``a[n - position]``, the weight of each position in its list of n items, as float64."""
    if not position.numel():
        return position.double()

    def table(length: int) -> Tensor:
        return torch.from_numpy(statistic.weights(length, cut=False)).to(n.device)

    longest = int(n[0] if n.stride() == (0,) else n.max())  # one number for all lists
    cutoff = longest if statistic.cutoff is None else min(statistic.cutoff, longest)
    by = statistic.kind.by
    if by == "position":
        values = table(cutoff).flip(0)[position if cutoff == longest else position.clamp(max=cutoff - 1)]
    elif by == "rank":
        values = table(longest)[n - position - 1]
    else:
        values = torch.empty(position.shape, dtype=torch.float64, device=n.device)
        for length in torch.unique(n).tolist():
            here = n == length
            values[here] = table(length)[length - 1 - position[here]]
    return values if cutoff == longest else values.masked_fill(position >= cutoff, 0.0)


def position_weights(statistic: RankStatistic, n: Tensor, longest: int) -> Tensor:
    """Return the weights of all positions of lists of n items, 0 in padding: float64 of shape ``(lists, longest)``."""
    real = torch.arange(longest, device=n.device) < n.unsqueeze(-1)
    row, position = real.nonzero(as_tuple=True)
    return torch.zeros(real.shape, dtype=torch.float64, device=n.device).masked_scatter(
        real, weights_at(statistic, position, n[row])
    )


def _count_below(lists: Lists, *, inclusive: bool) -> Tensor:
    """Return #{k real : f_k < f_i}, or <= when inclusive, for each item; -1 in padding."""
    scores = lists.scores.detach()
    ascending = scores.masked_fill(~lists.mask, math.inf).sort(dim=-1).values
    return torch.searchsorted(ascending, scores.contiguous(), right=inclusive).masked_fill(~lists.mask, -1)
