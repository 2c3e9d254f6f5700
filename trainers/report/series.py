"""What tables and figures of a sweep are made of: for a data set and a variant of a method, one record a split."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.files import Json
from trainers.records import SweepResults, nothing_proven
from trainers.report.wording import gap_text
from trainers.tables import NOTHING_PROVEN

__all__ = [
    "TIME_LIMIT",
    "FloatArray",
    "K",
    "Series",
    "Variant",
    "in_order",
    "key_name",
    "mean_of",
    "other_options",
    "proven",
    "settled",
    "statistic_of_sweep",
]

FloatArray = NDArray[np.float64]

K = "exact.top_k"
TIME_LIMIT = "exact.time_limit"

_SHORT = {K: "K", TIME_LIMIT: "seconds"}


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

    @property
    def proven(self) -> str:
        """How many of its exact answers are proven, such as ``3/10``."""
        return f"{sum(map(proven, self.records.values()))}/{len(self.records)}"

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

    def gap_text(self) -> str:
        """The mean gap of exact cells, and in how many of them nothing is proven."""
        count = sum(map(nothing_proven, self.records.values()))
        where = "" if count == len(self.records) else f" in {count}"
        return gap_text(mean_of(self.on_list("gap"))) + (f" ({NOTHING_PROVEN}{where})" if count else "")

    def option(self, name: str) -> Any:  # noqa: ANN401  (a value of the config)
        """An option of the method, as the first of its records has it."""
        return next(iter(self.records.values()))["options"][name]

    def common(self, other: Series) -> tuple[int, ...]:
        """The splits of both."""
        return tuple(sorted(set(self.records) & set(other.records)))

    def at(self, splits: tuple[int, ...]) -> Series:
        """This series on some of its splits."""
        return Series(self.data, self.variant, {split: self.records[split] for split in splits})


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


def in_order(value: Any) -> tuple[bool, Any]:  # noqa: ANN401  (of an option)
    """The key that sorts values of an option: numbers ascending, then words as they come.

    Examples:
        >>> sorted(["full", 100, 50], key=in_order)
        [50, 100, 'full']
    """
    return (True, 0) if isinstance(value, str) else (False, value)


def other_options(record: Json, without: Iterable[str]) -> str:
    """The options of a cell as text, without some keys of the config."""
    ignored = {key.rpartition(".")[2] for key in without}
    return json.dumps({k: v for k, v in record["options"].items() if k not in ignored}, sort_keys=True)


def proven(record: Json) -> bool:
    """Whether an exact answer is proven to be the best of its list."""
    return record["status"] == "optimal"


def settled(record: Json) -> bool:
    """Whether nothing better than an exact answer exists: it is proven, or there was nothing to rerank."""
    return record["list"] is None or proven(record)


def mean_of(values: FloatArray) -> float:
    """The mean of the values that are defined, NaN without any."""
    return math.nan if np.isnan(values).all() else float(np.nanmean(values))


def _number(value: object) -> float:
    return math.nan if value is None else float(value)  # type: ignore[arg-type]
