"""What is proven of a method's list, kept in its folder: solution and certificate, ranges of places, and the front.

Certificates, ranges and fronts are found from the files of a finished method, so that a run can get them later.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.answer import FrontPointOnList, ListFront, RowRanges
from ltr.cards import CardRanker
from ltr.checks import doubles
from ltr.exact import RerankProblem, front, rank_ranges
from ltr.exact.cards import CardProblem
from ltr.exact.certificate import certify
from ltr.exact.constraints import Demand, LinearConstraints
from ltr.exact.solution import Solution, Status
from ltr.files import read_arrays
from ltr.list_demands import Asked, ListDemand
from ltr.rankers import TwoStageRanker
from ltr.rankers.exact import cut
from ltr.statistics import RankStatistic
from trainers.config import CARD, EXACT, Config
from trainers.files import Json, read_json, reading, write_atomic, write_json
from trainers.methods import unsaved_because
from trainers.run.folder import MethodFolder, RunFolder
from trainers.run.rows import Rows, method_of
from trainers.task.data import Split
from trainers.task.measures import Task
from trainers.task.raw import demand_columns

if TYPE_CHECKING:
    from trainers.run.methods import Context

WITHIN = 0.01
"""Share of the best value by which a good scorer may be below it."""
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


def save_answers(folder: MethodFolder, task: Task, ranker: CardRanker) -> None:
    """Write the answers of the training rows to the questions of a card, from which its problem is made again."""
    problem, buffer = ranker.problem_, io.BytesIO()
    assert isinstance(problem, CardProblem)
    arrays: dict[str, Any] = {"y": problem.y, "members": np.arange(problem.n), "rows": rows_in_file(task.split)}
    arrays |= {f"demand_{at}": one.labels for at, one in enumerate(problem.demands)}
    arrays["demands"] = np.array([[str(one.statistic), repr(one.at_least)] for one in problem.demands], dtype=str)
    np.savez(buffer, X=problem.X.astype(np.int8), **arrays)
    write_atomic(folder.problem, buffer.getvalue())


def keep_ranges(folder: MethodFolder, context: Context, method: str) -> None:
    """Find the ranges of the rows of a finished method's list, where the config asks for them and no file has them.

    A stop by the user ends it with the bounds known by then.
    """
    config = context.config
    seconds = config.exact.ranges if method == EXACT else config.card.ranges
    if seconds == 0 or not folder.problem.exists() or context.stop.raised:
        return
    known = _kept(folder, seconds)
    if known is None and (found := _found(folder, config, seconds, lambda: context.stop.raised)) is not None:
        write_json(folder.ranges, found.to_dict())


def keep_front(folder: MethodFolder, context: Context) -> None:
    """Find the front that the config asks for on the list of a finished exact stage, where no file has it.

    A stop by the user ends it without a front; the next start finds it.
    """
    config, train = context.config, context.split.train
    if config.exact.front is None or not folder.problem.exists():
        return
    asked = ListDemand.measuring(config.exact.front)
    try:
        given = read_json(folder.front)
        if given is not None and ListFront.from_dict(given).names[1] == asked.what:
            return
    except ValueError:  # it is found again
        pass
    folder.front.unlink(missing_ok=True)
    problem, solution = read_problem(folder)
    with reading(folder.problem):
        arrays = read_arrays(folder.problem)
    if not math.isfinite(solution.value):
        context.display.note("exact: no front, because no weights are known")
        return
    scores = arrays["scores"]
    known = ~np.isnan(scores)
    group = None
    if asked.condition is not None:
        columns = demand_columns(context.split, [asked])[0]
        group = asked.condition.holds(columns[asked.condition.column])[known]
    lists = None if train.qid is None else np.unique(train.qid[known], return_inverse=True)[1]
    options: dict[str, Any] = {
        "name": asked.what,
        "time_limit": config.exact.time_limit,
        "warm_starts": [solution.weights],
    }
    context.display.doing(f"exact: the price of {asked.what}")
    try:
        of_lists = Asked.of(asked, train.y[known].astype(np.float64), lists, group, config.statistics.gain)
        top = np.isin(np.flatnonzero(known), arrays["members"])
        on_top = of_lists.of_top(scores[known], top)
        found = front(problem, on_top.statistic, on_top.gains, should_stop=lambda: context.stop.raised, **options)
    except ValueError as error:
        if not context.stop.raised:
            context.display.note(f"exact: no front: {str(error).removeprefix(f'demands: {asked}: ')}")
        return
    if context.stop.raised:
        context.display.note("exact: no front yet; the same command finds it")
        return
    points = tuple(
        FrontPointOnList(one.first, on_top.whole(one.second), one.first_bound, float(price), one.proven)
        for one, price in zip(found.points, found.prices, strict=True)
    )
    what = _what(EXACT, problem.n, by_query=len(problem.lists) > 1)
    names = str(problem.statistic), asked.what
    write_json(folder.front, ListFront(what, names, points, found.complete, found.seconds).to_dict())


def ranges_of_rows(
    run: RunFolder, method: str | None, rows: Rows, wanted: Sequence[int]
) -> tuple[RowRanges | None, list[int]]:
    """Return the ranges of a method's training list that the run has found, and which rows of a file are on it.

    `wanted` are numbers of rows in the file, from 1. A row is on the list if it has the same number and the same values
    as one there; where none is, there are no ranges.
    """
    chosen = method_of(run, method)
    folder = run.method(chosen, make=False)
    found = _kept(folder)
    if chosen not in (EXACT, CARD) or found is None or not folder.problem.exists():
        return None, []
    with reading(folder.problem):
        arrays = read_arrays(folder.problem)
        places = {int(row): at for at, row in enumerate(arrays["rows"])}
        cells = arrays["X"] if chosen == CARD else arrays["features"]
    wanted = [row for row in wanted if row in places]
    if not wanted:
        return None, []
    table = rows.table.iloc[[row - 1 for row in wanted]]
    own = _card_ranker(folder)._features(table) if chosen == CARD else doubles(table.to_numpy())
    same = [row for row, values in zip(wanted, own, strict=True) if np.array_equal(values, cells[places[row]])]
    return (found, same) if same else (None, [])


def _kept(folder: MethodFolder, seconds: float = 0.0) -> RowRanges | None:
    """Return the ranges in the folder, unless more time may lead to narrower ones; None for a damaged file, too."""
    try:
        given = read_json(folder.ranges)
        found = None if given is None else RowRanges.from_dict(given)
    except ValueError:
        return None
    return found if found is not None and (all(found.exact) or found.seconds >= seconds) else None


def _card_ranker(folder: MethodFolder) -> CardRanker:
    from trainers.run.methods import load_ranker

    ranker = load_ranker(folder)
    assert isinstance(ranker, CardRanker)
    return ranker


def _found(folder: MethodFolder, config: Config, seconds: float, should_stop: Callable[[], bool]) -> RowRanges | None:
    """Find the ranges of the rows of a finished method's list from its files; None where no weights are known."""
    from trainers.run.methods import load_scores

    record, scores = folder.result(), load_scores(folder)
    assert record is not None
    assert scores is not None
    with reading(folder.problem):
        arrays = read_arrays(folder.problem)
    problem: RerankProblem | CardProblem
    options: dict[str, Any] = {"time_limit": seconds, "should_stop": should_stop}
    if "card" in record:
        ranker = _card_ranker(folder)
        demands = [
            Demand(statistic, float(least), arrays[f"demand_{at}"])
            for at, (statistic, least) in enumerate(arrays["demands"].tolist())
        ]
        again = ranker._problem(ranker.questions_, doubles(arrays["X"]), arrays["y"], demands)
        assert isinstance(again, CardProblem)  # there are no answers of others
        problem = again
        options["within"], value, lists = max(WITHIN, ranker.tolerance), ranker.card_.value, None
    else:
        solution: Solution
        problem, solution = read_problem(folder)
        if not math.isfinite(solution.value):
            return None
        options |= {"within": WITHIN, "solution": solution}
        value, lists = record["list"].get("reached", problem.statistic_value(solution.weights)), problem.lists
    ranges = rank_ranges(problem, **options)
    first = _first(config, problem.statistic, max(map(len, lists)) if lists else problem.n)
    place, tied = _places(scores.train[arrays["members"]], lists or [np.arange(problem.n)])
    by_query = lists is not None and len(lists) > 1
    kind, method = ("cards", CARD) if "card" in record else ("scorers", EXACT)
    return RowRanges(
        what=_what(method, problem.n, by_query=by_query),
        kind=kind,
        statistic=str(problem.statistic),
        within=options["within"],
        least=ranges.least,
        proven=record["status"] == Status.OPTIMAL.value,
        among=value is not None and value >= ranges.least - 1e-9 * abs(ranges.least),
        first=first,
        summary=ranges.summary(first).replace("scorer", kind.removesuffix("s")),
        by_query=by_query,
        rows=tuple(arrays["rows"].tolist()),
        place=tuple(place.tolist()),
        tied=tuple(tied.tolist()),
        best=tuple(ranges.best.tolist()),
        worst=tuple(ranges.worst.tolist()),
        exact=tuple(ranges.exact.tolist()),
        cards=ranges.cards,
        seconds=seconds,
    )


def _what(method: str, n: int, *, by_query: bool) -> str:
    if method == CARD:
        return f"the {n:,} rows of the training set"
    return f"the {n:,} reranked rows of the training set{', each in its query' if by_query else ''}"


def _first(config: Config, statistic: RankStatistic, n: int) -> int:
    """Return the number of first rows to tell about: the visits, or the statistic's cutoff, or half of the list."""
    wanted = (config.answer.visits, statistic.cutoff)
    return next((most for most in wanted if most is not None and most < n), max(1, n // 2))


def _places(
    scores: NDArray[np.float64], lists: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the place of each row in its list by scores, the best one of ties, and the number of other rows tied."""
    place, tied = np.empty((2, len(scores)), dtype=np.int64)
    for members in lists:
        own = np.sort(scores[members])
        above = np.searchsorted(own, scores[members], side="right")
        place[members] = 1 + len(own) - above
        tied[members] = above - np.searchsorted(own, scores[members], side="left") - 1
    return place, tied
