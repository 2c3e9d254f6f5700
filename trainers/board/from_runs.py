"""The comparisons that run folders make: the methods of all runs on the same data in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import matplotlib.image
import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError
from trainers.board.lines import HALVES, Comparison, Line, Points
from trainers.by_query import share_name
from trainers.config import EXACT, Config, load_config
from trainers.config_errors import ConfigError
from trainers.context import load_scores
from trainers.files import reading
from trainers.inputs import Split, load_split
from trainers.results import Row
from trainers.runs import MethodFolder, RunError, RunFolder
from trainers.task import ranked_labels
from trainers.tracking import read_records

__all__ = ["comparisons_of_runs"]

_LOSS, _TRACE = "loss/convex", "exact/"


def comparisons_of_runs(runs: Sequence[RunFolder], note: Callable[[str], None]) -> list[Comparison]:
    """The comparisons of run folders, in the order of their data's first run; nothing in the folders is changed.

    Args:
        runs: the folders.
        note: is told what is left out, and why.
    """
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
                lines += _lines(run, config, suffix, note)
            except RunError as error:
                note(f"{run.path} is left out: {error}")
                continue
            images |= {f"ranked list, {half}{suffix}": image for half, image in _images(run)}
        if lines:
            run, config = members[0]
            first = config.reported[0]
            statistic = share_name(first) if "queries" in run.facts["data"] else first
            found.append(Comparison(data_name, data_name, data_name, statistic, lines, images))
    return found


def _names(runs: Sequence[RunFolder]) -> list[str]:
    """A name for each run: its folder's, with the folders above it as far as runs of one name need them."""
    paths = [run.path.resolve().parts for run in runs]
    names = []
    for path in paths:
        others = [other for other in paths if other != path]
        kept = next(n for n in range(1, len(path) + 1) if all(other[-n:] != path[-n:] for other in others))
        names.append(" in ".join(reversed(path[-kept:])))
    return names


def _lines(run: RunFolder, config: Config, suffix: str, note: Callable[[str], None]) -> list[Line]:
    split = _split(run, config, note)
    lines = []
    for method in config.methods:
        folder = MethodFolder(run.path / method)
        with reading(folder.records):
            logged = _logged(folder)
        finished = folder.result()
        if not logged and finished is None:
            continue
        with reading(folder.row):
            row = None if finished is None else Row.from_json(finished)
        lines.append(
            Line(
                name=f"{method}{suffix}",
                parameters=_parameters(run, config, method, suffix),
                final={} if row is None else _final(row),
                curves={tag: points for tag, points in _curves(logged).items() if not _is_level(points)},
                trace={tag.removeprefix(_TRACE): points for tag, points in logged.items() if tag.startswith(_TRACE)},
                unproven=int(row is not None and row.nothing_proven),
                ranked={} if split is None else _ranked(folder, split),
            )
        )
    return lines


def _logged(folder: MethodFolder) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag."""
    logged: dict[str, list[tuple[int, float]]] = {}
    for record in read_records(folder.records):
        for tag, value in record["values"].items():
            if value is not None:
                logged.setdefault(tag, []).append((int(record["step"]), float(value)))
    return logged


def _curves(logged: Mapping[str, Points]) -> dict[str, Points]:
    loss = {"loss": logged[_LOSS]} if _LOSS in logged else {}
    halves = tuple(f"{half}/" for half in HALVES)
    return loss | {tag: points for tag, points in logged.items() if tag.startswith(halves)}


def _is_level(points: Points) -> bool:
    """Whether a method without steps drew a line: a board draws its own, of one length for all."""
    return points[0][0] == 0 and len(points) <= 2 and points[0][1] == points[-1][1]


def _final(row: Row) -> dict[str, NDArray[np.float64]]:
    values = {f"train/{name}": value for name, value in row.train.items()}
    values |= {f"test/{name}": value for name, value in row.test.items()}
    values |= {"loss": row.loss, "seconds": row.seconds}
    if row.method == EXACT:
        values |= {"value": row.objective, "bound": row.bound, "gap": row.gap}
    return {tag: np.array([np.nan if value is None else value]) for tag, value in values.items()}


def _parameters(run: RunFolder, config: Config, method: str, suffix: str) -> dict[str, str | float]:
    data, exact = run.facts["data"], config.exact
    found: dict[str, str | float] = {"data": data["name"], "method": method}
    found |= {"run": suffix.removeprefix(", ")} if suffix else {}
    if method == EXACT:
        found |= {"K": str(exact.top_k), "base": exact.base, "C": exact.C, "margin": exact.margin}
        found |= {"time limit": exact.time_limit}
    elif method in config.surrogate.losses:
        found |= {"l2": config.surrogate.l2}
    return found | {"split": str(data["split_seed"]) if "split_seed" in data else "given"}


def _split(run: RunFolder, config: Config, note: Callable[[str], None]) -> Split | None:
    """The run's data, whose labels its folder does not hold; None where there is no one list of labels 0 and 1."""
    with reading(run.origin):
        facts = run.facts["data"]
        if "queries" in facts:
            return None
    try:
        split = load_split(config)
    except DataError as error:
        note(f"{run.path}: no precision, recall and ROC curves, for its data cannot be read: {error}")
        return None
    if split.facts["sha256"] != facts["sha256"]:
        note(f"{run.path}: no precision, recall and ROC curves, for its data have changed since")
        return None
    return split


def _ranked(folder: MethodFolder, split: Split) -> dict[str, list[NDArray[np.int64]]]:
    scores = load_scores(folder)
    if scores is None:
        return {}
    return {
        half: [(ranked_labels(values, y) > 0).astype(np.int64)]
        for half, y, values in (("train", split.train.y, scores.train), ("test", split.test.y, scores.test))
    }


def _images(run: RunFolder) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The pictures of the ranked list that the run has drawn."""
    for half in ("training", "test"):
        path = run.path / f"ranked_list_{half}.png"
        if path.exists():
            with reading(path):
                yield half, matplotlib.image.imread(path)
