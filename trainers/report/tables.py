"""The tables of a report: the functions in `SECTIONS` make the blocks of its sections from the results of a sweep."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ltr.cards import Card
from ltr.rankers import Choice
from trainers.config import CARD, EXACT
from trainers.files import Json
from trainers.records import SweepResults, nothing_proven
from trainers.report import wording as say
from trainers.report.evidence import (
    PARTS,
    TIME_LIMIT,
    Evidence,
    Families,
    FloatArray,
    K,
    Row,
    Series,
    SweepTable,
    Variant,
    key_name,
    mean_of,
    proven,
)
from trainers.report.page import Block, Section, Table, Text, literal
from trainers.tables import NOTHING_PROVEN

_TOLERANCE = 1e-9
_NAMED = 12  # results that are named one by one; of more, data sets with counts


def line_of(row: Row, part: str, evidence: Evidence) -> tuple[dict[Variant, FloatArray], set[Variant]]:
    """Return the values of each variant of a data set without NaN, and the variants with the largest mean.

    These are among the variants with the most splits, because a few splits may be easy ones.
    """
    values = {variant: series.values(part, evidence.statistic) for variant, series in row.items()}
    line = {variant: own[~np.isnan(own)] for variant, own in values.items()}
    full = max(map(len, line.values()), default=0)
    top = max((own.mean() for own in line.values() if full and len(own) == full), default=math.nan)
    return line, {v for v, own in line.items() if len(own) == full and math.isclose(mean_of(own), top, rel_tol=1e-12)}


def _reached(values: FloatArray, decimals: int, full: int, *, best: bool) -> str:
    """Return ``12.34 ± 0.56``, bold if it is the best, and with its number of splits where that is not `full`."""
    if not len(values):
        return say.ABSENT
    std = f" ± {values.std(ddof=1):.{decimals}f}" if len(values) > 1 else ""
    text = f"{values.mean():.{decimals}f}{std}"
    return (f"**{text}**" if best else text) + ("" if len(values) == full else f" ({len(values)})")


def _values(evidence: Evidence) -> Iterator[Block]:
    for table in evidence.tables:
        if table.rows:
            done, planned = progress(evidence.results, table.name)
            finished = f": {done} of {planned} results are finished" if done < planned else ""
            yield Text(f"**{literal(table.heading)}**{finished}")
            yield value_table(table, evidence)


def progress(results: SweepResults, table: str | None = None) -> tuple[int, int]:
    """Count the finished and the planned results of a table, or of all."""
    grids = [grid for grid in results.grids if table in (None, grid["name"])]
    planned = {cell["id"] for grid in grids for cell in grid["cells"]}
    return len(planned & set(results.by_id)), len(planned)


def value_table(table: SweepTable, evidence: Evidence) -> Table:
    """Return the means and standard deviations of all variants on training and test sets."""
    lines = {(data, part): line_of(row, part, evidence) for data, row in table.rows.items() for part in PARTS}
    found = [values for line, _ in lines.values() for values in line.values()]
    places = say.decimals_of(max((abs(values.mean()) for values in found if len(values)), default=0.0))
    full, variants = max(map(len, found)), table.variants
    rows = []
    for (data, part), (line, best) in lines.items():
        cells = [_reached(line[v], places, full, best=v in best) if v in line else say.ABSENT for v in variants]
        rows.append([literal(data) if part == "train" else "", part, *cells])
    over = "one split" if full <= 1 else f"mean ± standard deviation over {full} splits"
    caption = (
        f"`{evidence.statistic}`, {over}. **Bold**: the largest mean of the line, among those with the most splits."
    )
    if any(len(values) < full for values in found):
        caption += " The number of splits is in parentheses where it is smaller."
    if any(variant.best_of for variant in variants):
        caption += " “Best of” is chosen by the mean on the test sets, which favours that method."
    return Table(["data set", "set", *(literal(v.label) for v in variants)], rows, caption, left=2)


def _exact_series(evidence: Evidence) -> Iterator[tuple[list[str], Series]]:
    """Yield the results of the exact stage with their names: data set, variant, and table where there are several."""
    tables = [table for table in evidence.tables if table.exact]
    for table in tables:
        of_table = f" ({table.heading})" if len(tables) > 1 else ""
        for series in table.exact:
            yield [literal(series.data), literal(series.variant.label + of_table)], series


def _exact(evidence: Evidence) -> Iterator[Block]:
    rows = [[*name, *_exact_line(series)] for name, series in _exact_series(evidence)]
    header = ["data set", "variant", "splits", "proven", NOTHING_PROVEN, "objective", "bound", "median gap",
              "largest gap"]  # fmt: skip
    caption = (
        "Proven: lists on which no weights can do better, of all lists with something to reorder. Nothing proven: "
        "lists whose bound is that of a perfect order, so that their gap says nothing about the search. Objective and "
        "bound: means over the lists. The gap is the distance from the answer's objective to the bound."
    )
    if rows:
        yield Table(header, rows, caption, left=2)


def _exact_line(series: Series) -> list[str]:
    lists = [record for record in series.records.values() if record["list"]]
    objective, bound = (mean_of(series.on_list(what)) for what in ("value", "bound"))
    proofs, gaps = [say.ABSENT] * 2, [say.ABSENT] * 2
    if lists:
        proofs = [f"{sum(map(proven, lists))} of {len(lists)}", str(sum(map(nothing_proven, lists)))]
        every = np.array([record["list"]["gap"] for record in lists], dtype=np.float64)  # NaN for None
        ends = float(np.median(every)), float(np.max(every))
        gaps = ["0%" if gap == 0 else "< 0.01%" if gap < 1e-4 else say.gap_text(gap) for gap in ends]
    means = [say.fixed(mean, say.decimals_of(objective)) for mean in (objective, bound)]
    return [str(len(series.records)), *proofs, *means, *gaps]


class Promise(NamedTuple):
    """What a choice expected to gain on a new list, and what came on the test set."""

    choice: Choice
    came: float  # gain over the base ranker on the test set; NaN where that is not measured in the same statistic

    @property
    def held(self) -> bool:
        """Whether the gain that came is in the interval that was promised."""
        return self.choice.low - _TOLERANCE <= self.came <= self.choice.high + _TOLERANCE


def promises(evidence: Evidence, records: Iterable[Json]) -> list[Promise]:
    """Return the choices among exact records, with what came of them."""
    found = []
    for record in (record for record in records if "choice" in record):
        choice, base = Choice.from_dict(record["choice"]), evidence.results.base_of(record)
        values = [one["test"].get(choice.statistic) for one in (record, base) if one is not None]
        found.append(Promise(choice, values[0] - values[1] if len(values) == 2 and None not in values else math.nan))
    return found


def comparison_table(
    evidence: Evidence, pairs: Mapping[say.Pair, Series], found: Families, heads: tuple[str, str], varied: str = "K",
    caption: str = "",
) -> Table:  # fmt: skip
    """Return a row for each data set and value of an option: two means, their difference, the proofs of the first.

    `heads` are the headings of the means, that of the second series first, and `pairs` has the first series.
    """
    d, rows = evidence.decimals, []
    for pair, one in found["test"].items():
        train, series = found["train"].get(pair), pairs[pair]
        means = [say.fixed(mean, d) for mean in (one.mean_b, one.mean_a)]
        test = [say.effect(one, d), say.p_text(one.p_holm), one.verdict]
        gain = say.ABSENT if train is None else f"{say.signed(train.difference, d)} ({say.percent(train.percent)})"
        rows.append([literal(pair[0]), say.value_text(pair), *means, *test, gain, series.proven, series.gap_text()])
    header = ["data set", varied, *heads, "difference on test", "p", "verdict", "gain on train", "proven", "mean gap"]
    splits = say.counted_range((one.splits for one in found["test"].values()), "split")
    told = (
        f"`{evidence.statistic}` on the test sets, {splits}{'' if ' to ' in splits else ' each'}: means, and the "
        f"difference with its 95% interval. p: {say.tests_text(found['test'])}. {caption}"
    )
    return Table(header, rows, told.strip())


def gain_table(evidence: Evidence) -> Table:
    """Return the exact stage against its base ranker, a row for each data set and K."""
    caption = "Proven: answers that no linear ranker of the list can beat."
    return comparison_table(evidence, evidence.main, evidence.gains, ("base ranker", "reranked"), caption=caption)


@dataclass(frozen=True)
class OptionTable:
    """A table of the sweep in which one option of the exact stage varies alone."""

    key: str  # the option
    title: str  # title of the table
    reference: dict[str, float | str]  # the value with which others are compared, by data set
    pairs: dict[say.Pair, tuple[Series, Series]]  # the series of other values, each with that of the reference


def option_tables(evidence: Evidence) -> list[OptionTable]:
    """Return the tables that vary an option of the exact stage other than K."""
    found = []
    for table in evidence.tables:
        for key in sorted(table.keys - {K}):
            rows = {data: row for data, row in table.along(key).items() if len(row) > 1}
            reference = {data: _reference(evidence, key, list(row), data) for data, row in rows.items()}
            pairs: dict[say.Pair, tuple[Series, Series]] = {
                (data, value): (series, row[reference[data]])
                for data, row in rows.items()
                for value, series in row.items()
                if value != reference[data]
            }
            if pairs:
                found.append(OptionTable(key, table.title, reference, pairs))
    return found


def _reference(evidence: Evidence, key: str, values: list[Any], data: str) -> Any:  # noqa: ANN401  (of an option)
    """Return the smallest price C; of other options the value that the sweep's other tables use, else the first."""
    if key not in ("exact.C", TIME_LIMIT) and data in evidence.lengths:
        usual = next(iter(next(iter(evidence.lengths[data].main.values())).records.values()))
        if (value := usual["options"][key.rpartition(".")[2]]) in values:
            return value
    return values[0]


