"""The values that tables and figures of a sweep are made of: for a data set and a variant, one record a split."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.config import EXACT
from trainers.files import Json
from trainers.sweep.records import SweepResults

__all__ = ["Series", "Variant", "key_name", "statistic_of_sweep", "table_names", "variants_of"]

FloatArray = NDArray[np.float64]

_SHORT = {"exact.top_k": "K", "exact.time_limit": "seconds"}


@dataclass(frozen=True)
class Variant:
    """A column of a table: a method, with what is varied of it.

    Attributes:
        method: its name.
        varied: keys and values, in the order of the grid; without the key of which the best is shown.
        best_of: the key of which the best is shown, None without one.
        of: how many values it has.
    """

    method: str
    varied: tuple[tuple[str, Any], ...] = ()
    best_of: str | None = None
    of: int = 0

    @property
    def label(self) -> str:
        """What the column is called, such as ``exact, K = 50``.

        Examples:
            >>> Variant("exact", (("exact.top_k", 50),)).label
            'exact, K = 50'
            >>> Variant("hinge", (), "surrogate.l2", 6).label
            'hinge, best of 6 l2'
        """
        parts = [f"{key_name(key)} = {value}" for key, value in self.varied]
        if self.best_of is not None:
            parts.append(f"best of {self.of} {key_name(self.best_of)}")
        return ", ".join([self.method, *parts])


@dataclass(frozen=True)
class Series:
    """What one variant reached on one data set.

    Attributes:
        data: name of the data set.
        variant: the method and its options.
        records: of the finished cells, by split.
    """

    data: str
    variant: Variant
    records: Mapping[int, Json]

    @property
    def splits(self) -> tuple[int, ...]:
        """The splits with a result, ascending."""
        return tuple(sorted(self.records))

    def values(self, half: str, statistic: str, *, recentred: bool = False) -> FloatArray:
        """A statistic of the training or test half, a value a split in the order of `splits`; NaN where undefined.

        Args:
            half: ``"train"`` or ``"test"``.
            statistic: its name.
            recentred: of the answers moved to the largest margin.
        """
        found = [self.records[split]["recentred"] if recentred else self.records[split] for split in self.splits]
        return np.array([_number(record[half].get(statistic)) for record in found])

    def on_list(self, what: str) -> FloatArray:
        """``value``, ``bound`` or ``gap`` of exact cells, a value a split; NaN where there was nothing to rerank."""
        return np.array([_number((self.records[split].get("list") or {}).get(what)) for split in self.splits])

    def common(self, other: Series) -> tuple[int, ...]:
        """The splits of both."""
        return tuple(sorted(set(self.records) & set(other.records)))

    def at(self, splits: tuple[int, ...]) -> Series:
        """This series on some of its splits."""
        return Series(self.data, self.variant, {split: self.records[split] for split in splits})


def table_names(results: SweepResults) -> dict[str, str]:
    """Names of the sweep's tables with their titles, in order."""
    names: dict[str, str] = {}
    for grid in results.grids:
        names[grid["name"]] = names.get(grid["name"]) or grid["title"]
    return names


def variants_of(results: SweepResults, table: str) -> dict[str, dict[Variant, Series]]:
    """The series of a table: by data set, then by variant, in the order of the grids; without those not begun.

    Of a grid with a key of which the best is shown, each data set has the value with the largest mean of the first
    statistic on its test halves. That favours the method: no other is chosen with a look at the test halves.

    Args:
        results: of the sweep.
        table: its name.
    """
    by_id, statistic = results.by_id, statistic_of_sweep(results)
    rows: dict[str, dict[Variant, Series]] = {}
    for grid in results.grids:
        if grid["name"] != table:
            continue
        found: dict[tuple[str, Variant], dict[Any, dict[int, Json]]] = {}
        for cell in grid["cells"]:
            if cell["id"] not in by_id:
                continue
            varied = tuple((key, cell["varied"][key]) for key in grid["varied"] if key in cell["varied"])
            best_of = grid["best_of"] if grid["best_of"] in dict(varied) else None
            of = len({c["varied"].get(best_of) for c in grid["cells"] if best_of in c["varied"]})
            variant = Variant(cell["method"], tuple(v for v in varied if v[0] != best_of), best_of, of)
            choice = dict(varied).get(best_of)
            found.setdefault((cell["data"], variant), {}).setdefault(choice, {})[cell["split"]] = by_id[cell["id"]]
        for (data, variant), choices in found.items():
            several = [Series(data, variant, records) for records in choices.values()]
            most = max(len(series.records) for series in several)
            full = [series for series in several if len(series.records) == most]
            rows.setdefault(data, {})[variant] = max(full, key=lambda s: _mean(s.values("test", statistic)))
    order = list(dict.fromkeys(variant for row in rows.values() for variant in row))
    # first stages first, whatever the order of the grids
    order.sort(key=lambda variant: variant.method == EXACT)
    return {data: {variant: row[variant] for variant in order if variant in row} for data, row in rows.items()}


def statistic_of_sweep(results: SweepResults) -> str:
    """The statistic that the exact stage maximises, which records report first."""
    return next(iter(results.records[0]["train"]))


def key_name(key: str) -> str:
    """A short name of a config's key.

    Examples:
        >>> key_name("exact.top_k"), key_name("exact.margin")
        ('K', 'margin')
    """
    return _SHORT.get(key, key.rpartition(".")[2])


def _number(value: object) -> float:
    return math.nan if value is None else float(value)  # type: ignore[arg-type]


def _mean(values: FloatArray) -> float:
    return -math.inf if np.isnan(values).all() else float(np.nanmean(values))
