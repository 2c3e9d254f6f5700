"""Models of other libraries in forms that this package saves, scores by and exports: trees, and linear weights.

`TreesRanker.of` reads the estimators and boosters of LightGBM and XGBoost, and of scikit-learn HistGradientBoosting*,
GradientBoosting*, RandomForest*, ExtraTrees* and DecisionTree*. Scores that are linear become a `WeightsRanker`.

*One form of trees.* Every node asks ``x <= t`` in double precision, and missing values go one way. Where a library
asks otherwise (scikit-learn and XGBoost round x to single precision, XGBoost asks ``x < t``, LightGBM takes tiny
numbers for 0), t is replaced by the largest double that goes left. Categories are refused.

*The same digits.* Leaf values are added in the order of the trees (for a forest of scikit-learn that of ``n_jobs=1``)
and in the precision of the library. `TreesRanker.of` compares the scores with those of the model on rows at, beside and
between the thresholds and with missing values, and refuses a model of which one differs in the last digit.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ltr.estimator_names import Estimator
from ltr.native import Trees
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import Ranker, Scored
from ltr.rankers.inputs import FloatArray, framed, linear_scores
from ltr.rankers.onnx import summed

__all__ = ["GivenRanker", "TreesRanker", "WeightsRanker"]

_PROBES = 400  # rows on which trees are compared with their model
_ZERO = float(np.float32(1e-35))  # LightGBM: numbers up to here count as 0
_SEVERAL = "a model with several scores for a row is no ranker: take a regressor or ranker"
_REFUSED = frozenset(' "[]{},:<')  # letters that names of columns must not have in LightGBM or XGBoost, or that change


@dataclass(eq=False, repr=False)
class GivenRanker(Scored, Ranker):
    """A ranker that was made of a fitted model, whose class is `source`; it is not fitted itself."""

    _LEARNS = False

    source: str = ""

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> NoReturn:
        """Raise TypeError."""
        raise TypeError(
            f"a {type(self).__name__} is made of a fitted {self.source or 'model'} and cannot be fitted: fit the model "
            "itself; as the base of two stages pass base_is_fitted=True"
        )


@dataclass(eq=False, repr=False)
class WeightsRanker(GivenRanker):
    """Rank by the linear score of a model of another library, with `coef_` and `intercept_`; made of a fitted model."""

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
    """Rank by the decision trees of a fitted model of LightGBM, XGBoost or scikit-learn.

    It scores as the model does, bit for bit, without the library: boosted classifiers by their log odds, forests and
    single trees by the share of the positive class. Features may be missing (NaN) where the model takes such rows
    (`missing_`). The other attributes are arrays of nodes, each tree after the one before, parents before their
    children: `_HOW` says how they score.

    Examples:
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 3
        >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
        >>> bool((TreesRanker.of(model).predict(X) == model.predict(X)).all())
        True
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
    def of(cls, model: Estimator) -> Self:
        """Return the trees of a fitted model of those that the module lists, with one score for a row.

        Raises TypeError for another model, or one whose trees do not give its scores.
        """
        read = _reader_of(model)
        if read is None:
            known = "LightGBM or XGBoost, or trees, a forest or gradient boosting of scikit-learn"
            raise TypeError(f"model must be a fitted model of {known}, got {model!r:.80}")
        ranker = cls(type(model).__name__)
        ranker._set_trees(read(model))
        if (names := known_names(model)) is not None:
            ranker.feature_names_in_ = np.array(names, dtype=object)
        rows = _probes(ranker)
        own, found = raw_scores(model, rows), ranker._scores(rows)
        if own is None or own.shape != found.shape or not np.array_equal(own, found):
            why = "it has options, or is of a version of its library, that this package does not know"
            raise TypeError(f"the trees of this {type(model).__name__} do not give its scores: {why}")
        return ranker

    def _set_trees(self, forest: _Forest) -> None:
        """Set the arrays of nodes, each tree after the one before."""
        self.n_features_in_ = forest.features
        for at, (name, kind) in enumerate(_KINDS.items()):
            parts = [tree[at] for tree in forest.trees]
            setattr(self, f"{name}_", np.concatenate([np.zeros(0, kind), *parts]).astype(kind))
        sizes = np.array([len(tree[0]) for tree in forest.trees], dtype=np.int64)
        roots = np.cumsum(sizes) - sizes
        for child in (self.left_, self.right_):
            child[:] = np.where(self.feature_ < 0, 0, child + np.repeat(roots, sizes))
        self.roots_, self.start_ = roots.astype(np.int32), float(forest.start)
        self.single_, self.mean_, self.missing_ = forest.single, forest.mean, forest.missing

    @property
    def _may_miss(self) -> bool:
        return self.missing_

    def _scores(self, features: FloatArray) -> FloatArray:
        scores = np.empty(len(features))
        self._trees.add_up(features, self.start_, self.single_, scores)
        return scores / len(self.roots_) if self.mean_ else scores

    @cached_property
    def _trees(self) -> Trees:
        """The compiled form of the nodes, which is checked when it is made."""
        asked = self.feature_, self.threshold_, self.missing_left_.view(np.uint8)
        return Trees(*asked, self.left_, self.right_, self.value_, self.roots_, self.n_features_in_)

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


