"""Conditions on the questions and points of a card, as `CardRanker` takes them: signs, limits, rules and directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.cards.questions import Question, Questions
from ltr.checks import as_float, as_sequence, nearest, one_of
from ltr.exact.card_rules import CardRule

IntArray = NDArray[np.int64]

_SIGNS = {"+": 1, "-": -1}
INTERCEPT = "(Intercept)"
"""Name of the intercept among limits of points."""


def signs_of(given: Mapping[str, str] | None, questions: Questions) -> IntArray:
    """Return the sign of the points of each question, 0 for any."""
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"signs must be a mapping such as {{'age': '+'}}, got {given!r:.80}")
    found = np.zeros(len(questions.rules_), dtype=np.int64)
    columns = [rule.column for rule in questions.rules_]
    for name, sign in (given or {}).items():
        number = _SIGNS[one_of(f"signs[{name!r}]", sign, _SIGNS)]
        if name in questions.questions_:
            found[questions.questions_.index(name)] = number
            continue
        if name not in columns and name not in questions.left_out_:
            shown = ", ".join(dict.fromkeys(columns))
            raise ValueError(f"signs must name columns or questions, got {name!r}; the columns are {shown}")
        for j, rule in enumerate(questions.rules_):
            if rule.column != name or rule.operator == "missing":
                continue
            if not _ordered(rule):
                raise ValueError(f"signs[{name!r}]: the column is text; name one of its questions, {rule.name!r}")
            found[j] = number if found[j] == 0 else found[j]
    return found


def checked_limits(given: Any) -> dict[str, tuple[int, int]]:  # noqa: ANN401 (anything that a user has)
    """Return the least and the largest points by the name of a column or question, or of `INTERCEPT`.

    Raises:
        ValueError: no mapping, or limits that are not two whole numbers with the least first.

    Examples:
        >>> checked_limits({"age": [0, 5], "(Intercept)": (-20, 20)})
        {'age': (0, 5), '(Intercept)': (-20, 20)}
    """
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"point_limits must be a mapping such as {{'age': (0, 5)}}, got {given!r:.80}")
    for name, ends in (given or {}).items():
        numbers = list(map(as_float, ends)) if isinstance(ends, list | tuple) else []
        if len(numbers) != 2 or not all(map(float.is_integer, numbers)) or numbers[0] > numbers[1]:
            rule = "two whole numbers, the least and the largest points"
            raise ValueError(f"point_limits[{name!r}] must be {rule}, got {ends!r:.80}")
    return {name: (int(low), int(high)) for name, (low, high) in (given or {}).items()}


def limits_of(given: Mapping[str, tuple[int, int]], questions: Questions, points: int) -> IntArray | None:
    """Return the least and the largest points of each question, (q, 2); None without limits.

    A column stands for all questions about it but whether it is missing; a question's own limits come first.
    """
    limits = {name: ends for name, ends in given.items() if name != INTERCEPT}
    if not limits:
        return None
    found = np.tile([-points, points], (len(questions.rules_), 1))
    for name, ends in limits.items():
        for j in _asked(name, questions, "point_limits"):
            if name == questions.questions_[j] or questions.questions_[j] not in limits:
                found[j] = ends
    return found


def _asked(name: str, questions: Questions, what: str) -> list[int]:
    """Return the numbers of the question of a name, or of those about a column of that name, except "is missing"."""
    if name in questions.questions_:
        return [questions.questions_.index(name)]
    columns = [rule.column for rule in questions.rules_]
    if name not in columns and name not in questions.left_out_:
        known = list(dict.fromkeys([*columns, *questions.questions_]))
        raise ValueError(f"{what} must name columns or questions, got {name!r}{nearest(str(name), known)}")
    return [j for j, rule in enumerate(questions.rules_) if rule.column == name and rule.operator != "missing"]


def rules_of(given: Sequence[Mapping[str, Any]], questions: Questions) -> list[tuple[CardRule, str]]:
    """Return the rules, each with its words."""
    found, columns = [], [rule.column for rule in questions.rules_]
    every = as_sequence("rules", given, "mappings such as {'at_least': 1, 'of': ['age']}")
    for at, one in enumerate(every):
        if not isinstance(one, Mapping) or not set(one) <= {"of", "at_least", "at_most", "when"} or "of" not in one:
            keys = "of, and at_least, at_most or both, and when"
            raise ValueError(f"rules[{at}] must be a mapping of {keys}, got {one!r:.120}")
        numbers: dict[str, list[int]] = {}
        for key in ("of", "when"):
            names = as_sequence(f"rules[{at}].{key}", one.get(key, ()), "names of columns and questions")
            members: list[int] = []
            for name in names:
                own = [j for j, of in enumerate(columns) if name in (of, questions.questions_[j])]
                if not own:
                    known = list(dict.fromkeys([*columns, *questions.questions_]))
                    reason = questions.left_out_.get(name)
                    hint = nearest(str(name), known) if reason is None else f" ({reason})"
                    raise ValueError(f"rules[{at}].{key} must name columns and questions, got {name!r}{hint}")
                members += own
            numbers[key] = sorted(set(members))
        if "at_least" not in one and "at_most" not in one:
            raise ValueError(f"rules[{at}] must have at_least or at_most, got {one!r:.120}")
        least, most = one.get("at_least", 0), one.get("at_most")
        try:
            rule = CardRule(numbers["of"], least, most, numbers["when"])
        except ValueError as error:
            raise ValueError(f"rules[{at}]: {error}") from None
        bounds = [f"at least {least}"] * ("at_least" in one) + [f"at most {most}"] * ("at_most" in one)
        only = f" where it has {' or '.join(one['when'])}" if numbers["when"] else ""
        found.append((rule, f"{' and '.join(bounds)} of {', '.join(one['of'])}{only}"))
    return found


def directions_of(given: bool | Sequence[str], questions: Questions) -> IntArray | None:
    """Return the group of each question whose points must have one sign, or -1."""
    if isinstance(given, bool | np.bool_):
        names = list(dict.fromkeys(rule.column for rule in questions.rules_)) if given else []
    else:
        names = list(as_sequence("one_direction", given, "names of columns"))
    known = {rule.column for rule in questions.rules_}
    for name in names:
        if name not in known and name not in questions.left_out_:
            raise ValueError(f"one_direction must name columns, got {name!r}{nearest(str(name), sorted(known))}")
    groups = {name: number for number, name in enumerate(names)}
    found = [groups.get(rule.column, -1) if rule.operator == ">=" else -1 for rule in questions.rules_]
    return np.array(found, dtype=np.int64) if names else None


def _ordered(rule: Question) -> bool:
    return rule.operator == ">=" or rule.value in ("1", "true")
