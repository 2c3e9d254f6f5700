"""The command ``ltr outcome``: what a run promised of rows that it ranked, against what came.

The promise of hits is what the test set says of a new list of the same kind (`promised`). It holds where new rows come
about as those of the test set did; a run with ``data.time`` tests on the last rows, which are the most like them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError
from ltr.data.columns import Column, text_of
from ltr.data.dataset import checked_queries
from ltr.data.table_files import read_file
from ltr.data.times import Times, times_of
from ltr.rankers import Choice, Ranker
from ltr.statistics import RankStatistic
from trainers.config import EXACT, Config, load_config
from trainers.csv_text import PREFIX
from trainers.files import Json, RunError, reading, to_json
from trainers.records import unpack_labels
from trainers.run.folder import RunFolder
from trainers.run.predict import ranker_of
from trainers.run.rows import method_of, read_rows_for, reading_of
from trainers.tables import markdown_table, number
from trainers.task.data import FloatArray, IntArray, Part
from trainers.task.measures import first_rows, mean_share, share_name, statistics_of, sum_over_queries

if TYPE_CHECKING:
    import pandas as pd

_LOW, _HIGH, _Z = 0.05, 0.95, 1.645  # of an interval for 90 %
_JOINED = "row"  # the column of `ltr predict` that says which row it was


class Promise(NamedTuple):
    """How many hits were to be expected: `expected` of `visits`, and from `low` to `high` in 90 % of the cases."""

    visits: int
    expected: float
    low: float
    high: float

    def judge(self, hits: float) -> str:
        """Return whether so many hits are within the promise, in words."""
        if hits < self.low:
            return "fewer than promised"
        return "more than promised" if hits > self.high else "within the promise"


def promised(run: RunFolder, method: str, first: int, rows: int, visits: int, lists: float | None = None) -> Promise:
    """Return what a run promises of the first rows of a new list, from the hits on its test set.

    *One list.* Of the first m rows of the test set, the same share of it as ``first / rows``, h are hits. With the
    prior of Jeffreys the chance of a hit is Beta(h + 1/2, m - h + 1/2), so the hits of `visits` new rows follow a
    beta-binomial distribution: its mean, and the range from its 5 % to its 95 % quantile.

    *Lists by query.* The hits in the first K rows of q test queries have the mean h and the variance s², so those of Q
    new queries have about the mean ``Q h`` and the variance ``Q s² (1 + Q / q)``, of a normal distribution.

    Args:
        run: folder of the run.
        method: a finished method of it.
        first: how many rows are acted on; with queries, of each.
        rows: how many there are.
        visits: of how many of the first rows it is known what came.
        lists: number of queries, of those whose rows are known in part that part; None for one list.

    Raises:
        RunError: the run folder lacks what the promise is made from.
    """
    if lists is not None:
        found = _first_k(run, method)["queries"]
        expected = lists * found["hits"]
        spread = _Z * math.sqrt(lists * found["deviation"] ** 2 * (1 + lists / found["number"]))
        return Promise(visits, expected, max(0.0, expected - spread), min(float(visits), expected + spread))
    from scipy.stats import betabinom

    m, hits = _first_of_test(run, method, first / rows)
    chance = betabinom(visits, hits + 0.5, m - hits + 0.5)
    return Promise(visits, float(chance.mean()), float(chance.ppf(_LOW)), float(chance.ppf(_HIGH)))


def _first_of_test(run: RunFolder, method: str, share: float) -> tuple[int, float]:
    """Return how many rows are the first ones of the test set, by their share of it, and how many of them are hits.

    A card whose ties count on average has only the hits in its first K rows.
    """
    labels = _test_labels(run, method)
    if labels is None:
        found = _first_k(run, method)
        return int(found["k"]), float(found["hits"])
    m = min(len(labels), max(1, round(share * len(labels))))
    return m, float(labels[:m].sum())


def _test_labels(run: RunFolder, method: str) -> IntArray | None:
    """Return the labels of the test set in the order of a method; None where ties count on average, or with queries."""
    folder = run.method(method, make=False)
    record = folder.result()
    if record is None:
        raise RunError(f"run: {run.path} has not finished {method}; continue with `ltr run {run.config}`")
    with reading(folder.record):
        return unpack_labels(record["ranked"]["test"]) if record.get("ranked") else None


def _first_k(run: RunFolder, method: str) -> Json:
    """Return what the first K rows of the test set hold, see `Task.first_k`."""
    from trainers.run.results import read_results

    results = read_results(run)
    with reading(run.path / "results.json"):
        found = {row.method: row.first_k for row in (() if results is None else results.rows)}[method]
        assert found is not None
        return dict(found["test"])


@dataclass(frozen=True)
class Outcome:
    """What a run promised of rows that it ranked, and what came.

    Attributes:
        method: the method that ranked them.
        rows: how many rows there are.
        known: of how many it is known what came.
        promise: what was promised of the first rows; None where the run reranks full lists and no number was given.
        hits: how many of them came.
        statistics: value of each statistic on the test set and on these rows, where it is known what came; those that
            grow with the list are followed by their share of the best possible value.
        gain: the promised ``expected``, ``low`` and ``high`` gain of reranking on a list like the training list, and
            what ``came``; None where nothing was reranked or chosen.
        periods: ``period``, ``rows``, ``visits``, ``expected``, ``low``, ``high`` and ``hits`` of each period, where
            the rows have the run's column of times.
    """

    method: str
    rows: int
    known: int
    promise: Promise | None
    hits: int
    statistics: Mapping[str, tuple[float | None, float | None]]
    gain: Mapping[str, Any] | None = None
    periods: Sequence[Json] = ()

    def __str__(self) -> str:
        known = "" if self.known == self.rows else f", of {self.known} of which it is known what came"
        lines = [f"{self.method}: {self.rows} rows{known}"]
        if self.promise is not None:
            lines.append(_sentence(self.promise, self.hits))
        if self.gain is not None:
            of, promise = self.gain, Promise(0, *(self.gain[key] for key in ("expected", "low", "high")))
            range_of = f"(90 %: {promise.low:+.3g} to {promise.high:+.3g})"
            lines.append(
                f"promised {promise.expected:+.3g} {of['statistic']} {range_of} over {of['base']}; came "
                f"{of['came']:+.3g}: {promise.judge(of['came'])}"
            )
        return "\n".join(lines)

    def to_dict(self) -> Json:
        """Return everything as JSON."""
        own = dataclasses.asdict(self) | {"promise": None if self.promise is None else self.promise._asdict()}
        statistics = {name: {"test": test, "here": here} for name, (test, here) in self.statistics.items()}
        return to_json({**own, "statistics": statistics, "text": str(self)})

    def to_markdown(self) -> str:
        """Return the sentences, the statistics and the periods as Markdown."""
        parts = [str(self)]
        rows = [[name, *map(number, values)] for name, values in self.statistics.items()]
        parts.append(markdown_table(["statistic", "test set", "these rows"], rows, left=1))
        if self.periods:
            cells = [
                [
                    one["period"],
                    *(f"{one[key]:.4g}" for key in ("rows", "visits", "expected")),
                    f"{one['low']:.4g} to {one['high']:.4g}",
                    str(one["hits"]),
                ]
                for one in self.periods
            ]
            headings = ["period", "rows", "visits", "promised hits", "90 %", "came"]
            parts.append(markdown_table(headings, cells, left=1))
        return "\n\n".join(parts)


def _sentence(promise: Promise, hits: int) -> str:
    """Return a promise beside what came, in words.

    Examples:
        >>> _sentence(Promise(200, 47.6, 39.0, 58.0), 44)
        'promised 48 hits of 200 (90 %: 39 to 58); came 44: within the promise'
    """
    low, high = math.floor(promise.low), math.ceil(promise.high)
    text = f"promised {promise.expected:.0f} hits of {promise.visits} (90 %: {low} to {high})"
    return f"{text}; came {hits}: {promise.judge(hits)}"


@dataclass(frozen=True, eq=False)
class Came:
    """Rows that a run ranked, and what came of them.

    Args:
        labels: label of each row, (n,); NaN where it is not known what came.
        queries: number of each row's query, (n,); None for one list.
        times: moment of each row; None without times.
        scores_of: returns the scores by a method, (n,), from the largest down.
    """

    labels: FloatArray
    queries: IntArray | None
    times: Times | None
    scores_of: Callable[[str], FloatArray]


def outcomes(run: RunFolder, came: Came, methods: Sequence[str], first: int | None = None) -> list[Outcome]:
    """Compare what a run promised with what came, for each of some methods.

    Args:
        run: folder of the run.
        came: the rows.
        methods: finished methods of the run.
        first: how many rows of the list were acted on; by default ``exact.top_k`` of the run, of each query.

    Raises:
        RunError: a number of first rows that does not go with queries, or a run that lacks what it promised.
    """
    config, labels = load_config(run.config), np.nan_to_num(came.labels).astype(np.int64)
    own = None if config.exact.top_k == "full" else int(config.exact.top_k)
    if first is not None and came.queries is not None and first != own:
        raise RunError(f"--first: a run by query promises hits in the first {own} rows of each query only, got {first}")
    k, n = own if first is None else first, len(labels)
    known = ~np.isnan(came.labels)
    found = []
    for method in methods:
        scores = came.scores_of(method)
        promise, hits, periods = None, 0, []
        if k is not None:
            counted = functools.partial(_counted, run, method, came, scores)
            promise, hits = counted(np.arange(n), min(k, n))
            for period, rows in () if came.times is None else came.times.periods():
                share = k if came.queries is not None else max(1, round(min(k, n) * len(rows) / n))
                of_period, came_then = counted(rows, share)
                periods.append({"period": period, "rows": len(rows), **of_period._asdict(), "hits": came_then})
        part = Part(np.empty((int(known.sum()), 0)), labels[known], _numbered(came.queries, known))
        statistics = _statistics(run, config, method, scores[known], part)
        gain = _gain(run, config, method, came, part, known)
        found.append(Outcome(method, n, len(part.y), promise, hits, statistics, gain, periods))
    return found


def _counted(
    run: RunFolder, method: str, came: Came, scores: FloatArray, rows: NDArray[Any], k: int
) -> tuple[Promise, int]:
    """Return what was promised of the first k of some rows, and how many hits came among those that are known."""
    of_rows, queries = came.labels[rows], None if came.queries is None else came.queries[rows]
    labels = np.nan_to_num(of_rows)
    first = first_rows(scores[rows], labels, queries, k)
    visited = first & ~np.isnan(of_rows)
    lists = None if queries is None else len(np.unique(queries)) * visited.sum() / first.sum()
    return promised(run, method, k, len(rows), int(visited.sum()), lists), int((labels[visited] > 0).sum())


def _numbered(queries: IntArray | None, rows: NDArray[Any]) -> IntArray | None:
    return None if queries is None else np.unique(queries[rows], return_inverse=True)[1]


def _statistics(
    run: RunFolder, config: Config, method: str, scores: FloatArray, part: Part
) -> dict[str, tuple[float | None, float | None]]:
    """Return the statistics of the test set and of these rows, those that are sums also as shares of the best value."""
    record = run.method(method, make=False).result() or {}
    here, test = statistics_of(scores, part, config) if len(part.y) else {}, record.get("test", {})
    found = {name: (test.get(name), here.get(name)) for name in test}
    labels = _test_labels(run, method)
    if labels is not None and len(part.y):
        of_test = Part(np.empty((len(labels), 0)), labels)
        for name in list(found):
            if share_name(name) != name and RankStatistic.parse(name).length is None:
                down = np.arange(len(labels), 0.0, -1.0)
                shares = (
                    mean_share(down, of_test, name, config.statistics),
                    mean_share(scores, part, name, config.statistics),
                )
                found[share_name(name)] = shares
    return found


def _gain(
    run: RunFolder, config: Config, method: str, came: Came, part: Part, known: NDArray[np.bool_]
) -> dict[str, Any] | None:
    """Return the gain of reranking that was promised of a list like the training list, and what came of it."""
    record = run.method(method, make=False).result() or {}
    if method != EXACT or record.get("choice") is None or config.base not in run.fitted or not len(part.y):
        return None
    choice = Choice.from_dict(record["choice"])
    if not choice.reranks:
        return None
    values = [
        sum_over_queries(came.scores_of(name)[known], part.y, part.qid, choice.statistic, config.statistics)
        for name in (EXACT, config.base)
    ]
    promise = {"expected": choice.expected, "low": choice.low, "high": choice.high}
    came_of_it = (values[0] - values[1]) / part.n_queries
    return {"statistic": choice.statistic, "base": config.base, **promise, "came": came_of_it}


def came_of_file(
    run: RunFolder,
    data: Path,
    *,
    label: str | None = None,
    predictions: Path | None = None,
    by: str | None = None,
    new_values: bool = False,
    note: Callable[[str], None] = lambda text: None,
) -> Came:
    """Read what came from a file: rows with the run's features and the label, or labels of rows that were predicted.

    Args:
        run: folder of the run.
        data: the table.
        label: its column of labels; by default that of the run.
        predictions: what ``ltr predict`` wrote for these rows; the rows are then not ranked again.
        by: column of both files that says which row is which; by default ``row``, as ``ltr predict`` counts them.
        new_values: whether most rows may have texts that no training row had.
        note: called with what a user should know.

    Raises:
        DataError: a table that cannot be used.
        RunError: a run of other data, or a damaged one.
    """
    facts = _facts(run)
    note = functools.cache(note)  # of several methods, once
    columns = _columns(data, facts)
    labels, dates = labels_that_came(columns, facts, label, str(data)), _dates(run)
    if predictions is not None:
        return _joined(columns, labels, data, _columns(predictions, facts), predictions, by, facts, dates, note)

    @functools.cache
    def scores_of(method: str) -> FloatArray:
        rows = read_rows_for(run, data, method, new_values=new_values)
        for text in rows.notes:
            note(text)
        return scores_in_order(ranker_of(run, method), rows.table, rows.queries)

    query = facts.get("query")
    ids = None
    if "queries" in facts:
        if query is None or query not in columns:
            raise DataError(f"{data}: outcomes need the query of each row in a column, as the run's table has")
        ids = checked_queries(np.asarray(columns[query]), len(labels), f"column {query!r}")[0]
    return Came(labels, ids, _times(columns, facts, ids, dates, str(data)), scores_of)


def came_of_frame(run: RunFolder, rankers: Mapping[str, Ranker], frame: pd.DataFrame, label: str | None = None) -> Came:
    """Return what came of the rows of a frame, which has the columns of the run's table; see `came_of_file`."""
    facts, frame = _facts(run), frame.reset_index(drop=True)
    columns = {name: frame[name] for name in frame}
    labels = labels_that_came(columns, facts, label, "frame")
    given, ids = None, None
    if "queries" in facts:
        if (query := facts.get("query")) not in columns:
            raise DataError(f"frame: outcomes need the query of each row in the column {query!r}")
        given = np.asarray(frame[query])
        ids = checked_queries(given, len(frame), f"column {query!r}")[0]
    times = _times(columns, facts, ids, _dates(run), "frame")
    return Came(labels, ids, times, lambda method: scores_in_order(rankers[method], frame, given))


