"""Estimators of any library as rankers: how they are fitted to lists, how they score, and what is saved of them.

An estimator is anything with ``fit(X, y)`` and ``decision_function``, ``predict_proba`` or ``predict``, of which the
first one counts. It learns from lists in one of two ways: ``fit(X, y, qid=...)``, or ``fit(X, y, group=...)`` with the
rows of each list together and the sizes of the lists in their order. It may be the base of a `TwoStageRanker`, which
takes it as it is; `EstimatorRanker` gives it all that rankers of this package have.
"""

from __future__ import annotations

import contextlib
import copy
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ltr.checks import by_piece, doubles
from ltr.data.dataset import Features, checked_queries, differ_in_lists
from ltr.demands import Demands
from ltr.estimator_names import EstimatorName
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import FloatArray, IntArray, Ranker, all_or_nothing
from ltr.rankers.baselines import LogisticRegressionRanker
from ltr.rankers.constrained import Demanding
from ltr.rankers.foreign import known_names, named_rows, own_form, places_by_name, raw_scores, rows_to_fit
from ltr.rankers.inputs import linear_scores
from ltr.rankers.surrogate import SurrogateRanker
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

__all__ = ["EstimatorRanker"]

_LIBRARIES = ("sklearn", "lightgbm", "xgboost", "catboost")
_ROUNDS = ("n_estimators", "max_iter")
_FEW = 3  # rounds of a fit that is only to show the form of a model
_AFFINE = ("MaxAbsScaler", "MinMaxScaler", "PCA", "RobustScaler", "SelectKBest", "StandardScaler", "VarianceThreshold")
_MOST_COLUMNS = 1000  # up to which the weights of a pipeline are computed


