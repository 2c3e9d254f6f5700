"""Memory that a solve may take, beside what the process held before it began."""

from __future__ import annotations

import math
import time

import psutil

__all__ = ["MEGABYTE", "Memory"]

MEGABYTE = 2**20

_SHARE = 0.5  # of the memory that is free, where no limit is given
_PAUSE = 0.05  # seconds between two looks at the process


class Memory:
    """A limit on the memory that is added to the process from here on.

    Args:
        limit: megabytes (of 2^20 bytes); None is half of what the machine has free.

    Examples:
        >>> memory = Memory(limit=100)
        >>> memory.left <= 100 * MEGABYTE, memory.exceeded
        (True, False)
    """

    def __init__(self, limit: float | None = None) -> None:
        self._process = psutil.Process()
        self._began, self._looked, self._used = self._process.memory_info().rss, -math.inf, 0.0
        self.limit = _SHARE * psutil.virtual_memory().available if limit is None else limit * MEGABYTE

    @property
    def used(self) -> float:
        """Bytes added since, as seen a moment ago."""
        now = time.monotonic()
        if now - self._looked >= _PAUSE:
            self._looked, self._used = now, float(self._process.memory_info().rss - self._began)
        return self._used

    @property
    def left(self) -> float:
        """Bytes that may still be added."""
        return self.limit - max(0.0, self.used)

    @property
    def exceeded(self) -> bool:
        """Whether more was added than the limit allows."""
        return self.left < 0
