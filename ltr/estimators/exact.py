"""The estimator of the exact engine: the linear ranker with the largest rank statistic, without a first stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from ltr.base_rankers.logistic import linear_scores
from ltr.estimators.base import FloatArray, IntArray, Ranker
from ltr.exact import Problem, RerankProblem, Solution, solve
from ltr.exact.largest_margin import NormName, maximise_margin
from ltr.exact.limits import Limits
from ltr.exact.local_search import search_locally
from ltr.exact.problem import RankName
from ltr.exact.solve import Solver
from ltr.exact.state import Ending, SolveState
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.fitted import all_or_nothing
from ltr.ranks import GainName
from ltr.statistics import RankStatistic
from ltr.top_lists import TopLists

__all__ = ["ExactRanker", "ReproducibleSearch", "solver_of"]


@dataclass(frozen=True)
class ReproducibleSearch:
    """The weight-space search on one thread, with a local search of fixed length before it.

    Where the time limit is far, problem and seed alone decide the answer: not the number of processors, not what else
    they do. With a `node_limit` and ``time_limit=math.inf`` that holds for every problem.

    Attributes:
        restarts: ascents of the local search at most.
        pairs: compared by all of them together, about: long lists get fewer ascents.
    """

    restarts: int = 100
    pairs: int = 100_000

    def check(self, problem: Problem) -> None:
        """Every problem will do."""

    def prepare(self) -> None:
        """Compile the search, or load what was compiled before."""
        WeightSpaceSearch().prepare()

    def run(self, state: SolveState) -> Ending:
        """Search."""
        pairs = max(1, state.problem.pair_count)
        search_locally(state, state.remaining / 2, min(self.restarts, self.pairs // pairs))
        return WeightSpaceSearch(threads=1, local_search=0.0).run(state)


class ExactRanker(Ranker):
    """The linear ranker with the largest true rank statistic of the training lists, and a bound that proves it.

    ``max over w in [-1, 1]^d of  statistic(Z w, y) - C ||w||_0``, Z the standardised features: `ltr.exact.solve` as a
    scikit-learn estimator, the whole list at once. Work grows steeply with the number of features: up to about eight
    are proven on short lists, beyond that the weights are good and the bound stays above them.

    With several lists the statistic is their sum, with `normalize` the mean of their normalised statistics, and for
    ``"auc"`` the mean of their AUCs.

    Args:
        statistic: what to maximise, and what `score` reports: a `RankStatistic` or its name.
        C: price of each non-zero weight, >= 0.
        margin: score difference that counts, on standardised features, > 0.
        rank: ``"resolved"`` or ``"subrank"``, how ties are ranked in `fit`.
        gain: what a graded label is worth, ``"exp2"`` for 2^label - 1 or ``"linear"``.
        normalize: whether to divide the statistic of each list by that of its ideal order (NDCG, for ``"dcg"``).
        max_nonzeros: most weights that may differ from 0; None for no limit.
        method: ``"reproducible"`` (`ReproducibleSearch`), or a method of `ltr.exact.solve`, of which ``"auto"`` uses
            all processors.
        time_limit: seconds for a fit.
        gap: relative gap at which it may stop.
        node_limit: branch-and-bound nodes at which it stops.
        memory_limit: megabytes at which it stops.
        recentre: ``"l2"`` or ``"max"`` moves the weights to the largest margin for what they win
            (`ltr.exact.largest_margin`); None leaves them.
        random_state: seed of the search; an integer, a ``RandomState``, or None for a fresh one at each fit.

    Attributes:
        coef_: weights on the raw features, (d,), 0 for features that do not vary.
        intercept_: the score of a row of zeros.
        solution_: the `Solution`, on the standardised features that vary: value, bound, gap, status.
        problem_: the problem that was solved, None in copies and pickles: it holds the training data. Of several lists
            with ``"auc"``, its values are mean AUCs but for a constant.
        n_features_in_: number of features.
        feature_names_in_: their names, where X had any.

    Raises:
        ValueError: in `fit`, a parameter or data against its rule.

    Examples:
        >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [1.0, 3.0]], [1, 0, 1, 0]
        >>> ranker = ExactRanker("mrr", C=0.01).fit(X, y)
        >>> ranker.solution_.status.value, ranker.score(X, y)
        ('optimal', 1.25)
    """

    def __init__(
        self,
        statistic: RankStatistic | str = "dcg",
        *,
        C: float = 0.0,
        margin: float = 1e-4,
        rank: RankName = "resolved",
        gain: GainName = "exp2",
        normalize: bool = False,
        max_nonzeros: int | None = None,
        method: str | Solver = "reproducible",
        time_limit: float = 60.0,
        gap: float = 0.0,
        node_limit: int | None = None,
        memory_limit: float | None = None,
        recentre: NormName | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.statistic = statistic
        self.C = C
        self.margin = margin
        self.rank = rank
        self.gain = gain
        self.normalize = normalize
        self.max_nonzeros = max_nonzeros
        self.method = method
        self.time_limit = time_limit
        self.gap = gap
        self.node_limit = node_limit
        self.memory_limit = memory_limit
        self.recentre = recentre
        self.random_state = random_state

    @all_or_nothing()
    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> ExactRanker:
        """Find the weights.

        Args:
            X: features, (n, d), finite, one of which varies.
            y: labels, (n,), 0 and 1 or graded.
            qid: the list of each row, (n,), integers or texts, in any order; None means that all rows are one list.
        """
        self._check_measure()
        check_norm(self.recentre)
        limits = limits_of(self)
        features, labels, groups = self._training_data(X, y, qid)
        lists = TopLists.of(features, groups)
        if not lists.varying.any():
            raise ValueError("X must have a feature that varies in some list, got constant columns only")
        self.problem_: Problem | None = self._problem(lists.Z, labels, groups)
        self.solution_: Solution = solve(self.problem_, solver_of(self.method), Limits(**limits, seed=self._seed()))
        weights = self.solution_.weights
        if self.recentre is not None:
            weights = maximise_margin(self.problem_, weights, norm=self.recentre)
        self.coef_ = lists.raw(weights)
        self._center = lists.center
        self.intercept_ = -float(self.coef_ @ self._center)
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the rows of X, float64 of shape (n,): ``X @ coef_ + intercept_``, equal for equal rows.

        Args:
            X: features, (n, d).
        """
        features = self._features(X)
        return linear_scores(features - self._center, self.coef_)

    def __getstate__(self) -> dict[str, Any]:
        # the training data does not belong in a copy of the model
        return {**super().__getstate__(), **({"problem_": None} if hasattr(self, "problem_") else {})}

    def _problem(self, Z: FloatArray, labels: FloatArray, groups: IntArray | None) -> Problem:
        statistic = RankStatistic.parse(self.statistic)
        options: dict[str, Any] = {"C": self._number("C"), "margin": self._number("margin"), "rank": self.rank}
        if self.max_nonzeros is not None:
            options["max_nonzeros"] = min(self._number("max_nonzeros"), Z.shape[1])
        lists = np.zeros(len(labels), dtype=np.int64) if groups is None else groups
        if np.unique(np.stack([lists, labels]), axis=1).shape[1] == lists.max() + 1:
            raise ValueError("y must hold two different labels in some list, got none such")
        binary = bool(np.isin(labels, (0, 1)).all())
        statistic.check_labels(graded=not binary)
        if statistic.kind.share_of_pairs and groups is not None:
            # AUC is the rank sum by the number of pairs, less a constant
            return RerankProblem(Z, _shares_of_pairs(labels, groups), "wrs", qid=groups, gain="linear", **options)
        options |= {"gain": self.gain, "normalise": self.normalize and not statistic.kind.share_of_pairs}
        return RerankProblem(Z, labels, statistic, qid=groups, **options)


def limits_of(estimator: Ranker) -> dict[str, Any]:
    """The limits of an estimator's exact stage, as `solve` takes them."""
    limits = {name: estimator._number(name) for name in ("time_limit", "gap")}
    return limits | {
        name: None if getattr(estimator, name) is None else estimator._number(name)
        for name in ("node_limit", "memory_limit")
    }


def solver_of(method: str | Solver) -> str | Solver:
    """The solver that the parameter `method` of an estimator names."""
    return ReproducibleSearch() if isinstance(method, str) and method == "reproducible" else method


def check_norm(recentre: NormName | None) -> None:
    """Check the parameter `recentre`, before it is needed at the end of a fit."""
    if recentre not in (None, *get_args(NormName)):
        raise ValueError(f"recentre must be 'l2', 'max' or None, got {recentre!r}")


def _shares_of_pairs(labels: FloatArray, groups: IntArray) -> FloatArray:
    """For each positive, 1 over the number of pairs in its list and of the lists with a pair."""
    positives = np.bincount(groups, labels)
    pairs = positives * (np.bincount(groups) - positives)
    return np.where(pairs[groups] > 0, labels / np.maximum(pairs[groups], 1) / np.count_nonzero(pairs), 0.0)
