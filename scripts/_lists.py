"""The lists that the benchmarks of the exact engine rerank.

A *case* is a data set and a length K: the top K of the training set of split 0 by logistic regression (C = 1e4 on
standardised features). The list's features are standardised again, without constant ones; DCG, margin 1e-4, C = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError, half_split, load
from ltr.exact import RerankProblem
from ltr.rankers import LogisticRegressionRanker

FloatArray = NDArray[np.float64]

QUERIES = "lightgbm_lambdarank"
LONGEST = "full"
TINY = RerankProblem([[0.0, 1.0], [1.0, 0.5], [2.0, 3.0]], [0, 1, 0])  # to load a method with


@dataclass(frozen=True)
class Case:
    """A list to rerank.

    Attributes:
        data: a name of `ltr.data.dataset_names`, or ``lightgbm_lambdarank`` (graded labels in queries).
        top: the length K, ``"full"`` for the training set; for ``lightgbm_lambdarank`` the number of queries.
    """

    data: str
    top: str

    @property
    def name(self) -> str:
        """The name in tables and plots."""
        if self.data == QUERIES:
            return f"{self.data}, {self.top} queries"
        return f"{self.data}, {'full list' if self.top == LONGEST else f'top {self.top}'}"

    def problem(self) -> RerankProblem:
        """Return the problem of this list, with DCG or the mean NDCG of the queries as its statistic.

        Raises:
            DataError: missing data, a length beyond that of the training set, or a list of one class.
        """
        if self.data != QUERIES:
            X, y = _top(self.data, self.top)
            return RerankProblem(_standardised(X), y)
        data = load(QUERIES)
        rows = data.qid < int(self.top)
        return RerankProblem(_standardised(data.X[rows]), data.y[rows], qid=data.qid[rows], normalize=True)


HIGH_DIMENSION = (
    *(Case(data, top) for data in ("glow500", "nhanes", "polypharm") for top in ("50", "100")),
    Case(QUERIES, "5"),
    Case(QUERIES, "20"),
)


def standard_cases() -> list[Case]:
    """Return four data sets at four lengths, and the full list of the Gaussians."""
    datasets = ("travel", "uis", "pima", "haberman")
    return [*cases(datasets, ("50", "100", "150", LONGEST)), Case("gaussians", LONGEST)]


def cases(datasets: Sequence[str], lengths: Sequence[str]) -> list[Case]:
    """Return every data set at every length that its training set has."""
    rows = {data: len(_training_set(data)[1]) for data in datasets}
    return [Case(data, top) for data in datasets for top in lengths if top == LONGEST or int(top) < rows[data]]


def _training_set(name: str) -> tuple[FloatArray, NDArray[np.int64]]:
    data = load(name)
    rows = half_split(data.n, 0)[0]
    return data.X[rows], data.y[rows]


def _top(name: str, top: str) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the list's raw features and its labels."""
    X, y = _training_set(name)
    if top != LONGEST:
        scores = LogisticRegressionRanker().fit(X, y).decision_function(X)
        rows = np.argsort(-scores, kind="stable")[: int(top)]
        if len(rows) < int(top):
            raise DataError(f"{name}: the training set has {len(rows)} rows, got a top of {top}")
        X, y = X[rows], y[rows]
    if y.min() == y.max():
        raise DataError(f"{name}: the top {top} rows are all of one class")
    return X, y


def _standardised(X: FloatArray) -> FloatArray:
    varying = X[:, np.ptp(X, axis=0) > 0]
    return np.asarray((varying - varying.mean(axis=0)) / varying.std(axis=0))