def scores_in_order(ranker: Ranker, table: pd.DataFrame, queries: NDArray[Any] | None) -> FloatArray:
    """Return the scores of rows, (n,), as the list of a ranker has them."""
    ranked = ranker.rank(table, queries).sort_index()
    return np.asarray(ranked["total" if "total" in ranked else "score"], dtype=np.float64)


def labels_that_came(columns: Mapping[str, Any], facts: Json, label: str | None, where: str) -> FloatArray:
    """Return the labels in a column of outcomes, read as those of the run were; NaN where there is none.

    Raises:
        DataError: no such column, other labels than the run's, or none at all.
    """
    of_run = facts.get("label") or {}
    name, positive = of_run.get("column") if label is None else label, of_run.get("positive")
    if name is None:
        raise DataError(f"{where}: name the column that says what came: --label COLUMN")
    if name not in columns:
        raise DataError(f"{where}: no column {name!r} that says what came; name it by --label COLUMN")
    column = Column(name, columns[name])
    if column.missing.all():
        raise DataError(f"{where}: column {name!r} says of no row what came")
    if positive is not None:
        wrong = [text for text in column.counts if text != positive and text.casefold() == text_of(positive).casefold()]
        if wrong:
            raise DataError(f"{where}: column {name!r} holds {wrong[0]!r}, which the run's table has as {positive!r}")
        return np.where(column.missing, np.nan, (column.texts == text_of(positive)).astype(np.float64))
    values = column.numbers
    good = None if values is None else column.missing | ((values >= 0) & (values == np.floor(values)))
    if values is None or good is None or not good.all():
        got = column.not_a_number[1] if values is None or good is None else f"{values[np.argmin(good)]:g}"
        rule = "labels as the run's: 0 and 1, or with queries whole numbers"
        raise DataError(f"{where}: column {name!r} must hold {rule}, got {got!r}")
    return values


