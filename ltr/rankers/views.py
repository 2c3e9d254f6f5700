"""What rankers show: lists as frames and pictures, and fitted rankers in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from ltr.data.dataset import Features, checked_queries
from ltr.html import fact_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ltr.rankers.base import Ranker

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["html_view", "list_figure", "positives_by_position", "ranked_frame", "rows_from_the_top"]


def rows_from_the_top(scores: FloatArray, queries: IntArray | None) -> IntArray:
    """Return the numbers of the rows from the top to the bottom of each list, list after list."""
    return np.argsort(-scores, kind="stable") if queries is None else np.lexsort((-scores, queries))


def ranked_frame(
    X: Any,  # noqa: ANN401 (a frame of any library, or an array)
    scores: FloatArray,
    reranked: NDArray[np.bool_] | None,
    chances: FloatArray | None,
    qid: ArrayLike | None,
) -> tuple[pd.DataFrame, IntArray]:
    """Return the frame of `Ranker.rank` in the order of the rows of X, and the rows from the top."""
    import pandas as pd

    queries, ids = (None, None) if qid is None else checked_queries(qid, len(scores))
    order = rows_from_the_top(scores, queries)
    lists = np.zeros(len(scores), dtype=np.int64) if queries is None else queries
    position = np.empty(len(scores), dtype=np.int64)
    position[order] = 1 + _places(lists[order])
    columns = {} if ids is None else {"query": ids[lists]}
    columns |= {"position": position, "score": scores}
    if chances is not None:
        columns["chance"] = chances
    if reranked is not None:
        columns["stage"] = np.where(reranked, "reranked", "base").astype(object)
    return pd.DataFrame(columns, index=X.index if isinstance(X, pd.DataFrame) else None), order


def list_figure(
    ranker: Ranker,
    features: Features,
    qid: ArrayLike | None,
    labels: FloatArray,
    groups: IntArray | None,
    k: int | None,
    title: str,
) -> Figure:
    """Return the picture of `Ranker.plot_list` of rows that are checked already; `groups` numbers their lists."""
    from ltr.figures import ranked_list_figure

    scores, reranked = ranker._placed(features, qid)
    lists = np.zeros(len(scores), dtype=np.int64) if groups is None else groups
    first = None if reranked is None else ranker._first_scores(features, qid)
    orders = [one for one in (first, scores) if one is not None]
    drawn = [positives_by_position(one, labels, lists) for one in orders]
    statistic, _, normalize = ranker._measure()
    number = int(lists.max()) + 1
    depth = 0 if reranked is None else round(reranked.sum() / number)
    return ranked_list_figure(
        title or (f"{len(scores)} rows" if groups is None else f"mean of {number} lists"),
        drawn[0],
        drawn[1] if len(drawn) > 1 else None,
        depth,
        base=ranker._first_name,
        statistic=f"{'normalised ' * normalize}{statistic}",
        values=tuple(ranker._mean_statistic(one, labels, groups) for one in orders),
        k=k,
        share=float((labels > 0).mean()),
        shown=max(2 * k, 2 * depth, 40) if k is not None else None if depth else len(scores),
    )


def positives_by_position(scores: FloatArray, labels: FloatArray, lists: IntArray) -> FloatArray:
    """Return the share of the lists with a positive at each position, of those that are so long, from the top."""
    order = np.lexsort((labels, -scores, lists))
    position = _places(lists[order])
    return np.bincount(position, labels[order] > 0) / np.bincount(position)


def _places(lists: IntArray) -> IntArray:
    """Return the position of each row in its list, from 0, of rows that stand list after list."""
    return np.arange(len(lists)) - np.searchsorted(lists, lists)


def html_view(ranker: Ranker) -> str:
    """Return scikit-learn's diagram of a ranker and, where it is fitted, what the fit found."""
    diagram = estimator_html_repr(ranker)
    try:
        check_is_fitted(ranker)
    except NotFittedError:
        return diagram
    weights, names = ranker._shown_weights, getattr(ranker, "feature_names_in_", None)
    bars, heading = [], "largest weights, per unit of the column"
    if weights is not None:
        spread = ranker._deviations
        shown = weights if spread is None else weights * spread
        heading = heading if spread is None else "largest weights, per standard deviation of the column"
        found = [f"x{j}" for j in range(len(shown))] if names is None else list(map(str, names))
        bars = [(name, float(value), float(value)) for name, value in zip(found, shown, strict=True)]
    return diagram + fact_table(f"Fitted {type(ranker).__name__}", ranker._facts(), bars, heading)
