"""The findings of the paper's experiments, computed from the results of its sweep.

Splits of one data set share rows, so differences over splits are tested by the corrected resampled t-test. Data sets
are independent of each other, so gains over data sets are tested by Wilcoxon's signed-rank test, and rankings by
Friedman's. Every family of tests is adjusted as a whole.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from ltr.metrics.comparison import holm
from ltr.statistics import RankStatistic
from scripts.paper.published import Published
from trainers.config import EXACT
from trainers.files import Json
from trainers.records import nothing_proven
from trainers.report.evidence import (
    BASE,
    PARTS,
    Evidence,
    FloatArray,
    Length,
    Lengths,
    Series,
    in_order,
    mean_of,
    proven,
)
from trainers.report.page import literal
from trainers.report.paired import ALPHA, Paired, family
from trainers.report.wording import Pair, counted, gap_text, listed, p_equals, percent

_FEWEST_DATA = 6  # with 5 data sets, no two-sided signed-rank test reaches 0.05
_DIGITS = 10  # digits of a value that count in a ranking
_TOLERANCE = 1e-9  # differences of values that are rounding
_LOGARITHMS = ("dcg", "dcg(base=e)")
_STAND_INS = ("roc_flexibility",)  # data whose number of positives is not the paper's


def protocol(evidence: Evidence) -> dict[str, Any]:
    """Return the options of the tables of methods: the usual ones, and the price C of data sets with another one."""
    by_id = evidence.results.by_id
    cells = [cell for grid in evidence.results.grids if grid["name"].startswith("methods") for cell in grid["cells"]]
    exact = [by_id[cell["id"]] for cell in cells if cell["method"] == EXACT and cell["id"] in by_id]
    usual = {
        key: Counter(record["options"][key] for record in exact).most_common(1)[0][0] if exact else None
        for key in ("base", "time_limit", "margin", "C")
    }
    prices = {record["data"]: record["options"]["C"] for record in exact if record["options"]["C"] != usual["C"]}
    others = ", ".join(f"{C:g} on {literal(data)}" for data, C in prices.items())
    return {**usual, "others": f" ({others})" if others else ""}


def logarithm(evidence: Evidence, published: Sequence[Published]) -> dict[str, int]:
    """Count the data sets, and those with a published value above the largest DCG with base 2, and with base e."""
    found = {"data": 0, "beyond": 0, "natural": 0}
    for data in dict.fromkeys(value.data for value in published):
        sizes = [record["sizes"] for record in evidence.results.records if record["data"] == data]
        if data in _STAND_INS or not sizes:
            continue
        best = {}
        for part in PARTS:
            positives = max(size[part][1] for size in sizes)
            best[part] = [RankStatistic.parse(name).best(sizes[0][part][0], positives) for name in _LOGARITHMS]
        values = [(value.mean, best[value.part]) for value in published if value.data == data]
        found["data"] += 1
        found["beyond"] += any(mean > two for mean, (two, _) in values)
        found["natural"] += any(mean > e for mean, (_, e) in values)
    return found


# --- against the base ranker --------------------------------------------------------------------------------------


def gain(evidence: Evidence) -> dict[str, Any]:
    """Compare the exact stage with its base ranker and with the best surrogate, for each data set and K."""
    records = [record for series in evidence.main.values() for record in series.records.values()]
    pairs = [evidence.with_base(series) for series in evidence.main.values()]
    change = np.concatenate([np.subtract(*(s.values("train", evidence.statistic) for s in two)) for two in pairs])
    limits = sorted({found.limit for found in evidence.lengths.values()})
    gaps = [record["list"]["gap"] for record in records if not proven(record) and record["list"]]
    best, hindsight = _against_best(evidence)
    curved = {pair[0]: series.variant.method for pair, series in best.items() if not _linear(series)}
    by_method = {method: [data for data in curved if curved[data] == method] for method in curved.values()}
    return {
        "test": evidence.gains["test"],
        "train": evidence.gains["train"],
        "limits": " to ".join(dict.fromkeys(f"{limit:g}" for limit in (limits[0], limits[-1]))),
        "lists": len(records),
        "proven": sum(map(proven, records)),
        "unproven": sum(map(nothing_proven, records)),
        "open_gap": float(np.median([100 * gap for gap in gaps if gap is not None] or [math.nan])),
        "above": int((change > _TOLERANCE).sum()),
        "below": int((change < -_TOLERANCE).sum()),
        "hindsight": hindsight,
        "curved": "; ".join(f"{method} on {listed(data)}" for method, data in by_method.items()),
    }


def _linear(series: Series) -> bool:
    return all(record["weights"] is not None for record in series.records.values())


def _against_best(evidence: Evidence) -> tuple[dict[Pair, Series], dict[Pair, Paired]]:
    """Compare the exact stage with the first stage that is best on the test sets of each data set."""
    best: dict[Pair, Series] = {}
    for pair, series in evidence.main.items():
        candidates = [
            found.at(series.splits)
            for table in evidence.tables
            for variant, found in table.rows.get(series.data, {}).items()
            if variant.method != EXACT and set(series.splits) <= set(found.splits)
        ]
        means = [mean_of(found.values("test", evidence.statistic)) for found in candidates]
        if defined := [at for at, mean in enumerate(means) if not np.isnan(mean)]:
            best[pair] = candidates[max(defined, key=means.__getitem__)]
    return best, family({pair: evidence.compare(evidence.main[pair], one, "test") for pair, one in best.items()})


# --- over data sets -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LevelGain:
    """Gains over the base ranker at one K on several data sets."""

    name: str  # the K that most data sets have
    data: tuple[str, ...]  # data sets with enough splits for a test
    train: FloatArray  # gains in percent, one for each data set
    test: FloatArray

    @property
    def survives(self) -> float:
        """Mean gain on test over mean gain in training."""
        return float(self.test.mean() / self.train.mean())

    @property
    def p(self) -> float:
        """P value of the signed-rank test of the gains on test; NaN with too few data sets."""
        return float(scipy.stats.wilcoxon(self.test).pvalue) if len(self.data) >= _FEWEST_DATA else math.nan


def levels(evidence: Evidence) -> dict[Length, dict[str, Length]]:
    """Return each K that most data sets have, with the K of each data set; other K are matched by their order."""
    have = {found.data: tuple(found.main) for found in evidence.lengths.values()}
    common = Counter(have.values()).most_common(1)[0][0] if have else ()
    placed: dict[Length, dict[str, Length]] = {length: {} for length in common}
    numbers = [length for length in common if length != "full"]
    for data, lengths in have.items():
        own = [length for length in lengths if length != "full"]
        aligned = dict(zip(own, numbers, strict=False)) if not set(own) & set(numbers) else {}
        for length in lengths:
            placed.setdefault(aligned.get(length, length), {})[data] = length
    return {length: placed[length] for length in sorted(placed, key=in_order)}


def level_gains(evidence: Evidence) -> list[LevelGain]:
    """Return the gains at each K for which at least two data sets have enough splits for a test."""
    found = []
    for length, of in levels(evidence).items():
        both = {}
        for pair in of.items():
            two = [evidence.gains[part].get(pair) for part in PARTS]
            if all(one is not None and one.tested and not math.isnan(one.percent) for one in two):
                both[pair[0]] = [one.percent for one in two]
        if len(both) >= 2:
            train, test = np.array(list(both.values())).T
            found.append(LevelGain(str(length), tuple(both), train, test))
    return found


def mean_text(gains: Sequence[LevelGain]) -> str:
    """Say at which K the mean gain over data sets differs from 0."""
    tested = [level for level in gains if not math.isnan(level.p)]
    if not tested:
        return f"Too few data sets for a test ({max((len(level.data) for level in gains), default=0)} at most)."
    adjusted = holm([level.p for level in tested])
    parts = []
    for word, sign in (("better", 1), ("worse", -1)):
        names = [
            f"K = {level.name} (mean {percent(float(level.test.mean()))}, {p_equals(p)})"
            for level, p in zip(tested, adjusted, strict=True)
            if p <= ALPHA and sign * level.test.mean() > 0
        ]
        if names:
            parts.append(f"Over data sets the exact stage is {word} than its base ranker at {listed(names)}.")
    if rest := [level.name for level, p in zip(tested, adjusted, strict=True) if p > ALPHA]:
        parts.append(f"Over data sets no difference is shown at K = {listed(rest)}.")
    return " ".join(parts)


# --- base rankers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranking:
    """Several rankers by their values on data sets, after Demšar, *Statistical Comparisons of Classifiers* (2006)."""

    names: tuple[str, ...]  # at least two
    data: tuple[str, ...]
    values: FloatArray  # a row for each data set, a column for each ranker, none undefined

    @property
    def ranks(self) -> FloatArray:
        """Mean rank of each ranker, 1 for the largest value; ties share theirs."""
        sizes = np.abs(self.values).max(axis=1, keepdims=True)
        scaled = np.round(self.values / np.where(sizes > 0, sizes, 1.0), _DIGITS)
        return scipy.stats.rankdata(-scaled, axis=1).mean(axis=0)

    @property
    def friedman(self) -> tuple[float, float]:
        """Statistic and p value of Friedman's test that all rank alike; not all of them may tie everywhere."""
        found = scipy.stats.friedmanchisquare(*np.round(self.values, _DIGITS).T)
        return float(found.statistic), float(found.pvalue)

    def __str__(self) -> str:
        best, worst = int(np.argmin(self.ranks)), int(np.argmax(self.ranks))
        order = (
            f"The best mean rank is that of {self.names[best]} ({self.ranks[best]:.1f}), "
            f"the worst that of {self.names[worst]} ({self.ranks[worst]:.1f})"
        )
        if len(self.data) < _FEWEST_DATA or len(self.names) < 3:
            few = counted(len(self.data), "data set")
            return f"{order}. With {few} and {len(self.names)} bases nothing is tested."
        if np.ptp(self.ranks) == 0:
            return f"All bases rank alike on the {len(self.data)} data sets."
        statistic, p = self.friedman
        test = f"(Friedman's chi-squared = {statistic:.1f}, {p_equals(p)}, {len(self.data)} data sets)"
        if p > ALPHA:
            return f"No difference between the bases is shown {test}. {order}; that may be chance."
        return f"The bases do not rank alike {test}. {order}."


