"""The exact stage of a run: rerank the top of the base ranker's list and keep the proof."""

from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from ltr.compiling import clock
from ltr.exact.certificate import certify
from ltr.exact.problem import RerankProblem
from ltr.exact.solution import Solution, Status, TracePoint
from ltr.rankers import TwoStageRanker
from ltr.statistics import RankStatistic
from trainers.config import EXACT
from trainers.context import Context, by_tag, load_ranker, save_scores
from trainers.files import Json, read_json, reading, replacing, write_atomic, write_json
from trainers.rankers import two_stage_ranker
from trainers.results import Row, is_trivial
from trainers.runs import MethodFolder, RunError
from trainers.task import Scores
from trainers.tracking import Tracker

__all__ = ["keep_certificate", "run_exact_stage"]


def run_exact_stage(context: Context, rows: Sequence[Row], *, level_to: int) -> Row:
    """Rerank, log, and leave the folder finished, unless the user stopped the solver.

    The exact stage starts from the weights of every linear method of the run, and from its own last incumbent where
    it was interrupted before.

    Args:
        context: the run.
        rows: of the finished methods, the base ranker's among them.
        level_to: the step up to which the statistics draw their level line.

    Raises:
        RunError: a user's own rank weights that do not fit the list.
    """
    config = context.config.exact
    folder = context.run.method(EXACT)
    ranker = two_stage_ranker(context.config, load_ranker(context.run.method(config.base)))
    _check_length(context, ranker)
    starts = [row.weights for row in rows if row.weights is not None]
    starts += _earlier_weights(folder, context.split.feature_names)
    context.display.begin(EXACT, None)
    with Tracker(folder.path, folder.records, tensorboard=context.config.tracking.tensorboard) as tracker:
        started = clock()
        train, test = context.split.train, context.split.test
        log = _TraceLog(context, tracker, ranker)
        ranker.fit(train.X, train.y, train.qid, base_is_fitted=True, warm_starts=starts, on_progress=log)
        seconds = clock() - started
        scores = Scores(ranker.decision_function(train.X, train.qid), ranker.decision_function(test.X, test.qid))
        row = _row(context, ranker, scores, seconds)
        statistics = {"train": row.train, "test": row.test}
        tracker.level(level_to, by_tag(statistics))
        tracker.finish(context.hyperparameters(EXACT), by_tag(statistics))
    _save(folder, context, ranker, scores)
    if row.status != Status.INTERRUPTED.value:
        folder.finish(asdict(row))
    return row


def _earlier_weights(folder: MethodFolder, feature_names: Sequence[str]) -> list[list[float]]:
    """The incumbent of an exact stage that was stopped, if there is one."""
    earlier = read_json(folder.solution)
    if earlier is None:
        return []
    with reading(folder.solution):
        weights = earlier["weights"]
        return [] if weights is None else [[float(weights[name]) for name in feature_names]]


def _check_length(context: Context, ranker: TwoStageRanker) -> None:
    """A user's own rank weights must fit the list, which ties at its end make longer than K."""
    wanted = RankStatistic.parse(context.config.exact.statistic).length
    base = context.scores_of(ranker.base)
    length = int(context.reranked(base).sum())
    if wanted not in (None, length):
        raise RunError(f"exact.statistic: must hold one weight a rank, got {wanted} for a list of {length} rows")


class _TraceLog:
    """Logs every trace point against its time in milliseconds, and shows it."""

    def __init__(self, context: Context, tracker: Tracker, ranker: TwoStageRanker) -> None:
        self._context, self._tracker, self._ranker = context, tracker, ranker
        self._began = time.time()
        self._last = -1

    def __call__(self, point: TracePoint) -> None:
        # two points of one millisecond must not share a step: the second would wipe the first
        self._last = max(self._last + 1, round(1000 * point.seconds))
        values = {"exact/incumbent": point.incumbent, "exact/bound": point.bound, "exact/gap": point.gap}
        self._tracker.log(self._last, values, when=self._began + point.seconds)
        assert self._ranker.problem_ is not None
        self._context.display.progress(point, is_trivial(point.bound, self._ranker.problem_.trivial_bound))


