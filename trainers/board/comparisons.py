"""The contents of a board: for each data set the methods to compare, with their curves and final values.

What runs on the same data have in common makes a comparison, and so does each table of a sweep on a data set. A method
of a sweep is shown as the mean over its splits. Curves are then means of step functions: each split keeps a value
until its next one, and its last value after it has ended.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ltr.exact.solution import relative_gap
from trainers.config import EXACT, Config, load_config
from trainers.config.errors import ConfigError
from trainers.files import Json, RunError, reading
from trainers.records import SweepResults, thinned, unpack_labels
from trainers.report.evidence import PARTS, FloatArray, Series, key_name, tables_of
from trainers.run.folder import MethodFolder, RunFolder
from trainers.run.results import read_run
from trainers.run.tracking import read_log
from trainers.task.data import IntArray
from trainers.task.measures import share_name

Points = Sequence[tuple[int, float]]
"""Steps, ascending, and values."""

_MOST = 100  # positions of a precision curve


@dataclass(frozen=True, eq=False)
class Line:
    """One method on one data set: a TensorBoard run."""

    name: str  # name of the TensorBoard run
    parameters: Mapping[str, str]  # options that distinguish it from others
    records: Sequence[Json]  # one a split; none of a method that is not finished
    curves: Mapping[str, Points]  # ``loss``, ``train/dcg``, ... against the steps of the training
    trace: Mapping[str, Points]  # ``incumbent``, ``bound`` and ``gap`` of the exact stage against milliseconds

    @cached_property
    def final(self) -> dict[str, FloatArray]:
        """Values of the finished method, one a split, NaN where undefined, by tag.

        The tags are ``train/dcg``, ``test/dcg``, ..., ``loss``, ``seconds``; the exact stage also has ``value``,
        ``bound`` and ``gap``.
        """
        statistics = dict.fromkeys(known for record in self.records for known in record["test"])
        found = {f"{part}/{name}": [r[part].get(name) for r in self.records] for part in PARTS for name in statistics}
        if self.records:
            found |= {what: [record.get(what) for record in self.records] for what in ("loss", "seconds")}
        if self.records and self.records[0]["method"] == EXACT:
            lists = [record.get("list") or {} for record in self.records]
            found |= {what: [one.get(what) for one in lists] for what in ("value", "bound", "gap")}
        return {tag: np.array(values, dtype=np.float64) for tag, values in found.items()}

    @cached_property
    def ranked(self) -> dict[str, list[IntArray]]:
        """Labels 0 and 1 from the top of the list down, for each split, by ``train`` and ``test``."""
        packed = [record["ranked"] for record in self.records if record.get("ranked")]
        return {part: [unpack_labels(ranked[part]) for ranked in packed] for part in PARTS} if packed else {}

    @property
    def means(self) -> dict[str, float]:
        """Defined final values as means over splits."""
        defined = {tag: values[np.isfinite(values)] for tag, values in self.final.items()}
        return {tag: float(values.mean()) for tag, values in defined.items() if len(values)}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods on one data set."""

    name: str  # begins with the data set's; TensorBoard's names of runs and tags begin with it
    data: str  # name of the data set
    title: str  # heading of the charts
    statistic: str  # statistic that the exact stage maximises, whose curves are drawn
    lines: Sequence[Line]  # the methods

    @property
    def statistics(self) -> list[str]:
        """Names of the statistics, that of the charts first."""
        tags = dict.fromkeys(tag for line in self.lines for tag in (*line.final, *line.curves))
        found = dict.fromkeys(tag.partition("/")[2] for tag in tags if tag.startswith("test/"))
        return sorted(found, key=lambda name: name != self.statistic)

    @property
    def longest(self) -> int:
        """The last step of all trainings, 1 without any."""
        return max((points[-1][0] for line in self.lines for points in line.curves.values() if points), default=1)


def mean_curve(curves: Iterable[Points]) -> Points:
    """Return the mean of step functions, from where all have begun, at every step of one of them.

    Examples:
        >>> mean_curve([[(1, 0.0), (3, 2.0)], [(2, 4.0)]])
        [(2, 2.0), (3, 3.0)]
    """
    series = [pd.Series(dict(points)) for points in curves if points]
    if not series:
        return []
    frame = pd.concat(series, axis=1).sort_index().ffill().dropna()
    return list(zip(frame.index.tolist(), np.mean([frame[at] for at in frame], axis=0).tolist(), strict=True))


def stairs(points: Points) -> Points:
    """Return a step function for drawing with straight lines: each value is repeated one step before the next.

    Examples:
        >>> stairs([(1, 5.0), (4, 6.0), (5, 7.0)])
        [(1, 5.0), (3, 5.0), (4, 6.0), (5, 7.0)]
    """
    ends = [(b - 1, value) for (a, value), (b, after) in itertools.pairwise(points) if b - a > 1 and value != after]
    return sorted([*points, *ends])


def precision_curve(lists: Sequence[IntArray]) -> Points:
    """Return the share of positives among the first 1, 2, 3, ... of the list, as the mean over lists.

    Examples:
        >>> precision_curve([np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1])])
        [(1, 0.5), (2, 0.25), (3, 0.5), (4, 0.5)]
    """
    first = np.arange(1, min([_MOST, *(len(labels) for labels in lists)]) + 1)
    precision = np.mean([np.cumsum(labels[: len(first)]) / first for labels in lists], axis=0)
    return list(zip(first.tolist(), precision.tolist(), strict=True))


