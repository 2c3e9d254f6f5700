"""Logistic regression as a ranker: the paper's first stage."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike

from ltr.checks import check_number, check_whole
from ltr.data.dataset import check_ranges
from ltr.rankers.base import FloatArray, Ranker, all_or_nothing, linear_scores
from ltr.ranks import GainName
from ltr.statistics import RankStatistic


@dataclass(eq=False, repr=False)
class LogisticRegressionRanker(Ranker):
    """Rank by the linear score of a logistic regression.

    ``min over w, b of  ||w||^2 / 2 + C sum_i log(1 + exp(-s_i (w·z_i + b)))``, s_i = +-1, z_i the standardised
    features. `C` is scikit-learn's: a large one, the default, regularises next to nothing. (The `C` of `ExactRanker`, a
    price of weights, is another one.)

    The model looks at one row at a time: rows with the lowest label are its negative class, all others its positive
    class, and the list of a row makes no difference.

    Args:
        C: inverse strength of the regularisation, > 0.
        standardize: whether `fit` divides each column by its standard deviation first, which changes what the
            regularisation penalises. Constant columns get the weight 0.
        max_iter: most iterations of the solver (L-BFGS), >= 1.
        statistic, gain, normalize: what `score` reports, see `Ranker`.

    Attributes:
        coef_: weights on the raw features, (d,).
        intercept_: score of a row of zeros.
        n_iter_: iterations done.

    Examples:
        >>> X, y = [[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], [0, 1, 0, 1]
        >>> ranker = LogisticRegressionRanker().fit(X, y)
        >>> scores = ranker.decision_function(X)
        >>> bool(scores[3] > scores[0]), bool(ranker.coef_[0] > 0), float(ranker.coef_[1])
        (True, True, 0.0)
    """

    _FITTED = ("coef_", "intercept_", "n_iter_")

    C: float = 1e4
    standardize: bool = True
    max_iter: int = 10_000
    _: KW_ONLY
    statistic: RankStatistic | str = "dcg"
    gain: GainName = "exp2"
    normalize: bool = False

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> LogisticRegressionRanker:
        """Learn the weights.

        Args:
            X: features, (n, d), finite.
            y: labels, (n,), 0 and 1 or graded.
            qid: list of each row, (n,); it is checked and makes no difference.
        """
        from sklearn.linear_model import LogisticRegression

        self._measure()
        check_number("C", self.C, above=0)
        if not isinstance(self.standardize, bool | np.bool_):
            raise ValueError(f"standardize must be true or false, got {self.standardize!r}")
        check_whole("max_iter", self.max_iter, 1)
        features, labels, _ = self._training_data(X, y, qid)
        mean, scale = np.zeros(features.shape[1]), np.ones(features.shape[1])
        if self.standardize:
            check_ranges(features)
            mean, deviation = features.mean(axis=0), features.std(axis=0)
            # rounding leaves a tiny deviation in some constant columns, their range is 0
            scale = np.where(np.ptp(features, axis=0) > 0, deviation, math.inf)
        model = LogisticRegression(C=self.C, max_iter=self.max_iter, tol=1e-6)
        model.fit((features - mean) / scale, (labels > labels.min()).astype(np.int64))
        self.coef_ = model.coef_[0] / scale
        self.intercept_ = float(model.intercept_[0] - self.coef_ @ mean)
        self.n_iter_ = int(model.n_iter_[0])
        return self

    def _scores(self, features: FloatArray) -> FloatArray:
        return linear_scores(features, self.coef_) + self.intercept_
