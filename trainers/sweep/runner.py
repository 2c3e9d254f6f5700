"""A sweep under way: which results are missing, who computes them, and what the user sees.

Workers write the file of a result themselves, so that finished work is kept whatever is killed. Surrogates and
baselines come first, because exact stages start from their rankers. Nothing that takes seconds is imported until
results are computed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ltr.checks import in_one_message
from ltr.data import DataError
from ltr.threads import available_threads
from trainers.config import EXACT, Config
from trainers.config.errors import ConfigError, Finding
from trainers.config.grids import Sweep
from trainers.display import Display
from trainers.files import RunError, locked, read_json, remove_leftovers, write_json, writing
from trainers.plan import Cell, Plan, plan
from trainers.records import ADVICE, CELLS, INDEX, cell_file, origin, read_cell, read_sweep, write_cell
from trainers.task.data import Source, Split, is_quick, read_source, split_of
from trainers.task.options import config_for, too_long


@dataclass
class Outcome:
    """How a start of a sweep ended."""

    folder: Path  # folder of the sweep
    cells: int  # number of cells of this shard
    before: int  # number of them that were finished already
    failures: list[str] = field(default_factory=list)  # reasons why cells have no result


def run_sweep(
    sweep: Sweep,
    *,
    sources: Mapping[str, Source] | None = None,
    jobs: int | None = None,
    threads: int = 1,
    shard: tuple[int, int] = (1, 1),
    known: Path | None = None,
    display: Display | None = None,
) -> Outcome:
    """Compute the cells of a sweep that have no result yet.

    Args:
        sweep: the sweep.
        sources: data that have been read, by the name of the experiment.
        jobs: cells at the same time; one for each `threads` processors by default.
        threads: threads of each cell.
        shard: part of the sweep to compute, (1, 3) for the first of three parts.
        known: another sweep's folder, or a file of its results (`trainers.records`); those that this sweep needs are
            taken over.
        display: what the user sees; nothing by default.

    Raises:
        DataError: data cannot be read, all of them named.
        ConfigError: options do not go with the data.
        RunError: another process is writing to the folder, or workers died.
        KeyboardInterrupt: the user stopped it.
    """
    display, folder = display or Display(), sweep.config.folder
    try:
        earlier = None if known is None else read_sweep(known)
    except RunError as error:
        raise RunError(f"--from: {error}") from None
    whole, notes = examine(sweep, sources)
    for text in notes:
        display.note(text)
    with locked(folder, f".lock-{shard[0]}-of-{shard[1]}"):
        with writing(folder, "runs_dir"):
            remove_leftovers(folder)
            _begin(sweep, whole, {} if earlier is None else earlier.origin)
            if earlier is not None:
                found = (record for record in earlier.records if record["id"] in whole.cells)
                taken = [record for record in found if not cell_file(folder, record["id"]).exists()]
                for record in taken:
                    write_cell(folder, record)
                display.note(f"{len(taken)} results taken over from {known}")
        mine = part(list(whole.cells.values()), *shard)
        missing = missing_of(folder, mine)
        outcome = Outcome(folder, len(mine), len(mine) - len(missing))
        if not missing:
            return outcome
        from trainers.sweep.workers import open_pool

        jobs = min(len(missing), jobs or max(1, available_threads() // threads))
        display.begin_sweep(len(mine), len(missing), jobs, threads)
        with open_pool(jobs, threads) as answers:
            for exact in (False, True):
                cells = [cell for cell in missing if (cell.method == EXACT) == exact]
                for cell, answer in answers(folder.absolute(), cells):
                    outcome.failures += [answer] if isinstance(answer, str) else []
                    display.finished(cell, answer)
        return outcome


def _begin(sweep: Sweep, whole: Plan, origin_of_others: Mapping[str, object]) -> None:
    """Write the index of the sweep's folder, unless that of an earlier start has the same plan."""
    folder = sweep.config.folder
    index, before = {"name": sweep.config.name, "grids": whole.index}, read_json(folder / INDEX, ADVICE)
    foreign = (path for path in folder.iterdir() if not path.name.startswith("."))
    if before is None and not (folder / CELLS).is_dir() and any(foreign):
        raise RunError(f"name: {folder} holds other files than a sweep's; remove it yourself, or choose another name")
    if before is None or {key: before.get(key) for key in index} != json.loads(json.dumps(index)):
        write_json(folder / INDEX, {**index, "origin": origin_of_others or origin()})


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


def part(cells: Sequence[Cell], number: int, count: int) -> list[Cell]:
    """Return part `number` of `count`, from 1: whole splits of data sets, dealt out in turn."""
    splits = sorted({(cell.data, cell.split) for cell in cells})
    mine = set(splits[number - 1 :: count])
    return [cell for cell in cells if (cell.data, cell.split) in mine]


def read_sources(
    sweep: Sweep, known: Mapping[str, Source] | None = None, *, only_quick: bool = False
) -> dict[str, Source]:
    """Read the data of each experiment, by its name, except for `known` ones.

    With `only_quick`, data are left for later whose reading imports what takes seconds. A `DataError` names all data
    that cannot be read.
    """
    found = dict(known or {})
    unreadable = []
    for name, config in sweep.experiments.items():
        try:
            config.data.check_files()
            if name not in found and (is_quick(config.data) or not only_quick):
                found[name] = read_source(config.data)
        except DataError as error:
            unreadable.append(f"{name}: {error}")
    if unreadable:
        raise DataError(in_one_message("", unreadable, "data sets cannot be used"))
    return found


def examine(sweep: Sweep, sources: Mapping[str, Source] | None = None) -> tuple[Plan, list[str]]:
    """Read all data before anything is computed, so that everything wrong with them is named at once.

    Returns:
        the plan, with defaults that suit the labels; notes on lists to rerank that are longer than the data.

    Raises:
        DataError: data cannot be read; the message names all of them.
        ConfigError: experiments ask for what does not go with their data.
    """
    read = read_sources(sweep, sources)
    splits: dict[str, Split | None] = {}
    for name, config in sweep.experiments.items():
        grids = (grid for grid in sweep.grids if any(variant.config.name == name for variant in grid.variants))
        splits[name] = _usable_split(config, (seed for grid in grids for seed in grid.config.seeds), read[name])
    findings: list[Finding] = []
    notes: list[str] = []
    resolved = []
    for grid in sweep.grids:
        variants = []
        for variant in grid.variants:
            config = variant.config
            if (split := splits[config.name]) is not None:
                exact = EXACT in (grid.config.methods or config.methods)
                if exact and (text := too_long(config, split)):
                    notes.append(f"{config.name}: {text}")
                if exact and grid.config.recentre is not None and config.exact.choose:
                    rule = f"moves the best weights of a list: {config.name} needs exact.choose = false"
                    findings.append(Finding(f"grid {grid.config.name!r}: recentre", rule, grid.config.recentre))
                try:
                    config = config_for(config, split)
                except ConfigError as error:
                    findings += [replace(one, path=f"{config.name}: {one.path}") for one in error.findings]
            variants.append(replace(variant, config=config))
        resolved.append(replace(grid, variants=tuple(variants)))
    if findings:
        raise ConfigError(sweep.source, findings)
    return plan(resolved, {name: one.sha256 for name, one in read.items()}), list(dict.fromkeys(notes))


def _usable_split(config: Config, seeds: Iterable[int], source: Source) -> Split | None:
    """Return the first split of the data that can be used; None where none can, which the cells will report."""
    for seed in dict.fromkeys(seeds):
        with contextlib.suppress(DataError):
            return split_of(config.data, seed, source)
    return None
