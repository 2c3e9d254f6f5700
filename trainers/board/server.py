"""The command ``ltr board``: a board, and TensorBoard on it in the foreground."""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import re
import shlex
import sys
import threading
from collections.abc import Callable
from urllib.parse import quote

from trainers.board.build import Board, build_board
from trainers.board.layout import SHOWN_AT_FIRST
from trainers.files import RunError
from trainers.report.wording import counted


def command(board: Board, host: str | None = None, port: int | None = None) -> str:
    """Return the command that starts TensorBoard on a board."""
    options = [] if host is None else ["--host", host]
    options += [] if port is None else ["--port", str(port)]
    return shlex.join(["tensorboard", "--logdir", str(board.folder), *options])


def links(board: Board, url: str) -> dict[str, str]:
    """Return links to the charts without smoothing, one a data set where there are too many runs to show at once."""
    if board.runs < SHOWN_AT_FIRST:
        return {", ".join(board.data): f"{url}?smoothing=0#custom_scalars&_smoothingWeight=0"}
    return {name: _link(name, url) for name in board.data}


def _link(name: str, url: str) -> str:
    pattern = quote(f"^{re.escape(name)}[,/ ]", safe="")
    return f"{url}?smoothing=0&runFilter={pattern}#custom_scalars&_smoothingWeight=0&regexInput={pattern}"


def serve(board: Board, say: Callable[[str], None], *, host: str | None = None, port: int | None = None) -> None:
    """Run TensorBoard until Ctrl-C; `say` shows a line to the user.

    Raises:
        RunError: TensorBoard cannot be started, such as on a port that is taken.
    """
    try:
        from tensorboard import default, program
    except Exception as error:
        raise RunError(
            f"TensorBoard cannot be started ({type(error).__name__}: {error}); its command is {command(board)}"
        ) from error
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    tensorboard = program.TensorBoard(plugins=default.get_plugins())
    tensorboard.configure(argv=shlex.split(command(board, host, port)))
    said = io.StringIO()  # a note on TensorBoard's own workings, or why it gives up
    try:
        with contextlib.redirect_stderr(said):
            url = tensorboard.launch()
    except program.TensorBoardServerException as error:
        raise RunError(f"--port: {error.msg.strip()}") from None
    except (OSError, SystemExit) as error:
        reason = said.getvalue().strip().rpartition("\n")[2] or str(error)
        raise RunError(f"--host: TensorBoard cannot listen on {host or 'localhost'}: {reason}") from None
    say(f"{board.runs} methods on {counted(len(board.data), 'data set')}, in {board.folder}; Ctrl-C ends TensorBoard")
    for name, link in links(board, url).items():
        say(f"{name}: {link}")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


def run_board(arguments: argparse.Namespace, complain: Callable[[str], None]) -> int:
    """Write the board and start TensorBoard on it, until Ctrl-C; returns the exit code."""
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
