"""What is wrong with a table: every problem with its place, rule and value, and what solves it, in one error."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import in_one_message
from ltr.data.dataset import DataError


@dataclass(frozen=True)
class Remedy:
    """One way to solve a problem: a key of a config's section ``data``, or something to do."""

    effect: str  # what the key does, such as "leaves it out"; without a key, what to do
    key: str = ""
    value: object = None  # of the key; the entries of a list are added to those that it has

    def text(self, given: Mapping[str, Sequence[Any]]) -> str:
        """Return the remedy as a line of a config."""
        if not self.key:
            return self.effect
        return f"data.{self.key} = {toml_value(_added(given.get(self.key, ()), [self.value]))} {self.effect}"


class Problem(DataError):  # noqa: N818 (mostly listed, seldom raised)
    """One problem: what is wrong where, and its remedies, of which the first is the usual one."""

    def __init__(self, text: str, remedies: Sequence[Remedy] = ()) -> None:
        super().__init__(text)
        self.text, self.remedies = text, tuple(remedies)

    def line(self, given: Mapping[str, Sequence[Any]]) -> str:
        """Return the problem with its remedies."""
        return "; ".join([self.text, *(remedy.text(given) for remedy in self.remedies)])


class TableError(DataError):
    """A table that cannot be used: all `problems` of the file or frame `where`, also as `problems_text`.

    Remedies add to the lists that the config has already, which are `given` by key.

    Examples:
        >>> note = Problem("column 'note': 90 different texts", (Remedy("leaves it out", "drop", ["note"]),))
        >>> print(TableError("t.csv", [note], given={"drop": ["id"]}))
        t.csv: column 'note': 90 different texts; data.drop = ["id", "note"] leaves it out
        lines for the config:
          [data]
          drop = ["id", "note"]
    """

    def __init__(
        self, where: str, problems: Sequence[Problem], *, given: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        self.where, self.problems, self.given = where, tuple(problems), dict(given or {})
        self.problems_text = in_one_message(where, [one.line(self.given) for one in self.problems], "problems")
        keys = [f"\n  {line}" for line in self.lines()]
        super().__init__(self.problems_text + "".join(["\nlines for the config:\n  [data]", *keys] if keys else []))

    def for_command(self) -> str:
        """Return the message for a command without a config, with arguments in place of the lines."""
        text = self.problems_text
        keys = [shlex.quote("data." + line.replace(" = ", "=", 1)) for line in self.lines()]
        return f"{text}\narguments for the command: {' '.join(keys)}" if keys else text

    def lines(self) -> list[str]:
        """Return the lines of the section ``data`` of a config that solve the problems that keys can solve."""
        values: dict[str, list[object]] = {}
        for problem in self.problems:
            for remedy in problem.remedies[:1]:
                if remedy.key:
                    values.setdefault(remedy.key, []).append(remedy.value)
        return [f"{key} = {toml_value(_added(self.given.get(key, ()), found))}" for key, found in values.items()]


def _added(given: Sequence[Any], values: Iterable[object]) -> object:
    """Return one value for a key: lists joined without repeats, otherwise the last one."""
    values = list(values)
    if not isinstance(values[-1], list):
        return values[-1]
    return list(dict.fromkeys([*given, *(entry for value in values if isinstance(value, list) for entry in value)]))


def toml_value(value: object) -> str:
    """Return a string, number, boolean or list as TOML has it: as JSON, but DEL, which JSON leaves bare, is escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def listed(values: Iterable[object], most: int = 5) -> str:
    """Return the first values, quoted, and how many more there are: ``'bus', 'car' and 1 more``."""
    texts = [repr(value) if len(str(value)) <= 40 else repr(str(value)[:37] + "...") for value in values]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def in_row(rows: Sequence[int] | NDArray[np.intp], got: object = "none") -> str:
    """Return what a message says was found in the first of some rows, numbered from 0, and in how many more."""
    return f"{got} in row {rows[0] + 1}" + (f" (and {len(rows) - 1} more)" if len(rows) > 1 else "")


def unknown(role: str, names: str | Sequence[str], columns: Iterable[str], *, key: str = "", hint: str = "") -> Problem:
    """Return the problem that a table lacks columns, with the columns that it has.

    `role` is what they are for, such as ``"label column"``, `key` the key of a config that takes the nearest names, and
    `hint` the end of the message.
    """
    absent = [names] if isinstance(names, str) else list(names)
    known = list(columns)
    lowered = {column.lower().strip(): column for column in known}
    close = [difflib.get_close_matches(name.lower().strip(), list(lowered), n=1, cutoff=0.6) for name in absent]
    near = [lowered[found[0]] for found in close if found]
    shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    nearest: object = near[0] if isinstance(names, str) and near else near
    ways = [Remedy(f"takes the nearest name{'s' if near[1:] else ''}", key, nearest)]
    text = f"no {role} {', '.join(map(repr, absent))}; the file has {shown}{hint}"
    return Problem(text, ways if key and len(near) == len(absent) else [])
