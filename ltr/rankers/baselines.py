"""The baselines, rankers to compare with: logistic regression, the paper's first stage, and RankBoost.

*RankBoost* for two classes minimises the exponential loss of the pairs with boosted threshold rankers. The scoring
function ``f(x) = sum over rounds t of alpha_t h_t(x)`` with weak rankers ``h_t(x) = [x_j > cut]`` lowers, round by
round, the mean over all positive-negative pairs

    L(f) = (1 / (n_pos n_neg)) sum_i sum_k exp(-(f(x_i) - f(x_k))).

**Weights.** A pair's weight is a product, ``D(i, k) = v_i u_k`` with v_i proportional to exp(-f(x_i)) over the
positives and u_k to exp(f(x_k)) over the negatives, each summing to 1. So a round costs O(n d), not n_pos n_neg.

**Weak ranker.** The one with the largest |r|, ``r = sum_{i,k} D(i,k) (h(x_i) - h(x_k)) = V - U``, where V is the share
of v, and U that of u, above the cut: cumulative sums over the cells between cuts give all of them.

**Step.** With W+ = V (1 - U), the weight of the pairs that h orders rightly, and W- = (1 - V) U, L changes by the
factor ``Z(alpha) = 1 - W+ - W- + W+ exp(-alpha) + W- exp(alpha)``. ``step="exact"`` takes its minimiser alpha = 1/2
ln(W+ / W-); ``step="bound"`` the minimiser of its bound (1-r)/2 exp(alpha) + (1+r)/2 exp(-alpha), alpha = 1/2 ln((1+r)
/ (1-r)): a shorter step, and the one for which the largest |r| is the best choice. Weights below 1 / (2 n_pos n_neg),
half a pair, count as that much, so that a perfect weak ranker gets a finite step; L never rises.

Source: Freund, Iyer, Schapire & Singer, *An efficient boosting algorithm for combining preferences* (2003), sections
3.2 and 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import ClassifierTags, Tags

from ltr.checks import check_flag, check_number, check_whole, doubles, is_whole, one_of
from ltr.data.dataset import DataError, check_ranges
from ltr.losses import LogisticLoss
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import Ranker, Scored, all_or_nothing
from ltr.rankers.constrained import fit_linear
from ltr.rankers.inputs import FloatArray, IntArray, linear_scores
from ltr.weight_constraints import Constrained, RankerKind

__all__ = ["LogisticRegressionRanker", "RankBoostRanker", "ScoreColumn"]

_STRENGTHS = (0.01, 0.1, 1.0, 10.0)
_MOST_ROWS = 10_000
# |r| at or below this is rounding, not an improvement
_NOTHING = 1e-12


@dataclass(eq=False, repr=False)
class LogisticRegressionRanker(Constrained, Scored, Ranker):
    """Rank by the linear score of a logistic regression.

    ``min over w, b of  ||w||^2 / 2 + C sum_i log(1 + exp(-s_i (w·z_i + b)))``, s_i = +-1, z_i the standardised
    features. Rows with the lowest label are the negative class, all others the positive one, whatever their lists.

    Args:
        C: inverse strength of the regularisation, > 0; ``"auto"`` takes whichever of 0.01, 0.1, 1 and 10 has the
            largest likelihood of rows held out, in five folds of at most 10,000 rows.
        standardize: whether `fit` divides each column by its standard deviation first. Constant columns get the weight
            0.
        max_iter: most iterations of the solver (L-BFGS), >= 1.
        signs, required, forbidden, constraints, max_nonzeros: as those of `ExactRanker`, on the weights of raw columns,
            see `ltr.rankers.constrained`.
        statistic, gain, normalize: what `score` reports, see `Ranker`.

    Attributes:
        coef_, intercept_: weights on the raw features, (d,), and score of a row of zeros.
        center_: mean of each column over the training rows, (d,).
        C_, n_iter_: the C of the fit, and iterations done.
    """

    _FITTED = ("coef_", "intercept_", "center_", "n_iter_")
    _HOW = "score = intercept_ + sum over columns j of coef_[j] * x[j]"

    C: float | Literal["auto"] = 1e4
    standardize: bool = True
    max_iter: int = 10_000

    @all_or_nothing
    def fit(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> LogisticRegressionRanker:
        """Learn the weights, from the arguments of `Ranker`; raise ValueError for constraints that leave none."""
        self._measure()
        if self.C != "auto":
            check_number("C", self.C, above=0)
        check_flag("standardize", self.standardize)
        check_whole("max_iter", self.max_iter, 1)
        rows = self._weighted_data(X, y, qid, sample_weight)
        features, labels, weights = rows.features, rows.labels, rows.weights
        self.center_: FloatArray = np.average(features, axis=0, weights=weights)
        mean, scale = np.zeros(features.shape[1]), np.ones(features.shape[1])
        if self.standardize:
            check_ranges(features)
            mean = self.center_
            deviation = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=weights))
            # rounding leaves a tiny deviation in some constant columns, their range is 0
            scale = np.where(np.ptp(features, axis=0) > 0, deviation, math.inf)
        positive, constraints = labels > labels.min(), self._weight_constraints()
        Z = (features - mean) / scale
        self.C_ = _strength(Z, positive.astype(np.int64), weights) if self.C == "auto" else float(self.C)
        if constraints:
            # mean loss and penalty are divided by C and the weight of all rows
            total = len(labels) if weights is None else float(weights.sum())
            fit = fit_linear(
                LogisticLoss(),
                Z,
                positive.astype(np.float64),
                constraints,
                scale,
                weights=weights,
                l2=1 / (self.C_ * total),
                bias=True,
                names=self._names,
                max_iter=self.max_iter,
            )
            self.coef_, level, self.n_iter_ = fit.weights / scale, fit.intercept, fit.steps
        else:
            from sklearn.linear_model import LogisticRegression

            model = LogisticRegression(C=self.C_, max_iter=self.max_iter, tol=1e-6)
            model.fit(Z, positive.astype(np.int64), weights)
            self.coef_, level, self.n_iter_ = model.coef_[0] / scale, model.intercept_[0], int(model.n_iter_[0])
        self.intercept_ = float(level - self.coef_ @ mean)
        return self

    def _scores(self, features: FloatArray) -> FloatArray:
        return linear_scores(features, self.coef_) + self.intercept_

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        return graph.op("Add", graph.linear(columns, self.coef_), graph.constant(self.intercept_))

    @property
    def _kind(self) -> RankerKind:
        return "linear"


def _strength(features: FloatArray, classes: IntArray, weights: FloatArray | None) -> float:
    """Return the C of `_STRENGTHS` whose fits give rows that they have not seen the largest likelihood."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold

    at = np.random.default_rng(0).permutation(len(classes))[:_MOST_ROWS]
    features, classes, weights = features[at], classes[at], None if weights is None else weights[at]
    count = min(5, int(np.bincount(classes, minlength=2).min()))
    if count < 2:
        return 1.0
    losses = np.zeros(len(_STRENGTHS))
    for train, held in StratifiedKFold(count).split(features, classes):
        of_train, of_held = (None if weights is None else weights[rows] for rows in (train, held))
        for number, C in enumerate(_STRENGTHS):
            model = LogisticRegression(C=C, max_iter=1_000).fit(features[train], classes[train], of_train)
            chances = model.predict_proba(features[held])
            losses[number] += log_loss(classes[held], chances, sample_weight=of_held) * len(held)
    return _STRENGTHS[int(np.argmin(losses))]


