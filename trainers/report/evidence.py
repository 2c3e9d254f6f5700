"""The results of a sweep as series, tables of series, and the comparisons that a report draws from them.

A series has one record for each split, of one variant of a method on one data set. A table of a sweep holds the series
of the grids with one name, by data set and variant. `Evidence` compares them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.config import CARD, EXACT
from trainers.files import Json
from trainers.records import SweepResults, nothing_proven
from trainers.report.paired import Paired, family, paired
from trainers.report.wording import Pair, decimals_of, gap_text
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

    method: str
    varied: tuple[tuple[str, Any], ...] = ()  # keys and values in the order of the grid, without `best_of`
    best_of: str | None = None  # the key of which only the best value is shown
    of: int = 0  # how many values that key has

    @property
    def label(self) -> str:
        """The heading of the column.

        Examples:
            >>> Variant("exact", (("exact.top_k", 50),)).label, Variant("hinge", (), "surrogate.l2", 6).label
            ('exact, K = 50', 'hinge, best of 6 l2')
        """
        best = [] if self.best_of is None else [f"best of {self.of} {key_name(self.best_of)}"]
        return ", ".join([self.method, *(f"{key_name(key)} = {value}" for key, value in self.varied), *best])


@dataclass(frozen=True)
class Series:
    """The finished results of one variant on one data set, a record for each split."""

    data: str
    variant: Variant
    records: Mapping[int, Json]

    @property
    def splits(self) -> tuple[int, ...]:
        """The splits with a result, ascending."""
        return tuple(sorted(self.records))

    @property
    def proven(self) -> str:
        """How many of the exact answers are proven optimal, such as ``3/10``."""
        return f"{sum(map(proven, self.records.values()))}/{len(self.records)}"

    @property
    def recentred(self) -> Series:
        """The same answers moved to the largest margin, on the splits where that was asked for."""
        moved = {split: one | one["recentred"] for split, one in self.records.items() if "recentred" in one}
        return replace(self, records=moved)

    def values(self, part: str, statistic: str) -> FloatArray:
        """Return a statistic on each split in the order of `splits`; NaN where it is undefined."""
        return np.array([self.records[split][part].get(statistic) for split in self.splits], dtype=np.float64)

    def on_list(self, what: str) -> FloatArray:
        """Return ``value``, ``bound`` or ``gap`` of exact results; NaN where there was nothing to rerank."""
        lists = (self.records[split].get("list") or {} for split in self.splits)
        return np.array([found.get(what) for found in lists], dtype=np.float64)

    def gap_text(self) -> str:
        """Return the mean gap of exact results, and in how many of them nothing is proven."""
        count = sum(map(nothing_proven, self.records.values()))
        which = "" if count == len(self.records) else f" in {count}"
        return gap_text(mean_of(self.on_list("gap"))) + (f" ({NOTHING_PROVEN}{which})" if count else "")

    def common(self, other: Series) -> tuple[int, ...]:
        """Return the splits that both series have."""
        return tuple(sorted(set(self.records) & set(other.records)))

    def at(self, splits: Sequence[int]) -> Series:
        """Return this series on some of its splits."""
        return replace(self, records={split: self.records[split] for split in splits})


Row = Mapping[Variant, Series]
"""The series of a data set."""
SeriesPairs = Mapping[Pair, tuple[Series, Series]]
"""Series to compare, by data set and value of an option."""
Families = dict[str, dict[Pair, Paired]]
"""Comparisons on ``"train"`` and on ``"test"``, by data set and value of an option."""


def key_name(key: str) -> str:
    """Return a short name of a config's key: ``K`` for ``exact.top_k``, ``margin`` for ``exact.margin``."""
    return _SHORT.get(key, key.rpartition(".")[2])


def in_order(value: Any) -> tuple[bool, Any]:  # noqa: ANN401  (a value of an option)
    """Return the key that sorts values of an option: numbers ascending, then words as they come."""
    return (True, 0) if isinstance(value, str) else (False, value)


