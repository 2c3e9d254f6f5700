"""Models of other libraries in forms that this package saves, scores by and exports: trees, and linear weights.

`own_form` finds the form of a fitted model:

======================================================  =================
LightGBM: estimators, Booster                           `TreesRanker`
XGBoost: estimators, Booster                            `TreesRanker`
CatBoost: estimators                                    `TreesRanker`
scikit-learn: HistGradientBoosting*, GradientBoosting*  `TreesRanker`
scikit-learn: RandomForest*, ExtraTrees*, DecisionTree* `TreesRanker`
anything whose score is linear in the features          `WeightsRanker`
======================================================  =================

*One form of trees.* Libraries differ in how a node decides: LightGBM and HistGradientBoosting compare doubles by
``x <= t``, the other trees of scikit-learn and CatBoost numbers that are rounded to single precision; XGBoost compares
such numbers by ``x < t``; missing values go left, right, or count as 0; a category is in a set or not. All of these are
functions of x that are constant on finitely many intervals, and missing values go one way. So each node becomes a
binary search among the bounds of its intervals, nodes that decide by ``x <= t`` in double precision, nearly always a
single one. For example, x rounds to a single below t exactly if x is at most the largest double that does.

*The same digits.* Leaf values are added in the order of the trees and in the precision of the library, which for
XGBoost is single. (A forest of scikit-learn with ``n_jobs`` above 1 adds them as its threads finish, so that its own
last digits change from call to call; what counts here is its sum with ``n_jobs=1``.) `own_form` compares the scores
with those of the model on rows at, beside and between the thresholds and with missing values, and refuses a model of
which one differs in the last digit.
"""

from __future__ import annotations

import bisect
import copy
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ltr.data.dataset import Features
from ltr.native import Trees
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import Ranker, Scored
from ltr.rankers.contract import FloatArray, IntArray
from ltr.rankers.inputs import column_names, columns_by_name, linear_scores
from ltr.rankers.onnx import summed

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["GivenRanker", "TreesRanker", "WeightsRanker", "own_form", "raw_scores"]

_PROBES = 400  # rows on which trees are compared with their model
_ZERO = float(np.float32(1e-35))  # LightGBM: numbers up to here count as 0
_REFUSED = frozenset(' "[]{},:<')  # letters that names of columns must not have in LightGBM or XGBoost, or that change
_LARGEST_CATEGORY = 2.0**24  # XGBoost: numbers above are no categories


