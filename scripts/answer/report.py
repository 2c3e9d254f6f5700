"""The tables of `docs/answer.md`, made of the records alone.

The value of a ranker on a table is its mean over splits of the difference to logistic regression, in percent of the DCG
of logistic regression (of LightGBM lambdarank with queries), or in hits. Summaries are means over tables. Their 95 %
intervals are percentiles of `DRAWS` bootstrap samples of the tables.

A ranker is *shown* to be below or above the baseline on a table where the one-sided paired t-test over splits has
p < `LEVEL`. Splits of one table share rows, so that the plain test finds too much; the corrected test of Nadeau and
Bengio takes (1/J + test rows / training rows) times the variance, J splits, instead of 1/J times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scripts._bench import Json, insert
from scripts.answer.rankers import AUTO, LISTWISE, LOGISTIC, MORE_TOPS, SHARES
from scripts.answer.tables import BY_NAME, LISTS, TABLES, facts
from trainers.report.paired import paired
from trainers.tables import markdown_table

DRAWS, LEVEL = 10_000, 0.01
BEST = "its best method out of fold"
"""Name of the method of `AutoRanker` with the largest statistic out of fold."""

Found = Mapping[str, Mapping[str, Mapping[int, Json]]]
"""Measures by ranker, table and split."""


def write(records: Sequence[Json], page: Path) -> None:
    """Put all tables into a page that has the lines ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` of each."""
    for name, text in texts(records).items():
        insert(page, name, text)


def texts(records: Sequence[Json]) -> dict[str, str]:
    """Return the text of each table by name; tables without records say so."""
    lists = {table.name for table in LISTS}
    single = [record for record in records if record["table"] not in lists]
    by_query = [record for record in records if record["table"] in lists]
    made: dict[str, Callable[[], str]] = {
        "answer-summary": lambda: _summary(single),
        "answer-promises": lambda: _promises(single),
        "answer-travel": lambda: _travel(single),
        "answer-tables": lambda: _by_table(single),
        "answer-queries": lambda: _queries(by_query),
        "answer-data": lambda: _data(records),
    }
    needed = {"answer-queries": by_query, "answer-data": records}
    return {name: make() if needed.get(name, single) else "Nothing is measured yet." for name, make in made.items()}


def measures_of(records: Iterable[Json]) -> Found:
    """Return the measures of all rankers, those of the methods of `AutoRanker` and of its best one included."""
    found: defaultdict[str, defaultdict[str, dict[int, Json]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        table, split = record["table"], record["split"]
        found[record["ranker"]][table][split] = record["measures"]
        if record["ranker"] == AUTO:
            members = record["members"]
            found[BEST][table][split] = members[max(members, key=record["values"].__getitem__)]
            for name, own in members.items():
                found[f"its `{name}`"][table][split] = own
    return found


def differences(found: Found, ranker: str, measure: str, base: str, *, percent: bool) -> dict[str, NDArray[np.float64]]:
    """Return the differences of a ranker to the base on each table, one per split that both have."""
    result = {}
    for table, own in found.get(ranker, {}).items():
        other = found.get(base, {}).get(table, {})
        splits = [split for split in sorted(own) if split in other and measure in own[split]]
        if splits:
            ours, theirs = (np.array([some[split][measure] for split in splits]) for some in (own, other))
            result[table] = 100 * (ours - theirs) / theirs if percent else ours - theirs
    return result


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean by bootstrap over tables."""
    rng = np.random.default_rng(0)
    means = np.asarray(values)[rng.integers(len(values), size=(DRAWS, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def shown(values: NDArray[np.float64], way: int, *, corrected: bool) -> bool:
    """Return whether differences over splits are shown to be below (`way` -1) or above 0 (+1) on average."""
    one = paired(values, np.zeros(len(values)), overlap=1.0 if corrected else 0.0, fewest=2)
    return bool(way * one.difference > 0 and one.p / 2 < LEVEL)


def _count_shown(values: Iterable[NDArray[np.float64]], way: int) -> str:
    several = list(values)
    counts = [sum(shown(one, way, corrected=corrected) for one in several) for corrected in (True, False)]
    return f"{counts[0]} ({counts[1]})"


def _mark(values: NDArray[np.float64]) -> str:
    return "below" if shown(values, -1, corrected=True) else "above" if shown(values, 1, corrected=True) else ""


def _with_interval(values: Sequence[float], form: str = "{:+.2f}") -> str:
    if not values:
        return ""
    low, high = interval(values)
    return f"{form.format(np.mean(values))} [{form.format(low)}, {form.format(high)}]"


def _means(by_table: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    return {table: float(values.mean()) for table, values in by_table.items()}


def _about(records: Sequence[Json]) -> str:
    tables, splits = {one["table"] for one in records}, sorted({one["split"] for one in records})
    commits = ", ".join(f"`{name}`" for name in dict.fromkeys(one["commit"] for one in records))
    runs = (
        f"{splits[0]} to {splits[-1]}" if splits == [*range(splits[0], splits[-1] + 1)] else ", ".join(map(str, splits))
    )
    pairs = len({(one["table"], one["split"]) for one in records})
    return f"Tables: {len(tables)}; splits: {runs}; pairs of table and split: {pairs}; commit: {commits}."


def _summary(records: Sequence[Json]) -> str:
    found, seen = measures_of(records), {table.name for table in TABLES if table.seen}
    seconds = {
        ranker: np.mean([one["seconds"] for one in records if one["ranker"] == ranker])
        for ranker in {one["ranker"] for one in records}
    }
    rows = []
    for ranker in sorted(found, key=lambda name: (name != AUTO, name != BEST, name.startswith("its"))):
        if ranker == LOGISTIC or not (dcg := differences(found, ranker, "dcg", LOGISTIC, percent=True)):
            continue
        means = _means(dcg)
        worst = min(means, key=means.__getitem__)
        hits = [
            _with_interval([*_means(differences(found, ranker, f"hits {share}", LOGISTIC, percent=False)).values()])
            for share in SHARES
        ]
        new = [value for table, value in means.items() if table not in seen]
        shown_ones = [_count_shown(dcg.values(), way) for way in (-1, 1)]
        least = f"{means[worst]:+.1f} {worst}"
        time = f"{seconds[ranker]:.1f}" if ranker in seconds else ""
        rows.append(
            [
                ranker,
                str(len(means)),
                _with_interval([*means.values()]),
                _with_interval(new),
                least,
                *shown_ones,
                *hits,
                time,
            ]
        )
    heads = [f"hits, first {share}" for share in SHARES]
    header = ["ranking", "tables", "DCG, %", "DCG, %, new tables", "worst", "below", "above", *heads, "s"]
    return f"{_about(records)}\n\n{markdown_table(header, rows, left=1)}"


def _promises(records: Sequence[Json]) -> str:
    rows = []
    for share in SHARES:
        inside: defaultdict[str, list[float]] = defaultdict(list)
        sums: list[tuple[float, float, float]] = []
        for record in records:
            if record["ranker"] == AUTO:
                expected, low, high = record["promised"][share]
                came = record["measures"][f"hits {share}"]
                inside[record["table"]].append(float(low <= came <= high))
                sums.append((expected, came, high - low))
        if sums:
            expected, came, width = np.mean(sums, axis=0)
            held = [float(np.mean(one)) for one in inside.values()]
            pairs = sum(map(len, inside.values()))
            worst = min(inside, key=lambda name: np.mean(inside[name]))
            least = f"{np.mean(inside[worst]):.0%} {worst}"
            rows.append(
                [
                    share,
                    str(pairs),
                    f"{expected:.2f}",
                    f"{came:.2f}",
                    f"{width:.1f}",
                    _with_interval(held, "{:.1%}"),
                    least,
                ]
            )
    header = ["first", "pairs", "hits promised", "hits that came", "width", "in the 90 % interval", "worst table"]
    return markdown_table(header, rows, left=1)


def _travel(records: Sequence[Json]) -> str:
    found = measures_of(records)
    (table, tops), *_ = MORE_TOPS.items()
    rows = []
    for ranker, own in found.items():
        values = [measures[f"hits {name}"] for measures in own.get(table, {}).values() for name in tops]
        if values:
            rows.append(
                (float(np.mean(values)), [ranker, str(len(values)), f"{np.mean(values):.1f}", f"{min(values):g}"])
            )
    rows.sort(key=lambda row: -row[0])
    top = next(iter(tops))
    header = ["ranking", "splits", f"hits in the first {top} of {table}", "least of the splits"]
    return markdown_table(header, [row for _, row in rows], left=1)


def _by_table(records: Sequence[Json]) -> str:
    found = measures_of(records)
    peers = [name for name in dict.fromkeys(one["ranker"] for one in records) if name not in (AUTO, LOGISTIC)]
    of_all = {name: differences(found, name, "dcg", LOGISTIC, percent=True) for name in (AUTO, BEST, *peers)}
    hits = differences(found, AUTO, "hits 10%", LOGISTIC, percent=False)
    rows = []
    for table in (table.name for table in TABLES):
        if table not in of_all[AUTO]:
            continue
        own = of_all[AUTO][table]
        others = {name: float(of_all[name][table].mean()) for name in peers if table in of_all[name]}
        best = max(others, key=others.__getitem__, default="")
        peer = f"{others[best]:+.2f} {best}" if best else ""
        cells = [
            f"{own.mean():+.2f}",
            _mark(own),
            f"{of_all[BEST][table].mean():+.2f}",
            peer,
            f"{hits[table].mean():+.2f}",
        ]
        rows.append([table, str(len(own)), *cells])
    header = ["table", "splits", AUTO, "shown", BEST, "best peer, known afterwards", "hits, first 10%"]
    return markdown_table(header, rows, left=1)


def _queries(records: Sequence[Json]) -> str:
    found, rows = measures_of(records), []
    for table in (table.name for table in LISTS):
        for ranker in sorted(found, key=lambda name: (name != LISTWISE, name == AUTO, name.startswith("its"))):
            values = [one["ndcg@10"] for one in found[ranker].get(table, {}).values()]
            gains = differences(found, ranker, "ndcg@10", LISTWISE, percent=True).get(table)
            if not values or gains is None:
                continue
            cells = [f"{np.mean(values):.4f}", f"{gains.mean():+.2f}", _mark(gains)]
            rows.append([table, ranker, str(len(values)), *cells])
    header = ["lists", "ranking", "splits", "NDCG@10", f"% of {LISTWISE}", "shown"]
    return f"{_about(records)}\n\n{markdown_table(header, rows, left=2)}"


def _data(records: Sequence[Json]) -> str:
    measured = {one["table"] for one in records}
    rows = facts([table for name, table in BY_NAME.items() if name in measured])
    named = [[*row, "yes" if BY_NAME[row[0]].seen else ""] for row in rows]
    return markdown_table(["table", "rows", "columns", "hits", "a hit is", "from", "seen"], named, left=1)
