"""Logistic regression as a base ranker: the paper's first stage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import is_whole
from ltr.data.dataset import DataError, check_ranges, checked_features, checked_labels, is_graded
from ltr.fitted import NamedFeatures, feature_names, split_names

__all__ = ["LogisticRegressionRanker", "linear_scores"]

FloatArray = NDArray[np.float64]


@dataclass
class LogisticRegressionRanker(NamedFeatures):
    """Rank by the linear score of a logistic regression.

    ``min over w, b of  ||w||^2 / 2 + C sum_i log(1 + exp(-s_i (w·z_i + b)))``, s_i = +-1, z_i the standardised
    features. `C` is scikit-learn's: a large one, as by default, is next to no regularisation. (The price of the
    weights in `ltr.exact` is another C.)

    Args:
        C: inverse strength of the regularisation, > 0.
        standardize: learn mean and standard deviation of each column in `fit` and fit on the standardised columns;
            it changes what the regularisation penalises. Constant columns get the weight 0.
        max_iter: iterations of the solver (L-BFGS), >= 1.

    Attributes:
        feature_names_in_: the names of the columns that `fit` got, where it got a frame.

    Raises:
        ValueError: a field outside its range; in `fit`, data against the rules of `ltr.data.Dataset`.

    Examples:
        >>> X, y = [[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], [0, 1, 0, 1]
        >>> ranker = LogisticRegressionRanker().fit(X, y)
        >>> scores = ranker.decision_function(X)
        >>> bool(scores[3] > scores[0]), bool(ranker.linear_weights[0] > 0), float(ranker.linear_weights[1])
        (True, True, 0.0)
    """

    C: float = 1e4
    standardize: bool = True
    max_iter: int = 10_000
    _weights: FloatArray | None = field(default=None, init=False, repr=False, compare=False)
    _bias: float = field(default=0.0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.C, bool) or not isinstance(self.C, int | float | np.number) or not 0 < self.C < math.inf:
            raise ValueError(f"C must be a finite number > 0, got {self.C!r}")
        if not isinstance(self.standardize, bool):
            raise ValueError(f"standardize must be true or false, got {self.standardize!r}")
        if not is_whole(self.max_iter) or self.max_iter < 1:
            raise ValueError(f"max_iter must be an integer >= 1, got {self.max_iter!r}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's fields by name (scikit-learn's convention)."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def fit(self, X: ArrayLike, y: ArrayLike, *, qid: ArrayLike | None = None) -> LogisticRegressionRanker:
        """Learn the weights from features (n, d) and labels (n,): 0 and 1, or graded.

        The model is pointwise: with `qid`, or where there are more than two different labels, the positive class is
        label > 0, and which query a row belongs to makes no difference.
        """
        from sklearn.linear_model import LogisticRegression

        names, features = feature_names(X), checked_features(X)
        if is_graded(y, qid):
            labels = (checked_labels(y, len(features), graded=True) > 0).astype(np.int64)
            if labels.all():
                raise DataError("y: graded labels must hold a 0, the negative class, got none")
        else:
            labels = checked_labels(y, len(features))
        mean, scale = np.zeros(features.shape[1]), np.ones(features.shape[1])
        if self.standardize:
            check_ranges(features)
            mean, deviation = features.mean(axis=0), features.std(axis=0)
            # rounding leaves a tiny deviation in some constant columns, so they are told by their range
            scale = np.where(np.ptp(features, axis=0) > 0, deviation, math.inf)
        model = LogisticRegression(C=self.C, max_iter=self.max_iter, tol=1e-6)
        model.fit((features - mean) / scale, labels)
        self._weights = model.coef_[0] / scale
        self._bias = float(model.intercept_[0] - self._weights @ mean)
        self._remember_names(names)
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the rows of X, float64 of shape (n,): ``w·x + b``, equal for equal rows.

        Raises:
            ValueError: before `fit`, or with other columns.
        """
        self._check_names(X)
        return self._scores(X)

    def _scores(self, X: ArrayLike) -> FloatArray:
        return linear_scores(X, self.linear_weights) + self._bias

    @property
    def linear_weights(self) -> FloatArray:
        """The weights on the raw features, (d,)."""
        if self._weights is None:
            raise ValueError("LogisticRegressionRanker is not fitted: call fit first")
        return self._weights

    def to_state(self) -> dict[str, Any]:
        """Fields, weights and bias as plain numbers and lists, enough for `from_state`."""
        return {
            "kind": "logistic_regression",
            "C": float(self.C),
            "standardize": self.standardize,
            "max_iter": int(self.max_iter),
            "weights": self.linear_weights.tolist(),
            "bias": self._bias,
            **self._names_state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> LogisticRegressionRanker:
        """The fitted ranker that `to_state` described.

        Raises:
            ValueError: a state of another kind, or one that lacks a field or has one too many.
        """
        state, names = split_names(state)
        expected = {"kind", "C", "standardize", "max_iter", "weights", "bias"}
        if set(state) != expected or state["kind"] != "logistic_regression":
            raise ValueError(
                f"state must be of kind 'logistic_regression' and hold {sorted(expected)}, got {sorted(state)}"
            )
        ranker = cls(C=state["C"], standardize=state["standardize"], max_iter=state["max_iter"])
        ranker._weights = np.asarray(state["weights"], dtype=np.float64)
        ranker._bias = float(state["bias"])
        ranker._remember_names(names)
        return ranker


def linear_scores(X: ArrayLike, weights: FloatArray) -> FloatArray:
    """``X w`` summed column by column, (n,): equal rows get equal scores, whatever stands around them.

    A matrix product promises no such thing, and ties decide rank statistics.

    Raises:
        ValueError: X with another number of columns than weights, or not finite.

    Examples:
        >>> linear_scores([[1.0, 2.0], [3.0, 4.0]], np.array([1.0, -1.0])).tolist()
        [-1.0, -1.0]
    """
    features = checked_features(X)
    if features.shape[1] != len(weights):
        raise ValueError(f"X must have the {len(weights)} columns of the fit, got {features.shape[1]}")
    scores = np.zeros(len(features))
    for column, weight in zip(features.T, weights, strict=True):
        scores += column * weight
    return scores
