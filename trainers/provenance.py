"""The origin of results: machine, versions and commit."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from pathlib import Path

import ltr
from ltr.exact.weight_space import available_threads
from trainers.files import Json

_PACKAGES = ("torch", "numpy", "pyscipopt", "scikit-learn", "cvxpy", "numba", "pandas", "tensorboard")


def origin() -> Json:
    """Return the machine, versions of packages, and the git commit."""
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "versions": {"ltr": ltr.__version__} | {name: importlib.metadata.version(name) for name in _PACKAGES},
        **_git_facts(),
    }


def machine() -> str:
    """Return the processor and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        name = models[0] if models else name
    return f"{name}, {available_threads()} cores"


def _git_facts() -> Json:
    """Return the commit of the repository of this code, else of the current folder; None without either."""
    for folder in (Path(__file__).parent, Path.cwd()):
        commit = _git(folder, "rev-parse", "HEAD")
        if commit:
            changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
            return {"git_commit": commit, "git_dirty": bool(changes)}
    return {"git_commit": None, "git_dirty": None}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
