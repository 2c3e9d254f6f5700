"""Two stages: a base ranker for the whole list, the exact reranker for its top.

Training: the base ranker f_0 is fitted, the threshold is the K-th largest training score, and the exact stage finds
the linear weights with the largest rank statistic on the training items at or above the threshold (more than K
when scores tie there). Prediction: items at or above the threshold are ordered by the exact stage and stand on top
of the others, which keep the order of f_0.

Source: Rudin & Wang (2018), section 2.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ltr.base_rankers import BaseRanker, load_base_ranker, make_base_ranker
from ltr.exact.problem import LinearConstraints, RankName, RerankProblem
from ltr.exact.recentre import NormName
from ltr.exact.recentre import recentre as recentred
from ltr.exact.solution import Progress, Solution
from ltr.exact.solve import solve
from ltr.statistics import RankStatistic

__all__ = ["TwoStageRanker"]

FloatArray = NDArray[np.float64]


class TwoStageRanker:
    """A base ranker whose top K items are reranked exactly.

    Args:
        base: ``"logistic"``, ``"rankboost"``, the name of a loss (a linear surrogate), or a base ranker object.
        statistic: the rank statistic to maximise on the top K.
        top_k: how many training items to rerank; None takes the full list.
        C: price of each non-zero weight.
        margin: score difference that counts, on standardised features.
        rank: ``"resolved"`` or ``"subrank"``, how the exact stage ranks ties.
        method: solver method of `ltr.exact.solve`.
        time_limit: seconds for the exact stage.
        gap: relative gap at which the exact stage may stop.
        node_limit: branch-and-bound nodes at which it stops.
        memory_limit: megabytes at which it stops.
        recentre: ``"l2"`` or ``"max"`` moves the weights found to where they win their comparisons by the largest
            margin of that norm (`ltr.exact.recentre`); the objective never falls. None leaves them.
        seed: seed of the base ranker (when given by name) and of the exact stage.

    Attributes:
        base_: the fitted base ranker.
        threshold_: base score from which items are reranked.
        weights_: the exact stage's weights on the raw features, float64 of shape (d,), recentred if so asked; None
            when the exact stage had nothing to order (a single class at the top).
        solution_: the `Solution` of the exact stage, its weights as the solver found them, on the list's standardised
            varying features.
        problem_: the `RerankProblem` that was solved.
        note_: what happened beyond the usual, empty when nothing did.

    Raises:
        ValueError: an argument against its rule; from `fit`, data against its rule.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(60, 2)), np.r_[np.ones(20, int), np.zeros(40, int)]
        >>> X[:20, 0] += 1.0
        >>> ranker = TwoStageRanker(top_k=20, time_limit=5.0).fit(X, y)
        >>> bool(ranker.solution_.value >= ranker.problem_.evaluate(ranker.warm_starts_[0]))
        True
        >>> int(ranker.reranked(X).sum())
        20
    """

    def __init__(
        self,
        base: str | BaseRanker = "logistic",
        statistic: RankStatistic | str = "dcg",
        top_k: int | None = 50,
        *,
        C: float = 0.0,
        margin: float = 1e-4,
        rank: RankName = "resolved",
        method: str = "auto",
        time_limit: float = 60.0,
        gap: float = 0.0,
        node_limit: int | None = None,
        memory_limit: float | None = None,
        recentre: NormName | None = None,
        seed: int = 0,
    ) -> None:
        if top_k is not None and (isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 2):
            raise ValueError(f"top_k must be an integer >= 2 or None for the full list, got {top_k!r}")
        if recentre not in (None, *get_args(NormName)):
            raise ValueError(f"recentre must be 'l2', 'max' or None, got {recentre!r}")
        self.base = base
        self.statistic = RankStatistic.parse(statistic)
        self.top_k = top_k
        self.C = C
        self.margin = margin
        self.rank = rank
        self.method = method
        self.time_limit = time_limit
        self.gap = gap
        self.node_limit = node_limit
        self.memory_limit = memory_limit
        self.recentre = recentre
        self.seed = seed

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        base_is_fitted: bool = False,
        warm_starts: Iterable[ArrayLike] = (),
        constraints: LinearConstraints | None = None,
        on_progress: Progress | None = None,
    ) -> TwoStageRanker:
        """Fit the base ranker, cut at K and rerank.

        Args:
            X: observations, (n, d), finite.
            y: labels 0 and 1, (n,), both present.
            base_is_fitted: take the base ranker object as it is.
            warm_starts: weights on the raw features to start the exact stage from, beside the base ranker's own.
            constraints: side constraints ``A w <= b`` on the weights of the standardised features.
            on_progress: called with each `TracePoint` of the exact stage.
        """
        features, labels = _checked(X, y)
        if isinstance(self.base, str):
            if base_is_fitted:
                raise ValueError(f"base_is_fitted goes with a ranker object, got base={self.base!r}")
            self.base_: BaseRanker = make_base_ranker(self.base, seed=self.seed)
        else:
            self.base_ = self.base
        if not base_is_fitted:
            self.base_.fit(features, labels)
        scores = self.base_.decision_function(features)
        self.n_features_ = features.shape[1]
        self.threshold_ = _threshold(scores, self.top_k)
        self._rerank(features, labels, scores, warm_starts, constraints, on_progress)
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores (n,) whose order is the spliced list: reranked items above all others.

        A row's score depends on no other row. Items below the threshold have their base score; the exact score s of
        the others enters as ``threshold + 2 + s`` for s >= 0 and ``threshold + 1 + 1 / (1 - s)`` below: increasing, and
        above the threshold. Scores that differ by less than rounding at that size come out equal.
        """
        features = self._features(X)
        scores = self.base_.decision_function(features)
        if self.weights_ is None:
            return scores
        exact = (features - self.center_) @ self.weights_
        lift = 0.0 if math.isinf(self.threshold_) else self.threshold_
        above = np.where(exact >= 0, 2.0 + exact, 1.0 + 1.0 / (1.0 - np.minimum(exact, 0.0)))
        return np.where(scores >= self.threshold_, lift + above, scores)

    def predict(self, X: ArrayLike) -> FloatArray:
        """The scores of `decision_function`, as rankers in scikit-learn's style return them."""
        return self.decision_function(X)

    def order(self, X: ArrayLike) -> NDArray[np.int64]:
        """Indices of the rows from the top of the list to its bottom; equal scores by index."""
        return np.argsort(-self.decision_function(X), kind="stable")

    def reranked(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Whether each row is at or above the threshold and so ordered by the exact stage."""
        return self.base_.decision_function(self._features(X)) >= self.threshold_

    def save(self, path: str | Path) -> None:
        """Write the fitted ranker to one file that `load` reads without running code from it."""
        state = {
            "options": {
                "statistic": str(self.statistic),
                **{name: getattr(self, name) for name in _PLAIN_OPTIONS},
            },
            "base": self.base_.to_state(),
            "n_features": self.n_features_,
            "threshold": self.threshold_,
            "weights": None if self.weights_ is None else torch.from_numpy(self.weights_.copy()),
            "center": torch.from_numpy(self.center_.copy()),
            "note": self.note_,
        }
        torch.save(state, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> TwoStageRanker:
        """Read a ranker that `save` wrote; the problem and the solver's trace are not part of the file.

        Raises:
            FileNotFoundError: no such file.
        """
        state: Mapping[str, Any] = torch.load(Path(path), weights_only=True)
        base = load_base_ranker(state["base"])
        ranker = cls(base, **state["options"])
        ranker.base_ = base
        ranker.n_features_ = state["n_features"]
        ranker.threshold_ = state["threshold"]
        ranker.weights_ = None if state["weights"] is None else state["weights"].numpy()
        ranker.center_ = state["center"].numpy()
        ranker.note_ = state["note"]
        return ranker

    def _rerank(
        self,
        features: FloatArray,
        labels: NDArray[np.int64],
        scores: FloatArray,
        warm_starts: Iterable[ArrayLike],
        constraints: LinearConstraints | None,
        on_progress: Progress | None,
    ) -> None:
        """Solve the exact stage on the items at or above the threshold."""
        chosen = scores >= self.threshold_
        top, top_labels = features[chosen], labels[chosen]
        self.center_ = top.mean(axis=0)
        self.note_ = ""
        self.weights_: FloatArray | None = None
        self.solution_: Solution | None = None
        self.problem_: RerankProblem | None = None
        self.warm_starts_: list[FloatArray] = []
        if top_labels.min() == top_labels.max():
            self.note_ = f"the top {chosen.sum()} hold a single class: the base ranker's order stands"
            return
        deviation = _deviation(top - self.center_)
        varying = deviation > 1e-12 * np.max(np.abs(top), axis=0)  # more than the rounding of a constant column
        if not varying.any():
            self.note_ = f"the top {chosen.sum()} do not differ in any feature: the base ranker's order stands"
            return
        scale = np.where(varying, deviation, 1.0)
        self.problem_ = RerankProblem(
            ((top - self.center_) / scale)[:, varying],
            top_labels,
            self.statistic,
            self.C,
            self.margin,
            rank=self.rank,
            constraints=_on_columns(constraints, varying),
        )
        starts = [np.asarray(w, dtype=np.float64) for w in warm_starts]
        if self.base_.linear_weights is not None:
            starts.insert(0, self.base_.linear_weights)
        for start in starts:
            if start.shape != (features.shape[1],):
                raise ValueError(f"warm_starts: weights must have shape ({features.shape[1]},), got {start.shape}")
        # standardised weights are the raw ones times the scale, brought to the largest size in the box
        self.warm_starts_ = [_unit(w[varying] * scale[varying]) for w in starts]
        self.solution_ = solve(
            self.problem_,
            self.method,
            time_limit=self.time_limit,
            gap=self.gap,
            seed=self.seed,
            node_limit=self.node_limit,
            memory_limit=self.memory_limit,
            warm_starts=self.warm_starts_,
            on_progress=on_progress,
        )
        weights = self._best_on_list(self.problem_, self.solution_)
        self.weights_ = np.zeros(features.shape[1])
        self.weights_[varying] = weights / scale[varying]

    def _best_on_list(self, problem: RerankProblem, solution: Solution) -> FloatArray:
        """The solution's weights, recentred if so asked, or others that order the list better below the margin.

        The problem counts a pair within the margin as lost, a list of scores does not: only there can a warm start
        with a smaller objective, or the solution before it was recentred, be the better order.
        """
        own = solution.weights
        if self.recentre is not None:
            own = recentred(problem, own, norm=self.recentre)
        candidates = [own, solution.weights, *(w for w in self.warm_starts_ if problem.feasible(w))]
        plain = _without_margin(problem)
        values = [plain.evaluate(w) for w in candidates]
        best = int(np.argmax(values))
        if values[best] <= values[0] + 1e-12:
            return own
        kept = "the solution before it was recentred" if best == 1 else "a warm start"
        self.note_ = (
            f"{kept} orders the list better ({values[best]:.6g} against {values[0]:.6g}) by differences below "
            f"the margin of {self.margin:g} and is kept; the solution's value and bound hold for that margin"
        )
        return candidates[best]

    def _features(self, X: ArrayLike) -> FloatArray:
        features = np.asarray(X, dtype=np.float64)
        if features.ndim != 2 or features.shape[1] != self.n_features_:
            raise ValueError(f"X must have {self.n_features_} columns, got shape {features.shape}")
        return features


_PLAIN_OPTIONS = (
    *("top_k", "C", "margin", "rank", "method", "time_limit", "gap", "node_limit", "memory_limit", "recentre", "seed"),
)


def _checked(X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, NDArray[np.int64]]:
    problem = RerankProblem(X, y)  # its rules are ours: finite features, labels 0 and 1, both present
    return problem.X.copy(), problem.y.copy()  # writable, as base rankers may expect of arrays


def _threshold(scores: FloatArray, top_k: int | None) -> float:
    if top_k is None or top_k >= len(scores):
        return -math.inf
    return float(np.sort(scores)[-top_k])


def _deviation(centered: FloatArray) -> FloatArray:
    """The standard deviation of centred columns, whatever their units: squares of 1e-200 would be 0."""
    reach = np.max(np.abs(centered), axis=0)
    unit = np.where(reach > 0, reach, 1.0)
    return np.asarray(np.sqrt(np.mean((centered / unit) ** 2, axis=0)) * unit)


def _unit(weights: FloatArray) -> FloatArray:
    largest = float(np.max(np.abs(weights), initial=0.0))
    return weights / largest if largest > 0 else weights


def _on_columns(constraints: LinearConstraints | None, columns: NDArray[np.bool_]) -> LinearConstraints | None:
    """The constraints on the columns kept: the weights of the others are 0."""
    if constraints is None:
        return None
    return LinearConstraints(constraints.A[:, columns], constraints.b)


def _without_margin(problem: RerankProblem) -> RerankProblem:
    """The same problem with a margin just wide enough to keep rounding from breaking ties."""
    margin = min(problem.margin, 1e-9)
    return RerankProblem(problem.X, problem.y, problem.statistic, problem.C, margin, rank=problem.rank)
