"""The data of an experiment: loaded, hashed and split into a training set and a test set.

Rows with queries are split by whole queries. Data that come with a test set are not split. Some defaults of the config
follow the labels, and some options do not go with queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError, Dataset, half_split, load, load_test, read_data
from ltr.data.svmlight import glimpse_svmlight
from ltr.data.tables import side_file
from ltr.exact import METHODS, RerankProblem
from ltr.losses import LogisticLoss, parse_loss
from ltr.statistics import RankStatistic
from trainers.config import Config
from trainers.config.errors import ConfigError, Finding, nearest
from trainers.config.sections import DataConfig

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """What kind of labels the data have."""

    by_query: bool  # whether rows belong to queries
    graded: bool  # whether some labels are above 1


@dataclass(frozen=True)
class Part:
    """A training or test set: features (n, d), labels (n,) and, with queries, the number of each row's query (n,)."""

    X: FloatArray
    y: IntArray
    qid: IntArray | None = None

    @property
    def empty_queries(self) -> int:
        """Number of queries without a label above 0."""
        assert self.qid is not None
        return self.n_queries - len(np.unique(self.qid[self.y > 0]))

    @property
    def n_queries(self) -> int:
        """Number of queries, 1 without queries."""
        return 1 if self.qid is None else len(np.unique(self.qid))


@dataclass(frozen=True)
class Split:
    """The training set and the test set of a data set."""

    train: Part  # set that methods learn from
    test: Part  # set that they never see
    feature_names: tuple[str, ...]  # names of the columns
    facts: dict[str, Any]  # name, sizes and sha256 of the whole data, for the run folder

    @property
    def parts(self) -> tuple[tuple[str, Part], tuple[str, Part]]:
        """Both sets with their names, ``train`` and ``test``."""
        return ("train", self.train), ("test", self.test)

    @property
    def by_query(self) -> bool:
        """Whether rows belong to queries."""
        return self.train.qid is not None

    @property
    def labels(self) -> Labels:
        """What kind of labels the data have."""
        return Labels(self.by_query, bool(max(self.train.y.max(), self.test.y.max()) > 1))


def glimpse(options: DataConfig) -> Labels:
    """Return the kind of labels, as far as the config, file names and the first lines of a file tell."""
    if options.path is None:
        return Labels(False, False)
    by_query = options.query is not None or side_file(options.path) is not None
    if options.file_format != "svmlight" or not Path(options.path).is_file():
        return Labels(by_query, False)
    queries, largest = glimpse_svmlight(options.path)
    return Labels(by_query or queries, (by_query or queries) and largest > 1)


def data_sha256(options: DataConfig) -> str:
    """Return the hash of the data that a config's section describes."""
    return _sha256(*_load(options))


def split_of(options: DataConfig, seed: int) -> Split:
    """Load the data that a config's section describes, and split them unless a test set comes with them.

    `seed` is that of the split where the section has none.

    Raises:
        DataError: data that cannot be read, or a set in which there is nothing to rank.
    """
    data, test = _load(options)
    facts: dict[str, Any] = {"name": data.name, "rows": data.n, "positives": data.n_pos, "sha256": _sha256(data, test)}
    if test is not None:
        parts = [Part(part.X, part.y, part.qid) for part in (data, test)]
        facts["test_rows"] = test.n
    else:
        seed = seed if options.split_seed is None else options.split_seed
        parts = _split_in_two(data, seed, options.train_fraction)
        facts |= {"split_seed": seed, "training_rows": len(parts[0].y)}
    if data.qid is not None:
        facts["queries"] = {"train": parts[0].n_queries, "test": parts[1].n_queries}
        facts["query"] = options.query
    facts["features"] = list(data.feature_names)
    return Split(parts[0], parts[1], data.feature_names, facts)


def _split_in_two(data: Dataset, seed: int, train_fraction: float) -> list[Part]:
    """Split a data set in two, by whole queries where there are queries."""
    if data.qid is not None and data.n_queries < 2:
        raise DataError("data: a single query cannot be split; give the test set as data.test_path")
    order = np.concatenate(half_split(data.n if data.qid is None else data.n_queries, seed))
    cut = int(len(order) * train_fraction)
    parts = []
    for name, members in (("training", order[:cut]), ("test", order[cut:])):
        if data.qid is None:
            part = Part(data.X[members], data.y[members])
            has_a_pair = len(np.unique(part.y)) > 1
            found = f"only label {part.y[0]}" if len(members) else "no rows"
            of = f"{len(members)} of {data.n} rows, {data.n_pos} positive in all"
        else:
            # query after query, each in the order of the file
            by_query = np.split(np.argsort(data.qid, kind="stable"), np.cumsum(np.bincount(data.qid))[:-1])
            rows = np.concatenate([by_query[query] for query in members]) if len(members) else data.qid[:0]
            part = Part(data.X[rows], data.y[rows], np.unique(data.qid[rows], return_inverse=True)[1])
            has_a_pair = any(len(np.unique(data.y[by_query[query]])) > 1 for query in members)
            found, of = "no query with two different labels", f"{len(members)} of {data.n_queries} queries"
        if not has_a_pair:
            advice = "change data.split_seed or data.train_fraction"
            raise DataError(f"data: the {name} set holds {found} ({of}); {advice}")
        parts.append(part)
    return parts


def _sha256(data: Dataset, test: Dataset | None) -> str:
    """Return one hash of the arrays' types, shapes and bytes."""
    sets = [data] if test is None else [data, test]
    digest = hashlib.sha256()
    for array in (array for part in sets for array in (part.X, part.y, part.qid) if array is not None):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _load(options: DataConfig) -> tuple[Dataset, Dataset | None]:
    """Load the data, and the test set where it has a file of its own."""
    if options.path is None:
        assert options.name is not None
        return load(options.name, seed=options.seed), load_test(options.name)
    common: dict[str, Any] = {"format": options.format, "label": options.label, "query": options.query}
    data = read_data(options.path, drop=options.drop, features=options.features, cache=options.cache, **common)
    if options.test_path is None:
        return data, None
    test = read_data(options.test_path, features=data.feature_names, cache=options.cache, **common)
    if (data.qid is None) != (test.qid is None):
        neither = options.path if data.qid is None else options.test_path
        raise DataError(f"{neither}: has no queries, which the other file of data.path and data.test_path has")
    return data, test


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


def check_columns(config: Config, columns: Sequence[str]) -> None:
    """Check that the exact stage's column of scores exists, and that it may use no more weights than there are.

    Raises:
        ConfigError: options that do not go with these columns of the data.
    """
    exact, column = config.exact, config.exact.score_column
    features = [name for name in columns if name != column]
    findings = []
    if not exact.enabled:
        return
    if column is not None and (column not in columns or not features):
        known = "the only feature, and the exact stage needs another" if column in columns else "no column of features"
        hint = "" if column in columns else nearest(column, columns) or f"; the data have {', '.join(columns[:12])}"
        findings.append(Finding("exact.base_score", f"is {known}{hint}", column))
    if exact.max_nonzeros is not None and exact.max_nonzeros > len(features):
        findings.append(
            Finding(
                "exact.max_nonzeros",
                f"must be at most {len(features)}, the number of features that the exact stage has",
                exact.max_nonzeros,
            )
        )
    if findings:
        raise ConfigError("config, with these data", findings)


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
    if config.base not in config.methods:
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
