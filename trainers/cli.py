"""The command ``ltr``: exit codes, Ctrl-C, and errors of the user as one message.

`trainers.parser` says what can be asked for, `trainers.commands` does it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from trainers.stopping import complain


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process, and return the exit code: 2 for errors of the user."""
    try:
        return _main(argv)
    except KeyboardInterrupt:
        complain("interrupted")
        return 130


def _main(argv: Sequence[str] | None) -> int:
    # the imports behind the commands take seconds; --help, --version, and what is wrong at first sight should not
    from trainers.parser import may_run_code, parse

    arguments = parse(argv)
    if arguments is None:
        return 2
    from ltr.checks import UntrustedError, trusting
    from ltr.data import DataError
    from trainers.files import RunError

    try:
        with trusting(may_run_code(arguments)):
            code = arguments.act(arguments)
        sys.stdout.flush()
        return code or 0
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


def _drop_stdout() -> None:
    """Keep the interpreter's end from writing output that cannot be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
