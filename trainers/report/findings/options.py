"""Findings: what the price C of a non-zero weight and the margin do."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trainers.files import Json
from trainers.report.evidence import Evidence, Pair
from trainers.report.findings.verdicts import splits_text, tests_text, verdict_text
from trainers.report.page import Block, Section, Table, Text
from trainers.report.paired import Paired, family
from trainers.report.series import Series, key_name, mean_of
from trainers.report.wording import counted, fixed, listed, p_text, signed

__all__ = ["OptionTable", "option_section", "option_tables"]

_KEYS = {"exact.C": "the price C", "exact.margin": "the margin"}


@dataclass(frozen=True)
class OptionTable:
    """A table of the sweep that varies one option of the exact stage alone.

    Attributes:
        key: of the option.
        title: of the table.
        series: by data set and value, ascending.
        reference: the value that others are compared with, by data set.
    """

    key: str
    title: str
    series: dict[Pair, Series]
    reference: dict[str, float]

    def compared(self, evidence: Evidence, half: str) -> dict[Pair, Paired]:
        """Each value against the reference, as one family."""
        return family(
            {
                (data, value): evidence.compare(series, self.series[data, self.reference[data]], half)
                for (data, value), series in self.series.items()
                if value != self.reference[data]
            }
        )


def option_tables(evidence: Evidence) -> list[OptionTable]:
    """The tables of the sweep that vary C or the margin."""
    found = []
    for key, table in itertools.product(_KEYS, evidence.tables):
        for lines in table.along(key):
            if not lines.held and any(len(row) > 1 for row in lines.rows.values()):
                series: dict[Pair, Series] = {
                    (data, float(v)): one for data, row in lines.rows.items() for v, one in row.items()
                }
                reference = {data: _reference(evidence, key, row, data) for data, row in lines.rows.items()}
                found.append(OptionTable(key, table.title, series, reference))
    return found


def _reference(evidence: Evidence, key: str, values: Iterable[float], data: str) -> float:
    """The smallest price; of the margin, the one that the other tables use."""
    if key == "exact.margin" and data in evidence.lengths:
        options = next(iter(next(iter(evidence.lengths[data].main.values())).records.values()))["options"]
        usual = float(options["margin"])
        if usual in values:
            return usual
    return float(min(values))


def option_section(evidence: Evidence) -> Section | None:
    """How much the price and the margin help; None where no table varies them."""
    tables = option_tables(evidence)
    if not tables:
        return None
    blocks: list[Block] = []
    for table in tables:
        blocks += _blocks(evidence, table)
    return Section("Do the price of a weight and the margin matter?", blocks)


def _blocks(evidence: Evidence, table: OptionTable) -> list[Block]:
    d, name = evidence.decimals, key_name(table.key)
    test, train = table.compared(evidence, "test"), table.compared(evidence, "train")
    references = _by_value(table.reference)
    what, against = f"another {name}", f"{name} = {references}"
    texts = [f"**{_title(table)}.** {verdict_text(test, what, f'{against} on the test halves', d, name)}"]
    texts.append(verdict_text(train, what, f"{against} on the training halves", d, name))
    if table.key == "exact.C":
        texts.append(_weights_text(table))
    return [*map(Text, texts), _table(evidence, table, test, train)]


def _title(table: OptionTable) -> str:
    return table.title or _KEYS[table.key].capitalize()


def _by_value(reference: dict[str, float]) -> str:
    """The references, such as ``1e-06``, or ``0.001 (roc_flexibility) and 0.0001 (uis)``."""
    values = sorted(set(reference.values()))
    if len(values) == 1:
        return f"{values[0]:g}"
    return listed([f"{v:g} ({listed([data for data, of in reference.items() if of == v])})" for v in values])


def _nonzero(records: list[Json]) -> float:
    counts = [int(np.count_nonzero(record["weights"])) for record in records if record["weights"] is not None]
    return float(np.mean(counts)) if counts else float("nan")


def _weights_text(table: OptionTable) -> str:
    """How the number of non-zero weights falls with the price, on the splits that all prices have."""
    parts = []
    for data in dict.fromkeys(data for data, _ in table.series):
        of = {value: series for (name, value), series in table.series.items() if name == data}
        splits = set.intersection(*(set(series.splits) for series in of.values()))
        means = [_nonzero([s.records[split] for split in splits]) for s in of.values()]
        if np.isnan(means).any():
            continue
        d = next(iter(of[min(of)].records.values()))["sizes"]["d"]
        low, high = f"{means[0]:.1f}", f"{means[-1]:.1f}"
        change = f"stays at {low}" if low == high else f"goes from {low} to {high}"
        parts.append(f"on {data} it {change} of {d} ({counted(len(splits), 'split')})")
    if not parts:
        return "How many weights are not 0 cannot be compared yet."
    values = sorted({value for _, value in table.series})
    return f"The mean number of non-zero weights, from C = {values[0]:g} to {values[-1]:g}: {'; '.join(parts)}."


def _table(evidence: Evidence, table: OptionTable, test: dict[Pair, Paired], train: dict[Pair, Paired]) -> Table:
    d, rows = evidence.decimals, []
    for pair, series in table.series.items():
        records = list(series.records.values())
        means = [mean_of(series.values(half, evidence.statistic)) for half in ("train", "test")]
        found = test.get(pair)
        is_reference = pair[1] == table.reference[pair[0]]
        rows.append(
            [
                pair[0],
                f"{pair[1]:g}",
                series.proven,
                fixed(_nonzero(records), 1),
                fixed(means[0], d),
                p_text(train[pair].p_holm) if pair in train else "",
                fixed(means[1], d),
                "reference" if is_reference else signed(found.difference, d) if found else "",
                fixed(found.corrected, d) if found else "",
                p_text(found.p_holm) if found else "",
            ]
        )
    key = key_name(table.key)
    header = ["data", key, "proven", "weights", "training", "p Holm", "test", "difference", "± corrected", "p Holm"]
    caption = (
        "Weights: mean number that are not 0. Difference: on the test halves, from the reference. "
        f"{splits_text(test).capitalize()}; {tests_text(test)}, for each half."
        if test
        else "Weights: mean number that are not 0."
    )
    return Table(header, rows, caption)
