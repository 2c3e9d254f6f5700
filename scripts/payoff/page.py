"""The page of the study, made of its cells alone.

A *gain* is the difference between two rankers on the test set of one split, in percent of the base's value there. A
difference is *shown* where the paired t-test over the splits of a data set has p <= 0.05. Splits of one data set share
rows, so that this test finds losses and gains more readily than it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ltr.rankers.choice import BAR, HIGH_BAR
from scripts.payoff import further
from scripts.payoff.cells import (
    BASE,
    BASES,
    BY_QUERY,
    CHOSEN,
    FULL,
    INSTALLED,
    OWN,
    PAPER,
    QUERIES,
    SECONDS,
    SPLITS,
    SPREAD,
)
from scripts.payoff.noise import blocks
from trainers.files import Json
from trainers.report.page import Block, Page, Section, Table, Text, literal
from trainers.report.paired import ALPHA, FEWEST_SPLITS, paired
from trainers.report.wording import ABSENT, counted, listed, p_equals, percent, seconds, share

FloatArray = NDArray[np.float64]

KEY = ("data", "split", "base")
"""The fields that tell one cell from another."""
_TITLES = {
    "logistic_regression": "Logistic regression",
    "rankboost": "RankBoost",
    "gradient_boosting": "Gradient boosting",
    "ranknet_mlp": "A network trained on RankNet's loss",
}
_GROUPS = {"the paper's data": PAPER, "tables of installed packages": INSTALLED}
_LEAST = 0.3  # percent; a smaller loss is not named
_PROMISED = (0.80, 0.97)  # shares of pairs that an interval of 90 % may hold
_FEWEST_DATA = 6  # for a signed-rank test over data sets
_STEPS = 1e-9  # gains below are rounding


@dataclass(frozen=True)
class Gains:
    """Gains in percent of the base over cells: their mean, its standard error, and the p value of the paired t-test."""

    values: FloatArray

    @property
    def mean(self) -> float:
        """The mean; NaN without a value."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    @property
    def error(self) -> float:
        """The standard error of the mean; NaN for a single value."""
        return float(self.values.std(ddof=1) / len(self.values) ** 0.5) if len(self.values) > 1 else float("nan")

    @property
    def p(self) -> float:
        """The p value of the paired t-test, two-sided; NaN with too few values."""
        return paired(self.values, np.zeros(len(self.values)), overlap=0.0, fewest=FEWEST_SPLITS).p

    @property
    def gains(self) -> bool:
        """Whether the mean is shown to be above 0."""
        return self.p <= ALPHA and self.mean > 0

    @property
    def loses(self) -> bool:
        """Whether the mean is shown to be below 0."""
        return self.p <= ALPHA and self.mean < 0

    def __str__(self) -> str:
        return f"{percent(self.mean)} ± {self.error:.2f}" if self.error == self.error else percent(self.mean)


def gain_of(cell: Json, name: str) -> float:
    """Return the gain of a ranker on the test set, in percent of the base ranker's value."""
    values = cell["test"]
    best = max(values.values()) if name == "oracle" else values[name]
    difference = 100 * (best - values[BASE]) / abs(values[BASE])
    return difference if abs(difference) > _STEPS else 0.0


def candidates_of(cells: Sequence[Json]) -> list[str]:
    """Return the names of the rankers that can be fixed beforehand, but for the base and the full optimum."""
    names = [name for name in cells[0]["test"] if name not in (BASE, CHOSEN, FULL)]
    return [name for name in names if all(name in cell["test"] for cell in cells)]


def gains(cells: Iterable[Json], name: str = CHOSEN) -> Gains:
    """Return the gains of a ranker, or of the oracle, over cells."""
    return Gains(np.array([gain_of(cell, name) for cell in cells], dtype=np.float64))


