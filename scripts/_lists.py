"""The lists that the benchmarks of the exact engine rerank.

A list is the top K of the training set of split 0 of a data set by logistic regression (C = 1e4 on standardised
features). Its features are standardised again, without constant ones; DCG, margin 1e-4, C = 0.
"""

from __future__ import annotations

import numpy as np

from ltr.data import DataError, half_split, load
from ltr.exact import RerankProblem
from ltr.rankers import LogisticRegressionRanker
from scripts._bench import FloatArray

QUERIES, LONGEST = "lightgbm_lambdarank", "full"
TINY = RerankProblem([[0.0, 1.0], [1.0, 0.5], [2.0, 3.0]], [0, 1, 0])  # to load a method with


def name_of(data: str, top: str) -> str:
    """Return the name of a list in tables and plots."""
    if data == QUERIES:
        return f"{data}, {top} queries"
    return f"{data}, {'full list' if top == LONGEST else f'top {top}'}"


def problem_of(data: str, top: str) -> RerankProblem:
    """Return the problem of a list, with DCG or the mean NDCG of the queries as its statistic.

    Args:
        data: a name of `ltr.data.dataset_names`.
        top: the length K, ``"full"`` for the training set; for `QUERIES` the number of queries.

    Raises:
        DataError: missing data, a length beyond that of the training set, or a list of one class.
    """
    found = load(data)
    if data == QUERIES:
        rows = found.qid < int(top)
        return RerankProblem(_standardised(found.X[rows]), found.y[rows], qid=found.qid[rows], normalize=True)
    rows = half_split(found.n, 0)[0]
    X, y = found.X[rows], found.y[rows]
    if top != LONGEST:
        if len(y) < int(top):
            raise DataError(f"{data}: the training set has {len(y)} rows, got a top of {top}")
        scores = LogisticRegressionRanker().fit(X, y).decision_function(X)
        first = np.argsort(-scores, kind="stable")[: int(top)]
        X, y = X[first], y[first]
    if y.min() == y.max():
        raise DataError(f"{data}: the top {top} rows are all of one class")
    return RerankProblem(_standardised(X), y)


def _standardised(X: FloatArray) -> FloatArray:
    varying = X[:, np.ptp(X, axis=0) > 0]
    return np.asarray((varying - varying.mean(axis=0)) / varying.std(axis=0))
