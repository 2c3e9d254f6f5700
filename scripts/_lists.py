"""The lists that the benchmarks of the exact engine rerank.

A *case* is a data set and a length K: the training half of split 0, its top K by logistic regression (C = 1e4 on
standardised features), the list's features standardised again and constant ones left out, DCG, margin 1e-4, C = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError, half_split, load
from ltr.exact import RerankProblem
from ltr.rankers import LogisticRegressionRanker, make_ranker

FloatArray = NDArray[np.float64]

NUMERIC = "uis_numeric_ivhx"
QUERIES = "lightgbm_lambdarank"
LONGEST = "full"

SURROGATES = ("ranknet", "hinge", "exponential", "logistic", "p_norm_push(p=2)")
TINY = RerankProblem([[0.0, 1.0], [1.0, 0.5], [2.0, 3.0]], [0, 1, 0])  # to compile with
_STANDARD = ("travel", "uis", NUMERIC, "pima", "haberman")
_LENGTHS = ("50", "100", "150", LONGEST)


@dataclass(frozen=True)
class Case:
    """One list.

    Attributes:
        data: a name of `ltr.data.dataset_names`, ``uis_numeric_ivhx`` (IVHX as the number it has in the file, not as
            two dummies) or ``lightgbm_lambdarank`` (graded labels in queries).
        top: the length K, ``"full"`` for the training half; of ``lightgbm_lambdarank`` the number of queries.
    """

    data: str
    top: str

    @property
    def name(self) -> str:
        """How tables and plots call it."""
        if self.data == QUERIES:
            return f"{self.data}, {self.top} queries"
        return f"{self.data}, {'full list' if self.top == LONGEST else f'top {self.top}'}"

    def problem(self) -> RerankProblem:
        """The problem of this list.

        Raises:
            DataError: data that is not there, a length beyond that of the training half, a list of one class.
        """
        if self.data == QUERIES:
            return _graded(int(self.top))
        X, y = _top(self.data, self.top)
        return RerankProblem(_standardised(X), y, "dcg", margin=1e-4)

    def surrogate_weights(self) -> list[FloatArray]:
        """Weights of the surrogates fitted to the training half, on the list's features and scaled to max |w_j| = 1."""
        X, _ = _top(self.data, self.top)
        deviation = X.std(axis=0)[np.ptp(X, axis=0) > 0]
        starts = []
        for loss in SURROGATES:
            ranker = make_ranker(loss).fit(*_training_half(self.data))
            w = np.asarray(ranker.linear_weights)[np.ptp(X, axis=0) > 0] * deviation
            starts.append(w / np.max(np.abs(w)))
        return starts


HIGH_DIMENSION = (
    *(Case(data, top) for data in ("glow500", "nhanes", "polypharm") for top in ("50", "100")),
    Case(QUERIES, "5"),
    Case(QUERIES, "20"),
)


def standard_cases() -> list[Case]:
    """Five data sets at four lengths, and the Gaussians' full list."""
    return [*cases(_STANDARD, _LENGTHS), Case("gaussians", LONGEST)]


def cases(datasets: tuple[str, ...] | list[str], lengths: tuple[str, ...] | list[str]) -> list[Case]:
    """Every data set at every length that its training half has."""
    chosen = []
    for data in datasets:
        longest = len(_training_half(data)[1])
        chosen += [Case(data, top) for top in lengths if top == LONGEST or int(top) < longest]
    return chosen


def _training_half(name: str) -> tuple[FloatArray, NDArray[np.int64]]:
    data = load("uis" if name == NUMERIC else name)
    X = data.X
    if name == NUMERIC:
        dummies = [data.feature_names.index(f"IVHX_{time}") for time in ("previous", "recent")]
        X = np.column_stack([np.delete(X, dummies, axis=1), 1 + X[:, dummies] @ [1, 2]])
    rows = half_split(data.n, 0)[0]
    return X[rows], data.y[rows]


def _top(name: str, top: str) -> tuple[FloatArray, NDArray[np.int64]]:
    """The list's features as given, and its labels."""
    X, y = _training_half(name)
    if top != LONGEST:
        scores = LogisticRegressionRanker().fit(X, y).decision_function(X)
        rows = np.argsort(-scores, kind="stable")[: int(top)]
        if len(rows) < int(top):
            raise DataError(f"{name}: the training half has {len(rows)} rows, got a top of {top}")
        X, y = X[rows], y[rows]
    if y.min() == y.max():
        raise DataError(f"{name}: the top {top} hold a single class")
    return X, y


def _graded(queries: int) -> RerankProblem:
    """Return the problem of the mean NDCG of the first queries of LightGBM's example."""
    data = load(QUERIES)
    rows = data.qid < queries
    X = _standardised(data.X[rows])
    return RerankProblem(X, data.y[rows], "dcg", qid=data.qid[rows], margin=1e-4, normalise=True)


def _standardised(X: FloatArray) -> FloatArray:
    varying = np.ptp(X, axis=0) > 0
    X = X[:, varying]
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))
