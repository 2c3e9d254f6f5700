"""The comparisons of a board: what runs on the same data have in common, and the tables of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import matplotlib.image
import numpy as np
from numpy.typing import NDArray

from ltr.exact.solution import relative_gap
from trainers.board.lines import PARTS, Comparison, Line, Points, mean_curve
from trainers.config import EXACT, Config, load_config
from trainers.config.errors import ConfigError
from trainers.files import Json, RunError, reading
from trainers.records import SweepResults, thinned
from trainers.report.series import Series, key_name, tables_of
from trainers.run.folder import MethodFolder, RunFolder
from trainers.run.results import read_run
from trainers.run.tracking import read_log
from trainers.task.measures import share_name

_POINTS = 120
"""Largest number of points of a curve or trace that is a mean over splits."""
_LOSS, _TRACE = "loss/convex", "exact/"


def comparisons_of_runs(runs: Sequence[RunFolder], note: Callable[[str], None]) -> list[Comparison]:
    """Return the comparisons of runs, one for each data set in the order of its first run."""
    groups: dict[tuple[str, str], list[tuple[RunFolder, Config]]] = {}
    for run in runs:
        try:
            config = load_config(run.config)
            with reading(run.origin):
                data = run.facts["data"]
                groups.setdefault((data["name"], data["sha256"]), []).append((run, config))
        except (RunError, ConfigError) as error:
            note(f"{run.path} is left out: {error}")
    found = []
    for (data_name, _), members in groups.items():
        lines: list[Line] = []
        images: dict[str, NDArray[np.float64]] = {}
        for (run, config), own in zip(members, _names([run for run, _ in members]), strict=True):
            suffix = "" if len(members) == 1 else f", {own}"
            try:
                lines += _lines_of_run(run, config, suffix, note)
            except RunError as error:
                note(f"{run.path} is left out: {error}")
                continue
            images |= {f"ranked list, {name}{suffix}": image for name, image in _images(run)}
        if lines:
            run, config = members[0]
            first = config.reported[0]
            statistic = share_name(first) if "queries" in run.facts["data"] else first
            found.append(Comparison(data_name, data_name, data_name, statistic, lines, images))
    return found


def _names(runs: Sequence[RunFolder]) -> list[str]:
    """Return a name for each run: its folder's, with as many of the folders above as runs of one name need."""
    paths = [run.path.resolve().parts for run in runs]
    names = []
    for path in paths:
        others = [other for other in paths if other != path]
        kept = next(n for n in range(1, len(path) + 1) if all(other[-n:] != path[-n:] for other in others))
        names.append(" in ".join(reversed(path[-kept:])))
    return names


def _lines_of_run(run: RunFolder, config: Config, suffix: str, note: Callable[[str], None]) -> list[Line]:
    """Return the methods of a run that have begun, with every logged value."""
    records = {record["method"]: record for record in read_run(run, note).records}
    data = run.facts["data"]
    lines = []
    for method in config.methods:
        logged = _logged(MethodFolder(run.path / method))
        if not logged and method not in records:
            continue
        sections = {EXACT: config.exact} | dict.fromkeys(config.surrogate.losses, config.surrogate)
        options = sections[method].model_dump() if method in sections else {}
        parameters = {"data": data["name"], "method": method}
        parameters |= {"run": suffix.removeprefix(", ")} if suffix else {}
        parameters |= {**_parameters(method, options), "split": str(data.get("split_seed", "given"))}
        trained = {"loss": logged[_LOSS]} if _LOSS in logged else {}
        trained |= {
            tag: points for tag, points in logged.items() if tag.startswith(tuple(f"{part}/" for part in PARTS))
        }
        lines.append(
            Line(
                f"{method}{suffix}",
                parameters,
                [records[method]] if method in records else [],
                {tag: points for tag, points in trained.items() if not _is_level(points)},
                {tag.removeprefix(_TRACE): points for tag, points in logged.items() if tag.startswith(_TRACE)},
            )
        )
    return lines


def _logged(folder: MethodFolder) -> dict[str, list[tuple[int, float]]]:
    """Return steps and values by tag."""
    logged: dict[str, list[tuple[int, float]]] = {}
    with reading(folder.log):
        for entry in read_log(folder.log):
            for tag, value in entry["values"].items():
                if value is not None:
                    logged.setdefault(tag, []).append((int(entry["step"]), float(value)))
    return logged


