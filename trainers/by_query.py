"""What is different where rows belong to queries: statistics are means over queries, and some options make no sense.

A statistic of a query is divided by its value for the query's perfect order, so that 1 is the best there is:
``ndcg@10`` is the mean of these shares for ``dcg@10``. Labels are worth ``2^label - 1``, or themselves
(``statistics.gain``). A query without a label above 0 has no such share: it is left out of the mean, or counts as 0 or
1 (``statistics.empty``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.exact import METHODS, RerankProblem
from ltr.losses import LogisticLoss, parse_loss
from ltr.metrics import normalized_rank_statistic, rank_statistic
from ltr.statistics import RankStatistic
from trainers.config import Config
from trainers.config_errors import ConfigError, Finding
from trainers.inputs import Half, Labels
from trainers.sections import StatisticsConfig

__all__ = [
    "FOLLOWING",
    "check_lists",
    "count_empty",
    "follow_labels",
    "mean_share",
    "share_name",
    "sum_over_queries",
    "unset_following",
]

FOLLOWING = ("surrogate.losses", "baselines.methods", "statistics.report")
"""Keys whose defaults follow the labels."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def share_name(statistic: str) -> str:
    """The name of a statistic divided by its best value.

    Examples:
        >>> share_name("dcg@10"), share_name("auc")
        ('ndcg@10', 'auc')
    """
    return RankStatistic.parse(statistic).normalized_name


def mean_share(scores: FloatArray, half: Half, statistic: str, options: StatisticsConfig) -> float | None:
    """The mean over queries of a statistic's share of its best value; None where no query has one."""
    values = normalized_rank_statistic(*_tensors(scores, half.y), statistic, gain=options.gain, qid=_tensor(half.qid))
    if options.empty == "skip":
        values = values[~values.isnan()]
    value = float(values.nan_to_num(float(options.empty) if options.empty != "skip" else 0.0).mean())
    return None if math.isnan(value) else value


def sum_over_queries(
    scores: FloatArray, y: IntArray, qid: IntArray, statistic: str, options: StatisticsConfig
) -> float:
    """The sum over queries of a statistic as it is: what the exact stage maximises."""
    return float(rank_statistic(*_tensors(scores, y), statistic, gain=options.gain, qid=_tensor(qid)).sum())


def count_empty(half: Half) -> int:
    """Queries without a label above 0."""
    assert half.qid is not None
    return half.n_queries - len(np.unique(half.qid[half.y > 0]))


def follow_labels(config: Config, labels: Labels) -> Config:
    """The config with defaults that go with the labels; what the user set stays as it is."""
    found = {}
    if labels.graded:
        losses = tuple(name for name in config.surrogate.losses if not isinstance(parse_loss(name), LogisticLoss))
        found["surrogate.losses"] = losses
        found["statistics.report"] = ("dcg", "mrr")
    if labels.by_query:
        found["baselines.methods"] = tuple(name for name in config.baselines.methods if name != "rankboost")
    for key in unset_following(config) & set(found):
        section, _, field = key.partition(".")
        changed = getattr(config, section).model_copy(update={field: found[key]})
        config = config.model_copy(update={section: changed})
    return config


def unset_following(config: Config) -> set[str]:
    """The keys of `FOLLOWING` that the user left out."""
    keys = (key.partition(".") for key in FOLLOWING)
    return {
        f"{section}.{field}" for section, _, field in keys if field not in getattr(config, section).model_fields_set
    }


def check_lists(config: Config, labels: Labels) -> None:
    """Refuse what a config asks for that lists by query do not have, before anything is computed.

    Raises:
        ConfigError: all of it at once.
    """
    if labels.by_query and (findings := list(_findings(config, labels.graded))):
        raise ConfigError("config, with data by query", findings)


def _findings(config: Config, graded: bool) -> Iterator[Finding]:
    for at, name in enumerate(config.surrogate.losses):
        if graded and isinstance(parse_loss(name), LogisticLoss):
            rule = "takes labels 0 and 1 only, here some are larger; baselines.methods has logistic_regression"
            yield Finding(f"surrogate.losses[{at}]", rule, name)
    if config.surrogate.certify:
        yield Finding("surrogate.certify", "goes with one list only", True)
    if "rankboost" in config.baselines.methods:
        rule = "must not name rankboost, which learns from one list; surrogate.losses has exponential, its loss"
        yield Finding("baselines.methods", rule, list(config.baselines.methods))
    for at, name in enumerate(config.statistics.report):
        if graded and RankStatistic.parse(name).kind.share_of_pairs:
            yield Finding(f"statistics.report[{at}]", "takes labels 0 and 1 only, here some are larger", name)
    if config.exact.enabled:
        yield from _exact_findings(config)


def _exact_findings(config: Config) -> Iterator[Finding]:
    exact, names = config.exact, (*config.surrogate.losses, *config.baselines.methods)
    if exact.base not in names:
        yield Finding("exact.base", f"must be a method of this run by query ({', '.join(names)})", exact.base)
    statistic = RankStatistic.parse(exact.statistic)
    if statistic.kind.share_of_pairs:
        yield Finding("exact.statistic", "has no sum over queries; wrs, the sum of ranks, has", exact.statistic)
    elif statistic.length is not None:
        yield Finding("exact.statistic", "cannot be weights(...): queries differ in length", exact.statistic)
    elif exact.method != "auto":
        small = RerankProblem(
            np.eye(4) / 4, [0, 1, 2, 0], statistic, exact.C, exact.margin, qid=[0, 0, 0, 1], rank=exact.rank
        )
        try:
            METHODS[exact.method].check(small)
        except ValueError as error:
            yield Finding("exact.method", str(error), exact.method)


def _tensors(scores: FloatArray, y: IntArray) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(scores), torch.from_numpy(y)


def _tensor(qid: IntArray | None) -> torch.Tensor | None:
    return None if qid is None else torch.from_numpy(qid)
