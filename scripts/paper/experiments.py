"""The findings of the paper's experiments, computed from the results of its sweep.

Splits of one data set share rows, so differences over splits are tested by the corrected resampled t-test. Data sets
are independent of each other, so gains over data sets are tested by Wilcoxon's signed-rank test, and rankings by
Friedman's and Nemenyi's. Every family of tests is adjusted as a whole.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from ltr.metrics.comparison import Comparison, compare, holm
from ltr.statistics import RankStatistic
from scripts.paper.published import Reference
from trainers.config import EXACT
from trainers.records import nothing_proven
from trainers.report.evidence import BASE, PARTS, Evidence, FloatArray, Length, Series, in_order, mean_of, proven
from trainers.report.options import comparison_table
from trainers.report.page import Table, literal
from trainers.report.paired import ALPHA, Paired, family
from trainers.report.wording import ABSENT, Pair, counted, decided, fixed, listed, p_equals, p_text, percent, share

_FEWEST_DATA = 6  # with 5 data sets, no two-sided signed-rank test reaches 0.05
_LEAST_GAIN = 0.05  # percent; for a smaller mean gain in training, no surviving share is given
_DIGITS = 10  # digits of a value that count in a ranking
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


def logarithm(evidence: Evidence, reference: Reference) -> dict[str, Any]:
    """Compare published values with the largest possible DCG, with base 2 and with base e."""
    rows, beyond, natural = [], 0, 0
    for data in dict.fromkeys(value.data for value in reference.values):
        sizes = [record["sizes"] for record in evidence.results.records if record["data"] == data]
        if data in _STAND_INS or not sizes:
            continue
        positives = {part: max(size[part][1] for size in sizes) for part in PARTS}
        best = {
            part: [RankStatistic.parse(name).best(sizes[0][part][0], positives[part]) for name in _LOGARITHMS]
            for part in PARTS
        }
        value = max((v for v in reference.values if v.data == data), key=lambda v: v.mean / best[v.part][0])
        two, e = best[value.part]
        beyond, natural = beyond + (value.mean > two), natural + (value.mean > e)
        label, count = literal(value.variant.label), str(positives[value.part])
        rows.append([literal(data), label, value.part, f"{value.mean:.2f}", count, f"{two:.2f}", f"{e:.2f}"])
    header = ["data set", "published for", "set", "mean", "positives", "largest, base 2", "largest, base e"]
    return {"beyond": beyond, "natural": natural, "table": Table(header, rows, left=3)}


# --- against the base ranker --------------------------------------------------------------------------------------


def gain(evidence: Evidence) -> dict[str, Any]:
    """Compare the exact stage with its base ranker and with the best surrogate, for each data set and K."""
    test, train = evidence.gains["test"], evidence.gains["train"]
    records = [record for series in evidence.main.values() for record in series.records.values()]
    pairs = [evidence.with_base(series) for series in evidence.main.values()]
    change = np.concatenate([np.subtract(*(s.values("train", evidence.statistic) for s in two)) for two in pairs])
    limits = sorted({found.limit for found in evidence.lengths.values()})
    gaps = [record["list"]["gap"] for record in records if not proven(record) and record["list"]]

    def with_proof(series: Series) -> tuple[Series, Series]:
        return evidence.with_base(series.at([split for split in series.splits if proven(series.records[split])]))

    def surviving(pair: Pair) -> str:
        return share(test[pair].percent / train[pair].percent) if train[pair].percent >= 0.1 else ABSENT

    best, hindsight = _against_best(evidence, linear=False)
    curved = {pair[0]: series.variant.method for pair, series in best.items() if not _linear(series)}
    by_method = {method: [data for data in curved if curved[data] == method] for method in curved.values()}
    best_names = {"best surrogate": lambda pair: best[pair].variant.label}
    return {
        "test": test,
        "train": train,
        "plain": decided(evidence.over(evidence.with_base, "test", independent=True)),
        "recentred": evidence.over(evidence.with_base, "test", recentred=True),
        "limits": " to ".join(dict.fromkeys(f"{limit:g}" for limit in (limits[0], limits[-1]))),
        "lists": len(records),
        "proven": sum(map(proven, records)),
        "unproven": sum(map(nothing_proven, records)),
        "open_gap": float(np.median([100 * gap for gap in gaps if gap is not None] or [math.nan])),
        "above": int((change > 1e-9).sum()),
        "below": int((change < -1e-9).sum()),
        "proven_only": (only := evidence.over(with_proof, "test")),
        "proven_count": sum(one.splits for one in only.values()),
        "hindsight": hindsight,
        "hindsight_linear": _against_best(evidence, linear=True)[1],
        "curved": "; ".join(f"{method} on {listed(data)}" for method, data in by_method.items()),
        "test_table": comparison_table(
            test, evidence, "exact - base on test", more={"proven": lambda pair: evidence.main[pair].proven}
        ),
        "train_table": comparison_table(train, evidence, "exact - base in training", more={"survives": surviving}),
        "hindsight_table": comparison_table(hindsight, evidence, "exact - best on test", more=best_names),
    }


def _linear(series: Series) -> bool:
    return all(record["weights"] is not None for record in series.records.values())


def _against_best(evidence: Evidence, *, linear: bool) -> tuple[dict[Pair, Series], dict[Pair, Paired]]:
    """Compare the exact stage with the first stage that is best on the test sets of each data set."""
    best: dict[Pair, Series] = {}
    for pair, series in evidence.main.items():
        candidates = [
            found.at(series.splits)
            for table in evidence.tables
            for variant, found in table.rows.get(series.data, {}).items()
            if variant.method != EXACT and set(series.splits) <= set(found.splits) and (_linear(found) or not linear)
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
    lengths: dict[str, Length]  # the K of each data set
    data: tuple[str, ...]  # data sets with enough splits for a test
    train: FloatArray  # gains in percent, one for each data set
    test: FloatArray
    comparison: Comparison | None = None  # of the gains on test with 0; None with too few data sets
    p_holm: float = math.nan  # p value of its signed-rank test, adjusted over all K

    @property
    def survives(self) -> tuple[float, float, float]:
        """Mean gain on test over mean gain in training, with its bootstrap interval over data sets."""
        if self.train.mean() < _LEAST_GAIN:
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
        """Spearman's correlation of the gains in training and on test over data sets, with its p value."""
        if self.comparison is None or np.ptp(self.train) == 0 or np.ptp(self.test) == 0:
            return math.nan, math.nan
        found = scipy.stats.spearmanr(self.train, self.test)
        return float(found.statistic), float(found.pvalue)

    @property
    def row(self) -> list[str]:
        """Return the row of the gain in the page's table."""
        others = [f"{data}: {k}" for data, k in self.lengths.items() if str(k) != self.name]
        own, (ratio, low, high), (rho, p_rho) = self.comparison, self.survives, self.correlation
        return [
            f"{self.name} ({', '.join(others)})" if others else self.name,
            percent(float(self.train.mean())),
            percent(float(self.test.mean())),
            ABSENT if own is None else f"{percent(own.difference.low)} to {percent(own.difference.high)}",
            percent(float(np.median(self.test))),
            f"{int((self.test > 0).sum())}/{len(self.data)}",
            p_text(math.nan if own is None else own.p_wilcoxon),
            p_text(self.p_holm),
            share(ratio),
            ABSENT if math.isnan(low) else f"{share(low)} to {share(high)}",
            fixed(rho, 2),
            p_text(p_rho),
        ]


