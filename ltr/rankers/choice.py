"""Choose on the training lists alone whether to correct a base ranker's order, and how far.

*Inner splits* (`folds_of`). The rows (with queries, the queries) are divided into `FOLDS` parts at random, up to
`REPEATS` times. Each part is held out once: the whole procedure, base ranker included, learns from the other parts and
ranks it. The places of one repeat form a list as long as the training list, and the gain of a candidate is the
statistic of its list less that of the base, averaged over the repeats. Where part i is held out, the base scores of the
other rows are out of fold, too: those of part j come from a base fitted without i and j, which serves where j is held
out as well. Rows of one group are never divided, and resampling draws whole groups.

*Rows in time.* The rows are cut into ``FOLDS + 1`` consecutive blocks of whole moments, once, whatever their groups.
Block i is held out by a base that learned from the blocks before it, and by corrections that learned from those of
these rows that have a base score out of fold. The first block has none, so the comparison is of the blocks from the
third on.

*Weights of rows.* With weights v_i, the statistic of a list is ``sum over i of v_i gain_i a[rank_i]``: ranks count
rows, and each row's gain counts v_i times. The mean over several lists is the weighted one of `ltr.lists`.

*The rule.* Take the candidate with the largest gain, and keep the base unless that gain exceeds its standard deviation
times `BAR`, or `HIGH_BAR` where the base is not linear in the features: such a base has rarely left a linear correction
anything to gain.

*What to expect.* The largest of several noisy gains is more often overrated than underrated. So the gain g with
standard deviation s under resampling is shrunk to ``g · g² / (g² + 2 s²)``, the mean of the posterior under a normal
prior around 0; the factor 2 is measured (`docs/payoff.md`). The gain on a new list of this size varies as much as its
estimate does, so its 90 % interval is ``expected gain ± 1.645 sqrt(2) s``.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.model_selection import KFold, StratifiedKFold

from ltr.data.times import blocks_of
from ltr.fitting.validation import nothing_to_rank, units_and_strata, values_of_lists
from ltr.lists import numbered, split_weights, weights_by_row
from ltr.metrics.ranked import Ties
from ltr.rankers.inputs import FloatArray, IntArray, LabelledRows
from ltr.ranks import GainName, weighted_labels
from ltr.statistics import RankStatistic

_Key = TypeVar("_Key")
_Result = TypeVar("_Result")

SPREADS = (0.2, 0.45, 0.7)
"""Spreads of the corrections that are compared."""
FOLDS, REPEATS = 5, 6
BAR, HIGH_BAR = 0.25, 1.0
"""Standard deviations by which a gain must exceed 0 for the base's order to be changed: linear bases, other bases."""
BASE = "base"
"""Name of the candidate that leaves the base ranker's order alone."""
CORRECTIONS = {f"spread {spread:g}": spread for spread in SPREADS}
"""The other candidates: spread of each correction by its name."""

