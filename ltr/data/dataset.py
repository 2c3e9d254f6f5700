"""A labelled list of observations, and the rules every one of them is held to.

Features are finite float64 of shape (n, d), each column with a name of its own; labels are 0 and 1, both present.
Sizes are bounded so that squares of features, and variances, stay inside the floating point range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["DataError", "Dataset", "checked_features", "checked_labels", "checked_names"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LARGEST = 1e150
_SMALLEST_RANGE = 1e-150


class DataError(ValueError):
    """Data that cannot be used; the message names the file, column and row, the rule and what was found."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """One labelled list: features, binary labels and the names of the features.

    Args:
        name: how reports call it.
        X: features, (n, d), at most 1e150 in size; a column is constant or spans at least 1e-150.
        y: labels, (n,), 0 or 1, both present.
        feature_names: d different names, in the order of the columns; ``x0, x1, ...`` by default.

    Raises:
        DataError: an argument against its rule, named with the data set, the row and the column.

    Examples:
        >>> data = Dataset("toy", [[0.0, 1.0], [2.0, 3.0]], [0, 1])
        >>> data.n, data.d, data.n_pos, data.n_neg, data.feature_names
        (2, 2, 1, 1, ('x0', 'x1'))
    """

    name: str
    X: FloatArray
    y: IntArray
    feature_names: tuple[str, ...]

    def __init__(self, name: str, X: ArrayLike, y: ArrayLike, feature_names: Sequence[str] | None = None) -> None:
        where = f"data set {name}"
        features = np.asarray(X)
        names = None if feature_names is None else checked_names(feature_names, where)
        features = checked_features(features, names, where)
        _check_ranges(features, names, where)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "X", features)
        object.__setattr__(self, "y", checked_labels(y, len(features), where))
        object.__setattr__(self, "feature_names", names or tuple(f"x{j}" for j in range(features.shape[1])))

    @property
    def n(self) -> int:
        """Number of observations."""
        return self.X.shape[0]

    @property
    def d(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    @property
    def n_pos(self) -> int:
        """Number of positives."""
        return int(self.y.sum())

    @property
    def n_neg(self) -> int:
        """Number of negatives."""
        return self.n - self.n_pos


def checked_features(X: ArrayLike, names: Sequence[str] | None = None, where: str = "X") -> FloatArray:
    """The features as C-ordered float64 of shape (n, d).

    Args:
        X: numbers or booleans, (n, d).
        names: the columns' names for messages; their number by default.
        where: what messages begin with, such as the path of a file.

    Raises:
        DataError: something that is not a 2-D array of numbers with a row and a column, another number of columns
            than names, a value that is not finite or above 1e150 in size (rows counted from 1).

    Examples:
        >>> checked_features([[1.0, 2.0], [3.0, float("inf")]], ["a", "b"])
        Traceback (most recent call last):
        ltr.data.dataset.DataError: X: values must be finite and none missing, got inf in column 'b', row 2
    """
    values = np.asarray(X)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{where}: features must be numbers, got an array of {values.dtype}")
    if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 1:
        raise DataError(f"{where}: features must be 2-D with at least one row and column, got shape {values.shape}")
    if names is not None and len(names) != values.shape[1]:
        raise DataError(f"{where}: {len(names)} feature names for {values.shape[1]} columns")
    features = np.ascontiguousarray(values, dtype=np.float64)
    for rule, good in (
        ("finite and none missing", np.isfinite(features)),
        (f"at most {_LARGEST:g} in size", np.abs(features) <= _LARGEST),
    ):
        if not good.all():
            row, column = (int(i) for i in np.argwhere(~good)[0])
            text, value = _column(names, column), float(features[row, column])
            raise DataError(f"{where}: values must be {rule}, got {value} in column {text}, row {row + 1}")
    return features


def checked_labels(y: ArrayLike, n: int, where: str = "y") -> IntArray:
    """The labels as int64 of shape (n,), 0 and 1, both present.

    Args:
        y: numbers or booleans, (n,).
        n: how many labels there must be.
        where: what messages begin with.

    Raises:
        DataError: another shape, something other than 0 and 1 (with its row, counted from 1), a single class.

    Examples:
        >>> checked_labels([0, 1, 2], 3)
        Traceback (most recent call last):
        ltr.data.dataset.DataError: y: labels must be 0 or 1, got 2 in row 3
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise DataError(f"{where}: one label a row is needed ({n}), got shape {labels.shape}")
    if labels.dtype.kind not in "biuf":
        raise DataError(f"{where}: labels must be the numbers 0 and 1, got an array of {labels.dtype}")
    bad = (labels != 0) & (labels != 1)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{where}: labels must be 0 or 1, got {_number(labels[row])} in row {row + 1}")
    checked = labels.astype(np.int64)
    if checked.min() == checked.max():
        raise DataError(f"{where}: labels must hold both classes, got only {int(checked[0])}")
    return checked


def checked_names(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Column names as a tuple, each a non-empty string that no other column has.

    Raises:
        DataError: an empty name (its column counted from 1), a name twice.
    """
    seen: dict[str, int] = {}
    for at, name in enumerate(names, start=1):
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"{where}: every column needs a name, got {name!r} for column {at}")
        if name in seen:
            raise DataError(f"{where}: column names must differ, got {name!r} for columns {seen[name]} and {at}")
        seen[name] = at
    return tuple(names)


def _check_ranges(features: FloatArray, names: Sequence[str] | None, where: str) -> None:
    low, high = features.min(axis=0), features.max(axis=0)
    bad = (low < high) & (high - low < _SMALLEST_RANGE)
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            f"{where}: a column must be constant or span at least {_SMALLEST_RANGE:g}, "
            f"got {float(low[at])} to {float(high[at])} in column {_column(names, at)}"
        )


def _column(names: Sequence[str] | None, at: int) -> str:
    return repr(names[at]) if names is not None else str(at + 1)


def _number(value: object) -> str:
    return f"{float(value):g}"  # type: ignore[arg-type]
