"""Estimators of any library as rankers, and rankers by name.

An estimator is anything with ``fit(X, y)`` and ``decision_function``, ``predict_proba`` or ``predict``, of which the
first one counts. It learns from lists in one of two ways: ``fit(X, y, qid=...)``, or ``fit(X, y, group=...)`` with the
rows of each list together and the sizes of the lists in their order.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ltr.checks import by_piece, doubles, named_object, read_call
from ltr.data.dataset import Features, differ_in_lists
from ltr.estimator_names import Estimator, EstimatorName
from ltr.losses import RankingLoss, parse_loss
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import Ranker, Scored, all_or_nothing, fit_to
from ltr.rankers.baselines import LogisticRegressionRanker, RankBoostRanker
from ltr.rankers.constraint_checks import kind_of, refuse_violated
from ltr.rankers.foreign import (
    GivenRanker,
    TreesRanker,
    WeightsRanker,
    has_trees,
    known_names,
    last_step,
    raw_scores,
    refuses_names,
)
from ltr.rankers.inputs import FloatArray, IntArray, LabelledRows, framed, linear_scores
from ltr.rankers.surrogate import SurrogateRanker
from ltr.weight_constraints import Constrained, RankerKind, WeightConstraints

__all__ = ["EstimatorRanker", "make_ranker"]

_CARD = "ltr.cards:CardRanker(max_questions=3)"  # which takes a fraction of a second to find
_SCORING = ("decision_function", "predict_proba", "predict")
_AFFINE = ("MaxAbsScaler", "MinMaxScaler", "PCA", "RobustScaler", "SelectKBest", "StandardScaler", "VarianceThreshold")
_MANY_ROWS = 5_000  # that trees score faster once they are read
_MOST_COLUMNS = 1000  # up to which the weights of a pipeline are computed


@dataclass(eq=False, repr=False)
class EstimatorRanker(Constrained, Scored, Ranker):
    """Rank by an estimator of another library, or a class of your own.

    It learns from the lists of a `qid` if its ``fit`` takes ``qid`` or ``group``. A linear model, also at the end of a
    pipeline of linear steps, gradient boosting of LightGBM and XGBoost, and the forests, boosted and single trees of
    scikit-learn are saved and exported as rankers of this package are; other models can be pickled.

    Args:
        estimator: an estimator, of which a clone is fitted, or its name: an import path with options, such as
            ``"lightgbm:LGBMRanker(n_estimators=200)"`` or ``"my_rankers:boosted"``, see `ltr.estimator_names`. A saved
            ranker can be fitted again if it has a name.
        seed: seed of an estimator that is named and has none of its own.
        signs, required, forbidden, constraints, max_nonzeros: as those of `ExactRanker`. The estimator learns from the
            columns that may be used, under `max_nonzeros` those of a logistic regression, all others being 0. Signs
            become monotone constraints. A model not shown to satisfy the constraints is refused
            (`ltr.rankers.constraint_checks`).
        statistic, gain, normalize: what `score` reports, see `Ranker`.

    Attributes:
        estimator_: the fitted estimator; None in rankers read from files.
        form_: a ranker of this package that scores as the estimator does; None where there is none.
        unsaved_: why the ranker cannot be saved or exported; empty where it can.
        center_: mean of each column over the training rows, (d,).

    Examples:
        >>> X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
        >>> EstimatorRanker("sklearn.linear_model:Ridge(alpha=2.0)").fit(X, y).form_
        WeightsRanker(source='Ridge')
    """

    _BY_LIST = True
    _HOW = "score = that of form_, which has the weights or trees of the estimator"
    _requested = cast("bool | None", None)  # whether the estimator requests a qid, where metadata routing decides that

    estimator: Any = None
    _: KW_ONLY
    seed: int = 0

    @all_or_nothing
    def fit(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None
    ) -> EstimatorRanker:
        """Fit the estimator, with the arguments of `Ranker`; labels that are whole numbers are passed on as integers.

        Raises ValueError for a fit that fails, or a model that is not known to satisfy the constraints.
        """
        self._measure()
        estimator = self._unfitted()
        rows = self._weighted_data(X, y, qid, sample_weight)
        if rows.weights is not None and (refused := weights_refused(estimator, rows.weights, rows.lists)):
            raise ValueError(f"sample_weight: {refused}, or leave the weights out")
        constraints = self._weight_constraints()
        seen = _bound(estimator, constraints, rows, self._names) if constraints else rows.features
        self.center_: FloatArray = np.average(rows.features, axis=0, weights=rows.weights)
        with _as_value_error(f"the fit of {self._class_name} failed"):
            self._set(estimator, named=self._fit_estimator(estimator, replace(rows, features=seen)))
        if isinstance(estimator, Ranker):
            estimator._take_names(self)
        if constraints:
            remedy = "; LogisticRegressionRanker and linear losses such as ranknet are fitted under them"
            refuse_violated(self, constraints, f"estimator: {self._class_name}", remedy)
        return self

    @classmethod
    def of(cls, model: Estimator, features: Features, names: Sequence[str] | None) -> EstimatorRanker:
        """Return the ranker of a fitted model.

        Its columns are those that the model knows by name, otherwise those of the features, (n, d).
        """
        ranker, own = cls(model), known_names(model)
        if own is None and not hasattr(model, "n_features_in_"):  # it does not say what it was fitted to
            own = None if names is None else list(names)
        elif own is not None and names is not None:  # LightGBM writes _ for spaces
            spelled = {name.replace(" ", "_"): name for name in names} | {name: name for name in names}
            own = [spelled.get(name, name) for name in own]
        if own is not None:
            ranker.feature_names_in_ = np.array(own, dtype=object)
        ranker.n_features_in_ = int(getattr(model, "n_features_in_", len(own or features.T)))
        places = ranker._places(names)
        ranker.center_ = (features if places is None else features[:, places]).mean(axis=0, dtype=np.float64)
        ranker._set(model, named=own is not None)
        ranker._LEARNS = hasattr(model, "fit")
        return ranker

    def _set(self, fitted: Estimator, *, named: bool) -> None:
        """Set the fitted estimator, which takes frames where its columns are `named`."""
        self.estimator_: Any = fitted
        self._named = named
        self.__dict__.pop("_read", None)  # of an earlier fit

    def _unfitted(self) -> Estimator:
        if isinstance(self.estimator, str):
            return EstimatorName.parse(self.estimator).make(self.seed)
        if self.estimator is None:
            raise TypeError(
                "the ranker is made of a fitted model and cannot be fitted: fit the model itself; as the base of two "
                "stages pass base_is_fitted=True"
            )
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            rule = "must be an estimator, or its name to import it by, such as 'lightgbm:LGBMRanker'"
            raise ValueError(f"estimator {rule}, got {self.estimator!r:.80}")
        return clone(self.estimator, safe=False)

    def _fit_estimator(self, estimator: Estimator, rows: LabelledRows) -> bool:
        """Fit an estimator, as a frame where the columns have names, and return whether it got one."""
        if isinstance(estimator, Ranker):
            fit_to(estimator, framed(rows.features, self._names), rows)
            return self._names is not None
        last, prefix = last_step(estimator)
        takes_group, takes_ids, takes_qid = (has_fit_parameter(last, name) for name in ("group", "group_id", "qid"))
        # an estimator that knows groups cannot do without; those of a ranker are not lists
        takes_group = (takes_group or takes_ids) and not isinstance(last, Ranker)
        learns_from_lists = takes_group or takes_qid
        if self._requested is not None:
            prefix = ""  # pipelines pass on what their steps request
            learns_from_lists = self._requested or (takes_group and not takes_qid)
        features, labels, lists = rows.features, rows.labels, rows.lists if learns_from_lists else None
        given: dict[str, Any] = {f"{prefix}sample_weight": rows.weights}
        # classifiers and boosted trees ask for whole numbers
        y = labels.astype(np.int64) if np.all(labels == np.floor(labels)) else labels
        if takes_group:
            lists = np.zeros(len(y), dtype=np.int64) if lists is None else lists
            order = np.argsort(lists, kind="stable")
            _, first, sizes = np.unique(lists, return_index=True, return_counts=True)
            of_weights = first if _weighs_lists(last) else order
            features, y = features[order], y[order]
            given = {name: None if values is None else values[of_weights] for name, values in given.items()}
            given |= {f"{prefix}group_id": lists[order]} if takes_ids else {f"{prefix}group": sizes}
        else:
            given[f"{prefix}qid"] = lists
        names = None if refuses_names(estimator, self._names) else self._names
        given = {name: value for name, value in given.items() if value is not None}
        estimator.fit(framed(features, names), y, **given)
        return names is not None

    @property
    def _class_name(self) -> str:
        if isinstance(self.estimator, str):
            return EstimatorName.parse(self.estimator).path.rpartition(":")[2]
        if self.estimator is not None:
            return type(self.estimator).__name__
        return self.form_.source if isinstance(self.form_, GivenRanker) else type(self.form_).__name__

    @property
    def linear_weights(self) -> FloatArray | None:
        """The weights on the raw features, (d,), by which the scores order rows; None where they are not linear."""
        check_is_fitted(self)
        return None if self._has_trees or self.form_ is None else self.form_.linear_weights

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    @property
    def _kind(self) -> RankerKind:
        return "trees" if kind_of(self._unfitted()) == "trees" else "other"

    # forms and scores

    @property
    def form_(self) -> Ranker | None:
        """A ranker of this package that scores as the estimator does; None where there is none."""
        return self._read[0]

    @property
    def unsaved_(self) -> str:
        """Why the ranker cannot be saved or exported; empty where it can."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[Ranker | None, str]:
        model = self.estimator_
        try:
            if isinstance(model, Ranker):
                return model._saved_form(), ""
            if self._has_trees:
                form: GivenRanker = TreesRanker.of(model)
            elif (linear := self._linear_form()) is not None:
                form = WeightsRanker(type(model).__name__)
                form.coef_, form.intercept_ = linear
            else:
                raise TypeError(
                    f"a {type(model).__name__} has no form that can be saved or exported. Linear models have one, "
                    "gradient boosting of LightGBM and XGBoost, trees of scikit-learn, and the rankers of this "
                    "package. Pickle the ranker, or save the base by its own means and rank its scores as a column "
                    "(ScoreColumn)"
                )
        except TypeError as error:
            return None, str(error)
        form._take_names(self)
        return form, ""

    @property
    def _has_trees(self) -> bool:
        return has_trees(self.estimator_)

    def _linear_form(self) -> tuple[FloatArray, float] | None:
        """Return weights, (d,), and intercept of an estimator whose score is linear in the features, else None."""
        d = self.n_features_in_
        weights = _weights_of(self.estimator_, d)
        if weights is None:
            return None
        # weights alone do not make a score linear: that of a Poisson regression is exponential in them
        unit = np.sign(weights) / np.maximum(np.abs(weights), 1e-100) / d  # moves a linear score by about 1
        few = [np.zeros((1, d)), np.ones((1, d)), np.eye(min(d, 8), d), 1 + 2 * np.eye(1, d)]
        probes = np.vstack([*few, unit, -2 * unit])
        with np.errstate(over="ignore"):
            scores = self._own_scores(probes)
        rest = scores - linear_scores(probes, weights)
        if not np.isfinite(rest).all() or np.ptp(rest) > 1e-9 * max(1.0, float(np.abs(scores).max())):
            return None
        return weights, float(scores[0])

    def _own_scores(self, features: FloatArray) -> FloatArray:
        """Return the scores of the estimator by its own methods, (n,)."""
        model = self.estimator_
        scores = raw_scores(model, features)
        if scores is None:
            method = next((name for name in _SCORING if hasattr(model, name)), None)
            if method is None:
                raise ValueError(f"base must have decision_function, predict_proba or predict, got {model!r}")
            names = (known_names(model) or self._names) if self._named else None
            scores = np.asarray(getattr(model, method)(framed(features, names)), dtype=np.float64)
            if method == "predict_proba" and scores.shape[1:] == (2,):
                scores = scores[:, 1]
        if scores.shape != (len(features),):
            told = "of graded labels take a regressor or ranker"
            raise ValueError(f"base must give one score per row, got shape {scores.shape}: {told}")
        return scores

    def _scores(self, features: Features, lists: IntArray | None = None) -> FloatArray:
        # reading trees takes longer than a few scores
        unread = self._has_trees and "_read" not in vars(self) and len(features) < _MANY_ROWS
        if not unread and self.form_ is not None:
            return self.form_._all_scores(features, lists)
        with _as_value_error(f"{self._class_name} cannot score rows"):
            scores = by_piece(self._own_scores, features)
        if not np.isfinite(scores).all():
            row = int(np.argmax(~np.isfinite(scores)))
            raise ValueError(f"{self._class_name} must give finite scores, got {scores[row]} in row {row + 1}")
        return scores

    def _saved_form(self) -> Ranker:
        if self.form_ is None:
            raise TypeError(self.unsaved_)
        return self.form_

    def _parts(self, features: FloatArray) -> FloatArray | None:
        if self._has_trees or self.form_ is None:
            return None
        weights = self.form_.linear_weights
        return self.form_._parts(features) if weights is None else (features - self.center_) * weights

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        return self._saved_form()._scores_in(graph, columns)

    def _fitted_state(self) -> dict[str, Any]:
        return {"form_": self._saved_form(), "center_": self.center_}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        self._set(None, named=False)
        self._read, self.center_ = (fitted["form_"], ""), fitted["center_"].numpy()


