"""What a report is drawn from: the tables of a sweep, and which of its results are compared with which."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ltr.statistics import RankStatistic
from trainers.config import EXACT
from trainers.files import Json
from trainers.records import SweepResults
from trainers.report.paired import FEWEST_SPLITS, Paired, family, paired
from trainers.report.series import TIME_LIMIT, K, Series, Variant, in_order, other_options, statistic_of_sweep
from trainers.report.sweep_tables import SweepTable, joined, tables_of, without_repeats
from trainers.report.wording import decimals_of

__all__ = ["FULL", "Evidence", "Lengths", "Level", "Pair"]

FULL = "full"

Length = int | str
Pair = tuple[str, int | float | str]
"""A data set and a K, or the value of another option."""


@dataclass(frozen=True)
class Lengths:
    """The exact results of one data set by K, all other options but the time limit the same.

    Attributes:
        data: name of the data set.
        limit: seconds a list that most results were given.
        main: with that limit, by K, ascending, the full list last.
        longer: with longer limits, by limit and K.
    """

    data: str
    limit: float
    main: dict[Length, Series]
    longer: dict[float, dict[Length, Series]]


@dataclass(frozen=True)
class Level:
    """A K that data sets have in common, or what stands in its place on others.

    Attributes:
        name: such as ``50 (abalone19: 250)``.
        lengths: the K of each data set.
    """

    name: str
    lengths: dict[str, Length]

    @property
    def short(self) -> str:
        """The name without what stands in its place elsewhere."""
        return self.name.partition(" (")[0]


@dataclass(frozen=True)
class Evidence:
    """The results of a sweep as a report looks at them.

    Attributes:
        results: of the sweep.
    """

    results: SweepResults

    @cached_property
    def statistic(self) -> str:
        """What the exact stage maximises and the report is about."""
        return statistic_of_sweep(self.results)

    @cached_property
    def decimals(self) -> int:
        """Of the statistic in tables."""
        values = [abs(record["test"].get(self.statistic) or 0.0) for record in self.results.records]
        return decimals_of(float(np.median(values)))

    @cached_property
    def tables(self) -> list[SweepTable]:
        """Every table of the sweep, in order."""
        return tables_of(self.results)

    @cached_property
    def groups(self) -> list[SweepTable]:
        """The tables, those of different data sets that ask the same put together; without those not begun."""
        return joined(self.tables)

    @cached_property
    def main_groups(self) -> list[SweepTable]:
        """The groups without those that another one has on more splits, but for the time limit."""
        return without_repeats(self.groups)

    @cached_property
    def exact(self) -> list[Json]:
        """The records of exact cells, each once."""
        return [record for record in self.results.records if record["method"] == EXACT]

    @cached_property
    def base(self) -> str | None:
        """The base ranker of most exact cells."""
        counts = Counter(record["options"]["base"] for record in self.exact)
        return counts.most_common(1)[0][0] if counts else None

    @cached_property
    def methods(self) -> list[str]:
        """The first-stage methods of the sweep, the usual base ranker first."""
        found = dict.fromkeys(record["method"] for record in self.results.records if record["method"] != EXACT)
        return sorted(found, key=lambda method: method != self.base)

    @cached_property
    def lengths(self) -> dict[str, Lengths]:
        """By data set, what tables that vary K, or nothing, say of the exact stage."""
        groups: dict[str, dict[str, dict[float, dict[Length, dict[int, Json]]]]] = defaultdict(dict)
        for record in self._plain_exact():
            length, limit = record["options"]["top_k"], float(record["options"]["time_limit"])
            of_options = groups[record["data"]].setdefault(other_options(record, [K, TIME_LIMIT]), {})
            by_split = of_options.setdefault(limit, {}).setdefault(length, {})
            if record["split"] not in by_split or "recentred" in record:
                by_split[record["split"]] = record
        return {data: _lengths(data, found) for data, found in groups.items()}

    def _plain_exact(self) -> Iterator[Json]:
        for table in self.tables:
            for row in table.exact.values():
                for variant, series in row.items():
                    if {key for key, _ in variant.varied} <= {K, TIME_LIMIT}:
                        yield from series.records.values()

    @cached_property
    def main(self) -> dict[Pair, Series]:
        """The exact series at the limit that most results have, by data set and K."""
        return {(found.data, length): s for found in self.lengths.values() for length, s in found.main.items()}

    @cached_property
    def levels(self) -> list[Level]:
        """The K of all data sets side by side: those that most have, and in their order those of the others."""
        have = {found.data: tuple(found.main) for found in self.lengths.values()}
        common = list(Counter(have.values()).most_common(1)[0][0]) if have else []
        placed: dict[Length, dict[str, Length]] = {length: {} for length in common}
        numbers = [length for length in common if length != FULL]
        for data, lengths in have.items():
            own = [length for length in lengths if length != FULL]
            aligned = dict(zip(own, numbers, strict=False)) if not set(own) & set(numbers) else {}
            for length in lengths:
                placed.setdefault(aligned.get(length, length), {})[data] = length
        return [Level(_level_name(length, of), of) for length, of in sorted(placed.items(), key=_by_length)]

    def with_base(self, series: Series) -> tuple[Series, Series]:
        """An exact series and that of its base ranker, on the splits where there are both."""
        found = {split: self.results.base_of(record) for split, record in series.records.items()}
        bases = {split: base for split, base in found.items() if base is not None}
        name = next(iter(bases.values()))["method"] if bases else ""
        return series.at(tuple(sorted(bases))), Series(series.data, Variant(name), bases)

    def compare(
        self, a: Series, b: Series, half: str, *, recentred: bool = False, fewest: int = FEWEST_SPLITS
    ) -> Paired:
        """Compare two series of a data set on their common splits.

        Args:
            a: the first one.
            b: the second one.
            half: ``"train"`` or ``"test"``.
            recentred: take the first one's answers moved to the largest margin.
            fewest: splits below which nothing is tested.
        """
        splits = a.common(b)
        if recentred:
            splits = tuple(split for split in splits if "recentred" in a.records[split])
        a, b = a.at(splits), b.at(splits)
        values = a.values(half, self.statistic, recentred=recentred)
        return paired(values, b.values(half, self.statistic), _overlap(a, half) if splits else 1.0, fewest)

    def over(
        self, make: Callable[[Series], tuple[Series, Series] | None], half: str, *, recentred: bool = False
    ) -> dict[Pair, Paired]:
        """A family of comparisons, one for each data set and K.

        Args:
            make: the two series to compare, from the exact one; None for none.
            half: ``"train"`` or ``"test"``.
            recentred: take the first one's answers moved to the largest margin.
        """
        found = {pair: make(series) for pair, series in self.main.items()}
        return family(
            {pair: self.compare(*two, half, recentred=recentred) for pair, two in found.items() if two is not None}
        )

    def gains(self, half: str, *, recentred: bool = False) -> dict[Pair, Paired]:
        """The exact stage against its base ranker, for each data set and K."""
        return self.over(self.with_base, half, recentred=recentred)

    @cached_property
    def gains_test(self) -> dict[Pair, Paired]:
        """`gains` on the test halves."""
        return self.gains("test")

    @cached_property
    def gains_train(self) -> dict[Pair, Paired]:
        """`gains` on the training halves."""
        return self.gains("train")

    @cached_property
    def adds_up(self) -> bool:
        """Whether the statistic of a whole list is that of its top plus what stands below, whatever the top's order."""
        return RankStatistic.parse(self.statistic).kind.adds_up

    def reachable(self, record: Json) -> float:
        """An upper bound of the training half's statistic over all linear orders of the list of an exact cell.

        What the answer has, plus what its bound leaves open, plus the price of the weights it does without.
        """
        found, options = record["list"], record["options"]
        if found is None or not self.adds_up or "ranked" not in record:
            return math.nan
        unused = record["sizes"]["d"] - int(np.count_nonzero(record["weights"]))
        return float(record["train"][self.statistic] + found["bound"] - found["value"] + options["C"] * unused)