def ranked_bases(evidence: Evidence) -> Ranking | None:
    """Rank the bases after reranking, on the splits and data sets that all of them have."""
    for rows in (table.along(BASE) for table in evidence.tables):
        names = tuple(dict.fromkeys(name for row in rows.values() for name in row))
        found: dict[str, list[float]] = {}
        for data, row in rows.items():
            splits = sorted(set.intersection(*(set(series.splits) for series in row.values())))
            if len(row) == len(names) > 1 and splits:
                means = [mean_of(row[name].at(splits).values("test", evidence.statistic)) for name in names]
                if not np.isnan(means).any():
                    found[data] = means
        if found:
            return Ranking(names, tuple(found), np.array(list(found.values())))
    return None


# --- a larger K, and more time ------------------------------------------------------------------------------------


def larger(evidence: Evidence) -> dict[str, Any] | None:
    """Compare lengths of the list; return None if no data set has two.

    A longer list is *worse* on a split where a shorter one has the larger statistic of the whole training set. That is
    *settled* where the bound proves that no linear order of the longer list reaches the value of the shorter one.
    """
    several = [lengths for lengths in evidence.lengths.values() if len(lengths.main) > 1]
    found = [pair for lengths in several for pair in _pairs(evidence, lengths)]
    if not found:
        return None
    whole = {
        (lengths.data, last): evidence.compare(lengths.main[last], next(iter(lengths.main.values())), "test")
        for lengths in several
        for last in [[*lengths.main][-1]]
    }
    return {
        "pairs": len(found),
        "worse": sum(worse for worse, _ in found),
        "settled": sum(settled for _, settled in found),
        "whole": family(whole),
        "more_time": _more_time(evidence),
    }