def page_of(cells: Sequence[Json], more: Sequence[Json] = (), noise: Sequence[Json] = ()) -> Page:
    """Return the page of cells, of records of further candidates, and of records of choices on noise."""
    single = [cell for cell in cells if cell["data"] != QUERIES]
    by_base = {base: [cell for cell in single if cell["base"] == base] for base in BASES}
    by_base = {base: own for base, own in by_base.items() if own}
    summary = [Text(_about(cells)), *(Text(f"**{_TITLES[b]}.** {_finding(own)}") for b, own in by_base.items())]
    summary.append(Text(f"**Promises.** {_promises(cells)}"))
    sections = [Section("What is compared", [Text(text) for text in _protocol(cells)])]
    sections += [Section(f"{_TITLES[base]} as base", _of_base(own)) for base, own in by_base.items()]
    if by_query := [cell for cell in cells if cell["data"] == QUERIES]:
        sections.append(Section("Lists by query", _of_queries(by_query)))
    sections.append(Section("The promised gain, and the gain that came", _calibration(cells)))
    if noise:
        sections.append(Section("Promises where there is nothing to gain", blocks(noise)))
    sections.append(Section("The time of choosing", _times(cells)))
    if more:
        sections.append(Section("Further candidates", _further(more)))
    return Page("Does reranking pay off on new data?", summary, sections)


def _about(cells: Sequence[Json]) -> str:
    commits = listed([f"`{name}`" for name in dict.fromkeys(cell["commit"] for cell in cells) if name])
    data, per_base = {cell["data"] for cell in cells}, len(SPLITS) - 1
    planned = len(BASES) * per_base * (len(PAPER) + len(INSTALLED)) + len(BY_QUERY) * len(SPLITS)
    missing = f", of {planned} that the whole study has" if len(cells) < planned else ""
    return (
        "This page measures what reranking does to rows that it has not seen: whether the ranker that the toolkit "
        "chooses on the training data is better than its base, and whether the gain that it promises comes. All "
        f"numbers and conclusions are computed from the {counted(len(cells), 'result')} in `docs/payoff/cells.jsonl`"
        f"{missing}: {counted(len(data), 'data set')}, {counted(len({c['base'] for c in cells}), 'base ranker')}"
        f"{f', commit {commits}' if commits else ''}. `python -m scripts.payoff` computes what is missing and makes "
        "this page again."
    )


def _protocol(cells: Sequence[Json]) -> list[str]:
    spreads = listed([name for name in candidates_of(cells) if name.startswith(SPREAD)])
    lists = next((cell for cell in cells if cell["data"] != QUERIES), cells[0])
    return [
        f"Each data set is split at random into a training set and a test set of equal size. All rankers share the "
        f"splits. The top {lists['top_k']} is reranked, and `{lists['statistic']}` of the whole test set is compared.",
        "**base**: the base ranker alone. **chosen**: the two-stage ranker with `choose=True`, which sees the training "
        "set only. **full**: the linear scorer with the largest statistic on the training list, which replaces the "
        f"base score. **+ 1, + 2**: the base score and at most so many features, with the largest statistic. "
        f"**{spreads}**: central weights around the base's order, the candidates of the choice. **oracle**: the best "
        f"of all these on the test set itself, which nobody can know. Searches stop after {SECONDS:g} seconds. A "
        "result has the gains of all candidates on inner splits, and this page applies the present rule to them: the "
        f"candidate with the largest gain, if that exceeds {BAR:g} of its standard deviations ({HIGH_BAR:g} where the "
        "base is not linear).",
        "Gains are differences from the base on the test set, in percent of the base, with the standard error over "
        f"splits. *Shown* means p <= {ALPHA} in the paired t-test over the splits of a data set. These share rows, so "
        "the test finds losses and gains more readily than it should.",
    ]


# --- one base ranker ----------------------------------------------------------------------------------------------


def _grouped(cells: Sequence[Json]) -> dict[str, list[Json]]:
    """Return the cells of each data set, in the order of the study."""
    return {
        data: own for data in (*PAPER, *INSTALLED, QUERIES) if (own := [cell for cell in cells if cell["data"] == data])
    }


def _pools(cells: Sequence[Json]) -> dict[str, list[Json]]:
    """Return the cells of each group of data sets, and all where there are several groups."""
    pools = {name: [cell for cell in cells if cell["data"] in group] for name, group in _GROUPS.items()}
    pools = {name: own for name, own in pools.items() if own}
    return pools | ({"all data": list(cells)} if len(pools) > 1 else {})


