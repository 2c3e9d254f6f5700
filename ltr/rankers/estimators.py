"""Estimators of any library as rankers, and rankers by name."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ltr.checks import doubles, named_object, read_call
from ltr.data.dataset import Features
from ltr.estimator_names import Estimator, EstimatorName
from ltr.losses import RankingLoss, parse_loss
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import Ranker, Scored, all_or_nothing
from ltr.rankers.baselines import LogisticRegressionRanker, RankBoostRanker
from ltr.rankers.bases import fit_estimator, form_of, last_step, scores_of, weights_refused
from ltr.rankers.constraint_checks import kind_of, refuse_violated
from ltr.rankers.contract import FloatArray, IntArray
from ltr.rankers.foreign import rows_to_fit
from ltr.rankers.inputs import LabelledRows
from ltr.rankers.surrogate import SurrogateRanker
from ltr.weight_constraints import Constrained, RankerKind, WeightConstraints

__all__ = ["EstimatorRanker", "make_ranker"]

_CARD = "ltr.cards:CardRanker(max_questions=3)"  # which takes a fraction of a second to find


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
            become monotone constraints. A model that is not shown to satisfy the constraints is refused
            (`ltr.rankers.constraint_checks`).
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

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> EstimatorRanker:
        """Fit the estimator, with the arguments of `Ranker`; labels that are whole numbers are passed on as integers.

        Raises ValueError for a fit or scores that fail, or a model that is not known to satisfy the constraints.
        """
        self._measure()
        estimator = self._unfitted()
        rows = self._weighted_data(X, y, qid, sample_weight)
        if rows.weights is not None and (refused := weights_refused(estimator, rows.weights, rows.lists)):
            raise ValueError(f"sample_weight: {refused}, or leave the weights out")
        constraints = self._weight_constraints()
        seen = _bound(estimator, constraints, rows, self._names) if constraints else rows.features
        with _as_value_error(f"the fit of {self.kind} failed"):
            self.estimator_: Any = fit_estimator(estimator, replace(rows, features=seen), names=self._names)
        self.center_: FloatArray = np.average(rows.features, axis=0, weights=rows.weights)
        self.form_: Ranker | None = None
        self.unsaved_ = ""
        if isinstance(self.estimator_, Ranker):
            self.estimator_._take_names(self)
        try:
            self.form_ = form_of(self.estimator_)
        except TypeError as error:
            self.unsaved_ = str(error)
        if constraints:
            refuse_violated(self, constraints, f"estimator: {self.kind}")
        return self

    def _unfitted(self) -> Estimator:
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "form_")

    @property
    def _kind(self) -> RankerKind:
        return "trees" if kind_of(self._unfitted()) == "trees" else "other"

    def _scores(self, features: Features, lists: IntArray | None = None) -> FloatArray:
        if self.form_ is not None:
            return scores_of(self.form_, features, lists)
        with _as_value_error(f"{self.kind} cannot score rows"):
            scores = scores_of(self.estimator_, features, lists, self._names)
        if not np.isfinite(scores).all():
            row = int(np.argmax(~np.isfinite(scores)))
            raise ValueError(f"{self.kind} must give finite scores, got {scores[row]} in row {row + 1}")
        return scores

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
        linear.fit(rows_to_fit(linear, doubles(rows.features), names), rows.labels, sample_weight=rows.weights)
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
    """Return the ranker of a name with default parameters.

    Names are ``"logistic"`` or ``"logistic_regression"``, ``"rankboost"``, ``"card"`` for the best card of three
    questions, a loss for a `SurrogateRanker`, such as ``"p_norm_push(p=2)"``, or an estimator of another library for an
    `EstimatorRanker`, such as ``"lightgbm:LGBMRanker(n_estimators=200)"``. Others raise ValueError.

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
        if names_estimator(name):
            EstimatorName.parse(name)
            return EstimatorRanker(name, seed=seed)
        parse_loss(name)
    except (TypeError, ValueError) as error:
        rule = "logistic, rankboost, card, the name of a loss, or module:Class of an estimator"
        raise ValueError(f"ranker must be {rule}, got {name!r} ({error})") from None
    return SurrogateRanker(name, seed=seed)


def names_estimator(name: str) -> bool:
    """Return whether a text is an import path that leads to an estimator, not to a loss of a user's own.

    Raises ValueError for an import path that leads nowhere.
    """
    if ":" not in name:
        return False
    path, _ = read_call("ranker", name)
    found = named_object(f"ranker {path}", path)
    return not (isinstance(found, type) and issubclass(found, RankingLoss))
