"""The methods of an experiment, fitted: config and data in, a ranker and its record out.

`fit` is the one place where runs and sweeps fit a method and measure it. A `Watch` follows it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ltr.exact import METHODS
from ltr.exact.solution import Status, TracePoint
from ltr.fitting import Fit, Step
from ltr.list_demands import read_list_demands
from ltr.metrics.ranked import Ties
from ltr.rankers import (
    AutoRanker,
    EstimatorRanker,
    ExactRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    Ranker,
    ScoreColumn,
    SurrogateRanker,
    TwoStageRanker,
)
from ltr.rankers.constraint_checks import check_constraints
from ltr.statistics import RankStatistic
from ltr.weight_constraints import WeightConstraints, read_constraints
from trainers.cards import card_ranker, find_card, label_name
from trainers.config import AUTO, CARD, EXACT, Config
from trainers.config.sections import LIMITS
from trainers.files import Json
from trainers.plan import Cell
from trainers.task.data import FloatArray, Part
from trainers.task.measures import Scores, Task, by_tag, own_loss, share_name
from trainers.task.raw import demand_columns, not_asked, raw_columns

if TYPE_CHECKING:
    import pandas as pd

BASE_KEPT = "base order"
"""Status of an exact stage that had nothing to order: the base ranking is kept."""
INTERRUPTED = Status.INTERRUPTED.value
"""Status of a method that the user stopped."""


_NOT_OF_THE_RANKER = frozenset(
    ("enabled", "base", "certificate", "ranges", "front", "top_k", "choose", "base_score", "spread")
)
"""Keys of the exact section that are no arguments of `ExactRanker`, beside the limits."""


class Watch:
    """Follows a fit. This class does nothing, which is what a sweep needs; a run overrides its methods."""

    resume: dict[str, Any] | None = None  # state of an interrupted training to go on from
    optimum: float | None = None  # certified optimum of a surrogate's objective, for the distance to it

    def wants(self, index: int, last: int | None) -> bool:
        """Return whether a step becomes a point of the curve; `last` is the last step where that is known."""
        return False

    def log(self, step: int, values: Mapping[str, float], when: float | None = None) -> None:
        """Take a point of the curve: values by tag, such as ``loss/convex`` and ``train/dcg``, at a time, or now."""

    def stepped(self, index: int, values: Mapping[str, float], fit: Fit | None) -> None:
        """Receive the end of a step or round and its values by tag; a KeyboardInterrupt stops the method there.

        `fit` is the training, whose state a checkpoint keeps; None for RankBoost.
        """

    inner: MutableMapping[str, Any] | None = None  # results of the choice's inner splits, to go on from

    def counted(self, done: int, total: int, what: str) -> None:
        """Receive how many fits or inner splits are done; a KeyboardInterrupt stops the method there."""

    def traced(self, point: TracePoint, problem: Any) -> None:  # noqa: ANN401  (two kinds of problems)
        """Take a new incumbent or bound of the exact stage on a problem."""


@dataclass(frozen=True)
class Fitted:
    """A fitted method."""

    ranker: Any  # the ranker
    scores: Scores  # its scores of the training and test sets
    record: Json  # its record, see `trainers.records`
    ties: Ties = "resolved"  # how rows with equal scores count in its statistics
    base: Scores | None = None  # scores of the base of an exact stage, where it is not the run's own method


@dataclass(frozen=True)
class Starts:
    """What an exact stage starts from."""

    base: Ranker | None = None  # its base ranker, fitted; None to fit it
    by_id: Mapping[str, Sequence[float]] = field(default_factory=dict)  # weights, by the ids of their records
    more: Sequence[Sequence[float]] = ()  # further weights


def fit(task: Task, cell: Cell, watch: Watch, starts: Starts | None = None, *, threads: int | None = None) -> Fitted:
    """Fit a method, measure it and make its record.

    A surrogate or search that the user stops ends with the status ``interrupted`` and the best weights so far. The
    exact stage takes all processors that the process may use, unless `threads` are given.

    Raises:
        KeyboardInterrupt: the user stopped a method that keeps nothing of what it has done.
        ValueError: options that do not go with these data.
        FloatingPointError: a training that leaves the floating point range.
    """
    import_libraries()
    with contextlib.redirect_stdout(sys.stderr):  # estimators may print, and results go to standard output
        if cell.method == EXACT:
            fitted = _fit_exact(task, cell, watch, starts or Starts(), threads)
        elif cell.method == CARD:
            fitted = _fit_card(task)
        else:
            fitted = _fit_first_stage(task, cell.method, watch)
    demands = {EXACT: task.config.exact.demands, CARD: task.config.card.demands}.get(cell.method)
    if demands is not None and fitted.ranker.demands_ is not None:
        new = task.demands_on_new_lists(fitted.scores.test, demands)
        fitted.record["demands"] = {**fitted.ranker.demands_.to_dict(), "new": new}
    if unsaved := unsaved_because(fitted.ranker):
        fitted.record["message"] = "; ".join(filter(None, [fitted.record.get("message"), unsaved]))
    record: Json = {name: getattr(cell, name) for name in ("id", "data", "split", "method", "options")}
    record["sizes"] = {name: [len(part.y), int((part.y > 0).sum())] for name, part in task.split.parts}
    record["sizes"]["d"] = len(task.split.feature_names)
    record |= {**task.statistics(fitted.scores, fitted.ties), **fitted.record}
    return dataclasses.replace(fitted, record=record)


def import_libraries() -> None:
    """Import what methods import late: imports would count as their time, and take all threads there are."""
    for name in ("scipy.linalg", "sklearn.linear_model"):
        importlib.import_module(name)


def _fit_first_stage(task: Task, method: str, watch: Watch) -> Fitted:
    train, interrupted = task.split.train, False

    def on_step(step: Step, ranker: SurrogateRanker) -> None:
        assert ranker.fit_ is not None
        values = {"loss/convex": step.loss, "loss/objective": step.objective}
        if watch.optimum is not None:
            values["loss/excess"] = step.objective - watch.optimum
        if step.validation is not None:
            values[f"validation/{share_name(task.config.reported[0], task.config.statistics.gain)}"] = step.validation
        if watch.wants(step.index, None) or ranker.fit_.stopped:
            values |= by_tag(task.statistics(task.scores_of(ranker)))
            watch.log(step.index, values)
        watch.stepped(step.index, values, ranker.fit_)

    rounds: list[float] = []

    def on_round(index: int, loss: float) -> None:
        rounds.append(time.time())
        watch.stepped(index, {"loss/convex": loss}, None)

    ranker = first_stage_ranker(task.config, method, on_step, on_round, columns=task.split.feature_names)
    started = time.perf_counter()
    held = task.split.validation
    validation = None if held is None else (held.X, held.y, held.qid)
    try:
        _fit_ranker(ranker, task, watch.counted, validation_set=validation, resume=watch.resume)
    except KeyboardInterrupt:
        if not isinstance(ranker, SurrogateRanker) or ranker.fit_ is None:
            raise
        interrupted = True
    seconds = time.perf_counter() - started
    scores = task.scores_of(ranker)
    record: Json = {"status": "fitted", "seconds": seconds, "steps": None}
    if isinstance(ranker, RankBoostRanker):
        # its scores after each round are known once it is fitted
        stages = (ranker.staged_decision_function(part.X) for _, part in task.split.parts)
        for index, (train_scores, test_scores) in enumerate(zip(*stages, strict=True), start=1):
            if watch.wants(index, len(rounds)):
                reached = by_tag(task.statistics(Scores(train_scores, test_scores)))
                watch.log(index, {"loss/convex": float(ranker.losses_[index]), **reached}, rounds[index - 1])
        record |= {"steps": len(rounds), "loss": float(ranker.losses_[-1])}
    else:
        convex = isinstance(ranker, SurrogateRanker | LogisticRegressionRanker)
        record["loss"] = own_loss(method, scores.train, train) if convex else None
    if isinstance(ranker, SurrogateRanker):
        assert ranker.fit_ is not None
        ended = "converged" if ranker.converged_ else str(ranker.fit_.stopped)
        record["status"] = INTERRUPTED if interrupted else ended
        record["seconds"] = ranker.fit_.state_dict()["seconds"]  # over all starts, with the statistics of steps
        record["steps"] = ranker.n_iter_
        record |= {} if ranker.validation_ is None else {"validation": ranker.validation_}
        if watch.optimum is not None:
            record["excess"] = ranker.objective_ - watch.optimum
    if isinstance(ranker, AutoRanker):
        scores = _out_of_fold(ranker, scores)
        record |= {"message": str(ranker.comparison_), "compared": _compared(task, ranker)}
    weights = ranker.linear_weights
    ranker.name_features(task.split.feature_names)
    return Fitted(ranker, scores, record | {"weights": None if weights is None else weights.tolist()})


def _fit_ranker(
    ranker: Ranker,
    task: Task,
    on_progress: Callable[[int, int, str], None] | None = None,
    **of_surrogates: Any,  # noqa: ANN401  (arguments of the fit of a surrogate)
) -> None:
    """Fit a ranker of the first stage."""
    train = task.split.train
    if isinstance(ranker, AutoRanker):
        with quiet_surrogates():
            fit_auto(ranker, train, task.rows_of(train), on_progress)
    elif isinstance(ranker, SurrogateRanker):
        with quiet_surrogates():
            ranker.fit(train.X, train.y, qid=train.qid, **units_of(train), **weights_of(train), **of_surrogates)
    else:
        ranker.fit(train.X, train.y, qid=train.qid, **weights_of(train))


def fit_auto(
    ranker: AutoRanker, train: Part, rows: pd.DataFrame, on_progress: Callable[[int, int, str], None] | None = None
) -> None:
    """Fit the comparison of methods to a training set, whose features are the columns of `rows`."""
    weights = {**weights_of(train), "calibration_weight": train.own_weight}
    told = None if on_progress is None else lambda done, total, name: on_progress(done, total, f"fits ({name})")
    ranker.fit(rows, train.y, train.qid, **units_of(train), **weights, on_progress=told)


def _out_of_fold(ranker: AutoRanker, scores: Scores) -> Scores:
    """Return scores with those of the training rows out of fold: trees know the labels of the rows that they learn."""
    assert ranker.out_of_fold_ is not None
    return Scores(_ranked_last(ranker.out_of_fold_.mean(axis=0)), scores.test)


def _ranked_last(scores: FloatArray) -> FloatArray:
    """Return scores in which rows that nothing has ranked, the first ones in time, stand below all others."""
    unknown = np.isnan(scores)
    return np.where(unknown, np.nanmin(scores) - 1.0, scores) if unknown.any() else scores


def _compared(task: Task, ranker: AutoRanker) -> Json:
    """Return the statistics of each method that was compared, of the training rows out of fold, and the comparison."""
    assert ranker.members_out_of_fold_ is not None
    test, found = task.split.test, {}
    for number, (name, scored) in enumerate(ranker.scores_of_members(task.rows_of(test), test.qid).items()):
        scores = Scores(_ranked_last(ranker.members_out_of_fold_[:, :, number].mean(axis=0)), scored)
        found[name] = {**task.statistics(scores), "first_k": task.first_k(scores)}
    return {"methods": found, **dataclasses.asdict(ranker.comparison_)}


def _fit_exact(task: Task, cell: Cell, watch: Watch, starts: Starts, threads: int | None) -> Fitted:
    train, bound = task.split.train, binding_constraints(task.config, task.split.feature_names)
    base = starts.base if bound is None else None  # under constraints it is fitted anew
    if base is None:
        base = first_stage_ranker(task.config, task.config.base, columns=task.split.feature_names)
        if bound is None:
            _fit_ranker(base, task)
            base.name_features(task.split.feature_names)
    ranker = two_stage_ranker(task.config, base, threads=threads, columns=task.split.feature_names)
    wanted = RankStatistic.parse(task.config.exact.statistic).length
    if wanted is not None and bound is None:
        length = int(task.reranked(task.scores_of(base)).sum())  # by ties at its end not always top_k
        if length != wanted:
            raise ValueError(f"statistic must hold one weight per rank, got {wanted} for a list of {length} rows")
    weights = [*starts.by_id.values(), *starts.more]
    started = time.perf_counter()
    with quiet_surrogates():  # the choice fits the base ranker on parts of the training set
        ranker.fit(
            task.rows_of(train),
            train.y,
            train.qid,
            **units_of(train),
            **weights_of(train),
            beside=demand_columns(task.split, read_list_demands(task.config.exact.demands))[0],
            base_is_fitted=bound is None,
            warm_starts=weights,
            on_progress=lambda point: watch.traced(point, ranker.problem_),
            inner=watch.inner,
            on_choice=lambda done, total: watch.counted(done, total, "inner splits of the choice"),
        )
    seconds = time.perf_counter() - started
    solution, problem, choice = ranker.solution_, ranker.problem_, ranker.choice_
    record: Json = {"status": BASE_KEPT, "seconds": 0.0, "steps": None, "loss": None, "message": ranker.note_}
    record |= {"weights": None if ranker.coef_ is None else ranker.coef_.tolist(), "list": None}
    record |= {} if choice is None else {"choice": choice.to_dict()}
    note = ranker.note_ if choice is None or choice.reranks else ""  # it would say the choice again
    rule = "" if ranker.exact_.points_ is None else f"points: {ranker.exact_.rule(task.split.feature_names)}"
    if solution is not None and problem is not None:
        quick = choice is not None and solution.status is Status.HEURISTIC
        advice = "found by a quick search; exact.choose = false asks for the proof" if quick else solution.status.advice
        known = ranker.exact_.warm_starts_
        given = known[len(known) - len(weights) :]
        record |= {
            "status": solution.status.value,
            "seconds": solution.seconds if choice is None else seconds,
            "steps": solution.nodes,
            "message": "; ".join(filter(None, (advice, solution.message, note, rule))),
            "list": {
                "n": problem.n,
                "n_pos": int((problem.gains > 0).sum()),
                "value": solution.value,
                "bound": solution.bound,
                "gap": solution.gap if math.isfinite(solution.gap) else None,
                "trivial_bound": problem.trivial_bound,
                "starts": {
                    key: problem.evaluate(w) for key, w in zip(starts.by_id, given, strict=False) if problem.feasible(w)
                },
            },
        }
        if task.config.exact.choose or task.config.exact.base_score:
            # the statistic of the base's order and of the ranker's on the list, whose best weights may be others
            own = known[0] if ranker.coef_ is None else ranker.exact_.problem_weights()
            values = (problem.statistic_value(problem.in_box(w)) for w in (known[0], own))
            record["list"] |= dict(zip(("base", "reached"), values, strict=True), base_weight=ranker.base_weight_)
    scores, of_base = _scores(task, ranker), task.scores_of(ranker.base_)
    if isinstance(ranker.base_, AutoRanker):
        of_base = _out_of_fold(ranker.base_, of_base)
    if bound is not None:
        checks = [[check.constraint, check.how] for check in check_constraints(ranker)]
        record["constraints"] = {"checks": checks, "base": task.statistics(of_base), "first_k": task.first_k(of_base)}
    if cell.recentre is not None and record["status"] != INTERRUPTED:
        started = time.perf_counter()
        moved = ranker.recentred(cell.recentre)  # type: ignore[arg-type]
        recentred: Json = {"norm": cell.recentre, "seconds": time.perf_counter() - started}
        of_moved = _scores(task, moved)
        record["recentred"] = recentred | task.statistics(of_moved)
    return Fitted(ranker, scores, record, base=of_base if bound is not None else None)


def _fit_card(task: Task) -> Fitted:
    config, split = task.config, task.split
    name = config.data.label or "positive"
    if split.tables is not None:
        name = label_name(config.data, split.tables[0].labels)
    train, test = raw_columns(split)
    sets = (train, split.train.y), (test, split.test.y)
    beside = demand_columns(split, read_list_demands(config.card.demands))[0]
    found = find_card(card_ranker(config.card, config.seed), name, *sets, beside=beside)
    scores = Scores(*(counts_of.astype(np.float64) for counts_of in found.totals))
    solution = found.ranker.solution_
    assert solution is not None
    record: Json = {"status": solution.status.value, "seconds": solution.seconds, "steps": solution.nodes}
    left_out = [*([] if split.tables is None else not_asked(split.tables[0].kinds)), *found.left_out]
    record |= {"loss": None, "weights": None, "message": "; ".join(left_out), "card": found.card.to_dict()}
    return Fitted(found.ranker, scores, record, config.card.ties)


def _scores(task: Task, ranker: TwoStageRanker) -> Scores:
    train, test = task.split.train, task.split.test
    own = _ranked_last(ranker.training_scores(task.rows_of(train), train.qid))
    return Scores(own, ranker.decision_function(task.rows_of(test), test.qid))


def first_stage_ranker(
    config: Config,
    method: str,
    on_step: Callable[[Step, SurrogateRanker], None] | None = None,
    on_round: Callable[[int, float], None] | None = None,
    columns: Sequence[str] = (),
) -> Any:  # noqa: ANN401  (five classes)
    """Return the ranker of a surrogate, baseline or column of scores, not yet fitted; `columns` name the features."""
    if config.exact.score_column is not None and method == config.base:
        return ScoreColumn(columns.index(config.exact.score_column))
    if method in config.surrogate.losses:
        options = config.surrogate.model_dump(exclude={"losses", "certify"}, exclude_none=True)
        measured: dict[str, Any] = {"statistic": config.reported[0], "gain": config.statistics.gain}
        return SurrogateRanker(method, **options, **measured, seed=config.seed, on_step=on_step)
    if (name := config.baselines.estimators.get(method)) is not None:
        return EstimatorRanker(str(name), seed=config.seed)
    options = getattr(config.baselines, method).model_dump()
    if method == AUTO:
        options["methods"] = list(options["methods"]) or "auto"
        measured = {"statistic": config.reported[0], "gain": config.statistics.gain}
        return AutoRanker(**options, **measured, seed=config.seed)
    if method == "rankboost":
        options["thresholds"] = None if options["thresholds"] == "all" else options["thresholds"]
        return RankBoostRanker(**options, on_round=on_round)
    return LogisticRegressionRanker(**options)


def binding_constraints(config: Config, columns: Sequence[str]) -> WeightConstraints | None:
    """Return the constraints that bind the exact stage and its base; None without any, or where no base orders rows."""
    section = config.exact
    constraints = read_constraints(len(columns), columns, **section.column_constraints())
    alone = section.top_k == "full" and not section.choose and section.base_score is False
    return constraints if section.enabled and constraints and not alone else None


def unsaved_because(ranker: Any) -> str:  # noqa: ANN401  (any ranker)
    """Return why a fitted ranker cannot be saved, an empty text where it can."""
    base = ranker.base_ if isinstance(ranker, TwoStageRanker) else ranker
    parts = base.deployed if isinstance(base, AutoRanker) else [base]
    reasons = [part.unsaved_ for part in parts if isinstance(part, EstimatorRanker) and part.unsaved_]
    return f"not saved: {'; '.join(reasons)}" if reasons else ""


def units_of(train: Part) -> dict[str, Any]:
    """Return the arguments of ``fit`` for groups and times of a training set, which say how it may be divided."""
    return {"group": train.group, "time": None if train.times is None else train.times.numbers}


def weights_of(train: Part) -> dict[str, Any]:
    """Return the argument of ``fit`` for the weights of a training set; nothing where all rows count alike."""
    return {} if train.weight is None else {"sample_weight": train.weight}


@contextlib.contextmanager
def quiet_surrogates() -> Iterator[None]:
    """Return a context in which surrogates do not warn where they end without converging: their status says so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(stopped at max_steps|stalled after)")
        yield


def two_stage_ranker(
    config: Config, base: Ranker, *, threads: int | None = None, columns: Sequence[str] = ()
) -> TwoStageRanker:
    """Return the exact stage on top of a base ranker, not yet fitted; `columns` name the features."""
    section = config.exact
    options = section.model_dump(exclude={*_NOT_OF_THE_RANKER, *LIMITS})
    options |= read_constraints(len(columns), columns, **section.column_constraints()).parameters
    if threads is not None:
        # an object has the number of threads; auto chooses weight_space for every problem
        solver = METHODS["weight_space" if section.method == "auto" else section.method]
        if hasattr(solver, "threads"):
            options["method"] = dataclasses.replace(solver, threads=threads)  # type: ignore[type-var]
    exact = ExactRanker(**options, gain=config.statistics.gain, limits=section.limits(config.seed))
    top_k = None if section.top_k == "full" else int(section.top_k)
    how: dict[str, Any] = {"choose": section.choose, "base_score": bool(section.base_score), "spread": section.spread}
    return TwoStageRanker(base, exact, top_k, **how)
