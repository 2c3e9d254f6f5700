"""What the exact stage of a sweep proved on its lists, and gained over its base rankers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trainers.records import nothing_proven
from trainers.report.evidence import Evidence
from trainers.report.findings.checks import below_a_start
from trainers.report.markdown import literal
from trainers.report.page import Block, Section, Table, Text
from trainers.report.series import FloatArray, Series, proven
from trainers.report.tables import HALVES, seconds
from trainers.report.wording import ABSENT, decimals_of, gap_text, percent, signed
from trainers.tables import NOTHING_PROVEN

__all__ = ["exact_section"]


def exact_section(evidence: Evidence) -> Section:
    """What the exact stage proved on its lists, and gained over its base rankers on both halves."""
    blocks: list[Block] = []
    for table in evidence.tables:
        cells = []
        for data, row in table.exact.items():
            lines = [_exact_line(series, evidence) for series in row.values()]
            cells += [[literal(data) if at == 0 else "", *line] for at, line in enumerate(lines)]
        if cells:
            blocks += [Text(f"**{literal(table.heading)}**"), Table(_EXACT_HEADER, cells, left=2)]
    if blocks:
        note = (
            "Proven: lists on which no weights can do better, of all that had something to reorder. Nothing proven: "
            "lists whose bound is that of a perfect order, so that their gap says nothing of the search. The gap is "
            "how far the bound lies above the answer's objective on its list. Gains: mean paired difference from the "
            f"base ranker in `{evidence.statistic}` of the whole half, in points and in percent of the base ranker's "
            "mean. Below a start: answers whose objective is less than that of a ranker which the search started from; "
            "there must be none."
        )
        blocks.insert(0, Text(note))
    return Section("The exact stage", blocks)


_EXACT_HEADER = (
    "data set", "variant", "splits", "proven", NOTHING_PROVEN, "median gap", "largest gap",
    "gain on train", "gain on test", "median seconds", "below a start",
)  # fmt: skip


def _exact_line(series: Series, evidence: Evidence) -> list[str]:
    records = [series.records[split] for split in series.splits]
    lists = [record for record in records if record["list"]]
    gaps = np.array([record["list"]["gap"] for record in lists], dtype=np.float64)  # NaN for None
    done, worse = sum(map(proven, lists)), len(below_a_start(lists))
    return [
        literal(series.variant.label),
        str(len(records)),
        f"{done} of {len(lists)}" if lists else ABSENT,
        str(sum(map(nothing_proven, lists))) if lists else ABSENT,
        _gap(gaps, np.median),
        _gap(gaps, np.max),
        *(_gain(series, half, evidence) for half in HALVES),
        seconds(np.median([record["seconds"] for record in records])),
        f"**{worse}**" if worse else "0",
    ]


def _gap(gaps: FloatArray, of: Callable[[FloatArray], float]) -> str:
    """Of gaps in percent; one that is not known is that to an objective of 0 or less."""
    gap = float(of(gaps)) if len(gaps) else math.nan
    return "0%" if gap == 0 else "< 0.01%" if gap < 1e-4 else gap_text(gap)


def _gain(series: Series, half: str, evidence: Evidence) -> str:
    """Mean paired difference from the base ranker."""
    found = evidence.compare(*evidence.with_base(series), half)
    if not found.splits:
        return ABSENT
    relative = f" ({percent(found.percent)})" if found.mean_b > 0 else ""
    return signed(found.difference, decimals_of(found.mean_b)) + relative
