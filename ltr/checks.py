"""What arguments are checked by: whether a value is a number at all, before its own rule is asked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["as_array", "as_float", "as_numbers", "as_sequence", "check_callable", "is_whole"]

_Item = TypeVar("_Item")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, Python's or NumPy's; True and False are none.

    Examples:
        >>> is_whole(3), is_whole(np.int64(3)), is_whole(3.0), is_whole(True)
        (True, True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def as_float(value: object) -> float:
    """A number as float64; NaN for what is none, which fails every rule: texts, None, arrays.

    Examples:
        >>> as_float(np.float32(0.5)), as_float("0.5"), as_float(10**400)
        (0.5, nan, inf)
    """
    if isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf


def as_array(name: str, values: ArrayLike, dtype: type | None = None) -> NDArray[Any]:
    """Values as an array, no copy where they are one; ValueError names an argument whose rows differ in length."""
    try:
        return np.asarray(values, dtype=dtype)
    except ValueError:
        raise ValueError(f"{name} must be an array, all rows of one length, got {values!r:.80}") from None


def as_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Values as float64, no copy where they are; ValueError names the argument that holds something else."""
    try:
        if np.iscomplexobj(values):
            raise TypeError("they are complex")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None


def as_sequence(name: str, values: Iterable[_Item], of: str) -> tuple[_Item, ...]:
    """Values as a tuple, itself where they are one; ValueError for a text, or what holds none."""
    try:
        if isinstance(values, str | bytes):
            raise TypeError
        return tuple(values)
    except TypeError:
        raise ValueError(f"{name} must be a sequence of {of}, got {values!r}") from None


def check_callable(name: str, value: object) -> None:
    """ValueError for a callback that is neither callable nor None."""
    if value is not None and not callable(value):
        raise ValueError(f"{name} must be callable, got {value!r}")
