"""The comparisons that a sweep makes: one for each table and data set, a line for each variant of a method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ltr.exact.solution import relative_gap
from trainers.board.lines import HALVES, Comparison, Line, Points, mean_curve
from trainers.config import EXACT
from trainers.files import Json
from trainers.report.series import Series, Variant, key_name, tables_of
from trainers.sweep.cells import nothing_proven, unpack_labels
from trainers.sweep.records import SweepResults
from trainers.thinning import thinned

__all__ = ["comparisons_of_sweep"]

_POINTS = 120
"""Of a curve or trace, at most."""


def comparisons_of_sweep(results: SweepResults, split: int | None = None) -> list[Comparison]:
    """The comparisons of a sweep, its tables' data sets in order; without those that have no result yet.

    Args:
        results: of the sweep.
        split: the one to show; means over all splits when None.
    """
    tables = {}
    for of in tables_of(results):
        for data, row in of.rows.items():
            if chosen := _at(row, split):
                tables[data, of.name] = of.title, chosen
    several = Counter(data for data, _ in tables)
    found = []
    for (data, table), (title, chosen) in tables.items():
        name = data if several[data] == 1 else f"{data}, {table}"
        lines = [_line(series, table if several[data] > 1 else None) for series in chosen]
        headline = f"{data}: {title}" if title else name
        found.append(Comparison(name, data, headline, _statistic(chosen), lines))
    return found


def _at(row: Mapping[Variant, Series], split: int | None) -> list[Series]:
    if split is None:
        return list(row.values())
    return [series.at((split,)) for series in row.values() if split in series.records]


def _statistic(chosen: Sequence[Series]) -> str:
    """The statistic of the curves; that of the exact stage, which records report first."""
    return next(iter(_records(chosen[0])[0]["train"]))


def _records(series: Series) -> list[Json]:
    return [series.records[split] for split in series.splits]


def _line(series: Series, table: str | None) -> Line:
    records = _records(series)
    names = dict.fromkeys(name for record in records for name in record["test"])
    final = {f"{half}/{name}": series.values(half, name) for half in HALVES for name in names}
    final |= {what: _values(records, what) for what in ("loss", "seconds")}
    if series.variant.method == EXACT:
        final |= {what: series.on_list(what) for what in ("value", "bound", "gap")}
    return Line(
        name=series.variant.label,
        parameters=_parameters(series, table),
        final=final,
        curves=_curves(records),
        trace=_trace(records),
        unproven=sum(map(nothing_proven, records)),
        ranked=_ranked(records),
    )


def _values(records: Sequence[Json], what: str) -> NDArray[np.float64]:
    return np.array([np.nan if record.get(what) is None else record[what] for record in records], dtype=float)


def _parameters(series: Series, table: str | None) -> dict[str, str | float]:
    splits, variant = series.splits, series.variant
    options = series.records[splits[0]]["options"]
    found: dict[str, str | float] = {"data": series.data, "method": variant.method}
    found |= {"table": table} if table is not None else {}
    if variant.method == EXACT:
        found |= {"K": str(options["top_k"]), "base": options["base"], "C": options["C"], "margin": options["margin"]}
        found |= {"time limit": options["time_limit"]}
    elif "l2" in options:
        found |= {"l2": options["l2"]}
    known = ("exact.top_k", "exact.base", "exact.C", "exact.margin", "exact.time_limit", "surrogate.l2")
    found |= {key_name(key): str(value) for key, value in variant.varied if key not in known}
    return found | {"split": str(splits[0]) if len(splits) == 1 else f"mean of {len(splits)}"}


def _curves(records: Sequence[Json]) -> dict[str, Points]:
    curves: dict[str, list[Points]] = {}
    for record in records:
        first = next(iter(record["train"]))
        tags = ("loss", f"train/{first}", f"test/{first}")
        for at, tag in enumerate(tags, start=1):
            points = [(int(point[0]), float(point[at])) for point in record.get("curve") or () if point[at] is not None]
            curves.setdefault(tag, []).append(points)
    return _means(curves)


def _trace(records: Sequence[Json]) -> dict[str, Points]:
    found: dict[str, list[Points]] = {"incumbent": [], "bound": [], "gap": []}
    for record in records:
        trace = record.get("trace") or ()
        # of the points of one millisecond the last
        at = {round(1000 * seconds): (value, bound) for seconds, value, bound, *_ in trace}
        gaps = {step: relative_gap(*both) for step, both in at.items()}
        found["incumbent"].append([(step, value) for step, (value, _) in at.items()])
        found["bound"].append([(step, bound) for step, (_, bound) in at.items()])
        found["gap"].append([(step, gap) for step, gap in gaps.items() if np.isfinite(gap)])
    return _means(found)


def _means(found: Mapping[str, Sequence[Points]]) -> dict[str, Points]:
    """The mean over splits of each series that has points."""
    means = {tag: thinned(mean_curve(several), _POINTS) for tag, several in found.items()}
    return {tag: points for tag, points in means.items() if points}


def _ranked(records: Sequence[Json]) -> dict[str, list[NDArray[np.int64]]]:
    packed = [record["ranked"] for record in records if record.get("ranked")]
    return {half: [unpack_labels(ranked[half]) for ranked in packed] for half in HALVES} if packed else {}