_HALF_WIDTH = 1.645 * 2**0.5
_RESAMPLES = 40  # of each repeat
_ENTRIES = 1 << 19  # of resampled rows whose statistic is computed at a time


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows that are held out, and rows to learn from, ascending; a `repeat` holds each row out once at most."""

    name: str  # that no other fold of a seed has
    repeat: int
    train: IntArray
    held: IntArray


def computed_once(compute: Callable[[_Key], _Result]) -> Callable[[_Key], _Result]:
    """Return a function that computes the result for each key once; in several threads, all but the first wait."""
    known, lock = dict[_Key, Future[_Result]](), threading.Lock()

    def result(key: _Key) -> _Result:
        with lock:
            first = key not in known
            found = known.setdefault(key, Future())
        if first:
            try:
                found.set_result(compute(key))
            except BaseException as error:
                found.set_exception(error)
        return found.result()

    return result


def side_by_side(
    work: Callable[[Any], Any], jobs: Sequence[Any], threads: int, initializer: Callable[[], Any] | None = None
) -> Iterator[Any]:
    """Return the results of jobs in their order, done by several threads; no job begins after one has failed."""
    with ThreadPoolExecutor(threads, initializer=initializer) as pool:
        try:
            yield from pool.map(work, jobs)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@dataclass(frozen=True)
class Choice:
    """The result of a comparison of candidates on inner splits, ``"base"`` first.

    Attributes:
        gains, deviations: mean gain of each candidate over the base on inner lists as long as the training list, and
            its standard deviation under resampling, by name.
        expected, low, high: gain to expect on a new list like the training list, and its 90 % interval; 0 where the
            base is kept.
        list_gain: gain over the base of the best weights known on the training list itself; None if unknown.
        what: the chosen ranker in words.
        similar: number of groups of similar rows that were kept together without being asked for; None if none were.
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
    similar: int | None = None

    @classmethod
    def by_rule(
        cls, gains: Mapping[str, float], deviations: Mapping[str, float], statistic: str, *, linear: bool
    ) -> Choice:
        """Return the choice that the rule makes of gains by name, the base first; `linear` says whether the base is.

        Examples:
            >>> gains, deviations = {"base": 0.0, "spread 0.2": 0.4}, {"base": 0.0, "spread 0.2": 0.5}
            >>> choice = Choice.by_rule(gains, deviations, "dcg", linear=True)
            >>> choice.chosen, round(choice.expected, 3)  # 0.4 * 0.16 / (0.16 + 2 * 0.25)
            ('spread 0.2', 0.097)
            >>> Choice.by_rule(gains, deviations, "dcg", linear=False).chosen
            'base'
        """
        names = tuple(gains)
        best = max(names[1:], key=lambda name: gains[name])
        chosen = best if gains[best] > (BAR if linear else HIGH_BAR) * deviations[best] else names[0]
        gain, deviation = gains[chosen], deviations[chosen]
        expected, half = gain**3 / (gain**2 + 2 * deviation**2) if gain else 0.0, _HALF_WIDTH * deviation
        return cls(
            names, chosen, gains, deviations, expected, expected - half, expected + half, None, statistic, what=chosen
        )

    @property
    def spread(self) -> float | None:
        """The spread of the chosen correction; None for the base."""
        return CORRECTIONS.get(self.chosen)

    def of_base(self) -> Choice:
        """Return the choice of the base's order in place of a correction that cannot be had."""
        return dataclasses.replace(self, chosen=BASE, expected=0.0, low=0.0, high=0.0, what=BASE)

    @property
    def reranks(self) -> bool:
        """Whether a correction was chosen."""
        return self.chosen != BASE

    def __str__(self) -> str:
        if self.reranks:
            interval = f"(90 %: {self.low:+.3g} to {self.high:+.3g})"
            text = f"on new lists expect {self.expected:+.3g} {self.statistic} {interval}; chosen: {self.what}"
        else:
            gain = "" if self.list_gain is None else f"; on this list alone it could gain {self.list_gain:.3g}"
            text = f"reranking is not expected to help on new lists: the base order is kept{gain}"
        kept = "" if self.similar is None else f"; kept {self.similar} groups of similar rows together"
        return text + kept

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**dataclasses.asdict(self), "candidates": list(self.candidates)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Choice:
        """Return the choice that `to_dict` described."""
        return cls(**{**values, "candidates": tuple(values["candidates"])})


@dataclass(frozen=True, eq=False)
class PartScores:
    """Scores of all rows by a ranker that has seen some, the mean and deviation of these, and columns in use."""

    scores: FloatArray
    mean: float
    deviation: float
    used: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, scores: FloatArray, seen: NDArray[Any], used: NDArray[np.bool_] | None = None) -> PartScores:
        """Return the scores of a ranker that has seen these rows."""
        return cls(scores, float(scores[seen].mean()), float(scores[seen].std()), used)

    def on_the_scale_of(self, own: FloatArray) -> FloatArray:
        """Return the scores, shifted and scaled so that those of rows it has seen have mean and deviation of `own`."""
        factor = float(own.std()) / self.deviation if self.deviation > 0 else 1.0
        return (self.scores - self.mean) * factor + own.mean()


def folds_of(rows: LabelledRows, seed: int, repeats: int | None = None, parts: int = FOLDS) -> list[Fold]:
    """Return the folds by which rows are ranked by rankers that have not seen them, see the module.

    Without times the parts are drawn by group or query, else with equal shares of labels in each, in at most two
    repeats of more than 2,000 rows, and one of more than 10,000. There are no folds where a part would be all there is,
    or hold a single label; with times, where no block has two labels in some list before it.

    Examples:
        >>> rows = LabelledRows(np.zeros((12, 1)), np.tile([1.0, 0.0], 6), times=np.repeat(np.arange(6), 2))
        >>> for fold in folds_of(rows, seed=0)[:2]:
        ...     print(fold.train, fold.held)
        [0 1] [2 3]
        [0 1 2 3] [4 5]
    """
    if rows.times is not None:
        blocks = blocks_of(rows.times, [block / (FOLDS + 1) for block in range(1, FOLDS + 1)])
        return [
            Fold(f"{seed}/0/{block}", 0, train, np.flatnonzero(blocks == block))
            for block in range(1, blocks.max() + 1)
            if not nothing_to_rank(train := np.flatnonzero(blocks < block), rows.labels, rows.lists)
        ]
    units, strata = units_and_strata(rows.labels, rows.lists, rows.groups)
    fewest = int(np.bincount(strata)[np.unique(strata)].min())
    if fewest < 2 or (rows.lists is None and rows.labels.min() == rows.labels.max()):
        return []
    kind: Any = StratifiedKFold if strata.any() else KFold
    n, found = len(rows.labels), []
    most = REPEATS if n <= 2_000 else 2 if n <= 10_000 else 1
    for repeat in range(min(most, REPEATS if repeats is None else repeats)):
        divided = kind(min(parts, fewest), shuffle=True, random_state=(seed + repeat) % 2**32)
        for part, (_, drawn) in enumerate(divided.split(strata, strata)):
            held = np.isin(units, drawn)
            found.append(Fold(f"{seed}/{repeat}/{part}", repeat, np.flatnonzero(~held), np.flatnonzero(held)))
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
    splits: Sequence[Fold],
    names: Sequence[str],
    training: LabelledRows,
    measure: tuple[RankStatistic, GainName, bool],
    seed: int,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the gain of each candidate over the first, and its standard deviation under resampling, by name.

    `results` has, for each split by name, the places of its held-out rows in the order of each candidate. `measure` is
    the statistic, the gain of graded labels, and whether to normalise.
    """
    labels, weights = labels_in_lists(training.labels, training.weights, training.lists, measure[1])
    found = []
    for repeat in sorted({split.repeat for split in splits}):
        rng = np.random.default_rng([seed, repeat])
        scores = np.full((len(names), len(labels)), np.nan)
        for split in splits:
            if split.repeat == repeat:
                scores[:, split.held] = np.asarray(results[split.name]) + (rng.random() - 0.5) / len(split.held)
        rows = np.flatnonzero(~np.isnan(scores[0]))
        # only labels count, and features may be large
        ranked = dataclasses.replace(training, features=labels, labels=labels, weights=weights).take(rows)
        found.append(_gains(scores[:, rows], ranked, measure, rng))
    gains, deviations = (np.mean(of_repeats, axis=0).tolist() for of_repeats in zip(*found, strict=True))
    return dict(zip(names, gains, strict=True)), dict(zip(names, deviations, strict=True))


def labels_in_lists(
    labels: FloatArray, weights: FloatArray | None, lists: IntArray | None, gain: GainName
) -> tuple[FloatArray, FloatArray | None]:
    """Return labels with gains times the relative weights of rows, and the weight of each row's list."""
    if weights is None or lists is None:
        return weighted_labels(labels, weights, gain), None
    of_lists, relative = weights_by_row(weights, lists, labels)
    return weighted_labels(labels, relative, gain), of_lists


