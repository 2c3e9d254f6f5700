"""Published values to set beside those of a sweep, read from CSV.

The columns are ``data, method, varied, half, mean, std, note``; ``varied`` holds keys of the config that tell a variant
of the method, such as ``exact.top_k=50;exact.margin=0.001``. ``std`` and ``note`` may be empty. A line without a mean
is a note: on a data set, on a method, on a method of a data set, or, with neither, on everything. Lines before the
header that begin with ``#`` say where the values are from.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainers.config import EXACT
from trainers.files import RunError, reading
from trainers.report.evidence import Evidence
from trainers.report.markdown import literal
from trainers.report.page import Block, Section, Table, Text
from trainers.report.series import Series, Variant
from trainers.report.sweep_tables import SweepTable
from trainers.report.tables import HALVES, Reached, largest
from trainers.report.wording import ABSENT, decimals_of, percent, signed

__all__ = ["Note", "Published", "Reference", "read_reference", "reference_section"]

_COLUMNS = ("data", "method", "varied", "half", "mean", "std", "note")


@dataclass(frozen=True)
class Published:
    """A published value.

    Attributes:
        data: name of the data set.
        variant: the method, with the keys that tell which of its variants is meant.
        half: ``"train"`` or ``"test"``.
        mean: over the published splits.
        std: over them, NaN where it is not known.
        note: about this value.
    """

    data: str
    variant: Variant
    half: str
    mean: float
    std: float
    note: str = ""


@dataclass(frozen=True)
class Note:
    """What is known about published values.

    Attributes:
        data: name of the data set that it is about, empty for all.
        method: name of the method, empty for all.
        text: the note.
    """

    data: str
    method: str
    text: str


@dataclass(frozen=True)
class Reference:
    """Published values.

    Attributes:
        source: where they are from.
        values: in the order of the file.
        notes: likewise.
    """

    source: str
    values: tuple[Published, ...]
    notes: tuple[Note, ...]


def read_reference(path: Path) -> Reference:
    """The published values in a CSV file.

    Raises:
        RunError: no such file, or lines that are not as they must be, all of them named.
    """
    with reading(path, advice="--reference takes CSV of published values"):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    start = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    reader = csv.DictReader(lines[start:])
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise RunError(f"{path}: needs the columns {', '.join(_COLUMNS)}; has no {', '.join(missing)}")
    values, notes, wrong = [], [], []
    for line in reader:
        try:
            found = _parse(line)
        except ValueError as error:
            wrong.append(f"line {start + reader.line_num}: {error}")
            continue
        if isinstance(found, Note):
            notes.append(found)
        else:
            values.append(found)
    if wrong:
        raise RunError(
            "\n  ".join([f"{path}: {len(wrong)} wrong lines", *wrong] if wrong[1:] else [f"{path}, {wrong[0]}"])
        )
    return Reference(" ".join(line.lstrip("# ") for line in lines[:start]), tuple(values), tuple(notes))


def _parse(line: Mapping[str, str | None]) -> Published | Note:
    if None in line:  # where csv puts what no column is for
        raise ValueError("has more values than the header has names; a note with commas needs quotes")
    data, method, varied, half, mean, std, note = ((line[name] or "").strip() for name in _COLUMNS)
    if not mean:
        if not note:
            raise ValueError("must have a mean, or a note")
        return Note(data, method, note)
    if not data or not method:
        raise ValueError("must have data and method where it has a mean")
    if half not in HALVES:
        raise ValueError(f"half must be train or test, got {half!r}")
    choice = tuple(_varied(part) for part in varied.split(";") if part.strip())
    spread = _number("std", std) if std else math.nan
    return Published(data, Variant(method, choice), half, _number("mean", mean), spread, note)


def _varied(text: str) -> tuple[str, Any]:
    key, equals, value = (part.strip() for part in text.partition("="))
    if not (key and equals and value):
        raise ValueError(f"varied must be key=value, several with ; between them, got {text.strip()!r}")
    return key, _value(value)


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a number, got {text!r}")
    return value


@dataclass(frozen=True)
class _Pair:
    """A published value and ours."""

    published: Published
    ours: Reached
    full: int

    @property
    def difference(self) -> float:
        return self.ours.mean - self.published.mean

    @property
    def percent(self) -> float:
        return 100 * self.difference / self.published.mean if self.published.mean else math.nan

    @property
    def within(self) -> bool | None:
        """Whether the difference is at most the published standard deviation; None where that is not known."""
        return None if math.isnan(self.published.std) else abs(self.difference) <= self.published.std


def reference_section(evidence: Evidence, reference: Reference) -> Section:
    """The published values beside those of the sweep, and what is known of why they differ."""
    every = (series for table in evidence.tables for row in table.rows.values() for series in row.values())
    full = max((len(series.records) for series in every), default=0)
    pairs: dict[str, list[_Pair]] = {}
    for value in reference.values:
        series = _counterpart(value, evidence.tables)
        if series is not None:
            ours = Reached.of(series.values(value.half, evidence.statistic))
            if ours.splits:
                pairs.setdefault(value.data, []).append(_Pair(value, ours, full))
    blocks: list[Block] = [Text(reference.source)] if reference.source else []
    blocks += [Text(_coverage(reference, pairs)), *_notes(reference, "")]
    if pairs:
        blocks.append(_overview(pairs))
    for data, found in pairs.items():
        blocks += [Text(f"**{literal(data)}**"), *_notes(reference, data), _table(found)]
    return Section("Beside published values", blocks)


def _counterpart(value: Published, tables: Sequence[SweepTable]) -> Series | None:
    """The series that the value is about: nothing varied of it that the value does not name, and its options agree."""
    wanted = dict(value.variant.varied)
    for table in tables:
        for variant, series in table.rows.get(value.data, {}).items():
            if variant.method != value.variant.method or any(wanted.get(key) != own for key, own in variant.varied):
                continue
            options = [record["options"] for record in series.records.values()]
            if all(o.get(key.rpartition(".")[2]) == asked for o in options for key, asked in wanted.items()):
                return series
    return None


def _coverage(reference: Reference, pairs: Mapping[str, Sequence[_Pair]]) -> str:
    found = [pair for group in pairs.values() for pair in group]
    known = [pair.within for pair in found if pair.within is not None]
    text = f"{len(found)} of {len(reference.values)} published values have a counterpart in this sweep."
    if known:
        text += f" Of {len(known)} with a standard deviation, {sum(known)} differ from ours by at most that."
    return text


def _notes(reference: Reference, data: str) -> Iterator[Text]:
    """The notes on a data set, or on all."""
    for note in reference.notes:
        if note.data == data:
            about = f"`{note.method}`: " if note.method else ""
            yield Text(f"{about}{note.text}")


def _overview(pairs: Mapping[str, Sequence[_Pair]]) -> Table:
    groups = [(exact, half) for exact in (False, True) for half in HALVES]
    rows = []
    for data, found in pairs.items():
        known = [pair.within for pair in found if pair.within is not None]
        cells = [_mean_percent([p for p in found if _is(p, exact, half)]) for exact, half in groups]
        rows.append([literal(data), str(len(found)), f"{sum(known)} of {len(known)}", *cells])
    kinds = {False: "first stages", True: "exact"}
    header = ["data set", "values", "within one std", *(f"{kinds[exact]}, {half}" for exact, half in groups)]
    return Table(
        header, rows, "Mean of ours less published, in percent of published, of first-stage and exact methods."
    )


def _is(pair: _Pair, exact: bool, half: str) -> bool:
    return (pair.published.variant.method == EXACT) == exact and pair.published.half == half


def _mean_percent(pairs: Sequence[_Pair]) -> str:
    known = [pair.percent for pair in pairs if not math.isnan(pair.percent)]
    return percent(float(np.mean(known)) if known else math.nan)


def _table(pairs: Sequence[_Pair]) -> Table:
    places = decimals_of(largest(pair.ours for pair in pairs))
    rows, last = [], None
    for pair in pairs:
        published = pair.published
        own = Reached(published.mean, None if math.isnan(published.std) else published.std, pair.full)
        label = literal(published.variant.label)
        rows.append(
            [
                label if label != last else "",
                published.half,
                own.text(places, pair.full),
                pair.ours.text(places, pair.full),
                signed(pair.difference, places),
                percent(pair.percent),
                {True: "yes", False: "no", None: ABSENT}[pair.within],
            ]
        )
        last = label
    header = ["method", "half", "published", "ours", "difference", "in percent", "within its std"]
    notes = [
        f"{pair.published.variant.label}, {pair.published.half}: {pair.published.note}."
        for pair in pairs
        if pair.published.note
    ]
    return Table(header, rows, literal(" ".join(notes)), left=2)