def rank_scores(lists: Sequence[IntArray]) -> tuple[IntArray, FloatArray]:
    """Join lists into labels and scores, where an item's score is 1 at the top of its list and 0 at the bottom.

    Examples:
        >>> rank_scores([np.array([1, 0, 1])])
        (array([1, 0, 1]), array([1. , 0.5, 0. ]))
    """
    none = np.zeros(0, dtype=np.int64)
    scores = [np.linspace(1.0, 0.0, len(labels)) for labels in (*lists, none)]
    return np.concatenate([*lists, none]), np.concatenate(scores)


_POINTS = 120  # most points of a curve or trace that is a mean over splits


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
        names = _names([run for run, _ in members])
        for (run, config), own in zip(members, names, strict=True):
            suffix = "" if len(members) == 1 else f", {own}"
            try:
                lines += _lines_of_run(run, config, own, suffix)
            except RunError as error:
                note(f"{run.path} is left out: {error}")
        if lines:
            run, config = members[0]
            first = config.reported[0]
            statistic = share_name(first, config.statistics.gain) if "queries" in run.facts["data"] else first
            title = data_name if len(names) > 1 or names == [data_name] else f"{data_name}: run {names[0]}"
            found.append(Comparison(data_name, data_name, title, statistic, lines))
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


def _lines_of_run(run: RunFolder, config: Config, own: str, suffix: str) -> list[Line]:
    """Return a line for each method of a run that has begun, with every logged value."""
    records = {record["method"]: record for record in read_run(run).records}
    data = run.facts["data"]
    lines = []
    for method in config.methods:
        logged: dict[str, list[tuple[int, float]]] = {}  # steps and values by tag
        log = MethodFolder(run.path / method).log
        with reading(log):
            for entry in read_log(log):
                for tag, value in entry["values"].items():
                    if value is not None:
                        logged.setdefault(tag, []).append((int(entry["step"]), float(value)))
        if not logged and method not in records:
            continue
        sections = {EXACT: config.exact} | dict.fromkeys(config.surrogate.losses, config.surrogate)
        options = sections[method].model_dump() if method in sections else {}
        parameters = {"data": data["name"], "method": method}
        parameters |= {"run": own, **_parameters(method, options), "split": str(data.get("split_seed", "given"))}
        curves: dict[str, Points] = {}
        trace: dict[str, Points] = {}
        for tag, points in logged.items():
            if tag.startswith("exact/"):
                trace[tag.removeprefix("exact/")] = points
            # methods without steps draw lines: a board draws its own, of one length for all
            elif not (points[0][0] == 0 and len(points) <= 2 and points[0][1] == points[-1][1]):
                if tag == "loss/convex":
                    curves["loss"] = points
                elif tag.startswith(("train/", "test/")):
                    curves[tag] = points
        found = [records[method]] if method in records else []
        lines.append(Line(f"{method}{suffix}", parameters, found, curves, trace))
    return lines


def comparisons_of_sweep(results: SweepResults) -> list[Comparison]:
    """Return the comparisons of a sweep, one for each table and data set, as means over its splits."""
    found_tables = tables_of(results)
    tables = {
        (data, table.name): (table.title, row) for table in found_tables for data, row in table.rows.items() if row
    }
    several = Counter(data for data, _ in tables)
    found = []
    for (data, table_name), (title, row) in tables.items():
        name = data if several[data] == 1 else f"{data}, {table_name}"
        lines = [_line_of_series(series, table_name if several[data] > 1 else None) for series in row.values()]
        statistic = next(iter(lines[0].final)).partition("/")[2]  # the exact stage's, which records have first
        found.append(Comparison(name, data, f"{data}: {title}" if title else name, statistic, lines))
    return found


def _line_of_series(series: Series, table: str | None) -> Line:
    """Return one variant of a method, as the mean over its splits."""
    splits, variant = series.splits, series.variant
    records = [series.records[split] for split in splits]
    shown = _parameters(variant.method, records[0]["options"])
    varied = {key_name(key): str(value) for key, value in variant.varied if key not in _SHOWN_KEYS}
    parameters: dict[str, str] = {"data": series.data, "method": variant.method}
    parameters |= ({} if table is None else {"table": table}) | shown | varied
    parameters["split"] = str(splits[0]) if len(splits) == 1 else f"mean of {len(splits)}"
    return Line(variant.label, parameters, records, _curves(records), _trace(records))


_SHOWN_KEYS = ("exact.top_k", "exact.base", "exact.C", "exact.margin", "exact.time_limit", "surrogate.l2")
"""Keys of the config that `_parameters` names."""


def _parameters(method: str, options: Mapping[str, object]) -> dict[str, str]:
    """Return the options of a method that matter most."""
    if method == EXACT:
        names = {"K": "top_k", "base": "base", "C": "C", "margin": "margin", "time limit": "time_limit"}
    else:
        names = {"l2": "l2"} if "l2" in options else {}
    # TensorBoard would show 1e-4 as 0.0000 if it were a number
    return {
        shown: f"{value:g}" if isinstance(value := options[name], float) else str(value)
        for shown, name in names.items()
    }


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
        at = {
            round(1000 * s): (value, bound, relative_gap(value, bound))
            for s, value, bound, *_ in record.get("trace") or ()
        }
        for column, what in enumerate(found):
            found[what].append([(step, one[column]) for step, one in at.items() if np.isfinite(one[column])])
    return _means(found)


def _means(found: Mapping[str, Sequence[Points]]) -> dict[str, Points]:
    """Return the mean over splits of each series that has points."""
    means = {tag: thinned(mean_curve(several), _POINTS) for tag, several in found.items()}
    return {tag: points for tag, points in means.items() if points}
