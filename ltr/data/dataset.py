"""Labelled observations, in one list or several by query, and the rules that all of them must satisfy.

Labels of one list are 0 and 1, both present. Where rows belong to queries, labels are grades: whole numbers from 0
(irrelevant) to 1000, two different ones in at least one query. The size of features is bounded so that their squares,
and variances, stay inside the floating point range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_array, as_numbers, as_sequence, is_whole, pieces

FloatArray = NDArray[np.float64]
Features = NDArray[np.float64] | NDArray[np.float32]
"""Features as they were given: float32 keeps half the memory of float64, into which each of its values fits exactly."""
IntArray = NDArray[np.int64]

_LARGEST = 1e150
_SMALLEST_RANGE = 1e-150
_LARGEST_LABEL = 1000  # largest graded label: 2^label - 1 stays finite, and row numbers or ids are caught


class DataError(ValueError):
    """Data that cannot be used; the message names the file, column and row, the rule and what was found."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """One labelled list, or one per query: features, labels and the names of the features.

    Args:
        name: name of the data set, for messages and reports.
        X: finite features, (n, d), at most 1e150 in size; a column is constant or spans at least 1e-150. An array of
            float32 stays one, anything else becomes float64.
        y: labels, (n,): 0 and 1, both present; with qid grades.
        feature_names: d different names; ``x0, x1, ...`` by default.
        qid: the query of each row, integers or texts, (n,); None is one list. The attribute `qid` has its number, in
            the order in which queries first appear, and `query_ids` the ids by this number.
        copy: whether a copy of X is kept; False keeps an array of float64 or float32 in C order itself.

    Raises:
        DataError: an argument that breaks its rule.

    Examples:
        >>> data = Dataset("toy", [[0.0], [2.0], [1.0]], [0, 4, 1], qid=["b", "b", "a"])
        >>> data.qid.tolist(), data.query_ids.tolist(), data.n_queries
        ([0, 0, 1], ['b', 'a'], 2)
    """

    name: str
    X: Features
    y: IntArray
    feature_names: tuple[str, ...]
    qid: IntArray | None
    query_ids: NDArray[Any] | None

    def __init__(
        self,
        name: str,
        X: ArrayLike,
        y: ArrayLike,
        feature_names: Sequence[str] | None = None,
        qid: ArrayLike | None = None,
        *,
        copy: bool = True,
    ) -> None:
        where = f"data set {name}"
        given = as_array(f"{where}: X", X)
        names = None
        if feature_names is not None:
            names = checked_names(as_sequence(f"{where}: feature_names", feature_names, "names"), where)
        features = checked_features(given, names, where)
        if copy and np.may_share_memory(features, given):
            features = features.copy()
        check_ranges(features, names, where)
        queries, ids = None, None
        if qid is not None:
            known = as_array(f"{where}: qid", qid, object if isinstance(qid, list | tuple) else None)
            queries, ids = checked_queries(known, len(features), where)
        labels = checked_labels(y, len(features), where, graded=queries is not None)
        if queries is not None and labels_agree(labels, queries):
            raise DataError(f"{where}: at least one query must have two different labels, got none")
        names = names or tuple(f"x{j}" for j in range(features.shape[1]))
        self.__dict__.update(name=name, X=features, y=labels, feature_names=names, qid=queries, query_ids=ids)

    def __repr__(self) -> str:
        lists = "" if self.query_ids is None else f", {self.n_queries} queries"
        return f"Dataset({self.name!r}, {self.n} rows, {self.d} features, {self.n_pos} positives{lists})"

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
        """Number of positives: labels above 0."""
        return int((self.y > 0).sum())

    @property
    def n_queries(self) -> int:
        """Number of lists: the number of queries, or 1 without queries."""
        return 1 if self.qid is None else len(np.unique(self.qid))


def checked_features(X: ArrayLike, names: Sequence[str] | None = None, where: str = "X") -> Features:
    """Return finite features up to 1e150 in C order, (n, d): float32 as it is, anything else as float64.

    Other values raise a DataError, which begins with `where` and calls columns by `names`, or by their numbers.
    """
    values = as_array(where, X)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{where}: features must be numbers, got an array of {values.dtype}")
    if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 1:
        raise DataError(f"{where}: features must be 2-D with at least one row and column, got shape {values.shape}")
    if names is not None and len(names) != values.shape[1]:
        raise DataError(f"{where}: {len(names)} feature names for {values.shape[1]} columns")
    features: Any = np.ascontiguousarray(values, dtype=np.float32 if values.dtype == np.float32 else np.float64)
    filled = "; fill in missing values (NaN), or drop their rows or columns"
    rules = (("finite and none missing", np.inf, filled), (f"at most {_LARGEST:g} in size", _LARGEST, ""))
    for rule, limit, remedy in rules:
        first = _first_beyond(features, limit)
        bad = np.flatnonzero(first >= 0)
        if len(bad):
            found = [f"{features[first[j], j]} in column {_column(names, j)}, row {first[j] + 1}" for j in bad[:5]]
            more = f" and in {len(bad) - 5} more columns" if len(bad) > 5 else ""
            raise DataError(f"{where}: values must be {rule}, got {', '.join(found)}{more}{remedy}")
    return features


def _first_beyond(features: Features, limit: float) -> IntArray:
    """Return the first row of each column with a value that is NaN, infinite or above a limit in size, (d,), or -1."""
    first = np.full(features.shape[1], -1)
    largest = min(limit, float(np.finfo(features.dtype).max))
    for piece in pieces(len(features)):
        rows = features[piece]
        low, high = rows.min(axis=0), rows.max(axis=0)  # NaN if there is one
        if not (low >= -largest).all() or not (high <= largest).all():
            bad = ~((rows >= -largest) & (rows <= largest))
            new = (first < 0) & bad.any(axis=0)
            first[new] = piece.start + np.argmax(bad[:, new], axis=0)
    return first


def checked_labels(y: ArrayLike, n: int, where: str = "y", *, graded: bool = False) -> IntArray:
    """Return the labels as int64, (n,): 0 and 1, both present, or if `graded` two different grades."""
    labels = as_array(where, y)
    if labels.shape != (n,):
        raise DataError(f"{where}: labels must be one per row ({n}), got shape {labels.shape}")
    if labels.dtype.kind not in "biuf":
        kinds = "whole numbers" if graded else "the numbers 0 and 1"
        raise DataError(f"{where}: labels must be {kinds}, got an array of {labels.dtype}")
    values = labels.astype(np.float64)
    good = (values >= 0) & (values <= (_LARGEST_LABEL if graded else 1)) & (values == np.floor(values))
    if not good.all():
        row, rule = int(np.argmin(good)), f"whole numbers from 0 to {_LARGEST_LABEL}" if graded else "0 or 1"
        raise DataError(f"{where}: labels must be {rule}, got {values[row]:g} in row {row + 1}")
    checked = labels.astype(np.int64)
    if checked.min() == checked.max():
        needed = "two different values" if graded else "both classes"
        raise DataError(f"{where}: labels must hold {needed}, got only {int(checked[0])}")
    return checked


def checked_queries(
    qid: ArrayLike, n: int, where: str = "qid", what: str = "query ids"
) -> tuple[IntArray, NDArray[Any]]:
    """Return the number of each row's query, (n,), in the order in which their ids first appear, and the ids.

    A DataError of others than integers of 64 bits or texts begins with `where` and says `what` they are.
    """
    # lists as objects, because NumPy would turn integers among texts into texts
    given = as_array(where, qid, object if isinstance(qid, list | tuple) else None)
    if given.shape != (n,):
        sizes = given.ndim == 1 and all(isinstance(one, Integral) for one in given[:n]) and sum(given.tolist()) == n
        remedy = "; these are sizes: qid=np.repeat(np.arange(len(sizes)), sizes) says the list of each row" * sizes
        raise DataError(f"{where}: {what} must be one per row ({n}), got shape {given.shape}{remedy}")
    if given.dtype.kind in "fO":
        import pandas as pd

        missing = np.flatnonzero(pd.isna(given))
        if len(missing) > 0:
            raise DataError(f"{where}: {what} must not be missing, got none in row {missing[0] + 1}")
    if given.dtype.kind == "O":
        if all(isinstance(value, str) for value in given):
            number, ids = pd.factorize(given)
            return number.astype(np.int64), np.array(ids.tolist(), dtype=str)
        if all(isinstance(value, Integral) and not isinstance(value, bool) for value in given):
            given = np.array(given.tolist())
    if given.dtype.kind not in "iuUT":
        raise DataError(f"{where}: {what} must be integers of 64 bits or texts, got an array of {given.dtype}")
    ids, first, inverse = np.unique(given, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[inverse], ids[order]


def checked_groups(group: ArrayLike | None, n: int, lists: IntArray | None, where: str = "group") -> IntArray | None:
    """Return the number of each row's group, (n,); DataError for a list whose rows are in several groups."""
    if group is None:
        return None
    numbers, ids = checked_queries(group, n, where, "group ids")
    if (found := change_in_list(numbers, lists)) is not None:
        row, first = found
        got = f"{ids[numbers[row]]} in row {row + 1} and {ids[first]} in an earlier row of its query"
        rule = "all rows of a query must be in one group, because whole queries are held out"
        raise DataError(f"{where}: {rule}, got {got}: leave the groups out")
    return numbers


