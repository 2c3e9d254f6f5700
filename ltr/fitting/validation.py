"""Rows that a fit does not learn from: how they are drawn, and the rank statistic by which they decide when to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.data.dataset import labels_agree
from ltr.data.times import blocks_of
from ltr.fitting.observations import Rows
from ltr.lists import numbered, split_weights
from ltr.metrics import normalized_rank_statistic, rank_statistic
from ltr.metrics.ranked import Ties
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Validation:
    """Rows held out of a fit, and the statistic that their scores should reach.

    Attributes:
        X: observations, (n, d), in the form that the scorer takes, or the `ltr.fitting.observations.Rows` of them.
        statistic: the rank statistic; each list counts by its share of the value of its ideal order.
        weight: weight of each row, (n,), which weighs lists as in `ltr.lists.split_weights`; None where all count
            alike.
        start_counts: whether the start of the fit may be the best step; random weights should not, however lucky.
        decides: whether the statistic chooses the best step and ends the fit; otherwise it is measured and reported.
    """

    X: FloatArray | Rows
    y: FloatArray
    qid: IntArray | None = None
    statistic: RankStatistic | str = "dcg"
    gain: GainName = "exp2"
    start_counts: bool = False
    weight: FloatArray | None = None
    decides: bool = True

    @property
    def lists(self) -> IntArray:
        """The number of each row's list, lists in the order in which they first appear."""
        if self.qid is None:
            return np.zeros(len(self.y), dtype=np.int64)
        return numbered(torch.from_numpy(self.qid)).numpy()

    def weights(self) -> FloatArray:
        """Return the weight of each list."""
        lists = self.lists
        if self.weight is None:
            return np.ones(lists.max() + 1)
        return split_weights(*(torch.from_numpy(values) for values in (self.weight, lists, self.y)))[0].numpy()

    def values(self, scores: FloatArray) -> FloatArray:
        """Return the share of each list, NaN where it is not defined."""
        measure = RankStatistic.parse(self.statistic), self.gain, True
        return values_of_lists(np.asarray(scores, dtype=np.float64), self.y, measure, self.lists)

    def mean(self, scores: FloatArray) -> float:
        """Return the weighted mean over the lists for which the share is defined, NaN without any."""
        values, weights = self.values(scores), self.weights()
        known = ~np.isnan(values) & (weights > 0)
        return float(np.average(values[known], weights=weights[known])) if known.any() else math.nan


def values_of_lists(
    scores: FloatArray,
    labels: FloatArray,
    measure: tuple[RankStatistic, GainName, bool],
    lists: IntArray | None = None,
    ties: Ties = "resolved",
) -> NDArray[Any]:
    """Return the statistic of each list, in the order in which lists first appear, or of each row of a batch."""
    statistic, gain, normalize = measure
    function = normalized_rank_statistic if normalize else rank_statistic
    given = torch.from_numpy(scores), torch.from_numpy(labels)
    qid = None if lists is None else torch.from_numpy(lists)
    return np.asarray(function(*given, statistic, gain=gain, ties=ties, qid=qid))


def units_and_strata(labels: FloatArray, lists: IntArray | None, groups: IntArray | None) -> tuple[IntArray, IntArray]:
    """Return what a division of rows must not divide, and of which of it each part should get the same share.

    The first is the number of each row's unit, (n,): its group, its list, or the row itself. The second is the stratum
    of each unit: of a single list, whether its share of labels above the lowest is above the mean; of several, 0.
    """
    together = groups if groups is not None else lists
    units = np.arange(len(labels)) if together is None else np.unique(together, return_inverse=True)[1]
    if lists is not None:
        return units, np.zeros(units.max() + 1, dtype=np.int64)
    positive = (labels > labels.min()).astype(np.float64)
    share = np.bincount(units, positive) / np.bincount(units)
    return units, (share > positive.mean()).astype(np.int64)


def held_out(
    labels: FloatArray,
    lists: IntArray | None,
    groups: IntArray | None,
    share: float,
    seed: int,
    times: NDArray[Any] | None = None,
) -> NDArray[np.bool_] | None:
    """Draw the rows to hold out: whole groups or lists, or of a single list the same share of every label.

    With times nothing is drawn: the latest rows are held out, whole moments of them, whatever their groups. Returns
    which rows are held out, (n,); None where one of the two parts would hold nothing to rank.

    Examples:
        >>> held_out(np.array([0.0, 1.0, 0.0, 1.0, 0.0]), np.array([7, 7, 8, 8, 8]), None, 0.5, 0).tolist()
        [True, True, False, False, False]
    """
    if times is not None:
        chosen = blocks_of(times, [1 - share]) == 1
    else:
        order = np.random.default_rng((seed, 0))  # steps, which draw mini-batches, count from 1
        units, strata = units_and_strata(labels, lists, groups)
        if lists is None and groups is None:
            strata = np.unique(labels, return_inverse=True)[1]
        fewest = 0 if lists is None else 1
        drawn = []
        for stratum in np.unique(strata):
            members = order.permutation(np.flatnonzero(strata == stratum))
            drawn.append(members[: max(fewest, round(share * len(members)))])
        chosen = np.isin(units, np.concatenate(drawn))
    return None if any(nothing_to_rank(part, labels, lists) for part in (chosen, ~chosen)) else chosen


def nothing_to_rank(rows: NDArray[Any], labels: FloatArray, lists: IntArray | None) -> bool:
    """Return whether some rows, by number or by a mask, hold no list with two different labels."""
    labels = labels[rows]
    return len(labels) == 0 or labels_agree(labels, None if lists is None else lists[rows])
