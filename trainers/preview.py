"""What ``--dry-run`` prints: what a run or a sweep would compute, after everything has been checked."""

from __future__ import annotations

import datetime
import itertools
import operator
from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.text import Text

from ltr.checks import is_trusting
from ltr.threads import available_threads
from trainers.config import CARD, EXACT, Config
from trainers.files import read_json
from trainers.own_table import columns_table, understood
from trainers.plan import Cell
from trainers.records import ADVICE, INDEX
from trainers.run.experiment import check_data
from trainers.run.folder import RunFolder, check_run
from trainers.sweep.checks import Loaded
from trainers.sweep.runner import Shard, examine, missing_of, part
from trainers.tables import folded_table
from trainers.task.data import Source, Split
from trainers.task.options import too_long


def preview_run(config: Config, source: Source | None, *, fresh: bool = False) -> list[RenderableType]:
    """Return what `run_experiment` would compute, for a terminal, and raise the errors that it would raise."""
    config, split = check_data(config, source)
    folder = RunFolder(config.folder)
    goes_on = check_run(folder, config, split.facts, fresh=fresh)
    states = {method: _state(folder, method) if goes_on else "to compute" for method in config.methods}
    limits = {EXACT: config.exact.time_limit, CARD: config.card.time_limit}
    left = [method for method, state in states.items() if state != "finished"]
    unchecked = _unchecked([config])
    notes = [*split.notes, *filter(None, [too_long(config, split)]), *unchecked]
    table = None if split.tables is None else split.tables[0]
    columns = []
    if table is not None and split.preparation is not None:
        columns = list(understood(table, split.preparation.encodings_))
    names, most = split.feature_names, 12
    some = "" if table is not None else f": {', '.join(names[:most])}{', ...' * (len(names) > most)}"
    rows = [[name, state, f"{limits[name]:g} s" if name in limits else ""] for name, state in states.items()]
    return [
        _heading(f"run {config.name}", unchecked),
        Text(_data_line(config, split)),
        *([] if table is None else [Text(), columns_table(columns), Text()]),
        Text(f"{len(split.feature_names)} features{some}"),
        Text(),
        folded_table(("method", "state", "time limit"), rows, whole=("state", "time limit")),
        Text(),
        *([Text(_exact_line(config, split))] if config.exact.enabled else []),
        *map(Text, notes),
        Text(f"folder {config.folder}: {_folder_line(states, left, goes_on=goes_on, fresh=fresh and folder.begun)}"),
    ]


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


def _exact_line(config: Config, split: Split) -> str:
    whole = config.exact.top_k == "full" or bool(too_long(config, split))
    each = f" in each of {split.train.n_queries} queries" if split.by_query else ""
    which = "full list" if whole else f"top {config.exact.top_k}"
    return f"exact: ranks the {which} of {config.base}{each} by {config.exact.statistic}"


def _data_line(config: Config, split: Split) -> str:
    facts = split.facts
    where = config.data.path or f"data set {facts['name']}"
    positives = int((split.train.y > 0).sum() + (split.test.y > 0).sum())
    sizes = f"{len(split.train.y)} for training, {len(split.test.y)} for testing"
    queries = ""
    if split.by_query:
        queries = f", in {split.train.n_queries} and {split.test.n_queries} queries"
    return f"{where}: {len(split.train.y) + len(split.test.y)} rows, {positives} positive; {sizes}{queries}"


def _folder_line(states: dict[str, str], left: list[str], *, goes_on: bool, fresh: bool) -> str:
    if fresh:
        return "the run in it would be thrown away"
    if not goes_on:
        return "new"
    return f"{len(states) - len(left)} of {len(states)} methods are finished" if left else "everything is finished"


def preview_sweep(loaded: Loaded, source: str, shard: Shard) -> list[RenderableType]:
    """Return what `run_sweep` would compute, for a terminal, and raise the errors that it would raise."""
    config = loaded.config
    begun = read_json(config.folder / INDEX, ADVICE)
    whole, notes = examine(loaded.grids, source, loaded.sources)
    unchecked = _unchecked(variant.config for grid in loaded.grids for variant in grid.variants)
    notes = [*notes, *unchecked]
    cells = part(list(whole.cells.values()), shard)
    missing = missing_of(config.folder, cells)
    finished = {cell.id for cell in cells} - {cell.id for cell in missing}
    rows = []
    group = operator.attrgetter("data", "method")
    for (data, method), members in itertools.groupby(sorted(cells, key=group), key=group):
        mine = list(members)
        limits = " or ".join(f"{limit:g} s" for limit in sorted(set(map(_limit, mine)) - {0.0}))
        rows.append([data, method, str(len(mine)), str(sum(cell.id in finished for cell in mine) or ""), limits])
    most = sum(map(_limit, missing))
    headings = ("data", "method", "results", "finished", "time limit")
    text = f"{len(cells)} results, {len(finished)} of them finished; {len(missing)} to compute"
    if most:
        longest = datetime.timedelta(seconds=round(most))
        text += f"; searches take at most {longest}, shared by {available_threads()} processors"
    return [
        _heading(f"sweep {config.name}", unchecked),
        Text(),
        folded_table(headings, rows, whole=headings[2:], right=headings[2:]),
        Text(),
        *map(Text, notes),
        Text(text),
        Text(f"folder {config.folder}: {'new' if begun is None else 'the sweep in it goes on'}"),
    ]


def _limit(cell: Cell) -> float:
    """Return the seconds that the search of a cell may take, 0 without a search."""
    return {EXACT: cell.config.exact.time_limit, CARD: cell.config.card.time_limit}.get(cell.method, 0.0)