def _options(evidence: Evidence) -> Iterator[Block]:
    for table in option_tables(evidence):
        name, found = key_name(table.key), evidence.families(table.pairs)
        of: dict[str, list[str]] = {}
        for pair in table.reference.items():
            of.setdefault(say.value_text(pair), []).append(pair[0])
        usual = say.listed([f"{value} ({say.listed(data)})" if len(of) > 1 else value for value, data in of.items()])
        against = f"{name} = {usual} on the test sets"
        own = {pair: series for pair, (series, _) in table.pairs.items()}
        yield Text(f"**{literal(table.title or name)}**")
        yield Text(say.verdict_text(found["test"], f"another {name}", against, evidence.decimals, name))
        yield comparison_table(evidence, own, found, (f"{name} = {usual}", "this value"), name)


def _recentring(evidence: Evidence) -> Iterator[Block]:
    if not (found := evidence.recentred)["test"]:
        return
    text = (
        "A recentred answer wins the same comparisons as the exact answer, by the largest possible margin, and so has "
        "the same objective."
    )
    against = "the same answer as found on the test sets"
    yield Text(f"{text} {say.verdict_text(found['test'], 'a recentred answer', against, evidence.decimals)}")
    yield comparison_table(evidence, evidence.main, found, ("as found", "recentred"))


