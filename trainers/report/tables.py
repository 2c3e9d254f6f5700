"""The tables of a report.

A function marked with `section` makes one or more sections from the results of a sweep. That is all a new table takes:
sections appear in the order in which their functions are defined, and sections without blocks are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ltr.cards import Card
from ltr.rankers import Choice
from trainers.config import CARD, EXACT
from trainers.files import Json
from trainers.records import SweepResults, nothing_proven
from trainers.report import wording as say
from trainers.report.evidence import (
    PARTS,
    Evidence,
    FloatArray,
    Row,
    Series,
    SweepTable,
    Variant,
    mean_of,
    proven,
)
from trainers.report.options import comparison_table, option_blocks, option_tables
from trainers.report.page import Block, Section, Table, Text, literal
from trainers.report.paired import ALPHA
from trainers.tables import NOTHING_PROVEN, number

Make = Callable[[Evidence], Iterable[Section]]
SECTIONS: list[Make] = []
"""The functions that make the sections of a report, in order."""

_WIDE_GAP = 0.05  # relative gap above which a list is named
_TOLERANCE = 1e-9
_NAMED = 12  # results that are named one by one; of more, data sets with counts


def section(make: Make) -> Make:
    """Add the sections that a function makes to every report."""
    SECTIONS.append(make)
    return make


@dataclass
class Reached:
    """The values of a variant on one data set."""

    mean: float  # mean over the splits where the statistic is defined, NaN without any
    std: float | None  # standard deviation with ddof = 1; None for fewer than two splits
    splits: int  # number of these splits
    standing: Literal["best", "close", ""] = ""  # in its line; "close": not significantly worse than the best

    @classmethod
    def of(cls, values: FloatArray) -> Reached:
        """Summarise values, leaving out NaN."""
        known = values[~np.isnan(values)]
        return cls(mean_of(values), float(known.std(ddof=1)) if len(known) > 1 else None, len(known))

    def text(self, decimals: int, full: int) -> str:
        """Return ``12.34 ± 0.56``, marked by its standing, and with its number of splits where that is not `full`."""
        if not self.splits:
            return say.ABSENT
        text = f"{self.mean:.{decimals}f}" + ("" if self.std is None else f" ± {self.std:.{decimals}f}")
        text = {"best": f"**{text}**", "close": f"*{text}*", "": text}[self.standing]
        return text if self.splits == full else f"{text} ({self.splits})"


def line_of(row: Row, part: str, evidence: Evidence) -> dict[Variant, Reached]:
    """Summarise each variant of a data set, and mark the best one and those not significantly worse.

    The best one is among those with the most splits, because a few splits may be easy ones. Significance is that of a
    two-sided matched pairs t-test on common splits.
    """
    line = {variant: Reached.of(series.values(part, evidence.statistic)) for variant, series in row.items()}
    full = max((one.splits for one in line.values()), default=0)
    top = max((one.mean for one in line.values() if full and one.splits == full), default=math.nan)
    best = [v for v, one in line.items() if one.splits == full and math.isclose(one.mean, top, rel_tol=1e-12)]
    if len(row) < 2 or not best:
        return line
    for variant, series in row.items():
        found = evidence.compare(series, row[best[0]], part, independent=True, fewest=2)
        if variant in best:
            line[variant].standing = "best"
        elif found.tested and not (found.p < ALPHA and found.difference < 0):
            line[variant].standing = "close"
    return line


@section
def _value_sections(evidence: Evidence) -> Iterator[Section]:
    """Means and standard deviations of the first statistic, a section for each table of the sweep."""
    for table in evidence.tables:
        if table.rows:
            done, planned = progress(evidence.results, table.name)
            blocks: list[Block] = [Text(f"{done} of {planned} results are finished.")] if done < planned else []
            yield Section(literal(table.heading), [*blocks, value_table(table, evidence)])


def progress(results: SweepResults, table: str | None = None) -> tuple[int, int]:
    """Count the finished and the planned results of a table, or of all."""
    grids = [grid for grid in results.grids if table in (None, grid["name"])]
    planned = {cell["id"] for grid in grids for cell in grid["cells"]}
    return len(planned & set(results.by_id)), len(planned)


def value_table(table: SweepTable, evidence: Evidence) -> Table:
    """Return the means and standard deviations of all variants on training and test sets."""
    lines = {(data, part): line_of(row, part, evidence) for data, row in table.rows.items() for part in PARTS}
    found = [reached for line in lines.values() for reached in line.values()]
    places = say.decimals_of(max((abs(reached.mean) for reached in found if reached.splits), default=0.0))
    full = max(reached.splits for reached in found)
    variants = table.variants
    rows = []
    for (data, part), line in lines.items():
        cells = [line[v].text(places, full) if v in line else say.ABSENT for v in variants]
        rows.append([literal(data) if part == "train" else "", part, *cells])
    over = "one split" if full <= 1 else f"mean ± standard deviation over {full} splits"
    caption = [f"`{evidence.statistic}`, {over}."]
    if any(reached.splits < full for reached in found):
        caption.append("The number of splits is in parentheses where it is smaller.")
    if any(reached.standing for reached in found):
        caption.append("**Bold**: the largest mean of the line, among those with the most splits.")
    if any(reached.standing == "close" for reached in found):
        caption.append(
            "*Italics*: not significantly worse than it by a two-sided matched pairs t-test on the common splits "
            f"(α = {ALPHA}), not corrected for the number of comparisons or for splits that share rows."
        )
    if any(variant.best_of for variant in variants):
        caption.append("“Best of” is chosen by the mean on the test sets, which favours that method.")
    return Table(["data set", "set", *(literal(v.label) for v in variants)], rows, " ".join(caption), left=2)


def _exact_series(evidence: Evidence) -> Iterator[tuple[list[str], Series]]:
    """Yield the results of the exact stage with their names: data set, variant, and table where there are several."""
    tables = [table for table in evidence.tables if table.exact]
    for table in tables:
        of_table = f" ({table.heading})" if len(tables) > 1 else ""
        for series in table.exact_series:
            yield [literal(series.data), literal(series.variant.label + of_table)], series


@section
def _exact_section(evidence: Evidence) -> Iterator[Section]:
    """What the exact stage proved on its lists, and what it gained over its base rankers."""
    rows = [[*name, *_exact_line(series, evidence)] for name, series in _exact_series(evidence)]
    header = (
        "data set", "variant", "splits", "proven", NOTHING_PROVEN, "objective", "bound", "median gap", "largest gap",
        "gain on train", "gain on test", "median seconds",
    )  # fmt: skip
    caption = (
        "Proven: lists on which no weights can do better, of all lists with something to reorder. Nothing proven: "
        "lists whose bound is that of a perfect order, so that their gap says nothing about the search. Objective and "
        "bound: means over the lists. The gap is the distance from the answer's objective to the bound. Gains: mean "
        f"paired difference from the base ranker in `{evidence.statistic}` of the whole set, in points and in percent "
        "of the base ranker's mean."
    )
    yield Section("The exact stage", [Table(header, rows, caption, left=2)] if rows else [])


def _exact_line(series: Series, evidence: Evidence) -> list[str]:
    lists = [record for record in series.records.values() if record["list"]]
    objective, bound = (mean_of(series.on_list(what)) for what in ("value", "bound"))
    places = say.decimals_of(objective)
    proofs, gaps = [say.ABSENT] * 2, [say.ABSENT] * 2
    if lists:
        proofs = [f"{sum(map(proven, lists))} of {len(lists)}", str(sum(map(nothing_proven, lists)))]
        every = np.array([record["list"]["gap"] for record in lists], dtype=np.float64)  # NaN for None
        ends = float(np.median(every)), float(np.max(every))
        gaps = ["0%" if gap == 0 else "< 0.01%" if gap < 1e-4 else say.gap_text(gap) for gap in ends]
    gains = []
    for part in PARTS:
        found = evidence.compare(*evidence.with_base(series), part)
        relative = f" ({say.percent(found.percent)})" if found.mean_b > 0 else ""
        shown = say.signed(found.difference, say.decimals_of(found.mean_b)) + relative
        gains.append(shown if found.splits else say.ABSENT)
    means = [say.fixed(mean, places) for mean in (objective, bound)]
    return [str(len(series.records)), *proofs, *means, *gaps, *gains, _median_seconds(series)]


@dataclass(frozen=True)
class Promise:
    """What a choice expected to gain on a new list, and what came on the test set."""

    choice: Choice  # the choice
    came: float  # gain over the base ranker on the test set; NaN where that is not measured in the same statistic
    bound: float  # largest gain on the training list that no weights exceed; NaN without a list

    @property
    def held(self) -> bool:
        """Whether the gain that came is in the interval that was promised."""
        return self.choice.low - _TOLERANCE <= self.came <= self.choice.high + _TOLERANCE


def promises(evidence: Evidence, records: Iterable[Json]) -> list[Promise]:
    """Return the choices among exact records, with what came of them."""
    found = []
    for record in (record for record in records if "choice" in record):
        choice, base, on_list = Choice.from_dict(record["choice"]), evidence.results.base_of(record), record["list"]
        values = [one["test"].get(choice.statistic) for one in (record, base) if one is not None]
        came = values[0] - values[1] if len(values) == 2 and None not in values else math.nan
        bound = on_list["bound"] - on_list["base"] if on_list else math.nan
        found.append(Promise(choice, came, bound))
    return found


@section
def _choice_section(evidence: Evidence) -> Iterator[Section]:
    """What the choice on the training sets expected, and what came on the test sets."""
    rows = []
    for name, series in _exact_series(evidence):
        if found := promises(evidence, series.records.values()):
            rows.append([*name, *_promise_line(found, evidence.decimals)])
    if not rows:
        return
    header = ["data set", "variant", "reranked", "expected gain", "90% interval", "gain on test", "in the interval",
              "gain of best weights on list", "bound"]  # fmt: skip
    caption = (
        "Means over the splits; where the base order was kept, the expected gain is 0. In the interval: splits with a "
        "gain on the test set within the promised interval, of those that were reranked. The last two columns are "
        "about the training list: what the best weights gain there, and the bound on that gain."
    )
    yield Section("The choice, and what came of it", [Table(header, rows, caption, left=2)])


def _promise_line(found: list[Promise], d: int) -> list[str]:
    reranked = [one for one in found if one.choice.reranks]
    known = [one for one in reranked if not math.isnan(one.came)]
    ends = [say.signed(mean_of(np.array([getattr(p.choice, end) for p in found])), d) for end in ("low", "high")]
    expected, gains = ([getattr(one.choice, name) for one in found] for name in ("expected", "list_gain"))
    on_list = np.array(gains, dtype=np.float64)  # NaN for None
    means = [np.array([one.came for one in found]), on_list, np.array([one.bound for one in found])]
    came, best, bound = (say.signed(mean_of(values), d) for values in means)
    held = f"{sum(one.held for one in known)} of {len(known)}" if known else say.ABSENT
    share = f"{len(reranked)} of {len(found)}"
    return [share, say.signed(float(np.mean(expected)), d), f"{ends[0]} to {ends[1]}", came, held, best, bound]


@section
def _first_k_section(evidence: Evidence) -> Iterator[Section]:
    """What those find who act on the first K rows of the test sets, before and after reranking."""
    rows = []
    for name, series in _exact_series(evidence):
        found = [one["first_k"] for one in series.records.values() if (one.get("first_k") or {}).get("base")]
        if found:
            rows.append([*name, str(len(found)), *_first_k_line(found)])
    header = ["data set", "variant", "splits", "rows", "hits in the first half", "hits", "precision", "recall", "lift"]
    caption = (
        "Means over the splits, of the base ranker → after reranking. Rows: K, the length of the reranked top; with "
        "queries, of each query. Hits: positives among them. Precision: their share of these rows. Recall: their share "
        "of all positives. Lift: precision over the share of positives in the whole set, which is 1 by chance. "
        "Reranking changes the order of the top K, but hardly which rows are in it: its effect shows in the first half."
    )
    yield Section("What the first K rows of the test sets hold", [Table(header, rows, caption, left=2)] if rows else [])


def _first_k_line(found: list[Json]) -> Iterator[str]:
    yield _between(one["base"]["test"]["k"] for one in found)
    forms = {"hits": "{:.1f}", "precision": "{:.1%}", "recall": "{:.1%}", "lift": "{:.2f}"}
    for name, half in (("hits", True), *((name, False) for name in forms)):
        means = []
        for which in ("base", EXACT):
            held = [one[which]["test"]["half"] if half else one[which]["test"] for one in found]
            means.append(mean_of(np.array([one[name] for one in held], dtype=np.float64)))  # NaN for None
        yield " → ".join(number(mean, forms[name]) or say.ABSENT for mean in means)


def gain_table(evidence: Evidence) -> Table:
    """Return the exact stage against its base ranker, a row for each data set and K."""
    d, rows = evidence.decimals, []
    for pair, one in evidence.gains["test"].items():
        train, series = evidence.gains["train"].get(pair), evidence.main[pair]
        means = [say.fixed(mean, d) for mean in (one.mean_b, one.mean_a)]
        test = [say.effect(one, d), say.p_text(one.p_holm), one.verdict]
        gain = say.ABSENT if train is None else f"{say.signed(train.difference, d)} ({say.percent(train.percent)})"
        rows.append([literal(pair[0]), str(pair[1]), *means, *test, gain, series.proven, series.gap_text()])
    header = [
        "data set", "K", "base ranker", "reranked", "difference on test", "p", "verdict", "gain on train", "proven",
        "mean gap",
    ]  # fmt: skip
    found = evidence.gains["test"]
    splits = say.counted_range((one.splits for one in found.values()), "split")
    caption = (
        f"`{evidence.statistic}` on the test sets, {splits}{'' if ' to ' in splits else ' each'}: means, and the "
        f"difference with its 95% interval. p: {say.tests_text(found)}. Proven: answers that no linear ranker of the "
        "list can beat."
    )
    return Table(header, rows, caption)


@section
def _option_section(evidence: Evidence) -> Iterator[Section]:
    """What each option of the exact stage changes."""
    blocks = [block for table in option_tables(evidence) for block in option_blocks(evidence, table)]
    yield Section("Options of the exact stage", blocks)


@section
def _recentring_section(evidence: Evidence) -> Iterator[Section]:
    """Answers moved to the largest margin against the answers as found."""
    train, test = (evidence.recentred[part] for part in PARTS)
    if not test:
        return
    text = "A recentred answer wins the same comparisons as the exact answer, by the largest possible margin, and so "
    blocks: list[Block] = [Text(text + "has the same objective.")]
    for part, found in (("test", test), ("training", train)):
        against = f"the same answer as found on the {part} sets"
        blocks.append(Text(say.verdict_text(found, "a recentred answer", against, evidence.decimals)))
    d = evidence.decimals + 1
    more = {"on train": lambda pair: say.signed(train[pair].difference, d) if pair in train else say.ABSENT}
    table = comparison_table(test, evidence, "recentred - found", more=more, decimals=d)
    yield Section("Does recentring help?", [*blocks, table])


def below_a_start(records: Iterable[Json]) -> list[Json]:
    """Return the exact results whose objective is below that of a ranker they started from."""
    started = (record for record in records if record["list"] and record["list"]["starts"])
    return [r for r in started if r["list"]["value"] < max(r["list"]["starts"].values()) - _slack(r)]


def _slack(record: Json) -> float:
    return _TOLERANCE * max(1.0, abs(record["list"]["value"]))


def wide_gaps(records: Iterable[Json]) -> list[Json]:
    """Return the exact results with a gap above 5%, or without a known gap."""
    lists = (record for record in records if record["list"])
    return [one for one in lists if one["list"]["gap"] is None or one["list"]["gap"] > _WIDE_GAP]


@section
def _card_section(evidence: Evidence) -> Iterator[Section]:
    """What the cards reached, how many are proven, and how often they ask about each column."""
    rows = []
    for series in evidence.cards:
        cards = [Card.from_dict(record["card"]) for record in series.records.values()]
        values = np.array([[[c.value, c.beside] for c in card.counts] for card in cards], dtype=np.float64)
        train, test = np.moveaxis(values, 0, -1)  # own value and that of logistic regression, by split
        asked = Counter(column for card in cards for column in {q.column for q in card.questions})
        columns = sorted(asked, key=lambda column: (-asked[column], column))
        rows.append(
            [
                literal(series.data),
                literal(series.variant.label),
                f"`{cards[0].statistic}`" if cards[0].intercept is None else "minus the log loss",
                series.proven,
                ", ".join(f"{literal(column)} ({asked[column]})" for column in columns),
                *(say.fixed(mean_of(found), 4) for found in (train[0], test[0], test[1])),
            ]
        )
    header = ("data set", "variant", "statistic", "proven", "asks about", "on train", "on test", "logistic regression")
    caption = (
        "Means over the splits of the statistic that each card maximises. Proven: no allowed card has a larger value "
        "on the training set. Asks about: columns, and in how many splits. Logistic regression: on all questions, on "
        "test."
    )
    yield Section("Cards", [Table(header, rows, caption, left=5)] if rows else [])


@section
def _check_section(evidence: Evidence) -> Iterator[Section]:
    """What went wrong or stopped early."""
    exact, results = evidence.exact, evidence.results.records
    blocks: list[Block] = []
    if exact:
        below = below_a_start(exact)
        crossed = [r for r in exact if r["list"] and r["list"]["bound"] < r["list"]["value"] - _slack(r)]
        starts = f"In {len(below) or 'none'} of {say.counted(len(exact), 'exact result')} "
        starts += f"the objective is below that of a ranker the search started from{_errors(below)}."
        bounds = f"In {len(crossed)} the bound is below the value{_errors(crossed)}." if crossed else ""
        blocks.append(Text(f"**Solver.** {starts} {bounds or 'No bound is below its value.'}"))
        by = Counter(record["status"] for record in exact)
        rest = [status for status in by if status not in ("optimal", "time_limit")]
        others = [f"{status}: {_named([r for r in exact if r['status'] == status])}" for status in rest]
        usual = say.listed([f"{by[status]} {status}" for status in ("optimal", "time_limit") if by[status]])
        more = f" Others: {'; '.join(others)}." if others else ""
        blocks.append(Text(f"**Statuses.** {usual or 'others only'}.{more}"))
    first = [record for record in results if record["method"] not in (EXACT, CARD)]
    early = Counter((r["method"], r["data"], r["status"]) for r in first if r["status"] not in ("converged", "fitted"))
    if first:
        stopped = "; ".join(f"{method} on {data}: {count} {status}" for (method, data, status), count in early.items())
        rankers = say.counted(len(first), "first-stage ranker")
        text = f"{early.total() or 'None'} of {rankers} stopped before it converged{f': {stopped}' if early else ''}."
        blocks.append(Text(f"**First stages.** {text}"))
    if exact:
        wide = wide_gaps(exact)
        named = f": {_named(wide)}" if wide else ""
        text = f"{len(wide) or 'None'} of {say.counted(len(exact), 'exact result')} have a gap above {_WIDE_GAP:.0%}"
        blocks.append(Text(f"**Gaps.** {text}{named}."))
    yield Section("Exceptions and checks", blocks)


def _errors(records: list[Json]) -> str:
    return f", which is an error: {_named(records)}" if records else ""


def _named(records: list[Json]) -> str:
    """Name results by data set, split and K, or count them by data set when there are many."""
    if len(records) > _NAMED:
        return say.listed([f"{data} ({number})" for data, number in Counter(r["data"] for r in records).items()])
    return say.listed([f"{r['data']} split {r['split']}, K = {r['options']['top_k']}" for r in records])


@section
def _time_section(evidence: Evidence) -> Iterator[Section]:
    """The median seconds of all methods."""
    blocks: list[Block] = []
    for table in (table for table in evidence.tables if table.rows):
        rows = [
            [literal(data), *(_median_seconds(row[v]) if v in row else say.ABSENT for v in table.variants)]
            for data, row in table.rows.items()
        ]
        header = ["data set", *(literal(v.label) for v in table.variants)]
        blocks += [Text(f"**{literal(table.heading)}**"), Table(header, rows)]
    note = (
        "Median seconds over the splits. For a first-stage ranker this is the fit; for the exact stage it is the "
        "search on the list, without the fit of its base ranker."
    )
    yield Section("Times", [Text(note), *blocks])


def _median_seconds(series: Series) -> str:
    return say.seconds(float(np.median([record["seconds"] for record in series.records.values()])))


@section
def _data_section(evidence: Evidence) -> Iterator[Section]:
    """Sizes of the data sets, and the versions with which the sweep was begun."""
    by: dict[str, list[Json]] = {}
    for record in evidence.results.records:
        by.setdefault(record["data"], []).append(record)
    rows = []
    for data, records in by.items():
        sizes = [record["sizes"] for record in records]
        numbers = [_between(size[part][at] for size in sizes) for part in PARTS for at in (0, 1)]
        splits = len({record["split"] for record in records})
        rows.append([literal(data), *numbers, _between(size["d"] for size in sizes), str(splits)])
    header = ["data set", "train rows", "positive", "test rows", "positive", "features", "splits"]
    table = Table(header, rows, "Numbers that depend on the split are shown as least–largest.")
    origin = evidence.results.origin
    parts = [f"Python {origin['python']}"] if origin.get("python") else []
    parts += [f"{name} {version}" for name, version in (origin.get("versions") or {}).items()]
    if commit := origin.get("git_commit"):
        parts.append(f"commit {commit[:12]}{', with changes' if origin.get('git_dirty') else ''}")
    text = [Text(literal(f"The sweep was begun with {', '.join(parts)}."))] if parts else []
    yield Section("Data and origin", [table, *text])


def _between(numbers: Iterable[int]) -> str:
    found = set(numbers)
    return str(min(found)) if len(found) == 1 else f"{min(found)}–{max(found)}"
