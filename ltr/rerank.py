"""Two stages: a base ranker for the whole list, the exact reranker for its top.

*One list.* Training: the base ranker f_0 is fitted, the threshold is the K-th largest training score, and the exact
stage finds the linear weights with the largest rank statistic on the training items at or above the threshold.
Prediction: items at or above the threshold are ordered by the exact stage and stand on top of the others, which keep
the order of f_0.

*Lists by query*, given by `qid`. Training: f_0 is fitted on all lists, each list is cut at its own K-th score, and the
exact stage finds the one set of linear weights with the largest sum of the statistic over the tops of the lists,
comparing items of one query only. Prediction: a query's items at or above its own K-th score are ordered by the exact
stage and stand on top of its others. There is no threshold that holds for all queries, so the score of an item depends
on the others of its query.

In both cases all items whose base score ties with the K-th are reranked.

*Graded labels*, whole numbers from 0 up, are taken with `qid`, and in one list where there are more than two different
ones. Their worth is ``2^label - 1`` or the label itself, see `gain`.

Source: Rudin & Wang (2018), section 2.1.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ltr.base_rankers import BaseRanker, load_base_ranker, make_base_ranker
from ltr.base_rankers.logistic import linear_scores
from ltr.checks import as_numbers, as_sequence, check_callable, is_whole
from ltr.data.dataset import checked_features, checked_labels, checked_queries, is_graded
from ltr.exact.largest_margin import NormName, maximise_margin
from ltr.exact.limits import Limits
from ltr.exact.problem import (
    LinearConstraints,
    RankName,
    RerankProblem,
    check_constraints,
    check_price_and_margin,
    check_rank,
)
from ltr.exact.solution import Progress, Solution
from ltr.exact.solve import Solver, check_method, solve
from ltr.fitted import NamedFeatures, all_or_nothing, feature_names, split_names
from ltr.ranks import GainName
from ltr.statistics import RankStatistic
from ltr.top_lists import TopLists, cut

__all__ = ["TwoStageRanker"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class TwoStageRanker(NamedFeatures):
    """A base ranker whose top K items are reranked exactly.

    Args:
        base: ``"logistic"``, ``"rankboost"``, the name of a loss (a linear surrogate), or a base ranker object.
        statistic: the rank statistic to maximise on the top K. Of graded labels and queries ``auc`` is refused: the
            rank sums that it counts there are ``wrs``.
        top_k: how many training items to rerank, of each query where there are queries; None takes the full list,
            and so does a K of the list's length or more.
        C: price of each non-zero weight.
        margin: score difference that counts, on standardised features.
        rank: ``"resolved"`` or ``"subrank"``, how the exact stage ranks ties.
        gain: worth of graded labels, ``"exp2"`` for 2^label - 1 or ``"linear"``; of 0 and 1 both are the same.
        method: solver method of `ltr.exact.solve`, by name or as an object.
        time_limit: seconds for the exact stage.
        gap: relative gap at which the exact stage may stop.
        node_limit: branch-and-bound nodes at which it stops.
        memory_limit: megabytes at which it stops.
        recentre: ``"l2"`` or ``"max"`` moves the weights found to where they win their comparisons by the largest
            margin of that norm (`ltr.exact.largest_margin`); the objective never falls. None leaves them.
        seed: seed of the base ranker (when given by name) and of the exact stage.

    Attributes:
        base_: the fitted base ranker.
        threshold_: base score from which items are reranked; None after a fit on queries, which have each their own.
        weights_: the exact stage's weights on the raw features, float64 of shape (d,), recentred if so asked; None
            when the exact stage had nothing to order (a single class at the top), or knows no weights that satisfy the
            side constraints: the order is then the base ranker's.
        solution_: the `Solution` of the exact stage, its weights as the solver found them, on the list's standardised
            varying features; None where it had nothing to order, and after `load`.
        problem_: the `RerankProblem` that was solved;
            None likewise.
        note_: what happened beyond the usual, empty when nothing did.
        feature_names_in_: the names of the columns that `fit` got, where it got a frame.

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
        >>> qid = np.repeat([7, 8, 9], 20)  # three queries of 20 items, of which the top 5 are reranked
        >>> grouped = TwoStageRanker("ranknet", top_k=5, time_limit=5.0).fit(X, rng.integers(0, 5, 60), qid)
        >>> np.bincount(qid, weights=grouped.reranked(X, qid))[7:].tolist()
        [5.0, 5.0, 5.0]
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
        gain: GainName = "exp2",
        method: str | Solver = "auto",
        time_limit: float = 60.0,
        gap: float = 0.0,
        node_limit: int | None = None,
        memory_limit: float | None = None,
        recentre: NormName | None = None,
        seed: int = 0,
    ) -> None:
        if not isinstance(base, str) and (missing := _METHODS_OF_A_BASE - set(dir(base))):
            raise ValueError(f"base must be a name or a base ranker, got {base!r} without {', '.join(sorted(missing))}")
        if top_k is not None and (not is_whole(top_k) or top_k < 2):
            raise ValueError(f"top_k must be an integer >= 2 or None for the full list, got {top_k!r}")
        if recentre not in (None, *get_args(NormName)):
            raise ValueError(f"recentre must be 'l2', 'max' or None, got {recentre!r}")
        if gain not in get_args(GainName):
            raise ValueError(f"gain must be 'exp2' or 'linear', got {gain!r}")
        check_price_and_margin(C, margin)
        check_rank(rank)
        check_method(method)
        Limits(time_limit, gap, node_limit, memory_limit, seed)
        self.base = base
        self.statistic = RankStatistic.parse(statistic)
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
        self.seed = seed

    @all_or_nothing("base")
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        base_is_fitted: bool = False,
        warm_starts: Iterable[ArrayLike] = (),
        constraints: LinearConstraints | None = None,
        on_progress: Progress | None = None,
    ) -> TwoStageRanker:
        """Fit the base ranker, cut at K and rerank.

        A fit that raises leaves this ranker and its base as they were before.

        Args:
            X: observations, (n, d), finite.
            y: labels 0 and 1, (n,), both present, or graded ones.
            qid: the query of each row, integers or texts, (n,), in any order; None means that all rows are one list.
            base_is_fitted: take the base ranker object as it is.
            warm_starts: weights on the raw features to start the exact stage from, beside the base ranker's own.
            constraints: side constraints ``A w <= b`` on the weights of the standardised features.
            on_progress: called with each `TracePoint` of the exact stage.

        Raises:
            ValueError: an argument against its rule; a base ranker that gives all rows of each list the same score,
                although `top_k` asks for the top of its order.
        """
        check_callable("on_progress", on_progress)
        starts = [as_numbers("warm_starts", w) for w in as_sequence("warm_starts", warm_starts, "weights")]
        names = feature_names(X)
        features, labels, queries = _checked(X, y, qid)
        if constraints is not None:
            check_constraints(constraints, features.shape[1])
        graded = is_graded(labels, queries)
        if graded:
            self.statistic.check_sum()
        if isinstance(self.base, str):
            if base_is_fitted:
                raise ValueError(f"base_is_fitted goes with a ranker object, got base={self.base!r}")
            self.base_: BaseRanker = make_base_ranker(self.base, seed=self.seed)
        else:
            self.base_ = self.base
        if not base_is_fitted:
            self.base_.fit(features, labels, **({} if queries is None else {"qid": queries}))
            if isinstance(self.base_, NamedFeatures):
                self.base_._remember_names(names)
        elif isinstance(self.base_, NamedFeatures):
            self.base_._check_names(X)
        self._remember_names(names)
        scores = _scores_of(self.base_, features)
        if self.top_k is not None:
            _check_order(scores, queries, self.base_)
        cuts = cut(scores, queries, self.top_k)
        self.n_features_ = features.shape[1]
        self.threshold_: float | None = float(cuts[0]) if queries is None else None
        chosen = scores >= cuts
        self._rerank(
            features[chosen],
            labels[chosen],
            None if queries is None else queries[chosen],
            graded,
            starts,
            constraints,
            on_progress,
        )
        return self

    def decision_function(self, X: ArrayLike, qid: ArrayLike | None = None) -> FloatArray:
        """Scores (n,) whose order within each list is the spliced one: reranked items above all others.

        Items below the threshold have their base score; the exact score s of the others enters as ``threshold + 2 + s``
        for s >= 0 and ``threshold + 1 + 1 / (1 - s)`` below: increasing, and above the threshold. Scores that differ by
        less than rounding at that size come out equal.

        After a fit on one list, a row's score depends on no other row. After a fit on queries the threshold is the K-th
        largest base score of the row's query, and scores of different queries are not comparable.

        Args:
            X: observations, (n, d), finite.
            qid: the query of each row, as for `fit`; None means that all rows are of one query.

        Raises:
            ValueError: other columns than in the fit, a `qid` after a fit without.
        """
        features, scores, cuts, queries = self._first_stage(X, qid)
        if self.weights_ is None:
            return scores
        chosen = scores >= cuts
        exact = linear_scores(features - self.center_, self.weights_)
        if self.threshold_ is None:
            exact -= _mean_of_chosen(exact, chosen, queries)
        lift = np.where(np.isneginf(cuts), 0.0, cuts)
        above = np.where(exact >= 0, 2.0 + exact, 1.0 + 1.0 / (1.0 - np.minimum(exact, 0.0)))
        return np.where(chosen, lift + above, scores)

    def predict(self, X: ArrayLike, qid: ArrayLike | None = None) -> FloatArray:
        """The scores of `decision_function`, as rankers in scikit-learn's style return them."""
        return self.decision_function(X, qid)

    def order(self, X: ArrayLike, qid: ArrayLike | None = None) -> IntArray:
        """Indices of the rows from the top of the list to its bottom; equal scores by index.

        With `qid` one list after the other, in the order in which the queries first appear.
        """
        scores = self.decision_function(X, qid)
        if qid is None:
            return np.argsort(-scores, kind="stable")
        return np.lexsort((-scores, checked_queries(qid, len(scores))[0]))

    def reranked(self, X: ArrayLike, qid: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Whether each row is at or above the threshold (of its query) and so ordered by the exact stage."""
        _, scores, cuts, _ = self._first_stage(X, qid)
        return scores >= cuts

    def _first_stage(
        self, X: ArrayLike, qid: ArrayLike | None
    ) -> tuple[FloatArray, FloatArray, FloatArray, IntArray | None]:
        """Features, base scores, the score from which each row is reranked, and the number of its query."""
        base = self._fitted_base
        self._check_names(X)
        features = as_numbers("X", X)
        if features.ndim != 2 or features.shape[1] != self.n_features_:
            raise ValueError(f"X must have {self.n_features_} columns, got shape {features.shape}")
        scores = _scores_of(base, features)
        if self.threshold_ is not None:
            if qid is not None:
                raise ValueError("qid must be None: the ranker was fitted on one list, fit(X, y, qid) takes queries")
            return features, scores, np.full(len(scores), self.threshold_), None
        queries = None if qid is None else checked_queries(qid, len(features))[0]
        return features, scores, cut(scores, queries, self.top_k), queries

    @property
    def _fitted_base(self) -> BaseRanker:
        if not hasattr(self, "weights_"):
            raise ValueError("TwoStageRanker is not fitted: call fit first")
        return self.base_

    def recentred(self, norm: NormName = "l2") -> TwoStageRanker:
        """This ranker with its weights moved to the largest margin of a norm, as a fit with `recentre` ends.

        The solver does not run again, and this ranker stays as it is. Where the exact stage had nothing to order, so it
        has here.

        Args:
            norm: ``"l2"`` or ``"max"``.

        Raises:
            ValueError: an unknown norm, a ranker that is not fitted, or was read from a file without its problem.
        """
        if norm not in get_args(NormName):
            raise ValueError(f"norm must be 'l2' or 'max', got {norm!r}")
        if not hasattr(self, "weights_"):
            raise ValueError("recentred goes with a ranker that was fitted: call fit first")
        moved = copy.copy(self)
        moved.recentre = norm
        if self.weights_ is None:
            return moved
        problem, lists = self.problem_, self._lists
        if problem is None or lists is None or self.solution_ is None:
            raise ValueError("recentred goes with a ranker that was fitted here: files do not hold its problem")
        moved.note_ = ""
        moved.weights_ = lists.raw(moved._best_on_list(problem, self.solution_))
        return moved

    def save(self, path: str | Path) -> None:
        """Write the fitted ranker to one file that `load` reads without running code from it.

        A `method` that is no name is left out: it matters to fits only.
        """
        options = {name: getattr(self, name) for name in _PLAIN_OPTIONS}
        if not isinstance(self.method, str):
            del options["method"]
        state = {
            "options": {"statistic": str(self.statistic), **options},
            "base": self._fitted_base.to_state(),
            "n_features": self.n_features_,
            "threshold": self.threshold_,
            "weights": None if self.weights_ is None else torch.from_numpy(self.weights_.copy()),
            "center": torch.from_numpy(self.center_.copy()),
            "note": self.note_,
            **self._names_state(),
        }
        torch.save(_plain(state), Path(path))

    @classmethod
    def load(cls, path: str | Path) -> TwoStageRanker:
        """Read a ranker that `save` wrote; the problem and the solver's trace are not part of the file.

        Raises:
            FileNotFoundError: no such file.
            ValueError: a file that `save` did not write.
        """
        try:
            state: Mapping[str, Any] = torch.load(Path(path), weights_only=True)
        except OSError:
            raise
        except Exception as error:  # of any type: torch takes the bytes of other files for instructions
            raise ValueError(f"{path}: not a file that TwoStageRanker.save wrote") from error
        if not isinstance(state, dict) or not state.keys() >= _STATE:
            raise ValueError(f"{path}: not a file that TwoStageRanker.save wrote")
        base = load_base_ranker(state["base"])
        ranker = cls(base, **state["options"])
        ranker.base_ = base
        ranker.n_features_ = state["n_features"]
        ranker.threshold_ = state["threshold"]
        ranker.weights_ = None if state["weights"] is None else state["weights"].numpy()
        ranker.center_ = state["center"].numpy()
        ranker.note_ = state["note"]
        ranker.solution_ = ranker.problem_ = ranker._lists = None
        ranker.warm_starts_ = []
        ranker._remember_names(split_names(state)[1])
        return ranker

    def _rerank(
        self,
        top: FloatArray,
        labels: IntArray,
        queries: IntArray | None,
        graded: bool,
        warm_starts: Iterable[FloatArray],
        constraints: LinearConstraints | None,
        on_progress: Progress | None,
    ) -> None:
        """Solve the exact stage on the items at or above the threshold of their list."""
        self._lists: TopLists | None = (lists := TopLists.of(top, queries))
        self.center_ = lists.center
        self.note_ = ""
        self.weights_: FloatArray | None = None
        self.solution_: Solution | None = None
        self.problem_: RerankProblem | None = None
        self.warm_starts_: list[FloatArray] = []
        if (missing := _nothing_to_order(lists, labels, queries)) is not None:
            self.note_ = f"{missing}: the base ranker's order stands"
            return
        sides = _on_columns(constraints, lists.varying)
        self.problem_ = RerankProblem(
            lists.Z,
            labels,
            self.statistic,
            self.C,
            self.margin,
            qid=queries,
            gain=self.gain,
            rank=self.rank,
            constraints=sides,
        )
        starts = list(warm_starts)
        if self.base_.linear_weights is not None:
            starts.insert(0, self.base_.linear_weights)
        for start in starts:
            if start.shape != (top.shape[1],):
                raise ValueError(f"warm_starts: weights must have shape ({top.shape[1]},), got {start.shape}")
            if not np.isfinite(start).all():
                raise ValueError(f"warm_starts: weights must be finite, got {start.tolist()}")
        # brought to the largest size in the box
        self.warm_starts_ = [lists.standardised(w) for w in starts]
        self.solution_ = solve(
            self.problem_,
            self.method,
            Limits(
                time_limit=self.time_limit,
                gap=self.gap,
                seed=self.seed,
                node_limit=self.node_limit,
                memory_limit=self.memory_limit,
            ),
            warm_starts=self.warm_starts_,
            on_progress=on_progress,
        )
        if self.solution_.value == -math.inf:
            self.note_ = "no weights are known to satisfy the side constraints: the base ranker's order stands"
            return
        self.weights_ = lists.raw(self._best_on_list(self.problem_, self.solution_))

    def _best_on_list(self, problem: RerankProblem, solution: Solution) -> FloatArray:
        """The solution's weights, recentred if so asked, or others that order the list better below the margin.

        The problem counts a pair within the margin as lost, a list of scores does not: only there can a warm start
        with a smaller objective, or the solution before it was recentred, be the better order.
        """
        own = solution.weights
        if self.recentre is not None:
            own = maximise_margin(problem, own, norm=self.recentre)
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


_METHODS_OF_A_BASE = frozenset({"fit", "decision_function", "linear_weights"})
_STATE = frozenset({"options", "base", "n_features", "threshold", "weights", "center", "note"})
_PLAIN_OPTIONS = (
    "top_k",
    "C",
    "margin",
    "rank",
    "gain",
    "method",
    "time_limit",
    "gap",
    "node_limit",
    "memory_limit",
    "recentre",
    "seed",
)


def _plain(value: Any) -> Any:  # noqa: ANN401 (a tree of any leaves)
    """The tree with Python's numbers for NumPy's, which a file that holds no code cannot hold."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _checked(X: ArrayLike, y: ArrayLike, qid: ArrayLike | None) -> tuple[FloatArray, IntArray, IntArray | None]:
    features = np.array(checked_features(X))
    queries = None if qid is None else checked_queries(qid, len(features))[0]
    return features, checked_labels(y, len(features), graded=is_graded(y, qid)), queries


def _scores_of(base: BaseRanker, features: FloatArray) -> FloatArray:
    """The base ranker's scores of an array whose columns were compared with those of the fit before."""
    return base._scores(features) if isinstance(base, NamedFeatures) else base.decision_function(features)


def _check_order(scores: FloatArray, queries: IntArray | None, base: Any) -> None:  # noqa: ANN401 (of any class)
    """Refuse a base ranker that orders nothing: with all scores tied every row would be at the top."""
    lists = np.zeros(len(scores), dtype=np.int64) if queries is None else queries
    order = np.lexsort((scores, lists))
    same_list = lists[order][1:] == lists[order][:-1]
    if not np.any(same_list & (scores[order][1:] != scores[order][:-1])):
        of = "" if queries is None else " of each query"
        raise ValueError(
            f"base must order the rows, but {type(getattr(base, 'estimator', base)).__name__} gives all rows{of} the "
            "same score, so that all of them would be at the top: it has learnt nothing from these features. Take "
            "another base or other options of it, or rerank full lists, which needs no order (top_k=None, in a config "
            '"full")'
        )


def _nothing_to_order(lists: TopLists, labels: IntArray, queries: IntArray | None) -> str | None:
    """Why there is nothing to order at the top, None where there is."""
    if queries is None:
        top, hold, differ = f"the top {len(labels)}", "hold a single class", "do not differ in any feature"
    else:
        top, hold, differ = "the tops of the queries", "hold a single label each", "do not differ in any feature each"
    lowest = labels.min() if queries is None else _least(labels, queries)[queries]
    if np.all(labels == lowest):
        return f"{top} {hold}"
    return None if lists.varying.any() else f"{top} {differ}"


def _least(labels: IntArray, queries: IntArray) -> IntArray:
    """The smallest label of each query."""
    least = np.full(queries.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, queries, labels)
    return least


def _mean_of_chosen(values: FloatArray, chosen: NDArray[np.bool_], queries: IntArray | None) -> FloatArray | float:
    """For each row, the mean over the chosen rows of its query; every query has one."""
    if queries is None:
        return float(values[chosen].mean()) if chosen.any() else 0.0
    totals = np.bincount(queries, weights=values * chosen)
    return (totals / np.bincount(queries, weights=chosen))[queries]


def _on_columns(constraints: LinearConstraints | None, columns: NDArray[np.bool_]) -> LinearConstraints | None:
    """The constraints on the columns kept: the weights of the others are 0."""
    if constraints is None:
        return None
    return LinearConstraints(constraints.A[:, columns], constraints.b)


def _without_margin(problem: RerankProblem) -> RerankProblem:
    """The same problem with a margin just wide enough to keep rounding from breaking ties."""
    return dataclasses.replace(problem, margin=min(problem.margin, 1e-9), constraints=None)
