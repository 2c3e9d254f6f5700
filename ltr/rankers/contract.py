"""What every ranker says of itself, by which the functions over rankers save, export, show, explain and check them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ltr.checks import by_piece, check_flag, doubles, one_of
from ltr.data.dataset import (
    Features,
    checked_features,
    checked_groups,
    checked_queries,
    checked_weights,
    labels_agree,
)
from ltr.data.preparation import TablePreparation
from ltr.data.problems import listed
from ltr.data.times import checked_times
from ltr.metrics.ranked import Ties
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.calibration import Calibration
from ltr.rankers.choice import PartScores
from ltr.rankers.inputs import LabelledRows, Table, column_names, columns_by_name, labels_and_lists
from ltr.ranks import GainName
from ltr.statistics import RankStatistic
from ltr.weight_constraints import RankerKind

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FloatArray", "IntArray", "Qid", "RankerContract", "fit_to"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Qid = ArrayLike | EllipsisType | None
"""The list of each row; None where all rows are one list, and ``...``, the default, where nothing is said."""
_AS_IS: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": False}
_R = TypeVar("_R", bound="RankerContract")


class RankerContract(BaseEstimator):
    """The methods by which `Ranker` and the functions over rankers learn of a ranker, see `Ranker`."""

    statistic: RankStatistic | str
    gain: GainName
    normalize: bool
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    preparation_: TablePreparation | None = None
    calibration_: Calibration | None = None
    _by_list: bool = False  # whether the fit had queries

    _LEARNS: ClassVar[bool] = True  # whether `fit` learns from the rows
    _FITTED: ClassVar[tuple[str, ...]] = ()
    _BY_LIST: ClassVar[bool] = False  # whether `_scores` takes all rows at once, as `Features`, and their lists
    _TAKES_SINGLES: ClassVar[bool] = False  # whether `fit` takes float32 as it is, and not as float64
    _NOT_COPIED: ClassVar[tuple[str, ...]] = ()  # training data and callbacks, which are None in copies and pickles
    _HOW: ClassVar[str] = ""  # how to score by what is in a file, for readers of other languages

    @property
    def linear_weights(self) -> FloatArray | None:
        """The weights on the raw features, (d,), by which the scores order rows; None for others than linear scores."""
        check_is_fitted(self)
        return getattr(self, "coef_", None)

    # what a subclass says, beside its parameters and its fit

    def _scores(self, features: FloatArray) -> FloatArray:
        """Return the scores of rows that are checked already, (n,)."""
        raise NotImplementedError

    def _placed(self, features: Features, qid: ArrayLike | None) -> tuple[FloatArray, NDArray[np.bool_] | None]:
        """Return scores that order the rows of each list, and which rows were reranked; None without a second stage."""
        lists = checked_queries(qid, len(features))[0] if self._BY_LIST and qid is not None else None
        return self._all_scores(features, lists), None

    def _lists_of_scores(self, method: str, qid: Qid) -> ArrayLike | None:
        """Return the lists that a caller gave to a method whose answer depends on them only where scores do."""
        return None if isinstance(qid, EllipsisType) else qid

    @property
    def _may_miss(self) -> bool:
        """Whether features may be missing (NaN) in rows to be scored."""
        return False

    @property
    def _ties(self) -> Ties:
        """How `score` treats ties."""
        return "resolved"

    def _parts(self, features: FloatArray) -> FloatArray | None:
        """Return what each column adds to the scores, (n, d), up to a constant; None where they are no such sum."""
        weights = self.linear_weights
        return None if weights is None else (features - self._typical) * weights

    @property
    def _typical(self) -> FloatArray:
        """The mean of the training rows, (d,), 0 where it is not known."""
        return getattr(self, "center_", np.zeros(self.n_features_in_))

    def _module_weights(self) -> FloatArray | None:
        """Return the weights of the columns in `to_torch`; None for a score that is not linear."""
        return self.linear_weights

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        """Return the scores, (n,), of features, (d, n), in a graph; the counterpart of `_scores`."""
        raise TypeError(
            f"a {type(self).__name__} has no ONNX form: it needs a method _scores_in, as SurrogateRanker has"
        )

    def _placed_in(self, graph: OnnxGraph, columns: str) -> tuple[str, str | None]:
        """Return scores and which rows are reranked for features, (d, n), in a graph; the counterpart of `_placed`."""
        return self._scores_in(graph, columns), None

    def _columns_in(self, graph: OnnxGraph, preparation: TablePreparation | None) -> str:
        """Return the features, (d, n), of the inputs of a graph."""
        if preparation is None:
            return graph.matrix(self._names, self.n_features_in_)
        self._check_prepared(preparation)
        return graph.table(preparation)

    def _fitted_state(self) -> dict[str, Any]:
        """Return what a fit found, by name."""
        return {name: getattr(self, name) for name in self._FITTED}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        """Set what `_fitted_state` returned, tensors in place of arrays."""
        if set(fitted) != set(self._FITTED):
            raise KeyError(f"fitted must hold {', '.join(self._FITTED)}, got {', '.join(fitted)}")
        for name, value in fitted.items():
            setattr(self, name, value.numpy() if isinstance(value, torch.Tensor) else value)

    def _a_row(self) -> FloatArray:
        """Return a row of zeros as `_scores` takes it, (1, d)."""
        return np.zeros((1, self.n_features_in_))

    def _rows_to_fit(self, X: Table, features: Features) -> Any:  # noqa: ANN401 (a frame of any library, or an array)
        """Return what to fit a clone to: the features of X, as a frame where they have names."""
        import pandas as pd

        return features if self._names is None else pd.DataFrame(features, columns=self._names)

    def _for_other_rows(self) -> Self:
        """Return a ranker like this one, not yet fitted, without options that are about the rows of this fit."""
        return clone(self)

    def _held_out_scores(self, table: Table, rows: LabelledRows, parts: IntArray) -> FloatArray:
        """Return scores of rows by clones that have not seen them, on the scale of this ranker's; see `calibrate`."""
        own, _ = self._placed(rows.features, rows.lists)
        scores = np.empty(len(parts))
        for part in range(parts.max() + 1):
            seen, held = parts != part, parts == part
            other = fit_to(self._for_other_rows(), table, rows, seen)
            found, _ = other._placed(other._features(table), rows.lists)
            scores[held] = PartScores.of(found, seen).on_the_scale_of(own)[held]
        return scores

    @property
    def _kind(self) -> RankerKind:
        """What a fit can promise of columns, see `ltr.rankers.constraint_checks`."""
        return "other"

    def _monotone(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]] | None:
        """Return which columns a score that is not linear depends on, and in which it never falls and never rises.

        Each is (d,); None where that is not known.
        """
        return None

    def _first_order(self, features: Features, qid: ArrayLike | None) -> tuple[str, FloatArray | None]:
        """Return the name of the order that is drawn first in a figure of a list, and its scores if others follow."""
        return type(self).__name__.removesuffix("Ranker"), None

    def _explained(
        self, values: pd.DataFrame, rows: pd.DataFrame
    ) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None, str] | None:
        """Return ``frame``, ``values``, ``base`` and ``note`` of the `Explanation` of rows whose places are known.

        None for a score that is the sum of its `_parts`, which explain it.
        """
        return None

    # what a fit calls

    def _measure(self) -> tuple[RankStatistic, GainName, bool]:
        """Return statistic, gain and normalisation of `score`; a fit calls it so that a mistake shows before."""
        one_of("gain", self.gain, get_args(GainName))
        check_flag("normalize", self.normalize)
        return RankStatistic.parse(self.statistic), self.gain, bool(self.normalize)

    def _training_data(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None
    ) -> tuple[Any, FloatArray, IntArray | None]:
        """Check the data of a fit and record the names and the number of the features.

        Returns features, as float64 unless the ranker takes singles; labels, and the number of each row's list, None
        without a `qid`.
        """
        self.preparation_ = self.calibration_ = None
        names = column_names(X)
        given = X if names is None else columns_by_name(X, names, missing=True)
        target = None if y is None else "no_validation"
        features = validate_data(self, given, target, ensure_min_samples=2, **_AS_IS)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        features = checked_features(features, names)
        labels, groups = labels_and_lists(y, qid, len(features))
        self._by_list = groups is not None
        if labels_agree(labels, groups):
            raise ValueError("y must hold two different labels in at least one list, got none")
        return features if self._TAKES_SINGLES else doubles(features), labels, groups

    def _weighted_data(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None,
        group: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> LabelledRows:
        """Check the data of a fit with groups, times and weights of rows, see `_training_data`.

        A row of weight 0 is left out. There are no weights where all of them are 1, so that the fit is the same as
        without weights, to the last bit.
        """
        features, labels, lists = self._training_data(X, y, qid)
        n = len(labels)
        rows = LabelledRows(features, labels, lists, checked_groups(group, n, lists), checked_times(time, n, lists))
        if sample_weight is None:
            return rows
        weights = checked_weights(sample_weight, n)
        kept = weights > 0
        if not kept.all():
            numbers = (lists, rows.groups)  # renumbered as they would be without the other rows
            lists, groups = (None if one is None else checked_queries(one[kept], kept.sum())[0] for one in numbers)
            times = None if rows.times is None else rows.times[kept]
            rows = LabelledRows(features[kept], labels[kept], lists, groups, times)
            if not kept.any() or labels_agree(rows.labels, rows.lists):
                raise ValueError("the rows whose sample_weight is not zero must hold two different labels in some list")
        return dataclasses.replace(rows, weights=None if (weights[kept] == 1).all() else weights[kept])

    def _take_names(self, other: RankerContract) -> None:
        """Record the features of another ranker, which passed its checked array on to this one."""
        self.n_features_in_ = other.n_features_in_
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_ = other.feature_names_in_

    # what scores rows

    def _all_scores(self, features: Features, lists: IntArray | None = None) -> FloatArray:
        """Return the scores of rows that are checked already, (n,), by `_scores` of pieces of them."""
        if self._BY_LIST:
            return self._scores(features, lists)  # type: ignore[call-arg,arg-type]  # these take more
        return by_piece(self._scores, features)

    def _features(self, X: ArrayLike) -> Features:
        """Check that the ranker is fitted, and return the columns of the fit in their order.

        Where both the fit and X had names, columns are found by name, whatever their order, and others are ignored. In
        other cases columns go by their position, with scikit-learn's warning where one side alone had names. A ranker
        with a preparation takes frames of the user's table as well as frames of features.
        """
        check_is_fitted(self)
        names, given, missing = self._names, column_names(X), self._may_miss
        if self.preparation_ is not None and given is not None:
            table = {one.column for one in self.preparation_.encodings_}
            if table <= set(given) or not set(names or ()) <= set(given):
                return checked_features(self.preparation_.transform(X), names)
        if names is not None and given is not None:
            return columns_by_name(X, names, missing=missing)
        options = {**_AS_IS, "ensure_all_finite": "allow-nan" if missing else False}
        features = np.asarray(validate_data(self, X, reset=False, **options))
        return features if missing else checked_features(features, names)

    def _lists_for(self, method: str, qid: Qid) -> ArrayLike | None:
        """Return the lists that a caller gave, None where all rows are one list.

        Raises ValueError for nothing given although the fit had queries, so that one list would be a wrong answer.
        """
        if not isinstance(qid, EllipsisType):
            return qid
        check_is_fitted(self)
        if self._by_list:
            routing = " (a search of scikit-learn does with metadata routing and set_score_request(qid=True))"
            raise ValueError(
                f"qid: {method} needs the query of each row, because the fit had queries: pass them"
                f"{routing if method == 'score' else ''}, or qid=None if all rows are one list"
            )
        return None

    @property
    def _names(self) -> list[str] | None:
        """The names of the columns of the fit; None where they had none."""
        names: NDArray[np.object_] | None = getattr(self, "feature_names_in_", None)
        return None if names is None else names.tolist()

    @property
    def _column_names(self) -> list[str]:
        """The names of the columns of the fit; x0, x1, ... where they had none."""
        return self._names or [f"x{j}" for j in range(self.n_features_in_)]

    def _check_prepared(self, preparation: TablePreparation) -> None:
        made, names = preparation.get_feature_names_out().tolist(), self._names
        if made != (names or made) or len(made) != self.n_features_in_:
            own = f"{self.n_features_in_} features" if names is None else listed(names)
            raise ValueError(f"preparation must make the features of the fit, {own:.300}, got {listed(made):.300}")

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {**state, **dict.fromkeys(state.keys() & set(self._NOT_COPIED))}


def fit_to(
    ranker: _R,
    table: Table,
    rows: LabelledRows,
    seen: NDArray[np.bool_],
    **options: Any,  # noqa: ANN401 (options of any type)
) -> _R:
    """Fit a ranker to some of the rows, with what its ``fit`` takes, and return it; weights it must take."""
    given = {"qid": rows.lists, "group": rows.groups, "sample_weight": rows.weights}
    if rows.weights is not None and not has_fit_parameter(ranker, "sample_weight"):
        raise ValueError(f"sample_weight: the fit of a {type(ranker).__name__} takes none, leave the weights out")
    for name, values in given.items():
        if values is not None and has_fit_parameter(ranker, name):
            options[name] = values[seen]
    ranker.fit(_safe_indexing(table, np.flatnonzero(seen)), rows.labels[seen], **options)
    return ranker