def _finding(cells: Sequence[Json]) -> str:
    """Say in a few sentences what the choice does over one base ranker."""
    pools = _pools(cells)
    name, own = list(pools.items())[-1]
    sentences = [_pooled(own, name)]
    sentences += [_pooled(part, f"{group} alone", short=True) for group, part in list(pools.items())[:-1]]
    return " ".join([*sentences, _harm(cells)])


def _pooled(cells: Sequence[Json], where: str, *, short: bool = False) -> str:
    """Say what the pooled mean is, with its test."""
    found = gains(cells)
    if short or len(found.values) < FEWEST_SPLITS:
        test = f" ({p_equals(found.p)})" if len(found.values) >= FEWEST_SPLITS else ""
        return f"On {where} the mean is {percent(found.mean)}{test}."
    verb = "is better than its base" if found.gains else "is worse than its base" if found.loses else ""
    means = np.array([gains(own).mean for own in _grouped(cells).values()])
    over = ""
    if len(means) >= _FEWEST_DATA:
        p = float(stats.wilcoxon(means).pvalue)
        over = f"; with one value per data set, {p_equals(p)} in the signed-rank test"
    said = f"The chosen ranker {verb or 'is not shown to differ from its base'}"
    return (
        f"{said} on {where}: {percent(found.mean)} on average over {len(found.values)} pairs of data set and split "
        f"(paired t-test, {p_equals(found.p)}{over}). It reranks in {_reranking(cells)} of them."
    )


def _reranking(cells: Sequence[Json]) -> str:
    return share(float(np.mean([cell["choice"]["chosen"] != BASE for cell in cells])))


def _harm(cells: Sequence[Json]) -> str:
    """Say where the chosen ranker loses."""
    by_data = {data: gains(own) for data, own in _grouped(cells).items()}
    shown = [f"{literal(data)} ({found})" for data, found in by_data.items() if found.loses]
    low = [
        f"{literal(data)} ({found})"
        for data, found in by_data.items()
        if found.mean < -_LEAST and found.mean < -found.error and not found.loses
    ]
    text = f"It is shown to lose on {listed(shown)}." if shown else "It is shown to lose on no data set."
    also = "also " if shown else ""
    return (
        f"{text} Its mean is {also}below 0 by more than a standard error and {_LEAST}% on {listed(low)}."
        if low
        else text
    )


def _kept(cells: Sequence[Json]) -> str:
    """Say how much of the full optimum's gain is kept where that is shown to gain, and where the optimum loses."""
    by_data = _grouped(cells)
    full = {data: gains(own, FULL) for data, own in by_data.items()}
    losing = [literal(data) for data, found in full.items() if found.loses]
    lost = f"The full optimum is shown to lose on {listed(losing)}." if losing else "It is shown to lose nowhere."
    kept = {data: gains(by_data[data]).mean / found.mean for data, found in full.items() if found.gains}
    if not kept:
        return f"The full optimum is shown to gain on no data set. {lost}"
    each = listed([f"{literal(data)} ({share(ratio)})" for data, ratio in kept.items()])
    total = sum(gains(by_data[data]).mean for data in kept) / sum(full[data].mean for data in kept)
    whole = f", {share(total)} over all of them" if len(kept) > 1 else ""
    return (
        f"Where the full optimum is shown to gain, the chosen ranker has this share of its gain: {each}{whole}. {lost}"
    )


def _beside(cells: Sequence[Json]) -> str:
    """Compare the choice with the best ranker fixed beforehand, and with the oracle."""
    fixed = {name: gains(cells, name).mean for name in (FULL, *candidates_of(cells))}
    best = max(fixed, key=lambda name: fixed[name])
    own, oracle = gains(cells).mean, gains(cells, "oracle").mean
    reached = f", of which the choice has {share(own / oracle)}" if oracle > 0 else ""
    return (
        f"The best ranker fixed beforehand, `{best}`, gains {percent(fixed[best])} on average, the choice "
        f"{percent(own)}. The oracle gains {percent(oracle)}{reached}."
    )


def _rows(groups: Mapping[str, list[Json]], texts: Callable[[list[Json]], list[str]]) -> list[list[str]]:
    return [[name, str(len(own)), *texts(own)] for name, own in groups.items()]


def _of_base(cells: Sequence[Json]) -> list[Block]:
    groups = {literal(data): own for data, own in _grouped(cells).items()}
    return [
        Text(f"{_kept(cells)} {_beside(cells)}"),
        *_tables(groups | {f"**{name}**": own for name, own in _pools(cells).items()}),
    ]


