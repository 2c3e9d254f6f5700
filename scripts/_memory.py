"""How much memory this process has used."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

__all__ = ["peak"]


def peak() -> float:
    """Megabytes of memory at the highest so far.

    Linux counts into `ru_maxrss` what the parent held when it started this process, and not into `VmHWM`.
    """
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if found:
        return int(found[1]) / 1024
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest / (2**20 if sys.platform == "darwin" else 1024)
