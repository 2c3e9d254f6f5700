"""An experiment: surrogates, baselines, the exact stage, the table; what is finished is never computed twice.

Rudin & Wang (2018), section 2.1: a base ranker orders the whole list, the exact stage the part at or above its K-th
training score. The exact stage starts from every linear ranker of the run, so that on that list its statistic is
at least theirs.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Sequence

import torch
from matplotlib.figure import Figure

from ltr.fitting import FitOptions
from trainers.baselines import fit_baseline
from trainers.by_query import check_lists, count_empty, follow_labels, unset_following
from trainers.config import EXACT, Config
from trainers.context import Context, load_scores
from trainers.display import Display
from trainers.exact_stage import keep_certificate, run_exact_stage
from trainers.figures import RankedList, ranked_list_figure
from trainers.files import reading, write_atomic, writing
from trainers.helpers import Helpers
from trainers.inputs import glimpse, load_split
from trainers.results import NOTHING_PROVEN, Results, Row, markdown_tables, number, write_results
from trainers.runs import RunError, check_run, open_run
from trainers.stopping import StopFlag
from trainers.surrogates import train_surrogate
from trainers.task import ranked_labels, statistic_of, too_long
from trainers.tracking import chart_layout, write_overview

__all__ = ["run_experiment"]

_OVERVIEW = "results"
"""The TensorBoard run that belongs to no method."""


def run_experiment(
    config: Config, *, fresh: bool = False, display: Display | None = None, helpers: Helpers | None = None
) -> Results:
    """Run the experiment of a config, or go on with it, in the folder ``runs_dir/name``.

    Ctrl-C (and KeyboardInterrupt from the display) stops it between two steps; the results so far are written and
    returned with ``complete`` False, and the next call goes on from there.

    Args:
        config: of the run.
        fresh: throw away an earlier run of this name.
        display: what the user sees; nothing by default.
        helpers: processes that help to train the surrogates; none by default.

    Raises:
        DataError: data that cannot be used.
        ConfigError: a config that differs from that of the run to continue, or asks of data by query what those do not
            have.
        RunError: a run folder or an option that cannot be used.
    """
    display = Display() if display is None else display
    _check_device(config)
    # as much as can be told before the data are read, which may take minutes
    early = glimpse(config.data)
    check_lists(follow_labels(config, early), early)
    check_run(config, fresh=fresh, undecided=unset_following(config))
    split = load_split(config)
    config = follow_labels(config, split.labels)
    check_lists(config, split.labels)
    with open_run(config, split.facts, fresh=fresh) as run, StopFlag() as stop:
        context = Context(config, split, run, display, stop, Helpers() if helpers is None else helpers)
        rows: list[Row] = []
        with writing(run.path, "runs_dir"):
            _write_overview(context, None)
            try:
                _run_all(context, rows)
            finally:
                # what is there is worth a table, whatever ended the run
                results = _results(context, rows)
                write_results(run, results)
                _write_overview(context, results)
    return results


def _run_all(context: Context, rows: list[Row]) -> None:
    """Append the row of each method until all are done or the user stops the run."""
    try:
        for name in context.config.methods:
            if name not in context.config.surrogate.losses:
                context.helpers.release()
            rows.append(_run_or_read(context, name, rows))
            if rows[-1].status == _INTERRUPTED:
                return
            context.stop.check()
    except KeyboardInterrupt:
        return


_INTERRUPTED = "interrupted"


def _run_or_read(context: Context, name: str, rows: Sequence[Row]) -> Row:
    folder = context.run.method(name)
    if (finished := folder.result()) is not None:
        with reading(folder.row):
            row = Row.from_json(finished)
        context.display.note(f"{name}: finished earlier")
        if name == EXACT:
            keep_certificate(context, again=True)
        return row
    folder.reopen()
    try:
        row = _method(context, name, rows)()
    except RunError:
        raise
    except ValueError as error:
        # options that the config allows, but not with these data
        raise RunError(f"{name}: {error}") from error
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        advice = "what is finished is kept: take fewer rows, features or hidden units, or more memory"
        raise RunError(f"{name}: not enough memory; {advice}") from error
    context.display.end(name, _summary(row))
    if name == EXACT and row.status != _INTERRUPTED:
        keep_certificate(context)
    return row


def _is_out_of_memory(error: BaseException) -> bool:
    # torch has no type of its own for the processor's memory
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _method(context: Context, name: str, rows: Sequence[Row]) -> Callable[[], Row]:
    # methods without steps draw level lines as long as the longest training
    longest = max((row.steps or 0 for row in rows), default=0)
    if name == EXACT:
        return lambda: run_exact_stage(context, rows, level_to=longest)
    if name in context.config.surrogate.losses:
        return lambda: train_surrogate(context, name)
    return lambda: fit_baseline(context, name, level_to=longest)


def _summary(row: Row) -> str:
    parts = [row.status, f"{row.seconds:.1f} s"]
    parts += [f"train {name} {number(value)}, test {number(row.test[name])}" for name, value in row.train.items()][:1]
    if row.bound is not None:
        gap = f" of a perfect order: {NOTHING_PROVEN}" if row.nothing_proven else f", gap {number(row.gap, '{:.2%}')}"
        value = "" if row.objective is None else f"value {number(row.objective)}, "
        parts.append(f"{value}bound {number(row.bound)}{gap}")
    return ", ".join(parts)


def _check_device(config: Config) -> None:
    try:
        FitOptions(device=config.surrogate.device).torch_device()
    except ValueError as error:
        raise RunError(f"surrogate.{error}") from None


def _results(context: Context, rows: Sequence[Row]) -> Results:
    config = context.config
    top = None
    if config.exact.enabled:
        each = f" in each of {context.split.train.n_queries} queries" if context.split.by_query else ""
        top = f"{context.top} of {config.exact.base}{each}"
        rows = _with_top(context, rows)
    done = [row.method for row in rows if row.status != _INTERRUPTED]
    return Results(
        config.name,
        context.reported,
        top,
        config.exact.C > 0,
        done == list(config.methods),
        tuple(rows),
        on_list=config.exact.statistic,
        note=_note_by_query(context) if context.split.by_query else too_long(config, context.split),
        base=config.exact.base if config.exact.enabled else "",
    )


def _note_by_query(context: Context) -> str:
    """How values by query are to be read."""
    config, split = context.config, context.split
    first, shown = config.reported[0], context.reported[0]
    gain = "2^label - 1" if config.statistics.gain == "exp2" else "label"
    empty = "are left out" if config.statistics.empty == "skip" else f"count {config.statistics.empty}"
    counts = " and ".join(
        f"{count_empty(half)} of {half.n_queries} {name}"
        for name, half in (("training", split.train), ("test", split.test))
    )
    means = f"{shown} is the mean over queries of {first} divided by its best value"
    on_list = f"; {first} on list and bound are sums over queries" if config.exact.enabled else ""
    return f"{means}{on_list}; a label is worth {gain}; queries without a label above 0 ({counts}) {empty}"


def _with_top(context: Context, rows: Sequence[Row]) -> list[Row]:
    """The rows with their statistic on the reranked list, once there is one."""
    base = load_scores(context.run.method(context.config.exact.base))
    if base is None:
        return list(rows)
    with_top = []
    for row in rows:
        scores = load_scores(context.run.method(row.method))
        value = None if scores is None else context.statistic_on_top(base, scores)
        with_top.append(dataclasses.replace(row, top=value))
    return with_top


def _write_overview(context: Context, results: Results | None) -> None:
    """Layout of the charts, the table and the pictures, as a TensorBoard run of its own."""
    config = context.config
    if not config.tracking.tensorboard and not config.tracking.figures:
        return
    figures = _figures(context) if results is not None and config.tracking.figures else {}
    for half, figure in figures.items():
        picture = io.BytesIO()
        figure.savefig(picture, format="png")
        write_atomic(context.run.path / f"ranked_list_{half}.png", picture.getvalue())
    if config.tracking.tensorboard:
        write_overview(
            context.run.path / _OVERVIEW,
            chart_layout(context.reported, context.top, config.exact.statistic),
            texts={} if results is None else {f"results/{tag}": text for tag, text in markdown_tables(results).items()},
            figures={f"ranked_list/{half}": figure for half, figure in figures.items()},
        )


def _figures(context: Context) -> dict[str, Figure]:
    exact = context.config.exact
    base, after = (load_scores(context.run.method(name)) for name in (exact.base, EXACT))
    if not exact.enabled or base is None or after is None or context.split.by_query:
        return {}
    threshold = base.train[context.reranked(base)].min()
    figures = {}
    for half, before, later, y in (
        ("training", base.train, after.train, context.split.train.y),
        ("test", base.test, after.test, context.split.test.y),
    ):
        reranked = int((before >= threshold).sum())
        ranked = RankedList(f"{half} half", ranked_labels(before, y), ranked_labels(later, y), reranked)
        values = (statistic_of(before, y, exact.statistic), statistic_of(later, y, exact.statistic))
        figures[half] = ranked_list_figure(ranked, base=exact.base, statistic=exact.statistic, values=values)
    return figures
