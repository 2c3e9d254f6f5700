"""Make a board of runs and sweeps: find them, compare them, and put the folder in place whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ltr.checks import nearest
from trainers.board.comparisons import Comparison, comparisons_of_runs, comparisons_of_sweep
from trainers.board.events import write_board
from trainers.files import RunError, write_json
from trainers.records import SweepResults, is_sweep, read_sweep
from trainers.run.folder import RunFolder, find_results

_MARKER = "board.json"
"""A folder with this file is a board, which may be replaced."""


@dataclass(frozen=True)
class Board:
    """A board on disk."""

    folder: Path  # folder to start TensorBoard on
    comparisons: tuple[Comparison, ...]  # what it shows

    @property
    def methods(self) -> int:
        """Number of methods on all data sets."""
        return sum(len(comparison.lines) for comparison in self.comparisons)

    @property
    def data(self) -> tuple[str, ...]:
        """Names of the data sets."""
        return tuple(dict.fromkeys(comparison.data for comparison in self.comparisons))


def build_board(
    paths: Sequence[str],
    *,
    folder: Path | None = None,
    data: Sequence[str] = (),
    note: Callable[[str], None] = lambda text: None,
) -> Board:
    """Write the board of runs and sweeps, in place of an earlier one of the same.

    Args:
        paths: run folders, sweeps, files of a sweep's results, and folders of runs and sweeps.
        folder: folder of the board; one in the cache directory, by the paths and choices, when None.
        data: names of the data sets to show; all when empty.
        note: receives a text on each thing that is left out, with the reason.

    Raises:
        RunError: there is nothing to show, a file is damaged, or the folder holds something else.
    """
    found = find_results(paths)
    sweeps = [read_sweep(path) for path in found if is_sweep(path)]
    runs = [RunFolder(path) for path in found if not is_sweep(path)]
    comparisons = _collect(comparisons_of_runs(runs, note), sweeps)
    if not comparisons:
        raise RunError(f"{', '.join(paths)}: no method has a result yet")
    known = sorted({comparison.data for comparison in comparisons})
    for name in data:
        if name not in known:
            raise RunError(f"--data: must be one of {', '.join(known)}{nearest(name, known)}, got {name!r}")
    comparisons = [one for one in comparisons if not data or one.data in data]
    if (target := folder) is None:
        # outside the folders of the runs, in which TensorBoard on ``runs`` would show it
        resolved = [Path(path).resolve() for path in paths]
        what = json.dumps([[str(path) for path in resolved], list(data)])
        name = f"{resolved[0].name}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"
        try:
            target = Path(os.environ.get("LTR_CACHE") or Path.home() / ".cache" / "ltr").expanduser() / "boards" / name
        except RuntimeError:
            raise RunError("--logdir: is needed, because there is no home directory to write to") from None
    with _replacing(target) as new:
        write_board(new, comparisons)
        write_json(new / _MARKER, {"of": [str(Path(path).resolve()) for path in paths], "data": data})
    return Board(target, tuple(comparisons))


def _collect(of_runs: Sequence[Comparison], sweeps: Sequence[SweepResults]) -> list[Comparison]:
    """Return all comparisons, under different names."""
    named = [("runs", one) for one in of_runs]
    named += [(results.name, one) for results in sweeps for one in comparisons_of_sweep(results)]
    counts = Counter(one.name for _, one in named)
    taken: Counter[str] = Counter()
    comparisons = []
    for source, one in named:
        suffix = f" ({source})" if counts[one.name] > 1 else ""
        taken[one.name + suffix] += 1
        if (number := taken[one.name + suffix]) > 1:
            suffix += f" {number}"
        comparisons.append(replace(one, name=one.name + suffix, title=one.title + suffix))
    return comparisons


@contextlib.contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Yield a new folder to fill, which then takes the place of an old one."""
    folder = folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise RunError(f"--logdir: {folder} is not a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARKER).exists():
        raise RunError(f"--logdir: {folder} holds other files than a board's; remove it yourself, or choose another")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as beside:
            new = Path(beside, "new")
            new.mkdir()
            yield new
            if folder.exists():
                folder.rename(Path(beside, "old"))
            new.rename(folder)
    except OSError as error:
        raise RunError(f"--logdir: cannot write {folder}: {error.strerror}") from None
