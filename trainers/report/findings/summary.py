"""What a sweep shows, in sections of sentences, tables and tests, all drawn from its results.

Which test stands where: splits of one data set share rows, so differences over them are tested by the corrected
resampled t-test (module `paired`); data sets are independent of each other, so gains over them are tested by Wilcoxon's
signed-rank test and rankings by Friedman's and Nemenyi's. Every family of tests is adjusted as a whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from trainers.report.evidence import Evidence
from trainers.report.findings.across import across_section, level_gains, mean_text
from trainers.report.findings.bases import base_section, ranked_bases, ranking_text
from trainers.report.findings.checks import check_section
from trainers.report.findings.gain import STAGE, against_base, gain_section, proven_text
from trainers.report.findings.larger_lists import AS_GOOD, SPLICE, cases, larger_section
from trainers.report.findings.options import option_section
from trainers.report.findings.recentring import recentring, recentring_section
from trainers.report.findings.verdicts import decided, verdict_text
from trainers.report.page import Section
from trainers.report.series import proven
from trainers.report.wording import counted, listed, share

__all__ = ["findings", "headline"]

_SECTIONS = (
    gain_section,
    across_section,
    recentring_section,
    option_section,
    base_section,
    larger_section,
    check_section,
)


def findings(evidence: Evidence) -> list[Section]:
    """What the results of a sweep, finished or not, show; sections that they say nothing of are left out."""
    return [section for make in _SECTIONS if (section := make(evidence)) is not None]


def headline(evidence: Evidence) -> list[str]:
    """The findings in a few plain sentences, for the top of a report."""
    if not evidence.exact:
        return ["The sweep has no results of the exact stage yet."]
    return list(_sentences(evidence))


def _sentences(evidence: Evidence) -> Iterator[str]:
    if evidence.main:
        data = counted(len(evidence.lengths), "data set")
        yield f"On {data}, {proven_text(evidence)}"
    else:
        done = sum(map(proven, evidence.exact))
        yield f"Of {counted(len(evidence.exact), 'list')}, {done} were solved to proven optimality."
    if evidence.gains_test:
        yield verdict_text(evidence.gains_test, STAGE, against_base("test"), evidence.decimals)
    yield from _survival(evidence)
    yield from _recentring(evidence)
    if (found := ranked_bases(evidence)) is not None:
        yield f"As bases of the exact stage: {ranking_text(found[0], 'bases')}"
    yield from _larger(evidence)


def _survival(evidence: Evidence) -> Iterator[str]:
    gains = level_gains(evidence)
    shown = [gain for gain in gains if not math.isnan(gain.survives[0])]
    texts = [mean_text(gains)] if any(gain.comparison is not None for gain in gains) else []
    if shown:
        parts = [f"{share(gain.survives[0])} at K = {gain.level.short}" for gain in shown]
        most = max(len(gain.data) for gain in shown)
        means = f"means over {counted(most, 'data set')}{' at most' if len({len(g.data) for g in shown}) > 1 else ''}"
        lost = "; below 0 is a loss on test" if any(gain.survives[0] < 0 for gain in shown) else ""
        texts.append(
            f"Of the mean gain in training over the base ranker, the test halves keep {listed(parts)} ({means}{lost})."
        )
    if texts:
        yield " ".join(texts)


def _recentring(evidence: Evidence) -> Iterator[str]:
    found = recentring(evidence, "test")
    tested = sum(comparison.tested for comparison in found.values())
    if not tested:
        return
    better, worse = decided(found)
    of = counted(tested, "comparison")
    if better or worse:
        found_text = f"significantly better on test in {better} of {of} and significantly worse in {worse}"
        yield f"Moving the answers to the largest margin is {found_text}."
    else:
        yield f"Moving the answers to the largest margin makes a significant difference on test in none of {of}."


def _larger(evidence: Evidence) -> Iterator[str]:
    found = [case for lengths in evidence.lengths.values() for case in cases(evidence, lengths)]
    if not found:
        return
    by = Counter(case.kind for case in found)
    worse = len(found) - by[AS_GOOD]
    text = f"On the training halves a larger K is worse than a smaller one in {worse} of {counted(len(found), 'pair')}"
    if worse:
        text += f"; in {by[SPLICE]} of these the bound proves that it is not for lack of time"
    yield f"{text}."
