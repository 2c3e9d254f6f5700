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
    numbers = {}
    for name, sign in (given or {}).items():
        numbers[name] = _SIGNS[one_of(f"signs[{name!r}]", sign, _SIGNS)]
        texts = [rule for rule in questions.rules_ if rule.column == name and not _ordered(rule)]
        if texts and name not in questions.questions_:
            raise ValueError(f"signs[{name!r}]: the column is text; name one of its questions, {texts[0].name!r}")
    return _by_question("signs", numbers, questions, np.zeros(len(questions.rules_)))


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
    """Return the least and the largest points of each question, (q, 2); None without limits."""
    limits = {name: ends for name, ends in given.items() if name != INTERCEPT}
    if not limits:
        return None
    return _by_question("point_limits", limits, questions, np.tile([-points, points], (len(questions.rules_), 1)))


def _by_question(what: str, given: Mapping[str, Any], questions: Questions, found: NDArray[Any]) -> IntArray:
    """Return an array in which questions have what is given for them by name.

    A column stands for all questions about it but whether it is missing; a question's own entry comes first.
    """
    for name in sorted(given, key=questions.questions_.__contains__):
        for j in _numbers_of(name, questions, what):
            if questions.rules_[j].operator != "missing" or questions.questions_[j] == name:
                found[j] = given[name]
    return found.astype(np.int64)


def _numbers_of(name: str, questions: Questions, what: str, least: int = 0) -> list[int]:
    """Return the numbers of the questions of a name, or about a column of that name: at least so many.

    Names of columns and questions that were left out have none. Raises ValueError for unknown names.
    """
    rules = questions.rules_
    found = [j for j, rule in enumerate(rules) if name in (rule.column, rule.name)]
    reason = questions.left_out_.get(name)
    if len(found) < least or (not found and reason is None):
        known = list(dict.fromkeys([*(rule.column for rule in rules), *questions.questions_]))
        hint = nearest(str(name), known) if reason is None else f" ({reason})"
        raise ValueError(f"{what} must name columns or questions, got {name!r}{hint}")
    return found


def rules_of(given: Sequence[Mapping[str, Any]], questions: Questions) -> list[tuple[CardRule, str]]:
    """Return the rules, each with its words."""
    found = []
    for at, one in enumerate(as_sequence("rules", given, "mappings such as {'at_least': 1, 'of': ['age']}")):
        if not isinstance(one, Mapping) or not set(one) <= {"of", "at_least", "at_most", "when"} or "of" not in one:
            keys = "of, and at_least, at_most or both, and when"
            raise ValueError(f"rules[{at}] must be a mapping of {keys}, got {one!r:.120}")
        if "at_least" not in one and "at_most" not in one:
            raise ValueError(f"rules[{at}] must have at_least or at_most, got {one!r:.120}")
        own, when = (_named(one.get(key, ()), questions, f"rules[{at}].{key}") for key in ("of", "when"))
        try:
            rule = CardRule(own, one.get("at_least", 0), one.get("at_most"), when)
        except ValueError as error:
            raise ValueError(f"rules[{at}]: {error}") from None
        bounds = [f"{name.replace('_', ' ')} {one[name]}" for name in ("at_least", "at_most") if name in one]
        only = f" where it has {' or '.join(one['when'])}" if when else ""
        found.append((rule, f"{' and '.join(bounds)} of {', '.join(one['of'])}{only}"))
    return found


def _named(names: Sequence[str], questions: Questions, what: str) -> list[int]:
    """Return the numbers of the questions that names of columns and questions stand for."""
    given = as_sequence(what, names, "names of columns and questions")
    return sorted({j for name in given for j in _numbers_of(name, questions, what, least=1)})


def directions_of(given: bool | Sequence[str], questions: Questions) -> IntArray | None:
    """Return the group of each question whose points must have one sign, or -1."""
    if isinstance(given, bool | np.bool_):
        names = list(dict.fromkeys(rule.column for rule in questions.rules_)) if given else []
    else:
        names = list(as_sequence("one_direction", given, "names of columns"))
    found = np.full(len(questions.rules_), -1)
    for number, name in enumerate(names):
        for j in _numbers_of(name, questions, "one_direction"):
            if questions.rules_[j].operator == ">=":
                found[j] = number
    return found.astype(np.int64) if names else None


def _ordered(rule: Question) -> bool:
    """Whether a column that the question is about has an order."""
    return rule.operator in (">=", "missing") or rule.value in ("1", "true")
