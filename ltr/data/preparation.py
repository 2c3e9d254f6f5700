"""A scikit-learn transformer from tables as they are to numeric features."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from ltr.checks import check_number
from ltr.data.columns import Column, columns_of
from ltr.data.dataset import checked_names
from ltr.data.forms import DateHints
from ltr.data.kinds import (
    FORMAT,
    RARE,
    Encoding,
    Kind,
    MeanEncoding,
    encode,
    encodings_in,
    encodings_of,
    kinds_of,
    mean_labels,
)
from ltr.data.problems import Problem, TableError, unknown
from ltr.data.times import blocks_of

_FOLDS = 5  # parts of the training set that get their mean labels from the others


class TablePreparation(TransformerMixin, BaseEstimator):
    """Turn a table of numbers, texts, dates and missing values into numeric features.

    `ltr.data.kinds` says which columns become features, and what becomes of them. New rows may have their columns in
    any order, further columns, missing values, and texts that no training row has.

    Args:
        kinds: ``"number"``, ``"category"``, or the format of a date (as for ``strftime``), by column; the others are
            found out.
        decimal: decimal mark, ``"."`` or ``","``, of numbers that could be read with both.
        first_year: first of the hundred years that years of two digits stand for.
        new_values: whether most of the rows to transform may have texts that no training row had. Otherwise such a
            column is an error from ten rows on: it is probably written in another way.
        rare: least share of the rows that have a value, or miss one, for a feature of its own.

    Raises:
        TableError: in `fit`, all columns that cannot be understood, or a table without a feature; in `transform`, all
            columns that are missing or hold other cells than in the training rows.

    Examples:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"age": [31, 58, None, 64, None], "mode": ["bus", "car", "bus", "bus", "car"]})
        >>> preparation = TablePreparation().fit(table)
        >>> preparation.get_feature_names_out().tolist()
        ['age', 'age is missing', 'mode = car']
        >>> preparation.transform(pd.DataFrame({"mode": ["car", "bus"], "age": [70, None]})).tolist()
        [[70.0, 0.0, 1.0], [58.0, 1.0, 0.0]]
    """

    encodings_: tuple[Encoding, ...]  # how each column becomes features
    left_out_: dict[str, str]  # reasons of columns, and features of missing values, that are left out, by name
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]  # of the columns in `fit`

    def __init__(
        self,
        kinds: Mapping[str, str] | None = None,
        *,
        decimal: str | None = None,
        first_year: int | None = None,
        new_values: bool = False,
        rare: float = RARE,
    ) -> None:
        self.kinds = kinds
        self.decimal = decimal
        self.first_year = first_year
        self.new_values = new_values
        self.rare = rare

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: ArrayLike | None = None) -> TablePreparation:  # noqa: ANN401 (a frame of any library)
        """Learn from the training rows what becomes of each column.

        X is a pandas or polars frame, a mapping of columns, or a numeric array, (n, d); y are labels, (n,), for mean
        labels of texts of many values, which only `fit_transform` takes from other rows.
        """
        check_number("rare", self.rare)
        columns = self._columns(X, reset=True)
        asked = dict(self.kinds or {}) if _framed(X) else dict.fromkeys(columns, "number")
        problems = [unknown("column", name, columns) for name in asked if name not in columns]
        kinds = kinds_of(columns, asked, DateHints(first_year=self.first_year))
        problems += [kind.problem for kind in kinds.values() if kind.problem is not None]
        if problems:
            raise TableError("X", problems)
        labels = None if y is None else column_or_1d(y, dtype=np.float64)
        return self.fit_kinds(columns, kinds, labels)

    def fit_kinds(
        self, columns: Mapping[str, Column], kinds: Mapping[str, Kind], y: NDArray[np.float64] | None
    ) -> TablePreparation:
        """Learn from the columns of the training rows, whose kinds are known, what becomes of each."""
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(list(columns), dtype=object)
        self.encodings_, left_out = encodings_of(columns, kinds, y, rare=self.rare)
        self.left_out_ = {name: kind.reason for name, kind in kinds.items() if kind.reason} | left_out
        if not self.encodings_:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.left_out_.items())
            raise TableError("X", [Problem(f"no feature is left ({reasons})")])
        checked_names(self.get_feature_names_out().tolist(), "features of X")
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: ANN401
        """Return the features, (n, d), of a table with the columns of the fit, in any order, or of an array."""
        check_is_fitted(self)
        return encode(self._columns(X, reset=False), self.encodings_, "X", new_values=self.new_values)

    def fit_transform(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.float64]:  # noqa: ANN401
        """Return the features of the training rows, (n, d), with mean labels from other rows."""
        self.fit(X, y)
        columns = self._columns(X, reset=False)
        found = encode(columns, self.encodings_, "X")
        return found if y is None else self.cross_fitted(found, columns, column_or_1d(y, dtype=np.float64))

    def cross_fitted(
        self,
        X: NDArray[np.float64],
        columns: Mapping[str, Column],
        y: NDArray[np.float64],
        groups: NDArray[Any] | None = None,
        times: NDArray[Any] | None = None,
    ) -> NDArray[np.float64]:
        """Return the features X of training rows, (n, d), with the mean labels that other rows give them.

        These are rows of other groups, (n,), and earlier ones where rows have times, (n,).
        """
        at, found = 0, X
        for one in self.encodings_:
            if isinstance(one, MeanEncoding):
                found = found.copy() if found is X else found
                found[:, at] = cross_fitted(columns[one.column], one, y, groups, times)
            at += len(one.names)
        return found

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the names of the features, (d,)."""
        check_is_fitted(self)
        if input_features is not None and len(input_features) != self.n_features_in_:
            raise ValueError(f"input_features should have length equal to number of features ({self.n_features_in_})")
        return np.array([name for one in self.encodings_ for name in one.names], dtype=object)

    def to_json(self) -> str:
        """Return the fitted preparation as JSON, a line for each column."""
        check_is_fitted(self)
        table, left_out, *columns = (
            json.dumps(one, ensure_ascii=False)
            for one in (self.feature_names_in_.tolist(), self.left_out_, *(one.to_dict() for one in self.encodings_))
        )
        head = f'{{\n  "format": {FORMAT},\n  "table": {table},\n  "left_out": {left_out},\n  "columns": [\n    '
        return head + ",\n    ".join(columns) + "\n  ]\n}\n"

    @classmethod
    def from_json(cls, text: str) -> TablePreparation:
        """Return the preparation that `to_json` wrote; ValueError, KeyError or TypeError for any other text."""
        given, found = json.loads(text), cls()
        found.encodings_ = encodings_in(text)
        found.left_out_ = dict(given["left_out"])
        found.feature_names_in_ = np.array(given["table"], dtype=object)
        found.n_features_in_ = len(given["table"])
        return found

    def _columns(self, X: Any, *, reset: bool) -> dict[str, Column]:  # noqa: ANN401
        """Return the columns of a table; `reset` in the fit, before which arrays have no number of columns."""
        if _framed(X) and (reset or hasattr(self, "feature_names_in_")):
            columns = columns_of(X, decimal=self.decimal)
            if not columns or len(next(iter(columns.values()))) < 1:
                raise ValueError(f"X must have at least 1 row and a column, got {len(columns)} columns")
            return columns
        array = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(array.shape[1])])
        return columns_of(dict(zip(names, array.T, strict=True)))