def below_a_start(records: Iterable[Json]) -> list[Json]:
    """Return the exact results whose objective is below that of a ranker they started from."""
    started = (record for record in records if record["list"] and record["list"]["starts"])
    return [r for r in started if r["list"]["value"] < max(r["list"]["starts"].values()) - _slack(r)]


def _slack(record: Json) -> float:
    return _TOLERANCE * max(1.0, abs(record["list"]["value"]))


def _cards(evidence: Evidence) -> Iterator[Block]:
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
    if rows:
        yield Table(header, rows, caption, left=5)


def _checks(evidence: Evidence) -> Iterator[Block]:
    exact, results = evidence.exact, evidence.results.records
    if exact:
        below = below_a_start(exact)
        crossed = [r for r in exact if r["list"] and r["list"]["bound"] < r["list"]["value"] - _slack(r)]
        bounds = f"In {len(crossed)} the bound is below the value{_errors(crossed)}." if crossed else ""
        yield Text(
            f"**Solver.** In {len(below) or 'none'} of {len(exact)} exact results the objective is below that of a "
            f"ranker the search started from{_errors(below)}. {bounds or 'No bound is below its value.'}"
        )
        statuses = Counter(record["status"] for record in exact)
        yield Text(f"**Statuses.** {say.listed([f'{count} {status}' for status, count in statuses.items()])}.")
    first = [record for record in results if record["method"] not in (EXACT, CARD)]
    early = Counter((r["method"], r["data"], r["status"]) for r in first if r["status"] not in ("converged", "fitted"))
    if first:
        stopped = "; ".join(f"{method} on {data}: {count} {status}" for (method, data, status), count in early.items())
        text = f"{early.total() or 'None'} of {len(first)} first-stage rankers stopped before they converged"
        yield Text(f"**First stages.** {text}{f': {stopped}' if early else ''}.")


