"""What a card may look like: how many points, of which columns, and rules on what these have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_numbers, as_sequence, check_whole, is_whole
from ltr.exact.constraints import set_fields

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MOST_POINTS = 1_000
"""Largest size of the points of a column."""

MOST_QUESTIONS = 6
"""Largest number of questions for which the search of all sets of columns can prove a rank statistic."""


@dataclass(frozen=True)
class CardRule:
    """How many of some columns a card may have: from `at_least` to `at_most`, where it has one of `when`.

    =====================================  ==========================================
    at least one of the columns 0, 1, 2    ``CardRule([0, 1, 2], at_least=1)``
    at most two of them                    ``CardRule([0, 1, 2], at_most=2)``
    column 3 only together with 4 or 5     ``CardRule([4, 5], at_least=1, when=[3])``
    columns 3 and 4 not both               ``CardRule([3, 4], at_most=1)``
    =====================================  ==========================================

    Without `at_most` there is no limit, without `when` the rule always holds.

    Examples:
        >>> rule = CardRule([4, 5], at_least=1, when=[3])
        >>> [rule.admits(columns) for columns in ([0], [3], [3, 5])]
        [True, False, True]
    """

    columns: Sequence[int]
    at_least: int = 0
    at_most: Any = None
    when: Sequence[int] = ()

    def __post_init__(self) -> None:
        for name in ("columns", "when"):
            numbers = as_sequence(name, getattr(self, name), "column numbers")
            if not all(is_whole(j) and j >= 0 for j in numbers) or len(set(numbers)) < len(numbers):
                raise ValueError(f"{name} must hold different column numbers, got {numbers!r:.80}")
            set_fields(self, **{name: tuple(sorted(map(int, numbers)))})
        largest_count = max(MOST_QUESTIONS, len(self.columns))
        most = largest_count if self.at_most is None else self.at_most
        for name, number in (("at_least", self.at_least), ("at_most", most)):
            if not is_whole(number) or not 0 <= number <= largest_count:
                raise ValueError(f"{name} must be a whole number from 0 to {largest_count}, got {number!r:.80}")
        if not self.columns or self.at_least > min(most, len(self.columns)):
            largest = f"{min(most, len(self.columns))} of {len(self.columns)} columns"
            raise ValueError(f"at_least must be at most {largest}, got {self.at_least}")
        set_fields(self, at_least=int(self.at_least), at_most=int(most))

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
        columns = {"columns": list(self.columns), "when": list(self.when)}
        return {**columns, "at_least": self.at_least, "at_most": self.at_most}


@dataclass(frozen=True, eq=False)
class CardConditions:
    """What points a card of d columns may have; `CardProblem` and `RiskProblem` take all but d as arguments.

    Attributes:
        max_nonzeros: largest number of columns with points.
        points: largest size of the points of a column, from 1 to 1,000.
        point_limits: least and largest points of each column, (d, 2), instead of -points and points; where 0 is not
            between them, the column is required.
        least_points: least size of points other than 0, for all columns or for each, (d,).
        signs: for each column, 1 for points above 0, -1 for points below, 0 for any, (d,).
        free: columns that `max_nonzeros` does not count, and that have no price.
        groups, directions: number of the group of each column, or -1, (d,): a card has at most one column of a group,
            and points of one sign in a direction, as the thresholds of one feature should.
        required, rules: columns that every card must have, and further rules on its columns.
        least, largest: what follows for the points of each column, 0 for none below or above 0, (d,).

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> conditions = CardConditions(3, 2, signs=[1, 0, 0], rules=[CardRule([2], at_most=0)])
        >>> [conditions.admits(np.array(points)) for points in ([1, -2, 0], [-1, 2, 0], [1, 0, 3], [6, 0, 0])]
        [True, False, False, False]
    """

    d: int
    max_nonzeros: int = 4
    _: KW_ONLY
    points: int = 5
    point_limits: Any = None
    least_points: Any = 1
    signs: Any = None
    free: Sequence[int] = ()
    groups: Any = None
    required: Sequence[int] = ()
    rules: Sequence[CardRule] = ()
    directions: Any = None
    least: IntArray = field(init=False)
    largest: IntArray = field(init=False)

    def __post_init__(self) -> None:
        d, points, rules = self.d, self.points, as_sequence("rules", self.rules, "CardRule(columns, at_least=1)")
        check_whole("max_nonzeros", self.max_nonzeros, 1)
        if not is_whole(points) or not 1 <= points <= MOST_POINTS:
            raise ValueError(f"points must be an integer from 1 to {MOST_POINTS:,}, got {points!r}")

        def numbers(name: str, default: int, least: int, most: int) -> IntArray:
            given = getattr(self, name)
            return _whole_numbers(name, np.full(d, default) if given is None else given, d, least, most)

        limits = np.tile([-points, points], (d, 1)) if self.point_limits is None else _limits(self.point_limits, d)
        fewest = as_numbers("least_points", self.least_points)
        sizes = _whole_numbers("least_points", fewest if fewest.ndim else np.tile(fewest, d), d, 1, MOST_POINTS)
        sizes, signs = np.maximum(sizes, np.maximum(limits[:, 0], -limits[:, 1])), numbers("signs", 0, -1, 1)
        for name, end, sign in (("least", -limits[:, 0], -1), ("largest", limits[:, 1], 1)):
            set_fields(self, **{name: sign * np.where((signs != -sign) & (end >= sizes), end, 0)})
        set_fields(self, **{name: numbers(name, -1, -1, 2**31 - 1) for name in ("groups", "directions")})
        free, needed = checked_columns("free", self.free, d), set(checked_columns("required", self.required, d))
        needed |= set(np.flatnonzero((limits[:, 0] > 0) | (limits[:, 1] < 0)).tolist())
        if (count := len(needed - {*free})) > self.max_nonzeros:
            raise ValueError(f"required must hold at most {self.max_nonzeros} columns, got {count}")
        of = self.groups[sorted(needed)]
        if len(set(of[of >= 0].tolist())) < np.count_nonzero(of >= 0):
            raise ValueError(f"required must hold at most one column of a group, got {sorted(needed)!r}")
        for at, rule in enumerate(rules):
            if not isinstance(rule, CardRule) or max((*rule.columns, *rule.when)) >= d:
                raise ValueError(f"rules[{at}] must be a CardRule of columns from 0 to {d - 1}, got {rule!r:.120}")
        set_fields(self, max_nonzeros=int(self.max_nonzeros), points=int(points), point_limits=limits, signs=signs)
        set_fields(self, least_points=sizes, free=free, required=tuple(sorted(needed)), rules=rules)

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
            and bool(np.all((self.least <= points) & (points <= self.largest)))
            and bool(np.all(np.abs(points[used]) >= self.least_points[used]))
            and len({group for group, _ in turns}) == len(turns)
            and all(rule.admits(used.tolist()) for rule in self.all_rules)
        )

    def content(self) -> dict[str, Any]:
        """Return the conditions as a certificate file describes them."""
        arrays = ("least", "largest", "least_points", "groups", "directions")
        return {
            "max_nonzeros": self.max_nonzeros,
            **{name: getattr(self, name).tolist() for name in arrays},
            "free": list(self.free),
            "required": list(self.required),
            "rules": [rule.content() for rule in self.rules],
        }


def conditions_of(d: int, given: CardConditions | None, options: dict[str, Any]) -> CardConditions:
    """Return the conditions that a problem of d columns was given, or makes of its other arguments."""
    if given is None:
        return CardConditions(d, **options)
    if options or given.d != d:
        instead = f" beside {', '.join(options)}" if options else f" of {given.d} columns"
        raise ValueError(
            f"conditions must be of the {d} columns of X, and given without their fields, got some{instead}"
        )
    return given


def checked_columns(name: str, given: Sequence[int], d: int) -> tuple[int, ...]:
    """Return different column numbers below d in ascending order; raise ValueError for anything else."""
    columns = as_sequence(name, given, "column numbers")
    if not all(is_whole(j) and 0 <= j < d for j in columns) or len(set(columns)) < len(columns):
        raise ValueError(f"{name} must hold different column numbers from 0 to {d - 1}, got {columns!r}")
    return tuple(sorted(map(int, columns)))


def _whole_numbers(name: str, values: ArrayLike, d: int, least: int, most: int) -> IntArray:
    """Return one whole number per column, (d,); raise ValueError for others or one out of range."""
    numbers = as_numbers(name, values)
    if numbers.shape != (d,):
        raise ValueError(f"{name} must hold one number per column ({d}), got shape {numbers.shape}")
    wrong = ~((numbers == np.rint(numbers)) & (numbers >= least) & (numbers <= most))
    if wrong.any():
        raise ValueError(f"{name} must hold whole numbers from {least} to {most}, got {numbers[wrong][0]:g}")
    return numbers.astype(np.int64)


def _limits(point_limits: ArrayLike, d: int) -> IntArray:
    numbers = as_numbers("point_limits", point_limits)
    if numbers.shape != (d, 2):
        rule = f"the least and the largest points of each column, ({d}, 2)"
        raise ValueError(f"point_limits must hold {rule}, got shape {numbers.shape}")
    for j, (least, largest) in enumerate(numbers.tolist()):
        if not (-MOST_POINTS <= least <= largest <= MOST_POINTS and least.is_integer() and largest.is_integer()):
            rule = f"two whole numbers from -{MOST_POINTS:,} to {MOST_POINTS:,}, the least first"
            raise ValueError(f"point_limits[{j}] must be {rule}, got {least:g} and {largest:g}")
    return numbers.astype(np.int64)
