"""Comparisons of one option's values in a report: what each option of the exact stage changes, and recentring."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainers.report import wording as say
from trainers.report.evidence import PARTS, TIME_LIMIT, Evidence, K, Series, key_name, mean_of
from trainers.report.page import Block, Table, Text, literal
from trainers.report.paired import Paired, family


def comparison_table(
    found: Mapping[say.Pair, Paired | None], evidence: Evidence, difference: str, *, varied: str = "K",
    caption: str = "", more: Mapping[str, Callable[[say.Pair], str]] | None = None, decimals: int | None = None,
) -> Table:  # fmt: skip
    """Return a family of comparisons, by data set and value of an option, as a table.

    A comparison is None for the value that others are compared with. `difference` is the heading of the differences,
    such as ``exact - base``, and `more` has further columns: the functions that give their text, by heading.
    """
    d = evidence.decimals if decimals is None else decimals
    rows = []
    for pair, one in found.items():
        row = [literal(pair[0]), say.value_text(pair), *(text(pair) for text in (more or {}).values())]
        if one is None:
            rows.append([*row, say.ABSENT, "reference", say.ABSENT, say.ABSENT, say.ABSENT])
            continue
        change = f"{say.signed(one.difference, d)} ({say.percent(one.percent)})"
        rows.append([*row, str(one.splits), change, say.fixed(one.width, d), say.p_text(one.p), say.p_text(one.p_holm)])
    header = ["data set", varied, *(more or {}), "splits", difference, "± 95%", "p", "p Holm"]
    test = say.tests_text({pair: one for pair, one in found.items() if one is not None})
    return Table(header, rows, f"{caption} p: {test}.".strip())


@dataclass(frozen=True)
class OptionTable:
    """A table of the sweep in which one option of the exact stage varies alone."""

    key: str  # the option
    title: str  # title of the table
    series: dict[say.Pair, Series]  # series by data set and value, in order
    reference: dict[str, float | str]  # the value with which others are compared, by data set

    def compared(self, evidence: Evidence, part: str) -> dict[say.Pair, Paired]:
        """Compare each value with the reference, as one family."""
        found = {}
        for (data, value), series in self.series.items():
            if value != (reference := self.reference[data]):
                found[data, value] = evidence.compare(series, self.series[data, reference], part)
        return family(found)


def option_tables(evidence: Evidence) -> list[OptionTable]:
    """Return the tables that vary an option of the exact stage other than K."""
    found = []
    for table in evidence.tables:
        for key in sorted(table.keys - {K}):
            rows = table.along(key)
            if any(len(row) > 1 for row in rows.values()):
                series: dict[say.Pair, Series] = {
                    (data, _as_number(v)): one for data, row in rows.items() for v, one in row.items()
                }
                reference = {data: _reference(evidence, key, list(row), data) for data, row in rows.items()}
                found.append(OptionTable(key, table.title, series, reference))
    return found


def _reference(evidence: Evidence, key: str, values: list[Any], data: str) -> float | str:
    """Return the smallest price C; of other options the value that the sweep's other tables use, else the first."""
    if key not in ("exact.C", TIME_LIMIT) and data in evidence.lengths:
        usual = next(iter(evidence.lengths[data].main.values())).option(key.rpartition(".")[2])
        if usual in values:
            return _as_number(usual)
    return _as_number(values[0])


def _as_number(value: Any) -> float | str:  # noqa: ANN401  (a value of an option)
    return value if isinstance(value, str) else float(value)


def option_blocks(evidence: Evidence, table: OptionTable) -> Iterator[Block]:
    """Yield the blocks on one option."""
    name, d = key_name(table.key), evidence.decimals
    of: dict[str, list[str]] = {}
    for pair in table.reference.items():
        of.setdefault(say.value_text(pair), []).append(pair[0])
    usual = say.listed([f"{value} ({say.listed(data)})" if len(of) > 1 else value for value, data in of.items()])
    found = {part: table.compared(evidence, part) for part in PARTS}
    yield Text(f"**{literal(table.title or name)}**")
    for part, named in (("test", "test"), ("train", "training")):
        against = f"{name} = {usual} on the {named} sets"
        yield Text(say.verdict_text(found[part], f"another {name}", against, d, name))

    def gain(pair: say.Pair) -> str:
        one = found["train"].get(pair)
        return say.ABSENT if one is None else f"{say.signed(one.difference, d)} (p = {say.p_text(one.p_holm)})"

    def nonzero(pair: say.Pair) -> str:
        weights = [r["weights"] for r in table.series[pair].records.values() if r["weights"] is not None]
        return say.fixed(float(np.mean([np.count_nonzero(w) for w in weights])) if weights else math.nan, 1)

    more = {
        "proven": lambda pair: table.series[pair].proven,
        "weights": nonzero,
        "train": lambda pair: say.fixed(mean_of(table.series[pair].values("train", evidence.statistic)), d),
        "difference on train": gain,
        "test": lambda pair: say.fixed(mean_of(table.series[pair].values("test", evidence.statistic)), d),
    }
    compared = {pair: found["test"].get(pair) for pair in table.series}
    caption = "Weights: mean number of non-zero weights. Differences are from the reference."
    yield comparison_table(compared, evidence, "difference on test", varied=name, caption=caption, more=more)
