"""The run folder: what a run leaves on disk, written so that a crash at any moment loses and garbles nothing.

::

    runs/pima/
      config.toml           the resolved config; `ltr run` takes it as it is
      run.json              versions, seed, git commit, sha256 of the data
      ranknet/              one folder a method, at the same time its TensorBoard run
        scalars.jsonl       every logged value in float64, one line a step
        events.out...       the same values as TensorBoard events
        checkpoint.pt       the training so far (while unfinished)
        model.pt            the fitted ranker
        scores.npz          its scores of both halves
        result.json         the method's row of the table, and names and sha256 of its files; while it and they are
                          there, the method is finished
      exact/                likewise; solution.json, the list in problem.npz and, on request, certificate.json
      results.csv  .md  .json
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainers.config import Config, parse_config, resolved_toml
from trainers.config_errors import ConfigError, Finding
from trainers.files import Json, RunError, read_json, reading, remove_leftovers, write_atomic, write_json, writing
from trainers.provenance import run_facts
from trainers.toml_text import flat, read_toml

__all__ = ["MethodFolder", "RunError", "RunFolder", "check_run", "locked", "open_run"]

# keys that say where to write, not what to compute: a run goes on when they change
_FREE_KEYS = frozenset({"runs_dir", "data.cache"})


class MethodFolder:
    """The folder of one method of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def records(self) -> Path:
        """JSON lines of every logged value."""
        return self.path / "scalars.jsonl"

    @property
    def checkpoint(self) -> Path:
        """The state of an unfinished training."""
        return self.path / "checkpoint.pt"

    @property
    def model(self) -> Path:
        """The fitted ranker."""
        return self.path / "model.pt"

    @property
    def scores(self) -> Path:
        """Its scores of both halves."""
        return self.path / "scores.npz"

    @property
    def certificate(self) -> Path:
        """What `ltr verify` checks."""
        return self.path / "certificate.json"

    @property
    def solution(self) -> Path:
        """The exact stage's weights, bound, status and trace."""
        return self.path / "solution.json"

    @property
    def problem(self) -> Path:
        """The list that the exact stage reranked."""
        return self.path / "problem.npz"

    @property
    def row(self) -> Path:
        """The row of the finished method."""
        return self.path / "result.json"

    def result(self) -> Json | None:
        """The finished method's row, None while it is unfinished or where one of its files is gone.

        Raises:
            RunError: a file that is not as it was written.
        """
        result = read_json(self.row)
        if result is None:
            return None
        with reading(self.row):
            files = result["files"]
            if not all((self.path / name).exists() for name in files):
                return None
        # runs of earlier versions have the names alone
        for name, digest in files.items() if isinstance(files, dict) else ():
            with reading(self.path / name):
                if _digest(self.path / name) != digest:
                    raise ValueError("not as it was written")
        return result

    def reopen(self) -> None:
        """Make the method unfinished, so that a stop while it is computed again leaves it so."""
        for path in (self.row, self.certificate):
            path.unlink(missing_ok=True)

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the row of a finished method and drop its checkpoint."""
        files = [path for path in (self.model, self.scores, self.solution, self.problem) if path.exists()]
        write_json(self.row, {**result, "files": {path.name: _digest(path) for path in files}})
        self.checkpoint.unlink(missing_ok=True)

    def certified(self) -> None:
        """Note in the row of the finished method what its certificate holds."""
        result = read_json(self.row)
        assert result is not None
        write_json(self.row, {**result, _CERTIFICATE: _digest(self.certificate)})

    @property
    def has_certificate(self) -> bool:
        """Whether the certificate of the finished method is there, as it was written."""
        result = read_json(self.row)
        known = None if result is None else result.get(_CERTIFICATE)
        return self.certificate.is_file() and _digest(self.certificate) == known


_CERTIFICATE = "certificate_sha256"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def method(self, name: str) -> MethodFolder:
        """The folder of a method, made if need be."""
        folder = MethodFolder(self.path / name)
        folder.path.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def config(self) -> Path:
        """The resolved config."""
        return self.path / "config.toml"

    @property
    def origin(self) -> Path:
        """The file of `facts`."""
        return self.path / "run.json"

    @property
    def facts(self) -> Json:
        """Versions, seed, git commit and data hash of the run.

        Raises:
            RunError: a missing or damaged file.
        """
        facts = read_json(self.origin)
        if facts is None:
            with reading(self.origin):
                raise FileNotFoundError
        return facts

    @property
    def begun(self) -> bool:
        """Whether the folder is that of a run: it has run.json, or a config and the log of a method."""
        return self.origin.exists() or (self.config.exists() and any(self.path.glob("*/scalars.jsonl")))


def check_run(config: Config, *, fresh: bool = False, undecided: Collection[str] = ()) -> None:
    """Refuse a folder that this config cannot run in, before anything is read or written.

    Args:
        config: what is to run.
        fresh: whether an earlier run of this name is thrown away.
        undecided: keys whose values are not known yet.

    Raises:
        RunError: a folder that holds something that is no run, a damaged config in it.
        ConfigError: a folder that holds another config's run.
    """
    folder = RunFolder(config.folder)
    if not folder.path.is_dir():
        return
    _check_is_run(folder)
    if folder.begun and not fresh:
        _check_config(folder, config, undecided)


@contextlib.contextmanager
def open_run(config: Config, data_facts: Mapping[str, Any], *, fresh: bool = False) -> Iterator[RunFolder]:
    """The folder of this config's run, new or to be continued, locked against a second process while open.

    Args:
        config: what is to run.
        data_facts: JSON facts of the data; ``sha256`` must not change between the starts of a run.
        fresh: throw away what an earlier run of this name left.

    Raises:
        RunError: a folder that holds another config's run, other data, or something that is no run at all; a run
            that another process is writing.
    """
    folder = RunFolder(config.folder)
    with writing(folder.path, "runs_dir"):
        folder.path.mkdir(parents=True, exist_ok=True)
    with locked(folder.path):
        _check_is_run(folder)
        begun = folder.begun
        if begun and fresh:
            _empty(folder.path)
        elif begun:
            _check_config(folder, config)
            _check_data(folder, data_facts)
        remove_leftovers(folder.path, locked=True)
        if fresh or not begun:
            with writing(folder.path, "runs_dir"):
                write_atomic(folder.config, resolved_toml(config).encode())
                write_json(folder.origin, run_facts(config, data_facts))
        yield folder


_LOCK = ".lock"


@contextlib.contextmanager
def locked(path: Path, name: str = _LOCK) -> Iterator[None]:
    """A context in which no other process has this lock of a folder.

    Where the system or the file system has no locks, a second process is the user's care.

    Raises:
        RunError: another process has it, a folder that cannot be written to.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with writing(path, "runs_dir"):
        file = (path / name).open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"name: another process is writing {path}; wait for it or choose another name") from None
        except OSError:
            pass
        yield


