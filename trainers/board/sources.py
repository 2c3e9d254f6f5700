"""Where the results of a board are: run folders, sweeps, and folders of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainers.config_errors import nearest
from trainers.files import RunError
from trainers.runs import RunFolder
from trainers.sweep.records import INDEX

__all__ = ["Sources", "find_sources"]


@dataclass(frozen=True)
class Sources:
    """What a board is made of.

    Attributes:
        runs: folders of runs.
        sweeps: folders of sweeps, or files of their results.
    """

    runs: tuple[RunFolder, ...]
    sweeps: tuple[Path, ...]


def find_sources(texts: Sequence[str]) -> Sources:
    """The runs and sweeps at paths, each of which is one, or a folder of some; or names of runs in runs/.

    Raises:
        RunError: a path where there is neither.
    """
    runs: dict[Path, RunFolder] = {}
    sweeps: dict[Path, Path] = {}
    for text in texts:
        for one in _at(text):
            if _is_sweep(one):
                sweeps.setdefault(one.resolve(), one)
            else:
                runs.setdefault(one.resolve(), RunFolder(one))
    return Sources(tuple(runs.values()), tuple(sweeps.values()))


def _at(text: str) -> list[Path]:
    path = Path(text)
    if path.suffix == ".toml":
        raise RunError(
            f"RUNS: {text} is a config; ltr board takes folders of runs and sweeps, such as runs/{path.stem}"
        )
    if path.is_file() or _is_one(path):
        return [path]
    if not path.is_dir():
        return [_named(text)]
    found = sorted(filter(_is_one, path.iterdir()))
    if not found:
        raise RunError(f"{text}: holds neither runs nor a sweep; `ltr run CONFIG` and `ltr sweep CONFIG` make some")
    return found


def _is_one(path: Path) -> bool:
    return path.is_dir() and (_is_sweep(path) or RunFolder(path).begun)


def _is_sweep(path: Path) -> bool:
    return path.is_file() or (path / INDEX).exists()


def _named(text: str) -> Path:
    """The folder of a run in runs/, or of a sweep there."""
    runs = Path("runs")
    if (beside := runs / text).is_file() or _is_one(beside):
        return beside
    known = sorted(path.name for path in runs.glob("*") if _is_one(path))
    hint = nearest(text, known) or (f"; known are {', '.join(known)}" if known else "")
    raise RunError(f"RUNS: no run or sweep at {text} or {beside}{hint}")
