"""What ``--dry-run`` shows: what a run or sweep would compute, read and checked as in earnest, with nothing written."""

from __future__ import annotations

import datetime
import itertools
import operator
from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.text import Text

from ltr.checks import is_trusting
from trainers.config import Config
from trainers.config.grids import Sweep
from trainers.files import read_json
from trainers.plan import time_limit
from trainers.records import ADVICE, INDEX
from trainers.run.experiment import check_data
from trainers.run.folder import RunFolder, check_run
from trainers.sweep.runner import examine, missing_of, part
from trainers.tables import folded_table
from trainers.task.data import Source, Split
from trainers.task.options import too_long


def preview_run(config: Config, source: Source | None, *, fresh: bool = False) -> list[RenderableType]:
    """Return what `run_experiment` would compute, for a terminal, and raise the errors that it would raise."""
    config, split = check_data(config, source)
    folder = RunFolder(config.folder)
    goes_on = check_run(folder, config, split.facts, fresh=fresh)
    finished = [name for name in config.methods if goes_on and folder.method(name, make=False).result() is not None]
    unchecked = _unchecked([config])
    rows = []
    for name in config.methods:
        limit, state = time_limit(config, name), "finished" if name in finished else "to compute"
        rows.append([name, state, f"{limit:g} s" if limit else ""])
    if fresh and folder.begun:
        state = "the run in it would be deleted"
    else:
        state = f"{len(finished)} of {len(rows)} methods are finished" if goes_on else "new"
    notes = [*split.notes, *filter(None, [too_long(config, split)]), *unchecked]
    return [
        _heading(f"run {config.name}", unchecked),
        Text(_data_line(config, split)),
        Text(),
        folded_table(("method", "state", "time limit"), rows),
        Text(),
        *map(Text, [*notes, f"folder {config.folder}: {state}"]),
    ]


def _heading(what: str, unchecked: Sequence[str] = ()) -> Text:
    checked = "what needs no code of others was checked" if unchecked else "everything was checked"
    return Text(f"dry run of {what}: {checked}, nothing is computed or written", style="bold")


def _unchecked(configs: Iterable[Config]) -> list[str]:
    """Return what was not checked, because that would run code, as notes."""
    names = [] if is_trusting() else dict.fromkeys(name for config in configs for name in config.code)
    return [f"not checked, for that would run code: {', '.join(names)}; --trust checks them"] if names else []


def _data_line(config: Config, split: Split) -> str:
    where = config.data.path or f"data set {split.facts['name']}"
    sizes = [len(part.y) for _, part in split.parts]
    positives = sum(int((part.y > 0).sum()) for _, part in split.parts)
    queries = f", in {split.train.n_queries} and {split.test.n_queries} queries" if split.by_query else ""
    halves = f"{sizes[0]} for training, {sizes[1]} for testing{queries}"
    return f"{where}: {sum(sizes)} rows, {positives} positive; {halves}; {len(split.feature_names)} features"


def preview_sweep(sweep: Sweep, sources: dict[str, Source], shard: tuple[int, int]) -> list[RenderableType]:
    """Return what `run_sweep` would compute, for a terminal, and raise the errors that it would raise."""
    folder = sweep.config.folder
    begun = read_json(folder / INDEX, ADVICE)
    whole, notes = examine(sweep, sources)
    unchecked = _unchecked(variant.config for grid in sweep.grids for variant in grid.variants)
    cells = part(list(whole.cells.values()), *shard)
    missing = missing_of(folder, cells)
    left = {cell.id for cell in missing}
    rows = []
    group = operator.attrgetter("data", "method")
    for (data, method), members in itertools.groupby(sorted(cells, key=group), key=group):
        mine = list(members)
        limits = sorted(filter(None, {time_limit(cell.config, method) for cell in mine}))
        finished = sum(cell.id not in left for cell in mine)
        shown = " or ".join(f"{limit:g} s" for limit in limits)
        rows.append([data, method, str(len(mine)), str(finished or ""), shown])
    headings = ("data", "method", "results", "finished", "time limit")
    text = f"{len(cells)} results, {len(cells) - len(missing)} of them finished; {len(missing)} to compute"
    if most := sum(time_limit(cell.config, cell.method) or 0.0 for cell in missing):
        text += f"; searches take at most {datetime.timedelta(seconds=round(most))} of one process"
    return [
        _heading(f"sweep {sweep.config.name}", unchecked),
        Text(),
        folded_table(headings, rows, whole=headings[2:], right=headings[2:]),
        Text(),
        *map(Text, [*notes, *unchecked, text]),
        Text(f"folder {folder}: {'new' if begun is None else 'the sweep in it goes on'}"),
    ]
