"""The data of a run: loaded, hashed and split into a training and a test half.

Rows by query are split by whole queries. Data that come with a test part are not split.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError, Dataset, half_split, load, load_test, read_data
from ltr.data.queries import side_file
from ltr.data.svmlight import glimpse_svmlight
from trainers.config import Config
from trainers.provenance import sha256_of
from trainers.sections import DataConfig

__all__ = ["Half", "Labels", "Split", "data_sha256", "glimpse", "load_split", "split_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """What kind of labels there are.

    Attributes:
        by_query: whether rows belong to queries.
        graded: whether some labels are above 1.
    """

    by_query: bool
    graded: bool


@dataclass(frozen=True)
class Half:
    """One half: features (n, d), labels (n,) and, where rows belong to queries, the number of each row's query (n,)."""

    X: FloatArray
    y: IntArray
    qid: IntArray | None = None

    @property
    def n_queries(self) -> int:
        """Number of lists, 1 without queries."""
        return 1 if self.qid is None else len(np.unique(self.qid))


@dataclass(frozen=True)
class Split:
    """The two halves of a data set.

    Attributes:
        train: what methods learn from.
        test: what they never see.
        feature_names: one a column.
        facts: name, sizes and sha256 of the whole data, for the run folder.
    """

    train: Half
    test: Half
    feature_names: tuple[str, ...]
    facts: dict[str, Any]

    @property
    def by_query(self) -> bool:
        """Whether rows belong to queries."""
        return self.train.qid is not None

    @property
    def labels(self) -> Labels:
        """What kind of labels the data have."""
        return Labels(self.by_query, bool(max(self.train.y.max(), self.test.y.max()) > 1))


def glimpse(options: DataConfig) -> Labels:
    """What kind of labels the data have, as far as config, file names and the first lines of a file tell it."""
    if options.path is None:
        return Labels(False, False)
    by_query = options.query is not None or side_file(options.path) is not None
    if options.file_format != "svmlight" or not Path(options.path).is_file():
        return Labels(by_query, False)
    queries, largest = glimpse_svmlight(options.path)
    return Labels(by_query or queries, (by_query or queries) and largest > 1)


def load_split(config: Config) -> Split:
    """Load the config's data and split it, unless a test part comes with it.

    Raises:
        DataError: data that cannot be read, or a half in which there is nothing to rank.
    """
    return split_of(config.data, config.seed)


def data_sha256(options: DataConfig) -> str:
    """The hash of the data that a config's section describes, both halves.

    Raises:
        DataError: data that cannot be read.
    """
    return _sha256(*_load(options))


def split_of(options: DataConfig, seed: int) -> Split:
    """The data that a config's section describes, split by a seed where the section names none.

    Raises:
        DataError: as `load_split`.
    """
    data, test = _load(options)
    facts: dict[str, Any] = {"name": data.name, "rows": data.n, "positives": data.n_pos, "sha256": _sha256(data, test)}
    if test is not None:
        halves = [Half(part.X, part.y, part.qid) for part in (data, test)]
        facts["test_rows"] = test.n
    else:
        seed = seed if options.split_seed is None else options.split_seed
        halves = _halves(data, seed, options.train_fraction)
        facts |= {"split_seed": seed, "training_rows": len(halves[0].y)}
    if data.qid is not None:
        facts["queries"] = {"train": halves[0].n_queries, "test": halves[1].n_queries}
        facts["query"] = options.query
    facts["features"] = list(data.feature_names)
    return Split(halves[0], halves[1], data.feature_names, facts)


def _halves(data: Dataset, seed: int, train_fraction: float) -> list[Half]:
    """The two halves of a data set, of whole queries where there are queries."""
    if data.qid is not None and data.n_queries < 2:
        raise DataError("data: a single query cannot be split; give the test half as data.test_path")
    order = np.concatenate(half_split(data.n if data.qid is None else data.n_queries, seed))
    cut = int(len(order) * train_fraction)
    halves = []
    for name, members in (("training", order[:cut]), ("test", order[cut:])):
        rows = members if data.qid is None else _rows_of(members, data.qid)
        half = Half(data.X[rows], data.y[rows], None if data.qid is None else _numbered(data.qid[rows]))
        if not _has_a_pair(half):
            if data.qid is None:
                found = f"only label {half.y[0]}" if len(rows) else "no rows"
                of = f"{len(rows)} of {data.n} rows, {data.n_pos} positive in all"
            else:
                found, of = "no query with two different labels", f"{len(members)} of {data.n_queries} queries"
            advice = "change data.split_seed or data.train_fraction"
            raise DataError(f"data: the {name} half holds {found} ({of}); {advice}")
        halves.append(half)
    return halves


def _rows_of(queries: IntArray, qid: IntArray) -> IntArray:
    """The rows of these queries, query after query, each in the order of the file."""
    by_query = np.split(np.argsort(qid, kind="stable"), np.cumsum(np.bincount(qid))[:-1])
    return np.concatenate([by_query[query] for query in queries]) if len(queries) else qid[:0]


def _numbered(qid: IntArray) -> IntArray:
    """The queries of the rows numbered from 0."""
    return np.unique(qid, return_inverse=True)[1].astype(np.int64)


def _has_a_pair(half: Half) -> bool:
    if half.qid is None:
        return len(np.unique(half.y)) > 1
    return any(len(np.unique(half.y[half.qid == query])) > 1 for query in np.unique(half.qid))


def _sha256(data: Dataset, test: Dataset | None) -> str:
    return sha256_of(*_arrays(data), *([] if test is None else _arrays(test)))


def _arrays(data: Dataset) -> list[NDArray[Any]]:
    return [data.X, data.y] if data.qid is None else [data.X, data.y, data.qid]


def _load(options: DataConfig) -> tuple[Dataset, Dataset | None]:
    """The data, and the test part where it is given apart."""
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
