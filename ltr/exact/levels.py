r"""One structure below every objective of the package: levels of observations, and counts of what stands above them.

Every problem is written as

    value = shift + sum over levels L, sum over places p = 0, 1, ... of  worth_L[p + c_(p)]

where worth_L is nonincreasing, the members of a level are observations of one list, c_i counts the pairs that member i
has lost, and c_(0) <= c_(1) <= ... are the counts of the level, sorted. A *pair* belongs to one member, its *owner*,
and holds two observations, of which `above` is the owner's; it is *won* at w when
``w·(x_above - x_below) >= margin * steps``, else *lost*.

===================================  =====================  =======================================================
problem                              levels                 pairs of a member
===================================  =====================  =======================================================
`RerankProblem`, resolved            all positives          the negatives; worth[t] = a[n - t]
`RerankProblem`, subrank             each positive its own  all other observations; worth[t] = a[n - t]
`GradedProblem`, resolved            each layer             the lower gains of the list; worth[t] = (the layer's
                                                            gain less that of the layer before) * a[n_list - t]
`GradedProblem`, subrank             each gain > 0 its own  all others of the list; worth[t] = gain * a[n_list - t]
`PairwiseProblem`                    each pair its own      the pair; worth = (weight, 0)
===================================  =====================  =======================================================

**Layers.** With v_0 = 0 and 0 < v_1 < v_2 < ... the gains of a list, ``gain_i = sum over t with v_t <= gain_i of
v_t - v_(t-1)``. So the statistic of graded gains is a sum over layers t of v_t - v_(t-1) times the one of two classes,
``gain >= v_t`` and the others, under the same permutation. As for two classes, the ranks of the upper class are
n - p - c_(p), with c_i the number of the others that stand above i: of a permutation, the p-th of the class from above
has p of its class above it. A pair is in all layers between the gains of its two observations, one owner in each.

**A bound over any set of weights.** Where every pair is known to be won on the whole set, known to be lost on the
whole set, or open, let b_i be the number of pairs of i known to be lost. At every w of the set b_i <= c_i. Sorting
keeps this order: c_(p) is the smallest number with p + 1 counts at or below it, and p + 1 of the b_i are at or below it
too, hence b_(p) <= c_(p). As worth is nonincreasing, ``shift + sum_L sum_p worth_L[p + b_(p)]`` is at least the value
at every w of the set.

**One pair costs O(1).** With ``fewer[m] = #{members of the level with c < m}``, a count that falls from m to m - 1 is
the first of the sorted run of m, at place p = fewer[m]:

    value += worth[p + m - 1] - worth[p + m],      fewer[m] += 1,

and one that rises from m - 1 to m undoes this with p = fewer[m] - 1. In a level of one member p is always 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.exact.graded import GradedProblem
from ltr.exact.preferences import PairwiseProblem
from ltr.exact.problem import Problem, RerankProblem

__all__ = ["Levels", "levels_of", "value"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Levels(NamedTuple):
    """A problem's objective without its price, margin and side constraints; plain arrays, members sorted by level.

    Attributes:
        above: observation that a won pair puts above the other, (pairs,), sorted by owner.
        below: the other observation, (pairs,).
        steps: a pair is won from ``margin * steps`` on, >= 1; 1 but for more than two gains in a list, (pairs,).
        owner: member whose count a lost pair raises, (pairs,), ascending.
        observation: observation of each member, (members,).
        level: level of each member, ascending, (members,).
        start: the members of level L are ``start[L] : start[L + 1]``, (levels + 1,).
        most: largest count that a member of the level can have, (levels,).
        worth: tables one behind the other; several levels may read one table.
        table: ``worth_L[t] = worth[table[L] + t]`` for t from 0 to (members of L) - 1 + most[L], (levels,).
        slot: ``fewer[0 .. most[L] + 1]`` of level L lies at ``slot[L]`` of one array of `slots` numbers; -1 for a level
            of one member, which needs none, (levels,).
        slots: length of that array.
        shift: constant part of the value.
    """

    above: IntArray
    below: IntArray
    steps: IntArray
    owner: IntArray
    observation: IntArray
    level: IntArray
    start: IntArray
    most: IntArray
    worth: FloatArray
    table: IntArray
    slot: IntArray
    slots: int
    shift: float


def levels_of(problem: Problem) -> Levels:
    """The levels of a problem.

    Raises:
        TypeError: a problem of another type.

    Examples:
        >>> problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], statistic="wrs")
        >>> levels = levels_of(problem)
        >>> levels.above.tolist(), levels.below.tolist(), levels.worth.tolist()
        ([1, 2], [0, 0], [3.0, 2.0, 1.0])
        >>> value(levels, [False, True]) == problem.statistic_value([-1.0]) + 1
        True
    """
    if isinstance(problem, PairwiseProblem):
        return _of_preferences(problem)
    if isinstance(problem, RerankProblem):
        everyone, gains = np.arange(problem.n), problem.y.astype(np.float64)
        return _of_lists([everyone], [problem.a], gains, problem.y, problem.rank == "resolved", problem.shift)
    if isinstance(problem, GradedProblem):
        lists = problem.lists
        weights = [problem.statistic.weights(len(members)) for members in lists]
        return _of_lists(lists, weights, problem.gains, problem.grades, problem.rank == "resolved", 0.0)
    raise TypeError(f"problem must be a RerankProblem, GradedProblem or PairwiseProblem, got {type(problem).__name__}")


def value(levels: Levels, won: ArrayLike) -> float:
    """The value where these pairs are won and all others lost, from the definition: slow, for tests."""
    counts = [0] * len(levels.observation)
    for owner, wins in zip(levels.owner.tolist(), np.asarray(won).tolist(), strict=True):
        counts[owner] += not wins
    terms = [levels.shift]
    for level, table in enumerate(levels.table.tolist()):
        members = sorted(counts[levels.start[level] : levels.start[level + 1]])
        terms += [float(levels.worth[table + p + c]) for p, c in enumerate(members)]
    return math.fsum(terms)


def _of_preferences(problem: PairwiseProblem) -> Levels:
    everyone = np.arange(len(problem.pairs))
    weights, of_weight = np.unique(problem.weights, return_inverse=True)
    return _assemble(
        ends=problem.pairs,
        steps=np.ones(len(everyone), dtype=np.int64),
        owner=everyone,
        observation=problem.pairs[:, 0],
        level=everyone,
        worth=np.column_stack([weights, np.zeros(len(weights))]).ravel(),
        table=2 * of_weight,
        shift=0.0,
    )


def _of_lists(
    lists: list[IntArray],
    weights: list[FloatArray],
    gains: FloatArray,
    grades: IntArray,
    resolved: bool,
    shift: float,
) -> Levels:
    """The levels of ranked lists; `grades` numbers the gains of a list in ascending order, `weights` are a_1..a_n."""
    observation, level, ends, owner, worth = [], [], [], [], []
    table: list[int] = []
    known: dict[tuple[int, float], int] = {}
    members, length = 0, 0
    for everyone, a in zip(lists, weights, strict=True):
        for gain, upper, lower in _layers(everyone, gains[everyone]) if resolved else _singles(everyone, gains):
            if (len(everyone), gain) not in known:
                known[len(everyone), gain] = length
                worth.append(gain * a[::-1])
                length += len(a)
            level.append(np.full(len(upper), len(table)))
            table.append(known[len(everyone), gain])
            observation.append(upper)
            ends.append(np.column_stack([np.repeat(upper, len(lower)), np.tile(lower, len(upper))]))
            owner.append(np.repeat(np.arange(members, members + len(upper)), len(lower)))
            members += len(upper)
    edges = np.concatenate(ends)
    return _assemble(
        ends=edges,
        steps=grades[edges[:, 0]] - grades[edges[:, 1]] if resolved else np.ones(len(edges), dtype=np.int64),
        owner=np.concatenate(owner),
        observation=np.concatenate(observation),
        level=np.concatenate(level),
        worth=np.concatenate(worth),
        table=np.array(table),
        shift=shift,
    )


def _layers(everyone: IntArray, gains: FloatArray) -> Iterator[tuple[float, IntArray, IntArray]]:
    """What each layer of a list adds to the gain, its members, and the other observations."""
    values = np.unique(np.append(gains, 0.0)).tolist()
    for lower, value in itertools.pairwise(values):
        yield value - lower, everyone[gains >= value], everyone[gains < value]


def _singles(everyone: IntArray, gains: FloatArray) -> Iterator[tuple[float, IntArray, IntArray]]:
    """The gain of each observation that has one, the observation, and all others."""
    for i in everyone[gains[everyone] > 0]:
        yield float(gains[i]), np.array([i]), everyone[everyone != i]


def _assemble(
    ends: IntArray,
    steps: IntArray,
    owner: IntArray,
    observation: IntArray,
    level: IntArray,
    worth: FloatArray,
    table: IntArray,
    shift: float,
) -> Levels:
    """Add the offsets that follow from the rest."""
    members, levels = len(observation), len(table)
    owned = np.bincount(owner, minlength=members)
    start = np.searchsorted(level, np.arange(levels + 1))
    most = np.maximum.reduceat(owned, start[:-1])
    room = np.where(np.diff(start) > 1, most + 2, 0)
    return Levels(
        above=_int64(ends[:, 0]),
        below=_int64(ends[:, 1]),
        steps=_int64(steps),
        owner=_int64(owner),
        observation=_int64(observation),
        level=_int64(level),
        start=_int64(start),
        most=_int64(most),
        worth=np.ascontiguousarray(worth, dtype=np.float64),
        table=_int64(table),
        slot=_int64(np.where(room > 0, np.cumsum(room) - room, -1)),
        slots=int(room.sum()),
        shift=float(shift),
    )


def _int64(values: IntArray) -> IntArray:
    """A contiguous array of its own: read-only arrays would be another type to the compiled kernels."""
    return np.array(values, dtype=np.int64, order="C")
