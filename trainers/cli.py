"""The command ``ltr``: exit codes, Ctrl-C, and errors of the user as one message.

`trainers.parser` says what can be asked for, `trainers.commands` does it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from trainers.stopping import StopFlag, complain, exit_code

if TYPE_CHECKING:
    from trainers.commands import Steps


def command() -> int:
    """Run the command line as a process of its own and return its exit code; Ctrl-C cannot disturb the way out."""

    def failed(failure: threading.ExceptHookArgs) -> None:
        # no traceback of TensorBoard's writer on a full disk: the run reports the same error
        if not issubclass(failure.exc_type, OSError):
            threading.__excepthook__(failure)

    threading.excepthook = failed
    return exit_code(lambda loaded: main(loaded=loaded), _interrupted)  # a second Ctrl-C is answered as the first


def main(argv: Sequence[str] | None = None, *, loaded: Callable[[], None] | None = None) -> int:
    """Run the command line and return the exit code.

    Errors of the user end in one message on stderr and exit code 2, Ctrl-C in 130.

    Args:
        argv: the arguments; those of the process by default.
        loaded: called once the modules are imported, by when Ctrl-C is handled elsewhere.
    """
    try:
        return _main(argv, loaded)
    except KeyboardInterrupt:
        return _interrupted()


def _interrupted() -> int:
    complain("interrupted")
    return 130


def _main(argv: Sequence[str] | None, loaded: Callable[[], None] | None) -> int:
    # libraries make other errors of a KeyboardInterrupt in the middle of their imports
    with contextlib.ExitStack() as trust:
        with StopFlag() if loaded is None else contextlib.nullcontext() as stop:
            from trainers.parser import may_run_code, parse

            arguments = parse(argv)
            if arguments is None:
                return 2
            from ltr.checks import trusting

            trust.enter_context(trusting(may_run_code(arguments)))
            # the imports behind the commands take seconds; --help, --version, and what is wrong at first sight should
            # not
            steps = arguments.act(arguments)
            with _waiting(arguments, "reading the data"):
                modules = _step(steps)
            if isinstance(modules, int):
                return modules
            with _waiting(arguments, "loading libraries"):
                for module in modules:
                    importlib.import_module(module)
        if stop is not None:
            stop.check()
        elif loaded is not None:
            loaded()
        code = _step(steps)
        assert isinstance(code, int)
        return code


def _step(steps: Steps) -> tuple[str, ...] | int:
    """Take a step of a command, and return the modules that it needs next, or the exit code where it has ended."""
    from ltr.checks import UntrustedError
    from ltr.data import DataError
    from trainers.files import RunError

    try:
        try:
            return next(steps)
        except StopIteration as end:
            sys.stdout.flush()
            return int(end.value)
    except (DataError, RunError, UntrustedError) as error:
        complain(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader of the output has enough, as `head` has
        _drop_stdout()
        return 141
    except OSError as error:
        complain(f"error: {error.filename or 'standard output'}: {error.strerror or error}")
        if error.filename is None:
            _drop_stdout()
        return 2


@contextlib.contextmanager
def _waiting(arguments: argparse.Namespace, what: str) -> Iterator[None]:
    """Return a context that says what the user waits for, unless it ends within less than two seconds."""
    timer = threading.Timer(_PATIENCE, complain, [f"{what} ..."])
    timer.daemon = True
    if arguments.command in _LONG and not getattr(arguments, "quiet", False):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


_LONG, _PATIENCE = ("run", "rank", "sweep", "tune"), 1.5  # commands that may take long, and seconds


def _drop_stdout() -> None:
    """Keep the interpreter's end from writing output that cannot be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
