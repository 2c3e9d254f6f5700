"""Findings: what a longer list does on the test halves, and what more time does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainers.report.evidence import Evidence, Lengths, Pair
from trainers.report.findings.verdicts import tests_text, verdict_text
from trainers.report.page import Block, Table, Text
from trainers.report.paired import FEWEST_SPLITS, Paired, family
from trainers.report.series import FloatArray, Series, mean_of, proven
from trainers.report.wording import counted, fixed, gap_text, p_text, percent, signed

__all__ = ["falls_blocks", "largest_against_smallest", "long_blocks"]

Two = tuple[Series, Series]


def largest_against_smallest(evidence: Evidence, several: list[Lengths], *, solved: bool) -> dict[Pair, Paired]:
    """The largest K against the smallest one on the test halves, by data set and the larger K.

    Args:
        evidence: of the sweep.
        several: data sets with two K at least.
        solved: only splits where both are proven, and of the larger K the largest with enough of them.
    """
    found: dict[Pair, Paired] = {}
    for lengths in several:
        (_, smallest), *others = lengths.main.items()
        for length, series in reversed(others):
            splits = smallest.common(series)
            if solved:
                splits = tuple(s for s in splits if proven(smallest.records[s]) and proven(series.records[s]))
            if len(splits) >= (FEWEST_SPLITS if solved else 1):
                a, b = series.at(splits), smallest.at(splits)
                found[lengths.data, length] = evidence.compare(a, b, "test")
                break
    return family(found)


def falls_blocks(evidence: Evidence, several: list[Lengths]) -> list[Block]:
    """Whether the value on the test halves falls with K, and whether it does where both are proven."""
    whole = largest_against_smallest(evidence, several, solved=False)
    solved = largest_against_smallest(evidence, several, solved=True)
    against = "the smallest K on the test halves"
    text = verdict_text(whole, "the largest K", against, evidence.decimals)
    blocks: list[Block] = [Text(f"**Test, largest K against smallest.** {text}")]
    if solved:
        text = verdict_text(solved, "a larger K", against, evidence.decimals)
        blocks.append(
            Text(f"**The same where both are proven** (the largest K with {FEWEST_SPLITS} such splits). {text}")
        )
    else:
        blocks.append(
            Text(
                f"**The same where both are proven.** No data set has {FEWEST_SPLITS} splits on which both the "
                "smallest and a larger K are proven, so that the lack of a proof cannot be told from the length of "
                "the list."
            )
        )
    if not whole:
        return blocks
    d = evidence.decimals
    rows = [
        [
            pair[0],
            str(pair[1]),
            which,
            str(found.splits),
            f"{signed(found.difference, d)} ({percent(found.percent)})",
            fixed(found.corrected, d),
            p_text(found.p),
            p_text(found.p_holm),
        ]
        for which, compared in (("all", whole), ("both proven", solved))
        for pair, found in compared.items()
    ]
    header = ["data", "larger K", "which splits", "splits", "larger - smallest K", "± corrected", "p", "p Holm"]
    caption = f"Test halves; {tests_text(whole)} for all splits and over {len(solved)} where both are proven."
    return [*blocks, Table(header, rows, caption, left=3)]


@dataclass(frozen=True)
class _Longer:
    """One data set and K with a short and a long limit, on the splits that the short one leaves open."""

    data: str
    length: int | str
    limit: float
    short: Series
    long: Series

    def change(self, half: str, statistic: str) -> FloatArray:
        """Of the whole half's statistic, a split each."""
        return self.long.values(half, statistic) - self.short.values(half, statistic)


def _longer(evidence: Evidence) -> list[_Longer]:
    found = []
    for lengths in evidence.lengths.values():
        for limit, by_length in lengths.longer.items():
            for length, long in by_length.items():
                short = lengths.main.get(length)
                splits = () if short is None else long.common(short)
                open_ = tuple(split for split in splits if short is not None and not proven(short.records[split]))
                if short is not None and open_:
                    found.append(_Longer(lengths.data, length, limit, short.at(open_), long.at(open_)))
    return found


def long_blocks(evidence: Evidence) -> list[Block]:
    """What a longer time limit brings to the lists that the main one leaves open."""
    found = _longer(evidence)
    if not found:
        return []
    statistic, d = evidence.statistic, evidence.decimals
    rows = []
    for one in found:
        gaps = (series.gap_text() for series in (one.short, one.long))
        train, test = (one.change(half, statistic) for half in ("train", "test"))
        changes = (signed(mean_of(train), d), signed(mean_of(test), d))
        rows.append([one.data, str(one.length), f"{one.limit:g}", one.long.proven, *gaps, *changes])
    header = ["data", "K", "seconds", "proven now", "gap before", "gap now", "training", "test"]
    caption = (
        "Lists that the usual limit left open, with more time. Training and test: change of the whole half's "
        "statistic, mean over the splits. Nothing is tested here."
    )
    return [Text(f"**More time.** {_long_text(evidence, found)}"), Table(header, rows, caption)]


def _long_text(evidence: Evidence, found: list[_Longer]) -> str:
    number = sum(len(one.long.records) for one in found)
    done = sum(proven(record) for one in found for record in one.long.records.values())
    gaps = [np.concatenate([getattr(one, which).on_list("gap") for one in found]) for which in ("short", "long")]
    before, now = (
        gap_text(float(np.median(gap[~np.isnan(gap)]))) if not np.isnan(gap).all() else "none" for gap in gaps
    )
    text = (
        f"Of {counted(number, 'list')} that the usual limit left open, a longer one proves {done}; the median gap goes "
        f"from {before} to {now}."
    )
    parts = []
    for half, name in (("train", "in training"), ("test", "on test")):
        change = np.concatenate([one.change(half, evidence.statistic) for one in found])
        change = change[~np.isnan(change)]
        up, down = int((change > 1e-9).sum()), int((change < -1e-9).sum())
        parts.append(f"{name} it rises in {up}, falls in {down} and stays in {len(change) - up - down}")
    return f"{text} As to the whole half's statistic, {' and '.join(parts)}."