def _tables(groups: Mapping[str, list[Json]], first: str = "data set") -> list[Table]:
    """Return what is chosen and what comes of it, and the same of the candidates."""

    def row(own: list[Json]) -> list[str]:
        chosen, full = gains(own), gains(own, FULL)
        oracle = percent(gains(own, "oracle").mean)
        return [str(chosen), _p(chosen.p), _reranking(own), str(full), _p(full.p), oracle]

    names = candidates_of([cell for own in groups.values() for cell in own])
    chosen = Table(
        [first, "splits", "chosen - base", "p", "reranks", "full - base", "p", "oracle - base"],
        _rows(groups, row),
        "Mean differences on the test sets in percent of the base, ± standard error. p: paired t-test over splits; for "
        "several data sets over data sets and splits. Reranks: share of splits in which the base's order is changed.",
    )
    candidates = Table(
        [first, "splits", *names],
        _rows(groups, lambda own: [str(gains(own, name)) for name in names]),
        "The candidates: mean differences from the base on the test sets in percent of the base, ± standard error.",
    )
    return [chosen, candidates]


def _p(value: float) -> str:
    return p_equals(value).removeprefix("p ").removeprefix("= ") if value == value else ABSENT


def _of_queries(cells: Sequence[Json]) -> list[Block]:
    groups = {}
    for base in dict.fromkeys(cell["base"] for cell in cells):
        own = [cell for cell in cells if cell["base"] == base]
        groups |= {
            base: [c for c in own if c["split"] != OWN],
            f"{base}, own parts": [c for c in own if c["split"] == OWN],
        }
    groups = {literal(name): own for name, own in groups.items() if own}
    text = (
        f"`{QUERIES}`: its queries, of the training and the test part together, are split at random, and in the rows "
        f"“own parts” as they are published. The top {cells[0]['top_k']} of each query is reranked, and the mean "
        f"`{cells[0]['statistic']}` of the test queries is compared."
    )
    sentences = [
        f"Over {base} the chosen ranker gains {gains(own)} and reranks in {_reranking(own)} of "
        f"{counted(len(own), 'split')}."
        for base, own in groups.items()
        if "own parts" not in base
    ]
    return [Text(text), *([Text(" ".join(sentences))] if sentences else []), *_tables(groups, first="base")]


# --- promises and time --------------------------------------------------------------------------------------------


def _came(cell: Json) -> float:
    return float(cell["test"][CHOSEN] - cell["test"][BASE])


def _covered(cells: Sequence[Json]) -> float:
    """Return the share of cells whose gain is within the promised interval; NaN without cells."""
    held = [c["choice"]["low"] - _STEPS <= _came(c) <= c["choice"]["high"] + _STEPS for c in cells]
    return float(np.mean(held)) if held else float("nan")


def _reranked(cells: Sequence[Json]) -> list[Json]:
    return [cell for cell in cells if cell["choice"]["chosen"] != BASE]


def _promises(cells: Sequence[Json]) -> str:
    """Say how often the promised interval holds the gain that came."""
    moved = _reranked(cells)
    text = (
        f"The promised 90% interval holds the gain that came in {share(_covered(cells))} of "
        f"{counted(len(cells), 'pair')} of data set and split, over all base rankers"
    )
    if not moved:
        return f"{text}; the base order is always kept, so this shows nothing."
    covered = _covered(moved)
    low, high = _PROMISED
    judged = (
        "the interval is too narrow" if covered < low else "the interval is wider than it need be" if covered > high
        else f"within the {share(low)} to {share(high)} that an honest interval may come to here"
    )  # fmt: skip
    expected, came = np.mean([c["choice"]["expected"] for c in moved]), np.mean([_came(c) for c in moved])
    return (
        f"{text}, and in {share(covered)} of the {len(moved)} that are reranked: {judged}. Where the base order is "
        f"kept, promise and gain are both 0. Where it is changed, {expected:+.3f} is promised on average and "
        f"{came:+.3f} comes."
    )