# --- estimators ------------------------------------------------------------------------------------------------------


def _weighs_lists(last: Estimator) -> bool:
    """Return whether an estimator takes one weight for each list, as XGBRanker does."""
    return has_fit_parameter(last, "group") and type(last).__module__.partition(".")[0] == "xgboost"


def weights_refused(estimator: Estimator, weights: FloatArray, lists: IntArray | None) -> str:
    """Return why an estimator cannot learn from these weights of rows, and what can; an empty text where it can."""
    last, _ = last_step(estimator)
    if not has_fit_parameter(last, "sample_weight"):
        return f"the fit of the base, {last!r:.80}, takes none; take one that learns from weights, such as logistic"
    if _weighs_lists(last) and differ_in_lists(weights, lists):
        return f"{type(last).__name__} takes weights of queries only, the same for all rows of a qid; take LGBMRanker"
    return ""


def _weights_of(model: Estimator, d: int) -> FloatArray | None:
    """Return the weights of the features, (d,), of a model with weights, also after linear steps; None for others."""
    if not isinstance(model, Pipeline):
        weights = getattr(model, "linear_weights", getattr(model, "coef_", None))
        return weights.astype(np.float64).ravel() if isinstance(weights, np.ndarray) and weights.size == d else None
    steps = [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
    for step in steps:  # those of scikit-learn that are affine for all rows, whatever they learned
        known = type(step).__module__.startswith("sklearn.") and type(step).__name__ in _AFFINE
        if not known or getattr(step, "clip", False):
            return None
    if not steps:
        return _weights_of(model.steps[-1][1], d)
    if d > _MOST_COLUMNS:
        return None
    columns = np.vstack([np.zeros((1, d)), np.eye(d)])
    for step in steps:
        columns = np.asarray(step.transform(framed(columns, known_names(step))))
    weights = _weights_of(model.steps[-1][1], columns.shape[1])
    return None if weights is None else (columns[1:] - columns[0]) @ weights


def _bound(
    estimator: Estimator, constraints: WeightConstraints, rows: LabelledRows, names: Sequence[str] | None
) -> FloatArray:
    """Set the monotone constraints of an estimator that has some; return features in which unused columns are 0."""
    last, _ = last_step(estimator)
    parameters = last.get_params() if hasattr(last, "get_params") else {}
    signs = constraints.signs.astype(int).tolist()
    if constraints.signs.any() and "monotonic_cst" in parameters:
        last.set_params(monotonic_cst=signs)
    elif constraints.signs.any() and type(last).__module__.partition(".")[0] in ("lightgbm", "xgboost"):
        last.set_params(monotone_constraints=tuple(signs) if "xgboost" in type(last).__module__ else signs)
    features = doubles(rows.features)
    unused = on_few_columns(constraints, rows, names).forbidden
    if isinstance(last, Ranker) and last._kind == "trees":
        own = [f"x{j}" for j in range(len(signs))] if names is None else names
        used = np.setdiff1d(np.flatnonzero(np.ptp(features, axis=0)), unused)
        last.set_params(signs={own[j]: "+" if signs[j] > 0 else "-" for j in used.tolist() if signs[j]})
    return np.where(np.isin(np.arange(features.shape[1]), unused), 0.0, features)


def on_few_columns(
    constraints: WeightConstraints, rows: LabelledRows, names: Sequence[str] | None, taken: Sequence[int] = ()
) -> WeightConstraints:
    """Return constraints without `max_nonzeros`: columns that a logistic regression under it leaves out are forbidden.

    The columns `taken`, at most `max_nonzeros`, are used in any case.
    """
    if constraints.max_nonzeros is None:
        return constraints
    used, left = np.array(taken, dtype=np.int64), constraints.max_nonzeros - len(taken)
    if left > 0:
        required = tuple(j for j in constraints.required if j not in taken)
        others = replace(constraints, required=required, forbidden=(*constraints.forbidden, *taken), max_nonzeros=left)
        linear = LogisticRegressionRanker("auto", **others.parameters)
        linear.fit(framed(doubles(rows.features), names), rows.labels, sample_weight=rows.weights)
        used = np.append(used, np.flatnonzero(linear.coef_))
    unused = np.setdiff1d(np.arange(rows.features.shape[1]), used)
    return replace(constraints, forbidden=tuple(unused.tolist()), max_nonzeros=None)


@contextlib.contextmanager
def _as_value_error(what: str) -> Iterator[None]:
    """Turn an error of someone else's code into a ValueError of one line, with the place where it was raised."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        lines = str(error).strip().splitlines()
        place = f"({Path(last.filename).name}, line {last.lineno})"
        raise ValueError(f"{what}: {type(error).__name__}: {lines[0] if lines else ''} {place}") from error


def make_ranker(name: str, *, seed: int = 0) -> Ranker:
    """Return the ranker of a name with default parameters; others raise ValueError.

    Names are ``"logistic"`` or ``"logistic_regression"``, ``"rankboost"``, ``"card"`` for the best card of three
    questions, a loss for a `SurrogateRanker`, such as ``"p_norm_push(p=2)"``, or an estimator of another library for an
    `EstimatorRanker`, such as ``"lightgbm:LGBMRanker(n_estimators=200)"``.

    Examples:
        >>> make_ranker("hinge")
        SurrogateRanker(loss='hinge')
    """
    if name in ("logistic", "logistic_regression"):
        return LogisticRegressionRanker()
    if name == "rankboost":
        return RankBoostRanker()
    if name == "card":
        return EstimatorRanker(_CARD)
    try:
        if ":" in name:  # an estimator, or a loss of a user's own
            path, _ = read_call("ranker", name)
            found = named_object(f"ranker {path}", path)
            if not (isinstance(found, type) and issubclass(found, RankingLoss)):
                EstimatorName.parse(name)
                return EstimatorRanker(name, seed=seed)
        parse_loss(name)
    except (TypeError, ValueError) as error:
        rule = "logistic, rankboost, card, the name of a loss, or module:Class of an estimator"
        raise ValueError(f"ranker must be {rule}, got {name!r} ({error})") from None
    return SurrogateRanker(name, seed=seed)
