"""The comparisons that a report draws from the results of a sweep."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainers.config import EXACT
from trainers.files import Json
from trainers.records import SweepResults
from trainers.report.paired import FEWEST_SPLITS, Paired, family, paired
from trainers.report.series import (
    TIME_LIMIT,
    Along,
    K,
    Series,
    SweepTable,
    Variant,
    in_order,
    joined,
    other_options,
    statistic_of_sweep,
    tables_of,
    without_repeats,
)
from trainers.report.wording import Pair, decimals_of

Length = int | str


@dataclass(frozen=True)
class Lengths:
    """The exact results of one data set by K, with all other options but the time limit the same."""

    data: str  # name of the data set
    limit: float  # seconds per list in most results
    main: dict[Length, Series]  # series with that limit by K, ascending, the full list last
    longer: dict[float, dict[Length, Series]]  # series with longer limits, by limit and K


@dataclass(frozen=True)
class Evidence:
    """The results of a sweep, arranged for comparisons."""

    results: SweepResults

    @cached_property
    def statistic(self) -> str:
        """The statistic that the exact stage maximises and in which methods are compared."""
        return statistic_of_sweep(self.results)

    @cached_property
    def decimals(self) -> int:
        """Number of decimals of the statistic."""
        values = [abs(record["test"].get(self.statistic) or 0.0) for record in self.results.records]
        return decimals_of(float(np.median(values)))

    @cached_property
    def tables(self) -> list[SweepTable]:
        """Every table of the sweep, in order."""
        return tables_of(self.results)

    @cached_property
    def groups(self) -> list[SweepTable]:
        """The tables that are begun, merging those that have the same options on different data sets."""
        return joined(self.tables)

    @cached_property
    def main_groups(self) -> list[SweepTable]:
        """The groups without those that another one repeats on more splits."""
        return without_repeats(self.groups)

    @cached_property
    def exact(self) -> list[Json]:
        """The records of the exact stage, each once."""
        return [record for record in self.results.records if record["method"] == EXACT]

    @cached_property
    def base(self) -> str | None:
        """The base ranker of most exact results."""
        counts = Counter(record["options"]["base"] for record in self.exact)
        return counts.most_common(1)[0][0] if counts else None

    @cached_property
    def methods(self) -> list[str]:
        """The first-stage methods of the sweep, the usual base ranker first."""
        found = dict.fromkeys(record["method"] for record in self.results.records if record["method"] != EXACT)
        return sorted(found, key=lambda method: method != self.base)

    @cached_property
    def lengths(self) -> dict[str, Lengths]:
        """The exact results by data set and K, from the variants in which nothing else but the time limit varies."""
        groups: dict[str, dict[str, dict[float, dict[Length, dict[int, Json]]]]] = defaultdict(dict)
        plain = (
            s for t in self.tables for s in t.exact_series if {key for key, _ in s.variant.varied} <= {K, TIME_LIMIT}
        )
        for record in (record for series in plain for record in series.records.values()):
            length, limit = record["options"]["top_k"], float(record["options"]["time_limit"])
            of_options = groups[record["data"]].setdefault(other_options(record, [K, TIME_LIMIT]), {})
            by_split = of_options.setdefault(limit, {}).setdefault(length, {})
            if record["split"] not in by_split or "recentred" in record:
                by_split[record["split"]] = record
        return {data: _lengths(data, found) for data, found in groups.items()}

    @cached_property
    def main(self) -> dict[Pair, Series]:
        """The exact series at the usual time limit, by data set and K."""
        return {(found.data, length): s for found in self.lengths.values() for length, s in found.main.items()}

    def by_length(self, groups: Sequence[SweepTable]) -> Iterator[Along]:
        """Yield the exact series of some groups by K; where the sweep never varies K, those of single variants."""
        if any(K in group.keys for group in self.groups):
            for group in groups:
                yield from group.along(K)
            return
        for group in groups:
            if group.exact and all(len(row) == 1 for row in group.exact.values()):
                rows = {series.data: {series.option("top_k"): series} for series in group.exact_series}
                yield Along(group, K, (), rows)

    def with_base(self, series: Series) -> tuple[Series, Series]:
        """Return an exact series and the series of its base ranker, on the splits where both have a result."""
        found = {split: self.results.base_of(record) for split, record in series.records.items()}
        bases = {split: base for split, base in found.items() if base is not None}
        name = next(iter(bases.values()))["method"] if bases else ""
        return series.at(sorted(bases)), Series(series.data, Variant(name), bases)

    def compare(
        self,
        a: Series,
        b: Series,
        part: str,
        *,
        recentred: bool = False,
        independent: bool = False,
        fewest: int = FEWEST_SPLITS,
    ) -> Paired:
        """Compare two series of a data set on their common splits, on the ``"train"`` or the ``"test"`` sets.

        With `recentred` the first one's answers are those moved to the largest margin. With `independent` the splits
        count as independent, as in the ordinary paired t-test.
        """
        splits = a.common(b)
        if recentred:
            splits = tuple(split for split in splits if "recentred" in a.records[split])
        a, b = a.at(splits), b.at(splits)
        other = {"train": "test", "test": "train"}[part]
        sizes = [record["sizes"] for record in a.records.values()]
        overlap = (
            float(np.mean([size[part][0] / size[other][0] for size in sizes])) if sizes and not independent else 0.0
        )
        values = a.values(part, self.statistic, recentred=recentred)
        return paired(values, b.values(part, self.statistic), overlap, fewest)

    def over(
        self,
        make: Callable[[Series], tuple[Series, Series] | None],
        part: str,
        *,
        recentred: bool = False,
        independent: bool = False,
    ) -> dict[Pair, Paired]:
        """Compare the two series that `make` gives for an exact one, for each data set and K, as a family."""
        found = {pair: make(series) for pair, series in self.main.items()}
        compared = {
            pair: self.compare(*two, part, recentred=recentred, independent=independent)
            for pair, two in found.items()
            if two is not None
        }
        return family(compared)

    @cached_property
    def gains(self) -> dict[str, dict[Pair, Paired]]:
        """The exact stage against its base ranker by data set and K, on ``"train"`` and on ``"test"``."""
        return {part: self.over(self.with_base, part) for part in ("train", "test")}


def _lengths(data: str, of_options: dict[str, dict[float, dict[Length, dict[int, Json]]]]) -> Lengths:
    """Choose the options with the most results and divide them by time limit."""
    by_limit = max(of_options.values(), key=lambda limits: sum(map(_size, limits.values())))
    limit = min(by_limit, key=lambda seconds: (-_size(by_limit[seconds]), seconds))
    series = {
        seconds: {
            length: Series(data, Variant(EXACT, ((K, length),)), found[length])
            for length in sorted(found, key=in_order)
        }
        for seconds, found in sorted(by_limit.items())
    }
    return Lengths(data, limit, series[limit], {seconds: of for seconds, of in series.items() if seconds > limit})


def _size(by_length: dict[Length, dict[int, Json]]) -> int:
    return sum(len(by_split) for by_split in by_length.values())
