"""The run folder: the files of a run, written so that a crash at any moment loses and damages nothing.

::

    runs/pima/
      config.toml           the resolved config; `ltr run` takes it as it is
      run.json              versions, seed, git commit, sha256 of the data
      preparation.json      how the columns of a table become features (`ltr.data.TablePreparation`)
      ranknet/              one folder a method, which is also its TensorBoard run
        scalars.jsonl       every logged value in float64, one line a step
        events.out...       the same values as TensorBoard events
        checkpoint.pt       the training so far (while unfinished)
        model.json          the fitted ranker; model.safetensors if it is a network or large
        scores.npz          its scores of the training and test sets
        result.json         its record (`trainers.records`), with names and sha256 of its files; while it and they
                            exist, the method is finished
      exact/                likewise; solution.json, the list in problem.npz, the inner splits of the choice in
                            inner.jsonl and, on request, certificate.json
      card/                 likewise; card.json  .csv  .md  .html  .png, certificate.json, and the rows of both sets in
                            ranked.csv
      results.csv  .md  .json
      page.html  .json      whom to visit by the recommended ranker, and what to expect, as `ltr rank` writes them
      list.csv              all rows of that list, where the data are a table
      evidence.npz          labels of the test set and the ranker's scores of it, from which the chances come
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shutil
import time
import tomllib
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ltr.checks import nearest, trusting
from trainers.config import Config, parse_config, resolved_toml
from trainers.config.errors import ConfigError, changes
from trainers.config.toml_text import flat, read_toml
from trainers.files import (
    LOCK,
    Json,
    RunError,
    locked,
    read_json,
    reading,
    remove_leftovers,
    to_json,
    write_atomic,
    write_json,
    writing,
)
from trainers.records import check_record, is_sweep, origin

if TYPE_CHECKING:
    from ltr.rankers import Ranker

PAGE = "page.json"
"""Name of the file of a ranking's page (`trainers.ranking_files`)."""
# keys that say what to write and where, not what to compute: a run goes on when they change
_FREE_KEYS = frozenset({"runs_dir", *(f"answer.{name}" for name in ("visits", "id", "new", "new_values", "price"))})


MODELS = ("model.json", "model.safetensors")
"""Names of the file of a fitted ranker."""


class MethodFolder:
    """The folder of one method of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "scalars.jsonl"  # JSON lines of every logged value
        self.checkpoint = path / "checkpoint.pt"  # state of an unfinished training
        self.scores = path / "scores.npz"  # its scores of both sets
        self.solution = path / "solution.json"  # weights, bound, status and trace of the exact stage
        self.problem = path / "problem.npz"  # the list that the exact stage reranked, or that a card was found for
        self.certificate = path / "certificate.json"  # certificate, which `ltr verify` checks
        self.card = path / "card.json"  # the card
        self.inner = path / "inner.jsonl"  # results of the choice's inner splits
        self.record = path / "result.json"  # record of the finished method

    @property
    def model(self) -> Path:
        """The file of the fitted ranker; that of a ranker that is not a network where there is none yet."""
        return next(filter(Path.exists, map(self.path.joinpath, MODELS)), self.path / MODELS[0])

    def save(self, ranker: Ranker) -> None:
        """Write the fitted ranker, in place of an earlier one; a TypeError says why one cannot be written."""
        path = self.path / f"model{ranker.file_suffix}"
        ranker.save(path)
        for name in MODELS:
            if name != path.name:
                (self.path / name).unlink(missing_ok=True)

    def result(self) -> Json | None:
        """Return the record of the finished method; None while it is unfinished or a file of it is missing."""
        result = read_json(self.record)
        if result is None:
            return None
        with reading(self.record):
            files = dict(result["files"])
            if not all((self.path / name).exists() for name in files):
                return None
        for name, digest in files.items():
            with reading(self.path / name):
                if _digest(self.path / name) != digest:
                    raise ValueError("not as it was written")
        with reading(self.record):
            check_record(result)
            return result

    def reopen(self) -> None:
        """Mark the method as unfinished before it is computed again."""
        for path in (self.record, self.certificate):
            path.unlink(missing_ok=True)

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the record of a finished method and remove its checkpoint."""
        kept = (self.model, self.scores, self.solution, self.problem, self.card, self.certificate)
        files = [path for path in kept if path.exists()]
        write_json(self.record, {**result, "files": {path.name: _digest(path) for path in files}})
        self.checkpoint.unlink(missing_ok=True)


class InnerSplits(UserDict[str, Json]):
    """The results of inner splits by name, each written to a file as a line of JSON as soon as it is known."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        with reading(path):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
            whole = [line for line in lines if line.endswith("\n")]  # a crash may have cut off the last one
            for line in whole:
                self.data |= json.loads(line)
        write_atomic(path, "".join(whole).encode())

    def __setitem__(self, name: str, result: Json) -> None:
        super().__setitem__(name, result)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(to_json({name: result}), allow_nan=False) + "\n")


def write_arrays(path: Path, **arrays: Any) -> None:  # noqa: ANN401  (arrays of any type)
    """Write arrays by name as a file of NumPy."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomic(path, buffer.getvalue())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"  # the resolved config
        self.origin = path / "run.json"  # the file of `facts`
        self.preparation = path / "preparation.json"  # how the columns of a table become features

    def method(self, name: str, *, make: bool = True) -> MethodFolder:
        """Return the folder of a method, made if need be."""
        folder = MethodFolder(self.path / re.sub(r"[/\\\0]", "_", name))  # columns of scores have any name
        if make:
            folder.path.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def facts(self) -> Json:
        """Versions, seed, git commit and data hash of the run."""
        with reading(self.origin):
            if (facts := read_json(self.origin)) is None:
                raise FileNotFoundError
        return facts

    @property
    def fitted(self) -> list[str]:
        """The methods that have a fitted ranker."""
        return sorted({path.parent.name for name in MODELS for path in self.path.glob(f"*/{name}")})

    @property
    def begun(self) -> bool:
        """Whether the folder holds a run: run.json, or a config and the log of a method."""
        return self.origin.exists() or (self.config.exists() and any(self.path.glob("*/scalars.jsonl")))


