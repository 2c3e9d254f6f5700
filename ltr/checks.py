"""What arguments are checked by: whether a value is a number at all, before its own rule is asked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["as_float", "as_numbers", "as_sequence", "is_whole"]

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


def as_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Values as float64, no copy where they are; ValueError names the argument that holds something else."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None


def as_sequence(name: str, values: Iterable[_Item], of: str) -> tuple[_Item, ...]:
    """Values as a tuple, itself where they are one; ValueError for a text, or what holds none."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a sequence of {of}, got {values!r}")
    return tuple(values)