def proven(record: Json) -> bool:
    """Return whether an exact answer is proven to be the best of its list."""
    return record["status"] == "optimal"


def mean_of(values: FloatArray) -> float:
    """Return the mean of the values that are defined, NaN without any."""
    return math.nan if np.isnan(values).all() else float(np.nanmean(values))


@dataclass(frozen=True)
class SweepTable:
    """The results of all grids with one name."""

    name: str
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
    def exact(self) -> list[Series]:
        """All series of the exact stage."""
        return [series for row in self.rows.values() for v, series in row.items() if v.method == EXACT]

    @property
    def keys(self) -> frozenset[str]:
        """The options of the exact stage that are varied."""
        return frozenset(key for series in self.exact for key, _ in series.variant.varied)

    def along(self, key: str) -> dict[str, dict[Any, Series]]:
        """Return the exact series in which an option varies alone, by data set and value of the option, in order."""
        found: dict[str, dict[Any, Series]] = {}
        for series in self.exact:
            choice = dict(series.variant.varied)
            if [*choice] == [key]:
                found.setdefault(series.data, {})[choice[key]] = series
        return {data: {value: row[value] for value in sorted(row, key=in_order)} for data, row in found.items()}


Length = int | str


@dataclass(frozen=True)
class Lengths:
    """The exact results of one data set by K, with all other options but the time limit the same."""

    data: str
    limit: float  # seconds per list in most results
    main: dict[Length, Series]  # series with that limit by K, ascending, the full list last
    longer: dict[float, dict[Length, Series]]  # series with longer limits, by limit and K, the longest last

    @classmethod
    def of(cls, data: str, records: Iterable[Json]) -> Lengths:
        """Arrange exact results: those of the options with the most results, by time limit."""
        kept: dict[tuple[str, float, Length, int], Json] = {}
        for record in records:
            options = dict(record["options"])
            length, limit = options.pop("top_k"), float(options.pop("time_limit"))
            place = json.dumps(options, sort_keys=True), limit, length, record["split"]
            if place not in kept or "recentred" in record:
                kept[place] = record
        [(most, _)] = Counter(options for options, *_ in kept).most_common(1)
        own = {place[1:]: record for place, record in kept.items() if place[0] == most}
        count = Counter(limit for limit, *_ in own)
        series: dict[float, dict[Length, Series]] = {}
        for limit, length in sorted({place[:2] for place in own}, key=lambda at: (at[0], in_order(at[1]))):
            of_splits = {split: record for (*at, split), record in own.items() if at == [limit, length]}
            series.setdefault(limit, {})[length] = Series(data, Variant(EXACT, ((K, length),)), of_splits)
        usual = min(count, key=lambda seconds: (-count[seconds], seconds))
        return cls(data, usual, series[usual], {limit: found for limit, found in series.items() if limit > usual})


