"""The work of one cell: data in, a fitted ranker, its record out."""

from __future__ import annotations

import functools
import importlib
import math
import platform
from collections.abc import Mapping, Sequence

import torch
from threadpoolctl import threadpool_limits

from ltr.compiling import clock
from ltr.data import DataError
from ltr.exact.solution import Status, TracePoint
from ltr.fitting import Step
from ltr.rankers import LinearRanker, RankBoostRanker, Ranker, TwoStageRanker
from trainers.config import EXACT
from trainers.files import Json, RunError
from trainers.inputs import Half, Split, data_sha256, split_of
from trainers.rankers import first_stage_ranker, quiet_surrogates, two_stage_ranker
from trainers.sweep.cells import Cell, pack_labels
from trainers.task import Scores, Task, own_loss, ranked_labels
from trainers.thinning import thinned

__all__ = ["CellError", "compute"]

_POINTS = 40
"""Points of a curve and of a trace that are kept, at most."""


_LIBRARIES = ("numba", "scipy.linalg", "sklearn.linear_model")
"""What methods import late: it would take all threads there are, and count as their time."""


class CellError(ValueError):
    """A cell that has no result, and why; others are not concerned."""


def compute(cell: Cell, starts: Mapping[str, Json], threads: int) -> Json:
    """The record of a cell, see `trainers.sweep.cells`.

    Args:
        cell: what to compute.
        starts: the records of its ``starts``.
        threads: for everything that uses several.

    Raises:
        CellError: data or options that do not go with the method.
        RunError: data that cannot be read, or others than those of the plan.
        KeyboardInterrupt: the exact stage was stopped by a signal.
    """
    for name in _LIBRARIES:
        importlib.import_module(name)
    torch.set_num_threads(threads)
    with threadpool_limits(threads):
        task = Task(cell.config, _data(cell))
        try:
            record = _exact(cell, task, starts, threads) if cell.method == EXACT else _first_stage(cell, task)
        except (ValueError, FloatingPointError) as error:
            raise CellError(str(error)) from error
    sizes = {name: [len(half.y), int((half.y > 0).sum())] for name, half in _halves(task.split)}
    common = {"id": cell.id, "data": cell.data, "split": cell.split, "method": cell.method, "options": cell.options}
    return {**common, "sizes": {**sizes, "d": len(task.split.feature_names)}, **record}


_split = functools.lru_cache(maxsize=4)(split_of)
"""The cells of a data set and split that a process computes one after the other read it once."""


def _data(cell: Cell) -> Split:
    split = _read(cell)
    if not _is_of(cell, split):
        _split.cache_clear()  # a process that lives long, as Dask's do, may remember files that have changed since
        split = _read(cell)
    if not _is_of(cell, split):
        advice = "the same `ltr sweep` plans anew; all workers must read the same files"
        raise RunError(f"{cell.data}: the data on {platform.node()} are not those that the sweep began with; {advice}")
    return split


def _is_of(cell: Cell, split: Split) -> bool:
    return cell.on_data(split.facts["sha256"]).id == cell.id


def _read(cell: Cell) -> Split:
    try:
        return _split(cell.config.data, cell.split)
    except DataError as error:
        try:
            data_sha256(cell.config.data)
        except DataError as unreadable:
            raise RunError(f"{cell.data}, on {platform.node()}: {unreadable}") from None
        raise CellError(str(error)) from None  # data are there, but this split of them is of no use


def _halves(split: Split) -> tuple[tuple[str, Half], ...]:
    return ("train", split.train), ("test", split.test)


def _first_stage(cell: Cell, task: Task) -> Json:
    train = task.split.train
    curve: list[tuple[int, float, float | None, float | None]] = []
    first = task.reported[0]

    def on_step(step: Step, ranker: LinearRanker) -> None:
        found = task.statistics(task.scores_of(ranker))
        curve.append((step.index, step.loss, found["train"][first], found["test"][first]))

    ranker = first_stage_ranker(cell.config, cell.method, on_step)
    started = clock()
    with quiet_surrogates():
        ranker.fit(train.X, train.y, qid=train.qid)
    seconds = clock() - started
    if isinstance(ranker, LinearRanker) and ranker.fit_ is not None:
        seconds = ranker.fit_.state_dict()["seconds"]  # without the statistics of each step
    scores = task.scores_of(ranker)
    if isinstance(ranker, RankBoostRanker):
        curve += _rounds(task, ranker, first)
        loss = float(ranker.losses_[-1])
    else:
        loss = own_loss(cell.method, scores.train, train)
    return {
        "status": _status(ranker),
        "seconds": seconds,
        **task.statistics(scores),
        "loss": loss,
        "weights": None if ranker.linear_weights is None else ranker.linear_weights.tolist(),
        **_ranked(scores, task.split),
        "curve": [list(point) for point in thinned(curve, _POINTS)],
    }