def _calibration(cells: Sequence[Json]) -> list[Block]:
    groups = {literal(base): own for base in BASES if (own := [cell for cell in cells if cell["base"] == base])}

    def row(own: list[Json]) -> list[str]:
        moved = _reranked(own)
        if not moved:
            return [share(_covered(own)), "0", *[ABSENT] * 5]
        below, above = (
            float(np.mean([sign * (_came(c) - c["choice"][end]) > _STEPS for c in moved]))
            for sign, end in ((-1, "low"), (1, "high"))
        )
        means = [np.mean([c["choice"]["expected"] for c in moved]), np.mean([_came(c) for c in moved])]
        return [
            share(_covered(own)), str(len(moved)), share(_covered(moved)), share(below), share(above),
            *(f"{mean:+.3f}" for mean in means),
        ]  # fmt: skip

    header = ["base", "pairs", "held", "reranked", "held", "below", "above", "promised", "came"]
    caption = (
        "Held: share of pairs of data set and split whose gain is within the promised interval, of all and of those "
        "that are reranked; below and above: share of the latter outside on either side. Promised, came: mean gain of "
        "the statistic where reranked."
    )
    return [Text(_promises(cells)), Table(header, _rows(groups | {"**all**": list(cells)}, row), caption)]


def _times(cells: Sequence[Json]) -> list[Block]:
    middle = next(name for name in cells[0]["seconds"] if name.startswith(SPREAD))
    groups = {literal(base): own for base in BASES if (own := [cell for cell in cells if cell["base"] == base])}

    def ratios(own: Sequence[Json], name: str) -> FloatArray:
        return np.array([cell["seconds"][CHOSEN] / max(cell["seconds"][name], 1e-3) for cell in own])

    def row(own: list[Json]) -> list[str]:
        medians = [float(np.median([cell["seconds"][name] for cell in own])) for name in (FULL, middle, CHOSEN)]
        times = [
            f"{value:.1f}" for name in (FULL, middle) for r in [ratios(own, name)] for value in (np.median(r), r.max())
        ]
        return [*map(seconds, medians), *times]

    against_full, against_one = (ratios(cells, name) for name in (FULL, middle))
    text = (
        f"A fit that chooses takes {np.median(against_one):.1f} times the processor time of a fit of one correction "
        f"(`{middle}`) in the median and {against_one.max():.1f} times at most, and {np.median(against_full):.1f} "
        f"times that of the full optimum in the median and {against_full.max():.1f} times at most."
    )
    header = ["base", "results", "full", middle, "chosen", "to full", "at most", f"to {middle}", "at most"]
    caption = "Processor seconds of a fit in the median; the time of the fit that chooses as a multiple of the others'."
    return [Text(text), Table(header, _rows(groups, row), caption)]


def _further(records: Sequence[Json]) -> list[Block]:
    """Return what the rule makes of candidates that the choice does not compare."""
    found = {
        name: [gain_of(record, further.chosen(record, candidates)) for record in records]
        for name, candidates in further.sets().items()
    }
    present, *others = found
    rows = []
    for name, values in found.items():
        own, difference = Gains(np.array(values)), Gains(np.array(values) - np.array(found[present]))
        changed = share(float(np.mean(np.array(values) != 0)))
        rows.append([name, str(len(further.sets()[name])), str(own), changed, *_compared(difference, name == present)])
    better = [name for name in others if Gains(np.array(found[name]) - np.array(found[present])).gains]
    told = f"Shown to be better than the three: {listed(better)}." if better else "None is shown to be better."
    return [
        Text(
            "The largest of many estimated gains is the most overrated one, so more candidates need not be better. "
            f"With logistic regression as base, on {counted(len(records), 'pair')} of data set and split of the "
            "paper's data, further candidates took part in the choice by the same rule: corrections of other lengths "
            "of the list, the base score with one or two features (the optimum, with or without its largest margin). "
            f"{told} `python -m scripts.payoff --further` computes these."
        ),
        Table(
            ["candidates", "number", "chosen - base", "reranks", "less the three", "p"],
            rows,
            "Mean differences on the test sets in percent of the base, ± standard error. p: paired t-test over data "
            "sets and splits.",
        ),
    ]


def _compared(difference: Gains, same: bool) -> list[str]:
    return ["", ""] if same else [str(difference), p_equals(difference.p).removeprefix("p = ")]
