"""What rankers show: lists as frames and figures, and why a row stands where it does."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltr.checks import doubles
from ltr.data.dataset import Features, checked_queries
from ltr.rankers.choice import mean_of_lists
from ltr.rankers.inputs import FloatArray, IntArray, Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ltr.rankers.base import Ranker

__all__ = ["Explanation", "explanation", "list_figure", "place_in_list", "ranked_frame", "rows_from_the_top", "summed"]

BASE_SCORE, CONSTANT, TOTAL = "base score", "constant", "total"
RESERVED = (BASE_SCORE, CONSTANT, TOTAL)
"""Names of columns that stand beside those of the features."""


def rows_from_the_top(scores: FloatArray, queries: IntArray | None) -> IntArray:
    """Return the numbers of the rows from the top to the bottom of each list, list after list."""
    return np.argsort(-scores, kind="stable") if queries is None else np.lexsort((-scores, queries))


def place_in_list(scores: FloatArray, lists: IntArray | None) -> IntArray:
    """Return the position of each row in its list, from 1 at the top, (n,); equal scores by number."""
    order, found = rows_from_the_top(scores, lists), np.empty(len(scores), dtype=np.int64)
    found[order] = 1 + _places(np.zeros(len(scores), dtype=np.int64) if lists is None else lists[order])
    return found


def ranked_frame(ranker: Ranker, X: Table, features: Features, qid: ArrayLike | None) -> tuple[pd.DataFrame, IntArray]:
    """Return the frame of `Ranker.rank` in the order of the rows of X, and the rows from the top."""
    import pandas as pd

    scores, reranked = ranker._placed(features, qid)
    queries, ids = (None, None) if qid is None else checked_queries(qid, len(scores))
    columns = {} if ids is None else {"query": ids[queries]}
    columns |= {"position": place_in_list(scores, queries), "score": scores}
    if ranker.calibration_ is not None:
        columns["chance"] = ranker.calibration_(scores)
    if reranked is not None:
        columns["stage"] = np.where(reranked, "reranked", "base").astype(object)
    frame = pd.DataFrame(columns, index=X.index if isinstance(X, pd.DataFrame) else None)
    return frame, rows_from_the_top(scores, queries)


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
    from ltr.display.figures import ranked_list_figure

    scores, reranked = ranker._placed(features, qid)
    lists = np.zeros(len(scores), dtype=np.int64) if groups is None else groups
    base, first = ranker._first_order(features, qid)
    orders = [one for one in (first, scores) if one is not None]
    drawn = [positives_by_position(one, labels, lists) for one in orders]
    statistic, _, normalize = measure = ranker._measure()
    number = int(lists.max()) + 1
    depth = 0 if reranked is None else round(reranked.sum() / number)
    return ranked_list_figure(
        title or (f"{len(scores)} rows" if groups is None else f"mean of {number} lists"),
        drawn[0],
        drawn[1] if len(drawn) > 1 else None,
        depth,
        base=base,
        statistic=f"{'normalised ' * normalize}{statistic}",
        values=tuple(mean_of_lists(one, labels, groups, measure, ranker._ties) for one in orders),
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


# --- explanations ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What each column adds to the scores of some rows, as `Ranker.explain` returns it.

    With weights w and the mean c of the training rows, column j adds ``w_j (x_j - c_j)``; in a sum of functions of
    single columns, such as RankBoost's, the value of its function. Of two stages, each row is explained by the stage
    that placed it: in a reranked row the column ``base score`` has what the base score adds, in the others it is the
    whole score of a base that is no sum over columns.

    Attributes:
        frame: what each column adds, by row: the columns of the fit, ``base score`` and ``constant`` where there are
            any, and last their sum ``total``.
        values: the values of the columns, by row.
        list: position, score and stage of each row, as in `Ranker.rank`, in the order of the rows.
        base: what each column adds to the base score of every row, with ``total``; None with one stage, and where the
            base score is no sum over columns.
        note: what is not explained, in a sentence; empty if nothing.
    """

    frame: pd.DataFrame
    values: pd.DataFrame
    list: pd.DataFrame
    base: pd.DataFrame | None = None
    note: str = ""

    def __repr__(self) -> str:
        note = f"; {self.note}" if self.note else ""
        columns = self.values.columns.drop(BASE_SCORE, errors="ignore")
        return f"Explanation({len(self.values)} rows, {len(columns)} columns{note})"

    def against(self, row: Hashable, other: Hashable) -> pd.DataFrame:
        """Return which columns put a row above another one, or below it; rows go by their index (from 0 without one).

        A frame with a line for each column in which the rows differ, from the one that speaks most for `row` to the one
        that speaks most against it, and ``total`` last: the values of both rows, and the difference of what they add.
        """
        import pandas as pd

        i, k = self._place(row), self._place(other)
        found = self._parts(i, k)
        difference = found.iloc[i] - found.iloc[k]
        value, other_value = (self.values.iloc[at].reindex(found.columns) for at in (i, k))
        columns = pd.DataFrame({"value": value, "other": other_value, "difference": difference})
        lines = columns.drop(index=[CONSTANT, TOTAL], errors="ignore")
        lines = lines[lines["difference"] != 0].sort_values("difference", ascending=False, kind="stable")
        return pd.concat([lines, columns.loc[[TOTAL]]])

    def row(self, row: Hashable) -> pd.DataFrame:
        """Return the explanation of one row, by its index, beside its neighbours on the list.

        A frame with a line for each column, from the one that adds most in size, and ``total`` last: the value, what it
        ``adds``, and by how much it speaks for this row against the row ``above`` and the row ``below``, if there are
        such.
        """
        import pandas as pd

        i = self._place(row)
        adds = self.frame.iloc[i].dropna()
        lines = pd.DataFrame({"value": self.values.iloc[i].reindex(adds.index), "adds": adds})
        for side, neighbour in self.neighbours(row).items():
            against = self.against(row, neighbour)["difference"]
            lines = lines.reindex([*lines.index, *against.index.difference(lines.index)])
            lines[side] = against.reindex(lines.index).fillna(0.0)
        total = lines.loc[[TOTAL]]
        lines = lines.drop(index=[CONSTANT, TOTAL], errors="ignore")
        order = np.argsort(-lines["adds"].abs().fillna(0.0).to_numpy(), kind="stable")
        return pd.concat([lines.iloc[order], total])

    def neighbours(self, row: Hashable) -> dict[str, Hashable]:
        """Return the indices of the row ``above`` and the row ``below`` on the list, as far as there are any."""
        i = self._place(row)
        own = self.list.iloc[i]
        same = (self.list["query"] == own["query"]).to_numpy() if "query" in self.list else True
        found = {}
        for side, position in (("above", own["position"] - 1), ("below", own["position"] + 1)):
            at = np.flatnonzero((self.list["position"].to_numpy() == position) & same)
            if len(at):
                found[side] = self.list.index[at[0]]
        return found

    def _place(self, row: Hashable) -> int:
        places = np.flatnonzero(self.frame.index == row)
        if len(places) != 1:
            count = f"there are {len(places)} such rows"
            raise ValueError(f"row must be one of the explained rows, got {row!r:.80}: {count}")
        return int(places[0])

    def _parts(self, i: int, k: int) -> pd.DataFrame:
        """Return what columns add to the score by which these two rows are ordered."""
        if "stage" not in self.list or self.list["stage"].iloc[i] == self.list["stage"].iloc[k]:
            return self.frame.fillna(0.0)
        if self.base is not None:
            return self.base
        return self.values[[BASE_SCORE]].assign(**{TOTAL: self.values[BASE_SCORE]})


