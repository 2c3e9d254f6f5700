"""Bases of two stages: estimators of any library and columns of scores, how they are fitted and how they score.

An estimator is anything with ``fit(X, y)`` and ``decision_function``, ``predict_proba`` or ``predict``, of which the
first one counts. It learns from lists in one of two ways: ``fit(X, y, qid=...)``, or ``fit(X, y, group=...)`` with the
rows of each list together and the sizes of the lists in their order.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from ltr.checks import by_piece, doubles, is_whole
from ltr.data.dataset import Features, differ_in_lists
from ltr.estimator_names import Estimator
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import Ranker, Scored, all_or_nothing
from ltr.rankers.contract import FloatArray, IntArray
from ltr.rankers.foreign import known_names, named_rows, own_form, places_by_name, raw_scores, rows_to_fit
from ltr.rankers.inputs import LabelledRows, Table, linear_scores

__all__ = ["ScoreColumn"]

_LIBRARIES = ("sklearn", "lightgbm", "xgboost")
_ROUNDS = ("n_estimators", "max_iter")
_FEW = 3  # rounds of a fit that is only to show the form of a model
_AFFINE = ("MaxAbsScaler", "MinMaxScaler", "PCA", "RobustScaler", "SelectKBest", "StandardScaler", "VarianceThreshold")
_MOST_COLUMNS = 1000  # up to which the weights of a pipeline are computed


@dataclass(eq=False, repr=False)
class ScoreColumn(Scored, Ranker):
    """Rank by a column of X, such as the scores of a model trained elsewhere.

    The scores of training rows should be out of fold, by models that have not seen these rows. As the base of a
    `TwoStageRanker` the column is not among the features of the exact stage.

    Args:
        column: index of the column, or its name where X is a frame with names.
        statistic, gain, normalize: what `score` reports, see `Ranker`.

    Attributes:
        index_: index of the column.

    Examples:
        >>> ScoreColumn(1).fit([[0.0, 3.0], [1.0, 2.0]], [1, 0]).predict([[5.0, 7.0]]).tolist()
        [7.0]
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
                have = (
                    f"the columns are {', '.join(map(str, names))}" if names else "X has no column names: use an index"
                )
                raise ValueError(f"column must be the name of a column of X, got {self.column!r}; {have:.300}")
            return list(names).index(self.column)
        if not is_whole(self.column) or not 0 <= self.column < d:
            raise ValueError(f"column must be an index from 0 to {d - 1} or a column's name, got {self.column!r}")
        return int(self.column)

    def others(self, features: FloatArray, names: Sequence[str] | None = None) -> FloatArray:
        """Return the features with 0 in this column, so that it does not vary; `names` are those of the features."""
        places = places_by_name(self, names)
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


# --- fits ------------------------------------------------------------------------------------------------------------


