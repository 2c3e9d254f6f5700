"""What the pictures of a sweep are drawn from: tables side by side, series along an option, base rankers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainers.config import EXACT
from trainers.files import Json
from trainers.report.series import Series, Variant, key_name, statistic_of_sweep, table_names, variants_of
from trainers.sweep.records import SweepResults

__all__ = ["TIME_LIMIT", "Along", "Group", "K", "Material", "along", "count_of_splits", "is_proven", "ordered"]

K = "exact.top_k"
TIME_LIMIT = "exact.time_limit"


@dataclass(frozen=True)
class Group:
    """Tables that ask the same of different data sets.

    Attributes:
        name: of the first of them.
        title: likewise.
        rows: their series, by data set, then by variant.
    """

    name: str
    title: str
    rows: Mapping[str, Mapping[Variant, Series]]

    @property
    def exact(self) -> dict[str, dict[Variant, Series]]:
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


def _asked(series: Series, without: Iterable[str]) -> frozenset[str]:
    ignored = {key.removeprefix(f"{EXACT}.") for key in without}
    kept = ({k: v for k, v in record["options"].items() if k not in ignored} for record in series.records.values())
    return frozenset(json.dumps(options, sort_keys=True) for options in kept)


@dataclass(frozen=True)
class Along:
    """The exact series of a group along one option, all others held.

    Attributes:
        group: which.
        key: the option.
        held: the other varied keys with their values.
        rows: by data set, values of the option in order, each with its series.
    """

    group: Group
    key: str
    held: tuple[tuple[str, Any], ...]
    rows: Mapping[str, Mapping[Any, Series]]

    @property
    def name(self) -> str:
        """For a file: the group, and what is held."""
        return "_".join([self.group.name, *(f"{key_name(key)}_{value}" for key, value in self.held)])

    @property
    def holding(self) -> str:
        """What is held, for a caption; empty for nothing."""
        return "".join(f", at {key_name(key)} = {value}" for key, value in self.held)

    @property
    def series(self) -> Iterator[Series]:
        """All of them."""
        return (series for row in self.rows.values() for series in row.values())


def along(group: Group, key: str) -> list[Along]:
    """The exact series of a group along an option, once for each choice of the other varied ones.

    Args:
        group: of tables.
        key: of the config.
    """
    found: dict[tuple[tuple[str, Any], ...], dict[str, dict[Any, Series]]] = {}
    for data, row in group.exact.items():
        for variant, series in row.items():
            choice = dict(variant.varied)
            if key in choice:
                value = choice.pop(key)
                found.setdefault(tuple(choice.items()), {}).setdefault(data, {})[value] = series
    return [
        Along(group, key, held, {data: {value: row[value] for value in ordered(row)} for data, row in rows.items()})
        for held, rows in found.items()
    ]


def ordered(values: Iterable[Any]) -> list[Any]:
    """Values of an option, numbers ascending, then words.

    Examples:
        >>> ordered(["full", 100, 50])
        [50, 100, 'full']
    """
    return sorted(values, key=lambda value: (isinstance(value, str), value))


def is_proven(record: Json) -> bool:
    """Whether nothing better than an exact cell's answer exists: proven, or there was nothing to rerank."""
    return record["list"] is None or record["status"] == "optimal"


def count_of_splits(counts: Iterable[int]) -> str:
    """How many splits there are, in words.

    Examples:
        >>> count_of_splits([3, 10, 10]), count_of_splits([1])
        ('3 to 10 splits', '1 split')
    """
    found = sorted(set(counts))
    if len(found) == 1:
        return f"{found[0]} split{'' if found[0] == 1 else 's'}"
    return f"{found[0]} to {found[-1]} splits"


@dataclass(frozen=True)
class Material:
    """A sweep's results as the pictures need them."""

    results: SweepResults

    @cached_property
    def statistic(self) -> str:
        """The statistic that the exact stage maximises."""
        return statistic_of_sweep(self.results)

    @cached_property
    def exact_records(self) -> list[Json]:
        """All finished cells of the exact stage."""
        return [record for record in self.results.records if record["method"] == EXACT]

    @cached_property
    def base(self) -> str | None:
        """The base ranker of most exact cells."""
        counts = Counter(record["options"]["base"] for record in self.exact_records)
        return counts.most_common(1)[0][0] if counts else None

    @cached_property
    def methods(self) -> list[str]:
        """The first-stage methods of the sweep, the usual base ranker first."""
        found = dict.fromkeys(record["method"] for record in self.results.records if record["method"] != EXACT)
        return sorted(found, key=lambda method: method != self.base)

    @cached_property
    def groups(self) -> list[Group]:
        """The tables, those of different data sets that ask the same put together."""
        found: list[Group] = []
        for name, title in table_names(self.results).items():
            new = Group(name, title or name, variants_of(self.results, name))
            for at, old in enumerate(found):
                if _belongs(new, old):
                    found[at] = Group(old.name, old.title, {**old.rows, **new.rows})
                    break
            else:
                found.append(new)
        return [group for group in found if group.rows]

    @cached_property
    def main_groups(self) -> list[Group]:
        """The groups without those that another one has on more splits, but for the time limit."""
        return [group for group in self.groups if not _repeats(group, self.groups)]

    def lengths(self, groups: Sequence[Group]) -> Iterator[Along]:
        """The exact series of some groups by K; where the sweep varies it nowhere, those of single variants.

        Args:
            groups: some of this sweep's.
        """
        if any(K in group.keys for group in self.groups):
            for group in groups:
                yield from along(group, K)
            return
        for group in groups:
            if group.exact and all(len(row) == 1 for row in group.exact.values()):
                single = {data: next(iter(row.values())) for data, row in group.exact.items()}
                yield Along(group, K, (), {data: {_length(series): series} for data, series in single.items()})

    def base_series(self, series: Series) -> Series | None:
        """The base rankers of an exact series, on the splits where they are known; None without any."""
        found = {split: self.results.base_of(record) for split, record in series.records.items()}
        known = {split: record for split, record in found.items() if record is not None}
        return Series(series.data, Variant(next(iter(known.values()))["method"]), known) if known else None


def _length(series: Series) -> Any:  # noqa: ANN401
    return next(iter(series.records.values()))["options"]["top_k"]


def _belongs(new: Group, old: Group) -> bool:
    """Whether a table asks of other data sets what the tables so far do."""
    if not old.exact or not new.exact or old.keys != new.keys or set(old.rows) & set(new.rows):
        return False
    return new.asked <= old.asked or old.asked <= new.asked


def _repeats(group: Group, others: Sequence[Group]) -> bool:
    return bool(group.exact) and all(
        any(_more_splits(series, other.rows.get(data, {}).get(variant)) for other in others)
        for data, row in group.exact.items()
        for variant, series in row.items()
    )


def _more_splits(series: Series, other: Series | None) -> bool:
    """Whether the other one is the same on more splits, with whatever time limit."""
    if other is None or len(other.splits) <= len(series.splits):
        return False
    return _asked(series, [TIME_LIMIT]) == _asked(other, [TIME_LIMIT])
