"""Checks of arguments: numbers, arrays, sequences and words, each with one clear error, and several errors in one.

Also the one place where names such as ``p_norm_push(p=2)`` and ``mymodule:MyLoss(width=2)`` are read, and where the
latter are imported, if they may be: see `trusting`.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.machinery
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Item = TypeVar("_Item")
_Text = TypeVar("_Text", bound=str)

_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)
_PUNCTUATION = re.compile(r"([(),=@])")
_GRAMMAR = re.compile(r"(?P<name>[\w.]+(?::[\w.]+)?)(?:\((?P<options>.*)\))?")
_OPEN, _CLOSE = "([{", ")]}"
PIECE = 1 << 12
"""Largest number of rows that are checked, converted or scored at a time: a table may take most of the memory."""


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer of Python or NumPy; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def one_of(name: str, value: _Text, allowed: Iterable[str]) -> _Text:
    """Return a word if it is allowed; raise ValueError, which lists all allowed ones, for any other value."""
    if value not in (words := tuple(allowed)):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, got {value!r:.80}")
    return value


def check_whole(name: str, value: object, least: int, otherwise: str = "") -> None:
    """Raise ValueError unless a value is an integer of at least `least`; `otherwise` names what else is allowed."""
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}{otherwise}, got {value!r:.80}")


def check_number(name: str, value: object, *, least: float = 0.0, above: float | None = None) -> None:
    """Raise ValueError unless a value is a finite number of at least `least`, or one above `above` if that is given."""
    number = math.nan if isinstance(value, bool) else as_float(value)
    if not (number >= least if above is None else number > above) or number == math.inf:
        rule = f">= {least:g}" if above is None else f"> {above:g}"
        raise ValueError(f"{name} must be a finite number {rule}, got {value!r:.80}")


def check_flag(name: str, value: object) -> None:
    """Raise ValueError unless a value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be true or false, got {value!r:.80}")


def check_cutoff(name: str, cutoff: object) -> None:
    """Raise ValueError unless the N of a cutoff ``@N`` is an integer of at least 1 that torch and NumPy can hold."""
    if not is_whole(cutoff) or not 1 <= cutoff < 2**63:
        raise ValueError(f"{name} must be an integer from 1 to 2**63 - 1, got {cutoff!r:.80}")


def as_float(value: object) -> float:
    """Return a number as float64, and NaN, which fails every rule, for anything else: texts, None, arrays."""
    if isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf


def as_array(name: str, values: ArrayLike, dtype: type | None = None) -> NDArray[Any]:
    """Return values as an array, without a copy if they are one; raise ValueError if their rows differ in length."""
    try:
        return np.asarray(values, dtype=dtype)
    except ValueError:
        raise ValueError(f"{name} must be an array, all rows of one length, got {values!r:.80}") from None


def as_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return values as float64, without a copy if they are; raise ValueError if they are not real numbers."""
    try:
        if np.iscomplexobj(values):
            raise TypeError("they are complex")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None


def as_matrix(name: str, values: ArrayLike, rows: int = 1) -> NDArray[Any]:
    """Return numbers as a 2-D array, without a copy if they are one of any type; the errors are `check_matrix`'s."""
    matrix = as_array(name, values)
    if matrix.dtype.kind not in "fiub":
        matrix = as_numbers(name, matrix)
    check_matrix(name, matrix, rows)
    return matrix


def check_matrix(name: str, values: NDArray[Any], rows: int = 1) -> None:
    """Raise ValueError unless values are a 2-D array of finite numbers with so many rows and a column, or more."""
    if values.ndim != 2 or values.shape[0] < rows or values.shape[1] < 1:
        least = "one row and one column" if rows else "one column"
        raise ValueError(f"{name} must be 2-D with at least {least}, got shape {values.shape}")
    for piece in pieces(len(values)):
        part = values[piece] if values.dtype.kind == "f" else np.asarray(values[piece], dtype=np.float64)
        if not np.isfinite(part).all():
            row, column = np.argwhere(~np.isfinite(part))[0]
            found = f"{part[row, column]} at row {piece.start + row}, column {column}"
            raise ValueError(f"{name} must be finite, got {found}")


def pieces(rows: int) -> Iterator[slice]:
    """Yield slices that divide so many rows into pieces of `PIECE` rows, the last of which may be shorter."""
    for begin in range(0, rows, PIECE):
        yield slice(begin, min(begin + PIECE, rows))


