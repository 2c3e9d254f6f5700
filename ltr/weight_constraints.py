"""Constraints on the weights of columns: signs, columns that must or must not be used, linear rows, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ltr.checks import as_float, is_whole, nearest
from ltr.data.kinds import features_of

__all__ = ["CONSTRAINTS", "Column", "Constrained", "RankerKind", "Row", "WeightConstraints", "read_constraints"]

FloatArray = NDArray[np.float64]
Column = str | int
"""A column by its name, or by its number from 0."""
Row = str | Mapping[Column, float]
"""A linear row: a text such as ``"age >= 2*bmi"``, or the factors of a sum of weights that is at least 0."""

RankerKind = Literal["linear", "trees", "other"]
"""Kinds of rankers by what they can promise: linear scores, trees with monotone constraints, everything else."""

CONSTRAINTS = ("signs", "required", "forbidden", "constraints", "max_nonzeros")
"""Arguments of `read_constraints` that state constraints, which are parameters of rankers, too."""

_SIGNS = {"+": 1.0, "-": -1.0}
_TERM = (
    r"\s*(?P<operator>>=|<=|==?)?\s*(?P<sign>[+-])?\s*"
    r"(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])\s*(?P<times>\*)?\s*)?(?:(?P<name>{names})(?![\w.]))?\s*"
)
_WORD = re.compile(r"[^\s*+\-<>=]+|.")


@dataclass(frozen=True)
class WeightConstraints:
    """Constraints on the weights of d columns, all by number.

    `signs` are 1, -1 or 0 (any sign), (d,); `rows` the factors of sums of weights that are at least 0, (rows, d).
    """

    signs: FloatArray
    required: tuple[int, ...]
    forbidden: tuple[int, ...]
    rows: FloatArray
    max_nonzeros: int | None = None

    @property
    def stated(self) -> tuple[str, ...]:
        """The parameters that state these constraints."""
        return tuple(name for name, value in self.parameters.items() if value not in (None, ()))

    def __bool__(self) -> bool:
        """Whether anything is stated."""
        return bool(self.stated)

    @property
    def parameters(self) -> dict[str, Any]:
        """The constraints as parameters of a ranker, which have columns by number."""
        rows = tuple({int(j): float(row[j]) for j in np.flatnonzero(row)} for row in self.rows)
        signs = {int(j): "+" if self.signs[j] > 0 else "-" for j in np.flatnonzero(self.signs)}
        columns = {"signs": signs or None, "required": self.required, "forbidden": self.forbidden}
        return {**columns, "constraints": rows, "max_nonzeros": self.max_nonzeros}

    @property
    def inequalities(self) -> FloatArray:
        """The signs and the rows as factors of sums of weights that are at least 0, (inequalities, d)."""
        return np.vstack([np.diag(self.signs)[self.signs != 0], self.rows])


def read_constraints(
    d: int,
    names: Sequence[str] | None = None,
    *,
    signs: Mapping[Column, str] | None = None,
    required: Iterable[Column] = (),
    forbidden: Iterable[Column] = (),
    constraints: Iterable[Row] = (),
    max_nonzeros: int | None = None,
    on_error: Callable[[str, str, object], None] | None = None,
) -> WeightConstraints:
    """Return constraints by column number; they are the parameters of those names of `ltr.rankers.ExactRanker`.

    Where the d columns are features that are made of the columns of a table (`ltr.data.kinds`), the name of a table's
    column stands for its number; where it is forbidden, for all of its features. `on_error` is called with the
    argument, the rule that it breaks and the value; without it, one ValueError tells all that is wrong.

    Examples:
        >>> constraints = read_constraints(3, ["age", "bmi", "sex"], signs={"age": "+"}, constraints=["age >= 2*bmi"])
        >>> constraints.inequalities.tolist()
        [[1.0, 0.0, 0.0], [1.0, -2.0, 0.0]]
        >>> read_constraints(2, ["age", "bmi"], required=["bni"], forbidden=["agee"])
        Traceback (most recent call last):
        ...
        ValueError: required: there is no column 'bni' (did you mean 'bmi'?)
        forbidden: there is no column 'agee' (did you mean 'age'?)
    """
    found: list[str] = []

    def wrong(argument: str, rule: str, value: object) -> None:
        if on_error is None:
            found.append(f"{argument}: {rule}")
        else:
            on_error(argument, rule, value)

    columns = _Columns(d, names, wrong)
    sign = np.zeros(d)
    if signs is not None and not isinstance(signs, Mapping):
        wrong("signs", f"must give columns a sign, such as {{'age': '+'}}, got {signs!r:.80}", signs)
        signs = None
    for column, text in (signs or {}).items():
        at = columns.find("signs", column)
        if text not in _SIGNS:
            wrong("signs", f"the sign of {column!r} must be '+' or '-', got {text!r:.80}", text)
        elif at is not None:
            sign[at] = _SIGNS[text]
    given: dict[str, list[Any]] = {}
    for name, value in {"required": required, "forbidden": forbidden, "constraints": constraints}.items():
        listed = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
        given[name] = list(value) if listed else []
        if not listed:
            wrong(name, f"must be a list, got {value!r:.80}", value)
    needed, unused = (
        sorted({at for column in given[name] for at in columns.find_all(name, column)})
        for name in ("required", "forbidden")
    )
    for at in sorted(set(needed) & set(unused)):
        wrong("forbidden", f"{columns.names[at]} is required", columns.names[at])
    if max_nonzeros is not None and not (is_whole(max_nonzeros) and max_nonzeros >= 1):
        wrong("max_nonzeros", f"must be an integer >= 1 or None for no limit, got {max_nonzeros!r}", max_nonzeros)
    elif max_nonzeros is not None and len(needed) > max_nonzeros:
        rule = f"at most max_nonzeros = {max_nonzeros} columns may be used, got {len(needed)}"
        wrong("required", rule, [columns.names[at] for at in needed])
    rows = [row for one in given["constraints"] for row in columns.rows(one)]
    if found:
        raise ValueError("\n".join(found))
    most = None if max_nonzeros is None else int(max_nonzeros)
    return WeightConstraints(sign, tuple(needed), tuple(unused), np.array(rows).reshape(len(rows), d), most)


@dataclass(eq=False, repr=False, kw_only=True)
class Constrained:
    """The parameters by which a ranker states constraints on columns, see `read_constraints`."""

    signs: Mapping[Column, str] | None = None
    required: Sequence[Column] = ()
    forbidden: Sequence[Column] = ()
    constraints: Sequence[Row] = ()
    max_nonzeros: int | None = None

    def _weight_constraints(self) -> WeightConstraints:
        """Return the constraints by column number, once the number and names of the columns are known."""
        names = getattr(self, "feature_names_in_", None)
        given = {name: getattr(self, name) for name in CONSTRAINTS}
        return read_constraints(self.n_features_in_, None if names is None else list(map(str, names)), **given)  # type: ignore[attr-defined]

    @property
    def _is_constrained(self) -> bool:
        """Whether any constraints are stated."""
        return any(getattr(self, name) not in (None, (), [], {}) for name in CONSTRAINTS)


class _Columns:
    """Columns by name and number; `wrong` is called with what is wrong with an argument, see `read_constraints`."""

    def __init__(self, d: int, names: Sequence[str] | None, wrong: Callable[[str, str, object], None]) -> None:
        self._d, self._named, self._wrong = d, names is not None, wrong
        self.names = [str(j) for j in range(d)] if names is None else list(names)
        # in texts, columns without names are x0, x1, ...
        self._places = {name: at for at, name in enumerate(names or [f"x{j}" for j in range(d)])}
        # longest names first, for one may contain another
        known = "|".join(re.escape(name) for name in sorted(self._places, key=len, reverse=True)) or r"(?!)"
        self._term = re.compile(_TERM.format(names=known))

    def find(self, argument: str, column: object) -> int | None:
        """Return the number of a column, None after an error."""
        if is_whole(column) and 0 <= column < self._d:
            return int(column)
        if not isinstance(column, str):
            have = "a column name or a number" if self._named else "a column number"
            self._wrong(argument, f"must be {have} from 0 to {self._d - 1}, got {column!r:.80}", column)
        elif not self._named:
            rule = f"X has no column names: use a number from 0 to {self._d - 1}, got {column!r}"
            self._wrong(argument, rule, column)
        elif column in self._places:
            return self._places[column]
        else:
            made = features_of(column, self.names)
            if made and not made[0].startswith((f"{column} = ", f"{column} is missing")):
                return self._places[made[0]]
            several = f"column {column!r} becomes {', '.join(map(repr, made))}: name one of them"
            self._wrong(argument, several if made else self._no_column(column), column)
        return None

    def find_all(self, argument: str, column: object) -> list[int]:
        """Return the number of a column, or those of all features that are made of a forbidden one."""
        all_of = argument == "forbidden" and isinstance(column, str) and self._named
        if made := features_of(str(column), self.names) if all_of else ():
            return [self._places[name] for name in made]
        return [at for at in [self.find(argument, column)] if at is not None]

    def _no_column(self, word: str) -> str:
        known = nearest(word, self._places) or f"; columns are {', '.join(map(repr, list(self._places)[:3]))}, ..."
        return f"there is no column {word!r}{known}"

    def rows(self, given: object) -> list[FloatArray]:
        """Return the factors of a row, two of them for an equation, none after an error."""
        row = np.zeros(self._d)
        if isinstance(given, str):
            try:
                return self._parsed(given)
            except ValueError as error:
                self._wrong("constraints", f"{given!r}: {error}", given)
        elif not isinstance(given, Mapping):
            self._wrong("constraints", f"must be texts such as 'age >= 2*bmi', got {given!r:.80}", given)
        for column, factor in given.items() if isinstance(given, Mapping) else ():
            at = self.find("constraints", column)
            if isinstance(factor, bool) or not np.isfinite(as_float(factor)):
                rule = f"the factor of {column!r} must be a finite number, got {factor!r:.80}"
                self._wrong("constraints", rule, given)
            elif at is not None:
                row[at] += factor
        return [row] if isinstance(given, Mapping) else []

    def _parsed(self, text: str) -> list[FloatArray]:
        """Return the factors of a row in words: terms such as ``2*bmi``, of which those after the operator count -1."""
        row, operator, at = np.zeros(self._d), "", 0
        while at < len(text):
            term = self._term.match(text, at)
            assert term is not None  # all its parts may be missing
            number, name = term["number"], term["name"]
            if name is None and (number is None or term["times"]):
                raise ValueError(self._misread(text[term.end() :]))
            if at > 0 and not (term["operator"] or term["sign"]):
                raise ValueError(f"there is no operator before {number or name!r}")
            if name is None and float(number) != 0:
                raise ValueError(f"the number {number} stands alone: only ratios of weights matter, so it must be 0")
            if name is not None and number is not None and not term["times"]:
                raise ValueError(f"there is no operator before {name!r}")
            if term["operator"] and operator:
                raise ValueError("there is more than one of >=, <= and =")
            operator, at = term["operator"] or operator, term.end()
            if name is not None:
                side = -1.0 if operator else 1.0
                row[self._places[name]] += side * _SIGNS[term["sign"] or "+"] * float(number or 1.0)
        if not operator:
            raise ValueError("there is none of >=, <= and =")
        return {">=": [row], "<=": [-row]}.get(operator, [row, -row])

    def _misread(self, rest: str) -> str:
        """Return what is wrong with the rest of a row, where a column should stand."""
        word = _WORD.match(rest)
        if word is None:
            return "something is missing at the end"
        if word[0] == "*":
            return "'*' must follow a number"
        return f"{word[0]!r} is none of >=, <= and =" if word[0] in "<>" else self._no_column(word[0])


def signed_sum(terms: Iterable[tuple[bool, str]]) -> str:
    """Return a sum in words, whose terms say whether they are subtracted, such as ``2 age - bmi``; 0 for none."""
    text = ""
    for negative, term in terms:
        sign = f" {'-' if negative else '+'} " if text else "-" if negative else ""
        text += f"{sign}{term}"
    return text or "0"
