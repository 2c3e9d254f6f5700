"""Places of rows over all good cards: how far up or down the list a row can be, if any card near the best may be used.

The compiled search of cards (`ltr/native/cards.cpp`) visits every order of the rows by a good card. Rows with the same
answers to the questions of a card share their places there, so that a card of k questions takes 2^k steps however many
rows there are. No list of good cards is kept.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr.checks import as_float
from ltr.exact.cards import NONE_MEETS, CardProblem, within_time
from ltr.exact.levels import IntArray
from ltr.threads import available_threads


class RowPlaces(NamedTuple):
    """The places of rows over all good cards, 1 being the top of the list.

    Attributes:
        best: best place of each row, (n,): 1 + the number of rows with a larger total, at its least.
        worst: worst place of each row, (n,): the number of rows with at least its total, at its largest.
        best_points, worst_points: points of a card on which each row has that place, (n, d).
        value: value of the best card.
        threshold: least value of a good card.
        cards: number of good cards; those of the same columns that order all possible rows alike count once.
    """

    best: IntArray
    worst: IntArray
    best_points: IntArray
    worst_points: IntArray
    value: float
    threshold: float
    cards: int


def places_of_cards(
    problem: CardProblem, within: float = 0.01, *, threads: int | None = None, time_limit: float | None = None
) -> RowPlaces:
    """Return the best and the worst place of each row over all cards whose value is nearly that of the best card.

    ``value(card) >= best - within |best|``, up to rounding. The best place counts ties in the row's favour and the
    worst place against it. Of several cards with the same place of a row, the one with the fewest questions is
    returned, then the one with the fewest points.

    Args:
        problem: the problem, its columns zeros and ones. Cards meet its demands.
        within: share of the best value that a good card may lose, >= 0.
        threads: number of threads; None for as many as there are processors.
        time_limit: seconds; None for no limit.

    Raises:
        ValueError: another problem, columns of other numbers, a share that is not >= 0, or a problem without a card.
        TimeoutError: it takes longer than `time_limit`.

    Examples:
        >>> problem = CardProblem([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0], "auc", points=2)
        >>> places = places_of_cards(problem, within=0.2)
        >>> places.value, places.best.tolist(), places.worst.tolist()
        (1.0, [1, 1, 2, 2], [3, 3, 4, 4])
        >>> places.worst_points[1].tolist()
        [1, 1]
    """
    if not isinstance(problem, CardProblem):
        raise ValueError(f"problem must be a CardProblem, got {type(problem).__name__}")
    if problem.numeric.any():
        column = int(np.flatnonzero(problem.numeric)[0])
        raise ValueError(f"problem must have columns of zeros and ones only, got other numbers in column {column}")
    if not 0 <= as_float(within) < math.inf:
        raise ValueError(f"within must be a share >= 0 of the best value, got {within!r}")
    if time_limit is not None and not as_float(time_limit) > 0:
        raise ValueError(f"time_limit must be a number of seconds > 0, got {time_limit!r}")
    end = None if time_limit is None else time.monotonic() + time_limit
    late = TimeoutError(f"the places are not found within {time_limit} seconds: raise time_limit or lower within")
    threads, search = threads or available_threads(), problem._search()
    if not within_time(lambda stop: search.search(problem.max_nonzeros, threads, stop), end):
        raise late
    best, _, _ = search.best
    if best == -math.inf:
        raise ValueError(f"problem must have a card: {NONE_MEETS}")
    best += problem.shift
    threshold = best - within * abs(best)
    _, first, of = np.unique(problem.X, axis=0, return_index=True, return_inverse=True)
    tracked = np.zeros(problem.n, dtype=np.uint8)
    tracked[first] = 1  # one of the rows with the same answers
    places = np.zeros((2, problem.n), dtype=np.int64)
    points = np.zeros((2, problem.n, problem.d), dtype=np.int64)

    def work(stop: NDArray[np.uint8]) -> int:
        given = (problem.max_nonzeros, threads, stop, threshold - problem.shift, tracked)
        return int(problem._search().places(*given, *places, *points))

    if (cards := within_time(work, end)) < 0:
        raise late
    rows = first[of.reshape(-1)]
    (top, bottom), (at_top, at_bottom) = places[:, rows], points[:, rows]
    return RowPlaces(top, bottom, at_top, at_bottom, best, threshold, cards)