def _facts(run: RunFolder) -> Json:
    with reading(run.origin):
        return dict(run.facts["data"])


def _dates(run: RunFolder) -> dict[str, Any]:
    options = load_config(run.config).data
    return {"date_format": options.date_format, "first_year": options.first_year}


def _columns(path: Path, facts: Json) -> Mapping[str, Any]:
    from ltr.data import format_of

    if format_of(path) == "svmlight":
        raise DataError(f"{path}: outcomes are read from tables, in which a column says what came")
    return read_file(path, reading_of(facts), ids=facts.get("query")).columns


def _times(
    columns: Mapping[str, Any], facts: Json, ids: IntArray | None, dates: Mapping[str, Any], where: str
) -> Times | None:
    """Return the times of rows, where they have the run's column of times."""
    if (name := facts.get("time")) is None or name not in columns:
        return None
    times, problems = times_of(Column(name, columns[name]), ids, **dates)
    if problems:
        raise DataError(f"{where}: {problems[0].text}")
    return times


def _joined(
    columns: Mapping[str, Any],
    labels: FloatArray,
    data: Path,
    ranked: Mapping[str, Any],
    predictions: Path,
    by: str | None,
    facts: Json,
    dates: Mapping[str, Any],
    note: Callable[[str], None],
) -> Came:
    """Return predicted rows with the labels of the outcomes that have the same key."""
    key = _JOINED if by is None else by
    for path, have in ((data, columns), (predictions, ranked)):
        if key not in have:
            shared = ", ".join(name for name in columns if name in ranked) or "none"
            rule = f"has no column {key!r} that says which row is which"
            raise DataError(f"{path}: {rule}; columns of both files are: {shared}; name one by --by COLUMN")
    prefix = PREFIX if f"{PREFIX}score" in ranked else ""  # which the names have where the table has one of them
    if f"{prefix}score" not in ranked:
        raise DataError(f"{predictions}: has no column 'score', as the output of `ltr predict` has")
    keys = []
    for path, have in ((data, columns), (predictions, ranked)):
        texts = Column(key, have[key]).texts
        known, counts = np.unique(texts.astype(str), return_counts=True)
        if counts.max() > 1 or "" in known:
            bad = "" if "" in known else known[np.argmax(counts)]
            raise DataError(f"{path}: each row needs its own {key!r}, got {str(bad)!r} in several rows or none")
        keys.append(texts.tolist())
    known_labels = dict(zip(keys[0], labels.tolist(), strict=True))
    if missing := len(set(keys[0]) - set(keys[1])):
        note(f"{data}: {missing} of {len(labels)} rows are not among those of {predictions}, and are left out")
    found = np.array([known_labels.get(text, np.nan) for text in keys[1]])
    if np.isnan(found).all():
        raise DataError(f"{data}: no row has a {key!r} of {predictions}")
    scores, ids = Column("score", ranked[f"{prefix}score"]).numbers, None
    if scores is None or np.isnan(scores).any():
        raise DataError(f"{predictions}: column 'score' must hold a number in each row")
    if "queries" in facts:
        if (query := f"{prefix}query") not in ranked:
            raise DataError(f"{predictions}: has no column {query!r}, as the output of `ltr predict` has for this run")
        ids = checked_queries(np.asarray(ranked[query]), len(found), f"column {query!r}")[0]
    return Came(found, ids, _times(ranked, facts, ids, dates, str(predictions)), lambda method: scores)


def methods_of(run: RunFolder, method: str | None, *, every: bool = False) -> list[str]:
    """Return the methods to compare: the one that `ltr predict` takes, or all that have a fitted ranker."""
    return run.fitted if every else [method_of(run, method)]
