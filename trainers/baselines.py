"""The baselines of a run: logistic regression and RankBoost."""

from __future__ import annotations

import importlib
import time
from dataclasses import asdict
from typing import Any

from ltr.compiling import clock
from trainers.context import Context, by_tag, save_ranker, save_scores
from trainers.rankers import first_stage_ranker, rankboost_ranker
from trainers.results import Row
from trainers.task import Scores, own_loss
from trainers.tracking import Tracker

__all__ = ["fit_baseline"]


def fit_baseline(context: Context, name: str, *, level_to: int) -> Row:
    """Fit a baseline, log it, and leave its folder finished.

    Args:
        context: the run.
        name: ``logistic_regression`` or ``rankboost``.
        level_to: the step up to which a method without steps draws its level line.

    Raises:
        KeyboardInterrupt: the user asked to stop; the folder stays unfinished.
    """
    folder, train = context.run.method(name), context.split.train
    with Tracker(folder.path, folder.records, tensorboard=context.config.tracking.tensorboard) as tracker:
        importlib.import_module("sklearn.linear_model")  # takes seconds that are not the method's
        started = clock()
        if name == "rankboost":
            ranker, steps = _rankboost(context, tracker)
        else:
            context.display.begin(name, None)
            ranker = first_stage_ranker(context.config, name)
            ranker.fit(train.X, train.y, qid=train.qid)
            steps = None
        seconds = clock() - started
        scores = context.scores_of(ranker)
        statistics = context.statistics(scores)
        loss = float(ranker.losses_[-1]) if name == "rankboost" else own_loss(name, scores.train, train)
        if steps is None:
            tracker.level(level_to, {"loss/convex": loss, **by_tag(statistics)})
        weights = ranker.linear_weights
        row = Row(
            method=name,
            status="fitted",
            seconds=seconds,
            train=statistics["train"],
            test=statistics["test"],
            loss=loss,
            steps=steps,
            weights=None if weights is None else weights.tolist(),
        )
        tracker.finish(context.hyperparameters(name), {**by_tag(statistics), "loss/convex": loss})
    save_ranker(folder, ranker)
    save_scores(folder, scores)
    folder.finish(asdict(row))
    return row


def _rankboost(context: Context, tracker: Tracker) -> tuple[Any, int]:
    """The fitted ranker and its rounds; every round is logged."""
    options = context.config.baselines.rankboost
    moments: list[float] = []

    def on_round(index: int, loss: float) -> None:
        moments.append(time.time())
        context.display.step("rankboost", index, {"loss/convex": loss})
        context.stop.check()

    context.display.begin("rankboost", options.rounds)
    ranker = rankboost_ranker(context.config, on_round)
    ranker.fit(context.split.train.X, context.split.train.y)
    stages = zip(
        ranker.staged_decision_function(context.split.train.X),
        ranker.staged_decision_function(context.split.test.X),
        strict=True,
    )
    rounds = len(moments)
    for index, (train, test) in enumerate(stages, start=1):
        if index % context.config.tracking.every == 0 or index == rounds:
            values = {"loss/convex": float(ranker.losses_[index]), **by_tag(context.statistics(Scores(train, test)))}
            tracker.log(index, values, when=moments[index - 1])
    return ranker, rounds