def explanation(ranker: Ranker, X: Table, features: Features, qid: ArrayLike | None) -> Explanation:
    """Return `Ranker.explain` of rows that are checked already."""
    import pandas as pd

    columns = [f"{name} (column)" if name in RESERVED else name for name in ranker._column_names]
    rows, _ = ranked_frame(ranker, X, features, qid)
    values = pd.DataFrame(doubles(features), columns=columns, index=rows.index)
    if (found := ranker._explained(values, rows)) is not None:
        frame, seen, base, note = found
        return Explanation(frame, seen, rows, base, note)
    numbers = doubles(values.to_numpy())
    if (parts := ranker._parts(numbers)) is None:
        raise ValueError(f"explain needs a score that is a sum over columns, which that of {ranker!r:.80} is not")
    return Explanation(summed(values, parts, ranker._all_scores(numbers)), values, rows)


def summed(values: pd.DataFrame, parts: FloatArray, scores: FloatArray) -> pd.DataFrame:
    """Return the frame of an explanation: what the columns add, the constant rest of the scores, and the scores."""
    import pandas as pd

    frame = pd.DataFrame(parts, columns=values.columns, index=values.index)
    rest = scores - parts.sum(axis=1)
    if not np.allclose(rest, 0.0, atol=1e-9 * max(1.0, float(np.abs(scores).max()))):
        frame[CONSTANT] = rest
    frame[TOTAL] = scores
    return frame
