"""The tables of `docs/answer.md`, made of the records alone.

The value of a ranker on a table is its mean over splits of the difference to logistic regression, in percent of the DCG
of logistic regression (of LightGBM lambdarank with queries), or in hits. Summaries are means over tables. Their 95 %
intervals are percentiles of `DRAWS` bootstrap samples of the tables.

A ranker is *shown* to be below or above the baseline on a table where the one-sided paired t-test over splits has
p < `LEVEL`, corrected for splits that share rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from scripts._bench import Json
from scripts.answer.tables import BY_NAME, LISTS
from trainers.report.paired import paired
from trainers.tables import markdown_table

AUTO, LOGISTIC, LISTWISE = "AutoRanker", "logistic regression", "LightGBM lambdarank"
BEST = "its best method out of fold"
"""Name of the method of `AutoRanker` with the largest statistic out of fold."""
SHARES = {"5%": 0.05, "10%": 0.1}
DRAWS, LEVEL = 10_000, 0.01
_RATIOS = ("dcg", "ndcg@10")
_DCG, _HITS = "+dcg", "+hits 10%"


def texts(records: Sequence[Json]) -> dict[str, str]:
    """Return the text of each table of which there are records, by name."""
    lists = {table.name for table in LISTS}
    single = [record for record in records if record["table"] not in lists]
    made: dict[str, tuple[Callable[[list[Json]], str], list[Json]]] = {
        "answer-summary": (_summary, single),
        "answer-promises": (_promises, [record for record in single if record["ranker"] == AUTO]),
        "answer-tables": (_by_table, single),
        "answer-queries": (_queries, [record for record in records if record["table"] in lists]),
    }
    return {name: make(some) for name, (make, some) in made.items() if some}


def compared(records: Sequence[Json], base: str) -> pd.DataFrame:
    """Return a frame with the measures of each ranker on each split, and how far they are above those of the base.

    The rankers include the method of `AutoRanker` that is best out of fold. A column such as ``+dcg`` has the
    difference to the base, in percent of its DCG or NDCG. Splits on which the base was not measured are left out.
    """
    rows: list[Json] = []
    for record in records:
        where = {name: record[name] for name in ("table", "split", "seconds")}
        rows.append({"ranker": record["ranker"], **where, **record["measures"]})
        if members := record.get("members"):
            best = max(members, key=record["values"].__getitem__)
            rows.append({"ranker": BEST, **where, "seconds": np.nan, **members[best]})
    frame = pd.DataFrame(rows)
    measures = [name for name in frame if name in _RATIOS or name.startswith("hits ")]
    of_base = frame.loc[frame["ranker"] == base, ["table", "split", *measures]]
    joined = frame.merge(of_base, on=["table", "split"], suffixes=("", " of base"))
    for name in measures:
        other = joined[f"{name} of base"]
        joined[f"+{name}"] = (joined[name] - other) * (100 / other if name in _RATIOS else 1.0)
    place = {AUTO: 0, BEST: 1}
    return joined.sort_values("ranker", key=lambda names: names.map(lambda name: place.get(name, 2)), kind="stable")


def shown(values: ArrayLike) -> str:
    """Return whether differences over splits are shown to be ``below`` or ``above`` 0 on average, or nothing."""
    one = paired(values, np.zeros(len(values)), overlap=1.0, fewest=2)
    if not one.p / 2 < LEVEL:  # not enough splits: NaN
        return ""
    return "above" if one.difference > 0 else "below"


def _with_interval(values: pd.Series, form: str = "{:+.2f}") -> str:
    """Return the mean over tables, and its 95 % interval by bootstrap."""
    if not len(values):
        return ""
    rng = np.random.default_rng(0)
    means = values.to_numpy()[rng.integers(len(values), size=(DRAWS, len(values)))].mean(axis=1)
    return "{} [{}, {}]".format(*map(form.format, (values.mean(), *np.percentile(means, [2.5, 97.5]))))


def _about(records: Sequence[Json]) -> str:
    tables, splits = {one["table"] for one in records}, sorted({one["split"] for one in records})
    commits = ", ".join(f"`{name}`" for name in dict.fromkeys(one["commit"] for one in records))
    pairs = len({(one["table"], one["split"]) for one in records})
    return (
        f"Tables: {len(tables)}; splits: {', '.join(map(str, splits))}; pairs of table and split: {pairs}; "
        f"commit: {commits}.\n\n"
    )


def _summary(records: list[Json]) -> str:
    rows = []
    for ranker, own in compared(records, LOGISTIC).groupby("ranker", sort=False):
        if ranker == LOGISTIC:
            continue
        means = own.groupby("table")[[_DCG, _HITS]].mean()
        dcg, verdicts = means[_DCG], own.groupby("table")[_DCG].apply(shown)
        new = dcg[[not BY_NAME[table].seen for table in dcg.index]]
        cells = [_with_interval(dcg), f"{dcg.median():+.2f}", _with_interval(new), f"{dcg.min():+.2f} {dcg.idxmin()}"]
        cells += [str((verdicts == way).sum()) for way in ("below", "above")]
        seconds = own["seconds"].mean()
        rows.append([ranker, *cells, _with_interval(means[_HITS]), "" if np.isnan(seconds) else f"{seconds:.1f}"])
    header = ["ranking", "DCG, %", "median", "DCG, %, new tables", "worst", "below", "above", "hits, first 10%", "s"]
    return _about(records) + markdown_table(header, rows, left=1)


def _promises(records: list[Json]) -> str:
    rows = []
    for share in SHARES:
        frame = pd.DataFrame([record["promised"][share] for record in records], columns=["expected", "low", "high"])
        frame["came"] = [record["measures"][f"hits {share}"] for record in records]
        inside = frame["came"].between(frame["low"], frame["high"]).astype(float)
        held = inside.groupby([record["table"] for record in records]).mean()
        means = [f"{frame['expected'].mean():.2f}", f"{frame['came'].mean():.2f}"]
        means.append(f"{(frame['high'] - frame['low']).mean():.1f}")
        least = f"{held.min():.0%} {held.idxmin()}"
        rows.append([share, str(len(frame)), *means, _with_interval(held, "{:.1%}"), least])
    header = ["first", "pairs", "hits expected", "hits observed", "width", "in the 90 % interval", "worst table"]
    return markdown_table(header, rows, left=1)


def _by_table(records: list[Json]) -> str:
    frame, rows = compared(records, LOGISTIC), []
    means = frame.groupby(["table", "ranker"], sort=False)[[_DCG, _HITS]].mean()
    for table in [name for name in BY_NAME if (name, AUTO) in means.index]:
        of, own = means.loc[table], frame[(frame["table"] == table) & (frame["ranker"] == AUTO)]
        others = of[_DCG].drop([AUTO, BEST, LOGISTIC])
        cells = [str(len(own)), f"{of[_DCG][AUTO]:+.2f}", shown(own[_DCG]), f"{of[_DCG][BEST]:+.2f}"]
        cells += [f"{others.max():+.2f} {others.idxmax()}" if len(others) else "", f"{of[_HITS][AUTO]:+.2f}"]
        rows.append([table, *cells])
    header = ["table", "splits", AUTO, "shown", BEST, "best peer, in hindsight", "hits, first 10%"]
    return markdown_table(header, rows, left=1)


def _queries(records: list[Json]) -> str:
    rows = []
    for (table, ranker), own in compared(records, LISTWISE).groupby(["table", "ranker"], sort=False):
        gains = own["+ndcg@10"]
        cells = [str(len(own)), f"{own['ndcg@10'].mean():.4f}", f"{gains.mean():+.2f}", shown(gains)]
        rows.append([table, ranker, *cells])
    rows.sort(key=lambda row: [*BY_NAME].index(row[0]))
    header = ["lists", "ranking", "splits", "NDCG@10", f"% beyond {LISTWISE}", "shown"]
    return _about(records) + markdown_table(header, rows, left=2)
