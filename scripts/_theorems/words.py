"""Numbers and names in sentences."""

from __future__ import annotations

__all__ = ["change", "code", "number", "percent"]

_MINUS = "−"


def number(value: float, digits: int = 4) -> str:
    """A number with a few digits that count.

    Examples:
        >>> number(309.548), number(-0.70083), number(16.4), number(13744740.0), number(1.0), number(6.2e13)
        ('309.5', '−0.7008', '16.40', '13,744,740', '1', '6.200e+13')
    """
    size = abs(value)
    if size < 1e9 and (size >= 1e4 or size == int(size)):
        text = f"{size:,.0f}"
    else:
        text = f"{size:#.{digits}g}".removesuffix(".")
    return (_MINUS if value < 0 else "") + text


def percent(value: float) -> str:
    """A share as a percentage with two digits that count.

    Examples:
        >>> percent(0.0046), percent(0.97), percent(0.9999), percent(1.0), percent(9.5e-09)
        ('0.46%', '97%', 'over 99%', '100%', '9.5e-07%')
    """
    if 0.99 < value < 1:
        return "over 99%"
    return f"{float(f'{100 * value:.2g}'):g}%"


def change(value: float) -> str:
    """A relative change as a percentage, with a minus where it is a loss.

    Examples:
        >>> change(-0.0824), change(-1.0), change(0.0)
        ('−8.2%', '−100%', '0%')
    """
    return ("" if value >= 0 else _MINUS) + percent(abs(value))


def code(name: str) -> str:
    """A name of the library."""
    return f"`{name}`"
