"""The rankers that a config describes, not yet fitted."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator

from ltr.exact import METHODS
from ltr.exact.solve import Solver
from ltr.fitting import Step
from ltr.rankers import (
    ExactRanker,
    LinearRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    Ranker,
    TwoStageRanker,
)
from trainers.config import Config

__all__ = ["first_stage_ranker", "quiet_surrogates", "rankboost_ranker", "surrogate_ranker", "two_stage_ranker"]


def surrogate_ranker(
    config: Config, loss: str, on_step: Callable[[Step, LinearRanker], None] | None = None
) -> LinearRanker:
    """The ranker trained on a loss.

    Args:
        config: of the experiment.
        loss: its name.
        on_step: called after each optimizer step.
    """
    options = config.surrogate
    return LinearRanker(
        loss,
        scorer=options.scorer,
        hidden=options.hidden or (64, 32),
        l2=options.l2,
        optimizer=options.optimizer,
        max_steps=options.max_steps,
        learning_rate=options.learning_rate,
        batch_size=options.batch_size,
        chunk_rows=options.chunk_rows,
        tolerance=options.tolerance,
        seed=config.seed,
        device=options.device,
        on_step=on_step,
    )


@contextlib.contextmanager
def quiet_surrogates() -> Iterator[None]:
    """A context in which surrogates end without converging and do not warn: the status in their row says so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(stopped at max_steps|stalled after)")
        yield


def rankboost_ranker(config: Config, on_round: Callable[[int, float], None] | None = None) -> RankBoostRanker:
    """RankBoost; `on_round` is called after each round."""
    options = config.baselines.rankboost
    thresholds = None if options.thresholds == "all" else int(options.thresholds)
    return RankBoostRanker(options.rounds, thresholds, options.step, on_round=on_round)


def first_stage_ranker(
    config: Config, method: str, on_step: Callable[[Step, LinearRanker], None] | None = None
) -> Ranker:
    """A surrogate or a baseline, by the name of the method; `on_step` is called after each step of a surrogate."""
    if method in config.surrogate.losses:
        return surrogate_ranker(config, method, on_step)
    if method == "rankboost":
        return rankboost_ranker(config)
    return LogisticRegressionRanker(**config.baselines.logistic_regression.model_dump())


def two_stage_ranker(config: Config, base: Ranker, *, threads: int | None = None) -> TwoStageRanker:
    """The exact stage on top of a base ranker.

    Args:
        config: of the experiment.
        base: the base ranker.
        threads: to search on; None takes all processors that the process may use.
    """
    options = config.exact
    exact = ExactRanker(
        options.statistic,
        C=options.C,
        margin=options.margin,
        rank=options.rank,
        gain=config.statistics.gain,
        method=_on_threads(options.method, threads),
        limits=options.limits(config.seed),
        recentre=options.recentre,
    )
    return TwoStageRanker(base, exact, None if options.top_k == "full" else int(options.top_k))


def _on_threads(method: str, threads: int | None) -> str | Solver:
    """The method by name, or as an object where it is told how many threads it has."""
    if threads is None:
        return method
    solver = METHODS["weight_space" if method == "auto" else method]  # what auto chooses for every problem
    return dataclasses.replace(solver, threads=threads) if hasattr(solver, "threads") else method  # type: ignore[type-var]
