"""The command ``ltr board``: its options, and what it does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["add_board", "run_board"]

_LARGEST_PORT = 65535


def add_board(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to those of ``ltr``."""
    board = commands.add_parser(
        "board",
        help="compare runs and sweeps in TensorBoard",
        description="Lay runs and sweeps out for comparison and start TensorBoard on them: the methods on each data "
        "set side by side. The runs stay as they are; the same command again takes in what is new.",
    )
    board.add_argument(
        "paths", metavar="RUNS", nargs="+", help="a run folder, a folder of runs, a sweep's folder or cells.jsonl"
    )
    board.add_argument("--data", action="append", default=[], metavar="NAME", help="only this data set (repeatable)")
    board.add_argument("--split", type=_natural, metavar="N", help="of sweeps this split, not the mean over all")
    board.add_argument("--logdir", type=Path, metavar="DIR", help="folder of the board (default: in LTR_CACHE)")
    board.add_argument("--host", help="where TensorBoard listens (default: this machine alone)")
    board.add_argument("--port", type=_port, help="its port (default: the first free one from 6006 on; 0 is any)")
    board.add_argument("--print", action="store_true", help="do not start TensorBoard, print its command")


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer >= 0, got {text!r}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LARGEST_PORT:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to {_LARGEST_PORT}, got {text!r}")
    return int(text)


def run_board(arguments: argparse.Namespace, complain: Callable[[str], None]) -> int:
    """Write the board and start TensorBoard on it, until Ctrl-C; returns the exit code.

    Args:
        arguments: as parsed.
        complain: says a line on stderr.

    Raises:
        RunError: nothing to show, a folder or port that cannot be used.
    """
    from trainers.board.build import build_board
    from trainers.board.server import command, serve

    if not arguments.print:
        complain("laying the results out, which takes half a minute for thousands")
    board = build_board(
        arguments.paths, folder=arguments.logdir, data=arguments.data, split=arguments.split, note=complain
    )
    if arguments.print:
        sys.stdout.write(f"{command(board, arguments.host, arguments.port)}\n")
    else:
        serve(board, complain, host=arguments.host, port=arguments.port)
    return 0