def _gains(
    scores: FloatArray,
    rows: LabelledRows,
    measure: tuple[RankStatistic, GainName, bool],
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the gain of each order of rows over the first, and its deviation; the weights are those of lists."""
    labels, lists, groups = rows.labels, rows.lists, rows.groups
    if lists is not None:
        values = np.array([values_of_lists(row, labels, measure, lists) for row in scores])
        defined = ~np.isnan(values).any(axis=0)
        differences = (values - values[0])[:, defined]
        first = np.unique(lists, return_index=True)[1][defined]  # a row of each list
        counts = np.ones(len(first)) if rows.weights is None else rows.weights[first]
        means = (differences * counts).mean(axis=1) / counts.mean()
        rests = counts * (differences - means[:, None])
        if groups is not None:
            numbers = np.unique(groups[first], return_inverse=True)[1]
            rests = np.array([np.bincount(numbers, row) for row in rests])
        return means, rests.std(axis=1, ddof=1) * rests.shape[1] ** 0.5 / counts.sum()
    whole = np.array([float(values_of_lists(row, labels, measure)) for row in scores])
    drawn = _drawn(len(labels), groups, rng)
    pieces = np.array_split(drawn, min(len(drawn), 1 + drawn.size // _ENTRIES))
    moved = np.array(
        [np.concatenate([values_of_lists(row[at], labels[at], measure) for at in pieces]) for row in scores]
    )
    return whole - whole[0], np.nanstd(moved - moved[0], axis=1, ddof=1)


def _drawn(n: int, groups: IntArray | None, rng: np.random.Generator) -> IntArray:
    """Return resampled rows, (`_RESAMPLES`, n): one by one, or by whole groups, the last cut to fit."""
    if groups is None:
        return rng.integers(0, n, (_RESAMPLES, n))
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    found = np.empty((_RESAMPLES, n), dtype=np.int64)
    for resample in found:
        filled = 0
        while filled < n:
            rows = members[rng.integers(len(members))][: n - filled]
            resample[filled : filled + len(rows)] = rows
            filled += len(rows)
    return found


def mean_of_lists(
    scores: FloatArray,
    labels: FloatArray,
    lists: IntArray | None,
    measure: tuple[RankStatistic, GainName, bool],
    ties: Ties = "resolved",
    weights: FloatArray | None = None,
) -> float:
    """Return the mean of the statistic over the lists for which it is defined, see `Ranker.score`; NaN for none."""
    if weights is not None and not weights.all():
        kept = weights > 0
        scores, labels, weights = scores[kept], labels[kept], weights[kept]
        lists = None if lists is None else np.unique(lists[kept], return_inverse=True)[1]
    lists = np.zeros(len(scores), dtype=np.int64) if lists is None else lists
    values = values_of_lists(scores, labels, measure, lists, ties)
    defined = ~np.isnan(values)
    if not defined.any():
        return math.nan
    if weights is None:
        return float(np.mean(values[defined]))
    order = numbered(torch.from_numpy(lists))  # values are in the order in which lists first appear
    of_lists = split_weights(torch.from_numpy(weights), order, torch.from_numpy(labels))[0].numpy()
    return float(np.average(values[defined], weights=of_lists[defined]))
