"""The data of a sweep: read once before anything is computed, so that all that is missing is named at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ltr.data import DataError
from trainers.config import EXACT, Config
from trainers.config.errors import ConfigError, Finding
from trainers.config.grids import Grid
from trainers.task.data import Labels, Split, data_sha256, split_of
from trainers.task.measures import too_long
from trainers.task.queries import check_lists, follow_labels

__all__ = ["Examined", "examine"]


@dataclass(frozen=True)
class Examined:
    """What there is to know of the data of a sweep.

    Attributes:
        grids: of the sweep, with defaults that go with the labels.
        hashes: SHA-256 of the data of each experiment, by its name.
        notes: on lists to rerank that are longer than the data.
    """

    grids: tuple[Grid, ...]
    hashes: dict[str, str]
    notes: list[str]


def examine(grids: Sequence[Grid], source: str = "sweep") -> Examined:
    """Look at the data of each experiment before anything is computed.

    Args:
        grids: of the sweep.
        source: what errors name as the origin of the configs.

    Raises:
        DataError: data that cannot be read, all of them named.
        ConfigError: what experiments ask of data by query that those do not have.
    """
    seeds: dict[str, list[int]] = {}
    configs: dict[str, list[Config]] = {}
    exact: dict[str, list[Config]] = {}
    for grid in grids:
        for variant in grid.variants:
            seeds.setdefault(variant.config.name, []).extend(grid.config.seeds)
            configs.setdefault(variant.config.name, []).append(variant.config)
            if EXACT in (grid.config.methods or variant.config.methods):
                exact.setdefault(variant.config.name, []).append(variant.config)
    hashes: dict[str, str] = {}
    labels: dict[str, Labels] = {}
    unreadable, notes = [], []
    findings: list[Finding] = []
    for name, of_name in configs.items():
        try:
            hashes[name] = data_sha256(of_name[0].data)
        except DataError as error:
            unreadable.append(f"{name}: {error}")
            continue
        split = _some_split(of_name[0], dict.fromkeys(seeds[name]))
        if split is not None:
            labels[name] = split.labels
            notes += _too_long(exact.get(name, ()), split)
    if unreadable:
        many = [f"{len(unreadable)} data sets cannot be used", *unreadable]
        raise DataError("\n  ".join(many if unreadable[1:] else unreadable))
    resolved = tuple(_following(grid, labels) for grid in grids)
    for grid in resolved:
        findings += _by_query(grid, labels)
    if findings:
        raise ConfigError(source, list({str(finding): finding for finding in findings}.values()))
    return Examined(resolved, hashes, notes)


def _following(grid: Grid, labels: Mapping[str, Labels]) -> Grid:
    """The grid with experiments whose defaults go with their labels."""
    variants = (
        replace(variant, config=follow_labels(variant.config, labels[variant.config.name]))
        if variant.config.name in labels
        else variant
        for variant in grid.variants
    )
    return replace(grid, variants=tuple(variants))


def _some_split(config: Config, seeds: Iterable[int]) -> Split | None:
    """A split that can be used; None where none can, which its cells will say."""
    for seed in seeds:
        try:
            return split_of(config.data, seed)
        except DataError:
            continue
    return None


def _by_query(grid: Grid, labels: Mapping[str, Labels]) -> Iterator[Finding]:
    """What a grid asks of data by query that those do not have."""
    for config in (variant.config for variant in grid.variants if variant.config.name in labels):
        try:
            check_lists(config, labels[config.name])
        except ConfigError as error:
            for finding in error.findings:
                yield Finding(f"{config.name}: {finding.path}", finding.rule, finding.value)
    known = dict.fromkeys(name for variant in grid.variants for name in variant.config.methods)
    for name in grid.config.methods or ():
        if name not in known:
            yield Finding(
                "grid.methods", f"must be methods of the experiments; with these labels {', '.join(known)}", name
            )


def _too_long(configs: Sequence[Config], split: Split) -> list[str]:
    found = [f"{config.name}: {text}" for config in configs if (text := too_long(config, split))]
    return list(dict.fromkeys(found))
