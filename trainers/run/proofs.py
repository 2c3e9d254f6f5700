"""What is proven of a list: solution and certificate in the folder of the method, ranges and front in its record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.answer import FrontPointOnList, ListFront, RowRanges
from ltr.checks import doubles
from ltr.exact import RerankProblem, front, rank_ranges
from ltr.exact.cards import CardProblem
from ltr.exact.certificate import certify
from ltr.exact.solution import Solution, Status
from ltr.files import read_arrays
from ltr.list_demands import Asked, ListDemand
from ltr.rankers import TwoStageRanker
from ltr.rankers.exact import cut
from trainers.config import CARD, EXACT
from trainers.files import Json, reading, to_json, write_json
from trainers.methods import Fitted, unsaved_because
from trainers.run.folder import MethodFolder, RunFolder, write_arrays
from trainers.run.predict import Rows, method_of
from trainers.task.data import Part, Split
from trainers.task.measures import Task
from trainers.task.raw import demand_columns

if TYPE_CHECKING:
    from trainers.run.methods import Context

_WITHIN = 0.01  # share of the best value by which a good scorer may be below it


def save_solution(folder: MethodFolder, task: Task, ranker: TwoStageRanker) -> None:
    """Write the model, the weights with what was proven of them, and the list that was reranked."""
    if not unsaved_because(ranker):
        folder.save(ranker)
    names, points, units = task.split.feature_names, ranker.exact_.points_, ranker.exact_.units_
    value: Json = {
        "base": task.config.base,
        "threshold": ranker.threshold_,
        "note": ranker.note_,
        "weights": None if ranker.coef_ is None else dict(zip(names, ranker.coef_.tolist(), strict=True)),
    }
    if points is not None and units is not None:
        used = np.flatnonzero(points).tolist()
        value |= {"points": {names[j]: points[j].item() for j in used}}
        value |= {"units": {names[j]: units[j].item() for j in used}}
    value["base_weight"] = ranker.base_weight_
    value["center"] = dict(zip(names, ranker.exact_.center_.tolist(), strict=True))
    if ranker.solution_ is not None and (problem := ranker.problem_) is not None:
        value["certificate"] = _claim(problem, ranker.solution_)
        members = _listed(ranker, task.split.train)[1]
        kind: dict[str, Any] = (
            {"y": problem.gains.astype(np.int64)} if problem.binary else {"gains": problem.gains, "qid": problem.qid}
        )
        kind |= {"members": members, "rows": _rows_in_file(task.split)[members], "scores": ranker.list_scores_}
        kind |= {f"demand_{at}": one.labels for at, one in enumerate(problem.demands) if one.labels is not None}
        features, weights = doubles(task.split.train.X[members]), ranker.solution_.weights
        write_arrays(folder.problem, X=problem.X, **kind, features=features, weights=weights)
    write_json(folder.solution, value)


def _listed(ranker: TwoStageRanker, train: Part) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
    """Return the rows of the training set that the base has scored, those on the list, and lists of the former."""
    scores = ranker.list_scores_
    assert scores is not None
    known = np.flatnonzero(~np.isnan(scores))
    lists = None if train.qid is None else np.unique(train.qid[known], return_inverse=True)[1]
    return known, known[scores[known] >= cut(scores[known], lists, ranker.top_k)], lists


def _rows_in_file(split: Split) -> NDArray[np.int64]:
    """Return the numbers in the file, from 1, of the rows of the training set, (n,)."""
    train = split.train
    rows = train.rows if len(train.rows) else np.arange(len(train.y))
    return 1 + (rows if split.tables is None else split.tables[0].in_file(rows))


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


def prove_exact(folder: MethodFolder, context: Context, fitted: Fitted) -> bool:
    """Prove what the config asks for about the list of the exact stage: certificate, ranges and front.

    Return whether all of it is there; a stop by the user ends it without.
    """
    config, ranker = context.config.exact, fitted.ranker
    problem, solution = ranker.problem_, ranker.solution_
    if problem is None or solution is None:
        return True
    if not math.isfinite(solution.value):
        context.display.note("exact: nothing to prove, because no weights are known")
        return True
    if config.certificate:
        certificate = certify(problem, solution, should_stop=lambda: context.stop.raised)
        if not context.stop.raised:
            certificate.write(folder.certificate)
    if config.ranges and not context.stop.raised:
        members = _listed(ranker, context.split.train)[1]
        value = fitted.record["list"].get("reached", problem.statistic_value(solution.weights))
        options = {"within": _WITHIN, "time_limit": config.ranges, "solution": solution}
        fitted.record["ranges"] = _ranges(context, fitted, members, problem.lists, value, options)
    if config.front is not None and not context.stop.raised:
        fitted.record["front"] = _front(context, ranker)
    return not context.stop.raised


def prove_card(folder: MethodFolder, context: Context, fitted: Fitted) -> None:
    """Write the answers of the training rows to the questions of a card, and find the ranges of their places.

    A stop by the user ends the search for ranges with the bounds known by then.
    """
    ranker, problem = fitted.ranker, fitted.ranker.problem_
    assert isinstance(problem, CardProblem)
    write_arrays(folder.problem, X=problem.X.astype(np.int8), y=problem.y, rows=_rows_in_file(context.split))
    if (seconds := context.config.card.ranges) and not context.stop.raised:
        members = np.arange(problem.n)
        options = {"within": max(_WITHIN, ranker.tolerance), "time_limit": seconds}
        fitted.record["ranges"] = _ranges(context, fitted, members, [members], ranker.card_.value, options)


def _ranges(
    context: Context,
    fitted: Fitted,
    members: NDArray[np.int64],
    lists: Sequence[NDArray[np.int64]],
    value: float | None,
    options: Json,
) -> Json:
    """Find the ranges of the rows `members` of the training set; `value` is that of the ranker's own order."""
    problem = fitted.ranker.problem_
    found = rank_ranges(problem, **options, should_stop=lambda: context.stop.raised)
    kind, method = ("cards", CARD) if isinstance(problem, CardProblem) else ("scorers", EXACT)
    scores = fitted.scores.train[members]
    place, tied = np.empty((2, len(members)), dtype=np.int64)  # the best place of ties, and the other rows tied
    for own in lists:
        ascending = np.sort(scores[own])
        above = np.searchsorted(ascending, scores[own], side="right")
        place[own] = 1 + len(own) - above
        tied[own] = above - np.searchsorted(ascending, scores[own], side="left") - 1
    # the first rows to tell about: the visits, or the statistic's cutoff, or half of the list
    longest, wanted = max(map(len, lists)), (context.config.answer.visits, problem.statistic.cutoff)
    first = next((most for most in wanted if most is not None and most < longest), max(1, longest // 2))
    ranges = RowRanges(
        what=_what(method, len(members), by_query=len(lists) > 1),
        kind=kind,
        statistic=str(problem.statistic),
        within=options["within"],
        by_query=len(lists) > 1,
        seconds=options["time_limit"],
        least=found.least,
        proven=fitted.record["status"] == Status.OPTIMAL.value,
        among=value is not None and value >= found.least - 1e-9 * abs(found.least),
        first=first,
        summary=found.summary(first).replace("scorer", kind.removesuffix("s")),
        rows=tuple(_rows_in_file(context.split)[members].tolist()),
        place=tuple(place.tolist()),
        tied=tuple(tied.tolist()),
        best=tuple(found.best.tolist()),
        worst=tuple(found.worst.tolist()),
        exact=tuple(found.exact.tolist()),
        cards=found.cards,
    )
    return dict(to_json(ranges.to_dict()))


def _front(context: Context, ranker: TwoStageRanker) -> Json | None:
    """Find the front that the config asks for on the list of the exact stage; None where there is none."""
    config, train = context.config, context.split.train
    problem, solution, scores = ranker.problem_, ranker.solution_, ranker.list_scores_
    assert problem is not None
    assert solution is not None
    assert scores is not None
    asked = ListDemand.measuring(str(config.exact.front))
    known, members, lists = _listed(ranker, train)
    group = None
    if asked.condition is not None:
        columns = demand_columns(context.split, [asked])[0]
        group = asked.condition.holds(columns[asked.condition.column])[known]
    try:
        of_lists = Asked.of(asked, train.y[known].astype(np.float64), lists, group, config.statistics.gain)
        on_top = of_lists.of_top(scores[known], np.isin(known, members))
        found = front(
            problem,
            on_top.statistic,
            on_top.gains,
            name=asked.what,
            time_limit=config.exact.time_limit,
            warm_starts=[solution.weights],
            should_stop=lambda: context.stop.raised,
        )
    except ValueError as error:
        if not context.stop.raised:
            context.display.note(f"exact: no front: {str(error).removeprefix(f'demands: {asked}: ')}")
        return None
    if context.stop.raised:
        return None
    points = tuple(
        FrontPointOnList(one.first, on_top.whole(one.second), one.first_bound, float(price), one.proven)
        for one, price in zip(found.points, found.prices, strict=True)
    )
    what = _what(EXACT, problem.n, by_query=len(problem.lists) > 1)
    names = str(problem.statistic), asked.what
    return dict(to_json(ListFront(what, names, points, found.complete, found.seconds).to_dict()))


def _what(method: str, n: int, *, by_query: bool) -> str:
    if method == CARD:
        return f"the {n:,} rows of the training set"
    return f"the {n:,} reranked rows of the training set{', each in its query' if by_query else ''}"


def ranges_of_rows(
    run: RunFolder, method: str | None, rows: Rows, wanted: Sequence[int]
) -> tuple[RowRanges | None, list[int]]:
    """Return the ranges of a method's training list that the run has found, and which rows of a file are on it.

    `wanted` are numbers of rows in the file, from 1. A row is on the list if it has the same number and the same values
    as one there; where none is, there are no ranges.
    """
    from trainers.run.methods import load_ranker

    chosen = method_of(run, method)
    folder = run.method(chosen, make=False)
    given = (folder.result() or {}).get("ranges")
    if given is None:
        return None, []
    found = RowRanges.from_dict(given)
    with reading(folder.problem):
        arrays = read_arrays(folder.problem)
        places = {int(row): at for at, row in enumerate(arrays["rows"])}
        cells = arrays["X"] if chosen == CARD else arrays["features"]
    wanted = [row for row in wanted if row in places]
    if not wanted:
        return None, []
    table = rows.table.iloc[[row - 1 for row in wanted]]
    ranker: Any = load_ranker(folder) if chosen == CARD else None
    own = doubles(table.to_numpy()) if ranker is None else ranker._features(table)
    same = [row for row, values in zip(wanted, own, strict=True) if np.array_equal(values, cells[places[row]])]
    return (found, same) if same else (None, [])