def _row(context: Context, ranker: TwoStageRanker, scores: Scores, seconds: float) -> Row:
    statistics = context.statistics(scores)
    solution = ranker.solution_
    if solution is None:
        return Row(EXACT, "base order", seconds, statistics["train"], statistics["test"], message=ranker.note_)
    notes = [solution.status.advice, solution.message, ranker.note_]
    return Row(
        method=EXACT,
        status=solution.status.value,
        seconds=seconds,
        train=statistics["train"],
        test=statistics["test"],
        objective=_finite(solution.value),
        bound=_finite(solution.bound),
        gap=_finite(solution.gap),
        trivial_bound=None if ranker.problem_ is None else ranker.problem_.trivial_bound,
        steps=solution.nodes,
        weights=None if ranker.coef_ is None else ranker.coef_.tolist(),
        message="; ".join(note for note in notes if note),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _save(folder: MethodFolder, context: Context, ranker: TwoStageRanker, scores: Scores) -> None:
    with replacing(folder.model) as temporary:
        ranker.save(temporary)
    save_scores(folder, scores)
    names = context.split.feature_names
    value: Json = {
        "base": context.config.exact.base,
        "threshold": ranker.threshold_,
        "note": ranker.note_,
        "weights": None if ranker.coef_ is None else dict(zip(names, ranker.coef_.tolist(), strict=True)),
        "center": dict(zip(names, ranker.exact_.center_.tolist(), strict=True)),
    }
    if ranker.solution_ is not None and ranker.problem_ is not None:
        value["certificate"] = _certificate(context, ranker.solution_, ranker)
        buffer = io.BytesIO()
        _write_problem(buffer, ranker.problem_, ranker.solution_)
        write_atomic(folder.problem, buffer.getvalue())
    write_json(folder.solution, value)


def keep_certificate(context: Context, *, again: bool = False) -> None:
    """Make the certificate of a finished exact stage from its files, where it is asked for and missing or damaged.

    A stop by the user ends it without a certificate; the next start makes it.

    Args:
        context: the run.
        again: whether an earlier start has made it, so that the user is told what became of it.

    Raises:
        RunError: a damaged file.
    """
    folder = context.run.method(EXACT)
    if not context.config.exact.certificate or not folder.problem.exists() or folder.has_certificate:
        return
    if again:
        state = "not as this run wrote it" if folder.certificate.exists() else "missing"
        context.display.note(f"exact: {folder.certificate.name} is {state}: it is made again")
    with reading(folder.solution):
        problem, solution = _solved(folder)
    if not math.isfinite(solution.value):
        context.display.note("exact: no certificate, for no weights are known")
        return
    certificate = certify(problem, solution, should_stop=lambda: context.stop.raised)
    if context.stop.raised:
        context.display.note("exact: no certificate yet, the same command makes it")
        return
    certificate.write(folder.certificate)
    folder.certified()


def _solved(folder: MethodFolder) -> tuple[RerankProblem, Solution]:
    """The list that was reranked and its solution, as the files of a finished stage have them."""
    found = json.loads(folder.solution.read_text(encoding="utf-8"))["certificate"]
    options = {name: found[name] for name in ("statistic", "C", "margin", "rank")}
    with reading(folder.problem), np.load(folder.problem) as arrays:
        gains, qid = (arrays["gains"], arrays["qid"]) if "gains" in arrays else (arrays["y"], None)
        problem = RerankProblem(arrays["X"], gains, qid=qid, gain="linear", **options)
    value, bound = (-math.inf if found[name] is None else float(found[name]) for name in ("value", "bound"))
    weights = np.asarray(found["weights"], dtype=np.float64)
    return problem, Solution(weights, value, bound, Status(found["status"]), found["seconds"], found["method"])


def _write_problem(file: io.BytesIO, problem: RerankProblem, solution: Solution) -> None:
    """What the value of the weights is made of: features, and labels or gains and lists."""
    if problem.binary:
        np.savez(file, X=problem.X, y=problem.gains.astype(np.int64), weights=solution.weights)
    else:
        np.savez(file, X=problem.X, gains=problem.gains, qid=problem.qid, weights=solution.weights)


def _certificate(context: Context, solution: Solution, ranker: TwoStageRanker) -> Json:
    """What a reader needs to check the claim on the list in problem.npz."""
    problem = ranker.problem_
    assert problem is not None
    return {
        "claim": "no weights in [-1, 1]^d have a larger objective than bound on the list in problem.npz",
        "statistic": str(problem.statistic),
        "rank": problem.rank,
        "C": problem.C,
        "margin": problem.margin,
        "n": problem.n,
        **_sizes(problem),
        "d": problem.d,
        "method": solution.method,
        "status": solution.status.value,
        "advice": solution.status.advice,
        "message": solution.message,
        "value": solution.value,
        "bound": solution.bound,
        "gap": solution.gap,
        "trivial_bound": problem.trivial_bound,
        "seconds": solution.seconds,
        "nodes": solution.nodes,
        "weights": solution.weights,
        "trace": [asdict(point) for point in solution.trace],
    }


def _sizes(problem: RerankProblem) -> Json:
    return {"positives": len(problem.positives)} | ({} if problem.binary else {"lists": len(problem.lists)})
