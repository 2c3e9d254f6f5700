"""What all rankers share: checked data, scores as predictions, the mean statistic as ``score``, saving and loading."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ltr.checks import check_whole
from ltr.data.dataset import (
    checked_groups,
    checked_names,
    checked_queries,
    checked_weights,
)
from ltr.data.preparation import TablePreparation
from ltr.rankers.calibration import Calibration, fit_calibration
from ltr.rankers.choice import mean_of_lists, parts_of
from ltr.rankers.contract import FloatArray, IntArray, Qid, RankerContract
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
from ltr.rankers.inputs import LabelledRows, labels_and_lists
from ltr.rankers.onnx import write_onnx
from ltr.rankers.views import (
    Explanation,
    explanation,
    list_figure,
    ranked_frame,
    rows_from_the_top,
)
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from torch import nn


_P = ParamSpec("_P")
_R = TypeVar("_R", bound="Ranker")
_Result = TypeVar("_Result")


def all_or_nothing(
    fit: Callable[Concatenate[_R, _P], _Result],
) -> Callable[Concatenate[_R, _P], _Result]:
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


class Ranker(RankerContract):
    """A scikit-learn estimator that gives every row a score; rows with larger scores stand higher in the list.

    It is neither a classifier nor a regressor: labels may be graded, scores are on no scale, and ``predict`` returns
    them. A subclass is a dataclass of its parameters, with a ``fit`` that calls `_training_data` and a method `_scores`
    of checked features; the rest of `ltr.rankers.contract` is optional.

    *What ``fit`` takes*, as far as it does:

    - ``X``: features, (n, d), finite; the columns of a pandas or polars frame are known by their names from then on.
    - ``y``: labels, (n,), 0 and 1 or graded, at least two different ones in some list.
    - ``qid``: list of each row, (n,), integers or texts, in any order; None means that all rows are one list.
    - ``group``: which rows belong together, as the visits of one patient do, (n,), integers or texts: where some rows
      are held out, no group is divided. It makes no lists. With ``qid``, groups of whole queries.
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

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401 (options of any type)
        super().__init_subclass__(**kwargs)
        KINDS[cls.__name__] = cls

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    # scores

    def decision_function(self, X: ArrayLike, qid: Qid = ...) -> FloatArray:
        """Return the scores of the rows, float64 of shape (n,).

        `qid` matters only to rankers whose score of a row depends on the other rows of its list: an attention scorer,
        and two stages after a fit with `qid`. There it has to be said, and None means that all rows are one list.
        """
        features = self._features(X)
        return self._placed(features, self._lists_of_scores("decision_function", qid))[0]

    def predict(self, X: ArrayLike, qid: Qid = ...) -> FloatArray:
        """Return the scores of `decision_function`, which takes the same arguments."""
        return self.decision_function(X, qid)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: Qid = ...,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean of the statistic over the lists for which it is defined, NaN for none; larger is better.

        The arguments are those of a fit; after one with queries `qid` has to be said. Weights weigh lists, whose values
        do not depend on them, except that rows of weight 0 are left out. Of tied items the one with the lower label
        counts as standing above.
        """
        qid = self._lists_for("score", qid)
        scores, _ = self._placed(self._features(X), qid)
        labels, groups = labels_and_lists(y, qid, len(scores))
        weights = None if sample_weight is None else checked_weights(sample_weight, len(scores))
        return mean_of_lists(scores, labels, groups, self._measure(), self._ties, weights)

    def _form(self) -> Ranker:
        """Return a ranker that scores features as this one does, for it may take tables as they are.

        Raises TypeError for a ranker that asks for more than numbers.
        """
        return self

    def _saved_form(self) -> Ranker:
        """Return a ranker that scores features as this one does, and can be saved and exported, or raise TypeError."""
        return self._form()

    def name_features(self, names: Sequence[str]) -> Self:
        """Name the columns of a ranker that was fitted to an array, so that frames are then read by name.

        Raises ValueError for names that are not d different texts.
        """
        check_is_fitted(self)
        found = checked_names(names, "names")
        if len(found) != self.n_features_in_:
            raise ValueError(f"names must be those of {self.n_features_in_} columns, got {len(found)}")
        self.feature_names_in_ = np.array(found, dtype=object)
        return self

    def prepare_with(self, preparation: TablePreparation) -> Self:
        """Let a fitted ranker take frames of the user's own table, from which a preparation makes the features.

        The preparation is saved with the ranker. Raises ValueError for one of other features.
        """
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
            table, rows = _safe_indexing(table, np.flatnonzero(weights)), rows.take(np.flatnonzero(weights))
        if folds is None or not self._LEARNS:
            scores, _ = self._placed(rows.features, rows.lists)
        else:
            parts = parts_of(rows.labels, rows.lists, rows.groups, 0, folds)
            if parts is None:
                raise ValueError(f"calibrate needs at least {rows.fewest} to hold rows out")
            scores = self._held_out_scores(table, rows, parts)
        known = ~np.isnan(scores)  # the first rows in time are not ranked by rankers that have not seen them
        rows = rows.take(known)
        self.calibration_ = fit_calibration(scores[known], rows.labels, rows.weights, rows.groups)
        return self

    @available_if(_is_calibrated)
    def predict_proba(self, X: ArrayLike, qid: Qid = ...) -> FloatArray:
        """Return the chances of a label of 0 and of a hit, a label above 0, by the calibration, (n, 2).

        A ranker without a calibration has no such method: call `calibrate` first.
        """
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

        Its index is that of the rows of X, or their number from 0 where X is not a pandas frame, so that
        ``X.join(ranked)`` puts the columns beside those of X. They are ``query`` (where there are queries),
        ``position`` (1 is the top), ``score``, ``chance`` (of a hit, where the ranker is calibrated), and for two
        stages ``stage``: ``"reranked"`` where the exact stage placed the row, ``"base"`` where the base ranker did.

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

    def plot_list(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: Qid = ...,
        *,
        k: int | None = None,
        title: str = "",
    ) -> Figure:
        """Return a picture of the list as a matplotlib figure: where the positives stand, and how many one catches.

        Two stages are drawn as two lists, by the base ranker and after reranking. Of several lists the picture has the
        mean: the share of lists with a positive at each position. The legend counts the positives among the first `k`
        rows, and twice as many are drawn, at least 40; None draws twice the reranked rows, or the whole list.
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
            >>> explanation.neighbours("Cem")
            {'above': 'Ben', 'below': 'Ann'}
        """
        qid, features = self._lists_for("explain", qid), self._features(X)
        return explanation(self, X, features, qid)

    # files

    def save(self, path: str | Path) -> None:
        """Write the fitted ranker to one file, whole or not at all, that `load` reads without running code from it.

        The file is JSON with all digits of the weights, or for networks and large forests safetensors
        (`ltr.rankers.files`). Training data, callbacks and solver objects are left out. Raises TypeError for a base of
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
            ranker._restore(state["fitted"])
        except (LookupError, TypeError, AttributeError, RuntimeError, StopIteration) as error:
            raise ValueError(f"state must be what to_state of a ranker returned ({error!r:.200})") from error
        return ranker

    def _check_restored(self) -> None:
        """Score one row, so that arrays of other lengths raise ValueError before the ranker is used."""
        names = getattr(self, "feature_names_in_", None)
        try:
            check_whole("n_features", self.n_features_in_, 1)
            if names is not None and len(checked_names(names.tolist(), "feature_names")) != self.n_features_in_:
                raise ValueError(f"{len(names)} feature_names for {self.n_features_in_} features")
            self._placed(self._a_row(), np.zeros(1, dtype=np.int64))
        except (LookupError, TypeError, AttributeError, RuntimeError, ValueError) as error:
            raise ValueError(f"damaged: {error!s:.200}") from error