@dataclass(eq=False, repr=False)
class EstimatorRanker(Demanding, Ranker):
    """Rank by an estimator of another library, or a class of your own.

    It learns from the lists of a `qid` if its ``fit`` takes ``qid`` or ``group``. A linear model, also at the end of a
    pipeline of linear steps, gradient boosting of LightGBM and XGBoost, and the forests, boosted and single trees of
    scikit-learn are saved and exported as rankers of this package are; other models can be pickled.

    Args:
        estimator: an estimator, of which a clone is fitted, or its name: an import path with options, such as
            ``"lightgbm:LGBMRanker(n_estimators=200)"`` or ``"my_rankers:boosted"``, see `ltr.estimator_names`. A saved
            ranker can be fitted again if it has a name.
        seed: seed of an estimator that is named and has none of its own.
        signs, required, forbidden, constraints, max_nonzeros: constraints, as those of `ExactRanker`, which the fitted
            model must satisfy. The estimator learns from the columns that may be used, all others being 0; under
            `max_nonzeros` they are those of a logistic regression under the same constraints. Signs become the monotone
            constraints of scikit-learn's HistGradientBoosting, LightGBM and XGBoost. A model that is not shown to
            satisfy the constraints is refused (`ltr.rankers.demand_checks`).
        statistic, gain, normalize: what `score` reports, see `Ranker`.

    Attributes:
        estimator_: the fitted estimator; None in rankers read from files.
        form_: a ranker of this package that scores as the estimator does; None where there is none.
        unsaved_: why the ranker cannot be saved or exported; empty where it can.
        center_: mean of each column over the training rows, (d,).

    Examples:
        >>> X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
        >>> ranker = EstimatorRanker("sklearn.linear_model:Ridge(alpha=2.0)").fit(X, y)
        >>> ranker.estimator_, ranker.form_
        (Ridge(alpha=2.0, random_state=0), WeightsRanker(source='Ridge'))
    """

    _BY_LIST = True
    _HOW = "score = that of form, which has the weights or trees of the estimator"

    estimator: Any = None
    _: KW_ONLY
    seed: int = 0
    statistic: RankStatistic | str = "dcg"
    gain: GainName = "exp2"
    normalize: bool = False

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> EstimatorRanker:
        """Fit the estimator.

        Args:
            X: features, (n, d), finite.
            y: labels, (n,), 0 and 1 or graded; whole numbers are passed on as integers.
            qid: list of each row, (n,); None means that all rows are one list.
            sample_weight: weight of each row, (n,), >= 0; the estimator's ``fit`` must take it.

        Raises:
            ValueError: data against these rules, an estimator that cannot be made, a fit or scores that fail, or a
                model that is not known to satisfy the constraints.
        """
        self._measure()
        estimator = self._unfitted()
        features, labels, groups, _, _, weights = self._weighted_data(X, y, qid, sample_weight)
        if weights is not None and (refused := weights_refused(estimator, weights, groups)):
            raise ValueError(f"sample_weight: {refused}, or leave the weights out")
        demands = self._demands()
        seen = _bound(estimator, demands, features, labels, weights, self._names) if demands else features
        try:
            self.estimator_: Any = fit_estimator(estimator, seen, labels, groups, weights, names=self._names)
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(f"the fit of {self.kind} failed: {_told(error)}") from error
        self.center_: FloatArray = np.average(features, axis=0, weights=weights)
        self.form_: Ranker | None = None
        self.unsaved_ = ""
        if isinstance(self.estimator_, Ranker):
            self.estimator_._take_names(self)
        try:
            self.form_ = form_of(self.estimator_)
        except TypeError as error:
            self.unsaved_ = str(error)
        if demands:
            from ltr.rankers.demand_checks import refuse_violated

            refuse_violated(self, demands, f"estimator: {self.kind}")
        return self

    def _unfitted(self) -> Any:  # noqa: ANN401 (any estimator)
        if isinstance(self.estimator, str):
            return EstimatorName.parse(self.estimator).make(self.seed)
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            rule = "must be an estimator, or its name to import it by, such as 'lightgbm:LGBMRanker'"
            raise ValueError(f"estimator {rule}, got {self.estimator!r:.80}")
        return clone(self.estimator, safe=False)

    @property
    def kind(self) -> str:
        """Name of the estimator's class, or of what makes the estimator."""
        if isinstance(self.estimator, str):
            return EstimatorName.parse(self.estimator).path.rpartition(":")[2]
        return type(self.estimator).__name__

    @property
    def linear_weights(self) -> FloatArray | None:
        """The weights on the raw features, (d,), by which the scores order rows; None where they are not linear."""
        check_is_fitted(self)
        return None if self.form_ is None else self.form_.linear_weights

    def decision_function(self, X: ArrayLike, qid: ArrayLike | None = None) -> FloatArray:
        """Return the scores of the rows, (n,); `qid` matters only to a ranker with attention over the list."""
        features = self._features(X)
        return self._scores(features, None if qid is None else checked_queries(qid, len(features))[0])

    def predict(self, X: ArrayLike, qid: ArrayLike | None = None) -> FloatArray:
        """Return the scores of `decision_function`, which takes the same arguments."""
        return self.decision_function(X, qid)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "form_")

    def _scores(self, features: Features, lists: IntArray | None = None) -> FloatArray:
        if self.form_ is not None:
            return scores_of(self.form_, features, lists)
        try:
            scores = scores_of(self.estimator_, features, lists, self._names)
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(f"{self.kind} cannot score rows: {_told(error)}") from error
        if not np.isfinite(scores).all():
            row = int(np.argmax(~np.isfinite(scores)))
            raise ValueError(f"{self.kind} must give finite scores, got {scores[row]} in row {row + 1}")
        return scores

    def _placed(self, features: Features, qid: ArrayLike | None) -> tuple[FloatArray, None]:
        return self._scores(features, None if qid is None else checked_queries(qid, len(features))[0]), None

    def _parts(self, features: FloatArray) -> FloatArray | None:
        weights = self.linear_weights
        return None if weights is None else (features - self.center_) * weights

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        return self._saved_form()._scores_in(graph, columns)

    def _saved_form(self) -> Ranker:
        if self.form_ is None:
            raise TypeError(self.unsaved_)
        return self.form_

    def _fitted_state(self) -> dict[str, Any]:
        return {"form": self._saved_form().to_state(), "center_": self.center_}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        self.estimator_, self.unsaved_ = None, ""
        self.form_ = Ranker.from_state(fitted["form"])
        self.center_ = fitted["center_"].numpy()


