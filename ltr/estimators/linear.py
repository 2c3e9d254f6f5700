"""The estimator of the convex surrogates: a linear ranker that minimises a ranking loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ltr.base_rankers.surrogate import SurrogateRanker
from ltr.estimators.base import FloatArray, Ranker
from ltr.fitted import all_or_nothing
from ltr.fitting import DeviceName
from ltr.losses.contract import RankingLoss
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

__all__ = ["LinearRanker"]


class LinearRanker(Ranker):
    """A linear ranker trained on a surrogate loss, by L-BFGS on standardised features.

    ``min over w  loss(Z w, y) + (l2/2) ||w||²``, Z the standardised features: `ltr.base_rankers.SurrogateRanker` as a
    scikit-learn estimator. Its fit is deterministic. One that ends before it has converged warns with
    ``ConvergenceWarning``, as most fits of losses that are not convex do (``"lambda"``).

    Args:
        loss: a loss of `ltr.losses` or its name, such as ``"ranknet"``, ``"p_norm_push(p=4)"`` or
            ``"mymodule:MyLoss"``.
        l2: price of squared weights, >= 0.
        max_steps: iterations of L-BFGS at most.
        tolerance: relative accuracy of the objective at which the fit has converged, > 0.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        statistic: what `score` reports, a `RankStatistic` or its name.
        gain: what a graded label is worth in `score`, ``"exp2"`` for 2^label - 1 or ``"linear"``.
        normalize: whether `score` divides by the value of the ideal order (NDCG, for ``"dcg"``).

    Attributes:
        coef_: weights on the raw features, (d,).
        intercept_: the score of a row of zeros.
        n_iter_: steps done.
        ranker_: the fitted `SurrogateRanker`.
        n_features_in_: number of features.
        feature_names_in_: their names, where X had any.

    Raises:
        ValueError: in `fit`, a parameter or data against its rule.

    Examples:
        >>> X, y, qid = [[0.0], [2.0], [1.0], [5.0], [4.0]], [0, 2, 1, 1, 0], ["a", "a", "a", "b", "b"]
        >>> ranker = LinearRanker("hinge", normalize=True).fit(X, y, qid=qid)
        >>> ranker.score(X, y, qid=qid)
        1.0
    """

    def __init__(
        self,
        loss: str | RankingLoss = "ranknet",
        *,
        l2: float = 1e-4,
        max_steps: int = 1000,
        tolerance: float = 1e-8,
        device: DeviceName = "cpu",
        statistic: RankStatistic | str = "dcg",
        gain: GainName = "exp2",
        normalize: bool = False,
    ) -> None:
        self.loss = loss
        self.l2 = l2
        self.max_steps = max_steps
        self.tolerance = tolerance
        self.device = device
        self.statistic = statistic
        self.gain = gain
        self.normalize = normalize

    @all_or_nothing()
    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> LinearRanker:
        """Learn from observations and labels.

        Args:
            X: features, (n, d), finite.
            y: labels, (n,), 0 and 1 or graded, at least two different ones in some list.
            qid: the list of each row, (n,), integers or texts, in any order; None means that all rows are one list.
        """
        ranker = SurrogateRanker(
            self.loss,
            l2=self._number("l2"),
            max_steps=self._option("max_steps"),
            tolerance=self._number("tolerance"),
            device=self.device,
        )
        self._check_measure()
        features, labels, groups = self._training_data(X, y, qid)
        self.ranker_ = ranker.fit(features, labels, qid=groups)
        self.coef_ = ranker.linear_weights
        self.intercept_ = float(ranker.decision_function(np.zeros((1, features.shape[1])))[0])
        self.n_iter_ = ranker.steps_
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the rows of X, float64 of shape (n,): ``X @ coef_ + intercept_``, equal for equal rows.

        Args:
            X: features, (n, d).
        """
        features = self._features(X)
        return self.ranker_.decision_function(features)
