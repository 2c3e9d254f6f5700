r"""Choose on the training lists alone whether to correct a base ranker's order, and how far.

*Inner splits.* The rows (with queries, the queries) are divided into `FOLDS` parts at random, `REPEATS` times. Each
part is held out once: the whole procedure, base ranker included, learns from the other parts and ranks it. So every row
gets its place in the order of the base and in that of each candidate by rankers that have not seen it, and the places
of one repeat form a list as long as the training list. The gain of a candidate is the statistic of its list less that
of the base, averaged over the repeats. All candidates share the splits.

*The rule.* Take the candidate with the largest gain, and keep the base where no gain is above zero.

*What to expect.* The gain on a new list of this size varies from list to list, and its estimate varies as much, for it
comes from one list of this size. With s the standard deviation of the gain under resampling of the rows (of the
queries, where there are any), the interval is ``gain ± z sqrt(2) s`` with z = 1.645, for 90 %.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.model_selection import KFold, StratifiedKFold

from ltr.metrics import normalized_rank_statistic, rank_statistic
from ltr.rankers.base import FloatArray, IntArray
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

SPREADS = (0.2, 0.45, 0.7)
"""Spreads of the corrections that are compared."""
FOLDS, REPEATS = 5, 6
BASE = "base"
"""Name of the candidate that leaves the base ranker's order alone."""

_HALF_WIDTH = 1.645 * 2**0.5
_RESAMPLES = 40  # of each repeat

Split = tuple[str, IntArray, IntArray]
"""Name of an inner split, its training rows and its rows held out."""


@dataclass(frozen=True)
class Choice:
    """The result of a comparison of candidates on inner splits.

    Attributes:
        candidates: names of the candidates, ``"base"`` first.
        chosen: name of the chosen one.
        gains: mean gain of each candidate over the base on inner lists as long as the training list, by name.
        deviations: standard deviation of each gain under resampling, by name.
        expected, low, high: gain to expect on a new list like the training list, and its 90 % interval; 0 where the
            base is kept.
        list_gain: gain over the base of the best weights known on the training list itself; None if unknown.
        statistic: name of the statistic.
        what: the chosen ranker in words.
    """

    candidates: tuple[str, ...]
    chosen: str
    gains: Mapping[str, float]
    deviations: Mapping[str, float]
    expected: float
    low: float
    high: float
    list_gain: float | None
    statistic: str
    what: str

    @property
    def reranks(self) -> bool:
        """Whether a correction was chosen."""
        return self.chosen != BASE

    def __str__(self) -> str:
        if self.reranks:
            interval = f"(90 %: {self.low:+.3g} to {self.high:+.3g})"
            return f"on new lists expect {self.expected:+.3g} {self.statistic} {interval}; chosen: {self.what}"
        gain = "" if self.list_gain is None else f"; on this list alone it could gain {self.list_gain:.3g}"
        return f"reranking is not expected to help on new lists: the base order is kept{gain}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**dataclasses.asdict(self), "candidates": list(self.candidates)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Choice:
        """Return the choice that `to_dict` described."""
        return cls(**{**values, "candidates": tuple(values["candidates"])})