def _bound(
    estimator: Any,  # noqa: ANN401 (any estimator)
    demands: Demands,
    features: FloatArray,
    labels: FloatArray,
    weights: FloatArray | None,
    names: Sequence[str] | None,
) -> FloatArray:
    """Set the monotone constraints of an estimator that has some; return features in which unused columns are 0."""
    last, _ = last_step(estimator)
    parameters = last.get_params() if hasattr(last, "get_params") else {}
    signs = demands.signs.astype(int).tolist()
    if demands.signs.any() and "monotonic_cst" in parameters:
        last.set_params(monotonic_cst=signs)
    elif demands.signs.any() and type(last).__module__.partition(".")[0] in ("lightgbm", "xgboost"):
        last.set_params(monotone_constraints=tuple(signs) if "xgboost" in type(last).__module__ else signs)
    unused = on_few_columns(demands, features, labels, weights, names).forbidden
    if getattr(last, "_SIGNED_THRESHOLDS", False):
        own = [f"x{j}" for j in range(len(signs))] if names is None else names
        used = np.setdiff1d(np.flatnonzero(np.ptp(features, axis=0)), unused)
        last.set_params(signs={own[j]: "+" if signs[j] > 0 else "-" for j in used.tolist() if signs[j]})
    return np.where(np.isin(np.arange(features.shape[1]), unused), 0.0, features)


def on_few_columns(
    demands: Demands,
    features: FloatArray,
    labels: FloatArray,
    weights: FloatArray | None,
    names: Sequence[str] | None,
    taken: Sequence[int] = (),
) -> Demands:
    """Return demands without `max_nonzeros`: all columns are forbidden that a logistic regression under it leaves out.

    Args:
        demands: the demands; without `max_nonzeros` they are returned as they are.
        features: (n, d).
        labels: (n,).
        weights: weights of the rows, (n,); None where all count alike.
        names: names of the columns, for errors.
        taken: columns that are used in any case, at most `max_nonzeros` of them.
    """
    if demands.max_nonzeros is None:
        return demands
    used, left = np.array(taken, dtype=np.int64), demands.max_nonzeros - len(taken)
    if left > 0:
        required = tuple(j for j in demands.required if j not in taken)
        others = replace(demands, required=required, forbidden=(*demands.forbidden, *taken), max_nonzeros=left)
        linear = LogisticRegressionRanker("auto", **others.parameters)
        linear.fit(rows_to_fit(linear, features, names), labels, sample_weight=weights)
        used = np.append(used, np.flatnonzero(linear.coef_))
    unused = np.setdiff1d(np.arange(features.shape[1]), used)
    return replace(demands, forbidden=tuple(unused.tolist()), max_nonzeros=None)


def _told(error: Exception) -> str:
    """Return an error of someone else's code in one line, with the place where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''} ({Path(last.filename).name}, line {last.lineno})"


# --- fits ------------------------------------------------------------------------------------------------------------


def last_step(estimator: Any) -> tuple[Any, str]:  # noqa: ANN401 (any estimator)
    """Return the last step of a pipeline, any other estimator itself, and the prefix of its arguments of ``fit``."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return estimator, prefix


def _weighs_lists(last: Any) -> bool:  # noqa: ANN401 (any estimator)
    """Return whether an estimator takes one weight for each list, as XGBRanker does."""
    return has_fit_parameter(last, "group") and type(last).__module__.partition(".")[0] == "xgboost"


