r"""Choose on the training lists alone whether to correct a base ranker's order, and how far.

*Inner splits.* The rows (with queries, the queries) are divided into `FOLDS` parts at random, `REPEATS` times. Each
part is held out once: the whole procedure, base ranker included, learns from the other parts and ranks it. So every row
gets its place in the order of the base and in that of each candidate by rankers that have not seen it, and the places
of one repeat form a list as long as the training list. The gain of a candidate is the statistic of its list less that
of the base, averaged over the repeats. All candidates share the splits.

Where part i is held out, the base scores of the other rows are out of fold, too: those of part j come from a base
fitted without i and j. The same base serves where j is held out, so a repeat takes 15 fits of the base, not 30.

*Weights of rows.* With weights v_i (`sample_weight`), the statistic of a list is ``sum over i of v_i gain_i
a[rank_i]``, the one that `ExactRanker.fit` maximises: ranks count rows, and each row's gain counts v_i times. The
candidates maximise it, gains are differences of it, and resampled rows keep their weights in it. (With `normalize` it
is divided by its value for the ideal order, which has the same weights.) Every fit of the base, on whatever parts, gets
the weights of its rows. Rows of weight 0 are left out before anything is divided into parts.

*The rule.* Take the candidate with the largest gain, and keep the base unless that gain exceeds its standard deviation
times `BAR`, or `HIGH_BAR` where the base is not linear in the features: such a base has rarely left a linear correction
anything to gain, and where the true gain is small, a low bar lets through little but errors of its estimate.

*What to expect.* The gain on a new list of this size varies from list to list, and its estimate varies as much, for it
comes from one list of this size. With s the standard deviation of the gain under resampling of the rows (of the
queries, where there are any), the interval is ``gain ± z sqrt(2) s`` with z = 1.645, for 90 %.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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
BAR, HIGH_BAR = 0.25, 1.0
"""Standard deviations by which a gain must exceed 0 for the base's order to be changed: linear bases, other bases."""
BASE = "base"
"""Name of the candidate that leaves the base ranker's order alone."""

_HALF_WIDTH = 1.645 * 2**0.5
_RESAMPLES = 40  # of each repeat


@dataclass(frozen=True, eq=False)
class InnerSplit:
    """A part of the rows that is held out.

    Attributes:
        name: a name that no other inner split of this seed has.
        repeat: number of the repeat.
        parts: number of the part of each row in this repeat, (n,).
        part: number of the part held out.
    """

    name: str
    repeat: int
    parts: IntArray
    part: int

    @property
    def held(self) -> IntArray:
        """Return the rows held out, in ascending order."""
        return np.flatnonzero(self.parts == self.part)

    @property
    def train(self) -> IntArray:
        """Return the other rows, in ascending order."""
        return np.flatnonzero(self.parts != self.part)


Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class Shared(Generic[Key, Result]):
    """Results that two callers need each, computed by whichever comes first and forgotten after the second.

    Examples:
        >>> squares = Shared(lambda x: print("computing") or x * x)
        >>> squares(3), squares(3)
        computing
        (9, 9)
    """

    def __init__(self, compute: Callable[[Key], Result]) -> None:
        self._compute, self._lock = compute, threading.Lock()
        self._known: dict[Key, Future[Result]] = {}

    def __call__(self, key: Key) -> Result:
        """Return the result for a key; in several threads, all but the first wait for it."""
        with self._lock:
            known = self._known.pop(key, None)
            found: Future[Result] = Future() if known is None else known
            if known is None:
                self._known[key] = found
        if known is None:
            try:
                found.set_result(self._compute(key))
            except BaseException as error:
                found.set_exception(error)
        return found.result()


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

    @classmethod
    def by_rule(
        cls, gains: Mapping[str, float], deviations: Mapping[str, float], statistic: str, *, linear: bool
    ) -> Choice:
        """Return the choice that the rule makes of gains.

        Args:
            gains: mean gain of each candidate over the base, the base first.
            deviations: standard deviation of each gain.
            statistic: name of the statistic.
            linear: whether the base is linear in the features.

        Examples:
            >>> gains, deviations = {"base": 0.0, "spread 0.2": 0.4}, {"base": 0.0, "spread 0.2": 0.5}
            >>> Choice.by_rule(gains, deviations, "dcg", linear=True).chosen
            'spread 0.2'
            >>> Choice.by_rule(gains, deviations, "dcg", linear=False).chosen
            'base'
        """
        names = tuple(gains)
        best = max(names[1:], key=lambda name: gains[name])
        chosen = best if gains[best] > (BAR if linear else HIGH_BAR) * deviations[best] else names[0]
        expected, half = gains[chosen], _HALF_WIDTH * deviations[chosen]
        return cls(
            names, chosen, gains, deviations, expected, expected - half, expected + half, None, statistic, what=chosen
        )

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