def known_names(model: Estimator) -> list[str] | None:
    """Return the names of the columns that a model was fitted to, in its order; None where it knows none."""
    reader = _reader_of(model)
    try:
        if reader is _read_lightgbm:
            names = (model if hasattr(model, "feature_name") else model.booster_).feature_name()
            names = None if names == [f"Column_{j}" for j in range(len(names))] else names  # which it makes up
        elif reader is _read_xgboost:
            names = (model if hasattr(model, "feature_names") else model.get_booster()).feature_names
        else:
            names = getattr(model, "feature_names_in_", None)
    except (AttributeError, NotFittedError):
        return None
    return None if names is None else [str(name) for name in names]


def last_step(estimator: Estimator) -> tuple[Any, str]:
    """Return the last step of a pipeline, any other estimator itself, and the prefix of its arguments of ``fit``."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return estimator, prefix


def refuses_names(model: Estimator, names: Sequence[str] | None) -> bool:
    """Return whether the library of a model takes no columns of these names."""
    boosted = _reader_of(model) in (_read_lightgbm, _read_xgboost)
    return boosted and any(set(name) & _REFUSED for name in names or ())


def has_trees(model: Estimator) -> bool:
    """Return whether a model is one of those whose trees this module reads."""
    return _reader_of(model) is not None


def raw_scores(model: Estimator, features: FloatArray) -> FloatArray | None:
    """Return the sums of the leaf values by the model itself, without the function that follows; None for other models.

    Of a boosted classifier they are the log odds, which do not come out equal near 1 as probabilities do; of a forest
    or a tree they are the share of the positive class.
    """
    reader = _reader_of(model)
    if reader is None:
        return None
    rows = framed(features, known_names(model))
    if reader is _read_lightgbm:
        scores = model.predict(rows, raw_score=True)
    elif reader is _read_xgboost and hasattr(model, "get_booster"):
        scores = model.predict(rows, output_margin=True)
    elif reader is _read_xgboost:
        scores = model.inplace_predict(features, predict_type="margin", validate_features=False)
    elif not hasattr(model, "classes_"):
        scores = _in_order(model).predict(rows)
    elif reader is not _read_forest:
        scores = model.decision_function(rows)
    else:
        scores = _in_order(model).predict_proba(rows)
        scores = scores[:, 1] if np.shape(scores)[1:] == (2,) else scores
    return np.asarray(scores, dtype=np.float64)


def _reader_of(model: Estimator) -> Callable[[Any], _Forest] | None:
    """Return the function that reads the trees of a model; None for a model of another library."""
    for kind in type(model).__mro__:
        library, name = kind.__module__.split(".")[0], kind.__name__
        if library == "lightgbm" and name in ("LGBMModel", "Booster"):
            return _read_lightgbm
        if library == "xgboost" and name in ("XGBModel", "Booster"):
            return _read_xgboost
        if library == "sklearn" and name in _OF_SKLEARN:
            return _OF_SKLEARN[name]
    return None


# --- one form of trees -----------------------------------------------------------------------------------------------


_KINDS = {
    "feature": np.int32,
    "threshold": np.float64,
    "missing_left": np.bool_,
    "left": np.int32,
    "right": np.int32,
    "value": np.float64,
}


def _nodes(leaf: NDArray[np.bool_], *arrays: Any) -> tuple[NDArray[Any], ...]:  # noqa: ANN401
    """Return the arrays of `_KINDS` for a tree, from ones that have anything where a leaf or a split has nothing.

    Nodes are numbered from 0, the root, and parents are before their children.
    """
    feature, threshold, missing_left, left, right, value = arrays
    asked = np.where(leaf, -1, feature), np.where(leaf, 0.0, threshold), missing_left.astype(bool) & ~leaf
    return *asked, left, right, np.where(leaf, value, 0.0)


@dataclass(frozen=True)
class _Forest:
    """The trees of a model, what their sum starts from, its precision, and whether it is divided by their number."""

    features: int
    trees: list[tuple[NDArray[Any], ...]]
    start: float = 0.0
    single: bool = False
    mean: bool = False
    missing: bool = True


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


def _check_no_categories(model: Estimator, found: bool) -> None:
    if found:
        raise TypeError(f"a {type(model).__name__} with categories has no form here: make columns of numbers of them")


# --- LightGBM --------------------------------------------------------------------------------------------------------


def _read_lightgbm(model: Estimator) -> _Forest:
    text = (model if hasattr(model, "model_to_string") else model.booster_).model_to_string()
    head, *parts = text.split("end of trees")[0].split("\nTree=")
    facts = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    if int(facts["num_tree_per_iteration"]) != 1:
        raise TypeError(_SEVERAL)
    if "\naverage_output" in head:
        raise TypeError("a LightGBM model with boosting='rf' has no form here")
    trees = [dict(line.split("=", 1) for line in part.splitlines()[1:] if "=" in line) for part in parts]
    if any(facts.get("is_linear", "0") != "0" for facts in trees):
        raise TypeError("a LightGBM model with linear_tree=True has no form here")
    _check_no_categories(model, any(facts["num_cat"] != "0" for facts in trees))
    return _Forest(int(facts["max_feature_idx"]) + 1, [_lightgbm_tree(facts) for facts in trees])


def _lightgbm_tree(facts: dict[str, str]) -> tuple[NDArray[Any], ...]:
    """Return the nodes of a tree: first its splits, then its leaves, which have negative numbers in the text."""
    names = ("split_feature", "decision_type", "left_child", "right_child")
    feature, decision, left, right = (np.array(facts.get(name, "").split(), dtype=np.int64) for name in names)
    threshold = np.array(facts.get("threshold", "").split(), dtype=np.float64)
    values = np.array(facts["leaf_value"].split(), dtype=np.float64)
    if (decision >> 2 == 1).any():
        raise TypeError("a LightGBM model with zero_as_missing=True has no form here")
    splits = len(feature)
    # without a way of their own, missing values count as 0, as tiny ones do
    missing_left = np.where(decision >> 2 == 2, decision & 2 > 0, threshold >= 0)
    tiny = np.abs(threshold) <= _ZERO
    threshold = np.where(tiny, np.where(threshold >= 0, _ZERO, np.nextafter(-_ZERO, -np.inf)), threshold)
    left, right = (np.where(child >= 0, child, splits + ~child) for child in (left, right))
    of_splits = [np.append(array, np.zeros_like(values)) for array in (feature, threshold, missing_left, left, right)]
    leaf = np.arange(splits + len(values)) >= splits
    return _nodes(leaf, *of_splits, np.append(np.zeros(splits), values))


# --- XGBoost ---------------------------------------------------------------------------------------------------------


def _read_xgboost(model: Estimator) -> _Forest:
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
        raise TypeError(_SEVERAL)
    _check_no_categories(model, any(tree["categories_nodes"] for tree in trees["model"]["trees"]))
    given = json.loads(facts["base_score"])  # in a list, since version 3.1
    start = float(np.float32(given[0] if isinstance(given, list) else given))
    objective = learner["objective"]["name"]
    if objective in ("binary:logistic", "reg:logistic", "binary:logitraw"):
        start = -math.log(float(np.float32(1) / np.float32(start) - np.float32(1)))
    elif objective in ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"):
        start = math.log(start)
    found = [_xgboost_tree(tree) for tree in trees["model"]["trees"]]
    return _Forest(int(facts["num_feature"]), found, float(np.float32(start)), single=True)


def _xgboost_tree(tree: dict[str, Any]) -> tuple[NDArray[Any], ...]:
    names = ("split_indices", "default_left", "left_children", "right_children")
    feature, missing_left, left, right = (np.array(tree[name], dtype=np.int64) for name in names)
    number = np.array(tree["split_conditions"], dtype=np.float32)  # the value, in a leaf
    before = _rounds_up_to(np.nextafter(number, np.float32(-np.inf)).astype(np.float64))
    return _nodes(left < 0, feature, before, missing_left, left, right, number.astype(np.float64))


# --- scikit-learn ----------------------------------------------------------------------------------------------------


def _read_histograms(model: Estimator) -> _Forest:
    check_is_fitted(model)
    if model.n_trees_per_iteration_ != 1:
        raise TypeError(_SEVERAL)
    if not hasattr(model, "classes_") and model.loss not in ("squared_error", "absolute_error", "quantile"):
        raise TypeError(f"a {type(model).__name__} with loss={model.loss!r} has no form here")
    _check_no_categories(model, model.is_categorical_ is not None)
    trees, names = [], ("feature_idx", "num_threshold", "missing_go_to_left", "left", "right", "value")
    for (one,) in model._predictors:
        trees.append(_nodes(one.nodes["is_leaf"].astype(bool), *(one.nodes[name] for name in names)))
    return _Forest(int(model.n_features_in_), trees, float(np.ravel(model._baseline_prediction)[0]))


def _read_forest(model: Estimator) -> _Forest:
    """Return the trees of a forest of scikit-learn, or its single tree; the values of classifiers are shares."""
    check_is_fitted(model)
    classes = np.atleast_1d(model.n_classes_).tolist() if hasattr(model, "classes_") else [2]
    if model.n_outputs_ != 1 or classes[0] > 2:
        raise TypeError(_SEVERAL)
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


def _in_order(model: Estimator) -> Estimator:
    """Return a forest that adds up its trees in their order, whatever the number of threads of the given one."""
    if hasattr(model, "n_jobs"):
        model = copy.copy(model)
        model.n_jobs, model.verbose = 1, 0
    return model


def _read_gradient_boosting(model: Estimator) -> _Forest:
    check_is_fitted(model)
    if model.n_trees_per_iteration_ != 1:
        raise TypeError(_SEVERAL)
    if model.init_ != "zero" and not type(model.init_).__name__.startswith("Dummy"):
        what = f"that starts from the scores of init={model.init!r:.80}"
        raise TypeError(f"a {type(model).__name__} {what} has no form here")
    d = int(model.n_features_in_)
    start = float(model._raw_predict_init(np.zeros((1, d), np.float32))[0, 0])
    trees = [_sklearn_tree(one.tree_, model.learning_rate * one.tree_.value[:, 0, 0]) for (one,) in model.estimators_]
    return _Forest(d, trees, start, missing=False)


def _sklearn_tree(tree: Any, value: FloatArray) -> tuple[NDArray[Any], ...]:  # noqa: ANN401
    """Return the nodes of a tree that compares features in single precision with thresholds in double precision."""
    left, right = tree.children_left, tree.children_right
    threshold = _rounds_up_to(tree.threshold)
    return _nodes(left < 0, tree.feature, threshold, tree.missing_go_to_left, left, right, value)


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
