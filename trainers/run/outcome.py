"""The command ``ltr outcome``: what a run, or a page of ``ltr rank``, promised of rows that it ranked, and what came.

The promise is that of the page (`ltr.answer.Evidence.expected`): the chances of the rows that were to be visited, which
come from labelled rows that the ranker has not seen. Those of a run are its test set. The promise holds where new rows
come about as these did; a run with ``data.time`` tests on the last rows, which are the most like them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.answer import Evidence, Interval
from ltr.data import DataError, Reading, TableError, format_of
from ltr.data.columns import Column, text_of
from ltr.data.dataset import checked_queries
from ltr.data.encoding import notes_on
from ltr.data.table_files import read_file
from ltr.data.times import Times, times_of
from ltr.rankers import Choice, Ranker
from ltr.statistics import RankStatistic
from trainers.config import AUTO, EXACT, Config, load_config
from trainers.csv_text import PREFIX
from trainers.files import Json, reading, to_json
from trainers.ranking_files import read_evidence, read_ranker
from trainers.run.folder import RunFolder
from trainers.run.page import visits_of
from trainers.run.rows import method_of
from trainers.tables import markdown_table, number
from trainers.task.data import FloatArray, IntArray, Part
from trainers.task.measures import first_rows, mean_share, share_name, statistics_of, sum_over_queries

if TYPE_CHECKING:
    import pandas as pd

_JOINED = "row"  # the column of `ltr predict` that says which row it was


@dataclass(frozen=True)
class Outcome:
    """What a run promised of rows that it ranked, and what came.

    Attributes:
        method: the method that ranked them.
        rows: how many rows there are.
        known: of how many it is known what came.
        visits: of how many of the first rows it is known what came.
        promise: hits to expect among them; None where the run reranks full lists and no number was given.
        hits: how many of them came.
        statistics: value of each statistic on the labelled rows that the promise comes from and on these rows, where it
            is known what came; those that grow with the list are followed by their share of the best possible value.
        gain: the promised ``expected``, ``low`` and ``high`` gain of reranking on a list like the training list, and
            what ``came``; None where nothing was reranked or chosen.
        periods: ``period``, ``rows``, ``visits``, ``expected``, ``low``, ``high`` and ``hits`` of each period, where
            the rows have the run's column of times.
    """

    method: str
    rows: int
    known: int
    visits: int
    promise: Interval | None
    hits: int
    statistics: Mapping[str, tuple[float | None, float | None]]
    gain: Mapping[str, Any] | None = None
    periods: Sequence[Json] = ()

    def __str__(self) -> str:
        known = "" if self.known == self.rows else f", of {self.known} of which it is known what came"
        lines = [f"{self.method}: {self.rows} rows{known}"]
        if self.promise is not None:
            lines.append(_sentence(self.visits, self.promise, self.hits))
        if self.gain is not None:
            of, gain = self.gain, Interval(*(self.gain[key] for key in ("expected", "low", "high")))
            lines.append(
                f"promised {gain.value:+.3g} {of['statistic']} (90 %: {gain.low:+.3g} to {gain.high:+.3g}) over "
                f"{of['base']}; came {of['came']:+.3g}: {_judged(gain, of['came'])}"
            )
        return "\n".join(lines)

    def to_dict(self) -> Json:
        """Return everything as JSON."""
        own = dataclasses.asdict(self) | {"promise": None if self.promise is None else _named(self.promise)}
        statistics = {name: {"test": test, "here": here} for name, (test, here) in self.statistics.items()}
        return to_json({**own, "statistics": statistics, "text": str(self)})

    def to_markdown(self) -> str:
        """Return the sentences, the statistics and the periods as Markdown."""
        parts = [str(self)]
        rows = [[name, *map(number, values)] for name, values in self.statistics.items()]
        parts.append(markdown_table(["statistic", "labelled rows", "these rows"], rows, left=1))
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


def _named(promise: Interval) -> Json:
    return dict(zip(("expected", "low", "high"), promise, strict=True))


def _sentence(visits: int, promise: Interval, hits: int) -> str:
    """Return a promise beside what came, in words.

    Examples:
        >>> _sentence(200, Interval(47.6, 39.0, 58.0), 44)
        'promised 48 hits of 200 (90 %: 39 to 58); came 44: within the promise'
    """
    low, high = math.floor(promise.low), math.ceil(promise.high)
    expected = f"promised {promise.value:.0f} hits of {visits} (90 %: {low} to {high})"
    return f"{expected}; came {hits}: {_judged(promise, hits)}"


def _judged(promise: Interval, came: float) -> str:
    """Return whether what came is within the promise, in words."""
    if came < promise.low:
        return "fewer than promised"
    return "more than promised" if came > promise.high else "within the promise"


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
    """Compare what was promised with what came, for each of some methods.

    Args:
        run: folder of the run, or of the page.
        came: the rows.
        methods: finished methods of the run.
        first: how many rows of the list were acted on, of each query; by default those of the page.

    Raises:
        RunError: a folder that lacks what it promised.
    """
    config, labels = load_config(run.config), np.nan_to_num(came.labels).astype(np.int64)
    k, n = visits_of(config) if first is None else first, len(labels)
    known = ~np.isnan(came.labels)
    found = []
    for method in methods:
        evidence, record = read_evidence(run.path, method), _record(run, method)
        scores = came.scores_of(method)
        visits, promise, hits, periods = 0, None, 0, []
        if k is not None:
            visits, promise, hits = _counted(evidence, came, scores, np.arange(n), min(k, n))
            for period, rows in () if came.times is None else came.times.periods():
                share = k if came.queries is not None else max(1, round(min(k, n) * len(rows) / n))
                taken, expected, came_then = _counted(evidence, came, scores, rows, share)
                counts: Json = {"period": period, "rows": len(rows), "visits": taken}
                periods.append({**counts, **_named(expected), "hits": came_then})
        part = Part(np.empty((int(known.sum()), 0)), labels[known], _numbered(came.queries, known))
        statistics = _statistics(evidence, record, config, scores[known], part)
        gain = _gain(run, record, config, method, came, part, known)
        found.append(Outcome(method, n, len(part.y), visits, promise, hits, statistics, gain, periods))
    return found


def _record(run: RunFolder, method: str) -> Json | None:
    """Return the record of a finished method of a run; None for the page of a ranking."""
    return run.method(method, make=False).result() if run.begun else None


def _counted(
    evidence: Evidence, came: Came, scores: FloatArray, rows: NDArray[Any], k: int
) -> tuple[int, Interval, int]:
    """Return of how many of the first k of some rows it is known what came, the hits to expect there, and the hits."""
    of_rows, queries = came.labels[rows], None if came.queries is None else came.queries[rows]
    labels = np.nan_to_num(of_rows)
    visited = first_rows(scores[rows], labels, queries, k) & ~np.isnan(of_rows)
    promise = evidence.expected(scores[rows][visited], None if queries is None else queries[visited], k)
    return int(visited.sum()), promise, int((labels[visited] > 0).sum())


def _numbered(queries: IntArray | None, rows: NDArray[Any]) -> IntArray | None:
    return None if queries is None else np.unique(queries[rows], return_inverse=True)[1]


def _statistics(
    evidence: Evidence, record: Json | None, config: Config, scores: FloatArray, part: Part
) -> dict[str, tuple[float | None, float | None]]:
    """Return the statistics of the labelled rows and of these, those that are sums also as shares of the best value."""
    of_test = Part(np.empty((len(evidence.labels), 0)), evidence.labels.astype(np.int64), evidence.lists)
    ranked = evidence.scores.mean(axis=0)
    here = statistics_of(scores, part, config) if len(part.y) else {}
    test = statistics_of(ranked, of_test, config) if record is None else record["test"]
    found = {name: (test.get(name), here.get(name)) for name in test}
    for name in list(found) if len(part.y) and part.qid is None else ():
        if share_name(name) != name and RankStatistic.parse(name).length is None:
            pairs = ((ranked, of_test), (scores, part))
            values = [mean_share(order, rows, name, config.statistics) for order, rows in pairs]
            found[share_name(name)] = (values[0], values[1])
    return found


def _gain(
    run: RunFolder,
    record: Json | None,
    config: Config,
    method: str,
    came: Came,
    part: Part,
    known: NDArray[np.bool_],
) -> dict[str, Any] | None:
    """Return the gain of reranking that was promised of a list like the training list, and what came of it."""
    if record is None or method != EXACT or not len(part.y):
        return None
    if record.get("choice") is None or config.base not in run.fitted:
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
        run: folder of the run, or of a page.
        data: the table.
        label: its column of labels; by default that of the run.
        predictions: what ``ltr predict`` wrote for these rows, or the list of the page; they are not ranked again.
        by: column of both files that says which row is which; by default ``row``, as ``ltr predict`` counts them.
        new_values: whether most rows may have texts that no training row had.
        note: called with what a user should know.

    Raises:
        DataError: a table that cannot be used.
        RunError: a run of other data, or a damaged one.
    """
    facts, reading_of = _facts(run), load_config(run.config).data.reading
    columns = _columns(data, facts, reading_of)
    if predictions is None:
        return came_of_columns(run, columns, label, str(data), new_values=new_values, note=note)
    labels = labels_that_came(columns, facts, label, str(data))
    ranked = _columns(predictions, facts, reading_of)
    return _joined(columns, labels, data, ranked, predictions, by, facts, _dates(run), note)


