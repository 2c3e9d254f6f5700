r"""One structure below every objective of the package: levels of observations, and counts of what stands above them.

Every problem is written as

    value = shift + sum over levels L, sum over places p = 0, 1, ... of  worth_L[p + c_(p)]

where worth_L is nonincreasing, the members of a level are observations of one list with equal gain, c_i counts what
stands above member i outside its own level, and c_(0) <= c_(1) <= ... are the counts of the level, sorted.

A *pair* q holds two observations, and is *won* at w when ``w·(x_above - x_below) >= margin * steps``, else *lost*. A
lost pair adds 1 to the count of its owner (a member of observation `above`), a won one adds 1 to the count of its
rival (a member of observation `below`), if it has one:

    c_i = #{q : owner_q = i, q lost} + #{q : rival_q = i, q won}.

===================================  ======================  ======================================================
problem                              levels                  pairs of a member
===================================  ======================  ======================================================
`RerankProblem`, resolved            all positives           the negatives; worth[t] = a[n - t]
`RerankProblem`, subrank             each positive its own   all other observations; worth[t] = a[n - t]
`GradedProblem`, resolved            each gain of each list  lower gains of the list; worth[t] = gain * a[n_list - t],
                                                             and the rival of a pair is its lower end, where it has a
                                                             gain itself
`GradedProblem`, subrank             each gain > 0 its own   all others of the list; worth[t] = gain * a[n_list - t]
`PairwiseProblem`                    each pair its own       the pair; worth = (weight, 0)
===================================  ======================  ======================================================

**A bound over any set of weights.** Where every pair is known to be won on the whole set, known to be lost on the
whole set, or open, let ``b_i = #{q : owner_q = i, q known lost} + #{q : rival_q = i, q known won}``. At every w of the
set b_i <= c_i, for the pairs counted in b_i are counted in c_i. Sorting keeps this order: c_(p) is the smallest number
with p + 1 counts at or below it, and p + 1 of the b_i are at or below it too, hence b_(p) <= c_(p). As worth is
nonincreasing, ``shift + sum_L sum_p worth_L[p + b_(p)]`` is at least the value at every w of the set.

**One pair costs O(1).** With ``fewer[m] = #{members of the level with c < m}``, a count that falls from m to m - 1 is
the first of the sorted run of m, at place p = fewer[m]:

    value += worth[p + m - 1] - worth[p + m],      fewer[m] += 1,

and one that rises from m - 1 to m undoes this with p = fewer[m] - 1. In a level of one member p is always 0.
"""

from __future__ import annotations

import math
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
        rival: member whose count a won pair raises, -1 for none, (pairs,).
        first: the pairs that member i owns are ``first[i] : first[i + 1]``, (members + 1,).
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
    rival: IntArray
    first: IntArray
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
    for owner, rival, wins in zip(levels.owner.tolist(), levels.rival.tolist(), np.asarray(won).tolist(), strict=True):
        if not wins:
            counts[owner] += 1
        elif rival >= 0:
            counts[rival] += 1
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
        rival=np.full(len(everyone), -1),
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
    n = len(gains)
    member_of = np.full(n, -1)
    observation, level, ends, worth = [], [], [], []
    table: list[int] = []
    known: dict[tuple[int, float], int] = {}
    length = 0
    for members, a in zip(lists, weights, strict=True):
        gainful = members[gains[members] > 0]
        if resolved:
            gainful = gainful[np.argsort(-grades[gainful], kind="stable")]
            pair = grades[gainful, None] > grades[None, members]
            new = np.diff(grades[gainful], prepend=-1) != 0
        else:
            pair = gainful[:, None] != members[None, :]
            new = np.ones(len(gainful), dtype=bool)
        level.append(len(table) + np.cumsum(new) - 1)
        for gain in gains[gainful[new]].tolist():
            if (len(members), gain) not in known:
                known[len(members), gain] = length
                worth.append(gain * a[::-1])
                length += len(a)
            table.append(known[len(members), gain])
        observation.append(gainful)
        i, k = np.nonzero(pair)
        ends.append(np.column_stack([gainful[i], members[k]]))
    owners, edges = np.concatenate(observation), np.concatenate(ends)
    member_of[owners] = np.arange(len(owners))
    above, below = edges.T
    return _assemble(
        ends=edges,
        steps=grades[above] - grades[below] if resolved else np.ones(len(edges), dtype=np.int64),
        owner=member_of[above],
        rival=member_of[below] if resolved else np.full(len(edges), -1),
        observation=owners,
        level=np.concatenate(level),
        worth=np.concatenate(worth),
        table=np.array(table),
        shift=shift,
    )


def _assemble(
    ends: IntArray,
    steps: IntArray,
    owner: IntArray,
    rival: IntArray,
    observation: IntArray,
    level: IntArray,
    worth: FloatArray,
    table: IntArray,
    shift: float,
) -> Levels:
    """Add the offsets that follow from the rest."""
    members, levels = len(observation), len(table)
    owned = np.bincount(owner, minlength=members)
    largest = owned + np.bincount(rival[rival >= 0], minlength=members)
    start = np.searchsorted(level, np.arange(levels + 1))
    most = np.maximum.reduceat(largest, start[:-1])
    room = np.where(np.diff(start) > 1, most + 2, 0)
    return Levels(
        above=_int64(ends[:, 0]),
        below=_int64(ends[:, 1]),
        steps=_int64(steps),
        owner=_int64(owner),
        rival=_int64(rival),
        first=_int64(np.concatenate([[0], np.cumsum(owned)])),
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
