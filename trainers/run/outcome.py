"""The command ``ltr outcome``: what a run, or a page of ``ltr rank``, promised of rows that it ranked, and what came.

The promise is that of the page (`ltr.answer.Evidence.expected`): the chances of the rows that were to be visited, which
come from labelled rows that the ranker has not seen, of a run its test set.
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
from ltr.answer.page import number as spelt
from ltr.data import DataError, TableError, format_of
from ltr.data.columns import Column, text_of
from ltr.data.dataset import checked_queries
from ltr.data.forms import DateHints
from ltr.data.kinds import notes_on
from ltr.data.table_files import open_table
from ltr.data.times import Times, times_of
from ltr.rankers import Choice, Ranker
from ltr.statistics import RankStatistic
from trainers.config import AUTO, EXACT, Config, load_config
from trainers.config.sections import DataConfig
from trainers.files import Json, to_json
from trainers.ranking_files import read_evidence, read_ranker
from trainers.run.folder import RunFolder
from trainers.run.page import visits_of
from trainers.run.predict import method_of
from trainers.tables import markdown_table, number
from trainers.task.data import FloatArray, IntArray, Part
from trainers.task.measures import first_rows, mean_share, share_name, statistics_of, sum_over_queries

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Outcome:
    """What a run promised of rows that it ranked, and what came."""

    method: str  # the method that ranked them
    rows: int  # how many rows there are
    known: int  # of how many it is known what came
    visits: int  # of how many of the first rows it is known what came
    promise: Interval | None  # hits to expect among them; None where full lists are reranked and no number was given
    hits: int  # how many of them came
    # each statistic on the labelled rows that the promise comes from and on these; of sums also the share of the best
    statistics: Mapping[str, tuple[float | None, float | None]]
    gain: Mapping[str, Any] | None = None  # of reranking: ``expected``, ``low``, ``high``, and what ``came``, if any
    periods: Sequence[Json] = ()  # ``rows``, ``visits``, ``expected``, ``hits``, ... of each period, with times

    def __str__(self) -> str:
        known = "" if self.known == self.rows else f", of {self.known} of which it is known what came"
        lines = [f"{self.method}: {self.rows} rows{known}"]
        if (promise := self.promise) is not None:
            low, high = math.floor(promise.low), math.ceil(promise.high)
            expected = f"expected {spelt(promise.value)} hits in {self.visits} visits (90 %: {low} to {high})"
            lines.append(f"{expected}; found {self.hits}: {_judged(promise.low, promise.high, self.hits)}")
        if (gain := self.gain) is not None:
            expected = "expected {expected:+.3g} {statistic} (90 %: {low:+.3g} to {high:+.3g}) over {base}"
            found = f"found {gain['came']:+.3g}: {_judged(gain['low'], gain['high'], gain['came'])}"
            lines.append(f"{expected.format(**gain)}; {found}")
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
            form = "{period}|{rows}|{visits}|{expected:.4g}|{low:.4g} to {high:.4g}|{hits}"
            cells = [form.format(**one).split("|") for one in self.periods]
            parts.append(markdown_table(["period", "rows", "visits", "expected hits", "90 %", "found"], cells, left=1))
        return "\n\n".join(parts)


def _named(promise: Interval) -> Json:
    return {"expected": promise.value, "low": promise.low, "high": promise.high}


def _judged(low: float, high: float, came: float) -> str:
    """Return whether what came is within the interval, in words."""
    if came < low:
        return "fewer than expected"
    return "more than expected" if came > high else "within the interval"


class _Came:
    """Rows of a table that a run ranked, and what came of them: labels, NaN where unknown, query numbers and times."""

    def __init__(self, run: RunFolder, options: DataConfig, given: Path | pd.DataFrame, label: str | None) -> None:
        self.where, query = str(given) if isinstance(given, Path) else "frame", options.query
        if isinstance(given, Path) and format_of(given) == "svmlight":
            raise DataError(f"{self.where}: outcomes are read from tables, in which a column says what came")
        self.columns = open_table(given, options.reading, ids=query).columns
        self.ids: NDArray[Any] | None = None
        self.queries: IntArray | None = None
        if "queries" in run.facts["data"] if run.begun else query is not None:
            if query not in self.columns:
                named = "" if query is None else f" {query!r}"
                raise DataError(f"{self.where}: outcomes need the query of each row in a column{named}")
            self.ids = np.asarray(self.columns[str(query)].cells)
            self.queries = checked_queries(self.ids, len(self.ids), f"column {query!r}")[0]
        self.times: Times | None = None
        if options.time in self.columns:
            dates = DateHints(options.date_format, options.first_year)
            try:
                self.times = times_of(self.columns[str(options.time)], self.queries, dates)
            except DataError as error:
                raise DataError(f"{self.where}: {error}") from None
        own: Json = {"column": options.label, "positive": options.positive}
        own = (run.facts["data"].get("label") or {}) if run.begun else own
        label = own.get("column") if label is None else label
        self.labels = labels_that_came(self.columns, label, own.get("positive"), self.where)

    def scores_of(self, ranker: Ranker, *, new_values: bool, note: Callable[[str], None]) -> FloatArray:
        """Return the scores by a ranker, (n,)."""
        import pandas as pd

        if (preparation := ranker.preparation_) is not None:
            preparation.new_values = new_values
            for text in notes_on(self.columns, preparation.encodings_):
                note(f"{self.where}: {text}")
        frame = pd.DataFrame({name: column.cells for name, column in self.columns.items()})
        try:
            ranked = ranker.rank(frame, self.ids).sort_index()
        except TableError as error:
            raise TableError(self.where, error.problems) from None
        return np.asarray(ranked["total" if "total" in ranked else "score"], dtype=np.float64)

    def counted(self, evidence: Evidence, scores: FloatArray, rows: NDArray[Any], k: int) -> tuple[int, Interval, int]:
        """Return of how many of the first k of some rows it is known what came, the hits to expect, and the hits."""
        of_rows, queries = self.labels[rows], None if self.queries is None else self.queries[rows]
        labels = np.nan_to_num(of_rows)
        visited = first_rows(scores[rows], labels, queries, k) & ~np.isnan(of_rows)
        promise = evidence.expected(scores[rows][visited], None if queries is None else queries[visited], k)
        return int(visited.sum()), promise, int((labels[visited] > 0).sum())


def outcomes(
    run: RunFolder,
    given: Path | pd.DataFrame,
    methods: Sequence[str],
    *,
    label: str | None = None,
    first: int | None = None,
    new_values: bool = False,
    note: Callable[[str], None] = lambda text: None,
) -> list[Outcome]:
    """Compare what was promised of the rows of a table with what came, for each of some finished methods.

    The table has the run's features and a column of labels, by default the run's. `first` is how many rows of the list
    were acted on, of each query; by default those of the page. `note` is called with what a user should know.
    """
    config, note = load_config(run.config), functools.cache(note)  # of several methods, once
    came = _Came(run, config.data, given, label)
    n, known = len(came.labels), ~np.isnan(came.labels)
    part = Part(np.empty((n, 0)), np.nan_to_num(came.labels).astype(np.int64), came.queries).take(known).numbered()
    k, found = visits_of(config) if first is None else first, []

    @functools.cache
    def scores_of(method: str) -> FloatArray:
        return came.scores_of(read_ranker(run.path, method), new_values=new_values, note=note)

    for method in methods:
        evidence, scores = read_evidence(run.path, method), scores_of(method)
        visits, promise, hits, periods = 0, None, 0, []
        if k is not None:
            visits, promise, hits = came.counted(evidence, scores, np.arange(n), min(k, n))
            for period, rows in () if came.times is None else came.times.periods():
                share = k if came.queries is not None else max(1, round(min(k, n) * len(rows) / n))
                taken, expected, caught = came.counted(evidence, scores, rows, share)
                counts = {"period": period, "rows": len(rows), "visits": taken, **_named(expected), "hits": caught}
                periods.append(counts)
        before = Part(np.empty((len(evidence.labels), 0)), evidence.labels.astype(np.int64), evidence.lists)
        statistics = _statistics(config, ((evidence.scores.mean(axis=0), before), (scores[known], part)))
        reranked = method == EXACT and run.begun and len(part.y) > 0
        gain = _gain(run, config, lambda name: scores_of(name)[known], part) if reranked else None
        found.append(Outcome(method, n, len(part.y), visits, promise, hits, statistics, gain, periods))
    return found


def _statistics(
    config: Config, pairs: Sequence[tuple[FloatArray, Part]]
) -> dict[str, tuple[float | None, float | None]]:
    """Return the statistics of two lists, of sums also as shares of the best value; None where undefined."""
    values = [statistics_of(scores, part, config) if len(part.y) else {} for scores, part in pairs]
    for (scores, part), of_list in zip(pairs, values, strict=True):
        for name in list(of_list) if part.qid is None else ():  # those of queries are such shares
            if RankStatistic.parse(name).length is None:
                share = mean_share(scores, part, name, config.statistics)
                of_list.setdefault(share_name(name, config.statistics.gain), share)
    return {name: (value, values[1].get(name)) for name, value in values[0].items()}


def _gain(run: RunFolder, config: Config, scores_of: Callable[[str], FloatArray], part: Part) -> dict[str, Any] | None:
    """Return the gain of reranking that was promised of a list like the training list, and what came of it."""
    made = (run.method(EXACT, make=False).result() or {}).get("choice")
    if made is None or config.base not in run.fitted or not (choice := Choice.from_dict(made)).reranks:
        return None
    after, before = (
        sum_over_queries(scores_of(name), part.y, part.qid, choice.statistic, config.statistics)
        for name in (EXACT, config.base)
    )
    promise = {"expected": choice.expected, "low": choice.low, "high": choice.high}
    gained = (after - before) / part.n_queries
    return {"statistic": choice.statistic, "base": config.base, **promise, "came": gained}


def labels_that_came(columns: Mapping[str, Column], name: str | None, positive: str | None, where: str) -> FloatArray:
    """Return the labels in a column of outcomes, read as those of the run were; NaN where there is none."""
    if name is None or name not in columns:
        lacks = "" if name is None else f"no column {name!r} that says what came; "
        raise DataError(f"{where}: {lacks}name the column that says what came: --label COLUMN")
    column = columns[name]
    if column.missing.all():
        raise DataError(f"{where}: column {name!r} says of no row what came")
    if positive is not None:
        wrong = [text for text in column.counts if text != positive and text.casefold() == text_of(positive).casefold()]
        if wrong:
            raise DataError(f"{where}: column {name!r} holds {wrong[0]!r}, which the run's table has as {positive!r}")
        return np.where(column.missing, np.nan, (column.texts == text_of(positive)).astype(np.float64))
    values = np.full(len(column), -1.0) if column.numbers is None else column.numbers
    if (wrong_rows := ~column.missing & ~((values >= 0) & (values == np.floor(values)))).any():
        got = column.first_other()[1] if column.numbers is None else f"{values[np.argmax(wrong_rows)]:g}"
        rule = "labels as the run's: 0 and 1, or with queries whole numbers"
        raise DataError(f"{where}: column {name!r} must hold {rule}, got {got!r}")
    return values


def methods_of(run: RunFolder, method: str | None, *, every: bool = False) -> list[str]:
    """Return the methods to compare: the one that `ltr predict` takes, or all that have a fitted ranker."""
    if not run.begun:
        return [AUTO]
    return run.fitted if every else [method_of(run, method)]
