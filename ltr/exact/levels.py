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
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.exact.graded import GradedProblem
from ltr.exact.preferences import PairwiseProblem
from ltr.exact.problem import Problem, RerankProblem

__all__ = ["NO_PAIRS", "PAIR_BYTES", "Levels", "balance", "levels_of", "pair_count", "value"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.int32]
AnyIntArray = NDArray[np.int32] | NDArray[np.int64]
Integer = TypeVar("Integer", np.int32, np.int64)
Tick = Callable[[], None]

PAIR_BYTES = 16
"""Bytes that `Levels` take for each pair."""

_BLOCK = 500_000  # pairs written between two looks at the clock


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

    above: IndexArray
    below: IndexArray
    steps: IndexArray
    owner: IndexArray
    observation: IntArray
    level: IntArray
    start: IntArray
    most: IntArray
    worth: FloatArray
    table: IntArray
    slot: IntArray
    slots: int
    shift: float


NO_PAIRS = Levels(
    above=np.zeros(0, dtype=np.int32),
    below=np.zeros(0, dtype=np.int32),
    steps=np.zeros(0, dtype=np.int32),
    owner=np.zeros(0, dtype=np.int32),
    observation=np.zeros(0, dtype=np.int64),
    level=np.zeros(0, dtype=np.int64),
    start=np.zeros(1, dtype=np.int64),
    most=np.zeros(0, dtype=np.int64),
    worth=np.zeros(1),
    table=np.zeros(0, dtype=np.int64),
    slot=np.zeros(0, dtype=np.int64),
    slots=0,
    shift=0.0,
)
"""The levels of no observations, in place of those that would take too much memory."""


def pair_count(problem: Problem) -> int:
    """Return the number of pairs of a problem, without making them.

    Raises:
        TypeError: a problem of another type.

    Examples:
        >>> pair_count(RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1]))
        2
    """
    return int(_appearances(problem)[0].sum())


def balance(problem: Problem) -> FloatArray:
    """Return how often each observation is above in a pair less how often it is below, as a share of the pairs, (n,).

    Examples:
        >>> balance(RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1])).tolist()
        [-1.0, 0.5, 0.5]
    """
    above, below = _appearances(problem)
    return (above - below) / max(1, int(above.sum()))


def _appearances(problem: Problem) -> tuple[IntArray, IntArray]:
    """Return in how many pairs each observation is the upper one, and in how many the lower one, (n,) each."""
    if isinstance(problem, PairwiseProblem):
        above, below = (np.bincount(problem.pairs[:, side], minlength=problem.n) for side in (0, 1))
        return above, below
    problem = _ranked(problem)
    lists, gains = _lists(problem)
    above, below = np.zeros(problem.n, dtype=np.int64), np.zeros(problem.n, dtype=np.int64)
    for everyone in lists:
        own = gains[everyone]
        if problem.rank == "subrank":
            above[everyone] = (own > 0) * (len(own) - 1)
            below[everyone] = np.count_nonzero(own) - (own > 0)
            continue
        layer = np.unique(np.append(0.0, own), return_inverse=True)[1][1:]  # the highest of each, 0 for none
        upper = np.cumsum(np.bincount(layer)[::-1])[::-1]  # members of each layer; the first is no layer
        lower = len(own) - upper
        lower[0] = upper[0] = 0
        above[everyone] = np.cumsum(lower)[layer]
        below[everyone] = (upper.sum() - np.cumsum(upper))[layer]
    return above, below


