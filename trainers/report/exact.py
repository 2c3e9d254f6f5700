"""What the exact stage of a sweep proved on its lists, and gained over its base rankers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trainers.config import EXACT
from trainers.report.findings.checks import below_a_start
from trainers.report.findings.evidence import Evidence, proven
from trainers.report.findings.wording import ABSENT, decimals_of, gap_text, percent, signed
from trainers.report.markdown import literal
from trainers.report.page import Block, Section, Table, Text
from trainers.report.series import FloatArray, Series, table_names, variants_of
from trainers.report.tables import HALVES, seconds
from trainers.sweep.records import SweepResults

__all__ = ["exact_section"]


def exact_section(results: SweepResults) -> Section:
    """What the exact stage proved on its lists, and gained over its base rankers on both halves."""
    evidence = Evidence(results)
    blocks: list[Block] = []
    for name, title in table_names(results).items():
        cells = []
        for data, row in variants_of(results, name).items():
            exact = [series for variant, series in row.items() if variant.method == EXACT]
            lines = [_exact_line(series, evidence) for series in exact]
            cells += [[literal(data) if at == 0 else "", *line] for at, line in enumerate(lines)]
        if cells:
            blocks += [Text(f"**{literal(title or name)}**"), Table(_EXACT_HEADER, cells, left=2)]
    if blocks:
        note = (
            "Proven: lists on which no weights can do better, of all that had something to reorder. The gap is how far "
            "the bound lies above the answer's objective on its list. Gains: mean paired difference from the base "
            f"ranker in `{evidence.statistic}` of the whole half, in points and in percent of the base ranker's mean. "
            "Below a start: answers whose objective is less than that of a ranker which the search started from; there "
            "must be none."
        )
        blocks.insert(0, Text(note))
    return Section("The exact stage", blocks)


_EXACT_HEADER = (
    "data set", "variant", "splits", "proven", "median gap", "largest gap", "gain on train", "gain on test",
    "median seconds", "below a start",
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
    exact, base = evidence.with_base(series)
    values, of_base = exact.values(half, evidence.statistic), base.values(half, evidence.statistic)
    known = ~np.isnan(values - of_base)
    if not known.any():
        return ABSENT
    gain, level = float((values - of_base)[known].mean()), float(of_base[known].mean())
    return signed(gain, decimals_of(level)) + (f" ({percent(100 * gain / level)})" if level > 0 else "")
