"""The findings of the paper's experiments, computed from the results of its sweep.

Splits of one data set share rows, so differences over splits are tested by the corrected resampled t-test. Data sets
are independent of each other, so gains over data sets are tested by Wilcoxon's signed-rank test, and rankings by
Friedman's. Every family of tests is adjusted as a whole.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from ltr.metrics.comparison import holm
from ltr.statistics import RankStatistic
from scripts._bench import ROOT, FloatArray
from trainers.config import EXACT
from trainers.files import Json
from trainers.records import nothing_proven
from trainers.report.evidence import BASE, PARTS, Evidence, Lengths, Series, SweepTable, Variant, mean_of, proven
from trainers.report.paired import ALPHA, Paired, family
from trainers.report.wording import Pair, gap_text, listed, p_equals, percent, share

_DIGITS = 10  # digits of a value that count in a ranking
_TOLERANCE = 1e-9  # differences of values that are rounding
_LOGARITHMS = ("dcg", "dcg(base=e)")
_STAND_INS = ("roc_flexibility",)  # data whose number of positives is not the paper's


# --- published values ---------------------------------------------------------------------------------------------

PUBLISHED = ROOT / "configs" / "paper" / "published.csv"
"""Its columns are ``data, method, varied, half, mean, std, note``. ``varied`` holds the options of a variant, such as
``exact.top_k=50;exact.margin=0.001``. A line without a mean is a note, and so are the first ones."""


@dataclass(frozen=True)
class Published:
    """A published value."""

    data: str  # name of the data set
    variant: Variant  # the method and its options
    part: str  # ``train`` or ``test``
    mean: float  # mean over splits
    std: float  # standard deviation over splits


def read_published(path: Path = PUBLISHED) -> list[Published]:
    """Read published values."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    values = []
    for line in csv.DictReader(lines):
        if line["mean"]:
            variant = Variant(line["method"], tuple(_option(text) for text in line["varied"].split(";") if text))
            values.append(Published(line["data"], variant, line["half"], float(line["mean"]), float(line["std"])))
    return values


