"""Where the rows of a run's training list can stand, and what another measure of it costs: found, kept, read.

Both are found from the files of a finished method, so that a run can get them later. No other result depends on them.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.answer import FrontPointOnList, ListFront, RowRanges
from ltr.cards import CardRanker
from ltr.checks import doubles
from ltr.exact import RerankProblem, front, rank_ranges
from ltr.exact.cards import CardProblem
from ltr.exact.constraints import Demand
from ltr.exact.solution import Solution, Status
from ltr.files import read_arrays
from ltr.list_demands import Asked, ListDemand
from ltr.statistics import RankStatistic
from trainers.config import CARD, EXACT, Config
from trainers.files import read_json, reading, write_atomic, write_json
from trainers.run.certificates import read_problem, rows_in_file
from trainers.run.folder import MethodFolder, RunFolder
from trainers.run.rows import Rows, method_of
from trainers.task.measures import Task
from trainers.task.raw import demand_columns

if TYPE_CHECKING:
    from trainers.run.methods import Context

WITHIN = 0.01
"""Share of the best value by which a good scorer may be below it."""


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
        statistic, gains, whole = of_lists.measured_on_top(scores[known], top)
        found = front(problem, statistic, gains, should_stop=lambda: context.stop.raised, **options)
    except ValueError as error:
        if not context.stop.raised:
            context.display.note(f"exact: no front: {str(error).removeprefix(f'demands: {asked}: ')}")
        return
    if context.stop.raised:
        context.display.note("exact: no front yet; the same command finds it")
        return
    points = tuple(
        FrontPointOnList(one.first, whole(one.second), one.first_bound, float(price), one.proven)
        for one, price in zip(found.points, found.prices, strict=True)
    )
    what = _what(EXACT, problem.n, by_query=len(problem.lists) > 1)
    names = str(problem.statistic), asked.what
    write_json(folder.front, ListFront(what, names, points, found.complete, found.seconds).to_dict())


def ranges_of_rows(
    run: RunFolder, method: str | None, rows: Rows, wanted: Sequence[int]
) -> tuple[RowRanges | None, list[int]]:
    """Return the ranges of a method's training list that the run has found, and which rows of a file are on it.

    `wanted` are numbers of rows in the file, from 1. A row is on the list, which has the training rows that the exact
    stage reranked, or all training rows for a card, if it has the same number and the same values.

    Returns:
        None and no rows where none of them is on such a list.
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
