"""What the fit of a ranker leaves behind: the names of its features; nothing at all where it fails.

The base rankers and the two-stage ranker treat the columns of data frames as scikit-learn's estimators do, down to
the words of the messages. A fit on a frame whose columns are all texts sets ``feature_names_in_``, and predictions
refuse a frame with other columns, or with the same ones in another order. Where only one of the two had names there
is nothing to compare, which is said in a warning.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["NamedFeatures", "all_or_nothing", "feature_names", "split_names"]

_P = ParamSpec("_P")
_Ranker = TypeVar("_Ranker")
_Result = TypeVar("_Result")
_LISTED = 5  # names in a message
_NAMES = "feature_names"  # in the state of a ranker


def feature_names(X: ArrayLike) -> NDArray[np.object_] | None:
    """The names of the columns of a pandas or polars frame, (d,); None for what has none, or other than texts.

    Raises:
        TypeError: some names are texts and others are not.

    Examples:
        >>> import pandas as pd
        >>> feature_names(pd.DataFrame({"age": [1.0], "dose": [2.0]})).tolist()
        ['age', 'dose']
    """
    names = getattr(X, "columns", None)
    if names is None or not len(names):
        return None
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        other = next(name for name, is_text in zip(names, texts, strict=True) if not is_text)
        raise TypeError(f"X must have column names that are all texts, or none that is, got {other!r} beside texts")
    return np.array(list(names), dtype=object) if all(texts) else None


class NamedFeatures:
    """A ranker that remembers the names of its features.

    Attributes:
        feature_names_in_: the names of the columns that `fit` got, (d,); only where it got a frame with names.
    """

    feature_names_in_: NDArray[np.object_]

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        """The scores of the rows of an array whose columns are known to be those of the fit, (n,)."""
        raise NotImplementedError

    def _remember_names(self, names: Iterable[str] | None) -> None:
        """Keep the names of the features of this fit, None where they have none."""
        if names is not None:
            self.feature_names_in_ = np.array(list(names), dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_names(self, X: ArrayLike) -> None:
        """Compare the columns of a frame with those of the fit.

        Raises:
            ValueError: columns that are missing, new, or in another order; the message names them.
        """
        fitted, given = getattr(self, "feature_names_in_", None), feature_names(X)
        name = type(self).__name__
        if fitted is None or given is None:
            if given is not None:
                warnings.warn(f"X has feature names, but {name} was fitted without feature names", stacklevel=3)
            elif fitted is not None:
                warnings.warn(
                    f"X does not have valid feature names, but {name} was fitted with feature names", stacklevel=3
                )
            return
        if fitted.tolist() != given.tolist():
            raise ValueError(_difference(fitted.tolist(), given.tolist()))

    def _names_state(self) -> dict[str, list[str]]:
        """The names as an entry of a state, no entry without names."""
        names = getattr(self, "feature_names_in_", None)
        return {} if names is None else {_NAMES: names.tolist()}


def split_names(state: Any) -> tuple[dict[str, Any], list[str] | None]:  # noqa: ANN401 (a mapping of any values)
    """A ranker's state without the names of `NamedFeatures`, and the names; files of earlier versions have none."""
    rest = dict(state)
    return rest, rest.pop(_NAMES, None)


def all_or_nothing(
    *members: str,
) -> Callable[[Callable[Concatenate[_Ranker, _P], _Result]], Callable[Concatenate[_Ranker, _P], _Result]]:
    """Decorate a ``fit`` so that when it raises, the ranker keeps the attributes that it had before.

    Attributes are restored, not what they refer to: a fit assigns new arrays and never changes those of an earlier one.

    Args:
        members: attributes of the ranker that hold another ranker, which the fit trains in place: it is restored, too.
    """

    def decorate(fit: Callable[Concatenate[_Ranker, _P], _Result]) -> Callable[Concatenate[_Ranker, _P], _Result]:
        @functools.wraps(fit)
        def fit_or_restore(self: _Ranker, /, *args: _P.args, **kwargs: _P.kwargs) -> _Result:
            owners = [self, *(getattr(self, name) for name in members)]
            before = [(vars(owner), dict(vars(owner))) for owner in owners if hasattr(owner, "__dict__")]
            try:
                return fit(self, *args, **kwargs)
            except BaseException:
                for attributes, earlier in before:
                    attributes.clear()
                    attributes.update(earlier)
                raise

        return fit_or_restore

    return decorate


def _difference(fitted: list[str], given: list[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    for title, names in (
        ("Feature names unseen at fit time:", sorted(set(given) - set(fitted))),
        ("Feature names seen at fit time, yet now missing:", sorted(set(fitted) - set(given))),
    ):
        if names:
            more = ["- ..."] if len(names) > _LISTED else []
            lines += [title, *(f"- {name}" for name in names[:_LISTED]), *more]
    if len(lines) == 1:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"
