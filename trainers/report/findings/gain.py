"""Findings: whether the proven optimum generalises better than the surrogate it starts from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trainers.config import EXACT
from trainers.records import nothing_proven
from trainers.report.evidence import Evidence, Pair
from trainers.report.findings.verdicts import decided, resolution_text, splits_text, tests_text, verdict_text
from trainers.report.page import Block, Section, Table, Text
from trainers.report.paired import ALPHA, Paired, family
from trainers.report.series import Series, mean_of, proven
from trainers.report.wording import counted, fixed, listed, p_text, percent, share, signed

__all__ = ["STAGE", "against_base", "gain_section", "proven_text"]

STAGE = "the exact stage"


_ROUNDING = 1e-9


def against_base(half: str) -> str:
    """What the exact stage is compared with, in a sentence."""
    return f"its base ranker on the {'training' if half == 'train' else 'test'} halves"


def gain_section(evidence: Evidence) -> Section | None:
    """The exact stage against its base ranker and against the best surrogate, for each data set and K."""
    test, train = evidence.gains_test, evidence.gains_train
    if not test and not train:
        return None
    blocks: list[Block] = [
        Text(_how(evidence)),
        Text(f"**Test.** {verdict_text(test, STAGE, against_base('test'), evidence.decimals)}"),
    ]
    blocks += [Text(text) for text in (resolution_text(test), _plain_text(test)) if text]
    if missing := sum(
        evidence.results.base_of(r) is None for series in evidence.main.values() for r in series.records.values()
    ):
        blocks.append(Text(f"{counted(missing, 'exact result')} left out: the sweep has no result of the base ranker."))
    blocks.append(_test_table(evidence))
    blocks.append(Text(_train_text(evidence)))
    blocks.append(_train_table(evidence))
    blocks.append(Text(_proven_only_text(evidence)))
    blocks += _best_surrogate(evidence)
    return Section("Does the proven optimum generalise better than the surrogate?", blocks)


def _how(evidence: Evidence) -> str:
    return (
        "Each exact answer, as found and not recentred, is compared with the base ranker whose list it reorders, on "
        f"the same split; the statistic is `{evidence.statistic}`, in points and in percent of the base ranker's mean. "
        "Splits of one data set share rows, so that a paired t-test takes them for more evidence than they are. "
        "Conclusions rest on the corrected resampled t-test of Nadeau and Bengio (2003): its variance factor is "
        "1/J + n_test/n_train for J splits, in place of 1/J, and with halves of equal size the second term is 1. "
        f"Tests are two-sided, alpha is {ALPHA}, the p values of a family are adjusted by Holm's procedure, and an "
        "interval (95%, in brackets) is that of one difference by itself."
    )


def _plain_text(test: Mapping[Pair, Paired]) -> str:
    tested = sum(found.tested for found in test.values())
    if not tested:
        return ""
    better, worse = decided(test, plain=True)
    return (
        f"A paired t-test that took the splits for independent would, after the same adjustment, call {better} of the "
        f"{counted(tested, 'difference')} better and {worse} worse; it is shown for comparison only."
    )


def proven_text(evidence: Evidence) -> str:
    """How many lists were solved to the end."""
    records = [record for series in evidence.main.values() for record in series.records.values()]
    done = sum(map(proven, records))
    limits = sorted({found.limit for found in evidence.lengths.values()})
    seconds = f"{limits[0]:g}" if len(limits) == 1 else f"{limits[0]:g} to {limits[-1]:g}"
    text = f"{done} of {counted(len(records), 'list')} ({share(done / len(records))}) were solved to proven optimality"
    gaps = [record["list"]["gap"] for record in records if not proven(record) and record["list"]]
    known = [100 * gap for gap in gaps if gap is not None]
    open_ = f"; the gap of the others is {fixed(float(np.median(known)), 1)}% in the median" if known else ""
    if unproven := sum(map(nothing_proven, records)):
        open_ += f", and in {unproven} of them the bound is that of a perfect order, so that nothing is proven"
    return f"{text} within {seconds} seconds a list{open_}."


def _test_table(evidence: Evidence) -> Table:
    d = evidence.decimals
    rows = [
        [
            data,
            str(length),
            str(found.splits),
            evidence.main[data, length].proven,
            f"{signed(found.difference, d)} ({percent(found.percent)})",
            fixed(found.plain, d),
            fixed(found.corrected, d),
            p_text(found.p_plain),
            p_text(found.p),
            p_text(found.p_holm),
        ]
        for (data, length), found in evidence.gains_test.items()
    ]
    header = ["data", "K", "splits", "proven", "exact - base", "± plain", "± corrected", "p plain", "p", "p Holm"]
    caption = (
        "Test halves: mean difference of the exact stage and its base ranker, half-widths of its 95% intervals, and p "
        f"values. p and p Holm: {tests_text(evidence.gains_test)}; p plain: paired t-test, not adjusted."
    )
    return Table(header, rows, caption)


def _train_text(evidence: Evidence) -> str:
    differences = np.concatenate(
        [
            exact.values("train", evidence.statistic) - base.values("train", evidence.statistic)
            for exact, base in map(evidence.with_base, evidence.main.values())
        ]
    )
    above, below = int((differences > _ROUNDING).sum()), int((differences < -_ROUNDING).sum())
    text = verdict_text(evidence.gains_train, STAGE, against_base("train"), evidence.decimals)
    return (
        f"**Training.** The exact answer has the larger value in {above} of {counted(len(differences), 'list')} and "
        f"the smaller in {below}. That is no surprise: the search starts from the base ranker where that is linear, "
        f"and maximises this very statistic on its list. {proven_text(evidence)} The test, with 1/J + n_train/n_test, "
        f"asks for more: whether it would be so on other samples of rows. {text}"
    )


def _train_table(evidence: Evidence) -> Table:
    d, rows = evidence.decimals, []
    for (data, length), found in evidence.gains_train.items():
        test = evidence.gains_test.get((data, length))
        gain = f"{signed(found.difference, d)} ({percent(found.percent)})"
        on_test = signed(test.difference, d) if test else signed(np.nan, d)
        kept = share(test.percent / found.percent) if test and found.percent >= 0.1 else share(np.nan)
        rows.append([data, str(length), gain, fixed(found.corrected, d), p_text(found.p_holm), on_test, kept])
    header = ["data", "K", "gain in training", "± corrected", "p Holm", "gain on test", "survives"]
    caption = (
        f"Training halves, {splits_text(evidence.gains_train)}: {tests_text(evidence.gains_train)}. Survives: gain on "
        "test over gain in training, both in percent, where the latter is at least 0.1%."
    )
    return Table(header, rows, caption)


def _proven_only_text(evidence: Evidence) -> str:
    """The same on the splits with a proof: whether an optimum, rather than an answer, generalises better."""

    def with_proof(series: Series) -> tuple[Series, Series]:
        chosen = tuple(split for split in series.splits if proven(series.records[split]))
        return evidence.with_base(series.at(chosen))

    found = evidence.over(with_proof, "test")
    if not found:
        return "**Proven lists only.** No list is proven, so that nothing can be said of optima alone."
    text = verdict_text(found, "a proven optimum", against_base("test"), evidence.decimals)
    number = sum(f.splits for f in found.values())
    return f"**Proven lists only** ({number}, as a rule those that are easier to solve). {text}"


def _best_surrogate(evidence: Evidence) -> list[Block]:
    """The exact stage against the first stage that is best on the test halves of each data set."""
    best, compared = _against_best(evidence, linear=False)
    if not compared:
        return []
    d = evidence.decimals
    name = "the best surrogate in hindsight"
    note = (
        "The first-stage method with the largest mean on the test halves is chosen for each data set after the fact, "
        "which favours it: nobody could have chosen it without the test halves, and no K is chosen so."
    )
    blocks: list[Block] = [
        Text(f"**Against the best surrogate in hindsight.** {note} {verdict_text(compared, STAGE, name, d)}")
    ]
    rows = [
        [
            pair[0],
            best[pair].variant.label,
            str(pair[1]),
            f"{signed(found.difference, d)} ({percent(found.percent)})",
            fixed(found.corrected, d),
            p_text(found.p),
            p_text(found.p_holm),
        ]
        for pair, found in compared.items()
    ]
    header = ["data", "best surrogate", "K", "exact - best", "± corrected", "p", "p Holm"]
    caption = f"Test halves, {splits_text(compared)}: {tests_text(compared)}."
    curved: dict[str, list[str]] = {}
    for (data, _), series in best.items():
        if not _linear(series) and data not in curved.setdefault(series.variant.method, []):
            curved[series.variant.method].append(data)
    if curved:
        names = "; ".join(f"{method} on {listed(of)}" for method, of in curved.items())
        _, linear = _against_best(evidence, linear=True)
        blocks.append(
            Text(
                f"Not linear, which the exact stage is on its list: {names}. Among linear surrogates alone: "
                f"{verdict_text(linear, STAGE, 'the best linear surrogate in hindsight', d)}"
            )
        )
    return [*blocks, Table(header, rows, caption, left=2)]


def _linear(series: Series) -> bool:
    return all(record["weights"] is not None for record in series.records.values())


def _against_best(evidence: Evidence, *, linear: bool) -> tuple[dict[Pair, Series], dict[Pair, Paired]]:
    """The best first stage for each data set and K, and the comparison with it."""
    found = {pair: _in_hindsight(evidence, series, linear) for pair, series in evidence.main.items()}
    best = {pair: one for pair, one in found.items() if one is not None}
    return best, family({pair: evidence.compare(evidence.main[pair], one, "test") for pair, one in best.items()})


def _in_hindsight(evidence: Evidence, series: Series, linear: bool) -> Series | None:
    candidates = [
        found.at(series.splits)
        for table in evidence.tables
        for variant, found in table.rows.get(series.data, {}).items()
        if variant.method != EXACT and set(series.splits) <= set(found.splits) and (_linear(found) or not linear)
    ]
    means = [mean_of(found.values("test", evidence.statistic)) for found in candidates]
    defined = [at for at, mean in enumerate(means) if not np.isnan(mean)]
    return candidates[max(defined, key=means.__getitem__)] if defined else None
