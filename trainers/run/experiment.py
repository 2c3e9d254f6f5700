"""A run: surrogates, baselines, the exact stage, the table; what is finished is never computed again.

Rudin & Wang (2018), section 2.1: a base ranker orders the whole list, the exact stage reranks the part at or above its
K-th training score. The exact stage starts from every linear ranker of the run, so that on that list its statistic is
at least theirs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ltr.data import TableError
from ltr.fitting import FitOptions
from ltr.metrics.ranked import Ties
from ltr.rankers.constraint_checks import check_weights
from ltr.weight_constraints import WeightConstraints
from trainers.config import AUTO, CARD, EXACT, Config
from trainers.display import Display
from trainers.files import Json, RunError, write_atomic, writing
from trainers.loggers import check_loggers
from trainers.methods import INTERRUPTED, binding_constraints
from trainers.ranking import check_rows, encodings_of_features, problems_of_answer, rows_to_rank
from trainers.run.folder import open_run
from trainers.run.methods import Context, load_base_scores, load_scores, run_method
from trainers.run.page import write_overview, write_run_page
from trainers.run.results import Results, RunSource, is_unproven, row_of, write_results
from trainers.stopping import StopFlag
from trainers.tables import NOTHING_PROVEN, number
from trainers.task.data import Source, Split, read_source, split_of
from trainers.task.measures import Scores, Task
from trainers.task.options import config_for, too_long


def run_experiment(
    config: Config,
    *,
    fresh: bool = False,
    display: Display | None = None,
    source: Source | Split | None = None,
    page: bool = True,
) -> Results:
    """Run the experiment of a config, or go on with it, in the folder ``runs_dir/name``.

    Ctrl-C (and KeyboardInterrupt from the display) stops it between two steps; the results so far are written and
    returned with ``complete`` False, and the next call goes on from there.

    Args:
        config: the experiment.
        fresh: throw away an earlier run of this name.
        display: what the user sees; nothing by default.
        source: the data, if they have been read or even split.
        page: whether to make the page of the recommended ranker, once all methods are finished.

    Raises:
        ValueError: a `DataError`, `ConfigError` or `RunError` says what cannot be used, or go on.
    """
    display = Display() if display is None else display
    try:
        FitOptions(device=config.surrogate.device).torch_device()
    except ValueError as error:
        raise RunError(f"surrogate.{error}") from None
    check_loggers(config.tracking.loggers)
    display.wait("reading the data")
    config, split = check_data(config, source)
    display.wait("preparing the run")
    with open_run(config, split.facts, fresh=fresh) as run, StopFlag() as stop:
        context = Context(config, split, run, display, stop)
        records: list[Json] = []
        for note in (f"data: {text}" for text in split.notes):
            display.note(note)
        with writing(run.path, "runs_dir"):
            if split.preparation is not None:
                write_atomic(run.preparation, split.preparation.to_json().encode())
            write_overview(context, None)
            try:
                with contextlib.suppress(KeyboardInterrupt):
                    for method in config.methods:
                        records.append(_run_or_read(context, method, records))
                        if records[-1]["status"] == INTERRUPTED:
                            break
                        stop.check()
            finally:
                # however the run ended, there is a table of what is finished
                results = _results(context, records)
                write_results(run, results)
                if page:
                    results = write_run_page(context, results)
                    write_results(run, results)
                write_overview(context, results)
    return results


def check_data(config: Config, source: Source | Split | None = None) -> tuple[Config, Split]:
    """Split the data and check that the config goes with them; return the config with defaults that suit the labels.

    `source` has the data, if they have been read or even split.
    """
    source = read_source(config.data) if source is None else source
    split = source if isinstance(source, Split) else split_of(config.data, config.seed, source)
    config = config_for(config, split)
    table = None if split.tables is None else split.tables[0]
    if table is not None and (problems := list(problems_of_answer(table, config))):
        raise TableError(table.where, problems)
    if config.answer.new is not None and (raw := rows_to_rank(config, table)) is not None:
        encodings = encodings_of_features(split.preparation, split.feature_names)
        check_rows(raw, encodings, config.answer.id, new_values=config.answer.new_values)
    return config, split


def _run_or_read(context: Context, method: str, records: Sequence[Json]) -> Json:
    folder = context.run.method(method)
    record = folder.result()
    if record is None:
        folder.reopen()
        try:
            record = run_method(context, method, records)
        except RunError:
            raise
        except ValueError as error:  # options that the config allows, but not with these data
            raise RunError(f"{method}: {error}") from error
        context.display.end(method, _summary(row_of(record)))
    else:
        context.display.note(f"{method}: finished earlier")
    return record


def _summary(row: Json) -> str:
    name, first = next(iter(row["train"].items()))
    text = f"{row['status']}, {row['seconds']:.1f} s, train {name} {number(first)}, test {number(row['test'][name])}"
    if row["bound"] is None:
        return text
    gap = f" of a perfect order: {NOTHING_PROVEN}" if is_unproven(row) else f", gap {number(row['gap'], '{:.2%}')}"
    value = "" if row["objective"] is None else f"value {number(row['objective'])}, "
    return f"{text}, {value}bound {number(row['bound'])}{gap}"


def _results(context: Context, records: Sequence[Json]) -> Results:
    config, split, exact = context.config, context.split, context.config.exact
    base = top = on_top = None
    # an exact stage that corrects a fitted base cuts its list by other scores: those out of fold
    own_list = exact.score_column is None and (exact.choose or exact.base_score is True)
    bound = binding_constraints(config, split.feature_names)
    if exact.enabled:
        each = f" in each of {split.train.n_queries} queries" if split.by_query else ""
        top = f"{context.top} of {config.base}{each}"
        top += ", fitted under the constraints" * (bound is not None) + " (scores out of fold)" * own_list
        base = load_base_scores(context.run, config.base)
    scored = {record["method"]: load_scores(context.run.method(record["method"])) for record in records}
    found = next((record.get("list") or {} for record in records if record["method"] == EXACT), {})
    rows = []
    for record, scores in zip(records, scored.values(), strict=True):
        if own_list:
            on_top = found.get("base") if record["method"] == config.base and bound is None else None
        elif base is not None:
            on_top = None if scores is None else context.statistic_on_top(base, scores)
        ties: Ties = config.card.ties if record["method"] == CARD else "resolved"
        hits = None if scores is None else context.first_k(scores, ties)
        periods = None if scores is None else context.by_period(scores.test, ties)
        rows.append(row_of(record, on_top, hits, periods))
        for name, values in (record.get("compared") or {}).get("methods", {}).items():
            other = {"method": f"{AUTO}: {name}", "status": "compared", "seconds": 0.0, **values}
            rows.append(row_of(other, first_k=values["first_k"]))
    notes = [_note_by_query(context) if split.by_query else too_long(config, split), _note_on_weights(config)]
    notes += [*_notes_on_constraints(context, records, bound), _note_on_demands(context, scored)]
    return Results(
        name=config.name,
        statistics=context.reported,
        top=top,
        priced=exact.C > 0,
        complete=[one["method"] for one in records if one["status"] != INTERRUPTED] == list(config.methods),
        rows=tuple(rows),
        on_list=exact.statistic,
        note="\n".join(filter(None, notes)),
        positives=None if split.by_query else int((split.test.y > 0).sum()),
        by_query=split.by_query,
        base=config.base if exact.enabled else "",
        source=RunSource(context.run, Task(config, split)),
    )


def _note_on_weights(config: Config) -> str:
    """Return which values count rows by their weights, an empty text where none has any."""
    if not config.data.weighs:
        return ""
    by = [] if config.data.weight is None else [repr(config.data.weight)]
    by += [] if config.data.positive_weight is None else [f"data.positive_weight = {config.data.positive_weight}"]
    weighted = "the convex loss" + (f", {config.exact.statistic} on list and bound" if config.exact.enabled else "")
    weighted += ", and the gains that exact.choose expects" if config.exact.enabled and config.exact.choose else ""
    return f"weights: training counts rows by {' times '.join(by)}, and so do {weighted}; all else counts them alike"


def _notes_on_constraints(context: Context, records: Sequence[Json], bound: WeightConstraints | None) -> Iterator[str]:
    """Yield which constraints hold, and which methods do not satisfy them; nothing without constraints."""
    if bound is None:
        return
    against = []
    for record in records:
        if (found := record.get("constraints")) is not None:
            yield "constraints: " + "; ".join(f"{demand} ({how})" for demand, how in found["checks"])
        if record["method"] not in (CARD, EXACT):
            weights = None if record["weights"] is None else np.array(record["weights"])
            columns = context.split.feature_names
            if weights is None or not all(check.holds for check in check_weights(weights, bound, columns)):
                against.append(record["method"])
    if against:
        yield f"not under the constraints, for comparison only: {', '.join(against)}"


def _note_on_demands(context: Context, scored: Mapping[str, Scores | None]) -> str:
    """Return which methods do not meet the demands on the training list; an empty text without demands."""
    first = scored.items() if context.config.exact.demands else ()
    against = [
        method
        for method, scores in first
        if method not in (CARD, EXACT) and scores is not None and not context.meets_demands(scores.train)
    ]
    return f"not meeting the demands, for comparison only: {', '.join(against)}" if against else ""


def _note_by_query(context: Context) -> str:
    """Return how values by query are to be read."""
    config, split = context.config, context.split
    first, shown = config.reported[0], context.reported[0]
    gain = "2^label - 1" if config.statistics.gain == "exp2" else "its value"
    empty = "are left out" if config.statistics.empty == "skip" else f"count {config.statistics.empty}"
    sets = (("training", split.train), ("test", split.test))
    counts = " and ".join(f"{part.empty_queries} of {part.n_queries} {name}" for name, part in sets)
    means = f"{shown} is the mean over queries of {first} divided by its best value"
    on_list = f"; {first} on list and bound are sums over queries" if config.exact.enabled else ""
    return f"{means}{on_list}; the gain of a label is {gain}; queries without a label above 0 ({counts}) {empty}"