def weights_refused(
    estimator: Any,  # noqa: ANN401 (any estimator)
    weights: FloatArray,
    lists: IntArray | None,
) -> str:
    """Return why an estimator cannot learn from these weights of rows, and what can; an empty text where it can."""
    last, _ = last_step(estimator)
    if not has_fit_parameter(last, "sample_weight"):
        return (
            f'the fit of the base, {last!r:.80}, takes none; take a base that learns from weights, such as "logistic"'
        )
    if _weighs_lists(last) and differ_in_lists(weights, lists):
        return (
            f"{type(last).__name__} takes weights of queries only, the same for all rows of a qid; take LGBMRanker or "
            "a base of this package"
        )
    return ""


def fit_estimator(
    estimator: Any,  # noqa: ANN401 (any estimator)
    features: Features,
    labels: FloatArray,
    groups: IntArray | None,
    weights: FloatArray | None,
    *,
    requested: bool | None = None,
    names: Sequence[str] | None = None,
) -> Any:  # noqa: ANN401
    """Return an estimator, fitted to rows that are checked already.

    Args:
        estimator: the estimator; it gets a frame where the columns have names.
        features: (n, d).
        labels: (n,).
        groups: list of each row, (n,); None means that all rows are one list.
        weights: weights of the rows, (n,), which the ``fit`` takes; None where all count alike.
        requested: whether it requests a ``qid``, where metadata routing decides that; None where it does not.
        names: names of the columns; None where they have none.
    """
    if not isinstance(estimator, Ranker):
        features = doubles(features)
    last, prefix = last_step(estimator)
    # an estimator that knows groups cannot do without
    takes_group, takes_ids, takes_qid = (has_fit_parameter(last, name) for name in ("group", "group_id", "qid"))
    takes_group = (takes_group or takes_ids) and not isinstance(last, Ranker)  # whose groups are not lists
    learns_from_lists = takes_group or takes_qid
    if requested is not None:
        prefix = ""  # pipelines pass on what their steps request
        learns_from_lists = requested or (takes_group and not takes_qid)
    lists = groups if learns_from_lists else None
    given: dict[str, Any] = {} if weights is None else {f"{prefix}sample_weight": weights}
    # classifiers and boosted trees ask for whole numbers
    y = labels.astype(np.int64) if np.all(labels == np.floor(labels)) else labels
    if takes_group:
        lists = np.zeros(len(y), dtype=np.int64) if lists is None else lists
        order = np.argsort(lists, kind="stable")
        _, first, sizes = np.unique(lists, return_index=True, return_counts=True)
        of = first if _weighs_lists(last) else order
        given = {name: values[of] for name, values in given.items()}
        rows = rows_to_fit(estimator, features[order], names)
        group = {f"{prefix}group_id": lists[order]} if takes_ids else {f"{prefix}group": sizes}
        estimator.fit(rows, y[order], **group, **given)
    else:
        rows = rows_to_fit(estimator, features, names)
        estimator.fit(rows, y, **given, **({} if lists is None else {f"{prefix}qid": lists}))
    _record_columns(estimator, rows)
    return estimator


def _record_columns(estimator: Any, rows: Any) -> None:  # noqa: ANN401 (any estimator, a frame or an array)
    """Record on an estimator that does not do so itself whether it was fitted to a frame or to an array."""
    first = estimator
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    with contextlib.suppress(AttributeError, TypeError):  # objects that take no attributes
        if not hasattr(first, "n_features_in_"):
            first.n_features_in_ = rows.shape[1]
        if not isinstance(rows, np.ndarray) and known_names(estimator) is None:
            first.feature_names_in_ = np.array(rows.columns, dtype=object)


