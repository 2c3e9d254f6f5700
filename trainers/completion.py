"""Completion of the command line in bash, zsh and fish by argcomplete: commands, options, files, runs, columns, keys.

The shell asks ``ltr`` itself how a line can go on (`complete`), so it offers the runs that there are and the keys of
the installed version. Nothing of this is imported unless a shell asks.
"""

from __future__ import annotations

import argparse
import csv
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.shell_integration import shellcode

if TYPE_CHECKING:
    from pydantic import BaseModel

_TABLES = ("csv", "tsv", "txt", "parquet", "npz", "svm", "libsvm", "gz")
_BY_METAVAR = {"TABLE": (*_TABLES, "toml"), "DATA": _TABLES, "ROWS": _TABLES, "OUTCOMES": _TABLES, "CONFIG": ("toml",)}


def script(shell: str) -> str:
    """Return what a shell has to read to complete ``ltr``."""
    return shellcode(["ltr"], shell=shell)


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell how a line can go on, and end the process."""
    for name, command in _subcommands(parser):
        for action in command._actions:
            if action.dest == "overrides":
                keys = {"sweep": _keys_of_sweep, "tune": _keys_of_search}.get(name, _keys)
                action.completer = keys  # type: ignore[attr-defined]
            elif action.metavar == "COLUMN":
                action.completer = _columns  # type: ignore[attr-defined]
            elif action.dest == "keys":
                action.completer = _sections  # type: ignore[attr-defined]
            elif action.metavar in ("RUN", "RUNS") and name != "eval":
                action.completer = _runs  # type: ignore[attr-defined]
            elif action.metavar in _BY_METAVAR:
                action.completer = FilesCompleter(_BY_METAVAR[str(action.metavar)])  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options="long")


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _runs(prefix: str, **_: object) -> list[str]:
    """Return the runs and sweeps in the folder runs/, and the folders that a path can go on to."""
    known = sorted(path.name for path in Path("runs").glob("*/") if not path.name.startswith("."))
    return [*known, *FilesCompleter(["jsonl"])(prefix)]


def _sections(prefix: str, **_: object) -> list[str]:
    from trainers.config.grids import keys_of

    keys = [key for rows in keys_of().values() for key, *_ in rows]
    sections = {key.rpartition(".")[0] for key in keys} - {""}
    return (
        [*sorted(sections), *keys] if "." in prefix else [*sorted(sections), *(key for key in keys if "." not in key)]
    )


def _keys(prefix: str, **_: object) -> list[str]:
    from trainers.config import Config

    return list(_assignments(prefix, Config))


def _keys_of_sweep(prefix: str, **_: object) -> list[str]:
    from trainers.config.grids import SweepConfig

    own = (text for text in _assignments(prefix, SweepConfig) if not text.startswith("grid"))
    return [*own, *_keys(prefix)]


def _keys_of_search(prefix: str, **_: object) -> list[str]:
    from trainers.config.tuning import TuneConfig

    own = _assignments(prefix.removeprefix("tune."), TuneConfig)
    return [*(f"tune.{text}" for text in own), *_keys(prefix)]


def _assignments(prefix: str, model: type[BaseModel]) -> Iterator[str]:
    """Yield ``key=`` for every key of a config; the values of a key once it is written and they are few."""
    from trainers.config.experiment import fields_of

    for key, field in fields_of(model):
        if prefix.startswith(f"{key}="):
            yield from (f"{key}={value}" for value in _values(key, field.annotation))
        else:
            yield f"{key}="


def _values(key: str, annotation: object) -> list[str]:
    """Return the values of a key that are words."""
    if key == "data.name":
        from ltr.data import dataset_names

        return list(dataset_names())
    if annotation is bool:
        return ["true", "false"]
    origin = get_origin(annotation)
    if origin is Literal:
        return [str(value) for value in get_args(annotation)]
    if origin in (Union, types.UnionType, Annotated, tuple):
        return [value for part in get_args(annotation) for value in _values("", part)]
    return []


def _columns(prefix: str, parsed_args: Any, **_: object) -> list[str]:  # noqa: ANN401  (what is parsed so far)
    """Return the columns of the table that the command line names, from its first line."""
    path = getattr(parsed_args, "table", getattr(parsed_args, "data", None))
    if path is None or Path(path).suffix not in (".csv", ".tsv", ".txt"):
        return []
    with Path(path).open(encoding="utf-8", errors="replace", newline="") as file:
        line = file.readline(100_000)
    separator = max(",;\t|", key=line.count)
    return next(csv.reader([line], delimiter=separator), [])