@dataclass(eq=False, repr=False)
class GivenRanker(Scored, Ranker):
    """A ranker that was made of a fitted model; it is not fitted itself.

    Args:
        source: class of the model that it was made of.
        statistic, gain, normalize: what `score` reports, see `Ranker`.
    """

    _LEARNS = False

    source: str = ""

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> NoReturn:
        """Refuse to fit.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            f"a {type(self).__name__} is made of a fitted {self.source or 'model'} and cannot be fitted: fit the model "
            "itself; as the base of two stages pass base_is_fitted=True"
        )

    def _of(self, model: Any, d: int) -> Self:  # noqa: ANN401 (a model of any library)
        """Take number and names of the columns from a model."""
        self.n_features_in_ = d
        if (names := known_names(model)) is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self


@dataclass(eq=False, repr=False)
class WeightsRanker(GivenRanker):
    """Rank by the linear score of a model of another library; `own_form` makes one.

    Attributes:
        coef_: weights on the raw features, (d,).
        intercept_: score of a row of zeros.
    """

    _FITTED = ("coef_", "intercept_")
    _HOW = "score = intercept_ + sum over columns j of coef_[j] * x[j]"

    coef_: FloatArray = field(init=False)
    intercept_: float = field(init=False)

    def _scores(self, features: FloatArray) -> FloatArray:
        return linear_scores(features, self.coef_) + self.intercept_

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        return graph.op("Add", graph.linear(columns, self.coef_), graph.constant(self.intercept_))


@dataclass(eq=False, repr=False)
class TreesRanker(GivenRanker):
    """Rank by the decision trees of a fitted model of LightGBM, XGBoost, CatBoost or scikit-learn.

    It scores as the model does, bit for bit, without the library: boosted classifiers by their log odds, forests and
    single trees by the share of the positive class. Features may be missing (NaN) where the model takes such rows.

    Attributes:
        feature_: feature that each node looks at, (nodes,), -1 in leaves.
        threshold_: rows whose feature is at most this go left, (nodes,).
        missing_left_: whether rows whose feature is missing go left, (nodes,).
        left_, right_: the nodes to go to, (nodes,); they come after the node.
        value_: value of a leaf, (nodes,).
        roots_: first node of each tree, (trees,).
        start_: what the sum of the leaf values starts from.
        single_: whether the sum is rounded to single precision after each tree.
        mean_: whether the sum is divided by the number of trees.
        missing_: whether features may be missing.

    Examples:
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 3
        >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
        >>> ranker = TreesRanker.of(model)
        >>> ranker, len(ranker.roots_), bool((ranker.predict(X) == model.predict(X)).all())
        (TreesRanker(source='HistGradientBoostingRegressor'), 5, True)
    """

    _FITTED = ("feature_", "threshold_", "missing_left_", "left_", "right_", "value_", "roots_", "start_", "single_",
               "mean_", "missing_")  # fmt: skip
    _HOW = (
        "score = start_ + sum over roots_ of value_[leaf]. From a root to its leaf, where feature_ is -1: to "
        "left_[node] where x[feature_[node]] <= threshold_[node], or is missing and missing_left_[node]; else to "
        "right_[node]. With single_ the sum is rounded to single precision after each tree; with mean_ it is divided "
        "by the number of trees"
    )

    feature_: NDArray[np.int32] = field(init=False)
    threshold_: FloatArray = field(init=False)
    missing_left_: NDArray[np.bool_] = field(init=False)
    left_: NDArray[np.int32] = field(init=False)
    right_: NDArray[np.int32] = field(init=False)
    value_: FloatArray = field(init=False)
    roots_: NDArray[np.int32] = field(init=False)
    start_: float = field(init=False)
    single_: bool = field(init=False)
    mean_: bool = field(init=False)
    missing_: bool = field(init=False)

    @classmethod
    def of(cls, model: Any) -> Self:  # noqa: ANN401 (a model of any library)
        """Return the trees of a fitted model.

        Args:
            model: an estimator or Booster of LightGBM or XGBoost; one of CatBoost; or of scikit-learn, a
                HistGradientBoosting, GradientBoosting, RandomForest, ExtraTrees or DecisionTree model. It must have one
                score for a row.

        Raises:
            TypeError: a model of another kind, or one whose trees do not give its scores in this form.
        """
        read = _reader_of(model)
        if read is None:
            raise TypeError(
                "model must be a fitted model of LightGBM, XGBoost or CatBoost, or trees, a forest or gradient "
                f"boosting of scikit-learn, got {model!r:.80}"
            )
        forest = read(model)
        ranker = cls(type(model).__name__)._of(model, forest.features)
        forest.write_to(ranker)
        rows = _probes(ranker)
        own, found = raw_scores(model, rows), ranker._scores(rows)
        if own is None or own.shape != found.shape or not np.array_equal(own, found):
            raise TypeError(
                f"the trees of this {type(model).__name__} do not give its scores: it has options, or is of a version "
                "of its library, that this package does not know"
            )
        return ranker

    def _features(self, X: ArrayLike) -> Features:
        """Return the columns of the model, by name as for other rankers; they may have missing values."""
        check_is_fitted(self)
        if not self.missing_:
            return super()._features(X)
        if hasattr(self, "feature_names_in_") and column_names(X) is not None:
            return columns_by_name(X, self.feature_names_in_.tolist(), missing=True)
        options: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, X, reset=False, **options))

    def _scores(self, features: FloatArray) -> FloatArray:
        scores = np.empty(len(features))
        self._trees.add_up(features, self.start_, self.single_, scores)
        return scores / len(self.roots_) if self.mean_ else scores

    @cached_property
    def _trees(self) -> Trees:
        """The compiled form of the nodes, which is checked when it is made."""
        return Trees(
            self.feature_,
            self.threshold_,
            self.missing_left_.view(np.uint8),
            self.left_,
            self.right_,
            self.value_,
            self.roots_,
            self.n_features_in_,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickle keeps: everything but the compiled form."""
        return {name: value for name, value in super().__getstate__().items() if name != "_trees"}

    def _monotone(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        used, up, down = (np.full(self.n_features_in_, free) for free in (False, True, True))
        low, high = self.value_.copy(), self.value_.copy()  # smallest and largest leaf below each node
        for node in np.flatnonzero(self.feature_ >= 0)[::-1].tolist():  # the nodes below a node come after it
            j, left, right = self.feature_[node], self.left_[node], self.right_[node]
            used[j] = True
            up[j] &= high[left] <= low[right]
            down[j] &= low[left] >= high[right]
            low[node], high[node] = min(low[left], low[right]), max(high[left], high[right])
        return used, up, down

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        total = summed(graph, columns, self)
        return graph.op("Div", total, graph.constant(float(len(self.roots_)))) if self.mean_ else total


def known_names(model: Any) -> list[str] | None:  # noqa: ANN401 (a model of any library)
    """Return the names of the columns that a model was fitted to, in its order; None where it knows none."""
    try:
        if _reader_of(model) is _read_lightgbm:
            booster = model if hasattr(model, "feature_name") else model.booster_
            names = booster.feature_name()
            names = None if names == [f"Column_{j}" for j in range(len(names))] else names  # which it makes up
        elif _reader_of(model) is _read_xgboost:
            names = (model if hasattr(model, "feature_names") else model.get_booster()).feature_names
        elif _reader_of(model) is _read_catboost:
            names = model.feature_names_
            names = None if names == [f"{j}" for j in range(len(names))] else names  # which it makes up
        else:
            names = getattr(model, "feature_names_in_", None)
    except (AttributeError, NotFittedError):
        return None
    return None if names is None else [str(name) for name in names]


def places_by_name(model: Any, names: Sequence[str] | None) -> IntArray | None:  # noqa: ANN401
    """Return where the columns of a model are among these columns.

    Args:
        model: a fitted model of any library.
        names: names of the columns that there are; None where they have none.

    Returns:
        The places, (columns of the model,); None where the columns are the model's own in its order, or go by their
        position because one side has no names.

    Raises:
        ValueError: a column of the model is missing.
    """
    own = known_names(model)
    if own is None or names is None or own == list(names):
        return None
    place = {name: j for j, name in enumerate(names)}
    if _reader_of(model) is _read_lightgbm:  # which writes _ for spaces
        place = {name.replace(" ", "_"): j for name, j in place.items()} | place
    if missing := [name for name in own if name not in place]:
        lacking = f"column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
        raise ValueError(
            f"X must have the {lacking:.300}, which the base, a {type(model).__name__}, was fitted with; it has "
            f"{', '.join(names):.300}"
        )
    return np.array([place[name] for name in own], dtype=np.int64)


def named_rows(model: Any, features: FloatArray, names: Sequence[str] | None) -> Any:  # noqa: ANN401
    """Return rows with the columns of a model, in its order, as it takes them: a frame where it knows names.

    Args:
        model: a fitted model of any library.
        features: (n, d).
        names: names of the columns, for a model that does not say what it was fitted to; None where they have none.
    """
    own = known_names(model)
    if own is None and not hasattr(model, "n_features_in_"):
        own = None if names is None else list(names)
    return features if own is None else _frame(features, own)


def rows_to_fit(model: Any, features: Features, names: Sequence[str] | None) -> Any:  # noqa: ANN401
    """Return rows to fit a model to: a frame where the columns have names, unless the library refuses such names."""
    boosted = _reader_of(model) in (_read_lightgbm, _read_xgboost)
    if names is None or (boosted and any(set(name) & _REFUSED for name in names)):
        return features
    return _frame(features, names)


def _frame(features: Features, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(features, columns=list(names))


def own_form(model: Any, linear: tuple[FloatArray, float] | None) -> GivenRanker | None:  # noqa: ANN401
    """Return a ranker that scores as a fitted model of another library does; None for a model that has no such form.

    Args:
        model: the model.
        linear: weights and intercept of its score, where that is linear.

    Raises:
        TypeError: a model of trees that has no such form; the message says why.
    """
    if _reader_of(model) is not None:
        return TreesRanker.of(model)
    if linear is None:
        return None
    weights, intercept = linear
    ranker = WeightsRanker(type(model).__name__)._of(model, len(weights))
    ranker.coef_, ranker.intercept_ = weights, intercept
    return ranker


def raw_scores(model: Any, features: FloatArray) -> FloatArray | None:  # noqa: ANN401
    """Return the sums of the leaf values by the model itself, without the function that follows; None for other models.

    Of a boosted classifier they are the log odds, which order rows as the probabilities do, but do not come out equal
    near 1; of a forest or a tree they are the share of the positive class.
    """
    reader = _reader_of(model)
    rows = features if reader is None else named_rows(model, features, None)
    if reader is _read_lightgbm:
        scores = model.predict(rows, raw_score=True)
    elif reader is _read_xgboost:
        if hasattr(model, "get_booster"):
            scores = model.predict(rows, output_margin=True)
        else:
            scores = model.inplace_predict(features, predict_type="margin", validate_features=False)
    elif reader is _read_catboost:
        common: Any = next(kind for kind in type(model).__mro__ if kind.__name__ == "CatBoost")
        scores = common.predict(model, rows, prediction_type="RawFormulaVal")
    elif reader is _read_forest and hasattr(model, "classes_"):
        scores = _in_order(model).predict_proba(rows)
        scores = scores[:, 1] if np.shape(scores)[1:] == (2,) else scores
    elif reader is _read_forest:
        scores = _in_order(model).predict(rows)
    elif reader in (_read_histograms, _read_gradient_boosting):
        scores = model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)
    else:
        return None
    return np.asarray(scores, dtype=np.float64)


def _reader_of(model: Any) -> Callable[[Any], _Forest] | None:  # noqa: ANN401
    """Return the function that reads the trees of a model; None for a model of another library.

    The libraries need not be installed, so that models are known by the modules of their classes.
    """
    for kind in type(model).__mro__:
        library, name = kind.__module__.split(".")[0], kind.__name__
        if library == "lightgbm" and name in ("LGBMModel", "Booster"):
            return _read_lightgbm
        if library == "xgboost" and name in ("XGBModel", "Booster"):
            return _read_xgboost
        if library == "catboost" and name == "CatBoost":
            return _read_catboost
        if library == "sklearn" and name in _OF_SKLEARN:
            return _OF_SKLEARN[name]
    return None


# --- one form of trees -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Split:
    """Where rows go from a node: by the interval in which their feature is, or by being missing.

    The intervals are those up to the first bound and with it, from there to the second one, and so on.
    """

    feature: int
    bounds: list[float]
    goes: list[int]  # a node of the tree for each interval
    missing: int

    @classmethod
    def by(cls, feature: int, bounds: Iterable[float], goes: Callable[[float], int], missing: int) -> _Split:
        """Return the split by a function of the feature that is constant between the bounds."""
        found: list[tuple[float, int]] = []
        for bound in (*sorted(set(bounds)), math.inf):
            if found and found[-1][1] == goes(bound):
                found.pop()
            found.append((bound, goes(bound)))
        kept = [bound for bound, _ in found]
        nodes = [node for _, node in found]
        if len(kept) > 1 and missing in nodes:
            return cls(feature, kept[:-1], nodes, missing)
        return cls(feature, kept, [*nodes, missing], missing)  # no number is above infinity

    def search(self, first: int, number: dict[int, int]) -> list[tuple[float, bool, int, int]]:
        """Return the nodes of a binary search for the interval: threshold, missing left, left, right.

        Args:
            first: number of the first of these nodes.
            number: number of the first node of each node of the tree.
        """
        way = self.goes.index(self.missing)  # missing values take the way to this interval
        found: list[tuple[float, bool, int, int]] = []
        open_ranges = [(0, len(self.bounds))]
        places: dict[tuple[int, int], int] = {}
        order: list[tuple[int, int]] = []
        while open_ranges:
            low, high = open_ranges.pop()
            if low < high:
                places[low, high] = first + len(order)
                order.append((low, high))
                middle = (low + high) // 2
                open_ranges += [(middle + 1, high), (low, middle)]
        for low, high in order:
            middle = (low + high) // 2
            left, right = (
                places[part] if part[0] < part[1] else number[self.goes[part[0]]]
                for part in ((low, middle), (middle + 1, high))
            )
            found.append((self.bounds[middle], way <= middle, left, right))
        return found


@dataclass(frozen=True)
class _Nodes:
    """The nodes of one tree as `TreesRanker` has them, numbered from 0, the root; parents before their children."""

    feature: IntArray
    threshold: FloatArray
    missing_left: NDArray[np.bool_]
    left: IntArray
    right: IntArray
    value: FloatArray

    @classmethod
    def of(cls, tree: Sequence[_Split | float]) -> _Nodes:
        """Return the nodes of a tree that is given as splits, and the values of leaves; the first one is the root."""
        nodes: list[tuple[int, float, bool, int, int, float]] = []
        order, number, at = [0], {}, 0
        for node in order:  # which grows
            number[node], what = at, tree[node]
            if isinstance(what, _Split):
                order += dict.fromkeys(what.goes)
                at += len(what.bounds)
            else:
                at += 1
        for node in order:
            what = tree[node]
            if isinstance(what, _Split):
                nodes += [(what.feature, *found, 0.0) for found in what.search(number[node], number)]
            else:
                nodes.append((-1, 0.0, False, 0, 0, what))
        return cls(*map(np.array, zip(*nodes, strict=True)))


@dataclass(frozen=True)
class _Forest:
    """The trees of a model, what their sum starts from, its precision, and whether it is divided by their number."""

    features: int
    trees: list[_Nodes]
    start: float = 0.0
    single: bool = False
    mean: bool = False
    missing: bool = True

    def write_to(self, ranker: TreesRanker) -> None:
        """Set the arrays of nodes, each tree after the one before."""
        first = np.cumsum([0, *(len(tree.feature) for tree in self.trees)])

        def every(kind: type, parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
            return np.concatenate([np.zeros(0, kind), *parts]).astype(kind)

        def moved(child: Callable[[_Nodes], IntArray]) -> Iterable[IntArray]:
            for at, tree in zip(first, self.trees, strict=False):
                yield np.where(tree.feature < 0, 0, child(tree) + at)

        ranker.feature_ = every(np.int32, (tree.feature for tree in self.trees))
        ranker.threshold_ = every(np.float64, (tree.threshold for tree in self.trees))
        ranker.missing_left_ = every(np.bool_, (tree.missing_left for tree in self.trees))
        ranker.left_, ranker.right_ = (every(np.int32, moved(child)) for child in (lambda t: t.left, lambda t: t.right))
        ranker.value_ = every(np.float64, (tree.value for tree in self.trees))
        ranker.roots_ = first[:-1].astype(np.int32)
        ranker.start_, ranker.single_ = float(self.start), self.single
        ranker.mean_, ranker.missing_ = self.mean, self.missing


def _probes(ranker: TreesRanker) -> FloatArray:
    """Return rows at the thresholds of the trees and beside them, with values missing where they may be, (rows, d)."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(_PROBES, ranker.n_features_in_))
    for j, column in enumerate(rows.T):
        known = ranker.threshold_[(ranker.feature_ == j) & np.isfinite(ranker.threshold_)]
        if len(known):
            at = rng.choice(known, _PROBES)
            beside = np.nextafter(at, rng.choice([-np.inf, np.inf], _PROBES))
            inside = at + rng.choice([-1.0, -0.5, 0.5, 1.0], _PROBES)
            column[:] = np.select([rng.random(_PROBES) < p for p in (0.4, 0.7)], [at, beside], inside)
        if ranker.missing_:
            column[rng.random(_PROBES) < 0.1] = math.nan
    return rows


def _below(number: float) -> float:
    """Return the next smaller double."""
    return math.nextafter(number, -math.inf)


# --- LightGBM --------------------------------------------------------------------------------------------------------


def _read_lightgbm(model: Any) -> _Forest:  # noqa: ANN401
    """Return the trees of a model of LightGBM, from its text."""
    text = (model if hasattr(model, "model_to_string") else model.booster_).model_to_string()
    head, *parts = text.split("end of trees")[0].split("\nTree=")
    facts = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    if int(facts["num_tree_per_iteration"]) != 1:
        raise TypeError("a LightGBM model with a score for each class is no ranker: take a regressor or ranker")
    if "\naverage_output" in head:
        raise TypeError("a LightGBM model with boosting='rf' has no form here")
    categories = text.rpartition("\npandas_categorical:")[2].split("\n")[0]
    if categories not in ("", "null", "[]"):
        raise TypeError("a LightGBM model with categories of a pandas frame has no form here: pass numbers")
    return _Forest(int(facts["max_feature_idx"]) + 1, [_lightgbm_tree(part) for part in parts])


def _lightgbm_tree(text: str) -> _Nodes:
    facts = dict(line.split("=", 1) for line in text.splitlines()[1:] if "=" in line)
    if facts.get("is_linear", "0") != "0":
        raise TypeError("a LightGBM model with linear_tree=True has no form here")

    def numbers(name: str, kind: type) -> list[Any]:
        return [kind(word) for word in facts.get(name, "").split()]

    leaves = numbers("leaf_value", float)
    splits = len(leaves) - 1

    def place(child: int) -> int:
        return child if child >= 0 else splits + ~child

    columns = [numbers(name, int) for name in ("split_feature", "decision_type", "left_child", "right_child")]
    begins, words = numbers("cat_boundaries", int), numbers("cat_threshold", int)
    found: list[_Split | float] = []
    for feature, decision, left, right, threshold in zip(*columns, numbers("threshold", float), strict=True):
        if decision & 1:  # whether the whole part of the number is one of a set
            chosen = words[begins[int(threshold)] : begins[int(threshold) + 1]]
            found.append(_lightgbm_category(feature, chosen, place(left), place(right)))
        else:
            found.append(_lightgbm_number(feature, threshold, decision, place(left), place(right)))
    return _Nodes.of(found + leaves)


def _lightgbm_number(feature: int, threshold: float, decision: int, left: int, right: int) -> _Split:
    default = left if decision & 2 else right
    kind = decision >> 2 & 3  # of missing values: none, those that are 0, and NaN

    def goes(x: float) -> int:
        number = x if abs(x) > _ZERO else 0.0
        if kind == 1 and number == 0.0:
            return default
        return left if number <= threshold else right

    return _Split.by(feature, [threshold, _below(-_ZERO), _ZERO], goes, default if kind == 2 else goes(0.0))


def _lightgbm_category(feature: int, words: Sequence[int], left: int, right: int) -> _Split:
    chosen = set(_bits(words))
    bounds = [bound for c in chosen for bound in (_below(c) if c else -1.0, _below(c + 1))]
    # numbers are cut off towards 0
    return _Split.by(feature, bounds, lambda x: left if x > -1 and x < 2**31 and int(x) in chosen else right, right)


def _bits(words: Iterable[int]) -> list[int]:
    """Return the numbers of a set that is given by bits, 32 a word."""
    return [32 * at + bit for at, word in enumerate(words) for bit in range(32) if int(word) >> bit & 1]


# --- XGBoost ---------------------------------------------------------------------------------------------------------


def _read_xgboost(model: Any) -> _Forest:  # noqa: ANN401
    """Return the trees of a model of XGBoost, from its JSON."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    missing = getattr(model, "missing", None)
    if missing is not None and not math.isnan(missing):
        raise TypeError(f"an XGBoost model with missing={missing!r} has no form here: missing must be NaN")
    if booster is not model and (best := getattr(model, "best_iteration", None)) is not None:
        booster = booster[: best + 1]
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    trees, facts = learner["gradient_booster"], learner["learner_model_param"]
    if trees["name"] != "gbtree":
        raise TypeError(f"an XGBoost model with booster={trees['name']!r} has no form here, only 'gbtree'")
    if int(facts["num_class"]) > 1 or int(facts.get("num_target", 1)) > 1:
        raise TypeError("an XGBoost model with several scores for a row is no ranker: take a regressor or ranker")
    if trees["model"].get("cats", {}).get("enc"):
        raise TypeError("an XGBoost model with categories of a frame has no form here: pass numbers")
    given = json.loads(facts["base_score"])  # in a list, since version 3.1
    start = float(np.float32(given[0] if isinstance(given, list) else given))
    objective = learner["objective"]["name"]
    if objective in ("binary:logistic", "reg:logistic", "binary:logitraw"):
        start = -math.log(float(np.float32(1) / np.float32(start) - np.float32(1)))
    elif objective in ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"):
        start = math.log(start)
    found = [_xgboost_tree(tree) for tree in trees["model"]["trees"]]
    return _Forest(int(facts["num_feature"]), found, float(np.float32(start)), single=True)


def _xgboost_tree(tree: dict[str, Any]) -> _Nodes:
    sets = {
        node: tree["categories"][begin : begin + size]
        for node, begin, size in zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        )
    }
    columns = (tree[name] for name in ("split_indices", "split_conditions", "default_left", "left_children",
                                       "right_children"))  # fmt: skip
    found: list[_Split | float] = []
    for node, (feature, number, missing_left, left, right) in enumerate(zip(*columns, strict=True)):
        number = float(np.float32(number))
        if left < 0:
            found.append(number)
        elif node in sets:
            found.append(_xgboost_category(feature, sets[node], left, right, left if missing_left else right))
        else:
            bound = _rounds_below(number)
            # missing values go their own way, so that the number of intervals is two
            found.append(_Split(feature, [bound], [left, right], left if missing_left else right))
    return _Nodes.of(found)


def _xgboost_category(feature: int, chosen: Sequence[int], left: int, right: int, missing: int) -> _Split:
    known = set(chosen)

    def goes(x: float) -> int:
        with np.errstate(over="ignore"):
            number = float(np.float32(x))
        inside = 0 <= number <= _LARGEST_CATEGORY and int(number) in known
        return right if inside else left

    return _Split.by(feature, [_rounds_below(c + more) for c in known for more in (0.0, 1.0)], goes, missing)


def _rounds_below(number: float) -> float:
    """Return the largest double that is below a number of single precision when it is rounded to single precision."""
    single = np.float32(number)
    before = np.nextafter(single, np.float32(-np.inf))
    middle = 0.5 * (float(before) + float(single))
    return middle if np.float32(middle) < single else _below(middle)


# --- CatBoost --------------------------------------------------------------------------------------------------------


def _read_catboost(model: Any) -> _Forest:  # noqa: ANN401
    """Return the trees of a model of CatBoost, from its JSON."""
    if not model.is_fitted():
        raise NotFittedError(f"a {type(model).__name__} that is not fitted has no trees")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        found = json.loads(path.read_text())
    scale, bias = found["scale_and_bias"]
    trees = found["trees"] if "trees" in found else found["oblivious_trees"]
    if len(bias) != 1:
        raise TypeError("a CatBoost model with a score for each class is no ranker: take a regressor or ranker")
    if scale != 1:
        raise TypeError(f"a CatBoost model with a scale of {scale!r} has no form here: its scale must be 1")
    known = {one["feature_index"]: one for one in found["features_info"].get("float_features", [])}

    def split(of: dict[str, Any], left: int, right: int) -> _Split:
        if of["split_type"] != "FloatFeature":
            raise TypeError("a CatBoost model with categories has no form here: pass numbers")
        feature = known[of["float_feature_index"]]
        missing = right if feature["nan_value_treatment"] == "AsTrue" else left
        bound = float(_rounds_up_to(np.array([of["border"]]))[0])
        return _Split(feature["flat_feature_index"], [bound], [left, right], missing)

    def nodes(tree: dict[str, Any]) -> Iterator[_Split | float]:
        """Yield the nodes of a tree, row by row from its root."""
        if "splits" in tree:  # one for each row
            depth, values = len(tree["splits"]), tree["leaf_values"]
            for at in range(2**depth - 1):
                yield split(tree["splits"][(at + 1).bit_length() - 1], 2 * at + 1, 2 * at + 2)
            for leaf in range(2**depth):  # whose bits are the ways from the root, the first one last
                yield values[int(f"{leaf:0{depth}b}"[::-1], 2)]
            return
        order = [tree]
        for node in order:  # which grows
            if "split" in node:
                yield split(node["split"], len(order), len(order) + 1)
                order += [node["left"], node["right"]]
            else:
                yield node["value"]

    # the bias is added last, as the value of a leaf alone
    parts = [_Nodes.of(list(nodes(tree))) for tree in trees] + [_Nodes.of([bias[0]])]
    return _Forest(len(model.feature_names_), parts)


# --- scikit-learn ----------------------------------------------------------------------------------------------------


def _read_histograms(model: Any) -> _Forest:  # noqa: ANN401
    """Return the trees of a HistGradientBoosting model of scikit-learn, from its arrays of nodes."""
    check_is_fitted(model)
    if model.n_trees_per_iteration_ != 1:
        raise TypeError("a model with a score for each class is no ranker: take a regressor")
    if not hasattr(model, "classes_") and model.loss not in ("squared_error", "absolute_error", "quantile"):
        raise TypeError(f"a {type(model).__name__} with loss={model.loss!r} has no form here")
    place, values = np.arange(model.n_features_in_), {}
    if model._preprocessor is not None:  # which numbers the categories, and puts their columns first
        place = np.concatenate([np.flatnonzero(model.is_categorical_), np.flatnonzero(~model.is_categorical_)])
        known = model._preprocessor.named_transformers_["encoder"].categories_
        if any(categories.dtype.kind not in "biuf" for categories in known):
            raise TypeError(f"the categories of a {type(model).__name__} must be numbers to have a form here")
        values = {j: [float(c) for c in categories if not np.isnan(c)] for j, categories in enumerate(known)}
    trees = [_histogram_tree(one, place, values) for (one,) in model._predictors]
    return _Forest(int(model.n_features_in_), trees, float(np.ravel(model._baseline_prediction)[0]))


def _histogram_tree(predictor: Any, place: IntArray, values: dict[int, list[float]]) -> _Nodes:  # noqa: ANN401
    nodes = predictor.nodes
    features, missing_left, left, right = (
        nodes[name].astype(np.int64) for name in ("feature_idx", "missing_go_to_left", "left", "right")
    )
    leaf, category = nodes["is_leaf"].astype(bool), nodes["is_categorical"].astype(bool)
    if not category.any():
        return _Nodes(
            np.where(leaf, -1, place[features]),
            np.where(leaf, 0.0, nodes["num_threshold"]),
            missing_left.astype(bool) & ~leaf,
            left,
            right,
            np.where(leaf, nodes["value"], 0.0),
        )
    found: list[_Split | float] = []
    for at, feature in enumerate(features.tolist()):
        ways = int(left[at]), int(right[at])
        missing = ways[0] if missing_left[at] else ways[1]
        if leaf[at]:
            found.append(float(nodes["value"][at]))
        elif category[at]:
            chosen = set(_bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][at]]))
            found.append(_histogram_category(int(place[feature]), values[feature], chosen, *ways, missing))
        else:
            found.append(_Split(int(place[feature]), [float(nodes["num_threshold"][at])], [*ways], missing))
    return _Nodes.of(found)


