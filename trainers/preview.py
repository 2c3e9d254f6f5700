"""What ``--dry-run`` prints: what a run, a sweep or a card would compute, after everything has been checked."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ltr.cards.card import statistic_name
from ltr.checks import is_trusting
from ltr.data import Table
from ltr.statistics import LOG_LOSS
from ltr.threads import available_threads
from trainers.cards import label_name, parts_of_card
from trainers.config import CARD, EXACT, Config
from trainers.files import Json, RunError, read_json, to_json
from trainers.own_table import columns_table, understood
from trainers.plan import Cell
from trainers.records import ADVICE, INDEX
from trainers.run.checks import check_data, notes_on_saving
from trainers.run.folder import RunFolder, check_run
from trainers.sweep.checks import Loaded
from trainers.sweep.runner import Shard, examine, missing_of, part
from trainers.tables import folded_table
from trainers.task.data import Source, Split
from trainers.task.options import too_long
from trainers.task.raw import asked_columns, not_asked


@dataclass(frozen=True)
class Preview:
    """What would be computed, as JSON and in words."""

    content: Json  # everything, for programs
    parts: tuple[RenderableType, ...]  # the same for a terminal


def preview_run(config: Config, source: Source | None, width: int, *, fresh: bool = False) -> Preview:
    """Return what `trainers.run.experiment.run_experiment` would compute; nothing is written.

    Raises:
        DataError: the data cannot be used.
        ConfigError: the config differs from that of the run to continue, or does not go with the data.
        RunError: the run folder cannot be used, or the data have changed since the run began.
    """
    config, split = check_data(config, source)
    folder = RunFolder(config.folder)
    goes_on = check_run(folder, config, split.facts, fresh=fresh)
    states = {method: _state(folder, method) if goes_on else "to compute" for method in config.methods}
    limits = {EXACT: config.exact.time_limit, CARD: config.card.time_limit}
    left = [method for method, state in states.items() if state != "finished"]
    unchecked = _unchecked([config])
    notes = [*split.notes, *filter(None, [too_long(config, split)]), *notes_on_saving(config, split), *unchecked]
    table = None if split.tables is None else split.tables[0]
    columns = []
    if table is not None and split.preparation is not None:
        columns = list(understood(table, split.preparation.encodings_))
    content: Json = {
        "name": config.name,
        "folder": str(config.folder),
        "continues": goes_on,
        "data": {**split.facts, "training_rows": len(split.train.y), "test_rows": len(split.test.y)},
        "columns": [vars(column) for column in columns],
        "methods": [
            {"method": method, "state": state, "time_limit": limits.get(method)} for method, state in states.items()
        ],
        "exact": _exact_stage(config, split),
        "notes": notes,
    }
    rows = [[name, state, f"{limits[name]:g} s" if name in limits else ""] for name, state in states.items()]
    shown = content["exact"]
    parts: list[RenderableType] = [
        _heading(f"run {config.name}", unchecked),
        Text(_data_line(config, split)),
        *([] if table is None else [Text(), columns_table(columns, width), Text()]),
        Text(f"{len(split.feature_names)} features{'' if table is not None else ': ' + _some(split.feature_names)}"),
        Text(),
        folded_table(("method", "state", "time limit"), rows, width, whole=("state", "time limit")),
        Text(),
        *([] if shown is None else [Text(f"exact: ranks the {shown['list']} by {shown['statistic']}")]),
        *map(Text, notes),
        Text(f"folder {config.folder}: {_folder_line(states, left, goes_on=goes_on, fresh=fresh and folder.begun)}"),
    ]
    return Preview(to_json(content), tuple(parts))


def _heading(what: str, unchecked: Sequence[str] = ()) -> Text:
    checked = "what needs no code of others was checked" if unchecked else "everything was checked"
    return Text(f"dry run of {what}: {checked}, nothing is computed or written", style="bold")


def _unchecked(configs: Iterable[Config]) -> list[str]:
    """Return what was not checked, because that would run code, as notes."""
    if is_trusting():
        return []
    names = dict.fromkeys(name for config in configs for name in config.code)
    return [f"not checked, for that would run code: {', '.join(names)}; --trust checks them"] if names else []


def _state(folder: RunFolder, method: str) -> str:
    files = folder.method(method, make=False)
    if files.result() is not None:
        return "finished"
    return "begun" if files.checkpoint.exists() or files.inner.exists() or files.solution.exists() else "to compute"


def _exact_stage(config: Config, split: Split) -> Json | None:
    if not config.exact.enabled:
        return None
    whole = config.exact.top_k == "full" or bool(too_long(config, split))
    each = f" in each of {split.train.n_queries} queries" if split.by_query else ""
    words = f"{'full list' if whole else f'top {config.exact.top_k}'} of {config.base}{each}"
    found = {"list": words, "top_k": config.exact.top_k, "base": config.base, "choose": config.exact.choose}
    return found | {"statistic": config.exact.statistic, "time_limit": config.exact.time_limit}


def _data_line(config: Config, split: Split) -> str:
    facts = split.facts
    where = config.data.path or f"data set {facts['name']}"
    positives = int((split.train.y > 0).sum() + (split.test.y > 0).sum())
    sizes = f"{len(split.train.y)} for training, {len(split.test.y)} for testing"
    queries = ""
    if split.by_query:
        queries = f", in {split.train.n_queries} and {split.test.n_queries} queries"
    return f"{where}: {len(split.train.y) + len(split.test.y)} rows, {positives} positive; {sizes}{queries}"


def _some(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _folder_line(states: dict[str, str], left: list[str], *, goes_on: bool, fresh: bool) -> str:
    if fresh:
        return "the run in it would be thrown away"
    if not goes_on:
        return "new"
    return f"{len(states) - len(left)} of {len(states)} methods are finished" if left else "everything is finished"


def preview_sweep(loaded: Loaded, source: str, shard: Shard, width: int) -> Preview:
    """Return what `trainers.sweep.runner.run_sweep` would compute; nothing is written.

    Raises:
        DataError: data cannot be read, all of them named.
        ConfigError: experiments ask for what does not go with their data.
        RunError: a damaged index in the folder.
    """
    config = loaded.config
    begun = read_json(config.folder / INDEX, ADVICE)
    whole, notes = examine(loaded.grids, source, loaded.sources)
    unchecked = _unchecked(variant.config for grid in loaded.grids for variant in grid.variants)
    notes = [*notes, *unchecked]
    cells = part(list(whole.cells.values()), shard)
    missing = missing_of(config.folder, cells)
    finished = {cell.id for cell in cells} - {cell.id for cell in missing}
    groups: list[Json] = []
    for (data, method), members in itertools.groupby(sorted(cells, key=_group), key=_group):
        mine = list(members)
        limits = sorted({limit for cell in mine if (limit := _limit(cell)) is not None})
        counts = {"results": len(mine), "finished": sum(cell.id in finished for cell in mine)}
        groups.append({"data": data, "method": method, **counts, "time_limits": limits})
    most = sum(_limit(cell) or 0.0 for cell in missing)
    counts = {"results": len(cells), "finished": len(finished), "missing": len(missing)}
    content: Json = {"name": config.name, "folder": str(config.folder), "continues": begun is not None, **counts}
    content |= {"seconds_of_searches": most, "groups": groups, "notes": notes}
    rows = [
        [one["data"], one["method"], f"{one['results']}", f"{one['finished'] or ''}", _seconds(one["time_limits"])]
        for one in groups
    ]
    headings = ("data", "method", "results", "finished", "time limit")
    text = f"{len(cells)} results, {len(finished)} of them finished; {len(missing)} to compute"
    if most:
        longest = datetime.timedelta(seconds=round(most))
        text += f"; searches take at most {longest}, shared by {available_threads()} processors"
    parts: list[RenderableType] = [
        _heading(f"sweep {config.name}", unchecked),
        Text(),
        folded_table(headings, rows, width, whole=headings[2:], right=headings[2:]),
        Text(),
        *map(Text, notes),
        Text(text),
        Text(f"folder {config.folder}: {'new' if begun is None else 'the sweep in it goes on'}"),
    ]
    return Preview(to_json(content), tuple(parts))


def _group(cell: Cell) -> tuple[str, str]:
    return cell.data, cell.method


def _limit(cell: Cell) -> float | None:
    return {EXACT: cell.config.exact.time_limit, CARD: cell.config.card.time_limit}.get(cell.method)


def _seconds(limits: Sequence[float]) -> str:
    return " or ".join(f"{limit:g} s" for limit in limits)


def preview_card(config: Config, table: Table, test: float, width: int) -> Preview:
    """Return what ``ltr card`` would search through.

    Raises:
        RunError: a table without a column that a card may ask about.
    """
    options = config.card
    sizes = {used: len(rows) for used, rows in parts_of_card(table, config.seed, test).items()}
    try:
        asked = list(asked_columns(table, slice(0, 0), table.kinds))
    except ValueError as error:
        raise RunError(f"{table.where}: {error}") from None
    notes = [*table.notes, *not_asked(table.kinds)]
    label = label_name(config.data, table.labels)
    limits: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("statistic", "max_questions", "points", "cuts", "demands", "time_limit")
    }
    content: Json = {"table": table.where, "label": label, "rows": sizes, "columns": asked, **limits}
    content["notes"] = notes
    happened = int((table.y > 0).sum())
    what = "with an event" if table.time_to_event is not None else "positive"
    counted = f"{happened} {what}" if table.treatment is None else f"{int(table.treatment.sum())} treated"
    rows = ", ".join(f"{n} for {used.replace('test', 'testing')}" for used, n in sizes.items())
    parts: list[RenderableType] = [
        _heading(f"a card for {label}"),
        Text(f"{table.where}: {len(table.y)} rows, {counted}; {rows}"),
        Text(f"columns to ask about: {', '.join(asked)}"),
        *map(Text, notes),
        Text(
            f"at most {options.max_questions} questions of at most {options.points} points, "
            f"the {'smallest' if options.statistic == LOG_LOSS else 'largest'} {statistic_name(options.statistic)}; "
            f"the search takes at most {options.time_limit:g} s"
        ),
        *(Text(f"demanded: {text}") for text in options.demands),
    ]
    return Preview(to_json(content), tuple(parts))