def _empty(path: Path) -> None:
    for entry in path.iterdir():
        if entry.name == _LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


_ADVICE = "add --fresh to start over, or give the new run another name (name=...)"


def _check_is_run(folder: RunFolder) -> None:
    # a crash at the very start leaves no more than these behind
    if not folder.begun and any(p != folder.config and not p.name.startswith(".") for p in folder.path.iterdir()):
        raise RunError(f"name: {folder.path} holds files that are no run; remove it yourself, or choose another name")


def _check_config(folder: RunFolder, config: Config, undecided: Collection[str] = ()) -> None:
    before = _begun_with(folder)
    now = flat(tomllib.loads(resolved_toml(config)))
    findings = [
        Finding(key, f"was {_shown(before.get(key))} in the run begun in {folder.path}", now.get(key, "the default"))
        for key in dict.fromkeys((*before, *now))
        if before.get(key) != now.get(key) and key not in _FREE_KEYS and key not in undecided
    ]
    if findings:
        raise ConfigError(f"the config differs from that of the run to continue; {_ADVICE}", findings)


def _begun_with(folder: RunFolder) -> dict[str, Any]:
    """The keys of the config that a run was begun with.

    Raises:
        RunError: a file that is missing, damaged or cut off.
    """
    try:
        tree = read_toml(folder.config)
        whole = flat(tomllib.loads(resolved_toml(parse_config(tree, source=str(folder.config)))))
    except ConfigError as error:
        raise RunError(f"{folder.config}: is damaged ({error.findings[0]}); {_ADVICE}") from None
    if missing := [key for key in whole if key not in flat(tree)]:
        keys = ", ".join(missing[:3]) + (", ..." if missing[3:] else "")
        raise RunError(f"{folder.config}: was cut off or is of another version: it lacks {keys}; {_ADVICE}")
    return flat(tree)


def _check_data(folder: RunFolder, data_facts: Mapping[str, Any]) -> None:
    with reading(folder.origin):
        sha = folder.facts["data"]["sha256"]
    if sha != data_facts.get("sha256"):
        raise RunError(
            f"data: changed since the run in {folder.path} began (sha256 {str(sha)[:12]}, "
            f"now {str(data_facts.get('sha256'))[:12]}); {_ADVICE}"
        )


def _shown(value: object) -> str:
    return "the default" if value is None else json.dumps(value, ensure_ascii=False)
