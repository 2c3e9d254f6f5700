"""Numbers and lists as sentences and tables of findings show them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

__all__ = [
    "ABSENT",
    "counted",
    "counted_range",
    "decimals_of",
    "fixed",
    "gap_text",
    "listed",
    "p_equals",
    "p_text",
    "percent",
    "share",
    "signed",
    "size_percent",
]

ABSENT = "-"
"""What a table shows where there is no number."""


def decimals_of(size: float) -> int:
    """How many decimals of a statistic to show, by the size of its values: four digits in all.

    Examples:
        >>> [decimals_of(size) for size in (250.0, 31.2, 3.1, 0.72)]
        [1, 2, 3, 4]
    """
    if not math.isfinite(size) or size == 0:
        return 3
    return min(max(3 - math.floor(math.log10(abs(size))), 0), 6)


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals, `ABSENT` where it is none."""
    return f"{value:.{decimals}f}" if math.isfinite(value) else ABSENT


def signed(value: float, decimals: int) -> str:
    """A difference with its sign; what rounds to 0 has none.

    Examples:
        >>> signed(0.534, 2), signed(-0.001, 2), signed(math.nan, 2)
        ('+0.53', '0.00', '-')
    """
    if not math.isfinite(value):
        return ABSENT
    text = f"{value:+.{decimals}f}"
    return text if any(c in "123456789" for c in text) else text[1:]


def percent(value: float) -> str:
    """A relative difference, of percent.

    Examples:
        >>> percent(12.34), percent(-0.456), percent(math.nan)
        ('+12.3%', '-0.46%', '-')
    """
    if not math.isfinite(value):
        return ABSENT
    return f"{signed(value, 1 if abs(value) >= 1 else 2)}%"


def size_percent(value: float) -> str:
    """How large a relative difference is, of percent, whatever its sign.

    Examples:
        >>> size_percent(-12.34), size_percent(0.004)
        ('12.3%', '0.00%')
    """
    return percent(abs(value)).removeprefix("+")


def share(ratio: float) -> str:
    """A share in percent.

    Examples:
        >>> share(0.314), share(-1.2), share(-0.001)
        ('31%', '-120%', '0%')
    """
    return f"{round(100 * ratio)}%" if math.isfinite(ratio) else ABSENT


def gap_text(gap: float) -> str:
    """A relative gap in percent.

    Examples:
        >>> gap_text(0.00481), gap_text(math.nan)
        ('0.48%', '-')
    """
    return f"{100 * gap:.2f}%" if math.isfinite(gap) else ABSENT


def p_text(p: float) -> str:
    """A p value for a table.

    Examples:
        >>> [p_text(p) for p in (0.00001, 0.0123, 0.456, 1.0, math.nan)]
        ['<0.001', '0.012', '0.46', '1', '-']
    """
    if not math.isfinite(p):
        return ABSENT
    if p < 0.001:
        return "<0.001"
    if p < 0.1:
        return f"{p:.3f}"
    return f"{p:.2f}" if p < 0.995 else "1"


def p_equals(p: float) -> str:
    """A p value for a sentence.

    Examples:
        >>> p_equals(0.0123), p_equals(0.0)
        ('p = 0.012', 'p < 0.001')
    """
    text = p_text(p)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    Examples:
        >>> listed(["a"]), listed(["a", "b", "c"])
        ('a', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def counted(number: int, noun: str) -> str:
    """A number of things.

    Examples:
        >>> counted(1, "split"), counted(3, "data set")
        ('1 split', '3 data sets')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def counted_range(numbers: Iterable[int], noun: str) -> str:
    """The least and the largest number of things.

    Examples:
        >>> counted_range([3, 10, 10], "split"), counted_range([1], "split")
        ('3 to 10 splits', '1 split')
    """
    found = sorted(set(numbers))
    return counted(found[0], noun) if len(found) == 1 else f"{found[0]} to {found[-1]} {noun}s"
