"""What shows a whole run: its page, as `ltr rank` makes it, and its overview in TensorBoard.

The chances of the page come from the test set, which no method of the run has learned from, so that every method has
them. Its list has the rows of ``answer.new``, else those of the table without a label, else those of the test set.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from ltr.answer import Evidence, RowRanges, headline
from ltr.data.columns import Column
from ltr.data.table_files import GivenTable
from ltr.display.figures import ranked_list_figure
from trainers.config import CARD, EXACT, Config
from trainers.files import Json, write_atomic
from trainers.loggers import RESULTS, Charts, Loggers, event_tag
from trainers.ranking import Ranking, RawRows, evidence_of, labelled, learned_from, ranking_of, rows_to_rank
from trainers.ranking_files import EVIDENCE, HTML, LIST, write_page
from trainers.run.folder import PAGE
from trainers.run.methods import Context, load_base_scores, load_scores
from trainers.run.predict import ranker_of
from trainers.run.results import Results, demand_lines, markdown_tables, proven_in
from trainers.task.data import Split
from trainers.task.measures import ranked_labels, statistic_of
from trainers.task.raw import test_rows

_SETS = (("train", "training"), ("test", "test"))  # names in tags, and in words


def visits_of(config: Config) -> int | None:
    """Return how many rows are to be visited: by default as many as the exact stage reranks; None where that is all."""
    if config.answer.visits is not None:
        return config.answer.visits
    return None if config.exact.top_k == "full" else int(config.exact.top_k)


def write_run_page(context: Context, results: Results) -> Results:
    """Write the page of a run and the rows that its chances come from, and return the results with its first sentence.

    An unfinished run has no page, nor has one without a recommended ranker or a number of visits.
    """
    deployed = results.deployed if results.complete else ""
    method = deployed or results.last_stage
    scores = load_scores(context.run.method(method, make=False)) if method else None
    if scores is None:
        return results
    split = context.split
    evidence = evidence_of(context.config, split.test, split.feature_names, scores.test[None])
    row = next(row for row in results.rows if row["method"] == method)
    ranking = _ranking(context, row, evidence) if deployed not in ("", CARD) else None
    if ranking is None:
        for name in (PAGE, HTML, LIST):  # of earlier options
            (context.run.path / name).unlink(missing_ok=True)
        write_atomic(context.run.path / EVIDENCE, evidence.to_bytes())
        return results
    write_page(ranking, context.run.path)
    return replace(results, answer=headline(ranking.answer))


def _ranking(context: Context, row: Json, evidence: Evidence) -> Ranking | None:
    config, split, visits, method = context.config, context.split, visits_of(context.config), row["method"]
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
    named: dict[str, Any] = {"ranges" if isinstance(one, RowRanges) else "front": one for one in proven_in(row)}
    learned = replace(learned, demands=tuple(demand_lines(row["demands"])), **named)
    raw = rows_to_rank(config, table)
    if raw is not None:
        return ranking_of(config, ranker, evidence, learned, raw)
    return ranking_of(config, ranker, evidence, learned, _test_rows(config, split), split.test.X)


def _test_rows(config: Config, split: Split) -> RawRows:
    """Return the rows of the test set as the list has them."""
    test = split.test
    if split.tables is not None:
        return labelled("test", split.tables[1], test.rows)
    columns = {name: Column(name, test.X[:, at]) for at, name in enumerate(split.feature_names)}
    frame = test_rows(split).reindex(range(1 + test.rows.max()))  # other rows of the file are empty
    given = GivenTable(str(config.data.name or config.data.path), columns, frame=frame)
    return RawRows("test", given, test.rows, columns, test.qid)


def write_overview(context: Context, results: Results | None) -> None:
    """Write charts, table and pictures as a TensorBoard run of their own, and the pictures also as PNG files."""
    options = context.config.tracking
    figures = _figures(context) if results is not None and options.figures else {}
    for name, figure in figures.items():
        picture = io.BytesIO()
        figure.savefig(picture, format="png")
        write_atomic(context.run.path / f"ranked_list_{name}.png", picture.getvalue())
    # before the first result there is only the layout of the charts
    names = options.loggers if results is not None else [name for name in options.loggers if name == "tensorboard"]
    if not names:
        return
    with Loggers(names, context.run.path / RESULTS, context.config.name, RESULTS) as loggers:
        charts = chart_layout(context.reported, context.top, context.config.exact.statistic)
        loggers.each("log_charts", charts)
        for tag, text in {} if results is None else markdown_tables(results).items():
            loggers.each("log_text", f"results/{tag}", text)
        for name, figure in figures.items():
            loggers.each("log_figure", f"ranked_list/{name}", figure)
    for failure in loggers.failures:
        context.display.note(f"results: {failure}")


def _figures(context: Context) -> dict[str, Figure]:
    """Draw the lists of the training and test sets, where both stages are finished."""
    exact = context.config.exact
    base, after = load_base_scores(context.run, context.config.base), load_scores(context.run.method(EXACT))
    if not exact.enabled or base is None or after is None or context.split.by_query:
        return {}
    threshold = base.train[context.reranked(base)].min()
    figures = {}
    for name, before, later, y in (
        ("training", base.train, after.train, context.split.train.y),
        ("test", base.test, after.test, context.split.test.y),
    ):
        reranked = int((before >= threshold).sum())
        orders = ranked_labels(before, y), ranked_labels(later, y)
        values = (statistic_of(before, y, exact.statistic), statistic_of(later, y, exact.statistic))
        figures[name] = ranked_list_figure(
            f"{name} set", *orders, reranked, base=context.config.base, statistic=exact.statistic, values=values,
            k=None if exact.top_k == "full" else min(int(exact.top_k), len(y)), share=float((y > 0).mean()),
        )  # fmt: skip
    return figures


def chart_layout(statistics: Sequence[str], top: str, on_list: str) -> Charts:
    """Return custom charts: the convex loss beside the first statistic, and incumbent and bound of the exact stage.

    The exact stage maximises `on_list` on the reranked list `top`.
    """
    first, *others = statistics
    beside = {"convex loss": ["loss/convex"]}
    beside |= {f"{first} on the {part} set": [f"{tag}/{first}"] for tag, part in _SETS}
    exact = {
        f"{on_list} on the {top}: incumbent and bound (step = ms)": ["exact/incumbent", "exact/bound"],
        "relative gap (step = ms)": ["exact/gap"],
    }
    more = {f"{name} on the {part} set": [f"{tag}/{name}"] for name in others for tag, part in _SETS}
    charts = {"Convex loss beside the rank statistic": beside, "Exact stage": exact, "Other statistics": more}
    # TensorBoard takes the tags of a chart as regular expressions
    return {
        title: {name: ["Multiline", [f"^{re.escape(event_tag(tag))}$" for tag in tags]] for name, tags in lines.items()}
        for title, lines in charts.items()
        if lines
    }
