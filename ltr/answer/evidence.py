r"""What labelled rows say about a list: hits to expect among its first rows, and what was found by how many visits.

A *hit* is a row with a label above 0. To visit K rows means to take the first K of a list, or with queries the first K
of each query. All numbers rest on scores out of fold: each row has its score from fits that have not seen it.

*Expected hits* are the sum of the chances of the rows by a calibration (`ltr.rankers.calibration`), with its interval.
Rows of one query have more in common than their scores tell: where the hits of the first K rows of q labelled queries
differ from the sums of their chances by s in the root mean square, those of Q others have the variance
``Q s^2 (1 + Q / q)``, of Student's distribution with q - 1 degrees of freedom. The interval is at least so wide.

*What was found.* The labelled rows are ranked by their scores; equal scores count as if drawn at random. Values are
averaged over the repeats, and intervals go from the 5th to the 95th percentile over resamples of the rows, or of the
groups or queries.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from ltr.files import read_arrays
from ltr.rankers.calibration import Calibration, fit_calibration_of_repeats
from ltr.rankers.views import place_in_list

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_RESAMPLES = 200
_LEVEL = 0.9
_KNOTS = 48  # visits for which curves have a point


@dataclass(frozen=True)
class Interval:
    """A value and its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Found:
    """What was found among the labelled rows, by scores out of fold, in as large a part of them as is to be visited."""

    rows: int
    visits: int  # of each query where there are queries
    hits: Interval
    precision: Interval  # share of hits among the visited rows
    recall: Interval  # share of all hits that are there
    lift: Interval  # precision over the share of hits among all rows
    chance: float  # number of hits that as many visits at random find
    today: Interval | None = None  # hits that today's scores find
    more: Interval | None = None  # how many more the ranking finds


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labelled rows, with scores of fits that have not seen them, (repeats, n).

    `today` has scores that are in use today, larger first.
    """

    labels: FloatArray
    scores: FloatArray
    lists: IntArray | None = None
    groups: IntArray | None = None
    weights: FloatArray | None = None
    today: FloatArray | None = None

    @property
    def hits(self) -> FloatArray:
        """1 for each row that is a hit and 0 for each other, (n,)."""
        return (self.labels > 0).astype(np.float64)

    @cached_property
    def calibration(self) -> Calibration:
        """The chance of a hit by score."""
        return fit_calibration_of_repeats(self.scores, self.labels, self.weights, self.groups)

    @cached_property
    def of_today(self) -> Evidence | None:
        """The same rows with today's scores; None where there are no such scores."""
        if self.today is None:
            return None
        return Evidence(self.labels, self.today[None], self.lists, self.groups, self.weights)

    def expected(self, scores: FloatArray, lists: IntArray | None = None, visits: int = 0) -> Interval:
        """Return how many hits to expect among rows to visit with these scores, (m,), `visits` of each query."""
        value, low, high = map(float, self.calibration.predictive_interval(scores, _LEVEL))
        if lists is not None and self.lists is not None and len(scores):
            first = np.array([place_in_list(one, self.lists) <= visits for one in self.scores])
            of_lists = [np.bincount(self.lists, one) for one in first * (self.hits - self.calibration(self.scores))]
            q, rows = len(of_lists[0]), first.sum() / len(self.scores)
            many = len(scores) * q / rows  # queries, of those that are visited in part that part
            square = float(np.square(of_lists).sum()) / len(self.scores) / max(1, q - 1)
            wide = float(student.ppf((1 + _LEVEL) / 2, max(1, q - 1))) * math.sqrt(many * square * (1 + many / q))
            low, high = min(low, max(0.0, math.floor(value - wide))), max(high, math.ceil(value + wide))
            high = min(high, float(len(scores)))
        return Interval(value, low, high)

    def found(self, visits: int) -> Found:
        """Return what the first rows of the labelled ones hold, ranked by scores out of fold."""
        n, rng = len(self.labels), np.random.default_rng(0)
        rankings = [_Ranking(scores, self.lists) for scores in self.scores]
        today = None if self.today is None else _Ranking(self.today, self.lists)
        units = next((one for one in (self.lists, self.groups) if one is not None), np.arange(n))
        many, whole = int(units.max()) + 1, np.ones(n)
        own, drawn = self._facts(rankings, today, visits, whole), []
        for at in range(_RESAMPLES):
            weight = rng.multinomial(many, np.full(many, 1 / many)).astype(np.float64)[units]
            if (weight * self.hits).any():
                drawn.append(self._facts(rankings[at % len(rankings) :][:1], today, visits, weight))
        low, high = np.percentile(np.array(drawn), [5, 95], axis=0) if drawn else (own, own)
        ends = np.minimum(low, own), np.maximum(high, own)
        bands = [Interval(*map(float, band)) for band in zip(own, *ends, strict=True)]
        lists = np.zeros(n, dtype=np.int64) if self.lists is None else self.lists
        shares = np.bincount(lists, self.hits) / np.maximum(np.bincount(lists), 1.0)
        chance = float(rankings[0].visited(visits, whole) @ shares[lists])
        hits, precision, recall, lift, *of_today = bands
        return Found(n, visits, hits, precision, recall, lift, chance, *of_today)

    def _facts(
        self, rankings: list[_Ranking], today: _Ranking | None, visits: int, weight: FloatArray
    ) -> tuple[float, ...]:
        """Return hits, precision, recall and lift of weighted rows; also today's hits and the difference."""
        hits, caught, taken = float((weight * self.hits).sum()), 0.0, 0.0
        for ranking in rankings:
            visited = ranking.visited(visits, weight)
            caught += float(visited @ self.hits) / len(rankings)
            taken += float(visited.sum()) / len(rankings)
        facts = (caught, caught / taken, caught / hits, caught / taken / float(hits / weight.sum()))
        if today is None:
            return facts
        other = float(today.visited(visits, weight) @ self.hits)
        return (*facts, other, caught - other)

    def to_bytes(self) -> bytes:
        """Return the arrays as an .npz file."""
        file = io.BytesIO()
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return file.getvalue()

    @classmethod
    def read(cls, path: Path) -> Evidence:
        """Return what `to_bytes` returned, from a file; raise ValueError for another or a damaged one."""
        arrays: Mapping[str, NDArray[np.float64]] = read_arrays(path)
        try:
            found = cls(**arrays)  # type: ignore[arg-type]
        except TypeError as error:
            raise ValueError(f"not the evidence of a ranking: {error}") from None
        n = len(found.labels)
        if found.scores.ndim != 2 or any(len(value.T) != n for value in arrays.values()):
            raise ValueError("not the evidence of a ranking: its arrays are of different lengths")
        return found


