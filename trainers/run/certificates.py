"""The files of a run's exact stage: the model, the solution, the list that was reranked, and the certificate."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import doubles
from ltr.exact import RerankProblem
from ltr.exact.certificate import certify
from ltr.exact.constraints import Demand, LinearConstraints
from ltr.exact.solution import Solution, Status
from ltr.files import read_arrays
from ltr.rankers import TwoStageRanker
from ltr.rankers.exact import cut
from trainers.files import Json, reading, write_atomic, write_json
from trainers.methods import unsaved_because
from trainers.run.folder import MethodFolder
from trainers.task.data import Split
from trainers.task.measures import Task

_SIDES = ("max_nonzeros", "free", "required", "integer")  # which not every solution has


def save_solution(folder: MethodFolder, task: Task, ranker: TwoStageRanker) -> None:
    """Write the model, the weights with what was proven of them, and the list that was reranked."""
    if not unsaved_because(ranker):
        folder.save(ranker)
    names = task.split.feature_names
    value: Json = {
        "base": task.config.base,
        "threshold": ranker.threshold_,
        "note": ranker.note_,
        "weights": None if ranker.coef_ is None else dict(zip(names, ranker.coef_.tolist(), strict=True)),
        **_points(ranker, names),
        "base_weight": ranker.base_weight_,
        "center": dict(zip(names, ranker.exact_.center_.tolist(), strict=True)),
    }
    if ranker.solution_ is not None and (problem := ranker.problem_) is not None:
        value["certificate"] = _claim(problem, ranker.solution_)
        buffer = io.BytesIO()
        kind: dict[str, Any] = (
            {"y": problem.gains.astype(np.int64)} if problem.binary else {"gains": problem.gains, "qid": problem.qid}
        )
        kind |= _of_training_set(ranker, task)
        kind |= {f"demand_{at}": one.labels for at, one in enumerate(problem.demands) if one.labels is not None}
        np.savez(buffer, X=problem.X, **kind, weights=ranker.solution_.weights)
        write_atomic(folder.problem, buffer.getvalue())
    write_json(folder.solution, value)


def _of_training_set(ranker: TwoStageRanker, task: Task) -> dict[str, NDArray[Any]]:
    """Return which rows of the training set are on the list, and the base scores that cut it."""
    train, scores = task.split.train, ranker.list_scores_
    assert scores is not None
    known = np.flatnonzero(~np.isnan(scores))
    lists = None if train.qid is None else np.unique(train.qid[known], return_inverse=True)[1]
    members = known[scores[known] >= cut(scores[known], lists, ranker.top_k)]
    rows = rows_in_file(task.split)[members]
    return {"members": members, "rows": rows, "scores": scores, "features": doubles(train.X[members])}


def rows_in_file(split: Split) -> NDArray[np.int64]:
    """Return the numbers in the file, from 1, of the rows of the training set, (n,)."""
    train = split.train
    rows = train.rows if len(train.rows) else np.arange(len(train.y))
    return 1 + (rows if split.tables is None else split.tables[0].in_file(rows))


def _points(ranker: TwoStageRanker, names: Sequence[str]) -> Json:
    """Return the whole numbers of points by column, and the units that they are given for; nothing for real weights."""
    points, units = ranker.exact_.points_, ranker.exact_.units_
    if points is None or units is None:
        return {}
    used = np.flatnonzero(points).tolist()
    values = {"points": points[used].tolist(), "units": units[used].tolist()}
    return {name: dict(zip([names[j] for j in used], numbers, strict=True)) for name, numbers in values.items()}


def _claim(problem: RerankProblem, solution: Solution) -> Json:
    """Return what a reader needs to check the claim on the list in problem.npz."""
    sizes = {"positives": len(problem.positives)} | ({} if problem.binary else {"lists": len(problem.lists)})
    sides = problem.constraints
    most = problem.integer
    which = "weights in [-1, 1]^d" if most is None else f"weights that are whole numbers from -{most} to {most}"
    found = ("method", "message", "value", "bound", "gap", "seconds", "nodes", "weights")
    return {
        "claim": f"no {which} have a larger objective than bound on the list in problem.npz",
        "statistic": str(problem.statistic),
        **{name: getattr(problem, name) for name in ("ties", "C", "margin", "n", "d", "trivial_bound")},
        "constraints": None if sides is None else {"A": sides.A.tolist(), "b": sides.b.tolist()},
        "max_nonzeros": problem.max_nonzeros,
        "free": list(problem.free),
        "required": list(problem.required),
        "integer": problem.integer,
        "demands": [[str(one.statistic), one.at_least, one.name] for one, _ in problem.demanded],
        **sizes,
        "status": solution.status.value,
        "advice": solution.status.advice,
        **{name: getattr(solution, name) for name in found},
        "trace": [asdict(point) for point in solution.trace],
    }


def read_problem(folder: MethodFolder) -> tuple[RerankProblem, Solution]:
    """Return the problem of a finished exact stage and its solution, from its files."""
    with reading(folder.solution):
        found = json.loads(folder.solution.read_text(encoding="utf-8"))["certificate"]
        options = {name: found[name] for name in ("statistic", "C", "margin", "ties")}
        options |= {name: found[name] for name in _SIDES if found.get(name)}
        if (sides := found.get("constraints")) is not None:
            options["constraints"] = LinearConstraints(sides["A"], sides["b"])
        with reading(folder.problem):
            arrays = read_arrays(folder.problem)
            gains, qid = (arrays["gains"], arrays["qid"]) if "gains" in arrays else (arrays["y"], None)
            options["demands"] = [
                Demand(statistic, least, arrays[f"demand_{at}"], name=name)
                for at, (statistic, least, name) in enumerate(found.get("demands", ()))
            ]
            problem = RerankProblem(arrays["X"], gains, qid=qid, gain="linear", **options)
        value, bound = (-math.inf if found[name] is None else float(found[name]) for name in ("value", "bound"))
        weights = np.asarray(found["weights"], dtype=np.float64)
        solution = Solution(weights, value, bound, Status(found["status"]), found["seconds"], found["method"])
    return problem, solution


def keep_certificate(folder: MethodFolder, note: Callable[[str], None], should_stop: Callable[[], bool]) -> None:
    """Make the certificate of a finished exact stage from its files, where it is missing or damaged.

    A stop by the user ends it without a certificate; the next start makes it.
    """
    if not folder.problem.exists() or folder.has_certificate:
        return
    problem, solution = read_problem(folder)
    if not math.isfinite(solution.value):
        note("exact: no certificate, because no weights are known")
        return
    certificate = certify(problem, solution, should_stop=should_stop)
    if should_stop():
        note("exact: no certificate yet; the same command makes it")
        return
    certificate.write(folder.certificate)
    folder.certified()
