"""Findings over data sets, which are independent of each other: the mean gain, and how much of it survives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from ltr.metrics.comparison import Comparison, compare, holm
from trainers.report.evidence import Evidence, Level
from trainers.report.page import Block, Section, Table, Text
from trainers.report.paired import ALPHA
from trainers.report.series import FloatArray
from trainers.report.wording import ABSENT, counted, fixed, listed, p_equals, p_text, percent, share

__all__ = ["FEWEST_DATA", "LevelGain", "across_section", "level_gains", "mean_text"]

FEWEST_DATA = 6
"""Data sets below which nothing is tested over them: with 5, no two-sided signed-rank test reaches 0.05."""
_LARGEST = 0.05  # percent; a mean gain below that has no share that survives


@dataclass(frozen=True)
class LevelGain:
    """Gains over the base ranker at one K, a data set each.

    Attributes:
        level: the K.
        data: names of the data sets.
        train: gains on the training halves, of percent.
        test: on the test halves.
        comparison: of the gains on the test halves with 0; None with too few data sets.
        p_holm: of its signed-rank test, adjusted over the levels.
    """

    level: Level
    data: tuple[str, ...]
    train: FloatArray
    test: FloatArray
    comparison: Comparison | None = None
    p_holm: float = math.nan

    @property
    def survives(self) -> tuple[float, float, float]:
        """Mean gain on the test halves over that in training, with its bootstrap interval over data sets."""
        if self.train.mean() < _LARGEST:
            return math.nan, math.nan, math.nan
        ratio = float(self.test.mean() / self.train.mean())
        if self.comparison is None:
            return ratio, math.nan, math.nan
        draws = np.random.default_rng(0).integers(0, len(self.data), size=(9999, len(self.data)))
        train, test = self.train[draws].mean(axis=1), self.test[draws].mean(axis=1)
        kept = train > 0
        low, high = np.quantile(test[kept] / train[kept], [ALPHA / 2, 1 - ALPHA / 2])
        return ratio, float(low), float(high)

    @property
    def correlation(self) -> tuple[float, float]:
        """Spearman's of the gains in training and on test over data sets, with its p value."""
        if self.comparison is None or np.ptp(self.train) == 0 or np.ptp(self.test) == 0:
            return math.nan, math.nan
        found = scipy.stats.spearmanr(self.train, self.test)
        return float(found.statistic), float(found.pvalue)


def level_gains(evidence: Evidence) -> list[LevelGain]:
    """The gains at each K that at least two data sets have, each with enough splits for a test."""
    found = []
    for level in evidence.levels:
        pairs = [(data, length) for data, length in level.lengths.items()]
        both = [
            (pair[0], evidence.gains_train[pair].percent, evidence.gains_test[pair].percent)
            for pair in pairs
            if all(pair in gains and gains[pair].tested for gains in (evidence.gains_train, evidence.gains_test))
        ]
        both = [entry for entry in both if not math.isnan(entry[1] + entry[2])]
        if len(both) < 2:
            continue
        names, train, test = zip(*both, strict=True)
        comparison = compare(test, np.zeros(len(test))) if len(test) >= FEWEST_DATA else None
        found.append(LevelGain(level, names, np.array(train), np.array(test), comparison))
    tested = [gain.comparison.p_wilcoxon for gain in found if gain.comparison is not None]
    adjusted = iter(holm(tested))
    return [
        gain
        if gain.comparison is None
        else LevelGain(gain.level, gain.data, gain.train, gain.test, gain.comparison, next(adjusted))
        for gain in found
    ]


def across_section(evidence: Evidence) -> Section | None:
    """The gain and the optimism over data sets."""
    gains = level_gains(evidence)
    if not gains:
        return None
    blocks: list[Block] = [Text(_how()), Text(mean_text(gains)), _mean_table(gains)]
    blocks += [Text(_survival_text(gains)), _survival_table(gains)]
    return Section("Over data sets: the mean gain, and how much of the training gain survives", blocks)