def levels_of(problem: Problem, tick: Tick = lambda: None) -> Levels:
    """Return the levels of a problem.

    Args:
        problem: a `RerankProblem`, `GradedProblem` or `PairwiseProblem`.
        tick: called every half million pairs; what it raises ends the work.

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
    problem = _ranked(problem)
    return _of_groups(problem, list(_groups(problem)), tick)


def value(levels: Levels, won: ArrayLike) -> float:
    """The value where these pairs are won and all others lost, by the definition: slow, a loop over the pairs."""
    counts = [0] * len(levels.observation)
    for owner, wins in zip(levels.owner.tolist(), np.asarray(won).tolist(), strict=True):
        counts[owner] += not wins
    terms = [levels.shift]
    for level, table in enumerate(levels.table.tolist()):
        members = sorted(counts[levels.start[level] : levels.start[level + 1]])
        terms += [float(levels.worth[table + p + c]) for p, c in enumerate(members)]
    return math.fsum(terms)


class _Group(NamedTuple):
    """Members of one level and the observations that they are compared with.

    Attributes:
        gain: factor of the rank weights.
        upper: the members.
        lower: the observations below each of them; None for all others of the list, which `everyone` holds.
        everyone: the list.
    """

    gain: float
    upper: IntArray
    lower: IntArray | None
    everyone: IntArray

    @property
    def length(self) -> int:
        """Observations in the list."""
        return len(self.everyone)

    @property
    def opponents(self) -> int:
        """Pairs of each member."""
        return self.length - 1 if self.lower is None else len(self.lower)

    @property
    def pairs(self) -> int:
        """Pairs of the level."""
        return len(self.upper) * self.opponents


def _ranked(problem: Problem) -> RerankProblem | GradedProblem:
    """Return a problem of ranked lists; TypeError for another one."""
    if not isinstance(problem, RerankProblem | GradedProblem):
        kinds = "a RerankProblem, GradedProblem or PairwiseProblem"
        raise TypeError(f"problem must be {kinds}, got {type(problem).__name__}")
    return problem


def _lists(problem: RerankProblem | GradedProblem) -> tuple[list[IntArray], FloatArray]:
    """Return the observations of each list, and the gains of all observations."""
    if isinstance(problem, RerankProblem):
        return [np.arange(problem.n)], problem.y.astype(np.float64)
    return problem.lists, problem.gains


def _groups(problem: RerankProblem | GradedProblem) -> Iterator[_Group]:
    """Yield the levels of ranked lists: the layers of each list, or its members one by one for Subranks."""
    lists, gains = _lists(problem)
    for everyone in lists:
        own = gains[everyone]
        if problem.rank == "subrank":
            for i in everyone[own > 0]:
                yield _Group(float(gains[i]), np.array([i]), None, everyone)
            continue
        for below, value in itertools.pairwise(np.unique(np.append(own, 0.0)).tolist()):
            yield _Group(value - below, everyone[own >= value], everyone[own < value], everyone)


def _of_groups(problem: RerankProblem | GradedProblem, groups: list[_Group], tick: Tick) -> Levels:
    """Write out the pairs of all levels, and their tables."""
    grades, shift = None, 0.0
    if isinstance(problem, RerankProblem):
        shift = problem.shift
    elif problem.rank == "resolved":
        grades = problem.grades.astype(np.int32)
    total = sum(group.pairs for group in groups)
    above, below, owner = (np.empty(total, dtype=np.int32) for _ in range(3))
    steps = np.ones(total, dtype=np.int32)
    table, worth = [], []
    known: dict[tuple[int, float], int] = {}
    members, at, length = 0, 0, 0
    for group in groups:
        if (group.length, group.gain) not in known:
            known[group.length, group.gain] = length
            weights = problem.a if isinstance(problem, RerankProblem) else problem.statistic.weights(group.length)
            worth.append(group.gain * weights[::-1])
            length += group.length
        table.append(known[group.length, group.gain])
        lower = group.everyone[group.everyone != group.upper[0]] if group.lower is None else group.lower
        rows = max(1, _BLOCK // max(1, len(lower)))
        for first in range(0, len(group.upper), rows):
            tick()
            upper = group.upper[first : first + rows]
            block = slice(at, at + len(upper) * len(lower))
            above[block], below[block] = np.repeat(upper, len(lower)), np.tile(lower, len(upper))
            owner[block] = np.repeat(np.arange(members, members + len(upper)), len(lower))
            if grades is not None:
                steps[block] = grades[above[block]] - grades[below[block]]
            members, at = members + len(upper), block.stop
    sizes = [len(group.upper) for group in groups]
    return _assemble(
        above=above,
        below=below,
        steps=steps,
        owner=owner,
        observation=np.concatenate([group.upper for group in groups]),
        level=np.repeat(np.arange(len(groups)), sizes),
        most=np.array([group.opponents for group in groups]),
        worth=np.concatenate(worth),
        table=np.array(table),
        shift=shift,
    )


def _of_preferences(problem: PairwiseProblem) -> Levels:
    everyone = np.arange(len(problem.pairs))
    weights, of_weight = np.unique(problem.weights, return_inverse=True)
    return _assemble(
        above=problem.pairs[:, 0],
        below=problem.pairs[:, 1],
        steps=np.ones(len(everyone), dtype=np.int32),
        owner=everyone,
        observation=problem.pairs[:, 0],
        level=everyone,
        most=np.ones(len(everyone), dtype=np.int64),
        worth=np.column_stack([weights, np.zeros(len(weights))]).ravel(),
        table=2 * of_weight,
        shift=0.0,
    )


def _assemble(
    above: AnyIntArray,
    below: AnyIntArray,
    steps: AnyIntArray,
    owner: AnyIntArray,
    observation: IntArray,
    level: IntArray,
    most: IntArray,
    worth: FloatArray,
    table: IntArray,
    shift: float,
) -> Levels:
    """Add the offsets that follow from the rest."""
    start = np.searchsorted(level, np.arange(len(table) + 1))
    room = np.where(np.diff(start) > 1, most + 2, 0)
    return Levels(
        above=_own(above, np.int32),
        below=_own(below, np.int32),
        steps=_own(steps, np.int32),
        owner=_own(owner, np.int32),
        observation=_own(observation, np.int64),
        level=_own(level, np.int64),
        start=_own(start, np.int64),
        most=_own(most, np.int64),
        worth=np.ascontiguousarray(worth, dtype=np.float64),
        table=_own(table, np.int64),
        slot=_own(np.where(room > 0, np.cumsum(room) - room, -1), np.int64),
        slots=int(room.sum()),
        shift=float(shift),
    )


def _own(values: AnyIntArray, dtype: type[Integer]) -> NDArray[Integer]:
    """A contiguous array that may be written: read-only ones would be another type to the compiled kernels."""
    return np.require(values, dtype, ["C", "W"])