def parts_of(labels: FloatArray, groups: IntArray | None, seed: int) -> IntArray | None:
    """Divide rows at random into parts, by query where there are queries, else with equal shares of labels.

    Returns:
        number of the part of each row, (n,); None where a part would be all there is, or hold a single label.
    """
    if groups is None:
        strata = (labels > labels.min()).astype(np.int64)
        count, units = int(np.bincount(strata, minlength=2).min()), np.arange(len(labels))
    else:
        units, rows = np.unique(groups, return_inverse=True)
        strata, count = None, len(units)
    if count < 2:
        return None
    kind: Any = KFold if strata is None else StratifiedKFold
    folds = kind(min(FOLDS, count), shuffle=True, random_state=seed % 2**32)
    parts = np.empty(len(units), dtype=np.int64)
    for part, (_, held) in enumerate(folds.split(units, strata)):
        parts[held] = part
    return parts if groups is None else parts[rows]


def inner_splits(labels: FloatArray, groups: IntArray | None, seed: int) -> list[InnerSplit]:
    """Return the inner splits of the comparison."""
    found = []
    for repeat in range(REPEATS):
        parts = parts_of(labels, groups, seed * 1_000 + repeat)
        if parts is None:
            return []
        found += [InnerSplit(f"{seed}/{repeat}/{part}", repeat, parts, part) for part in range(parts.max() + 1)]
    return found


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
    splits: Sequence[InnerSplit],
    names: Sequence[str],
    labels: FloatArray,
    groups: IntArray | None,
    measure: tuple[RankStatistic, GainName, bool],
    seed: int,
    *,
    linear: bool,
) -> Choice:
    """Return the choice that the inner splits lead to.

    Args:
        results: for each split by name, the places of its held-out rows in the order of each candidate, base first.
        splits: the inner splits.
        names: names of the candidates, base first.
        labels: labels of all rows, (n,); with weights of rows, labels whose gains are multiplied by them.
        groups: list of each row, or None for one list.
        measure: statistic, gain of graded labels, and whether to normalise.
        seed: seed of the resampling.
        linear: whether the base is linear in the features.
    """
    gains, deviations = [], []
    for scores, rng in _lists(results, splits, len(names), len(labels), seed):
        mean, deviation = _gains(scores, labels, groups, measure, rng)
        gains.append(mean)
        deviations.append(deviation)
    mean, deviation = np.mean(gains, axis=0), np.mean(deviations, axis=0)
    found, spreads = (dict(zip(names, values.tolist(), strict=True)) for values in (mean, deviation))
    return Choice.by_rule(found, spreads, str(measure[0]), linear=linear)


def _lists(
    results: Mapping[str, Sequence[Sequence[float]]], splits: Sequence[InnerSplit], candidates: int, n: int, seed: int
) -> Iterator[tuple[FloatArray, np.random.Generator]]:
    """Return, for each repeat, the places of all rows in the order of each candidate, (candidates, n).

    The parts of a repeat are merged by place. Rows of two parts at one place are put in an order by chance, the same
    for all candidates.
    """
    for repeat in range(REPEATS):
        rng = np.random.default_rng([seed, repeat])
        scores = np.zeros((candidates, n))
        for split in splits:
            if split.repeat == repeat:
                held = split.held
                scores[:, held] = np.asarray(results[split.name]) + (rng.random() - 0.5) / len(held)
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
