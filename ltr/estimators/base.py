"""What all estimators share: checked inputs, scores as predictions, the mean statistic as ``score``."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from ltr.metrics import normalized_rank_statistic, rank_statistic
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

__all__ = ["Ranker", "query_numbers", "relevance"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Ranker(BaseEstimator):
    """A scikit-learn estimator that gives every row a score; larger scores stand higher in the list.

    It is neither a classifier nor a regressor: labels may be graded, scores are on no scale, and ``predict`` returns
    them. Subclasses have ``fit``, ``decision_function`` and the parameter ``statistic``; where labels may be graded,
    ``gain`` and ``normalize`` say how it takes them.
    """

    statistic: RankStatistic | str
    gain: GainName = "linear"
    normalize: bool = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the rows of X, float64 of shape (n,)."""
        raise NotImplementedError

    def predict(self, X: ArrayLike) -> FloatArray:
        """The scores of `decision_function`, as rankers in scikit-learn's style return them.

        Args:
            X: features, (n, d).
        """
        return self.decision_function(X)

    def score(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """The mean of the statistic over the lists for which it is defined; larger is better.

        Ties count as `ltr.metrics` counts them by default: a tied item of a lower label stands above.

        Args:
            X: features, (n, d).
            y: labels, (n,).
            qid: the list of each row, (n,), numbers or strings; None means that all rows are one list.

        Returns:
            NaN where no list defines it, as ``"auc"`` without positives.
        """
        scores, labels, groups = self._scored(X, y, qid)
        measure = normalized_rank_statistic if self.normalize else rank_statistic
        values = measure(
            torch.from_numpy(scores),
            torch.from_numpy(labels),
            self.statistic,
            gain=self.gain,
            qid=None if groups is None else torch.from_numpy(groups),
        )
        return float(values.nanmean())

    def _scored(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None
    ) -> tuple[FloatArray, FloatArray, IntArray | None]:
        scores = self.decision_function(X)
        labels = relevance(y)
        check_consistent_length(scores, labels)
        return scores, labels, query_numbers(qid, len(scores))

    def _training_data(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None
    ) -> tuple[FloatArray, NDArray[Any], IntArray | None]:
        """Features, labels as given and the number of each row's list; records names and number of the features."""
        features, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        return features, labels, query_numbers(qid, len(features))

    def _features(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _check_measure(self) -> None:
        """Check what `score` is told, so that a mistake shows before the fit."""
        RankStatistic.parse(self.statistic)
        if self.gain not in get_args(GainName):
            raise ValueError(f"gain must be 'linear' or 'exp2', got {self.gain!r}")
        if not isinstance(self._option("normalize"), bool):
            raise ValueError(f"normalize must be true or false, got {self.normalize!r}")

    def _option(self, name: str) -> Any:  # noqa: ANN401 (a parameter of any type)
        """A parameter with numpy's scalars as Python's, as grids of parameters hold them."""
        value = getattr(self, name)
        return value.item() if isinstance(value, np.generic) else value

    def _number(self, name: str) -> float:
        """A parameter that must be a number; its range is the business of what takes it."""
        value = self._option(name)
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{name} must be a number, got {value!r}")
        return value

    def _seed(self) -> int:
        """The parameter `random_state` as a seed: an integer itself, else a number drawn from what it stands for."""
        value = self._option("random_state")
        return value if isinstance(value, int) else int(check_random_state(value).randint(2**31 - 1))


def relevance(y: ArrayLike) -> FloatArray:
    """Labels as finite float64 >= 0, (n,).

    Raises:
        ValueError: anything else.
    """
    labels = column_or_1d(y, warn=True)
    try:
        labels = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold numbers >= 0, got an array of {labels.dtype}") from None
    wrong = ~(np.isfinite(labels) & (labels >= 0))
    if wrong.any():
        raise ValueError(f"y must hold finite labels >= 0, 0 and 1 or graded, got {labels[wrong][0]:g}")
    return labels


def query_numbers(qid: ArrayLike | None, n: int) -> IntArray | None:
    """The lists of n rows numbered 0, 1, ... in the order of their ids; None for None.

    Raises:
        ValueError: another number of ids, ids that are missing or cannot be compared.

    Examples:
        >>> query_numbers(["b", "a", "b"], 3).tolist()
        [1, 0, 1]
    """
    if qid is None:
        return None
    ids = column_or_1d(qid)
    if ids.shape != (n,):
        raise ValueError(f"qid must have one id a row of X ({n}), got shape {ids.shape}")
    if any(i is None or (isinstance(i, float) and math.isnan(i)) for i in ids.tolist()):
        raise ValueError("qid must have an id for every row, got a missing one")
    try:
        return np.unique(ids, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise ValueError("qid must hold ids of one type, numbers or strings, got a mixture") from None
