"""Findings of the paper's experiments on K: whether a longer list is worse only because it was not solved."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ltr.statistics import RankStatistic
from trainers.files import Json
from trainers.report.evidence import PARTS, Evidence, Length, Lengths, Series, mean_of, proven
from trainers.report.options import comparison_table
from trainers.report.page import Table
from trainers.report.paired import FEWEST_SPLITS, Paired, family
from trainers.report.wording import Pair, counted, fixed, gap_text, listed, signed

AS_GOOD = "as good"
MERGED = "merged"  # the bound proves that no linear order of the longer list reaches the shorter one's merged ranker
PRICE = "price C"  # the longer list is solved, and the price of its weights covers what is missing
OPEN = "open"  # the search was stopped, and its bound leaves room
UNKNOWN = "unknown"  # there is no bound to compare
_TOLERANCE = 1e-9  # of the statistic's size; smaller differences are rounding


@dataclass(frozen=True)
class Case:
    """Two lengths of the list on one split, and which ranker has the larger statistic of the whole training set."""

    data: str
    split: int
    limit: float  # seconds per list
    shorter: Length
    longer: Length
    kind: str  # `AS_GOOD`, or why the longer list is worse: one of the other constants above
    proven: bool  # whether the longer list is solved
    missing: float  # how much the longer list falls short


def cases(evidence: Evidence, lengths: Lengths, limit: float | None = None) -> list[Case]:
    """Return every two K of a data set on every split, at the usual time limit unless another one is given."""
    limit = lengths.limit if limit is None else limit
    series = lengths.main if limit == lengths.limit else lengths.longer[limit]
    found = []
    for (shorter, a), (longer, b) in itertools.combinations(series.items(), 2):
        for split in a.common(b):
            long = b.records[split]
            values = [record["train"].get(evidence.statistic) for record in (a.records[split], long)]
            if None not in values:
                kind, missing = _kind(evidence, long, *values), max(values[0] - values[1], 0.0)
                found.append(Case(lengths.data, split, limit, shorter, longer, kind, proven(long), missing))
    return found


def _kind(evidence: Evidence, longer: Json, short_value: float, long_value: float) -> str:
    slack = _TOLERANCE * max(abs(short_value), abs(long_value))
    if long_value >= short_value - slack:
        return AS_GOOD
    reachable = _reachable(evidence, longer)
    if math.isnan(reachable):
        return UNKNOWN
    if short_value > reachable + slack:
        return MERGED
    return PRICE if proven(longer) else OPEN


def _reachable(evidence: Evidence, record: Json) -> float:
    """Return an upper bound of the training set's statistic over all linear orders of an exact result's list.

    It is the answer's value, plus the distance to its bound, plus the price of the weights that it does not use. It is
    NaN if the statistic of a whole list is not the sum over its top and the rest.
    """
    found, options = record["list"], record["options"]
    adds_up = RankStatistic.parse(evidence.statistic).kind.adds_up
    if found is None or not adds_up or "ranked" not in record:
        return math.nan
    unused = record["sizes"]["d"] - int(np.count_nonzero(record["weights"]))
    return float(record["train"][evidence.statistic] + found["bound"] - found["value"] + options["C"] * unused)


def larger(evidence: Evidence) -> dict[str, Any] | None:
    """Compare lengths of the list; return None if no data set has two."""
    several = [lengths for lengths in evidence.lengths.values() if len(lengths.main) > 1]
    by_limit: dict[float, list[Case]] = {}
    rows, full = [], {}
    for lengths in several:
        for limit in (lengths.limit, *lengths.longer):
            if not (found := cases(evidence, lengths, limit)):
                continue
            by_limit.setdefault(0.0 if limit == lengths.limit else limit, []).extend(found)
            by = Counter(case.kind for case in found)
            most = fixed(max(case.missing for case in found), evidence.decimals)
            kinds = [by[AS_GOOD], by[MERGED], by[PRICE], by[OPEN] + by[UNKNOWN]]
            rows.append([lengths.data, f"{limit:g}", str(len(found)), *map(str, kinds), most])
            full |= {  # the last of the full lists proven within several limits, beside the smallest K
                (case.data, case.split): case
                for case in found
                if case.longer == "full" and case.proven and case.shorter == found[0].shorter
            }
    if not by_limit:
        return None
    usual = by_limit.pop(0.0)
    whole, solved = (largest_against_smallest(evidence, several, solved=solved) for solved in (False, True))
    header = ["data set", "seconds", "pairs", AS_GOOD, MERGED, PRICE, OPEN, "most missing"]
    return {
        "usual": usual,
        "worse": sum(case.kind != AS_GOOD for case in usual),
        "merged": sum(case.kind == MERGED for case in usual),
        "limits": dict(sorted(by_limit.items())),
        "cases_table": Table(header, rows),
        "values_table": _values_table(evidence, several),
        "full": full_text(list(full.values()), evidence.decimals),
        "whole": whole,
        "solved": solved,
        "tests_table": comparison_table(whole, evidence, "larger - smallest K on test"),
        "solved_table": comparison_table(solved, evidence, "larger - smallest K on test"),
        "more_time": _more_time(evidence),
    }


def _values_table(evidence: Evidence, several: list[Lengths]) -> Table:
    d, rows = evidence.decimals, []
    for lengths in several:
        common = sorted(set.intersection(*(set(series.splits) for series in lengths.main.values())))
        for length, whole in lengths.main.items():
            series = whole.at(common) if common else whole
            means = [fixed(mean_of(series.values(part, evidence.statistic)), d) for part in PARTS]
            rows.append([lengths.data, str(length), series.proven, series.gap_text(), *means])
    return Table(["data set", "K", "proven", "mean gap", "training", "test"], rows)


def orders_text(found: Sequence[Case]) -> str:
    """Say how the value of the training sets changes when K grows."""
    by = Counter(case.kind for case in found)
    worse = len(found) - by[AS_GOOD]
    text = (
        f"Of {counted(len(found), 'pair')} of a smaller and a larger K on the same split, the larger one is as good or "
        f"better on the whole training set in {by[AS_GOOD]} and worse in {worse}."
    )
    if not worse:
        return text
    done = sum(case.kind == MERGED and case.proven for case in found)
    reasons = {
        MERGED: "the bound proves that no linear order of the longer list reaches the merged ranker, whatever the "
        f"time ({done} of these lists are solved)",
        PRICE: "the longer list is solved, and the price of its weights covers the difference",
        OPEN: "the search was stopped and its bound leaves room, so that lack of time may be the cause",
        UNKNOWN: "there is no bound to decide by",
    }
    parts = "; ".join(f"in {by[kind]} {reason}" for kind, reason in reasons.items() if by[kind])
    return f"{text} Of the latter, {parts}. Lack of time is ruled out in {by[MERGED] + by[PRICE]} of {worse}."


def full_text(found: Sequence[Case], decimals: int) -> str:
    """Name the proven full lists that are worse on the whole training set than the smallest K."""
    worse = [case for case in found if case.kind != AS_GOOD]
    names = []
    for data, kind in dict.fromkeys((case.data, case.kind) for case in worse):
        own = [case for case in worse if (case.data, case.kind) == (data, kind)]
        most = fixed(max(case.missing for case in own), decimals)
        splits = listed([str(case.split) for case in sorted(own, key=lambda case: case.split)])
        names.append(f"{data} ({kind}; splits {splits}; at most {most} below K = {own[0].shorter})")
    text = f"Of {counted(len(found), 'full list')} proven beside the smallest K, {len(worse) or 'none'} "
    verb = "is" if len(worse) == 1 else "are"
    return f"{text}{verb} worse on the whole training set{': ' if names else ''}{'; '.join(names)}."


def largest_against_smallest(evidence: Evidence, several: list[Lengths], *, solved: bool) -> dict[Pair, Paired]:
    """Compare the largest K with the smallest one on the test sets, by data set and the larger K.

    With `solved`, only splits count on which both are proven, and the larger K is the largest with enough of them.
    """
    found: dict[Pair, Paired] = {}
    for lengths in several:
        (_, smallest), *others = lengths.main.items()
        for length, series in reversed(others):
            splits = smallest.common(series)
            if solved:
                splits = tuple(s for s in splits if proven(smallest.records[s]) and proven(series.records[s]))
            if len(splits) >= (FEWEST_SPLITS if solved else 1):
                found[lengths.data, length] = evidence.compare(series.at(splits), smallest.at(splits), "test")
                break
    return family(found)


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
        part: [np.subtract(*(s.values(part, evidence.statistic) for s in (b, a))) for a, b in found] for part in PARTS
    }
    rows = []
    for at, (short, long) in enumerate(found):
        means = [signed(mean_of(changes[part][at]), evidence.decimals) for part in PARTS]
        options = [str(long.option("top_k")), f"{long.option('time_limit'):g}"]
        rows.append([long.data, *options, long.proven, short.gap_text(), long.gap_text(), *means])
    every = {part: np.concatenate(several) for part, several in changes.items()}
    records = [record for _, long in found for record in long.records.values()]
    gaps = [np.concatenate([two[at].on_list("gap") for two in found]) for at in (0, 1)]
    known = [gap[~np.isnan(gap)] for gap in gaps]
    return {
        "lists": len(records),
        "proven": sum(map(proven, records)),
        "gaps": [gap_text(float(np.median(gap))) if len(gap) else "none" for gap in known],
        "changes": {
            part: [int((c > 1e-9).sum()), int((c < -1e-9).sum()), int((np.abs(c) <= 1e-9).sum())]
            for part, c in every.items()
        },
        "table": Table(["data set", "K", "seconds", "proven now", "gap before", "gap now", "training", "test"], rows),
    }
