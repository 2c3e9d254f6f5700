"""When a solve stops, the seed it starts from, and the memory it may take."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import psutil

from ltr.checks import as_float, is_whole

MEGABYTE = 2**20
_SHARE = 0.5  # of the memory that is free, where no limit is given
_PAUSE = 0.05  # seconds between two looks at the process


@dataclass(frozen=True)
class Limits:
    """The limits of a solve: time, gap, nodes and memory; and its seed.

    Args:
        time_limit: seconds for everything: warm starts, building the model, solving it. Compilation in the first solve
            on a machine does not count.
        gap: relative gap, (bound - value) / |value|, at which to stop; 0 asks for a full proof.
        node_limit: most branch-and-bound nodes; None for no limit.
        memory_limit: most megabytes (of 2^20 bytes) that the solve may add to the process; None is half of what the
            machine has free. Where the pairs of the problem do not fit, the answer is the best of the warm starts and
            single features, with the bound of a perfect order.
        seed: seed of the local search and of the solver's random choices, from 0 to 2^31 - 1.

    Raises:
        ValueError: a field outside its range.

    Examples:
        >>> Limits(time_limit=5, gap=0.01)
        Limits(time_limit=5, gap=0.01, node_limit=None, memory_limit=None, seed=0)
    """

    time_limit: float = 60.0
    gap: float = 0.0
    node_limit: int | None = None
    memory_limit: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not as_float(self.time_limit) > 0:
            raise ValueError(f"time_limit must be a number of seconds > 0, got {self.time_limit!r}")
        if not 0 <= as_float(self.gap) < math.inf:
            raise ValueError(f"gap must be a finite number >= 0, got {self.gap!r}")
        if self.node_limit is not None and not as_float(self.node_limit) >= 1:
            raise ValueError(f"node_limit must be at least 1, got {self.node_limit!r}")
        if self.memory_limit is not None and not as_float(self.memory_limit) > 0:
            raise ValueError(f"memory_limit must be a number of megabytes > 0, got {self.memory_limit!r}")
        if not is_whole(self.seed) or not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be an integer from 0 to 2**31 - 1, got {self.seed!r}")


class Memory:
    """A limit on the memory that is added to the process from here on.

    Args:
        limit: megabytes (of 2^20 bytes); None is half of what the machine has free.
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
