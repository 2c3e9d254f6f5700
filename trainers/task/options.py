"""Options of a config and the data they meet: defaults that follow the labels, and options that must go with them.

Like `trainers.task.data`, this module imports torch and scikit-learn where they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ltr.checks import doubles, is_trusting, nearest
from ltr.data import Table
from ltr.data.columns import Column
from ltr.data.dataset import differ_in_lists
from ltr.estimator_names import EstimatorName
from ltr.exact import METHODS, RerankProblem
from ltr.list_demands import read_demand, read_list_demands
from ltr.statistics import RankStatistic
from ltr.weight_constraints import read_constraints
from trainers.config import AUTO, Config
from trainers.config.errors import ConfigError, Finding
from trainers.config.sections import PLAIN_LOSSES, ExactConfig, is_code
from trainers.task.data import Labels, Part, Source, Split, is_quick, read_source

FOLLOWING = ("statistics.report", "exact.statistic", "exact.top_k")
"""Keys whose defaults follow the labels."""


def read_at_once(config: Config) -> Source | None:
    """Read the data of an experiment if that imports nothing slow, else return None."""
    return read_source(config.data) if is_quick(config.data) else None


def follow_labels(config: Config, labels: Labels) -> Config:
    """Return the config with defaults that suit the labels; what the user set stays as it is."""
    keys = (key.split(".") for key in FOLLOWING)
    unset = {f"{name}.{field}" for name, field in keys if field not in getattr(config, name).model_fields_set}
    found: dict[str, Any] = {}
    if labels.by_query:
        found["exact.statistic"] = "dcg@10"
        statistic = RankStatistic.parse("dcg@10" if "exact.statistic" in unset else config.exact.statistic)
        length = max(10, statistic.cutoff or 0)
        found["exact.top_k"] = 2 * length if statistic.is_constant(length) else length
    if measured := config.exact.measured():  # which rows are the first K, reranking K rows does not change
        length = int(found.get("exact.top_k", ExactConfig.model_fields["top_k"].default))
        asked = [one.statistic for one in measured.values()]
        found["exact.top_k"] = max(length, *(2 * (one.cutoff or 0) for one in asked if one.is_constant(length)), 0)
    if labels.graded:
        found["statistics.report"] = ("dcg@10", "mrr")
    for key in unset & set(found):
        section, _, field = key.partition(".")
        config = config.changed(section, **{field: found[key]})
    return config


def config_for(config: Config, split: Split) -> Config:
    """Return a config with defaults that suit the labels, once it is checked to go with the data.

    A `ConfigError` has all options that do not go with queries or graded labels; if there are none, all that do not go
    with the columns of the data or the weights of rows.
    """
    config = follow_labels(config, split.labels)
    if split.by_query and (findings := list(_findings_of_queries(config, graded=split.labels.graded))):
        raise ConfigError("config, with data by query", findings)
    tables = list(dict.fromkeys(split.tables or ()))
    findings = [*_findings_of_weights(config, split.train), *findings_of_columns(config, split.feature_names, tables)]
    if not tables:
        columns = {name: Column(name, split.train.X[:, at]) for at, name in enumerate(split.feature_names)}
        findings += _findings_of_demands(config, columns)
    findings = findings or list(_findings_of_base(config, split))
    if findings:
        raise ConfigError("config, with these data", findings)
    return config


def findings_of_columns(config: Config, columns: Sequence[str], tables: Sequence[Table]) -> list[Finding]:
    """Return what the exact stage asks of columns that the data do not have, or not enough of.

    A column of base scores must not have missing values: a median in their place would be no score of the model.
    """
    exact, column, findings = config.exact, config.exact.score_column, list[Finding]()
    features = [name for name in columns if name != column]
    whole = [table.columns for table in tables]
    if not exact.enabled:
        return _findings_of_demands(config, *whole)
    if column is not None and (column not in columns or not features):
        known = "the only feature, and the exact stage needs another" if column in columns else "no column of features"
        hint = "" if column in columns else nearest(column, columns) or f"; the data have {', '.join(columns[:12])}"
        findings.append(Finding("exact.base_score", f"is {known}{hint}", column))
    for table in tables:
        if column in table.columns and (missing := table.columns[column].missing).any():
            lack = "1 row of {} misses it" if missing.sum() == 1 else f"{missing.sum()} rows of {{}} miss it"
            rows = f"{lack.format(table.where)}, such as row {int(np.argmax(missing)) + 1}"
            findings.append(Finding("exact.base_score", f"must have no missing values: {rows}", column))
    if exact.max_nonzeros is not None and exact.max_nonzeros > len(features):
        rule = f"must be at most {len(features)}, the number of features that the exact stage has"
        findings.append(Finding("exact.max_nonzeros", rule, exact.max_nonzeros))
    read_constraints(
        len(columns),
        columns,
        **exact.column_constraints(),
        on_error=lambda field, rule, value: findings.append(Finding(f"exact.{field}", rule, value)),
    )
    return findings + _findings_of_demands(config, *whole)


def _findings_of_demands(config: Config, *tables: Mapping[str, Column]) -> list[Finding]:
    """Return demands on the list whose columns or values the data do not have; other tables need the columns alone."""
    findings: list[Finding] = []
    stated = {f"exact.{key}": one for key, one in config.exact.measured().items()} if config.exact.enabled else {}
    of_card = read_list_demands(config.card.demands) if config.card.enabled else []
    stated |= {f"card.demands[{at}]": one for at, one in enumerate(of_card)}
    for at, columns in enumerate(tables):
        for key, one in stated.items():
            text = one.what if key == "exact.front" else str(one)
            if at == 0:
                try:
                    read_demand(str(one), columns)
                except ValueError as error:
                    findings.append(Finding(key, str(error), text))
            elif one.condition is not None and one.condition.column not in columns:
                findings.append(Finding(key, f"data.test_path has no column {one.condition.column!r}", text))
    return findings


def _findings_of_base(config: Config, split: Split) -> Iterator[Finding]:
    """Yield constraints on columns that nothing satisfies, or that the base is known not to satisfy before its fit."""
    named = (config.base, *(config.baselines.auto.methods if config.base == AUTO else ()))
    code = config.base in config.baselines.estimators or any(map(is_code, named))
    if not config.exact.enabled or (code and not is_trusting()):
        return
    from ltr.rankers.constrained import check_possible
    from ltr.rankers.constraint_checks import why_refused
    from trainers.methods import binding_constraints, first_stage_ranker

    if (constraints := binding_constraints(config, split.feature_names)) is None:
        return
    try:
        if config.exact.integer is None:
            check_possible(constraints, doubles(split.train.X), split.feature_names)
    except ValueError as error:
        yield Finding("exact.required", str(error).removeprefix("required: "), list(config.exact.required))
        return
    base = first_stage_ranker(config, config.base, columns=split.feature_names)
    if told := why_refused(base, constraints, split.feature_names):
        key = "base" if config.exact.score_column is None else "base_score"
        remedy = "logistic regression and a linear loss such as ranknet can be fitted under them"
        yield Finding(f"exact.{key}", f"{told}: {remedy}", config.exact.score_column or config.base)


def too_long(config: Config, split: Split) -> str:
    """Return a note where the list to rerank is longer than the training set, else an empty text."""
    top_k, rows = config.exact.top_k, len(split.train.y)
    if not config.exact.enabled or split.by_query or top_k == "full" or int(top_k) <= rows:
        return ""
    rule = f'should be at most the {rows} rows of the training set, or "full"'
    return f"exact.top_k: {rule}, got {top_k}: all of them are reranked"


def _findings_of_weights(config: Config, train: Part) -> Iterator[Finding]:
    """Yield losses that take no weights of rows, and weights that the exact stage cannot take."""
    if train.weight is None:
        return
    from ltr.losses import LambdaLoss, SmoothStatisticLoss, parse_loss

    kept = train.weight > 0
    weights, labels, lists = train.weight[kept], train.y[kept], None if train.qid is None else train.qid[kept]
    of_queries = not differ_in_lists(weights, lists)
    for at, name in enumerate(config.surrogate.losses):
        if is_code(name) and not is_trusting():
            continue
        if isinstance(parse_loss(name), LambdaLoss | SmoothStatisticLoss) and not of_queries:
            asks = f"which {config.data.weighs} asks for"
            rule = f"takes weights of queries, but none of rows, {asks}: positions count rows; pairwise losses do"
            yield Finding(f"surrogate.losses[{at}]", rule, name)
    for at, path in _estimators(config):
        from ltr.rankers.estimators import weights_refused

        if refused := weights_refused(path.make(config.seed), weights, lists):
            rule = f"takes no weights of rows, which {config.data.weighs} asks for: {refused}"
            yield Finding(f"baselines.methods[{at}]", rule, str(path))
    none = labels == 0
    if config.exact.enabled and differ_in_lists(weights[none], None if lists is None else lists[none]):
        rows = "all rows" if lists is None else "all rows of a query"
        rule = f"ranks count rows, so that in the exact stage {rows} with label 0 must have the same weight, or 0"
        yield Finding("exact.enabled", f"must be false: {rule}", True)


def _is_logistic(loss: str) -> bool:
    if loss in PLAIN_LOSSES:
        return loss == "logistic"
    if is_code(loss) and not is_trusting():
        return False
    from ltr.losses import LogisticLoss, parse_loss

    return isinstance(parse_loss(loss), LogisticLoss)


def _findings_of_queries(config: Config, *, graded: bool) -> Iterator[Finding]:
    """Yield options that do not go with data by query, or with grades."""
    binary = "takes labels 0 and 1 only, here some are larger"
    for at, name in enumerate(config.surrogate.losses if graded else ()):
        if _is_logistic(name):
            rule = f"{binary}; baselines.methods has logistic_regression"
            yield Finding(f"surrogate.losses[{at}]", rule, name)
    for at, path in _estimators(config) if graded else ():
        from sklearn.base import is_classifier

        if is_classifier(path.make(config.seed)):
            rule = f"is a classifier, which {binary}: take a regressor or ranker"
            yield Finding(f"baselines.methods[{at}]", rule, str(path))
    if config.surrogate.certify:
        yield Finding("surrogate.certify", "goes with one list only", True)
    if "rankboost" in config.baselines.methods:
        rule = "must not name rankboost, which learns from one list; surrogate.losses has exponential, its loss"
        yield Finding("baselines.methods", rule, list(config.baselines.methods))
    if config.card.enabled:
        yield Finding("card.enabled", "goes with one list only: these rows belong to queries", True)
    for at, name in enumerate(config.statistics.report if graded else ()):
        if RankStatistic.parse(name).kind.share_of_pairs:
            yield Finding(f"statistics.report[{at}]", binary, name)
    exact, statistic = config.exact, RankStatistic.parse(config.exact.statistic)
    if not exact.enabled:
        return
    if statistic.kind.share_of_pairs:
        yield Finding("exact.statistic", "has no sum over queries; wrs, the sum of ranks, has", exact.statistic)
    elif statistic.length is not None:
        yield Finding("exact.statistic", "cannot be weights(...): queries differ in length", exact.statistic)
    elif exact.method != "auto":
        qid = [0, 0, 0, 1]
        small = RerankProblem(np.eye(4) / 4, [0, 1, 2, 0], statistic, exact.C, exact.margin, qid=qid, ties=exact.ties)
        try:
            METHODS[exact.method].check(small)
        except ValueError as error:
            yield Finding("exact.method", str(error), exact.method)


def _estimators(config: Config) -> Iterator[tuple[int, EstimatorName]]:
    """Yield the estimators of other libraries with their places in ``baselines.methods``, where code may be run."""
    for at, name in enumerate(config.baselines.names) if is_trusting() else ():
        if (path := config.baselines.estimators.get(name)) is not None:
            yield at, path
