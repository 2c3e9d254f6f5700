"""The number of threads that this process may use."""

from __future__ import annotations

import os

__all__ = ["available_threads"]


def available_threads() -> int:
    """Return the number of processors that this process may use.

    Examples:
        >>> available_threads() >= 1
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
