"""The exact stage by the length of the list that it reranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainers.report.evidence import Evidence
from trainers.report.series import K
from trainers.report.sweep_tables import Along, SweepTable

__all__ = ["by_length"]


def by_length(evidence: Evidence, groups: Sequence[SweepTable]) -> Iterator[Along]:
    """The exact series of some groups by K; where the sweep varies it nowhere, those of single variants.

    Args:
        evidence: of the sweep.
        groups: some of its groups.
    """
    if any(K in group.keys for group in evidence.groups):
        for group in groups:
            yield from group.along(K)
        return
    for group in groups:
        if group.exact and all(len(row) == 1 for row in group.exact.values()):
            single = {data: next(iter(row.values())) for data, row in group.exact.items()}
            yield Along(group, K, (), {data: {series.option("top_k"): series} for data, series in single.items()})
