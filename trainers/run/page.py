"""The page of a run, as `ltr rank` makes it: whom to visit by the recommended ranker, and how many hits to expect.

The chances come from the test set, which no method of the run has learned from, so that every method has them. The list
has the rows of ``answer.new``, else those of the table without a label, else those of the test set.
"""

from __future__ import annotations

from dataclasses import replace

from ltr.answer import Evidence, ListFront, RowRanges, headline
from ltr.data.columns import Column
from trainers.config import CARD, EXACT, Config
from trainers.files import write_atomic
from trainers.ranking import Ranking, RawRows, evidence_of, labelled, learned_from, ranking_of, rows_to_rank
from trainers.ranking_files import EVIDENCE, HTML, LIST, write_page
from trainers.run.folder import PAGE
from trainers.run.methods import Context, load_scores
from trainers.run.predict import ranker_of
from trainers.run.results import Results, Row, demand_lines
from trainers.task.data import Split
from trainers.task.raw import test_rows


def visits_of(config: Config) -> int | None:
    """Return how many rows are to be visited: by default as many as the exact stage reranks; None where that is all."""
    if config.answer.visits is not None:
        return config.answer.visits
    return None if config.exact.top_k == "full" else int(config.exact.top_k)


def write_run_page(context: Context, results: Results) -> Results:
    """Write the page of a run and the rows that its chances come from, and return the results with its first sentence.

    There is no page of an unfinished run, of one without a recommended ranker or a number of visits, and of a ranker
    that no file holds any more.
    """
    deployed = results.deployed if results.complete else ""
    method = deployed or results.last_stage
    scores = load_scores(context.run.method(method, make=False)) if method else None
    if scores is None:
        return results
    split = context.split
    evidence = evidence_of(context.config, split.test, split.feature_names, scores.test[None])
    row = next(row for row in results.rows if row.method == method)
    ranking = _ranking(context, row, evidence) if deployed not in ("", CARD) else None
    if ranking is None:
        for name in (PAGE, HTML, LIST):  # of earlier options
            (context.run.path / name).unlink(missing_ok=True)
        write_atomic(context.run.path / EVIDENCE, evidence.to_bytes())
        return results
    write_page(ranking, context.run.path)
    return replace(results, answer=headline(ranking.answer))


def _ranking(context: Context, row: Row, evidence: Evidence) -> Ranking | None:
    config, split, visits, method = context.config, context.split, visits_of(context.config), row.method
    ranker = context.unsaved.get(method)
    if ranker is None and context.run.method(method, make=False).model.exists():
        ranker = ranker_of(context.run, method)
    if ranker is None or visits is None:
        return None
    if split.preparation is not None:
        ranker.prepare_with(split.preparation)
    table = None if split.tables is None else split.tables[0]
    ids = [] if table is None else [name for name, kind in table.kinds.items() if kind.is_id]
    config = config.changed("answer", visits=visits, id=config.answer.id or next(iter(ids), None))
    first = config.base if method == EXACT else method
    learned = learned_from(config, ranker, evidence, table, split.train, first, test=split.test)
    ranges = None if row.ranges is None else RowRanges.from_dict(row.ranges)
    front = None if row.front is None else ListFront.from_dict(row.front)
    learned = replace(learned, demands=tuple(demand_lines(row.demands)), ranges=ranges, front=front)
    raw = rows_to_rank(config, table, {} if split.frames is None else {"path": split.frames[0]})
    if raw is not None:
        return ranking_of(config, ranker, evidence, learned, raw)
    return ranking_of(config, ranker, evidence, learned, _test_rows(config, split), split.test.X)


def _test_rows(config: Config, split: Split) -> RawRows:
    """Return the rows of the test set as the list has them."""
    rows, test = test_rows(config.data, split), split.test
    if split.tables is not None:
        return replace(labelled("test", split.tables[1], test.rows, lambda: rows), own=lambda: rows)
    columns = {name: Column(name, test.X[:, at]) for at, name in enumerate(split.feature_names)}
    where = str(config.data.name or config.data.path)
    return RawRows("test", where, columns, test.rows + 1, lambda: rows, test.qid)