def _option(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    with contextlib.suppress(ValueError):
        return key.strip(), json.loads(value)
    return key.strip(), value


def beside(evidence: Evidence, published: Sequence[Published]) -> dict[str, int]:
    """Count the values, those found in the sweep, and those that differ by at most their deviation."""
    pairs = [(value, _counterpart(value, evidence.tables)) for value in published]
    found = [(value, series.values(value.part, evidence.statistic)) for value, series in pairs if series is not None]
    within = sum(abs(float(np.nanmean(own)) - value.mean) <= value.std for value, own in found)
    return {"all": len(published), "found": len(found), "within": within}


def _counterpart(value: Published, tables: Sequence[SweepTable]) -> Series | None:
    """Return the series that agrees in all options the value names and varies no other option."""
    wanted = dict(value.variant.varied)
    for table in tables:
        for variant, series in table.rows.get(value.data, {}).items():
            if variant.method != value.variant.method or any(wanted.get(key) != own for key, own in variant.varied):
                continue
            options = [record["options"] for record in series.records.values()]
            if all(o.get(key.rpartition(".")[2]) == asked for o in options for key, asked in wanted.items()):
                return series
    return None


def logarithm(evidence: Evidence, published: Sequence[Published]) -> dict[str, int]:
    """Count the data sets, and those with a published value above the largest DCG with base 2, and with base e."""
    found = {"data": 0, "beyond": 0, "natural": 0}
    for data in dict.fromkeys(value.data for value in published if value.data not in _STAND_INS):
        sizes = [record["sizes"] for record in evidence.results.records if record["data"] == data]
        best = {}
        for part in PARTS:
            positives = max(size[part][1] for size in sizes)
            best[part] = [RankStatistic.parse(name).best(sizes[0][part][0], positives) for name in _LOGARITHMS]
        values = [(value.mean, best[value.part]) for value in published if value.data == data]
        found["data"] += 1
        found["beyond"] += any(mean > two for mean, (two, _) in values)
        found["natural"] += any(mean > e for mean, (_, e) in values)
    return found


# --- against the base ranker --------------------------------------------------------------------------------------


def gain(evidence: Evidence) -> dict[str, Any]:
    """Compare the exact stage with its base ranker and with the best surrogate, for each data set and K."""
    records = [record for series in evidence.main.values() for record in series.records.values()]
    pairs = [evidence.with_base(series) for series in evidence.main.values()]
    change = np.concatenate([np.subtract(*(s.values("train", evidence.statistic) for s in two)) for two in pairs])
    gaps = [record["list"]["gap"] for record in records if record["list"] and not proven(record)]
    best, hindsight = _against_best(evidence)
    curved: dict[str, list[str]] = {}
    for data, series in {pair[0]: series for pair, series in best.items()}.items():
        if any(record["weights"] is None for record in series.records.values()):
            curved.setdefault(series.variant.method, []).append(data)
    return {
        **evidence.gains,
        "lists": len(records),
        "proven": sum(map(proven, records)),
        "unproven": sum(map(nothing_proven, records)),
        "open_gap": float(np.median([100 * gap for gap in gaps if gap is not None])),
        "above": int((change > _TOLERANCE).sum()),
        "below": int((change < -_TOLERANCE).sum()),
        "hindsight": hindsight,
        "curved": "; ".join(f"{method} on {listed(data)}" for method, data in curved.items()),
    }


def _against_best(evidence: Evidence) -> tuple[dict[Pair, Series], dict[Pair, Paired]]:
    """Compare the exact stage with the first stage that is best on the test sets of each data set."""
    best: dict[Pair, Series] = {}
    for pair, series in evidence.main.items():
        candidates = [
            found.at(series.splits)
            for table in evidence.tables
            for variant, found in table.rows.get(series.data, {}).items()
            if variant.method != EXACT and set(series.splits) <= set(found.splits)
        ]
        best[pair] = max(candidates, key=lambda found: mean_of(found.values("test", evidence.statistic)))
    return best, family({pair: evidence.compare(evidence.main[pair], one, "test") for pair, one in best.items()})


# --- over data sets -----------------------------------------------------------------------------------------------


def over_data_sets(evidence: Evidence) -> dict[str, str]:
    """Test the mean gain over data sets at each K, matched by order, and return what the test sets keep of training."""
    lengths = {data: [*found.main] for data, found in evidence.lengths.items()}
    names = [*map(str, Counter(map(tuple, lengths.values())).most_common(1)[0][0])]
    train, test = (
        np.array([[evidence.gains[part][data, K].percent for K in own] for data, own in lengths.items()])
        for part in PARTS
    )
    adjusted = holm([float(scipy.stats.wilcoxon(gains).pvalue) for gains in test.T])
    shown = [
        f"K = {name} (mean {percent(float(mean))}, {p_equals(p)})"
        for name, mean, p in zip(names, test.mean(axis=0), adjusted, strict=True)
        if p <= ALPHA
    ]
    text = f"a difference is shown at {listed(shown)}" if shown else f"no difference is shown at K = {listed(names)}"
    kept = test.mean(axis=0) / train.mean(axis=0)
    survives = [f"{share(float(part))} at K = {name}" for name, part in zip(names, kept, strict=True)]
    return {"test": f"Over data sets {text}.", "kept": ", ".join(survives)}


def mean_ranks(values: FloatArray) -> FloatArray:
    """Return the mean rank of each column over the rows (Demšar, 2006), 1 for the largest value; ties share theirs."""
    sizes = np.abs(values).max(axis=1, keepdims=True)
    return scipy.stats.rankdata(-np.round(values / sizes, _DIGITS), axis=1).mean(axis=0)


def ranked_bases(evidence: Evidence) -> str:
    """Rank the bases after reranking, on the data sets that have all of them."""
    rows = next(found for table in evidence.tables if (found := table.along(BASE)))
    names = [*dict.fromkeys(name for row in rows.values() for name in row)]
    values = np.array(
        [
            [mean_of(row[name].values("test", evidence.statistic)) for name in names]
            for row in rows.values()
            if len(row) == len(names)
        ]
    )
    ranks, tested = mean_ranks(values), scipy.stats.friedmanchisquare(*np.round(values, _DIGITS).T)
    best, worst = int(np.argmin(ranks)), int(np.argmax(ranks))
    differ = tested.pvalue <= ALPHA
    return (
        f"{'The bases do not rank alike' if differ else 'No difference between the bases is shown'} (Friedman's "
        f"chi-squared = {tested.statistic:.1f}, {p_equals(float(tested.pvalue))}, {len(values)} data sets). "
        f"The best mean rank is that of {names[best]} ({ranks[best]:.1f}), "
        f"the worst that of {names[worst]} ({ranks[worst]:.1f}){'' if differ else '; that may be chance'}."
    )


# --- a larger K, and more time ------------------------------------------------------------------------------------


def larger(evidence: Evidence) -> dict[str, Any]:
    """Compare lengths of the list.

    A longer list is *worse* on a split where a shorter one has the larger statistic of the whole training set. That is
    *settled* where the bound proves that no linear order of the longer list reaches the value of the shorter one.
    """
    found = [pair for lengths in evidence.lengths.values() for pair in _pairs(evidence, lengths)]
    ends = {lengths.data: [*lengths.main.items()] for lengths in evidence.lengths.values()}
    whole = {(data, of[-1][0]): evidence.compare(of[-1][1], of[0][1], "test") for data, of in ends.items()}
    worse, settled = (sum(one) for one in zip(*found, strict=True))
    return {"pairs": len(found), "worse": worse, "settled": settled, "whole": family(whole)}


def _pairs(evidence: Evidence, lengths: Lengths) -> Iterator[tuple[bool, bool]]:
    """Yield, for two K on a split, whether the larger one is worse, and whether the bound settles that."""
    for a, b in itertools.combinations(lengths.main.values(), 2):
        for split in a.common(b):
            short, long = (series.records[split]["train"][evidence.statistic] for series in (a, b))
            slack = _TOLERANCE * max(abs(short), abs(long))
            yield long < short - slack, short > _reachable(evidence, b.records[split]) + slack


def _reachable(evidence: Evidence, record: Json) -> float:
    """Return an upper bound of the training set's statistic over all linear orders of an exact result's list.

    It is the answer's value, plus the distance to its bound, plus the price of the weights that it does not use. It is
    NaN if the statistic of a whole list is not the sum over its top and the rest.
    """
    found = record["list"]
    if found is None or not RankStatistic.parse(evidence.statistic).kind.adds_up:
        return math.nan
    unused = record["sizes"]["d"] - int(np.count_nonzero(record["weights"]))
    price = record["options"]["C"] * unused
    return float(record["train"][evidence.statistic] + found["bound"] - found["value"] + price)


def more_time(evidence: Evidence) -> dict[str, Any]:
    """Show what a longer time limit brings to the lists that the usual one leaves open."""
    found: list[tuple[Series, Series]] = []
    for lengths in evidence.lengths.values():
        for length, long in ((length, long) for of in lengths.longer.values() for length, long in of.items()):
            short = lengths.main[length]
            if splits := [split for split in long.common(short) if not proven(short.records[split])]:
                found.append((short.at(splits), long.at(splits)))
    changes = {
        part: np.concatenate([np.subtract(*(s.values(part, evidence.statistic) for s in (b, a))) for a, b in found])
        for part in PARTS
    }
    records = [record for _, long in found for record in long.records.values()]
    gaps = [np.concatenate([two[at].on_list("gap") for two in found]) for at in (0, 1)]
    return {
        "lists": len(records),
        "proven": sum(map(proven, records)),
        "gaps": [gap_text(float(np.nanmedian(gap))) for gap in gaps],
        "rises": {part: int((c > _TOLERANCE).sum()) for part, c in changes.items()},
        "falls": {part: int((c < -_TOLERANCE).sum()) for part, c in changes.items()},
    }
