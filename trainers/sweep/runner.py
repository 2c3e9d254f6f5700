"""A sweep under way: which results are missing, who computes them, and what the user sees.

Workers write the file of a result themselves, so that finished work is kept whatever is killed. Surrogates and
baselines come first, because exact stages start from their rankers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainers.config import EXACT
from trainers.config.grids import SweepConfig, load_sweep
from trainers.display import Display
from trainers.files import Json, RunError, locked, read_json, remove_leftovers, write_json, writing
from trainers.plan import Cell, Plan, plan
from trainers.provenance import origin
from trainers.records import ADVICE, CELLS, INDEX, SweepResults, cell_file, read_cell, read_sweep, write_cell
from trainers.stopping import stopped_once
from trainers.sweep.data import examine
from trainers.sweep.workers import Workers, open_pool


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, 1 to count, of a sweep that several machines share."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read a shard, ``i/N``."""
        number, slash, count = text.partition("/")
        if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            raise RunError(f"--shard: must be i/N with 1 <= i <= N, got {text!r}")
        return cls(int(number), int(count))


@dataclass
class Outcome:
    """How a start of a sweep ended."""

    folder: Path  # folder of the sweep
    cells: int  # number of cells of this shard
    before: int  # number of them that were finished already
    failures: list[str] = field(default_factory=list)  # reasons why cells have no result


def run_sweep(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    workers: Workers | None = None,
    shard: Shard | None = None,
    known: Path | None = None,
    display: Display | None = None,
) -> Outcome:
    """Compute the cells of a sweep that have no result yet.

    Args:
        path: config of the sweep.
        overrides: ``key=value`` for the sweep or for all its experiments.
        workers: processes that compute; as many as there are processors by default.
        shard: part of the sweep to compute; all of it by default.
        known: another sweep's folder, or a file of its results (`trainers.records`): results that this sweep needs,
            too, are taken over.
        display: what the user sees; nothing by default.

    Raises:
        ConfigError: the config has mistakes, all of them named.
        DataError: data cannot be read, all of them named.
        RunError: another process is writing to the folder, or workers died.
        KeyboardInterrupt: the user stopped it.
    """
    workers, shard, display = workers or Workers(), shard or Shard(), display or Display()
    with stopped_once():
        config, grids = load_sweep(path, overrides)
        earlier = None if known is None else _known(known)
        data = examine(grids, str(path))
        for text in data.notes:
            display.note(text)
        whole = plan(data.grids, data.hashes)
        with writing(config.folder, "runs_dir"):
            config.folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(config.folder)
        with locked(config.folder, f".lock-{shard.number}-of-{shard.count}"):
            with writing(config.folder, "runs_dir"):
                _write_index(config, whole, origin() if earlier is None else earlier.origin)
                if earlier is not None:
                    taken = _take_over(config.folder, whole, earlier.records)
                    display.note(f"{taken} results taken over from {known}")
            return _compute_missing(config.folder, part(list(whole.cells.values()), shard), workers, display)


def _compute_missing(folder: Path, mine: Sequence[Cell], workers: Workers, display: Display) -> Outcome:
    missing = [cell for cell in mine if not _finished(folder, cell)]
    outcome = Outcome(folder, len(mine), len(mine) - len(missing))
    if not missing:
        return outcome
    with open_pool(workers, len(missing)) as pool:
        display.begin_sweep(len(mine), missing, pool.name, pool.at_once, workers.threads)
        for exact in (False, True):
            cells = [cell for cell in missing if (cell.method == EXACT) == exact]
            for cell, answer in pool.answers(folder.absolute(), cells):
                outcome.failures += [answer.failure] if answer.failure else []
                display.finished(cell, answer)
    return outcome


def _finished(folder: Path, cell: Cell) -> bool:
    """Return whether a cell has a result; a damaged file is reported by the worker that is to compute it."""
    try:
        return read_cell(folder, cell.id) is not None
    except RunError:
        return False


def part(cells: Sequence[Cell], shard: Shard) -> list[Cell]:
    """Return the cells of a shard: whole splits of data sets, dealt out so that shards take about equally long."""
    groups: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.data, cell.split), []).append(cell)
    costs = {key: sum(cell.cost for cell in members) for key, members in groups.items()}
    loads = [0.0] * shard.count
    mine = set()
    for key in sorted(groups, key=lambda key: (-costs[key], key)):
        least = loads.index(min(loads))
        loads[least] += costs[key]
        if least == shard.number - 1:
            mine.add(key)
    return [cell for cell in cells if (cell.data, cell.split) in mine]


def _write_index(config: SweepConfig, whole: Plan, begun_with: Json) -> None:
    """Write which results make which table, and the origin; the file stays where the plan is the same as before."""
    folder = config.folder
    before = read_json(folder / INDEX, ADVICE)
    begun = before is not None or (folder / CELLS).is_dir()
    if not begun and any(not p.name.startswith(".") for p in folder.iterdir()):
        raise RunError(f"name: {folder} holds other files than a sweep's; remove it yourself, or choose another name")
    index = {"name": config.name, "grids": whole.index}
    if before is None or {key: before.get(key) for key in index} != json.loads(json.dumps(index)):
        write_json(folder / INDEX, {**index, "origin": begun_with})


def _known(path: Path) -> SweepResults:
    try:
        return read_sweep(path)
    except RunError as error:
        raise RunError(f"--from: {error}") from None


def _take_over(folder: Path, whole: Plan, earlier: Sequence[Json]) -> int:
    """Write the results of another sweep that are in the plan, and return their number."""
    new = [r for r in earlier if r["id"] in whole.cells and not cell_file(folder, r["id"]).exists()]
    for record in new:
        write_cell(folder, record)
    return len(new)