def cross_fitted(
    column: Column,
    encoding: MeanEncoding,
    y: NDArray[np.float64],
    groups: NDArray[Any] | None = None,
    times: NDArray[Any] | None = None,
) -> NDArray[np.float64]:
    """Return the mean labels of training rows, each from the rows in other parts of the training set, (n,).

    With times these are the earlier blocks; the first block is cut into parts.
    """
    column = encoding.read(column)
    codes = np.unique(np.arange(len(y)) if groups is None else groups, return_inverse=True)[1]
    parts = np.random.default_rng(0).permutation(codes.max() + 1)[codes] % _FOLDS
    blocks = np.zeros(len(y), dtype=np.int64)
    if times is not None:
        blocks = blocks_of(times, [block / (_FOLDS + 1) for block in range(1, _FOLDS + 1)])
    first = blocks == 0
    folds = [(first & (parts != part), first & (parts == part)) for part in range(_FOLDS)]
    folds += [(blocks < block, blocks == block) for block in range(1, blocks.max() + 1)]
    found = np.empty(len(y))
    for others, own in folds:
        if own.any():
            rows = np.flatnonzero(others if others.any() else first)
            means, mean = mean_labels(column.take(rows), encoding.values, y[rows])
            fold = replace(encoding, means=means, mean=mean)
            found[own] = fold.features(column.take(np.flatnonzero(own)))[:, 0]
    return found


def _framed(X: Any) -> bool:  # noqa: ANN401
    return isinstance(X, Mapping) or hasattr(X, "columns")
