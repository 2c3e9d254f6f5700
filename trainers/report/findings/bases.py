"""Findings: which surrogate is the best base of the exact stage, over data sets."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import scipy

from trainers.report.evidence import Evidence
from trainers.report.findings.across import FEWEST_DATA
from trainers.report.page import Block, Section, Table, Text
from trainers.report.paired import ALPHA
from trainers.report.series import FloatArray, Series, mean_of
from trainers.report.wording import counted, fixed, listed, p_equals, percent

__all__ = ["Ranking", "base_section", "ranked_bases"]

_KEY = "exact.base"
_DIGITS = 10  # of a value that count; what is below is rounding, and ties


@dataclass(frozen=True)
class Ranking:
    """Several rankers by their values on data sets, after Demšar, *Statistical Comparisons of Classifiers* (2006).

    Attributes:
        names: of the rankers, at least two.
        data: names of the data sets.
        values: a row a data set, a column a ranker, none undefined.
    """

    names: tuple[str, ...]
    data: tuple[str, ...]
    values: FloatArray

    @property
    def ranks(self) -> FloatArray:
        """Mean rank of each ranker, 1 for the largest value; ties share theirs."""
        sizes = np.abs(self.values).max(axis=1, keepdims=True)
        scaled = np.round(self.values / np.where(sizes > 0, sizes, 1.0), _DIGITS)
        return scipy.stats.rankdata(-scaled, axis=1).mean(axis=0)

    @property
    def tested(self) -> bool:
        """Whether there are enough data sets and rankers for a test."""
        return len(self.data) >= FEWEST_DATA and len(self.names) >= 3

    @property
    def friedman(self) -> tuple[float, float]:
        """Statistic and p value of Friedman's test that all rank alike; not all of them may tie everywhere."""
        found = scipy.stats.friedmanchisquare(*np.round(self.values, _DIGITS).T)
        return float(found.statistic), float(found.pvalue)

    def nemenyi(self) -> dict[tuple[str, str], float]:
        """P values of Nemenyi's test for each pair, the one with the better mean rank first."""
        k, ranks = len(self.names), self.ranks
        unit = math.sqrt(k * (k + 1) / (6 * len(self.data)))
        order = np.argsort(ranks, kind="stable")
        return {
            (self.names[a], self.names[b]): float(
                scipy.stats.studentized_range.sf((ranks[b] - ranks[a]) / unit * math.sqrt(2), k, np.inf)
            )
            for a, b in itertools.combinations(order, 2)
        }


def ranked_bases(evidence: Evidence) -> tuple[Ranking, Ranking] | None:
    """The bases after reranking and by themselves, on the splits and data sets that all of them have."""
    for lines in (lines for table in evidence.tables for lines in table.along(_KEY) if not lines.held):
        names = tuple(dict.fromkeys(name for row in lines.rows.values() for name in row))
        if len(names) < 2:
            continue
        pairs = [
            (data, _means(evidence, [row[name] for name in names]))
            for data, row in lines.rows.items()
            if len(row) == len(names)
        ]
        found = [(data, means) for data, means in pairs if means is not None]
        if found:
            sets = tuple(name for name, _ in found)
            after, alone = (np.array([means[at] for _, means in found]) for at in (0, 1))
            return Ranking(names, sets, after), Ranking(names, sets, alone)
    return None


def _means(evidence: Evidence, row: list[Series]) -> tuple[FloatArray, FloatArray] | None:
    """Means on the test halves of one data set, reranked and alone; None where splits are missing."""
    both = [evidence.with_base(series) for series in row]
    splits = tuple(sorted(set.intersection(*(set(exact.splits) for exact, _ in both))))
    if not splits:
        return None
    after, alone = (
        np.array([mean_of(pair[at].at(splits).values("test", evidence.statistic)) for pair in both]) for at in (0, 1)
    )
    return None if np.isnan(after).any() or np.isnan(alone).any() else (after, alone)


