"""The tables of `docs/answer.md`, made of the records alone.

The value of a ranker on a table is its mean over splits of the difference to logistic regression, in percent of the DCG
of logistic regression (of LightGBM lambdarank with queries), or in hits. Summaries are means over tables. Their 95 %
intervals are percentiles of `DRAWS` bootstrap samples of the tables.

A ranker is *shown* to be below or above the baseline on a table where the one-sided paired t-test over splits has
p < `LEVEL`. Splits of one table share rows, so the test is that of Nadeau and Bengio: it takes (1/J + test rows /
training rows) times the variance, J splits, instead of 1/J times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from scripts._bench import Json
from scripts.answer.rankers import AUTO, LISTWISE, LOGISTIC, SHARES
from scripts.answer.tables import BY_NAME, LISTS
from trainers.report.paired import paired
from trainers.tables import markdown_table

DRAWS, LEVEL = 10_000, 0.01
BEST = "its best method out of fold"
"""Name of the method of `AutoRanker` with the largest statistic out of fold."""
_RATIOS = ("dcg", "ndcg@10")
_HITS = tuple(f"hits {share}" for share in SHARES)


def texts(records: Sequence[Json]) -> dict[str, str]:
    """Return the text of each table of which there are records, by name."""
    lists = {table.name for table in LISTS}
    single = [record for record in records if record["table"] not in lists]
    made = {
        "answer-summary": (_summary, single),
        "answer-promises": (_promises, [record for record in single if record["ranker"] == AUTO]),
        "answer-tables": (_by_table, single),
        "answer-queries": (_queries, [record for record in records if record["table"] in lists]),
    }
    return {name: make(some) for name, (make, some) in made.items() if some}


def compared(records: Iterable[Json], base: str) -> pd.DataFrame:
    """Return a frame with the measures of each ranker on each split, and how far they are above those of the base.

    The rankers include the method of `AutoRanker` that is best out of fold. A column such as ``+dcg`` has the
    difference to the base, in percent of its DCG or NDCG. Splits on which the base was not measured are left out.
    """
    rows: list[Json] = []
    for record in records:
        where = {name: record[name] for name in ("table", "split", "seconds")}
        rows.append({"ranker": record["ranker"], **where, **record["measures"]})
        members = record.get("members", {})
        if members:
            best = members[max(members, key=record["values"].__getitem__)]
            rows.append({"ranker": BEST, **where, "seconds": np.nan, **best})
    frame = pd.DataFrame(rows)
    measures = [name for name in frame if name in _RATIOS or str(name).startswith("hits ")]
    of_base = frame.loc[frame["ranker"] == base, ["table", "split", *measures]]
    joined = frame.merge(of_base, on=["table", "split"], suffixes=("", " of base"))
    for name in measures:
        other = joined[f"{name} of base"]
        joined[f"+{name}"] = (joined[name] - other) * (100 / other if name in _RATIOS else 1.0)
    place = {AUTO: 0, BEST: 1}
    return joined.sort_values("ranker", key=lambda names: names.map(lambda name: place.get(name, 2)), kind="stable")


def interval(values: ArrayLike) -> tuple[float, float]:
    """Return the 95 % interval of the mean by bootstrap over tables."""
    given, rng = np.asarray(values, dtype=np.float64), np.random.default_rng(0)
    means = given[rng.integers(len(given), size=(DRAWS, len(given)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def shown(values: ArrayLike, way: int) -> bool:
    """Return whether differences over splits are shown to be below (`way` -1) or above 0 (+1) on average."""
    one = paired(values, np.zeros(len(np.asarray(values))), overlap=1.0, fewest=2)
    return bool(way * one.difference > 0 and one.p / 2 < LEVEL)


def _mark(values: ArrayLike) -> str:
    return "below" if shown(values, -1) else "above" if shown(values, 1) else ""


def _with_interval(values: pd.Series, form: str = "{:+.2f}") -> str:
    return "{} [{}, {}]".format(*map(form.format, (values.mean(), *interval(values)))) if len(values) else ""


def _about(records: Sequence[Json]) -> str:
    tables, splits = {one["table"] for one in records}, sorted({one["split"] for one in records})
    commits = ", ".join(f"`{name}`" for name in dict.fromkeys(one["commit"] for one in records))
    pairs = len({(one["table"], one["split"]) for one in records})
    return (
        f"Tables: {len(tables)}; splits: {', '.join(map(str, splits))}; pairs of table and split: {pairs}; "
        f"commit: {commits}.\n\n"
    )


def _summary(records: Sequence[Json]) -> str:
    rows = []
    for ranker, own in compared(records, LOGISTIC).groupby("ranker", sort=False):
        by_table, dcg = own.groupby("table"), own.groupby("table")["+dcg"].mean()
        if ranker == LOGISTIC:
            continue
        new = dcg[[not BY_NAME[table].seen for table in dcg.index]]
        cells = [_with_interval(dcg), f"{dcg.median():+.2f}", _with_interval(new), f"{dcg.min():+.2f} {dcg.idxmin()}"]
        cells += [str(sum(shown(one, way) for _, one in by_table["+dcg"])) for way in (-1, 1)]
        cells.append(_with_interval(by_table["+hits 10%"].mean()))
        seconds = own["seconds"].mean()
        rows.append([str(ranker), *cells, "" if np.isnan(seconds) else f"{seconds:.1f}"])
    header = ["ranking", "DCG, %", "median", "DCG, %, new tables", "worst", "below", "above", "hits, first 10%", "s"]
    return _about(records) + markdown_table(header, rows, left=1)


def _promises(records: Sequence[Json]) -> str:
    rows = []
    for share, name in zip(SHARES, _HITS, strict=True):
        frame = pd.DataFrame([record["promised"][share] for record in records], columns=["expected", "low", "high"])
        frame["came"] = [record["measures"][name] for record in records]
        frame["inside"] = frame["came"].between(frame["low"], frame["high"]).astype(float)
        held = frame["inside"].groupby([record["table"] for record in records]).mean()
        means = [f"{frame['expected'].mean():.2f}", f"{frame['came'].mean():.2f}"]
        means.append(f"{(frame['high'] - frame['low']).mean():.1f}")
        least = f"{held.min():.0%} {held.idxmin()}"
        rows.append([share, str(len(frame)), *means, _with_interval(held, "{:.1%}"), least])
    header = ["first", "pairs", "hits expected", "hits observed", "width", "in the 90 % interval", "worst table"]
    return markdown_table(header, rows, left=1)


def _by_table(records: Sequence[Json]) -> str:
    frame, rows = compared(records, LOGISTIC), []
    peers = frame[~frame["ranker"].isin([AUTO, BEST, LOGISTIC])]
    for table in [name for name in BY_NAME if name in set(frame["table"])]:
        own, best = (frame[(frame["table"] == table) & (frame["ranker"] == name)] for name in (AUTO, BEST))
        others = peers[peers["table"] == table].groupby("ranker", sort=False)["+dcg"].mean()
        if own.empty:
            continue
        cells = [str(len(own)), f"{own['+dcg'].mean():+.2f}", _mark(own["+dcg"]), f"{best['+dcg'].mean():+.2f}"]
        cells += [f"{others.max():+.2f} {others.idxmax()}" if len(others) else "", f"{own['+hits 10%'].mean():+.2f}"]
        rows.append([table, *cells])
    header = ["table", "splits", AUTO, "shown", BEST, "best peer, in hindsight", "hits, first 10%"]
    return markdown_table(header, rows, left=1)


def _queries(records: Sequence[Json]) -> str:
    rows = []
    for (table, ranker), own in compared(records, LISTWISE).groupby(["table", "ranker"], sort=False):
        gains = own["+ndcg@10"]
        cells = [str(len(own)), f"{own['ndcg@10'].mean():.4f}", f"{gains.mean():+.2f}", _mark(gains)]
        rows.append([str(table), str(ranker), *cells])
    rows.sort(key=lambda row: [*BY_NAME].index(row[0]))
    header = ["lists", "ranking", "splits", "NDCG@10", f"% beyond {LISTWISE}", "shown"]
    return _about(records) + markdown_table(header, rows, left=2)
