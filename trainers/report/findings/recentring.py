"""Findings: what moving the exact answers to the largest margin does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trainers.report.evidence import Evidence, Pair
from trainers.report.findings.gain import STAGE, against_base
from trainers.report.findings.verdicts import decided, splits_text, tests_text, verdict_text
from trainers.report.page import Block, Section, Table, Text
from trainers.report.paired import Paired
from trainers.report.series import Series
from trainers.report.wording import counted, fixed, p_text, percent, signed, size_percent

__all__ = ["recentring", "recentring_section"]


def recentring(evidence: Evidence, half: str) -> dict[Pair, Paired]:
    """The recentred answers against the same answers as found, for each data set and K."""

    def twice(series: Series) -> tuple[Series, Series] | None:
        return (series, series) if any("recentred" in record for record in series.records.values()) else None

    return evidence.over(twice, half, recentred=True)


def recentring_section(evidence: Evidence) -> Section | None:
    """Recentred answers against those as found; None where none is recentred."""
    test, train = recentring(evidence, "test"), recentring(evidence, "train")
    if not test:
        return None
    blocks: list[Block] = [
        Text(
            "A recentred answer keeps the comparisons that the exact answer wins and is moved to where it wins them by "
            "the largest margin, so that its objective does not fall. Each is compared with the same answer as found."
        ),
        Text(f"{_verdict(evidence, test, 'test')} {_size_text(test)}"),
        Text(_verdict(evidence, train, "training")),
        _table(evidence, test, train),
        Text(_against_base(evidence)),
    ]
    return Section("Does recentring help?", blocks)


def _verdict(evidence: Evidence, found: Mapping[Pair, Paired], half: str) -> str:
    text = verdict_text(
        found, "a recentred answer", f"the same answer as found on the {half} halves", evidence.decimals
    )
    return f"**{'Test' if half == 'test' else 'Training'}.** {text}"


def _size_text(test: Mapping[Pair, Paired]) -> str:
    sizes = [abs(found.percent) for found in test.values() if not np.isnan(found.percent)]
    if not sizes:
        return ""
    return (
        f"The mean difference is {size_percent(float(np.median(sizes)))} in the median of the "
        f"{counted(len(sizes), 'comparison')}, whatever its sign, and {size_percent(max(sizes))} at most."
    )


def _table(evidence: Evidence, test: Mapping[Pair, Paired], train: Mapping[Pair, Paired]) -> Table:
    d = evidence.decimals + 1
    rows = [
        [
            pair[0],
            str(pair[1]),
            f"{signed(found.difference, d)} ({percent(found.percent)})",
            fixed(found.corrected, d),
            p_text(found.p),
            p_text(found.p_holm),
            signed(train[pair].difference, d) if pair in train else "",
            p_text(train[pair].p_holm) if pair in train else "",
        ]
        for pair, found in test.items()
    ]
    header = ["data", "K", "test: recentred - found", "± corrected", "p", "p Holm", "training", "p Holm"]
    return Table(
        header, rows, f"{splits_text(test)[0].upper()}{splits_text(test)[1:]}; {tests_text(test)}, for each half."
    )


def _against_base(evidence: Evidence) -> str:
    """Whether the conclusions on the exact stage are others with recentred answers."""
    found, moved = evidence.gains_test, evidence.gains("test", recentred=True)
    both = [pair for pair in moved if pair in found and moved[pair].tested and found[pair].tested]
    if not both:
        return "Whether recentred answers beat the base ranker cannot be tested yet."
    changed = [pair for pair in both if moved[pair].verdict != found[pair].verdict]
    if not changed:
        better, worse = decided({pair: moved[pair] for pair in both})
        return (
            f"Against {against_base('test')}, recentred answers come to the same verdicts as {STAGE} as found: "
            f"{better} better, {worse} worse, {len(both) - better - worse} undecided."
        )
    names = [
        f"{data} at K = {length} ({found[data, length].verdict} as found, {moved[data, length].verdict} recentred)"
        for data, length in changed
    ]
    return f"Against {against_base('test')}, recentring changes {counted(len(names), 'verdict')}: {'; '.join(names)}."
