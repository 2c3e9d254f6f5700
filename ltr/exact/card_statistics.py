"""The statistics of cards, with rows of equal totals tied: those of ranks, and the share of pairs of times in order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ltr.exact.constraints import set_fields
from ltr.exact.problem import FloatArray, Gain, IntArray, Problem
from ltr.exact.reranking import RerankProblem
from ltr.outcomes import Times, label_kind
from ltr.statistics import RankStatistic

Ties = Literal["average", "resolved"]


class CardRanking(RerankProblem):
    """A rank statistic of cards: weights are points, totals are exact, and rows with equal totals tie."""

    times: None = None
    ties: Ties
    points: int
    unit: int

    def __init__(self, *arguments: Any, ties: Ties, points: int, unit: int, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        if ties == "resolved" and len(np.unique(self.gains)) > 2:
            raise ValueError("ties must be 'average' for labels of more than two values, got 'resolved'")
        if np.any(np.diff(self.rank_weights(self.n)) < 0):
            raise ValueError(f"statistic must not fall from rank to rank, got {self.statistic}")
        set_fields(self, ties=ties, points=points, unit=unit)

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the statistic of the card at w."""
        sums = self._sums
        terms = []
        for tied, place, end in self._tied(w):
            if self.ties == "average":
                terms.append(tied.sum() / len(tied) * (sums[end] - sums[place]))
            else:
                upper = end - int(np.count_nonzero(tied == tied[-1]))
                terms += [tied[0] * (sums[upper] - sums[place]), tied[-1] * (sums[end] - sums[upper])]
        return math.fsum(terms) + self.shift

    def exact_statistic(self, w: ArrayLike) -> Fraction:
        """Return the statistic of the card at w without rounding."""
        sums, total = self._exact_sums, Fraction(0)
        for tied, place, end in self._tied(w):
            gains = list(map(Fraction, tied.tolist()))
            if self.ties == "average":
                total += sum(gains) * (sums[end] - sums[place]) / len(gains)
            else:
                each = zip(gains, itertools.pairwise(sums[place : end + 1]), strict=True)
                total += sum(gain * (after - before) for gain, (before, after) in each)
        scale, shift = self._exact_affine
        return scale * total + shift

    @cached_property
    def _sums(self) -> FloatArray:
        sums = np.cumsum(self.rank_weights(self.n)[::-1].astype(np.longdouble)).astype(np.float64)
        return np.concatenate([[0.0], sums])

    @cached_property
    def _exact_sums(self) -> list[Fraction]:
        weights = self.statistic.weights(self.n)[::-1].tolist()
        return list(itertools.accumulate(map(Fraction, weights), initial=Fraction(0)))

    def _tied(self, w: ArrayLike) -> Iterator[tuple[FloatArray, int, int]]:
        """Yield the gains, ascending, of the rows with each total, and their places, from one to before another."""
        totals = _totals(self, w)
        order = np.lexsort((self.gains, -totals))
        gains, place = self.gains[order], 0
        for end in [*(1 + np.flatnonzero(np.diff(totals[order]))).tolist(), self.n]:
            yield gains[place:end], place, end
            place = end

    def stated(self) -> dict[str, Any]:
        """Return the statistic of a card as a certificate file describes it."""
        a = self.statistic.weights(self.n).tolist()
        return {"statistic": str(self.statistic), "a": a, **self.label_content(self.gains)}


class CardConcordance(Problem):
    """The share of comparable pairs of times in order; with equal totals a pair counts half, or nothing."""

    y: Any
    times: Times
    gains: FloatArray
    shift: float = 0.0
    gain: Gain = "linear"
    normalize: bool = False
    statistic: RankStatistic
    ties: Ties
    points: int
    unit: int

    def __init__(
        self,
        X: FloatArray,
        y: Any,  # noqa: ANN401
        statistic: RankStatistic,
        *,
        ties: Ties,
        points: int,
        unit: int,
        **_: Any,  # noqa: ANN401 (gain and others, which it does not have)
    ) -> None:
        set_fields(self, X=X, y=y, statistic=statistic, times=Times.of(y), ties=ties, points=points, unit=unit)
        set_fields(self, margin=1.0, C=0.0, constraints=None, gains=np.zeros(len(X)))
        if len(self.times) != len(X):
            raise ValueError(f"y must have one label per row of X ({len(X)}), got {len(self.times)}")

    @property
    def trivial_bound(self) -> float:
        """The value of an order with all comparable pairs in order."""
        return 1.0

    def rank_weights(self, length: int) -> FloatArray:
        """Return zeros: ranks have no weights."""
        return np.zeros(length)

    def appearances(self) -> tuple[IntArray, IntArray]:
        """Count the comparable pairs in which each row is the first one and the later one, (n,) each."""
        first = np.sort(self.times.order[self.times.event])
        return self.times.later, np.searchsorted(first, self.times.order, "left").astype(np.int64)

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the statistic of the card at w."""
        return float(self.exact_statistic(w))

    def exact_statistic(self, w: ArrayLike) -> Fraction:
        """Return the statistic of the card at w without rounding."""
        tied = 1 if self.ties == "average" else 0
        won, equal = self.times.ordered(_totals(self, w))
        return Fraction(2 * won + tied * equal, 2 * self.times.pairs)

    def stated(self) -> dict[str, Any]:
        """Return the statistic of a card as a certificate file describes it."""
        fields = {"time": self.times.time, "event": self.times.event.astype(np.int64)}
        return {"statistic": str(self.statistic), **{name: values.tolist() for name, values in fields.items()}}

    def ranking_content(self) -> dict[str, Any]:
        """Return the statistic of a demand as a certificate file describes it."""
        return self.stated()


CardStatistic = CardRanking | CardConcordance
"""A statistic of cards."""


def card_statistic(X: FloatArray, y: Any, statistic: RankStatistic | str, **options: Any) -> CardStatistic:  # noqa: ANN401
    """Return the statistic of cards for the rows of X and labels of the kind that it is about."""
    parsed = RankStatistic.parse(statistic)
    parsed.check_kind(label_kind(y))
    if parsed.kind.labels == "times":
        return CardConcordance(X, y, parsed, **options)
    return CardRanking(X, y, parsed, **options)


def _totals(problem: CardStatistic, w: ArrayLike) -> IntArray:
    """Return the total of each row, in units of the numbers of X, at weights w."""
    points = np.rint(problem.in_box(w) * problem.points).astype(np.int64)
    used = np.flatnonzero(points)
    totals: IntArray = np.rint(problem.X[:, used] * problem.unit).astype(np.int64) @ points[used]
    return totals
