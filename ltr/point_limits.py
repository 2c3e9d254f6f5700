"""Limits of the points of single columns, as people write them: a mapping, a CSV file, or RiskSLIM's constraint set."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ltr.checks import as_float

__all__ = ["PointLimits"]

_INTERCEPTS = ("(Intercept)", "Intercept", "(intercept)", "intercept")  # what RiskSLIM calls it
_COLUMNS = ["name", "lb", "ub"]


@dataclass(frozen=True)
class PointLimits:
    """The least and the largest points by name, and what else a set of constraints says of columns.

    Attributes:
        limits: least and largest points by the name of a column or question.
        intercept: least and largest intercept; None for any.
        free: names of columns that have no price and are not counted.
    """

    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    intercept: tuple[int, int] | None = None
    free: tuple[str, ...] = ()

    @classmethod
    def read(cls, given: Any, C: float = 0.0) -> PointLimits:  # noqa: ANN401 (anything that a user has)
        """Return the limits that are given in any of these forms.

        The name ``(Intercept)`` stands for the intercept in all of them.

        Args:
            given: None for no limits; a mapping such as ``{"age": (0, 5)}``; the path of a CSV file with the columns
                name, lb and ub; or a ``CoefficientSet`` of RiskSLIM, an object with the attributes ``variable_names``,
                ``lb`` and ``ub``, and perhaps ``vtype`` and ``c0``. A column whose c0 is 0 has no price.
            C: the price of the other columns.

        Raises:
            OSError: a file that cannot be read.
            ValueError: another form, a name twice, limits that are not two whole numbers with the least first, a
                variable that is not whole, or a price that is neither 0 nor `C`.

        Examples:
            >>> PointLimits.read({"age": (0, 5), "(Intercept)": (-20, 20)})
            PointLimits(limits={'age': (0, 5)}, intercept=(-20, 20), free=())
        """
        if isinstance(given, PointLimits):
            return given
        if given is None:
            return cls()
        if isinstance(given, str | PathLike):
            return cls._of(_of_file(Path(given)))
        if isinstance(given, Mapping):
            return cls._of(list(given.items()))
        if all(hasattr(given, name) for name in ("variable_names", "lb", "ub")):
            return cls._of_coefficients(given, C)
        rule = "a mapping such as {'age': (0, 5)}, the name of a CSV file, or a CoefficientSet of RiskSLIM"
        raise ValueError(f"point_limits must be {rule}, got {given!r:.80}")

    @classmethod
    def _of(cls, pairs: list[tuple[str, Any]], free: tuple[str, ...] = ()) -> PointLimits:
        found: dict[str, tuple[int, int]] = {}
        intercept = None
        for name, ends in pairs:
            if name in found or (name in _INTERCEPTS and intercept is not None):
                raise ValueError(f"point_limits must name each column once, got {name!r} twice")
            numbers = list(map(as_float, ends)) if isinstance(ends, list | tuple) else []
            whole = all(math.isfinite(number) and number == round(number) for number in numbers)
            if len(numbers) != 2 or not whole or numbers[0] > numbers[1]:
                rule = "two whole numbers, the least and the largest points"
                raise ValueError(f"point_limits[{name!r}] must be {rule}, got {ends!r:.80}")
            low, high = map(int, numbers)
            if name in _INTERCEPTS:
                intercept = (low, high)
            else:
                found[name] = (low, high)
        return cls(found, intercept, free)

    @classmethod
    def _of_coefficients(cls, given: Any, C: float) -> PointLimits:  # noqa: ANN401 (an object of another package)
        names = [str(name) for name in given.variable_names]
        types = getattr(given, "vtype", getattr(given, "type", "I"))
        prices = getattr(given, "c0", math.nan)
        several = {"lb": given.lb, "ub": given.ub, "vtype": types, "c0": prices}
        spread: dict[str, list[Any]] = {
            name: [values] * len(names) if isinstance(values, str) or not hasattr(values, "__len__") else list(values)
            for name, values in several.items()
        }
        for field_name, values in spread.items():
            if len(values) != len(names):
                raise ValueError(f"point_limits: {field_name} must hold {len(names)} entries, got {len(values)}")
        free = []
        for name, kind, price in zip(names, spread["vtype"], map(as_float, spread["c0"]), strict=True):
            if kind != "I":
                raise ValueError(
                    f"point_limits: points are whole numbers, so type must be 'I', got {kind!r} for {name}"
                )
            if name in _INTERCEPTS or math.isnan(price):
                continue
            if price not in (0.0, C):
                rule = f"0 for a column without a price, or nan or {C:g}, the price C of all others"
                raise ValueError(f"point_limits: c0 must be {rule}, got {price:g} for {name}")
            free += [name] if price == 0 else []
        ends = zip(map(as_float, spread["lb"]), map(as_float, spread["ub"]), strict=True)
        return cls._of([(name, pair) for name, pair in zip(names, ends, strict=True)], tuple(free))


def _of_file(path: Path) -> list[tuple[str, Any]]:
    """Return names and limits of the lines of a CSV file."""
    reader = csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig")))
    lines = [line for line in reader if line]
    if not lines or [word.strip() for word in lines[0]] != _COLUMNS:
        got = ",".join(lines[0]) if lines else "nothing"
        raise ValueError(f"point_limits: the first line of {path} must be name,lb,ub, got {got!r:.80}")
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(_COLUMNS):
            raise ValueError(f"point_limits: line {number} of {path} must have 3 entries, got {','.join(line)!r:.80}")
    return [(line[0].strip(), (_number(line[1]), _number(line[2]))) for line in lines[1:]]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
