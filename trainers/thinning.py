"""Fewer points of a curve, for files and charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

__all__ = ["thinned"]

_Point = TypeVar("_Point")


def thinned(points: Sequence[_Point], most: int) -> list[_Point]:
    """At most so many of the points, dense at the beginning, where things move, the last one among them.

    Examples:
        >>> thinned(range(1, 101), 5)
        [1, 3, 10, 32, 100]
    """
    if len(points) <= most:
        return list(points)
    chosen = np.unique(np.geomspace(1, len(points), most).round().astype(int)) - 1
    return [points[at] for at in chosen]