class _Ranking:
    """Rows from the top of each list down, to be visited; rows with equal scores share the visits that they get."""

    def __init__(self, scores: FloatArray, lists: IntArray | None) -> None:
        self._order = np.argsort(-scores, kind="stable") if lists is None else np.lexsort((-scores, lists))
        ordered = np.zeros(len(scores), dtype=np.int64) if lists is None else lists[self._order]
        new_list = np.diff(ordered, prepend=-1) != 0
        new_tie = new_list | (np.diff(scores[self._order], prepend=np.nan) != 0)
        self._ties = np.flatnonzero(new_tie)  # where each run of equal scores starts
        self._tie = np.cumsum(new_tie) - 1  # the run of each row
        first_in_list = new_list[self._ties]
        self._starts = np.flatnonzero(first_in_list)  # the first run of each list
        self._list = np.cumsum(first_in_list) - 1  # the list of each run

    def visited(self, visits: int, weight: FloatArray) -> FloatArray:
        """Return how often each row is visited, (n,), where it stands `weight` times in the list."""
        ordered = weight[self._order]
        tied = np.add.reduceat(ordered, self._ties)
        above = np.cumsum(tied) - tied
        above -= above[self._starts][self._list]
        part = np.clip(visits - above, 0.0, tied) / np.where(tied > 0, tied, 1.0)
        found = np.empty(len(weight))
        found[self._order] = ordered * part[self._tie]
        return found


def curve_visits(visits: int, most: int) -> IntArray:
    """Return numbers of visits from 0 to a few times as many as are planned, which is one of them."""
    end = min(most, max(3 * visits, 10))
    return np.unique(np.append(np.linspace(0, end, _KNOTS).round().astype(np.int64), min(visits, end)))


def sums_by_visits(values: FloatArray, places: IntArray, visits: IntArray) -> FloatArray:
    """Return the sum of the values of rows whose place is at most each of some numbers of visits."""
    sums = np.append(0.0, np.cumsum(np.bincount(places - 1, values)))
    return np.asarray(sums[np.minimum(visits, len(sums) - 1)])