def _lengths(data: str, of_options: dict[str, dict[float, dict[Length, dict[int, Json]]]]) -> Lengths:
    """The options with the most results, split by time limit."""
    by_limit = max(of_options.values(), key=lambda limits: sum(map(_size, limits.values())))
    limit = min(by_limit, key=lambda seconds: (-_size(by_limit[seconds]), seconds))
    series = {
        seconds: {
            length: Series(data, Variant(EXACT, ((K, length),)), by_split)
            for length, by_split in sorted(found.items(), key=_by_length)
        }
        for seconds, found in sorted(by_limit.items())
    }
    return Lengths(data, limit, series[limit], {seconds: of for seconds, of in series.items() if seconds > limit})


def _size(by_length: dict[Length, dict[int, Json]]) -> int:
    return sum(len(by_split) for by_split in by_length.values())


def _by_length(item: tuple[Length, object]) -> tuple[bool, Length]:
    return in_order(item[0])


def _level_name(length: Length, of: dict[str, Length]) -> str:
    others = [f"{data}: {own}" for data, own in of.items() if own != length]
    return f"{length} ({', '.join(others)})" if others else str(length)


def _overlap(series: Series, half: str) -> float:
    """Rows of a half over those of the other one."""
    other = {"train": "test", "test": "train"}[half]
    return float(np.mean([record["sizes"][half][0] / record["sizes"][other][0] for record in series.records.values()]))
