r"""RankBoost for two classes: boosted threshold rankers that minimise the exponential loss of the pairs.

The scoring function ``f(x) = sum over rounds t of alpha_t h_t(x)`` with weak rankers ``h_t(x) = [x_j > cut]``
lowers, round by round, the mean over all positive-negative pairs

    L(f) = (1 / (n_pos n_neg)) sum_i sum_k exp(-(f(x_i) - f(x_k))).

**Weights.** A pair's weight is a product, ``D(i, k) = v_i u_k`` with v_i proportional to exp(-f(x_i)) over the
positives and u_k to exp(f(x_k)) over the negatives, each summing to 1. So a round costs O(n d), not n_pos n_neg.

**Weak ranker.** The one with the largest |r|, ``r = sum_{i,k} D(i,k) (h(x_i) - h(x_k)) = V - U``, where V is the
share of v, and U that of u, above the cut: cumulative sums over the cells between cuts give all of them.

**Step.** Writing W+ = V (1 - U) for the weight of the pairs that h orders rightly and W- = (1 - V) U for the others
that it orders,

    Z(alpha) = 1 - W+ - W- + W+ exp(-alpha) + W- exp(alpha)

is the factor by which L changes. ``step="exact"`` takes its minimiser alpha = 1/2 ln(W+ / W-); ``step="bound"`` the
minimiser of its bound (1-r)/2 exp(alpha) + (1+r)/2 exp(-alpha), alpha = 1/2 ln((1+r) / (1-r)): a shorter step, and
the one for which the largest |r| is the best choice.
Weights below 1 / (2 n_pos n_neg), half a pair, count as that much, so that a perfect weak ranker gets a finite step;
L never rises.

Source: Freund, Iyer, Schapire & Singer, *An efficient boosting algorithm for combining preferences* (2003),
sections 3.2 and 3.3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import check_callable, is_whole
from ltr.data.dataset import DataError, checked_features, checked_labels
from ltr.fitted import NamedFeatures, feature_names, split_names

__all__ = ["RankBoostRanker", "exponential_pair_loss"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# |r| at or below this is rounding, not an improvement
_NOTHING = 1e-12


@dataclass
class RankBoostRanker(NamedFeatures):
    """RankBoost on thresholds of single features.

    Args:
        rounds: weak rankers at most, >= 1; fewer when none improves the loss any more.
        thresholds: cuts tried for each feature at most, >= 1: those between different values that come closest to
            splitting the training rows into equal parts. None tries every cut.
        step: ``"bound"`` or ``"exact"``, see the module. On the paper's data sets 100 rounds of the shorter step gave
            the best DCG on test halves, with 50 rounds of the exact one half a percent behind.
        on_round: called as ``on_round(round, loss)`` after each round 1, 2, ..., with the exponential loss of the
            training pairs; copies and pickles leave it behind.

    Attributes:
        losses: after `fit`, the exponential loss before round 1 (which is 1) and after every round.
        feature_names_in_: the names of the columns that `fit` got, where it got a frame.

    Raises:
        ValueError: a field outside its range; in `fit`, data against the rules of `ltr.data.Dataset`.

    Examples:
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
        >>> ranker = RankBoostRanker(rounds=2, step="exact").fit(X, y)
        >>> ranker.losses.round(4).tolist()
        [1.0, 0.75, 0.5625]
        >>> ranker.decision_function([[0.5], [3.5]]).round(4).tolist()
        [0.0, 1.3863]
    """

    rounds: int = 100
    thresholds: int | None = 255
    step: Literal["bound", "exact"] = "bound"
    on_round: Callable[[int, float], None] | None = field(default=None, repr=False, compare=False)
    _model: _Stumps | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, value in (("rounds", self.rounds), ("thresholds", self.thresholds)):
            if name == "thresholds" and value is None:
                continue
            if not is_whole(value) or value < 1:
                raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
        if self.step not in ("exact", "bound"):
            raise ValueError(f"step must be 'exact' or 'bound', got {self.step!r}")
        check_callable("on_round", self.on_round)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's fields by name (scikit-learn's convention)."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def fit(self, X: ArrayLike, y: ArrayLike, *, qid: ArrayLike | None = None) -> RankBoostRanker:
        """Boost on features (n, d) and labels 0/1 (n,) of one list: a `qid` is refused."""
        if qid is not None:
            raise DataError("qid: RankBoost learns from one list with labels 0 and 1; the loss exponential takes qid")
        names, features = feature_names(X), checked_features(X)
        positive = checked_labels(y, len(features)) == 1
        cuts = [candidate_cuts(column, self.thresholds) for column in features.T]
        # cell c of a column lies above its cuts 0..c-1, so h of cut c is [cell > c]
        cells = [np.searchsorted(at, column, side="left") for at, column in zip(cuts, features.T, strict=True)]
        half_pair = 0.5 / (int(positive.sum()) * int((~positive).sum()))
        scores = np.zeros(len(features))
        chosen: list[tuple[int, float, float]] = []
        losses = [1.0]
        for done in range(1, self.rounds + 1):
            weights = pair_weights(scores, positive)
            j, c, r = best_cut(cells, [len(at) for at in cuts], np.where(positive, weights, -weights))
            if abs(r) <= _NOTHING:
                break
            above = cells[j] > c
            alpha = self._alpha(r, weights[above & positive].sum(), weights[above & ~positive].sum(), half_pair)
            scores[above] += alpha
            chosen.append((j, float(cuts[j][c]), alpha))
            losses.append(_pair_loss(scores, positive))
            if self.on_round is not None:
                self.on_round(done, losses[-1])
        columns = list(zip(*chosen, strict=True)) or [(), (), ()]
        self._model = _Stumps(
            d=features.shape[1],
            features=np.array(columns[0], dtype=np.int64),
            cuts=np.array(columns[1], dtype=np.float64),
            alphas=np.array(columns[2], dtype=np.float64),
            losses=np.array(losses),
        )
        self._remember_names(names)
        return self

    def _alpha(self, r: float, V: float, U: float, half_pair: float) -> float:
        if self.step == "exact":
            right, wrong = V * (1 - U), (1 - V) * U
        else:
            right, wrong = (1 + r) / 2, (1 - r) / 2
        return 0.5 * math.log(max(right, half_pair) / max(wrong, half_pair))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the rows of X, float64 of shape (n,); equal for rows between the same cuts.

        Raises:
            ValueError: before `fit`, or with other columns.
        """
        self._check_names(X)
        return self._scores(X)

    def _scores(self, X: ArrayLike) -> FloatArray:
        for scores in self._fitted.stages(X):
            last = scores
        return last

    def staged_decision_function(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Scores after each round, the last of them the `decision_function`."""
        self._check_names(X)
        for scores in itertools.islice(self._fitted.stages(X), 1, None):
            yield scores.copy()

    @property
    def linear_weights(self) -> None:
        """None: the scoring function is not linear in the features."""
        return

    @property
    def losses(self) -> FloatArray:
        """Exponential loss of the training pairs before round 1 and after every round, (rounds done + 1,)."""
        return self._fitted.losses

    def __getstate__(self) -> dict[str, Any]:
        # a callback does not belong in a copy of the model
        return {**self.__dict__, "on_round": None}

    @property
    def _fitted(self) -> _Stumps:
        if self._model is None:
            raise ValueError("RankBoostRanker is not fitted: call fit first")
        return self._model

    def to_state(self) -> dict[str, Any]:
        """Fields (but `on_round`) and weak rankers as numbers, strings and lists, enough for `from_state`."""
        model = self._fitted
        return {
            "kind": "rankboost",
            "rounds": int(self.rounds),
            "thresholds": None if self.thresholds is None else int(self.thresholds),
            "step": self.step,
            "d": model.d,
            **{name: getattr(model, name).tolist() for name in ("features", "cuts", "alphas", "losses")},
            **self._names_state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RankBoostRanker:
        """The fitted ranker that `to_state` described.

        Raises:
            ValueError: a state of another kind, or one that lacks a field or has one too many.
        """
        state, names = split_names(state)
        expected = {"kind", "rounds", "thresholds", "step", *(f.name for f in fields(_Stumps))}
        if set(state) != expected or state["kind"] != "rankboost":
            raise ValueError(f"state must be of kind 'rankboost' and hold {sorted(expected)}, got {sorted(state)}")
        ranker = cls(rounds=state["rounds"], thresholds=state["thresholds"], step=state["step"])
        ranker._model = _Stumps(
            d=int(state["d"]),
            features=np.asarray(state["features"], dtype=np.int64),
            cuts=np.asarray(state["cuts"], dtype=np.float64),
            alphas=np.asarray(state["alphas"], dtype=np.float64),
            losses=np.asarray(state["losses"], dtype=np.float64),
        )
        ranker._remember_names(names)
        return ranker


@dataclass(frozen=True)
class _Stumps:
    """The weak rankers in the order of their rounds: feature, cut and alpha of each, (rounds done,)."""

    d: int
    features: IntArray
    cuts: FloatArray
    alphas: FloatArray
    losses: FloatArray

    def stages(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Scores before and after each round, in one array that every round changes."""
        features = checked_features(X)
        if features.shape[1] != self.d:
            raise ValueError(f"X must have the {self.d} columns of the fit, got {features.shape[1]}")
        scores = np.zeros(len(features))
        yield scores
        for j, cut, alpha in zip(self.features, self.cuts, self.alphas, strict=True):
            scores[features[:, j] > cut] += alpha
            yield scores


def exponential_pair_loss(scores: ArrayLike, y: ArrayLike) -> float:
    """Mean over positive-negative pairs of ``exp(-(s_i - s_k))``, in O(n).

    Raises:
        ValueError: scores that are not finite, labels other than 0 and 1 or of one class.

    Examples:
        >>> exponential_pair_loss([1.0, 0.0, 0.0], [1, 0, 0]) == math.exp(-1.0)
        True
    """
    values = checked_features(np.asarray(scores)[:, None], ["score"], "scores")[:, 0]
    return _pair_loss(values, checked_labels(y, len(values)) == 1)


def _pair_loss(scores: FloatArray, positive: NDArray[np.bool_]) -> float:
    def log_mean_exp(values: FloatArray) -> float:
        top = values.max()
        return float(top + np.log(np.exp(values - top).mean()))

    logarithm = log_mean_exp(-scores[positive]) + log_mean_exp(scores[~positive])
    return math.exp(logarithm) if logarithm < 709 else math.inf


def pair_weights(scores: FloatArray, positive: NDArray[np.bool_]) -> FloatArray:
    """Pair weights by factor, D(i, k) = v_i u_k: v of the positives and u of the negatives, (n,), each summing to 1."""
    weights = np.empty(len(scores))
    for members, exponents in ((positive, -scores[positive]), (~positive, scores[~positive])):
        values = np.exp(exponents - exponents.max())
        weights[members] = values / values.sum()
    return weights


def candidate_cuts(column: FloatArray, limit: int | None) -> FloatArray:
    """Cuts between neighbouring different values, ascending: midpoints; at most `limit`, spread evenly over rows."""
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
    """The feature, the cut and r of the weak ranker with the largest |r|; the first of equals; r 0 without a cut.

    Args:
        cells: for each feature, the cell of each row.
        sizes: the number of cuts of each feature.
        signed: v_i of the positives and -u_k of the negatives, (n,); they sum to 0, so that r of a cut, the sum
            above it, is minus the sum up to it.
    """
    best = (0, 0, 0.0)
    for j, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        if size:
            r = -np.cumsum(np.bincount(cell, weights=signed, minlength=size + 1))[:size]
            c = int(np.argmax(np.abs(r)))
            if abs(r[c]) > abs(best[2]):
                best = (j, c, float(r[c]))
    return best