def why_not_saved(
    estimator: Any,  # noqa: ANN401 (any estimator)
    features: FloatArray,
    labels: FloatArray,
    groups: IntArray | None,
) -> str:
    """Return why the model of an estimator will not be saved, an empty text where it will, before its real fit.

    A copy with few rounds is fitted to the rows, of which there should be few. A class of a user's own, whose fit may
    take long, is not: there the answer is that it depends.
    """
    if isinstance(estimator, Ranker):
        return ""
    every = [estimator]
    if hasattr(estimator, "get_params"):
        every += [part for part in estimator.get_params(deep=True).values() if hasattr(part, "fit")]
    if any(type(part).__module__.partition(".")[0] not in _LIBRARIES for part in every):
        return f"the model of {type(estimator).__name__}, a class of your own, is saved only if it is a linear score"
    trial = copy.deepcopy(estimator)
    parameters = trial.get_params(deep=True)
    rounds = [name for name, value in parameters.items() if name.rpartition("__")[2] in _ROUNDS and value is not None]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_estimator(trial.set_params(**dict.fromkeys(rounds, _FEW)), features, labels, groups, None)
    except Exception:  # the real fit will say it
        return ""
    try:
        form_of(trial)
    except (TypeError, ValueError) as error:
        return str(error) if isinstance(error, TypeError) else ""
    return ""


# --- scores ----------------------------------------------------------------------------------------------------------


def scores_of(
    base: Any,  # noqa: ANN401 (any estimator)
    features: Features,
    queries: IntArray | None,
    names: Sequence[str] | None = None,
) -> FloatArray:
    """Return a base ranker's scores of rows that are checked already, (n,).

    Args:
        base: the fitted ranker or estimator.
        features: (n, d).
        queries: list of each row, (n,); None means that all rows are one list.
        names: names of the columns, by which a base that knows names finds its own; None where they go by position.

    Raises:
        ValueError: a column of the base is missing, or the base gives no score for each row.
    """
    places = places_by_name(base, names)
    if places is not None and not np.array_equal(places, np.arange(features.shape[1])):
        features = features[:, places]
    if isinstance(base, Ranker):
        return base._form()._all_scores(features, queries)
    if (linear := _linear_form(base, features.shape[1])) is not None:
        weights, intercept = linear
        return by_piece(lambda rows: linear_scores(rows, weights) + intercept, features)
    return by_piece(lambda rows: _scores_by(base, rows, names), features)


def _scores_by(base: Any, features: FloatArray, names: Sequence[str] | None = None) -> FloatArray:  # noqa: ANN401
    """Return the scores of an estimator by its own methods, (n,), of rows with its columns in its order."""
    scores = raw_scores(base, features)
    if scores is None:
        method = next((name for name in ("decision_function", "predict_proba", "predict") if hasattr(base, name)), None)
        if method is None:
            raise ValueError(f"base must have decision_function, predict_proba or predict, got {base!r}")
        scores = np.asarray(getattr(base, method)(named_rows(base, features, names)), dtype=np.float64)
        if method == "predict_proba" and scores.shape[1:] == (2,):
            scores = scores[:, 1]
    if scores.shape != (len(features),):
        raise ValueError(
            f"base must give one score per row, got shape {scores.shape}: of graded labels take a regressor or ranker"
        )
    return scores


def form_of(base: Any) -> Ranker:  # noqa: ANN401 (any estimator)
    """Return a ranker of this package that scores as a base does.

    Raises:
        TypeError: a base without such a form.
    """
    if isinstance(base, EstimatorRanker):
        return base._saved_form()
    if isinstance(base, Ranker):
        return base._form()
    d = getattr(base, "n_features_in_", None)
    form = own_form(base, None if d is None else _linear_form(base, d))
    if form is None:
        raise TypeError(
            f"a {type(base).__name__} has no form that can be saved or exported. Linear models have one (also "
            "after linear steps of a pipeline), gradient boosting of LightGBM, XGBoost and CatBoost, forests, trees "
            "and gradient boosting of scikit-learn, and the rankers of this package. Pickle the ranker, or save or "
            "export the base by its own means and rank its scores as a column (ScoreColumn)"
        )
    return form


