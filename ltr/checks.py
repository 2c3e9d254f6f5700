"""What arguments are checked by: whether a value is a number at all, before its own rule is asked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "as_array",
    "as_float",
    "as_number",
    "as_numbers",
    "as_sequence",
    "check_callable",
    "check_cutoff",
    "is_whole",
    "without_spaces",
]

_Item = TypeVar("_Item")

_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)
_PUNCTUATION = re.compile(r"([(),=@])")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, Python's or NumPy's; True and False are none.

    Examples:
        >>> is_whole(3), is_whole(np.int64(3)), is_whole(3.0), is_whole(True)
        (True, True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_cutoff(name: str, cutoff: object) -> None:
    """Check the N of a cutoff ``@N``: an integer of at least 1 that torch and NumPy can hold.

    Raises:
        ValueError: another value, with the name of the argument.
    """
    if not is_whole(cutoff) or not 1 <= cutoff < 2**63:
        raise ValueError(f"{name} must be an integer from 1 to 2**63 - 1, got {cutoff!r:.80}")


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
    except (TypeError, ValueError, OverflowError) as error:
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


def as_number(text: str) -> float:
    """The float64 that a word in a name stands for, such as ``"0.5"``, ``"1e-3"`` or ``"e"``.

    Raises:
        ValueError: a word that is not a number written with the digits 0 to 9, without separators.

    Examples:
        >>> as_number("2.50"), as_number("e")
        (2.5, 2.718281828459045)
        >>> as_number("1_000")
        Traceback (most recent call last):
        ValueError: '1_000' is not a number
    """
    if text == "e":
        return math.e
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r:.80} is not a number")
    return float(text)


def without_spaces(text: str) -> str:
    """A name such as ``dcg(base=2)@10`` without the white space around its words and numbers.

    White space within a word or a number stays, so that it is refused: ``@1 0`` does not become ``@10``.

    Examples:
        >>> without_spaces(" dcg ( base = 2 ) @ 1 0")
        'dcg(base=2)@1 0'
    """
    return "".join(part.strip() for part in _PUNCTUATION.split(text))