def _is_level(points: Points) -> bool:
    """Return whether a method without steps drew a line: a board draws its own, of one length for all."""
    return points[0][0] == 0 and len(points) <= 2 and points[0][1] == points[-1][1]


def _images(run: RunFolder) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield the pictures of ranked lists that the run has drawn."""
    for name in ("training", "test"):
        path = run.path / f"ranked_list_{name}.png"
        if path.exists():
            with reading(path):
                yield name, matplotlib.image.imread(path)


def comparisons_of_sweep(results: SweepResults, split: int | None = None) -> list[Comparison]:
    """Return the comparisons of a sweep, one for each table and data set, as means over its splits or on one."""
    tables = {}
    for table in tables_of(results):
        for data, row in table.rows.items():
            there = [series for series in row.values() if split is None or split in series.records]
            if chosen := [series if split is None else series.at((split,)) for series in there]:
                tables[data, table.name] = table.title, chosen
    several = Counter(data for data, _ in tables)
    found = []
    for (data, table_name), (title, chosen) in tables.items():
        name = data if several[data] == 1 else f"{data}, {table_name}"
        lines = [_line_of_series(series, table_name if several[data] > 1 else None) for series in chosen]
        statistic = next(iter(lines[0].final)).partition("/")[2]  # the exact stage's, which records have first
        found.append(Comparison(name, data, f"{data}: {title}" if title else name, statistic, lines))
    return found


def _line_of_series(series: Series, table: str | None) -> Line:
    """Return one variant of a method, as the mean over its splits."""
    splits, variant = series.splits, series.variant
    records = [series.records[split] for split in splits]
    shown = _parameters(variant.method, records[0]["options"])
    varied = {key_name(key): str(value) for key, value in variant.varied if key not in _SHOWN_KEYS}
    parameters: dict[str, str | float] = {"table": table} if table is not None else {}
    split = {"split": str(splits[0]) if len(splits) == 1 else f"mean of {len(splits)}"}
    parameters = {"data": series.data, "method": variant.method, **parameters, **shown, **varied, **split}
    return Line(variant.label, parameters, records, _curves(records), _trace(records))


_SHOWN_KEYS = ("exact.top_k", "exact.base", "exact.C", "exact.margin", "exact.time_limit", "surrogate.l2")
"""Keys of the config that `_parameters` names."""


def _parameters(method: str, options: Mapping[str, object]) -> dict[str, str | float]:
    """Return the options of a method that matter most."""
    if method == EXACT:
        names = {"K": "top_k", "base": "base", "C": "C", "margin": "margin", "time limit": "time_limit"}
    else:
        names = {"l2": "l2"} if "l2" in options else {}
    return {shown: str(options[name]) if shown == "K" else options[name] for shown, name in names.items()}  # type: ignore[misc]


def _curves(records: Sequence[Json]) -> dict[str, Points]:
    """Return the mean curves of records: loss and first statistic against steps."""
    curves: dict[str, list[Points]] = {}
    for record in records:
        first = next(iter(record["train"]))
        for at, tag in enumerate(("loss", f"train/{first}", f"test/{first}"), start=1):
            points = [(int(point[0]), float(point[at])) for point in record.get("curve") or () if point[at] is not None]
            curves.setdefault(tag, []).append(points)
    return _means(curves)


def _trace(records: Sequence[Json]) -> dict[str, Points]:
    """Return the mean traces of records: incumbent, bound and gap against milliseconds."""
    found: dict[str, list[Points]] = {"incumbent": [], "bound": [], "gap": []}
    for record in records:
        # the last of the points of one millisecond
        trace = record.get("trace") or ()
        at = {round(1000 * seconds): (value, bound) for seconds, value, bound, *_ in trace}
        gaps = {step: relative_gap(*both) for step, both in at.items()}
        found["incumbent"].append([(step, value) for step, (value, _) in at.items()])
        found["bound"].append([(step, bound) for step, (_, bound) in at.items()])
        found["gap"].append([(step, gap) for step, gap in gaps.items() if np.isfinite(gap)])
    return _means(found)


def _means(found: Mapping[str, Sequence[Points]]) -> dict[str, Points]:
    """Return the mean over splits of each series that has points."""
    means = {tag: thinned(mean_curve(several), _POINTS) for tag, several in found.items()}
    return {tag: points for tag, points in means.items() if points}
