"""The plan of a run or sweep: which results it consists of, and what each of them depends on.

A cell is one result to compute: a method of an experiment on one split. Its id is ``data/split/method-hash``, the hash
that of everything the result depends on: the data, the split, the method and its options, and for the exact stage the
cells whose rankers it starts from, all linear ones that the sweep has for its data and split. A changed option gives
another id, and so another record; options that do not concern a method make no cells of their own.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from trainers.config import CARD, EXACT, Config, free_keys
from trainers.config.grids import Grid, GridConfig, Variant
from trainers.config.toml_text import flat
from trainers.files import Json

# to be raised when a default or the meaning of an option changes: ids are made of the options that are set
_VERSION = 1
# `free_keys` do not change results; these choose which methods there are
_CHOICES = {"surrogate.losses", "exact.enabled", "card.enabled"}
_FILES = ("path", "test_path", "validation_path")  # the hash of the data says what is in them


@dataclass(frozen=True)
class Cell:
    """One result to compute."""

    data: str  # name of the experiment
    split: int  # seed of the split
    method: str  # name of the method
    config: Config  # the experiment; its seed is that of the split
    options: Json  # options of the method, which tell it from others of its name
    starts: tuple[str, ...]  # ids of the first-stage cells whose rankers an exact cell starts from
    base: str | None  # the one of them whose list it reranks
    recentre: str | None  # norm of the margin by which an exact answer is also moved
    digest: str  # hash of everything that the result depends on

    @property
    def id(self) -> str:
        """The text ``data/split/method-hash``, such as ``uis/0/p_norm_push_p_2-`` and the hash."""
        method = re.sub(r"[\W_]+", "_", self.method).strip("_")
        return f"{self.data}/{self.split}/{method}-{self.digest}"

    def concerns(self, key: str) -> bool:
        """Return whether a key of the config matters to this method; to an exact cell its base ranker's do, too."""
        section, _, rest = key.partition(".")
        # what the exact stage and the card maximise is reported for all methods
        if section not in (EXACT, CARD, "surrogate", "baselines") or key in ("exact.statistic", "card.statistic"):
            return True
        methods = (EXACT, self.config.base) if self.method == EXACT else (self.method,)
        return any(
            section == _section(self.config, method) and (section != "baselines" or rest.startswith(f"{method}."))
            for method in methods
        )

    def on_data(self, sha256: str) -> Cell:
        """Return this cell on data with this hash; another hash gives another id."""
        return cell_of(self.config, self.split, self.method, sha256, self.starts, self.recentre)


def cell_of(
    config: Config, split: int, method: str, sha256: str, starts: Collection[str] = (), recentre: str | None = None
) -> Cell:
    """Return the cell of a method on a split of data with a hash; an exact one has the ids of its `starts`."""
    config = config.model_copy(update={"seed": split})
    # an option that is new, with its default, changes no result and so no id
    chosen = config.model_dump(mode="json", exclude_defaults=True)
    depends = {
        "version": _VERSION,
        "data": {key: value for key, value in chosen["data"].items() if key not in _FILES},
        "sha256": sha256,
        "split": split,
        "method": method,
        "options": _options(config, method, chosen),
        "starts": sorted(starts),
        "recentre": recentre,
        "statistics": {**chosen.get("statistics", {}), "report": config.reported},
    }
    if method == EXACT:
        depends["base"] = [config.base, _options(config, config.base, chosen)]
    digest = hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:12]
    options = _options(config, method, config.model_dump(mode="json"))
    options |= {"base": config.base} if method == EXACT else {}
    base_id = cell_of(config, split, config.base, sha256).id if method == EXACT else None
    return Cell(config.name, split, method, config, options, tuple(sorted(starts)), base_id, recentre, digest)


def _section(config: Config, method: str) -> str:
    if method in (EXACT, CARD):
        return method
    return "surrogate" if method in config.surrogate.losses else "baselines"


def _options(config: Config, method: str, dumped: Json) -> Json:
    """Return the options of a method in a dumped config."""
    section = _section(config, method)
    options = dumped.get(section, {})
    if section == "baselines":
        path = config.baselines.estimators.get(method)
        return dict(options.get(method, {})) if path is None else {"estimator": str(path)}
    return {key: value for key, value in options.items() if f"{section}.{key}" not in free_keys() | _CHOICES}


@dataclass(frozen=True)
class Plan:
    """All cells of a run or sweep."""

    cells: dict[str, Cell]  # cells by id, those that others start from first
    index: list[Json]  # what tables are made of: the ``grids`` of `trainers.records`


def plan_of_run(config: Config, sha256: str) -> Plan:
    """Return the plan of a run: that of a sweep of one experiment and one split."""
    grid = GridConfig(experiments=(config.name,), splits=(config.seed,))
    return plan([Grid(grid, (Variant({}, config),))], {config.name: sha256})


def plan(grids: Sequence[Grid], sha256: Mapping[str, str]) -> Plan:
    """Return the plan of a sweep."""
    first: dict[tuple[str, int], dict[str, Cell]] = {}
    for grid in grids:
        for variant, seed in itertools.product(grid.variants, grid.config.seeds):
            group = first.setdefault((variant.config.name, seed), {})
            asked = _methods(grid, variant)
            for method in variant.config.methods if EXACT in asked else asked:
                if method not in (EXACT, CARD):  # a card has no weights to start from
                    cell = cell_of(variant.config, seed, method, sha256[variant.config.name])
                    group.setdefault(cell.id, cell)
    cells = {cell.id: cell for group in first.values() for cell in group.values()}
    index = []
    for grid in grids:
        entries: dict[tuple[str, str], Json] = {}
        for variant, seed in itertools.product(grid.variants, grid.config.seeds):
            config, starts = variant.config, first[variant.config.name, seed]
            for method in _methods(grid, variant):
                extra = (starts, grid.config.recentre) if method == EXACT else ()
                cell = cell_of(config, seed, method, sha256[config.name], *extra)
                cells.setdefault(cell.id, cell)
                # a list as its text, which can be a key
                values = {key: json.dumps(v) if isinstance(v, list) else v for key, v in variant.varied.items()}
                concerned = {key: value for key, value in values.items() if cell.concerns(key)}
                entry = {"id": cell.id, "data": cell.data, "split": seed, "method": method, "varied": concerned}
                entry |= {} if cell.base is None else {"base": cell.base}
                entries.setdefault((cell.id, method), entry)
        names = {name: getattr(grid.config, name) for name in ("name", "title", "best_of")}
        index.append({**names, "varied": list(flat(grid.config.vary)), "cells": list(entries.values())})
    return Plan(cells, index)


def _methods(grid: Grid, variant: Variant) -> tuple[str, ...]:
    config, asked = variant.config, grid.config.methods
    named = config.methods if asked is None else {config.method_named(text) for text in asked}
    return tuple(method for method in config.methods if method in named)


def time_limit(config: Config, method: str) -> float | None:
    """Return the seconds that the search of a method may take; None without a search."""
    return {EXACT: config.exact.time_limit, CARD: config.card.time_limit}.get(method)
