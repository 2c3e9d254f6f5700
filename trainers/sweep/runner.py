"""A sweep under way: which results are missing, who computes them, and what the user sees.

Workers write the file of a result themselves, so that finished work is kept whatever is killed. Surrogates and
baselines come first, because exact stages start from their rankers.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ltr.data import DataError
from trainers.config import EXACT
from trainers.config.errors import ConfigError, Finding
from trainers.config.grids import Grid
from trainers.display import Display
from trainers.files import RunError, locked, read_json, remove_leftovers, write_json, writing
from trainers.plan import Cell, Plan, plan
from trainers.provenance import origin
from trainers.records import ADVICE, CELLS, INDEX, cell_file, read_cell, read_sweep, write_cell
from trainers.stopping import stopped_once
from trainers.sweep.checks import Loaded, first_configs, load_and_check, read_sources
from trainers.sweep.workers import Workers, open_pool
from trainers.task.data import Labels, Source, Split, split_of
from trainers.task.options import check_columns, check_lists, follow_labels, too_long


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, 1 to count, of a sweep that several machines share."""

    number: int = 1
    count: int = 1


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
    loaded: Loaded | None = None,
) -> Outcome:
    """Compute the cells of a sweep that have no result yet.

    Args:
        path: config of the sweep.
        overrides: ``key=value`` for the sweep or for all its experiments.
        workers: processes that compute; as many as there are processors by default.
        shard: part of the sweep to compute; all of it by default.
        known: another sweep's folder, or a file of its results (`trainers.records`); those that this sweep needs are
            taken over.
        display: what the user sees; nothing by default.
        loaded: the sweep, if it has been read.

    Raises:
        ConfigError: the config has mistakes, all of them named.
        DataError: data cannot be read, all of them named.
        RunError: another process is writing to the folder, or workers died.
        KeyboardInterrupt: the user stopped it.
    """
    workers, shard, display = workers or Workers(), shard or Shard(), display or Display()
    with stopped_once():
        loaded = load_and_check(path, overrides) if loaded is None else loaded
        config = loaded.config
        try:
            earlier = None if known is None else read_sweep(known)
        except RunError as error:
            raise RunError(f"--from: {error}") from None
        whole, notes = examine(loaded.grids, str(path), loaded.sources)
        for text in notes:
            display.note(text)
        with writing(config.folder, "runs_dir"):
            config.folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(config.folder)
        with locked(config.folder, f".lock-{shard.number}-of-{shard.count}"):
            with writing(config.folder, "runs_dir"):
                # the index stays where the plan is the same as before
                index, before = {"name": config.name, "grids": whole.index}, read_json(config.folder / INDEX, ADVICE)
                foreign = (path for path in config.folder.iterdir() if not path.name.startswith("."))
                if before is None and not (config.folder / CELLS).is_dir() and any(foreign):
                    advice = "remove it yourself, or choose another name"
                    raise RunError(f"name: {config.folder} holds other files than a sweep's; {advice}")
                if before is None or {key: before.get(key) for key in index} != json.loads(json.dumps(index)):
                    begun_with = origin() if earlier is None else earlier.origin
                    write_json(config.folder / INDEX, {**index, "origin": begun_with})
                if earlier is not None:
                    found = (record for record in earlier.records if record["id"] in whole.cells)
                    taken = [record for record in found if not cell_file(config.folder, record["id"]).exists()]
                    for record in taken:
                        write_cell(config.folder, record)
                    display.note(f"{len(taken)} results taken over from {known}")
            return _compute_missing(config.folder, part(list(whole.cells.values()), shard), workers, display)


def missing_of(folder: Path, cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that have no result in a sweep's folder, or a damaged one, which the worker reports."""
    missing = []
    for cell in cells:
        try:
            if read_cell(folder, cell.id) is None:
                missing.append(cell)
        except RunError:
            missing.append(cell)
    return missing


def _compute_missing(folder: Path, mine: Sequence[Cell], workers: Workers, display: Display) -> Outcome:
    missing = missing_of(folder, mine)
    outcome = Outcome(folder, len(mine), len(mine) - len(missing))
    if not missing:
        return outcome
    with open_pool(workers, len(missing)) as pool:
        display.begin_sweep(len(mine), len(missing), pool.at_once, workers.threads)
        for exact in (False, True):
            cells = [cell for cell in missing if (cell.method == EXACT) == exact]
            for cell, answer in pool.answers(folder.absolute(), cells):
                outcome.failures += [answer.failure] if answer.failure else []
                display.finished(cell, answer)
    return outcome


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


def examine(
    grids: Sequence[Grid], source: str = "sweep", sources: Mapping[str, Source] | None = None
) -> tuple[Plan, list[str]]:
    """Read the data of each experiment before anything is computed, so that everything missing is named at once.

    `sources` are data that have been read.

    Returns:
        the plan, with defaults that suit the labels; notes on lists to rerank that are longer than the data.

    Raises:
        DataError: data cannot be read; the message names all of them.
        ConfigError: experiments ask for what does not go with data by query; `source` is named as their origin.
    """
    pairs = [(grid, variant.config) for grid in grids for variant in grid.variants]
    read = read_sources(grids, known=sources)
    hashes = {name: one.sha256 for name, one in read.items()}
    splits: dict[str, Split] = {}
    for name, config in first_configs(grids).items():
        seeds = dict.fromkeys(seed for grid, other in pairs if other.name == name for seed in grid.config.seeds)
        for seed in seeds:  # until one can be used; where none can, the cells will report it
            with contextlib.suppress(DataError):
                splits[name] = split_of(config.data, seed, read[name])
                break
    notes = [
        f"{config.name}: {text}"
        for grid, config in pairs
        if config.name in splits and EXACT in (grid.config.methods or config.methods)
        if (text := too_long(config, splits[config.name]))
    ]
    labels = {name: split.labels for name, split in splits.items()}
    resolved = tuple(_following(grid, labels) for grid in grids)
    if findings := [finding for grid in resolved for finding in _findings(grid, splits)]:
        raise ConfigError(source, list({str(finding): finding for finding in findings}.values()))
    return plan(resolved, hashes), list(dict.fromkeys(notes))


def _following(grid: Grid, labels: Mapping[str, Labels]) -> Grid:
    """Return a grid with experiments whose defaults suit their labels."""
    configs = (variant.config for variant in grid.variants)
    suited = (follow_labels(one, labels[one.name]) if one.name in labels else one for one in configs)
    variants = (replace(variant, config=config) for variant, config in zip(grid.variants, suited, strict=True))
    return replace(grid, variants=tuple(variants))


def _findings(grid: Grid, splits: Mapping[str, Split]) -> Iterator[Finding]:
    """Yield what a grid asks of data that does not go with them, or with a choice."""
    for config in (variant.config for variant in grid.variants if variant.config.name in splits):
        try:
            check_lists(config, splits[config.name].labels)
            check_columns(config, splits[config.name])
        except ConfigError as error:
            for finding in error.findings:
                yield replace(finding, path=f"{config.name}: {finding.path}")
        if (
            grid.config.recentre is not None
            and EXACT in (grid.config.methods or config.methods)
            and config.exact.choose
        ):
            rule = f"moves the best weights of a list: {config.name} needs exact.choose = false"
            yield Finding(f"grid {grid.config.name!r}: recentre", rule, grid.config.recentre)
    known = dict.fromkeys(name for variant in grid.variants for name in variant.config.methods)
    for name in grid.config.methods or ():
        if name not in known:
            rule = f"must be methods of the experiments; with these labels {', '.join(known)}"
            yield Finding("grid.methods", rule, name)