def base_section(evidence: Evidence) -> Section | None:
    """The bases compared; None where no table varies them."""
    found = ranked_bases(evidence)
    if found is None:
        return None
    after, alone = found
    blocks: list[Block] = [
        Text(
            "Each data set counts once, with the mean on the test halves over the splits that all bases have; the "
            "ranks of the bases on a data set are averaged over data sets (1 is best). Friedman's test asks whether "
            f"the bases rank alike (alpha {ALPHA}); where it says they do not, Nemenyi's test compares all pairs. Its "
            f"p values hold for all {_pairs(after)} pairs at once and are not adjusted again.{_why_nemenyi(after)}"
        ),
        Text(f"**After reranking.** {ranking_text(after, 'bases')}"),
        _values_table(evidence, after),
        Text(f"**Without reranking.** {ranking_text(alone, 'surrogates')}"),
        _ranks_table(after, alone),
    ]
    return Section("Which surrogate is the best base?", blocks)


def _pairs(ranking: Ranking) -> int:
    return math.comb(len(ranking.names), 2)


def _why_nemenyi(ranking: Ranking) -> str:
    """Signed-rank tests of the pairs with Holm's correction may have no chance at all."""
    smallest = 2.0 ** (1 - len(ranking.data)) * _pairs(ranking)
    if smallest <= ALPHA:
        return ""
    return (
        f" (Signed-rank tests of the pairs with Holm's correction could find nothing on "
        f"{counted(len(ranking.data), 'data set')}: their smallest adjusted p is {min(smallest, 1):.2g}.)"
    )


def ranking_text(ranking: Ranking, what: str) -> str:
    """What the tests say of a ranking."""
    ranks = ranking.ranks
    best, worst = int(np.argmin(ranks)), int(np.argmax(ranks))
    order = (
        f"The best mean rank is that of {ranking.names[best]} ({ranks[best]:.1f}), "
        f"the worst that of {ranking.names[worst]} ({ranks[worst]:.1f})"
    )
    if not ranking.tested:
        few = counted(len(ranking.data), "data set")
        return f"{order}. With {few} and {len(ranking.names)} {what} nothing is tested."
    if np.ptp(ranks) == 0:
        return f"All {what} rank alike on the {len(ranking.data)} data sets."
    statistic, p = ranking.friedman
    test = f"(Friedman's chi-squared = {statistic:.1f}, {p_equals(p)}, {len(ranking.data)} data sets)"
    if p > ALPHA:
        return f"No difference between the {what} is shown {test}. {order}; that may be chance."
    pairs = [
        f"{better} ranks better than {worse} ({p_equals(q)})"
        for (better, worse), q in ranking.nemenyi().items()
        if q <= ALPHA
    ]
    which = f"By Nemenyi's test {listed(pairs)}." if pairs else "No single pair differs by Nemenyi's test."
    return f"The {what} do not rank alike {test}. {order}. {which}"


def _values_table(evidence: Evidence, after: Ranking) -> Table:
    rows = [
        [data, *(fixed(value, evidence.decimals) for value in values)]
        for data, values in zip(after.data, after.values, strict=True)
    ]
    return Table(["data", *after.names], rows, "Mean on the test halves after reranking, by base ranker.")


def _ranks_table(after: Ranking, alone: Ranking) -> Table:
    gains = 100 * (after.values - alone.values) / np.abs(alone.values)
    order = np.argsort(after.ranks, kind="stable")
    rows = [
        [
            after.names[at],
            f"{after.ranks[at]:.2f}",
            f"{alone.ranks[at]:.2f}",
            percent(float(gains[:, at].mean())),
            f"{int((gains[:, at] > 0).sum())}/{len(after.data)}",
        ]
        for at in order
    ]
    header = ["base", "rank after reranking", "rank alone", "gain of reranking", "better on"]
    caption = f"Mean ranks over {counted(len(after.data), 'data set')}; gain: mean over them, on the test halves."
    return Table(header, rows, caption)