def _pairs(evidence: Evidence, lengths: Lengths) -> Iterator[tuple[bool, bool]]:
    """Yield, for two K on a split, whether the larger one is worse, and whether the bound settles that."""
    for a, b in itertools.combinations(lengths.main.values(), 2):
        for split in a.common(b):
            short, long = (series.records[split]["train"].get(evidence.statistic) for series in (a, b))
            if short is not None and long is not None:
                slack = _TOLERANCE * max(abs(short), abs(long))
                yield long < short - slack, short > _reachable(evidence, b.records[split]) + slack


def _reachable(evidence: Evidence, record: Json) -> float:
    """Return an upper bound of the training set's statistic over all linear orders of an exact result's list.

    It is the answer's value, plus the distance to its bound, plus the price of the weights that it does not use. It is
    NaN if the statistic of a whole list is not the sum over its top and the rest.
    """
    found, options = record["list"], record["options"]
    adds_up = RankStatistic.parse(evidence.statistic).kind.adds_up
    if found is None or not adds_up:
        return math.nan
    unused = record["sizes"]["d"] - int(np.count_nonzero(record["weights"]))
    return float(record["train"][evidence.statistic] + found["bound"] - found["value"] + options["C"] * unused)


def _more_time(evidence: Evidence) -> dict[str, Any] | None:
    """Show what a longer time limit brings to the lists that the usual one leaves open."""
    found: list[tuple[Series, Series]] = []
    for lengths in evidence.lengths.values():
        for length, long in ((length, long) for of in lengths.longer.values() for length, long in of.items()):
            short = lengths.main.get(length)
            splits = [] if short is None else [s for s in long.common(short) if not proven(short.records[s])]
            if splits:
                found.append((short.at(splits), long.at(splits)))
    if not found:
        return None
    changes = {
        part: np.concatenate([np.subtract(*(s.values(part, evidence.statistic) for s in (b, a))) for a, b in found])
        for part in PARTS
    }
    records = [record for _, long in found for record in long.records.values()]
    gaps = [np.concatenate([two[at].on_list("gap") for two in found]) for at in (0, 1)]
    known = [gap[~np.isnan(gap)] for gap in gaps]
    return {
        "lists": len(records),
        "proven": sum(map(proven, records)),
        "gaps": [gap_text(float(np.median(gap))) if len(gap) else "none" for gap in known],
        "rises": {part: int((c > _TOLERANCE).sum()) for part, c in changes.items()},
        "falls": {part: int((c < -_TOLERANCE).sum()) for part, c in changes.items()},
    }