LEVEL_HEADER = (
    "K", "gain in training", "on test", "95%", "median", "better on", "p", "p Holm", "survives", "95%", "rho",
    "p of rho",
)  # fmt: skip


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
            comparison = compare(test, np.zeros(len(test))) if len(test) >= _FEWEST_DATA else None
            found.append(LevelGain(str(length), of, tuple(both), train, test, comparison))
    adjusted = iter(holm([level.comparison.p_wilcoxon for level in found if level.comparison is not None]))
    return [g if g.comparison is None else dataclasses.replace(g, p_holm=next(adjusted)) for g in found]


def mean_text(gains: Sequence[LevelGain]) -> str:
    """Say at which K the mean gain over data sets differs from 0."""
    tested = [level for level in gains if level.comparison is not None]
    if not tested:
        return f"Too few data sets for a test ({max((len(level.data) for level in gains), default=0)} at most)."
    parts = []
    for word, sign in (("better", 1), ("worse", -1)):
        names = [
            f"K = {level.name} (mean {percent(float(level.test.mean()))}, {p_equals(level.p_holm)})"
            for level in tested
            if level.p_holm <= ALPHA and sign * level.test.mean() > 0
        ]
        if names:
            parts.append(f"Over data sets the exact stage is {word} than its base ranker at {listed(names)}.")
    if rest := [level.name for level in tested if level.p_holm > ALPHA]:
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

    def nemenyi(self) -> dict[tuple[str, str], float]:
        """Return p values of Nemenyi's test for each pair, the one with the better mean rank first."""
        k, ranks = len(self.names), self.ranks
        unit = math.sqrt(k * (k + 1) / (6 * len(self.data)))
        return {
            (self.names[a], self.names[b]): float(
                scipy.stats.studentized_range.sf((ranks[b] - ranks[a]) / unit * math.sqrt(2), k, np.inf)
            )
            for a, b in itertools.combinations(np.argsort(ranks, kind="stable"), 2)
        }


