"""What is demanded of the weights of columns: signs, columns that must or must not be used, linear rows, by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ltr.checks import is_whole
from ltr.data.kinds import features_of

__all__ = ["DEMANDS", "Column", "Demanding", "Demands", "RankerKind", "Row", "read_demands"]

FloatArray = NDArray[np.float64]
Column = str | int
"""A column by its name, or by its number from 0."""
Row = str | Mapping[Column, float]
"""A linear row: a text such as ``"age >= 2*bmi"``, or the factors of a sum of weights that is at least 0."""

RankerKind = Literal["linear", "trees", "other"]
"""Kinds of rankers by what they can promise: linear scores, trees with monotone constraints, everything else."""

DEMANDS = ("signs", "required", "forbidden", "constraints", "max_nonzeros")
"""Arguments of `read_demands` that state demands, which are parameters of rankers, too."""

_SIGNS = {"+": 1.0, "-": -1.0}
_WORDS = (
    r"(?P<operator>>=|<=|==|=)|(?P<name>{names})(?![\w.])|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"
    r"|(?P<sign>[+-])|(?P<times>\*)|(?P<other>[^\s*+\-<>=]+|[<>])"
)
_MOST = 3  # nearest names in a message


@dataclass(frozen=True)
class Demands:
    """Demands on the weights of d columns, all by number.

    Attributes:
        signs: 1, -1 or 0 (any sign) for each column, (d,).
        rows: factors of sums of weights that are at least 0, (rows, d).
    """

    signs: FloatArray
    required: tuple[int, ...]
    forbidden: tuple[int, ...]
    rows: FloatArray
    max_nonzeros: int | None = None

    def __bool__(self) -> bool:
        """Whether anything is demanded."""
        return bool(
            self.signs.any() or self.required or self.forbidden or len(self.rows) or self.max_nonzeros is not None
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The demands as parameters of a ranker, which have columns by number."""
        rows = tuple({int(j): float(row[j]) for j in np.flatnonzero(row)} for row in self.rows)
        signs = {int(j): "+" if self.signs[j] > 0 else "-" for j in np.flatnonzero(self.signs)}
        columns = {"signs": signs or None, "required": self.required, "forbidden": self.forbidden}
        return {**columns, "constraints": rows, "max_nonzeros": self.max_nonzeros}

    @property
    def inequalities(self) -> FloatArray:
        """The signs and the rows as factors of sums of weights that are at least 0, (inequalities, d)."""
        return np.vstack([np.diag(self.signs)[self.signs != 0], self.rows])


def read_demands(
    d: int,
    names: Sequence[str] | None = None,
    *,
    signs: Mapping[Column, str] | None = None,
    required: Iterable[Column] = (),
    forbidden: Iterable[Column] = (),
    constraints: Iterable[Row] = (),
    max_nonzeros: int | None = None,
    on_error: Callable[[str, str, object], None] | None = None,
) -> Demands:
    """Return demands by column number; they are the parameters of those names of `ltr.rankers.ExactRanker`.

    There are d columns, which may have names. They may be features that are made of the columns of a table
    (`ltr.data.kinds`): the name of a table's column stands for its number, with or without a feature for missing
    values; where it is forbidden, for all of its features. `on_error` is called with the argument, the rule that it
    breaks and the value; without it, one ValueError says everything that is wrong, with the nearest names.

    Examples:
        >>> demands = read_demands(3, ["age", "bmi", "sex"], signs={"age": "+"}, constraints=["age >= 2*bmi"])
        >>> demands.inequalities.tolist()
        [[1.0, 0.0, 0.0], [1.0, -2.0, 0.0]]
        >>> read_demands(2, ["age", "bmi"], required=["bni"], forbidden=["agee"])
        Traceback (most recent call last):
        ...
        ValueError: required: there is no column 'bni'; nearest is 'bmi'
        forbidden: there is no column 'agee'; nearest is 'age'
    """
    found: list[str] = []

    def wrong(argument: str, rule: str, value: object) -> None:
        if on_error is None:
            found.append(f"{argument}: {rule}")
        else:
            on_error(argument, rule, value)

    columns = _Columns(d, names)
    sign = np.zeros(d)
    for column, text in _mapping("signs", signs, wrong).items():
        at = columns.find("signs", column, wrong)
        if text not in _SIGNS:
            wrong("signs", f"the sign of {column!r} must be '+' or '-', got {text!r:.80}", text)
        elif at is not None:
            sign[at] = _SIGNS[text]
    needed, unused = (
        [at for column in _listed(name, given, wrong) for at in columns.find_all(name, column, wrong, every=every)]
        for name, given, every in (("required", required, False), ("forbidden", forbidden, True))
    )
    for at in sorted(set(needed) & set(unused)):
        wrong("forbidden", f"{columns.name(at)} is required", columns.name(at))
    if max_nonzeros is not None and not (is_whole(max_nonzeros) and max_nonzeros >= 1):
        wrong("max_nonzeros", f"must be an integer >= 1 or None for no limit, got {max_nonzeros!r}", max_nonzeros)
    elif max_nonzeros is not None and len(set(needed)) > max_nonzeros:
        rule = f"at most max_nonzeros = {max_nonzeros} columns may be used, got {len(set(needed))}"
        wrong("required", rule, [columns.name(at) for at in needed])
    rows = [row for given in _listed("constraints", constraints, wrong) for row in columns.rows(given, wrong)]
    if found:
        raise ValueError("\n".join(found))
    most = None if max_nonzeros is None else int(max_nonzeros)
    factors = np.array(rows).reshape(len(rows), d)
    return Demands(sign, tuple(sorted(set(needed))), tuple(sorted(set(unused))), factors, most)


