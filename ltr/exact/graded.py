r"""Graded gains and several query groups: DCG with gains, NDCG, and every other rank statistic of graded lists.

The observations are split into lists, each has a gain >= 0, and only observations of one list are compared:

    sum over lists, sum over their observations i of  gain_i * a[rank_i]  -  C * #{j : w_j != 0}

with a_1..a_n the weights of the rank statistic for a list of that length, and one of two rank definitions:

* ``resolved``: ranks of a permutation, the pessimistic one. The distinct gains of a list are numbered upwards, h_i is
  the *grade* of observation i, and for h_i > h_k

      i beats k  when  w·(x_i - x_k) >= margin * (h_i - h_k),      else k stands above i.

  With c_i the number of observations *of other grades* that stand above i, and c_(0) <= c_(1) <= ... the counts within
  one grade, sorted, the observations of that grade hold the ranks n - p - c_(p), p = 0, 1, ...
* ``subrank``: observation i has rank 1 + #{k in its list : w·(x_i - x_k) >= margin}.

**The ranks are those of a permutation.** i beats k exactly when ``w·x_i - margin h_i >= w·x_k - margin h_k``. So
"stands above" is the order by the key ``w·x - margin h``, of equal keys the higher grade above; only observations of
one grade can be tied in it. Going down that order, the observations of one grade have c nondecreasing, so the p-th of
them is one with c = c_(p); above it stand p of its own grade and c_(p) of others: its rank is n - p - c_(p). Swapping
two of one grade with equal keys changes neither p nor c_(p), so their order does not matter.

**For margin -> 0** the order is that of the scores, and of equal scores the key of the *lower* grade is the larger one:
the permutation in which a tied lower gain stands above a tied higher gain, as ResolvedRank has it for two classes.

**Why the margin grows with the grades.** With one margin for all pairs "stands above" can run in a circle: scores 1.5,
0.75, 0 margins of gains 3, 2, 1 put the second above the first, the third above the second, and the first above the
third. Their sum can exceed the value of the perfect ranking, and shrinking w can raise it. With the grades' steps:

* No weights exceed the perfect ranking, gains descending: that holds for every permutation (rearrangement).
* Scaling w up never lowers the value. Where the keys ``s w·x - margin h`` of some observations meet at a scale s,
  their scores ascend with their grades: just below s the lower grades stand above, from s on the higher ones do. They
  fill the same places of the list before and after, and gains ascending from the top are the worst order of them, gains
  descending the best. So the optimum is found at ``max |w_j| = 1`` or w = 0, as for two classes.
* Hence the value under a margin is at most that for margin -> 0, too.

With two distinct gains in a list all steps are 1, and with the gains 0 and 1 in one list everything is as in
`RerankProblem`, but for the affine map of ``auc``: here ``auc`` has the rank sums' weights a_l = l.

Source: Rudin & Wang (2018), section 2.2, for the statistics; Järvelin & Kekäläinen (2002) for gains and NDCG.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ltr.checks import as_array, as_numbers
from ltr.exact.problem import (
    FloatArray,
    IntArray,
    LinearConstraints,
    Problem,
    RankName,
    check_rank,
    count_beaten,
    finite_features,
    set_fields,
    set_prices,
)
from ltr.statistics import RankStatistic

__all__ = ["GradedProblem"]

GainName = Literal["exp2", "linear"]


@dataclass(frozen=True, eq=False)
class GradedProblem(Problem):
    """Find the weights with the largest rank statistic on lists of observations with gains.

    ``max over w in [-1, 1]^d of  sum over lists, sum_i gain_i a[rank_i]  -  C ||w||_0``, ranks within each list; the
    module text defines the ranks and what the margin means.

    Args:
        X: observations, (n, d), finite.
        gains: worth of each observation, (n,), finite, >= 0, at least one > 0.
        qid: list of each observation, integers (n,), in any order; None is one list.
        statistic: a `RankStatistic` or its name; ``auc`` counts rank sums, without an affine map.
        C: price of each non-zero weight, >= 0.
        margin: score difference, for each step between the grades of a list, from which an observation beats another.
        rank: ``"resolved"`` (default) or ``"subrank"``.
        constraints: side constraints ``A w <= b``.
        max_nonzeros: most weights that may differ from 0, 1 to d; None for no limit.

    Raises:
        ValueError: an argument against its rule, named with the value received.

    Examples:
        >>> problem = GradedProblem([[0.0], [1.0], [2.0]], gains=[1, 0, 3], statistic="dcg")
        >>> problem.evaluate([1.0]), problem.evaluate([-1.0])  # 3 * 1 + 1 * 0.5 and 1 * 1 + 3 * 0.5
        (3.5, 2.5)
    """

    X: FloatArray
    gains: FloatArray
    qid: IntArray
    statistic: RankStatistic = field(default_factory=lambda: RankStatistic("dcg"))
    C: float = 0.0
    margin: float = 1e-4
    rank: RankName = "resolved"
    constraints: LinearConstraints | None = None
    max_nonzeros: int | None = None

    def __init__(
        self,
        X: ArrayLike,
        gains: ArrayLike,
        qid: ArrayLike | None = None,
        statistic: RankStatistic | str = "dcg",
        C: float = 0.0,
        margin: float = 1e-4,
        *,
        rank: RankName = "resolved",
        constraints: LinearConstraints | None = None,
        max_nonzeros: int | None = None,
    ) -> None:
        features = finite_features(X)
        worth = as_numbers("gains", gains).copy()
        if worth.shape != features.shape[:1]:
            raise ValueError(f"gains must have one number a row of X ({features.shape[0]}), got shape {worth.shape}")
        wrong = ~(np.isfinite(worth) & (worth >= 0))
        if wrong.any():
            raise ValueError(f"gains must be finite numbers >= 0, got {float(worth[wrong][0])!r}")
        if not worth.any():
            raise ValueError("gains must hold a number > 0, got only 0")
        groups = _group_ids(qid, features.shape[0])
        check_rank(rank)
        set_fields(self, X=features, gains=worth, qid=groups, statistic=RankStatistic.parse(statistic), rank=rank)
        set_prices(self, C, margin, constraints, max_nonzeros)
        for members in self.lists:
            self.statistic.weights(len(members))  # a user's own weights must fit every list

    @classmethod
    def from_labels(
        cls,
        X: ArrayLike,
        labels: ArrayLike,
        qid: ArrayLike | None = None,
        statistic: RankStatistic | str = "dcg",
        C: float = 0.0,
        margin: float = 1e-4,
        *,
        gain: GainName | Callable[[FloatArray], ArrayLike] = "exp2",
        normalise: bool = False,
        rank: RankName = "resolved",
        constraints: LinearConstraints | None = None,
        max_nonzeros: int | None = None,
    ) -> GradedProblem:
        """The problem of graded labels, such as 0 to 4.

        Args:
            X: observations, (n, d), finite.
            labels: label of each observation, (n,).
            qid: list of each observation, integers (n,), in any order; None is one list.
            statistic: a `RankStatistic` or its name.
            C: price of each non-zero weight, >= 0.
            margin: as for the class.
            gain: ``"exp2"`` for 2^label - 1, ``"linear"`` for the label itself, or a function of the array of labels.
            normalise: divide the gains of each list by the value of its perfect ranking and by the number of lists
                that have one above 0, so that the statistic is the mean of the normalised statistic (NDCG for ``dcg``)
                over these lists. Lists without a positive gain are left out of the mean.
            rank: ``"resolved"`` (default) or ``"subrank"``.
            constraints: side constraints ``A w <= b``.
            max_nonzeros: most weights that may differ from 0, 1 to d; None for no limit.

        Raises:
            ValueError: an argument against its rule, named with the value received.

        Examples:
            >>> problem = GradedProblem.from_labels([[0.0], [1.0], [2.0]], [1, 0, 2], normalise=True)
            >>> round(problem.evaluate([1.0]), 4)  # (3 * 1 + 1 * 0.5) / (3 * 1 + 1 * 0.6309)
            0.9639
        """
        gains = _gains(as_numbers("labels", labels).copy(), gain)
        problem = cls(
            X, gains, qid, statistic, C, margin, rank=rank, constraints=constraints, max_nonzeros=max_nonzeros
        )
        if not normalise:
            return problem
        best = [problem._best(members) for members in problem.lists]
        gains = problem.gains.copy()
        for members, value in zip(problem.lists, best, strict=True):
            if value > 0:
                gains[members] /= value * np.count_nonzero(best)
        return cls(X, gains, qid, statistic, C, margin, rank=rank, constraints=constraints, max_nonzeros=max_nonzeros)

    @cached_property
    def lists(self) -> list[IntArray]:
        """Indices of the observations of each list, lists in the order of their `qid`."""
        order = np.argsort(self.qid, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.qid[order])) + 1)

    @cached_property
    def grades(self) -> IntArray:
        """Number of each observation's gain among the distinct gains of its list, 0 for the smallest, (n,)."""
        grades = np.empty(self.n, dtype=np.int64)
        for members in self.lists:
            grades[members] = np.unique(self.gains[members], return_inverse=True)[1]
        return grades

    @property
    def trivial_bound(self) -> float:
        """The statistic of a perfect ranking, gains descending in every list: no weights exceed it."""
        return math.fsum(map(self._best, self.lists))

    def _best(self, members: IntArray) -> float:
        return math.fsum(np.sort(self.gains[members]) * self.statistic.weights(len(members)))

    def ranks(self, w: ArrayLike) -> IntArray:
        """Rank of every observation within its list at w (1 at the bottom), in the order of `X`.

        With ``rank="resolved"`` observations of one grade that stand below equally many others are ordered by index.
        """
        scores = self.scores(self.in_box(w))
        ranks = np.empty(self.n, dtype=np.int64)
        for members in self.lists:
            if self.rank == "subrank":
                ranks[members] = 1 + count_beaten(scores, members, members)
            else:
                keys = scores.order(members, self.grades[members])
                ranks[members] = _resolved_ranks(keys, self.grades[members])
        return ranks

    def statistic_value(self, w: ArrayLike) -> float:
        """The statistic at w, without the price of the weights."""
        ranks = self.ranks(w)
        return math.fsum(
            term
            for members in self.lists
            for term in self.gains[members] * self.statistic.weights(len(members))[ranks[members] - 1]
        )