def _histogram_category(
    feature: int, values: Sequence[float], chosen: set[int], left: int, right: int, missing: int
) -> _Split:
    def goes(x: float) -> int:
        at = bisect.bisect_left(values, x)
        known = at < len(values) and values[at] == x
        return missing if not known else left if at in chosen else right

    return _Split.by(feature, [bound for value in values for bound in (_below(value), value)], goes, missing)


def _read_forest(model: Any) -> _Forest:  # noqa: ANN401
    """Return the trees of a forest of scikit-learn, or its single tree; the values of classifiers are shares."""
    check_is_fitted(model)
    classes = np.atleast_1d(model.n_classes_).tolist() if hasattr(model, "classes_") else [2]
    if model.n_outputs_ != 1 or classes[0] > 2:
        raise TypeError("a model with several scores for a row is no ranker: take a regressor")
    if classes[0] < 2:
        raise TypeError(f"a {type(model).__name__} that was fitted to labels of one class has no order of rows")
    trees = getattr(model, "estimators_", [model])
    column = int(hasattr(model, "classes_"))
    return _Forest(
        int(model.n_features_in_),
        [_sklearn_tree(one.tree_, one.tree_.value[:, 0, column]) for one in trees],
        mean=hasattr(model, "estimators_"),
        missing=bool(get_tags(trees[0]).input_tags.allow_nan),
    )


