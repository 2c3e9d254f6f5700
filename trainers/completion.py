"""Completion of the command line in bash, zsh and fish by argcomplete: commands, options, files, runs and keys.

The shell asks ``ltr`` itself how a line can go on (`complete`), so it offers the runs that there are and the keys of
the installed version. Nothing of this is imported unless a shell asks.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import argcomplete
from argcomplete.completers import FilesCompleter


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell how a line can go on, and end the process."""
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        for action in command._actions:
            if action.dest in ("overrides", "keys"):
                action.completer = _keys if action.dest == "keys" else _assignments
            elif action.metavar in ("RUN", "RUNS") and name != "eval":
                action.completer = _runs
    argcomplete.autocomplete(parser, always_complete_options="long")


def _runs(prefix: str, **_: object) -> list[str]:
    """Return the runs and sweeps in the folder runs/, and the paths that can go on."""
    known = sorted(path.name for path in Path("runs").glob("*/") if not path.name.startswith("."))
    return [*known, *FilesCompleter()(prefix)]


def _keys(**_: object) -> list[str]:
    from trainers.config.grids import keys_of

    return [key for rows in keys_of().values() for key, *_ in rows if not key.startswith("grid")]


def _assignments(**_: object) -> list[str]:
    return [f"{key}=" for key in _keys()]
