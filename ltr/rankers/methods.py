"""Methods by name, and a column of scores as one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike

from ltr.calls import named_object, read_call
from ltr.checks import is_whole
from ltr.estimator_names import EstimatorName
from ltr.losses import RankingLoss, parse_loss
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import FloatArray, Ranker, all_or_nothing
from ltr.rankers.baselines import LogisticRegressionRanker, RankBoostRanker
from ltr.rankers.estimators import EstimatorRanker
from ltr.rankers.foreign import places_by_name
from ltr.rankers.surrogate import SurrogateRanker
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

__all__ = ["ScoreColumn", "make_ranker", "names_estimator"]

_CARD = "ltr.cards:CardRanker(max_questions=3)"  # which takes a fraction of a second to find


def make_ranker(name: str, *, seed: int = 0) -> Ranker:
    """Return the ranker of that name with default parameters.

    Args:
        name: ``"logistic"`` or ``"logistic_regression"``, ``"rankboost"``, ``"card"`` for the best card of three
            questions about features, the name of a loss on which to train a `SurrogateRanker`, such as ``"ranknet"`` or
            ``"p_norm_push(p=2)"``, or that of an estimator of another library, such as
            ``"lightgbm:LGBMRanker(n_estimators=200)"``, for an `EstimatorRanker`.
        seed: seed of a `SurrogateRanker`, or of an estimator that has none of its own.

    Raises:
        ValueError: another name.

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

    Raises:
        ValueError: an import path that leads nowhere.
    """
    if ":" not in name:
        return False
    path, _ = read_call("ranker", name)
    found = named_object(f"ranker {path}", path)
    return not (isinstance(found, type) and issubclass(found, RankingLoss))


@dataclass(eq=False, repr=False)
class ScoreColumn(Ranker):
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
    _: KW_ONLY
    statistic: RankStatistic | str = "dcg"
    gain: GainName = "exp2"
    normalize: bool = False

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> ScoreColumn:
        """Find the column.

        Args:
            X: features, (n, d), finite.
            y: labels, (n,).
            qid: list of each row; it is checked and makes no difference.

        Raises:
            ValueError: no such column.
        """
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
