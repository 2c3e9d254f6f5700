"""Options and labels: some defaults follow the labels, and some options do not go with queries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ltr.exact import METHODS, RerankProblem
from ltr.losses import LogisticLoss, parse_loss
from ltr.statistics import RankStatistic
from trainers.config import Config
from trainers.config.errors import ConfigError, Finding
from trainers.task.data import Labels

FOLLOWING = ("surrogate.losses", "baselines.methods", "statistics.report")
"""Keys whose defaults follow the labels."""


def follow_labels(config: Config, labels: Labels) -> Config:
    """Return the config with defaults that suit the labels; what the user set stays as it is."""
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
    """Return the keys of `FOLLOWING` that the user left out."""
    keys = (key.partition(".") for key in FOLLOWING)
    return {
        f"{section}.{field}" for section, _, field in keys if field not in getattr(config, section).model_fields_set
    }


def check_lists(config: Config, labels: Labels) -> None:
    """Check that a config goes with the labels, before anything is computed.

    Raises:
        ConfigError: all options that do not go with data by query.
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