def _errors(records: list[Json]) -> str:
    return f", which is an error: {_named(records)}" if records else ""


def _named(records: list[Json]) -> str:
    """Name results by data set, split and K, or count them by data set when there are many."""
    if len(records) > _NAMED:
        return say.listed([f"{data} ({number})" for data, number in Counter(r["data"] for r in records).items()])
    return say.listed([f"{r['data']} split {r['split']}, K = {r['options']['top_k']}" for r in records])


def _times(evidence: Evidence) -> Iterator[Block]:
    yield Text(
        "Median seconds over the splits. For a first-stage ranker this is the fit; for the exact stage it is the "
        "search on the list, without the fit of its base ranker."
    )
    for table in (table for table in evidence.tables if table.rows):
        rows = [
            [literal(data), *(_median_seconds(row[v]) if v in row else say.ABSENT for v in table.variants)]
            for data, row in table.rows.items()
        ]
        yield Text(f"**{literal(table.heading)}**")
        yield Table(["data set", *(literal(v.label) for v in table.variants)], rows)


def _median_seconds(series: Series) -> str:
    return say.seconds(float(np.median([record["seconds"] for record in series.records.values()])))


def _data(evidence: Evidence) -> Iterator[Block]:
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
    yield Table(header, rows, "Numbers that depend on the split are shown as least–largest.")
    origin = evidence.results.origin
    parts = [f"Python {origin['python']}"] if origin.get("python") else []
    parts += [f"{name} {version}" for name, version in (origin.get("versions") or {}).items()]
    if commit := origin.get("git_commit"):
        parts.append(f"commit {commit[:12]}{', with changes' if origin.get('git_dirty') else ''}")
    if parts:
        yield Text(literal(f"The sweep was begun with {', '.join(parts)}."))


def _between(numbers: Iterable[int]) -> str:
    found = set(numbers)
    return str(min(found)) if len(found) == 1 else f"{min(found)}–{max(found)}"


SECTIONS: dict[str, Callable[[Evidence], Iterable[Block]]] = {
    "Values": _values,
    "The exact stage": _exact,
    "Options of the exact stage": _options,
    "Does recentring help?": _recentring,
    "Cards": _cards,
    "Exceptions and checks": _checks,
    "Times": _times,
    "Data and origin": _data,
}
"""The functions that yield the blocks of the sections, by title, in order."""


def table_sections(evidence: Evidence) -> list[Section]:
    """Return the sections with tables, without those that have no blocks."""
    made = (Section(title, list(make(evidence))) for title, make in SECTIONS.items())
    return [section for section in made if section.blocks]
