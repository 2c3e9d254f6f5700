"""The estimator of the two stages: any base ranker, and the exact engine for the top of its lists."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import has_fit_parameter

from ltr.estimators.base import FloatArray, IntArray, Ranker
from ltr.estimators.exact import limits_of, solver_of
from ltr.exact.largest_margin import NormName
from ltr.exact.problem import RankName
from ltr.exact.solve import Solver
from ltr.fitted import all_or_nothing
from ltr.ranks import GainName
from ltr.rerank import TwoStageRanker
from ltr.statistics import RankStatistic

__all__ = ["ExactReranker"]


class ExactReranker(Ranker):
    """A base ranker for the whole list, and the exact reranker for its top: `ltr.TwoStageRanker` as an estimator.

    With a `qid` each list is cut at its own K-th score, in `fit` and in prediction, so that prediction takes the `qid`
    as well.

    Args:
        base: ``"logistic"``, ``"rankboost"``, the name of a loss (a linear surrogate), or an estimator: the base ranker
            is a clone of it, and ranks by ``decision_function``, ``predict_proba`` (of the last class) or ``predict``,
            whichever it has first. It learns from the `qid` if its ``fit``, or that of the last step of a pipeline,
            takes one; where metadata routing is enabled, if it requests one. One whose ``fit`` takes a ``group``, as
            the rankers of LightGBM and XGBoost do, gets the rows list by list and the sizes of the lists.
        statistic: what to maximise on the tops, and what `score` reports of whole lists: a `RankStatistic` or its name.
        top_k: items of each list to rerank; of a list of no more items, or where it is None, all of them.
        C: price of each non-zero weight, >= 0.
        margin: score difference that counts, on standardised features, > 0.
        rank: ``"resolved"`` or ``"subrank"``, how the exact stage ranks ties.
        gain: what a graded label is worth, ``"exp2"`` for 2^label - 1 or ``"linear"``.
        method: as for `ExactRanker`.
        time_limit: seconds for the exact stage.
        gap: relative gap at which the exact stage may stop.
        node_limit: branch-and-bound nodes at which it stops.
        memory_limit: megabytes at which it stops.
        recentre: as for `ExactRanker`.
        random_state: seed of the base ranker (when given by name) and of the exact stage; an integer, a
            ``RandomState``, or None for a fresh one at each fit.

    Attributes:
        base_: the fitted base ranker.
        coef_: the exact stage's weights on the raw features, (d,); None when it had nothing to order.
        solution_: the `Solution` of the exact stage, None when it had nothing to order.
        ranker_: the fitted `TwoStageRanker`, with the threshold, notes and (but in copies and pickles) the problem.
        n_features_in_: number of features.
        feature_names_in_: their names, where X had any.

    Raises:
        ValueError: in `fit`, a parameter or data against its rule.

    Examples:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X, y = X[:, :3], 1 - y  # malignant is positive
        >>> ranker = ExactReranker(LogisticRegression(), top_k=150).fit(X, y)
        >>> ranker.solution_.status.value, ranker.base_, int(ranker.ranker_.reranked(X).sum())
        ('optimal', LogisticRegression(), 150)
    """

    def __init__(
        self,
        base: Any = "ranknet",  # noqa: ANN401 (a name or any estimator)
        statistic: RankStatistic | str = "dcg",
        top_k: int | None = 50,
        *,
        C: float = 0.0,
        margin: float = 1e-4,
        rank: RankName = "resolved",
        gain: GainName = "exp2",
        method: str | Solver = "reproducible",
        time_limit: float = 60.0,
        gap: float = 0.0,
        node_limit: int | None = None,
        memory_limit: float | None = None,
        recentre: NormName | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.base = base
        self.statistic = statistic
        self.top_k = top_k
        self.C = C
        self.margin = margin
        self.rank = rank
        self.gain = gain
        self.method = method
        self.time_limit = time_limit
        self.gap = gap
        self.node_limit = node_limit
        self.memory_limit = memory_limit
        self.recentre = recentre
        self.random_state = random_state

    @all_or_nothing()
    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> ExactReranker:
        """Fit the base ranker, cut the lists at K and rerank.

        Args:
            X: features, (n, d), finite.
            y: labels, (n,), whole numbers: 0 and 1, or graded. Of two different labels in one list, the larger one is
                the positive class.
            qid: the list of each row, (n,), integers or texts, in any order; None means that all rows are one list.
        """
        self._check_measure()
        stage: Any = self.base if isinstance(self.base, str) else _Stage(self, qid)
        ranker = TwoStageRanker(
            stage,
            self.statistic,
            self._option("top_k"),
            C=self._number("C"),
            margin=self._number("margin"),
            rank=self.rank,
            gain=self.gain,
            method=solver_of(self.method),
            recentre=self.recentre,
            seed=self._seed(),
            **limits_of(self),
        )
        features, labels, groups = self._training_data(X, y, qid)
        if groups is None and len(np.unique(labels)) == 2:
            labels = (labels == labels.max()).astype(np.float64)
        self.ranker_ = ranker.fit(features, labels, groups)
        self.base_ = stage.estimator if isinstance(stage, _Stage) else ranker.base_
        self.coef_, self.solution_ = ranker.weights_, ranker.solution_
        return self

    def decision_function(self, X: ArrayLike, qid: ArrayLike | None = None) -> FloatArray:
        """Scores (n,) whose order within each list is the spliced one: reranked items above all others.

        Args:
            X: features, (n, d).
            qid: the list of each row after a fit with `qid`; None means that all rows are one list.

        Raises:
            ValueError: a `qid` after a fit without one.
        """
        features = self._features(X)
        return self.ranker_.decision_function(features, qid)

    def predict(self, X: ArrayLike, qid: ArrayLike | None = None) -> FloatArray:
        """The scores of `decision_function`, as rankers in scikit-learn's style return them.

        Args:
            X: features, (n, d).
            qid: as for `decision_function`.
        """
        return self.decision_function(X, qid)

    def get_metadata_routing(self) -> MetadataRequest | MetadataRouter:
        """Who takes a `qid`: this estimator, and in `fit` its base."""
        if not _routes(self.base):
            return super().get_metadata_routing()
        fitting = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add_self_request(self).add(base=self.base, method_mapping=fitting)

    def __getstate__(self) -> dict[str, Any]:
        # the training data does not belong in a copy of the model
        state = dict(super().__getstate__())
        if "ranker_" in state:
            state["ranker_"] = copy.copy(self.ranker_)
            state["ranker_"].problem_ = state["ranker_"]._lists = None
        return state

    def _scores_of_lists(self, X: ArrayLike, qid: ArrayLike | None) -> FloatArray:
        features = self._features(X)
        # after a fit on one list the scores hold for any list
        return self.ranker_.decision_function(features, None if self.ranker_.threshold_ is not None else qid)


class _Stage:
    """An estimator as the first stage of a `TwoStageRanker`.

    It learns from lists in one of two ways: ``fit(X, y, qid=...)``, or ``fit(X, y, group=...)`` with the rows of each
    list together and the sizes of the lists in their order. An estimator that knows ``group`` cannot do without.
    """

    def __init__(self, owner: ExactReranker, qid: ArrayLike | None) -> None:
        if not hasattr(owner.base, "fit"):
            raise ValueError(f"base must be a name or an estimator, got {owner.base!r}")
        self.estimator = clone(owner.base)
        last, self._prefix = self.estimator, ""
        while isinstance(last, Pipeline):
            name, last = last.steps[-1]
            self._prefix += f"{name}__"
        self._takes_group, takes_qid = (has_fit_parameter(last, name) for name in ("group", "qid"))
        self._learns_from_lists = self._takes_group or takes_qid
        if _routes(owner.base) and sklearn.get_config()["enable_metadata_routing"]:
            self._prefix = ""  # pipelines pass on what their steps request
            requested = "qid" in process_routing(owner, "fit", qid=qid).base.fit
            self._learns_from_lists = requested or (self._takes_group and not takes_qid)

    def fit(self, X: FloatArray, y: IntArray, qid: IntArray | None = None) -> None:
        lists = qid if self._learns_from_lists else None
        if self._takes_group:
            lists = np.zeros(len(y), dtype=np.int64) if lists is None else lists
            order = np.argsort(lists, kind="stable")
            sizes = np.unique(lists, return_counts=True)[1]
            self.estimator.fit(X[order], y[order], **{f"{self._prefix}group": sizes})
        else:
            self.estimator.fit(X, y, **({} if lists is None else {f"{self._prefix}qid": lists}))

    def decision_function(self, X: FloatArray) -> FloatArray:
        if hasattr(self.estimator, "decision_function"):
            scores = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        elif hasattr(self.estimator, "predict_proba"):
            scores = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
            scores = scores[:, 1] if scores.shape[1:] == (2,) else scores
        else:
            scores = np.asarray(self.estimator.predict(X), dtype=np.float64)
        if scores.shape != (len(X),):
            raise ValueError(
                f"base must give one score a row, got shape {scores.shape}: of graded labels take a regressor or ranker"
            )
        return scores

    @property
    def linear_weights(self) -> FloatArray | None:
        weights = getattr(self.estimator, "linear_weights", getattr(self.estimator, "coef_", None))
        return None if weights is None or not isinstance(weights, np.ndarray) else weights.astype(np.float64).ravel()

    def to_state(self) -> dict[str, Any]:
        raise TypeError("a ranker on a scikit-learn estimator cannot be saved by itself: pickle the ExactReranker")


def _routes(base: Any) -> bool:  # noqa: ANN401 (a name or any estimator)
    return hasattr(base, "get_metadata_routing")