def _resolved_ranks(keys: IntArray, grades: IntArray) -> IntArray:
    """Ranks (1 at the bottom) by key, of equal keys the higher grade above; ties within a grade by index."""
    n = len(keys)
    position = np.empty(n, dtype=np.int64)
    position[np.lexsort((-grades, -keys))] = np.arange(n)
    by_grade = np.lexsort((position, grades))
    sizes = np.unique(grades, return_counts=True)[1]
    within = np.empty(n, dtype=np.int64)
    within[by_grade] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # the places of a grade are the same whoever holds them
    ranks = np.empty(n, dtype=np.int64)
    ranks[np.lexsort((position - within, grades))] = n - position[by_grade]
    return ranks


def _gains(labels: FloatArray, gain: GainName | Callable[[FloatArray], ArrayLike]) -> FloatArray:
    if callable(gain):
        return np.array(gain(labels), dtype=np.float64)
    if gain == "exp2":
        with np.errstate(over="ignore"):
            return np.exp2(labels) - 1.0
    if gain == "linear":
        return labels
    raise ValueError(f"gain must be 'exp2', 'linear' or a function of the labels, got {gain!r}")


def _group_ids(qid: ArrayLike | None, n: int) -> IntArray:
    if qid is None:
        return np.zeros(n, dtype=np.int64)
    groups = as_array("qid", qid)
    if groups.shape != (n,) or not np.issubdtype(groups.dtype, np.integer):
        raise ValueError(f"qid must hold one integer a row of X ({n}), got {groups.dtype} of shape {groups.shape}")
    return groups.astype(np.int64)