@dataclass(eq=False, repr=False)
class RankBoostRanker(Scored, Ranker):
    """RankBoost on thresholds of single features.

    Args:
        rounds: most weak rankers, >= 1; there are fewer when none improves the loss any more.
        thresholds: most cuts tried for each feature, >= 1: those between different values that come closest to
            splitting the training rows into equal parts. None tries every cut.
        step: ``"bound"`` or ``"exact"``, see the module; 100 rounds of the shorter one do best on test sets.
        on_round: called as ``on_round(round, loss)`` after each round 1, 2, ..., with the exponential loss of the
            training pairs. Copies, pickles and files leave it out.
        statistic, gain, normalize: what `score` reports, see `Ranker`.

    Attributes:
        features_, cuts_, alphas_: feature, cut and weight of each weak ranker, which prefers rows above the cut.
        losses_: exponential loss before round 1, which is 1, and after every round.

    Examples:
        >>> RankBoostRanker(rounds=2, step="exact").fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]).losses_.tolist()
        [1.0, 0.75, 0.5625]
    """

    _FITTED = ("features_", "cuts_", "alphas_", "losses_")
    _NOT_COPIED = ("on_round",)
    _HOW = "score = sum over t of alphas_[t] where x[features_[t]] > cuts_[t]; columns count from 0"

    rounds: int = 100
    thresholds: int | None = 255
    step: Literal["bound", "exact"] = "bound"
    _: KW_ONLY
    on_round: Callable[[int, float], None] | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)  # it learns from two different labels
        return tags

    @all_or_nothing
    def fit(
        self, X: ArrayLike, y: ArrayLike, qid: None = None, sample_weight: ArrayLike | None = None
    ) -> RankBoostRanker:
        """Boost on one list, without `qid`; a pair counts with the product of the weights of its rows."""
        self._measure()
        check_whole("rounds", self.rounds, 1)
        if self.thresholds is not None:
            check_whole("thresholds", self.thresholds, 1)
        one_of("step", self.step, ("bound", "exact"))
        if qid is not None:
            raise DataError("qid: RankBoost learns from one list with labels 0 and 1; the loss exponential takes qid")
        rows = self._weighted_data(X, y, None, sample_weight)
        features, labels = rows.features, rows.labels
        positive = labels > labels.min()
        if len(np.unique(labels)) > 2:
            raise DataError("y: RankBoost learns from the labels 0 and 1; the loss exponential takes graded ones")
        cuts = [candidate_cuts(column, self.thresholds) for column in features.T]
        # cell c of a column lies above its cuts 0..c-1, so h of cut c is [cell > c]
        cells = [np.searchsorted(at, column, side="left") for at, column in zip(cuts, features.T, strict=True)]
        own = np.ones(len(labels)) if rows.weights is None else rows.weights
        half_pair = 0.5 / float(own[positive].sum() * own[~positive].sum())
        scores = np.zeros(len(features))
        chosen: list[tuple[int, float, float]] = []
        losses = [1.0]
        for done in range(1, self.rounds + 1):
            weights = pair_weights(scores, positive, own)
            j, c, r = best_cut(cells, [len(at) for at in cuts], np.where(positive, weights, -weights))
            if abs(r) <= _NOTHING:
                break
            above = cells[j] > c
            alpha = self._alpha(r, weights[above & positive].sum(), weights[above & ~positive].sum(), half_pair)
            scores[above] += alpha
            chosen.append((j, float(cuts[j][c]), alpha))
            losses.append(_pair_loss(scores, positive, own))
            if self.on_round is not None:
                self.on_round(done, losses[-1])
        self.features_ = np.array([j for j, _, _ in chosen], dtype=np.int64)
        self.cuts_, self.alphas_ = np.array([rest for _, *rest in chosen], dtype=np.float64).reshape(-1, 2).T.copy()
        self.losses_ = np.array(losses)
        return self

    def staged_decision_function(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield the scores after each round; the last are those of `decision_function`."""
        for scores in self._stages(doubles(self._features(X))):
            yield scores.copy()

    def _alpha(self, r: float, V: float, U: float, half_pair: float) -> float:
        """Return the step of a weak ranker, by the notation of the module."""
        if self.step == "exact":
            right, wrong = V * (1 - U), (1 - V) * U
        else:
            right, wrong = (1 + r) / 2, (1 - r) / 2
        return 0.5 * math.log(max(right, half_pair) / max(wrong, half_pair))

    def _monotone(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        used, up, down = (np.full(self.n_features_in_, free) for free in (False, True, True))
        for j in np.unique(self.features_):
            at = self.features_ == j
            steps = np.bincount(np.unique(self.cuts_[at], return_inverse=True)[1], weights=self.alphas_[at])
            used[j], up[j], down[j] = True, bool((steps >= 0).all()), bool((steps <= 0).all())
        return used, up, down

    def _parts(self, features: FloatArray) -> FloatArray:
        parts = np.zeros(features.shape)
        for j, cut, alpha in zip(self.features_, self.cuts_, self.alphas_, strict=True):
            parts[features[:, j] > cut, j] += alpha
        return parts

    def _scores(self, features: FloatArray) -> FloatArray:
        return [np.zeros(len(features)), *self._stages(features)][-1]

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        if len(self.features_) == 0:
            return graph.linear(columns, np.zeros(self.n_features_in_))
        asked = graph.op("Gather", columns, graph.constant(self.features_), axis=0)
        above = graph.op("Greater", asked, graph.constant(self.cuts_[:, None]))
        return graph.linear(graph.cast(above), self.alphas_)

    def _stages(self, features: FloatArray) -> Iterator[FloatArray]:
        """Yield the scores after each round, in one array that every round changes."""
        scores = np.zeros(len(features))
        for j, cut, alpha in zip(self.features_, self.cuts_, self.alphas_, strict=True):
            scores[features[:, j] > cut] += alpha
            yield scores


@dataclass(eq=False, repr=False)
class ScoreColumn(Scored, Ranker):
    """Rank by a column of X, such as the scores of a model trained elsewhere; `index_` is its index.

    The scores of training rows should be out of fold, by models that have not seen these rows. As the base of a
    `TwoStageRanker` the column is not among the features of the exact stage.

    Args:
        column: index of the column, or its name where X is a frame with names.
        statistic, gain, normalize: what `score` reports, see `Ranker`.
    """

    _FITTED = ("index_",)
    _LEARNS = False
    _HOW = "score = x[index_]; columns count from 0"

    column: int | str = 0

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> ScoreColumn:
        """Find the column; of the arguments of `Ranker` only the columns of X matter."""
        self._measure()
        self._training_data(X, y, qid)
        self._find_column()
        return self

    def _take_names(self, other: Ranker) -> None:
        super()._take_names(other)
        self._find_column()

    def _find_column(self) -> None:
        names = getattr(self, "feature_names_in_", None)
        self.index_ = self.place(self.n_features_in_, None if names is None else names.tolist())

    def place(self, d: int, names: Sequence[str] | None = None) -> int:
        """Return the index of the column among d columns, or ValueError where it is not one of them."""
        if isinstance(self.column, str):
            if names is None or self.column not in names:
                known = f"the columns are {', '.join(map(str, names or ()))}"
                have = known if names else "X has no column names: use an index"
                raise ValueError(f"column must be the name of a column of X, got {self.column!r}; {have:.300}")
            return list(names).index(self.column)
        if not is_whole(self.column) or not 0 <= self.column < d:
            raise ValueError(f"column must be an index from 0 to {d - 1} or a column's name, got {self.column!r}")
        return int(self.column)

    def others(self, features: FloatArray, names: Sequence[str] | None = None) -> FloatArray:
        """Return the features with 0 in this column, so that it does not vary; `names` are those of the features."""
        places = self._places(names)
        others = features.copy()
        others[:, self.index_ if places is None else places[self.index_]] = 0.0
        return others

    def _scores(self, features: FloatArray) -> FloatArray:
        return features[:, self.index_].copy()

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        return graph.op("Gather", columns, graph.constant(np.array(self.index_)), axis=0)

    def _module_weights(self) -> FloatArray:
        return np.eye(1, self.n_features_in_, self.index_)[0]

    def _parts(self, features: FloatArray) -> FloatArray:
        return features - self.others(features)


def _pair_loss(scores: FloatArray, positive: NDArray[np.bool_], own: FloatArray) -> float:
    """Return the mean over positive-negative pairs, weighted by the products of weights, of ``exp(-(s_i - s_k))``."""

    def log_mean_exp(values: FloatArray, weights: FloatArray) -> float:
        top = values.max()
        return float(top + np.log(np.average(np.exp(values - top), weights=weights)))

    logarithm = log_mean_exp(-scores[positive], own[positive]) + log_mean_exp(scores[~positive], own[~positive])
    return math.exp(logarithm) if logarithm < 709 else math.inf


def pair_weights(scores: FloatArray, positive: NDArray[np.bool_], own: FloatArray) -> FloatArray:
    """Return the factors of pair weights D(i, k) = v_i u_k, v of positives, u of negatives, (n,); each sums to 1."""
    weights = np.empty(len(scores))
    for members, exponents in ((positive, -scores[positive]), (~positive, scores[~positive])):
        values = np.exp(exponents - exponents.max()) * own[members]
        weights[members] = values / values.sum()
    return weights


def candidate_cuts(column: FloatArray, limit: int | None) -> FloatArray:
    """Return cuts between neighbouring different values, ascending midpoints; at most `limit`, spread over the rows."""
    values, counts = np.unique(column, return_counts=True)
    low, high = values[:-1], values[1:]
    # the midpoint of neighbouring floats may round to the higher one, which the cut must stay below
    middle = low / 2 + high / 2
    cuts = np.where((middle >= low) & (middle < high), middle, low)
    if limit is None or len(cuts) <= limit:
        return cuts
    below = np.cumsum(counts)[:-1]
    wanted = len(column) * np.arange(1, limit + 1) / (limit + 1)
    right = np.clip(np.searchsorted(below, wanted), 1, len(below) - 1)
    nearest = np.where(wanted - below[right - 1] <= below[right] - wanted, right - 1, right)
    return cuts[np.unique(nearest)]


def best_cut(cells: list[IntArray], sizes: list[int], signed: FloatArray) -> tuple[int, int, float]:
    """Return feature, cut and r of the weak ranker with the largest |r|, the first of equals; r is 0 without a cut.

    Each row has a cell of each feature, and `signed`, (n,), is v_i of the positives and -u_k of the negatives.
    """
    best = (0, 0, 0.0)
    for j, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        if size:
            r = -np.cumsum(np.bincount(cell, weights=signed, minlength=size + 1))[:size]
            c = int(np.argmax(np.abs(r)))
            if abs(r[c]) > abs(best[2]):
                best = (j, c, float(r[c]))
    return best
