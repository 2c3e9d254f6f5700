"""The results of a sweep as series: for a data set and a variant of a method, one record for each split.

A table of a sweep holds the series of the grids with one name, by data set and variant.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.config import EXACT
from trainers.files import Json
from trainers.records import SweepResults, nothing_proven
from trainers.report.wording import gap_text
from trainers.tables import NOTHING_PROVEN

FloatArray = NDArray[np.float64]

K = "exact.top_k"
TIME_LIMIT = "exact.time_limit"
BASE = "exact.base"
PARTS = ("train", "test")
"""The training set and the test set of a split."""

_SHORT = {K: "K", TIME_LIMIT: "seconds"}


@dataclass(frozen=True)
class Variant:
    """A column of a table: a method with the values of its varied options."""

    method: str  # name of the method
    varied: tuple[tuple[str, Any], ...] = ()  # keys and values in the order of the grid, without `best_of`
    best_of: str | None = None  # the key of which only the best value is shown; None without one
    of: int = 0  # how many values that key has

    @property
    def label(self) -> str:
        """The heading of the column, such as ``exact, K = 50``.

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
    """The finished results of one variant on one data set."""

    data: str  # name of the data set
    variant: Variant  # the method and its options
    records: Mapping[int, Json]  # one record for each split

    @property
    def splits(self) -> tuple[int, ...]:
        """The splits with a result, ascending."""
        return tuple(sorted(self.records))

    @property
    def proven(self) -> str:
        """How many of the exact answers are proven optimal, such as ``3/10``."""
        return f"{sum(map(proven, self.records.values()))}/{len(self.records)}"

    def values(self, part: str, statistic: str, *, recentred: bool = False) -> FloatArray:
        """Return a statistic on each split in the order of `splits`; NaN where it is undefined."""
        found = [self.records[split]["recentred"] if recentred else self.records[split] for split in self.splits]
        return np.array([_number(record[part].get(statistic)) for record in found])

    def on_list(self, what: str) -> FloatArray:
        """Return ``value``, ``bound`` or ``gap`` of exact results; NaN where there was nothing to rerank."""
        return np.array([_number((self.records[split].get("list") or {}).get(what)) for split in self.splits])

    def gap_text(self) -> str:
        """Return the mean gap of exact results, and in how many of them nothing is proven."""
        count = sum(map(nothing_proven, self.records.values()))
        which = "" if count == len(self.records) else f" in {count}"
        return gap_text(mean_of(self.on_list("gap"))) + (f" ({NOTHING_PROVEN}{which})" if count else "")

    def option(self, name: str) -> Any:  # noqa: ANN401  (a value of the config)
        """Return an option of the method as the first of its records has it."""
        return next(iter(self.records.values()))["options"][name]

    def common(self, other: Series) -> tuple[int, ...]:
        """Return the splits that both series have."""
        return tuple(sorted(set(self.records) & set(other.records)))

    def at(self, splits: Sequence[int]) -> Series:
        """Return this series on some of its splits."""
        return Series(self.data, self.variant, {split: self.records[split] for split in splits})


Row = Mapping[Variant, Series]
"""The series of a data set."""


def statistic_of_sweep(results: SweepResults) -> str:
    """Return the statistic that the exact stage maximises, which records report first."""
    return next(iter(results.records[0]["train"]))


def key_name(key: str) -> str:
    """Return a short name of a config's key.

    Examples:
        >>> key_name("exact.top_k"), key_name("exact.margin")
        ('K', 'margin')
    """
    return _SHORT.get(key, key.rpartition(".")[2])


def in_order(value: Any) -> tuple[bool, Any]:  # noqa: ANN401  (a value of an option)
    """Return the key that sorts values of an option: numbers ascending, then words as they come.

    Examples:
        >>> sorted(["full", 100, 50], key=in_order)
        [50, 100, 'full']
    """
    return (True, 0) if isinstance(value, str) else (False, value)


def other_options(record: Json, without: Iterable[str]) -> str:
    """Return the options of a result as text, without some keys of the config."""
    ignored = {key.rpartition(".")[2] for key in without}
    return json.dumps({k: v for k, v in record["options"].items() if k not in ignored}, sort_keys=True)


def proven(record: Json) -> bool:
    """Return whether an exact answer is proven to be the best of its list."""
    return record["status"] == "optimal"


def settled(record: Json) -> bool:
    """Return whether nothing better than an exact answer exists: it is proven, or there was nothing to rerank."""
    return record["list"] is None or proven(record)


def mean_of(values: FloatArray) -> float:
    """Return the mean of the values that are defined, NaN without any."""
    return math.nan if np.isnan(values).all() else float(np.nanmean(values))


def _number(value: object) -> float:
    return math.nan if value is None else float(value)  # type: ignore[arg-type]


