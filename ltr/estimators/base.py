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
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ltr.data.dataset import checked_queries
from ltr.metrics import normalized_rank_statistic, rank_statistic
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

__all__ = ["Ranker"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Ranker(BaseEstimator):
    """A scikit-learn estimator that gives every row a score; larger scores stand higher in the list.

    It is neither a classifier nor a regressor: labels may be graded, scores are on no scale, and ``predict`` returns
    them. Subclasses have ``fit``, ``decision_function`` and the parameters ``statistic`` and ``gain``.
    """

    statistic: RankStatistic | str
    gain: GainName
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

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The mean of the statistic over the lists for which it is defined; larger is better.

        Of tied items the one with the lower label counts as standing above, as in `ltr.metrics`.

        Args:
            X: features, (n, d).
            y: labels, (n,).
            qid: the list of each row, integers or texts, (n,), in any order; None means that all rows are one list.
            sample_weight: weight of each row, (n,), >= 0: a list weighs in the mean what its rows do on average.

        Returns:
            NaN where no list defines it, as ``"auc"`` without positives.
        """
        scores = self._scores_of_lists(X, qid)
        labels, groups = _labels_and_lists(y, qid, len(scores))
        lists = np.zeros(len(scores), dtype=np.int64) if groups is None else groups
        measure = normalized_rank_statistic if self.normalize else rank_statistic
        values = measure(
            torch.from_numpy(scores),
            torch.from_numpy(labels),
            self.statistic,
            gain=self.gain,
            qid=torch.from_numpy(lists),
        ).numpy()
        weights = _weights_of_lists(sample_weight, lists)
        defined = ~np.isnan(values) & (weights > 0)
        return float(np.average(values[defined], weights=weights[defined])) if defined.any() else math.nan

    def _scores_of_lists(self, X: ArrayLike, qid: ArrayLike | None) -> FloatArray:
        return self.decision_function(X)

    def _training_data(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None
    ) -> tuple[FloatArray, FloatArray, IntArray | None]:
        """Features, labels and the number of each row's list; names and number of the features are recorded."""
        features, labels = validate_data(self, X, y, dtype=np.float64, order="C", ensure_min_samples=2)
        # torch has no tensors on memory that may not be written
        return np.require(features, requirements="W"), *_labels_and_lists(labels, qid, len(features))

    def _features(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return np.require(validate_data(self, X, dtype=np.float64, order="C", reset=False), requirements="W")

    def _check_measure(self) -> None:
        """Check what `score` goes by, so that a mistake shows before the fit."""
        RankStatistic.parse(self.statistic)
        if self.gain not in get_args(GainName):
            raise ValueError(f"gain must be 'exp2' or 'linear', got {self.gain!r}")
        if not isinstance(self._option("normalize"), bool):
            raise ValueError(f"normalize must be true or false, got {self.normalize!r}")

    def _option(self, name: str) -> Any:  # noqa: ANN401 (a parameter of any type)
        """A parameter, numpy's scalars as Python's: grids of parameters are full of them."""
        value = getattr(self, name)
        return value.item() if isinstance(value, np.generic) else value

    def _number(self, name: str) -> float:
        """A parameter that must be a number; its range is the business of what takes it."""
        value = self._option(name)
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{name} must be a number, got {value!r}")
        return value  # type: ignore[return-value]

    def _seed(self) -> int:
        """The parameter `random_state` as a seed: an integer itself, else a number drawn from what it stands for."""
        value = self._option("random_state")
        if isinstance(value, int):
            return value
        try:
            return int(check_random_state(value).randint(2**31 - 1))
        except ValueError:
            raise ValueError(f"random_state must be an integer, a RandomState or None, got {value!r}") from None


def _labels_and_lists(y: ArrayLike, qid: ArrayLike | None, n: int) -> tuple[FloatArray, IntArray | None]:
    """Labels as finite float64 >= 0 and the number of each row's list, both (n,).

    Raises:
        ValueError: labels or ids against their rule, or another number of them than n.
    """
    given = column_or_1d(y, warn=True)
    try:
        labels = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold numbers >= 0, got an array of {given.dtype}") from None
    if labels.shape != (n,):
        raise ValueError(f"y must have one label a row of X ({n}), got shape {labels.shape}")
    wrong = ~(np.isfinite(labels) & (labels >= 0))
    if wrong.any():
        raise ValueError(f"y must hold finite labels >= 0, 0 and 1 or graded, got {labels[wrong][0]:g}")
    return labels, None if qid is None else checked_queries(qid, n)[0]


def _weights_of_lists(sample_weight: ArrayLike | None, lists: IntArray) -> FloatArray:
    """The mean weight of the rows of each list."""
    weights = np.ones(len(lists)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != lists.shape:
        raise ValueError(f"sample_weight must have one weight a row of X ({len(lists)}), got shape {weights.shape}")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        raise ValueError(f"sample_weight must hold finite weights >= 0, got {weights[wrong][0]:g}")
    return np.bincount(lists, weights) / np.bincount(lists)