def last_step(estimator: Estimator) -> tuple[Any, str]:
    """Return the last step of a pipeline, any other estimator itself, and the prefix of its arguments of ``fit``."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return estimator, prefix


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


def fit_estimator(
    estimator: Estimator, rows: LabelledRows, *, names: Sequence[str] | None = None, requested: bool | None = None
) -> Estimator:
    """Return an estimator, fitted to rows that are checked already, as a frame where the columns have names.

    A ranker that learns from groups and times gets these as well, and the ``fit`` must take weights where there are
    any. `requested` says whether it requests a ``qid``, where metadata routing decides that.
    """
    own = isinstance(estimator, Ranker)
    features, labels = rows.features if own else doubles(rows.features), rows.labels
    last, prefix = last_step(estimator)
    takes_group, takes_ids, takes_qid = (has_fit_parameter(last, name) for name in ("group", "group_id", "qid"))
    # an estimator that knows groups cannot do without; those of a ranker are not lists
    takes_group = (takes_group or takes_ids) and not isinstance(last, Ranker)
    learns_from_lists = takes_group or takes_qid
    if requested is not None:
        prefix = ""  # pipelines pass on what their steps request
        learns_from_lists = requested or (takes_group and not takes_qid)
    lists = rows.lists if learns_from_lists else None
    units = {"group": rows.groups, "time": rows.times} if own else {}
    given: dict[str, Any] = {name: of for name, of in units.items() if has_fit_parameter(estimator, name)}
    given[f"{prefix}sample_weight"] = rows.weights
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
    table = rows_to_fit(estimator, features, names)
    estimator.fit(table, y, **{name: values for name, values in given.items() if values is not None})
    _record_columns(estimator, table)
    return estimator


def _record_columns(estimator: Estimator, rows: Table) -> None:
    """Record on an estimator that does not do so itself whether it was fitted to a frame or to an array."""
    first = estimator
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    with contextlib.suppress(AttributeError, TypeError):  # objects that take no attributes
        if not hasattr(first, "n_features_in_"):
            first.n_features_in_ = rows.shape[1]
        if not isinstance(rows, np.ndarray) and known_names(estimator) is None:
            first.feature_names_in_ = np.array(rows.columns, dtype=object)


def why_not_saved(estimator: Estimator, features: FloatArray, labels: FloatArray, groups: IntArray | None) -> str:
    """Return why the model of an estimator will not be saved, an empty text where it will, before its real fit.

    A copy with few rounds is fitted to the rows, of which there should be few. A class of a user's own, whose fit may
    take long, is not: there the answer is that it depends.
    """
    if isinstance(estimator, Ranker):
        return ""
    parameters = estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {}
    every = [estimator, *(part for part in parameters.values() if hasattr(part, "fit"))]
    if any(type(part).__module__.partition(".")[0] not in _LIBRARIES for part in every):
        return f"the model of {type(estimator).__name__}, a class of your own, is saved only if it is a linear score"
    trial = copy.deepcopy(estimator)
    rounds = [name for name, value in parameters.items() if name.rpartition("__")[2] in _ROUNDS and value is not None]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_estimator(trial.set_params(**dict.fromkeys(rounds, _FEW)), LabelledRows(features, labels, groups))
    except Exception:  # the real fit will say it
        return ""
    try:
        form_of(trial)
    except (TypeError, ValueError) as error:
        return str(error) if isinstance(error, TypeError) else ""
    return ""


# --- scores ----------------------------------------------------------------------------------------------------------


def scores_of(
    base: Estimator, features: Features, queries: IntArray | None, names: Sequence[str] | None = None
) -> FloatArray:
    """Return a base ranker's scores of rows that are checked already, (n,).

    A base that knows names finds its columns among `names`. Raises ValueError where one of them is missing, or the base
    gives no score for each row.
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


def _scores_by(base: Estimator, features: FloatArray, names: Sequence[str] | None = None) -> FloatArray:
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


def form_of(base: Estimator) -> Ranker:
    """Return a ranker of this package that scores as a base does; raise TypeError for a base without such a form."""
    if isinstance(base, Ranker):
        return base._saved_form()
    d = getattr(base, "n_features_in_", None)
    form = own_form(base, None if d is None else _linear_form(base, d))
    if form is None:
        raise TypeError(
            f"a {type(base).__name__} has no form that can be saved or exported. Linear models have one, gradient "
            "boosting of LightGBM and XGBoost, trees of scikit-learn, and the rankers of this package. Pickle the "
            "ranker, or save the base by its own means and rank its scores as a column (ScoreColumn)"
        )
    return form


def parts_of_scores(
    base: Estimator, features: FloatArray, typical: FloatArray, names: Sequence[str] | None = None
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


def _linear_form(base: Estimator, d: int) -> tuple[FloatArray, float] | None:
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


def linear_weights_of(base: Estimator, d: int, names: Sequence[str] | None = None) -> FloatArray | None:
    """Return the weights of a linear base ranker, (d,), to start the exact stage from; None where it has none."""
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


def _is_affine(step: Estimator) -> bool:
    """Return whether a step is one of those of scikit-learn that are affine for all rows, whatever they learned."""
    known = type(step).__module__.startswith("sklearn.") and type(step).__name__ in _AFFINE
    return known and not getattr(step, "clip", False)