def doubles(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers as float64 in C order, without a copy if they are; every float32 is a float64."""
    return np.ascontiguousarray(values, dtype=np.float64)


def by_piece(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]], features: NDArray[Any]
) -> NDArray[np.float64]:
    """Return a function's numbers for each row, (n,), which is called with pieces of the features as float64."""

    def of(piece: slice) -> NDArray[np.float64]:
        # torch has no tensors on memory that may not be written
        return function(np.require(doubles(features[piece]), requirements="W"))

    if len(features) <= PIECE:
        return of(slice(None))
    found = np.empty(len(features))
    for piece in pieces(len(features)):
        found[piece] = of(piece)
    return found


def as_sequence(name: str, values: Iterable[_Item], of: str) -> tuple[_Item, ...]:
    """Return values as a tuple; raise ValueError for a text, or a value that is not iterable."""
    try:
        if isinstance(values, str | bytes):
            raise TypeError
        return tuple(values)
    except TypeError:
        raise ValueError(f"{name} must be a sequence of {of}, got {values!r}") from None


PLACES: list[str] = []
"""Folders in which modules of the user's own are looked for, after all others: that of a config, the current one."""

_TRUSTED: ContextVar[bool] = ContextVar("trusted", default=True)


class UntrustedError(ValueError):
    """A file names code, and nobody has said that it may be run."""


@contextlib.contextmanager
def trusting(allowed: bool) -> Iterator[None]:
    """Return a context in which code that files and texts name by import path may be run, as outside, or may not be.

    ``with trusting(False)``, `imported` raises UntrustedError before anything is imported.
    """
    before = _TRUSTED.set(allowed)
    try:
        yield
    finally:
        _TRUSTED.reset(before)


def is_trusting() -> bool:
    """Return whether code that files and texts name by import path may be run."""
    return _TRUSTED.get()


def imported(what: str, module: str) -> ModuleType:
    """Import the module of a name such as ``mymodule:MyLoss``; the ValueError of one that fails begins with `what`."""
    if not is_trusting():
        advice = "add --trust if you trust whoever wrote it"
        raise UntrustedError(f"{what:.80}: would run the code of {_place_of(module)}; {advice}")
    sys.path.extend(place for place in PLACES if place not in sys.path)
    try:
        return importlib.import_module(module)
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        hint = "; install it, or put its folder on PYTHONPATH" if missing else ""
        reason = f"{type(error).__name__}: {error!s:.200}{hint}"
        raise ValueError(f"{what:.80}: importing {module:.80} failed: {reason}") from error


def _place_of(module: str) -> str:
    """Return a module with the file that it would be imported from, which is only looked for."""
    try:
        found = importlib.machinery.PathFinder.find_spec(module.partition(".")[0], [*sys.path, *PLACES])
    except (ImportError, ValueError, OSError):
        found = None
    origin = None if found is None else found.origin or next(iter(found.submodule_search_locations or ()), None)
    return f"the module {module:.80}" + ("" if origin is None else f" in {origin}")


def nearest(word: str, known: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> str:
    """Return `` (did you mean 'top_k'?)`` for a near miss of a known word, else an empty text.

    `elsewhere` has words of other libraries, in lower case without underscores, and what they are called here.
    """
    match = (elsewhere or {}).get(word.lower().replace("_", ""))
    if not match:
        alike = {one.casefold(): one for one in known}
        match = next((alike[one] for one in difflib.get_close_matches(word.casefold(), alike, n=1, cutoff=0.6)), None)
    return f" (did you mean {match!r}?)" if match else ""


def check_callable(name: str, value: object) -> None:
    """Raise ValueError for a callback that is neither callable nor None."""
    if value is not None and not callable(value):
        raise ValueError(f"{name} must be callable, got {value!r}")


def as_number(text: str) -> float:
    """Return the float64 that a word in a name stands for, such as ``"0.5"`` or ``"e"``, or raise ValueError."""
    if text == "e":
        return math.e
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r:.80} is not a number")
    return float(text)


def without_spaces(text: str) -> str:
    """Return a name such as ``dcg(base=2)@10`` without white space, but for that within words, which is refused."""
    return "".join(part.strip() for part in _PUNCTUATION.split(text))


def read_call(what: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the name in a text such as ``name(option=value,...)``, and its options as texts.

    White space around words is ignored; the ValueError for another text begins with `what`.

    Examples:
        >>> read_call("loss", "smooth(statistic = dcg(base=e)@10, temperature=0.1)")
        ('smooth', ('statistic=dcg(base=e)@10', 'temperature=0.1'))
    """
    match = _GRAMMAR.fullmatch(without_spaces(text))
    if match is None:
        raise ValueError(f"{what} must read name or name(option=value,...), got {text!r}")
    return match["name"], () if match["options"] is None else tuple(split_at_commas(match["options"]))


def split_at_commas(text: str) -> list[str]:
    """Return the parts of a text between its commas; those in brackets separate nothing."""
    parts, depth = [""], 0
    for letter in text:
        if letter == "," and depth == 0:
            parts.append("")
            continue
        depth = max(0, depth + (letter in _OPEN) - (letter in _CLOSE))
        parts[-1] += letter
    return parts


def named_object(what: str, path: str) -> Any:  # noqa: ANN401 (a class or any other object)
    """Return what an import path such as ``mymodule:MyLoss`` names; a ValueError begins with `what`."""
    module, _, name = path.partition(":")
    found: Any = imported(what, module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{what}: module {module!r} has no {name!r}{nearest(part, dir(found))}")
        found = getattr(found, part)
    return found


def in_one_message(where: str, lines: Sequence[str], what: str) -> str:
    """Return all that is wrong in one message, after the place, with a count of `what` the lines are if several."""
    heading = f"{where}: " if where else ""
    return heading + "\n  ".join([f"{len(lines)} {what}", *lines] if len(lines) > 1 else lines)