@dataclass(eq=False, repr=False, kw_only=True)
class Demanding:
    """The parameters by which a ranker states constraints on columns, see `read_demands`."""

    signs: Mapping[Column, str] | None = None
    required: Sequence[Column] = ()
    forbidden: Sequence[Column] = ()
    constraints: Sequence[Row] = ()
    max_nonzeros: int | None = None

    def _demands(self) -> Demands:
        """Return the constraints by column number, once the number and names of the columns are known."""
        names = getattr(self, "feature_names_in_", None)
        given = {name: getattr(self, name) for name in DEMANDS}
        return read_demands(self.n_features_in_, None if names is None else list(map(str, names)), **given)  # type: ignore[attr-defined]

    @property
    def _demanding(self) -> bool:
        """Whether any constraints are stated."""
        return any(getattr(self, name) not in (None, (), [], {}) for name in DEMANDS)


_Wrong = Callable[[str, str, object], None]


class _Columns:
    """Columns by name and number."""

    def __init__(self, d: int, names: Sequence[str] | None) -> None:
        self._d = d
        self._names = None if names is None else list(names)
        # in texts, columns without names are x0, x1, ...
        self._words = {name: at for at, name in enumerate(names or [f"x{j}" for j in range(d)])}
        # longest names first, for one may contain another
        known = "|".join(re.escape(name) for name in sorted(self._words, key=len, reverse=True)) or r"(?!)"
        self._pattern = re.compile(_WORDS.format(names=known))

    def name(self, at: int) -> str:
        return str(at) if self._names is None else self._names[at]

    def find(self, argument: str, column: object, wrong: _Wrong) -> int | None:
        """Return the number of a column, None after an error."""
        if is_whole(column) and 0 <= column < self._d:
            return int(column)
        if isinstance(column, str) and self._names is not None:
            if column in self._words:
                return self._words[column]
            if made := features_of(column, self._names):
                if not made[0].startswith((f"{column} = ", f"{column} is missing")):
                    return self._words[made[0]]
                wrong(argument, f"column {column!r} becomes {quoted(made)}: name one of them", column)
                return None
            wrong(argument, f"there is no column {column!r}{self._nearest(column)}", column)
        elif isinstance(column, str):
            wrong(argument, f"X has no column names: use a number from 0 to {self._d - 1}, got {column!r}", column)
        else:
            have = "a column name or a number" if self._names is not None else "a column number"
            wrong(argument, f"must be {have} from 0 to {self._d - 1}, got {column!r:.80}", column)
        return None

    def find_all(self, argument: str, column: object, wrong: _Wrong, *, every: bool) -> list[int]:
        """Return the number of a column, or those of `every` feature that is made of it; none after an error."""
        if every and isinstance(column, str) and self._names is not None and (made := features_of(column, self._names)):
            return [self._words[name] for name in made]
        return [at for at in [self.find(argument, column, wrong)] if at is not None]

    def _nearest(self, word: str) -> str:
        near = difflib.get_close_matches(word, list(self._words), n=_MOST, cutoff=0.5)
        some = near or list(self._words)[:_MOST]
        told = quoted(some)
        return f"; nearest {'is' if len(near) == 1 else 'are'} {told}" if near else f"; columns are {told}, ..."

    def rows(self, given: object, wrong: _Wrong) -> list[FloatArray]:
        """Return the factors of a row, two of them for an equation, none after an error."""
        if isinstance(given, str):
            return self._parsed(given, wrong)
        if isinstance(given, Mapping):
            row = np.zeros(self._d)
            for column, factor in given.items():
                at = self.find("constraints", column, wrong)
                if isinstance(factor, bool) or not isinstance(factor, int | float) or not np.isfinite(factor):
                    wrong("constraints", f"the factor of {column!r} must be a finite number, got {factor!r:.80}", given)
                elif at is not None:
                    row[at] += factor
            return [row]
        wrong("constraints", f"must be texts such as 'age >= 2*bmi', got {given!r:.80}", given)
        return []

    def _parsed(self, given: str, wrong: _Wrong) -> list[FloatArray]:
        """Return the factors of a row in words: terms such as ``2*bmi``, of which those after the operator count -1."""
        row, operator, side = np.zeros(self._d), "", 1.0
        sign, factor, last = 1.0, None, ""  # of the term that is being read, and the kind of the word before
        problems: list[str] = []
        for match in self._pattern.finditer(given):
            kind, text = str(match.lastgroup), match.group()
            if kind in ("name", "number") and last not in ("", "operator", "sign", *(["times"] * (kind == "name"))):
                problems.append(f"there is no operator before {text!r}")
            if kind == "name":
                row[self._words[text]] += side * sign * (1.0 if factor is None else factor)
                sign, factor = 1.0, None
            elif kind == "number":
                factor = float(text)
            elif kind == "times":
                problems += [] if last == "number" else ["'*' must follow a number"]
            elif kind == "other":
                comparison = f"{text!r} is none of >=, <= and ="
                problems.append(comparison if text in "<>" else f"there is no column {text!r}{self._nearest(text)}")
                factor = None
            else:
                problems += self._constant(factor)
                factor = None
                if kind == "sign":
                    sign = _SIGNS[text] * (sign if last == "sign" else 1.0)
                else:
                    problems += ["there is more than one of >=, <= and ="] if operator else []
                    operator, side, sign = text, -1.0, 1.0
            last = kind
        problems += self._constant(factor)
        if last in ("operator", "sign", "times"):
            problems.append("something is missing at the end")
        if not operator and not problems:
            problems.append("there is none of >=, <= and =")
        if problems:
            wrong("constraints", f"{given!r}: {'; '.join(dict.fromkeys(problems))}", given)
            return []
        return {">=": [row], "<=": [-row]}.get(operator, [row, -row])

    @staticmethod
    def _constant(factor: float | None) -> list[str]:
        """Return what is wrong with a number that no name follows."""
        if not factor:
            return []
        return [f"the number {factor:g} stands alone: only ratios of weights matter, so it must be 0"]


def quoted(names: Sequence[str]) -> str:
    """Return the first names in quotes, for messages."""
    shown = [*map(repr, names[:_MOST]), *["others"] * (len(names) > _MOST)]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _listed(name: str, given: object, wrong: _Wrong) -> list[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        wrong(name, f"must be a list, got {given!r:.80}", given)
        return []
    return list(given)


def _mapping(name: str, given: object, wrong: _Wrong) -> Mapping[Column, str]:
    if given is not None and not isinstance(given, Mapping):
        wrong(name, f"must give columns a sign, such as {{'age': '+'}}, got {given!r:.80}", given)
        return {}
    return given or {}
