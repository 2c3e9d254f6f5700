"""The tables of a sweep as series: by data set and variant, along one option, and joined where they ask the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainers.config import EXACT
from trainers.files import Json
from trainers.records import SweepResults
from trainers.report.series import (
    TIME_LIMIT,
    Series,
    Variant,
    in_order,
    key_name,
    mean_of,
    other_options,
    statistic_of_sweep,
)

__all__ = ["Along", "Row", "SweepTable", "joined", "tables_of", "without_repeats"]

Row = Mapping[Variant, Series]
"""The series of a data set."""


@dataclass(frozen=True)
class SweepTable:
    """What the grids of one name hold.

    Attributes:
        name: of the grids.
        title: of the first that has one, else empty.
        rows: the series by data set, without those not begun; variants in the order of the grids, the exact ones last.
    """

    name: str
    title: str
    rows: Mapping[str, Row]

    @property
    def heading(self) -> str:
        """The title, or else the name."""
        return self.title or self.name

    @property
    def variants(self) -> list[Variant]:
        """All variants, in the order of the first data set that has them; the exact ones last."""
        found = dict.fromkeys(variant for row in self.rows.values() for variant in row)
        return sorted(found, key=lambda variant: variant.method == EXACT)

    @cached_property
    def exact(self) -> dict[str, Row]:
        """The series of the exact stage, by data set; without data sets that have none."""
        found = {data: {v: s for v, s in row.items() if v.method == EXACT} for data, row in self.rows.items()}
        return {data: row for data, row in found.items() if row}

    @property
    def keys(self) -> frozenset[str]:
        """What is varied of the exact stage."""
        return frozenset(key for row in self.exact.values() for variant in row for key, _ in variant.varied)

    @cached_property
    def asked(self) -> frozenset[str]:
        """The options of its exact cells that are not varied, as text."""
        every = (series for row in self.exact.values() for series in row.values())
        return frozenset().union(*(_asked(series, self.keys) for series in every))

    def along(self, key: str) -> list[Along]:
        """The exact series along an option, once for each choice of the other varied ones.

        Args:
            key: of the config.
        """
        found: dict[tuple[tuple[str, Any], ...], dict[str, dict[Any, Series]]] = {}
        for data, row in self.exact.items():
            for variant, series in row.items():
                choice = dict(variant.varied)
                if key in choice:
                    value = choice.pop(key)
                    found.setdefault(tuple(choice.items()), {}).setdefault(data, {})[value] = series
        return [
            Along(self, key, held, {data: {v: row[v] for v in sorted(row, key=in_order)} for data, row in rows.items()})
            for held, rows in found.items()
        ]


def _asked(series: Series, without: Iterable[str]) -> frozenset[str]:
    return frozenset(other_options(record, without) for record in series.records.values())


@dataclass(frozen=True)
class Along:
    """The exact series of a table along one option, all others held.

    Attributes:
        table: which.
        key: the option.
        held: the other varied keys with their values.
        rows: by data set, values of the option in order, each with its series.
    """

    table: SweepTable
    key: str
    held: tuple[tuple[str, Any], ...]
    rows: Mapping[str, Mapping[Any, Series]]

    @property
    def name(self) -> str:
        """For a file: the table, and what is held."""
        return "_".join([self.table.name, *(f"{key_name(key)}_{value}" for key, value in self.held)])

    @property
    def holding(self) -> str:
        """What is held, for a caption; empty for nothing."""
        return "".join(f", at {key_name(key)} = {value}" for key, value in self.held)

    @property
    def series(self) -> Iterator[Series]:
        """All of them."""
        return (series for row in self.rows.values() for series in row.values())


def tables_of(results: SweepResults) -> list[SweepTable]:
    """The tables of a sweep in order, those not begun without rows.

    Of a grid with a key of which the best is shown, each data set has the value with the largest mean of the first
    statistic on its test halves. That favours the method: no other is chosen with a look at the test halves.
    """
    grids: dict[str, list[Json]] = {}
    for grid in results.grids:
        grids.setdefault(grid["name"], []).append(grid)
    return [
        SweepTable(name, next((grid["title"] for grid in own if grid["title"]), ""), _rows(results, own))
        for name, own in grids.items()
    ]


def _rows(results: SweepResults, grids: Sequence[Json]) -> dict[str, Row]:
    found: dict[tuple[str, Variant], dict[Any, dict[int, Json]]] = {}
    for grid in grids:
        best_of = grid["best_of"]
        of = len({cell["varied"][best_of] for cell in grid["cells"] if best_of in cell["varied"]})
        for cell in grid["cells"]:
            if cell["id"] not in results.by_id:
                continue
            choice = cell["varied"].get(best_of)
            varied = tuple((key, cell["varied"][key]) for key in grid["varied"] if key in cell["varied"])
            if best_of in cell["varied"]:
                variant = Variant(cell["method"], tuple(v for v in varied if v[0] != best_of), best_of, of)
            else:
                variant = Variant(cell["method"], varied)
            choices = found.setdefault((cell["data"], variant), {})
            choices.setdefault(choice, {})[cell["split"]] = results.by_id[cell["id"]]
    rows: dict[str, dict[Variant, Series]] = {}
    for (data, variant), choices in found.items():
        several = [Series(data, variant, records) for records in choices.values()]
        most = max(len(series.records) for series in several)
        full = [series for series in several if len(series.records) == most]
        rows.setdefault(data, {})[variant] = max(full, key=lambda s: _mean_on_test(s, results))
    # in every row the order of the whole table
    order = SweepTable("", "", rows).variants
    return {data: {variant: row[variant] for variant in order if variant in row} for data, row in rows.items()}


def _mean_on_test(series: Series, results: SweepResults) -> float:
    mean = mean_of(series.values("test", statistic_of_sweep(results)))
    return -math.inf if math.isnan(mean) else mean


def joined(tables: Iterable[SweepTable]) -> list[SweepTable]:
    """The tables that are begun, those of different data sets that ask the same put together."""
    found: list[SweepTable] = []
    for new in tables:
        for at, old in enumerate(found):
            if _belongs(new, old):
                found[at] = SweepTable(old.name, old.title, {**old.rows, **new.rows})
                break
        else:
            found.append(new)
    return [table for table in found if table.rows]


def _belongs(new: SweepTable, old: SweepTable) -> bool:
    """Whether a table asks of other data sets what the tables so far do."""
    if not old.exact or not new.exact or old.keys != new.keys or set(old.rows) & set(new.rows):
        return False
    return new.asked <= old.asked or old.asked <= new.asked


def without_repeats(tables: Sequence[SweepTable]) -> list[SweepTable]:
    """The tables without those that another one has on more splits, but for the time limit."""
    return [table for table in tables if not _repeats(table, tables)]


def _repeats(table: SweepTable, others: Sequence[SweepTable]) -> bool:
    return bool(table.exact) and all(
        any(_more_splits(series, other.rows.get(data, {}).get(variant)) for other in others)
        for data, row in table.exact.items()
        for variant, series in row.items()
    )


def _more_splits(series: Series, other: Series | None) -> bool:
    """Whether the other one is the same on more splits, with whatever time limit."""
    if other is None or len(other.splits) <= len(series.splits):
        return False
    return _asked(series, [TIME_LIMIT]) == _asked(other, [TIME_LIMIT])