def is_summed(base: Any) -> bool:  # noqa: ANN401 (any estimator)
    """Return whether a graph has a base's scores to the last digit, because both take the same sums."""
    form = base.form_ if isinstance(base, EstimatorRanker) else base
    return not isinstance(form, SurrogateRanker) or form.coef_ is not None


def parts_of_scores(
    base: Any,  # noqa: ANN401 (any estimator)
    features: FloatArray,
    typical: FloatArray,
    names: Sequence[str] | None = None,
) -> FloatArray | None:
    """Return what each column adds to a base ranker's scores, (n, d); None where they are no sum over columns."""
    places = places_by_name(base, names)
    own, typical = (features, typical) if places is None else (features[:, places], typical[places])
    if isinstance(base, Ranker):
        parts = base._parts(own)
    else:
        linear = _linear_form(base, own.shape[1])
        parts = None if linear is None else (own - typical) * linear[0]
    if parts is None or places is None:
        return parts
    every = np.zeros_like(features)
    every[:, places] = parts
    return every


def _linear_form(base: Any, d: int) -> tuple[FloatArray, float] | None:  # noqa: ANN401 (any estimator)
    """Return weights, (d,), and intercept of an estimator whose score is linear in the features; None for others."""
    weights = linear_weights_of(base, d)
    if weights is None:
        return None
    # weights alone do not make a score linear: that of a Poisson regression is exponential in them
    unit = np.sign(weights) / np.maximum(np.abs(weights), 1e-100) / d  # moves a linear score by about 1
    few = [np.zeros((1, d)), np.ones((1, d)), np.eye(min(d, 8), d), 1 + 2 * np.eye(1, d)]
    probes = np.vstack([*few, unit, -2 * unit])
    with np.errstate(over="ignore"):
        scores = _scores_by(base, probes)
    rest = scores - linear_scores(probes, weights)
    if not np.isfinite(rest).all() or np.ptp(rest) > 1e-9 * max(1.0, float(np.abs(scores).max())):
        return None
    return weights, float(scores[0])


def linear_weights_of(base: Any, d: int, names: Sequence[str] | None = None) -> FloatArray | None:  # noqa: ANN401
    """Return the weights of a linear base ranker, to start the exact stage from; None where it has none, (d,).

    Args:
        base: the fitted ranker or estimator.
        d: number of columns.
        names: names of the columns, by which a base that knows names finds its own; None where they go by position.
    """
    if (places := places_by_name(base, names)) is not None:
        own = linear_weights_of(base, len(places))
        every = np.zeros(d)
        every[places] = 0.0 if own is None else own
        return None if own is None else every
    if isinstance(base, Pipeline):
        return _pipeline_weights(base, d)
    weights = getattr(base, "linear_weights", getattr(base, "coef_", None))
    if not isinstance(weights, np.ndarray) or weights.size != d:
        return None
    return weights.astype(np.float64).ravel()


def _pipeline_weights(pipeline: Pipeline, d: int) -> FloatArray | None:
    """Return the weights on the raw features of a linear model after linear steps, such as scaling; None for others."""
    steps = [step for _, step in pipeline.steps[:-1] if step not in (None, "passthrough")]
    if d > _MOST_COLUMNS or not all(map(_is_affine, steps)):
        return None
    columns = np.vstack([np.zeros((1, d)), np.eye(d)])
    for step in steps:
        columns = np.asarray(step.transform(named_rows(step, columns, None)))
    weights = linear_weights_of(pipeline.steps[-1][1], columns.shape[1])
    return None if weights is None else (columns[1:] - columns[0]) @ weights


def _is_affine(step: Any) -> bool:  # noqa: ANN401 (any transformer)
    """Return whether a step is one of those of scikit-learn that are affine for all rows, whatever they learned."""
    known = type(step).__module__.startswith("sklearn.") and type(step).__name__ in _AFFINE
    return known and not getattr(step, "clip", False)