@dataclass(frozen=True)
class Evidence:
    """The results of a sweep, arranged for comparisons."""

    results: SweepResults

    @cached_property
    def statistic(self) -> str:
        """The statistic that the exact stage maximises and in which methods are compared."""
        return next(iter(self.results.records[0]["train"]))

    @cached_property
    def decimals(self) -> int:
        """Number of decimals of the statistic."""
        values = [abs(record["test"].get(self.statistic) or 0.0) for record in self.results.records]
        return decimals_of(float(np.median(values)))

    @cached_property
    def tables(self) -> list[SweepTable]:
        """All tables of the sweep, in order; those not begun have no rows.

        Where a grid shows the best value of a key, each data set has the value with the largest mean of the statistic
        on its test sets. That favours the method: no other choice uses the test sets.
        """
        grids: dict[str, list[Json]] = {}
        for grid in self.results.grids:
            grids.setdefault(grid["name"], []).append(grid)
        return [
            SweepTable(name, next((grid["title"] for grid in own if grid["title"]), ""), self._rows(own))
            for name, own in grids.items()
        ]

    def _rows(self, grids: Sequence[Json]) -> dict[str, Row]:
        found: dict[tuple[str, Variant], dict[Any, dict[int, Json]]] = {}
        for grid in grids:
            best_of = grid["best_of"]
            of = len({cell["varied"][best_of] for cell in grid["cells"] if best_of in cell["varied"]})
            for cell in (cell for cell in grid["cells"] if cell["id"] in self.results.by_id):
                choice, method = cell["varied"], cell["method"]
                kept = tuple((key, choice[key]) for key in grid["varied"] if key in choice and key != best_of)
                variant = Variant(method, kept, best_of, of) if best_of in choice else Variant(method, kept)
                choices = found.setdefault((cell["data"], variant), {})
                choices.setdefault(choice.get(best_of), {})[cell["split"]] = self.results.by_id[cell["id"]]
        rows: dict[str, dict[Variant, Series]] = {}
        for (data, variant), choices in found.items():
            most = max(map(len, choices.values()))
            full = [Series(data, variant, records) for records in choices.values() if len(records) == most]
            means = [mean_of(series.values("test", self.statistic)) for series in full]
            rows.setdefault(data, {})[variant] = full[int(np.argmax(np.nan_to_num(means, nan=-math.inf)))]
        order = SweepTable("", "", rows).variants  # the same in every row
        return {data: {variant: row[variant] for variant in order if variant in row} for data, row in rows.items()}

    @cached_property
    def exact(self) -> list[Json]:
        """The records of the exact stage, each once."""
        return [record for record in self.results.records if record["method"] == EXACT]

    @cached_property
    def cards(self) -> list[Series]:
        """The series of cards, each once."""
        every = (series for table in self.tables for row in table.rows.values() for series in row.values())
        found = {tuple(record["id"] for record in s.records.values()): s for s in every if s.variant.method == CARD}
        return list(found.values())

    @cached_property
    def lengths(self) -> dict[str, Lengths]:
        """The exact results by data set and K, from the variants in which nothing else but the time limit varies."""
        found: dict[str, list[Json]] = {}
        for series in (series for table in self.tables for series in table.exact):
            if dict(series.variant.varied).keys() <= {K, TIME_LIMIT}:
                found.setdefault(series.data, []).extend(series.records.values())
        return {data: Lengths.of(data, records) for data, records in found.items()}

    @cached_property
    def main(self) -> dict[Pair, Series]:
        """The exact series at the usual time limit, by data set and K."""
        return {(found.data, length): s for found in self.lengths.values() for length, s in found.main.items()}

    def with_base(self, series: Series) -> tuple[Series, Series]:
        """Return an exact series and the series of its base ranker, on the splits where both have a result."""
        found = {split: self.results.base_of(record) for split, record in series.records.items()}
        bases = {split: base for split, base in found.items() if base is not None}
        name = next(iter(bases.values()))["method"] if bases else ""
        return series.at(sorted(bases)), Series(series.data, Variant(name), bases)

    def compare(self, a: Series, b: Series, part: str) -> Paired:
        """Compare two series of a data set on their common splits, on the ``"train"`` or the ``"test"`` sets."""
        splits = a.common(b)
        a, b = a.at(splits), b.at(splits)
        other = {"train": "test", "test": "train"}[part]
        shares = [record["sizes"][part][0] / record["sizes"][other][0] for record in a.records.values()]
        overlap = float(np.mean(shares)) if shares else 0.0
        return paired(a.values(part, self.statistic), b.values(part, self.statistic), overlap)

    def families(self, pairs: SeriesPairs) -> Families:
        """Compare pairs of series, as one family on ``"train"`` and one on ``"test"``."""
        return {part: family({pair: self.compare(*two, part) for pair, two in pairs.items()}) for part in PARTS}

    @cached_property
    def gains(self) -> Families:
        """The exact stage against its base ranker by data set and K."""
        return self.families({pair: self.with_base(series) for pair, series in self.main.items()})

    @cached_property
    def recentred(self) -> Families:
        """Answers moved to the largest margin against the same answers as found, like `gains`."""
        return self.families({pair: (series.recentred, series) for pair, series in self.main.items()})