def came_of_columns(
    run: RunFolder,
    columns: Mapping[str, Any],
    label: str | None,
    where: str,
    *,
    new_values: bool = False,
    note: Callable[[str], None] = lambda text: None,
) -> Came:
    """Return what came of rows with the columns of the run's table; see `came_of_file`."""
    import pandas as pd

    facts, note = _facts(run), functools.cache(note)  # of several methods, once
    labels, given, ids = labels_that_came(columns, facts, label, where), None, None
    if "queries" in facts:
        query = str(facts.get("query"))
        if query not in columns:
            raise DataError(f"{where}: outcomes need the query of each row in a column, as the table has {query!r}")
        given = np.asarray(columns[query])
        ids = checked_queries(given, len(labels), f"column {query!r}")[0]
    frame = pd.DataFrame(dict(columns))

    @functools.cache
    def scores_of(method: str) -> FloatArray:
        ranker = read_ranker(run.path, method)
        if (preparation := ranker.preparation_) is not None:
            preparation.new_values = new_values
            cells = {name: Column(name, columns[name]) for name in columns}
            for text in notes_on(cells, preparation.encodings_):
                note(f"{where}: {text}")
        try:
            return scores_in_order(ranker, frame, given)
        except TableError as error:
            raise TableError(where, error.problems) from None

    return Came(labels, ids, _times(columns, facts, ids, _dates(run), where), scores_of)


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
    """Return the facts of the data that a run learned from, or the page of a ranking."""
    if run.begun:
        with reading(run.origin):
            return dict(run.facts["data"])
    data = load_config(run.config).data
    facts: Json = {"label": {"column": data.label, "positive": data.positive}, "time": data.time}
    return facts if data.query is None else {**facts, "query": data.query, "queries": {}}


def _dates(run: RunFolder) -> dict[str, Any]:
    options = load_config(run.config).data
    return {"date_format": options.date_format, "first_year": options.first_year}


def _columns(path: Path, facts: Json, how: Reading) -> Mapping[str, Any]:
    if format_of(path) == "svmlight":
        raise DataError(f"{path}: outcomes are read from tables, in which a column says what came")
    return read_file(path, how, ids=facts.get("query")).columns


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
    if not run.begun:
        return [AUTO]
    return run.fitted if every else [method_of(run, method)]