def find(text: str, is_one: Callable[[Path], bool], what: str) -> Path:
    """Find what `is_one` accepts at a path, or under that name in the folder runs/."""
    runs = Path("runs")
    if Path(text).suffix == ".toml":
        raise RunError(f"{text}: is a config; give the folder that was made with it, such as {runs / Path(text).stem}")
    for path in (Path(text), runs / text):
        if is_one(path):
            return path
    known = sorted(path.name for path in runs.glob("*") if path.is_dir() and is_one(path))
    hint = nearest(text, known) or (f"; known are {', '.join(known)}" if known else "")
    raise RunError(f"no {what} at {text} or {runs / text}{hint}")


def find_run(text: str, *, page: bool = False) -> RunFolder:
    """Find the run folder at a path, or of that name in the runs folder; with `page` also that of `ltr rank`."""
    if not page and (Path(text) / PAGE).exists() and not RunFolder(Path(text)).begun:
        raise RunError(f"{text}: is the page of a ranking: `ltr rank {text} --new TABLE` ranks other rows")
    return RunFolder(find(text, lambda path: RunFolder(path).begun or (page and (path / PAGE).exists()), "run folder"))


def find_reported(text: str) -> Path:
    """Find the folder of a sweep or run by its path or its name in the runs folder, or a file of a sweep's results."""
    return find(text, lambda path: is_sweep(path) or RunFolder(path).begun, "run or sweep")


def check_run(folder: RunFolder, config: Config, data_facts: Mapping[str, Any], *, fresh: bool = False) -> bool:
    """Check that a config can run in a folder, and return whether it goes on with a run that has begun there.

    A `RunError` says that the folder holds other files than those of a run, other data or a damaged config, a
    `ConfigError` that it holds another config's run.
    """
    # a crash at the very start leaves no more than these behind
    entries = folder.path.iterdir() if folder.path.is_dir() else ()
    if not folder.begun and any(path != folder.config and not path.name.startswith(".") for path in entries):
        advice = "remove it yourself, or choose another name"
        raise RunError(f"name: {folder.path} holds other files than a run's; {advice}")
    if fresh or not folder.begun:
        return False
    _check_config(folder, config)
    with reading(folder.origin):
        sha = folder.facts["data"]["sha256"]
    if (now := data_facts.get("sha256")) != sha:
        hashes = f"sha256 {str(sha)[:12]}, now {str(now)[:12]}"
        raise RunError(f"data: changed since the run in {folder.path} began ({hashes}); {_ADVICE}")
    return True


@contextlib.contextmanager
def open_run(config: Config, data_facts: Mapping[str, Any], *, fresh: bool = False) -> Iterator[RunFolder]:
    """Open the folder of a config's run, new or to be continued (`check_run`), locked against a second process.

    With `fresh` what an earlier run of this name left is thrown away.
    """
    folder = RunFolder(config.folder)
    with locked(folder.path):
        goes_on = check_run(folder, config, data_facts, fresh=fresh)
        if folder.begun and fresh:
            for entry in folder.path.iterdir():
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                elif entry.name != LOCK:
                    entry.unlink()
        remove_leftovers(folder.path, locked=True)
        if not goes_on:
            with writing(folder.path, "runs_dir"):
                write_atomic(folder.config, resolved_toml(config).encode())
                begun_with = {"name": config.name, "seed": config.seed, "begun": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
                write_json(folder.origin, {**begun_with, **origin(), "data": data_facts})
        yield folder


_ADVICE = "add --fresh to start over, or give the new run another name (name=...)"


def _check_config(folder: RunFolder, config: Config) -> None:
    try:
        tree = read_toml(folder.config)
        with trusting(False):  # a run of anybody's may be in the folder
            whole = parse_config(tree, source=str(folder.config))
    except ConfigError as error:
        raise RunError(f"{folder.config}: is damaged ({error.findings[0]}); {_ADVICE}") from None
    before = flat(tree)
    if missing := [key for key in flat(tomllib.loads(resolved_toml(whole))) if key not in before]:
        keys = ", ".join(missing[:3]) + (", ..." if missing[3:] else "")
        raise RunError(f"{folder.config}: was cut off or is of another version: it lacks {keys}; {_ADVICE}")
    now = flat(tomllib.loads(resolved_toml(config)))
    found = changes(before, now, f"in the run begun in {folder.path}")
    if findings := [one for one in found if one.path not in _FREE_KEYS]:
        raise ConfigError(f"the config differs from that of the run to continue; {_ADVICE}", findings)
