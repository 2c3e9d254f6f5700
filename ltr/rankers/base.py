"""`Ranker`: what every ranker does and what it must know of itself, checked data, scores, chances, lists and files.

Functions over rankers save them (`ltr.rankers.files`), export them (`ltr.rankers.onnx`) and show them
(`ltr.rankers.views`). They ask a ranker by the methods at the end of the class, of which a subclass defines those in
which it differs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ltr.checks import by_piece, check_flag, check_whole, doubles, one_of
from ltr.data.dataset import (
    Features,
    checked_features,
    checked_groups,
    checked_names,
    checked_queries,
    checked_weights,
    labels_agree,
)
from ltr.data.preparation import TablePreparation
from ltr.data.problems import listed
from ltr.data.times import checked_times
from ltr.metrics.ranked import Ties
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.calibration import Calibration, fit_calibration
from ltr.rankers.choice import Fold, PartScores, folds_of, mean_of_lists
from ltr.rankers.files import (
    KINDS,
    NewerVersionError,
    UnknownClassError,
    described,
    read_state,
    state_of,
    suffix_of,
    write_state,
)
from ltr.rankers.inputs import (
    FloatArray,
    IntArray,
    LabelledRows,
    Qid,
    Table,
    column_names,
    columns_by_name,
    framed,
    labels_and_lists,
)
from ltr.rankers.onnx import write_onnx
from ltr.rankers.views import Explanation, explanation, list_figure, ranked_frame, rows_from_the_top
from ltr.ranks import GainName
from ltr.statistics import RankStatistic
from ltr.weight_constraints import RankerKind

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from torch import nn

_AS_IS: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": False}

_P = ParamSpec("_P")
_R = TypeVar("_R", bound="Ranker")
_Result = TypeVar("_Result")


def all_or_nothing(fit: Callable[Concatenate[_R, _P], _Result]) -> Callable[Concatenate[_R, _P], _Result]:
    """Decorate a ``fit`` so that the ranker keeps the attributes it had before when the fit raises."""

    @functools.wraps(fit)
    def fit_or_restore(self: _R, /, *args: _P.args, **kwargs: _P.kwargs) -> _Result:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return fit_or_restore


def _is_calibrated(ranker: Ranker) -> bool:
    if ranker.calibration_ is None:
        raise NotFittedError("predict_proba needs a calibrated ranker: call calibrate(X, y) with the rows of its fit")
    return True


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class Scored:
    """The parameters by which a ranker says what its `score` reports, see `Ranker`."""

    statistic: RankStatistic | str = "dcg"
    gain: GainName = "exp2"
    normalize: bool = False


class Ranker(BaseEstimator):
    """A scikit-learn estimator that gives every row a score; rows with larger scores stand higher in the list.

    It is neither a classifier nor a regressor: labels may be graded, scores are on no scale, and ``predict`` returns
    them. A subclass is a dataclass of its parameters, with a ``fit`` that calls `_training_data` and a method `_scores`
    of checked features; the rest of what it may say of itself has defaults.

    *What ``fit`` takes*, as far as it does:

    - ``X``: features, (n, d), finite; the columns of a pandas or polars frame are known by their names from then on.
    - ``y``: labels, (n,), 0 and 1 or graded, at least two different ones in some list.
    - ``qid``: list of each row, (n,), integers or texts, in any order; None means that all rows are one list.
    - ``group``: which rows belong together, as the visits of one patient do, (n,), integers or texts: where some rows
      are held out, no group is divided. With ``qid``, groups of whole queries.
    - ``time``: when each row was, (n,), numbers or dates (datetime64), the same for all rows of a query: where some
      rows are held out, nothing is learned from later rows to rank earlier ones.
    - ``sample_weight``: weight of each row, (n,), >= 0. Rows of weight 0 are left out, and weights that are all 1
      change nothing. With ``qid``, lists and their rows have weights as in `ltr.lists`.

    Args:
        statistic: the rank statistic that `score` reports, or its name.
        gain: gain of a graded label in `score`, ``"exp2"`` for 2^label - 1 or ``"linear"`` for the label itself.
        normalize: whether `score` divides by the value of the ideal order (NDCG, for ``"dcg"``).

    Attributes:
        n_features_in_, feature_names_in_: number of features in `fit`, and their names where X was a frame with names.
        preparation_: what makes features of the user's table, see `prepare_with`; None where X has the features.
        calibration_: the `Calibration` of the scores; None until `calibrate` is called.

    Raises:
        ValueError: in `fit`, a parameter or data against its rule; in other methods, a ranker that is not fitted, or X
            with other columns.
    """

    statistic: RankStatistic | str
    gain: GainName
    normalize: bool
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    preparation_: TablePreparation | None = None
    calibration_: Calibration | None = None
    _by_list: bool = False  # whether the fit had queries

    _LEARNS: bool = True  # whether `fit` learns from the rows
    _FITTED: ClassVar[tuple[str, ...]] = ()  # attributes that a fit finds, as files keep them
    _BY_LIST: ClassVar[bool] = False  # whether `_scores` takes all rows at once, as `Features`, and their lists
    _TAKES_SINGLES: ClassVar[bool] = False  # whether `fit` takes float32 as it is, and not as float64
    _NOT_COPIED: ClassVar[tuple[str, ...]] = ()  # training data and callbacks, which are None in copies and pickles
    _HOW: ClassVar[str] = ""  # how to score by what is in a file, for readers of other languages

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401 (options of any type)
        super().__init_subclass__(**kwargs)
        KINDS[cls.__name__] = cls

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {**state, **dict.fromkeys(state.keys() & set(self._NOT_COPIED))}

    # scores

    def decision_function(self, X: ArrayLike, qid: Qid = ...) -> FloatArray:
        """Return the scores of the rows, float64 of shape (n,).

        `qid` matters only to an attention scorer, and to two stages after a fit with `qid`, whose scores depend on the
        other rows of a list. There it has to be said, and None means that all rows are one list.
        """
        features = self._features(X)
        return self._placed(features, self._lists_of_scores("decision_function", qid))[0]

    def predict(self, X: ArrayLike, qid: Qid = ...) -> FloatArray:
        """Return the scores of `decision_function`."""
        return self.decision_function(X, qid)

    def score(self, X: ArrayLike, y: ArrayLike, qid: Qid = ..., sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of the statistic over the lists for which it is defined, NaN for none; larger is better.

        After a fit with queries `qid` has to be said. Weights weigh lists, whose values do not depend on them, except
        that rows of weight 0 are left out. Of tied items the one with the lower label counts as standing above.
        """
        qid = self._lists_for("score", qid)
        scores, _ = self._placed(self._features(X), qid)
        labels, groups = labels_and_lists(y, qid, len(scores))
        weights = None if sample_weight is None else checked_weights(sample_weight, len(scores))
        return mean_of_lists(scores, labels, groups, self._measure(), self._ties, weights)

    @property
    def linear_weights(self) -> FloatArray | None:
        """The weights on the raw features, (d,), by which the scores order rows; None for others than linear scores."""
        check_is_fitted(self)
        return getattr(self, "coef_", None)

    def name_features(self, names: Sequence[str]) -> Self:
        """Name the d columns of a ranker that was fitted to an array, so that frames are then read by name."""
        check_is_fitted(self)
        found = checked_names(names, "names")
        if len(found) != self.n_features_in_:
            raise ValueError(f"names must be those of {self.n_features_in_} columns, got {len(found)}")
        self.feature_names_in_ = np.array(found, dtype=object)
        return self

    def prepare_with(self, preparation: TablePreparation) -> Self:
        """Let a fitted ranker take frames of the user's own table, of which the preparation makes the features."""
        check_is_fitted(self)
        self._check_prepared(preparation)
        self.preparation_ = preparation
        return self

    # chances

    def calibrate(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: Qid = ...,
        *,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        folds: int | None = 5,
    ) -> Self:
        """Learn the chance of a hit, a label above 0, by score, for `predict_proba` and a column ``chance`` in `rank`.

        X are the rows of the fit, and their scores come from clones that are fitted to all folds but one, shifted and
        scaled so that those of the clone's training rows have the mean and deviation of this ranker's. A group counts
        as one row; weights are for the fits, which must take them, and for the calibration. With ``folds=None``, and
        for a ranker that learns nothing in `fit`, the ranker's own scores count: it must not have seen these rows.

        Examples:
            >>> from ltr.rankers import LogisticRegressionRanker
            >>> X = np.random.default_rng(0).normal(size=(400, 2))
            >>> y = np.random.default_rng(1).random(400) < 1 / (1 + np.exp(-2 * X[:, 0]))
            >>> ranker = LogisticRegressionRanker().fit(X, y).calibrate(X, y)
            >>> ranker.predict_proba([[-2.0, 0.0], [2.0, 0.0]])[:, 1].round(1).tolist()
            [0.0, 1.0]
        """
        if folds is not None:
            check_whole("folds", folds, 2, " or None")
        qid, features = self._lists_for("calibrate", qid), self._features(X)
        labels, lists = labels_and_lists(y, qid, len(features))
        groups = checked_groups(group, len(labels), lists)
        weights = None if sample_weight is None else checked_weights(sample_weight, len(labels))
        table, rows = self._rows_to_fit(X, features), LabelledRows(features, labels, lists, groups, weights=weights)
        if weights is not None and not weights.all():
            counted = np.flatnonzero(weights)
            table, rows = _safe_indexing(table, counted), rows.take(counted)
        if folds is None or not self._LEARNS:
            scores, _ = self._placed(rows.features, rows.lists)
        else:
            divided = folds_of(rows, 0, 1, folds)
            if not divided:
                raise ValueError(f"calibrate needs at least {rows.fewest} to hold rows out")
            scores = self._held_out_scores(table, rows, divided)
        known = ~np.isnan(scores)  # the first rows in time are not ranked by rankers that have not seen them
        rows = rows.take(known)
        self.calibration_ = fit_calibration(scores[known], rows.labels, rows.weights, rows.groups)
        return self

    @available_if(_is_calibrated)
    def predict_proba(self, X: ArrayLike, qid: Qid = ...) -> FloatArray:
        """Return the chances of a label of 0 and of a hit by the calibration, (n, 2); call `calibrate` first."""
        scores, _ = self._placed(self._features(X), self._lists_of_scores("predict_proba", qid))
        assert self.calibration_ is not None
        chances = self.calibration_(scores)
        return np.column_stack([1 - chances, chances])

    # lists

    def order(self, X: ArrayLike, qid: Qid = ...) -> IntArray:
        """Return the numbers of the rows, from 0, from the top of the list to its bottom; equal scores by number.

        With `qid` the lists follow each other in the order in which their queries first appear.
        """
        qid = self._lists_for("order", qid)
        scores, _ = self._placed(self._features(X), qid)
        return rows_from_the_top(scores, None if qid is None else checked_queries(qid, len(scores))[0])

    def rank(self, X: ArrayLike, qid: Qid = ...) -> pd.DataFrame:
        """Return the list as a pandas frame, from its top to its bottom, in the order of `order`.

        Its index is that of the rows of X, or their number from 0 where X is not a pandas frame. The columns are
        ``query`` (where there are queries), ``position`` (1 is the top), ``score``, ``chance`` (of a hit, where the
        ranker is calibrated), and for two stages ``stage``, ``"reranked"`` or ``"base"``, which placed the row.

        Examples:
            >>> import pandas as pd
            >>> from ltr.rankers import SurrogateRanker
            >>> rows = pd.DataFrame({"age": [30.0, 70.0, 50.0]}, index=["Ann", "Ben", "Cem"])
            >>> SurrogateRanker().fit(rows, [0, 1, 0]).rank(rows)["position"].to_dict()
            {'Ben': 1, 'Cem': 2, 'Ann': 3}
        """
        qid, features = self._lists_for("rank", qid), self._features(X)
        rows, order = ranked_frame(self, X, features, qid)
        return rows.iloc[order]

    def plot_list(self, X: ArrayLike, y: ArrayLike, qid: Qid = ..., *, k: int | None = None, title: str = "") -> Figure:
        """Return a matplotlib figure of the list: where the positives stand, and how many one catches.

        Two stages are drawn as two lists, by the base ranker and after reranking; of several lists the figure has the
        mean. The legend counts the positives among the first `k` rows, and twice as many are drawn, at least 40; None
        draws twice the reranked rows, or the whole list.
        """
        if k is not None:
            check_whole("k", k, 1, " or None")
        qid, features = self._lists_for("plot_list", qid), self._features(X)
        return list_figure(self, features, qid, *labels_and_lists(y, qid, len(features)), k, title)

    def explain(self, X: ArrayLike, qid: Qid = ...) -> Explanation:
        """Return what each column adds to the score of each row, and which columns put a row above its neighbours.

        Neighbours are those among these rows. Raises ValueError for a ranker whose score is no sum over columns, such
        as a neural network.

        Examples:
            >>> import pandas as pd
            >>> from ltr.rankers import SurrogateRanker
            >>> rows = pd.DataFrame({"age": [30, 70, 50], "dose": [1.0, 2.0, 2.0]}, index=["Ann", "Ben", "Cem"])
            >>> explanation = SurrogateRanker(l2=0.1).fit(rows, [0, 1, 0]).explain(rows)
            >>> explanation.against("Ben", "Cem").round(1)
                   value  other  difference
            age     70.0   50.0         1.6
            total    NaN    NaN         1.6
        """
        qid, features = self._lists_for("explain", qid), self._features(X)
        return explanation(self, X, features, qid)

    # files

    def save(self, path: str | Path) -> None:
        """Write the fitted ranker to one file, whole or not at all, that `load` reads without running code from it.

        The file is JSON with all digits of the weights, or for networks and large forests safetensors
        (`ltr.rankers.files`), without training data, callbacks and solver objects. Raises TypeError for a base of
        another library that has no form here, and ValueError for the name of a JSON file where there can be none.
        """
        write_state(path, self.to_state())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a ranker that `save` wrote; ``Ranker.load`` reads one of any class.

        Raises ValueError for any other file: of a newer version, damaged, or of another class.
        """
        try:
            ranker = cls.from_state(read_state(path))
            if type(ranker).__module__.startswith("ltr."):
                ranker._check_restored()
        except (NewerVersionError, UnknownClassError) as error:
            raise type(error)(f"{path}: {error}") from None
        except ValueError as error:
            raise ValueError(f"{path}: not a file that {cls.__name__}.save wrote: {error}") from error
        return ranker

    @property
    def file_suffix(self) -> str:
        """``".json"``, or ``".safetensors"`` for a network or a ranker with more than 100,000 numbers."""
        try:
            return suffix_of(self.to_state())
        except TypeError:  # there is no such file, and `save` says why
            return ".json"

    def to_state(self) -> dict[str, Any]:
        """Return the fitted ranker as a dict of tensors and plain values, from which `from_state` makes it again."""
        check_is_fitted(self)
        return state_of(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the fitted ranker that `to_state` described; raise ValueError for any other state."""
        try:
            ranker = described(state)
            if not isinstance(ranker, cls):
                raise ValueError(f"state must be of a {cls.__name__}, got one of a {type(ranker).__name__}")
            ranker.n_features_in_, ranker._by_list = state["n_features"], state["by_list"]
            if state["feature_names"] is not None:
                ranker.feature_names_in_ = np.array(state["feature_names"], dtype=object)
            if (preparation := state.get("preparation")) is not None:
                ranker.preparation_ = TablePreparation.from_json(preparation)
            if (calibration := state.get("calibration")) is not None:
                ranker.calibration_ = Calibration.from_dict(calibration)
            ranker._restore(_with_rankers(state["fitted"]))
        except (LookupError, TypeError, AttributeError, RuntimeError, StopIteration) as error:
            raise ValueError(f"state must be what to_state of a ranker returned ({error!r:.200})") from error
        return ranker

    def to_torch(self) -> nn.Module:
        """Return the ranker as one torch module in double precision, which scores raw features.

        It takes features (*batch, list, d) and returns scores (*batch, list); it knows no padding.
        `torch.export.export` takes it, and so do `torch.jit.script` and `torch.jit.trace` on Python 3.13 and older.
        Raises TypeError for a ranker that is neither linear nor a network, nor two stages of such rankers.
        """
        from ltr.rankers.scorers import LinearScorer

        check_is_fitted(self)
        weights = self._module_weights()
        if weights is None:
            known = "linear rankers, networks and two stages of these have one"
            raise TypeError(f"a {type(self).__name__} has no torch module: {known}")
        scorer = LinearScorer(len(weights))
        bias = self._scores(np.zeros((1, len(weights))))
        scorer.load_state_dict({"weight": torch.from_numpy(weights), "bias": torch.tensor(bias[0])})
        return scorer.eval()

    def to_onnx(self, path: str | Path, *, preparation: TablePreparation | None = None, query: str = "query") -> None:
        """Write the fitted ranker as an ONNX model, which any language with a runtime for ONNX can run.

        The outputs, float64 of shape (n,), are ``score``, as `decision_function` returns it, for two stages
        ``reranked``, and for calibrated rankers ``probability``, the chance of a hit. The input is ``features``,
        float64 of shape (n, d), or with a `preparation` one vector for each column of the raw table: float64 for
        numbers, NaN where one is missing, and for dates as days since 1970; texts, empty where one is missing. Rankers
        whose scores depend on the list of a row have an input `query` for it, int64 of shape (n,).

        Raises:
            ImportError: the package onnx is not installed (``pip install 'rankproof[onnx]'``).
            TypeError: a ranker of one's own, or a base of another library, without an ONNX form.
            ValueError: a preparation of other features.
        """
        write_onnx(self, path, preparation, query)

    # what a fit calls

    def _measure(self) -> tuple[RankStatistic, GainName, bool]:
        """Return statistic, gain and normalisation of `score`; a fit calls it so that a mistake shows before."""
        one_of("gain", self.gain, get_args(GainName))
        check_flag("normalize", self.normalize)
        return RankStatistic.parse(self.statistic), self.gain, bool(self.normalize)

    def _training_data(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None
    ) -> tuple[Any, FloatArray, IntArray | None]:
        """Check the data of a fit, and record names and number of the features; return features, labels and lists."""
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
        """Check the data of a fit without rows of weight 0; weights that are all 1 become None, for equal digits."""
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

    def _take_names(self, other: Ranker) -> None:
        """Record the features of another ranker, which passed its checked array on to this one."""
        self.n_features_in_ = other.n_features_in_
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_ = other.feature_names_in_

    # what scores rows

    def _features(self, X: ArrayLike) -> Features:
        """Check that the ranker is fitted, and return the columns of the fit in their order.

        Where both the fit and X had names, columns are found by name, and others are ignored; else by position, with
        scikit-learn's warning where one side alone had names. A ranker with a preparation takes frames of the user's
        table as well as frames of features.
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
        """Return the lists that a caller gave; refuse to take all rows for one list after a fit with queries."""
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

    def _places(self, names: Sequence[str] | None) -> IntArray | None:
        """Return where the columns of the fit are among columns of these names, (d,)."""
        own = self._names
        if own is None or names is None or own == list(names):
            return None
        place = {name: j for j, name in enumerate(names)}
        if missing := [name for name in own if name not in place]:
            lacking = f"column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
            raise ValueError(
                f"X must have the {lacking:.300}, which the base, a {self._class_name}, was fitted with; it has "
                f"{', '.join(names):.300}"
            )
        return np.array([place[name] for name in own], dtype=np.int64)

    def _own_columns(self, features: Features, names: Sequence[str] | None) -> Features:
        """Return the columns of the fit among those of features, (n, ...), that have these names."""
        places = self._places(names)
        return features if places is None else features[:, places]

    def _among(self, values: NDArray[Any], names: Sequence[str] | None, *, other: float = 0.0) -> NDArray[Any]:
        """Return values of the columns of the fit, (..., d), as values of columns of these names, else `other`."""
        values, places = np.asarray(values), self._places(names)
        if names is None or places is None:
            return values
        found = np.full((*values.shape[:-1], len(names)), other, dtype=values.dtype)
        found[..., places] = values
        return found

    def _scores_among(
        self, features: Features, names: Sequence[str] | None, lists: IntArray | None = None
    ) -> FloatArray:
        """Return the scores of checked rows, (n,), whose columns have these names; those of the fit are among them."""
        return self._form()._all_scores(self._own_columns(features, names), lists)

    @property
    def _class_name(self) -> str:
        return type(self).__name__

    def _check_prepared(self, preparation: TablePreparation) -> None:
        made, names = preparation.get_feature_names_out().tolist(), self._names
        if made != (names or made) or len(made) != self.n_features_in_:
            own = f"{self.n_features_in_} features" if names is None else listed(names)
            raise ValueError(f"preparation must make the features of the fit, {own:.300}, got {listed(made):.300}")

    def _check_restored(self) -> None:
        """Score one row, so that arrays of other lengths raise ValueError before the ranker is used."""
        names = self._names
        try:
            check_whole("n_features", self.n_features_in_, 1)
            if names is not None and len(checked_names(names, "feature_names")) != self.n_features_in_:
                raise ValueError(f"{len(names)} feature_names for {self.n_features_in_} features")
            self._placed(self._a_row(), np.zeros(1, dtype=np.int64))
        except (LookupError, TypeError, AttributeError, RuntimeError, ValueError) as error:
            raise ValueError(f"damaged: {error!s:.200}") from error

    # what a subclass says, beside its parameters and its fit

    def _scores(self, features: FloatArray) -> FloatArray:
        """Return the scores of rows that are checked already, (n,)."""
        raise NotImplementedError

    def _all_scores(self, features: Features, lists: IntArray | None = None) -> FloatArray:
        """Return the scores of rows that are checked already, (n,), by `_scores` of pieces of them."""
        if self._BY_LIST:
            return self._scores(features, lists)  # type: ignore[call-arg,arg-type]  # these take more
        return by_piece(self._scores, features)

    def _placed(self, features: Features, qid: ArrayLike | None) -> tuple[FloatArray, NDArray[np.bool_] | None]:
        """Return scores that order the rows of each list, and which rows were reranked; None without a second stage."""
        lists = checked_queries(qid, len(features))[0] if self._BY_LIST and qid is not None else None
        return self._all_scores(features, lists), None

    def _lists_of_scores(self, method: str, qid: Qid) -> ArrayLike | None:
        """Return the lists that a caller gave to a method whose answer depends on them only where scores do."""
        return None if isinstance(qid, EllipsisType) else qid

    def _form(self) -> Ranker:
        """Return a ranker that scores features as this one does, for it may take tables as they are."""
        return self

    def _saved_form(self) -> Ranker:
        """Return a ranker that scores features as this one does, and can be saved and exported, or raise TypeError."""
        return self._form()

    @property
    def _may_miss(self) -> bool:
        """Whether features may be missing (NaN) in rows to be scored."""
        return False

    @property
    def _ties(self) -> Ties:
        """How `score` treats ties."""
        return "resolved"

    @property
    def _kind(self) -> RankerKind:
        """What a fit can promise of columns, see `ltr.rankers.constraint_checks`."""
        return "other"

    def _monotone(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]] | None:
        """Return which columns a score that is not linear uses, never falls and never rises in, (d,) each, if known."""
        return None

    def _parts(self, features: FloatArray) -> FloatArray | None:
        """Return what each column adds to the scores, (n, d), up to a constant; None where they are no such sum."""
        weights = self.linear_weights
        return None if weights is None else (features - getattr(self, "center_", 0.0)) * weights

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
        return {name: getattr(self, name) for name in self._FITTED}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        """Set what `_fitted_state` returned, tensors in place of arrays and rankers as they were."""
        if set(fitted) != set(self._FITTED):
            raise KeyError(f"fitted must hold {', '.join(self._FITTED)}, got {', '.join(fitted)}")
        for name, value in fitted.items():
            setattr(self, name, value.numpy() if isinstance(value, torch.Tensor) else value)

    def _a_row(self) -> FloatArray:
        """Return a row of zeros as `_scores` takes it, (1, d)."""
        return np.zeros((1, self.n_features_in_))

    def _rows_to_fit(self, X: Table, features: Features) -> Any:  # noqa: ANN401 (a frame of any library, or an array)
        """Return what to fit a clone to: the features of X, as a frame where they have names."""
        return framed(features, self._names)

    def _for_other_rows(self) -> Self:
        """Return a ranker like this one, not yet fitted, without options that are about the rows of this fit."""
        return clone(self)

    def _held_out_scores(self, table: Table, rows: LabelledRows, folds: Sequence[Fold]) -> FloatArray:
        """Return scores of rows by clones that have not seen them, on the scale of this ranker's; see `calibrate`."""
        own, _ = self._placed(rows.features, rows.lists)
        scores = np.empty(len(own))
        for fold in folds:
            part = _safe_indexing(table, fold.train), rows.take(fold.train)
            other = fit_to(self._for_other_rows(), *part)
            found, _ = other._placed(other._features(table), rows.lists)
            scores[fold.held] = PartScores.of(found, fold.train).on_the_scale_of(own)[fold.held]
        return scores

    def _first_order(self, features: Features, qid: ArrayLike | None) -> tuple[str, FloatArray | None]:
        """Return the name of the order that is drawn first in a figure of a list, and its scores if others follow."""
        return type(self).__name__.removesuffix("Ranker"), None

    def _explained(
        self, values: pd.DataFrame, rows: pd.DataFrame
    ) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None, str] | None:
        """Return ``frame``, ``values``, ``base`` and ``note`` of an `Explanation`; None where `_parts` are one."""
        return None


def _with_rankers(value: Any) -> Any:  # noqa: ANN401 (a tree of any leaves)
    """Return what a fit found, with fitted rankers in place of their states."""
    if isinstance(value, list):
        return [_with_rankers(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if {"ranker", "parameters", "fitted"} <= set(value):
        return Ranker.from_state(value)
    return {key: _with_rankers(item) for key, item in value.items()}


def fit_to(
    ranker: _R,
    table: Table,
    rows: LabelledRows,
    **options: Any,  # noqa: ANN401 (options of any type)
) -> _R:
    """Fit a ranker to rows, whose features are those of a table, with what its ``fit`` takes; weights it must take."""
    if rows.weights is not None and not has_fit_parameter(ranker, "sample_weight"):
        remedy = "take one that learns from weights, such as logistic, or leave the weights out"
        raise ValueError(f"sample_weight: the fit of a {type(ranker).__name__} takes none; {remedy}")
    given = {"qid": rows.lists, "group": rows.groups, "time": rows.times, "sample_weight": rows.weights}
    for name, values in given.items():
        if values is not None and has_fit_parameter(ranker, name):
            options[name] = values
    ranker.fit(table, rows.labels, **options)
    return ranker
