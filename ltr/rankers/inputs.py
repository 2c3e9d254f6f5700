"""Rows as rankers take them: columns of frames by name, labels and lists, weights of lists, and linear scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

import narwhals.stable.v2 as narwhals
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from ltr.checks import pieces
from ltr.data.dataset import Features, checked_features, checked_names, checked_queries
from ltr.data.forms import NumberForm
from ltr.data.similar import similar_rows
from ltr.data.tables import features_of
from ltr.lists import weights_by_row

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Qid = ArrayLike | EllipsisType | None
"""The list of each row; None where all rows are one list, and ``...``, the default, where nothing is said."""
Table = Any
"""A frame of any library, a mapping of columns, or an array."""


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The rows that a ranker learns from, or some of them: features, (n, d), and labels, (n,).

    Attributes:
        lists: list of each row, (n,), numbered from 0; None means that all rows are one list.
        groups: group of each row, (n,), with lists one of whole lists; None where each row (each list) is alone.
        times: moment of each row, (n,), the same for all rows of a list; None where no order is known.
        weights: weight of each row, (n,); None where all count alike.
        known: scores out of fold, (n,), of a base ranker that has kept them.
    """

    features: Any  # float32 where a ranker takes singles, else float64
    labels: FloatArray
    lists: IntArray | None = None
    groups: IntArray | None = None
    times: IntArray | None = None
    weights: FloatArray | None = None
    known: FloatArray | None = None

    def with_similar(self) -> tuple[LabelledRows, int | None]:
        """Return the rows with much more similar ones as groups (`ltr.data.similar_rows`), and the number of groups.

        Lists, groups and times say what belongs together: then the rows stay as they are, and the number is None.
        """
        if self.lists is not None or self.groups is not None or self.times is not None:
            return self, None
        similar = similar_rows(self.features)
        return (self, None) if similar is None else (replace(self, groups=similar), int(similar.max()) + 1)

    @property
    def fewest(self) -> str:
        """The fewest rows of which some can be held out, in words."""
        what = "two rows of each label" if self.lists is None else "two queries"
        return what if self.groups is None else f"{what}, in different groups,"

    @property
    def pointwise(self) -> bool:
        """Whether these are labels 0 and 1 in one list."""
        return self.lists is None and bool(np.isin(self.labels, (0, 1)).all())

    def take(self, rows: NDArray[Any]) -> LabelledRows:
        """Return some of the rows, by number or by a mask, with their lists and groups numbered from 0."""
        lists, groups = (
            None if numbers is None else np.unique(numbers[rows], return_inverse=True)[1]
            for numbers in (self.lists, self.groups)
        )
        times, weights, known = (
            None if array is None else array[rows] for array in (self.times, self.weights, self.known)
        )
        return LabelledRows(self.features[rows], self.labels[rows], lists, groups, times, weights, known)


def column_names(X: Table) -> list[str] | None:
    """Return the names of a frame's columns, which must differ; None for other tables, and for numbers as names."""
    if not narwhals.dependencies.is_into_dataframe(X):
        return None
    try:
        names = list(narwhals.from_native(X).columns)
    except narwhals.exceptions.DuplicateError:
        names = list(checked_names([str(name) for name in X.columns], "X"))
    return names if names and all(isinstance(name, str) for name in names) else None


def columns_by_name(X: Table, names: Sequence[str], *, missing: bool = False) -> Features:
    """Return the columns of a frame that have these names, (n, d): float32 where that is their common type.

    A column may hold numbers as text, and with `missing` values may be missing or infinite; else a ValueError says what
    is wrong.
    """
    frame = narwhals.from_native(X, eager_only=True)
    if absent := [name for name in names if name not in frame.columns]:
        shown = ", ".join(frame.columns[:20]) + (", ..." if len(frame.columns) > 20 else "")
        lacking = f"column{'s' * (len(absent) > 1)} {', '.join(map(repr, absent))}"
        raise ValueError(f"X must have the {lacking}, which the ranker was fitted with; it has {shown}")
    types = [frame.schema[name] for name in names]
    if all(kind.is_numeric() or kind == narwhals.Boolean for kind in types):  # others are read cell by cell
        features: Any = _one_block(X, names)
        if features is None:
            single = narwhals.Float32 in types and set(types) <= _SINGLES
            features = np.empty((len(frame), len(names)), dtype=np.float32 if single else np.float64)
            kind = narwhals.Float32 if single else narwhals.Float64
            for begin in range(0, len(names), _COLUMNS):
                some = [frame[name].cast(kind).to_numpy() for name in names[begin : begin + _COLUMNS]]
                for rows in pieces(len(frame)):
                    for j, column in enumerate(some, start=begin):
                        features[rows, j] = column[rows]
        return features if missing else checked_features(features, list(names), "X")
    return features_of({name: frame[name].to_native() for name in names}, "X", list(names), NumberForm("."))


def framed(features: Features, names: Sequence[str] | None) -> Any:  # noqa: ANN401 (a frame, or the array)
    """Return features, (n, d), as a pandas frame where their columns have names."""
    if names is None:
        return features
    import pandas as pd

    return pd.DataFrame(features, columns=list(names))


_COLUMNS = 16  # of a frame that are put into a matrix at a time, which are a line of a processor's cache
_SINGLES = {narwhals.Float32, narwhals.Boolean, narwhals.Int8, narwhals.UInt8, narwhals.Int16, narwhals.UInt16}


def _one_block(X: Table, names: Sequence[str]) -> Features | None:
    """Return the matrix in which a pandas frame has exactly these columns; None where it has none."""
    if not narwhals.dependencies.is_pandas_dataframe(X) or list(X.columns) != list(names):
        return None
    kinds = set(X.dtypes)
    if kinds not in ({np.dtype(np.float32)}, {np.dtype(np.float64)}):
        return None
    matrix = X.to_numpy(copy=False)
    return matrix if matrix.flags.c_contiguous else None


def linear_scores(features: Features, weights: FloatArray) -> FloatArray:
    """Return ``X w`` summed column by column, (n,): equal rows get equal scores, whatever rows are around them.

    A matrix product promises no such thing, and ties decide rank statistics.
    """
    scores = np.zeros(len(features))
    for column, weight in zip(features.T, weights, strict=True):
        scores += column * weight
    return scores


def labels_and_lists(y: ArrayLike, qid: ArrayLike | None, n: int) -> tuple[FloatArray, IntArray | None]:
    """Return labels, which must be finite and >= 0, as float64 and the number of each row's list, both (n,)."""
    given = column_or_1d(y, warn=True)
    try:
        labels = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold numbers >= 0, got an array of {given.dtype}") from None
    if labels.shape != (n,):
        raise ValueError(f"y must have one label per row of X ({n}), got shape {labels.shape}")
    wrong = ~(np.isfinite(labels) & (labels >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"y must hold finite labels >= 0, 0 and 1 or graded, got {labels[row]:g} in row {row + 1}")
    return labels, None if qid is None else checked_queries(qid, n)[0]


def weights_for_losses(
    weights: FloatArray | None, lists: IntArray | None, labels: NDArray[Any]
) -> dict[str, torch.Tensor]:
    """Return lists and weights of rows as the keywords ``qid``, ``weight`` and ``list_weight`` of a loss."""
    given: dict[str, NDArray[Any] | None] = {"qid": lists, "weight": weights}
    if weights is not None and lists is not None:
        given["list_weight"], given["weight"] = weights_by_row(weights, lists, labels)
    return {name: torch.from_numpy(values) for name, values in given.items() if values is not None}
