"""What is checked before a sweep begins: its config, and the data of all its experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ltr.checks import in_one_message
from ltr.data import DataError
from trainers.config import Config
from trainers.config.grids import Grid, SweepConfig, load_sweep
from trainers.task.data import Source, is_quick, read_source


@dataclass(frozen=True)
class Loaded:
    """The config of a sweep, with the data that were quick to read."""

    config: SweepConfig  # the sweep
    grids: tuple[Grid, ...]  # its experiments
    sources: Mapping[str, Source]  # data by the name of the experiment


def load_and_check(path: str | Path, overrides: Sequence[str] = ()) -> Loaded:
    """Read the config of a sweep, and the data that can be read before anything that takes seconds is imported.

    Raises:
        ConfigError: the config has mistakes, all of them named.
        DataError: data cannot be read, all of them named.
    """
    config, grids = load_sweep(path, overrides)
    return Loaded(config, grids, read_sources(grids, only_quick=True))


def read_sources(
    grids: Sequence[Grid], known: Mapping[str, Source] | None = None, *, only_quick: bool = False
) -> dict[str, Source]:
    """Read the data of each experiment.

    Args:
        grids: the experiments.
        known: data that have been read, by the name of the experiment.
        only_quick: whether to leave data for later that need imports of seconds.

    Raises:
        DataError: data cannot be read; the message names all of them.
    """
    found = dict(known or {})
    unreadable = []
    for name, config in first_configs(grids).items():
        try:
            config.data.check_files()
            if name not in found and (is_quick(config.data) or not only_quick):
                found[name] = read_source(config.data)
        except DataError as error:
            unreadable.append(f"{name}: {error}")
    if unreadable:
        raise DataError(in_one_message("", unreadable, "data sets cannot be used"))
    return found


def first_configs(grids: Sequence[Grid]) -> dict[str, Config]:
    """Return a config for each name of an experiment; those of one name have the same data."""
    found: dict[str, Config] = {}
    for grid in grids:
        for variant in grid.variants:
            found.setdefault(variant.config.name, variant.config)
    return found
