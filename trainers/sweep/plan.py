"""The cells that the grids of a sweep consist of.

A cell is one method of one variant on one split. Options that do not concern a method make no cells of their own: of a
grid that varies ``exact.top_k`` each surrogate is one cell a split. An exact cell starts from all linear rankers that
the sweep has for its data and split, and those of its experiment that no grid asks for are cells of the sweep too.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainers.config import EXACT
from trainers.sweep.cells import Cell, exact_cell, first_stage_cell
from trainers.sweep.grids import Grid, Variant
from trainers.toml_text import flat

__all__ = ["Plan", "plan"]

Tree = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """All cells of a sweep.

    Attributes:
        cells: by id, those that others start from first.
        index: what tables are made of: for each grid its name, title, ``best_of``, the keys varied, and its ``cells``,
            each with ``id``, ``data``, ``split``, ``method`` and ``varied`` (lists as text), exact ones with the id of
            their ``base``.
    """

    cells: dict[str, Cell]
    index: list[Tree]


def plan(grids: Sequence[Grid], sha256: Mapping[str, str]) -> Plan:
    """The cells of the grids.

    Args:
        grids: of the sweep.
        sha256: of the data, by the name of the experiment.
    """
    first: dict[tuple[str, int], dict[str, Cell]] = {}
    for grid in grids:
        for variant, seed in itertools.product(grid.variants, grid.config.seeds):
            group = first.setdefault((variant.config.name, seed), {})
            exact = EXACT in _methods(grid, variant)
            for method in variant.config.methods if exact else _methods(grid, variant):
                if method != EXACT:
                    cell = first_stage_cell(variant.config, seed, method, sha256[variant.config.name])
                    group.setdefault(cell.id, cell)
    cells = {cell.id: cell for group in first.values() for cell in group.values()}
    index = []
    for grid in grids:
        entries: dict[tuple[str, str], Tree] = {}
        for variant, seed in itertools.product(grid.variants, grid.config.seeds):
            config, starts = variant.config, first[variant.config.name, seed]
            for method in _methods(grid, variant):
                if method == EXACT:
                    cell = exact_cell(config, seed, starts, grid.config.recentre, sha256[config.name])
                else:
                    cell = first_stage_cell(config, seed, method, sha256[config.name])
                cells.setdefault(cell.id, cell)
                concerned = {key: _shown(value) for key, value in variant.varied.items() if cell.concerns(key)}
                entry = {"id": cell.id, "data": cell.data, "split": seed, "method": method, "varied": concerned}
                entry |= {} if cell.base is None else {"base": cell.base}
                entries.setdefault((cell.id, method), entry)
        options = grid.config
        index.append(
            {
                "name": options.name,
                "title": options.title,
                "best_of": options.best_of,
                "varied": list(flat(options.vary)),
                "cells": list(entries.values()),
            }
        )
    return Plan(cells, index)


def _shown(value: Any) -> Any:  # noqa: ANN401  (any of TOML)
    """A varied value as tables name it: a list as its text, which can be a key."""
    return json.dumps(value) if isinstance(value, list) else value


def _methods(grid: Grid, variant: Variant) -> tuple[str, ...]:
    return tuple(m for m in variant.config.methods if grid.config.methods is None or m in grid.config.methods)
