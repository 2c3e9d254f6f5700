"""The data of a sweep: read once before anything is computed, so that everything missing is named at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ltr.data import DataError
from trainers.config import EXACT, Config
from trainers.config.errors import ConfigError, Finding
from trainers.config.grids import Grid
from trainers.task.data import Labels, Split, data_sha256, split_of
from trainers.task.measures import too_long
from trainers.task.queries import check_lists, follow_labels


@dataclass(frozen=True)
class Examined:
    """The data of a sweep as far as its plan needs them."""

    grids: tuple[Grid, ...]  # grids of the sweep, with defaults that suit the labels
    hashes: dict[str, str]  # SHA-256 of the data of each experiment, by its name
    notes: list[str]  # notes on lists to rerank that are longer than the data


def examine(grids: Sequence[Grid], source: str = "sweep") -> Examined:
    """Read the data of each experiment before anything is computed.

    Raises:
        DataError: data cannot be read; the message names all of them.
        ConfigError: experiments ask for what does not go with data by query; `source` is named as their origin.
    """
    pairs = [(grid, variant.config) for grid in grids for variant in grid.variants]
    first: dict[str, Config] = {}
    for _, config in pairs:
        first.setdefault(config.name, config)
    hashes: dict[str, str] = {}
    splits: dict[str, Split] = {}
    unreadable = []
    for name, config in first.items():
        try:
            hashes[name] = data_sha256(config.data)
        except DataError as error:
            unreadable.append(f"{name}: {error}")
            continue
        seeds = dict.fromkeys(seed for grid, other in pairs if other.name == name for seed in grid.config.seeds)
        if (split := _usable_split(config, seeds)) is not None:
            splits[name] = split
    if unreadable:
        many = [f"{len(unreadable)} data sets cannot be used", *unreadable]
        raise DataError("\n  ".join(many if unreadable[1:] else unreadable))
    notes = [
        f"{config.name}: {text}"
        for grid, config in pairs
        if config.name in splits and EXACT in (grid.config.methods or config.methods)
        if (text := too_long(config, splits[config.name]))
    ]
    labels = {name: split.labels for name, split in splits.items()}
    resolved = tuple(_following(grid, labels) for grid in grids)
    if findings := [finding for grid in resolved for finding in _findings(grid, labels)]:
        raise ConfigError(source, list({str(finding): finding for finding in findings}.values()))
    return Examined(resolved, hashes, list(dict.fromkeys(notes)))


def _usable_split(config: Config, seeds: Iterable[int]) -> Split | None:
    """Return a split that can be used; None where there is none, which its cells will report."""
    for seed in seeds:
        with contextlib.suppress(DataError):
            return split_of(config.data, seed)
    return None


def _following(grid: Grid, labels: Mapping[str, Labels]) -> Grid:
    """Return a grid with experiments whose defaults suit their labels."""
    configs = (variant.config for variant in grid.variants)
    suited = (follow_labels(one, labels[one.name]) if one.name in labels else one for one in configs)
    variants = (replace(variant, config=config) for variant, config in zip(grid.variants, suited, strict=True))
    return replace(grid, variants=tuple(variants))


def _findings(grid: Grid, labels: Mapping[str, Labels]) -> Iterator[Finding]:
    """Yield what a grid asks of data by query that does not go with them."""
    for config in (variant.config for variant in grid.variants if variant.config.name in labels):
        try:
            check_lists(config, labels[config.name])
        except ConfigError as error:
            for finding in error.findings:
                yield replace(finding, path=f"{config.name}: {finding.path}")
    known = dict.fromkeys(name for variant in grid.variants for name in variant.config.methods)
    for name in grid.config.methods or ():
        if name not in known:
            rule = f"must be methods of the experiments; with these labels {', '.join(known)}"
            yield Finding("grid.methods", rule, name)