def _status(ranker: Ranker) -> str:
    if not isinstance(ranker, LinearRanker) or ranker.fit_ is None:
        return "fitted"
    return "converged" if ranker.converged_ else str(ranker.fit_.stopped)


def _rounds(task: Task, ranker: RankBoostRanker, first: str) -> list[tuple[int, float, float | None, float | None]]:
    stages = zip(
        ranker.staged_decision_function(task.split.train.X),
        ranker.staged_decision_function(task.split.test.X),
        strict=True,
    )
    wanted = set(thinned(range(1, len(ranker.losses_)), _POINTS))
    points = []
    for index, (train, test) in enumerate(stages, start=1):
        if index in wanted:
            found = task.statistics(Scores(train, test))
            points.append((index, float(ranker.losses_[index]), found["train"][first], found["test"][first]))
    return points


def _exact(cell: Cell, task: Task, starts: Mapping[str, Json], threads: int) -> Json:
    train = task.split.train
    base = first_stage_ranker(cell.config, cell.config.exact.base)
    with quiet_surrogates():
        base.fit(train.X, train.y, qid=train.qid)
    linear = {name: record["weights"] for name, record in starts.items() if record["weights"] is not None}
    ranker = two_stage_ranker(cell.config, base, threads=threads)
    ranker.fit(train.X, train.y, train.qid, base_is_fitted=True, warm_starts=linear.values())
    scores = _scores(ranker, task.split)
    statistics = task.statistics(scores)
    solution, problem = ranker.solution_, ranker.problem_
    found: Json = {**statistics, "loss": None, **_ranked(scores, task.split)}
    found["weights"] = None if ranker.coef_ is None else ranker.coef_.tolist()
    if solution is None or problem is None:  # a top of a single class: nothing to order, nothing to gain
        found |= {"status": "base order", "seconds": 0.0, "message": ranker.note_, "list": None, "trace": []}
    else:
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        given = ranker.exact_.warm_starts_[-len(linear) :] if linear else []
        values = {name: problem.evaluate(w) for name, w in zip(linear, given, strict=True)}
        found |= {
            "status": solution.status.value,
            "seconds": solution.seconds,
            "message": ranker.note_,
            "list": {
                "n": problem.n,
                "n_pos": int((train.y[ranker.reranked(train.X, train.qid)] > 0).sum()),
                "value": solution.value,
                "bound": solution.bound,
                "gap": solution.gap if math.isfinite(solution.gap) else None,
                "trivial_bound": problem.trivial_bound,
                "starts": values,
            },
            "trace": _trace(solution.trace),
        }
    if cell.recentre is not None:
        found["recentred"] = _recentred(cell, task, ranker)
    return found


def _recentred(cell: Cell, task: Task, ranker: TwoStageRanker) -> Json:
    started = clock()
    moved = ranker.recentred(cell.recentre)  # type: ignore[arg-type]
    seconds = clock() - started
    scores = _scores(moved, task.split)
    return {"norm": cell.recentre, "seconds": seconds, **task.statistics(scores), **_ranked(scores, task.split)}


def _scores(ranker: TwoStageRanker, split: Split) -> Scores:
    return Scores(*(ranker.decision_function(half.X, half.qid) for _, half in _halves(split)))


def _ranked(scores: Scores, split: Split) -> Json:
    """The labels of both halves from the top down; nothing where rows belong to queries."""
    if split.by_query:
        return {}
    return {
        "ranked": {
            name: pack_labels(ranked_labels(values, half.y))
            for (name, half), values in zip(_halves(split), (scores.train, scores.test), strict=True)
        }
    }


def _trace(points: Sequence[TracePoint]) -> list[list[float | int]]:
    """Seconds, incumbent, bound and boxes, thinned."""
    kept = thinned([point for point in points if math.isfinite(point.incumbent)], _POINTS)
    return [[round(p.seconds, 3), p.incumbent, p.bound, p.nodes] for p in kept]
