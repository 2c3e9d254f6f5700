r"""The structure common to all objectives: levels of positives, and counts of the pairs that each positive loses.

Every problem can be written as

    value = shift + sum over levels L, sum over places p = 0, 1, ... of  contribution_L[p + c_(p)]

where contribution_L is a nonincreasing table, the *positives* of a level are observations of one list, c_i counts the
pairs that positive i loses, and c_(0) <= c_(1) <= ... are the counts of the level, sorted. A *pair* belongs to one
positive. It has two observations, `above` (the positive's) and `below`, and is *won* at w when
``w·(x_above - x_below) >= margin * steps``, otherwise *lost*.

=========================  ==============================  ==========================================================
problem                    levels                          pairs of a positive, and the table
=========================  ==============================  ==========================================================
`RerankProblem`, resolved  each layer of gains of a list   the lower gains of the list; contribution[t] = (the layer's
                                                           gain minus that of the layer below) * a[n_list - t]
`RerankProblem`, subrank   each observation with a gain    all others of the list;
                           above 0 is a level              contribution[t] = gain * a[n_list - t]
`PairwiseProblem`          each pair is a level            the pair; contribution = (weight, 0)
=========================  ==============================  ==========================================================

**Layers.** With the gains 0 < v_1 < v_2 < ... of a list, and v_0 = 0, ``gain_i = sum over t with v_t <= gain_i of
v_t - v_(t-1)``. So the statistic of graded gains is the sum over layers t of v_t - v_(t-1) times that of two classes,
``gain >= v_t`` and the rest, under the same permutation: the ranks of the upper class are n - p - c_(p), where c_i
counts the others that stand above i.

**A bound over any set of weights.** Let b_i be the number of pairs of i known to be lost on the whole set. Then b_i <=
c_i at every w of it, which sorting keeps, so ``shift + sum_L sum_p contribution_L[p + b_(p)]`` is an upper bound.

**Updating one pair costs O(1).** With ``fewer[m] = #{positives of the level with c < m}``, a count that falls from m to
m - 1 is the first in the sorted run of m, at place p = fewer[m]:

    value += contribution[p + m - 1] - contribution[p + m],      fewer[m] += 1,

and one that rises from m - 1 to m undoes this with p = fewer[m] - 1. In a level of one positive p is always 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.int32]
Tick = Callable[[], None]

PAIR_BYTES = 16
"""Memory of `Levels` per pair, in bytes."""

_BLOCK = 500_000  # pairs written between two calls of `tick`


class Levels(NamedTuple):
    """The objective of a problem without C, margin and side constraints, as plain arrays; positives sorted by level.

    Attributes:
        above, below: upper and lower observation of each pair, (pairs,).
        steps: number of margins by which a pair must be won, >= 1; 1 unless a list has more than two gains, (pairs,).
        positive: positive that the pair belongs to, (pairs,), ascending.
        observation, level: those of each positive, levels ascending, (positives,).
        start: the positives of level L are ``start[L] : start[L + 1]``, (levels + 1,).
        most_lost: largest count that a positive of the level can have, (levels,).
        contribution, table: the statistic tables, of which several levels may use the same:
            ``contribution_L[t] = contribution[table[L] + t]`` for t from 0 to (positives of L) - 1 + most_lost[L].
        counts_at: start of ``fewer[0 .. most_lost[L] + 1]`` of each level in one array of `counts_size` numbers; -1 for
            a level of one positive, which needs none, (levels,).
        shift: constant part of the value.
    """

    above: IndexArray
    below: IndexArray
    steps: IndexArray
    positive: IndexArray
    observation: IntArray
    level: IntArray
    start: IntArray
    most_lost: IntArray
    contribution: FloatArray
    table: IntArray
    counts_at: IntArray
    counts_size: int
    shift: float


class RankedItems(NamedTuple):
    """The objective of ranked lists without C, margin and side constraints, as plain arrays that list no pairs.

    The key of an item is the score of its row minus `steps` margins; of two items with equal keys the first of the list
    is above. The *place* of an item with a gain is the number of items that count and are above it, one more if it
    counts itself, and the value is ``shift + sum of gain * weight[weight_at + (items that count) - place]``. With
    ResolvedRanks each row is one item, which counts. With Subranks each row is an item that counts, and a row with a
    gain is one more, behind a handicap of one margin.

    Attributes:
        row, steps, gain, counts: of each item, list after list; counts is 1 for items that count, else 0, (items,).
        start: the items of list L are ``start[L] : start[L + 1]``, (lists + 1,).
        weight, weight_at: rank weights of all lists, bottom first, and where those of each list start, (lists,).
        shift: constant part of the value.
    """

    row: IndexArray
    steps: IntArray
    gain: FloatArray
    counts: NDArray[np.uint8]
    start: IntArray
    weight: FloatArray
    weight_at: IntArray
    shift: float


def value(levels: Levels, won: ArrayLike, of: Iterable[int] | None = None) -> float:
    """Return the value when these pairs are won, (pairs,), by a slow loop; of some levels alone without the shift."""
    counts = [0] * len(levels.observation)
    for positive, wins in zip(levels.positive.tolist(), np.asarray(won).tolist(), strict=True):
        counts[positive] += not wins
    terms = [levels.shift if of is None else 0.0]
    for level in range(len(levels.table)) if of is None else of:
        table = int(levels.table[level])
        positives = sorted(counts[levels.start[level] : levels.start[level + 1]])
        terms += [float(levels.contribution[table + p + c]) for p, c in enumerate(positives)]
    return math.fsum(terms)


def ranked_appearances(lists: list[IntArray], gains: FloatArray, subrank: bool) -> tuple[IntArray, IntArray]:
    """Count the pairs of ranked lists in which each observation is the upper one and the lower one, (n,) each."""
    rows, sizes = np.concatenate(lists), np.array([len(everyone) for everyone in lists])
    of = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    above, below = np.empty((2, len(gains)), dtype=np.int64)
    own = gains[rows]
    if subrank:
        above[rows] = (own > 0) * (sizes[of] - 1)
        below[rows] = np.add.reduceat((own > 0).astype(np.int64), starts)[of] - (own > 0)
        return above, below
    order = np.lexsort((own, of))  # stays within each list
    rows, own, first = rows[order], own[order], starts[of]
    place = np.arange(len(rows)) - first
    # highest layer of each, 0 for none; a pair belongs to as many layers as its observations are apart
    begins = (own > 0) & ((place == 0) | (np.diff(own, prepend=0.0) != 0))
    layer = np.cumsum(begins)
    layer -= (layer - begins)[first]
    before = np.cumsum(layer) - layer
    before -= before[first]
    above[rows] = layer * place - before
    below[rows] = np.add.reduceat(layer, starts)[of] - before - layer * (sizes[of] - place)
    return above, below


def ranked_levels(
    lists: list[IntArray],
    gains: FloatArray,
    grades: IntArray | None,
    weights: Callable[[int], FloatArray],
    shift: float,
    tick: Tick,
) -> Levels:
    """Return the levels of ranked lists, the observations of each of which are given.

    `grades` are the places of gains among the distinct gains of their list, from 0, (n,), None for Subranks; `weights`
    returns the rank weights of a list of a length.
    """
    total = int(ranked_appearances(lists, gains, grades is None)[0].sum())
    above, below, positive = (np.empty(total, dtype=np.int32) for _ in range(3))
    steps = np.ones(total, dtype=np.int32)
    observation, sizes, most_lost, table, contribution = [], [], [], [], []
    known: dict[tuple[int, float], int] = {}
    positives, at, length = 0, 0, 0
    for everyone in lists:
        n = len(everyone)
        for gain, upper, lower in _layers(everyone, gains[everyone], grades is None):
            if (n, gain) not in known:
                known[n, gain] = length
                contribution.append(gain * weights(n)[::-1])
                length += n
            table.append(known[n, gain])
            observation.append(upper)
            sizes.append(len(upper))
            most_lost.append(len(lower))
            rows = max(1, _BLOCK // max(1, len(lower)))
            for first in range(0, len(upper), rows):
                tick()
                some = upper[first : first + rows]
                block = slice(at, at + len(some) * len(lower))
                above[block], below[block] = np.repeat(some, len(lower)), np.tile(lower, len(some))
                positive[block] = np.repeat(np.arange(positives, positives + len(some)), len(lower))
                if grades is not None:
                    steps[block] = grades[above[block]] - grades[below[block]]
                positives, at = positives + len(some), block.stop
    return _assemble(
        above=above,
        below=below,
        steps=steps,
        positive=positive,
        observation=np.concatenate(observation),
        level=np.repeat(np.arange(len(sizes)), sizes),
        most_lost=np.array(most_lost),
        contribution=np.concatenate(contribution),
        table=np.array(table),
        shift=shift,
    )


def _layers(everyone: IntArray, own: FloatArray, subrank: bool) -> Iterator[tuple[float, IntArray, IntArray]]:
    """Yield each level of a list: factor of its rank weights, positives, and the observations each is compared with."""
    if subrank:
        for i, gain in zip(everyone[own > 0], own[own > 0].tolist(), strict=True):
            yield gain, np.array([i]), everyone[everyone != i]
        return
    for below, gain in itertools.pairwise(np.unique(np.append(own, 0.0)).tolist()):
        yield gain - below, everyone[own >= gain], everyone[own < gain]


def preference_levels(pairs: IntArray, weights: FloatArray) -> Levels:
    """Return the levels of preferences, given as edges (above, below), (pairs, 2), and their weights, (pairs,)."""
    everyone = np.arange(len(pairs))
    distinct, of_weight = np.unique(weights, return_inverse=True)
    return _assemble(
        above=pairs[:, 0],
        below=pairs[:, 1],
        steps=np.ones(len(pairs), dtype=np.int32),
        positive=everyone,
        observation=pairs[:, 0],
        level=everyone,
        most_lost=np.ones(len(pairs), dtype=np.int64),
        contribution=np.column_stack([distinct, np.zeros(len(distinct))]).ravel(),
        table=2 * of_weight,
        shift=0.0,
    )


def joined_levels(parts: Sequence[Levels]) -> Levels:
    """Return the levels of several objectives of the same rows, one after the other, with the shift of the first."""
    if len(parts) == 1:
        return parts[0]
    positives, levels, entries = (
        np.cumsum([0, *(len(values) for values in of)][:-1])
        for of in ([p.level for p in parts], [p.table for p in parts], [p.contribution for p in parts])
    )
    shifted = {"positive": positives, "level": levels, "table": entries}
    arrays = {
        name: np.concatenate([getattr(p, name) + shifted.get(name, zeros)[k] for k, p in enumerate(parts)])
        for zeros in [np.zeros(len(parts), dtype=np.int64)]
        for name in Levels._fields
        if name not in ("start", "counts_at", "counts_size", "shift")
    }
    return _assemble(shift=parts[0].shift, **arrays)


def _assemble(shift: float, **arrays: NDArray[Any]) -> Levels:
    """Return the levels, with the offsets that follow, as contiguous and writable arrays, which the kernels take."""
    start = np.searchsorted(arrays["level"], np.arange(len(arrays["table"]) + 1))
    room = np.where(np.diff(start) > 1, arrays["most_lost"] + 2, 0)
    arrays |= {"start": start, "counts_at": np.where(room > 0, np.cumsum(room) - room, -1)}
    types: dict[str, Any] = dict.fromkeys(("above", "below", "steps", "positive"), np.int32)
    types["contribution"] = np.float64
    own = {name: np.require(values, types.get(name, np.int64), ["C", "W"]) for name, values in arrays.items()}
    return Levels(**own, counts_size=int(room.sum()), shift=float(shift))
