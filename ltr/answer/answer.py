"""The answer to "whom shall we visit?": the page of a ranked list as plain data, and what makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ltr.answer.evidence import Evidence, Found, Interval, curve_visits, place_in_list, sums_by_visits
from ltr.answer.proven import ListFront, Plain, RowRanges
from ltr.answer.reasons import Reason, Typical, effects, reasons_of
from ltr.checks import doubles
from ltr.data.columns import Column
from ltr.data.dataset import Features
from ltr.data.table_files import GivenTable
from ltr.rankers.auto import TODAY, AutoRanker, Comparison
from ltr.rankers.base import Ranker
from ltr.rankers.two_stage import TwoStageRanker

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LISTED = 10_000  # rows to visit that a page names, at most
_REASONED = 1000  # rows that get reasons, at most
_SCORED = 60_000  # rows that are scored for reasons, at most
_FEW_HITS = 20
_FORMAT = "ltr page"
_NAMED = 4  # methods that a sentence names

Listed = Literal["new", "unlabelled", "own", "test"]
"""Which rows are listed: new ones, those of the table without a label, or labelled ones by scores that had not seen
them, which are all of them or those of a test set."""
_KNOWN: tuple[Listed, ...] = ("own", "test")


@dataclass(frozen=True)
class Learned:
    """What a ranking was learned from, and how: the part of an answer that is the same for every list.

    `today`, `query`, `time` and `id` name columns, None where there are none.
    """

    table: str
    hit: str  # what a hit is, such as "ill = yes"
    rows: int
    hits: int
    method: str  # a sentence on it
    today: str | None = None
    query: str | None = None
    time: str | None = None
    id: str | None = None
    typical: tuple[Typical, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()  # in words
    demands: tuple[str, ...] = ()
    proven: tuple[RowRanges | ListFront, ...] = ()  # about the training list
    tested: bool = False  # whether the rows put to the test are a test set


@dataclass(frozen=True)
class Curve:
    """Hits to expect, by number of visits."""

    visits: tuple[int, ...]
    ranking: tuple[float, ...]
    chance: tuple[float, ...]
    today: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Entry:
    """A row to visit: its position in its list, its name, its number in its file, and what puts it there."""

    position: int
    id: str
    row: int
    chance: float
    score: float
    reasons: tuple[Reason, ...] = ()
    query: str | None = None


@dataclass(frozen=True)
class Answer(Plain):
    """The page of a ranked list, as plain data.

    Attributes:
        asked: number of visits that were asked for, of each query where there are queries.
        visits: number of visits in all, which is less where there are not so many rows.
        expected, today, chance: hits to expect by these visits, by today's scores, and at random.
        entries: the rows to visit, list after list from the top; the first 10,000 of them.
        unconstrained: hits to expect by a ranking without the constraints; None where that is not known.
    """

    _WHAT = "a page of ltr rank"

    learned: Learned
    listed: Listed
    source: str
    rows: int
    queries: int | None
    asked: int
    visits: int
    expected: Interval
    today: Interval | None
    chance: float
    curve: Curve
    found: Found
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()
    unconstrained: Interval | None = None

    @property
    def known(self) -> bool:
        """Whether it is known which of the listed rows are hits."""
        return self.listed in _KNOWN

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON."""
        return {"format": _FORMAT, "version": 1, **super().to_dict()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Answer:
        """Return the answer that `to_dict` described; raise ValueError for another object."""
        about = given.get("format"), given.get("version")
        if about != (_FORMAT, 1):
            raise ValueError(f"not {cls._WHAT}: format {about[0]!r:.40}, version {about[1]!r:.40}")
        return super().from_dict(given)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to rank: features, (m, d), cells by column, and name, number in the file, query, today's score of each.

    `given` is their table, and `source` what a page calls it.
    """

    listed: Listed
    given: GivenTable
    source: str
    features: Features
    columns: Mapping[str, Column]
    names: Sequence[str]
    numbers: IntArray
    queries: NDArray[Any] | None = None
    today: FloatArray | None = None
    warnings: tuple[str, ...] = ()


def make_answer(
    ranker: Ranker,
    evidence: Evidence,
    learned: Learned,
    rows: Rows,
    visits: int,
    free: tuple[AutoRanker, Evidence] | None = None,
) -> tuple[Answer, FloatArray]:
    """Return the answer for some rows, and the score of each of them, (m,).

    Known rows are those of the evidence, in their order. `free` is a ranker without the constraints that `ranker`
    satisfies, and its evidence.
    """
    import pandas as pd

    lists = np.zeros(len(rows.features), dtype=np.int64)
    if rows.queries is not None:  # in the order in which they first appear
        lists = pd.factorize(rows.queries)[0].astype(np.int64)
    sizes = np.bincount(lists)
    scores = _scores_of(ranker, evidence, rows, lists)
    chances, places = evidence.calibration(scores), place_in_list(scores, lists)
    unconstrained = today = line = None
    if free is not None:
        others = _scores_of(*free, rows, lists)
        first = place_in_list(others, lists) <= visits
        unconstrained = free[1].expected(others[first], lists[first], visits)
    at = curve_visits(visits, int(sizes.max()))
    if rows.today is not None and (of_today := evidence.of_today) is not None:
        places_today = place_in_list(rows.today, lists)
        first = places_today <= visits
        today = of_today.expected(rows.today[first], lists[first], visits)
        line = tuple(sums_by_visits(of_today.calibration(rows.today), places_today, at).tolist())
    shares, planned = np.bincount(lists, chances) / sizes, np.minimum(visits, sizes)
    by_chance = (np.minimum(at[:, None], sizes) * shares).sum(axis=1)
    visited = np.flatnonzero(places <= visits)
    visited = visited[np.lexsort((places[visited], lists[visited]))]
    # as large a part of the labelled rows, or of each query as many
    deep = max(1, round(min(1.0, visits / len(scores)) * len(evidence.labels)))
    found = evidence.found(deep if evidence.lists is None else visits)
    by_ranking = sums_by_visits(chances, places, at)
    answer = Answer(
        learned,
        rows.listed,
        rows.source,
        rows=len(scores),
        queries=None if rows.queries is None else len(sizes),
        asked=visits,
        visits=int(planned.sum()),
        expected=evidence.expected(scores[visited], lists[visited], visits),
        today=today,
        chance=float((planned * shares).sum()),
        curve=Curve(tuple(at.tolist()), tuple(by_ranking.tolist()), tuple(by_chance.tolist()), line),
        found=found,
        entries=tuple(_entries(ranker, learned, rows, visited[:_LISTED], places, scores, chances)),
        warnings=(*_about_today(found, learned), *_about_list(rows, visits, int(sizes.max())), *rows.warnings),
        unconstrained=unconstrained,
    )
    return answer, scores


def _scores_of(ranker: Ranker, evidence: Evidence, rows: Rows, lists: IntArray) -> FloatArray:
    """Return the scores of rows, (m,), of labelled ones those by fits that have not seen them."""
    if rows.listed in _KNOWN:
        return evidence.scores.mean(axis=0)
    return ranker._placed(rows.features, None if rows.queries is None else lists)[0]


def _entries(
    ranker: Ranker,
    learned: Learned,
    rows: Rows,
    first: IntArray,
    places: IntArray,
    scores: FloatArray,
    chances: FloatArray,
) -> list[Entry]:
    """Return the rows to visit, the first ones with their reasons."""
    reasoned = first[: min(_REASONED, max(20, _SCORED // max(1, len(learned.typical))))]
    effect = effects(doubles(rows.features[reasoned]), learned.typical, scorer_of(ranker))
    columns = {cell.column: rows.columns[cell.column].take(reasoned) for cell in learned.typical}
    found = []
    for at, row in enumerate(first.tolist()):
        reasons = reasons_of(effect[at], learned.typical, columns, at) if at < len(reasoned) else ()
        query = None if rows.queries is None else str(rows.queries[row])
        numbers = float(chances[row]), float(scores[row])
        found.append(Entry(int(places[row]), rows.names[row], int(rows.numbers[row]), *numbers, reasons, query))
    return found


def scorer_of(ranker: Ranker, *, top: bool = True) -> Callable[[FloatArray], FloatArray]:
    """Return what scores rows one by one, whatever else is in their list: those at its top, or the others."""
    if not isinstance(ranker, TwoStageRanker) or ranker.threshold_ is not None:
        return ranker._scores

    def scores(features: FloatArray) -> FloatArray:
        base = ranker.base_._scores_among(features, ranker._names)
        return base if ranker.coef_ is None or not top else ranker.exact_._scores(features, base)

    return scores


def _about_today(found: Found, learned: Learned) -> Iterator[str]:
    """Yield warnings about today's scores: that they are better than the ranking, or may be, or are upside down."""
    today = learned.today
    if today is None or found.more is None or found.today is None:
        return
    visits = f"{found.visits} visits" if learned.query is None else f"the first {found.visits} of each query"
    more = round(found.more.value)
    if found.more.high < 0:
        yield (
            f"{today} found more hits than this ranking among rows with known labels: {found.today.value:.0f} "
            f"against {found.hits.value:.0f} in {visits}. Keep using {today}."
        )
    elif found.more.low <= 0:
        yield (
            f"It is not clear that this ranking finds more hits than {today}: among rows with known labels the "
            f"difference is {more} hit{'s' * (more != 1)} in {visits} (90 %: {found.more.low:.0f} to "
            f"{found.more.high:.0f})."
        )
    if found.today.value < found.chance - 0.5:  # more than rounding tells apart
        yield (
            f"{today} finds fewer hits than chance where its largest values come first. If small values are the "
            "urgent ones, add a column with the negated scores and name that one."
        )


def _about_list(rows: Rows, visits: int, most: int) -> Iterator[str]:
    """Yield warnings about the rows that are listed, of each query `most` at most."""
    if rows.listed in _KNOWN:
        which = "the labelled rows themselves" if rows.listed == "own" else "the rows of the test set"
        yield (
            f"No new rows were given: the list has {which}, each scored by models trained without it. Give new "
            "rows with --new, or answer.new in a config."
        )
    if visits > most:
        which = "a query" if rows.queries is not None else rows.source
        yield f"{visits} visits are more than the {most} rows that {which} has: the list has them all."


WORDS = {
    "logistic": "logistic regression",
    "logistic_regression": "logistic regression",
    "ranknet": "RankNet",
    "rankboost": "RankBoost",
    "boosting": "boosted trees",
    "forest": "a forest",
    "network": "a neural network",
    "card": "a card of points",
}
"""Methods by name, as a page calls them."""


def ranked_by(ranker: Ranker, name: str, today: str | None = None) -> str:
    """Return how a fitted ranker ranks a list; `name` is that of its method, of two stages that of the first."""
    first = ranker.base_ if isinstance(ranker, TwoStageRanker) else ranker
    found = f"Ranked by {WORDS.get(name, name)}."
    if isinstance(first, AutoRanker):
        found = f"Ranked by {first.comparison_.said({**WORDS, TODAY: today or TODAY}, _NAMED)}."
    if isinstance(ranker, TwoStageRanker) and ranker.coef_ is not None:
        part = "list" if ranker.top_k is None else "top of the list"
        found += f" The {part} is then put in the order of a weighted sum of columns."
    return found


def warnings_of(evidence: Evidence, comparison: Comparison | None, *, tested: bool) -> Iterator[str]:
    """Yield what to know about the labelled rows and the methods before acting on a list."""
    n = len(evidence.labels)
    if (hits := int(evidence.hits.sum())) < _FEW_HITS:
        few = "labelled rows are hits: few to learn from"
        few = "rows of the test set are hits: all chances come from them" if tested else few
        yield f"Only {hits} of the {n} {few}, so every number here is rough."
    if comparison is not None and comparison.rows is not None:
        yield f"The table is large: methods were compared on fits to {comparison.rows:,} of its rows at a time."
    if comparison is not None and comparison.similar is not None:
        which = "rows that it learned from" if tested else f"{n} labelled rows"
        yield (
            f"The {which} come in about {comparison.similar} groups of similar rows, which were kept together. If "
            "these are visits of one patient or the like, name their column with --group, or data.group in a config."
        )
