"""Conditions on the questions and points of a card, by the names of columns and questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.cards.questions import Questions
from ltr.checks import as_float, as_sequence, nearest, one_of
from ltr.exact.card_rules import CardConditions, CardRule

IntArray = NDArray[np.int64]

_SIGNS = {"+": 1, "-": -1}
INTERCEPT = "(Intercept)"
"""Name of the intercept among limits of points."""


def named_conditions(ranker: Any, questions: Questions) -> tuple[CardConditions, list[str]]:  # noqa: ANN401
    """Return the conditions of a `CardRanker` on cards of these questions, and their words.

    The name of a column stands for all questions about it. A sign or limit of a column is not about its being missing,
    and that of a question comes first.
    """
    rules, points = questions.rules_, ranker.points
    signs, limits = _checked_signs(ranker.signs, questions), checked_limits(ranker.point_limits)
    if INTERCEPT in limits and not ranker.is_risk:
        raise ValueError(f"point_limits must not name {INTERCEPT!r} for statistic {ranker.statistic}, which has none")
    of_points = {name: ends for name, ends in limits.items() if name != INTERCEPT}
    counted = [_counting(at, one, questions) for at, one in enumerate(as_sequence("rules", ranker.rules, "mappings"))]
    every = np.tile([-points, points], (len(rules), 1)) if of_points else None
    groups = [-1 if rule.operator == "missing" else group for rule, group in zip(rules, questions.groups_, strict=True)]
    for name in as_sequence("required", ranker.required, "names of questions"):
        if name not in questions.questions_:
            reason = questions.left_out_.get(name, "no such question")
            raise ValueError(f"required must name questions, got {name!r} ({reason})")
    conditions = CardConditions(
        len(rules),
        ranker.max_questions,
        points=points,
        point_limits=None if every is None else _by_question("point_limits", of_points, questions, every),
        least_points=ranker.least_points,
        signs=_by_question("signs", signs, questions, np.zeros(len(rules))),
        groups=groups if ranker.one_per_feature else None,
        required=[questions.questions_.index(name) for name in ranker.required],
        rules=[rule for rule, _ in counted],
        directions=_directions(ranker.one_direction, questions),
    )
    words = ["at most one question of a column"] if ranker.one_per_feature else []
    words += [f"points of {name} not {'below' if sign > 0 else 'above'} 0" for name, sign in signs.items()]
    for name, (low, high) in limits.items():
        words.append(f"{'intercept' if name == INTERCEPT else f'points of {name}'} from {low} to {high}")
    words += [f"points of size {ranker.least_points} or more"] if ranker.least_points > 1 else []
    words += [*(f"with {name}" for name in ranker.required), *(told for _, told in counted)]
    if ranker.one_direction is not False:
        named = () if isinstance(ranker.one_direction, bool | np.bool_) else ranker.one_direction
        words.append(f"thresholds of {', '.join(named) or 'a column'} with points of one sign")
    return conditions, words


def checked_limits(given: Any) -> dict[str, tuple[int, int]]:  # noqa: ANN401 (anything that a user has)
    """Return the least and the largest points by the name of a column or question, or of `INTERCEPT`.

    Raises ValueError for no mapping, or limits that are not two whole numbers with the least first.
    """
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"point_limits must be a mapping such as {{'age': (0, 5)}}, got {given!r:.80}")
    for name, ends in (given or {}).items():
        numbers = list(map(as_float, ends)) if isinstance(ends, list | tuple) else []
        if len(numbers) != 2 or not all(map(float.is_integer, numbers)) or numbers[0] > numbers[1]:
            rule = "two whole numbers, the least and the largest points"
            raise ValueError(f"point_limits[{name!r}] must be {rule}, got {ends!r:.80}")
    return {name: (int(low), int(high)) for name, (low, high) in (given or {}).items()}


def _checked_signs(given: Mapping[str, str] | None, questions: Questions) -> dict[str, int]:
    """Return signs by name; raise ValueError for a column of texts, whose questions have no order."""
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"signs must be a mapping such as {{'age': '+'}}, got {given!r:.80}")
    for name, sign in (given or {}).items():
        one_of(f"signs[{name!r}]", sign, _SIGNS)
        ordered = (">=", "missing")
        texts = [
            rule.name
            for rule in questions.rules_
            if rule.column == name and rule.operator not in ordered and rule.value not in ("1", "true")
        ]
        if texts and name not in questions.questions_:
            raise ValueError(f"signs[{name!r}]: the column is text; name one of its questions, {texts[0]!r}")
    return {name: _SIGNS[sign] for name, sign in (given or {}).items()}


def _by_question(what: str, given: Mapping[str, Any], questions: Questions, found: NDArray[Any]) -> IntArray:
    """Return an array in which questions have what is given for them by name."""
    for name in sorted(given, key=questions.questions_.__contains__):
        for j in _numbers_of([name], questions, what):
            if questions.rules_[j].operator != "missing" or questions.questions_[j] == name:
                found[j] = given[name]
    return found.astype(np.int64)


def _numbers_of(names: Sequence[str], questions: Questions, what: str, least: int = 0) -> list[int]:
    """Return the numbers of the questions that names stand for, at least so many each; those left out have none."""
    found = set[int]()
    for name in as_sequence(what, names, "names of columns and questions"):
        own = {j for j, rule in enumerate(questions.rules_) if name in (rule.column, rule.name)}
        reason = questions.left_out_.get(name)
        if len(own) < least or (not own and reason is None):
            known = list(dict.fromkeys([*(rule.column for rule in questions.rules_), *questions.questions_]))
            hint = nearest(str(name), known) if reason is None else f" ({reason})"
            raise ValueError(f"{what} must name columns or questions, got {name!r}{hint}")
        found |= own
    return sorted(found)


def _counting(at: int, given: Mapping[str, Any], questions: Questions) -> tuple[CardRule, str]:
    """Return a rule on how many of some questions a card has, and its words."""
    if not isinstance(given, Mapping) or not set(given) <= {"of", "at_least", "at_most", "when"} or "of" not in given:
        keys = "of, and at_least, at_most or both, and when"
        raise ValueError(f"rules[{at}] must be a mapping of {keys}, got {given!r:.120}")
    if "at_least" not in given and "at_most" not in given:
        raise ValueError(f"rules[{at}] must have at_least or at_most, got {given!r:.120}")
    own, when = (_numbers_of(given.get(key, ()), questions, f"rules[{at}].{key}", least=1) for key in ("of", "when"))
    try:
        rule = CardRule(own, given.get("at_least", 0), given.get("at_most"), when)
    except ValueError as error:
        raise ValueError(f"rules[{at}]: {error}") from None
    bounds = [f"{name.replace('_', ' ')} {given[name]}" for name in ("at_least", "at_most") if name in given]
    only = f" where it has {' or '.join(given['when'])}" if when else ""
    return rule, f"{' and '.join(bounds)} of {', '.join(given['of'])}{only}"


def _directions(given: bool | Sequence[str], questions: Questions) -> IntArray:
    """Return the group of each question whose points must have one sign, or -1."""
    every = list(dict.fromkeys(rule.column for rule in questions.rules_))
    names = (every if given else []) if isinstance(given, bool | np.bool_) else given
    found = np.full(len(questions.rules_), -1)
    for number, name in enumerate(as_sequence("one_direction", names, "names of columns")):
        for j in _numbers_of([name], questions, "one_direction"):
            if questions.rules_[j].operator == ">=":
                found[j] = number
    return found