def folds_of(labels: FloatArray, groups: IntArray | None, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Divide rows into parts, each held out once: by query where there are queries, else with equal shares of labels.

    Returns:
        Training rows and rows held out, in ascending order; nothing where a part would hold a single label.
    """
    units = np.arange(len(labels)) if groups is None else np.unique(groups)
    if groups is None:
        strata = (labels > labels.min()).astype(np.int64)
        parts = min(FOLDS, int(np.bincount(strata, minlength=2).min()))
        splitter: Any = StratifiedKFold(parts, shuffle=True, random_state=seed) if parts > 1 else None
    else:
        strata = None
        splitter = KFold(min(FOLDS, len(units)), shuffle=True, random_state=seed) if len(units) > 1 else None
    if splitter is None:
        return []
    found = splitter.split(units, strata)
    if groups is None:
        return [(np.sort(train), np.sort(held)) for train, held in found]
    return [(np.flatnonzero(np.isin(groups, units[a])), np.flatnonzero(np.isin(groups, units[b]))) for a, b in found]


def inner_splits(labels: FloatArray, groups: IntArray | None, seed: int) -> list[Split]:
    """Return the inner splits of the comparison."""
    return [
        (f"{seed}/{repeat}/{part}", train, held)
        for repeat in range(REPEATS)
        for part, (train, held) in enumerate(folds_of(labels, groups, _seed(seed, repeat)))
    ]


def places(scores: FloatArray, groups: IntArray | None) -> FloatArray:
    """Return the place of each row in its list, from 0 at the bottom to 1 at the top; ties share a place.

    Examples:
        >>> places(np.array([3.0, 1.0, 2.0, 2.0]), None).tolist()
        [0.875, 0.125, 0.5, 0.5]
    """
    found = np.empty(len(scores))
    for members in [np.arange(len(scores))] if groups is None else [np.flatnonzero(groups == g) for g in set(groups)]:
        found[members] = (rankdata(scores[members]) - 0.5) / len(members)
    return found


def compare(
    results: Mapping[str, Sequence[Sequence[float]]],
    splits: Sequence[Split],
    names: Sequence[str],
    labels: FloatArray,
    groups: IntArray | None,
    measure: tuple[RankStatistic, GainName, bool],
    seed: int,
) -> Choice:
    """Return the choice that the inner splits lead to.

    Args:
        results: for each split by name, the places of its held-out rows in the order of each candidate, base first.
        splits: the inner splits.
        names: names of the candidates, base first.
        labels: labels of all rows, (n,).
        groups: list of each row, or None for one list.
        measure: statistic, gain of graded labels, and whether to normalise.
        seed: seed of the resampling.
    """
    gains, deviations = [], []
    for scores, rng in _lists(results, splits, len(names), len(labels), seed):
        mean, deviation = _gains(scores, labels, groups, measure, rng)
        gains.append(mean)
        deviations.append(deviation)
    mean, deviation = np.mean(gains, axis=0), np.mean(deviations, axis=0)
    best = int(np.argmax(mean[1:])) + 1
    chosen = best if mean[best] > 0 else 0
    half = _HALF_WIDTH * deviation[chosen]
    return Choice(
        candidates=tuple(names),
        chosen=names[chosen],
        gains=dict(zip(names, mean.tolist(), strict=True)),
        deviations=dict(zip(names, deviation.tolist(), strict=True)),
        expected=float(mean[chosen]),
        low=float(mean[chosen] - half),
        high=float(mean[chosen] + half),
        list_gain=None,
        statistic=str(measure[0]),
        what=names[chosen],
    )


def _lists(
    results: Mapping[str, Sequence[Sequence[float]]], splits: Sequence[Split], candidates: int, n: int, seed: int
) -> Iterator[tuple[FloatArray, np.random.Generator]]:
    """Return, for each repeat, the places of all rows in the order of each candidate, (candidates, n).

    The parts of a repeat are merged by place. Rows of two parts at one place are put in an order by chance, the same
    for all candidates.
    """
    for repeat in range(REPEATS):
        rng = np.random.default_rng([seed, repeat])
        scores = np.zeros((candidates, n))
        for name, _, held in splits:
            if name.split("/")[1] == str(repeat):
                scores[:, held] = np.asarray(results[name]) + (rng.random() - 0.5) / len(held)
        yield scores, rng


def _gains(
    scores: FloatArray,
    labels: FloatArray,
    groups: IntArray | None,
    measure: tuple[RankStatistic, GainName, bool],
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the gain of each candidate over the first, and its standard deviation under resampling."""
    if groups is not None:
        values = np.array([_values(row, labels, measure, groups) for row in scores])
        values = values[:, ~np.isnan(values).any(axis=0)]
        differences = values - values[0]
        return differences.mean(axis=1), differences.std(axis=1, ddof=1) / values.shape[1] ** 0.5
    drawn = rng.integers(0, len(labels), (_RESAMPLES, len(labels)))
    whole, resampled = [], []
    for row in scores:
        whole.append(float(_values(row, labels, measure)))
        resampled.append(_values(row[drawn], labels[drawn], measure))
    moved = np.array(resampled)
    return np.array(whole) - whole[0], np.nanstd(moved - moved[0], axis=1, ddof=1)


def _values(
    scores: FloatArray,
    labels: FloatArray,
    measure: tuple[RankStatistic, GainName, bool],
    groups: IntArray | None = None,
) -> NDArray[Any]:
    """Return the statistic of each list."""
    statistic, gain, normalize = measure
    function = normalized_rank_statistic if normalize else rank_statistic
    qid = None if groups is None else torch.from_numpy(groups)
    return np.asarray(function(torch.from_numpy(scores), torch.from_numpy(labels), statistic, gain=gain, qid=qid))


def _seed(seed: int, repeat: int) -> int:
    return (seed * 1_000 + repeat) % 2**32
