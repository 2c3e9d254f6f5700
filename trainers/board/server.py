"""TensorBoard on a board, in the foreground."""

from __future__ import annotations

import contextlib
import io
import logging
import shlex
import threading
from collections.abc import Callable

from trainers.board.build import Board
from trainers.files import RunError
from trainers.report.wording import counted


def command(board: Board, host: str | None = None, port: int | None = None) -> str:
    """Return the command that starts TensorBoard on a board."""
    options = [] if host is None else ["--host", host]
    options += [] if port is None else ["--port", str(port)]
    return shlex.join(["tensorboard", "--logdir", str(board.folder), *options])


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
    what = f"{board.methods} methods on {counted(len(board.data), 'data set')}"
    say(f"{what}, in {board.folder}; Ctrl-C ends TensorBoard")
    say(f"{url}?smoothing=0#custom_scalars&_smoothingWeight=0")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return
