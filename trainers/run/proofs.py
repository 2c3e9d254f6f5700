"""What is proven of a list: solution and certificate in the folder of the method, ranges and front in its record."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
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
from ltr.exact.ranges import RankRanges
from ltr.exact.solution import Solution, Status
from ltr.files import read_arrays
from ltr.list_demands import Asked, ListDemand
from ltr.rankers import TwoStageRanker
from ltr.rankers.exact import cut
from ltr.statistics import RankStatistic
from trainers.config import CARD, EXACT, Config
from trainers.files import Json, reading, to_json, write_atomic, write_json
from trainers.methods import Fitted, unsaved_because
from trainers.run.folder import MethodFolder, RunFolder
from trainers.run.predict import Rows, method_of
from trainers.task.data import Split
from trainers.task.measures import Task
from trainers.task.raw import demand_columns

if TYPE_CHECKING:
    from trainers.run.methods import Context

WITHIN = 0.01
"""Share of the best value by which a good scorer may be below it."""


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
        members = _members(ranker, task)
        kind |= {"members": members, "rows": rows_in_file(task.split)[members], "scores": ranker.list_scores_}
        kind["features"] = doubles(task.split.train.X[members])
        kind |= {f"demand_{at}": one.labels for at, one in enumerate(problem.demands) if one.labels is not None}
        np.savez(buffer, X=problem.X, **kind, weights=ranker.solution_.weights)
        write_atomic(folder.problem, buffer.getvalue())
    write_json(folder.solution, value)


def _members(ranker: TwoStageRanker, task: Task) -> NDArray[np.int64]:
    """Return which rows of the training set are on the list."""
    train, scores = task.split.train, ranker.list_scores_
    assert scores is not None
    known = np.flatnonzero(~np.isnan(scores))
    lists = None if train.qid is None else np.unique(train.qid[known], return_inverse=True)[1]
    return known[scores[known] >= cut(scores[known], lists, ranker.top_k)]


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


def prove_exact(folder: MethodFolder, context: Context, fitted: Fitted) -> bool:
    """Prove what the config asks for about the list of the exact stage: certificate, ranges and front.

    Return whether all of it is there; a stop by the user ends it without.
    """
    config, ranker = context.config, fitted.ranker
    problem, solution = ranker.problem_, ranker.solution_
    if problem is None or solution is None:
        return True
    if not math.isfinite(solution.value):
        context.display.note("exact: nothing to prove, because no weights are known")
        return True
    if config.exact.certificate:
        certificate = certify(problem, solution, should_stop=lambda: context.stop.raised)
        if not context.stop.raised:
            certificate.write(folder.certificate)
    if config.exact.ranges and not context.stop.raised:
        members, lists = _members(ranker, context), problem.lists
        value = fitted.record["list"].get("reached", problem.statistic_value(solution.weights))
        options: dict[str, Any] = {"within": WITHIN, "time_limit": config.exact.ranges}
        found = rank_ranges(problem, **options, solution=solution, should_stop=lambda: context.stop.raised)
        fitted.record["ranges"] = _ranges(context, fitted, found, members, lists, value, options)
    if config.exact.front is not None and not context.stop.raised:
        fitted.record["front"] = _front(context, ranker)
    return not context.stop.raised


def prove_card(folder: MethodFolder, context: Context, fitted: Fitted) -> None:
    """Write the answers of the training rows to the questions of a card, and find the ranges of their places.

    A stop by the user ends the search for ranges with the bounds known by then.
    """
    ranker, problem, buffer = fitted.ranker, fitted.ranker.problem_, io.BytesIO()
    assert isinstance(problem, CardProblem)
    np.savez(buffer, X=problem.X.astype(np.int8), y=problem.y, rows=rows_in_file(context.split))
    write_atomic(folder.problem, buffer.getvalue())
    seconds = context.config.card.ranges
    if seconds == 0 or context.stop.raised:
        return
    options: dict[str, Any] = {"within": max(WITHIN, ranker.tolerance), "time_limit": seconds}
    found, members = rank_ranges(problem, **options, should_stop=lambda: context.stop.raised), np.arange(problem.n)
    value = ranker.card_.value
    fitted.record["ranges"] = _ranges(context, fitted, found, members, [members], value, options)


def _ranges(
    context: Context,
    fitted: Fitted,
    found: RankRanges,
    members: NDArray[np.int64],
    lists: Sequence[NDArray[np.int64]],
    value: float | None,
    options: Json,
) -> Json:
    """Return the ranges of the rows `members` of the training set; `value` is that of the ranker's own order."""
    problem, by_query = fitted.ranker.problem_, len(lists) > 1
    kind, method = ("cards", CARD) if isinstance(problem, CardProblem) else ("scorers", EXACT)
    place, tied = _places(fitted.scores.train[members], lists)
    first = _first(context.config, problem.statistic, max(map(len, lists)))
    ranges = RowRanges(
        what=_what(method, len(members), by_query=by_query),
        kind=kind,
        statistic=str(problem.statistic),
        within=options["within"],
        by_query=by_query,
        seconds=options["time_limit"],
        least=found.least,
        proven=fitted.record["status"] == Status.OPTIMAL.value,
        among=value is not None and value >= found.least - 1e-9 * abs(found.least),
        first=first,
        summary=found.summary(first).replace("scorer", kind.removesuffix("s")),
        rows=tuple(rows_in_file(context.split)[members].tolist()),
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
    known = ~np.isnan(scores)
    group = None
    if asked.condition is not None:
        columns = demand_columns(context.split, [asked])[0]
        group = asked.condition.holds(columns[asked.condition.column])[known]
    lists = None if train.qid is None else np.unique(train.qid[known], return_inverse=True)[1]
    try:
        of_lists = Asked.of(asked, train.y[known].astype(np.float64), lists, group, config.statistics.gain)
        top = np.isin(np.flatnonzero(known), _members(ranker, context))
        on_top = of_lists.of_top(scores[known], top)
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


def ranges_of_rows(
    run: RunFolder, method: str | None, rows: Rows, wanted: Sequence[int]
) -> tuple[RowRanges | None, list[int]]:
    """Return the ranges of a method's training list that the run has found, and which rows of a file are on it.

    `wanted` are numbers of rows in the file, from 1. A row is on the list if it has the same number and the same values
    as one there; where none is, there are no ranges.
    """
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
    own = _card_ranker(folder)._features(table) if chosen == CARD else doubles(table.to_numpy())
    same = [row for row, values in zip(wanted, own, strict=True) if np.array_equal(values, cells[places[row]])]
    return (found, same) if same else (None, [])


def _card_ranker(folder: MethodFolder) -> CardRanker:
    from trainers.run.methods import load_ranker

    ranker = load_ranker(folder)
    assert isinstance(ranker, CardRanker)
    return ranker


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