# --- tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SweepTable:
    """The results of all grids with one name."""

    name: str  # name of the grids
    title: str  # title of the first grid that has one, else empty
    rows: Mapping[str, Row]  # by data set, without those not begun; variants as in the grids, exact ones last

    @property
    def heading(self) -> str:
        """The title, or else the name."""
        return self.title or self.name

    @property
    def variants(self) -> list[Variant]:
        """All variants in the order of the first data set that has them; the exact ones last."""
        found = dict.fromkeys(variant for row in self.rows.values() for variant in row)
        return sorted(found, key=lambda variant: variant.method == EXACT)

    @cached_property
    def exact(self) -> dict[str, Row]:
        """The series of the exact stage by data set, without data sets that have none."""
        found = {data: {v: s for v, s in row.items() if v.method == EXACT} for data, row in self.rows.items()}
        return {data: row for data, row in found.items() if row}

    @property
    def exact_series(self) -> Iterator[Series]:
        """All series of the exact stage."""
        return (series for row in self.exact.values() for series in row.values())

    @property
    def keys(self) -> frozenset[str]:
        """The options of the exact stage that are varied."""
        return frozenset(key for series in self.exact_series for key, _ in series.variant.varied)

    @cached_property
    def asked(self) -> frozenset[str]:
        """The options of its exact results that are not varied, as text."""
        return frozenset().union(*(_asked(series, self.keys) for series in self.exact_series))

    def along(self, key: str) -> list[Along]:
        """Return the exact series along an option, once for each choice of the other varied options."""
        found: dict[tuple[tuple[str, Any], ...], dict[str, dict[Any, Series]]] = {}
        for series in self.exact_series:
            choice = dict(series.variant.varied)
            if key in choice:
                value = choice.pop(key)
                found.setdefault(tuple(choice.items()), {}).setdefault(series.data, {})[value] = series
        return [
            Along(self, key, held, {data: {v: row[v] for v in sorted(row, key=in_order)} for data, row in rows.items()})
            for held, rows in found.items()
        ]


@dataclass(frozen=True)
class Along:
    """The exact series of a table along one option, all others held."""

    table: SweepTable  # the table
    key: str  # the option
    held: tuple[tuple[str, Any], ...]  # the other varied keys with their values
    rows: Mapping[str, Mapping[Any, Series]]  # series by data set and value of the option, values in order

    @property
    def name(self) -> str:
        """A name for a file, made of the table and the values held."""
        return "_".join([self.table.name, *(f"{key_name(key)}_{value}" for key, value in self.held)])

    @property
    def holding(self) -> str:
        """The values held, for a caption; empty for none."""
        return "".join(f", at {key_name(key)} = {value}" for key, value in self.held)

    @property
    def series(self) -> Iterator[Series]:
        """All of its series."""
        return (series for row in self.rows.values() for series in row.values())


def tables_of(results: SweepResults) -> list[SweepTable]:
    """Return the tables of a sweep in order; tables not begun have no rows.

    Where a grid shows the best value of a key, each data set has the value with the largest mean of the first statistic
    on its test sets. That favours the method: no other choice uses the test sets.
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
            chosen = best_of in cell["varied"]
            varied = [(key, cell["varied"][key]) for key in grid["varied"] if key in cell["varied"]]
            kept = tuple(pair for pair in varied if not (chosen and pair[0] == best_of))
            variant = Variant(cell["method"], kept, best_of, of) if chosen else Variant(cell["method"], kept)
            choices = found.setdefault((cell["data"], variant), {})
            choices.setdefault(choice, {})[cell["split"]] = results.by_id[cell["id"]]
    rows: dict[str, dict[Variant, Series]] = {}
    for (data, variant), choices in found.items():
        several = [Series(data, variant, records) for records in choices.values()]
        most = max(len(series.records) for series in several)
        full = [series for series in several if len(series.records) == most]
        rows.setdefault(data, {})[variant] = max(full, key=lambda s: _mean_on_test(s, results))
    order = SweepTable("", "", rows).variants  # the same in every row
    return {data: {variant: row[variant] for variant in order if variant in row} for data, row in rows.items()}


def _mean_on_test(series: Series, results: SweepResults) -> float:
    mean = mean_of(series.values("test", statistic_of_sweep(results)))
    return -math.inf if math.isnan(mean) else mean


def joined(tables: Iterable[SweepTable]) -> list[SweepTable]:
    """Return the tables that are begun, merging those that have the same options on different data sets."""
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
    if not old.exact or not new.exact or old.keys != new.keys or set(old.rows) & set(new.rows):
        return False
    return new.asked <= old.asked or old.asked <= new.asked


def without_repeats(tables: Sequence[SweepTable]) -> list[SweepTable]:
    """Return the tables without those that another one repeats on more splits, whatever the time limit."""

    def repeated(series: Series) -> bool:
        others = [row[series.variant] for t in tables if series.variant in (row := t.rows.get(series.data, {}))]
        more = [other for other in others if len(other.splits) > len(series.splits)]
        return any(_asked(series, [TIME_LIMIT]) == _asked(other, [TIME_LIMIT]) for other in more)

    return [table for table in tables if not table.exact or not all(map(repeated, table.exact_series))]


def _asked(series: Series, without: Iterable[str]) -> frozenset[str]:
    return frozenset(other_options(record, without) for record in series.records.values())