def _in_order(model: Any) -> Any:  # noqa: ANN401
    """Return a forest that adds up its trees in their order, whatever the number of threads of the given one."""
    model = copy.copy(model)
    if hasattr(model, "n_jobs"):
        model.n_jobs, model.verbose = 1, 0
    return model


def _read_gradient_boosting(model: Any) -> _Forest:  # noqa: ANN401
    """Return the trees of a GradientBoosting model of scikit-learn."""
    check_is_fitted(model)
    if model.n_trees_per_iteration_ != 1:
        raise TypeError("a model with a score for each class is no ranker: take a regressor")
    if model.init_ != "zero" and not type(model.init_).__name__.startswith("Dummy"):
        raise TypeError(
            f"a {type(model).__name__} that starts from the scores of init={model.init!r:.80} has no form here"
        )
    d = int(model.n_features_in_)
    start = float(model._raw_predict_init(np.zeros((1, d), np.float32))[0, 0])
    trees = [_sklearn_tree(one.tree_, model.learning_rate * one.tree_.value[:, 0, 0]) for (one,) in model.estimators_]
    return _Forest(d, trees, start, missing=False)


def _sklearn_tree(tree: Any, value: FloatArray) -> _Nodes:  # noqa: ANN401
    """Return the nodes of a tree that compares features in single precision with thresholds in double precision."""
    leaf = tree.children_left < 0
    return _Nodes(
        np.where(leaf, -1, tree.feature),
        np.where(leaf, 0.0, _rounds_up_to(tree.threshold)),
        tree.missing_go_to_left.astype(bool) & ~leaf,
        tree.children_left,
        tree.children_right,
        np.where(leaf, value, 0.0),
    )


def _rounds_up_to(numbers: FloatArray) -> FloatArray:
    """Return the largest doubles that are at most these numbers when they are rounded to single precision."""
    near = numbers.astype(np.float32)
    down, up = np.float32(-np.inf), np.float32(np.inf)
    single = np.where(near > numbers, np.nextafter(near, down), near)
    with np.errstate(over="ignore"):
        following = np.nextafter(single, up).astype(np.float64)
        middle = 0.5 * (single.astype(np.float64) + np.where(following == np.inf, 2.0**128, following))
        return np.where(middle.astype(np.float32) <= single, middle, np.nextafter(middle, -np.inf))


_OF_SKLEARN = {
    "BaseHistGradientBoosting": _read_histograms,
    "BaseGradientBoosting": _read_gradient_boosting,
    "ForestClassifier": _read_forest,
    "ForestRegressor": _read_forest,
    "BaseDecisionTree": _read_forest,
}
