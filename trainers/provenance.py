"""The origin of results: machine, versions and commit."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from pathlib import Path
from typing import Any

import ltr
from ltr.threads import available_threads
from trainers.files import Json

_PACKAGES = ("torch", "numpy", "pyscipopt", "scikit-learn", "cvxpy", "pandas", "tensorboard")
_NO_COMMIT = {"git_commit": None, "git_dirty": None}


def origin() -> Json:
    """Return the machine, versions of packages, and the git commit of this code, else of the current folder."""
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "versions": {"ltr": ltr.__version__} | {name: importlib.metadata.version(name) for name in _PACKAGES},
        **next((facts for folder in (Path(__file__).parent, Path.cwd()) if (facts := _git_facts(folder))), _NO_COMMIT),
    }


def machine() -> str:
    """Return the processor and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        name = models[0] if models else name
    return f"{name}, {available_threads()} cores"


def _git_facts(folder: Path) -> Json | None:
    """Return the commit of the repository of a folder; None without one."""
    options: dict[str, Any] = {"cwd": folder, "capture_output": True, "text": True, "timeout": 10, "check": True}
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], **options).stdout.strip()
        changes = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], **options).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return {"git_commit": commit, "git_dirty": bool(changes)}