def change_in_list(values: NDArray[Any], lists: IntArray | None) -> tuple[int, Any] | None:
    """Return the first row whose value is not that of its list's first row, and that value; None without one."""
    if lists is None:
        return None
    _, first, number = np.unique(lists, return_index=True, return_inverse=True)
    own = values[first][number]
    wrong = np.flatnonzero(values != own)
    return (int(wrong[0]), own[wrong[0]]) if len(wrong) else None


def checked_weights(weight: ArrayLike, n: int, where: str = "sample_weight") -> FloatArray:
    """Return weights of rows as float64 of shape (n,); raise DataError for others than finite numbers >= 0."""
    weights = as_numbers(where, as_array(where, weight)).copy()
    if weights.shape != (n,):
        raise DataError(f"{where} must have one weight per row of X ({n}), got shape {weights.shape}")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"{where} must hold finite weights >= 0, got {weights[row]:g} in row {row + 1}")
    return weights


def checked_names(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return column names as a tuple, each a non-empty string that no other column has."""
    seen: dict[str, int] = {}
    for at, name in enumerate(names, start=1):
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"{where}: every column needs a name, got {name!r} for column {at}")
        if (first := seen.setdefault(name, at)) != at:
            raise DataError(f"{where}: column names must differ, got {name!r} for columns {first} and {at}")
    return tuple(names)


def checked_feature_names(features: Sequence[str]) -> tuple[str, ...]:
    """Return the names of requested features, at least one, all different."""
    if isinstance(features, str) or len(features) == 0:
        raise DataError(f"features must be a sequence of at least one column name, got {features!r}")
    return checked_names(features, "features")


def differ_in_lists(values: NDArray[np.float64], lists: IntArray | None) -> bool:
    """Return whether values of rows are not the same for all rows of a list; None means that all are one list."""
    if lists is None:
        return bool((values != values[:1]).any())
    # neighbours first: where they differ already, nothing of the size of the data is made
    if ((values[1:] != values[:-1]) & (lists[1:] == lists[:-1])).any():
        return True
    return change_in_list(values, lists) is not None


def labels_agree(labels: NDArray[Any], groups: IntArray | None) -> bool:
    """Return whether all labels of each list are equal, so that there is nothing to learn."""
    return not differ_in_lists(labels, groups)


def check_ranges(features: Features, names: Sequence[str] | None = None, where: str = "X") -> None:
    """Raise DataError for a column that varies so little that its variance underflows float64."""
    low, high = features.min(axis=0), features.max(axis=0)
    bad = (low < high) & (high - low < _SMALLEST_RANGE)
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            f"{where}: a column must be constant or span at least {_SMALLEST_RANGE:g}, "
            f"got {float(low[at])} to {float(high[at])} in column {_column(names, at)}"
        )


def _column(names: Sequence[str] | None, at: Any) -> str:  # noqa: ANN401 (an integer of Python or NumPy)
    return repr(names[at]) if names is not None else str(at + 1)


def half_split(n: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the numbers of the training rows and those of the test rows, about half of n >= 2 rows each.

    The first n // 2 entries of ``numpy.random.default_rng(seed).permutation(n)`` train, the others test, in this order.
    """
    if not is_whole(n) or n < 2:
        raise DataError(f"n must be an integer >= 2 to be split, got {n!r}")
    if not is_whole(seed) or seed < 0:
        raise DataError(f"seed must be an integer >= 0, got {seed!r}")
    order = np.random.default_rng(seed).permutation(n)
    return order[: n // 2], order[n // 2 :]