def ranked_bases(evidence: Evidence) -> tuple[Ranking, Ranking] | None:
    """Rank the bases after reranking and by themselves, on the splits and data sets that all of them have."""
    for lines in (lines for table in evidence.tables for lines in table.along(BASE) if not lines.held):
        names = tuple(dict.fromkeys(name for row in lines.rows.values() for name in row))
        found: dict[str, list[FloatArray]] = {}
        for data, row in lines.rows.items():
            both = [evidence.with_base(row[name]) for name in names if name in row]
            splits = sorted(set.intersection(*(set(exact.splits) for exact, _ in both)))
            if len(both) == len(names) > 1 and splits:
                means = [[mean_of(s.at(splits).values("test", evidence.statistic)) for s in two] for two in both]
                if not np.isnan(means).any():
                    found[data] = np.array(means)
        if found:
            after, alone = np.moveaxis(np.array(list(found.values())), 2, 0)
            return Ranking(names, tuple(found), after), Ranking(names, tuple(found), alone)
    return None


def base_table(after: Ranking, alone: Ranking, decimals: int) -> Table:
    """Return ranks and gains of the bases, with their means after reranking on each data set."""
    gains = 100 * (after.values - alone.values) / np.abs(alone.values)
    rows = [
        [
            after.names[at],
            f"{after.ranks[at]:.2f}",
            f"{alone.ranks[at]:.2f}",
            percent(float(gains[:, at].mean())),
            f"{int((gains[:, at] > 0).sum())}/{len(after.data)}",
            *(fixed(value, decimals) for value in after.values[:, at]),
        ]
        for at in np.argsort(after.ranks, kind="stable")
    ]
    return Table(["base", "rank after reranking", "rank alone", "gain of reranking", "better on", *after.data], rows)


def ranking_text(ranking: Ranking, what: str) -> str:
    """Say what the tests show about a ranking."""
    ranks = ranking.ranks
    best, worst = int(np.argmin(ranks)), int(np.argmax(ranks))
    order = (
        f"The best mean rank is that of {ranking.names[best]} ({ranks[best]:.1f}), "
        f"the worst that of {ranking.names[worst]} ({ranks[worst]:.1f})"
    )
    if len(ranking.data) < _FEWEST_DATA or len(ranking.names) < 3:
        few = counted(len(ranking.data), "data set")
        return f"{order}. With {few} and {len(ranking.names)} {what} nothing is tested."
    if np.ptp(ranks) == 0:
        return f"All {what} rank alike on the {len(ranking.data)} data sets."
    statistic, p = ranking.friedman
    test = f"(Friedman's chi-squared = {statistic:.1f}, {p_equals(p)}, {len(ranking.data)} data sets)"
    if p > ALPHA:
        return f"No difference between the {what} is shown {test}. {order}; that may be chance."
    pairs = [f"{a} ranks better than {b} ({p_equals(q)})" for (a, b), q in ranking.nemenyi().items() if q <= ALPHA]
    which = f"By Nemenyi's test {listed(pairs)}." if pairs else "No single pair differs by Nemenyi's test."
    return f"The {what} do not rank alike {test}. {order}. {which}"
