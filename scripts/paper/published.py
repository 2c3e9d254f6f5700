"""The paper's published values, read from CSV, beside those of a sweep.

The columns are ``data, method, varied, half, mean, std, note``. ``varied`` holds the options that tell a variant of the
method, such as ``exact.top_k=50;exact.margin=0.001``; ``half`` is ``train`` or ``test``; ``std`` and ``note`` may be
empty. A line without a mean is a note on a data set, on a method, on a method of a data set, or, with neither, on
everything. Lines before the header that begin with ``#`` name the source.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainers.config import EXACT
from trainers.report.evidence import PARTS, Evidence, Series, SweepTable, Variant, mean_of
from trainers.report.page import Block, Section, Table, Text, literal
from trainers.report.tables import Reached, largest
from trainers.report.wording import ABSENT, decimals_of, percent, signed


@dataclass(frozen=True)
class Published:
    """A published value."""

    data: str  # name of the data set
    variant: Variant  # the method and its options
    part: str  # ``train`` or ``test``
    mean: float  # mean over splits
    std: float  # standard deviation over splits, NaN where it is unknown
    note: str = ""  # remark under the table


@dataclass(frozen=True)
class Note:
    """A note on a data set, a method, or both."""

    data: str  # name of the data set, empty for all
    method: str  # name of the method, empty for all
    text: str  # the note


@dataclass(frozen=True)
class Reference:
    """The contents of a file of published values, in its order."""

    source: str  # where the values are from
    values: tuple[Published, ...]  # the lines with a mean
    notes: tuple[Note, ...]  # the others


def read_reference(path: Path) -> Reference:
    """Read published values."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if not line.startswith("#"))
    values, notes = [], []
    for line in csv.DictReader(lines[start:]):
        if not line["mean"]:
            notes.append(Note(line["data"], line["method"], line["note"]))
            continue
        varied = tuple(_option(text) for text in line["varied"].split(";") if text)
        variant, spread = Variant(line["method"], varied), float(line["std"] or math.nan)
        values.append(Published(line["data"], variant, line["half"], float(line["mean"]), spread, line["note"]))
    return Reference(" ".join(line.lstrip("# ") for line in lines[:start]), tuple(values), tuple(notes))


def _option(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    with contextlib.suppress(ValueError):
        return key.strip(), json.loads(value)
    return key.strip(), value


@dataclass(frozen=True)
class _Beside:
    """A published value and the sweep's."""

    published: Published
    ours: Reached

    @property
    def difference(self) -> float:
        return self.ours.mean - self.published.mean

    @property
    def percent(self) -> float:
        return 100 * self.difference / self.published.mean if self.published.mean else math.nan

    @property
    def within(self) -> bool | None:
        """Whether the difference is at most the published standard deviation; None where that is unknown."""
        return None if math.isnan(self.published.std) else abs(self.difference) <= self.published.std


def reference_section(evidence: Evidence, reference: Reference) -> Section:
    """Compare published values with those of the sweep, with the notes on why they differ."""
    found: dict[str, list[_Beside]] = {}
    for value in reference.values:
        if (series := _counterpart(value, evidence.tables)) is not None:
            ours = Reached.of(series.values(value.part, evidence.statistic))
            if ours.splits:
                found.setdefault(value.data, []).append(_Beside(value, ours))
    every = [one for group in found.values() for one in group]
    known = [one.within for one in every if one.within is not None]
    text = f"{len(every)} of {len(reference.values)} published values have a counterpart in this sweep."
    if known:
        text += f" Of {len(known)} with a standard deviation, {sum(known)} differ from ours by at most that."
    blocks: list[Block] = [Text(reference.source)] if reference.source else []
    blocks += [Text(text), *_notes(reference, "")]
    if found:
        blocks.append(_overview(found))
    full = max(len(s.records) for table in evidence.tables for row in table.rows.values() for s in row.values())
    for data, group in found.items():
        blocks += [Text(f"**{literal(data)}**"), *_notes(reference, data), _table(group, full)]
    return Section("Beside published values", blocks)


def _counterpart(value: Published, tables: Sequence[SweepTable]) -> Series | None:
    """Return the series that agrees in all options the value names and varies no other option."""
    wanted = dict(value.variant.varied)
    for table in tables:
        for variant, series in table.rows.get(value.data, {}).items():
            if variant.method != value.variant.method or any(wanted.get(key) != own for key, own in variant.varied):
                continue
            options = [record["options"] for record in series.records.values()]
            if all(o.get(key.rpartition(".")[2]) == asked for o in options for key, asked in wanted.items()):
                return series
    return None


def _notes(reference: Reference, data: str) -> Iterator[Text]:
    for note in reference.notes:
        if note.data == data:
            yield Text(f"`{note.method}`: {note.text}" if note.method else note.text)


def _overview(found: Mapping[str, Sequence[_Beside]]) -> Table:
    rows = []
    for data, group in found.items():
        known = [one.within for one in group if one.within is not None]
        row = [literal(data), str(len(group)), f"{sum(known)} of {len(known)}"]
        for exact in (False, True):
            for part in PARTS:
                kind = [o for o in group if (o.published.variant.method == EXACT) == exact and o.published.part == part]
                row.append(percent(mean_of(np.array([one.percent for one in kind]))))
        rows.append(row)
    kinds = [f"{kind}, {part}" for kind in ("first stages", "exact") for part in PARTS]
    caption = "Mean of ours less published, in percent of published, of first-stage and exact methods."
    return Table(["data set", "values", "within one std", *kinds], rows, caption)


def _table(group: Sequence[_Beside], full: int) -> Table:
    places = decimals_of(largest(one.ours for one in group))
    rows, last = [], None
    for one in group:
        published, label = one.published, one.published.variant.label
        own = Reached(published.mean, None if math.isnan(published.std) else published.std, full)
        within = {True: "yes", False: "no", None: ABSENT}[one.within]
        values = [own.text(places, full), one.ours.text(places, full), signed(one.difference, places)]
        rows.append([literal(label) if label != last else "", published.part, *values, percent(one.percent), within])
        last = label
    header = ["method", "set", "published", "ours", "difference", "in percent", "within its std"]
    notes = [f"{o.published.variant.label}, {o.published.part}: {o.published.note}." for o in group if o.published.note]
    return Table(header, rows, literal(" ".join(notes)), left=2)
