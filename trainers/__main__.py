"""``python -m trainers`` is the command ``ltr``."""

import os
import signal
import sys

from trainers.stopping import leave_at_once


def command() -> int:
    """Run the command ``ltr``, which Ctrl-C ends without a traceback also while its modules are imported."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not ignored, as in the background
        signal.signal(signal.SIGINT, leave_at_once)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # to look for them takes a tenth of a second
    from ltr.checks import PLACES
    from trainers import cli

    PLACES.append("")  # losses of the user's own may stand in the working folder
    return cli.command()


if __name__ == "__main__":
    sys.exit(command())
