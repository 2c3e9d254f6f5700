"""What a card may look like: rules on its columns, signs, groups and directions.

A rule is about so many of some columns, always or where the card has one of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_numbers, as_sequence, is_whole
from ltr.exact.constraints import set_fields

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MOST_QUESTIONS = 6
"""Largest number of questions for which the search of all sets of columns can prove a rank statistic."""


@dataclass(frozen=True, init=False)
class CardRule:
    """How many of some columns a card may have: from `at_least` to `at_most`, where it has one of `when`.

    =====================================  ==========================================
    at least one of the columns 0, 1, 2    ``CardRule([0, 1, 2], at_least=1)``
    at most two of them                    ``CardRule([0, 1, 2], at_most=2)``
    column 3 only together with 4 or 5     ``CardRule([4, 5], at_least=1, when=[3])``
    columns 3 and 4 not both               ``CardRule([3, 4], at_most=1)``
    =====================================  ==========================================

    Args:
        columns: column numbers, at least one.
        at_least: least number of them.
        at_most: largest number of them; None for no limit.
        when: columns of which the card must have one for the rule to hold; none for a rule that always does.

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> rule = CardRule([4, 5], at_least=1, when=[3])
        >>> [rule.admits(columns) for columns in ([0], [3], [3, 5])]
        [True, False, True]
    """

    columns: tuple[int, ...]
    at_least: int
    at_most: int
    when: tuple[int, ...]

    def __init__(
        self, columns: Sequence[int], at_least: int = 0, at_most: int | None = None, when: Sequence[int] = ()
    ) -> None:
        for name, given in (("columns", columns), ("when", when)):
            numbers = as_sequence(name, given, "column numbers")
            if not all(is_whole(j) and j >= 0 for j in numbers) or len(set(numbers)) < len(numbers):
                raise ValueError(f"{name} must hold different column numbers, got {numbers!r:.80}")
            set_fields(self, **{name: tuple(sorted(map(int, numbers)))})
        largest_count = max(MOST_QUESTIONS, len(self.columns))
        most = largest_count if at_most is None else at_most
        for name, number in (("at_least", at_least), ("at_most", most)):
            if not is_whole(number) or not 0 <= number <= largest_count:
                raise ValueError(f"{name} must be a whole number from 0 to {largest_count}, got {number!r:.80}")
        if not self.columns or at_least > min(most, len(self.columns)):
            largest = f"{min(most, len(self.columns))} of {len(self.columns)} columns"
            raise ValueError(f"at_least must be at most {largest}, got {at_least}")
        set_fields(self, at_least=int(at_least), at_most=int(most))

    def admits(self, columns: Sequence[int]) -> bool:
        """Return whether a card may have exactly these columns."""
        own = set(columns)
        active = not self.when or bool(own & set(self.when))
        return not active or self.at_least <= len(own & set(self.columns)) <= self.at_most

    def admitted(self, sets: IntArray, d: int) -> BoolArray:
        """Return which sets of columns, (sets, columns) of d columns, a card may have."""
        own, trigger = np.zeros((2, d), dtype=np.bool_)
        own[list(self.columns)], trigger[list(self.when)] = True, True
        counts = own[sets].sum(axis=1)
        inside: BoolArray = (self.at_least <= counts) & (counts <= self.at_most)
        return inside if not self.when else inside | ~trigger[sets].any(axis=1)

    def content(self) -> dict[str, Any]:
        """Return the rule as a certificate file describes it."""
        numbers = {"columns": list(self.columns), "at_least": self.at_least, "at_most": self.at_most}
        return numbers | ({"when": list(self.when)} if self.when else {})


@dataclass(frozen=True, init=False, eq=False)
class CardConditions:
    """What points a card of d columns may have, besides how large they are.

    Args:
        d: number of columns.
        max_nonzeros: largest number of columns with points.
        free: columns that `max_nonzeros` does not count.
        signs: for each column, 1 for points above 0, -1 for points below, 0 for any, (d,); None for any.
        groups: number of the group of each column, or -1, (d,): a card has at most one column of a group; None for no
            groups.
        required: columns that every card must have.
        rules: further rules on the columns of a card.
        directions: number of the group of each column, or -1, (d,): all points of a group are above 0, or all below;
            None for no groups.

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> conditions = CardConditions(3, 2, signs=[1, 0, 0], rules=[CardRule([2], at_most=0)])
        >>> [conditions.admits(np.array(points)) for points in ([1, -2, 0], [-1, 2, 0], [1, 0, 3])]
        [True, False, False]
    """

    max_nonzeros: int
    free: tuple[int, ...]
    signs: IntArray
    groups: IntArray
    required: tuple[int, ...]
    rules: tuple[CardRule, ...]
    directions: IntArray

    def __init__(
        self,
        d: int,
        max_nonzeros: int,
        *,
        free: Sequence[int] = (),
        signs: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        required: Sequence[int] = (),
        rules: Sequence[CardRule] = (),
        directions: ArrayLike | None = None,
    ) -> None:
        own_signs = whole_numbers("signs", np.zeros(d) if signs is None else signs, d, -1, 1)
        own_groups = whole_numbers("groups", np.full(d, -1) if groups is None else groups, d, -1, 2**31 - 1)
        columns = as_sequence("required", required, "column numbers")
        if not all(is_whole(j) and 0 <= j < d for j in columns) or len(set(columns)) < len(columns):
            raise ValueError(f"required must hold different column numbers from 0 to {d - 1}, got {columns!r}")
        if len({*columns} - {*free}) > max_nonzeros:
            raise ValueError(f"required must hold at most {max_nonzeros} columns, got {len({*columns} - {*free})}")
        of = own_groups[[int(j) for j in columns]]
        if len(set(of[of >= 0].tolist())) < np.count_nonzero(of >= 0):
            raise ValueError(f"required must hold at most one column of a group, got {columns!r}")
        own_rules = as_sequence("rules", rules, "CardRule(columns, at_least=1)")
        for at, rule in enumerate(own_rules):
            if not isinstance(rule, CardRule) or max((*rule.columns, *rule.when)) >= d:
                raise ValueError(f"rules[{at}] must be a CardRule of columns from 0 to {d - 1}, got {rule!r:.120}")
        none = np.full(d, -1)
        own_directions = whole_numbers("directions", none if directions is None else directions, d, -1, 2**31 - 1)
        set_fields(self, free=tuple(sorted(free)))
        set_fields(self, max_nonzeros=int(max_nonzeros), signs=own_signs, groups=own_groups, rules=own_rules)
        set_fields(self, required=tuple(sorted(map(int, columns))), directions=own_directions)

    @cached_property
    def all_rules(self) -> tuple[CardRule, ...]:
        """The rules, with those that `groups` and `required` are."""
        groups = [np.flatnonzero(self.groups == group) for group in np.unique(self.groups) if group >= 0]
        alone = [CardRule(members.tolist(), at_most=1) for members in groups if len(members) > 1]
        return (*[CardRule([j], at_least=1) for j in self.required], *alone, *self.rules)

    def admits(self, points: IntArray) -> bool:
        """Return whether a card may have these points, (d,)."""
        used = np.flatnonzero(points)
        turns = {(int(self.directions[j]), bool(points[j] > 0)) for j in used if self.directions[j] >= 0}
        return (
            len({*used.tolist()} - {*self.free}) <= self.max_nonzeros
            and bool(np.all(points[used] * self.signs[used] >= 0))
            and len({group for group, _ in turns}) == len(turns)
            and all(rule.admits(used.tolist()) for rule in self.all_rules)
        )

    def content(self) -> dict[str, Any]:
        """Return the conditions as a certificate file describes them."""
        return {
            "max_nonzeros": self.max_nonzeros,
            **({"free": list(self.free)} if self.free else {}),
            "signs": self.signs.tolist(),
            "groups": self.groups.tolist(),
            "required": list(self.required),
            **({"rules": [rule.content() for rule in self.rules]} if self.rules else {}),
            **({"directions": self.directions.tolist()} if np.any(self.directions >= 0) else {}),
        }


def whole_numbers(name: str, values: ArrayLike, d: int, least: int, most: int) -> IntArray:
    """Return one whole number per column, (d,); raise ValueError for others, or for one out of range."""
    numbers = as_numbers(name, values)
    if numbers.shape != (d,):
        raise ValueError(f"{name} must hold one number per column ({d}), got shape {numbers.shape}")
    wrong = ~((numbers == np.rint(numbers)) & (numbers >= least) & (numbers <= most))
    if wrong.any():
        raise ValueError(f"{name} must hold whole numbers from {least} to {most}, got {numbers[wrong][0]:g}")
    return numbers.astype(np.int64)
