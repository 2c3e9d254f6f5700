"""Rules on the columns of a card: so many of some columns, always or where the card has one of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import as_sequence, is_whole
from ltr.exact.constraints import set_fields

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MOST_QUESTIONS = 6
"""Largest number of questions that the search can prove."""


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
        most = MOST_QUESTIONS if at_most is None else at_most
        for name, number in (("at_least", at_least), ("at_most", most)):
            if not is_whole(number) or not 0 <= number <= MOST_QUESTIONS:
                raise ValueError(f"{name} must be a whole number from 0 to {MOST_QUESTIONS}, got {number!r:.80}")
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