def _how() -> str:
    return (
        "Data sets, unlike splits, are independent of each other, and small gains of one sign that no single data set "
        "can show add up here. Each data set counts once, with its mean gain over the base ranker in percent; gains "
        "are tested against 0 by Wilcoxon's signed-rank test, Holm's correction over the values of K, from "
        f"{FEWEST_DATA} data sets on. The test speaks of data sets like these, and they were chosen by hand."
    )


def mean_text(gains: list[LevelGain]) -> str:
    """Whether the mean gain over data sets differs from 0."""
    tested = [gain for gain in gains if gain.comparison is not None]
    if not tested:
        most = max(len(gain.data) for gain in gains)
        return f"Too few data sets for a test ({most} at most)."
    parts = []
    for word, sign in (("better", 1), ("worse", -1)):
        names = [
            f"K = {gain.level.short} (mean {percent(float(gain.test.mean()))}, {p_equals(gain.p_holm)})"
            for gain in tested
            if gain.p_holm <= ALPHA and sign * gain.test.mean() > 0
        ]
        if names:
            parts.append(f"Over data sets the exact stage is {word} than its base ranker at {listed(names)}.")
    if rest := [gain.level.short for gain in tested if gain.p_holm > ALPHA]:
        parts.append(f"Over data sets no difference is shown at K = {listed(rest)}.")
    return " ".join(parts)


def _mean_table(gains: list[LevelGain]) -> Table:
    rows = []
    for gain in gains:
        interval, wins = ABSENT, f"{int((gain.test > 0).sum())}/{len(gain.data)}"
        if gain.comparison is not None:
            ends = gain.comparison.difference
            interval = f"{percent(ends.low)} to {percent(ends.high)}"
        p = gain.comparison.p_wilcoxon if gain.comparison is not None else math.nan
        mean = percent(float(gain.test.mean()))
        median = percent(float(np.median(gain.test)))
        rows.append([gain.level.name, mean, interval, median, wins, p_text(p), p_text(gain.p_holm)])
    header = ["K", "mean gain", "95%", "median", "better on", "p", "p Holm"]
    caption = "Gain over the base ranker on the test halves; 95%: bootstrap over data sets (BCa)."
    return Table(header, rows, caption)


def _survival_text(gains: list[LevelGain]) -> str:
    parts = []
    for gain in gains:
        ratio, low, high = gain.survives
        if math.isnan(ratio):
            continue
        ends = f", 95% from {share(low)} to {share(high)}" if not math.isnan(low) else ""
        parts.append(f"{share(ratio)} at K = {gain.level.short} ({counted(len(gain.data), 'data set')}{ends})")
    if not parts:
        return "In training there is no mean gain of which a share could survive."
    text = f"Of the mean training gain, this much is found again on the test halves: {'; '.join(parts)}."
    shown = [(gain.level.short, *gain.correlation) for gain in gains if not math.isnan(gain.correlation[0])]
    if not shown:
        return text
    strong = [f"K = {name} (rho = {rho:.2f}, {p_equals(p)})" for name, rho, p in shown if p <= ALPHA]
    if strong:
        last = f"Over data sets the gains in training and on test are correlated at {listed(strong)}."
    else:
        last = (
            "The gain in training does not tell on which data sets there is one on test: "
            "Spearman's correlation over data sets is significant at no K."
        )
    return f"{text} {last}"


def _survival_table(gains: list[LevelGain]) -> Table:
    rows = []
    for gain in gains:
        ratio, low, high = gain.survives
        rho, p = gain.correlation
        ends = ABSENT if math.isnan(low) else f"{share(low)} to {share(high)}"
        train, test = percent(float(gain.train.mean())), percent(float(gain.test.mean()))
        rows.append([gain.level.name, train, test, share(ratio), ends, fixed(rho, 2), p_text(p)])
    header = ["K", "gain in training", "gain on test", "survives", "95%", "rho", "p of rho"]
    caption = (
        "Means over data sets. Survives: the second mean over the first; 95%: bootstrap over data sets (percentiles). "
        "rho: Spearman's correlation of the two gains over data sets, p not adjusted."
    )
    return Table(header, rows, caption)
