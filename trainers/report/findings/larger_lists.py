"""Findings: whether a longer list is worse only because it was not solved."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from trainers.files import Json
from trainers.report.evidence import Evidence, Lengths
from trainers.report.findings.larger_tests import falls_blocks, long_blocks
from trainers.report.page import Block, Section, Table, Text
from trainers.report.series import mean_of, proven
from trainers.report.wording import counted, fixed

__all__ = ["AS_GOOD", "OPEN", "PRICE", "SPLICE", "UNKNOWN", "Case", "cases", "larger_section", "orders_text"]

AS_GOOD = "as good or better"
SPLICE = "worse: the splice"
PRICE = "worse: the price C"
OPEN = "worse: open"
UNKNOWN = "worse: unknown"
_TOLERANCE = 1e-9  # of the statistic's size; below is rounding


@dataclass(frozen=True)
class Case:
    """Two lengths of the list on one split, and which ranker has the larger statistic of the whole training half.

    Attributes:
        data: name of the data set.
        split: the seed.
        limit: seconds a list.
        shorter: the smaller K.
        longer: the larger K.
        kind: of the longer list: `AS_GOOD`; `SPLICE` when the bound proves that no linear order of it reaches the
            shorter one's ranker; `PRICE` when its answer is optimal and the price of weights covers what is missing;
            `OPEN` when the search was stopped and its bound leaves room; `UNKNOWN` when there is no bound to compare.
        proven: whether the longer list is solved.
        missing: how much the longer one falls short.
    """

    data: str
    split: int
    limit: float
    shorter: int | str
    longer: int | str
    kind: str
    proven: bool
    missing: float


def cases(evidence: Evidence, lengths: Lengths, limit: float | None = None) -> list[Case]:
    """Every two K of a data set on every split.

    Args:
        evidence: of the sweep.
        lengths: of the data set.
        limit: seconds a list; the main one when left out.
    """
    limit = lengths.limit if limit is None else limit
    series = lengths.main if limit == lengths.limit else lengths.longer[limit]
    found = []
    for (shorter, a), (longer, b) in itertools.combinations(series.items(), 2):
        for split in a.common(b):
            short, long = a.records[split], b.records[split]
            values = [record["train"].get(evidence.statistic) for record in (short, long)]
            if None not in values:
                kind = _kind(evidence, long, *values)
                missing = max(values[0] - values[1], 0.0)
                found.append(Case(lengths.data, split, limit, shorter, longer, kind, proven(long), missing))
    return found


def _kind(evidence: Evidence, longer: Json, short_value: float, long_value: float) -> str:
    slack = _TOLERANCE * max(abs(short_value), abs(long_value))
    if long_value >= short_value - slack:
        return AS_GOOD
    reachable = evidence.reachable(longer)
    if math.isnan(reachable):
        return UNKNOWN
    if short_value > reachable + slack:
        return SPLICE
    return PRICE if proven(longer) else OPEN


def larger_section(evidence: Evidence) -> Section | None:
    """Lengths of the list compared; None where no data set has two."""
    several = [lengths for lengths in evidence.lengths.values() if len(lengths.main) > 1]
    main = [case for lengths in several for case in cases(evidence, lengths)]
    if not main:
        return None
    blocks: list[Block] = [Text(_how()), _values_table(evidence, several)]
    blocks += [Text(orders_text(main)), Text(_where_text(main)), _cases_table(evidence, several)]
    for limit in sorted({limit for lengths in several for limit in lengths.longer}):
        later = [case for lengths in several if limit in lengths.longer for case in cases(evidence, lengths, limit)]
        if later:
            blocks.append(Text(f"**With {limit:g} seconds a list.** {orders_text(later)}"))
    blocks += falls_blocks(evidence, several)
    blocks += long_blocks(evidence)
    return Section("Is a larger K worse only because it is not solved?", blocks)


def _how() -> str:
    return (
        "The paper found larger K worse and put it down to unsolved problems. Two values must be kept apart. "
        "(a) The objective: the best linear order of the list; lists of different K hold different rows, so that their "
        "objectives cannot be compared. (b) The statistic of the whole training half: the exact order of the top K, "
        "spliced onto the base ranker's order of the rest. A ranker with a small K is made of two linear pieces and "
        "is not among the single ones that a longer list chooses from. So a longer list can be worse in (b) though "
        "its (a) is proven; whether that is so is decided by its bound."
    )


def _values_table(evidence: Evidence, several: list[Lengths]) -> Table:
    d, rows = evidence.decimals, []
    for lengths in several:
        common = set.intersection(*(set(series.splits) for series in lengths.main.values()))
        for length, whole in lengths.main.items():
            series = whole.at(tuple(sorted(common))) if common else whole
            train, test = (mean_of(series.values(half, evidence.statistic)) for half in ("train", "test"))
            rows.append([lengths.data, str(length), series.proven, series.gap_text(), fixed(train, d), fixed(test, d)])
    header = ["data", "K", "proven", "mean gap", "training", "test"]
    caption = (
        "Means over the splits that all K of a data set have. Training and test: the whole half by the spliced ranker."
    )
    return Table(header, rows, caption)


def orders_text(found: Iterable[Case]) -> str:
    """What becomes of the training halves when K grows, with the cases counted."""
    found = list(found)
    by = Counter(case.kind for case in found)
    worse = len(found) - by[AS_GOOD]
    text = (
        f"Of {counted(len(found), 'pair')} of a smaller and a larger K on the same split, the larger one is as good or "
        f"better on the whole training half in {by[AS_GOOD]} and worse in {worse}."
    )
    if not worse:
        return f"{text} Nowhere does the training value fall with K."
    parts = []
    if by[SPLICE]:
        done = sum(case.kind == SPLICE and case.proven for case in found)
        parts.append(
            f"in {by[SPLICE]} the bound proves that no linear order of the longer list comes up to the spliced ranker, "
            f"whatever the time ({done} of these lists are solved, of the others the bound is low enough)"
        )
    if by[PRICE]:
        parts.append(f"in {by[PRICE]} the longer list is solved and the price of its weights covers the difference")
    if by[OPEN]:
        parts.append(
            f"in {by[OPEN]} the search was stopped and its bound leaves room, so that lack of time may be the cause"
        )
    if by[UNKNOWN]:
        parts.append(f"in {by[UNKNOWN]} there is no bound to decide by")
    return f"{text} Of the latter, {'; '.join(parts)}. {_conclusion(by, worse)}"


def _conclusion(by: Counter[str], worse: int) -> str:
    explained, open_ = by[SPLICE] + by[PRICE], by[OPEN] + by[UNKNOWN]
    if explained == worse:
        return "Lack of time explains none of it."
    if not explained:
        return "Lack of time may explain all of it; nothing here proves otherwise."
    if explained > open_:
        return "For the most part it is not for lack of time."
    return f"Lack of time is ruled out in {explained} of {worse} and possible in the rest."


def _where_text(found: list[Case]) -> str:
    splice = Counter(case.data for case in found if case.kind == SPLICE)
    open_ = Counter(case.data for case in found if case.kind in (OPEN, UNKNOWN))
    parts = []
    for counter, name in ((splice, "Proven to be the splice"), (open_, "Open")):
        if counter:
            parts.append(f"{name}: {', '.join(f'{data} ({number})' for data, number in counter.items())}.")
    return " ".join(parts) or "No data set has a case to be explained by the splice or by lack of time."


def _cases_table(evidence: Evidence, several: list[Lengths]) -> Table:
    rows = []
    for lengths in several:
        for limit in (lengths.limit, *lengths.longer):
            found = cases(evidence, lengths, limit)
            if not found:
                continue
            by = Counter(case.kind for case in found)
            most = max(case.missing for case in found)
            kinds = [by[AS_GOOD], by[SPLICE], by[PRICE], by[OPEN] + by[UNKNOWN]]
            rows.append([lengths.data, f"{limit:g}", str(len(found)), *map(str, kinds), fixed(most, evidence.decimals)])
    header = ["data", "seconds", "pairs", "as good", "splice", "price C", "open", "most missing"]
    caption = (
        "Pairs of a smaller and a larger K on the same split, by the statistic of the whole training half. As good: "
        "the larger K is as good or better. Otherwise it is worse, and the reason is: splice, no linear order of the "
        "longer list with the margin asked for reaches it (proved); price C, solved, and the price of its weights "
        "covers the difference; open, not decided by the bound. Most missing: the largest shortfall."
    )
    return Table(header, rows, caption)
